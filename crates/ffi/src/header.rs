//! What a program was compiled with: its header must be that of this library.

use crate::types::{millpond_cx, millpond_exchange, millpond_numbers, millpond_peer, millpond_sample, millpond_wait};

/// As `MILLPOND_VERSION` of the header: one byte each for major, minor and patch.
pub const VERSION: u32 = {
    const fn number(text: &str) -> u32 {
        let mut number = 0_u32;
        let mut left = text.as_bytes();
        while let [digit, rest @ ..] = left {
            number = number.saturating_mul(10).saturating_add(digit.saturating_sub(b'0') as u32);
            left = rest;
        }
        number
    }
    number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
        | number(env!("CARGO_PKG_VERSION_PATCH"))
};

/// As `MILLPOND_SIZES` of the header.
pub const SIZES: u32 = {
    const fn place(bytes: usize, unit: usize, width: u32, shift: u32) -> u32 {
        assert!(bytes.is_multiple_of(unit), "a size does not come in such units");
        let units = (bytes as u32).div_ceil(unit as u32);
        assert!(units >> width == 0, "a size does not fit its place");
        units << shift
    }
    place(size_of::<millpond_peer>(), 8, 8, 24)
        | place(size_of::<millpond_exchange>(), 8, 6, 18)
        | place(size_of::<millpond_cx>(), 4, 4, 14)
        | place(size_of::<millpond_wait>(), 4, 4, 10)
        | place(size_of::<millpond_sample>(), 4, 5, 5)
        | place(size_of::<millpond_numbers>(), 4, 5, 0)
};

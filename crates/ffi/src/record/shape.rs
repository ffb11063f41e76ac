//! What a record begins with, and how that vouches for the value behind it.

use crate::types::{millpond_error, millpond_peer};
use millpond_control::layout::Layout;

/// What a record starts with. Every bit pattern is one.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Head {
    /// One of the kinds below, if the record was ever written.
    pub(super) kind: u8,
    /// The algorithm of a peer; of an exchange, that of the peer that started it.
    pub(super) family: u8,
    /// What the value's layout looks like.
    pub(super) print: u16,
    /// Over `kind`, `family` and every byte of the value that holds information.
    pub(super) check: u32,
}

impl Head {
    /// Of no kind.
    pub(super) const BLANK: Self = Self { kind: 0, family: 0, print: 0, check: 0 };
}

/// Where the least wait of a peer is, in bytes behind its head: in the last word.
pub(super) const LEAST_WAIT: usize = size_of::<millpond_peer>() - size_of::<Head>() - size_of::<u32>();

/// How a value lies in memory.
pub(crate) struct Shape {
    /// One bit for each byte, set if it holds information.
    filled: [u32; 3],
    /// The print of the layout, with this crate's version mixed in. A head holds its lower half; the check begins with
    /// all of it.
    print: u32,
}

/// FNV-1a (32 bits).
const PRIME: u32 = 16_777_619;

impl Shape {
    /// The shape of a `T` in an `R`, which must have room for a head and a `T` behind it.
    pub(crate) const fn of<T: Layout, R>() -> Self {
        assert!(size_of::<T>() <= size_of::<R>().saturating_sub(size_of::<Head>()), "too small for its value");
        assert!(align_of::<T>() <= size_of::<Head>() && align_of::<T>() <= align_of::<R>(), "not aligned");
        assert!(size_of::<T>() <= 96, "there is a bit for 96 bytes only");
        let mut print = T::PRINT;
        let mut left = env!("CARGO_PKG_VERSION").as_bytes();
        while let [byte, rest @ ..] = left {
            print = (print ^ *byte as u32).wrapping_mul(PRIME);
            left = rest;
        }
        let filled = T::FILLED;
        Self { filled: [filled as u32, (filled >> 32) as u32, (filled >> 64) as u32], print }
    }

    /// The same with what a peer holds behind its controller, which has so many bytes.
    pub(super) const fn with_least_wait(self, controller: usize) -> Self {
        assert!(controller <= LEAST_WAIT, "no room for the least wait");
        let [first, second, third] = self.filled;
        // Its bytes hold information.
        Self { filled: [first, second, third | 0xf << (LEAST_WAIT % 32)], ..self }
    }

    /// The check of a record; a change of any one byte changes it.
    ///
    /// # Safety
    ///
    /// Behind `head` lies a value of this shape: those of its bytes that hold information are initialised.
    #[inline(never)]
    unsafe fn check(&self, head: *const Head) -> u32 {
        // SAFETY: so says the caller.
        let Head { kind, family, .. } = unsafe { head.read() };
        let mut check = (self.print ^ (u32::from(kind) << 8 | u32::from(family))).wrapping_mul(PRIME);
        let mut byte = behind::<u8>(head.cast_mut());
        for word in &self.filled {
            let mut word = *word;
            let next = byte.wrapping_add(u32::BITS as usize);
            while word != 0 {
                if word & 1 != 0 {
                    // SAFETY: the bit says that this byte lies in the value and holds information.
                    check = (check ^ u32::from(unsafe { byte.read() })).wrapping_mul(PRIME);
                }
                byte = byte.wrapping_add(1);
                word >>= 1;
            }
            byte = next;
        }
        check
    }

    /// Whether the record is one that was sealed with this shape and has not changed since.
    ///
    /// # Safety
    ///
    /// `head` points to an initialised record with room for this shape.
    #[inline(never)]
    pub(super) unsafe fn verify(&self, head: *const Head) -> Result<(), millpond_error> {
        // SAFETY: so says the caller.
        let Head { print, check, .. } = unsafe { head.read() };
        if print != self.print as u16 {
            return Err(millpond_error::MILLPOND_E_FOREIGN);
        }
        // SAFETY: so says the caller.
        if check != unsafe { self.check(head) } {
            return Err(millpond_error::MILLPOND_E_DAMAGED);
        }
        Ok(())
    }

    /// Makes the head vouch for the value behind it.
    ///
    /// # Safety
    ///
    /// Behind `head` lies a value of this shape.
    pub(super) unsafe fn seal(&self, head: *mut Head, kind: u8, family: u8) {
        // SAFETY: so says the caller.
        unsafe {
            head.write(Head { kind, family, print: self.print as u16, check: 0 });
            self.seal_again(head);
        }
    }

    /// The same where all but the check is as it was.
    ///
    /// # Safety
    ///
    /// As [`seal`](Self::seal).
    pub(super) unsafe fn seal_again(&self, head: *mut Head) {
        // SAFETY: so says the caller.
        unsafe { (*head).check = self.check(head) };
    }
}

/// Where the value of a record is.
pub(super) fn behind<T>(head: *mut Head) -> *mut T {
    head.wrapping_add(1).cast()
}

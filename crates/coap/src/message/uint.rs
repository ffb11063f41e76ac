use core::ops::Deref;

/// An unsigned integer as an option value: big-endian in as few bytes as it takes, none for 0 (RFC 7252 §3.2).
///
/// The longest values in the registry have 4 bytes (Max-Age, Size1, Size2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uint {
    bytes: [u8; 4],
    /// Leading zeros, 0 to 4.
    skip: u8,
}

impl Uint {
    /// The value of this number.
    #[inline]
    pub const fn new(number: u32) -> Self {
        // At most 32 leading zero bits, so at most 4 bytes.
        Self { bytes: number.to_be_bytes(), skip: (number.leading_zeros() >> 3) as u8 }
    }

    /// The bytes, 0 to 4 of them.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(usize::from(self.skip)..).unwrap_or_default()
    }

    /// The number that a received value stands for. Leading zeros are allowed, as §3.2 asks of receivers; `None` if
    /// the number does not fit 32 bits.
    #[inline]
    pub fn read(value: &[u8]) -> Option<u32> {
        value.iter().try_fold(0_u32, |number, &byte| Some(number.checked_mul(256)? | u32::from(byte)))
    }
}

impl Deref for Uint {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_bytes()
    }
}

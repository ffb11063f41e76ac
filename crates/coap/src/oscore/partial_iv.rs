use core::fmt;

/// A Partial IV (RFC 8613 §5): a sequence number below 2^40, big-endian in as few bytes as it takes, one for 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartialIv([u8; Self::LONGEST]);

impl PartialIv {
    /// Bytes of the longest one.
    pub(super) const LONGEST: usize = 5;

    /// One above the largest number (RFC 8613 §7.2.1).
    pub const LIMIT: u64 = 1 << 40;

    /// That of this number; `None` from [`LIMIT`](Self::LIMIT) on.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        let [0, 0, 0, a, b, c, d, e] = number.to_be_bytes() else { return None };
        Some(Self([a, b, c, d, e]))
    }

    /// The one that these bytes are; `None` if they are none, more than five, or more than it takes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut padded = [0; Self::LONGEST];
        let begin = Self::LONGEST.checked_sub(bytes.len())?;
        padded.get_mut(begin..)?.copy_from_slice(bytes);
        Some(Self(padded)).filter(|read| read.as_bytes().len() == bytes.len())
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        let [a, b, c, d, e] = self.0;
        u64::from_be_bytes([0, 0, 0, a, b, c, d, e])
    }

    /// Its 1 to 5 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let most = Self::LONGEST.saturating_sub(1);
        let zeros = self.0.iter().take(most).take_while(|byte| **byte == 0).count();
        self.0.get(zeros..).unwrap_or_default()
    }

    /// Its bytes behind as many zeros as make them five.
    pub(super) const fn padded(self) -> [u8; Self::LONGEST] {
        self.0
    }
}

impl fmt::Debug for PartialIv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartialIv({})", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_takes_as_few_bytes_as_it_can_and_no_others_are_read() {
        for (number, bytes) in [
            (0, &[0][..]),
            (1, &[1]),
            (255, &[255]),
            (256, &[1, 0]),
            (0x14_0000, &[0x14, 0, 0]),
            (PartialIv::LIMIT - 1, &[255; 5]),
        ] {
            let partial_iv = PartialIv::new(number).unwrap();
            assert_eq!((partial_iv.as_bytes(), partial_iv.number()), (bytes, number));
            assert_eq!(PartialIv::read(bytes), Some(partial_iv));
        }
        for bytes in [&[][..], &[0, 0], &[0, 1], &[0, 255, 255, 255, 255], &[1, 0, 0, 0, 0, 0]] {
            assert_eq!(PartialIv::read(bytes), None, "{bytes:?}");
        }
        assert_eq!(PartialIv::new(PartialIv::LIMIT), None);
        assert!(PartialIv::new(255) < PartialIv::new(256));
    }
}

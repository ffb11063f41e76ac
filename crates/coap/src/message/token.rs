use core::fmt;
use core::hash::{Hash, Hasher};

/// Matches a response to its request: 0 to 8 bytes that only the client reads (RFC 7252 §5.3.1).
///
/// The longer tokens of RFC 8974 are refused: nothing here has negotiated them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Zero beyond `len`, so that equality and hashing need not look at the length first.
    bytes: [u8; Self::MAX],
    len: u8,
}

impl Token {
    /// Longest token, in bytes.
    pub const MAX: usize = 8;

    /// The token of no bytes.
    pub const EMPTY: Self = Self { bytes: [0; Self::MAX], len: 0 };

    /// A token of these bytes; `None` if there are more than 8.
    #[inline]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let len = u8::try_from(bytes.len()).ok().filter(|len| usize::from(*len) <= Self::MAX)?;
        // As two words that may overlap: copying a length that is not known beforehand calls into memcpy.
        let word = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(low), Some(high)) => {
                let above = u32::from(len).saturating_mul(8).saturating_sub(32);
                let high = u64::from(u32::from_le_bytes(*high)).checked_shl(above).unwrap_or(0);
                u64::from(u32::from_le_bytes(*low)) | high
            }
            _ => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        Some(Self { bytes: word.to_le_bytes(), len })
    }

    /// Splits a token of `len` bytes off the front; `None` if there are not so many, or more than 8 are asked for.
    #[inline(always)]
    pub(crate) fn take(bytes: &[u8], len: u8) -> Option<(Self, &[u8])> {
        let (token, rest) = bytes.split_at_checked(usize::from(len))?;
        // Copying a length that is not known beforehand calls into memcpy, which costs as much as the rest of a parse.
        match bytes.first_chunk::<{ Self::MAX }>() {
            Some(word) if len <= 8 => {
                let unused = 64_u32.saturating_sub(u32::from(len).saturating_mul(8));
                let kept = u64::MAX.checked_shr(unused).unwrap_or(0);
                Some((Self { bytes: (u64::from_le_bytes(*word) & kept).to_le_bytes(), len }, rest))
            }
            _ => Self::near_the_end(token, rest),
        }
    }

    /// The same where less than a word is left, or where there is no such token.
    #[cold]
    fn near_the_end<'a>(token: &[u8], rest: &'a [u8]) -> Option<(Self, &'a [u8])> {
        Some((Self::new(token)?, rest))
    }

    /// The bytes, 0 to 8 of them.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len()).unwrap_or_default()
    }

    /// The bytes, followed by zeros.
    #[inline]
    pub(crate) const fn padded(&self) -> [u8; Self::MAX] {
        self.bytes
    }

    /// The token without its last byte, and that byte; `None` if it has none.
    #[inline]
    pub(crate) fn split_last(self) -> Option<(Self, u8)> {
        let (last, rest) = self.as_bytes().split_last()?;
        Some((Self::new(rest)?, *last))
    }

    /// The token with one byte more; `None` if it has 8 already.
    pub(crate) fn followed_by(self, last: u8) -> Option<Self> {
        let mut token = self;
        *token.bytes.get_mut(self.len())? = last;
        token.len = token.len.saturating_add(1);
        Some(token)
    }

    /// Number of bytes, 0 to 8.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Is this the token of no bytes?
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Default for Token {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Two words rather than a slice: the hash sits on the path of every response.
impl Hash for Token {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from_le_bytes(self.bytes));
        state.write_u8(self.len);
    }
}

/// Hexadecimal, `-` for the empty token.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.len == 0 {
            return f.write_str("-");
        }
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({self})")
    }
}

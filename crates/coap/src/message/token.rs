use core::fmt;
use core::hash::{Hash, Hasher};

/// Matches a response to its request: 0 to 8 bytes that only the client reads (RFC 7252 §5.3.1).
///
/// A longer token (RFC 8974) is kept by the endpoint or connection that received it; this is then its number there, and has
/// its [length](Self::len) but not its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Zero beyond `len`, so that equality and hashing need not look at the length first. Of a long token its number,
    /// generation and length.
    bytes: [u8; Self::MAX],
    /// 0 to 8, or [`LONG`].
    len: u8,
}

/// Stands where the length of a short token does. As a token length it is reserved (RFC 8974 §2.1), so that no datagram has it.
const LONG: u8 = 15;

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
    #[cfg_attr(feature = "many-peers", inline(always))]
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

    /// The same of a message that stayed within an endpoint.
    #[cfg_attr(feature = "many-peers", inline(always))]
    pub(crate) fn again(bytes: &[u8], field: u8) -> Option<(Self, &[u8])> {
        if field == LONG {
            let (kept, rest) = bytes.split_first_chunk()?;
            return Some((Self { bytes: *kept, len: LONG }, rest));
        }
        Self::take(bytes, field)
    }

    /// The same where less than a word is left, or where there is no such token.
    #[cold]
    fn near_the_end<'a>(token: &[u8], rest: &'a [u8]) -> Option<(Self, &'a [u8])> {
        Some((Self::new(token)?, rest))
    }

    /// A token of so many bytes, at most [`LONGEST_TOKEN`](super::LONGEST_TOKEN), that is kept under this number.
    pub(crate) fn long(slot: u16, generation: u16, length: usize) -> Self {
        let [a, b] = slot.to_le_bytes();
        let [c, d] = generation.to_le_bytes();
        let [e, f, g, h] = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
        Self { bytes: [a, b, c, d, e, f, g, h], len: LONG }
    }

    /// A token of so many bytes that nobody keeps.
    pub(crate) fn not_kept(length: usize) -> Self {
        Self::long(u16::MAX, u16::MAX, length)
    }

    /// Has it more than 8 bytes?
    #[inline]
    pub const fn is_long(&self) -> bool {
        self.len == LONG
    }

    /// Slot and generation of a long token.
    pub(crate) fn number(&self) -> Option<(u16, u16)> {
        let [a, b, c, d, ..] = self.bytes;
        self.is_long().then(|| (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])))
    }

    /// The token length field of a message that holds these [bytes](Self::as_bytes). That of a long token is for messages that
    /// stay within an endpoint.
    #[inline]
    pub(crate) const fn field(&self) -> u8 {
        self.len
    }

    /// The bytes, 0 to 8 of them; of a long token what stands for it.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.held()).unwrap_or_default()
    }

    /// Bytes that are held here.
    #[inline]
    pub(crate) const fn held(&self) -> usize {
        if self.is_long() { Self::MAX } else { self.len as usize }
    }

    /// The bytes, followed by zeros.
    #[inline]
    pub(crate) const fn padded(&self) -> [u8; Self::MAX] {
        self.bytes
    }

    /// The token without its last byte, and that byte; `None` if it has none.
    #[inline]
    pub(crate) fn split_last(self) -> Option<(Self, u8)> {
        if self.is_long() {
            return None;
        }
        let (last, rest) = self.as_bytes().split_last()?;
        Some((Self::new(rest)?, *last))
    }

    /// The token with one byte more; `None` if it has 8 already.
    pub(crate) fn followed_by(self, last: u8) -> Option<Self> {
        let mut token = self;
        *token.bytes.get_mut(usize::from(self.len))? = last;
        token.len = token.len.saturating_add(1);
        Some(token)
    }

    /// Number of bytes, more than 8 if it is long.
    #[inline]
    pub const fn len(&self) -> usize {
        if self.is_long() { self.long_len() } else { self.len as usize }
    }

    #[cold]
    const fn long_len(&self) -> usize {
        let [_, _, _, _, a, b, c, d] = self.bytes;
        u32::from_le_bytes([a, b, c, d]) as usize
    }

    /// Bytes that it takes in a message, those that extend its length included (RFC 8974 §2.1).
    #[inline]
    pub(crate) const fn encoded_len(&self) -> usize {
        let len = self.len();
        match len {
            0..=12 => len,
            13..=268 => len.saturating_add(1),
            _ => len.saturating_add(2),
        }
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

/// Hexadecimal, `-` for the empty token, and its length for a long one.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.len == 0 {
            return f.write_str("-");
        }
        if self.is_long() {
            return write!(f, "({} bytes)", self.len());
        }
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({self})")
    }
}

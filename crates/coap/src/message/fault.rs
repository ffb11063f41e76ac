use super::{Kind, MessageId};

/// Why a datagram is not a message, and what may be known of it all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} (byte {at})")]
pub struct ParseError {
    /// Offset of the first byte of the field at fault: 0 for version and token length, 1 for the code, 4 for the token,
    /// an option's first byte for whatever is wrong in that option, the marker for a missing payload. The datagram's
    /// length, if not one byte of a token is there.
    pub at: usize,
    /// What is wrong there.
    pub fault: Fault,
    /// Kind and message ID, if the four header bytes were there and of version 1.
    pub header: Option<(Kind, MessageId)>,
}

impl ParseError {
    /// The message ID to send in a reset, if RFC 7252 asks for one: a confirmable message that cannot be processed is
    /// rejected with a reset (§4.2); anything else, and any other version (§3), is silently ignored.
    #[inline]
    pub fn reset(&self) -> Option<MessageId> {
        match self.header {
            Some((Kind::Confirmable, id)) => Some(id),
            _ => None,
        }
    }
}

/// What RFC 7252 forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Fewer than the four header bytes (§3).
    #[error("shorter than the four bytes of a header")]
    ShortHeader,
    /// Not version 1: to be ignored silently (§3).
    #[error("version {0} instead of 1")]
    Version(u8),
    /// Token lengths 9 to 15 are reserved (§3); all but 15 have a meaning where longer tokens are taken (RFC 8974 §2.1).
    #[error("token length {0} is reserved")]
    TokenLength(u8),
    /// The token is longer than what is left.
    #[error("the token is cut short")]
    TokenTruncated,
    /// Code class 1, 6 or 7 (§4.2).
    #[error("code class {0} is reserved")]
    ReservedClass(u8),
    /// A code that this kind of message must not carry (§4.2, §4.3): a request in an acknowledgement, anything in a
    /// reset, nothing in a non-confirmable message.
    #[error("this kind of message must not carry this code")]
    UnsuitedCode,
    /// Code 0.00 with a token, options or a payload (§4.1).
    #[error("an empty message with a token, options or a payload")]
    NotEmpty,
    /// Option delta nibble 15 in a byte that is not the payload marker (§3.1).
    #[error("option delta 15 is reserved")]
    ReservedDelta,
    /// Option length nibble 15 (§3.1).
    #[error("option length 15 is reserved")]
    ReservedLength,
    /// The bytes that extend an option's delta or length are missing.
    #[error("the option's header is cut short")]
    OptionTruncated,
    /// The deltas add up to more than 65535, the largest option number (§3.1, §12.2).
    #[error("option number beyond 65535")]
    NumberOverflow,
    /// The option's value is longer than what is left.
    #[error("the option's value is cut short")]
    ValueTruncated,
    /// A payload marker with nothing after it (§3).
    #[error("a payload marker without payload")]
    PayloadMissing,
}

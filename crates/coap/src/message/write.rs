use alloc::vec::Vec;

use super::extended::{LONGEST_TOKEN, TokenLength, put_token};
use super::options::MARKER;
use super::{Code, HEADER, Kind, Message, MessageId, Token, Uint};

/// Largest datagram that UDP can carry, bytes: 65535 less its own header (RFC 768). Of this, IPv4 without options
/// leaves 65507. RFC 7252 §4.6 advises 1152.
pub const MAX_DATAGRAM: usize = 65_527;

/// Why something could not be written. Nothing was: the message is as it was before the refused call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Options go in ascending order of their numbers; the same number may be repeated (RFC 7252 §3.1).
    #[error("option {number} after option {after}: options go in ascending order")]
    Order {
        /// The option refused.
        number: u16,
        /// The option written before it.
        after: u16,
    },
    /// An option's value longer than the 65804 bytes that its header can tell (RFC 7252 §3.1).
    #[error("option {number} of {length} bytes: at most 65804 can be told")]
    TooLong {
        /// The option refused.
        number: u16,
        /// Length of its value in bytes.
        length: usize,
    },
    /// An option or a second payload after the payload.
    #[error("nothing can follow the payload")]
    AfterPayload,
    /// The message would be longer than it may be.
    #[error("{needed} bytes, but the message may have {limit}; shorten path and query, or the payload")]
    OverLimit {
        /// Length that the message would have, in bytes.
        needed: usize,
        /// Length that it may have, in bytes.
        limit: usize,
    },
    /// Code 0.00 with a token, options or a payload (RFC 7252 §4.1).
    #[error("an empty message has no token, options or payload")]
    NotEmpty,
    /// A reserved class, or a code that the kind of message must not carry (RFC 7252 §4.2, §4.3).
    #[error("{kind} must not carry {code}")]
    UnsuitedCode {
        /// Kind of the message.
        kind: Kind,
        /// Code of the message.
        code: Code,
    },
}

/// Appends one message to a buffer.
///
/// What [`finish`](Self::finish) accepts, [`Message::parse`](super::Message::parse) accepts. A writer that is dropped
/// without finishing takes back what it wrote, so that the buffer never ends in half a message.
#[derive(Debug)]
#[must_use = "a message is complete once it is finished"]
pub struct Writer<'b> {
    buffer: &'b mut Vec<u8>,
    /// Where in the buffer this message begins.
    start: usize,
    /// Most bytes that the message may have.
    limit: usize,
    kind: Kind,
    code: Code,
    /// Number of the last option.
    number: u16,
    has_payload: bool,
}

impl<'b> Writer<'b> {
    /// Begins a message of at most [`MAX_DATAGRAM`] bytes behind what the buffer holds.
    #[inline]
    pub fn start(buffer: &'b mut Vec<u8>, kind: Kind, code: Code, id: MessageId, token: Token) -> Self {
        let start = buffer.len();
        put_header(buffer, kind, code, id, token);
        Self { buffer, start, limit: MAX_DATAGRAM, kind, code, number: 0, has_payload: false }
    }

    /// The same with a token of any length up to [`LONGEST_TOKEN`](super::LONGEST_TOKEN) (RFC 8974); what is longer is cut.
    pub fn start_extended(buffer: &'b mut Vec<u8>, kind: Kind, code: Code, id: MessageId, token: &[u8]) -> Self {
        let start = buffer.len();
        let token = token.get(..LONGEST_TOKEN).unwrap_or(token);
        put_header(buffer, kind, code, id, Token::EMPTY);
        if let Some(first) = buffer.get_mut(start) {
            *first |= TokenLength::of(token.len()).field;
        }
        put_token(buffer, token);
        Self { buffer, start, limit: MAX_DATAGRAM, kind, code, number: 0, has_payload: false }
    }

    /// Appends an empty acknowledgement of the message with this ID (RFC 7252 §4.2).
    #[inline]
    pub fn acknowledgement(buffer: &'b mut Vec<u8>, id: MessageId) {
        put_header(buffer, Kind::Acknowledgement, Code::EMPTY, id, Token::EMPTY);
    }

    /// Appends an empty confirmable message with this ID, which is to be rejected (RFC 7252 §4.3).
    pub fn ping(buffer: &'b mut Vec<u8>, id: MessageId) {
        put_header(buffer, Kind::Confirmable, Code::EMPTY, id, Token::EMPTY);
    }

    /// Appends a reset for the message with this ID (RFC 7252 §4.2).
    #[inline]
    pub fn reset(buffer: &'b mut Vec<u8>, id: MessageId) {
        put_header(buffer, Kind::Reset, Code::EMPTY, id, Token::EMPTY);
    }

    /// Sets how long the message may become, in bytes from its first header byte.
    #[inline]
    pub fn within(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Adds an option.
    ///
    /// # Errors
    /// A smaller number than that of the option before, a value or a message that becomes too long, an option after the
    /// payload.
    #[inline]
    pub fn option(&mut self, number: u16, value: &[u8]) -> Result<&mut Self, WriteError> {
        self.put_option(number, value)?;
        Ok(self)
    }

    /// The same, where many are written.
    #[cfg_attr(feature = "many-peers", inline(always))]
    pub(crate) fn put_option(&mut self, number: u16, value: &[u8]) -> Result<(), WriteError> {
        if self.has_payload {
            return Err(WriteError::AfterPayload);
        }
        // Nearly all are short and near the one before: their header is one byte.
        if let Some(delta @ 0..=12) = number.checked_sub(self.number)
            && value.len() <= 12
        {
            self.check(value.len().saturating_add(1))?;
            self.buffer.push(((delta as u8) << 4) | value.len() as u8);
            match *value {
                [] => {}
                // A number, as most are: less work than to call for a copy.
                [byte] => self.buffer.push(byte),
                _ => self.buffer.extend_from_slice(value),
            }
            self.number = number;
            return Ok(());
        }
        self.far_option(number, value)
    }

    /// The same for one that may need a longer header.
    #[inline(never)]
    fn far_option(&mut self, number: u16, value: &[u8]) -> Result<(), WriteError> {
        let header = OptionHeader::new(self.number, number, value)?;
        self.check(header.size().saturating_add(value.len()))?;
        header.put(self.buffer);
        self.buffer.extend_from_slice(value);
        self.number = number;
        Ok(())
    }

    /// Adds an option whose value is an unsigned integer, in as few bytes as it takes (RFC 7252 §3.2).
    ///
    /// # Errors
    /// As [`option`](Self::option).
    #[inline]
    pub fn uint_option(&mut self, number: u16, value: u32) -> Result<&mut Self, WriteError> {
        self.option(number, &Uint::new(value))
    }

    /// Adds marker and payload; neither if the payload is empty.
    ///
    /// # Errors
    /// A second payload, or a message that becomes too long.
    #[inline]
    pub fn payload(&mut self, payload: &[u8]) -> Result<&mut Self, WriteError> {
        if self.has_payload {
            return Err(WriteError::AfterPayload);
        }
        if payload.is_empty() {
            return Ok(self);
        }
        self.check(payload.len().saturating_add(1))?;
        self.buffer.push(MARKER);
        self.buffer.extend_from_slice(payload);
        self.has_payload = true;
        Ok(self)
    }

    /// Ends the message. Returns its length in bytes.
    ///
    /// # Errors
    /// A code that does not suit the kind, an empty message that is not empty, a limit that not even header and token
    /// respect. The buffer is then as it was before the message was begun.
    #[inline]
    pub fn finish(mut self) -> Result<usize, WriteError> {
        if !self.code.suits(self.kind) {
            return Err(WriteError::UnsuitedCode { kind: self.kind, code: self.code });
        }
        let length = self.len();
        if self.code.is_empty() && length != HEADER {
            return Err(WriteError::NotEmpty);
        }
        self.check(0)?;
        // Nothing to take back any more.
        self.start = self.buffer.len();
        Ok(length)
    }

    /// Bytes of this message so far.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a message always has its header")]
    pub fn len(&self) -> usize {
        self.buffer.len().saturating_sub(self.start)
    }

    /// May the message have so many bytes more?
    #[inline]
    fn check(&self, more: usize) -> Result<(), WriteError> {
        let needed = self.len().saturating_add(more);
        if needed > self.limit { Err(WriteError::OverLimit { needed, limit: self.limit }) } else { Ok(()) }
    }
}

impl Drop for Writer<'_> {
    #[inline]
    fn drop(&mut self) {
        self.buffer.truncate(self.start);
    }
}

#[inline]
pub(super) fn put_header(buffer: &mut Vec<u8>, kind: Kind, code: Code, id: MessageId, token: Token) {
    let [id_high, id_low] = id.0.to_be_bytes();
    let begin = buffer.len();
    let [a, b, c, d, e, f, g, h] = token.padded();
    let first = 0x40 | ((kind as u8) << 4) | token.field();
    // A copy of fixed length and a cut: cheaper than one whose length is not known beforehand.
    buffer.extend_from_slice(&[first, code.to_byte(), id_high, id_low, a, b, c, d, e, f, g, h]);
    buffer.truncate(begin.saturating_add(HEADER).saturating_add(token.held()));
}

/// What stands before the value of an option (RFC 7252 §3.1).
#[derive(Clone, Copy)]
pub(crate) struct OptionHeader {
    delta: Extended,
    length: Extended,
}

impl OptionHeader {
    /// The header of this option behind the one with the number `after`, 0 if it is the first.
    #[inline]
    pub(crate) fn new(after: u16, number: u16, value: &[u8]) -> Result<Self, WriteError> {
        let delta = number.checked_sub(after).ok_or(WriteError::Order { number, after })?;
        let too_long = WriteError::TooLong { number, length: value.len() };
        let delta = Extended::of(usize::from(delta)).ok_or(too_long)?;
        let length = Extended::of(value.len()).ok_or(too_long)?;
        Ok(Self { delta, length })
    }

    /// Bytes that it takes.
    #[inline]
    pub(crate) const fn size(self) -> usize {
        self.delta.extra().saturating_add(self.length.extra()).saturating_add(1)
    }

    #[cfg_attr(feature = "many-peers", inline(always))]
    pub(crate) fn put(self, buffer: &mut Vec<u8>) {
        buffer.push((self.delta.nibble() << 4) | self.length.nibble());
        self.delta.put(buffer);
        self.length.put(buffer);
    }
}

/// A delta or length as RFC 7252 §3.1 writes it, in the one form that its size allows.
#[derive(Clone, Copy)]
enum Extended {
    /// 0 to 12: the nibble itself.
    Nibble(u8),
    /// 13 to 268: nibble 13 and the rest in one byte.
    Byte(u8),
    /// 269 to 65804: nibble 14 and the rest in two bytes.
    Word(u16),
}

impl Extended {
    #[inline]
    fn of(value: usize) -> Option<Self> {
        match u8::try_from(value) {
            Ok(small @ 0..=12) => Some(Self::Nibble(small)),
            _ => match u8::try_from(value.saturating_sub(13)) {
                Ok(rest) => Some(Self::Byte(rest)),
                Err(_) => u16::try_from(value.saturating_sub(269)).ok().map(Self::Word),
            },
        }
    }

    #[inline]
    const fn nibble(self) -> u8 {
        match self {
            Self::Nibble(value) => value,
            Self::Byte(_) => 13,
            Self::Word(_) => 14,
        }
    }

    /// Bytes that follow the option's first one for this.
    #[inline]
    const fn extra(self) -> usize {
        match self {
            Self::Nibble(_) => 0,
            Self::Byte(_) => 1,
            Self::Word(_) => 2,
        }
    }

    #[inline]
    fn put(self, buffer: &mut Vec<u8>) {
        match self {
            Self::Nibble(_) => {}
            Self::Byte(rest) => buffer.push(rest),
            Self::Word(rest) => buffer.extend_from_slice(&rest.to_be_bytes()),
        }
    }
}

impl Message<'_> {
    /// The message as bytes once more, with those of its options whose numbers are kept, and with this payload.
    ///
    /// # Errors
    ///
    /// As a [`Writer`] has them.
    pub fn rewritten(&self, keeps: impl Fn(u16) -> bool, payload: &[u8]) -> Result<Vec<u8>, WriteError> {
        let mut bytes = Vec::new();
        let mut writer = Writer::start(&mut bytes, self.kind, self.code, self.id, self.token);
        for option in self.options().filter(|option| keeps(option.number)) {
            writer.option(option.number, option.value)?;
        }
        writer.payload(payload)?;
        writer.finish()?;
        Ok(bytes)
    }
}

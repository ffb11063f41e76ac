use crate::message::{self, Code, Fault, Message, Opt, Options, Token, TokenLength, number, split_token};

/// A received message, borrowed from the stream's buffer and known to be well-formed (RFC 8323 §3.2).
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Request method, response code, signal or empty.
    pub code: Code,
    /// Token; of one of more than 8 bytes no more than its length.
    pub token: Token,
    token_bytes: &'a [u8],
    options: &'a [u8],
    payload: &'a [u8],
    /// The number of the last option, 0 if there is none.
    last: u16,
}

/// What the first bytes of a frame say about its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes in front of the code.
    pub(super) prefix: usize,
    pub(super) token_length: u8,
    /// Bytes of the whole frame.
    pub(super) total: u64,
}

impl Header {
    /// Reads the first bytes of a frame; `None` if there are not enough yet. Lengths need not be in their shortest
    /// form: the RFC gives no licence to refuse a longer one. Tokens may have more than 8 bytes if that is said.
    pub(super) fn read(bytes: &[u8], extended: bool) -> Result<Option<Self>, FrameFault> {
        let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
        let token_length = first & 0x0f;
        if usize::from(token_length) > Token::MAX && !extended {
            return Err(FrameFault::Content(Fault::TokenLength(token_length)));
        }
        let (extra, length) = match (first >> 4, rest) {
            (13, &[a, ..]) => (1_u8, u64::from(a).saturating_add(13)),
            (14, &[a, b, ..]) => (2, u64::from(u16::from_be_bytes([a, b])).saturating_add(269)),
            (15, &[a, b, c, d, ..]) => (4, u64::from(u32::from_be_bytes([a, b, c, d])).saturating_add(65_805)),
            (nibble @ 0..=12, _) => (0, u64::from(nibble)),
            _ => return Ok(None),
        };
        let prefix = usize::from(extra).saturating_add(1);
        let behind_code = bytes.get(prefix.saturating_add(1)..).unwrap_or_default();
        let Some(token) = TokenLength::read(token_length, behind_code).map_err(FrameFault::Content)? else {
            return Ok(None);
        };
        let token = token.saturating_add(TokenLength::extension_of(token_length));
        let total = length.saturating_add(token as u64).saturating_add(2).saturating_add(u64::from(extra));
        Ok(Some(Self { prefix, token_length, total }))
    }
}

impl<'a> Frame<'a> {
    /// Reads one frame that fills `bytes`.
    ///
    /// # Errors
    /// Whatever RFC 8323 or RFC 7252 §3 calls a message format error.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        Self::read(bytes, false)
    }

    /// The same of a frame whose token may have more than 8 bytes (RFC 8974 §2.1).
    ///
    /// # Errors
    /// As [`parse`](Self::parse), but only a token length of 15 is reserved.
    pub fn parse_extended(bytes: &'a [u8]) -> Result<Self, FrameError> {
        Self::read(bytes, true)
    }

    pub(super) fn read(bytes: &'a [u8], extended: bool) -> Result<Self, FrameError> {
        let header = Header::read(bytes, extended).map_err(|fault| FrameError { at: 0, fault })?;
        let cut = FrameError { at: bytes.len(), fault: FrameFault::Length };
        let header = header.filter(|header| header.total == bytes.len() as u64).ok_or(cut)?;
        let (&code, body) = bytes.get(header.prefix..).and_then(<[u8]>::split_first).ok_or(cut)?;
        let (code, at) = (Code::from_byte(code), header.prefix);
        if matches!(code.class(), 1 | 6) {
            return Err(FrameError { at, fault: FrameFault::Content(Fault::ReservedClass(code.class())) });
        }
        let (token_bytes, rest) = split_token(header.token_length, body).map_err(|_| cut)?;
        let token = Token::new(token_bytes).unwrap_or_else(|| Token::not_kept(token_bytes.len()));
        if code.is_empty() {
            // Whatever it holds is to be ignored (RFC 8323 §3.4), so it need not be well-formed.
            return Ok(Self { code, token, token_bytes, options: &[], payload: &[], last: 0 });
        }
        match message::split_body(rest) {
            Ok((options, payload, last)) => Ok(Self { code, token, token_bytes, options, payload, last }),
            Err((fault, left)) => {
                Err(FrameError { at: bytes.len().saturating_sub(left), fault: FrameFault::Content(fault) })
            }
        }
    }

    /// The same frame with another token.
    pub(super) const fn named(self, token: Token) -> Self {
        Self { token, ..self }
    }

    /// The bytes of the token, however many.
    #[must_use]
    pub const fn token_bytes(&self) -> &'a [u8] {
        self.token_bytes
    }

    /// All options, ascending.
    pub fn options(&self) -> Options<'a> {
        Options::over(self.options)
    }

    /// The value of the first option of this number.
    pub fn option(&self, number: u16) -> Option<&'a [u8]> {
        self.values(number).next()
    }

    /// The values of all options of this number, in the order of sending.
    pub fn values(&self, number: u16) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        self.options().filter(move |option| option.number == number).map(|option| option.value)
    }

    /// The segments of the path asked for (RFC 7252 §5.10.1). Not checked to be UTF-8.
    pub fn uri_path(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        self.values(number::URI_PATH)
    }

    /// An option's value as a number; `None` if it is not there or does not fit 32 bits.
    pub fn uint_option(&self, number: u16) -> Option<u32> {
        self.option(number).and_then(|value| Opt { number, value }.uint())
    }

    /// The same as a message that stands in a datagram has it: confirmable, and without a message ID.
    #[must_use]
    pub const fn message(&self) -> Message<'a> {
        let Self { code, token, options, payload, last, .. } = *self;
        Message::of_frame(code, token, (options, payload, last))
    }

    /// The payload, without its marker; empty if there is none.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Why bytes of a stream are not a frame. There is no way back into step: the connection must be aborted
/// (RFC 8323 §5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} (byte {at} of the frame)")]
pub struct FrameError {
    /// Offset within the frame.
    pub at: usize,
    /// What is wrong there.
    pub fault: FrameFault,
}

/// What RFC 8323 forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// What RFC 7252 §3 forbids of every message.
    #[error(transparent)]
    Content(Fault),
    /// The frame is longer or shorter than it says.
    #[error("the frame's length is not what its first bytes say")]
    Length,
    /// The frame announces more than this side said it takes (Max-Message-Size, RFC 8323 §5.3.1).
    #[error("a frame of {announced} bytes, but at most {limit} were agreed to")]
    OverLimit {
        /// Bytes announced.
        announced: u64,
        /// Bytes allowed.
        limit: u32,
    },
}

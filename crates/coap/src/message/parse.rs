use alloc::vec::Vec;

use super::extended::split_token;
use super::options::{self, MARKER};
use super::write::put_header;
use super::{Code, Fault, Kind, MessageId, Opt, Options, ParseError, Token, number};

/// Length of the fixed header, bytes (RFC 7252 §3).
pub const HEADER: usize = 4;

/// What all copies of a message share, whatever its sender's controller calls them in token or options: version, type, code and
/// message ID (RFC 7252 §3, §4.2). `None` if these bytes are no message of CoAP, as within DTLS.
#[must_use]
#[inline]
pub fn copies_share(datagram: &[u8]) -> Option<u32> {
    let &[first, code, high, low] = datagram.first_chunk()?;
    (first >> 6 == 1).then(|| u32::from_be_bytes([first >> 4, code, high, low]))
}

/// A received message, borrowed from its datagram and known to be well-formed.
///
/// Its code suits its kind ([`Code::suits`]), an empty message is empty, and no code class is reserved.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// How it takes part in the message layer.
    pub kind: Kind,
    /// Request method, response code or empty.
    pub code: Code,
    /// Message ID.
    pub id: MessageId,
    /// Token.
    pub token: Token,
    options: &'a [u8],
    payload: &'a [u8],
    /// The number of the last option, 0 if there is none.
    last: u16,
}

/// Where in its bytes a message has what, as far as that takes a walk to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of the options.
    options: u16,
    /// The number of the last option.
    last: u16,
}

impl<'a> Message<'a> {
    /// Reads one message that fills the whole datagram.
    ///
    /// # Errors
    /// Whatever RFC 7252 calls a message format error (§3, §3.1, §4.1), a reserved code class, or a code that the kind
    /// of message must not carry (§4.2, §4.3). [`ParseError::reset`] says how to answer it.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Self::read(bytes)
    }

    /// The same of a message whose token may have more than 8 bytes (RFC 8974 §2.1), with the token. [`Self::token`] has no more
    /// than the length of such a one.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), but only a token length of 15 is reserved.
    pub fn parse_extended(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), ParseError> {
        let parsed = Self::read(bytes);
        let (field, body) = (bytes.first().map_or(0, |first| first & 0x0f), bytes.get(HEADER..).unwrap_or_default());
        let error = match parsed {
            Ok(message) => return Ok((message, body.get(..usize::from(field)).unwrap_or_default())),
            Err(error) if !matches!(error.fault, Fault::TokenLength(9..=14)) => return Err(error),
            Err(error) => error,
        };
        let fault = |at, fault| ParseError { at, fault, ..error };
        let (Some((kind, id)), Some(code)) = (error.header, bytes.get(1).map(|code| Code::from_byte(*code))) else {
            return Err(error);
        };
        if !code.suits(kind) {
            let reason = if code.is_reserved() { Fault::ReservedClass(code.class()) } else { Fault::UnsuitedCode };
            return Err(fault(1, reason));
        }
        if code.is_empty() {
            return Err(fault(0, Fault::NotEmpty));
        }
        let (token, rest) = split_token(field, body).map_err(|reason| fault(HEADER, reason))?;
        let (options, payload, last) =
            split_body(rest).map_err(|(reason, left)| fault(bytes.len().saturating_sub(left), reason))?;
        let message = Self { kind, code, id, token: Token::not_kept(token.len()), options, payload, last };
        Ok((message, token))
    }

    /// The same where it is called most.
    #[cfg_attr(feature = "many-peers", inline(always))]
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let Some((&[first, code, id_high, id_low], body)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(ParseError { at: 0, fault: Fault::ShortHeader, header: None });
        };
        let version = first >> 6;
        if version != 1 {
            return Err(ParseError { at: 0, fault: Fault::Version(version), header: None });
        }
        let kind = Kind::of_first_byte(first);
        let code = Code::from_byte(code);
        let id = MessageId(u16::from_be_bytes([id_high, id_low]));
        let fault = |at, fault| ParseError { at, fault, header: Some((kind, id)) };

        let token_length = first & 0x0f;
        if usize::from(token_length) > Token::MAX {
            return Err(fault(0, Fault::TokenLength(token_length)));
        }
        if !code.suits(kind) {
            let reason = if code.is_reserved() { Fault::ReservedClass(code.class()) } else { Fault::UnsuitedCode };
            return Err(fault(1, reason));
        }
        if code.is_empty() && token_length != 0 {
            return Err(fault(0, Fault::NotEmpty));
        }
        if code.is_empty() && !body.is_empty() {
            return Err(fault(HEADER, Fault::NotEmpty));
        }
        let Some((token, rest)) = Token::take(body, token_length) else {
            return Err(fault(HEADER, Fault::TokenTruncated));
        };
        match split_body(rest) {
            Ok((options, payload, last)) => Ok(Self { kind, code, id, token, options, payload, last }),
            Err((reason, left)) => Err(fault(bytes.len().saturating_sub(left), reason)),
        }
    }

    /// A message that came in a frame of a stream (RFC 8323 §3.2), which has neither kind nor ID.
    pub(crate) const fn of_frame(code: Code, token: Token, (options, payload, last): Body<'a>) -> Self {
        Self { kind: Kind::Confirmable, code, id: MessageId(0), token, options, payload, last }
    }

    /// The same message with another token.
    pub(crate) const fn named(self, token: Token) -> Self {
        Self { token, ..self }
    }

    /// Its bytes with another token, to be read [again](Self::again).
    pub(crate) fn renamed(&self, token: Token) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(&mut bytes, self.kind, self.code, self.id, token);
        bytes.extend_from_slice(self.options);
        if !self.payload.is_empty() {
            bytes.push(MARKER);
            bytes.extend_from_slice(self.payload);
        }
        bytes
    }

    /// What is to be kept of a message to read it [again](Self::again).
    #[inline]
    pub(crate) const fn shape(&self) -> Shape {
        Shape { options: self.options.len() as u16, last: self.last }
    }

    /// The message of this shape that these bytes were found to be before: without another walk through its options.
    #[inline]
    pub(crate) fn again(bytes: &'a [u8], Shape { options, last }: Shape) -> Option<Self> {
        let (&[first, code, id_high, id_low], body) = bytes.split_first_chunk::<HEADER>()?;
        let (token, rest) = Token::again(body, first & 0x0f)?;
        let (options, rest) = rest.split_at_checked(usize::from(options))?;
        let payload = rest.split_first().map_or(rest, |(_marker, payload)| payload);
        let id = MessageId(u16::from_be_bytes([id_high, id_low]));
        Some(Self { kind: Kind::of_first_byte(first), code: Code::from_byte(code), id, token, options, payload, last })
    }

    /// Bytes of the whole message.
    #[inline]
    pub(crate) const fn length(&self) -> usize {
        let payload = if self.payload.is_empty() { 0 } else { self.payload.len().saturating_add(1) };
        HEADER.saturating_add(self.token.encoded_len()).saturating_add(self.options.len()).saturating_add(payload)
    }

    /// The number of the last option, which is the highest; 0 if there is none.
    #[inline]
    pub(crate) const fn last_option(&self) -> u16 {
        self.last
    }

    /// All options, ascending.
    #[inline]
    pub fn options(&self) -> Options<'a> {
        Options::over(self.options)
    }

    /// All of them as they stand in the message, to be kept and [walked through](Options::over) once more.
    #[must_use]
    #[inline]
    pub const fn option_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// The value of the first option of this number.
    #[inline]
    pub fn option(&self, number: u16) -> Option<&'a [u8]> {
        if number > self.last {
            return None;
        }
        let found = self.options().find(|option| option.number >= number)?;
        (found.number == number).then_some(found.value)
    }

    /// The values of all options of this number, in the order of sending.
    #[inline]
    pub fn values(&self, number: u16) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        self.options()
            .skip_while(move |option| option.number < number)
            .take_while(move |option| option.number == number)
            .map(|option| option.value)
    }

    /// The segments of the path asked for, without slashes (RFC 7252 §5.10.1). Not checked to be UTF-8.
    #[inline]
    pub fn uri_path(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        self.values(number::URI_PATH)
    }

    /// The format of the payload (RFC 7252 §5.10.3). `None` if not given, or longer than its two bytes, which makes it
    /// an unrecognized elective option (§5.4.3).
    #[inline]
    pub fn content_format(&self) -> Option<u16> {
        let value = self.option(number::CONTENT_FORMAT).filter(|value| value.len() <= 2)?;
        Opt { number: number::CONTENT_FORMAT, value }.uint().and_then(|format| u16::try_from(format).ok())
    }

    /// The payload, without its marker; empty if there is none.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The bytes of the options and the payload, and the number of the last option.
pub(crate) type Body<'a> = (&'a [u8], &'a [u8], u16);

/// Walks through everything after the token. Returns what it consists of, or what is wrong and
/// how many bytes are left from there.
#[cfg_attr(feature = "many-peers", inline(always))]
pub(crate) fn split_body(bytes: &[u8]) -> Result<Body<'_>, (Fault, usize)> {
    let mut number = 0;
    let mut rest = bytes;
    while let Some((&head, after)) = rest.split_first() {
        if head == MARKER {
            if after.is_empty() {
                return Err((Fault::PayloadMissing, rest.len()));
            }
            let length = bytes.len().saturating_sub(rest.len());
            return Ok((bytes.get(..length).unwrap_or_default(), after, number));
        }
        match options::split(head, after, number) {
            Ok((reached, _, after)) => {
                number = reached;
                rest = after;
            }
            Err(fault) => return Err((fault, rest.len())),
        }
    }
    Ok((bytes, &[], number))
}

use alloc::{boxed::Box, vec::Vec};

use super::{
    Context, OscoreOption, PartialIv, ProtectError,
    context::{Direction, Id},
    protection,
};
use crate::message::{
    Code, Kind, MARKER, Message, MessageId, Opt, OptionHeader, Token, Uint, WriteError, Writer, number,
};
use crate::parts;

/// A protected request that was sent: what its responses are bound to (RFC 8613 §7.1).
#[derive(Debug, PartialEq, Eq)]
pub struct SentRequest {
    pub(super) partial_iv: PartialIv,
    /// It registers for notifications.
    pub(super) observes: bool,
    /// Responses that were taken.
    pub(super) taken: u32,
    /// The Notification Number (§4.1.3.5.2): of the newest of them, if it had one.
    pub(super) newest: Option<PartialIv>,
    /// How often keys were replaced before.
    pub(super) generation: u32,
    /// The ID context then, where keys are replaced.
    pub(super) under: Option<Box<[u8]>>,
    /// By which of several contexts.
    pub(super) by: u32,
}

/// A protected request that was received: what its responses are bound to (RFC 8613 §7.1).
#[derive(Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// Of its sender.
    pub(super) kid: Id,
    pub(super) partial_iv: PartialIv,
    /// Nothing was encrypted with its nonce, neither now nor before a restart.
    pub(super) nonce_is_free: bool,
    /// How often keys were replaced before.
    pub(super) generation: u32,
    /// The ID context under which it was verified, if it begins a derivation anew.
    pub(super) first: Option<Box<[u8]>>,
}

impl SentRequest {
    /// By which of several contexts it was protected, as who has them [says](Self::set_by); 0 if nobody does.
    #[must_use]
    pub const fn by(&self) -> u32 {
        self.by
    }

    /// Says that, so that the same context takes its responses.
    pub const fn set_by(&mut self, context: u32) {
        self.by = context;
    }

    /// It registers for notifications, and no response has ended that.
    pub(super) const fn observes(&self) -> bool {
        self.observes
    }

    /// A response to it was taken.
    pub(super) const fn was_answered(&self) -> bool {
        self.taken > 0
    }

    /// It was protected later.
    pub(super) fn is_after(&self, other: &Self) -> bool {
        (self.generation, self.partial_iv) > (other.generation, other.partial_iv)
    }
}

impl ReceivedRequest {
    /// The ID of its sender: the recipient ID of its context.
    #[must_use]
    pub fn kid(&self) -> &[u8] {
        self.kid.as_bytes()
    }

    /// What binds further responses to it after a restart.
    #[cfg(all(feature = "server", feature = "observe"))]
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let kid = self.kid.as_bytes();
        [&[kid.len() as u8], kid, self.partial_iv.as_bytes()].concat()
    }

    /// What [`to_bytes`](Self::to_bytes) wrote. Its nonce was used.
    #[cfg(all(feature = "server", feature = "observe"))]
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first()?;
        let (kid, partial_iv) = rest.split_at_checked(usize::from(*length))?;
        let (kid, partial_iv) = (Id::new(kid)?, PartialIv::read(partial_iv)?);
        Some(Self { kid, partial_iv, nonce_is_free: false, generation: 0, first: None })
    }
}

impl Context {
    /// Appends a request, protected (RFC 8613 §8.1). Every call gives another message: what retransmits keeps the bytes.
    ///
    /// # Errors
    /// What cannot be protected, and a lack of sequence numbers. Nothing is appended then.
    pub fn protect_request(&mut self, request: &Message<'_>, into: &mut Vec<u8>) -> Result<SentRequest, ProtectError> {
        if !request.code.is_request() {
            return Err(ProtectError::UnsuitedCode(request.code));
        }
        check(request)?;
        let partial_iv = self.numbers.take()?;
        let kid = self.sender.id;
        let kid_context = self.named_id_context();
        let option = OscoreOption {
            partial_iv: Some(partial_iv),
            kid_context: kid_context.as_deref(),
            kid: Some(kid.as_bytes()),
        };
        let observe = request.option(number::OBSERVE);
        let outer = Outer {
            code: if observe.is_some() { Code::FETCH } else { Code::POST },
            option: option.encode().unwrap_or_default(),
        };
        self.seal(request, &outer, None, (kid, partial_iv), (kid, partial_iv), into)?;
        let observes = observe.is_some_and(|value| Uint::read(value) == Some(0));
        let under = self.id_context().filter(|_| parts::OSCORE_ANEW && self.anew.is_some()).map(Into::into);
        Ok(SentRequest { partial_iv, observes, taken: 0, newest: None, generation: self.generation(), under, by: 0 })
    }

    /// Appends a response to a request of this context, protected (RFC 8613 §8.3). The first takes the nonce of the request, every
    /// further one a sequence number.
    ///
    /// # Errors
    /// What cannot be protected, and a lack of sequence numbers. Nothing is appended then.
    pub fn protect_response(
        &mut self,
        request: &mut ReceivedRequest,
        response: &Message<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError> {
        // The nonce of the request may be that of another one under these keys.
        if request.generation != self.generation() {
            return Err(ProtectError::Replaced);
        }
        self.respond(request, response, None, into)
    }

    /// Appends a response to a request, protected, that names this ID context.
    pub(super) fn respond(
        &mut self,
        request: &mut ReceivedRequest,
        response: &Message<'_>,
        kid_context: Option<&[u8]>,
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError> {
        if !response.code.is_response() {
            return Err(ProtectError::UnsuitedCode(response.code));
        }
        check(response)?;
        let of_request = (self.recipient.id, request.partial_iv);
        let (own, nonce) = if core::mem::take(&mut request.nonce_is_free) {
            (None, of_request)
        } else {
            let own = self.numbers.take()?;
            (Some(own), (self.sender.id, own))
        };
        let option = OscoreOption { partial_iv: own, kid_context, kid: None };
        let is_notification = response.option(number::OBSERVE).is_some();
        let outer = Outer {
            code: if is_notification { Code::CONTENT } else { Code::CHANGED },
            option: option.encode().unwrap_or_default(),
        };
        // The order of notifications is that of their sequence numbers, so the inner Observe says nothing (§4.1.3.5.2).
        self.seal(response, &outer, Some(&[]), nonce, of_request, into)
    }

    /// Appends the answer to a request that [may be a replay](super::Refusal::Unsure): a protected 4.01 with an Echo option, whose
    /// value is the sequence number of the answer itself (RFC 8613 Appendix B.1.2, RFC 9175 Appendix A). To one that begins a
    /// derivation anew, 4.01 and the server's nonce (Appendix B.2).
    ///
    /// # Errors
    /// A kind that carries no response, and a lack of sequence numbers. Nothing is appended then.
    pub fn challenge(
        &mut self,
        request: &mut ReceivedRequest,
        kind: Kind,
        id: MessageId,
        token: Token,
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError> {
        if parts::OSCORE_ANEW
            && let Some(first) = request.first.take()
        {
            return self.give(request, &first, (kind, id, token), into);
        }
        request.nonce_is_free = false;
        let echo = PartialIv::new(self.numbers.next()).ok_or(ProtectError::Exhausted)?;
        let mut plain = Vec::new();
        let mut writer = Writer::start(&mut plain, kind, Code::UNAUTHORIZED, id, token);
        writer.option(number::ECHO, echo.as_bytes())?;
        writer.finish()?;
        let message = Message::parse(&plain).map_err(|_| ProtectError::UnsuitedCode(Code::UNAUTHORIZED))?;
        self.protect_response(request, &message, into)
    }

    /// Encrypts code, inner options and payload, and writes them behind header and outer options (RFC 8613 §4, §5.3). The inner
    /// Observe is `observe` if that is given.
    fn seal(
        &self,
        message: &Message<'_>,
        outer: &Outer,
        observe: Option<&[u8]>,
        (generated_by, partial_iv): (Id, PartialIv),
        (request_kid, request_piv): (Id, PartialIv),
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError> {
        let too_long = ProtectError::Message(WriteError::OverLimit {
            needed: message.length().saturating_add(self.algorithm.tag_length()),
            limit: crate::message::MAX_DATAGRAM,
        });
        let mut sealed = Vec::with_capacity(message.length().saturating_add(self.algorithm.tag_length()));
        sealed.push(message.code.to_byte());
        let mut after = 0;
        for option in message.options().filter(|option| protection(option.number).is_inner) {
            let value = observe.filter(|_| option.number == number::OBSERVE).unwrap_or(option.value);
            OptionHeader::new(after, option.number, value)?.put(&mut sealed);
            sealed.extend_from_slice(value);
            after = option.number;
        }
        if !message.payload().is_empty() {
            sealed.push(MARKER);
            sealed.extend_from_slice(message.payload());
        }
        let Direction { key, .. } = &self.sender;
        let nonce = self.nonce(&generated_by, partial_iv);
        let aad = self.aad(&request_kid, request_piv);
        self.algorithm.encrypt(key, &nonce, &aad, &mut sealed).ok_or(too_long)?;

        let mut writer = Writer::start(into, message.kind, outer.code, message.id, message.token);
        let shown = message.options().filter(is_shown);
        let mut shown = shown.peekable();
        while let Some(option) = shown.next_if(|option| option.number < number::OSCORE) {
            writer.option(option.number, option.value)?;
        }
        writer.option(number::OSCORE, &outer.option)?;
        for option in shown {
            writer.option(option.number, option.value)?;
        }
        writer.payload(&sealed)?;
        writer.finish()?;
        Ok(())
    }
}

/// What of a protected message is not protected, beside the header.
struct Outer {
    code: Code,
    option: Vec<u8>,
}

/// An option of the message that stands in the open. Of those that may stand both inside and outside Observe does, for proxies, and
/// No-Response if no response at all is wanted (§4.1.3.6), so that nobody on the way, nor the layer below, waits for one.
fn is_shown(option: &Opt<'_>) -> bool {
    const NONE_WANTED: &[u8] = &[26];
    match option.number {
        number::OBSERVE => true,
        number::NO_RESPONSE => option.value == NONE_WANTED,
        number => !protection(number).is_inner,
    }
}

fn check(message: &Message<'_>) -> Result<(), ProtectError> {
    if message.option(number::OSCORE).is_some() {
        return Err(ProtectError::Nested);
    }
    if message.option(number::PROXY_URI).is_some() {
        return Err(ProtectError::ProxyUri);
    }
    Ok(())
}

//! An endpoint all of whose messages are protected (RFC 8613): before they are handed to the message layer, which retransmits the
//! bytes that it was given, and after it has taken them in.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use super::{
    Arc, Endpoint, ExchangeId, Outgoing, Refused, RequestId, Setup, beside::Beside, further::Beyond, queue::Entry,
    queue::What,
};
use crate::layer::MessageLayer;
use crate::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use crate::oscore::{ProtectError, Protector, ReceivedRequest, Refusal, ResponseFault, SentRequest};
use crate::transfer::{AskFailure, Host};

/// What is known of requests under way.
#[derive(Debug)]
pub(in crate::endpoint) struct Protection {
    protector: Arc<dyn Protector>,
    sent: Beside<SentRequest>,
    received: Beside<ReceivedRequest>,
    /// The message of the output that stands, as its sender wrote it.
    plain: Option<Vec<u8>>,
    /// Answers to requests that must not be processed.
    refusals: VecDeque<(RequestId, Vec<u8>)>,
}

impl Protection {
    pub(super) fn new(protector: &Arc<dyn Protector>) -> Box<Self> {
        Box::new(Self {
            protector: Arc::clone(protector),
            sent: Beside::new(),
            received: Beside::new(),
            plain: None,
            refusals: VecDeque::new(),
        })
    }

    pub(super) fn memory(&self) -> usize {
        let refusals = self.refusals.iter().map(|(_, answer)| answer.capacity()).fold(0_usize, usize::saturating_add);
        size_of::<Self>()
            .saturating_add(self.sent.memory())
            .saturating_add(self.received.memory())
            .saturating_add(self.plain.as_ref().map_or(0, Vec::capacity))
            .saturating_add(self.refusals.capacity().saturating_mul(size_of::<(RequestId, Vec<u8>)>()))
            .saturating_add(refusals)
    }
}

/// What a message that came in is to the layer above.
enum Taken {
    /// To be looked at.
    Message,
    /// A request that was refused; the answer waits.
    Refused,
    /// The response to this request, after so many copies of it, which must not be looked at.
    Fault(ExchangeId, ResponseFault, u8),
}

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// From now on all requests and responses are protected, and requests that are not are refused. What this endpoint is asked to send
    /// by itself must be protected already: a [`Host`] above it does that. There are no observations, groups and
    /// bursts then. To be said before anything is sent or comes in.
    #[must_use]
    pub fn protected_by(mut self, protector: impl Protector + 'static) -> Self {
        let protector: Arc<dyn Protector> = Arc::new(protector);
        self.beyond_mut().protection = Some(Protection::new(&protector));
        self.setup = Arc::new(Setup { protector: Some(protector), ..(*self.setup).clone() });
        self
    }

    /// What an endpoint of this kind has from the beginning.
    pub(super) fn beyond_at_first(setup: &Setup<A>) -> Option<Box<Beyond<A>>> {
        let protector = setup.protector.as_ref()?;
        let mut beyond = Box::new(Beyond::new());
        beyond.protection = Some(Protection::new(protector));
        Some(beyond)
    }

    pub(super) fn is_protected(&self) -> bool {
        self.setup.protector.is_some()
    }

    /// Nothing leaves in the clear but errors of this layer, where all is to be protected.
    pub(super) fn check_protection(&self, message: &Outgoing<'_>) -> Result<(), Refused> {
        let is_plain = message.options.iter().all(|(number, _)| *number != number::OSCORE);
        let must_be_protected = message.code.is_request() || message.code.is_success();
        if self.is_protected() && is_plain && must_be_protected {
            return Err(Refused::Protection(ProtectError::Plain));
        }
        Ok(())
    }

    /// Sends a request, protected.
    pub(super) fn send_protected(
        &mut self,
        request: &Outgoing<'_>,
        send: impl FnOnce(&mut Self, &Outgoing<'_>) -> Result<ExchangeId, Refused>,
    ) -> Result<ExchangeId, Refused> {
        let Some(protection) = self.beyond.as_deref_mut().and_then(Beyond::protection_mut) else {
            return send(self, request);
        };
        let (plain, mut protected) = (written(request)?, Vec::new());
        let sent = protection.protector.protect_request(&parsed(&plain)?, &mut protected)?;
        let exchange = with(&protected, request, |protected| send(self, protected))?;
        if let Some(protection) = self.beyond.as_deref_mut().and_then(Beyond::protection_mut) {
            protection.sent.set(exchange, sent);
        }
        Ok(exchange)
    }

    /// Answers a request, protected if that was.
    pub(super) fn answer_protected(
        &mut self,
        now: Instant,
        to: RequestId,
        response: &Outgoing<'_>,
    ) -> Result<(), Refused> {
        let Some(protection) = self.beyond.as_deref_mut().and_then(Beyond::protection_mut) else {
            return self.respond(now, to, response);
        };
        let Some(mut received) = protection.received.take(to) else { return self.respond(now, to, response) };
        let mut protected = Vec::new();
        let done = written(response).and_then(|plain| {
            Ok(protection.protector.protect_response(&mut received, &parsed(&plain)?, &mut protected)?)
        });
        let answered = done.and_then(|()| with(&protected, response, |protected| self.respond(now, to, protected)));
        // It can be answered otherwise.
        if answered.is_err_and(|why| why.is_of_message())
            && let Some(protection) = self.beyond.as_deref_mut().and_then(Beyond::protection_mut)
        {
            protection.received.set(to, received);
        }
        answered
    }

    /// A request gets no answer.
    pub(super) fn forget_protected(&mut self, request: RequestId) {
        if let Some(protection) = self.beyond.as_deref_mut().and_then(Beyond::protection_mut) {
            protection.received.take(request);
        }
    }

    /// Nothing is shown any more.
    pub(super) fn hide_plain(&mut self) {
        if let Some(protection) = self.beyond.as_deref_mut().and_then(Beyond::protection_mut) {
            protection.plain = None;
        }
    }

    /// Takes the protection off a message that came in for a host. False if there is nothing in it for the host.
    pub(super) fn is_for_host(host: &mut Host<Self>, entry: &Entry<A>) -> bool {
        match host.layer.unprotect(entry) {
            Taken::Message => return true,
            Taken::Refused => host.answer_refused(),
            Taken::Fault(exchange, fault, copies) => {
                host.request_failed(exchange, AskFailure::Protection(fault), copies);
            }
        }
        false
    }

    /// Bytes held for it.
    pub(super) fn memory_of_protection(&self) -> usize {
        self.beyond.as_deref().and_then(Beyond::protection).map_or(0, Protection::memory)
    }

    fn unprotect(&mut self, entry: &Entry<A>) -> Taken {
        let Some(protection) = self.beyond.as_deref_mut().and_then(Beyond::protection_mut) else {
            return Taken::Message;
        };
        let Some(message) = self.queue.message_of(entry) else { return Taken::Message };
        let mut plain = Vec::new();
        match entry.what {
            What::Request { id } => {
                let taken = match message.token.len() <= Token::MAX {
                    true => protection.protector.unprotect_request(&message, &mut plain),
                    false => Err(Refusal::Malformed),
                };
                match taken {
                    Ok(received) => {
                        protection.received.set(id, received);
                        protection.plain = without_observe(&plain).or(Some(plain));
                        Taken::Message
                    }
                    Err(refusal) => {
                        let answer = refused(&*protection.protector, refusal);
                        protection.refusals.push_back((id, answer.unwrap_or_default()));
                        Taken::Refused
                    }
                }
            }
            What::Response { exchange, copies, .. } => {
                let Some(mut sent) = protection.sent.take(exchange) else { return Taken::Message };
                match protection.protector.unprotect_response(&mut sent, &message, &mut plain) {
                    Ok(()) => {
                        protection.plain = Some(plain);
                        Taken::Message
                    }
                    Err(fault) => Taken::Fault(exchange, fault, copies),
                }
            }
            What::Failed { exchange, .. } => {
                protection.sent.take(exchange);
                Taken::Message
            }
            _ => Taken::Message,
        }
    }

    /// Answers the requests that were refused.
    pub(super) fn answer_refusals(&mut self, now: Instant) {
        while let Some((id, answer)) = self
            .beyond
            .as_deref_mut()
            .and_then(Beyond::protection_mut)
            .and_then(|protection| protection.refusals.pop_front())
        {
            let kind = self.kind_of_answer(id);
            let response = Outgoing { kind, ..Outgoing::confirmable(Code::UNAUTHORIZED, &[]) };
            if with(&answer, &response, |response| self.respond(now, id, response)).is_err() {
                self.drop_request(now, id);
            }
        }
    }

    /// The message of an output, as its sender wrote it.
    pub(super) fn plain_message(&self, entry: &Entry<A>) -> Option<Message<'_>> {
        let plain =
            self.beyond.as_deref().and_then(Beyond::protection).and_then(|protection| protection.plain.as_deref());
        plain.map_or_else(|| self.message(entry), |plain| Message::parse(plain).ok())
    }
}

/// The answer to a request that is refused.
fn refused(protector: &dyn Protector, refusal: Refusal) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    let (kind, id, token) = (Kind::NonConfirmable, MessageId(0), Token::EMPTY);
    match refusal {
        Refusal::Unsure(mut request) => protector.challenge(&mut request, kind, id, token, &mut answer).ok()?,
        refusal => refusal.write(kind, id, token, &mut answer).map(|_| ()).ok()?,
    }
    Some(answer)
}

/// The message as bytes, with neither message ID nor token.
fn written(message: &Outgoing<'_>) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, Kind::NonConfirmable, message.code, MessageId(0), Token::EMPTY);
    for (number, value) in message.options {
        writer.option(*number, value)?;
    }
    writer.payload(message.payload)?;
    writer.finish()?;
    Ok(bytes)
}

fn parsed(bytes: &[u8]) -> Result<Message<'_>, Refused> {
    Message::parse(bytes).map_err(|_| Refused::Code(Code::EMPTY))
}

/// Hands over code, options and payload of these bytes, and the rest of the message that they protect.
fn with<T>(
    bytes: &[u8],
    like: &Outgoing<'_>,
    send: impl FnOnce(&Outgoing<'_>) -> Result<T, Refused>,
) -> Result<T, Refused> {
    let message = parsed(bytes)?;
    let options: Vec<_> = message.options().map(|option| (option.number, option.value)).collect();
    send(&Outgoing { code: message.code, options: &options, payload: message.payload(), ..*like })
}

/// The request without its Observe option, if it has one: it is answered once (RFC 7641 §2).
fn without_observe(plain: &[u8]) -> Option<Vec<u8>> {
    let message = Message::parse(plain).ok()?;
    message.option(number::OBSERVE)?;
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, message.kind, message.code, message.id, message.token);
    for option in message.options().filter(|option| option.number != number::OBSERVE) {
        writer.option(option.number, option.value).ok()?;
    }
    writer.payload(message.payload()).ok()?;
    writer.finish().ok()?;
    Some(bytes)
}

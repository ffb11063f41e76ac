//! A connection as what carries the messages of a stack.

use alloc::vec::Vec;
use core::hash::Hash;

use millpond_control::Instant;

use super::{
    super::{Closing, Settings, StreamRefused},
    Connection,
};
use crate::{
    ExchangeId, Outgoing, RequestId,
    layer::{MessageLayer, Reason, RequestMessage, Room},
    message::{Code, MAX_DATAGRAM, Message, Token, WriteError},
    output::{EndpointOutput, Entry, Step},
    protection::{Protection, Taken},
    quota::Source,
};

/// Bytes of a message that can be protected, with those of its code, its tag and the longest OSCORE option.
const LONGEST_PROTECTED: usize = MAX_DATAGRAM - 300;

impl MessageLayer for Connection {
    const IS_RELIABLE: bool = true;

    type Peer = ();
    type Closing = Closing;
    type Refused = StreamRefused;

    /// Nothing here asks for the time but pings and releases, and these are told it.
    fn advance(&mut self, _now: Instant) {}

    fn request(
        &mut self,
        now: Instant,
        (): (),
        request: &Outgoing<'_>,
        _place: RequestMessage,
    ) -> Result<ExchangeId, StreamRefused> {
        self.request_protected(now, request)
    }

    fn cancel(&mut self, _now: Instant, exchange: ExchangeId) {
        self.forget_protected(exchange);
        Self::cancel(self, exchange);
    }

    fn awaits_response(&self, exchange: ExchangeId) -> bool {
        self.outgoing.get(exchange).is_some()
    }

    fn token_of(&self, exchange: ExchangeId) -> Option<Token> {
        self.outgoing.get(exchange).map(|request| request.token)
    }

    fn respond(&mut self, now: Instant, to: RequestId, response: &Outgoing<'_>) -> Result<(), StreamRefused> {
        self.respond_protected(now, to, response)
    }

    /// There is no reset: it is answered with 4.02, as one with an option that nobody understands.
    fn reject(&mut self, _now: Instant, request: RequestId) -> Result<(), StreamRefused> {
        self.answer_plainly(request, Code::BAD_OPTION)
    }

    fn suppress_response(&mut self, _now: Instant, request: RequestId) -> Result<(), StreamRefused> {
        self.incoming.get(request).ok_or(StreamRefused::UnknownRequest)?;
        self.was_answered_protected(request, false);
        self.incoming.answered(request, false);
        self.after_answer();
        Ok(())
    }

    /// The client learns that there is no room for it.
    fn drop_request(&mut self, _now: Instant, request: RequestId) {
        let _gone = self.answer_plainly(request, Code::SERVICE_UNAVAILABLE);
    }

    fn awaits_answer(&self, request: RequestId) -> bool {
        self.incoming.get(request).is_some()
    }

    /// It has left, and there is no other end that could be reported.
    fn notify(
        &mut self,
        now: Instant,
        (): (),
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<Option<ExchangeId>, StreamRefused> {
        self.notify_protected(now, token, message).map(|()| None)
    }

    fn hold_token(&mut self, (): (), token: Token, is_held: bool) {
        self.observes_protected(token, is_held);
    }

    fn end_observation(&mut self, _now: Instant, (): (), token: Token, code: Code) {
        if let Some(request) = self.incoming.observing(token) {
            // It fails only where the connection has ended, and then nobody waits for it.
            let _ended = self.answer_plainly(request, code);
        }
    }

    fn step(&mut self, now: Instant) -> Step<Entry<()>, Closing> {
        if let Some(protection) = &mut self.protection {
            protection.next();
        }
        self.next(now)
    }

    fn unprotect(&mut self, entry: &Entry<()>, whole: Option<&Message<'_>>) -> Taken {
        Self::unprotect(self, entry, whole)
    }

    fn protection(&self) -> Option<&(dyn Protection<()> + 'static)> {
        self.protection.as_deref()
    }

    fn protection_mut(&mut self) -> Option<&mut (dyn Protection<()> + 'static)> {
        self.protection.as_deref_mut()
    }

    fn request_as_written(
        &mut self,
        now: Instant,
        (): (),
        request: &Outgoing<'_>,
    ) -> Result<ExchangeId, StreamRefused> {
        Self::request(self, now, request)
    }

    fn observes(&self, (): (), token: Token) -> bool {
        self.incoming.observing(token).is_some()
    }

    fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    fn establish(&mut self, request: &Entry<()>, from: Source) -> Vec<u8> {
        let Some(mut protection) = self.protection.take() else { return Vec::new() };
        let answer = self.frame_message(request).map(|request| protection.establish(&request, from));
        self.protection = Some(protection);
        answer.unwrap_or_default()
    }

    fn message(&self, entry: &Entry<()>) -> Option<Message<'_>> {
        let plain = self.protection.as_deref().and_then(|protection| protection.plain());
        plain.or_else(|| self.frame_message(entry))
    }

    fn show(&self, entry: &Entry<()>) -> EndpointOutput<'_, ()> {
        Self::show(self, entry)
    }

    fn reason(why: &StreamRefused) -> Reason {
        match why {
            StreamRefused::Message(WriteError::OverLimit { .. }) | StreamRefused::TokenTooLong { .. } => {
                Reason::TooLong
            }
            StreamRefused::Message(_) | StreamRefused::Protection(_) => Reason::Message,
            StreamRefused::Code(_) => Reason::Call,
            StreamRefused::TokenInUse | StreamRefused::TooManyRequests { .. } => Reason::NoRoom,
            StreamRefused::UnknownRequest | StreamRefused::Releasing | StreamRefused::Closed => Reason::Gone,
        }
    }

    fn hash(&self, key: &impl Hash) -> u64 {
        self.id_generator.hash(key)
    }

    fn room(&self) -> Option<Room> {
        let crate::stream::Options { max_message_size, block_wise, .. } = self.options;
        let ours = Settings { max_message_size, block_wise, ..Settings::BASE };
        Some(Room {
            // What is protected is no longer than what a datagram could have, whatever the stream takes.
            bytes: match self.protection {
                Some(_) => (self.settings.max_message_size as usize).min(LONGEST_PROTECTED),
                None => self.settings.max_message_size as usize,
            },
            block_wise: self.settings.block_wise,
            bert: self.settings.bert(),
            takes_bert: ours.bert(),
            is_settled: self.settled,
        })
    }

    fn memory(&self) -> usize {
        size_of::<Self>().saturating_add(Self::memory(self))
    }
}

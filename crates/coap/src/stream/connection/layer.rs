//! A connection as what carries the messages of a stack.

use alloc::vec::Vec;
use core::hash::Hash;

use millpond_control::Instant;

use super::{
    super::{Closing, Event, Settings, StreamRefused},
    Connection, What,
    polling::Entry,
};
use crate::{
    ExchangeId, Outgoing, RequestId,
    layer::{MessageLayer, Reason, RequestMessage, Room},
    message::{Code, MAX_DATAGRAM, Message, Token, WriteError, is_for_responses, number},
    output::{Output, Step},
    quota::Source,
    transfer::{CoapStack, Exchanged, Gone, RequestFailure, StackOutput},
};

/// Bytes of a message that can be protected, with those of its code, its tag and the longest OSCORE option.
const LONGEST_PROTECTED: usize = MAX_DATAGRAM - 300;

impl MessageLayer for Connection {
    const IS_RELIABLE: bool = true;

    type Peer = ();
    type Entry = Entry;
    type Transmit<'l> = &'l [u8];
    type Event<'l> = Event<'l>;
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

    fn step(&mut self, now: Instant) -> Step<Entry, Closing> {
        if let Some(protection) = &mut self.protection {
            protection.next();
        }
        self.next(now)
    }

    fn peer(&self, _entry: &Entry) {}

    fn hear(stack: &mut CoapStack<Self>, now: Instant, entry: Entry) {
        if !stack.layer.unprotect(&entry).goes_on(now, stack, &entry) {
            return;
        }
        let connection = &stack.layer;
        match entry.what {
            What::Request(id) => stack.request_came(now, entry, id),
            What::Response { id, is_first, .. } => {
                let is_known =
                    |number| is_for_responses(number) && !matches!(number, number::Q_BLOCK1 | number::Q_BLOCK2);
                let refused = connection.message(&entry).and_then(|message| message.options().refused(is_known));
                match refused {
                    Some(number) => stack.request_failed(now, id, RequestFailure::BadOption { number }, 1),
                    None if is_first => stack.response_came(now, entry, id, Exchanged { sample: None, copies: 1 }),
                    None => stack.additional_came(now, entry, id),
                }
            }
            What::Failed(exchange, why) => stack.request_failed(now, exchange, RequestFailure::Exchange(why), 1),
            What::Left(exchange) => stack.message_left(now, exchange),
            // A peer that registered again has taken the place of the one before.
            What::Unobserved(_, token) if connection.incoming.observing(token).is_some() => {}
            What::Unobserved(_, token) => {
                let why = if connection.ending.is_some() { Gone::Closed } else { Gone::Deregistered };
                stack.observer_is_gone(now, (), token, why);
            }
            What::Settings | What::TokenFree => stack.try_again(now, usize::MAX),
            What::Bytes | What::PongMissing | What::Pong(_) | What::Released | What::Aborted | What::Unasked(_) => {}
        }
    }

    fn establish(&mut self, request: &Entry, from: Source) -> Vec<u8> {
        let Some(mut protection) = self.protection.take() else { return Vec::new() };
        let answer = self.frame(request).map(|frame| protection.establish(&frame.message(), from));
        self.protection = Some(protection);
        answer.unwrap_or_default()
    }

    fn message(&self, entry: &Entry) -> Option<Message<'_>> {
        let plain = self.protection.as_deref().and_then(|protection| protection.plain());
        let message = || self.frame(entry).map(|frame| frame.message());
        plain.or_else(|| matches!(entry.what, What::Request(_) | What::Response { .. }).then(message)?)
    }

    fn show(&self, entry: &Entry) -> StackOutput<'_, Self> {
        self.event(entry).map_or_else(|| Output::Transmit(self.lent.as_slice()), Output::Trace)
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

    fn is_protected(&self) -> bool {
        self.protection.is_some()
    }

    fn hash(&self, key: &impl Hash) -> u64 {
        self.identities.hash(key)
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

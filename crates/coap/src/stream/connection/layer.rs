//! A connection as what carries the messages of a host.

use core::hash::Hash;

use millpond_control::Instant;

use super::{
    super::{Closing, Event, Lost, Output, Settings, StreamRefused},
    Connection, Notice,
    polling::Next,
    taking::Meaning,
};
use crate::{
    ExchangeId, Outgoing, RequestId,
    invariant::Sure,
    layer::{InAsk, MessageLayer, News, Reason, Room, Shown, Step},
    message::{Code, Message, Token, WriteError, is_for_responses, number},
    transfer::{AskFailure, Asleep, Gone},
};

/// Where an output of a connection stands.
#[derive(Clone, Copy, Debug)]
pub struct Entry(What);

#[derive(Clone, Copy, Debug)]
enum What {
    /// The bytes that were lent last.
    Bytes,
    Failed(ExchangeId, Lost),
    Unobserved(RequestId, Token),
    Left(ExchangeId),
    PongMissing,
    TokenFree,
    /// A frame: what it means, and where in what was read it is.
    Frame(Meaning, usize, usize),
}

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
        _place: InAsk,
    ) -> Result<ExchangeId, StreamRefused> {
        Self::request(self, now, request)
    }

    fn cancel(&mut self, _now: Instant, exchange: ExchangeId) {
        Self::cancel(self, exchange);
    }

    fn awaits_response(&self, exchange: ExchangeId) -> bool {
        self.asked.get(exchange).is_some()
    }

    fn token_of(&self, exchange: ExchangeId) -> Option<Token> {
        self.asked.get(exchange).map(|question| question.token)
    }

    fn respond(&mut self, now: Instant, to: RequestId, response: &Outgoing<'_>) -> Result<(), StreamRefused> {
        Self::respond(self, now, to, response)
    }

    /// There is no reset: it is answered with 4.02, as one with an option that nobody understands.
    fn reject(&mut self, _now: Instant, request: RequestId) -> Result<(), StreamRefused> {
        self.answer_plainly(request, Code::BAD_OPTION)
    }

    fn hush(&mut self, _now: Instant, request: RequestId) -> Result<(), StreamRefused> {
        self.owed.get(request).ok_or(StreamRefused::UnknownRequest)?;
        self.owed.answered(request, false);
        self.after_answer();
        Ok(())
    }

    /// Whoever asked learns that there is no room for it.
    fn drop_request(&mut self, _now: Instant, request: RequestId) {
        let _gone = self.answer_plainly(request, Code::SERVICE_UNAVAILABLE);
    }

    /// It has left, and there is no other end that could be told.
    fn notify(
        &mut self,
        now: Instant,
        (): (),
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<Option<ExchangeId>, StreamRefused> {
        let request = self.owed.observing(token).ok_or(StreamRefused::UnknownRequest)?;
        Self::respond(self, now, request, message).map(|()| None)
    }

    fn end_observation(&mut self, _now: Instant, (): (), token: Token, code: Code) {
        if let Some(request) = self.owed.observing(token) {
            // It fails only where the connection has ended, and then nobody waits for it.
            let _ended = self.answer_plainly(request, code);
        }
    }

    fn step(&mut self, now: Instant) -> Step<Self> {
        Step::Said(Entry(match self.next(now) {
            Next::Bytes => What::Bytes,
            Next::Notice(Notice::Failed(exchange, why)) => What::Failed(exchange, why),
            Next::Notice(Notice::Unobserved(request, token)) => What::Unobserved(request, token),
            Next::Notice(Notice::Left(exchange)) => What::Left(exchange),
            Next::PongMissing => What::PongMissing,
            Next::Notice(Notice::TokenFree) => What::TokenFree,
            Next::Frame(meaning, place) => What::Frame(meaning, place.start, place.end),
            Next::Close(why) => return Step::Closed(why),
            Next::Sleep(until) => return Step::Sleep(until, Asleep::Connection),
            Next::Idle => return Step::Idle,
        }))
    }

    fn peer(&self, _entry: &Entry) {}

    fn news(&self, entry: &Entry) -> News {
        match entry.0 {
            What::Failed(exchange, why) => News::Failed { exchange, why: AskFailure::Lost(why), copies: 1 },
            What::Left(exchange) => News::Left { exchange },
            // Whoever registered again has taken the place of the one before.
            What::Unobserved(_, token) if self.owed.observing(token).is_some() => News::Other,
            What::Unobserved(_, token) => {
                News::Unobserved { token, why: if self.ending.is_some() { Gone::Closed } else { Gone::Deregistered } }
            }
            What::Frame(Meaning::Request(id), ..) => News::Request { id },
            What::Frame(Meaning::Response { id: exchange, is_first, .. }, ..) => {
                let is_known =
                    |number| is_for_responses(number) && !matches!(number, number::Q_BLOCK1 | number::Q_BLOCK2);
                let refused = self.message(entry).and_then(|message| message.options().refused(is_known));
                match refused {
                    Some(number) => News::Failed { exchange, why: AskFailure::BadOption { number }, copies: 1 },
                    None if is_first => News::Response { exchange, sample: None, copies: 1 },
                    None => News::Further { exchange },
                }
            }
            What::Frame(Meaning::Settings, ..) | What::TokenFree => News::Room,
            What::Bytes | What::PongMissing | What::Frame(..) => News::Other,
        }
    }

    fn message(&self, entry: &Entry) -> Option<Message<'_>> {
        let What::Frame(_, start, end) = entry.0 else { return None };
        self.reader.frame(start..end).sure("frame that was read").map(|frame| frame.message())
    }

    fn show(&self, entry: &Entry) -> Shown<'_, Self> {
        let output = match entry.0 {
            What::Bytes => return Shown::Transmit(self.lent.as_slice()),
            What::Failed(id, why) => Output::Event(Event::Failed { id, why }),
            What::Unobserved(id, _) => Output::Event(Event::Unobserved { id }),
            What::Left(id) => Output::Event(Event::Left { id }),
            What::PongMissing => Output::Event(Event::PongMissing),
            What::TokenFree => Output::Event(Event::TokenFree),
            What::Frame(meaning, start, end) => self.tell(&meaning, start..end),
        };
        match output {
            Output::Event(event) => Shown::Event(event),
            _ => Shown::Nothing,
        }
    }

    fn reason(why: &StreamRefused) -> Reason {
        match why {
            StreamRefused::Message(WriteError::OverLimit { .. }) => Reason::TooLong,
            StreamRefused::Message(_) => Reason::Message,
            StreamRefused::Code(_) => Reason::Call,
            StreamRefused::TokenInUse | StreamRefused::TooManyRequests { .. } => Reason::NoRoom,
            StreamRefused::UnknownRequest | StreamRefused::Releasing | StreamRefused::Closed => Reason::Gone,
        }
    }

    fn hash(&self, key: &impl Hash) -> u64 {
        self.identities.hash(key)
    }

    fn room(&self) -> Option<Room> {
        let ours = Settings { max_message_size: self.options.max_message_size, block_wise: self.options.block_wise };
        Some(Room {
            bytes: self.settings.max_message_size as usize,
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

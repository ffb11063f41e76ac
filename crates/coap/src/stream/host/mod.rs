//! Whole bodies of any length, and observations, over one [`Connection`].
//!
//! A body goes in one frame if the other side takes frames so long (Max-Message-Size), else block by block (RFC 7959), with
//! several blocks in a message where the settings allow it (BERT, RFC 8323 §6). Driven like the connection below: one input,
//! then [`Host::poll`] until it says to sleep or that it is idle.
//!
//! ```
//! use millpond_coap::message::{Code, number};
//! use millpond_coap::stream::host::{Answer, Ask, Config, Event, Host, Output};
//! use millpond_coap::stream::Options;
//! use millpond_control::Instant;
//!
//! let now = Instant::ORIGIN;
//! let mut client = Host::new(Options { max_message_size: 1_152, ..Options::default() }, Config::default());
//! let mut server = Host::new(Options::default(), Config::default());
//! client.ask(now, &Ask::new(Code::GET, &[(number::URI_PATH, b"firmware")]))?;
//! let (mut whole, mut quiet) = (Vec::new(), false);
//! while !core::mem::replace(&mut quiet, true) {
//!     // Drain the client; what it sends is handed to the server at once.
//!     loop {
//!         match client.poll(now) {
//!             Output::Transmit(bytes) => { server.receive(now, bytes); quiet = false; }
//!             Output::Event(Event::Answer { body, .. }) => whole = body,
//!             Output::Event(_) => {}
//!             Output::Close(_) | Output::Sleep(_) | Output::Idle => break,
//!         }
//!     }
//!     loop {
//!         match server.poll(now) {
//!             Output::Transmit(bytes) => { client.receive(now, bytes); quiet = false; }
//!             Output::Event(Event::Request { id, .. }) => {
//!                 server.answer(now, id, &Answer::new(Code::CONTENT, &[]).with_body(&[7; 100_000]))?;
//!             }
//!             Output::Event(_) => {}
//!             Output::Close(_) | Output::Sleep(_) | Output::Idle => break,
//!         }
//!     }
//! }
//! assert_eq!(whole.len(), 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does, and how it reads the RFCs
//!
//! * **Settings** come with the other side's first message. An ask that does not fit the base values waits for them; later
//!   ones that take BERT back begin an upload anew in blocks of 1024 bytes.
//! * **Observe** (RFC 7641, RFC 8323 §7): the order is the stream's, so sequence numbers are not looked at. A notification
//!   that does not fit a message has its first block; the rest is fetched by requests without Observe. Another one meanwhile
//!   replaces it. [`Host::cancel`] deregisters with the token of the registration.
//! * **Back pressure** is the driver's: while the stream takes no bytes, do not poll, and read nothing. Notifications wait
//!   inside, of each observer the newest.
//! * **Requests and answers** are those of [`transfer`](crate::transfer). Of an ask its kind, the size of its blocks, its
//!   patience and its wish for bursts are not looked at, nor of an answer its kind and its blocks: there is none of it here.
//! * **Nothing is repeated** by a stream, so the last block of a body again, without those before it, is answered with 4.08.

mod asking;
mod came;
mod kept;
mod serving;
mod types;

use alloc::{collections::VecDeque, vec::Vec};

use millpond_control::Instant;

use super::{Closing, Connection, Options, ResponseId, Settings};
use crate::{
    block::robust::draft::Draft,
    message::{Code, Token, is_of_transfer},
    transfer::{InPieces, TakesPieces},
};

pub use crate::transfer::{Answer, Ask, AskFailure};
pub use types::{AskId, Config, Event, ObserverId, Output, Refused, RequestId};

use asking::{Asking, Outcome};
use came::{Came, Frame};
use serving::Serving;

/// One side of a connection with whole bodies. See the [module](self).
#[derive(Debug)]
pub struct Host {
    config: Config,
    connection: Connection,
    asks: Vec<Asking>,
    serving: Serving,
    /// Observations of which the other side is still to be told that they are over.
    deregistrations: VecDeque<(Token, Draft)>,
    events: VecDeque<Event>,
    made: u64,
    tokens: u32,
    closing: Option<Closing>,
    closed: bool,
}

impl Host {
    /// Over a stream that was just opened, by whichever side.
    #[must_use]
    pub fn new(options: Options, config: Config) -> Self {
        let bert = Settings { max_message_size: options.max_message_size, block_wise: options.block_wise }.bert();
        Self {
            config,
            connection: Connection::new(options),
            asks: Vec::new(),
            serving: Serving::new(config, bert),
            deregistrations: VecDeque::new(),
            events: VecDeque::new(),
            made: 0,
            tokens: 0,
            closing: None,
            closed: false,
        }
    }

    /// From now on the requests of which `is_meant` says so come in pieces, as with
    /// [`transfer::Host::take_pieces`](crate::transfer::Host::take_pieces). Their events have all of their options.
    pub fn take_pieces(&mut self, is_meant: TakesPieces) {
        self.serving.take_pieces(InPieces(Some(is_meant)));
    }

    /// Input: bytes came in, cut in whatever way.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.connection.receive(now, bytes);
    }

    /// Input: the stream ended or broke. Asks fail, observers are gone.
    pub fn stream_ended(&mut self) {
        self.connection.stream_ended();
    }

    /// Input: a request with its whole body is to be sent, and the whole answer, or every representation, fetched.
    ///
    /// # Errors
    /// What cannot be asked for or exceeds a limit. Nothing is begun then.
    pub fn ask(&mut self, now: Instant, ask: &Ask<'_>) -> Result<AskId, Refused> {
        let _ = now;
        check(ask.options)?;
        if !ask.code.is_request() {
            return Err(super::StreamRefused::Code(ask.code).into());
        }
        if ask.observe && !matches!(ask.code, Code::GET | Code::FETCH) {
            return Err(Refused::NotObservable(ask.code));
        }
        if self.closing.is_some() || self.closed {
            return Err(super::StreamRefused::Closed.into());
        }
        if self.asks.len() >= self.config.asks {
            return Err(Refused::TooManyAsks { limit: self.config.asks });
        }
        if ask.body.len() > self.config.body {
            return Err(Refused::TooLarge { length: ask.body.len(), limit: self.config.body });
        }
        self.made = self.made.wrapping_add(1);
        let id = AskId(self.made);
        self.asks.push(Asking::new(&asking::Wanted { id, ask: *ask }));
        Ok(id)
    }

    /// Input: the answer, or the observation, is no longer wanted. Ends as [`AskFailure::Cancelled`]; of an observation
    /// the other side is told. False if it was over before.
    pub fn cancel(&mut self, now: Instant, ask: AskId) -> bool {
        let _ = now;
        let Some(place) = self.asks.iter().position(|asking| asking.id == ask) else { return false };
        self.end(place, Some(Event::Failed { ask, why: AskFailure::Cancelled }));
        true
    }

    /// Input: the answer to a request, with its whole body; blocks are cut from it as they are asked for.
    ///
    /// # Errors
    /// What cannot be sent. The request can still be answered then.
    pub fn answer(&mut self, now: Instant, request: RequestId, answer: &Answer<'_>) -> Result<(), Refused> {
        self.serving.answer(now, request, answer, false, &mut self.connection).map(|_| ())
    }

    /// Input: the answer to a request whose event said that it wants to observe; its sender becomes an observer.
    /// `Ok(None)`: it was answered without, because there are as many as may be, or the code is no success.
    ///
    /// # Errors
    /// What cannot be sent. The request can still be answered then.
    pub fn accept_observer(
        &mut self,
        now: Instant,
        request: RequestId,
        answer: &Answer<'_>,
    ) -> Result<Option<ObserverId>, Refused> {
        self.serving.answer(now, request, answer, true, &mut self.connection)
    }

    /// Input: the state has changed. Of what waits for an observer only the newest state leaves. A code that is no success
    /// is the last one; the observer is gone after it, without an event.
    ///
    /// # Errors
    /// The observer is gone; an option of the host's own; a body that is too long.
    pub fn notify(&mut self, now: Instant, observer: ObserverId, answer: &Answer<'_>) -> Result<(), Refused> {
        let _ = now;
        self.serving.notify(observer, answer)
    }

    /// Input: an observer is no longer served; it is told so by 5.03. False if it was gone before.
    pub fn dismiss(&mut self, now: Instant, observer: ObserverId) -> bool {
        self.serving.dismiss(now, observer, &mut self.connection)
    }

    /// Input: is the other side alive? See [`Connection::ping`].
    ///
    /// # Errors
    /// The connection has ended.
    pub fn ping(&mut self, now: Instant, custody: bool) -> Result<(), Refused> {
        self.connection.ping(now, custody).map_err(Into::into)
    }

    /// Input: an orderly end is wanted. See [`Connection::release`].
    ///
    /// # Errors
    /// An alternative address that does not fit; a connection that has ended.
    pub fn release(&mut self, now: Instant, alternative: Option<&[u8]>, hold_off: Option<u32>) -> Result<(), Refused> {
        self.connection.release(now, alternative, hold_off).map_err(Into::into)
    }

    /// Input: the connection ends at once; the other side is told why.
    pub fn abort(&mut self, diagnostic: &str) {
        self.connection.abort(diagnostic);
    }

    /// The next output.
    pub fn poll(&mut self, now: Instant) -> Output<'_> {
        let until = loop {
            if let Some(event) = self.events.pop_front() {
                return Output::Event(event);
            }
            if self.connection.has_bytes() {
                return match self.connection.poll(now) {
                    super::Output::Transmit(bytes) => Output::Transmit(bytes),
                    _ => Output::Idle,
                };
            }
            if let Some(why) = self.closing.take() {
                self.closed = true;
                return Output::Close(why);
            }
            let until = match self.connection.poll(now) {
                // Made meanwhile: an answer to a signal, or to a request that the connection refuses by itself.
                super::Output::Transmit(_) => return Output::Transmit(self.connection.lent()),
                super::Output::Event(event) => {
                    let came = Came::of(&event);
                    self.take(now, came);
                    continue;
                }
                super::Output::Close(why) => {
                    self.close(why);
                    continue;
                }
                super::Output::Sleep(until) => Some(until),
                super::Output::Idle => None,
            };
            if self.closed || !self.advance(now) {
                break until;
            }
        };
        let deadline = self.asks.iter().filter_map(|asking| asking.deadline).min();
        match until.into_iter().chain(deadline).chain(self.serving.next_expiry()).min() {
            Some(until) => Output::Sleep(until),
            None => Output::Idle,
        }
    }

    /// What the other side said it can do.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.connection.settings()
    }

    /// Asks under way, observations included.
    #[must_use]
    pub fn asks(&self) -> usize {
        self.asks.len()
    }

    /// Observers of ours.
    #[must_use]
    pub fn observers(&self) -> usize {
        self.serving.observers()
    }

    /// Bytes held, this value itself not included.
    #[must_use]
    pub fn memory(&self) -> usize {
        let entries = self.asks.capacity().saturating_mul(size_of::<Asking>());
        let asks = self.asks.iter().fold(entries, |sum, asking| sum.saturating_add(asking.memory()));
        let farewells = self.deregistrations.capacity().saturating_mul(size_of::<(Token, Draft)>());
        let farewells =
            self.deregistrations.iter().fold(farewells, |sum, (_, draft)| sum.saturating_add(draft.memory()));
        let events = self.events.capacity().saturating_mul(size_of::<Event>());
        let events = self.events.iter().fold(events, |sum, event| sum.saturating_add(event.memory()));
        let queues = farewells.saturating_add(events);
        asks.saturating_add(queues).saturating_add(self.serving.memory()).saturating_add(self.connection.memory())
    }
}

impl Host {
    /// Something came in.
    fn take(&mut self, now: Instant, came: Came) {
        match came {
            Came::Request(id, frame) => {
                self.serving.asked(now, id, frame, &mut self.connection, &mut self.events);
            }
            Came::Response(request, frame, last) => self.response(request, &frame, last),
            Came::Failed(request, why) => {
                let Some(place) = self.asks.iter().position(|asking| asking.has(request)) else { return };
                if let Some(asking) = self.asks.get(place) {
                    let ask = asking.id;
                    self.end(place, Some(Event::Failed { ask, why: AskFailure::Lost(why) }));
                }
            }
            Came::Unobserved(request) => {
                let gone = self.serving.unobserved(request);
                self.events.extend(gone.map(|observer| Event::ObserverGone { observer }));
            }
            Came::Event(event) => self.events.push_back(event),
            Came::Nothing => {}
        }
    }

    fn response(&mut self, request: ResponseId, frame: &Frame, last: bool) {
        let Some(place) = self.asks.iter().position(|asking| asking.has(request)) else { return };
        let options = self.connection.options();
        let bert = Settings { max_message_size: options.max_message_size, block_wise: options.block_wise }.bert();
        let Some(asking) = self.asks.get_mut(place) else { return };
        if let Some(abandoned) = asking.abandon_fetch(request) {
            self.connection.cancel(abandoned);
        }
        let ask = asking.id;
        if let Some(number) = frame.refused {
            return self.end(place, Some(Event::Failed { ask, why: AskFailure::BadOption { number } }));
        }
        match asking.answered(request, frame, last, (bert, self.connection.settings().bert())) {
            Outcome::Going => {}
            Outcome::Answered { code, options, body, goes_on } => {
                let event = Event::Answer { ask, code, options, body, goes_on };
                if goes_on {
                    // Only the first one is under the deadline.
                    asking.deadline = None;
                    self.events.push_back(event);
                } else {
                    self.end(place, Some(event));
                }
            }
            Outcome::Failed(why) => self.end(place, Some(Event::Failed { ask, why })),
        }
    }

    /// An ask is over.
    fn end(&mut self, place: usize, event: Option<Event>) {
        if place >= self.asks.len() {
            return;
        }
        let asking = self.asks.remove(place);
        if self.closing.is_none() && !self.closed {
            self.deregistrations.extend(asking.deregistration());
            for request in asking.requests() {
                self.connection.cancel(request);
            }
        }
        self.events.extend(event);
    }

    /// Does what is due and sends what can be sent. True if there is more output.
    fn advance(&mut self, now: Instant) -> bool {
        self.serving.expire(now);
        if let Some(place) = self.asks.iter().position(|asking| asking.deadline.is_some_and(|due| due <= now)) {
            let late = self.asks.get(place).map(|asking| asking.id);
            self.end(place, late.map(|ask| Event::Failed { ask, why: AskFailure::Deadline }));
            return true;
        }
        if let Some((token, draft)) = self.deregistrations.pop_front() {
            // If it cannot leave now, notifications go on to be ignored.
            let _refused =
                draft.lend(|message| self.connection.request(now, &crate::Outgoing { token: Some(token), ..*message }));
            return true;
        }
        let mut place = 0_usize;
        while let Some(asking) = self.asks.get_mut(place) {
            match asking.send(now, &mut self.connection, &mut self.tokens) {
                Ok(true) => return true,
                Ok(false) => place = place.saturating_add(1),
                Err(why) => {
                    let ask = asking.id;
                    self.end(place, Some(Event::Failed { ask, why }));
                    return true;
                }
            }
        }
        self.serving.send(now, &mut self.connection)
    }

    /// The connection has ended: so has everything else.
    fn close(&mut self, why: Closing) {
        self.closing = Some(why);
        self.deregistrations.clear();
        let lost =
            |asking: Asking| Event::Failed { ask: asking.id, why: AskFailure::Lost(super::Lost::ConnectionClosed) };
        self.events.extend(core::mem::take(&mut self.asks).into_iter().map(lost));
        self.serving.clear();
    }
}

/// Refuses options that are the host's own.
fn check(options: &[(u16, &[u8])]) -> Result<(), Refused> {
    match options.iter().find(|(number, _)| is_of_transfer(*number)) {
        Some((number, _)) => Err(Refused::OwnOption { number: *number }),
        None => Ok(()),
    }
}

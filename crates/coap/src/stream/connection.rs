//! One connection: settings, signals, requests and responses.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::ops::Range;

use millpond_control::{Instant, Span};

use crate::{
    ExchangeId, Failure, IdGenerator, Outgoing, RequestId,
    long_tokens::padded,
    message::{NoResponse, Token, WriteError, number},
    output::OutputKind,
    protection::Protection,
};

use super::{
    Closing, FrameReader, Signal, StreamRefused,
    pending::{IncomingRequests, OutgoingRequests},
    token_quarantine::TokenQuarantine,
    write_extended,
};

mod layer;
mod polling;
mod protection;
mod taking;

/// Pings whose answers may wait for requests to be answered. One at a time tells all that there is to tell (RFC 8323 §5.4.1).
const MOST_HELD_PONGS: usize = 16;

/// What this side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest frame taken, in bytes; told to the other side as Max-Message-Size.
    pub max_message_size: u32,
    /// Whether block-wise transfer is understood; told to the other side.
    pub block_wise: bool,
    /// Whether the other side has to begin with its settings (RFC 8323 §5.3). If not, it is taken for one that knows block-wise
    /// transfer and the base values, until settings come.
    pub needs_settings: bool,
    /// Bytes of the longest token that is taken with a request: up to 8, longer ones break the connection; more is told to the other
    /// side (RFC 8974 §2.2.1).
    pub longest_token: u16,
    /// Bytes of the tokens of our requests, if more than 8: behind what distinguishes them are zeros then, to see what a server makes of
    /// that.
    pub token_length: u16,
    /// Whether requests are taken. A side without a server answers them with 5.01 (RFC 8323 §3.3).
    pub serves: bool,
    /// Requests of either side that may be under way, observations included.
    pub requests: u32,
    /// How long an answer to a ping may take before [`Event::PongMissing`](crate::Event::PongMissing).
    pub pong_wait: Span,
    /// How long the other side may take to close after our Release.
    pub release_wait: Span,
}

impl Default for Options {
    /// 64 KiB frames with block-wise transfer, 256 requests, 10 s for a Pong, 5 s for a Release.
    fn default() -> Self {
        Self {
            max_message_size: 65_536,
            block_wise: true,
            needs_settings: true,
            longest_token: 8,
            token_length: 0,
            serves: true,
            requests: 256,
            pong_wait: Span::from_secs(10),
            release_wait: Span::from_secs(5),
        }
    }
}

impl Options {
    fn reader(&self) -> FrameReader {
        let reader = FrameReader::new(self.max_message_size);
        let is_extended = usize::from(self.longest_token.max(self.token_length)) > Token::MAX;
        if is_extended { reader.extended() } else { reader }
    }
}

/// What the other side said it can do; before it said anything, the base values of RFC 8323 §5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The longest frame that it takes, in bytes.
    pub max_message_size: u32,
    /// It understands block-wise transfer.
    pub block_wise: bool,
    /// The longest token that it takes with a request, in bytes.
    pub longest_token: u32,
}

impl Settings {
    /// The base values.
    pub const BASE: Self = Self { max_message_size: 1_152, block_wise: false, longest_token: 8 };

    /// Whether several blocks may travel in one message (BERT, RFC 8323 §6).
    #[must_use]
    pub const fn bert(self) -> bool {
        self.block_wise && self.max_message_size > Self::BASE.max_message_size
    }
}

/// One side of a connection, from the moment at which the stream is open. It is alike on both sides.
///
/// Driven like an [`Endpoint`](crate::Endpoint), by any number of inputs ([`receive`](Self::receive),
/// [`request`](Self::request), …), then drain: [`poll`](Self::poll) until it says to sleep or that it is idle, before the
/// next input and before sleeping. As there, an input amid the outputs loses nothing, but for one: what came in is read by
/// `poll`, and dropped if not read when the connection [ends](Self::stream_ended). Our settings are the first bytes that
/// `poll` gives; requests may be made at once, without waiting for the other side's.
#[derive(Debug)]
pub struct Connection {
    options: Options,
    settings: Settings,
    /// The other side's first settings came.
    settled: bool,
    reader: FrameReader,
    outbox: Vec<u8>,
    /// The bytes that the last output lent.
    lent: Vec<u8>,
    outgoing: OutgoingRequests,
    quarantine: TokenQuarantine,
    incoming: IncomingRequests,
    /// Pings whose answer waits until all requests up to a number were answered.
    held_pongs: VecDeque<(u64, Token)>,
    ping: Option<Ping>,
    pings: u64,
    releasing: Option<Releasing>,
    /// It ends, and why.
    ending: Option<Closing>,
    /// It was told.
    ended: bool,
    notices: VecDeque<OutputKind>,
    /// Where in what was read the frame is that the last output is about.
    frame: Range<usize>,
    id_generator: IdGenerator,
    /// By which its messages are protected.
    protection: Option<Box<dyn Protection<()>>>,
}

#[derive(Clone, Copy, Debug)]
struct Ping {
    token: Token,
    due: Instant,
}

/// An orderly end is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Releasing {
    /// By the other side: we close once everything is answered.
    theirs: bool,
    /// By us: the other side has until then to close.
    due: Option<Instant>,
}

/// What time is waited for about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Ping,
    Release,
    /// A token has rested.
    Token,
}

impl Connection {
    /// A connection over a stream that was just opened, by whichever side.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let mut connection = Self {
            settings: Settings { block_wise: !options.needs_settings, ..Settings::BASE },
            settled: !options.needs_settings,
            reader: options.reader(),
            outbox: Vec::new(),
            lent: Vec::new(),
            outgoing: OutgoingRequests::new(),
            quarantine: TokenQuarantine::new(),
            incoming: IncomingRequests::new(),
            held_pongs: VecDeque::new(),
            ping: None,
            pings: 0,
            releasing: None,
            ending: None,
            ended: false,
            notices: VecDeque::new(),
            frame: 0..0,
            id_generator: IdGenerator::counted(),
            protection: None,
            options,
        };
        let max_message_size = Some(options.max_message_size).filter(|&size| size != Settings::BASE.max_message_size);
        let longest_token =
            Some(u32::from(options.longest_token)).filter(|&length| length > Settings::BASE.longest_token);
        let block_wise = options.block_wise;
        connection.signal(Signal::Csm { max_message_size, block_wise, longest_token }, Token::EMPTY);
        connection
    }

    /// The same with a secret: behind a proxy many clients share one connection, and who can guess how a server tells their
    /// requests apart may get what is another's. A live server takes [`IdGenerator::secret`].
    #[must_use]
    pub fn with_id_generator(self, id_generator: IdGenerator) -> Self {
        Self { id_generator, ..self }
    }

    /// What the other side said it can do.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// Whether the other side has said what it can do; before that, [`settings`](Self::settings) are the base values.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// What this side is.
    #[must_use]
    pub const fn options(&self) -> Options {
        self.options
    }

    /// Requests of ours that are under way.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.outgoing.len()
    }

    /// Whether nothing that either side asked waits for its answer. Observations wait for none.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.incoming.unanswered() == 0 && self.outgoing.unanswered() == 0
    }

    /// Input: bytes came in, cut in whatever way.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        let _ = now;
        if self.ending.is_none() {
            self.reader.push(bytes);
        }
    }

    /// Input: the stream ended or broke. Requests under way fail, observations are over. Drain before: what came in and was
    /// not read by [`poll`](Self::poll) is dropped.
    pub fn stream_ended(&mut self) {
        self.end(if self.releasing.is_some() && self.is_quiet() { Closing::Released } else { Closing::StreamEnded });
    }

    /// Input: a request is to be sent. The message's kind does not matter here.
    ///
    /// One whose option No-Response (RFC 7967) wants no response at all is over once it left ([`Event::Left`](crate::Event::Left)); what comes
    /// to it all the same is [`Event::Unasked`](crate::Event::Unasked). Its token is then in use for requests that want a response, until
    /// one came or 250 s have passed.
    ///
    /// # Errors
    /// What cannot be sent; nothing is sent then.
    pub fn request(&mut self, now: Instant, request: &Outgoing<'_>) -> Result<ExchangeId, StreamRefused> {
        self.check_open()?;
        if self.releasing.is_some() {
            return Err(StreamRefused::Releasing);
        }
        if !request.code.is_request() {
            return Err(StreamRefused::Code(request.code));
        }
        let observe = request.options.iter().find(|(number, _)| *number == number::OBSERVE);
        let limit = self.options.requests;
        if self.outgoing.len() as u64 >= u64::from(limit) {
            return Err(StreamRefused::TooManyRequests { limit });
        }
        let wants_none = NoResponse::of(request.options).is_all();
        let pads = usize::from(self.options.token_length) > Token::MAX;
        if pads && u32::from(self.options.token_length) > self.settings.longest_token {
            return Err(StreamRefused::TokenTooLong {
                length: self.options.token_length,
                limit: self.settings.longest_token,
            });
        }
        let token = match request.token {
            Some(token) if self.outgoing.has(token) => return Err(StreamRefused::TokenInUse),
            Some(token) => token,
            None => self.outgoing.token(pads, |token| self.quarantine.until(now, token).is_some()),
        };
        // One that takes no response takes none for its own.
        if let Some(until) = self.quarantine.until(now, token).filter(|_| !wants_none) {
            self.quarantine.is_awaited(until);
            return Err(StreamRefused::TokenInUse);
        }
        match padded(token, self.options.token_length.into()) {
            Some(longer) => write_to(&mut self.outbox, request, &longer, self.settings)?,
            None => write_to(&mut self.outbox, request, token.as_bytes(), self.settings)?,
        }
        if wants_none {
            self.quarantine.hold(now, token, request.token.is_some());
            let id = self.outgoing.add(token, false);
            self.outgoing.remove(id);
            self.notices.push_back(OutputKind::Left { exchange: id });
            return Ok(id);
        }
        Ok(self.outgoing.add(token, observe.is_some_and(|(_, value)| value.iter().all(|byte| *byte == 0))))
    }

    /// Input: the answer to a request, or the next one to a request that observes: a success with the option Observe
    /// keeps it open.
    ///
    /// # Errors
    /// What cannot be sent. The request can still be answered then.
    pub fn respond(&mut self, now: Instant, to: RequestId, response: &Outgoing<'_>) -> Result<(), StreamRefused> {
        let _ = now;
        self.check_open()?;
        let request = self.incoming.get(to).ok_or(StreamRefused::UnknownRequest)?;
        if !response.code.is_response() {
            return Err(StreamRefused::Code(response.code));
        }
        let token = self.incoming.token_bytes(&request.token).ok_or(StreamRefused::UnknownRequest)?;
        write_to(&mut self.outbox, response, token, self.settings)?;
        let observes = response.code.class() == 2
            && response.options.iter().any(|(number, _)| *number == number::OBSERVE)
            && self.releasing.is_none();
        let replaced = self.incoming.answered(to, observes);
        self.notices.extend(replaced.map(|(request, token)| OutputKind::Unobserved { request, token }));
        self.after_answer();
        Ok(())
    }

    /// Input: the answer to a request is no longer wanted; what comes all the same is [`Event::Unasked`](crate::Event::Unasked). An observation
    /// is not cancelled at the other side by this: ask with Observe = 1 and the same token (RFC 8323 §7.4). False if it
    /// was over before.
    pub fn cancel(&mut self, request: ExchangeId) -> bool {
        let known = self.outgoing.remove(request);
        if known {
            self.notices.push_back(OutputKind::Failed { exchange: request, why: Failure::Cancelled, copies: 1 });
            self.after_answer();
        }
        known
    }

    /// Input: is the other side alive? With `custody`, it answers only once it has processed all that came before.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn ping(&mut self, now: Instant, custody: bool) -> Result<(), StreamRefused> {
        self.check_open()?;
        self.pings = self.pings.wrapping_add(1);
        let token = Token::new(&self.pings.to_be_bytes()).unwrap_or_default();
        self.signal(Signal::Ping { custody }, token);
        self.ping = Some(Ping { token, due: now.after(self.options.pong_wait) });
        Ok(())
    }

    /// Input: an orderly end is wanted. What was asked is still answered on both sides; then the other side closes.
    ///
    /// # Errors
    /// An alternative address that does not fit; a connection that has ended.
    pub fn release(
        &mut self,
        now: Instant,
        alternative: Option<&[u8]>,
        hold_off: Option<u32>,
    ) -> Result<(), StreamRefused> {
        self.check_open()?;
        // Without an address it is short, and fits.
        let limit = alternative.map_or(u32::MAX, |_| self.settings.max_message_size);
        Signal::Release { alternative, hold_off }.write(&mut self.outbox, Token::EMPTY, limit)?;
        let theirs = self.releasing.is_some_and(|releasing| releasing.theirs);
        self.releasing = Some(Releasing { theirs, due: Some(now.after(self.options.release_wait)) });
        Ok(())
    }

    /// Input: the connection ends at once; the other side is told why.
    pub fn abort(&mut self, diagnostic: &str) {
        if self.ending.is_none() {
            self.abort_for(Closing::Aborted, None, diagnostic);
        }
    }

    /// Bytes held, this value itself not included.
    #[must_use]
    pub fn memory(&self) -> usize {
        /// Bytes of a request there, roughly.
        const ENTRY: usize = 128;
        let entries = self.outgoing.len().saturating_add(self.incoming.len()).saturating_mul(ENTRY);
        let pongs = self.held_pongs.capacity().saturating_mul(size_of::<(u64, Token)>());
        let notices = self.notices.capacity().saturating_mul(size_of::<OutputKind>());
        let buffers = self.outbox.capacity().saturating_add(self.lent.capacity());
        let buffers = buffers.saturating_add(pongs).saturating_add(notices).saturating_add(self.quarantine.memory());
        let buffers = buffers.saturating_add(self.incoming.memory_of_tokens());
        self.reader.memory().saturating_add(buffers).saturating_add(entries)
    }
}

impl Connection {
    fn check_open(&self) -> Result<(), StreamRefused> {
        if self.ending.is_some() { Err(StreamRefused::Closed) } else { Ok(()) }
    }

    /// Signals of ours are short: they always fit.
    fn signal(&mut self, signal: Signal<'_>, token: Token) {
        let _length = signal.write(&mut self.outbox, token, u32::MAX);
    }

    /// When to act although nothing came in, and about what.
    fn next_due(&self) -> Option<(Instant, Due)> {
        let ping = self.ping.map(|ping| (ping.due, Due::Ping));
        let release = self.releasing.and_then(|releasing| releasing.due).map(|due| (due, Due::Release));
        let token = self.quarantine.due().map(|due| (due, Due::Token));
        [ping, release, token].into_iter().flatten().min()
    }
}

/// Appends a message to what leaves, as far as the other side takes it.
fn write_to(outbox: &mut Vec<u8>, message: &Outgoing<'_>, token: &[u8], settings: Settings) -> Result<(), WriteError> {
    let Outgoing { code, options, payload, .. } = *message;
    write_extended(outbox, code, token, options, payload, settings.max_message_size).map(drop)
}

//! The server's side: whole bodies received and sent in bursts.

mod asked;
mod bodies;
mod inbound;
mod outbound;

use alloc::{collections::VecDeque, vec::Vec};
use core::{fmt::Debug, hash::Hash};

use millpond_control::{ChanceSeed, Instant, Purpose, Span};

use super::{
    BurstOptions, Q_BLOCK1, Q_BLOCK2,
    draft::{self, Draft, own_options, tag_of},
};
use crate::{
    Endpoint, Event, Refused, RequestId,
    message::{Code, Kind, Message, Token, number},
};

use asked::Wants;
use inbound::{Inbound, Stage};
use outbound::{Outbound, Representation};

/// A server of Q-Block1 and Q-Block2 beside an [`Endpoint`], for any number of peers.
///
/// Driven like a [`BurstClient`](super::BurstClient): what the endpoint tells goes to [`take`](Self::take) first; once the
/// endpoint is drained, [`act`](Self::act) puts the next message into it. Requests that have neither option are not
/// taken, and are the caller's to answer. What is taken comes back as [`ServerTold::Request`] with its whole body, to be
/// answered by [`answer`](Self::answer), with a body of any length:
///
/// ```
/// use millpond_coap::block::robust::{BurstAnswer, BurstOptions, BurstServer, ServerAct, ServerTold};
/// use millpond_coap::message::Code;
/// use millpond_coap::{Config, Endpoint, Identities, Output};
/// use millpond_control::{ChanceSeed, Instant, Preset};
///
/// let (now, chance) = (Instant::ORIGIN, ChanceSeed::new(1));
/// let mut endpoint = Endpoint::new(Config::default(), Preset::RFC7252.build(), chance, 1, Identities::counted())?;
/// let mut server = BurstServer::new(BurstOptions::default(), chance, 1);
/// let firmware = vec![7; 100_000];
/// // A non-confirmable GET with token 7f and Q-Block2 0/1/1024.
/// endpoint.receive(now, "client", &[0x51, 1, 0, 1, 0x7f, 0xd1, 0x12, 0x0e]);
/// let mut sent = 0;
/// let sleep = loop {
///     match endpoint.poll(now) {
///         Output::Transmit(_datagram) => sent += 1,
///         Output::Event(event) => {
///             let _is_of_a_transfer = server.take(now, &event);
///         }
///         Output::Sleep(..) | Output::Idle => match server.act(now, &mut endpoint) {
///             ServerAct::Again => {}
///             ServerAct::Told(ServerTold::Request { id, .. }) => {
///                 server.answer(now, id, &BurstAnswer { code: Code::CONTENT, options: &[], body: &firmware })?;
///             }
///             ServerAct::Sleep(until) => break Some(until),
///             ServerAct::Idle => break None,
///         },
///     }
/// };
/// assert_eq!(sent, 10, "a set");
/// assert!(sleep.is_some_and(|until| until > now));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What it does, and how it reads RFC 9177
///
/// * Every representation that needs several blocks is **kept**, with an ETag (made if the answer has none), for
///   NON_PARTIAL_TIMEOUT after it was last asked for or sent, one for each peer and resource. Requests for the first block by
///   confirmable message, and for the whole body, ask the application anew; the same bytes again are the same representation.
/// * **More of a representation** that is no longer kept is asked of the application, and what was asked for leaves of what it
///   answers now, under another ETag.
/// * A **reset** to a block or a complaint drops the body that it belongs to (§4.3).
/// * **Confirmable** payloads are answered in their acknowledgements: 2.31 as far as all is there, else 4.08. RFC 9177 wants
///   empty ones, which an endpoint sends only where no answer follows.
/// * Observe is not looked at: the layer above notifies.
#[derive(Debug)]
pub struct BurstServer<A> {
    options: BurstOptions,
    chance: ChanceSeed,
    node: u32,
    made: u64,
    inbound: Vec<Inbound<A>>,
    outbound: Vec<Outbound<A>>,
    owed: Vec<Owed<A>>,
    steps: VecDeque<Step<A>>,
    told: VecDeque<ServerTold<A>>,
}

/// Names a request until it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BurstRequestId(u64);

/// An answer, with a body of any length.
#[derive(Clone, Copy, Debug)]
pub struct BurstAnswer<'a> {
    /// A response code.
    pub code: Code,
    /// Options in ascending order, without those of the transfer itself. With an ETag, that is the representation's.
    pub options: &'a [(u16, &'a [u8])],
    /// The body.
    pub body: &'a [u8],
}

/// Why an answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerRefused {
    /// The request was answered, or dropped because nobody answered it for too long.
    #[error("no such request: it was answered, or dropped unanswered")]
    UnknownRequest,
    /// Not a response.
    #[error("code {0} does not make a response")]
    Code(Code),
    /// The body is longer than allowed. The request can still be answered.
    #[error("a body of {length} bytes, but at most {limit} are allowed (limits.body)")]
    TooLarge {
        /// Its length.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
}

/// What the server wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAct<A> {
    /// It put something into the endpoint: drain that, then ask again.
    Again,
    /// The application learns something.
    Told(ServerTold<A>),
    /// Nothing until then, unless the endpoint tells something.
    Sleep(Instant),
    /// Nothing, unless the endpoint tells something.
    Idle,
}

/// What the application learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTold<A> {
    /// A request with its whole body. Answer it.
    Request {
        /// To answer by.
        id: BurstRequestId,
        /// From whom.
        from: A,
        /// Its method.
        code: Code,
        /// Its options, without those of the transfer.
        options: Vec<(u16, Vec<u8>)>,
        /// Its body.
        body: Vec<u8>,
    },
}

/// A request that the application has and has not answered.
#[derive(Debug)]
struct Owed<A> {
    id: BurstRequestId,
    from: A,
    key: Vec<u8>,
    wants: Wants,
    reply: Reply,
    /// Request-Tag of a body that came in bursts.
    tag: Option<Vec<u8>>,
    until: Instant,
}

/// How a request is answered.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// In the acknowledgement of this one, or by a message for it.
    To(RequestId, Token),
    /// In a non-confirmable message with this token.
    Plain(Token),
}

impl Reply {
    const fn token(self) -> Token {
        match self {
            Self::To(_, token) | Self::Plain(token) => token,
        }
    }
}

/// What waits to be put into the endpoint.
#[derive(Debug)]
enum Step<A> {
    Respond(RequestId, Draft),
    /// The request gets no answer of its own.
    Pass(RequestId),
    Send(A, Token, Draft),
}

/// Options that the transfer itself reads and sets.
const OURS: [u16; 8] = [
    number::BLOCK1,
    number::BLOCK2,
    number::SIZE1,
    number::SIZE2,
    Q_BLOCK1,
    Q_BLOCK2,
    super::REQUEST_TAG,
    number::OBSERVE,
];

impl<A: Copy + Eq + Hash + Debug> BurstServer<A> {
    /// A server that was asked nothing yet. `chance` and `node` address the words of chance for pauses and first ETags.
    #[must_use]
    pub const fn new(options: BurstOptions, chance: ChanceSeed, node: u32) -> Self {
        Self {
            options,
            chance,
            node,
            made: 0,
            inbound: Vec::new(),
            outbound: Vec::new(),
            owed: Vec::new(),
            steps: VecDeque::new(),
            told: VecDeque::new(),
        }
    }

    /// Input: something that the endpoint told. True if it belongs to a transfer and nobody else need look at it.
    pub fn take(&mut self, now: Instant, event: &Event<'_, A>) -> bool {
        match *event {
            Event::Request { from, id, ref message } => {
                if !draft::is_robust(message) {
                    return false;
                }
                self.expire(now);
                if let Err(code) = self.requested(now, from, id, message) {
                    self.reply(from, Self::reply_to(id, message), Draft::plain(code, &Vec::new()));
                }
                true
            }
            Event::Rejected { exchange, .. } => {
                let before = self.inbound.len().saturating_add(self.outbound.len());
                self.inbound.retain(|body| !body.recent.contains(exchange));
                self.outbound.retain(|body| !body.recent.contains(exchange));
                self.inbound.len().saturating_add(self.outbound.len()) < before
            }
            _ => false,
        }
    }

    /// Input: the answer to a request.
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn answer(
        &mut self,
        now: Instant,
        request: BurstRequestId,
        answer: &BurstAnswer<'_>,
    ) -> Result<(), AnswerRefused> {
        if !answer.code.is_response() {
            return Err(AnswerRefused::Code(answer.code));
        }
        let place = self.owed.iter().position(|owed| owed.id == request).ok_or(AnswerRefused::UnknownRequest)?;
        let limit = self.options.limits.body;
        if answer.body.len() > limit {
            return Err(AnswerRefused::TooLarge { length: answer.body.len(), limit });
        }
        let owed = self.owed.remove(place);
        self.answered(now, owed, answer);
        Ok(())
    }

    /// What comes next. Call it when the endpoint is drained; it makes at most one input to it.
    pub fn act(&mut self, now: Instant, endpoint: &mut Endpoint<A>) -> ServerAct<A> {
        if let Some(step) = self.steps.pop_front() {
            match step {
                // A request that is gone by now was given up by its sender.
                Step::Respond(request, draft) => {
                    let _gone = draft.lend(|message| endpoint.respond(now, request, message));
                }
                Step::Pass(request) => {
                    let _gone = endpoint.reject(now, request);
                }
                Step::Send(to, token, draft) => {
                    self.send(now, to, token, &draft, endpoint);
                }
            }
            return ServerAct::Again;
        }
        if let Some(told) = self.told.pop_front() {
            return ServerAct::Told(told);
        }
        self.expire(now);
        let mut sleep = self.owed.iter().map(|owed| owed.until).min();
        let mut wait = |until: Instant| sleep = Some(sleep.map_or(until, |other| other.min(until)));
        let (set, lifetime) = (self.options.parameters.set, self.options.parameters.lifetime);
        let mut leaving = None;
        let mut index = 0_usize;
        while let Some(body) = self.inbound.get_mut(index) {
            match body.poll(now, set, lifetime) {
                Ok(draft) => {
                    leaving = Some((body.from, body.token, draft));
                    break;
                }
                Err(Some(until)) => wait(until),
                Err(None) => {
                    self.inbound.remove(index);
                    continue;
                }
            }
            index = index.saturating_add(1);
        }
        if leaving.is_none() {
            for body in &mut self.outbound {
                match body.poll(now) {
                    Ok((token, draft)) => {
                        leaving = Some((body.to, token, draft));
                        break;
                    }
                    Err(until) => wait(until.unwrap_or_else(|| body.expiry())),
                }
            }
        }
        match (leaving, sleep) {
            (Some((to, token, draft)), _) => {
                self.send(now, to, token, &draft, endpoint);
                ServerAct::Again
            }
            (None, Some(until)) => ServerAct::Sleep(until),
            (None, None) => ServerAct::Idle,
        }
    }

    /// Bodies held: those being collected and those kept.
    #[must_use]
    pub fn bodies(&self) -> usize {
        self.inbound.len().saturating_add(self.outbound.len())
    }

    /// Bytes held, this value itself not included.
    #[must_use]
    pub fn memory(&self) -> usize {
        let entries = self.inbound.capacity().saturating_mul(size_of::<Inbound<A>>());
        let entries = entries.saturating_add(self.outbound.capacity().saturating_mul(size_of::<Outbound<A>>()));
        let inbound = self.inbound.iter().fold(entries, |sum, body| sum.saturating_add(body.memory()));
        self.outbound.iter().fold(inbound, |sum, body| sum.saturating_add(body.memory()))
    }
}

impl<A: Copy + Eq + Hash + Debug> BurstServer<A> {
    const fn reply_to(id: RequestId, message: &Message<'_>) -> Reply {
        match message.kind {
            Kind::Confirmable => Reply::To(id, message.token),
            _ => Reply::Plain(message.token),
        }
    }

    fn reply(&mut self, to: A, reply: Reply, draft: Draft) {
        self.steps.push_back(match reply {
            Reply::To(request, _) => Step::Respond(request, draft),
            Reply::Plain(token) => Step::Send(to, token, draft),
        });
    }

    /// A non-confirmable message leaves. For one that the endpoint has no room for: a block waits for a pause, and anything
    /// else counts as lost on the way.
    fn send(&mut self, now: Instant, to: A, token: Token, draft: &Draft, endpoint: &mut Endpoint<A>) {
        let sent: Result<_, Refused> = draft.lend(|message| endpoint.send_of_body(now, to, token, message));
        let Ok(exchange) = sent else {
            if let Some(block) = draft.block(Q_BLOCK2) {
                let of_token = |body: &&mut Outbound<A>| body.to == to && body.has_token(token);
                self.outbound.iter_mut().filter(of_token).for_each(|body| body.held_back(now, block.number));
            }
            return;
        };
        // Whichever body of the peer it was: a reset to it means that the peer knows of none with this token.
        for body in self.inbound.iter_mut().filter(|body| body.from == to && body.token == token) {
            body.recent.push(exchange);
        }
        for body in self.outbound.iter_mut().filter(|body| body.to == to && body.has_token(token)) {
            body.recent.push(exchange);
        }
    }

    /// A request came that has one of the options or both.
    ///
    /// # Errors
    /// The code to answer what cannot be.
    fn requested(&mut self, now: Instant, from: A, id: RequestId, message: &Message<'_>) -> Result<(), Code> {
        let reply = Self::reply_to(id, message);
        if let Reply::Plain(_) = reply {
            self.steps.push_back(Step::Pass(id));
        }
        // Never both kinds in one message (§4.1); a critical option too many is one that is not known (RFC 7252 §5.4.5).
        if draft::is_block_wise(message) || message.values(Q_BLOCK1).count() > 1 {
            return Err(Code::BAD_OPTION);
        }
        let wants = Wants::read(message, self.options.parameters.set)?;
        let key = key_of(message);
        match (draft::block_of(message, Q_BLOCK1), wants) {
            (Some(block), wants) => {
                let block = block.map_err(|_| Code::BAD_REQUEST)?;
                let wants = wants.filter(Wants::begins).unwrap_or(Wants::All(block.size));
                self.payload_came(now, from, reply, message, key, block, wants)
            }
            (None, Some(wants)) => self.more_asked(now, from, reply, message, key, wants),
            (None, None) => Err(Code::BAD_REQUEST),
        }
    }

    /// Blocks of a representation are asked for.
    fn more_asked(
        &mut self,
        now: Instant,
        from: A,
        reply: Reply,
        message: &Message<'_>,
        key: Vec<u8>,
        wants: Wants,
    ) -> Result<(), Code> {
        let is_confirmable = message.kind == Kind::Confirmable;
        let begins = match wants {
            Wants::All(_) => true,
            // By a non-confirmable message it is more likely asked for because it was lost.
            Wants::First(_) => is_confirmable,
            _ => false,
        };
        let tag = message.option(super::REQUEST_TAG);
        if !begins && let Some(place) = self.kept(from, &key, tag) {
            let Some(body) = self.outbound.get_mut(place) else { return Ok(()) };
            return match body.serve(now, &wants, message.token, false) {
                outbound::Served::Flowing => {
                    if let Reply::To(request, _) = reply {
                        self.first_in_acknowledgement(now, place, request);
                    }
                    Ok(())
                }
                outbound::Served::PastEnd => Err(Code::BAD_REQUEST),
            };
        }
        let options = own_options(draft::options_of(message), &OURS);
        let id = self.owe(now, from, key, wants, reply, None)?;
        let (code, body) = (message.code, message.payload().to_vec());
        self.told.push_back(ServerTold::Request { id, from, code, options, body });
        Ok(())
    }

    /// The next block that leaves is the answer to a confirmable request.
    fn first_in_acknowledgement(&mut self, now: Instant, place: usize, request: RequestId) {
        let leaving = self.outbound.get_mut(place).map(|body| body.poll(now));
        self.steps.push_back(match leaving {
            Some(Ok((_, draft))) => Step::Respond(request, draft),
            // Whatever it asked for is on its way already.
            _ => Step::Respond(request, Draft::plain(Code::VALID, &Vec::new())),
        });
    }

    fn owe(
        &mut self,
        now: Instant,
        from: A,
        key: Vec<u8>,
        wants: Wants,
        reply: Reply,
        tag: Option<Vec<u8>>,
    ) -> Result<BurstRequestId, Code> {
        if self.owed.len() >= self.options.limits.bodies {
            return Err(Code::SERVICE_UNAVAILABLE);
        }
        self.made = self.made.wrapping_add(1);
        let id = BurstRequestId(self.made);
        let until = now.after(self.options.parameters.lifetime);
        self.owed.push(Owed { id, from, key, wants, reply, tag, until });
        Ok(id)
    }

    fn pause(&self) -> Span {
        let word = self.chance.part(9_177).at(Purpose::Dither, [self.node, self.made as u32, 1, 0]);
        self.options.parameters.drawn_pause(word)
    }

    fn etag(&self) -> Vec<u8> {
        let first = self.chance.part(9_177).wide(Purpose::Start, [self.node, 1, 0, 0]);
        tag_of(first, self.made, self.options.tag_length)
    }
}

/// What of a request tells one representation from another: its method and all options that are part of a cache key
/// (RFC 7252 §5.4.6), but for those of the transfer and the format of the request's own body.
fn key_of(message: &Message<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    key.push(message.code.to_byte());
    for option in message.options() {
        let is_no_key = option.number & 0x1e == 0x1c || matches!(option.number, number::CONTENT_FORMAT | number::ETAG);
        if !is_no_key && !OURS.contains(&option.number) {
            key.extend_from_slice(&option.number.to_be_bytes());
            key.extend_from_slice(&(option.value.len() as u16).to_be_bytes());
            key.extend_from_slice(option.value);
        }
    }
    key
}

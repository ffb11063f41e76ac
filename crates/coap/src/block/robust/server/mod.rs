//! The server's side: whole bodies received and sent in bursts.

mod bodies;
mod inbound;
mod outbound;
mod requests;
mod selection;

use alloc::{collections::VecDeque, vec::Vec};
use core::{fmt::Debug, hash::Hash};

use millpond_control::{ChanceSeed, Instant, Purpose, Span};

use super::{
    BurstOptions, BurstParameters, Next, Q_BLOCK2, Whole,
    draft::{Draft, tag_of},
};
use crate::{
    Endpoint, Event, Refused, RequestId,
    message::{Code, Kind, Message, Token},
    quota::Source,
    transfer::{self, AddressValidation, Answer, ECHO_LENGTH},
};

use inbound::{Inbound, Stage};
use outbound::{Outbound, Representation};
use selection::BlockSelection;

/// A server of Q-Block1 and Q-Block2 beside an [`Endpoint`], for any number of peers.
///
/// Driven like a [`BurstClient`](super::BurstClient): requests that have either option go to
/// [`request_came`](Self::request_came), what else the endpoint tells to [`take`](Self::take) first; once the
/// endpoint is drained, [`act`](Self::act) puts the next message into it. What is taken comes back whole, to be
/// answered by [`answer`](Self::answer), with a body of any length.
///
/// # What it does, and how it reads RFC 9177
///
/// * Every representation that needs several blocks is **kept**, with an ETag (made if the answer has none), for
///   NON_PARTIAL_TIMEOUT after it was last asked for or sent, one for each peer and resource. Requests for the first block by
///   confirmable message, and for the whole body, ask the application anew; the same bytes again are the same representation.
/// * **More of a representation** that is no longer kept is asked of the application, and what was asked for leaves of what it
///   answers now, under another ETag. So is more of one that it gave an hour ago; the same bytes keep their ETag.
/// * **Blocks leave** until nothing was asked for during all the waits of a receiver, one after the other.
/// * A **reset** to a block or a complaint drops the body that it belongs to (§4.3).
/// * **Confirmable** payloads are answered in their acknowledgements: 2.31 as far as all is there, else 4.08; requests for
///   blocks with the first of them, or 2.31 if none can leave yet. RFC 9177 wants empty ones, which an endpoint sends only
///   where an answer follows. Such messages also come of controllers that make some confirmable.
/// * Observe is not looked at: the layer above notifies.
#[derive(Debug)]
pub(crate) struct BurstServer<A> {
    options: BurstOptions,
    /// Of peers that have others than all others.
    parameters: Vec<(A, BurstParameters)>,
    chance: ChanceSeed,
    node: u32,
    made: u64,
    inbound: Vec<Inbound<A>>,
    outbound: Vec<Outbound<A>>,
    pending: Vec<PendingRequest<A>>,
    steps: VecDeque<Step<A>>,
    events: VecDeque<(RequestId, A, Whole)>,
}

/// What may leave for a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requester {
    pub(crate) address_validation: AddressValidation,
    /// What its sender is to send back.
    pub(crate) echo: Option<[u8; ECHO_LENGTH]>,
}

/// A request that the application has and has not answered.
#[derive(Debug)]
struct PendingRequest<A> {
    id: RequestId,
    from: A,
    source: Source,
    requester: Requester,
    key: Vec<u8>,
    selection: BlockSelection,
    reply: Reply,
    /// Request-Tag of a body that came in bursts.
    tag: Option<Vec<u8>>,
    until: Instant,
}

impl<A> PendingRequest<A> {
    /// Bytes held beside this value.
    fn memory(&self) -> usize {
        let tag = self.tag.as_ref().map_or(0, Vec::capacity);
        self.key.capacity().saturating_add(tag).saturating_add(self.selection.memory())
    }
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
    /// It is acknowledged, and gets none either.
    Hush(RequestId),
    Send(A, Token, Draft),
}

impl<A: Copy + Eq + Hash + Debug> BurstServer<A> {
    /// A server that was asked nothing yet. `chance` and `node` address the words of chance for pauses and first ETags.
    #[must_use]
    pub(crate) const fn new(options: BurstOptions, chance: ChanceSeed, node: u32) -> Self {
        Self {
            options,
            parameters: Vec::new(),
            chance,
            node,
            made: 0,
            inbound: Vec::new(),
            outbound: Vec::new(),
            pending: Vec::new(),
            steps: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Setting: this peer has these parameters, which it must share.
    pub(crate) fn set_parameters(&mut self, peer: A, parameters: BurstParameters) {
        self.parameters.retain(|(other, _)| *other != peer);
        if parameters != self.options.parameters {
            self.parameters.push((peer, parameters));
        }
    }

    /// Those of a peer.
    fn parameters_of(&self, peer: A) -> BurstParameters {
        let own = self.parameters.iter().find(|(other, _)| *other == peer);
        own.map_or(self.options.parameters, |(_, parameters)| *parameters)
    }

    /// Input: something that the endpoint told. True if it belongs to a transfer and nobody else need look at it.
    pub(crate) fn take(&mut self, event: &Event<'_, A>) -> bool {
        match *event {
            // Some messages leave as confirmable ones if the controller wishes so.
            Event::Rejected { exchange, .. } | Event::Undelivered { exchange, .. } => {
                let before = self.bodies();
                self.inbound.retain(|body| !body.recent.contains(exchange));
                self.outbound.retain(|body| !body.recent.contains(exchange));
                self.bodies() < before
            }
            Event::Delivered { exchange, .. } => {
                let of_inbound = self.inbound.iter().any(|body| body.recent.contains(exchange));
                of_inbound || self.outbound.iter().any(|body| body.recent.contains(exchange))
            }
            _ => false,
        }
    }

    /// Input: a request that has either option.
    ///
    /// # Errors
    /// The code with which it is answered if it cannot be taken.
    pub(crate) fn request_came(
        &mut self,
        now: Instant,
        (from, source, requester): (A, Source, Requester),
        id: RequestId,
        message: &Message<'_>,
    ) -> Result<(), Code> {
        self.expire(now);
        for body in self.outbound.iter_mut().filter(|body| body.to == from) {
            body.echo = requester.echo;
        }
        let made = self.made;
        let taken = self.requested(now, (from, source, requester.address_validation), id, message);
        if let Some(request) = self.pending.last_mut().filter(|_| self.made != made) {
            request.requester = requester;
        }
        taken.inspect_err(|code| {
            self.reply(from, Self::reply_to(id, message), Draft::bare(*code));
        })
    }

    /// What the client is to send back before it gets this answer: a burst leaves for a request alone that brings what was sent
    /// to its address, and nothing longer than may go there for an address that has shown nothing.
    pub(crate) fn withholds(
        &self,
        request: RequestId,
        options: &[(u16, &[u8])],
        body: &[u8],
    ) -> Option<[u8; ECHO_LENGTH]> {
        /// Of a message beside what the application says: header, token, Q-Block2, a short ETag, marker.
        const OVERHEAD: usize = 32;
        let request = self.pending.iter().find(|other| other.id == request)?;
        let is_withheld = match request.requester.address_validation {
            AddressValidation::Validated => false,
            // What came in bursts was carried out: its answer begins with one block, and is not to be made once more.
            AddressValidation::Remembered => {
                request.tag.is_none() && body.len() > request.selection.size().bytes() as usize
            }
            AddressValidation::Unvalidated(limit) => {
                let options = options.iter().fold(0_usize, |sum, (_, value)| sum.saturating_add(value.len()));
                body.len().saturating_add(options).saturating_add(OVERHEAD) > limit.message()
            }
        };
        request.requester.echo.filter(|_| is_withheld)
    }

    /// Input: a request gets no answer, as its sender wished or because nobody makes one.
    ///
    /// # Errors
    /// It was answered or dropped before.
    pub(crate) fn pass(&mut self, request: RequestId, is_wished: bool) -> Result<(), transfer::Refused> {
        let place = self.place_of(request)?;
        if let Reply::To(request, _) = self.pending.remove(place).reply {
            self.steps.push_back(if is_wished { Step::Hush(request) } else { Step::Pass(request) });
        }
        Ok(())
    }

    fn place_of(&self, request: RequestId) -> Result<usize, transfer::Refused> {
        let place = self.pending.iter().position(|other| other.id == request);
        place.ok_or(transfer::Refused::Endpoint(Refused::UnknownRequest))
    }

    /// Input: a peer is no more, and nothing of it is kept.
    pub(crate) fn forget_peer(&mut self, peer: A) {
        self.inbound.retain(|body| body.from != peer);
        self.outbound.retain(|body| body.to != peer);
        self.pending.retain(|request| request.from != peer);
    }

    /// Input: the answer to a request.
    ///
    /// # Errors
    /// What cannot be sent.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        request: RequestId,
        answer: &Answer<'_>,
    ) -> Result<(), transfer::Refused> {
        if !answer.code.is_response() {
            return Err(Refused::Code(answer.code).into());
        }
        let place = self.place_of(request)?;
        let limit = self.options.limits.bytes;
        if answer.body.len() > limit {
            return Err(transfer::Refused::LongAnswer { length: answer.body.len(), limit });
        }
        let request = self.pending.remove(place);
        self.answered(now, request, answer);
        Ok(())
    }

    /// What comes next. Call it when the endpoint is drained; it makes at most one input to it.
    pub(crate) fn act(&mut self, now: Instant, endpoint: &mut Endpoint<A>) -> Next<(RequestId, A, Whole)> {
        if let Some(step) = self.steps.pop_front() {
            match step {
                // A request that is gone by now was given up by its sender.
                Step::Respond(request, draft) => {
                    let _gone = draft.lend(|message| endpoint.respond(now, request, message));
                }
                Step::Pass(request) => {
                    let _gone = endpoint.reject(now, request);
                }
                Step::Hush(request) => {
                    let _gone = endpoint.suppress_response(now, request);
                }
                Step::Send(to, token, draft) => {
                    self.send(now, to, token, &draft, endpoint);
                }
            }
            return Next::Again;
        }
        if let Some(event) = self.events.pop_front() {
            return Next::Event(event);
        }
        self.expire(now);
        let mut sleep = self.pending.iter().map(|request| request.until).min();
        let mut wait = |until: Instant| sleep = Some(sleep.map_or(until, |other| other.min(until)));
        let mut leaving = None;
        let mut index = 0_usize;
        while let Some(body) = self.inbound.get_mut(index) {
            match body.poll(now) {
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
                Next::Again
            }
            (None, Some(until)) => Next::Sleep(until),
            (None, None) => Next::Idle,
        }
    }

    /// Bodies held: those being collected and those kept.
    #[must_use]
    pub(crate) fn bodies(&self) -> usize {
        self.inbound.len().saturating_add(self.outbound.len())
    }

    /// Bytes held, this value itself not included.
    #[must_use]
    pub(crate) fn memory(&self) -> usize {
        let entries = self.inbound.capacity().saturating_mul(size_of::<Inbound<A>>());
        let entries = entries.saturating_add(self.outbound.capacity().saturating_mul(size_of::<Outbound<A>>()));
        let entries =
            entries.saturating_add(self.parameters.capacity().saturating_mul(size_of::<(A, BurstParameters)>()));
        let entries = entries.saturating_add(self.pending.capacity().saturating_mul(size_of::<PendingRequest<A>>()));
        let entries = self.pending.iter().fold(entries, |sum, request| sum.saturating_add(request.memory()));
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
        let of_token = |body: &Outbound<A>| body.to == to && body.has_token(token);
        let exchange = match (sent, draft.block(Q_BLOCK2)) {
            (Ok(exchange), _) => exchange,
            // No block of it will ever fit.
            (Err(Refused::Message(_)), Some(_)) => return self.outbound.retain(|body| !of_token(body)),
            (Err(_), Some(block)) => {
                let bodies = self.outbound.iter_mut().filter(|body| of_token(body));
                return bodies.for_each(|body| body.held_back(now, block.number));
            }
            (Err(_), None) => return,
        };
        // Whichever body of the peer it was: a reset to it means that the peer knows of none with this token.
        for body in self.inbound.iter_mut().filter(|body| body.from == to && body.token == token) {
            body.recent.push(exchange);
        }
        for body in self.outbound.iter_mut().filter(|body| body.to == to && body.has_token(token)) {
            body.recent.push(exchange);
        }
    }

    fn pause(&self, parameters: &BurstParameters) -> Span {
        let word = self.chance.part(9_177).at(Purpose::Dither, [self.node, self.made as u32, 1, 0]);
        parameters.drawn_pause(word)
    }

    fn etag(&self) -> Vec<u8> {
        let first = self.chance.part(9_177).wide(Purpose::Start, [self.node, 1, 0, 0]);
        tag_of(first, self.made, self.options.tag_length)
    }
}

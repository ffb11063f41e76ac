//! Bodies in bursts (RFC 9177), as one way for the bodies of a stack to travel: see [`ClientRequest::q_block`](super::ClientRequest::q_block).

use alloc::boxed::Box;
use core::{fmt::Debug, hash::Hash, num::NonZeroU32};

use millpond_control::{ChanceSeed, Instant};

use super::{
    Answer, ClientRequest, ClientRequestId, CoapStack, Config, Progress, Refused, RequestFailure, options,
    pending_request::PendingRequest, queued_event::QueuedEvent, unvalidated::Sent,
};
use crate::block::robust::{
    BurstClient, BurstFailure, BurstId, BurstLimits, BurstOptions, BurstParameters, BurstServer, End, Next, Requester,
};
use crate::endpoint::{self, RequestId};
use crate::invariant::Sure;
use crate::layer::MessageLayer;
use crate::message::{Code, Message, number};
use crate::output::{Entry, Output};
use crate::parts;
use crate::quota::Source;

/// Requests in bursts at a time.
const MOST_ASKS: usize = 1_024;
/// Requests that the application has not answered.
const MOST_REQUESTS: usize = 4_096;
/// Peers of which it is remembered whether they know bursts.
const MOST_PEERS: usize = 1_024;

/// Requests that came in bursts have names of their own: no slot of an endpoint is that high.
const OF_BURSTS: u32 = 1 << 31;

/// Both sides of a stack.
#[derive(Debug)]
pub(super) struct Bursts<A> {
    /// Once somebody has asked.
    client: Option<Box<BurstClient<A>>>,
    /// If requests are taken.
    server: Option<Box<BurstServer<A>>>,
    /// When one of the two has something to do.
    wakes: Option<Instant>,
}

impl<A: Copy + Eq + Hash + Debug> Bursts<A> {
    pub(super) fn new(config: &Config, chance: ChanceSeed, node: u32) -> Self {
        let server = config.q_block.filter(|_| parts::SERVER && parts::Q_BLOCK).map(|parameters| {
            let limits = BurstLimits {
                body: config.limits.body,
                bodies: config.limits.bursts as usize,
                bodies_per_peer: config.limits.bodies_per_peer as usize,
                requests: MOST_REQUESTS,
                bytes: config.limits.bodies,
                peers: 0,
            };
            Box::new(BurstServer::new(options_of(config, parameters, limits), chance, node))
        });
        Self { client: None, server, wakes: None }
    }

    /// Requests are taken.
    pub(super) const fn are_served(&self) -> bool {
        parts::Q_BLOCK && self.server.is_some()
    }

    /// There are none either way, so that nothing is due here.
    pub(super) const fn are_none(&self) -> bool {
        !parts::Q_BLOCK || (self.client.is_none() && self.server.is_none())
    }

    /// Those of a peer, if they are not all others'.
    pub(super) fn set_parameters(&mut self, peer: A, parameters: BurstParameters) {
        if let Some(server) = &mut self.server {
            server.set_parameters(peer, parameters);
        }
    }

    /// A peer is no more: nothing of its bodies is kept.
    pub(super) fn forget_peer(&mut self, peer: A) {
        if let Some(server) = &mut self.server {
            server.forget_peer(peer);
        }
    }

    /// When it has something to do.
    pub(super) const fn wakes(&self) -> Option<Instant> {
        self.wakes
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let client =
            self.client.as_ref().map_or(0, |client| size_of::<BurstClient<A>>().saturating_add(client.memory()));
        let server =
            self.server.as_ref().map_or(0, |server| size_of::<BurstServer<A>>().saturating_add(server.memory()));
        client.saturating_add(server)
    }

    /// Bytes of the bodies of requests.
    pub(super) fn request_bytes(&self) -> usize {
        self.client.as_ref().map_or(0, |client| client.memory())
    }

    /// What the endpoint told is of a body in bursts. Requests are not looked at.
    fn take<'e>(&mut self, now: Instant, event: impl FnOnce() -> Option<endpoint::Event<'e, A>>) -> bool
    where
        A: 'e,
    {
        let client = self.client.as_deref_mut();
        let server = self.server.as_deref_mut().filter(|server| server.bodies() > 0);
        if client.is_none() && server.is_none() {
            return false;
        }
        let Some(event) = event() else { return false };
        client.is_some_and(|client| client.take(now, &event)) || server.is_some_and(|server| server.take(&event))
    }

    /// A request that has either option.
    ///
    /// # Errors
    /// The code with which it is answered if it cannot be taken.
    pub(super) fn request_came(
        &mut self,
        now: Instant,
        (from, source, requester): (A, Source, Requester),
        id: RequestId,
        message: &Message<'_>,
    ) -> Result<(), Code> {
        self.server.as_mut().map_or(Ok(()), |server| server.request_came(now, (from, source, requester), id, message))
    }
}

fn options_of(config: &Config, parameters: BurstParameters, limits: BurstLimits) -> BurstOptions {
    BurstOptions {
        parameters,
        size: config.block,
        tag_length: config.etag_length.max(1),
        limits,
        ..BurstOptions::RFC9177
    }
}

impl RequestId {
    /// The request of this number among those that came in bursts.
    pub(crate) const fn of_burst(number: u64) -> Self {
        let slot = OF_BURSTS | number as u32 & (OF_BURSTS - 1);
        Self { slot, generation: NonZeroU32::MIN.saturating_add((number >> 31) as u32) }
    }

    /// Whether the request came in bursts (RFC 9177), or its answer is to leave so: such an answer is whole.
    #[must_use]
    pub const fn is_of_burst(self) -> bool {
        parts::Q_BLOCK && self.slot & OF_BURSTS != 0
    }
}

impl<L: MessageLayer> CoapStack<L> {
    /// Whether an output that is no request is of a body in bursts.
    pub(super) fn is_of_burst(&mut self, now: Instant, entry: &Entry<L::Peer>) -> bool {
        let Self { bursts, layer, .. } = self;
        let event = || if let Output::Event(event) = layer.show(entry) { Some(event) } else { None };
        bursts.take(now, event)
    }

    /// Whether a peer may take bursts, as far as is known. Over a stream nobody does.
    pub(super) fn may_burst(&mut self, to: L::Peer) -> bool {
        if self.layer.datagrams().is_none() || self.layer.protection().is_some() {
            return false;
        }
        let (config, chance, node) = (self.config, self.chance, self.layer.node());
        let client = self.bursts.client.get_or_insert_with(|| {
            let limits = BurstLimits {
                body: config.limits.bytes,
                bodies: MOST_ASKS,
                bodies_per_peer: MOST_ASKS,
                requests: 0,
                bytes: config.limits.bytes,
                peers: MOST_PEERS,
            };
            let parameters = config.q_block.unwrap_or(BurstParameters::PACED);
            Box::new(BurstClient::new(options_of(&config, parameters, limits), chance, node))
        });
        client.is_supported_by(to) != Some(false)
    }

    /// Begins a request in bursts. Its body is kept here as well: a peer that does not know bursts gets it block by block.
    pub(super) fn begin_burst(
        &mut self,
        now: Instant,
        pending: PendingRequest<L::Peer>,
        request: &ClientRequest<'_>,
    ) -> Result<ClientRequestId, Refused> {
        let limit = self.config.limits.bytes;
        let (to, mut pending) = (pending.to, Box::new(pending));
        let needed = pending.memory().saturating_add(request.body.len());
        if self.waiting_bytes().saturating_add(needed) > limit {
            return Err(Refused::OutOfBytes { limit });
        }
        let Some(client) = &mut self.bursts.client else { return Err(Refused::OutOfBytes { limit }) };
        let slot = self.requests.slots.put(None);
        let id = client.request(now, to, request, slot).inspect_err(|_| self.requests.remove(slot))?;
        (pending.burst, pending.has_next) = (Some(id), false);
        self.requests.put_back(slot, pending);
        self.counts.client_requests = self.counts.client_requests.saturating_add(1);
        Ok(self.requests.name(slot))
    }

    /// A request in bursts is no longer wanted.
    pub(super) fn cancel_burst(&mut self, id: BurstId) {
        if let Some(client) = &mut self.bursts.client {
            client.cancel(id);
        }
    }

    /// How far a request in bursts has come.
    pub(super) fn progress_of_burst(&self, id: BurstId) -> Option<Progress> {
        let (sent, received, total) = self.bursts.client.as_ref()?.progress(id)?;
        Some(Progress { sent, received, total })
    }

    /// Does one thing for bodies in bursts, now that the endpoint is drained. False if there is none.
    pub(super) fn act_for_bursts(&mut self, now: Instant) -> bool {
        let Self { bursts, layer, .. } = self;
        let Some(endpoint) = layer.datagrams() else { return false };
        bursts.wakes = None;
        let mut sleep = |until: Instant| bursts.wakes = Some(bursts.wakes.map_or(until, |other| other.min(until)));
        if let Some(server) = &mut bursts.server {
            match server.act(now, endpoint) {
                Next::Again => return true,
                Next::Event((id, from, whole)) => {
                    self.counts.requests = self.counts.requests.saturating_add(1);
                    self.events.push_back(QueuedEvent::BurstRequest { id, from, whole });
                    return true;
                }
                Next::Sleep(until) => sleep(until),
                Next::Idle => {}
            }
        }
        let Some(client) = &mut bursts.client else { return false };
        match client.act(now, endpoint) {
            Next::Again => true,
            Next::Event((id, end)) => {
                self.burst_ended(now, id, end);
                true
            }
            Next::Sleep(until) => {
                sleep(until);
                false
            }
            Next::Idle => false,
        }
    }

    fn burst_ended(&mut self, now: Instant, id: BurstId, end: End) {
        let slot = id.slot;
        let Some(mut pending) = self.requests.take(slot).sure("request of a body that ended") else { return };
        pending.burst = None;
        match end {
            End::Done(whole) => {
                let (request, from) = (self.requests.name(slot), pending.to);
                self.requests.remove(slot);
                self.events.push_back(QueuedEvent::BurstAnswer { request, from, whole });
            }
            End::Failed(why) => {
                let why = match why {
                    BurstFailure::Exchange(why) => RequestFailure::Exchange(why),
                    BurstFailure::Refused(why) => RequestFailure::Refused(why),
                    why => RequestFailure::Burst(why),
                };
                self.fail(now, slot, *pending, why, 0);
            }
            End::Unsupported => {
                pending.has_next = true;
                self.requests.put_back(slot, pending);
                self.go_on(now, slot);
            }
        }
    }

    /// The application answers a request that came in bursts.
    pub(super) fn answer_in_bursts(&mut self, now: Instant, id: RequestId, answer: &Answer<'_>) -> Result<(), Refused> {
        options::check_answer(answer.code, answer.options)?;
        let gone = Refused::Endpoint(endpoint::Refused::UnknownRequest);
        let Some(server) = &mut self.bursts.server else { return Err(gone) };
        let echo = server.withholds(id, answer.options, answer.body);
        let challenge = echo.as_ref().map(|value| [(number::ECHO, &value[..])]);
        let prove = challenge.as_ref().map(|challenge| Answer::new(Code::UNAUTHORIZED, challenge));
        let answer = prove.unwrap_or(*answer);
        let asks_for_proof = echo.is_some();
        self.sent = Sent { code: answer.code, payload: answer.body.len(), asks_for_proof, ..Sent::NOTHING };
        self.counts.limited = self.counts.limited.saturating_add(u64::from(asks_for_proof));
        server.answer(now, id, &answer)
    }

    /// A request that came in bursts gets no answer, as its sender wished or because nobody makes one.
    pub(super) fn pass_in_bursts(&mut self, id: RequestId, is_wished: bool) -> Result<(), Refused> {
        let server = self.bursts.server.as_mut().ok_or(endpoint::Refused::UnknownRequest)?;
        server.pass(id, is_wished)
    }
}

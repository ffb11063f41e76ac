//! Requests that a stack was handed, and how their ends are told.

use std::{
    collections::{HashMap, VecDeque},
    hash::BuildHasherDefault,
    net::SocketAddr,
    time::Duration,
};

use bytes::Bytes;
use millpond_coap::{
    Event as Trace, ExchangeId, Failure,
    block::{DownloadError, robust::BurstFailure},
    message::Message,
};
use millpond_control::Instant;
use rustc_hash::FxHasher;
use tokio::sync::oneshot;

use super::{Outcome, Reply, RequestNumber, RequestSpec};
use crate::{
    Error, ExchangeReport, Grade, NotSent, Options, Response, Why,
    clock::duration,
    security::ServerName,
    socket::Gatherings,
    transfer::{ClientRequestId, Event, RequestFailure},
    udp::Address,
};

type Quick<K, V> = HashMap<K, V, BuildHasherDefault<FxHasher>>;

/// A request that a stack was handed.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) number: RequestNumber,
    pub(crate) peer: SocketAddr,
    /// The peer as the stack knows it: over DTLS that of one session.
    to: Address,
    reply: Reply,
    started: Instant,
    /// It is an observation that has begun, no longer among what its peer is asked, and for so long its newest state is fresh.
    observing: Option<Duration>,
    /// Nothing of it is outstanding in the sense of NSTART: it was acknowledged, and its response is awaited.
    is_acknowledged: bool,
}

/// Somebody waits for a sign of life of a peer with which there is no session yet.
#[derive(Debug)]
pub(crate) struct EarlyPing {
    pub(crate) peer: SocketAddr,
    pub(crate) name: ServerName,
    pub(crate) reply: oneshot::Sender<Result<Duration, Error>>,
}

/// Somebody waits for a sign of life.
#[derive(Debug)]
pub(crate) struct Ping {
    pub(crate) socket: usize,
    pub(crate) exchange: ExchangeId,
    pub(crate) peer: SocketAddr,
    /// The peer as the stack knows it.
    pub(crate) to: Address,
    pub(crate) started: Instant,
    pub(crate) reply: oneshot::Sender<Result<Duration, Error>>,
}

/// Where a request is.
#[derive(Debug)]
enum Known {
    /// It waits for room at its stack.
    Held(Box<RequestSpec>),
    /// The stack has it.
    UnderWay(usize, ClientRequestId),
}

/// All requests, by number; those under way also by what they are at their stacks.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    pending: Quick<(usize, ClientRequestId), Pending>,
    numbers: Quick<RequestNumber, Known>,
    pub(crate) pings: Vec<Ping>,
    pub(crate) early_pings: Vec<EarlyPing>,
    pub(crate) gatherings: Gatherings,
    /// How many of them are acknowledged and await their response.
    acknowledged: usize,
    /// Peers that have acknowledged a request, once for each.
    pub(crate) acknowledged_by: Vec<SocketAddr>,
    /// Peers for which a request left the books, once for each.
    pub(crate) ended: Vec<SocketAddr>,
}

impl PendingRequests {
    pub(crate) fn add(
        &mut self,
        socket: usize,
        id: ClientRequestId,
        number: RequestNumber,
        (peer, to): (SocketAddr, Address),
        reply: Reply,
        started: Instant,
    ) {
        self.numbers.insert(number, Known::UnderWay(socket, id));
        let pending = Pending { number, peer, to, reply, started, observing: None, is_acknowledged: false };
        self.pending.insert((socket, id), pending);
    }

    /// A request that waits for room, by whom it is for.
    pub(crate) fn peer_of_held(&self, number: RequestNumber) -> Option<SocketAddr> {
        self.held(number).map(|spec| spec.peer)
    }

    /// Where the stack knows a request.
    pub(crate) fn find(&self, number: RequestNumber) -> Option<(usize, ClientRequestId)> {
        match self.numbers.get(&number) {
            Some(Known::UnderWay(socket, id)) => Some((*socket, *id)),
            _ => None,
        }
    }

    /// A request waits for room at its stack.
    fn hold(&mut self, spec: Box<RequestSpec>) {
        self.numbers.insert(spec.number, Known::Held(spec));
    }

    /// A request that waits.
    fn held(&self, number: RequestNumber) -> Option<&RequestSpec> {
        match self.numbers.get(&number) {
            Some(Known::Held(spec)) => Some(spec),
            _ => None,
        }
    }

    /// Takes out a request that waits.
    fn take_held(&mut self, number: RequestNumber) -> Option<Box<RequestSpec>> {
        self.held(number)?;
        match self.numbers.remove(&number) {
            Some(Known::Held(spec)) => Some(spec),
            _ => None,
        }
    }

    /// Whether nothing is under way, or waits.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.numbers.is_empty()
    }

    /// Whether nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Those whose answer is the only one that is wanted.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = (usize, ClientRequestId)> {
        self.pending.iter().filter(|(_, pending)| !pending.reply.observes()).map(|(place, _)| *place)
    }

    /// For how long the newest state is fresh of the observation for which that is shortest.
    #[cfg(feature = "tcp")]
    pub(crate) fn shortest_freshness(&self) -> Option<Duration> {
        self.pending.values().filter_map(|pending| pending.observing).min()
    }

    /// Requests to a peer that may count for NSTART.
    pub(crate) fn outstanding(&self, peer: SocketAddr) -> usize {
        self.pending
            .values()
            .filter(|pending| pending.peer == peer && !(pending.is_acknowledged || pending.observing.is_some()))
            .count()
    }

    /// Requests to a peer that were not acknowledged, observations that have begun not among them.
    pub(crate) fn unheard(&self, peer: SocketAddr) -> Vec<(usize, ClientRequestId)> {
        let is_meant =
            |pending: &Pending| pending.peer == peer && pending.observing.is_none() && !pending.is_acknowledged;
        self.pending.iter().filter(|(_, pending)| is_meant(pending)).map(|(place, _)| *place).collect()
    }

    /// A session over a socket is over, and with it what was asked in it. Returns what the stack is to forget.
    pub(crate) fn end_session(&mut self, socket: usize, session: Address, error: &Error) -> Vec<ClientRequestId> {
        let is_of_it = |place: &(usize, ClientRequestId), pending: &Pending| place.0 == socket && pending.to == session;
        let of_it: Vec<_> =
            self.pending.iter().filter(|(place, it)| is_of_it(place, it)).map(|(place, _)| *place).collect();
        of_it.iter().for_each(|place| self.end(*place, Err(error.clone())));
        self.end_pings(|ping| ping.socket == socket && ping.to == session, error);
        of_it.into_iter().map(|(_, id)| id).collect()
    }

    /// Who waits for these signs of life waits for nothing. Their exchanges give up by themselves.
    pub(crate) fn end_pings(&mut self, which: impl Fn(&Ping) -> bool, error: &Error) {
        for ping in self.pings.extract_if(.., |ping| which(ping)) {
            // The client may have gone.
            let _ = ping.reply.send(Err(error.clone()));
        }
    }

    /// Takes out who waits for a session with a peer to ask for a sign of life.
    pub(crate) fn take_early_pings(&mut self, peer: SocketAddr) -> Vec<EarlyPing> {
        self.early_pings.extract_if(.., |ping| ping.peer == peer).collect()
    }

    /// A request is over.
    pub(crate) fn end(&mut self, place: (usize, ClientRequestId), outcome: Result<Outcome, Error>) {
        let Some(pending) = self.pending.remove(&place) else { return };
        self.numbers.remove(&pending.number);
        if pending.is_acknowledged {
            self.acknowledged = self.acknowledged.saturating_sub(1);
        }
        if pending.observing.is_none() {
            self.ended.push(pending.peer);
        }
        pending.reply.end(outcome);
    }

    /// A request was answered, for the last time or not.
    pub(crate) fn answered(&mut self, place: (usize, ClientRequestId), response: Response, goes_on: bool) {
        if !goes_on {
            return self.end(place, Ok(Outcome::Answered(response)));
        }
        let Some(pending) = self.pending.get_mut(&place) else { return };
        if pending.observing.replace(response.freshness()).is_none() {
            self.ended.push(pending.peer);
        }
        if let Reply::Observed(newest) = &pending.reply {
            newest.put(response);
        }
    }

    /// Everything that is under way.
    pub(crate) fn all(&self) -> Vec<(usize, ClientRequestId)> {
        self.pending.keys().copied().collect()
    }

    /// Whether any of them is acknowledged and awaits its response.
    pub(crate) const fn has_acknowledged(&self) -> bool {
        self.acknowledged > 0
    }

    /// A request is no longer wanted by anyone who could be answered.
    pub(crate) fn drop_silently(&mut self, place: (usize, ClientRequestId)) {
        self.end(place, Err(Error::Closed));
    }

    /// The stack of a socket told something of requests.
    pub(crate) fn event(&mut self, socket: usize, now: Instant, event: Event<'_, Address>) {
        match event {
            Event::Answer { request: id, from, message, body, goes_on, sample, copies } => {
                let report = ExchangeReport {
                    peer: from.peer(),
                    copies,
                    round_trip: sample.map(|sample| duration(sample.since_first())),
                    grade: sample.map(|sample| Grade::of(&sample)),
                };
                let response =
                    Response::received(message.code, options(&message), Bytes::copy_from_slice(&body), report);
                self.answered((socket, id), response, goes_on);
            }
            Event::Unanswered { request: id, is_acknowledged, .. } => {
                let outcome = if is_acknowledged { Outcome::Acknowledged } else { Outcome::Sent };
                self.end((socket, id), Ok(outcome));
            }
            Event::Failed { request: id, to, why, copies } => {
                let place = (socket, id);
                let started = self.pending.get(&place).map_or(now, |pending| pending.started);
                self.end(place, Err(failure(to.peer(), why, copies, since(started, now))));
            }
            Event::GroupAnswer { group, from, message, body } => {
                let report = ExchangeReport { peer: from.peer(), copies: 1, round_trip: None, grade: None };
                let body = Bytes::copy_from_slice(&body);
                let response = Response::received(message.code, options(&message), body, report);
                self.gatherings.tell(socket, group, Ok(response));
            }
            Event::GroupAnswerLost { group, from, why } => {
                let lost = Error::transfer(from.peer(), Why::said_by(why));
                self.gatherings.tell(socket, group, Err(lost));
            }
            Event::GroupOver { group } => self.gatherings.end(socket, group),
            // A client has no resources; its stack answers nothing by itself.
            _ => {}
        }
    }

    /// It told something of a single exchange.
    pub(crate) fn trace(&mut self, socket: usize, now: Instant, event: &Trace<'_, Address>) {
        if self.pings.is_empty() {
            return;
        }
        let (exchange, peer, outcome) = match event {
            Trace::Pong { exchange, from, sample } => (*exchange, *from, Ok((*sample).since_first())),
            Trace::Failed { exchange, to, why, copies } => (*exchange, *to, Err((*why, *copies))),
            _ => return,
        };
        let is_it = |ping: &Ping| ping.socket == socket && ping.exchange == exchange;
        let Some(place) = self.pings.iter().position(is_it) else { return };
        let ping = self.pings.swap_remove(place);
        let after = since(ping.started, now);
        let failed = |(why, copies)| failure(peer.peer(), RequestFailure::Exchange(why), copies, after);
        // The client may have gone.
        let _ = ping.reply.send(outcome.map(duration).map_err(failed));
    }

    /// What the message of a request is: acknowledged and awaiting its response, or on its way once more.
    pub(crate) fn acknowledged(&mut self, place: (usize, ClientRequestId), is: bool) {
        if let Some(pending) = self.pending.get_mut(&place)
            && pending.is_acknowledged != is
        {
            pending.is_acknowledged = is;
            if is {
                self.acknowledged_by.push(pending.peer);
            }
            self.acknowledged = if is { self.acknowledged + 1 } else { self.acknowledged.saturating_sub(1) };
        }
    }
}

/// Requests that wait, in order, by their numbers. One is taken out of the middle without a search: its number stays, and says
/// nothing here.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    numbers: VecDeque<RequestNumber>,
    len: usize,
}

impl Queue {
    pub(crate) fn push_back(&mut self, all: &mut PendingRequests, spec: Box<RequestSpec>) {
        self.numbers.push_back(spec.number);
        self.len += 1;
        all.hold(spec);
    }

    pub(crate) fn pop_front(&mut self, all: &mut PendingRequests) -> Option<Box<RequestSpec>> {
        while let Some(number) = self.numbers.pop_front() {
            if let Some(spec) = all.take_held(number) {
                self.len -= 1;
                return Some(spec);
            }
        }
        None
    }

    /// Takes one out that is no longer wanted, if it is here.
    pub(crate) fn remove(&mut self, all: &mut PendingRequests, number: RequestNumber) {
        if all.take_held(number).is_none() {
            return;
        }
        self.len -= 1;
        // What says nothing is never more than half.
        if self.numbers.len() > 64 && self.numbers.len() > self.len.saturating_mul(2) {
            self.numbers.retain(|number| all.held(*number).is_some());
        }
    }

    pub(crate) fn front<'r>(&self, all: &'r PendingRequests) -> Option<&'r RequestSpec> {
        self.numbers.iter().find_map(|number| all.held(*number))
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Of these, and of those that say nothing.
    #[cfg(test)]
    pub(crate) fn numbers(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The options of a response that its reader may want. One that is too long counts as absent (RFC 7252 §5.4.3): an ETag or an
/// Echo so long would come back with the next request.
pub(crate) fn options(message: &Message<'_>) -> Options {
    message.options().legal().map(|option| (option.number, Bytes::copy_from_slice(option.value))).collect()
}

fn since(earlier: Instant, now: Instant) -> Duration {
    Duration::from_micros(now.as_micros().saturating_sub(earlier.as_micros()))
}

/// Why there is no answer.
pub(crate) fn failure(peer: SocketAddr, why: RequestFailure, copies: u8, after: Duration) -> Error {
    match why {
        RequestFailure::Exchange(Failure::GaveUp) => Error::GaveUp { peer, copies, after },
        RequestFailure::Exchange(Failure::Reset) => Error::Reset { peer },
        RequestFailure::Exchange(Failure::NoResponse) => Error::NoResponse { peer, after },
        RequestFailure::Deadline => Error::Deadline { after },
        RequestFailure::Download(DownloadError::TooLarge { limit })
        | RequestFailure::Burst(BurstFailure::TooLarge { limit }) => Error::BodyTooLarge { limit },
        RequestFailure::Burst(BurstFailure::Silent) => Error::NoResponse { peer, after },
        RequestFailure::Refused(error) => Error::not_sent(error.into()),
        RequestFailure::OutOfBytes => Error::refused(NotSent::Busy, why.to_string()),
        RequestFailure::Cancelled => Error::Closed,
        RequestFailure::Exchange(Failure::BadOption) => not_understood(peer, "a critical option".into()),
        RequestFailure::Exchange(Failure::LongResponse) => Error::LongDatagram { peer },
        RequestFailure::Exchange(Failure::WrongToken) => Error::NotUnderstood {
            peer,
            reason: format!(
                "it has another token than the request, or none, to each of {copies} copies (RFC 7252 §5.3.1); the server \
                 has to return the token"
            ),
        },
        RequestFailure::BadOption { number } => not_understood(peer, format!("the critical option {number}")),
        RequestFailure::Protection(fault) => Error::NotUnderstood { peer, reason: fault.to_string() },
        why => Error::transfer(peer, Why::said_by(why)),
    }
}

fn not_understood(peer: SocketAddr, what: String) -> Error {
    let reason = format!(
        "it has {what}, which is not understood here or may not stand there; ask for a representation without it"
    );
    Error::NotUnderstood { peer, reason }
}

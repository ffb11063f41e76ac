//! What one side of a connection asks the other in it.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use millpond_coap::{
    Event as Trace, Failure,
    block::BlockSize,
    message::number,
    stream::{Closing, Connection, Settings, Signal, StreamRefused},
    transfer::{ClientRequestId, CoapStack, Event, Refused, RequestFailure},
};
use millpond_control::Instant;
use tokio::sync::{mpsc, oneshot};

use super::link::{self, Link, LinkEvent, Stream};
use crate::{
    Error, ExchangeReport, NotSent, PeerIdentity, Response, Stats, Transport, Why,
    client::{Command, Outcome, PendingRequests, Queue, RequestSpec, Room, failure, options},
    clock::Clock,
    error::Unsent,
    socket::ANOTHER,
    udp::Address,
};

/// How long the other side may take until its settings come (RFC 8323 §5.3).
pub(super) const SETTINGS_WAIT: Duration = Duration::from_secs(10);
/// How long nothing may come while an answer is awaited before a ping asks whether the other side is there; while there are
/// observations alone, as long as their states are fresh, between these two.
const SILENCE: Duration = Duration::from_secs(30);
const LONGEST_SILENCE: Duration = Duration::from_secs(240);
/// How long a request may be under way while nothing comes but answers to pings: EXCHANGE_LIFETIME (RFC 7252 §4.8.2), for
/// which one over UDP would wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(247);

/// Who is at the other end of a connection, and what carries it.
#[derive(Clone, Debug)]
pub(super) struct Whom {
    pub(super) peer: SocketAddr,
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "handlers are told"))]
    pub(super) transport: Transport,
    /// Who it has proved to be.
    pub(super) identity: Option<Arc<PeerIdentity>>,
}

/// Requests in a connection, and signs of life.
pub(super) struct Asking {
    whom: Whom,
    clock: Clock,
    requests: PendingRequests,
    /// Requests that the stack is handed at a time, and how many it has; observations that have begun are none.
    window: usize,
    open: usize,
    /// Those that wait for one of these to end, or for what was said to be written.
    held: Queue,
    pings: VecDeque<(tokio::time::Instant, oneshot::Sender<Result<Duration, Error>>)>,
    /// Requests that want no response and may not have been written yet.
    unwritten: Vec<ClientRequestId>,
    /// Who waits for the other side's settings, beside how many bytes of options.
    rooms: Vec<(usize, oneshot::Sender<Result<Room, Error>>)>,
    /// When something was asked last.
    asked: Instant,
    /// When a ping of our own left, to which nothing came yet.
    doubted: Option<Instant>,
    /// What has not left when it ends may go over another connection.
    pub(super) may_move: bool,
    /// For how long the other side wants no further connection.
    hold_off: Duration,
    /// It is asked for signs of life although nothing is awaited: the other side may have something to ask.
    pub(super) is_kept: bool,
    /// Nothing came to one.
    pub(super) is_gone: bool,
    /// Until when its settings are awaited, and whether that is over.
    settings_due: tokio::time::Instant,
    lacks_settings: bool,
    /// What the other side said when it aborted the connection.
    said: String,
    is_closing: bool,
    /// The other side wants the connection to end: others ask over another one.
    is_released: Arc<AtomicBool>,
    pub(super) stats: Stats,
}

/// Ends what was ordered.
pub(super) fn refuse_all(orders: impl IntoIterator<Item = Command>, why: &Error) {
    for order in orders {
        match order {
            Command::Request(spec) => spec.reply.end(Err(why.clone())),
            Command::Ping(.., reply) => drop(reply.send(Err(why.clone()))),
            Command::Room(_, reply) => drop(reply.send(Err(why.clone()))),
            _ => {}
        }
    }
}

/// Ends what was ordered and not taken yet; nothing more can be.
pub(super) async fn refuse_rest(mut orders: mpsc::UnboundedReceiver<Command>, why: &Error) {
    orders.close();
    while let Some(order) = orders.recv().await {
        refuse_all([order], why);
    }
}

/// What a request is among those of a connection, whose stack is the only one.
const fn place(id: ClientRequestId) -> (usize, ClientRequestId) {
    (0, id)
}

impl Asking {
    pub(super) fn new(whom: Whom, clock: Clock, window: usize, is_released: Arc<AtomicBool>) -> Self {
        Self {
            whom,
            clock,
            requests: PendingRequests::default(),
            window,
            open: 0,
            held: Queue::default(),
            pings: VecDeque::new(),
            unwritten: Vec::new(),
            rooms: Vec::new(),
            asked: Instant::ORIGIN,
            doubted: None,
            may_move: true,
            hold_off: Duration::ZERO,
            is_kept: false,
            is_gone: false,
            settings_due: tokio::time::Instant::now() + SETTINGS_WAIT,
            lacks_settings: false,
            said: String::new(),
            is_closing: false,
            is_released,
            stats: Stats::default(),
        }
    }

    /// Who is at the other end.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.whom.peer
    }

    /// Whether no answer is awaited, and nothing observed.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.held.is_empty() && self.rooms.is_empty()
    }

    /// When it is to be looked whether the other side is there, and when requests have waited too long.
    fn patience<S: Stream>(&self, link: &Link<S>) -> Option<(tokio::time::Instant, Option<tokio::time::Instant>)> {
        if self.is_idle() && !self.is_kept {
            return None;
        }
        let is_awaited = self.requests.awaited().next().is_some() || !self.held.is_empty() || !self.rooms.is_empty();
        let since = |last: Option<Instant>| self.clock.at(last.map_or(self.asked, |last| last.max(self.asked)));
        let fresh = || {
            self.requests.shortest_freshness().map_or(LONGEST_SILENCE, |fresh| fresh.clamp(SILENCE, LONGEST_SILENCE))
        };
        let silence = if is_awaited { SILENCE } else { fresh() };
        let late = is_awaited.then(|| since(link.moved) + PATIENCE);
        Some((since(link.heard.max(self.doubted)) + silence, late))
    }

    /// When [`doubt`](Self::doubt) is to be called next.
    pub(super) fn due<S: Stream>(&self, link: &Link<S>) -> Option<tokio::time::Instant> {
        let patience = self.patience(link).map(|(silent, late)| late.map_or(silent, |late| late.min(silent)));
        let settings = (link.stack.blocks(0).is_none() && !self.lacks_settings).then_some(self.settings_due);
        [patience, settings].into_iter().flatten().min()
    }

    /// Asks a silent peer for a sign of life, and ends what has waited too long.
    pub(super) fn doubt<S: Stream>(&mut self, link: &mut Link<S>) {
        let now = tokio::time::Instant::now();
        if self.settings_due <= now && link.stack.blocks(0).is_none() && !self.lacks_settings {
            self.lacks_settings = true;
            return link.stack.abort("no settings (CSM) came");
        }
        let Some((silent, late)) = self.patience(link) else { return };
        if late.is_some_and(|late| late <= now) {
            let silent = Error::NoResponse { peer: self.whom.peer, after: PATIENCE };
            self.tell_rooms(&link.stack, Some(&silent));
            self.end_held(&silent);
            // Observations wait for as long as they like.
            for (socket, id) in self.requests.awaited().collect::<Vec<_>>() {
                if link.stack.end_unanswered(self.clock.now(), id) {
                    continue;
                }
                link.stack.cancel(self.clock.now(), id);
                self.requests.end((socket, id), Err(silent.clone()));
            }
        } else if silent <= now {
            self.doubted = Some(self.clock.now());
            if self.pings.is_empty() {
                // A connection that has ended says so by itself.
                let _ = link.stack.ping(self.clock.now(), false);
            }
        }
    }

    /// Carries out an order. The stack is to be drained then.
    pub(super) fn command<S: Stream>(&mut self, link: &mut Link<S>, command: Command) {
        let now = self.clock.now();
        match command {
            Command::Request(spec) => {
                self.asked = now;
                if self.held.is_empty() && self.has_room(link) {
                    self.send_request(link, *spec);
                } else {
                    self.held.push_back(&mut self.requests, spec);
                }
            }
            Command::EndUnanswered(number) => match self.requests.find(number) {
                Some((_, id)) if link.stack.end_unanswered(now, id) => {}
                Some(place) => self.cancel(link, place),
                None => self.held.remove(&mut self.requests, number),
            },
            // Over a connection nothing is forgotten without a word: its end says the same.
            Command::Cancel(number) | Command::Forget(number) => match self.requests.find(number) {
                Some(place) => self.cancel(link, place),
                None => self.held.remove(&mut self.requests, number),
            },
            Command::Ping(.., reply) => match link.stack.ping(now, false) {
                Ok(()) => self.pings.push_back((tokio::time::Instant::now(), reply)),
                Err(error) => drop(reply.send(Err(Error::not_sent(error)))),
            },
            Command::Room(options, reply) => {
                self.asked = now;
                self.rooms.push((options, reply));
            }
            Command::SetController(.., reply) => {
                let reason = "TCP has congestion control of its own";
                let _ = reply.send(Err(Error::refused(NotSent::Combination, reason)));
            }
            Command::Stats(reply) => drop(reply.send(self.stats.clone())),
            Command::Shutdown(_) => self.cancel_all(link),
            // Groups are asked over UDP.
            Command::Gather(_) | Command::StopGathering(_) => {}
        }
    }

    /// Hands the stack the request that has waited longest, if there is room for it. False if there is none.
    pub(super) fn launch<S: Stream>(&mut self, link: &mut Link<S>) -> bool {
        let next = if self.has_room(link) { self.held.pop_front(&mut self.requests) } else { None };
        let is_any = next.is_some();
        if let Some(spec) = next {
            self.send_request(link, *spec);
        }
        is_any
    }

    fn has_room<S: Stream>(&self, link: &Link<S>) -> bool {
        self.open < self.window && link.takes_more()
    }

    fn send_request<S: Stream>(&mut self, link: &mut Link<S>, spec: RequestSpec) {
        let (now, peer) = (self.clock.now(), self.whom.peer);
        if spec.identity.is_some() && spec.identity != self.whom.identity {
            return spec.reply.end(Err(Error::insecure(peer, ANOTHER)));
        }
        let sent = spec.options.lend(|options| link.stack.request(now, (), &spec.to_request(options)));
        match sent {
            Ok(id) => {
                self.stats.sent += 1;
                self.open += 1;
                spec.reply.asked_of(self.whom.identity.as_ref());
                self.requests.add(0, id, spec.number, (peer, Address::of(peer)), spec.reply, now);
            }
            // Asked in the moment in which it was released.
            Err(Refused::Connection(StreamRefused::Releasing)) => spec.reply.end(Err(self.unsent(&self.released()))),
            Err(error) => spec.reply.end(Err(Error::not_sent(error))),
        }
    }

    /// This side wants the connection to end: what was asked is awaited still, and nothing more is.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        self.end_held(&Error::Closed);
    }

    /// Why nothing more is asked over the connection.
    fn released(&self) -> Error {
        if self.is_closing {
            return Error::Closed;
        }
        Error::connection_lost(self.whom.peer, link::reason(Some(Closing::Released), "", self.again()))
    }

    /// How to ask after it has ended.
    const fn again(&self) -> &'static str {
        if self.may_move { "ask again" } else { "ask the peer once it has begun another one" }
    }

    /// The same for what has not left: it may go over another connection.
    pub(super) fn unsent(&self, why: &Error) -> Error {
        let (peer, hold_off) = (self.whom.peer, self.hold_off);
        match why {
            Error::ConnectionLost { reason, .. } if self.may_move => {
                let reason = match hold_off.as_secs() {
                    0 => reason.clone(),
                    wait => format!("it was released, and the peer wants no other one for {wait} s; ask again then"),
                };
                Error::connection_lost(peer, Why::of(reason, Unsent { hold_off }))
            }
            why => why.clone(),
        }
    }

    /// Tells a peer that waits for it how much a message may hold, if that is known by now; or why it never will be.
    fn tell_rooms(&mut self, stack: &CoapStack<Connection>, end: Option<&Error>) {
        /// What stands in a message beside its options and its payload.
        const HEAD: usize = 32;
        let Settings { max_message_size, block_wise: knows_blocks, .. } = stack.settings();
        for (options, reply) in std::mem::take(&mut self.rooms) {
            let whole = (max_message_size as usize).saturating_sub(HEAD + options);
            let in_blocks = |size: BlockSize, count: u32| size.bytes() as usize * count as usize;
            let room = stack.blocks(options).map(|(size, count)| {
                let most = if knows_blocks { in_blocks(size, count) } else { whole };
                Room { size, most, knows_blocks }
            });
            match end.map_or_else(|| room.map(Ok), |why| Some(Err(why.clone()))) {
                // The client may have gone.
                Some(told) => drop(reply.send(told)),
                None => self.rooms.push((options, reply)),
            }
        }
    }

    fn cancel<S: Stream>(&mut self, link: &mut Link<S>, place: (usize, ClientRequestId)) {
        link.stack.cancel(self.clock.now(), place.1);
        self.requests.drop_silently(place);
    }

    /// Nothing that was asked is wanted any more.
    pub(super) fn cancel_all<S: Stream>(&mut self, link: &mut Link<S>) {
        self.end_held(&Error::Closed);
        for place in self.requests.all() {
            self.cancel(link, place);
        }
    }

    fn end_held(&mut self, why: &Error) {
        while let Some(spec) = self.held.pop_front(&mut self.requests) {
            spec.reply.end(Err(why.clone()));
        }
    }

    /// Takes in what the stack reports of what was asked, and gives back what may concern others.
    pub(super) fn heard<'h>(&mut self, heard: LinkEvent<'h>, heard_at: Option<Instant>) -> Option<LinkEvent<'h>> {
        let peer = self.whom.peer;
        match heard {
            LinkEvent::Event(Event::Answer { request: id, message, body, goes_on, .. }) => {
                self.stats.received += 1;
                let report = ExchangeReport { peer, copies: 1, round_trip: None, grade: None };
                let mut options = options(&message);
                options.remove(number::OBSERVE);
                // An observer tells by it that more is to come. Over streams its value says nothing (RFC 8323 §7.1).
                if goes_on {
                    options.add(number::OBSERVE, Bytes::new());
                }
                let response = Response::received(message.code, options, body.into_owned().into(), report);
                self.stats.answered += u64::from(!goes_on);
                self.requests.answered(place(id), response, goes_on);
                None
            }
            LinkEvent::Event(Event::Unanswered { request: id, .. }) => {
                self.unwritten.push(id);
                None
            }
            LinkEvent::Event(Event::Failed { request: id, why, copies, .. }) => {
                self.stats.failed += 1;
                let is_released = matches!(why, RequestFailure::Connection(StreamRefused::Releasing));
                // Of a connection that ends it is known only then why: what is left ends with it.
                if !matches!(why, RequestFailure::Exchange(Failure::ConnectionClosed)) {
                    let ended = match is_released {
                        true if copies == 0 => self.unsent(&self.released()),
                        true => self.released(),
                        false => failure(peer, why, copies, Duration::ZERO),
                    };
                    self.requests.end(place(id), Err(ended));
                }
                None
            }
            LinkEvent::Trace(Trace::Signal(Signal::Release { hold_off, .. })) => {
                self.is_released.store(true, Ordering::Relaxed);
                self.hold_off = Duration::from_secs(hold_off.unwrap_or(0).into());
                self.end_held(&self.unsent(&self.released()));
                None
            }
            LinkEvent::Trace(Trace::Signal(Signal::Abort { diagnostic, .. })) => {
                // Of one line, and of a length to be read.
                let text = String::from_utf8_lossy(diagnostic);
                self.said = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
                None
            }
            LinkEvent::Trace(Trace::Signal(Signal::Pong { .. })) => {
                if let Some((started, reply)) = self.pings.pop_front() {
                    let _ = reply.send(Ok(started.elapsed()));
                }
                Some(heard)
            }
            LinkEvent::Trace(Trace::PongMissing) => match self.pings.pop_front() {
                Some((started, reply)) => {
                    let _ = reply.send(Err(Error::NoResponse { peer, after: started.elapsed() }));
                    None
                }
                // Whatever came since is a sign of life, too.
                None => {
                    self.is_gone = self.doubted.is_some_and(|doubted| heard_at.is_none_or(|heard| heard < doubted));
                    Some(heard)
                }
            },
            heard => Some(heard),
        }
    }

    /// The stack was drained: what follows from that is told.
    pub(super) fn settle<S: Stream>(&mut self, link: &Link<S>) {
        // What wants no response is over once the stream has taken it.
        if link.is_written() {
            self.unwritten.drain(..).for_each(|id| self.requests.end(place(id), Ok(Outcome::Sent)));
        }
        self.open = self.open.saturating_sub(self.requests.ended.drain(..).len());
        self.tell_rooms(&link.stack, None);
    }

    /// Why the connection has ended, as its link has it.
    pub(super) fn lost<S: Stream>(&self, link: &mut Link<S>) -> Error {
        let peer = self.whom.peer;
        match link.broken.take() {
            Some(why) => Error::insecure(peer, why),
            None if self.lacks_settings => Error::NoSettings { peer, after: SETTINGS_WAIT },
            None if self.is_gone => Error::connection_lost(peer, "nothing came any more, not even to a ping"),
            None => {
                let reason = link::reason(link.closing, &self.said, self.again());
                Error::connection_lost(peer, Why { reason, source: link.lost.take() })
            }
        }
    }

    /// The connection has ended, and with it all that was asked in it.
    pub(super) fn end<S: Stream>(&mut self, link: &Link<S>, lost: &Error) {
        self.end_held(&self.unsent(lost));
        for place in self.requests.all() {
            self.requests.end(place, Err(lost.clone()));
        }
        for (_, reply) in self.pings.drain(..) {
            let _ = reply.send(Err(lost.clone()));
        }
        self.tell_rooms(&link.stack, Some(lost));
    }
}

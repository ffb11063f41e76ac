//! The task that owns a UDP socket of a server.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use millpond_coap::{Endpoint, Event as Below, Ignored, message::Code};
use millpond_control::Instant;
use tokio::sync::{mpsc, oneshot};

use super::{
    access::{AccessOutcome, AccessRecord},
    asking::{Asking, sink},
    desk::{ASK_AGAIN, Arrived, Desk, Hosted, Told},
    running::Caught,
    unasked::UnaskedHook,
};
use crate::{
    ControllerChoice, Error, Response, Stats, Transport,
    client::{Asks, Command},
    clock::Clock,
    lane::{DatagramHost, Lane, Sink},
    security::ServerSecurity,
    transfer::{AskId, Event, ObserverId},
    udp::{Address, Inbox, PortError},
    watch::{Known, Watch},
};

/// What the server's handle asks of a worker.
#[derive(Debug)]
pub(crate) enum Order {
    Stats(oneshot::Sender<Stats>),
    /// The policy has changed.
    Policy,
    /// Answer what was asked, tell observers, end.
    Shutdown,
    /// Ask what is wanted here, from the same socket.
    Ask(mpsc::UnboundedReceiver<Command>),
    /// Make further sessions with this, and say when that is so.
    Secure(Box<ServerSecurity>, oneshot::Sender<()>),
}

/// What the server's handle asks, whichever worker hears it.
#[derive(Debug)]
pub(crate) struct Orders {
    orders: mpsc::UnboundedReceiver<Order>,
    /// What a client on the same socket wants, if there is one.
    asked: Option<mpsc::UnboundedReceiver<Command>>,
    /// The server ends.
    is_ending: bool,
}

/// Keeps a worker running until it is told to end or the server is gone. One that panics, by a controller of the
/// application's or by a mistake of ours, is followed by another at the same socket, which knows nobody.
pub(crate) async fn keep_running(
    first: Worker,
    orders: mpsc::UnboundedReceiver<Order>,
    panics: Arc<AtomicU64>,
    mut another: impl FnMut() -> Result<Worker, Error>,
) -> Result<(), Error> {
    let mut orders = Orders { orders, asked: None, is_ending: false };
    let mut worker = first;
    while Caught(Box::pin(worker.run(&mut orders))).await.is_err() {
        panics.fetch_add(1, Ordering::Relaxed);
        tracing::error!(target: "millpond_live", "a worker panicked; another one goes on at its socket");
        if orders.is_ending {
            break;
        }
        worker = another()?;
    }
    Ok(())
}

/// Owns a socket, its host and its desk.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(super) clock: Clock,
    pub(super) lane: Lane,
    desk: Desk,
    told: mpsc::UnboundedReceiver<Told>,
    pub(super) controllers: Arc<BTreeMap<SocketAddr, ControllerChoice>>,
    inbox: Inbox,
    pub(super) watch: Watch,
    pub(super) arrivals: Arrivals,
    pub(super) asking: Asking,
    /// Handshakes that failed.
    pub(super) insecure: u64,
}

/// How long a server that ends waits for handlers, and then for its answers to be acknowledged or taken.
pub(crate) const HANDLERS_GRACE: Duration = Duration::from_secs(3);
pub(crate) const GRACE: Duration = Duration::from_secs(4);
/// Orders and answers taken at once.
const AT_ONCE: usize = 256;

impl Worker {
    pub(crate) fn new(
        clock: Clock,
        lane: Lane,
        desk: Desk,
        told: mpsc::UnboundedReceiver<Told>,
        controllers: Arc<BTreeMap<SocketAddr, ControllerChoice>>,
        watch: Watch,
    ) -> Self {
        let arrivals = Arrivals { is_logged: desk.accesses.hook.is_set(), ..Arrivals::default() };
        let (inbox, asking) = (Inbox::new(), Asking::default());
        Self { clock, lane, desk, told, controllers, inbox, watch, arrivals, asking, insecure: 0 }
    }

    /// Runs until it is told to end, or the server is gone.
    async fn run(mut self, from: &mut Orders) {
        let (mut told, mut orders, mut commands) = (Vec::new(), Vec::new(), Vec::new());
        let mut sleep: Option<Pin<Box<tokio::time::Sleep>>> = None;
        let mut end: Option<tokio::time::Instant> = None;
        let mut patience: Option<tokio::time::Instant> = None;
        loop {
            let is_done =
                self.desk.running() == 0 && self.lane.host.endpoint().exchanges() == 0 && !self.lane.is_full();
            if end.is_some_and(|end| is_done || tokio::time::Instant::now() >= end) {
                self.lane.close_sessions(self.clock.now(), &mut self.watch);
                return;
            }
            if patience.is_some_and(|patience| tokio::time::Instant::now() >= patience) {
                patience = None;
                self.desk.give_up();
            }
            let next = self.lane.next.map(|at| self.clock.at(at)).into_iter().chain(patience).chain(end).min();
            match (&mut sleep, next) {
                (Some(sleep), Some(at)) if sleep.deadline() == at => {}
                (Some(sleep), Some(at)) => sleep.as_mut().reset(at),
                (none, Some(at)) => *none = Some(Box::pin(tokio::time::sleep_until(at))),
                (_, None) => {}
            }
            let Self { lane, told: telling, .. } = &mut self;
            let Orders { orders: ordering, asked, .. } = from;
            let (mut is_orphaned, mut asks_no_more) = (false, false);
            std::future::poll_fn(|cx| {
                let mut is_ready = lane.poll_ready(cx).is_ready();
                is_ready |= telling.poll_recv_many(cx, &mut told, AT_ONCE).is_ready();
                if end.is_none()
                    && let Poll::Ready(count) = ordering.poll_recv_many(cx, &mut orders, AT_ONCE)
                {
                    is_orphaned = count == 0;
                    is_ready = true;
                }
                if let Some(asked) = asked
                    && !lane.is_full()
                    && let Poll::Ready(count) = asked.poll_recv_many(cx, &mut commands, AT_ONCE)
                {
                    asks_no_more = count == 0;
                    is_ready = true;
                }
                if next.is_some()
                    && let Some(sleep) = &mut sleep
                {
                    is_ready |= sleep.as_mut().poll(cx).is_ready();
                }
                if is_ready { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            if is_orphaned {
                return;
            }
            if asks_no_more {
                from.asked = None;
            }
            for order in orders.drain(..) {
                match order {
                    Order::Ask(asked) => from.asked = Some(asked),
                    Order::Stats(reply) => drop(reply.send(self.stats())),
                    Order::Policy => self.desk.end_forbidden(),
                    Order::Secure(security, done) => {
                        self.lane.secure(&security);
                        let _ = done.send(());
                    }
                    Order::Shutdown => {
                        from.is_ending = true;
                        let now = tokio::time::Instant::now();
                        (patience, end) = (Some(now + HANDLERS_GRACE), Some(now + GRACE));
                        self.desk.is_closing = true;
                        let last = Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(ASK_AGAIN);
                        self.desk.end_observers(None, &last);
                    }
                }
            }
            for command in commands.drain(..) {
                self.command(self.clock.now(), command);
            }
            self.turn(&mut told);
        }
    }

    /// Takes in what came, runs handlers, fires what is due, hands over what leaves.
    pub(super) fn turn(&mut self, told: &mut Vec<Told>) {
        let clock = self.clock;
        let Self { lane, inbox, watch, arrivals, .. } = self;
        lane.flush(clock.now(), watch);
        let mut refused = Vec::new();
        let complain = |error: PortError| refused.push(error);
        lane.receive(|| clock.now(), inbox, watch, arrivals, complain);
        let now = clock.now();
        if lane.next.is_some_and(|next| next <= now) {
            lane.poll(now, watch, arrivals);
        }
        // Of answers the network's complaints concern nobody: their retransmission gives up by itself. Observers are told so,
        // and who asked.
        for error in refused {
            if error.is_refused {
                for address in self.lane.all_known_as(error.to).collect::<Vec<_>>() {
                    self.end_observers_at(now, address);
                }
            }
            self.cut_off(now, &error);
        }
        self.hear(now);
        for told in told.drain(..) {
            self.desk.told(now, told);
            self.act(now);
        }
        loop {
            self.act(now);
            if self.arrivals.is_empty() {
                break;
            }
            for gone in self.arrivals.gone.drain(..) {
                self.desk.observers.remove(gone);
            }
            let mut requests = std::mem::take(&mut self.arrivals.requests);
            for (from, mut arrived) in requests.drain(..) {
                if let Some(sessions) = &self.lane.sessions {
                    arrived.request.identify(Transport::Dtls, sessions.identity(from).cloned());
                }
                self.choose_controller(now, from);
                self.desk.arrived(now, arrived);
                let endpoint = self.lane.host.endpoint_mut();
                if endpoint.is_calm()
                    && (from.session().is_some() || self.desk.reachability.is_validated(now, from.peer()))
                {
                    endpoint.validated(from);
                }
                // Before the next one: of all bodies that a batch of requests asks for, one is held at a time.
                self.act(now);
            }
            // With its room, for the next.
            requests.append(&mut self.arrivals.requests);
            self.arrivals.requests = requests;
        }
        self.tell_refusals();
        self.settle_asks(now);
        self.lane.flush(now, &mut self.watch);
    }

    /// A handshake has failed.
    pub(super) fn log_insecure(&self, peer: SocketAddr, reason: &str) {
        let whose = (peer, Transport::Dtls);
        let record = || AccessRecord::unread(whose, AccessOutcome::Insecure, reason.to_owned());
        self.desk.accesses.hook.tell(record);
    }

    /// Tells what was answered or ignored without the desk.
    fn tell_refusals(&mut self) {
        for (from, mut record) in self.arrivals.refusals.drain(..) {
            if let Some(sessions) = &self.lane.sessions {
                (record.transport, record.identity) = (Transport::Dtls, sessions.identity(from).cloned());
            }
            self.desk.accesses.hook.tell(|| record);
        }
    }

    /// Who observed at this address does so no more.
    pub(super) fn end_observers_at(&mut self, now: Instant, address: Address) {
        for observer in self.lane.host.observers_of(address).collect::<Vec<_>>() {
            self.desk.observers.remove(observer);
            self.lane.host.dismiss(now, observer);
            self.drain(now);
        }
    }

    /// A peer that is met for the first time gets the controller chosen for it.
    pub(super) fn choose_controller(&mut self, now: Instant, peer: Address) {
        if self.controllers.is_empty() || self.lane.host.endpoint().view(peer).is_some() {
            return;
        }
        if let Some(choice) = self.controllers.get(&peer.peer()) {
            // Without room for another peer nothing confirmable can be sent to it either.
            let _ = self.lane.host.set_controller(now, peer, choice.build(crate::least_wait::LEAST_WAIT));
            self.drain(now);
        }
    }

    /// Does what the desk wants done.
    fn act(&mut self, now: Instant) {
        let Self { desk, lane, watch, arrivals, .. } = self;
        let mut on = Outlet { lane, watch, arrivals };
        while let Some(action) = desk.action() {
            desk.carry_out(now, &mut on, action);
        }
    }

    pub(super) fn drain(&mut self, now: Instant) {
        self.lane.poll(now, &mut self.watch, &mut self.arrivals);
    }

    pub(super) fn stats(&self) -> Stats {
        let (host, now) = (&self.lane.host, self.clock.now());
        let mut stats = Stats {
            sockets: 1,
            memory: host.memory() + self.desk.memory(),
            exchanges: u64::from(host.endpoint().exchanges()),
            observers: self.desk.observers.len(),
            overloaded: self.desk.overloaded,
            unverified: self.desk.reachability.withheld() + host.counters().limited,
            insecure: self.insecure,
            backlogs: self.watch.backlogs,
            unsent: self.watch.unsent,
            panics: self.watch.panics.load(Ordering::Relaxed),
            unnecessary_retransmissions: self.watch.unnecessary,
            peers: self.watch.peers(now, |address| {
                let (endpoint, peer) = (host.endpoint(), self.lane.known_as(address));
                let has_answered = || self.lane.all_known_as(address).any(|peer| endpoint.is_acquainted(peer));
                Known {
                    is_validated: self.lane.sessions.is_some()
                        || self.desk.reachability.is_validated(now, address)
                        || has_answered(),
                    view: endpoint.view(peer).unwrap_or_default(),
                    base_rtt: endpoint.base_rtt(peer),
                    waiting: 0,
                }
            }),
            ..Stats::default()
        };
        stats.add(&host.endpoint().counters());
        if let Some(sessions) = &self.lane.sessions {
            sessions.count(&mut stats);
        }
        stats
    }
}

/// Where a worker's host says what it has to say.
struct Outlet<'w> {
    lane: &'w mut Lane,
    watch: &'w mut Watch,
    arrivals: &'w mut Arrivals,
}

impl Hosted for Outlet<'_> {
    type Layer = Endpoint<Address>;

    fn host(&mut self) -> &mut DatagramHost {
        &mut self.lane.host
    }

    fn drain(&mut self, now: Instant) {
        self.lane.poll(now, self.watch, self.arrivals);
    }
}

/// What the host handed up and the desk has not seen yet.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Requests of our own.
    pub(super) asks: Asks,
    requests: Vec<(Address, Arrived)>,
    gone: Vec<ObserverId>,
    /// What the layers below refused, if somebody is told of it.
    refusals: Vec<(Address, AccessRecord)>,
    is_logged: bool,
    pub(super) unasked: Option<UnaskedHook>,
}

impl Arrivals {
    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.gone.is_empty()
    }
}

impl Sink for Arrivals {
    fn event(&mut self, now: Instant, event: Event<'_, Address>) {
        match event {
            Event::Request { from, id, message, body, wants_to_observe, by_group } => {
                let whom = (from.peer(), Transport::Udp);
                let arrived = Arrived::of((id, &message), body, whom, (wants_to_observe, by_group), None);
                self.requests.push((from, arrived));
            }
            Event::Refused { from, message, why, by_group } => {
                if self.is_logged {
                    let whose = (from.peer(), Transport::Udp);
                    self.refusals.push((from, AccessRecord::refused(whose, &message, why, by_group)));
                }
            }
            Event::ObserverGone { observer, .. } => self.gone.push(observer),
            event => sink(&mut self.asks).event(now, event),
        }
    }

    fn told(&mut self, now: Instant, event: &Below<'_, Address>) {
        if let (Below::Unasked { from, message }, Some(unasked)) = (event, &self.unasked) {
            unasked.tell(from.peer(), message);
        }
        if let Below::Ignored { from, why } = event
            && self.is_logged
            && let Some((outcome, reason)) = of_ignored(why)
        {
            self.refusals.push((*from, AccessRecord::unread((from.peer(), Transport::Udp), outcome, reason)));
        }
        sink(&mut self.asks).told(now, event);
    }

    fn acknowledged(&mut self, ask: AskId, is: bool) {
        sink(&mut self.asks).acknowledged(ask, is);
    }

    fn has_acknowledged(&self) -> bool {
        self.asks.has_acknowledged()
    }
}

/// What a log of accesses is told of a datagram that was not taken: those that are no requests are none of its concern.
fn of_ignored(why: &Ignored) -> Option<(AccessOutcome, Cow<'static, str>)> {
    Some(match why {
        Ignored::Malformed(error) => {
            let outcome = if error.reset().is_some() { AccessOutcome::Reset } else { AccessOutcome::Unanswered };
            (outcome, format!("malformed: {error}").into())
        }
        Ignored::TooLong { is_answered } => {
            let code = Code::REQUEST_ENTITY_TOO_LARGE;
            let outcome = if *is_answered { AccessOutcome::Answered { code, bytes: 0 } } else { AccessOutcome::Reset };
            (outcome, "a longer datagram than is taken (longest_datagram)".into())
        }
        Ignored::NoRoom => (AccessOutcome::Unanswered, "no room for another request".into()),
        _ => return None,
    })
}

//! The task that owns UDP sockets, under DTLS or not: those from which a client asks, or one at which a server is asked and asks
//! by itself. NATs let the answers to that through, and both are one peer to the other side.

mod gathering;
mod requests;
#[cfg(feature = "state")]
mod restarting;
#[cfg(feature = "server")]
mod serving;
#[cfg_attr(not(feature = "dtls"), allow(unreachable_code, reason = "there are none"))]
mod sessions;
mod socket_factory;
mod socket_stack;

use std::{collections::BTreeMap, future::Future, net::SocketAddr, pin::Pin, sync::Arc, task::Poll, time::Duration};

use millpond_coap::Event as Trace;
use millpond_control::Instant;
use tokio::sync::{mpsc, oneshot};

pub(crate) use gathering::Gatherings;
#[cfg(feature = "server")]
pub(crate) use serving::{GRACE, HANDLERS_GRACE, Order, Serving, keep_running};
pub(crate) use sessions::ANOTHER;
use socket_factory::SocketFactory;
pub(crate) use socket_stack::{DatagramStack, SocketStack};

use crate::{
    ControllerChoice, Error, Happened, Stats,
    client::{Command, Later, PendingRequests, Routes, Settings, Watched, chance},
    clock::Clock,
    dtls::Keys,
    transfer::{ClientRequestId, Event},
    udp::{Address, Inbox, SocketError},
    watch::{Known, Watch},
};

/// Commands, orders and answers taken at once.
const AT_ONCE: usize = 256;
/// How long a client that ends waits for the acknowledgement of what it said last.
const CLIENT_GRACE: Duration = Duration::from_secs(2);

/// What handles want of a task. It outlives a task that panicked.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// What a client wants; none if there is no client, or none any more.
    commands: Option<mpsc::UnboundedReceiver<Command>>,
    /// What a server wants.
    #[cfg(feature = "server")]
    orders: Option<mpsc::UnboundedReceiver<Order>>,
    /// The server ends.
    #[cfg(feature = "server")]
    is_ending: bool,
}

impl Inputs {
    /// What a client wants.
    pub(crate) fn of_client(commands: mpsc::UnboundedReceiver<Command>) -> Self {
        Self {
            commands: Some(commands),
            #[cfg(feature = "server")]
            orders: None,
            #[cfg(feature = "server")]
            is_ending: false,
        }
    }
}

/// Owns sockets and the stacks behind them; sleeps while there is nothing to do.
#[derive(Debug)]
pub(crate) struct SocketTask {
    settings: Arc<Settings>,
    clock: Clock,
    pub(crate) sockets: Vec<SocketStack>,
    inbox: Inbox,
    watch: Watch,
    events: Events,
    routes: Routes,
    /// The controllers of single peers.
    controllers: BTreeMap<SocketAddr, ControllerChoice>,
    /// Requests whose progress somebody wants to know.
    watched: Vec<((usize, ClientRequestId), Watched)>,
    /// Peers with whom sessions are begun later.
    later: BTreeMap<SocketAddr, Later>,
    /// How further sockets are opened. A server has one alone.
    factory: Option<SocketFactory>,
    /// Who answers what is asked here.
    #[cfg(feature = "server")]
    server: Option<Serving>,
    /// When it ends whatever is still under way.
    end: Option<tokio::time::Instant>,
    /// Who waits for the end.
    waiting: Vec<oneshot::Sender<()>>,
}

/// What stacks tell, until something is done about it.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Requests of ours.
    pub(crate) requests: PendingRequests,
    /// What is asked here.
    #[cfg(feature = "server")]
    incoming: Option<serving::Incoming>,
}

impl Events {
    /// The stack of a socket told something.
    fn event(&mut self, at: usize, now: Instant, event: Event<'_, Address>) {
        #[cfg(feature = "server")]
        let Some(event) = (match &mut self.incoming {
            Some(incoming) => incoming.take(event),
            None => Some(event),
        }) else {
            return;
        };
        self.requests.event(at, now, event);
    }

    /// It told something of a single exchange.
    fn trace(&mut self, at: usize, now: Instant, event: &Trace<'_, Address>) {
        #[cfg(feature = "server")]
        if let Some(incoming) = &mut self.incoming {
            incoming.trace(event);
        }
        self.requests.trace(at, now, event);
    }
}

impl SocketTask {
    /// That of a client. With keys all that it sends is under DTLS.
    pub(crate) fn of_client(settings: Arc<Settings>, keys: Option<Keys>) -> Result<Self, Error> {
        let local = match (settings.bind, keys.is_some()) {
            (bind, false) => bind,
            // The port itself is that of requests without security.
            (bind, true) => settings.bind_dtls.or(bind.map(|local| SocketAddr::new(local.ip(), 0))),
        };
        let factory = SocketFactory::new(&settings, keys)?;
        let mut task = Self::new(settings, Clock::start(), Some(factory));
        if let Some(local) = local {
            task.open(local)?;
        }
        Ok(task)
    }

    fn new(settings: Arc<Settings>, clock: Clock, factory: Option<SocketFactory>) -> Self {
        Self {
            controllers: settings.controllers.clone(),
            watch: Watch::new(settings.hook.clone()),
            settings,
            clock,
            sockets: Vec::new(),
            inbox: Inbox::new(),
            events: Events::default(),
            routes: Routes::default(),
            watched: Vec::new(),
            later: BTreeMap::new(),
            factory,
            #[cfg(feature = "server")]
            server: None,
            end: None,
            waiting: Vec::new(),
        }
    }

    /// Runs until nobody is left who could ask and nothing is under way, or the server is told to end.
    pub(crate) async fn run(mut self, from: &mut Inputs) {
        let mut commands = Vec::new();
        let mut sleep: Option<Pin<Box<tokio::time::Sleep>>> = None;
        while !self.is_over() {
            let next = self.wakes();
            match (&mut sleep, next) {
                (Some(sleep), Some(at)) if sleep.deadline() == at => {}
                (Some(sleep), Some(at)) => sleep.as_mut().reset(at),
                (none, Some(at)) => *none = Some(Box::pin(tokio::time::sleep_until(at))),
                (_, None) => {}
            }
            let takes_commands =
                (self.end.is_none() || self.serves()) && !self.sockets.iter().any(SocketStack::is_full);
            std::future::poll_fn(|cx| {
                let mut is_ready = false;
                if let Some(asked) = from.commands.as_mut().filter(|_| takes_commands)
                    && let Poll::Ready(count) = asked.poll_recv_many(cx, &mut commands, AT_ONCE)
                {
                    if count == 0 {
                        from.commands = None;
                    }
                    is_ready = true;
                }
                #[cfg(feature = "server")]
                {
                    is_ready |= self.poll_server(cx, from);
                }
                for socket in &mut self.sockets {
                    is_ready |= socket.poll_ready(cx).is_ready();
                }
                if next.is_some()
                    && let Some(sleep) = &mut sleep
                {
                    is_ready |= sleep.as_mut().poll(cx).is_ready();
                }
                if is_ready { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            #[cfg(feature = "server")]
            if self.heed_orders(from).is_break() {
                return;
            }
            if from.commands.is_none() && !self.serves() && self.end.is_none() {
                self.end = Some(tokio::time::Instant::now() + CLIENT_GRACE);
            }
            if !commands.is_empty() && self.sockets.iter().any(|socket| socket.sessions.is_some()) {
                // Whose session was closed meanwhile is asked in another one.
                self.turn();
            }
            for command in commands.drain(..) {
                self.command(command);
            }
            self.turn();
        }
        let now = self.clock.now();
        for socket in &mut self.sockets {
            socket.close_sessions(now, &mut self.watch);
        }
    }

    /// Whether it answers what is asked here.
    #[cfg(feature = "server")]
    const fn serves(&self) -> bool {
        self.server.is_some()
    }

    /// Whether it answers what is asked here.
    #[cfg(not(feature = "server"))]
    const fn serves(&self) -> bool {
        false
    }

    /// When there is something to do at the latest.
    fn wakes(&self) -> Option<tokio::time::Instant> {
        let wakes = self.sockets.iter().filter_map(|socket| socket.next).map(|at| self.clock.at(at));
        let wakes = wakes.chain(self.end).chain(self.next_closing()).chain(self.next_later());
        #[cfg(feature = "server")]
        let wakes = wakes.chain(self.server.as_ref().and_then(Serving::gives_up_at));
        wakes.min()
    }

    fn is_over(&self) -> bool {
        let is_quiet = |socket: &SocketStack| socket.stack.endpoint().exchanges() == 0 && !socket.is_full();
        let is_done = || self.sockets.iter().all(is_quiet);
        #[cfg(feature = "server")]
        let is_done = || is_done() && self.server.as_ref().is_none_or(|server| server.dispatcher.running() == 0);
        self.end.is_some_and(|end| tokio::time::Instant::now() >= end || is_done())
    }

    /// Takes in what came, fires what is due, has handlers run, hands over what leaves.
    fn turn(&mut self) {
        let clock = self.clock;
        self.close_idle(clock.now());
        let mut complaints = Vec::new();
        for socket in &mut self.sockets {
            let Self { inbox, watch, events, .. } = self;
            socket.flush(clock.now(), watch);
            socket.receive(|| clock.now(), inbox, watch, events, |error| complaints.push(error));
            let now = clock.now();
            if socket.next.is_some_and(|next| next <= now) {
                socket.poll(now, watch, events);
            }
        }
        for complaint in complaints {
            self.complain(&complaint);
        }
        for at in 0..self.sockets.len() {
            self.hear(at);
        }
        self.begin_later();
        #[cfg(feature = "server")]
        self.serve();
        self.settle();
        self.flush();
        let sockets = &self.sockets;
        self.watched.retain_mut(|((at, id), watched)| {
            let progress = sockets.get(*at).and_then(|socket| socket.stack.progress(*id));
            progress.inspect(|progress| watched.tell((*progress).into())).is_some()
        });
    }

    /// Hands over what leaves. Requests to whom the kernel sends nothing end, and others may take their place.
    fn flush(&mut self) {
        loop {
            let now = self.clock.now();
            let mut refused = Vec::new();
            for socket in &mut self.sockets {
                socket.flush(now, &mut self.watch);
                refused.append(&mut socket.take_refused());
            }
            if refused.is_empty() {
                return;
            }
            for error in refused {
                self.group_is_out_of_reach(now, error.to, &error.reason);
                self.cut_off(&error);
            }
            self.settle();
        }
    }

    /// The network says that a peer cannot be reached. Requests to which nothing came back yet end with that; what is half done goes
    /// on, because peers come back. Of answers that concerns nobody: their retransmission gives up by itself.
    fn complain(&mut self, error: &SocketError) {
        self.watch.tell(self.clock.now(), error.to, || Happened::Complaint { reason: error.reason.clone() });
        #[cfg(feature = "server")]
        self.end_observers_beyond(error);
        self.cut_off(error);
    }

    /// A peer cannot be reached: what was asked of it, and not acknowledged, ends with that.
    fn cut_off(&mut self, SocketError { to, reason, .. }: &SocketError) {
        let now = self.clock.now();
        let unreachable = || Error::Unreachable { peer: *to, reason: reason.clone(), source: None };
        self.events.requests.end_pings(|ping| ping.peer == *to, &unreachable());
        let mut had_begun = false;
        for socket in &mut self.sockets {
            had_begun |= socket.cancel_handshake(*to);
        }
        if had_begun {
            self.settings.attempts.failed(tokio::time::Instant::now(), *to, chance());
            self.end_held(*to, &unreachable());
        }
        for (at, id) in self.events.requests.unheard(*to) {
            let progress = self.sockets.get(at).and_then(|socket| socket.stack.progress(id));
            if progress.is_some_and(|progress| progress.sent + progress.received > 0) {
                continue;
            }
            self.events.requests.end((at, id), Err(unreachable()));
            self.on_stack(at, now, |stack| stack.cancel(now, id));
        }
    }

    /// Gives the stack of a socket an input and drains it.
    fn on_stack<T>(&mut self, at: usize, now: Instant, input: impl FnOnce(&mut DatagramStack) -> T) -> Option<T> {
        let socket = self.sockets.get_mut(at)?;
        let done = input(&mut socket.stack);
        socket.poll(now, &mut self.watch, &mut self.events);
        Some(done)
    }

    fn stats(&self) -> Stats {
        let now = self.clock.now();
        let memory = self.events.requests.gatherings.memory();
        let mut stats = Stats { sockets: self.sockets.len(), memory, ..Stats::default() };
        for socket in &self.sockets {
            stats.add(&socket.stack.endpoint().counters());
            stats.memory += socket.stack.memory();
            stats.exchanges += u64::from(socket.stack.endpoint().exchanges());
            if let Some(sessions) = &socket.sessions {
                sessions.count(&mut stats);
            }
        }
        (stats.backlogs, stats.unsent) = (self.watch.backlogs, self.watch.unsent);
        stats.unnecessary_retransmissions = self.watch.unnecessary;
        stats.peers = self.watch.peers(now, |peer| {
            // The socket that knows it last knows it best.
            let known =
                self.sockets.iter().rev().find_map(|socket| Some((socket.stack.endpoint(), socket.viewed_as(peer)?)));
            let view = known.and_then(|(endpoint, peer)| endpoint.view(peer)).unwrap_or_default();
            let base_rtt = known.and_then(|(endpoint, peer)| endpoint.base_rtt(peer));
            Known { is_validated: self.is_validated(now, peer), view, base_rtt, waiting: self.routes.held(peer) }
        });
        #[cfg(feature = "server")]
        self.count_for_server(&mut stats);
        stats
    }

    /// Whether a peer is known to be where it says. All that a client knows were asked.
    #[cfg(not(feature = "server"))]
    const fn is_validated(&self, _now: Instant, _peer: SocketAddr) -> bool {
        true
    }
}

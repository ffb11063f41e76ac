//! What a task does for a server: handlers are asked, and what they say leaves.

use std::{
    borrow::Cow,
    net::SocketAddr,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use millpond_coap::{Event as Trace, Ignored, message::Code};
use millpond_control::Instant;
use tokio::sync::{Notify, mpsc, oneshot};

use super::{AT_ONCE, Inputs, SocketStack, SocketTask};
#[cfg(feature = "state")]
use crate::server::Observing;
use crate::{
    Error, Response, Stats, Transport,
    client::{Command, Settings},
    clock::Clock,
    security::ServerSecurity,
    server::{ASK_AGAIN, AccessOutcome, AccessRecord, Caught, Dispatcher, IncomingRequest, TaskEvent, UnaskedHook},
    transfer::{Event, ObserverId},
    udp::{Address, SocketError},
};

/// What the server's handle asks of a task.
#[derive(Debug)]
pub(crate) enum Order {
    Stats(oneshot::Sender<Stats>),
    /// The policy has changed.
    Policy,
    /// Answer what was asked, tell observers, end.
    Shutdown,
    /// Requests of a client are to leave from the same socket.
    Requests(mpsc::UnboundedReceiver<Command>),
    /// Who observes, as far as that can be kept over a restart.
    #[cfg(feature = "state")]
    Observers(oneshot::Sender<Vec<Observing>>),
    /// The same, before the server is shut down: nobody begins to, and nobody is told the end.
    #[cfg(feature = "state")]
    HandOver(oneshot::Sender<Vec<Observing>>),
    /// Make further sessions with this, and say when that is so.
    Secure(Box<ServerSecurity>, oneshot::Sender<()>),
}

/// How long a server that ends waits for handlers, and then for its answers to be acknowledged or taken.
pub(crate) const HANDLERS_GRACE: Duration = Duration::from_secs(3);
pub(crate) const GRACE: Duration = Duration::from_secs(4);

/// Keeps a task running until it is told to end or the server is gone. One that panics, by a controller of the application's or by a
/// mistake of ours, is followed by another at the same socket, which knows nobody.
pub(crate) async fn keep_running(
    first: SocketTask,
    orders: mpsc::UnboundedReceiver<Order>,
    panics: Arc<AtomicU64>,
    mut another: impl FnMut() -> Result<SocketTask, Error>,
) -> Result<(), Error> {
    let mut inputs = Inputs { orders: Some(orders), ..Inputs::default() };
    let mut task = first;
    while Caught(Box::pin(task.run(&mut inputs))).await.is_err() {
        panics.fetch_add(1, Ordering::Relaxed);
        tracing::error!(target: "millpond_live", "a worker panicked; another one goes on at its socket");
        if inputs.is_ending {
            break;
        }
        task = another()?;
    }
    Ok(())
}

/// Who answers what is asked at a socket.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(super) dispatcher: Dispatcher,
    task_events: mpsc::UnboundedReceiver<TaskEvent>,
    /// What was taken of both, and is to be done.
    batch: Vec<TaskEvent>,
    orders: Vec<Order>,
    /// The server is gone.
    is_orphaned: bool,
    /// Until when handlers are waited for once it ends.
    patience: Option<tokio::time::Instant>,
    /// Handshakes that failed.
    insecure: u64,
    /// Who is told when others observe than before, for whom a server that is started again is to know.
    pub(super) keeper: Option<Arc<Notify>>,
}

impl Serving {
    pub(crate) const fn new(dispatcher: Dispatcher, task_events: mpsc::UnboundedReceiver<TaskEvent>) -> Self {
        Self {
            dispatcher,
            task_events,
            batch: Vec::new(),
            orders: Vec::new(),
            is_orphaned: false,
            patience: None,
            insecure: 0,
            keeper: None,
        }
    }

    /// Has this one told when others observe than before.
    #[cfg(feature = "state")]
    pub(crate) fn kept_by(self, keeper: Option<Arc<Notify>>) -> Self {
        Self { keeper, ..self }
    }

    /// When handlers are waited for no longer.
    pub(super) const fn gives_up_at(&self) -> Option<tokio::time::Instant> {
        self.patience
    }
}

/// What stacks handed up and the dispatcher has not seen yet.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    requests: Vec<(Address, IncomingRequest)>,
    gone: Vec<ObserverId>,
    /// What the layers below refused, if anything logs it.
    refusals: Vec<(Address, AccessRecord)>,
    is_logged: bool,
    unasked: Option<UnaskedHook>,
    /// A peer has acknowledged a message that was not asked for, and with that shown where it is.
    was_delivered: bool,
}

impl Incoming {
    const fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.gone.is_empty()
    }

    /// Takes an event that is about what is asked here; gives back any other.
    pub(super) fn take<'e>(&mut self, event: Event<'e, Address>) -> Option<Event<'e, Address>> {
        match event {
            Event::Request { from, id, message, body, wants_to_observe, by_group, context } => {
                let whom = (from.peer(), Transport::Udp);
                let incoming = IncomingRequest::of((id, &message), body, whom, (wants_to_observe, by_group), context);
                self.requests.push((from, incoming));
            }
            Event::Refused { from, message, why, by_group } => {
                if self.is_logged {
                    let whose = (from.peer(), Transport::Udp);
                    self.refusals.push((from, AccessRecord::refused(whose, &message, why, by_group)));
                }
            }
            Event::ObserverGone { observer, .. } => self.gone.push(observer),
            event => return Some(event),
        }
        None
    }

    pub(super) fn trace(&mut self, event: &Trace<'_, Address>) {
        match event {
            Trace::Unasked { from, message } => {
                if let Some(unasked) = &self.unasked {
                    unasked.tell(from.peer(), message);
                }
            }
            Trace::Delivered { .. } => self.was_delivered = true,
            Trace::Ignored { from, why } if self.is_logged => {
                if let Some((outcome, reason)) = of_ignored(why) {
                    let record = AccessRecord::unread((from.peer(), Transport::Udp), outcome, reason);
                    self.refusals.push((*from, record));
                }
            }
            _ => {}
        }
    }
}

impl SocketTask {
    /// That of a server, which has one socket.
    pub(crate) fn of_server(
        settings: Arc<Settings>,
        clock: Clock,
        socket: SocketStack,
        server: Serving,
        unasked: Option<UnaskedHook>,
    ) -> Self {
        let is_logged = server.dispatcher.accesses.hook.is_set();
        let mut task = Self::new(settings, clock, None);
        task.sockets.push(socket);
        task.events.incoming = Some(Incoming { is_logged, unasked, ..Incoming::default() });
        task.server = Some(server);
        task
    }

    /// Takes what handlers told and what the server's handle wants. Whether that is anything.
    pub(super) fn poll_server(&mut self, cx: &mut Context<'_>, from: &mut Inputs) -> bool {
        let Some(server) = &mut self.server else { return false };
        let mut is_ready = server.task_events.poll_recv_many(cx, &mut server.batch, AT_ONCE).is_ready();
        if let Some(orders) = from.orders.as_mut().filter(|_| self.end.is_none())
            && let Poll::Ready(count) = orders.poll_recv_many(cx, &mut server.orders, AT_ONCE)
        {
            server.is_orphaned = count == 0;
            is_ready = true;
        }
        is_ready
    }

    /// Does what the server's handle wants, and gives up handlers that have had their time.
    pub(super) fn heed_orders(&mut self, from: &mut Inputs) -> ControlFlow<()> {
        let Some(server) = &mut self.server else { return ControlFlow::Continue(()) };
        if server.is_orphaned {
            return ControlFlow::Break(());
        }
        let now = tokio::time::Instant::now();
        if server.patience.is_some_and(|patience| now >= patience) {
            server.patience = None;
            server.dispatcher.abort_handlers();
        }
        for order in std::mem::take(&mut server.orders) {
            let Some(server) = &mut self.server else { break };
            match order {
                Order::Requests(asked) => from.commands = Some(asked),
                Order::Stats(reply) => drop(reply.send(self.stats())),
                Order::Policy => server.dispatcher.end_forbidden(),
                #[cfg(feature = "state")]
                Order::Observers(reply) => drop(reply.send(self.kept_observers())),
                #[cfg(feature = "state")]
                Order::HandOver(reply) => {
                    server.dispatcher.is_closing = true;
                    server.dispatcher.is_followed = server.keeper.is_some();
                    drop(reply.send(self.kept_observers()));
                }
                Order::Secure(security, done) => {
                    self.sockets.iter_mut().for_each(|socket| socket.secure(&security));
                    let _ = done.send(());
                }
                Order::Shutdown => {
                    from.is_ending = true;
                    (server.patience, self.end) = (Some(now + HANDLERS_GRACE), Some(now + GRACE));
                    server.dispatcher.is_closing = true;
                    if !server.dispatcher.is_followed {
                        let last = Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(ASK_AGAIN);
                        server.dispatcher.end_observers(None, &last);
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Hands the dispatcher what came and what handlers told, and does what it wants done.
    pub(super) fn serve(&mut self) {
        let now = self.clock.now();
        let Some(server) = &mut self.server else { return };
        let mut batch = std::mem::take(&mut server.batch);
        for event in batch.drain(..) {
            if let Some(server) = &mut self.server {
                server.dispatcher.task_event(now, event);
            }
            self.act(now);
        }
        if let Some(server) = &mut self.server {
            server.batch = batch;
        }
        loop {
            self.act(now);
            let (Some(server), Some(incoming)) = (&mut self.server, &mut self.events.incoming) else { return };
            if incoming.is_empty() {
                break;
            }
            for gone in incoming.gone.drain(..) {
                server.dispatcher.observers.remove(gone);
            }
            let mut requests = std::mem::take(&mut incoming.requests);
            for (from, incoming) in requests.drain(..) {
                self.request_came(now, from, incoming);
                // Before the next one: of all bodies that a batch of requests asks for, one is held at a time.
                self.act(now);
            }
            if let Some(incoming) = &mut self.events.incoming {
                // With its room, for the next.
                requests.append(&mut incoming.requests);
                incoming.requests = requests;
            }
        }
        self.tell_refusals();
        let (Some(server), Some(incoming)) = (&mut self.server, &mut self.events.incoming) else { return };
        let has_changed = std::mem::take(&mut server.dispatcher.observers.have_changed);
        if std::mem::take(&mut incoming.was_delivered) | has_changed
            && let Some(keeper) = &server.keeper
        {
            keeper.notify_one();
        }
    }

    fn request_came(&mut self, now: Instant, from: Address, mut incoming: IncomingRequest) {
        self.choose_controller(now, 0, from);
        let (Some(server), [socket, ..]) = (&mut self.server, &mut self.sockets[..]) else { return };
        let by_context = incoming.context.take().and_then(|id| self.settings.protecting.identity(&id));
        match &socket.sessions {
            Some(sessions) => {
                incoming.request.identify(Transport::Dtls, by_context.or_else(|| sessions.identity(from).cloned()));
            }
            None if by_context.is_some() => incoming.request.identify(Transport::Udp, by_context),
            None => {}
        }
        server.dispatcher.dispatch(now, incoming);
    }

    /// Does what the dispatcher wants done.
    fn act(&mut self, now: Instant) {
        let Self { server, sockets, watch, events, .. } = self;
        let (Some(Serving { dispatcher, .. }), [socket, ..]) = (server, &mut sockets[..]) else { return };
        while let Some(action) = dispatcher.action() {
            dispatcher.carry_out(now, &mut socket.stack, action);
            socket.poll(now, watch, events);
        }
    }

    /// Reports what was answered or ignored without the dispatcher.
    fn tell_refusals(&mut self) {
        let (Some(server), Some(incoming)) = (&self.server, &mut self.events.incoming) else { return };
        for (from, mut record) in incoming.refusals.drain(..) {
            if let Some(sessions) = self.sockets.first().and_then(|socket| socket.sessions.as_ref()) {
                (record.transport, record.identity) = (Transport::Dtls, sessions.identity(from).cloned());
            }
            server.dispatcher.accesses.hook.tell(|| record);
        }
    }

    /// A handshake has failed.
    pub(super) fn handshake_failed(&mut self, peer: SocketAddr, reason: &str) {
        let Some(server) = &mut self.server else { return };
        server.insecure += 1;
        let whose = (peer, Transport::Dtls);
        server
            .dispatcher
            .accesses
            .hook
            .tell(|| AccessRecord::unread(whose, AccessOutcome::Insecure, reason.to_owned()));
    }

    /// Who observes from where nobody listens any more does so no more.
    pub(super) fn end_observers_beyond(&mut self, error: &SocketError) {
        if !error.is_refused || self.server.is_none() {
            return;
        }
        let now = self.clock.now();
        for at in 0..self.sockets.len() {
            let addresses = self.sockets.get(at).map(|socket| socket.all_known_as(error.to).collect::<Vec<_>>());
            for address in addresses.into_iter().flatten() {
                self.end_observers_at(now, at, address);
            }
        }
    }

    /// Who observed at this address does so no more.
    pub(super) fn end_observers_at(&mut self, now: Instant, at: usize, address: Address) {
        let observers = self.sockets.get(at).map(|socket| socket.stack.observers_of(address).collect::<Vec<_>>());
        for observer in observers.into_iter().flatten() {
            if let Some(server) = &mut self.server {
                server.dispatcher.observers.remove(observer);
            }
            self.on_stack(at, now, |stack| stack.remove_observer(now, observer));
        }
    }

    /// Adds a server's figures.
    pub(super) fn count_for_server(&self, stats: &mut Stats) {
        let Some(Serving { dispatcher, insecure, .. }) = &self.server else { return };
        let limited: u64 = self.sockets.iter().map(|socket| socket.stack.counters().limited).sum();
        stats.memory += dispatcher.memory();
        stats.observers = dispatcher.observers.len();
        stats.overloaded = dispatcher.overloaded;
        stats.unverified = dispatcher.reachability.withheld() + limited;
        stats.insecure = *insecure;
        stats.panics = self.watch.panics.load(Ordering::Relaxed);
    }

    /// Whether a peer is known to be where it says. All that a client knows were asked.
    pub(super) fn is_validated(&self, now: Instant, peer: SocketAddr) -> bool {
        let Some(server) = &self.server else { return true };
        let has_answered = |socket: &SocketStack| {
            let endpoint = socket.stack.endpoint();
            socket.sessions.is_some() || socket.all_known_as(peer).any(|known| endpoint.is_validated(known))
        };
        server.dispatcher.reachability.is_validated(now, peer) || self.sockets.iter().any(has_answered)
    }
}

/// What a log of accesses is notified of a datagram that was not taken: those that are no requests are none of its concern.
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
        Ignored::LongToken { is_for_want_of_room } => {
            let (code, why) = match is_for_want_of_room {
                true => (Code::SERVICE_UNAVAILABLE, "no room for its token of more than 8 bytes"),
                false => (Code::BAD_REQUEST, "a longer token than is taken (longest_token)"),
            };
            (AccessOutcome::Answered { code, bytes: 0 }, why.into())
        }
        Ignored::NoRoom => (AccessOutcome::Unanswered, "no room for another request".into()),
        _ => return None,
    })
}

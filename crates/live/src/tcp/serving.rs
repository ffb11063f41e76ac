//! What a connection has of its server: who answers what is asked in it, and how long it may be silent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use millpond_coap::{
    Event as Trace, IdGenerator,
    message::Code,
    stream::{Connection, Options as Settings, Signal},
    transfer::{CoapStack, Config, Event, Limits},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::Instant,
};

use super::{
    asking::{Asking, SETTINGS_WAIT, Whom},
    connection_task::{CommandSource, ConnectionTask, Ending},
    connections::ConnectionPermit,
    link::{Link, LinkEvent, Stream},
    server::{ConnectionContext, Counted, ServerChanges},
};
use crate::{
    PeerIdentity, Response, Transport,
    clock::Clock,
    security::{Other, Protecting},
    server::{ASK_AGAIN, AccessRecord, Action, Dispatcher, IncomingRequest, Reachability, Room, TaskEvent},
    socket::HANDLERS_GRACE,
};

/// How long a connection may be silent. Then it ends, unless it observes or waits for an answer: then it is asked whether
/// it is still there (RFC 8323 §5.4).
const IDLE: Duration = Duration::from_secs(600);
/// The same before the first request.
const IDLE_UNASKED: Duration = Duration::from_secs(60);
/// Bytes that a secure session takes, about.
const SESSION: usize = 32 << 10;

/// Requests of ours that the stack is handed at a time.
const WINDOW: usize = 64;

/// The task of a connection in which requests are answered.
pub(super) fn task<S: Stream>(
    stream: S,
    whom: Whom,
    context: ConnectionContext,
    (reachability, id_generator): (Reachability, IdGenerator),
    orders: CommandSource,
    is_released: Arc<AtomicBool>,
) -> ConnectionTask<S> {
    let ConnectionContext { shared, permit, changes, counted } = context;
    let (sender, task_events) = mpsc::unbounded_channel();
    let router = Arc::clone(&shared.router);
    let settings = Settings { longest_token: shared.longest_token, ..Settings::default() };
    let connection = shared.protecting.connection(Connection::new(settings).with_id_generator(id_generator));
    let limits = limits(shared.longest_body);
    let mut stack = CoapStack::over_stream(connection, Config { limits, ..Config::STREAM });
    if router.streams() {
        stack.take_pieces(router.takes_pieces());
    }
    let is_ours = orders.is_ours();
    let mut asking = Asking::new(whom.clone(), shared.clock, WINDOW, is_released);
    // What was for the one before is not asked of a peer that comes next at its address.
    (asking.is_kept, asking.may_move) = (is_ours, is_ours);
    let dispatcher = Dispatcher::new(
        router,
        shared.limits,
        reachability,
        Arc::clone(&shared.admission),
        Arc::clone(&shared.policing),
        sender,
        shared.accesses.clone(),
    );
    let serving = Serving {
        whom,
        protecting: shared.protecting.clone(),
        is_ours,
        dispatcher,
        task_events,
        changes,
        permit,
        figures: Figures { counted, overloaded: 0, observers: 0, asked: 0 },
        heard: Instant::now(),
        stage: Stage::Opened,
        is_pinged: false,
        knows_the_end: false,
        gives_way: false,
        patience: None,
    };
    let link = Link::new(stream, stack, if is_ours { Other::Server } else { Other::Client });
    ConnectionTask::new(shared.clock, link, asking, orders, Some(Box::new(serving)))
}

/// What a connection may hold of bodies: a quarter of what all of a server may, or less. What is kept of answers is shared with
/// a peer that else keeps it.
fn limits(longest_body: usize) -> Limits {
    let usual = Config::STREAM.limits;
    let bodies = usual.bodies.max(longest_body.saturating_mul(4));
    Limits { body: longest_body, bodies, cached: usual.cached.max(longest_body), ..usual }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The client's settings have not come.
    Opened,
    Settled,
    /// It has asked for something.
    Active,
}

/// Answers what is asked in a connection.
pub(super) struct Serving {
    whom: Whom,
    protecting: Protecting,
    /// This side began the connection.
    is_ours: bool,
    dispatcher: Dispatcher,
    task_events: mpsc::UnboundedReceiver<TaskEvent>,
    changes: watch::Receiver<ServerChanges>,
    permit: ConnectionPermit,
    figures: Figures,
    /// When something came last.
    heard: Instant,
    stage: Stage,
    /// The peer is asked whether it is still there.
    is_pinged: bool,
    /// It has answered the ping behind the release: once nothing is pending the connection may end.
    knows_the_end: bool,
    /// The connection has no place any more.
    gives_way: bool,
    /// Until when handlers, and answers to what was asked, are waited for once the connection is to end.
    patience: Option<Instant>,
}

/// What of this connection is among the figures of all.
struct Figures {
    counted: Arc<Counted>,
    overloaded: u64,
    observers: usize,
    asked: u64,
}

impl Figures {
    fn tell(&mut self, dispatcher: &Dispatcher, asked: u64) {
        self.counted.sent.fetch_add(asked - self.asked, Ordering::Relaxed);
        self.asked = asked;
        let (overloaded, observers) = (dispatcher.overloaded, dispatcher.observers.len());
        self.counted.overloaded.fetch_add(overloaded - self.overloaded, Ordering::Relaxed);
        // Round the end of the numbers, if they are fewer now.
        self.counted.observers.fetch_add(observers.wrapping_sub(self.observers), Ordering::Relaxed);
        (self.overloaded, self.observers) = (overloaded, observers);
    }
}

impl Drop for Figures {
    fn drop(&mut self) {
        self.counted.observers.fetch_sub(self.observers, Ordering::Relaxed);
    }
}

impl Serving {
    /// When it is to be looked at whether the connection is silent for too long. One that was begun here is kept as long as
    /// somebody may ask in it.
    fn silent_until(&self) -> Option<Instant> {
        let silence = match self.stage {
            Stage::Opened => SETTINGS_WAIT,
            _ if self.is_ours => return None,
            Stage::Settled => IDLE_UNASKED,
            // What becomes of the ping, the stack tells.
            Stage::Active if self.is_pinged => IDLE * 2,
            Stage::Active => IDLE,
        };
        Some(self.heard + silence)
    }

    /// When it wants to be looked at.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.patience, self.silent_until()].into_iter().flatten().min()
    }

    /// Takes in what comes beside the connection, and says what is to become of that. Nothing is lost if it is not waited
    /// for to its end.
    pub(super) async fn next(&mut self, clock: Clock) -> Option<Ending> {
        tokio::select! {
            Some(event) = self.task_events.recv() => self.dispatcher.task_event(clock.now(), event),
            () = self.permit.give_way.notified() => {
                self.gives_way = true;
                return Some(Ending::Abort("too many connections are open"));
            }
            changed = self.changes.changed(), if !self.dispatcher.is_closing => {
                // A port whose task is gone ends its connections.
                if changed.is_err() || self.changes.borrow_and_update().is_ending {
                    return Some(Ending::Release);
                }
                self.dispatcher.end_forbidden();
            }
        }
        None
    }

    /// Something is asked of the peer, whom the application knows then.
    pub(super) fn asks(&mut self) {
        if self.stage == Stage::Settled {
            self.stage = Stage::Active;
            self.permit.has_asked();
        }
    }

    /// Whether the connection's end was wanted.
    pub(super) const fn is_closing(&self) -> bool {
        self.dispatcher.is_closing
    }

    /// The end of the connection is wanted. Observers learn of it before it is released: who observes nothing more can close it.
    pub(super) fn release(&mut self) {
        self.dispatcher.is_closing = true;
        self.dispatcher.end_observers(None, &Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(ASK_AGAIN));
        self.patience = Some(Instant::now() + HANDLERS_GRACE);
    }

    /// Whether handlers were waited for long enough; they are ended then.
    pub(super) fn is_out_of_patience(&mut self) -> bool {
        let is_over = self.patience.take_if(|patience| *patience <= Instant::now()).is_some();
        if is_over {
            self.dispatcher.abort_handlers();
        }
        is_over
    }

    /// Why the connection is to end, if it is silent for too long, or holds too much.
    pub(super) fn check_up<S: Stream>(
        &mut self,
        at: millpond_control::Instant,
        has_come: bool,
        is_asking: bool,
        link: &mut Link<S>,
    ) -> Option<&'static str> {
        let now = Instant::now();
        if has_come && self.stage != Stage::Opened {
            (self.heard, self.is_pinged) = (now, false);
        }
        let is_awaited = self.dispatcher.running() > 0 || self.dispatcher.observers.len() > 0 || is_asking;
        let mut end = None;
        if self.silent_until().is_some_and(|until| now >= until) {
            match self.stage {
                Stage::Opened => end = Some("no settings (CSM) came"),
                Stage::Active if is_awaited && !self.is_pinged => {
                    self.is_pinged = true;
                    let _ = link.stack.ping(at, false);
                }
                Stage::Settled | Stage::Active => end = Some("silent for too long"),
            }
        }
        // Beside us the session keeps what it was shown.
        let shown = self.whom.identity.as_deref().map_or(0, PeerIdentity::weight);
        let session = if self.whom.transport == Transport::Tls { SESSION + 2 * shown } else { 0 };
        if !self.permit.holds(self.heard, link.memory() + self.dispatcher.memory() + session) {
            self.gives_way = true;
            end = Some("all connections together hold too much, and this one most of it");
        }
        end
    }

    /// Has done what the dispatcher wants.
    pub(super) fn act(&mut self, now: millpond_control::Instant, stack: &mut CoapStack<Connection>) {
        while let Some(action) = self.dispatcher.action() {
            let is_said = !matches!(action, Action::SuppressResponse(_) | Action::Fail(_) | Action::RemoveObserver(_));
            self.dispatcher.carry_out(now, stack, action);
            self.figures.counted.sent.fetch_add(u64::from(is_said), Ordering::Relaxed);
        }
    }

    /// Whether the connection ends if no answer comes to a ping.
    pub(super) const fn awaits_pong(&self) -> bool {
        self.is_pinged || self.dispatcher.is_closing
    }

    /// The stack told something. Gives back what was asked.
    pub(super) fn hear(&mut self, event: LinkEvent<'_>) -> Option<IncomingRequest> {
        let from = (self.whom.peer, self.whom.transport);
        match event {
            LinkEvent::Event(Event::Request { id, message, body, wants_to_observe, by_group, context, .. }) => {
                return Some(IncomingRequest::of((id, &message), body, from, (wants_to_observe, by_group), context));
            }
            LinkEvent::Event(Event::Refused { message, why, by_group, .. }) => {
                let refused = || AccessRecord::refused(from, &message, why, by_group);
                let identity = &self.whom.identity;
                self.dispatcher.accesses.hook.tell(|| AccessRecord { identity: identity.clone(), ..refused() });
            }
            LinkEvent::Event(Event::ObserverGone { observer, .. }) => {
                self.dispatcher.observers.remove(observer);
            }
            LinkEvent::Trace(Trace::Signal(Signal::Csm { .. })) if self.stage == Stage::Opened => {
                (self.stage, self.heard) = (Stage::Settled, Instant::now());
            }
            LinkEvent::Trace(Trace::Signal(Signal::Pong { .. })) => self.knows_the_end = self.dispatcher.is_closing,
            _ => {}
        }
        None
    }

    /// Has a request answered.
    pub(super) fn dispatch(
        &mut self,
        now: millpond_control::Instant,
        mut incoming: IncomingRequest,
        stack: &CoapStack<Connection>,
    ) {
        if self.stage != Stage::Active {
            self.stage = Stage::Active;
            self.permit.has_asked();
        }
        let theirs = stack.settings();
        incoming.room = Some(Room { bytes: theirs.max_message_size as usize, may_cut: theirs.block_wise });
        let by_context = incoming.context.take().and_then(|id| self.protecting.identity(&id));
        let identity = by_context.or_else(|| self.whom.identity.clone());
        incoming.request.identify(self.whom.transport, identity);
        self.figures.counted.requests.fetch_add(1, Ordering::Relaxed);
        self.dispatcher.dispatch(now, incoming);
    }

    /// What it has done is among the figures of all, with so many requests of ours.
    pub(super) fn count(&mut self, asked: u64) {
        self.figures.tell(&self.dispatcher, asked);
    }

    /// Whether the peer has read that the connection ends.
    pub(super) const fn knows_the_end(&self) -> bool {
        self.knows_the_end
    }

    /// The connection ends. Handlers of requests that want no response go on, and are given back.
    pub(super) async fn close(self, link: Link<impl Stream>) -> JoinSet<()> {
        let Self { dispatcher, figures, permit, gives_way, .. } = self;
        let unheard = dispatcher.unheard();
        drop(figures);
        if gives_way {
            link.close_at_once().await
        } else {
            link.close().await
        }
        drop(permit);
        unheard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One connection could hold as much as is promised for all of them.
    #[test]
    fn no_connection_may_hold_more_than_a_quarter_of_what_all_may() {
        for longest_body in [1, 1 << 20, 16 << 20, 100 << 20] {
            let Limits { body, bodies, cached, .. } = limits(longest_body);
            assert!(body <= bodies && body <= cached, "{longest_body}");
            assert!(4 * bodies.max(cached) <= crate::server::most_in_connections(longest_body), "{longest_body}");
        }
    }
}

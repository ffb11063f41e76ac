//! One connection of a server, from its settings to its end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use millpond_coap::{
    Event as Trace,
    message::Code,
    stream::{Connection, Options as Settings, Signal},
    transfer::{CoapStack, Config, Event, Limits},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};

use super::{
    super::{
        accepted::CommandSource,
        asking::{Asking, SETTINGS_WAIT, Whom, refuse_all},
        connections::ConnectionPermit,
        link::{Link, LinkEvent, Stream},
    },
    ConnectionContext, Counted,
};
use crate::{
    Error, PeerIdentity, Response, Transport,
    client::Command,
    clock::Clock,
    secrets,
    security::Other,
    server::{ASK_AGAIN, AccessRecord, Action, AddressRule, Dispatcher, IncomingRequest, Reachability, Room},
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

/// One connection, from its settings to its end, and with it what is asked in it.
pub(super) async fn serve<S: Stream>(
    stream: S,
    whom: Whom,
    context: ConnectionContext,
    orders: CommandSource,
    early: Vec<Command>,
    is_released: Arc<AtomicBool>,
) -> Ended {
    let ConnectionContext { shared, permit, mut changes, counted } = context;
    let kept =
        Reachability::new(AddressRule::Never).and_then(|reachability| Ok((reachability, secrets::identities()?)));
    let (reachability, identities) = match kept {
        Ok(kept) => kept,
        Err(error) => {
            refuse_all(early, &error);
            orders.refuse(&error).await;
            return Ended::insecure(error.to_string());
        }
    };
    let limits = limits(shared.longest_body);
    let (task_events, mut events) = mpsc::unbounded_channel();
    let (router, admission) = (Arc::clone(&shared.router), Arc::clone(&shared.admission));
    let policing = Arc::clone(&shared.policing);
    let settings = Settings { longest_token: shared.longest_token, ..Settings::default() };
    let connection = shared.protecting.connection(Connection::new(settings).with_identities(identities));
    let mut stack = CoapStack::over_stream(connection, Config { limits, ..Config::STREAM });
    if router.streams() {
        stack.take_pieces(router.takes_pieces());
    }
    let clock = shared.clock;
    let is_ours = matches!(orders, CommandSource::Begun(_));
    let mut asking = Asking::new(whom.clone(), clock, WINDOW, is_released);
    // What was for the one before is not asked of a peer that comes next at its address.
    (asking.is_kept, asking.may_move) = (is_ours, is_ours);
    let mut serving = Serving {
        whom,
        clock,
        link: Link::new(stream, stack, if is_ours { Other::Server } else { Other::Client }),
        asking,
        orders,
        is_ours,
        dispatcher: Dispatcher::new(
            router,
            shared.limits,
            reachability,
            admission,
            policing,
            task_events,
            shared.accesses.clone(),
        ),
        permit,
        figures: Figures { counted, overloaded: 0, observers: 0, asked: 0 },
        heard: Instant::now(),
        stage: Stage::Opened,
        is_pinged: false,
        knows_the_end: false,
        is_over: false,
        gives_way: false,
        ended_for: None,
        patience: None,
        last: None,
    };
    serving.drain();
    for order in early {
        serving.command(Some(order));
        serving.drain();
    }
    while serving.link.closing.is_none() && !serving.is_over {
        let next = serving.link.next.map(|next| clock.at(next));
        let at = [next, serving.patience, serving.due(), serving.asking.due(&serving.link)].into_iter().flatten().min();
        let sleep = async {
            match at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let has_come = AtomicBool::new(false);
        tokio::select! {
            () = serving.link.turn(|| { has_come.store(true, Ordering::Relaxed); clock.now() }) => {}
            Some(event) = events.recv() => serving.dispatcher.task_event(clock.now(), event),
            order = serving.orders.recv(), if serving.last.is_none() => serving.command(order),
            () = sleep => serving.asking.doubt(&mut serving.link),
            () = serving.permit.give_way.notified() => {
                serving.gives_way = true;
                serving.end("too many connections are open");
            }
            // A port whose task is gone ends its connections.
            changed = changes.changed(), if !serving.dispatcher.is_closing => {
                if changed.is_err() || changes.borrow_and_update().is_ending { serving.release() } else { serving.dispatcher.end_forbidden() }
            }
        }
        if serving.patience.is_some_and(|patience| patience <= Instant::now()) {
            serving.patience = None;
            serving.dispatcher.abort_handlers();
            serving.asking.cancel_all(&mut serving.link);
        }
        serving.check_up(has_come.into_inner());
        serving.drain();
        serving.is_over |= serving.knows_the_end && serving.link.stack.is_quiet() && serving.link.is_written();
    }
    let insecure = serving.link.broken.as_ref().map(|why| why.reason.clone());
    Ended { insecure, unheard: serving.close().await }
}

/// What a connection may hold of bodies: a quarter of what all of a server may, or less. What is kept of answers is shared with
/// a peer that else keeps it.
fn limits(longest_body: usize) -> Limits {
    let usual = Config::STREAM.limits;
    let bodies = usual.bodies.max(longest_body.saturating_mul(4));
    Limits { body: longest_body, bodies, cached: usual.cached.max(longest_body), ..usual }
}

/// What is left of a connection.
#[derive(Default)]
pub(super) struct Ended {
    /// Why its secure session did not come about, or broke.
    pub(super) insecure: Option<String>,
    /// Handlers that go on.
    pub(super) unheard: JoinSet<()>,
}

impl Ended {
    /// It never came about.
    pub(super) fn insecure(why: String) -> Self {
        Self { insecure: Some(why), ..Self::default() }
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The client's settings have not come.
    Opened,
    Settled,
    /// It has asked for something.
    Asked,
}

struct Serving<S> {
    whom: Whom,
    clock: Clock,
    link: Link<S>,
    dispatcher: Dispatcher,
    asking: Asking,
    orders: CommandSource,
    /// This side began it.
    is_ours: bool,
    permit: ConnectionPermit,
    figures: Figures,
    /// When something came last.
    heard: Instant,
    stage: Stage,
    /// It is asked whether it is still there.
    is_pinged: bool,
    /// It has answered the ping behind the release: once nothing is pending the connection may end.
    knows_the_end: bool,
    /// The server ends it, whether the client reads why or not.
    is_over: bool,
    /// It has no place any more.
    gives_way: bool,
    /// Why the server ends it.
    ended_for: Option<&'static str>,
    /// Until when handlers, and answers to what was asked, are waited for once it is to end.
    patience: Option<Instant>,
    /// Nobody asks in it any more; told to who waits for that, once it has ended.
    last: Option<Option<oneshot::Sender<()>>>,
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

impl<S: Stream> Serving<S> {
    /// When it has been silent for too long. One that was begun here is kept as long as somebody may ask in it.
    fn due(&self) -> Option<Instant> {
        let silence = match self.stage {
            Stage::Opened => SETTINGS_WAIT,
            _ if self.is_ours => return None,
            Stage::Settled => IDLE_UNASKED,
            // What becomes of the ping, the stack tells.
            Stage::Asked if self.is_pinged => IDLE * 2,
            Stage::Asked => IDLE,
        };
        Some(self.heard + silence)
    }

    /// It ends, and why.
    fn end(&mut self, reason: &'static str) {
        self.link.stack.abort(reason);
        (self.is_over, self.ended_for) = (true, Some(reason));
    }

    /// Its end is wanted: what was asked is answered still.
    fn release(&mut self) {
        let now = self.clock.now();
        self.dispatcher.is_closing = true;
        self.asking.close();
        // Observers learn of it before the connection is released: who observes nothing more can close it.
        self.dispatcher.end_observers(None, &Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(ASK_AGAIN));
        self.drain();
        self.patience = Some(Instant::now() + HANDLERS_GRACE);
        // A connection that is ending anyway needs no release.
        let _ = self.link.stack.release(now, None, None);
        // Not everybody closes then (RFC 8323 §5.5). What was asked before the release was read has come when the
        // ping behind it is answered.
        let _ = self.link.stack.ping(now, false);
    }

    /// Somebody asks in it, or nobody will any more.
    fn command(&mut self, order: Option<Command>) {
        match order {
            Some(Command::Shutdown(_)) if !self.is_ours => self.asking.cancel_all(&mut self.link),
            Some(Command::Shutdown(_)) | None => {
                self.asking.cancel_all(&mut self.link);
                self.last = Some(if let Some(Command::Shutdown(reply)) = order { Some(reply) } else { None });
                if !self.dispatcher.is_closing {
                    self.release();
                }
            }
            Some(order) => {
                // Whom the application asks it knows.
                if matches!(order, Command::Request(_)) && self.stage == Stage::Settled {
                    self.stage = Stage::Asked;
                    self.permit.has_asked();
                }
                self.asking.command(&mut self.link, order);
            }
        }
    }

    /// Ends it if it is silent for too long, or holds too much.
    fn check_up(&mut self, has_come: bool) {
        let now = Instant::now();
        if has_come && self.stage != Stage::Opened {
            (self.heard, self.is_pinged) = (now, false);
        }
        let is_awaited = self.dispatcher.running() > 0 || self.dispatcher.observers.len() > 0 || !self.asking.is_idle();
        if self.due().is_some_and(|due| now >= due) {
            match self.stage {
                Stage::Opened => self.end("no settings (CSM) came"),
                Stage::Asked if is_awaited && !self.is_pinged => {
                    self.is_pinged = true;
                    let _ = self.link.stack.ping(self.clock.now(), false);
                }
                Stage::Settled | Stage::Asked => self.end("silent for too long"),
            }
        }
        // Beside us the session keeps what it was shown.
        let shown = self.whom.identity.as_deref().map_or(0, PeerIdentity::weight);
        let session = if self.whom.transport == Transport::Tls { SESSION + 2 * shown } else { 0 };
        if !self.permit.holds(self.heard, self.link.memory() + self.dispatcher.memory() + session) {
            self.gives_way = true;
            self.end("all connections together hold too much, and this one most of it");
        }
    }

    /// Drains the stack, and does what the dispatcher wants done, until both have nothing to say or the stream is full.
    fn drain(&mut self) {
        let now = self.clock.now();
        let Self { link, dispatcher, asking, whom, figures, stage, heard, is_pinged, knows_the_end, .. } = self;
        loop {
            while let Some(action) = dispatcher.action() {
                let is_said =
                    !matches!(action, Action::SuppressResponse(_) | Action::Fail(_) | Action::RemoveObserver(_));
                dispatcher.carry_out(now, &mut link.stack, action);
                figures.counted.sent.fetch_add(u64::from(is_said), Ordering::Relaxed);
            }
            let from = (whom.peer, whom.transport);
            let (heard_at, mut is_silent) = (link.heard, false);
            let incoming = link.drain(now, |said| {
                match asking.heard(said, heard_at)? {
                    LinkEvent::Event(Event::Request { id, message, body, wants_to_observe, by_group, .. }) => {
                        return Some(IncomingRequest::of((id, &message), body, from, (wants_to_observe, by_group)));
                    }
                    LinkEvent::Event(Event::Refused { message, why, by_group, .. }) => {
                        let refused = || AccessRecord::refused(from, &message, why, by_group);
                        dispatcher.accesses.hook.tell(|| AccessRecord { identity: whom.identity.clone(), ..refused() });
                    }
                    LinkEvent::Event(Event::ObserverGone { observer, .. }) => {
                        dispatcher.observers.remove(observer);
                    }
                    LinkEvent::Trace(Trace::Signal(Signal::Csm { .. })) if *stage == Stage::Opened => {
                        (*stage, *heard) = (Stage::Settled, Instant::now());
                    }
                    LinkEvent::Trace(Trace::Signal(Signal::Pong { .. })) => *knows_the_end = dispatcher.is_closing,
                    LinkEvent::Trace(Trace::PongMissing) => {
                        is_silent = *is_pinged || dispatcher.is_closing || asking.is_gone;
                    }
                    _ => {}
                }
                None
            });
            asking.settle(link);
            if is_silent {
                link.stack.abort("no pong came");
                (self.is_over, self.ended_for) = (true, Some("nothing came any more, not even to a ping"));
            }
            match incoming {
                None if is_silent || asking.launch(link) => {}
                None => break,
                Some(mut incoming) => {
                    if *stage != Stage::Asked {
                        *stage = Stage::Asked;
                        self.permit.has_asked();
                    }
                    let theirs = link.stack.settings();
                    incoming.room = Some(Room { bytes: theirs.max_message_size as usize, may_cut: theirs.block_wise });
                    incoming.request.identify(whom.transport, whom.identity.clone());
                    figures.counted.requests.fetch_add(1, Ordering::Relaxed);
                    dispatcher.dispatch(now, incoming);
                }
            }
        }
        self.figures.tell(&self.dispatcher, self.asking.stats.sent);
    }

    /// Writes what waits, and closes. Nobody waits for its handlers; those of requests that want no response are given back.
    async fn close(self) -> JoinSet<()> {
        let Self { mut link, mut asking, orders, dispatcher, figures, permit, gives_way, .. } = self;
        let lost = match self.ended_for {
            Some(reason) => Error::connection_lost(self.whom.peer, reason),
            None if dispatcher.is_closing => Error::Closed,
            None => asking.lost(&mut link),
        };
        asking.end(&link, &lost);
        orders.refuse(&asking.unsent(&lost)).await;
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

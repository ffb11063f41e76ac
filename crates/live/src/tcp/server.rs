//! A server's connections.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_coap::{
    stream::{Connection, Event as Below, Options as Settings},
    transfer::{Config, Event, Host, Limits, ObserverId},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use super::{
    connections::{Connections, Seat},
    handshakes::{Handshakes, PATIENCE},
    link::{Heard, Link, Stream},
    secure::{self, TlsAcceptor},
};
use crate::{
    Error, Happened, PeerIdentity, Stats, Transport,
    clock::Clock,
    error::is_out_of_files,
    secrets,
    security::Other,
    server::{
        AddressRule, Admission, Arrived, Desk, DeskLimits, GRACE, HANDLERS_GRACE, Hosted, Order, Reachability, Room,
        Router,
    },
    trace::Hook,
    watch::Watch,
};

/// How long a client may take until its settings came (RFC 8323 §5.3).
const SETTINGS_WAIT: Duration = Duration::from_secs(10);
/// How long a connection may be silent. Then it ends, unless it observes or waits for an answer: then it is asked whether
/// it is still there (RFC 8323 §5.4).
const IDLE: Duration = Duration::from_secs(600);
/// The same before the first request.
const IDLE_UNASKED: Duration = Duration::from_secs(60);
/// Bytes that a secure session takes, about.
const SESSION: usize = 32 << 10;

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) router: Arc<Router>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) limits: DeskLimits,
    pub(crate) longest_body: usize,
    pub(crate) hook: Option<Hook>,
}

/// Listens until the task is told to end; with an acceptor, under TLS.
pub(crate) async fn listen(
    address: SocketAddr,
    shared: Arc<Shared>,
    mut acceptor: Option<TlsAcceptor>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) -> Result<(SocketAddr, JoinHandle<Result<(), Error>>), Error> {
    let listener = TcpListener::bind(address).await.map_err(|error| Error::bind(address, &error))?;
    let local = listener.local_addr().map_err(|error| Error::bind(address, &error))?;
    let task = tokio::spawn(async move {
        let (ending, end) = watch::channel(false);
        let (insecure, mut failed) = mpsc::unbounded_channel();
        let mut connections = JoinSet::new();
        let mut stats = Stats::default();
        let (clock, watch) = (Clock::start(), Watch::new(shared.hook.clone()));
        let mut handshakes = Handshakes::default();
        let counted = Arc::new(Counted::default());
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        // Small messages do not wait for one another.
                        let _ = stream.set_nodelay(true);
                        let seat = shared.connections.admit(peer.ip(), Instant::now());
                        let counted = Arc::clone(&counted);
                        let visit = Visit { shared: Arc::clone(&shared), seat, end: end.clone(), counted };
                        let secure = acceptor.clone().map(|acceptor| (acceptor, handshakes.begin()));
                        let insecure = insecure.clone();
                        connections.spawn(async move {
                            let served = match secure {
                                None => {
                                    let whom = Whom { peer, transport: Transport::Tcp, identity: None };
                                    serve(stream, whom, visit).await
                                }
                                Some((acceptor, give_way)) => {
                                    serve_securely(stream, peer, acceptor, give_way, visit).await
                                }
                            };
                            if let Err(reason) = served {
                                let _ = insecure.send((peer, reason));
                            }
                        });
                    }
                    Err(error) => {
                        if is_out_of_files(&error) {
                            shared.connections.make_room();
                        }
                        // Or the peer has gone already: others may come.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some((peer, reason)) = failed.recv() => {
                    stats.insecure += 1;
                    watch.tell(clock.now(), peer, || Happened::Insecure { reason });
                }
                Some(ended) = connections.join_next(), if !connections.is_empty() => {
                    if ended.is_err_and(|error| error.is_panic()) {
                        stats.panics += 1;
                        tracing::error!(target: "millpond_live", "a connection's task panicked; the connection is closed");
                    }
                }
                order = orders.recv() => match order {
                    Some(Order::Stats(reply)) => drop(reply.send(counted.stats(&stats))),
                    Some(Order::Secure(security, done)) => {
                        match acceptor.as_ref().map(|_| secure::acceptor(&security)) {
                            Some(Ok(renewed)) => acceptor = Some(renewed),
                            Some(Err(error)) => {
                                tracing::error!(target: "millpond_live", "sessions are made with what there was before: {error}");
                            }
                            None => {}
                        }
                        let _ = done.send(());
                    }
                    // A client asks over connections of its own.
                    Some(Order::Ask(_)) => {}
                    Some(Order::Shutdown) => {
                        drop(listener);
                        let _ = ending.send(true);
                        let all = async { while connections.join_next().await.is_some() {} };
                        // Who has not answered by then is cut off.
                        let _ = tokio::time::timeout(GRACE, all).await;
                        return Ok(());
                    }
                    None => return Ok(()),
                },
            }
        }
    });
    Ok((local, task))
}

/// What all connections of a listener have counted.
#[derive(Debug, Default)]
struct Counted {
    requests: AtomicU64,
    sent: AtomicU64,
    overloaded: AtomicU64,
    observers: AtomicUsize,
}

impl Counted {
    fn stats(&self, others: &Stats) -> Stats {
        let requests = self.requests.load(Ordering::Relaxed);
        Stats {
            received: requests,
            requests,
            sent: self.sent.load(Ordering::Relaxed),
            overloaded: self.overloaded.load(Ordering::Relaxed),
            observers: self.observers.load(Ordering::Relaxed),
            ..others.clone()
        }
    }
}

/// Who is at the other end of a connection, and how it came here.
struct Whom {
    peer: SocketAddr,
    transport: Transport,
    identity: Option<Arc<PeerIdentity>>,
}

/// What a connection has of its server.
struct Visit {
    shared: Arc<Shared>,
    seat: Seat,
    end: watch::Receiver<bool>,
    counted: Arc<Counted>,
}

/// One connection under TLS, from its handshake to its end; or why the session did not come about or broke.
async fn serve_securely(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: TlsAcceptor,
    give_way: oneshot::Receiver<()>,
    mut visit: Visit,
) -> Result<(), String> {
    let (stream, identity) = tokio::select! {
        accepted = tokio::time::timeout(PATIENCE, secure::accept(acceptor, stream)) => {
            accepted.unwrap_or_else(|_| Err(format!("no handshake within {} s", PATIENCE.as_secs())))?
        }
        _ = give_way => return Err("too many handshakes are under way, and this one is the oldest".into()),
        () = visit.seat.give_way.notified() => return Err("too many connections are open".into()),
        _ = visit.end.changed() => return Ok(()),
    };
    let whom = Whom { peer, transport: Transport::Tls, identity: identity.map(Arc::new) };
    serve(stream, whom, visit).await
}

/// One connection, from its settings to its end; or why its secure session broke.
async fn serve<S: Stream>(stream: S, whom: Whom, visit: Visit) -> Result<(), String> {
    let Visit { shared, seat, mut end, counted } = visit;
    let reachability = Reachability::new(AddressRule::Never).map_err(|error| error.to_string())?;
    let bodies = Limits::DEFAULT.bodies.max(shared.longest_body.saturating_mul(16));
    let limits = Limits { body: shared.longest_body, bodies, ..Config::STREAM.limits };
    let identities = secrets::identities().map_err(|error| error.to_string())?;
    let (telling, mut told) = mpsc::unbounded_channel();
    let (router, admission) = (Arc::clone(&shared.router), Arc::clone(&shared.admission));
    let connection = Connection::new(Settings::default()).with_identities(identities);
    let mut host = Host::over_stream(connection, Config { limits, ..Config::STREAM });
    if router.streams() {
        host.take_pieces(router.takes_pieces());
    }
    let mut serving = Serving {
        whom,
        clock: Clock::start(),
        link: Link::new(stream, host, Other::Client),
        desk: Desk::new(router, shared.limits, reachability, admission, telling),
        seat,
        figures: Figures { counted, overloaded: 0, observers: 0 },
        heard: Instant::now(),
        stage: Stage::Opened,
        is_pinged: false,
        is_over: false,
    };
    let clock = serving.clock;
    let mut patience = None;
    serving.drain();
    while serving.link.closing.is_none() && !serving.is_over {
        let next = serving.link.next.map(|next| clock.at(next));
        let at = next.into_iter().chain(patience).chain([serving.due()]).min();
        let sleep = tokio::time::sleep_until(at.unwrap_or_else(|| serving.due()));
        let has_come = AtomicBool::new(false);
        tokio::select! {
            () = serving.link.turn(|| { has_come.store(true, Ordering::Relaxed); clock.now() }) => {}
            Some(told) = told.recv() => serving.desk.told(clock.now(), told),
            () = sleep => {}
            () = serving.seat.give_way.notified() => serving.end("too many connections are open"),
            _ = end.changed(), if !serving.desk.is_closing => {
                serving.desk.is_closing = true;
                patience = Some(Instant::now() + HANDLERS_GRACE);
                // A connection that is ending anyway needs no release.
                let _ = serving.link.host.release(clock.now(), None, None);
            }
        }
        if patience.is_some_and(|patience| patience <= Instant::now()) {
            patience = None;
            serving.desk.give_up();
        }
        serving.check_up(has_come.into_inner());
        serving.drain();
    }
    let broken = serving.link.broken.take();
    serving.close().await;
    broken.map_or(Ok(()), Err)
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

/// What a host said that concerns its server.
enum Said {
    Asked(Box<Arrived>),
    Gone(ObserverId),
    Settled,
    Silent,
}

impl<S: Stream> Hosted for Link<S> {
    type Layer = Connection;

    fn host(&mut self) -> &mut Host<Connection> {
        &mut self.host
    }
}

struct Serving<S> {
    whom: Whom,
    clock: Clock,
    link: Link<S>,
    desk: Desk,
    seat: Seat,
    figures: Figures,
    /// When something came last.
    heard: Instant,
    stage: Stage,
    /// It is asked whether it is still there.
    is_pinged: bool,
    /// The server ends it, whether the client reads why or not.
    is_over: bool,
}

/// What of this connection is among the figures of all.
struct Figures {
    counted: Arc<Counted>,
    overloaded: u64,
    observers: usize,
}

impl Figures {
    fn tell(&mut self, desk: &Desk) {
        let (overloaded, observers) = (desk.overloaded, desk.observers.len());
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
    /// When it has been silent for too long.
    fn due(&self) -> Instant {
        self.heard
            + match self.stage {
                Stage::Opened => SETTINGS_WAIT,
                Stage::Settled => IDLE_UNASKED,
                // What becomes of the ping, the host tells.
                Stage::Asked if self.is_pinged => IDLE * 2,
                Stage::Asked => IDLE,
            }
    }

    /// It ends, and why.
    fn end(&mut self, reason: &str) {
        self.link.host.abort(reason);
        self.is_over = true;
    }

    /// Ends it if it is silent for too long, or holds too much.
    fn check_up(&mut self, has_come: bool) {
        let now = Instant::now();
        if has_come && self.stage != Stage::Opened {
            (self.heard, self.is_pinged) = (now, false);
        }
        let is_awaited = self.desk.running() > 0 || self.desk.observers.len() > 0;
        if now >= self.due() {
            match self.stage {
                Stage::Opened => self.end("no settings (CSM) came"),
                Stage::Asked if is_awaited && !self.is_pinged => {
                    self.is_pinged = true;
                    let _ = self.link.host.ping(self.clock.now(), false);
                }
                Stage::Settled | Stage::Asked => self.end("silent for too long"),
            }
        }
        let session = if self.whom.transport == Transport::Tls { SESSION } else { 0 };
        if !self.seat.holds(self.heard, self.link.memory() + session) {
            self.end("all connections together hold too much, and this one most of it");
        }
    }

    /// Drains the host, and does what the desk wants done, until both have nothing to say or the stream is full.
    fn drain(&mut self) {
        let now = self.clock.now();
        let Self { link, desk, whom, figures, .. } = self;
        loop {
            while let Some(action) = desk.action() {
                desk.carry_out(now, link, action);
                figures.counted.sent.fetch_add(1, Ordering::Relaxed);
            }
            let theirs = link.host.settings();
            let room = Some(Room { bytes: theirs.max_message_size as usize, may_cut: theirs.block_wise });
            let said = link.drain(now, |heard| match heard {
                Heard::Event(Event::Request { id, message, body, wants_to_observe, by_group, .. }) => {
                    let from = (whom.peer, whom.transport);
                    let asked = Arrived::of((id, &message), &body, from, (wants_to_observe, by_group), room);
                    Some(Said::Asked(Box::new(asked)))
                }
                Heard::Event(Event::ObserverGone { observer, .. }) => Some(Said::Gone(observer)),
                Heard::Connection(Below::Settings(_)) => Some(Said::Settled),
                Heard::Connection(Below::PongMissing) => Some(Said::Silent),
                _ => None,
            });
            match said {
                None => break,
                Some(Said::Asked(mut arrived)) => {
                    if self.stage != Stage::Asked {
                        self.stage = Stage::Asked;
                        self.seat.has_asked();
                    }
                    arrived.request.identity.clone_from(&whom.identity);
                    figures.counted.requests.fetch_add(1, Ordering::Relaxed);
                    desk.arrived(now, *arrived);
                }
                Some(Said::Gone(observer)) => drop(desk.observers.remove(observer)),
                Some(Said::Settled) if self.stage == Stage::Opened => {
                    (self.stage, self.heard) = (Stage::Settled, Instant::now());
                }
                Some(Said::Settled) => {}
                Some(Said::Silent) => {
                    link.host.abort("no pong came");
                    self.is_over = true;
                }
            }
        }
        self.figures.tell(&self.desk);
    }

    /// Writes what waits, and closes. Nobody waits for its handlers.
    async fn close(self) {
        let Self { link, desk, figures, seat, .. } = self;
        drop((desk, figures));
        link.close().await;
        drop(seat);
    }
}

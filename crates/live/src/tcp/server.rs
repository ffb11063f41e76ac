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
    message::{Code, Kind, Opt},
    stream::{
        Options as Settings,
        host::{Answer, Config, Event, Host, ObserverId, Refused, RequestId},
    },
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
    link::{Link, Stream},
    secure::{self, TlsAcceptor},
};
use crate::{
    Error, Happened, PeerIdentity, Response, Stats, Transport,
    clock::Clock,
    error::is_out_of_files,
    security::Other,
    server::{
        Action, AddressRule, Admission, Arrived, Desk, DeskLimits, GRACE, HANDLERS_GRACE, Order, Reachability, Room,
        Router, Unrouted,
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
    let config = Config { body: shared.longest_body, ..Config::DEFAULT };
    let (telling, mut told) = mpsc::unbounded_channel();
    let (router, admission) = (Arc::clone(&shared.router), Arc::clone(&shared.admission));
    let mut host = Host::new(Settings::default(), config);
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

struct Serving<S> {
    whom: Whom,
    clock: Clock,
    link: Link<S>,
    desk: Desk<RequestId, ObserverId>,
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
    fn tell<R: Send + 'static>(&mut self, desk: &Desk<R, ObserverId>) {
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
        loop {
            while let Some(action) = self.desk.action() {
                self.act(action);
            }
            let Some(event) = self.link.next_event(now) else { break };
            match event {
                Event::Request { id, code, options, body, wants_to_observe } => {
                    if self.stage != Stage::Asked {
                        self.stage = Stage::Asked;
                        self.seat.has_asked();
                    }
                    let options = options.iter().map(|(number, value)| Opt { number: *number, value });
                    let mut request = Unrouted::new(code, options, &body, self.whom.peer, self.whom.transport);
                    request.identity.clone_from(&self.whom.identity);
                    self.figures.counted.requests.fetch_add(1, Ordering::Relaxed);
                    let length = body.len();
                    let theirs = self.link.host.settings();
                    let room = Room { bytes: theirs.max_message_size as usize, may_cut: theirs.block_wise };
                    let arrived = Arrived {
                        id,
                        kind: Kind::Confirmable,
                        request,
                        length,
                        wants_to_observe,
                        by_group: false,
                        room: Some(room),
                    };
                    self.desk.arrived(now, arrived);
                }
                Event::Settings(_) if self.stage == Stage::Opened => {
                    (self.stage, self.heard) = (Stage::Settled, Instant::now());
                }
                Event::ObserverGone { observer } => drop(self.desk.observers.remove(observer)),
                Event::PongMissing => self.end("no pong came"),
                _ => {}
            }
        }
        self.figures.tell(&self.desk);
    }

    fn act(&mut self, action: Action<RequestId, ObserverId>) {
        let now = self.clock.now();
        match action {
            Action::Answer(id, response) | Action::AnswerBriefly(id, response) => {
                let sent = self.link.host.answer(now, id, &answer(&response, &response.options().borrowed()));
                self.check(id, sent);
            }
            Action::Piece(id, response) => {
                let options = response.options().borrowed();
                let sent = self.link.host.answer(now, id, &answer(&response, &options).as_piece());
                self.check(id, sent);
            }
            Action::Hush(id, response) => {
                let sent = self.link.host.answer(now, id, &answer(&response, &response.options().borrowed()));
                self.check(id, sent);
            }
            Action::Reject(id) => {
                let sent = self.link.host.answer(now, id, &Answer::new(Code::BAD_OPTION, &[]));
                self.check(id, sent);
            }
            Action::Observe { id, response, observed } => {
                let sent = self.link.host.accept_observer(now, id, &answer(&response, &response.options().borrowed()));
                let observer = sent.as_ref().ok().copied().flatten();
                self.check(id, sent.map(|_| ()));
                if let Some(observer) = observer {
                    self.desk.observe(observer, observed);
                }
            }
            Action::Notify { observer, response, is_last, .. } => {
                let told = self.link.host.notify(now, observer, &answer(&response, &response.options().borrowed()));
                if let Err(error) = told {
                    tracing::debug!(target: "millpond_live", "{} was not notified: {error}", self.whom.peer);
                }
                if is_last && response.is_success() {
                    self.link.host.dismiss(now, observer);
                }
            }
        }
        self.figures.counted.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// What cannot be sent is answered with 5.00.
    fn check(&mut self, id: RequestId, sent: Result<(), Refused>) {
        if let Err(error) = sent {
            tracing::warn!(target: "millpond_live", "an answer to {} could not be sent: {error}", self.whom.peer);
            // The connection may have ended.
            let _ = self.link.host.answer(self.clock.now(), id, &Answer::new(Code::INTERNAL_SERVER_ERROR, &[]));
        }
    }

    /// Writes what waits, and closes. Nobody waits for its handlers.
    async fn close(self) {
        let Self { link, desk, figures, seat, .. } = self;
        drop((desk, figures));
        link.close().await;
        drop(seat);
    }
}

fn answer<'a>(response: &'a Response, options: &'a [(u16, &'a [u8])]) -> Answer<'a> {
    Answer::new(response.code(), options).with_body(response.payload())
}

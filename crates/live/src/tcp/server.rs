//! A server's connections.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use millpond_coap::{
    message::{Code, Kind, Opt},
    stream::{
        Options as Settings,
        host::{Answer, Config, Event, Host, ObserverId, Refused, RequestId},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, oneshot, watch},
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

use super::{
    handshakes::{Handshakes, PATIENCE},
    link::{Link, Stream},
    secure,
};
use crate::{
    Error, Happened, PeerIdentity, Response, Stats, Transport,
    clock::Clock,
    security::Other,
    server::{Action, AddressRule, Admission, Arrived, Desk, DeskLimits, GRACE, Order, Reachability, Router, Unrouted},
    trace::Hook,
    watch::Watch,
};

/// Connections that may be open at a time; further ones wait.
const MOST_CONNECTIONS: usize = 16_384;

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) router: Arc<Router>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) limits: DeskLimits,
    pub(crate) longest_body: usize,
    pub(crate) hook: Option<Hook>,
}

/// Listens until the task is told to end; with an acceptor, under TLS.
pub(crate) async fn listen(
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<TlsAcceptor>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) -> Result<(SocketAddr, JoinHandle<()>), Error> {
    let listener = TcpListener::bind(address).await.map_err(|error| Error::bind(address, &error))?;
    let local = listener.local_addr().map_err(|error| Error::bind(address, &error))?;
    let task = tokio::spawn(async move {
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let (ending, end) = watch::channel(false);
        let (counting, mut counted) = mpsc::unbounded_channel::<Count>();
        let mut connections = JoinSet::new();
        let mut stats = Stats::default();
        let (clock, watch) = (Clock::start(), Watch::new(shared.hook.clone()));
        let mut handshakes = Handshakes::default();
        loop {
            let accept = async {
                let place = Arc::clone(&room).acquire_owned().await;
                (listener.accept().await, place)
            };
            tokio::select! {
                (accepted, place) = accept => match accepted {
                    Ok((stream, peer)) => {
                        // Small messages do not wait for one another.
                        let _ = stream.set_nodelay(true);
                        let (shared, end, counting) = (Arc::clone(&shared), end.clone(), counting.clone());
                        let secure = acceptor.clone().map(|acceptor| (acceptor, handshakes.begin()));
                        connections.spawn(async move {
                            let _place = place;
                            let whom = Whom { peer, transport: Transport::Tcp, identity: None };
                            match secure {
                                None => serve(stream, whom, shared, end, counting).await,
                                Some((acceptor, give_way)) => {
                                    serve_securely(stream, peer, acceptor, give_way, shared, end, counting).await;
                                }
                            }
                        });
                    }
                    // No descriptor is left, or the peer has gone already: others may come.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                Some(count) = counted.recv() => match count {
                    Count::Insecure(peer, reason) => {
                        stats.insecure += 1;
                        watch.tell(clock.now(), peer, || Happened::Insecure { reason });
                    }
                    count => count.add_to(&mut stats),
                },
                _ = connections.join_next(), if !connections.is_empty() => {}
                order = orders.recv() => match order {
                    Some(Order::Stats(reply)) => {
                        let connections = MOST_CONNECTIONS.saturating_sub(room.available_permits());
                        let _ = reply.send(Stats { connections, ..stats.clone() });
                    }
                    Some(Order::Shutdown) => {
                        drop(listener);
                        let _ = ending.send(true);
                        let all = async { while connections.join_next().await.is_some() {} };
                        // Who has not answered by then is cut off.
                        let _ = tokio::time::timeout(GRACE, all).await;
                        return;
                    }
                    None => return,
                },
            }
        }
    });
    Ok((local, task))
}

/// Something to count.
#[derive(Debug)]
enum Count {
    Request,
    Answer,
    Observers(bool),
    /// There was no secure session with this peer, and why.
    Insecure(SocketAddr, String),
}

impl Count {
    fn add_to(self, stats: &mut Stats) {
        match self {
            Self::Request => (stats.received, stats.requests) = (stats.received + 1, stats.requests + 1),
            Self::Answer => stats.sent += 1,
            Self::Observers(true) => stats.observers += 1,
            Self::Observers(false) => stats.observers = stats.observers.saturating_sub(1),
            Self::Insecure(..) => stats.insecure += 1,
        }
    }
}

/// Who is at the other end of a connection, and how it came here.
struct Whom {
    peer: SocketAddr,
    transport: Transport,
    identity: Option<Arc<PeerIdentity>>,
}

/// One connection under TLS, from its handshake to its end.
async fn serve_securely(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: TlsAcceptor,
    give_way: oneshot::Receiver<()>,
    shared: Arc<Shared>,
    mut end: watch::Receiver<bool>,
    counting: mpsc::UnboundedSender<Count>,
) {
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(PATIENCE, secure::accept(acceptor, stream)) => {
            accepted.unwrap_or_else(|_| Err(format!("no handshake within {} s", PATIENCE.as_secs())))
        }
        _ = give_way => Err("too many handshakes are under way, and this one is the oldest".into()),
        _ = end.changed() => return,
    };
    match accepted {
        Ok((stream, identity)) => {
            let whom = Whom { peer, transport: Transport::Tls, identity: identity.map(Arc::new) };
            serve(stream, whom, shared, end, counting).await;
        }
        Err(reason) => drop(counting.send(Count::Insecure(peer, reason))),
    }
}

/// One connection, from its settings to its end.
async fn serve<S: Stream>(
    stream: S,
    whom: Whom,
    shared: Arc<Shared>,
    mut end: watch::Receiver<bool>,
    counting: mpsc::UnboundedSender<Count>,
) {
    let Ok(reachability) = Reachability::new(AddressRule::Never) else { return };
    let config = Config { body: shared.longest_body, ..Config::DEFAULT };
    let (telling, mut told) = mpsc::unbounded_channel();
    let mut serving = Serving {
        whom,
        clock: Clock::start(),
        link: Link::new(stream, Host::new(Settings::default(), config), Other::Client),
        desk: Desk::new(
            Arc::clone(&shared.router),
            shared.limits,
            reachability,
            Arc::clone(&shared.admission),
            telling,
        ),
        counting,
    };
    let clock = serving.clock;
    serving.drain();
    while serving.link.closing.is_none() {
        let at = serving.link.next.map(|next| clock.at(next));
        let sleep = async {
            match at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = serving.link.turn(|| clock.now()) => {}
            Some(told) = told.recv() => serving.desk.told(clock.now(), told),
            () = sleep => {}
            _ = end.changed(), if !serving.desk.is_closing => {
                serving.desk.is_closing = true;
                // A connection that is ending anyway needs no release.
                let _ = serving.link.host.release(clock.now(), None, None);
            }
        }
        serving.drain();
    }
    for _ in 0..serving.desk.observers.len() {
        let _ = serving.counting.send(Count::Observers(false));
    }
    if let Some(reason) = serving.link.broken.take() {
        let _ = serving.counting.send(Count::Insecure(serving.whom.peer, reason));
    }
    serving.link.close().await;
}

struct Serving<S> {
    whom: Whom,
    clock: Clock,
    link: Link<S>,
    desk: Desk<RequestId, ObserverId>,
    counting: mpsc::UnboundedSender<Count>,
}

impl<S: Stream> Serving<S> {
    /// Drains the host, and does what the desk wants done, until both have nothing to say or the stream is full.
    fn drain(&mut self) {
        let now = self.clock.now();
        loop {
            while let Some(action) = self.desk.action() {
                self.act(action);
            }
            let Some(event) = self.link.next_event(now) else { return };
            match event {
                Event::Request { id, code, options, body, wants_to_observe } => {
                    let options = options.iter().map(|(number, value)| Opt { number: *number, value });
                    let mut request = Unrouted::new(code, options, &body, self.whom.peer, self.whom.transport);
                    request.identity.clone_from(&self.whom.identity);
                    let _ = self.counting.send(Count::Request);
                    let length = body.len();
                    let arrived =
                        Arrived { id, kind: Kind::Confirmable, request, length, wants_to_observe, by_group: false };
                    self.desk.arrived(now, arrived);
                }
                Event::ObserverGone { observer } if self.desk.observers.remove(observer) => {
                    let _ = self.counting.send(Count::Observers(false));
                }
                _ => {}
            }
        }
    }

    fn act(&mut self, action: Action<RequestId, ObserverId>) {
        let now = self.clock.now();
        match action {
            Action::Answer(id, response) | Action::AnswerBriefly(id, response) => {
                let sent = self.link.host.answer(now, id, &answer(&response, &response.options().borrowed()));
                self.check(id, sent);
            }
            Action::Reject(id) => {
                let sent = self.link.host.answer(now, id, &Answer::new(Code::BAD_OPTION, &[]));
                self.check(id, sent);
            }
            Action::Observe { id, response, resource, request } => {
                let sent = self.link.host.accept_observer(now, id, &answer(&response, &response.options().borrowed()));
                let observer = sent.as_ref().ok().copied().flatten();
                self.check(id, sent.map(|_| ()));
                if let Some(observer) = observer {
                    self.desk.observers.add(observer, resource, request);
                    let _ = self.counting.send(Count::Observers(true));
                }
            }
            Action::Notify { observer, response, is_last, .. } => {
                let told = self.link.host.notify(now, observer, &answer(&response, &response.options().borrowed()));
                if let Err(error) = told {
                    tracing::debug!(target: "millpond_live", "{} was not notified: {error}", self.whom.peer);
                }
                if is_last {
                    let _ = self.counting.send(Count::Observers(false));
                    if response.is_success() {
                        self.link.host.dismiss(now, observer);
                    }
                }
            }
        }
        let _ = self.counting.send(Count::Answer);
    }

    /// What cannot be sent is answered with 5.00.
    fn check(&mut self, id: RequestId, sent: Result<(), Refused>) {
        if let Err(error) = sent {
            tracing::warn!(target: "millpond_live", "an answer to {} could not be sent: {error}", self.whom.peer);
            // The connection may have ended.
            let _ = self.link.host.answer(self.clock.now(), id, &Answer::new(Code::INTERNAL_SERVER_ERROR, &[]));
        }
    }
}

fn answer<'a>(response: &'a Response, options: &'a [(u16, &'a [u8])]) -> Answer<'a> {
    Answer::new(response.code(), options).with_body(response.payload())
}

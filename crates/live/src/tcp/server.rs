//! A server's connections.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use super::{
    ConnectionSource,
    accepted::AcceptedConnections,
    asking::{Whom, refuse_all},
    connecting::{Begun, ConnectRequest, Role, socket_at},
    connection_task::{CommandSource, Ended},
    connections::{ConnectionPermit, Connections},
    handshakes::{Handshakes, PATIENCE},
    link::Stream,
    secure::{self, TlsAcceptor},
    serving,
};
use crate::{
    Error, Happened, Stats, Transport,
    client::Command,
    clock::Clock,
    error::is_out_of_files,
    secrets,
    security::Protecting,
    server::{
        AccessHook, AccessOutcome, AccessRecord, AddressRule, Admission, DispatcherLimits, Policing, Reachability,
        Router,
    },
    socket::{GRACE, Order},
    trace::Hook,
    udp::canonical,
    watch::Watch,
};

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) router: Arc<Router>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) policing: Arc<Policing>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) limits: DispatcherLimits,
    pub(crate) longest_body: usize,
    pub(crate) longest_token: u16,
    pub(crate) protecting: Protecting,
    pub(crate) hook: Option<Hook>,
    pub(crate) accesses: AccessHook,
}

/// How a port comes by its connections.
enum Source {
    /// Peers begin them.
    Listener(TcpListener),
    /// A client at this side wants them.
    Connects(mpsc::UnboundedReceiver<ConnectRequest>),
}

enum Came {
    Stream(TcpStream, SocketAddr),
    Connect(ConnectRequest),
}

impl Source {
    async fn next(&mut self) -> io::Result<Came> {
        match self {
            Self::Listener(listener) => {
                listener.accept().await.map(|(stream, peer)| Came::Stream(stream, canonical(peer)))
            }
            Self::Connects(requests) => match requests.recv().await {
                Some(request) => Ok(Came::Connect(request)),
                None => std::future::pending().await,
            },
        }
    }
}

/// A port: where it is, how the client comes by its connections, and its task.
pub(crate) type Opened = (SocketAddr, ConnectionSource, JoinHandle<Result<(), Error>>);

/// Listens until the task is told to end; with an acceptor, under TLS. A listener may be bound to the address already.
pub(crate) async fn listen(
    address: SocketAddr,
    bound: Option<std::net::TcpListener>,
    shared: Arc<Shared>,
    acceptor: Option<TlsAcceptor>,
    orders: mpsc::UnboundedReceiver<Order>,
) -> Result<Opened, Error> {
    let listener = match bound {
        Some(bound) => bound.set_nonblocking(true).and_then(|()| TcpListener::from_std(bound)),
        None => TcpListener::bind(address).await,
    };
    let listener = listener.map_err(|error| Error::bind(address, &error))?;
    let at = listener.local_addr().map_err(|error| Error::bind(address, &error))?;
    let accepted = Arc::<AcceptedConnections>::default();
    let source = ConnectionSource::Accepted { at, connections: Arc::downgrade(&accepted) };
    let listener = Listener { source: Source::Listener(listener), shared, acceptor, accepted };
    Ok((at, source, tokio::spawn(listener.run(orders))))
}

/// Begins connections from this address, as they are wanted, until the task is told to end.
pub(crate) fn begin_from(
    address: SocketAddr,
    shared: Arc<Shared>,
    orders: mpsc::UnboundedReceiver<Order>,
) -> Result<Opened, Error> {
    socket_at(address).map_err(|error| Error::bind(address, &error))?;
    let (connects, requests) = mpsc::unbounded_channel();
    let listener = Listener { source: Source::Connects(requests), shared, acceptor: None, accepted: Arc::default() };
    Ok((address, ConnectionSource::Connect { from: address, connects }, tokio::spawn(listener.run(orders))))
}

struct Listener {
    source: Source,
    shared: Arc<Shared>,
    acceptor: Option<TlsAcceptor>,
    /// What peers have begun here.
    accepted: Arc<AcceptedConnections>,
}

impl Listener {
    async fn run(self, mut orders: mpsc::UnboundedReceiver<Order>) -> Result<(), Error> {
        let Self { mut source, shared, mut acceptor, accepted } = self;
        let (telling, changes) = watch::channel(ServerChanges::default());
        let (insecure, mut failed) = mpsc::unbounded_channel();
        // They end with what goes on without them.
        let mut connections = JoinSet::<JoinSet<()>>::new();
        let mut stats = Stats::default();
        let (clock, watch) = (shared.clock, Watch::new(shared.hook.clone()));
        let mut handshakes = Handshakes::default();
        let counted = Arc::new(Counted::default());
        let context = |permit| ConnectionContext {
            shared: Arc::clone(&shared),
            permit,
            changes: changes.clone(),
            counted: Arc::clone(&counted),
        };
        loop {
            tokio::select! {
                came = source.next() => match came {
                    Ok(Came::Stream(stream, peer)) => {
                        // Small messages do not wait for one another.
                        let _ = stream.set_nodelay(true);
                        let context = context(shared.connections.admit(peer, Instant::now()));
                        let secure = acceptor.clone().map(|acceptor| (acceptor, handshakes.begin(peer)));
                        let (insecure, accepted) = (insecure.clone(), Arc::clone(&accepted));
                        connections.spawn(async move {
                            let served = match secure {
                                None => {
                                    let whom = Whom { peer, transport: Transport::Tcp, identity: None };
                                    context.serve(stream, whom, &accepted).await
                                }
                                Some((acceptor, give_way)) => {
                                    context.serve_securely(stream, peer, acceptor, give_way, &accepted).await
                                }
                            };
                            if let Some(reason) = served.insecure {
                                let _ = insecure.send((peer, reason));
                            }
                            served.unheard
                        });
                    }
                    Ok(Came::Connect(request)) => {
                        let Some(peer) = request.target.peers.first() else { continue };
                        let permit = shared.connections.admit(*peer, Instant::now());
                        permit.has_asked();
                        connections.spawn(request.run(Role::Server(context(permit))));
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
                    let whose = (peer, Transport::Tls);
                    let record = || AccessRecord::unread(whose, AccessOutcome::Insecure, reason.clone());
                    shared.accesses.tell(record);
                    watch.tell(clock.now(), peer, || Happened::Insecure { reason });
                }
                Some(ended) = connections.join_next(), if !connections.is_empty() => match ended {
                    Ok(unheard) => wait_for(unheard, &mut connections),
                    Err(error) if error.is_panic() => {
                        stats.panics += 1;
                        tracing::error!(target: "millpond_live", "a connection's task panicked; the connection is closed");
                    }
                    Err(_) => {}
                },
                order = orders.recv() => match order {
                    Some(Order::Stats(reply)) => drop(reply.send(counted.stats(&stats))),
                    // Connections end with their server, and what is observed in them.
                    #[cfg(feature = "state")]
                    Some(Order::Observers(_) | Order::HandOver(_)) => {}
                    Some(Order::Policy) => telling.send_modify(|changes| changes.policies += 1),
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
                    // A client finds the connection in which it asks by itself.
                    Some(Order::Requests(_)) => {}
                    Some(Order::Shutdown) => {
                        drop(source);
                        telling.send_modify(|changes| changes.is_ending = true);
                        let all = async {
                            while let Some(ended) = connections.join_next().await {
                                wait_for(ended.unwrap_or_default(), &mut connections);
                            }
                        };
                        // Who has not answered by then is cut off.
                        let _ = tokio::time::timeout(GRACE, all).await;
                        return Ok(());
                    }
                    None => return Ok(()),
                },
            }
        }
    }
}

/// Lets handlers of a connection that has ended go on as long as the server does.
fn wait_for(mut unheard: JoinSet<()>, connections: &mut JoinSet<JoinSet<()>>) {
    if !unheard.is_empty() {
        connections.spawn(async move {
            while unheard.join_next().await.is_some() {}
            unheard
        });
    }
}

/// What all connections of a port are told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServerChanges {
    /// How often the policy has changed.
    policies: u64,
    /// The server ends.
    pub(super) is_ending: bool,
}

/// What all connections of a listener have counted.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) requests: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) overloaded: AtomicU64,
    pub(super) observers: AtomicUsize,
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

/// What a connection has of its server.
pub(super) struct ConnectionContext {
    pub(super) shared: Arc<Shared>,
    pub(super) permit: ConnectionPermit,
    pub(super) changes: watch::Receiver<ServerChanges>,
    pub(super) counted: Arc<Counted>,
}

impl ConnectionContext {
    /// A connection that a peer has begun, from its settings to its end.
    async fn serve(self, stream: impl Stream, whom: Whom, accepted: &Arc<AcceptedConnections>) -> Ended {
        let orders = accepted.enter(whom.peer);
        self.run(stream, whom, orders, Vec::new(), Arc::default()).await
    }

    /// One that was begun here. Gives back what goes on without it.
    pub(super) async fn serve_begun(self, begun: Begun<impl Stream>) -> JoinSet<()> {
        let Begun { stream, whom, early, orders, is_released } = begun;
        self.run(stream, whom, CommandSource::Begun(orders), early, is_released).await.unheard
    }

    async fn run(
        self,
        stream: impl Stream,
        whom: Whom,
        orders: CommandSource,
        early: Vec<Command>,
        is_released: Arc<AtomicBool>,
    ) -> Ended {
        let random = Reachability::new(AddressRule::Never).and_then(|one| Ok((one, secrets::id_generator()?)));
        match random {
            Ok(random) => serving::task(stream, whom, self, random, orders, is_released).run(early).await,
            Err(error) => {
                refuse_all(early, &error);
                orders.refuse(&error).await;
                Ended::insecure(error.to_string())
            }
        }
    }

    /// One under TLS, from its handshake to its end.
    async fn serve_securely(
        mut self,
        stream: TcpStream,
        peer: SocketAddr,
        acceptor: TlsAcceptor,
        give_way: oneshot::Receiver<()>,
        accepted: &Arc<AcceptedConnections>,
    ) -> Ended {
        let handshake = tokio::select! {
            done = tokio::time::timeout(PATIENCE, secure::accept(acceptor, stream)) => {
                done.unwrap_or_else(|_| Err(format!("no handshake within {} s", PATIENCE.as_secs())))
            }
            _ = give_way => Err("too many handshakes are under way, and this one is the oldest".into()),
            () = self.permit.give_way.notified() => Err("too many connections are open".into()),
            _ = self.changes.wait_for(|changes| changes.is_ending) => return Ended::default(),
        };
        match handshake {
            Ok((stream, identity)) => {
                let whom = Whom { peer, transport: Transport::Tls, identity: identity.map(Arc::new) };
                self.serve(stream, whom, accepted).await
            }
            Err(why) => Ended::insecure(why),
        }
    }
}

//! A server's connections.

mod serving;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serving::{Ended, serve};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use super::{
    connections::{Connections, Seat},
    handshakes::{Handshakes, PATIENCE},
    secure::{self, TlsAcceptor},
};
use crate::{
    Error, Happened, PeerIdentity, Stats, Transport,
    clock::Clock,
    error::is_out_of_files,
    server::{Admission, DeskLimits, GRACE, Order, Router},
    trace::Hook,
    watch::Watch,
};

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
        // They end with what goes on without them.
        let mut connections = JoinSet::<JoinSet<()>>::new();
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
                        let seat = shared.connections.admit(peer, Instant::now());
                        let counted = Arc::clone(&counted);
                        let visit = Visit { shared: Arc::clone(&shared), seat, end: end.clone(), counted };
                        let secure = acceptor.clone().map(|acceptor| (acceptor, handshakes.begin(peer)));
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
                            if let Some(reason) = served.insecure {
                                let _ = insecure.send((peer, reason));
                            }
                            served.unheard
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
    });
    Ok((local, task))
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

/// One connection under TLS, from its handshake to its end.
async fn serve_securely(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: TlsAcceptor,
    give_way: oneshot::Receiver<()>,
    mut visit: Visit,
) -> Ended {
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(PATIENCE, secure::accept(acceptor, stream)) => {
            accepted.unwrap_or_else(|_| Err(format!("no handshake within {} s", PATIENCE.as_secs())))
        }
        _ = give_way => Err("too many handshakes are under way, and this one is the oldest".into()),
        () = visit.seat.give_way.notified() => Err("too many connections are open".into()),
        _ = visit.end.changed() => return Ended::default(),
    };
    match accepted {
        Ok((stream, identity)) => {
            let whom = Whom { peer, transport: Transport::Tls, identity: identity.map(Arc::new) };
            serve(stream, whom, visit).await
        }
        Err(why) => Ended::insecure(why),
    }
}

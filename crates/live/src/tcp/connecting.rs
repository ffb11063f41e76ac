//! How a client's connection comes about.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use millpond_coap::stream::Connection;
use tokio::{
    net::{TcpSocket, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::Instant,
};

use super::{
    asking::{Whom, refuse_all, refuse_rest},
    client,
    link::Stream,
    secure::{self, ClientConfig},
};
use crate::{
    Cause, Error, Host, Transport, Why,
    client::{Attempts, Command, ConnectionHandle, chance},
    error::is_out_of_files,
};

/// How long a connection may take to be made, and again how long its secure session.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an address is tried before the next one is, too (RFC 8305 §5).
const AHEAD: Duration = Duration::from_millis(250);

/// Whom a connection leads to, and how.
pub(crate) struct ConnectTarget {
    /// To whichever of these takes it first.
    pub(crate) peers: Vec<SocketAddr>,
    /// From this address of ours, if it is not for the system to choose.
    pub(crate) from: Option<SocketAddr>,
    /// Under TLS, to the one who is this host.
    pub(crate) secure: Option<(Host, Arc<ClientConfig>)>,
    /// Over which nothing was sent yet.
    pub(crate) connection: Box<Connection>,
    /// What is known of earlier ones.
    pub(crate) attempts: Attempts,
}

/// A connection that somebody wants, and what is asked in it.
pub(crate) struct ConnectRequest {
    pub(super) target: ConnectTarget,
    orders: mpsc::UnboundedReceiver<Command>,
    is_released: Arc<AtomicBool>,
}

/// A connection that was begun here.
pub(super) struct Begun<S> {
    pub(super) stream: S,
    pub(super) whom: Whom,
    /// What was ordered meanwhile, and what comes.
    pub(super) early: Vec<Command>,
    pub(super) orders: mpsc::UnboundedReceiver<Command>,
    pub(super) is_released: Arc<AtomicBool>,
}

/// What this side does in a connection that it begins.
pub(super) enum Role {
    /// It asks.
    Client,
    /// It answers, too.
    #[cfg(feature = "server")]
    Server(super::server::ConnectionContext),
}

/// Where requests to this peer go. They wait until the connection stands; if it does not come about, all end with why.
/// It ends with the last sender.
pub(crate) fn connect(target: ConnectTarget) -> ConnectionHandle {
    let (handle, request) = connect_request(target);
    tokio::spawn(request.run(Role::Client));
    handle
}

/// The two ends of a connection that somebody is to make.
pub(crate) fn connect_request(target: ConnectTarget) -> (ConnectionHandle, ConnectRequest) {
    let (commands, orders) = mpsc::unbounded_channel();
    let is_released = Arc::<AtomicBool>::default();
    (
        ConnectionHandle { commands, is_released: Arc::clone(&is_released) },
        ConnectRequest { target, orders, is_released },
    )
}

impl ConnectRequest {
    /// Makes the connection, and is all that happens in it. What goes on without it is given back.
    pub(super) async fn run(self, role: Role) -> JoinSet<()> {
        let Self { target: ConnectTarget { peers, from, secure, connection, attempts }, orders, is_released } = self;
        // None of several addresses is the one that was tried; they fail together.
        let Some(first) = peers.first().copied() else { return JoinSet::new() };
        let attempts = (attempts, first);
        match secure {
            None => {
                let opened = async {
                    let (peer, stream) = open(&peers, from).await?;
                    Ok((Whom { peer, transport: Transport::Tcp, identity: None }, stream))
                };
                run(orders, (is_released, connection), opened, role, attempts).await
            }
            Some((host, config)) => {
                let secured = async {
                    let (peer, stream) = open(&peers, from).await?;
                    let session = secure::connect(config, stream, peer, &host);
                    let reason = || format!("no handshake within {} s", PATIENCE.as_secs());
                    let session = tokio::time::timeout(PATIENCE, session).await;
                    let late = |late| Err(Error::handshake_timed_out(peer, Why::of(reason(), late)));
                    let (stream, identity) = session.unwrap_or_else(late)?;
                    Ok((Whom { peer, transport: Transport::Tls, identity: identity.map(Arc::new) }, stream))
                };
                run(orders, (is_released, connection), secured, role, attempts).await
            }
        }
    }
}

/// Once there is a first order, keeps orders until the stream stands, and carries them out then.
async fn run<S: Stream>(
    mut orders: mpsc::UnboundedReceiver<Command>,
    (is_released, connection): (Arc<AtomicBool>, Box<Connection>),
    opening: impl Future<Output = Result<(Whom, S), Error>>,
    role: Role,
    (attempts, to): (Attempts, SocketAddr),
) -> JoinSet<()> {
    let opening = async {
        let attempt = attempts.turn(to).await;
        let opened = opening.await;
        attempt.ended(opened.is_ok());
        opened
    };
    let mut opening = pin!(opening);
    // Nothing is made before it is wanted, so that a caller that wants it hears why it fails.
    let Some(first) = orders.recv().await else { return JoinSet::new() };
    let mut early = vec![first];
    let opened = loop {
        tokio::select! {
            opened = &mut opening => break opened,
            order = orders.recv() => match order {
                // Nobody waits for it any more.
                None => return JoinSet::new(),
                Some(Command::Shutdown(_)) => {
                    refuse_all(early, &Error::Closed);
                    refuse_rest(orders, &Error::Closed).await;
                    return JoinSet::new();
                }
                Some(order) => early.push(order),
            },
        }
    };
    match opened {
        Ok((whom, stream)) => {
            let begun = Begun { stream, whom, early, orders, is_released };
            match role {
                Role::Client => {
                    let Begun { stream, whom, early, orders, is_released } = begun;
                    if client::task(stream, whom, *connection, orders, is_released).run(early).await.is_lost {
                        attempts.lost(Instant::now(), to, chance());
                    }
                }
                #[cfg(feature = "server")]
                Role::Server(context) => return context.serve_begun(begun).await,
            }
        }
        Err(error) => {
            refuse_all(early, &error);
            refuse_rest(orders, &error).await;
        }
    }
    JoinSet::new()
}

/// A connection to the first of the addresses that takes one. The next one is tried when the last has failed, or has not
/// answered for a while (RFC 8305 §5); if all fail, why the first one did.
async fn open(peers: &[SocketAddr], from: Option<SocketAddr>) -> Result<(SocketAddr, TcpStream), Error> {
    let (mut attempts, mut left) = (JoinSet::new(), peers.iter().copied());
    let mut why = None;
    loop {
        let next = left.next();
        if let Some(peer) = next {
            attempts.spawn(async move { attempt(peer, from).await.map(|stream| (peer, stream)) });
        }
        // The last one has all the time there is.
        let ahead = async {
            match next {
                Some(_) if left.len() > 0 => tokio::time::sleep(AHEAD).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            done = attempts.join_next() => match done {
                Some(Ok(Ok(opened))) => return Ok(opened),
                Some(Ok(Err(error))) => why = Some(match why.take() {
                    Some(first) if peers.first() != Some(&error.0) => first,
                    _ => error,
                }),
                Some(Err(_)) => {}
                None => {
                    let (peer, reason, source) = why.ok_or(Error::Closed)?;
                    return Err(Error::Unreachable { peer, reason, source });
                }
            },
            () = ahead => {}
        }
    }
}

async fn attempt(peer: SocketAddr, from: Option<SocketAddr>) -> Result<TcpStream, (SocketAddr, String, Option<Cause>)> {
    let stream = match tokio::time::timeout(PATIENCE, dial(peer, from)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if is_out_of_files(&error) => {
            let reason = "no file descriptor is left; raise the limit (ulimit -n)".into();
            return Err((peer, reason, Cause::of(error)));
        }
        Ok(Err(error)) => return Err((peer, error.to_string(), Cause::of(error))),
        Err(late) => return Err((peer, format!("no connection within {} s", PATIENCE.as_secs()), Cause::of(late))),
    };
    // Small messages do not wait for one another.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// A connection from this address of ours, or from whichever the system chooses.
async fn dial(peer: SocketAddr, from: Option<SocketAddr>) -> io::Result<TcpStream> {
    match from {
        None => TcpStream::connect(peer).await,
        Some(from) => socket_at(from)?.connect(peer).await,
    }
}

/// A socket at this address, from which a connection can be begun. One port may have several, to different peers.
pub(super) fn socket_at(from: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if from.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(from)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_next_address_is_tried_when_one_leads_nowhere() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = listener.local_addr().unwrap();
        // Nobody listens at the first one.
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nowhere = gone.local_addr().unwrap();
        drop(gone);
        assert_eq!(open(&[nowhere, there], None).await.unwrap().0, there);
        assert!(
            matches!(open(&[nowhere, nowhere], None).await, Err(Error::Unreachable { peer, .. }) if peer == nowhere)
        );
        // One that never answers: its queue of connections is full.
        let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        full.listen(0).unwrap();
        let silent = full.local_addr().unwrap().as_socket().unwrap();
        let _held: Vec<_> = (0..4).map(|_| tokio::spawn(TcpStream::connect(silent))).collect();
        tokio::task::yield_now().await;
        assert!(open(&[silent, there], None).await.is_ok());
    }
}

//! How a client's connection comes about.

use std::{
    future::Future,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use tokio::{net::TcpStream, sync::mpsc, task::JoinSet};

use super::{
    client::{Task, refuse_all},
    link::Stream,
    secure::{self, ClientConfig},
};
use crate::{
    Cause, Error, Host, Why,
    client::{Command, Line},
    error::is_out_of_files,
};

/// How long a connection may take to be made, and again how long its secure session.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an address is tried before the next one is, too (RFC 8305 §5).
const AHEAD: Duration = Duration::from_millis(250);

/// Whom a connection leads to, and how: to whichever of its addresses takes it first.
pub(crate) enum Goal {
    /// In the clear.
    Plain(Vec<SocketAddr>),
    /// Under TLS, to the one who is this host.
    Secure(Vec<SocketAddr>, Host, Arc<ClientConfig>),
}

/// Where requests to this peer go. They wait until the connection stands; if it does not come about, all end with why.
/// It ends with the last sender.
pub(crate) fn connect(goal: Goal) -> Line {
    let (commands, orders) = mpsc::unbounded_channel();
    let is_released = Arc::<AtomicBool>::default();
    let line = Line { commands, is_released: Arc::clone(&is_released) };
    tokio::spawn(async move {
        match goal {
            Goal::Plain(peers) => run(orders, is_released, open(&peers)).await,
            Goal::Secure(peers, host, config) => {
                let secured = async {
                    let (peer, stream) = open(&peers).await?;
                    let session = secure::connect(config, stream, peer, &host);
                    let reason = || format!("no handshake within {} s", PATIENCE.as_secs());
                    let session = tokio::time::timeout(PATIENCE, session).await;
                    let late = |late| Err(Error::handshake_timed_out(peer, Why::of(reason(), late)));
                    let session = session.unwrap_or_else(late);
                    Ok((peer, session?))
                };
                run(orders, is_released, secured).await;
            }
        }
    });
    line
}

/// Once there is a first order, keeps orders until the stream stands, and carries them out then.
async fn run<S: Stream>(
    mut orders: mpsc::UnboundedReceiver<Command>,
    is_released: Arc<AtomicBool>,
    opening: impl Future<Output = Result<(SocketAddr, S), Error>>,
) {
    let mut opening = pin!(opening);
    // Nothing is made before it is wanted, so that whoever wants it hears why it fails.
    let Some(first) = orders.recv().await else { return };
    let mut early = vec![first];
    let opened = loop {
        tokio::select! {
            opened = &mut opening => break opened,
            order = orders.recv() => match order {
                // Nobody waits for it any more.
                None => return,
                Some(Command::Shutdown(_)) => return refuse_all(early, orders, &Error::Closed).await,
                Some(order) => early.push(order),
            },
        }
    };
    match opened {
        Ok((peer, stream)) => Task::new(peer, stream, is_released).run(early, orders).await,
        Err(error) => refuse_all(early, orders, &error).await,
    }
}

/// A connection to the first of the addresses that takes one. The next one is tried when the last has failed, or has not
/// answered for a while (RFC 8305 §5); if all fail, why the first one did.
async fn open(peers: &[SocketAddr]) -> Result<(SocketAddr, TcpStream), Error> {
    let (mut attempts, mut left) = (JoinSet::new(), peers.iter().copied());
    let mut why = None;
    loop {
        let next = left.next();
        if let Some(peer) = next {
            attempts.spawn(async move { attempt(peer).await.map(|stream| (peer, stream)) });
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

async fn attempt(peer: SocketAddr) -> Result<TcpStream, (SocketAddr, String, Option<Cause>)> {
    let stream = match tokio::time::timeout(PATIENCE, TcpStream::connect(peer)).await {
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
        assert_eq!(open(&[nowhere, there]).await.unwrap().0, there);
        assert!(matches!(open(&[nowhere, nowhere]).await, Err(Error::Unreachable { peer, .. }) if peer == nowhere));
        // One that never answers: its queue of connections is full.
        let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        full.listen(0).unwrap();
        let silent = full.local_addr().unwrap().as_socket().unwrap();
        let _held: Vec<_> = (0..4).map(|_| tokio::spawn(TcpStream::connect(silent))).collect();
        tokio::task::yield_now().await;
        assert!(open(&[silent, there]).await.is_ok());
    }
}

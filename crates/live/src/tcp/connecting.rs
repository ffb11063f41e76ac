//! How a client's connection comes about.

use std::{future::Future, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use rustls::ClientConfig;
use tokio::{net::TcpStream, sync::mpsc};

use super::{
    client::{Task, refuse_all},
    link::Stream,
    secure,
};
use crate::{
    Error, Host,
    client::{Command, Commands},
    error::is_out_of_files,
};

/// How long a connection may take to be made, and again how long its secure session.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whom a connection leads to, and how.
pub(crate) enum Goal {
    /// In the clear.
    Plain(SocketAddr),
    /// Under TLS, to the one who is this host.
    Secure(SocketAddr, Host, Arc<ClientConfig>),
}

/// Where requests to this peer go. They wait until the connection stands; if it does not come about, all end with why.
/// It ends with the last sender.
pub(crate) fn connect(goal: Goal) -> Commands {
    let (commands, orders) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        match goal {
            Goal::Plain(peer) => run(peer, orders, open(peer)).await,
            Goal::Secure(peer, host, config) => {
                let secured = async {
                    let stream = open(peer).await?;
                    let session = secure::connect(config, stream, peer, &host);
                    let reason = || format!("no handshake within {} s", PATIENCE.as_secs());
                    let session = tokio::time::timeout(PATIENCE, session).await;
                    session.unwrap_or_else(|_| Err(Error::Insecure { peer, reason: reason() }))
                };
                run(peer, orders, secured).await;
            }
        }
    });
    commands
}

/// Once there is a first order, keeps orders until the stream stands, and carries them out then.
async fn run<S: Stream>(
    peer: SocketAddr,
    mut orders: mpsc::UnboundedReceiver<Command>,
    opening: impl Future<Output = Result<S, Error>>,
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
        Ok(stream) => Task::new(peer, stream).run(early, orders).await,
        Err(error) => refuse_all(early, orders, &error).await,
    }
}

async fn open(peer: SocketAddr) -> Result<TcpStream, Error> {
    let unreachable = |reason: String| Error::Unreachable { peer, reason };
    let stream = match tokio::time::timeout(PATIENCE, TcpStream::connect(peer)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if is_out_of_files(&error) => {
            return Err(unreachable("no file descriptor is left; raise the limit (ulimit -n)".into()));
        }
        Ok(Err(error)) => return Err(unreachable(error.to_string())),
        Err(_) => return Err(unreachable(format!("no connection within {} s", PATIENCE.as_secs()))),
    };
    // Small messages do not wait for one another.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

//! How a client on a server's port comes by connections.

use std::{
    net::SocketAddr,
    sync::{Arc, Weak},
};

use tokio::sync::mpsc;

use super::{
    ConnectTarget,
    accepted::AcceptedConnections,
    connecting::{ConnectRequest, connect_request},
};
use crate::{
    Error, NotSent, Transport,
    client::{Commands, ConnectionHandle},
};

/// Those of a port.
#[derive(Clone, Debug)]
pub(crate) enum ConnectionSource {
    /// Peers have begun them, and none is begun here.
    Accepted {
        /// Where they did.
        at: SocketAddr,
        connections: Weak<AcceptedConnections>,
    },
    /// They are begun from this address, and what is asked in them is answered.
    Connect { from: SocketAddr, connects: mpsc::UnboundedSender<ConnectRequest> },
}

/// Where requests in the connection of the first of these peers go that has one.
pub(crate) fn find(
    transport: Transport,
    at: SocketAddr,
    connections: &Weak<AcceptedConnections>,
    peers: &[SocketAddr],
) -> Result<Commands, Error> {
    let accepted: Arc<AcceptedConnections> = connections.upgrade().ok_or(Error::Closed)?;
    let peer = *peers.first().ok_or(Error::Closed)?;
    peers.iter().find_map(|peer| accepted.of(*peer)).ok_or_else(|| {
        let none = "it has begun none";
        let fix = "which begins none by itself; ask it once it has, at the address from which it did, or by a client of its own";
        match transport {
            Transport::Tls => Error::insecure(peer, format!("{none} with {at}, {fix}")),
            _ => {
                let reason = format!("{peer} has no connection here: {none} with {at}, {fix}");
                Error::refused(NotSent::Destination, reason)
            }
        }
    })
}

/// A connection to one of these peers that the port is to begin.
pub(crate) fn begin(
    connects: &mpsc::UnboundedSender<ConnectRequest>,
    target: ConnectTarget,
) -> Result<ConnectionHandle, Error> {
    let (handle, request) = connect_request(target);
    connects.send(request).map_err(|_| Error::Closed)?;
    Ok(handle)
}

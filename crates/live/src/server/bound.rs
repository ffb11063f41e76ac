//! Sockets that somebody else has bound.

use std::{
    io,
    net::{SocketAddr, TcpListener, UdpSocket},
};

use crate::{Error, udp::canonical};

/// Those that are not used yet.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) udp: Vec<UdpSocket>,
    pub(super) tcp: Vec<TcpListener>,
}

impl Bound {
    /// The one for datagrams at this address.
    pub(super) fn udp(&mut self, address: SocketAddr) -> Option<UdpSocket> {
        take(&mut self.udp, UdpSocket::local_addr, address)
    }

    /// The one for connections at this address.
    #[cfg(feature = "tcp")]
    pub(super) fn tcp(&mut self, address: SocketAddr) -> Option<TcpListener> {
        take(&mut self.tcp, TcpListener::local_addr, address)
    }

    /// Nobody would ever read what comes to one that is left.
    pub(super) fn check_used(&self) -> Result<(), Error> {
        let udp = self.udp.iter().map(|socket| ("bound_udp", socket.local_addr()));
        let mut left = udp.chain(self.tcp.iter().map(|listener| ("bound_tcp", listener.local_addr())));
        left.next().map_or(Ok(()), |(name, address)| {
            let at = address.map_or_else(|error| error.to_string(), |address| address.to_string());
            Err(Error::Setting { name, reason: format!("a socket at {at} was passed, and nothing listens there") })
        })
    }
}

fn take<S>(all: &mut Vec<S>, at: impl Fn(&S) -> io::Result<SocketAddr>, address: SocketAddr) -> Option<S> {
    let is_there = |socket: &S| at(socket).is_ok_and(|local| canonical(local) == canonical(address));
    let place = all.iter().position(is_there)?;
    Some(all.swap_remove(place))
}

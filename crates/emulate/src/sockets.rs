//! Sockets towards the server, one for each client: as many as files may be open and ports are free.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use mio::net::UdpSocket;

/// Open files that are for everything else.
const OTHERS: usize = 64;
/// Ports that need no privileges, beyond those that the operating system gives out by itself.
const FIRST_PORT: u32 = 1_024;
const PORTS: u32 = 65_536 - FIRST_PORT;
/// Addresses of this machine that can be used towards a server on it: IPv4 has sixteen million.
const OWN_ADDRESSES: u32 = 64;
/// Ports that are tried for one client; the next one goes on where this one ended.
const TRIED: u32 = 64;

/// Where sockets come from.
#[derive(Debug)]
pub(crate) struct Sockets {
    to: SocketAddr,
    /// The next port to try, counted over all addresses.
    next: u32,
}

impl Sockets {
    pub(crate) const fn to(to: SocketAddr) -> Self {
        Self { to, next: 0 }
    }

    /// One that is connected to the server, of any port that is free.
    pub(crate) fn connected(&mut self) -> io::Result<UdpSocket> {
        let any: IpAddr = if self.to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let mut bound = UdpSocket::bind(SocketAddr::new(any, 0));
        for _ in 0..TRIED {
            if !matches!(&bound, Err(error) if is_taken(error)) {
                break;
            }
            bound = UdpSocket::bind(self.another(any));
        }
        let socket = bound?;
        socket.connect(self.to)?;
        Ok(socket)
    }

    /// The next address and port to try.
    fn another(&mut self, any: IpAddr) -> SocketAddr {
        let addresses = if self.to.ip().is_loopback() && self.to.is_ipv4() { OWN_ADDRESSES } else { 1 };
        let (address, port) = (self.next / PORTS, FIRST_PORT + self.next % PORTS);
        self.next = (self.next + 1) % (PORTS * addresses);
        let ip = if addresses == 1 { any } else { Ipv4Addr::from(Ipv4Addr::LOCALHOST.to_bits() + address).into() };
        SocketAddr::new(ip, port as u16)
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable | ErrorKind::PermissionDenied)
}

/// For how many of so many clients there may be sockets. Raises the limit of open files as far as is needed and may be.
#[cfg(target_os = "linux")]
pub(crate) fn room_for(clients: usize) -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let needed = (clients + OTHERS) as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
        // What may not be raised stays.
        let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: Some(current), ..limit });
    }
    let allowed = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
    clients.min(allowed.saturating_sub(OTHERS).max(1))
}

/// For how many of so many clients there may be sockets: how many files may be open is found out.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn room_for(clients: usize) -> usize {
    clients
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_is_tried_and_towards_this_machine_those_of_many_of_its_addresses() {
        let any: IpAddr = Ipv4Addr::UNSPECIFIED.into();
        for (to, ports) in [("127.0.0.1:5683", 64 * 64_512), ("192.0.2.1:5683", 64_512)] {
            let mut sockets = Sockets::to(to.parse().expect("an address"));
            let first = sockets.another(any);
            let until_again = (1_u32..).find(|_| sockets.another(any) == first);
            assert_eq!(until_again, Some(ports), "{to}");
        }
    }
}

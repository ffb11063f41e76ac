//! Sockets towards the server, one for each client: as many as files may be open and ports are free.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use mio::net::UdpSocket;

use crate::Error;

/// Open files that are for everything else.
const OTHERS: usize = 64;
/// Ports that need no privileges, beyond those that the operating system gives out by itself.
const FIRST_PORT: u32 = 1_024;
/// As many clients one address of this machine can have towards one server.
pub const PORTS: u32 = 65_536 - FIRST_PORT;
/// Addresses of this machine that can be used towards a server on it: IPv4 has sixteen million.
const OWN_ADDRESSES: u32 = 64;
/// The first that stands for clients from elsewhere. A server that trusts its own machine trusts 127.0.0.1, and must not take them
/// for it: their addresses may be forged.
const FIRST_FOR_OTHERS: u32 = Ipv4Addr::LOCALHOST.to_bits() + OWN_ADDRESSES;
/// Ports that are tried for one client; the next one goes on where this one ended.
const TRIED: u32 = 64;

/// Whether a relay to this server has addresses of its own for clients from elsewhere, which a server on this machine can tell from the
/// machine's 127.0.0.1. Linux gives the whole of 127.0.0.0/8 to everybody.
#[must_use]
pub fn sets_apart(to: SocketAddr) -> bool {
    cfg!(target_os = "linux") && to.ip().is_loopback() && to.is_ipv4()
}

/// Where sockets come from.
#[derive(Debug)]
pub(crate) struct Sockets {
    to: SocketAddr,
    /// The addresses that are used, if somebody chose them.
    from: Vec<IpAddr>,
    /// The next port to try, counted over all addresses.
    next: u32,
}

impl Sockets {
    /// Those towards this server.
    ///
    /// # Errors
    /// An address from which it cannot be reached.
    pub(crate) fn new(to: SocketAddr, from: Vec<IpAddr>) -> Result<Self, Error> {
        for address in &from {
            let tried = UdpSocket::bind(SocketAddr::new(*address, 0)).and_then(|socket| socket.connect(to));
            tried.map_err(|error| Error::From(*address, to, error))?;
        }
        Ok(Self { to, from, next: 0 })
    }

    /// As many there may be.
    pub(crate) fn ports(&self) -> usize {
        (self.addresses() * PORTS) as usize
    }

    fn addresses(&self) -> u32 {
        match self.from.len() as u32 {
            0 if sets_apart(self.to) => OWN_ADDRESSES,
            chosen => chosen.max(1),
        }
    }

    /// One for a client that is connected to the server, of any port that is free.
    pub(crate) fn connected(&mut self, client: SocketAddr) -> io::Result<UdpSocket> {
        let any: IpAddr = if self.to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let is_from_here = client.ip().to_canonical().is_loopback();
        let first = match self.from.first() {
            Some(first) => *first,
            None if sets_apart(self.to) && !is_from_here => Ipv4Addr::from(FIRST_FOR_OTHERS).into(),
            None => any,
        };
        let mut bound = UdpSocket::bind(SocketAddr::new(first, 0));
        for _ in 0..TRIED {
            if !matches!(&bound, Err(error) if is_taken(error)) {
                break;
            }
            bound = UdpSocket::bind(self.another(any, is_from_here));
        }
        let socket = bound?;
        socket.connect(self.to)?;
        Ok(socket)
    }

    /// The next address and port to try.
    fn another(&mut self, any: IpAddr, is_from_here: bool) -> SocketAddr {
        let (address, port) = (self.next / PORTS, FIRST_PORT + self.next % PORTS);
        self.next = (self.next + 1) % (PORTS * self.addresses());
        let first = if is_from_here { Ipv4Addr::LOCALHOST.to_bits() } else { FIRST_FOR_OTHERS };
        let ip = match self.from.get(address as usize) {
            Some(chosen) => *chosen,
            None if sets_apart(self.to) => Ipv4Addr::from(first + address).into(),
            None => any,
        };
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
        let towards_this_machine = if cfg!(target_os = "linux") { 64 * 64_512 } else { 64_512 };
        for (to, ports) in [("127.0.0.1:5683", towards_this_machine), ("192.0.2.1:5683", 64_512)] {
            let mut sockets = Sockets::new(to.parse().expect("an address"), Vec::new()).expect("no address to try");
            let first = sockets.another(any, true);
            let until_again = (1_u32..).find(|_| sockets.another(any, true) == first);
            assert_eq!(until_again, Some(ports), "{to}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn addresses_that_were_chosen_are_used_one_after_the_other_and_have_to_lead_to_the_server() {
        let to = "127.0.0.1:5683".parse().expect("an address");
        let from = ["127.0.0.2", "127.0.0.3"].map(|address| address.parse().expect("an address"));
        let mut sockets = Sockets::new(to, from.to_vec()).expect("addresses of this machine");
        assert_eq!(sockets.ports(), 2 * 64_512);
        let first = sockets.connected("192.0.2.1:9".parse().expect("an address")).expect("a socket");
        assert_eq!(first.local_addr().expect("an address").ip(), from[0]);
        let used: std::collections::BTreeSet<_> = (0..2 * PORTS).map(|_| sockets.another(to.ip(), false)).collect();
        assert_eq!(used.len(), 2 * 64_512);
        assert!(used.iter().all(|address| from.contains(&address.ip())));
        for other in ["192.0.2.1", "::1"] {
            let told = Sockets::new(to, vec![other.parse().expect("an address")]).expect_err("refused").to_string();
            assert!(told.contains(&format!("127.0.0.1:5683 cannot be reached from {other}")), "{told}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn clients_from_elsewhere_never_reach_this_machine_from_the_address_that_it_trusts() {
        let mut sockets =
            Sockets::new("127.0.0.1:5683".parse().expect("an address"), Vec::new()).expect("nothing tried");
        for (client, is_trusted) in
            [("127.0.0.1:9", true), ("192.0.2.1:9", false), ("[2001:db8::1]:9", false), ("[::ffff:127.0.0.1]:9", true)]
        {
            let socket = sockets.connected(client.parse().expect("an address")).expect("a socket");
            let from = socket.local_addr().expect("an address").ip();
            assert_eq!(from == Ipv4Addr::LOCALHOST, is_trusted, "{client} comes from {from}");
        }
        for _ in 0..OWN_ADDRESSES * PORTS {
            assert_ne!(sockets.another(Ipv4Addr::UNSPECIFIED.into(), false).ip(), Ipv4Addr::LOCALHOST);
        }
    }
}

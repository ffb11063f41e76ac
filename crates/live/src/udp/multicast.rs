//! Groups of IP: which of them a socket is in, and how datagrams to them leave.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
};

use socket2::{InterfaceIndexOrAddress, SockRef};

use super::{BoundSocket, Interface};
use crate::Error;

/// The all-CoAP-nodes groups (RFC 7252 §12.8): of IPv4, of a link and of a site of IPv6.
pub(crate) const ALL_COAP_NODES: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(224, 0, 1, 187)),
    IpAddr::V6(std::net::Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfd)),
    IpAddr::V6(std::net::Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 0xfd)),
];

/// Whether several hosts may have this address.
pub(crate) fn is_group(ip: IpAddr) -> bool {
    ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
}

impl BoundSocket {
    /// Datagrams to groups leave by this interface, or by the one that routes give, and pass so many routers less one.
    /// This machine gets them, too.
    pub(crate) fn send_to_groups(&self, interface: Option<&Interface>, hops: u8) -> Result<(), Error> {
        let socket = self.socket();
        let set = || -> io::Result<()> {
            if self.local().is_ipv4() {
                socket.set_multicast_loop_v4(true)?;
                socket.set_multicast_ttl_v4(hops.into())?;
                socket.set_broadcast(true)?;
                match interface {
                    None => Ok(()),
                    Some(Interface::Address(address)) => socket.set_multicast_if_v4(address),
                    Some(interface) => send_by_index(&socket, interface),
                }
            } else {
                socket.set_multicast_loop_v6(true)?;
                socket.set_multicast_hops_v6(hops.into())?;
                match interface {
                    None => Ok(()),
                    Some(interface) => socket.set_multicast_if_v6(index(interface)?),
                }
            }
        };
        set().map_err(|error| {
            let by = interface.map_or_else(String::new, |interface| format!(" by {interface}"));
            Error::Setting { name: "multicast_interface", reason: format!("groups cannot be asked{by}: {error}") }
        })
    }

    /// Takes what is sent to a group and comes in by this interface, or by the one that routes give.
    pub(crate) fn join(&self, group: IpAddr, interface: Option<&Interface>) -> Result<(), Error> {
        let socket = self.socket();
        let join = || -> io::Result<()> {
            match group {
                IpAddr::V4(group) => match interface {
                    None => socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED),
                    Some(Interface::Address(address)) => socket.join_multicast_v4(&group, address),
                    Some(interface) => {
                        socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index(interface)?))
                    }
                },
                IpAddr::V6(group) => socket.join_multicast_v6(&group, interface.map_or(Ok(0), index)?),
            }
        };
        join().map_err(|error| {
            let by = interface.map_or_else(String::new, |interface| format!(" on {interface}"));
            let fix = if interface.is_some() { "name one that is up" } else { "name an interface that is up" };
            Error::Setting { name: "join", reason: format!("{group} cannot be joined{by}: {error}; {fix}") }
        })
    }

    /// Takes nothing that is sent to groups which only other sockets of this machine have joined.
    pub(crate) fn take_own_groups_only(&self) {
        // A kernel that does not know the option, or has no IPv6, delivers more than is wanted; it is answered then.
        #[cfg(target_os = "linux")]
        let _ = if self.local().is_ipv4() {
            self.socket().set_multicast_all_v4(false)
        } else {
            self.socket().set_multicast_all_v6(false)
        };
    }
}

fn index(interface: &Interface) -> io::Result<u32> {
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "give its name or number, not an address of IPv4");
    interface.index()?.ok_or_else(none)
}

#[cfg(target_os = "linux")]
fn send_by_index(socket: &SockRef<'_>, interface: &Interface) -> io::Result<()> {
    use std::os::fd::AsFd;
    let any = Ipv4Addr::UNSPECIFIED;
    Ok(rustix::net::sockopt::set_ip_multicast_if_with_ifindex(socket.as_fd(), &any, &any, index(interface)?)?)
}

#[cfg(not(target_os = "linux"))]
fn send_by_index(_socket: &SockRef<'_>, _interface: &Interface) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system wants the interface's address of IPv4"))
}

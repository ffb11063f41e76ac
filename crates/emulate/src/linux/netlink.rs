//! What the kernel is told about interfaces (rtnetlink): up, how long packets may be, addresses, routes.

use std::{
    io,
    net::IpAddr,
    os::fd::{AsFd, OwnedFd},
};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

// linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/netlink.h.
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
/// A request that is to be answered, and makes what is not there.
const REQUEST: u16 = 0x1 | 0x4 | 0x400;
const IFF_UP: u32 = 1;
/// Duplicate addresses are not looked for.
const IFA_F_NODAD: u8 = 2;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;

/// The interfaces of one network namespace: that of the thread which opened it.
#[derive(Debug)]
pub(super) struct Interfaces {
    socket: OwnedFd,
}

impl Interfaces {
    pub(super) fn open() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket })
    }

    /// The number of an interface.
    pub(super) fn number(&self, name: &str) -> io::Result<u32> {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        Ok(rustix::net::netdevice::name_to_index(socket.as_fd(), name)?)
    }

    /// Sets the longest packet and the longest queue of an interface, where they are given, and lets it work.
    pub(super) fn bring_up(&self, number: u32, mtu: Option<u32>, queue: Option<u32>) -> io::Result<()> {
        let mut body = vec![0; 4];
        body.extend(number.to_ne_bytes());
        body.extend(IFF_UP.to_ne_bytes());
        body.extend(IFF_UP.to_ne_bytes());
        for (kind, value) in [(IFLA_MTU, mtu), (IFLA_TXQLEN, queue)] {
            if let Some(value) = value {
                attribute(&mut body, kind, &value.to_ne_bytes());
            }
        }
        self.ask(RTM_NEWLINK, &body)
    }

    /// Gives an interface an address that is a network of its own.
    pub(super) fn add_address(&self, number: u32, address: IpAddr) -> io::Result<()> {
        let (family, bytes) = raw(address);
        let mut body = vec![family, (bytes.len() * 8) as u8, IFA_F_NODAD, 0];
        body.extend(number.to_ne_bytes());
        attribute(&mut body, IFA_LOCAL, &bytes);
        attribute(&mut body, IFA_ADDRESS, &bytes);
        self.ask(RTM_NEWADDR, &body)
    }

    /// A network lies behind an interface.
    pub(super) fn add_route(&self, number: u32, network: IpAddr, prefix: u8) -> io::Result<()> {
        let (family, bytes) = raw(network);
        let mut body = vec![family, prefix, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST, 0, 0, 0, 0];
        attribute(&mut body, RTA_DST, &bytes);
        attribute(&mut body, RTA_OIF, &number.to_ne_bytes());
        self.ask(RTM_NEWROUTE, &body)
    }

    /// Sends a request and waits for the kernel's answer.
    fn ask(&self, kind: u16, body: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(16 + body.len());
        message.extend((16 + body.len() as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(REQUEST.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        send(&self.socket, &message, SendFlags::empty())?;
        let mut answer = [0; 1_024];
        let (length, _) = recv(&self.socket, &mut answer, RecvFlags::empty())?;
        // Behind the header of 16 bytes stands the error, negative, or 0.
        match answer.get(16..20).filter(|_| length >= 20).and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes)
        {
            Some(0) => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn raw(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

/// Length, kind, value, and nothing up to a multiple of four bytes.
fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend((4 + value.len() as u16).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

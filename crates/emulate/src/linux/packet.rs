//! As much of an IP packet as must be known: from whom, to whom.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Addresses of a packet, and ports if it tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) from: Party,
    pub(super) to: Party,
    pub(super) protocol: u8,
}

/// Who speaks: an address, and a port where there are ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Party {
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) protocol: u8,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            0 => self.address.fmt(f),
            port => SocketAddr::new(self.address, port).fmt(f),
        }
    }
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_6: u8 = 58;

/// Whether it is what systems tell each other of packets.
pub(super) const fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, ICMP | ICMP_6)
}

/// What a protocol is called.
pub(super) fn transport(protocol: u8) -> String {
    match protocol {
        UDP => "udp".to_owned(),
        TCP => "tcp".to_owned(),
        ICMP | ICMP_6 => "icmp".to_owned(),
        other => other.to_string(),
    }
}

/// What the head of IP says of what follows it. Headers between that of IPv6 and the transport's are not looked behind.
struct Head {
    protocol: u8,
    length: usize,
    /// Of IPv4: the bit that says that more fragments follow, and the place of this one.
    fragment: u16,
}

impl Head {
    fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Some(Self {
                protocol: *packet.get(9)?,
                length: usize::from(packet.first()? & 15) * 4,
                fragment: u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff,
            }),
            6 => Some(Self { protocol: *packet.get(6)?, length: 40, fragment: 0 }),
            _ => None,
        }
    }
}

/// Reads the head of a packet; `None` if it is none of IP. Later fragments have no ports.
pub(super) fn addresses(packet: &[u8]) -> Option<Addresses> {
    let Head { protocol, length, fragment } = Head::of(packet)?;
    let (from, to): (IpAddr, IpAddr) = if packet.first()? >> 4 == 4 {
        let quad = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
        (quad(12)?.into(), quad(16)?.into())
    } else {
        let address = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
        (address(8)?.into(), address(24)?.into())
    };
    let port = |at: usize| match protocol {
        TCP | UDP if fragment & 0x1fff == 0 => {
            packet.get(length + at..length + at + 2).map_or(0, |port| u16::from_be_bytes([port[0], port[1]]))
        }
        _ => 0,
    };
    let party = |address, port| Party { address, port, protocol };
    Some(Addresses { from: party(from, port(0)), to: party(to, port(2)), protocol })
}

/// The datagram of UDP that a packet carries whole.
pub(super) fn datagram(packet: &[u8]) -> Option<&[u8]> {
    let head = Head::of(packet)?;
    if head.protocol != UDP || head.fragment != 0 {
        return None;
    }
    packet.get(head.length + 8..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_where_there_are_some() {
        let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 77, 1, 1, 10, 77, 0, 2];
        packet.extend([0x16, 0x33, 0x16, 0x34, 0, 12, 0, 0, 1, 2, 3, 4]);
        let told = |packet: &[u8]| addresses(packet).map(|all| format!("{} {}", all.from, all.to));
        assert_eq!(told(&packet).as_deref(), Some("10.77.1.1:5683 10.77.0.2:5684"));
        assert_eq!(datagram(&packet), Some(&[1, 2, 3, 4][..]));
        packet[7] = 3;
        assert_eq!(told(&packet).as_deref(), Some("10.77.1.1 10.77.0.2"), "a later fragment");
        assert_eq!(datagram(&packet), None);
        packet[7] = 0;
        packet[9] = ICMP;
        assert_eq!(told(&packet).as_deref(), Some("10.77.1.1 10.77.0.2"));
        assert_eq!(told(&packet[..19]), None);
        let mut six = vec![0x60, 0, 0, 0, 0, 8, UDP, 64];
        six.extend(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, 1).octets());
        six.extend(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2).octets());
        six.extend([0x16, 0x33, 0x16]);
        assert_eq!(told(&six).as_deref(), Some("[fd77::1:1]:5683 fd77::2"), "cut short");
        assert_eq!(datagram(&six), None);
        six.extend([0x34, 0, 9, 0, 0, 7]);
        assert_eq!(datagram(&six), Some(&[7][..]));
    }

    #[test]
    fn whatever_comes_is_no_panic() {
        for first in 0..=255 {
            for length in 0..64 {
                let _ = addresses(&vec![first; length]);
                let _ = datagram(&vec![first; length]);
            }
        }
        assert_eq!(addresses(&[]), None);
        assert_eq!(transport(132), "132");
    }
}

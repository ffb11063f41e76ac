//! The datagram within a frame: link layers, IPv4 and IPv6, UDP.

use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TransportSlice, UdpSlice};
use pcap_parser::Linktype;

/// A datagram of UDP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'d> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Bytes of the IP packet, also if fewer were captured.
    pub size: u32,
    /// What it carries, as far as that was captured.
    pub payload: &'d [u8],
    /// Bytes that it carries.
    pub length: usize,
}

/// What a frame holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contents<'d> {
    Udp(Datagram<'d>),
    /// The ports of a segment.
    Tcp(u16, u16),
    /// A part of a packet that is not its first.
    LaterFragment,
    /// Something else, by the name that people know.
    Other(&'static str),
    /// A link layer that is not read here.
    UnknownLink(i32),
}

const SLL: usize = 16;
const SLL2: usize = 20;
const BSD_LOOPBACK: usize = 4;
/// Raw IP as some systems number it.
const RAW_AS_ON_BSD: [i32; 2] = [12, 14];

/// The datagram in the bytes of a frame.
pub(crate) fn datagram(link: Linktype, bytes: &[u8]) -> Contents<'_> {
    let sliced = match link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(bytes).ok(),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => LaxSlicedPacket::from_ip(bytes).ok(),
        Linktype(number) if RAW_AS_ON_BSD.contains(&number) => LaxSlicedPacket::from_ip(bytes).ok(),
        Linktype::NULL | Linktype::LOOP => {
            bytes.get(BSD_LOOPBACK..).and_then(|packet| LaxSlicedPacket::from_ip(packet).ok())
        }
        Linktype::LINUX_SLL => behind(bytes, SLL, SLL - 2),
        Linktype::LINUX_SLL2 => behind(bytes, SLL2, 0),
        Linktype(number) => return Contents::UnknownLink(number),
    };
    sliced.as_ref().map_or(Contents::Other("frames that are too short"), contents)
}

/// What follows a header of this length that has the protocol at a place.
fn behind(bytes: &[u8], header: usize, protocol: usize) -> Option<LaxSlicedPacket<'_>> {
    let kind = u16::from_be_bytes(*bytes.get(protocol..)?.first_chunk()?);
    Some(LaxSlicedPacket::from_ether_type(EtherType(kind), bytes.get(header..)?))
}

fn contents<'d>(sliced: &LaxSlicedPacket<'d>) -> Contents<'d> {
    let Some(net) = &sliced.net else { return Contents::Other("frames without IP") };
    let (from, to, size, payload): (IpAddr, IpAddr, u32, _) = match net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            if header.fragments_offset().value() > 0 {
                return Contents::LaterFragment;
            }
            let size = u32::from(header.total_len());
            (header.source_addr().into(), header.destination_addr().into(), size, ip.payload())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            if is_later_fragment(ip.extensions().slice(), header.next_header()) {
                return Contents::LaterFragment;
            }
            let size = 40 + u32::from(header.payload_length());
            (header.source_addr().into(), header.destination_addr().into(), size, ip.payload())
        }
        LaxNetSlice::Arp(_) => return Contents::Other("ARP"),
    };
    let udp = match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => udp.clone(),
        Some(TransportSlice::Tcp(tcp)) => return Contents::Tcp(tcp.source_port(), tcp.destination_port()),
        Some(TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_)) => return Contents::Other("ICMP"),
        Some(TransportSlice::Igmp(_)) => return Contents::Other("IGMP"),
        None if payload.ip_number == IpNumber::UDP => match UdpSlice::from_slice_lax(payload.payload) {
            Ok(udp) => udp,
            Err(_) => return Contents::Other("frames that are too short"),
        },
        None => return Contents::Other("other protocols over IP"),
    };
    let whole = usize::from(udp.length()).saturating_sub(udp.header_len());
    let got = udp.payload();
    let length = whole.max(got.len());
    // The first of several fragments says by its UDP length how much there is in all.
    let missing = u32::try_from(length.saturating_sub(got.len())).unwrap_or(0);
    let size = if payload.fragmented { size.saturating_add(missing) } else { size };
    Contents::Udp(Datagram {
        from: SocketAddr::new(from, udp.source_port()),
        to: SocketAddr::new(to, udp.destination_port()),
        size,
        payload: got,
        length,
    })
}

/// Whether a fragment header among these extension headers, the first of which is of this kind, has an offset.
fn is_later_fragment(mut extensions: &[u8], first: IpNumber) -> bool {
    let mut kind = first;
    while let Some(&[next, length, high, low]) = extensions.first_chunk() {
        if kind == IpNumber::IPV6_FRAGMENTATION_HEADER {
            return u16::from_be_bytes([high, low]) >> 3 > 0;
        }
        let Some(rest) = extensions.get(8 + 8 * usize::from(length)..) else { return false };
        (extensions, kind) = (rest, IpNumber(next));
    }
    false
}

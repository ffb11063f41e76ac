//! Packet captures of a run: who has which address, and how a segment of the model looks on the wire.

use std::net::{Ipv4Addr, SocketAddrV4};

pub use millpond_path::capture::{Capture, Seen, TcpSegment, Way};

use crate::tcp::Segment;

/// Port of CoAP over UDP and over TCP (RFC 7252 §6.1, RFC 8323 §8.1).
const COAP: u16 = 5_683;

/// The address of the server. All addresses are those of a private network (RFC 1918).
#[must_use]
pub const fn server() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 255, 255, 254), COAP)
}

/// The address of a client: 10.0.0.0 and its number, counted from 1.
#[must_use]
pub const fn client(number: u32) -> SocketAddrV4 {
    let [_, b, c, d] = number.wrapping_add(1).to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(10, b, c, d), COAP)
}

impl<'s> From<&'s Segment> for TcpSegment<'s> {
    fn from(segment: &'s Segment) -> Self {
        // The opening segment takes a number of its own; numbers wrap at 32 bits.
        let number = |offset: u64| (offset.wrapping_add(1)) as u32;
        Self {
            sequence: if segment.opens() { 0 } else { number(segment.seq) },
            ack: segment.ack.map(number),
            mss: segment.mss,
            permits_sack: segment.permits_sack,
            sacks: [0, 1, 2, 3].map(|place| segment.sacks.get(place).map(|&(from, to)| (number(from), number(to)))),
            payload: &segment.payload,
        }
    }
}

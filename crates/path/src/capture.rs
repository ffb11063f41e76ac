//! Packet captures: what travels, as a pcapng file that Wireshark opens, with virtual timestamps.
//!
//! Packets get the IPv4 and UDP or TCP headers that they would have had. Every packet is seen at the end that sends it, and
//! again at the end that gets it: the two ends are two interfaces of the file. One that does not arrive is seen once, with
//! a comment that says why.

use std::{
    io::{self, Write},
    net::SocketAddrV4,
};

use etherparse::{PacketBuilder, TcpOptionElement};
use millpond_control::Instant;

/// A segment of TCP, as far as a capture shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment<'p> {
    /// Its sequence number.
    pub sequence: u32,
    /// The number that it acknowledges.
    pub ack: Option<u32>,
    /// The longest payload, in bytes, that its sender takes: there if it opens the connection.
    pub mss: Option<u32>,
    /// Whether its sender understands selective acknowledgements, if it opens the connection.
    pub permits_sack: bool,
    /// What has arrived beyond, from and up to which number (RFC 2018).
    pub sacks: [Option<(u32, u32)>; 4],
    /// What it carries.
    pub payload: &'p [u8],
}

/// A capture that is being written.
#[derive(Debug)]
pub struct Capture<W: Write> {
    sink: W,
    /// The block being put together.
    block: Vec<u8>,
}

/// Where a packet is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// At the clients.
    Clients = 0,
    /// At the server.
    Server = 1,
}

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The sender.
    pub from: SocketAddrV4,
    /// The receiver.
    pub to: SocketAddrV4,
}

/// Routers on the way do not count.
const TIME_TO_LIVE: u8 = 64;

impl<W: Write> Capture<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// What the sink says.
    pub fn new(sink: W) -> io::Result<Self> {
        let mut capture = Self { sink, block: Vec::new() };
        // Byte order, version 1.0, a section of unknown length.
        capture.write(SECTION_HEADER, |block| {
            block.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
            block.extend_from_slice(&[1, 0, 0, 0]);
            block.extend_from_slice(&u64::MAX.to_le_bytes());
        })?;
        for name in ["clients", "server"] {
            // Bare IP, no limit on length.
            capture.write(INTERFACE, |block| {
                block.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
                block.extend_from_slice(&[0; 6]);
                option(block, OPTION_NAME, name.as_bytes());
                option(block, 0, &[]);
            })?;
        }
        Ok(capture)
    }

    /// A datagram of CoAP.
    ///
    /// # Errors
    /// What the sink says.
    pub fn datagram(&mut self, at: Instant, seen: Seen, way: Way, payload: &[u8], comment: &str) -> io::Result<()> {
        let builder = PacketBuilder::ipv4(way.from.ip().octets(), way.to.ip().octets(), TIME_TO_LIVE)
            .udp(way.from.port(), way.to.port());
        let mut bytes = Vec::with_capacity(builder.size(payload.len()));
        builder.write(&mut bytes, payload).map_err(io::Error::other)?;
        self.packet(at, seen, &bytes, comment)
    }

    /// A segment of TCP.
    ///
    /// # Errors
    /// What the sink says.
    pub fn segment(
        &mut self,
        at: Instant,
        seen: Seen,
        way: Way,
        segment: &TcpSegment<'_>,
        comment: &str,
    ) -> io::Result<()> {
        let mut builder = PacketBuilder::ipv4(way.from.ip().octets(), way.to.ip().octets(), TIME_TO_LIVE).tcp(
            way.from.port(),
            way.to.port(),
            segment.sequence,
            u16::MAX,
        );
        if let Some(mss) = segment.mss {
            builder = builder.syn().options(&opening(mss, segment.permits_sack)).map_err(io::Error::other)?;
        }
        if let [Some(first), others @ ..] = segment.sacks {
            let blocks = TcpOptionElement::SelectiveAcknowledgement(first, others);
            let options = [TcpOptionElement::Noop, TcpOptionElement::Noop, blocks];
            builder = builder.options(&options).map_err(io::Error::other)?;
        }
        if let Some(ack) = segment.ack {
            builder = builder.ack(ack);
        }
        if !segment.payload.is_empty() {
            builder = builder.psh();
        }
        let mut bytes = Vec::with_capacity(builder.size(segment.payload.len()));
        builder.write(&mut bytes, segment.payload).map_err(io::Error::other)?;
        self.packet(at, seen, &bytes, comment)
    }

    /// Ends the capture and gives the sink back.
    pub fn into_inner(self) -> W {
        self.sink
    }

    /// An IP packet as it is.
    ///
    /// # Errors
    /// What the sink says.
    pub fn packet(&mut self, at: Instant, seen: Seen, bytes: &[u8], comment: &str) -> io::Result<()> {
        self.write(ENHANCED_PACKET, |block| {
            let length = (bytes.len() as u32).to_le_bytes();
            // Timestamps are in microseconds unless an interface says otherwise, the upper half first.
            let micros = at.as_micros();
            for word in [seen as u32, (micros >> 32) as u32, micros as u32] {
                block.extend_from_slice(&word.to_le_bytes());
            }
            block.extend_from_slice(&length);
            block.extend_from_slice(&length);
            block.extend_from_slice(bytes);
            pad(block);
            if !comment.is_empty() {
                option(block, OPTION_COMMENT, comment.as_bytes());
                option(block, 0, &[]);
            }
        })
    }

    /// Writes a block: its type, its length, its content, its length again.
    fn write(&mut self, kind: u32, content: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.block.clear();
        self.block.extend_from_slice(&kind.to_le_bytes());
        self.block.extend_from_slice(&[0; 4]);
        content(&mut self.block);
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.block.extend_from_slice(&length);
        self.sink.write_all(&self.block)
    }
}

/// The options of a segment that opens a connection: those of Linux without timestamps, and without a scaled window where
/// selective acknowledgements are permitted, eight bytes. The window is written as it stands.
fn opening(mss: u32, permits_sack: bool) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{MaximumSegmentSize, Noop, SelectiveAcknowledgementPermitted, WindowScale};
    let mss = MaximumSegmentSize(u16::try_from(mss).unwrap_or(u16::MAX));
    if permits_sack {
        vec![mss, SelectiveAcknowledgementPermitted, Noop, Noop]
    } else {
        vec![mss, Noop, WindowScale(0)]
    }
}

// Blocks and options of draft-ietf-opsawg-pcapng.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
const LINKTYPE_RAW: u16 = 101;

fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    block.extend_from_slice(&code.to_le_bytes());
    block.extend_from_slice(&(value.len() as u16).to_le_bytes());
    block.extend_from_slice(value);
    pad(block);
}

/// Everything begins at a multiple of four bytes.
fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}

//! A capture that can be given away: the same messages at the same times with the same sizes, of nobody.
//!
//! Addresses, values of options that hold text, and payloads are replaced, each by the same wherever it comes again. What is
//! no CoAP over UDP is left out. Ports, tokens, message IDs, codes and numbers in options are kept: without them nothing could
//! be judged.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::PacketBuilder;
use millpond_coap::message::{Message, Writer, number};

use crate::diagnosis::{DiagnoseError, Options, is_of_coap};
use crate::reading::{Contents, Datagram, Frame, Site, datagram, for_each_frame};
use crate::vantage::Side;
use crate::words::counted;

/// What became of the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anonymised {
    /// Messages that were written.
    pub written: u64,
    /// Packets that were left out: no CoAP over UDP, of the other end, or a message that cannot be read.
    pub left_out: u64,
}

/// As many addresses and values have a name of their own; further ones share the last.
const MOST_NAMES: usize = 1 << 18;
/// Raw IP (<https://www.tcpdump.org/linktypes.html>).
const LINKTYPE_RAW: u32 = 101;
const TIME_TO_LIVE: u8 = 64;

/// Options whose values are numbers, of which none names anybody.
const NUMBERS: [u16; 14] = [
    number::OBSERVE,
    number::URI_PORT,
    number::CONTENT_FORMAT,
    number::MAX_AGE,
    number::HOP_LIMIT,
    number::ACCEPT,
    number::Q_BLOCK1,
    number::BLOCK2,
    number::BLOCK1,
    number::SIZE2,
    number::Q_BLOCK2,
    number::SIZE1,
    number::NO_RESPONSE,
    number::IF_NONE_MATCH,
];

/// Writes what can be given away of captures, as pcap of raw IP.
///
/// # Errors
/// Nothing in them can be read, nothing is CoAP, or the sink's own.
pub fn anonymise<R: Read + Send>(
    sources: impl IntoIterator<Item = R>,
    options: &Options,
    sink: &mut (impl Write + Send),
) -> Result<Anonymised, DiagnoseError> {
    let mut copy = Copy { options, sink, names: Names::default(), done: Anonymised::default(), failure: None };
    let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, u32::from(u16::MAX) + 1, LINKTYPE_RAW];
    copy.write(&header.map(u32::to_le_bytes).concat());
    for source in sources {
        for_each_frame(source, |frame| copy.take(&frame))?;
    }
    copy.failure.map_or(Ok(()), Err)?;
    copy.sink.flush()?;
    if copy.done.written == 0 {
        return Err(DiagnoseError::NoCoap(counted(
            copy.done.left_out,
            "packet of another kind",
            "packets of other kinds",
        )));
    }
    Ok(copy.done)
}

struct Copy<'c, W> {
    options: &'c Options,
    sink: &'c mut W,
    names: Names,
    done: Anonymised,
    failure: Option<io::Error>,
}

impl<W: Write> Copy<'_, W> {
    fn take(&mut self, frame: &Frame<'_>) {
        let is_other_end = match self.options.side {
            Some(Side::Devices) => frame.site == Site::Server,
            _ => frame.site == Site::Clients,
        };
        let packet = match datagram(frame.link, frame.bytes) {
            Contents::Udp(found) if !is_other_end && is_of_coap(&found, &self.options.ports) => self.packet(&found),
            _ => None,
        };
        let Some(packet) = packet else { return self.done.left_out += 1 };
        self.done.written += 1;
        let (seconds, micros) = (frame.time.div_euclid(1_000_000), frame.time.rem_euclid(1_000_000));
        let length = packet.len() as u32;
        self.write(&[seconds as u32, micros as u32, length, length].map(u32::to_le_bytes).concat());
        self.write(&packet);
    }

    fn packet(&mut self, found: &Datagram<'_>) -> Option<Vec<u8>> {
        let message = Message::parse(found.payload).ok()?;
        let payload = self.message(&message)?;
        let (from, to) = (self.names.address(found.from.ip()), self.names.address(found.to.ip()));
        let builder = match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), TIME_TO_LIVE),
            (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), TIME_TO_LIVE),
            _ => return None,
        };
        let mut packet = Vec::new();
        builder.udp(found.from.port(), found.to.port()).write(&mut packet, &payload).ok()?;
        Some(packet)
    }

    fn message(&mut self, message: &Message<'_>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut writer = Writer::start(&mut bytes, message.kind, message.code, message.id, message.token);
        for option in message.options() {
            if NUMBERS.contains(&option.number) {
                writer.option(option.number, option.value).ok()?;
            } else {
                writer.option(option.number, &self.names.text(option.value)).ok()?;
            }
        }
        if !message.payload().is_empty() {
            writer.payload(&vec![b'x'; message.payload().len()]).ok()?;
        }
        writer.finish().ok()?;
        Some(bytes)
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.sink.write_all(bytes).err();
        }
    }
}

/// New names, in the order in which the old ones came.
#[derive(Debug, Default)]
struct Names {
    addresses: BTreeMap<IpAddr, u32>,
    texts: BTreeMap<Vec<u8>, u32>,
}

impl Names {
    fn address(&mut self, old: IpAddr) -> IpAddr {
        let [_, b, c, d] = number_of(&mut self.addresses, old).wrapping_add(1).to_be_bytes();
        match old {
            IpAddr::V4(_) => Ipv4Addr::new(10, b, c, d).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, u16::from(b), u16::from_be_bytes([c, d])).into(),
        }
    }

    /// Letters, as many as the old ones.
    fn text(&mut self, old: &[u8]) -> Vec<u8> {
        let mut number = number_of(&mut self.texts, old.to_vec());
        let mut letters = vec![b'a'; old.len()];
        for letter in letters.iter_mut().rev() {
            *letter += (number % 26) as u8;
            number /= 26;
        }
        letters
    }
}

fn number_of<K: Ord>(names: &mut BTreeMap<K, u32>, old: K) -> u32 {
    let next = names.len() as u32;
    if names.len() >= MOST_NAMES {
        return names.get(&old).copied().unwrap_or(next);
    }
    *names.entry(old).or_insert(next)
}

//! Frames of a capture, in the order of the file, one at a time.

use std::io::{self, Read};

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

/// The longest block that is read, bytes; one that says it is longer is not believed.
const LONGEST_BLOCK: usize = 1 << 20;
/// A file with more interfaces is not read on.
const MOST_INTERFACES: usize = 4096;

/// What was captured of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'f> {
    /// Microseconds since 1970.
    pub time: i64,
    /// Where it was seen, as far as the file says so.
    pub site: Site,
    pub link: Linktype,
    pub bytes: &'f [u8],
}

/// The end of the path that an interface of a capture with both ends is at: `--capture` of Millpond names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Site {
    Clients,
    Server,
    #[default]
    Unnamed,
}

/// How a file ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With its last packet.
    Whole,
    /// Within a packet.
    Cut,
    /// With bytes that are no packet, or a length that cannot be.
    Broken,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is nothing in it.
    #[error("empty: 0 bytes")]
    Empty,
    /// Neither pcap nor pcapng.
    #[error("neither pcap nor pcapng: capture with `tcpdump -w FILE udp`")]
    NoCapture,
    /// The system could not read it.
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Linktype,
    site: Site,
    /// Units of its time stamps in a second.
    resolution: u64,
    /// Seconds that are added to them.
    offset: i64,
}

impl Interface {
    fn time(&self, high: u32, low: u32) -> i64 {
        let stamp = u128::from(high) << 32 | u128::from(low);
        let micros = stamp.saturating_mul(1_000_000) / u128::from(self.resolution.max(1));
        let micros = i64::try_from(micros).unwrap_or(i64::MAX);
        micros.saturating_add(self.offset.saturating_mul(1_000_000))
    }
}

/// Calls `take` with every frame.
///
/// # Errors
/// Nothing at all could be read. A file that goes wrong later has an [`Ending`].
pub(crate) fn for_each_frame(source: impl Read + Send, mut take: impl FnMut(Frame<'_>)) -> Result<Ending, ReadError> {
    let mut failure = None;
    let read = match create_reader(LONGEST_BLOCK, Filling { source, failure: &mut failure }) {
        Ok(mut reader) => Ok(all(reader.as_mut(), &mut take)),
        Err(PcapError::Eof) => Err(ReadError::Empty),
        Err(_) => Err(ReadError::NoCapture),
    };
    failure.map_or(read, |error| Err(error.into()))
}

fn all(reader: &mut dyn PcapReaderIterator, take: &mut impl FnMut(Frame<'_>)) -> Ending {
    let mut interfaces = Vec::new();
    let mut header = None;
    loop {
        match reader.next() {
            Ok((length, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(read) => {
                        header = Some((read.network, if read.is_nanosecond_precision() { 1000 } else { 1 }));
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        let (link, divisor) = header.unwrap_or((Linktype::ETHERNET, 1));
                        let time = i64::from(packet.ts_sec) * 1_000_000 + i64::from(packet.ts_usec / divisor);
                        take(Frame { time, site: Site::Unnamed, link, bytes: packet.data });
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(told)) => {
                        if interfaces.len() >= MOST_INTERFACES {
                            return Ending::Broken;
                        }
                        let site = match told.if_name() {
                            Some(Ok("clients")) => Site::Clients,
                            Some(Ok("server")) => Site::Server,
                            _ => Site::Unnamed,
                        };
                        let resolution = told.ts_resolution().unwrap_or(1_000_000);
                        interfaces.push(Interface { link: told.linktype, site, resolution, offset: told.ts_offset() });
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let Some(at) = usize::try_from(packet.if_id).ok().and_then(|id| interfaces.get(id)) else {
                            return Ending::Broken;
                        };
                        let captured = usize::try_from(packet.caplen).unwrap_or(usize::MAX).min(packet.data.len());
                        take(Frame {
                            time: at.time(packet.ts_high, packet.ts_low),
                            site: at.site,
                            link: at.link,
                            bytes: packet.data.get(..captured).unwrap_or_default(),
                        });
                    }
                    // Simple packets have no time; the other blocks no packets.
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume_noshift(length);
            }
            Err(PcapError::Eof) => return Ending::Whole,
            Err(PcapError::Incomplete(_)) => {
                if reader.refill().is_err() {
                    return Ending::Cut;
                }
            }
            Err(PcapError::UnexpectedEof | PcapError::ReadError) => return Ending::Cut,
            Err(_) => return Ending::Broken,
        }
    }
}

/// Reads until there is as much as was asked for, so that a pipe is like a file; and keeps what went wrong.
struct Filling<'f, R> {
    source: R,
    failure: &'f mut Option<io::Error>,
}

impl<R: Read> Read for Filling<'_, R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = space.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.source.read(rest) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if filled > 0 => break,
                Err(error) => {
                    let kind = error.kind();
                    *self.failure = Some(error);
                    return Err(kind.into());
                }
            }
        }
        Ok(filled)
    }
}

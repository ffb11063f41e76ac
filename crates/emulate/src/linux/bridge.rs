//! The loop between the interfaces: reads packets, offers them to the links, writes them where they belong when they are due.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::fd::AsRawFd,
    sync::{Arc, Mutex, PoisonError},
};

use millpond_control::Instant;
use millpond_link::DropReason;
use millpond_path::{Path, capture::Seen};
use mio::{Interest, Token, unix::SourceFd};

use super::{
    addresses::End,
    namespace::Namespace,
    packet::{Party, addresses, datagram, is_icmp, transport},
    recorder::{Recorder, Told},
};
use crate::{
    Error, Lateness, LatenessBound, Reader, Report, Stop, Toward, Watch,
    driver::{Driver, FIRST, Links},
    passage::Passage,
    priority::Attention,
    reader::Reading,
};

/// Packets read from one interface before what is due goes on.
const BATCH: usize = 64;
/// The longest packet.
const LONGEST: usize = 65_536;
/// What a capture says of a packet that the medium lost, as the simulator's captures do.
const LOST_BY_RADIO: &str = "lost: radio";
/// Buffers that are kept to be used again.
const MOST_SPARE: usize = 4_096;

/// A packet inside a link.
struct IpPacket {
    to: End,
    bytes: Vec<u8>,
    /// What a capture calls it.
    number: u64,
}

/// Interfaces and what drives the links between them.
pub(super) struct Bridge {
    driver: Driver,
    between: Between,
}

/// What is between the interfaces. They have tokens in their order.
struct Between {
    passage: Passage<Party, IpPacket>,
    namespaces: Arc<Mutex<Vec<Namespace>>>,
    tuns: Vec<std::fs::File>,
    recorder: Option<Recorder>,
    /// Packets that were offered to a link.
    offered: u64,
    /// By place: whether this device has sent anything of its own. Its system answers by ICMP for programs that are gone.
    devices: Vec<bool>,
    spare: Vec<Vec<u8>>,
    scratch: Vec<u8>,
}

impl Bridge {
    pub(super) fn new(
        path: &Path,
        seed: u64,
        bound: Option<LatenessBound>,
        namespaces: Arc<Mutex<Vec<Namespace>>>,
        recorder: Option<Recorder>,
        reader: Option<Box<dyn Reader>>,
    ) -> Result<Self, Error> {
        let failed = Error::system;
        let driver = Driver::new()?;
        let mut tuns = Vec::new();
        for (place, namespace) in namespaces.lock().unwrap_or_else(PoisonError::into_inner).iter().enumerate() {
            let tun = namespace.tun.try_clone().map_err(failed("a TUN device"))?;
            let token = Token(FIRST + place);
            let waited = driver.poll.registry().register(&mut SourceFd(&tun.as_raw_fd()), token, Interest::READABLE);
            waited.map_err(failed("a TUN device cannot be waited for"))?;
            tuns.push(tun);
        }
        let mut passage = Passage::new(driver.clock, path, seed, bound)?;
        passage.reading = reader.map_or_else(Reading::default, Reading::by);
        let (spare, scratch, devices) = (Vec::new(), vec![0; LONGEST], vec![false; tuns.len()]);
        let between = Between { passage, namespaces, tuns, recorder, offered: 0, devices, spare, scratch };
        Ok(Self { driver, between })
    }

    pub(super) fn stop(&self) -> Stop {
        self.driver.stop.clone()
    }

    pub(super) fn watch(&self) -> Watch {
        self.between.passage.watch.clone()
    }

    pub(super) fn run(self) -> Result<Report, Error> {
        self.driver.run(self.between)
    }
}

impl Links for Between {
    fn next(&self) -> Option<Instant> {
        self.passage.shaper.next()
    }

    fn hand_on(&mut self) {
        while let Some(out) = self.passage.due() {
            let (flow, mark) = (out.payload.flow, out.payload.mark);
            let IpPacket { to, bytes, number } = out.payload.payload;
            let comment = match out.lost {
                None => "",
                Some(DropReason::Radio) => LOST_BY_RADIO,
                Some(_) => "lost: dropped from the queue",
            };
            self.record(|| Told::Fate(number, comment));
            if out.lost.is_some() {
                self.keep(bytes);
                continue;
            }
            let now = self.passage.clock.now();
            let seen = if out.toward == Toward::Server { Seen::Server } else { Seen::Clients };
            self.record(|| Told::Packet { at: now, seen, bytes: bytes.clone(), comment: "", offered: None });
            if self.passage.reading.is_wanted()
                && let Some(datagram) = datagram(&bytes)
            {
                self.passage.reading.arrived(now, out.toward, (flow, mark), out.len, datagram);
            }
            if let (Toward::Server, End::Device(number)) = (out.toward, to) {
                // From one device to another: at the cell's other side it turns round.
                self.offer(now, Toward::Clients, number, flow, to, bytes);
                continue;
            }
            let written = self.tuns.get(to.place()).map_or(Ok(0), |mut tun| tun.write(&bytes));
            if written.is_err() {
                self.passage.leave_out("an interface did not take them");
            }
            self.keep(bytes);
        }
    }

    fn places(&self) -> usize {
        self.tuns.len()
    }

    fn read(&mut self, place: usize) -> bool {
        for _ in 0..BATCH {
            let Some(mut tun) = self.tuns.get(place) else { return false };
            match tun.read(&mut self.scratch) {
                Ok(length) => self.take(place, length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn turned(&mut self) {
        self.passage.tell(crate::ClientStanding::default(), Vec::new);
    }

    fn lateness(&mut self) -> &mut Lateness {
        &mut self.passage.lateness
    }

    fn attention(&mut self) -> &mut Attention {
        &mut self.passage.attention
    }

    fn end(&mut self) -> Result<Report, Error> {
        if let Some(recorder) = self.recorder.take() {
            recorder.end().map_err(Error::system("the capture"))?;
        }
        let dropped = {
            let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
            namespaces.iter_mut().map(Namespace::dropped).sum()
        };
        self.passage.leave_out_many("an interface's own queue was full", dropped);
        let devices = self.devices.iter().filter(|has_sent| **has_sent).count();
        Ok(Report { devices: Some(devices), ..self.passage.report()? })
    }
}

impl Between {
    /// What was read from an interface goes to a link, or nowhere.
    fn take(&mut self, place: usize, length: usize) {
        let now = self.passage.clock.now();
        let packet = self.scratch.get(..length).unwrap_or_default();
        let devices = (self.tuns.len() - 1) as u16;
        let Some(parties) = addresses(packet) else {
            return self.passage.leave_out("no IP packets");
        };
        let Some(to) = End::of(parties.to.address, devices).filter(|to| to.place() != place) else {
            return self.passage.leave_out("addressed to nobody on the path");
        };
        let len = length as u32;
        let (toward, device, flow) = match (place, to) {
            (0, End::Device(number)) => (Toward::Clients, number, self.passage.flows.find(parties.to)),
            _ => {
                if let Some(has_sent) = self.devices.get_mut(place).filter(|_| !is_icmp(parties.protocol)) {
                    *has_sent = true;
                }
                let flow = self.passage.flows.sent(parties.from, &transport(parties.protocol), now, len);
                (Toward::Server, place as u16, flow)
            }
        };
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(packet);
        self.offer(now, toward, device, flow, to, bytes);
    }

    fn offer(&mut self, now: Instant, toward: Toward, device: u16, flow: Option<u32>, to: End, bytes: Vec<u8>) {
        let seen = if toward == Toward::Server { Seen::Clients } else { Seen::Server };
        // The links keep the bytes: a copy is made only for a capture.
        let copy = self.recorder.as_ref().map(|_| bytes.clone());
        let len = bytes.len() as u32;
        let radio = u32::from(device.saturating_sub(1));
        let number = self.offered;
        self.offered += 1;
        let reading = &mut self.passage.reading;
        let read = if reading.is_wanted() { datagram(&bytes) } else { None };
        let mark = read.map_or(0, |datagram| reading.sent(now, toward, flow, datagram));
        let offered = self.passage.offer(now, toward, (radio, flow, mark), len, IpPacket { to, bytes, number });
        let (comment, open) = match &offered {
            Ok(()) => ("", Some(number)),
            Err((DropReason::Radio, _)) => (LOST_BY_RADIO, None),
            Err(_) => ("lost: queue full", None),
        };
        if let Some(bytes) = copy {
            self.record(|| Told::Packet { at: now, seen, bytes, comment, offered: open });
        }
        if let Err((_, packet)) = offered {
            self.keep(packet.bytes);
        }
    }

    fn record(&mut self, told: impl FnOnce() -> Told) {
        if let Some(recorder) = &self.recorder
            && !recorder.tell(told())
        {
            self.passage.leave_out("not written to the capture: the disk was too slow");
        }
    }

    fn keep(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < MOST_SPARE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

/// Whether a process has a socket open that somebody could send to, as its own network namespace tells.
pub(super) fn has_socket(process: u32) -> io::Result<bool> {
    for table in ["udp", "udp6", "tcp", "tcp6"] {
        let text = match std::fs::read_to_string(format!("/proc/{process}/net/{table}")) {
            Err(error) if error.kind() == ErrorKind::NotFound && table.ends_with('6') => continue,
            text => text?,
        };
        if text.lines().skip(1).any(is_reachable) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a socket, as a line of such a table tells it, is at more than an address of the loopback.
fn is_reachable(line: &str) -> bool {
    let local = line.split_whitespace().nth(1).and_then(|local| local.split(':').next());
    // Words of the address in the byte order of the machine.
    local.is_some_and(|hex| match hex.strip_prefix("0000000000000000FFFF0000").unwrap_or(hex) {
        v4 if v4.len() == 8 => !v4.ends_with("7F"),
        v6 => v6 != "00000000000000000000000001000000",
    })
}

#[cfg(test)]
mod tests {
    use super::is_reachable;

    #[test]
    fn a_socket_of_the_loopback_alone_is_none_of_a_server() {
        for (local, reachable) in [
            ("02004D0A:1633", true),
            ("00000000:1633", true),
            ("0100007F:2382", false),
            ("3500007F:0035", false),
            ("00000000000000000000000000000000:1633", true),
            ("00000000000000000000000001000000:1633", false),
            ("0000000000000000FFFF000002004D0A:1633", true),
            ("0000000000000000FFFF00000100007F:1633", false),
        ] {
            let line =
                format!("   68: {local} 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1");
            assert_eq!(is_reachable(&line), reachable, "{local}");
        }
    }
}

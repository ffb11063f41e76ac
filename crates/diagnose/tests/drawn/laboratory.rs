//! Captures of simulated runs, the truth about their packets, and files of what one end saw.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use millpond_diagnose::{Diagnosis, Options, Row, Side, diagnose};
use millpond_sim::{Options as Traces, Scenario, run};
use pcap_parser::{Block, PcapBlockOwned, create_reader};

/// A packet as one end of the path saw it.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub at_server: bool,
    /// Microseconds.
    pub time: i64,
    /// An IPv4 packet.
    pub bytes: Vec<u8>,
    /// It left here and did not arrive.
    pub lost: bool,
}

/// The capture of a run, with both ends.
pub(crate) fn capture(scenario: &str, seed: u64) -> Vec<u8> {
    let scenario = Scenario::from_toml(scenario, "drawn").unwrap();
    run(&scenario, seed, &Traces { capture: true, ..Traces::default() }, || false).unwrap().capture.unwrap()
}

/// All packets of a run, at both ends.
pub(crate) fn sights(scenario: &str, seed: u64) -> Vec<Sight> {
    let file = capture(scenario, seed);
    let mut reader = create_reader(1 << 20, &file[..]).unwrap();
    let mut sights = Vec::new();
    loop {
        match reader.next() {
            Ok((length, block)) => {
                if let PcapBlockOwned::NG(Block::EnhancedPacket(packet)) = block {
                    let time = i64::from(packet.ts_high) << 32 | i64::from(packet.ts_low);
                    let bytes = packet.data[..packet.caplen as usize].to_vec();
                    let lost = packet.options.iter().any(|option| option.value().starts_with(b"lost"));
                    sights.push(Sight { at_server: packet.if_id == 1, time, bytes, lost });
                }
                reader.consume(length);
            }
            Err(pcap_parser::PcapError::Eof) => return sights,
            Err(pcap_parser::PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// A classic pcap file of what one end saw.
pub(crate) fn file(sights: &[Sight], at_server: bool) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for sight in sights.iter().filter(|sight| sight.at_server == at_server) {
        let length = sight.bytes.len() as u32;
        let (seconds, micros) = (sight.time.div_euclid(1_000_000), sight.time.rem_euclid(1_000_000));
        for word in [seconds as u32, micros as u32, length, length] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&sight.bytes);
    }
    file
}

/// The diagnosis of what one end saw, and its rows.
pub(crate) fn diagnosed(sights: &[Sight], at_server: bool) -> (Diagnosis, Vec<Row>) {
    let file = file(sights, at_server);
    let side = Some(if at_server { Side::Server } else { Side::Devices });
    let mut rows = Vec::new();
    let found = diagnose([&file[..]], &Options { side, ..Options::default() }, &mut |row| rows.push(*row)).unwrap();
    (found, rows)
}

/// Where an IPv4 packet of a run has what.
fn address(bytes: &[u8], at: usize, port: usize) -> SocketAddr {
    let address: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
    (address, u16::from_be_bytes([bytes[port], bytes[port + 1]])).into()
}

pub(crate) fn is_request(bytes: &[u8]) -> bool {
    (1..32).contains(&bytes[29])
}

/// The device, and the message ID.
fn names(bytes: &[u8]) -> (SocketAddr, u16) {
    let id = u16::from_be_bytes([bytes[30], bytes[31]]);
    (if is_request(bytes) { address(bytes, 12, 20) } else { address(bytes, 16, 22) }, id)
}

/// A transmission: where its exchange is, and which one it was.
type Place = (usize, usize);

#[derive(Debug, Default)]
struct Known {
    name: Option<(SocketAddr, u16)>,
    sent: Vec<i64>,
    arrived: Vec<Option<i64>>,
    answered: Vec<bool>,
}

/// Whether each transmission was spurious, and its number, by device, message ID and time; at either end.
pub(crate) type Truth = BTreeMap<(SocketAddr, u16, i64), (bool, usize)>;

/// The truth at the server, and at the devices.
pub(crate) fn truth(sights: &[Sight]) -> (Truth, Truth) {
    let mut exchanges: Vec<Known> = Vec::new();
    let mut latest: BTreeMap<(SocketAddr, u16), usize> = BTreeMap::new();
    // Links keep the order: what is on its way to the server, at the server, and on its way back.
    let mut up: BTreeMap<(SocketAddr, u16), VecDeque<Place>> = BTreeMap::new();
    let (mut at_server, mut down) = (up.clone(), up.clone());
    for sight in sights {
        let name = names(&sight.bytes);
        match (is_request(&sight.bytes), sight.at_server) {
            (true, false) => {
                // Message IDs come again after 247 s.
                let known = latest.get(&name).filter(|&&at| sight.time - exchanges[at].sent[0] < 247_000_000);
                let at = known.copied().unwrap_or(exchanges.len());
                if at == exchanges.len() {
                    exchanges.push(Known { name: Some(name), ..Known::default() });
                    latest.insert(name, at);
                }
                let exchange = &mut exchanges[at];
                exchange.sent.push(sight.time);
                exchange.arrived.push(None);
                exchange.answered.push(false);
                if !sight.lost {
                    up.entry(name).or_default().push_back((at, exchange.sent.len() - 1));
                }
            }
            (true, true) => {
                let (at, number) = up.get_mut(&name).unwrap().pop_front().unwrap();
                exchanges[at].arrived[number] = Some(sight.time);
                at_server.entry(name).or_default().push_back((at, number));
            }
            (false, true) => {
                let place = at_server.get_mut(&name).unwrap().pop_front().unwrap();
                if !sight.lost {
                    down.entry(name).or_default().push_back(place);
                }
            }
            (false, false) => {
                let (at, number) = down.get_mut(&name).unwrap().pop_front().unwrap();
                exchanges[at].answered[number] = true;
            }
        }
    }
    let (mut of_server, mut of_devices) = (Truth::new(), Truth::new());
    for exchange in &exchanges {
        let name = exchange.name.unwrap();
        let first = exchange.answered.iter().position(|&answered| answered);
        for (number, &sent) in exchange.sent.iter().enumerate() {
            let told = (first.is_some_and(|first| number > first), number);
            of_devices.insert((name.0, name.1, sent), told);
            if let Some(arrived) = exchange.arrived[number] {
                of_server.insert((name.0, name.1, arrived), told);
            }
        }
    }
    (of_server, of_devices)
}

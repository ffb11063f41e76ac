//! Captures of simulated runs, and files of what one end saw.

use millpond_diagnose::{Diagnosis, Options, Side, diagnose};
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
                    sights.push(Sight { at_server: packet.if_id == 1, time, bytes });
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

/// The diagnosis of what one end saw.
pub(crate) fn diagnosed(sights: &[Sight], at_server: bool) -> Diagnosis {
    let file = file(sights, at_server);
    let side = Some(if at_server { Side::Server } else { Side::Devices });
    diagnose([&file[..]], &Options { side, ..Options::default() }, &mut |_| {}).unwrap()
}

pub(crate) fn is_request(bytes: &[u8]) -> bool {
    (1..32).contains(&bytes[29])
}

/// SplitMix64: the same numbers from the same seed, everywhere.
pub(crate) struct Draw(pub u64);

impl Draw {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

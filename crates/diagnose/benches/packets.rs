//! How many packets of a capture are judged in a second on one core, and what memory a capture of any length takes.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::fs;
use std::hint::black_box;
use std::io::{self, Read};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use millpond_diagnose::{Options, Side, anonymise, diagnose};
use millpond_sim::{Options as Traces, Scenario, run};

const HEADER: usize = 24;
const RECORD: usize = 16;

/// What a server sees of the congestion collapse of 200 devices, as classic pcap.
fn collapse() -> Vec<u8> {
    let text = r#"
        [[clients]]
        count = 200
        controller = "rfc7252"
        exchanges = 20
        [path]
        profile = "nbiot-anrw18"
        uplink.queue = "1410 kB"
        downlink.queue = "1410 kB"
    "#;
    let scenario = Scenario::from_toml(text, "bench").expect("the scenario is legal");
    let options = Traces { capture: true, ..Traces::default() };
    let both = run(&scenario, 1, &options, || false).expect("it runs").capture.expect("it was captured");
    let mut seen = Vec::new();
    let of_server = Options { side: Some(Side::Server), ..Options::default() };
    anonymise([&both[..]], &of_server, &mut seen).expect("it has CoAP");
    seen
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// How many packets a capture has.
fn count(capture: &[u8]) -> u64 {
    let (mut count, mut place) = (0, HEADER);
    while place < capture.len() {
        place += RECORD + word(capture, place + 8) as usize;
        count += 1;
    }
    count
}

/// A capture that goes on and on: the same again, each time later.
struct Again<'c> {
    capture: &'c [u8],
    rounds: u32,
    round: u32,
    /// Where the next record is.
    place: usize,
    record: Vec<u8>,
    given: usize,
}

impl<'c> Again<'c> {
    fn of(capture: &'c [u8], rounds: u32) -> Self {
        Self { capture, rounds, round: 0, place: HEADER, record: capture[..HEADER].to_vec(), given: 0 }
    }

    /// Goes to the next record, if there is one.
    fn advance(&mut self) -> bool {
        /// Seconds from one round to the next: message IDs come again.
        const APART: u32 = 3600;
        if self.place == self.capture.len() {
            (self.round, self.place) = (self.round + 1, HEADER);
        }
        if self.round == self.rounds {
            return false;
        }
        let rest = &self.capture[self.place..];
        let length = RECORD + word(rest, 8) as usize;
        self.record.clear();
        self.record.extend_from_slice(&rest[..length]);
        self.record[..4].copy_from_slice(&(word(rest, 0) + APART * self.round).to_le_bytes());
        self.place += length;
        self.given = 0;
        true
    }
}

impl Read for Again<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if self.given == self.record.len() && !self.advance() {
            return Ok(0);
        }
        let rest = &self.record[self.given..];
        let length = rest.len().min(space.len());
        space[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

/// The most memory that this process ever had, kB, where the system tells.
fn most_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

fn packets(c: &mut Criterion) {
    let capture = collapse();
    let judge = |rounds: u32| {
        let found = diagnose([Again::of(&capture, rounds)], &Options::default(), &mut |row| {
            black_box(row);
        });
        found.expect("it has CoAP")
    };
    let once = judge(1);
    let packets = count(&capture);
    println!("packets: {packets} a round, {} transmissions of {} devices", once.transmissions, once.devices);
    for rounds in [10, 40] {
        let found = judge(rounds);
        let memory = most_memory().map_or("?".to_owned(), |kb| format!("{:.0} MB", kb as f64 / 1e3));
        println!(
            "memory: {memory} at most after a capture of {} packets, {} transmissions",
            packets * u64::from(rounds),
            found.transmissions
        );
    }
    let mut group = c.benchmark_group("diagnose");
    group.sample_size(10);
    group.throughput(Throughput::Elements(10 * packets));
    group.bench_function("collapse", |b| b.iter(|| judge(black_box(10))));
    group.finish();
}

criterion_group!(benches, packets);
criterion_main!(benches);

//! Captures that lie: whatever the bytes, there is an answer or one line, and never a panic. The target of the fuzzer, and
//! its corpus without one.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod capture;

use std::fs;
use std::path::Path;

use capture::check;
use millpond_diagnose::{Options, diagnose};
use millpond_sim::{Options as Traces, Scenario, run};

/// A small run with losses, at both ends (pcapng).
fn small() -> Vec<u8> {
    let text = r#"
        [[clients]]
        count = 2
        controller = "rfc7252"
        exchanges = 1
        [path.uplink]
        rate = "10 kbit/s"
        delay = "100 ms"
        queue = "500 B"
        loss = { kind = "bernoulli", rate = "20 %" }
        [path.downlink]
        rate = "10 kbit/s"
        delay = "100 ms"
        queue = "500 B"
    "#;
    let scenario = Scenario::from_toml(text, "hostile").unwrap();
    run(&scenario, 1, &Traces { capture: true, ..Traces::default() }, || false).unwrap().capture.unwrap()
}

#[test]
fn a_capture_may_end_anywhere() {
    let whole = small();
    for length in 0..whole.len() {
        check(&whole[..length]);
    }
}

#[test]
fn any_byte_may_be_another() {
    let whole = small();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= [0x7f, 0x80, 0xff][at % 3];
        check(&bytes);
    }
}

/// The files of the fuzzer's corpus, of which these are kept by name.
#[test]
fn the_fuzz_corpus_keeps_every_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture");
    let mut seeds = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        check(&fs::read(&path).unwrap());
        seeds += usize::from(path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("capture-")));
    }
    assert!(seeds >= 8, "{seeds}");
}

/// Classic pcap of raw IP.
fn pcap(packets: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (micros, packet) in packets {
        let (seconds, length) = ((micros / 1_000_000) as u32, packet.len() as u32);
        for word in [seconds, (micros % 1_000_000) as u32, length, length] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&packet);
    }
    file
}

/// A datagram of a device to the server, whose headers say these lengths.
fn to_server(device: u32, payload: &[u8], total: u16, udp: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&total.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend_from_slice(&device.to_be_bytes());
    packet.extend_from_slice(&[192, 0, 2, 1, 0x9c, 0x40, 0x16, 0x33]);
    packet.extend_from_slice(&udp.to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(payload);
    packet
}

/// Headers that say more or less than there is, of IP, of UDP, and of an option.
#[test]
fn lengths_may_lie() {
    let get: &[u8] = &[0x40, 1, 0, 1, 0xb1, b'r'];
    for total in [0, 19, 20, 27, 28, 33, 34, 35, 0x7fff, 0xffff] {
        for udp in [0, 7, 8, 13, 14, 15, 0x7fff, 0xffff] {
            check(&pcap([(0, to_server(1, get, total, udp)), (1, to_server(1, get, 34, 14))]));
        }
    }
    for option in [[0xbd, 0xff, 0], [0xbe, 0xff, 0xff], [0xbf, 0, 0], [0xeb, 0xff, 0xff], [0xee, 0xff, 0xff]] {
        let lying = [&[0x40, 1, 0, 2][..], &option].concat();
        check(&pcap([(0, to_server(1, &lying, 35, 15)), (1, to_server(1, get, 34, 14))]));
    }
}

/// The longest option that a datagram over IPv6 can have, and one that says it is longer than that.
#[test]
fn an_option_may_fill_a_datagram() {
    let length = 65_535 - 20 - 8 - 4 - 3;
    let of = |said: usize| {
        let mut message = vec![0x40, 1, 0, 1, 0xbe];
        message.extend_from_slice(&((said - 269) as u16).to_be_bytes());
        message.resize(7 + length, b'a');
        pcap([(0, to_server(1, &message, 65_535, 65_515))])
    };
    let found = diagnose([&of(length)[..]], &Options::default(), &mut |_| {});
    assert!(found.unwrap_err().to_string().starts_with("only one direction"));
    let found = diagnose([&of(65_535)[..]], &Options::default(), &mut |_| {});
    assert!(found.unwrap_err().to_string().starts_with("no CoAP"));
    check(&of(length));
    check(&of(65_535));
}

/// Each packet is of another device: memory and time stay in bounds, and what is beyond them is told.
#[test]
fn a_device_may_be_heard_once() {
    let get: &[u8] = &[0x40, 1, 0, 1];
    let file = pcap((0..300_000).map(|device| (1000 * u64::from(device), to_server(device, get, 32, 12))));
    let mut rows = 0_u32;
    let found = diagnose([&file[..]], &Options::default(), &mut |_| rows += 1).unwrap();
    assert_eq!((found.devices, rows), (1 << 18, 1 << 18));
    assert!(found.doubts.iter().any(|doubt| doubt.contains("37856 packets of endpoints beyond")), "{:?}", found.doubts);
}

/// Devices report every half minute, and after some hours the clock, which began in 1970, is set: no search takes as long as
/// there are half minutes in between.
#[test]
fn a_clock_may_be_set_while_devices_report() {
    let reports = (0..1000_u64).flat_map(|round| {
        let since = if round < 500 { 0 } else { 1_700_000_000 };
        (0..3_u32).map(move |device| {
            let at = since + 30 * round + u64::from(device + (round as u32 * 7 + device * 5) % 3);
            let get = [0x40, 1, (round >> 8) as u8, round as u8];
            (1_000_000 * at, to_server(device, &get, 32, 12))
        })
    });
    let answered = reports.flat_map(|(at, asked)| {
        let mut answer = asked.clone();
        answer[12..16].copy_from_slice(&asked[16..20]);
        answer[16..20].copy_from_slice(&asked[12..16]);
        answer[20..22].copy_from_slice(&asked[22..24]);
        answer[22..24].copy_from_slice(&asked[20..22]);
        answer[28..30].copy_from_slice(&[0x60, 0x45]);
        [(at, asked), (at + 100, answer)]
    });
    let found = diagnose([&pcap(answered)[..]], &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(found.exchanges, 3000);
    assert!((found.period_s.value.unwrap() - 30.0).abs() < 0.1, "{:?}", found.period_s);
}

//! Captures that lie: whatever the bytes, there is an answer or one line, and never a panic.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use millpond_diagnose::{Options, anonymise, diagnose};
use millpond_sim::{Options as Traces, Scenario, run};

/// A small run with losses, at both ends (pcapng).
fn capture() -> Vec<u8> {
    let text = r#"
        [[clients]]
        count = 3
        controller = "rfc7252"
        exchanges = 2
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

fn check(bytes: &[u8]) {
    let told = match diagnose([bytes], &Options::default(), &mut |row| assert!(row.number > 0)) {
        Ok(found) => {
            let of = found.retransmissions;
            assert!(of.spurious + of.needed + of.unknown <= found.transmissions);
            found.doubts
        }
        Err(error) => vec![error.to_string()],
    };
    assert!(told.iter().all(|line| !line.contains('\n')), "{told:?}");
    let mut out = Vec::new();
    let _ = anonymise([bytes], &Options::default(), &mut out);
}

#[test]
fn a_capture_may_end_anywhere() {
    let whole = capture();
    for length in 0..whole.len() {
        check(&whole[..length]);
    }
}

#[test]
fn any_byte_may_be_another() {
    let whole = capture();
    for at in 0..whole.len() {
        for with in [0x00, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= with;
            check(&bytes);
        }
    }
}

/// Each packet is of another device: memory and time stay in bounds, and what is beyond them is told.
#[test]
fn a_device_may_be_heard_once() {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    let devices = 300_000_u32;
    for device in 0..devices {
        let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0];
        packet.extend_from_slice(&device.to_be_bytes());
        packet.extend_from_slice(&[192, 0, 2, 1, 0x9c, 0x40, 0x16, 0x33, 0, 12, 0, 0, 0x40, 1, 0, 1]);
        for word in [device / 1000, device % 1000, packet.len() as u32, packet.len() as u32] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&packet);
    }
    let mut rows = 0_u32;
    let found = diagnose([&file[..]], &Options::default(), &mut |_| rows += 1).unwrap();
    assert_eq!((found.devices, rows), (1 << 18, 1 << 18));
    assert!(found.doubts.iter().any(|doubt| doubt.contains("37856 packets of endpoints beyond")), "{:?}", found.doubts);
}

//! What leads a diagnosis astray is seen, told, and takes the grade *exact* away.

use std::collections::BTreeMap;

use millpond_diagnose::{Diagnosis, Grade, Options, Side, diagnose};

use crate::laboratory::{Draw, Sight, capture, diagnosed, is_request, sights};

/// The cell of the collapse study, with a slow downlink and endless buffers: the downlink is the bottleneck.
const CELL: &str = r#"
    [[clients]]
    count = 100
    controller = "rfc7252"
    exchanges = 12
    token_length = 2
    [path.uplink]
    rate = "60 kbit/s"
    delay = "215 ms"
    queue = "1000 kB"
    [path.downlink]
    rate = "30 kbit/s"
    delay = "415 ms"
    queue = "1000 kB"
    [run]
    until = "1 h"
"#;

/// Nothing is graded exact of a path, which would be if the capture were whole.
fn nothing_is_exact(found: &Diagnosis) {
    let path = &found.path;
    for link in [&path.uplink, &path.downlink] {
        for figure in [&link.rate_bps, &link.buffer_bytes, &link.loss] {
            assert_ne!(figure.grade, Grade::Exact, "{figure:?} {:?}", found.doubts);
        }
    }
}

fn doubts(found: &Diagnosis, words: &str) {
    assert!(
        found.doubts.iter().any(|doubt| doubt.contains(words)),
        "no {words:?} in {:#?} {:#?} {:?} {:?} {}",
        found.doubts,
        found.path,
        found.timers,
        found.retransmissions,
        found.exchanges
    );
}

/// What the server saw, changed.
fn at_server(mut sights: Vec<Sight>, change: impl FnMut(&mut Sight) -> bool) -> Diagnosis {
    sights.retain(|sight| sight.at_server);
    let mut change = change;
    sights.retain_mut(&mut change);
    sights.sort_by_key(|sight| sight.time);
    diagnosed(&sights, true)
}

fn device(sight: &Sight) -> u8 {
    if is_request(&sight.bytes) { sight.bytes[15] } else { sight.bytes[19] }
}

#[test]
fn the_whole_cell_has_no_doubts_but_its_synchronous_start() {
    let found = at_server(sights(CELL, 1), |_| true);
    assert_eq!(found.path.uplink.rate_bps.grade, Grade::Exact);
    assert_eq!(found.path.downlink.rate_bps.grade, Grade::Exact);
    assert!((found.path.downlink.rate_bps.value.unwrap() - 30e3).abs() < 300.0);
    assert_eq!(found.doubts.len(), 1);
    doubts(&found, "began within");
}

#[test]
fn a_part_of_the_devices_is_told() {
    let mut draw = Draw(5);
    let captured: Vec<bool> = (0..=100).map(|_| draw.next() % 10 < 3).collect();
    let found = at_server(sights(CELL, 1), |sight| captured[usize::from(device(sight))]);
    doubts(&found, "other traffic");
    nothing_is_exact(&found);
}

#[test]
fn a_part_of_the_time_is_told() {
    let all = sights(&CELL.replace("count = 100", "count = 300"), 1);
    let end = all.last().unwrap().time;
    let found = at_server(all, |sight| (2 * end / 5..3 * end / 5).contains(&sight.time));
    doubts(&found, "begins within exchanges");
    nothing_is_exact(&found);
}

#[test]
fn jitter_of_20_ms_is_told() {
    let mut draw = Draw(7);
    let mut shifts = BTreeMap::new();
    let found = at_server(sights(CELL, 1), |sight| {
        // An answer follows its request at once.
        let name = (device(sight), sight.bytes[31]);
        if is_request(&sight.bytes) {
            shifts.insert(name, (draw.next() % 20_000) as i64);
        }
        sight.time += shifts[&name];
        true
    });
    doubts(&found, "jitter");
    nothing_is_exact(&found);
}

#[test]
fn coarse_time_stamps_are_told() {
    let found = at_server(sights(CELL, 1), |sight| {
        sight.time -= sight.time % 10_000;
        true
    });
    doubts(&found, "coarse");
    nothing_is_exact(&found);
}

#[test]
fn a_clock_that_steps_forward_is_told() {
    let all = sights(CELL, 1);
    let middle = all.last().unwrap().time / 2;
    let found = at_server(all, |sight| {
        sight.time += if sight.time > middle { 3_000_000 } else { 0 };
        true
    });
    doubts(&found, "a silence of 3.0 s");
}

#[test]
fn losses_of_the_capture_itself_are_told() {
    let mut draw = Draw(3);
    let found = at_server(sights(CELL, 1), |_| draw.next() % 100 >= 3);
    doubts(&found, "packets were lost while capturing");
}

/// After every third exchange of a device its NAT gives it another port.
#[test]
fn a_nat_that_changes_ports_is_told() {
    let found = at_server(sights(CELL, 1), |sight| {
        let round = u16::from_be_bytes([sight.bytes[30], sight.bytes[31]]) / 3;
        let port = (40_000 + round).to_be_bytes();
        let at = if is_request(&sight.bytes) { 20 } else { 22 };
        sight.bytes[at..at + 2].copy_from_slice(&port);
        true
    });
    assert!(found.devices > 100);
    doubts(&found, "100 addresses have several ports one after the other");
}

/// Ten devices behind each port, as through a proxy: their message IDs overlap.
#[test]
fn a_port_that_devices_share_is_told() {
    let mut tokens: BTreeMap<(u8, u8), ()> = BTreeMap::new();
    let found = at_server(sights(CELL, 1), |sight| {
        let number = device(sight);
        let (low, shared) = (number % 10, number / 10);
        tokens.insert((low, shared), ());
        let at = if is_request(&sight.bytes) { 15 } else { 19 };
        sight.bytes[at] = shared;
        // Each device has message IDs of its own.
        sight.bytes[30] = low;
        true
    });
    assert!(tokens.len() == 100 && found.devices <= 11);
    doubts(&found, "several devices behind one port");
    nothing_is_exact(&found);
}

/// The queue is the uplink's: requests come as it lets them, and say nothing of the downlink.
#[test]
fn a_full_uplink_is_not_taken_for_a_slow_downlink() {
    let turned = CELL.replace("\"60 kbit/s\"", "\"8 kbit/s\"").replace("\"30 kbit/s\"", "\"120 kbit/s\"");
    let found = at_server(sights(&turned, 1), |_| true);
    let rate = &found.path.downlink.rate_bps;
    assert!(rate.grade == Grade::AtLeast && rate.value.unwrap() <= 120e3, "{rate:?}");
    assert!((found.path.uplink.rate_bps.value.unwrap() - 8e3).abs() < 80.0);
}

/// Periodic devices ask a period after an answer, which is no loop.
#[test]
fn a_period_is_not_taken_for_a_loop() {
    let periodic = CELL.replace("exchanges = 12", "workload = { kind = \"periodic\", period = \"30 s\" }");
    let found = at_server(sights(&periodic.replace("until = \"1 h\"", "for = \"600 s\""), 1), |_| true);
    assert!(!found.closed_loop && (found.period_s.value.unwrap() - 30.0).abs() < 0.3, "{:?}", found.period_s);
}

#[test]
fn both_ends_in_one_file_are_found_and_judged_together() {
    let scenario = CELL.replace("\"1000 kB\"", "\"14100 B\"");
    let file = capture(&scenario, 1);
    let read = |side| diagnose([&file[..]], &Options { side, ..Options::default() }, &mut |_| {}).unwrap();
    let both = read(None);
    assert_eq!((both.side, read(Some(Side::Both)).transmissions), (Side::Both, both.transmissions));
    for (figure, truth) in [(&both.path.uplink.rate_bps, 60e3), (&both.path.downlink.rate_bps, 30e3)] {
        assert_eq!(figure.grade, Grade::Exact);
        assert!((figure.value.unwrap() / truth - 1.0).abs() < 0.01, "{figure:?}");
    }
    let (server, devices) = (read(Some(Side::Server)), read(Some(Side::Devices)));
    assert_eq!((server.side, devices.side), (Side::Server, Side::Devices));
    assert_eq!(both.retransmissions, devices.retransmissions);
    let lost = both.path.downlink.loss.value.unwrap();
    assert!(lost > 0.01 && both.path.uplink.loss.value == Some(0.0), "the downlink's queue drops: {lost}");
}

/// The buffers are endless and the radio loses nothing: what did not come was still under way.
#[test]
fn what_is_on_its_way_at_the_end_is_no_loss() {
    let file = capture(&CELL.replace("until = \"1 h\"", "until = \"20 s\""), 1);
    let found = diagnose([&file[..]], &Options::default(), &mut |_| {}).unwrap();
    let grades = [&found.path.uplink.loss, &found.path.downlink.loss].map(|loss| (loss.grade, loss.value > Some(0.0)));
    assert!(grades.contains(&(Grade::AtMost, true)) && !grades.contains(&(Grade::Exact, true)), "{grades:?}");
}

/// Reports in a rhythm that the cell carries, and in their midst the loops of a hundred devices that it does not.
#[test]
fn the_begin_and_the_end_of_a_strain_are_told() {
    let calm = CELL.replace("count = 100", "count = 5").replace("until = \"1 h\"", "for = \"2400 s\"");
    let calm = calm.replace("exchanges = 12", "workload = { kind = \"periodic\", period = \"20 s\" }");
    let mut all = sights(&calm, 1);
    all.extend(sights(CELL, 1).into_iter().map(|mut sight| {
        sight.time += 600_000_000;
        let address = if is_request(&sight.bytes) { 14 } else { 18 };
        sight.bytes[address] = 9;
        sight
    }));
    let end = all.iter().filter(|sight| sight.bytes[14] == 9).map(|sight| sight.time).max().unwrap() as f64 / 1e6;
    let found = at_server(all, |_| true);
    let (began, ended) = found.began_and_ended().unwrap();
    assert!((560.0..=600.0).contains(&began) && (620.0..end + 64.0).contains(&ended), "{began} {ended} of {end}");
    assert!(end < 2000.0, "{end}");
}

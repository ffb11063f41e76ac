//! Bodies over the path of the MSc thesis on CoAP over TCP (University of Helsinki, 2020), chapter 5: one client fetches
//! 102,400 bytes without errors. Figures in seconds.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod path;
mod transfers;

use millpond_sim::{Options, Scenario, TraceKind, run};

use transfers::{assert_near, go, scenario, seconds};

/// One client that fetches 102,400 bytes.
fn fetch(buffer: u32, server: &str, clients: &str) -> Scenario {
    scenario(buffer, "102400 B", server, &format!("count = 1\nexchanges = 1\n{clients}"))
}

const BLOCKS: &str = r#"
    controller = { preset = "rfc7252", max-wait = "60 s" }
    max_retransmit = 20
    transfer = { kind = "blocks", size = "256 B" }
"#;

/// Four hundred exchanges of the round trip that their bytes make; the thesis has 285.695 s, six hosts included.
#[test]
fn four_hundred_blocks_take_four_hundred_round_trips() {
    let outcome = go(&fetch(1_410_000, "", BLOCKS), 1);
    assert_near(seconds(&outcome), 285.433, 0.001);
    let row = &outcome.flows[0];
    assert_eq!((row.completed, row.transmissions, row.retransmissions, row.body_bytes), (400, 400, 0, 102_400));
    assert_eq!((row.transport, row.tcp.clone()), ("udp", None));
    let slow = go(&fetch(1_410_000, "host_time = \"0.65 ms\"", BLOCKS), 1);
    assert_near(seconds(&slow), 285.693, 0.003);
}

/// The sizes on the wire: the first request has no Block2, those to block 15 one byte of it, then two.
#[test]
fn every_packet_of_a_transfer_has_the_size_that_its_block_number_makes() {
    let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
    let outcome = run(&fetch(1_410_000, "", BLOCKS), 1, &options, || false).unwrap();
    for (link, first, few, many, length) in [("uplink", 38, 40, 41, 0), ("downlink", 292, 292, 293, 256)] {
        let sent: Vec<_> = outcome.packets.iter().filter(|p| p.link == link && p.event == "enq").collect();
        assert_eq!(sent.len(), 400);
        for (number, packet) in sent.iter().enumerate() {
            let bytes = if number == 0 {
                first
            } else if number < 16 {
                few
            } else {
                many
            };
            assert_eq!(packet.bytes, bytes, "{link}, block {number}");
            let offset = (number > 0 || link == "downlink").then_some(number as u64 * 256);
            assert_eq!((packet.offset, packet.length, packet.again), (offset, length, false), "{link}, block {number}");
        }
    }
}

/// A client that names the size first asks three bytes more in its first request, and gets the same body.
#[test]
fn a_client_may_name_the_size_first() {
    let early = BLOCKS.replace("\"256 B\"", "\"256 B\", negotiation = \"early\"");
    let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
    let outcome = run(&fetch(1_410_000, "", &early), 1, &options, || false).unwrap();
    assert_eq!(outcome.flows[0].body_bytes, 102_400);
    let first = &outcome.packets[0];
    assert_eq!((first.bytes, first.offset), (40, Some(0)));
}

/// Blocks that are lost are asked for again, copy by copy, and the body is whole.
#[test]
fn a_transfer_survives_losses() {
    let mut scenario = fetch(14_100, "", BLOCKS);
    scenario.path.as_mut().unwrap().uplink.loss = millpond_sim::scenario::Loss::Bernoulli { rate: 0.1 };
    scenario.path.as_mut().unwrap().downlink.loss = millpond_sim::scenario::Loss::Bernoulli { rate: 0.1 };
    let outcome = go(&scenario, 1);
    let row = &outcome.flows[0];
    assert_eq!((row.completed, row.exchanges_failed, row.body_bytes), (400, 0, 102_400));
    assert!(row.retransmissions > 40 && row.dropped_radio > 20, "{row:?}");
}

/// A block that is given up ends its body; the application goes on with the next.
#[test]
fn a_block_given_up_ends_its_body() {
    let clients = "controller = \"rfc7252\"\nmax_retransmit = 0\ntransfer = { kind = \"blocks\", size = \"1024 B\" }";
    let mut scenario = fetch(14_100, "", &clients.replace("exchanges = 1", ""));
    scenario.clients[0].exchanges = 20;
    scenario.path.as_mut().unwrap().downlink.loss = millpond_sim::scenario::Loss::Bernoulli { rate: 0.02 };
    let outcome = go(&scenario, 1);
    let row = &outcome.flows[0];
    assert!(row.exchanges_failed > 0 && row.exchanges_failed < 20, "{row:?}");
    assert_eq!(outcome.summary.unfinished, 0);
    assert_eq!(row.transmissions, row.completed + row.exchanges_failed);
    assert_eq!(row.body_bytes / 1_024, u64::from(row.completed));
}

/// Batches of whole bodies: each request counts once, whatever its blocks.
#[test]
fn batches_count_bodies() {
    let mut scenario = fetch(14_100, "", &format!("{BLOCKS}\nworkload = \"random\""));
    (scenario.clients[0].exchanges, scenario.server.payload.0) = (20, 1_000);
    let outcome = go(&scenario, 1);
    let row = &outcome.flows[0];
    assert_eq!((row.completed, row.body_bytes), (80, 20_000));
    assert!((2..=20).contains(&row.batches));
}

const BURSTS: &str = r#"
    controller = { preset = "rfc7252", max-wait = "60 s" }
    max_retransmit = 20
    transfer = { kind = "bursts", size = "128 B" }
"#;

/// 80 sets of ten blocks of 173 bytes, a round trip after each (RFC 9177 §7.2).
#[test]
fn bursts_take_a_round_trip_a_set() {
    let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
    let outcome = run(&fetch(1_410_000, "", BURSTS), 1, &options, || false).unwrap();
    assert_near(seconds(&outcome), 88.4, 0.5);
    let row = &outcome.flows[0];
    assert_eq!((row.completed, row.exchanges_failed, row.retransmissions, row.body_bytes), (1, 0, 0, 102_400));
    // One request for each set, and one more that also asks whether the server knows bursts.
    assert_eq!(row.transmissions, 81);
    let blocks: Vec<_> = outcome.packets.iter().filter(|p| p.link == "downlink" && p.event == "enq").collect();
    assert_eq!(blocks.len(), 800);
    assert!(blocks.iter().enumerate().all(|(number, p)| (p.offset, p.length) == (Some(number as u64 * 128), 128)));
    assert!(blocks.iter().all(|p| !p.again && p.bytes <= 173));
    assert!(outcome.histogram.is_empty() && outcome.links[1].useful_bytes == outcome.links[1].delivered_bytes);
}

/// What is lost is asked for again, and some of it comes twice.
#[test]
fn bursts_survive_losses() {
    for rate in [0.02, 0.1, 0.2] {
        let mut scenario = fetch(2_500, "host_time = \"0.65 ms\"", BURSTS);
        scenario.path.as_mut().unwrap().uplink.loss = millpond_sim::scenario::Loss::Bernoulli { rate };
        scenario.path.as_mut().unwrap().downlink.loss = millpond_sim::scenario::Loss::Bernoulli { rate };
        let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
        let outcome = run(&scenario, 1, &options, || false).unwrap();
        let row = &outcome.flows[0];
        assert_eq!((row.completed, row.body_bytes, outcome.summary.unfinished), (1, 102_400, 0), "{rate}");
        let again = outcome.packets.iter().filter(|p| p.link == "downlink" && p.event == "enq" && p.again).count();
        assert!(again >= row.dropped_radio as usize / 2, "{again} of {} lost", row.dropped_radio);
    }
}

/// The second body of a client does without the question; parameters of the scenario are those of both ends.
#[test]
fn parameters_of_bursts_are_obeyed() {
    let larger = BURSTS.replace("\"128 B\"", "\"128 B\", max_payloads = 40");
    let one = go(&fetch(1_410_000, "", &larger), 1);
    // A quarter of the round trips, and less waiting each.
    assert_near(seconds(&one), 800.0 * 173.0 * 8.0 / 30e3 + 21.0 * 0.64, 1.0);
    let mut scenario = fetch(1_410_000, "", &larger);
    scenario.clients[0].exchanges = 2;
    let two = go(&scenario, 1);
    assert_eq!((two.flows[0].completed, two.flows[0].body_bytes), (2, 204_800));
    assert!(seconds(&two) < 2.0 * seconds(&one));
}

/// Bursts of several clients, streams and exchanges through one queue.
#[test]
fn bursts_share_a_bottleneck() {
    let mut scenario = fetch(14_100, "", BURSTS);
    let other = fetch(14_100, "", BLOCKS).clients[0].clone();
    (scenario.clients[0].count, scenario.clients[0].start_spread) = (3, millpond_sim::scenario::Duration(1_000_000));
    scenario.clients.push(other);
    let outcome = go(&scenario, 5);
    assert!(outcome.flows.iter().all(|row| row.body_bytes == 102_400), "{:?}", outcome.flows);
    assert_eq!(outcome, go(&scenario, 5));
}

//! The shaper gives every packet the very fate that the simulator gives it: same packets, same instants, same losses.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

use millpond_control::Instant;
use millpond_emulate::{Shaper, Toward};
use millpond_link::DropReason;
use millpond_path::Path;
use millpond_sim::{Options, Scenario, TraceKind, run};

/// What became of packets: when, what, on which link, of which client, how long.
type Fates = Vec<(u64, &'static str, String, u32, u32)>;

const CROWDED: &str = r#"
    [[clients]]
    count = 40
    controller = "rfc7252"
    exchanges = 12
    [server]
    payload = "60 B"
    [run]
    until = "10 min"
"#;

/// Plays what the simulated clients and server offered to a shaper whose owner looks `late` µs after the time, and says what
/// became of every packet. The losses are those of `seed`.
fn played(path: &Path, offered: &Fates, seed: u64, late: u64) -> Fates {
    let mut shaper = Shaper::new(path, seed).expect("a path");
    let mut fates = Fates::new();
    let mut offered: VecDeque<_> = offered.iter().collect();
    loop {
        let next = shaper.next().map(Instant::as_micros);
        let offer = offered.front().map(|(at, ..)| *at);
        // At the same instant what arrives goes before what is offered, as in the simulator.
        let arrives = match (next, offer) {
            (None, None) => return fates,
            (Some(next), Some(offer)) => next <= offer,
            (next, _) => next.is_some(),
        };
        if arrives {
            let looked = next.map(|next| next + late).map(|looked| offer.map_or(looked, |offer| looked.min(offer)));
            while let Some(out) = shaper.deliver(Instant::from_micros(looked.unwrap_or(0))) {
                let what = match out.lost {
                    None => "recv",
                    Some(DropReason::Radio) => "drop_radio",
                    Some(DropReason::Access) => "drop_access",
                    // What had access came to a full queue; else a queue made room.
                    Some(DropReason::QueueFull | DropReason::TooLarge) if path.access.is_some() => "drop_queue",
                    Some(_) => "drop_aqm",
                };
                fates.push((out.at.as_micros(), what, out.toward.link().to_owned(), out.payload, out.len));
            }
        } else if let Some(&(at, _, ref link, client, len)) = offered.pop_front() {
            let toward = if link == "uplink" { Toward::Server } else { Toward::Clients };
            if shaper.offer(Instant::from_micros(at), toward, client, len, client).is_err() {
                fates.push((at, "drop_queue", link.clone(), client, len));
            }
        }
    }
}

fn compare(path: &str, late: u64) {
    let scenario = Scenario::from_toml(&format!("{path}\n{CROWDED}"), "test").expect("a scenario");
    let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
    let simulated = run(&scenario, 7, &options, || false).expect("a run");
    let events: Fates = simulated
        .packets
        .iter()
        .map(|event| (event.t_us, event.event, event.link.to_string(), event.flow, event.bytes))
        .collect();
    let of = |kinds: &[&str]| events.iter().filter(|(_, event, ..)| kinds.contains(event)).cloned().collect::<Fates>();
    let path = scenario.path.expect("a path");
    // A packet that was offered and dropped is one event; what has to get access is offered before that.
    let offered = if path.access.is_some() { of(&["wait"]) } else { of(&["enq", "drop_queue"]) };
    let mut fates = of(&["recv", "drop_queue", "drop_aqm", "drop_radio", "drop_access"]);
    let mut played = played(&path, &offered, 7, late);
    let dropped = ["drop_queue", "drop_aqm", "drop_access"];
    assert!(fates.iter().any(|(_, what, ..)| dropped.contains(what)), "some were dropped");
    fates.sort();
    played.sort();
    assert_eq!(fates.len(), played.len());
    for (simulated, played) in fates.iter().zip(&played) {
        assert_eq!(simulated, played);
    }
}

const SMALL: &str = r#"profile = "nbiot-anrw18", uplink = { queue = "500 B" }, downlink = { queue = "1000 B" }"#;

#[test]
fn every_packet_leaves_at_the_microsecond_at_which_it_leaves_in_the_simulator() {
    compare(&format!("path = {{ {SMALL} }}"), 0);
}

#[test]
fn lateness_of_the_owner_moves_no_departure() {
    compare(&format!("path = {{ {SMALL} }}"), 4_999);
}

#[test]
fn the_same_packets_are_lost_with_the_same_seed() {
    let lossy = r#"profile = "nbiot-tcp20-high", uplink = { queue = "500 B" }, downlink = { queue = "700 B" }"#;
    compare(&format!("path = {{ {lossy} }}"), 0);
    compare(&format!("path = {{ {lossy} }}"), 777);
}

#[test]
fn each_clients_own_radio_has_the_luck_that_it_has_in_the_simulator() {
    let radio = r#"loss_of = "each-client", loss = { kind = "bernoulli", rate = 0.1 }"#;
    let lossy = format!(
        r#"profile = "nbiot-anrw18", uplink = {{ queue = "500 B", {radio} }}, downlink = {{ queue = "700 B", {radio} }}"#
    );
    compare(&format!("path = {{ {lossy} }}"), 333);
}

#[test]
fn jitter_and_the_limit_in_packets_are_the_same_too() {
    let netem = r#"profile = "nbiot-upc", uplink = { queue = "9 packets" }, downlink = { queue = "9 packets" }"#;
    compare(&format!("path = {{ {netem} }}"), 0);
    compare(&format!("path = {{ {netem} }}"), 1_234);
}

#[test]
fn traces_and_queues_that_manage_themselves_are_the_same_too() {
    let trace = "trace = { steps = [ { at = \"0 s\", rate = \"60 kbit/s\" }, { at = \"3 s\", rate = \"20 kbit/s\", \
                 delay = \"300 ms\" } ], every = \"7 s\", offset = \"per-seed\" }";
    for aqm in ["codel", "fq-codel", "pie"] {
        let way = |queue: &str| {
            format!("{{ queue = \"{queue}\", aqm = {{ kind = \"{aqm}\", max_packet = \"100 B\" }}, {trace} }}")
        };
        let path = format!("profile = \"nbiot-anrw18\", uplink = {}, downlink = {}", way("500 B"), way("1500 B"));
        compare(&format!("path = {{ {path} }}"), 0);
        compare(&format!("path = {{ {path} }}"), 2_345);
    }
}

#[test]
fn devices_get_access_when_the_simulated_ones_do() {
    let access = r#"{ inactivity = "3 s", set_up = "50 ms", preambles = 12, every = "160 ms", attempts = 3, response = "40 ms", backoff = "500 ms", grant = "8 ms", paging = "1 s", levels = [{ share = 1, repetitions = 1 }, { share = 1, repetitions = 4 }], duty_cycle = "20 %" }"#;
    compare(&format!("path = {{ {SMALL}, access = {access} }}"), 0);
    compare(&format!("path = {{ {SMALL}, access = {access} }}"), 2_345);
}

#[test]
fn the_rows_are_those_of_the_simulators_table() {
    compare_rows(SMALL, false);
    let managed = r#"profile = "nbiot-anrw18", uplink = { queue = "500 B" }, downlink = { queue = "1500 B", aqm = { kind = "codel", max_packet = "100 B" } }"#;
    compare_rows(managed, true);
}

fn compare_rows(path: &str, is_managed: bool) {
    let scenario = format!("path = {{ {path} }}\n{CROWDED}");
    let scenario = Scenario::from_toml(&scenario, "test").expect("a scenario");
    let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
    let simulated = run(&scenario, 7, &options, || false).expect("a run");
    let mut shaper = Shaper::new(scenario.path.as_ref().expect("a path"), 7).expect("a path");
    for event in simulated.packets.iter().filter(|event| ["enq", "drop_queue"].contains(&event.event)) {
        let now = Instant::from_micros(event.t_us);
        while shaper.deliver(now).is_some() {}
        let toward = if event.link == "uplink" { Toward::Server } else { Toward::Clients };
        let _ = shaper.offer(now, toward, event.flow, event.bytes, ());
    }
    let end = Instant::from_micros(simulated.summary.simulated_us);
    while shaper.deliver(end).is_some() {}
    let rows = shaper.rows(end).expect("nothing vanished");
    assert_eq!(rows.len(), simulated.links.len());
    for (row, simulated) in rows.iter().zip(&simulated.links) {
        // Names and values: the simulator's row in the words of its own Debug.
        let ours = pairs(&format!("{row:?}"));
        let theirs = pairs(&format!("{simulated:?}"));
        // What a reader makes of packets is no doing of the link.
        let of_reader = ["link", "read_bytes", "useful_bytes"];
        for (name, value) in ours.iter().filter(|(name, _)| !of_reader.contains(&name.as_str())) {
            let theirs = theirs.iter().find(|(their, _)| their == name);
            assert_eq!(theirs.map(|(_, value)| value), Some(value), "{name}");
        }
        assert!(row.dropped_queue_packets > 0 && row.busy_us > 0, "{row:?}");
        assert_eq!(row.dropped_aqm_packets > 0, is_managed && row.link == "downlink", "{row:?}");
    }
}

/// `Row { a: 1, b: 2.5 }` as pairs.
fn pairs(debug: &str) -> Vec<(String, String)> {
    let inside = debug.split_once('{').map_or("", |(_, rest)| rest).trim_end_matches('}');
    let pairs = inside.split(", ").filter_map(|pair| pair.split_once(": "));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// Nothing here reads or writes the ECN field of a packet.
#[test]
fn a_queue_that_marks_is_refused_in_one_line() {
    let text = "path = { profile = \"nbiot-anrw18\", downlink = { aqm = { kind = \"codel\", ecn = true } } }\n\
                [[clients]]\ncount = 1\necn = true\ncontroller = \"calm\"\n";
    let path = Scenario::from_toml(text, "test").expect("simulated it is fine").path.expect("a path");
    let told = Shaper::<()>::new(&path, 1).expect_err("it marks").to_string();
    assert!(told.contains("downlink.aqm.ecn") && told.contains("leave this key out") && !told.contains('\n'), "{told}");
}

//! What a page is handed agrees with the tables of the same run.

#![expect(clippy::unwrap_used, reason = "tests")]

use millpond_web::{Recording, Scenario, run};

const POWER_CUT: &str = r#"
[path]
profile = "nbiot-anrw18"
uplink.queue = "1410000 B"
downlink.loss = { kind = "bernoulli", rate = "2 %" }
[[clients]]
count = 200
controller = "rfc7252"
workload = [ { kind = "periodic", period = "60 s" }, { kind = "after-event", arrival = "at-once", requests = 10 } ]
[[timeline]]
kind = "restart"
at = "60 s"
[run]
for = "300 s"
"#;

fn recorded() -> (Recording, serde_json::Value) {
    let recording = run(&Scenario::from_toml(POWER_CUT, "test").unwrap(), 1).unwrap();
    let tables = serde_json::from_str(&recording.tables()).unwrap();
    (recording, tables)
}

fn with_fate(recording: &Recording, link: usize, fates: &[u8]) -> (u64, u64) {
    let packets = recording.fates(link).into_iter().zip(recording.bytes(link));
    let bytes: Vec<_> = packets.filter(|(fate, _)| fates.contains(fate)).map(|(_, bytes)| u64::from(bytes)).collect();
    (bytes.len() as u64, bytes.iter().sum())
}

#[test]
fn packets_add_up_to_the_rows_of_their_links() {
    let (recording, tables) = recorded();
    for (link, name) in recording.links().iter().enumerate() {
        let of = |column: &str| tables["links"][column][link].as_u64().unwrap();
        let told = |fates: &[u8]| with_fate(&recording, link, fates);
        assert_eq!(told(&[0, 1, 2, 3, 4]), (of("offered_packets"), of("offered_bytes")), "{name}");
        assert_eq!(told(&[0, 1]), (of("delivered_packets"), of("delivered_bytes")), "{name}");
        assert_eq!(told(&[0]).1, of("useful_bytes"), "{name}");
        assert_eq!(told(&[2]).0, of("dropped_queue_packets"), "{name}");
        assert_eq!(told(&[3]).0, of("dropped_radio_packets"), "{name}");
    }
    assert!(with_fate(&recording, 1, &[1]).0 > 100, "copies in vain");
    assert!(with_fate(&recording, 1, &[2]).0 > 100, "a queue that refuses");
    assert!(with_fate(&recording, 1, &[3]).0 > 10, "a radio that loses");
}

#[test]
fn packets_that_have_come_and_not_left_are_the_queue() {
    let (recording, _) = recorded();
    let link = 1;
    let (came, sent, fates) = (recording.came(link), recording.sent(link), recording.fates(link));
    for (frame, &queued) in recording.queue(link).iter().enumerate() {
        let now = (frame as f64 * recording.step()) as f32;
        let inside = |&place: &usize| fates[place] != 2 && came[place] <= now && sent[place] > now;
        let told = (0..came.len()).filter(inside).count();
        // At one moment several things happen; times here are rounded.
        assert!(told.abs_diff(queued as usize) <= 2, "{now} s: {told} and {queued}");
    }
}

#[test]
fn devices_that_are_done_add_up() {
    let (recording, tables) = recorded();
    let done = recording.done();
    assert!(done.is_sorted());
    assert_eq!(done[(60.0 / recording.step()) as usize], 0, "nobody before the power cut");
    let last = tables["reported"]["clients"].as_array().unwrap().last().unwrap().as_u64().unwrap();
    assert_eq!(u64::from(*done.last().unwrap()), last);
    assert!(last > 0);
}

#[test]
fn at_the_end_of_a_run_that_ends_everybody_is_done() {
    let text = "path = \"nbiot-anrw18\"\n[[clients]]\ncount = 10\ncontroller = \"rfc7252\"\nexchanges = 3\n";
    let recording = run(&Scenario::from_toml(text, "test").unwrap(), 1).unwrap();
    assert_eq!(recording.done().last(), Some(&10));
}

#[test]
fn devices_wait_one_copy_at_a_time() {
    let (recording, tables) = recorded();
    let clients = recording.wait_clients();
    let sent: u64 = tables["flows"]["transmissions"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(clients.len() as u64, sent, "a wait for every copy");
    let mut busy = vec![0.0_f32; 200];
    for ((client, from), to) in clients.into_iter().zip(recording.wait_from()).zip(recording.wait_to()) {
        assert!(busy[client as usize] <= from + 1e-3 && from <= to);
        busy[client as usize] = to;
    }
}

#[test]
fn a_scenario_taken_out_is_the_one_put_in() {
    for text in [
        POWER_CUT,
        "path = \"nbiot-upc\"\n[[clients]]\ncount = 3\ncontroller = { preset = \"rfc7252\", max-wait = \"60 s\" }\n",
    ] {
        let scenario = Scenario::from_toml(text, "test").unwrap();
        let out = scenario.to_toml().unwrap();
        assert_eq!(Scenario::from_toml(&out, "again").unwrap().to_json(), scenario.to_json(), "{out}");
        assert_eq!(Scenario::from_json(&scenario.to_json(), "again").unwrap().to_json(), scenario.to_json());
    }
}

#[test]
fn what_is_too_large_for_a_page_is_refused_in_one_line() {
    let endless = POWER_CUT.replace("count = 200", "count = 9000000");
    let error = run(&Scenario::from_toml(&endless, "test").unwrap(), 1).unwrap_err();
    assert!(error.contains("millpond run") && !error.contains('\n'), "{error}");
}

//! Meshes of radios as scenarios describe them: closed forms, where nodes and sinks are, and what a scenario may not say.

use millpond_sim::{Options, Outcome, Scenario, TraceKind, run};

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "test").unwrap()
}

fn go(text: &str) -> Outcome {
    run(&read(text), 1, &Options::default(), || false).unwrap()
}

/// A request of 37 bytes: header, Uri-Path, marker and payload.
const GROUP: &str = "controller = \"rfc7252\"\nuri_path = \"s\"\nrequest_payload = \"30 B\"\n";
const ANSWER: &str = "[server]\npayload = \"0 B\"\n";

/// Assessment, turnaround and two milliseconds of processing, and a frame of so many bytes.
fn hop(frame: u64) -> f64 {
    (128 + 192 + 2_000 + (frame + 6) * 32) as f64
}

#[test]
fn an_exchange_over_two_hops_takes_what_arithmetic_says() {
    let list = r#"[mesh]
        topology = { kind = "list", nodes = """
            device 0 0
            router 10 0 border-router
            sink 20 0 primary""" }
        "#;
    let outcome = go(&format!("{list}[[clients]]\nexchanges = 20\n{GROUP}{ANSWER}"));
    // The answer: 56 bytes of headers, four of CoAP and an empty Content-Format, not compressed.
    let expected = 2.0 * hop(96) + 2.0 * hop(21 + 1 + 61 + 2);
    let row = &outcome.flows[0];
    assert_eq!((row.completed, row.retransmissions, row.delivered), (20, 0, 20));
    assert_eq!(row.rtt_strong_mean_us, Some(expected));
    let sent: Vec<u64> = outcome.nodes.iter().map(|node| node.data_sent).collect();
    assert_eq!(sent, [20, 40, 20]);
    let parents: Vec<Option<&str>> = outcome.nodes.iter().map(|node| node.parent.as_deref()).collect();
    assert_eq!(parents, [Some("router"), None, Some("router")]);
    assert!(outcome.links.iter().all(|link| link.dropped_radio_packets == 0 && link.useful_bytes > 0));
}

/// The border router has an endpoint like the others: it asks and answers where a scenario says so.
#[test]
fn the_border_router_asks_and_answers() {
    let list = "topology = { kind = \"list\", nodes = \"\"\"\ndevice 0 0\nrouter 10 0 border-router\nsink 20 0 primary\"\"\" }";
    for (keys, at, expected) in [
        // It asks the sink.
        ("", "router", ["router", "sink"]),
        // It answers a device, one hop away, and one that is behind it and the sink's.
        ("sinks = { primary = { nodes = [\"router\"] } }", "device", ["device", "router"]),
    ] {
        for routing in ["static", "rpl"] {
            let text = format!(
                "[mesh]\n{list}\n{keys}\nrouting = \"{routing}\"\n[[clients]]\nat = [\"{at}\"]\nexchanges = 20\n"
            );
            let outcome = go(&format!("{text}{GROUP}{ANSWER}"));
            let row = &outcome.flows[0];
            assert_eq!((row.completed, row.exchanges_failed, row.delivered), (20, 0, 20), "{keys} {routing}");
            let arrived = |name: &str| outcome.nodes.iter().find(|node| *node.node == *name).unwrap().packets_arrived;
            assert!(expected.iter().all(|name| arrived(name) >= 20), "{keys} {routing}: {:?}", outcome.nodes);
            if routing == "static" {
                assert_eq!(row.rtt_strong_mean_us, Some(hop(96) + hop(21 + 1 + 61 + 2)));
            }
            let role = outcome.nodes.iter().find(|node| *node.node == *"router").map(|node| node.role.to_string());
            assert_eq!(role.as_deref(), Some("border-router"));
        }
    }
}

#[test]
fn groups_have_a_client_at_each_node_without_another_role() {
    for (topology, clients) in [("chain-17", 14), ("dumbbell-21", 16), ("grid-6x6", 33), ("grid-7x7", 46)] {
        let scenario = read(&format!("[mesh]\ntopology = \"{topology}\"\n[[clients]]\n{GROUP}"));
        assert_eq!(scenario.client_count(), clients, "{topology}");
        let again = Scenario::from_json(&scenario.to_json(), "test").unwrap();
        assert_eq!((&again, again.to_json()), (&scenario, scenario.to_json()));
    }
}

#[test]
fn with_contiki_a_node_senses_what_disturbs_it() {
    let list = "topology = { kind = \"list\", nodes = \"a 0 0\\nm 10 0 primary\\nb 10 10\" }\nborder_router = \"m\"\n";
    let collided = |keys: &str| {
        let keys = format!("{list}{keys}\n");
        let workload = "application_queue = 4\nworkload = { kind = \"poisson\", interval = \"60 ms\" }\n";
        let outcome = go(&format!("[mesh]\n{keys}[[clients]]\n{workload}{GROUP}{ANSWER}[run]\nfor = \"2 min\"\n"));
        outcome.nodes.iter().map(|node| node.data_collided).sum::<u64>()
    };
    // `a` and `b` are 14.1 m apart: they do not receive each other.
    let (default, short) = (collided(""), collided("carrier_sense = \"10 m\""));
    assert!(2 * default < short, "{default} {short}");
    assert_eq!(default, collided("carrier_sense = \"19999 mm\""));
}

#[test]
fn a_dumbbell_sends_to_the_far_side_and_notifies_its_own() {
    for (sink, at, expected) in
        [("primary", "0,0", "8,1"), ("primary", "8,2", "0,1"), ("secondary", "0,0", "1,1"), ("secondary", "8,2", "7,1")]
    {
        let text = format!(
            "[mesh]\ntopology = \"dumbbell-21\"\n[[clients]]\nexchanges = 3\nat = [\"{at}\"]\nsink = \"{sink}\"\n{GROUP}"
        );
        let outcome = go(&text);
        let reached: Vec<&str> = outcome
            .nodes
            .iter()
            .filter(|node| node.packets_arrived > 0 && *node.node != *at)
            .map(|node| &*node.node)
            .collect();
        assert_eq!(reached, [expected], "{sink} from {at}");
        assert_eq!(outcome.flows[0].completed, 3);
    }
}

const GRID: &str = r#"
    [mesh]
    topology = "grid-6x6"
    delivery = [0.75, 1.0]
    [[clients]]
    controller = "cocoa-03"
    uri_path = "s"
    request_payload = "30 B"
    application_queue = 4
    workload = { kind = "periodic", period = "12.672 s" }
    [server]
    payload = "0 B"
    [run]
    for = "2 min"
"#;

#[test]
fn a_loaded_grid_delivers_most_and_repeats_itself() {
    let outcome = go(GRID);
    assert_eq!(outcome, go(GRID));
    let summary = outcome.summary;
    assert!(summary.arrivals > 300 && summary.delivered * 2 > summary.arrivals, "{summary:?}");
    let collided: u64 = outcome.nodes.iter().map(|node| node.data_collided).sum();
    let faded: u64 = outcome.nodes.iter().map(|node| node.data_faded).sum();
    assert!(collided > 20 && faded > 100, "{collided} {faded}");
    // About one frame in eight fades.
    let sent: u64 = outcome.nodes.iter().map(|node| node.data_sent).sum();
    assert!((faded as f64 / sent as f64 - 0.125).abs() < 0.05, "{faded} of {sent}");
}

#[test]
fn traces_and_captures_are_taken_in_a_mesh_too() {
    let options = Options { traces: TraceKind::ALL.to_vec(), trace_step_us: 1_000_000, capture: true };
    let traced = run(&read(GRID), 1, &options, || false).unwrap();
    let plain = go(GRID);
    assert_eq!((&traced.flows, &traced.nodes), (&plain.flows, &plain.nodes));
    let events = |event: &str| traced.packets.iter().filter(|packet| packet.event == event).count() as u64;
    let sum = |what: fn(&millpond_sim::NodeRow) -> u64| traced.nodes.iter().map(what).sum::<u64>();
    assert!(events("enq") > 500 && events("recv") >= sum(|node| node.packets_passed));
    assert_eq!(events("drop_queue"), sum(|node| node.lost_buffers + node.lost_neighbours));
    assert!(!traced.queue_trace.is_empty() && !traced.rto_trace.is_empty() && traced.capture.is_some());
    // Every frame is there once, with what the books say of it.
    let frames = |kind: &str, fate: &str| {
        traced.frames.iter().filter(|frame| (frame.kind, frame.fate) == (kind, fate)).count() as u64
    };
    assert_eq!(frames("data", "received"), sum(|node| node.data_received));
    assert_eq!(frames("data", "collided"), sum(|node| node.data_collided));
    assert_eq!(frames("data", "faded"), sum(|node| node.data_faded));
    assert_eq!(frames("ack", "received"), sum(|node| node.acks_received));
    assert_eq!(traced.frames.len() as u64, sum(|node| node.data_sent + node.acks_sent));
    let on_air: u64 = traced.frames.iter().map(|frame| u64::from(frame.us)).sum();
    assert_eq!(on_air, sum(|node| node.on_air_us));
    let carried: u64 = traced.share_trace.iter().map(|window| window.carried_bytes).sum();
    assert!(carried > 0 && traced.share_trace.iter().any(|window| window.useful_bytes > 0));
}

#[test]
fn an_alarm_is_reported_by_every_device_at_once() {
    let text =
        GRID.replace("workload = {", "workload = [ { kind = \"after-event\" }, {").replace("12.672 s\" }", "1 h\" } ]")
            + "[[timeline]]\nat = \"60 s\"\nkind = \"alarm\"\n";
    let outcome = go(&text);
    let event = outcome.reported.iter().filter(|row| row.event == 1).map(|row| row.of).max();
    assert_eq!(event, Some(33));
}

/// The complaint about a scenario: one line.
#[track_caller]
fn tells(text: &str, parts: &[&str]) {
    let told = Scenario::from_toml(text, "test.toml").unwrap_err().to_string();
    assert!(!told.contains('\n') && told.starts_with("test.toml"), "{told}");
    for part in parts {
        assert!(told.contains(part), "{told:?} does not say {part:?}");
    }
}

fn mesh(keys: &str, group: &str) -> String {
    format!("[mesh]\n{keys}\n[[clients]]\n{GROUP}{group}\n")
}

#[test]
fn what_cannot_be_a_mesh_is_refused_with_its_place() {
    let list = |lines: &str, keys: &str| {
        mesh(&format!("topology = {{ kind = \"list\", nodes = \"\"\"{lines}\"\"\" }}\n{keys}"), "")
    };
    let three = "a 0 0 primary\nb 10 0 border-router\nc 20 0";
    Scenario::from_toml(&list(three, ""), "test").unwrap();
    for (text, parts) in [
        (
            list("a 0 0 primary\nb 10 0 border-router\nc 20.5 0\nd 30.5 0", ""),
            &["mesh.topology", "no way from node `c` and 1 more"][..],
        ),
        (list("a 0 0 primary\nb 10 0 border-router\nc 10 0", ""), &["mesh.topology", "`b` and `c` stand in one place"]),
        (list("a 0 0\nb 10 0 border-router\nc 20 0", ""), &["mesh.sinks", "no sink"]),
        (list("a 0 0 primary\nb 10 0", ""), &["mesh.border_router", "no border router"]),
        (list("a 0 0 primary\nb ten 0", ""), &["mesh.topology.nodes", "line 2", "`ten` is no place"]),
        (list(three, "range = \"0 m\""), &["mesh.range", "reaches nobody"]),
        (list(three, "interference = \"0 m\""), &["mesh.interference", "disturbs nobody"]),
        (list(three, "range = 10"), &["10 has no unit", "\"10 m\""]),
        (list(three, "delivery = [0.9, 0.8]"), &["mesh.delivery", "from the least to the greatest"]),
        (list(three, "delivery = [0]"), &["mesh.delivery", "delivers nothing"]),
        (list(three, "timebase = \"0 s\""), &["mesh.timebase", "no wait"]),
        (list(three, "loading = \"2 s\""), &["mesh.loading", "too long"]),
        (list(three, "buffers = 0"), &["mesh.buffers", "write 1 to 1000"]),
        (list(three, "border_router = \"x\""), &["mesh.border_router", "unknown node `x`"]),
        (list(three, "sinks = { primary = { nodes = [\"aa\"] } }"), &["mesh.sinks.primary", "did you mean `a`?"]),
        (list(three, "acess = \"ieee\""), &["did you mean `access`?"]),
        (list("a 0 0 primary\nb 10 0 border-router", ""), &["clients[0].at", "every node has another role"]),
        (mesh("topology = \"grid-6x7\"", ""), &["unknown topology `grid-6x7`", "did you mean `grid-6x6`?"]),
        (mesh("topology = { kind = \"grid\", columns = 0, rows = 3 }", ""), &["mesh.topology.columns", "0 nodes"]),
        (mesh("topology = \"grid-6x6\"", "at = [\"9,9\"]"), &["clients[0].at", "unknown node `9,9`"]),
        (mesh("topology = \"grid-6x6\"", "at = [\"5,5\"]"), &["clients[0].at", "`5,5` is its own sink"]),
        (mesh("topology = \"grid-6x6\"", "sink = \"primry\""), &["clients[0].sink", "did you mean `primary`?"]),
        (mesh("topology = \"grid-6x6\"", "count = 3"), &["clients[0].count", "3 clients at 33 nodes"]),
        (mesh("topology = \"grid-6x6\"", "[server]\npayload = \"400 B\""), &["mesh.buffers", "buffers"]),
        (mesh("topology = \"grid-6x6\"\n[path]", ""), &[]),
    ] {
        tells(&text, parts);
    }
    let tcp = "[mesh]\ntopology = \"grid-6x6\"\n[[clients]]\ntransport = \"tcp\"\n";
    tells(tcp, &["clients[0].transport", "a mesh carries datagrams"]);
    let commands = "commands = { workload = { kind = \"periodic\", period = \"1 min\" } }";
    tells(&mesh("topology = \"grid-6x6\"", commands), &["clients[0].commands", "clients ask and sinks answer"]);
    let path = "path = \"nbiot-anrw18\"\n[[clients]]\ncount = 1\n";
    tells(&format!("{path}{GROUP}at = [\"a\"]\n"), &["clients[0].at", "only a [mesh]"]);
    let outage = mesh("topology = \"grid-6x6\"", "[[timeline]]\nat = \"5 s\"\nkind = \"outage\"\nfor = \"1 s\"");
    tells(&outage, &["timeline[0].kind", "no links", "write `delivery`"]);
    let own = format!("sinks = {{ primary = {{ nodes = [\"2,2\"] }} }}\n[[clients]]\n{GROUP}at = [\"2,2\"]\n");
    tells(&format!("[mesh]\ntopology = \"grid-6x6\"\n{own}"), &["clients[0].at", "`2,2` is its own sink"]);
}

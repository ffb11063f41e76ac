//! Devices that begin anew, and what they remember.

use millpond_sim::{Options, Scenario, run};

use crate::{NARROW, books::balances, scenario};

/// The example of docs and scenarios: back after a power cut, then a report a day.
#[test]
fn meters_come_back_after_a_power_cut() {
    let text = format!(
        r#"{NARROW}
        [[clients]]
        name = "meters"
        count = 400
        controller = "rfc7252"
        workload = [ {{ kind = "after-event", arrival = "30 s" }}, {{ kind = "periodic", period = "1 d" }} ]
        [[timeline]]
        kind = "restart"
        at = "12 h"
        clients = "meters"
        [run]
        for = "2 d"
        "#
    );
    let outcome = run(&Scenario::from_toml(&text, "test").unwrap(), 1, &Options::default(), || false).unwrap();
    balances(&outcome);
    let of = |event: u32| outcome.reported.iter().rfind(|row| row.event == event).copied().unwrap();
    // Half of them report once before the cut; the rhythm begins anew after it, with once or twice in the 36 h left.
    let (daily, back) = (of(0), of(1));
    assert_eq!((back.of, back.answered, back.clients, back.clients_of), (400, 400, 400, 400));
    assert!((740..860).contains(&daily.of), "{} daily reports", daily.of);
    let first = outcome.reported.iter().find(|row| row.event == 1).unwrap();
    assert!(first.t_us < 30_000_000, "counted from the event");
}

#[test]
fn who_had_completed_before_a_restart_has_a_completion_time() {
    let text =
        |restart: &str| format!("{NARROW}\n[[clients]]\ncount = 2\ncontroller = \"rfc7252\"\nexchanges = 5\n{restart}");
    let completions = |restart: &str| {
        let scenario = Scenario::from_toml(&text(restart), "test").unwrap();
        let outcome = run(&scenario, 1, &Options::default(), || false).unwrap();
        outcome.flows.iter().map(|flow| (flow.fct_us, flow.done_us)).collect::<Vec<_>>()
    };
    let without = completions("");
    assert!(without.iter().all(|(complete, done)| complete.is_some() && done.is_some()));
    assert_eq!(completions("[[timeline]]\nkind = \"restart\"\nat = \"5 min\""), without);
}

#[test]
fn a_restart_ends_what_is_open_and_forgets_if_told_to() {
    let text = |memory: &str, queue: &str| {
        format!(
            r#"{NARROW}
            [[clients]]
            count = 30
            controller = "cocoa-03"
            exchanges = 40
            [[timeline]]
            kind = "restart"
            at = "10 s"
            back = "5 s"
            memory = "{memory}"
            queue = "{queue}"
            [run]
            until = "10 min"
            "#
        )
    };
    for memory in ["lost", "base-rtt", "kept"] {
        let scenario = Scenario::from_toml(&text(memory, "lost"), "test").unwrap();
        let outcome = run(&scenario, 1, &Options::default(), || false).unwrap();
        balances(&outcome);
        let summary = &outcome.summary;
        // Everybody was in the middle of something, which is lost; the rest is made afterwards.
        assert_eq!((summary.arrivals, summary.failed, summary.unfinished), (1_200, 30, 0), "{memory}");
        assert_eq!((summary.clients_lost, summary.clients_complete), (30, 0));
    }
    // With nothing to do it changes nothing to the request that waits.
    let kept = text("kept", "kept").replace(
        "exchanges = 40",
        "exchanges = 40\nworkload = { kind = \"periodic\", period = \"100 ms\", phase = \"0 s\", requests = 20 }",
    );
    let lost = kept.replace("queue = \"kept\"", "queue = \"lost\"");
    let failed = |text: &str| {
        run(&Scenario::from_toml(text, "test").unwrap(), 1, &Options::default(), || false).unwrap().summary.failed
    };
    assert!(failed(&kept) < failed(&lost), "{} and {}", failed(&kept), failed(&lost));
}

/// Of what a client knows nothing is left but the base round trip, and only calm has one. The cell is so slow that round trips
/// become 15 s (60 clients, 250 ms each): a client that knows a base round trip knows at the first answer that this is a queue.
#[test]
fn a_base_round_trip_may_be_all_that_is_remembered() {
    let slow = NARROW.replace("2500 B", "1410 kB").replace("30 kbit/s", "3 kbit/s").replace("60 kbit/s", "6 kbit/s");
    let flows = |controller: &str, rest: &str| {
        let text = format!(
            "{slow}\n[[clients]]\ncount = 60\ncontroller = \"{controller}\"\nexchanges = 20\nmax_retransmit = 20\n\
             start_spread = \"10 s\"\n{rest}"
        );
        let outcome = run(&Scenario::from_toml(&text, "test").unwrap(), 1, &Options::default(), || false).unwrap();
        balances(&outcome);
        outcome.flows
    };
    let restart = |memory: &str| format!("[[timeline]]\nkind = \"restart\"\nat = \"60 s\"\nmemory = \"{memory}\"");
    let batches =
        |memory: &str| format!("workload = \"random\"\nbatch = {{ from = 1, to = 3, memory = \"{memory}\" }}");
    for rest in [&restart as &dyn Fn(&str) -> String, &batches] {
        let [lost, base_rtt, kept] = ["lost", "base-rtt", "kept"].map(|memory| flows("calm", &rest(memory)));
        assert!(lost != base_rtt && base_rtt != kept);
        let [lost, base_rtt, kept] = ["lost", "base-rtt", "kept"].map(|memory| flows("cocoa-03", &rest(memory)));
        assert!(lost == base_rtt && base_rtt != kept);
    }
    let [lost, base_rtt, kept] = ["lost", "base-rtt", "kept"]
        .map(|memory| flows("calm", &batches(memory)).iter().map(|row| row.retransmissions).sum::<u32>());
    assert!(kept < base_rtt && base_rtt < lost, "{kept} {base_rtt} {lost} copies");
    // Batches that keep everything are one request after the other, and nothing is written of what is lost as always.
    let continuous: u32 = flows("calm", "workload = \"continuous\"").iter().map(|row| row.retransmissions).sum();
    assert_eq!(kept, continuous);
    let written = scenario(NARROW, "count = 1\ncontroller = \"calm\"\nbatch = { from = 1, to = 3, memory = \"lost\" }");
    assert!(!written.to_json().contains("memory"));
}

/// Who is down neither sends nor hears, whatever carries its requests, and goes on when it is up again.
#[test]
fn every_transport_survives_a_restart() {
    for carried in [
        "controller = \"cocoa-03\"",
        "controller = \"cocoa-03\"\nnstart = 4\ntoken_length = 2",
        "controller = \"cocoa-03\"\ntransfer = { kind = \"blocks\", size = \"64 B\" }",
        "controller = \"cocoa-03\"\ntransfer = { kind = \"bursts\", size = \"128 B\" }",
        "transport = \"tcp\"",
    ] {
        for memory in ["lost", "base-rtt", "kept"] {
            let text = format!(
                "{NARROW}\n[[clients]]\ncount = 3\nexchanges = 30\n{carried}\n[server]\npayload = \"2000 B\"\n\
                 [[timeline]]\nkind = \"restart\"\nat = \"10 s\"\nback = {{ kind = \"uniform\", over = \"20 s\" }}\nmemory = \"{memory}\""
            )
            .replace("2000 B", if carried.contains("transfer") || carried.contains("tcp") { "2000 B" } else { "60 B" });
            let scenario = Scenario::from_toml(&text, "test").unwrap();
            let options = Options { traces: vec![millpond_sim::TraceKind::Packets], ..Options::default() };
            let outcome = run(&scenario, 1, &options, || false).unwrap();
            balances(&outcome);
            let summary = &outcome.summary;
            assert_eq!((summary.arrivals, summary.unfinished), (90, 0), "{carried}, {memory}: {summary:?}");
            assert!(summary.failed <= 3 && summary.answered >= 87, "{carried}, {memory}: {summary:?}");
            for flow in 0..3 {
                let sent = outcome.packets.iter().filter(|packet| {
                    packet.flow == flow && packet.link == "uplink" && matches!(packet.event, "enq" | "drop_queue")
                });
                let mut times: Vec<u64> = sent.map(|packet| packet.t_us).collect();
                times.sort_unstable();
                let before = times.partition_point(|&at| at < 10_000_000);
                assert!(0 < before && before < times.len(), "{carried}, {memory}: it was in the middle of something");
            }
            // Each is down for a while of its own: nobody sends in the first instants after the event.
            let silent = |packet: &&millpond_sim::PacketEvent| {
                packet.link == "uplink" && packet.event == "enq" && (10_000_001..10_500_000).contains(&packet.t_us)
            };
            assert_eq!(outcome.packets.iter().filter(silent).count(), 0, "{carried}, {memory}");
        }
    }
}

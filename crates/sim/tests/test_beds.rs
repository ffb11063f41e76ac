//! What published test beds need of a scenario: sizes of messages, netem's ways, errors of a radio.

use millpond_sim::{Options, Outcome, Scenario, TraceKind, run};

/// The shared NB-IoT-class path with these further keys of both directions, of the clients and of the server.
fn scenario(direction: &str, clients: &str, server: &str) -> Scenario {
    let text = format!(
        r#"
        [path.uplink]
        rate = "60 kbit/s"
        delay = "215 ms"
        {direction}
        [path.downlink]
        rate = "30 kbit/s"
        delay = "415 ms"
        {direction}
        [[clients]]
        {clients}
        [server]
        {server}
        "#
    );
    Scenario::from_toml(&text, "test").unwrap()
}

fn everything(scenario: &Scenario) -> Outcome {
    let options = Options { traces: TraceKind::ALL.to_vec(), ..Options::default() };
    run(scenario, 1, &options, || false).unwrap()
}

const LARGE: &str = "queue = \"1410000 B\"";
const DEFAULT: &str = "count = 20\ncontroller = \"rfc7252\"\nmax_retransmit = 20\n";

/// Bytes of IP of every packet in one direction; they are all alike.
fn bytes_of(outcome: &Outcome, link: &str) -> u32 {
    let mut sizes: Vec<u32> = outcome.packets.iter().filter(|p| p.link == link).map(|p| p.bytes).collect();
    sizes.dedup();
    assert_eq!(sizes.len(), 1, "{sizes:?}");
    sizes[0]
}

#[test]
fn messages_have_the_sizes_of_californium() {
    let californium = format!("{DEFAULT}token_length = 8\nuri_path = \"helloWorld\"\n");
    // IP and UDP 28, header 4, token 8; request: path 11; response: Content-Format 1, marker 1.
    for (payload, response) in [(68, 110), (150, 192), (176, 218), (296, 338)] {
        let outcome = everything(&scenario(LARGE, &californium, &format!("payload = \"{payload} B\"")));
        assert_eq!((bytes_of(&outcome, "uplink"), bytes_of(&outcome, "downlink")), (51, response));
    }
    let asking = format!("{californium}request_payload = \"79 B\"\n");
    let outcome = everything(&scenario(LARGE, &asking, "payload = \"69 B\""));
    assert_eq!((bytes_of(&outcome, "uplink"), bytes_of(&outcome, "downlink")), (51 + 1 + 79, 111));
}

#[test]
fn tokens_and_payloads_change_nothing_but_sizes() {
    for (keys, request, response) in [
        ("", 38, 94),
        ("token_length = 1", 39, 95),
        ("token_length = 8", 46, 102),
        ("request_payload = \"1 B\"", 40, 94),
    ] {
        for server in ["", "duplicates = \"afresh\""] {
            let outcome = everything(&scenario(LARGE, &format!("{DEFAULT}{keys}"), server));
            assert_eq!((bytes_of(&outcome, "uplink"), bytes_of(&outcome, "downlink")), (request, response));
            assert!(outcome.flows.iter().all(|row| row.completed == 50 && row.exchanges_failed == 0));
        }
    }
}

#[test]
fn the_longest_request_fits() {
    let longest = 65_000 - 4 - 8 - 6 - 1;
    let clients = "count = 1\nexchanges = 1\ncontroller = \"rfc7252\"\ntoken_length = 8\n";
    let fits = format!("{clients}request_payload = \"{longest} B\"");
    let outcome = everything(&scenario(LARGE, &fits, ""));
    assert_eq!(bytes_of(&outcome, "uplink"), 28 + 65_000);
    assert_eq!(outcome.flows[0].completed, 1);
}

#[test]
fn ethernet_is_charged_by_the_rate_and_not_by_the_queue() {
    let busy = |overhead: &str| {
        let outcome = everything(&scenario(&format!("{LARGE}\n{overhead}"), "count = 1\ncontroller = \"rfc7252\"", ""));
        (outcome.links[1].busy_us, outcome.links[1].queue_max_bytes)
    };
    let bits = |bytes: u64| 50 * bytes * 8 * 1_000_000 / 30_000;
    assert_eq!(busy(""), (bits(94), 94));
    assert_eq!(busy("overhead = \"14 B\""), (bits(94 + 14), 94));
}

#[test]
fn a_queue_that_counts_all_packets_counts_those_on_their_way() {
    // 94 B every 25 ms, 415 ms of delay: 16 responses are on their way while one is sent.
    let dropped = |counts: &str, packets: u32| {
        let keys = format!("queue = \"{packets} packets\"\n{counts}");
        let outcome = everything(&scenario(&keys, DEFAULT, ""));
        (outcome.links[1].dropped_queue_packets, outcome.links[1].queue_max_packets)
    };
    assert_eq!(dropped("", 20).0, 0);
    assert_eq!(dropped("queue_counts = \"waiting\"", 20), dropped("", 20));
    let (all, longest) = dropped("queue_counts = \"all\"", 10);
    assert!(all > 0 && longest <= 10, "{all} {longest}");
    // Twenty clients with one request each never have more than twenty copies under way, so long as none times out.
    assert_eq!(dropped("queue_counts = \"all\"", 20).0, 0);
}

#[test]
fn the_usual_error_profiles_lose_what_they_say() {
    for (loss, mean) in [
        (r#"{ kind = "bernoulli", rate = 0.02 }"#, 0.02),
        (r#"{ kind = "markov", good_loss = 0.0, bad_loss = 0.5, good_dwell = "400 ms", bad_dwell = "100 ms" }"#, 0.10),
        (
            r#"{ kind = "markov", good_loss = 0.02, bad_loss = 0.8, good_dwell = "400 ms", bad_dwell = "100 ms" }"#,
            0.176,
        ),
        // netem's `loss gemodel 20 80 80 2`.
        (r#"{ kind = "gilbert-elliott", p = 0.2, r = 0.8, 1-h = 0.8, 1-k = 0.02 }"#, 0.176),
        (r#"{ kind = "gilbert-elliott", p = 0.8, r = 0.2, 1-h = 0.5 }"#, 0.4),
    ] {
        let keys = format!("{LARGE}\nloss = {loss}\nloss_at = \"before-rate\"");
        let outcome = everything(&scenario(&keys, &format!("{DEFAULT}exchanges = 500"), ""));
        for link in &outcome.links {
            let share = link.dropped_radio_packets as f64 / link.offered_packets as f64;
            // Five standard errors of independent losses, doubled for those that come in runs.
            let error = 10.0 * (mean * (1.0 - mean) / link.offered_packets as f64).sqrt();
            assert!(
                (share - mean).abs() < error,
                "{loss}: {share} instead of {mean}, {} packets",
                link.offered_packets
            );
        }
    }
}

#[test]
fn scaled_batches_end_with_a_single_exchange() {
    let clients = format!("{DEFAULT}workload = \"random\"\nbatch = {{ from = 1, to = 9, near_end = \"scaled\" }}");
    let outcome = everything(&scenario(LARGE, &clients, ""));
    // A batch begins with a controller that knows nothing: as many first batches as clients, and the sizes add up.
    for row in &outcome.flows {
        assert_eq!(row.completed, 50);
        assert!((7..=50).contains(&row.batches), "{}", row.batches);
    }
}

//! Windows above one and paced senders: what they must do by plain arithmetic.

use millpond_sim::{Options, Outcome, Scenario, TraceKind, run};

/// Bytes of a request: IP and UDP, CoAP with a token of two, its path, a payload and the marker before it.
const REQUEST: u64 = 28 + 4 + 2 + 6 + 1 + 500;
/// Bytes of its response, 2.04 without a payload.
const RESPONSE: u64 = 28 + 4 + 2;

fn try_run(text: &str, seed: u64) -> Result<Outcome, String> {
    let scenario = Scenario::from_toml(text, "test").map_err(|error| error.to_string())?;
    let options = Options { traces: TraceKind::ALL.to_vec(), trace_step_us: 100_000, capture: false };
    run(&scenario, seed, &options, || false).map_err(|error| error.to_string())
}

/// One sender with an endless backlog on a path of 300 kbit/s and 120 ms each way.
fn alone(controller: &str, nstart: u32, seconds: &str, queue: &str) -> String {
    format!(
        r#"
[path.uplink]
rate = "300 kbit/s"
delay = "120 ms"
queue = "{queue}"
[path.downlink]
rate = "10 Mbit/s"
delay = "120 ms"
queue = "100 kB"
[[clients]]
count = 1
controller = {controller}
workload = "backlog"
nstart = {nstart}
token_length = 2
request_payload = "500 B"
[server]
payload = "0 B"
[run]
for = "{seconds}"
"#
    )
}

/// The time of a round trip on the empty path, in seconds.
fn round_trip() -> f64 {
    REQUEST as f64 * 8.0 / 300e3 + RESPONSE as f64 * 8.0 / 10e6 + 0.24
}

#[test]
fn a_paced_flow_earns_one_message_per_round_trip_time_in_each() {
    let rtt = round_trip();
    // Probe; four per round trip for two; then (4 answers over two round trips) growing by 1/T in every T.
    let sent_by = |seconds: f64| {
        let (mut sent, mut at, mut rate) = (1.0 + 8.0, 3.0 * rtt, 4.0 / (2.0 * rtt));
        while at < seconds {
            sent += rate * rtt.min(seconds - at);
            rate += 1.0 / rtt;
            at += rtt;
        }
        sent
    };
    for seconds in [2.0, 3.0, 4.0] {
        let controller = "\"coap-plus-rate\"";
        let outcome = try_run(&alone(controller, 256, &format!("{seconds} s"), "1 MB"), 1).unwrap();
        let (sent, exact) = (f64::from(outcome.flows[0].transmissions), sent_by(seconds));
        assert!((sent - exact).abs() <= 0.01 * exact + 1.0, "{sent} sent in {seconds} s, not {exact}");
        assert_eq!(outcome.flows[0].retransmissions, 0);
    }
}

#[test]
fn a_paced_flow_settles_at_the_rate_of_its_path_and_queues_what_its_window_leaves_over() {
    for preset in ["coap-plus-rate", "coap-plus-rate-responsive"] {
        let text = alone(&format!("\"{preset}\""), 100, "300 s", "1 MB").replace("[run]", "[run]\nwarm_up = \"100 s\"");
        let outcome = try_run(&text, 1).unwrap();
        let (capacity, rtt) = (300e3 / 8.0 / REQUEST as f64, round_trip());
        let rate = f64::from(outcome.flows[0].completed) / 200.0;
        assert!((rate - capacity).abs() <= 0.01 * capacity, "{preset}: {rate} messages a second of {capacity}");
        // Little's law: A hundred under way, of which what the path holds by itself does not wait.
        let spent = outcome.flows[0].rtt_first_mean_us.unwrap() / 1e6;
        assert!((spent - 100.0 / capacity).abs() <= 0.02 * spent, "{preset}: {spent} s in the system");
        assert!(spent > rtt, "the queue holds the rest");
        assert_eq!(outcome.flows[0].retransmissions, 0, "{preset}");
    }
}

/// However wide the window, a message ID is not used again within EXCHANGE_LIFETIME, 247 s with the timer of RFC 7252.
#[test]
fn a_window_cannot_outrun_its_message_ids() {
    let fast = |seconds: u32| {
        let text = alone("\"rfc7252\"", 64, &format!("{seconds} s"), "1 MB").replace("300 kbit/s", "100 Mbit/s");
        try_run(&text.replace("120 ms", "1 ms"), 1).unwrap().flows[0].completed
    };
    assert_eq!(fast(240), 65_536, "all of them, once, within the first seconds");
    assert_eq!(fast(265), 2 * 65_536, "and once more when the first may be used again");
}

/// The same sender with non-confirmable requests. Answers are confirmations of nobody.
fn plain(controller: &str, nstart: u32, seconds: &str, queue: &str) -> String {
    alone(controller, nstart, seconds, queue).replace("workload =", "confirmable = false\nworkload =")
}

#[test]
fn tfrc_fills_its_path_and_lives_with_its_losses() {
    // A queue of a quarter of a second at the path's rate.
    let text = plain("\"tfrc-non\"", 256, "600 s", "10 kB").replace("[run]", "[run]\nwarm_up = \"100 s\"");
    let outcome = try_run(&text, 1).unwrap();
    let flow = &outcome.flows[0];
    let capacity = 300e3 / 8.0 / REQUEST as f64;
    let rate = f64::from(flow.completed) / 500.0;
    assert!(rate <= capacity && rate >= 0.8 * capacity, "{rate} messages a second of {capacity}");
    assert_eq!(flow.retransmissions, 0, "nobody asks for a copy");
    let lost = f64::from(flow.transmissions - flow.completed) / f64::from(flow.transmissions);
    assert!(lost > 0.0 && lost < 0.05, "{lost} of all messages are lost");
}

/// draft-ietf-core-cocoa-03 §5: at most one non-confirmable message in each timeout, and two of any sixteen confirmable.
#[test]
fn cocoa_and_fasor_space_non_confirmable_messages_by_their_timeouts() {
    for preset in ["cocoa-03", "fasor"] {
        let outcome = try_run(&plain(&format!("\"{preset}\""), 256, "200 s", "1 MB"), 1).unwrap();
        let rate = f64::from(outcome.flows[0].completed) / 200.0;
        // No timeout is shorter than the round trip, and each eighth message need not wait.
        assert!(rate <= 8.0 / 7.0 / round_trip() + 0.1, "{preset}: {rate} messages a second");
        assert!(rate >= 0.5 / round_trip(), "{preset}: {rate} messages a second");
    }
}

#[test]
fn bbr_fills_its_path_and_queues_less_than_one_product_of_bandwidth_and_delay() {
    let text = alone("\"bbr-con\"", 256, "300 s", "1 MB").replace("[run]", "[run]\nwarm_up = \"20 s\"");
    let outcome = try_run(&text, 1).unwrap();
    let (capacity, rtt) = (300e3 / 8.0 / REQUEST as f64, round_trip());
    let rate = f64::from(outcome.flows[0].completed) / 280.0;
    // Every ten seconds four messages and no more are under way for a fifth of a second and a round trip.
    let idle = (0.2 + rtt) * (1.0 - 4.0 / (capacity * rtt)) / 10.0;
    assert!(rate <= capacity && rate >= capacity * (0.99 - idle), "{rate} messages a second of {capacity}");
    let spent = outcome.flows[0].rtt_first_mean_us.unwrap() / 1e6;
    assert!(spent >= rtt && spent < 2.0 * rtt, "{spent} s in the system, {rtt} s without a queue");
    assert_eq!(outcome.flows[0].retransmissions, 0);
}

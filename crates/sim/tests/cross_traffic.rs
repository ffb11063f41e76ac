//! Packets of others beside CoAP.

use millpond_sim::{Options, Outcome, Scenario, TraceKind, run};

const PATH: &str = "[path.uplink]\nrate = \"100 kbit/s\"\ndelay = \"50 ms\"\nqueue = \"100 kB\"\n\
                    [path.downlink]\nrate = \"100 kbit/s\"\ndelay = \"50 ms\"\nqueue = \"20 kB\"\n";
const COAP: &str =
    "[[clients]]\ncount = 1\ncontroller = \"rfc7252\"\nworkload = { kind = \"poisson\", interval = \"1 s\" }\n";

fn scenario(text: &str) -> Result<Scenario, String> {
    Scenario::from_toml(text, "test.toml").map_err(|error| error.to_string())
}

fn go_on(path: &str, others: &str, time: &str) -> Outcome {
    let text = format!("{path}{COAP}{others}\n[run]\nfor = \"{time}\"\n");
    let options = Options { traces: vec![TraceKind::Packets, TraceKind::Share], capture: true, ..Options::default() };
    run(&scenario(&text).unwrap(), 1, &options, || false).unwrap()
}

fn go(others: &str, time: &str) -> Outcome {
    go_on(PATH, others, time)
}

fn video(keys: &str) -> String {
    format!(
        "[[cross_traffic]]\nname = \"video\"\nrate = \"40 kbit/s\"\npacket = \"500 B\"\ndirection = \"down\"\n{keys}\n"
    )
}

#[test]
fn a_constant_rate_is_kept_between_start_and_stop() {
    let outcome = go(&video("start = \"10 s\"\nstop = \"20 s\""), "60 s");
    let row = &outcome.cross_traffic[0];
    // A packet each 100 ms, the first at once.
    assert_eq!((row.sent_packets, row.sent_bytes), (100, 50_000));
    assert_eq!((row.arrived_packets, row.dropped_queue_packets, row.dropped_radio_packets), (100, 0, 0));
    // Alone on an idle link each takes 40 ms to send and 50 ms to arrive.
    assert!(row.delay_us >= 100 * 90_000 && row.delay_us < 100 * 98_000, "{}", row.delay_us);
    let three = go(&video("count = 3\nstop = \"10 s\""), "60 s");
    assert_eq!(three.cross_traffic[0].sent_packets, 300);
}

#[test]
fn links_count_what_is_of_clients_alone_and_wait_for_all() {
    let (quiet, beside) = (go("", "600 s"), go(&video(""), "600 s"));
    assert_eq!(quiet.cross_traffic, []);
    let counts = |outcome: &Outcome| {
        outcome.links.iter().map(|row| (row.offered_packets, row.delivered_bytes, row.useful_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(counts(&quiet), counts(&beside));
    assert!(beside.links[1].busy_us > quiet.links[1].busy_us + 200_000_000);
    assert!(beside.links[1].queue_mean_bytes > quiet.links[1].queue_mean_bytes + 100.0);
    assert_eq!(quiet.packets.len(), beside.packets.len(), "traces leave them out");
    // A response finds the link busy for 40 % of the time, and then waits for 20 ms on average.
    let mean = |outcome: &Outcome| outcome.flows[0].rtt_true_mean_us.unwrap();
    let waits = mean(&beside) - mean(&quiet);
    assert!((waits - 8_000.0).abs() < 1_500.0, "{waits} us");
}

/// A queue of D/D/1 that is overloaded twice drops every second packet.
#[test]
fn an_overload_fills_the_queue_and_is_dropped() {
    let outcome = go(&video("rate = \"200 kbit/s\"").replacen("rate = \"40 kbit/s\"\n", "", 1), "100 s");
    let row = &outcome.cross_traffic[0];
    let lost = row.dropped_queue_packets as f64 / row.sent_packets as f64;
    assert!((lost - 0.5).abs() < 0.02, "{lost}");
    assert!(outcome.links[1].queue_mean_bytes > 17_000.0);
    assert!(outcome.links[1].dropped_queue_packets > 0, "responses find it full too");
}

/// Senders that are on for an exponential or a Pareto time send for the share of the time that the means say.
#[test]
fn on_and_off_the_mean_rate_is_the_rate_times_the_share() {
    let hour = "5 h";
    let exponential =
        "on = { kind = \"exponential\", mean = \"1 s\" }\noff = { kind = \"exponential\", mean = \"3 s\" }";
    let row = go(
        &video(&format!("count = 4\nrate = \"8 kbit/s\"\n{exponential}")).replacen("rate = \"40 kbit/s\"\n", "", 1),
        hour,
    );
    let mean = row.cross_traffic[0].sent_bytes as f64 * 8.0 / 18_000.0;
    assert!((mean / (4.0 * 8_000.0 * 0.25) - 1.0).abs() < 0.03, "{mean} bit/s");
    // Of a Pareto time with α = 1.5 from 1 s to at most 100 s the mean is 1 + ∫ x^-1.5 = 3 - 2/√100 s.
    let pareto = "on = { kind = \"pareto\", alpha = 1.5, from = \"1 s\", to = \"100 s\" }\noff = \"7.2 s\"";
    let row = go(
        &video(&format!("count = 4\nrate = \"8 kbit/s\"\n{pareto}")).replacen("rate = \"40 kbit/s\"\n", "", 1),
        hour,
    );
    let mean = row.cross_traffic[0].sent_bytes as f64 * 8.0 / 18_000.0;
    assert!((mean / (4.0 * 8_000.0 * 2.8 / 10.0) - 1.0).abs() < 0.05, "{mean} bit/s");
}

#[test]
fn they_cross_links_of_a_network_by_name() {
    let link =
        |name: &str| format!("[network.links.{name}]\nrate = \"100 kbit/s\"\ndelay = \"10 ms\"\nqueue = \"5 kB\"\n");
    let network = format!("[network]\nup = [\"a\", \"b\"]\ndown = [\"b\", \"a\"]\n{}{}", link("a"), link("b"));
    let others =
        |keys: &str| format!("[[cross_traffic]]\nname = \"x\"\nrate = \"10 kbit/s\"\npacket = \"125 B\"\n{keys}\n");
    let outcome = go_on(&network, &others("route = [\"a\"]"), "100 s");
    let row = &outcome.cross_traffic[0];
    assert_eq!(row.sent_packets, 1_001, "at 0 s and at 100 s too");
    assert!(row.arrived_packets >= 999);
    let both = go_on(&network, &others("direction = \"down\""), "100 s");
    assert!(both.cross_traffic[0].delay_us > 2 * 19_000 * 999, "over both links: {:?}", both.cross_traffic[0]);
    let busy = |outcome: &Outcome, place: usize| outcome.links[place].busy_us;
    assert!(busy(&outcome, 0) > 10_000_000 && busy(&outcome, 1) < 5_000_000 && busy(&both, 1) > 10_000_000);
}

#[test]
fn what_cannot_be_sent_is_one_line() {
    let refused =
        |keys: &str| scenario(&format!("{PATH}{COAP}[[cross_traffic]]\n{keys}\n[run]\nfor = \"1 s\"")).unwrap_err();
    let base = "name = \"x\"\nrate = \"8 kbit/s\"\npacket = \"100 B\"\n";
    for (keys, told) in [
        (base.to_owned(), "cross_traffic[0].direction: missing key: write \"up\" or \"down\""),
        (format!("{base}route = [\"uplink\"]"), "cross_traffic[0].route: a [path] is the one route of all"),
        (format!("{base}direction = \"up\"\ncount = 0"), "cross_traffic[0].count: 0 senders send nothing"),
        (format!("{base}direction = \"up\"\nstop = \"0 s\""), "cross_traffic[0].stop: it ends before it begins"),
        (format!("{base}direction = \"up\"\non = \"1 s\""), "cross_traffic[0].off: missing key"),
        (format!("{base}direction = \"up\"\non = \"0 s\"\noff = \"1 s\""), "cross_traffic[0].on: 0 s is too short"),
        (
            format!(
                "{base}direction = \"up\"\non = {{ kind = \"pareto\", alpha = 0.0, from = \"1 s\", to = \"2 s\" }}\noff = \"1 s\""
            ),
            "cross_traffic[0].on: alpha = 0 is out of range",
        ),
        (base.replace("100 B", "27 B") + "direction = \"up\"", "cross_traffic[0].packet: 27 B is no length"),
        (base.replace("100 B", "21 kB") + "direction = \"down\"", "cross_traffic[0].packet: the queue of `downlink`"),
        (base.replace("8 kbit", "9000 Mbit") + "direction = \"up\"", "cross_traffic[0].rate:"),
    ] {
        let error = refused(&keys);
        assert!(error.starts_with(&format!("test.toml: {told}")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

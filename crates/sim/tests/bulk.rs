//! 102,400 bytes in paced bursts over the cell of "Is CoAP Congestion Safe?" (ANRW 2018), beside TCP and beside sensors.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use millpond_sim::{Options, Scenario, run};

/// Losses of a fifth of the time each way, as in the study tcp20 ("high").
const HIGH: &str =
    r#"loss = { kind = "markov", good_loss = 0.02, bad_loss = 0.8, good_dwell = "400 ms", bad_dwell = "100 ms" }"#;
const TCP: &str = r#"transport = { kind = "tcp", congestion = "new-reno", mss = "SIZE" }"#;
const PLAIN: &str = r#"controller = "rfc7252"
    max_retransmit = 20
    transfer = { kind = "bursts", size = "SIZE" }"#;
const PACED: &str = r#"controller = "rfc7252"
    max_retransmit = 20
    transfer = { kind = "bursts", size = "SIZE", paced = true }"#;
/// Fifty sensors that the server asks fifty times each, SENSORS.
const SENSORS: &str = r#"[[clients]]
    count = 50
    token_length = 2
    controller = "rfc7252"
    workload = "none"
    start_spread = "10 s"
    commands = { workload = SENSORS, request_payload = "60 B", response_payload = "20 B" }
"#;

fn cell(loss: &str, groups: &str) -> Scenario {
    let way = |name, rate, delay| {
        format!("[path.{name}]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"14100 B\"\n{loss}\n")
    };
    let path = way("uplink", "60 kbit/s", "215 ms") + &way("downlink", "30 kbit/s", "415 ms");
    let server = "[server]\ncontroller = \"rfc7252\"\npayload = \"102400 B\"\n";
    let server = if groups.contains("commands") { server } else { "[server]\npayload = \"102400 B\"\n" };
    Scenario::from_toml(&format!("{groups}\n{server}[path]\nheader = \"28 B\"\n{path}"), "test").unwrap()
}

fn one(kind: &str, size: u32) -> String {
    format!("[[clients]]\ncount = 1\nexchanges = 1\n{}\n", kind.replace("SIZE", &format!("{size} B")))
}

/// How long the flows of the last group took, in seconds and in order, and how many of them did not end well.
fn times(scenario: &Scenario, seeds: u64) -> (Vec<f64>, usize) {
    let (mut times, mut failed) = (Vec::new(), 0);
    for seed in 1..=seeds {
        let outcome = run(scenario, seed, &Options::default(), || false).unwrap();
        let last = outcome.flows.iter().map(|flow| flow.group).max().unwrap();
        for flow in outcome.flows.iter().filter(|flow| flow.group == last) {
            match flow.fct_us.filter(|_| flow.requests_failed == 0) {
                Some(time) => times.push(time as f64 / 1e6),
                None => failed += 1,
            }
        }
    }
    times.sort_by(f64::total_cmp);
    (times, failed)
}

fn median(scenario: &Scenario, seeds: u64) -> f64 {
    let (times, failed) = times(scenario, seeds);
    assert_eq!(failed, 0);
    times[times.len() / 2]
}

/// Without losses the link is busy from the first set on: 400 blocks of 301 bytes take 32.1 s, and TCP overflows the queue.
#[test]
fn paced_bursts_fill_the_link() {
    let paced = median(&cell("", &one(PACED, 256)), 1);
    assert!((33.0..36.0).contains(&paced), "{paced}");
    assert!(paced < median(&cell("", &one(TCP, 256)), 1));
    assert!(paced * 1.5 < median(&cell("", &one(PLAIN, 256)), 1));
}

/// Where a fifth is lost each way they need less than half of TCP's time.
#[test]
fn paced_bursts_stand_losses() {
    let (paced, tcp) = (median(&cell(HIGH, &one(PACED, 256)), 9), median(&cell(HIGH, &one(TCP, 256)), 9));
    assert!(paced * 2.0 < tcp, "{paced} s, TCP {tcp} s");
}

/// Sensors that are asked every ten seconds are done as soon as without, within a hundredth or two.
#[test]
fn sensors_hardly_feel_a_body_in_paced_bursts() {
    let sensors = SENSORS.replace("SENSORS", r#"{ kind = "continuous", think = "10 s" }"#);
    let alone = median(&cell("", &sensors), 1);
    let beside = median(&cell("", &(one(PACED, 128) + &sensors)), 1);
    assert!(beside < alone * 1.02, "{alone} s alone, {beside} s beside a body");
}

#[test]
#[ignore = "prints the figures of docs/reports/bursts.md"]
fn figures_of_a_body_on_the_cell() {
    for size in [128, 256, 1_024] {
        for (name, loss) in [("none", ""), ("high", HIGH)] {
            for (what, kind) in [("TCP", TCP), ("bursts", PLAIN), ("paced", PACED)] {
                let (times, failed) = times(&cell(loss, &one(kind, size)), 100);
                let at = |share: usize| times[(times.len() - 1) * share / 100];
                let (middle, many, most) = (at(50), at(95), at(100));
                println!("{size} B, losses {name}, {what}: {middle:.1} / {many:.1} / {most:.1} s, {failed} failed");
            }
        }
    }
    for (name, workload) in
        [("in a row", r#""continuous""#), ("10 s apart", r#"{ kind = "continuous", think = "10 s" }"#)]
    {
        let sensors = SENSORS.replace("SENSORS", workload);
        let alone = times(&cell("", &sensors), 5).0;
        let alone = alone[alone.len() / 2];
        for size in [128, 256, 1_024] {
            for (what, kind) in [("TCP", TCP), ("bursts", PLAIN), ("paced", PACED)] {
                let (times, failed) = times(&cell("", &(one(kind, size) + &sensors)), 5);
                let beside = times[times.len() / 2];
                let more = 100.0 * (beside / alone - 1.0);
                println!(
                    "sensors {name} {alone:.1} s, beside {what} of {size} B {beside:.1} s ({more:+.1} %), {failed} failed"
                );
            }
        }
    }
}

/// `scenarios/bulk.toml`: firmware in paced bursts beside sensors, where a sixth of all packets is lost, and the two other ways that it names.
#[test]
fn the_scenario_of_a_body_beside_sensors_ends_well() {
    let text = include_str!("../../../python/millpond/scenarios/bulk.toml");
    let firmware = |text: &str| -> Vec<f64> {
        let scenario = Scenario::from_toml(text, "bulk.toml").unwrap();
        let run = |seed| run(&scenario, seed, &Options::default(), || false).unwrap();
        let took = |seed| run(seed).flows.iter().find(|flow| flow.group == 0).and_then(|flow| flow.fct_us).unwrap();
        (1..=5).map(|seed| took(seed) as f64 / 1e6).collect()
    };
    let bursts = r#"transfer = { kind = "bursts", size = "256 B", paced = true }"#;
    let over_tcp = text.replace(bursts, r#"transport = "tcp""#).replace("max_retransmit = 20\n", "").replacen(
        "controller = \"rfc7252\"\n",
        "",
        1,
    );
    let (paced, plain, tcp) = (firmware(text), firmware(&text.replace(", paced = true", "")), firmware(&over_tcp));
    for ((paced, plain), tcp) in paced.iter().zip(&plain).zip(&tcp) {
        assert!(paced < plain && paced * 2.0 < *tcp, "{paced} s, bursts {plain} s, TCP {tcp} s");
    }
}

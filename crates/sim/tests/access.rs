//! Access to a cell in a run: what the closed forms say of it, what tables say, and what is refused.

use millpond_sim::{Options, Outcome, Scenario, run};

fn scenario(access: &str, clients: &str) -> Result<Scenario, String> {
    let text = format!(
        "[path]\nprofile = \"nbiot-anrw18\"\naccess = {{ {access} }}\n[[clients]]\ncontroller = \"rfc7252\"\n{clients}"
    );
    Scenario::from_toml(&text, "test.toml").map_err(|error| error.to_string())
}

fn go(access: &str, clients: &str, seed: u64) -> Outcome {
    run(&scenario(access, clients).unwrap(), seed, &Options::default(), || false).unwrap()
}

const CELL: &str = "inactivity = \"20 s\", set_up = \"100 ms\", preambles = 48, every = \"640 ms\", \
                    response = \"60 ms\", backoff = \"2 s\"";

#[test]
fn one_device_connects_once_and_then_goes_on() {
    let outcome = go(CELL, "count = 1\nexchanges = 50", 1);
    let plain = go("duty_cycle = 1", "count = 1\nexchanges = 50", 1);
    let [row] = &outcome.access[..] else { panic!("one row") };
    assert_eq!((row.preambles, row.connections, row.dropped_packets, row.held_packets), (1, 1, 0, 0));
    assert_eq!(row.passed_packets, outcome.links.iter().map(|link| link.offered_packets).sum::<u64>());
    // It begins at 0: the opportunity is at 640 ms, the answer 60 ms later, and 100 ms more is the set-up.
    let took = |outcome: &Outcome| outcome.flows[0].fct_us.unwrap();
    assert_eq!(took(&outcome) - took(&plain), 800_000);
}

#[test]
fn devices_that_begin_together_collide_and_all_connect() {
    let (mut collided, runs, n) = (0, 40, 100_u64);
    for seed in 0..runs {
        let outcome = go(&format!("{CELL}, attempts = 10"), "count = 100\nexchanges = 1", seed);
        assert_eq!((outcome.summary.answered, outcome.access[0].given_up), (n, 0));
        assert_eq!(outcome.access[0].connections, n);
        collided += outcome.access[0].preambles - outcome.access[0].preambles_unanswered - n;
    }
    // At the first opportunity alone, on the average.
    let first = n as f64 * (1.0 - (1.0 - 1.0 / 48.0_f64).powi(n as i32 - 1));
    assert!(collided as f64 / runs as f64 > first - 4.0 * (2.0 * first / runs as f64).sqrt(), "{collided}");
}

#[test]
fn a_sender_with_a_duty_cycle_sends_its_share_of_the_rate() {
    // Without an answer nothing is sent twice: NON requests, always one waiting.
    let clients = "count = 1\nconfirmable = false\nnstart = 4\ntoken_length = 2\n\
                   workload = { kind = \"periodic\", period = \"100 ms\" }\n[run]\nfor = \"2 h\"";
    let outcome = go("duty_cycle = \"1 %\"", clients, 1);
    let up = &outcome.links[0];
    // 1 % of 60 kbit/s is 75 B/s.
    let rate = up.delivered_bytes as f64 / 7_200.0;
    assert!((rate - 75.0).abs() < 0.1, "{rate} B/s");
    assert!((up.busy_us as f64 / 7.2e9 - 0.01).abs() < 0.0001);
}

#[test]
fn what_no_device_can_do_is_one_line() {
    let refused = |access: &str, clients: &str| scenario(access, clients).unwrap_err();
    // 0.0001 % of an hour at 60 kbit/s are 27 B.
    let told = refused("duty_cycle = \"0.0001 %\"", "count = 1");
    assert!(told.starts_with("test.toml: path.access.duty_cycle: ") && told.contains("never goes"), "{told}");
    assert!(scenario("duty_cycle = \"1 %\"", "count = 1\nrequest_payload = \"14000 B\"").is_ok(), "36 s hold 270 kB");
    let told = refused("preambles = 12", "count = 1");
    assert!(told.contains("path.access.preambles") && told.contains("write `inactivity`"), "{told}");
    let lines = [told.lines().count(), refused("paging = 3", "count = 1").lines().count()];
    assert_eq!(lines, [1, 1]);
}

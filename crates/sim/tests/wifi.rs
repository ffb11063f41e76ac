//! A Wi-Fi hop in front of a path.

use millpond_sim::{Options, Outcome, Scenario, run};

const LINKS: &str = "uplink = { rate = \"1 Gbit/s\", delay = \"10 ms\", queue = \"1 MB\" }\n\
                     downlink = { rate = \"1 Gbit/s\", delay = \"10 ms\", queue = \"1 MB\" }\n";

fn scenario(path: &str, rest: &str) -> Result<Scenario, String> {
    Scenario::from_toml(&format!("[path]\n{path}\n{rest}"), "test.toml").map_err(|error| error.to_string())
}

fn go(wifi: &str, rest: &str) -> Outcome {
    let options = Options { capture: true, ..Options::default() };
    run(&scenario(&format!("{LINKS}{wifi}"), rest).unwrap(), 1, &options, || false).unwrap()
}

fn clients(count: u32, keys: &str) -> String {
    format!("[[clients]]\ncount = {count}\ncontroller = \"rfc7252\"\n{keys}\n")
}

/// Without others each packet takes the time of its frame and nothing else: a response comes long after the acknowledgement
/// of its request, and the backoff after it.
#[test]
fn a_client_alone_waits_for_its_frames_only() {
    // Frames of 802.11b at 11 Mbit/s: 192 us, then 36 B around 38 B, or around 94 B.
    let frame = |bytes: u64| 192 + (8 * (36 + bytes)).div_ceil(11);
    let beside =
        |wifi: &str| go(wifi, &clients(1, "workload = { kind = \"periodic\", period = \"1 s\", requests = 20 }"));
    let (plain, wifi) = (beside(""), beside("wifi = \"802.11b\""));
    let mean = |outcome: &Outcome| outcome.flows[0].rtt_true_mean_us.unwrap();
    assert_eq!(mean(&wifi) - mean(&plain), (frame(38) + frame(94)) as f64);
    let row = &wifi.wifi[0];
    assert_eq!((row.passed_packets, row.frames, row.frames_collided, row.held_packets), (40, 40, 0, 0));
    assert_eq!(row.busy_us, 20 * (frame(38) + frame(94) + 2 * 248), "with acknowledgements at 2 Mbit/s");
    assert_eq!(plain.wifi, []);
}

/// IEEE 802.11-2016, clause 17.3.2 and table 19-27: a frame of 1500 B at 54 Mbit/s has 57 symbols after 20 us, and 6 us of
/// silence follow.
#[test]
fn frames_last_whole_symbols() {
    let busy = |wifi: &str| {
        let outcome = go(wifi, &clients(1, "exchanges = 1\nresponse_payload = \"1466 B\""));
        outcome.wifi[0].busy_us
    };
    let symbols = |bits: u64, per_symbol: u64| 4 * (22 + bits).div_ceil(per_symbol);
    let (request, response) = (8 * (36 + 38), 8 * (36 + 1_500));
    let ack = 26 + symbols(8 * 14, 96);
    assert_eq!(busy("wifi = \"802.11g\""), 2 * 26 + symbols(request, 216) + symbols(response, 216) + 2 * ack);
    let n = 2 * 42 + symbols(request + 16, 260) + symbols(response + 16, 260) + 2 * ack;
    assert_eq!(busy("wifi = \"802.11n\""), n);
}

#[test]
fn clients_that_start_together_collide_and_all_are_answered() {
    for (wifi, seed_collides) in [("802.11b", true), ("802.11n", true)] {
        let outcome = go(&format!("wifi = \"{wifi}\""), &clients(200, "exchanges = 5\nresponse_payload = \"900 B\""));
        let row = &outcome.wifi[0];
        assert_eq!(outcome.summary.answered, 1_000);
        assert_eq!(row.frames_collided > 100, seed_collides, "{row:?}");
        assert!(row.busy_us < outcome.summary.simulated_us);
        assert!(row.passed_packets + row.given_up_packets + row.refused_packets >= 2_000, "{row:?}");
    }
    let little = go("wifi = { standard = \"802.11b\", queue = 1, retries = 0 }", &clients(50, ""));
    assert!(little.wifi[0].given_up_packets > 0 && little.wifi[0].refused_packets > 0, "{:?}", little.wifi);
    assert_eq!(little.summary.unfinished, 0);
}

/// Links of a network are what those of a path are, whatever their names.
#[test]
fn it_is_in_front_of_a_network_too() {
    let rest = clients(50, "exchanges = 5\nresponse_payload = \"900 B\"");
    let link = "{ rate = \"1 Gbit/s\", delay = \"5 ms\", queue = \"1 MB\" }";
    let links = ["a-down", "b-down", "c-up", "d-up"].map(|name| format!("links.{name} = {link}\n")).concat();
    let network = |wifi: &str, rest: &str| {
        let routes = "up = [\"c-up\", \"d-up\"]\ndown = [\"b-down\", \"a-down\"]";
        Scenario::from_toml(&format!("[network]\n{wifi}\n{routes}\n{links}{rest}"), "test.toml")
    };
    let (path, other) = (go("wifi = \"802.11b\"", &rest), network("wifi = \"802.11b\"", &rest).unwrap());
    let other = run(&other, 1, &Options::default(), || false).unwrap();
    assert_eq!((&path.wifi[0].passed_packets, other.summary.answered), (&other.wifi[0].passed_packets, 250));
    assert!(other.wifi[0].frames_collided > 10, "{:?}", other.wifi);
    let proxy =
        "[[proxies]]\nname = \"p\"\ncontroller = \"rfc7252\"\nroute = { up = [\"d-up\"], down = [\"a-down\"] }\n";
    for (wifi, rest, told) in [
        ("wifi = { standard = \"802.11g\", queue = 0 }", rest.clone(), "network.wifi.queue: 0 is out of range"),
        ("wifi = \"802.11g\"", format!("{rest}{proxy}"), "network.wifi: proxies are no stations of it"),
    ] {
        let error = network(wifi, &rest).unwrap_err().to_string();
        assert!(error.contains(told) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn what_is_no_hop_is_one_line() {
    let refused = |wifi: &str| scenario(&format!("{LINKS}{wifi}"), &clients(1, "")).unwrap_err();
    for (wifi, told) in [
        ("wifi = \"802.11ax\"", "unknown standard `802.11ax`"),
        ("wifi = { standard = \"802.11g\", rate = \"11 Mbit/s\" }", "path.wifi.rate: 11 Mbit/s is no rate of it"),
        ("wifi = { standard = \"802.11g\", queue = 0 }", "path.wifi.queue: 0 is out of range"),
        ("wifi = \"802.11g\"\naccess = { duty_cycle = \"1 %\" }", "path.wifi: there is an `access` already"),
    ] {
        let error = refused(wifi);
        assert!(error.contains(told) && error.lines().count() == 1, "{error}");
    }
}

//! Loads that rise and fall over time, against the integral of their rate.

mod books;

use books::{balances, delays, sum};
use millpond_sim::{Options, Outcome, Scenario, TraceKind, run};

/// A link on which nothing waits, and one of 30 kbit/s upwards.
const EMPTY: &str = "[path.uplink]\nrate = \"100 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"1 MB\"\n\
                     [path.downlink]\nrate = \"100 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"1 MB\"\n";
const THIRTY: &str = "[path.uplink]\nrate = \"30 kbit/s\"\ndelay = \"0 ms\"\nqueue = \"100 MB\"\n\
                      [path.downlink]\nrate = \"100 Mbit/s\"\ndelay = \"0 ms\"\nqueue = \"1 MB\"\n";

fn read(path: &str, group: &str) -> Result<Scenario, String> {
    Scenario::from_toml(&format!("{path}\n[[clients]]\ncontroller = \"rfc7252\"\n{group}"), "test")
        .map_err(|error| error.to_string())
}

fn go(path: &str, group: &str) -> Outcome {
    let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
    run(&read(path, group).unwrap_or_else(|error| panic!("{error}")), 1, &options, || false).unwrap()
}

/// When requests left, in seconds.
fn arrivals(outcome: &Outcome) -> Vec<f64> {
    let sent = outcome.packets.iter().filter(|packet| packet.link == "uplink" && packet.event == "enq");
    let mut times: Vec<f64> = sent.map(|packet| packet.t_us as f64 / 1e6).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// What a rate from 0 to 2 a second and back, 100 s each way after 50 s of standing, has summed up to.
fn trapezium(t: f64) -> f64 {
    match t {
        t if t < 100.0 => t * t / 100.0,
        t if t < 150.0 => 100.0 + 2.0 * (t - 100.0),
        t if t < 250.0 => 300.0 - (250.0 - t).powi(2) / 100.0,
        _ => 300.0,
    }
}

const TRAPEZIUM: &str =
    "kind = \"ramp\", from = \"0 /s\", to = \"2 /s\", over = \"100 s\", hold = \"50 s\", back = \"100 s\"";

/// The n-th arrival is where the integral of the rate is n, but for one share of an arrival that is drawn once.
#[test]
fn even_arrivals_follow_the_integral_of_the_rate() {
    let outcome = go(EMPTY, &format!("count = 1\nnstart = 1\nworkload = {{ {TRAPEZIUM} }}\n[run]\nfor = \"400 s\""));
    balances(&outcome);
    let times = arrivals(&outcome);
    assert_eq!(times.len(), 300, "200 under the slopes, 100 between them, and none once the rate is nought");
    let first = trapezium(times[0]);
    assert!((0.0..1.0).contains(&first), "{first}");
    for (n, &at) in times.iter().enumerate() {
        // A microsecond of rounding at two a second, summed up over all arrivals before.
        let error = trapezium(at) - (first + n as f64);
        assert!(error.abs() < 2e-6 * (n as f64 + 1.0), "arrival {n} at {at} s is off by {error} of an arrival");
    }
    assert_eq!((outcome.summary.unfinished, outcome.summary.never_finished), (0, 0));
}

/// Arrivals in each 25 s are Poisson with the integral over them as mean and variance.
#[test]
fn independent_arrivals_have_the_rate_as_mean_and_variance() {
    let clients = 400.0;
    let group = format!("count = 400\nworkload = {{ {TRAPEZIUM}, spacing = \"poisson\" }}\n[run]\nfor = \"300 s\"");
    let outcome = go(EMPTY, &group);
    balances(&outcome);
    let times = arrivals(&outcome);
    for bin in 0..12 {
        let (from, to) = (f64::from(bin) * 25.0, f64::from(bin + 1) * 25.0);
        let counted = times.iter().filter(|&&at| (from..to).contains(&at)).count() as f64;
        let mean = clients * (trapezium(to) - trapezium(from));
        assert!((counted - mean).abs() <= 4.0 * mean.sqrt(), "{from} s to {to} s: {counted} instead of {mean}");
    }
    // The variance of each client's count is 300 as well.
    let square = |arrivals: u32| (f64::from(arrivals) - 300.0).powi(2);
    let variance = outcome.flows.iter().map(|row| square(row.arrivals)).sum::<f64>() / clients;
    assert!((variance / 300.0 - 1.0).abs() < 4.0 * (2.0 / clients).sqrt(), "{variance}");
}

/// A fluid queue: while arrivals at 2 + t/50 a second exceed the service of μ, the queue grows with their integral.
#[test]
fn a_rising_load_fills_a_queue_as_a_fluid_does() {
    // 38 B take 10.133 ms: 98.7 a second. 100 clients rise from 0 to 2 a second each in 100 s: past it at 49.3 s, and by
    // 100 s the queue is the triangle above: (200 - 98.7)² / 2 / 2 a second per second.
    let group = "count = 100\nnstart = 64\ntoken_length = 2\n\
                 workload = { kind = \"ramp\", from = \"0 /s\", to = \"2 /s\", over = \"100 s\", for = \"100 s\" }\n\
                 max_retransmit = 0\n[run]\nfor = \"102 s\"";
    let outcome = go(THIRTY, group);
    balances(&outcome);
    let service: f64 = 40.0 * 8.0 / 30e3;
    let capacity = 1.0 / service;
    let arrivals = f64::from(sum(&outcome, |row| row.arrivals));
    assert!((arrivals - 10_000.0).abs() <= 100.0, "{arrivals}");
    let queue = (200.0 - capacity).powi(2) / 2.0 / 2.0;
    // What had left the link by 100 s is what had come but for the queue.
    let left = outcome.packets.iter().filter(|packet| packet.link == "uplink" && packet.event == "recv");
    let served = left.filter(|packet| packet.t_us < 100_000_000).count() as f64;
    let expected = 10_000.0 - queue;
    assert!((served - expected).abs() < 0.01 * expected, "{served} served instead of {expected}");
    let (count, _) = delays(&outcome, "one_way");
    assert!(count > 0);
}

#[test]
fn a_client_that_restarts_goes_on_where_the_ramp_then_is() {
    let group = format!(
        "count = 1\nworkload = {{ {TRAPEZIUM} }}\n[[timeline]]\nkind = \"restart\"\nat = \"20 s\"\nback = \"60 s\"\n\
         [run]\nfor = \"400 s\""
    );
    let times = arrivals(&go(EMPTY, &group));
    let back = times.iter().copied().find(|&at| at > 20.0).unwrap();
    let after = 300.0 - trapezium(back);
    let left = times.iter().filter(|&&at| at >= back).count() as f64;
    assert!((left - after).abs() <= 1.0, "{left} after {back} s instead of {after}");
    assert!(times.iter().filter(|&&at| at < 20.0).count() <= 4, "{times:?}");
}

#[test]
fn what_is_no_ramp_is_refused_with_the_fix() {
    let refused = |workload: &str| read(EMPTY, &format!("count = 1\nworkload = {workload}\n[run]\nfor = \"1 min\""));
    for (workload, words) in [
        ("\"ramp\"", &["needs rates and a time"][..]),
        ("{ kind = \"ramp\", to = \"2 /s\", over = \"1 s\" }", &["missing key `from`"]),
        ("{ kind = \"ramp\", from = \"0 /s\", to = \"0 /s\", over = \"1 s\" }", &["clients[0].workload.to", "no load"]),
        ("{ kind = \"ramp\", from = \"1 /s\", to = \"2 /s\", over = \"0 s\" }", &["workload.over", "step and no ramp"]),
        ("{ kind = \"ramp\", from = \"1 /s\", to = \"2 /s\", over = \"1 s\", hold = \"1 s\" }", &["add `back`"]),
        ("{ kind = \"ramp\", from = \"-1 /s\", to = \"2 /s\", over = \"1 s\" }", &["`-1 /s` is no rate"]),
        ("{ kind = \"ramp\", from = \"1\", to = \"2 /s\", over = \"1 s\" }", &["`1` is no rate"]),
        ("{ kind = \"ramp\", from = \"NaN /s\", to = \"2 /s\", over = \"1 s\" }", &["`NaN /s` is no rate"]),
        ("{ kind = \"ramp\", from = \"1 /s\", to = \"2 /s\", over = \"1 s\", period = \"1 s\" }", &["has no `period`"]),
        ("{ kind = \"ramp\", from = \"1 /s\", to = \"2 /s\", over = \"1 s\", spacing = \"odd\" }", &["odd", "even"]),
        ("{ kind = \"poisson\", rate = \"0 /s\" }", &["`0 /s` is no rate"]),
    ] {
        let told = refused(workload).unwrap_err();
        assert!(words.iter().all(|word| told.contains(word)) && !told.contains('\n'), "{workload}: {told}");
    }
}

#[test]
fn a_ramp_is_read_as_it_was_written() {
    for spacing in ["", ", hold = \"1 min\", back = \"2 min\", spacing = \"poisson\""] {
        let ramp = format!("{{ kind = \"ramp\", from = \"11.2 /d\", to = \"2 /s\", over = \"10 min\"{spacing} }}");
        let first = read(EMPTY, &format!("count = 2\nworkload = {ramp}\n[run]\nfor = \"1 h\"")).unwrap();
        assert_eq!(Scenario::from_json(&first.to_json(), "again").unwrap(), first);
    }
}

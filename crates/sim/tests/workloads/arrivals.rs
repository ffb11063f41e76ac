//! When requests arrive.

use millpond_sim::{FlowRow, Options, Outcome, Scenario, run};

use crate::{
    EMPTY, NARROW,
    books::{balances, delays, sum},
    go, scenario,
};

#[test]
fn periodic_reports_on_an_empty_link_take_transmission_and_propagation() {
    let outcome = go(
        EMPTY,
        "count = 100\ncontroller = \"rfc7252\"\nworkload = { kind = \"periodic\", period = \"10 min\" }\n\
         [run]\nfor = \"10 h\"",
    );
    balances(&outcome);
    // The first is uniform in the period, so that every client makes 60.
    assert!(outcome.flows.iter().all(|row| row.arrivals == 60 && row.answered == 60), "{:?}", outcome.flows[0]);
    let request = 38.0 * 8.0 / 100.0;
    for (kind, exact) in [("one_way", 10_000.0 + request), ("answer", 20_000.0 + request + 94.0 * 8.0 / 100.0)] {
        let (count, mean) = delays(&outcome, kind);
        assert_eq!(count, 6_000);
        assert!((0.0..exact / 32.0).contains(&(mean - exact)), "{kind}: {mean} instead of {exact}");
    }
    let (count, mean) = delays(&outcome, "wait");
    assert_eq!((count, mean), (6_000, 0.0));
    // Nothing is without end here but the run: nobody is unfinished.
    assert_eq!((outcome.summary.unfinished, outcome.summary.never_finished), (0, 0));
    assert_eq!(outcome.summary.simulated_us, 36_000_000_000);
}

#[test]
fn poisson_arrivals_are_as_many_as_their_rate_says() {
    let outcome = go(
        EMPTY,
        "count = 100\ncontroller = \"rfc7252\"\nworkload = { kind = \"poisson\", interval = \"10 s\" }\n\
         [run]\nfor = \"1000 s\"",
    );
    balances(&outcome);
    let arrivals = f64::from(sum(&outcome, |row| row.arrivals));
    assert!((arrivals - 10_000.0).abs() < 4.0 * 100.0, "{arrivals} arrivals instead of 10000 ± 100");
    // The variance of a Poisson count is its mean, which is 100 for each client.
    let square = |row: &FlowRow| (f64::from(row.arrivals) - 100.0).powi(2);
    let variance = outcome.flows.iter().map(square).sum::<f64>() / 100.0;
    assert!((variance / 100.0 - 1.0).abs() < 4.0 * (2.0_f64 / 100.0).sqrt(), "{variance}");
}

#[test]
fn a_rate_is_an_interval_written_otherwise() {
    let with = |key: &str| {
        let group = format!(
            "count = 3\ncontroller = \"rfc7252\"\nworkload = {{ kind = \"poisson\", {key} }}\n[run]\nfor = \"1 h\""
        );
        scenario(EMPTY, &group).to_json()
    };
    for (interval, rate) in [("10 s", "0.1 /s"), ("30 s", "2 /min"), ("1 d", "1/d")] {
        assert_eq!(with(&format!("interval = \"{interval}\"")), with(&format!("rate = \"{rate}\"")), "{rate}");
    }
    // 11.2 a day, to the microsecond.
    assert_eq!(with("rate = \"11.2 /d\""), with("interval = \"7714285714 us\""));
}

/// M/D/1: with service time s and load ρ an arrival waits ρ s / (2 (1 - ρ)) on average.
#[test]
fn poisson_arrivals_wait_at_a_busy_link_as_queueing_theory_says() {
    // 38 B take 10.133 ms at 30 kbit/s; 1000 clients with 20.267 s between two make a load of one half.
    let text = r#"
        [path.uplink]
        rate = "30 kbit/s"
        delay = "0 ms"
        queue = "1 MB"
        [path.downlink]
        rate = "100 Mbit/s"
        delay = "0 ms"
        queue = "1 MB"
        [[clients]]
        count = 1000
        controller = "rfc7252"
        workload = { kind = "poisson", interval = "20266667 us" }
        [run]
        for = "2000 s"
        warm_up = "20 s"
    "#;
    let outcome = run(&Scenario::from_toml(text, "test").unwrap(), 1, &Options::default(), || false).unwrap();
    let service = 38.0 * 8.0 / 30e3 * 1e6;
    let waits = outcome.delays.iter().filter(|row| row.kind == "one_way");
    let count: u64 = waits.clone().map(|row| row.count).sum();
    // The middle of a bin of 1/64 of its value or less is what its values are on average.
    let middle = |upper: u64| upper as f64 * (1.0 - 0.75 / 128.0) - service;
    let mean = waits.map(|row| middle(row.upper_us) * row.count as f64).sum::<f64>() / count as f64;
    let exact = 0.5 * service / (2.0 * 0.5);
    // Waits have a variance of λ E[s³] / (3 (1 - ρ)) + mean², and are correlated over a busy period: (1 + ρ) / (1 - ρ) fold.
    let spread = (service * service * 0.5 / (3.0 * 0.5) + exact * exact).sqrt();
    let error = 4.0 * spread * (3.0 / count as f64).sqrt() + 0.005 * (service + exact);
    assert!(count > 95_000, "{count} requests");
    assert!((mean - exact).abs() < error, "{mean} µs instead of {exact} ± {error}");
}

#[test]
fn links_count_what_comes_after_the_warm_up() {
    // A request of 38 B and a response of 94 B every 10 s each, of ten clients together: a burst that the narrow path takes
    // 0.25 s for. The first five bursts are warm-up, and a tenth of the time for which the downlink counts it is busy.
    let group = "count = 10\ncontroller = \"rfc7252\"\nstart_spread = \"0 s\"\n\
                 workload = { kind = \"periodic\", period = \"10 s\", aligned = true }";
    let run_for = |lines: &str| go(NARROW, &format!("{group}\n[run]\nfor = \"99 s\"\n{lines}"));
    let (all, half) = (run_for(""), run_for("warm_up = \"45 s\""));
    let rows = |outcome: &Outcome| -> Vec<_> {
        let row =
            |row: &millpond_sim::LinkRow| (row.offered_packets, row.delivered_bytes, row.useful_bytes, row.busy_us);
        outcome.links.iter().map(row).collect()
    };
    let (bursts, counted) = (all.flows[0].arrivals, half.flows[0].arrivals);
    assert!(bursts > counted && counted > 0, "{bursts} bursts, {counted} of them counted");
    let share = |(packets, carried, useful, busy): (u64, u64, u64, u64)| {
        let of = |count: u64| count * u64::from(counted) / u64::from(bursts);
        (of(packets), of(carried), of(useful), of(busy))
    };
    assert_eq!(rows(&half), rows(&all).into_iter().map(share).collect::<Vec<_>>());
    // The queue is as long in each burst, and empty for as large a part of the time.
    for (all, half) in all.links.iter().zip(&half.links) {
        assert_eq!(all.queue_max_bytes, half.queue_max_bytes);
        let bursts_a_second = |arrivals: u32, seconds: f64| f64::from(arrivals) / seconds;
        let ratio = bursts_a_second(counted, 54.0) / bursts_a_second(bursts, 99.0);
        assert!((half.queue_mean_bytes / all.queue_mean_bytes - ratio).abs() < 1e-6, "{ratio}");
    }
    // Events are those of the whole run: what was done, not what counts.
    assert_eq!(all.summary.events, half.summary.events);
}

/// 3GPP TR 37.868, traffic model 2: 400 clients over 10 s peak at 83 arrivals a second.
#[test]
fn arrivals_after_an_event_peak_where_the_source_says() {
    let group = "count = 40000\ncontroller = \"rfc7252\"\n\
                 workload = { kind = \"after-event\", arrival = { kind = \"beta\", over = \"10 s\", alpha = 3, beta = 4 } }";
    let outcome = go(EMPTY, group);
    balances(&outcome);
    assert_eq!((outcome.summary.arrivals, outcome.summary.answered), (40_000, 40_000));
    let within = |from: u64, to: u64| {
        let starts = outcome.flows.iter().map(|row| row.first_send_us);
        starts.filter(|start| (from..to).contains(start)).count() as f64 / 100.0
    };
    // 400 clients are a hundredth of these. Over the second around the mode the density is 0.2064 /s on average.
    let peak = within(3_500_000, 4_500_000);
    assert!((peak - 82.6).abs() < 4.0 * (82.6_f64 / 100.0).sqrt(), "{peak} arrivals a second at the peak");
    assert!(within(0, 500_000) < 1.0 && within(9_500_000, 10_000_001) < 1.0);
    let last = outcome.reported.last().unwrap();
    assert_eq!(
        (last.event, last.answered, last.of, last.clients, last.clients_of),
        (0, 40_000, 40_000, 40_000, 40_000)
    );
    assert!(last.t_us <= 10_021_000 * 33 / 32, "{}", last.t_us);
    assert!(outcome.reported.len() <= 256);
}

#[test]
fn the_clock_aligns_those_who_follow_it() {
    let workload =
        "workload = { kind = \"periodic\", period = \"1 h\", aligned = true, jitter = \"30 s\", requests = 3 }";
    let outcome = go(EMPTY, &format!("count = 50\ncontroller = \"rfc7252\"\nstart_spread = \"50 min\"\n{workload}"));
    balances(&outcome);
    for row in outcome.flows.iter().skip(1) {
        assert!((3_600_000_000..=3_630_000_000).contains(&row.first_send_us) || row.first_send_us <= 30_000_000);
        assert_eq!((row.arrivals, row.answered), (3, 3));
    }
    let starts: std::collections::BTreeSet<_> = outcome.flows.iter().map(|row| row.first_send_us).collect();
    assert!(starts.len() > 40, "each has jitter of its own");
}

/// 3GPP TR 45.820 annex E: 11.2 reports a device and day.
#[test]
fn the_published_mix_makes_its_number_of_reports() {
    let outcome =
        go(EMPTY, "count = 2000\ncontroller = \"rfc7252\"\nworkload = \"tr45820-reporting\"\n[run]\nfor = \"1 d\"");
    balances(&outcome);
    let each = outcome.summary.arrivals as f64 / 2_000.0;
    // Clients have 1, 12, 24 or 48 reports: a standard deviation of 11.
    assert!((each - 11.2).abs() < 4.0 * 11.0 / 2_000_f64.sqrt(), "{each} reports a device");
    let mut counts: Vec<u32> = outcome.flows.iter().map(|row| row.arrivals).collect();
    counts.sort_unstable();
    counts.dedup();
    assert_eq!(counts, [1, 12, 24, 48]);
    // Header 28, CoAP 4, path 6, marker 1, and a payload with a mean of 32.9.
    let bytes = outcome.links[0].delivered_bytes as f64 / outcome.links[0].delivered_packets as f64;
    assert!((bytes - 71.9).abs() < 0.8, "{bytes} B a request");
}

#[test]
fn a_start_may_be_spread_over_days() {
    let outcome = go(EMPTY, "count = 1000\ncontroller = \"rfc7252\"\nexchanges = 1\nstart_spread = \"20 h\"");
    let day = 72_000_000_000.0;
    let mean = outcome.flows.iter().map(|row| row.first_send_us as f64).sum::<f64>() / 1_000.0;
    assert!((mean / day - 0.5).abs() < 4.0 / 12_000_f64.sqrt(), "{mean}");
    assert!(outcome.flows.iter().any(|row| row.first_send_us as f64 > 0.98 * day));
}

#[test]
fn a_period_of_all_together_is_that_of_each_times_their_number() {
    let text = |period: &str| {
        format!(
            "path = \"nbiot-anrw18\"\n[[clients]]\ncount = 8\ncontroller = \"rfc7252\"\n\
             workload = {{ kind = \"periodic\", period = {period} }}\n[run]\nfor = \"1 min\"\n"
        )
    };
    let read = |period| Scenario::from_toml(&text(period), "test");
    let together = read("{ together = \"250 ms\" }").unwrap();
    let flows = |scenario: &Scenario| run(scenario, 1, &Options::default(), || false).unwrap().flows;
    assert_eq!(flows(&together), flows(&read("\"2 s\"").unwrap()));
    // It stays what was written: the period of each follows the number of clients when that changes.
    let half = |scenario: Scenario| {
        Scenario::from_json(&scenario.to_json().replace("\"count\":8", "\"count\":4"), "test").unwrap()
    };
    assert_eq!(flows(&half(together)), flows(&half(read("\"1 s\"").unwrap())));
    let told = read("{ togther = \"250 ms\" }").unwrap_err().to_string();
    assert!(told.contains("did you mean `together`?"), "{told}");
}

//! What clients do over time: closed forms on an empty link, counts, events, and nothing lost from the books.

mod books;

use books::{balances, delays, sum};
use millpond_sim::{FlowRow, Options, Outcome, Scenario, run};

/// A link of 100 Mbit/s and 10 ms each way, on which nothing waits.
const EMPTY: &str = r#"
[path.uplink]
rate = "100 Mbit/s"
delay = "10 ms"
queue = "1 MB"
[path.downlink]
rate = "100 Mbit/s"
delay = "10 ms"
queue = "1 MB"
"#;

/// The path of study anrw18 with a buffer of 2,500 B.
const NARROW: &str = r#"
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "2500 B"
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "2500 B"
"#;

fn scenario(path: &str, group: &str) -> Scenario {
    Scenario::from_toml(&format!("{path}\n[[clients]]\n{group}"), "test").unwrap_or_else(|error| panic!("{error}"))
}

fn go(path: &str, group: &str) -> Outcome {
    run(&scenario(path, group), 1, &Options::default(), || false).unwrap()
}

#[test]
fn periodic_reports_on_an_empty_link_take_transmission_and_propagation() {
    let outcome = go(
        EMPTY,
        "count = 100\ncontroller = \"rfc7252\"\nworkload = { kind = \"periodic\", period = \"10 min\" }\n\
         [run]\nfor = \"10 h\"",
    );
    balances(&outcome);
    // The first is uniform in the period, so that every client makes 60.
    assert!(outcome.flows.iter().all(|row| row.born == 60 && row.answered == 60), "{:?}", outcome.flows[0]);
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
    let born = f64::from(sum(&outcome, |row| row.born));
    assert!((born - 10_000.0).abs() < 4.0 * 100.0, "{born} births instead of 10000 ± 100");
    // The variance of a Poisson count is its mean, which is 100 for each client.
    let square = |row: &FlowRow| (f64::from(row.born) - 100.0).powi(2);
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
    let (bursts, counted) = (all.flows[0].born, half.flows[0].born);
    assert!(bursts > counted && counted > 0, "{bursts} bursts, {counted} of them counted");
    let share = |(packets, carried, useful, busy): (u64, u64, u64, u64)| {
        let of = |count: u64| count * u64::from(counted) / u64::from(bursts);
        (of(packets), of(carried), of(useful), of(busy))
    };
    assert_eq!(rows(&half), rows(&all).into_iter().map(share).collect::<Vec<_>>());
    // The queue is as long in each burst, and empty for as large a part of the time.
    for (all, half) in all.links.iter().zip(&half.links) {
        assert_eq!(all.queue_max_bytes, half.queue_max_bytes);
        let bursts_a_second = |born: u32, seconds: f64| f64::from(born) / seconds;
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
    assert_eq!((outcome.summary.born, outcome.summary.answered), (40_000, 40_000));
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

/// "1,000 clients with 10 reports each": one that lost a request in the middle is not complete, whenever its last ended.
#[test]
fn who_lost_a_request_is_not_complete() {
    let text = format!(
        "{}\n[[clients]]\ncount = 50\ncontroller = \"rfc7252\"\nexchanges = 10\nmax_retransmit = 1\n",
        NARROW.replace("queue = \"2500 B\"", "queue = \"2500 B\"\nloss = { kind = \"bernoulli\", rate = 0.2 }")
    );
    let outcome = run(&Scenario::from_toml(&text, "test").unwrap(), 1, &Options::default(), || false).unwrap();
    balances(&outcome);
    let summary = &outcome.summary;
    assert_eq!((summary.unfinished, summary.born), (0, 500));
    let lost = outcome.flows.iter().filter(|row| row.requests_failed > 0).count() as u32;
    assert!(lost > 10, "{lost} lost one");
    assert_eq!((summary.clients_lost, summary.clients_complete), (lost, 50 - lost));
    assert_eq!(summary.failed, u64::from(sum(&outcome, |row| row.requests_failed)));
    // Some of them have a flow completion time all the same: their last request was answered.
    assert!(outcome.flows.iter().any(|row| row.fct_us.is_some() && row.requests_failed > 0));
    assert_eq!(outcome.reported.last().unwrap().clients, 50 - lost);
    // Of some of those that failed the request had arrived.
    assert!(summary.delivered > summary.answered);
}

#[test]
fn what_is_open_when_the_run_ends_never_finished() {
    let outcome = go(NARROW, "count = 20\ncontroller = \"rfc7252\"\n[run]\nuntil = \"10 s\"");
    balances(&outcome);
    assert_eq!(outcome.summary.unfinished, 20);
    assert_eq!((outcome.summary.never_finished, outcome.summary.clients_complete), (20, 0));
    assert!(outcome.flows.iter().all(|row| row.done_us.is_none() && row.fct_us.is_none()));
    let duration = go(NARROW, "count = 20\ncontroller = \"rfc7252\"\n[run]\nfor = \"10 s\"");
    assert_eq!(outcome.flows, duration.flows);
}

#[test]
fn the_clock_aligns_those_who_follow_it() {
    let workload =
        "workload = { kind = \"periodic\", period = \"1 h\", aligned = true, jitter = \"30 s\", requests = 3 }";
    let outcome = go(EMPTY, &format!("count = 50\ncontroller = \"rfc7252\"\nstart_spread = \"50 min\"\n{workload}"));
    balances(&outcome);
    for row in outcome.flows.iter().skip(1) {
        assert!((3_600_000_000..=3_630_000_000).contains(&row.first_send_us) || row.first_send_us <= 30_000_000);
        assert_eq!((row.born, row.answered), (3, 3));
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
    let each = outcome.summary.born as f64 / 2_000.0;
    // Clients have 1, 12, 24 or 48 reports: a standard deviation of 11.
    assert!((each - 11.2).abs() < 4.0 * 11.0 / 2_000_f64.sqrt(), "{each} reports a device");
    let mut counts: Vec<u32> = outcome.flows.iter().map(|row| row.born).collect();
    counts.sort_unstable();
    counts.dedup();
    assert_eq!(counts, [1, 12, 24, 48]);
    // Header 28, CoAP 4, path 6, marker 1, and a payload with a mean of 32.9.
    let bytes = outcome.links[0].delivered_bytes as f64 / outcome.links[0].delivered_packets as f64;
    assert!((bytes - 71.9).abs() < 0.8, "{bytes} B a request");
}

#[test]
fn several_requests_are_open_at_once_if_nstart_says_so() {
    // Ten bursts of eight; the round trip is 20.01 ms, so one after another they take 160 ms.
    let group = |nstart: u32| {
        format!(
            "count = 3\ncontroller = \"rfc7252\"\nnstart = {nstart}\ntoken_length = 2\n\
             workload = {{ kind = \"periodic\", period = \"1 s\", phase = \"0 s\", burst = 8, requests = 80 }}"
        )
    };
    for (nstart, longest) in [(1_u32, 160_100), (4, 40_100), (8, 20_100)] {
        let outcome = go(EMPTY, &group(nstart));
        balances(&outcome);
        assert_eq!(outcome.summary.answered, 240);
        let last = outcome.delays.iter().filter(|row| row.kind == "answer").map(|row| row.upper_us).max().unwrap();
        assert!((longest - 1_000..longest + longest / 32).contains(&last), "nstart {nstart}: {last} µs");
    }
}

#[test]
fn a_backlog_keeps_as_many_open_as_it_may() {
    let outcome = go(
        EMPTY,
        "count = 2\ncontroller = \"rfc7252\"\nnstart = 5\ntoken_length = 2\nworkload = { kind = \"backlog\", for = \"10 s\" }",
    );
    balances(&outcome);
    for row in &outcome.flows {
        // Five at a time, 20.01 ms each.
        assert!((2_470..=2_505).contains(&row.answered), "{} requests", row.answered);
    }
}

#[test]
fn a_full_application_refuses_what_is_born_beyond() {
    // A request takes 660 ms on this path, and one is born every 200 ms.
    let outcome = go(
        NARROW,
        "count = 1\ncontroller = \"rfc7252\"\napplication_queue = 4\n\
         workload = { kind = \"periodic\", period = \"200 ms\", phase = \"0 s\", requests = 100 }",
    );
    balances(&outcome);
    let row = &outcome.flows[0];
    assert!((60..75).contains(&row.dropped_source), "{} refused", row.dropped_source);
    assert_eq!((row.born, row.requests_failed, row.delivered), (100, row.dropped_source, row.answered));
    assert_eq!(outcome.summary.clients_lost, 1);
}

#[test]
fn think_time_lies_between_an_answer_and_the_next_request() {
    let outcome = go(
        EMPTY,
        "count = 1\ncontroller = \"rfc7252\"\nworkload = { kind = \"continuous\", think = \"1 s\", requests = 11 }",
    );
    let row = &outcome.flows[0];
    let exact = 10_000_000.0 + 11.0 * (20_000.0 + (38.0 + 94.0) * 8.0 / 100.0);
    assert!((row.fct_us.unwrap() as f64 - exact).abs() < 20.0, "{:?} instead of {exact}", row.fct_us);
}

#[test]
fn a_script_asks_for_one_thing_after_another() {
    let group = r#"
        count = 5
        controller = "rfc7252"
        workload = { kind = "after-event", arrival = "2 s", script = [
            { method = "POST", path = "rd", payload = "120 B" },
            { path = "config" },
            { method = "PUT", path = "report", payload = { kind = "uniform", from = "10 B", to = "20 B" } },
        ] }
    "#;
    let outcome = run(&scenario(EMPTY, group), 1, &Options { capture: true, ..Options::default() }, || false).unwrap();
    balances(&outcome);
    assert!(outcome.flows.iter().all(|row| (row.born, row.answered) == (3, 3)));
    let capture = outcome.capture.unwrap();
    let count = |text: &[u8]| capture.windows(text.len()).filter(|window| *window == text).count();
    // Each is seen at both ends.
    assert_eq!((count(b"config"), count(b"report")), (10, 10));
    assert_eq!(count(&[b'.'; 120]), 10);
}

/// LwM2M 1.1's rule: the n-th attempt comes 60 s · 2^(n−2) after the end of the one before. The uplink loses everything until
/// 400 s, and each attempt of one copy ends after its timer of 2 to 3 s.
#[test]
fn who_got_no_answer_begins_anew_after_twice_the_wait() {
    let text = |retry: &str| {
        format!(
            "{EMPTY}[[clients]]\ncount = 20\ncontroller = \"rfc7252\"\nmax_retransmit = 0\n\
             workload = {{ kind = \"after-event\", arrival = \"at-once\"{retry}, script = [ {{ path = \"rd\" }}, {{ path = \"o\" }} ] }}\n\
             [[timeline]]\nkind = \"loss\"\nat = \"5 s\"\nlink = \"uplink\"\nloss = {{ kind = \"bernoulli\", rate = 0.999999 }}\n\
             [[timeline]]\nkind = \"alarm\"\nat = \"10 s\"\n\
             [[timeline]]\nkind = \"loss\"\nat = \"400 s\"\nlink = \"uplink\"\nloss = \"none\"\n\
             [run]\nuntil = \"1 h\"\n"
        )
    };
    let go = |retry: &str| {
        let outcome =
            run(&Scenario::from_toml(&text(retry), "test").unwrap(), 1, &Options::default(), || false).unwrap();
        balances(&outcome);
        outcome
    };
    let outcome = go(", retry = { timer = \"60 s\", attempts = 5 }");
    for row in &outcome.flows {
        // Three attempts of one request, and the fourth with both.
        assert_eq!((row.born, row.answered, row.requests_failed), (5, 2, 3));
        let done = row.done_us.unwrap();
        assert!((436_000_000..440_000_000).contains(&done), "{done}");
    }
    let last = outcome.reported.last().unwrap();
    assert_eq!((last.clients, last.clients_of), (20, 20), "done, if late");
    // Without, or with too few attempts, nobody is.
    for (retry, born) in [("", 2), (", retry = { timer = \"60 s\", attempts = 3 }", 3)] {
        let outcome = go(retry);
        assert!(
            outcome.flows.iter().all(|row| (row.born, row.answered) == (born, 0)),
            "{retry}: {:?}",
            outcome.flows[0]
        );
        assert_eq!(outcome.reported.last().unwrap().clients, 0);
    }
    // Another row of attempts after the first.
    let outcome = go(", retry = { timer = \"60 s\", attempts = 2, then = \"10 min\" }");
    assert!(outcome.flows.iter().all(|row| (row.born, row.answered) == (4, 2)), "{:?}", outcome.flows[0]);
    let bad =
        Scenario::from_toml(&text(", retry = { timer = \"60 s\", attempts = 0 }"), "test").unwrap_err().to_string();
    assert!(bad.contains("clients[0].workload.retry.attempts: 0 attempts are none: write at least 1"), "{bad}");
}

#[test]
fn non_confirmable_requests_leave_once_and_block_nobody_for_ever() {
    let lossy = EMPTY.replacen("queue = \"1 MB\"", "queue = \"1 MB\"\nloss = { kind = \"bernoulli\", rate = 0.2 }", 1);
    let outcome = go(
        &lossy,
        "count = 40\ncontroller = \"rfc7252\"\nconfirmable = false\n\
         workload = { kind = \"periodic\", period = \"10 min\", requests = 20 }",
    );
    balances(&outcome);
    assert_eq!(outcome.links[0].offered_packets, 800, "one copy each");
    assert_eq!(outcome.summary.failed, outcome.links[0].dropped_radio_packets);
    assert!((100..220).contains(&outcome.summary.failed), "{} of 800 lost", outcome.summary.failed);
}

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
        assert_eq!((summary.born, summary.failed, summary.unfinished), (1_200, 30, 0), "{memory}");
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
/// become 15 s (60 clients, 250 ms each): whoever knows a base round trip knows at the first answer that this is a queue.
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

#[test]
fn a_start_may_be_spread_over_days() {
    let outcome = go(EMPTY, "count = 1000\ncontroller = \"rfc7252\"\nexchanges = 1\nstart_spread = \"20 h\"");
    let day = 72_000_000_000.0;
    let mean = outcome.flows.iter().map(|row| row.first_send_us as f64).sum::<f64>() / 1_000.0;
    assert!((mean / day - 0.5).abs() < 4.0 / 12_000_f64.sqrt(), "{mean}");
    assert!(outcome.flows.iter().any(|row| row.first_send_us as f64 > 0.98 * day));
}

#[test]
fn every_transport_carries_every_workload() {
    for carried in [
        "controller = \"rfc7252\"",
        "controller = \"rfc7252\"\ntransfer = { kind = \"blocks\", size = \"64 B\" }",
        "controller = \"rfc7252\"\ntransfer = { kind = \"bursts\", size = \"128 B\" }",
        "transport = \"tcp\"",
    ] {
        for workload in [
            "{ kind = \"continuous\", think = { kind = \"exponential\", mean = \"2 s\" }, requests = 5 }",
            "\"fresh-batches\"",
            "{ kind = \"backlog\", for = \"20 s\" }",
            "{ kind = \"periodic\", period = \"30 s\", jitter = \"5 s\", requests = 5 }",
            "{ kind = \"poisson\", interval = \"20 s\", requests = 5 }",
            "{ kind = \"ramp\", from = \"0 /s\", to = \"6 /min\", over = \"1 min\", requests = 5 }",
            "{ kind = \"after-event\", arrival = { kind = \"exponential\", mean = \"5 s\" }, requests = 2 }",
            "[ { kind = \"after-event\", arrival = \"at-once\" }, { kind = \"periodic\", period = \"10 s\", burst = 2, requests = 6 } ]",
        ] {
            let group =
                format!("count = 3\nexchanges = 8\n{carried}\nworkload = {workload}\n[server]\npayload = \"300 B\"");
            let outcome = go(NARROW, &group);
            balances(&outcome);
            let summary = &outcome.summary;
            assert_eq!((summary.unfinished, summary.failed), (0, 0), "{carried}, {workload}");
            assert!(summary.born >= 6 && summary.clients_complete == 3, "{carried}, {workload}: {summary:?}");
            assert_eq!(summary.delivered, summary.born, "{carried}, {workload}");
        }
    }
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
            assert_eq!((summary.born, summary.unfinished), (90, 0), "{carried}, {memory}: {summary:?}");
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

#[test]
fn a_period_of_all_together_is_that_of_each_times_their_number() {
    let text = |period: &str| {
        format!(
            "path = \"nbiot-anrw18\"\n[[clients]]\ncount = 8\ncontroller = \"rfc7252\"\n\
             workload = {{ kind = \"periodic\", period = {period} }}\n[run]\nfor = \"1 min\"\n"
        )
    };
    let read = |period| Scenario::from_toml(&text(period), "test");
    assert_eq!(read("{ together = \"250 ms\" }").unwrap(), read("\"2 s\"").unwrap());
    let told = read("{ togther = \"250 ms\" }").unwrap_err().to_string();
    assert!(told.contains("did you mean `together`?"), "{told}");
}

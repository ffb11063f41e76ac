//! Requests under way: how many, what comes after them, and what of those that got no answer.

use millpond_sim::{Options, Scenario, run};

use crate::{
    EMPTY, NARROW,
    books::{balances, sum},
    go, scenario,
};

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
    assert_eq!((summary.unfinished, summary.arrivals), (0, 500));
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

/// It would be open for no time, and be told as never finished of each client.
#[test]
fn nothing_is_born_when_the_run_ends() {
    for workload in [
        "{ kind = \"periodic\", period = \"1 min\", phase = \"0 s\" }",
        "{ kind = \"periodic\", period = \"1 min\", phase = \"0 s\", for = \"1 h\" }",
        "[ { kind = \"periodic\", period = \"2 min\", phase = \"0 s\" }, { kind = \"periodic\", period = \"2 min\", phase = \"1 min\" } ]",
    ] {
        let group = format!("count = 5\ncontroller = \"rfc7252\"\nworkload = {workload}\n[run]\nfor = \"4 min\"");
        let outcome = go(EMPTY, &group);
        balances(&outcome);
        let summary = &outcome.summary;
        assert_eq!((summary.arrivals, summary.answered, summary.never_finished), (20, 20, 0), "{workload}");
        assert_eq!(summary.simulated_us, 240_000_000);
    }
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

/// Calm awaits an answer to the last copy for 32 to 48 s, if nothing else is to leave; other controllers give up.
#[test]
fn a_report_takes_the_place_of_one_that_is_overdue() {
    let group = |requests: u32| {
        format!(
            "count = 1\ncontroller = \"calm\"\n\
             workload = {{ kind = \"periodic\", period = \"20 s\", phase = \"0 s\", requests = {requests} }}\n\
             [[timeline]]\nkind = \"loss\"\nat = \"5 s\"\nlink = \"uplink\"\nloss = {{ kind = \"bernoulli\", rate = 0.999999 }}\n\
             [[timeline]]\nkind = \"loss\"\nat = \"35 s\"\nlink = \"uplink\"\nloss = \"none\"\n"
        )
    };
    let outcome = go(EMPTY, &group(10));
    balances(&outcome);
    assert_eq!((outcome.summary.answered, outcome.summary.failed), (9, 1));
    // The third leaves when it arrives.
    let last = outcome.delays.iter().filter(|row| row.kind == "answer").map(|row| row.upper_us).max().unwrap();
    assert!(last < 21_000, "{last} µs");
    // With nothing behind it the second is given up no sooner than 32 s after its last copy, at 20 s or later.
    let alone = go(EMPTY, &group(2));
    let (ended, other) = (alone.flows[0].done_us.unwrap(), outcome.flows[0].done_us.unwrap());
    assert!((52_000_000..90_000_000).contains(&ended) && other < 181_000_000, "{ended} and {other} µs");
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
    // A request takes 660 ms on this path, and one arrives every 200 ms.
    let outcome = go(
        NARROW,
        "count = 1\ncontroller = \"rfc7252\"\napplication_queue = 4\n\
         workload = { kind = \"periodic\", period = \"200 ms\", phase = \"0 s\", requests = 100 }",
    );
    balances(&outcome);
    let row = &outcome.flows[0];
    assert!((60..75).contains(&row.dropped_source), "{} refused", row.dropped_source);
    assert_eq!((row.arrivals, row.requests_failed, row.delivered), (100, row.dropped_source, row.answered));
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
    assert!(outcome.flows.iter().all(|row| (row.arrivals, row.answered) == (3, 3)));
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
        assert_eq!((row.arrivals, row.answered, row.requests_failed), (5, 2, 3));
        let done = row.done_us.unwrap();
        assert!((436_000_000..440_000_000).contains(&done), "{done}");
    }
    let last = outcome.reported.last().unwrap();
    assert_eq!((last.clients, last.clients_of), (20, 20), "done, if late");
    // Without, or with too few attempts, nobody is.
    for (retry, arrivals) in [("", 2), (", retry = { timer = \"60 s\", attempts = 3 }", 3)] {
        let outcome = go(retry);
        assert!(
            outcome.flows.iter().all(|row| (row.arrivals, row.answered) == (arrivals, 0)),
            "{retry}: {:?}",
            outcome.flows[0]
        );
        assert_eq!(outcome.reported.last().unwrap().clients, 0);
    }
    // Another row of attempts after the first.
    let outcome = go(", retry = { timer = \"60 s\", attempts = 2, then = \"10 min\" }");
    assert!(outcome.flows.iter().all(|row| (row.arrivals, row.answered) == (4, 2)), "{:?}", outcome.flows[0]);
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
            assert!(summary.arrivals >= 6 && summary.clients_complete == 3, "{carried}, {workload}: {summary:?}");
            assert_eq!(summary.delivered, summary.arrivals, "{carried}, {workload}");
        }
    }
}

#[test]
fn who_gives_up_at_the_last_copy_does_not_wait_for_an_answer_to_it() {
    let path = EMPTY.replacen("queue", "loss = { kind = \"bernoulli\", rate = 0.999999 }\nqueue", 1);
    let fails = |gives_up: &str| {
        let group = format!(
            "count = 1\ncontroller = {{ preset = \"rfc7252\", random-factor = 1.0 }}\nexchanges = 1\ngives_up = \"{gives_up}\"\n"
        );
        let row = &go(&path, &group).flows[0];
        assert_eq!((row.retransmissions, row.requests_failed), (4, 1));
        row.done_us.map(|done| (done - row.first_send_us) as f64 / 1e6)
    };
    // Waits of 2, 4, 8 and 16 s; then the last copy leaves, whose wait takes 32 s.
    assert_eq!((fails("at-last-copy"), fails("after-wait")), (Some(30.0), Some(62.0)));
}

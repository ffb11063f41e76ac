//! What runs give: exact times where arithmetic gives them, books that balance, and the same bytes every time.

mod path;

use millpond_sim::{Options, Outcome, RunError, Scenario, TraceKind, run};

/// The path of study anrw18 with this much buffer, and these groups of clients.
fn scenario(buffer: &str, clients: &str) -> Scenario {
    let path = path::path(buffer);
    Scenario::from_toml(&format!("{path}\n{clients}\n[server]\nduplicates = \"afresh\"\n"), "test").unwrap()
}

fn clients(count: u32, controller: &str) -> String {
    format!("[[clients]]\ncount = {count}\ncontroller = {controller}\nmax_retransmit = 20\n")
}

const DEFAULT: &str = r#"{ preset = "rfc7252", max-wait = "60 s" }"#;

fn go(scenario: &Scenario, seed: u64) -> Outcome {
    run(scenario, seed, &Options::default(), || false).unwrap()
}

fn everything() -> Options {
    Options { traces: TraceKind::ALL.to_vec(), ..Options::default() }
}

/// Flow completion times in seconds, in order.
fn fcts(outcome: &Outcome) -> Vec<f64> {
    let mut times: Vec<f64> = outcome.flows.iter().map(|row| row.fct_us.unwrap() as f64 / 1e6).collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn one_client_is_limited_by_the_round_trip_alone() {
    // 38 B at 60 kbit/s, 94 B at 30 kbit/s, 630 ms of delay.
    let round_trip = 38.0 * 8.0 / 60e3 + 94.0 * 8.0 / 30e3 + 0.630;
    for buffer in ["2500 B", "1410000 B"] {
        let outcome = go(&scenario(buffer, &clients(1, DEFAULT)), 1);
        let fct = fcts(&outcome)[0];
        assert!((fct - 50.0 * round_trip).abs() < 1e-4, "{fct}");
        assert_eq!(outcome.flows[0].retransmissions, 0);
    }
}

#[test]
fn fifty_clients_share_a_link_that_never_rests() {
    // The i-th client is done when the link has served 2450 + i + 1 responses.
    let outcome = go(&scenario("14100 B", &clients(50, DEFAULT)), 1);
    let response = 94.0 * 8.0 / 30e3;
    let round_trip = 0.630 + response + 38.0 * 8.0 / 60e3;
    for (i, fct) in fcts(&outcome).into_iter().enumerate() {
        let exact = (2450.0 + i as f64) * response + round_trip;
        assert!((fct - exact).abs() < 0.002, "client {i}: {fct} instead of {exact}");
    }
    let downlink = &outcome.links[1];
    assert_eq!((downlink.dropped_queue_packets, downlink.delivered_packets), (0, 2_500));
    assert_eq!(downlink.useful_bytes, 2_500 * 94);
}

#[test]
fn an_unlimited_buffer_and_the_standard_timer_collapse() {
    let outcome = go(&scenario("1410000 B", &clients(400, DEFAULT)), 1);
    let downlink = &outcome.links[1];
    let useful = downlink.useful_bytes as f64 / downlink.delivered_bytes as f64;
    assert!((0.19..0.23).contains(&useful), "four copies in five are useless, useful: {useful}");
    assert!(outcome.histogram.iter().all(|row| row.retransmissions <= 4));
    let four: u64 = outcome.histogram.iter().filter(|row| row.retransmissions == 4).map(|row| row.exchanges).sum();
    assert!(four > 18_500, "{four} of 20000 exchanges were sent five times");
    // Nothing is ever lost, so every copy beyond the first was unnecessary.
    assert!(outcome.flows.iter().all(|row| row.unnecessary == row.retransmissions));
}

#[test]
fn the_same_scenario_and_seed_give_the_same_result() {
    let mut group = clients(60, "\"cocoa-03\"");
    group.push_str("workload = \"random\"\nstart_spread = \"3 s\"\n");
    let mut scenario = scenario("2500 B", &group);
    scenario.path.as_mut().unwrap().downlink.loss = millpond_sim::scenario::Loss::Bernoulli { rate: 0.05 };
    let alone = run(&scenario, 7, &everything(), || false).unwrap();
    let beside: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..2).map(|_| scope.spawn(|| run(&scenario, 7, &everything(), || false).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for other in beside {
        assert_eq!(alone, other);
    }
    assert_ne!(alone, run(&scenario, 8, &everything(), || false).unwrap());
}

#[test]
fn traces_change_nothing() {
    let scenario = scenario("2500 B", &clients(80, DEFAULT));
    let (plain, traced) = (go(&scenario, 3), run(&scenario, 3, &everything(), || false).unwrap());
    assert_eq!((plain.summary, &plain.flows, &plain.links), (traced.summary, &traced.flows, &traced.links));
    assert!(plain.packets.is_empty() && plain.exchanges.is_empty() && plain.queue_trace.is_empty());
    assert_eq!(traced.exchanges.len(), 80 * 50);
    let sent: u32 = traced.flows.iter().map(|row| row.transmissions).sum();
    assert_eq!(traced.rto_trace.len(), sent as usize);
    // The same in windows.
    let again: u32 = traced.flows.iter().map(|row| row.retransmissions).sum();
    let of = |what: fn(&millpond_sim::SentSample) -> u32| traced.sent_trace.iter().map(what).sum::<u32>();
    assert_eq!((of(|window| window.first), of(|window| window.again)), (sent - again, again));
    let bytes: u64 = traced.sent_trace.iter().map(|window| window.bytes).sum();
    assert_eq!(bytes, traced.links[0].offered_bytes);
    for (link, row) in traced.links.iter().enumerate() {
        let count = |event| traced.packets.iter().filter(|p| p.link == row.link && p.event == event).count() as u64;
        assert_eq!(count("enq") + count("drop_queue"), row.offered_packets);
        assert_eq!(count("drop_queue"), row.dropped_queue_packets);
        assert_eq!(count("recv"), row.delivered_packets);
        let carried: u64 = traced.share_trace.iter().filter(|s| s.link == row.link).map(|s| s.carried_bytes).sum();
        let useful: u64 = traced.share_trace.iter().filter(|s| s.link == row.link).map(|s| s.useful_bytes).sum();
        assert_eq!((carried, useful), (row.delivered_bytes, row.useful_bytes), "link {link}");
    }
}

#[test]
fn batches_are_cut_and_forget() {
    let mut group = clients(30, "\"cocoa-03\"");
    group.push_str("workload = \"random\"\n");
    let outcome = go(&scenario("1410000 B", &group), 1);
    for row in &outcome.flows {
        assert_eq!(row.completed, 50);
        assert!((5..=50).contains(&row.batches), "{} batches", row.batches);
    }
    let first: u64 = outcome.histogram.iter().filter(|row| row.first_batch).map(|row| row.exchanges).sum();
    let later: u64 = outcome.histogram.iter().filter(|row| !row.first_batch).map(|row| row.exchanges).sum();
    assert_eq!(first + later, 30 * 50);
    assert!((30..=300).contains(&first), "{first} exchanges in first batches of 1 to 10");
}

#[test]
fn two_groups_share_one_bottleneck() {
    let groups = clients(100, DEFAULT) + &clients(100, r#"{ preset = "default-fb1", max-wait = "60 s" }"#);
    let outcome = go(&scenario("28200 B", &groups), 1);
    for group in 0..2 {
        let rows: Vec<_> = outcome.flows.iter().filter(|row| row.group == group).collect();
        assert_eq!(rows.len(), 100);
        assert!(rows.iter().all(|row| row.completed == 50));
    }
    // Dealt evenly over the numbers, so that neither group is always first in the queue.
    assert_eq!(outcome.flows.iter().take(10).filter(|row| row.group == 0).count(), 5);
}

#[test]
fn a_run_that_ends_early_says_who_was_not_done() {
    let mut scenario = scenario("1410000 B", &clients(10, DEFAULT));
    scenario.run.until = millpond_sim::scenario::Duration(20_000_000);
    let outcome = go(&scenario, 1);
    assert_eq!((outcome.summary.unfinished, outcome.summary.makespan_us), (10, None));
    assert_eq!(outcome.summary.simulated_us, 20_000_000);
    assert!(outcome.flows.iter().all(|row| row.fct_us.is_none() && row.completed > 20));
}

#[test]
fn who_gives_up_fails_and_goes_on() {
    let mut scenario = scenario("1410000 B", "[[clients]]\ncount = 5\ncontroller = \"rfc7252\"\nmax_retransmit = 0\n");
    scenario.path.as_mut().unwrap().downlink.loss = millpond_sim::scenario::Loss::Bernoulli { rate: 0.5 };
    let outcome = go(&scenario, 1);
    for row in &outcome.flows {
        assert_eq!(row.completed + row.exchanges_failed, 50);
        assert!(row.exchanges_failed > 5);
        assert_eq!(row.transmissions, 50);
    }
    assert!(outcome.links[1].dropped_radio_packets > 0);
}

#[test]
fn stored_and_fresh_replies_cost_the_link_the_same() {
    let mut scenario = scenario("1410000 B", &clients(100, DEFAULT));
    let afresh = go(&scenario, 1);
    scenario.server.duplicates = millpond_sim::scenario::Duplicates::Stored;
    let stored = go(&scenario, 1);
    assert_eq!(afresh.flows, stored.flows);
    assert_eq!(afresh.links, stored.links);
}

#[test]
fn a_slow_server_adds_its_time() {
    let mut scenario = scenario("1410000 B", &clients(1, DEFAULT));
    let before = fcts(&go(&scenario, 1))[0];
    scenario.server.host_time = millpond_sim::scenario::Duration(650);
    let after = fcts(&go(&scenario, 1))[0];
    assert!((after - before - 50.0 * 0.000_650).abs() < 1e-4, "{before} {after}");
}

#[test]
fn a_run_stops_when_told() {
    let scenario = scenario("1410000 B", &clients(400, DEFAULT));
    assert_eq!(run(&scenario, 1, &Options::default(), || true), Err(RunError::Cancelled));
}

#[test]
fn a_packet_lost_before_the_rate_stage_uses_no_link_time() {
    let mut scenario = scenario("1410000 B", &clients(5, DEFAULT));
    scenario.path.as_mut().unwrap().downlink.loss = millpond_sim::scenario::Loss::Bernoulli { rate: 0.3 };
    let after = run(&scenario, 1, &everything(), || false).unwrap();
    scenario.path.as_mut().unwrap().downlink.loss_at = millpond_sim::scenario::LossAt::BeforeRate;
    let before = run(&scenario, 1, &everything(), || false).unwrap();
    let service = 94 * 8 * 1_000_000 / 30_000;
    for (outcome, served_lost) in [(&after, 1), (&before, 0)] {
        let link = &outcome.links[1];
        assert!(link.dropped_radio_packets > 50);
        let served = link.delivered_packets + served_lost * link.dropped_radio_packets;
        // One that is still under way when the run ends may have been served too.
        assert!(link.busy_us.abs_diff(served * service) < 3 * service, "{} {served}", link.busy_us);
        let told = outcome.packets.iter().filter(|p| p.link == "downlink" && p.event == "drop_radio").count() as u64;
        assert_eq!(told, link.dropped_radio_packets);
    }
}

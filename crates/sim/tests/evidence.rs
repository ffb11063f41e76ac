//! What replies say about the round-trip time, beside the truth.

use millpond_sim::{EvidenceRow, Options, Outcome, Scenario, TraceKind, run};

/// Clients on a path whose round trip always takes a second, with independent losses each way.
fn scenario(loss: f64, clients: &str, server: &str) -> Scenario {
    let direction = format!(
        "rate = \"1 Gbit/s\"\ndelay = \"499999 us\"\nqueue = \"1 GB\"\nloss = {{ kind = \"bernoulli\", rate = {loss} }}"
    );
    let text = format!(
        r#"
        [path.uplink]
        {direction}
        [path.downlink]
        {direction}
        [[clients]]
        count = 50
        {clients}
        [server]
        {server}
        "#
    );
    Scenario::from_toml(&text, "test").unwrap()
}

fn go(scenario: &Scenario) -> Outcome {
    let options = Options { traces: vec![TraceKind::Exchanges], ..Options::default() };
    run(scenario, 1, &options, || false).unwrap()
}

/// Exchanges that were retransmitted, by grade and truth.
fn count(outcome: &Outcome, grade: &str, right: bool) -> u64 {
    let asked = |row: &&EvidenceRow| row.retransmissions > 0 && row.grade == grade && row.right == right;
    outcome.evidence.iter().filter(asked).map(|row| row.exchanges).sum()
}

const WAIT: &str = "controller = \"rfc7252\"";

#[test]
fn without_retransmission_every_sample_is_right() {
    let outcome = go(&scenario(0.0, WAIT, ""));
    let all = EvidenceRow {
        group: 0,
        retransmissions: 0,
        grade: "exact",
        right: true,
        exchanges: 2_500,
        error_us: 0,
        error_rtts: 0.0,
    };
    assert_eq!(outcome.evidence, [all]);
    for row in &outcome.exchanges {
        assert_eq!((row.grade, row.sample_us, row.named_copy), (Some("exact"), row.true_us, None));
        assert!(row.true_us.is_some_and(|us| (1_000_000..1_000_100).contains(&us)), "{row:?}");
        assert!((2_000_000..=3_000_000).contains(&row.first_wait_us));
    }
}

#[test]
fn replies_that_name_nothing_are_ambiguous_and_count_from_the_first_copy() {
    let outcome = go(&scenario(0.2, WAIT, ""));
    assert_eq!(count(&outcome, "echoed", true) + count(&outcome, "echoed", false), 0);
    assert_eq!(count(&outcome, "exact", true) + count(&outcome, "exact", false), 0);
    // The first wait is above the round trip, so the answer is never the first copy's.
    assert_eq!(count(&outcome, "ambiguous", true), 0);
    assert!(count(&outcome, "ambiguous", false) > 500);
    for row in outcome.evidence.iter().filter(|row| row.retransmissions == 1) {
        // Too long by the first wait, 2 to 3 s, in the mean 2.5 s.
        let mean = row.error_us as f64 / row.exchanges as f64;
        assert!((mean - 2.5e6).abs() < 0.1e6, "{mean}");
        assert!((row.error_rtts - row.error_us as f64 / 1e6).abs() < 0.001 * row.error_rtts);
    }
}

#[test]
fn the_rows_of_exchanges_add_up_to_the_table() {
    let outcome = go(&scenario(0.3, WAIT, "duplicates = \"afresh\""));
    for row in &outcome.evidence {
        let alike = |exchange: &&millpond_sim::ExchangeRow| {
            let cause = if row.grade == "ambiguous" { Some(0) } else { exchange.winning_copy };
            exchange.copies == row.retransmissions + 1
                && exchange.grade == Some(row.grade)
                && (exchange.winning_copy == cause) == row.right
        };
        let rows: Vec<_> = outcome.exchanges.iter().filter(alike).collect();
        assert_eq!(rows.len() as u64, row.exchanges, "{row:?}");
        let error = |row: &&millpond_sim::ExchangeRow| row.sample_us.unwrap() as i64 - row.true_us.unwrap() as i64;
        assert_eq!(rows.iter().map(error).sum::<i64>(), row.error_us);
    }
    let answered = outcome.exchanges.iter().filter(|row| row.accepted_us.is_some()).count() as u64;
    assert_eq!(outcome.evidence.iter().map(|row| row.exchanges).sum::<u64>(), answered);
    let judged = outcome.exchanges.iter().filter(|row| row.grade.is_some()).count() as u64;
    assert_eq!(judged, answered);
}

#[test]
fn traced_exchanges_are_judged_in_the_warm_up_too_and_counted_after_it() {
    let rest =
        "controller = \"rfc7252\"\nworkload = { kind = \"poisson\", interval = \"5 s\" }\n[run]\nfor = \"100 s\"";
    let warm = format!("{rest}\nwarm_up = \"40 s\"");
    let (all, counted) = (go(&scenario(0.1, rest, "")), go(&scenario(0.1, &warm, "")));
    assert!(all.exchanges.iter().any(|row| row.first_send_us < 40_000_000 && row.grade.is_some()));
    // The warm-up changes nothing of what happens, and a trace has all of that.
    assert_eq!(counted.exchanges, all.exchanges);
    let answered = counted.exchanges.iter().filter(|row| row.accepted_us.is_some());
    assert!(answered.clone().all(|row| row.grade.is_some() && row.sample_us.is_some() && row.true_us.is_some()));
    let late = answered.filter(|row| row.first_send_us >= 40_000_000).count() as u64;
    assert_eq!(counted.evidence.iter().map(|row| row.exchanges).sum::<u64>(), late);
    assert!(late > 0 && late < all.evidence.iter().map(|row| row.exchanges).sum());
}

#[test]
fn the_controller_s_timeout_stands_beside_each_sample() {
    let outcome = go(&scenario(0.0, "controller = \"cocoa-03\"", ""));
    let mut last = None;
    for row in outcome.exchanges.iter().filter(|row| row.flow == 0) {
        // Dithered by up to a half of what the exchange before left.
        if let Some(rto) = last {
            assert!((rto..=rto + rto / 2 + 1).contains(&row.first_wait_us), "{rto} {row:?}");
        }
        last = row.rto_us;
    }
    assert!(last.is_some());
}

/// A wait of exactly two seconds, and copies that are distinguished.
fn named(naming: &str) -> String {
    format!("controller = {{ preset = \"rfc7252\", random-factor = 1 }}\nnaming = \"{naming}\"\nexchanges = 200")
}

#[test]
fn a_server_that_answers_afresh_is_never_misunderstood() {
    for naming in ["token", "count", "timestamp"] {
        for token_length in [0, 1, 8] {
            let clients = format!("{}\ntoken_length = {token_length}", named(naming));
            let outcome = go(&scenario(0.1, &clients, "duplicates = \"afresh\""));
            assert!(count(&outcome, "exact", true) > 1_000, "{naming} {token_length}");
            assert_eq!(count(&outcome, "exact", false), 0);
            // The wait is twice the round trip: who answers is always the last copy.
            assert_eq!(count(&outcome, "echoed", true) + count(&outcome, "echoed", false), 0);
        }
    }
}

#[test]
fn a_server_that_stores_replies_names_the_first_copy_that_it_saw() {
    for naming in ["token", "count", "timestamp"] {
        for loss in [0.05_f64, 0.3] {
            let outcome = go(&scenario(loss, &named(naming), ""));
            assert_eq!(count(&outcome, "exact", false), 0, "{naming}");
            assert_eq!(count(&outcome, "echoed", true), 0, "{naming}");
            for retransmissions in 1..=2 {
                let told = |grade| {
                    let rows = outcome.evidence.iter();
                    let mut rows = rows.filter(|row| row.retransmissions == retransmissions && row.grade == grade);
                    rows.next().map_or(0.0, |row| row.exchanges as f64)
                };
                // The copies before the last have all failed. The reply names the last if none of them arrived: each did
                // not with probability p / (p + (1 - p) p).
                let right = (1.0 / (2.0 - loss)).powi(retransmissions as i32);
                let (exact, all) = (told("exact"), told("exact") + told("echoed"));
                let error = (right * (1.0 - right) / all).sqrt();
                assert!(
                    (exact / all - right).abs() < 4.0 * error,
                    "{naming} {loss}: {exact} of {all}, {right} expected"
                );
            }
        }
    }
}

#[test]
fn an_echoed_sample_is_too_long_by_the_waits_between_the_copies() {
    let outcome = go(&scenario(0.2, &named("token"), ""));
    for row in outcome.exchanges.iter().filter(|row| row.grade == Some("echoed")) {
        let left = |copy: Option<u32>| 2_000_000 * ((1_u64 << copy.unwrap()) - 1);
        let error = row.sample_us.unwrap() - row.true_us.unwrap();
        assert_eq!(error, left(row.winning_copy) - left(row.named_copy), "{row:?}");
        assert!(row.named_copy < row.winning_copy);
    }
}

#[test]
fn a_spurious_copy_leaves_a_reply_that_names_an_earlier_one_rightly() {
    // The wait is half the round trip, and nothing is lost.
    let clients =
        "controller = { preset = \"rfc7252\", random-factor = 1, ack-timeout = \"0.5 s\" }\nnaming = \"token\"";
    for server in ["", "duplicates = \"afresh\""] {
        let outcome = go(&scenario(0.0, clients, server));
        assert_eq!(count(&outcome, "echoed", true), 2_500);
        assert_eq!(outcome.evidence.len(), 1);
        assert_eq!(outcome.evidence[0].error_us, 0);
    }
}

#[test]
fn a_server_that_does_not_know_the_option_names_nothing() {
    for (naming, echoes) in [("count", "[\"flag\", \"timestamp\"]"), ("timestamp", "[]"), ("flag", "[\"count\"]")] {
        let outcome = go(&scenario(0.1, &named(naming), &format!("echoes = {echoes}")));
        assert!(count(&outcome, "ambiguous", false) > 1_000, "{naming}");
        assert_eq!(count(&outcome, "exact", true) + count(&outcome, "echoed", false), 0, "{naming}");
    }
    let outcome = go(&scenario(0.1, &named("none"), ""));
    assert_eq!(count(&outcome, "exact", true), 0);
}

#[test]
fn the_bytes_of_each_copy_s_mark_are_paid_for() {
    let bytes = |naming: &str| {
        let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
        let outcome = run(&scenario(0.2, &named(naming), ""), 1, &options, || false).unwrap();
        let mut sizes: Vec<(u32, u32)> =
            outcome.packets.iter().filter(|p| p.link == "uplink").map(|p| (p.copy, p.bytes)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let offered: u64 = outcome.links.iter().map(|link| link.offered_bytes).sum();
        let copies = outcome.packets.iter().filter(|p| p.event == "enq");
        assert_eq!(offered, copies.map(|p| u64::from(p.bytes)).sum::<u64>());
        sizes
    };
    assert_eq!(bytes("none")[..2], [(0, 38), (1, 38)]);
    // From the second copy on, the token has a byte for its number.
    assert_eq!(bytes("token")[..3], [(0, 38), (1, 39), (2, 39)]);
    let sizes = bytes("timestamp");
    assert!(sizes.iter().all(|&(_, bytes)| bytes == sizes[0].1 && bytes > 38 + 4), "{sizes:?}");
}

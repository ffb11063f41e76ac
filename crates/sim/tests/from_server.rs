//! What the server sends by itself: commands and notifications, each beside what the clients ask.

mod books;

use books::{balances, delays};
use millpond_sim::{FlowRow, Options, Outcome, Scenario, TraceKind, run, scenario::Traffic};

/// A link to the clients on which 61 B take 61 ms, and one back on which nothing waits.
const NARROW_DOWN: &str = r#"
[path.uplink]
rate = "100 Mbit/s"
delay = "10 ms"
queue = "1 MB"
[path.downlink]
rate = "8 kbit/s"
delay = "10 ms"
queue = "1 MB"
"#;

fn wide(loss: &str) -> String {
    NARROW_DOWN.replace("8 kbit/s\"", &format!("100 Mbit/s\"\n{loss}"))
}

fn scenario(path: &str, rest: &str) -> Scenario {
    let text = format!("{path}\n{rest}\n[server]\ncontroller = \"rfc7252\"\nmax_retransmit = 20\n");
    Scenario::from_toml(&text, "test").unwrap_or_else(|error| panic!("{error}"))
}

fn go(path: &str, rest: &str) -> Outcome {
    let outcome = run(&scenario(path, rest), 1, &Options::default(), || false).unwrap();
    balances(&outcome);
    outcome
}

/// The rows of one kind.
fn rows(outcome: &Outcome, group: u32) -> Vec<&FlowRow> {
    outcome.flows.iter().filter(|row| row.group == group).collect()
}

/// So many of each row of a group.
#[track_caller]
fn each(outcome: &Outcome, group: u32, arrivals: u32, answered: u32) {
    for row in rows(outcome, group) {
        assert_eq!((row.arrivals, row.answered), (arrivals, answered), "{row:?}");
    }
}

/// A command to 20 clients at once: 28 B of IP and UDP, 4 B of CoAP, 8 B of path and 21 B of payload take 61 ms each, and the
/// last of them arrives after 20 of these and the delay.
#[test]
fn the_last_of_a_broadcast_arrives_after_all_transmissions_and_one_delay() {
    let rest = "[[clients]]\ncount = 20\ncontroller = \"rfc7252\"\nworkload = \"none\"\n\
                commands = { workload = { kind = \"after-event\", arrival = \"at-once\" }, request_payload = \"20 B\" }";
    let outcome = go(NARROW_DOWN, rest);
    assert_eq!((outcome.flows.len(), outcome.summary.unfinished, outcome.summary.arrivals), (40, 0, 20));
    each(&outcome, 0, 0, 0);
    each(&outcome, 1, 1, 1);
    assert!((0..20).all(|client| outcome.client(client) == client && outcome.client(20 + client) == client));
    let last = outcome.delays.iter().filter(|row| row.kind == "one_way").map(|row| row.upper_us).max().unwrap();
    let exact = 20 * 61_000 + 10_000;
    assert!((exact..=exact + exact / 64).contains(&last), "{last} instead of {exact}");
    // The answers: 32 B at 100 Mbit/s and the delay more.
    let done = rows(&outcome, 1).iter().map(|row| row.done_us.unwrap()).max().unwrap();
    assert_eq!(done, exact + 10_000 + 3);
    assert_eq!(outcome.links.iter().map(|row| row.useful_bytes).collect::<Vec<_>>(), [20 * 32, 20 * 61]);
    // All of that was of use, and nothing else was sent.
    assert!(outcome.links.iter().all(|row| row.offered_bytes == row.useful_bytes));
}

/// The event of a broadcast reaches only the group that it is for, and only at its time.
#[test]
fn an_alarm_calls_the_commands_of_its_group() {
    let group = |name| {
        format!(
            "[[clients]]\nname = \"{name}\"\ncount = 5\ncontroller = \"rfc7252\"\nworkload = \"none\"\n\
             commands = {{ workload = {{ kind = \"after-event\", arrival = \"at-once\", requests = 2 }} }}\n"
        )
    };
    let alarm = "[[timeline]]\nat = \"1 min\"\nkind = \"alarm\"\nclients = \"near\"\n";
    let outcome = go(&wide(""), &format!("{}{}{alarm}", group("near"), group("far")));
    each(&outcome, 2, 2, 2);
    each(&outcome, 3, 2, 2);
    assert!(rows(&outcome, 2).iter().all(|row| row.first_send_us == 60_000_000));
    // Those that nothing calls begin with the run.
    assert!(rows(&outcome, 3).iter().all(|row| row.first_send_us == 0));
    assert!(outcome.reported.iter().any(|row| (row.group, row.event, row.answered, row.clients) == (2, 1, 10, 5)));
}

#[test]
fn notifications_are_as_many_as_their_rhythm_says() {
    for (confirmable, a_minute) in [(true, 1), (true, 3), (false, 1), (false, 2), (false, 3)] {
        let period = 60 / a_minute;
        let rest = format!(
            "[[clients]]\ncount = 10\ncontroller = \"rfc7252\"\ntoken_length = 2\nworkload = \"none\"\n\
             notifications = {{ workload = {{ kind = \"periodic\", period = \"{period} s\", phase = \"5 s\" }}, \
             confirmable = {confirmable} }}\n[run]\nfor = \"10 min\""
        );
        let outcome = go(&wide(""), &rest);
        // Each has registered, and nothing else.
        each(&outcome, 0, 1, 1);
        each(&outcome, 1, 10 * a_minute, 10 * a_minute);
        let exchanges: u32 = rows(&outcome, 1).iter().map(|row| row.completed).sum();
        // Of those that are not confirmable the first one is.
        assert_eq!(exchanges, if confirmable { 100 * a_minute } else { 10 }, "{a_minute} a minute");
        assert_eq!(outcome.summary.unfinished, 0);
        // 28 B + 4 B, token, Observe, Content-Format and a payload of 60 B: 99 B at 100 Mbit/s, and 10 ms.
        let arrived = outcome.delays.iter().filter(|row| row.group == 1 && row.kind == "one_way");
        assert_eq!(arrived.clone().map(|row| row.count).sum::<u64>(), u64::from(100 * a_minute));
        assert!(arrived.map(|row| row.upper_us).all(|upper| (10_007..10_007 + 158).contains(&upper)));
    }
}

/// With a share p of the copies lost a notification takes 1 / (1 - p) copies, and every one arrives.
#[test]
fn a_lost_notification_is_sent_again() {
    let rest = "[[clients]]\ncount = 20\ncontroller = \"rfc7252\"\ntoken_length = 2\nmax_retransmit = 20\nworkload = \"none\"\n\
                notifications = { workload = { kind = \"continuous\", requests = 50 } }\n[run]\nuntil = \"100 d\"";
    let outcome = go(&wide("loss = { kind = \"bernoulli\", rate = \"20 %\" }"), rest);
    each(&outcome, 1, 50, 50);
    let copies: u32 = rows(&outcome, 1).iter().map(|row| row.transmissions).sum();
    let (mean, spread) = (1_000.0 / 0.8, (1_000.0_f64 * 0.2).sqrt() / 0.8);
    assert!((f64::from(copies) - mean).abs() < 4.0 * spread, "{copies} instead of {mean} ± {spread}");
    // None of these was spurious: what was lost had not arrived.
    assert!(rows(&outcome, 1).iter().all(|row| row.unnecessary == 0));
}

/// Nobody sends a notification again that is not confirmable: those that are lost have failed.
#[test]
fn a_plain_notification_ends_where_it_is_lost() {
    let rest = "[[clients]]\ncount = 20\ncontroller = \"rfc7252\"\ntoken_length = 2\nmax_retransmit = 20\nworkload = \"none\"\n\
                notifications = { workload = { kind = \"periodic\", period = \"10 s\" }, confirmable = false }\n\
                [run]\nfor = \"1 h\"";
    let outcome = go(&wide("loss = { kind = \"bernoulli\", rate = \"20 %\" }"), rest);
    let count = |what: fn(&FlowRow) -> u32| rows(&outcome, 1).into_iter().map(what).sum::<u32>();
    let (arrivals, lost) = (count(|row| row.arrivals), count(|row| row.requests_failed));
    assert_eq!(count(|row| row.never_finished), 0);
    assert_eq!((count(|row| row.answered), count(|row| row.delivered)), (arrivals - lost, arrivals - lost));
    let (mean, spread) = (f64::from(arrivals) * 0.2, (f64::from(arrivals) * 0.16).sqrt());
    assert!((f64::from(lost) - mean).abs() < 4.0 * spread, "{lost} lost instead of {mean} ± {spread}");
    // One copy each, but for the first, which shows that the client is there.
    let first = count(|row| row.completed);
    assert_eq!((first, count(|row| row.transmissions) - count(|row| row.retransmissions)), (20, arrivals));
    let gone: u64 =
        outcome.links.iter().filter(|row| row.link == "downlink").map(|row| row.dropped_radio_packets).sum();
    assert!(gone >= u64::from(lost));
}

/// Only the newest state is worth sending (RFC 7641 §4.5.2): what waits behind an open one is replaced.
#[test]
fn a_newer_notification_replaces_one_that_waits() {
    let rest = "[[clients]]\ncount = 1\ncontroller = \"rfc7252\"\ntoken_length = 2\nworkload = \"none\"\n\
                notifications = { workload = { kind = \"periodic\", period = \"1 min\", burst = 5 } }\n\
                [run]\nfor = \"10 min\"";
    let outcome = go(&wide(""), rest);
    let row = rows(&outcome, 1)[0];
    assert_eq!((row.arrivals, row.answered, row.requests_failed, row.dropped_source), (50, 20, 30, 30));
}

/// What a client asks does not change when it serves as well, as long as nothing waits.
#[test]
fn a_client_asks_and_serves_at_once() {
    let group = "[[clients]]\ncount = 10\ncontroller = \"cocoa-03\"\ntoken_length = 2\n\
                 workload = { kind = \"periodic\", period = \"1 s\" }\n";
    let both = "commands = { workload = { kind = \"poisson\", interval = \"1 s\" }, response_payload = \"100 B\" }\n\
                notifications = { workload = { kind = \"periodic\", period = \"1 s\" } }\n";
    let end = "[run]\nfor = \"10 min\"\n";
    let alone = run(
        &Scenario::from_toml(&format!("{}{group}{end}", wide("")), "test").unwrap(),
        1,
        &Options::default(),
        || false,
    )
    .unwrap();
    let outcome = go(&wide(""), &format!("{group}{both}{end}"));
    let groups: Vec<_> = scenario(&wide(""), &format!("{group}{both}{end}"))
        .flow_groups()
        .iter()
        .map(|group| (group.group, group.traffic, group.clients.algorithm()))
        .collect();
    let (own, server) = ("cocoa-03".to_owned(), "rfc7252".to_owned());
    let expected =
        [(0, Traffic::Requests, own), (0, Traffic::Commands, server.clone()), (0, Traffic::Notifications, server)];
    assert_eq!(groups, expected);
    for (one, other) in alone.flows.iter().zip(rows(&outcome, 0)) {
        // The registration is a request more.
        assert_eq!((one.arrivals + 1, one.answered + 1, one.requests_failed), (other.arrivals, other.answered, 0));
        assert_eq!(other.retransmissions, 0);
    }
    for row in rows(&outcome, 1).into_iter().chain(rows(&outcome, 2)) {
        assert!(row.arrivals > 500 && row.requests_failed == 0 && row.never_finished <= 1 && row.retransmissions == 0);
    }
    assert!(delays(&outcome, "rtt").0 > 16_000);
    // What the clients ask is drawn as if the server were silent.
    let arrivals = |outcome: &Outcome| outcome.flows.iter().take(10).map(|row| row.arrivals).collect::<Vec<_>>();
    assert_eq!(arrivals(&alone), arrivals(&outcome).into_iter().map(|arrivals| arrivals - 1).collect::<Vec<_>>());
}

/// With NSTART 2 a second command leaves while the first is open; with 1 it waits for the end of that.
#[test]
fn the_server_has_as_many_exchanges_open_with_a_client_as_it_may() {
    let rest = "[[clients]]\ncount = 3\ncontroller = \"rfc7252\"\nworkload = \"none\"\n\
                commands = { workload = { kind = \"periodic\", period = \"1 min\", phase = \"0 s\", burst = 2, requests = 2 } }";
    let sent = |nstart: &str| {
        let text = format!("{}\n{rest}\n[server]\ncontroller = \"rfc7252\"\n{nstart}", wide(""));
        let options = Options { traces: vec![TraceKind::Exchanges], ..Options::default() };
        let outcome = run(&Scenario::from_toml(&text, "test").unwrap(), 1, &options, || false).unwrap();
        balances(&outcome);
        outcome.exchanges.iter().map(|row| row.first_send_us).collect::<Vec<_>>()
    };
    assert_eq!(sent("nstart = 2\ntoken_length = 2"), [0; 6]);
    let one_by_one = sent("");
    assert!(one_by_one.chunks(2).all(|pair| pair[0] == 0 && pair[1] > 20_000), "{one_by_one:?}");
}

/// A client that has forgotten what it observes says so with a reset, and registers anew.
#[test]
fn who_forgot_registers_anew() {
    for (memory, registrations) in [("lost", 2), ("kept", 1)] {
        for confirmable in [true, false] {
            let rest = format!(
                "[[clients]]\ncount = 20\ncontroller = \"rfc7252\"\ntoken_length = 2\nworkload = \"none\"\n\
                 notifications = {{ workload = {{ kind = \"periodic\", period = \"7 s\" }}, confirmable = {confirmable} }}\n\
                 [[timeline]]\nkind = \"restart\"\nat = \"5 min\"\nback = \"30 s\"\nmemory = \"{memory}\"\n\
                 [run]\nfor = \"20 min\""
            );
            let outcome = go(&wide(""), &rest);
            each(&outcome, 0, registrations, registrations);
            for row in rows(&outcome, 1) {
                // At most those of half a minute and what was then under way are lost to it.
                assert!(row.requests_failed <= 6 && row.answered >= 150, "{memory}, {confirmable}: {row:?}");
            }
        }
    }
}

/// A registration or its response may be lost: the client goes on asking, and a notification that comes first answers it.
#[test]
fn a_registration_that_is_lost_is_made_again() {
    let rest = "[[clients]]\ncount = 50\ncontroller = \"rfc7252\"\ntoken_length = 2\nmax_retransmit = 1\nworkload = \"none\"\n\
                notifications = { workload = { kind = \"periodic\", period = \"2 s\", phase = \"0 s\", requests = 20 } }\n\
                [run]\nuntil = \"1 d\"";
    let outcome = go(&wide("loss = { kind = \"bernoulli\", rate = \"50 %\" }"), rest);
    assert_eq!(outcome.summary.unfinished, 0);
    for row in rows(&outcome, 0) {
        assert_eq!((row.answered, row.arrivals - row.requests_failed), (1, 1));
    }
    let failed: u32 = rows(&outcome, 0).iter().map(|row| row.requests_failed).sum();
    assert!(failed > 0);
    assert!(rows(&outcome, 1).iter().all(|row| row.arrivals == 20));
}

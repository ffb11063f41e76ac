//! Clients whose messages OSCORE protects, and what congestion control makes of them.

use millpond_control::Preset;
use millpond_sim::{Options, Outcome, Scenario, TraceKind, run};

fn go(text: &str) -> Outcome {
    let options = Options { traces: TraceKind::ALL.to_vec(), trace_step_us: 1_000_000, capture: false };
    run(&Scenario::from_toml(text, "test").unwrap(), 1, &options, || false).unwrap()
}

const OSCORE: &str = "protection = \"oscore\"";
/// As many bytes as OSCORE adds: option with flags, number and ID of a byte each, code, marker and 8 that prove it authentic; in a response
/// an empty option.
const AS_MANY: &str = "protection = { request = \"14 B\", response = \"11 B\" }";

/// Twenty clients of a slow cell with loss in both directions, all of whose requests fit numbers of one byte.
fn cell(preset: &str, keys: &str, server: &str) -> String {
    format!(
        "
[path]
profile = \"nbiot-anrw18\"
uplink.loss = {{ kind = \"bernoulli\", rate = 0.1 }}
downlink.loss = {{ kind = \"bernoulli\", rate = 0.1 }}
[server]
payload = \"20 B\"
{server}
[run]
until = \"1 h\"
[[clients]]
count = 20
controller = \"{preset}\"
token_length = 2
nstart = 2
request_payload = \"30 B\"
uri_path = \"r\"
{keys}
[clients.workload]
kind = \"poisson\"
rate = \"0.1 /s\"
requests = 60
"
    )
}

/// What everybody did and when, but for what messages have inside.
fn course(mut outcome: Outcome) -> String {
    outcome.packets.iter_mut().for_each(|row| (row.offset, row.length) = (None, 0));
    outcome.flows.iter_mut().for_each(|row| row.body_bytes = 0);
    format!("{:?} {:?} {:?} {:?}", outcome.flows, outcome.exchanges, outcome.evidence, outcome.packets)
}

/// Message IDs, tokens, options that name copies, acknowledgements and times lie outside of the protection: to controllers, calm servers
/// and relays a protected message is a longer one.
#[test]
fn to_every_controller_a_protected_message_is_one_that_is_longer() {
    let relay = "[[relays]]\nname = \"gateway\"\nbefore = \"uplink\"\ncopies = \"withheld\"\n";
    let mut withheld = 0;
    for preset in Preset::all() {
        for (server, relay) in [("", ""), ("duplicates = \"calm\"", ""), ("", relay)] {
            let [protected, longer] = [OSCORE, AS_MANY].map(|keys| {
                // So slow that copies meet their originals in its queue.
                let slow = "profile = \"nbiot-anrw18\"\nuplink.rate = \"2 kbit/s\"";
                go(&(cell(preset.name(), keys, server).replace("profile = \"nbiot-anrw18\"", slow) + relay))
            });
            withheld += protected.relays.iter().map(|row| row.withheld_packets).sum::<u64>();
            assert_eq!(protected.relays, longer.relays);
            let [protected, longer] = [protected, longer].map(course);
            assert!(protected.len() > 1_000_000, "{} bytes", protected.len());
            assert!(protected == longer, "{} {server} {relay}", preset.name());
        }
    }
    assert!(withheld > 0);
}

/// Retransmissions take no number of their own: no request is taken for a replay, and the
/// answers to copies are the ones that are stored.
#[test]
fn nothing_fails_under_loss_that_would_not_fail_in_the_clear() {
    let [clear, protected] = ["", OSCORE].map(|keys| go(&cell("rfc7252", keys, "")));
    for outcome in [&clear, &protected] {
        let retransmissions: u32 = outcome.flows.iter().map(|row| row.retransmissions).sum();
        assert!(retransmissions > 200, "{retransmissions}");
    }
    assert_eq!(protected.summary.answered + protected.summary.failed, 1_200);
    assert!(
        protected.summary.failed <= clear.summary.failed + 5,
        "{} {}",
        protected.summary.failed,
        clear.summary.failed
    );
}

/// A server that would carry copies out afresh has to store answers: it could tell copies from replays in no other way.
#[test]
fn a_server_that_would_take_copies_afresh_stores_answers() {
    let afresh = "duplicates = \"afresh\"";
    assert!(course(go(&cell("rfc7252", OSCORE, afresh))) == course(go(&cell("rfc7252", AS_MANY, ""))));
    let from = "[[timeline]]\nkind = \"server\"\nat = \"1 min\"\nduplicates = \"afresh\"\n";
    let [protected, stored] = [(OSCORE, from), (AS_MANY, "")].map(|(keys, event)| cell("rfc7252", keys, "") + event);
    assert!(course(go(&protected)) == course(go(&stored)));
}

/// Numbers go on behind the bound that was stored, so that a device which forgot everything repeats none.
#[test]
fn a_power_cut_repeats_no_number() {
    let cut = "[[timeline]]\nkind = \"restart\"\nat = \"2 min\"\nevery = \"2 min\"\n";
    let [clear, protected] = ["", OSCORE].map(|keys| go(&(cell("calm", keys, "") + cut)).summary);
    assert_eq!(protected.arrivals, clear.arrivals);
    // What is open at a cut fails in any case.
    assert!(protected.failed <= clear.failed + 20, "{} {}", protected.failed, clear.failed);
    assert!(protected.answered > 900, "{}", protected.answered);
}

#[test]
fn clients_with_and_without_share_a_server() {
    let both = cell("rfc7252", OSCORE, "")
        + &cell("rfc7252", "", "").split_once("[[clients]]").map(|(_, group)| format!("[[clients]]{group}")).unwrap();
    let outcome = go(&both);
    for group in [0, 1] {
        let rows = || outcome.flows.iter().filter(|row| row.group == group);
        assert_eq!(rows().map(|row| row.arrivals).sum::<u32>(), 1_200);
        assert!(rows().map(|row| row.answered).sum::<u32>() > 1_150);
    }
}

/// Blocks and their numbers are inside, so that nothing between the two can cut or ask for them.
#[test]
fn bodies_in_blocks_come_as_in_the_clear() {
    let body = |keys: &str| {
        let text = cell("rfc7252", keys, "").replace("payload = \"20 B\"", "payload = \"1 kB\"");
        go(&text
            .replace("request_payload = \"30 B\"\n", "transfer = { kind = \"blocks\", size = \"128 B\" }\n")
            .replace("nstart = 2", "")
            .replace("requests = 60", "requests = 5"))
    };
    let [clear, protected] = ["", OSCORE].map(body);
    for outcome in [&clear, &protected] {
        assert_eq!(outcome.summary.answered + outcome.summary.failed, 100);
        assert!(outcome.summary.answered > 90);
        let bytes: u64 = outcome.flows.iter().map(|row| row.body_bytes).sum();
        assert!(bytes >= 1_000 * outcome.summary.answered);
    }
}

#[test]
fn observers_are_notified_under_the_registration() {
    let told = |keys: &str| {
        let text = cell("rfc7252", keys, "controller = \"rfc7252\"");
        let (head, _) = text.split_once("[clients.workload]").unwrap();
        let told = "{ workload = { kind = \"periodic\", period = \"10 s\" }, confirmable = false }";
        go(&(head.replace("until = \"1 h\"", "for = \"10 min\"") + &format!("workload = []\nnotifications = {told}\n")))
            .summary
    };
    let [clear, protected] = ["", OSCORE].map(&told);
    assert!(clear.answered > 900, "{}", clear.answered);
    assert_eq!(protected.arrivals, clear.arrivals);
    assert!(protected.answered.abs_diff(clear.answered) < 20, "{} {}", protected.answered, clear.answered);
}

/// Devices forget and register again while the server works on their registration and has news for the token before.
#[test]
fn observers_that_register_again_before_a_slow_server_are_notified() {
    let told = |keys: &str| {
        let text = cell("rfc7252", keys, "controller = \"rfc7252\"\nhost_time = \"1 s\"");
        let (head, _) = text.split_once("[clients.workload]").unwrap();
        let news = "workload = []\nnotifications = { workload = { kind = \"periodic\", period = \"500 ms\" } }\n";
        let cut = "[[timeline]]\nkind = \"restart\"\nat = \"1 min\"\nevery = \"1 min\"\n";
        go(&(head.replace("until = \"1 h\"", "for = \"10 min\"") + news + cut)).summary
    };
    let [clear, protected] = ["", OSCORE].map(told);
    assert!(protected.answered > 1_000, "{}", protected.answered);
    assert!(
        protected.answered.abs_diff(clear.answered) < clear.answered / 5,
        "{} {}",
        protected.answered,
        clear.answered
    );
}

#[test]
fn what_is_not_known_under_oscore_is_refused_with_its_place() {
    let refused = |text: &str| Scenario::from_toml(text, "test").unwrap_err().to_string();
    let place = "test: clients[0].protection: `oscore` is known over UDP, without bursts, proxies and commands: leave this key out";
    let plain = |more: &str| {
        cell("rfc7252", &format!("{OSCORE}\n{more}"), "controller = \"rfc7252\"").replace("nstart = 2\n", "")
    };
    let tcp = plain("transport = \"tcp\"").replace("controller = \"rfc7252\"", "").replace("token_length = 2\n", "");
    assert_eq!(refused(&tcp), place);
    let in_bursts = "transfer = { kind = \"bursts\", size = \"64 B\" }";
    let bursts = plain(in_bursts).replace("request_payload = \"30 B\"\n", "");
    assert_eq!(refused(&bursts), place);
    assert_eq!(refused(&plain("commands = { workload = { kind = \"periodic\", period = \"1 min\" } }")), place);
    let (_, group) = bursts.split_once("[[clients]]").unwrap();
    let beside = cell("rfc7252", OSCORE, "") + "[[clients]]" + &group.replace(OSCORE, "");
    let why = "a server with contexts takes no bursts, and other clients fetch in bursts: leave this key out";
    assert_eq!(refused(&beside), format!("test: clients[0].protection: {why}"));
    let word = refused(&cell("rfc7252", "protection = \"oscor\"", ""));
    assert!(word.contains("oscore"), "{word}");
}

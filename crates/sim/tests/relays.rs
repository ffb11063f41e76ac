//! Relays: what becomes of copies of messages that still wait, by plain arithmetic, and what a scenario may not say of them.

mod path;

use millpond_sim::{Options, Outcome, RelayRow, Scenario, TraceKind, run};

/// Bytes of a request, headers included.
const REQUEST: u64 = 38;

fn go(text: &str) -> Outcome {
    let options = Options { traces: TraceKind::ALL.to_vec(), trace_step_us: 1_000_000, capture: true };
    run(&Scenario::from_toml(text, "test").unwrap(), 1, &options, || false).unwrap()
}

fn relay(before: &str, copies: &str) -> String {
    format!("[[relays]]\nname = \"gateway\"\nbefore = \"{before}\"\ncopies = \"{copies}\"\n")
}

/// One client that sends copies after 1, 3 and 7 s over an uplink that takes 3.8 s for a request.
fn one_client(relay: &str) -> Outcome {
    go(&format!(
        "{relay}
[path.uplink]
rate = \"80 bit/s\"
delay = \"0 s\"
queue = \"10 packets\"
[path.downlink]
rate = \"1 Mbit/s\"
delay = \"0 s\"
queue = \"10 packets\"
[[clients]]
count = 1
exchanges = 1
controller = {{ preset = \"rfc7252\", ack-timeout = \"1 s\", random-factor = 1 }}
[run]
for = \"60 s\"
"
    ))
}

fn row(passed: u64, withheld: u64) -> RelayRow {
    RelayRow {
        relay: "gateway".into(),
        link: "uplink".into(),
        passed_packets: passed,
        passed_bytes: passed * REQUEST,
        withheld_packets: withheld,
        withheld_bytes: withheld * REQUEST,
    }
}

#[test]
fn a_copy_goes_no_further_while_the_one_before_it_waits() {
    let outcome = one_client(&relay("uplink", "withheld"));
    assert_eq!(outcome.relays, [row(1, 2)]);
    assert_eq!(outcome.links[0].offered_packets, 1);
    assert_eq!((outcome.flows[0].transmissions, outcome.summary.answered), (3, 1));
    let kinds: Vec<_> = outcome.packets.iter().filter(|packet| *packet.link == *"uplink").map(|p| p.event).collect();
    assert_eq!(kinds, ["enq", "withheld", "withheld", "recv"]);
    let capture = String::from_utf8_lossy(outcome.capture.as_deref().unwrap()).matches("withheld").count();
    assert_eq!(capture, 2, "copies in the capture that say why they did not arrive");
}

#[test]
fn a_relay_that_passes_copies_changes_nothing() {
    let (with, without) = (one_client(&relay("uplink", "passed")), one_client(""));
    assert_eq!(with.relays, [row(3, 0)]);
    assert_eq!(Outcome { relays: Vec::new(), ..with }, without);
}

#[test]
fn a_copy_passes_once_the_one_before_it_has_left() {
    // The request leaves the queue after 38 ms and is lost; its copies find nothing that waits.
    let text = relay("uplink", "withheld")
        + "[path.uplink]\nrate = \"8 kbit/s\"\ndelay = \"2 s\"\nqueue = \"10 packets\"\n\
           loss = { kind = \"bernoulli\", rate = 0.999 }\n\
           [path.downlink]\nrate = \"1 Mbit/s\"\ndelay = \"0 s\"\nqueue = \"10 packets\"\n\
           [[clients]]\ncount = 1\nexchanges = 1\ncontroller = \"rfc7252\"\n";
    assert_eq!(go(&text).relays, [row(5, 0)]);
}

#[test]
fn further_links_have_relays_too_and_half_duplex_ones_know_the_ways_apart() {
    // Behind a fast link a medium that stands in both directions: requests and answers with the same message ID share it.
    let text = relay("medium", "withheld")
        + "[network]\nup = [\"access\", \"medium\"]\ndown = [\"medium\", \"access\"]\n\
           [network.links.access]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"10 packets\"\n\
           [network.links.medium]\nrate = \"80 bit/s\"\ndelay = \"0 s\"\nqueue = \"10 packets\"\n\
           [[clients]]\ncount = 1\nexchanges = 1\ncontroller = { preset = \"rfc7252\", ack-timeout = \"1 s\", random-factor = 1 }\n";
    let outcome = go(&text);
    let [row] = &outcome.relays[..] else { panic!("{:?}", outcome.relays) };
    // 3.8 s for the request, with copies after 1 and 3 s, then 9.4 s for the answer, in which copies wait behind it.
    assert_eq!((row.passed_packets, row.withheld_packets), (3, 2));
    assert_eq!(outcome.summary.answered, 1);
}

/// Requests of 103 B on an uplink of 30 kbit/s where nothing is dropped: what 400 clients keep in its queue takes 11 s.
fn crowd(relay: &str, controller: &str) -> u64 {
    let text = path::path("1410000 B")
        .replace("60 kbit/s", "was up")
        .replace("30 kbit/s", "60 kbit/s")
        .replace("was up", "30 kbit/s");
    let text = format!(
        "{relay}{text}\n[[clients]]\ncount = 400\nexchanges = 20\ncontroller = \"{controller}\"\nrequest_payload = \"64 B\"\n\
         [server]\npayload = \"0 B\"\n"
    );
    let outcome = run(&Scenario::from_toml(&text, "test").unwrap(), 1, &Options::default(), || false).unwrap();
    let mut times: Vec<_> = outcome.flows.iter().map(|flow| flow.fct_us.unwrap()).collect();
    times.sort_unstable();
    times[200] / 1_000_000
}

#[test]
fn a_gateway_ends_the_collapse_of_an_uplink() {
    // 8,000 requests of 103 B at 30 kbit/s.
    let bound = 8_000 * 103 * 8 / 30_000;
    let (without, with) = (crowd("", "rfc7252"), crowd(&relay("uplink", "withheld"), "rfc7252"));
    assert!(without > 3 * bound, "{without} s where the link needs {bound} s");
    assert!(with < bound + bound / 10, "{with} s where the link needs {bound} s");
}

#[test]
fn what_a_scenario_may_not_say_of_relays() {
    let path = path::path("2500 B") + "[[clients]]\ncount = 1\ncontroller = \"rfc7252\"\n";
    let told = |relays: &str| {
        let text = format!("{relays}\n{path}");
        Scenario::from_toml(&text, "test").unwrap_err().to_string()
    };
    let twice = |second: &str| relay("uplink", "passed") + &relay(second, "passed");
    let cases = [
        (relay("upling", "passed"), "relays[0].before: unknown link `upling`: did you mean `uplink`?"),
        (relay("uplink", "hold"), "unknown value `hold` (known here: passed, withheld)"),
        (relay("uplink", "passed").replace("gateway", "a gateway"), "relays[0].name: `a gateway` is no name"),
        (twice("downlink"), "relays[1].name: another relay is called `gateway` already"),
        (
            twice("uplink").replacen("gateway", "first", 1),
            "relays[1].before: `first` has the queue of `uplink` already",
        ),
        (relay("uplink", "passed") + "queue = \"10 B\"\n", "queue"),
    ];
    for (relays, expected) in cases {
        let told = told(&relays);
        assert!(told.contains(expected), "{told}");
    }
    let refused = |text: &str| Scenario::from_toml(text, "test").unwrap_err().to_string();
    let mesh = relay("uplink", "passed")
        + "[mesh]\ntopology = \"chain-17\"\n[[clients]]\ncontroller = \"rfc7252\"\nsink = \"primary\"\n";
    assert!(refused(&mesh).contains("relays: in a [mesh] every node hands packets on"), "{}", refused(&mesh));
    let shared = relay("backhaul", "withheld")
        + "[network]\nup = [\"backhaul\"]\ndown = [\"backhaul\"]\nshared = [\"backhaul\"]\n\
           [network.links.backhaul]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"10 packets\"\n\
           [[clients]]\ncount = 1\ncontroller = \"rfc7252\"\n";
    assert!(refused(&shared).contains("relays[0].before: sites share `backhaul`"), "{}", refused(&shared));
}

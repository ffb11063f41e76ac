//! Handshakes below CoAP and what protection adds to messages, by plain arithmetic, and what a scenario may not say of them.

use millpond_sim::{Options, Outcome, Scenario, TraceKind, run};

fn go(text: &str) -> Outcome {
    let options = Options { traces: TraceKind::ALL.to_vec(), trace_step_us: 1_000_000, capture: true };
    run(&Scenario::from_toml(text, "test").unwrap(), 1, &options, || false).unwrap()
}

/// A client that sends a report of 10 B after a handshake, over a path of 0.1 s each way.
fn described(keys: &str, script: &str) -> String {
    format!(
        "
[path.uplink]
rate = \"1 Mbit/s\"
delay = \"100 ms\"
queue = \"10 packets\"
[path.downlink]
rate = \"1 Mbit/s\"
delay = \"100 ms\"
queue = \"10 packets\"
[server]
payload = \"20 B\"
[[clients]]
count = 1
controller = {{ preset = \"rfc7252\", random-factor = 1 }}
token_length = 2
{keys}
[[clients.workload]]
kind = \"after-event\"
script = [{script} {{ method = \"POST\", path = \"r\", payload = \"10 B\" }}]
"
    )
}

const TWO: &str = "{ flights = { up = \"67 B\", down = \"60 B\" } }, { flights = { up = \"99 B\", down = \"88 B\" } },";
/// Headers below CoAP; header, token, path, marker and payload of the request; header, token, format, marker and payload of
/// the response.
const BELOW: u64 = 28;
const REQUEST: u64 = BELOW + 4 + 2 + 2 + 1 + 10;
const RESPONSE: u64 = BELOW + 4 + 2 + 1 + 1 + 20;

fn bytes(outcome: &Outcome) -> [u64; 2] {
    ["uplink", "downlink"].map(|name| outcome.links.iter().find(|row| row.link == *name).unwrap().offered_bytes)
}

#[test]
fn a_handshake_takes_its_flights_and_a_round_trip_for_each_pair() {
    let plain = go(&described("", ""));
    assert_eq!(bytes(&plain), [REQUEST, RESPONSE]);
    let shaken = go(&described("", TWO));
    assert_eq!(bytes(&shaken), [REQUEST + 67 + 99 + 2 * BELOW, RESPONSE + 60 + 88 + 2 * BELOW]);
    let (before, after) = (plain.flows[0].fct_us.unwrap(), shaken.flows[0].fct_us.unwrap());
    let extra = after - before;
    assert!((400_000..410_000).contains(&extra), "{extra}");
    assert_eq!((shaken.flows[0].transmissions, shaken.summary.answered), (3, 3));
    // All of it completes something.
    assert_eq!(shaken.links.iter().map(|row| row.useful_bytes).sum::<u64>(), bytes(&shaken).iter().sum::<u64>());
}

/// RFC 6347 §4.2.4.1: 1 s at first, twice as long each time, at most 60 s; and nobody gives up.
#[test]
fn a_flight_that_nobody_answers_is_sent_again_after_twice_as_long_each_time() {
    let text = described("max_retransmit = 0", TWO)
        + "[[timeline]]\nkind = \"outage\"\nat = \"1 us\"\nfor = \"200 s\"\nlink = \"downlink\"\n";
    let outcome = go(&text);
    let sent = outcome.packets.iter().filter(|packet| *packet.link == *"uplink" && packet.event == "enq");
    let sent: Vec<_> = sent.map(|packet| packet.t_us / 1_000_000).take(10).collect();
    assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63, 123, 183, 200]);
    assert_eq!(outcome.summary.answered, 3);
}

/// A calm server withholds answers to copies of requests; to flights it answers each time.
#[test]
fn what_becomes_of_copies_of_requests_is_nothing_to_flights() {
    let slow = |duplicates: &str| {
        let text = described("", TWO).replace("\"1 Mbit/s\"", "\"1 kbit/s\"");
        go(&text.replace("payload = \"20 B\"", &format!("payload = \"20 B\"\nduplicates = \"{duplicates}\"")))
    };
    let answers = |outcome: &Outcome| {
        let sent = outcome.packets.iter().filter(|packet| *packet.link == *"downlink" && packet.event == "enq");
        sent.filter(|packet| packet.exchange < 2).count()
    };
    let [stored, calm] = ["stored", "calm"].map(slow);
    assert!(answers(&stored) > 2);
    assert_eq!(answers(&stored), answers(&calm));
}

#[test]
fn protection_makes_messages_longer_by_what_it_says() {
    let protected = "protection = { request = \"15 B\", response = \"11 B\" }";
    assert_eq!(bytes(&go(&described(protected, ""))), [REQUEST + 15, RESPONSE + 11]);
    // A marker comes with the first byte of payload (RFC 7252 §3).
    let empty = |keys: &str| {
        let text = described(keys, "").replace("payload = \"10 B\"", "payload = \"0 B\"");
        bytes(&go(&text.replace("payload = \"20 B\"", "payload = \"0 B\"")))
    };
    assert_eq!(empty(""), [REQUEST - 11, RESPONSE - 21]);
    assert_eq!(empty(protected), [REQUEST - 11 + 15, RESPONSE - 21 + 11]);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let refused = |text: &str| Scenario::from_toml(text, "test").unwrap_err().to_string();
    let short = described("", "{ flights = { up = \"5 B\", down = \"60 B\" } },");
    assert_eq!(refused(&short), "test: clients[0].workload.script[0].flights: 5 B is no flight: write 13 B to 65000 B");
    let both = described("", "{ path = \"x\", flights = { up = \"67 B\", down = \"60 B\" } },");
    assert!(refused(&both).ends_with("script[0].flights: flights are no request: leave method, path and payload out"));
    let stream = described("transport = \"tcp\"", TWO).replace("controller =", "# ");
    assert!(refused(&stream).contains("clients[0].workload: flights go over UDP"), "{}", refused(&stream));
    let much = described("protection = { request = \"15 B\", response = \"2 kB\" }", "");
    assert_eq!(refused(&much), "test: clients[0].protection.response: 2000 B: write 1 B to 1000 B");
}

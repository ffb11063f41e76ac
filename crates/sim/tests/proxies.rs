//! Proxies: what their two sides take, by plain arithmetic, and what a scenario may not say of them.

use millpond_sim::{Options, Outcome, ProxyRow, Scenario, Site, TraceKind, run, run_sites};

const LINKS: &str = r#"
[network]
up = ["radio-up"]
down = ["radio-down"]
[network.links.radio-up]
rate = "8 kbit/s"
delay = "0 s"
queue = "10 kB"
[network.links.radio-down]
rate = "8 kbit/s"
delay = "0 s"
queue = "10 kB"
"#;

/// A proxy behind a backhaul with this delay each way, these keys more of its uplink, and these of its own.
fn proxy(delay: &str, uplink: &str, own: &str) -> String {
    format!(
        r#"{LINKS}
[network.links.backhaul-up]
rate = "8 kbit/s"
delay = "{delay}"
queue = "100 kB"
{uplink}
[network.links.backhaul-down]
rate = "8 kbit/s"
delay = "{delay}"
queue = "100 kB"
[[proxies]]
name = "gateway"
route = {{ up = ["backhaul-up"], down = ["backhaul-down"] }}
controller = {{ preset = "rfc7252", ack-timeout = "1 s", random-factor = 1 }}
{own}
"#
    )
}

fn clients(count: u32, keys: &str) -> String {
    format!(
        r#"
[[clients]]
count = {count}
exchanges = 1
via = "gateway"
controller = {{ preset = "rfc7252", ack-timeout = "1 s", random-factor = 1 }}
{keys}
"#
    )
}

fn go(text: &str) -> Outcome {
    let options = Options { traces: TraceKind::ALL.to_vec(), trace_step_us: 1_000_000, capture: true };
    run(&Scenario::from_toml(text, "test").unwrap(), 1, &options, || false).unwrap()
}

fn row(outcome: &Outcome) -> ProxyRow {
    assert_eq!(outcome.proxies.len(), 1);
    outcome.proxies[0].clone()
}

fn quiet() -> ProxyRow {
    ProxyRow { proxy: "gateway".into(), requests: 1, answered: 1, transmissions: 1, held_max: 1, ..ProxyRow::default() }
}

#[test]
fn a_request_crosses_both_sides_once() {
    let outcome = go(&(proxy("0 s", "", "") + &clients(1, "")));
    // 38 B, with a token of its own 40, and an answer of 96 and 94, a millisecond each.
    assert_eq!(outcome.flows[0].fct_us, Some(268_000));
    assert_eq!(row(&outcome), quiet());
    let bytes = |link: &str| {
        let row = outcome.links.iter().find(|row| row.link == link).unwrap();
        assert_eq!(row.useful_bytes, row.delivered_bytes, "{link}");
        row.delivered_bytes
    };
    assert_eq!(["radio-up", "backhaul-up", "backhaul-down", "radio-down"].map(bytes), [38, 40, 96, 94]);
    assert_eq!((outcome.summary.delivered, outcome.summary.answered), (1, 1));
}

/// The server is two seconds away, and both sides wait for one: the proxy asks again, the client has been told to wait.
#[test]
fn who_was_acknowledged_asks_no_more() {
    let outcome = go(&(proxy("1 s", "", "") + &clients(1, "")));
    assert_eq!(outcome.flows[0].transmissions, 1);
    // A separate response has no shorter header: a message of its own, and two bytes are the token's on the other side alone.
    assert_eq!(outcome.flows[0].fct_us, Some(2_268_000));
    assert_eq!(row(&outcome), ProxyRow { transmissions: 2, retransmissions: 1, unnecessary: 1, ..quiet() });
    // Without a proxy the client asks again by itself.
    let both = r#"route = { up = ["radio-up", "backhaul-up"], down = ["backhaul-down", "radio-down"] }"#;
    let text = proxy("1 s", "", "") + &clients(1, both);
    let straight = text.replace("via = \"gateway\"\n", "");
    let straight =
        &straight.replace(&straight[straight.find("[[proxies]]").unwrap()..straight.find("[[clients]]").unwrap()], "");
    assert_eq!(go(straight).flows[0].transmissions, 2);
}

/// A request of which the acknowledgement gets lost comes again, and is not asked for again.
#[test]
fn copies_of_what_it_has_taken_go_no_further() {
    let text = proxy("2 s", "", "") + &clients(1, "");
    let text = text.replace(
        "[network.links.radio-down]\n",
        "[network.links.radio-down]\nloss = { kind = \"bernoulli\", rate = 0.7 }\n",
    );
    let mut copies = 0;
    for seed in 0..20 {
        let scenario = Scenario::from_toml(&text, "test").unwrap();
        let outcome = run(&scenario, seed, &Options::default(), || false).unwrap();
        assert_eq!(row(&outcome).requests, 1);
        copies += outcome.flows[0].retransmissions;
    }
    assert!(copies > 10, "{copies}");
}

#[test]
fn a_client_learns_that_nobody_answered() {
    let lossy = "loss = { kind = \"bernoulli\", rate = 0.9999 }";
    let outcome = go(&(proxy("0 s", lossy, "max_retransmit = 1") + &clients(1, "")));
    assert_eq!(row(&outcome), ProxyRow { answered: 0, failed: 1, transmissions: 2, retransmissions: 1, ..quiet() });
    assert_eq!((outcome.summary.failed, outcome.summary.answered, outcome.summary.delivered), (1, 0, 0));
    // After 1 and 2 s, and by the radio: long before the client would have given up, after 31 s.
    assert!(outcome.summary.simulated_us < 4_000_000, "{}", outcome.summary.simulated_us);
}

#[test]
fn what_it_has_no_room_for_is_refused() {
    let outcome = go(&(proxy("0 s", "", "application_queue = 1") + &clients(3, "")));
    assert_eq!(row(&outcome), ProxyRow { requests: 3, refused: 2, ..quiet() });
    assert_eq!((outcome.summary.failed, outcome.summary.answered), (2, 1));
}

#[test]
fn it_has_as_many_open_as_it_may() {
    for (nstart, most) in [(1, 40), (4, 160)] {
        let text = proxy("5 s", "", &format!("nstart = {nstart}\napplication_queue = 10")) + &clients(6, "");
        let outcome = go(&text);
        let up = outcome.links.iter().find(|row| row.link == "backhaul-up").unwrap();
        assert!(up.queue_max_bytes <= most, "{nstart}: {}", up.queue_max_bytes);
        assert_eq!(row(&outcome).held_max, 6);
        assert_eq!(outcome.summary.answered, 6);
    }
}

#[test]
fn messages_that_nobody_acknowledges_are_handed_on_as_such() {
    let outcome = go(&(proxy("1 s", "", "") + &clients(1, "confirmable = false")));
    assert_eq!(row(&outcome), quiet());
    assert_eq!(outcome.flows[0].fct_us, Some(2_268_000));
}

/// Some are behind it, some are not; all their books are right, with traces and a capture.
#[test]
fn others_ask_the_server_themselves() {
    let straight = r#"route = { up = ["radio-up", "backhaul-up"], down = ["backhaul-down", "radio-down"] }"#;
    let others = clients(5, straight).replace("via = \"gateway\"\n", "");
    let text = proxy("100 ms", "", "nstart = 2") + &clients(7, "token_length = 1\nnstart = 2") + &others;
    let text = text.replace("exchanges = 1\n", "exchanges = 6\n");
    let outcome = go(&text);
    assert_eq!((outcome.summary.arrivals, outcome.summary.answered), (72, 72));
    assert_eq!(row(&outcome).requests, 42);
    assert_eq!(outcome.summary.delivered, 72);
}

#[test]
fn the_warm_up_is_left_out_of_its_counts() {
    let text = proxy("0 s", "", "")
        + &clients(1, "workload = { kind = \"periodic\", period = \"10 s\", phase = \"1 s\" }")
        + "[run]\nfor = \"100 s\"\nwarm_up = \"50 s\"\n";
    assert_eq!(row(&go(&text)), ProxyRow { requests: 5, answered: 5, transmissions: 5, ..quiet() });
}

/// Sites with a proxy each behind a backhaul that they share: as many requests as when each is alone.
#[test]
fn proxies_of_many_sites_share_a_backhaul() {
    let text = proxy("100 ms", "", "") + &clients(3, "");
    let text = text.replace("[network]\n", "[network]\nshared = [\"backhaul-up\", \"backhaul-down\"]\n");
    let scenario = Scenario::from_toml(&text, "test").unwrap();
    let sites: Vec<_> = (1..=4).map(|seed| Site { scenario: &scenario, seed }).collect();
    let mut told = 0;
    run_sites(
        &sites,
        1,
        || false,
        |_, outcome| {
            assert_eq!(row(&outcome).requests, 3);
            assert_eq!(outcome.summary.answered, 3);
            told += 1;
        },
    )
    .unwrap();
    assert_eq!(told, 4);
}

#[test]
fn equal_requests_that_are_open_together_are_one() {
    // Twenty of 38 ms each come while the first is on its way for 936 ms.
    for (own, transmissions) in [("nstart = 20", 20), ("nstart = 20\ncoalesce = true", 1)] {
        let outcome = go(&(proxy("400 ms", "", own) + &clients(20, "")));
        let asked = row(&outcome);
        assert_eq!((asked.requests, asked.answered, asked.held_max), (20, 20, 20), "{own}");
        assert_eq!(asked.transmissions - asked.retransmissions, transmissions, "{own}");
        assert_eq!((outcome.summary.delivered, outcome.summary.answered), (20, 20), "{own}");
    }
    // What changes something is asked for as often as it is wanted.
    let put = "request_payload = \"1 B\"";
    let text = proxy("400 ms", "", "nstart = 20\ncoalesce = true\ncache = \"1 MB\"") + &clients(20, put);
    let asked = row(&go(&text));
    assert_eq!(asked.transmissions - asked.retransmissions, 20);
}

/// Of ten requests, 10 s apart, those within Max-Age of the first, a minute, get its answer.
#[test]
fn what_is_kept_ages_by_virtual_time() {
    let ten = clients(1, "workload = { kind = \"periodic\", period = \"10 s\", phase = \"1 s\" }")
        + "[run]\nfor = \"100 s\"\n";
    let ten = ten.replace("exchanges = 1\n", "");
    for (own, transmissions, bytes) in [("", 10, 940), ("cache = \"1 MB\"", 2, 956), ("cache = \"100 B\"", 10, 940)] {
        let outcome = go(&(proxy("0 s", "", own) + &ten));
        assert_eq!(row(&outcome), ProxyRow { requests: 10, answered: 10, transmissions, ..quiet() }, "{own}");
        assert_eq!((outcome.summary.delivered, outcome.summary.answered), (10, 10), "{own}");
        // 94 bytes each, and with the two of Max-Age 96.
        let down = outcome.links.iter().find(|row| row.link == "radio-down").unwrap();
        assert_eq!((down.delivered_bytes, down.useful_bytes), (bytes, bytes), "{own}");
    }
}

#[test]
fn a_full_queue_says_when_to_ask_again() {
    let outcome = go(&(proxy("0 s", "", "queue = 2") + &clients(4, "")));
    assert_eq!(
        row(&outcome),
        ProxyRow { requests: 4, answered: 3, refused: 1, transmissions: 3, held_max: 3, ..quiet() }
    );
    assert_eq!((outcome.summary.failed, outcome.summary.answered), (1, 3));
    // 5.03 with Max-Age 4: two wait, and nothing is known of how long a request takes but what is assumed, 2 s.
    let is_refusal = |bytes: &[u8]| matches!(bytes, [0xa3, _, _, 0xd1, 1, 4]);
    assert!(outcome.capture.unwrap().windows(6).any(is_refusal));
}

/// One asks for eight things at once, and another for one.
#[test]
fn clients_take_turns() {
    let eight = "nstart = 8\ntoken_length = 1\nworkload = { kind = \"backlog\", requests = 8 }";
    let both = clients(1, eight).replace("exchanges = 1\n", "") + &clients(1, "");
    let waits = |own: &str| go(&(proxy("0 s", "", own) + &both)).flows[1].fct_us.unwrap();
    let (behind_all, in_turn) = (waits(""), waits("queue = 50"));
    // Its request comes when two of the eight are answered: four exchanges of 136 ms and more stood before it, and do not.
    assert!(in_turn + 4 * 136_000 <= behind_all, "{in_turn} us, {behind_all} us");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let own = "nstart = 2\ncoalesce = true\ncache = \"1 kB\"\nqueue = 3";
    let lossy = "loss = { kind = \"bernoulli\", rate = 0.2 }";
    let text =
        proxy("300 ms", lossy, own) + &clients(9, "") + &clients(9, "uri_path = \"b\"\nrequest_payload = \"1 B\"");
    let text = text.replace("exchanges = 1\n", "exchanges = 5\n");
    let [one, other] = [go(&text), go(&text)];
    assert!(row(&one).refused > 0 && row(&one).retransmissions > 0);
    assert_eq!((row(&one), one.summary, one.capture), (row(&other), other.summary, other.capture));
}

#[test]
fn what_a_scenario_may_not_say() {
    let refused = |text: &str| Scenario::from_toml(text, "test").unwrap_err().to_string();
    let good = proxy("0 s", "", "") + &clients(1, "");
    let change = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        refused(&good.replace(from, to))
    };
    for (from, to, told) in [
        ("via = \"gateway\"", "via = \"gatewya\"", "clients[0].via: unknown proxy `gatewya`"),
        ("gateway", "a b", "`a b` is no name"),
        ("queue = \"100 kB\"", "queue = \"39 B\"", "network.links.backhaul-up.queue: 39 B are shorter than a packet"),
        ("queue = \"100 kB\"", "queue = \"100 kB\"\nmtu = \"95 B\"", "a packet of clients[0] has 96 B"),
        ("via = \"gateway\"\n", "", "proxies[0].name: nobody is behind it: write via = \"gateway\""),
        ("up = [\"backhaul-up\"]", "up = []", "proxies[0].route.up: a route that leads nowhere"),
        ("up = [\"backhaul-up\"]", "up = [\"backhaul\"]", "proxies[0].route.up: unknown link `backhaul`"),
        ("via = \"gateway\"", "via = \"gateway\"\nmax_retransmit = 61", "clients[0].max_retransmit: 61 is too many"),
        ("[[clients]]", "nstart = 0\n[[clients]]", "proxies[0].nstart: 0 exchanges at once are none"),
        (
            "[[clients]]",
            "nstart = 2\ntoken_length = 0\n[[clients]]",
            "proxies[0].nstart: 2 requests at once need tokens",
        ),
        (
            "[[clients]]",
            "nstart = 2\napplication_queue = 1\n[[clients]]",
            "proxies[0].application_queue: those under way",
        ),
        ("[[clients]]", "cache = \"0 B\"\n[[clients]]", "proxies[0].cache: 0 B hold no answer"),
        ("[[clients]]", "queue = 0\n[[clients]]", "proxies[0].queue: 0 requests cannot wait"),
        ("[[clients]]", "queue = 9\napplication_queue = 9\n[[clients]]", "proxies[0].queue: application_queue bounds"),
        ("[[clients]]", "max_retransmit = 61\n[[clients]]", "proxies[0].max_retransmit: 61 is too many"),
        ("[[clients]]", "max_retransmits = 1\n[[clients]]", "max_retransmit"),
        (
            "via = \"gateway\"",
            "via = \"gateway\"\ntransfer = { kind = \"blocks\", size = \"64 B\" }",
            "clients[0].transfer: a proxy forwards requests over UDP whose bodies are whole",
        ),
    ] {
        let line = change(from, to);
        assert!(line.contains(told), "{to}: {line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
    let section = &good[good.find("[[proxies]]").unwrap()..good.find("[[clients]]").unwrap()];
    let twice = good.replacen(section, &section.repeat(2), 1);
    assert!(refused(&twice).contains("another proxy is called `gateway` already"));
    let protected = good.replacen("via = ", "protection = \"oscore\"\nvia = ", 1);
    assert!(refused(&protected).contains("clients[0].protection: `oscore` is known over UDP, without bursts, proxies"));
    let none = good.replace(section, "");
    let line = refused(
        &none.replace("down = [\"radio-down\"]", "down = [\"radio-down\", \"backhaul-up\", \"backhaul-down\"]"),
    );
    assert!(
        line.contains("clients[0].via: there is no proxy: add a table [[proxies]] with name = \"gateway\""),
        "{line}"
    );
    let path = "[path]\nprofile = \"nbiot-anrw18\"\n".to_owned() + &good[good.find("[[proxies]]").unwrap()..];
    assert!(refused(&path).contains("a proxy has links on both of its sides: write [network]"), "{}", refused(&path));
}

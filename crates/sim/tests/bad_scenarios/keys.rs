//! Keys, values, paths, transports and what is missing.

use millpond_sim::{Options, Scenario, TraceKind, run};

use crate::{GOOD, tells};

#[test]
fn the_good_scenario_is_good() {
    let scenario = Scenario::from_toml(GOOD, "test.toml").unwrap();
    let again = Scenario::from_json(&scenario.to_json(), "test.json").unwrap();
    assert_eq!(scenario, again);
    assert_eq!(scenario.to_json(), again.to_json());
}

#[test]
fn misspelt_keys_are_refused_with_the_nearest() {
    tells("queue = \"2500 B\"", "quue = \"2500 B\"", &[":8:", "unknown key `quue`", "did you mean `queue`?"]);
    tells("[server]", "[servr]", &["unknown key `servr`", "`server`"]);
    tells("count = 4", "cuont = 4", &["`cuont`", "did you mean `count`?"]);
    tells("duplicates =", "duplicate =", &["did you mean `duplicates`?"]);
    tells("title =", "zzzzzzzzz =", &["unknown key `zzzzzzzzz` (known here:"]);
    tells("\"bernoulli\"", "\"bernouli\"", &["unknown value `bernouli`", "did you mean `bernoulli`?"]);
    tells("\"afresh\"", "\"fresh\"", &["unknown value `fresh`", "did you mean `afresh`?"]);
    tells("count = 4", "count = 4\nnaming = \"tokens\"", &["unknown value `tokens`", "did you mean `token`?"]);
    tells("[server]", "[server]\nechoes = [\"counts\"]", &["unknown value `counts`", "did you mean `count`?"]);
    tells("count = 4", "count = 4\ntoken_lenght = 8", &["did you mean `token_length`?"]);
    tells("header =", "queue_counts = \"all\"\nheader =", &["unknown key `queue_counts`"]);
    tells("[path.downlink]", "queue_counts = \"al\"\n[path.downlink]", &["did you mean `all`?"]);
}

#[test]
fn misspelt_keys_are_refused_in_json_too() {
    let scenario = Scenario::from_toml(GOOD, "test.toml").unwrap();
    let told = Scenario::from_json(&scenario.to_json().replace("\"rate\":\"30", "\"rte\":\"30"), "a plan").unwrap_err();
    assert!(told.to_string().contains("did you mean `rate`?"), "{told}");
}

#[test]
fn wrong_units_and_ranges_are_refused() {
    tells("30 kbit/s", "30 kbps", &[":10:", "unknown unit `kbps`", "kbit/s"]);
    tells("\"30 kbit/s\"", "30000", &[":10:", "write \"30 kbit/s\""]);
    tells("30 kbit/s", "0 bit/s", &["a rate of 0 carries nothing"]);
    tells("8 packets", "8", &["no unit"]);
    tells("8 packets", "0 packets", &["holds not even"]);
    tells("delay = \"215 ms\"", "delay = \"2 h\"", &["path.uplink.delay", "at most"]);
    tells("from = \"0 ms\"", "from = \"20 ms\"", &["path.downlink.jitter", "put the smaller first"]);
    tells("rate = 0.02", "rate = 2", &["path.downlink.loss.rate", "fraction from 0 to 1"]);
    tells("rate = 0.02", "rate = nan", &["path.downlink.loss.rate"]);
    tells("rate = 0.02", "rate = 1", &["path.downlink.loss", "loses everything", "\"1 %\""]);
    tells("rate = 0.02", "rate = \"0.02\"", &["write 0.02 without quotes"]);
    tells("header = \"28 B\"", "header = \"2 MB\"", &["path.header"]);
}

#[test]
fn a_share_is_a_probability() {
    let of = |rate: &str| Scenario::from_toml(&GOOD.replace("rate = 0.02", rate), "test.toml").unwrap().to_json();
    assert!(GOOD.contains("rate = 0.02"));
    assert_eq!(of("rate = \"2 %\""), of("rate = 0.02"));
}

/// The longest packets that really travel in each direction, and a queue of a byte less.
#[test]
fn a_queue_that_a_packet_never_fits_is_refused_with_the_bytes() {
    let path = r#"
        [path.uplink]
        rate = "1 Mbit/s"
        delay = "1 ms"
        queue = "UP"
        [path.downlink]
        rate = "1 Mbit/s"
        delay = "1 ms"
        queue = "DOWN"
        [[clients]]
        count = 1
        exchanges = 1
    "#;
    let udp = "controller = \"rfc7252\"\n";
    for (clients, server, exact) in [
        (udp, "", true),
        ("controller = \"rfc7252\"\ntoken_length = 8\nrequest_payload = \"79 B\"", "payload = \"0 B\"", true),
        ("controller = \"rfc7252\"\ntoken_length = 1", "payload = \"900 B\"\ncontent_format = 11542", true),
        ("controller = \"rfc7252\"\ntransfer = { kind = \"blocks\", size = \"64 B\" }", "payload = \"1500 B\"", true),
        ("controller = \"rfc7252\"\ntransfer = { kind = \"blocks\", size = \"64 B\" }", "payload = \"64 B\"", true),
        ("controller = \"rfc7252\"\ntransfer = { kind = \"bursts\", size = \"64 B\" }", "payload = \"1500 B\"", false),
        ("transport = \"tcp\"", "payload = \"1500 B\"", true),
        ("transport = \"tcp\"\ntoken_length = 2\nrequest_payload = \"300 B\"", "payload = \"100 B\"", true),
    ] {
        let read = |up: &str, down: &str| {
            let text = path.replace("UP", up).replace("DOWN", down);
            Scenario::from_toml(&format!("{text}{clients}\n[server]\n{server}"), "test")
        };
        let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
        let outcome = run(&read("9 kB", "9 kB").unwrap(), 1, &options, || false).unwrap();
        let longest = |link: &str| outcome.packets.iter().filter(|p| p.link == link).map(|p| p.bytes).max().unwrap();
        for (link, bytes) in [("uplink", longest("uplink")), ("downlink", longest("downlink"))] {
            let with = |bytes: u32| match link {
                "uplink" => read(&format!("{bytes} B"), "9 kB"),
                _ => read("9 kB", &format!("{bytes} B")),
            };
            assert!(with(bytes).is_ok(), "{clients}: {link} of {bytes} B holds every packet");
            let told = with(if exact { bytes - 1 } else { bytes / 3 }).unwrap_err().to_string();
            assert!(told.contains(&format!("path.{link}.queue")), "{clients}: {told}");
            assert!(!exact || told.contains(&format!("which has {bytes} B")), "{clients}: {told}");
        }
    }
}

#[test]
fn a_message_longer_than_the_path_carries_is_refused_unless_it_comes_in_blocks() {
    let mtu = "rate = \"30 kbit/s\"\nmtu = \"127 B\"";
    let long = GOOD.replace("rate = \"30 kbit/s\"", mtu).replace("[server]", "[server]\npayload = \"200 B\"");
    let told = Scenario::from_toml(&long, "test.toml").unwrap_err().to_string();
    for part in ["path.downlink.mtu", "clients[0] has 234 B", "127 B", "transfer = { kind = \"blocks\""] {
        assert!(told.contains(part), "{told:?} does not say {part:?}");
    }
    let blocks = "count = 4\ntransfer = { kind = \"blocks\", size = \"64 B\" }";
    assert!(Scenario::from_toml(&long.replace("count = 4", blocks), "test.toml").is_ok());
    tells("delay = \"415 ms\"", "delay = \"415 ms\"\nmtu = \"20 B\"", &["path.downlink.mtu", "at least 68 B"]);
}

#[test]
fn what_is_missing_is_named() {
    tells("[[clients]]\ncount = 4\ncontroller = \"rfc7252\"", "", &["missing key `clients`"]);
    tells("rate = \"60 kbit/s\"\n", "", &["missing key `rate`"]);
    tells("controller = \"rfc7252\"\n", "", &["missing key `controller`"]);
}

#[test]
fn unknown_controllers_are_refused_with_the_list() {
    tells("\"rfc7252\"", "\"coco\"", &["unknown controller `coco`", "rfc7252", "cocoa-03"]);
    tells("\"rfc7252\"", "\"default_fb1\"", &["did you mean `default-fb1`?"]);
    tells("\"rfc7252\"", "{ preset = \"rfc7252\", max-wiat = \"60 s\" }", &["`max-wiat`", "did you mean `max-wait`?"]);
    tells("\"rfc7252\"", "{ max-wait = \"60 s\" }", &["preset"]);
    tells("\"rfc7252\"", "{ preset = \"rfc7252\", max-wait = \"60\" }", &["no unit"]);
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    tells("count = 4", "count = ", &["test.toml:16"]);
    tells("count = 4", "count = 4\ncount = 5", &["test.toml:17"]);
}

#[test]
fn a_response_that_fits_no_datagram_is_refused() {
    tells("[server]", "[server]\npayload = \"70 kB\"", &["server.payload", "does not fit"]);
    tells("[server]", "[server]\nhost_time = \"2 s\"", &["server.host_time"]);
}

#[test]
fn a_request_that_fits_no_datagram_is_refused() {
    tells("count = 4", "count = 4\ntoken_length = 9", &["clients[0].token_length", "0 to 8"]);
    tells("count = 4", "count = 4\nrequest_payload = \"65 kB\"", &["clients[0].request_payload", "does not fit"]);
    tells("count = 4", "count = 4\nbatch = { from = 1, to = 9, near_end = \"scale\" }", &["did you mean `scaled`?"]);
    tells("count = 4", "count = 4\nbatch = { from = 1, to = 9, memory = \"base-rt\" }", &["did you mean `base-rtt`?"]);
}

#[test]
fn transports_and_transfers_must_go_together() {
    let tcp = |keys: &str| format!("count = 4\ntransport = {{ kind = \"tcp\"{keys} }}");
    let without = |keys: &str| GOOD.replace("controller = \"rfc7252\"\n", "").replace("count = 4", &tcp(keys));
    let told = |text: &str| Scenario::from_toml(text, "test.toml").unwrap_err().to_string();
    assert!(Scenario::from_toml(&without(""), "test.toml").is_ok());
    tells("controller = \"rfc7252\"\n", "", &["clients[0]", "missing key `controller`", "transport = \"tcp\""]);
    tells("count = 4", &tcp(""), &["clients[0].controller", "TCP brings its own", "leave this key out"]);
    tells("count = 4", "count = 4\ntransport = \"tpc\"", &["test.toml:", "unknown transport `tpc`", "`tcp`?"]);
    tells("count = 4", "count = 4\ntransport = 3", &["`udp`, `tcp`, or a table"]);
    tells("count = 4", "count = 4\ntransport = { kind = \"quic\" }", &["unknown value `quic`", "udp, tcp"]);
    for (keys, parts) in [
        (", congestion = \"newreno\"", ["unknown value `newreno`", "did you mean `new-reno`?"]),
        (", congestion = \"bbr\", recovery = \"inflation\"", ["clients[0].transport.recovery", "leave this key out"]),
        (", opne_ahead = \"3 s\"", ["unknown key `opne_ahead`", "did you mean `open_ahead`?"]),
        (", mss = \"4 B\"", ["clients[0].transport.mss", "out of range"]),
        (", rto_max = \"100 ms\"", ["clients[0].transport.rto_max", "bound"]),
        (", initial_window = 0", ["clients[0].transport.initial_window", "1 to 1000"]),
        (" }\nnaming = \"count\"\nbatch = { from = 1, to = 2", ["clients[0].naming", "leave this key out"]),
        (
            " }\ntransfer = { kind = \"blocks\", size = \"256 B\"",
            ["clients[0].transfer", "over TCP a body is one message"],
        ),
    ] {
        let told = told(&without(keys));
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }
    let blocks = |keys: &str| format!("count = 4\ntransfer = {{ kind = \"blocks\", {keys} }}");
    tells(
        "count = 4",
        "count = 4\ntransfer = \"blocks\"",
        &["needs a size", "{ kind = \"blocks\", size = \"256 B\" }"],
    );
    tells("count = 4", "count = 4\ntransfer = \"block\"", &["unknown transfer `block`", "did you mean `blocks`?"]);
    tells("count = 4", &blocks("size = \"250 B\""), &["clients[0].transfer.size", "no size of a block", "256"]);
    tells("count = 4", &blocks("siez = \"256 B\""), &["unknown key `siez`", "did you mean `size`?"]);
    tells(
        "count = 4",
        &blocks("size = \"16 B\" }\nrequest_payload = \"1 B\"\nbatch = { from = 1, to = 2"),
        &["request_payload", "GET"],
    );
    tells("[server]", "[server]\npayload = \"102400 B\"", &["server.payload", "does not fit a datagram", "blocks"]);
    tells("[server]", "[server]\npayload = \"17 MB\"", &["server.payload", "too large"]);
}

#[test]
fn defaults_of_transport_and_transfer_are_not_written() {
    let text = Scenario::from_toml(GOOD, "test.toml").unwrap().to_json();
    assert!(!text.contains("transport") && !text.contains("transfer"), "{text}");
    let spelt = GOOD.replace("count = 4", "count = 4\ntransport = { kind = \"udp\" }\ntransfer = { kind = \"whole\" }");
    assert_eq!(Scenario::from_toml(&spelt, "test.toml").unwrap().to_json(), text);
    let tcp = GOOD.replace("controller = \"rfc7252\"", "transport = \"tcp\"");
    let tcp = Scenario::from_toml(&tcp, "test.toml").unwrap();
    let written = tcp.to_json();
    assert!(written.contains(r#""transport":{"kind":"tcp","congestion":"new-reno""#), "{written}");
    assert_eq!(Scenario::from_json(&written, "test.json").unwrap(), tcp);
    let blocks = GOOD.replace("count = 4", "count = 4\ntransfer = { kind = \"blocks\", size = \"256 B\" }");
    let written = Scenario::from_toml(&blocks, "test.toml").unwrap().to_json();
    assert!(written.contains(r#""transfer":{"kind":"blocks","size":"256 B","negotiation":"late"}"#), "{written}");
}

//! What a scenario must not say, and what the user is told: one line with the place and the mend.

use millpond_sim::{Options, Scenario, TraceKind, run};

const GOOD: &str = r#"
title = "a test"
[path]
header = "28 B"
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "2500 B"
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "8 packets"
jitter = { from = "0 ms", to = "10 ms" }
loss = { kind = "bernoulli", rate = 0.02 }
[[clients]]
count = 4
controller = "rfc7252"
[server]
duplicates = "afresh"
"#;

/// The complaint about the good scenario with one text replaced.
fn complaint(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?} is not in the scenario");
    let told = Scenario::from_toml(&GOOD.replacen(from, to, 1), "test.toml").unwrap_err().to_string();
    assert!(!told.contains('\n'), "more than one line: {told}");
    assert!(told.starts_with("test.toml"), "does not name its place: {told}");
    told
}

#[track_caller]
fn tells(from: &str, to: &str, parts: &[&str]) {
    let told = complaint(from, to);
    for part in parts {
        assert!(told.contains(part), "{told:?} does not say {part:?}");
    }
}

#[test]
fn the_good_scenario_is_good() {
    let scenario = Scenario::from_toml(GOOD, "test.toml").unwrap();
    let again = Scenario::from_json(&scenario.to_json(), "test.json").unwrap();
    assert_eq!(scenario, again);
    assert_eq!(scenario.to_json(), again.to_json());
}

/// The complaint about what the server is to send to a group.
#[track_caller]
fn from_server(group: &str, server: &str, parts: &[&str]) {
    let good = GOOD.replace("[server]", &format!("[server]\n{server}"));
    let text = good.replace("count = 4", &format!("count = 4\n{group}"));
    let told = Scenario::from_toml(&text, "test.toml").unwrap_err().to_string();
    assert!(!told.contains('\n') && told.starts_with("test.toml"), "{told}");
    for part in parts {
        assert!(told.contains(part), "{told:?} does not say {part:?}");
    }
}

#[test]
fn a_rate_of_requests_is_so_many_in_a_time() {
    let with = |keys: &str| format!("count = 4\nworkload = {{ kind = \"poisson\", {keys} }}");
    for rate in ["5", "5 /fortnight", "0 /s", "-1 /s", "NaN /s", "1e9 /s", "many /s", "/s"] {
        tells("count = 4", &with(&format!("rate = \"{rate}\"")), &[rate, "is no rate", "`6 /h`"]);
    }
    tells("count = 4", &with("rate = \"5 /s\", interval = \"1 s\""), &["write one of the two"]);
    let periodic = "count = 4\nworkload = { kind = \"periodic\", rate = \"5 /s\" }";
    tells("count = 4", periodic, &["`periodic` has no `rate`"]);
}

#[test]
fn what_the_server_cannot_send_is_refused() {
    let own = "controller = \"rfc7252\"";
    let commands = "commands = { workload = { kind = \"after-event\", arrival = \"at-once\" } }";
    let notifications = "notifications = { workload = { kind = \"periodic\", period = \"1 min\", requests = 3 } }";
    from_server("", own, &["server.controller", "the server sends nothing by itself", "leave this key out"]);
    from_server(commands, "", &["server.controller", "missing key", "clients[0].commands", "rfc7252"]);
    from_server(notifications, own, &["clients[0].token_length", "write token_length = 2"]);
    from_server("workload = \"none\"", "", &["clients[0].workload", "nobody does anything"]);
    from_server("commands = {}", own, &["workload"]);
    from_server("commands = { wrkload = \"continuous\" }", own, &["did you mean `workload`?"]);
    from_server("commands = { workload = \"none\" }", own, &["clients[0].commands.workload", "nobody does anything"]);
    from_server("commands = { workload = \"random\" }", own, &["clients[0].commands.workload", "a client's to do"]);
    let endless = "commands = { workload = { kind = \"periodic\", period = \"1 min\" } }";
    from_server(endless, own, &["clients[0].commands.workload", "without end"]);
    let transfer = format!("transfer = {{ kind = \"blocks\", size = \"64 B\" }}\n{commands}");
    from_server(&transfer, own, &["clients[0].commands", "are told nothing"]);
    let nstart = format!("{own}\nnstart = 3");
    from_server(commands, &nstart, &["server.nstart", "write token_length = 2"]);
    from_server(commands, &format!("{own}\nnstart = 0"), &["server.nstart", "write at least 1"]);
    from_server(commands, &format!("{own}\ntoken_length = 9"), &["server.token_length", "(0 to 8)"]);
    from_server(commands, &format!("{own}\nmax_retransmit = 61"), &["server.max_retransmit", "at most 60"]);
    let long = "commands = { workload = { kind = \"after-event\" }, response_payload = \"1 MB\" }";
    from_server(long, own, &["clients[0].commands.response_payload", "does not fit a datagram"]);
    let token = "token_length = 2";
    let with = |rest: &str| format!("{token}\nnotifications = {{ {rest} }}");
    let script = with("workload = { kind = \"backlog\", requests = 2, script = [ {} ] }");
    from_server(&script, own, &["clients[0].notifications.workload", "leave `script` out"]);
    let plain = with("workload = { kind = \"backlog\", requests = 2 }, confirmable = false");
    from_server(&plain, own, &["clients[0].notifications.workload", "write confirmable = true"]);
    let long = with("workload = { kind = \"backlog\", requests = 2 }, payload = \"1 MB\"");
    from_server(&long, own, &["clients[0].notifications.payload", "does not fit a datagram"]);
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
fn what_sends_nothing_is_refused() {
    tells("count = 4", "count = 0", &["clients[0].count", "at least 1"]);
    tells("count = 4", "count = -4", &["test.toml:16"]);
    tells("count = 4", "count = 4\nexchanges = 0", &["clients[0].exchanges"]);
    tells("count = 4", "count = 4\nbatch = { from = 3, to = 2 }", &["clients[0].batch", "from ≤ to"]);
    tells("[server]", "[run]\nuntil = \"0 s\"\n[server]", &["run.until"]);
    tells("count = 4", "count = 4\nmax_retransmit = 61", &["clients[0].max_retransmit"]);
    tells("count = 4", "count = 4294967295\nexchanges = 1", &["clients", "at most"]);
    tells("count = 4", "count = 4000000\nexchanges = 4000000", &["exchanges in all"]);
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

#[test]
fn workloads_that_cannot_be_are_refused() {
    let with = |workload: &str| format!("count = 4\nworkload = {workload}");
    for (workload, parts) in [
        ("\"continous\"", ["unknown workload `continous`", "did you mean `continuous`?"]),
        ("\"periodic\"", ["`periodic` needs a period", "period = \"1 h\""]),
        ("[]", ["clients[0].workload", "nobody does anything"]),
        ("{ period = \"1 h\" }", ["missing key `kind`", "periodic"]),
        ("{ kind = \"perodic\", period = \"1 h\" }", ["unknown kind `perodic`", "did you mean `periodic`?"]),
        ("{ kind = \"periodic\", perod = \"1 h\" }", ["unknown key `perod`", "did you mean `period`?"]),
        ("{ kind = \"poisson\", period = \"1 h\" }", ["a workload of kind `poisson` has no `period`", "interval"]),
        ("{ kind = \"poisson\" }", ["missing key `interval`", "interval = \"1 h\""]),
        (
            "{ kind = \"periodic\", period = \"1 h\" }",
            ["clients[0].workload", "a workload without end in a run without end"],
        ),
        ("\"backlog\"", ["clients[0].workload", "write `for` in [run]"]),
        ("{ kind = \"periodic\", period = \"0 s\", requests = 1 }", ["clients[0].workload.period", "for ever"]),
        ("{ kind = \"poisson\", interval = \"0 s\", requests = 1 }", ["clients[0].workload.interval", "for ever"]),
        (
            "{ kind = \"periodic\", period = \"1 s\", jitter = \"2 s\", requests = 1 }",
            ["clients[0].workload.jitter", "longer than the period"],
        ),
        (
            "{ kind = \"periodic\", period = [ { share = 0.5, period = \"1 s\" } ], requests = 1 }",
            ["clients[0].workload.period", "0.5, not 1"],
        ),
        ("{ kind = \"continuous\", requests = 0 }", ["clients[0].workload.requests", "0 requests"]),
        (
            "{ kind = \"continuous\", think = { kind = \"uniform\", from = \"2 s\", to = \"1 s\" } }",
            ["clients[0].workload.think", "from ≤ to"],
        ),
        (
            "{ kind = \"after-event\", arrival = { kind = \"beta\", over = \"10 s\", alpha = 0, beta = 4 } }",
            ["clients[0].workload.arrival", "1 to 32"],
        ),
        ("{ kind = \"after-event\", arrival = \"beta\" }", ["`beta` needs a time", "alpha = 3"]),
        ("{ kind = \"after-event\", arrival = \"30\" }", ["30", "no unit"]),
        ("[ \"continuous\", \"fresh-batches\" ]", ["clients[0].workload[1]", "let them stand alone"]),
        (
            "{ kind = \"continuous\", payload = { kind = \"pareto\", alpha = 0.0, from = \"1 B\", to = \"9 B\" } }",
            ["clients[0].workload.payload", "alpha = 0"],
        ),
    ] {
        tells("count = 4", &with(workload), &parts);
    }
}

#[test]
fn what_cannot_be_open_or_wait_is_refused() {
    for (keys, parts) in [
        ("nstart = 0", ["clients[0].nstart", "at least 1"]),
        ("nstart = 2", ["clients[0].nstart", "need tokens: write token_length = 2"]),
        ("nstart = 300\ntoken_length = 1", ["clients[0].nstart", "write token_length = 2"]),
        ("nstart = 40000\ntoken_length = 2", ["clients[0].nstart", "use up all message IDs"]),
        ("nstart = 2\ntransfer = { kind = \"blocks\", size = \"64 B\" }", ["clients[0].nstart", "leave this key out"]),
        ("nstart = 4\ntoken_length = 2\napplication_queue = 3", ["clients[0].application_queue", "which is 4"]),
        (
            "confirmable = false\ntransfer = { kind = \"blocks\", size = \"64 B\" }",
            ["clients[0].confirmable", "leave this key out"],
        ),
    ] {
        tells("count = 4", &format!("count = 4\n{keys}"), &parts);
    }
}

#[test]
fn events_have_their_place_in_the_run() {
    let with = |keys: &str| {
        format!("count = 4\nname = \"meters\"\ncontroller = \"rfc7252\"\n[[timeline]]\n{keys}\n[[clients]]\ncount = 1")
    };
    for (keys, parts) in [
        ("kind = \"restart\"\nat = \"0 s\"", ["timeline[0].at", "0 s is the start"]),
        ("kind = \"restart\"\nat = \"-1 s\"", [":", "`-1 s` is not a time"]),
        ("kind = \"restart\"\nat = \"25 h\"", ["timeline[0].at", "not before the end of the run (1 d)"]),
        ("kind = \"restrat\"\nat = \"1 s\"", ["unknown value `restrat`", "did you mean `restart`?"]),
        ("kind = \"alarm\"\nat = \"1 s\"", ["timeline[0].kind", "nobody waits for this alarm"]),
        ("kind = \"alarm\"\nat = \"1 s\"\nclients = \"metres\"", ["timeline[0].clients", "did you mean `meters`?"]),
        (
            "kind = \"restart\"\nat = \"2 s\"\n[[timeline]]\nkind = \"restart\"\nat = \"1 s\"",
            ["timeline[1].at", "write them in order"],
        ),
        (
            "kind = \"restart\"\nat = \"1 s\"\nback = { kind = \"beta\", over = \"10 s\", alpha = 3, beta = 40 }",
            ["timeline[0].back", "1 to 32"],
        ),
    ] {
        tells("count = 4", &with(keys), &parts);
    }
    tells("[server]", "[run]\nfor = \"0 s\"\n[server]", &["run.for", "no time"]);
    tells("[server]", "[run]\nfor = \"1 h\"\nwarm_up = \"1 h\"\n[server]", &["run.warm_up", "not before the end"]);
    tells(
        "[server]",
        "start_spread = \"61 min\"\n[run]\nfor = \"1 h\"\n[server]",
        &["clients[0].start_spread: 61 min is longer than the run (1 h)", "write at most \"1 h\""],
    );
    tells(
        "count = 4",
        "count = 4\ncontroller = \"rfc7252\"\n[[timeline]]\nkind = \"alarm\"\nat = \"1 s\"\nclients = \"all\"\n[[clients]]\ncount = 1",
        &["no group has a name"],
    );
}

#[test]
fn what_never_comes_within_the_run_is_refused() {
    let lasts = |keys: &str| format!("[run]\n{keys}\n[server]");
    tells(
        "[server]",
        &lasts("for = \"1 h\"\nuntil = \"10 min\""),
        &["run.until: 10 min is before the end that `for` names (1 h)", "leave it out, or write at least \"1 h\""],
    );
    let group = |keys: &str, run: &str| format!("{keys}\n[run]\n{run}\n[server]");
    let late = "{ kind = \"periodic\", period = \"1 min\", phase = \"1 h\" }";
    let told = ["phase: 1 h is not before the end of the run (1 h)", "nothing is born", "or a longer run"];
    let both = |place: &'static str| [&[place], &told[..]].concat();
    tells("[server]", &group(&format!("workload = {late}"), "for = \"1 h\""), &both("clients[0].workload.phase"));
    let bounded = late.replace(" }", ", requests = 3 }");
    tells("[server]", &group(&format!("workload = {bounded}"), "until = \"1 h\""), &both("clients[0].workload.phase"));
    let second = format!("workload = [ \"continuous\", {late} ]");
    tells("[server]", &group(&second, "for = \"1 h\""), &both("clients[0].workload[1].phase"));
    let late = "{ kind = \"periodic\", period = \"1 min\", phase = \"1 d\", requests = 3 }";
    for (keys, what) in [("", "commands"), ("token_length = 2\n", "notifications")] {
        let place = format!("clients[0].{what}.workload.phase: 1 d is not before the end of the run (1 d)");
        from_server(&format!("{keys}{what} = {{ workload = {late} }}"), "controller = \"rfc7252\"", &[&place]);
    }
    tells(
        "[server]",
        &group(&format!("workload = {}", late.replace(" }", ", for = \"30 min\" }")), "for = \"2 h\""),
        &[
            "clients[0].workload.phase: 1 d is not before the end of the workload's own `for` (30 min)",
            "nothing is born",
        ],
    );
}

#[test]
fn what_may_come_within_the_run_is_read() {
    let reads = |keys: &str, run: &str| {
        let text = GOOD.replace("[server]", &format!("{keys}\n[run]\n{run}\n[server]"));
        let scenario = Scenario::from_toml(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Scenario::from_json(&scenario.to_json(), "test.json").unwrap(), scenario);
    };
    // A run may be longer than the limit that nobody wrote, and a limit may lie beyond.
    reads("", "for = \"2 d\"");
    reads("", "for = \"1 h\"\nuntil = \"2 h\"");
    // The last beat that fits; a rhythm of the clock whose `for` counts from a later start; periods, waits and arrivals
    // of which some come too late.
    reads("workload = { kind = \"periodic\", period = \"1 s\", phase = \"3599 s\" }", "for = \"1 h\"");
    let aligned = "{ kind = \"periodic\", period = \"1 h\", phase = \"30 min\", aligned = true, for = \"10 min\" }";
    reads(&format!("start_spread = \"40 min\"\nworkload = {aligned}"), "for = \"1 h\"");
    reads("workload = { kind = \"periodic\", period = \"1 d\" }", "for = \"1 h\"");
    reads("workload = { kind = \"continuous\", think = \"2 h\" }", "for = \"1 h\"");
    for arrival in ["\"2 h\"", "{ kind = \"exponential\", mean = \"1 d\" }"] {
        reads(&format!("workload = {{ kind = \"after-event\", arrival = {arrival} }}"), "for = \"1 h\"");
    }
}

#[test]
fn old_workloads_are_written_as_ever_and_new_ones_in_full() {
    let json = |workload: &str| {
        let text = GOOD.replace("count = 4", &format!("count = 4\nworkload = {workload}"));
        let scenario = Scenario::from_toml(&text, "test.toml").unwrap();
        let written = scenario.to_json();
        assert_eq!(Scenario::from_json(&written, "test.json").unwrap(), scenario, "{written}");
        written
    };
    assert!(json("\"continuous\"").contains(r#""workload":"continuous""#));
    for name in ["\"random\"", "\"fresh-batches\""] {
        assert!(json(name).contains(r#""workload":"random""#));
    }
    let plain = json("\"continuous\"");
    for key in ["nstart", "confirmable", "application_queue", "timeline", "warm_up", "\"for\"", "\"name\""] {
        assert!(!plain.contains(key), "{plain}");
    }
    let periodic = json("{ kind = \"periodic\", period = \"1 d\", requests = 3 }");
    let full = r#"{"kind":"periodic","period":"1 d","jitter":"0 s","aligned":false,"burst":1,"requests":3}"#;
    assert!(periodic.contains(full), "{periodic}");
    assert!(
        json("[ \"continuous\", { kind = \"poisson\", interval = \"1 h\", for = \"1 d\" } ]")
            .contains(r#"["continuous",{"#)
    );
    let scripted =
        "{ kind = \"after-event\", arrival = \"30 s\", script = [ { method = \"DELETE\", path = \"a/b\" } ] }";
    assert!(json(scripted).contains(r#""arrival":{"kind":"uniform","over":"30 s"}"#), "{}", json(scripted));
}

//! Workloads, events, and what the server sends.

use millpond_sim::Scenario;

use crate::{GOOD, tells};

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
    let told = ["phase: 1 h is not before the end of the run (1 h)", "no request arrives", "or a longer run"];
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
            "no request arrives",
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

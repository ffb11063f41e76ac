//! Responses of a length of their own for each group, and a download over TCP beside CoAP.

use millpond_sim::{Options, Outcome, Scenario, run};

const PATH: &str = "[path.uplink]\nrate = \"100 kbit/s\"\ndelay = \"50 ms\"\nqueue = \"100 kB\"\n\
                    [path.downlink]\nrate = \"100 kbit/s\"\ndelay = \"50 ms\"\nqueue = \"20 kB\"\n";
const COAP: &str = "[[clients]]\ncount = 5\nexchanges = 20\ncontroller = \"rfc7252\"\n";

fn scenario(clients: &str) -> Result<Scenario, String> {
    Scenario::from_toml(&format!("{PATH}{clients}"), "test.toml").map_err(|error| error.to_string())
}

fn go(clients: &str) -> Outcome {
    run(&scenario(clients).unwrap(), 1, &Options::default(), || false).unwrap()
}

#[test]
fn each_group_gets_responses_of_its_own_length() {
    let group = |keys: &str| format!("[[clients]]\ncount = 1\nexchanges = 10\ncontroller = \"rfc7252\"\n{keys}\n");
    let alone = go(&group("response_payload = \"500 B\""));
    // 28 B of header, 4 of CoAP, 1 of Content-Format, 1 of marker.
    assert_eq!(alone.links[1].delivered_bytes, 10 * (500 + 34));
    assert_eq!(go(&group("response_payload = \"60 B\"")), go(&group("")), "60 B is the server's");
    let both = go(&(group("response_payload = \"500 B\"") + &group("response_payload = \"0 B\"") + &group("")));
    assert_eq!(both.links[1].delivered_bytes, 10 * (534 + 33 + 94));
    let blocks = "transfer = { kind = \"blocks\", size = \"64 B\" }";
    let fetched = go(&group(&format!("response_payload = \"640 B\"\n{blocks}")));
    assert_eq!(fetched.summary.answered, 10);
    assert_eq!(fetched.links[1].delivered_packets, 100, "ten blocks each");
}

#[test]
fn a_download_over_tcp_beside_coap_fills_the_path_and_delays_the_others() {
    let tcp = |congestion: &str| {
        format!(
            "[[clients]]\ncount = 1\nexchanges = 1\nresponse_payload = \"300 kB\"\n\
             transport = {{ kind = \"tcp\", congestion = \"{congestion}\" }}\n"
        )
    };
    let quiet = go(COAP);
    let slowest = |outcome: &Outcome| outcome.flows.iter().filter(|flow| flow.group == 0).map(|f| f.fct_us).max();
    for congestion in ["new-reno", "cubic", "bbr"] {
        let beside = go(&format!("{COAP}{}", tcp(congestion)));
        assert_eq!(beside.summary.unfinished, 0, "{congestion}");
        let download = beside.flows.iter().find(|flow| flow.group == 1).and_then(|flow| flow.fct_us).unwrap();
        // 300 kB in segments of 256 B with 40 B of headers at 100 kbit/s.
        let least = 300_000.0 * 296.0 / 256.0 * 8.0 / 100_000.0;
        assert!(download as f64 / 1e6 > least, "{congestion}: {download}");
        assert!(slowest(&beside) > slowest(&quiet), "{congestion}");
        // What the download brought is that group's alone.
        let bytes = beside.links[1].delivered_bytes as f64;
        assert!(bytes > 300_000.0 * 296.0 / 256.0 && bytes < 450_000.0, "{congestion}: {bytes}");
    }
}

/// A resource, a group and a request may say how long a response is; the last of them counts.
#[test]
fn resources_and_requests_have_responses_of_their_own_length() {
    let script = |steps: &str| {
        format!(
            "[[clients]]\ncount = 1\ncontroller = \"rfc7252\"\n\
             workload = {{ kind = \"continuous\", requests = 6, script = [{steps}] }}\n"
        )
    };
    let steps = "{ path = \"a\" }, { path = \"/b/c\" }, { path = \"d\", response_payload = \"300 B\" }";
    let resources = "[server]\nresources = { \"b/c\" = \"200 B\", d = \"0 B\" }\n";
    let outcome = go(&(script(steps) + resources));
    assert_eq!(outcome.links[1].delivered_bytes, 2 * (94 + 234 + 334));
    assert_eq!(outcome.summary.answered, 6);
    let own = script(steps).replace("count = 1", "count = 1\nresponse_payload = \"10 B\"");
    assert_eq!(go(&(own + resources)).links[1].delivered_bytes, 2 * (44 + 44 + 334));
    let tcp = script(steps).replace("controller = \"rfc7252\"", "transport = \"tcp\"");
    assert_eq!(go(&(tcp + resources)).flows[0].body_bytes, 2 * (60 + 200 + 300));
}

/// An upload is a request that no datagram holds.
#[test]
fn an_upload_over_tcp_beside_coap_fills_the_uplink() {
    for (congestion, sack) in [("new-reno", false), ("cubic", true), ("bbr", true)] {
        let tcp = format!(
            "[[clients]]\ncount = 1\nexchanges = 1\nrequest_payload = \"300 kB\"\nresponse_payload = \"0 B\"\n\
             transport = {{ kind = \"tcp\", congestion = \"{congestion}\", sack = {sack} }}\n"
        );
        let beside = go(&format!("{COAP}{tcp}").replace("queue = \"100 kB\"", "queue = \"20 kB\""));
        assert_eq!(beside.summary.unfinished, 0, "{congestion}");
        let upload = beside.flows.iter().find(|flow| flow.group == 1).and_then(|flow| flow.fct_us).unwrap();
        let least = 300_000.0 * 296.0 / 256.0 * 8.0 / 100_000.0;
        assert!((least..2.0 * least).contains(&(upload as f64 / 1e6)), "{congestion}: {upload}");
        let bytes = beside.links[0].delivered_bytes as f64;
        assert!(bytes > 300_000.0 * 296.0 / 256.0 && bytes < 450_000.0, "{congestion}: {bytes}");
    }
}

#[test]
fn what_is_no_response_is_one_line() {
    let refused = |keys: &str| scenario(&format!("[[clients]]\ncount = 1\n{keys}\n")).unwrap_err();
    let told = refused("controller = \"rfc7252\"\nresponse_payload = \"70 kB\"");
    assert!(told.starts_with("test.toml: clients[0].response_payload: 70000 B does not fit a datagram"), "{told}");
    let told = refused("transport = \"tcp\"\nresponse_payload = \"17 MB\"");
    assert!(told.contains("clients[0].response_payload: 17000000 B is too large a body"), "{told}");
    let told = refused("controller = \"rfc7252\"\nworkload = \"none\"\nresponse_payload = \"1 B\"");
    assert!(told.contains("clients[0].response_payload: only a group that asks"), "{told}");
    let script = |steps: &str| {
        refused(&format!("controller = \"rfc7252\"\nworkload = {{ kind = \"backlog\", script = [{steps}] }}"))
    };
    let told = script("{ response_payload = \"1 B\" }, { path = \"hello\", response_payload = \"2 B\" }");
    assert!(told.contains("response_payload: `hello` answers 1 B and 2 B: write one size, or another path"), "{told}");
    let told = refused("controller = \"rfc7252\"\n[server]\nresources = { nobody = \"1 B\" }");
    assert!(told.contains("server.resources.nobody: nobody asks for it"), "{told}");
    let told = refused("controller = \"rfc7252\"\nrequest_payload = \"70 kB\"");
    assert!(told.contains("clients[0].request_payload: 70000 B does not fit a datagram"), "{told}");
    let told = refused("transport = \"tcp\"\nrequest_payload = \"17 MB\"");
    assert!(told.contains("clients[0].request_payload: 17000000 B is too large a body"), "{told}");
    let told = refused("transport = { kind = \"tcp\", sack = true, recovery = \"inflation\" }");
    assert!(told.contains("clients[0].transport.recovery: a window is inflated where nobody tells"), "{told}");
}

//! Every method, and what the program says of an answer.

use crate::program::{Server, fed, millpond};

#[test]
fn every_method_reaches_the_server() {
    let server = Server::start(&[]);
    let echo = server.at("/echo?a=1&b=%26");
    for (verb, code) in [
        ("get", "2.05"),
        ("post", "2.01"),
        ("put", "2.04"),
        ("delete", "2.02"),
        ("fetch", "2.05"),
        ("patch", "2.04"),
        ("ipatch", "2.04"),
    ] {
        let said = millpond(&[verb, "--json", "--ack-timeout", "20s", &echo]).json();
        assert_eq!(said["code"], code, "{verb}: {said}");
        assert_eq!(said["payload"], format!("{} /echo?a=1&b=&\n", verb.to_uppercase()), "{said}");
        assert_eq!(said["encoding"], "text", "{said}");
        assert_eq!((&said["copies"], &said["grade"]), (&1.into(), &"exact".into()), "{said}");
    }
}

#[test]
fn payloads_come_from_the_argument_a_file_or_standard_input() {
    let server = Server::start(&[]);
    let echo = server.at("/echo");
    assert_eq!(millpond(&["post", &echo, "hello"]).well(), "hello");
    assert_eq!(millpond(&["post", &echo, "@@hello"]).well(), "@hello");
    assert_eq!(millpond(&["post", &echo, "--", "-5"]).well(), "-5");
    assert_eq!(fed(&["post", &echo, "-"], b"from a pipe").well(), "from a pipe");
    let file = std::fs::read_to_string("Cargo.toml").expect("the crate's own file");
    assert_eq!(millpond(&["put", &echo, "@Cargo.toml"]).well(), file);
}

#[test]
fn formats_are_sent_by_name_and_shown_for_what_they_are() {
    let server = Server::start(&[]);
    let echo = server.at("/echo");
    let said = millpond(&["post", "--json", "-t", "json", &echo, "{\"a\": [1]}"]).json();
    assert_eq!((&said["content_format"], &said["payload"]["a"][0]), (&"application/json".into(), &1.into()));
    let pretty = millpond(&["post", "--pretty", "-t", "application/json", &echo, "{\"a\":[1]}"]);
    assert_eq!(pretty.well(), "{\n  \"a\": [\n    1\n  ]\n}\n");
    let piped = millpond(&["post", "-t", "50", &echo, "{\"a\":[1]}"]);
    assert_eq!(piped.well(), "{\"a\":[1]}");
    let cbor = fed(&["post", "--pretty", "-t", "cbor", &echo, "-"], b"\x82\x01\x61a");
    assert_eq!(cbor.well(), "[1, \"a\"]\n");
    let bytes = fed(&["post", "--json", "-t", "cbor", &echo, "-"], b"\x82\x01\x02").json();
    assert_eq!((&bytes["encoding"], &bytes["payload"]), (&"hex".into(), &"820102".into()));
}

#[test]
fn answers_over_ipv6_and_by_name_are_the_same() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return;
    }
    let server = Server::start(&["--bind", "::1"]);
    let port = server.at("").rsplit(':').next().expect("a port").to_owned();
    let by_name = format!("coap://localhost:{port}/hello");
    assert_eq!(millpond(&["get", &by_name]).well(), "Hello from Millpond.\n");
}

#[test]
fn what_is_not_the_format_that_was_wanted_is_not_sent() {
    let server = Server::start(&[]);
    for path in ["/hello", "/time", "/count", "/slow?seconds=0.01", "/large", "/echo"] {
        let said = millpond(&["get", "--accept", "json", &server.at(path)]);
        assert_eq!(said.code, Some(4), "{path}: {}", said.err);
        assert!(said.err.contains("4.06 Not Acceptable: this is text/plain; charset=utf-8"), "{path}: {}", said.err);
        assert_eq!(millpond(&["get", "--accept", "text", &server.at(path)]).code, Some(0), "{path}");
    }
    let json = ["post", "--accept", "json", "--content-format", "json", &server.at("/echo"), "{}"];
    assert_eq!(millpond(&json).well(), "{}");
}

#[test]
fn what_the_server_offers_is_told_as_links() {
    let server = Server::start(&[]);
    let said = millpond(&["get", "--pretty", &server.at("/.well-known/core")]);
    let links = said.well();
    for path in ["</hello>", "</time>", "</slow>", "</large>", "</echo>", "</count>"] {
        assert!(links.lines().any(|line| line.starts_with(path)), "{path} in\n{links}");
    }
    assert!(links.lines().any(|line| line.starts_with("</time>") && line.contains(";obs")), "{links}");
}

#[test]
fn code_options_and_round_trip_are_told_when_asked_for() {
    let server = Server::start(&[]);
    let said = millpond(&["get", "-v", "--accept", "text", "--option", "65000=0x0102", &server.at("/hello")]);
    said.well();
    for part in [
        "> GET coap://127.0.0.1:",
        ">   Accept: text/plain",
        ">   option 65000: 0x0102",
        "< 2.05 Content from 127.0.0.1:",
    ] {
        assert!(said.err.contains(part), "{part} in\n{}", said.err);
    }
}

#[test]
fn a_trace_tells_timer_reason_and_grade() {
    let server = Server::start(&[]);
    let said = millpond(&["get", "--trace", "--controller", "rfc7252", "--token", "a1b2", &server.at("/hello")]);
    said.well();
    let sent = said.err.lines().next().expect("a line");
    for part in ["-> CON GET id ", "token a1b2", "; timer 2.", " s (initial)"] {
        assert!(sent.contains(part), "{part} in {sent}");
    }
    assert!(said.err.contains("<- ACK 2.05 Content"), "{}", said.err);
    assert!(said.err.contains(", exact"), "{}", said.err);
}

#[test]
fn non_confirmable_requests_are_answered_too() {
    let server = Server::start(&[]);
    let said = millpond(&["get", "--non", "--trace", &server.at("/hello")]);
    assert_eq!(said.well(), "Hello from Millpond.\n");
    assert!(said.err.contains("-> NON GET"), "{}", said.err);
}

#[test]
fn a_slow_answer_comes_by_itself() {
    let server = Server::start(&[]);
    let said = millpond(&["get", "--trace", &server.at("/slow?seconds=3")]);
    assert_eq!(said.well(), "That took 3 s.\n");
    assert!(said.err.contains("<- ACK (empty)"), "{}", said.err);
    assert!(said.err.contains("<- CON 2.05 Content"), "{}", said.err);
    assert_eq!(said.traced("-> CON GET"), 1, "{}", said.err);
}

#[test]
fn ping_tells_round_trips() {
    let server = Server::start(&[]);
    let host = server.at("").replace("coap://", "");
    let said = millpond(&["ping", &host]);
    assert!(said.well().starts_with(&format!("{host}: answered in ")), "{}", said.well());
    let said = millpond(&["ping", "--json", &server.at("")]).json();
    assert!(said["round_trip_ms"].as_f64().is_some_and(|time| time > 0.0), "{said}");
}

#[test]
fn tcp_does_the_same() {
    let mut server = Server::start(&["--tcp"]);
    let tcp = server.line().replace("listening on ", "");
    assert!(tcp.starts_with("coap+tcp://127.0.0.1:"), "{tcp}");
    assert_eq!(millpond(&["get", &format!("{tcp}/hello")]).well(), "Hello from Millpond.\n");
    let body = "x".repeat(5_000);
    assert_eq!(fed(&["post", &format!("{tcp}/echo"), "-"], body.as_bytes()).well(), body);
}

#[test]
fn who_wants_no_response_is_told_that_it_was_sent_or_acknowledged() {
    let server = Server::start(&[]);
    let (echo, none) = (server.at("/echo"), server.at("/none/of/it"));
    for (flags, outcome) in [(&["--no-response"][..], "acknowledged"), (&["--no-response", "--non"], "sent")] {
        let plain = millpond(&[&["post"], flags, &[&echo, "hi"]].concat());
        assert_eq!((plain.well(), &plain.err[..]), ("", ""));
        let said = millpond(&[&["put", "--json", "--verbose"], flags, &[&none, "hi"]].concat());
        assert_eq!((said.json()["outcome"].as_str(), said.code), (Some(outcome), Some(0)));
        assert!(said.err.contains(outcome) && said.err.contains("No-Response"), "{}", said.err);
    }
    // A failure that is wanted is one, and silence in the place of success is none.
    let failed = millpond(&["put", "--no-response=2xx", &none, "hi"]);
    assert_eq!(failed.code, Some(4), "{}", failed.err);
    let done = millpond(&["delete", "--no-response=2xx,5xx", "--timeout", "3s", "--json", &echo]);
    assert_eq!((done.json()["outcome"].as_str(), done.code), (Some("acknowledged"), Some(0)));
    for (flag, part) in [("--no-response=3xx", "write 2xx, 4xx, 5xx"), ("-ONo-Response=26", "set by --no-response")] {
        let said = millpond(&["put", flag, &echo, "hi"]);
        assert!(said.code == Some(2) && said.err.contains(part), "{}", said.err);
    }
}

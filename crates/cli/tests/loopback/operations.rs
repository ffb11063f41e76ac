//! What an operator of a server sees of it: figures over HTTP, and a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use millpond_live::{Client, Code};

use crate::program::{Server, command, fresh_directory, millpond, signal};

/// Head and body of what HTTP answers.
pub(crate) fn fetched(address: &str, path: &str) -> (String, String) {
    asked(address, &format!("GET {path}"))
}

/// Head and content of the answer to a method and what it is for.
fn asked(address: &str, what: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "{what} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").expect("an empty line");
    (head.to_owned(), body.to_owned())
}

/// The samples of a text that keeps to OpenMetrics 1.0, by name and labels.
#[track_caller]
pub(crate) fn samples(text: &str) -> BTreeMap<String, f64> {
    let (mut types, mut described, mut samples) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# EOF" {
            assert_eq!(lines.peek(), None, "the end is the last line");
            return samples;
        }
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["#", "TYPE", family, kind] => {
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(types.insert(family.to_owned(), kind.to_owned()), None, "{family} is declared twice");
            }
            ["#", "UNIT", family, unit] => assert!(family.ends_with(&format!("_{unit}")), "{line}"),
            ["#", "HELP", family, ..] => assert!(described.insert(family.to_owned()), "{line}"),
            _ => {
                // Values of labels may have spaces.
                let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}: no line of OpenMetrics"));
                let bare = name.split('{').next().expect("a name");
                let is_of = |suffix: &str| bare.strip_suffix(suffix).filter(|family| types.contains_key(*family));
                let family = ["_total", "_bucket", "_sum", "_count"].into_iter().find_map(is_of).unwrap_or(bare);
                let kind = types.get(family).unwrap_or_else(|| panic!("{line}: of no declared family"));
                assert_eq!(kind == "counter", bare.ends_with("_total"), "{line}");
                assert!(described.contains(family), "{line}");
                assert_eq!(kind == "histogram", bare != family && kind != "counter", "{line}");
                for label in name.split_once('{').into_iter().flat_map(|(_, labels)| labels.split("\",")) {
                    match label.trim_end_matches("\"}").split_once("=\"") {
                        Some(("le", bound)) => assert!(bound == "+Inf" || bound.parse::<f64>().is_ok(), "{line}"),
                        Some(("code", code)) => assert!(code.len() == 4 && code.contains('.'), "{line}"),
                        Some(("peer", peer)) => assert!(peer.parse::<std::net::SocketAddr>().is_ok(), "{line}"),
                        Some(("became" | "why", words)) => assert!(words.is_ascii() && words.len() > 2, "{line}"),
                        Some(("link", link)) => assert!(["uplink", "downlink"].contains(&link), "{line}"),
                        Some(("share", share)) => {
                            assert!(share.parse::<f64>().is_ok_and(|share| share <= 1.0), "{line}")
                        }
                        _ => panic!("{line}: no label of ours"),
                    }
                }
                let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}: no number"));
                assert!(value >= 0.0 && samples.insert(name.to_owned(), value).is_none(), "{line}");
            }
        }
    }
    panic!("it does not end with # EOF")
}

#[test]
fn the_figures_of_all_workers_are_there_for_prometheus() {
    let mut server = Server::start(&["--quiet", "--workers", "2", "--metrics", "127.0.0.1:0"]);
    let line = server.line();
    let address = line.strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.expect("where the figures are").to_owned();
    for _ in 0..5 {
        millpond(&["get", &server.at("/hello")]).well();
    }
    // A separate response is an exchange of the server's, with a timer and a round trip: once what comes behind its
    // acknowledgement is answered, that has been heard.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = Client::new().await.expect("a client");
        for path in ["/slow?seconds=0.2", "/hello"] {
            assert_eq!(client.get(server.at(path)).await.expect("an answer").code(), Code::CONTENT);
        }
    });

    let (head, body) = fetched(&address, "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    let figures = samples(&body);
    assert_eq!(figures["millpond_requests_total"], 7.0);
    assert_eq!(figures["millpond_response_seconds_count{code=\"2.05\"}"], 7.0);
    assert!((0.2..60.0).contains(&figures["millpond_response_seconds_sum{code=\"2.05\"}"]), "{body}");
    assert_eq!(figures["millpond_sockets"], 2.0);
    assert_eq!(figures["millpond_repeats_total{became=\"withheld\"}"], 0.0);
    let of_peers: Vec<_> = figures.iter().filter(|(name, _)| name.contains("{peer=")).collect();
    let round_trip = of_peers.iter().find(|(name, _)| name.starts_with("millpond_peer_round_trip_seconds"));
    assert!(round_trip.is_some_and(|(_, seconds)| (0.0..60.0).contains(*seconds)), "{body}");
    // Only who had a message of the server's own is among them: not everybody who asked.
    assert_eq!(of_peers.iter().filter(|(name, _)| name.starts_with("millpond_peer_retransmissions")).count(), 1);

    let (head, body) = fetched(&address, "/health");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body == "ok\n", "{head}");
    let (head, _) = fetched(&address, "/");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    // RFC 9110: HEAD as GET but for the content (§9.3.2), what else is asked for is told what may be (§15.5.6).
    let (head, body) = asked(&address, "HEAD /metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && !head.contains("Content-Length: 0"), "{head}");
    assert_eq!(body, "");
    let (head, _) = asked(&address, "POST /metrics");
    assert!(head.starts_with("HTTP/1.1 405") && head.contains("\r\nAllow: GET, HEAD\r\n"), "{head}");
    // Who says nothing, or no HTTP, holds nobody up for long: what comes next is answered.
    drop(TcpStream::connect(&address).expect("it listens"));
    let mut rubbish = TcpStream::connect(&address).expect("it listens");
    rubbish.write_all(b"\x40\x01\r\n\r\n").expect("it reads");
    assert!(fetched(&address, "/metrics?x=1").0.starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn a_server_tells_each_transmission() {
    let mut child =
        command(&["serve", "--bind", "127.0.0.1", "--port", "0", "--trace", "--quiet"]).spawn().expect("built");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
    let base = line.trim_end().strip_prefix("listening on ").expect("a URI").to_owned();
    millpond(&["get", &format!("{base}/slow?seconds=0.2")]).well();
    signal(&child, "TERM");
    let said = child.wait_with_output().expect("it ends");
    let trace = String::from_utf8_lossy(&said.stderr).into_owned();
    for part in ["<- CON GET", "-> ACK (empty)", "-> CON 2.05 Content", "timer ", "round trip "] {
        assert!(trace.lines().any(|line| line.contains(part)), "{part} is not in\n{trace}");
    }
}

/// Its log goes to a program that hangs: a pipe that is full after 64 KiB.
#[test]
fn a_server_whose_log_nobody_reads_answers_and_ends_all_the_same() {
    let root = fresh_directory("unread-log");
    let server = Server::with_unread_log(&["--trace", root.to_str().expect("plain")]);
    let long = server.at(&format!("/{0}/{0}/{0}", "a".repeat(250)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let codes = runtime.block_on(async {
        let client = Client::builder().build().await.expect("a client");
        let mut codes = Vec::new();
        for _ in 0..300 {
            codes.push(client.get(&long).send().await.expect("an answer").code());
        }
        codes
    });
    assert_eq!(codes, [Code::NOT_FOUND; 300]);
    assert_eq!(server.end().1, Some(0));
}

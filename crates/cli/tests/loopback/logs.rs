//! What a server reports of its requests, to people, to programs and to Prometheus.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::program::{command, millpond, signal};
use crate::secure::Files;

/// A server with these flags: where it listens for a scheme, where its figures are, and what it reports of requests until it
/// has ended.
struct Logging {
    child: std::process::Child,
    base: String,
    metrics: String,
}

impl Logging {
    fn start(scheme: &str, flags: &[&str]) -> Self {
        let mut all = vec!["serve", "--bind", "127.0.0.1", "--metrics", "127.0.0.1:0"];
        all.extend(flags);
        let mut child = command(&all).spawn().expect("the program is built");
        let mut out = BufReader::new(child.stdout.as_mut().expect("it is piped")).lines().map_while(Result::ok);
        let mut behind = |begin: &str| {
            let line = out.by_ref().find(|line| line.starts_with(begin)).expect("a line");
            line.rsplit(' ').next().expect("an address").to_owned()
        };
        let base = behind(&format!("listening on {scheme}://"));
        let metrics = behind("metrics at ");
        Self { child, base, metrics }
    }

    fn figures(&self) -> String {
        let at = self.metrics.trim_start_matches("http://").trim_end_matches("/metrics");
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("UTF-8");
        text
    }

    fn end(mut self) -> Vec<String> {
        signal(&self.child, "TERM");
        let mut told = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut told).expect("UTF-8");
        self.child.wait().expect("it ends");
        told.lines().map(str::to_owned).collect()
    }
}

fn keys(name: &str) -> (Files, String) {
    let files = Files::new(name);
    files.write("server.psk", "sensor-7:one\n");
    let psk = files.path("server.psk");
    (files, psk)
}

#[test]
fn the_log_tells_when_who_what_and_how_long_and_handshakes_that_failed() {
    let (_files, psk) = keys("logs_text");
    let server = Logging::start("coaps", &["--psk-file", &psk, "--secure-port", "0"]);
    millpond(&["post", "--psk", "sensor-7:one", &format!("{}/echo", server.base), "21.5"]).well();
    assert_eq!(millpond(&["get", "--psk", "sensor-7:two", &format!("{}/hello", server.base)]).code, Some(8));
    let told = server.end();
    let line = told.iter().find(|line| line.contains("POST /echo")).expect("a line");
    let (time, rest) = line.split_once("  ").expect("a time");
    assert!(time.len() == 24 && time.ends_with('Z') && time.contains('T'), "{line}");
    assert!(rest.starts_with("127.0.0.1:") && rest.contains(" psk:sensor-7  POST /echo  2.01 Created"), "{line}");
    assert!(rest.contains("4 bytes in, 4 bytes") && rest.ends_with(" ms"), "{line}");
    let failed = told.iter().find(|line| line.contains("no secure session (")).unwrap_or_else(|| panic!("{told:?}"));
    assert!(failed.contains("  127.0.0.1:"), "{failed}");
}

#[test]
fn the_log_for_programs_is_an_object_on_each_line() {
    let (_files, psk) = keys("logs_json");
    let flags = ["--psk-file", &psk, "--secure-port", "0", "--log", "json"];
    let server = Logging::start("coaps", &flags);
    millpond(&["post", "--psk", "sensor-7:one", &format!("{}/echo", server.base), "21.5"]).well();
    assert_eq!(millpond(&["get", "--psk", "sensor-7:one", &format!("{}/no%0Athing", server.base)]).code, Some(4));
    let told: Vec<Value> = server.end().iter().map(|line| serde_json::from_str(line).expect(line)).collect();
    let of = |path: &str| told.iter().find(|line| line["path"] == path).expect("a line");
    let (posted, missed) = (of("/echo"), of("/no\nthing"));
    for (key, value) in [
        ("identity", "sensor-7"),
        ("identity_kind", "psk"),
        ("transport", "coaps"),
        ("method", "POST"),
        ("outcome", "answered"),
        ("code", "2.01"),
    ] {
        assert_eq!(posted[key], value, "{posted}");
    }
    assert_eq!((&posted["bytes_in"], &posted["bytes_out"]), (&4.into(), &4.into()));
    assert!(posted["ms"].is_number() && posted["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{posted}");
    assert_eq!((missed["code"].as_str(), missed["reason"].is_string()), (Some("4.04"), true));
}

#[test]
fn the_figures_tell_how_long_answers_of_each_code_took_and_when_the_certificate_expires() {
    let files = Files::new("logs_metrics");
    let both = files.path("both.pem");
    let server = Logging::start("coaps+tcp", &["--cert", &both, "--secure-port", "0"]);
    let ca = files.path("ca.pem");
    millpond(&["get", "--ca", &ca, &format!("{}/hello", server.base)]).well();
    millpond(&["get", "--ca", &ca, &format!("{}/nothing", server.base)]);
    let figures = server.figures();
    for line in [
        "millpond_response_seconds_count{code=\"2.05\"} 1",
        "millpond_response_seconds_count{code=\"4.04\"} 1",
        "millpond_response_seconds_bucket{le=\"+Inf\",code=\"2.05\"} 1",
    ] {
        assert!(figures.lines().any(|there| there == line), "{line} is not in\n{figures}");
    }
    let expiry = figures.lines().find_map(|line| line.strip_prefix("millpond_certificate_expiry_seconds "));
    // Those of the trial end with the year 4095.
    assert_eq!(expiry.and_then(|seconds| seconds.parse::<i64>().ok()), Some(67_090_118_400), "{figures}");
    server.end();
}

//! Programs behind a path, in network namespaces: where this machine lets us make them. Where it does not, each test says so
//! on standard error and what it would have shown.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_millpond");

fn emulate(arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("emulate").args(arguments).stdin(Stdio::null());
    command.output().expect("the program is built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether this machine can; if not it was said why.
fn possible(shown: &str) -> bool {
    let output = emulate(&["nbiot-anrw18", "--quiet", "--", "true"]);
    let why = text(&output.stderr);
    let lacking = ["namespaces cannot be made", "/dev/net/tun"].iter().any(|what| why.contains(what));
    assert!(lacking || output.status.success(), "{why}");
    if lacking {
        assert_eq!(why.lines().count(), 1, "{why}");
        eprintln!("SKIPPED, not shown here: {shown}: {}", why.trim_end());
    }
    !lacking
}

/// A path without much delay, and bounds that a busy machine keeps.
fn quick_path(name: &str) -> String {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.toml"));
    let direction = "rate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"64 kB\"\n";
    std::fs::write(&file, format!("[uplink]\n{direction}[downlink]\n{direction}")).expect("written");
    file.to_str().expect("plain").to_owned()
}

const BOUND: [&str; 2] = ["--lateness", "1h"];

#[test]
fn client_and_server_meet_over_the_path_by_name_over_both_versions_of_ip() {
    if !possible("requests over IPv4, IPv6, UDP and TCP between namespaces") {
        return;
    }
    let path = quick_path("meet");
    let server = format!("{PROGRAM} serve --quiet --tcp --bind 10.77.0.2 --bind fd77::2");
    for uri in ["coap://server/hello", "coap://10.77.0.2/hello", "coap://server.ip6/hello", "coap+tcp://server/hello"] {
        let output = emulate(&[&path, BOUND[0], BOUND[1], "--server", &server, "--", PROGRAM, "get", "--json", uri]);
        assert!(output.status.success(), "{uri}: {}", text(&output.stderr));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(answer["payload"], "Hello from Millpond.\n", "{uri}");
        if uri.starts_with("coap:") {
            assert!(answer["round_trip_ms"].as_f64() >= Some(40.0), "{answer}");
        }
    }
}

/// A link of 576 bytes cuts blocks of 1024: no copy of a message is refused or lost.
#[test]
fn blocks_larger_than_the_mtu_pass_in_fragments() {
    if !possible("messages that are longer than a link of 576 bytes takes") {
        return;
    }
    let (path, server) = (quick_path("narrow"), format!("{PROGRAM} serve --quiet --bind 10.77.0.2"));
    let payload = "x".repeat(700);
    for (request, length) in [
        (&["get", "--json", "coap://10.77.0.2/large?size=5k"][..], 5_000),
        (&["post", "--json", "coap://10.77.0.2/echo", &payload], 700),
    ] {
        let options = [&path, BOUND[0], BOUND[1], "--mtu", "576", "--server", &server, "--", PROGRAM];
        let output = emulate(&[&options[..], request].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(answer["payload"].as_str().map(str::len), Some(length), "{answer}");
        assert_eq!(answer["copies"], 1, "{answer}");
    }
}

#[test]
fn what_is_of_use_is_told_of_messages_inside_packets() {
    if !possible("the goodput ratio of links between namespaces") {
        return;
    }
    let (path, server) = (quick_path("useful"), format!("{PROGRAM} serve --quiet --bind 10.77.0.2 --bind fd77::2"));
    for uri in ["coap://10.77.0.2/hello", "coap://[fd77::2]/hello"] {
        let options = [&path, BOUND[0], BOUND[1], "--json", "--server", &server];
        let output = emulate(&[&options[..], &["--", PROGRAM, "get", uri]].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        for link in 0..2 {
            let row = &report["links"][link];
            assert!(row["read_bytes"].as_u64() >= Some(38), "{report}");
            assert_eq!(row["read_bytes"], row["useful_bytes"], "{report}");
        }
    }
}

#[test]
fn both_ends_tell_what_retransmissions_were_good_for() {
    if !possible("the truth of retransmissions, and devices told from their ports") {
        return;
    }
    let server = format!("{PROGRAM} serve --quiet --bind 10.77.0.2");
    // A round trip of 3.2 s is longer than the first wait of the standard's timer, 2 to 3 s, and shorter than its second.
    let far = quick_path("far");
    let text_of =
        |delay: &str, more: &str| format!("rate = \"10 Mbit/s\"\ndelay = \"{delay}\"\nqueue = \"64 kB\"\n{more}");
    let write = |name: &str, up: String, down: String| {
        std::fs::write(name, format!("[uplink]\n{up}[downlink]\n{down}")).expect("written");
    };
    write(&far, text_of("1.6 s", ""), text_of("1.6 s", ""));
    let lossy = quick_path("half-lost");
    write(&lossy, text_of("20 ms", "loss = { kind = \"bernoulli\", rate = 0.5 }\n"), text_of("20 ms", ""));
    let ask = format!(
        "exec {PROGRAM} load --clients 2 --count-each 1 --timeout 10s --controller rfc7252 coap://10.77.0.2/hello >&2"
    );
    let asked = |path: &str| -> serde_json::Value {
        let options = [path, BOUND[0], BOUND[1], "--json", "--devices", "3", "--server", &server, "--"];
        let output = emulate(&[&options[..], &["sh", "-c", &ask]].concat());
        serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
    };
    let report = asked(&far);
    let counts = |report: &serde_json::Value| {
        ["sent", "spurious", "needed", "unanswered"]
            .map(|key| report["retransmissions"][key].as_u64().expect("a count"))
    };
    assert_eq!(counts(&report), [6, 6, 0, 0], "{report}");
    assert_eq!(
        (&report["devices"], report["flows"].as_array().map(Vec::len) >= Some(6)),
        (&3.into(), true),
        "{report}"
    );
    let report = asked(&lossy);
    let [sent, spurious, needed, unanswered] = counts(&report);
    assert_eq!((sent, spurious), (needed + unanswered, 0), "{report}");
    assert!(needed > 0, "{report}");
    assert!(report["links"][0]["dropped_radio_packets"].as_u64() >= Some(needed), "{report}");
}

#[test]
fn the_commands_exit_code_is_handed_on_and_its_output_is_its_own() {
    if !possible("exit codes of commands") {
        return;
    }
    for (line, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let output = emulate(&["nbiot-anrw18", "--", "sh", "-c", &format!("echo said; {line}")]);
        assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("said\n", Some(code)), "{line}");
    }
}

#[test]
fn devices_share_the_path_and_are_told_apart() {
    if !possible("several devices on one path, the capture and the report of it") {
        return;
    }
    let path = quick_path("devices");
    let capture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("devices.pcapng");
    let _ = std::fs::remove_file(&capture);
    let server = format!("{PROGRAM} serve --quiet --bind 10.77.0.2");
    let get = format!("exec {PROGRAM} get coap://10.77.0.2/hello?$MILLPOND_DEVICE");
    let output = emulate(&[
        &path,
        BOUND[0],
        BOUND[1],
        "--json",
        "--devices",
        "3",
        "--capture",
        capture.to_str().expect("plain"),
        "--server",
        &server,
        "--",
        "sh",
        "-c",
        &get,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let mut clients: Vec<_> = report["flows"]
        .as_array()
        .expect("flows")
        .iter()
        .map(|flow| text(flow["client"].as_str().unwrap_or_default().split(':').next().unwrap_or_default().as_bytes()))
        .collect();
    clients.sort();
    assert_eq!(clients, ["10.77.1.1", "10.77.1.2", "10.77.1.3"]);
    assert_eq!(report["links"][0]["offered_packets"], report["links"][0]["delivered_packets"]);
    let written = std::fs::read(&capture).expect("a capture");
    assert!(written.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    // Each request is seen at both ends.
    let seen = written.windows(5).filter(|window| window == b"hello").count();
    assert_eq!(seen as u64, 2 * report["links"][0]["delivered_packets"].as_u64().unwrap_or(0));
}

#[test]
fn nothing_is_left_over_neither_after_the_end_nor_after_a_crash() {
    if !possible("that processes end with the run") {
        return;
    }
    // Whatever a command leaves behind in the background ends with it.
    let marked = |mark: &str| {
        let list = Command::new("ps").args(["-eo", "args"]).output().expect("ps");
        text(&list.stdout).lines().filter(|line| line.trim() == format!("sleep {mark}")).count()
    };
    let output = emulate(&["nbiot-anrw18", "--quiet", "--server", "sleep 98765 & exec sleep 98766", "--", "true"]);
    // A server without a socket is waited for, and told of.
    assert!(text(&output.stderr).contains("no socket after 10 s"), "{}", text(&output.stderr));
    assert_eq!((marked("98765"), marked("98766")), (0, 0));
    let mut child = Command::new(PROGRAM)
        .args(["emulate", "nbiot-anrw18", "--quiet", "--", "sh", "-c", "sleep 98764 & echo begun; exec sleep 98763"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program is built");
    let mut line = String::new();
    let out = child.stdout.take().expect("it is piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("it begins");
    assert_eq!(line, "begun\n");
    child.kill().expect("killed");
    child.wait().expect("gone");
    // The kernel ends what was inside; that takes it a moment.
    while marked("98763") + marked("98764") > 0 {
        std::thread::yield_now();
    }
    assert!(emulate(&["nbiot-anrw18", "--quiet", "--", "true"]).status.success(), "a second start finds nothing");
}

#[test]
fn an_interrupt_reaches_the_command_and_a_termination_ends_all() {
    if !possible("signals") {
        return;
    }
    for (signal, line, code) in [("INT", "trap 'exit 9' INT", 9), ("TERM", "trap '' TERM INT", 143)] {
        let script = format!("{line}; echo begun; while :; do sleep 0.1; done");
        let mut child = Command::new(PROGRAM)
            .args(["emulate", "nbiot-anrw18", "--quiet", "--", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program is built");
        let mut text = String::new();
        let out = child.stdout.take().expect("it is piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut text).expect("it begins");
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(sent.is_ok_and(|sent| sent.success()));
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{signal}");
    }
}

#[test]
fn what_cannot_be_emulated_is_one_line() {
    if !possible("errors of commands inside") {
        return;
    }
    let at_end = |arguments: &[&str]| {
        let output = emulate(arguments);
        let told = text(&output.stderr);
        assert_eq!(told.lines().count(), 1, "{arguments:?}: {told}");
        (told, output.status.code())
    };
    for (arguments, part, code) in [
        (&["nbiot-anrw18", "-q", "--", "/no/such/program"][..], "/no/such/program: No such file or directory", 1),
        (
            &["nbiot-anrw18", "-q", "--server", "exit 4", "--", "true"],
            "ended before it could be reached: exit status: 4",
            1,
        ),
        (&["nbiot-anrw18", "-q", "--capture", "/no/such/file", "--", "true"], "/no/such/file: No such file", 1),
        (&["nbiot-anrv18", "-q", "--", "true"], "did you mean `nbiot-anrw18`?", 2),
        (&["nbiot-anrw18", "--mtu", "60", "--", "true"], "between 68 B", 2),
        (&["nbiot-anrw18", "--devices", "501", "--", "true"], "501 is not in 1..=500", 2),
        (&["nbiot-anrw18"], "required arguments were not provided", 2),
    ] {
        let (told, with) = at_end(arguments);
        assert!(told.contains(part), "{told}");
        assert_eq!(with, Some(code), "{told}");
    }
    let narrow = quick_path("narrow");
    let with_mtu = std::fs::read_to_string(&narrow).expect("a path").replace("queue", "mtu = \"296 B\"\nqueue");
    std::fs::write(&narrow, with_mtu).expect("written");
    let output = emulate(&[&narrow, "--", "cat", "/etc/hosts"]);
    assert!(text(&output.stderr).contains("an MTU of 296 B is too short"), "{}", text(&output.stderr));
    let output = emulate(&["nbiot-anrw18", "--mtu", "296", "--", "cat", "/etc/hosts"]);
    assert!(text(&output.stderr).contains("IPv4 alone"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("10.77.0.2 server") && !text(&output.stdout).contains("fd77"));
}

#[test]
fn what_the_radio_loses_is_marked_in_the_capture_as_in_the_simulators() {
    if !possible("losses of the radio in a capture") {
        return;
    }
    let path = quick_path("lossy");
    let lossy = std::fs::read_to_string(&path)
        .expect("a path")
        .replace("queue", "loss = { kind = \"bernoulli\", rate = 0.1 }\nqueue");
    std::fs::write(&path, lossy).expect("written");
    let capture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lossy.pcapng");
    let _ = std::fs::remove_file(&capture);
    let server = format!("{PROGRAM} serve --quiet --bind 10.77.0.2");
    let file = capture.to_str().expect("plain");
    let ask = [PROGRAM, "load", "--clients", "20", "--count-each", "3", "coap://10.77.0.2/hello"];
    let mut arguments = vec![&*path, BOUND[0], BOUND[1], "--json", "--capture", file, "--server", &server, "--"];
    arguments.extend(ask);
    let output = emulate(&arguments);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let lost: u64 =
        report["links"].as_array().expect("links").iter().filter_map(|row| row["dropped_radio_packets"].as_u64()).sum();
    assert!(lost > 0, "{report}");
    let written = std::fs::read(&capture).expect("a capture");
    let marked = written.windows(11).filter(|window| window == b"lost: radio").count();
    assert_eq!(marked as u64, lost);
}

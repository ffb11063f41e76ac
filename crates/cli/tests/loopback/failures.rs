//! What goes wrong on the way, one line and one exit code each.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::Stdio;

use crate::program::{Said, Server, command, millpond, signal};

/// The line of a program that failed.
#[track_caller]
fn line(said: &Said, code: i32) -> &str {
    assert_eq!(said.code, Some(code), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    said.err.trim_end().strip_prefix("millpond: ").expect("its name first")
}

#[test]
fn errors_of_the_server_have_exit_codes_of_their_own() {
    let server = Server::start(&[]);
    let said = millpond(&["get", &server.at("/nothing")]);
    let address = server.at("").replace("coap://", "");
    assert!(line(&said, 4).starts_with(&format!("{address} answered 4.04 Not Found")), "{}", said.err);
    assert!(said.out.is_empty());
    let said = millpond(&["get", &server.at("/slow?seconds=soon")]);
    assert!(line(&said, 4).contains("4.00 Bad Request: seconds: "), "{}", said.err);
    let said = millpond(&["get", "--json", &server.at("/nothing")]);
    line(&said, 4);
    assert_eq!(said.json()["code"], "4.04");
}

#[test]
fn a_port_that_nobody_listens_on_is_told_at_once() {
    let free = UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let said = millpond(&["get", &format!("coap://{free}/")]);
    assert!(line(&said, 7).contains(&format!("{free} is unreachable")), "{}", said.err);
}

/// What a client remembers is in the file when the program ends, also where it failed; something else there is not written over.
#[test]
fn a_memory_is_kept_and_a_file_with_something_else_in_it_is_refused() {
    let server = Server::start(&[]);
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("failures.memory");
    let _ = std::fs::remove_file(&file);
    let path = file.to_str().expect("UTF-8");
    for _ in 0..2 {
        let said = millpond(&["get", "--memory", path, "--controller", "calm", &server.at("/time")]);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        assert_eq!(std::fs::read(&file).expect("a memory")[..3], [1, 0, 1], "one path");
    }
    std::fs::write(&file, "[paths]").expect("written");
    let said = millpond(&["get", "--memory", path, &server.at("/time")]);
    let told = format!("--memory: {path}: byte 0 of what is remembered of paths: a version that is not known");
    assert!(line(&said, 2).starts_with(&told), "{}", said.err);
    assert_eq!(std::fs::read(&file).expect("as it was"), b"[paths]");
}

#[test]
fn a_name_that_nothing_has_is_told() {
    let said = millpond(&["get", "coap://no-such-host.invalid/"]);
    assert!(line(&said, 7).contains("no-such-host.invalid does not resolve"), "{}", said.err);
    let said = millpond(&["load", "--count", "1", "coap://no-such-host.invalid/"]);
    assert!(line(&said, 7).contains("no-such-host.invalid does not resolve"), "{}", said.err);
}

#[test]
fn a_server_that_does_not_answer_is_given_up_after_the_time_allowed() {
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = deaf.local_addr().expect("an address");
    for verb in ["get", "ping"] {
        let said = millpond(&[verb, "--timeout", "300ms", &format!("coap://{address}/")]);
        assert!(line(&said, 6).contains("0.3 s"), "{verb}: {}", said.err);
    }
}

#[test]
fn a_port_in_use_is_told() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let said = millpond(&["serve", "--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    assert!(line(&said, 1).contains(&format!("cannot listen on {address}: the port is in use")), "{}", said.err);
    let said = millpond(&["serve", "--bind", "192.0.2.1", "--port", "0"]);
    assert!(line(&said, 1).contains("this machine has no such address"), "{}", said.err);
}

#[test]
fn ctrl_c_ends_a_request_with_130_and_a_server_with_0() {
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let uri = format!("coap://{}/", deaf.local_addr().expect("an address"));
    let child = command(&["get", &uri]).spawn().expect("the program is built");
    // Once its datagram is here it listens for signals.
    deaf.recv(&mut [0; 64]).expect("a datagram");
    signal(&child, "INT");
    let said: Said = child.wait_with_output().expect("it ends").into();
    assert_eq!(line(&said, 130), "stopped");
    let (_, code) = Server::start(&[]).end();
    assert_eq!(code, Some(0));
}

#[test]
fn a_server_that_is_to_end_answers_what_slow_handlers_have_not() {
    let server = Server::start(&[]);
    let mut child = command(&["get", "--trace", &server.at("/slow?seconds=60")]).spawn().expect("built");
    let mut told = BufReader::new(child.stderr.take().expect("it is piped")).lines().map(|line| line.expect("UTF-8"));
    // The request is acknowledged, its handler runs.
    assert!(told.any(|line| line.contains("<- ACK (empty)")));
    let (_, code) = server.end();
    assert!(told.any(|line| line.contains("5.03 Service Unavailable")));
    assert_eq!((code, child.wait().expect("it ends").code()), (Some(0), Some(5)));
}

#[test]
fn whoever_stops_reading_stops_an_observation() {
    let server = Server::start(&[]);
    let mut child = command(&["observe", &server.at("/count")]).stderr(Stdio::piped()).spawn().expect("built");
    drop(child.stdout.take());
    let said: Said = child.wait_with_output().expect("it ends").into();
    assert_eq!((said.code, said.err.as_str()), (Some(1), ""));
}

#[test]
fn how_often_and_how_fast_is_repeated_can_be_chosen_within_what_is_safe() {
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let uri = format!("coap://{}/", deaf.local_addr().expect("an address"));
    for verb in ["get", "observe", "ping"] {
        let said = millpond(&[verb, "--max-retransmit", "0", "--ack-timeout", "1s", "--trace", &uri]);
        assert_eq!(said.code, Some(6), "{verb}: {}", said.err);
        assert!(said.err.contains("did not answer 1 copy in "), "{verb}: {}", said.err);
        assert!(said.err.contains("timer 1."), "{verb}: {}", said.err);
        let said = millpond(&[verb, "--ack-timeout", "200ms", &uri]);
        assert!(line(&said, 2).contains("200ms is less than 1s"), "{verb}: {}", said.err);
    }
    let said = millpond(&["load", "--count", "1", "--max-retransmit", "0", "--ack-timeout", "1s", &uri]);
    assert!(line(&said, 1).contains("did not answer 1 copy in "), "{}", said.err);
    let said = millpond(&["get", "--max-retransmit", "251", &uri]);
    assert!(line(&said, 2).contains("251"), "{}", said.err);
    let said = millpond(&["get", "--max-retransmit", "1", "coap+tcp://127.0.0.1/"]);
    assert!(line(&said, 2).contains("are for UDP, and TCP repeats by itself"), "{}", said.err);
}

//! Following a resource.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::program::{Server, command, free_port, millpond, signal};
use crate::relays::Relay;

#[test]
fn a_resource_is_followed_as_often_as_asked() {
    let server = Server::start(&[]);
    let said = millpond(&["observe", "--count", "4", &server.at("/count")]);
    let numbers: Vec<u32> = said.well().lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(numbers.len(), 4, "{numbers:?}");
    // The first may be as old as the second: the resource can change between the answer and its being observed.
    assert!(numbers.is_sorted() && numbers.first() < numbers.last(), "{numbers:?}");
}

#[test]
fn json_has_a_line_for_each_representation() {
    let server = Server::start(&[]);
    let said = millpond(&["observe", "--count", "2", "--json", &server.at("/count")]);
    let codes: Vec<_> = said
        .well()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["code"].clone())
        .collect();
    assert_eq!(codes, ["2.05", "2.05"]);
}

#[test]
fn an_observation_ends_when_its_time_is_over_or_with_ctrl_c() {
    let server = Server::start(&[]);
    let said = millpond(&["observe", "--for", "300ms", &server.at("/count")]);
    assert!(!said.well().is_empty());
    let mut child = command(&["observe", &server.at("/count")]).spawn().expect("the program is built");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a representation");
    signal(&child, "INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn what_cannot_be_observed_is_shown_once_and_said() {
    let server = Server::start(&[]);
    let said = millpond(&["observe", &server.at("/hello")]);
    assert_eq!((said.code, &said.out[..]), (Some(1), &b"Hello from Millpond.\n"[..]), "{}", said.err);
    assert!(said.err.contains("/hello cannot be observed"), "{}", said.err);
    let said = millpond(&["observe", &server.at("/nothing")]);
    assert_eq!(said.code, Some(4), "{}", said.err);
}

#[test]
fn an_observation_survives_a_restart_of_its_server_and_tells_of_the_gap() {
    let port = free_port();
    let server = Server::start_at(&port, &[]);
    let uri = server.at("/count");
    // Its standard error reports states and gaps, in their order.
    let mut child = command(&["observe", "-v", &uri]).stdout(Stdio::null()).spawn().expect("the program is built");
    let mut told = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut line_with =
        |part: &str| told.by_ref().map_while(Result::ok).find(|line| line.contains(part)).expect("a line");
    line_with("2.05");
    assert_eq!(server.end().1, Some(0));
    let gap = line_with("interrupted");
    assert!(gap.starts_with("millpond: interrupted: the server ended it (5.03"), "{gap}");
    assert!(gap.contains("registering again in "), "{gap}");
    let _again = Server::start_at(&port, &[]);
    line_with("2.05");
    signal(&child, "INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn an_observation_survives_a_restart_of_a_relay_that_is_between() {
    let server = Server::start(&[]);
    let at = format!("127.0.0.1:{}", free_port());
    let relay = Relay::start_at(&at, &server, &["none"]);
    let mut child = command(&["observe", &format!("coap://{at}/count")]).spawn().expect("the program is built");
    let mut states = BufReader::new(child.stdout.take().expect("it is piped"))
        .lines()
        .map(|line| line.expect("UTF-8").parse::<u64>().expect("a number"));
    assert!(states.next().is_some());
    assert_eq!(relay.end("TERM").code, Some(0));
    let again = Relay::start_at(&at, &server, &["none"]);
    // Whatever the first one has carried is older. The state is out of date after 1 s, and is asked for 5 to 15 s later.
    let now: u64 = millpond(&["get", &server.at("/count")]).well().trim().parse().expect("a number");
    assert!(states.any(|state| state > now));
    signal(&child, "INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    again.end("INT").well();
}

#[test]
fn an_observation_that_is_given_up_ends_with_an_exit_code() {
    let server = Server::start(&[]);
    let mut child = command(&["observe", "--give-up-after", "0", &server.at("/count")]).spawn().expect("it is built");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a representation");
    assert_eq!(server.end().1, Some(0));
    std::io::copy(&mut out, &mut std::io::sink()).expect("its end");
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
}

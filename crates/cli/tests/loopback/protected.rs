//! OSCORE (RFC 8613): contexts in files, client and server.

use std::path::{Path, PathBuf};

use crate::program::{Server, fresh_directory, millpond};

/// A pair of new contexts in a directory of the test's own.
fn pair(name: &str) -> (PathBuf, [String; 2]) {
    let directory = fresh_directory(name);
    let files = ["client", "server"].map(|side| file(&directory, side));
    let said = millpond(&["oscore", "new", &files[0], &files[1]]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    (directory, files)
}

fn file(directory: &Path, name: &str) -> String {
    directory.join(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn bodies_go_both_ways_under_a_context_and_what_is_not_protected_is_refused() {
    let (directory, [client, server]) = pair("protected-bodies");
    let files = fresh_directory("protected-files");
    let body: String = (0..5_000).map(|number| format!("{number}\n")).collect();
    let sent = file(&directory, "body");
    std::fs::write(&sent, &body).expect("written");
    let serving = Server::start(&["--oscore", &server, "--write", files.to_str().expect("UTF-8")]);
    let put = millpond(&["put", "--oscore", &client, &serving.at("/kept"), &format!("@{sent}")]);
    assert_eq!((put.code, put.err.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(files.join("kept")).expect("it was put"), body);
    let got = millpond(&["get", "--oscore", &client, &serving.at("/kept")]);
    assert_eq!(got.well(), body);
    let posted = millpond(&["post", "--oscore", &client, &serving.at("/echo"), "hi"]);
    assert_eq!(posted.well(), "hi");
    // The application's own errors are protected, too.
    let missing = millpond(&["get", "--oscore", &client, &serving.at("/missing")]);
    assert_eq!(missing.code, Some(4));
    assert!(missing.err.contains("answered 4.04 Not Found"), "{}", missing.err);

    let plain = millpond(&["get", &serving.at("/hello")]);
    assert_eq!(plain.code, Some(4));
    assert!(plain.err.contains("answered 4.01 Unauthorized: OSCORE required"), "{}", plain.err);
    let (_, [other, _]) = pair("protected-other");
    let refused = millpond(&["get", "--oscore", &other, &serving.at("/hello")]);
    assert_eq!(refused.code, Some(1));
    let told = "sent an answer that cannot be taken: the response, 4.01, is not protected: perhaps the server does not know the \
                security context";
    assert!(refused.err.contains(told), "{}", refused.err);
}

#[test]
fn what_is_observed_under_a_context_is_told_of_until_nobody_wants_it_any_more() {
    let (_, [client, server]) = pair("protected-observed");
    let serving = Server::start(&["--oscore", &server]);
    let observed = millpond(&["observe", "--trace", "--oscore", &client, "--count", "4", &serving.at("/count")]);
    let counts: Vec<u32> = observed.well().lines().map(|line| line.parse().expect("a count")).collect();
    assert_eq!(counts.len(), 4);
    assert!(counts.is_sorted(), "{counts:?}");
    // Registration and its end; neither shows what is asked for.
    assert_eq!(observed.err.matches("-> CON FETCH").count(), 2, "{}", observed.err);
    assert!(!observed.err.contains("GET"), "{}", observed.err);
}

#[test]
fn a_server_that_was_restarted_takes_the_next_request() {
    let (_, [client, server]) = pair("protected-restart");
    for run in 0..3 {
        let serving = Server::start(&["--oscore", &server]);
        for request in 0..2 {
            let got = millpond(&["get", "--trace", "--oscore", &client, &serving.at("/hello")]);
            assert_eq!(got.well(), "Hello from Millpond.\n");
            // The first one after a restart is asked for a second time, with an Echo option.
            let asked = got.err.matches("-> CON POST").count();
            assert_eq!(asked, if run > 0 && request == 0 { 2 } else { 1 }, "{}", got.err);
        }
    }
}

#[test]
fn clients_have_contexts_of_their_own_at_one_server() {
    let pairs = [pair("protected-one"), pair("protected-two")];
    let [(_, [first, at_first]), (_, [second, at_second])] = &pairs;
    let serving = Server::start(&["--oscore", at_first, "--oscore", at_second, "--workers", "2"]);
    for client in [first, second, first] {
        let got = millpond(&["get", "--oscore", client, &serving.at("/hello")]);
        assert_eq!(got.well(), "Hello from Millpond.\n");
    }
    // One of them is in use.
    let again = millpond(&["serve", "--port", "0", "--oscore", at_first]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("in use by another process; a context is for one at a time"), "{}", again.err);
}

#[test]
fn what_cannot_be_protected_is_refused_before_anything_is_sent() {
    let (directory, [client, _]) = pair("protected-refused");
    let over_tcp = millpond(&["get", "--oscore", &client, "coap+tcp://127.0.0.1/hello"]);
    assert_eq!(over_tcp.code, Some(1), "{}", over_tcp.err);
    assert!(over_tcp.err.contains("OSCORE protects no messages over TCP yet"), "{}", over_tcp.err);
    for flags in [&["serve", "--oscore", "x", "--tcp"][..], &["get", "--oscore", "x", "--q-block", "coap://127.0.0.1/"]]
    {
        let said = millpond(flags);
        assert_eq!(said.code, Some(2));
        assert!(said.err.contains("--oscore"), "{}", said.err);
    }
    let missing = millpond(&["get", "--oscore", &file(&directory, "none"), "coap://127.0.0.1/"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.ends_with("none: No such file or directory\n"), "{}", missing.err);
}

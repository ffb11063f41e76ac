//! Loads, counted.

use crate::program::{Server, command, millpond, signal};
use crate::protected::pair;

#[test]
fn a_count_is_answered_to_the_last() {
    let server = Server::start(&["--quiet"]);
    let said = millpond(&["load", "--json", "--count", "200", "--clients", "4", &server.at("/hello")]).json();
    let load = &said["loads"][0];
    assert_eq!((&load["answers"], &load["failed"], &load["requests"]), (&200.into(), &0.into(), &200.into()), "{said}");
    assert!(load["transmissions"].as_u64().is_some_and(|count| count >= 200), "{said}");
    assert!(load["milliseconds"]["median"].as_f64().is_some_and(|time| time > 0.0), "{said}");
}

#[test]
fn a_load_under_a_context_is_that_of_one_client() {
    let (_, [client, at_server]) = pair("load-protected");
    let server = Server::start(&["--quiet", "--oscore", &at_server]);
    let uri = server.at("/hello");
    let flags = ["load", "--oscore", &client, "--count", "60", "--nstart", "4", "--runs", "2"];
    let said = millpond(&[&flags[..], &["--json", "--compare", "rfc7252,fasor", &uri]].concat()).json();
    assert_eq!((&said["oscore"], said["loads"].as_array().map(Vec::len)), (&true.into(), Some(4)), "{said}");
    for load in said["loads"].as_array().expect("a list") {
        assert_eq!((&load["answers"], &load["refused"], &load["failed"]), (&60.into(), &0.into(), &0.into()), "{said}");
    }
    let said = millpond(&[&flags[..], &[&*uri]].concat());
    assert!(said.well().starts_with(&format!("GET {uri}, 1 client under OSCORE, closed loop\n")), "{}", said.well());
    let said = millpond(&["load", "--oscore", &client, "--clients", "3", &uri]);
    let told = "millpond: --oscore with --clients 3: a context is for one client, and a server refuses what 64 later requests under it \
                overtake; leave --clients out\n";
    assert_eq!((said.code, &*said.err), (Some(2), told));
    let said = millpond(&["load", "--count", "1", &uri]);
    let refused =
        said.well().lines().find(|row| row.contains("4.xx, 5.xx")).and_then(|row| row.split_whitespace().last());
    assert_eq!(refused, Some("1"), "{}", said.well());
}

#[test]
fn every_client_may_have_a_count_of_its_own() {
    let server = Server::start(&["--quiet"]);
    let uri = server.at("/hello");
    let said = millpond(&["load", "--trace", "--count-each", "7", "--clients", "3", &uri]);
    assert!(said.well().contains("requests"), "{}", said.well());
    let said = millpond(&["load", "--json", "--count-each", "7", "--nstart", "2", "--clients", "3", &uri]).json();
    let load = &said["loads"][0];
    assert_eq!((&load["requests"], &load["answers"]), (&21.into(), &21.into()), "{said}");
    let said = millpond(&["load", "--count-each", "7", "--count", "9", &uri]);
    assert_eq!((said.code, said.err.lines().count()), (Some(2), 1), "{}", said.err);
}

#[test]
fn controllers_stand_side_by_side() {
    let server = Server::start(&["--quiet"]);
    let said = millpond(&["load", "--count", "20", "--compare", "rfc7252,cocoa-03,fasor", &server.at("/hello")]);
    let rows: Vec<Vec<_>> = said.well().lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["rfc7252", "cocoa-03", "fasor"]), "{}", said.well());
    assert!(rows.contains(&vec!["answers", "20", "20", "20"]), "{}", said.well());
    assert!(said.well().contains("█"), "{}", said.well());
}

#[test]
fn an_open_loop_asks_at_its_rate() {
    let server = Server::start(&["--quiet"]);
    let arguments =
        ["--rate", "200", "--duration", "500ms", "--method", "post", "--payload-size", "40", "--clients", "5"];
    let mut all = vec!["load", "--json"];
    all.extend(arguments);
    let uri = server.at("/echo");
    all.push(&uri);
    let said = millpond(&all).json();
    let asked = said["loads"][0]["requests"].as_u64().expect("a number");
    // 100 are due within the time; a busy machine may come too late for some, never too early.
    assert!((1..=100).contains(&asked), "{said}");
    assert_eq!(said["loads"][0]["answers"], asked, "{said}");
}

#[test]
fn ctrl_c_ends_a_load_with_its_summary() {
    let server = Server::start(&["--quiet"]);
    let child =
        command(&["load", "--trace", "--duration", "1min", &server.at("/slow?seconds=0.1")]).spawn().expect("built");
    // Its first transmission is told once it listens for signals.
    let mut child = child;
    let mut err = std::io::BufReader::new(child.stderr.take().expect("it is piped"));
    std::io::BufRead::read_line(&mut err, &mut String::new()).expect("a line");
    let rest = std::thread::spawn(move || std::io::Read::read_to_end(&mut err, &mut Vec::new()));
    signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    assert!(rest.join().is_ok());
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stdout).contains("requests"));
}

#[test]
fn a_load_that_nobody_answers_fails() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let said = millpond(&["load", "--count", "2", &format!("coap://{free}/")]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("unreachable"), "{}", said.err);
}

#[test]
fn a_load_that_nobody_answers_tells_no_times() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
    let uri = format!("coap://{free}/x");
    let said = millpond(&["load", "--json", "--count", "3", &uri]);
    let load: serde_json::Value = serde_json::from_slice(&said.out).expect("JSON");
    let load = &load["loads"][0];
    assert_eq!((said.code, &load["failed"]), (Some(1), &3.into()), "{}", said.err);
    for time in ["shortest", "mean_of_answers", "median", "p90", "p99", "p999", "longest"] {
        assert!(load["milliseconds"][time].is_null(), "{load}");
    }
    let said = millpond(&["load", "--count", "3", &uri]);
    let out = String::from_utf8_lossy(&said.out);
    let rows: Vec<Vec<_>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["median", "never"]), "{out}");
}

#[test]
fn a_rate_above_what_clients_carry_is_told_and_counts() {
    let server = Server::start(&["--quiet"]);
    let uri = server.at("/slow?seconds=1");
    let arguments = ["load", "--rate", "200/s", "--duration", "2s", &uri];
    let said = millpond(&[&arguments[..], &["--json"]].concat()).json();
    let load = &said["loads"][0];
    let count = |key: &str| load[key].as_u64().expect("a number");
    // All that were due count, whether they were answered or not: the next is sent when the one before is acknowledged, after an
    // eighth of a second, and time ends after seven.
    assert_eq!(count("requests") + count("not_started"), 400, "{said}");
    assert_eq!(count("requests"), count("answers") + count("unfinished") + count("failed"), "{said}");
    assert!((1..=60).contains(&count("answers")), "{said}");
    for time in ["p90", "p99", "longest"] {
        assert!(load["milliseconds"]["at_least"].as_array().is_some_and(|all| all.contains(&time.into())), "{said}");
        assert!(load["milliseconds"][time].as_f64().is_some_and(|millis| millis >= 5_000.0), "{said}");
    }
    assert_eq!((&load["capped"]["due"], &load["capped"]["under_way_at_most"]), (&400.into(), &1.into()), "{said}");
    let histogram = |kind: &str| -> u64 {
        let all = load["histogram"][kind].as_array().expect("buckets");
        all.iter().filter_map(|bucket| bucket[1].as_u64()).sum()
    };
    assert_eq!(histogram("answers"), count("answers"), "{said}");
    assert_eq!(histogram("open"), count("unfinished") + count("not_started"), "{said}");
    assert_eq!(
        (said["rate"].as_f64(), &said["clients"], &said["nstart"]),
        (Some(200.0), &1.into(), &1.into()),
        "{said}"
    );
    assert_eq!((&said["method"], said["duration_s"].as_f64()), (&"GET".into(), Some(2.0)), "{said}");
    assert!(said["date"].as_str().is_some_and(|date| date.ends_with('Z') && date.len() == 20), "{said}");
    assert!(said["command"].as_array().is_some_and(|words| words[1] == "load"), "{said}");
    assert!(said["millpond"].is_string(), "{said}");
    let text = millpond(&arguments);
    assert!(text.well().contains("the rate was not reached: with 1 request under way at a time"), "{}", text.well());
    assert!(text.well().contains("≥ "), "{}", text.well());
}

/// Answers with the token as it came.
fn answer(request: &[u8]) -> Vec<u8> {
    let token = &request[4..4 + usize::from(request[0] & 15)];
    [&[0x60 | token.len() as u8, 0x45, request[2], request[3]][..], token].concat()
}

#[test]
fn retransmissions_are_told_apart_as_far_as_answers_tell() {
    // The first transmission of every message is lost, or is answered when the second comes, which is answered too.
    for (controller, is_lost, [spurious, needed, unknown]) in
        [("fasor-token", true, [0, 2, 0]), ("rfc7252", true, [0, 0, 2]), ("rfc7252", false, [1, 0, 1])]
    {
        let server = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let uri = format!("coap://{}/hello", server.local_addr().expect("its address"));
        std::thread::spawn(move || {
            let mut request = [0; 100];
            let mut seen = std::collections::HashSet::new();
            while let Ok((length, from)) = server.recv_from(&mut request) {
                let request = &request[..length];
                if seen.insert([request[2], request[3]]) {
                    continue;
                }
                for _ in 0..if is_lost { 1 } else { 2 } {
                    server.send_to(&answer(request), from).expect("sent");
                }
            }
        });
        let said = millpond(&["load", "--json", "--count", "2", "--controller", controller, &uri]).json();
        let load = &said["loads"][0];
        let found = ["spurious", "needed", "unknown"].map(|class| load[format!("{class}_retransmissions")].as_u64());
        // Whether the last answer is heard once more is a question of microseconds.
        let is_race = !is_lost && found == [Some(2), Some(0), Some(0)];
        assert!(is_race || found == [Some(spurious), Some(needed), Some(unknown)], "{controller}: {said}");
        assert_eq!((&load["answers"], &load["retransmissions"]), (&2.into(), &2.into()), "{controller}: {said}");
    }
}

#[test]
fn equal_runs_stand_side_by_side() {
    let server = Server::start(&["--quiet"]);
    let said = millpond(&["load", "--json", "--count", "5", "--runs", "3", &server.at("/hello")]).json();
    let loads = said["loads"].as_array().expect("loads");
    assert_eq!(loads.len(), 3, "{said}");
    assert!(loads.iter().all(|load| load["answers"] == 5), "{said}");
}

/// Every third answer is lost, the way a narrow cell loses them.
#[test]
fn a_load_of_non_confirmable_requests_goes_on_where_an_answer_is_lost() {
    let server = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let uri = format!("coap://{}/hello", server.local_addr().expect("its address"));
    std::thread::spawn(move || {
        let mut request = [0; 100];
        for number in 1.. {
            let Ok((length, from)) = server.recv_from(&mut request) else { return };
            let token = &request[4..4 + usize::from(request[0] & 15)];
            assert!(length >= 4 && request[0] >> 4 == 5, "non-confirmable");
            if number % 3 != 0 {
                let header = [0x50 | token.len() as u8, 0x45, 0, number];
                server.send_to(&[&header[..], token].concat(), from).expect("sent");
            }
        }
    });
    let said = millpond(&["load", "--json", "--non", "--count", "5", &uri]).json();
    let load = &said["loads"][0];
    assert_eq!((&load["answers"], &load["failed"], &load["requests"]), (&4.into(), &1.into(), &5.into()), "{said}");
}

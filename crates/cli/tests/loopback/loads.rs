//! Loads, counted.

use crate::program::{Server, command, millpond, signal};

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
    for time in ["shortest", "mean", "median", "p90", "p99", "p999", "longest"] {
        assert!(load["milliseconds"][time].is_null(), "{load}");
    }
    let said = millpond(&["load", "--count", "3", &uri]);
    let out = String::from_utf8_lossy(&said.out);
    let rows: Vec<Vec<_>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["median", "-"]), "{out}");
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

//! OSCORE (RFC 8613): contexts in files, client and server.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use millpond_coap::message::{Message, number};
use millpond_coap::oscore::OscoreOption;

use crate::program::{Said, Server, command, free_port, fresh_directory, millpond, signal};
use crate::secure::Files;

/// A pair of new contexts in a directory of the test's own.
pub(crate) fn pair(name: &str) -> (PathBuf, [String; 2]) {
    pair_with(name, &[])
}

fn pair_with(name: &str, flags: &[&str]) -> (PathBuf, [String; 2]) {
    let directory = fresh_directory(name);
    let files = ["client", "server"].map(|side| file(&directory, side));
    let said = millpond(&[&["oscore", "new"], flags, &[&*files[0], &*files[1]]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    (directory, files)
}

pub(crate) fn file(directory: &Path, name: &str) -> String {
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
    assert_eq!(observed.traced("-> CON FETCH"), 2, "{}", observed.err);
    assert!(!observed.err.contains("GET"), "{}", observed.err);
}

#[test]
fn a_gateway_forwards_what_it_cannot_read() {
    for scheme in ["coap", "coap+tcp"] {
        let (directory, [client, server]) = pair(&format!("protected-gateway-{scheme}"));
        let files = fresh_directory(&format!("protected-gateway-{scheme}-files"));
        let flags = ["--oscore", &server, "--tcp", "--write", files.to_str().expect("UTF-8")];
        let mut serving = Server::start(&flags);
        let to = if scheme == "coap" { serving.at("") } else { serving.listening(scheme) };
        let rules = file(&directory, "gateway.toml");
        std::fs::write(
            &rules,
            format!("[listen]\ncoap = [\"127.0.0.1:0\"]\n[[rule]]\npath = \"/{{*rest}}\"\nto = \"{to}/{{*rest}}\"\n"),
        )
        .expect("written");
        let mut gateway = command(&["gateway", "--quiet", &rules]).spawn().expect("the program is built");
        let mut line = String::new();
        let out = gateway.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it says where it listens");
        let at = line.trim_end().strip_prefix("listening on ").expect("a URI");
        // What protects a block of 1024 bytes is added to it, and then the gateway cuts it.
        for (size, body) in [("512", "0123456789".repeat(500)), ("1024", "9876543210".repeat(2_000))] {
            let sent = file(&directory, "body");
            std::fs::write(&sent, &body).expect("written");
            let put = ["put", "--block-size", size, "--oscore", &client, &format!("{at}/kept"), &format!("@{sent}")];
            let put = millpond(&put);
            assert_eq!((put.code, put.err.as_str()), (Some(0), ""));
            assert_eq!(std::fs::read_to_string(files.join("kept")).expect("it was put"), body);
            let got = millpond(&["get", "--block-size", size, "--oscore", &client, &format!("{at}/kept")]);
            assert_eq!(got.well(), body);
        }
        let observed = millpond(&["observe", "--oscore", &client, "--count", "3", &format!("{at}/count")]);
        assert_eq!(observed.well().lines().count(), 3);
        gateway.kill().expect("it is there");
        gateway.wait().expect("it ends");
    }
}

#[test]
fn one_context_is_for_every_transport() {
    let (directory, [client, server]) = pair("protected-streams");
    let files = Files::new("protected-streams-tls");
    let kept = fresh_directory("protected-streams-files");
    let body: String = (0..30_000).map(|number| format!("{number}\n")).collect();
    let sent = file(&directory, "body");
    std::fs::write(&sent, &body).expect("written");
    let flags = ["--oscore", &server, "--tcp", "--write", kept.to_str().expect("UTF-8")];
    let mut serving = Server::start(&flags);
    let base = serving.listening("coap+tcp");
    let (datagrams, stream) = (serving.at("/kept"), format!("{base}/kept"));
    for (to, from) in [(&datagrams, &stream), (&stream, &datagrams)] {
        let put = millpond(&["put", "--oscore", &client, to, &format!("@{sent}")]);
        assert_eq!((put.code, put.err.as_str()), (Some(0), ""));
        assert_eq!(std::fs::read_to_string(kept.join("kept")).expect("it was put"), body);
        assert_eq!(millpond(&["get", "--oscore", &client, from]).well(), body);
    }
    let observed = millpond(&["observe", "--oscore", &client, "--count", "3", &format!("{base}/count")]);
    assert_eq!(observed.well().lines().count(), 3);
    let plain = millpond(&["get", &stream]);
    assert!(plain.err.contains("answered 4.01 Unauthorized: OSCORE required"), "{}", plain.err);
    let missing = millpond(&["get", "--oscore", &client, &stream.replace("kept", "missing")]);
    assert!(missing.err.contains("answered 4.04 Not Found"), "{}", missing.err);
    drop(serving);

    // It was restarted, and is behind DTLS and TLS now.
    let (certificate, key) = (files.path("cert.pem"), files.path("cert.key"));
    let mut serving =
        Server::start(&["--cert", &certificate, "--key", &key, "--secure-port", "0", "--oscore", &server]);
    for base in ["coaps", "coaps+tcp"].map(|scheme| serving.listening(scheme)) {
        let got = millpond(&["get", "--oscore", &client, "--ca", &files.path("ca.pem"), &format!("{base}/hello")]);
        assert_eq!(got.well(), "Hello from Millpond.\n");
    }
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
            assert_eq!(got.traced("-> CON POST"), if run > 0 && request == 0 { 2 } else { 1 }, "{}", got.err);
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
fn a_client_takes_the_context_of_who_it_asks() {
    let ports = [free_port(), free_port(), free_port()];
    let name = |index: usize| format!("127.0.0.1:{}", ports[index]);
    let (one, two) = (name(0), name(1));
    let pairs = [
        pair_with("protected-for-one", &["--server", &one]),
        pair_with("protected-for-two", &["--edhoc", "--server", &two]),
        pair("protected-for-any"),
    ];
    let serving: Vec<_> = ports
        .iter()
        .zip(&pairs)
        .map(|(port, (_, [_, server]))| Server::start_at(port, &["--oscore", server]))
        .collect();
    let [first, second, any] = pairs.each_ref().map(|(_, [client, _])| &**client);
    for (given, reached) in [
        (&[first, second, any][..], &[0, 1, 2][..]),
        (&[any, second, first], &[2, 1, 0]),
        (&[second, first], &[0, 1]),
        (&[first], &[0]),
        (&[any], &[2]),
    ] {
        let flags: Vec<&str> = given.iter().flat_map(|file| ["--oscore", file]).collect();
        for server in reached {
            let got = millpond(&[&["get"], &*flags, &[&serving[*server].at("/hello")]].concat());
            assert_eq!(got.well(), "Hello from Millpond.\n", "{given:?} {server}");
        }
    }
    let refused = |given: &[&str], uri: &str| {
        let flags: Vec<&str> = given.iter().flat_map(|file| ["--oscore", file]).collect();
        let said = millpond(&[&["get", "--trace"], &*flags, &[uri]].concat());
        assert_eq!((said.code, said.err.lines().count()), (Some(2), 1), "{}", said.err);
        let short = |text: String, (file, short): (&str, &str)| text.replace(file, short);
        [(first, "FIRST"), (second, "SECOND"), (any, "ANY")].into_iter().fold(said.err.trim_end().to_owned(), short)
    };
    assert_eq!(
        refused(&[first, second], &serving[2].at("/hello")),
        format!(
            "millpond: no context for {0}: FIRST:8 is for {one}, SECOND:6 is for {two}; give --oscore a file with `server = \"{0}\"`, \
             or without `server`",
            name(2)
        )
    );
    assert_eq!(
        refused(&[first], "coap://meter-7.example/x"),
        format!(
            "millpond: no context for meter-7.example: FIRST:8 is for {one}; give --oscore a file with `server = \"meter-7.example\"`, \
             or without `server`"
        )
    );
    // Whatever is asked, what is given has to make sense.
    let again = format!("\nserver = \"{one}\"\n");
    let text = std::fs::read_to_string(any).expect("it was written");
    std::fs::write(any, format!("{text}{again}")).expect("written");
    assert_eq!(
        refused(&[second, first, any], &serving[1].at("/hello")),
        format!("millpond: ANY:8: for {one}, as FIRST:8 is; leave one of the two out")
    );
    std::fs::write(any, text).expect("written");
    assert_eq!(
        refused(&[any, any], &serving[2].at("/hello")),
        "millpond: ANY: for any server, as ANY is; name one's (`server = \"HOST\"`), or leave it out"
    );
    // One that is not chosen is looked at, too, but nothing is locked.
    std::fs::write(any, "secret = 7\n").expect("written");
    assert!(refused(&[first, any], &serving[0].at("/hello")).starts_with("millpond: ANY:1: "));
}

#[test]
fn what_cannot_be_protected_is_refused_before_anything_is_sent() {
    let (directory, _) = pair("protected-refused");
    for flags in
        [&["serve", "--oscore", "x", "--q-block"][..], &["get", "--oscore", "x", "--q-block", "coap://127.0.0.1/"]]
    {
        let said = millpond(flags);
        assert_eq!(said.code, Some(2));
        assert!(said.err.contains("--oscore"), "{}", said.err);
    }
    let missing = millpond(&["get", "--oscore", &file(&directory, "none"), "coap://127.0.0.1/"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.ends_with("none: No such file or directory\n"), "{}", missing.err);
}

/// What a relay has seen between one client and one server: to it or, if 1, from it.
pub(crate) type Seen = Vec<(usize, Vec<u8>)>;

/// Relays datagrams to this port until the test ends, and keeps them. With the port where it listens.
pub(crate) fn relay(server: &str) -> (u16, Arc<Mutex<Seen>>) {
    let outside = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let inside = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    inside.connect(format!("127.0.0.1:{server}")).expect("an address");
    let port = outside.local_addr().expect("it is bound").port();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let client = Arc::new(Mutex::new(None));
    for direction in 0..2 {
        let (outside, inside) = (outside.try_clone().expect("a copy"), inside.try_clone().expect("a copy"));
        let (seen, client) = (Arc::clone(&seen), Arc::clone(&client));
        std::thread::spawn(move || {
            let mut bytes = [0; 2_000];
            loop {
                let Ok((length, from)) = (if direction == 0 { &outside } else { &inside }).recv_from(&mut bytes) else {
                    // Nobody listens at the moment.
                    continue;
                };
                seen.lock().expect("unpoisoned").push((direction, bytes[..length].to_vec()));
                // What does not arrive was lost.
                if direction == 0 {
                    *client.lock().expect("unpoisoned") = Some(from);
                    let _ = inside.send(&bytes[..length]);
                } else if let Some(client) = *client.lock().expect("unpoisoned") {
                    let _ = outside.send_to(&bytes[..length], client);
                }
            }
        });
    }
    (port, seen)
}

/// Each nonce of either side with what was encrypted under it.
fn nonces(seen: &[(usize, Vec<u8>)]) -> [BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>; 2] {
    let mut nonces = [BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::new()];
    let mut of_requests = BTreeMap::new();
    for (side, datagram) in seen {
        let message = Message::parse(datagram).expect("a message");
        let Some(option) = message.option(number::OSCORE) else { continue };
        let option = OscoreOption::decode(option).expect("an option");
        let exchange = (message.id.0, message.token.as_bytes().to_vec());
        let nonce = match (side, option.partial_iv) {
            (0, number) => {
                let number = number.expect("a request has a number").as_bytes().to_vec();
                of_requests.insert(exchange, number.clone());
                number
            }
            // That of the request.
            (_, None) => [&b"of the client "[..], of_requests.get(&exchange).expect("it is answered")].concat(),
            (_, Some(number)) => number.as_bytes().to_vec(),
        };
        nonces[*side].entry(nonce).or_default().insert(message.payload().to_vec());
    }
    nonces
}

#[test]
fn a_server_that_is_killed_amid_requests_serves_at_once_and_no_nonce_is_used_twice() {
    let (directory, [client, server]) = pair("protected-killed");
    let files = fresh_directory("protected-killed-files");
    let flags = ["--oscore", &server, "--write", files.to_str().expect("UTF-8")];
    let body = file(&directory, "body");
    std::fs::write(&body, "x".repeat(30_000)).expect("written");
    let port = free_port();
    let (relayed, seen) = relay(&port);
    let at = |path: &str| format!("coap://127.0.0.1:{relayed}{path}");
    for run in 0..4 {
        let serving = Server::start_at(&port, &flags);
        let got = millpond(&["get", "--oscore", &client, &at("/hello")]);
        assert_eq!(got.well(), "Hello from Millpond.\n", "run {run}");
        let before = seen.lock().expect("unpoisoned").len();
        let mut putting = command(&["put", "--oscore", &client, "--timeout", "20s", &at("/kept"), &format!("@{body}")])
            .spawn()
            .expect("built");
        let is_amid = || seen.lock().expect("unpoisoned").len() >= before + 16;
        while !is_amid() && putting.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        // By SIGKILL. Then nobody answers the client any more.
        drop(serving);
        if putting.try_wait().expect("a child").is_none() {
            signal(&putting, "INT");
        }
        let said = Said::from(putting.wait_with_output().expect("it ends"));
        assert!(is_amid(), "{}", said.err);
    }
    let seen = seen.lock().expect("unpoisoned");
    let [of_client, of_server] = nonces(&seen);
    assert!(of_client.len() > 24 && of_server.len() > 20, "{} and {}", of_client.len(), of_server.len());
    for (nonce, encrypted) in of_client.iter().chain(&of_server) {
        assert_eq!(encrypted.len(), 1, "{nonce:?}");
    }
}

#[test]
fn who_wants_no_response_under_a_context_is_told_that_it_was_sent_or_acknowledged() {
    let (_, [client, server]) = pair("protected-silent");
    let files = fresh_directory("protected-silent-files");
    let serving = Server::start(&["--oscore", &server, "--write", files.to_str().expect("UTF-8")]);
    for (name, flags, outcome) in [
        ("one", &["--no-response"][..], "acknowledged"),
        ("two", &["--no-response", "--non"], "sent"),
        ("three", &["--no-response=2xx,5xx", "--timeout", "3s"], "acknowledged"),
    ] {
        let to = serving.at(&format!("/{name}"));
        let said = millpond(&[&["put", "--json", "--oscore", &client], flags, &[&to, "hi"]].concat());
        assert_eq!((said.json()["outcome"].as_str(), said.code), (Some(outcome), Some(0)), "{}", said.err);
    }
    // They were carried out; the one that was only sent is on its way.
    let got = |name: &str| millpond(&["get", "--oscore", &client, &serving.at(&format!("/{name}"))]);
    assert_eq!((got("one").well(), got("two").well(), got("three").well()), ("hi", "hi", "hi"));
    // A failure that is wanted is one.
    let failed = millpond(&["put", "--no-response=2xx", "--oscore", &client, &serving.at("/none/of/it"), "hi"]);
    assert_eq!(failed.code, Some(4), "{}", failed.err);
}

#[test]
fn a_host_is_discovered_under_a_context_and_a_group_is_not() {
    let (_, [client, server]) = pair("protected-discovered");
    let serving = Server::start(&["--oscore", &server]);
    let found = millpond(&["discover", "--oscore", &client, &serving.at("")]);
    assert!(found.well().contains("</hello>"), "{}", found.well());
    let refused = millpond(&["discover", "--oscore", &client, "224.0.1.187"]);
    assert_eq!((refused.code, refused.err.lines().count()), (Some(2), 1), "{}", refused.err);
}

#[test]
fn who_wants_to_know_more_is_shown_what_is_inside_and_what_is_seen() {
    let (_, [client, server]) = pair("protected-verbose");
    let serving = Server::start(&["--oscore", &server]);
    let got = millpond(&["get", "-v", "--oscore", &client, &serving.at("/hello")]);
    assert_eq!(got.well(), "Hello from Millpond.\n");
    for part in ["GET coap://", "2.05 Content", "-> CON POST ", "<- ACK 2.04 Changed "] {
        assert!(got.err.contains(part), "{part}: {}", got.err);
    }
}

#[test]
fn a_client_whose_numbers_are_those_of_an_older_copy_is_told_so() {
    let (_, [client, server]) = pair("protected-older");
    let sent = format!("{client}.sent");
    let serving = Server::start(&["--oscore", &server]);
    let get = || millpond(&["get", "--oscore", &client, &serving.at("/hello")]);
    assert_eq!(get().well(), "Hello from Millpond.\n");
    // By hand, so that nothing but the server can tell.
    std::fs::write(&sent, "0\n").expect("written");
    let refused = get();
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("has received this sequence number before"), "{}", refused.err);
}

/// docs/appendix/oscore.md, "What it costs": bytes of a UDP payload.
#[test]
fn protection_costs_the_bytes_that_the_page_says_and_no_handshake() {
    let (directory, [client, server]) = pair("protected-bytes");
    let keys = file(&directory, "keys");
    std::fs::write(&keys, "me:0x6b6579\n").expect("written");
    let port = |uri: &str| uri.rsplit_once(':').expect("a port").1.to_owned();
    // In the clear, under OSCORE, and over DTLS by a pre-shared key.
    let plain = Server::start(&[]);
    let protected = Server::start(&["--oscore", &server]);
    let mut secure = Server::start(&["--psk-file", &keys, "--secure-port", "0"]);
    let sides = [
        ("coap", port(&plain.at("")), vec![]),
        ("coap", port(&protected.at("")), vec!["--oscore", &client]),
        ("coaps", port(&secure.listening("coaps")), vec!["--psk", "me:key"]),
    ];
    let mut all = Vec::new();
    for (scheme, port, flags) in sides {
        let (relayed, seen) = relay(&port);
        let uri = format!("{scheme}://127.0.0.1:{relayed}/hello");
        assert_eq!(millpond(&[&["get"], &flags[..], &[&uri]].concat()).well(), "Hello from Millpond.\n");
        let seen = seen.lock().expect("unpoisoned").clone();
        // What is application data has this type in a record of DTLS.
        let is_message = |datagram: &[u8]| scheme == "coap" || datagram.first() == Some(&23);
        let of_side = |side| {
            let mut messages = seen.iter().filter(|(from, datagram)| *from == side && is_message(datagram));
            messages.next().expect("a message").1.len()
        };
        let before = seen.iter().take_while(|(_, datagram)| !is_message(datagram));
        let handshake: Vec<_> = before.map(|(_, datagram)| datagram.len()).collect();
        all.push((of_side(0), of_side(1), handshake));
    }
    let [plain, oscore, dtls] = &all[..] else { panic!("three sides") };
    assert_eq!((plain, oscore), (&(14, 31, vec![]), &(29, 42, vec![])));
    // 591 bytes. python/millpond/fleet/security.py has these flights.
    assert_eq!(dtls, &(43, 60, vec![114, 60, 146, 108, 96, 67]));
}

/// Who begins handshakes from addresses that nobody has shown to be its own keeps no client out.
#[test]
fn a_flood_of_handshakes_keeps_nobody_out() {
    // message_1 of RFC 9529 section 3.
    const MESSAGE_1: &[u8] =
        b"\x03\x82\x06\x02\x58\x20\x8a\xf6\xf4\x30\xeb\xe1\x8d\x34\x18\x40\x17\xa9\xa1\x1b\xf5\x11\xc8\
        \xdf\xf8\xf8\x34\x73\x0b\x96\xc1\xb7\xc8\xdb\xca\x2f\xc3\xb6\x37";
    let directory = fresh_directory("protected-flood");
    let [client, server] = ["client", "server"].map(|side| file(&directory, side));
    assert_eq!(millpond(&["oscore", "new", "--edhoc", &client, &server]).code, Some(0));
    let serving = Server::start(&["--oscore", &server]);
    let at = serving.at("").trim_start_matches("coap://").trim_end_matches('/').to_owned();
    // Of the loopback this address alone is not trusted.
    let socket = || UdpSocket::bind("127.0.0.2:0").expect("a free port");
    let begin = |socket: &UdpSocket, id: u8, echo: &[u8]| {
        let path = b"\xbb.well-known\x05edhoc";
        let echo = if echo.is_empty() { Vec::new() } else { [&[0xd0 | echo.len() as u8, 228][..], echo].concat() };
        let request = [&[0x40, 2, 0, id][..], path, &echo, b"\xff\xf5", MESSAGE_1].concat();
        let mut answer = [0; 1_500];
        socket.set_read_timeout(Some(std::time::Duration::from_secs(1))).expect("it is not zero");
        let length = loop {
            socket.send_to(&request, &at).expect("sent");
            if let Ok(length) = socket.recv(&mut answer) {
                break length;
            }
        };
        let answer = Message::parse(&answer[..length]).expect("a message");
        (answer.code.to_string(), answer.option(number::ECHO).map(<[u8]>::to_vec))
    };
    let answers: Vec<_> = (0..20).map(|id| begin(&socket(), id, &[])).collect();
    let (begun, refused) = answers.split_at(16);
    assert!(begun.iter().all(|(code, _)| code.starts_with("2.04")), "{answers:?}");
    assert!(refused.iter().all(|(code, echo)| code.starts_with("4.01") && echo.is_some()), "{answers:?}");
    let shows = socket();
    let (_, echo) = begin(&shows, 100, &[]);
    assert!(begin(&shows, 101, &echo.expect("Echo")).0.starts_with("2.04"));
    let got = millpond(&["get", "--oscore", &client, &serving.at("/hello")]);
    assert!(got.well().starts_with("Hello"));
}

#[test]
fn credentials_agree_upon_a_context_that_protects_everything_after() {
    let directory = fresh_directory("protected-edhoc");
    let [client, server] = ["client", "server"].map(|side| file(&directory, side));
    let said = millpond(&["oscore", "new", "--edhoc", &client, &server]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let mut serving = Server::start(&["--oscore", &server, "--tcp"]);
    let base = serving.listening("coap+tcp");
    for uri in [serving.at("/hello"), format!("{base}/hello")] {
        assert!(millpond(&["get", "--oscore", &client, &uri]).well().starts_with("Hello"));
    }
    // One that begins anew replaces its context; what is not protected is refused as before.
    let again = millpond(&["get", "--verbose", "--oscore", &client, &serving.at("/hello")]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let plain = millpond(&["get", &serving.at("/hello")]);
    assert!(plain.err.contains("answered 4.01 Unauthorized: OSCORE required"), "{}", plain.err);

    // Who is not known, and a server that is another, agree upon nothing.
    let [stray, elsewhere] = ["stray", "elsewhere"].map(|side| file(&directory, side));
    assert_eq!(millpond(&["oscore", "new", "--edhoc", &stray, &elsewhere]).code, Some(0));
    let told = millpond(&["get", "--oscore", &stray, &serving.at("/hello")]);
    assert_eq!(told.code, Some(8));
    assert!(told.err.contains("EDHOC: unknown credential"), "{}", told.err);
    let known = std::fs::read_to_string(&client).expect("it was made");
    let peers = known.lines().find(|line| line.starts_with("peers")).expect("its server");
    let kept = std::fs::read_to_string(&stray).expect("it was made");
    let kept: String = kept.lines().filter(|line| !line.starts_with("peers")).map(|line| format!("{line}\n")).collect();
    std::fs::write(&stray, format!("{kept}{peers}\n")).expect("written");
    let told = millpond(&["get", "--oscore", &stray, &serving.at("/hello")]);
    assert!(told.err.contains("EDHOC is refused: the server does not know this credential"), "{}", told.err);
    let plain = Server::start(&[]);
    let told = millpond(&["get", "--oscore", &client, &plain.at("/hello")]);
    assert!(told.err.contains("EDHOC is answered 4.04: check that the server does it"), "{}", told.err);

    // What cannot be used is told in a line.
    std::fs::write(&stray, known.replace("peers = [\"", "peers = [\"zz")).expect("written");
    let told = millpond(&["get", "--oscore", &stray, &plain.at("/hello")]);
    assert!(told.err.trim_end().ends_with("peers: give hexadecimal digits, two for each byte"), "{}", told.err);
}

#[test]
fn keys_that_are_derived_anew_outlive_the_loss_of_everything_but_the_secret() {
    let (directory, [client, server]) = pair_with("protected-anew", &["--derive-anew"]);
    let files = fresh_directory("protected-anew-files");
    let body: String = (0..5_000).map(|number| format!("{number}\n")).collect();
    let sent = file(&directory, "body");
    std::fs::write(&sent, &body).expect("written");
    let flags = ["--oscore", &server, "--write", files.to_str().expect("UTF-8")];
    let stored = || [&client, &server].map(|context| std::fs::read(format!("{context}.sent")).expect("it is there"));
    let port = free_port();
    let made = stored();
    for _ in 0..2 {
        let serving = Server::start_at(&port, &flags);
        let put = millpond(&["put", "--oscore", &client, &serving.at("/kept"), &format!("@{sent}")]);
        assert_eq!((put.code, put.err.as_str()), (Some(0), ""));
        assert_eq!(millpond(&["get", "--oscore", &client, &serving.at("/kept")]).well(), body);
        let observed = millpond(&["observe", "--oscore", &client, "--count", "3", &serving.at("/count")]);
        assert_eq!(observed.well().lines().count(), 3);
    }
    // No number is stored, so there is none to be set back.
    assert_eq!(stored(), made);
}

#[test]
fn an_observation_goes_on_after_the_server_has_lost_the_keys_that_were_derived() {
    let (_, [client, server]) = pair_with("protected-anew-observed", &["--derive-anew"]);
    let port = free_port();
    let flags = ["--oscore", &*server];
    let mut serving = Server::start_at(&port, &flags);
    let mut observing = command(&["observe", "--oscore", &client, "--count", "20", &serving.at("/count")]);
    let mut observing = observing.stdout(std::process::Stdio::piped()).spawn().expect("built");
    let lines = &mut std::io::BufReader::new(observing.stdout.take().expect("piped"));
    let mut line = String::new();
    while line.lines().count() < 3 {
        std::io::BufRead::read_line(lines, &mut line).expect("UTF-8");
    }
    drop(serving);
    serving = Server::start_at(&port, &flags);
    std::io::Read::read_to_string(lines, &mut line).expect("UTF-8");
    assert_eq!(line.lines().count(), 20);
    assert!(observing.wait().expect("it ends").success());
    drop(serving);
}

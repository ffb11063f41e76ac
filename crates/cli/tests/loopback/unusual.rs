//! Devices and addresses that are not as usual.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;

use crate::program::{Server, command, free_port, millpond, signal};

#[test]
fn all_addresses_are_those_of_both_versions_of_ip() {
    let port = free_port();
    let mut child =
        command(&["serve", "--bind", "::", "--port", &port, "--tcp"]).spawn().expect("the program is built");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut lines = String::new();
    for _ in 0..3 {
        out.read_line(&mut lines).expect("it says where it listens");
    }
    for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"] {
        for scheme in ["coap", "coap+tcp"] {
            let said = millpond(&["get", &format!("{scheme}://{host}:{port}/hello")]);
            assert_eq!(said.well(), "Hello from Millpond.\n", "{scheme} {host}: {lines}");
        }
    }
    let said = millpond(&["get", &format!("coap://127.0.0.1:{port}/none")]);
    assert_eq!(said.code, Some(4));
    signal(&child, "TERM");
    let mut log = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut log).expect("UTF-8");
    child.wait().expect("it ends");
    assert!(log.contains("GET /none  4.04 Not Found, 0 bytes (no resource has this path)"), "{log}");
}

#[test]
fn a_body_that_is_too_long_names_the_flag_that_takes_it() {
    let server = Server::start(&[]);
    let uri = server.at("/large?size=20k");
    let said = millpond(&["get", "--max-size", "1k", &uri]);
    assert_eq!(said.err, "millpond: the body is longer than 1000 bytes; raise --max-size to take it\n");
    assert_eq!(millpond(&["get", "--max-size", "20k", &uri]).well().len(), 20_000);
}

#[test]
fn a_request_leaves_from_the_port_that_was_asked_for() {
    let device = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (uri, port) = (format!("coap://{}/", device.local_addr().expect("bound")), free_port());
    let mut child = command(&["get", "--non", "--timeout", "1s", "--source-port", &port, &uri]).spawn().expect("built");
    let (_, from) = device.recv_from(&mut [0; 100]).expect("it asks");
    assert_eq!(from.port().to_string(), port);
    child.wait().expect("it gives up");
    for (flag, scheme, why) in [
        ("--no-csm", "coap", "--no-csm is for TCP and TLS"),
        ("--source-port=7", "coap+tcp", "--source-port and --max-datagram are for UDP and DTLS"),
    ] {
        let said = millpond(&["get", flag, &format!("{scheme}://127.0.0.1:1/")]);
        assert!(said.code == Some(2) && said.err.contains(why), "{}", said.err);
    }
}

#[test]
fn what_nobody_asked_for_is_printed() {
    let mut server = Server::start(&["--unasked"]);
    let device = UdpSocket::bind("127.0.0.1:0").expect("a port");
    device.connect(server.at("").trim_start_matches("coap://")).expect("an address");
    // CON 2.05, and NON 0.30 /cit/s with option 3332.
    device.send(b"\x42\x45\x12\x34ab\xffon").expect("sent");
    let mut answer = [0; 20];
    let length = device.recv(&mut answer).expect("an acknowledgement");
    assert_eq!(answer[..length], [0x60, 0, 0x12, 0x34]);
    let first = server.line();
    device.send(b"\x50\x1e\x12\x35\xb3cit\x01s\xe5\x0b\xecSHSW1\xff{}").expect("sent");
    let second = server.line();
    let [first, second] = [first, second].map(|line| serde_json::from_str::<serde_json::Value>(&line).expect("JSON"));
    assert_eq!((&first["code"], &first["payload"]), (&"2.05".into(), &"on".into()), "{first}");
    assert_eq!((&second["code"], &second["path"]), (&"0.30".into(), &"/cit/s".into()), "{second}");
    assert_eq!(
        second["options"].as_array().and_then(|all| all.last()).map(|option| &option["number"]),
        Some(&3_332.into())
    );
}

//! The relay between our own client and server.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStderr};
use std::thread::sleep;
use std::time::Duration;

use super::operations::{fetched, samples};
use super::program::{Said, Server, command, fresh_directory, millpond, signal};

/// A relay in front of a server.
pub(crate) struct Relay {
    child: Child,
    err: BufReader<ChildStderr>,
    pub(crate) at: String,
}

impl Relay {
    pub(crate) fn start(server: &Server, arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", server, arguments)
    }

    pub(crate) fn start_at(listen: &str, server: &Server, arguments: &[&str]) -> Self {
        let to = server.at("").replace("coap://", "");
        let mut all = vec!["relay", "--listen", listen, "--to", &to];
        all.extend(arguments);
        let mut child = command(&all).spawn().expect("the program is built");
        let mut err = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        err.read_line(&mut line).expect("it says where it listens");
        let at = line.strip_prefix("relaying ").and_then(|rest| rest.split(' ').next());
        let at = at.unwrap_or_else(|| panic!("it said {line}")).to_owned();
        Self { child, err, at }
    }

    /// The lines up to the first one with this.
    fn until(&mut self, part: &str) -> Vec<String> {
        let mut lines = Vec::<String>::new();
        while lines.last().is_none_or(|line| !line.contains(part)) {
            let mut line = String::new();
            assert!(self.err.read_line(&mut line).expect("UTF-8") > 0, "{part} is not in\n{lines:?}");
            lines.push(line.trim_end().to_owned());
        }
        lines
    }

    /// Asks it to end.
    pub(crate) fn end(mut self, with: &str) -> Said {
        signal(&self.child, with);
        let mut err = String::new();
        self.err.read_to_string(&mut err).expect("UTF-8");
        let Said { out, code, .. } = self.child.wait_with_output().expect("it ends").into();
        Said { out, err, code }
    }
}

const PATH: &str = "[uplink]\nrate = \"1 Mbit/s\"\ndelay = \"30 ms\"\nqueue = \"9 kB\"\n\
                    [downlink]\nrate = \"1 Mbit/s\"\ndelay = \"50 ms\"\nqueue = \"9 kB\"\n";

#[test]
fn a_request_takes_the_time_of_the_path_and_is_told_in_the_columns_of_the_simulator() {
    let server = Server::start(&[]);
    let file = fresh_directory("relays").join("path.toml");
    std::fs::write(&file, PATH).expect("written");
    // However late this machine is, what was carried is told.
    let relay = Relay::start(&server, &[file.to_str().expect("plain"), "--json", "--lateness", "1h"]);
    let uri = format!("coap://{}/hello", relay.at);
    let answer = millpond(&["get", "--json", &uri]).json();
    let round_trip = answer["round_trip_ms"].as_f64().expect("a number");
    assert!(round_trip >= 80.0, "{round_trip}");
    let said = relay.end("INT");
    let report = said.json();
    assert_eq!(said.code, Some(0), "{}", said.err);
    for (link, name) in ["uplink", "downlink"].into_iter().enumerate() {
        let row = &report["links"][link];
        assert_eq!(row["link"], name);
        assert!(row["delivered_packets"].as_u64() >= Some(1), "{row}");
        assert_eq!(row["dropped_queue_packets"], 0);
    }
    assert!(report["flows"][0]["fct_us"].as_u64() >= Some(80_000), "{report}");
    assert!(report["lateness"]["packets"].as_u64() >= Some(2), "{report}");
}

#[test]
fn a_run_that_was_later_than_its_bound_says_so_with_an_exit_code_of_its_own() {
    let server = Server::start(&[]);
    // No machine hands packets on within a nanosecond, which is told as 0 µs.
    let relay = Relay::start(&server, &["nbiot-anrw18", "--lateness", "1ns"]);
    millpond(&["get", &format!("coap://{}/hello", relay.at)]).well();
    let said = relay.end("TERM");
    assert_eq!(said.code, Some(3), "{}", said.err);
    let line = said.err.lines().last().unwrap_or_default();
    assert!(line.starts_with("millpond: not valid: ") && line.contains("--lateness"), "{line}");
}

/// A confirmable GET of /hello.
fn hello(id: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [0x41, 1, high, low, 7, 0xb5, b'h', b'e', b'l', b'l', b'o'].to_vec()
}

/// A socket at which answers are awaited for long.
fn client(relay: &Relay) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    socket.connect(&relay.at).expect("an address");
    socket
}

/// The next answer, if one comes in time. A ping is rejected, as RFC 7252 §4.3 has it, which shows that the address receives.
fn answer(socket: &UdpSocket) -> Option<usize> {
    let mut bytes = [0; 1_500];
    loop {
        match socket.recv(&mut bytes).ok()? {
            4 if bytes[..2] == [0x40, 0] => {
                bytes[0] = 0x70;
                socket.send(&bytes[..4]).expect("sent");
            }
            length => return Some(length),
        }
    }
}

/// Whether no answer comes for so many seconds.
fn is_silent(socket: &UdpSocket, seconds: u64) -> bool {
    let usual = socket.read_timeout().expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(seconds))).expect("a socket");
    let is_silent = answer(socket).is_none();
    socket.set_read_timeout(usual).expect("a socket");
    is_silent
}

#[test]
fn a_calm_relay_keeps_copies_from_a_server_that_answers_all_of_them() {
    let server = Server::start(&[]);
    let relay = Relay::start(&server, &["none", "--calm", "--json"]);
    let socket = client(&relay);
    socket.send(&hello(1)).expect("sent");
    let mut ping = [0; 4];
    assert_eq!(socket.recv(&mut ping).expect("a ping"), 4);
    answer(&socket).expect("an answer");
    // It is rejected late: a queue, as far as anybody can see.
    sleep(Duration::from_secs(2));
    ping[0] = 0x70;
    socket.send(&ping).expect("sent");
    socket.send(&hello(2)).expect("sent");
    answer(&socket).expect("an answer");
    for _ in 0..20 {
        socket.send(&hello(2)).expect("sent");
    }
    // A record of DTLS, which no server answers in the clear.
    socket.send(&[0x17, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 2, 1, 2]).expect("sent");
    assert!(is_silent(&socket, 2));
    // Its second ping came back at once.
    socket.send(&hello(2)).expect("sent");
    answer(&socket).expect("an answer");
    let report = relay.end("INT").json();
    let counts: Vec<_> = report["gate"].as_array().expect("rows").iter().map(|row| row["datagrams"].as_u64()).collect();
    let [Some(withheld), Some(due), Some(lost), Some(third), Some(unknown), Some(unreadable)] = counts[..] else {
        panic!("{report}");
    };
    assert_eq!((withheld, due + lost, third, unknown, unreadable), (20, 1, 0, 0, 1), "{report}");
    assert_eq!(report["left_out"][0]["packets"], withheld + 2, "and the resets that pings of the relay drew");
}

#[test]
fn a_relay_drops_copies_while_the_ones_before_them_wait_in_its_queue() {
    let server = Server::start(&[]);
    let file = fresh_directory("relays-once").join("path.toml");
    // A request of 39 B takes almost two seconds to leave.
    let narrow = PATH.replacen("1 Mbit/s", "160 bit/s", 1);
    std::fs::write(&file, narrow).expect("written");
    let path = file.to_str().expect("plain");
    let relay = Relay::start(&server, &[path, "--withhold", "--json", "--lateness", "1h"]);
    let socket = client(&relay);
    for id in [1, 1, 1, 2, 2] {
        socket.send(&hello(id)).expect("sent");
    }
    for _ in 0..2 {
        answer(&socket).expect("one to each message");
    }
    assert!(is_silent(&socket, 5), "and none to a copy");
    let report = relay.end("INT").json();
    assert_eq!(report["links"][0]["offered_packets"], 2, "{report}");
    assert_eq!(report["left_out"][0]["packets"], 3, "{report}");
    let said = millpond(&["relay", "none", "--withhold", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"]);
    assert!(said.err.contains("--withhold: `none` has no queue"), "{}", said.err);
    assert_eq!((said.code, said.err.lines().count()), (Some(2), 1), "{}", said.err);
}

#[test]
fn a_full_relay_says_so_at_once_and_goes_on_with_those_that_it_has() {
    let server = Server::start(&[]);
    let flags = ["none", "--calm", "--clients", "50", "--metrics", "127.0.0.1:0", "--log", "text"];
    let mut relay = Relay::start(&server, &flags);
    let lines = relay.until("metrics at ");
    assert!(lines.iter().any(|line| line == "room for 50 clients at a time"), "{lines:?}");
    let metrics = lines.last().and_then(|line| line.split('/').nth(2)).expect("an address").to_owned();
    let clients: Vec<_> = (0..60).map(|_| client(&relay)).collect();
    let (those, others) = clients.split_at(50);
    for client in those {
        client.send(&hello(1)).expect("sent");
        answer(client).expect("an answer");
    }
    for other in others {
        other.send(&hello(1)).expect("sent");
    }
    // All of one network: nobody gives way.
    let lines = relay.until("  full: ");
    assert!(lines.last().is_some_and(|full| full.contains("50 clients and room for 50; 0 gave way")), "{lines:?}");
    let came = |client: &UdpSocket| format!("{} came; the server sees 127.", client.local_addr().expect("bound"));
    for client in those {
        assert!(lines.iter().any(|line| line.contains(&came(client))), "{lines:?}");
        client.send(&hello(2)).expect("sent");
        answer(client).expect("an answer");
    }
    for other in others {
        other.set_nonblocking(true).expect("a socket");
        assert!(answer(other).is_none());
    }
    let figures = samples(&fetched(&metrics, "/metrics").1);
    assert_eq!((figures["millpond_relay_clients"], figures["millpond_relay_room"]), (50.0, 50.0));
    for (name, least) in [
        ("refused_total", 1.0),
        ("left_out_total{why=\"too many clients at a time\"}", 1.0),
        ("forwarded_total{link=\"uplink\"}", 50.0),
        ("forwarded_bytes_total{link=\"downlink\"}", 50.0 * 48.0),
        ("copies_total{became=\"withheld\"}", 0.0),
        ("dropped_total{link=\"uplink\",why=\"queue full\"}", 0.0),
        ("queue_bytes{link=\"downlink\"}", 0.0),
        ("lateness_seconds{share=\"0.99\"}", 0.0),
    ] {
        let value = figures.get(&format!("millpond_relay_{name}"));
        assert!(value.is_some_and(|value| *value >= least), "{name} in {figures:#?}");
    }
    let rest = relay.end("TERM");
    assert_eq!(rest.code, Some(0), "{}", rest.err);
}

#[test]
fn a_relay_tells_programs_an_object_on_each_line() {
    let server = Server::start(&[]);
    let to = server.at("").replace("coap://", "");
    let flags = ["relay", "none", "--calm", "--log", "json", "--listen", "127.0.0.1:0", "--to", &to];
    let mut child = command(&flags).spawn().expect("the program is built");
    let mut lines =
        BufReader::new(child.stderr.take().expect("it is piped")).lines().map(|line| -> serde_json::Value {
            let line = line.expect("UTF-8");
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
        });
    let listening = lines.next().expect("a line");
    assert_eq!((&listening["event"], &listening["room"]), (&"listening".into(), &listening["room"].as_u64().into()));
    let at = listening["at"].as_str().expect("an address").to_owned();
    // Nobody answers to a port that only one relay has.
    millpond(&["get", &format!("coap://{at}/hello")]).well();
    let came = lines.next().expect("a line");
    assert_eq!(came["event"], "came", "{came}");
    assert!(came["client"].as_str().is_some_and(|client| client.starts_with("127.0.0.1:")), "{came}");
    assert!(came["seen_as"].as_str().is_some_and(|seen_as| seen_as.starts_with("127.0.0.1:")), "{came}");
    assert!(came["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{came}");
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(lines.filter(|line| line["event"] != "dropped").count(), 0);
}

#[test]
fn copies_are_told_from_what_is_of_use() {
    let server = Server::start(&[]);
    let relay = Relay::start(&server, &["none", "--json"]);
    let socket = client(&relay);
    for _ in 0..5 {
        socket.send(&hello(1)).expect("sent");
        socket.recv(&mut [0; 1_500]).expect("an answer to each copy");
    }
    // A record of DTLS, which nobody in between can read.
    socket.send(&[0x17, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 2, 1, 2]).expect("sent");
    assert!(is_silent(&socket, 2));
    let report = relay.end("INT").json();
    for (link, delivered) in [(0, 6), (1, 5)] {
        let row = &report["links"][link];
        assert_eq!(row["delivered_packets"], delivered, "{report}");
        let bytes = |name: &str| row[name].as_u64().expect("a count");
        assert_eq!(bytes("read_bytes"), 5 * bytes("useful_bytes"), "{report}");
        assert_eq!(bytes("read_bytes") < bytes("delivered_bytes"), link == 0, "{report}");
    }
}

#[test]
fn a_relay_ends_when_its_time_is_over() {
    let server = Server::start(&[]);
    let to = server.at("").replace("coap://", "");
    let said = millpond(&["relay", "nbiot-anrw18", "--listen", "127.0.0.1:0", "--to", &to, "--for", "50ms", "--quiet"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
}

#[test]
fn what_cannot_be_relayed_is_one_line() {
    let server = Server::start(&[]);
    let taken = server.at("").replace("coap://", "");
    let directory = fresh_directory("relays-refused");
    let file = |name: &str, text: &str| {
        let file = directory.join(name);
        std::fs::write(&file, text).expect("written");
        file.to_str().expect("plain").to_owned()
    };
    let misspelt = file("misspelt.toml", &PATH.replace("queue", "quue"));
    let mesh = file("mesh.toml", "[mesh]\nnodes = 30\n[[clients]]\ncount = 1\n");
    for (path, listen, to, part, code) in [
        ("nbiot-anrv18", "127.0.0.1:0", taken.as_str(), "did you mean `nbiot-anrw18`?", 2),
        (&misspelt, "127.0.0.1:0", &taken, "did you mean `queue`?", 2),
        (&mesh, "127.0.0.1:0", &taken, "one path is needed", 2),
        ("no/such.toml", "127.0.0.1:0", &taken, "no/such.toml: No such file or directory", 1),
        ("nbiot-anrw18", &taken, "127.0.0.1:9", "cannot be listened at: Address already in use", 1),
        ("nbiot-anrw18", "127.0.0.1:9", "127.0.0.1:9", "forward to itself", 1),
        ("nbiot-anrw18", "127.0.0.1:0", "127.0.0.1", "the port is missing", 2),
        ("nbiot-anrw18", "127.0.0.1:0", "localhost:coap", "port", 2),
        ("nbiot-anrw18", "127.0.0.1:0", "nobody.invalid:9", "--to nobody.invalid:9 does not resolve", 7),
    ] {
        let said = millpond(&["relay", path, "--listen", listen, "--to", to]);
        assert!(said.err.contains(part), "{path}: {}", said.err);
        assert_eq!((said.code, said.err.lines().count()), (Some(code), 1), "{}", said.err);
    }
    // A documentation address (RFC 5737) is never this machine's.
    let said = millpond(&["relay", "none", "--listen", "127.0.0.1:0", "--to", "[::1]:9", "--from", "192.0.2.1"]);
    assert!(said.err.contains("[::1]:9 cannot be reached from 192.0.2.1"), "{}", said.err);
    assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{}", said.err);
}

#[test]
fn what_a_relay_came_to_is_kept_in_a_folder() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("relayed").join("once");
    let _ = std::fs::remove_dir_all(&folder);
    let place = folder.to_str().expect("plain");
    let said = millpond(&[
        "relay",
        "nbiot-anrw18",
        "--listen",
        "127.0.0.1:0",
        "--to",
        "127.0.0.1:9",
        "--for",
        "10ms",
        "--out",
        place,
    ]);
    said.well();
    let text = std::fs::read_to_string(folder.join("report.json")).expect("it was written");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["links"][1]["link"], "downlink", "{report}");
    let said =
        millpond(&["relay", "nbiot-anrw18", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "--out", "/dev/null/x"]);
    assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{}", said.err);
}

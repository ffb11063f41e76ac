//! The relay over the loopback interface: real sockets and real time, on any operating system.

#![forbid(unsafe_code)]

use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millpond_emulate::{Carried, ClientChange, Error, Relay, RelayOptions, Report, Stop};
use millpond_path::Path;

const LOCAL: &str = "127.0.0.1:0";

fn path(up: &str, down: &str) -> Path {
    Path::from_toml(&format!("[uplink]\n{up}\n[downlink]\n{down}\n"), "test").expect("a path")
}

const QUICK: &str = "rate = \"10 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"64 kB\"";

struct Running {
    at: SocketAddr,
    stop: Stop,
    run: JoinHandle<Result<Report, Error>>,
}

impl Running {
    fn start(path: &Path, to: SocketAddr) -> Self {
        Self::start_as(path, to, |relay| relay)
    }

    fn start_as(path: &Path, to: SocketAddr, with: impl FnOnce(Relay) -> Relay) -> Self {
        let options = RelayOptions {
            listen: LOCAL.parse().expect("an address"),
            to,
            from: Vec::new(),
            seed: 1,
            most_clients: 8,
            bound: None,
        };
        let relay = with(Relay::bind(path, options).expect("a free port"));
        let (at, stop) = (relay.local_addr().expect("bound"), relay.stop());
        Self { at, stop, run: thread::spawn(move || relay.run()) }
    }

    fn end(self) -> Report {
        self.stop.stop();
        self.run.join().expect("no panic").expect("no fault")
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(LOCAL).expect("a free port");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    socket
}

/// Sends back what comes, so many times.
fn echo(times: usize) -> (SocketAddr, JoinHandle<Vec<SocketAddr>>) {
    let server = socket();
    let at = server.local_addr().expect("bound");
    let run = thread::spawn(move || {
        let mut bytes = [0; 2_000];
        let mut answered = Vec::new();
        for _ in 0..times {
            let (length, from) = server.recv_from(&mut bytes).expect("a datagram");
            server.send_to(&bytes[..length], from).expect("sent");
            answered.push(from);
        }
        answered
    });
    (at, run)
}

#[test]
fn datagrams_pass_both_ways_and_every_client_has_its_own_port_at_the_server() {
    let (server, served) = echo(20);
    let relay = Running::start(&path(QUICK, QUICK), server);
    let clients: Vec<_> = (0..4).map(|_| socket()).collect();
    let mut bytes = [0; 2_000];
    for round in 0..5_u8 {
        for (number, client) in (0_u8..).zip(&clients) {
            client.send_to(&[round, number], relay.at).expect("sent");
            let (length, from) = client.recv_from(&mut bytes).expect("an answer");
            assert_eq!((&bytes[..length], from), (&[round, number][..], relay.at));
        }
    }
    let mut seen = served.join().expect("no panic");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), clients.len());
    let report = relay.end();
    assert_eq!(report.flows.len(), clients.len());
    for (flow, client) in report.flows.iter().zip(&clients) {
        assert_eq!(flow.client, client.local_addr().expect("bound").to_string());
        assert_eq!((flow.sent_packets, flow.received_packets), (5, 5));
        // Five round trips of 2 ms each, at the least.
        assert!(flow.fct_us.is_some_and(|fct| fct >= 10_000), "{flow:?}");
        // 28 bytes of header and two of payload.
        assert_eq!(flow.sent_bytes, 5 * 30);
    }
    assert_eq!(report.lateness.packets, 40);
    for link in &report.links {
        assert_eq!((link.offered_packets, link.delivered_packets, link.delivered_bytes), (20, 20, 600), "{link:?}");
    }
    assert_eq!(report.left_out, []);
}

#[test]
fn how_a_relay_stands_is_told_when_nothing_more_happens() {
    let (server, served) = echo(1);
    let mut watch = None;
    let relay = Running::start_as(&path(QUICK, QUICK), server, |relay| {
        watch = Some(relay.watch());
        relay
    });
    let client = socket();
    client.send_to(b"one", relay.at).expect("sent");
    client.recv_from(&mut [0; 16]).expect("an answer");
    let delivered = || {
        let standing = watch.as_ref().and_then(millpond_emulate::Watch::standing);
        standing.map(|standing| (standing.links.map(|link| link.delivered_packets), standing.clients.clients))
    };
    while delivered() != Some(([1, 1], 1)) {
        thread::sleep(Duration::from_millis(5));
    }
    served.join().expect("no panic");
    relay.end();
}

#[test]
fn a_burst_takes_the_time_of_its_bytes_and_what_does_not_fit_is_dropped() {
    // 1000 B take a second each; four fit the queue.
    let slow = "rate = \"8 kbit/s\"\ndelay = \"50 ms\"\nqueue = \"4000 B\"";
    let (server, served) = echo(4);
    let relay = Running::start(&path(slow, QUICK), server);
    let client = socket();
    for number in 0..7_u8 {
        client.send_to(&[number; 972], relay.at).expect("sent");
    }
    let mut bytes = [0; 2_000];
    for number in 0..4_u8 {
        let (length, _) = client.recv_from(&mut bytes).expect("an answer");
        assert_eq!((length, bytes[0]), (972, number));
    }
    served.join().expect("no panic");
    let report = relay.end();
    let (up, flow) = (&report.links[0], &report.flows[0]);
    assert_eq!((up.offered_packets, up.dropped_queue_packets, up.queue_max_bytes), (7, 3, 4_000));
    assert_eq!((flow.dropped_queue, flow.received_packets), (3, 4));
    // Rate and delays alone take 4 s + 50 ms + 0.8 ms + 1 ms; what the machine adds is told as lateness, and by that of
    // two packets at the most: lateness does not add up.
    let fct = flow.fct_us.expect("answered");
    assert!(fct >= 4_051_800, "{fct}");
    assert!((4_000_000..=4_000_001).contains(&up.busy_us), "{up:?}");
}

#[test]
fn what_the_path_does_not_carry_in_one_piece_is_left_out() {
    let narrow = format!("{QUICK}\nmtu = \"100 B\"");
    let (server, served) = echo(1);
    let relay = Running::start(&path(&narrow, QUICK), server);
    let client = socket();
    // 28 bytes of header are in front.
    client.send_to(&[1; 73], relay.at).expect("sent");
    client.send_to(&[2; 72], relay.at).expect("sent");
    let mut bytes = [0; 2_000];
    let (length, _) = client.recv_from(&mut bytes).expect("an answer");
    assert_eq!((length, bytes[0]), (72, 2));
    served.join().expect("no panic");
    let report = relay.end();
    assert!(report.left_out.iter().any(|left| left.why.contains("in one piece") && left.packets == 1));
}

#[test]
fn nobody_at_the_server_is_told_and_no_end() {
    let nobody = socket().local_addr().expect("bound");
    let relay = Running::start(&path(QUICK, QUICK), nobody);
    let client = socket();
    // Each is answered by the kernel with a port that cannot be reached; the relay goes on.
    for _ in 0..50 {
        client.send_to(b"anybody?", relay.at).expect("sent");
        thread::sleep(Duration::from_millis(2));
    }
    let report = relay.end();
    assert!(report.left_out.iter().any(|left| left.why.contains("nobody listens")), "{:?}", report.left_out);
    assert_eq!(report.links[0].offered_packets, 50);
}

#[test]
fn addresses_that_cannot_be_used_are_refused_in_one_line() {
    let taken = socket();
    let listen = taken.local_addr().expect("bound");
    let to: SocketAddr = "127.0.0.1:5683".parse().expect("an address");
    let refused = |listen, to| {
        let options = RelayOptions { listen, to, from: Vec::new(), seed: 1, most_clients: 8, bound: None };
        Relay::bind(&path(QUICK, QUICK), options).expect_err("refused").to_string()
    };
    let told = refused(listen, to);
    assert!(told.contains("cannot be listened at") && !told.contains("os error"), "{told}");
    assert!(refused(to, to).contains("forward to itself"));
    // A documentation address (RFC 5737) is never this machine's.
    assert!(refused("192.0.2.1:5683".parse().expect("an address"), to).contains("192.0.2.1:5683"));
}

#[test]
fn more_clients_than_there_is_room_for_are_refused_and_those_before_are_served() {
    let server = socket();
    let relay = Running::start(&path(QUICK, QUICK), server.local_addr().expect("bound"));
    let first = socket();
    let mut bytes = [0; 100];
    first.send_to(b"first", relay.at).expect("sent");
    let (_, way) = server.recv_from(&mut bytes).expect("the first");
    let strangers: Vec<_> = (0..30).map(|_| socket()).collect();
    for (number, stranger) in strangers.iter().enumerate() {
        stranger.send_to(b"stranger", relay.at).expect("sent");
        if number < 7 {
            server.recv_from(&mut bytes).expect("a stranger");
        }
    }
    server.send_to(b"for the first", way).expect("sent");
    let (length, _) = first.recv_from(&mut bytes).expect("still served");
    assert_eq!(&bytes[..length], b"for the first");
    let report = relay.end();
    assert_eq!(report.links[0].offered_packets, 8);
    assert!(report.left_out.iter().any(|left| left.why.contains("too many clients") && left.packets > 0));
}

/// Elsewhere than on Linux loopback has one address.
#[cfg(target_os = "linux")]
#[test]
fn who_took_every_way_from_one_network_makes_room_for_a_client_of_another() {
    let (server, served) = echo(9);
    let (telling, changes) = std::sync::mpsc::channel();
    let relay = Running::start_as(&path(QUICK, QUICK), server, |relay| {
        relay.telling_clients(move |change| telling.send(*change).expect("somebody listens"))
    });
    let mut bytes = [0; 100];
    let crowd: Vec<_> = (0..8).map(|_| socket()).collect();
    for one in &crowd {
        one.send_to(b"mine", relay.at).expect("sent");
        one.recv_from(&mut bytes).expect("an answer");
    }
    let other = UdpSocket::bind("127.0.7.1:0").expect("a free port");
    other.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    other.send_to(b"known", relay.at).expect("sent");
    let (length, _) = other.recv_from(&mut bytes).expect("an answer");
    assert_eq!(&bytes[..length], b"known");
    let seen = served.join().expect("no panic");
    assert_eq!(relay.end().left_out, []);
    // The server sees each where it is told to.
    let changes: Vec<_> = changes.iter().collect();
    let came = changes.iter().filter_map(|change| match change {
        ClientChange::Came { client, seen_as } => Some((*client, seen_as.expect("bound"))),
        ClientChange::Left { .. } => None,
    });
    let clients = crowd.iter().chain([&other]).map(|client| client.local_addr().expect("bound"));
    assert!(came.eq(clients.zip(seen)), "{changes:?}");
    let first = crowd[0].local_addr().expect("bound");
    let once = Carried { datagrams: 1, bytes: 4 };
    let left = ClientChange::Left { client: first, gave_way: true, up: once, down: once };
    assert!(changes.contains(&left), "{changes:?}");
}

/// Lets nothing through that begins with this byte, and knows what was answered.
struct Refuses(u8, std::sync::Arc<std::sync::Mutex<Vec<Vec<u8>>>>);

impl millpond_emulate::Gate for Refuses {
    fn request(&mut self, _now: millpond_control::Instant, _client: SocketAddr, datagram: &[u8]) -> bool {
        datagram.first() != Some(&self.0)
    }

    fn answer(&mut self, _now: millpond_control::Instant, _client: SocketAddr, datagram: &[u8]) {
        self.1.lock().expect("nobody panicked").push(datagram.to_vec());
    }
}

#[test]
fn a_gate_keeps_from_the_server_what_it_refuses_and_sees_every_answer() {
    let (to, server) = echo(1);
    let answers = std::sync::Arc::default();
    let gate = Box::new(Refuses(b'n', std::sync::Arc::clone(&answers)));
    let relay = Running::start_as(&path(QUICK, QUICK), to, |relay| relay.with_gate(gate));
    let client = socket();
    client.send_to(b"no", relay.at).expect("sent");
    client.send_to(b"yes", relay.at).expect("sent");
    let mut answer = [0; 16];
    let (length, _) = client.recv_from(&mut answer).expect("an answer");
    assert_eq!(&answer[..length], b"yes");
    server.join().expect("no panic");
    let report = relay.end();
    assert_eq!(*answers.lock().expect("nobody panicked"), [b"yes".to_vec()]);
    assert_eq!(report.left_out.iter().map(|left_out| left_out.packets).sum::<u64>(), 1);
}

/// Datagrams that begin with the same byte can stand for each other.
struct FirstByte;

impl millpond_emulate::Likeness for FirstByte {
    fn of(&self, datagram: &[u8]) -> Option<u32> {
        datagram.first().map(|first| u32::from(*first)).filter(|first| *first != u32::from(b'?'))
    }
}

#[test]
fn a_copy_is_dropped_while_the_one_before_it_waits() {
    let (to, server) = echo(5);
    // A datagram takes a second.
    let slow = "rate = \"240 bit/s\"\ndelay = \"1 ms\"\nqueue = \"64 kB\"";
    let relay = Running::start_as(&path(slow, QUICK), to, |relay| relay.queueing_once(Box::new(FirstByte)));
    let (one, other) = (socket(), socket());
    for datagram in [b"a1", b"a2", b"b1", b"?1", b"?2", b"a3"] {
        one.send_to(datagram, relay.at).expect("sent");
    }
    other.send_to(b"a4", relay.at).expect("sent");
    let mut answer = [0; 16];
    let mut answers = |from: &UdpSocket, count: usize| -> Vec<Vec<u8>> {
        let mut next = || from.recv_from(&mut answer).map(|(length, _)| answer[..length].to_vec()).expect("an answer");
        (0..count).map(|_| next()).collect()
    };
    // Nothing can stand for what begins with a question mark, nor for what another client sends.
    assert_eq!(answers(&one, 4), [b"a1", b"b1", b"?1", b"?2"]);
    assert_eq!(answers(&other, 1), [b"a4"]);
    server.join().expect("no panic");
    let report = relay.end();
    let told: Vec<_> = report.left_out.iter().map(|left_out| (left_out.why, left_out.packets)).collect();
    assert_eq!(told, [("withheld: the copy before it waits in the queue", 2)]);
}

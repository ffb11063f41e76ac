//! Sessions of a client and a server over a path in virtual time.

use std::net::SocketAddr;

use millpond_control::Instant;
use rustls::pki_types::ServerName;

use super::{ClientKeys, Keys, Link, News, ServerKeys, Sessions, Turn, limits::Limits};
use crate::{
    ClientSecurity, KeyedCertificate, PreSharedKey, PreSharedKeys, ServerSecurity, TrustAnchors,
    security::PeerIdentity,
    udp::{Address, Outbox},
};

/// Microseconds that a datagram is under way, unless a trial says otherwise.
const UNDER_WAY: u64 = 50_000;
const SECOND: u64 = 1_000_000;

struct Side {
    sessions: Sessions,
    outbox: Outbox,
    address: Address,
    /// What came in: from whom, as a host would know it, and the message.
    messages: Vec<(Address, Vec<u8>)>,
    news: Vec<News>,
}

impl Side {
    fn new(keys: Keys, limits: Option<Limits>, address: &str) -> Self {
        let limits = limits.unwrap_or_else(|| Limits::of(&keys));
        let address = Address::of(address.parse::<SocketAddr>().unwrap());
        let sessions = Sessions::new(keys, limits, crate::clock::Clock::start().origin());
        Self { sessions, outbox: Outbox::default(), address, messages: Vec::new(), news: Vec::new() }
    }

    fn receive(&mut self, now: Instant, from: Address, datagram: &[u8]) {
        self.sessions.receive(now, from, datagram, &mut self.outbox);
        let taken = self.sessions.take();
        self.messages.extend(taken.1.iter().map(|(from, place)| (*from, taken.0[place.clone()].to_vec())));
        self.sessions.give_back(taken);
    }

    fn ended(&self) -> Vec<String> {
        let why = |news: &'_ Turn| match news {
            Turn::Ended { why, .. } | Turn::Failed { why } => Some(why.clone()),
            Turn::Stands { .. } => None,
        };
        self.news.iter().filter_map(|news| why(&news.what)).collect()
    }
}

struct Trial {
    client: Side,
    server: Side,
    now: u64,
    /// (when it arrives, whether at the server, datagram).
    path: Vec<(u64, bool, Vec<u8>)>,
    sent: usize,
    /// Which of all datagrams are lost.
    lost: Vec<usize>,
}

impl Trial {
    fn new(client: &ClientSecurity, server: &ServerSecurity) -> Self {
        let client = Keys::Client(ClientKeys::new(client).unwrap());
        let server = Keys::Server(ServerKeys::new(server).unwrap());
        Self {
            client: Side::new(client, None, "192.0.2.1:40000"),
            server: Side::new(server, None, "192.0.2.2:5684"),
            now: 1,
            path: Vec::new(),
            sent: 0,
            lost: Vec::new(),
        }
    }

    fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn connect(&mut self, name: &str) {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let (now, to) = (self.at(), self.server.address);
        self.client.sessions.connect(now, to, name, &mut self.client.outbox);
    }

    fn link(&mut self, name: &str) -> Link {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        self.client.sessions.link(self.at(), self.server.address, &name)
    }

    /// Lets time pass.
    fn run(&mut self, micros: u64) {
        let end = self.now + micros;
        loop {
            for (side, to_server) in [(&mut self.client, true), (&mut self.server, false)] {
                for (_, datagram) in side.outbox.take_all() {
                    self.sent += 1;
                    if !self.lost.contains(&(self.sent - 1)) {
                        self.path.push((self.now + UNDER_WAY, to_server, datagram));
                    }
                }
                side.news.append(&mut side.sessions.news);
            }
            let arrives = self.path.iter().map(|(at, ..)| *at).min();
            let wakes = [&self.client, &self.server].into_iter().filter_map(|side| side.sessions.next());
            let next = wakes.map(Instant::as_micros).chain(arrives).min().filter(|at| *at <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            let now = self.at();
            if arrives == Some(next) {
                let place = self.path.iter().position(|(at, ..)| *at == next).unwrap();
                let (_, to_server, datagram) = self.path.remove(place);
                let (client, server) = (self.client.address, self.server.address);
                match to_server {
                    true => self.server.receive(now, client, &datagram),
                    false => self.client.receive(now, server, &datagram),
                }
            }
            self.client.sessions.wake(now, &mut self.client.outbox);
            self.server.sessions.wake(now, &mut self.server.outbox);
        }
        self.now = end;
    }

    /// A message to the server and one back; true if both arrive.
    fn talks(&mut self, name: &str) -> bool {
        let Link::Standing(server) = self.link(name) else { return false };
        let (now, known) = (self.at(), self.server.messages.len());
        assert!(self.client.sessions.send(now, server, b"question", &mut self.client.outbox));
        self.run(SECOND);
        let Some((client, question)) = self.server.messages.get(known).cloned() else { return false };
        let (now, known) = (self.at(), self.client.messages.len());
        assert_eq!((question.as_slice(), client.peer()), (&b"question"[..], self.client.address.peer()));
        assert!(self.server.sessions.send(now, client, b"answer", &mut self.server.outbox));
        self.run(SECOND);
        self.client.messages.get(known).is_some_and(|(from, answer)| *from == server && answer == b"answer")
    }
}

fn shared(identity: &str, key: &str) -> ClientSecurity {
    ClientSecurity::new().pre_shared_key(PreSharedKey::new(identity, key).unwrap())
}

fn serving(keys: &[(&str, &str)]) -> ServerSecurity {
    let keys = keys.iter().map(|(identity, key)| PreSharedKey::new(*identity, *key).unwrap());
    ServerSecurity::new().pre_shared_keys(PreSharedKeys::new(keys).unwrap())
}

/// An authority made for a trial.
struct Authority(rcgen::CertifiedIssuer<'static, rcgen::KeyPair>);

impl Authority {
    fn new() -> Self {
        static MADE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let mut params = rcgen::CertificateParams::default();
        let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        params.distinguished_name.push(rcgen::DnType::CommonName, format!("authority {number}"));
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        Self(rcgen::CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn anchors(&self) -> TrustAnchors {
        TrustAnchors::from_pem(self.0.pem().as_bytes()).unwrap()
    }

    fn certificate(&self, name: &str, years: std::ops::Range<i32>) -> KeyedCertificate {
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        KeyedCertificate::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
    }
}

const GOOD: std::ops::Range<i32> = 2020..2090;

#[test]
fn messages_go_both_ways_under_a_pre_shared_key() {
    let mut trial = Trial::new(&shared("sensor", "secret"), &serving(&[("other", "x"), ("sensor", "secret")]));
    assert_eq!(trial.link("here.example"), Link::None);
    trial.connect("here.example");
    assert_eq!(trial.link("here.example"), Link::Rising);
    trial.run(SECOND);
    assert!(trial.talks("here.example"));
    let from = trial.server.messages[0].0;
    let named = trial.server.sessions.identity(from).map(|identity| PeerIdentity::clone(identity));
    assert_eq!(named, Some(PeerIdentity::PreSharedKey("sensor".into())));
    // Cookie, its answer, the server's flight, the client's, the last one: six datagrams, and two messages.
    assert_eq!(trial.sent, 8);
    assert_eq!((trial.client.sessions.standing(), trial.server.sessions.standing()), (1, 1));
}

#[test]
fn a_wrong_key_and_an_unknown_identity_are_told() {
    for security in [shared("sensor", "wrong"), shared("unknown", "secret")] {
        let mut trial = Trial::new(&security, &serving(&[("sensor", "secret")]));
        trial.connect("here.example");
        trial.run(40 * SECOND);
        let told = "the server does not know this identity, or has another key for it; check both";
        assert_eq!(trial.client.ended(), [told]);
        let told = "the client has not the key of the identity that it named, or named an unknown one";
        assert_eq!(trial.server.ended(), [told]);
        assert_eq!(trial.link("here.example"), Link::None);
        assert_eq!(trial.server.sessions.handshakes(), 0);
    }
}

#[test]
fn certificates_are_checked_by_issuer_name_and_time() {
    let (ours, others) = (Authority::new(), Authority::new());
    let client = ClientSecurity::new().trust(ours.anchors());
    for (certificate, name, told) in [
        (ours.certificate("here.example", GOOD), "here.example", None),
        (ours.certificate("there.example", GOOD), "here.example", Some("not for here.example")),
        (ours.certificate("here.example", 2001..2002), "here.example", Some("expired")),
        (ours.certificate("here.example", 2090..2091), "here.example", Some("valid in")),
        (others.certificate("here.example", GOOD), "here.example", Some("issuer that is not trusted")),
    ] {
        let mut trial = Trial::new(&client, &ServerSecurity::new().certificate(certificate));
        trial.connect(name);
        trial.run(5 * SECOND);
        match told {
            None => {
                assert!(trial.talks(name));
                // The session is not for another name, whoever is at the address.
                assert!(matches!(trial.link("there.example"), Link::Unfit(why) if why.contains("there.example")));
                let anybody = trial.server.messages[0].0;
                assert_eq!(trial.server.sessions.identity(anybody), None);
            }
            Some(told) => {
                assert!(trial.client.ended()[0].contains(told), "{:?}", trial.client.ended());
                assert_eq!((trial.client.ended().len(), trial.server.sessions.standing()), (1, 0));
            }
        }
    }
}

#[test]
fn a_server_can_demand_certificates_of_clients() {
    let (ours, others) = (Authority::new(), Authority::new());
    let server = ServerSecurity::new().certificate(ours.certificate("here.example", GOOD));
    let server = server.demand_client_certificates(ours.anchors());
    let client = ClientSecurity::new().trust(ours.anchors());
    for (security, is_good) in [
        (client.clone().certificate(ours.certificate("sensor.example", GOOD)), true),
        (client.clone().certificate(others.certificate("sensor.example", GOOD)), false),
        (client, false),
    ] {
        let mut trial = Trial::new(&security, &server);
        trial.connect("here.example");
        trial.run(45 * SECOND);
        assert_eq!(trial.server.sessions.standing(), usize::from(is_good));
        if is_good {
            assert!(trial.talks("here.example"));
            let from = trial.server.messages[0].0;
            let identity = trial.server.sessions.identity(from).map(|identity| PeerIdentity::clone(identity));
            assert!(matches!(identity, Some(PeerIdentity::Certificate(chain)) if chain.len() == 1));
        } else {
            assert!(trial.server.messages.is_empty() && !trial.talks("here.example"));
        }
    }
}

#[test]
fn a_handshake_outlives_the_loss_of_any_datagram() {
    let ours = Authority::new();
    let by_certificate = (
        ClientSecurity::new().trust(ours.anchors()),
        ServerSecurity::new().certificate(ours.certificate("here.example", GOOD)),
    );
    for (client, server) in [(shared("a", "b"), serving(&[("a", "b")])), by_certificate] {
        for lost in 0..8 {
            let mut trial = Trial::new(&client, &server);
            trial.lost = vec![lost];
            trial.connect("here.example");
            trial.run(20 * SECOND);
            assert!(trial.talks("here.example") || lost >= trial.sent - 2, "{lost}: {:?}", trial.client.ended());
        }
    }
}

#[test]
fn each_session_has_a_peer_of_its_own_and_the_new_one_counts() {
    let (client, server) = (shared("a", "b"), serving(&[("a", "b")]));
    let mut trial = Trial::new(&client, &server);
    trial.connect("x");
    trial.run(SECOND);
    assert!(trial.talks("x"));
    let before = trial.server.messages[0].0;
    // The client loses all it knows, and begins anew from the same port.
    trial.client = Side::new(Keys::Client(ClientKeys::new(&client).unwrap()), None, "192.0.2.1:40000");
    trial.connect("x");
    trial.run(SECOND);
    assert!(trial.talks("x"));
    let after = trial.server.messages[1].0;
    assert!(after != before && after.peer() == before.peer());
    assert_eq!(trial.server.sessions.standing(), 1);
    assert!(!trial.server.sessions.send(trial.at(), before, b"late", &mut trial.server.outbox));
    assert_eq!(trial.server.ended(), ["the peer began another session"]);
}

#[test]
fn a_forged_client_hello_does_not_end_what_stands() {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.connect("x");
    let hello = trial.client.outbox.take_all().remove(0).1;
    trial.client.outbox.push(trial.server.address, &hello);
    trial.run(SECOND);
    assert!(trial.talks("x"));
    let (now, client) = (trial.at(), trial.client.address);
    for n in 0..100 {
        let mut forged = hello.clone();
        // Its random value.
        forged[30] = n;
        trial.server.receive(now, client, &forged);
    }
    trial.run(SECOND);
    assert!(trial.talks("x"));
    assert_eq!(trial.server.sessions.standing(), 1);
    trial.run(60 * SECOND);
    assert!(trial.talks("x") && trial.server.sessions.handshakes() == 0);
}

/// Clients of one server, beside whom others send what they like. Datagrams are under way for `under_way` microseconds.
struct Crowd {
    server: Side,
    clients: Vec<Side>,
    now: u64,
    under_way: u64,
    /// (when it arrives, the client that it is to or from, whether it is to the server, datagram)
    path: std::collections::VecDeque<(u64, usize, bool, Vec<u8>)>,
}

impl Crowd {
    fn new(
        clients: impl IntoIterator<Item = (ClientSecurity, String)>,
        server: &ServerSecurity,
        limits: Limits,
    ) -> Self {
        let client = |(security, address): (ClientSecurity, String)| {
            Side::new(Keys::Client(ClientKeys::new(&security).unwrap()), None, &address)
        };
        let server = Keys::Server(ServerKeys::new(server).unwrap());
        Self {
            server: Side::new(server, Some(limits), "192.0.2.2:5684"),
            clients: clients.into_iter().map(client).collect(),
            now: 1,
            under_way: 400_000,
            path: std::collections::VecDeque::new(),
        }
    }

    fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn connect(&mut self, client: usize) {
        let (now, to, side) = (self.at(), self.server.address, &mut self.clients[client]);
        side.sessions.connect(now, to, ServerName::try_from("here.example").unwrap(), &mut side.outbox);
    }

    /// Lets `micros` pass in steps of a millisecond. In each step comes what `forged` gives: from whom, and what.
    fn run(&mut self, micros: u64, mut forged: impl FnMut(u64, &[Side]) -> Vec<(Address, Vec<u8>)>) {
        let end = self.now + micros;
        while self.now < end {
            self.now += 1_000;
            let now = self.at();
            for (from, datagram) in forged(self.now, &self.clients) {
                self.server.receive(now, from, &datagram);
            }
            while self.path.front().is_some_and(|(at, ..)| *at <= self.now) {
                let Some((_, client, is_to_server, datagram)) = self.path.pop_front() else { break };
                let (from, to) = (self.clients[client].address, self.server.address);
                match is_to_server {
                    true => self.server.receive(now, from, &datagram),
                    false => self.clients[client].receive(now, to, &datagram),
                }
            }
            self.server.sessions.wake(now, &mut self.server.outbox);
            for (to, datagram) in self.server.outbox.take_all() {
                if let Some(client) = self.clients.iter().position(|client| client.address == to) {
                    self.path.push_back((self.now + self.under_way, client, false, datagram));
                }
            }
            for (number, client) in self.clients.iter_mut().enumerate() {
                client.sessions.wake(now, &mut client.outbox);
                let sent = client.outbox.take_all().into_iter();
                self.path.extend(sent.map(|(_, datagram)| (self.now + self.under_way, number, true, datagram)));
            }
        }
    }

    fn standing(&self) -> usize {
        self.clients.iter().map(|client| client.sessions.standing()).sum()
    }
}

/// The same hello with another random value.
fn with_random(hello: &[u8], random: u64) -> Vec<u8> {
    let mut forged = hello.to_vec();
    forged[27..35].copy_from_slice(&random.to_be_bytes());
    forged
}

#[test]
fn forged_hellos_beside_honest_handshakes_stop_none_of_them() {
    let ours = Authority::new();
    let by_certificate = ServerSecurity::new().certificate(ours.certificate("here.example", GOOD));
    let any = ClientSecurity::new().trust(ours.anchors());
    let key = shared("a", "b");
    for (client, server) in [(&key, &serving(&[("a", "b")])), (&any, &by_certificate)] {
        let limits = Limits::of(&Keys::Server(ServerKeys::new(server).unwrap()));
        let honest = (0..10).map(|n| (client.clone(), format!("198.51.100.{n}:40000")));
        let mut crowd = Crowd::new(honest, server, limits);
        let hello = hello(client);
        (0..10).for_each(|n| crowd.connect(n));
        // 1,024 a round trip of 0.8 s, from as many addresses.
        let mut count = 0_u32;
        crowd.run(12 * SECOND, |now, _| {
            let due = u32::try_from(now * 1_024 / 800_000).unwrap();
            let from = |n: u32| SocketAddr::new(std::net::Ipv4Addr::from(0x0a00_0000 + n % 4_096).into(), 7);
            let forged = (count..due).map(|n| (Address::of(from(n)), with_random(&hello, u64::from(n)))).collect();
            count = due;
            forged
        });
        assert!(count > 15_000);
        assert_eq!((crowd.standing(), crowd.server.sessions.standing()), (10, 10));
        assert_eq!(crowd.server.sessions.handshakes(), 0);
    }
}

#[test]
fn hellos_forged_in_the_name_of_a_client_stop_not_its_handshake() {
    let ours = Authority::new();
    let by_certificate = ServerSecurity::new().certificate(ours.certificate("here.example", GOOD));
    let any = ClientSecurity::new().trust(ours.anchors());
    let key = shared("a", "b");
    for (client, server) in [(&key, &serving(&[("a", "b")])), (&any, &by_certificate)] {
        let limits = Limits::of(&Keys::Server(ServerKeys::new(server).unwrap()));
        let mut crowd = Crowd::new([(client.clone(), "198.51.100.1:40000".into())], server, limits);
        let hello = hello(client);
        crowd.connect(0);
        // Before the cookie has left, while it is under way, and after it came back.
        crowd.run(12 * SECOND, |now, clients| match now % 50_000 {
            1..=1_000 => vec![(clients[0].address, with_random(&hello, now))],
            _ => Vec::new(),
        });
        assert_eq!((crowd.standing(), crowd.server.sessions.standing()), (1, 1));
    }
}

#[test]
fn a_network_that_fills_the_table_of_handshakes_takes_from_itself() {
    let key = shared("a", "b");
    let server = serving(&[("a", "b")]);
    let limits = Limits { rising: 8, ..Limits::of(&Keys::Server(ServerKeys::new(&server).unwrap())) };
    // They are where they say, and say nothing more once their cookie came back; the last one is honest.
    let greedy = (0..40).map(|n| (shared("a", "wrong"), format!("203.0.113.{n}:1")));
    let mut crowd = Crowd::new(greedy.chain([(key, "198.51.100.1:40000".into())]), &server, limits);
    crowd.connect(40);
    (0..20).for_each(|n| crowd.connect(n));
    crowd.run(900_000, |_, _| Vec::new());
    (20..40).for_each(|n| crowd.connect(n));
    let mut most = 0;
    for _ in 0..12_000 {
        crowd.run(1_000, |_, _| Vec::new());
        most = most.max(crowd.server.sessions.handshakes());
    }
    assert_eq!(most, 8);
    assert_eq!(crowd.clients[40].sessions.standing(), 1);
}

#[test]
fn who_closes_tells_the_other_side() {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.connect("x");
    trial.run(SECOND);
    trial.server.sessions.close_all(trial.at(), &mut trial.server.outbox);
    trial.run(SECOND);
    assert_eq!(trial.client.ended(), ["the peer closed the session"]);
    assert_eq!(trial.link("x"), Link::None);
    trial.connect("x");
    trial.run(SECOND);
    assert!(trial.talks("x"));
    // The client closes before the server does.
    trial.run(31 * 60 * SECOND);
    assert_eq!((trial.client.sessions.standing(), trial.server.sessions.standing()), (0, 0));
    assert_eq!(trial.client.ended()[1..], ["the session was idle"]);
}

#[test]
fn a_server_that_lost_the_session_is_doubted_and_asked_anew() {
    let (client, server) = (shared("a", "b"), serving(&[("a", "b")]));
    let mut trial = Trial::new(&client, &server);
    trial.connect("x");
    trial.run(SECOND);
    trial.server = Side::new(Keys::Server(ServerKeys::new(&server).unwrap()), None, "192.0.2.2:5684");
    assert!(!trial.talks("x"));
    assert!(matches!(trial.link("x"), Link::Standing(_)), "not yet");
    trial.run(10 * SECOND);
    assert_eq!(trial.link("x"), Link::None);
    trial.connect("x");
    trial.run(SECOND);
    assert!(trial.talks("x"));
    assert_eq!(trial.client.ended(), ["the peer began another session"]);
}

#[test]
fn nobody_there_is_told_after_the_last_copy() {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.lost = (0..100).collect();
    trial.connect("x");
    trial.run(41 * SECOND);
    assert!(trial.client.ended()[0].starts_with("no answer to the handshake"), "{:?}", trial.client.ended());
    assert_eq!(trial.sent, 5);
}

/// A datagram of somebody who begins a handshake, with a random value of its own.
fn hello(security: &ClientSecurity) -> Vec<u8> {
    let mut client = Side::new(Keys::Client(ClientKeys::new(security).unwrap()), None, "192.0.2.1:40000");
    let to = Address::of("192.0.2.2:5684".parse().unwrap());
    client.sessions.connect(Instant::from_micros(1), to, ServerName::try_from("x").unwrap(), &mut client.outbox);
    client.outbox.take_all().remove(0).1
}

#[test]
fn a_flood_from_forged_addresses_leaves_nothing_and_gets_no_more_back_than_it_brought() {
    let ours = Authority::new();
    let by_certificate = ServerSecurity::new().certificate(ours.certificate("here.example", GOOD));
    let by_key = serving(&[("a", "b")]);
    let any = ClientSecurity::new().trust(ours.anchors());
    for (security, hello) in [(&by_key, hello(&shared("a", "b"))), (&by_certificate, hello(&any))] {
        let mut server = Side::new(Keys::Server(ServerKeys::new(security).unwrap()), None, "192.0.2.2:5684");
        let (mut came, mut went, mut sent) = (0, 0, 0);
        for n in 0..3_000_u32 {
            let now = Instant::from_micros(1 + u64::from(n) * 1_000);
            let from = Address::of(SocketAddr::new(std::net::Ipv4Addr::from(0x0a00_0000 + n / 2).into(), 7));
            came += hello.len();
            server.receive(now, from, &hello);
            server.sessions.wake(now, &mut server.outbox);
            let answers = server.outbox.take_all();
            sent += answers.len();
            went += answers.iter().map(|(_, datagram)| datagram.len()).sum::<usize>();
            // Before a cookie comes back nobody is known.
            assert_eq!((server.sessions.handshakes(), server.sessions.next()), (0, None));
        }
        assert_eq!(sent, 3_000, "each is answered once");
        for second in 0..120 {
            server.sessions.wake(Instant::from_micros(second * SECOND), &mut server.outbox);
            assert!(server.outbox.take_all().is_empty(), "nothing is said twice");
        }
        assert!(went <= came, "{went} for {came}");
    }
}

#[test]
fn what_is_longest_silent_goes_when_there_is_no_room() {
    let server = Keys::Server(ServerKeys::new(&serving(&[("a", "b")])).unwrap());
    let limits = Limits { standing: 2, ..Limits::of(&server) };
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.server = Side::new(server, Some(limits), "192.0.2.2:5684");
    let mut peers = Vec::new();
    for port in 1..=3 {
        trial.client =
            Side::new(Keys::Client(ClientKeys::new(&shared("a", "b")).unwrap()), None, &format!("192.0.2.1:{port}"));
        trial.connect("x");
        trial.run(SECOND);
        assert!(trial.talks("x"));
        peers.push(trial.client.address);
    }
    assert_eq!(trial.server.sessions.standing(), 2);
    assert_eq!(trial.server.sessions.inside(peers[0]), None);
    assert_eq!(trial.server.ended(), ["the session made room for others"]);
}

#[test]
fn no_bytes_break_a_session_or_its_table() {
    let ours = Authority::new();
    let security = serving(&[("a", "b")]).certificate(ours.certificate("here.example", GOOD));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut chance = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for client in [shared("a", "b"), ClientSecurity::new().trust(ours.anchors())] {
        for round in 0..10 {
            let mut trial = Trial::new(&client, &security);
            trial.connect("here.example");
            let mut seen: Vec<Vec<u8>> = Vec::new();
            for _ in 0..40 {
                trial.run(60_000);
                seen.extend(trial.path.iter().map(|(.., datagram)| datagram.clone()));
                let mut datagram = match (seen.len(), chance(4)) {
                    (0, _) | (_, 0) => (0..chance(90)).map(|_| u8::try_from(chance(256)).unwrap()).collect(),
                    (len, _) => seen[chance(len)].clone(),
                };
                for _ in 0..chance(4) {
                    let len = datagram.len();
                    if len > 0 {
                        datagram[chance(len)] = u8::try_from(chance(256)).unwrap();
                    }
                }
                datagram.truncate(if chance(3) == 0 { chance(datagram.len() + 1) } else { datagram.len() });
                trial.path.push((trial.now + 1, chance(2) == 0, datagram));
            }
            trial.path.clear();
            if round % 2 == 0 && matches!(trial.link("here.example"), Link::Standing(_)) {
                assert!(trial.talks("here.example"), "what stood stands");
            }
        }
    }
}

/// A state machine that speaks one version alone, on the way to a server. Which of its own datagrams are lost.
fn stands(mut client: dimpl::Dtls, server: &ServerSecurity, lost: &[usize]) -> bool {
    let mut server = Side::new(Keys::Server(ServerKeys::new(server).unwrap()), None, "192.0.2.2:5684");
    let (from, start) = (Address::of("192.0.2.1:40000".parse().unwrap()), crate::clock::Clock::start().origin());
    let (mut room, mut sent) = (vec![0; 4_096], 0);
    for millis in 1..20_000 {
        let now = Instant::from_micros(millis * 1_000);
        client.handle_timeout(start + std::time::Duration::from_millis(millis)).unwrap();
        loop {
            match client.poll_output(&mut room) {
                dimpl::Output::Packet(datagram) => {
                    if !lost.contains(&sent) {
                        server.receive(now, from, datagram);
                    }
                    sent += 1;
                }
                dimpl::Output::Connected => return true,
                dimpl::Output::Timeout(_) => break,
                _ => {}
            }
        }
        server.sessions.wake(now, &mut server.outbox);
        for (_, datagram) in server.outbox.take_all() {
            client.handle_packet(&datagram).unwrap();
        }
    }
    false
}

#[test]
fn clients_of_one_version_alone_bring_their_cookies_back_too() {
    let ours = Authority::new();
    let security = serving(&[("a", "b")]).certificate(ours.certificate("here.example", GOOD));
    let pair = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::default().self_signed(&pair).unwrap().der().to_vec();
    let own = dimpl::DtlsCertificate { certificate, private_key: pair.serialize_der() };
    // The first hello, or the second, or both once: then records have other numbers than their messages.
    for lost in [&[][..], &[0], &[1], &[0, 2]] {
        for mtu in [1_150, 400] {
            let config = dimpl::Config::builder().mtu(mtu).build().map(std::sync::Arc::new).unwrap();
            let now = crate::clock::Clock::start().origin();
            let mut of_1_2 = dimpl::Dtls::new_12(config.clone(), own.clone(), now);
            of_1_2.set_active(true);
            assert!(stands(of_1_2, &security, lost), "1.2, {lost:?}, {mtu}");
            let mut of_1_3 = dimpl::Dtls::new_13(config, own.clone(), now);
            of_1_3.set_active(true);
            assert!(stands(of_1_3, &security, lost), "1.3, {lost:?}, {mtu}");
        }
    }
}

#[test]
fn sessions_and_handshakes_are_counted_in_memory() {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    let alone = trial.server.sessions.memory();
    trial.connect("x");
    // Hello, cookie, hello: the server's flight is under way.
    trial.run(3 * UNDER_WAY + 1_000);
    assert_eq!(trial.server.sessions.handshakes(), 1);
    let rising = trial.server.sessions.memory();
    trial.run(SECOND);
    assert_eq!(trial.server.sessions.standing(), 1);
    let mut stats = crate::Stats::default();
    trial.server.sessions.count(&mut stats);
    assert!(rising >= alone + 8_000 && stats.memory >= alone + 8_000, "{alone} {rising} {}", stats.memory);
    trial.server.sessions.close_all(trial.at(), &mut trial.server.outbox);
    assert!(trial.server.sessions.memory() < alone + 8_000);
}

//! Sessions of a client and a server over a path in virtual time.

mod any_bytes;
mod endings;
mod established;
mod forged_hellos;
mod full_tables;
mod handshakes;

use std::net::SocketAddr;

use millpond_control::Instant;
use rustls::pki_types::ServerName;

use super::{ClientKeys, Keys, Link, ServerKeys, SessionChange, SessionEvent, Sessions, limits::Limits};
use crate::{
    ClientSecurity, KeyedCertificate, PreSharedKey, PreSharedKeys, ServerSecurity, TrustAnchors,
    security::PeerIdentity,
    udp::{Address, Outbox},
};

/// Microseconds that a datagram is under way, unless a trial says otherwise.
const UNDER_WAY: u64 = 50_000;

const SECOND: u64 = 1_000_000;

/// What must be answered: its first byte is that of a confirmable message.
const QUESTION: &[u8] = b"CON question";

struct Side {
    sessions: Sessions,
    outbox: Outbox,
    address: Address,
    /// What came in: from whom, as a stack would know it, and the message.
    messages: Vec<(Address, Vec<u8>)>,
    events: Vec<SessionEvent>,
}

impl Side {
    fn new(keys: Keys, limits: Option<Limits>, address: &str) -> Self {
        let limits = limits.unwrap_or_else(|| Limits::of(&keys));
        let address = Address::of(address.parse::<SocketAddr>().unwrap());
        let sessions = Sessions::new(keys, limits, crate::clock::Clock::start().origin());
        Self { sessions, outbox: Outbox::default(), address, messages: Vec::new(), events: Vec::new() }
    }

    fn receive(&mut self, now: Instant, from: Address, datagram: &[u8]) {
        self.sessions.receive(now, from, datagram, &mut self.outbox);
        let taken = self.sessions.take();
        self.messages.extend(taken.1.iter().map(|(from, place)| (*from, taken.0[place.clone()].to_vec())));
        self.sessions.give_back(taken);
    }

    fn ended(&self) -> Vec<String> {
        let why = |change: &'_ SessionChange| match change {
            SessionChange::Ended { why, .. } | SessionChange::Failed { why, .. } => Some(why.reason.clone()),
            SessionChange::Established { .. } | SessionChange::Resumed => None,
        };
        self.events.iter().filter_map(|event| why(&event.what)).collect()
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
                side.events.append(&mut side.sessions.events);
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
        let Link::Established(server) = self.link(name) else { return false };
        let (now, known) = (self.at(), self.server.messages.len());
        assert!(self.client.sessions.send(now, server, QUESTION, &mut self.client.outbox));
        self.run(SECOND);
        let Some((client, question)) = self.server.messages.get(known).cloned() else { return false };
        let (now, known) = (self.at(), self.client.messages.len());
        assert_eq!((question.as_slice(), client.peer()), (QUESTION, self.client.address.peer()));
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

    fn established(&self) -> usize {
        self.clients.iter().map(|client| client.sessions.established()).sum()
    }
}

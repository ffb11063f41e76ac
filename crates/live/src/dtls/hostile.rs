//! What must hold for any datagrams between a client, a server and unvalidated peers: the fuzzer's target, and its replay.

#![allow(unreachable_pub, reason = "the fuzzer reaches it")]

use std::{collections::VecDeque, net::SocketAddr, sync::LazyLock};

use millpond_control::Instant;
use rustls::pki_types::ServerName;

use super::{ClientKeys, Keys, ServerKeys, Sessions};
use crate::{
    ClientSecurity, PreSharedKey, PreSharedKeys, ServerSecurity,
    clock::Clock,
    udp::{Address, Outbox},
};

/// Bytes that two sessions and what they wait for may take, on each side.
const MOST_MEMORY: usize = 100_000;
/// Steps of an input.
const MOST_STEPS: usize = 96;
const MINUTE: u64 = 60_000_000;

struct Side {
    sessions: Sessions,
    outbox: Outbox,
    address: Address,
}

impl Side {
    fn new(keys: Keys, address: [u8; 4]) -> Self {
        let address = Address::of(SocketAddr::from((address, 5684)));
        Self { sessions: Sessions::standard(keys, Clock::start().origin()), outbox: Outbox::default(), address }
    }

    /// What it sends to this address, and the bytes that it sends to others.
    fn sent(&mut self, to: Address) -> (Vec<Vec<u8>>, usize) {
        let mut elsewhere = 0;
        let mut sent = Vec::new();
        for (other, datagram) in self.outbox.take_all() {
            if other == to {
                sent.push(datagram);
            } else {
                elsewhere += datagram.len();
            }
        }
        (sent, elsewhere)
    }

    fn receive(&mut self, now: Instant, from: Address, datagram: &[u8]) {
        self.sessions.receive(now, from, datagram, &mut self.outbox);
        let messages = self.sessions.take();
        self.sessions.give_back(messages);
        self.check();
    }

    fn wake(&mut self, now: Instant) {
        self.sessions.wake(now, &mut self.outbox);
        self.check();
        assert!(self.sessions.next().is_none_or(|next| next > now), "it was woken and wants to be again");
    }

    fn check(&self) {
        assert!(self.sessions.memory() <= MOST_MEMORY, "{} bytes", self.sessions.memory());
    }
}

/// A handshake and a session by a pre-shared key, in which the input says what becomes of each datagram, what else arrives
/// and how time passes. An unvalidated peer gets no more back than he sent; memory is bounded; a peer that is woken comes to rest; and in
/// the end, when nobody disturbs any more and hours have passed, nothing is left.
pub fn check(bytes: &[u8]) {
    static KEYS: LazyLock<(Keys, Keys)> = LazyLock::new(|| {
        let key = || PreSharedKey::new("a", "b");
        let (Ok(mine), Ok(theirs)) = (key(), key().and_then(|key| PreSharedKeys::new([key]))) else {
            unreachable!("both are legal")
        };
        let client = ClientKeys::new(&ClientSecurity::new().pre_shared_key(mine));
        let server = ServerKeys::new(&ServerSecurity::new().pre_shared_keys(theirs));
        let (Ok(client), Ok(server)) = (client, server) else { unreachable!("the system gives random bytes") };
        (Keys::Client(client), Keys::Server(server))
    });
    let (client, server) = KEYS.clone();
    let (mut client, mut server) = (Side::new(client, [192, 0, 2, 1]), Side::new(server, [192, 0, 2, 2]));
    let stranger = Address::of(SocketAddr::from(([198, 51, 100, 7], 7)));
    let (mut now, mut path) = (1_u64, VecDeque::new());
    let (mut brought, mut got) = (0, 0);
    let Ok(name) = ServerName::try_from("x") else { return };
    client.sessions.connect(Instant::from_micros(now), server.address, name, &mut client.outbox);
    let mut input = bytes.iter().copied();
    for _ in 0..MOST_STEPS {
        let Some(step) = input.next() else { break };
        let (to_server, elsewhere) = client.sent(server.address);
        assert_eq!(elsewhere, 0);
        path.extend(to_server.into_iter().map(|datagram| (true, datagram)));
        let (to_client, elsewhere) = server.sent(client.address);
        got += elsewhere;
        assert!(got <= brought, "an unvalidated address got {got} bytes for {brought}");
        path.extend(to_client.into_iter().map(|datagram| (false, datagram)));
        let at = Instant::from_micros(now);
        match step {
            // The next datagram arrives, perhaps once more later, perhaps changed.
            0..=159 => {
                let Some((is_to_server, mut datagram)) = path.pop_front() else { continue };
                if step & 1 == 1 {
                    path.push_back((is_to_server, datagram.clone()));
                }
                if step & 2 == 2
                    && let (Some(high), Some(low), Some(value)) = (input.next(), input.next(), input.next())
                    && let Some(length) = std::num::NonZeroUsize::new(datagram.len())
                    && let Some(byte) = datagram.get_mut(usize::from(u16::from_be_bytes([high, low])) % length)
                {
                    *byte = value;
                }
                if step & 4 == 4
                    && let Some(length) = input.next()
                {
                    datagram.truncate(usize::from(length));
                }
                match (is_to_server, step & 8) {
                    // An unvalidated peer has seen it, and sends it as his own.
                    (true, 8) => {
                        brought += datagram.len();
                        server.receive(at, stranger, &datagram);
                    }
                    (true, _) => server.receive(at, client.address, &datagram),
                    (false, _) => client.receive(at, server.address, &datagram),
                }
            }
            // It is lost.
            160..=175 => drop(path.pop_front()),
            // These bytes arrive.
            176..=223 => {
                let length = input.next().map_or(0, usize::from);
                let datagram: Vec<u8> = input.by_ref().take(length).collect();
                match step & 3 {
                    0 => client.receive(at, server.address, &datagram),
                    1 => server.receive(at, client.address, &datagram),
                    _ => {
                        brought += datagram.len();
                        server.receive(at, stranger, &datagram);
                    }
                }
            }
            // Time passes, from a millisecond to a minute.
            224.. => {
                now += 1_000 << (step & 15).min(15);
                client.wake(Instant::from_micros(now));
                server.wake(Instant::from_micros(now));
            }
        }
    }
    for _ in 0..180 {
        now += MINUTE;
        client.wake(Instant::from_micros(now));
        server.wake(Instant::from_micros(now));
    }
    for side in [&client.sessions, &server.sessions] {
        assert_eq!(
            (side.established(), side.handshakes(), side.next()),
            (0, 0, None),
            "hours after everybody fell silent"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuzz_corpus_keeps_every_promise() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/sessions");
        let mut seeds = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            check(&std::fs::read(&path).unwrap());
            seeds += usize::from(path.file_name().unwrap().to_string_lossy().starts_with("session-"));
        }
        assert!(seeds >= 6, "only {seeds} seeds are there");
    }
}

//! Which messages of CoAP on a path are copies of others, and which of them were needed.

use std::collections::{HashMap, HashSet, VecDeque};

use millpond_coap::message::{Kind, Message, copies_share};
use millpond_control::{Instant, Span};
use millpond_emulate::{Likeness, Reader, Retransmissions, Toward};

/// A message ID means another message after this long: EXCHANGE_LIFETIME with the parameters of RFC 7252 (§4.8.2).
const EXCHANGE_LIFETIME: Span = Span::from_secs(247);
/// So many messages are remembered; a client that sends more in that time makes older ones be forgotten, whose copies then count as first.
const MOST: usize = 1 << 17;
/// Of one message so many transmissions that arrived are distinguished; RFC 7252 has five.
const MOST_ARRIVED: usize = 64;
/// The mark of what belongs to no transmission.
const NONE: u32 = u32::MAX;

/// A message: where it went, of which client, and whose message ID it has: the sender's own, or that of what it acknowledges.
type Name = (bool, u32, bool, u16);

/// The messages that came and went of late.
#[derive(Debug, Default)]
pub(super) struct Copies {
    seen: HashSet<Name>,
    order: VecDeque<(Name, Instant)>,
    /// Confirmable messages, with the names that they have on their way.
    exchanges: HashMap<Name, Exchange>,
    begun: VecDeque<(Name, Instant)>,
    /// What those that are forgotten came to.
    past: Retransmissions,
}

/// A confirmable message, as both ends of the path saw it.
#[derive(Clone, Debug, Default)]
struct Exchange {
    /// Its transmissions, from 0 on.
    sent: u32,
    /// Those that arrived, in that order.
    arrived: Vec<u32>,
    is_answered: bool,
    /// The first of them whose answer arrived.
    useful: Option<u32>,
}

impl Exchange {
    /// The transmission that an answer which leaves now belongs to. The first answer is to what came first: a client that works on it
    /// for long knows a copy that comes meanwhile. A later answer is to the copy that came last, and leaves at once.
    fn cause(&mut self) -> u32 {
        let cause = if self.is_answered { self.arrived.last() } else { self.arrived.first() };
        self.is_answered = true;
        cause.copied().unwrap_or(NONE)
    }

    fn count(&self, into: &mut Retransmissions) {
        let all = u64::from(self.sent.saturating_sub(1));
        into.sent += all;
        match self.useful {
            Some(first) => {
                into.needed += all.min(u64::from(first));
                into.spurious += all.saturating_sub(u64::from(first));
            }
            None => into.unanswered += all,
        }
    }
}

impl Copies {
    fn forget_before(&mut self, now: Instant) {
        let is_old = |at: Instant| at.after(EXCHANGE_LIFETIME) <= now;
        while self.order.front().is_some_and(|(_, at)| self.order.len() >= MOST || is_old(*at)) {
            if let Some((oldest, _)) = self.order.pop_front() {
                self.seen.remove(&oldest);
            }
        }
        while self.begun.front().is_some_and(|(_, at)| self.begun.len() >= MOST || is_old(*at)) {
            if let Some(exchange) = self.begun.pop_front().and_then(|(oldest, _)| self.exchanges.remove(&oldest)) {
                exchange.count(&mut self.past);
            }
        }
    }
}

fn acknowledges(kind: Kind) -> bool {
    matches!(kind, Kind::Acknowledgement | Kind::Reset)
}

impl Reader for Copies {
    fn sent(&mut self, now: Instant, toward: Toward, client: u32, datagram: &[u8]) -> u32 {
        let Ok(message) = Message::parse(datagram) else { return NONE };
        self.forget_before(now);
        let goes_to_clients = toward == Toward::Clients;
        match message.kind {
            Kind::Confirmable => {
                let name = (goes_to_clients, client, false, message.id.0);
                let exchange = self.exchanges.entry(name).or_insert_with(|| {
                    self.begun.push_back((name, now));
                    Exchange::default()
                });
                exchange.sent += 1;
                exchange.sent - 1
            }
            kind if acknowledges(kind) => {
                let answered = self.exchanges.get_mut(&(!goes_to_clients, client, false, message.id.0));
                answered.map_or(NONE, Exchange::cause)
            }
            _ => NONE,
        }
    }

    fn arrived(&mut self, now: Instant, toward: Toward, client: u32, mark: u32, datagram: &[u8]) -> Option<bool> {
        let message = Message::parse(datagram).ok()?;
        self.forget_before(now);
        let (goes_to_clients, acknowledges) = (toward == Toward::Clients, acknowledges(message.kind));
        let name = (goes_to_clients, client, acknowledges, message.id.0);
        let whose = (goes_to_clients != acknowledges, client, false, message.id.0);
        if let Some(exchange) = self.exchanges.get_mut(&whose).filter(|_| mark != NONE) {
            if acknowledges {
                exchange.useful = Some(exchange.useful.map_or(mark, |first| first.min(mark)));
            } else if exchange.arrived.len() < MOST_ARRIVED {
                exchange.arrived.push(mark);
            }
        }
        let is_first = self.seen.insert(name);
        if is_first {
            self.order.push_back((name, now));
        } else {
            *(if goes_to_clients { &mut self.past.twice_at_clients } else { &mut self.past.twice_at_server }) += 1;
        }
        Some(is_first)
    }

    fn retransmissions(&self) -> Retransmissions {
        let mut all = self.past;
        self.exchanges.values().for_each(|exchange| exchange.count(&mut all));
        all
    }
}

/// The copies of a message of CoAP are alike; within DTLS nothing is.
pub(super) struct Alike;

impl Likeness for Alike {
    fn of(&self, datagram: &[u8]) -> Option<u32> {
        copies_share(datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"\x41\x01\x00\x07t\xb1a";
    const ANSWER: &[u8] = b"\x61\x45\x00\x07t\xff1";

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn what_has_the_same_id_on_the_same_way_is_a_copy() {
        let mut copies = Copies::default();
        let mut is_first =
            |seconds, toward, client, bytes: &[u8]| copies.arrived(at(seconds), toward, client, NONE, bytes);
        assert_eq!(is_first(0, Toward::Server, 1, REQUEST), Some(true));
        assert_eq!(is_first(2, Toward::Server, 1, REQUEST), Some(false));
        assert_eq!(is_first(2, Toward::Server, 2, REQUEST), Some(true), "another client's");
        assert_eq!(is_first(3, Toward::Clients, 1, ANSWER), Some(true));
        assert_eq!(is_first(3, Toward::Clients, 1, ANSWER), Some(false), "an answer to each copy");
        assert_eq!(is_first(3, Toward::Clients, 1, b"\x41\x45\x00\x07t\xff1"), Some(true), "the server's own ID");
        assert_eq!(is_first(248, Toward::Server, 1, REQUEST), Some(true), "the ID is free again");
    }

    /// A path in words: `>` a request of client 1 leaves, `x` it is dropped, `s` it arrives; `<` an answer leaves, `y` it is dropped,
    /// `c` it arrives. What leaves later arrives later.
    fn told(log: &str) -> Retransmissions {
        let (mut copies, mut up, mut down) = (Copies::default(), VecDeque::new(), VecDeque::new());
        for step in log.chars().filter(|step| *step != ' ') {
            match step {
                '>' => up.push_back(copies.sent(at(0), Toward::Server, 1, REQUEST)),
                '<' => down.push_back(copies.sent(at(0), Toward::Clients, 1, ANSWER)),
                'x' => _ = up.pop_front(),
                'y' => _ = down.pop_front(),
                's' => _ = copies.arrived(at(0), Toward::Server, 1, up.pop_front().expect("it left"), REQUEST),
                _ => _ = copies.arrived(at(0), Toward::Clients, 1, down.pop_front().expect("it left"), ANSWER),
            }
        }
        copies.retransmissions()
    }

    #[test]
    fn both_ends_know_which_retransmissions_were_needed() {
        let counts = |log| {
            let Retransmissions { sent, spurious, needed, unanswered, twice_at_server, twice_at_clients } = told(log);
            [sent, spurious, needed, unanswered, twice_at_server, twice_at_clients]
        };
        assert_eq!(counts(">s<c"), [0; 6]);
        assert_eq!(counts(">x >s<c"), [1, 0, 1, 0, 0, 0], "the request was dropped");
        assert_eq!(counts(">s<y >s<c"), [1, 0, 1, 0, 1, 0], "the answer was dropped");
        assert_eq!(counts(">s< > s< c c"), [1, 1, 0, 0, 1, 1], "the answer was on its way");
        assert_eq!(counts(">s > s <c"), [1, 1, 0, 0, 1, 0], "the server worked on it, and knew the copy");
        assert_eq!(counts(">s< > s c"), [1, 1, 0, 0, 1, 0], "a calm server withheld it");
        assert_eq!(counts(">s<y > s > s<c"), [2, 0, 2, 0, 2, 0], "the one that it withheld did not help");
        assert_eq!(counts(">x >s<c > s<c"), [2, 1, 1, 0, 1, 1]);
        assert_eq!(counts(">x >x >s<y"), [2, 0, 0, 2, 0, 0]);
    }

    #[test]
    fn what_cannot_be_read_does_not_count() {
        let mut copies = Copies::default();
        for bytes in [&b""[..], b"\x16\xfe\xfd\x00", b"\x41\x01\x00", b"\x4f\x01\x00\x07"] {
            assert_eq!(copies.arrived(at(0), Toward::Server, 1, NONE, bytes), None);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut copies = Copies::default();
        for client in 0..200_000 {
            copies.sent(at(0), Toward::Server, client, REQUEST);
            assert_eq!(copies.arrived(at(0), Toward::Server, client, 0, REQUEST), Some(true));
        }
        assert!(copies.seen.len() <= MOST && copies.order.len() == copies.seen.len());
        assert!(copies.exchanges.len() <= MOST && copies.begun.len() == copies.exchanges.len());
        assert_eq!(copies.arrived(at(0), Toward::Server, 199_999, NONE, REQUEST), Some(false));
    }
}

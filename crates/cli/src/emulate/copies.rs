//! Which messages of CoAP on a path are copies of others.

use std::collections::{HashSet, VecDeque};

use millpond_coap::message::{Kind, Message, copies_share};
use millpond_control::{Instant, Span};
use millpond_emulate::{Likeness, Reader, Toward};

/// A message ID means another message after this long: EXCHANGE_LIFETIME with the parameters of RFC 7252 (§4.8.2).
const EXCHANGE_LIFETIME: Span = Span::from_secs(247);
/// So many messages are remembered; whoever sends more in that time makes older ones be forgotten, whose copies then count as first.
const MOST: usize = 1 << 17;

/// A message: where it went, of which client, and whose message ID it has: the sender's own, or that of what it acknowledges.
type Name = (bool, u32, bool, u16);

/// The messages that arrived of late.
#[derive(Debug, Default)]
pub(super) struct Copies {
    seen: HashSet<Name>,
    order: VecDeque<(Name, Instant)>,
}

impl Reader for Copies {
    fn is_first(&mut self, now: Instant, toward: Toward, client: u32, datagram: &[u8]) -> Option<bool> {
        let message = Message::parse(datagram).ok()?;
        let acknowledges = matches!(message.kind, Kind::Acknowledgement | Kind::Reset);
        let name = (toward == Toward::Clients, client, acknowledges, message.id.0);
        while let Some(&(oldest, at)) = self.order.front() {
            if self.order.len() < MOST && at.after(EXCHANGE_LIFETIME) > now {
                break;
            }
            self.order.pop_front();
            self.seen.remove(&oldest);
        }
        let is_first = self.seen.insert(name);
        if is_first {
            self.order.push_back((name, now));
        }
        Some(is_first)
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
        let mut is_first = |seconds, toward, client, bytes: &[u8]| copies.is_first(at(seconds), toward, client, bytes);
        assert_eq!(is_first(0, Toward::Server, 1, REQUEST), Some(true));
        assert_eq!(is_first(2, Toward::Server, 1, REQUEST), Some(false));
        assert_eq!(is_first(2, Toward::Server, 2, REQUEST), Some(true), "another client's");
        assert_eq!(is_first(3, Toward::Clients, 1, ANSWER), Some(true));
        assert_eq!(is_first(3, Toward::Clients, 1, ANSWER), Some(false), "an answer to each copy");
        assert_eq!(is_first(3, Toward::Clients, 1, b"\x41\x45\x00\x07t\xff1"), Some(true), "the server's own ID");
        assert_eq!(is_first(248, Toward::Server, 1, REQUEST), Some(true), "the ID is free again");
    }

    #[test]
    fn what_cannot_be_read_does_not_count() {
        let mut copies = Copies::default();
        for bytes in [&b""[..], b"\x16\xfe\xfd\x00", b"\x41\x01\x00", b"\x4f\x01\x00\x07"] {
            assert_eq!(copies.is_first(at(0), Toward::Server, 1, bytes), None);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut copies = Copies::default();
        for client in 0..200_000 {
            assert_eq!(copies.is_first(at(0), Toward::Server, client, REQUEST), Some(true));
        }
        assert!(copies.seen.len() <= MOST && copies.order.len() == copies.seen.len());
        assert_eq!(copies.is_first(at(0), Toward::Server, 199_999, REQUEST), Some(false));
    }
}

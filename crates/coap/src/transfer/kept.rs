//! Observers that outlive a restart of their server.

use alloc::vec::Vec;

use millpond_control::Instant;

use super::{CoapStack, Limit, ObserverId, notifying::SEQUENCE, observers::Observer};
use crate::block::Block;
use crate::layer::MessageLayer;
use crate::message::{Kind, Message, Token};

/// What is to be kept of an observer beside its address and its request, so that a server notifies it after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptObserver {
    token: Token,
    kind: Kind,
    block2: Option<Block>,
    /// No notification before has had a higher number in Observe.
    sequence: u32,
    limit: Option<Limit>,
    /// By what its notifications are protected, if they are.
    protection: Vec<u8>,
}

/// Numbers of notifications that are sent without what is kept being written, at least. A restart costs an observer twice as many at most,
/// of the 2^23 by which a notification may be ahead of the one before (RFC 7641 §3.4).
const GAP: u32 = 1 << 15;

/// A bound of the numbers that are used from this one on, which changes once in a [`GAP`].
const fn bound(sequence: u32) -> u32 {
    (sequence / GAP).wrapping_add(2).wrapping_mul(GAP) & SEQUENCE
}

const CONFIRMABLE: u8 = 1;
const IN_BLOCKS: u8 = 2;
const LIMITED: u8 = 4;
const FLAGS: u8 = CONFIRMABLE | IN_BLOCKS | LIMITED;

impl KeptObserver {
    /// That of its registration.
    #[must_use]
    pub const fn token(&self) -> Token {
        self.token
    }

    /// Its address has shown that it receives what is sent there.
    #[must_use]
    pub const fn is_validated(&self) -> bool {
        self.limit.is_none()
    }

    /// What is to be kept from when this one is notified again.
    #[must_use]
    pub fn again(self) -> Self {
        Self { sequence: bound(self.sequence), ..self }
    }

    /// All of it, in less than 64 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let is_confirmable = if self.kind == Kind::Confirmable { CONFIRMABLE } else { 0 };
        let in_blocks = if self.block2.is_some() { IN_BLOCKS } else { 0 };
        let limited = if self.limit.is_some() { LIMITED } else { 0 };
        let [_, sequence @ ..] = self.sequence.to_be_bytes();
        let mut bytes = Vec::new();
        bytes.push(is_confirmable | in_blocks | limited);
        bytes.extend_from_slice(&sequence);
        put(&mut bytes, self.token.as_bytes());
        if let Some(block) = self.block2 {
            put(&mut bytes, block.value().as_bytes());
        }
        if let Some(limit) = self.limit {
            bytes.extend_from_slice(&limit.to_bytes());
        }
        bytes.extend_from_slice(&self.protection);
        bytes
    }

    /// The context under which it observes, by the ID that it has for it.
    #[must_use]
    pub fn context(&self) -> Option<&[u8]> {
        take(&self.protection).map(|(id, _)| id)
    }

    /// What [`to_bytes`](Self::to_bytes) wrote; `None` if these bytes are something else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[flags, a, b, c], bytes) = bytes.split_first_chunk()?;
        if flags & !FLAGS != 0 {
            return None;
        }
        let (token, mut bytes) = take(bytes)?;
        let mut block2 = None;
        if flags & IN_BLOCKS != 0 {
            let (block, rest) = take(bytes)?;
            (block2, bytes) = (Some(Block::read(block, false).ok()?), rest);
        }
        let mut limit = None;
        if flags & LIMITED != 0 {
            let (of_bytes, rest) = bytes.split_first_chunk()?;
            (limit, bytes) = (Some(Limit::from_bytes(*of_bytes)), rest);
        }
        Some(Self {
            token: Token::new(token)?,
            kind: if flags & CONFIRMABLE != 0 { Kind::Confirmable } else { Kind::NonConfirmable },
            block2,
            sequence: u32::from_be_bytes([0, a, b, c]),
            limit,
            protection: bytes.into(),
        })
    }
}

/// A few bytes behind their number.
fn put(into: &mut Vec<u8>, bytes: &[u8]) {
    into.push(bytes.len() as u8);
    into.extend_from_slice(bytes);
}

fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

impl<L: MessageLayer> CoapStack<L> {
    /// What is to be kept of an observer over a restart, and who it is. `None` if it is gone or cannot be kept: by a token of more than 8
    /// bytes, by a context of OSCORE whose keys end with the process, and where a notification went to an address that has never answered
    /// one, for there is to be no other.
    #[must_use]
    pub fn kept_observer(&mut self, id: ObserverId) -> Option<(L::Peer, KeptObserver)> {
        let observer = self.observers.get(self.observers.find(id)?)?;
        let Observer { peer, token, kind, block2, sequence, .. } = *observer;
        let was_notified = observer.under_way.is_some() || observer.left.iter().any(Option::is_some);
        let limit = match (observer.limit, observer.confirmed_at) {
            (Some(_), None) if was_notified => return None,
            (limit, None) => limit,
            (limit, Some(_)) => limit.map(Limit::alone),
        };
        if token.is_long() {
            return None;
        }
        let protection = self.layer.registration(peer, token)?;
        Some((peer, KeptObserver { token, kind, block2, sequence: bound(sequence), limit, protection }))
    }

    /// Input: somebody observed by this request before a restart, and is to be notified further. The next notification is a
    /// confirmable one, unless another kind is asked for. `None` if there is no room, or not the context of OSCORE.
    pub fn observes_again(
        &mut self,
        now: Instant,
        peer: L::Peer,
        kept: &KeptObserver,
        request: &Message<'_>,
    ) -> Option<ObserverId> {
        self.input(now);
        let KeptObserver { token, kind, block2, sequence, limit, .. } = *kept;
        let has_room = self.has_room_for_observer(now, peer) && self.observer_of(peer, token).is_none();
        if !has_room || !self.layer.observes_again(peer, token, &kept.protection) {
            return None;
        }
        let observer = Observer {
            peer,
            token,
            kind,
            key: self.key_of(request, kept.context()),
            asked: self.hash_of_body(request, request.payload()),
            block2,
            sequence,
            under_way: None,
            is_held: false,
            waiting: None,
            confirmed_at: None,
            registered_at: now,
            may_leave: Instant::ORIGIN,
            left: [None; 2],
            limit,
        };
        let layer = &self.layer;
        Some(self.observers.add(observer, |peer| layer.hash(&peer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_nothing_else_is_read() {
        let kept = |block2, limit, protection: &[u8]| KeptObserver {
            token: Token::new(b"token").unwrap(),
            kind: Kind::NonConfirmable,
            block2,
            sequence: 0x12_8000,
            limit,
            protection: protection.into(),
        };
        let block = Block { number: 0, more: false, size: crate::block::BlockSize::B64 };
        for kept in [kept(None, None, b""), kept(Some(block), Some(Limit::of(20, 62)), b"\x01\x07\x05")] {
            let bytes = kept.to_bytes();
            assert_eq!(KeptObserver::from_bytes(&bytes), Some(kept.clone()));
            let least = bytes.len() - kept.protection.len();
            for end in 0..least {
                assert_eq!(KeptObserver::from_bytes(&bytes[..end]), None, "{end}");
            }
        }
        assert_eq!(KeptObserver::from_bytes(b"\x08\0\0\0\0"), None, "a flag of a later version");
        assert_eq!(KeptObserver::from_bytes(b"\0\0\0\0\x09123456789"), None, "a token of nine bytes");
        assert_eq!(KeptObserver::from_bytes(b"\x02\0\0\0\0\x01\x07"), None, "no size of a block");
    }

    /// RFC 7641 §3.4: behind a number by less than 2^23 is older.
    #[test]
    fn after_any_restart_numbers_are_newer_than_those_before() {
        for before in [0, 1, GAP - 1, GAP, 5 * GAP + 7, SEQUENCE - GAP, SEQUENCE] {
            let after = bound(before);
            let ahead = after.wrapping_sub(before) & SEQUENCE;
            assert!((GAP..=2 * GAP).contains(&ahead), "{before} {after}");
            // As many may be sent until it is written anew, and that is as far ahead again.
            assert_eq!(bound(after).wrapping_sub(after) & SEQUENCE, 2 * GAP);
        }
    }
}

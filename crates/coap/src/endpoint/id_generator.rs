use core::{
    fmt,
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher},
};

use rustc_hash::FxHasher;
use siphasher::sip::{SipHasher13, SipHasher24};

use crate::message::{MessageId, Token};

/// Where message IDs, tokens and the order of hash tables come from.
///
/// Not a [`ChanceSeed`](millpond_control::ChanceSeed) on purpose: who can guess a token and a message ID can forge a
/// response (RFC 7252 §5.3.1, §11.4), and who can guess a hash can slow an endpoint down. A live endpoint takes
/// [`IdGenerator::secret`] with 16 bytes from the operating system; an experiment takes [`IdGenerator::counted`], so that
/// it can be repeated to the byte.
#[derive(Clone, Copy)]
pub struct IdGenerator(Source);

#[derive(Clone, Copy)]
enum Source {
    Counted,
    Secret(u64, u64),
}

/// What a keyed hash is for; each purpose has values of its own.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Use {
    FirstId = 1,
    Token = 2,
    Table = 3,
    Answer = 4,
    Path = 5,
    Ping = 6,
}

/// Two endpoints: the number of ours, and that of the peer in the order of first contact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) node: u32,
    pub(super) peer: u32,
}

impl Pair {
    const fn word(self) -> u64 {
        (self.node as u64) << 32 | self.peer as u64
    }
}

impl IdGenerator {
    /// Predictable: every peer's message IDs and tokens count up from zero. For experiments only.
    #[must_use]
    pub const fn counted() -> Self {
        Self(Source::Counted)
    }

    /// Unpredictable to those who do not know `key`, which must come from a source of secrets and never be used twice.
    /// First message IDs are SipHash-2-4 of the numbers of endpoint and peer, tokens a keyed permutation of a counter.
    #[must_use]
    pub const fn secret(key: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = key;
        Self(Source::Secret(u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes(rest)))
    }

    /// The message ID that the first message to a peer gets. RFC 7252 §4.4 advises to make it random.
    pub(super) fn first_id(&self, whose: Pair) -> u16 {
        match self.0 {
            Source::Counted => 0,
            Source::Secret(..) => self.word(Use::FirstId, &[whose.word()]) as u16,
        }
    }

    /// The message ID of the answer to a request of somebody of whom nothing is kept. As long as no two of its requests
    /// have the same ID, no two answers to it have.
    pub(super) fn answer_id(&self, to: &impl Hash, request: MessageId) -> MessageId {
        MessageId(request.0 ^ self.keyed(to, Use::Answer) as u16)
    }

    /// The message ID of a ping to somebody of whom nothing else is kept, which no other one can guess.
    pub(super) fn ping_id(&self, to: &impl Hash, request: MessageId) -> MessageId {
        MessageId(request.0 ^ self.keyed(to, Use::Ping) as u16)
    }

    /// The token of `length` bytes of message number `count` to a peer. Different counts give different tokens until
    /// all tokens of that length were used.
    pub(super) fn token(&self, whose: Pair, count: u64, length: u8) -> Token {
        let value = match self.0 {
            Source::Counted => count,
            Source::Secret(..) => self.permuted(whose, count, length),
        };
        let bytes = value.to_be_bytes();
        let skipped = bytes.len().saturating_sub(usize::from(length));
        Token::new(bytes.get(skipped..).unwrap_or_default()).unwrap_or_default()
    }

    /// A place in a hash table.
    #[inline]
    pub(crate) fn hash(&self, key: &impl Hash) -> u64 {
        self.keyed(key, Use::Table)
    }

    /// The key of the path on which all are of whom the same was said. Who does not know the secret can say nothing that is taken
    /// for something else.
    pub(super) fn path(&self, with_all_of: &impl Hash) -> u64 {
        self.keyed(with_all_of, Use::Path)
    }

    #[inline]
    fn keyed(&self, key: &impl Hash, purpose: Use) -> u64 {
        match self.0 {
            Source::Counted => spread(BuildHasherDefault::<FxHasher>::default().hash_one(key)),
            Source::Secret(low, high) => {
                let mut hasher = SipHasher13::new_with_keys(low, high ^ purpose as u64);
                key.hash(&mut hasher);
                hasher.finish()
            }
        }
    }

    /// A permutation of all numbers of `length` bytes, one for each pair: four rounds of a balanced Feistel network
    /// with SipHash-2-4 as round function (Luby and Rackoff, 1988).
    fn permuted(&self, whose: Pair, count: u64, length: u8) -> u64 {
        let half = u32::from(length).saturating_mul(4);
        let mask = 1_u64.checked_shl(half).unwrap_or(0).wrapping_sub(1);
        let (mut left, mut right) = (count.checked_shr(half).unwrap_or(0) & mask, count & mask);
        for round in 0..4_u64 {
            let mixed = left ^ (self.word(Use::Token, &[u64::from(length), round, whose.word(), right]) & mask);
            (left, right) = (right, mixed);
        }
        left.checked_shl(half).unwrap_or(0) | right
    }

    fn word(&self, purpose: Use, place: &[u64]) -> u64 {
        let Source::Secret(low, high) = self.0 else { return 0 };
        let mut hasher = SipHasher24::new_with_keys(low, high);
        hasher.write_u8(purpose as u8);
        for &number in place {
            hasher.write_u64(number);
        }
        hasher.finish()
    }
}

/// A hash of FxHasher in all its bits: on machines of 32 bits, such as a browser's, the upper half is empty, and tables that
/// choose by it would have one place for everybody.
const fn spread(hash: u64) -> u64 {
    if usize::BITS < u64::BITS { hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { hash }
}

/// Never shows the key.
impl fmt::Debug for IdGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Counted => "IdGenerator::counted",
            Source::Secret(..) => "IdGenerator::secret",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, vec, vec::Vec};

    const KEY: [u8; 16] = *b"sixteen of bytes";

    fn with(peer: u32) -> Pair {
        Pair { node: 1, peer }
    }

    #[test]
    fn short_tokens_go_through_all_values_before_one_comes_again() {
        for id_generator in [IdGenerator::counted(), IdGenerator::secret(KEY)] {
            for length in [1_u8, 2] {
                let all = 1_u64 << (8 * u32::from(length));
                let mut seen = vec![false; all as usize];
                for count in 0..all {
                    let token = id_generator.token(with(3), count, length);
                    assert_eq!(token.len(), usize::from(length));
                    let value = token.as_bytes().iter().fold(0_usize, |value, byte| value << 8 | usize::from(*byte));
                    let slot = seen.get_mut(value).map(|seen| core::mem::replace(seen, true));
                    assert_eq!(slot, Some(false), "token {value} of {length} bytes came twice");
                }
            }
        }
    }

    #[test]
    fn long_tokens_differ_between_counts_and_peers() {
        let id_generator = IdGenerator::secret(KEY);
        for length in 3..=8 {
            let mut tokens: Vec<_> = (0..1_000).map(|count| id_generator.token(with(0), count, length)).collect();
            tokens.sort_unstable_by_key(|token| token.as_bytes().to_vec());
            tokens.dedup();
            assert_eq!(tokens.len(), 1_000);
            assert_ne!(id_generator.token(with(0), 7, length), id_generator.token(with(1), 7, length));
        }
        assert!(id_generator.token(with(0), 7, 0).is_empty());
        let other = Pair { node: 2, peer: 0 };
        assert_ne!(id_generator.token(with(0), 7, 8), id_generator.token(other, 7, 8));
    }

    #[test]
    fn the_key_decides_and_is_never_shown() {
        let mut other = KEY;
        other[15] ^= 1;
        let (one, two) = (IdGenerator::secret(KEY), IdGenerator::secret(other));
        assert_ne!(one.token(with(0), 0, 8), two.token(with(0), 0, 8));
        assert!((0..8).any(|peer| one.first_id(with(peer)) != two.first_id(with(peer))));
        assert_ne!(one.hash(&1_u32), two.hash(&1_u32));
        assert_eq!(format!("{one:?}"), "IdGenerator::secret");
    }

    #[test]
    fn first_ids_are_spread_over_all_values() {
        let id_generator = IdGenerator::secret(KEY);
        let mut quarters = [0_u32; 4];
        for peer in 0..4_000 {
            if let Some(count) = quarters.get_mut(usize::from(id_generator.first_id(with(peer)) >> 14)) {
                *count += 1;
            }
        }
        assert!(quarters.iter().all(|count| (900..1_100).contains(count)), "{quarters:?}");
    }
}

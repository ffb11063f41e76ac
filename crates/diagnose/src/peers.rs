//! Pairs of endpoints by their numbers, and the exchanges of each.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use rustc_hash::FxBuildHasher;

/// Two endpoints: the one that asks, and the one that answers.
pub(crate) type Pair = (SocketAddr, SocketAddr);

/// The latest of something with a message ID, by the number of its peer. Both are ours to count or have few values, so that
/// there are not so many whose hashes are alike that a chapter takes long.
pub(crate) type ById = HashMap<(u32, u16), u32, FxBuildHasher>;

/// Pairs that are remembered where they are found without a search.
const RECENT: usize = 1 << 12;

/// The numbers of pairs of endpoints, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    numbers: BTreeMap<Pair, u32>,
    names: Vec<Pair>,
    /// Numbers of pairs that were looked for lately, each where [`place`] says.
    recent: Vec<u32>,
}

impl Pairs {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn name(&self, peer: u32) -> Option<&Pair> {
        self.names.get(peer as usize)
    }

    pub(crate) fn find(&mut self, pair: &Pair) -> Option<u32> {
        let place = place(pair);
        if let Some(&recent) = self.recent.get(place)
            && self.name(recent) == Some(pair)
        {
            return Some(recent);
        }
        let found = self.numbers.get(pair).copied()?;
        self.remember(place, found);
        Some(found)
    }

    /// Numbers a pair that is not known.
    pub(crate) fn add(&mut self, pair: Pair) -> u32 {
        let number = self.names.len() as u32;
        self.numbers.insert(pair, number);
        self.names.push(pair);
        self.remember(place(&pair), number);
        number
    }

    fn remember(&mut self, place: usize, number: u32) {
        self.recent.resize(RECENT, number);
        self.recent[place] = number;
    }
}

/// Any place will do: another pair there costs a search.
fn place((one, other): &Pair) -> usize {
    let of = |end: &SocketAddr| {
        let address = match end.ip() {
            IpAddr::V4(ip) => u32::from(ip),
            IpAddr::V6(ip) => {
                let [.., a, b, c, d] = ip.octets();
                u32::from_be_bytes([a, b, c, d])
            }
        };
        address ^ u32::from(end.port()).rotate_left(16)
    };
    let mixed = of(one).wrapping_add(of(other).rotate_left(7)).wrapping_mul(0x9e37_79b1);
    (mixed >> 20) as usize % RECENT
}

/// The exchanges of each peer, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByPeer {
    of: Vec<Vec<u32>>,
    peers: usize,
}

impl ByPeer {
    pub(crate) fn push(&mut self, peer: u32, exchange: u32) {
        let place = peer as usize;
        if place >= self.of.len() {
            self.of.resize(place + 1, Vec::new());
        }
        self.peers += usize::from(self.of[place].is_empty());
        self.of[place].push(exchange);
    }

    pub(crate) fn of(&self, peer: u32) -> &[u32] {
        self.of.get(peer as usize).map_or(&[], Vec::as_slice)
    }

    /// Of all peers that have any.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[u32]> {
        self.of.iter().map(Vec::as_slice).filter(|of| !of.is_empty())
    }

    /// Forgets all, and keeps their places.
    pub(crate) fn clear(&mut self) {
        self.of.iter_mut().for_each(Vec::clear);
        self.peers = 0;
    }

    /// How many peers have any.
    pub(crate) fn len(&self) -> usize {
        self.peers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_also_where_others_took_their_place() {
        let mut pairs = Pairs::default();
        let pair = |number: u32| -> Pair {
            let [a, b, c, d] = number.to_be_bytes();
            (([10 ^ a, b, c, d], 5683).into(), ([192, 0, 2, 1], 5683).into())
        };
        let count = 3 * RECENT as u32;
        for number in 0..count {
            assert_eq!(pairs.find(&pair(number)), None);
            assert_eq!(pairs.add(pair(number)), number);
        }
        for number in (0..count).chain((0..count).rev()) {
            assert_eq!(pairs.find(&pair(number)), Some(number));
        }
    }
}

//! Who holds how many places: when there are no more, whoever has the most gives one up.
//!
//! An address is proved cheaply by whoever has it, and one host, or one network, has many ports and addresses. So places are
//! counted by network, and a network that wants more than its share takes them from itself.

use std::{collections::HashMap, net::SocketAddr};

use crate::udp::Network;

/// Sessions by the networks of their peers.
#[derive(Debug, Default)]
pub(super) struct Shares {
    networks: HashMap<Network, Vec<u32>>,
    len: usize,
}

impl Shares {
    pub(super) fn add(&mut self, peer: SocketAddr, number: u32) {
        self.networks.entry(Network::of(peer)).or_default().push(number);
        self.len += 1;
    }

    /// False if it was not there.
    pub(super) fn remove(&mut self, peer: SocketAddr, number: u32) -> bool {
        let network = Network::of(peer);
        let Some(numbers) = self.networks.get_mut(&network) else { return false };
        let Some(place) = numbers.iter().position(|other| *other == number) else { return false };
        numbers.swap_remove(place);
        if numbers.is_empty() {
            self.networks.remove(&network);
        }
        self.len -= 1;
        true
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Those of the network that has the most, or of all that have as many: no network's number is worth less than another's.
    pub(super) fn of_the_largest(&self) -> impl Iterator<Item = u32> {
        let most = self.networks.values().map(Vec::len).max().unwrap_or_default();
        self.networks.values().filter(move |numbers| numbers.len() == most).flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_with_the_most_is_found() {
        let mut shares = Shares::default();
        let largest = |shares: &Shares| {
            let mut numbers: Vec<u32> = shares.of_the_largest().collect();
            numbers.sort_unstable();
            numbers
        };
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (number, peer) in [
            (1, "192.0.2.1:1"),
            (2, "192.0.2.200:2"),
            (3, "192.0.3.1:1"),
            (4, "[2001:db8:1:2::1]:1"),
            (5, "[2001:db8:1:3::1]:1"),
            (6, "[::ffff:192.0.2.7]:9"),
        ] {
            shares.add(address(peer), number);
        }
        assert_eq!((shares.len(), largest(&shares)), (6, vec![1, 2, 6]));
        assert!(shares.remove(address("192.0.2.9:7"), 2) && !shares.remove(address("192.0.2.9:7"), 2));
        assert!(shares.remove(address("192.0.2.9:7"), 1));
        assert_eq!((shares.len(), largest(&shares)), (4, vec![4, 5]));
        assert!(shares.remove(address("[2001:db8:1:3::1]:1"), 5));
        assert_eq!(largest(&shares), [3, 4, 6], "each has one");
    }
}

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::cmp::Reverse;

/// What each network holds of something of which all count alike.
#[derive(Debug)]
pub struct Holders<T> {
    networks: BTreeMap<u64, BTreeSet<T>>,
    len: usize,
}

impl<T> Default for Holders<T> {
    fn default() -> Self {
        Self { networks: BTreeMap::new(), len: 0 }
    }
}

impl<T: Copy + Ord> Holders<T> {
    /// A network holds one more.
    pub fn add(&mut self, network: u64, one: T) {
        if self.networks.entry(network).or_default().insert(one) {
            self.len = self.len.saturating_add(1);
        }
    }

    /// A network holds this one no more. False if it did not.
    pub fn remove(&mut self, network: u64, one: T) -> bool {
        let Some(held) = self.networks.get_mut(&network) else { return false };
        let was_held = held.remove(&one);
        if held.is_empty() {
            self.networks.remove(&network);
        }
        self.len = self.len.saturating_sub(usize::from(was_held));
        was_held
    }

    /// How many are held.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none is held.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What a network holds, in order.
    pub fn of(&self, network: u64) -> impl ExactSizeIterator<Item = T> {
        self.networks.get(&network).map(BTreeSet::iter).unwrap_or_default().copied()
    }

    /// What the network holds that holds most, or all that hold as many: no network's number is worth less than another's.
    pub fn of_largest(&self) -> impl Iterator<Item = T> {
        let most = self.networks.values().map(BTreeSet::len).max().unwrap_or_default();
        self.networks.values().filter(move |held| held.len() == most).flatten().copied()
    }
}

/// So many of these, which are given from the oldest to the newest with their networks: of the networks that have most the oldest.
/// Where all have as many, age decides.
pub fn oldest_of_largest<T>(all: Vec<(u64, T)>, count: usize) -> impl Iterator<Item = T> {
    let mut newer = BTreeMap::<u64, u32>::new();
    let mut ranked = Vec::with_capacity(all.len());
    for (network, one) in all.into_iter().rev() {
        let newer = newer.entry(network).or_default();
        *newer = newer.saturating_add(1);
        ranked.push((*newer, one));
    }
    ranked.reverse();
    ranked.sort_by_key(|(newer, _)| Reverse(*newer));
    ranked.into_iter().take(count).map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_that_holds_most_is_found_or_all_that_hold_as_many() {
        let mut holders = Holders::default();
        for (network, one) in [(7, 1), (7, 2), (8, 3), (9, 4), (9, 5), (7, 6)] {
            holders.add(network, one);
        }
        let largest = |holders: &Holders<u32>| holders.of_largest().collect::<Vec<_>>();
        assert_eq!((holders.len(), largest(&holders)), (6, vec![1, 2, 6]));
        assert!(holders.remove(7, 2) && !holders.remove(7, 2) && !holders.remove(3, 1));
        assert_eq!((holders.len(), largest(&holders)), (5, vec![1, 6, 4, 5]));
        assert!(holders.remove(7, 1) && holders.remove(9, 5));
        assert_eq!(largest(&holders), [6, 3, 4], "each has one");
        assert_eq!(holders.of(9).collect::<Vec<_>>(), [4]);
        assert_eq!((holders.of(1).len(), holders.is_empty()), (0, false));
    }

    #[test]
    fn who_has_many_gives_way_before_who_has_one_and_the_oldest_first() {
        let give_way = |all: &[(u64, char)], count| oldest_of_largest(all.to_vec(), count).collect::<Vec<_>>();
        let all = [(1, 'a'), (2, 'b'), (2, 'c'), (3, 'd'), (2, 'e'), (3, 'f')];
        assert_eq!(give_way(&all, 1), ['b']);
        assert_eq!(give_way(&all, 3), ['b', 'c', 'd'], "two are left of each");
        assert_eq!(give_way(&[(1, 'a'), (2, 'b'), (3, 'c')], 2), ['a', 'b'], "each has one: age decides");
        assert_eq!(give_way(&[], 2), []);
    }
}

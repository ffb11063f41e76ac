use core::hash::Hash;

use hashbrown::{HashTable, hash_table::Entry};

use crate::endpoint::IdGenerator;

/// How many there are of each of something, by a keyed hash.
#[derive(Debug)]
pub(crate) struct Tally<K>(HashTable<(K, u16)>);

impl<K: Copy + Eq + Hash> Tally<K> {
    pub(crate) const fn new() -> Self {
        Self(HashTable::new())
    }

    /// How many there are of this one.
    pub(crate) fn of(&self, key: K, id_generator: &IdGenerator) -> u16 {
        self.0.find(id_generator.hash(&key), |of| of.0 == key).map_or(0, |of| of.1)
    }

    /// The most that there are of any of those that are meant.
    pub(crate) fn most(&self, is_meant: impl Fn(&K) -> bool) -> Option<u16> {
        self.0.iter().filter(|of| is_meant(&of.0)).map(|of| of.1).max()
    }

    /// Of those that are meant one of which there are most.
    pub(crate) fn largest(&self, is_meant: impl Fn(&K) -> bool) -> Option<K> {
        self.0.iter().filter(|of| is_meant(&of.0)).max_by_key(|of| of.1).map(|of| of.0)
    }

    pub(crate) fn add(&mut self, key: K, id_generator: &IdGenerator) {
        match self.0.entry(id_generator.hash(&key), |of| of.0 == key, |of| id_generator.hash(&of.0)) {
            Entry::Occupied(mut of) => of.get_mut().1 = of.get().1.saturating_add(1),
            Entry::Vacant(place) => drop(place.insert((key, 1))),
        }
    }

    pub(crate) fn remove(&mut self, key: K, id_generator: &IdGenerator) {
        if let Ok(mut of) = self.0.find_entry(id_generator.hash(&key), |of| of.0 == key) {
            of.get_mut().1 = of.get().1.saturating_sub(1);
            if of.get().1 == 0 {
                of.remove();
            }
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.0.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_it_is_known_how_many_there_are_and_of_which_there_are_most() {
        let (mut tally, id_generator) = (Tally::new(), IdGenerator::counted());
        [3, 5, 3, 8, 3, 8].into_iter().for_each(|key| tally.add(key, &id_generator));
        assert_eq!([3, 5, 8, 9].map(|key| tally.of(key, &id_generator)), [3, 1, 2, 0]);
        assert_eq!(
            (tally.most(|_| true), tally.largest(|key| *key > 3), tally.most(|key| *key > 8)),
            (Some(3), Some(8), None)
        );
        [3, 3, 3, 9].into_iter().for_each(|key| tally.remove(key, &id_generator));
        assert_eq!((tally.most(|_| true), tally.of(3, &id_generator)), (Some(2), 0));
    }
}

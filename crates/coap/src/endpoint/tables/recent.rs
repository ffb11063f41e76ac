//! A table of what was used most recently, of bounded size.

use alloc::vec::Vec;

/// Places that a key can be in.
const WAYS: usize = 4;

/// Sets of places at first.
const SETS: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    /// When it was used last, in uses of the table modulo 2³².
    used: u32,
}

/// Values by their keys. Each key has four places, so that looking for it takes four steps, however many there are. One
/// that is added where all four are taken makes the table grow, and once that may not be, takes the place of the one
/// used least recently of the four.
#[derive(Debug)]
pub(in crate::endpoint) struct Recent<K, V> {
    entries: Vec<Option<Entry<K, V>>>,
    uses: u32,
}

impl<K: Copy + Eq, V: Copy + Default> Recent<K, V> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self { entries: Vec::new(), uses: 0 }
    }

    /// Bytes held on the heap.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        self.entries.capacity().wrapping_mul(size_of::<Option<Entry<K, V>>>())
    }

    /// The value of a key, a usual one if it is not there. `hash` is that of a key; the table grows to at most `most`
    /// bytes, and is without any entry if that is too little.
    pub(in crate::endpoint) fn of(&mut self, key: K, hash: impl Fn(&K) -> u64, most: usize) -> Option<&mut V> {
        self.uses = self.uses.wrapping_add(1);
        let mut place = self.find(&key, hash(&key));
        if place.is_none() {
            while self.full(hash(&key)) && self.grow(&hash, most) {}
            place = self.add(key, hash(&key));
        }
        let uses = self.uses;
        let entry = self.entries.get_mut(place?)?.as_mut()?;
        entry.used = uses;
        Some(&mut entry.value)
    }

    /// The value of a key that is there.
    pub(in crate::endpoint) fn get(&mut self, key: &K, hash: u64) -> Option<&mut V> {
        let place = self.find(key, hash)?;
        self.entries.get_mut(place)?.as_mut().map(|entry| &mut entry.value)
    }

    /// The first of the places of a hash.
    fn first(&self, hash: u64) -> usize {
        let sets = (self.entries.len() / WAYS).max(1);
        // The upper half: lower bits of weak hashes are alike.
        ((hash >> 32) as usize & sets.saturating_sub(1)).saturating_mul(WAYS)
    }

    fn find(&self, key: &K, hash: u64) -> Option<usize> {
        let first = self.first(hash);
        let places = first..first.saturating_add(WAYS);
        places.into_iter().find(|place| matches!(self.entries.get(*place), Some(Some(entry)) if entry.key == *key))
    }

    fn full(&self, hash: u64) -> bool {
        let first = self.first(hash);
        self.entries.get(first..first.saturating_add(WAYS)).is_none_or(|set| set.iter().all(Option::is_some))
    }

    /// Twice as many places. Says whether there are.
    fn grow(&mut self, hash: &impl Fn(&K) -> u64, most: usize) -> bool {
        let places = self.entries.len().saturating_mul(2).max(SETS * WAYS);
        // While the old ones are moved both are there.
        let held = places.saturating_mul(size_of::<Option<Entry<K, V>>>()).saturating_add(self.memory());
        if held > most {
            return false;
        }
        let old = core::mem::replace(&mut self.entries, alloc::vec![None; places]);
        for entry in old.into_iter().flatten() {
            if let Some(place) = self.add(entry.key, hash(&entry.key))
                && let Some(there) = self.entries.get_mut(place)
            {
                *there = Some(entry);
            }
        }
        true
    }

    /// A place for a key that has none, with a usual value.
    fn add(&mut self, key: K, hash: u64) -> Option<usize> {
        let first = self.first(hash);
        let age = |entry: &Option<Entry<K, V>>| entry.as_ref().map_or(u32::MAX, |it| self.uses.wrapping_sub(it.used));
        let set = self.entries.get(first..first.saturating_add(WAYS))?;
        let (way, _) = set.iter().enumerate().max_by_key(|(_, entry)| age(entry))?;
        let place = first.saturating_add(way);
        *self.entries.get_mut(place)? = Some(Entry { key, value: V::default(), used: self.uses });
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: &u32) -> u64 {
        u64::from(*key).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    #[test]
    fn what_is_used_again_and_again_stays_and_memory_is_bounded() {
        let (mut table, most) = (Recent::<u32, u32>::new(), 20_000);
        *table.of(7, hash, most).unwrap() = 77;
        for key in 100..100_000 {
            *table.of(key, hash, most).unwrap() = key;
            assert_eq!(table.of(7, hash, most), Some(&mut 77), "{key}");
            assert_eq!(table.get(&key, hash(&key)), Some(&mut key.clone()));
        }
        assert!(table.memory() <= most && table.memory() > most / 4, "{}", table.memory());
        let there = (100..100_000).filter(|key| table.get(key, hash(key)).is_some()).count();
        assert!(there > 300, "{there}");
    }

    #[test]
    fn a_table_without_room_keeps_nothing() {
        let mut table = Recent::<u32, u32>::new();
        assert_eq!(table.of(1, hash, 100), None);
        assert_eq!(table.get(&1, hash(&1)), None);
        assert_eq!(table.memory(), 0);
    }
}

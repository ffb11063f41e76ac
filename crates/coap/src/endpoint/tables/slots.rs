//! Numbered places that are used again, and lists through them.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::invariant::Sure;

/// No place.
pub(crate) const NONE: u32 = u32::MAX;

/// Places numbered from zero. A place keeps its value when it is released, so that buffers inside are used again.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// First of the released places.
    free: u32,
    taken: u32,
}

#[derive(Debug)]
struct Slot<T> {
    value: T,
    /// Odd while taken; one more at each taking and each release.
    generation: u32,
    /// The next released place, if this one is released.
    next_free: u32,
}

impl<T> Slot<T> {
    #[inline]
    const fn is_taken(&self) -> bool {
        self.generation % 2 == 1
    }
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, taken: 0 }
    }

    /// Places taken.
    #[inline]
    pub(crate) const fn taken(&self) -> u32 {
        self.taken
    }

    /// Places that were ever taken.
    #[inline]
    pub(crate) fn ever_taken(&self) -> usize {
        self.slots.len()
    }

    /// Bytes that the next taking will add to what is held; zero as long as there is room.
    pub(crate) fn growth(&self) -> usize {
        if self.free != NONE || self.slots.len() < self.slots.capacity() {
            return 0;
        }
        self.slots.capacity().max(1).saturating_mul(size_of::<Slot<T>>())
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity().wrapping_mul(size_of::<Slot<T>>())
    }

    /// Takes a place. `fresh` makes its value if no released place is left; a released one keeps the value it had.
    #[inline]
    pub(crate) fn take(&mut self, fresh: impl FnOnce() -> T) -> u32 {
        match self.reuse() {
            Some(number) => number,
            None => self.append(fresh()),
        }
    }

    /// Takes a place for this value.
    #[inline]
    pub(crate) fn put(&mut self, value: T) -> u32 {
        let Some(number) = self.reuse() else { return self.append(value) };
        if let Some(slot) = self.slots.get_mut(number as usize) {
            slot.value = value;
        }
        number
    }

    #[inline]
    fn reuse(&mut self) -> Option<u32> {
        let number = self.free;
        let slot = self.slots.get_mut(number as usize)?;
        self.free = slot.next_free;
        slot.generation = slot.generation.wrapping_add(1);
        self.taken = self.taken.saturating_add(1);
        Some(number)
    }

    /// Room is doubled from one: most endpoints are clients of a single server.
    fn append(&mut self, value: T) -> u32 {
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(self.slots.len().max(1));
        }
        let number = self.slots.len() as u32;
        self.slots.push(Slot { value, generation: 1, next_free: NONE });
        self.taken = self.taken.saturating_add(1);
        number
    }

    #[inline]
    #[track_caller]
    pub(crate) fn release(&mut self, number: u32) {
        match self.slots.get_mut(number as usize) {
            Some(slot) if slot.is_taken() => {
                slot.generation = slot.generation.wrapping_add(1);
                slot.next_free = self.free;
                self.free = number;
                self.taken = self.taken.saturating_sub(1);
            }
            _ => broken!("place {number} is released and was not taken"),
        }
    }

    /// The value in a place that is taken; `None` for [`NONE`].
    #[inline]
    #[track_caller]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let slot = self.slots.get(number as usize);
        debug_assert!(number == NONE || slot.is_some_and(Slot::is_taken), "place {number} is looked at and not taken");
        slot.map(|slot| &slot.value)
    }

    #[inline]
    #[track_caller]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut(number as usize);
        let is_taken = number == NONE || slot.as_deref().is_some_and(Slot::is_taken);
        debug_assert!(is_taken, "place {number} is looked at and not taken");
        slot.map(|slot| &mut slot.value)
    }

    /// The same, whether the place is taken or not, which the client finds out by the value.
    #[inline]
    pub(crate) fn peek(&self, number: u32) -> Option<&T> {
        self.slots.get(number as usize).map(|slot| &slot.value)
    }

    /// The generation of a place that is taken, which is odd and so never zero.
    #[inline]
    pub(crate) fn generation(&self, number: u32) -> NonZeroU32 {
        self.slots.get(number as usize).and_then(|slot| NonZeroU32::new(slot.generation)).unwrap_or(NonZeroU32::MIN)
    }

    /// Whether the place is taken, and still by the same one.
    #[inline]
    pub(crate) fn is(&self, number: u32, generation: NonZeroU32) -> bool {
        let same = |slot: &Slot<T>| slot.generation == generation.get() && slot.is_taken();
        self.slots.get(number as usize).is_some_and(same)
    }

    /// All places that are taken, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let taken = |(number, slot): (usize, &'_ Slot<T>)| slot.is_taken().then_some(number as u32);
        self.slots.iter().enumerate().filter_map(move |entry| taken(entry).map(|number| (number, &entry.1.value)))
    }
}

/// The neighbours of a place in the one list that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Links {
    previous: u32,
    next: u32,
}

impl Links {
    pub(crate) const NOWHERE: Self = Self { previous: NONE, next: NONE };
}

/// What can be in a list.
pub(crate) trait Linked {
    fn links(&self) -> &Links;
    fn links_mut(&mut self) -> &mut Links;
}

/// A list through places, oldest first, that does not know how long it is. Its holder knows which places are in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    first: u32,
    last: u32,
}

impl Ends {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE };

    /// The oldest; [`NONE`] if the list is empty.
    #[inline]
    pub(crate) const fn first(&self) -> u32 {
        self.first
    }

    /// Appends a place that is in no list.
    #[inline]
    pub(crate) fn push<T: Linked>(&mut self, slots: &mut Slots<T>, number: u32) {
        if let Some(value) = slots.get_mut(number).sure("place to append") {
            debug_assert!(*value.links() == Links::NOWHERE, "place {number} is in a list already");
            *value.links_mut() = Links { previous: self.last, next: NONE };
        }
        match slots.get_mut(self.last) {
            Some(last) => last.links_mut().next = number,
            None => self.first = number,
        }
        self.last = number;
    }

    /// Takes a place that is in this list out of it.
    #[inline]
    pub(crate) fn remove<T: Linked>(&mut self, slots: &mut Slots<T>, number: u32) {
        let Some(value) = slots.get_mut(number).sure("place to take out") else { return };
        let Links { previous, next } = core::mem::replace(value.links_mut(), Links::NOWHERE);
        debug_assert!(previous != NONE || self.first == number, "place {number} is in another list, or in none");
        debug_assert!(next != NONE || self.last == number, "place {number} is in another list, or in none");
        match slots.get_mut(previous) {
            Some(value) => value.links_mut().next = next,
            None => self.first = next,
        }
        match slots.get_mut(next) {
            Some(value) => value.links_mut().previous = previous,
            None => self.last = previous,
        }
    }
}

/// The same, knowing how long it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    ends: Ends,
    len: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { ends: Ends::EMPTY, len: 0 };

    /// The oldest; [`NONE`] if the list is empty.
    #[inline]
    pub(crate) const fn first(&self) -> u32 {
        self.ends.first()
    }

    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a place that is in no list.
    #[inline]
    pub(crate) fn push<T: Linked>(&mut self, slots: &mut Slots<T>, number: u32) {
        self.ends.push(slots, number);
        self.len = self.len.saturating_add(1);
    }

    /// Takes a place that is in this list out of it.
    #[inline]
    pub(crate) fn remove<T: Linked>(&mut self, slots: &mut Slots<T>, number: u32) {
        if slots.get(number).is_some() {
            self.ends.remove(slots, number);
            self.len = self.len.saturating_sub(1);
        }
    }

    /// The place after this one; [`NONE`] after the last.
    #[inline]
    pub(crate) fn after<T: Linked>(slots: &Slots<T>, number: u32) -> u32 {
        slots.get(number).map_or(NONE, |value| value.links().next)
    }

    /// The places, oldest first.
    #[inline]
    pub(crate) fn iter<'s, T: Linked>(&self, slots: &'s Slots<T>) -> impl Iterator<Item = (u32, &'s T)> + Clone {
        let mut number = self.first();
        core::iter::from_fn(move || {
            let value = slots.get(number)?;
            Some((core::mem::replace(&mut number, value.links().next), value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Item(u8, Links);

    impl Linked for Item {
        fn links(&self) -> &Links {
            &self.1
        }
        fn links_mut(&mut self) -> &mut Links {
            &mut self.1
        }
    }

    fn item(value: u8) -> impl FnOnce() -> Item {
        move || Item(value, Links::NOWHERE)
    }

    fn values(list: &List, slots: &Slots<Item>) -> Vec<u8> {
        list.iter(slots).map(|(_, item)| item.0).collect()
    }

    #[test]
    fn a_released_place_is_taken_again_with_another_generation() {
        let mut slots = Slots::new();
        let first = slots.take(item(1));
        let generation = slots.generation(first);
        assert!(slots.is(first, generation));
        slots.release(first);
        assert!(!slots.is(first, generation) && !slots.is(first, generation.saturating_add(1)));
        assert_eq!(slots.taken(), 0);
        assert_eq!(slots.take(item(2)), first);
        assert!(!slots.is(first, generation));
        assert_eq!(slots.peek(first).map(|item| item.0), Some(1), "the old value is kept");
        assert_ne!(slots.take(item(3)), first);
    }

    #[test]
    fn room_doubles_from_one_and_growth_tells_before() {
        let mut slots = Slots::new();
        for number in 0..9_u8 {
            let (growth, before) = (slots.growth(), slots.memory());
            slots.take(item(number));
            assert_eq!(slots.memory(), before + growth);
        }
        assert_eq!(slots.memory(), 16 * size_of::<Slot<Item>>());
    }

    #[test]
    fn a_list_keeps_its_order_whoever_leaves() {
        let mut slots = Slots::new();
        let mut list = List::EMPTY;
        for value in 0..5 {
            let number = slots.take(item(value));
            list.push(&mut slots, number);
        }
        for (leaves, expected) in [(2, &[0, 1, 3, 4][..]), (0, &[1, 3, 4]), (4, &[1, 3]), (1, &[3]), (3, &[])] {
            list.remove(&mut slots, leaves);
            assert_eq!(values(&list, &slots), expected);
            assert_eq!(list.len() as usize, expected.len());
        }
        assert!(list.is_empty());
        list.push(&mut slots, 2);
        assert_eq!(values(&list, &slots), [2]);
    }
}

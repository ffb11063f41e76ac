//! What somebody else knows of things that have names here.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::endpoint::{ExchangeId, RequestId};

/// Values by names whose slots are given out elsewhere. What is kept under one name is never another's that had its slot.
#[derive(Debug)]
pub(crate) struct Beside<T> {
    places: Vec<Option<(NonZeroU32, T)>>,
}

/// A name: a slot, and how often it was given out.
pub(crate) type Name = (u32, NonZeroU32);

impl From<ExchangeId> for Name {
    fn from(id: ExchangeId) -> Self {
        (id.slot, id.generation)
    }
}

impl From<RequestId> for Name {
    fn from(id: RequestId) -> Self {
        (id.slot, id.generation)
    }
}

impl<T> Beside<T> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new() }
    }

    /// Keeps a value in place of what was kept under this name, or under an earlier one with its slot.
    pub(crate) fn set(&mut self, name: impl Into<Name>, value: T) {
        let (slot, generation) = name.into();
        let slot = slot as usize;
        if self.places.len() <= slot {
            self.places.resize_with(slot.saturating_add(1), || None);
        }
        if let Some(place) = self.places.get_mut(slot) {
            *place = Some((generation, value));
        }
    }

    pub(crate) fn get(&self, name: impl Into<Name>) -> Option<T>
    where
        T: Copy,
    {
        let (slot, generation) = name.into();
        let (kept, value) = (*self.places.get(slot as usize)?)?;
        (kept == generation).then_some(value)
    }

    #[cfg(feature = "oscore")]
    pub(crate) fn get_mut(&mut self, name: impl Into<Name>) -> Option<&mut T> {
        let (slot, generation) = name.into();
        let (kept, value) = self.places.get_mut(slot as usize)?.as_mut()?;
        (*kept == generation).then_some(value)
    }

    #[cfg(feature = "oscore")]
    pub(crate) fn borrow(&self, name: impl Into<Name>) -> Option<&T> {
        let (slot, generation) = name.into();
        let (kept, value) = self.places.get(slot as usize)?.as_ref()?;
        (*kept == generation).then_some(value)
    }

    pub(crate) fn take(&mut self, name: impl Into<Name>) -> Option<T> {
        let (slot, generation) = name.into();
        let place = self.places.get_mut(slot as usize)?;
        place.take_if(|(kept, _)| *kept == generation).map(|(_, value)| value)
    }

    /// All that is kept, with its name.
    pub(crate) fn named(&self) -> impl Iterator<Item = (Name, &T)> {
        let places = (0_u32..).zip(&self.places);
        places.filter_map(|(slot, place)| place.as_ref().map(|(generation, value)| ((slot, *generation), value)))
    }

    /// All that is kept.
    #[cfg(feature = "oscore")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten().map(|(_, value)| value)
    }

    /// Bytes held.
    pub(crate) const fn memory(&self) -> usize {
        self.places.capacity().wrapping_mul(size_of::<Option<(NonZeroU32, T)>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_over_neither_finds_nor_takes_what_is_of_the_next_one_with_its_slot() {
        let name = |slot, generation| RequestId { slot, generation: NonZeroU32::new(generation).unwrap() };
        let mut beside = Beside::new();
        beside.set(name(3, 1), 'a');
        beside.set(name(3, 3), 'b');
        assert_eq!((beside.get(name(3, 1)), beside.take(name(3, 1)), beside.get(name(9, 1))), (None, None, None));
        assert_eq!((beside.take(name(3, 3)), beside.get(name(3, 3))), (Some('b'), None));
        assert_eq!(beside.named().count(), 0);
    }
}

//! Places for records that come and go: memory grows to the most that ever lived at once.

/// The place of nothing.
pub(crate) const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(crate) fn put(&mut self, record: T) -> u32 {
        if let Some(place) = self.free.pop()
            && let Some(old) = self.places.get_mut(place as usize)
        {
            *old = record;
            return place;
        }
        self.places.push(record);
        self.places.len() as u32 - 1
    }

    /// A place that is free, with what was there before.
    #[inline]
    pub(crate) fn reuse(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// The record lives no more; its place is for another one.
    #[inline]
    pub(crate) fn free(&mut self, place: u32) {
        self.free.push(place);
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)
    }

    /// The records of all places, of those too that are free.
    pub(crate) fn places(&self) -> impl Iterator<Item = &T> {
        self.places.iter()
    }

    /// How many live.
    #[cfg(test)]
    pub(crate) fn living(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

use alloc::vec::Vec;

use millpond_control::Instant;

/// Not armed.
const NOWHERE: u32 = u32::MAX;

/// One timer for each number: a binary heap that knows where in it each number stands.
///
/// A timer that is set again moves and one that is cleared leaves, so the heap never holds more entries than there are
/// armed timers and the earliest is always a real one. Timers due at the same time fire in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// As many as the highest number ever armed asks for.
    nodes: Vec<Node>,
    /// Length of the heap.
    armed: u32,
}

/// An element of the heap, and beside it, to leave no gap, something else that is counted by the same index.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// When the timer fires that stands at this place of the heap, and which one that is; nothing beyond the heap.
    at: Instant,
    number: u32,
    /// Where in the heap the timer with this node's index stands.
    place: u32,
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), armed: 0 }
    }

    /// The timer that fires first, and when.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<(Instant, u32)> {
        self.entry(0)
    }

    /// Arms the timer of a number, or moves it.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, at: Instant) {
        if self.nodes.len() <= number as usize {
            self.grow(number);
        }
        let place = self.nodes.get(number as usize).map_or(NOWHERE, |node| node.place);
        match self.entry(place) {
            Some(old) if (at, number) < old => self.rise(place, (at, number)),
            Some(_) => self.sink(place, (at, number)),
            None => {
                self.armed = self.armed.saturating_add(1);
                self.rise(self.armed.saturating_sub(1), (at, number));
            }
        }
    }

    /// Makes room for the timer of a number.
    #[cold]
    fn grow(&mut self, number: u32) {
        while self.nodes.len() <= number as usize {
            // Room doubles from one, as it does for slots.
            if self.nodes.len() == self.nodes.capacity() {
                self.nodes.reserve_exact(self.nodes.len().max(1));
            }
            self.nodes.push(Node { at: Instant::NEVER, number: NOWHERE, place: NOWHERE });
        }
    }

    /// Disarms the timer of a number, if it is armed.
    #[inline]
    pub(crate) fn clear(&mut self, number: u32) {
        let Some(node) = self.nodes.get_mut(number as usize) else { return };
        let place = core::mem::replace(&mut node.place, NOWHERE);
        let Some(cleared) = self.entry(place) else { return };
        let last = self.entry(self.armed.saturating_sub(1));
        self.armed = self.armed.saturating_sub(1);
        match last {
            Some(last) if last < cleared => self.rise(place, last),
            Some(last) if last > cleared => self.sink(place, last),
            // It was the last itself.
            _ => {}
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.nodes.capacity().wrapping_mul(size_of::<Node>())
    }

    /// What stands at a place of the heap.
    #[inline]
    fn entry(&self, place: u32) -> Option<(Instant, u32)> {
        if place >= self.armed {
            return None;
        }
        self.nodes.get(place as usize).map(|node| (node.at, node.number))
    }

    /// Puts an entry into this place or one above it.
    fn rise(&mut self, mut place: u32, entry: (Instant, u32)) {
        while place > 0 {
            let parent = place.wrapping_sub(1) / 2;
            match self.entry(parent) {
                Some(above) if entry < above => self.put(place, above),
                _ => break,
            }
            place = parent;
        }
        self.put(place, entry);
    }

    /// Puts an entry into this place or one below it.
    fn sink(&mut self, mut place: u32, entry: (Instant, u32)) {
        loop {
            let left = place.saturating_mul(2).saturating_add(1);
            let right = left.saturating_add(1);
            let (mut child, Some(mut below)) = (left, self.entry(left)) else { break };
            if let Some(other) = self.entry(right)
                && other < below
            {
                (child, below) = (right, other);
            }
            if below >= entry {
                break;
            }
            self.put(place, below);
            place = child;
        }
        self.put(place, entry);
    }

    #[inline]
    fn put(&mut self, place: u32, (at, number): (Instant, u32)) {
        if let Some(node) = self.nodes.get_mut(place as usize) {
            (node.at, node.number) = (at, number);
        }
        if let Some(node) = self.nodes.get_mut(number as usize) {
            node.place = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, vec};

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn an_armed_timer_takes_sixteen_bytes() {
        assert_eq!(size_of::<Node>(), 16);
    }

    #[test]
    fn equal_times_fire_by_number() {
        let mut timers = Timers::new();
        for number in [3, 1, 2, 0] {
            timers.set(number, at(5));
        }
        let mut order = vec![];
        while let Some((_, number)) = timers.earliest() {
            timers.clear(number);
            order.push(number);
        }
        assert_eq!(order, [0, 1, 2, 3]);
    }

    #[test]
    fn it_agrees_with_a_sorted_set_and_never_holds_more_than_is_armed() {
        let mut timers = Timers::new();
        let mut armed: BTreeSet<(Instant, u32)> = BTreeSet::new();
        let mut word = 1_u64;
        for _ in 0..100_000 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (word >> 58) as u32;
            let time = at((word >> 40) & 0xff);
            armed.retain(|entry| entry.1 != number);
            if (word >> 33) & 3 == 0 {
                timers.clear(number);
            } else {
                timers.set(number, time);
                armed.insert((time, number));
            }
            assert_eq!(timers.earliest(), armed.first().copied());
            assert_eq!(timers.armed as usize, armed.len());
        }
    }
}

//! What counts towards the limit although it has left the queue: only where [`crate::Counted::All`] says so.

use crate::queue::Occupancy;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Packets on their way, by when they are due. Kept apart from those in the air: who owns the link may fetch a packet
/// later than it is due, and until then it lies there without counting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aloft {
    due: BinaryHeap<Reverse<(u64, u32)>>,
    held: Occupancy,
}

impl Aloft {
    /// A packet that takes up `room` bytes has left and is due then.
    #[cold]
    pub(crate) fn push(&mut self, due: u64, room: u32) {
        self.held.add(room);
        self.due.push(Reverse((due, room)));
    }

    /// What is still under way at `now`, which never goes back.
    #[cold]
    pub(crate) fn held(&mut self, now: u64) -> Occupancy {
        while let Some(&Reverse((due, room))) = self.due.peek() {
            if due > now {
                break;
            }
            self.due.pop();
            self.held.remove(room);
        }
        self.held
    }

    /// The medium lost all of it.
    #[cold]
    pub(crate) fn lose(&mut self) {
        self.due.clear();
        self.held = Occupancy::NOTHING;
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.due.capacity() * size_of::<Reverse<(u64, u32)>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_counts_until_the_instant_it_is_due() {
        let mut aloft = Aloft::default();
        for (due, room) in [(30, 94), (20, 38), (30, 2)] {
            aloft.push(due, room);
        }
        let at = |aloft: &mut Aloft, now| (aloft.held(now).packets, aloft.held(now).bytes);
        assert_eq!(at(&mut aloft, 19), (3, 134));
        assert_eq!(at(&mut aloft, 20), (2, 96));
        assert_eq!(at(&mut aloft, 30), (0, 0));
    }
}

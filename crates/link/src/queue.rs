//! The one queue of a link: first in, first out, full is full. Where it manages itself it holds the packet in service alone, and
//! what waits is in [`crate::aqm`].

use crate::config::Limit;
use core::fmt;
use std::collections::{VecDeque, vec_deque::IterMut};

/// What is in the queue, the packet in service included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Bytes, counted as the queue's limit counts them.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl Occupancy {
    pub(crate) const NOTHING: Self = Self { bytes: 0, packets: 0 };

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, packets: self.packets + other.packets }
    }

    pub(crate) fn add(&mut self, room: u32) {
        self.packets += 1;
        self.bytes += u64::from(room);
    }

    pub(crate) fn remove(&mut self, room: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(room);
    }
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue has no room left.
    QueueFull,
    /// The packet alone is longer than the queue's limit in bytes.
    TooLarge,
    /// The queue keeps itself short, as [`crate::Aqm`] says.
    Managed,
    /// Its device has no access to the cell; never of a link.
    Access,
    /// The medium loses it; only with [`crate::LossAt::BeforeRate`].
    Radio,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueueFull => "the queue is full",
            Self::TooLarge => "the packet is longer than the queue",
            Self::Managed => "the queue keeps itself short",
            Self::Access => "the device got no access to the cell",
            Self::Radio => "the medium lost the packet",
        })
    }
}

impl std::error::Error for DropReason {}

/// One packet in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) number: u64,
    /// When its last bit is out.
    pub(crate) departs: u64,
    pub(crate) len: u32,
    /// Whose random numbers it has.
    pub(crate) radio: u32,
    pub(crate) marked: bool,
    pub(crate) payload: P,
}

#[derive(Clone, Debug)]
pub(crate) struct Queue<P> {
    line: VecDeque<Waiting<P>>,
    limit: Limit,
    held: Occupancy,
    /// When the first departs, at hand because it is looked at with every packet; never if there is none.
    first_departs: u64,
}

impl<P> Queue<P> {
    pub(crate) const fn new(limit: Limit) -> Self {
        Self { line: VecDeque::new(), limit, held: Occupancy::NOTHING, first_departs: u64::MAX }
    }

    pub(crate) const fn held(&self) -> Occupancy {
        self.held
    }

    /// Whether a packet that needs `room` bytes may join; `beyond` counts towards the limit too.
    pub(crate) const fn admit(&self, room: u32, beyond: Occupancy) -> Result<(), DropReason> {
        let room = room as u64;
        match self.limit {
            Limit::Bytes(limit) if room > limit => Err(DropReason::TooLarge),
            Limit::Bytes(limit) if self.held.bytes + beyond.bytes > limit - room => Err(DropReason::QueueFull),
            Limit::Packets(limit) if self.held.packets + beyond.packets >= limit => Err(DropReason::QueueFull),
            Limit::Bytes(_) | Limit::Packets(_) => Ok(()),
        }
    }

    /// `room` is what it counts for in the occupancy.
    pub(crate) fn push(&mut self, waiting: Waiting<P>, room: u32) {
        self.held.add(room);
        if self.line.is_empty() {
            self.first_departs = waiting.departs;
        }
        self.line.push_back(waiting);
    }

    pub(crate) fn front(&self) -> Option<&Waiting<P>> {
        self.line.front()
    }

    /// When the first departs; never if there is none.
    #[inline]
    pub(crate) const fn first_departs(&self) -> u64 {
        self.first_departs
    }

    /// All, the first one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting<P>> {
        self.line.iter()
    }

    /// Changes when each departs.
    pub(crate) fn change_departures(&mut self, change: impl FnOnce(IterMut<'_, Waiting<P>>)) {
        change(self.line.iter_mut());
        self.look();
    }

    fn look(&mut self) {
        self.first_departs = self.line.front().map_or(u64::MAX, |first| first.departs);
    }

    /// The first, which counted for so much.
    pub(crate) fn pop(&mut self, room: impl FnOnce(&Waiting<P>) -> u32) -> Option<Waiting<P>> {
        let waiting = self.line.pop_front()?;
        self.look();
        self.held.remove(room(&waiting));
        Some(waiting)
    }

    pub(crate) const fn limit(&self) -> Limit {
        self.limit
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.line.capacity() * size_of::<Waiting<P>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many packets of `room` bytes fit.
    fn capacity(limit: Limit, room: u32) -> u64 {
        let mut queue = Queue::new(limit);
        while queue.admit(room, Occupancy::NOTHING).is_ok() {
            queue.push(Waiting { number: 0, departs: 0, len: room, radio: 0, marked: false, payload: () }, room);
        }
        queue.held().packets
    }

    #[test]
    fn the_buffers_of_the_nbiot_path_hold_what_the_studies_say() {
        let limits = [2_500, 14_100, 28_200, 1_410_000].map(Limit::Bytes);
        assert_eq!(limits.map(|limit| capacity(limit, 94)), [26, 150, 300, 15_000]);
        assert_eq!(limits.map(|limit| capacity(limit, 296)), [8, 47, 95, 4_763]);
        assert_eq!(capacity(Limit::Packets(8), 94), 8);
        assert_eq!(capacity(Limit::Packets(1), u32::MAX), 1);
    }

    #[test]
    fn a_packet_longer_than_the_queue_never_fits() {
        let queue: Queue<()> = Queue::new(Limit::Bytes(100));
        assert_eq!(queue.admit(100, Occupancy::NOTHING), Ok(()));
        assert_eq!(queue.admit(101, Occupancy::NOTHING), Err(DropReason::TooLarge));
        let endless: Queue<()> = Queue::new(Limit::Bytes(u64::MAX));
        assert_eq!(endless.admit(u32::MAX, Occupancy::NOTHING), Ok(()));
    }
}

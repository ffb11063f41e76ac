//! Packets that have left the rate stage and not yet been handed out.

use crate::config::Order;
use core::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// One packet on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flying<P> {
    pub(crate) due: u64,
    pub(crate) number: u64,
    /// When its last bit left the rate stage.
    pub(crate) left: u64,
    pub(crate) len: u32,
    pub(crate) lost: bool,
    pub(crate) marked: bool,
    pub(crate) payload: P,
}

/// All packets on their way, the next one due first.
#[derive(Clone, Debug)]
pub(crate) enum Air<P> {
    /// In the order in which they left; `latest` is when the latest arrival so far is due, and `first` when the first is,
    /// or never if there is none.
    InOrder { line: VecDeque<Flying<P>>, latest: u64, first: u64 },
    /// By due time, then number.
    Free(BinaryHeap<Flying<P>>),
}

impl<P> Air<P> {
    pub(crate) const fn new(order: Order) -> Self {
        match order {
            Order::Preserved => Self::InOrder { line: VecDeque::new(), latest: 0, first: u64::MAX },
            Order::Free => Self::Free(BinaryHeap::new()),
        }
    }

    /// Takes a packet that has just left; returns when it is due. In order, it waits for those before it; a lost one is
    /// handed out in its place but holds nobody up.
    #[inline]
    pub(crate) fn push(&mut self, mut flying: Flying<P>) -> u64 {
        match self {
            Self::InOrder { line, latest, first } => {
                flying.due = flying.due.max(*latest);
                let due = flying.due;
                if !flying.lost {
                    *latest = due;
                }
                if line.is_empty() {
                    *first = due;
                }
                line.push_back(flying);
                due
            }
            Self::Free(heap) => push_free(heap, flying),
        }
    }

    /// When the first is due.
    #[inline]
    pub(crate) fn due(&self) -> Option<u64> {
        match self {
            Self::InOrder { line, first, .. } => (!line.is_empty()).then_some(*first),
            Self::Free(heap) => heap.peek().map(|flying| flying.due),
        }
    }

    /// The first, if due by `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: u64) -> Option<Flying<P>> {
        match self {
            Self::InOrder { line, first, .. } if *first <= now => {
                let flying = line.pop_front();
                *first = line.front().map_or(u64::MAX, |flying| flying.due);
                flying
            }
            Self::InOrder { .. } => None,
            Self::Free(heap) => pop_free(heap, now),
        }
    }

    /// The medium loses them all.
    pub(crate) fn lose(&mut self) {
        match self {
            Self::InOrder { line, .. } => line.iter_mut().for_each(|flying| flying.lost = true),
            Self::Free(heap) => {
                let lost = |flying| Flying { lost: true, ..flying };
                *heap = std::mem::take(heap).into_iter().map(lost).collect();
            }
        }
    }

    /// Lengths of all packets, in no particular order.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = u32> {
        let (line, heap) = match self {
            Self::InOrder { line, .. } => (Some(line), None),
            Self::Free(heap) => (None, Some(heap)),
        };
        line.into_iter().flatten().chain(heap.into_iter().flatten()).map(|flying| flying.len)
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        let room = match self {
            Self::InOrder { line, .. } => line.capacity(),
            Self::Free(heap) => heap.capacity(),
        };
        room * size_of::<Flying<P>>()
    }
}

/// A heap's own business stays out of the path of packets that keep their order.
#[cold]
fn push_free<P>(heap: &mut BinaryHeap<Flying<P>>, flying: Flying<P>) -> u64 {
    let due = flying.due;
    heap.push(flying);
    due
}

#[cold]
fn pop_free<P>(heap: &mut BinaryHeap<Flying<P>>, now: u64) -> Option<Flying<P>> {
    if heap.peek()?.due <= now { heap.pop() } else { None }
}

impl<P> Flying<P> {
    const fn turn(&self) -> (u64, u64) {
        (self.due, self.number)
    }
}

impl<P> PartialEq for Flying<P> {
    fn eq(&self, other: &Self) -> bool {
        self.turn() == other.turn()
    }
}

impl<P> Eq for Flying<P> {}

impl<P> PartialOrd for Flying<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Flying<P> {
    /// The earlier is the greater, because the heap of the standard library hands out the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.turn().cmp(&self.turn())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flying(number: u64, due: u64, lost: bool) -> Flying<()> {
        Flying { due, number, left: 0, len: 94, lost, marked: false, payload: () }
    }

    fn drain(air: &mut Air<()>) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| air.pop(u64::MAX)).map(|flying| (flying.number, flying.due)).collect()
    }

    #[test]
    fn in_order_a_packet_waits_for_those_before_it_but_not_for_the_lost() {
        let mut air = Air::new(Order::Preserved);
        for (number, due, lost) in [(0, 30, false), (1, 20, false), (2, 25, true), (3, 40, true), (4, 35, false)] {
            air.push(flying(number, due, lost));
        }
        assert_eq!(drain(&mut air), [(0, 30), (1, 30), (2, 30), (3, 40), (4, 35)]);
    }

    #[test]
    fn free_packets_overtake_and_ties_keep_their_numbers() {
        let mut air = Air::new(Order::Free);
        for (number, due) in [(0, 30), (1, 20), (2, 30), (3, 20)] {
            air.push(flying(number, due, false));
        }
        assert_eq!(air.due(), Some(20));
        assert!(air.pop(19).is_none());
        assert_eq!(drain(&mut air), [(1, 20), (3, 20), (0, 30), (2, 30)]);
    }
}

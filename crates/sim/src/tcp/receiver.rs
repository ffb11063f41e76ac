//! The receiving half: puts segments in order and decides when to acknowledge.

use std::collections::{BTreeMap, VecDeque, btree_map::Entry};

use super::{DelayedAcks, Micros};

/// As many blocks as the options of a segment have room for (RFC 2018 section 3).
const MOST_BLOCKS: usize = 4;

#[derive(Debug)]
pub(super) struct Receiver {
    acks: DelayedAcks,
    mss: u32,
    /// The next byte in order.
    next: u64,
    /// Segments beyond a gap, by their first byte.
    beyond: BTreeMap<u64, Vec<u8>>,
    /// The same as blocks of bytes, the one with the latest segment first; nothing if it is not told.
    blocks: VecDeque<(u64, u64)>,
    tells: bool,
    /// Bytes in order that the application has not taken.
    ready: Vec<u8>,
    /// Full segments in order since the last acknowledgement.
    unacknowledged: u32,
    /// Segments in order so far.
    in_order: u32,
    /// When an acknowledgement is due at the latest.
    due: Option<Micros>,
    at_once: bool,
    /// Segments of which every byte was here already.
    repeats: u64,
}

impl Receiver {
    pub(super) fn new(acks: DelayedAcks, mss: u32, tells: bool) -> Self {
        Self {
            acks,
            mss,
            next: 0,
            beyond: BTreeMap::new(),
            blocks: VecDeque::new(),
            tells,
            ready: Vec::new(),
            unacknowledged: 0,
            in_order: 0,
            due: None,
            at_once: false,
            repeats: 0,
        }
    }

    pub(super) fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The next byte in order: what an acknowledgement says.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Takes what the application has not seen.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ready)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A segment with payload came.
    pub(super) fn receive(&mut self, now: Micros, seq: u64, payload: Vec<u8>) {
        let end = seq + payload.len() as u64;
        if end <= self.next {
            self.repeats += 1;
            self.at_once = true;
        } else if seq > self.next {
            match self.beyond.entry(seq) {
                Entry::Vacant(place) => {
                    place.insert(payload);
                }
                Entry::Occupied(_) => self.repeats += 1,
            }
            if self.tells {
                self.put_block(seq, end);
            }
            self.at_once = true;
        } else {
            let full = payload.len() as u32 >= self.mss;
            self.append(seq, &payload);
            let filled_gap = !self.beyond.is_empty();
            while let Some((seq, payload)) = self.beyond.pop_first() {
                if seq > self.next {
                    self.beyond.insert(seq, payload);
                    break;
                }
                self.append(seq, &payload);
            }
            let next = self.next;
            self.blocks.retain(|(_, to)| *to > next);
            self.in_order = self.in_order.saturating_add(1);
            self.unacknowledged += u32::from(full);
            if filled_gap || self.unacknowledged >= self.acks.every {
                self.at_once = true;
            } else if self.due.is_none() {
                let later = self.in_order > self.acks.first_segments;
                self.due = Some(now + if later { self.acks.later_timer } else { self.acks.timer });
            }
        }
    }

    /// These bytes have come, beyond a gap: with those next to them they are the first block that is told.
    fn put_block(&mut self, from: u64, to: u64) {
        let mut block = (from, to);
        self.blocks.retain(|(from, to)| {
            let touches = *from <= block.1 && block.0 <= *to;
            if touches {
                block = (block.0.min(*from), block.1.max(*to));
            }
            !touches
        });
        self.blocks.push_front(block);
    }

    /// What an acknowledgement says of bytes beyond a gap.
    pub(super) fn sacks(&self) -> Vec<(u64, u64)> {
        self.blocks.iter().take(MOST_BLOCKS).copied().collect()
    }

    /// The part of a segment that is new.
    fn append(&mut self, seq: u64, payload: &[u8]) {
        let known = (self.next.saturating_sub(seq) as usize).min(payload.len());
        self.ready.extend_from_slice(&payload[known..]);
        self.next += (payload.len() - known) as u64;
    }

    /// An acknowledgement must leave although there is no data to carry it.
    pub(super) fn acknowledge_at_once(&mut self) {
        self.at_once = true;
    }

    /// Whether an acknowledgement must leave now.
    pub(super) fn owes(&self, now: Micros) -> bool {
        self.at_once || self.due.is_some_and(|due| due <= now)
    }

    /// When an acknowledgement is due.
    pub(super) fn due(&self) -> Option<Micros> {
        if self.at_once { Some(0) } else { self.due }
    }

    /// A segment that acknowledges leaves.
    pub(super) fn acknowledged(&mut self) {
        self.unacknowledged = 0;
        self.due = None;
        self.at_once = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(acks: DelayedAcks) -> Receiver {
        Receiver::new(acks, 4, false)
    }

    #[test]
    fn every_second_full_segment_is_acknowledged_at_once() {
        let mut receiver = receiver(DelayedAcks::AS_PRINTED);
        receiver.receive(0, 0, vec![1; 4]);
        assert_eq!((receiver.owes(0), receiver.due()), (false, Some(200_000)));
        receiver.receive(10, 4, vec![1; 4]);
        assert!(receiver.owes(10));
        receiver.acknowledged();
        assert_eq!((receiver.next(), receiver.due()), (8, None));
    }

    #[test]
    fn a_gap_and_its_filling_are_acknowledged_at_once() {
        let mut receiver = receiver(DelayedAcks::AS_PRINTED);
        receiver.receive(0, 4, vec![2; 4]);
        assert!(receiver.owes(0));
        assert_eq!(receiver.next(), 0);
        receiver.acknowledged();
        receiver.receive(1, 0, vec![1; 4]);
        assert!(receiver.owes(1));
        assert_eq!(receiver.take(), [1, 1, 1, 1, 2, 2, 2, 2]);
        receiver.acknowledged();
        receiver.receive(2, 0, vec![1; 4]);
        assert!(receiver.owes(2), "old data is acknowledged at once too");
    }

    /// RFC 2018 section 4, example of case 2, in segments of 4 bytes: what came last is told first.
    #[test]
    fn blocks_are_told_the_latest_first_and_go_when_their_gap_is_filled() {
        let mut receiver = Receiver::new(DelayedAcks::AS_PRINTED, 4, true);
        let mut comes = |seq| {
            receiver.receive(0, seq, vec![0; 4]);
            (receiver.next(), receiver.sacks())
        };
        assert_eq!(comes(4), (0, vec![(4, 8)]));
        assert_eq!(comes(12), (0, vec![(12, 16), (4, 8)]));
        assert_eq!(comes(20), (0, vec![(20, 24), (12, 16), (4, 8)]));
        assert_eq!(comes(8), (0, vec![(4, 16), (20, 24)]));
        assert_eq!(comes(0), (16, vec![(20, 24)]));
        for seq in [28, 36, 44] {
            comes(seq);
        }
        assert_eq!(comes(52), (16, vec![(52, 56), (44, 48), (36, 40), (28, 32)]), "four at most");
    }

    #[test]
    fn later_segments_wait_for_the_other_timer() {
        let mut receiver = receiver(DelayedAcks { first_segments: 1, ..DelayedAcks::LINUX });
        receiver.receive(0, 0, vec![1; 4]);
        assert_eq!(receiver.due(), Some(200_000));
        receiver.acknowledged();
        receiver.receive(100, 4, vec![1; 4]);
        assert_eq!(receiver.due(), Some(40_100));
    }
}

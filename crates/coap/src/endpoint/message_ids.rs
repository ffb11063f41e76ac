use alloc::{boxed::Box, collections::VecDeque};

use millpond_control::Instant;

use crate::message::MessageId;

/// IDs in a block whose use is remembered by one point in time.
const BLOCK: u64 = 1_024;
/// Blocks in the space of 65 536 IDs.
const BLOCKS: usize = 64;

/// The message IDs of one peer: one after the other, and none again within its lifetime (RFC 7252 §4.4).
///
/// When an ID was used is remembered by blocks of 1024, and only for blocks whose lifetime lasts: nothing at all for a
/// peer that gets fewer messages, and never more than 64 points in time.
#[derive(Debug)]
pub(super) struct MessageIds {
    next: u16,
    /// IDs used since the peer is known.
    used: u64,
    last_use: Instant,
    /// When the last ID of each full block was used, oldest first, as far as it may still matter.
    blocks: Option<Box<Blocks>>,
}

/// In a box, because most peers have none.
#[derive(Debug, Default)]
struct Blocks {
    last_uses: VecDeque<Instant>,
}

impl MessageIds {
    /// None used yet; the first will be `first`.
    pub(super) const fn starting_at(first: u16) -> Self {
        Self { next: first, used: 0, last_use: Instant::ORIGIN, blocks: None }
    }

    /// IDs used.
    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    /// When the next ID may be used; a point that does not lie after `now` means now. `lifetime` in microseconds.
    #[inline]
    pub(super) fn next_free(&self, now: Instant, lifetime: u64) -> Instant {
        if !self.used.is_multiple_of(BLOCK) {
            return now;
        }
        match self.blocks.as_deref() {
            // A full turn ago the same block was used for the last time.
            Some(Blocks { last_uses }) if last_uses.len() >= BLOCKS => {
                last_uses.front().map_or(now, |last| later(*last, lifetime))
            }
            _ => now,
        }
    }

    /// IDs that may be used now without a wait in between.
    pub(super) fn left(&self, now: Instant, lifetime: u64) -> u32 {
        let live =
            |Blocks { last_uses }: &Blocks| last_uses.iter().filter(|last| later(**last, lifetime) > now).count();
        let blocks = BLOCKS.saturating_sub(self.blocks.as_deref().map_or(0, live)) as u64;
        blocks.saturating_mul(BLOCK).saturating_sub(self.used.checked_rem(BLOCK).unwrap_or(0)) as u32
    }

    /// Uses the next ID, which must be free.
    #[inline]
    pub(super) fn take(&mut self, now: Instant, lifetime: u64) -> MessageId {
        let id = MessageId(self.next);
        self.next = self.next.wrapping_add(1);
        self.used = self.used.saturating_add(1);
        self.last_use = now;
        if self.used.is_multiple_of(BLOCK) {
            let Blocks { last_uses: blocks } = self.blocks.get_or_insert_default().as_mut();
            while blocks.front().is_some_and(|last| later(*last, lifetime) <= now) {
                blocks.pop_front();
            }
            blocks.push_back(now);
        }
        id
    }

    /// When the lifetime of the last ID is over; the origin if none was used.
    pub(super) fn forgettable(&self, lifetime: u64) -> Instant {
        if self.used == 0 { Instant::ORIGIN } else { later(self.last_use, lifetime) }
    }

    /// Bytes held on the heap.
    pub(super) fn memory(&self) -> usize {
        self.blocks.as_deref().map_or(0, |Blocks { last_uses }| {
            size_of::<Blocks>().saturating_add(last_uses.capacity().saturating_mul(size_of::<Instant>()))
        })
    }
}

/// The point `micros` microseconds after another.
pub(super) const fn later(point: Instant, micros: u64) -> Instant {
    Instant::from_micros(point.as_micros().saturating_add(micros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    const LIFETIME: u64 = 247_000_000;

    #[test]
    fn no_id_is_used_again_within_its_lifetime() {
        let mut ids = MessageIds::starting_at(65_000);
        let mut last: Vec<Option<u64>> = vec![None; 65_536];
        let mut now = 0_u64;
        for round in 0..400_000_u64 {
            let free = ids.next_free(Instant::from_micros(now), LIFETIME).as_micros();
            assert!(free <= now + LIFETIME);
            now = now.max(free);
            let id = ids.take(Instant::from_micros(now), LIFETIME).0;
            assert_eq!(u64::from(id), (65_000 + round) % 65_536);
            if let Some(before) = last[usize::from(id)].replace(now) {
                assert!(now - before >= LIFETIME, "id {id} after {} µs", now - before);
            }
            now += 137;
        }
        assert!(ids.memory() <= 64 * 8 + size_of::<VecDeque<Instant>>());
    }

    #[test]
    fn a_slow_sender_remembers_next_to_nothing() {
        let mut ids = MessageIds::starting_at(0);
        for round in 0..200_000_u64 {
            let now = Instant::from_micros(round * 1_000_000);
            assert!(ids.next_free(now, LIFETIME) <= now);
            ids.take(now, LIFETIME);
        }
        assert!(ids.blocks.as_ref().is_some_and(|blocks| blocks.last_uses.len() == 1));
    }

    #[test]
    fn without_a_full_block_nothing_is_held() {
        let mut ids = MessageIds::starting_at(0);
        for _ in 0..1_023 {
            ids.take(Instant::ORIGIN, LIFETIME);
        }
        assert_eq!(ids.memory(), 0);
        assert_eq!(ids.forgettable(LIFETIME), Instant::from_micros(LIFETIME));
        assert_eq!(MessageIds::starting_at(0).forgettable(LIFETIME), Instant::ORIGIN);
    }
}

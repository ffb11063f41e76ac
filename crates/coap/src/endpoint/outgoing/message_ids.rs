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
/// peer that gets fewer messages, and never more than 64 points in time. A message that lives longer than others keeps its
/// block from being used again for longer; the blocks behind it are used instead.
#[derive(Debug)]
pub(in crate::endpoint) struct MessageIds {
    next: u16,
    /// IDs used since the peer is known.
    used: u64,
    last_use: Instant,
    /// Of the full blocks, and of the one begun if it holds a message that lives longer than others.
    blocks: Option<Box<Blocks>>,
}

/// In a box, because most peers have none.
#[derive(Debug, Default)]
struct Blocks {
    /// When the last ID of each full block was used, in the order of the blocks, as far as it may still matter.
    last_uses: VecDeque<Instant>,
    /// As if an ID of the block begun had been used then.
    held: Instant,
}

impl MessageIds {
    /// None used yet; the first will be `first`.
    pub(in crate::endpoint) const fn starting_at(first: u16) -> Self {
        Self { next: first, used: 0, last_use: Instant::ORIGIN, blocks: None }
    }

    /// IDs used.
    pub(in crate::endpoint) const fn used(&self) -> u64 {
        self.used
    }

    /// When the next ID may be used; a point that does not lie after `now` means now. `lifetime` in microseconds.
    #[inline]
    pub(in crate::endpoint) fn next_free(&self, now: Instant, lifetime: u64) -> Instant {
        if !self.used.is_multiple_of(BLOCK) {
            return now;
        }
        match self.blocks.as_deref() {
            Some(Blocks { last_uses, .. }) if last_uses.len() >= BLOCKS => {
                last_uses.iter().min().map_or(now, |last| later(*last, lifetime))
            }
            _ => now,
        }
    }

    /// IDs that may be used now without a wait in between.
    pub(in crate::endpoint) fn left(&self, now: Instant, lifetime: u64) -> u32 {
        let live =
            |Blocks { last_uses, .. }: &Blocks| last_uses.iter().filter(|last| later(**last, lifetime) > now).count();
        let blocks = BLOCKS.saturating_sub(self.blocks.as_deref().map_or(0, live)) as u64;
        blocks.saturating_mul(BLOCK).saturating_sub(self.used.checked_rem(BLOCK).unwrap_or(0)) as u32
    }

    /// Uses the next ID if it is neither the first nor the last of its block: then there is nothing to remember.
    #[inline]
    pub(in crate::endpoint) fn take_within(&mut self, now: Instant) -> Option<MessageId> {
        let is_within = (1..BLOCK.saturating_sub(1)).contains(&(self.used % BLOCK));
        is_within.then(|| self.use_next(now))
    }

    #[inline]
    fn use_next(&mut self, now: Instant) -> MessageId {
        let id = MessageId(self.next);
        self.next = self.next.wrapping_add(1);
        self.used = self.used.saturating_add(1);
        self.last_use = now;
        id
    }

    /// Uses the next ID, which must be free, for its lifetime and so many microseconds longer.
    #[cold]
    pub(in crate::endpoint) fn take(&mut self, now: Instant, lifetime: u64, longer: u64) -> MessageId {
        if self.used.is_multiple_of(BLOCK) {
            self.skip(now, lifetime);
        }
        if longer > 0 {
            let blocks = self.blocks.get_or_insert_default();
            blocks.held = blocks.held.max(later(now, longer));
        }
        let id = self.use_next(now);
        if self.used.is_multiple_of(BLOCK) {
            let Blocks { last_uses, held } = self.blocks.get_or_insert_default().as_mut();
            while last_uses.front().is_some_and(|last| later(*last, lifetime) <= now) {
                last_uses.pop_front();
            }
            last_uses.push_back(now.max(core::mem::take(held)));
        }
        id
    }

    /// Passes over blocks that may not be used again yet, if there is one that may.
    #[cold]
    fn skip(&mut self, now: Instant, lifetime: u64) {
        let Some(Blocks { last_uses, .. }) = self.blocks.as_deref_mut() else { return };
        if last_uses.len() < BLOCKS {
            return;
        }
        let is_free = |last: &Instant| later(*last, lifetime) <= now;
        let passed = last_uses.iter().position(is_free).unwrap_or(0);
        last_uses.rotate_left(passed);
        self.next = self.next.wrapping_add((passed as u16).wrapping_mul(BLOCK as u16));
    }

    /// When the lifetime of the last ID is over; the origin if none was used.
    pub(in crate::endpoint) fn forgettable(&self, lifetime: u64) -> Instant {
        if self.used == 0 {
            return Instant::ORIGIN;
        }
        let held = self.blocks.as_deref().map_or(Instant::ORIGIN, |Blocks { last_uses, held }| {
            last_uses.iter().copied().max().unwrap_or(Instant::ORIGIN).max(*held)
        });
        later(self.last_use.max(held), lifetime)
    }

    /// Bytes held on the heap.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        self.blocks.as_deref().map_or(0, |Blocks { last_uses, .. }| {
            size_of::<Blocks>().saturating_add(last_uses.capacity().wrapping_mul(size_of::<Instant>()))
        })
    }
}

/// The point `micros` microseconds after another.
pub(in crate::endpoint) const fn later(point: Instant, micros: u64) -> Instant {
    Instant::from_micros(point.as_micros().saturating_add(micros))
}

/// A point in time so many microseconds before another one.
pub(in crate::endpoint) const fn earlier(point: Instant, micros: u64) -> Instant {
    Instant::from_micros(point.as_micros().saturating_sub(micros))
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
            let at = Instant::from_micros(now);
            let id = ids.take_within(at).unwrap_or_else(|| ids.take(at, LIFETIME, 0)).0;
            assert_eq!(u64::from(id), (65_000 + round) % 65_536);
            if let Some(before) = last[usize::from(id)].replace(now) {
                assert!(now - before >= LIFETIME, "id {id} after {} µs", now - before);
            }
            now += 137;
        }
        assert!(ids.memory() <= 64 * 8 + size_of::<Blocks>());
    }

    /// One message that lives for a day; all others go on at their pace, and its ID waits.
    #[test]
    fn a_message_that_lives_longer_keeps_back_its_own_block_only() {
        const LONGER: u64 = 86_400_000_000;
        let mut ids = MessageIds::starting_at(7);
        let (mut now, mut patient) = (0_u64, None);
        let mut used = 0_u64;
        while now < LONGER + 2 * LIFETIME {
            let free = ids.next_free(Instant::from_micros(now), LIFETIME).as_micros();
            now = now.max(free);
            let is_patient = used == 1_500;
            let id = ids.take(Instant::from_micros(now), LIFETIME, if is_patient { LONGER } else { 0 });
            match patient {
                Some((other, until)) => assert!(id != other || now >= until, "at {now}"),
                None if is_patient => patient = Some((id, now + LIFETIME + LONGER)),
                None => {}
            }
            used += 1;
            now += 1_000_000;
            assert!(ids.forgettable(LIFETIME).as_micros() >= patient.map_or(0, |(_, until)| until.min(now)));
        }
        // One a second, and never a wait for the one: there are 63 other blocks.
        assert_eq!(used, (LONGER + 2 * LIFETIME) / 1_000_000);
    }

    #[test]
    fn a_slow_sender_remembers_next_to_nothing() {
        let mut ids = MessageIds::starting_at(0);
        for round in 0..200_000_u64 {
            let now = Instant::from_micros(round * 1_000_000);
            assert!(ids.next_free(now, LIFETIME) <= now);
            ids.take(now, LIFETIME, 0);
        }
        assert!(ids.blocks.as_ref().is_some_and(|blocks| blocks.last_uses.len() == 1));
    }

    #[test]
    fn without_a_full_block_nothing_is_held() {
        let mut ids = MessageIds::starting_at(0);
        for _ in 0..1_023 {
            ids.take(Instant::ORIGIN, LIFETIME, 0);
        }
        assert_eq!(ids.memory(), 0);
        assert_eq!(ids.forgettable(LIFETIME), Instant::from_micros(LIFETIME));
        assert_eq!(MessageIds::starting_at(0).forgettable(LIFETIME), Instant::ORIGIN);
    }
}

//! The asks that are not over.

use alloc::boxed::Box;

use millpond_control::{Instant, Sample};

use super::{AskId, asked::Asked};
use crate::endpoint::{slots::Slots, timers::Timers};

/// What an ask's message exchange that just ended was like.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exchanged {
    pub(super) sample: Option<Sample>,
    pub(super) copies: u8,
}

/// All asks that are not over.
#[derive(Debug)]
pub(super) struct Asks<A> {
    pub(super) slots: Slots<Option<Box<Asked<A>>>>,
    pub(super) timers: Timers,
    /// Bytes held by all of them.
    pub(super) bytes: usize,
    /// Asks ever begun.
    pub(super) count: u32,
    /// Registrations ever to be renewed: the address of their chance.
    pub(super) renewals: u32,
}

impl<A> Asks<A> {
    pub(super) const fn new() -> Self {
        Self { slots: Slots::new(), timers: Timers::new(), bytes: 0, count: 0, renewals: 0 }
    }

    pub(super) fn len(&self) -> u32 {
        self.slots.taken()
    }

    pub(super) fn name(&self, slot: u32) -> AskId {
        AskId { slot, generation: self.slots.generation(slot) }
    }

    pub(super) fn find(&self, id: AskId) -> Option<&Asked<A>> {
        self.slots.get(id.slot).filter(|_| self.slots.is(id.slot, id.generation))?.as_deref()
    }

    /// Takes an ask out of its slot, to be put back or to be forgotten.
    pub(super) fn take(&mut self, slot: u32) -> Option<Box<Asked<A>>> {
        let asked = self.slots.get_mut(slot)?.take()?;
        self.bytes = self.bytes.saturating_sub(asked.memory());
        Some(asked)
    }

    pub(super) fn put_back(&mut self, slot: u32, asked: Box<Asked<A>>) {
        self.bytes = self.bytes.saturating_add(asked.memory());
        let renew_at = asked.watch.map(|watch| watch.renew_at);
        let at = asked.deadline.unwrap_or(Instant::NEVER).min(renew_at.unwrap_or(Instant::NEVER));
        if at == Instant::NEVER {
            self.timers.clear(slot);
        } else {
            self.timers.set(slot, at);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(asked);
        }
    }

    pub(super) fn forget(&mut self, slot: u32) {
        self.timers.clear(slot);
        self.slots.release(slot);
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let each = (self.len() as usize).saturating_mul(size_of::<Asked<A>>());
        let slots = self.slots.memory().saturating_add(self.timers.memory());
        slots.saturating_add(each).saturating_add(self.bytes)
    }
}

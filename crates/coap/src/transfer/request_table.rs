//! The requests of ours that are not over.

use alloc::{boxed::Box, collections::VecDeque};

use millpond_control::{Instant, Sample};

use super::{ClientRequestId, pending_request::PendingRequest};
use crate::endpoint::{slots::Slots, timers::Timers};

/// What a request's message exchange that just ended was like.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchanged {
    pub(crate) sample: Option<Sample>,
    pub(crate) copies: u8,
}

/// All requests of ours that are not over.
#[derive(Debug)]
pub(super) struct RequestTable<A> {
    pub(super) slots: Slots<Option<Box<PendingRequest<A>>>>,
    pub(super) timers: Timers,
    /// Those that wait for others to end, or for what the other side says it takes. Some may be over.
    held: VecDeque<u32>,
    /// Bytes held by all of them.
    pub(super) bytes: usize,
    /// Of these, what those hold that fetch the rest of a group's answers.
    pub(super) gathered: usize,
    /// Requests ever begun.
    pub(super) count: u32,
    /// Registrations ever to be renewed: the address of their chance.
    pub(super) renewals: u32,
}

impl<A> RequestTable<A> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Slots::new(),
            timers: Timers::new(),
            held: VecDeque::new(),
            bytes: 0,
            gathered: 0,
            count: 0,
            renewals: 0,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.slots.taken()
    }

    pub(super) fn name(&self, slot: u32) -> ClientRequestId {
        ClientRequestId { slot, generation: self.slots.generation(slot) }
    }

    pub(super) fn find(&self, id: ClientRequestId) -> Option<&PendingRequest<A>> {
        if self.slots.is(id.slot, id.generation) { self.slots.get(id.slot)?.as_deref() } else { None }
    }

    /// Takes a request out of its slot, to be put back or to be forgotten.
    pub(super) fn take(&mut self, slot: u32) -> Option<Box<PendingRequest<A>>> {
        let pending = self.slots.get_mut(slot)?.take()?;
        self.bytes = self.bytes.saturating_sub(pending.memory());
        self.gathered = self.gathered.saturating_sub(pending.gathers.map_or(0, |_| pending.memory()));
        Some(pending)
    }

    pub(super) fn put_back(&mut self, slot: u32, pending: Box<PendingRequest<A>>) {
        self.bytes = self.bytes.saturating_add(pending.memory());
        self.gathered = self.gathered.saturating_add(pending.gathers.map_or(0, |_| pending.memory()));
        let renew_at = pending.watch.map(|watch| watch.renew_at);
        let at = pending.deadline.unwrap_or(Instant::NEVER).min(renew_at.unwrap_or(Instant::NEVER));
        if at == Instant::NEVER {
            self.timers.clear(slot);
        } else {
            self.timers.set(slot, at);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            debug_assert!(place.is_none(), "two requests in place {slot}");
            *place = Some(pending);
        }
    }

    /// A request has something to send that may not leave now.
    pub(super) fn hold(&mut self, slot: u32) {
        // What is over is never more than half.
        if self.held.len() > 64 && self.held.len() > (self.len() as usize).saturating_mul(2) {
            let Self { slots, held, .. } = self;
            held.retain(|slot| has_next(slots, *slot));
        }
        self.held.push_back(slot);
    }

    /// How many wait, those counted that are over.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// The first one that has still something to send.
    pub(super) fn next_held(&mut self) -> Option<u32> {
        loop {
            let slot = self.held.pop_front()?;
            if has_next(&self.slots, slot) {
                return Some(slot);
            }
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.timers.clear(slot);
        self.slots.release(slot);
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let each = (self.len() as usize).saturating_mul(size_of::<PendingRequest<A>>());
        let slots = self.slots.memory().saturating_add(self.timers.memory());
        let held = self.held.capacity().saturating_mul(size_of::<u32>());
        slots.saturating_add(each).saturating_add(held).saturating_add(self.bytes)
    }
}

/// Whether the request in this slot, which may be released, has something to send.
fn has_next<A>(slots: &Slots<Option<Box<PendingRequest<A>>>>, slot: u32) -> bool {
    slots.peek(slot).and_then(Option::as_ref).is_some_and(|pending| pending.has_next)
}

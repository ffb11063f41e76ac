//! Representations that a server keeps for requests of their later blocks.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use hashbrown::HashTable;
use millpond_control::{Instant, Span};

use crate::block::BlockSize;
use crate::endpoint::slots::{Linked, Links, List, Slots};
use crate::message::Code;

/// Whose representation it is, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key<A> {
    pub(super) peer: A,
    /// Of the request's code and options.
    pub(super) request: u64,
}

/// A representation as it was answered.
#[derive(Debug)]
pub(super) struct Kept<A> {
    links: Links,
    key: Key<A>,
    /// Of the request's body.
    pub(super) asked: u64,
    pub(super) code: Code,
    /// As they stand in a message, ETag included.
    pub(super) options: Vec<u8>,
    pub(super) body: Vec<u8>,
    pub(super) size: BlockSize,
    used: Instant,
}

impl<A> Linked for Kept<A> {
    fn links(&self) -> &Links {
        &self.links
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl<A> Kept<A> {
    pub(super) fn new(
        key: Key<A>,
        asked: u64,
        (code, options, body): (Code, Vec<u8>, Vec<u8>),
        size: BlockSize,
    ) -> Self {
        Self { links: Links::NOWHERE, key, asked, code, options, body, size, used: Instant::ORIGIN }
    }

    fn bytes(&self) -> usize {
        self.options.capacity().saturating_add(self.body.capacity())
    }
}

/// Representations within a budget of bytes. The one that was not asked for the longest makes room for the next.
#[derive(Debug)]
pub(super) struct Shelf<A> {
    slots: Slots<Kept<A>>,
    table: HashTable<u32>,
    /// In the order of their last use.
    order: List,
    /// Bytes of options and bodies.
    bytes: usize,
    budget: usize,
    lifetime: Span,
}

impl<A: Copy + Eq> Shelf<A> {
    pub(super) const fn new(budget: usize, lifetime: Span) -> Self {
        Self { slots: Slots::new(), table: HashTable::new(), order: List::EMPTY, bytes: 0, budget, lifetime }
    }

    pub(super) fn len(&self) -> u32 {
        self.order.len()
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.slots.memory().saturating_add(self.table.allocation_size()).saturating_add(self.bytes)
    }

    /// What is kept under a key, with its slot and that slot's generation.
    pub(super) fn find(&self, key: Key<A>, hash: u64) -> Option<(u32, NonZeroU32, &Kept<A>)> {
        let is_it = |slot: &u32| self.slots.get(*slot).is_some_and(|kept| kept.key == key);
        let slot = *self.table.find(hash, is_it)?;
        Some((slot, self.slots.generation(slot), self.slots.get(slot)?))
    }

    /// What is kept in a slot, which was used now.
    pub(super) fn take_up(&mut self, slot: u32, generation: NonZeroU32, now: Instant) -> Option<&Kept<A>> {
        if !self.slots.is(slot, generation) {
            return None;
        }
        self.order.remove(&mut self.slots, slot);
        self.order.push(&mut self.slots, slot);
        let kept = self.slots.get_mut(slot)?;
        kept.used = now;
        Some(kept)
    }

    /// Keeps a representation in place of what was kept under its key, if it fits the budget at all.
    pub(super) fn put(&mut self, now: Instant, kept: Kept<A>, hash: impl Fn(Key<A>) -> u64) {
        let key = kept.key;
        if let Some((slot, ..)) = self.find(key, hash(key)) {
            self.remove(slot, &hash);
        }
        let each = kept.bytes().saturating_add(size_of::<Kept<A>>());
        if each > self.budget {
            return;
        }
        // Places are counted as if each took what it takes at most: they double.
        while self.spent().saturating_add(each) > self.budget && !self.order.is_empty() {
            self.remove(self.order.first(), &hash);
        }
        self.bytes = self.bytes.saturating_add(kept.bytes());
        let slot = self.slots.put(Kept { used: now, ..kept });
        self.order.push(&mut self.slots, slot);
        let Self { slots, table, .. } = self;
        table.insert_unique(hash(key), slot, |slot| slots.get(*slot).map_or(0, |kept| hash(kept.key)));
    }

    fn spent(&self) -> usize {
        self.bytes.saturating_add((self.order.len() as usize).saturating_mul(size_of::<Kept<A>>()))
    }

    /// Drops what was not asked for in its lifetime.
    pub(super) fn expire(&mut self, now: Instant, hash: impl Fn(Key<A>) -> u64) {
        while self.next_expiry().is_some_and(|at| at <= now) {
            self.remove(self.order.first(), &hash);
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let oldest = self.slots.get(self.order.first()).filter(|_| !self.order.is_empty())?;
        Some(oldest.used.after(self.lifetime))
    }

    fn remove(&mut self, slot: u32, hash: &impl Fn(Key<A>) -> u64) {
        let Some(kept) = self.slots.get_mut(slot) else { return };
        let key = kept.key;
        self.bytes = self.bytes.saturating_sub(kept.bytes());
        (kept.options, kept.body) = (Vec::new(), Vec::new());
        if let Ok(entry) = self.table.find_entry(hash(key), |other| *other == slot) {
            entry.remove();
        }
        self.order.remove(&mut self.slots, slot);
        self.slots.release(slot);
    }
}

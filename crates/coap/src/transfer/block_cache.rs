//! Representations that a server keeps for requests of their later blocks.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use hashbrown::HashTable;
use millpond_control::{Instant, Span};

use super::SharedBody;
use crate::block::{BlockSize, GIVEN_FOR};
use crate::body::Bodies;
use crate::endpoint::slots::{Linked, Links, List, Slots};
use crate::message::{Code, OptionList};
use crate::quota::{Crowded, Source};

/// Whose representation it is, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key<A> {
    pub(super) peer: A,
    /// Of the request's code and options.
    pub(super) request: u64,
}

/// A representation as it was answered.
#[derive(Debug)]
pub(super) struct CachedRepresentation<A> {
    links: Links,
    key: Key<A>,
    /// Of the request's body.
    pub(super) asked: u64,
    pub(super) code: Code,
    /// ETag included.
    pub(super) options: OptionList,
    pub(super) body: SharedBody,
    pub(super) size: BlockSize,
    source: Source,
    made: Instant,
    used: Instant,
}

impl<A> Linked for CachedRepresentation<A> {
    fn links(&self) -> &Links {
        &self.links
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl<A> CachedRepresentation<A> {
    pub(super) fn new(
        key: Key<A>,
        asked: u64,
        (code, options, body): (Code, OptionList, SharedBody),
        size: BlockSize,
        source: Source,
    ) -> Self {
        let (links, made, used) = (Links::NOWHERE, Instant::ORIGIN, Instant::ORIGIN);
        Self { links, key, asked, code, options, body, size, source, made, used }
    }

    /// Whether the application is to be asked anew: see [`GIVEN_FOR`].
    fn is_old(&self, now: Instant) -> bool {
        now >= self.made.after(GIVEN_FOR)
    }

    /// Bytes that are its alone.
    fn bytes(&self) -> usize {
        self.options.memory()
    }

    /// The same, with its share of a body that so many hold.
    fn weight(&self, holders: usize) -> usize {
        let body = self.body.len().checked_div(holders.max(1)).unwrap_or(0);
        size_of::<Self>().saturating_add(self.bytes()).saturating_add(body)
    }
}

/// Of those that may make room so many are looked at, the ones that were not asked for the longest: a forged datagram can have it
/// done. As many as long answers to unvalidated peers, of 64 KiB, have room in the default budget.
const LOOKED_AT: usize = 256;

/// Representations within a budget of bytes, in which a body that several have counts once. Those of unvalidated peers make room first, of
/// either those of crowded networks, and of these the one that was not asked for the longest.
#[derive(Debug)]
pub(super) struct BlockCache<A> {
    slots: Slots<CachedRepresentation<A>>,
    table: HashTable<u32>,
    /// The bodies of all of them: many clients fetch the same one.
    bodies: Bodies,
    lists: Lists,
    /// Bytes of options.
    bytes: usize,
    budget: usize,
    lifetime: Span,
}

/// Places in the order of their last use.
#[derive(Debug)]
struct Lists {
    /// Of unvalidated peers.
    unvalidated_peers: List,
    /// Of peers that are known to be at their addresses.
    known: List,
}

impl Lists {
    const fn of(&self, is_known: bool) -> &List {
        if is_known { &self.known } else { &self.unvalidated_peers }
    }

    const fn of_mut(&mut self, is_known: bool) -> &mut List {
        if is_known { &mut self.known } else { &mut self.unvalidated_peers }
    }
}

impl<A: Copy + Eq> BlockCache<A> {
    pub(super) const fn new(budget: usize, lifetime: Span) -> Self {
        Self {
            slots: Slots::new(),
            table: HashTable::new(),
            bodies: Bodies::new(),
            lists: Lists { unvalidated_peers: List::EMPTY, known: List::EMPTY },
            bytes: 0,
            budget,
            lifetime,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.lists.unvalidated_peers.len().saturating_add(self.lists.known.len())
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let tables = self.slots.memory().saturating_add(self.table.allocation_size());
        tables.saturating_add(self.bodies.memory()).saturating_add(self.bytes)
    }

    /// What is kept under a key, with its slot and that slot's generation, if it may be given without the application.
    pub(super) fn find(
        &self,
        now: Instant,
        key: Key<A>,
        hash: u64,
    ) -> Option<(u32, NonZeroU32, &CachedRepresentation<A>)> {
        let slot = self.slot(key, hash)?;
        let cached = self.slots.get(slot).filter(|cached| !cached.is_old(now))?;
        Some((slot, self.slots.generation(slot), cached))
    }

    fn slot(&self, key: Key<A>, hash: u64) -> Option<u32> {
        let is_it = |slot: &u32| self.slots.get(*slot).is_some_and(|cached| cached.key == key);
        self.table.find(hash, is_it).copied()
    }

    /// What is kept in a slot, which was used now.
    pub(super) fn take_up(
        &mut self,
        slot: u32,
        generation: NonZeroU32,
        now: Instant,
    ) -> Option<&CachedRepresentation<A>> {
        if !self.slots.is(slot, generation) {
            return None;
        }
        let is_known = self.slots.get(slot)?.source.is_validated;
        let order = self.lists.of_mut(is_known);
        order.remove(&mut self.slots, slot);
        order.push(&mut self.slots, slot);
        let cached = self.slots.get_mut(slot)?;
        cached.used = now;
        Some(cached)
    }

    /// Keeps a representation in place of what was kept under its key, if it fits the budget at all and what is worth more
    /// need not make room for it.
    pub(super) fn put(&mut self, now: Instant, cached: CachedRepresentation<A>, hash: impl Fn(Key<A>) -> u64) {
        let key = cached.key;
        if let Some(slot) = self.slot(key, hash(key)) {
            self.remove(slot, &hash);
        }
        let each = cached.bytes().saturating_add(size_of::<CachedRepresentation<A>>());
        if each.saturating_add(cached.body.len()) > self.budget {
            return;
        }
        loop {
            // What makes room may have been the last to have the body.
            let body = self.bodies.cost(&cached.body);
            // Places are counted as if each took what it takes at most: they double.
            if self.spent().saturating_add(each).saturating_add(body) <= self.budget {
                break;
            }
            let Some(least) = self.least(&cached) else { return };
            self.remove(least, &hash);
        }
        self.bytes = self.bytes.saturating_add(cached.bytes());
        self.bodies.hold(&cached.body);
        let order = self.lists.of_mut(cached.source.is_validated);
        let slot = self.slots.put(CachedRepresentation { made: now, used: now, ..cached });
        order.push(&mut self.slots, slot);
        let Self { slots, table, .. } = self;
        table.insert_unique(hash(key), slot, |slot| slots.get(*slot).map_or(0, |cached| hash(cached.key)));
    }

    /// The one that makes room for this one; none if all are worth more.
    fn least(&self, newcomer: &CachedRepresentation<A>) -> Option<u32> {
        let is_known = newcomer.source.is_validated;
        let order = self.lists.of(is_known && self.lists.unvalidated_peers.is_empty());
        let looked_at = || order.iter(&self.slots).take(LOOKED_AT);
        let weight = |cached: &CachedRepresentation<A>| cached.weight(self.bodies.holders(&cached.body));
        let weights =
            looked_at().map(|(_, cached)| cached).chain([newcomer]).map(|cached| (cached.source, weight(cached)));
        let crowded = Crowded::among(weights);
        let least = crowded.least(looked_at().map(|(slot, cached)| (slot, cached.source, ())))?;
        let is_less = |cached: &CachedRepresentation<A>| crowded.worth(newcomer.source) < crowded.worth(cached.source);
        Some(least).filter(|least| is_known || !self.slots.get(*least).is_some_and(is_less))
    }

    fn spent(&self) -> usize {
        let places = (self.len() as usize).saturating_mul(size_of::<CachedRepresentation<A>>());
        self.bytes.saturating_add(self.bodies.bytes()).saturating_add(places)
    }

    /// Drops what was not asked for in its lifetime.
    pub(super) fn expire(&mut self, now: Instant, hash: impl Fn(Key<A>) -> u64) {
        for is_known in [false, true] {
            while self.expiry_of(is_known).is_some_and(|at| at <= now) {
                self.remove(self.lists.of(is_known).first(), &hash);
            }
        }
    }

    /// Drops what is kept for a peer.
    pub(super) fn drop_of(&mut self, peer: A, hash: impl Fn(Key<A>) -> u64) {
        let its = self.slots.iter().filter(|(_, cached)| cached.key.peer == peer).map(|(slot, _)| slot);
        for slot in its.collect::<Vec<_>>() {
            self.remove(slot, &hash);
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        [false, true].into_iter().filter_map(|is_known| self.expiry_of(is_known)).min()
    }

    fn expiry_of(&self, is_known: bool) -> Option<Instant> {
        let (_, oldest) = self.lists.of(is_known).iter(&self.slots).next()?;
        Some(oldest.used.after(self.lifetime))
    }

    fn remove(&mut self, slot: u32, hash: &impl Fn(Key<A>) -> u64) {
        let Some(cached) = self.slots.get_mut(slot) else { return };
        let (key, is_known) = (cached.key, cached.source.is_validated);
        self.bytes = self.bytes.saturating_sub(cached.bytes());
        cached.options = OptionList::new();
        self.bodies.release(&cached.body);
        if let Ok(entry) = self.table.find_entry(hash(key), |other| *other == slot) {
            entry.remove();
        }
        self.lists.of_mut(is_known).remove(&mut self.slots, slot);
        self.slots.release(slot);
    }
}

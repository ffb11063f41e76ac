//! Representations that a server keeps for requests of their later blocks.

// A processor without atomic swaps has no threads to share with.
#[cfg(not(target_has_atomic = "ptr"))]
use alloc::rc::Rc as Arc;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::{num::NonZeroU32, ops::Deref};

use hashbrown::HashTable;
use millpond_control::{Instant, Span};

use crate::block::{BlockSize, Crowded, GIVEN_FOR, Whose};
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
    pub(super) body: Shared,
    pub(super) size: BlockSize,
    whose: Whose,
    made: Instant,
    used: Instant,
}

/// A body that other representations may have too: many clients fetch the same one.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// Of what tells it from others before its bytes are looked at. No two that are kept have the same.
    content: u64,
    bytes: Arc<[u8]>,
}

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
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
        (code, options, body): (Code, Vec<u8>, Shared),
        size: BlockSize,
        whose: Whose,
    ) -> Self {
        let (links, made, used) = (Links::NOWHERE, Instant::ORIGIN, Instant::ORIGIN);
        Self { links, key, asked, code, options, body, size, whose, made, used }
    }

    /// Whether the application is to be asked anew: see [`GIVEN_FOR`].
    fn is_old(&self, now: Instant) -> bool {
        now >= self.made.after(GIVEN_FOR)
    }

    /// Bytes that are its alone.
    fn bytes(&self) -> usize {
        self.options.capacity()
    }

    /// The same, with its share of the body.
    fn weight(&self) -> usize {
        // One is the shelf's own.
        let sharers = Arc::strong_count(&self.body.bytes).saturating_sub(1).max(1);
        let body = self.body.len().checked_div(sharers).unwrap_or(0);
        size_of::<Self>().saturating_add(self.bytes()).saturating_add(body)
    }
}

/// 2⁶⁴ divided by the golden ratio: multiples of it are spread over all bits (Knuth, The Art of Computer Programming, volume 3,
/// §6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Of those that may make room so many are looked at, the ones that were not asked for the longest: a forged datagram can have it
/// done. As many as long answers to strangers, of 64 KiB, have room in the default budget.
const LOOKED_AT: usize = 256;

/// Representations within a budget of bytes, in which a body that several have counts once. Those of strangers make room first, of
/// either those of crowded networks, and of these the one that was not asked for the longest.
#[derive(Debug)]
pub(super) struct Shelf<A> {
    slots: Slots<Kept<A>>,
    table: HashTable<u32>,
    /// The bodies of all of them, each once.
    bodies: HashTable<Shared>,
    /// Bodies that seemed to be there already and were others.
    others: u64,
    orders: Orders,
    /// Bytes of options and bodies.
    bytes: usize,
    budget: usize,
    lifetime: Span,
}

/// Places in the order of their last use.
#[derive(Debug)]
struct Orders {
    /// Of strangers.
    strangers: List,
    /// Of peers that are known to be at their addresses.
    known: List,
}

impl Orders {
    const fn of(&self, is_known: bool) -> &List {
        if is_known { &self.known } else { &self.strangers }
    }

    const fn of_mut(&mut self, is_known: bool) -> &mut List {
        if is_known { &mut self.known } else { &mut self.strangers }
    }
}

impl<A: Copy + Eq> Shelf<A> {
    pub(super) const fn new(budget: usize, lifetime: Span) -> Self {
        Self {
            slots: Slots::new(),
            table: HashTable::new(),
            bodies: HashTable::new(),
            others: 0,
            orders: Orders { strangers: List::EMPTY, known: List::EMPTY },
            bytes: 0,
            budget,
            lifetime,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.orders.strangers.len().saturating_add(self.orders.known.len())
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let tables = self.table.allocation_size().saturating_add(self.bodies.allocation_size());
        self.slots.memory().saturating_add(tables).saturating_add(self.bytes)
    }

    /// A body as it is kept already, if it is, else a copy of it.
    pub(super) fn share(&mut self, content: u64, body: &[u8]) -> Shared {
        let content = match self.bodies.find(content, |kept| kept.content == content) {
            Some(kept) if **kept == *body => return kept.clone(),
            // Who has others made that seem alike would have each new one compared with all of them.
            Some(_) => {
                self.others = self.others.wrapping_add(1);
                content.wrapping_add(self.others.wrapping_mul(SPREAD))
            }
            None => content,
        };
        Shared { content, bytes: body.into() }
    }

    /// What is kept under a key, with its slot and that slot's generation, if it may be given without the application.
    pub(super) fn find(&self, now: Instant, key: Key<A>, hash: u64) -> Option<(u32, NonZeroU32, &Kept<A>)> {
        let slot = self.slot(key, hash)?;
        let kept = self.slots.get(slot).filter(|kept| !kept.is_old(now))?;
        Some((slot, self.slots.generation(slot), kept))
    }

    fn slot(&self, key: Key<A>, hash: u64) -> Option<u32> {
        let is_it = |slot: &u32| self.slots.get(*slot).is_some_and(|kept| kept.key == key);
        self.table.find(hash, is_it).copied()
    }

    /// What is kept in a slot, which was used now.
    pub(super) fn take_up(&mut self, slot: u32, generation: NonZeroU32, now: Instant) -> Option<&Kept<A>> {
        if !self.slots.is(slot, generation) {
            return None;
        }
        let is_known = self.slots.get(slot)?.whose.is_known;
        let order = self.orders.of_mut(is_known);
        order.remove(&mut self.slots, slot);
        order.push(&mut self.slots, slot);
        let kept = self.slots.get_mut(slot)?;
        kept.used = now;
        Some(kept)
    }

    /// Keeps a representation in place of what was kept under its key, if it fits the budget at all and what is worth more
    /// need not make room for it.
    pub(super) fn put(&mut self, now: Instant, kept: Kept<A>, hash: impl Fn(Key<A>) -> u64) {
        let key = kept.key;
        if let Some(slot) = self.slot(key, hash(key)) {
            self.remove(slot, &hash);
        }
        let each = kept.bytes().saturating_add(size_of::<Kept<A>>());
        if each.saturating_add(kept.body.len()) > self.budget {
            return;
        }
        loop {
            // Whoever makes room may have been the last to have the body.
            let body = if self.has_body(&kept.body) { 0 } else { kept.body.len() };
            // Places are counted as if each took what it takes at most: they double.
            if self.spent().saturating_add(each).saturating_add(body) <= self.budget {
                break;
            }
            let Some(least) = self.least(&kept) else { return };
            self.remove(least, &hash);
        }
        self.bytes = self.bytes.saturating_add(kept.bytes());
        if !self.has_body(&kept.body) {
            self.bytes = self.bytes.saturating_add(kept.body.len());
            self.bodies.insert_unique(kept.body.content, kept.body.clone(), |body| body.content);
        }
        let order = self.orders.of_mut(kept.whose.is_known);
        let slot = self.slots.put(Kept { made: now, used: now, ..kept });
        order.push(&mut self.slots, slot);
        let Self { slots, table, .. } = self;
        table.insert_unique(hash(key), slot, |slot| slots.get(*slot).map_or(0, |kept| hash(kept.key)));
    }

    /// The one that makes room for this one; none if all are worth more.
    fn least(&self, comer: &Kept<A>) -> Option<u32> {
        let is_known = comer.whose.is_known;
        let order = self.orders.of(is_known && self.orders.strangers.is_empty());
        let looked_at = || order.iter(&self.slots).take(LOOKED_AT);
        let weights = looked_at().map(|(_, kept)| kept).chain([comer]).map(|kept| (kept.whose, kept.weight()));
        let crowded = Crowded::among(weights);
        let least = crowded.least(looked_at().map(|(slot, kept)| (slot, kept.whose, ())))?;
        let is_less = |kept: &Kept<A>| crowded.worth(comer.whose) < crowded.worth(kept.whose);
        Some(least).filter(|least| is_known || !self.slots.get(*least).is_some_and(is_less))
    }

    fn has_body(&self, body: &Shared) -> bool {
        self.bodies.find(body.content, |kept| Arc::ptr_eq(&kept.bytes, &body.bytes)).is_some()
    }

    fn spent(&self) -> usize {
        self.bytes.saturating_add((self.len() as usize).saturating_mul(size_of::<Kept<A>>()))
    }

    /// Drops what was not asked for in its lifetime.
    pub(super) fn expire(&mut self, now: Instant, hash: impl Fn(Key<A>) -> u64) {
        for is_known in [false, true] {
            while self.expiry_of(is_known).is_some_and(|at| at <= now) {
                self.remove(self.orders.of(is_known).first(), &hash);
            }
        }
    }

    /// Drops what is kept for a peer.
    pub(super) fn drop_of(&mut self, peer: A, hash: impl Fn(Key<A>) -> u64) {
        let its = self.slots.iter().filter(|(_, kept)| kept.key.peer == peer).map(|(slot, _)| slot);
        for slot in its.collect::<Vec<_>>() {
            self.remove(slot, &hash);
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        [false, true].into_iter().filter_map(|is_known| self.expiry_of(is_known)).min()
    }

    fn expiry_of(&self, is_known: bool) -> Option<Instant> {
        let (_, oldest) = self.orders.of(is_known).iter(&self.slots).next()?;
        Some(oldest.used.after(self.lifetime))
    }

    fn remove(&mut self, slot: u32, hash: &impl Fn(Key<A>) -> u64) {
        let Some(kept) = self.slots.get_mut(slot) else { return };
        let (key, is_known) = (kept.key, kept.whose.is_known);
        self.bytes = self.bytes.saturating_sub(kept.bytes());
        kept.options = Vec::new();
        let body = core::mem::replace(&mut kept.body, Shared { content: 0, bytes: Arc::from([]) });
        // Its own and the table's.
        if Arc::strong_count(&body.bytes) == 2
            && let Ok(entry) = self.bodies.find_entry(body.content, |kept| Arc::ptr_eq(&kept.bytes, &body.bytes))
        {
            entry.remove();
            self.bytes = self.bytes.saturating_sub(body.len());
        }
        if let Ok(entry) = self.table.find_entry(hash(key), |other| *other == slot) {
            entry.remove();
        }
        self.orders.of_mut(is_known).remove(&mut self.slots, slot);
        self.slots.release(slot);
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    /// Whoever is answered with what he sent can have thousands of bodies kept that begin and end alike.
    #[test]
    fn bodies_that_seem_alike_are_not_compared_with_all_of_them() {
        const ALIKE: u64 = 7;
        let mut shelf = Shelf::new(1 << 20, Span::from_secs(247));
        let mut put = |peer: u32, body: &[u8]| {
            let body = shelf.share(ALIKE, body);
            let key = Key { peer, request: 0 };
            let kept = Kept::new(key, 0, (Code::CONTENT, Vec::new(), body), BlockSize::B1024, Whose::default());
            shelf.put(Instant::ORIGIN, kept, |key| u64::from(key.peer));
            let contents: BTreeSet<u64> = shelf.bodies.iter().map(|body| body.content).collect();
            assert_eq!(contents.len(), shelf.bodies.len());
            shelf.bodies.len()
        };
        for number in 0..500_u32 {
            assert_eq!(put(number, &number.to_be_bytes()), number as usize + 1);
        }
        // The first of them is shared as ever.
        assert_eq!(put(500, &[0; 4]), 500);
    }
}

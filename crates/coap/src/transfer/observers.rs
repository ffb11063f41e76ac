//! Observers that a server keeps (RFC 7641).

use alloc::{boxed::Box, vec::Vec};

use hashbrown::HashTable;
use millpond_control::Instant;

use super::{Answer, Limit, ObserverId, options};
use crate::block::{Block, BlockSize};
use crate::body::{Bodies, HeldBody};
use crate::endpoint::{ExchangeId, slots::Slots, timers::Timers};
use crate::invariant::Sure;
use crate::message::{Code, Kind, OptionList, Token};

/// One client's interest in one resource.
#[derive(Debug)]
pub(super) struct Observer<A> {
    pub(super) peer: A,
    pub(super) token: Token,
    /// As its registration came.
    pub(super) kind: Kind,
    /// Of the registration: for what of its blocks are asked.
    pub(super) key: u64,
    pub(super) asked: u64,
    /// Which blocks it wants.
    pub(super) block2: Option<Block>,
    /// Observe of the last notification.
    pub(super) sequence: u32,
    /// The notification that is under way or held back.
    pub(super) under_way: Option<ExchangeId>,
    /// The endpoint holds it back, as far as is known.
    pub(super) is_held: bool,
    /// The newest state, if that is not it.
    pub(super) waiting: Option<Box<Waiting>>,
    /// When it last acknowledged a notification.
    pub(super) confirmed_at: Option<Instant>,
    /// When it registered, or first did.
    pub(super) registered_at: Instant,
    /// When the next non-confirmable one may leave.
    pub(super) may_leave: Instant,
    /// The last non-confirmable ones that left.
    pub(super) left: [Option<ExchangeId>; 2],
    /// Its address has not shown that it receives what is sent there: what may go to it before it acknowledges.
    pub(super) limit: Option<Limit>,
}

/// A representation that waits for the notification before it.
#[derive(Debug)]
pub(super) struct Waiting {
    kind: Option<Kind>,
    code: Code,
    /// As they stand in a message.
    pub(super) options: OptionList,
    body: HeldBody,
    block: Option<BlockSize>,
    is_proved: bool,
}

impl Waiting {
    pub(super) fn of(answer: &Answer<'_>) -> Result<Self, super::Refused> {
        Ok(Self {
            kind: answer.kind,
            code: answer.code,
            options: options::keep(answer.options)?,
            body: HeldBody::of(answer.body, answer.shared),
            block: answer.block,
            is_proved: answer.is_proved,
        })
    }

    /// It as an answer, with its options as they are read.
    pub(super) fn answer<'a>(&'a self, options: &'a [(u16, &'a [u8])]) -> Answer<'a> {
        let Self { kind, code, block, is_proved, .. } = *self;
        let shared = self.body.shared();
        Answer { kind, block, is_proved, shared, body: &self.body, ..Answer::new(code, options) }
    }

    /// Bytes that are its alone.
    fn own_bytes(&self) -> usize {
        size_of::<Self>().saturating_add(self.options.memory()).saturating_add(self.body.own_bytes())
    }
}

impl<A> Observer<A> {
    /// As what a notification leaves that was asked for as this.
    pub(super) fn kind_now(&self, wished: Option<Kind>, is_last: bool, now: Instant, confirm_every: u64) -> Kind {
        let since = self.confirmed_at.unwrap_or(self.registered_at);
        let is_due = now.as_micros() >= since.as_micros().saturating_add(confirm_every);
        match wished {
            _ if is_due => Kind::Confirmable,
            Some(kind) => kind,
            None if is_last || self.confirmed_at.is_none() => Kind::Confirmable,
            None => Kind::NonConfirmable,
        }
    }

    /// The endpoint has let a non-confirmable notification leave.
    pub(super) fn has_left(&mut self, exchange: ExchangeId) {
        let [last, _] = self.left;
        self.left = [Some(exchange), last];
    }
}

/// All observers.
#[derive(Debug)]
pub(super) struct Observers<A> {
    slots: Slots<Option<Box<Observer<A>>>>,
    /// By peer.
    table: HashTable<u32>,
    pub(super) timers: Timers,
    /// Bytes of representations that wait, without those that several of them may share.
    waiting: usize,
    shared: Bodies,
}

impl<A: Copy + Eq> Observers<A> {
    pub(super) const fn new() -> Self {
        Self { slots: Slots::new(), table: HashTable::new(), timers: Timers::new(), waiting: 0, shared: Bodies::new() }
    }

    pub(super) fn len(&self) -> u32 {
        self.slots.taken()
    }

    pub(super) fn name(&self, slot: u32) -> ObserverId {
        ObserverId { slot, generation: self.slots.generation(slot) }
    }

    /// The slot of an observer that is not gone.
    pub(super) fn find(&self, id: ObserverId) -> Option<u32> {
        self.slots.is(id.slot, id.generation).then_some(id.slot)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Observer<A>> {
        self.slots.get(slot)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Observer<A>> {
        self.slots.get_mut(slot)?.as_deref_mut()
    }

    /// Where they are.
    pub(super) fn slots(&self) -> Vec<u32> {
        self.slots.iter().map(|(slot, _)| slot).collect()
    }

    /// The observers that are this peer.
    pub(super) fn of_peer(&self, peer: A, hash: u64) -> impl Iterator<Item = (u32, &Observer<A>)> {
        let known = move |slot: &u32| self.get(*slot).map(|observer| (*slot, observer));
        self.table.iter_hash(hash).filter_map(known).filter(move |(_, observer)| observer.peer == peer)
    }

    pub(super) fn add(&mut self, observer: Observer<A>, hash: impl Fn(A) -> u64) -> ObserverId {
        let peer = observer.peer;
        let slot = self.slots.put(Some(Box::new(observer)));
        let Self { slots, table, .. } = self;
        let peer_of = |slot: &u32| Some(slots.get(*slot)?.as_deref()?.peer);
        table.insert_unique(hash(peer), slot, |slot| peer_of(slot).map_or(0, &hash));
        self.name(slot)
    }

    pub(super) fn remove(&mut self, slot: u32, hash: impl Fn(A) -> u64) -> Option<Box<Observer<A>>> {
        let observer = self.slots.get_mut(slot)?.take()?;
        let found = self.table.find_entry(hash(observer.peer), |other| *other == slot);
        if let Ok(entry) = found.sure("entry of an observer") {
            entry.remove();
        }
        self.waits_no_more(observer.waiting.as_deref());
        self.timers.clear(slot);
        self.slots.release(slot);
        Some(observer)
    }

    /// Has a representation wait in place of the one that did.
    pub(super) fn wait(&mut self, slot: u32, waiting: Option<Box<Waiting>>) -> Option<Box<Waiting>> {
        let more = waiting.as_deref().map_or(0, Waiting::own_bytes);
        let body = waiting.as_deref().and_then(|waiting| waiting.body.shared().cloned());
        let before = core::mem::replace(&mut self.get_mut(slot)?.waiting, waiting);
        self.waiting = self.waiting.saturating_add(more);
        if let Some(body) = body {
            self.shared.hold(&body);
        }
        self.waits_no_more(before.as_deref());
        before
    }

    fn waits_no_more(&mut self, waiting: Option<&Waiting>) {
        let Some(waiting) = waiting else { return };
        self.waiting = self.waiting.saturating_sub(waiting.own_bytes());
        if let Some(body) = waiting.body.shared() {
            self.shared.release(body);
        }
    }

    /// Bytes of all representations that wait.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.waiting.saturating_add(self.shared.bytes())
    }

    /// The same with this one in place of another one.
    pub(super) fn waiting_bytes_with(&self, waiting: &Waiting, before: Option<&Waiting>) -> usize {
        let shared = waiting.body.shared().map_or(0, |body| self.shared.cost(body));
        let more = waiting.own_bytes().saturating_add(shared);
        self.waiting_bytes().saturating_add(more).saturating_sub(before.map_or(0, Waiting::own_bytes))
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let each = (self.len() as usize).saturating_mul(size_of::<Observer<A>>());
        let table = self.slots.memory().saturating_add(self.table.allocation_size());
        table
            .saturating_add(self.timers.memory())
            .saturating_add(each)
            .saturating_add(self.waiting)
            .saturating_add(self.shared.memory())
    }
}

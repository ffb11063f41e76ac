use alloc::{collections::VecDeque, vec::Vec};
use core::hash::Hash;

use hashbrown::HashTable;
use millpond_control::Instant;

use super::changes::Changes;
use crate::endpoint::{IdGenerator, RequestId, requests::Requests};
use crate::message::MessageId;
use crate::parts;

/// Bytes that chains take for each message, at most: there is a power of two of them.
const CHAIN_SHARE: usize = 2 * size_of::<Chain>();

/// What a retransmission of a handled message is met with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Reply {
    /// Nothing: it was non-confirmable.
    Silence,
    /// The empty acknowledgement.
    Acknowledgement,
    /// The reset.
    Reset,
    /// The response that was piggybacked for this request.
    Response(RequestId),
    /// The empty acknowledgement, while the response to this request is under way in a message of its own. After that the response in
    /// an acknowledgement: its sender has it, or asks for something else by a message ID that was used before.
    Separate(RequestId),
}

/// What is known of a message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Known {
    /// The application has it and has yet to acknowledge it; nothing has gone back.
    Pending,
    /// It was handled, and is to be remembered until then.
    Handled(Reply, Stored, Instant),
}

/// Where the response is that is to be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Stored {
    Read(Handled),
    Changed(u32),
}

/// What is remembered of a handled message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) struct Handled {
    reply: Reply,
    /// Where its stored response begins, counted in all bytes that were ever stored.
    start: u64,
    len: u16,
    /// Copies of the message that came since, as far as somebody counts them.
    copies: u8,
}

#[derive(Debug)]
struct Record<A> {
    from: A,
    id: MessageId,
    /// Number of the one before it in its chain.
    before: u32,
    expires: Instant,
    handled: Handled,
}

/// Records whose hashes end alike.
#[derive(Clone, Copy, Debug)]
struct Chain {
    /// The number of the newest.
    newest: u32,
    /// A bit for each of them, by other bits of its hash. Most messages that come for the first time are told by that alone, without
    /// a record being fetched: these lie far apart in memory.
    marks: u32,
}

/// By what a message is recognised, with the hash of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Key<A> {
    pub(in crate::endpoint) from: A,
    pub(in crate::endpoint) id: MessageId,
    pub(super) hash: u64,
}

impl<A: Copy + Hash> Key<A> {
    #[inline]
    pub(in crate::endpoint) fn new(from: A, id: MessageId, id_generator: &IdGenerator) -> Self {
        let is_needed = parts::SERVER || parts::MANY_PEERS;
        Self { from, id, hash: if is_needed { id_generator.hash(&(from, id.0)) } else { 0 } }
    }

    /// Its bit among the marks of its chain.
    const fn mark(&self) -> u32 {
        1_u32.rotate_left((self.hash >> 32) as u32)
    }
}

/// Messages that came in and must be recognised when they come again (RFC 7252 §4.5), within a budget of bytes.
///
/// Requests that may have changed something have room of their own. Other handled ones stand in the order in which they were, their responses likewise in one ring of bytes; the oldest make
/// room for the next. They are numbered, modulo 2³², and those whose hashes end alike are chained from the newest to
/// older ones. A number below that of the oldest that is left ends its chain, so that forgetting touches no chain.
#[derive(Debug)]
pub(in crate::endpoint) struct Duplicates<A> {
    /// Those that the application has yet to acknowledge, by their slots among the requests.
    pending: HashTable<u32>,
    /// A power of two of them.
    chains: Vec<Chain>,
    records: VecDeque<Record<A>>,
    /// Number of the oldest record.
    first: u32,
    bytes: VecDeque<u8>,
    /// Bytes ever taken out of `bytes`.
    gone: u64,
    budget: usize,
    changes: Changes<A>,
}

impl<A: Copy + Eq + Hash> Duplicates<A> {
    pub(in crate::endpoint) fn new(budget: usize) -> Self {
        Self {
            pending: HashTable::new(),
            chains: Vec::new(),
            records: VecDeque::new(),
            first: 0,
            bytes: VecDeque::new(),
            gone: 0,
            budget,
            changes: Changes::new(budget),
        }
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        let records = self.records.capacity().wrapping_mul(size_of::<Record<A>>());
        let chains = self.chains.capacity().wrapping_mul(size_of::<Chain>());
        let ring = records.saturating_add(chains).saturating_add(self.bytes.capacity());
        if !parts::SERVER {
            return ring;
        }
        let pending = self.pending.allocation_size();
        pending.saturating_add(ring).saturating_add(self.changes.memory())
    }

    /// What is known of a message.
    #[inline]
    pub(in crate::endpoint) fn find(&self, key: &Key<A>, now: Instant, requests: &Requests<A>) -> Option<Known> {
        if parts::SERVER
            && !self.pending.is_empty()
            && self.pending.find(key.hash, |slot| is_slot_of(*slot, key, requests)).is_some()
        {
            return Some(Known::Pending);
        }
        if parts::SERVER
            && let Some((reply, until, slot)) = self.changes.find(key, now)
        {
            return Some(Known::Handled(reply, Stored::Changed(slot), until));
        }
        let Record { handled, expires, .. } = *self.record(key)?;
        (expires > now).then_some(Known::Handled(handled.reply, Stored::Read(handled), expires))
    }

    /// The application has this request and has yet to acknowledge it.
    #[inline]
    pub(in crate::endpoint) fn pending(
        &mut self,
        key: &Key<A>,
        slot: u32,
        requests: &Requests<A>,
        id_generator: &IdGenerator,
    ) {
        let rehash = |slot: &u32| {
            let request = requests.peek(*slot);
            request.map_or(0, |request| Key::new(request.from, request.id, id_generator).hash)
        };
        self.pending.insert_unique(key.hash, slot, rehash);
    }

    /// The message was handled. `response` is what a piggybacked reply consists of, else empty. Returns how many
    /// messages had to be forgotten before their time.
    #[inline]
    pub(in crate::endpoint) fn handled(
        &mut self,
        key: &Key<A>,
        reply: Reply,
        response: &[u8],
        (now, expires): (Instant, Instant),
        requests: &Requests<A>,
        id_generator: &IdGenerator,
    ) -> u32 {
        self.expire(now);
        self.remove(key, requests);
        let (has_room, forgotten) = self.make_room(response.len(), now, id_generator);
        if !has_room {
            return forgotten.saturating_add(1);
        }
        let number = self.first.wrapping_add(self.records.len() as u32);
        let start = self.gone.saturating_add(self.bytes.len() as u64);
        if parts::SERVER {
            self.bytes.extend(response);
        }
        let handled = Handled { reply, start, len: response.len() as u16, copies: 0 };
        let before = self.link(key, number);
        self.records.push_back(Record { from: key.from, id: key.id, before, expires, handled });
        forgotten
    }

    /// A request of this network that may have changed something was handled. Returns how many had to be forgotten before their time.
    pub(in crate::endpoint) fn changed(
        &mut self,
        key: &Key<A>,
        network: u64,
        reply: (Reply, &[u8]),
        times: (Instant, Instant),
        requests: &Requests<A>,
        id_generator: &IdGenerator,
    ) -> u32 {
        self.remove(key, requests);
        self.changes.handled(key, network, reply, times, id_generator)
    }

    /// The application has acknowledged this message, or will not.
    pub(in crate::endpoint) fn remove(&mut self, key: &Key<A>, requests: &Requests<A>) {
        if !parts::SERVER || self.pending.is_empty() {
            return;
        }
        if let Ok(entry) = self.pending.find_entry(key.hash, |slot| is_slot_of(*slot, key, requests)) {
            entry.remove();
        }
    }

    /// One more copy of a handled message came: how many did.
    pub(in crate::endpoint) fn copy_came(&mut self, key: &Key<A>) -> u8 {
        let Some(record) = self.place(key).and_then(|place| self.records.get_mut(place)) else { return 1 };
        let copies = &mut record.handled.copies;
        *copies = copies.saturating_add(1);
        *copies
    }

    /// Appends the stored response of a handled message.
    #[inline]
    pub(in crate::endpoint) fn copy_response(&self, stored: Stored, to: &mut Vec<u8>) {
        let handled = match stored {
            Stored::Read(handled) => handled,
            Stored::Changed(slot) => return to.extend_from_slice(self.changes.response(slot)),
        };
        let start = handled.start.saturating_sub(self.gone) as usize;
        let end = start.saturating_add(usize::from(handled.len));
        if end <= self.bytes.len() {
            let (front, back) = self.bytes.as_slices();
            let middle = front.len();
            to.extend_from_slice(front.get(start.min(middle)..end.min(middle)).unwrap_or_default());
            let (start, end) = (start.saturating_sub(middle), end.saturating_sub(middle));
            to.extend_from_slice(back.get(start..end).unwrap_or_default());
        }
    }

    /// Forgets a few of the oldest whose time is over; each message that is remembered pays for two.
    #[inline]
    fn expire(&mut self, now: Instant) {
        for _ in 0..2 {
            if self.records.front().is_none_or(|record| record.expires > now) {
                break;
            }
            self.pop();
        }
    }

    /// Makes room for one more record and so many bytes. Says whether there is any, for the budget may be too small
    /// even for that, and how many messages were forgotten before their time.
    #[inline]
    fn make_room(&mut self, len: usize, now: Instant, id_generator: &IdGenerator) -> (bool, u32) {
        let mut forgotten = 0_u32;
        loop {
            let (records, bytes) = (self.records.capacity(), self.bytes.capacity());
            let needed = self.bytes.len().saturating_add(len);
            let more_records = if self.records.len() < records { records } else { records.saturating_mul(2).max(4) };
            let more_bytes =
                if !parts::SERVER || needed <= bytes { bytes } else { bytes.saturating_mul(2).max(needed).max(256) };
            let share = size_of::<Record<A>>().saturating_add(CHAIN_SHARE);
            if (more_records, more_bytes) == (records, bytes) {
                return (true, forgotten);
            }
            if more_records.saturating_mul(share).saturating_add(more_bytes) <= self.budget {
                if parts::SERVER {
                    self.bytes.reserve_exact(more_bytes.saturating_sub(self.bytes.len()));
                }
                self.grow(more_records, id_generator);
                return (true, forgotten);
            }
            match self.records.front() {
                None => return (false, forgotten),
                Some(oldest) => forgotten = forgotten.saturating_add(u32::from(oldest.expires > now)),
            }
            self.pop();
        }
    }

    /// Makes room for so many records in all, and a chain for each.
    #[cold]
    fn grow(&mut self, records: usize, id_generator: &IdGenerator) {
        self.records.reserve_exact(records.saturating_sub(self.records.len()));
        let chains = records.next_power_of_two();
        if !parts::MANY_PEERS || chains == self.chains.len() {
            return;
        }
        // A number that no record has.
        self.chains = alloc::vec![Chain { newest: self.first.wrapping_sub(1), marks: 0 }; chains];
        let mut number = self.first;
        for place in 0..self.records.len() {
            let Some(record) = self.records.get(place) else { continue };
            let before = self.link(&Key::new(record.from, record.id, id_generator), number);
            if let Some(record) = self.records.get_mut(place) {
                record.before = before;
            }
            number = number.wrapping_add(1);
        }
    }

    /// Makes this number the newest of its chain; the one before it.
    #[inline]
    fn link(&mut self, key: &Key<A>, number: u32) -> u32 {
        if !parts::MANY_PEERS {
            return number;
        }
        let (first, records) = (self.first, self.records.len());
        let chain = self.chain(key.hash);
        let Some(chain) = self.chains.get_mut(chain) else { return number };
        let is_empty = chain.newest.wrapping_sub(first) as usize >= records;
        chain.marks = key.mark() | if is_empty { 0 } else { chain.marks };
        core::mem::replace(&mut chain.newest, number)
    }

    /// Forgets the oldest.
    #[inline]
    fn pop(&mut self) {
        let Some(oldest) = self.records.pop_front() else { return };
        let len = usize::from(oldest.handled.len).min(self.bytes.len());
        if parts::SERVER {
            self.bytes.drain(..len);
        }
        self.gone = self.gone.saturating_add(len as u64);
        self.first = self.first.wrapping_add(1);
    }

    /// The newest record of a message.
    #[inline]
    fn record(&self, key: &Key<A>) -> Option<&Record<A>> {
        self.records.get(self.place(key)?)
    }

    /// Where that stands.
    #[inline]
    fn place(&self, key: &Key<A>) -> Option<usize> {
        if !parts::MANY_PEERS {
            return self.records.iter().rposition(|record| record.id == key.id && record.from == key.from);
        }
        let Chain { newest: mut number, marks } = *self.chains.get(self.chain(key.hash))?;
        if marks & key.mark() == 0 {
            return None;
        }
        // A chain goes to older ones only: also where a number of long ago has come to be that of another record.
        let mut end = self.records.len();
        loop {
            let place = number.wrapping_sub(self.first) as usize;
            if place >= end {
                return None;
            }
            let record = self.records.get(place)?;
            if record.id == key.id && record.from == key.from {
                return Some(place);
            }
            (number, end) = (record.before, place);
        }
    }

    /// The chain of a hash.
    #[inline]
    fn chain(&self, hash: u64) -> usize {
        hash as usize & self.chains.len().saturating_sub(1)
    }
}

/// The request in this slot is this message.
#[inline]
fn is_slot_of<A: Copy + Eq>(slot: u32, key: &Key<A>, requests: &Requests<A>) -> bool {
    requests.peek(slot).is_some_and(|request| request.id == key.id && request.from == key.from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: usize = 8_192;

    fn key(id: u16, id_generator: &IdGenerator) -> Key<u8> {
        Key::new((id % 5) as u8, MessageId(id), id_generator)
    }

    /// Those remembered are the newest, whatever their numbers, and those forgotten are not found through any chain.
    #[test]
    fn the_newest_are_found_while_places_double_and_numbers_begin_anew() {
        for (id_generator, first) in
            [(IdGenerator::counted(), 0), (IdGenerator::secret(*b"sixteen of bytes"), u32::MAX - 300)]
        {
            let (requests, now, until) = (Requests::new(), Instant::ORIGIN, Instant::from_micros(1));
            let mut duplicates = Duplicates { first, ..Duplicates::new(BUDGET) };
            let mut forgotten = 0;
            for id in 0..2_000_u16 {
                let it = key(id, &id_generator);
                assert_eq!(duplicates.find(&it, now, &requests), None, "{id}");
                forgotten += duplicates.handled(&it, Reply::Silence, b"", (now, until), &requests, &id_generator);
                for old in 0..=id {
                    let known = duplicates.find(&key(old, &id_generator), now, &requests).is_some();
                    assert_eq!(known, u32::from(old) >= forgotten, "{old} of {id}");
                }
            }
            assert!(forgotten > 1_500 && duplicates.memory() <= BUDGET);
            assert_eq!(duplicates.find(&key(1_999, &id_generator), until, &requests), None, "its time is over");
        }
    }

    #[test]
    fn what_comes_again_after_its_time_is_known_by_its_newest_record() {
        let (id_generator, requests) = (IdGenerator::counted(), Requests::new());
        let mut duplicates = Duplicates::new(BUDGET);
        let it = key(7, &id_generator);
        for second in 0..10 {
            let (now, until) = (Instant::from_micros(second), Instant::from_micros(second + 1));
            let reply = if second % 2 == 0 { Reply::Reset } else { Reply::Acknowledgement };
            assert_eq!(duplicates.find(&it, now, &requests), None);
            duplicates.handled(&it, reply, b"", (now, until), &requests, &id_generator);
            let known = duplicates.find(&it, now, &requests);
            assert!(matches!(known, Some(Known::Handled(known, ..)) if known == reply));
        }
    }
}

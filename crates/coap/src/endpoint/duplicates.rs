use alloc::collections::VecDeque;
use core::hash::Hash;

use hashbrown::{HashTable, hash_table::Entry};
use millpond_control::Instant;

use super::{Identities, RequestId, requests::Requests};
use crate::message::MessageId;

/// Bytes that the table takes for each message, at most: buckets of 4 + 1 bytes, at worst a quarter of them in use and
/// a power of two of them.
const TABLE_SHARE: usize = 24;

/// What a further copy of a handled message is met with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Nothing: it was non-confirmable.
    Silence,
    /// The empty acknowledgement.
    Acknowledgement,
    /// The reset.
    Reset,
    /// The response that was piggybacked for this request.
    Response(RequestId),
}

/// What is known of a message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The application has it and owes an acknowledgement; nothing has gone back.
    Pending,
    /// It was handled.
    Handled(Handled),
}

/// What is remembered of a handled message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handled {
    pub(super) reply: Reply,
    /// Where its stored response begins, counted in all bytes that were ever stored.
    start: u64,
    len: u16,
}

#[derive(Debug)]
struct Record<A> {
    from: A,
    id: MessageId,
    expires: Instant,
    handled: Handled,
}

/// A message by its place: handled ones by their number among all that were ever remembered (modulo 2³¹), pending ones
/// by their slot among the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u32);

const PENDING: u32 = 1 << 31;

/// Messages that came in and must be recognised when they come again (RFC 7252 §4.5), within a budget of bytes.
///
/// Handled ones stand in the order in which they were, their responses likewise in one ring of bytes; the oldest make
/// room for the next.
#[derive(Debug)]
pub(super) struct Duplicates<A> {
    table: HashTable<Place>,
    records: VecDeque<Record<A>>,
    /// Number of the oldest record.
    first: u32,
    bytes: VecDeque<u8>,
    /// Bytes ever taken out of `bytes`.
    gone: u64,
    budget: usize,
}

impl<A: Copy + Eq + Hash> Duplicates<A> {
    pub(super) fn new(budget: usize) -> Self {
        Self { table: HashTable::new(), records: VecDeque::new(), first: 0, bytes: VecDeque::new(), gone: 0, budget }
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let records = self.records.capacity().saturating_mul(size_of::<Record<A>>());
        self.table.allocation_size().saturating_add(records).saturating_add(self.bytes.capacity())
    }

    /// What is known of the message with this ID.
    #[inline]
    pub(super) fn find(
        &self,
        from: A,
        id: MessageId,
        now: Instant,
        requests: &Requests<A>,
        identities: &Identities,
    ) -> Option<Known> {
        if self.table.is_empty() {
            return None;
        }
        let is_it = |place: &Place| self.key(*place, requests) == Some((from, id));
        let place = *self.table.find(hash(from, id, identities), is_it)?;
        if place.0 & PENDING != 0 {
            return Some(Known::Pending);
        }
        let record = self.record(place)?;
        (record.expires > now).then_some(Known::Handled(record.handled))
    }

    /// The application has this request and owes its acknowledgement.
    #[inline]
    pub(super) fn pending(
        &mut self,
        from: A,
        id: MessageId,
        slot: u32,
        requests: &Requests<A>,
        identities: &Identities,
    ) {
        self.place(from, id, Place(slot | PENDING), requests, identities);
    }

    /// The message was handled. `response` is what a piggybacked reply consists of, else empty. Returns how many
    /// messages had to be forgotten before their time.
    #[inline]
    pub(super) fn handled(
        &mut self,
        message: (A, MessageId),
        reply: Reply,
        response: &[u8],
        (now, expires): (Instant, Instant),
        requests: &Requests<A>,
        identities: &Identities,
    ) -> u32 {
        self.expire(now, identities);
        let (from, id) = message;
        let (has_room, forgotten) = self.make_room(response.len(), now, identities);
        if !has_room {
            self.forget(from, id, requests, identities);
            return forgotten.saturating_add(1);
        }
        let number = self.first.wrapping_add(self.records.len() as u32) & !PENDING;
        let start = self.gone.saturating_add(self.bytes.len() as u64);
        self.bytes.extend(response);
        let handled = Handled { reply, start, len: response.len() as u16 };
        self.records.push_back(Record { from, id, expires, handled });
        self.place(from, id, Place(number), requests, identities);
        forgotten
    }

    /// The message was not handled after all.
    pub(super) fn forget(&mut self, from: A, id: MessageId, requests: &Requests<A>, identities: &Identities) {
        let Self { table, records, first, .. } = self;
        let is_it = |place: &Place| key(*place, records, *first, requests) == Some((from, id));
        if let Ok(entry) = table.find_entry(hash(from, id, identities), is_it) {
            entry.remove();
        }
    }

    /// Appends the stored response of a handled message.
    #[inline]
    pub(super) fn copy_response(&self, handled: Handled, to: &mut alloc::vec::Vec<u8>) {
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
    fn expire(&mut self, now: Instant, identities: &Identities) {
        for _ in 0..2 {
            if self.records.front().is_none_or(|record| record.expires > now) {
                break;
            }
            self.pop(identities);
        }
    }

    /// Makes room for one more record and so many bytes. Says whether there is any, for the budget may be too small
    /// even for that, and how many messages were forgotten before their time.
    fn make_room(&mut self, len: usize, now: Instant, identities: &Identities) -> (bool, u32) {
        let mut forgotten = 0_u32;
        loop {
            let (records, bytes) = (self.records.capacity(), self.bytes.capacity());
            let needed = self.bytes.len().saturating_add(len);
            let more_records = if self.records.len() < records { records } else { records.saturating_mul(2).max(4) };
            let more_bytes = if needed <= bytes { bytes } else { bytes.saturating_mul(2).max(needed).max(256) };
            let share = size_of::<Record<A>>().saturating_add(TABLE_SHARE);
            if (more_records, more_bytes) == (records, bytes) {
                return (true, forgotten);
            }
            if more_records.saturating_mul(share).saturating_add(more_bytes) <= self.budget {
                self.records.reserve_exact(more_records.saturating_sub(self.records.len()));
                self.bytes.reserve_exact(more_bytes.saturating_sub(self.bytes.len()));
                return (true, forgotten);
            }
            match self.records.front() {
                None => return (false, forgotten),
                Some(oldest) => forgotten = forgotten.saturating_add(u32::from(oldest.expires > now)),
            }
            self.pop(identities);
        }
    }

    /// Forgets the oldest.
    fn pop(&mut self, identities: &Identities) {
        let Some(oldest) = self.records.front() else { return };
        let number = Place(self.first);
        if let Ok(entry) = self.table.find_entry(hash(oldest.from, oldest.id, identities), |place| *place == number) {
            entry.remove();
        }
        let len = usize::from(oldest.handled.len).min(self.bytes.len());
        self.bytes.drain(..len);
        self.gone = self.gone.saturating_add(len as u64);
        self.records.pop_front();
        self.first = self.first.wrapping_add(1) & !PENDING;
    }

    /// Enters a message into the table in place of what stood there for it.
    fn place(&mut self, from: A, id: MessageId, place: Place, requests: &Requests<A>, identities: &Identities) {
        let Self { table, records, first, .. } = self;
        let key = |place: &Place| key(*place, records, *first, requests);
        let is_it = |other: &Place| *other == place || key(other) == Some((from, id));
        let rehash = |place: &Place| key(place).map_or(0, |(from, id)| hash(from, id, identities));
        match table.entry(hash(from, id, identities), is_it, rehash) {
            Entry::Occupied(mut entry) => *entry.get_mut() = place,
            Entry::Vacant(entry) => {
                entry.insert(place);
            }
        }
    }

    fn record(&self, place: Place) -> Option<&Record<A>> {
        self.records.get((place.0.wrapping_sub(self.first) & !PENDING) as usize)
    }

    fn key(&self, place: Place, requests: &Requests<A>) -> Option<(A, MessageId)> {
        key(place, &self.records, self.first, requests)
    }
}

#[inline]
fn hash<A: Hash>(from: A, id: MessageId, identities: &Identities) -> u64 {
    identities.hash(&(from, id.0))
}

#[inline]
fn key<A: Copy>(
    place: Place,
    records: &VecDeque<Record<A>>,
    first: u32,
    requests: &Requests<A>,
) -> Option<(A, MessageId)> {
    if place.0 & PENDING != 0 {
        return requests.get(place.0 & !PENDING).map(|request| (request.from, request.id));
    }
    let record = records.get((place.0.wrapping_sub(first) & !PENDING) as usize)?;
    Some((record.from, record.id))
}

//! What happens to exchanges and to their copies.

use millpond_coap::ExchangeId;
use millpond_control::{Instant, Span};

use super::{Ledger, NONE, Record, Tag, index::MANY, slab::NOWHERE, span, total::Kind};

impl Ledger {
    /// An exchange is begun for a request. Without an id its owner has no more than one open.
    pub(crate) fn begin(&mut self, flow: u32, number: u32, request: u32, id: Option<ExchangeId>, first_batch: bool) {
        let Some(account) = self.accounts.get_mut(flow as usize) else { return };
        if let Some(request) = self.requests.get_mut(request) {
            request.held += 1;
        }
        let older = account.newest;
        let record = Record {
            older,
            newer: NOWHERE,
            number,
            request,
            alive: 0,
            id,
            first_send: Instant::NEVER,
            accepted: Instant::NEVER,
            first_wait: Span::ZERO,
            copies: 0,
            winning: NONE,
            first_useful: NONE,
            first_batch,
            is_open: true,
            is_indexed: false,
        };
        let place = self.records.put(record);
        account.newest = place;
        if let Some(before) = self.records.get_mut(older) {
            before.newer = place;
        }
        if self.is_indexed(older) || self.are_many(place) {
            self.indexed(flow, place);
        }
    }

    /// Whether these records, from the newest on, are too many to be searched one by one.
    fn are_many(&self, newest: u32) -> bool {
        let places = core::iter::successors(Some(newest), |&place| self.records.get(place).map(|record| record.older));
        // The last place is none.
        places.take(MANY + 2).count() == MANY + 2
    }

    /// All records of a client, from the newest on, are in the index from now on, until none is left.
    fn indexed(&mut self, flow: u32, newest: u32) {
        let mut place = newest;
        while let Some(record) = self.records.get_mut(place).filter(|record| !record.is_indexed) {
            record.is_indexed = true;
            self.index.put(flow, place, record);
            place = record.older;
        }
    }

    /// Whether a record is in the index: with the newest of a client, all are.
    #[inline]
    fn is_indexed(&self, place: u32) -> bool {
        self.records.get(place).is_some_and(|record| record.is_indexed)
    }

    /// The open exchange of a client with this id: its number and its request.
    #[inline]
    pub(crate) fn open(&self, flow: u32, id: ExchangeId) -> Option<(u32, u32)> {
        let record = self.records.get(self.open_place(flow, id)?)?;
        Some((record.number, record.request))
    }

    /// Where the same is on record.
    #[inline]
    pub(crate) fn open_place(&self, flow: u32, id: ExchangeId) -> Option<u32> {
        let newest = self.accounts.get(flow as usize)?.newest;
        if self.is_indexed(newest) {
            return self.index.id(flow, id).filter(|&place| self.records.get(place).is_some_and(|r| r.is_open));
        }
        self.find(newest, |record| record.id == Some(id) && record.is_open)
    }

    /// When the first copy of an exchange left.
    pub(crate) fn first_send(&self, flow: u32, number: u32) -> Instant {
        let record = self.numbered(flow, number).and_then(|place| self.records.get(place));
        record.map_or(Instant::NEVER, |record| record.first_send)
    }

    /// The oldest exchange of a client of which no copy has left.
    pub(crate) fn unsent(&self, flow: u32) -> Option<u32> {
        let newest = self.accounts.get(flow as usize)?.newest;
        if self.is_indexed(newest) {
            let is_open = |place: u32| self.records.get(place).is_some_and(|record| record.is_open);
            return self.index.unsent(flow).find(|&number| self.index.number(flow, number).is_some_and(is_open));
        }
        let mut place = newest;
        let mut oldest = None;
        while let Some(record) = self.records.get(place) {
            if record.copies == 0 && record.is_open {
                oldest = Some(record.number);
            }
            place = record.older;
        }
        oldest
    }

    /// The ids of a client's open exchanges.
    pub(crate) fn open_ids(&self, flow: u32) -> Vec<ExchangeId> {
        let mut place = self.accounts.get(flow as usize).map_or(NOWHERE, |account| account.newest);
        let mut ids = Vec::new();
        while let Some(record) = self.records.get(place) {
            ids.extend(record.id.filter(|_| record.is_open));
            place = record.older;
        }
        ids
    }

    /// A copy leaves the client, which waits so long for a response now.
    #[inline]
    pub(crate) fn sent(&mut self, tag: &Tag, wait: Span) {
        if let Some(place) = self.place(tag) {
            self.sent_of(place, &mut { *tag }, wait);
        }
    }

    /// The same where the exchange's place is known; the tag gets its number.
    #[inline(always)]
    pub(crate) fn sent_of(&mut self, place: u32, tag: &mut Tag, wait: Span) {
        let Some(record) = self.records.get_mut(place) else { return };
        tag.exchange = record.number;
        record.copies = tag.copy.saturating_add(1);
        record.alive += 1;
        if tag.copy == 0 {
            self.sent_first(place, tag, wait);
        }
    }

    /// The first copy of an exchange leaves.
    fn sent_first(&mut self, place: u32, tag: &Tag, wait: Span) {
        let Some(record) = self.records.get_mut(place) else { return };
        record.first_send = tag.sent;
        record.first_wait = wait;
        let is_indexed = record.is_indexed;
        let Some(request) = self.requests.get_mut(record.request) else { return };
        let is_first = request.first_send == Instant::NEVER;
        if is_first {
            request.first_send = tag.sent;
        }
        if is_indexed {
            self.index.sent(tag.flow, tag.exchange);
        }
        if request.counts {
            let group = self.accounts.get(tag.flow as usize).map_or(0, |account| account.group);
            if is_first {
                self.totals.took(group, Kind::Wait, tag.sent, request.arrival);
            }
            if wait > Span::ZERO {
                self.totals.kept(group, Kind::FirstWait, wait);
            }
        }
    }

    /// The weak estimator of a client varies by so much, now that an exchange that began then was answered.
    #[cold]
    pub(crate) fn varied(&mut self, flow: u32, since: Instant, variation: Span) {
        if let Some(account) = self.accounts.get(flow as usize).filter(|_| since >= self.warm_up) {
            self.totals.kept(account.group, Kind::WeakVariation, variation);
        }
    }

    /// A request came to the application at its far side.
    #[inline]
    pub(crate) fn delivered(&mut self, tag: &Tag, now: Instant) {
        let Some(record) = self.place(tag).and_then(|place| self.records.get(place)) else { return };
        let Some(request) = self.requests.get_mut(record.request).filter(|request| !request.arrived) else { return };
        request.arrived = true;
        if request.counts
            && let Some(account) = self.accounts.get_mut(tag.flow as usize)
        {
            account.delivered += 1;
            self.totals.took(account.group, Kind::OneWay, now, request.arrival);
            self.totals.took(account.group, Kind::Crossing, now, request.first_send);
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.delivered(account.group, request.arrival, request.first_send, now);
            }
        }
    }

    /// A response reaches the client, whether or not it is still wanted.
    #[inline]
    pub(crate) fn reached(&mut self, tag: &Tag) {
        let Some(place) = self.place(tag) else { return };
        let Some(record) = self.records.get_mut(place) else { return };
        record.first_useful = record.first_useful.min(tag.copy);
        record.alive = record.alive.saturating_sub(1);
        if !record.is_open {
            self.settle(tag.flow, place);
        }
    }

    /// A copy, or the response to it, is no more: lost, or ignored by the server.
    #[cold]
    pub(crate) fn gone(&mut self, tag: &Tag) {
        let Some(place) = self.place(tag) else { return };
        if let Some(record) = self.records.get_mut(place) {
            record.alive = record.alive.saturating_sub(1);
            self.settle(tag.flow, place);
        }
    }

    /// One copy made the server send so many packets more than one.
    #[cold]
    pub(crate) fn branched(&mut self, tag: &Tag, more: u32) {
        if let Some(record) = self.place(tag).and_then(|place| self.records.get_mut(place)) {
            record.alive += more;
        }
    }

    /// Whether the exchange that this tag belongs to was begun after the warm-up.
    #[inline]
    pub(crate) fn counts(&self, tag: &Tag) -> bool {
        self.warm_up == Instant::ORIGIN
            || self.place(tag).and_then(|place| self.records.get(place)).is_some_and(|r| r.first_send >= self.warm_up)
    }

    /// The client accepts the response with this tag; gives the request that its exchange was made for.
    #[inline]
    pub(crate) fn accepted(&mut self, tag: &Tag, now: Instant) -> Option<u32> {
        let place = self.place(tag)?;
        let record = self.records.get_mut(place)?;
        record.accepted = now;
        record.winning = tag.copy;
        record.is_open = false;
        let request = record.request;
        if let Some(account) = self.accounts.get_mut(tag.flow as usize)
            && record.first_send >= self.warm_up
        {
            account.completed += 1;
            account.rtt_true_sum += span(now, tag.sent);
            if record.copies > 0 {
                self.totals.took(account.group, Kind::Rtt, now, record.first_send);
            }
        }
        self.settle(tag.flow, place);
        Some(request)
    }

    /// The one copy of an exchange that nobody answers has arrived; gives the request that it was made for.
    pub(crate) fn told(&mut self, tag: &Tag, now: Instant) -> Option<u32> {
        self.delivered(tag, now);
        let record = self.place(tag).and_then(|place| self.records.get_mut(place))?;
        record.winning = tag.copy;
        record.is_open = false;
        let request = record.request;
        self.reached(tag);
        Some(request)
    }

    /// An exchange ended without an answer; gives the request that it was made for.
    pub(crate) fn abandoned(&mut self, flow: u32, number: u32) -> Option<u32> {
        let place = self.numbered(flow, number)?;
        let record = self.records.get_mut(place)?;
        record.is_open = false;
        let (request, since) = (record.request, record.first_send);
        if let Some(account) = self.accounts.get_mut(flow as usize).filter(|_| since >= self.warm_up) {
            account.exchanges_failed += 1;
        }
        self.settle(flow, place);
        Some(request)
    }

    /// All open exchanges of a client end without an answer; gives the requests that they were made for.
    pub(crate) fn abandon_all(&mut self, flow: u32) -> Vec<u32> {
        let mut numbers = Vec::new();
        let mut place = self.accounts.get(flow as usize).map_or(NOWHERE, |account| account.newest);
        while let Some(record) = self.records.get(place) {
            numbers.extend(Some(record.number).filter(|_| record.is_open));
            place = record.older;
        }
        numbers.into_iter().filter_map(|number| self.abandoned(flow, number)).collect()
    }

    #[inline]
    fn place(&self, tag: &Tag) -> Option<u32> {
        self.numbered(tag.flow, tag.exchange)
    }

    /// The record of a client's exchange.
    #[inline]
    fn numbered(&self, flow: u32, number: u32) -> Option<u32> {
        let newest = self.accounts.get(flow as usize)?.newest;
        if self.is_indexed(newest) {
            return self.index.number(flow, number);
        }
        self.find(newest, |record| record.number == number)
    }

    /// The newest record that is like this, from one on. The newest are looked for most.
    #[inline]
    fn find(&self, newest: u32, is: impl Fn(&Record) -> bool) -> Option<u32> {
        let mut place = newest;
        loop {
            let record = self.records.get(place)?;
            if is(record) {
                return Some(place);
            }
            place = record.older;
        }
    }

    /// Folds a record into its client's account if nothing more can happen to it.
    #[inline]
    fn settle(&mut self, flow: u32, place: u32) {
        if self.records.get(place).is_some_and(|record| !record.is_open && record.alive == 0) {
            self.fold(flow, place);
        }
    }

    pub(super) fn fold(&mut self, flow: u32, place: u32) {
        let Some(&record) = self.records.get(place) else { return };
        let Some(account) = self.accounts.get_mut(flow as usize) else { return };
        if account.newest == place {
            account.newest = record.older;
        } else if let Some(newer) = self.records.get_mut(record.newer) {
            newer.older = record.older;
        }
        if let Some(older) = self.records.get_mut(record.older) {
            older.newer = record.newer;
        }
        if record.is_indexed {
            self.index.take(flow, &record);
        }
        self.records.free(place);
        if record.copies > 0 && record.first_send >= self.warm_up {
            let kept = self.waits.chunks_mut(self.kept_waits.max(1)).nth(flow as usize);
            account.take(&record, kept.unwrap_or_default());
            if record.accepted != Instant::NEVER {
                self.totals.answered(account.group, record.first_batch, record.copies);
            }
        }
        // A trace has all, those of the warm-up too.
        if let Some(kept) = self.kept.as_mut().filter(|_| record.copies > 0) {
            kept.push(record.row(flow));
        }
        self.release(record.request);
    }

    /// A request is held by one less.
    pub(super) fn release(&mut self, place: u32) {
        if let Some(request) = self.requests.get_mut(place) {
            request.held -= 1;
            if request.held == 0 {
                self.requests.free(place);
            }
        }
    }
}

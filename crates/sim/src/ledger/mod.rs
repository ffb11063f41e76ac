//! The laboratory's knowledge of what really happened to each request and to each exchange that it took.
//!
//! Every packet carries an invisible [`Tag`]; a response inherits the tag of the request copy that caused it. No
//! endpoint or controller can see it.
//!
//! A request arrives when its application hands it over, and ends answered or failed, or not at all. An exchange is one
//! message and its answer. Its record lives until it has ended and no packet of it is under way, because a response that
//! comes late may still show that a copy was unnecessary; then it is folded into sums and distributions. So a client
//! takes the same memory however many exchanges it makes.

mod account;
mod arrivals;
mod exchanges;
mod histogram;
mod index;
mod record;
mod reported;
mod slab;
mod tag;
mod total;

use std::collections::BTreeMap;

use millpond_control::Instant;

use crate::outcome::{ArrivalRow, DelayRow, ExchangeRow, FlowRow, HistogramRow, ReportedRow};

pub(crate) use slab::Slab;
pub(crate) use tag::Tag;

use account::Account;
use arrivals::Arrivals;
use index::Index;
use record::Record;
use slab::NOWHERE;
use total::{Kind, Totals};

/// Marks a packet that belongs to no exchange.
pub(crate) const NO_EXCHANGE: u32 = u32::MAX;

/// Marks a request that belongs to no event.
pub(crate) const NO_EVENT: u16 = u16::MAX;

const NONE: u8 = u8::MAX;

/// One request that has not ended, or of which exchanges are on record.
#[derive(Clone, Copy, Debug)]
struct Request {
    arrival: Instant,
    first_send: Instant,
    flow: u32,
    /// Exchanges of it on record, and one for itself while it is open.
    held: u32,
    /// Where it came from, for its owner.
    source: u8,
    event: u16,
    arrived: bool,
    /// It arrived after the warm-up.
    counts: bool,
}

/// All clients' books.
#[derive(Debug)]
pub(crate) struct Ledger {
    accounts: Vec<Account>,
    records: Slab<Record>,
    /// Of the records, those of clients that have many.
    index: Index,
    requests: Slab<Request>,
    totals: Totals,
    /// First waits, so many of each client, for their medians: where no client makes more exchanges than are kept.
    waits: Vec<u32>,
    kept_waits: usize,
    /// Requests that full queues refused, of the few clients that have any.
    refused: BTreeMap<u32, u32>,
    /// Every exchange, if asked for.
    kept: Option<Vec<ExchangeRow>>,
    /// Requests by their second of arrival, if anything happens meanwhile.
    arrivals: Option<Arrivals>,
    /// What arrives before this is not counted.
    warm_up: Instant,
}

/// The median of first waits is told where no client makes more exchanges than this.
pub(crate) const MOST_WAITS: u64 = 64;

impl Ledger {
    /// Books for clients of these groups that make this many exchanges each, if that is known. `keeps` says whether every
    /// exchange is to be told in the end; what arrives before `warm_up` is left out of all counts.
    pub(crate) fn new(
        clients: impl Iterator<Item = (u32, Option<u64>)>,
        groups: usize,
        keeps: bool,
        warm_up: Instant,
    ) -> Self {
        let mut most = 0;
        let account = |(group, exchanges): (u32, Option<u64>)| {
            most = most.max(exchanges.unwrap_or(u64::MAX));
            Account::new(group)
        };
        let accounts: Vec<_> = clients.map(account).collect();
        let kept_waits = if most <= MOST_WAITS { most as usize } else { 0 };
        Self {
            records: Slab::new(),
            index: Index::default(),
            requests: Slab::new(),
            totals: Totals::new(groups),
            waits: vec![0; kept_waits * accounts.len()],
            kept_waits,
            refused: BTreeMap::new(),
            kept: keeps.then(Vec::new),
            arrivals: None,
            warm_up,
            accounts,
        }
    }

    /// Requests are counted by their second of arrival as well, from this event on and back.
    #[must_use]
    pub(crate) fn with_arrivals(mut self, groups: usize, event: Instant) -> Self {
        self.arrivals = Some(Arrivals::new(groups, event));
        self
    }

    /// An application hands over a request for an event, or for none.
    pub(crate) fn arrival(&mut self, flow: u32, source: u8, event: u16, now: Instant) -> u32 {
        let counts = now >= self.warm_up;
        if counts && let Some(account) = self.accounts.get_mut(flow as usize) {
            account.arrivals += 1;
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.arrival(account.group, now);
            }
            if event != NO_EVENT {
                self.totals.reported(account.group, event).arrival();
            }
        }
        let request =
            Request { arrival: now, first_send: Instant::NEVER, flow, held: 1, source, event, arrived: false, counts };
        self.requests.put(request)
    }

    /// A request ended: where it came from. `since` says when each event was, the first being the start of the run.
    pub(crate) fn ended(&mut self, request: u32, answered: bool, now: Instant, since: &[Instant]) -> u8 {
        let Some(&Request { arrival, flow, source, event, counts, .. }) = self.requests.get(request) else { return 0 };
        if counts && let Some(account) = self.accounts.get_mut(flow as usize) {
            if answered {
                account.answered += 1;
                self.totals.took(account.group, Kind::Answer, now, arrival);
                if let Some(&since) = since.get(usize::from(event)) {
                    self.totals.reported(account.group, event).answered(span(now, since));
                }
            } else {
                account.requests_failed += 1;
            }
        }
        self.release(request);
        source
    }

    /// The full queue of its own application refused a request: that ends it.
    pub(crate) fn refused(&mut self, request: u32, now: Instant) {
        if let Some(&Request { flow, counts: true, .. }) = self.requests.get(request) {
            *self.refused.entry(flow).or_default() += 1;
        }
        self.ended(request, false, now, &[]);
    }

    /// A client's last request for an event was answered, and none was lost.
    pub(crate) fn completed(&mut self, flow: u32, event: u16, now: Instant, since: Instant) {
        if let Some(account) = self.accounts.get(flow as usize).filter(|_| event != NO_EVENT) {
            self.totals.reported(account.group, event).completed(span(now, since));
        }
    }

    /// Folds everything that is left: the run is over.
    pub(crate) fn close(&mut self) {
        for flow in 0..self.accounts.len() as u32 {
            while let Some(place) = self.accounts.get(flow as usize).map(|account| account.newest)
                && place != NOWHERE
            {
                self.fold(flow, place);
            }
        }
    }

    /// Sums up one client's books into its row.
    pub(crate) fn sum(&mut self, row: &mut FlowRow) {
        if let Some(account) = self.accounts.get(row.flow as usize) {
            let kept = self.waits.chunks_mut(self.kept_waits.max(1)).nth(row.flow as usize);
            account.sum(row, kept.unwrap_or_default());
            row.dropped_source = self.refused.get(&row.flow).copied().unwrap_or(0);
        }
    }

    /// Answered exchanges by number of retransmissions, for each group.
    pub(crate) fn histogram(&self) -> Vec<HistogramRow> {
        self.totals.histogram()
    }

    /// How long requests and exchanges took, for each group.
    pub(crate) fn delays(&self) -> Vec<DelayRow> {
        self.totals.delays()
    }

    /// What became of the requests of each second, if they were counted so.
    pub(crate) fn arrivals(&self) -> Vec<ArrivalRow> {
        self.arrivals.as_ref().map_or_else(Vec::new, Arrivals::rows)
    }

    /// What was done by when; `clients` says how many there are in each group.
    pub(crate) fn reported(&mut self, clients: impl Iterator<Item = u32>) -> Vec<ReportedRow> {
        self.totals.rows(clients)
    }

    /// Every exchange that was begun, in the order of clients and exchanges, if they were kept.
    pub(crate) fn rows(&mut self) -> Vec<ExchangeRow> {
        let mut rows = self.kept.take().unwrap_or_default();
        rows.sort_unstable_by_key(|row| (row.flow, row.exchange));
        rows
    }
}

/// From one point to a later one, in microseconds.
#[inline]
fn span(now: Instant, since: Instant) -> u64 {
    now.as_micros().saturating_sub(since.as_micros())
}

#[cfg(test)]
mod tests;

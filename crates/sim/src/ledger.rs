//! The laboratory's knowledge of what really happened to each exchange.
//!
//! Every packet carries an invisible [`Tag`]; a response inherits the tag of the request copy that caused it. No
//! endpoint or controller can see it.

use millpond_control::{Instant, Span};

use crate::outcome::{ExchangeRow, FlowRow, HistogramRow};

/// Which request copy a packet is, or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Number of the client.
    pub(crate) flow: u32,
    /// Number of the exchange within the client.
    pub(crate) exchange: u32,
    /// Number of the copy, 0 being the first.
    pub(crate) copy: u8,
    /// Bytes of the request copy, headers included.
    pub(crate) request_bytes: u32,
    /// When the copy left the client.
    pub(crate) sent: Instant,
}

/// Marks a packet that belongs to no exchange.
pub(crate) const NO_EXCHANGE: u32 = u32::MAX;

const NONE: u8 = u8::MAX;

/// One exchange.
#[derive(Clone, Copy)]
struct Record {
    first_send: Instant,
    accepted: Instant,
    first_wait: Span,
    copies: u8,
    winning: u8,
    /// The smallest copy number whose response ever reached the client, also after the exchange had ended.
    first_useful: u8,
    first_batch: bool,
}

const BLANK: Record = Record {
    first_send: Instant::NEVER,
    accepted: Instant::NEVER,
    first_wait: Span::ZERO,
    copies: 0,
    winning: NONE,
    first_useful: NONE,
    first_batch: true,
};

/// All exchanges of a run: each client's lie side by side.
pub(crate) struct Ledger {
    records: Vec<Record>,
    /// Where each client's records start; one more entry than clients.
    starts: Vec<u32>,
}

impl Ledger {
    /// A ledger for clients with this many exchanges each.
    pub(crate) fn new(exchanges: impl Iterator<Item = u32>) -> Self {
        let mut starts = vec![0];
        let mut total = 0_u32;
        for count in exchanges {
            total += count;
            starts.push(total);
        }
        Self { records: vec![BLANK; total as usize], starts }
    }

    #[inline]
    fn record(&mut self, flow: u32, exchange: u32) -> Option<&mut Record> {
        let start = *self.starts.get(flow as usize)?;
        self.records.get_mut((start as usize).checked_add(exchange as usize)?)
    }

    /// A copy leaves the client, which waits so long for a response now.
    #[inline]
    pub(crate) fn sent(&mut self, tag: &Tag, wait: Span, first_batch: bool) {
        if let Some(record) = self.record(tag.flow, tag.exchange) {
            if tag.copy == 0 {
                record.first_send = tag.sent;
                record.first_wait = wait;
                record.first_batch = first_batch;
            }
            record.copies = tag.copy.saturating_add(1);
        }
    }

    /// A response reaches the client, whether or not it is still wanted.
    #[inline]
    pub(crate) fn reached(&mut self, tag: &Tag) {
        if let Some(record) = self.record(tag.flow, tag.exchange) {
            record.first_useful = record.first_useful.min(tag.copy);
        }
    }

    /// The client accepts that response.
    #[inline]
    pub(crate) fn accepted(&mut self, tag: &Tag, now: Instant) {
        if let Some(record) = self.record(tag.flow, tag.exchange) {
            record.accepted = now;
            record.winning = tag.copy;
        }
    }

    /// Sums up one client's exchanges into its row.
    pub(crate) fn sum(&self, row: &mut FlowRow) {
        let (mut first, mut strong) = (0_u64, 0_u64);
        let mut waits = Vec::with_capacity(self.of(row.flow).len());
        for record in self.of(row.flow).iter().filter(|record| record.copies > 0) {
            waits.push(record.first_wait.as_micros());
            let retransmissions = u32::from(record.copies) - 1;
            row.transmissions += u32::from(record.copies);
            row.retransmissions += retransmissions;
            if record.first_useful != NONE {
                row.unnecessary += retransmissions.saturating_sub(u32::from(record.first_useful));
            }
            if record.accepted != Instant::NEVER {
                let rtt = record.accepted.as_micros() - record.first_send.as_micros();
                first += rtt;
                if retransmissions == 0 {
                    strong += rtt;
                    row.strong_samples += 1;
                }
            }
        }
        row.rtt_first_mean_us = mean(first, row.completed);
        row.rtt_strong_mean_us = mean(strong, row.strong_samples);
        row.first_wait_mean_us = mean(waits.iter().map(|&wait| u64::from(wait)).sum(), waits.len() as u32);
        row.first_wait_median_us = median(&mut waits);
    }

    /// Exchanges by number of retransmissions, for each group; `groups[flow]` is a client's group.
    pub(crate) fn histogram(&self, groups: &[u32]) -> Vec<HistogramRow> {
        let mut counts = std::collections::BTreeMap::new();
        for (flow, &group) in groups.iter().enumerate() {
            for record in self.of(flow as u32).iter().filter(|record| record.accepted != Instant::NEVER) {
                *counts.entry((group, !record.first_batch, record.copies)).or_insert(0_u64) += 1;
            }
        }
        let row = |((group, later, copies), exchanges): ((u32, bool, u8), u64)| HistogramRow {
            group,
            first_batch: !later,
            retransmissions: u32::from(copies) - 1,
            exchanges,
        };
        counts.into_iter().map(row).collect()
    }

    /// Every exchange that was begun.
    pub(crate) fn rows(&self) -> Vec<ExchangeRow> {
        let known = |copy: u8| (copy != NONE).then_some(u32::from(copy));
        let mut rows = Vec::new();
        for flow in 0..self.starts.len() as u32 - 1 {
            for (exchange, record) in self.of(flow).iter().enumerate().filter(|(_, record)| record.copies > 0) {
                rows.push(ExchangeRow {
                    flow,
                    exchange: exchange as u32,
                    first_send_us: record.first_send.as_micros(),
                    first_wait_us: record.first_wait.as_micros(),
                    accepted_us: (record.accepted != Instant::NEVER).then_some(record.accepted.as_micros()),
                    copies: u32::from(record.copies),
                    winning_copy: known(record.winning),
                    first_useful_copy: known(record.first_useful),
                    ..ExchangeRow::default()
                });
            }
        }
        rows
    }

    fn of(&self, flow: u32) -> &[Record] {
        let bounds = self.starts.get(flow as usize).zip(self.starts.get(flow as usize + 1));
        bounds.and_then(|(start, end)| self.records.get(*start as usize..*end as usize)).unwrap_or(&[])
    }
}

/// A mean, or nothing of nothing.
pub(crate) fn mean(sum: u64, count: u32) -> Option<f64> {
    (count > 0).then(|| sum as f64 / f64::from(count))
}

/// A median, halfway between the two in the middle of an even number; nothing of nothing. Puts the values in another
/// order.
fn median(values: &mut [u32]) -> Option<f64> {
    let count = values.len();
    if count == 0 {
        return None;
    }
    let (lower, &mut upper, _) = values.select_nth_unstable(count / 2);
    let upper = f64::from(upper);
    match lower.iter().max() {
        Some(&below) if count.is_multiple_of(2) => Some(f64::from(below).midpoint(upper)),
        _ => Some(upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Span = Span::from_secs(2);

    fn tag(exchange: u32, copy: u8, sent: u64) -> Tag {
        Tag { flow: 0, exchange, copy, request_bytes: 38, sent: Instant::from_micros(sent) }
    }

    #[test]
    fn a_retransmission_is_unnecessary_if_an_earlier_copy_was_answered_after_all() {
        let mut ledger = Ledger::new([3].into_iter());
        for copy in 0..4 {
            ledger.sent(&tag(0, copy, 100 + u64::from(copy)), WAIT, true);
        }
        // The response to copy 1 wins; the one to copy 0 comes late and shows that all three were unnecessary.
        ledger.reached(&tag(0, 1, 101));
        ledger.accepted(&tag(0, 1, 101), Instant::from_micros(900));
        let mut row = FlowRow { completed: 1, ..FlowRow::default() };
        ledger.sum(&mut row);
        assert_eq!((row.retransmissions, row.unnecessary), (3, 2));
        ledger.reached(&tag(0, 0, 100));
        let mut row = FlowRow { completed: 1, ..FlowRow::default() };
        ledger.sum(&mut row);
        assert_eq!((row.transmissions, row.retransmissions, row.unnecessary), (4, 3, 3));
        assert_eq!(row.rtt_first_mean_us, Some(800.0));
        assert_eq!(row.rtt_strong_mean_us, None);
    }

    #[test]
    fn the_histogram_counts_answered_exchanges_only() {
        let mut ledger = Ledger::new([2, 2].into_iter());
        ledger.sent(&tag(0, 0, 1), WAIT, true);
        ledger.accepted(&tag(0, 0, 1), Instant::from_micros(2));
        ledger.sent(&tag(1, 0, 3), WAIT, false);
        ledger.sent(&tag(1, 1, 4), WAIT, false);
        let rows = ledger.histogram(&[0, 0]);
        assert_eq!(rows, [HistogramRow { group: 0, first_batch: true, retransmissions: 0, exchanges: 1 }]);
        assert_eq!(ledger.rows().len(), 2);
    }

    #[test]
    fn first_waits_count_once_an_exchange() {
        let mut ledger = Ledger::new([4].into_iter());
        for (exchange, wait) in [(0, 40), (1, 10), (2, 30)] {
            ledger.sent(&tag(exchange, 0, 1), Span::from_micros(wait), true);
            ledger.sent(&tag(exchange, 1, 2), Span::from_micros(900), true);
        }
        let mut row = FlowRow::default();
        ledger.sum(&mut row);
        assert_eq!(row.first_wait_mean_us, Some(80.0 / 3.0));
        assert_eq!(row.first_wait_median_us, Some(30.0));
        assert_eq!(ledger.rows().iter().map(|row| row.first_wait_us).collect::<Vec<_>>(), [40, 10, 30]);
    }

    #[test]
    fn the_median_of_an_even_number_lies_halfway() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [7]), Some(7.0));
        assert_eq!(median(&mut [9, 1]), Some(5.0));
        assert_eq!(median(&mut [5, 1, 9, 2]), Some(3.5));
        assert_eq!(median(&mut [5, 1, 9, 2, 2]), Some(2.0));
    }
}

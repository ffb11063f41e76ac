//! One client's sums.

use millpond_control::Instant;

use super::{NONE, Record, slab::NOWHERE, span};
use crate::outcome::FlowRow;

/// What is known of one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) group: u32,
    /// Its newest exchange on record.
    pub(super) newest: u32,
    pub(super) arrivals: u32,
    pub(super) answered: u32,
    pub(super) requests_failed: u32,
    pub(super) delivered: u32,
    pub(super) completed: u32,
    pub(super) exchanges_failed: u32,
    begun: u32,
    transmissions: u32,
    unnecessary: u32,
    strong_samples: u32,
    pub(super) rtt_true_sum: u64,
    rtt_first_sum: u64,
    rtt_strong_sum: u64,
    first_wait_sum: u64,
}

impl Account {
    pub(super) const fn new(group: u32) -> Self {
        Self {
            group,
            newest: NOWHERE,
            arrivals: 0,
            answered: 0,
            requests_failed: 0,
            delivered: 0,
            completed: 0,
            exchanges_failed: 0,
            begun: 0,
            transmissions: 0,
            unnecessary: 0,
            strong_samples: 0,
            rtt_true_sum: 0,
            rtt_first_sum: 0,
            rtt_strong_sum: 0,
            first_wait_sum: 0,
        }
    }

    /// Adds an exchange to which nothing more happens. `waits` are those that are kept of it.
    #[inline]
    pub(super) fn take(&mut self, record: &Record, waits: &mut [u32]) {
        if let Some(kept) = waits.get_mut(self.begun as usize) {
            *kept = record.first_wait.as_micros();
        }
        self.begun += 1;
        let retransmissions = u32::from(record.copies) - 1;
        self.transmissions += u32::from(record.copies);
        self.first_wait_sum += u64::from(record.first_wait.as_micros());
        if record.first_useful != NONE {
            self.unnecessary += retransmissions.saturating_sub(u32::from(record.first_useful));
        }
        if record.accepted != Instant::NEVER {
            let rtt = span(record.accepted, record.first_send);
            self.rtt_first_sum += rtt;
            if retransmissions == 0 {
                self.rtt_strong_sum += rtt;
                self.strong_samples += 1;
            }
        }
    }

    /// Sums up into the client's row. `waits` are those that were kept of it.
    pub(super) fn sum(&self, row: &mut FlowRow, waits: &mut [u32]) {
        row.completed = self.completed;
        row.exchanges_failed = self.exchanges_failed;
        row.transmissions = self.transmissions;
        row.retransmissions = self.transmissions - self.begun;
        row.unnecessary = self.unnecessary;
        row.strong_samples = self.strong_samples;
        row.rtt_true_mean_us = mean(self.rtt_true_sum, self.completed);
        row.rtt_first_mean_us = mean(self.rtt_first_sum, self.completed);
        row.rtt_strong_mean_us = mean(self.rtt_strong_sum, self.strong_samples);
        row.first_wait_mean_us = mean(self.first_wait_sum, self.begun);
        row.first_wait_median_us = waits.get_mut(..self.begun as usize).and_then(median);
        row.arrivals = self.arrivals;
        row.answered = self.answered;
        row.requests_failed = self.requests_failed;
        row.never_finished = self.arrivals - self.answered - self.requests_failed;
        row.delivered = self.delivered;
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

    #[test]
    fn the_median_of_an_even_number_lies_halfway() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [7]), Some(7.0));
        assert_eq!(median(&mut [9, 1]), Some(5.0));
        assert_eq!(median(&mut [5, 1, 9, 2]), Some(3.5));
        assert_eq!(median(&mut [5, 1, 9, 2, 2]), Some(2.0));
    }
}

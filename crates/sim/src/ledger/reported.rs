//! How much was done by when: requests answered and clients complete, since the start or an event.

use super::histogram::{edge, finest_within};
use crate::outcome::ReportedRow;

/// At most so many rows for a group and an event.
const MOST_ROWS: usize = 256;
/// So many distinct times are kept before they are gathered into bins.
const KEPT: usize = 1_024;

/// What was done for one event by the clients of one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    /// Time since the event, requests answered and clients completed then.
    times: Vec<(u64, u64, u64)>,
    arrivals: u64,
    clients: u32,
    fineness: Option<u32>,
}

impl Reported {
    /// A request arrived for this event.
    #[inline]
    pub(crate) fn arrival(&mut self) {
        self.arrivals += 1;
    }

    /// A request was answered, so long after the event.
    #[inline]
    pub(crate) fn answered(&mut self, since: u64) {
        self.add(since, 1, 0);
    }

    /// The last request that a client made for the event was answered, and none was lost.
    pub(crate) fn completed(&mut self, since: u64) {
        self.clients += 1;
        self.add(since, 0, 1);
    }

    #[inline]
    fn add(&mut self, since: u64, answered: u64, clients: u64) {
        let into = |fineness: Option<u32>| fineness.map_or(since, |fineness| edge(since, fineness));
        let at = into(self.fineness);
        // Time goes on; only those with another start of counting may come in between.
        match self.times.last_mut() {
            Some(last) if last.0 == at => {
                last.1 += answered;
                last.2 += clients;
            }
            _ => {
                if self.times.len() == KEPT {
                    self.gather();
                }
                self.times.push((into(self.fineness), answered, clients));
            }
        }
    }

    /// Puts the times into bins, the finest of which there are no more than are told.
    fn gather(&mut self) {
        self.times.sort_unstable();
        let needed = finest_within(self.times.iter().map(|&(at, ..)| at), MOST_ROWS);
        let fineness = self.fineness.map_or(needed, |fineness| fineness.min(needed));
        self.fineness = Some(fineness);
        let mut gathered: Vec<(u64, u64, u64)> = Vec::with_capacity(MOST_ROWS);
        for &(at, answered, clients) in &self.times {
            let at = edge(at, fineness);
            match gathered.last_mut() {
                Some(last) if last.0 == at => {
                    last.1 += answered;
                    last.2 += clients;
                }
                _ => gathered.push((at, answered, clients)),
            }
        }
        self.times.clear();
        self.times.extend(gathered);
    }

    /// The rows of one group and event; `clients_of` clients there are.
    pub(crate) fn rows(&mut self, group: u32, event: u32, clients_of: u32) -> Vec<ReportedRow> {
        if self.arrivals == 0 {
            return Vec::new();
        }
        self.gather();
        let (mut answered, mut clients) = (0, 0);
        let row = |&(t_us, more, completed): &(u64, u64, u64)| {
            answered += more;
            clients += completed;
            ReportedRow { group, event, t_us, answered, clients: clients as u32, of: self.arrivals, clients_of }
        };
        let mut rows: Vec<_> = self.times.iter().map(row).collect();
        if rows.is_empty() {
            // Nothing was answered: that is told as well.
            rows.push(ReportedRow { group, event, t_us: 0, answered: 0, clients: 0, of: self.arrivals, clients_of });
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_few_and_end_with_the_totals() {
        let mut reported = Reported::default();
        for n in 0..100_000_u64 {
            reported.arrival();
            reported.answered(n * 997);
            if n % 10 == 0 {
                reported.completed(n * 997);
            }
        }
        reported.arrival();
        let rows = reported.rows(3, 1, 20_000);
        assert!(rows.len() <= MOST_ROWS, "{} rows", rows.len());
        assert!(reported.times.capacity() <= 2 * KEPT);
        let last = rows.last().unwrap();
        assert_eq!((last.group, last.event, last.answered, last.of), (3, 1, 100_000, 100_001));
        assert_eq!((last.clients, last.clients_of), (10_000, 20_000));
        for pair in rows.windows(2) {
            assert!(pair[0].t_us < pair[1].t_us && pair[0].answered <= pair[1].answered);
        }
        // Half of them had been answered at half of the time, as far as a bin tells.
        let half = rows.iter().find(|row| row.answered >= 50_000).unwrap();
        assert!((half.t_us as f64 / (50_000.0 * 997.0) - 1.0).abs() < 0.05, "{}", half.t_us);
    }

    #[test]
    fn few_answers_are_told_to_within_a_64th() {
        let mut reported = Reported::default();
        for at in [660_130, 1_320_260] {
            reported.arrival();
            reported.answered(at);
        }
        let rows = reported.rows(0, 0, 1);
        assert_eq!(rows.len(), 2);
        assert!(rows[0].t_us >= 660_130 && rows[0].t_us <= 660_130 + 660_130 / 64);
        assert!(Reported::default().rows(0, 0, 1).is_empty());
    }
}

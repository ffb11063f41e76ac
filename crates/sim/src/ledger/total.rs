//! What the clients of each group did, all together.

use millpond_control::{Instant, Span};

use super::{histogram::Histogram, reported::Reported, span};
use crate::outcome::{DelayRow, HistogramRow, ReportedRow};

/// What a time was taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// From the arrival of a request to its delivery to the application at the far side.
    OneWay,
    /// From the first copy of a request to its first arrival at the application at its far side.
    Crossing,
    /// From the arrival of a request to its answer.
    Answer,
    /// From the arrival of a request until its first copy left.
    Wait,
    /// From the first copy of an exchange to its answer.
    Rtt,
    /// What an exchange waits for an answer after its first copy.
    FirstWait,
    /// What the weak estimator of a client varies by, after an exchange that was sent again.
    WeakVariation,
}

impl Kind {
    const NAMES: [&'static str; 7] = ["one_way", "crossing", "answer", "wait", "rtt", "first_wait", "weak_variation"];
}

#[derive(Clone, Debug, Default)]
struct Total {
    /// Answered exchanges by number of copies: those of first batches, and the others.
    copies: [Vec<u64>; 2],
    times: [Histogram; Kind::NAMES.len()],
    /// By event.
    reported: Vec<Reported>,
}

/// The totals of all groups.
#[derive(Clone, Debug)]
pub(super) struct Totals(Vec<Total>);

impl Totals {
    pub(super) fn new(groups: usize) -> Self {
        Self(vec![Total::default(); groups])
    }

    /// A time was taken.
    #[inline]
    pub(super) fn took(&mut self, group: u32, kind: Kind, now: Instant, since: Instant) {
        self.add(group, kind, span(now, since));
    }

    /// A time that a controller keeps was looked at.
    #[inline]
    pub(super) fn kept(&mut self, group: u32, kind: Kind, time: Span) {
        self.add(group, kind, u64::from(time.as_micros()));
    }

    #[inline]
    fn add(&mut self, group: u32, kind: Kind, micros: u64) {
        if let Some(total) = self.0.get_mut(group as usize) {
            total.times[kind as usize].add(micros);
        }
    }

    /// An exchange that was answered after so many copies.
    #[inline]
    pub(super) fn answered(&mut self, group: u32, first_batch: bool, copies: u8) {
        let Some(total) = self.0.get_mut(group as usize) else { return };
        let counts = &mut total.copies[usize::from(!first_batch)];
        if counts.len() <= usize::from(copies) {
            counts.resize(usize::from(copies) + 1, 0);
        }
        counts[usize::from(copies)] += 1;
    }

    /// The books of one event.
    #[inline]
    pub(super) fn reported(&mut self, group: u32, event: u16) -> &mut Reported {
        let (group, event) = (group as usize, usize::from(event));
        let reported = &mut self.0[group].reported;
        if reported.len() <= event {
            grow(reported, event);
        }
        &mut reported[event]
    }

    pub(super) fn histogram(&self) -> Vec<HistogramRow> {
        let mut rows = Vec::new();
        for (group, total) in self.0.iter().enumerate() {
            for (first_batch, counts) in [true, false].into_iter().zip(&total.copies) {
                let filled = counts.iter().enumerate().filter(|(_, exchanges)| **exchanges > 0);
                rows.extend(filled.map(|(copies, &exchanges)| HistogramRow {
                    group: group as u32,
                    first_batch,
                    retransmissions: copies as u32 - 1,
                    exchanges,
                }));
            }
        }
        rows
    }

    pub(super) fn delays(&self) -> Vec<DelayRow> {
        let mut rows = Vec::new();
        for (group, total) in self.0.iter().enumerate() {
            for (kind, times) in Kind::NAMES.into_iter().zip(&total.times) {
                let row = |(upper_us, count)| DelayRow { group: group as u32, kind, upper_us, count };
                rows.extend(times.bins().map(row));
            }
        }
        rows
    }

    pub(super) fn rows(&mut self, clients: impl Iterator<Item = u32>) -> Vec<ReportedRow> {
        let mut rows = Vec::new();
        for ((group, total), of) in self.0.iter_mut().enumerate().zip(clients) {
            for (event, reported) in total.reported.iter_mut().enumerate() {
                rows.extend(reported.rows(group as u32, event as u32, of));
            }
        }
        rows
    }
}

/// Makes books of events up to this one.
#[cold]
fn grow(reported: &mut Vec<Reported>, event: usize) {
    reported.resize(event + 1, Reported::default());
}

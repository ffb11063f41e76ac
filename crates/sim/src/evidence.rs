//! What replies say about the round-trip time beside what the laboratory knows of it.

use millpond_control::{Evidence as Graded, Instant, Named, Sample};

use crate::{ledger::Tag, outcome::EvidenceRow};

/// One sample, judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) grade: Grade,
    /// The copy that the reply names.
    pub(crate) named: Option<u8>,
    pub(crate) sample_us: u64,
    pub(crate) true_us: u64,
}

/// How far a sample may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grade {
    Exact,
    Echoed,
    Ambiguous,
}

impl Grade {
    const ALL: [Self; 3] = [Self::Exact, Self::Echoed, Self::Ambiguous];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Echoed => "echoed",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// Exchanges that are alike.
#[derive(Clone, Copy, Default)]
struct Tally {
    exchanges: u64,
    error_us: i64,
    error_rtts: f64,
}

/// Exchanges with one number of retransmissions: by grade, and by whether the sample counts from the copy that caused
/// the reply.
type Tallies = [[Tally; 2]; Grade::ALL.len()];

/// The samples of a run, by group of clients and number of retransmissions.
pub(crate) struct Evidence {
    groups: Vec<Vec<Tallies>>,
}

impl Evidence {
    pub(crate) fn new(groups: usize) -> Self {
        Self { groups: vec![Vec::new(); groups] }
    }

    /// Judges the sample of a reply that the copy `cause` caused and that was accepted `now`. Nothing if it is no sample.
    /// It is added up if it `counts`: if its exchange was begun after the warm-up.
    #[inline]
    pub(crate) fn take(
        &mut self,
        group: u32,
        sample: &Sample,
        cause: &Tag,
        now: Instant,
        counts: bool,
    ) -> Option<Judged> {
        let (grade, span) = match sample.evidence() {
            Graded::Exact(rtt) => (Grade::Exact, rtt.span()),
            Graded::Echoed { at_most } => (Grade::Echoed, at_most),
            Graded::Ambiguous { at_most, .. } => (Grade::Ambiguous, at_most),
            Graded::None => return None,
        };
        let retransmissions = usize::from(sample.retransmissions());
        let named = match sample.named() {
            Named::Copy(copy) => Some(copy),
            Named::Nothing | Named::Further => None,
        };
        let sample_us = u64::from(span.as_micros());
        let true_us = now.as_micros() - cause.sent.as_micros();
        let judged = Judged { grade, named, sample_us, true_us };
        if !counts {
            return Some(judged);
        }
        let error = sample_us as i64 - true_us as i64;
        let tallies = self.groups.get_mut(group as usize)?;
        if tallies.len() <= retransmissions {
            tallies.resize(retransmissions + 1, Tallies::default());
        }
        let tally = &mut tallies[retransmissions][grade as usize][usize::from(named.unwrap_or(0) == cause.copy)];
        tally.exchanges += 1;
        tally.error_us += error;
        if error != 0 && true_us > 0 {
            tally.error_rtts += error as f64 / true_us as f64;
        }
        Some(judged)
    }

    /// Every kind of sample that there was.
    pub(crate) fn rows(&self) -> Vec<EvidenceRow> {
        let mut rows = Vec::new();
        for (group, of_group) in self.groups.iter().enumerate() {
            for (retransmissions, tallies) in of_group.iter().enumerate() {
                for (grade, right) in Grade::ALL.into_iter().flat_map(|grade| [(grade, true), (grade, false)]) {
                    let tally = tallies[grade as usize][usize::from(right)];
                    rows.push(EvidenceRow {
                        group: group as u32,
                        retransmissions: retransmissions as u32,
                        grade: grade.name(),
                        right,
                        exchanges: tally.exchanges,
                        error_us: tally.error_us,
                        error_rtts: tally.error_rtts,
                    });
                }
            }
        }
        rows.retain(|row| row.exchanges > 0);
        rows
    }
}

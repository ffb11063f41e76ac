//! What holds for the books of every run, and what they say.

use millpond_sim::{FlowRow, Outcome};

/// A number of all rows together.
pub(crate) fn sum(outcome: &Outcome, what: fn(&FlowRow) -> u32) -> u32 {
    outcome.flows.iter().map(what).sum()
}

/// Every request ended in exactly one way, in each row and in the summary.
pub(crate) fn balances(outcome: &Outcome) {
    for row in &outcome.flows {
        assert_eq!(row.arrivals, row.answered + row.requests_failed + row.never_finished, "client {}", row.flow);
        assert!(
            row.delivered <= row.arrivals - row.dropped_source && row.answered <= row.delivered,
            "client {}",
            row.flow
        );
    }
    let summary = &outcome.summary;
    assert_eq!(summary.arrivals, summary.answered + summary.failed + summary.never_finished);
    assert_eq!(summary.arrivals, u64::from(sum(outcome, |row| row.arrivals)));
    for row in &outcome.reported {
        assert!(row.answered <= row.of && row.clients <= row.clients_of);
    }
}

/// How many delays of a kind there are, and their mean by the upper edges of the bins.
pub(crate) fn delays(outcome: &Outcome, kind: &str) -> (u64, f64) {
    let rows = || outcome.delays.iter().filter(|row| row.kind == kind);
    let count: u64 = rows().map(|row| row.count).sum();
    (count, rows().map(|row| row.upper_us as f64 * row.count as f64).sum::<f64>() / count as f64)
}

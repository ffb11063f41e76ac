//! Healthy, strained, or collapsed: by the share of what the downlink carried that was of use.

use serde::Serialize;

use crate::findings::Counts;

/// How a network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// Four fifths and more of what was carried was of use.
    Healthy,
    /// Less, or more than a fifth of all transmissions were spurious.
    Strained,
    /// Less than a third of what was carried was of use: it carries answers to transmissions whose answer had come.
    Collapse,
    /// It may be strained: what decides is not seen from here.
    Unknown,
}

/// The share of the answers' bytes that were of use.
pub(crate) fn goodput_ratio(useful_bytes: f64, carried_bytes: f64) -> Option<f64> {
    (carried_bytes > 0.0).then(|| (useful_bytes / carried_bytes).min(1.0))
}

/// By counts and the goodput ratio.
pub(crate) fn health(counts: &Counts, goodput: Option<f64>, hidden_strain: bool) -> Health {
    let all = counts.transmissions.max(1) as f64;
    let resent = counts.retransmissions() as f64;
    let unknown = counts.unknown as f64 / resent.max(1.0);
    let known = (counts.spurious + counts.needed) as f64;
    let spurious = counts.spurious as f64 * if known > 0.0 { 1.0 + counts.unknown as f64 / known } else { 1.0 };
    let goodput = goodput.unwrap_or(1.0);
    if unknown > 0.3 && resent > 0.15 * all || goodput >= 0.8 && hidden_strain {
        Health::Unknown
    } else if goodput < 1.0 / 3.0 {
        Health::Collapse
    } else if goodput < 0.8 || spurious > 0.2 * all {
        Health::Strained
    } else {
        Health::Healthy
    }
}

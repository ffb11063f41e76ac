//! Ageing: an estimate that was not confirmed for long drifts back towards the default.
//!
//! There is no timer: the drift is computed from the silence when the estimate is next used.

use crate::{
    estimator::Share,
    layout::laid_out,
    time::{Instant, Span},
};

const ONE: Span = Span::from_secs(1);
const TWO: Span = Span::from_secs(2);
const THREE: Span = Span::from_secs(3);

/// How an unconfirmed estimate ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ageing {
    /// It does not.
    None,
    /// Below 1 s: doubles after each silence of more than 16 times itself. Above 3 s: becomes 1 s plus half of itself
    /// after each silence of more than 4 times itself. Steps accumulate, each using up its own part of the silence
    /// (draft-ietf-core-cocoa-03 §4.3, which permits to compute them cumulatively at the next use).
    Draft03,
    /// Below 1 s: becomes 1 s after a silence of more than 16 times itself. Above 2 s: moves half way to 2 s after
    /// more than 30 s of silence, one step for each first transmission ("CoCoA+: An Advanced Congestion Control
    /// Mechanism for CoAP", 2015, §3).
    CocoaPlus,
    /// Below 1 s: becomes 1 s after a silence of more than 16 times itself. Nothing else ages (the choice that the
    /// same paper, §2, made from those of draft-bormann-core-cocoa-00).
    Cocoa00,
    /// Below 1 s: doubles after each silence of more than 16 times itself, step by step. Nothing else ages (another of
    /// the draft's choices).
    Cocoa00Doubling,
    /// Below 1 s: becomes an eighth of the silence, if that is longer, after one of more than 16 times itself. Nothing
    /// else ages (another of the draft's choices).
    Cocoa00Eighth,
}

laid_out!(Ageing = None | Draft03 | CocoaPlus | Cocoa00 | Cocoa00Doubling | Cocoa00Eighth);

impl Ageing {
    /// The estimate at `now` and the point from which the next silence counts, given the estimate as it stood at
    /// `updated`.
    #[must_use]
    pub fn apply(self, estimate: Span, updated: Instant, now: Instant) -> (Span, Instant) {
        match self {
            Self::None => (estimate, updated),
            Self::Draft03 => in_steps(estimate, updated, now, THREE),
            Self::CocoaPlus => cocoa_plus(estimate, updated, now),
            Self::Cocoa00 => to_a_second(estimate, updated, now),
            Self::Cocoa00Doubling => in_steps(estimate, updated, now, Span::MAX),
            Self::Cocoa00Eighth => to_an_eighth(estimate, updated, now),
        }
    }
}

/// `updated` plus `factor` times `estimate`, without the 71-minute limit of a span.
fn silence_ends(updated: Instant, estimate: Span, factor: u64) -> Instant {
    let silence = u64::from(estimate.as_micros()).saturating_mul(factor);
    Instant::from_micros(updated.as_micros().saturating_add(silence))
}

/// Values above `large` age too.
fn in_steps(mut estimate: Span, mut updated: Instant, now: Instant, large: Span) -> (Span, Instant) {
    loop {
        let (factor, aged) = if estimate == Span::ZERO {
            return (estimate, updated);
        } else if estimate < ONE {
            (16, estimate.doubled())
        } else if estimate > large {
            (4, ONE.plus(Share::HALF.blend(Span::ZERO, estimate)))
        } else {
            return (estimate, updated);
        };
        let end = silence_ends(updated, estimate, factor);
        if now <= end {
            return (estimate, updated);
        }
        (estimate, updated) = (aged, end);
    }
}

fn to_a_second(estimate: Span, updated: Instant, now: Instant) -> (Span, Instant) {
    if is_small_and_stale(estimate, updated, now) { (ONE, now) } else { (estimate, updated) }
}

fn to_an_eighth(estimate: Span, updated: Instant, now: Instant) -> (Span, Instant) {
    if is_small_and_stale(estimate, updated, now) {
        (estimate.max(Share::EIGHTH.blend(Span::ZERO, now.since(updated))), now)
    } else {
        (estimate, updated)
    }
}

fn cocoa_plus(estimate: Span, updated: Instant, now: Instant) -> (Span, Instant) {
    if estimate > TWO && now.since(updated) > Span::from_secs(30) {
        (Share::HALF.blend(estimate, TWO), now)
    } else {
        to_a_second(estimate, updated, now)
    }
}

fn is_small_and_stale(estimate: Span, updated: Instant, now: Instant) -> bool {
    estimate < ONE && now > silence_ends(updated, estimate, 16)
}

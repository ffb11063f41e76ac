//! What a transmission was.

use serde::Serialize;
use smallvec::SmallVec;

/// What a transmission was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The first of its exchange that was seen.
    First,
    /// An answer to one before it reached its device.
    Spurious,
    /// Nothing before it came to an answer.
    Needed,
    /// Both are possible.
    Unknown,
}

/// A verdict and how often such a one is right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// What it was.
    pub verdict: Verdict,
    /// The share of such verdicts that were right on drawn scenarios: 0.5 if nothing is known.
    pub confidence: f64,
}

/// Of an exchange, one for each of its transmissions.
pub(crate) type Judgements = SmallVec<[Judged; 1]>;

impl Judged {
    pub(crate) const FIRST: Self = Self { verdict: Verdict::First, confidence: 1.0 };
    pub(crate) const UNKNOWN: Self = Self { verdict: Verdict::Unknown, confidence: 0.5 };

    pub(crate) const fn spurious(confidence: f64) -> Self {
        Self { verdict: Verdict::Spurious, confidence }
    }

    pub(crate) const fn needed(confidence: f64) -> Self {
        Self { verdict: Verdict::Needed, confidence }
    }
}

//! Figures that say how far they can be believed.

use serde::Serialize;

/// How far a figure can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Measured: on drawn scenarios no such figure was off by more than 3 %.
    Exact,
    /// The true value is no less.
    AtLeast,
    /// The true value is no more.
    AtMost,
    /// The most likely value.
    Estimate,
    /// Cannot be seen from here.
    Unknown,
}

/// A figure, its grade, and why it has that grade.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// In the unit that the name of the field says; `None` if it is unknown.
    pub value: Option<f64>,
    /// How far it can be believed.
    pub grade: Grade,
    /// Why, in a few words.
    pub because: String,
}

impl Figure {
    pub(crate) fn exact(value: f64, because: impl Into<String>) -> Self {
        Self { value: Some(value), grade: Grade::Exact, because: because.into() }
    }

    pub(crate) fn at_least(value: f64, because: impl Into<String>) -> Self {
        Self { value: Some(value), grade: Grade::AtLeast, because: because.into() }
    }

    pub(crate) fn at_most(value: f64, because: impl Into<String>) -> Self {
        Self { value: Some(value), grade: Grade::AtMost, because: because.into() }
    }

    pub(crate) fn estimate(value: f64, because: impl Into<String>) -> Self {
        Self { value: Some(value), grade: Grade::Estimate, because: because.into() }
    }

    pub(crate) fn unknown(because: impl Into<String>) -> Self {
        Self { value: None, grade: Grade::Unknown, because: because.into() }
    }
}

//! What lies beneath an error.

use std::{error, fmt, sync::Arc};

/// The error of another library or of the system that lies beneath an [`Error`](crate::Error). Two are equal if they read alike.
#[derive(Clone, Debug)]
pub struct Cause(Arc<dyn error::Error + Send + Sync>);

impl Cause {
    pub(crate) fn of(error: impl error::Error + Send + Sync + 'static) -> Option<Self> {
        Some(Self(Arc::new(error)))
    }

    /// The error itself, for `downcast_ref`.
    #[must_use]
    pub fn get(&self) -> &(dyn error::Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl error::Error for Cause {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.0.source()
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Cause {}

/// Why something did not come about: in words, and the error that lies beneath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) reason: String,
    pub(crate) source: Option<Cause>,
}

impl Why {
    /// For this, in these words.
    pub(crate) fn of(reason: impl Into<String>, error: impl error::Error + Send + Sync + 'static) -> Self {
        Self { reason: reason.into(), source: Cause::of(error) }
    }

    /// For this, in its own words.
    pub(crate) fn said_by(error: impl error::Error + Send + Sync + 'static) -> Self {
        Self::of(error.to_string(), error)
    }

    /// With other words about it.
    #[allow(dead_code, reason = "for bodies that are values")]
    pub(crate) fn said(self, say: impl FnOnce(&str) -> String) -> Self {
        Self { reason: say(&self.reason), ..self }
    }
}

/// With nothing beneath.
impl<T: Into<String>> From<T> for Why {
    fn from(reason: T) -> Self {
        Self { reason: reason.into(), source: None }
    }
}

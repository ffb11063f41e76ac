//! How far requests with long bodies have come.

use std::{fmt, sync::Arc};

use crate::transfer;

/// How far a request has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes of its body that the other side has acknowledged: the server, and of a server's stream the client.
    pub sent: usize,
    /// Bytes of the answer's body so far.
    pub received: usize,
    /// Bytes of that body in all, if the server said so.
    pub total: Option<usize>,
}

impl From<transfer::Progress> for Progress {
    fn from(below: transfer::Progress) -> Self {
        let total = below.total.and_then(|total| usize::try_from(total).ok());
        Self { sent: below.sent, received: below.received, total }
    }
}

/// Who is told.
#[derive(Clone)]
pub(crate) struct OnProgress(pub(crate) Arc<dyn Fn(&Progress) + Send + Sync>);

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnProgress")
    }
}

/// A request whose progress somebody wants to know.
#[derive(Debug)]
pub(crate) struct Watched {
    hook: OnProgress,
    told: Progress,
}

impl Watched {
    pub(crate) const fn new(hook: OnProgress) -> Self {
        Self { hook, told: Progress { sent: 0, received: 0, total: None } }
    }

    /// It has come so far.
    pub(crate) fn tell(&mut self, now: Progress) {
        if now != self.told {
            self.told = now;
            (self.hook.0)(&now);
        }
    }
}

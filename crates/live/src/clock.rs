//! Monotone time for the state machines below.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use millpond_control::Instant;

/// Counts microseconds since it was made. Runs on tokio's clock, so that a test can pause it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: tokio::time::Instant,
}

impl Clock {
    /// From now on.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Instant {
        let micros = self.origin.elapsed().as_micros();
        Instant::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// When it was made, on the standard library's clock.
    pub(crate) fn origin(&self) -> std::time::Instant {
        self.origin.into_std()
    }

    /// A point of the state machines as tokio can sleep until it. Points beyond some thirty years are one.
    pub(crate) fn at(&self, point: Instant) -> tokio::time::Instant {
        const LONGEST: u64 = 1_000_000_000_000_000;
        self.origin + Duration::from_micros(point.as_micros().min(LONGEST))
    }
}

/// Seconds of the time of day since 1970, for what outlives this process; zero before.
#[expect(clippy::disallowed_methods, reason = "what is remembered over a restart ages by the time of day")]
pub(crate) fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A point as the time since the clock started.
pub(crate) const fn since_start(point: Instant) -> Duration {
    Duration::from_micros(point.as_micros())
}

/// A span of the state machines as a duration.
pub(crate) const fn duration(span: millpond_control::Span) -> Duration {
    Duration::from_micros(span.as_micros() as u64)
}

/// A duration as a span; spans end at 71 minutes.
pub(crate) fn span(duration: Duration) -> millpond_control::Span {
    millpond_control::Span::from_micros(u32::try_from(duration.as_micros()).unwrap_or(u32::MAX))
}

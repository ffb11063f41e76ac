//! When requests of a load start.

use std::time::Duration;

/// Closed or open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each client asks again once it was answered.
    Closed,
    /// Requests start at even intervals whether earlier ones were answered or not.
    Open {
        /// Requests a second, all clients together.
        rate: f64,
        /// The rate grows from 0 over this time.
        ramp: Duration,
    },
}

/// When request `index` (0 is the first) starts in an open loop, since the beginning.
///
/// While the rate grows evenly over T to R, R·t²/2T requests have started by t; from then on R a second.
#[must_use]
pub(super) fn start(index: u64, rate: f64, ramp: Duration) -> Duration {
    #[allow(clippy::cast_precision_loss, reason = "nobody starts 2^53 requests")]
    let index = index as f64;
    let ramp = ramp.as_secs_f64();
    let in_ramp = rate * ramp / 2.0;
    let seconds = if index < in_ramp { (2.0 * ramp * index / rate).sqrt() } else { (index - in_ramp) / rate + ramp };
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// How many requests are due before a time since the beginning: those whose [`start`] is earlier.
#[must_use]
pub(super) fn due(by: Duration, rate: f64, ramp: Duration) -> u64 {
    let (seconds, ramp) = (by.as_secs_f64(), ramp.as_secs_f64());
    let begun = if seconds < ramp { rate * seconds * seconds / (2.0 * ramp) } else { rate * (seconds - ramp / 2.0) };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "negative is 0, and nobody starts 2^53")]
    let whole = begun.ceil() as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_ramp_requests_start_at_even_intervals() {
        for (index, millis) in [(0, 0), (1, 10), (2, 20), (100, 1_000)] {
            assert_eq!(start(index, 100.0, Duration::ZERO).as_millis(), millis, "{index}");
        }
    }

    #[test]
    fn as_many_are_due_as_start_before() {
        for ramp in [Duration::ZERO, Duration::from_secs(10)] {
            for millis in (1..30_000).step_by(37) {
                let by = Duration::from_millis(millis) + Duration::from_micros(3);
                let due = due(by, 7.3, ramp);
                assert!(due > 0 && start(due - 1, 7.3, ramp) < by && start(due, 7.3, ramp) >= by, "{by:?} {due}");
            }
        }
        assert_eq!(due(Duration::ZERO, 100.0, Duration::ZERO), 0);
    }

    #[test]
    fn a_ramp_reaches_the_rate_with_half_as_many_requests() {
        let ramp = Duration::from_secs(10);
        assert_eq!(start(0, 100.0, ramp), Duration::ZERO);
        assert_eq!(start(125, 100.0, ramp), Duration::from_secs(5));
        assert_eq!(start(500, 100.0, ramp), ramp);
        assert_eq!(start(600, 100.0, ramp), Duration::from_secs(11));
        assert!((1..2_000).all(|index| start(index - 1, 100.0, ramp) < start(index, 100.0, ramp)));
    }
}

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
    fn a_ramp_reaches_the_rate_with_half_as_many_requests() {
        let ramp = Duration::from_secs(10);
        assert_eq!(start(0, 100.0, ramp), Duration::ZERO);
        assert_eq!(start(125, 100.0, ramp), Duration::from_secs(5));
        assert_eq!(start(500, 100.0, ramp), ramp);
        assert_eq!(start(600, 100.0, ramp), Duration::from_secs(11));
        assert!((1..2_000).all(|index| start(index - 1, 100.0, ramp) < start(index, 100.0, ramp)));
    }
}

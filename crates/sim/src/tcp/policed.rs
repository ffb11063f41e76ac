//! BBR's estimator for paths whose rate is policed: two loss-bounded intervals of equal bandwidth.

use super::Micros;

/// The estimator. Rates in segments per microsecond.
#[derive(Debug, Default)]
pub(super) struct Policed {
    sampling: bool,
    in_use: bool,
    bandwidth: f64,
    /// Rounds of the interval, or rounds in use.
    rounds: u32,
    from_delivered: u64,
    from_lost: u64,
    from: Micros,
}

/// What an acknowledgement says of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Micros,
    /// Segments so far.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// It is a loss that told it.
    pub(super) loses: bool,
    pub(super) round_starts: bool,
    pub(super) app_limited: bool,
    /// Bytes of a segment.
    pub(super) mss: f64,
}

impl Policed {
    const LEAST_ROUNDS: u32 = 4;
    const MOST_ROUNDS: u32 = 16;
    const ROUNDS_IN_USE: u32 = 48;
    /// Lost per delivered from which a rate limit is suspected: 50/256.
    const LOSS: f64 = 50.0 / 256.0;
    const LIKENESS: f64 = 1.0 / 8.0;
    /// Two rates no further apart than this are alike, in bytes per microsecond.
    const NEAR: f64 = 500.0 / 1e6;

    /// The rate at which the path is policed, while that is believed.
    pub(super) fn bandwidth(&self) -> Option<f64> {
        self.in_use.then_some(self.bandwidth)
    }

    /// One more round at that rate; true if it was the last and all is forgotten.
    pub(super) fn spend_round(&mut self) -> bool {
        self.rounds += 1;
        let is_last = self.rounds >= Self::ROUNDS_IN_USE;
        if is_last {
            *self = Self::default();
        }
        is_last
    }

    /// Goes on with the interval, or begins one with a loss; true if the path is found to be policed.
    pub(super) fn sample(&mut self, seen: &Seen) -> bool {
        if !self.sampling {
            if !seen.loses {
                return false;
            }
            self.begin_interval(seen);
            self.sampling = true;
        }
        if seen.app_limited {
            *self = Self::default();
            return false;
        }
        self.rounds += u32::from(seen.round_starts);
        if self.rounds < Self::LEAST_ROUNDS {
            return false;
        }
        if self.rounds > Self::MOST_ROUNDS {
            *self = Self::default();
            return false;
        }
        let delivered = (seen.delivered - self.from_delivered) as f64;
        let lost = (seen.lost - self.from_lost) as f64;
        let took = seen.now.saturating_sub(self.from) as f64;
        if !seen.loses || delivered == 0.0 || lost < Self::LOSS * delivered || took < 1_000.0 {
            return false;
        }
        let bandwidth = delivered / took;
        let apart = (bandwidth - self.bandwidth).abs();
        let alike = apart <= Self::LIKENESS * self.bandwidth || apart * seen.mss <= Self::NEAR;
        if self.bandwidth > 0.0 && alike {
            self.bandwidth = (bandwidth + self.bandwidth) / 2.0;
            self.in_use = true;
            self.rounds = 0;
            return true;
        }
        self.bandwidth = bandwidth;
        self.begin_interval(seen);
        false
    }

    fn begin_interval(&mut self, seen: &Seen) {
        self.from = seen.now;
        (self.from_delivered, self.from_lost) = (seen.delivered, seen.lost);
        self.rounds = 0;
    }
}

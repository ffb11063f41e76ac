//! The retransmission timeout of RFC 6298.

use super::{Micros, TimerRule, Timing};

/// Smoothed round-trip time, its variation, and the timeout in force.
#[derive(Clone, Debug)]
pub(super) struct Timeout {
    timing: Timing,
    srtt: f64,
    rttvar: f64,
    measured: bool,
    in_force: Micros,
}

impl Timeout {
    pub(super) fn new(timing: Timing) -> Self {
        Self { timing, srtt: 0.0, rttvar: 0.0, measured: false, in_force: timing.initial }
    }

    /// A round-trip time that certainly belongs to one copy. Ends any backing off.
    pub(super) fn sample(&mut self, rtt: Micros) {
        let rtt = rtt as f64;
        if self.measured {
            self.rttvar += ((self.srtt - rtt).abs() - self.rttvar) / 4.0;
            self.srtt += (rtt - self.srtt) / 8.0;
        } else {
            (self.srtt, self.rttvar, self.measured) = (rtt, rtt / 2.0, true);
        }
        let (min, margin) = (self.timing.min as f64, 4.0 * self.rttvar);
        let timeout = match self.timing.rule {
            TimerRule::Rfc6298 => (self.srtt + margin).max(min),
            TimerRule::Linux => self.srtt + margin.max(min),
        };
        self.in_force = (timeout.round() as Micros).min(self.timing.max);
    }

    /// The timer ran out.
    pub(super) fn back_off(&mut self) {
        self.in_force = self.in_force.saturating_mul(2).min(self.timing.max);
    }

    /// A segment of the handshake was lost: data starts with at least 3 s (RFC 6298 §5.7), unless a sample says otherwise.
    pub(super) fn after_lost_syn(&mut self) {
        self.in_force = 3_000_000.min(self.timing.max);
    }

    pub(super) fn in_force(&self) -> Micros {
        self.in_force
    }

    pub(super) fn srtt(&self) -> Option<Micros> {
        self.measured.then_some(self.srtt.round() as Micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: Timing = Timing { rule: TimerRule::Linux, initial: 2_000_000, min: 200_000, max: 120_000_000 };

    #[test]
    fn the_two_rules_differ_in_what_the_floor_is_under() {
        let mut linux = Timeout::new(LINUX);
        let mut rfc = Timeout::new(Timing { rule: TimerRule::Rfc6298, min: 1_000_000, ..LINUX });
        for _ in 0..200 {
            linux.sample(660_000);
            rfc.sample(660_000);
        }
        assert_eq!(linux.in_force(), 860_000);
        assert_eq!(rfc.in_force(), 1_000_000);
    }

    #[test]
    fn the_first_sample_and_the_one_after_follow_the_rfc() {
        let mut timeout = Timeout::new(LINUX);
        timeout.sample(800_000);
        assert_eq!((timeout.srtt(), timeout.in_force()), (Some(800_000), 2_400_000));
        timeout.sample(1_000_000);
        assert_eq!((timeout.srtt(), timeout.in_force()), (Some(825_000), 2_225_000));
    }

    #[test]
    fn backing_off_lasts_until_a_sample_and_ends_at_the_longest() {
        let mut timeout = Timeout::new(LINUX);
        for _ in 0..10 {
            timeout.back_off();
        }
        assert_eq!(timeout.in_force(), 120_000_000);
        timeout.sample(600_000);
        assert_eq!(timeout.in_force(), 1_800_000);
    }
}

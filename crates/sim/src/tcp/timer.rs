//! The retransmission timeout: RFC 6298, and what Linux makes of it.

use super::{Micros, TimerRule, Timing};

/// Smoothed round-trip time, its variation, and the timeout in force.
#[derive(Clone, Debug)]
pub(super) struct Timeout {
    timing: Timing,
    measured: bool,
    srtt: f64,
    /// The variation in use.
    rttvar: f64,
    window: Window,
    in_force: Micros,
}

/// What Linux knows of the variation within one round trip (P. Sarolahti, A. Kuznetsov: "Congestion Control in Linux TCP",
/// USENIX 2002, and `tcp_rtt_estimator` of its kernel).
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// The smoothed deviation.
    mdev: f64,
    /// The largest of it in this round trip.
    most: f64,
    /// The round trip is over once more than these bytes are acknowledged.
    ends: u64,
}

impl Timeout {
    pub(super) fn new(timing: Timing) -> Self {
        Self { timing, measured: false, srtt: 0.0, rttvar: 0.0, window: Window::default(), in_force: timing.initial }
    }

    /// A round-trip time that certainly belongs to one copy, when all bytes before `una` are acknowledged and all before
    /// `next` were sent. Ends any backing off.
    pub(super) fn sample(&mut self, rtt: Micros, una: u64, next: u64) {
        let (rtt, min) = (rtt as f64, self.timing.min as f64);
        let timeout = match self.timing.rule {
            TimerRule::Rfc6298 => {
                self.learn(rtt);
                (self.srtt + 4.0 * self.rttvar).max(min)
            }
            TimerRule::Linux => {
                self.learn_as_linux(rtt, una, next);
                self.srtt + 4.0 * self.rttvar
            }
        };
        self.measured = true;
        self.in_force = (timeout.round() as Micros).min(self.timing.max);
    }

    /// RFC 6298 §2.
    fn learn(&mut self, rtt: f64) {
        if self.measured {
            self.rttvar += ((self.srtt - rtt).abs() - self.rttvar) / 4.0;
            self.srtt += (rtt - self.srtt) / 8.0;
        } else {
            (self.srtt, self.rttvar) = (rtt, rtt / 2.0);
        }
    }

    /// A fall of the round-trip time hardly raises the deviation, and the variation in use falls only once a round trip. It
    /// is never below a quarter of the least timeout.
    fn learn_as_linux(&mut self, rtt: f64, una: u64, next: u64) {
        let least = self.timing.min as f64 / 4.0;
        let window = &mut self.window;
        if !self.measured {
            let mdev = rtt / 2.0;
            (self.srtt, self.rttvar) = (rtt, mdev.max(least));
            *window = Window { mdev, most: self.rttvar, ends: next };
            return;
        }
        let error = rtt - self.srtt;
        self.srtt += error / 8.0;
        let gain = if error < -window.mdev { 1.0 / 32.0 } else { 1.0 / 4.0 };
        window.mdev += (error.abs() - window.mdev) * gain;
        if window.mdev > window.most {
            window.most = window.mdev;
            self.rttvar = self.rttvar.max(window.most);
        }
        if una > window.ends {
            self.rttvar -= (self.rttvar - window.most).max(0.0) / 4.0;
            (window.ends, window.most) = (next, least);
        }
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
        for sent in 0..200 {
            linux.sample(660_000, sent, sent);
            rfc.sample(660_000, sent, sent);
        }
        assert_eq!(linux.in_force(), 860_000);
        assert_eq!(rfc.in_force(), 1_000_000);
    }

    #[test]
    fn the_first_sample_and_the_one_after_follow_the_rfc() {
        let mut timeout = Timeout::new(Timing { rule: TimerRule::Rfc6298, ..LINUX });
        timeout.sample(800_000, 0, 0);
        assert_eq!((timeout.srtt(), timeout.in_force()), (Some(800_000), 2_400_000));
        timeout.sample(1_000_000, 1, 1);
        assert_eq!((timeout.srtt(), timeout.in_force()), (Some(825_000), 2_225_000));
    }

    /// Every sample ends a round trip: worked by hand from the steps of the kernel.
    #[test]
    fn linux_is_slow_to_believe_in_less_variation() {
        let mut timeout = Timeout::new(LINUX);
        let steps = [
            (800, 2_400_000),
            (1_000, 2_425_000),
            (600, 2_315_625),
            (600, 2_199_609),
            (2_400, 3_468_311),
            (800, 3_334_491),
        ];
        for (sent, (rtt, expected)) in steps.into_iter().enumerate() {
            timeout.sample(rtt * 1_000, sent as u64, sent as u64);
            assert_eq!(timeout.in_force(), expected, "after {rtt} ms");
        }
    }

    /// Within a round trip the variation only rises.
    #[test]
    fn linux_lowers_the_variation_once_a_round_trip() {
        let mut timeout = Timeout::new(LINUX);
        timeout.sample(800_000, 1, 10);
        for acknowledged in 2..=10 {
            timeout.sample(800_000, acknowledged, 20);
            assert_eq!(timeout.in_force(), 800_000 + 4 * 400_000);
        }
        timeout.sample(800_000, 11, 20);
        assert_eq!(timeout.in_force(), 800_000 + 4 * 400_000, "the first sample belongs to the first round trip");
        timeout.sample(800_000, 21, 30);
        assert!(timeout.in_force() < 800_000 + 4 * 400_000);
    }

    #[test]
    fn backing_off_lasts_until_a_sample_and_ends_at_the_longest() {
        let mut timeout = Timeout::new(LINUX);
        for _ in 0..10 {
            timeout.back_off();
        }
        assert_eq!(timeout.in_force(), 120_000_000);
        timeout.sample(600_000, 0, 0);
        assert_eq!(timeout.in_force(), 1_800_000);
    }
}

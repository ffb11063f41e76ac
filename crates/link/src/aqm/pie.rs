//! Proportional Integral controller Enhanced, RFC 8033: drops packets as they come, with a probability that follows how long packets
//! wait and whether that grows.

use crate::config::PieRules;
use millpond_control::{ChanceSeed, Purpose};

/// 1, as probabilities are kept here.
const ONE: i128 = 1 << 60;
/// The gains of section 4.2, alpha 1/8 and beta 5/4 for each second, in thousandths.
const ALPHA: i128 = 125;
const BETA: i128 = 1_250;
/// Below so many parts of a million the probability changes by only so much of it, section 4.2.
const SCALES: [(i128, i128); 6] = [(1, 2_048), (10, 512), (100, 128), (1_000, 32), (10_000, 8), (100_000, 2)];

/// The state of sections 4 and 5. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pie {
    rules: PieRules,
    seed: ChanceSeed,
    number: u32,
    /// The probability of a drop.
    probability: i128,
    /// How long the packet that was taken out last had waited, or nothing if none is left; and the same at the latest update.
    delay: u64,
    delay_before: u64,
    /// For how long nothing is dropped.
    burst_allowance: u64,
    /// Probabilities since the latest drop, section 5.4.
    accumulated: i128,
    next_update: u64,
}

impl Pie {
    pub(super) fn new(rules: PieRules, seed: ChanceSeed, number: u32) -> Self {
        let burst_allowance = u64::from(rules.max_burst.as_micros());
        let next_update = u64::from(rules.update.as_micros());
        Self {
            rules,
            seed,
            number,
            probability: 0,
            delay: 0,
            delay_before: 0,
            burst_allowance,
            accumulated: 0,
            next_update,
        }
    }

    /// Whether packet `number` of the link, which comes at `now`, is dropped; so many bytes wait. Sections 4.1, 4.4 and 5.4.
    pub(super) fn drops(&mut self, now: u64, number: u64, bytes: u64) -> bool {
        self.update(now);
        let is_short = self.delay_before < self.half_target() && self.probability < ONE / 5;
        if self.burst_allowance > 0 || is_short || bytes <= 2 * u64::from(self.rules.max_packet) {
            return false;
        }
        if self.probability == 0 {
            self.accumulated = 0;
        }
        self.accumulated += self.probability;
        let drops = if self.accumulated < ONE * 85 / 100 {
            false
        } else if self.accumulated >= ONE * 17 / 2 {
            true
        } else {
            let place = [self.number, number as u32, (number >> 32) as u32, super::EARLY];
            i128::from(self.seed.wide(Purpose::Loss, place) >> 4) < self.probability
        };
        if drops {
            self.accumulated = 0;
        }
        drops
    }

    /// Whether it marks in place of dropping, as long as that is rare enough; section 5.1.
    pub(super) const fn may_mark(&self) -> bool {
        self.probability <= ONE / 10
    }

    /// A packet that came at `since` was taken out at `now`, and so many bytes are left.
    pub(super) fn took(&mut self, now: u64, since: u64, left: u64) {
        self.update(now);
        self.delay = if left == 0 { 0 } else { now - since };
    }

    /// Goes through all updates before `now`.
    fn update(&mut self, now: u64) {
        let period = u64::from(self.rules.update.as_micros());
        while self.next_update < now {
            if self.is_settled() {
                // Nothing changes any more.
                let periods = (now - self.next_update).div_ceil(period);
                self.next_update += periods * period;
                return;
            }
            self.recalculate(period);
            self.next_update += period;
        }
    }

    /// Whether an update changes nothing.
    fn is_settled(&self) -> bool {
        let is_idle = self.probability == 0 && self.delay == 0 && self.delay_before == 0;
        is_idle && self.burst_allowance == u64::from(self.rules.max_burst.as_micros())
    }

    /// Section 4.2, with the cap of section 5.5 and the burst allowance of section 4.4.
    fn recalculate(&mut self, period: u64) {
        let (delay, before) = (i128::from(self.delay), i128::from(self.delay_before));
        let target = i128::from(self.rules.target.as_micros());
        // Microseconds and thousandths.
        let change = (ALPHA * (delay - target) + BETA * (delay - before)) * ONE / 1_000_000_000;
        let scale = SCALES.iter().find(|(below, _)| self.probability * 1_000_000 < below * ONE);
        let mut change = change / scale.map_or(1, |(_, scale)| *scale);
        if self.probability >= ONE / 10 {
            change = change.min(ONE / 50);
        }
        self.probability += change;
        if delay == 0 && before == 0 {
            self.probability = self.probability * 98 / 100;
        }
        self.probability = self.probability.clamp(0, ONE);
        self.burst_allowance = self.burst_allowance.saturating_sub(period);
        if self.probability == 0 && self.delay < self.half_target() && self.delay_before < self.half_target() {
            self.burst_allowance = u64::from(self.rules.max_burst.as_micros());
        }
        self.delay_before = self.delay;
    }

    fn half_target(&self) -> u64 {
        u64::from(self.rules.target.as_micros()) / 2
    }
}

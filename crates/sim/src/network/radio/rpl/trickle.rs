//! The Trickle timer (RFC 6206): who hears little news speaks ever more rarely, and who hears what does not fit speaks soon.

use millpond_control::{Chance, Instant, Span};

/// The parameters of a Trickle timer (RFC 6206, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Imin.
    pub(crate) minimum: Span,
    /// How often the interval doubles at most: Imax is Imin times 2 to the power of this.
    pub(crate) doublings: u8,
    /// k. Zero: nothing is ever suppressed (RFC 6550, section 8.3.1).
    pub(crate) redundancy: u16,
}

/// A Trickle timer that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trickle {
    /// How often the interval has doubled.
    doubled: u8,
    /// t, or never once that is over.
    speaks: Instant,
    /// The end of the interval.
    ends: Instant,
    /// c: consistent messages heard in the interval.
    heard: u16,
}

impl Trickle {
    /// A timer that begins with the shortest interval, as RPL has it (RFC 6550, section 8.3.1).
    pub(crate) fn new(now: Instant, parameters: &Parameters, chance: Chance) -> Self {
        let mut timer = Self { doubled: 0, speaks: now, ends: now, heard: 0 };
        timer.begin(now, parameters, chance);
        timer
    }

    /// An interval begins (rule 2): t lies in its second half, the end left out.
    fn begin(&mut self, now: Instant, parameters: &Parameters, chance: Chance) {
        let interval = u64::from(parameters.minimum.as_micros()) << self.doubled;
        let half = interval / 2;
        let into = half + ((u128::from(interval - half) * u128::from(chance.word())) >> 32) as u64;
        let later = |micros: u64| Instant::from_micros(now.as_micros().saturating_add(micros));
        (self.speaks, self.ends, self.heard) = (later(into), later(interval), 0);
    }

    /// When the timer is to be woken next.
    pub(crate) fn next(&self) -> Instant {
        self.speaks.min(self.ends)
    }

    /// What was due first happens; whether that is to speak.
    pub(crate) fn wake(&mut self, parameters: &Parameters, chance: Chance) -> bool {
        if self.speaks <= self.ends {
            // Rule 4.
            self.speaks = Instant::NEVER;
            return parameters.redundancy == 0 || self.heard < parameters.redundancy;
        }
        // Rule 5.
        self.doubled = self.doubled.saturating_add(1).min(parameters.doublings);
        self.begin(self.ends, parameters, chance);
        false
    }

    /// A consistent message was heard (rule 3).
    pub(crate) fn consistent(&mut self) {
        self.heard = self.heard.saturating_add(1);
    }

    /// Something was heard that does not fit (rule 6).
    pub(crate) fn inconsistent(&mut self, now: Instant, parameters: &Parameters, chance: Chance) {
        if self.doubled > 0 {
            self.doubled = 0;
            self.begin(now, parameters, chance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters = Parameters { minimum: Span::from_millis(4_096), doublings: 2, redundancy: 2 };

    fn at(millis: u64) -> Instant {
        Instant::from_micros(millis * 1_000)
    }

    /// What happens until then: when, and whether the timer speaks.
    fn until(timer: &mut Trickle, millis: u64, chance: Chance) -> Vec<(u64, bool)> {
        let mut happened = Vec::new();
        while timer.next() < at(millis) {
            let now = timer.next().as_micros() / 1_000;
            happened.push((now, timer.wake(&PARAMETERS, chance)));
        }
        happened
    }

    #[test]
    fn intervals_double_up_to_the_longest_and_each_speaks_once_in_its_second_half() {
        let mut timer = Trickle::new(at(0), &PARAMETERS, Chance::LOWEST);
        // Intervals of 4.096, 8.192, 16.384 and again 16.384 s; the lowest word is the middle of each.
        assert_eq!(
            until(&mut timer, 46_000, Chance::LOWEST),
            [
                (2_048, true),
                (4_096, false),
                (8_192, true),
                (12_288, false),
                (20_480, true),
                (28_672, false),
                (36_864, true),
                (45_056, false),
            ]
        );
        let middle = Trickle::new(at(0), &PARAMETERS, Chance::MIDDLE);
        assert_eq!(middle.next(), at(3_072));
        // The highest word is still before the end.
        let latest = Trickle::new(at(0), &PARAMETERS, Chance::HIGHEST);
        assert!(latest.next() < at(4_096) && latest.next() > at(4_095));
    }

    #[test]
    fn who_has_heard_enough_is_silent_until_the_next_interval() {
        let mut timer = Trickle::new(at(0), &PARAMETERS, Chance::LOWEST);
        timer.consistent();
        assert_eq!(until(&mut timer, 4_096, Chance::LOWEST), [(2_048, true)]);
        until(&mut timer, 4_097, Chance::LOWEST);
        timer.consistent();
        timer.consistent();
        assert_eq!(until(&mut timer, 12_288, Chance::LOWEST), [(8_192, false)]);
        // The count begins anew with the interval.
        assert_eq!(until(&mut timer, 20_481, Chance::LOWEST), [(12_288, false), (20_480, true)]);
    }

    #[test]
    fn without_a_redundancy_constant_nothing_is_suppressed() {
        let parameters = Parameters { redundancy: 0, ..PARAMETERS };
        let mut timer = Trickle::new(at(0), &parameters, Chance::LOWEST);
        (0..20).for_each(|_| timer.consistent());
        assert!(timer.wake(&parameters, Chance::LOWEST));
    }

    #[test]
    fn what_does_not_fit_makes_the_interval_the_shortest_again() {
        let mut timer = Trickle::new(at(0), &PARAMETERS, Chance::LOWEST);
        until(&mut timer, 13_000, Chance::LOWEST);
        assert_eq!(timer.next(), at(20_480));
        timer.inconsistent(at(13_000), &PARAMETERS, Chance::LOWEST);
        assert_eq!(until(&mut timer, 18_000, Chance::LOWEST), [(15_048, true), (17_096, false)]);
        // In the shortest interval it changes nothing.
        let mut timer = Trickle::new(at(0), &PARAMETERS, Chance::LOWEST);
        timer.consistent();
        let before = timer;
        timer.inconsistent(at(1_000), &PARAMETERS, Chance::HIGHEST);
        assert_eq!(timer, before);
    }
}

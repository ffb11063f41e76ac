//! A load that rises or falls over time.

use serde::{Deserialize, Serialize};

use super::Frequency;
use crate::scenario::Duration;

/// From one rate to another in a straight line, there for a while, and back if it is to go back. The last rate goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Arrivals of one client in a time, when it begins.
    pub from: Frequency,
    /// And at its end.
    pub to: Frequency,
    /// How long it takes.
    pub over: Duration,
    /// How long it stays there, if it goes back.
    pub hold: Option<Duration>,
    /// How long it takes to be where it began; left out, it stays.
    pub back: Option<Duration>,
    /// How arrivals lie in time.
    pub spacing: Spacing,
}

/// How arrivals lie in time under a rate that changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// One whenever the rate has summed up to one more; the first after a share of one that is drawn.
    #[default]
    Even,
    /// Independently of each other.
    Poisson,
}

/// Fractions of an arrival, as chance draws them.
const UNIT: f64 = 4_294_967_296.0;

impl Ramp {
    /// When the rate has summed up to so many arrivals more (in 2^-32) since a point; times in microseconds since the ramp
    /// began. Never, if it does not.
    ///
    /// Only operations that every machine rounds alike.
    pub(crate) fn reaches(&self, since: u64, arrivals: u64) -> Option<u64> {
        let mut left = arrivals as f64 / UNIT;
        let mut begins = 0.0;
        let now = since as f64 / 1e6;
        for (lasts, from, to) in self.pieces() {
            let ends = begins + lasts;
            if now < ends && lasts > 0.0 {
                let slope = if lasts.is_finite() { (to - from) / lasts } else { 0.0 };
                let (at, rest) = (now.max(begins), ends - now.max(begins));
                let rate = from + slope * (at - begins);
                let all = if lasts.is_finite() { (rate + to) / 2.0 * rest } else { f64::INFINITY };
                if rate == 0.0 && slope == 0.0 {
                    // Nothing in this piece, however long.
                } else if left <= all {
                    // The root of rate·t + slope·t²/2 = left that does not cancel.
                    let root = (rate * rate + 2.0 * slope * left).max(0.0).sqrt();
                    let micros = ((at + 2.0 * left / (rate + root)) * 1e6).round();
                    return Some((micros as u64).max(since));
                } else {
                    left -= all;
                }
            }
            begins = ends;
        }
        None
    }

    /// Its straight lines: how long in seconds, and arrivals a second at both ends.
    fn pieces(&self) -> [(f64, f64, f64); 4] {
        let seconds = |time: Option<Duration>| time.map_or(0.0, |time| time.0 as f64 / 1e6);
        let (from, to) = (self.from.0, self.to.0);
        let last = if self.back.is_some() { from } else { to };
        [
            (seconds(Some(self.over)), from, to),
            (seconds(self.hold), to, to),
            (seconds(self.back), to, from),
            (f64::INFINITY, last, last),
        ]
    }

    /// What cannot work, and the key that says so.
    pub(super) fn problem(&self) -> Option<(&'static str, String)> {
        if self.over == Duration(0) {
            return Some(("over", "0 s is a step and no ramp: write at least `1 us`".to_owned()));
        }
        if self.from.0 == 0.0 && self.to.0 == 0.0 {
            return Some(("to", "0 /s from beginning to end is no load: write a rate such as `2 /s`".to_owned()));
        }
        if self.hold.is_some() && self.back.is_none() {
            return Some((
                "hold",
                "a ramp stays where it ends unless it goes back: add `back`, or leave this out".to_owned(),
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u64 = 1 << 32;

    fn ramp(from: f64, to: f64, over: u64) -> Ramp {
        let (from, to, over) = (Frequency(from), Frequency(to), Duration(over * 1_000_000));
        Ramp { from, to, over, hold: None, back: None, spacing: Spacing::Even }
    }

    /// From nothing to 2 a second in 100 s the n-th arrival is at 10 √n s, up to 100 of them.
    #[test]
    fn a_rise_from_nothing_is_a_square_root() {
        let rise = ramp(0.0, 2.0, 100);
        for n in 1..=100_u64 {
            let exact = 1e7 * (n as f64).sqrt();
            let at = rise.reaches(0, n * ONE).unwrap() as f64;
            assert!((at - exact).abs() <= 1.0, "arrival {n}: {at} instead of {exact}");
        }
        // Then two a second.
        assert_eq!(rise.reaches(0, 104 * ONE), Some(102_000_000));
        assert_eq!(rise.reaches(101_000_000, ONE), Some(101_500_000));
    }

    /// What falls to nothing has so many arrivals and no more.
    #[test]
    fn a_fall_to_nothing_ends() {
        let fall = ramp(2.0, 0.0, 100);
        assert_eq!(fall.reaches(0, 100 * ONE), Some(100_000_000));
        assert_eq!(fall.reaches(0, 100 * ONE + ONE / 100), None);
        assert_eq!(fall.reaches(200_000_000, 1), None);
        // 75 arrivals of 100 by half of the time.
        assert_eq!(fall.reaches(0, 75 * ONE), Some(50_000_000));
    }

    /// Up, a while, and down: 50, 40 and 50 arrivals, and one second in which nothing is left.
    #[test]
    fn it_goes_back_if_it_is_to() {
        let trapezium =
            Ramp { hold: Some(Duration(20_000_000)), back: Some(Duration(50_000_000)), ..ramp(0.0, 2.0, 50) };
        assert_eq!(trapezium.reaches(0, 50 * ONE), Some(50_000_000));
        assert_eq!(trapezium.reaches(0, 70 * ONE), Some(60_000_000));
        assert_eq!(trapezium.reaches(0, 90 * ONE), Some(70_000_000));
        assert_eq!(trapezium.reaches(0, 140 * ONE), Some(120_000_000));
        assert_eq!(trapezium.reaches(0, 141 * ONE), None);
        assert_eq!(trapezium.reaches(119_999_999, ONE), None);
    }
}

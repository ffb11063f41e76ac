//! Probabilities as whole parts of 2^32, so that a draw is one integer comparison.

use core::fmt;
use millpond_control::Chance;

/// A probability in whole parts of 2^32, both 0 and 1 included.
///
/// Every decimal fraction is therefore met within 2^-33 ≈ 1.2·10^-10.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u64);

const ONE: u64 = 1 << 32;

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(ONE);

    /// `value` in `0.0..=1.0`, rounded to the nearest part; `None` outside that range and for not-a-number.
    #[must_use]
    #[expect(clippy::float_arithmetic, reason = "conversion at the rim; scaling by a power of two is exact")]
    pub fn from_f64(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then(|| Self((value * ONE as f64).round() as u64))
    }

    /// `millionths` / 1 000 000, rounded to the nearest part; `None` above one million.
    #[must_use]
    pub const fn from_millionths(millionths: u32) -> Option<Self> {
        if millionths > 1_000_000 { None } else { Some(Self((((millionths as u64) << 32) + 500_000) / 1_000_000)) }
    }

    /// The nearest binary fraction.
    #[must_use]
    #[expect(clippy::float_arithmetic, reason = "conversion at the rim; scaling by a power of two is exact")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / ONE as f64
    }

    /// In parts of 2^32.
    #[must_use]
    pub const fn parts(self) -> u64 {
        self.0
    }

    /// Whether an event of this probability happens with this random number.
    #[must_use]
    pub const fn happens(self, chance: Chance) -> bool {
        (chance.word() as u64) < self.0
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_never_happens_and_one_always_does() {
        assert!(!Probability::ZERO.happens(Chance::LOWEST));
        assert!(Probability::ONE.happens(Chance::HIGHEST));
        assert_eq!(Probability::from_f64(0.0), Some(Probability::ZERO));
        assert_eq!(Probability::from_f64(1.0), Some(Probability::ONE));
        assert_eq!(Probability::from_millionths(1_000_000), Some(Probability::ONE));
    }

    #[test]
    fn a_draw_splits_the_words_exactly_at_the_probability() {
        let half = Probability::from_f64(0.5).unwrap();
        assert!(half.happens(Chance::from_word((1 << 31) - 1)));
        assert!(!half.happens(Chance::MIDDLE));
    }

    #[test]
    fn decimal_fractions_are_met_within_two_to_the_minus_33() {
        for millionths in [1, 2, 20_000, 176_000, 333_333, 999_999] {
            let exact = f64::from(millionths) / 1e6;
            let ours = Probability::from_millionths(millionths).unwrap();
            assert!((ours.as_f64() - exact).abs() <= 2f64.powi(-33), "{millionths}: {ours:?}");
            assert_eq!(Probability::from_f64(exact), Some(ours));
        }
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        for value in [-0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert_eq!(Probability::from_f64(value), None);
        }
        assert_eq!(Probability::from_millionths(1_000_001), None);
    }
}

//! Exponentially distributed lengths of time, in integers: the same on every machine, which a library's logarithm is not.

use millpond_control::Span;

/// ln 2 in parts of 2^56, rounded to the nearest.
const LN_2: u64 = 49_946_518_145_322_874;
const ONE: u64 = 1 << 32;

/// A length in microseconds, exponential with this mean, from one uniform word.
///
/// The distribution is cut at 44.4 means (probability 2^-64); every value is within `mean · 2^-29 + 0.5` µs of the one
/// that exact arithmetic would give for the word.
pub(crate) fn exponential(mean: Span, word: u64) -> u64 {
    let scaled = u128::from(mean.as_micros()) * u128::from(minus_ln(word)) + (1 << 31);
    (scaled >> 32) as u64
}

/// `-ln(word / 2^64)` in parts of 2^32; a word of 0 counts as 1. Error below 2^-29. Of a uniform word it is exponential
/// with a mean of one.
///
/// With word = m · 2^(63 - k) and 1 ≤ m < 2 this is (k + 1) · ln 2 - ln m, where ln m = 2 · artanh(s) for
/// s = (m - 1) / (m + 1) < 1/3; nine terms of the series of artanh leave less than 2^-33.
#[must_use]
pub fn minus_ln(word: u64) -> u64 {
    let word = word | 1;
    let zeros = word.leading_zeros();
    let m = word << zeros; // parts of 2^63
    let s = ((m - (1 << 63)) << 1) / ((m >> 31) + ONE);
    let square = (s * s) >> 32;
    let series = (0..=8_u64).rev().fold(0, |sum, n| ((sum * square) >> 32) + ONE / (2 * n + 1));
    let ln_m = (s * series) >> 31;
    (((u64::from(zeros) + 1) * LN_2) >> 24).saturating_sub(ln_m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_control::{ChanceSeed, Purpose};

    fn words(count: u32) -> impl Iterator<Item = u64> {
        (0..count).map(|n| ChanceSeed::new(3).wide(Purpose::LossState, [0, n, 0, 0]))
    }

    #[test]
    fn the_logarithm_is_met_within_two_to_the_minus_29() {
        let edges = [0, 1, 2, 3, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 1 << 32, (1 << 32) - 1];
        let spread = (0..64).flat_map(|shift| words(100).map(move |word| word >> shift));
        for word in edges.into_iter().chain(spread) {
            let ours = minus_ln(word) as f64 / ONE as f64;
            let exact = 64.0 * std::f64::consts::LN_2 - ((word | 1) as f64).ln();
            assert!((ours - exact).abs() < 2f64.powi(-29), "{word}: {ours} instead of {exact}");
        }
    }

    #[test]
    fn mean_and_tail_are_those_of_the_distribution() {
        let mean = Span::from_millis(100);
        let n = 1_000_000;
        let sample: Vec<u64> = words(n).map(|word| exponential(mean, word)).collect();
        // Four standard errors: σ of the mean is mean/√n; of a share q, √(q(1-q)/n).
        let ours = sample.iter().sum::<u64>() as f64 / f64::from(n);
        assert!((ours / 1e5 - 1.0).abs() < 4.0 / f64::from(n).sqrt(), "{ours}");
        for means in [0.1, 0.5, 1.0, 2.0, 5.0, 10.0] {
            let expected = f64::exp(-means);
            let share = sample.iter().filter(|&&t| t as f64 > means * 1e5).count() as f64 / f64::from(n);
            let error = (expected * (1.0 - expected) / f64::from(n)).sqrt();
            assert!((share - expected).abs() < 4.0 * error, "{means} means: {share} instead of {expected}");
        }
    }

    #[test]
    fn the_longest_mean_stays_in_range() {
        assert!(exponential(Span::MAX, u64::MAX) <= 8);
        let longest = exponential(Span::MAX, 0);
        assert!((longest as f64 / f64::from(u32::MAX) - 64.0 * std::f64::consts::LN_2).abs() < 1e-8);
    }
}

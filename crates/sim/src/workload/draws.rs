//! Numbers drawn from words of chance, in integers: the same on every machine.

use millpond_control::{Chance, ChanceSeed, Purpose};
use millpond_link::minus_ln;

use crate::scenario::{Arrival, Sizes, Times};

/// What a word of chance of a workload is for. Zero is for the sizes of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Of {
    Arrival = 1,
    Interval = 2,
    Phase = 3,
    Jitter = 4,
    Think = 5,
    Size = 6,
    Period = 7,
    Return = 8,
}

/// The chance of one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) seed: ChanceSeed,
    /// The number of the flow, by which books are kept.
    pub(crate) flow: u32,
    /// The number of its client, by which chance is addressed.
    pub(crate) client: u32,
}

impl Draws {
    /// The word of this number for one purpose of one of the client's workloads.
    #[inline]
    pub(crate) fn word(self, source: u32, number: u32, of: Of) -> u64 {
        self.nth(source, number, of, 0)
    }

    #[inline]
    fn nth(self, source: u32, number: u32, of: Of, nth: u32) -> u64 {
        self.seed.wide(Purpose::Workload, [self.client, source, number, nth << 8 | of as u32])
    }

    /// Time from an event to an arrival that it causes, in microseconds.
    pub(crate) fn arrival(self, source: u32, number: u32, of: Of, arrival: &Arrival) -> u64 {
        let word = self.word(source, number, of);
        match *arrival {
            Arrival::AtOnce => 0,
            Arrival::Uniform { over } => below(word, over.0),
            Arrival::Exponential { mean } => exponential(word, mean.0),
            Arrival::Beta { over, alpha, beta } => {
                // Of α + β - 1 uniform numbers the α-th smallest is Beta(α, β), for whole α and β.
                let (alpha, beta) = (usize::from(alpha), usize::from(beta));
                let mut words: Vec<u64> =
                    (0..(alpha + beta).saturating_sub(1)).map(|nth| self.nth(source, number, of, nth as u32)).collect();
                words.sort_unstable();
                words.get(alpha.saturating_sub(1)).map_or(0, |&word| below(word, over.0))
            }
        }
    }
}

/// Between zero and `most` microseconds, both included.
#[inline]
pub(crate) fn below(word: u64, most: u64) -> u64 {
    ((u128::from(word) * (u128::from(most) + 1)) >> 64) as u64
}

/// When clients that start at random within `spread` microseconds do, from the word of a client's start.
#[inline]
pub(crate) fn start(chance: Chance, spread: u64) -> u64 {
    ((u128::from(chance.word()) * (u128::from(spread) + 1)) >> 32) as u64
}

/// Exponential with this mean.
#[inline]
pub(crate) fn exponential(word: u64, mean: u64) -> u64 {
    let scaled = u128::from(mean) * u128::from(minus_ln(word)) + (1 << 31);
    u64::try_from(scaled >> 32).unwrap_or(u64::MAX)
}

/// A length of time, in microseconds, from one word if it is left to chance.
#[inline]
pub(crate) fn time(word: impl FnOnce() -> u64, times: &Times) -> u64 {
    match *times {
        Times::Fixed(time) => time.0,
        Times::Uniform { from, to } => from.0 + below(word(), to.0.saturating_sub(from.0)),
        Times::Exponential { mean } => exponential(word(), mean.0),
        Times::Pareto { alpha, from, to } => pareto(word(), alpha, from.0, to.0),
    }
}

/// A size from one word, in bytes.
#[inline]
pub(crate) fn size(word: u64, sizes: &Sizes) -> u64 {
    match *sizes {
        Sizes::Fixed(size) => size.0,
        Sizes::Uniform { from, to } => from.0 + below(word, to.0.saturating_sub(from.0)),
        Sizes::Pareto { alpha, from, to } => pareto(word, alpha, from.0, to.0),
    }
}

/// Pareto with this shape, to the nearest byte or microsecond; what exceeds `most` is `most`.
///
/// A value x is reached where `-ln U ≥ α ln(x / least)`, so the largest one of which half a unit less is reached is
/// looked for.
fn pareto(word: u64, alpha: f64, least: u64, most: u64) -> u64 {
    let drawn = f64::from(u32::try_from(minus_ln(word) >> 8).unwrap_or(u32::MAX)) / f64::from(1 << 24);
    let reaches = |size: u64| {
        let share = ((2 * u128::from(least)) << 64) / (2 * u128::from(size)).saturating_sub(1).max(1);
        let Ok(share) = u64::try_from(share) else { return true };
        let needed = f64::from(u32::try_from(minus_ln(share) >> 8).unwrap_or(u32::MAX)) / f64::from(1 << 24);
        drawn >= alpha * needed
    };
    let (mut low, mut high) = (least, most.max(least));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if reaches(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Duration, Size};

    fn draws(flow: u32) -> Draws {
        Draws { seed: ChanceSeed::new(5), flow, client: flow }
    }

    fn mean(values: impl Iterator<Item = u64>) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for value in values {
            sum += value as f64;
            count += 1.0;
        }
        sum / count
    }

    /// 3GPP TR 37.868 §6.1.1, traffic model 2: Beta(3, 4) over 10 s has its mode at 4.0 s, where the density is 0.2074/s.
    #[test]
    fn beta_arrivals_peak_where_the_source_says() {
        let arrival = Arrival::Beta { over: Duration(10_000_000), alpha: 3, beta: 4 };
        let n = 400_000_u32;
        let mut bins = [0_u32; 20];
        for flow in 0..n {
            let at = draws(flow).arrival(0, 0, Of::Arrival, &arrival);
            bins[(at / 500_001) as usize] += 1;
        }
        let peak = (0..20).max_by_key(|&bin| bins[bin]).unwrap();
        assert!((7..=8).contains(&peak), "the mode is in bin {peak} of half a second");
        // The density over [3.5 s, 4.5 s] is flat to 1.3 % around the mode; its integral there is 0.20643.
        let around = f64::from(bins[7] + bins[8]) / f64::from(n);
        assert!((around - 0.2064).abs() < 4.0 * (0.2064_f64 * 0.7936 / f64::from(n)).sqrt(), "{around}");
        let mean = mean((0..n).map(|flow| draws(flow).arrival(0, 0, Of::Arrival, &arrival)));
        assert!((mean - 10e6 * 3.0 / 7.0).abs() < 4.0 * 1.75e6 / f64::from(n).sqrt(), "{mean}");
    }

    /// 3GPP TR 45.820 annex E: α 2.5 from 20 to 200 B has a mean of 32.9 B, α 1.5 from 200 to 2,000 B one of 474 B.
    #[test]
    fn pareto_sizes_have_the_means_of_the_source() {
        let n = 400_000_u32;
        for (alpha, from, to, expected) in [(2.5, 20, 200, 32.9), (1.5, 200, 2_000, 473.5)] {
            let sizes = Sizes::Pareto { alpha, from: Size(from), to: Size(to) };
            let drawn = || (0..n).map(|number| size(draws(1).word(0, number, Of::Size), &sizes));
            assert!(drawn().all(|size| (from..=to).contains(&size)));
            let ours = mean(drawn());
            let spread = (mean(drawn().map(|size| size * size)) - ours * ours).sqrt();
            let error = 4.0 * spread / f64::from(n).sqrt();
            assert!((ours - expected).abs() < error + 0.05, "{ours} instead of {expected}");
        }
    }

    #[test]
    fn exponential_times_have_their_mean_however_long() {
        let n = 200_000_u32;
        for mean_us in [1_000_u64, 86_400_000_000] {
            let times = Times::Exponential { mean: Duration(mean_us) };
            let ours = mean((0..n).map(|number| time(|| draws(2).word(0, number, Of::Think), &times)));
            assert!((ours / mean_us as f64 - 1.0).abs() < 4.0 / f64::from(n).sqrt(), "{ours}");
        }
    }

    #[test]
    fn uniform_numbers_reach_both_ends_and_nothing_beyond() {
        assert_eq!((below(0, 9), below(u64::MAX, 9)), (0, 9));
        assert_eq!(below(u64::MAX, u64::MAX), u64::MAX);
        let day = 86_400_000_000;
        assert_eq!((start(Chance::LOWEST, day), start(Chance::HIGHEST, 0)), (0, 0));
        assert!(start(Chance::HIGHEST, day) > day - 30);
        let times = Times::Uniform { from: Duration(10), to: Duration(20) };
        assert_eq!((time(|| 0, &times), time(|| u64::MAX, &times)), (10, 20));
    }

    /// Up to 71 minutes a start is what it was when that was the most.
    #[test]
    fn starts_are_drawn_as_ever() {
        use millpond_control::Span;
        for flow in 0..1_000 {
            let chance = ChanceSeed::new(9).at(Purpose::Start, [flow, 0, 0, 0]);
            for spread in [0, 1, 2_000_000, u64::from(u32::MAX)] {
                let ever = chance.between(Span::ZERO, Span::from_micros(spread as u32));
                assert_eq!(start(chance, spread), u64::from(ever.as_micros()));
            }
        }
    }
}

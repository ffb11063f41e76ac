//! Chance as an argument.
//!
//! A word of chance is *addressed*, not drawn in sequence: it is a keyed hash of what it is for. Two
//! algorithms in one scenario therefore meet the same random numbers, and adding a node shifts nobody else's.

use crate::time::Span;

/// One uniform 32-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chance(u32);

impl Chance {
    /// The lowest word: maps to the lower end of every interval.
    pub const LOWEST: Self = Self(0);
    /// The middle word.
    pub const MIDDLE: Self = Self(1 << 31);
    /// The highest word: maps to the upper end of every interval.
    pub const HIGHEST: Self = Self(u32::MAX);

    /// A word from the caller's own source.
    #[must_use]
    pub const fn from_word(word: u32) -> Self {
        Self(word)
    }

    /// The word itself.
    #[must_use]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// A length spread evenly over `[low, high]`, both ends included, without a modulo.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn between(self, low: Span, high: Span) -> Span {
        low.plus(Span::from_micros(self.part(high.minus(low).as_micros())))
    }

    /// A whole number spread evenly over `[low, high]`, both ends included.
    #[must_use]
    pub const fn pick(self, low: u32, high: u32) -> u32 {
        low.saturating_add(self.part(high.saturating_sub(low)))
    }

    /// Evenly from 0 to `width`, both included: (`width` + 1) times the word, without its lower 32 bits. That is `width` times
    /// the word and the word once more, (2^32 - 1) · 2^32 at the most: 64 bits hold it, and small cores need no check.
    const fn part(self, width: u32) -> u32 {
        ((width as u64).wrapping_mul(self.0 as u64).wrapping_add(self.0 as u64) >> 32) as u32
    }

    /// True with probability `millionths` / 1 000 000.
    #[must_use]
    pub const fn falls_below(self, millionths: u32) -> bool {
        ((self.0 as u64).saturating_mul(1_000_000) >> 32) < millionths as u64
    }
}

/// What a word of chance is for. Every purpose has words of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Purpose {
    /// Spreading a timer: node, peer, exchange, copy.
    Dither = 1,
    /// Whether one packet is lost on a link.
    Loss = 2,
    /// How long a loss process stays in its state.
    LossState = 3,
    /// Extra delay of one packet.
    Jitter = 4,
    /// What an application does: sizes of batches, moments of generation.
    Workload = 5,
    /// When a node starts.
    Start = 6,
    /// Which preamble a device sends, and when it tries again.
    Access = 7,
}

/// The seed of an experiment. It gives every purpose and place its own word.
///
/// Never a source of secrets: message ids and tokens of a live endpoint come from a type of their own
/// that an observer cannot predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChanceSeed(u64);

impl ChanceSeed {
    /// The seed with this number.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The word that belongs to this purpose and place. `place` is what the purpose says: for a timer
    /// (node, peer, exchange, copy), for a link (link, packet number, 0, 0).
    #[must_use]
    pub const fn at(self, purpose: Purpose, place: [u32; 4]) -> Chance {
        Chance((self.wide(purpose, place) >> 32) as u32)
    }

    /// The same with 64 bits, for consumers that need a finer word.
    #[must_use]
    pub const fn wide(self, purpose: Purpose, place: [u32; 4]) -> u64 {
        let [a, b, c, d] = place;
        let mut x = mix(self.0 ^ (purpose as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        x = mix(x ^ ((a as u64) << 32 | b as u64));
        mix(x.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ ((c as u64) << 32 | d as u64))
    }

    /// A seed for a part of the experiment: the part's words are unrelated to its siblings'.
    #[must_use]
    pub const fn part(self, number: u64) -> Self {
        Self(mix(mix(self.0.wrapping_add(0xD1B5_4A32_D192_ED03)) ^ number))
    }
}

/// A 64-bit finaliser with full avalanche (the variant-13 constants of D. Stafford, 2011, as used by
/// SplitMix64, Steele, Lea and Flood, OOPSLA 2014).
const fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_include_both_ends() {
        let (low, high) = (Span::from_secs(2), Span::from_secs(3));
        assert_eq!(Chance::LOWEST.between(low, high), low);
        assert_eq!(Chance::MIDDLE.between(low, high), Span::from_millis(2_500));
        assert_eq!(Chance::HIGHEST.between(low, high), high);
        assert_eq!(Chance::HIGHEST.between(Span::ZERO, Span::MAX), Span::MAX);
        assert_eq!(Chance::HIGHEST.pick(1, 10), 10);
        assert_eq!(Chance::LOWEST.pick(1, 10), 1);
    }

    #[test]
    fn a_probability_of_zero_never_and_of_one_always_happens() {
        assert!(!Chance::LOWEST.falls_below(0));
        assert!(Chance::HIGHEST.falls_below(1_000_000));
    }

    #[test]
    fn words_depend_on_every_part_of_the_address() {
        let seed = ChanceSeed::new(1);
        let base = seed.at(Purpose::Dither, [1, 2, 3, 4]);
        assert_eq!(base, seed.at(Purpose::Dither, [1, 2, 3, 4]));
        for other in [[0, 2, 3, 4], [1, 0, 3, 4], [1, 2, 0, 4], [1, 2, 3, 0], [2, 1, 3, 4], [1, 2, 4, 3]] {
            assert_ne!(base, seed.at(Purpose::Dither, other));
        }
        assert_ne!(base, seed.at(Purpose::Loss, [1, 2, 3, 4]));
        assert_ne!(base, ChanceSeed::new(2).at(Purpose::Dither, [1, 2, 3, 4]));
        assert_ne!(base, seed.part(1).at(Purpose::Dither, [1, 2, 3, 4]));
    }

    #[test]
    fn words_are_spread_evenly() {
        // 16 bins of 4096 expected hits each; the 99.9 % point of chi-square with 15 degrees of freedom is 37.7.
        let mut bins = [0_i64; 16];
        for i in 0..65_536_u32 {
            let word = ChanceSeed::new(7).at(Purpose::Dither, [i, 0, i >> 3, 0]).word();
            if let Some(bin) = bins.get_mut((word >> 28) as usize) {
                *bin = bin.saturating_add(1);
            }
        }
        let squares: i64 = bins.iter().map(|n| n.saturating_sub(4096).saturating_pow(2)).sum();
        assert!(squares < 38_i64.saturating_mul(4096), "{bins:?}");
    }
}

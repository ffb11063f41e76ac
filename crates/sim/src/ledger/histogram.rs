//! Distributions of times: how often, in bins of a fixed relative width.

/// Bins to an octave, as a power of two: no value is further than 1/64 from the upper edge of its bin.
const FINENESS: u32 = 6;

/// How often values fell into bins that are exact up to 127 and 64 to an octave from there on (log-linear, as in HDR
/// Histogram). It takes 8 bytes a bin up to the largest value's: 20 KiB for two weeks in microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
}

/// The bin of a value with `1 << fineness` bins to an octave.
#[inline]
fn bin(value: u64, fineness: u32) -> usize {
    let octave = (value >> fineness).checked_ilog2().unwrap_or(0);
    ((u64::from(octave) << fineness) + (value >> octave)) as usize
}

/// The largest value of a bin.
fn upper(bin: usize, fineness: u32) -> u64 {
    let bin = bin as u64;
    let octave = (bin >> fineness).saturating_sub(1);
    let mantissa = bin - (octave << fineness);
    u64::try_from(((u128::from(mantissa) + 1) << octave) - 1).unwrap_or(u64::MAX)
}

impl Histogram {
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        let bin = bin(value, FINENESS);
        if self.counts.len() <= bin {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
    }

    /// The bins that hold anything: their largest value and how often.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bin, &count)| (upper(bin, FINENESS), count))
    }
}

/// How fine bins can be, as a power of two to an octave, for these values in order to need no more than `most` of them.
pub(crate) fn finest_within(values: impl Iterator<Item = u64> + Clone, most: usize) -> u32 {
    let bins = |fineness| {
        let mut last = None;
        values.clone().filter(|&value| last.replace(bin(value, fineness)) != Some(bin(value, fineness))).count()
    };
    (0..=FINENESS).rev().find(|&fineness| bins(fineness) <= most).unwrap_or(0)
}

/// The largest value of the bin that this one falls into.
pub(crate) fn edge(value: u64, fineness: u32) -> u64 {
    upper(bin(value, fineness), fineness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_within_a_64th_of_its_edge() {
        for shift in 0..64 {
            for step in [0, 1, 17, 31, 63] {
                let value = (1_u64 << shift).saturating_add((1_u64 << shift) / 64 * step);
                let edge = edge(value, FINENESS);
                assert!(edge >= value && edge - value <= value / 64, "{value}: {edge}");
                assert_eq!(bin(edge, FINENESS), bin(value, FINENESS));
                assert!(edge == u64::MAX || bin(edge + 1, FINENESS) == bin(value, FINENESS) + 1, "{value}");
            }
        }
    }

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::default();
        for value in [0, 0, 1, 127, 128, 129] {
            histogram.add(value);
        }
        let bins: Vec<_> = histogram.bins().collect();
        assert_eq!(bins, [(0, 2), (1, 1), (127, 1), (129, 2)]);
    }

    #[test]
    fn bins_are_as_fine_as_their_number_allows() {
        let hundred = (1..=100_u64).map(|n| n * 1_000_000);
        assert_eq!(finest_within(hundred.clone(), 256), FINENESS);
        let fineness = finest_within((0..100_000_u64).map(|n| n * 1_000), 256);
        assert!((3..FINENESS).contains(&fineness), "{fineness}");
        let mut edges: Vec<_> = (0..100_000_u64).map(|n| edge(n * 1_000, fineness)).collect();
        edges.dedup();
        assert!((128..=256).contains(&edges.len()), "{}", edges.len());
    }
}

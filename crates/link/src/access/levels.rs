//! Coverage levels: how often what a device sends and hears is repeated.

use super::rules::AccessError;

/// Coverage levels and how many of the devices are at each. A device's number decides on its level, so that of any
/// devices with consecutive numbers each level has its share, within one or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Up to where devices belong to each, in parts of 2^32; the last goes up to the end.
    upto: [u64; Self::MOST],
    repetitions: [u16; Self::MOST],
    count: u8,
}

impl Levels {
    /// As many levels there may be: LTE-M has four.
    pub const MOST: usize = 4;
    /// As often a packet may be repeated (3GPP TS 36.213, table 16.4.1.3-2).
    pub const MOST_REPETITIONS: u16 = 2_048;
    /// One level, without repetitions.
    pub const ONE: Self = Self { upto: [1 << 32; Self::MOST], repetitions: [1; Self::MOST], count: 1 };

    /// Levels with their shares, in any unit, and repetitions.
    ///
    /// # Errors
    /// [`AccessError::Levels`].
    pub fn new(levels: &[(u32, u16)]) -> Result<Self, AccessError> {
        let all: u64 = levels.iter().map(|(share, _)| u64::from(*share)).sum();
        let good = |(share, times): &(u32, u16)| *share > 0 && (1..=Self::MOST_REPETITIONS).contains(times);
        if levels.is_empty() || levels.len() > Self::MOST || !levels.iter().all(good) {
            return Err(AccessError::Levels);
        }
        let mut made = Self { count: levels.len() as u8, ..Self::ONE };
        let mut sum = 0;
        for (place, (share, times)) in levels.iter().enumerate() {
            sum += u128::from(*share);
            made.upto[place] = ((sum << 32) / u128::from(all)) as u64;
            made.repetitions[place] = *times;
        }
        Ok(made)
    }

    /// The level of a device.
    #[must_use]
    pub fn of(&self, device: u32) -> usize {
        // Multiples of the golden ratio lie evenly between 0 and 1, however many follow each other.
        let part = u64::from(device).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        self.upto[..usize::from(self.count) - 1].iter().take_while(|upto| **upto <= part).count()
    }

    /// How often packets from and to a device are sent.
    #[must_use]
    pub fn repetitions(&self, device: u32) -> u16 {
        self.repetitions[self.of(device)]
    }

    /// Whether no packet is repeated.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.repetitions.iter().take(usize::from(self.count)).all(|times| *times == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_its_share_of_any_devices_that_follow_each_other() {
        let levels = Levels::new(&[(80, 1), (15, 16), (5, 128)]).unwrap();
        for (from, n) in [(0, 400), (100, 100), (399, 1_000)] {
            let mut counts = [0_u32; 3];
            (from..from + n).for_each(|device| counts[levels.of(device)] += 1);
            for (count, share) in counts.iter().zip([80, 15, 5]) {
                assert!(count.abs_diff(n * share / 100) <= 2, "{n} from {from}: {counts:?}");
            }
        }
        let times = |level| (0..).find(|device| levels.of(*device) == level).map(|device| levels.repetitions(device));
        assert_eq!([times(0), times(1), times(2)], [Some(1), Some(16), Some(128)]);
        assert!(Levels::ONE.is_plain() && !levels.is_plain());
    }

    #[test]
    fn what_are_no_levels_is_refused() {
        for levels in [&[][..], &[(0, 1)], &[(1, 0)], &[(1, 2_049)], &[(1, 1); 5]] {
            assert_eq!(Levels::new(levels), Err(AccessError::Levels));
        }
    }
}

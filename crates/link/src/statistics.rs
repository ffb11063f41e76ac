//! Time-weighted statistics of the queue, in integers until they are asked for.
//!
//! Levels change at whole microseconds: a departure counts at the microsecond in which its last bit is out, rounded up,
//! so a mean may be too high by what one packet adds in less than 1 µs per departure. Levels that lasted no time do not
//! count.

use crate::queue::Occupancy;

/// What one link's queue did while it was watched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// How long it was watched, µs: from the caller's origin, or the latest [`crate::Link::restart_statistics`].
    pub observed_micros: u64,
    /// For how long the rate stage was sending, µs, rounded down. Utilisation is this over `observed_micros`.
    pub busy_micros: u64,
    /// Occupancy in bytes.
    pub bytes: Level,
    /// Occupancy in packets.
    pub packets: MeanLevel,
}

/// A level over time. All zero if it was watched for no time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Level {
    /// The time-weighted mean: exact but for the last division.
    pub mean: f64,
    /// The least level that was not exceeded for 95 % of the time: exact below 256, above at most 1/128 too high, and
    /// never too low.
    pub p95: u64,
    /// The highest.
    pub max: u64,
}

/// The same without how long it was how high. All zero if it was watched for no time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeanLevel {
    /// The time-weighted mean: exact but for the last division.
    pub mean: f64,
    /// The highest.
    pub max: u64,
}

/// Watches the occupancy of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    since: u64,
    /// Up to when time is accounted for.
    until: u64,
    bytes: Track,
    packets: Track,
    /// How long the bytes stood in each bin.
    bins: Vec<u64>,
}

/// One level: its sum over time, and the highest.
#[derive(Clone, Debug, Default)]
struct Track {
    sum: u128,
    max: u64,
}

impl Meter {
    /// The level has been `level` since the previous call, up to `now`.
    #[inline]
    pub(crate) fn spend(&mut self, now: u64, level: Occupancy) {
        let Some(time @ 1..) = now.checked_sub(self.until) else { return };
        self.until = now;
        self.bytes.spend(time, level.bytes);
        self.packets.spend(time, level.packets);
        let bin = bin(level.bytes);
        match self.bins.get_mut(bin) {
            Some(spent) => *spent += time,
            None => self.spend_first(time, bin),
        }
    }

    /// The first time in this bin and all above it.
    #[cold]
    #[inline(never)]
    fn spend_first(&mut self, time: u64, bin: usize) {
        self.bins.resize(bin + 1, 0);
        self.bins[bin] = time;
    }

    /// Forgets everything; watches from `now` on. Keeps its memory.
    pub(crate) fn restart(&mut self, now: u64) {
        (self.since, self.until) = (now, now);
        (self.bytes, self.packets) = (Track::default(), Track::default());
        self.bins.clear();
    }

    /// `busy_micros` as given.
    pub(crate) fn read(&self, busy_micros: u64) -> Statistics {
        let observed_micros = self.until - self.since;
        let MeanLevel { mean, max } = self.bytes.read(observed_micros);
        let bytes = Level { mean, p95: self.p95(observed_micros), max };
        Statistics { observed_micros, busy_micros, bytes, packets: self.packets.read(observed_micros) }
    }

    /// The bin in which 95 % of the time is reached, rounded up, but no more than there ever were.
    fn p95(&self, time: u64) -> u64 {
        if time == 0 {
            return 0;
        }
        let wanted = (u128::from(time) * 19).div_ceil(20);
        let mut passed = 0;
        let reached = self.bins.iter().position(|&spent| {
            passed += u128::from(spent);
            passed >= wanted
        });
        reached.map_or(self.bytes.max, |bin| top(bin).min(self.bytes.max))
    }

    /// Bytes of memory held.
    pub(crate) const fn memory(&self) -> usize {
        self.bins.capacity() * size_of::<u64>()
    }
}

impl Track {
    #[inline]
    fn spend(&mut self, time: u64, level: u64) {
        self.sum += u128::from(level) * u128::from(time);
        self.max = self.max.max(level);
    }

    #[expect(clippy::float_arithmetic, reason = "the one division of a mean")]
    fn read(&self, time: u64) -> MeanLevel {
        if time == 0 {
            return MeanLevel::default();
        }
        MeanLevel { mean: self.sum as f64 / time as f64, max: self.max }
    }
}

/// Levels below 256 have bins of their own; above, every doubling has 128.
const fn bin(level: u64) -> usize {
    if level < 256 {
        return level as usize;
    }
    let doublings = 56 - level.leading_zeros();
    ((doublings as usize) << 7) + (level >> doublings) as usize
}

/// The highest level of a bin.
const fn top(bin: usize) -> u64 {
    let doublings = (bin >> 7).saturating_sub(1);
    let first = (bin - (doublings << 7)) as u64;
    (first << doublings) | ((1 << doublings) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_tile_the_levels_within_one_part_in_128() {
        let mut last = None;
        for level in (0..70_000).chain((17..64).map(|shift| 1 << shift)).chain([u64::MAX - 1, u64::MAX]) {
            let bin = bin(level);
            assert!(top(bin) >= level && top(bin) - level <= level / 128, "{level}");
            assert!(level >= 256 || top(bin) == level, "{level}");
            assert!(bin == 0 || top(bin - 1) < level, "{level}");
            assert!(last <= Some(bin), "{level}");
            last = Some(bin);
        }
        assert!(bin(u64::MAX) < 7_500);
    }

    #[test]
    fn levels_weigh_by_the_time_they_lasted() {
        let mut meter = Meter::default();
        let level = |packets| Occupancy { bytes: packets * 94, packets };
        meter.spend(94, level(1));
        meter.spend(94, level(9)); // no time
        meter.spend(99, level(3));
        meter.spend(100, level(2));
        let seen = meter.read(7);
        assert_eq!((seen.observed_micros, seen.busy_micros), (100, 7));
        assert_eq!(seen.packets, MeanLevel { mean: 1.11, max: 3 });
        assert_eq!(seen.bytes, Level { mean: 104.34, p95: 188, max: 282 });
        meter.restart(200);
        assert_eq!(meter.read(0).packets, MeanLevel::default());
        meter.spend(300, level(4));
        assert_eq!(meter.read(0).packets, MeanLevel { mean: 4.0, max: 4 });
        // 940 shares its bin with levels up to 943, but nothing above it was ever seen.
        meter.restart(300);
        meter.spend(400, level(10));
        assert_eq!(meter.read(0).bytes, Level { mean: 940.0, p95: 940, max: 940 });
    }
}

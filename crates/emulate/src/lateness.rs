//! How late packets were forwarded, and whether a run can be believed.

use std::{fmt, time::Duration};

use hdrhistogram::Histogram;
use millpond_control::Instant;
use millpond_path::Path;
use serde::Serialize;

/// The longest lateness that is distinguished, µs.
const LONGEST: u64 = 60_000_000;
/// Below this share of the lateness of a packet lies the 99th percentile.
const SHARE: f64 = 0.99;
/// Bytes of a long packet: its time on the link is what lateness is compared with.
const LONG_PACKET: u64 = 1_500;
/// The bound is this part of a long packet's time.
const PART: u64 = 200;
/// Between these the bound lies, µs. The upper one is what a link of 30 kbit/s was found to need; below the lower one no
/// ordinary kernel wakes a program reliably.
const BOUNDS: (u64, u64) = (100, 1_000);
/// So much later than the bound no packet may be.
const WORST: u32 = 5;

/// How late a run may be before it is not valid: of a hundred packets one may be later than `usual`, and none later than
/// `worst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatenessBound {
    /// For 99 % of the packets.
    pub usual: Duration,
    /// For every packet.
    pub worst: Duration,
}

impl LatenessBound {
    /// The bound for a path: a two-hundredth of the time that 1500 B take on its faster link, between 0.1 and 1 ms; for the
    /// worst packet five times that. Up to 60 kbit/s that is 1 ms and 5 ms, from 600 kbit/s on 0.1 ms and 0.5 ms.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let rate = path.uplink.highest_rate().0.max(path.downlink.highest_rate().0).max(1);
        let micros = LONG_PACKET * 8 * 1_000_000 / rate / PART;
        Self::from_usual(Duration::from_micros(micros.clamp(BOUNDS.0, BOUNDS.1)))
    }

    /// The bound with this for 99 % of the packets, and five times as much for the worst.
    #[must_use]
    pub fn from_usual(usual: Duration) -> Self {
        Self { usual, worst: usual.saturating_mul(WORST) }
    }
}

/// What is counted while a run goes on. Takes the same memory however long that is.
#[derive(Debug)]
pub struct Lateness {
    bound: LatenessBound,
    seen: Histogram<u64>,
    standby: u64,
}

impl Lateness {
    /// Nothing was late yet.
    #[must_use]
    pub fn new(bound: LatenessBound) -> Self {
        // Bounds and digits are constants that the histogram takes.
        let seen = Histogram::new_with_bounds(1, LONGEST, 3).unwrap_or_else(|error| unreachable!("{error}"));
        Self { bound, seen, standby: 0 }
    }

    /// A packet due at `due` was forwarded at `now`.
    pub fn record(&mut self, due: Instant, now: Instant) {
        let late = now.as_micros().saturating_sub(due.as_micros());
        self.seen.saturating_record(late.min(LONGEST));
    }

    /// Of the packets so many were forwarded by the standby.
    pub(crate) fn stood_in(&mut self, packets: u64) {
        self.standby += packets;
    }

    /// Packets until now.
    pub(crate) fn packets(&self) -> u64 {
        self.seen.len()
    }

    pub(crate) fn bound(&self) -> LatenessBound {
        self.bound
    }

    /// What was seen until now.
    #[must_use]
    pub fn row(&self) -> LatenessRow {
        let at = |share| self.seen.value_at_quantile(share);
        let (p99_us, max_us) = (at(SHARE), self.seen.max());
        let bound = |limit: Duration| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        LatenessRow {
            packets: self.seen.len(),
            standby_packets: self.standby,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us,
            p999_us: at(0.999),
            max_us,
            bound_p99_us: bound(self.bound.usual),
            bound_max_us: bound(self.bound.worst),
            valid: p99_us <= bound(self.bound.usual) && max_us <= bound(self.bound.worst),
        }
    }
}

/// Lateness of all packets of a run, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatenessRow {
    /// Packets forwarded.
    pub packets: u64,
    /// Of these, by the thread that stands by on another processor, because the first was kept from its work.
    pub standby_packets: u64,
    /// Half of them were at most this late.
    pub p50_us: u64,
    /// 90 % of them.
    pub p90_us: u64,
    /// 99 % of them.
    pub p99_us: u64,
    /// 99.9 % of them.
    pub p999_us: u64,
    /// The latest.
    pub max_us: u64,
    /// What `p99_us` may be.
    pub bound_p99_us: u64,
    /// What `max_us` may be.
    pub bound_max_us: u64,
    /// Both were kept.
    pub valid: bool,
}

impl fmt::Display for LatenessRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packets, p50_us, p99_us, max_us, .. } = *self;
        let ms = |micros: u64| micros as f64 / 1e3;
        write!(
            f,
            "{packets} packets forwarded, half of them at most {:.3} ms late, 99 % {:.3} ms, all {:.3} ms",
            ms(p50_us),
            ms(p99_us),
            ms(max_us)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(rate: &str) -> LatenessBound {
        let text = format!("[uplink]\nrate = \"{rate}\"\ndelay = \"1 ms\"\nqueue = \"9 kB\"\n");
        let path = Path::from_toml(&format!("{text}{}", text.replace("uplink", "downlink")), "test").expect("a path");
        LatenessBound::of(&path)
    }

    #[test]
    fn the_bound_follows_from_the_faster_link_between_a_tenth_and_one_millisecond() {
        for (rate, micros) in
            [("30 kbit/s", 1_000), ("60 kbit/s", 1_000), ("120 kbit/s", 500), ("600 kbit/s", 100), ("1 Gbit/s", 100)]
        {
            let LatenessBound { usual, worst } = bound(rate);
            assert_eq!((usual.as_micros(), worst.as_micros()), (micros, 5 * micros), "{rate}");
        }
    }

    #[test]
    fn one_packet_in_a_hundred_may_be_late_but_not_very() {
        let bound = LatenessBound::from_usual(Duration::from_millis(1));
        let row = |late: &[u64]| {
            let mut lateness = Lateness::new(bound);
            (0..990).for_each(|_| lateness.record(Instant::from_micros(7), Instant::from_micros(57)));
            late.iter().for_each(|&late| lateness.record(Instant::ORIGIN, Instant::from_micros(late)));
            lateness.row()
        };
        assert!(row(&[]).valid && row(&[4_900; 10]).valid);
        assert!(!row(&[1_200; 11]).valid, "more than one in a hundred beyond 1 ms");
        assert!(!row(&[5_100]).valid, "one beyond 5 ms");
        assert_eq!(row(&[u64::MAX]).max_us / 1_000_000, 60, "told up to a minute");
        assert_eq!((row(&[]).p50_us, row(&[]).packets), (50, 990));
    }

    #[test]
    fn what_is_early_is_not_late() {
        let mut lateness = Lateness::new(LatenessBound::from_usual(Duration::from_millis(1)));
        lateness.record(Instant::from_micros(90), Instant::from_micros(80));
        assert_eq!(lateness.row().max_us, 0);
    }
}

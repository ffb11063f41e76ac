//! How full a node's buffers were over time.

use std::collections::BTreeMap;

use millpond_control::Instant;

/// Frames and bytes that are held, and for how long it was how much.
#[derive(Default)]
pub(super) struct Occupancy {
    since: Instant,
    frames: u64,
    bytes: u64,
    /// Microseconds by bytes held.
    times: BTreeMap<u64, u64>,
    /// Frames times microseconds.
    area: u64,
    most_frames: u64,
}

impl Occupancy {
    /// Frames and bytes now.
    pub(super) fn now(&self) -> (u64, u64) {
        (self.bytes, self.frames)
    }

    fn pass(&mut self, now: Instant) {
        let time = now.as_micros().saturating_sub(self.since.as_micros());
        self.since = now;
        if time > 0 {
            *self.times.entry(self.bytes).or_default() += time;
            self.area += time * self.frames;
        }
    }

    pub(super) fn enter(&mut self, now: Instant, frames: u64, bytes: u64) {
        self.pass(now);
        (self.frames, self.bytes) = (self.frames + frames, self.bytes + bytes);
        self.most_frames = self.most_frames.max(self.frames);
    }

    pub(super) fn leave(&mut self, now: Instant, bytes: u64) {
        self.pass(now);
        (self.frames, self.bytes) = (self.frames.saturating_sub(1), self.bytes.saturating_sub(bytes));
    }

    /// Forgets what was until now.
    pub(super) fn restart(&mut self, now: Instant) {
        self.pass(now);
        self.times.clear();
        (self.area, self.most_frames) = (0, self.frames);
    }

    /// Mean, 95th percentile and most bytes; mean and most frames.
    pub(super) fn close(&mut self, end: Instant) -> (f64, u64, u64, f64, u64) {
        self.pass(end);
        let total: u64 = self.times.values().sum();
        if total == 0 {
            return (0.0, 0, 0, 0.0, self.most_frames);
        }
        let sum: u128 = self.times.iter().map(|(bytes, time)| u128::from(*bytes) * u128::from(*time)).sum();
        let mut below = 0;
        let enough = |time: &u64| {
            below += *time;
            below * 20 >= total * 19
        };
        let mut enough = enough;
        let p95 = self.times.iter().find(|(_, time)| enough(time)).map_or(0, |(bytes, _)| *bytes);
        let most = self.times.keys().next_back().copied().unwrap_or(0);
        (sum as f64 / total as f64, p95, most, self.area as f64 / total as f64, self.most_frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_weigh() {
        let at = Instant::from_micros;
        let mut buffers = Occupancy::default();
        buffers.enter(at(10), 2, 200);
        buffers.leave(at(20), 100);
        buffers.leave(at(30), 100);
        assert_eq!(buffers.now(), (0, 0));
        // 10 µs of 200 B, 10 µs of 100 B, 80 µs of nothing.
        assert_eq!(buffers.close(at(100)), (30.0, 200, 200, 0.3, 2));
    }

    #[test]
    fn what_was_before_a_restart_counts_no_more() {
        let at = Instant::from_micros;
        let mut buffers = Occupancy::default();
        buffers.enter(at(0), 2, 200);
        buffers.leave(at(50), 100);
        buffers.restart(at(60));
        buffers.leave(at(70), 100);
        // 10 µs of one frame of 100 B, 30 µs of nothing.
        assert_eq!(buffers.close(at(100)), (25.0, 100, 100, 0.25, 1));
    }
}

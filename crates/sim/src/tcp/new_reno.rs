//! New Reno (RFC 5681, RFC 6582).

use super::{Ack, CongestionControl, Flight, Micros, Recovery, State, repair::Repair};

/// New Reno. Windows in segments.
#[derive(Debug)]
pub struct NewReno {
    initial_window: u32,
    window: u32,
    /// Segments acknowledged towards the next step of congestion avoidance.
    counted: u32,
    threshold: u32,
    repair: Repair,
}

impl NewReno {
    /// A new connection.
    #[must_use]
    pub fn new(initial_window: u32, recovery: Recovery) -> Self {
        let repair = Repair::new(recovery);
        Self { initial_window, window: initial_window, counted: 0, threshold: u32::MAX, repair }
    }

    /// Slow start counts segments, congestion avoidance one segment a window.
    fn grow(&mut self, ack: &Ack) {
        let mut acked = ack.acked;
        let limited = if self.window < self.threshold {
            self.window < 2 * ack.before_flight.outstanding
        } else {
            ack.window_limited
        };
        if !limited {
            return;
        }
        if self.window < self.threshold {
            let step = acked.min(self.threshold - self.window);
            self.window += step;
            acked -= step;
        }
        self.counted += acked;
        if self.counted >= self.window {
            self.window += self.counted / self.window;
            self.counted %= self.window;
        }
    }
}

impl CongestionControl for NewReno {
    fn window(&self) -> u32 {
        self.window
    }

    fn slow_start_threshold(&self) -> Option<u32> {
        (self.threshold < u32::MAX).then_some(self.threshold)
    }

    fn phase(&self) -> &'static str {
        if self.window < self.threshold { "slow-start" } else { "congestion-avoidance" }
    }

    fn on_recovery(&mut self, _now: Micros, _flight: Flight) {
        self.threshold = (self.window / 2).max(2);
        self.counted = 0;
        self.window = self.repair.begin(self.window, self.threshold);
    }

    fn on_timeout(&mut self, _now: Micros, _flight: Flight, first: bool) {
        if first {
            self.threshold = (self.window / 2).max(2);
        }
        (self.window, self.counted) = (1, 0);
        self.repair.give_up();
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.state == State::Recovery {
            self.window = self.repair.window(self.window, self.threshold, ack);
        } else if self.repair.end() {
            self.window = self.threshold;
        } else if ack.acked > 0 {
            self.grow(ack);
        }
    }

    fn on_sent(&mut self, _now: Micros, _retransmission: bool, _idle: bool) {
        self.repair.sent();
    }

    fn on_open(&mut self, _now: Micros, _rtt: Option<Micros>, retried: bool) {
        self.window = if retried { 1 } else { self.initial_window };
    }
}

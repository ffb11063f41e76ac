//! New Reno (RFC 5681, RFC 6582), with the rate halving of RFC 6937 as Linux does it or with the window inflation of
//! RFC 6582.

use super::{Ack, CongestionControl, Flight, Micros, State};

/// How the window goes through a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Proportional rate reduction (RFC 6937), as Linux has it.
    RateHalving,
    /// The window is inflated by duplicates and deflated by partial acknowledgements (RFC 6582).
    Inflation,
}

/// New Reno. Windows in segments.
#[derive(Debug)]
pub struct NewReno {
    recovery: Recovery,
    initial_window: u32,
    window: u32,
    /// Segments acknowledged towards the next step of congestion avoidance.
    counted: u32,
    threshold: u32,
    /// Rate halving: the window before the repair, what was delivered and what was sent since.
    prior: u32,
    delivered: u32,
    sent: u32,
    in_recovery: bool,
}

impl NewReno {
    /// A new connection.
    #[must_use]
    pub fn new(initial_window: u32, recovery: Recovery) -> Self {
        Self {
            recovery,
            initial_window,
            window: initial_window,
            counted: 0,
            threshold: u32::MAX,
            prior: 0,
            delivered: 0,
            sent: 0,
            in_recovery: false,
        }
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

    /// RFC 6937, in the form of Linux.
    fn reduce_in_proportion(&mut self, ack: &Ack) {
        self.delivered += ack.delivered;
        let pipe = ack.flight.pipe;
        let mut send = if self.threshold < pipe {
            let share = u64::from(self.threshold) * u64::from(self.delivered);
            (share.div_ceil(u64::from(self.prior.max(1))) as u32).saturating_sub(self.sent)
        } else {
            let room = self.threshold - pipe;
            if ack.acked > 0 {
                room.min(self.delivered.saturating_sub(self.sent).max(ack.delivered) + 1)
            } else {
                room.min(ack.delivered)
            }
        };
        if self.sent == 0 {
            send = send.max(1);
        }
        self.window = pipe + send;
    }

    /// RFC 6582 §3.2.
    fn inflate(&mut self, ack: &Ack) {
        if ack.acked > 0 {
            self.window = (self.window + 1).saturating_sub(ack.acked).max(1);
        } else if ack.before == State::Recovery {
            self.window += 1;
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
        self.prior = self.window;
        self.threshold = (self.window / 2).max(2);
        (self.delivered, self.sent, self.counted, self.in_recovery) = (0, 0, 0, true);
        if self.recovery == Recovery::Inflation {
            self.window = self.threshold + 3;
        }
    }

    fn on_timeout(&mut self, _now: Micros, _flight: Flight, first: bool) {
        if first {
            self.threshold = (self.window / 2).max(2);
        }
        (self.window, self.counted, self.in_recovery) = (1, 0, false);
    }

    fn on_ack(&mut self, ack: &Ack) {
        match (ack.state, self.recovery) {
            (State::Recovery, Recovery::RateHalving) => self.reduce_in_proportion(ack),
            (State::Recovery, Recovery::Inflation) => self.inflate(ack),
            _ if self.in_recovery => {
                self.in_recovery = false;
                self.window = self.threshold;
            }
            _ if ack.acked > 0 => self.grow(ack),
            _ => {}
        }
    }

    fn on_sent(&mut self, _now: Micros, _retransmission: bool, _idle: bool) {
        self.sent += u32::from(self.in_recovery);
    }

    fn on_open(&mut self, _now: Micros, _rtt: Option<Micros>, retried: bool) {
        self.window = if retried { 1 } else { self.initial_window };
    }
}

//! How the window goes through a repair: the rate halving of RFC 6937 as Linux does it, or the window inflation of RFC 6582.

use super::{Ack, State};

/// How the window goes through a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Proportional rate reduction (RFC 6937), as Linux has it.
    RateHalving,
    /// The window is inflated by duplicates and deflated by partial acknowledgements (RFC 6582).
    Inflation,
}

/// One repair after the other. Windows in segments.
#[derive(Debug)]
pub(super) struct Repair {
    recovery: Recovery,
    /// Rate halving: the window before the repair, what was delivered and what was sent since.
    prior: u32,
    delivered: u32,
    sent: u32,
    is_under_way: bool,
}

impl Repair {
    pub(super) const fn new(recovery: Recovery) -> Self {
        Self { recovery, prior: 0, delivered: 0, sent: 0, is_under_way: false }
    }

    /// A repair begins with this window, which is to come down to `threshold`. Gives the window from now on.
    pub(super) fn begin(&mut self, window: u32, threshold: u32) -> u32 {
        *self = Self { prior: window, is_under_way: true, ..Self::new(self.recovery) };
        if self.recovery == Recovery::Inflation { threshold + 3 } else { window }
    }

    /// The timer ran out: there is none any more.
    pub(super) fn give_up(&mut self) {
        self.is_under_way = false;
    }

    /// Whether one was under way; it is over.
    pub(super) fn end(&mut self) -> bool {
        std::mem::take(&mut self.is_under_way)
    }

    /// A segment leaves.
    pub(super) fn sent(&mut self) {
        self.sent += u32::from(self.is_under_way);
    }

    /// The window after an acknowledgement that did not end it.
    pub(super) fn window(&mut self, window: u32, threshold: u32, ack: &Ack) -> u32 {
        match self.recovery {
            Recovery::RateHalving => self.reduce_in_proportion(threshold, ack),
            Recovery::Inflation => inflate(window, ack),
        }
    }

    /// RFC 6937, in the form of Linux.
    fn reduce_in_proportion(&mut self, threshold: u32, ack: &Ack) -> u32 {
        self.delivered += ack.delivered;
        let pipe = ack.flight.pipe;
        let mut send = if threshold < pipe {
            let share = u64::from(threshold) * u64::from(self.delivered);
            (share.div_ceil(u64::from(self.prior.max(1))) as u32).saturating_sub(self.sent)
        } else {
            let room = threshold - pipe;
            if ack.acked > 0 {
                room.min(self.delivered.saturating_sub(self.sent).max(ack.delivered) + 1)
            } else {
                room.min(ack.delivered)
            }
        };
        if self.sent == 0 {
            send = send.max(1);
        }
        pipe + send
    }
}

/// RFC 6582 §3.2.
fn inflate(window: u32, ack: &Ack) -> u32 {
    if ack.acked > 0 {
        (window + 1).saturating_sub(ack.acked).max(1)
    } else if ack.before == State::Recovery {
        window + 1
    } else {
        window
    }
}

//! Controlled Delay, RFC 8289: drops at the head once packets have waited too long for too long, ever faster until they do not.

use super::Parked;
use crate::config::CoDelRules;

/// The state of RFC 8289, section 5.3.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoDel {
    rules: CoDelRules,
    /// When packets will have waited too long for an interval, if they do now.
    first_above: Option<u64>,
    /// When the next packet is dropped, in the drop state.
    drop_next: u64,
    /// Packets dropped since it went into the drop state, and that number when it last went in.
    count: u32,
    last_count: u32,
    is_dropping: bool,
}

impl CoDel {
    pub(super) const fn new(rules: CoDelRules) -> Self {
        Self { rules, first_above: None, drop_next: 0, count: 0, last_count: 0, is_dropping: false }
    }

    /// The packet that is sent next, section 5.5; marked in place of a drop, as Linux does it, if it may be. `take` gives the next one
    /// and how many bytes wait behind it.
    pub(super) fn dequeue<P>(
        &mut self,
        now: u64,
        mut take: impl FnMut() -> Option<(Parked<P>, u64)>,
        mut drop: impl FnMut(Parked<P>),
    ) -> Option<Parked<P>> {
        let (mut packet, mut may_drop) = self.look(now, take());
        if self.is_dropping {
            self.is_dropping = may_drop;
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if packet.as_mut().is_some_and(Parked::mark) {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                packet.map(&mut drop);
                (packet, may_drop) = self.look(now, take());
                self.is_dropping = may_drop;
                if may_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if may_drop {
            if !packet.as_mut().is_some_and(Parked::mark) {
                packet.map(&mut drop);
                (packet, _) = self.look(now, take());
            }
            self.is_dropping = true;
            // What controlled the queue a short while ago is where to begin.
            let delta = self.count - self.last_count;
            let is_recent = now.saturating_sub(self.drop_next) < 16 * self.interval();
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        packet
    }

    /// No packet is dropped sooner, if the next one is taken out at `departs`. A queue that leaves the drop state, or is short again,
    /// has to stand for another interval first.
    pub(super) fn first_drop(&self, departs: u64) -> u64 {
        let above = if self.is_dropping { Some(self.drop_next) } else { self.first_above };
        departs.max(above.unwrap_or(departs + self.interval()))
    }

    /// Whether packets have waited too long for an interval, section 5.4.
    fn look<P>(&mut self, now: u64, taken: Option<(Parked<P>, u64)>) -> (Option<Parked<P>>, bool) {
        let Some((packet, left)) = taken else {
            self.first_above = None;
            return (None, false);
        };
        let waited = now - packet.since;
        if waited < u64::from(self.rules.target.as_micros()) || left <= u64::from(self.rules.max_packet) {
            self.first_above = None;
            return (Some(packet), false);
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.interval());
                (Some(packet), false)
            }
            Some(first_above) => (Some(packet), now >= first_above),
        }
    }

    /// When the next packet is dropped after one at `at`: an interval over the square root of the count, rounded down.
    fn control_law(&self, at: u64) -> u64 {
        let interval = self.interval();
        at + (interval * interval / u64::from(self.count.max(1))).isqrt()
    }

    fn interval(&self) -> u64 {
        u64::from(self.rules.interval.as_micros())
    }
}

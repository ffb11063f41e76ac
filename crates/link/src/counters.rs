//! What went where, and the proof that nothing vanished.

use core::fmt;

/// A number of packets and the sum of their lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Bytes: lengths as offered, without any overhead.
    pub bytes: u64,
}

/// What happened to the packets offered so far, each in exactly one place at a time:
///
/// `offered = dropped_full + dropped_too_large + dropped_managed + lost + delivered + inside`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Handed to the link.
    pub offered: Tally,
    /// Refused because the queue had no room left.
    pub dropped_full: Tally,
    /// Refused because no queue of this size could ever hold such a packet.
    pub dropped_too_large: Tally,
    /// Dropped by a queue that keeps itself short.
    pub dropped_managed: Tally,
    /// Marked in place of a drop by a queue that keeps itself short, when it let them out; whatever became of them then.
    pub marked: Tally,
    /// Lost by the medium; with losses after the rate stage, counted when the loss is handed out.
    pub lost: Tally,
    /// Handed out at the far end.
    pub delivered: Tally,
    /// Sent by the rate stage, whatever became of it afterwards: what used the link's time.
    pub carried: Tally,
}

impl Tally {
    pub(crate) fn add(&mut self, len: u32) {
        self.packets += 1;
        self.bytes += u64::from(len);
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl Counters {
    /// Congestion losses: everything that the queue refused or dropped.
    #[must_use]
    pub const fn dropped_by_queue(&self) -> Tally {
        self.dropped_full.plus(self.dropped_too_large).plus(self.dropped_managed)
    }

    /// Checks the identity of this type against what is found inside, and that everything carried was handed out or
    /// is `in_air`. `lost_after` is what was lost after the rate stage.
    pub(crate) fn balance(&self, in_queue: Tally, in_air: Tally, lost_after: Tally) -> Result<(), Imbalance> {
        let gone = self.dropped_by_queue().plus(self.lost).plus(self.delivered);
        let found = gone.plus(in_queue).plus(in_air);
        if self.offered != found {
            return Err(Imbalance {
                law: "offered = dropped + lost + delivered + inside",
                left: self.offered,
                right: found,
            });
        }
        let beyond = self.delivered.plus(lost_after).plus(in_air);
        if self.carried != beyond {
            return Err(Imbalance { law: "carried = delivered + lost + in flight", left: self.carried, right: beyond });
        }
        Ok(())
    }
}

/// A conservation law does not hold: a fault of the link itself, never of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imbalance {
    /// The law.
    pub law: &'static str,
    /// Its left side.
    pub left: Tally,
    /// Its right side.
    pub right: Tally,
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { law, left, right } = self;
        write!(
            f,
            "{law} does not hold: {} packets ({} B) on the left, {} packets ({} B) on the right",
            left.packets, left.bytes, right.packets, right.bytes
        )
    }
}

impl std::error::Error for Imbalance {}

#[cfg(test)]
mod tests {
    use super::*;

    const fn tally(packets: u64) -> Tally {
        Tally { packets, bytes: packets * 94 }
    }

    #[test]
    fn a_packet_that_vanishes_is_noticed() {
        let counters = Counters { offered: tally(10), delivered: tally(4), carried: tally(6), ..Counters::default() };
        assert_eq!(counters.balance(tally(4), tally(2), tally(0)), Ok(()));
        let error = counters.balance(tally(3), tally(2), tally(0)).unwrap_err();
        assert_eq!(error.right, tally(9));
        assert!(error.to_string().contains("10 packets (940 B) on the left, 9 packets (846 B)"), "{error}");
        assert!(counters.balance(tally(5), tally(1), tally(0)).unwrap_err().law.starts_with("carried"));
    }
}

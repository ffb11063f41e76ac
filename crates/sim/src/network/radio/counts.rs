//! What became of frames and packets, node by node.

use super::{mac::End, medium::Fate};

/// Frames of one sort, by what became of them at the node that they were for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fates {
    pub(crate) received: u64,
    pub(crate) collided: u64,
    pub(crate) deaf: u64,
    pub(crate) faded: u64,
}

impl Fates {
    pub(crate) fn count(&mut self, fate: Fate) {
        *match fate {
            Fate::Received => &mut self.received,
            Fate::Collided => &mut self.collided,
            Fate::Deaf => &mut self.deaf,
            Fate::Faded => &mut self.faded,
        } += 1;
    }

    pub(crate) fn sum(&self) -> u64 {
        self.received + self.collided + self.deaf + self.faded
    }
}

/// Why a packet is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// No buffer was free.
    Buffers,
    /// Frames waited for as many other neighbours as may be.
    Neighbours,
    /// No attempt was acknowledged.
    NoAck,
    /// The channel was never idle.
    NoChannel,
    /// Its one frame, which nobody had to acknowledge, did not arrive.
    Air,
    /// It came in parts that the receiver could not put together.
    Reassembly,
    /// RPL: its node had no way for it, not having joined, or being the root.
    NoRoute,
    /// RPL: a downward route brought it to a node that had none.
    StaleRoute,
}

/// How many causes there are.
pub(crate) const CAUSES: usize = 8;

impl Cause {
    /// Why a packet is lost of which a frame ended like this and that did not get on.
    pub(crate) fn of(end: End) -> Self {
        match end {
            End::NoChannel => Self::NoChannel,
            End::Sent => Self::Air,
            // What was acknowledged arrived, and was of no use there.
            End::Acknowledged => Self::Reassembly,
            End::NoAck => Self::NoAck,
        }
    }

    /// Whether it was lost for want of room.
    pub(crate) fn is_queue(self) -> bool {
        matches!(self, Self::Buffers | Self::Neighbours)
    }
}

/// The books of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Frames with data, and acknowledgements, that it sent.
    pub(crate) data_sent: u64,
    pub(crate) acks_sent: u64,
    /// What became of the frames that were for it.
    pub(crate) data: Fates,
    pub(crate) acks: Fates,
    /// Of the data received: sent again though it had come.
    pub(crate) duplicates: u64,
    /// Acknowledgements that were due and could not be sent.
    pub(crate) acks_omitted: u64,
    /// Packets that began here, that it was to send on or away in all, and that got to a next node.
    pub(crate) begun: u64,
    pub(crate) offered: u64,
    pub(crate) offered_bytes: u64,
    pub(crate) passed: u64,
    pub(crate) passed_bytes: u64,
    /// Packets that ended here as they should.
    pub(crate) arrived: u64,
    /// Packets that got no further, by cause.
    pub(crate) lost: [u64; CAUSES],
    pub(crate) lost_bytes: [u64; CAUSES],
    /// Bytes that completed an exchange.
    pub(crate) useful: u64,
    /// Microseconds on the air.
    pub(crate) on_air: u64,
}

impl Counts {
    pub(crate) fn lose(&mut self, cause: Cause, bytes: u32) {
        self.lost[cause as usize] += 1;
        self.lost_bytes[cause as usize] += u64::from(bytes);
    }

    /// Packets and bytes that were lost for want of room, and those that were lost otherwise.
    pub(crate) fn losses(&self) -> [(u64, u64); 2] {
        let sums = |counts: &[u64; CAUSES]| (counts[..2].iter().sum::<u64>(), counts[2..].iter().sum::<u64>());
        let (packets, bytes) = (sums(&self.lost), sums(&self.lost_bytes));
        [(packets.0, bytes.0), (packets.1, bytes.1)]
    }
}

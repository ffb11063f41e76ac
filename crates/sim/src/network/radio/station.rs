//! One node of the mesh, but for its radio.

use std::collections::VecDeque;

use millpond_control::{Instant, Span};

use super::{
    counts::Counts,
    mac::{Access, Ear, Frame, Mac, Rules},
    medium::Medium,
    neighbours::Node,
    occupancy::Occupancy,
};

/// Pairs of sender and number by which a node knows frames that it has received (Contiki 2.7).
const REMEMBERED: usize = 8;

/// How long a packet waits for its missing parts.
const REASSEMBLY: Span = Span::from_secs(8);
/// The same in Contiki 2.7: SICSLOWPAN_REASS_MAXAGE, 8, in sixteenths of a second.
const SHORT_REASSEMBLY: Span = Span::from_millis(500);

/// What a node is sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnAir {
    Data(Frame),
    /// A message of RPL.
    Control(Frame),
    /// The acknowledgement of the frame with this number.
    Ack(u8),
}

/// A packet that comes in parts.
#[derive(Clone, Copy, Debug)]
struct Parts {
    /// The packet, by the number that no other has.
    serial: u64,
    had: u64,
    until: Instant,
}

/// One node.
pub(super) struct Station {
    pub(super) mac: Mac,
    pub(super) rules: Rules,
    pub(super) counts: Counts,
    pub(super) occupancy: Occupancy,
    pub(super) on_air: Option<OnAir>,
    /// The acknowledgement that is due: to whom and for which frame.
    pub(super) owes: Option<(Node, u8)>,
    /// Packets that came, and when they have been looked at.
    pub(super) upper: VecDeque<(Instant, u32)>,
    seen: [Option<(Node, u8)>; REMEMBERED],
    oldest: usize,
    parts: Option<Parts>,
    numbers: u8,
}

impl Station {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            mac: Mac::new(),
            rules,
            counts: Counts::default(),
            occupancy: Occupancy::default(),
            on_air: None,
            owes: None,
            upper: VecDeque::new(),
            seen: [None; REMEMBERED],
            oldest: 0,
            parts: None,
            numbers: 0,
        }
    }

    /// The number of its next frame.
    pub(super) fn number(&mut self) -> u8 {
        self.numbers = self.numbers.wrapping_add(1);
        self.numbers
    }

    /// What its radio tells the machine of medium access.
    pub(super) fn ear(&self, node: Node, medium: &Medium) -> Ear {
        Ear {
            receiving: medium.is_receiving(node),
            carrier: medium.is_busy(node),
            acknowledging: self.owes.is_some() || matches!(self.on_air, Some(OnAir::Ack(_))),
        }
    }

    /// Whether a frame that came is one of those that it remembers; if not it is from now on.
    pub(super) fn knows(&mut self, from: Node, number: u8) -> bool {
        if self.seen.contains(&Some((from, number))) {
            return true;
        }
        self.seen[self.oldest] = Some((from, number));
        self.oldest = (self.oldest + 1) % REMEMBERED;
        false
    }

    /// Whether what comes is dropped because it is of another packet than that of which parts are missing (Contiki 2.7).
    pub(super) fn puts_together(&self, now: Instant, serial: u64) -> bool {
        let under_way = self.parts.is_some_and(|parts| parts.until > now && parts.serial != serial);
        under_way && self.rules.access == Access::Contiki27
    }

    /// A part of a packet came, the `part`-th of so many: whether all are here now. There is room for one packet at a time;
    /// the first part of another takes the place of what is not complete, or is dropped as in Contiki 2.7; further ones find
    /// none.
    pub(super) fn assemble(&mut self, now: Instant, serial: u64, part: u8, of: u8) -> bool {
        if self.puts_together(now, serial) {
            return false;
        }
        if of == 1 {
            return true;
        }
        let wait = if self.rules.access == Access::Contiki27 { SHORT_REASSEMBLY } else { REASSEMBLY };
        let under_way = self.parts.filter(|parts| parts.until > now && parts.serial == serial);
        let mut parts = match under_way {
            Some(parts) => parts,
            None if part == 0 => Parts { serial, had: 0, until: now.after(wait) },
            None => return false,
        };
        parts.had |= 1 << part;
        let whole = parts.had == u64::MAX >> (64 - u32::from(of));
        self.parts = (!whole).then_some(parts);
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station() -> Station {
        Station::new(Rules { access: Access::Contiki26, ..Rules::contiki(4, 4) })
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_frame_is_forgotten_after_eight_others() {
        let mut node = station();
        assert!(!node.knows(1, 5) && node.knows(1, 5) && !node.knows(2, 5));
        for number in 0..6 {
            assert!(!node.knows(3, number));
        }
        assert!(node.knows(1, 5));
        assert!(!node.knows(3, 6));
        assert!(!node.knows(1, 5), "eight others came since");
    }

    #[test]
    fn there_is_room_for_the_parts_of_one_packet() {
        let mut node = station();
        assert!(node.assemble(at(0), 1, 0, 1), "one alone is whole");
        assert!(!node.assemble(at(0), 1, 0, 3));
        assert!(!node.assemble(at(1), 2, 1, 2), "a further part of another finds no room");
        assert!(!node.assemble(at(1), 1, 2, 3) && node.assemble(at(1), 1, 1, 3));
        assert!(!node.assemble(at(2), 3, 0, 2) && !node.assemble(at(2), 4, 0, 2));
        assert!(!node.assemble(at(3), 3, 1, 2), "its place was taken");
        assert!(!node.assemble(at(10), 4, 1, 2), "too late");
    }
    #[test]
    fn contiki_27_waits_half_a_second_for_the_rest_and_drops_what_else_comes() {
        let mut node = Station::new(Rules::contiki(4, 4));
        let late = |millis| at(0).after(Span::from_millis(millis));
        assert!(!node.assemble(at(0), 1, 0, 2));
        assert!(!node.assemble(late(100), 2, 0, 1), "a whole packet between the parts");
        assert!(!node.assemble(late(200), 3, 0, 2), "the first part of another");
        assert!(node.assemble(late(499), 1, 1, 2));
        assert!(node.assemble(late(499), 2, 0, 1), "nothing is under way");
        assert!(!node.assemble(at(1), 1, 0, 2) && !node.assemble(at(1).after(Span::from_millis(500)), 1, 1, 2));
        assert!(node.assemble(at(2), 2, 0, 1), "it was given up");
    }
}

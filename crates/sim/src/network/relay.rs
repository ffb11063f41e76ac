//! Nodes that hand packets on and have the queue in front of a link to themselves.

use millpond_coap::message::copies_share;
use millpond_control::Instant;
use millpond_link::{Link, QueuedNames};

use super::{LinkName, Load, Packet};
use crate::{
    outcome::RelayRow,
    scenario::{self, Copies},
};

/// What is the same in all copies of a message: between whom and which way it goes, and what they share.
type Name = (u32, bool, u32);

/// A relay in front of one link.
pub(super) struct Relay {
    name: LinkName,
    /// The names of what waits in its queue; nothing where it looks into no message.
    names: Option<QueuedNames<Name>>,
    passed: Tally,
    withheld: Tally,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    packets: u64,
    bytes: u64,
}

impl Tally {
    fn add(&mut self, length: u32) {
        self.packets += 1;
        self.bytes += u64::from(length);
    }
}

impl Relay {
    pub(super) fn new(described: &scenario::Relay) -> Self {
        Self {
            name: LinkName::from(described.name.as_str()),
            names: (described.copies == Copies::Withheld).then(QueuedNames::default),
            passed: Tally::default(),
            withheld: Tally::default(),
        }
    }

    /// Whether it keeps a packet back: a copy of a message that still waits in its queue.
    pub(super) fn withholds(&mut self, link: &mut Link<u32>, now: Instant, packet: &Packet, length: u32) -> bool {
        let (Some(names), Some(name)) = (&self.names, name(packet)) else { return false };
        let withholds = names.waits(link, now, &name);
        if withholds {
            self.withheld.add(length);
        }
        withholds
    }

    /// The queue has taken a packet.
    pub(super) fn passes(&mut self, link: &mut Link<u32>, now: Instant, packet: &Packet, length: u32) {
        self.passed.add(length);
        if let (Some(names), Some(name)) = (&mut self.names, name(packet)) {
            names.took(link, now, name);
        }
    }

    pub(super) fn withheld_packets(&self) -> u64 {
        self.withheld.packets
    }

    pub(super) fn row(&self, link: &LinkName) -> RelayRow {
        RelayRow {
            relay: self.name.clone(),
            link: link.clone(),
            passed_packets: self.passed.packets,
            passed_bytes: self.passed.bytes,
            withheld_packets: self.withheld.packets,
            withheld_bytes: self.withheld.bytes,
        }
    }
}

/// The name of the message in a packet; none of a segment.
fn name(packet: &Packet) -> Option<Name> {
    let Load::Datagram(bytes) = &packet.load else { return None };
    Some((packet.client, packet.to_client, copies_share(bytes)?))
}

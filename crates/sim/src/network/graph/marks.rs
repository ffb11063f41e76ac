//! Queues that mark packets in place of dropping them (ECN, RFC 3168).

use millpond_control::Instant;

use super::{Graph, Hop};
use crate::{
    handshakes,
    network::{Load, Packet},
    scenario::Scenario,
    trace::Recorder,
};

/// Which clients react to marks; empty if none does. `groups` has the group of each node that asks.
pub(super) fn reacting(scenario: &Scenario, groups: &[u32]) -> Vec<bool> {
    let reacts = |group: &u32| scenario.clients.get(*group as usize).is_some_and(|group| group.ecn);
    if scenario.clients.iter().any(|group| group.ecn) { groups.iter().map(reacts).collect() } else { Vec::new() }
}

impl Packet {
    /// Whether it answers a request of its client: nobody is told of marks on anything else.
    fn answers_its_client(&self) -> bool {
        let is_message = matches!(&self.load, Load::Datagram(bytes) if !handshakes::is_flight(bytes));
        is_message && self.to_client && !self.asks()
    }
}

impl Graph {
    /// Offers a packet to a link whose queue marks.
    #[cold]
    pub(super) fn offer_marking(
        &mut self,
        place: usize,
        now: Instant,
        length: u32,
        number: u32,
        client: u32,
        rec: &mut Recorder,
    ) {
        let Some(Hop { link, .. }) = self.hops.get_mut(place) else { return };
        let Some(packet) = self.packets.get(number) else { return };
        let is_heard = self.reacting.get(client as usize).is_some_and(|reacts| *reacts);
        let taken = if is_heard && packet.answers_its_client() {
            link.offer_capable(now, client, length, number)
        } else {
            link.offer_of(now, client, length, number)
        };
        match taken {
            Ok(()) => self.wake(place),
            Err((reason, _)) => self.refused(place, number, reason, length, rec),
        }
    }
}

//! What became of packets on a graph.

use millpond_control::Instant;

use super::{Drops, Graph, Hop, cross::without};
use crate::{
    RunError,
    network::LinkName,
    outcome::{FlowRow, LinkRow, RelayRow},
};

impl Graph {
    pub(in crate::network) fn links(&self) -> Vec<LinkName> {
        self.hops.iter().map(|hop| hop.name.clone()).collect()
    }

    /// Bytes and packets that wait at a link.
    pub(in crate::network) fn queued(&mut self, place: usize, at: Instant) -> (u64, u64) {
        let occupancy = self.hops[place].link.queued(at);
        (occupancy.bytes, occupancy.packets)
    }

    pub(in crate::network) fn sum(&self, row: &mut FlowRow) {
        let drops = self.drops.get(row.flow as usize).copied().unwrap_or_default();
        (row.dropped_queue, row.dropped_radio) = (drops.queue, drops.radio);
    }

    /// From `now` on what is known of queues, and drops, are those since then.
    pub(in crate::network) fn restart_statistics(&mut self, now: Instant) {
        self.hops.iter_mut().for_each(|hop| hop.link.restart_statistics(now));
        self.drops.fill(Drops::default());
    }

    /// What became of packets at each relay.
    pub(in crate::network) fn relays(&self) -> Vec<RelayRow> {
        self.hops.iter().filter_map(|hop| Some(hop.relay.as_ref()?.row(&hop.name))).collect()
    }

    pub(in crate::network) fn rows(&mut self, end: Instant) -> Result<(Vec<LinkRow>, u64), RunError> {
        let mut events = self.arrived;
        let mut rows = Vec::with_capacity(self.hops.len());
        let (mut offered, mut handed_on) = (self.arrived, self.sent);
        for Hop { name, link, useful, away, relay, others, .. } in &mut self.hops {
            link.check_conservation().map_err(|error| RunError::Conservation(name.to_string(), error.to_string()))?;
            let (counters, statistics) = match away {
                None => (*link.counters(), link.statistics(end)),
                Some(away) => away.told(),
            };
            events += counters.offered.packets + counters.carried.packets + counters.delivered.packets;
            let withheld = relay.as_ref().map_or(0, |relay| relay.withheld_packets());
            offered += counters.offered.packets + withheld;
            handed_on += counters.delivered.packets;
            let counters = others.as_ref().map_or(counters, |others| without(counters, others));
            let dropped = counters.dropped_by_queue();
            rows.push(LinkRow {
                link: name.clone(),
                offered_packets: counters.offered.packets,
                offered_bytes: counters.offered.bytes,
                dropped_queue_packets: dropped.packets,
                dropped_queue_bytes: dropped.bytes,
                dropped_aqm_packets: counters.dropped_managed.packets,
                marked_packets: counters.marked.packets,
                dropped_radio_packets: counters.lost.packets,
                dropped_radio_bytes: counters.lost.bytes,
                delivered_packets: counters.delivered.packets,
                delivered_bytes: counters.delivered.bytes,
                useful_bytes: *useful,
                busy_us: statistics.busy_micros,
                queue_mean_bytes: statistics.bytes.mean,
                queue_p95_bytes: statistics.bytes.p95,
                queue_max_bytes: statistics.bytes.max,
                queue_mean_packets: statistics.packets.mean,
                queue_max_packets: statistics.packets.max,
            });
        }
        if let Some(access) = &self.access {
            offered += access.held() + access.counters().dropped;
        }
        if let Some(wifi) = &self.wifi {
            offered += wifi.held() + wifi.counters().refused + wifi.counters().given_up;
        }
        if offered != handed_on {
            let law = "offered to links + withheld + without access + arrived = sent + handed out by links";
            return Err(RunError::Conservation(
                "the network".to_owned(),
                format!("{law} does not hold: {offered} packets on the left, {handed_on} on the right"),
            ));
        }
        Ok((rows, events))
    }
}

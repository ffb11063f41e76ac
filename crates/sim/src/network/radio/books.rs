//! The books of a mesh: rows of what became of frames and packets, and the laws that they obey.

use millpond_control::Instant;

use super::{
    Drops, Mesh, Node,
    rpl::Control,
    station::{OnAir, Station},
};
use crate::{
    RunError,
    outcome::{LinkRow, NodeRow},
};

impl Mesh {
    /// What became of frames and packets, a row a node.
    pub(crate) fn nodes(&self) -> Vec<NodeRow> {
        let row = |(node, station): (usize, &Station)| {
            let counts = &station.counts;
            let [buffers, neighbours, no_ack, no_channel, air, reassembly, no_route, stale_route] = counts.lost;
            let rpl = self.rpl.as_ref();
            let parent = rpl.map_or_else(|| self.tree.parent(node as Node), |rpl| rpl.parent(node as Node));
            let depth = rpl.map_or_else(|| self.tree.depth(node as Node), |rpl| rpl.depth(node as Node));
            NodeRow {
                node: self.plan.names[node].clone(),
                x_mm: self.plan.places[node].x,
                y_mm: self.plan.places[node].y,
                role: self.plan.roles[node].clone(),
                parent: parent.map(|parent| self.plan.names[parent as usize].clone()),
                depth: depth.unwrap_or(u32::MAX),
                data_sent: counts.data_sent,
                acks_sent: counts.acks_sent,
                data_received: counts.data.received,
                data_duplicate: counts.duplicates,
                data_collided: counts.data.collided,
                data_deaf: counts.data.deaf,
                data_faded: counts.data.faded,
                acks_received: counts.acks.received,
                acks_collided: counts.acks.collided,
                acks_deaf: counts.acks.deaf,
                acks_faded: counts.acks.faded,
                acks_omitted: counts.acks_omitted,
                packets_begun: counts.begun,
                packets_arrived: counts.arrived,
                packets_passed: counts.passed,
                lost_buffers: buffers,
                lost_neighbours: neighbours,
                lost_no_ack: no_ack,
                lost_no_channel: no_channel,
                lost_air: air,
                lost_reassembly: reassembly,
                on_air_us: counts.on_air,
                rpl: rpl.map(|rpl| Box::new(rpl.row(node as Node, [no_route, stale_route]))),
            }
        };
        self.stations.iter().enumerate().map(row).collect()
    }

    /// From `now` on occupancy and drops are those since then.
    pub(in crate::network) fn restart_statistics(&mut self, now: Instant) {
        let now = self.clock(now);
        self.stations.iter_mut().for_each(|station| station.occupancy.restart(now));
        self.drops.fill(Drops::default());
    }

    /// Closes the books: a row for each node's radio, and how many events there were.
    pub(in crate::network) fn rows(&mut self, end: Instant) -> Result<(Vec<LinkRow>, u64), RunError> {
        self.check_conservation()?;
        let mut events = self.control_frames();
        let mut rows = Vec::with_capacity(self.stations.len());
        let end = self.clock(end);
        for (station, name) in self.stations.iter_mut().zip(&self.plan.names) {
            let counts = &station.counts;
            events += counts.data_sent + counts.acks_sent + counts.offered + counts.arrived;
            let [(queue_packets, queue_bytes), (radio_packets, radio_bytes)] = counts.losses();
            let (mean, p95, most, mean_frames, most_frames) = station.occupancy.close(end);
            rows.push(LinkRow {
                link: name.clone(),
                offered_packets: counts.offered,
                offered_bytes: counts.offered_bytes,
                dropped_queue_packets: queue_packets,
                dropped_queue_bytes: queue_bytes,
                dropped_aqm_packets: 0,
                marked_packets: 0,
                dropped_radio_packets: radio_packets,
                dropped_radio_bytes: radio_bytes,
                delivered_packets: counts.passed,
                delivered_bytes: counts.passed_bytes,
                useful_bytes: counts.useful,
                busy_us: counts.on_air,
                queue_mean_bytes: mean,
                queue_p95_bytes: p95,
                queue_max_bytes: most,
                queue_mean_packets: mean_frames,
                queue_max_packets: most_frames,
            });
        }
        Ok((rows, events))
    }

    /// Every frame and every packet ended in exactly one way, or has not ended.
    pub(super) fn check_conservation(&self) -> Result<(), RunError> {
        let sum = |what: fn(&Station) -> u64| self.stations.iter().map(what).sum::<u64>();
        let in_air = |is: fn(&OnAir) -> bool| {
            self.stations.iter().filter_map(|s| s.on_air.as_ref()).filter(|a| is(a)).count() as u64
        };
        let held = self.held.places().filter(|held| held.lives && !held.passed).count() as u64;
        let laws = [
            (
                "frames sent = received + collided + deaf + faded + in the air",
                sum(|s| s.counts.data_sent),
                sum(|s| s.counts.data.sum()) + in_air(|a| matches!(a, OnAir::Data(_))),
            ),
            (
                "acknowledgements sent = received + collided + deaf + faded + in the air",
                sum(|s| s.counts.acks_sent),
                sum(|s| s.counts.acks.sum()) + in_air(|a| matches!(a, OnAir::Ack(_))),
            ),
            (
                "packets sent + branched = arrived + lost + held by nodes",
                self.sent + self.branches,
                sum(|s| s.counts.arrived) + sum(|s| s.counts.lost.iter().sum()) + held,
            ),
        ];
        for (law, left, right) in laws.into_iter().chain(self.laws_of_rpl()) {
            if left != right {
                let told = format!("{law} does not hold: {left} on the left, {right} on the right");
                return Err(RunError::Conservation("the mesh".to_owned(), told));
            }
        }
        Ok(())
    }

    /// The same of control messages.
    fn laws_of_rpl(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let laws = self.rpl.as_ref().map(|rpl| {
            let sum = |what: fn(&Control) -> u64| rpl.control.iter().map(what).sum::<u64>();
            [
                (
                    "control messages made = sent + given up + without room + held by nodes",
                    sum(|control| control.made.iter().sum()),
                    sum(|control| control.left + control.given_up + control.refused) + rpl.waiting,
                ),
                (
                    "nodes that control frames were for = received + collided + deaf + faded + in the air",
                    sum(|control| control.copies),
                    sum(|control| control.fates.sum()) + self.copies_in_air(),
                ),
            ]
        });
        laws.into_iter().flatten()
    }

    /// Frames of control messages that were sent.
    fn control_frames(&self) -> u64 {
        self.rpl.as_ref().map_or(0, |rpl| rpl.control.iter().map(|control| control.sent).sum())
    }
}

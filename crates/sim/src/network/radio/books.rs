//! The books of a mesh: rows of what became of frames and packets, and the laws that they obey.

use millpond_control::Instant;

use super::{
    Drops, Mesh, Node,
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
            let [buffers, neighbours, no_ack, no_channel, air, reassembly] = counts.lost;
            NodeRow {
                node: self.plan.names[node].clone(),
                x_mm: self.plan.places[node].x,
                y_mm: self.plan.places[node].y,
                role: self.plan.roles[node].clone(),
                parent: self.tree.parent(node as Node).map(|parent| self.plan.names[parent as usize].clone()),
                depth: self.tree.depth(node as Node).unwrap_or(u32::MAX),
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
            }
        };
        self.stations.iter().enumerate().map(row).collect()
    }

    /// From `now` on occupancy and drops are those since then.
    pub(in crate::network) fn restart_statistics(&mut self, now: Instant) {
        self.stations.iter_mut().for_each(|station| station.occupancy.restart(now));
        self.drops.fill(Drops::default());
    }

    /// Closes the books: a row for each node's radio, and how many events there were.
    pub(in crate::network) fn rows(&mut self, end: Instant) -> Result<(Vec<LinkRow>, u64), RunError> {
        self.check_conservation()?;
        let mut events = 0;
        let mut rows = Vec::with_capacity(self.stations.len());
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
        for (law, left, right) in laws {
            if left != right {
                let told = format!("{law} does not hold: {left} on the left, {right} on the right");
                return Err(RunError::Conservation("the mesh".to_owned(), told));
            }
        }
        Ok(())
    }
}

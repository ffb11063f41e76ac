//! Access to a path: what its devices send, and what is for them, goes through it before it enters a link.

use millpond_control::Instant;
use millpond_link::Passing;

use super::{Graph, Way};
use crate::{network::Arrival, outcome::AccessRow, trace::Recorder};

impl Graph {
    /// A packet comes to the path whose devices may not always send, or be reached.
    #[cold]
    pub(super) fn admit(&mut self, now: Instant, way: Way, length: u32, number: u32, rec: &mut Recorder) {
        if let Some(packet) = self.packets.get(number) {
            rec.packet(now, "wait", usize::from(way.to_client), packet, length);
        }
        if let Some(access) = &mut self.access {
            access.offer(now, way.client, way.to_client, length, number);
        }
        self.let_through(now, rec);
    }

    /// What is due by `now` and is no link's: maybe a packet that reaches its client.
    #[cold]
    pub(super) fn look_elsewhere(&mut self, place: usize, now: Instant, rec: &mut Recorder) -> Option<Arrival> {
        match place - self.hops.len() {
            0 => self.change(now),
            1 => self.let_through(now, rec),
            2 => self.send_cross(now, rec),
            _ => return self.over_wifi(now, rec),
        }
        None
    }

    /// Packets whose devices have access by `now` enter their links.
    fn let_through(&mut self, now: Instant, rec: &mut Recorder) {
        while let Some(passing) = self.access.as_mut().and_then(|access| access.release(now)) {
            let Passing { payload: number, len, device, to_device, at, is_dropped } = passing;
            let place = usize::from(to_device);
            let Some(packet) = self.packets.get(number) else { continue };
            if is_dropped {
                rec.packet(at, "drop_access", place, packet, len);
                self.dropped(number, false);
                continue;
            }
            if let Some(recording) = &mut self.recording {
                recording.sent(place, at, packet);
            }
            self.offer(place, at, len, number, device, rec);
        }
        let next = self.access.as_ref().and_then(|access| access.next()).unwrap_or(Instant::NEVER);
        self.calendar.set(self.hops.len() as u32 + 1, next);
    }

    /// What became of preambles, and of packets before they entered a link.
    pub(in crate::network) fn access_rows(&self) -> Vec<AccessRow> {
        let row = |access: &millpond_link::Access<u32>| {
            let counters = access.counters();
            AccessRow {
                passed_packets: counters.passed,
                dropped_packets: counters.dropped,
                held_packets: access.held(),
                preambles: counters.preambles,
                preambles_collided: counters.collided,
                preambles_unanswered: counters.unanswered,
                connections: counters.connections,
                given_up: counters.given_up,
            }
        };
        self.access.iter().map(|access| row(access)).collect()
    }
}

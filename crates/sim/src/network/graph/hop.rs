//! The Wi-Fi hop of clients: their packets cross it before the first link, those for them behind the last one.

use millpond_control::Instant;
use millpond_link::Passing;

use super::{Graph, Way};
use crate::{ledger::NO_EXCHANGE, network::Arrival, outcome::WifiRow, trace::Recorder};

impl Graph {
    /// A packet of a client comes to the hop, or one for a client from its last link.
    #[cold]
    pub(super) fn offer_to_wifi(&mut self, now: Instant, way: Way, length: u32, number: u32) {
        if let Some(wifi) = &mut self.wifi {
            wifi.offer(now, way.client, way.to_client, length, number);
        }
        self.wake_wifi();
    }

    fn wake_wifi(&mut self) {
        let next = self.wifi.as_ref().and_then(|wifi| wifi.next()).unwrap_or(Instant::NEVER);
        self.calendar.set(self.hops.len() as u32 + 3, next);
    }

    /// Packets that are over the hop by `now` enter their first link; the first for a client is handed out.
    #[cold]
    pub(super) fn over_wifi(&mut self, now: Instant, rec: &mut Recorder) -> Option<Arrival> {
        while let Some(passing) = self.wifi.as_mut().and_then(|wifi| wifi.release(now)) {
            let Passing { payload: number, len, device, to_device, at, is_dropped } = passing;
            let Some(packet) = self.packets.get(number) else { continue };
            let beside = packet.hop.saturating_sub(u8::from(to_device));
            let Some(place) = self.routes.hop(packet.route, beside) else { continue };
            if is_dropped {
                rec.packet(at, "drop_access", place, packet, len);
                self.dropped(number, false);
                continue;
            }
            if to_device {
                if let Some(recording) = &mut self.recording {
                    recording.arrived(at, packet);
                }
                if packet.tag.exchange != NO_EXCHANGE && packet.asks() {
                    rec.asked(&packet.tag);
                }
                let arrival = packet.arrival(len);
                self.handed = Some(number);
                self.arrived += 1;
                self.wake_wifi();
                return Some(arrival);
            }
            if let Some(recording) = &mut self.recording {
                recording.sent(place, at, packet);
            }
            self.offer(place, at, len, number, device, rec);
        }
        self.wake_wifi();
        None
    }

    /// What became of packets on the hop.
    pub(in crate::network) fn wifi_rows(&self) -> Vec<WifiRow> {
        let row = |wifi: &millpond_link::Dcf<u32>| {
            let counters = wifi.counters();
            WifiRow {
                passed_packets: counters.passed,
                refused_packets: counters.refused,
                given_up_packets: counters.given_up,
                held_packets: wifi.held(),
                frames: counters.frames,
                frames_collided: counters.collided,
                busy_us: counters.busy,
            }
        };
        self.wifi.iter().map(|wifi| row(wifi)).collect()
    }
}

//! Who spoke over the path: one record a client, as many as there is room for.

use std::{collections::HashMap, fmt::Display, hash::Hash};

use millpond_control::Instant;

use crate::FlowRow;

/// As many clients are distinguished; further ones share the links and have no row.
const MOST: usize = 10_000;

/// The clients seen, by whatever distinguishes them.
#[derive(Debug)]
pub(crate) struct Flows<K> {
    places: HashMap<K, u32>,
    rows: Vec<FlowRow>,
}

impl<K: Copy + Eq + Hash + Display> Flows<K> {
    pub(crate) fn new() -> Self {
        Self { places: HashMap::new(), rows: Vec::new() }
    }

    /// The number of a client that sends at `now`; made if it is new and there is room.
    pub(crate) fn sent(&mut self, key: K, transport: &str, now: Instant, len: u32) -> Option<u32> {
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None if self.rows.len() >= MOST => return None,
            None => {
                let flow = self.rows.len() as u32;
                self.places.insert(key, flow);
                self.rows.push(FlowRow {
                    flow,
                    transport: transport.to_owned(),
                    client: key.to_string(),
                    first_send_us: now.as_micros(),
                    fct_us: None,
                    sent_packets: 0,
                    sent_bytes: 0,
                    received_packets: 0,
                    received_bytes: 0,
                    dropped_queue: 0,
                    dropped_radio: 0,
                });
                flow
            }
        };
        let row = self.rows.get_mut(place as usize)?;
        row.sent_packets += 1;
        row.sent_bytes += u64::from(len);
        Some(place)
    }

    /// The number of a client that something is on its way to, if it was seen.
    pub(crate) fn find(&self, key: K) -> Option<u32> {
        self.places.get(&key).copied()
    }

    /// Something was handed to it.
    pub(crate) fn received(&mut self, place: Option<u32>, now: Instant, len: u32) {
        let Some(row) = self.row(place) else { return };
        row.received_packets += 1;
        row.received_bytes += u64::from(len);
        row.fct_us = Some(now.as_micros().saturating_sub(row.first_send_us));
    }

    /// A packet to it or from it was dropped.
    pub(crate) fn dropped(&mut self, place: Option<u32>, radio: bool) {
        let Some(row) = self.row(place) else { return };
        *(if radio { &mut row.dropped_radio } else { &mut row.dropped_queue }) += 1;
    }

    pub(crate) fn rows(&self) -> Vec<FlowRow> {
        self.rows.clone()
    }

    fn row(&mut self, place: Option<u32>) -> Option<&mut FlowRow> {
        self.rows.get_mut(place? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_room_nobody_is_told_apart_and_nobody_is_forgotten() {
        let mut flows = Flows::new();
        let at = Instant::from_micros;
        assert_eq!(flows.sent(0, "udp", at(5), 38), Some(0));
        for key in 1..20_000 {
            assert_eq!(flows.sent(key, "udp", at(9), 38).is_some(), key < 10_000);
        }
        let place = flows.find(0);
        flows.received(place, at(105), 94);
        flows.received(flows.find(19_999), at(105), 94);
        flows.dropped(place, true);
        let rows = flows.rows();
        assert_eq!((rows.len(), rows[0].fct_us, rows[0].received_bytes), (10_000, Some(100), 94));
        assert_eq!((rows[0].dropped_radio, rows[0].dropped_queue, rows[1].fct_us), (1, 0, None));
    }
}

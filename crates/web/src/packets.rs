//! From what happened to packets to what a page draws: when each came to a queue, left it, and arrived.

use std::collections::{HashMap, VecDeque};

use millpond_sim::{LinkName, Outcome, PacketEvent};

/// What became of a packet, as a page is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It belongs to the copy that completed its exchange.
    Useful = 0,
    /// It was carried and completed nothing.
    InVain = 1,
    /// It found the queue full.
    Refused = 2,
    /// The radio lost it.
    Lost = 3,
    /// The run ended before it arrived.
    UnderWay = 4,
}

/// The packets that were offered to one link, in the order of their coming. Times in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    pub(crate) came: Vec<f32>,
    /// When its last bit was sent.
    pub(crate) sent: Vec<f32>,
    pub(crate) arrived: Vec<f32>,
    pub(crate) bytes: Vec<u32>,
    pub(crate) fates: Vec<u8>,
}

impl Packets {
    fn add(&mut self, event: &PacketEvent, fate: Fate) -> usize {
        self.came.push(seconds(event.t_us));
        self.sent.push(f32::INFINITY);
        self.arrived.push(f32::INFINITY);
        self.bytes.push(event.bytes);
        self.fates.push(fate as u8);
        self.came.len() - 1
    }
}

/// What packets have in common that nothing but their order distinguishes.
type Likeness = (u32, u32, u32, u32, Option<u64>, Option<u64>);

/// The packets of each link; of the links in their order, and of their propagation delays in microseconds.
pub(crate) fn of(outcome: &Outcome, links: &[(LinkName, u64)]) -> Vec<Packets> {
    let mut found = vec![Packets::default(); links.len()];
    let mut waiting: Vec<HashMap<Likeness, VecDeque<usize>>> = vec![HashMap::new(); links.len()];
    for event in &outcome.packets {
        let Some(link) = links.iter().position(|(name, _)| *name == event.link) else { continue };
        let packets = &mut found[link];
        let alike = (event.flow, event.exchange, event.copy, event.bytes, event.offset, event.ack);
        let first = |waiting: &mut Vec<HashMap<Likeness, VecDeque<usize>>>| {
            waiting[link].get_mut(&alike).and_then(VecDeque::pop_front)
        };
        match event.event {
            "enq" => {
                let place = packets.add(event, Fate::UnderWay);
                waiting[link].entry(alike).or_default().push_back(place);
            }
            "drop_queue" => {
                packets.add(event, Fate::Refused);
            }
            "recv" => {
                if let Some(place) = first(&mut waiting) {
                    packets.sent[place] = seconds(event.t_us.saturating_sub(links[link].1)).max(packets.came[place]);
                    packets.arrived[place] = seconds(event.t_us);
                    let useful = is_useful(outcome, event);
                    packets.fates[place] = (if useful { Fate::Useful } else { Fate::InVain }) as u8;
                }
            }
            // The radio may lose a packet before the queue.
            "drop_radio" => match first(&mut waiting) {
                Some(place) => {
                    // It is missed when it should have arrived.
                    packets.sent[place] = seconds(event.t_us.saturating_sub(links[link].1)).max(packets.came[place]);
                    packets.fates[place] = Fate::Lost as u8;
                }
                None => {
                    packets.add(event, Fate::Lost);
                }
            },
            _ => {}
        }
    }
    found
}

/// Whether it belongs to the copy that completed its exchange. Where exchanges have no copies, as over TCP, what was not sent
/// before is taken to be useful.
fn is_useful(outcome: &Outcome, event: &PacketEvent) -> bool {
    let of = (event.flow, event.exchange);
    let row = outcome.exchanges.binary_search_by_key(&of, |row| (row.flow, row.exchange)).ok();
    match row.map(|row| &outcome.exchanges[row]) {
        Some(row) => match row.winning_copy {
            Some(copy) => copy == event.copy,
            None => row.accepted_us.is_some() && !event.again,
        },
        None => !event.again,
    }
}

/// Precise to less than a frame: 4 µs after a minute, 4 ms after a day.
pub(crate) fn seconds(micros: u64) -> f32 {
    (micros as f64 / 1e6) as f32
}

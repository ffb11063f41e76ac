//! The path between clients and server: one link a direction, and what travels on it.

use millpond_control::{ChanceSeed, Instant};
use millpond_link::{Delivered, DropReason, Link};

use crate::{
    RunError,
    agenda::{Actor, Agenda},
    ledger::Tag,
    outcome::{FlowRow, LinkRow},
    recording::Recording,
    scenario::{Direction, Path},
    tcp::Segment,
    trace::{LINKS, Recorder},
};

/// From the clients to the server.
pub(crate) const UP: usize = 0;
/// From the server to the clients.
pub(crate) const DOWN: usize = 1;

/// A packet on its way, with what only the laboratory knows about it.
pub(crate) struct Packet {
    pub(crate) load: Load,
    pub(crate) tag: Tag,
}

/// What a packet is.
pub(crate) enum Load {
    /// A datagram of CoAP.
    Datagram(Vec<u8>),
    /// A segment of a connection.
    Segment(Box<Carried>),
}

/// A segment, and the number of its connection among those of its client: the port that a real one would have.
pub(crate) struct Carried {
    pub(crate) segment: Segment,
    pub(crate) connection: u32,
}

/// Packets of one client that the downlink dropped.
#[derive(Clone, Copy, Default)]
struct Drops {
    queue: u32,
    radio: u32,
}

/// The path: one link a direction, and the buffers that both share.
pub(crate) struct Network {
    pub(crate) links: [Link<Packet>; 2],
    /// Actors of the two links on the agenda.
    pub(crate) actors: [Actor; 2],
    header: u32,
    /// Empty buffers, so that the steady state allocates nothing.
    spare: Vec<Vec<u8>>,
    useful: [u64; 2],
    arrived: u64,
    drops: Vec<Drops>,
    pub(crate) recording: Option<Box<Recording>>,
}

impl Network {
    pub(crate) fn new(path: &Path, seed: ChanceSeed, clients: u32, capture: bool) -> Result<Self, RunError> {
        let link = |way: usize, direction: &Direction| {
            Link::new(&direction.config(), seed, way as u32)
                .map_err(|error| RunError::Link(LINKS[way], error.to_string()))
        };
        Ok(Self {
            links: [link(UP, &path.uplink)?, link(DOWN, &path.downlink)?],
            actors: [clients, clients + 1],
            header: path.header.0 as u32,
            spare: Vec::new(),
            useful: [0; 2],
            arrived: 0,
            drops: vec![Drops::default(); clients as usize],
            recording: capture.then(Box::default),
        })
    }

    /// Offers a datagram to a link and wakes the link accordingly.
    #[inline]
    pub(crate) fn send(
        &mut self,
        way: usize,
        now: Instant,
        payload: &[u8],
        tag: Tag,
        agenda: &mut Agenda,
        rec: &mut Recorder,
    ) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        let length = self.length(payload);
        self.offer(way, now, length, Packet { load: Load::Datagram(bytes), tag }, agenda, rec);
    }

    /// Offers a packet to a link and wakes the link accordingly.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        way: usize,
        now: Instant,
        length: u32,
        packet: Packet,
        agenda: &mut Agenda,
        rec: &mut Recorder,
    ) {
        if let Some(recording) = &mut self.recording {
            recording.sent(way, now, &packet);
        }
        let tag = packet.tag;
        rec.packet(now, "enq", way, &packet, length);
        if let Err((reason, packet)) = self.links[way].offer(now, length, packet) {
            let radio = reason == DropReason::Radio;
            rec.dropped(if radio { "drop_radio" } else { "drop_queue" });
            self.dropped(way, &tag, radio);
            if let Some(recording) = &mut self.recording {
                recording.lost_last(way, if radio { "lost: radio" } else { "lost: queue full" });
            }
            self.reuse(packet.load);
        }
        self.wake(way, agenda);
    }

    /// Puts a link's next wake-up on the agenda.
    #[inline]
    pub(crate) fn wake(&self, way: usize, agenda: &mut Agenda) {
        agenda.set(self.actors[way], self.links[way].next().unwrap_or(Instant::NEVER));
    }

    /// The next packet that arrives at or before `now`.
    #[inline]
    pub(crate) fn receive(&mut self, way: usize, now: Instant, rec: &mut Recorder) -> Option<Packet> {
        loop {
            match self.links[way].deliver(now)? {
                Delivered::Arrived(parcel) => {
                    rec.carried(way, parcel.len);
                    rec.packet(now, "recv", way, &parcel.payload, parcel.len);
                    if let Some(recording) = &mut self.recording {
                        recording.arrived(way, parcel.at, &parcel.payload);
                    }
                    self.arrived += 1;
                    return Some(parcel.payload);
                }
                Delivered::Lost(parcel) => {
                    rec.packet(now, "drop_radio", way, &parcel.payload, parcel.len);
                    if let Some(recording) = &mut self.recording {
                        recording.lost(way, parcel.number, "lost: radio");
                    }
                    self.dropped(way, &parcel.payload.tag, true);
                    self.reuse(parcel.payload.load);
                }
            }
        }
    }

    fn dropped(&mut self, way: usize, tag: &Tag, radio: bool) {
        if way == DOWN
            && let Some(drops) = self.drops.get_mut(tag.flow as usize)
        {
            *(if radio { &mut drops.radio } else { &mut drops.queue }) += 1;
        }
    }

    fn reuse(&mut self, load: Load) {
        if let Load::Datagram(bytes) = load {
            self.spare.push(bytes);
        }
    }

    /// Takes the buffer of a datagram back and gives its length on the path.
    #[inline]
    pub(crate) fn take_back(&mut self, bytes: Vec<u8>) -> u32 {
        let length = self.length(&bytes);
        self.spare.push(bytes);
        length
    }

    /// So many bytes of a direction completed an exchange.
    #[inline]
    pub(crate) fn useful(&mut self, way: usize, bytes: u32, rec: &mut Recorder) {
        self.useful[way] += u64::from(bytes);
        rec.useful(way, bytes);
    }

    /// Bytes of a datagram on the path.
    #[inline]
    pub(crate) fn length(&self, payload: &[u8]) -> u32 {
        self.header + payload.len() as u32
    }

    /// Adds what became of a client's downlink packets to its row.
    pub(crate) fn sum(&self, row: &mut FlowRow) {
        let drops = self.drops.get(row.flow as usize).copied().unwrap_or_default();
        (row.dropped_queue, row.dropped_radio) = (drops.queue, drops.radio);
    }

    /// Closes the books of both links: their rows, and how many events there were.
    pub(crate) fn rows(&mut self, end: Instant) -> Result<(Vec<LinkRow>, u64), RunError> {
        let mut events = self.arrived;
        let mut rows = Vec::with_capacity(LINKS.len());
        for (way, name) in LINKS.into_iter().enumerate() {
            let link = &mut self.links[way];
            link.check_conservation().map_err(|error| RunError::Conservation(name, error.to_string()))?;
            let counters = *link.counters();
            let statistics = link.statistics(end);
            events += counters.offered.packets + counters.carried.packets + counters.delivered.packets;
            let dropped = counters.dropped_by_queue();
            rows.push(LinkRow {
                link: name,
                offered_packets: counters.offered.packets,
                offered_bytes: counters.offered.bytes,
                dropped_queue_packets: dropped.packets,
                dropped_queue_bytes: dropped.bytes,
                dropped_radio_packets: counters.lost.packets,
                dropped_radio_bytes: counters.lost.bytes,
                delivered_packets: counters.delivered.packets,
                delivered_bytes: counters.delivered.bytes,
                useful_bytes: self.useful[way],
                busy_us: statistics.busy_micros,
                queue_mean_bytes: statistics.bytes.mean,
                queue_p95_bytes: statistics.bytes.p95,
                queue_max_bytes: statistics.bytes.max,
                queue_mean_packets: statistics.packets.mean,
                queue_max_packets: statistics.packets.max,
            });
        }
        Ok((rows, events))
    }
}

//! What every driver has: the links, who speaks over them, what was left out, and how late it all was.

use std::{
    fmt::Display,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use millpond_control::Instant;
use millpond_link::DropReason;
use millpond_path::Path;

use crate::{
    ClientStanding, Error, GateRow, Lateness, LatenessBound, LatenessRow, LeftOut, Outgoing, Report, Shaper, Toward,
    clock::Clock, flows::Flows, priority::Attention, reader::Reading,
};

/// How often a driver reports how it stands, µs.
const TOLD_EVERY: u64 = 250_000;

/// How a run stands, for observers.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Time since it began, µs.
    pub elapsed_us: u64,
    /// The uplink, then the downlink.
    pub links: [LinkStanding; 2],
    /// Packets and datagrams left out until now, by reason; only reasons that occurred.
    pub left_out: Vec<LeftOut>,
    /// The clients of a relay.
    pub clients: ClientStanding,
    /// What the gate before the server has counted; nothing without one.
    pub gate: Vec<GateRow>,
    /// How late packets were.
    pub lateness: LatenessRow,
}

/// How one link stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStanding {
    /// Bytes in its queue.
    pub queued_bytes: u64,
    /// Packets that arrived at its far end until now.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Of these, bytes of packets that a [`Reader`](crate::Reader) could read.
    pub read_bytes: u64,
    /// Of those, bytes of packets that were no copies of others that had arrived.
    pub useful_bytes: u64,
    /// Packets that found its queue full until now.
    pub dropped_queue: u64,
    /// Packets that its medium lost until now.
    pub dropped_radio: u64,
}

/// The latest [`Standing`] of a run; `None` before the first.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Option<Standing>>>);

impl Watch {
    /// How the run stands.
    #[must_use]
    pub fn standing(&self) -> Option<Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One packet inside.
#[derive(Debug)]
pub(crate) struct Carried<P> {
    pub(crate) flow: Option<u32>,
    /// What the reader gave when it came.
    pub(crate) mark: u32,
    pub(crate) payload: P,
}

pub(crate) struct Passage<K, P> {
    pub(crate) clock: Clock,
    pub(crate) shaper: Shaper<Carried<P>>,
    pub(crate) flows: Flows<K>,
    pub(crate) watch: Watch,
    pub(crate) attention: Attention,
    pub(crate) reading: Reading,
    pub(crate) lateness: Lateness,
    left_out: Vec<LeftOut>,
    seed: u64,
    told: Instant,
    /// Something has happened since that was not told.
    is_untold: bool,
}

impl<K: Copy + Eq + Hash + Display, P> Passage<K, P> {
    pub(crate) fn new(clock: Clock, path: &Path, seed: u64, bound: Option<LatenessBound>) -> Result<Self, Error> {
        Ok(Self {
            clock,
            shaper: Shaper::new(path, seed)?,
            flows: Flows::new(),
            watch: Watch::default(),
            attention: Attention::default(),
            reading: Reading::default(),
            lateness: Lateness::new(bound.unwrap_or_else(|| LatenessBound::of(path))),
            left_out: Vec::new(),
            seed,
            told: Instant::ORIGIN,
            is_untold: false,
        })
    }

    /// Offers a packet to a link. Gives the payload back if it was dropped.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        toward: Toward,
        (client, flow, mark): (u32, Option<u32>, u32),
        len: u32,
        payload: P,
    ) -> Result<(), (DropReason, P)> {
        self.shaper.offer(now, toward, client, len, Carried { flow, mark, payload }).map_err(|(why, carried)| {
            self.flows.dropped(flow, why == DropReason::Radio);
            (why, carried.payload)
        })
    }

    /// The next packet that is due, if one is. Its lateness is counted.
    pub(crate) fn due(&mut self) -> Option<Outgoing<Carried<P>>> {
        let now = self.clock.now();
        let out = self.shaper.deliver(now)?;
        if let Some(why) = out.lost {
            self.flows.dropped(out.payload.flow, why == DropReason::Radio);
        } else {
            self.lateness.record(out.at, now);
            if out.toward == Toward::Clients {
                self.flows.received(out.payload.flow, now, out.len);
            }
        }
        Some(out)
    }

    /// A packet that no link is offered.
    pub(crate) fn leave_out(&mut self, why: &'static str) {
        self.leave_out_many(why, 1);
    }

    pub(crate) fn leave_out_many(&mut self, why: &'static str, packets: u64) {
        match self.left_out.iter_mut().find(|left_out| left_out.why == why) {
            Some(left_out) => left_out.packets += packets,
            None if packets > 0 => self.left_out.push(LeftOut { why, packets }),
            None => {}
        }
    }

    /// When [`tell`](Self::tell) is to be called although nothing happens.
    pub(crate) fn tells(&self) -> Option<Instant> {
        self.is_untold.then_some(self.told)
    }

    /// Reports how it stands, if it is time. Never waits for its reader.
    pub(crate) fn tell(&mut self, clients: ClientStanding, gate: impl FnOnce() -> Vec<GateRow>) {
        let now = self.clock.now();
        self.is_untold = now.as_micros() < self.told.as_micros();
        if self.is_untold {
            return;
        }
        self.told = Instant::from_micros(now.as_micros() + TOLD_EVERY);
        let mut links = [Toward::Server, Toward::Clients].map(|toward| {
            let queued_bytes = self.shaper.queued(now, toward).bytes;
            let counters = self.shaper.counters(toward);
            LinkStanding {
                queued_bytes,
                delivered_packets: counters.delivered.packets,
                delivered_bytes: counters.delivered.bytes,
                dropped_queue: counters.dropped_by_queue().packets,
                dropped_radio: counters.lost.packets,
                ..LinkStanding::default()
            }
        });
        self.reading.standing(&mut links);
        match self.watch.0.try_lock() {
            Ok(mut standing) => {
                let (elapsed_us, left_out, lateness) = (now.as_micros(), self.left_out.clone(), self.lateness.row());
                *standing = Some(Standing { elapsed_us, links, left_out, clients, gate: gate(), lateness });
            }
            Err(_) => self.is_untold = true,
        }
    }

    /// What it came to.
    pub(crate) fn report(&mut self) -> Result<Report, Error> {
        let now = self.clock.now();
        let mut links = self.shaper.rows(now)?;
        self.reading.rows(&mut links);
        Ok(Report {
            elapsed_us: now.as_micros(),
            seed: self.seed,
            lateness: self.lateness.row(),
            real_time_priority: self.attention.real_time,
            hindrances: self.attention.hindrances(),
            links,
            access: self.shaper.access(),
            flows: self.flows.rows(),
            left_out: self.left_out.clone(),
            retransmissions: self.reading.retransmissions(),
            devices: None,
            gate: Vec::new(),
        })
    }
}

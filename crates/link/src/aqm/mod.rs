//! Queues that manage themselves: what waits behind the packet in service, and which of it is dropped before the queue is full.
//!
//! A discipline decides when a packet comes and when one is taken out, which is at the instant at which the one before it has left. It
//! has no clock: both are arguments.

mod codel;
mod fq_codel;
mod pie;

use crate::config::{Aqm, Limit};
use crate::queue::{DropReason, Occupancy};
use millpond_control::ChanceSeed;
use std::collections::VecDeque;

// What words of chance are for, as the last part of their address; those of losses are below.
const EARLY: u32 = 5;
const FLOW: u32 = 6;

/// A packet that waits to be taken out.
#[derive(Clone, Debug)]
pub(crate) struct Parked<P> {
    pub(crate) number: u64,
    /// When it came, µs.
    pub(crate) since: u64,
    pub(crate) len: u32,
    /// What it counts for in the queue.
    pub(crate) room: u32,
    /// Whose it is.
    pub(crate) radio: u32,
    pub(crate) ecn: Ecn,
    pub(crate) payload: P,
}

/// What a packet says of congestion (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ecn {
    /// Nothing: it is dropped where others are marked.
    NotCapable,
    /// A queue may mark it.
    Capable,
    /// A queue has.
    Marked,
}

impl<P> Parked<P> {
    /// Marks it in place of a drop, if that says anything to anybody.
    fn mark(&mut self) -> bool {
        if self.ecn != Ecn::NotCapable {
            self.ecn = Ecn::Marked;
        }
        self.ecn == Ecn::Marked
    }
}

/// A packet that a discipline dropped, when, and why.
pub(crate) type Dropped<P> = (Parked<P>, u64, DropReason);

/// What waits behind the packet in service.
#[derive(Clone, Debug)]
pub(crate) struct Managed<P> {
    discipline: Discipline<P>,
    held: Occupancy,
    /// What was dropped and nobody has fetched.
    dropped: VecDeque<Dropped<P>>,
}

#[derive(Clone, Debug)]
enum Discipline<P> {
    CoDel(codel::CoDel, VecDeque<Parked<P>>),
    FqCoDel(fq_codel::FqCoDel<P>),
    Pie(pie::Pie, VecDeque<Parked<P>>),
}

impl<P> Managed<P> {
    /// None for a queue that drops at its tail alone. `number` names the link.
    pub(crate) fn new(aqm: Aqm, seed: ChanceSeed, number: u32) -> Option<Self> {
        let discipline = match aqm {
            Aqm::None => return None,
            Aqm::CoDel(rules) => Discipline::CoDel(codel::CoDel::new(rules), VecDeque::new()),
            Aqm::FqCoDel(rules) => Discipline::FqCoDel(fq_codel::FqCoDel::new(rules, seed, number)),
            Aqm::Pie(rules) => Discipline::Pie(pie::Pie::new(rules, seed, number), VecDeque::new()),
        };
        Some(Self { discipline, held: Occupancy::NOTHING, dropped: VecDeque::new() })
    }

    /// What waits.
    pub(crate) const fn held(&self) -> Occupancy {
        self.held
    }

    /// Whether a full queue makes room for a packet by dropping others.
    pub(crate) const fn makes_room(&self) -> bool {
        matches!(self.discipline, Discipline::FqCoDel(_))
    }

    /// Takes a packet that came at `now`. `beyond` counts towards the limit too.
    ///
    /// # Errors
    /// Gives the packet back if it is dropped at once.
    pub(crate) fn enqueue(
        &mut self,
        now: u64,
        mut packet: Parked<P>,
        limit: Limit,
        beyond: Occupancy,
    ) -> Result<(), (DropReason, P)> {
        let Self { discipline, held, dropped } = self;
        let room = packet.room;
        match discipline {
            Discipline::CoDel(_, line) => line.push_back(packet),
            Discipline::FqCoDel(flows) => {
                flows.enqueue(packet);
                held.add(room);
                while exceeds(limit, *held, beyond)
                    && let Some(fattest) = flows.drop_fattest()
                {
                    held.remove(fattest.room);
                    dropped.push_back((fattest, now, DropReason::QueueFull));
                }
                return Ok(());
            }
            Discipline::Pie(pie, line) => {
                if pie.drops(now, packet.number, held.bytes) && !(pie.may_mark() && packet.mark()) {
                    return Err((DropReason::Managed, packet.payload));
                }
                line.push_back(packet);
            }
        }
        held.add(room);
        Ok(())
    }

    /// The packet that is sent next, at `now`.
    pub(crate) fn dequeue(&mut self, now: u64) -> Option<Parked<P>> {
        let Self { discipline, held, dropped } = self;
        match discipline {
            Discipline::CoDel(codel, line) => codel.dequeue(
                now,
                || take(line, held),
                |packet| {
                    dropped.push_back((packet, now, DropReason::Managed));
                },
            ),
            Discipline::FqCoDel(flows) => flows.dequeue(now, held, |packet| {
                dropped.push_back((packet, now, DropReason::Managed));
            }),
            Discipline::Pie(pie, line) => {
                let (packet, left) = take(line, held)?;
                pie.took(now, packet.since, left);
                Some(packet)
            }
        }
    }

    /// When something of what waits may be dropped at the earliest, if the packet in service is out at `departs`; never, if packets are
    /// dropped when they come.
    pub(crate) fn first_drop(&self, departs: u64) -> Option<u64> {
        match &self.discipline {
            Discipline::CoDel(codel, _) => Some(codel.first_drop(departs)),
            // Any flow may be next.
            Discipline::FqCoDel(_) => Some(departs),
            Discipline::Pie(..) => None,
        }
    }

    /// Whether something was dropped that nobody has fetched.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// The next packet that was dropped by `now`.
    pub(crate) fn fetch_dropped(&mut self) -> Option<Dropped<P>> {
        self.dropped.pop_front()
    }

    /// How many of them were dropped after so many.
    pub(crate) fn dropped_after(&self, fetched: usize) -> impl Iterator<Item = &Dropped<P>> {
        self.dropped.iter().skip(fetched)
    }

    /// How many were dropped and not fetched.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped.len()
    }

    /// Length and room of all that waits.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = (u32, u32)> {
        let (line, flows) = match &self.discipline {
            Discipline::CoDel(_, line) | Discipline::Pie(_, line) => (Some(line), None),
            Discipline::FqCoDel(flows) => (None, Some(flows.iter())),
        };
        line.into_iter().flatten().chain(flows.into_iter().flatten()).map(|packet| (packet.len, packet.room))
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        let packets = match &self.discipline {
            Discipline::CoDel(_, line) | Discipline::Pie(_, line) => line.capacity() * size_of::<Parked<P>>(),
            Discipline::FqCoDel(flows) => flows.memory(),
        };
        packets + self.dropped.capacity() * size_of::<Dropped<P>>()
    }
}

const fn exceeds(limit: Limit, held: Occupancy, beyond: Occupancy) -> bool {
    match limit {
        Limit::Bytes(limit) => held.bytes + beyond.bytes > limit,
        Limit::Packets(limit) => held.packets + beyond.packets > limit,
    }
}

/// The first of a line, and the bytes that wait behind it in the whole queue.
fn take<P>(line: &mut VecDeque<Parked<P>>, held: &mut Occupancy) -> Option<(Parked<P>, u64)> {
    let packet = line.pop_front()?;
    held.remove(packet.room);
    Some((packet, held.bytes))
}

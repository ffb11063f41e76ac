//! The link: what comes in, what goes out, and when to look again.

mod changes;
mod managing;

use crate::access::Levels;
use crate::air::{Air, Flying};
use crate::aloft::Aloft;
use crate::aqm::{Ecn, Managed, Parked};
use crate::config::{Config, ConfigError, Counted, InFlight, LossAt, Order};
use crate::counters::{Counters, Imbalance, Tally};
use crate::jitter::Delay;
use crate::queue::{DropReason, Occupancy, Queue, Waiting};
use crate::radios::Radios;
use crate::rate::RateStage;
use crate::statistics::{Meter, Statistics};
use crate::trace::{Follower, Trace};
use millpond_control::{ChanceSeed, Instant, Span};
use std::sync::Arc;

/// One direction of a path. `P` is whatever the owner wants moved along with a packet: a buffer, or its index.
///
/// Time never goes back: a `now` before the latest seen counts as the latest seen. Everything due before `now` happens
/// before the call does: at the instant at which a packet's last bit is out, its room in the queue is free again.
#[derive(Clone, Debug)]
pub struct Link<P> {
    /// The latest instant seen.
    clock: u64,
    charge: Charge,
    overhead_in_queue: bool,
    propagation: Span,
    loss_at: LossAt,
    rate: RateStage,
    loss: Radios,
    delay: Delay,
    queue: Queue<P>,
    /// It marks in place of dropping.
    marks: bool,
    /// What waits behind the packet in service, if the queue manages itself.
    managed: Option<Box<Managed<P>>>,
    air: Air<P>,
    /// What has left the queue and counts towards its limit all the same; none if nothing does.
    aloft: Option<Aloft>,
    counters: Counters,
    /// What the medium lost after the rate stage.
    lost_after: Tally,
    meter: Meter,
    /// Busy time before the statistics were restarted.
    busy_before: u64,
    /// Since when nothing is sent, if nothing is, and what of packets that have left the queue.
    paused: Option<(u64, InFlight)>,
    /// Before this nothing arrives: the link went on then after a pause that delayed what was under way.
    resumed: u64,
}

/// A packet that a link hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered<P> {
    /// It arrived.
    Arrived(Parcel<P>),
    /// The medium lost it, after it had used queue and link. It is handed out when it would have arrived at the
    /// earliest, so that the owner may reuse its payload.
    Lost(Parcel<P>),
    /// The queue dropped it after it had taken it. It left when it was dropped, and arrived nowhere.
    Dropped(Parcel<P>, DropReason),
}

/// What is known of a packet at the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel<P> {
    /// As offered.
    pub payload: P,
    /// Its length in bytes, as offered.
    pub len: u32,
    /// Its number: 0 for the first packet ever offered to this link, dropped ones included.
    pub number: u64,
    /// When its last bit left the rate stage, rounded up to a microsecond.
    pub left: Instant,
    /// When it arrived.
    pub at: Instant,
    /// The queue marked it in place of dropping it ([`Link::offer_capable`]).
    pub marked: bool,
}

impl<P> Link<P> {
    /// Bytes of memory that one packet inside takes at the most, its payload included (what the payload points to is
    /// the owner's); 16 more if the limit counts all packets. Room for packets grows by doubling.
    pub const BYTES_PER_PACKET: usize =
        if size_of::<Waiting<P>>() > size_of::<Flying<P>>() { size_of::<Waiting<P>>() } else { size_of::<Flying<P>>() };

    /// An empty link. `number` names it: links with the same seed and different numbers have random streams of their own.
    ///
    /// # Errors
    /// What [`Config::check`] finds.
    pub fn new(config: &Config, seed: ChanceSeed, number: u32) -> Result<Self, ConfigError> {
        config.check()?;
        let delay = Delay::new(config, seed, number);
        Ok(Self {
            clock: 0,
            charge: Charge { overhead: i64::from(config.overhead), levels: None },
            overhead_in_queue: config.overhead_in_queue,
            propagation: config.propagation,
            loss_at: config.loss_at,
            rate: RateStage::new(config.rate),
            loss: Radios::new(config.loss, config.loss_of, seed, number),
            queue: Queue::new(config.queue),
            marks: config.ecn,
            managed: Managed::new(config.aqm, seed, number).map(Box::new),
            air: Air::new(delay.order()),
            delay,
            aloft: (config.queue_counts == Counted::All).then(Aloft::default),
            counters: Counters::default(),
            lost_after: Tally::default(),
            meter: Meter::default(),
            busy_before: 0,
            paused: None,
            resumed: 0,
        })
    }

    /// Follows a trace, which is `ahead` µs old at the origin of time: what it speaks of replaces rate, propagation and losses of
    /// the configuration. To be called before the first packet is offered.
    #[must_use]
    pub fn follow(mut self, trace: &Arc<Trace>, ahead: u64) -> Self {
        let follower = || Follower::new(Arc::clone(trace), ahead);
        if trace.has_rates() {
            self.rate.follow(follower());
        }
        if trace.has_delays() {
            self.delay.follow(follower(), self.propagation);
        }
        if trace.has_losses() {
            self.loss.follow(follower());
        }
        self
    }

    /// Sends each packet as often as the coverage level of its radio asks for. To be called before the first packet is offered.
    #[must_use]
    pub fn repeat(mut self, levels: Levels) -> Self {
        self.charge.levels = (!levels.is_plain()).then_some(levels);
        self
    }

    /// Hands a packet of `len` bytes to the link.
    ///
    /// # Errors
    /// Gives the payload back if the packet is dropped, and says why.
    pub fn offer(&mut self, now: Instant, len: u32, payload: P) -> Result<(), (DropReason, P)> {
        self.offer_of(now, 0, len, payload)
    }

    /// The same with the number of the radio that sends or hears it, which matters with [`crate::LossOf::Radio`], flows and
    /// coverage levels.
    /// Memory grows with the highest number.
    ///
    /// # Errors
    /// As [`Link::offer`].
    #[inline]
    pub fn offer_of(&mut self, now: Instant, radio: u32, len: u32, payload: P) -> Result<(), (DropReason, P)> {
        self.take(now, radio, Ecn::NotCapable, len, payload)
    }

    /// The same of a packet whose receiver has its sender react to marks as to losses (RFC 3168, section 5: ECN-capable): a queue that
    /// marks ([`Config::ecn`]) does that in place of dropping it.
    ///
    /// # Errors
    /// As [`Link::offer`].
    pub fn offer_capable(&mut self, now: Instant, radio: u32, len: u32, payload: P) -> Result<(), (DropReason, P)> {
        let ecn = if self.marks { Ecn::Capable } else { Ecn::NotCapable };
        self.take(now, radio, ecn, len, payload)
    }

    #[inline(always)]
    fn take(&mut self, now: Instant, radio: u32, ecn: Ecn, len: u32, payload: P) -> Result<(), (DropReason, P)> {
        let now = self.advance(now);
        let number = self.counters.offered.packets;
        self.counters.offered.add(len);
        if self.loss_at == LossAt::BeforeRate && self.loss.strikes(radio, number, now) {
            self.counters.lost.add(len);
            return Err((DropReason::Radio, payload));
        }
        let charged = self.charge.of(radio, len);
        let room = self.room(len);
        let halted = if self.is_halted() { self.paused.map_or(now, |(since, _)| since) } else { now };
        let beyond = self.aloft.as_mut().map_or(Occupancy::NOTHING, |aloft| aloft.held(halted));
        if self.managed.is_some() {
            return self.park(now, Parked { number, since: now, len, room, radio, ecn, payload }, beyond);
        }
        if let Err(reason) = self.queue.admit(room, beyond) {
            self.count_refused(reason, len);
            return Err((reason, payload));
        }
        let departs = self.rate.serve(now, charged);
        let waiting = Waiting { number, departs, len, radio, marked: false, payload };
        if departs <= now {
            // Takes no time to send, so everything before it is out as well: it never is in the queue.
            self.launch(waiting);
        } else {
            self.meter.spend(now, self.queue.held());
            self.queue.push(waiting, room);
        }
        Ok(())
    }

    /// All that is in the queue, the packet in service included.
    fn held(&self) -> Occupancy {
        let held = self.queue.held();
        self.managed.as_ref().map_or(held, |managed| held.plus(managed.held()))
    }

    #[cold]
    fn count_refused(&mut self, reason: DropReason, len: u32) {
        match reason {
            DropReason::Managed => self.counters.dropped_managed.add(len),
            DropReason::TooLarge => self.counters.dropped_too_large.add(len),
            DropReason::QueueFull | DropReason::Radio | DropReason::Access => self.counters.dropped_full.add(len),
        }
    }

    /// When to call [`Link::deliver`] next; none if nothing is inside, or nothing arrives while the link is paused. Ask again after
    /// every call that changes the link.
    ///
    /// With jitter that may reorder, or jitter and losses after the rate stage, this can be earlier than the next
    /// packet is due, at most once for each packet; `deliver` then hands out nothing. So it is of a queue that manages itself and may
    /// drop what waits, for that is handed out at once.
    #[must_use]
    #[inline(always)]
    pub fn next(&self) -> Option<Instant> {
        if let Some(managed) = &self.managed {
            return self.next_managed(managed);
        }
        if self.paused.is_some() {
            return self.next_paused();
        }
        self.next_arrival().map(Instant::from_micros)
    }

    /// The same of a link that is paused.
    #[inline]
    fn next_paused(&self) -> Option<Instant> {
        self.air.due().filter(|_| !self.is_halted()).map(Instant::from_micros)
    }

    /// When the next packet may arrive.
    #[inline(always)]
    fn next_arrival(&self) -> Option<u64> {
        let next = match (&self.air, self.air.due()) {
            // Nothing overtakes what is in the air.
            (Air::InOrder { .. }, Some(due)) => due,
            (_, due) => self.next_waiting(due)?,
        };
        Some(next.max(self.resumed))
    }

    /// The same where what waits may be the next to arrive.
    #[inline(never)]
    fn next_waiting(&self, due: Option<u64>) -> Option<u64> {
        let waiting = self.queue.front().map(|waiting| self.earliest_due(waiting));
        due.into_iter().chain(waiting).min()
    }

    /// The next packet due at or before `now`. Call until none comes.
    #[inline]
    pub fn deliver(&mut self, now: Instant) -> Option<Delivered<P>> {
        let now = self.advance(now);
        if let Some((packet, at, reason)) = self.managed.as_mut().and_then(|managed| managed.fetch_dropped()) {
            let Parked { number, len, payload, .. } = packet;
            let at = Instant::from_micros(at);
            return Some(Delivered::Dropped(Parcel { payload, len, number, left: at, at, marked: false }, reason));
        }
        if self.is_halted() {
            return None;
        }
        self.hand_out(now)
    }

    /// Whether nothing arrives, because of a pause that delays what is under way.
    const fn is_halted(&self) -> bool {
        matches!(self.paused, Some((_, InFlight::Delayed)))
    }

    /// The first in the air, if it is due by then.
    #[inline]
    fn hand_out(&mut self, by: u64) -> Option<Delivered<P>> {
        let Flying { due, number, left, len, lost, marked, payload } = self.air.pop(by)?;
        let at = Instant::from_micros(due.max(self.resumed));
        let parcel = Parcel { payload, len, number, left: Instant::from_micros(left), at, marked };
        if lost {
            self.counters.lost.add(len);
            self.lost_after.add(len);
            Some(Delivered::Lost(parcel))
        } else {
            self.counters.delivered.add(len);
            Some(Delivered::Arrived(parcel))
        }
    }

    /// The next packet that has left the queue by `now`, due or not yet: for an owner that must know arrivals ahead of time, and
    /// neither pauses this link nor asks [`Link::deliver`]. With jitter that may reorder, one that leaves later may be due before it.
    pub fn deliver_ahead(&mut self, now: Instant) -> Option<Delivered<P>> {
        self.advance(now);
        self.hand_out(u64::MAX)
    }

    /// What is in the queue at `now`, the packet in service included. What has left it is no part of this, nor of the
    /// statistics, even where the limit counts it.
    pub fn queued(&mut self, now: Instant) -> Occupancy {
        self.advance(now);
        self.held()
    }

    /// The number of the packet that is at the head of the queue at `now`, in service included; none if the queue is empty.
    pub fn oldest_waiting(&mut self, now: Instant) -> Option<u64> {
        self.advance(now);
        self.queue.front().map(|waiting| waiting.number)
    }

    /// Whether a packet waits or was being sent when the link was looked at last. As long as one does, a further packet does not
    /// bring [`Link::next`] forward. Never so of a queue where a packet may have others dropped.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.queue.front().is_some() && self.managed.as_ref().is_none_or(|managed| !managed.makes_room())
    }

    /// Counts of packets and bytes by what became of them.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Occupancy of the queue and busy time up to `now`.
    pub fn statistics(&mut self, now: Instant) -> Statistics {
        let now = self.advance(now);
        self.meter.spend(now, self.held());
        self.meter.read(self.rate.busy(now) - self.busy_before)
    }

    /// Begins the statistics afresh at `now`, for instance after a warm-up. Counters go on.
    pub fn restart_statistics(&mut self, now: Instant) {
        let now = self.advance(now);
        self.meter.restart(now);
        self.busy_before = self.rate.busy(now);
    }

    /// Checks that every packet and byte offered is accounted for, by walking over all that is inside.
    ///
    /// # Errors
    /// The law that does not hold: a fault of this crate.
    pub fn check_conservation(&self) -> Result<(), Imbalance> {
        let mut in_queue = Tally::default();
        let mut room = Occupancy::default();
        for waiting in self.queue.iter() {
            in_queue.add(waiting.len);
            room.packets += 1;
            room.bytes += u64::from(self.room(waiting.len));
        }
        for (len, takes) in self.managed.iter().flat_map(|managed| managed.lengths()) {
            in_queue.add(len);
            room.add(takes);
        }
        let mut in_air = Tally::default();
        self.air.lengths().for_each(|len| in_air.add(len));
        self.counters.balance(in_queue, in_air, self.lost_after)?;
        let held = self.held();
        if held != room {
            let (left, right) = (Tally::from(held), Tally::from(room));
            return Err(Imbalance { law: "occupancy = sum of what waits", left, right });
        }
        Ok(())
    }

    /// Bytes of memory held, this value included.
    #[must_use]
    pub fn memory(&self) -> usize {
        let aloft = self.aloft.as_ref().map_or(0, Aloft::memory);
        let managed = self.managed.as_ref().map_or(0, |managed| size_of::<Managed<P>>() + managed.memory());
        size_of::<Self>()
            + managed
            + self.queue.memory()
            + self.air.memory()
            + aloft
            + self.meter.memory()
            + self.loss.memory()
    }

    /// Lets everything leave the rate stage that is out by `now`. Returns the instant that counts as now, µs.
    #[inline]
    fn advance(&mut self, now: Instant) -> u64 {
        self.clock = self.clock.max(now.as_micros());
        if self.queue.first_departs() <= self.clock {
            self.let_out();
        }
        self.clock
    }

    /// Everything leaves the rate stage that is out by now.
    #[inline(never)]
    fn let_out(&mut self) {
        let (overhead, overhead_in_queue) = (self.charge.overhead, self.overhead_in_queue);
        while self.queue.first_departs() <= self.clock {
            let held = self.held();
            let Some(first) = self.queue.pop(|first| room(first.len, overhead, overhead_in_queue)) else { break };
            self.meter.spend(first.departs, held);
            let departs = first.departs;
            self.launch(first);
            if self.managed.is_some() {
                self.take_next(departs, true);
            }
        }
    }

    /// The packet's last bit is out: decides its fate and delay.
    #[inline(always)]
    fn launch(&mut self, waiting: Waiting<P>) {
        let Waiting { number, departs, len, radio, marked, payload } = waiting;
        self.counters.carried.add(len);
        let lost = self.loss_at == LossAt::AfterRate && self.loss.strikes(radio, number, departs);
        let due = if lost { self.delay.earliest(departs) } else { self.delay.arrival(departs, number) };
        let due = self.air.push(Flying { due, number, left: departs, len, lost, marked, payload });
        let room = self.room(len);
        if let Some(aloft) = self.aloft.as_mut().filter(|_| !lost) {
            aloft.push(due, room);
        }
    }

    /// A bound for when the first packet of the queue, or any after it, is due; exact if the order is preserved and the
    /// packet cannot be lost.
    #[inline]
    fn earliest_due(&self, waiting: &Waiting<P>) -> u64 {
        let safe = self.loss.is_idle() || self.loss_at == LossAt::BeforeRate;
        if safe && self.delay.order() == Order::Preserved {
            self.delay.arrival(waiting.departs, waiting.number)
        } else {
            self.delay.earliest(waiting.departs)
        }
    }

    /// What a packet counts for in the queue.
    fn room(&self, len: u32) -> u32 {
        room(len, self.charge.overhead, self.overhead_in_queue)
    }

    /// Bytes that the rate stage charges for all that waits.
    fn work_waiting(&self) -> u128 {
        self.queue.iter().map(|waiting| u128::from(self.charge.of(waiting.radio, waiting.len))).sum()
    }
}

/// What a packet costs the rate stage.
#[derive(Clone, Copy, Debug)]
struct Charge {
    overhead: i64,
    /// By which packets are repeated, if any are.
    levels: Option<Levels>,
}

impl Charge {
    /// Bytes that the rate stage charges for a packet.
    #[inline]
    fn of(&self, radio: u32, len: u32) -> u64 {
        let once = charge(len, self.overhead);
        self.levels.as_ref().map_or(once, |levels| once * u64::from(levels.repetitions(radio)))
    }
}

/// Bytes that the rate stage charges for a packet that is sent once.
fn charge(len: u32, overhead: i64) -> u64 {
    (i64::from(len) + overhead).max(0) as u64
}

fn room(len: u32, overhead: i64, overhead_in_queue: bool) -> u32 {
    if overhead_in_queue { charge(len, overhead).min(u64::from(u32::MAX)) as u32 } else { len }
}

impl From<Occupancy> for Tally {
    fn from(held: Occupancy) -> Self {
        Self { packets: held.packets, bytes: held.bytes }
    }
}

//! Access to a cell: what stands between devices and the queues of its links.
//!
//! A device that is not connected sends a preamble at the next opportunity, one of a few, and collides with those that
//! chose the same. Answered, it is connected and its packets go to the uplink; each later one waits for its grant, and a
//! duty cycle may hold it back. Packets for a device that is not connected wait until it listens, and then until it is
//! connected. Like a link this has no clock: time is an argument.

mod levels;
mod rules;

pub use levels::Levels;
pub use rules::{AccessError, AccessRules, Connection, DutyCycle, RandomAccess};

use millpond_control::{Chance, ChanceSeed, Instant, Purpose, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// What a word of chance is for, as the last part of its address.
#[derive(Clone, Copy)]
enum Draw {
    Preamble = 0,
    Backoff = 1,
    Heard = 2,
    Phase = 3,
}

/// Access of all devices to one cell. `P` is whatever the owner wants moved along with a packet.
#[derive(Clone, Debug)]
pub struct Access<P> {
    rules: AccessRules,
    seed: ChanceSeed,
    clock: u64,
    devices: Vec<Device<P>>,
    wakes: BinaryHeap<Reverse<(u64, u32, Wake)>>,
    /// Who sends a preamble at which opportunity.
    opportunities: BTreeMap<u64, Vec<u32>>,
    /// What has gone through and nobody has fetched.
    out: VecDeque<Passing<P>>,
    counters: AccessCounters,
}

/// A packet that has gone through, or has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passing<P> {
    /// As offered.
    pub payload: P,
    /// As offered.
    pub len: u32,
    /// Whose it is.
    pub device: u32,
    /// Whether it is for the device, over the downlink.
    pub to_device: bool,
    /// When it came to the link.
    pub at: Instant,
    /// It was dropped: its device got no access, or has no room for more.
    pub is_dropped: bool,
}

/// What became of preambles and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets that have gone on to a link.
    pub passed: u64,
    /// Packets dropped, because their device was not answered or had no room for more.
    pub dropped: u64,
    /// Preambles sent.
    pub preambles: u64,
    /// Of those, preambles that another device sent at the same opportunity.
    pub collided: u64,
    /// Of those, preambles that nobody else sent and that were not heard, or not answered.
    pub unanswered: u64,
    /// Connections made.
    pub connections: u64,
    /// Devices that gave up connecting.
    pub given_up: u64,
}

#[derive(Clone, Debug)]
struct Device<P> {
    up: VecDeque<Held<P>>,
    down: VecDeque<Held<P>>,
    /// When its connection ends, if it has one, or ended: µs.
    until: u64,
    /// It is about to be connected.
    is_connecting: bool,
    /// It is to be looked at for its uplink.
    is_awaited: bool,
    /// It is to be paged.
    is_paged: bool,
    /// How often it has tried to connect this time, and ever.
    tried: u16,
    ever: u32,
    /// Before this its duty cycle lets it send nothing.
    free: u64,
}

#[derive(Clone, Debug)]
struct Held<P> {
    payload: P,
    len: u32,
    /// When it may go at the earliest.
    due: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    Connected,
    Paged,
    Retry,
    Send,
}

impl<P> Access<P> {
    /// As many packets wait at each device, and for each.
    pub const ROOM: usize = 64;

    /// Nobody is connected.
    ///
    /// # Errors
    /// What [`AccessRules::check`] finds.
    pub fn new(rules: AccessRules, seed: ChanceSeed) -> Result<Self, AccessError> {
        rules.check()?;
        Ok(Self {
            rules,
            seed,
            clock: 0,
            devices: Vec::new(),
            wakes: BinaryHeap::new(),
            opportunities: BTreeMap::new(),
            out: VecDeque::new(),
            counters: AccessCounters::default(),
        })
    }

    /// A packet comes from a device, or for one. Memory grows with the highest number of a device.
    pub fn offer(&mut self, now: Instant, device: u32, to_device: bool, len: u32, payload: P) {
        let now = self.advance(now);
        self.counters.offered += 1;
        if device as usize >= self.devices.len() {
            self.devices.resize_with(device as usize + 1, Device::default);
        }
        let is_connected = self.is_connected(device, now);
        let due = now + if is_connected && !to_device { micros(self.rules.grant) } else { 0 };
        let Some(one) = self.devices.get_mut(device as usize) else { return };
        let line = if to_device { &mut one.down } else { &mut one.up };
        if line.len() >= Self::ROOM {
            self.leave(device, to_device, len, payload, now, true);
            return;
        }
        line.push_back(Held { payload, len, due });
        match (is_connected, to_device) {
            (true, true) => self.hand_down(device, now),
            (true, false) => self.await_turn(device),
            (false, true) => self.page(device, now),
            (false, false) => self.connect(device, now),
        }
    }

    /// When to call [`Access::release`] next; none if nothing is on its way through.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        if !self.out.is_empty() {
            return Some(Instant::from_micros(self.clock));
        }
        let wake = self.wakes.peek().map(|Reverse((at, ..))| *at);
        let opportunity = self.opportunities.keys().next().copied();
        wake.into_iter().chain(opportunity).min().map(Instant::from_micros)
    }

    /// The next packet that goes to a link, or is dropped, at or before `now`. Call until none comes.
    pub fn release(&mut self, now: Instant) -> Option<Passing<P>> {
        let now = now.as_micros().max(self.clock);
        while self.out.is_empty() {
            let at = self.next().map(Instant::as_micros).filter(|at| *at <= now)?;
            self.clock = self.clock.max(at);
            if self.opportunities.first_key_value().is_some_and(|(first, _)| *first <= at) {
                if let Some((at, devices)) = self.opportunities.pop_first() {
                    self.compete(at, &devices);
                }
            } else if let Some(Reverse((at, device, wake))) = self.wakes.pop() {
                self.wake(at, device, wake);
            }
        }
        self.out.pop_front()
    }

    /// Counts until now.
    #[must_use]
    pub const fn counters(&self) -> &AccessCounters {
        &self.counters
    }

    /// Packets that are on their way through: offered, and neither passed nor dropped.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.devices.iter().map(|device| (device.up.len() + device.down.len()) as u64).sum()
    }

    fn advance(&mut self, now: Instant) -> u64 {
        self.clock = self.clock.max(now.as_micros());
        self.clock
    }

    fn wake(&mut self, at: u64, device: u32, wake: Wake) {
        let Some(one) = self.devices.get_mut(device as usize) else { return };
        match wake {
            Wake::Connected => {
                one.is_connecting = false;
                one.until = at;
                self.counters.connections += 1;
                self.active(device, at);
                self.hand_down(device, at);
                self.await_turn(device);
            }
            Wake::Paged => {
                one.is_paged = false;
                if !one.down.is_empty() {
                    if self.is_connected(device, at) {
                        self.hand_down(device, at);
                    } else {
                        self.connect(device, at);
                    }
                }
            }
            Wake::Retry => self.contend(device, at),
            Wake::Send => {
                one.is_awaited = false;
                self.send(device, at);
            }
        }
    }

    fn is_connected(&self, device: u32, now: u64) -> bool {
        self.rules.connection.is_none() || self.devices.get(device as usize).is_some_and(|one| one.until > now)
    }

    /// A packet of a device goes: its connection lasts from then on.
    fn active(&mut self, device: u32, now: u64) {
        if let (Some(connection), Some(one)) = (&self.rules.connection, self.devices.get_mut(device as usize)) {
            one.until = one.until.max(now + micros(connection.inactivity));
        }
    }

    /// What waits for a device goes to the downlink.
    fn hand_down(&mut self, device: u32, now: u64) {
        self.active(device, now);
        while let Some(Held { payload, len, .. }) =
            self.devices.get_mut(device as usize).and_then(|one| one.down.pop_front())
        {
            self.leave(device, true, len, payload, now, false);
        }
    }

    /// It is to be looked at when its next packet may go.
    fn await_turn(&mut self, device: u32) {
        let Some(one) = self.devices.get_mut(device as usize).filter(|one| !one.is_awaited) else { return };
        if let Some(first) = one.up.front() {
            one.is_awaited = true;
            let at = first.due.max(one.free).max(self.clock);
            self.wakes.push(Reverse((at, device, Wake::Send)));
        }
    }

    /// The first packet that waits at a device goes to the uplink, if its connection still lasts.
    fn send(&mut self, device: u32, now: u64) {
        if !self.is_connected(device, now) {
            self.connect(device, now);
            return;
        }
        let Some(one) = self.devices.get_mut(device as usize) else { return };
        let Some(Held { payload, len, .. }) = one.up.pop_front() else { return };
        if let Some(duty) = &self.rules.duty {
            one.free = now.saturating_add(duty.period(len, self.rules.levels.repetitions(device)));
        }
        self.active(device, now);
        self.leave(device, false, len, payload, now, false);
        self.await_turn(device);
    }

    /// A device is told that something waits for it as soon as it listens, if it ever does by itself.
    fn page(&mut self, device: u32, now: u64) {
        let Some(connection) = self.rules.connection else { return };
        let wide = self.seed.wide(Purpose::Access, [device, 0, 0, Draw::Phase as u32]);
        let phase = ((u128::from(wide) * u128::from(connection.paging)) >> 64) as u64;
        let Some(one) = self.devices.get_mut(device as usize) else { return };
        if one.is_paged || one.is_connecting {
            return;
        }
        let at = next_of(now, phase, connection.paging);
        let sleeps = connection.sleeps_after.map_or(u64::MAX, |after| one.until.saturating_add(after));
        if at < sleeps {
            one.is_paged = true;
            self.wakes.push(Reverse((at, device, Wake::Paged)));
        }
    }

    /// A device begins to connect, unless it does so already.
    fn connect(&mut self, device: u32, now: u64) {
        let Some(one) = self.devices.get_mut(device as usize).filter(|one| !one.is_connecting) else { return };
        one.is_connecting = true;
        one.tried = 0;
        self.contend(device, now);
    }

    /// It sends a preamble at the next opportunity.
    fn contend(&mut self, device: u32, now: u64) {
        let Some(connection) = self.rules.connection else { return };
        match connection.random {
            Some(random) => {
                // At this very instant others may still decide to send one.
                self.opportunities.entry(next_of(now + 1, 0, micros(random.every))).or_default().push(device);
            }
            None => self.wakes.push(Reverse((now + micros(connection.set_up), device, Wake::Connected))),
        }
    }

    /// Devices send preambles.
    fn compete(&mut self, at: u64, devices: &[u32]) {
        let Some(connection) = self.rules.connection else { return };
        let Some(random) = connection.random else { return };
        let mut chosen: Vec<(usize, u32, u32)> = Vec::with_capacity(devices.len());
        for &device in devices {
            let Some(one) = self.devices.get_mut(device as usize) else { continue };
            (one.tried, one.ever) = (one.tried.saturating_add(1), one.ever.wrapping_add(1));
            let ever = one.ever;
            let preamble = self.draw(device, ever, Draw::Preamble).pick(0, u32::from(random.preambles) - 1);
            chosen.push((self.rules.levels.of(device), preamble, device));
        }
        self.counters.preambles += chosen.len() as u64;
        chosen.sort_unstable();
        let (mut level, mut left) = (0, random.grants.unwrap_or(u16::MAX));
        for same in chosen.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            if let Some((here, ..)) = same.first().filter(|(here, ..)| *here != level) {
                (level, left) = (*here, random.grants.unwrap_or(u16::MAX));
            }
            if let [(_, _, device)] = *same {
                if left > 0 && self.is_heard(device, random) {
                    left -= u16::from(random.grants.is_some());
                    let at = at + micros(random.response) + micros(connection.set_up);
                    self.wakes.push(Reverse((at, device, Wake::Connected)));
                    continue;
                }
                self.counters.unanswered += 1;
            } else {
                self.counters.collided += same.len() as u64;
            }
            same.iter().for_each(|(_, _, device)| self.try_again(*device, at, random));
        }
    }

    fn is_heard(&self, device: u32, random: RandomAccess) -> bool {
        let Some(one) = self.devices.get(device as usize) else { return false };
        !random.ramping || heard(one.tried) > u64::from(self.draw(device, one.ever, Draw::Heard).word())
    }

    /// A device was not answered.
    fn try_again(&mut self, device: u32, at: u64, random: RandomAccess) {
        let at = at + micros(random.response);
        let Some(one) = self.devices.get_mut(device as usize) else { return };
        if one.tried < random.attempts {
            let ever = one.ever;
            let wait = self.draw(device, ever, Draw::Backoff).between(Span::ZERO, random.backoff);
            self.wakes.push(Reverse((at + micros(wait), device, Wake::Retry)));
            return;
        }
        one.is_connecting = false;
        let (up, down) = (std::mem::take(&mut one.up), std::mem::take(&mut one.down));
        self.counters.given_up += 1;
        for (line, to_device) in [(up, false), (down, true)] {
            line.into_iter().for_each(|held| self.leave(device, to_device, held.len, held.payload, self.clock, true));
        }
    }

    fn leave(&mut self, device: u32, to_device: bool, len: u32, payload: P, at: u64, is_dropped: bool) {
        *(if is_dropped { &mut self.counters.dropped } else { &mut self.counters.passed }) += 1;
        let at = Instant::from_micros(at);
        self.out.push_back(Passing { payload, len, device, to_device, at, is_dropped });
    }

    fn draw(&self, device: u32, number: u32, what: Draw) -> Chance {
        self.seed.at(Purpose::Access, [device, number, 0, what as u32])
    }
}

impl DutyCycle {
    /// From the beginning of a packet until the next may begin, µs.
    #[must_use]
    pub fn period(&self, len: u32, repetitions: u16) -> u64 {
        let bytes = u128::from(len) + u128::from(self.overhead);
        let air = (bytes * u128::from(repetitions) * 8_000_000) << 32;
        let period = air / (u128::from(self.rate.max(1)) * u128::from(self.share.parts().max(1)));
        u64::try_from(period).unwrap_or(u64::MAX)
    }
}

impl<P> Default for Device<P> {
    fn default() -> Self {
        Self {
            up: VecDeque::new(),
            down: VecDeque::new(),
            until: 0,
            is_connecting: false,
            is_awaited: false,
            is_paged: false,
            tried: 0,
            ever: 0,
            free: 0,
        }
    }
}

fn micros(span: Span) -> u64 {
    u64::from(span.as_micros())
}

/// The first instant from `now` on that is a multiple of `every` behind `phase`.
fn next_of(now: u64, phase: u64, every: u64) -> u64 {
    if every == 0 { now } else { phase + now.saturating_sub(phase).div_ceil(every) * every }
}

/// 1 - 1/e^i in parts of 2^32.
fn heard(attempt: u16) -> u64 {
    const PARTS: [u64; 10] = [
        2_714_937_127,
        3_713_706_681,
        4_081_133_466,
        4_216_302_226,
        4_266_028_034,
        4_284_321_136,
        4_291_050_793,
        4_293_526_495,
        4_294_437_255,
        4_294_772_305,
    ];
    PARTS.get(usize::from(attempt.max(1)) - 1).copied().unwrap_or(1 << 32)
}

//! A Wi-Fi hop: stations and their access point share one channel by the distributed coordination function of IEEE 802.11
//! (CSMA/CA with binary exponential backoff, basic access without RTS).
//!
//! All hear each other, and a frame is lost only if another begins in the same slot. Like a link this has no clock: time is
//! an argument.

use crate::access::Passing;
use millpond_control::{ChanceSeed, Instant, Purpose};
use std::collections::{BTreeSet, VecDeque};

/// What the channel is like. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DcfRules {
    /// The unit of backoff.
    pub slot: u32,
    /// From a frame to its acknowledgement.
    pub sifs: u32,
    /// The channel is idle for so long before anybody counts a slot.
    pub difs: u32,
    /// Backoff is from 0 to this many slots; after each failure so many again and one more.
    pub cw_min: u16,
    /// No longer than this.
    pub cw_max: u16,
    /// Transmissions of a frame after the first.
    pub retries: u8,
    /// Before the first bit of a frame.
    pub preamble: u32,
    /// Bits per second of a frame.
    pub rate: u64,
    /// Frames last whole symbols of this length.
    pub symbol: u32,
    /// Bits around a frame.
    pub around: u32,
    /// After the last bit of a frame.
    pub extension: u32,
    /// Bytes in front of and behind each packet.
    pub header: u32,
    /// An acknowledgement, whole.
    pub ack: u32,
    /// After frames that collided, before the channel counts as idle: what EIFS is longer than DIFS.
    pub after_collision: u32,
    /// Packets that wait at a station, the one being sent included.
    pub room: u32,
}

impl DcfRules {
    /// How long a frame with a packet of so many bytes lasts.
    #[must_use]
    pub fn frame(&self, len: u32) -> u64 {
        let bits = u128::from(self.around) + 8 * (u128::from(len) + u128::from(self.header));
        let a_symbol = u128::from(self.rate.max(1)) * u128::from(self.symbol.max(1));
        let symbols = u64::try_from((bits * 1_000_000).div_ceil(a_symbol)).unwrap_or(u64::MAX);
        let data = symbols.saturating_mul(u64::from(self.symbol.max(1)));
        data.saturating_add(u64::from(self.preamble) + u64::from(self.extension))
    }
}

/// What became of frames and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DcfCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets that got over the channel.
    pub passed: u64,
    /// Packets for which there was no room.
    pub refused: u64,
    /// Packets whose last copy collided too.
    pub given_up: u64,
    /// Frames sent, copies included.
    pub frames: u64,
    /// Those of them that collided.
    pub collided: u64,
    /// How long frames, and acknowledgements, were on the air.
    pub busy: u64,
}

/// Stations and their access point on one channel. `P` is whatever the owner wants moved along with a packet.
#[derive(Clone, Debug)]
pub struct Dcf<P> {
    rules: DcfRules,
    seed: ChanceSeed,
    clock: u64,
    /// The access point, then the devices by their numbers.
    stations: Vec<Station<P>>,
    /// Who sends next, by the slot in which they do, of those that were idle so far.
    contenders: BTreeSet<(u64, u32)>,
    /// Idle slots up to `grid`, from where on they are counted.
    slots: u64,
    grid: u64,
    on_air: Option<OnAir>,
    /// What has got over and nobody has fetched.
    out: VecDeque<Passing<P>>,
    counters: DcfCounters,
}

#[derive(Clone, Debug)]
struct Station<P> {
    queue: VecDeque<Held<P>>,
    /// Failures of the frame under way.
    failed: u8,
    window: u16,
    /// Before this slot it does not send: it has sent before.
    from: u64,
    /// Words of chance that it has used.
    drawn: u32,
}

#[derive(Clone, Debug)]
struct Held<P> {
    payload: P,
    len: u32,
    device: u32,
}

#[derive(Clone, Debug)]
struct OnAir {
    who: Vec<u32>,
    /// When the longest frame ends, and whether that has been seen.
    frame: u64,
    is_told: bool,
    /// When the channel is idle again.
    until: u64,
}

/// The place of the access point.
const ACCESS_POINT: u32 = 0;

impl<P> Dcf<P> {
    /// An idle channel.
    #[must_use]
    pub fn new(rules: DcfRules, seed: ChanceSeed) -> Self {
        Self {
            rules,
            seed,
            clock: 0,
            stations: Vec::new(),
            contenders: BTreeSet::new(),
            slots: 0,
            grid: 0,
            on_air: None,
            out: VecDeque::new(),
            counters: DcfCounters::default(),
        }
    }

    /// A packet comes to a device, for the access point, or to the access point, for a device. Memory grows with the highest
    /// number of a device.
    pub fn offer(&mut self, now: Instant, device: u32, to_device: bool, len: u32, payload: P) {
        self.clock = self.clock.max(now.as_micros());
        self.counters.offered += 1;
        let place = if to_device { ACCESS_POINT } else { device.saturating_add(1) };
        if place as usize >= self.stations.len() {
            let window = self.rules.cw_min;
            let station = || Station { queue: VecDeque::new(), failed: 0, window, from: 0, drawn: 0 };
            self.stations.resize_with(place as usize + 1, station);
        }
        let Some(station) = self.stations.get_mut(place as usize) else { return };
        if station.queue.len() >= self.rules.room as usize {
            self.counters.refused += 1;
            self.leave(Held { payload, len, device }, to_device, true);
            return;
        }
        station.queue.push_back(Held { payload, len, device });
        if station.queue.len() == 1 {
            self.contend(place);
        }
    }

    /// When to call [`Dcf::release`] next; none if nothing waits.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        let at = if !self.out.is_empty() {
            self.clock
        } else if let Some(air) = &self.on_air {
            if air.is_told { air.until } else { air.frame }
        } else {
            let (slot, _) = self.contenders.first()?;
            self.grid.saturating_add((slot - self.slots).saturating_mul(u64::from(self.rules.slot)))
        };
        Some(Instant::from_micros(at))
    }

    /// The next packet that has got over the channel, or is dropped, at or before `now`. Call until none comes.
    pub fn release(&mut self, now: Instant) -> Option<Passing<P>> {
        while self.out.is_empty() {
            let at = self.next().filter(|at| *at <= now)?.as_micros();
            self.clock = self.clock.max(at);
            match self.on_air.take() {
                None => self.begin(at),
                Some(air) if air.is_told => self.is_idle(air),
                Some(air) => self.frame_ends(air),
            }
        }
        self.out.pop_front()
    }

    /// Counts until now.
    #[must_use]
    pub const fn counters(&self) -> &DcfCounters {
        &self.counters
    }

    /// Packets that are on their way: offered, and neither passed nor dropped.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.stations.iter().map(|station| station.queue.len() as u64).sum()
    }

    /// A station has a packet that nothing waits before.
    fn contend(&mut self, place: u32) {
        let now = self.clock;
        let Some(station) = self.stations.get(place as usize) else { return };
        if self.on_air.as_ref().is_some_and(|air| air.who.contains(&place)) {
            // It draws its backoff when its frame is over.
            return;
        }
        let from = station.from;
        let slot = if self.on_air.is_some() {
            // The channel is busy, so that it waits for a random time, if it does not yet.
            if from > self.slots { from } else { self.slots + self.backoff(place) }
        } else if now < self.grid {
            from.max(self.slots)
        } else {
            let (whole, part) = (now - self.grid, u64::from(self.rules.slot.max(1)));
            let so_far = self.slots + whole / part;
            if from > so_far {
                from
            } else if self.contenders.is_empty() {
                // It has been idle for long enough: it sends at once.
                (self.slots, self.grid) = (so_far, now);
                so_far
            } else {
                so_far + u64::from(!whole.is_multiple_of(part))
            }
        };
        self.contenders.insert((slot, place));
    }

    /// A number of slots, from 0 to the contention window of a station.
    fn backoff(&mut self, place: u32) -> u64 {
        let Some(station) = self.stations.get_mut(place as usize) else { return 0 };
        let word = self.seed.wide(Purpose::Access, [place, station.drawn, 0, 4]);
        station.drawn = station.drawn.wrapping_add(1);
        ((u128::from(word) * (u128::from(station.window) + 1)) >> 64) as u64
    }

    /// All whose slot it is send.
    fn begin(&mut self, at: u64) {
        let Some(&(slot, _)) = self.contenders.first() else { return };
        let mut who = Vec::new();
        let mut longest = 0;
        while let Some((_, place)) = self.contenders.first().copied().filter(|(own, _)| *own == slot) {
            self.contenders.pop_first();
            let front = self.stations.get(place as usize).and_then(|station| station.queue.front());
            longest = longest.max(front.map_or(0, |held| self.rules.frame(held.len)));
            who.push(place);
        }
        self.slots = slot;
        self.counters.frames += who.len() as u64;
        let is_alone = who.len() == 1;
        let after = if is_alone { self.rules.sifs + self.rules.ack } else { self.rules.after_collision };
        let frame = at.saturating_add(longest);
        let until = frame.saturating_add(u64::from(after));
        self.counters.busy += longest + if is_alone { u64::from(self.rules.ack) } else { 0 };
        self.on_air = Some(OnAir { who, frame, is_told: false, until });
    }

    /// A frame has arrived, or frames have collided.
    fn frame_ends(&mut self, air: OnAir) {
        if let [place] = air.who[..]
            && let Some(station) = self.stations.get_mut(place as usize)
            && let Some(held) = station.queue.pop_front()
        {
            (station.failed, station.window) = (0, self.rules.cw_min);
            self.counters.passed += 1;
            self.leave(held, place == ACCESS_POINT, false);
        }
        self.on_air = Some(OnAir { is_told: true, ..air });
    }

    /// The channel is idle again, and who has sent draws a backoff, whether it has more or not.
    fn is_idle(&mut self, air: OnAir) {
        self.grid = air.until + u64::from(self.rules.difs);
        let has_collided = air.who.len() > 1;
        for place in air.who {
            let Some(station) = self.stations.get_mut(place as usize) else { continue };
            if has_collided {
                self.counters.collided += 1;
                station.failed = station.failed.saturating_add(1);
                station.window = station.window.saturating_mul(2).saturating_add(1).min(self.rules.cw_max);
                if station.failed > self.rules.retries {
                    (station.failed, station.window) = (0, self.rules.cw_min);
                    if let Some(held) = station.queue.pop_front() {
                        self.counters.given_up += 1;
                        self.leave(held, place == ACCESS_POINT, true);
                    }
                }
            }
            let from = self.slots + self.backoff(place);
            let Some(station) = self.stations.get_mut(place as usize) else { continue };
            station.from = from;
            if !station.queue.is_empty() {
                self.contenders.insert((from, place));
            }
        }
    }

    fn leave(&mut self, held: Held<P>, to_device: bool, is_dropped: bool) {
        let Held { payload, len, device } = held;
        let at = Instant::from_micros(self.clock);
        self.out.push_back(Passing { payload, len, device, to_device, at, is_dropped });
    }
}

//! BBR version 1 for confirmable messages: a model of the path instead of losses decides how fast messages leave and how
//! many may be under way.
//!
//! The model is that of Linux 4.17 to 5.0 (N. Cardwell and others: BBR: Congestion-Based Congestion Control, ACM Queue 14
//! (5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00): the highest delivery rate of the last rounds and the least
//! round-trip time of the last ten seconds. Messages leave at the one, and at most two products of both are under way. A
//! message stands for a segment. Bringing it to CoAP is ours, as a stand-in for the family that estimates bandwidth and
//! delay, of which BDP-CoAP is the published member; that one's details are not public, and this is not it. What had to be
//! chosen is in `docs/appendix/interpretations.md`, B1 to B6.
//!
//! Timers are those of RFC 6298, one for each message, with the spread of RFC 7252. How many messages may be under way is the
//! endpoint's NSTART as well, which has to be raised for a window to mean anything. Messages that nobody acknowledges are
//! not governed.

use crate::{
    backoff::{Exponential, Factor, longer},
    controller::{Admit, Class, Controller, Cx, Exchange, Reason, View, Wait},
    dither::Dither,
    division::quotient,
    estimator::{GRANULARITY, Gains, Strong},
    evidence::Sample,
    layout::laid_out,
    preset::presets,
    rate::Rate,
    setting::{Place, Setting, SettingConflict},
    time::{Instant, Span},
};

/// What it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The first wait before any measurement and before dithering.
    pub ack_timeout: Span,
    /// How first waits are spread.
    pub dither: Dither,
    /// How waits grow.
    pub backoff: Exponential,
}

laid_out!(Parts { ack_timeout, dither, backoff });

impl Parts {
    /// The timeout and spread of RFC 7252 §4.8, doubled up to 60 s (RFC 6298 §2.5).
    pub const STANDARD: Self = Self {
        ack_timeout: Span::from_secs(2),
        dither: Dither::RFC7252,
        backoff: Exponential { factor: Factor::TWO, cap: LONGEST_TIMEOUT },
    };
}

presets! { BbrCon {
    BBR_CON = 144, Parts::STANDARD, {
        name: "bbr-con",
        label: "BBR, confirmable",
        source: "BBR version 1 (ACM Queue 14 (5), 2016; Linux 4.17 to 5.0), applied to confirmable messages by us",
        readings: &["D2", "D4", "D9", "B1", "B2", "B3", "B4", "B5", "B6"],
        summary: "paced at the highest delivery rate seen, with at most two bandwidth-delay products under way",
    };
} }

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One message at a time, until one is answered that was sent once.
    Probe,
    /// The rate doubles in each round until it no longer brings more.
    StartUp,
    /// What the start-up queued drains.
    Drain,
    /// Around the delivery rate: a round-trip time above, one below, six at it.
    ProbeRate,
    /// Four messages at most, to see the round-trip time without a queue.
    ProbeRtt,
}

laid_out!(Mode = Probe | StartUp | Drain | ProbeRate | ProbeRtt);

/// 2/ln 2, as the kernel rounds it, in 1/256: doubles the rate in every round.
const HIGH_GAIN: u32 = 739;
/// Undoes what one round of it queued.
const DRAIN_GAIN: u32 = 88;
const UNIT_GAIN: u32 = 256;
/// Of the window, while the rate is probed.
const WINDOW_GAIN: u32 = 512;
/// Probe, drain, then six round-trip times at the rate.
const CYCLE: [u32; 8] = [320, 192, 256, 256, 256, 256, 256, 256];
const LAST_PHASE: u8 = 7;
/// The highest rate is that of the last one to two times so many rounds.
const EPOCH_ROUNDS: u8 = 5;
/// How long the least round-trip time counts.
const MIN_RTT_LASTS: Span = Span::from_secs(10);
/// For how long the window is kept small to measure it anew.
const PROBE_RTT: Span = Span::from_millis(200);
/// The least window but for that after a timeout.
const LEAST_WINDOW: u16 = 4;
/// Unacknowledged messages at most, far below what message IDs allow in a lifetime.
const MOST_WINDOW: u16 = 256;
/// RFC 6298 §2.4 and §2.5.
const SHORTEST_TIMEOUT: Span = Span::from_secs(1);
const LONGEST_TIMEOUT: Span = Span::from_secs(60);

/// What the exchange record says: nothing waited behind the message when it left.
const LIMITED: u8 = 1;
/// And no other was under way.
const ALONE: u8 = 2;

/// One peer under BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BbrCon {
    /// When the last message left; never if none did.
    last: Instant,
    /// When the phase of the cycle began; in `ProbeRtt` when it may end, never before the window is empty enough.
    since: Instant,
    /// When the least round-trip time was last seen.
    min_rtt_at: Instant,
    estimator: Strong,
    min_rtt: Span,
    /// The highest rate of the rounds of this epoch, and of those of the one before.
    best: Rate,
    best_before: Rate,
    /// The highest rate at which the start-up still grew.
    full: Rate,
    delivered: u32,
    /// A message that left when so many were delivered ends the round.
    round_ends: u32,
    window: u16,
    mode: Mode,
    phase: u8,
    /// Rounds of this epoch.
    rounds: u8,
    /// Rounds in which the start-up did not grow.
    stalled: u8,
    /// In `ProbeRtt` a round has passed since the window was empty enough.
    has_round: bool,
    parts: Parts,
}

laid_out!(BbrCon {
    last,
    since,
    min_rtt_at,
    estimator,
    min_rtt,
    best,
    best_before,
    full,
    delivered,
    round_ends,
    window,
    mode,
    phase,
    rounds,
    stalled,
    has_round,
    parts
});

impl Controller for BbrCon {
    fn admit(&self, class: Class, _len: u16, cx: Cx) -> Admit {
        if class == Class::Plain {
            return Admit::Now;
        }
        if cx.open > self.allowed() {
            return Admit::WhenOneEnds;
        }
        match self.departure() {
            at if at > cx.now => Admit::At(at),
            _ => Admit::Now,
        }
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        let first = self.parts.dither.spread(self.base(), cx.chance);
        let limited = if cx.waiting == 0 { LIMITED } else { 0 };
        let alone = if cx.open <= 1 { ALONE } else { 0 };
        self.last = cx.now;
        exchange.begin(cx.now, first);
        exchange.set_mark(Span::from_micros(self.delivered));
        exchange.set_series(limited | alone);
        Wait::then_retransmit(first, Reason::Initial)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        if exchange.retransmissions() == 0 && self.mode != Mode::Probe {
            (self.window, self.full) = (1, Rate::ZERO);
        }
        self.last = cx.now;
        let wait = self.parts.backoff.next(exchange.current());
        exchange.advance(wait);
        Wait::then_retransmit(wait, Reason::BackedOff)
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        self.delivered = self.delivered.wrapping_add(1);
        // Karn's rule; copies are not distinguished.
        let exact = sample.exact().filter(|_| sample.retransmissions() == 0);
        let mut round_starts = false;
        if let Some(rtt) = exact {
            self.estimator.take(rtt, Gains::RFC6298);
            round_starts = self.measure(exchange, longer(rtt.span(), GRANULARITY));
        }
        if self.mode == Mode::ProbeRate && self.is_phase_over(cx) {
            self.advance_phase(cx.now);
        }
        let is_limited = exchange.series() & LIMITED != 0;
        if round_starts && !is_limited {
            self.check_growth();
        }
        self.drain(cx);
        if let Some(rtt) = exact {
            self.take_min_rtt(longer(rtt.span(), GRANULARITY), exchange.series() & ALONE != 0, cx);
        }
        self.probe_rtt(round_starts, cx);
        self.grow();
    }

    fn view(&self) -> View {
        View { rto: Some(self.base()), srtt: self.estimator.srtt(), rttvar: self.estimator.rttvar(), ..View::default() }
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        if copy > 0 {
            return self.parts.backoff.next(previous);
        }
        self.parts.dither.longest(self.parts.ack_timeout.max(LONGEST_TIMEOUT))
    }
}

impl BbrCon {
    /// The parameters that it has.
    pub const SETTINGS: &[Setting] = &[Setting::AckTimeout, Setting::RandomFactor, Setting::MaxWait];

    /// A peer about which nothing is known.
    #[must_use]
    pub const fn new(parts: Parts) -> Self {
        Self {
            last: Instant::NEVER,
            since: Instant::ORIGIN,
            min_rtt_at: Instant::ORIGIN,
            estimator: Strong::UNKNOWN,
            min_rtt: Span::MAX,
            best: Rate::ZERO,
            best_before: Rate::ZERO,
            full: Rate::ZERO,
            delivered: 0,
            round_ends: 0,
            window: LEAST_WINDOW,
            mode: Mode::Probe,
            phase: 0,
            rounds: 0,
            stalled: 0,
            has_round: false,
            parts,
        }
    }

    /// What it is doing.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The delivery rate of the path, as far as it is known; zero before the first answer.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.best.max(self.best_before)
    }

    /// Messages that may be under way.
    #[must_use]
    pub fn allowed(&self) -> u16 {
        match self.mode {
            Mode::Probe => 1,
            Mode::ProbeRtt => self.window.min(LEAST_WINDOW),
            Mode::StartUp | Mode::Drain | Mode::ProbeRate => self.window,
        }
    }

    fn pacing_gain(&self) -> u32 {
        match self.mode {
            Mode::StartUp => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeRate => self.cycle_gain(),
            Mode::Probe | Mode::ProbeRtt => UNIT_GAIN,
        }
    }

    fn cycle_gain(&self) -> u32 {
        CYCLE.get(usize::from(self.phase)).copied().unwrap_or(UNIT_GAIN)
    }

    /// When the next message may leave.
    fn departure(&self) -> Instant {
        if self.mode == Mode::Probe || self.last == Instant::NEVER {
            return Instant::ORIGIN;
        }
        self.last.after(self.rate().scaled(self.pacing_gain(), UNIT_GAIN).gap())
    }

    /// What first waits are drawn from.
    fn base(&self) -> Span {
        if self.estimator.is_known() {
            self.estimator.timeout(4).clamp(SHORTEST_TIMEOUT, LONGEST_TIMEOUT)
        } else {
            self.parts.ack_timeout
        }
    }

    /// Messages that `gain` bandwidth-delay products are, and three more, an even number.
    fn target(&self, gain: u32) -> u16 {
        const UNIT: u64 = 1_000 * UNIT_GAIN as u64;
        let product = u64::from(self.rate().thousandths_in(self.min_rtt)).saturating_mul(u64::from(gain));
        let messages = quotient(product.wrapping_add(UNIT - 1), UNIT).saturating_add(3).next_multiple_of(2);
        let probing = if self.mode == Mode::ProbeRate && gain > UNIT_GAIN { 2 } else { 0 };
        u16::try_from(messages.saturating_add(probing)).map_or(MOST_WINDOW, |most| most.min(MOST_WINDOW))
    }

    /// The delivery rate while a message was under way: what was delivered since it left, itself included. Says whether a
    /// round begins.
    fn measure(&mut self, exchange: &Exchange, rtt: Span) -> bool {
        let before = exchange.mark().as_micros();
        // Counts wrap.
        let round_starts = before.wrapping_sub(self.round_ends) < u32::MAX / 2;
        if round_starts {
            self.round_ends = self.delivered;
            self.rounds = self.rounds.saturating_add(1);
            if self.rounds >= EPOCH_ROUNDS {
                (self.best_before, self.best, self.rounds) = (self.best, Rate::ZERO, 0);
            }
        }
        let rate = Rate::per(self.delivered.wrapping_sub(before), rtt);
        if exchange.series() & LIMITED == 0 || rate >= self.rate() {
            self.best = self.best.max(rate);
        }
        if self.mode == Mode::Probe {
            self.mode = Mode::StartUp;
        }
        round_starts
    }

    fn is_phase_over(&self, cx: Cx) -> bool {
        let is_long = cx.now.since(self.since) > self.min_rtt;
        match self.cycle_gain() {
            gain if gain > UNIT_GAIN => is_long && cx.open >= self.target(gain),
            gain if gain < UNIT_GAIN => is_long || cx.open <= self.target(UNIT_GAIN),
            _ => is_long,
        }
    }

    fn advance_phase(&mut self, now: Instant) {
        self.phase = if self.phase < LAST_PHASE { self.phase.saturating_add(1) } else { 0 };
        self.since = now;
    }

    /// Anywhere in the cycle but where it drains.
    fn probe_rate(&mut self, cx: Cx) {
        let last = u32::from(LAST_PHASE);
        self.mode = Mode::ProbeRate;
        self.phase = last.saturating_sub(cx.chance.pick(0, last.saturating_sub(1))) as u8;
        self.advance_phase(cx.now);
    }

    /// The pipe is full once three rounds brought less than a quarter more.
    fn check_growth(&mut self) {
        if self.is_full() {
            return;
        }
        if self.rate() >= self.full.scaled(5, 4) {
            (self.full, self.stalled) = (self.rate(), 0);
        } else {
            self.stalled = self.stalled.saturating_add(1);
        }
    }

    const fn is_full(&self) -> bool {
        self.stalled >= 3
    }

    fn drain(&mut self, cx: Cx) {
        if self.mode == Mode::StartUp && self.is_full() {
            self.mode = Mode::Drain;
        }
        // The answered one is still counted.
        if self.mode == Mode::Drain && cx.open.saturating_sub(1) <= self.target(UNIT_GAIN) {
            self.probe_rate(cx);
        }
    }

    fn take_min_rtt(&mut self, rtt: Span, was_alone: bool, cx: Cx) {
        let is_old = cx.now.since(self.min_rtt_at) > MIN_RTT_LASTS;
        if rtt <= self.min_rtt || is_old {
            (self.min_rtt, self.min_rtt_at) = (rtt, cx.now);
        }
        if is_old && !was_alone && self.mode != Mode::ProbeRtt {
            (self.mode, self.since, self.has_round) = (Mode::ProbeRtt, Instant::NEVER, false);
        }
    }

    fn probe_rtt(&mut self, round_starts: bool, cx: Cx) {
        if self.mode != Mode::ProbeRtt {
            return;
        }
        if self.since == Instant::NEVER {
            if cx.open.saturating_sub(1) <= LEAST_WINDOW {
                (self.since, self.round_ends) = (cx.now.after(PROBE_RTT), self.delivered);
            }
            return;
        }
        self.has_round |= round_starts;
        if self.has_round && cx.now > self.since {
            self.min_rtt_at = cx.now;
            if self.is_full() {
                self.probe_rate(cx);
            } else {
                self.mode = Mode::StartUp;
            }
        }
    }

    /// One message more for one that was answered, up to the target.
    fn grow(&mut self) {
        let target = match self.mode {
            Mode::StartUp | Mode::Drain => self.target(HIGH_GAIN),
            Mode::ProbeRate => self.target(WINDOW_GAIN),
            Mode::Probe | Mode::ProbeRtt => return,
        };
        let more = self.window.saturating_add(1);
        self.window = if self.is_full() { more.min(target) } else { more.min(target).max(self.window) };
        self.window = self.window.clamp(LEAST_WINDOW, MOST_WINDOW);
    }

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        Some(match setting {
            Setting::AckTimeout => Place::Time(&mut self.parts.ack_timeout),
            Setting::RandomFactor => Place::Factor(&mut self.parts.dither.factor),
            Setting::MaxWait => Place::Time(&mut self.parts.backoff.cap),
            _ => return None,
        })
    }

    pub(crate) fn check(&self) -> Result<(), SettingConflict> {
        Setting::AckTimeout.not_above(self.parts.ack_timeout, Setting::MaxWait, self.parts.backoff.cap)
    }
}

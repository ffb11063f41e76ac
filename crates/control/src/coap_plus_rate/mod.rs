//! Rate control of CoAP+: messages leave at a rate λ that grows by one message per round-trip time, once in each of
//! them, and is halved by a loss.
//!
//! It is what the study `burst23` examined. A message goes ahead alone and measures the path; in a start-up of two
//! round-trip times messages leave at a fixed rate and are not retransmitted; their answers give the first λ. From then
//! on λ is additive increase and multiplicative decrease. After a loss no message leaves for the first time until an
//! answer comes, and λ is halved in every round-trip time that passes without one. What the paper leaves open is in
//! `docs/appendix/interpretations.md`, P1 to P16; most of it is a setting.
//!
//! Messages leave when [`admit`](Controller::admit) says so. How many may be under way is the endpoint's NSTART, which has to
//! be raised for a rate to mean anything. Messages that nobody acknowledges are not governed.

mod parts;

pub use parts::{
    EndsBackoff, FirstRtt, InBackoff, Increase, Leftover, LossSignal, Parts, Slowest, Smoothing, StartCount, StartRate,
    Timer, Window,
};

use crate::{
    backoff::{longer, shorter},
    controller::{Admit, Class, Controller, Cx, End, Exchange, Reason, Then, View, Wait},
    division::quotient,
    estimator::{GRANULARITY, Gains, Strong},
    evidence::{ExactRtt, Sample},
    layout::laid_out,
    preset::presets,
    rate::Rate,
    setting::{Place, Setting, SettingConflict},
    time::{Instant, Span},
};

/// Where a peer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// One message at a time, until one is answered that was sent once.
    Probe,
    /// A fixed rate for two round-trip times.
    StartUp,
    /// The rate grows.
    Steady,
    /// A loss was marked and no answer has come since.
    Backoff,
    /// Everything is forgotten, and nothing leaves for a while.
    Restart,
}

laid_out!(Phase = Probe | StartUp | Steady | Backoff | Restart);

presets! { CoapPlusRate {
    COAP_PLUS_RATE = 112, Parts::PRINTED, {
        name: "coap-plus-rate",
        label: "CoAP+ rate",
        source: "CoAP+, the rate control of the study burst23 (2023), sections 3.1 and 3.2",
        readings: &["D2", "D4", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P11", "P12", "P13", "P14"],
        summary: "a paced rate: one message per RTT more in each RTT, halved when a message is given up",
    };
    COAP_PLUS_RATE_RESPONSIVE = 113, Parts::RESPONSIVE, {
        name: "coap-plus-rate-responsive",
        label: "CoAP+ rate, responsive",
        source: "CoAP+, the rate control of the study burst23 (2023), with losses marked by the first timeout",
        readings: &["D2", "D4", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P11", "P12", "P13", "P14"],
        summary: "coap-plus-rate that halves its rate when a message times out for the first time",
    };
} }

/// One peer under the rate control of CoAP+.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoapPlusRate {
    /// When the phase, or in `Steady` the running round-trip time, began; in `Restart`, when it ends. In `StartUp` never,
    /// before its first message.
    since: Instant,
    /// When the last message left; never if the next need not keep a distance.
    last: Instant,
    /// When the rate was last lowered by a loss; never if it was not.
    lowered: Instant,
    estimator: Strong,
    rate: Rate,
    /// Answers in the start-up.
    answers: u16,
    phase: Phase,
    /// In the running round-trip time a message left while others were held back.
    is_busy: bool,
    parts: Parts,
}

laid_out!(CoapPlusRate { since, last, lowered, estimator, rate, answers, phase, is_busy, parts });

/// What the exchange record of a message of the start-up says.
const OF_START_UP: u8 = 1;

impl Controller for CoapPlusRate {
    fn admit(&self, class: Class, _len: u16, cx: Cx) -> Admit {
        if class == Class::Plain {
            return Admit::Now;
        }
        let mut then = *self;
        then.catch_up(cx.now);
        let is_held = match then.phase {
            Phase::Restart => return Admit::At(then.since),
            Phase::Probe => cx.open > 1,
            Phase::StartUp => then.start_has_failed(cx.now),
            Phase::Backoff => then.parts.in_backoff == InBackoff::Held,
            Phase::Steady => false,
        };
        if is_held || then.is_window_full(cx) {
            return Admit::WhenOneEnds;
        }
        match then.departure(cx.now) {
            at if at > cx.now => Admit::At(at),
            _ => Admit::Now,
        }
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        self.catch_up(cx.now);
        if self.phase == Phase::Restart || (self.phase == Phase::StartUp && self.start_has_failed(cx.now)) {
            // Sent all the same: it goes ahead alone.
            self.forget(Phase::Probe, Instant::NEVER);
            self.catch_up(cx.now);
        }
        let drawn = self.parts.dither.spread(self.parts.base(self.estimate()), cx.chance);
        let (mut first, mut then) = (drawn, Then::Retransmit);
        if self.phase == Phase::StartUp {
            if self.since == Instant::NEVER {
                self.since = cx.now;
            }
            // Not retransmitted before the start-up ends.
            let left = self.start_end().since(cx.now);
            if self.parts.leftover == Leftover::Dropped || left > self.parts.longest_start() {
                then = Then::Abandon;
            }
            first = longer(drawn, shorter(left, self.parts.longest_start()));
        }
        self.is_busy |= self.phase == Phase::Steady && cx.waiting > 0;
        self.last = cx.now;
        exchange.begin(cx.now, first);
        exchange.set_series(if self.phase == Phase::StartUp { OF_START_UP } else { 0 });
        Wait { span: first, then, reason: Reason::Initial }
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        self.catch_up(cx.now);
        let is_first = exchange.retransmissions() == 0 && exchange.series() != OF_START_UP;
        if is_first && self.parts.loss_signal == LossSignal::FirstTimeout {
            self.mark_loss(cx.now);
        }
        self.last = cx.now;
        if self.is_over(cx) {
            self.restart(cx);
        }
        let wait = Parts::BACKOFF.next(exchange.current());
        exchange.advance(wait);
        Wait::then_retransmit(wait, Reason::BackedOff)
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        self.catch_up(cx.now);
        // Karn's rule; copies are not distinguished.
        let exact = sample.exact().filter(|_| sample.retransmissions() == 0);
        match self.phase {
            Phase::Restart => {}
            Phase::Probe => {
                if let Some(rtt) = exact {
                    self.take(rtt);
                    self.start_up();
                }
            }
            Phase::StartUp => {
                if let Some(rtt) = exact {
                    self.take(rtt);
                }
                if exchange.series() == OF_START_UP && self.since != Instant::NEVER {
                    self.answers = self.answers.saturating_add(1);
                }
                if self.answers > 0 && self.start_end() <= cx.now {
                    self.end_start_up(cx.now);
                }
            }
            Phase::Steady => {
                if let Some(rtt) = exact {
                    self.take(rtt);
                }
                if self.parts.increase == Increase::PerAck {
                    self.rate = self.increased();
                }
            }
            Phase::Backoff => {
                let is_clean = sample.retransmissions() == 0;
                if self.parts.ends_backoff == EndsBackoff::AnyAnswer || is_clean {
                    self.rate = self.rate_at(cx.now);
                    self.steady(cx.now);
                    // One message leaves at once.
                    self.last = Instant::NEVER;
                } else if cx.open <= 1 {
                    self.restart(cx);
                }
                if let Some(rtt) = exact {
                    self.take(rtt);
                }
            }
        }
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        self.catch_up(cx.now);
        let is_lost = why == End::GaveUp && exchange.series() != OF_START_UP;
        if is_lost && self.parts.loss_signal == LossSignal::Exhausted {
            self.mark_loss(cx.now);
        }
        let is_last = cx.open <= 1;
        if self.is_over(cx) || (self.phase == Phase::Backoff && is_last) {
            self.restart(cx);
        }
    }

    fn view(&self) -> View {
        View {
            rto: Some(self.parts.base(self.estimate())),
            srtt: self.estimator.srtt(),
            rttvar: self.estimator.rttvar(),
            ..View::default()
        }
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        if copy > 0 {
            return Parts::BACKOFF.next(previous);
        }
        self.parts.longest_drawn().max(self.parts.longest_start())
    }
}

impl CoapPlusRate {
    /// The parameters that it has.
    pub const SETTINGS: &[Setting] = Parts::SETTINGS;

    /// A peer about which nothing is known.
    #[must_use]
    pub const fn new(parts: Parts) -> Self {
        Self {
            since: Instant::NEVER,
            last: Instant::NEVER,
            lowered: Instant::NEVER,
            estimator: Strong::UNKNOWN,
            rate: Rate::ZERO,
            answers: 0,
            phase: Phase::Probe,
            is_busy: false,
            parts,
        }
    }

    /// Where the peer stands, as of the last call.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// λ at this point, which is not before the last call; nothing while no rate is known.
    #[must_use]
    pub fn rate(&self, now: Instant) -> Option<Rate> {
        let mut then = *self;
        then.catch_up(now);
        match then.phase {
            Phase::Probe | Phase::Restart => None,
            Phase::StartUp | Phase::Steady | Phase::Backoff => Some(then.rate_at(now)),
        }
    }

    /// T: the round-trip time that counts.
    fn rtt(&self) -> Span {
        longer(self.estimator.srtt().unwrap_or(self.parts.ack_timeout), GRANULARITY)
    }

    /// The timeout of RFC 6298, once there is a sample.
    fn estimate(&self) -> Option<Span> {
        self.estimator.is_known().then(|| self.estimator.timeout(4))
    }

    fn take(&mut self, rtt: ExactRtt) {
        let gains = match self.parts.smoothing {
            Smoothing::Eighth => Gains::RFC6298,
            Smoothing::Last => Gains::LAST,
        };
        self.estimator.take(rtt, gains);
    }

    /// Does what time alone has done since the call before.
    fn catch_up(&mut self, now: Instant) {
        if self.phase == Phase::Restart && now >= self.since {
            self.forget(Phase::Probe, Instant::NEVER);
        }
        if self.phase == Phase::Probe && self.parts.first_rtt == FirstRtt::Default {
            self.start_up();
        }
        if self.phase == Phase::StartUp && self.answers > 0 && now >= self.start_end() {
            self.end_start_up(self.start_end());
        }
        if self.phase == Phase::Steady {
            let (elapsed, rtt) = (now.since(self.since), self.rtt());
            if elapsed >= rtt {
                if self.is_busy && self.parts.increase == Increase::PerRtt {
                    self.rate = self.increased();
                }
                self.is_busy = false;
                // After a whole one in which nothing happened the next begins here.
                self.since = if elapsed < rtt.doubled() { self.since.after(rtt) } else { now };
            }
        }
    }

    /// λ + 1/T, equation (27).
    fn increased(&self) -> Rate {
        self.parts.bounded(self.rate.plus(Rate::per(1, self.rtt())))
    }

    /// λ in the phase as it is: in the backoff halved for every round-trip time without an answer.
    fn rate_at(&self, now: Instant) -> Rate {
        if self.phase != Phase::Backoff {
            return self.rate;
        }
        let silent = quotient(now.since(self.since).as_micros().into(), self.rtt().as_micros().into());
        self.parts.bounded(self.rate.halved(silent as u32))
    }

    fn start_up(&mut self) {
        (self.phase, self.since, self.answers) = (Phase::StartUp, Instant::NEVER, 0);
        self.rate = self.parts.starting(self.rtt());
    }

    /// When the start-up ends; never before its first message.
    fn start_end(&self) -> Instant {
        self.since.after(self.rtt().times(Parts::START_RTTS))
    }

    /// It is over and nothing was answered.
    fn start_has_failed(&self, now: Instant) -> bool {
        self.since != Instant::NEVER && self.answers == 0 && now >= self.start_end()
    }

    fn end_start_up(&mut self, at: Instant) {
        let rtts = match self.parts.start_count {
            StartCount::TwoRtts => Parts::START_RTTS,
            StartCount::OneRtt => 1,
        };
        self.rate = self.parts.bounded(Rate::per(u32::from(self.answers), self.rtt().times(rtts)));
        self.steady(at);
    }

    fn steady(&mut self, at: Instant) {
        (self.phase, self.since, self.is_busy) = (Phase::Steady, at, false);
    }

    /// A loss counts once in a round-trip time.
    fn mark_loss(&mut self, now: Instant) {
        let counted = self.lowered != Instant::NEVER && now.since(self.lowered) < self.rtt();
        if self.phase == Phase::Steady && !counted {
            self.rate = self.parts.after_loss(self.rate);
            (self.phase, self.since, self.lowered) = (Phase::Backoff, now, now);
        }
    }

    /// The start-up failed, or the backoff has lasted too long.
    fn is_over(&self, cx: Cx) -> bool {
        match self.phase {
            Phase::StartUp => self.start_has_failed(cx.now),
            Phase::Backoff => cx.now.since(self.since) >= self.parts.restart_after,
            Phase::Probe | Phase::Steady | Phase::Restart => false,
        }
    }

    /// Forgets everything and waits as long as a first message would.
    fn restart(&mut self, cx: Cx) {
        let pause = longer(self.parts.dither.spread(self.parts.ack_timeout, cx.chance), GRANULARITY);
        self.forget(Phase::Restart, cx.now.after(pause));
    }

    fn forget(&mut self, phase: Phase, since: Instant) {
        *self = Self { phase, since, ..Self::new(self.parts) };
    }

    /// As many are under way as may be.
    fn is_window_full(&self, cx: Cx) -> bool {
        let may_fill = !matches!(self.phase, Phase::Probe | Phase::Restart);
        may_fill && self.parts.window == Window::AlphaTLambda && {
            // Thousandths of a message, and thousandths of α.
            let product = u64::from(self.rate_at(cx.now).thousandths_in(self.rtt()));
            let most = quotient(product.saturating_mul(u64::from(self.parts.alpha)), 1_000_000);
            u64::from(cx.open) > most.max(1)
        }
    }

    /// When the next message may leave.
    fn departure(&self, now: Instant) -> Instant {
        if self.phase == Phase::Probe || self.last == Instant::NEVER {
            return now;
        }
        let at = self.last.after(self.rate_at(now).gap());
        let grows = self.phase == Phase::Steady && self.is_busy && self.parts.increase == Increase::PerRtt;
        let turn = self.since.after(self.rtt());
        if grows && turn < at {
            // The rate has grown by then.
            return turn.max(self.last.after(self.increased().gap()));
        }
        at
    }

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        self.parts.place(setting)
    }

    pub(crate) const fn check(&self) -> Result<(), SettingConflict> {
        Ok(())
    }
}

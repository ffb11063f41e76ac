//! TFRC for messages that nobody acknowledges: the rate that TCP would have on a path with such losses.
//!
//! RFC 5348 is the one standard for a paced sender without a window. Its receiver counts loss events and what it receives,
//! and reports once per round-trip time; here the sender does both, from the answers to its requests (§7 allows that). From
//! the loss event rate p and the round-trip time R the throughput equation gives the rate X. Before the first loss X doubles
//! as long as the answers keep up; X is never above twice their rate; when none comes for four round-trip times it is
//! halved. What follows from CoAP, and what the RFC leaves open, is in `docs/appendix/interpretations.md`, T1 to T8.
//!
//! Messages leave when [`admit`](Controller::admit) says so. How many requests may be unanswered is the endpoint's NSTART, which
//! has to be raised for a rate to mean anything. Confirmable messages have the timer of RFC 7252 and are not governed.

mod equation;
mod losses;

use self::{
    equation::{interval_for, throughput},
    losses::Losses,
};
use crate::{
    backoff::{Exponential, longer},
    controller::{Admit, Class, Controller, Cx, Exchange, Reason, View, Wait, Wishes},
    dither::Dither,
    division::quotient,
    evidence::{ExactRtt, Sample},
    feedback::{Fate, Feedback, PlainMessage},
    layout::laid_out,
    preset::presets,
    rate::Rate,
    setting::{Place, Setting, SettingConflict},
    time::{Instant, Span},
};

/// What it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// W_init: messages in the first round-trip time, and as many in each after a silence. Zero counts as one.
    pub initial_window: u8,
}

laid_out!(Parts { initial_window });

impl Parts {
    /// RFC 5348 §4.2: min(4s, max(2s, 4380 bytes)), which is four messages of up to 1095 bytes.
    pub const STANDARD: Self = Self { initial_window: 4 };
}

presets! { TfrcNon {
    TFRC_NON = 176, Parts::STANDARD, {
        name: "tfrc-non",
        label: "TFRC, non-confirmable",
        source: "TFRC (RFC 5348), sections 3 to 7, applied to non-confirmable requests by us",
        readings: &["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8"],
        summary: "non-confirmable requests paced at the rate of TCP on a path with such losses, from their answers",
    };
} }

/// 1/t_mbi: one message in 64 s (RFC 5348 §4.3).
const SLOWEST: Rate = Rate::per(1, Span::from_secs(64));
/// Before the first round-trip time (RFC 5348 §4.2).
const FIRST: Rate = Rate::per(1, Span::from_secs(1));
/// The timer of confirmable messages (RFC 7252 §4.8).
const ACK_TIMEOUT: Span = Span::from_secs(2);

/// Of the running round: a message left in it,
const SENT: u8 = 1;
/// others were held back when one did,
const HELD_BACK: u8 = 2;
/// a silence went before it,
const AFTER_SILENCE: u8 = 4;
/// it showed a loss event.
const LOSS: u8 = 8;

/// One peer under TFRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TfrcNon {
    /// When the last message left; never if none did.
    last: Instant,
    /// When the running round began, which is when the nofeedback timer was set.
    since: Instant,
    losses: Losses,
    /// X.
    rate: Rate,
    /// X_recv_set: the receive rates of the last round and of the one before.
    received: Rate,
    received_before: Rate,
    /// R; zero before the first answer.
    rtt: Span,
    /// What arrived in the running round.
    arrived: u16,
    round: u8,
    parts: Parts,
}

laid_out!(TfrcNon { last, since, losses, rate, received, received_before, rtt, arrived, round, parts });

impl Controller for TfrcNon {
    fn admit(&self, class: Class, _len: u16, cx: Cx) -> Admit {
        if class == Class::Confirmable || self.last == Instant::NEVER {
            return Admit::Now;
        }
        let mut then = *self;
        then.catch_up(cx.now);
        match then.last.after(then.rate.gap()) {
            at if at > cx.now => Admit::At(at),
            _ => Admit::Now,
        }
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        let first = Dither::RFC7252.spread(ACK_TIMEOUT, cx.chance);
        exchange.begin(cx.now, first);
        Wait::then_retransmit(first, Reason::Initial)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        let wait = Exponential::RFC7252.next(exchange.current());
        exchange.advance(wait);
        Wait::then_retransmit(wait, Reason::BackedOff)
    }

    fn on_reply(&mut self, _exchange: &Exchange, _sample: Sample, _cx: Cx) {}

    fn on_plain_send(&mut self, _len: u16, cx: Cx) {
        self.catch_up(cx.now);
        if self.last == Instant::NEVER {
            self.begin_round(cx.now, AFTER_SILENCE);
        } else {
            self.losses.slide(cx.now.since(self.last));
            if self.round & SENT == 0 && self.rtt > Span::ZERO && cx.now.since(self.since) > self.rtt {
                self.round |= AFTER_SILENCE;
            }
        }
        self.last = cx.now;
        self.round |= if cx.waiting > 0 { SENT | HELD_BACK } else { SENT };
    }

    /// A loss is found when later messages are answered, or not at all: that nothing comes is for the nofeedback timer.
    fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
        self.catch_up(cx.now);
        if feedback.fate == Fate::Lost || feedback.message != PlainMessage::Request {
            return;
        }
        self.arrived = self.arrived.saturating_add(1);
        if cx.waiting > 0 {
            self.round |= HELD_BACK;
        }
        let shows_loss = self.place_arrival(feedback, cx.now);
        if shows_loss {
            self.round |= LOSS;
        }
        let sample = feedback.rtt().map(ExactRtt::span);
        if self.rtt == Span::ZERO {
            if let Some(sample) = sample {
                self.rtt = longer(sample, Span::from_micros(1));
                self.rate = self.initial();
                (self.received, self.received_before) = (Rate::MAX, Rate::ZERO);
                self.begin_round(cx.now, 0);
            }
        } else if cx.now.since(self.since) >= self.rtt {
            self.end_round(sample, cx.now);
        } else if shows_loss {
            self.rate = self.allowed(self.limit());
        }
    }

    fn wishes(&self) -> Wishes {
        Wishes { governs_requests: true, ..Wishes::NONE }
    }

    fn view(&self) -> View {
        let srtt = Some(self.rtt).filter(|rtt| *rtt > Span::ZERO);
        View { rto: Some(ACK_TIMEOUT), srtt, ..View::default() }
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        if copy > 0 {
            return Exponential::RFC7252.next(previous);
        }
        Dither::RFC7252.longest(ACK_TIMEOUT)
    }
}

impl TfrcNon {
    /// The parameters that it has.
    pub const SETTINGS: &[Setting] = &[Setting::InitialWindow];

    /// A peer about which nothing is known.
    #[must_use]
    pub const fn new(parts: Parts) -> Self {
        Self {
            last: Instant::NEVER,
            since: Instant::ORIGIN,
            losses: Losses::NONE,
            rate: FIRST,
            received: Rate::ZERO,
            received_before: Rate::ZERO,
            rtt: Span::ZERO,
            arrived: 0,
            round: 0,
            parts,
        }
    }

    /// X at this point: messages per second, as far as nothing comes until then.
    #[must_use]
    pub fn rate(&self, now: Instant) -> Rate {
        let mut then = *self;
        then.catch_up(now);
        then.rate
    }

    /// The loss event rate p in millionths; nothing before the first loss.
    #[must_use]
    pub fn loss_event_rate(&self) -> Option<u32> {
        let (losses, messages) = self.losses.rate()?;
        let millionths = u64::from(losses).saturating_mul(1_000_000).checked_div(u64::from(messages))?;
        u32::try_from(millionths).ok()
    }

    fn begin_round(&mut self, now: Instant, round: u8) {
        (self.since, self.arrived, self.round) = (now, 0, round);
    }

    /// W_init/R, but not below the slowest rate there is: a silence would raise it then.
    fn initial(&self) -> Rate {
        Rate::per(u32::from(self.parts.initial_window.max(1)), self.rtt).max(SLOWEST)
    }

    /// max(X_recv_set), without what stands for no limit at all.
    fn received(&self) -> Rate {
        let finite = |rate| if rate == Rate::MAX { Rate::ZERO } else { rate };
        finite(self.received).max(finite(self.received_before))
    }

    /// recv_limit.
    fn limit(&self) -> Rate {
        let most = self.received.max(self.received_before);
        most.plus(most)
    }

    /// X by the equation, if there was a loss.
    fn by_equation(&self) -> Option<Rate> {
        self.losses.rate().map(|(losses, messages)| throughput(losses, messages, self.rtt))
    }

    /// X where what is received allows `limit` (RFC 5348 §4.3, step 4).
    fn allowed(&self, limit: Rate) -> Rate {
        match self.by_equation() {
            Some(rate) => rate.min(limit).max(SLOWEST),
            None => self.rate.plus(self.rate).min(limit).max(self.initial()),
        }
    }

    /// Where a message stands among those that arrived. True if that shows a loss event.
    fn place_arrival(&mut self, feedback: Feedback, now: Instant) -> bool {
        let left = Instant::from_micros(now.as_micros().saturating_sub(u64::from(feedback.since.as_micros())));
        let in_round = Rate::per(u32::from(self.arrived), longer(now.since(self.since), self.rtt));
        let (target, rtt) = (self.received().max(in_round), self.rtt);
        self.losses.arrived(feedback.number, self.last.since(left), rtt, || interval_for(target, rtt))
    }

    /// A round-trip time is over: what a receiver would report (RFC 5348 §4.3).
    fn end_round(&mut self, sample: Option<Span>, now: Instant) {
        let after_silence = self.round & AFTER_SILENCE != 0;
        // A receiver counts over the last round-trip time.
        let lasted = if after_silence { self.rtt } else { now.since(self.since) };
        let received = Rate::per(u32::from(self.arrived), lasted);
        let limit = if after_silence || self.round & HELD_BACK == 0 {
            // The application was what limited the rate.
            let before = self.received();
            let (most, limit) = if self.round & LOSS != 0 {
                let most = before.halved(1).max(received.scaled(85, 100));
                (most, most)
            } else {
                let most = before.max(received);
                (most, most.plus(most))
            };
            (self.received, self.received_before) = (most, Rate::ZERO);
            limit
        } else {
            let is_old = lasted > self.rtt.doubled();
            self.received_before = if is_old { Rate::ZERO } else { self.received };
            self.received = received;
            self.limit()
        };
        if let Some(sample) = sample {
            self.rtt = smoothed(self.rtt, sample);
        }
        self.rate = self.allowed(limit);
        self.begin_round(now, 0);
    }

    /// How long the nofeedback timer runs (RFC 5348 §4.4): 2 s at first.
    fn nofeedback(&self) -> Span {
        longer(self.rtt.times(4), self.rate.gap().doubled())
    }

    /// The nofeedback timer has run out as often as it has.
    fn catch_up(&mut self, now: Instant) {
        while self.last != Instant::NEVER {
            let timer = self.nofeedback();
            let due = self.since.after(timer);
            if due > now {
                return;
            }
            let before = (self.rate, self.received, self.received_before);
            self.expire();
            self.begin_round(due, AFTER_SILENCE);
            if before == (self.rate, self.received, self.received_before) {
                // Nor do those that follow change anything.
                let behind = now.as_micros().saturating_sub(due.as_micros());
                let timer = u64::from(timer.as_micros());
                let rest = behind.wrapping_sub(quotient(behind, timer).wrapping_mul(timer));
                self.since = Instant::from_micros(now.as_micros().saturating_sub(rest));
                return;
            }
        }
    }

    /// It has run out once.
    fn expire(&mut self) {
        let is_idle = self.round & SENT == 0;
        if self.rtt == Span::ZERO {
            if !is_idle {
                self.rate = self.rate.halved(1).max(SLOWEST);
            }
            return;
        }
        let (received, recover) = (self.received(), self.initial());
        let Some(by_equation) = self.by_equation() else {
            if !is_idle || self.rate >= recover.plus(recover) {
                self.rate = self.rate.halved(1).max(SLOWEST);
            }
            return;
        };
        if is_idle && received < recover {
            return;
        }
        let limit = if by_equation > received.plus(received) { received } else { by_equation.halved(1) };
        (self.received, self.received_before) = (limit.max(SLOWEST).halved(1), Rate::ZERO);
        // What was lost may have aged since X was computed: no silence makes it higher.
        self.rate = self.rate.min(self.allowed(self.limit()));
    }

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        match setting {
            Setting::InitialWindow => Some(Place::Count(&mut self.parts.initial_window)),
            _ => None,
        }
    }

    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "as all algorithms have it")]
    pub(crate) const fn check(&self) -> Result<(), SettingConflict> {
        Ok(())
    }
}

/// 0.9 R and a tenth of the sample, to the nearest microsecond (RFC 5348 §4.3, q = 0.9).
fn smoothed(rtt: Span, sample: Span) -> Span {
    let tenths = u64::from(rtt.as_micros()).saturating_mul(9).saturating_add(u64::from(sample.as_micros()));
    // Not above the larger of the two.
    Span::from_micros(quotient(tenths.saturating_add(5), 10).max(1) as u32)
}

//! FASOR: a fast timeout from unambiguous samples only, and a slow one from everything else.
//!
//! draft-ietf-core-fasor-02 (March 2023), §4: I. Järvinen, M. Kojo, I. Raitahila, Z. Cao: "Fast-Slow Retransmission
//! Timeout and Congestion Control Algorithm for CoAP". A reply after retransmissions says how long the whole exchange
//! took; one and a half times that outlasts whatever queue caused it. From state to state the slow timeout moves to the
//! front of the series of waits, so that a queue can drain before the fast timeout is tried again:
//!
//! | state | waits (F: fast, L: slow) |
//! |---|---|
//! | fast | F, 2F, 4F, … |
//! | fast-slow-fast | F, max(L, 2F), 2F, 4F, … |
//! | slow-fast | L, F, 2F, 4F, … |

use crate::{
    backoff::{Exponential, Factor, longer, shorter},
    controller::{Admit, Class, Controller, Cx, End, Exchange, Naming, Reason, View, Wait, Wishes},
    estimator::{GRANULARITY, Gains, Share, Strong},
    evidence::{Evidence, Sample},
    layout::laid_out,
    pacing::Pacing,
    preset::presets,
    setting::{Place, Setting, SettingConflict, choices},
    time::{Span, third},
};

/// Which series the next exchange gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// FAST.
    Fast = 0,
    /// FAST_SLOW_FAST.
    FastSlowFast = 1,
    /// SLOW_FAST.
    SlowFast = 2,
}

laid_out!(State = Fast | FastSlowFast | SlowFast);

/// How the first sample becomes a timeout of one and a half times itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Init {
    /// RTTVAR begins with an eighth of the sample, K = 4 (the text).
    Text,
    /// RTTVAR begins with half of it, and K is 1 for this one timeout (the pseudo-code).
    PseudoCode,
}

laid_out!(Init = Text | PseudoCode);

/// How the fast timeout is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// Evenly over [RTO + SRTT/4, RTO + SRTT]; a third of the default stands for SRTT before any measurement (the
    /// text).
    Text,
    /// Not at all (the pseudo-code).
    Nothing,
}

laid_out!(Spread = Text | Nothing);

/// What giving up does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GivingUp {
    /// The same as an ambiguous reply: the slow timeout is set and the state goes one step down.
    StepsDown,
    /// Nothing (the pseudo-code).
    ChangesNothing,
}

laid_out!(GivingUp = StepsDown | ChangesNothing);

/// Whether a reply that names a copy before the last is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Echo {
    /// It is (the draft, §4.5).
    Trusted,
    /// It is ambiguous: a server that answers duplicates from its store names the copy it processed, not the one whose
    /// reply got through.
    ExactOnly,
}

laid_out!(Echo = Trusted | ExactOnly);

choices! {
    Init: Init::Text, Init::PseudoCode;
    Spread: Spread::Text, Spread::Nothing;
    GivingUp: GivingUp::StepsDown, GivingUp::ChangesNothing;
    Naming: Naming::None, Naming::Token, Naming::Count;
    Echo: Echo::Trusted, Echo::ExactOnly;
}

/// What the controller is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The fast timeout before any measurement.
    pub ack_timeout: Span,
    /// How the fast timeout grows in a series.
    pub backoff: Exponential,
    /// The longest slow timeout; [`Span::MAX`] for no limit.
    pub longest_slow: Span,
    /// What an ambiguous time is multiplied by to make the slow timeout.
    pub slow_factor: Factor,
    /// How the first sample enters.
    pub init: Init,
    /// How the fast timeout is spread.
    pub spread: Spread,
    /// What giving up does.
    pub giving_up: GivingUp,
    /// How copies are distinguished.
    pub naming: Naming,
    /// Whether a reply that names a copy before the last is believed.
    pub echo: Echo,
}

laid_out!(Parts { ack_timeout, backoff, longest_slow, slow_factor, init, spread, giving_up, naming, echo });

impl Parts {
    /// draft-ietf-core-fasor-02 §4: 2 s, factor 1.5, and the shortest cap that the draft allows, 60 s. A slow
    /// timeout above EXCHANGE_LIFETIME, 247 s, would outlive the exchange.
    pub const DRAFT_02: Self = Self {
        ack_timeout: Span::from_secs(2),
        backoff: Exponential { factor: Factor::TWO, cap: Span::from_secs(60) },
        longest_slow: Span::from_secs(247),
        slow_factor: Factor::ONE_AND_A_HALF,
        init: Init::Text,
        spread: Spread::Text,
        giving_up: GivingUp::StepsDown,
        naming: Naming::None,
        echo: Echo::Trusted,
    };

    /// The same with the number of the copy in the token (§4.5).
    pub const TOKEN: Self = Self { naming: Naming::Token, ..Self::DRAFT_02 };

    /// The same with the number of the copy in the option Rexmit-Cnt (§4.5).
    pub const COUNT: Self = Self { naming: Naming::Count, ..Self::DRAFT_02 };
}

presets! { Fasor {
    FASOR = 48, Parts::DRAFT_02, {
        name: "fasor",
        label: "FASOR",
        source: "draft-ietf-core-fasor-02, section 4",
        readings: &["D1", "D2", "D5", "D9", "D15", "D16", "E9", "E14"],
        summary: "a fast timeout from unambiguous samples, and a slow one that lets queues drain after ambiguous ones",
    };
    FASOR_TOKEN = 49, Parts::TOKEN, {
        name: "fasor-token",
        label: "FASOR + token",
        source: "draft-ietf-core-fasor-02, section 4.5, copies told apart by their tokens",
        readings: &["D1", "D2", "D5", "D9", "D15", "D16", "E9", "E10", "E14"],
        summary: "fasor with the number of the copy in the token, so that most answers are unambiguous",
    };
    FASOR_COUNT = 50, Parts::COUNT, {
        name: "fasor-count",
        label: "FASOR + count",
        source: "draft-ietf-core-fasor-02, section 4.5, copies told apart by the option Rexmit-Cnt",
        readings: &["D1", "D2", "D5", "D9", "D15", "D16", "E9", "E10", "E14"],
        summary: "fasor with the number of the copy in an option, so that most answers are unambiguous",
    };
} }

/// One peer under FASOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fasor {
    pacing: Pacing,
    estimator: Strong,
    /// The fast timeout, before spreading; zero before any measurement.
    rto: Span,
    /// The slow timeout, used in no state but after it was set.
    slow: Span,
    /// The sample of the exchange before; zero if it gave none.
    last_sample: Span,
    parts: Parts,
    state: State,
}

laid_out!(Fasor { pacing, estimator, rto, slow, last_sample, parts, state });

impl Fasor {
    const K: u8 = 4;

    /// The parameters that it has.
    pub const SETTINGS: &[Setting] = &[
        Setting::AckTimeout,
        Setting::MaxWait,
        Setting::MaxSlow,
        Setting::SlowFactor,
        Setting::FasorInit,
        Setting::FasorDither,
        Setting::GiveUp,
        Setting::FasorNaming,
        Setting::Echo,
    ];

    /// A peer about which nothing is known.
    #[must_use]
    pub const fn new(parts: Parts) -> Self {
        Self {
            pacing: Pacing::UNUSED,
            estimator: Strong::UNKNOWN,
            rto: Span::ZERO,
            slow: Span::ZERO,
            last_sample: Span::ZERO,
            parts,
            state: State::Fast,
        }
    }

    /// Which series the next exchange gets.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The slow timeout; nothing before it was ever set.
    #[must_use]
    pub const fn slow(&self) -> Option<Span> {
        if self.slow.as_micros() == 0 { None } else { Some(self.slow) }
    }
}

impl Controller for Fasor {
    /// Holds back messages that nobody acknowledges.
    fn admit(&self, class: Class, _len: u16, cx: Cx) -> Admit {
        self.pacing.admit(class, cx)
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        let fast = self.draw(cx);
        let (first, other, reason) = match self.state {
            State::SlowFast => (self.slow, fast, Reason::Slow),
            _ if self.estimator.is_known() => (fast, self.slow, Reason::Initial),
            _ => (fast, self.slow, Reason::Blind),
        };
        exchange.begin(cx.now, first);
        // The series is fixed from here on, whatever becomes of the peer's state.
        exchange.set_mark(other);
        exchange.set_series(self.state as u8);
        Wait::then_retransmit(first, reason)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        let backoff = self.parts.backoff;
        let (first, other, copies) = (exchange.first_wait(), exchange.mark(), exchange.retransmissions());
        let (wait, reason) = match (exchange.series(), copies) {
            (SLOW_FAST, 0) => (other, Reason::BackedOff),
            (FAST_SLOW_FAST, 0) if other > backoff.next(first) => (other, Reason::Slow),
            // Back to the series of F, however long the slow timeout was.
            (FAST_SLOW_FAST, 1) => (backoff.next(first), Reason::BackedOff),
            _ => (backoff.next(exchange.current()), Reason::BackedOff),
        };
        exchange.advance(wait);
        Wait::then_retransmit(wait, reason)
    }

    fn on_reply(&mut self, _exchange: &Exchange, sample: Sample, _cx: Cx) {
        self.last_sample = Span::ZERO;
        if sample.evidence() == Evidence::None {
            return;
        }
        let first = !self.estimator.is_known();
        match self.unambiguous(sample) {
            Some(rtt) => {
                let k = if first && self.parts.init == Init::PseudoCode { 1 } else { Self::K };
                self.rto = self.estimator.timeout(k);
                self.last_sample = rtt;
                self.state = State::Fast;
            }
            None => self.slow_down(sample.since_first()),
        }
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        self.last_sample = Span::ZERO;
        if why == End::GaveUp && self.parts.giving_up == GivingUp::StepsDown {
            self.slow_down(cx.now.since(exchange.started()));
        }
    }

    /// The next such message waits for the fast timeout, or as long as one byte a second allows.
    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        self.pacing.sent_bytes(len, self.rto(), cx.now);
    }

    fn wishes(&self) -> Wishes {
        Wishes { naming: self.parts.naming, confirmable_every: Pacing::CONFIRMABLE_EVERY, ..Wishes::NONE }
    }

    fn view(&self) -> View {
        View { rto: Some(self.rto()), srtt: self.estimator.srtt(), rttvar: self.estimator.rttvar(), ..View::default() }
    }

    fn longest_wait(&self, _copy: u8, _previous: Span) -> Span {
        self.parts.longest_wait()
    }
}

const FAST_SLOW_FAST: u8 = State::FastSlowFast as u8;
const SLOW_FAST: u8 = State::SlowFast as u8;

impl Parts {
    /// No wait lies above both caps, not even one that starts a series.
    const fn longest_wait(&self) -> Span {
        longer(self.backoff.cap, self.longest_slow)
    }
}

impl Fasor {
    /// The fast timeout, or the default that stands in for it.
    const fn rto(&self) -> Span {
        if self.estimator.is_known() { self.rto } else { self.parts.ack_timeout }
    }

    /// F for one exchange.
    fn draw(&self, cx: Cx) -> Span {
        // With gains as in RFC 6298 the second never wins; it does where a cap holds the first down.
        let base = longer(self.rto(), if self.names_copies() { self.last_sample } else { Span::ZERO });
        let drawn = match self.parts.spread {
            Spread::Nothing => base,
            Spread::Text => {
                let srtt = match self.estimator.srtt() {
                    Some(srtt) => srtt,
                    // Rounded to the nearest microsecond.
                    None => Span::from_micros(third(self.parts.ack_timeout.as_micros().saturating_add(1))),
                };
                cx.chance.between(base.plus(Share::QUARTER.blend(Span::ZERO, srtt)), base.plus(srtt))
            }
        };
        shorter(drawn, self.parts.longest_wait())
    }

    fn names_copies(&self) -> bool {
        self.parts.naming != Naming::None
    }

    /// Moves the estimator by what is no guess, and answers it.
    fn unambiguous(&mut self, sample: Sample) -> Option<Span> {
        let gains = match self.parts.init {
            Init::Text => Gains::FASOR,
            Init::PseudoCode => Gains::RFC6298,
        };
        match (sample.evidence(), sample.named_rtt()) {
            (Evidence::Exact(rtt), _) if sample.retransmissions() == 0 || self.names_copies() => {
                self.estimator.take(rtt, gains);
                Some(rtt.span())
            }
            (Evidence::Echoed { .. }, Some(rtt)) if self.names_copies() && self.parts.echo == Echo::Trusted => {
                self.estimator.trust(rtt, gains);
                Some(rtt.span())
            }
            _ => None,
        }
    }

    /// The exchange took this long, and nobody knows why.
    fn slow_down(&mut self, elapsed: Span) {
        let slow = shorter(self.parts.slow_factor.times(elapsed), self.parts.longest_slow);
        self.slow = longer(slow, GRANULARITY);
        self.state = match self.state {
            State::Fast => State::FastSlowFast,
            State::FastSlowFast | State::SlowFast => State::SlowFast,
        };
    }

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        let parts = &mut self.parts;
        Some(match setting {
            Setting::AckTimeout => Place::Time(&mut parts.ack_timeout),
            Setting::MaxWait => Place::Time(&mut parts.backoff.cap),
            Setting::MaxSlow => Place::Time(&mut parts.longest_slow),
            Setting::SlowFactor => Place::Factor(&mut parts.slow_factor),
            Setting::FasorInit => Place::Choice(&mut parts.init),
            Setting::FasorDither => Place::Choice(&mut parts.spread),
            Setting::GiveUp => Place::Choice(&mut parts.giving_up),
            Setting::FasorNaming => Place::Choice(&mut parts.naming),
            Setting::Echo => Place::Choice(&mut parts.echo),
            _ => return None,
        })
    }

    pub(crate) fn check(&self) -> Result<(), SettingConflict> {
        let Parts { ack_timeout, backoff, longest_slow, echo, .. } = self.parts;
        Setting::AckTimeout.not_above(ack_timeout, Setting::MaxWait, backoff.cap)?;
        Setting::AckTimeout.not_above(ack_timeout, Setting::MaxSlow, longest_slow)?;
        if echo == Echo::ExactOnly && !self.names_copies() {
            let (setting, other) = (Setting::Echo, Setting::FasorNaming);
            return Err(SettingConflict::Needs { setting, other, words: &["token", "count"] });
        }
        Ok(())
    }
}

//! CoCoA: two estimators, one for clean exchanges and one for exchanges with few retransmissions, mixed into one
//! timeout.
//!
//! The name stands for several programs. The rules here are those of draft-ietf-core-cocoa-03 (2018); where older
//! drafts, the paper on CoCoA+ or Eclipse Californium differ, the difference is a part. With a [`Carry`] rule it
//! becomes CoCoA with Full Backoff.

use crate::{
    ageing::Ageing,
    backoff::{Band, Basis, Variable, longer, shorter},
    carry::{Carried, Carry},
    controller::{Admit, Class, Controller, Cx, End, Exchange, Reason, View, Wait, Wishes},
    dither::Dither,
    estimator::{Gains, Share, Strong, Weak},
    evidence::{Evidence, Sample},
    setting::{Setting, SettingError, SettingValue},
    time::{Instant, Span},
};

/// How one of the two estimators enters the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// K: how many variations are added to the smoothed round-trip time.
    pub k: u8,
    /// The estimator's share in the timeout; the old timeout keeps the rest.
    pub share: Share,
}

/// The base of the first wait to a peer that was never measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blind {
    /// The default timeout times the number of exchanges open to the peer (draft-ietf-core-cocoa-03 §4.1).
    PerOpen,
    /// The default timeout doubled for every further exchange open to the peer (draft-bormann-core-cocoa-01 §3.1).
    Doubling,
    /// The default timeout.
    Plain,
}

/// What the controller is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The timeout before any measurement.
    pub ack_timeout: Span,
    /// The longest base of a first wait, before dithering; [`Span::MAX`] for no limit. The estimate itself may lie
    /// above it.
    pub longest_estimate: Span,
    /// How waits grow.
    pub backoff: Variable,
    /// How the first wait is spread.
    pub dither: Dither,
    /// The gains of both estimators.
    pub gains: Gains,
    /// The estimator of clean exchanges.
    pub strong: Branch,
    /// The estimator of exchanges with retransmissions.
    pub weak: Branch,
    /// An exchange with more retransmissions than this is no sample; zero leaves out the weak estimator altogether.
    pub weak_retransmissions: u8,
    /// What happens before any measurement.
    pub blind: Blind,
    /// What silence does to the timeout.
    pub ageing: Ageing,
    /// Whether a backed-off wait outlives its exchange.
    pub carry: Carry,
}

/// The shares that a setting can name, in the order of its words.
const SHARES: [Share; 4] = [Share::WHOLE, Share::HALF, Share::QUARTER, Share::EIGHTH];

impl Parts {
    /// draft-ietf-core-cocoa-03 §4: strong K = 4 and share 1/2, weak K = 1 and share 1/4 for one or two
    /// retransmissions; variable backoff 3 / 2 / 1.5 at every expiry up to 32 s; gains of RFC 6298.
    pub const DRAFT_03: Self = Self {
        ack_timeout: Span::from_secs(2),
        longest_estimate: Span::from_secs(32),
        backoff: Variable::COCOA_03,
        dither: Dither::RFC7252,
        gains: Gains::RFC6298,
        strong: Branch { k: 4, share: Share::HALF },
        weak: Branch { k: 1, share: Share::QUARTER },
        weak_retransmissions: 2,
        blind: Blind::PerOpen,
        ageing: Ageing::Draft03,
        carry: Carry::None,
    };

    /// The same with Full Backoff 1 ("Is CoAP Congestion Safe?", ANRW 2018, §4.2).
    pub const FULL_BACKOFF_1: Self = Self { carry: Carry::FullBackoff1, ..Self::DRAFT_03 };

    /// The same with Full Backoff 2 (same source).
    pub const FULL_BACKOFF_2: Self = Self { carry: Carry::FullBackoff2, ..Self::DRAFT_03 };
}

/// One peer under CoCoA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cocoa {
    /// When the timeout last changed; silence counts from here.
    updated: Instant,
    /// From when on the next message that nobody acknowledges may leave.
    plain_from: Instant,
    strong: Strong,
    weak: Weak,
    /// The overall timeout, before limit and dither.
    rto: Span,
    carried: Carried,
    parts: Parts,
}

impl Cocoa {
    /// Every eighth of the messages that nobody need acknowledge is made confirmable, so that any 16 in a row hold two
    /// (draft-ietf-core-cocoa-03 §5).
    const CONFIRMABLE_EVERY: u8 = 8;

    /// The parameters that it has.
    pub const SETTINGS: &[Setting] = &[
        Setting::AckTimeout,
        Setting::RandomFactor,
        Setting::MaxWait,
        Setting::MaxEstimate,
        Setting::Carry,
        Setting::Gains,
        Setting::StrongK,
        Setting::StrongShare,
        Setting::WeakK,
        Setting::WeakShare,
        Setting::WeakRetransmissions,
        Setting::Vbf,
        Setting::VbfLow,
        Setting::VbfMiddle,
        Setting::VbfHigh,
        Setting::VbfShort,
        Setting::VbfLong,
        Setting::Blind,
        Setting::Ageing,
    ];

    /// A peer about which nothing is known.
    #[must_use]
    pub const fn new(parts: Parts) -> Self {
        Self {
            updated: Instant::ORIGIN,
            plain_from: Instant::ORIGIN,
            strong: Strong::UNKNOWN,
            weak: Weak::UNKNOWN,
            rto: parts.ack_timeout,
            carried: Carried::NOTHING,
            parts,
        }
    }
}

impl Controller for Cocoa {
    /// Holds back messages that nobody acknowledges.
    fn admit(&self, class: Class, _len: u16, cx: Cx) -> Admit {
        if class == Class::Plain && cx.now < self.plain_from { Admit::At(self.plain_from) } else { Admit::Now }
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        (self.rto, self.updated) = self.aged(cx.now);
        let carried = self.carried.wait();
        let (first, estimate, reason) = match carried {
            Some(wait) => (wait, wait, Reason::Carried),
            None => {
                let (base, reason) = self.base(cx.open);
                let base = self.limited(base);
                (self.parts.dither.spread(base, cx.chance), base, reason)
            }
        };
        exchange.begin(cx.now, first);
        exchange.set_mark(carried.unwrap_or(Span::ZERO));
        exchange.set_series(self.parts.backoff.band(first, estimate) as u8);
        Wait::then_retransmit(first, reason)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        let wait = self.parts.backoff.next(exchange.current(), Band::from_number(exchange.series()));
        exchange.advance(wait);
        Wait::then_retransmit(wait, Reason::BackedOff)
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        let before = self.rto;
        let updated = self.learn(sample);
        if updated {
            self.updated = cx.now;
        }
        self.carry_over(exchange, sample, before, updated, cx.open);
    }

    /// Changes no estimator. Full Backoff keeps the wait that was in force.
    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        if self.parts.carry.is_on() && (why == End::GaveUp || exchange.retransmissions() > 0) {
            self.carried.keep(exchange.current(), cx.open);
        }
    }

    /// The next such message waits for the overall timeout as it stands now, or as long as one byte a second allows
    /// (draft-ietf-core-cocoa-03 §5).
    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        let (rto, _) = self.aged(cx.now);
        self.plain_from = cx.now.after(shorter(rto, Span::from_secs(u32::from(len.max(1)))));
    }

    fn wishes(&self) -> Wishes {
        Wishes { confirmable_every: Self::CONFIRMABLE_EVERY, ..Wishes::NONE }
    }

    fn view(&self) -> View {
        View {
            rto: Some(self.rto),
            srtt: self.strong.srtt(),
            rttvar: self.strong.rttvar(),
            weak_srtt: self.weak.srtt(),
            weak_rttvar: self.weak.rttvar(),
            carried: self.carried.wait(),
        }
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        if copy > 0 {
            return self.parts.backoff.longest_after(previous);
        }
        let drawn = self.parts.dither.longest(self.parts.longest_estimate);
        if self.parts.carry.is_on() { longer(drawn, self.parts.backoff.cap) } else { drawn }
    }
}

impl Cocoa {
    const fn is_measured(&self) -> bool {
        self.strong.is_known() || self.weak.is_known()
    }

    /// The overall timeout and the start of its silence, aged up to `now`.
    fn aged(&self, now: Instant) -> (Span, Instant) {
        if self.is_measured() { self.parts.ageing.apply(self.rto, self.updated, now) } else { (self.rto, self.updated) }
    }

    /// The base of the first wait, before limit and dither.
    fn base(&self, open: u16) -> (Span, Reason) {
        if self.is_measured() {
            return (self.rto, Reason::Initial);
        }
        let further = u32::from(open.saturating_sub(1));
        let base = match self.parts.blind {
            Blind::PerOpen => self.rto.scaled(further.saturating_add(1), 1),
            Blind::Doubling => self.rto.scaled(1_u32.checked_shl(further).unwrap_or(u32::MAX), 1),
            Blind::Plain => self.rto,
        };
        (base, Reason::Blind)
    }

    /// The estimate as a first wait may use it.
    const fn limited(&self, estimate: Span) -> Span {
        shorter(estimate, self.parts.longest_estimate)
    }

    /// Lets the evidence move the estimators; true if the timeout changed.
    ///
    /// The published rule counts copies: no retransmission is a strong sample, a few are a weak one from the first
    /// copy, more are none. A reply that names a copy is no exception.
    fn learn(&mut self, sample: Sample) -> bool {
        let Parts { gains, strong, weak, weak_retransmissions, .. } = self.parts;
        match (sample.evidence(), sample.retransmissions()) {
            (Evidence::None, _) => return false,
            (Evidence::Exact(rtt), 0) => {
                self.strong.take(rtt, gains);
                self.rto = strong.share.blend(self.rto, self.strong.timeout(strong.k));
            }
            (_, few) if few <= weak_retransmissions => {
                self.weak.take(sample.since_first(), gains);
                self.rto = weak.share.blend(self.rto, self.weak.timeout(weak.k));
            }
            _ => return false,
        }
        true
    }

    /// What an answer after retransmissions leaves behind for the next exchange. `before` is the timeout as it was
    /// before the answer, `updated` whether the answer changed it.
    fn carry_over(&mut self, exchange: &Exchange, sample: Sample, before: Span, updated: bool, open: u16) {
        let kept = match self.parts.carry {
            Carry::None => return,
            _ if sample.retransmissions() == 0 => return self.carried.clear(),
            Carry::FullBackoff1 => exchange.current(),
            Carry::FullBackoff2 => {
                // An exchange that began with a carried wait had that for its timeout, not the estimate.
                let began_with = exchange.mark();
                let current = if began_with == Span::ZERO { self.limited(before) } else { began_with };
                let larger = if updated { longer(current, self.limited(self.rto)) } else { current };
                self.parts.backoff.after(larger, Band::from_number(exchange.series()), sample.retransmissions())
            }
        };
        self.carried.keep(kept, open);
    }

    /// Sets one of [`Self::SETTINGS`].
    pub(crate) fn set(&mut self, setting: Setting, value: SettingValue<'_>) -> Result<(), SettingError> {
        let parts = &mut self.parts;
        match setting {
            Setting::AckTimeout => parts.ack_timeout = setting.time(value)?,
            Setting::RandomFactor => parts.dither.factor = setting.factor(value)?,
            Setting::MaxWait => parts.backoff.cap = setting.time(value)?,
            Setting::MaxEstimate => parts.longest_estimate = setting.time(value)?,
            Setting::Carry => parts.carry = setting.carry(value)?,
            Setting::Gains => {
                parts.gains = setting.choice(value, [Gains::RFC6298, Gains::SWAPPED])?;
            }
            Setting::StrongK => parts.strong.k = setting.count(value)?,
            Setting::StrongShare => parts.strong.share = setting.choice(value, SHARES)?,
            Setting::WeakK => parts.weak.k = setting.count(value)?,
            Setting::WeakShare => parts.weak.share = setting.choice(value, SHARES)?,
            Setting::WeakRetransmissions => parts.weak_retransmissions = setting.count(value)?,
            Setting::Vbf => {
                parts.backoff.basis = setting.choice(value, [Basis::EachWait, Basis::FirstWait, Basis::Estimate])?;
            }
            Setting::VbfLow => parts.backoff.low = setting.factor(value)?,
            Setting::VbfMiddle => parts.backoff.middle = setting.factor(value)?,
            Setting::VbfHigh => parts.backoff.high = setting.factor(value)?,
            Setting::VbfShort => parts.backoff.short = setting.time(value)?,
            Setting::VbfLong => parts.backoff.long = setting.time(value)?,
            Setting::Blind => parts.blind = setting.choice(value, [Blind::PerOpen, Blind::Doubling, Blind::Plain])?,
            Setting::Ageing => {
                parts.ageing = setting.choice(value, [Ageing::None, Ageing::Draft03, Ageing::CocoaPlus])?;
            }
            Setting::BackoffFactor => return Err(SettingError::Unknown { legal: Self::SETTINGS }),
        }
        if !self.is_measured() {
            self.rto = self.parts.ack_timeout;
        }
        Ok(())
    }
}

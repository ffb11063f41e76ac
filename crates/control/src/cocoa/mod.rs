//! CoCoA: two estimators, one for clean exchanges and one for exchanges with few retransmissions, mixed into one
//! timeout.
//!
//! The name stands for several programs. The rules here are those of draft-ietf-core-cocoa-03 (2018); where older
//! drafts, the paper on CoCoA+ or Eclipse Californium differ, the difference is a part. With a [`Carry`] rule it
//! becomes CoCoA with Full Backoff.

mod presets;

use crate::{
    ageing::Ageing,
    backoff::{Band, Basis, Variable, longer, shorter},
    blind::Blind,
    carry::{Carried, Carry},
    controller::{Admit, Class, Controller, Cx, End, Exchange, Naming, Reason, View, Wait, Wishes},
    dither::Dither,
    estimator::{Gains, Share, Strong, Weak},
    evidence::{Evidence, ExactRtt, Named, NamedRtt, Sample},
    layout::laid_out,
    pacing::Pacing,
    setting::{Place, Setting, SettingConflict, choices},
    time::{Instant, PackedInstant, Span},
};

/// How one of the two estimators enters the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// K: how many variations are added to the smoothed round-trip time.
    pub k: u8,
    /// The estimator's share in the timeout; the old timeout keeps the rest.
    pub share: Share,
}

laid_out!(Branch { k, share });

/// What an answer after retransmissions teaches. An answer without one always moves the strong estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LearnsFrom {
    /// The number of copies: the time since the first copy moves the weak estimator, if the copies were few.
    Copies,
    /// The copy that the answer names: its age moves the strong estimator (L. Aldana Parra: Advanced Congestion Control
    /// Mechanisms for Internet of Things, 2019, §4.2.5).
    Echo,
    /// Whether the answer names the first copy, which was not lost then: the path is congested, and the timeout becomes
    /// the longest round-trip time so far. The age of any other copy moves the strong estimator (same source, §7.2.1).
    Number,
    /// The same where an answer distinguishes a retransmission from the first transmission: what is left of the time after the first
    /// wait, held against the strong estimator, moves the weak one (same source, §7.2.2).
    Flag,
}

laid_out!(LearnsFrom = Copies | Echo | Number | Flag);

choices! {
    LearnsFrom: LearnsFrom::Copies, LearnsFrom::Echo, LearnsFrom::Number, LearnsFrom::Flag;
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
    /// What answers after retransmissions teach.
    pub learns_from: LearnsFrom,
    /// Where they teach by the number of copies: an exchange with more retransmissions than this is no sample.
    pub weak_retransmissions: u8,
    /// What happens before any measurement.
    pub blind: Blind,
    /// What silence does to the timeout.
    pub ageing: Ageing,
    /// Whether a backed-off wait outlives its exchange.
    pub carry: Carry,
}

laid_out!(Parts {
    ack_timeout,
    longest_estimate,
    backoff,
    dither,
    gains,
    strong,
    weak,
    learns_from,
    weak_retransmissions,
    blind,
    ageing,
    carry
});

/// One peer under CoCoA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cocoa {
    /// When the timeout last changed; silence counts from here.
    updated: PackedInstant,
    pacing: Pacing,
    strong: Strong,
    weak: Weak,
    /// The overall timeout, before limit and dither; zero before any measurement.
    rto: Span,
    /// The longest round-trip time that moved it.
    longest_rtt: Span,
    /// What the exchange before left: the next first wait, or where nothing is carried over, what its factor goes by.
    carried: Carried,
    parts: Parts,
}

laid_out!(Cocoa { updated, pacing, strong, weak, rto, longest_rtt, carried, parts });

impl Cocoa {
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
        Setting::LearnsFrom,
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
            updated: PackedInstant::new(Instant::ORIGIN),
            pacing: Pacing::UNUSED,
            strong: Strong::UNKNOWN,
            weak: Weak::UNKNOWN,
            rto: Span::ZERO,
            longest_rtt: Span::ZERO,
            carried: Carried::NOTHING,
            parts,
        }
    }
}

impl Controller for Cocoa {
    /// Holds back messages that nobody acknowledges.
    fn admit(&self, class: Class, _len: u16, cx: Cx) -> Admit {
        self.pacing.admit(class, cx)
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        if self.is_measured() {
            let (rto, updated) = self.aged(cx.now);
            (self.rto, self.updated) = (rto, PackedInstant::new(updated));
        }
        let carried = self.carried_over();
        let (first, estimate, reason) = match carried {
            Some(wait) => (wait, wait, Reason::Carried),
            None => {
                let (base, reason) = self.base(cx.open);
                let base = self.limited(base);
                (self.parts.dither.spread(base, cx.chance), base, reason)
            }
        };
        let last_timer = self.carried.wait().filter(|_| self.parts.backoff.basis == Basis::LastTimer);
        let estimate = last_timer.map_or(estimate, |wait| self.limited(wait));
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
        let before = self.rto();
        let updated = self.learn(exchange, sample);
        if updated {
            self.updated = PackedInstant::new(cx.now);
        }
        self.carry_over(exchange, sample, before, updated, cx.open);
    }

    /// Changes no estimator. Full Backoff keeps the wait that was in force.
    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        if self.parts.carry.is_on() {
            self.carried.keep_unanswered(exchange, why, cx.open);
        } else {
            self.keep_last_timer(exchange, false);
        }
    }

    /// The next such message waits for the overall timeout as it stands now, or as long as one byte a second allows
    /// (draft-ietf-core-cocoa-03 §5).
    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        let rto = if self.is_measured() { self.aged(cx.now).0 } else { self.rto() };
        self.pacing.sent_bytes(len, rto, cx.now);
    }

    fn wishes(&self) -> Wishes {
        let naming = match self.parts.learns_from {
            LearnsFrom::Copies => Naming::None,
            LearnsFrom::Echo => Naming::Timestamp,
            LearnsFrom::Number => Naming::Count,
            LearnsFrom::Flag => Naming::Flag,
        };
        Wishes { naming, confirmable_every: Pacing::CONFIRMABLE_EVERY, ..Wishes::NONE }
    }

    fn view(&self) -> View {
        View {
            rto: Some(self.rto()),
            srtt: self.strong.srtt(),
            rttvar: self.strong.rttvar(),
            weak_srtt: self.weak.srtt(),
            weak_rttvar: self.weak.rttvar(),
            carried: self.carried_over(),
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
        self.rto.as_micros() > 0
    }

    /// The overall timeout, or the default that stands in for it.
    const fn rto(&self) -> Span {
        if self.is_measured() { self.rto } else { self.parts.ack_timeout }
    }

    /// The measured timeout aged up to `now`, and the start of its silence.
    fn aged(&self, now: Instant) -> (Span, Instant) {
        self.parts.ageing.apply(self.rto, self.updated.at(), now)
    }

    /// The base of the first wait, before limit and dither.
    fn base(&self, open: u16) -> (Span, Reason) {
        if self.is_measured() {
            return (self.rto, Reason::Initial);
        }
        (self.parts.blind.base(self.parts.ack_timeout, open), Reason::Blind)
    }

    /// The estimate as a first wait may use it.
    const fn limited(&self, estimate: Span) -> Span {
        shorter(estimate, self.parts.longest_estimate)
    }

    /// Lets the evidence move the timeout; true if it did.
    fn learn(&mut self, exchange: &Exchange, sample: Sample) -> bool {
        let first_copy = sample.since_first();
        match (sample.retransmissions(), self.parts.learns_from) {
            _ if sample.evidence() == Evidence::None => false,
            (0, _) => sample.exact().is_some_and(|rtt| self.take(rtt)),
            (few, LearnsFrom::Copies) => few <= self.parts.weak_retransmissions && self.guess(first_copy),
            (_, LearnsFrom::Number | LearnsFrom::Flag) if sample.named() == Named::Copy(0) => {
                self.congested(first_copy)
            }
            (_, LearnsFrom::Echo | LearnsFrom::Number) => sample.named_rtt().is_some_and(|rtt| self.trust(rtt)),
            (_, LearnsFrom::Flag) if sample.named() == Named::Nothing => false,
            (copies, LearnsFrom::Flag) => {
                let rest = first_copy.minus(exchange.first_wait());
                self.guess(match self.strong.srtt() {
                    None => rest,
                    Some(srtt) if copies == 1 => shorter(rest, srtt),
                    Some(srtt) => longer(rest, srtt),
                })
            }
        }
    }

    fn take(&mut self, rtt: ExactRtt) -> bool {
        self.strong.take(rtt, self.parts.gains);
        self.mix(rtt.span(), self.parts.strong, self.strong.timeout(self.parts.strong.k))
    }

    fn trust(&mut self, rtt: NamedRtt) -> bool {
        self.strong.trust(rtt, self.parts.gains);
        self.mix(rtt.span(), self.parts.strong, self.strong.timeout(self.parts.strong.k))
    }

    fn guess(&mut self, rtt: Span) -> bool {
        self.weak.take(rtt, self.parts.gains);
        self.mix(rtt, self.parts.weak, self.weak.timeout(self.parts.weak.k))
    }

    /// One of the estimators took a round-trip time in and now says `timeout`.
    fn mix(&mut self, rtt: Span, branch: Branch, timeout: Span) -> bool {
        self.longest_rtt = longer(self.longest_rtt, rtt);
        self.rto = branch.share.blend(self.rto(), timeout);
        true
    }

    /// The first copy was answered, only later than the timeout.
    fn congested(&mut self, rtt: Span) -> bool {
        self.longest_rtt = longer(self.longest_rtt, rtt);
        self.rto = longer(self.longest_rtt, self.shortest_wait());
        true
    }

    /// The first wait that the exchange before left, if any.
    const fn carried_over(&self) -> Option<Span> {
        if self.parts.carry.is_on() { self.carried.wait() } else { None }
    }

    /// Where the factor goes by the last timer: it does until the next sample.
    fn keep_last_timer(&mut self, exchange: &Exchange, sampled: bool) {
        if sampled {
            self.carried.clear();
        } else if self.parts.backoff.basis == Basis::LastTimer {
            self.carried.keep(exchange.current(), 1);
        }
    }

    /// What an answer after retransmissions leaves behind for the next exchange. `before` is the timeout as it was
    /// before the answer, `updated` whether the answer changed it.
    fn carry_over(&mut self, exchange: &Exchange, sample: Sample, before: Span, updated: bool, open: u16) {
        let kept = match self.parts.carry {
            Carry::None => return self.keep_last_timer(exchange, updated),
            _ if sample.retransmissions() == 0 => return self.carried.clear(),
            Carry::FullBackoff1 => exchange.current(),
            Carry::FullBackoff2 => {
                // An exchange that began with a persisted backoff had that for its timeout, not the estimate.
                let began_with = exchange.mark();
                let current = if began_with == Span::ZERO { self.limited(before) } else { began_with };
                let larger = if updated { longer(current, self.limited(self.rto)) } else { current };
                self.parts.backoff.after(larger, Band::from_number(exchange.series()), sample.retransmissions())
            }
        };
        self.carried.keep(kept, open);
    }

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        let parts = &mut self.parts;
        Some(match setting {
            Setting::AckTimeout => Place::Time(&mut parts.ack_timeout),
            Setting::RandomFactor => Place::Factor(&mut parts.dither.factor),
            Setting::MaxWait => Place::Time(&mut parts.backoff.cap),
            Setting::MaxEstimate => Place::Time(&mut parts.longest_estimate),
            Setting::Carry => Place::Choice(&mut parts.carry),
            Setting::Gains => Place::Choice(&mut parts.gains),
            Setting::StrongK => Place::Count(&mut parts.strong.k),
            Setting::StrongShare => Place::Choice(&mut parts.strong.share),
            Setting::WeakK => Place::Count(&mut parts.weak.k),
            Setting::WeakShare => Place::Choice(&mut parts.weak.share),
            Setting::LearnsFrom => Place::Choice(&mut parts.learns_from),
            Setting::WeakRetransmissions => Place::Count(&mut parts.weak_retransmissions),
            Setting::Vbf => Place::Choice(&mut parts.backoff.basis),
            Setting::VbfLow => Place::Factor(&mut parts.backoff.low),
            Setting::VbfMiddle => Place::Factor(&mut parts.backoff.middle),
            Setting::VbfHigh => Place::Factor(&mut parts.backoff.high),
            Setting::VbfShort => Place::Time(&mut parts.backoff.short),
            Setting::VbfLong => Place::Time(&mut parts.backoff.long),
            Setting::Blind => Place::Choice(&mut parts.blind),
            Setting::Ageing => Place::Choice(&mut parts.ageing),
            _ => return None,
        })
    }

    pub(crate) fn check(&self) -> Result<(), SettingConflict> {
        let Parts { ack_timeout, longest_estimate, backoff, learns_from, weak_retransmissions, .. } = self.parts;
        Setting::AckTimeout.not_above(ack_timeout, Setting::MaxEstimate, longest_estimate)?;
        Setting::AckTimeout.not_above(ack_timeout, Setting::MaxWait, backoff.cap)?;
        Setting::VbfShort.not_above(backoff.short, Setting::VbfLong, backoff.long)?;
        if learns_from != LearnsFrom::Copies && weak_retransmissions > 0 {
            let (setting, other) = (Setting::WeakRetransmissions, Setting::LearnsFrom);
            return Err(SettingConflict::Needs { setting, other, words: &["copies"] });
        }
        Ok(())
    }
}

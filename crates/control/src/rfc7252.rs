//! The retransmission timer of RFC 7252 §4.2: a dithered fixed timeout that doubles.
//!
//! It learns nothing from an answer, and the next message starts from the same two seconds however long the last one
//! had to wait. With a [`Carry`] rule it becomes Default CoAP with Full Backoff.

use crate::{
    backoff::{Exponential, longer},
    carry::{Carried, Carry},
    controller::{Controller, Cx, End, Exchange, Reason, View, Wait},
    dither::Dither,
    evidence::Sample,
    layout::laid_out,
    preset::presets,
    setting::{Place, Setting, SettingConflict},
    time::Span,
};

/// What the controller is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// ACK_TIMEOUT: the first wait before dithering.
    pub ack_timeout: Span,
    /// How the first wait is spread (ACK_RANDOM_FACTOR).
    pub dither: Dither,
    /// How waits grow.
    pub backoff: Exponential,
    /// Whether a backed-off wait outlives its exchange.
    pub carry: Carry,
}

laid_out!(Parts { ack_timeout, dither, backoff, carry });

impl Parts {
    /// RFC 7252 §4.8: ACK_TIMEOUT = 2 s, ACK_RANDOM_FACTOR = 1.5; §4.2: doubling, no cap.
    pub const RFC7252: Self = Self {
        ack_timeout: Span::from_secs(2),
        dither: Dither::RFC7252,
        backoff: Exponential::RFC7252,
        carry: Carry::None,
    };

    /// Default CoAP with Full Backoff 1 and the 60 s cap of the experiments ("Is CoAP Congestion Safe?", ANRW 2018,
    /// §3.3, §4.2).
    pub const FULL_BACKOFF_1: Self = Self {
        backoff: Exponential { cap: Span::from_secs(60), ..Exponential::RFC7252 },
        carry: Carry::FullBackoff1,
        ..Self::RFC7252
    };

    /// Default CoAP with Full Backoff 2 and the 60 s cap of the experiments (same source).
    pub const FULL_BACKOFF_2: Self = Self { carry: Carry::FullBackoff2, ..Self::FULL_BACKOFF_1 };
}

presets! { Rfc7252 {
    RFC7252 = 1, Parts::RFC7252, {
        name: "rfc7252",
        label: "Default CoAP",
        source: "RFC 7252, sections 4.2 and 4.8",
        readings: &["D4"],
        summary: "a dithered 2 s that doubles without a cap and learns nothing",
    };
    DEFAULT_FB1 = 2, Parts::FULL_BACKOFF_1, {
        name: "default-fb1",
        label: "Default + Full Backoff 1",
        source: "Is CoAP Congestion Safe? (ANRW 2018), section 4.2: Full Backoff 1 over RFC 7252, 60 s cap",
        readings: &["D3", "D4", "D5", "D9", "E14"],
        summary: "rfc7252 that keeps a backed-off wait until an answer comes without a retransmission",
    };
    DEFAULT_FB2 = 3, Parts::FULL_BACKOFF_2, {
        name: "default-fb2",
        label: "Default + Full Backoff 2",
        source: "Is CoAP Congestion Safe? (ANRW 2018), section 4.2: Full Backoff 2 over RFC 7252, 60 s cap",
        readings: &["D3", "D4", "D5", "D9", "D13", "E14"],
        summary: "rfc7252 that keeps a backed-off wait, halved by each answer without a retransmission",
    };
} }

/// One peer under the timer of RFC 7252.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfc7252 {
    parts: Parts,
    carried: Carried,
}

laid_out!(Rfc7252 { parts, carried });

impl Rfc7252 {
    /// The parameters that it has.
    pub const SETTINGS: &[Setting] =
        &[Setting::AckTimeout, Setting::RandomFactor, Setting::BackoffFactor, Setting::MaxWait, Setting::Carry];

    /// A peer about which nothing is known.
    #[must_use]
    pub const fn new(parts: Parts) -> Self {
        Self { parts, carried: Carried::NOTHING }
    }
}

impl Controller for Rfc7252 {
    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        let (first, reason) = self.first_wait(cx);
        exchange.begin(cx.now, first);
        Wait::then_retransmit(first, reason)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        let wait = self.parts.backoff.next(exchange.current());
        exchange.advance(wait);
        Wait::then_retransmit(wait, Reason::BackedOff)
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        match self.parts.carry {
            Carry::None => {}
            _ if sample.retransmissions() > 0 => self.carried.keep(exchange.current(), cx.open),
            Carry::FullBackoff1 => self.carried.clear(),
            Carry::FullBackoff2 => self.carried.halve(self.parts.ack_timeout),
        }
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        if self.parts.carry.is_on() {
            self.carried.keep_unanswered(exchange, why, cx.open);
        }
    }

    fn view(&self) -> View {
        View { rto: Some(self.parts.ack_timeout), carried: self.carried.wait(), ..View::default() }
    }

    fn shortest_wait(&self) -> Span {
        self.parts.ack_timeout
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        if copy > 0 {
            return self.parts.backoff.next(previous);
        }
        let drawn = self.parts.dither.longest(self.parts.ack_timeout);
        if self.parts.carry.is_on() { longer(drawn, self.parts.backoff.cap) } else { drawn }
    }
}

impl Rfc7252 {
    /// The first wait and where it comes from.
    ///
    /// A persisted backoff is not dithered again. Full Backoff 2 takes the longer of the persisted backoff and a fresh draw;
    /// once the draw wins, nothing is carried any more.
    fn first_wait(&mut self, cx: Cx) -> (Span, Reason) {
        let draw = self.parts.dither.spread(self.parts.ack_timeout, cx.chance);
        match self.carried.wait() {
            Some(carried) if self.parts.carry == Carry::FullBackoff2 && carried <= draw => {
                self.carried.clear();
                (draw, Reason::Initial)
            }
            Some(carried) => (carried, Reason::Carried),
            None => (draw, Reason::Initial),
        }
    }

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        let parts = &mut self.parts;
        Some(match setting {
            Setting::AckTimeout => Place::Time(&mut parts.ack_timeout),
            Setting::RandomFactor => Place::Factor(&mut parts.dither.factor),
            Setting::BackoffFactor => Place::Factor(&mut parts.backoff.factor),
            Setting::MaxWait => Place::Time(&mut parts.backoff.cap),
            Setting::Carry => Place::Choice(&mut parts.carry),
            _ => return None,
        })
    }

    pub(crate) fn check(&self) -> Result<(), SettingConflict> {
        Setting::AckTimeout.not_above(self.parts.ack_timeout, Setting::MaxWait, self.parts.backoff.cap)
    }
}

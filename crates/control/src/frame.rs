//! The frame that Eclipse Californium puts around TCP's retransmission timers to use them with CoAP.
//!
//! A timer turns round-trip times into a timeout; all else is the same for all of them: the default before any
//! measurement, a blind factor for exchanges in parallel, doubling up to a cap, and one message in each timeout where
//! nobody acknowledges. Version 1 of Californium keeps a backed-off wait for the next exchange, version 4 does not.

use crate::{
    backoff::{Exponential, Factor, shorter},
    blind::Blind,
    carry::Carried,
    controller::{Admit, Class, Controller, Cx, End, Exchange, Reason, View, Wait},
    dither::Dither,
    evidence::Sample,
    layout::laid_out,
    pacing::Pacing,
    setting::{Place, Setting, SettingConflict, choices},
    time::Span,
};

/// From round-trip times to a timeout.
pub trait Timer: Copy {
    /// The timeout; nothing before the first sample.
    fn timeout(&self) -> Option<Span>;

    /// An answer came. The timer decides whether it is a sample.
    fn learn(&mut self, sample: Sample);

    /// SRTT and RTTVAR, where the timer keeps such averages and knows them.
    fn averages(&self) -> Option<(Span, Span)> {
        None
    }
}

/// Whether a backed-off wait outlives its exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Every exchange starts afresh (Californium 4).
    Nothing,
    /// The next exchange starts from the wait in force when the answer came, limited as an estimate is, until an answer
    /// comes without a retransmission (Californium 1 and 2).
    UntilClean,
}

laid_out!(Keep = Nothing | UntilClean);

choices! { Keep: Keep::Nothing, Keep::UntilClean; }

/// What the frame is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The timeout before any measurement.
    pub ack_timeout: Span,
    /// The longest base of a first wait, before dithering; [`Span::MAX`] for no limit.
    pub longest_estimate: Span,
    /// How waits grow.
    pub backoff: Exponential,
    /// How the first wait is spread.
    pub dither: Dither,
    /// What happens before any measurement.
    pub blind: Blind,
    /// Whether a backed-off wait outlives its exchange.
    pub keep: Keep,
}

laid_out!(Frame { ack_timeout, longest_estimate, backoff, dither, blind, keep });

impl Frame {
    /// Californium 1: estimates are read through 32 s, waits double up to 60 s and are kept until a clean answer, no
    /// dither, and the default is multiplied by the number of exchanges open.
    pub const CALIFORNIUM_1: Self = Self {
        ack_timeout: Span::from_secs(2),
        longest_estimate: Span::from_secs(32),
        backoff: Exponential { factor: Factor::TWO, cap: Span::from_secs(60) },
        dither: Dither::NONE,
        blind: Blind::PerOpen,
        keep: Keep::UntilClean,
    };
}

/// One peer under a timer in its frame. What does not depend on the timer lies first and where it always does, so that it is
/// compiled once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Framed<T> {
    around: Around,
    pub(crate) timer: T,
}

laid_out!(Framed<T> { around, timer });

/// All but the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Around {
    pacing: Pacing,
    carried: Carried,
    frame: Frame,
}

laid_out!(Around { pacing, carried, frame });

impl<T: Timer> Framed<T> {
    /// A peer about which nothing is known but what the timer knows.
    #[must_use]
    pub const fn new((frame, timer): (Frame, T)) -> Self {
        Self { around: Around { pacing: Pacing::UNUSED, carried: Carried::NOTHING, frame }, timer }
    }

    #[allow(dead_code, reason = "not without a timer")]
    pub(crate) const fn frame(&self) -> &Frame {
        &self.around.frame
    }

    #[allow(dead_code, reason = "not without a timer")]
    pub(crate) const fn frame_mut(&mut self) -> &mut Frame {
        &mut self.around.frame
    }

    fn rto(&self) -> Span {
        self.timer.timeout().unwrap_or(self.around.frame.ack_timeout)
    }
}

impl<T: Timer> Controller for Framed<T> {
    /// Holds back messages that nobody acknowledges.
    fn admit(&self, class: Class, _len: u16, cx: Cx) -> Admit {
        self.around.pacing.admit(class, cx)
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        let wait = self.around.first_wait(self.timer.timeout(), cx);
        exchange.begin(cx.now, wait.span);
        wait
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        let wait = self.around.frame.backoff.next(exchange.current());
        exchange.advance(wait);
        Wait::then_retransmit(wait, Reason::BackedOff)
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        self.timer.learn(sample);
        self.around.answered(exchange, sample.retransmissions(), cx.open);
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        if self.around.frame.keep == Keep::UntilClean {
            self.around.carried.keep_unanswered(exchange, why, cx.open);
        }
    }

    fn on_plain_send(&mut self, _len: u16, cx: Cx) {
        self.around.pacing.sent(self.rto(), cx.now);
    }

    fn view(&self) -> View {
        View {
            rto: Some(self.rto()),
            srtt: self.timer.averages().map(|(srtt, _)| srtt),
            rttvar: self.timer.averages().map(|(_, rttvar)| rttvar),
            carried: self.around.carried.wait(),
            ..View::default()
        }
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        let frame = self.frame();
        if copy > 0 {
            return frame.backoff.next(previous);
        }
        frame.dither.longest(frame.longest_estimate)
    }
}

impl Around {
    #[cfg_attr(target_os = "none", inline(never))]
    fn first_wait(&self, timeout: Option<Span>, cx: Cx) -> Wait {
        let (first, reason) = match (self.carried.wait(), timeout) {
            (Some(carried), _) => (shorter(carried, self.frame.longest_estimate), Reason::Carried),
            (None, Some(estimate)) => (self.frame.spread(estimate, cx), Reason::Initial),
            (None, None) => {
                let base = self.frame.blind.base(self.frame.ack_timeout, cx.open);
                (self.frame.spread(base, cx), Reason::Blind)
            }
        };
        Wait::then_retransmit(first, reason)
    }

    #[cfg_attr(target_os = "none", inline(never))]
    fn answered(&mut self, exchange: &Exchange, retransmissions: u8, open: u16) {
        match self.frame.keep {
            Keep::Nothing => {}
            Keep::UntilClean if retransmissions > 0 => self.carried.keep(exchange.current(), open),
            Keep::UntilClean => self.carried.clear(),
        }
    }
}

#[allow(dead_code, reason = "not without a timer")]
impl Frame {
    /// The parameters that every frame has.
    pub(crate) const SETTINGS: [Setting; 7] = [
        Setting::AckTimeout,
        Setting::RandomFactor,
        Setting::BackoffFactor,
        Setting::MaxWait,
        Setting::MaxEstimate,
        Setting::TimerCarry,
        Setting::Blind,
    ];

    fn spread(&self, base: Span, cx: Cx) -> Span {
        self.dither.spread(shorter(base, self.longest_estimate), cx.chance)
    }

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        Some(match setting {
            Setting::AckTimeout => Place::Time(&mut self.ack_timeout),
            Setting::RandomFactor => Place::Factor(&mut self.dither.factor),
            Setting::BackoffFactor => Place::Factor(&mut self.backoff.factor),
            Setting::MaxWait => Place::Time(&mut self.backoff.cap),
            Setting::MaxEstimate => Place::Time(&mut self.longest_estimate),
            Setting::TimerCarry => Place::Choice(&mut self.keep),
            Setting::Blind => Place::Choice(&mut self.blind),
            _ => return None,
        })
    }

    pub(crate) fn check(&self) -> Result<(), SettingConflict> {
        Setting::AckTimeout.not_above(self.ack_timeout, Setting::MaxEstimate, self.longest_estimate)?;
        Setting::AckTimeout.not_above(self.ack_timeout, Setting::MaxWait, self.backoff.cap)
    }
}

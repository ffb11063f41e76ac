//! What calm is made of, and its numbers. `docs/calm.md` says where each comes from and what it is worth.

use crate::{
    backoff::{Factor, longer, shorter},
    estimator::Share,
    layout::laid_out,
    least_wait::LEAST_WAIT,
    setting::{Place, Setting, choices},
    time::Span,
};

/// A rule that is left out, to see what it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Without {
    /// None is.
    Nothing,
    /// The pause while a queue stands.
    DelayPause,
    /// What jitter takes off that pause.
    Falls,
    /// The longer steps of the backoff under congestion.
    LongSteps,
    /// The short first step of the backoff without congestion.
    ShortSteps,
    /// Doubts: replies are believed whichever copy they name.
    Grades,
    /// That no first wait is below 1.1 of the latest sample.
    LastBound,
    /// That an answer to the last copy is awaited for longer than the wait after it.
    LastWait,
    /// That requests go one at a time while loss looks like congestion.
    Window,
}

laid_out!(Without = Nothing | DelayPause | Falls | LongSteps | ShortSteps | Grades | LastBound | LastWait | Window);

choices! {
    Without: Without::Nothing, Without::DelayPause, Without::Falls, Without::LongSteps,
        Without::ShortSteps, Without::Grades, Without::LastBound, Without::LastWait, Without::Window;
}

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The shortest first wait to a peer that was never measured; the longest is one and a half times that.
    pub ack_timeout: Span,
    /// Where waits stop growing; [`Span::MAX`] for no cap.
    pub max_wait: Span,
    /// From this wait on waits at most double; [`Span::MAX`] for never.
    pub patience: Span,
    /// No wait is shorter.
    pub least_wait: Span,
    /// A rule left out, if this was built with the feature `ablation`.
    pub without: Without,
}

laid_out!(Parts { ack_timeout, max_wait, patience, least_wait, without });

impl Parts {
    /// 2 s to 3 s as RFC 7252 §4.8 has it, and a cap of twice the shortest that RFC 8961 §4 (4) allows. From 4 s on a wait no more
    /// than doubles, so that a host that is gone is noticed about as soon as with the timer of RFC 7252; none is shorter than
    /// [`LEAST_WAIT`], as a server may take its time.
    pub const CALM: Self = Self {
        ack_timeout: Span::from_secs(2),
        max_wait: Span::from_secs(120),
        patience: Span::from_secs(4),
        least_wait: LEAST_WAIT,
        without: Without::Nothing,
    };

    /// The same without those two bounds.
    pub const UNLIMITED: Self = Self { patience: Span::MAX, least_wait: Span::ZERO, ..Self::CALM };

    pub(super) const SETTINGS: &[Setting] = &[
        Setting::AckTimeout,
        Setting::MaxWait,
        Setting::Patience,
        Setting::LeastWait,
        #[cfg(feature = "ablation")]
        Setting::Without,
    ];

    /// Whether this rule is left out. Firmware has no use for the question and is built without it.
    pub(super) const fn lacks(&self, rule: Without) -> bool {
        cfg!(feature = "ablation") && self.without as u8 == rule as u8
    }

    /// No first wait is longer.
    pub(super) const fn longest_first(&self) -> Span {
        longer(
            LONGEST_FIRST,
            longer(longer(self.max_wait, self.least_wait), Factor::ONE_AND_A_HALF.times(self.ack_timeout)),
        )
    }

    /// How long an answer to the last copy is awaited at least if nobody waits for its end: as the timer of RFC 7252 §4.2 does,
    /// which has doubled four times by then.
    pub(super) const fn last_wait(&self) -> Span {
        if self.lacks(Without::LastWait) { Span::ZERO } else { shorter(self.ack_timeout.times(16), self.max_wait) }
    }

    pub(super) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        Some(match setting {
            Setting::AckTimeout => Place::Time(&mut self.ack_timeout),
            Setting::MaxWait => Place::Time(&mut self.max_wait),
            Setting::Patience => Place::Time(&mut self.patience),
            Setting::LeastWait => Place::Time(&mut self.least_wait),
            #[cfg(feature = "ablation")]
            Setting::Without => Place::Choice(&mut self.without),
            _ => return None,
        })
    }
}

/// All copies, in the unit of the loss rate.
pub(super) const WHOLE: u16 = 1_000;
/// From this loss rate on loss may be congestion.
pub(super) const MANY_LOST: u16 = 350;
/// The loss rate of a peer of which nothing is known, as if so many copies had shown it.
pub(super) const LOST_AT_FIRST: u16 = 200;
pub(super) const SEEN_AT_FIRST: u8 = 4;
/// One copy moves the loss rate by a twelfth.
pub(super) const GAIN: u8 = 12;
/// With fewer samples a queue cannot be excluded.
pub(super) const UNMEASURED: u8 = 4;
/// So many expiries in a row, and waits grow slowly: the backoff has done what it can.
pub(super) const LATE: u8 = 3;
/// A step of the backoff under congestion, and the first and others without. The first one to a peer that was never measured is
/// that of RFC 7252 §4.2, one of the others.
pub(super) const LONG_STEP: Factor = Factor::from_thousandths(4_000);
pub(super) const FIRST_STEP: Factor = Factor::ONE_AND_A_HALF;
pub(super) const OTHER_STEP: Factor = Factor::TWO;
/// Long steps are spread by up to a quarter.
pub(super) const SPREAD: Factor = Factor::from_thousandths(1_250);
/// The timeout is at least this much above SRTT, and so many times the latest sample.
pub(super) const LEAST_MARGIN: Span = Span::from_millis(20);
pub(super) const LAST_BOUND: Factor = Factor::from_thousandths(1_100);
/// Round trips below it are no sign of a queue: the first wait of RFC 7252 would outlast them.
pub(super) const NEAR: Span = Span::from_secs(2);
/// With each sample the shortest round trip moves so far towards SRTT.
pub(super) const AGEING: Share = Share::SIXTY_FOURTH;
/// The longest pause.
pub(super) const LONGEST_PAUSE: Span = Span::from_secs(240);
/// EXCHANGE_LIFETIME of RFC 7252 §4.8.2.
pub(super) const LONGEST_FIRST: Span = Span::from_secs(247);
/// After so long a silence everything is forgotten.
pub(super) const FORGET: Span = Span::from_secs(600);
/// Messages that nobody acknowledges, to a peer that never answered (RFC 8085 §3.1.3).
pub(super) const BLIND_PLAIN: Span = Span::from_secs(3);

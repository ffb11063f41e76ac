//! Parameters of controllers by name, with legal ranges.
//!
//! Times are [`Span`]s and ratios whole thousandths, so that the core stays free of floats: code that reads a scenario
//! asks a setting for its [`kind`](Setting::kind) and converts the text.
//!
//! An algorithm lists its settings and says in one function, `place`, where it keeps each; reading and writing is the
//! same for all.

mod words;

use crate::{
    ageing::Ageing,
    backoff::{Basis, Factor},
    blind::Blind,
    carry::Carry,
    estimator::{Gains, Share},
    time::Span,
};

/// The word that stands for no limit.
const NONE: &str = "none";
/// The shortest length of time that a parameter may name.
const MILLISECOND: Span = Span::from_millis(1);
const TEN_MINUTES: Span = Span::from_secs(600);
/// RFC 8961 §4 (4): every expiry makes the next wait longer.
const GROWS: SettingKind = SettingKind::Ratio { low: 1_001, high: 10_000 };
const CAP: SettingKind = SettingKind::Time { low: MILLISECOND, high: Span::MAX, none: true };
const THRESHOLD: SettingKind = SettingKind::Time { low: Span::ZERO, high: Span::MAX, none: false };
const SHARE: SettingKind = SettingKind::Word(&["1", "1/2", "1/4", "1/8"]);

/// The settings of all algorithms: the variant, its number for ever, its name, and what it takes. Where two algorithms
/// give one name to different choices, there are two settings of that name.
macro_rules! settings {
    ($($(#[$doc:meta])* $setting:ident = $id:literal, $name:literal: $kind:expr;)*) => {
        /// A parameter that some controller has. The names are unique within one controller.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u16)]
        pub enum Setting {
            $(#[doc = concat!("`", $name, "`: ")] $(#[$doc])* $setting = $id,)*
        }

        impl Setting {
            /// Every setting of every controller.
            pub const ALL: &[Self] = &[$(Self::$setting),*];

            /// The name by which scenarios call it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$setting => $name,)* }
            }

            /// What it takes.
            #[must_use]
            pub const fn kind(self) -> SettingKind {
                match self { $(Self::$setting => $kind,)* }
            }

            /// What it takes, in numbers: the lowest and the highest microsecond, thousandth or count, or place of a
            /// word among the legal ones. The longest length stands for none where that is legal.
            #[must_use]
            pub const fn range(self) -> (u32, u32) {
                // Worked out beforehand, so that a program without use for words links none.
                match self { $(Self::$setting => const { $kind.range() },)* }
            }
        }
    };
}

settings! {
    /// the first wait before any measurement and before dithering (ACK_TIMEOUT, RFC 7252 §4.8).
    AckTimeout = 1, "ack-timeout": SettingKind::Time { low: MILLISECOND, high: TEN_MINUTES, none: false };
    /// a first wait `x` is spread over `[x, factor·x]` (ACK_RANDOM_FACTOR, RFC 7252 §4.8).
    RandomFactor = 2, "random-factor": SettingKind::Ratio { low: 1_000, high: 10_000 };
    /// where a backed-off wait stops growing.
    MaxWait = 3, "max-wait": CAP;
    /// whether a backed-off wait outlives its exchange, as in Full Backoff.
    Carry = 4, "carry": SettingKind::Word(&["none", "full-backoff-1", "full-backoff-2"]);
    /// what a wait is multiplied by when it runs out.
    BackoffFactor = 5, "backoff-factor": GROWS;
    /// the longest base of a first wait, before dithering.
    MaxEstimate = 6, "max-estimate": CAP;
    /// the gains of the estimators.
    Gains = 7, "gains": SettingKind::Word(&["rfc6298", "swapped"]);
    /// how many variations the estimator of clean exchanges adds.
    StrongK = 8, "strong-k": SettingKind::Count { high: 16 };
    /// that estimator's share in the timeout.
    StrongShare = 9, "strong-share": SHARE;
    /// how many variations the estimator of exchanges with retransmissions adds.
    WeakK = 10, "weak-k": SettingKind::Count { high: 16 };
    /// that estimator's share in the timeout.
    WeakShare = 11, "weak-share": SHARE;
    /// an exchange with more retransmissions is no sample; zero leaves out every exchange that has any.
    WeakRetransmissions = 12, "weak-retransmissions": SettingKind::Count { high: u8::MAX };
    /// what the variable backoff factor is chosen from.
    Vbf = 13, "vbf": SettingKind::Word(&["stepwise", "per-exchange", "by-estimate", "last-timer"]);
    /// the factor of short waits.
    VbfLow = 14, "vbf-low": GROWS;
    /// the factor between the thresholds.
    VbfMiddle = 15, "vbf-middle": GROWS;
    /// the factor of long waits.
    VbfHigh = 16, "vbf-high": GROWS;
    /// below this length a wait is short.
    VbfShort = 17, "vbf-short": THRESHOLD;
    /// above this length a wait is long.
    VbfLong = 18, "vbf-long": THRESHOLD;
    /// the base of the first wait to a peer that was never measured.
    Blind = 19, "blind": SettingKind::Word(&["per-open", "doubling", "plain"]);
    /// what silence does to the timeout.
    Ageing = 20, "ageing": SettingKind::Word(&[
        "none", "draft-03", "cocoa+", "cocoa-00", "cocoa-00-doubling", "cocoa-00-eighth",
    ]);
    /// what an answer after retransmissions teaches.
    LearnsFrom = 21, "learns-from": SettingKind::Word(&["copies", "echo", "number", "flag"]);
    /// how copies are distinguished.
    FasorNaming = 22, "naming": SettingKind::Word(&["none", "token", "count"]);
    /// how the first sample of FASOR becomes a timeout: by its draft's text or pseudo-code.
    FasorInit = 23, "fasor-init": SettingKind::Word(&["text", "pseudocode"]);
    /// whether the fast timeout of FASOR is spread: by its draft's text or not at all, as in its pseudo-code.
    FasorDither = 24, "dither": SettingKind::Word(&["text", "none"]);
    /// what the time of an ambiguous exchange is multiplied by to make the slow timeout.
    SlowFactor = 25, "slow-factor": SettingKind::Ratio { low: 1_000, high: 10_000 };
    /// the longest slow timeout.
    MaxSlow = 26, "max-slow": CAP;
    /// whether an exchange without an answer slows down as an ambiguous one does.
    GiveUp = 27, "give-up": SettingKind::Word(&["step-down", "keep"]);
    /// whether a reply that names a copy before the last is believed.
    Echo = 28, "echo": SettingKind::Word(&["trusted", "exact-only"]);
    /// whether a backed-off wait outlives its exchange, as in Eclipse Californium.
    TimerCarry = 29, "carry": SettingKind::Word(&["none", "until-clean"]);
    /// in which order the timer of Linux takes its steps.
    LinuxOrder = 30, "order": SettingKind::Word(&["kernel", "californium"]);
    /// no window counts for less variation than this.
    LeastVariation = 31, "least-variation": SettingKind::Time { low: Span::ZERO, high: TEN_MINUTES, none: false };
    /// which form of Peak-Hopper is followed.
    PeakOrder = 32, "order": SettingKind::Word(&["californium", "original"]);
    /// what stands for the sample before the first.
    Previous = 33, "previous": SettingKind::Word(&["zero", "first-sample"]);
    /// the bonus after the first sample.
    FirstBonus = 34, "first-bonus": SettingKind::Ratio { low: 0, high: 10_000 };
    /// a loss leaves α/(1+α) of the rate.
    Alpha = 35, "alpha": SettingKind::Ratio { low: 1, high: 10_000 };
    /// a backoff of the rate that lasts longer begins anew.
    RestartAfter = 36, "restart-after": SettingKind::Time { low: MILLISECOND, high: TEN_MINUTES, none: false };
    /// what marks a loss.
    LossSignal = 37, "loss-signal": SettingKind::Word(&["exhausted", "first-timeout"]);
    /// how fast the start-up is.
    StartRate = 38, "start-rate": SettingKind::Word(&["4-per-rtt", "1-per-rtt", "1-per-second"]);
    /// where the first round-trip time comes from.
    FirstRtt = 39, "first-rtt": SettingKind::Word(&["probe", "default"]);
    /// which round-trip time counts.
    Smoothing = 40, "smoothing": SettingKind::Word(&["1/8", "last"]);
    /// what becomes of a message of the start-up that is not answered within it.
    Leftover = 41, "leftover": SettingKind::Word(&["retransmitted", "dropped"]);
    /// what bounds the messages under way beside NSTART.
    RateWindow = 42, "window": SettingKind::Word(&["none", "alpha-t-lambda"]);
    /// over how long the answers of the start-up are counted.
    StartCount = 43, "start-count": SettingKind::Word(&["2-rtts", "1-rtt"]);
    /// when the rate grows by one message per round-trip time.
    Increase = 44, "increase": SettingKind::Word(&["per-rtt", "per-ack"]);
    /// the lowest rate.
    Slowest = 45, "slowest": SettingKind::Word(&["1-per-64-s", "1-per-timeout"]);
    /// whether messages leave for the first time before a loss is answered.
    InBackoff = 46, "in-backoff": SettingKind::Word(&["held", "paced"]);
    /// what the first wait of a message is drawn from.
    RateTimer = 47, "timer": SettingKind::Word(&["fixed", "rfc6298"]);
    /// which answer ends the backoff of the rate.
    EndsBackoff = 48, "ends-backoff": SettingKind::Word(&["any-answer", "clean-answer"]);
    /// from this wait on waits at most double.
    Patience = 49, "patience": CAP;
    /// a rule that is left out, to see what it is worth.
    Without = 50, "without": SettingKind::Word(&[
        "nothing", "delay-pause", "falls", "long-steps", "short-steps", "grades", "last-bound", "last-wait", "window",
    ]);
    /// messages of the first round-trip time, and of those after a silence.
    InitialWindow = 51, "initial-window": SettingKind::Count { high: 10 };
    /// no wait is shorter.
    LeastWait = 52, "least-wait": SettingKind::Time { low: Span::ZERO, high: TEN_MINUTES, none: false };
}

/// What a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingKind {
    /// A length of time from `low` to `high`, both included; if `none` is true also the word `none`.
    Time {
        /// The shortest legal length.
        low: Span,
        /// The longest legal length.
        high: Span,
        /// Whether the word `none` is legal too.
        none: bool,
    },
    /// A ratio in thousandths, from `low` to `high`, both included.
    Ratio {
        /// The lowest legal ratio in thousandths.
        low: u16,
        /// The highest legal ratio in thousandths.
        high: u16,
    },
    /// A whole number from 0 to `high`, both included.
    Count {
        /// The highest legal number.
        high: u8,
    },
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A value for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingValue<'a> {
    /// A length of time.
    Time(Span),
    /// A ratio in thousandths: 1500 for 1.5.
    Ratio(u32),
    /// A whole number.
    Count(u32),
    /// A word.
    Word(&'a str),
}

/// Why a parameter was not set. The message does not repeat the name and the value that the caller gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// The controller has no parameter of this name.
    Unknown {
        /// Those it has.
        legal: &'static [Setting],
    },
    /// The value is of another kind than the parameter.
    WrongKind(Setting),
    /// The value lies outside the legal range.
    OutOfRange(Setting),
    /// The word is none of the legal ones.
    UnknownWord(Setting),
}

/// Two parameters that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingConflict {
    /// `low` lies above `high`.
    Reversed {
        /// The one that must not be the larger.
        low: Setting,
        /// The one that must not be the smaller.
        high: Setting,
    },
    /// As it is set, `setting` means nothing unless `other` is one of `words`.
    Needs {
        /// The one without a meaning.
        setting: Setting,
        /// The one that takes its meaning away.
        other: Setting,
        /// What the other would have to be.
        words: &'static [&'static str],
    },
}

impl Setting {
    /// Its number, for callers without strings. It never changes, and no other setting ever gets it.
    #[must_use]
    pub const fn id(self) -> u16 {
        self as u16
    }

    /// That this length is not above that of another setting.
    #[allow(dead_code, reason = "not if no algorithm is compiled in")]
    pub(crate) fn not_above(self, length: Span, other: Self, bound: Span) -> Result<(), SettingConflict> {
        if length <= bound { Ok(()) } else { Err(SettingConflict::Reversed { low: self, high: other }) }
    }

    /// The number that stands for this value; of a kind that the setting takes, but not yet held against its range.
    pub(crate) fn number_of(self, value: SettingValue<'_>) -> Result<u32, SettingError> {
        match (self.kind(), value) {
            (SettingKind::Time { none: true, .. }, SettingValue::Word(NONE)) => Ok(Span::MAX.as_micros()),
            (SettingKind::Time { .. }, SettingValue::Time(span)) => Ok(span.as_micros()),
            (SettingKind::Ratio { .. }, SettingValue::Ratio(number))
            | (SettingKind::Count { .. }, SettingValue::Count(number)) => Ok(number),
            (SettingKind::Word(words), SettingValue::Word(word)) => {
                let place = words.iter().position(|legal| *legal == word);
                place.and_then(|place| u32::try_from(place).ok()).ok_or(SettingError::UnknownWord(self))
            }
            _ => Err(SettingError::WrongKind(self)),
        }
    }

    /// The value that this number stands for.
    pub(crate) fn value_of(self, number: u32) -> Option<SettingValue<'static>> {
        Some(match self.kind() {
            SettingKind::Time { none: true, .. } if number == Span::MAX.as_micros() => SettingValue::Word(NONE),
            SettingKind::Time { .. } => SettingValue::Time(Span::from_micros(number)),
            SettingKind::Ratio { .. } => SettingValue::Ratio(number),
            SettingKind::Count { .. } => SettingValue::Count(number),
            SettingKind::Word(words) => SettingValue::Word(words.get(number as usize).copied()?),
        })
    }

    /// The setting with this number.
    #[must_use]
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|setting| setting.id() == id)
    }
}

impl SettingKind {
    /// In numbers, as [`Setting::range`] has them.
    const fn range(self) -> (u32, u32) {
        match self {
            Self::Time { low, high, .. } => (low.as_micros(), high.as_micros()),
            Self::Ratio { low, high } => (low as u32, high as u32),
            Self::Count { high } => (0, high as u32),
            Self::Word(words) => (0, words.len().saturating_sub(1) as u32),
        }
    }
}

/// Where an algorithm keeps a parameter.
#[allow(dead_code, reason = "which kinds there are depends on the algorithms compiled in")]
pub(crate) enum Place<'a> {
    Time(&'a mut Span),
    Factor(&'a mut Factor),
    Thousandths(&'a mut u16),
    Count(&'a mut u8),
    Choice(&'a mut dyn Choice),
}

/// A part that is one of a few. They stand in the order of the words of its setting.
pub(crate) trait Choice {
    fn number(&self) -> Option<usize>;
    fn choose(&mut self, number: usize);
}

/// Makes choices of these types.
macro_rules! choices {
    ($($choice:ty: $($one:expr),+;)+) => {
        $(impl $crate::setting::Choice for $choice {
            fn number(&self) -> Option<usize> {
                const ALL: &[$choice] = &[$($one),+];
                ALL.iter().position(|one| one == self)
            }

            fn choose(&mut self, number: usize) {
                const ALL: &[$choice] = &[$($one),+];
                if let Some(one) = ALL.get(number) {
                    *self = *one;
                }
            }
        })+
    };
}
pub(crate) use choices;

choices! {
    Ageing: Ageing::None, Ageing::Draft03, Ageing::CocoaPlus, Ageing::Cocoa00, Ageing::Cocoa00Doubling,
        Ageing::Cocoa00Eighth;
    Basis: Basis::EachWait, Basis::FirstWait, Basis::Estimate, Basis::LastTimer;
    Blind: Blind::PerOpen, Blind::Doubling, Blind::Plain;
    Carry: Carry::None, Carry::FullBackoff1, Carry::FullBackoff2;
    Gains: Gains::RFC6298, Gains::SWAPPED;
    Share: Share::WHOLE, Share::HALF, Share::QUARTER, Share::EIGHTH;
}

impl Place<'_> {
    /// The parameter as a number; nothing for a part that no word names.
    pub(crate) fn get(self) -> Option<u32> {
        Some(match self {
            Self::Time(span) => span.as_micros(),
            Self::Factor(factor) => u32::from(factor.as_thousandths()),
            Self::Thousandths(ratio) => u32::from(*ratio),
            Self::Count(count) => u32::from(*count),
            Self::Choice(choice) => return choice.number().and_then(|number| u32::try_from(number).ok()),
        })
    }

    /// Sets the parameter to a number of its legal range.
    pub(crate) fn put(self, number: u32) {
        match self {
            Self::Time(place) => *place = Span::from_micros(number),
            Self::Factor(place) => *place = Factor::from_thousandths(number as u16),
            Self::Thousandths(place) => *place = number as u16,
            Self::Count(place) => *place = number as u8,
            Self::Choice(place) => place.choose(number as usize),
        }
    }
}

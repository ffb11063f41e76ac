//! Parameters of controllers by name, with legal ranges.
//!
//! Times are [`Span`]s and ratios whole thousandths, so that the core stays free of floats: whoever reads a scenario
//! asks a setting for its [`kind`](Setting::kind) and converts the text.

use crate::{backoff::Factor, carry::Carry, time::Span};
use core::{error, fmt};

/// A parameter that some controller has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// `ack-timeout`: the first wait before any measurement and before dithering (ACK_TIMEOUT, RFC 7252 §4.8).
    AckTimeout,
    /// `random-factor`: a first wait `x` is spread over `[x, factor·x]` (ACK_RANDOM_FACTOR, RFC 7252 §4.8).
    RandomFactor,
    /// `max-wait`: where a backed-off wait stops growing.
    MaxWait,
    /// `carry`: whether a backed-off wait outlives its exchange.
    Carry,
    /// `backoff-factor`: what a wait is multiplied by when it runs out.
    BackoffFactor,
    /// `max-estimate`: the longest base of a first wait, before dithering.
    MaxEstimate,
    /// `gains`: the gains of the estimators.
    Gains,
    /// `strong-k`: how many variations the estimator of clean exchanges adds.
    StrongK,
    /// `strong-share`: that estimator's share in the timeout.
    StrongShare,
    /// `weak-k`: how many variations the estimator of exchanges with retransmissions adds.
    WeakK,
    /// `weak-share`: that estimator's share in the timeout.
    WeakShare,
    /// `weak-retransmissions`: an exchange with more retransmissions is no sample; zero leaves the weak estimator out.
    WeakRetransmissions,
    /// `vbf`: what the variable backoff factor is chosen from.
    Vbf,
    /// `vbf-low`: the factor of short waits.
    VbfLow,
    /// `vbf-middle`: the factor between the thresholds.
    VbfMiddle,
    /// `vbf-high`: the factor of long waits.
    VbfHigh,
    /// `vbf-short`: below this length a wait is short.
    VbfShort,
    /// `vbf-long`: above this length a wait is long.
    VbfLong,
    /// `blind`: the base of the first wait to a peer that was never measured.
    Blind,
    /// `ageing`: what silence does to the timeout.
    Ageing,
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

/// The shortest length of time that a parameter may name.
const MILLISECOND: Span = Span::from_millis(1);
const TEN_MINUTES: Span = Span::from_secs(600);

impl Setting {
    /// Every setting of every controller.
    pub const ALL: &[Self] = &[
        Self::AckTimeout,
        Self::RandomFactor,
        Self::MaxWait,
        Self::Carry,
        Self::BackoffFactor,
        Self::MaxEstimate,
        Self::Gains,
        Self::StrongK,
        Self::StrongShare,
        Self::WeakK,
        Self::WeakShare,
        Self::WeakRetransmissions,
        Self::Vbf,
        Self::VbfLow,
        Self::VbfMiddle,
        Self::VbfHigh,
        Self::VbfShort,
        Self::VbfLong,
        Self::Blind,
        Self::Ageing,
    ];

    /// The name by which scenarios call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AckTimeout => "ack-timeout",
            Self::RandomFactor => "random-factor",
            Self::MaxWait => "max-wait",
            Self::Carry => "carry",
            Self::BackoffFactor => "backoff-factor",
            Self::MaxEstimate => "max-estimate",
            Self::Gains => "gains",
            Self::StrongK => "strong-k",
            Self::StrongShare => "strong-share",
            Self::WeakK => "weak-k",
            Self::WeakShare => "weak-share",
            Self::WeakRetransmissions => "weak-retransmissions",
            Self::Vbf => "vbf",
            Self::VbfLow => "vbf-low",
            Self::VbfMiddle => "vbf-middle",
            Self::VbfHigh => "vbf-high",
            Self::VbfShort => "vbf-short",
            Self::VbfLong => "vbf-long",
            Self::Blind => "blind",
            Self::Ageing => "ageing",
        }
    }

    /// The setting with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|setting| setting.name() == name)
    }

    /// What it takes.
    #[must_use]
    pub const fn kind(self) -> SettingKind {
        match self {
            Self::AckTimeout => SettingKind::Time { low: MILLISECOND, high: TEN_MINUTES, none: false },
            Self::MaxWait | Self::MaxEstimate => SettingKind::Time { low: MILLISECOND, high: Span::MAX, none: true },
            Self::VbfShort | Self::VbfLong => SettingKind::Time { low: Span::ZERO, high: Span::MAX, none: false },
            Self::RandomFactor => SettingKind::Ratio { low: 1_000, high: 10_000 },
            // RFC 8961 §4 (4): every expiry makes the next wait longer.
            Self::BackoffFactor | Self::VbfLow | Self::VbfMiddle | Self::VbfHigh => {
                SettingKind::Ratio { low: 1_001, high: 10_000 }
            }
            Self::StrongK | Self::WeakK => SettingKind::Count { high: 16 },
            Self::WeakRetransmissions => SettingKind::Count { high: u8::MAX },
            Self::Carry => SettingKind::Word(&["none", "full-backoff-1", "full-backoff-2"]),
            Self::Gains => SettingKind::Word(&["rfc6298", "swapped"]),
            Self::StrongShare | Self::WeakShare => SettingKind::Word(&["1", "1/2", "1/4", "1/8"]),
            Self::Vbf => SettingKind::Word(&["stepwise", "per-exchange", "by-estimate"]),
            Self::Blind => SettingKind::Word(&["per-open", "doubling", "plain"]),
            Self::Ageing => SettingKind::Word(&["none", "draft-03", "cocoa+"]),
        }
    }

    /// The value as a length of time; `none` is [`Span::MAX`].
    pub(crate) fn time(self, value: SettingValue<'_>) -> Result<Span, SettingError> {
        match (self.kind(), value) {
            (SettingKind::Time { none: true, .. }, SettingValue::Word("none")) => Ok(Span::MAX),
            (SettingKind::Time { low, high, .. }, SettingValue::Time(span)) => {
                if low <= span && span <= high {
                    Ok(span)
                } else {
                    Err(SettingError::OutOfRange(self))
                }
            }
            _ => Err(SettingError::WrongKind(self)),
        }
    }

    /// The value as a factor.
    pub(crate) fn factor(self, value: SettingValue<'_>) -> Result<Factor, SettingError> {
        match (self.kind(), value) {
            (SettingKind::Ratio { low, high }, SettingValue::Ratio(thousandths)) => u16::try_from(thousandths)
                .ok()
                .filter(|ratio| (low..=high).contains(ratio))
                .map(Factor::from_thousandths)
                .ok_or(SettingError::OutOfRange(self)),
            _ => Err(SettingError::WrongKind(self)),
        }
    }

    /// The value as a small whole number.
    #[cfg(feature = "cocoa")]
    pub(crate) fn count(self, value: SettingValue<'_>) -> Result<u8, SettingError> {
        match (self.kind(), value) {
            (SettingKind::Count { high }, SettingValue::Count(count)) => {
                u8::try_from(count).ok().filter(|count| *count <= high).ok_or(SettingError::OutOfRange(self))
            }
            _ => Err(SettingError::WrongKind(self)),
        }
    }

    /// The choice that stands where the value stands among the legal words.
    pub(crate) fn choice<T: Copy, const N: usize>(
        self,
        value: SettingValue<'_>,
        choices: [T; N],
    ) -> Result<T, SettingError> {
        match (self.kind(), value) {
            (SettingKind::Word(words), SettingValue::Word(word)) => words
                .iter()
                .position(|legal| *legal == word)
                .and_then(|place| choices.get(place).copied())
                .ok_or(SettingError::UnknownWord(self)),
            _ => Err(SettingError::WrongKind(self)),
        }
    }

    /// The value as a rule of carry-over.
    pub(crate) fn carry(self, value: SettingValue<'_>) -> Result<Carry, SettingError> {
        self.choice(value, [Carry::None, Carry::FullBackoff1, Carry::FullBackoff2])
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the setting takes, in words that fit behind "takes".
impl fmt::Display for SettingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time { low, high, none } => {
                write!(f, "a length of time from {low} to {high}{}", if *none { ", or none" } else { "" })
            }
            Self::Ratio { low, high } => {
                f.write_str("a ratio from ")?;
                write_thousandths(f, *low)?;
                f.write_str(" to ")?;
                write_thousandths(f, *high)
            }
            Self::Count { high } => write!(f, "a whole number from 0 to {high}"),
            Self::Word(words) => {
                f.write_str("one of ")?;
                write_list(f, words.iter())
            }
        }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { legal } => {
                f.write_str("no such setting here; there are ")?;
                write_list(f, legal.iter())
            }
            Self::WrongKind(setting) => write!(f, "{setting} takes {}", setting.kind()),
            Self::OutOfRange(setting) => write!(f, "out of range: {setting} takes {}", setting.kind()),
            Self::UnknownWord(setting) => write!(f, "unknown word: {setting} takes {}", setting.kind()),
        }
    }
}

impl error::Error for SettingError {}

fn write_thousandths(f: &mut fmt::Formatter<'_>, thousandths: u16) -> fmt::Result {
    match (thousandths / 1_000, thousandths % 1_000) {
        (whole, 0) => write!(f, "{whole}"),
        (whole, rest) => write!(f, "{whole}.{rest:03}"),
    }
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = T>) -> fmt::Result {
    for (i, item) in items.enumerate() {
        write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
    }
    Ok(())
}

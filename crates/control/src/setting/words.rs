//! What is said of settings to people.

use super::{Setting, SettingConflict, SettingError, SettingKind, SettingValue};
use core::{error, fmt};

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
                write_thousandths(f, u32::from(*low))?;
                f.write_str(" to ")?;
                write_thousandths(f, u32::from(*high))
            }
            Self::Count { high } => write!(f, "a whole number from 0 to {high}"),
            Self::Word(words) => {
                f.write_str("one of ")?;
                write_list(f, ", ", words.iter())
            }
        }
    }
}

/// As a scenario writes it: `60 s`, `1.5`, `4`, `exact-only`.
impl fmt::Display for SettingValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Time(span) => span.fmt(f),
            Self::Ratio(thousandths) => write_thousandths(f, thousandths),
            Self::Count(count) => count.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { legal } => {
                f.write_str("no such setting here; there are ")?;
                write_list(f, ", ", legal.iter())
            }
            Self::WrongKind(setting) => write!(f, "{setting} takes {}", setting.kind()),
            Self::OutOfRange(setting) => write!(f, "out of range: {setting} takes {}", setting.kind()),
            Self::UnknownWord(setting) => write!(f, "unknown word: {setting} takes {}", setting.kind()),
        }
    }
}

impl fmt::Display for SettingConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reversed { low, high } => write!(f, "{low} must not be above {high}"),
            Self::Needs { setting, other, words } => {
                write!(f, "{setting} as it is set needs {other} = ")?;
                write_list(f, " or ", words.iter())
            }
        }
    }
}

impl error::Error for SettingError {}
impl error::Error for SettingConflict {}

/// With as many decimals as it needs.
fn write_thousandths(f: &mut fmt::Formatter<'_>, thousandths: u32) -> fmt::Result {
    match (thousandths / 1_000, thousandths % 1_000) {
        (whole, 0) => write!(f, "{whole}"),
        (whole, rest) if rest % 100 == 0 => write!(f, "{whole}.{}", rest / 100),
        (whole, rest) if rest % 10 == 0 => write!(f, "{whole}.{:02}", rest / 10),
        (whole, rest) => write!(f, "{whole}.{rest:03}"),
    }
}

fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    between: &str,
    items: impl Iterator<Item = T>,
) -> fmt::Result {
    for (i, item) in items.enumerate() {
        write!(f, "{}{item}", if i == 0 { "" } else { between })?;
    }
    Ok(())
}

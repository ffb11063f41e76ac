//! How often something happens.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::scenario::Duration;

/// So often a second: `2 /min`, `0.5 /s`, `11.2 /d`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Frequency(pub f64);

impl Frequency {
    /// The time from one to the next: `2 /min` is 30 s.
    ///
    /// # Errors
    ///
    /// What is wrong with a rate of zero, or with one that leaves less than a microsecond.
    pub(super) fn interval(self) -> Result<Duration, String> {
        let between = 1e6 / self.0;
        // Beyond a million years it is no rate any more.
        if (0.9995..3e19).contains(&between) {
            Ok(Duration(between.round() as u64))
        } else {
            Err(format!(
                "`{self}` is no rate between one in a million years and 1000000 /s: write such as `0.5 /s` or `6 /h`"
            ))
        }
    }
}

impl TryFrom<String> for Frequency {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let complaint =
            || format!("`{text}` is no rate: write how often in a time, such as `0.5 /s`, `6 /h` or `2 /d`");
        let (number, unit) = text.split_once('/').ok_or_else(complaint)?;
        let number: f64 = number.trim().parse().map_err(|_| complaint())?;
        let unit: Duration = format!("1 {}", unit.trim()).parse().map_err(|_| complaint())?;
        let often = number / (unit.0 as f64 / 1e6);
        // Not a number is none either.
        if (0.0..=1e6).contains(&often) { Ok(Self(often)) } else { Err(complaint()) }
    }
}

impl From<Frequency> for String {
    fn from(frequency: Frequency) -> Self {
        frequency.to_string()
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} /s", self.0)
    }
}

//! Quantities as people write them: a number and a unit, `"30 kbit/s"`, `"215 ms"`, `"2500 B"`.

use std::{fmt, str::FromStr};

use millpond_control::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A unit's spelling and how many base units it holds.
pub(crate) type Unit = (&'static str, u64);

pub(crate) const RATE_UNITS: &[Unit] =
    &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];
pub(crate) const TIME_UNITS: &[Unit] = &[
    ("us", 1),
    ("µs", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("min", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];
const SIZE_UNITS: &[Unit] =
    &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GB", 1_000_000_000)];
const LENGTH_UNITS: &[Unit] = &[("mm", 1), ("m", 1_000), ("km", 1_000_000)];
const PACKET_UNITS: &[Unit] = &[("packets", 1), ("packet", 1)];

/// A link's rate in bits per second, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRate(pub u64);

/// A length of time in microseconds, as long as one likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Duration(pub u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Size(pub u64);

/// A distance in millimetres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Length(pub u64);

/// How much a queue holds, the packet in service included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Packets, whatever their size.
    Packets(u64),
}

impl Duration {
    /// The length as a [`Span`], saturating at 71 minutes.
    #[must_use]
    pub fn span(self) -> Span {
        Span::from_micros(u32::try_from(self.0).unwrap_or(u32::MAX))
    }
}

/// Splits `"30 kbit/s"` and converts it to base units, refusing what is not a whole number of them.
fn parse(text: &str, what: &str, example: &str, kinds: &[&[Unit]]) -> Result<(u64, &'static str), String> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    if number.is_empty() {
        return Err(format!("`{text}` is not {what}: write a number and a unit, such as `{example}`"));
    }
    let known = || kinds.iter().flat_map(|units| units.iter());
    let Some(&(name, factor)) = known().find(|(name, _)| *name == unit) else {
        let names: Vec<_> = known().map(|(name, _)| *name).collect();
        let told = if unit.is_empty() { "no unit".to_owned() } else { format!("unknown unit `{unit}`") };
        return Err(format!("{told} in `{text}`: {what} takes {}, such as `{example}`", names.join(", ")));
    };
    let number = number.replace('_', "");
    let (whole, decimals) = number.split_once('.').unwrap_or((&number, ""));
    let too_large = || format!("`{text}` is too large for {what}");
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
    let mut value = whole.checked_mul(factor).ok_or_else(too_large)?;
    let mut step = factor;
    for digit in decimals.chars() {
        let digit = digit.to_digit(10).ok_or_else(|| format!("`{text}` is not a number"))?;
        if digit != 0 && step % 10 != 0 {
            return Err(format!("`{text}` is finer than {what} can be told"));
        }
        step /= 10;
        value = value.checked_add(u64::from(digit) * step).ok_or_else(too_large)?;
    }
    Ok((value, name))
}

/// The same of what was measured: a number alone has the unit given, and digits finer than a base unit are cut off.
pub(crate) fn measured(text: &str, unit: &str, what: &str, example: &str, units: &[Unit]) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, own) = text.split_at(digits);
    let unit = if own.trim().is_empty() { unit } else { own.trim() };
    let factor = units.iter().find(|(name, _)| *name == unit).map_or(1, |(_, factor)| *factor);
    let told = number.find('.').map_or(number.len(), |point| point + 1 + factor.ilog10() as usize);
    let number = number.get(..told).unwrap_or(number);
    parse(&format!("{number} {unit}"), what, example, &[units]).map(|(value, _)| value)
}

/// Writes `value` in the largest unit that divides it.
fn write_in(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let mut best = units.first().copied().unwrap_or(("", 1));
    for &(name, factor) in units {
        if value != 0 && value.is_multiple_of(factor) && factor > best.1 {
            best = (name, factor);
        }
    }
    write!(f, "{} {}", value / best.1, best.0)
}

impl FromStr for BitRate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match parse(text, "a rate", "30 kbit/s", &[RATE_UNITS])?.0 {
            0 => Err("a rate of 0 carries nothing: write at least `1 bit/s`".to_owned()),
            rate => Ok(Self(rate)),
        }
    }
}

impl FromStr for Duration {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(parse(text, "a time", "215 ms", &[TIME_UNITS])?.0))
    }
}

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(parse(text, "a size", "60 B", &[SIZE_UNITS])?.0))
    }
}

impl FromStr for Length {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(parse(text, "a distance", "10 m", &[LENGTH_UNITS])?.0))
    }
}

impl FromStr for QueueLimit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (value, unit) = parse(text, "a queue limit", "2500 B", &[SIZE_UNITS, PACKET_UNITS])?;
        if value == 0 {
            return Err("a queue of 0 holds not even the packet in service".to_owned());
        }
        Ok(if unit.starts_with("packet") { Self::Packets(value) } else { Self::Bytes(value) })
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(f, self.0, RATE_UNITS)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0 s");
        }
        write_in(f, self.0, TIME_UNITS)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0 m");
        }
        write_in(f, self.0, LENGTH_UNITS)
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes} B"),
            Self::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}

/// What a number without quotes is answered with: the texts that it may have meant.
fn unit_missing<T: FromStr<Err = String> + fmt::Display>(number: impl fmt::Display, units: &[&str]) -> String {
    let number = number.to_string();
    let meant = units.iter().filter_map(|unit| format!("{number} {unit}").parse::<T>().ok());
    let meant: Vec<_> = meant.map(|meant| format!("\"{meant}\"")).collect();
    match number.parse::<T>() {
        Err(problem) if meant.is_empty() => problem,
        _ => format!("{number} has no unit: write {}", meant.join(" or ")),
    }
}

/// Lets a type that is written as text be read and written by serde; beside it the units that a bare number may mean.
macro_rules! as_text {
    ($($type:ty: $units:expr),* $(,)?) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a number with its unit, in quotes")
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$type, E> {
                        Err(E::custom(unit_missing::<$type>(number, &$units)))
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$type, E> {
                        Err(E::custom(unit_missing::<$type>(number, &$units)))
                    }
                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$type, E> {
                        Err(E::custom(unit_missing::<$type>(number, &$units)))
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}
as_text!(BitRate: ["bit/s", "kbit/s"], Duration: ["ms", "s"], Size: ["B", "kB"], Length: ["m"], QueueLimit: ["B", "packets"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_read() {
        assert_eq!("30 kbit/s".parse(), Ok(BitRate(30_000)));
        assert_eq!("0.25Mbit/s".parse(), Ok(BitRate(250_000)));
        assert_eq!("215 ms".parse(), Ok(Duration(215_000)));
        assert_eq!("0.65 ms".parse(), Ok(Duration(650)));
        assert_eq!("7.9 m".parse(), Ok(Length(7_900)));
        assert_eq!(Length(20_000).to_string(), "20 m");
        assert_eq!("2500 B".parse(), Ok(QueueLimit::Bytes(2_500)));
        assert_eq!("1_410 kB".parse(), Ok(QueueLimit::Bytes(1_410_000)));
        assert_eq!("8 packets".parse(), Ok(QueueLimit::Packets(8)));
    }

    #[test]
    fn wrong_units_and_numbers_are_refused_with_the_fix() {
        let unit = "30 kbps".parse::<BitRate>().unwrap_err();
        assert!(unit.contains("`kbps`") && unit.contains("kbit/s"), "{unit}");
        assert!("0 kbit/s".parse::<BitRate>().unwrap_err().contains("carries nothing"));
        assert!("30".parse::<BitRate>().unwrap_err().contains("no unit"));
        assert!("fast".parse::<BitRate>().unwrap_err().contains("such as `30 kbit/s`"));
        assert!("-3 ms".parse::<Duration>().is_err());
        assert!("0.5 us".parse::<Duration>().unwrap_err().contains("finer"));
        assert!("99999999999 d".parse::<Duration>().unwrap_err().contains("too large"));
        assert!("1.2.3 ms".parse::<Duration>().is_err());
        assert!("0 B".parse::<QueueLimit>().is_err());
        assert!("2500 bytes".parse::<QueueLimit>().unwrap_err().contains("packets"));
    }

    #[test]
    fn a_number_without_a_unit_is_answered_with_what_it_may_have_meant() {
        assert_eq!(
            unit_missing::<BitRate>(30_000, &["bit/s", "kbit/s"]),
            "30000 has no unit: write \"30 kbit/s\" or \"30 Mbit/s\""
        );
        assert_eq!(unit_missing::<Duration>(0.4, &["ms", "s"]), "0.4 has no unit: write \"400 us\" or \"400 ms\"");
        assert_eq!(unit_missing::<QueueLimit>(8, &["B", "packets"]), "8 has no unit: write \"8 B\" or \"8 packets\"");
        assert!(unit_missing::<Duration>(-3, &["ms", "s"]).contains("such as `215 ms`"));
        assert!(unit_missing::<BitRate>(f64::NAN, &["bit/s"]).contains("such as `30 kbit/s`"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for rate in [1, 30_000, 250_000, 1_000_000, 1_234_567] {
            assert_eq!(BitRate(rate).to_string().parse(), Ok(BitRate(rate)));
        }
        for time in [0, 1, 650, 215_000, 60_000_000, 86_400_000_000] {
            assert_eq!(Duration(time).to_string().parse(), Ok(Duration(time)));
        }
        for limit in [QueueLimit::Bytes(2_500), QueueLimit::Packets(1)] {
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
    }
}

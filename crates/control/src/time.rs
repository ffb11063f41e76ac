//! Points in time and lengths of time, both in whole microseconds.
//!
//! A point is 64 bits wide, a length 32, because only lengths are multiplied and small cores have no
//! 64-bit multiplier. Neither type can read a clock: code that drives a state machine hands time in.

use crate::{division, layout::laid_out};
use core::fmt;

/// A point in time: microseconds since an origin that the caller chose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

laid_out!(Instant { 0 });

impl Instant {
    /// The caller's origin.
    pub const ORIGIN: Self = Self(0);
    /// Later than every event; "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// The point `micros` microseconds after the origin.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the origin.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The point `span` later; stays at [`Instant::NEVER`] once there.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0 as u64))
    }

    /// The length from `earlier` to here: zero if `earlier` is later, [`Span::MAX`] if it does not fit.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn since(self, earlier: Self) -> Span {
        let micros = self.0.saturating_sub(earlier.0);
        if micros > u32::MAX as u64 { Span::MAX } else { Span(micros as u32) }
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER {
            return f.write_str("never");
        }
        write_seconds(f, self.0)
    }
}

/// A point in time as a peer keeps it: in two words, so that no state is padded to a multiple of eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PackedInstant {
    low: u32,
    high: u32,
}

laid_out!(PackedInstant { low, high });

impl PackedInstant {
    pub(crate) const fn new(at: Instant) -> Self {
        Self { low: at.0 as u32, high: (at.0 >> 32) as u32 }
    }

    pub(crate) const fn at(self) -> Instant {
        Instant((self.high as u64) << 32 | self.low as u64)
    }
}

impl fmt::Debug for PackedInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at().fmt(f)
    }
}

/// A length of time: microseconds in 32 bits, so at most [`Span::MAX`] ≈ 71 minutes; arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u32);

laid_out!(Span { 0 });

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest length that can be expressed, 4294.967295 s.
    pub const MAX: Self = Self(u32::MAX);

    /// A length of `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: u32) -> Self {
        Self(micros)
    }

    /// A length of `millis` milliseconds, saturating.
    #[must_use]
    pub const fn from_millis(millis: u32) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// A length of `seconds` seconds, saturating.
    #[must_use]
    pub const fn from_secs(seconds: u32) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// The length in microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u32 {
        self.0
    }

    /// The sum, saturating at [`Span::MAX`].
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, saturating at zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The distance between two lengths, whichever is the longer.
    #[must_use]
    pub const fn distance(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// `self · numerator / denominator`, rounded to the nearest microsecond (halves up), saturating.
    /// A denominator of zero counts as one.
    #[must_use]
    pub const fn scaled(self, numerator: u32, denominator: u32) -> Self {
        let denominator = if denominator == 0 { 1 } else { denominator as u64 };
        // At most (2^32 - 1)^2 + 2^31: always fits.
        let product = (self.0 as u64).saturating_mul(numerator as u64).saturating_add(denominator >> 1);
        let micros = division::quotient(product, denominator);
        if micros > u32::MAX as u64 { Self::MAX } else { Self(micros as u32) }
    }

    /// So many times the length, saturating.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn times(self, factor: u32) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// Twice the length, saturating.
    #[must_use]
    pub const fn doubled(self) -> Self {
        Self(self.0.saturating_add(self.0))
    }

    /// Half the length, rounded down.
    #[must_use]
    pub const fn halved(self) -> Self {
        Self(self.0 >> 1)
    }
}

/// `number / 1000`, by a multiplication: small cores have no division, and the function that stands in for it takes
/// more room than some of the algorithms here.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) const fn thousandth(number: u32) -> u32 {
    // 274877907 is 2^38 / 1000, rounded up; the product stays below 2^61.
    ((number as u64).saturating_mul(274_877_907) >> 38) as u32
}

/// `number / 3`, likewise.
#[allow(dead_code, reason = "one algorithm needs it")]
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) const fn third(number: u32) -> u32 {
    // 2863311531 is 2^33 / 3, rounded up; the product stays below 2^64.
    ((number as u64).saturating_mul(2_863_311_531) >> 33) as u32
}

/// A tenth, rounded to the nearest microsecond, halves up, likewise.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) const fn tenth(length: Span) -> Span {
    // 3435973837 is 2^35 / 10, rounded up; the product stays below 2^64.
    Span(((length.0 as u64).saturating_add(5).saturating_mul(3_435_973_837) >> 35) as u32)
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(f, u64::from(self.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(f, u64::from(self.0))
    }
}

/// Seconds with as many decimals as the number of microseconds needs.
fn write_seconds(f: &mut fmt::Formatter<'_>, micros: u64) -> fmt::Result {
    let (whole, mut rest, mut width) = (micros / 1_000_000, micros % 1_000_000, 6_usize);
    if rest == 0 {
        return write!(f, "{whole} s");
    }
    while rest % 10 == 0 {
        rest /= 10;
        width = width.saturating_sub(1);
    }
    write!(f, "{whole}.{rest:0width$} s")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn lengths_saturate_instead_of_wrapping() {
        assert_eq!(Span::from_secs(5_000), Span::MAX);
        assert_eq!(Span::MAX.plus(Span::from_micros(1)), Span::MAX);
        assert_eq!(Span::ZERO.minus(Span::from_secs(1)), Span::ZERO);
        assert_eq!(Span::MAX.scaled(3, 2), Span::MAX);
        assert_eq!(Instant::NEVER.after(Span::from_secs(1)), Instant::NEVER);
        assert_eq!(Instant::ORIGIN.since(Instant::from_micros(7)), Span::ZERO);
        assert_eq!(Instant::NEVER.since(Instant::ORIGIN), Span::MAX);
    }

    #[test]
    fn scaling_rounds_to_the_nearest_microsecond() {
        assert_eq!(Span::from_micros(3).scaled(1, 2), Span::from_micros(2));
        assert_eq!(Span::from_micros(5).scaled(1, 4), Span::from_micros(1));
        assert_eq!(Span::from_secs(2).scaled(3, 2), Span::from_secs(3));
        assert_eq!(Span::from_secs(2).scaled(1, 0), Span::from_secs(2));
    }

    #[test]
    fn divisions_by_multiplication_are_exact() {
        let ends = (0..=u32::MAX / 3_000).flat_map(|step| {
            let multiple = step.saturating_mul(3_000);
            [multiple.saturating_sub(1), multiple, multiple.saturating_add(1_000), multiple.saturating_add(2_999)]
        });
        for number in ends.chain([u32::MAX - 2, u32::MAX - 1, u32::MAX]) {
            assert_eq!((thousandth(number), third(number)), (number / 1_000, number / 3), "{number}");
        }
    }

    #[test]
    fn tenths_are_rounded_to_the_nearest() {
        for micros in (0..100_000).chain(u32::MAX - 100..=u32::MAX) {
            let span = Span::from_micros(micros);
            assert_eq!(tenth(span), span.scaled(1, 10), "{micros}");
        }
    }

    #[test]
    fn lengths_print_as_seconds() {
        assert_eq!(format!("{:?}", Span::from_millis(2_500)), "2.5 s");
        assert_eq!(format!("{}", Span::from_micros(1)), "0.000001 s");
        assert_eq!(format!("{:?}", Instant::from_micros(3_000_000)), "3 s");
        assert_eq!(format!("{:?}", Instant::NEVER), "never");
    }

    #[test]
    fn what_is_kept_is_the_same_point() {
        for at in [0, 1, u64::from(u32::MAX), 1 << 32, 0x0123_4567_89AB_CDEF, u64::MAX].map(Instant::from_micros) {
            assert_eq!(PackedInstant::new(at).at(), at);
        }
        assert_eq!((size_of::<PackedInstant>(), align_of::<PackedInstant>()), (8, 4));
    }

    #[test]
    fn types_stay_small() {
        assert_eq!(size_of::<Span>(), 4);
        assert_eq!(size_of::<Instant>(), 8);
    }
}

//! Rates of messages, for what is paced.
//!
//! **Rounding.** A rate is a whole number of millionths of a message per second; what is computed is rounded to the
//! nearest one, halves up. The distance between two messages is rounded to the nearest microsecond.

use crate::{division, layout::laid_out, time::Span};

/// Microseconds in a second times millionths in one.
const UNIT: u64 = 1_000_000_000_000;

/// So many millionths of a message per second, at most 4294.967295 messages per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u32);

laid_out!(Rate { 0 });

impl Rate {
    /// No message, ever.
    pub const ZERO: Self = Self(0);
    /// The highest rate that can be expressed.
    pub const MAX: Self = Self(u32::MAX);

    /// So many millionths of a message per second, saturating.
    #[must_use]
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(narrow(millionths))
    }

    /// So many messages in this long, saturating. No time at all counts as one microsecond.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn per(messages: u32, span: Span) -> Self {
        let micros = if span.as_micros() == 0 { 1 } else { span.as_micros() };
        Self(narrow(quotient((messages as u64).saturating_mul(UNIT), micros)))
    }

    /// Millionths of a message per second.
    #[must_use]
    pub const fn as_millionths(self) -> u32 {
        self.0
    }

    /// From one message to the next; the longest span there is for no rate at all.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn gap(self) -> Span {
        if self.0 == 0 { Span::MAX } else { Span::from_micros(narrow(quotient(UNIT, self.0))) }
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// `self · numerator / denominator`, saturating. A denominator of zero counts as one.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn scaled(self, numerator: u32, denominator: u32) -> Self {
        let denominator = if denominator == 0 { 1 } else { denominator };
        Self(narrow(quotient((self.0 as u64).saturating_mul(numerator as u64), denominator)))
    }

    /// Half of it, so many times.
    #[must_use]
    pub const fn halved(self, times: u32) -> Self {
        // Rounded once, at the end.
        match 1_u32.checked_shl(times) {
            Some(divisor) => self.scaled(1, divisor),
            None => Self::ZERO,
        }
    }

    /// Neither below `low` nor above `high`.
    #[must_use]
    pub const fn within(self, low: Self, high: Self) -> Self {
        if self.0 < low.0 {
            low
        } else if self.0 > high.0 {
            high
        } else {
            self
        }
    }

    /// Thousandths of a message that leave in this long, rounded down, saturating.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn thousandths_in(self, span: Span) -> u32 {
        // At most (2^32 - 1)^2.
        narrow(division::quotient((self.0 as u64).saturating_mul(span.as_micros() as u64), UNIT / 1_000))
    }
}

/// Rounded to the nearest, halves up. The divisor is not zero.
const fn quotient(dividend: u64, divisor: u32) -> u64 {
    let divisor = divisor as u64;
    division::quotient(dividend.saturating_add(divisor >> 1), divisor)
}

const fn narrow(number: u64) -> u32 {
    if number > u32::MAX as u64 { u32::MAX } else { number as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_messages_over_time() {
        let rate = Rate::per(4, Span::from_millis(240));
        assert_eq!(rate.as_millionths(), 16_666_667);
        assert_eq!(rate.gap(), Span::from_millis(60));
        assert_eq!(Rate::per(1, Span::from_secs(64)).as_millionths(), 15_625);
        assert_eq!(Rate::per(1, Span::from_secs(64)).gap(), Span::from_secs(64));
    }

    #[test]
    fn rates_saturate_and_divide_by_nothing() {
        assert_eq!(Rate::per(u32::MAX, Span::ZERO).as_millionths(), u32::MAX);
        assert_eq!(Rate::ZERO.gap(), Span::MAX);
        assert_eq!(Rate(1).gap(), Span::MAX);
        assert_eq!(Rate(7).scaled(1, 0), Rate(7));
        assert_eq!(Rate(u32::MAX).plus(Rate(1)), Rate(u32::MAX));
        assert_eq!(Rate(u32::MAX).halved(32), Rate::ZERO);
        assert_eq!(Rate(u32::MAX).halved(40), Rate::ZERO);
    }

    #[test]
    fn halving_rounds_once() {
        assert_eq!(Rate(7).halved(0), Rate(7));
        assert_eq!(Rate(7).halved(1), Rate(4));
        assert_eq!(Rate(7).halved(2), Rate(2));
        assert_eq!(Rate::per(10, Span::from_secs(1)).halved(2), Rate(2_500_000));
    }

    #[test]
    fn what_leaves_in_a_round_trip_is_the_product() {
        assert_eq!(Rate::per(10, Span::from_secs(1)).thousandths_in(Span::from_millis(250)), 2_500);
        assert_eq!(Rate(u32::MAX).thousandths_in(Span::MAX), u32::MAX);
    }
}

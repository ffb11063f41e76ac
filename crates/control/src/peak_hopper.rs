//! Peak-Hopper: the larger of the last two round-trip times and a bonus for change, both of which decay.
//!
//! H. Ekström, R. Ludwig: "The Peak-Hopper: A New End-to-End Retransmission Timer for Reliable Unicast Transport",
//! INFOCOM 2004; measured with CoAP as Eclipse Californium 1 runs it, which is what the preset does.

use crate::{
    backoff::Factor,
    division::quotient,
    estimator::GRANULARITY,
    evidence::{ExactRtt, Sample},
    frame::{Frame, Framed, Timer},
    layout::laid_out,
    preset::presets,
    setting::{Place, Setting, SettingConflict, choices},
    time::{Span, third},
};

/// One peer under Peak-Hopper.
pub type PeakHopper = Framed<Hopper>;

/// Which of two published forms is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Californium 1: the bonus is twice the change in either direction, measured by the new sample, and at most 1; the
    /// timeout stays 100 ms above the larger sample.
    Californium,
    /// The paper: the bonus is the rise, measured by the sample before, without a limit; the timeout is at least 1 ms.
    Original,
}

laid_out!(Order = Californium | Original);

/// What stands for the sample before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Previous {
    /// Zero, as in Californium: the second sample always counts as a change of the whole.
    Zero,
    /// The first sample itself.
    FirstSample,
}

laid_out!(Previous = Zero | FirstSample);

choices! {
    Order: Order::Californium, Order::Original;
    Previous: Previous::Zero, Previous::FirstSample;
}

/// The timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hopper {
    /// The bonus B.
    bonus: Fraction,
    /// Zero before the first sample.
    timeout: Span,
    /// The sample before.
    previous: Span,
    /// The bonus after the first sample, in thousandths.
    pub first_bonus: u16,
    /// Which form is followed.
    pub order: Order,
    /// What stands for the sample before the first.
    pub before_first: Previous,
}

laid_out!(Hopper { bonus, timeout, previous, first_bonus, order, before_first });

impl Hopper {
    /// As Californium 1 runs it.
    pub const CALIFORNIUM_1: Self = Self {
        bonus: Fraction::ZERO,
        timeout: Span::ZERO,
        previous: Span::ZERO,
        first_bonus: 0,
        order: Order::Californium,
        before_first: Previous::Zero,
    };
}

presets! { PeakHopper {
    PEAK_HOPPER = 80, (Frame::CALIFORNIUM_1, Hopper::CALIFORNIUM_1), {
        name: "peak-hopper",
        label: "Peak-Hopper",
        source: "The Peak-Hopper (INFOCOM 2004) as Eclipse Californium 1 runs it",
        readings: &["D2", "D3", "D5", "D9", "E11", "E12", "E14"],
        summary: "the larger of the last two round-trip times and a decaying bonus, doubled waits kept until a clean answer",
    };
} }

/// D = 1 − 1/(F·S) with F = 24 and one sample in each round trip (Californium 1).
const DECAY: u32 = 24;
/// The first timeout is 1.75 times the first sample.
const FIRST: Factor = Factor::from_thousandths(1_750);
/// How far Californium's timeout stays above the larger sample.
const HEADROOM: Span = Span::from_millis(100);
/// The shortest timeout of the paper's form.
const LEAST: Span = Span::from_millis(1);

impl Timer for Hopper {
    fn timeout(&self) -> Option<Span> {
        (self.timeout > Span::ZERO).then_some(self.timeout)
    }

    /// A sample is an exchange without retransmissions.
    fn learn(&mut self, sample: Sample) {
        if let (Some(rtt), 0) = (sample.exact(), sample.retransmissions()) {
            self.take(rtt);
        }
    }
}

impl Hopper {
    fn take(&mut self, rtt: ExactRtt) {
        // Shares of nothing are undefined.
        let rtt = rtt.span().max(GRANULARITY);
        if self.timeout == Span::ZERO {
            return self.take_first(rtt);
        }
        let longest = rtt.max(self.previous);
        let bonus = self.change(rtt).max(self.bonus.decayed());
        let floor;
        (self.bonus, floor) = match self.order {
            Order::Californium => (bonus.min(Fraction::ONE), longest.plus(HEADROOM)),
            Order::Original => (bonus, LEAST),
        };
        self.timeout = decayed(self.timeout).max(longest.plus(self.bonus.of(longest))).max(floor);
        self.previous = rtt;
    }

    fn take_first(&mut self, rtt: Span) {
        self.bonus = Fraction::new(u32::from(self.first_bonus), 1_000);
        self.timeout = FIRST.times(rtt);
        if self.order == Order::Original {
            self.timeout = self.timeout.max(LEAST);
        }
        if self.before_first == Previous::FirstSample {
            self.previous = rtt;
        }
    }

    /// The bonus for the change that this sample brought.
    fn change(&self, rtt: Span) -> Fraction {
        match self.order {
            Order::Californium => Fraction::new(rtt.distance(self.previous).as_micros(), rtt.as_micros()).doubled(),
            Order::Original => Fraction::new(rtt.minus(self.previous).as_micros(), self.previous.as_micros()),
        }
    }
}

/// A number with 24 binary digits after the point, made of 32-bit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fraction {
    whole: u32,
    digits: u32,
}

laid_out!(Fraction { whole, digits });

impl Fraction {
    const DIGITS: u32 = 24;
    const ZERO: Self = Self { whole: 0, digits: 0 };
    const ONE: Self = Self { whole: 1, digits: 0 };

    /// `numerator / denominator`, further digits cut off; the largest there is if the denominator is zero.
    fn new(numerator: u32, denominator: u32) -> Self {
        if denominator == 0 {
            return Self { whole: u32::MAX, digits: 0 };
        }
        let whole = quotient(numerator.into(), denominator.into()) as u32;
        let rest = numerator.wrapping_sub(whole.wrapping_mul(denominator));
        // Above 2^31 half of both is taken, which can be one too many in the last digit.
        let halve = denominator >> 31;
        let digits = quotient(u64::from(rest >> halve) << Self::DIGITS, (denominator >> halve).into()) as u32;
        Self { whole, digits: 0 }.plus_digits(digits)
    }

    fn doubled(self) -> Self {
        Self { whole: self.whole.saturating_mul(2), digits: 0 }.plus_digits(self.digits << 1)
    }

    /// 23/24 of it, rounded up in the last digit.
    fn decayed(self) -> Self {
        let (whole, rest) = decay(self.whole);
        let (digits, _) = decay(rest << Self::DIGITS | self.digits);
        let borrow = u32::from(self.digits < digits);
        Self {
            whole: self.whole.saturating_sub(whole).saturating_sub(borrow),
            digits: (borrow << Self::DIGITS).saturating_add(self.digits).saturating_sub(digits),
        }
    }

    /// So much of a length, rounded to the nearest microsecond, saturating.
    fn of(self, length: Span) -> Span {
        // At most 2^56.
        let part = u64::from(self.digits).saturating_mul(u64::from(length.as_micros()));
        let part = part.saturating_add(1 << (Self::DIGITS - 1)) >> Self::DIGITS;
        length.times(self.whole).plus(Span::from_micros(part as u32))
    }

    fn plus_digits(self, digits: u32) -> Self {
        let whole = self.whole.saturating_add(digits >> Self::DIGITS);
        Self { whole, digits: digits & ((1 << Self::DIGITS) - 1) }
    }
}

/// A 24th, and what is left.
const fn decay(number: u32) -> (u32, u32) {
    let part = third(number >> 3);
    (part, number.wrapping_sub(part.wrapping_mul(DECAY)))
}

/// 23/24 of a length, rounded to the nearest microsecond, halves up.
const fn decayed(length: Span) -> Span {
    let (part, rest) = decay(length.as_micros());
    length.minus(Span::from_micros(part.saturating_add((rest > DECAY / 2) as u32)))
}

impl PeakHopper {
    /// The parameters that it has.
    pub const SETTINGS: &[Setting] = {
        let [a, b, c, d, e, f, g] = Frame::SETTINGS;
        &[a, b, c, d, e, f, g, Setting::PeakOrder, Setting::Previous, Setting::FirstBonus]
    };

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        Some(match setting {
            Setting::PeakOrder => Place::Choice(&mut self.timer.order),
            Setting::Previous => Place::Choice(&mut self.timer.before_first),
            Setting::FirstBonus => Place::Thousandths(&mut self.timer.first_bonus),
            _ => return self.frame_mut().place(setting),
        })
    }

    pub(crate) fn check(&self) -> Result<(), SettingConflict> {
        let needs = |setting, other, words| Err(SettingConflict::Needs { setting, other, words });
        match self.timer {
            // The original measures the second sample by the one before, which must not be nothing.
            Hopper { order: Order::Original, before_first: Previous::Zero, .. } => {
                needs(Setting::PeakOrder, Setting::Previous, &["first-sample"])
            }
            Hopper { order: Order::Californium, first_bonus: 1.., .. } => {
                needs(Setting::FirstBonus, Setting::PeakOrder, &["original"])
            }
            _ => self.frame().check(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{ChanceSeed, Purpose};

    #[test]
    fn lengths_decay_to_the_nearest_microsecond() {
        for micros in (0..10_000).chain([u32::MAX]) {
            let exact = (u64::from(micros).saturating_mul(23).saturating_add(12)) / 24;
            assert_eq!(u64::from(decayed(Span::from_micros(micros)).as_micros()), exact, "{micros}");
        }
    }

    /// As a whole number of 2⁻²⁴.
    fn bits(fraction: Fraction) -> u64 {
        (u64::from(fraction.whole) << Fraction::DIGITS).saturating_add(u64::from(fraction.digits))
    }

    #[test]
    fn fractions_are_those_of_wider_words() {
        let numbers = (0..31).flat_map(|shift| {
            let word = ChanceSeed::new(9).at(Purpose::Workload, [shift, 0, 0, 0]).word();
            [1 << shift, word >> shift]
        });
        for numerator in numbers.clone() {
            for denominator in numbers.clone().filter(|denominator| *denominator > 0) {
                let fraction = Fraction::new(numerator, denominator);
                let exact = (u64::from(numerator) << Fraction::DIGITS).checked_div(denominator.into()).unwrap_or(0);
                assert_eq!(bits(fraction), exact, "{numerator} / {denominator}");
                assert_eq!(bits(fraction.doubled()), exact.saturating_mul(2));
                assert_eq!(bits(fraction.decayed()), exact.saturating_sub(exact / 24));
                let wide = u128::from(exact).saturating_mul(denominator.into());
                let share = wide.saturating_add(1 << 23) >> Fraction::DIGITS;
                assert_eq!(u128::from(fraction.of(Span::from_micros(denominator)).as_micros()), share);
            }
        }
    }

    #[test]
    fn fractions_saturate() {
        assert_eq!(Fraction::ONE.of(Span::MAX), Span::MAX);
        assert_eq!(Fraction::new(u32::MAX, 1).of(Span::MAX), Span::MAX);
        assert_eq!(Fraction::new(1, 0).of(Span::from_micros(2)), Span::MAX);
        assert_eq!(Fraction::new(u32::MAX - 1, u32::MAX), Fraction::ONE, "one digit too many");
        assert_eq!(Fraction::ZERO.of(Span::MAX), Span::ZERO);
    }
}

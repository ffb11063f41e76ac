//! Backoff: from one wait to the next, longer one.
//!
//! A cap never shortens a wait that is already above it: `T(i+1) = min(f·T(i), max(cap, T(i)))`. A dithered first
//! wait may lie above the cap, and a retransmission timer that shrank at an expiry would break RFC 8961 §4 (4).

use crate::{
    layout::laid_out,
    time::{Span, thousandth},
};

/// A factor in thousandths, from 1 to 65.535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(u16);

laid_out!(Factor { 0 });

impl Factor {
    /// 1, which changes nothing.
    pub const ONE: Self = Self(1_000);
    /// 1.5.
    pub const ONE_AND_A_HALF: Self = Self(1_500);
    /// 2.
    pub const TWO: Self = Self(2_000);
    /// 3.
    pub const THREE: Self = Self(3_000);

    /// So many thousandths; less than one counts as one.
    #[must_use]
    pub const fn from_thousandths(thousandths: u16) -> Self {
        if thousandths < Self::ONE.0 { Self::ONE } else { Self(thousandths) }
    }

    /// The factor in thousandths.
    #[must_use]
    pub const fn as_thousandths(self) -> u16 {
        self.0
    }

    /// `span` times this factor, rounded to the nearest microsecond (halves up), saturating.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn times(self, span: Span) -> Span {
        // Whole thousands of microseconds and the rest apart, so that 32 bits suffice.
        let thousands = thousandth(span.as_micros());
        let rest = span.as_micros().saturating_sub(thousands.saturating_mul(1_000));
        let rest = thousandth(rest.saturating_mul(self.0 as u32).saturating_add(500));
        Span::from_micros(thousands.saturating_mul(self.0 as u32).saturating_add(rest))
    }
}

/// The shorter of two lengths, in constant functions.
pub(crate) const fn shorter(a: Span, b: Span) -> Span {
    if a.as_micros() < b.as_micros() { a } else { b }
}

/// The longer of two lengths, in constant functions.
pub(crate) const fn longer(a: Span, b: Span) -> Span {
    if a.as_micros() > b.as_micros() { a } else { b }
}

/// `wait` times `factor`, up to `cap`, but never less than `wait`.
const fn grown(wait: Span, factor: Factor, cap: Span) -> Span {
    shorter(factor.times(wait), longer(cap, wait))
}

/// One factor for every step (binary exponential backoff with [`Factor::TWO`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponential {
    /// What a wait is multiplied by.
    pub factor: Factor,
    /// Where growth ends; [`Span::MAX`] for no cap.
    pub cap: Span,
}

laid_out!(Exponential { factor, cap });

impl Exponential {
    /// Doubling without a cap (RFC 7252 §4.2).
    pub const RFC7252: Self = Self { factor: Factor::TWO, cap: Span::MAX };

    /// The wait after `wait`.
    #[must_use]
    pub const fn next(self, wait: Span) -> Span {
        grown(wait, self.factor, self.cap)
    }
}

/// What a variable backoff looks at to choose its factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The wait that just ran out: the factor is chosen anew at every expiry (draft-ietf-core-cocoa-03 App. B.3).
    EachWait,
    /// The first, dithered wait: one factor for the whole exchange ("CoCoA+: An Advanced Congestion
    /// Control Mechanism for CoAP", 2015, §3).
    FirstWait,
    /// The estimate before dithering: one factor for the whole exchange (as Eclipse Californium 1 and 2 mean it).
    Estimate,
    /// The wait in force when the exchange before ended, if that gave no sample, and the estimate otherwise: one factor
    /// for the whole exchange (as Eclipse Californium 1 and 2 do it, where a backed-off timer still stands in for the
    /// estimate when the factor is chosen).
    LastTimer,
}

laid_out!(Basis = EachWait | FirstWait | Estimate | LastTimer);

/// Which factor an exchange uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Band {
    /// Chosen anew at every expiry.
    Varying = 0,
    /// The factor of short waits.
    Short = 1,
    /// The factor between the thresholds.
    Middle = 2,
    /// The factor of long waits.
    Long = 3,
}

impl Band {
    /// The band with this number, as [`Exchange::series`](crate::Exchange::series) keeps it.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Short,
            2 => Self::Middle,
            3 => Self::Long,
            _ => Self::Varying,
        }
    }
}

/// Variable backoff factor: short waits grow fast, long ones slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Below this length a wait is short.
    pub short: Span,
    /// Above this length a wait is long.
    pub long: Span,
    /// Where growth ends; [`Span::MAX`] for no cap.
    pub cap: Span,
    /// The factor of short waits.
    pub low: Factor,
    /// The factor of waits from `short` to `long`, both included.
    pub middle: Factor,
    /// The factor of long waits.
    pub high: Factor,
    /// What the factor is chosen from.
    pub basis: Basis,
}

laid_out!(Variable { short, long, cap, low, middle, high, basis });

impl Variable {
    /// 3 below 1 s, 1.5 above 3 s, 2 between, chosen anew at every expiry, up to 32 s
    /// (draft-ietf-core-cocoa-03 §4.2.1 and App. B.3).
    pub const COCOA_03: Self = Self {
        short: Span::from_secs(1),
        long: Span::from_secs(3),
        cap: Span::from_secs(32),
        low: Factor::THREE,
        middle: Factor::TWO,
        high: Factor::ONE_AND_A_HALF,
        basis: Basis::EachWait,
    };

    /// The band of an exchange that starts with `first`, drawn from `estimate`, or from what stands in for it.
    #[must_use]
    pub const fn band(&self, first: Span, estimate: Span) -> Band {
        match self.basis {
            Basis::EachWait => Band::Varying,
            Basis::FirstWait => self.band_of(first),
            Basis::Estimate | Basis::LastTimer => self.band_of(estimate),
        }
    }

    /// The wait after `wait` in an exchange of this band.
    #[must_use]
    pub const fn next(&self, wait: Span, band: Band) -> Span {
        let band = if matches!(band, Band::Varying) { self.band_of(wait) } else { band };
        let factor = match band {
            Band::Short => self.low,
            Band::Long => self.high,
            Band::Middle | Band::Varying => self.middle,
        };
        grown(wait, factor, self.cap)
    }

    /// `wait` pushed through this many steps.
    #[must_use]
    pub const fn after(&self, mut wait: Span, band: Band, steps: u8) -> Span {
        let mut left = steps;
        while left > 0 {
            wait = self.next(wait, band);
            left = left.saturating_sub(1);
        }
        wait
    }

    /// No wait that follows one of at most `previous` is longer than this, whatever the band.
    #[must_use]
    pub const fn longest_after(&self, previous: Span) -> Span {
        let steepest = longer(self.low.times(previous), longer(self.middle.times(previous), self.high.times(previous)));
        shorter(steepest, longer(self.cap, previous))
    }

    const fn band_of(&self, wait: Span) -> Band {
        if wait.as_micros() < self.short.as_micros() {
            Band::Short
        } else if wait.as_micros() > self.long.as_micros() {
            Band::Long
        } else {
            Band::Middle
        }
    }
}

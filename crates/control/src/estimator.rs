//! Round-trip time estimators: the two running averages of RFC 6298 §2, in whole microseconds.
//!
//! The first sample `R` sets SRTT = `R` and RTTVAR = `R`/2. Later samples move RTTVAR by `β·(|SRTT − R| − RTTVAR)`,
//! with the *old* SRTT, and then SRTT by `α·(R − SRTT)`. The timeout is SRTT + max(G, K·RTTVAR); the granularity G is
//! the one microsecond that time is counted in.
//!
//! **Rounding.** Every average is rounded to the nearest microsecond (halves up), so one step adds at most ½ µs of
//! error and shrinks the error that was there by the factor 1 − gain. Against exact arithmetic SRTT is therefore
//! never off by more than 1/(2α) µs, RTTVAR by no more than 1/(2α) + 1/(2β) µs, however many samples there were: 4 µs
//! and 6 µs with the gains of RFC 6298.
//!
//! A [`Strong`] estimator accepts nothing but an [`ExactRtt`], so that a breach of Karn's rule does not compile; what
//! believes a reply that names a copy says so and hands it a [`NamedRtt`]. A [`Weak`] one accepts any length.

use crate::{
    backoff::shorter,
    evidence::{ExactRtt, NamedRtt},
    layout::laid_out,
    time::Span,
};

/// The granularity G of RFC 6298: the unit that time is counted in.
pub const GRANULARITY: Span = Span::from_micros(1);

/// The share that a new value gets in a running average: 1/2ⁿ, which needs shifts only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share(u8);

laid_out!(Share { 0 });

impl Share {
    /// The new value replaces the average.
    pub const WHOLE: Self = Self(0);
    /// 1/2.
    pub const HALF: Self = Self(1);
    /// 1/4.
    pub const QUARTER: Self = Self(2);
    /// 1/8.
    pub const EIGHTH: Self = Self(3);
    /// 1/32.
    pub const THIRTY_SECOND: Self = Self(5);
    /// 1/64.
    pub const SIXTY_FOURTH: Self = Self(6);

    /// The average after `new` got its share and `old` the rest, rounded to the nearest microsecond, halves up.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn blend(self, old: Span, new: Span) -> Span {
        // A part of the distance, rounded up to the new value where that is half-way; 32 bits suffice.
        let distance = old.distance(new).as_micros();
        let below_one = (1_u32 << self.0).saturating_sub(1);
        let half = (below_one >> 1).saturating_add(below_one & 1);
        let is_longer = new.as_micros() >= old.as_micros();
        let rounding = if is_longer { half } else { below_one.saturating_sub(half) };
        let rest = (distance & below_one).saturating_add(rounding) >> self.0;
        let step = Span::from_micros((distance >> self.0).saturating_add(rest));
        if is_longer { old.plus(step) } else { old.minus(step) }
    }
}

/// The gains of the two averages: α, the share of a sample in SRTT, β, that of a deviation in RTTVAR, and what share of the
/// first sample RTTVAR begins with. One byte, because every peer of some algorithms keeps its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gains(u8);

laid_out!(Gains { 0 });

impl Gains {
    /// α = 1/8, β = 1/4, and half of the first sample (RFC 6298 §2.2, §2.3; draft-ietf-core-cocoa-03 App. B.1).
    pub const RFC6298: Self = Self::of(Share::EIGHTH, Share::QUARTER, Share::HALF);
    /// α = 1/4, β = 1/8: the two constants swapped, as Eclipse Californium runs them and as the equations of
    /// "CoCoA+: An Advanced Congestion Control Mechanism for CoAP" (2015) print them.
    pub const SWAPPED: Self = Self::of(Share::QUARTER, Share::EIGHTH, Share::HALF);
    /// Those of RFC 6298 but an eighth of the first sample (draft-ietf-core-fasor-02 §4).
    pub const FASOR: Self = Self::of(Share::EIGHTH, Share::QUARTER, Share::EIGHTH);
    /// Those of RFC 6298 but the last sample for SRTT.
    pub const LAST: Self = Self::of(Share::WHOLE, Share::QUARTER, Share::HALF);

    const fn of(srtt: Share, rttvar: Share, first: Share) -> Self {
        assert!(srtt.0 < 8 && rttvar.0 < 8 && first.0 < 4, "a share that has no room");
        Self(srtt.0 | rttvar.0 << 3 | first.0 << 6)
    }

    /// α.
    #[must_use]
    pub const fn srtt(self) -> Share {
        Share(self.0 & 7)
    }

    /// β.
    #[must_use]
    pub const fn rttvar(self) -> Share {
        Share(self.0 >> 3 & 7)
    }

    /// What share of the first sample RTTVAR begins with.
    #[must_use]
    pub const fn first(self) -> Share {
        Share(self.0 >> 6)
    }
}

/// The two averages. A variation of [`Span::MAX`] says that there was no sample yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Averages {
    srtt: Span,
    rttvar: Span,
}

laid_out!(Averages { srtt, rttvar });

impl Averages {
    const UNKNOWN: Self = Self { srtt: Span::ZERO, rttvar: Span::MAX };
    const LONGEST_VARIATION: Span = Span::MAX.minus(GRANULARITY);

    const fn is_known(self) -> bool {
        self.rttvar.as_micros() != Span::MAX.as_micros()
    }

    const fn take(&mut self, rtt: Span, gains: Gains) {
        if self.is_known() {
            let rttvar = gains.rttvar().blend(self.rttvar, self.srtt.distance(rtt));
            self.rttvar = shorter(rttvar, Self::LONGEST_VARIATION);
            self.srtt = gains.srtt().blend(self.srtt, rtt);
        } else {
            let rttvar = gains.first().blend(Span::ZERO, rtt);
            *self = Self { srtt: rtt, rttvar: shorter(rttvar, Self::LONGEST_VARIATION) };
        }
    }

    const fn timeout(self, k: u8) -> Span {
        let margin = self.rttvar.times(k as u32);
        let margin = if margin.as_micros() < GRANULARITY.as_micros() { GRANULARITY } else { margin };
        self.srtt.plus(margin)
    }
}

/// An estimator of certain round-trip times only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strong(Averages);

laid_out!(Strong { 0 });

/// An estimator that accepts any length, a guess included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weak(Averages);

laid_out!(Weak { 0 });

impl Strong {
    /// No sample yet.
    pub const UNKNOWN: Self = Self(Averages::UNKNOWN);

    /// Takes a round-trip time in.
    pub const fn take(&mut self, rtt: ExactRtt, gains: Gains) {
        self.0.take(rtt.span(), gains);
    }

    /// Takes a round-trip time in on the word of the reply. Only for variants that believe it.
    pub const fn trust(&mut self, rtt: NamedRtt, gains: Gains) {
        self.0.take(rtt.span(), gains);
    }
}

impl Weak {
    /// No sample yet.
    pub const UNKNOWN: Self = Self(Averages::UNKNOWN);

    /// Takes a length in.
    pub const fn take(&mut self, rtt: Span, gains: Gains) {
        self.0.take(rtt, gains);
    }
}

macro_rules! readings {
    ($estimator:ty) => {
        impl $estimator {
            /// Whether a sample was ever taken in.
            #[must_use]
            pub const fn is_known(self) -> bool {
                self.0.is_known()
            }

            /// SRTT, the smoothed round-trip time.
            #[must_use]
            pub const fn srtt(self) -> Option<Span> {
                if self.0.is_known() { Some(self.0.srtt) } else { None }
            }

            /// RTTVAR, the smoothed deviation.
            #[must_use]
            pub const fn rttvar(self) -> Option<Span> {
                if self.0.is_known() { Some(self.0.rttvar) } else { None }
            }

            /// SRTT + max(G, K·RTTVAR).
            #[must_use]
            pub const fn timeout(self, k: u8) -> Span {
                self.0.timeout(k)
            }
        }
    };
}

readings!(Strong);
readings!(Weak);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chance::{ChanceSeed, Purpose},
        evidence::{ReplyKind, Sample},
    };

    fn exact(micros: u32) -> Option<ExactRtt> {
        let rtt = Span::from_micros(micros);
        Sample::new(ReplyKind::EmptyAck, rtt, rtt, 0).exact()
    }

    /// A running average with 32 binary digits after the point.
    fn blend_finely(share: Share, old: u128, new: u128) -> u128 {
        (old << share.0).saturating_sub(old).saturating_add(new) >> share.0
    }

    #[test]
    fn averages_are_rounded_to_the_nearest() {
        let ends = [0, 1, 2, 3, 7, 8, 31, 1_000_003, u32::MAX / 2, u32::MAX - 1, u32::MAX];
        let near = (0..70).flat_map(|old| (0..70).map(move |new| (old, new)));
        for (old, new) in near.chain(ends.into_iter().flat_map(|old| ends.map(|new| (old, new)))) {
            for share in [Share::WHOLE, Share::HALF, Share::QUARTER, Share::EIGHTH, Share(4), Share::SIXTY_FOURTH] {
                let half = 1_u128 << share.0 >> 1;
                let exact = ((u128::from(old) << share.0) - u128::from(old) + u128::from(new) + half) >> share.0;
                let ours = share.blend(Span::from_micros(old), Span::from_micros(new));
                assert_eq!(u128::from(ours.as_micros()), exact, "{old} {new} {share:?}");
            }
        }
    }

    const fn micros(span: Option<Span>) -> u128 {
        match span {
            Some(span) => span.as_micros() as u128,
            None => 0,
        }
    }

    #[test]
    fn rounding_stays_within_the_stated_bound() {
        for (gains, srtt_bound, rttvar_bound) in [(Gains::RFC6298, 4, 6), (Gains::SWAPPED, 2, 6)] {
            for seed in 0..50_u64 {
                let (mut weak, mut strong) = (Weak::UNKNOWN, Strong::UNKNOWN);
                let (mut srtt, mut rttvar) = (0_u128, 0_u128);
                for step in 0..400_u32 {
                    let chance = ChanceSeed::new(seed).at(Purpose::Workload, [step, 0, 0, 0]);
                    // Mostly short, sometimes up to the longest span.
                    let rtt = chance.word() >> (step % 24);
                    let fine = u128::from(rtt) << 32;
                    (srtt, rttvar) = if step == 0 {
                        (fine, fine >> 1)
                    } else {
                        let deviation = srtt.abs_diff(fine);
                        (blend_finely(gains.srtt(), srtt, fine), blend_finely(gains.rttvar(), rttvar, deviation))
                    };
                    weak.take(Span::from_micros(rtt), gains);
                    if let Some(rtt) = exact(rtt) {
                        strong.take(rtt, gains);
                    }
                    assert!((micros(weak.srtt()) << 32).abs_diff(srtt) <= srtt_bound << 32);
                    assert!((micros(weak.rttvar()) << 32).abs_diff(rttvar) <= rttvar_bound << 32);
                    assert_eq!((weak.srtt(), weak.rttvar()), (strong.srtt(), strong.rttvar()));
                }
            }
        }
    }

    #[test]
    fn the_first_sample_sets_both_averages() {
        let mut weak = Weak::UNKNOWN;
        assert!(!weak.is_known());
        assert_eq!((weak.srtt(), weak.rttvar()), (None, None));
        weak.take(Span::from_micros(801), Gains::RFC6298);
        assert_eq!((weak.srtt(), weak.rttvar()), (Some(Span::from_micros(801)), Some(Span::from_micros(401))));
        assert_eq!(weak.timeout(4), Span::from_micros(801 + 4 * 401));
    }

    #[test]
    fn a_timeout_is_never_zero_and_never_wraps() {
        let mut weak = Weak::UNKNOWN;
        weak.take(Span::ZERO, Gains::RFC6298);
        assert_eq!(weak.timeout(4), GRANULARITY);
        let mut weak = Weak::UNKNOWN;
        weak.take(Span::MAX, Gains::RFC6298);
        assert_eq!(weak.timeout(255), Span::MAX);
    }

    #[test]
    fn the_longest_spans_average_to_themselves() {
        for share in [Share::WHOLE, Share::HALF, Share::QUARTER, Share::EIGHTH] {
            assert_eq!(share.blend(Span::MAX, Span::MAX), Span::MAX);
            assert_eq!(share.blend(Span::ZERO, Span::ZERO), Span::ZERO);
        }
        assert_eq!(Share::WHOLE.blend(Span::MAX, Span::from_micros(1)), Span::from_micros(1));
    }
}

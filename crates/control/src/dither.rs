//! Dither: devices that were cut off together must not come back together.

use crate::{backoff::Factor, chance::Chance, layout::laid_out, time::Span};

/// Spreads the first wait of an exchange evenly over `[x, factor·x]`. Later waits are multiples of the spread one and
/// are not spread again (RFC 7252 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dither {
    /// ACK_RANDOM_FACTOR of RFC 7252 §4.8; [`Factor::ONE`] for none.
    pub factor: Factor,
}

laid_out!(Dither { factor });

impl Dither {
    /// ACK_RANDOM_FACTOR = 1.5 (RFC 7252 §4.8).
    pub const RFC7252: Self = Self { factor: Factor::ONE_AND_A_HALF };
    /// No dither.
    pub const NONE: Self = Self { factor: Factor::ONE };

    /// `base`, spread.
    #[must_use]
    pub const fn spread(self, base: Span, chance: Chance) -> Span {
        chance.between(base, self.longest(base))
    }

    /// The longest that `base` can become.
    #[must_use]
    pub const fn longest(self, base: Span) -> Span {
        self.factor.times(base)
    }
}

//! The first wait to a peer that was never measured.

use crate::layout::laid_out;
use crate::time::Span;

/// What it is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blind {
    /// The default timeout times the number of exchanges open to the peer (draft-ietf-core-cocoa-03 §4.1).
    PerOpen,
    /// The default timeout doubled for every further exchange open to the peer (draft-bormann-core-cocoa-01 §3.1).
    Doubling,
    /// The default timeout.
    Plain,
}

laid_out!(Blind = PerOpen | Doubling | Plain);

impl Blind {
    /// The base of the first wait, with `open` exchanges open, the one that starts included.
    #[must_use]
    pub const fn base(self, default: Span, open: u16) -> Span {
        let further = open.saturating_sub(1) as u32;
        match self {
            Self::PerOpen => default.times(further.saturating_add(1)),
            Self::Doubling => default.times(match 1_u32.checked_shl(further) {
                Some(factor) => factor,
                None => u32::MAX,
            }),
            Self::Plain => default,
        }
    }
}

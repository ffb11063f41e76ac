use core::fmt;

use crate::message::{Code, number};

/// Why a [`CoapStack`](super::CoapStack) answers a request by itself with an error. Displayed it is one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// 4.02: a critical option that is not understood, stands too often, or has a value too short or too long (RFC 7252 §5.4).
    Option(u16),
    /// 4.00: Block1 or Block2 that is no block (RFC 7959 §2.2).
    NoBlock,
    /// 4.00: a block that does not hold what its option says.
    WrongLength,
    /// 4.00: a block behind the end of the representation.
    PastEnd,
    /// 4.08: blocks before this one are missing, or were forgotten.
    Incomplete,
    /// 4.08: the answer of which a later block is asked for was forgotten.
    Forgotten,
    /// 4.13: the body has more bytes than this.
    TooLarge(u32),
    /// With this code: a request in bursts that RFC 9177 forbids, or for which there is no room.
    Burst(Code),
}

impl Refusal {
    /// What it is answered with.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Option(_) => Code::BAD_OPTION,
            Self::NoBlock | Self::WrongLength | Self::PastEnd => Code::BAD_REQUEST,
            Self::Incomplete | Self::Forgotten => Code::REQUEST_ENTITY_INCOMPLETE,
            Self::TooLarge(_) => Code::REQUEST_ENTITY_TOO_LARGE,
            Self::Burst(code) => code,
        }
    }

    /// Whether it goes with the answer as a diagnostic payload (RFC 7252 §5.5.2): who wrote the request is to find out what is
    /// wrong with it.
    #[must_use]
    pub const fn is_explained(self) -> bool {
        matches!(self, Self::Option(_) | Self::NoBlock | Self::WrongLength | Self::PastEnd)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(number) => {
                write!(f, "critical option {number}")?;
                match number::to_name(*number) {
                    Some(name) => write!(f, " ({name}): "),
                    None => f.write_str(": "),
                }?;
                f.write_str("not understood, repeated, or of a wrong length")
            }
            Self::NoBlock => f.write_str("a block option that is none"),
            Self::WrongLength => f.write_str("a block that does not hold what its option says"),
            Self::PastEnd => f.write_str("a block behind the end"),
            Self::Incomplete => f.write_str("blocks before this one are missing"),
            Self::Forgotten => f.write_str("the answer whose later block this is was forgotten"),
            Self::TooLarge(most) => write!(f, "a body of more than {most} bytes"),
            Self::Burst(_) => f.write_str("a request in bursts that cannot be taken"),
        }
    }
}

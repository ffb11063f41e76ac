//! What access to a cell is made of, and what it refuses to be made of.

use super::levels::Levels;
use crate::probability::Probability;
use core::fmt;
use millpond_control::Span;

/// How devices come to send over a cell's uplink, and when they can be reached over its downlink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRules {
    /// How a device connects; none: all are connected all the time.
    pub connection: Option<Connection>,
    /// So long a packet of a connected device waits until it may go.
    pub grant: Span,
    /// How often packets are repeated, by coverage.
    pub levels: Levels,
    /// How much of the time each device may send.
    pub duty: Option<DutyCycle>,
}

/// How a device connects, stays connected and is reached while it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Devices compete for it; none: each gets it at once.
    pub random: Option<RandomAccess>,
    /// From the answer to a preamble until packets go.
    pub set_up: Span,
    /// A connection ends so long after its last packet.
    pub inactivity: Span,
    /// A device that is not connected listens once in so long, µs; 0: all the time.
    pub paging: u64,
    /// Not connected for so long, µs, it does not listen any more until it sends by itself.
    pub sleeps_after: Option<u64>,
}

/// Preambles that devices send at the same opportunity, each one of its choice. One that a single device sent is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomAccess {
    /// How many there are, for each coverage level.
    pub preambles: u16,
    /// From one opportunity to the next.
    pub every: Span,
    /// As many are answered at one opportunity, of each level; none: all.
    pub grants: Option<u16>,
    /// As often a device tries before what it has to send is dropped.
    pub attempts: u16,
    /// From an opportunity until a device knows whether it was answered.
    pub response: Span,
    /// After that it waits up to so long before it tries again.
    pub backoff: Span,
    /// Attempt i is heard with probability 1 - 1/e^i, as power is ramped (3GPP TR 37.868); else each is.
    pub ramping: bool,
}

/// A share of the time, and what a packet takes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DutyCycle {
    /// A packet that took T is followed by silence, T / share from its beginning.
    pub share: Probability,
    /// Bits per second of the radio.
    pub rate: u64,
    /// Bytes on top of each packet.
    pub overhead: u32,
}

/// Why there is no such access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessError {
    /// No preamble to choose, or no attempt to make.
    Nothing(&'static str),
    /// A time that cannot be 0 is.
    NoTime(&'static str),
    /// A share of 0.
    NoShare,
    /// Levels that are none, too many, without a share, or with repetitions out of range.
    Levels,
}

impl AccessRules {
    /// Whether devices can be given access so.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), AccessError> {
        if let Some(connection) = &self.connection {
            if connection.inactivity == Span::ZERO {
                return Err(AccessError::NoTime("inactivity"));
            }
            if let Some(random) = &connection.random {
                for (name, count) in [("preambles", random.preambles), ("attempts", random.attempts)] {
                    if count == 0 {
                        return Err(AccessError::Nothing(name));
                    }
                }
                if random.grants == Some(0) {
                    return Err(AccessError::Nothing("grants"));
                }
                if random.every == Span::ZERO {
                    return Err(AccessError::NoTime("every"));
                }
            }
        }
        match self.duty {
            Some(duty) if duty.share == Probability::ZERO || duty.rate == 0 => Err(AccessError::NoShare),
            _ => Ok(()),
        }
    }
}

impl AccessError {
    /// The key that is at fault.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Nothing(name) | Self::NoTime(name) => name,
            Self::NoShare => "duty_cycle",
            Self::Levels => "levels",
        }
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(_) => f.write_str("with 0 no device ever connects: write at least 1"),
            Self::NoTime("inactivity") => {
                f.write_str("a connection that ends before a packet goes: write a time above 0 s")
            }
            Self::NoTime(_) => f.write_str("opportunities at all times are none: write a time above 0 s"),
            Self::NoShare => {
                f.write_str("nothing is ever sent in 0 % of the time: write a share above 0, such as \"1 %\"")
            }
            Self::Levels => write!(
                f,
                "write up to {} levels, each with a share above 0 and 1 to {} repetitions",
                Levels::MOST,
                Levels::MOST_REPETITIONS
            ),
        }
    }
}

impl std::error::Error for AccessError {}

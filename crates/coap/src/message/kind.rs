use core::fmt;

/// How a message takes part in the message layer (RFC 7252 §3, field T).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// CON: repeated until it is acknowledged or reset.
    Confirmable = 0,
    /// NON: sent once, never acknowledged.
    NonConfirmable = 1,
    /// ACK: answers one confirmable message, empty or carrying the response.
    Acknowledgement = 2,
    /// RST: says that a message came in but meant nothing to its receiver.
    Reset = 3,
}

impl Kind {
    /// The kind in bits 5 and 4 of the first byte of a message; the other bits are not looked at.
    #[inline]
    pub(crate) const fn of_first_byte(first: u8) -> Self {
        match (first >> 4) & 0b11 {
            0 => Self::Confirmable,
            1 => Self::NonConfirmable,
            2 => Self::Acknowledgement,
            _ => Self::Reset,
        }
    }

    /// The short name of RFC 7252: `CON`, `NON`, `ACK` or `RST`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Confirmable => "CON",
            Self::NonConfirmable => "NON",
            Self::Acknowledgement => "ACK",
            Self::Reset => "RST",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

use core::iter::FusedIterator;

use super::{Fault, Uint};

/// First byte of the payload's frame (RFC 7252 §3).
pub(crate) const MARKER: u8 = 0xff;

/// One option of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opt<'a> {
    /// Option number, see [`number`](super::number).
    pub number: u16,
    /// Its bytes, as received.
    pub value: &'a [u8],
}

impl Opt<'_> {
    /// A receiver that does not know a critical option must not process the message (RFC 7252 §5.4.1).
    #[inline]
    pub const fn is_critical(&self) -> bool {
        super::is_critical(self.number)
    }

    /// The value as an unsigned integer (RFC 7252 §3.2); `None` if it does not fit 32 bits.
    #[inline]
    pub fn uint(&self) -> Option<u32> {
        Uint::read(self.value)
    }
}

/// The options of a message in the order of their numbers, repeated ones in the order of sending.
///
/// Infallible: the bytes were checked when the message was parsed.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
    number: u16,
}

impl<'a> Options<'a> {
    /// Over the bytes between token and payload marker, as [`Message::option_bytes`](super::Message::option_bytes) gives them. A
    /// walk through others ends where they are no options.
    #[must_use]
    #[inline]
    pub const fn over(checked: &'a [u8]) -> Self {
        Self { rest: checked, number: 0 }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Opt<'a>;

    #[inline]
    fn next(&mut self) -> Option<Opt<'a>> {
        let (&head, rest) = self.rest.split_first()?;
        let (number, value, rest) = split(head, rest, self.number).ok()?;
        self.number = number;
        self.rest = rest;
        Some(Opt { number, value })
    }
}

impl FusedIterator for Options<'_> {}

/// Takes one option apart: its first byte, the bytes after that, the number of the option before. Returns its number,
/// its value and what follows it. Each option takes at least its first byte, so a walk always ends.
#[inline]
pub(super) fn split(head: u8, rest: &[u8], previous: u16) -> Result<(u16, &[u8], &[u8]), Fault> {
    let (delta, rest) = extended(head >> 4, rest, Fault::ReservedDelta)?;
    let (length, rest) = extended(head & 0x0f, rest, Fault::ReservedLength)?;
    let number =
        u16::try_from(delta).ok().and_then(|delta| previous.checked_add(delta)).ok_or(Fault::NumberOverflow)?;
    let (value, rest) = rest.split_at_checked(length).ok_or(Fault::ValueTruncated)?;
    Ok((number, value, rest))
}

/// Reads a delta or length from its nibble and the bytes that extend it (RFC 7252 §3.1): 13 is followed by one byte,
/// 14 by two. At most 65804.
#[inline]
fn extended(nibble: u8, rest: &[u8], reserved: Fault) -> Result<(usize, &[u8]), Fault> {
    if nibble <= 12 { Ok((usize::from(nibble), rest)) } else { extended_far(nibble, rest, reserved) }
}

/// The same for one that is extended.
#[cold]
fn extended_far(nibble: u8, rest: &[u8], reserved: Fault) -> Result<(usize, &[u8]), Fault> {
    match nibble {
        13 => match rest {
            [byte, rest @ ..] => Ok((usize::from(*byte).saturating_add(13), rest)),
            [] => Err(Fault::OptionTruncated),
        },
        14 => match rest {
            [high, low, rest @ ..] => Ok((usize::from(u16::from_be_bytes([*high, *low])).saturating_add(269), rest)),
            _ => Err(Fault::OptionTruncated),
        },
        _ => Err(reserved),
    }
}

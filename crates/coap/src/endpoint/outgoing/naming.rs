//! How the copies of a request are distinguished, and which of them a piggybacked response names.
//!
//! docs/naming-copies.md has what is on the wire.

use core::ops::RangeInclusive;

use millpond_control::{Controller, Instant, Named, Naming, Span};

use crate::endpoint::{NamingOption, NamingOptions, exchanges::Exchange};
use crate::message::{HEADER, Message, Token, insert_option, replace_value};
use crate::parts;

/// The count of a first copy that asks whether the server knows the option. More copies than 250 are never sent.
const PROBE: u8 = 255;

/// Bytes kept behind the message for each copy after the first.
const OFFSET: usize = 4;

/// The longest header of an option.
const NEXT_HEADER: usize = 5;

/// What tells the copies of one message apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum CopyTag {
    /// Nothing.
    Nothing,
    /// A byte behind the token, from the second copy on.
    Token,
    /// The option Rexmit-Cnt.
    Count,
    /// The same, but the first copy asks whether the server knows it.
    Probe,
    /// The option that distinguishes retransmissions from the first.
    Flag,
    /// The option with the time of leaving.
    Timestamp,
}

/// Whether copies can be distinguished as this controller wishes.
pub(in crate::endpoint) fn is_there(controller: &impl Controller) -> bool {
    parts::COPY_OPTIONS || matches!(controller.wishes().naming, Naming::None | Naming::Token)
}

impl CopyTag {
    /// What grants a wish.
    pub(in crate::endpoint) const fn wished(naming: Naming) -> Self {
        match naming {
            Naming::Token => Self::Token,
            _ if !parts::COPY_OPTIONS => Self::Nothing,
            Naming::Count => Self::Count,
            Naming::Flag => Self::Flag,
            Naming::Timestamp => Self::Timestamp,
            // What is not known here cannot be granted.
            _ => Self::Nothing,
        }
    }

    /// The number of its option, if it is one.
    pub(in crate::endpoint) const fn option(self, options: &NamingOptions) -> Option<u16> {
        match self {
            _ if !parts::COPY_OPTIONS => None,
            Self::Nothing | Self::Token => None,
            Self::Count | Self::Probe => Some(options.count.number),
            Self::Flag => Some(options.flag.number),
            Self::Timestamp => Some(options.timestamp.number),
        }
    }

    /// By how many bytes the longest copy exceeds the message as it is without. An option's header takes at most three.
    pub(in crate::endpoint) const fn room(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Token => 1,
            Self::Count | Self::Probe | Self::Flag => 4,
            Self::Timestamp => 7,
        }
    }

    /// Bytes that a buffer should have beyond the message for the longest copy and what is kept of so many after the
    /// first. While an option is inserted, the header of the one behind it is there twice.
    pub(in crate::endpoint) fn buffer(self, copies: u8) -> usize {
        self.room().saturating_add(NEXT_HEADER).saturating_add(usize::from(copies).saturating_mul(OFFSET))
    }

    /// What the option says in this copy, which left then. Of 32 bits of microseconds as a timestamp the upper ones
    /// are cut off: it is compared with those of the same message alone.
    fn value(self, copy: u8, left: Instant) -> Value {
        match (self, copy) {
            (Self::Probe, 0) => Value::byte(PROBE),
            (Self::Count | Self::Flag, 0) | (Self::Nothing | Self::Token, _) => Value::EMPTY,
            (Self::Count | Self::Probe, copy) => Value::byte(copy),
            (Self::Flag, _) => Value::byte(1),
            (Self::Timestamp, _) => Value { bytes: (left.as_micros() as u32).to_be_bytes(), len: 4 },
        }
    }
}

/// The value of an option that names a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    bytes: [u8; 4],
    len: u8,
}

impl Value {
    const EMPTY: Self = Self { bytes: [0; 4], len: 0 };

    const fn byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], len: 1 }
    }

    /// `None` if there are more bytes or fewer than there may be.
    fn read(value: &[u8], lengths: &RangeInclusive<usize>) -> Option<Self> {
        let mut bytes = [0; 4];
        bytes.get_mut(..value.len()).filter(|_| lengths.contains(&value.len()))?.copy_from_slice(value);
        Some(Self { bytes, len: value.len() as u8 })
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Which of the options a peer's server echoes, as far as a response has told.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::endpoint) struct Echoes {
    known: u8,
    echoed: u8,
}

impl Echoes {
    /// Whether the server echoes this one; `None` if nothing has told yet.
    fn get(self, mark: CopyTag) -> Option<bool> {
        (self.known & Self::bit(mark) != 0).then_some(self.echoed & Self::bit(mark) != 0)
    }

    /// A piggybacked response to a request with this option had it, or lacked it. Only the first one counts.
    pub(in crate::endpoint) fn tell(&mut self, mark: CopyTag, echoed: bool) {
        let bit = Self::bit(mark);
        if self.known & bit == 0 {
            self.known |= bit;
            self.echoed |= if echoed { bit } else { 0 };
        }
    }

    /// What a message for this peer is marked with, if this is wished.
    pub(in crate::endpoint) fn granted(self, wished: CopyTag) -> CopyTag {
        match (wished, self.get(wished)) {
            (_, Some(false)) => CopyTag::Nothing,
            (CopyTag::Count | CopyTag::Probe, None) => CopyTag::Probe,
            (CopyTag::Count | CopyTag::Probe, Some(true)) => CopyTag::Count,
            _ => wished,
        }
    }

    /// One bit for each option. A token needs no server that knows it.
    const fn bit(mark: CopyTag) -> u8 {
        match mark {
            CopyTag::Nothing | CopyTag::Token => 0,
            CopyTag::Count | CopyTag::Probe => 1,
            CopyTag::Flag => 2,
            CopyTag::Timestamp => 4,
        }
    }
}

/// What a request asks to be echoed: count, flag, timestamp.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Echo([Option<Value>; 3]);

impl Echo {
    /// `None` if nothing. An option whose length is none of its own is as one that is not known (RFC 7252 §5.4.3), and
    /// so is one that comes again (§5.4.5).
    #[inline]
    pub(in crate::endpoint) fn of(request: &Message<'_>, options: &NamingOptions) -> Option<Self> {
        // Far above all that is registered, so that most requests are done with here.
        let may_ask = parts::COPY_OPTIONS && request.last_option() >= NamingOptions::LOWEST;
        if may_ask { Self::read(request, options) } else { None }
    }

    #[cold]
    fn read(request: &Message<'_>, options: &NamingOptions) -> Option<Self> {
        let value = |option: NamingOption, lengths| {
            let value = request.option(option.number).filter(|_| option.echoed)?;
            Value::read(value, &lengths)
        };
        let count = value(options.count, 0..=1);
        let flag = value(options.flag, 0..=1);
        let timestamp = value(options.timestamp, 4..=4);
        (count.is_some() || flag.is_some() || timestamp.is_some()).then_some(Self([count, flag, timestamp]))
    }

    /// Adds what was asked for to the response that fills the buffer from `start` on, as far as there is room and the
    /// application has not said something there itself.
    #[inline(never)]
    pub(in crate::endpoint) fn add(
        self,
        buffer: &mut alloc::vec::Vec<u8>,
        start: usize,
        options: &NamingOptions,
        limit: usize,
    ) {
        let numbers = [options.count.number, options.flag.number, options.timestamp.number];
        for (number, value) in numbers.into_iter().zip(self.0) {
            if let Some(value) = value {
                insert_option(buffer, start, number, value.as_bytes(), limit);
            }
        }
    }
}

/// How its copies are distinguished. Behind the message in its buffer stand, if they are, the microseconds from the first
/// copy to each later one, four bytes each.
impl Exchange {
    /// The message as it left last, or will leave first.
    pub(in crate::endpoint) fn message(&self) -> &[u8] {
        self.bytes.get(..self.message_length()).unwrap_or_default()
    }

    #[inline]
    pub(in crate::endpoint) fn message_length(&self) -> usize {
        if self.mark == CopyTag::Nothing {
            return self.bytes.len();
        }
        self.bytes.len().saturating_sub(usize::from(self.retransmissions).saturating_mul(OFFSET))
    }

    /// Its first copy is about to leave, now, and this distinguishes it from others.
    pub(in crate::endpoint) fn mark_first(&mut self, mark: CopyTag, options: &NamingOptions, now: Instant) {
        self.mark = mark;
        if let Some(number) = mark.option(options)
            && !insert_option(&mut self.bytes, 0, number, mark.value(0, now).as_bytes(), usize::MAX)
        {
            self.mark = CopyTag::Nothing;
        }
    }

    /// A retransmission is about to leave, now.
    #[inline]
    pub(in crate::endpoint) fn next_copy(&mut self, now: Instant, options: &NamingOptions) {
        let end = self.message_length();
        self.retransmissions = self.retransmissions.saturating_add(1);
        self.last = now;
        if self.mark != CopyTag::Nothing {
            self.mark_additional(end, now, options);
        }
    }

    #[inline(never)]
    fn mark_additional(&mut self, end: usize, now: Instant, options: &NamingOptions) {
        let copy = self.retransmissions;
        self.bytes.extend_from_slice(&now.since(self.first).as_micros().to_le_bytes());
        if let Some(number) = self.mark.option(options) {
            return replace_value(&mut self.bytes, end, number, self.mark.value(copy, now).as_bytes());
        }
        let Some(first) = self.bytes.first_mut() else { return };
        let place = HEADER.saturating_add(usize::from(*first & 0x0f));
        if copy > 1 {
            // The number of the copy before is the last byte of the token.
            if let Some(byte) = self.bytes.get_mut(place.saturating_sub(1)) {
                *byte = copy;
            }
        } else if place <= end {
            *first = first.saturating_add(1);
            self.bytes.insert(place, copy);
        }
    }

    /// Which of the transmissions has this token. If they are distinguished by something else or nothing, all have it that
    /// the first has.
    #[inline]
    pub(in crate::endpoint) fn copy_with(&self, token: Token) -> Option<u8> {
        if self.token() == token {
            return Some(0);
        }
        if self.mark == CopyTag::Token { self.further_copy_with(token) } else { None }
    }

    fn further_copy_with(&self, token: Token) -> Option<u8> {
        let (rest, copy) = token.split_last()?;
        (rest == self.token() && (1..=self.retransmissions).contains(&copy)).then_some(copy)
    }

    /// The copy that a piggybacked response names: one that was sent, by exactly what it carried.
    pub(in crate::endpoint) fn named_by(&self, response: &Message<'_>, options: &NamingOptions) -> Named {
        let Some(number) = self.mark.option(options) else {
            let named = self.copy_with(response.token).filter(|_| self.mark == CopyTag::Token);
            return named.map_or(Named::Nothing, Named::Copy);
        };
        let Some(echoed) = response.option(number) else { return Named::Nothing };
        let is_it = |copy: &u8| self.left(*copy).is_some_and(|left| self.mark.value(*copy, left).as_bytes() == echoed);
        match (0..=self.retransmissions).find(is_it) {
            None => Named::Nothing,
            Some(0) => Named::Copy(0),
            Some(_) if self.mark == CopyTag::Flag => Named::Further,
            Some(copy) => Named::Copy(copy),
        }
    }

    /// When a copy left. `None` if it was not sent, or so long after the first that nothing is known of it.
    pub(in crate::endpoint) fn left(&self, copy: u8) -> Option<Instant> {
        match copy {
            0 => Some(self.first),
            copy if copy == self.retransmissions => Some(self.last),
            copy => {
                let at =
                    self.message_length().saturating_add(usize::from(copy).saturating_sub(1).saturating_mul(OFFSET));
                let offset = self.bytes.get(at..)?.first_chunk::<OFFSET>()?;
                let offset = Span::from_micros(u32::from_le_bytes(*offset));
                (offset < Span::MAX).then(|| self.first.after(offset))
            }
        }
    }
}

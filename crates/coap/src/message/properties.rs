//! What is known of options: RFC 7252 §5.10 table 4, and the RFCs that registered further ones.
//!
//! Three of their properties follow from the number alone (§5.4.6) and so are known of every option: whether it is
//! [critical](is_critical), [unsafe to forward](is_unsafe_to_forward), and [part of a cache key](is_cache_key). The others
//! stand in one table here: how long a value may be, whether it may be repeated, where it may stand.

use super::{Opt, Options, number};

/// Whether a receiver that does not know the option must not process the message (RFC 7252 §5.4.1).
#[inline]
#[must_use]
pub const fn is_critical(number: u16) -> bool {
    number & 1 == 1
}

/// Whether a proxy that does not know the option must not forward the message (RFC 7252 §5.4.2, §5.7.1).
#[inline]
#[must_use]
pub const fn is_unsafe_to_forward(number: u16) -> bool {
    number & 0b10 == 0b10
}

/// Whether requests that differ in this option may ask for different representations (RFC 7252 §5.4.2, §5.6).
///
/// Not those that are NoCacheKey by their numbers, nor those of which it is known what they mean to a cache: ETag
/// (§5.10.6.2), and what says how a representation travels and not which: Observe, Block1, Block2, Q-Block1, Q-Block2.
#[must_use]
pub const fn is_cache_key(number: u16) -> bool {
    const NO_CACHE_KEY: u16 = 0b1_1100;
    let is_no_cache_key = number & 0b1_1110 == NO_CACHE_KEY;
    let is_understood = matches!(
        number,
        number::ETAG | number::OBSERVE | number::BLOCK1 | number::BLOCK2 | number::Q_BLOCK1 | number::Q_BLOCK2
    );
    !is_no_cache_key && !is_understood
}

/// Whether the option says how a body or an observation travels, so that the layer that carries these sets it, and not the
/// application.
#[must_use]
pub const fn is_of_transfer(number: u16) -> bool {
    matches!(
        number,
        number::OBSERVE
            | number::Q_BLOCK1
            | number::BLOCK2
            | number::BLOCK1
            | number::SIZE2
            | number::Q_BLOCK2
            | number::SIZE1
            | number::REQUEST_TAG
    )
}

/// What does not follow from an option's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The option's number.
    pub number: u16,
    /// Bytes of the shortest value.
    pub shortest: u16,
    /// Bytes of the longest value.
    pub longest: u16,
    /// A message may have it more than once. ETag may be repeated in requests only (RFC 7252 §5.10.6.1).
    pub is_repeatable: bool,
    /// It is defined for responses, be it for requests as well or not.
    pub is_for_responses: bool,
}

impl Properties {
    /// Those of the option with this number; `None` if it is not in the table.
    #[must_use]
    pub fn of(number: u16) -> Option<&'static Self> {
        let place = TABLE.binary_search_by_key(&number, |properties| properties.number).ok()?;
        TABLE.get(place)
    }

    const fn new(number: u16, (shortest, longest): (u16, u16)) -> Self {
        Self { number, shortest, longest, is_repeatable: false, is_for_responses: false }
    }

    const fn repeatable(self) -> Self {
        Self { is_repeatable: true, ..self }
    }

    const fn for_responses(self) -> Self {
        Self { is_for_responses: true, ..self }
    }
}

/// All that is known, by number.
const TABLE: [Properties; 27] = [
    // RFC 7252 §5.10.
    Properties::new(number::IF_MATCH, (0, 8)).repeatable(),
    Properties::new(number::URI_HOST, (1, 255)),
    Properties::new(number::ETAG, (1, 8)).repeatable().for_responses(),
    Properties::new(number::IF_NONE_MATCH, (0, 0)),
    // RFC 7641 §2.
    Properties::new(number::OBSERVE, (0, 3)).for_responses(),
    Properties::new(number::URI_PORT, (0, 2)),
    Properties::new(number::LOCATION_PATH, (0, 255)).repeatable().for_responses(),
    // RFC 8613 §2.
    Properties::new(number::OSCORE, (0, 255)).for_responses(),
    Properties::new(number::URI_PATH, (0, 255)).repeatable(),
    Properties::new(number::CONTENT_FORMAT, (0, 2)).for_responses(),
    Properties::new(number::MAX_AGE, (0, 4)).for_responses(),
    Properties::new(number::URI_QUERY, (0, 255)).repeatable(),
    // RFC 8768 §3.
    Properties::new(number::HOP_LIMIT, (1, 1)),
    Properties::new(number::ACCEPT, (0, 2)),
    // RFC 9177 §3.1: of the two only Q-Block2 may be repeated.
    Properties::new(number::Q_BLOCK1, (0, 3)).for_responses(),
    Properties::new(number::LOCATION_QUERY, (0, 255)).repeatable().for_responses(),
    // RFC 9668 §3.1.
    Properties::new(number::EDHOC, (0, 0)),
    // RFC 7959 §2.1, §4.
    Properties::new(number::BLOCK2, (0, 3)).for_responses(),
    Properties::new(number::BLOCK1, (0, 3)).for_responses(),
    Properties::new(number::SIZE2, (0, 4)).for_responses(),
    Properties::new(number::Q_BLOCK2, (0, 3)).repeatable().for_responses(),
    Properties::new(number::PROXY_URI, (1, 1_034)),
    Properties::new(number::PROXY_SCHEME, (1, 255)),
    Properties::new(number::SIZE1, (0, 4)).for_responses(),
    // RFC 9175 §2.2.1, §3.2.1.
    Properties::new(number::ECHO, (1, 40)).for_responses(),
    // RFC 7967 §2.
    Properties::new(number::NO_RESPONSE, (0, 1)),
    Properties::new(number::REQUEST_TAG, (0, 8)).repeatable(),
];

impl Opt<'_> {
    /// A proxy that does not know it must not forward the message: see [`is_unsafe_to_forward`].
    #[inline]
    #[must_use]
    pub const fn is_unsafe_to_forward(&self) -> bool {
        is_unsafe_to_forward(self.number)
    }

    /// Requests that differ in it may ask for different representations: see [`is_cache_key`].
    #[inline]
    #[must_use]
    pub const fn is_cache_key(&self) -> bool {
        is_cache_key(self.number)
    }
}

/// The options of a message each of which may stand where it stands. See [`Options::legal`].
#[derive(Clone, Debug)]
pub struct Legal<'a> {
    all: Options<'a>,
    previous: Option<u16>,
}

impl<'a> Options<'a> {
    /// Without those that are to be treated as if they were not known: whose values are too short or too long (RFC 7252
    /// §5.4.3), and of those that may stand once only all but the first (§5.4.5). Nothing is left out of which only the
    /// number is known.
    pub const fn legal(self) -> Legal<'a> {
        Legal { all: self, previous: None }
    }

    /// The first critical option because of which the message must not be processed (RFC 7252 §5.4.1): one that is not
    /// `known`, or that is to be treated as if it were not, as [`legal`](Self::legal) has it.
    pub fn refused(self, known: impl Fn(u16) -> bool) -> Option<u16> {
        let mut legal = self.legal();
        loop {
            let (option, is_legal) = legal.judge()?;
            if option.is_critical() && !(is_legal && known(option.number)) {
                return Some(option.number);
            }
        }
    }
}

impl<'a> Legal<'a> {
    /// The next option, and whether it may stand there.
    #[inline]
    pub(crate) fn judge(&mut self) -> Option<(Opt<'a>, bool)> {
        let option = self.all.next()?;
        let is_repeated = self.previous.replace(option.number) == Some(option.number);
        let is_legal = Properties::of(option.number).is_none_or(|properties| {
            let length = option.value.len();
            (usize::from(properties.shortest)..=usize::from(properties.longest)).contains(&length)
                && (properties.is_repeatable || !is_repeated)
        });
        Some((option, is_legal))
    }
}

impl<'a> Iterator for Legal<'a> {
    type Item = Opt<'a>;

    #[inline]
    fn next(&mut self) -> Option<Opt<'a>> {
        loop {
            let (option, is_legal) = self.judge()?;
            if is_legal {
                return Some(option);
            }
        }
    }
}

/// Whether a response may have this critical option: it is defined for responses.
pub(crate) fn is_for_responses(number: u16) -> bool {
    // What OSCORE protects nobody here can read, and what it does not is not to be believed (RFC 8613 §8.4).
    number != self::number::OSCORE && Properties::of(number).is_some_and(|properties| properties.is_for_responses)
}

/// Whether an option is neither of a layer of messages nor of a stack above, so that it is for the caller to make use of.
pub(crate) fn is_callers(number: u16) -> bool {
    number == self::number::OSCORE || Properties::of(number).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(TABLE.is_sorted_by(|one, other| one.number < other.number));
        assert!(TABLE.iter().all(|option| option.shortest <= option.longest));
    }
}

//! Tokens of more than 8 bytes (RFC 8974) that peers gave their requests, each once, within a budget of bytes.
//!
//! A record names its token by a [`Token`] of fixed size, so that no record grows by the long tokens that few peers send. A token
//! is held as long as a request is unanswered or an observation lasts that came with it. Beyond that it stays until there is no
//! room for another: the rest of a body may still be sent with it.

use alloc::{boxed::Box, vec::Vec};

use crate::message::{LONGEST_TOKEN, Token};

/// Long tokens by the peers that gave them.
#[derive(Debug)]
pub(crate) struct LongTokens<A> {
    places: Vec<Place<A>>,
    limits: Limits,
    /// Tokens that ever came, which is what is newer.
    came: u64,
}

/// What there is room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) tokens: u16,
    pub(crate) bytes: usize,
    /// A network has at most this part of either.
    pub(crate) share: u16,
}

#[derive(Debug)]
struct Place<A> {
    peer: A,
    network: u64,
    /// Nothing if the place is free.
    bytes: Box<[u8]>,
    holders: u32,
    /// When it came last, counted in tokens.
    came: u64,
    generation: u16,
}

impl<A: Copy + Eq> LongTokens<A> {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self { places: Vec::new(), limits, came: 0 }
    }

    /// A peer in this network gave its request a token. `None` if there is no room for it beside those that are held.
    pub(crate) fn keep(&mut self, peer: A, network: u64, token: &[u8]) -> Option<Token> {
        self.came = self.came.wrapping_add(1);
        let is_it = |place: &Place<A>| place.peer == peer && *place.bytes == *token;
        if let Some(slot) = self.places.iter().position(is_it) {
            self.places.get_mut(slot)?.came = self.came;
            return self.name(slot);
        }
        let Limits { tokens, bytes, share } = self.limits;
        let (tokens, share) = (usize::from(tokens), usize::from(share).max(1));
        let (its_tokens, its_bytes) = (tokens.div_ceil(share), bytes.div_euclid(share));
        self.make_room(|place| place.network == network, its_tokens, its_bytes, token.len())?;
        self.make_room(|_| true, tokens, bytes, token.len())?;
        let place = Place { peer, network, bytes: token.into(), holders: 0, came: self.came, generation: 0 };
        let slot = match self.places.iter_mut().enumerate().find(|(_, place)| place.is_free()) {
            Some((slot, free)) => {
                let generation = free.generation.wrapping_add(1);
                *free = Place { generation, ..place };
                slot
            }
            None => {
                self.places.push(place);
                self.places.len().saturating_sub(1)
            }
        };
        self.name(slot)
    }

    /// Bytes that one more token of so many adds to what is held, at most.
    pub(crate) fn growth(&self, length: usize) -> usize {
        let is_full = self.places.len() == self.places.capacity();
        let places = if is_full { self.places.capacity().max(4) } else { 0 };
        places.saturating_mul(size_of::<Place<A>>()).saturating_add(length)
    }

    /// Forgets the oldest of these that nobody holds until there is room for one more of so many bytes.
    fn make_room(
        &mut self,
        is_one: impl Fn(&Place<A>) -> bool,
        most: usize,
        most_bytes: usize,
        length: usize,
    ) -> Option<()> {
        loop {
            let ones = || self.places.iter().enumerate().filter(|(_, place)| !place.is_free() && is_one(place));
            let (count, bytes) = ones().fold((0_usize, length), |(count, bytes), (_, place)| {
                (count.saturating_add(1), bytes.saturating_add(place.bytes.len()))
            });
            if count < most && bytes <= most_bytes {
                return Some(());
            }
            let oldest = ones().filter(|(_, place)| place.holders == 0).min_by_key(|(_, place)| place.came);
            let slot = oldest.map(|(slot, _)| slot)?;
            self.places.get_mut(slot)?.bytes = Box::default();
        }
    }

    fn name(&self, slot: usize) -> Option<Token> {
        let place = self.places.get(slot)?;
        Some(Token::long(u16::try_from(slot).ok()?, place.generation, place.bytes.len()))
    }

    fn slot(&self, token: Token) -> Option<usize> {
        let (slot, generation) = token.number()?;
        let slot = usize::from(slot);
        let place = self.places.get(slot)?;
        (place.generation == generation && !place.is_free()).then_some(slot)
    }

    /// The bytes of a long token of a peer, if it is kept.
    pub(crate) fn bytes(&self, peer: A, token: Token) -> Option<&[u8]> {
        let place = self.places.get(self.slot(token)?)?;
        (place.peer == peer).then_some(&*place.bytes)
    }

    /// One more or one fewer needs a token.
    pub(crate) fn hold(&mut self, token: Token, is_held: bool) {
        let Some(place) = self.slot(token).and_then(|slot| self.places.get_mut(slot)) else { return };
        place.holders = if is_held { place.holders.saturating_add(1) } else { place.holders.saturating_sub(1) };
    }

    /// Makes room again if nobody holds a token.
    pub(crate) fn remove(&mut self, token: Token) {
        let place = self.slot(token).and_then(|slot| self.places.get_mut(slot));
        if let Some(place) = place.filter(|place| place.holders == 0) {
            place.bytes = Box::default();
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let bytes = self.places.iter().map(|place| place.bytes.len()).sum::<usize>();
        size_of::<Self>()
            .saturating_add(self.places.capacity().saturating_mul(size_of::<Place<A>>()))
            .saturating_add(bytes)
    }
}

impl<A> Place<A> {
    fn is_free(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A token as it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spelled<'a> {
    Short(Token),
    Long(&'a [u8]),
}

impl Spelled<'_> {
    /// Bytes that it has more than the longest short one.
    pub(crate) fn beyond(&self) -> usize {
        match self {
            Self::Short(_) => 0,
            Self::Long(bytes) => bytes.len().min(LONGEST_TOKEN).saturating_sub(Token::MAX),
        }
    }
}

/// A short token of ours as a longer one: with zeros behind it.
pub(crate) fn padded(token: Token, length: usize) -> Option<Vec<u8>> {
    if token.is_long() || token.len() != Token::MAX || length <= Token::MAX {
        return None;
    }
    let mut bytes = token.as_bytes().to_vec();
    bytes.resize(length, 0);
    Some(bytes)
}

/// The short token that was made longer, if it is one of ours; else one that nobody keeps.
pub(crate) fn unpadded(token: &[u8], length: usize) -> Token {
    let own = token.split_at_checked(Token::MAX).filter(|_| token.len() == length);
    let own = own.filter(|(_, zeros)| zeros.iter().all(|byte| *byte == 0));
    own.and_then(|(own, _)| Token::new(own)).unwrap_or_else(|| Token::not_kept(token.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { tokens: 4, bytes: 400, share: 2 };

    #[test]
    fn a_token_is_kept_once_and_for_its_peer_alone() {
        let mut tokens = LongTokens::new(LIMITS);
        let one = tokens.keep(1, 7, &[1; 20]).unwrap();
        assert_eq!((tokens.keep(1, 7, &[1; 20]), one.len(), one.is_long()), (Some(one), 20, true));
        let other = tokens.keep(2, 8, &[1; 20]).unwrap();
        assert_ne!(other, one);
        assert_eq!((tokens.bytes(1, one), tokens.bytes(2, one)), (Some(&[1; 20][..]), None));
    }

    #[test]
    fn the_oldest_that_nobody_holds_makes_room_and_its_name_is_no_other_ones() {
        let mut tokens = LongTokens::new(LIMITS);
        let [one, two] = [1, 2].map(|byte| tokens.keep(1, 7, &[byte; 20]).unwrap());
        tokens.hold(one, true);
        let three = tokens.keep(1, 7, &[3; 20]).unwrap();
        assert_eq!((tokens.bytes(1, one), tokens.bytes(1, two)), (Some(&[1; 20][..]), None));
        tokens.hold(three, true);
        assert_eq!(tokens.keep(1, 7, &[4; 20]), None, "both of this network's places are held");
        assert!(tokens.keep(2, 8, &[4; 20]).is_some(), "another network has its own");
        tokens.hold(one, false);
        assert!(tokens.keep(1, 7, &[4; 20]).is_some());
        assert_eq!(tokens.bytes(1, one), None);
    }

    #[test]
    fn a_network_has_its_share_of_the_bytes() {
        let mut tokens = LongTokens::new(LIMITS);
        assert_eq!(tokens.keep(1, 7, &[1; 201]), None);
        let one = tokens.keep(1, 7, &[1; 200]).unwrap();
        let two = tokens.keep(1, 7, &[2; 9]).unwrap();
        assert_eq!((tokens.bytes(1, one), tokens.bytes(1, two)), (None, Some(&[2; 9][..])));
    }
}

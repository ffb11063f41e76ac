use alloc::{boxed::Box, vec::Vec};

use millpond_control::Instant;

use crate::endpoint::{
    RequestId,
    message_ids::later,
    naming::Echo,
    slots::{Linked, Links, List, NONE, Slots},
};
use crate::long_tokens::{Limits, LongTokens};
use crate::message::{MessageId, Token};

/// How a request is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum ResponseMode {
    /// The request is confirmable and not acknowledged: the response can be piggybacked.
    Piggybacked,
    /// The request is confirmable and acknowledged: the response is a separate one.
    Separate,
    /// The request is non-confirmable.
    NonConfirmable,
    /// The same, and it came to a group: the response leaves when `due`.
    Delayed,
}

/// A request that the application has not answered.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Request<A> {
    links: Links,
    pub(in crate::endpoint) from: A,
    pub(in crate::endpoint) token: Token,
    pub(in crate::endpoint) id: MessageId,
    pub(in crate::endpoint) mode: ResponseMode,
    /// It may change something.
    pub(in crate::endpoint) changes: bool,
    /// When it must be acknowledged, or is to be answered.
    pub(in crate::endpoint) due: Instant,
}

impl<A> Linked for Request<A> {
    fn links(&self) -> &Links {
        &self.links
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The requests that the application has not answered, in the order in which they came.
///
/// Each is due the same time after its arrival, so the first that awaits its acknowledgement is the first to be due.
#[derive(Debug)]
pub(in crate::endpoint) struct Requests<A> {
    slots: Slots<Request<A>>,
    /// What they ask to be echoed, by slot, as far as the last one that asked for anything.
    echoes: Vec<Option<Echo>>,
    order: List,
    /// The first in order that awaits its acknowledgement, or one before it.
    first_unacknowledged: u32,
    /// Tokens that they came with and that are too long for their places.
    long_tokens: Option<Box<LongTokens<A>>>,
}

/// A judgement: a mebibyte of tokens, of which no network has more than a quarter.
const LONG_TOKENS: Limits = Limits { tokens: 1_024, bytes: 1 << 20, share: 4 };

impl<A: Copy + Eq> Requests<A> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self {
            slots: Slots::new(),
            echoes: Vec::new(),
            order: List::EMPTY,
            first_unacknowledged: NONE,
            long_tokens: None,
        }
    }

    /// Bytes that another token of more than 8 adds to what is held, at most.
    #[cold]
    pub(in crate::endpoint) fn token_growth(&self, length: usize) -> usize {
        let fresh = LongTokens::<A>::new(LONG_TOKENS);
        let tokens = self.long_tokens.as_deref();
        let own = if tokens.is_none() { size_of::<LongTokens<A>>() } else { 0 };
        tokens.unwrap_or(&fresh).growth(length).saturating_add(own)
    }

    /// Keeps a token of more than 8 bytes that a request came with, if there is room for it.
    #[cold]
    pub(in crate::endpoint) fn keep_token(&mut self, peer: A, network: u64, token: &[u8]) -> Option<Token> {
        let tokens = self.long_tokens.get_or_insert_with(|| Box::new(LongTokens::new(LONG_TOKENS)));
        tokens.keep(peer, network, token)
    }

    /// The bytes of such a token.
    #[cold]
    pub(in crate::endpoint) fn token_bytes(&self, peer: A, token: Token) -> Option<&[u8]> {
        self.long_tokens.as_deref()?.bytes(peer, token)
    }

    /// Something more needs such a token, or needs it no more.
    #[inline]
    pub(in crate::endpoint) fn hold_token(&mut self, token: Token, is_held: bool) {
        if let Some(tokens) = self.long_tokens.as_deref_mut() {
            tokens.hold(token, is_held);
        }
    }

    pub(in crate::endpoint) fn len(&self) -> u32 {
        self.slots.taken()
    }

    pub(in crate::endpoint) fn memory(&self) -> usize {
        let echoes = self.echoes.capacity().wrapping_mul(size_of::<Option<Echo>>());
        let tokens = self.long_tokens.as_deref().map_or(0, LongTokens::memory);
        self.slots.memory().saturating_add(echoes).saturating_add(tokens)
    }

    /// Bytes that one more request adds to what is held, at most; zero as long as there is room.
    pub(in crate::endpoint) fn growth(&self, asks_for_echo: bool) -> usize {
        let slots = self.slots.growth();
        let next = self.slots.ever_taken();
        if !asks_for_echo || next < self.echoes.capacity() {
            return slots;
        }
        let more = self.echo_room(next).saturating_sub(self.echoes.capacity());
        slots.saturating_add(more.saturating_mul(size_of::<Option<Echo>>()))
    }

    /// For so many requests there is room once what one in this slot asks is noted.
    fn echo_room(&self, slot: usize) -> usize {
        let room = self.echoes.capacity();
        if slot < room { room } else { room.saturating_mul(2).max(slot.saturating_add(1)) }
    }

    /// What a request asks to be echoed.
    #[inline]
    pub(in crate::endpoint) fn echo(&self, slot: u32) -> Option<Echo> {
        self.echoes.get(slot as usize).copied().flatten()
    }

    #[inline]
    pub(in crate::endpoint) fn get(&self, slot: u32) -> Option<&Request<A>> {
        self.slots.get(slot)
    }

    /// What is in a slot, whether it is still that of a request or not.
    #[inline]
    pub(in crate::endpoint) fn peek(&self, slot: u32) -> Option<&Request<A>> {
        self.slots.peek(slot)
    }

    #[inline]
    pub(in crate::endpoint) fn find(&self, id: RequestId) -> Option<(u32, Request<A>)> {
        if !self.slots.is(id.slot, id.generation) {
            return None;
        }
        self.slots.get(id.slot).map(|request| (id.slot, *request))
    }

    #[inline]
    pub(in crate::endpoint) fn name(&self, slot: u32) -> RequestId {
        RequestId { slot, generation: self.slots.generation(slot) }
    }

    /// Adds a request that came in now.
    #[inline]
    pub(in crate::endpoint) fn add(
        &mut self,
        from: A,
        id: MessageId,
        token: Token,
        (mode, changes): (ResponseMode, bool),
        due: Instant,
    ) -> u32 {
        let slot = self.slots.put(Request { links: Links::NOWHERE, from, token, id, mode, changes, due });
        self.order.push(&mut self.slots, slot);
        self.hold_token(token, true);
        if self.first_unacknowledged == NONE {
            self.first_unacknowledged = slot;
        }
        slot
    }

    /// Notes what a request asks to be echoed, or that it asks for nothing.
    #[cold]
    pub(in crate::endpoint) fn set_echo(&mut self, slot: u32, echo: Option<Echo>) {
        let slot = slot as usize;
        if self.echoes.len() <= slot && echo.is_some() {
            self.echoes.reserve_exact(self.echo_room(slot).saturating_sub(self.echoes.len()));
            self.echoes.resize(slot.saturating_add(1), None);
        }
        if let Some(place) = self.echoes.get_mut(slot) {
            *place = echo;
        }
    }

    /// Those that somebody asked are gone.
    #[cold]
    pub(in crate::endpoint) fn remove_of(&mut self, peer: A) {
        let its = self.slots.iter().filter(|(_, request)| request.from == peer).map(|(slot, _)| slot);
        for slot in its.collect::<Vec<_>>() {
            self.remove(slot);
        }
    }

    #[inline]
    pub(in crate::endpoint) fn remove(&mut self, slot: u32) {
        if self.first_unacknowledged == slot {
            self.first_unacknowledged = List::after(&self.slots, slot);
        }
        self.order.remove(&mut self.slots, slot);
        if let Some(token) = self.slots.get(slot).map(|request| request.token) {
            self.hold_token(token, false);
        }
        self.slots.release(slot);
        if !self.echoes.is_empty() {
            self.set_echo(slot, None);
        }
    }

    /// The request that must be acknowledged first, and when.
    #[inline]
    pub(in crate::endpoint) fn first_due(&mut self) -> Option<(Instant, u32)> {
        while let Some(request) = self.slots.get(self.first_unacknowledged) {
            if request.mode == ResponseMode::Piggybacked {
                return Some((request.due, self.first_unacknowledged));
            }
            self.first_unacknowledged = List::after(&self.slots, self.first_unacknowledged);
        }
        None
    }

    /// The request was acknowledged without a response.
    pub(in crate::endpoint) fn acknowledged(&mut self, slot: u32) {
        if let Some(request) = self.slots.get_mut(slot) {
            request.mode = ResponseMode::Separate;
        }
    }

    /// The oldest request, if the application let it lie for longer than `lifetime` microseconds after it was due.
    pub(in crate::endpoint) fn abandoned(&self, now: Instant, lifetime: u64) -> Option<u32> {
        let oldest = self.order.first();
        self.slots.get(oldest).filter(|request| later(request.due, lifetime) <= now).map(|_| oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(requests: &mut Requests<u8>, from: u8, mode: ResponseMode) -> u32 {
        let due = Instant::from_micros(u64::from(from));
        requests.add(from, MessageId(0), Token::EMPTY, (mode, false), due)
    }

    #[test]
    fn the_first_due_is_found_past_those_owed_nothing() {
        let mut requests = Requests::new();
        let nothing = add(&mut requests, 1, ResponseMode::NonConfirmable);
        assert_eq!(requests.first_due(), None);
        let second = add(&mut requests, 2, ResponseMode::Piggybacked);
        let third = add(&mut requests, 3, ResponseMode::Piggybacked);
        let fourth = add(&mut requests, 4, ResponseMode::Piggybacked);
        assert_eq!(requests.first_due().map(|(_, slot)| slot), Some(second));
        requests.remove(third);
        requests.acknowledged(second);
        assert_eq!(requests.first_due(), Some((Instant::from_micros(4), fourth)));
        requests.remove(nothing);
        requests.remove(fourth);
        assert_eq!(requests.first_due(), None);
        assert_eq!(requests.len(), 1);
        let fifth = add(&mut requests, 5, ResponseMode::Piggybacked);
        assert_eq!(requests.first_due().map(|(_, slot)| slot), Some(fifth));
    }

    #[test]
    fn only_the_oldest_can_be_abandoned_and_only_after_its_lifetime() {
        let mut requests = Requests::new();
        let oldest = add(&mut requests, 10, ResponseMode::Separate);
        assert_eq!(requests.abandoned(Instant::from_micros(109), 100), None);
        assert_eq!(requests.abandoned(Instant::from_micros(110), 100), Some(oldest));
    }
}

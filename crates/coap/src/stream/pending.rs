//! What is under way in each direction.

use alloc::{boxed::Box, collections::BTreeMap};

use crate::{
    ExchangeId, RequestId,
    endpoint::slots::Slots,
    long_tokens::{Limits, LongTokens},
    message::Token,
};

/// A token as a key: its length and its bytes.
type Key = (u8, u64);

fn key(token: Token) -> Key {
    (token.field(), u64::from_be_bytes(token.padded()))
}

/// Requests of ours.
#[derive(Debug)]
pub(super) struct OutgoingRequests {
    slots: Slots<OutgoingRequest>,
    by_token: BTreeMap<Key, u32>,
    /// In the order in which they left.
    order: BTreeMap<u64, u32>,
    made: u64,
    unanswered: usize,
}

/// A request of ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutgoingRequest {
    pub(super) token: Token,
    /// It asked to observe.
    pub(super) observes: bool,
    /// It was answered, and there is more to come.
    pub(super) is_answered: bool,
    number: u64,
}

impl OutgoingRequests {
    pub(super) const fn new() -> Self {
        Self { slots: Slots::new(), by_token: BTreeMap::new(), order: BTreeMap::new(), made: 0, unanswered: 0 }
    }

    /// Requests that were not answered at all.
    pub(super) const fn unanswered(&self) -> usize {
        self.unanswered
    }

    pub(super) fn len(&self) -> usize {
        self.by_token.len()
    }

    /// A token that no request under way has, and that may be had: short ones first.
    /// Whole ones have 8 bytes.
    pub(super) fn token(&self, whole: bool, is_kept: impl Fn(Token) -> bool) -> Token {
        let mut count = self.made;
        loop {
            count = count.wrapping_add(1);
            let bytes = count.to_be_bytes();
            let zeros = if whole { 0 } else { bytes.iter().take_while(|byte| **byte == 0).count() };
            let token = Token::new(bytes.get(zeros..).unwrap_or_default()).unwrap_or_default();
            // A caller's own token may stand in the way; there are never as many as there are counts.
            if !self.by_token.contains_key(&key(token)) && !is_kept(token) {
                return token;
            }
        }
    }

    pub(super) fn has(&self, token: Token) -> bool {
        self.by_token.contains_key(&key(token))
    }

    pub(super) fn add(&mut self, token: Token, observes: bool) -> ExchangeId {
        self.made = self.made.wrapping_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        let slot = self.slots.put(OutgoingRequest { token, observes, is_answered: false, number: self.made });
        self.by_token.insert(key(token), slot);
        self.order.insert(self.made, slot);
        self.name(slot)
    }

    fn name(&self, slot: u32) -> ExchangeId {
        ExchangeId { slot, generation: self.slots.generation(slot) }
    }

    pub(super) fn get(&self, id: ExchangeId) -> Option<&OutgoingRequest> {
        if self.slots.is(id.slot, id.generation) { self.slots.get(id.slot) } else { None }
    }

    /// An answer came to this token: the request, whether it observes, and whether this is its first answer.
    pub(super) fn answered(&mut self, token: Token) -> Option<(ExchangeId, bool, bool)> {
        let slot = *self.by_token.get(&key(token))?;
        let name = self.name(slot);
        let request = self.slots.get_mut(slot)?;
        let is_first = !core::mem::replace(&mut request.is_answered, true);
        if is_first {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        Some((name, request.observes, is_first))
    }

    /// Takes a request out; false if it was not there.
    pub(super) fn remove(&mut self, id: ExchangeId) -> bool {
        let Some(&OutgoingRequest { token, number, is_answered, .. }) = self.get(id) else { return false };
        if !is_answered {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        self.by_token.remove(&key(token));
        self.order.remove(&number);
        self.slots.release(id.slot);
        true
    }

    /// The oldest one, taken out.
    pub(super) fn pop(&mut self) -> Option<ExchangeId> {
        let (_, &slot) = self.order.first_key_value()?;
        let id = self.name(slot);
        self.remove(id);
        Some(id)
    }
}

/// Requests of the other side.
#[derive(Debug)]
pub(super) struct IncomingRequests {
    slots: Slots<IncomingRequest>,
    /// In the order in which they came.
    order: BTreeMap<u64, u32>,
    /// Those that observe, by their tokens.
    observing: BTreeMap<Key, u32>,
    made: u64,
    unanswered: usize,
    /// Tokens that are too long for their places.
    long_tokens: Option<Box<LongTokens<()>>>,
}

/// Room for the longest token there can be and as many bytes again.
const LONG_TOKENS: Limits = Limits { tokens: 256, bytes: 128 << 10, share: 1 };

/// A request of the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct IncomingRequest {
    pub(super) token: Token,
    /// It was answered once and observes.
    pub(super) observes: bool,
    number: u64,
}

impl IncomingRequests {
    pub(super) const fn new() -> Self {
        Self {
            slots: Slots::new(),
            order: BTreeMap::new(),
            observing: BTreeMap::new(),
            made: 0,
            unanswered: 0,
            long_tokens: None,
        }
    }

    /// Keeps a token of more than 8 bytes for a request that came with it, if there is room for it.
    pub(super) fn keep_token(&mut self, token: &[u8]) -> Option<Token> {
        let tokens = self.long_tokens.get_or_insert_with(|| Box::new(LongTokens::new(LONG_TOKENS)));
        let kept = tokens.keep((), 0, token)?;
        tokens.hold(kept, true);
        Some(kept)
    }

    /// The bytes of the token of a request.
    pub(super) fn token_bytes<'a>(&'a self, token: &'a Token) -> Option<&'a [u8]> {
        if token.is_long() { self.long_tokens.as_deref()?.bytes((), *token) } else { Some(token.as_bytes()) }
    }

    /// A request with this token is over: nothing more is ever said on it unless another one has it.
    pub(super) fn release_token(&mut self, token: Token) {
        if let Some(tokens) = self.long_tokens.as_deref_mut() {
            tokens.hold(token, false);
            tokens.remove(token);
        }
    }

    /// Bytes held by tokens of more than 8 bytes.
    pub(super) fn memory_of_tokens(&self) -> usize {
        self.long_tokens.as_deref().map_or(0, LongTokens::memory)
    }

    /// Requests that were not answered at all.
    pub(super) const fn unanswered(&self) -> usize {
        self.unanswered
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn add(&mut self, token: Token) -> RequestId {
        self.made = self.made.wrapping_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        let slot = self.slots.put(IncomingRequest { token, observes: false, number: self.made });
        self.order.insert(self.made, slot);
        self.name(slot)
    }

    fn name(&self, slot: u32) -> RequestId {
        RequestId { slot, generation: self.slots.generation(slot) }
    }

    pub(super) fn get(&self, id: RequestId) -> Option<IncomingRequest> {
        if self.slots.is(id.slot, id.generation) { self.slots.get(id.slot).copied() } else { None }
    }

    /// It was answered; it stays there if it observes from now on. A token is observed once: of two that have the
    /// same one the request that came first is taken out, and its token named.
    pub(super) fn answered(&mut self, id: RequestId, observes: bool) -> Option<(RequestId, Token)> {
        let IncomingRequest { token, observes: did_observe, number } = self.get(id)?;
        if !did_observe {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        if !observes {
            self.drop(id.slot);
            if did_observe {
                self.observing.remove(&key(token));
            }
            return None;
        }
        if let Some(request) = self.slots.get_mut(id.slot) {
            request.observes = true;
        }
        let other = self.observing.insert(key(token), id.slot).filter(|other| *other != id.slot)?;
        let is_newer = self.slots.get(other).is_some_and(|other| other.number > number);
        let (older, newer) = if is_newer { (id.slot, other) } else { (other, id.slot) };
        self.observing.insert(key(token), newer);
        let name = self.name(older);
        self.drop(older);
        Some((name, token))
    }

    fn drop(&mut self, slot: u32) {
        if let Some(IncomingRequest { token, number, .. }) = self.slots.get(slot).copied() {
            self.order.remove(&number);
            self.release_token(token);
        }
        self.slots.release(slot);
    }

    /// The observation with this token.
    pub(super) fn observing(&self, token: Token) -> Option<RequestId> {
        self.observing.get(&key(token)).map(|slot| self.name(*slot))
    }

    /// An observation, taken out.
    pub(super) fn pop_observation(&mut self) -> Option<(RequestId, Token)> {
        let (_, slot) = self.observing.pop_first()?;
        let (name, token) = (self.name(slot), self.slots.get(slot)?.token);
        self.drop(slot);
        Some((name, token))
    }

    /// Whether a request that came before this one is unanswered.
    pub(super) fn is_unanswered_up_to(&self, number: u64) -> bool {
        let mut slots = self.order.range(..=number);
        slots.any(|(_, slot)| self.slots.get(*slot).is_some_and(|request| !request.observes))
    }

    /// The number of the latest request.
    pub(super) const fn latest(&self) -> u64 {
        self.made
    }

    pub(super) fn clear(&mut self) {
        *self = Self { made: self.made, ..Self::new() };
    }
}

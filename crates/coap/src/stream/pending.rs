//! What is under way in each direction.

use alloc::collections::BTreeMap;

use crate::message::Token;

use super::{RequestId, ResponseId};

/// A token as a key: its length and its bytes.
type Key = (u8, u64);

fn key(token: Token) -> Key {
    (token.len() as u8, u64::from_be_bytes(token.padded()))
}

/// Requests of ours, by token.
#[derive(Debug, Default)]
pub(super) struct Asked {
    by_token: BTreeMap<Key, Question>,
    tokens: BTreeMap<u64, Key>,
    made: u64,
}

/// A request of ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) id: ResponseId,
    /// It asked to observe.
    pub(super) observes: bool,
}

impl Asked {
    pub(super) fn len(&self) -> usize {
        self.by_token.len()
    }

    /// A token that no request under way has: short ones first.
    pub(super) fn token(&self) -> Token {
        let mut count = self.made;
        loop {
            count = count.wrapping_add(1);
            let bytes = count.to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let token = Token::new(bytes.get(zeros..).unwrap_or_default()).unwrap_or_default();
            // A caller's own token may stand in the way; there are never as many as there are counts.
            if !self.by_token.contains_key(&key(token)) {
                return token;
            }
        }
    }

    pub(super) fn has(&self, token: Token) -> bool {
        self.by_token.contains_key(&key(token))
    }

    pub(super) fn add(&mut self, token: Token, observes: bool) -> ResponseId {
        self.made = self.made.wrapping_add(1);
        let id = ResponseId(self.made);
        self.by_token.insert(key(token), Question { id, observes });
        self.tokens.insert(id.0, key(token));
        id
    }

    pub(super) fn find(&self, token: Token) -> Option<Question> {
        self.by_token.get(&key(token)).copied()
    }

    /// Takes a request off the books; false if it was not on them.
    pub(super) fn remove(&mut self, id: ResponseId) -> bool {
        let Some(key) = self.tokens.remove(&id.0) else { return false };
        self.by_token.remove(&key);
        true
    }

    /// The oldest one, taken off the books.
    pub(super) fn pop(&mut self) -> Option<ResponseId> {
        let (&id, _) = self.tokens.first_key_value()?;
        self.remove(ResponseId(id));
        Some(ResponseId(id))
    }
}

/// Requests of the other side, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Owed {
    by_id: BTreeMap<u64, Debt>,
    /// Those that observe, by their tokens.
    observing: BTreeMap<Key, u64>,
    made: u64,
    unanswered: usize,
}

/// A request of the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Debt {
    pub(super) token: Token,
    /// It was answered once and observes.
    pub(super) observes: bool,
}

impl Owed {
    /// Requests that were not answered at all.
    pub(super) const fn unanswered(&self) -> usize {
        self.unanswered
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn add(&mut self, token: Token) -> RequestId {
        self.made = self.made.wrapping_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        self.by_id.insert(self.made, Debt { token, observes: false });
        RequestId(self.made)
    }

    pub(super) fn get(&self, id: RequestId) -> Option<Debt> {
        self.by_id.get(&id.0).copied()
    }

    /// It was answered; it stays on the books if it observes from now on. A token is observed once: of two that have the
    /// same one the request that came first is taken off the books, and named.
    pub(super) fn answered(&mut self, id: RequestId, observes: bool) -> Option<RequestId> {
        let debt = self.by_id.get_mut(&id.0)?;
        if !debt.observes {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        let did_observe = core::mem::replace(&mut debt.observes, observes);
        let token = key(debt.token);
        if !observes {
            self.by_id.remove(&id.0);
            if did_observe {
                self.observing.remove(&token);
            }
            return None;
        }
        let other = self.observing.insert(token, id.0).filter(|other| *other != id.0)?;
        let (older, newer) = (other.min(id.0), other.max(id.0));
        self.observing.insert(token, newer);
        self.by_id.remove(&older);
        Some(RequestId(older))
    }

    /// The observation with this token.
    pub(super) fn observing(&self, token: Token) -> Option<RequestId> {
        self.observing.get(&key(token)).copied().map(RequestId)
    }

    /// An observation, taken off the books.
    pub(super) fn pop_observation(&mut self) -> Option<RequestId> {
        let (_, id) = self.observing.pop_first()?;
        self.by_id.remove(&id);
        Some(RequestId(id))
    }

    /// Whether a request that came before this one is unanswered.
    pub(super) fn is_unanswered_up_to(&self, id: u64) -> bool {
        self.by_id.range(..=id).any(|(_, debt)| !debt.observes)
    }

    /// The number of the latest request.
    pub(super) const fn latest(&self) -> u64 {
        self.made
    }

    pub(super) fn clear(&mut self) {
        self.by_id.clear();
        self.observing.clear();
        self.unanswered = 0;
    }
}

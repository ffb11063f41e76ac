//! Tokens on which a response may come although none is wanted (No-Response, RFC 7967).

use alloc::collections::VecDeque;

use millpond_control::{Instant, Span};

use crate::message::Token;

/// For how long: MAX_SERVER_RESPONSE_DELAY (RFC 7390 §2.5). Over a stream nothing is repeated, and nothing overtakes what was said before.
const QUARANTINE: Span = Span::from_secs(250);
/// Tokens of which it is remembered.
const MOST: usize = 1_024;
/// Longer ones of our own making do not come again in that time.
const LONG: usize = 3;

/// Those of a connection, the oldest first.
#[derive(Debug)]
pub(super) struct TokenQuarantine {
    tokens: VecDeque<(Token, Instant)>,
    /// When a request may leave that had to wait for one of them.
    awaited: Option<Instant>,
}

impl TokenQuarantine {
    pub(super) const fn new() -> Self {
        Self { tokens: VecDeque::new(), awaited: None }
    }

    /// A request with this token, which the client has chosen or not, has left and wants no response.
    pub(super) fn hold(&mut self, now: Instant, token: Token, is_fixed: bool) {
        if !is_fixed && token.len() >= LONG {
            return;
        }
        while self.tokens.front().is_some_and(|(_, until)| *until <= now) || self.tokens.len() >= MOST {
            self.tokens.pop_front();
        }
        self.tokens.push_back((token, now.after(QUARANTINE)));
    }

    /// Until when no request that wants a response may have this token.
    pub(super) fn until(&self, now: Instant, token: Token) -> Option<Instant> {
        let last = self.tokens.iter().rev().find(|(other, _)| *other == token);
        last.map(|(_, until)| *until).filter(|until| *until > now)
    }

    /// A request waits until then.
    pub(super) fn is_awaited(&mut self, until: Instant) {
        self.awaited = Some(self.awaited.map_or(until, |other| other.min(until)));
    }

    /// A response has come on this token: of requests that had it one has no other.
    pub(super) fn answered(&mut self, now: Instant, token: Token) {
        if let Some(place) = self.tokens.iter().position(|(other, _)| *other == token) {
            self.tokens.remove(place);
            self.awaited = self.awaited.map(|_| now);
        }
    }

    /// When somebody who waits is to be told that a token may be free.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.awaited
    }

    /// That was reported.
    pub(super) const fn reported(&mut self) {
        self.awaited = None;
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.tokens.capacity().saturating_mul(size_of::<(Token, Instant)>())
    }
}

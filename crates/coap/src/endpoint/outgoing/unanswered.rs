//! Requests whose responses are unwanted, all of them or some (No-Response, RFC 7967).

use alloc::collections::VecDeque;
use core::{fmt::Debug, hash::Hash};

use hashbrown::HashMap;
use millpond_control::{Instant, Span};
use rustc_hash::FxBuildHasher;

use crate::endpoint::{
    Endpoint, ExchangeId,
    exchanges::{Exchange, Returns, Stage},
    message_ids::later,
    peers::Peer,
};
use crate::message::Token;
use crate::parts;

/// The least time between two that leave non-confirmably: nothing that comes back says how fast is too fast (RFC 8085
/// §3.1.3).
const PAUSE: Span = Span::from_secs(3);
/// Tokens of which it is remembered that a response may come on them although none is wanted.
const MOST_RETIRED: usize = 1_024;

/// What is remembered of such requests after they left.
#[derive(Debug)]
pub(in crate::endpoint) struct Unanswered<A> {
    /// Until when no other one may leave non-confirmably, by the slots of peers.
    pauses: HashMap<u32, Instant, FxBuildHasher>,
    /// Tokens that no request has until then, the oldest first.
    retired: VecDeque<(A, Token, Instant)>,
}

impl<A: Copy + Eq> Unanswered<A> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self { pauses: HashMap::with_hasher(FxBuildHasher), retired: VecDeque::new() }
    }

    /// Another peer has this slot.
    pub(in crate::endpoint) fn remove(&mut self, peer: u32) {
        self.pauses.remove(&peer);
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        let retired = self.retired.capacity().wrapping_mul(size_of::<(A, Token, Instant)>());
        self.pauses.allocation_size().saturating_add(retired)
    }

    fn until(&self, peer: A, token: Token) -> Option<Instant> {
        self.retired.iter().rev().find(|(to, other, _)| *other == token && *to == peer).map(|(.., until)| *until)
    }
}

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Whether nothing but its response is awaited of a request: a confirmable one was acknowledged, a non-confirmable one has
    /// left. False if it is over.
    #[must_use]
    pub fn awaits_response(&self, exchange: ExchangeId) -> bool {
        let exchange = self.exchanges.find(exchange).and_then(|slot| self.exchanges.get(slot));
        exchange.is_some_and(|exchange| matches!(exchange.stage, Stage::Acknowledged | Stage::NonConfirmable))
    }

    /// Until when a request that does not want all responses may not leave non-confirmably.
    pub(in crate::endpoint) fn pause(&self, exchange: &Exchange) -> Option<Instant> {
        let extra = self.extra.as_deref().filter(|_| parts::NO_RESPONSE && exchange.returns == Returns::Limited)?;
        extra.unanswered.pauses.get(&exchange.peer).copied()
    }

    /// One left non-confirmably: to a peer that has never answered PROBING_RATE holds as well (RFC 7252 §4.7).
    pub(in crate::endpoint) fn begin_pause(&mut self, number: u32, now: Instant, length: u16) {
        let answers = self.peers.get(number).is_some_and(|peer| peer.answers);
        let probing = if answers { 0 } else { self.probing_pause(length) };
        let until = later(now, probing.max(u64::from(PAUSE.as_micros())));
        self.extra_mut().unanswered.pauses.insert(number, until);
    }

    /// Nothing more is awaited on this token. A response may come all the same: of a server that does not know the option, or
    /// of the request before. RFC 7967 has the time for which no other request is to have it.
    pub(in crate::endpoint) fn retire(&mut self, number: u32, now: Instant, (token, is_fixed): (Token, bool)) {
        /// Longer ones of our own making do not come again in that time.
        const LONG: usize = 3;
        if !is_fixed && token.len() >= LONG {
            return;
        }
        let until = later(now, self.token_kept());
        let Some(address) = self.peers.get(number).map(|peer| peer.address) else { return };
        let retired = &mut self.extra_mut().unanswered.retired;
        while retired.front().is_some_and(|(.., until)| *until <= now) || retired.len() >= MOST_RETIRED {
            retired.pop_front();
        }
        retired.push_back((address, token, until));
    }

    /// Whether this token is retired for this request: one that wants no response may have any, for it takes none for its own.
    pub(in crate::endpoint) fn is_retired(&self, peer: &Peer<A>, exchange: &Exchange, token: Token) -> bool {
        self.retired(peer, exchange, token).is_some()
    }

    /// Until when a request may not leave because its token, of which there is no choice, is retired.
    pub(in crate::endpoint) fn retired_until(&self, peer: &Peer<A>, exchange: &Exchange) -> Option<Instant> {
        if self.has_fixed_token(exchange) { self.retired(peer, exchange, exchange.token()) } else { None }
    }

    /// How many tokens are retired, or were.
    pub(in crate::endpoint) fn count_retired(&self) -> u64 {
        self.extra.as_deref().filter(|_| parts::NO_RESPONSE).map_or(0, |extra| extra.unanswered.retired.len() as u64)
    }

    fn retired(&self, peer: &Peer<A>, exchange: &Exchange, token: Token) -> Option<Instant> {
        let extra = self.extra.as_deref().filter(|_| parts::NO_RESPONSE && exchange.role.is_request())?;
        extra.unanswered.until(peer.address, token).filter(|until| *until > self.now)
    }
}

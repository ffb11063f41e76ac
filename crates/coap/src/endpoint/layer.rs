//! An endpoint as what carries the messages of a stack.

use alloc::vec::Vec;
use core::{convert::Infallible, fmt::Debug, hash::Hash};

use millpond_control::{Instant, Span};

use super::{Endpoint, EndpointOutput, ExchangeId, Outgoing, Refused, RequestId, requests::ResponseMode};
use crate::{
    layer::{MessageLayer, Reason, RequestMessage},
    message::{Kind, Message, Token},
    output::{Entry, Step},
    parts,
    protection::{ProtectError, Protection, Taken},
    quota::Source,
};

impl<A: Copy + Eq + Hash + Debug> MessageLayer for Endpoint<A> {
    const IS_RELIABLE: bool = false;

    type Peer = A;
    type Closing = Infallible;
    type Refused = Refused;

    fn advance(&mut self, now: Instant) {
        Self::advance(self, now);
    }

    fn request(
        &mut self,
        now: Instant,
        to: A,
        request: &Outgoing<'_>,
        place: RequestMessage,
    ) -> Result<ExchangeId, Refused> {
        self.request_as(now, to, request, place)
    }

    fn cancel(&mut self, now: Instant, exchange: ExchangeId) {
        Self::cancel(self, now, exchange);
    }

    fn awaits_response(&self, exchange: ExchangeId) -> bool {
        Self::awaits_response(self, exchange)
    }

    /// A reset says enough.
    fn token_of(&self, _: ExchangeId) -> Option<Token> {
        None
    }

    fn respond(&mut self, now: Instant, to: RequestId, response: &Outgoing<'_>) -> Result<(), Refused> {
        Self::respond(self, now, to, response)
    }

    fn reject(&mut self, now: Instant, request: RequestId) -> Result<(), Refused> {
        Self::reject(self, now, request)
    }

    fn suppress_response(&mut self, now: Instant, request: RequestId) -> Result<(), Refused> {
        Self::suppress_response(self, now, request)
    }

    fn drop_request(&mut self, now: Instant, request: RequestId) {
        Self::drop_request(self, now, request);
    }

    fn awaits_answer(&self, request: RequestId) -> bool {
        self.asked(request).is_ok()
    }

    fn notify(
        &mut self,
        now: Instant,
        to: A,
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<Option<ExchangeId>, Refused> {
        self.send_additional(now, to, token, message).map(Some)
    }

    fn hold_token(&mut self, peer: A, token: Token, is_held: bool) {
        Self::hold_token(self, peer, token, is_held);
    }

    #[cfg(all(feature = "server", feature = "observe"))]
    fn registration(&mut self, peer: A, token: Token) -> Option<Vec<u8>> {
        self.protected_registration(peer, token)
    }

    #[cfg(all(feature = "server", feature = "observe"))]
    fn observes_again(&mut self, peer: A, token: Token, registration: &[u8]) -> bool {
        self.observes_protected_again(peer, token, registration)
    }

    fn step(&mut self, now: Instant) -> Step<Entry<A>> {
        self.hide_plain();
        Self::step(self, now)
    }

    fn unprotect(&mut self, entry: &Entry<A>, whole: Option<&Message<'_>>) -> Taken {
        if parts::OSCORE { Self::unprotect(self, entry, whole) } else { Taken::Message }
    }

    fn protection(&self) -> Option<&(dyn Protection<A> + 'static)> {
        Self::protection(self)
    }

    fn protection_mut(&mut self) -> Option<&mut (dyn Protection<A> + 'static)> {
        Self::protection_mut(self)
    }

    fn request_as_written(&mut self, now: Instant, to: A, request: &Outgoing<'_>) -> Result<ExchangeId, Refused> {
        self.send_request(now, to, request, RequestMessage::Next)
    }

    fn message(&self, entry: &Entry<A>) -> Option<Message<'_>> {
        self.plain_message(entry)
    }

    fn show(&self, entry: &Entry<A>) -> EndpointOutput<'_, A> {
        Self::show(self, entry)
    }

    fn reason(why: &Refused) -> Reason {
        match why {
            Refused::Message(_) => Reason::Message,
            Refused::Protection(why) if *why != ProtectError::NotStored => Reason::Message,
            why if why.is_of_message() => Reason::Call,
            _ => Reason::NoRoom,
        }
    }

    fn hash(&self, key: &impl Hash) -> u64 {
        Self::hash(self, key)
    }

    fn datagrams(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn establish(&mut self, request: &Entry<A>, from: Source) -> Vec<u8> {
        let protection = self.extra.as_deref_mut().and_then(|extra| extra.protection.as_deref_mut());
        let request = self.queue.message_of(request);
        protection.zip(request).map_or_else(Vec::new, |(protection, request)| protection.establish(&request, from))
    }

    fn node(&self) -> u32 {
        Self::node(self)
    }

    fn kind_of_answer(&self, request: RequestId) -> Kind {
        let found = self.inbox.as_deref().and_then(|inbox| inbox.requests.find(request));
        match found.map(|(_, request)| request.mode) {
            Some(ResponseMode::Piggybacked | ResponseMode::Separate) => Kind::Confirmable,
            Some(ResponseMode::NonConfirmable | ResponseMode::Delayed) | None => Kind::NonConfirmable,
        }
    }

    fn was_acknowledged(&self, request: RequestId) -> bool {
        let found = self.inbox.as_deref().and_then(|inbox| inbox.requests.find(request));
        found.is_some_and(|(_, request)| request.mode == ResponseMode::Separate)
    }

    fn came_by_group(&self, request: RequestId) -> bool {
        Self::came_by_group(self, request)
    }

    fn is_validated(&self, peer: A) -> bool {
        Self::is_validated(self, peer)
    }

    fn has_place_for(&self, now: Instant, peer: A) -> bool {
        self.peers.find(peer, &self.setup.id_generator).is_some()
            || self.peers.len() < self.setup.config.limits.peers
            || self.peers.forgettable(now, self.exchange_lifetime()).is_ok()
    }

    fn source_of(&self, peer: A) -> Source {
        Self::source_of(self, peer)
    }

    fn round_trip(&self, peer: A) -> Option<Span> {
        self.view(peer).and_then(|view| view.srtt)
    }

    fn memory(&self) -> usize {
        Self::memory(self)
    }
}

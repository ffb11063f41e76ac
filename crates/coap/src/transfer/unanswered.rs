//! Requests that do not want all responses (No-Response, RFC 7967), and end without one.

use millpond_control::Instant;

use super::{ClientRequestId, CoapStack, owner::Owner, pending_request::PendingRequest, queued_event::QueuedEvent};
use crate::endpoint::ExchangeId;
use crate::invariant::Sure;
use crate::layer::MessageLayer;
use crate::parts;

impl<L: MessageLayer> CoapStack<L> {
    /// Input: a request that does not want all responses (No-Response, RFC 7967) awaits none any more. It ends
    /// [unanswered](super::Event::Unanswered) if its request was acknowledged, or has left where nothing acknowledges it. False
    /// if not, or if it wants all; then nothing has happened.
    pub fn end_unanswered(&mut self, now: Instant, request: ClientRequestId) -> bool {
        self.input(now);
        if !self.requests.find(request).is_some_and(|pending| self.may_be_unanswered(pending)) {
            return false;
        }
        let Some(pending) = self.requests.take(request.slot).sure("request of a name that is good") else {
            return false;
        };
        self.is_unanswered(now, request.slot, *pending);
        true
    }

    /// A message of ours left of which nothing more is awaited, but for a reset.
    pub(crate) fn message_left(&mut self, now: Instant, exchange: ExchangeId) {
        if parts::NO_RESPONSE {
            self.was_left_unanswered(exchange, false);
        }
        if parts::GROUPS {
            self.groups.left(now, exchange);
        }
        if parts::NOTIFY {
            self.notification_left(now, exchange);
        }
    }

    /// A confirmable message of ours was acknowledged, and no response to it is awaited.
    pub(crate) fn message_delivered(&mut self, now: Instant, exchange: ExchangeId) {
        if parts::NO_RESPONSE {
            self.was_left_unanswered(exchange, true);
        }
        if parts::NOTIFY {
            self.notification_ended(now, exchange, None);
        }
    }

    /// A request that wants no response has done what it can.
    fn was_left_unanswered(&mut self, exchange: ExchangeId, is_acknowledged: bool) {
        let Some(Owner::Request(slot)) = self.owners.get(exchange) else { return };
        self.owners.take(exchange);
        let Some(pending) = self.requests.take(slot).sure("request that has an exchange") else { return };
        let request = self.requests.name(slot);
        self.requests.remove(slot);
        self.events.push_back(QueuedEvent::Unanswered { request, to: pending.to, is_acknowledged });
    }

    /// Nothing but a response was awaited of a request, which is in no slot, and is no more.
    pub(super) fn is_unanswered(&mut self, now: Instant, slot: u32, pending: PendingRequest<L::Peer>) {
        let (request, to) = (self.requests.name(slot), pending.to);
        let is_acknowledged = !L::IS_RELIABLE && pending.is_confirmable();
        self.cancel_exchanges(now, pending, false);
        self.requests.remove(slot);
        self.events.push_back(QueuedEvent::Unanswered { request, to, is_acknowledged });
    }

    /// Whether a request awaits nothing but one of the responses that it wants, and not all of them.
    pub(super) fn may_be_unanswered(&self, pending: &PendingRequest<L::Peer>) -> bool {
        parts::NO_RESPONSE
            && pending.limits_responses
            && pending.exchange.is_some_and(|exchange| self.layer.awaits_response(exchange))
    }
}

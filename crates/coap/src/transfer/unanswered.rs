//! Asks that do not want all responses (No-Response, RFC 7967), and end without one.

use millpond_control::Instant;

use super::{AskId, CoapStack, asked::Asked, owner::Owner, told::Told};
use crate::endpoint::ExchangeId;
use crate::invariant::Sure;
use crate::layer::MessageLayer;
use crate::parts;

impl<L: MessageLayer> CoapStack<L> {
    /// Input: an ask that does not want all responses (No-Response, RFC 7967) awaits none any more. It ends
    /// [unanswered](super::Event::Unanswered) if its request was acknowledged, or has left where nothing acknowledges it. False
    /// if not, or if it wants all; then nothing has happened.
    pub fn let_go(&mut self, now: Instant, ask: AskId) -> bool {
        self.input(now);
        if !self.asks.find(ask).is_some_and(|asked| self.may_be_unanswered(asked)) {
            return false;
        }
        let Some(asked) = self.asks.take(ask.slot).sure("ask of a name that is good") else { return false };
        self.is_unanswered(now, ask.slot, *asked);
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
        let Some(Owner::Ask(slot)) = self.owners.get(exchange) else { return };
        self.owners.take(exchange);
        let Some(asked) = self.asks.take(slot).sure("ask that has an exchange") else { return };
        let ask = self.asks.name(slot);
        self.asks.forget(slot);
        self.told.push_back(Told::Unanswered { ask, to: asked.to, is_acknowledged });
    }

    /// Nothing but a response was awaited of an ask, which is in no slot, and is no more.
    pub(super) fn is_unanswered(&mut self, now: Instant, slot: u32, asked: Asked<L::Peer>) {
        let (ask, to) = (self.asks.name(slot), asked.to);
        let is_acknowledged = !L::IS_RELIABLE && asked.is_confirmable();
        self.abandon(now, asked, false);
        self.asks.forget(slot);
        self.told.push_back(Told::Unanswered { ask, to, is_acknowledged });
    }

    /// Whether an ask awaits nothing but one of the responses that it wants, and not all of them.
    pub(super) fn may_be_unanswered(&self, asked: &Asked<L::Peer>) -> bool {
        parts::NO_RESPONSE
            && asked.limits_responses
            && asked.exchange.is_some_and(|exchange| self.layer.awaits_response(exchange))
    }
}

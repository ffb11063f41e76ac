//! Tokens on which more than one response comes.

use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use crate::endpoint::{
    Endpoint, ExchangeId, Outgoing, Refused,
    counters::Count,
    exchanges::{Exchange, Role, Stage},
    id_generator::Pair,
    peers::Peer,
    slots::List,
};
use crate::layer::RequestMessage;
use crate::message::{Message, Token};
use crate::output::OutputKind;
use crate::parts;

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Input: a request is to be sent whose token stays in use after its response. The first one is
    /// [`Event::Response`](crate::endpoint::Event::Response) and ends the exchange as ever; what comes on the token afterwards is
    /// [`Event::AdditionalResponse`](crate::endpoint::Event::AdditionalResponse), until [`unsubscribe`](Self::unsubscribe). A confirmable one is
    /// acknowledged; a copy is acknowledged again and not told.
    ///
    /// A subscription is renewed by asking with the token that it has: from the response on, its additional responses are
    /// told as the new exchange's. Should there be none, the old one goes on.
    ///
    /// With a [`token_length`](crate::endpoint::Config::token_length) of 0 nothing else can be asked of the peer meanwhile.
    ///
    /// # Errors
    /// What cannot be sent or exceeds a limit. Nothing is sent then.
    pub fn subscribe(&mut self, now: Instant, to: A, request: &Outgoing<'_>) -> Result<ExchangeId, Refused> {
        self.request_as(now, to, request, RequestMessage::Subscription)
    }

    pub(in crate::endpoint) fn send_subscription(
        &mut self,
        now: Instant,
        to: A,
        request: &Outgoing<'_>,
    ) -> Result<ExchangeId, Refused> {
        let now = self.input(now);
        parts::needed(parts::CLIENT && parts::OBSERVE, "observe")?;
        if !request.code.is_request() {
            return Err(Refused::Code(request.code));
        }
        let limit = self.setup.config.limits.subscriptions_per_peer;
        let number = self.peers.find(to, &self.setup.id_generator);
        if let Some((number, peer)) = number.and_then(|number| Some((number, self.peers.get(number)?)))
            && self.exchanges.tokens_kept(&peer.open) >= u32::from(limit)
        {
            let with = |token| self.exchanges.subscription_with(number, &peer.open, token, &self.setup.id_generator);
            if request.token.and_then(with).is_none() {
                return Err(Refused::TooManySubscriptions { limit });
            }
        }
        self.submit(now, to, (Role::Subscription, None), request, request.token)
    }

    /// Input: nothing more is expected on the token of a subscription or claim. A notification that comes all the same
    /// is answered with a reset (RFC 7641 §3.6). A subscription not answered yet ends as
    /// [`Failure::Cancelled`](crate::endpoint::Failure::Cancelled). False if there is none of this name.
    pub fn unsubscribe(&mut self, now: Instant, exchange: ExchangeId) -> bool {
        self.cancel(now, exchange)
    }

    /// Input: all responses of this peer whose tokens begin with a token that the endpoint makes now, of
    /// [`token_length`](crate::endpoint::Config::token_length) bytes but 1 to 4, are [`Event::AdditionalResponse`](crate::endpoint::Event::AdditionalResponse) of the
    /// exchange named, until [`unsubscribe`](Self::unsubscribe). Nothing is sent. Serves bodies whose every message has a token
    /// of its own: this and a count behind it (RFC 9177 §6).
    ///
    /// # Errors
    /// A limit that would be exceeded, or no such token.
    pub fn claim(&mut self, now: Instant, peer: A) -> Result<(ExchangeId, Token), Refused> {
        let now = self.input(now);
        parts::needed(parts::Q_BLOCK, "q-block")?;
        let length = self.setup.config.token_length.clamp(1, 4) as u8;
        let number = self.peer_for(now, peer)?;
        let Some(peer) = self.peers.get(number) else { return Err(self.out_of_bytes()) };
        let limit = self.setup.config.limits.subscriptions_per_peer;
        if self.exchanges.tokens_kept(&peer.open) >= u32::from(limit) {
            return Err(Refused::TooManySubscriptions { limit });
        }
        let whose = Pair { node: self.node(), peer: peer.number };
        // From the far end, so that those of the next requests do not begin like it.
        let made = |more| self.setup.id_generator.token(whose, !peer.ids.used().wrapping_add(more), length);
        // Those of one byte collide most; no more than all of them are tried.
        let free = |token: &Token| !self.exchanges.is_beginning(&peer.open, *token);
        let token = (0..256).map(made).find(free).ok_or(Refused::Claim { length })?;
        let growth = self.exchanges.slots.growth();
        if growth > 0 && !self.has_room(growth) {
            return Err(self.out_of_bytes());
        }
        let slot = self.exchanges.take();
        if let Some(exchange) = self.exchanges.get_mut(slot) {
            exchange.role = Role::Claim;
            exchange.peer = number;
        }
        self.exchanges.account(slot);
        self.keep(slot, number, token);
        Ok((self.exchanges.name(slot), token))
    }

    /// A subscription was answered for the first time: what stays of it is the token.
    pub(in crate::endpoint) fn stay_subscribed(&mut self, slot: u32, now: Instant, token: Token) {
        self.timers.clear(slot);
        let id_generator = &self.setup.id_generator;
        let Some(exchange) = self.exchanges.get(slot) else { return };
        let (number, stage) = (exchange.peer, exchange.stage);
        let Some((peer, path, _)) = self.peers.with_path_mut(number) else { return };
        let renewed = self.exchanges.subscription_with(number, &peer.open, token, id_generator);
        peer.open.remove(&mut self.exchanges.slots, slot);
        if stage != Stage::Acknowledged {
            path.settled();
        }
        self.exchanges.leave(slot, id_generator);
        self.exchanges.counted = self.exchanges.counted.saturating_sub(1);
        self.keep(slot, number, token);
        if let Some(renewed) = renewed {
            self.leave(renewed, now);
        }
        self.pump(number, now);
    }

    /// Keeps a token in use, in a slot that is in no list.
    fn keep(&mut self, slot: u32, number: u32, token: Token) {
        self.exchanges.keep_token(slot, token);
        if let Some(peer) = self.peers.get_mut(number) {
            peer.open.push(&mut self.exchanges.slots, slot);
        }
        self.exchanges.enter(slot, &self.setup.id_generator);
        self.peers.settle(number, true);
    }

    /// An additional response came.
    pub(in crate::endpoint) fn additional_came(&mut self, slot: u32, from: A, message: &Message<'_>, datagram: &[u8]) {
        self.counts.one_more(Count::AdditionalResponse);
        let kind = OutputKind::AdditionalResponse { exchange: self.exchanges.name(slot) };
        self.queue.push_message(from, kind, message, datagram);
    }

    /// Of the exchanges that share the token of this one, the one that a response in a message of its own is for.
    pub(in crate::endpoint) fn whose_token(&self, slot: u32, open: &List) -> u32 {
        let Some(exchange) = self.exchanges.get(slot).filter(|exchange| exchange.role.subscribes()) else {
            return slot;
        };
        let other = match exchange.stage {
            Stage::Subscribed => self.exchanges.renewal_of(slot, open),
            Stage::Sent if exchange.own_token => {
                self.exchanges.subscription_with(exchange.peer, open, exchange.token(), &self.setup.id_generator)
            }
            _ => None,
        };
        other.unwrap_or(slot)
    }

    /// Whether a request has the token of a subscription only because it is to renew it.
    pub(in crate::endpoint) fn renews(&self, peer: &Peer<A>, exchange: &Exchange) -> bool {
        exchange.role.subscribes()
            && exchange.own_token
            && self.exchanges.is_only_subscribed(exchange.peer, &peer.open, exchange.token(), &self.setup.id_generator)
    }
}

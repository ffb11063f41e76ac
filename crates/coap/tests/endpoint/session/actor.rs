//! One endpoint of a session as it is seen from outside.

use std::collections::{BTreeMap, BTreeSet};

use millpond_coap::message::Token;
use millpond_coap::{Endpoint, ExchangeId, RequestId};
use millpond_control::{Evidence, Instant, Named, Sample};

/// Addresses: the two endpoints, and some more where nobody is.
pub(crate) type Address = u8;

/// Bytes that an output takes, without those of its message.
const OUTPUT: usize = 96;

/// A request of which the end must still be told.
pub(crate) struct Asked {
    pub(crate) to: Address,
    /// Those of all its copies.
    pub(crate) tokens: Vec<Token>,
    /// When its copies left.
    pub(crate) left: Vec<Instant>,
    /// It has the token of a subscription, to renew it.
    pub(crate) renews: bool,
}

/// What is known about one endpoint from outside.
pub(crate) struct Actor {
    pub(crate) endpoint: Endpoint<Address>,
    /// Requests that the application was handed.
    pub(crate) asked: Vec<RequestId>,
    /// Separate responses of which the end must still be told.
    pub(crate) responding: BTreeSet<RequestId>,
    /// Non-confirmable separate responses: each may leave as a confirmable one.
    pub(crate) plain: BTreeSet<RequestId>,
    /// Requests and confirmable responses begun, and non-confirmable responses of which an end was told.
    pub(crate) begun: u64,
    pub(crate) confirmed: u64,
    /// Further responses: all of them, and of how many an end was told.
    pub(crate) further: BTreeSet<ExchangeId>,
    pub(crate) further_ended: u64,
    /// Messages that left, or would have, as confirmable ones: those that count.
    pub(crate) confirmable: BTreeSet<ExchangeId>,
    pub(crate) pings: BTreeSet<ExchangeId>,
    /// Subscriptions and claims, with their tokens once these are known.
    pub(crate) kept: Vec<(ExchangeId, Option<Token>)>,
    pub(crate) open: BTreeMap<ExchangeId, Asked>,
    /// When each message ID was last used to each peer.
    pub(crate) ids: BTreeMap<(Address, u16), Instant>,
    /// When each token of four bytes and more was last used to each peer, and for what.
    pub(crate) tokens: BTreeMap<(Address, Vec<u8>), (Instant, ExchangeId)>,
    /// EXCHANGE_LIFETIME at least.
    pub(crate) lifetime: u64,
    pub(crate) sleep: Option<Instant>,
    /// The most outputs that were held at once.
    pub(crate) held: usize,
}

impl Asked {
    /// Whatever a reply claims: what is made of it is so.
    pub(crate) fn judge(&self, sample: &Sample, now: Instant) {
        let since = |copy: usize| now.since(self.left[copy]);
        let last = self.left.len() - 1;
        assert_eq!((sample.since_first(), sample.since_last()), (since(0), since(last)));
        assert_eq!(usize::from(sample.retransmissions()), last);
        if let Named::Copy(copy) = sample.named() {
            let named = since(usize::from(copy));
            assert_eq!(sample.named_rtt().map(|rtt| rtt.span()), Some(named));
        }
        match sample.evidence() {
            Evidence::Exact(rtt) => assert_eq!(rtt.span(), since(last)),
            Evidence::Echoed { at_most } => assert!(at_most >= since(last) && at_most <= since(0)),
            Evidence::Ambiguous { .. } | Evidence::None => {}
        }
    }
}

impl Actor {
    /// A copy of a request left: of one that is not over, and with a token of its own.
    pub(crate) fn copy_left(&mut self, id: ExchangeId, copy: usize, to: Address, token: Token, now: Instant) {
        // A ping has no token.
        let is_ping = self.pings.contains(&id);
        let mut others = self.open.iter().filter(|(other, asked)| **other != id && asked.to == to && !is_ping);
        assert!(others.all(|(_, asked)| !asked.tokens.contains(&token)), "a token under way was used");
        let asked = self.open.get_mut(&id).expect("a copy of something that is not over");
        assert_eq!((asked.to, asked.left.len()), (to, copy));
        asked.left.push(now);
        if is_ping {
            return;
        }
        asked.tokens.push(token);
        if token.len() >= 4
            && !asked.renews
            && let Some((last, other)) = self.tokens.insert((to, token.as_bytes().to_vec()), (now, id))
            && other != id
            // The messages to an unvalidated peer that had to make room for others are numbered anew.
            && self.endpoint.counters().forgotten_peers == 0
        {
            assert!(now.as_micros() - last.as_micros() >= self.lifetime, "token {token} came too early");
        }
    }

    pub(crate) fn check(&self, limits: &millpond_coap::Limits) {
        let counters = self.endpoint.counters();
        let over = counters.answered + counters.delivered + counters.failed.total();
        assert_eq!(counters.begun, over + u64::from(self.endpoint.exchanges()), "{counters:?}");
        // Non-confirmable messages that left as confirmable ones, and further responses.
        let others = counters.begun - self.begun - self.confirmed - self.further_ended;
        let known = self.open.len() + self.responding.len();
        assert_eq!(self.endpoint.exchanges() as usize, known + others as usize);
        assert!(self.endpoint.peers() <= limits.peers && self.endpoint.requests() <= limits.requests);
        // Outputs are held until they are drained, whatever the limit: all messages to a peer may end at once. Their room doubles.
        let held = 2 * OUTPUT * self.held;
        assert!(self.endpoint.memory() <= limits.bytes + held + 2_048, "{} bytes", self.endpoint.memory());
    }
}

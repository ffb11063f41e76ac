//! What an endpoint knows and holds, for observers.

use core::{fmt::Debug, hash::Hash};

use millpond_control::{Controller, Instant, PeerController, Span, View};

use super::{
    Arc, Counters, Endpoint, Repeats, Setup,
    additional::ExtraState,
    exchanges::{Exchange, Stage},
    inbox::Inbox,
    paths::{self, Path},
};
use crate::quota::Source;

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Where something stands in a hash table of the owner of this endpoint.
    pub(crate) fn hash(&self, key: &impl Hash) -> u64 {
        self.setup.id_generator.hash(key)
    }

    /// The network that a peer is in, as far as it was [said](Self::with_paths); else each is one by itself.
    pub(in crate::endpoint) fn network_of(&self, peer: &A) -> u64 {
        self.setup.path_of.map_or_else(|| self.hash(peer), |path_of| path_of(peer))
    }

    /// For whom something is held that a peer has sent.
    pub(in crate::endpoint) fn source_of(&self, peer: A) -> Source {
        Source { is_validated: self.is_validated(peer), network: self.network_of(&peer) }
    }

    pub(crate) const fn node(&self) -> u32 {
        self.counts.node
    }

    /// Bytes of the longest datagram.
    pub(crate) fn longest_datagram(&self) -> usize {
        usize::from(self.setup.config.limits.datagram)
    }

    /// Whether a peer is known that was asked for something, or has acknowledged or answered something: no forged address does
    /// the latter.
    #[must_use]
    pub fn is_validated(&self, peer: A) -> bool {
        let number = self.peers.find(peer, &self.setup.id_generator);
        number.and_then(|number| self.peers.get(number)).is_some_and(|peer| !peer.is_unvalidated())
    }

    /// What a peer's controller knows; `None` if the peer is not known.
    #[must_use]
    pub fn view(&self, peer: A) -> Option<View> {
        let number = self.peers.find(peer, &self.setup.id_generator)?;
        self.peers.path(number).map(|path| path.controller.view())
    }

    /// A copy of a peer's controller with all that it knows; `None` if the peer is not known. Given to another endpoint
    /// with [`set_controller`](Self::set_controller), it goes on there with what was learnt here. Of exchanges under way
    /// the copy is never told an end.
    #[must_use]
    pub fn controller(&self, peer: A) -> Option<PeerController> {
        let number = self.peers.find(peer, &self.setup.id_generator)?;
        self.peers.path(number).map(Path::controller_copy)
    }

    /// The base round trip that a peer's controller has measured, for a later life of this host: it is handed back with
    /// [`recall`](Self::recall). `None` if the peer is not known, nothing was measured yet, or the controller keeps none.
    #[must_use]
    pub fn base_rtt(&self, peer: A) -> Option<Span> {
        let number = self.peers.find(peer, &self.setup.id_generator)?;
        self.peers.path(number).and_then(|path| path.controller.base_rtt())
    }

    /// How many messages could leave to a peer now before one had to wait for a message ID, as far as these are
    /// concerned: up to 65 536 (RFC 7252 §4.4).
    #[must_use]
    pub fn message_ids_left(&self, now: Instant, peer: A) -> u32 {
        let number = self.peers.find(peer, &self.setup.id_generator);
        let peer = number.and_then(|number| self.peers.get(number));
        peer.map_or(1 << 16, |peer| peer.ids.left(now.max(self.now), self.exchange_lifetime()))
    }

    /// The addresses of the peers that are known, in no particular order.
    pub fn known_peers(&self) -> impl Iterator<Item = A> {
        self.peers.addresses()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let calm = self.inbox.as_deref().and_then(|inbox| inbox.calm.as_ref());
        Counters { repeats: calm.map_or_else(Repeats::default, |calm| calm.repeats), ..self.counts.all() }
    }

    /// Requests, pings, and confirmable separate and additional responses that are not over, those that wait included.
    /// Subscriptions count until their first response.
    #[must_use]
    pub const fn exchanges(&self) -> u32 {
        self.exchanges.counted
    }

    /// Subscriptions that were answered, and claims.
    #[must_use]
    pub fn subscriptions(&self) -> u32 {
        let is_kept = |(_, exchange): &(u32, &Exchange)| exchange.stage == Stage::Subscribed;
        if self.exchanges.keeps_tokens { self.exchanges.slots.iter().filter(is_kept).count() as u32 } else { 0 }
    }

    /// Peers that are known.
    #[must_use]
    pub fn peers(&self) -> u32 {
        self.peers.len()
    }

    /// Requests that the application has been handed and has not answered.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.inbox.as_deref().map_or(0, |inbox| inbox.requests.len())
    }

    /// Bytes held, this value itself included, and of what is shared between [siblings](Self::sibling) its share.
    #[must_use]
    pub fn memory(&self) -> usize {
        let shared = size_of::<Setup<A>>().saturating_add(paths::beside(&self.setup.prototype));
        let shared = shared.checked_div(Arc::strong_count(&self.setup)).unwrap_or(0);
        size_of::<Self>()
            .saturating_add(shared)
            .saturating_add(self.counts.memory())
            .saturating_add(self.peers.memory())
            .saturating_add(self.exchanges.memory())
            .saturating_add(self.timers.memory())
            .saturating_add(self.queue.memory())
            .saturating_add(self.inbox.as_deref().map_or(0, Inbox::memory))
            .saturating_add(self.extra.as_deref().map_or(0, ExtraState::memory))
            .saturating_add(self.protection().map_or(0, |protection| protection.memory()))
    }
}

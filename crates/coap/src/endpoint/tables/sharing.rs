//! Peers that share a path: its controller, its places for what is outstanding, and turns for what waits.

use alloc::{boxed::Box, vec, vec::Vec};
use core::{
    fmt::{self, Debug},
    hash::Hash,
};

use millpond_control::{Controller, Instant, PeerController, Span};

use crate::endpoint::{
    Arc, Endpoint, IdGenerator, Lifetimes, Refused, Setup,
    counters::Count,
    exchanges::Exchanges,
    naming,
    paths::{Path, PathRef, SharedPaths},
    peers::{Peer, Peers, Place},
};
use crate::parts;

/// Which peers share a path: those of which it gives the same.
pub(in crate::endpoint) struct SharedBy<A>(Arc<dyn Fn(&A) -> u64 + Send + Sync>);

impl<A> SharedBy<A> {
    pub(in crate::endpoint) fn new(path_of: impl Fn(&A) -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(path_of))
    }
}

impl<A> Clone for SharedBy<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A> fmt::Debug for SharedBy<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedBy")
    }
}

/// What may not leave now because of its path, a waiting caller: messages that NSTART is for, and others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::endpoint) struct Held {
    pub(in crate::endpoint) counted: bool,
    pub(in crate::endpoint) plain: bool,
}

impl<A: Copy + Eq + Hash> Peers<A> {
    /// Whether a peer shares its path.
    #[inline]
    pub(in crate::endpoint) fn is_sharing(&self, number: u32) -> bool {
        parts::SHARED_PATHS && self.get(number).is_some_and(|peer| peer.path.shared().is_some())
    }

    /// Whether peers that share a path with this one may have something waiting there.
    pub(in crate::endpoint) fn others_wait(&self, number: u32) -> bool {
        self.is_sharing(number) && self.with_path(number).is_some_and(|(peer, _, waiting)| waiting > peer.waiting.len())
    }

    /// The slots of all that are on the path of this one.
    pub(in crate::endpoint) fn sharers(&self, number: u32) -> Vec<u32> {
        let Some(path) = self.get(number).map(|peer| peer.path).filter(|path| path.shared().is_some()) else {
            return vec![number];
        };
        self.slots.iter().filter(|(_, place)| place.peer.path == path).map(|(number, _)| number).collect()
    }

    /// Puts a peer that has just become known onto the path with this key. If nobody is on it yet, the peer's own
    /// becomes that path, with all that it knows. Else the peer's own controller must have been told the ends of what is
    /// under way; that goes on as so many interactions outstanding on the other path.
    pub(in crate::endpoint) fn share(
        &mut self,
        number: u32,
        key: u64,
        blank: &PeerController,
        id_generator: &IdGenerator,
    ) {
        let paths = self.shared.get_or_insert_with(|| Box::new(SharedPaths::new()));
        let Some(Place { peer, own }) = self.slots.get_mut(number) else { return };
        let blank = Path::new(blank.clone());
        self.beside = self.beside.saturating_add(blank.beside() as u32).saturating_sub(own.beside() as u32);
        let own = core::mem::replace(own, blank);
        let outstanding = own.outstanding;
        let shared = match paths.find(key, id_generator) {
            Some(shared) => {
                if let Some(shared) = paths.get_mut(shared) {
                    shared.path.outstanding = shared.path.outstanding.saturating_add(outstanding);
                }
                shared
            }
            None => paths.add(key, own, id_generator),
        };
        paths.joined(shared);
        peer.path = PathRef::on(shared);
        if let Some(path) = paths.get_mut(shared) {
            path.waiting = path.waiting.saturating_add(peer.waiting.len());
        }
        if !peer.waiting.is_empty() {
            peer.path.set_turn(true);
            paths.queue(shared, number);
        }
    }

    /// Whether some peer is on the path with this key.
    pub(in crate::endpoint) fn is_shared(&self, key: u64, id_generator: &IdGenerator) -> bool {
        self.shared.as_deref().is_some_and(|paths| paths.find(key, id_generator).is_some())
    }

    /// A message to this peer is held back.
    pub(in crate::endpoint) fn hold(&mut self, number: u32, exchanges: &mut Exchanges, slot: u32) {
        let Some(peer) = self.get_mut(number) else { return };
        peer.waiting.push(&mut exchanges.slots, slot);
        let Some(shared) = peer.path.shared() else { return };
        let had_turn = peer.path.set_turn(true);
        let Some(paths) = self.shared.as_deref_mut() else { return };
        if let Some(path) = paths.get_mut(shared) {
            path.waiting = path.waiting.saturating_add(1);
        }
        if !had_turn {
            paths.queue(shared, number);
        }
    }

    /// A message to this peer is held back no more.
    pub(in crate::endpoint) fn unhold(&mut self, number: u32, exchanges: &mut Exchanges, slot: u32) {
        let Some(peer) = self.get_mut(number) else { return };
        peer.waiting.remove(&mut exchanges.slots, slot);
        let shared = peer.path.shared();
        if let Some(path) = shared.and_then(|shared| self.shared.as_deref_mut()?.get_mut(shared)) {
            path.waiting = path.waiting.saturating_sub(1);
        }
    }

    /// Whose turn it is on the path that this peer shares, after so many others.
    fn turn(&self, number: u32, place: usize) -> Option<u32> {
        self.shared.as_deref()?.turn(self.get(number)?.path.shared()?, place)
    }

    /// The turn of this peer, at this place, is over.
    fn end_turn(&mut self, number: u32, place: usize) {
        let Some(peer) = self.get_mut(number) else { return };
        let (waits, shared) = (!peer.waiting.is_empty(), peer.path.shared());
        peer.path.set_turn(waits);
        if let (Some(shared), Some(paths)) = (shared, self.shared.as_deref_mut()) {
            paths.end_turn(shared, place, waits);
        }
    }
}

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Input: the congestion-control state of a peer's path starts afresh from the prototype; message IDs and tokens go on.
    /// Nothing happens if the peer is not known.
    ///
    /// Exchanges under way keep their armed timers. They end as cancelled for the old controller, are unknown to the
    /// new one, and double their waits from now on.
    pub fn forget_controller(&mut self, now: Instant, peer: A) {
        let now = self.input(now);
        if let Some(number) = self.peers.find(peer, &self.setup.id_generator) {
            self.replace_controller(number, now, self.setup.prototype.clone());
        }
    }

    /// Input: a peer is no more, as when the secure session ends that it was in: nothing comes from it, and nothing gets to it.
    /// What is under way to it ends as cancelled, what it asked is not answered, and its place is free at once, on the path that
    /// it shares, too. Without this it keeps that until its last message ID may be used again.
    pub fn forget_peer(&mut self, now: Instant, peer: A) {
        let now = self.input(now);
        if let Some(shared) = self.peers.shared.as_deref_mut().filter(|_| parts::SHARED_PATHS) {
            shared.take_back(peer, &self.setup.id_generator);
        }
        if let Some(inbox) = self.inbox.as_deref_mut().filter(|_| parts::SERVER) {
            inbox.requests.remove_of(peer);
        }
        let Some(number) = self.peers.find(peer, &self.setup.id_generator) else { return };
        self.drop_exchanges(number, now);
        self.peers.settle(number, false);
        if self.peers.get(number).is_some_and(Peer::is_idle) {
            self.peers.remove(number, &self.setup.id_generator);
            self.counts.one_more(Count::ForgottenPeer);
        }
    }

    /// Input: the path of a peer gets this controller instead of the one it has, or instead of a copy of the prototype. A peer that
    /// only now comes onto a path on which others are finds theirs there, and keeps to it. Exchanges under way fare as with
    /// [`forget_controller`](Self::forget_controller). Lifetimes become those of the slowest controller ever set. A peer that is
    /// forgotten to make room for others starts from the prototype again.
    ///
    /// # Errors
    /// The peer is not known and there is no room for another.
    pub fn set_controller(
        &mut self,
        now: Instant,
        peer: A,
        controller: impl Into<PeerController>,
    ) -> Result<(), Refused> {
        let (now, controller) = (self.input(now), controller.into());
        parts::needed(naming::is_there(&controller), "copy-options")?;
        let number = self.place_for(now, peer)?;
        let lifetimes = Lifetimes::of(&controller, &self.setup.config.transmission);
        let longest = self.lifetimes().longest(lifetimes);
        if longest != *self.lifetimes() {
            Arc::make_mut(&mut self.setup).lifetimes = longest;
        }
        self.replace_controller(number, now, controller);
        self.acquaint(number, now);
        self.peers.settle(number, false);
        Ok(())
    }

    /// Input: this peer shares its path with all to whom the same was said, whatever
    /// [`sharing_paths`](Self::sharing_paths) gives for it: with those that have proved the same identity in secure sessions, say,
    /// at whichever addresses they are. It holds until [`forget_peer`](Self::forget_peer), and from when the peer is asked for
    /// something or answers something; to be said before that, for a peer that is on a path stays there.
    ///
    /// # Errors
    /// To as many peers as may be known something was said already, or there is no memory left for more.
    pub fn share_path(&mut self, now: Instant, peer: A, with_all_of: &impl Hash) -> Result<(), Refused> {
        self.input(now);
        parts::needed(parts::SHARED_PATHS, "shared-paths")?;
        let shared = self.peers.shared.as_deref();
        let growth = shared.map_or(size_of::<SharedPaths<A>>(), SharedPaths::growth);
        if growth > 0 && !self.has_room(growth) {
            return Err(self.out_of_bytes());
        }
        let Setup { config, id_generator, .. } = &*self.setup;
        let (key, limit) = (id_generator.path(with_all_of), config.limits.peers);
        let shared = self.peers.shared.get_or_insert_with(|| Box::new(SharedPaths::new()));
        if shared.give(peer, key, limit, id_generator) {
            Ok(())
        } else {
            Err(Refused::TooManyPeers { limit, until: None })
        }
    }

    /// Input: what an earlier life measured as the base round trip of the path to a peer. Its controller, which is as it was
    /// otherwise, believes it as far as [`Controller::recall`] says. Before the first request to the peer is the time for it.
    ///
    /// # Errors
    /// The peer is not known and there is no room for another.
    pub fn recall(&mut self, now: Instant, peer: A, base_rtt: Span) -> Result<(), Refused> {
        let now = self.input(now);
        let number = self.peer_for(now, peer)?;
        if let Some((_, path, _)) = self.peers.with_path_mut(number) {
            path.controller.recall(base_rtt);
        }
        self.peers.settle(number, false);
        Ok(())
    }

    /// A peer has answered, or is asked: it is validated, and comes onto the path that it shares. Unvalidated peers have
    /// paths of their own, so that a peer that forges addresses neither slows nor blocks anybody.
    #[inline]
    pub(in crate::endpoint) fn acquaint(&mut self, number: u32, now: Instant) {
        if self.peers.acquaint(number)
            && parts::SHARED_PATHS
            && (self.setup.shared_by.is_some() || self.peers.shared.is_some())
        {
            self.share(number, now);
        }
    }

    #[cold]
    fn share(&mut self, number: u32, now: Instant) {
        let Some(address) = self.peers.get(number).map(|peer| peer.address) else { return };
        let shared = self.peers.shared.as_deref();
        let given = shared.and_then(|shared| shared.given(address, &self.setup.id_generator));
        let by_address = || self.setup.shared_by.as_ref().map(|SharedBy(path_of)| path_of(&address));
        let Some(key) = given.or_else(by_address) else { return };
        if self.peers.is_shared(key, &self.setup.id_generator) {
            self.release_controller(number, now);
        }
        self.peers.share(number, key, &self.setup.prototype, &self.setup.id_generator);
        self.pump(number, now);
    }

    /// Lets messages leave that wait on the path of this peer, as many as may. Peers that share it take turns, a message
    /// each.
    pub(in crate::endpoint) fn pump(&mut self, number: u32, now: Instant) {
        let mut held = Held::default();
        if !self.peers.is_sharing(number) {
            self.pump_peer(number, now, u32::MAX, &mut held);
            return;
        }
        let mut place = 0_usize;
        while let Some(next) = self.peers.turn(number, place) {
            let launched = self.pump_peer(next, now, 1, &mut held);
            let waits = self.peers.get(next).is_some_and(|peer| !peer.waiting.is_empty());
            if launched > 0 || !waits {
                self.peers.end_turn(next, place);
            } else {
                place = place.saturating_add(1);
            }
            if held.counted && (held.plain || !self.exchanges.holds_additional) {
                return;
            }
        }
    }

    /// Exchanges under way on the path of this peer go on without its controller.
    pub(in crate::endpoint) fn release_path(&mut self, number: u32, now: Instant) {
        for sharer in self.peers.sharers(number) {
            self.release_controller(sharer, now);
        }
    }

    fn replace_controller(&mut self, number: u32, now: Instant, controller: PeerController) {
        self.release_path(number, now);
        self.peers.replace_controller(number, controller);
        self.pump(number, now);
        self.peers.settle(number, false);
    }
}

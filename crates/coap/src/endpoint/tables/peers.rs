use alloc::boxed::Box;
use core::hash::Hash;

use hashbrown::HashTable;
use millpond_control::{Instant, PeerController};

use crate::endpoint::{
    IdGenerator,
    id_generator::Pair,
    message_ids::MessageIds,
    naming::Echoes,
    paths::{Path, PathRef, Sharing, beside},
    slots::{Ends, Linked, Links, List, NONE, Slots},
};
use crate::invariant::Sure;
use crate::message::MessageId;
use crate::parts;

/// So many peers are looked through one by one; beyond that there is a hash table.
const LOOKED_THROUGH: usize = 4;

/// All that is kept of one peer.
#[derive(Debug)]
pub(in crate::endpoint) struct Peer<A> {
    pub(in crate::endpoint) address: A,
    pub(in crate::endpoint) ids: MessageIds,
    /// In the list of unvalidated peers if it is one, else in that of idle peers if it is idle.
    links: Links,
    /// Exchanges under way.
    pub(in crate::endpoint) open: List,
    /// Messages held back.
    pub(in crate::endpoint) waiting: List,
    /// N-th peer of this endpoint it is: its place in addressed chance.
    pub(in crate::endpoint) number: u32,
    /// It has answered one of our messages, and no confirmable one was given up since.
    pub(in crate::endpoint) answers: bool,
    pub(in crate::endpoint) echoes: Echoes,
    state: PeerState,
    pub(in crate::endpoint) path: PathRef,
}

/// A peer, and the path that it is on unless it shares one.
#[derive(Debug)]
pub(in crate::endpoint) struct Place<A> {
    pub(in crate::endpoint) peer: Peer<A>,
    pub(in crate::endpoint) own: Path,
}

/// What a peer is to us, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerState {
    Busy,
    Idle,
    /// It was never asked for anything, and has never answered anything: it may be an address that somebody forged.
    BusyUnvalidated,
    IdleUnvalidated,
}

impl PeerState {
    const fn is_idle(self) -> bool {
        matches!(self, Self::Idle | Self::IdleUnvalidated)
    }

    const fn is_unvalidated(self) -> bool {
        matches!(self, Self::BusyUnvalidated | Self::IdleUnvalidated)
    }

    const fn of(is_unvalidated: bool, is_idle: bool) -> Self {
        match (is_unvalidated, is_idle) {
            (false, false) => Self::Busy,
            (false, true) => Self::Idle,
            (true, false) => Self::BusyUnvalidated,
            (true, true) => Self::IdleUnvalidated,
        }
    }
}

impl<A> Linked for Place<A> {
    fn links(&self) -> &Links {
        &self.peer.links
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.peer.links
    }
}

impl<A> Peer<A> {
    pub(in crate::endpoint) const fn is_unvalidated(&self) -> bool {
        self.state.is_unvalidated()
    }

    pub(in crate::endpoint) const fn is_idle(&self) -> bool {
        self.state.is_idle()
    }

    fn has_nothing_to_do(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty()
    }
}

/// The peers, found by their addresses; idle ones in the order in which they became so, unvalidated peers in the order in which
/// something was last done for them.
#[derive(Debug)]
pub(in crate::endpoint) struct Peers<A> {
    pub(in crate::endpoint) slots: Slots<Place<A>>,
    pub(in crate::endpoint) shared: Sharing<A>,
    /// Numbers of slots, once there were more than [`LOOKED_THROUGH`].
    table: Option<Box<HashTable<u32>>>,
    idle: Ends,
    unvalidated_peers: Ends,
    /// Peers ever met.
    met: u32,
    /// Bytes held beside the slots, by message IDs and controllers.
    pub(in crate::endpoint) beside: u32,
}

/// There is no place for another peer.
pub(in crate::endpoint) struct Full {
    /// When the peer that is idle for longest can be forgotten; no such time if none is idle.
    pub(in crate::endpoint) until: Option<Instant>,
}

impl<A: Copy + Eq + Hash> Peers<A> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self {
            slots: Slots::new(),
            shared: None,
            table: None,
            idle: Ends::EMPTY,
            unvalidated_peers: Ends::EMPTY,
            met: 0,
            beside: 0,
        }
    }

    #[inline]
    pub(in crate::endpoint) fn get(&self, number: u32) -> Option<&Peer<A>> {
        self.slots.get(number).map(|place| &place.peer)
    }

    #[inline]
    pub(in crate::endpoint) fn get_mut(&mut self, number: u32) -> Option<&mut Peer<A>> {
        self.slots.get_mut(number).map(|place| &mut place.peer)
    }

    /// A peer, the path that it is on, and how many messages are held back on that.
    #[inline]
    pub(in crate::endpoint) fn with_path(&self, number: u32) -> Option<(&Peer<A>, &Path, u32)> {
        let Place { peer, own } = self.slots.get(number)?;
        let Some(shared) = peer.path.shared() else { return Some((peer, own, peer.waiting.len())) };
        let (path, waiting) = shared_path(&self.shared, shared)?;
        Some((peer, path, waiting))
    }

    /// The same, to be changed.
    #[inline]
    pub(in crate::endpoint) fn with_path_mut(&mut self, number: u32) -> Option<(&mut Peer<A>, &mut Path, u32)> {
        let Place { peer, own } = self.slots.get_mut(number)?;
        let Some(shared) = peer.path.shared() else {
            let waiting = peer.waiting.len();
            return Some((peer, own, waiting));
        };
        let (path, waiting) = shared_path_mut(&mut self.shared, shared)?;
        Some((peer, path, waiting))
    }

    /// The path that a peer is on.
    #[inline]
    pub(in crate::endpoint) fn path(&self, number: u32) -> Option<&Path> {
        self.with_path(number).map(|(_, path, _)| path)
    }

    pub(in crate::endpoint) fn len(&self) -> u32 {
        self.slots.taken()
    }

    /// The addresses of all.
    pub(in crate::endpoint) fn addresses(&self) -> impl Iterator<Item = A> {
        self.slots.iter().map(|(_, place)| place.peer.address)
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        let table = self.table();
        let table = table.map_or(0, |table| size_of_val(table).saturating_add(table.allocation_size()));
        let shared = self.shared.as_deref().filter(|_| parts::SHARED_PATHS);
        let shared = shared.map_or(0, |shared| size_of_val(shared).saturating_add(shared.memory()));
        self.slots.memory().saturating_add(shared).saturating_add(table).saturating_add(self.beside as usize)
    }

    /// What they are found through, if they are not looked through.
    #[inline]
    fn table(&self) -> Option<&HashTable<u32>> {
        self.table.as_deref().filter(|_| parts::MANY_PEERS)
    }

    /// The slot of the peer with this address.
    #[inline]
    pub(in crate::endpoint) fn find(&self, address: A, id_generator: &IdGenerator) -> Option<u32> {
        let Some(table) = self.table() else {
            return self.slots.iter().find(|(_, place)| place.peer.address == address).map(|(number, _)| number);
        };
        let is_it = |number: &u32| self.get(*number).is_some_and(|peer| peer.address == address);
        table.find(id_generator.hash(&address), is_it).copied()
    }

    /// Bytes that one more peer with such a controller adds to what is held, if none can be forgotten for it.
    pub(in crate::endpoint) fn growth(&self, controller: &PeerController) -> usize {
        let is_full = |table: &&HashTable<u32>| table.len() >= table.capacity();
        let table = self.table().filter(is_full).map_or(0, HashTable::allocation_size);
        self.slots.growth().saturating_add(table).saturating_add(beside(controller))
    }

    /// The peer that is to make room for another: the one that is idle for longest, if its last message ID may be used
    /// again.
    pub(in crate::endpoint) fn forgettable(&self, now: Instant, lifetime: u64) -> Result<u32, Full> {
        let mut until = None;
        for oldest in [self.unvalidated_peers.first(), self.idle.first()] {
            let Some(peer) = self.get(oldest).filter(|peer| peer.state.is_idle()) else { continue };
            let at = peer.ids.forgettable(lifetime);
            if at <= now {
                return Ok(oldest);
            }
            until = Some(until.map_or(at, |other: Instant| other.min(at)));
        }
        Err(Full { until })
    }

    /// The unvalidated peer for whom nothing was done for the longest.
    pub(in crate::endpoint) fn oldest_unvalidated_peer(&self) -> Option<u32> {
        Some(self.unvalidated_peers.first()).filter(|first| *first != NONE)
    }

    /// A peer is validated. False if it was none before.
    #[inline]
    pub(in crate::endpoint) fn acquaint(&mut self, number: u32) -> bool {
        let Some(peer) = self.get_mut(number).filter(|peer| peer.state.is_unvalidated()) else { return false };
        let is_idle = peer.state.is_idle();
        peer.state = PeerState::of(false, is_idle);
        self.unvalidated_peers.remove(&mut self.slots, number);
        if is_idle {
            self.idle.push(&mut self.slots, number);
        }
        true
    }

    /// Forgets a peer that is idle. Its controller goes when its place is taken again.
    pub(in crate::endpoint) fn remove(&mut self, oldest: u32, id_generator: &IdGenerator) {
        let Some(Place { peer, own }) = self.slots.get_mut(oldest) else { return };
        let is_unvalidated = peer.state.is_unvalidated();
        let freed = peer.ids.memory().saturating_add(own.beside());
        self.beside = self.beside.saturating_sub(freed as u32);
        peer.ids = MessageIds::starting_at(0);
        let path = core::mem::replace(&mut peer.path, PathRef::OWN);
        if parts::SHARED_PATHS
            && let (Some(number), Some(shared)) = (path.shared(), self.shared.as_deref_mut())
        {
            shared.left(number, oldest, id_generator);
        }
        let Some(Place { peer, .. }) = self.slots.get(oldest) else { return };
        if parts::MANY_PEERS
            && let Some(table) = &mut self.table
            && let Ok(entry) =
                table.find_entry(id_generator.hash(&peer.address), |number| *number == oldest).sure("entry of a peer")
        {
            entry.remove();
        }
        let list = if is_unvalidated { &mut self.unvalidated_peers } else { &mut self.idle };
        list.remove(&mut self.slots, oldest);
        self.slots.release(oldest);
    }

    /// Adds a peer that is not known yet. It is idle, and unvalidated.
    pub(in crate::endpoint) fn add(
        &mut self,
        node: u32,
        address: A,
        controller: PeerController,
        id_generator: &IdGenerator,
    ) -> u32 {
        let number = self.met;
        let first_id = id_generator.first_id(Pair { node, peer: number });
        self.met = self.met.wrapping_add(1);
        self.beside = self.beside.saturating_add(beside(&controller) as u32);
        let peer = Peer {
            address,
            ids: MessageIds::starting_at(first_id),
            links: Links::NOWHERE,
            open: List::EMPTY,
            waiting: List::EMPTY,
            number,
            answers: false,
            echoes: Echoes::default(),
            state: PeerState::IdleUnvalidated,
            path: PathRef::OWN,
        };
        let slot = self.slots.put(Place { peer, own: Path::new(controller) });
        self.unvalidated_peers.push(&mut self.slots, slot);
        self.enter(slot, id_generator);
        slot
    }

    /// Gives the path of a peer another controller.
    pub(in crate::endpoint) fn replace_controller(&mut self, number: u32, controller: PeerController) {
        let Some(Place { peer, own }) = self.slots.get_mut(number) else { return };
        if let (Some(shared), Some(paths)) = (peer.path.shared(), self.shared.as_deref_mut()) {
            return paths.replace_controller(shared, controller);
        }
        let freed = own.beside();
        self.beside = self.beside.saturating_add(beside(&controller) as u32).saturating_sub(freed as u32);
        own.controller = Path::new(controller).controller;
    }

    /// Enters a peer into the table, or all of them once there are too many to look through.
    fn enter(&mut self, slot: u32, id_generator: &IdGenerator) {
        if !parts::MANY_PEERS {
            return;
        }
        let Self { slots, table, .. } = self;
        let hash = |number: &u32| slots.get(*number).map_or(0, |place| id_generator.hash(&place.peer.address));
        if let Some(table) = table {
            table.insert_unique(hash(&slot), slot, hash);
        } else if slots.ever_taken() > LOOKED_THROUGH {
            let table = table.insert(Box::default());
            for (number, _) in slots.iter() {
                table.insert_unique(hash(&number), number, hash);
            }
        }
    }

    /// Enters a peer among the idle ones, or takes it out, as it should be now. One that just did something goes to
    /// the end of those idle.
    #[inline]
    pub(in crate::endpoint) fn settle(&mut self, number: u32, did_something: bool) {
        let Some(peer) = self.get_mut(number) else { return };
        let (was, is) = (peer.state.is_idle(), peer.has_nothing_to_do());
        peer.state = PeerState::of(peer.state.is_unvalidated(), is);
        if peer.state.is_unvalidated() {
            if did_something {
                self.unvalidated_peers.remove(&mut self.slots, number);
                self.unvalidated_peers.push(&mut self.slots, number);
            }
            return;
        }
        if was && (!is || did_something) {
            self.idle.remove(&mut self.slots, number);
        }
        if is && (!was || did_something) {
            self.idle.push(&mut self.slots, number);
        }
    }

    /// Uses the next message ID of a peer, which must be free. It is used for the lifetime and so many microseconds longer.
    #[inline]
    pub(in crate::endpoint) fn take_id(
        &mut self,
        number: u32,
        now: Instant,
        lifetime: u64,
        longer: u64,
    ) -> Option<MessageId> {
        let peer = &mut self.slots.get_mut(number)?.peer;
        if longer == 0
            && let Some(id) = peer.ids.take_within(now)
        {
            return Some(id);
        }
        let before = peer.ids.memory();
        let id = peer.ids.take(now, lifetime, longer);
        self.beside = self.beside.saturating_add(peer.ids.memory() as u32).saturating_sub(before as u32);
        Some(id)
    }
}

/// A path that peers share, and how many messages are held back on it.
#[cold]
fn shared_path<A: Copy + Eq + Hash>(paths: &Sharing<A>, number: u32) -> Option<(&Path, u32)> {
    let shared = paths.as_deref()?.get(number)?;
    Some((&shared.path, shared.waiting))
}

#[cold]
fn shared_path_mut<A: Copy + Eq + Hash>(paths: &mut Sharing<A>, number: u32) -> Option<(&mut Path, u32)> {
    let shared = paths.as_deref_mut()?.get_mut(number)?;
    Some((&mut shared.path, shared.waiting))
}

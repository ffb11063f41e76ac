//! What is kept of a path: the controller, and what that allows to be outstanding. A peer has one of its own, or shares one.

use alloc::{boxed::Box, collections::VecDeque};
use core::hash::Hash;

use hashbrown::HashTable;
use millpond_control::{Controller, PeerController};

use crate::endpoint::{
    IdGenerator,
    exchanges::Role,
    slots::{NONE, Slots},
};
use crate::invariant::Sure;
use crate::message::Kind;
use crate::parts;

/// The controller as a path keeps it: in debug builds with both sides of its contract watched.
#[cfg(debug_assertions)]
pub(in crate::endpoint) type PathController = millpond_control::Checked<PeerController>;
/// The controller as a path keeps it.
#[cfg(not(debug_assertions))]
pub(in crate::endpoint) type PathController = PeerController;

/// Bytes that a controller holds elsewhere: one of the user's own is behind a pointer. What it points to is not known.
pub(in crate::endpoint) fn beside(controller: &PeerController) -> usize {
    match controller {
        PeerController::Built(_) => 0,
        PeerController::Own(own) => size_of_val(&**own),
    }
}

/// A path to one peer, or to several that share it.
#[derive(Debug)]
pub(in crate::endpoint) struct Path {
    pub(in crate::endpoint) controller: PathController,
    /// Interactions outstanding in the sense of RFC 7252 §4.7.
    pub(in crate::endpoint) outstanding: u16,
    /// Non-confirmable requests that left, wrapping.
    pub(in crate::endpoint) asked: u32,
    /// Non-confirmable requests, and responses, that left since the last confirmable one of their sort.
    non_confirmable: [u8; 2],
}

impl Path {
    /// One on which nothing is under way.
    pub(in crate::endpoint) fn new(controller: PeerController) -> Self {
        #[cfg(debug_assertions)]
        let controller = millpond_control::Checked::new(controller);
        Self { controller, outstanding: 0, asked: 0, non_confirmable: [0; 2] }
    }

    /// A copy of its controller.
    pub(in crate::endpoint) fn controller_copy(&self) -> PeerController {
        self.inner().clone()
    }

    /// Bytes that its controller holds elsewhere.
    pub(in crate::endpoint) fn beside(&self) -> usize {
        beside(self.inner())
    }

    fn inner(&self) -> &PeerController {
        let controller = &self.controller;
        #[cfg(debug_assertions)]
        let controller = controller.inner();
        controller
    }

    /// Neither side of the controller's contract was broken. Only debug builds look.
    #[inline]
    pub(in crate::endpoint) fn keeps_contract(&self) {
        #[cfg(debug_assertions)]
        debug_assert_eq!(self.controller.violation(), None, "the contract between endpoint and controller");
    }

    /// So many interactions may be outstanding: as the controller wishes, else so many.
    #[inline]
    pub(in crate::endpoint) fn nstart(&self, configured: u16) -> u16 {
        match self.controller.wishes().nstart {
            0 => configured,
            wished => wished,
        }
    }

    /// The controller wishes the next message of this sort to be confirmable.
    #[inline]
    pub(in crate::endpoint) fn wishes_confirmable(&self, role: Role) -> bool {
        let every = self.controller.wishes().confirmable_every;
        let [requests, responses] = self.non_confirmable;
        let before = if role.asks() { requests } else { responses };
        every > 0 && before >= every.saturating_sub(1)
    }

    /// A message of this sort left.
    #[inline]
    pub(in crate::endpoint) fn left(&mut self, role: Role, kind: Kind) {
        let [requests, responses] = &mut self.non_confirmable;
        let before = if role.asks() { requests } else { responses };
        *before = if kind == Kind::Confirmable { 0 } else { before.saturating_add(1) };
    }

    /// An interaction is outstanding no more.
    #[inline]
    pub(in crate::endpoint) fn settled(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }
}

/// A path that peers share, and who of them waits.
#[derive(Debug)]
pub(in crate::endpoint) struct Shared {
    key: u64,
    pub(in crate::endpoint) path: Path,
    /// Peers on it.
    peers: u32,
    /// Messages held back, of all of them.
    pub(in crate::endpoint) waiting: u32,
    /// Those that may have something waiting, in the order of their turns; each once.
    turns: VecDeque<u32>,
}

/// The paths that peers share.
#[derive(Debug)]
pub(in crate::endpoint) struct SharedPaths<A> {
    slots: Slots<Shared>,
    table: HashTable<u32>,
    /// The keys that peers were given, those included that have no place yet.
    given: HashTable<(A, u64)>,
    /// Bytes of the queues of turns, and beside the controllers.
    beside: usize,
}

impl<A: Copy + Eq + Hash> SharedPaths<A> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self { slots: Slots::new(), table: HashTable::new(), given: HashTable::new(), beside: 0 }
    }

    /// The key that a peer was given.
    pub(in crate::endpoint) fn given(&self, peer: A, id_generator: &IdGenerator) -> Option<u64> {
        self.given.find(id_generator.hash(&peer), |(other, _)| *other == peer).map(|(_, key)| *key)
    }

    /// A peer is given a key, in place of one that it has. False if so many others have one.
    pub(in crate::endpoint) fn give(&mut self, peer: A, key: u64, most: u32, id_generator: &IdGenerator) -> bool {
        self.take_back(peer, id_generator);
        let has_room = self.given.len() < most as usize;
        if has_room {
            let hash = |(peer, _): &(A, u64)| id_generator.hash(peer);
            self.given.insert_unique(id_generator.hash(&peer), (peer, key), hash);
        }
        has_room
    }

    /// Bytes that one more key adds to what is held.
    pub(in crate::endpoint) fn growth(&self) -> usize {
        // The next table has twice the places, and a first one a few.
        let is_full = self.given.len() >= self.given.capacity();
        if is_full { self.given.allocation_size().max(256) } else { 0 }
    }

    /// A peer has no key any more.
    pub(in crate::endpoint) fn take_back(&mut self, peer: A, id_generator: &IdGenerator) {
        if let Ok(entry) = self.given.find_entry(id_generator.hash(&peer), |(other, _)| *other == peer) {
            entry.remove();
        }
    }

    pub(in crate::endpoint) fn get(&self, number: u32) -> Option<&Shared> {
        self.slots.get(number)
    }

    pub(in crate::endpoint) fn get_mut(&mut self, number: u32) -> Option<&mut Shared> {
        self.slots.get_mut(number)
    }

    pub(in crate::endpoint) fn find(&self, key: u64, id_generator: &IdGenerator) -> Option<u32> {
        let is_it = |number: &u32| self.slots.get(*number).is_some_and(|shared| shared.key == key);
        self.table.find(id_generator.hash(&key), is_it).copied()
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        let tables = self.table.allocation_size().saturating_add(self.given.allocation_size());
        self.slots.memory().saturating_add(tables).saturating_add(self.beside)
    }

    /// Adds a path on which nobody is yet.
    pub(in crate::endpoint) fn add(&mut self, key: u64, path: Path, id_generator: &IdGenerator) -> u32 {
        self.beside = self.beside.saturating_add(path.beside());
        let number = self.slots.put(Shared { key, path, peers: 0, waiting: 0, turns: VecDeque::new() });
        let Self { slots, table, .. } = self;
        let hash = |number: &u32| slots.get(*number).map_or(0, |shared| id_generator.hash(&shared.key));
        table.insert_unique(id_generator.hash(&key), number, hash);
        number
    }

    /// A peer comes onto a path.
    pub(in crate::endpoint) fn joined(&mut self, number: u32) {
        if let Some(shared) = self.slots.get_mut(number) {
            shared.peers = shared.peers.saturating_add(1);
        }
    }

    /// A peer that has nothing under way goes. The last one takes the path along.
    pub(in crate::endpoint) fn left(&mut self, number: u32, peer: u32, id_generator: &IdGenerator) {
        let Some(shared) = self.slots.get_mut(number) else { return };
        shared.turns.retain(|other| *other != peer);
        shared.peers = shared.peers.saturating_sub(1);
        if shared.peers > 0 {
            return;
        }
        let freed = shared.path.beside().saturating_add(shared.turns.capacity().wrapping_mul(size_of::<u32>()));
        shared.turns = VecDeque::new();
        self.beside = self.beside.saturating_sub(freed);
        let hash = id_generator.hash(&shared.key);
        if let Ok(entry) = self.table.find_entry(hash, |other| *other == number).sure("entry of a path") {
            entry.remove();
        }
        self.slots.release(number);
    }

    /// Gives a path another controller.
    pub(in crate::endpoint) fn replace_controller(&mut self, number: u32, controller: PeerController) {
        let Some(shared) = self.slots.get_mut(number) else { return };
        let freed = shared.path.beside();
        shared.path.controller = Path::new(controller).controller;
        self.beside = self.beside.saturating_add(shared.path.beside()).saturating_sub(freed);
    }

    /// A peer that has no turn yet gets the last one.
    pub(in crate::endpoint) fn queue(&mut self, number: u32, peer: u32) {
        let Some(shared) = self.slots.get_mut(number) else { return };
        let before = shared.turns.capacity();
        shared.turns.push_back(peer);
        let grown = shared.turns.capacity().saturating_sub(before);
        self.beside = self.beside.saturating_add(grown.saturating_mul(size_of::<u32>()));
    }

    /// Whose turn comes after so many others.
    pub(in crate::endpoint) fn turn(&self, number: u32, place: usize) -> Option<u32> {
        self.slots.get(number)?.turns.get(place).copied()
    }

    /// The turn at this place is over; who has more to send gets another one, behind all others.
    pub(in crate::endpoint) fn end_turn(&mut self, number: u32, place: usize, waits: bool) {
        let Some(shared) = self.slots.get_mut(number) else { return };
        let peer = shared.turns.remove(place);
        if waits {
            shared.turns.extend(peer);
        }
    }
}

/// On which path a peer is, and whether its turn is yet to come there. In one word: there is one of each peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) struct PathRef(u32);

impl PathRef {
    /// On one of its own.
    pub(in crate::endpoint) const OWN: Self = Self(NONE);
    /// It is in the queue of turns. No endpoint has room for as many paths as would reach it.
    const TURN: u32 = 1 << 31;

    pub(in crate::endpoint) fn on(shared: u32) -> Self {
        debug_assert!(shared < Self::TURN, "{shared} is a path of its own");
        Self(shared & !Self::TURN)
    }

    /// The number of the path that it shares.
    #[inline]
    pub(in crate::endpoint) const fn shared(self) -> Option<u32> {
        if !parts::SHARED_PATHS || self.0 == NONE { None } else { Some(self.0 & !Self::TURN) }
    }

    /// Its turn is yet to come, or over; gives whether it had one yet to come. A peer that is on a path of its own has none.
    pub(in crate::endpoint) fn set_turn(&mut self, has_turn: bool) -> bool {
        if self.0 == NONE {
            return false;
        }
        let had_turn = self.0 & Self::TURN != 0;
        self.0 = self.0 & !Self::TURN | if has_turn { Self::TURN } else { 0 };
        had_turn
    }
}

/// The paths that peers share, once any do.
pub(in crate::endpoint) type Sharing<A> = Option<Box<SharedPaths<A>>>;

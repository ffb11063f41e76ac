//! Copies of requests that are not answered, because their answers are on their way ([`CalmServer`]).

use core::{fmt, hash::Hash, ops::AddAssign};

use millpond_control::{CalmPath, CalmPeer, CalmServer, Instant};

use crate::endpoint::{Endpoint, Identities, recent::Recent};
use crate::message::MessageId;

impl<A: Copy + Eq + Hash + fmt::Debug> Endpoint<A> {
    /// A confirmable request came that was not known.
    pub(in crate::endpoint) fn asked_calmly(&mut self, now: Instant, from: A, id: MessageId) {
        if self.inbox.as_deref().is_none_or(|inbox| inbox.calm.is_none()) {
            return;
        }
        self.note_calmly(now, from, id);
    }

    #[inline(never)]
    fn note_calmly(&mut self, now: Instant, from: A, id: MessageId) {
        let crate::endpoint::Limits { bytes, duplicate_bytes, .. } = self.setup.config.limits;
        let room = bytes.saturating_sub(self.memory()).min(duplicate_bytes) / SHARE;
        if let Some(calm) = self.inbox.as_deref_mut().and_then(|inbox| inbox.calm.as_mut()) {
            calm.asked((from, id), now, &self.setup.identities, room);
        }
    }
}

/// What became of copies of requests that had been answered, under [`Duplicates::Calm`](crate::endpoint::Duplicates::Calm).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Repeats {
    /// Answered, because nothing suggested a queue.
    pub calm: u64,
    /// Answered, because the answer before was likely to be lost.
    pub due: u64,
    /// Answered out of the allowance for copies.
    pub allowed: u64,
    /// Answered, because their peer or its path was not remembered.
    pub unknown: u64,
    /// Not answered.
    pub withheld: u64,
}

impl AddAssign for Repeats {
    fn add_assign(&mut self, other: Self) {
        let Self { calm, due, allowed, unknown, withheld } = other;
        self.calm = self.calm.saturating_add(calm);
        self.due = self.due.saturating_add(due);
        self.allowed = self.allowed.saturating_add(allowed);
        self.unknown = self.unknown.saturating_add(unknown);
        self.withheld = self.withheld.saturating_add(withheld);
    }
}

/// Peers, and paths, may take this part each of what there is for duplicates.
const SHARE: usize = 8;

/// What is known of a peer: of its newest request.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    id: MessageId,
    state: CalmPeer,
}

/// What tells which copies to withhold, in bounded memory. Peers and paths that were used least recently are forgotten
/// first; what is not known is answered.
pub(in crate::endpoint) struct Calm<A> {
    server: CalmServer,
    peers: Recent<A, Newest>,
    paths: Recent<u64, CalmPath>,
    /// The path that a peer is on.
    path_of: fn(&A) -> u64,
    pub(in crate::endpoint) repeats: Repeats,
}

impl<A> fmt::Debug for Calm<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calm").field("server", &self.server).field("repeats", &self.repeats).finish_non_exhaustive()
    }
}

impl<A: Copy + Eq + Hash> Calm<A> {
    /// One that knows nobody, whose peers share paths as this says.
    pub(in crate::endpoint) fn new(path_of: fn(&A) -> u64) -> Self {
        Self {
            server: CalmServer::new(),
            peers: Recent::new(),
            paths: Recent::new(),
            path_of,
            repeats: Repeats::default(),
        }
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        size_of::<Self>().saturating_add(self.peers.memory()).saturating_add(self.paths.memory())
    }

    /// A confirmable request came that was not known. The tables may take so many bytes each.
    #[inline(never)]
    pub(in crate::endpoint) fn asked(
        &mut self,
        (from, id): (A, MessageId),
        now: Instant,
        identities: &Identities,
        most: usize,
    ) {
        let Some(path) = self.paths.of((self.path_of)(&from), |path| identities.hash(path), most) else { return };
        let Some(peer) = self.peers.of(from, |from| identities.hash(from), most) else { return };
        self.server.asked(path, &mut peer.state, now);
        peer.id = id;
    }

    /// The answer to a request leaves for the first time.
    #[inline(never)]
    pub(in crate::endpoint) fn answered(&mut self, (from, id): (A, MessageId), now: Instant, identities: &Identities) {
        if let Some(peer) = self.peers.get(&from, identities.hash(&from)).filter(|peer| peer.id == id) {
            self.server.answered(&mut peer.state, now);
        }
    }

    /// A copy of a request came that was answered before, at `first` for the first time. Says whether it is answered.
    pub(in crate::endpoint) fn asked_again(
        &mut self,
        (from, id): (A, MessageId),
        first: Instant,
        now: Instant,
        identities: &Identities,
    ) -> bool {
        let path = (self.path_of)(&from);
        let known = (self.paths.get(&path, identities.hash(&path)), self.peers.get(&from, identities.hash(&from)));
        let (Some(path), Some(peer)) = known else {
            self.repeats.unknown = self.repeats.unknown.saturating_add(1);
            return true;
        };
        let again = if peer.id == id {
            self.server.asked_again(path, &mut peer.state, now)
        } else {
            // Known by how long the answer is kept. Where that has become less since, nothing is known: answer.
            self.server.asked_late(path, if first <= now { first } else { Instant::ORIGIN }, now)
        };
        let count = self.repeats.count_of(again);
        *count = count.saturating_add(1);
        again.answers()
    }
}

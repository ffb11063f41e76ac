//! Copies of requests that are not answered, because their answers are on their way ([`CalmPath`]).

use core::{fmt, hash::Hash, ops::AddAssign};

use millpond_control::{Again, CalmPath, CalmPeer, Instant};

use crate::endpoint::{
    Endpoint, IdGenerator,
    counters::Count,
    ping::{Ping, voter},
    recent::Recent,
};
use crate::message::{Kind, MessageId, Writer};
use crate::output::OutputKind;

impl<A: Copy + Eq + Hash + fmt::Debug> Endpoint<A> {
    /// A confirmable request came that was not known.
    pub(in crate::endpoint) fn asked_calmly(&mut self, now: Instant, from: A, id: MessageId) {
        if self.calm().is_some() {
            self.note_calmly(now, from, id);
        }
    }

    #[inline(never)]
    fn note_calmly(&mut self, now: Instant, from: A, id: MessageId) {
        let crate::endpoint::Limits { bytes, duplicate_bytes, .. } = self.setup.config.limits;
        let room = bytes.saturating_sub(self.memory()).min(duplicate_bytes) / SHARE;
        let id_generator = self.setup.id_generator;
        let ping = self.calm().and_then(|calm| calm.asked((from, id), now, &id_generator, room));
        if let Some(ping) = ping {
            self.ping_calmly(from, ping);
        }
    }

    /// A round trip is measured.
    pub(in crate::endpoint) fn ping_calmly(&mut self, to: A, id: MessageId) {
        let start = self.queue.bytes.len();
        Writer::ping(&mut self.queue.bytes, id);
        self.queue.push_written(to, OutputKind::Ping, start);
        self.counts.one_more(Count::Sent(Kind::Confirmable));
    }

    /// A message of ours was rejected or acknowledged that no exchange knows: says whether that was a ping of a calm server.
    pub(in crate::endpoint) fn is_pong(&mut self, now: Instant, from: A, id: MessageId) -> bool {
        let id_generator = self.setup.id_generator;
        self.calm().is_some_and(|calm| calm.rejected((from, id), now, &id_generator))
    }

    fn calm(&mut self) -> Option<&mut Calm<A>> {
        self.inbox.as_deref_mut()?.calm()
    }
}

/// What became of copies of requests that had been answered, under [`Duplicates::Calm`](crate::endpoint::Duplicates::Calm).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Repeats {
    /// Answered, because the answer before was likely to be lost.
    pub due: u64,
    /// Answered, because a ping that left after the answer before came back.
    pub lost: u64,
    /// Answered, because every third duplicate of a request is.
    pub third: u64,
    /// Answered, because nothing is known of their peer or its path.
    pub unknown: u64,
    /// Not answered.
    pub withheld: u64,
}

impl AddAssign for Repeats {
    fn add_assign(&mut self, other: Self) {
        let Self { due, lost, third, unknown, withheld } = other;
        self.due = self.due.saturating_add(due);
        self.lost = self.lost.saturating_add(lost);
        self.third = self.third.saturating_add(third);
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
    ping: Ping,
    state: CalmPeer,
}

/// What is to be done about a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) struct Verdict {
    pub(in crate::endpoint) answers: bool,
    /// The ID of a ping that is to leave before.
    pub(in crate::endpoint) ping: Option<MessageId>,
}

/// What decides which copies to withhold, in bounded memory. Peers and paths that were used least recently are forgotten
/// first; what is not known is answered.
pub(in crate::endpoint) struct Calm<A> {
    peers: Recent<A, Newest>,
    paths: Recent<u64, CalmPath>,
    /// The path that a peer is on.
    path_of: fn(&A) -> u64,
    pub(in crate::endpoint) repeats: Repeats,
}

impl<A> fmt::Debug for Calm<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calm").field("repeats", &self.repeats).finish_non_exhaustive()
    }
}

impl<A: Copy + Eq + Hash> Calm<A> {
    /// One that knows nobody, whose peers share paths as this says.
    pub(in crate::endpoint) const fn new(path_of: fn(&A) -> u64) -> Self {
        Self {
            peers: Recent::new(),
            paths: Recent::new(),
            path_of,
            repeats: Repeats { due: 0, lost: 0, third: 0, unknown: 0, withheld: 0 },
        }
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        size_of::<Self>().saturating_add(self.peers.memory()).saturating_add(self.paths.memory())
    }

    /// A confirmable request came that was not known. The tables may take so many bytes each. Gives the ID of a ping that is to leave.
    #[inline(never)]
    pub(in crate::endpoint) fn asked(
        &mut self,
        (from, id): (A, MessageId),
        now: Instant,
        id_generator: &IdGenerator,
        most: usize,
    ) -> Option<MessageId> {
        let path = self.paths.of((self.path_of)(&from), |path| id_generator.hash(path), most)?;
        let peer = self.peers.of(from, |from| id_generator.hash(from), most)?;
        peer.id = id;
        peer.state.asked();
        path.pings(&mut peer.state, now).then(|| peer.ping.leaves(&from, id, id_generator))
    }

    /// The answer to a request leaves for the first time.
    #[inline(never)]
    pub(in crate::endpoint) fn answered(
        &mut self,
        (from, id): (A, MessageId),
        now: Instant,
        id_generator: &IdGenerator,
    ) {
        if let Some(peer) = self.peers.get(&from, id_generator.hash(&from)).filter(|peer| peer.id == id) {
            peer.state.answered(now);
        }
    }

    /// A copy of a request came that was answered before, at `first` for the first time, and of which so many copies came.
    pub(in crate::endpoint) fn asked_again(
        &mut self,
        (from, id): (A, MessageId),
        (first, copies): (Instant, u8),
        now: Instant,
        id_generator: &IdGenerator,
    ) -> Verdict {
        let (path, hash) = ((self.path_of)(&from), id_generator.hash(&from));
        let known = (self.paths.get(&path, id_generator.hash(&path)), self.peers.get(&from, hash));
        let (Some(path), Some(peer)) = known else {
            self.repeats.count(Again::Unknown);
            return Verdict { answers: true, ping: None };
        };
        let (again, ping) = if peer.id == id {
            let again = path.asked_again(&mut peer.state, now);
            (again, path.pings(&mut peer.state, now).then(|| peer.ping.leaves(&from, id, id_generator)))
        } else {
            // Known by how long the answer is kept. Where that has become less since, nothing is known: answer.
            (path.asked_late(if first <= now { first } else { Instant::ORIGIN }, copies, now), None)
        };
        self.repeats.count(again);
        Verdict { answers: again.answers(), ping }
    }

    /// A message under this ID was rejected: says whether it was the ping.
    fn rejected(&mut self, (from, id): (A, MessageId), now: Instant, id_generator: &IdGenerator) -> bool {
        let (path, hash) = ((self.path_of)(&from), id_generator.hash(&from));
        let Some(peer) = self.peers.get(&from, hash) else { return false };
        if !peer.ping.is_rejected(id) {
            return false;
        }
        if let Some(path) = self.paths.get(&path, id_generator.hash(&path)) {
            path.rejected(&mut peer.state, voter(hash), now);
        }
        true
    }
}

impl Repeats {
    /// One more copy met this.
    pub(in crate::endpoint) const fn count(&mut self, again: Again) {
        let count = match again {
            Again::Unknown => &mut self.unknown,
            Again::Due => &mut self.due,
            Again::Lost => &mut self.lost,
            Again::Third => &mut self.third,
            Again::Withhold => &mut self.withheld,
        };
        *count = count.saturating_add(1);
    }
}

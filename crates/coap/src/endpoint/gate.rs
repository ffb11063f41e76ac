//! What a gateway before a server does for it: copies of requests whose answers are on their way go no further.

use core::{fmt, hash::Hash};

use millpond_control::{Again, CalmPath, CalmPeer, Instant};

use super::{
    IdGenerator, Repeats,
    ping::{Ping, voter},
    recent::Recent,
};
use crate::message::{Kind, Message, MessageId};

/// The first byte of an empty confirmable message.
const PING: u8 = 0x40;

/// Bytes in front of a token, and the bits of the first one that say how long the token is.
const HEADER: usize = 4;
const TOKEN_LENGTH: u8 = 0x0F;

/// The newest request of a peer.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    id: MessageId,
    /// Of all of it but the token, which may name the copy; nothing before the first.
    print: Option<u64>,
    /// The server answered it, inside an acknowledgement.
    answered: bool,
    pinged: Ping,
    state: CalmPeer,
}

/// The rules of [`CalmPath`] for a gateway before a server that knows nothing of them: it is shown every datagram
/// both ways, and says which of those to the server go no further.
///
/// Only copies of confirmable requests can be held back, and of these only ones of a peer's newest request that was seen to
/// be answered in its acknowledgement. Whatever it cannot read, such as DTLS, and whatever it has forgotten is handed
/// on. It answers no request; each peer is pinged, so that what it says of its path can be believed,
/// and the server never sees what that draws.
pub struct CalmGate<A> {
    peers: Recent<A, Newest>,
    paths: Recent<u64, CalmPath>,
    path_of: fn(&A) -> u64,
    id_generator: IdGenerator,
    /// Bytes that either table may take.
    most: usize,
    /// A ping that is to leave.
    ping: Option<(A, MessageId)>,
    repeats: Repeats,
    unreadable: u64,
}

impl<A> fmt::Debug for CalmGate<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CalmGate").field("repeats", &self.repeats).finish_non_exhaustive()
    }
}

impl<A: Copy + Eq + Hash> CalmGate<A> {
    /// One that knows nobody. Peers share paths as `path_of` says; each of its two tables takes at most `most` bytes, and
    /// what was used least recently makes room.
    #[must_use]
    pub fn new(path_of: fn(&A) -> u64, id_generator: IdGenerator, most: usize) -> Self {
        Self {
            peers: Recent::new(),
            paths: Recent::new(),
            path_of,
            id_generator,
            most,
            ping: None,
            repeats: Repeats::default(),
            unreadable: 0,
        }
    }

    /// Datagrams for the server that are no CoAP messages in the clear, such as those of DTLS. They were forwarded.
    #[must_use]
    pub const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// What became of copies.
    #[must_use]
    pub const fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// A datagram for the server came from a peer: is it forwarded?
    pub fn request(&mut self, now: Instant, from: A, datagram: &[u8]) -> bool {
        let Ok(message) = Message::parse(datagram) else {
            self.unreadable = self.unreadable.saturating_add(1);
            return true;
        };
        let (id_generator, most) = (self.id_generator, self.most);
        if matches!(message.kind, Kind::Reset | Kind::Acknowledgement) && message.code.is_empty() {
            return !self.rejected(now, from, message.id);
        }
        if message.kind != Kind::Confirmable || !message.code.is_request() {
            return true;
        }
        let print = id_generator.hash(&without_token(datagram));
        let path = self.paths.of((self.path_of)(&from), |path| id_generator.hash(path), most);
        let peer = self.peers.of(from, |from| id_generator.hash(from), most);
        let (Some(path), Some(peer)) = (path, peer) else { return true };
        if peer.id != message.id || peer.print != Some(print) {
            *peer = Newest { id: message.id, print: Some(print), answered: false, ..*peer };
            peer.state.asked();
            self.ping =
                path.pings(&mut peer.state, now).then(|| (from, peer.pinged.leaves(&from, message.id, &id_generator)));
            return true;
        }
        if !peer.answered {
            // The request or its answer may have been lost on the way behind.
            self.repeats.count(Again::Unknown);
            return true;
        }
        let again = path.asked_again(&mut peer.state, now);
        self.ping =
            path.pings(&mut peer.state, now).then(|| (from, peer.pinged.leaves(&from, message.id, &id_generator)));
        self.repeats.count(again);
        again.answers()
    }

    /// A message was rejected or acknowledged in the name of a peer: says whether that was a ping of ours.
    fn rejected(&mut self, now: Instant, from: A, id: MessageId) -> bool {
        let (path, hash) = ((self.path_of)(&from), self.id_generator.hash(&from));
        let Some(peer) = self.peers.get(&from, hash) else { return false };
        if !peer.pinged.is_rejected(id) {
            return false;
        }
        if let Some(path) = self.paths.get(&path, self.id_generator.hash(&path)) {
            path.rejected(&mut peer.state, voter(hash), now);
        }
        true
    }

    /// After each [`request`](Self::request): a datagram that is to leave for a peer, if there is one.
    pub fn ping(&mut self) -> Option<(A, [u8; 4])> {
        let (to, id) = self.ping.take()?;
        let [high, low] = id.0.to_be_bytes();
        Some((to, [PING, 0, high, low]))
    }

    /// A datagram of the server goes to a peer.
    pub fn answer(&mut self, now: Instant, to: A, datagram: &[u8]) {
        let Ok(message) = Message::parse(datagram) else { return };
        if message.kind != Kind::Acknowledgement || !message.code.is_response() {
            return;
        }
        let Some(peer) = self.peers.get(&to, self.id_generator.hash(&to)) else { return };
        if peer.id == message.id && !peer.answered {
            peer.state.answered(now);
            peer.answered = true;
        }
    }
}

/// The kind of a message, its code, ID, options and payload.
fn without_token(datagram: &[u8]) -> (u8, &[u8], &[u8]) {
    let (header, rest) = datagram.split_at_checked(HEADER).unwrap_or_default();
    let (first, others) = header.split_first().unwrap_or((&0, &[]));
    let token = usize::from(first & TOKEN_LENGTH);
    (first & !TOKEN_LENGTH, others, rest.get(token..).unwrap_or_default())
}

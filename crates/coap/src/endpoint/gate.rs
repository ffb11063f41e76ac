//! What a gateway before a server does for it: copies of requests whose answers are on their way go no further.

use core::{fmt, hash::Hash};

use millpond_control::{Again, CalmPath, CalmPeer, CalmServer, Instant};

use super::{Identities, Repeats, recent::Recent};
use crate::message::{Kind, Message, MessageId};

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
    state: CalmPeer,
}

/// The rules of [`CalmServer`] for a gateway before a server that knows nothing of them: it is shown every datagram
/// both ways, and says which of those to the server go no further.
///
/// Only copies of confirmable requests can be held back, and of these only ones of a peer's newest request that was seen to
/// be answered in its acknowledgement. Whatever it cannot read, such as DTLS, and whatever it has forgotten is handed
/// on. It never answers anything itself.
pub struct CalmGate<A> {
    server: CalmServer,
    peers: Recent<A, Newest>,
    paths: Recent<u64, CalmPath>,
    path_of: fn(&A) -> u64,
    identities: Identities,
    /// Bytes that either table may take.
    most: usize,
    repeats: Repeats,
    unreadable: u64,
}

impl<A> fmt::Debug for CalmGate<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CalmGate").field("server", &self.server).field("repeats", &self.repeats).finish_non_exhaustive()
    }
}

impl<A: Copy + Eq + Hash> CalmGate<A> {
    /// One that knows nobody. Peers share paths as `path_of` says; each of its two tables takes at most `most` bytes, and
    /// what was used least recently makes room.
    #[must_use]
    pub fn new(path_of: fn(&A) -> u64, identities: Identities, most: usize) -> Self {
        Self {
            server: CalmServer::new(),
            peers: Recent::new(),
            paths: Recent::new(),
            path_of,
            identities,
            most,
            repeats: Repeats::default(),
            unreadable: 0,
        }
    }

    /// Datagrams for the server that are no CoAP messages in the clear, such as those of DTLS. They were handed on.
    #[must_use]
    pub const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// What became of copies.
    #[must_use]
    pub const fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// A datagram for the server came from a peer: is it handed on?
    pub fn request(&mut self, now: Instant, from: A, datagram: &[u8]) -> bool {
        let Ok(message) = Message::parse(datagram) else {
            self.unreadable = self.unreadable.saturating_add(1);
            return true;
        };
        if message.kind != Kind::Confirmable || !message.code.is_request() {
            return true;
        }
        let (identities, most) = (self.identities, self.most);
        let print = identities.hash(&without_token(datagram));
        let path = self.paths.of((self.path_of)(&from), |path| identities.hash(path), most);
        let peer = self.peers.of(from, |from| identities.hash(from), most);
        let (Some(path), Some(peer)) = (path, peer) else { return true };
        if peer.id != message.id || peer.print != Some(print) {
            self.server.asked(path, &mut peer.state, now);
            *peer = Newest { id: message.id, print: Some(print), answered: false, state: peer.state };
            return true;
        }
        if !peer.answered {
            // The request or its answer may have been lost on the way behind.
            self.repeats.unknown = self.repeats.unknown.saturating_add(1);
            return true;
        }
        let again = self.server.asked_again(path, &mut peer.state, now);
        let count = self.repeats.count_of(again);
        *count = count.saturating_add(1);
        again.answers()
    }

    /// A datagram of the server goes to a peer.
    pub fn answer(&mut self, now: Instant, to: A, datagram: &[u8]) {
        let Ok(message) = Message::parse(datagram) else { return };
        if message.kind != Kind::Acknowledgement || !message.code.is_response() {
            return;
        }
        let Some(peer) = self.peers.get(&to, self.identities.hash(&to)) else { return };
        if peer.id == message.id && !peer.answered {
            self.server.answered(&mut peer.state, now);
            peer.answered = true;
        }
    }
}

impl Repeats {
    /// The counter of what became of a copy.
    pub(super) const fn count_of(&mut self, again: Again) -> &mut u64 {
        match again {
            Again::Calm => &mut self.calm,
            Again::Due => &mut self.due,
            Again::Allowed => &mut self.allowed,
            Again::Withhold => &mut self.withheld,
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

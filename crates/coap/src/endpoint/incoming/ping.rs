//! Pings whose rejections measure a round trip.

use core::hash::Hash;

use millpond_control::Voter;

use crate::endpoint::IdGenerator;
use crate::message::MessageId;

/// The last ping to a peer, an empty confirmable message that every device rejects (RFC 7252 §4.3), under an ID that nobody guesses.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::endpoint) struct Ping(Option<MessageId>);

impl Ping {
    /// One leaves for a peer whose newest request is this one: its ID.
    pub(in crate::endpoint) fn leaves(&mut self, to: &impl Hash, request: MessageId, by: &IdGenerator) -> MessageId {
        let id = by.ping_id(to, request);
        self.0 = Some(id);
        id
    }

    /// Something under this ID was rejected or acknowledged in its name: says whether that was the ping. A wrong guess ends it.
    pub(in crate::endpoint) fn is_rejected(&mut self, id: MessageId) -> bool {
        self.0.take() == Some(id)
    }
}

/// Whose voice a peer with this hash has on its path.
pub(in crate::endpoint) const fn voter(hash: u64) -> Voter {
    match Voter::new(hash as u16) {
        Some(voter) => voter,
        None => Voter::MAX,
    }
}

//! Whether a peer is where it says.

use core::hash::Hash;

use millpond_control::Voter;

use crate::endpoint::Identities;
use crate::message::MessageId;

/// Pings to a peer at most: some may be lost, and each is a guess for whoever forges its address.
const PINGS: u8 = 4;

/// What shows that a peer is where it says: the application knows, it has answered a message of ours, or it rejects a ping, an
/// empty confirmable message, whose ID nobody guesses (RFC 7252 §4.3). Every device does the last, and nothing else need be known to it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::endpoint) struct Validation {
    is_validated: bool,
    /// The ping that is to be rejected.
    pinged: Option<MessageId>,
    pings: u8,
    /// No ping left since its newest request came.
    may_ping: bool,
}

impl Validation {
    /// A new request of the peer came.
    pub(in crate::endpoint) const fn asked(&mut self, is_validated: bool) {
        self.is_validated |= is_validated;
        self.may_ping = true;
    }

    /// It is known from elsewhere.
    pub(in crate::endpoint) const fn is_known(&mut self) {
        self.is_validated = true;
    }

    /// Whose voice it has on its path, once it is validated. `hash` is of the peer.
    pub(in crate::endpoint) const fn voter(&self, hash: u64) -> Option<Voter> {
        if self.is_validated { Voter::new(hash as u16 | 1) } else { None }
    }

    /// It asked: the ID of the ping that is to leave now, if none ever did. Who waits for requests to come again learns of a queue too late.
    pub(in crate::endpoint) fn first_ping(
        &mut self,
        to: &impl Hash,
        id: MessageId,
        by: &Identities,
    ) -> Option<MessageId> {
        if self.pings == 0 { self.ping(to, id, by) } else { None }
    }

    /// Its request came again: the ID of the ping that is to leave now, if one is.
    pub(in crate::endpoint) fn ping(&mut self, to: &impl Hash, id: MessageId, by: &Identities) -> Option<MessageId> {
        if self.is_validated || !self.may_ping || self.pings >= PINGS {
            return None;
        }
        self.may_ping = false;
        self.pings = self.pings.saturating_add(1);
        self.pinged = Some(by.ping_id(to, id));
        self.pinged
    }

    /// Something under this ID was rejected or acknowledged in its name: says whether that was the ping. A wrong guess ends it.
    pub(in crate::endpoint) fn rejected(&mut self, id: MessageId) -> bool {
        let is_ping = self.pinged.take() == Some(id);
        self.is_validated |= is_ping;
        is_ping
    }
}

//! What happens to sessions, for the client in them.

use crate::{Why, udp::Address};

/// Something happened to a session.
#[derive(Debug)]
pub(crate) struct SessionEvent {
    /// The peer.
    pub(crate) peer: Address,
    /// The peer as the stack knows it.
    pub(crate) inside: Address,
    pub(crate) what: SessionChange,
}

/// What happened to a session.
#[derive(Debug)]
pub(crate) enum SessionChange {
    /// It carries messages from now on; before it there was this one with the same peer.
    Established { before: Option<Address> },
    /// It stood, and is over. Whether it carried any message of the peer, and whether this side ended it.
    Ended { why: Why, was_used: bool, is_ours: bool },
    /// It stands still, and was doubted: what waited for another one goes on in it.
    Resumed,
    /// It did not come about; whether for want of an answer in time.
    Failed { why: Why, timed_out: bool },
}

/// What there is with a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// A session that stands and is for the name that is asked for; the peer as the stack knows it.
    Established(Address),
    /// A handshake is under way.
    Handshaking,
    /// Nothing, or nothing that can be relied upon.
    None,
    /// A session that stands and is not for this name, and why.
    Unfit(Why),
}

//! Who may hold how much of what is not enough for everybody.
//!
//! Addresses can be forged, and a sender with one port or address often has many. So nothing here counts peers: a [`Source`] is the
//! network of a peer, and whether its address is validated. A source that wants more than its share takes it from itself; what is held for
//! unvalidated addresses never keeps anybody else out.
//!
//! | policy | says | of |
//! |---|---|---|
//! | [`Shares`] with [`Usage`] | whether there is room for one more | handlers, requests and answers that wait, observers, connections |
//! | [`Holders`] | whose holding gives way, where all of one kind count alike | connections, handshakes, sessions |
//! | [`oldest_of_largest`] | which give way of many at once | validated addresses |
//! | `Crowded` | what is worth least, without memory of its own | bodies in blocks and bursts, kept representations |
//! | [`FairQueue`] | whose turn it is | permits, paths of a proxy |
//! | `Tally` | who has most, by network and by address | answers to groups that wait for their time |

mod crowded;
mod fair;
mod holders;
mod shares;
mod tally;

pub(crate) use crowded::Crowded;
pub use fair::FairQueue;
pub use holders::{Holders, oldest_of_largest};
pub use shares::{Full, Shares, Usage};
pub(crate) use tally::Tally;

/// For whom something is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The peer is known to be at its address.
    pub is_validated: bool,
    /// The network that it is in.
    pub network: u64,
}

impl Source {
    /// A peer that is known to be at its address.
    #[must_use]
    pub const fn validated(network: u64) -> Self {
        Self { is_validated: true, network }
    }

    /// A peer whose address may be forged.
    #[must_use]
    pub const fn unvalidated(network: u64) -> Self {
        Self { is_validated: false, network }
    }
}

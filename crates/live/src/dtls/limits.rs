//! What peers may cost.

use super::Keys;

/// What the peers of one socket may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Sessions that stand. For one more, of the network that has the most the one that was silent longest is closed.
    pub(super) established: usize,
    /// Handshakes under way, all with addresses that are proved. For one more, one of the network that has the most is
    /// given up, whichever chance says: nobody can wait until another's is the oldest.
    pub(super) handshaking: usize,
    /// Bytes of the longest datagram that is looked at. A handshake keeps what came out of order, and a session the room for the
    /// longest that it was ever sent.
    pub(super) longest: usize,
    /// Microseconds of silence after which a session is closed.
    pub(super) idle: u64,
}

impl Limits {
    /// A client closes after 30 minutes, before a server does after an hour, so that it is rarely the server that knows a
    /// session no more.
    ///
    /// A client's certificate, with all those behind it that we do not look at, comes in datagrams of its network's MTU, but for
    /// machines that are their own network. What a client hears it has asked for.
    pub(super) const fn of(keys: &Keys) -> Self {
        const MINUTE: u64 = 60_000_000;
        let idle = if keys.is_client() { 30 * MINUTE } else { 60 * MINUTE };
        let longest = if keys.is_client() { 65_535 } else { 4_096 };
        Self { established: 16_384, handshaking: 1_024, longest, idle }
    }
}

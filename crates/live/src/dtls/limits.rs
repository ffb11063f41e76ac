//! What peers may cost.

use super::Keys;

/// What the peers of one socket may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Sessions that stand. For one more, of the network that has the most the one that was silent longest is closed.
    pub(super) standing: usize,
    /// Handshakes under way, all with addresses that are proved. For one more, one of the network that has the most is
    /// given up, whichever chance says: nobody can wait until another's is the oldest.
    pub(super) rising: usize,
    /// Microseconds of silence after which a session is closed.
    pub(super) idle: u64,
}

impl Limits {
    /// A client closes after 30 minutes, before a server does after an hour, so that it is rarely the server that knows a
    /// session no more.
    pub(super) const fn of(keys: &Keys) -> Self {
        const MINUTE: u64 = 60_000_000;
        let idle = if keys.is_client() { 30 * MINUTE } else { 60 * MINUTE };
        Self { standing: 16_384, rising: 1_024, idle }
    }
}

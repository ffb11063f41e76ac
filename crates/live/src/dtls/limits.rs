//! What peers may cost.

use super::Keys;

/// What the peers of one socket may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Sessions that stand. For one more the one that was silent longest is closed.
    pub(super) standing: usize,
    /// Handshakes with addresses that are proved. For one more the oldest is given up.
    pub(super) rising: usize,
    /// Addresses that have not answered a cookie yet. For one more the oldest is forgotten.
    pub(super) unproved: usize,
    /// Microseconds that an address has to answer a cookie.
    pub(super) proving: u64,
    /// Microseconds of silence after which a session is closed.
    pub(super) idle: u64,
}

impl Limits {
    /// A client closes after 30 minutes, before a server does after an hour, so that it is rarely the server that knows a
    /// session no more.
    pub(super) const fn of(keys: &Keys) -> Self {
        const MINUTE: u64 = 60_000_000;
        let idle = if keys.is_client() { 30 * MINUTE } else { 60 * MINUTE };
        Self { standing: 16_384, rising: 1_024, unproved: 1_024, proving: MINUTE / 2, idle }
    }
}

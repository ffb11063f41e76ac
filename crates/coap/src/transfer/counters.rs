/// What a stack has counted since it was made, beside what its endpoint counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Requests of ours begun.
    pub client_requests: u64,
    /// Requests of ours that ended without an answer.
    pub failed: u64,
    /// Notifications that were older than what was known (RFC 7641 §3.4), and dropped.
    pub stale: u64,
    /// Whole requests handed to the application.
    pub requests: u64,
    /// Blocks served from what was kept.
    pub served: u64,
    /// Notifications handed to the endpoint.
    pub notifications: u64,
    /// Answers that were cut or withheld because their receiver has not shown that it is at its address (RFC 9175 §2.4).
    pub limited: u64,
    /// Observers that are gone, and were told to be.
    pub observers_gone: u64,
}

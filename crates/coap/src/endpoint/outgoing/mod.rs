//! What leaves: requests of ours and responses beyond the first, their copies, and what matches the answers to them.

pub(in crate::endpoint) mod additional;
pub(in crate::endpoint) mod admission;
pub(in crate::endpoint) mod exchanges;
pub(in crate::endpoint) mod finding;
pub(in crate::endpoint) mod message_ids;
pub(in crate::endpoint) mod naming;
pub(in crate::endpoint) mod overdue;
pub(in crate::endpoint) mod progress;
pub(in crate::endpoint) mod send;
pub(in crate::endpoint) mod subscriptions;
pub(in crate::endpoint) mod unanswered;

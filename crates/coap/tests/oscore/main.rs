//! OSCORE by what its users see of it. The vectors of RFC 8613 Appendix C are beside the code, for they show keys.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly"
)]

#[cfg(feature = "oscore-anew")]
mod anew;
mod congestion;
mod corpus;
mod hostile;
mod messages;
mod nonces;
mod notifications;
mod observing;
mod options;
mod outer;
mod parameters;
mod passing;
mod properties;
mod refusals;
mod replay;
mod restarts;
mod stacks;
mod streams;

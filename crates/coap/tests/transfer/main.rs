//! Whole bodies and observations, one file for each behaviour: two stacks in invented time with a path between them whose
//! every datagram can be lost.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly"
)]

mod bad_options;
mod both;
mod bursts;
mod corpus;
mod downloads;
mod endless;
mod forged;
mod groups;
mod hostile;
mod inputs;
mod jumps;
mod layers;
mod limits;
mod long_tokens;
mod observations;
mod observers;
mod pair;
mod properties;
mod restarts;
mod session;
mod shared;
mod unanswered;
mod unvalidated;
mod unvalidated_peers;
mod uploads;

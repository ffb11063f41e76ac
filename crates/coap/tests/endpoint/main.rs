//! The endpoint against RFC 7252, one file for each behaviour: two endpoints in invented time with a path between them
//! whose every datagram can be lost.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly"
)]

mod abuse;
mod additional;
mod bad_options;
mod calm;
mod confirming;
mod controllers;
mod corpus;
mod duplicates;
mod flood;
mod gate;
mod giving_up;
mod groups;
mod id_generator;
mod jumps;
mod late_acknowledgements;
mod leisure;
mod lifetimes;
mod long_tokens;
mod malformed;
mod memory;
mod naming;
mod naming_echoes;
mod naming_options;
mod naming_tokens;
mod non_confirmable;
mod overdue;
mod own_controllers;
mod pair;
mod paths;
mod piggybacked;
mod properties;
mod resets;
mod retransmit_options;
mod schedules;
mod separate;
mod session;
mod subscriptions;
mod unanswered;
mod unvalidated_peers;
mod waiting;

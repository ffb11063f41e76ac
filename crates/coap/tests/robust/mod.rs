//! Conversations of RFC 9177 (Q-Block1 and Q-Block2) between two endpoints, over paths that lose, delay and reorder.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may stop at the first surprise"
)]

mod controllers;
mod downloads;
mod engines;
mod falling_back;
mod hostile;
mod pacing;
mod settings;
mod uploads;
mod world;

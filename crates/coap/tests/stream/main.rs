//! CoAP over streams: frames byte by byte, signals, connections, and whatever a peer may send instead.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may stop at the first surprise"
)]

mod bad_options;
mod bodies;
mod connection;
mod corpus;
mod errors;
mod frames;
mod hostile;
mod leaving;
mod observing;
mod owned;
mod pieces;
mod properties;
mod session;
mod side;
mod stack_properties;
mod stacks;
mod tokens;
mod unanswered;

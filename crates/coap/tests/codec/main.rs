//! The codec, and that of what is remembered of paths, against the RFC's own examples, against the mistakes of other stacks, against itself and against an
//! independent implementation.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly"
)]

mod bug_classes;
mod corpus;
mod datagram;
mod differential;
mod memory;
mod option_properties;
mod properties;
mod remembered;
mod values;
mod vectors;
mod writing;

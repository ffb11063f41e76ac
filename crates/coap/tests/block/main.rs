//! Block-wise transfer of RFC 7959, both ways.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may stop at the first surprise"
)]

mod assemblies;
mod corpus;
mod downloads;
mod options;
mod properties;
mod session;
mod uploads;

/// A body of so many bytes, no two blocks alike.
pub(crate) fn body(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8 ^ (index / 251) as u8).collect()
}

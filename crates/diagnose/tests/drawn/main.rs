//! Diagnoses of captures whose truth is known, for they are drawn scenarios of the simulator.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod accuracy;
mod drawing;
mod laboratory;
mod pitfalls;

//! Workloads as pure machines: they say when a client's next request arrives. Which endpoint makes it, over what, and
//! what becomes of it, they do not know.
//!
//! The owner keeps one [`Source`] for each workload of a client. It wakes at [`Source::next`], takes the arrival with
//! [`Source::take`], and tells [`Source::ended`] when a request of it has ended. What a source does not know of itself
//! comes with each call as a [`Plan`]: the same for all clients of a group. A [`ClientProfile`] is all that they share.

mod draws;
mod profile;
mod source;

pub(crate) use draws::{Draws, Of, size, start, time};
pub(crate) use profile::{ClientProfile, Due, REGISTRATION};
pub(crate) use source::{Plan, Source};

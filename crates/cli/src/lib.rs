//! The verbs of the program `millpond` that need no laboratory: requests, a server, a load generator, and paths
//! put between real programs.
//!
//! [`main_from`] is the whole program, [`main_among`] for another one that has these verbs among its own; [`verbs`] names them,
//! [`defaults`] what they do by default.
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | verb | the first argument: what the program is to do |
//! | trial | a resource of `serve` to try a client with |
//! | failure | why a verb did not do what it was to do: a line for people, and an exit code |
//! | tally, scale | what a load measured, and the rows of its histogram |

#![forbid(unsafe_code)]

pub mod answer;
pub mod arguments;
pub mod content_format;
pub mod diagnose;
pub mod discover;
mod draft;
pub mod emulate;
pub mod failure;
pub mod gateway;
pub mod interrupt;
pub mod load;
pub mod log;
pub mod nearest;
pub mod observe;
mod opening;
pub mod oscore;
pub mod ping;
mod program;
pub mod progress;
pub mod render;
pub mod request;
pub mod serve;
pub mod shell;
mod systemd;
pub mod trace;
pub mod values;

pub use arguments::{GROUPS, defaults, verbs};
pub use program::{commit, main_among, main_from, version};

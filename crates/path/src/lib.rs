//! Paths as people write them, and packets as people look at them.
//!
//! A [`Path`] is the `[path]` section of a file: an uplink and a downlink, each with a rate, a delay, a queue and losses,
//! every quantity with its unit. What is misspelt or out of range is answered with one line that names the place and the fix
//! ([`InputError`]). [`Direction::config`] turns a direction into the configuration of a [`millpond_link::Link`], so that a
//! simulator and an emulator read the very same text. [`capture`] writes packets for Wireshark.
//!
//! This crate knows neither exchanges nor clocks.
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | path | an uplink, from clients to server, and a downlink, back |
//! | access | what devices do before they may send over a path, and be reached |
//! | Wi-Fi hop | a channel that clients share with their access point, in front of both directions |
//! | profile | a path with a name, from the literature |
//! | capture | the packets that passed, as pcapng |

#![forbid(unsafe_code)]

mod access;
mod aqm;
pub mod capture;
mod direction;
mod error;
mod links;
mod loss;
mod path;
mod probability;
mod profile;
mod quantity;
mod trace;
mod wifi;
mod written;

pub use access::{Access, CoverageLevel};
pub use aqm::Aqm;
pub use direction::{Direction, Jitter, Order, QueueCounts};
pub use error::{InputError, unknown};
pub use loss::{Loss, LossAt, LossOf};
pub use path::Path;
pub use probability::probability;
pub use profile::{Profile, profiles};
pub use quantity::{BitRate, Duration, Length, QueueLimit, Size};
pub use trace::Trace;
pub use wifi::{Standard, Wifi};
pub use written::word_or_table;

/// The first program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;

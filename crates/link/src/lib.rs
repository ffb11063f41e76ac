//! One direction of a network path as a pure state machine: a queue, a rate, a delay and a loss process.
//!
//! ```text
//!  offer ──► (loss before) ──► queue ──► rate ──► (loss after) ──► propagation + jitter ──► deliver
//! ```
//!
//! The same machine serves a simulator and a live emulator. It has no clock and no random source: time is an argument
//! of every call and chance is addressed by link and packet number ([`millpond_control::ChanceSeed`]), so packet *n* of
//! link *k* meets the same random numbers whatever else happens. There is exactly one queue and its limit is in the [`Config`].
//!
//! The owner keeps one wake-up per link, at [`Link::next`], and drains [`Link::deliver`] when it fires:
//!
//! ```
//! use millpond_control::{ChanceSeed, Instant, Span};
//! use millpond_link::{Config, Delivered, Limit, Link, Rate};
//!
//! let config = Config::plain(Rate::BitsPerSecond(30_000), Span::from_millis(415), Limit::Bytes(2_500));
//! let mut link = Link::new(&config, ChanceSeed::new(1), 0)?;
//! link.offer(Instant::ORIGIN, 94, "hello").map_err(|(why, _)| why)?;
//!
//! while let Some(now) = link.next() {
//!     while let Some(delivered) = link.deliver(now) {
//!         match delivered {
//!             Delivered::Arrived(parcel) => println!("{} at {:?}", parcel.payload, parcel.at),
//!             Delivered::Lost(parcel) => println!("packet {} was lost", parcel.number),
//!             Delivered::Dropped(parcel, why) => println!("packet {} was dropped: {why}", parcel.number),
//!         }
//!     }
//! }
//! link.check_conservation()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Rate, delay and losses may follow a [`Trace`], on which [`Link::follow`] sets the link before the first packet.
//!
//! [`Access`] is what stands before the links of a radio cell: random access, coverage levels, sleep, duty cycles.
//!
//! Memory holds the packets that are inside and nothing else; it grows to the largest number ever inside and is then
//! reused, so a link in its steady state does not allocate.
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | parcel | a packet on its way: a length, a number, and whatever its owner attached |
//! | to offer, to deliver | to hand a packet to the link; to take one that has arrived, or was lost |
//! | managed | of a queue that drops packets before it is full ([`Aqm`]) |
//! | tail drop | a packet that finds the queue full is dropped; the packet being sent counts in the queue |
//! | loss before, loss after | by chance, ahead of the queue, or behind the rate, where it has cost its time |
//! | jitter | what is added to the propagation delay of each packet |
//! | conservation | what was offered is delivered, lost, or inside |

#![forbid(unsafe_code)]
// Theory, which tests compare with, is in floats.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

mod access;
mod air;
mod aloft;
mod aqm;
mod config;
mod counters;
mod dcf;
mod exponential;
mod jitter;
mod link;
mod loss;
mod names;
mod probability;
mod queue;
mod radios;
mod rate;
mod statistics;
mod trace;

pub use access::{
    Access, AccessCounters, AccessError, AccessRules, Connection, DutyCycle, Levels, Passing, RandomAccess,
};
pub use config::{
    Aqm, CoDelRules, Config, ConfigError, Counted, FqCoDelRules, InFlight, Jitter, Limit, Loss, LossAt, LossOf, Order,
    PieRules, Rate,
};
pub use counters::{Counters, Imbalance, Tally};
pub use dcf::{Dcf, DcfCounters, DcfRules};
pub use exponential::minus_ln;
pub use link::{Delivered, Link, Parcel};
pub use names::QueuedNames;
pub use probability::Probability;
pub use queue::{DropReason, Occupancy};
pub use statistics::{Level, MeanLevel, Statistics};
pub use trace::{Step, Trace, TraceError};

/// The first program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;

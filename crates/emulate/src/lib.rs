//! Paths in real time: real programs behind the very links that are simulated.
//!
//! A [`Shaper`] is both directions of a [`millpond_path::Path`] as a state machine with time as an argument, around the
//! links of `millpond-link` that the simulator uses. Two drivers give it real time and real packets: [`Relay`], which hands
//! on UDP datagrams between sockets, on any operating system and without privileges, and on Linux `linux::Emulation`, which puts
//! programs into network namespaces of their own, with the links between them.
//!
//! A packet's time is reckoned from when it was offered and from what was before it, never from when a driver got round to
//! it, so that lateness does not add up. It is measured ([`LatenessRow`]), and a run that was late beyond its
//! [`LatenessBound`] says so.
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | shaper | both directions of a path |
//! | relay | hands datagrams on between sockets; the emulation does so between network namespaces |
//! | lateness | how much later than reckoned a packet left |

mod clock;
mod driver;
mod error;
mod flows;
mod lateness;
#[cfg(target_os = "linux")]
pub mod linux;
mod once;
mod passage;
mod priority;
mod reader;
mod relay;
mod rows;
mod shaper;
mod sockets;
mod stop;
mod ways;

pub use error::Error;
pub use lateness::{Lateness, LatenessBound, LatenessRow};
pub use once::Likeness;
pub use passage::{LinkStanding, Standing, Watch};
pub use reader::Reader;
pub use relay::{Gate, MOST_CLIENTS, Relay, RelayOptions};
pub use rows::{AccessRow, FlowRow, GateRow, LeftOut, LinkRow, Report, Retransmissions};
pub use shaper::{Outgoing, Shaper, Toward};
pub use sockets::{PORTS, sets_apart};
pub use stop::Stop;
pub use ways::{Carried, ClientChange, ClientStanding, network};

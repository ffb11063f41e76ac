//! Models of TCP as a transport of CoAP: handshake, loss recovery, retransmission timer, delayed acknowledgements, and
//! congestion control behind one interface.
//!
//! A [`Connection`] is one end. Like every state machine here it has neither clock nor wire: hand it segments with
//! [`receive`](Connection::receive), data with [`write`](Connection::write) and time with [`poll`](Connection::poll), and
//! send what `poll` gives. What it leaves out: closing, window scaling, urgent data, timestamps.
//!
//! The loss recovery is that of Linux, without SACK (RFC 5681, RFC 6582, limited transmit of RFC 3042, rate halving of
//! RFC 6937) or with it (RFC 2018, RFC 6675: lost copies wait for the timer); the timer is that of Linux, or RFC 6298 to the letter ([`TimerRule`]). A congestion control is
//! one file that implements [`CongestionControl`]; [`NewReno`], [`Cubic`] and [`Bbr`] are here.

mod bbr;
mod config;
mod connection;
mod control;
mod cubic;
mod hystart;
mod new_reno;
mod policed;
mod progress;
mod receiver;
mod repair;
mod sender;
mod timer;

pub use bbr::Bbr;
pub use config::{Config, Control, DelayedAcks, TimerRule, Timing};
pub use connection::{Connection, Phase, Polled, Segment};
pub use control::{Ack, CongestionControl, Flight, RateSample, State};
pub use cubic::Cubic;
pub use new_reno::NewReno;
pub use progress::{Progress, Totals};
pub use repair::Recovery;

/// Microseconds since the start of the simulation.
pub(crate) type Micros = u64;

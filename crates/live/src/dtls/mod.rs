//! Datagrams under DTLS (RFC 6347, RFC 9147; RFC 7252 §9 for CoAP): sessions between a socket and its stack.
//!
//! The protocol is `dimpl`'s. What is here decides which datagram belongs to which session, what a peer may cost before
//! it is known, when a session ends, and gives the stack a new peer for each session, so that nothing said in one counts
//! in the next (RFC 7252 §9.1). Time is an argument as below; `dimpl` counts in the standard library's instants, and
//! [`Origin`] converts.

mod cookie;
mod fault;
mod hello;
#[cfg(any(fuzzing, test))]
pub mod hostile;
mod keys;
mod limits;
mod record;
mod session;
mod session_event;
mod sessions;
mod signing;
#[cfg(test)]
mod trials;

use std::time::Duration;

use millpond_control::Instant;

pub(crate) use keys::{ClientKeys, Keys, ServerKeys};
pub(crate) use session_event::{Link, SessionChange, SessionEvent};
pub(crate) use sessions::Sessions;

/// Where the state machines' time begins, as `dimpl` counts it.
#[derive(Clone, Copy, Debug)]
struct Origin(std::time::Instant);

impl Origin {
    fn at(self, now: Instant) -> std::time::Instant {
        self.0 + Duration::from_micros(now.as_micros())
    }

    /// The first whole microsecond at or after a point: a timer is due then. Points before the origin are the origin.
    fn back(self, at: std::time::Instant) -> Instant {
        let micros = at.saturating_duration_since(self.0).as_nanos().div_ceil(1_000);
        Instant::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

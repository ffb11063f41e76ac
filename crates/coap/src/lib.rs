//! The Constrained Application Protocol: messages and the message layer as pure state machines.
//!
//! [`message`] reads and writes the bytes of RFC 7252 §3: strictly, without copying and without allocating.
//! [`endpoint`] is what speaks with them: a client and server without clock and socket, driven by whoever has both.
//! [`stream`] is the same over TCP, with the frames and signals of RFC 8323. [`block`] carries over either of them what
//! does not fit one message, and [`transfer`] is client and server of whole bodies and observations.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        reason = "a test may fail loudly"
    )
)]

extern crate alloc;

pub mod block;
pub mod endpoint;
pub mod message;
pub mod stream;
pub mod transfer;

pub use endpoint::{
    CalmGate, Cause, Config, ConfigError, Counters, DEFAULT_LEISURE, Duplicates, Endpoint, Event, ExchangeId, Failure,
    Identities, Ignored, Lifetimes, Limits, NamingOption, NamingOptions, Outgoing, Output, Patience, Refused, Repeats,
    RequestId, SleepReason, Transmission, Transmit, leisure,
};

//! The Constrained Application Protocol: messages and the message layer as pure state machines.
//!
//! [`message`] reads and writes the bytes of RFC 7252 §3: strictly, without copying and without allocating.
//! [`endpoint`] is what speaks with them: a client and server without clock and socket, driven by code that has both.
//! [`stream`] is the same over TCP, with the frames and signals of RFC 8323. [`block`] carries over either of them what
//! does not fit one message, and [`transfer`] is client and server of whole bodies and observations, over whichever
//! [`layer`]. `oscore`, a feature, protects single messages from end to end. [`proxy`] is what one decides that stands
//! between two such.
//!
//! # The road of a message
//!
//! *In*: [`CoapStack::receive`](transfer::CoapStack::receive) hands a datagram to `endpoint/incoming/receive.rs`, which parses it, looks for
//! duplicates, matches responses and queues what it means as one entry of `endpoint/tables/queue.rs`.
//! [`CoapStack::poll`](transfer::CoapStack::poll), in `transfer/drive.rs`, takes entry after entry and calls
//! `request_came` of `transfer/server.rs` or `response_came` of `transfer/client.rs`. What follows is done there and then: a
//! refusal, the next block, a notification that waited. What concerns the application waits in `events` for the next poll.
//!
//! *Out*: [`CoapStack::request`](transfer::CoapStack::request), [`answer`](transfer::CoapStack::answer) and [`notify`](transfer::CoapStack::notify) cut the body
//! (`transfer/pending_request.rs`, `transfer/representation.rs`) and call `request`, `respond` or `notify` of the [`layer`].
//! `endpoint/outgoing/send.rs` or `endpoint/incoming/inbox.rs` has it encrypted if all is to be, and writes the bytes into the same
//! queue; the next poll gives them.
//!
//! Over a stream, `stream/connection` stands where `endpoint` does. Both say what happened by the same [`Event`].
//!
//! # Words
//!
//! Those of the RFCs mean what they mean there: message, exchange, token, request, response, block, observation. Beside them:
//!
//! | word | is |
//! |---|---|
//! | peer | whatever is at one address, as the caller distinguishes addresses |
//! | validated peer | one that was asked for something or has answered something; an unvalidated peer is any other |
//! | path | the way to a peer, with its controller, NSTART and queue; peers share one if the caller says so (`sharing_paths`, `share_path`) |
//! | stack | an endpoint, or a connection, with whole bodies above it |
//! | overdue request | one that is unanswered after its last copy's wait, and keeps its place until something else needs it |
//! | claim | all tokens that begin alike, held for the requests of one body in bursts |
//! | burst, set | the blocks that leave without a pause: MAX_PAYLOADS of RFC 9177 |
//! | evidence, sample | what a reply says about the round trip, with a grade for how sure that is |
//! | name of a copy | what tells the copies of a request apart, and which its response repeats |
//! | chance | random words by address, given by the caller, so that a run can be repeated |

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "parts"),
    allow(
        dead_code,
        reason = "what only a part calls that is left out is left out with it; with all parts nothing is unused"
    )
)]
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
#[cfg(test)]
#[macro_use]
extern crate std;

#[macro_use]
mod invariant;

pub mod block;
mod body;
pub mod endpoint;
pub mod layer;
mod long_tokens;
pub mod message;
mod newest;
#[cfg(feature = "oscore")]
pub mod oscore;
mod output;
mod parts;
mod path_cache;
mod pauses;
mod protection;
pub mod proxy;
pub mod quota;
pub mod stream;
pub mod transfer;

pub use endpoint::{
    CalmGate, Cause, Config, ConfigError, Counters, DEFAULT_LEISURE, Duplicates, Endpoint, EndpointOutput, Event,
    ExchangeId, Failure, IdGenerator, Ignored, Lifetimes, Limits, NamingOption, NamingOptions, Outgoing, Refused,
    Repeats, RequestId, RetransmitOptions, Transmission, Transmit, leisure,
};
/// What every program needs of `millpond-control`: controllers by name, chance and time.
pub use millpond_control::{ChanceSeed, Instant, Preset, Span};
pub use newest::Newest;
pub use output::{Output, SleepReason};
pub use path_cache::{Backoff, PathCache, PathCacheError};
pub use pauses::Pauses;
pub use protection::{ProtectError, ResponseFault};

/// The first program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;

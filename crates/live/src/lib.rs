//! CoAP on the wire: clients and servers on tokio that drive the same endpoint and controllers as the laboratory.
//!
//! A [`Client`] asks, a [`Server`] answers; both speak UDP and TCP (RFC 7252, 7641, 7959, 8323). Protocol and congestion
//! control are the state machines of `millpond-coap` and `millpond-control`. What is here gives them sockets, time and
//! chance: `udp` has batches of datagrams, `socket` the task that owns sockets and stacks for a client, a server or both,
//! `server::dispatcher` what becomes of a request. The guide is docs/live.md.
//!
//! # Words
//!
//! Those of RFC 7252, 7641 and 7959 mean what they mean there: peer, exchange, token, block, observation. Words of `millpond-coap`: stack, path,
//! unvalidated peer. Beside them:
//!
//! | word | is |
//! |---|---|
//! | inbox, outbox | batches of datagrams that a UDP socket received, or is to send |
//! | place | what a handler takes that waits; admission gives it |
//! | proof | a client has shown that it is where it says (Echo, RFC 9175) |
//! | route | what a client has open and waiting towards one peer |

#![cfg_attr(
    not(feature = "dtls"),
    allow(
        clippy::clone_on_copy,
        clippy::default_constructed_unit_structs,
        reason = "what stands in place of security is next to nothing"
    )
)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "dtls", feature = "server", feature = "tls")),
    allow(dead_code, unused_imports, unused_variables, reason = "what only the parts use that are left out")
)]

mod cause;
mod client;
mod clock;
mod content_format;
mod controller;
/// What keeps things on disk here and in the gateway.
#[cfg(feature = "state")]
#[doc(hidden)]
pub mod database;
#[cfg_attr(not(feature = "dtls"), path = "dtls/absent.rs")]
mod dtls;
mod error;
#[cfg(feature = "server")]
mod fair;
mod invariant;
mod link_format;
mod options;
mod path_key;
mod response;
mod secrets;
mod security;
#[cfg(feature = "server")]
mod server;
mod socket;
mod stats;
#[cfg(any(feature = "cbor", feature = "json"))]
mod structured;
#[cfg(feature = "tcp")]
mod tcp;
mod trace;
mod udp;
mod uri;
mod watch;

use millpond_coap::transfer;

pub use bytes::Bytes;
pub use cause::Cause;
pub(crate) use cause::Why;
pub use client::{
    Cache, CacheKey, Cached, Client, ClientBuilder, GroupAnswers, GroupRequest, Interruption, IntoPeer, IntoUri,
    Observation, Observed, Outcome, Progress, Reconnect, RequestBuilder, cache_key, cache_key_of,
};
pub use clock::Clock;
pub use content_format::ContentFormat;
pub use controller::{ControllerChoice, DEFAULT_CONTROLLER, UnknownController};
pub use error::{Error, NotSent};
#[cfg(feature = "server")]
pub use fair::{FairPermit, FairSemaphore};
#[cfg(feature = "server")]
pub use ipnet::IpNet;
pub use link_format::{Link, LinkAttribute, LinkError, LinkWriter, attribute_fits, is_attribute_name, links};
pub use millpond_coap::message::{Code, Kind, MessageId, NoResponse, Token, is_unsafe_to_forward, number};
/// What a proxy decides.
pub use millpond_coap::proxy;
/// Who may hold how much of what is not enough for everybody, by network.
pub use millpond_coap::quota;
pub use millpond_coap::{Backoff, Duplicates, PathCache, PathCacheError, Pauses, Repeats, leisure};
/// The controllers themselves: presets, their parameters, and the calls that a custom one answers.
pub use millpond_control as control;
/// No wait of a preset is shorter than this unless another [least wait](ClientBuilder::least_wait) is chosen.
pub use millpond_control::least_wait::LEAST_WAIT as DEFAULT_LEAST_WAIT;
pub use millpond_control::{PeerController, Preset};
pub use options::Options;
pub use path_key::PathKey;
pub use response::{ExchangeReport, Grade, Response};
#[cfg(feature = "edhoc")]
pub use security::EdhocCredentials;
#[cfg(feature = "oscore")]
pub use security::OscoreContexts;
pub use security::PeerIdentity;
#[cfg(feature = "_secure")]
pub use security::{ClientSecurity, KeyedCertificate, PreSharedKey, PreSharedKeys, ServerSecurity, TrustAnchors};
#[cfg(feature = "server")]
pub use server::{
    AccessOutcome, AccessRecord, AddressRule, FromRequest, Handler, HandlerError, Interest, IntoResponse,
    LONGEST_SILENCE, METHODS, Next, Observable, Offered, Path, Policy, Query, RateLimit, Request, RequestBody,
    Resource, Rule, Server, ServerBuilder, State, Unasked, Who, serve_metrics,
};
pub use stats::{PeerStats, Stats};
#[cfg(feature = "cbor")]
pub use structured::Cbor;
#[cfg(feature = "json")]
pub use structured::Json;
#[cfg(feature = "tls")]
pub use tcp::{TlsConnector, TlsListener};
pub use trace::{Happened, TraceEvent};
pub use udp::{Interface, IntoAddress, network_of};
pub use uri::{Authority, DEFAULT_PORT, DEFAULT_SECURE_PORT, Host, Transport, Uri, UriError, percent_encoded};

/// For the fuzzer alone.
#[cfg(all(fuzzing, feature = "dtls"))]
pub use dtls::hostile::check as check_sessions;
/// The same.
#[cfg(all(fuzzing, feature = "edhoc"))]
pub use security::check_edhoc;

/// The guide's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/live.md")]
#[derive(Debug)]
pub struct Guide;

/// Those of the guide to security, too.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/security.md")]
#[derive(Debug)]
pub struct SecurityGuide;

/// The first program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;

//! Clients and servers over loopback.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod absurd;
mod access_log;
mod authority;
mod bodies;
mod bursts;
mod caching;
mod causes;
mod conditions;
mod connections;
mod cut_off;
mod datagrams_secure;
mod endings;
mod examples;
mod extracting;
mod faults;
mod forged_addresses;
mod groups;
mod handlers;
mod known_holes;
mod lasting;
mod methods;
mod observing;
mod one_connection;
mod one_session;
mod one_socket;
mod parts;
#[cfg(feature = "oscore")]
mod protected;
mod proxies;
mod released;
mod remembering;
mod renewed;
#[cfg(feature = "state")]
mod restarting;
mod robustness;
mod safety;
mod serving_streams;
mod settings;
mod shared_paths;
mod silent_clients;
mod sources;
mod streaming;
mod streaming_connections;
mod streaming_uploads;
mod streams;
mod streams_secure;
mod unanswered;
mod unusual_peers;
mod zones;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Any free port of this machine.
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

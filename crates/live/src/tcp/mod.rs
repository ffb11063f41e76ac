//! CoAP over TCP, and over TLS above it (RFC 8323): connections of clients and servers.

#[cfg(feature = "server")]
mod accepted;
mod asking;
mod client;
mod connecting;
#[cfg(feature = "server")]
mod connection_source;
mod connection_task;
#[cfg(feature = "server")]
mod connections;
#[cfg(feature = "server")]
mod handshakes;
mod link;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod secure;
#[cfg(feature = "server")]
mod server;
#[cfg_attr(not(feature = "server"), path = "no_server.rs")]
mod serving;

pub(crate) use client::options;
pub(crate) use connecting::{ConnectTarget, connect};
#[cfg(feature = "server")]
pub(crate) use connection_source::{ConnectionSource, begin, find};
#[cfg(feature = "server")]
pub(crate) use connections::{ConnectionLimits, Connections};
#[cfg(feature = "server")]
pub(crate) use secure::acceptor;
pub(crate) use secure::{ClientConfig, client_config};
#[cfg(feature = "tls")]
pub use secure::{TlsConnector, TlsListener};
#[cfg(feature = "server")]
pub(crate) use server::{Opened, Shared, begin_from, listen};

//! CoAP over TCP, and over TLS above it (RFC 8323): connections of clients and servers.

mod client;
mod connecting;
mod connections;
mod handshakes;
mod link;
mod secure;
mod server;

pub(crate) use connecting::{Goal, connect};
pub(crate) use connections::{ConnectionLimits, Connections};
pub(crate) use secure::{acceptor, client_config};
pub(crate) use server::{Shared, listen};

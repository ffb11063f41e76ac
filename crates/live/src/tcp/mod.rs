//! CoAP over TCP (RFC 8323): connections of clients and servers.

mod client;
mod link;
mod server;

pub(crate) use client::connect;
pub(crate) use server::{Shared, listen};

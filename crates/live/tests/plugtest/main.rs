//! The ETSI plugtest cases for CoAP (TD_COAP_CORE, LINK, BLOCK and OBS of the fourth plugtest) by their published names:
//! our client against our server over the loopback, with a relay between them that keeps what passes, so that what a
//! case says of messages is checked on the messages.
//!
//! Not here: TD_COAP_CORE_24 to 29, which are about proxies and stand in the tests of `millpond-gateway`, and
//! TD_COAP_OBS_04 and 05, which wait for minutes: those two run in virtual time, in the tests of the crate
//! `millpond-coap`. Of TD_COAP_CORE_30 no description was found, and there is no TD_COAP_OBS_03.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod block;
mod core;
mod link;
mod observe;
mod relay;
mod resources;

use std::net::SocketAddr;

use millpond_live::{Client, Server};

use relay::Relay;

/// Server, relay and client of one case.
struct Bed {
    relay: Relay,
    client: Client,
    /// Runs as long as it is held.
    _server: Server,
}

impl Bed {
    /// Nothing is lost on the way.
    async fn new() -> Self {
        Self::losing(|_, _| false).await
    }

    /// The relay loses the datagrams that `loses` names by direction and number.
    async fn losing(loses: impl Fn(relay::Way, usize) -> bool + Send + Sync + 'static) -> Self {
        let server = resources::serve().await;
        let relay = Relay::before(server.local_addr(), loses).await;
        Self { relay, client: Client::new().await.unwrap(), _server: server }
    }

    fn address(&self) -> SocketAddr {
        self.relay.address()
    }

    fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address())
    }
}

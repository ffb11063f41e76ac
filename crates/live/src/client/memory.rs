//! What a client knows of its peers' paths after a restart.

use std::net::{IpAddr, SocketAddr};

use millpond_coap::Memory;

use super::Client;
use crate::{
    Error,
    clock::{seconds, span},
};

impl Client {
    /// What is to be remembered of peers over UDP and DTLS when this client is gone: what it was
    /// [told](super::ClientBuilder::memory), and what it has measured since. A peer is its address and port.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn memory(&self) -> Result<Memory, Error> {
        let (stats, now) = (self.stats().await?, seconds());
        let mut memory = self.settings.memory.clone();
        for peer in stats.peers {
            if let Some(base_rtt) = peer.base_round_trip {
                memory.learn(&path(peer.address), span(base_rtt), now.saturating_sub(peer.quiet.as_secs()));
            }
        }
        Ok(memory)
    }
}

/// What the path to a peer is called.
pub(crate) fn path(peer: SocketAddr) -> Vec<u8> {
    let port = peer.port().to_be_bytes();
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => [&ip.octets()[..], &port].concat(),
        IpAddr::V6(ip) => [&ip.octets()[..], &port].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_called_by_address_and_port() {
        let path = |peer: &str| path(peer.parse().unwrap());
        assert_eq!(path("192.0.2.1:5683"), [192, 0, 2, 1, 22, 51]);
        assert_eq!(path("[::ffff:192.0.2.1]:5683"), path("192.0.2.1:5683"));
        assert_eq!(path("[2001:db8::1]:1").len(), 18);
    }
}

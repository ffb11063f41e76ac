//! Sessions of DTLS for what is asked, and what it means when there are none.

use std::net::SocketAddr;

use millpond_control::Instant;

use crate::{Error, Why, dtls::Link, lane::Lane, security::ServerName, udp::Address, watch::Watch};

/// The peer in a session for requests to a server of this name. If there is none, one is begun, and nobody can be asked yet.
pub(crate) fn session(
    lane: &mut Lane,
    watch: &mut Watch,
    now: Instant,
    peer: SocketAddr,
    name: &ServerName,
) -> Result<Option<Address>, Error> {
    match lane.link(now, peer, name) {
        Link::Standing(inside) => Ok(Some(inside)),
        Link::Rising => Ok(None),
        Link::Unfit(why) => Err(Error::insecure(peer, why)),
        Link::None => {
            lane.connect(now, peer, name.clone());
            lane.flush(now, watch);
            Ok(None)
        }
    }
}

/// What was asked in a session that is over has failed with this.
pub(crate) fn ended(peer: SocketAddr, why: Why, was_used: bool) -> Error {
    if was_used { Error::connection_lost(peer, why) } else { Error::insecure(peer, why) }
}

/// What waits for a session that does not come about has failed with this.
pub(crate) fn failed(peer: SocketAddr, why: Why, timed_out: bool) -> Error {
    if timed_out { Error::handshake_timed_out(peer, why) } else { Error::insecure(peer, why) }
}

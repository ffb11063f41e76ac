//! Sessions of DTLS for what is asked, and what it means when there are none.

use std::net::SocketAddr;

use millpond_control::{Instant, PeerController};

use crate::{
    Error, Why,
    dtls::Link,
    lane::Lane,
    security::{PeerIdentity, ServerName},
    udp::Address,
    watch::Watch,
};

/// Why nothing is asked of a peer that is not the one that is meant.
pub(crate) const ANOTHER: &str =
    "its session is not of the identity that the request is for; ask that one at the address that it has now";

/// The peer in a session for requests to a server of this name, and to whom they are for. If there is none, one is begun, and
/// nobody can be asked yet.
pub(crate) fn session(
    lane: &mut Lane,
    watch: &mut Watch,
    now: Instant,
    peer: SocketAddr,
    (name, whom): (&ServerName, Option<&PeerIdentity>),
) -> Result<Option<Address>, Error> {
    match lane.link(now, peer, name) {
        Link::Standing(inside)
            if whom.is_none_or(|whom| lane.identity(inside).is_some_and(|known| **known == *whom)) =>
        {
            Ok(Some(inside))
        }
        Link::Standing(_) => Err(Error::insecure(peer, ANOTHER)),
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

/// What is known of the path of a session that is over, for the one that takes its place.
#[derive(Debug, Default)]
pub(crate) struct Carried(Option<(Address, PeerController)>);

impl Carried {
    /// A session is over, and its peer goes next.
    pub(crate) fn keep(&mut self, lane: &Lane, session: Address) {
        self.0 = lane.host.endpoint().controller(session).map(|controller| (session, controller));
    }

    /// A session stands in the place of this one.
    pub(crate) fn hand_on(&mut self, lane: &mut Lane, now: Instant, before: Option<Address>, session: Address) {
        if let Some((_, controller)) = self.0.take().filter(|(known, _)| Some(*known) == before) {
            // Without room for the peer its requests are refused next.
            let _ = lane.host.set_controller(now, session, controller);
        }
    }
}

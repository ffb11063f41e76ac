//! How a request that somebody wants is handed to a host.

use std::net::SocketAddr;

use millpond_control::Instant;

use super::{Asks, Wanted, progress::Watched};
use crate::{Error, lane::Lane, transfer::AskId, udp::Address};

/// Hands a request to the host of a lane, which is to be drained then. Returns what it is there, and who wants to know how far
/// it comes; nothing if it was refused, which was told.
pub(crate) fn begin(
    lane: &mut Lane,
    asks: &mut Asks,
    at: usize,
    now: Instant,
    (peer, to): (SocketAddr, Address),
    wanted: Wanted,
) -> Option<(AskId, Option<Watched>)> {
    let asked = wanted.options.lend(|options| lane.host.ask(now, to, &wanted.ask(options)));
    let Wanted { number, progress, reply, .. } = wanted;
    match asked {
        Ok(ask) => {
            reply.asked_of(lane.identity(to));
            asks.add(at, ask, number, (peer, to), reply, now);
            Some((ask, progress.map(Watched::new)))
        }
        Err(error) => {
            reply.end(Err(Error::Refused { reason: error.to_string() }));
            None
        }
    }
}

//! What a driver does about secure sessions.

use std::net::SocketAddr;

use millpond_control::Instant;

use super::Driver;
use crate::{
    Error, Happened,
    client::{Carried, ended, failed, session},
    dtls::Turn,
    security::{PeerIdentity, ServerName},
};

impl Driver {
    /// Whether there is a session for requests to a server of this name. If not, one is begun.
    pub(super) fn session(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        at: usize,
        sought: (&ServerName, Option<&PeerIdentity>),
    ) -> Result<bool, Error> {
        let Some(lane) = self.lanes.get_mut(at) else { return Ok(false) };
        Ok(session(lane, &mut self.watch, now, peer, sought)?.is_some())
    }

    /// Sends what pings wait for a session with a peer, if it stands.
    pub(super) fn launch_pings(&mut self, peer: SocketAddr) {
        let now = self.clock.now();
        for ping in self.asks.take_early_pings(peer) {
            let ready = self.lane_for(peer).and_then(|home| {
                let at = self.routes.get_mut(peer).map_or(home, |route| route.lane);
                self.session(now, peer, at, (&ping.name, None))
            });
            match ready {
                Ok(true) => self.ping(now, peer, ping.reply),
                Ok(false) => self.asks.early_pings.push(ping),
                Err(error) => drop(ping.reply.send(Err(error))),
            }
        }
    }

    /// Takes in what happened to the sessions of a lane.
    pub(super) fn hear(&mut self, at: usize) {
        let now = self.clock.now();
        // What is known of the paths of sessions, and who is asked next: not before that is there.
        let (mut carried, mut next) = (Carried::default(), Vec::new());
        for news in self.lanes.get_mut(at).map(|lane| lane.news(now)).unwrap_or_default() {
            let peer = news.peer.peer();
            match news.what {
                Turn::Stands { before } => {
                    self.watch.tell(now, peer, || Happened::Secured);
                    if let Some(lane) = self.lanes.get_mut(at) {
                        carried.hand_on(lane, now, before, news.inside);
                    }
                    self.launch_pings(peer);
                    next.push(peer);
                }
                Turn::Ended { why, was_used } => {
                    self.watch.tell(now, peer, || Happened::Insecure { reason: why.reason.clone() });
                    for ask in self.asks.end_session(at, news.inside, &ended(peer, why, was_used)) {
                        self.on_host(at, now, |host| host.forget(now, ask));
                    }
                    if let Some(lane) = self.lanes.get(at) {
                        carried.keep(lane, news.inside);
                    }
                    self.on_host(at, now, |host| host.forget_peer(now, news.inside));
                    // What was to follow begins another one.
                    next.push(peer);
                }
                Turn::Resumed => {
                    self.launch_pings(peer);
                    next.push(peer);
                }
                Turn::Failed { why, timed_out } => {
                    self.watch.tell(now, peer, || Happened::Insecure { reason: why.reason.clone() });
                    self.end_held(peer, &failed(peer, why, timed_out));
                }
            }
        }
        next.into_iter().for_each(|peer| self.launch(peer));
    }

    /// What waits for a session with a peer gets none.
    pub(super) fn end_held(&mut self, peer: SocketAddr, error: &Error) {
        for wanted in self.routes.take_held_for(peer) {
            wanted.reply.end(Err(error.clone()));
        }
        for ping in self.asks.take_early_pings(peer) {
            let _ = ping.reply.send(Err(error.clone()));
        }
        self.settle_route(peer);
    }
}

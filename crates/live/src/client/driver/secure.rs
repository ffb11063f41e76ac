//! What a driver does about secure sessions.

use std::net::SocketAddr;

use millpond_control::Instant;

use super::Driver;
use crate::{
    Error, Happened,
    client::asks::{EarlyPing, Ping},
    dtls::{Link, Turn},
    security::ServerName,
};

impl Driver {
    /// Whether there is a session for requests to a server of this name. If not, one is begun.
    pub(super) fn session(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        at: usize,
        name: ServerName,
    ) -> Result<bool, Error> {
        let Some(lane) = self.lanes.get_mut(at) else { return Ok(false) };
        match lane.link(now, peer, &name) {
            Link::Standing(_) => Ok(true),
            Link::Rising => Ok(false),
            Link::Unfit(why) => Err(Error::insecure(peer, why)),
            Link::None => {
                lane.connect(now, peer, name);
                lane.flush(now, &mut self.watch);
                Ok(false)
            }
        }
    }

    /// Sends what pings wait for a session with a peer, if it stands.
    pub(super) fn launch_pings(&mut self, peer: SocketAddr) {
        let now = self.clock.now();
        let (to_it, others) = std::mem::take(&mut self.asks.early_pings).into_iter().partition(|it| it.peer == peer);
        self.asks.early_pings = others;
        let to_it: Vec<EarlyPing> = to_it;
        for ping in to_it {
            let ready = self.lane_for(peer).and_then(|home| {
                let at = self.routes.get_mut(peer).map_or(home, |route| route.lane);
                self.session(now, peer, at, ping.name.clone())
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
        // What is known of the path of a session that another one follows, and who is asked next: not before that is there.
        let (mut carried, mut next) = (None, Vec::new());
        for news in self.lanes.get_mut(at).map(|lane| lane.news(now)).unwrap_or_default() {
            let peer = news.peer.peer();
            match news.what {
                Turn::Stands { before } => {
                    self.watch.tell(now, peer, || Happened::Secured);
                    let carried = carried.take().filter(|(session, _)| Some(*session) == before);
                    if let Some((_, controller)) = carried {
                        // The path is the same. Without room for the peer its requests are refused next.
                        let _ = self.on_host(at, now, |host| host.set_controller(now, news.inside, controller));
                    }
                    self.launch_pings(peer);
                    next.push(peer);
                }
                Turn::Ended { why, was_used } => {
                    self.watch.tell(now, peer, || Happened::Insecure { reason: why.reason.clone() });
                    let error = match was_used {
                        true => Error::connection_lost(peer, why),
                        false => Error::insecure(peer, why),
                    };
                    for place in self.asks.of_peer(at, peer) {
                        self.asks.end(place, Err(error.clone()));
                        self.on_host(at, now, |host| host.forget(now, place.1));
                    }
                    let is_of_it = |ping: &Ping| ping.lane == at && ping.peer == peer;
                    let (of_it, others) = std::mem::take(&mut self.asks.pings).into_iter().partition(is_of_it);
                    self.asks.pings = others;
                    let of_it: Vec<Ping> = of_it;
                    of_it.into_iter().for_each(|ping| drop(ping.reply.send(Err(error.clone()))));
                    let controller = self.lanes.get(at).and_then(|lane| lane.host.endpoint().controller(news.inside));
                    carried = controller.map(|controller| (news.inside, controller));
                    self.on_host(at, now, |host| host.forget_peer(now, news.inside));
                    // What was to follow begins another one.
                    next.push(peer);
                }
                Turn::Failed { why, timed_out } => {
                    self.watch.tell(now, peer, || Happened::Insecure { reason: why.reason.clone() });
                    let error = match timed_out {
                        true => Error::handshake_timed_out(peer, why),
                        false => Error::insecure(peer, why),
                    };
                    self.end_held(peer, &error);
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
        let (to_it, others) = std::mem::take(&mut self.asks.early_pings).into_iter().partition(|it| it.peer == peer);
        self.asks.early_pings = others;
        let to_it: Vec<EarlyPing> = to_it;
        to_it.into_iter().for_each(|ping| drop(ping.reply.send(Err(error.clone()))));
        self.settle_route(peer);
    }
}

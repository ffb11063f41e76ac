//! How a driver hands requests to the hosts of their peers.

use std::{net::SocketAddr, time::Duration};

use millpond_coap::ExchangeId;
use millpond_control::Instant;
use tokio::sync::oneshot;

use super::{Driver, RESERVE, refused};
use crate::{
    Error,
    client::{
        Wanted,
        asks::{AskSink, Ping},
        begin,
        memory::path,
    },
    clock::seconds,
    udp::Address,
};

impl Driver {
    pub(super) fn ping(&mut self, now: Instant, peer: SocketAddr, reply: oneshot::Sender<Result<Duration, Error>>) {
        match self.begin_ping(now, peer) {
            Ok((lane, to, exchange)) => self.asks.pings.push(Ping { lane, exchange, peer, to, started: now, reply }),
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    pub(super) fn begin_ping(&mut self, now: Instant, peer: SocketAddr) -> Result<(usize, Address, ExchangeId), Error> {
        let home = self.lane_for(peer)?;
        let at = self.routes.get_mut(peer).map_or(home, |route| route.lane);
        let to = self.known_as(at, peer);
        match self.on_host(at, now, |host| host.ping(now, to)) {
            Some(Ok(exchange)) => Ok((at, to, exchange)),
            Some(Err(error)) => Err(refused(error)),
            None => Err(Error::Closed),
        }
    }

    /// A request came from a handle.
    pub(super) fn accept(&mut self, wanted: Box<Wanted>) {
        let peer = wanted.peer;
        match self.lane_for(peer) {
            Ok(home) => {
                self.routes.hold(peer, home, wanted);
                self.launch(peer);
            }
            Err(error) => wanted.reply.end(Err(error)),
        }
    }

    /// Hands the host of a peer what is held back, as far as there is room.
    pub(super) fn launch(&mut self, peer: SocketAddr) {
        let window = usize::from(self.settings.window());
        loop {
            let now = self.clock.now();
            let Some(route) = self.routes.get_mut(peer) else { return };
            if route.held.is_empty() || (route.open >= window && !route.is_moving) {
                return;
            }
            let at = route.lane;
            let sought =
                route.held.front().and_then(|wanted| wanted.name.clone().map(|name| (name, wanted.identity.clone())));
            if let Some(lane) = self.lanes.get(at)
                && lane.host.endpoint().message_ids_left(now, lane.known_as(peer)) < RESERVE
            {
                route.is_moving = true;
                if self.asks.outstanding(peer) > 0 || !self.move_on(now, peer, at) {
                    return;
                }
                continue;
            }
            let unfit = match sought {
                None => None,
                Some((name, whom)) => match self.session(now, peer, at, (&name, whom.as_deref())) {
                    Ok(true) => None,
                    Ok(false) => return,
                    Err(error) => Some(error),
                },
            };
            let Some(wanted) = self.routes.next_held(peer) else { return };
            match unfit {
                None => self.ask(now, peer, at, *wanted),
                Some(error) => wanted.reply.end(Err(error)),
            }
        }
    }

    pub(super) fn ask(&mut self, now: Instant, peer: SocketAddr, at: usize, wanted: Wanted) {
        if let Some(used) = self.used.get_mut(at) {
            *used = now;
        }
        let to = self.known_as(at, peer);
        let is_known = self.lanes.get(at).is_some_and(|lane| lane.host.endpoint().view(to).is_some());
        let chosen = || self.settings.chooser.as_ref().and_then(|choose| choose(peer));
        if !is_known && let Some(choice) = self.controllers.get(&peer).cloned().or_else(chosen) {
            let controller = choice.build(self.settings.least_wait);
            // Without room for the peer the request itself is refused next.
            let _ = self.on_host(at, now, |host| host.set_controller(now, to, controller));
        }
        if !is_known
            && !self.settings.memory.is_empty()
            && let Some(base_rtt) = self.settings.memory.base_rtt(&path(peer), seconds())
        {
            let _ = self.on_host(at, now, |host| host.recall(now, to, base_rtt));
        }
        let Some(lane) = self.lanes.get_mut(at) else { return };
        if let Some((ask, watched)) = begin(lane, &mut self.asks, at, now, (peer, to), wanted) {
            self.watched.extend(watched.map(|watched| ((at, ask), watched)));
            if let Some(route) = self.routes.get_mut(peer) {
                route.open += 1;
            }
        }
        lane.poll(now, &mut self.watch, &mut AskSink { lane: at, asks: &mut self.asks });
    }
}

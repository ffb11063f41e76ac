//! A client on a server's socket: what the server asks its peers leaves from the port at which they ask it, so that NATs let the
//! answers through, and both are one peer to the other side.

use std::net::SocketAddr;

use millpond_control::Instant;

use super::worker::Worker;
use crate::{
    Error,
    client::{AskSink, Command, Ping, Routes, Wanted, Watched, begin},
    least_wait::LEAST_WAIT,
    transfer::{AskId, Refused},
    udp::{Address, PortError},
};

/// Requests that the host is handed for one peer at a time.
const WINDOW: usize = 64;

/// What a worker asks by itself.
#[derive(Debug, Default)]
pub(super) struct Asking {
    routes: Routes,
    /// Requests whose progress somebody wants to know.
    watched: Vec<(AskId, Watched)>,
}

impl Worker {
    /// A handle wants something.
    pub(super) fn command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Ask(wanted) => {
                let peer = wanted.peer;
                if self.lane.local().is_ipv4() != peer.is_ipv4() {
                    let reason = format!("{} cannot ask {peer}: another family of addresses", self.lane.local());
                    return wanted.reply.end(Err(Error::Refused { reason }));
                }
                self.asking.routes.hold(peer, 0, wanted);
                self.launch(now, peer);
            }
            Command::Gather(wanted) => {
                let reason = "a client on a server's socket asks no groups; use a client of its own".into();
                wanted.answers.tell(Err(Error::Refused { reason }));
            }
            Command::StopGathering(_) | Command::Room(..) => {}
            Command::Cancel(number) => match self.arrivals.asks.find(number) {
                Some((_, ask)) => {
                    self.arrivals.asks.drop_silently((0, ask));
                    self.lane.host.cancel(now, ask);
                    self.drain(now);
                }
                None => self.asking.routes.cancel_held(number),
            },
            Command::LetGo(number) => match self.arrivals.asks.find(number) {
                Some((_, ask)) => {
                    if !self.lane.host.let_go(now, ask) {
                        self.arrivals.asks.drop_silently((0, ask));
                        self.lane.host.cancel(now, ask);
                    }
                    self.drain(now);
                }
                None => self.asking.routes.cancel_held(number),
            },
            Command::Forget(number) => {
                if let Some((_, ask)) = self.arrivals.asks.find(number) {
                    self.lane.host.forget(now, ask);
                    self.drain(now);
                    self.arrivals.asks.drop_silently((0, ask));
                }
            }
            Command::SetController(peer, controller, reply) => {
                let to = self.way_to(peer);
                let set = self.lane.host.set_controller(now, to, controller.build(LEAST_WAIT));
                self.drain(now);
                let _ = reply.send(set.map_err(refused));
            }
            Command::Stats(reply) => drop(reply.send(self.stats())),
            Command::Ping(peer, _, reply) => {
                let to = self.way_to(peer);
                match self.lane.host.ping(now, to) {
                    Ok(exchange) => {
                        self.arrivals.asks.pings.push(Ping { lane: 0, exchange, peer, to, started: now, reply });
                        self.drain(now);
                    }
                    Err(error) => drop(reply.send(Err(refused(error)))),
                }
            }
            Command::Shutdown(_) => {
                self.asking.routes.take_all_held().into_iter().for_each(|wanted| wanted.reply.end(Err(Error::Closed)));
                for (_, ask) in self.arrivals.asks.all() {
                    self.arrivals.asks.drop_silently((0, ask));
                    self.lane.host.cancel(now, ask);
                    self.drain(now);
                }
            }
        }
    }

    /// Requests ended: others take their place. Who wants to know how far one has come is told.
    pub(super) fn settle_asks(&mut self, now: Instant) {
        while let Some(peer) = self.arrivals.asks.ended.pop() {
            if let Some(route) = self.asking.routes.get_mut(peer) {
                route.open = route.open.saturating_sub(1);
            }
            self.launch(now, peer);
            self.asking.routes.settle(peer, |_| true);
        }
        self.arrivals.asks.acknowledged_by.clear();
        let host = &self.lane.host;
        self.asking.watched.retain_mut(|(ask, watched)| {
            let progress = host.progress(*ask);
            progress.inspect(|progress| watched.tell((*progress).into())).is_some()
        });
    }

    /// A peer cannot be reached: what was asked of it, and not acknowledged, ends with that.
    pub(super) fn cut_off(&mut self, now: Instant, PortError { to, reason, .. }: &PortError) {
        let unreachable = || Error::Unreachable { peer: *to, reason: reason.clone(), source: None };
        self.arrivals.asks.end_pings(|ping| ping.peer == *to, &unreachable());
        for (_, ask) in self.arrivals.asks.unheard(*to) {
            let progress = self.lane.host.progress(ask);
            if progress.is_none_or(|progress| progress.sent + progress.received == 0) {
                self.arrivals.asks.end((0, ask), Err(unreachable()));
                self.lane.host.cancel(now, ask);
                self.drain(now);
            }
        }
    }

    /// Hands the host what is held back for a peer, as far as there is room.
    fn launch(&mut self, now: Instant, peer: SocketAddr) {
        while self.asking.routes.get_mut(peer).is_some_and(|route| route.open < WINDOW)
            && let Some(wanted) = self.asking.routes.next_held(peer)
        {
            self.ask(now, peer, *wanted);
        }
    }

    fn ask(&mut self, now: Instant, peer: SocketAddr, wanted: Wanted) {
        let to = self.way_to(peer);
        self.choose_controller(now, to);
        if let Some((ask, watched)) = begin(&mut self.lane, &mut self.arrivals.asks, 0, now, (peer, to), wanted) {
            self.asking.watched.extend(watched.map(|watched| (ask, watched)));
            if let Some(route) = self.asking.routes.get_mut(peer) {
                route.open += 1;
            }
        }
        self.drain(now);
    }

    /// A peer as the host knows it: spoken to by the address of ours that it knows, or by that which the kernel would choose.
    fn way_to(&self, peer: SocketAddr) -> Address {
        let endpoint = self.lane.host.endpoint();
        let known = self.lane.all_known_as(peer).find(|address| endpoint.view(*address).is_some());
        known.unwrap_or_else(|| self.lane.port().way_to(peer))
    }
}

fn refused(error: Refused) -> Error {
    Error::Refused { reason: error.to_string() }
}

/// Takes what the host tells of requests of our own.
pub(super) const fn sink(asks: &mut crate::client::Asks) -> AskSink<'_> {
    AskSink { lane: 0, asks }
}

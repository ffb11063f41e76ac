//! A client on a server's socket: what the server asks its peers leaves from the port at which they ask it, so that NATs let the
//! answers through, and both are one peer to the other side. Over DTLS it goes through the session in which they ask.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use millpond_control::Instant;

use tokio::sync::oneshot;

use super::worker::Worker;
use crate::{
    Error,
    client::{AskSink, Command, EarlyPing, Ping, Routes, Wanted, Watched, begin, session},
    least_wait::LEAST_WAIT,
    transfer::{AskId, Refused},
    udp::{Address, PortError},
};

/// Requests that the host is handed for one peer at a time.
pub(super) const WINDOW: usize = 64;

/// Who waits for a sign of life.
type Pinged = oneshot::Sender<Result<Duration, Error>>;

/// What a worker asks by itself.
#[derive(Debug, Default)]
pub(super) struct Asking {
    pub(super) routes: Routes,
    /// Requests whose progress somebody wants to know.
    pub(super) watched: Vec<(AskId, Watched)>,
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
                if let Some(error) = self.in_the_clear().filter(|_| wanted.name.is_none()) {
                    return wanted.reply.end(Err(error));
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
                if self.lane.sessions.is_some() {
                    // Each session gets it.
                    Arc::make_mut(&mut self.controllers).insert(peer, controller.clone());
                    if to.session().is_none() {
                        return drop(reply.send(Ok(())));
                    }
                }
                let set = self.lane.host.set_controller(now, to, controller.build(LEAST_WAIT));
                self.drain(now);
                let _ = reply.send(set.map_err(refused));
            }
            Command::Stats(reply) => drop(reply.send(self.stats())),
            Command::Ping(peer, None, reply) => match self.in_the_clear() {
                None => self.ping(now, (peer, self.way_to(peer)), reply),
                Some(error) => drop(reply.send(Err(error))),
            },
            Command::Ping(peer, Some(name), reply) => {
                self.arrivals.asks.early_pings.push(EarlyPing { peer, name, reply });
                self.launch_pings(now, peer);
            }
            Command::Shutdown(_) => {
                self.asking.routes.take_all_held().into_iter().for_each(|wanted| wanted.reply.end(Err(Error::Closed)));
                self.arrivals.asks.early_pings.drain(..).for_each(|ping| drop(ping.reply.send(Err(Error::Closed))));
                for (_, ask) in self.arrivals.asks.all() {
                    self.arrivals.asks.drop_silently((0, ask));
                    self.lane.host.cancel(now, ask);
                    self.drain(now);
                }
            }
        }
    }

    /// Why nobody is asked in the clear from here, if that is so.
    fn in_the_clear(&self) -> Option<Error> {
        let local = self.lane.sessions.as_ref().map(|_| self.lane.local())?;
        let reason = format!("{local} is a port of DTLS; ask by coaps, or by a client on a port of UDP");
        Some(Error::Refused { reason })
    }

    /// Requests ended: others take their place. Who wants to know how far one has come is told.
    pub(super) fn settle_asks(&mut self, now: Instant) {
        while let Some(peer) = self.arrivals.asks.ended.pop() {
            if let Some(route) = self.asking.routes.get_mut(peer) {
                route.open = route.open.saturating_sub(1);
            }
            self.launch(now, peer);
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
        if self.lane.abandon(*to) {
            self.end_held(*to, &unreachable());
        }
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
    pub(super) fn launch(&mut self, now: Instant, peer: SocketAddr) {
        while let Some(route) = self.asking.routes.get_mut(peer)
            && route.open < WINDOW
            && let Some(first) = route.held.front()
        {
            let to = match &first.name {
                None => Ok(self.way_to(peer)),
                Some(name) => {
                    match session(&mut self.lane, &mut self.watch, now, peer, (name, first.identity.as_deref())) {
                        Ok(Some(to)) => Ok(to),
                        Ok(None) => return,
                        Err(error) => Err(error),
                    }
                }
            };
            let Some(wanted) = self.asking.routes.next_held(peer) else { break };
            match to {
                Ok(to) => self.ask(now, (peer, to), *wanted),
                Err(error) => wanted.reply.end(Err(error)),
            }
        }
        self.asking.routes.settle(peer, |_| true);
    }

    pub(super) fn ping(&mut self, now: Instant, (peer, to): (SocketAddr, Address), reply: Pinged) {
        match self.lane.host.ping(now, to) {
            Ok(exchange) => {
                self.arrivals.asks.pings.push(Ping { lane: 0, exchange, peer, to, started: now, reply });
                self.drain(now);
            }
            Err(error) => drop(reply.send(Err(refused(error)))),
        }
    }

    fn ask(&mut self, now: Instant, (peer, to): (SocketAddr, Address), wanted: Wanted) {
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

//! How requests are handed to the stacks of their peers.

use std::{net::SocketAddr, time::Duration};

use millpond_control::Instant;
use tokio::sync::oneshot;

use super::{CLIENT_GRACE, DatagramStack, SocketTask, socket_factory::RESERVE};
use crate::{
    ControllerChoice, Error, NotSent,
    client::{Command, EarlyPing, Ping, RequestSpec, Watched, path},
    clock::seconds,
    transfer::ClientRequestId,
    udp::Address,
};

impl SocketTask {
    /// A handle wants something.
    pub(super) fn command(&mut self, command: Command) {
        let now = self.clock.now();
        match command {
            Command::Request(spec) => self.accept(spec),
            Command::Gather(spec) => self.gather(now, *spec),
            Command::StopGathering(number) => self.stop_gathering(now, number),
            Command::Cancel(number) => match self.events.requests.find(number) {
                Some(place) => self.cancel(now, place),
                None => self.routes.cancel_held(&mut self.events.requests, number),
            },
            Command::EndUnanswered(number) => match self.events.requests.find(number) {
                Some((at, id)) => {
                    if self.on_stack(at, now, |stack| stack.end_unanswered(now, id)) != Some(true) {
                        self.cancel(now, (at, id));
                    }
                    self.settle();
                }
                None => self.routes.cancel_held(&mut self.events.requests, number),
            },
            Command::Forget(number) => {
                if let Some((at, id)) = self.events.requests.find(number) {
                    self.on_stack(at, now, |stack| stack.forget(now, id));
                    self.events.requests.drop_silently((at, id));
                }
            }
            Command::SetController(peer, controller, reply) => {
                let _ = reply.send(self.set_controller(now, peer, controller));
            }
            // That of datagrams is known without asking.
            Command::Room(..) => {}
            Command::Stats(reply) => drop(reply.send(self.stats())),
            Command::Ping(peer, None, reply) => self.ping(now, peer, reply),
            Command::Ping(peer, Some(name), reply) => {
                self.events.requests.early_pings.push(EarlyPing { peer, name, reply });
                self.launch_pings(peer);
            }
            Command::Shutdown(reply) => {
                let early = self.events.requests.early_pings.drain(..);
                early.for_each(|ping| drop(ping.reply.send(Err(Error::Closed))));
                let held = self.routes.take_all_held(&mut self.events.requests);
                held.into_iter().for_each(|spec| spec.reply.end(Err(Error::Closed)));
                self.events.requests.all().into_iter().for_each(|place| self.cancel(now, place));
                self.stop_all_gathering(now);
                // A server goes on without its client.
                if !self.serves() {
                    self.waiting.push(reply);
                    self.end = Some(tokio::time::Instant::now() + CLIENT_GRACE);
                }
            }
        }
    }

    /// A request came from a handle.
    fn accept(&mut self, spec: Box<RequestSpec>) {
        let peer = spec.peer;
        match self.socket_for(peer).and_then(|home| self.check_security(home, spec.name.is_some())) {
            Ok(home) => {
                self.routes.hold(&mut self.events.requests, home, spec);
                self.launch(peer);
            }
            Err(error) => spec.reply.end(Err(error)),
        }
    }

    /// Nobody is asked in the clear from a port of DTLS.
    fn check_security(&self, at: usize, is_secure: bool) -> Result<usize, Error> {
        match self.sockets.get(at) {
            Some(socket) if socket.sessions.is_some() && !is_secure => {
                let local = socket.local();
                let reason = format!("{local} is a port of DTLS; ask by coaps, or by a client on a port of UDP");
                Err(Error::refused(NotSent::Destination, reason))
            }
            _ => Ok(at),
        }
    }

    fn cancel(&mut self, now: Instant, (at, id): (usize, ClientRequestId)) {
        self.events.requests.drop_silently((at, id));
        self.on_stack(at, now, |stack| stack.cancel(now, id));
    }

    /// From which socket a peer is asked, and as whom its stack knows it.
    pub(super) fn way_to(&mut self, peer: SocketAddr) -> Result<(usize, Address), Error> {
        let home = self.socket_for(peer)?;
        let at = self.routes.get_mut(peer).map_or(home, |route| route.socket);
        Ok((at, self.known_as(at, peer)))
    }

    pub(super) fn known_as(&self, at: usize, peer: SocketAddr) -> Address {
        self.sockets.get(at).map_or_else(|| Address::of(peer), |socket| socket.known_as(peer))
    }

    /// Whether the stack of a socket can be informed of a peer: where there are sessions, in one that stands.
    pub(super) fn is_known(&self, at: usize, to: Address) -> bool {
        to.session().is_some() || self.sockets.get(at).is_some_and(|socket| socket.sessions.is_none())
    }

    fn set_controller(&mut self, now: Instant, peer: SocketAddr, choice: ControllerChoice) -> Result<(), Error> {
        let (at, to) = self.way_to(peer)?;
        let controller = choice.build(self.settings.least_wait);
        if self.sockets.get(at).is_some_and(|socket| socket.sessions.is_some()) {
            // Each session gets it.
            self.controllers.insert(peer, choice);
        }
        if !self.is_known(at, to) {
            return Ok(());
        }
        let set = |stack: &mut DatagramStack| stack.set_controller(now, to, controller);
        self.on_stack(at, now, set).unwrap_or(Ok(())).map_err(Error::not_sent)
    }

    /// A peer that is met for the first time gets the controller that was chosen for it, and what is remembered of its path.
    pub(super) fn choose_controller(&mut self, now: Instant, at: usize, to: Address) {
        let settings = &self.settings;
        if self.controllers.is_empty() && settings.chooser.is_none() && settings.path_cache.is_empty() {
            return;
        }
        if self.sockets.get(at).is_none_or(|socket| socket.stack.endpoint().view(to).is_some()) {
            return;
        }
        let peer = to.peer();
        let chosen = || settings.chooser.as_ref().and_then(|choose| choose(peer));
        let controller = self.controllers.get(&peer).cloned().or_else(chosen);
        let base_rtt = settings.path_cache.base_rtt(&path(peer), seconds());
        // Without room for the peer what is sent to it is refused next.
        if let Some(choice) = controller {
            let controller = choice.build(self.settings.least_wait);
            let _ = self.on_stack(at, now, |stack| stack.set_controller(now, to, controller));
        }
        if let Some(base_rtt) = base_rtt {
            let _ = self.on_stack(at, now, |stack| stack.recall(now, to, base_rtt));
        }
    }

    /// Hands the stack of a peer what is held back, as far as there is room.
    pub(super) fn launch(&mut self, peer: SocketAddr) {
        self.hand_over(peer);
        self.settle_route(peer);
    }

    fn hand_over(&mut self, peer: SocketAddr) {
        let window = usize::from(self.settings.window());
        loop {
            let now = self.clock.now();
            let Some(route) = self.routes.get_mut(peer) else { return };
            if route.held.is_empty() || (route.open >= window && !route.is_moving) {
                return;
            }
            let at = route.socket;
            if let Some(socket) = self.sockets.get(at)
                && socket.stack.endpoint().message_ids_left(now, socket.known_as(peer)) < RESERVE
            {
                route.is_moving = true;
                if self.events.requests.outstanding(peer) > 0 || !self.move_on(now, peer, at) {
                    return;
                }
                continue;
            }
            let sought = route
                .held
                .front(&self.events.requests)
                .and_then(|spec| Some((spec.name.clone()?, spec.identity.clone())));
            let to = match sought {
                None => Ok(self.known_as(at, peer)),
                Some((name, whom)) => match self.session(now, at, peer, (&name, whom.as_deref())) {
                    Ok(Some(to)) => Ok(to),
                    Ok(None) => return,
                    Err(error) => Err(error),
                },
            };
            let Some(spec) = self.routes.next_held(&mut self.events.requests, peer) else { return };
            match to {
                Ok(to) => self.send_request(now, at, (peer, to), *spec),
                Err(error) => spec.reply.end(Err(error)),
            }
        }
    }

    fn send_request(&mut self, now: Instant, at: usize, (peer, to): (SocketAddr, Address), spec: RequestSpec) {
        self.choose_controller(now, at, to);
        let Some(socket) = self.sockets.get_mut(at) else { return };
        socket.used = now;
        let sent = spec.options.lend(|options| socket.stack.request(now, to, &spec.to_request(options)));
        let RequestSpec { number, progress, reply, .. } = spec;
        match sent {
            Ok(id) => {
                reply.asked_of(socket.identity(to));
                self.events.requests.add(at, id, number, (peer, to), reply, now);
                self.watched.extend(progress.map(|hook| ((at, id), Watched::new(hook))));
                if let Some(route) = self.routes.get_mut(peer) {
                    route.open += 1;
                }
            }
            Err(error) => reply.end(Err(Error::not_sent(error))),
        }
        socket.poll(now, &mut self.watch, &mut self.events);
    }

    /// Asks a peer for a sign of life.
    pub(super) fn ping(&mut self, now: Instant, peer: SocketAddr, reply: oneshot::Sender<Result<Duration, Error>>) {
        let (at, to) =
            match self.way_to(peer).and_then(|(at, to)| Ok((self.check_security(at, to.session().is_some())?, to))) {
                Ok(way) => way,
                Err(error) => return drop(reply.send(Err(error))),
            };
        match self.on_stack(at, now, |stack| stack.ping(now, to)) {
            Some(Ok(exchange)) => {
                self.events.requests.pings.push(Ping { socket: at, exchange, peer, to, started: now, reply });
            }
            Some(Err(error)) => drop(reply.send(Err(Error::not_sent(error)))),
            None => drop(reply.send(Err(Error::Closed))),
        }
    }

    /// Requests ended: others take their place.
    pub(super) fn settle(&mut self) {
        while let Some(peer) = self.events.requests.ended.pop() {
            if let Some(route) = self.routes.get_mut(peer) {
                route.open = route.open.saturating_sub(1);
            }
            self.launch(peer);
        }
        // What is acknowledged is outstanding no more, however long its response takes.
        for peer in std::mem::take(&mut self.events.requests.acknowledged_by) {
            if self.routes.get_mut(peer).is_some_and(|route| route.is_moving) {
                self.launch(peer);
            }
        }
    }

    pub(super) fn settle_route(&mut self, peer: SocketAddr) {
        let sockets = &self.sockets;
        let is_home =
            |at: usize| sockets.iter().position(|socket| socket.local().is_ipv4() == peer.is_ipv4()) == Some(at);
        self.routes.settle(peer, is_home);
    }
}

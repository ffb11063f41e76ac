//! The sockets that a client asks from.

use std::net::SocketAddr;

use millpond_coap::Endpoint;
use millpond_control::{ChanceSeed, Instant, Span};

use super::{DatagramStack, SocketStack, SocketTask};
use crate::{
    Error, Happened, NotSent, PathKey,
    client::Settings,
    dtls::{Keys, Sessions},
    secrets,
    transfer::CoapStack,
    udp::{BoundSocket, Role},
};

/// Message IDs that a port keeps unused: enough for the blocks of what is already under way.
pub(super) const RESERVE: u32 = 2_048;
/// How long a further port is kept from which nobody is asked: longer than EXCHANGE_LIFETIME (RFC 7252 §4.8.2).
const IDLE: Span = Span::from_secs(300);

/// Opens the sockets of a client.
#[derive(Debug)]
pub(super) struct SocketFactory {
    /// What sessions are made with, if all its datagrams are under DTLS.
    keys: Option<Keys>,
    /// Sockets that were ever opened.
    opened: u32,
    /// What each one's stack is made like.
    pattern: DatagramStack,
}

impl SocketFactory {
    pub(super) fn new(settings: &Settings, keys: Option<Keys>) -> Result<Self, Error> {
        let chance = secrets::chance()?;
        let controller = settings.controller.build(settings.least_wait);
        let mut endpoint = Endpoint::new(settings.endpoint(), controller, chance, 0, secrets::id_generator()?)
            .map_err(|error| Error::Setting { name: "transmission", reason: error.to_string() })?;
        if let Some(key) = &settings.shared_paths {
            endpoint = key.sharing_paths(endpoint);
        }
        endpoint = settings.protecting.endpoint(endpoint);
        let pattern =
            CoapStack::new(endpoint, settings.transfer(), ChanceSeed::new(u64::from_le_bytes(secrets::bytes()?)))
                .map_err(|error| Error::Setting { name: "transfer", reason: error.to_string() })?;
        Ok(Self { keys, opened: 0, pattern })
    }
}

impl SocketTask {
    /// Lets a peer be asked from another port. False if there is none with message IDs left.
    pub(super) fn move_on(&mut self, now: Instant, peer: SocketAddr, from: usize) -> bool {
        let has_ids = |socket: &SocketStack| {
            socket.local().is_ipv4() == peer.is_ipv4()
                && socket.stack.endpoint().message_ids_left(now, socket.known_as(peer)) > RESERVE.saturating_mul(2)
        };
        let found = self.sockets.iter().position(has_ids);
        let at = match found {
            Some(at) => at,
            None if self.factory.is_some() && self.sockets.len() < usize::from(self.settings.most_sockets) => {
                let any = match self.settings.bind {
                    Some(local) if local.is_ipv4() == peer.is_ipv4() => SocketAddr::new(local.ip(), 0),
                    _ => unspecified(peer),
                };
                match self.open(any) {
                    Ok(at) => at,
                    Err(error) => return self.go_no_further(peer, &error),
                }
            }
            None => return self.go_no_further(peer, &Error::NoMessageId { peer }),
        };
        let to = self.known_as(at, peer);
        let controller =
            self.sockets.get(from).and_then(|socket| socket.stack.endpoint().controller(socket.known_as(peer)));
        // Where no session stands yet there is no peer that could get it.
        if let Some(controller) = controller.filter(|_| self.is_known(at, to)) {
            let _ = self.on_stack(at, now, |stack| stack.set_controller(now, to, controller));
        }
        if let Some(route) = self.routes.get_mut(peer) {
            (route.socket, route.is_moving) = (at, false);
        }
        let sockets = self.sockets.len();
        self.watch.tell(now, peer, || Happened::MovedPort { sockets });
        true
    }

    /// No port has message IDs left for a peer but those for the blocks of what is under way: who waits is told so, because
    /// it could be minutes before one is free.
    pub(super) fn go_no_further(&mut self, peer: SocketAddr, why: &Error) -> bool {
        if let Some(route) = self.routes.get_mut(peer) {
            route.is_moving = false;
        }
        self.routes
            .take_held_for(&mut self.events.requests, peer)
            .into_iter()
            .for_each(|wanted| wanted.reply.end(Err(why.clone())));
        false
    }

    /// The socket from which peers of a family are asked first.
    pub(super) fn socket_for(&mut self, peer: SocketAddr) -> Result<usize, Error> {
        if let Some(at) = self.sockets.iter().position(|socket| socket.local().is_ipv4() == peer.is_ipv4()) {
            return Ok(at);
        }
        match self.sockets.first().filter(|_| self.factory.is_none()) {
            None => self.open(unspecified(peer)),
            Some(socket) => {
                let reason = format!("{} cannot ask {peer}: another family of addresses", socket.local());
                Err(Error::refused(NotSent::Destination, reason))
            }
        }
    }

    pub(super) fn open(&mut self, local: SocketAddr) -> Result<usize, Error> {
        let at = self.sockets.len();
        let factory = self.factory.as_mut().ok_or(Error::Closed)?;
        let udp = BoundSocket::bind(local, Role::Client)?;
        // One that follows another in its place has other message IDs and tokens.
        let node = factory.opened;
        factory.opened = factory.opened.wrapping_add(1);
        let sessions = factory.keys.clone().map(|keys| Sessions::standard(keys, self.clock.origin()));
        let mut socket = SocketStack::new(at, udp, factory.pattern.sibling(node), sessions);
        socket.vet_complaints();
        socket.shares_by_identity = self.settings.shared_paths.as_ref().is_some_and(PathKey::is_by_identity);
        socket.used = self.clock.now();
        self.sockets.push(socket);
        Ok(at)
    }

    /// When the last further port may be closed, if it is idle.
    pub(super) fn next_closing(&self) -> Option<tokio::time::Instant> {
        Some(self.clock.at(self.closable()?.used.after(IDLE)))
    }

    /// Closes further ports from which nobody was asked for so long: the message IDs of those before them are free again. What
    /// is known of the paths goes back with their peers.
    pub(super) fn close_idle(&mut self, now: Instant) {
        while self.closable().is_some_and(|socket| socket.used.after(IDLE) <= now) {
            let at = self.sockets.len().saturating_sub(1);
            for peer in self.routes.leave(at) {
                let Ok(home) = self.socket_for(peer) else { continue };
                let from = self.known_as(at, peer);
                let controller = self.sockets.get(at).and_then(|socket| socket.stack.endpoint().controller(from));
                let to = self.known_as(home, peer);
                if let Some(controller) = controller.filter(|_| self.is_known(home, to)) {
                    let _ = self.on_stack(home, now, |stack| stack.set_controller(now, to, controller));
                }
            }
            if let Some(mut socket) = self.sockets.pop() {
                socket.close_sessions(now, &mut self.watch);
            }
        }
    }

    /// The last port, if its family has another one and nothing is under way from it.
    fn closable(&self) -> Option<&SocketStack> {
        let (last, others) = self.sockets.split_last()?;
        let at = others.len();
        let is_further = others.iter().any(|socket| socket.local().is_ipv4() == last.local().is_ipv4());
        let is_quiet = last.stack.requests() == 0 && last.stack.endpoint().exchanges() == 0 && !last.is_full();
        (is_further && is_quiet && !self.routes.is_used(at)).then_some(last)
    }
}

/// Any address of a peer's family, any port.
fn unspecified(peer: SocketAddr) -> SocketAddr {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    let ip = if peer.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    SocketAddr::new(ip, 0)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::client::{Reply, request_for_test};

    #[tokio::test(start_paused = true)]
    async fn further_ports_are_closed_when_nobody_is_asked_from_them_any_more() {
        let mut task = SocketTask::of_client(Arc::new(Settings::default()), None).unwrap();
        let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
        assert_eq!(task.socket_for(peer).unwrap(), 0);
        assert_eq!(task.next_closing(), None, "the first one of a family stays");
        for _ in 0..3 {
            task.open(unspecified(peer)).unwrap();
        }
        task.open(unspecified("[::1]:9".parse().unwrap())).unwrap();
        assert_eq!(task.next_closing(), None, "so does that of the other");
        task.sockets.pop();
        let reply = Reply::Once(tokio::sync::oneshot::channel().0);
        task.routes.hold(&mut task.events.requests, 3, Box::new(request_for_test(peer, reply)));
        tokio::time::advance(Duration::from_secs(301)).await;
        task.close_idle(task.clock.now());
        assert_eq!(task.sockets.len(), 4, "somebody waits to be asked from there");
        task.routes.take_all_held(&mut task.events.requests);
        task.close_idle(task.clock.now());
        assert_eq!(task.sockets.len(), 1);
        assert_eq!(task.routes.of(peer, 0).socket, 0, "it is asked from the first again");
    }
}

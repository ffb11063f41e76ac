//! The ports that a driver asks from.

use std::net::SocketAddr;

use millpond_control::{Instant, Span};

use super::{Driver, RESERVE};
use crate::{
    Error, Happened, PathKey,
    dtls::Sessions,
    lane::Lane,
    udp::{Port, Role},
};

/// How long a further port is kept from which nobody is asked: longer than EXCHANGE_LIFETIME (RFC 7252 §4.8.2).
const IDLE: Span = Span::from_secs(300);

impl Driver {
    /// Lets a peer be asked from another port. False if there is none with message IDs left.
    pub(super) fn move_on(&mut self, now: Instant, peer: SocketAddr, from: usize) -> bool {
        let has_ids = |lane: &Lane| {
            lane.local().is_ipv4() == peer.is_ipv4()
                && lane.host.endpoint().message_ids_left(now, lane.known_as(peer)) > RESERVE.saturating_mul(2)
        };
        let found = self.lanes.iter().position(has_ids);
        let at = match found {
            Some(at) => at,
            None if self.lanes.len() < usize::from(self.settings.most_sockets) => {
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
        let controller = self.lanes.get(from).and_then(|lane| lane.host.endpoint().controller(lane.known_as(peer)));
        // Where no session stands yet there is no peer that could get it.
        if let Some(controller) = controller.filter(|_| self.keys.is_none() || to.session().is_some()) {
            let _ = self.on_host(at, now, |host| host.set_controller(now, to, controller));
        }
        if let Some(route) = self.routes.get_mut(peer) {
            (route.lane, route.is_moving) = (at, false);
        }
        let sockets = self.lanes.len();
        self.watch.tell(now, peer, || Happened::MovedPort { sockets });
        true
    }

    /// No port has message IDs left for a peer but those for the blocks of what is under way: who waits is told so, because
    /// it could be minutes before one is free.
    pub(super) fn go_no_further(&mut self, peer: SocketAddr, why: &Error) -> bool {
        if let Some(route) = self.routes.get_mut(peer) {
            route.is_moving = false;
        }
        self.routes.take_held_for(peer).into_iter().for_each(|wanted| wanted.reply.end(Err(why.clone())));
        false
    }

    /// The lane where peers of a family begin.
    pub(in crate::client) fn lane_for(&mut self, peer: SocketAddr) -> Result<usize, Error> {
        match self.lanes.iter().position(|lane| lane.local().is_ipv4() == peer.is_ipv4()) {
            Some(at) => Ok(at),
            None => self.open(unspecified(peer)),
        }
    }

    pub(super) fn open(&mut self, local: SocketAddr) -> Result<usize, Error> {
        let at = self.lanes.len();
        let port = Port::bind(local, Role::Client)?;
        // One that follows another in its place has other message IDs and tokens.
        let node = self.opened;
        self.opened = self.opened.wrapping_add(1);
        let sessions = self.keys.clone().map(|keys| Sessions::standard(keys, self.clock.origin()));
        let mut lane = Lane::new(port, self.pattern.sibling(node), sessions);
        lane.vet_complaints();
        lane.shares_by_identity = self.settings.shared_paths.as_ref().is_some_and(PathKey::is_by_identity);
        self.lanes.push(lane);
        self.used.push(self.clock.now());
        Ok(at)
    }

    /// When the last further port may be closed, if it is idle.
    pub(super) fn next_closing(&self) -> Option<tokio::time::Instant> {
        let at = self.closable()?;
        Some(self.clock.at(self.used.get(at)?.after(IDLE)))
    }

    /// Closes further ports from which nobody was asked for so long: the message IDs of those before them are free again. What
    /// is known of the paths goes back with their peers.
    pub(super) fn close_idle(&mut self, now: Instant) {
        while let Some(at) = self.closable()
            && self.used.get(at).is_some_and(|used| used.after(IDLE) <= now)
        {
            for peer in self.routes.leave(at) {
                let Ok(home) = self.lane_for(peer) else { continue };
                let from = self.known_as(at, peer);
                let controller = self.lanes.get(at).and_then(|lane| lane.host.endpoint().controller(from));
                let to = self.known_as(home, peer);
                if let Some(controller) = controller.filter(|_| self.keys.is_none() || to.session().is_some()) {
                    let _ = self.on_host(home, now, |host| host.set_controller(now, to, controller));
                }
            }
            if let Some(mut lane) = self.lanes.pop() {
                lane.close_sessions(now, &mut self.watch);
            }
            self.used.pop();
        }
    }

    /// The last port, if its family has another one and nothing is under way from it.
    fn closable(&self) -> Option<usize> {
        let (last, others) = self.lanes.split_last()?;
        let at = others.len();
        let is_further = others.iter().any(|lane| lane.local().is_ipv4() == last.local().is_ipv4());
        let is_quiet = last.host.asks() == 0 && last.host.endpoint().exchanges() == 0 && !last.is_full();
        (is_further && is_quiet && !self.routes.is_used(at)).then_some(at)
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

    use tokio::sync::mpsc;

    use super::*;
    use crate::client::{Settings, asked_for_trial, command::Reply};

    #[tokio::test(start_paused = true)]
    async fn further_ports_are_closed_when_nobody_is_asked_from_them_any_more() {
        let (_commands, orders) = mpsc::unbounded_channel();
        let mut driver = Driver::new(Arc::new(Settings::default()), orders, None).unwrap();
        let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
        assert_eq!(driver.lane_for(peer).unwrap(), 0);
        assert_eq!(driver.next_closing(), None, "the first one of a family stays");
        for _ in 0..3 {
            driver.open(unspecified(peer)).unwrap();
        }
        driver.open(unspecified("[::1]:9".parse().unwrap())).unwrap();
        assert_eq!(driver.next_closing(), None, "so does that of the other");
        driver.lanes.pop();
        driver.used.pop();
        let reply = Reply::Once(tokio::sync::oneshot::channel().0);
        driver.routes.hold(peer, 3, Box::new(asked_for_trial(peer, reply)));
        tokio::time::advance(Duration::from_secs(301)).await;
        driver.close_idle(driver.clock.now());
        assert_eq!(driver.lanes.len(), 4, "somebody waits to be asked from there");
        driver.routes.take_all_held();
        driver.close_idle(driver.clock.now());
        assert_eq!((driver.lanes.len(), driver.used.len()), (1, 1));
        assert_eq!(driver.routes.of(peer, 0).lane, 0, "it is asked from the first again");
    }
}

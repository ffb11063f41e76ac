//! From which source port each peer is asked.
//!
//! A port has 65,536 message IDs for one peer, and none may come again within EXCHANGE_LIFETIME (RFC 7252 §4.4). Before
//! they run out the peer is asked from another port. What is known of the path moves along, and the move waits until
//! nothing is outstanding any more, so that NSTART holds for the peer and not for each port.

use std::{collections::HashMap, hash::BuildHasherDefault, net::SocketAddr};

use rustc_hash::FxHasher;

use super::{PendingRequests, Queue, RequestNumber, RequestSpec};

type Quick<K, V> = HashMap<K, V, BuildHasherDefault<FxHasher>>;

/// What is under way to one peer.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// The socket that it is asked from now.
    pub(crate) socket: usize,
    /// Requests that the host was handed; observations that have begun are none.
    pub(crate) open: usize,
    /// Requests for which there is no room.
    pub(crate) held: Queue,
    /// The socket has next to no message IDs left: what is held goes on from another one.
    pub(crate) is_moving: bool,
}

/// The routes of all peers that are being asked, or that moved from where they began.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    routes: Quick<SocketAddr, Route>,
}

impl Routes {
    pub(crate) fn get_mut(&mut self, peer: SocketAddr) -> Option<&mut Route> {
        self.routes.get_mut(&peer)
    }

    /// The route of a peer; one that was not asked lately is asked from `home`.
    pub(crate) fn of(&mut self, peer: SocketAddr, home: usize) -> &mut Route {
        self.routes.entry(peer).or_insert_with(|| Route { socket: home, ..Route::default() })
    }

    /// Requests that are held back for a peer.
    pub(crate) fn held(&self, peer: SocketAddr) -> usize {
        self.routes.get(&peer).map_or(0, |route| route.held.len())
    }

    /// Holds a request back.
    pub(crate) fn hold(&mut self, all: &mut PendingRequests, home: usize, spec: Box<RequestSpec>) {
        self.of(spec.peer, home).held.push_back(all, spec);
    }

    /// Takes out what was held back longest for a peer.
    pub(crate) fn next_held(&mut self, all: &mut PendingRequests, peer: SocketAddr) -> Option<Box<RequestSpec>> {
        self.routes.get_mut(&peer)?.held.pop_front(all)
    }

    /// A request that is held back is no longer wanted.
    pub(crate) fn cancel_held(&mut self, all: &mut PendingRequests, number: RequestNumber) {
        if let Some(route) = all.peer_of_held(number).and_then(|peer| self.routes.get_mut(&peer)) {
            route.held.remove(all, number);
        }
    }

    /// Takes everything out that is held back.
    pub(crate) fn take_all_held(&mut self, all: &mut PendingRequests) -> Vec<RequestSpec> {
        let mut take = |route: &mut Route| std::iter::from_fn(|| route.held.pop_front(all)).collect::<Vec<_>>();
        self.routes.values_mut().flat_map(&mut take).map(|spec| *spec).collect()
    }

    /// Takes out what is held back for a peer.
    pub(crate) fn take_held_for(&mut self, all: &mut PendingRequests, peer: SocketAddr) -> Vec<RequestSpec> {
        std::iter::from_fn(|| self.next_held(all, peer)).map(|spec| *spec).collect()
    }

    /// Nobody is being asked.
    #[cfg(all(test, feature = "server"))]
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Whether a peer is being asked, or will be, from a socket.
    pub(crate) fn is_used(&self, socket: usize) -> bool {
        let is_used =
            |route: &Route| route.socket == socket && (route.open > 0 || !route.held.is_empty() || route.is_moving);
        self.routes.values().any(is_used)
    }

    /// Forgets the routes from a socket that is not used. Returns to whom they led.
    pub(crate) fn leave(&mut self, socket: usize) -> Vec<SocketAddr> {
        let mut left: Vec<SocketAddr> = Vec::new();
        self.routes.retain(|peer, route| {
            let leaves = route.socket == socket;
            if leaves {
                left.push(*peer);
            }
            !leaves
        });
        left
    }

    /// Forgets a route that says nothing any more.
    pub(crate) fn settle(&mut self, peer: SocketAddr, is_home: impl FnOnce(usize) -> bool) {
        let is_over = |route: &Route| route.open == 0 && route.held.is_empty() && !route.is_moving;
        if self.routes.get(&peer).is_some_and(|route| is_over(route) && is_home(route.socket)) {
            self.routes.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Reply, request_for_test};

    #[test]
    fn what_is_cancelled_while_it_waits_leaves_no_trace_and_costs_no_search() {
        let (mut routes, mut all) = (Routes::default(), PendingRequests::default());
        let peer = "192.0.2.1:5683".parse().unwrap();
        let spec = |number| {
            let reply = Reply::Once(tokio::sync::oneshot::channel().0);
            Box::new(RequestSpec { number, ..request_for_test(peer, reply) })
        };
        for number in 0..10_000 {
            routes.hold(&mut all, 0, spec(number));
        }
        let mut cancelled = (0..10_000).filter(|number| number % 100 != 7);
        cancelled.by_ref().take(5_000).for_each(|number| routes.cancel_held(&mut all, number));
        // As long as there are fewer of them than others nobody looks for what says nothing.
        assert_eq!((routes.held(peer), routes.routes[&peer].held.numbers()), (5_000, 10_000));
        cancelled.for_each(|number| routes.cancel_held(&mut all, number));
        assert_eq!(routes.held(peer), 100);
        assert!(routes.routes[&peer].held.numbers() <= 200);
        assert_eq!(routes.routes[&peer].held.front(&all).map(|spec| spec.number), Some(7));
        let left: Vec<_> = std::iter::from_fn(|| routes.next_held(&mut all, peer)).map(|spec| spec.number).collect();
        assert!(left.iter().copied().eq((0..100).map(|hundred| hundred * 100 + 7)));
        assert!(routes.routes[&peer].held.is_empty() && all.is_idle());
    }
}

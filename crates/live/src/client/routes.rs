//! From which source port each peer is asked.
//!
//! A port has 65,536 message IDs for one peer, and none may come again within EXCHANGE_LIFETIME (RFC 7252 §4.4). Before
//! they run out the peer is asked from another port. What is known of the path moves along, and the move waits until
//! nothing is outstanding any more, so that NSTART holds for the peer and not for each port.

use std::{
    collections::{HashMap, VecDeque},
    hash::BuildHasherDefault,
    net::SocketAddr,
};

use rustc_hash::FxHasher;

use super::{RequestNumber, Wanted};

type Quick<K, V> = HashMap<K, V, BuildHasherDefault<FxHasher>>;

/// What is under way to one peer.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// The lane that it is asked from now.
    pub(crate) lane: usize,
    /// Requests that the host was handed; observations that have begun are none.
    pub(crate) open: usize,
    /// Requests for which there is no room.
    pub(crate) held: Held,
    /// The lane has next to no message IDs left: what is held goes on from another one.
    pub(crate) is_moving: bool,
}

/// Requests that wait, in order. One is taken out of the middle without a search: its number stays in the queue and says
/// nothing there.
#[derive(Debug, Default)]
pub(crate) struct Held {
    queue: VecDeque<RequestNumber>,
    wanted: Quick<RequestNumber, Box<Wanted>>,
}

impl Held {
    pub(crate) fn push_back(&mut self, wanted: Box<Wanted>) {
        self.queue.push_back(wanted.number);
        self.wanted.insert(wanted.number, wanted);
    }

    pub(crate) fn pop_front(&mut self) -> Option<Box<Wanted>> {
        while let Some(number) = self.queue.pop_front() {
            if let Some(wanted) = self.wanted.remove(&number) {
                return Some(wanted);
            }
        }
        None
    }

    pub(crate) fn remove(&mut self, number: RequestNumber) {
        self.wanted.remove(&number);
        // What says nothing is never more than half.
        if self.queue.len() > 64 && self.queue.len() > self.wanted.len().saturating_mul(2) {
            self.queue.retain(|number| self.wanted.contains_key(number));
        }
    }

    pub(crate) fn front(&self) -> Option<&Wanted> {
        self.queue.iter().find_map(|number| self.wanted.get(number)).map(|wanted| &**wanted)
    }

    pub(crate) fn len(&self) -> usize {
        self.wanted.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }
}

/// The routes of all peers that are being asked, or that moved from where they began.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    routes: Quick<SocketAddr, Route>,
    /// For whom each request is that is held back.
    held: Quick<RequestNumber, SocketAddr>,
}

impl Routes {
    pub(crate) fn get_mut(&mut self, peer: SocketAddr) -> Option<&mut Route> {
        self.routes.get_mut(&peer)
    }

    /// The route of a peer; one that was not asked lately is asked from `home`.
    pub(crate) fn of(&mut self, peer: SocketAddr, home: usize) -> &mut Route {
        self.routes.entry(peer).or_insert_with(|| Route { lane: home, ..Route::default() })
    }

    /// Requests that are held back for a peer.
    pub(crate) fn held(&self, peer: SocketAddr) -> usize {
        self.routes.get(&peer).map_or(0, |route| route.held.len())
    }

    /// Holds a request back.
    pub(crate) fn hold(&mut self, peer: SocketAddr, home: usize, wanted: Box<Wanted>) {
        self.held.insert(wanted.number, peer);
        self.of(peer, home).held.push_back(wanted);
    }

    /// Takes out what was held back longest for a peer.
    pub(crate) fn next_held(&mut self, peer: SocketAddr) -> Option<Box<Wanted>> {
        let wanted = self.routes.get_mut(&peer)?.held.pop_front()?;
        self.held.remove(&wanted.number);
        Some(wanted)
    }

    /// A request that is held back is no longer wanted.
    pub(crate) fn cancel_held(&mut self, number: RequestNumber) {
        if let Some(peer) = self.held.remove(&number)
            && let Some(route) = self.routes.get_mut(&peer)
        {
            route.held.remove(number);
        }
    }

    /// Takes everything out that is held back.
    pub(crate) fn take_all_held(&mut self) -> Vec<Wanted> {
        self.held.clear();
        let take = |route: &mut Route| std::iter::from_fn(|| route.held.pop_front()).collect::<Vec<_>>();
        self.routes.values_mut().flat_map(take).map(|wanted| *wanted).collect()
    }

    /// Takes out what is held back for a peer.
    pub(crate) fn take_held_for(&mut self, peer: SocketAddr) -> Vec<Wanted> {
        std::iter::from_fn(|| self.next_held(peer)).map(|wanted| *wanted).collect()
    }

    /// Nobody is being asked.
    #[cfg(all(test, feature = "server"))]
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.held.is_empty()
    }

    /// Whether a peer is being asked, or will be, from a lane.
    pub(crate) fn is_used(&self, lane: usize) -> bool {
        let is_used =
            |route: &Route| route.lane == lane && (route.open > 0 || !route.held.is_empty() || route.is_moving);
        self.routes.values().any(is_used)
    }

    /// Forgets the routes from a lane that is not used. Returns to whom they led.
    pub(crate) fn leave(&mut self, lane: usize) -> Vec<SocketAddr> {
        let mut left: Vec<SocketAddr> = Vec::new();
        self.routes.retain(|peer, route| {
            let leaves = route.lane == lane;
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
        if self.routes.get(&peer).is_some_and(|route| is_over(route) && is_home(route.lane)) {
            self.routes.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Reply, asked_for_trial};

    #[test]
    fn what_is_cancelled_while_it_waits_leaves_no_trace_and_costs_no_search() {
        let mut routes = Routes::default();
        let peer = "192.0.2.1:5683".parse().unwrap();
        let wanted = |number| {
            let reply = Reply::Once(tokio::sync::oneshot::channel().0);
            Box::new(Wanted { number, ..asked_for_trial(peer, reply) })
        };
        for number in 0..10_000 {
            routes.hold(peer, 0, wanted(number));
        }
        let mut cancelled = (0..10_000).filter(|number| number % 100 != 7);
        cancelled.by_ref().take(5_000).for_each(|number| routes.cancel_held(number));
        // As long as there are fewer of them than others nobody looks for what says nothing.
        assert_eq!((routes.held(peer), routes.routes[&peer].held.queue.len()), (5_000, 10_000));
        cancelled.for_each(|number| routes.cancel_held(number));
        assert_eq!((routes.held(peer), routes.held.len()), (100, 100));
        assert!(routes.routes[&peer].held.queue.len() <= 200);
        assert_eq!(routes.routes[&peer].held.front().map(|wanted| wanted.number), Some(7));
        let left: Vec<_> = std::iter::from_fn(|| routes.next_held(peer)).map(|wanted| wanted.number).collect();
        assert!(left.iter().copied().eq((0..100).map(|hundred| hundred * 100 + 7)));
        assert!(routes.held.is_empty());
    }
}

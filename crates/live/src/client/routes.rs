//! From which source port each peer is asked.
//!
//! A port has 65,536 message IDs for one peer, and none may come again within EXCHANGE_LIFETIME (RFC 7252 §4.4). Before
//! they run out the peer is asked from another port. What is known of the path moves along, and the move waits until
//! nothing is outstanding any more, so that NSTART holds for the peer and not for each port.

use std::{collections::HashMap, collections::VecDeque, hash::BuildHasherDefault, net::SocketAddr};

use rustc_hash::FxHasher;

use super::{RequestNumber, Wanted};

/// What is under way to one peer.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// The lane that it is asked from now.
    pub(crate) lane: usize,
    /// Requests that the host was handed; observations that have begun are none.
    pub(crate) open: usize,
    /// Requests for which there is no room.
    pub(crate) held: VecDeque<Box<Wanted>>,
    /// The lane has next to no message IDs left: what is held goes on from another one.
    pub(crate) is_moving: bool,
}

/// The routes of all peers that are being asked, or that moved from where they began.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    routes: HashMap<SocketAddr, Route, BuildHasherDefault<FxHasher>>,
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

    /// Takes a request out that is held back.
    pub(crate) fn take_held(&mut self, number: RequestNumber) -> Option<Box<Wanted>> {
        self.routes.values_mut().find_map(|route| {
            let place = route.held.iter().position(|wanted| wanted.number == number)?;
            route.held.remove(place)
        })
    }

    /// Takes everything out that is held back.
    pub(crate) fn take_all_held(&mut self) -> Vec<Wanted> {
        self.routes.values_mut().flat_map(|route| route.held.drain(..)).map(|wanted| *wanted).collect()
    }

    /// Takes out what is held back for a peer.
    pub(crate) fn take_held_for(&mut self, peer: SocketAddr) -> Vec<Wanted> {
        self.routes.get_mut(&peer).map_or_else(Vec::new, |route| route.held.drain(..).map(|wanted| *wanted).collect())
    }

    /// Forgets a route that says nothing any more.
    pub(crate) fn settle(&mut self, peer: SocketAddr, is_home: impl FnOnce(usize) -> bool) {
        let is_over = |route: &Route| route.open == 0 && route.held.is_empty() && !route.is_moving;
        if self.routes.get(&peer).is_some_and(|route| is_over(route) && is_home(route.lane)) {
            self.routes.remove(&peer);
        }
    }
}

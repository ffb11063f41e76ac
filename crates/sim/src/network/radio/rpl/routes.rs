//! The downward routes of one node in storing mode (RFC 6550, section 9): what DAOs told it.

use std::collections::BTreeMap;

use millpond_control::{Instant, Span};

use super::super::neighbours::Node;

/// How long a route is kept after a No-Path DAO (Contiki 2.7, `DAO_EXPIRATION_TIMEOUT`). Without one a route stays: Contiki
/// gives it a lifetime of 193 days.
const KEPT: Span = Span::from_secs(60);

/// Where packets for a node below go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    via: Node,
    expires: Instant,
}

/// The downward routes of one node.
#[derive(Debug)]
pub(super) struct Routes {
    to: BTreeMap<Node, Route>,
    /// When the first of them expires.
    next: Instant,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self { to: BTreeMap::new(), next: Instant::NEVER }
    }

    /// How many.
    pub(super) fn count(&self) -> u32 {
        self.to.len() as u32
    }

    /// The next node on the way down.
    #[inline]
    pub(super) fn via(&self, target: Node) -> Option<Node> {
        self.to.get(&target).map(|route| route.via)
    }

    /// A DAO told of a way; it takes the place of another.
    pub(super) fn add(&mut self, target: Node, via: Node) {
        self.to.insert(target, Route { via, expires: Instant::NEVER });
    }

    /// A No-Path DAO told that this way is none any more. Of another way it says nothing.
    pub(super) fn no_path(&mut self, now: Instant, target: Node, via: Node) {
        if let Some(route) = self.to.get_mut(&target)
            && route.via == via
            && route.expires == Instant::NEVER
        {
            route.expires = now.after(KEPT);
            self.next = self.next.min(route.expires);
        }
    }

    /// There is no way to a node any more.
    #[cfg(test)]
    pub(super) fn forget(&mut self, target: Node) {
        self.to.remove(&target);
    }

    /// When a route expires next.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Takes out a route that has expired by now; whose it was.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Node> {
        if self.next > now {
            return None;
        }
        let expired = self.to.iter().find(|(_, route)| route.expires <= now).map(|(target, _)| *target);
        if let Some(target) = expired {
            self.to.remove(&target);
        }
        self.next = self.to.values().map(|route| route.expires).min().unwrap_or(Instant::NEVER);
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_route_is_kept_for_a_minute_after_it_was_taken_back() {
        let mut routes = Routes::new();
        routes.add(5, 1);
        routes.add(6, 1);
        routes.no_path(at(10), 5, 1);
        assert_eq!((routes.via(5), routes.next(), routes.expire(at(69))), (Some(1), at(70), None));
        assert_eq!((routes.expire(at(70)), routes.via(5), routes.via(6)), (Some(5), None, Some(1)));
        assert_eq!((routes.next(), routes.expire(at(9_000)), routes.count()), (Instant::NEVER, None, 1));
    }

    #[test]
    fn what_was_told_anew_does_not_expire_and_another_way_is_not_taken_back() {
        let mut routes = Routes::new();
        routes.add(5, 1);
        routes.no_path(at(10), 5, 2);
        assert_eq!(routes.next(), Instant::NEVER);
        routes.no_path(at(10), 5, 1);
        routes.add(5, 2);
        assert_eq!((routes.expire(at(70)), routes.via(5)), (None, Some(2)));
        // It had been due, and was not there any more.
        assert_eq!(routes.next(), Instant::NEVER);
    }
}

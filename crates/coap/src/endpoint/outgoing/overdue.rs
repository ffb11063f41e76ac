//! What is answered late, after the last copy's wait: requests, as long as their place is not needed
//! ([`Wishes::last_wait`](millpond_control::Wishes)), and responses that may leave fewer times than others.

use core::{fmt::Debug, hash::Hash};

use millpond_control::{Controller, Instant, Span, Then};

use crate::endpoint::{
    Endpoint, Lifetimes, SleepReason, Transmission,
    admission::Gate,
    exchanges::{Exchange, Stage},
    message_ids::later,
    random::About,
};
use crate::output::OutputKind;

impl Exchange {
    /// The wait after its last copy is over, and its answer is awaited all the same.
    fn is_overdue(&self) -> bool {
        self.stage == Stage::Sent && self.alarm == SleepReason::Overdue
    }
}

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// How many requests to this peer are [overdue](crate::endpoint::Event::Overdue): so many more could leave, each in the place of one of
    /// them.
    #[must_use]
    pub fn overdue(&self, peer: A) -> u32 {
        if !self.exchanges.has_overdue {
            return 0;
        }
        let Some(peer) = self.peers.find(peer, &self.setup.id_generator).and_then(|number| self.peers.get(number))
        else {
            return 0;
        };
        peer.open.iter(&self.exchanges.slots).filter(|(_, exchange)| exchange.is_overdue()).count() as u32
    }

    /// The wait after the last copy is over. Goes on waiting for an answer if the controller wishes that and nothing else is to
    /// leave; whether it does.
    pub(in crate::endpoint) fn stays_overdue(&mut self, slot: u32, now: Instant) -> bool {
        let random = self.random();
        let Some(exchange) = self.exchanges.get(slot) else { return false };
        // One that shares its path would have to make way for a peer that is on it, which nobody could find without a walk.
        let Some((peer, path, waiting)) = self.peers.with_path(exchange.peer) else { return false };
        let may_be = exchange.role.is_request() && exchange.controlled && exchange.then == Then::Retransmit;
        if !may_be || exchange.is_overdue() || waiting > 0 || peer.path.shared().is_some() {
            return false;
        }
        let wish = path.controller.wishes().last_wait;
        let least = least_last_wait(wish, exchange.retransmissions);
        if least == Span::ZERO {
            return false;
        }
        let cx = random.cx((peer.number, waiting), now, path.outstanding, exchange.number, About::LastWait);
        let until = exchange.last.after(cx.chance.between(least, longest_last_wait(least)));
        if until <= now {
            return false;
        }
        let (id, address) = (self.exchanges.name(slot), peer.address);
        self.arm(slot, now, until, SleepReason::Overdue);
        self.exchanges.has_overdue = true;
        self.queue.push(address, OutputKind::Overdue { exchange: id }, &[]);
        true
    }

    /// The wait after the last copy is over. Of a response there may be fewer copies than of others, mostly one if its peer is not
    /// validated (RFC 9175 §2.4), and a round trip may take longer than the wait for that: its acknowledgement counts for as long as
    /// if all copies had left, at most the RFC's own time. Others may leave meanwhile. One message to a peer stays so, and a
    /// notification rather than another response, with which nothing ends. Whether this one does.
    pub(in crate::endpoint) fn stays_exhausted(&mut self, slot: u32, now: Instant) -> bool {
        /// MAX_TRANSMIT_WAIT of RFC 7252 §4.8.2, microseconds.
        const TRANSMIT_WAIT: u64 = 93_000_000;
        let Some(exchange) = self.exchanges.get(slot).filter(|exchange| exchange.role.is_for_a_request()) else {
            return false;
        };
        let (number, transmission) = (exchange.peer, &self.setup.config.transmission);
        let Some((peer, path, _)) = self.peers.with_path(number) else { return false };
        let wait = Lifetimes::of(&path.controller, transmission).transmit_wait.min(TRANSMIT_WAIT);
        let until = later(exchange.first, wait);
        let has_fewer = exchange.most < transmission.max_retransmit;
        let has_room = peer.open.len() < u32::from(self.setup.config.limits.exchanges_per_peer);
        if !has_fewer || !has_room || exchange.then == Then::Abandon || until <= now {
            return false;
        }
        let before = peer.open.iter(&self.exchanges.slots).find(|(_, one)| one.stage == Stage::Exhausted);
        match before.map(|(slot, one)| (slot, one.role.is_additional())) {
            Some((_, true)) => return false,
            Some(_) if !exchange.role.is_additional() => return false,
            Some((response, _)) => self.give_up(response, now),
            None => {}
        }
        let Some((peer, path, _)) = self.peers.with_path_mut(number) else { return false };
        peer.answers = false;
        path.settled();
        if let Some(exchange) = self.exchanges.get_mut(slot) {
            exchange.stage = Stage::Exhausted;
        }
        self.arm(slot, now, until, SleepReason::Overdue);
        self.pump(number, now);
        true
    }

    /// A message may not leave now. Whatever is overdue at its peer makes way, oldest first, until it may; the gate after
    /// that. So nothing is ever overdue while anything waits.
    #[cold]
    pub(in crate::endpoint) fn make_way(&mut self, peer: u32, slot: u32, now: Instant) -> Gate {
        loop {
            let gate = self.gate(slot, now);
            let open = self.peers.get(peer).map(|peer| peer.open);
            let overdue = open.and_then(|open| open.iter(&self.exchanges.slots).find(|(_, one)| one.is_overdue()));
            match overdue {
                Some((overdue, _)) if !matches!(gate, Gate::Open) => self.give_up(overdue, now),
                _ => return gate,
            }
        }
    }
}

/// A wish for a last wait is for MAX_RETRANSMIT copies after the first (RFC 7252 §4.8); a peer that has a message sent fewer times wants
/// to know sooner. As with a timer that doubles, it is half as long for each copy fewer.
pub(in crate::endpoint) fn least_last_wait(wish: Span, retransmissions: u8) -> Span {
    let fewer = Transmission::RFC7252.max_retransmit.saturating_sub(retransmissions);
    (0..fewer).fold(wish, |wait, _| wait.halved())
}

/// A least last wait, at most ACK_RANDOM_FACTOR (RFC 7252 §4.8) times as long.
pub(in crate::endpoint) fn longest_last_wait(least: Span) -> Span {
    least.plus(least.halved())
}

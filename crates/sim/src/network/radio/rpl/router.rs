//! RPL at one node (RFC 6550, storing mode) as Contiki 2.7 does it: what it hears changes what it knows, and what it knows makes it
//! speak. Time and chance come from outside, messages leave by a list.

use std::collections::{BTreeMap, VecDeque};

use millpond_control::{Chance, ChanceSeed, Instant, Purpose, Span};

use super::{
    super::neighbours::{EVERYONE, Node},
    Settings,
    rank::{Candidate, Etx, INFINITE, ROOT, Rank},
    routes::Routes,
    trickle::Trickle,
};

/// Contiki 2.7, `RPL_DIS_START_DELAY`.
const DIS_START_DELAY: Span = Span::from_secs(5);

/// A control message (RFC 6550, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// DODAG Information Solicitation: who is there?
    Dis,
    /// DODAG Information Object: this is my rank.
    Dio { rank: Rank },
    /// Destination Advertisement Object: this node is to be reached through me, or with a lifetime of zero (No-Path) no longer.
    Dao { target: Node, is_path: bool },
}

/// RPL at one node.
#[derive(Debug)]
pub(crate) struct Router {
    node: Node,
    is_root: bool,
    /// The neighbours that told their rank.
    candidates: BTreeMap<Node, Candidate>,
    parent: Option<Node>,
    rank: Rank,
    /// The lowest rank that it has told.
    lowest: Rank,
    trickle: Option<Trickle>,
    /// When the next DIS leaves.
    solicits: Instant,
    /// When a DAO about itself leaves.
    advertises: Instant,
    /// When its parent is to be thought over.
    reviews: Instant,
    pub(super) routes: Routes,
    /// What came and has not been looked at: when it is, from whom, what.
    inbox: VecDeque<(Instant, Node, Message)>,
    /// How often it has taken another parent.
    pub(super) switches: u64,
    drawn: u32,
}

impl Router {
    /// A node that is switched on now: the root speaks, others wait to hear of it.
    pub(super) fn new(now: Instant, node: Node, is_root: bool, settings: &Settings, seed: ChanceSeed) -> Self {
        let mut router = Self {
            node,
            is_root,
            candidates: BTreeMap::new(),
            parent: None,
            rank: INFINITE,
            lowest: INFINITE,
            trickle: None,
            solicits: Instant::NEVER,
            advertises: Instant::NEVER,
            reviews: Instant::NEVER,
            routes: Routes::new(),
            inbox: VecDeque::new(),
            switches: 0,
            drawn: 0,
        };
        let chance = router.chance(seed);
        if is_root {
            router.rank = ROOT;
            router.trickle = Some(Trickle::new(now, &settings.trickle, chance));
        } else {
            // Contiki 2.7 counts seconds up to the interval, and begins with half of it and a random part of it, less the delay.
            let interval = settings.dis_interval;
            let before = interval.halved().plus(DIS_START_DELAY);
            let waits = before.minus(chance.between(Span::ZERO, interval)).as_micros().max(1_000_000);
            router.solicits = now.after(Span::from_micros(waits));
        }
        router
    }

    fn chance(&mut self, seed: ChanceSeed) -> Chance {
        self.drawn = self.drawn.wrapping_add(1);
        seed.at(Purpose::Dither, [self.node, self.drawn, 0, 0])
    }

    pub(super) fn parent(&self) -> Option<Node> {
        self.parent
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    /// When it is to be woken next.
    pub(super) fn next(&self) -> Instant {
        let heard = self.inbox.front().map_or(Instant::NEVER, |(at, ..)| *at);
        let trickle = self.trickle.as_ref().map_or(Instant::NEVER, Trickle::next);
        let timers = trickle.min(self.solicits).min(self.advertises).min(self.reviews);
        heard.min(timers).min(self.routes.next())
    }

    /// A message came, and is looked at then.
    pub(super) fn take(&mut self, at: Instant, from: Node, message: Message) {
        self.inbox.push_back((at, from, message));
    }

    /// A frame for a neighbour was acknowledged when it had been sent so often, or never.
    pub(super) fn tried(&mut self, now: Instant, neighbour: Node, acknowledged: Option<u8>) {
        if let Some(candidate) = self.candidates.get_mut(&neighbour) {
            candidate.etx = candidate.etx.after(acknowledged);
            self.reviews = self.reviews.min(now);
        }
    }

    /// Does what is due by now. Messages are added to `out`, each with the neighbour that it is for.
    pub(super) fn wake(&mut self, now: Instant, settings: &Settings, seed: ChanceSeed, out: &mut Vec<(Node, Message)>) {
        while let Some(&(at, from, message)) = self.inbox.front().filter(|(at, ..)| *at <= now) {
            self.inbox.pop_front();
            self.hear(at, from, message, settings, seed, out);
        }
        if self.reviews <= now {
            self.review(now, settings, seed, out);
        }
        if self.solicits <= now {
            out.push((EVERYONE, Message::Dis));
            self.solicits = now.after(settings.dis_interval);
        }
        let chance = self.chance(seed);
        if let Some(trickle) = &mut self.trickle
            && trickle.next() <= now
            && trickle.wake(&settings.trickle, chance)
        {
            self.lowest = self.lowest.min(self.rank);
            out.push((EVERYONE, Message::Dio { rank: self.rank }));
        }
        if self.advertises <= now {
            self.advertises = Instant::NEVER;
            self.up(Message::Dao { target: self.node, is_path: true }, out);
        }
        while let Some(target) = self.routes.expire(now) {
            self.up(Message::Dao { target, is_path: false }, out);
        }
    }

    fn up(&self, message: Message, out: &mut Vec<(Node, Message)>) {
        out.extend(self.parent.map(|parent| (parent, message)));
    }

    fn hear(
        &mut self,
        now: Instant,
        from: Node,
        message: Message,
        settings: &Settings,
        seed: ChanceSeed,
        out: &mut Vec<(Node, Message)>,
    ) {
        match message {
            // RFC 6550, section 8.3: a multicast DIS resets the timer.
            Message::Dis => self.reset(now, settings, seed),
            Message::Dio { .. } if self.is_root => self.trickle.iter_mut().for_each(Trickle::consistent),
            Message::Dio { rank } => {
                match self.candidates.get_mut(&from) {
                    Some(known) if known.rank == rank => self.trickle.iter_mut().for_each(Trickle::consistent),
                    Some(known) => known.rank = rank,
                    None => {
                        self.candidates.insert(from, Candidate { rank, etx: Etx::UNTRIED });
                    }
                }
                self.review(now, settings, seed, out);
                // Contiki 2.7 raises the DTSN with every DIO: each asks for the routes below.
                if self.parent == Some(from) {
                    self.advertise(now, settings, seed);
                }
            }
            // What comes from above, or is about itself, would be a loop.
            Message::Dao { target, .. } if self.parent == Some(from) || target == self.node => {}
            Message::Dao { target, is_path: true } => {
                self.routes.add(target, from);
                self.up(message, out);
            }
            Message::Dao { target, is_path: false } => self.routes.no_path(now, target, from),
        }
    }

    /// Thinks its parent over.
    fn review(&mut self, now: Instant, settings: &Settings, seed: ChanceSeed, out: &mut Vec<(Node, Message)>) {
        self.reviews = Instant::NEVER;
        let before = self.parent;
        // A node that is to become a parent must have told a rank below the lowest that the node itself ever told. What nodes told then falls
        // along every way up, whatever messages got lost, and no loop can form. RFC 6550, section 3.7, would let a node rise
        // by DAGMaxRankIncrease, and find loops when packets run into them.
        let lowest = self.lowest;
        if !self.choose(settings, |_, candidate| candidate.rank < lowest) {
            return;
        }
        match before {
            Some(before) => {
                out.push((before, Message::Dao { target: self.node, is_path: false }));
                self.reset(now, settings, seed);
            }
            None => {
                let chance = self.chance(seed);
                self.trickle = Some(Trickle::new(now, &settings.trickle, chance));
                self.solicits = Instant::NEVER;
            }
        }
        self.advertise(now, settings, seed);
    }

    /// Chooses its parent and has the rank that follows from it; whether it is another parent.
    fn choose(&mut self, settings: &Settings, fits: impl Fn(Node, Candidate) -> bool) -> bool {
        if self.is_root {
            return false;
        }
        let candidates = self.candidates.iter().map(|(node, candidate)| (*node, *candidate));
        let Some(parent) = settings.objective.parent(candidates, self.parent, fits) else { return false };
        let Some(candidate) = self.candidates.get(&parent) else { return false };
        self.rank = settings.objective.rank(*candidate);
        let before = self.parent.replace(parent);
        self.switches += u64::from(before.is_some_and(|before| before != parent));
        before != self.parent
    }

    fn reset(&mut self, now: Instant, settings: &Settings, seed: ChanceSeed) {
        let chance = self.chance(seed);
        if let Some(trickle) = &mut self.trickle {
            trickle.inconsistent(now, &settings.trickle, chance);
        }
    }

    /// A DAO about itself is to leave: after half of the delay and a random time up to all of it (Contiki 2.7).
    fn advertise(&mut self, now: Instant, settings: &Settings, seed: ChanceSeed) {
        if self.advertises == Instant::NEVER {
            let delay = settings.dao_delay;
            let waits = delay.halved().plus(self.chance(seed).between(Span::ZERO, delay));
            self.advertises = now.after(waits);
        }
    }

    // ------------------------------------------------------------------------- without control messages

    /// It has this parent and knows these neighbours from the start, and all know its rank.
    pub(super) fn settle(&mut self, parent: Option<Node>, rank: Rank, candidates: BTreeMap<Node, Candidate>) {
        (self.parent, self.rank, self.candidates) = (parent, rank, candidates);
        (self.trickle, self.solicits) = (None, Instant::NEVER);
    }

    /// Thinks its parent over, which may be none of those `below`; whether its rank is another one, which all neighbours learn.
    pub(super) fn settles(&mut self, settings: &Settings, below: &[Node]) -> bool {
        self.reviews = Instant::NEVER;
        let before = self.rank;
        self.choose(settings, |node, _| !below.contains(&node));
        self.rank != before
    }

    /// A neighbour has another rank.
    pub(super) fn learn(&mut self, neighbour: Node, rank: Rank) {
        if let Some(candidate) = self.candidates.get_mut(&neighbour) {
            candidate.rank = rank;
        }
    }
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;

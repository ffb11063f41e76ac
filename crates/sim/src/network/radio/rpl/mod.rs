//! RPL (RFC 6550) in storing mode as Contiki 2.7 has it: who finds the tree, and what that costs on the air.
//!
//! With control traffic nodes join by DIOs, which Trickle times, and tell by DAOs who is to be reached through them; all of it
//! are frames like others. Without, neighbours know each other's ranks and routes at once, and only ETX moves them.

mod rank;
mod router;
mod routes;
mod trickle;

use std::collections::{BTreeMap, VecDeque};

use millpond_control::{ChanceSeed, Instant, Span};

pub(crate) use rank::Objective;
pub(crate) use router::Message;
pub(crate) use trickle::Parameters;

use super::{
    counts::Fates,
    neighbours::{EVERYONE, Neighbours, Node},
    tree::{Tree, below},
};
use crate::{ledger::Slab, outcome::RplRow};
use rank::{Candidate, Etx, INFINITE};
use router::Router;

/// A packet goes over so many hops at most (Contiki 2.7, `cur_hop_limit`).
pub(crate) const HOP_LIMIT: u8 = 64;

/// Without control messages: how often a node thinks its parent over at most after one frame, on average.
const SPREADS: usize = 16;

/// How RPL works in a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether there are control messages.
    pub(crate) control_traffic: bool,
    pub(crate) objective: Objective,
    pub(crate) trickle: Parameters,
    pub(crate) dis_interval: Span,
    pub(crate) dao_delay: Span,
}

/// Bytes of the frames of control messages, with MAC header and checksum. In front of each message are 4 bytes of ICMPv6.
///
/// To everyone the MAC header has 15 bytes, the address of the receiver being short, else 21; the checksum has 2. Addresses are local
/// to the link and follow from those of the MAC, so that an IPv6 header is compressed to 3 bytes, with 1 more for the group.
impl Message {
    pub(crate) const fn bytes(self) -> u16 {
        match self {
            // RFC 6550, section 6.2: 2 bytes. The packet of 46 bytes is too short to be compressed and has 1 byte in front.
            Self::Dis => 15 + 1 + 40 + 4 + 2 + 2,
            // Section 6.3: 24 bytes, the DODAG Configuration 16 (6.7.6), the Prefix Information 32 (6.7.10).
            Self::Dio { .. } => 15 + 4 + 4 + 24 + 16 + 32 + 2,
            // Section 6.4: 4 bytes and the DODAGID 16, the RPL Target 20 (6.7.7), the Transit Information 6 (6.7.8), which Contiki
            // leaves without the parent's address.
            Self::Dao { .. } => 21 + 3 + 4 + 4 + 16 + 20 + 6 + 2,
        }
    }

    /// One word for traces.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Dis => "dis",
            Self::Dio { .. } => "dio",
            Self::Dao { .. } => "dao",
        }
    }
}

/// The books of one node about control messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    /// Messages that it made or passed on: DIS, DIO, DAO, No-Path DAO.
    pub(crate) made: [u64; 4],
    /// Of those: found no room, were given up, have left.
    pub(crate) refused: u64,
    pub(crate) given_up: u64,
    pub(crate) left: u64,
    /// Frames that it sent, and for how many nodes each was, added up.
    pub(crate) sent: u64,
    pub(crate) copies: u64,
    /// What became of those that were for it.
    pub(crate) fates: Fates,
}

impl Control {
    pub(crate) fn make(&mut self, message: Message) {
        self.made[match message {
            Message::Dis => 0,
            Message::Dio { .. } => 1,
            Message::Dao { is_path: true, .. } => 2,
            Message::Dao { is_path: false, .. } => 3,
        }] += 1;
    }
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Up(Node),
    Down(Node),
    /// The node has no way for it.
    None,
}

/// RPL at all nodes of a mesh.
pub(crate) struct Rpl {
    pub(super) settings: Settings,
    routers: Vec<Router>,
    root: Node,
    seed: ChanceSeed,
    /// The messages that wait at nodes or are under way.
    pub(super) messages: Slab<Message>,
    /// How many those are.
    pub(super) waiting: u64,
    pub(super) control: Vec<Control>,
    /// Room that is used again and again.
    pub(super) out: Vec<(Node, Message)>,
}

impl Rpl {
    /// A mesh whose nodes are switched on at the start; without control traffic they have the tree of fewest hops.
    pub(super) fn new(
        settings: Settings,
        neighbours: &Neighbours,
        tree: &Tree,
        root: Node,
        nodes: usize,
        seed: ChanceSeed,
    ) -> Self {
        let seed = seed.part(u64::from(u32::from_be_bytes(*b"rpl ")));
        let all = 0..nodes as Node;
        let router = |node| Router::new(Instant::ORIGIN, node, node == root, &settings, seed);
        let mut routers: Vec<Router> = all.clone().map(router).collect();
        if !settings.control_traffic {
            let mut ranks = vec![INFINITE; nodes];
            let mut order: Vec<Node> = all.collect();
            order.sort_by_key(|&node| tree.depth(node));
            for &node in &order {
                let parent = tree.parent(node);
                let by = |parent: Node| Candidate { rank: ranks[parent as usize], etx: Etx::UNTRIED };
                ranks[node as usize] = parent.map_or(rank::ROOT, |parent| settings.objective.rank(by(parent)));
            }
            for (node, router) in (0..).zip(&mut routers) {
                let known = |other: Node| (other, Candidate { rank: ranks[other as usize], etx: Etx::UNTRIED });
                router.settle(
                    tree.parent(node),
                    ranks[node as usize],
                    neighbours.hearing(node).map(known).collect::<BTreeMap<_, _>>(),
                );
            }
        }
        Self {
            settings,
            routers,
            root,
            seed,
            messages: Slab::new(),
            waiting: 0,
            control: vec![Control::default(); nodes],
            out: Vec::new(),
        }
    }

    /// When a node is to be woken next.
    pub(super) fn next(&self, node: Node) -> Instant {
        self.routers[node as usize].next()
    }

    /// A node does what is due: its messages are in `out`.
    pub(super) fn wake(&mut self, now: Instant, node: Node) {
        self.out.clear();
        self.routers[node as usize].wake(now, &self.settings, self.seed, &mut self.out);
    }

    /// A message came to a node, which looks at it then.
    pub(super) fn take(&mut self, at: Instant, node: Node, from: Node, message: Message) {
        self.routers[node as usize].take(at, from, message);
    }

    /// A frame for a neighbour was acknowledged when it had been sent so often, or never.
    pub(super) fn tried(
        &mut self,
        now: Instant,
        node: Node,
        to: Node,
        acknowledged: Option<u8>,
        neighbours: &Neighbours,
    ) {
        if self.settings.objective == Objective::Of0 || to == EVERYONE {
            return;
        }
        self.routers[node as usize].tried(now, to, acknowledged);
        if !self.settings.control_traffic {
            self.spread(node, neighbours);
        }
    }

    /// A node thinks its parent over; so do all who learn another rank from it, until nothing changes.
    fn spread(&mut self, node: Node, neighbours: &Neighbours) {
        let mut waiting = VecDeque::from([node]);
        // So that no two nodes can go on for ever about each other.
        for _ in 0..SPREADS * self.routers.len() {
            let Some(node) = waiting.pop_front() else { return };
            let is_below =
                |other: &Node| below(self.root, node, *other, |node| self.parent(node).unwrap_or(node)).is_some();
            let below: Vec<Node> = neighbours.hearing(node).filter(is_below).collect();
            if !self.routers[node as usize].settles(&self.settings, &below) {
                continue;
            }
            let rank = self.routers[node as usize].rank();
            for other in neighbours.hearing(node) {
                self.routers[other as usize].learn(node, rank);
                if !waiting.contains(&other) {
                    waiting.push_back(other);
                }
            }
        }
    }

    pub(super) fn parent(&self, node: Node) -> Option<Node> {
        self.routers.get(node as usize)?.parent()
    }

    /// Hops to the root, if the node has joined.
    pub(super) fn depth(&self, node: Node) -> Option<u32> {
        let mut depth = 0;
        let mut at = node;
        while at != self.root && depth as usize <= self.routers.len() {
            at = self.parent(at)?;
            depth += 1;
        }
        (at == self.root).then_some(depth)
    }

    /// Where a packet for a node goes next.
    pub(super) fn way(&self, at: Node, to: Node) -> Way {
        let down = if self.settings.control_traffic {
            self.routers[at as usize].routes.via(to)
        } else {
            below(self.root, at, to, |node| self.parent(node).unwrap_or(node))
        };
        match (down, self.parent(at)) {
            (Some(down), _) => Way::Down(down),
            (None, Some(parent)) => Way::Up(parent),
            (None, None) => Way::None,
        }
    }

    /// A node forgets a downward route.
    #[cfg(test)]
    pub(super) fn forget(&mut self, node: Node, target: Node) {
        self.routers[node as usize].routes.forget(target);
    }

    /// What is reported of a node.
    pub(super) fn row(&self, node: Node, losses: [u64; 2]) -> RplRow {
        let (router, control) = (&self.routers[node as usize], &self.control[node as usize]);
        let [dis, dio, dao, no_path] = control.made;
        RplRow {
            rank: (router.rank() != INFINITE).then_some(router.rank()),
            routes: router.routes.count(),
            parent_switches: router.switches,
            dis,
            dio,
            dao,
            dao_no_path: no_path,
            control_refused: control.refused,
            control_given_up: control.given_up,
            control_sent: control.sent,
            control_received: control.fates.received,
            control_collided: control.fates.collided,
            control_deaf: control.fates.deaf,
            control_faded: control.fates.faded,
            lost_no_route: losses[0],
            lost_stale_route: losses[1],
        }
    }
}

//! A mesh of radios: nodes that send frames to each other over one channel, and hand packets on.
//!
//! A packet is held by one node at a time. Its frames are sent to the next node on its way; what that node accepts is a
//! packet of its own from there on. So a packet of a node either got on (once as a rule, more often where the node that
//! received it had forgotten it) or is lost, for one cause.

mod air;
mod books;
mod control;
mod counts;
#[cfg(test)]
mod laws;
mod mac;
mod medium;
mod neighbours;
mod occupancy;
mod packets;
mod rpl;
#[cfg(test)]
mod rpl_laws;
#[cfg(test)]
mod saturation;
mod sixlowpan;
mod station;
mod timing;
mod tree;

use std::collections::VecDeque;

use millpond_control::{ChanceSeed, Instant, Span};

pub use mac::Access;
pub(crate) use mac::Rules;
pub(crate) use medium::{Delivery, Share, WHOLE};
pub(crate) use neighbours::{Neighbours, Node, Place, Reach};
pub(crate) use rpl::{Objective, Parameters, Settings};
pub(crate) use sixlowpan::{HEADER, LONGEST_PACKET, frames};
pub(crate) use tree::Tree;

use super::{Address, Arrival, LinkName, Load, Packet, SERVER, Spare};
use crate::{
    calendar::Calendar,
    ledger::{Slab, Tag},
    outcome::FlowRow,
    recording::Recording,
    trace::{Options, Recorder},
};
use mac::Frame;
use medium::Medium;
use rpl::Rpl;
use station::Station;

/// A mesh as its scenario describes it.
pub(crate) struct Plan {
    pub(crate) names: Vec<LinkName>,
    pub(crate) places: Vec<Place>,
    pub(crate) roles: Vec<LinkName>,
    pub(crate) reach: Reach,
    pub(crate) delivery: Delivery,
    /// When which link has which delivery ratio from then on, in the order of time.
    pub(crate) changes: VecDeque<(Instant, [Node; 2], Share)>,
    /// The root of the tree.
    pub(crate) border_router: Node,
    /// How RPL works; with none the tree is given and stays.
    pub(crate) rpl: Option<Settings>,
    /// How long before the run begins nodes are switched on, in microseconds: their clock is so much ahead of the run's.
    pub(crate) idle: u64,
    /// The rules of each node.
    pub(crate) rules: Vec<Rules>,
    /// From the last bit of a packet until its node goes on with it.
    pub(crate) processing: Span,
    /// Where each client is, and the node that it sends to.
    pub(crate) clients: Vec<[Node; 2]>,
}

/// A packet that a node holds.
struct Held {
    body: u32,
    /// The number that no other packet has.
    serial: u64,
    /// Whom it came from, and its number there.
    from: Option<(Node, u64)>,
    /// Frames that it became, and those that are not done with.
    parts: u8,
    left: u8,
    /// A next node has it.
    passed: bool,
    lives: bool,
    /// RPL: it went down the last time, and how many hops it has gone.
    down: bool,
    hops: u8,
}

/// What is in packets that several nodes may hold.
struct Body {
    packet: Packet,
    length: u32,
    to: Node,
    /// Its number among those sent.
    number: u64,
    held: u32,
}

/// Packets for one client that did not arrive.
#[derive(Clone, Copy, Default)]
struct Drops {
    queue: u32,
    radio: u32,
}

/// What may happen at a node, in the order in which it does when it happens together.
#[derive(Clone, Copy)]
enum Act {
    /// What it sends ends.
    Silence,
    /// A packet that came has been looked at.
    Look,
    /// It acknowledges.
    Acknowledge,
    /// The machine of medium access wakes.
    Access,
    /// RPL does what is due.
    Control,
    /// A link changes; of the first node only.
    Change,
}

const ACTS: [Act; 6] = [Act::Silence, Act::Look, Act::Acknowledge, Act::Access, Act::Control, Act::Change];
/// Those that there always are.
const PLAIN: usize = 4;

/// The mesh.
pub(crate) struct Mesh {
    plan: Plan,
    tree: Tree,
    rpl: Option<Box<Rpl>>,
    medium: Medium,
    stations: Vec<Station>,
    /// When which act of which node is due.
    calendar: Calendar,
    seed: ChanceSeed,
    held: Slab<Held>,
    bodies: Slab<Body>,
    serials: u64,
    arrived: VecDeque<Packet>,
    /// The bytes of the datagram that was handed out last.
    handed: Vec<u8>,
    spare: Spare,
    sent: u64,
    branches: u64,
    drops: Vec<Drops>,
    lost: Vec<Tag>,
    branched: Vec<Tag>,
    recording: Option<Box<Recording>>,
    /// Room that is used again and again.
    lengths: Vec<u16>,
    frames: Vec<Frame>,
    heard: Vec<Node>,
}

impl Mesh {
    /// A silent mesh. What it draws is drawn from words of its own.
    pub(crate) fn new(plan: Plan, seed: ChanceSeed, capture: bool) -> Self {
        let seed = seed.part(u64::from(u32::from_be_bytes(*b"mesh")));
        let nodes = plan.places.len();
        let neighbours = Neighbours::new(&plan.places, plan.reach);
        let tree = Tree::new(nodes, &neighbours, plan.border_router, seed);
        let rpl =
            plan.rpl.map(|settings| Box::new(Rpl::new(settings, &neighbours, &tree, plan.border_router, nodes, seed)));
        let is_plain = rpl.is_none() && plan.changes.is_empty();
        let acts = if is_plain { PLAIN } else { ACTS.len() };
        let mut mesh = Self {
            medium: Medium::new(nodes, neighbours, plan.delivery.clone(), seed),
            tree,
            rpl,
            stations: plan.rules.iter().map(|rules| Station::new(*rules)).collect(),
            calendar: Calendar::new(acts * nodes),
            seed,
            held: Slab::new(),
            bodies: Slab::new(),
            serials: 0,
            arrived: VecDeque::new(),
            handed: Vec::new(),
            spare: Spare::default(),
            sent: 0,
            branches: 0,
            drops: vec![Drops::default(); plan.clients.len()],
            lost: Vec::new(),
            branched: Vec::new(),
            recording: capture.then(|| Box::new(Recording::new(1))),
            lengths: Vec::new(),
            frames: Vec::new(),
            heard: Vec::new(),
            plan,
        };
        mesh.switch_on();
        mesh.plan_change();
        let mut rec = Recorder::new(&Options::default(), Vec::new(), std::iter::empty());
        while mesh.deliver(Instant::ORIGIN, &mut rec).is_some() {}
        mesh
    }

    /// What the nodes' clock shows at a time of the run.
    fn clock(&self, now: Instant) -> Instant {
        Instant::from_micros(now.as_micros().saturating_add(self.plan.idle))
    }

    /// The time of the run at which the nodes' clock shows this. Nodes with a clock of their own always have something to do.
    #[inline]
    fn run_time(&self, at: Instant) -> Instant {
        Instant::from_micros(at.as_micros() - self.plan.idle)
    }

    /// When a link changes next.
    fn plan_change(&mut self) {
        if let Some(&(at, ..)) = self.plan.changes.front() {
            let at = self.clock(at);
            self.set(Act::Change, 0, at);
        }
    }

    /// A link changes.
    fn change(&mut self) {
        self.set(Act::Change, 0, Instant::NEVER);
        if let Some((_, between, ratio)) = self.plan.changes.pop_front() {
            self.medium.set_delivery(between, ratio);
        }
        self.plan_change();
    }

    /// A packet enters the mesh where its sender is.
    #[expect(clippy::too_many_arguments, reason = "the packet, and from where to where and when it goes")]
    pub(super) fn send(
        &mut self,
        now: Instant,
        from: Address,
        to: Address,
        length: u32,
        load: Load,
        tag: Tag,
        rec: &mut Recorder,
    ) {
        let (at, to_node) = self.ends(from, to);
        let (client, to_client) = if to == SERVER { (from, false) } else { (to, true) };
        let packet = Packet { load, tag, client, to_client, marked: false, hop: 0, route: 0 };
        if let Some(recording) = &mut self.recording {
            recording.sent(0, now, &packet);
        }
        let now = self.clock(now);
        let body = self.bodies.put(Body { packet, length, to: to_node, number: self.sent, held: 1 });
        self.sent += 1;
        self.stations[at as usize].counts.begun += 1;
        let held = self.hold(body, None);
        self.pass_on(now, at, held, rec);
    }

    /// The nodes at both ends of a way.
    fn ends(&self, from: Address, to: Address) -> (Node, Node) {
        let (client, back) = if to == SERVER { (from, false) } else { (to, true) };
        let [node, sink] = self.plan.clients.get(client as usize).copied().unwrap_or_default();
        if back { (sink, node) } else { (node, sink) }
    }

    #[inline]
    pub(super) fn next(&self) -> Instant {
        if self.arrived.is_empty() { self.run_time(self.calendar.first().0) } else { Instant::ORIGIN }
    }

    /// The next packet that reaches its node at or before `now`.
    pub(super) fn deliver(&mut self, now: Instant, rec: &mut Recorder) -> Option<Packet> {
        let now = self.clock(now);
        loop {
            if let Some(packet) = self.arrived.pop_front() {
                return Some(packet);
            }
            let (at, actor) = self.calendar.first();
            if at > now {
                return None;
            }
            let nodes = self.stations.len() as u32;
            let node = actor % nodes;
            match ACTS.get((actor / nodes) as usize) {
                Some(Act::Silence) => self.silence(at, node, rec),
                Some(Act::Look) => self.look(at, node, rec),
                Some(Act::Acknowledge) => self.acknowledge(at, node),
                Some(Act::Access) => self.access(at, node, rec),
                Some(Act::Control) => self.control(at, node),
                Some(Act::Change) => self.change(),
                None => return None,
            }
        }
    }

    #[inline]
    fn set(&mut self, act: Act, node: Node, at: Instant) {
        self.calendar.set(act as u32 * self.stations.len() as u32 + node, at);
    }

    #[inline]
    pub(super) fn has_news(&self) -> bool {
        !self.lost.is_empty() || !self.branched.is_empty()
    }

    #[inline]
    pub(super) fn lost(&mut self) -> Option<Tag> {
        self.lost.pop()
    }

    #[inline]
    pub(super) fn branched(&mut self) -> Option<Tag> {
        self.branched.pop()
    }

    /// A datagram enters the mesh, in a buffer that was used before if there is one.
    #[cold]
    pub(super) fn send_datagram(
        &mut self,
        now: Instant,
        from: Address,
        to: Address,
        payload: &[u8],
        tag: &Tag,
        rec: &mut Recorder,
    ) {
        let load = self.spare.copy(payload);
        self.send(now, from, to, self.length(payload), load, *tag, rec);
    }

    /// The next packet that reaches its node at or before `now`, to be looked at outside.
    #[cold]
    pub(super) fn deliver_datagram(&mut self, now: Instant, rec: &mut Recorder) -> Option<Arrival> {
        self.deliver(now, rec).map(|packet| self.hand_out(packet))
    }

    fn hand_out(&mut self, packet: Packet) -> Arrival {
        let arrival = match &packet.load {
            Load::Datagram(bytes) => packet.arrival(self.length(bytes)),
            Load::Segment(_) | Load::Cross => packet.arrival(0),
        };
        if let Load::Datagram(bytes) = packet.load {
            self.spare.push(std::mem::replace(&mut self.handed, bytes));
        }
        arrival
    }

    #[cold]
    pub(super) fn datagram(&self) -> &[u8] {
        &self.handed
    }

    #[inline]
    pub(super) fn length(&self, payload: &[u8]) -> u32 {
        HEADER + payload.len() as u32
    }

    #[cold]
    pub(super) fn useful(&mut self, from: Address, to: Address, bytes: u32) {
        let (mut at, end) = self.ends(from, to);
        if self.rpl.is_some() {
            return self.useful_by_rpl(at, end, bytes);
        }
        while let Some(next) = self.tree.next_hop(at, end) {
            self.stations[at as usize].counts.useful += u64::from(bytes);
            at = next;
        }
    }

    pub(super) fn links(&self) -> Vec<LinkName> {
        self.plan.names.clone()
    }

    /// Bytes and frames in the buffers of a node.
    pub(super) fn queued(&self, place: usize) -> (u64, u64) {
        self.stations.get(place).map_or((0, 0), |station| station.occupancy.now())
    }

    pub(super) fn sum(&self, row: &mut FlowRow) {
        let drops = self.drops.get(row.flow as usize).copied().unwrap_or_default();
        (row.dropped_queue, row.dropped_radio) = (drops.queue, drops.radio);
    }

    pub(super) fn take_recording(&mut self) -> Option<Box<Recording>> {
        self.recording.take()
    }
}

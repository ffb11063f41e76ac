//! A mesh of radios: nodes that send frames to each other over one channel, and hand packets on.
//!
//! A packet is held by one node at a time. Its frames are sent to the next node on its way; what that node accepts is a
//! packet of its own from there on. So a packet of a node either got on (once as a rule, more often where the node that
//! received it had forgotten it) or is lost, for one cause.

mod books;
mod counts;
#[cfg(test)]
mod laws;
mod mac;
mod medium;
mod neighbours;
mod occupancy;
mod packets;
#[cfg(test)]
mod saturation;
mod sixlowpan;
mod station;
mod timing;
mod tree;

use std::collections::VecDeque;

use millpond_control::{ChanceSeed, Instant, Span};

pub(crate) use mac::{Access, Rules};
pub(crate) use medium::{Delivery, WHOLE};
pub(crate) use neighbours::{Neighbours, Node, Place, Reach};
pub(crate) use sixlowpan::{HEADER, LONGEST_PACKET, frames};
pub(crate) use tree::Tree;

use super::{Address, Arrival, LinkName, Load, Packet, SERVER, Spare};
use crate::{
    agenda::Agenda,
    ledger::{Slab, Tag},
    outcome::FlowRow,
    recording::Recording,
    trace::Recorder,
};
use mac::{Frame, Step};
use medium::{Fate, Medium};
use station::{OnAir, Station};
use timing::{ACK_BYTES, TURNAROUND, airtime};

/// How long a packet waits for its missing parts (Contiki 2.7).
const REASSEMBLY: Span = Span::from_secs(8);

/// A mesh as its scenario describes it.
pub(crate) struct Plan {
    pub(crate) names: Vec<LinkName>,
    pub(crate) places: Vec<Place>,
    pub(crate) roles: Vec<LinkName>,
    pub(crate) reach: Reach,
    pub(crate) delivery: Delivery,
    /// The root of the tree.
    pub(crate) border_router: Node,
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
}

const ACTS: [Act; 4] = [Act::Silence, Act::Look, Act::Acknowledge, Act::Access];

/// The mesh.
pub(crate) struct Mesh {
    plan: Plan,
    tree: Tree,
    medium: Medium,
    stations: Vec<Station>,
    /// When which act of which node is due.
    agenda: Agenda,
    luck: ChanceSeed,
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
        let luck = seed.part(u64::from(u32::from_be_bytes(*b"mesh")));
        let nodes = plan.places.len();
        let neighbours = Neighbours::new(&plan.places, plan.reach);
        let tree = Tree::new(nodes, &neighbours, plan.border_router, luck);
        Self {
            medium: Medium::new(nodes, neighbours, plan.delivery.clone(), luck),
            tree,
            stations: plan.rules.iter().map(|rules| Station::new(*rules)).collect(),
            agenda: Agenda::new(ACTS.len() * nodes),
            luck,
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
        }
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
        let packet = Packet { load, tag, client, to_client, hop: 0, route: 0 };
        if let Some(recording) = &mut self.recording {
            recording.sent(0, now, &packet);
        }
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
        if self.arrived.is_empty() { self.agenda.first().0 } else { Instant::ORIGIN }
    }

    /// The next packet that reaches its node at or before `now`.
    pub(super) fn deliver(&mut self, now: Instant, rec: &mut Recorder) -> Option<Packet> {
        loop {
            if let Some(packet) = self.arrived.pop_front() {
                return Some(packet);
            }
            let (at, actor) = self.agenda.first();
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
                None => return None,
            }
        }
    }

    #[inline]
    fn set(&mut self, act: Act, node: Node, at: Instant) {
        self.agenda.set(act as u32 * self.stations.len() as u32 + node, at);
    }

    /// A node's machine of medium access goes on.
    fn access(&mut self, now: Instant, node: Node, rec: &mut Recorder) {
        loop {
            let station = &mut self.stations[node as usize];
            let ear = station.ear(node, &self.medium);
            match station.mac.wake(now, ear, &station.rules, (self.luck, node)) {
                Step::Wait => break,
                Step::Send(frame) => {
                    station.on_air = Some(OnAir::Data(frame));
                    station.counts.data_sent += 1;
                    self.air(now, node, frame.to, frame.bytes);
                    break;
                }
                Step::Ended(frame, end) => self.left(now, node, frame, end, rec),
            }
        }
        let wakes = self.stations[node as usize].mac.next();
        self.set(Act::Access, node, wakes);
    }

    /// A frame goes on the air.
    fn air(&mut self, now: Instant, node: Node, to: Node, bytes: u16) {
        let time = airtime(bytes);
        self.stations[node as usize].counts.on_air += u64::from(time.as_micros());
        self.medium.begin(node, to);
        self.set(Act::Silence, node, now.after(time));
    }

    /// What a node sends ends.
    fn silence(&mut self, now: Instant, node: Node, rec: &mut Recorder) {
        self.set(Act::Silence, node, Instant::NEVER);
        let mut heard = std::mem::take(&mut self.heard);
        heard.clear();
        let fate = self.medium.end(node, &mut heard);
        match self.stations[node as usize].on_air.take() {
            Some(OnAir::Data(frame)) => {
                if rec.frames {
                    rec.frame(now, [node, frame.to], "data", airtime(frame.bytes), fate.name());
                }
                self.stations[frame.to as usize].counts.data.count(fate);
                if fate == Fate::Received {
                    self.received(now, node, frame, rec);
                }
                let station = &mut self.stations[node as usize];
                let step = station.mac.sent(now, &station.rules, (self.luck, node));
                self.took(now, node, step, rec);
            }
            Some(OnAir::Ack(number)) => self.acknowledged(now, node, number, fate, &heard, rec),
            None => {}
        }
        self.heard = heard;
    }

    /// An acknowledgement was sent, and heard by these.
    fn acknowledged(&mut self, now: Instant, node: Node, number: u8, fate: Fate, heard: &[Node], rec: &mut Recorder) {
        let to = self.stations[node as usize].owes.take().map_or(node, |(to, _)| to);
        if rec.frames {
            rec.frame(now, [node, to], "ack", airtime(ACK_BYTES), fate.name());
        }
        self.stations[to as usize].counts.acks.count(fate);
        for &other in heard {
            let station = &mut self.stations[other as usize];
            let step = station.mac.acknowledged(now, number, other == to, &station.rules, (self.luck, other));
            self.took(now, other, step, rec);
        }
    }

    /// A machine was told something, and this came of it.
    fn took(&mut self, now: Instant, node: Node, step: Step, rec: &mut Recorder) {
        if let Step::Ended(frame, end) = step {
            self.left(now, node, frame, end, rec);
        }
        let wakes = self.stations[node as usize].mac.next();
        self.set(Act::Access, node, wakes);
    }

    /// A node received a frame that was for it.
    fn received(&mut self, now: Instant, from: Node, frame: Frame, rec: &mut Recorder) {
        let node = frame.to;
        let station = &mut self.stations[node as usize];
        // A radio that has turned to sending does not turn back.
        if station.rules.acknowledged() {
            if station.mac.is_committed() || station.owes.is_some() {
                station.counts.acks_omitted += 1;
            } else {
                station.owes = Some((from, frame.number));
                self.set(Act::Acknowledge, node, now.after(TURNAROUND));
            }
        }
        let station = &mut self.stations[node as usize];
        if station.knows(from, frame.number) {
            station.counts.duplicates += 1;
            return;
        }
        let Some(held) = self.held.get_mut(frame.copy) else { return };
        if !station.assemble(now, held.serial, frame.part, held.parts, now.after(REASSEMBLY)) {
            return;
        }
        let (body, serial, again) = (held.body, held.serial, held.passed);
        held.passed = true;
        let Some(inside) = self.bodies.get_mut(body) else { return };
        inside.held += 1;
        if again {
            self.branches += 1;
            self.branched.push(inside.packet.tag);
        } else {
            let counts = &mut self.stations[from as usize].counts;
            counts.passed += 1;
            counts.passed_bytes += u64::from(inside.length);
        }
        rec.packet(now, "recv", from as usize, &inside.packet, inside.length);
        let copy = self.hold(body, Some((from, serial)));
        let at = now.after(self.plan.processing);
        let upper = &mut self.stations[node as usize].upper;
        upper.push_back((at, copy));
        if upper.len() == 1 {
            self.set(Act::Look, node, at);
        }
    }

    /// A node acknowledges a frame, unless its radio sends already.
    fn acknowledge(&mut self, now: Instant, node: Node) {
        self.set(Act::Acknowledge, node, Instant::NEVER);
        let station = &mut self.stations[node as usize];
        let Some((to, number)) = station.owes else { return };
        if self.medium.is_sending(node) {
            station.owes = None;
            station.counts.acks_omitted += 1;
            return;
        }
        station.on_air = Some(OnAir::Ack(number));
        station.counts.acks_sent += 1;
        self.air(now, node, to, ACK_BYTES);
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

    /// A datagram as a load, in a buffer that was used before if there is one.
    #[inline]
    pub(super) fn copy(&mut self, payload: &[u8]) -> Load {
        self.spare.copy(payload)
    }

    /// A packet that arrived is looked at outside.
    pub(super) fn hand_out(&mut self, packet: Packet) -> Arrival {
        let arrival = match &packet.load {
            Load::Datagram(bytes) => packet.arrival(self.length(bytes)),
            Load::Segment(_) => packet.arrival(0),
        };
        if let Load::Datagram(bytes) = packet.load {
            self.spare.push(std::mem::replace(&mut self.handed, bytes));
        }
        arrival
    }

    #[inline]
    pub(super) fn datagram(&self) -> &[u8] {
        &self.handed
    }

    #[inline]
    pub(super) fn length(&self, payload: &[u8]) -> u32 {
        HEADER + payload.len() as u32
    }

    pub(super) fn useful(&mut self, from: Address, to: Address, bytes: u32) {
        let (mut at, end) = self.ends(from, to);
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

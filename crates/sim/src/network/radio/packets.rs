//! The packets that nodes hold: taken on, passed on, handed up or lost.

use millpond_control::Instant;

use super::{
    Act, Body, Held, Load, Mesh, Node, Packet,
    counts::Cause,
    frames,
    mac::{Carries, End, Frame, Refused},
    rpl::{HOP_LIMIT, Way},
};
use crate::{ledger::NO_EXCHANGE, trace::Recorder};

impl Mesh {
    pub(super) fn hold(&mut self, body: u32, from: Option<(Node, u64)>) -> u32 {
        self.serials += 1;
        let serial = self.serials;
        self.held.put(Held { body, serial, from, parts: 0, left: 0, passed: false, lives: true, down: false, hops: 0 })
    }

    /// A node sends a packet on that it holds.
    pub(super) fn pass_on(&mut self, now: Instant, at: Node, held: u32, rec: &mut Recorder) {
        let Some(&Held { body, serial, .. }) = self.held.get(held) else { return };
        let Some(&Body { length, to, .. }) = self.bodies.get(body) else { return };
        let next = if self.rpl.is_some() { self.hop(now, at, held, rec) } else { self.tree.next_hop(at, to) };
        let Some(next) = next else { return };
        if let Some(body) = self.bodies.get(body) {
            rec.packet(now, "enq", at as usize, &body.packet, length);
        }
        rec.goes_on(at as usize, serial);
        frames(length, &mut self.lengths);
        self.frames.clear();
        let station = &mut self.stations[at as usize];
        for (part, &bytes) in self.lengths.iter().enumerate() {
            let number = station.number();
            self.frames.push(Frame { carries: Carries::Data, copy: held, part: part as u8, number, to: next, bytes });
        }
        station.counts.offered += 1;
        station.counts.offered_bytes += u64::from(length);
        let parts = self.frames.len() as u8;
        match station.mac.offer(now, &self.frames, &station.rules, (self.seed, at)) {
            Ok(()) => {
                let bytes: u64 = self.lengths.iter().map(|bytes| u64::from(*bytes)).sum();
                station.occupancy.enter(now, u64::from(parts), bytes);
                let wakes = station.mac.next();
                if let Some(held) = self.held.get_mut(held) {
                    (held.parts, held.left) = (parts, parts);
                }
                self.set(Act::Access, at, wakes);
            }
            Err(refused) => {
                rec.dropped("drop_queue");
                let cause = match refused {
                    Refused::Full => Cause::Buffers,
                    Refused::Neighbours => Cause::Neighbours,
                };
                self.lose(at, held, cause);
            }
        }
    }

    /// RPL: the next node for a packet that a node holds. One that has no way is lost.
    fn hop(&mut self, now: Instant, at: Node, held: u32, rec: &mut Recorder) -> Option<Node> {
        let here = self.held.get_mut(held)?;
        let body = self.bodies.get(here.body)?;
        let way = self.rpl.as_ref().map_or(Way::None, |rpl| rpl.way(at, body.to));
        let (cause, serial) = (if here.down { Cause::StaleRoute } else { Cause::NoRoute }, here.serial);
        here.hops = here.hops.saturating_add(1);
        let next = match way {
            _ if here.hops > HOP_LIMIT => None,
            Way::Down(next) => Some((next, true)),
            // What goes down does not turn round (RFC 6550, section 11.2.2.3, lets a node send it back; here it ends).
            Way::Up(next) if !here.down => Some((next, false)),
            Way::Up(_) | Way::None => None,
        };
        if let Some((next, down)) = next {
            here.down = down;
            return Some(next);
        }
        let length = body.length;
        rec.packet(now, "enq", at as usize, &body.packet, length);
        rec.goes_on(at as usize, serial);
        rec.dropped("drop_radio");
        let counts = &mut self.stations[at as usize].counts;
        counts.offered += 1;
        counts.offered_bytes += u64::from(length);
        self.lose(at, held, cause);
        None
    }

    /// RPL: bytes were of use at every node of the way as it now is.
    pub(super) fn useful_by_rpl(&mut self, mut at: Node, end: Node, bytes: u32) {
        for _ in 0..HOP_LIMIT {
            if at == end {
                return;
            }
            let way = self.rpl.as_ref().map_or(Way::None, |rpl| rpl.way(at, end));
            let (Way::Up(next) | Way::Down(next)) = way else { return };
            self.stations[at as usize].counts.useful += u64::from(bytes);
            at = next;
        }
    }

    /// A node has looked at a packet that came: it is for this node, or goes on.
    pub(super) fn look(&mut self, now: Instant, node: Node, rec: &mut Recorder) {
        let upper = &mut self.stations[node as usize].upper;
        let Some((_, held)) = upper.pop_front() else { return };
        let next = upper.front().map_or(Instant::NEVER, |(at, _)| *at);
        self.set(Act::Look, node, next);
        let Some(&Held { body, from, .. }) = self.held.get(held) else { return };
        let Some(&Body { to, length, .. }) = self.bodies.get(body) else { return };
        if let Some((from, serial)) = from {
            rec.carried(now, from as usize, serial, length);
        }
        if to != node {
            return self.pass_on(now, node, held, rec);
        }
        self.stations[node as usize].counts.arrived += 1;
        if let Some(held) = self.held.get_mut(held) {
            held.passed = true;
        }
        self.let_go(held, true);
        let at = self.run_time(now);
        if let Some(packet) = self.arrived.back() {
            if let Some(recording) = &mut self.recording {
                recording.arrived(at, packet);
            }
            if packet.tag.exchange != NO_EXCHANGE && packet.asks() {
                rec.asked(&packet.tag);
            }
        }
    }

    /// A frame has left its node for good.
    pub(super) fn left(&mut self, now: Instant, node: Node, frame: Frame, end: End, rec: &mut Recorder) {
        self.stations[node as usize].occupancy.leave(now, u64::from(frame.bytes));
        if self.rpl.is_some() {
            self.tried(now, node, frame, end);
            if frame.carries == Carries::Control {
                return self.control_left(node, frame, end);
            }
        }
        let Some(held) = self.held.get_mut(frame.copy) else { return };
        held.left = held.left.saturating_sub(1);
        if held.left > 0 {
            return;
        }
        if held.passed {
            return self.let_go(frame.copy, false);
        }
        let body = held.body;
        if let Some(body) = self.bodies.get(body) {
            rec.packet(now, "drop_radio", node as usize, &body.packet, body.length);
        }
        self.lose(node, frame.copy, Cause::of(end));
    }

    /// A packet that a node holds is no more.
    fn lose(&mut self, node: Node, held: u32, cause: Cause) {
        let Some(&Held { body, .. }) = self.held.get(held) else { return };
        let Some(inside) = self.bodies.get(body) else { return };
        self.stations[node as usize].counts.lose(cause, inside.length);
        if inside.packet.to_client
            && let Some(drops) = self.drops.get_mut(inside.packet.client as usize)
        {
            *(if cause.is_queue() { &mut drops.queue } else { &mut drops.radio }) += 1;
        }
        if let Some(recording) = &mut self.recording {
            recording.lost(0, inside.number, if cause.is_queue() { "lost: queue full" } else { "lost: radio" });
        }
        self.lost.push(inside.packet.tag);
        self.let_go(held, false);
    }

    /// A node holds a packet no longer; what is inside arrives if it is where it was to be.
    fn let_go(&mut self, held: u32, arrives: bool) {
        let Some(gone) = self.held.get_mut(held) else { return };
        gone.lives = false;
        let body = gone.body;
        self.held.free(held);
        let Some(inside) = self.bodies.get_mut(body) else { return };
        inside.held -= 1;
        let is_last = inside.held == 0;
        let packet = &mut inside.packet;
        let bytes = match &mut packet.load {
            Load::Datagram(bytes) if is_last => std::mem::take(bytes),
            Load::Datagram(bytes) if arrives => bytes.clone(),
            Load::Datagram(_) | Load::Segment(_) | Load::Cross => Vec::new(),
        };
        if arrives {
            self.arrived.push_back(Packet { load: Load::Datagram(bytes), ..*packet });
        } else if is_last {
            self.spare.push(bytes);
        }
        if is_last {
            self.bodies.free(body);
        }
    }
}

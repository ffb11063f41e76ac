//! The packets that nodes hold: taken on, passed on, handed up or lost.

use millpond_control::Instant;

use super::{
    Act, Body, Held, Load, Mesh, Node, Packet,
    counts::Cause,
    frames,
    mac::{End, Frame, Refused},
};
use crate::{ledger::NO_EXCHANGE, trace::Recorder};

impl Mesh {
    pub(super) fn hold(&mut self, body: u32, from: Option<(Node, u64)>) -> u32 {
        self.serials += 1;
        let serial = self.serials;
        self.held.put(Held { body, serial, from, parts: 0, left: 0, passed: false, lives: true })
    }

    /// A node sends a packet on that it holds.
    pub(super) fn pass_on(&mut self, now: Instant, at: Node, held: u32, rec: &mut Recorder) {
        let Some(&Held { body, serial, .. }) = self.held.get(held) else { return };
        let Some(&Body { length, to, .. }) = self.bodies.get(body) else { return };
        let Some(next) = self.tree.next_hop(at, to) else { return };
        if let Some(body) = self.bodies.get(body) {
            rec.packet(now, "enq", at as usize, &body.packet, length);
        }
        rec.goes_on(at as usize, serial);
        frames(length, &mut self.lengths);
        self.frames.clear();
        let station = &mut self.stations[at as usize];
        for (part, &bytes) in self.lengths.iter().enumerate() {
            let number = station.number();
            self.frames.push(Frame { copy: held, part: part as u8, number, to: next, bytes });
        }
        station.counts.offered += 1;
        station.counts.offered_bytes += u64::from(length);
        let parts = self.frames.len() as u8;
        match station.mac.offer(now, &self.frames, &station.rules, (self.luck, at)) {
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
        if let Some(packet) = self.arrived.back() {
            if let Some(recording) = &mut self.recording {
                recording.arrived(now, packet);
            }
            if packet.tag.exchange != NO_EXCHANGE && packet.asks() {
                rec.asked(&packet.tag);
            }
        }
    }

    /// A frame has left its node for good.
    pub(super) fn left(&mut self, now: Instant, node: Node, frame: Frame, end: End, rec: &mut Recorder) {
        self.stations[node as usize].occupancy.leave(now, u64::from(frame.bytes));
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
            Load::Datagram(_) | Load::Segment(_) => Vec::new(),
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

//! Frames on the air: sent, received, acknowledged.

use millpond_control::Instant;

use super::{
    Act, Mesh, Node,
    mac::{Carries, Frame, Step},
    medium::Fate,
    station::OnAir,
    timing::{ACK_BYTES, TURNAROUND, airtime},
};
use crate::trace::Recorder;

impl Mesh {
    /// A node's machine of medium access goes on.
    pub(super) fn access(&mut self, now: Instant, node: Node, rec: &mut Recorder) {
        loop {
            let station = &mut self.stations[node as usize];
            let ear = station.ear(node, &self.medium);
            match station.mac.wake(now, ear, &station.rules, (self.seed, node)) {
                Step::Wait => break,
                Step::Send(frame) if frame.carries == Carries::Control => {
                    station.on_air = Some(OnAir::Control(frame));
                    self.air_control(now, node, frame);
                    break;
                }
                Step::Send(frame) => {
                    station.on_air = Some(OnAir::Data(frame));
                    station.counts.data_sent += 1;
                    self.medium.begin(node, frame.to);
                    self.air(now, node, frame.bytes);
                    break;
                }
                Step::Ended(frame, end) => self.left(now, node, frame, end, rec),
            }
        }
        let wakes = self.stations[node as usize].mac.next();
        self.set(Act::Access, node, wakes);
    }

    /// A frame has gone on the air.
    pub(super) fn air(&mut self, now: Instant, node: Node, bytes: u16) {
        let time = airtime(bytes);
        self.stations[node as usize].counts.on_air += u64::from(time.as_micros());
        self.set(Act::Silence, node, now.after(time));
    }

    /// What a node sends ends.
    pub(super) fn silence(&mut self, now: Instant, node: Node, rec: &mut Recorder) {
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
                let step = station.mac.sent(now, &station.rules, (self.seed, node));
                self.took(now, node, step, rec);
            }
            Some(OnAir::Ack(number)) => self.acknowledged(now, node, number, fate, &heard, rec),
            Some(OnAir::Control(frame)) => self.control_sent(now, node, frame, fate, &heard, rec),
            None => {}
        }
        self.heard = heard;
    }

    /// An acknowledgement was sent, and heard by these.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        node: Node,
        number: u8,
        fate: Fate,
        heard: &[Node],
        rec: &mut Recorder,
    ) {
        let to = self.stations[node as usize].owes.take().map_or(node, |(to, _)| to);
        if rec.frames {
            rec.frame(now, [node, to], "ack", airtime(ACK_BYTES), fate.name());
        }
        self.stations[to as usize].counts.acks.count(fate);
        for &other in heard {
            let station = &mut self.stations[other as usize];
            let step = station.mac.acknowledged(now, number, other == to, &station.rules, (self.seed, other));
            self.took(now, other, step, rec);
        }
    }

    /// A machine was told something, and this came of it.
    pub(super) fn took(&mut self, now: Instant, node: Node, step: Step, rec: &mut Recorder) {
        if let Step::Ended(frame, end) = step {
            self.left(now, node, frame, end, rec);
        }
        let wakes = self.stations[node as usize].mac.next();
        self.set(Act::Access, node, wakes);
    }

    /// A node received a frame that was for it.
    pub(super) fn received(&mut self, now: Instant, from: Node, frame: Frame, rec: &mut Recorder) {
        let node = frame.to;
        self.acknowledges(now, node, from, frame.number);
        let station = &mut self.stations[node as usize];
        if station.knows(from, frame.number) {
            station.counts.duplicates += 1;
            return;
        }
        let Some(held) = self.held.get_mut(frame.copy) else { return };
        if !station.assemble(now, held.serial, frame.part, held.parts) {
            return;
        }
        let (body, serial, again, down, hops) = (held.body, held.serial, held.passed, held.down, held.hops);
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
        if let Some(held) = self.held.get_mut(copy) {
            (held.down, held.hops) = (down, hops);
        }
        let at = now.after(self.plan.processing);
        let upper = &mut self.stations[node as usize].upper;
        upper.push_back((at, copy));
        if upper.len() == 1 {
            self.set(Act::Look, node, at);
        }
    }

    /// A node is to acknowledge a frame that it received, if frames are.
    pub(super) fn acknowledges(&mut self, now: Instant, node: Node, from: Node, number: u8) {
        let station = &mut self.stations[node as usize];
        // A radio that has turned to sending does not turn back.
        if station.rules.acknowledged() {
            if station.mac.is_committed() || station.owes.is_some() {
                station.counts.acks_omitted += 1;
            } else {
                station.owes = Some((from, number));
                self.set(Act::Acknowledge, node, now.after(TURNAROUND));
            }
        }
    }

    /// A node acknowledges a frame, unless its radio sends already.
    pub(super) fn acknowledge(&mut self, now: Instant, node: Node) {
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
        self.medium.begin(node, to);
        self.air(now, node, ACK_BYTES);
    }
}

//! Messages of RPL on the air: frames like others, that contend, are lost and are counted.

use millpond_control::Instant;

use super::{
    Act, Mesh, Node,
    mac::{Carries, End, Frame},
    medium::Fate,
    neighbours::EVERYONE,
    station::OnAir,
    timing::airtime,
};
use crate::trace::Recorder;

impl Mesh {
    /// RPL at a node does what is due.
    pub(super) fn control(&mut self, now: Instant, node: Node) {
        let Some(rpl) = &mut self.rpl else { return };
        rpl.wake(now, node);
        let out = std::mem::take(&mut rpl.out);
        for &(to, message) in &out {
            rpl.control[node as usize].make(message);
            let station = &mut self.stations[node as usize];
            let (copy, number, bytes) = (rpl.messages.put(message), station.number(), message.bytes());
            let frame = Frame { carries: Carries::Control, copy, part: 0, number, to, bytes };
            if station.mac.offer(now, &[frame], &station.rules, (self.seed, node)).is_ok() {
                station.occupancy.enter(now, 1, u64::from(bytes));
                rpl.waiting += 1;
            } else {
                rpl.messages.free(copy);
                rpl.control[node as usize].refused += 1;
            }
        }
        if !out.is_empty() {
            let wakes = self.stations[node as usize].mac.next();
            self.calendar.set(Act::Access as u32 * self.stations.len() as u32 + node, wakes);
        }
        rpl.out = out;
        self.plan_control(node);
    }

    /// When RPL at a node acts next.
    fn plan_control(&mut self, node: Node) {
        if let Some(rpl) = &self.rpl {
            let wakes = rpl.next(node);
            self.set(Act::Control, node, wakes);
        }
    }

    /// All nodes are switched on.
    pub(super) fn switch_on(&mut self) {
        (0..self.stations.len() as Node).for_each(|node| self.plan_control(node));
    }

    /// A control message goes on the air.
    pub(super) fn air_control(&mut self, now: Instant, node: Node, frame: Frame) {
        let Some(rpl) = &mut self.rpl else { return };
        let control = &mut rpl.control[node as usize];
        control.sent += 1;
        if frame.to == EVERYONE {
            control.copies += self.medium.neighbours().hearing(node).count() as u64;
            self.medium.begin_broadcast(node);
        } else {
            control.copies += 1;
            self.medium.begin(node, frame.to);
        }
        self.air(now, node, frame.bytes);
    }

    /// The frame of a control message has left the antenna.
    pub(super) fn control_sent(
        &mut self,
        now: Instant,
        node: Node,
        frame: Frame,
        fate: Fate,
        heard: &[Node],
        rec: &mut Recorder,
    ) {
        let Some(rpl) = &mut self.rpl else { return };
        let Some(&message) = rpl.messages.get(frame.copy) else { return };
        let station = &mut self.stations[node as usize];
        let is_broadcast = frame.to == EVERYONE;
        let mut fate = fate;
        if is_broadcast {
            let mut missed = Vec::new();
            self.medium.missed(node, &mut missed);
            missed.iter().for_each(|(other, fate)| rpl.control[*other as usize].fates.count(*fate));
            fate =
                if heard.is_empty() { missed.first().map_or(Fate::Faded, |(_, fate)| *fate) } else { Fate::Received };
        }
        if rec.frames {
            rec.frame(now, [node, frame.to], message.name(), airtime(frame.bytes), fate.name());
        }
        let step = if is_broadcast {
            for &other in heard {
                rpl.control[other as usize].fates.count(Fate::Received);
            }
            station.mac.sent_to_everyone(now, &station.rules, (self.seed, node))
        } else {
            rpl.control[frame.to as usize].fates.count(fate);
            station.mac.sent(now, &station.rules, (self.seed, node))
        };
        if is_broadcast {
            heard.iter().for_each(|&other| self.receive_control(now, node, other, frame));
        } else if fate == Fate::Received {
            self.acknowledges(now, frame.to, node, frame.number);
            self.receive_control(now, node, frame.to, frame);
        }
        self.took(now, node, step, rec);
    }

    /// A node received a control message.
    fn receive_control(&mut self, now: Instant, from: Node, node: Node, frame: Frame) {
        let Some(rpl) = &mut self.rpl else { return };
        let station = &mut self.stations[node as usize];
        // No packet has the number 0.
        if station.knows(from, frame.number) || station.puts_together(now, 0) {
            return;
        }
        if let Some(&message) = rpl.messages.get(frame.copy) {
            rpl.take(now.after(self.plan.processing), node, from, message);
            self.plan_control(node);
        }
    }

    /// A frame has left its node for good: what RPL learns from that.
    pub(super) fn tried(&mut self, now: Instant, node: Node, frame: Frame, end: End) {
        let Some(rpl) = &mut self.rpl else { return };
        let acknowledged = match end {
            End::Acknowledged => Some(self.stations[node as usize].mac.tries()),
            End::NoAck => None,
            // Contiki 2.7 does not blame a link for a busy channel.
            End::Sent | End::NoChannel => return,
        };
        rpl.tried(now, node, frame.to, acknowledged, self.medium.neighbours());
        self.plan_control(node);
    }

    /// The frame of a control message has left its node for good.
    pub(super) fn control_left(&mut self, node: Node, frame: Frame, end: End) {
        let Some(rpl) = &mut self.rpl else { return };
        rpl.messages.free(frame.copy);
        rpl.waiting -= 1;
        let control = &mut rpl.control[node as usize];
        match end {
            End::Acknowledged | End::Sent => control.left += 1,
            End::NoAck | End::NoChannel => control.given_up += 1,
        }
    }

    /// Whether what is in the air is a control message, and for how many nodes.
    pub(super) fn copies_in_air(&self) -> u64 {
        let copies = |(node, station): (usize, &super::Station)| match station.on_air {
            Some(OnAir::Control(frame)) if frame.to == EVERYONE => {
                self.medium.neighbours().hearing(node as Node).count() as u64
            }
            Some(OnAir::Control(_)) => 1,
            _ => 0,
        };
        self.stations.iter().enumerate().map(copies).sum()
    }
}

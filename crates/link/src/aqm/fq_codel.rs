//! FlowQueue-CoDel, RFC 8290: a queue for each flow, served in turns by bytes, new flows first; each managed by CoDel.

use super::{Parked, codel::CoDel, take};
use crate::config::FqCoDelRules;
use crate::queue::Occupancy;
use millpond_control::{ChanceSeed, Purpose};
use std::collections::VecDeque;

/// One queue, section 3.1.
#[derive(Clone, Debug)]
struct Flow<P> {
    line: VecDeque<Parked<P>>,
    bytes: u64,
    codel: CoDel,
    /// Bytes that it may still send in its turn.
    credit: i64,
    is_listed: bool,
}

#[derive(Clone, Debug)]
pub(super) struct FqCoDel<P> {
    rules: FqCoDelRules,
    seed: ChanceSeed,
    number: u32,
    flows: Vec<Flow<P>>,
    /// Flows that have just begun, and the others, each in its order.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
}

impl<P> FqCoDel<P> {
    pub(super) fn new(rules: FqCoDelRules, seed: ChanceSeed, number: u32) -> Self {
        let flow =
            || Flow { line: VecDeque::new(), bytes: 0, codel: CoDel::new(rules.codel), credit: 0, is_listed: false };
        let flows = (0..rules.flows).map(|_| flow()).collect();
        Self { rules, seed, number, flows, new: VecDeque::new(), old: VecDeque::new() }
    }

    /// Section 4.1: a packet joins the queue of its flow, which begins if it was idle.
    pub(super) fn enqueue(&mut self, packet: Parked<P>) {
        let place = self.place(packet.radio);
        let Some(flow) = self.flows.get_mut(usize::from(place)) else { return };
        flow.bytes += u64::from(packet.room);
        flow.line.push_back(packet);
        if !flow.is_listed {
            (flow.is_listed, flow.credit) = (true, i64::from(self.rules.quantum));
            self.new.push_back(place);
        }
    }

    /// Section 4.1, for a full queue: the head of the flow that has the most bytes; the first of them, if there are several.
    pub(super) fn drop_fattest(&mut self) -> Option<Parked<P>> {
        let listed = self.new.iter().chain(&self.old).copied();
        let size = |place: &u16| self.flows.get(usize::from(*place)).map_or(0, |flow| flow.bytes);
        let fattest = listed.min_by_key(|place| (std::cmp::Reverse(size(place)), *place))?;
        let flow = self.flows.get_mut(usize::from(fattest))?;
        let packet = flow.line.pop_front()?;
        flow.bytes -= u64::from(packet.room);
        Some(packet)
    }

    /// Section 4.2: the next packet of the flow whose turn it is. `held` is what waits in all.
    pub(super) fn dequeue(
        &mut self,
        now: u64,
        held: &mut Occupancy,
        mut drop: impl FnMut(Parked<P>),
    ) -> Option<Parked<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let place = *list.front()?;
            let flow = self.flows.get_mut(usize::from(place))?;
            if flow.credit <= 0 {
                flow.credit += i64::from(self.rules.quantum);
                list.pop_front();
                self.old.push_back(place);
                continue;
            }
            let (line, bytes) = (&mut flow.line, &mut flow.bytes);
            let taken = || {
                let (packet, left) = take(line, held)?;
                *bytes -= u64::from(packet.room);
                Some((packet, left))
            };
            match flow.codel.dequeue(now, taken, &mut drop) {
                Some(packet) => {
                    flow.credit -= i64::from(packet.len);
                    return Some(packet);
                }
                None => {
                    list.pop_front();
                    // A flow that has just begun waits for its turn once more, so that none is new again and again.
                    if is_new {
                        self.old.push_back(place);
                    } else {
                        flow.is_listed = false;
                    }
                }
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Parked<P>> {
        self.flows.iter().flat_map(|flow| &flow.line)
    }

    /// The queue of the flow with this number: drawn for each link and seed, as section 4.1.1 asks of a hash.
    fn place(&self, radio: u32) -> u16 {
        let word = self.seed.wide(Purpose::Loss, [self.number, radio, 0, super::FLOW]);
        ((u128::from(word) * u128::from(self.rules.flows)) >> 64) as u16
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        let packets: usize = self.flows.iter().map(|flow| flow.line.capacity()).sum();
        packets * size_of::<Parked<P>>()
            + self.flows.capacity() * size_of::<Flow<P>>()
            + (self.new.capacity() + self.old.capacity()) * size_of::<u16>()
    }
}

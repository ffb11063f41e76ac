//! The pseudo-code of RFC 8289, RFC 8290 and RFC 8033 once more, straight from the text, in an event loop of its own.

use std::collections::{BTreeMap, VecDeque};

use millpond_control::{ChanceSeed, Purpose};

use crate::{Arrival, Fate, LINK, SEED};

/// A packet as the oracles know it.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    number: usize,
    flow: u32,
    bytes: u64,
    stamp: u64,
}

/// A discipline as the RFCs describe it; drops go into the list.
pub(crate) trait Discipline {
    fn enque(&mut self, now: u64, packet: Packet, drops: &mut Vec<(usize, bool)>);
    fn deque(&mut self, now: u64, drops: &mut Vec<(usize, bool)>) -> Option<Packet>;
}

/// An interface that sends one packet after another, and asks for the next when one is out.
pub(crate) fn oracle(queue: &mut dyn Discipline, rate: u64, arrivals: &[Arrival]) -> Vec<Fate> {
    let mut fates = vec![Fate::Full(0); arrivals.len()];
    let mut coming = arrivals.iter().enumerate().peekable();
    // The end of the packet being sent, in bits times 10^6 over the rate.
    let mut sending: Option<(usize, u128)> = None;
    let ends = |end: u128| end.div_ceil(u128::from(rate)) as u64;
    loop {
        let mut drops = Vec::new();
        let out = sending.map(|(_, end)| ends(end));
        let (now, start) = match (out, coming.peek()) {
            (None, None) => return fates,
            (Some(out), next) if next.is_none_or(|(_, next)| out <= next.0) => {
                let (number, end) = sending.take().unwrap();
                fates[number] = Fate::Left(out);
                (out, end)
            }
            _ => {
                let (number, &(at, flow, len)) = coming.next().unwrap();
                queue.enque(at, Packet { number, flow, bytes: u64::from(len), stamp: at }, &mut drops);
                (at, u128::from(at) * u128::from(rate))
            }
        };
        if sending.is_none() {
            let next = queue.deque(now, &mut drops);
            sending = next.map(|next| (next.number, start + u128::from(next.bytes) * 8_000_000));
        }
        for (number, is_full) in drops {
            fates[number] = if is_full { Fate::Full(now) } else { Fate::Dropped(now) };
        }
    }
}

/// RFC 8289, section 5, with its names.
#[derive(Clone, Default)]
struct CoDel {
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
}

const TARGET: u64 = 5_000;
const INTERVAL: u64 = 100_000;
const MAXPACKET: u64 = 1_500;

fn control_law(t: u64, count: u64) -> u64 {
    t + (INTERVAL as f64 / (count as f64).sqrt()).floor() as u64
}

impl CoDel {
    /// `bytes` are those of the whole queue after the packet was taken.
    fn dodeque(&mut self, now: u64, r: Option<(Packet, u64)>) -> (Option<Packet>, bool) {
        let Some((p, bytes)) = r else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        let sojourn_time = now - p.stamp;
        if sojourn_time < TARGET || bytes <= MAXPACKET {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    fn deque(
        &mut self,
        now: u64,
        pop: &mut dyn FnMut() -> Option<(Packet, u64)>,
        drops: &mut Vec<(usize, bool)>,
    ) -> Option<Packet> {
        let mut r = self.dodeque(now, pop());
        if self.dropping {
            if !r.1 {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                drops.push((r.0.unwrap().number, false));
                self.count += 1;
                r = self.dodeque(now, pop());
                if !r.1 {
                    self.dropping = false;
                } else {
                    self.drop_next = control_law(self.drop_next, self.count);
                }
            }
        } else if r.1 {
            drops.push((r.0.unwrap().number, false));
            r = self.dodeque(now, pop());
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && (now as i64) - (self.drop_next as i64) < 16 * INTERVAL as i64 {
                self.count = delta;
            }
            self.drop_next = control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.0
    }
}

/// One queue under CoDel, with a limit in packets that counts the packet being sent as well.
pub(crate) struct One {
    codel: CoDel,
    line: VecDeque<Packet>,
    bytes: u64,
    limit: usize,
    is_busy: bool,
}

impl One {
    pub(crate) fn new(limit: usize) -> Self {
        Self { codel: CoDel::default(), line: VecDeque::new(), bytes: 0, limit, is_busy: false }
    }
}

impl Discipline for One {
    fn enque(&mut self, _: u64, packet: Packet, drops: &mut Vec<(usize, bool)>) {
        if self.line.len() + usize::from(self.is_busy) >= self.limit {
            return drops.push((packet.number, true));
        }
        self.bytes += packet.bytes;
        self.line.push_back(packet);
    }

    fn deque(&mut self, now: u64, drops: &mut Vec<(usize, bool)>) -> Option<Packet> {
        let Self { codel, line, bytes, .. } = self;
        let mut pop = || {
            let packet = line.pop_front()?;
            *bytes -= packet.bytes;
            Some((packet, *bytes))
        };
        let next = codel.deque(now, &mut pop, drops);
        self.is_busy = next.is_some();
        next
    }
}

/// RFC 8290, section 4: one queue for each flow here, so that no hash is needed.
#[derive(Default)]
pub(crate) struct Flows {
    queues: BTreeMap<u32, (VecDeque<Packet>, CoDel, i64)>,
    new: Vec<u32>,
    old: Vec<u32>,
    bytes: u64,
    packets: usize,
    limit: usize,
    is_busy: bool,
    /// Which queue of the link's a flow is in: the one with the lower number loses first where two are as long.
    place: BTreeMap<u32, u64>,
}

const QUANTUM: i64 = 1_514;

impl Flows {
    pub(crate) fn new(limit: usize, place: BTreeMap<u32, u64>) -> Self {
        Self { limit, place, ..Self::default() }
    }
}

impl Discipline for Flows {
    fn enque(&mut self, _: u64, packet: Packet, drops: &mut Vec<(usize, bool)>) {
        self.bytes += packet.bytes;
        self.packets += 1;
        let queue = self.queues.entry(packet.flow).or_default();
        queue.0.push_back(packet);
        if !self.new.contains(&packet.flow) && !self.old.contains(&packet.flow) {
            queue.2 = QUANTUM;
            self.new.push(packet.flow);
        }
        while self.packets + usize::from(self.is_busy) > self.limit {
            let size = |flow: &u32| self.queues[flow].0.iter().map(|packet| packet.bytes).sum::<u64>();
            let most = self.queues.keys().map(size).max().unwrap();
            let fattest =
                self.queues.keys().copied().filter(|flow| size(flow) == most).min_by_key(|flow| self.place[flow]);
            let gone = self.queues.get_mut(&fattest.unwrap()).unwrap().0.pop_front().unwrap();
            self.bytes -= gone.bytes;
            self.packets -= 1;
            drops.push((gone.number, true));
        }
    }

    fn deque(&mut self, now: u64, drops: &mut Vec<(usize, bool)>) -> Option<Packet> {
        self.is_busy = false;
        loop {
            let is_new = !self.new.is_empty();
            let flow = *self.new.first().or(self.old.first())?;
            let (line, codel, credits) = self.queues.get_mut(&flow).unwrap();
            if *credits <= 0 {
                *credits += QUANTUM;
                (if is_new { &mut self.new } else { &mut self.old }).remove(0);
                self.old.push(flow);
                continue;
            }
            let (bytes, packets) = (&mut self.bytes, &mut self.packets);
            let mut pop = || {
                let packet = line.pop_front()?;
                *bytes -= packet.bytes;
                *packets -= 1;
                Some((packet, *bytes))
            };
            if let Some(packet) = codel.deque(now, &mut pop, drops) {
                *credits -= packet.bytes as i64;
                self.is_busy = true;
                return Some(packet);
            }
            if is_new {
                self.new.remove(0);
                self.old.push(flow);
            } else {
                self.old.remove(0);
            }
        }
    }
}

/// RFC 8033, appendix A, in floating point.
pub(crate) struct Pie {
    line: VecDeque<Packet>,
    bytes: u64,
    drop_prob: f64,
    current_qdelay: f64,
    qdelay_old: f64,
    burst_allowance: f64,
    accu_prob: f64,
    updates: u64,
}

const QDELAY_REF: f64 = 0.015;
const T_UPDATE: u64 = 15_000;
const MAX_BURST: f64 = 0.150;

impl Pie {
    pub(crate) fn new() -> Self {
        Self {
            line: VecDeque::new(),
            bytes: 0,
            drop_prob: 0.0,
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            burst_allowance: MAX_BURST,
            accu_prob: 0.0,
            updates: 0,
        }
    }

    /// Every T_UPDATE.
    fn calculate_drop_prob(&mut self, now: u64) {
        while (self.updates + 1) * T_UPDATE < now {
            self.updates += 1;
            let mut p = 0.125 * (self.current_qdelay - QDELAY_REF) + 1.25 * (self.current_qdelay - self.qdelay_old);
            p /= match self.drop_prob {
                prob if prob < 0.000_001 => 2048.0,
                prob if prob < 0.000_01 => 512.0,
                prob if prob < 0.000_1 => 128.0,
                prob if prob < 0.001 => 32.0,
                prob if prob < 0.01 => 8.0,
                prob if prob < 0.1 => 2.0,
                _ => 1.0,
            };
            if self.drop_prob >= 0.1 && p > 0.02 {
                p = 0.02;
            }
            self.drop_prob += p;
            if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
                self.drop_prob *= 0.98;
            }
            self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
            self.burst_allowance = (self.burst_allowance - 0.015).max(0.0);
            if self.burst_allowance < 1e-9 {
                self.burst_allowance = 0.0;
            }
            if self.drop_prob == 0.0 && self.current_qdelay < QDELAY_REF / 2.0 && self.qdelay_old < QDELAY_REF / 2.0 {
                self.burst_allowance = MAX_BURST;
            }
            self.qdelay_old = self.current_qdelay;
        }
    }

    fn drop_early(&mut self, number: usize) -> bool {
        if (self.qdelay_old < QDELAY_REF / 2.0 && self.drop_prob < 0.2) || self.bytes <= 2 * MAXPACKET {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        let word = ChanceSeed::new(SEED).wide(Purpose::Loss, [LINK, number as u32, 0, 5]);
        if self.accu_prob >= 8.5 || (word as f64 / 2f64.powi(64)) < self.drop_prob {
            self.accu_prob = 0.0;
            return true;
        }
        false
    }
}

impl Discipline for Pie {
    fn enque(&mut self, now: u64, packet: Packet, drops: &mut Vec<(usize, bool)>) {
        self.calculate_drop_prob(now);
        if self.burst_allowance == 0.0 && self.drop_early(packet.number) {
            return drops.push((packet.number, false));
        }
        self.bytes += packet.bytes;
        self.line.push_back(packet);
    }

    fn deque(&mut self, now: u64, _: &mut Vec<(usize, bool)>) -> Option<Packet> {
        self.calculate_drop_prob(now);
        let packet = self.line.pop_front()?;
        self.bytes -= packet.bytes;
        self.current_qdelay = if self.bytes == 0 { 0.0 } else { (now - packet.stamp) as f64 / 1e6 };
        Some(packet)
    }
}

//! The air between radios: who receives what is sent, and what becomes of it otherwise.
//!
//! The rules are those of the unit disk graph medium of Cooja (Contiki 2.7). A radio that a frame reaches either *locks on*
//! to it, if it is idle and undisturbed, or is *disturbed* until the frame ends. A radio that is locked on when a second
//! frame reaches it loses the first, and the second too: there is no capture effect. No time is known here; who drives the
//! medium says when a frame begins and ends.

use std::collections::BTreeMap;

use millpond_control::{ChanceSeed, Purpose};

use super::neighbours::{EVERYONE, Neighbours, Node};

/// What became of a frame at the node that it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was received.
    Received,
    /// Another frame reached the receiver's radio at the same time.
    Collided,
    /// The receiver was sending, or began to.
    Deaf,
    /// The link lost it.
    Faded,
}

impl Fate {
    /// One word for traces.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Collided => "collided",
            Self::Deaf => "deaf",
            Self::Faded => "faded",
        }
    }
}

/// A share of one in units of 2⁻³².
pub(crate) type Share = u64;

/// All of it.
pub(crate) const WHOLE: Share = 1 << 32;

/// What share of the frames a link delivers when nothing disturbs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// Evenly spaced quantiles of the ratio; between two it is linear.
    quantiles: Vec<Share>,
    /// Each link has a ratio of its own; else each frame.
    of_links: bool,
    /// The mean of the ratio.
    mean: Share,
    /// Links that have one whatever others have, each by its nodes, the lower one first.
    own: BTreeMap<[Node; 2], Share>,
    /// It is the mean everywhere.
    is_even: bool,
}

impl Delivery {
    /// Ratios with these quantiles, from the least to the greatest; one alone holds always.
    pub(crate) fn new(quantiles: Vec<Share>, of_links: bool) -> Self {
        let sums = quantiles.windows(2).map(|pair| pair.iter().sum::<Share>());
        let steps = quantiles.len().saturating_sub(1) as u64;
        let mean = match steps {
            0 => quantiles.first().copied().unwrap_or(WHOLE),
            _ => sums.sum::<Share>() / (2 * steps),
        };
        let is_even = !of_links || steps == 0;
        Self { quantiles, of_links, mean, own: BTreeMap::new(), is_even }
    }

    /// From now on the link between two nodes has this ratio.
    fn set(&mut self, [a, b]: [Node; 2], ratio: Share) {
        self.own.insert([a.min(b), a.max(b)], ratio);
        self.is_even = false;
    }

    /// Every frame.
    #[cfg(test)]
    pub(crate) fn perfect() -> Self {
        Self::new(vec![WHOLE], false)
    }

    /// The ratio of the link between two nodes, the same both ways.
    ///
    /// A ratio that is drawn anew for each frame, and then decides over that frame alone, loses frames exactly as its mean
    /// does; so it is its mean.
    fn ratio(&self, chance: ChanceSeed, a: Node, b: Node) -> Share {
        if self.is_even {
            return self.mean;
        }
        if let Some(ratio) = self.own.get(&[a.min(b), a.max(b)]) {
            return *ratio;
        }
        let steps = self.quantiles.len().saturating_sub(1) as u64;
        if !self.of_links || steps == 0 {
            return self.mean;
        }
        let word = u64::from(chance.at(Purpose::LossState, [a.min(b), a.max(b), 0, 0]).word());
        let at = word * steps;
        let (step, rest) = ((at >> 32) as usize, at & (WHOLE - 1));
        match self.quantiles.get(step..step + 2) {
            Some(&[low, high]) => low + ((high.saturating_sub(low) * rest) >> 32),
            _ => self.mean,
        }
    }
}

/// One radio.
#[derive(Clone, Copy)]
struct Radio {
    is_sending: bool,
    /// Frames in the air that reach it and that it is not locked on to.
    disturbed_by: u16,
    /// Frames in the air whose carrier it senses.
    sensed: u16,
    /// Whom it receives.
    locked_on: Option<Node>,
    /// Frames that it has sent.
    sent: u32,
    /// Whom the frame that it is sending is for, and what is to become of it there as far as one knows.
    to: Node,
    fate: Fate,
}

/// Radios and what is in the air between them.
pub(crate) struct Medium {
    neighbours: Neighbours,
    radios: Vec<Radio>,
    delivery: Delivery,
    chance: ChanceSeed,
    /// Of frames for everyone that are in the air: who sends it, who does not receive it, and why.
    missed: Vec<(Node, Node, Fate)>,
}

impl Medium {
    /// Radios in silence.
    pub(crate) fn new(nodes: usize, neighbours: Neighbours, delivery: Delivery, chance: ChanceSeed) -> Self {
        let radio = Radio {
            is_sending: false,
            disturbed_by: 0,
            sensed: 0,
            locked_on: None,
            sent: 0,
            to: 0,
            fate: Fate::Received,
        };
        Self { neighbours, radios: vec![radio; nodes], delivery, chance, missed: Vec::new() }
    }

    /// Who is within reach of whom.
    pub(crate) fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// From now on the link between two nodes has this delivery ratio.
    pub(crate) fn set_delivery(&mut self, between: [Node; 2], ratio: Share) {
        self.delivery.set(between, ratio);
    }

    /// Whether a radio is locked on to a frame.
    #[inline]
    pub(crate) fn is_receiving(&self, node: Node) -> bool {
        self.radios[node as usize].locked_on.is_some()
    }

    /// Whether a radio sends.
    #[inline]
    pub(crate) fn is_sending(&self, node: Node) -> bool {
        self.radios[node as usize].is_sending
    }

    /// Whether a radio senses a carrier.
    #[inline]
    pub(crate) fn is_busy(&self, node: Node) -> bool {
        self.radios[node as usize].sensed > 0
    }

    /// A radio that does not send begins to send a frame for another.
    pub(crate) fn begin(&mut self, from: Node, to: Node) {
        self.start::<false>(from, to);
    }

    /// A radio that does not send begins to send a frame for everyone.
    pub(crate) fn begin_broadcast(&mut self, from: Node) {
        self.start::<true>(from, EVERYONE);
    }

    fn start<const BROADCAST: bool>(&mut self, from: Node, to: Node) {
        self.interrupt(from, Fate::Deaf);
        let sender = &mut self.radios[from as usize];
        debug_assert!(!sender.is_sending, "a radio sends one frame at a time");
        sender.is_sending = true;
        sender.sent = sender.sent.wrapping_add(1);
        sender.to = to;
        // Unless it is found below, it is out of reach.
        sender.fate = Fate::Faded;
        let number = sender.sent;
        for place in 0..self.neighbours.of(from).len() {
            let neighbour = self.neighbours.of(from)[place];
            let radio = &mut self.radios[neighbour.node as usize];
            if neighbour.senses {
                radio.sensed += 1;
            }
            if !neighbour.disturbed {
                continue;
            }
            let fate = if !neighbour.hears {
                self.interrupt(neighbour.node, Fate::Collided);
                Fate::Faded
            } else if radio.disturbed_by > 0 {
                Fate::Collided
            } else if radio.is_sending {
                Fate::Deaf
            } else if radio.locked_on.is_some() {
                self.interrupt(neighbour.node, Fate::Collided);
                Fate::Collided
            } else if self.fades(from, neighbour.node, number) {
                Fate::Faded
            } else {
                Fate::Received
            };
            let radio = &mut self.radios[neighbour.node as usize];
            if fate == Fate::Received {
                radio.locked_on = Some(from);
            } else {
                radio.disturbed_by += 1;
            }
            if BROADCAST {
                if neighbour.hears && fate != Fate::Received {
                    self.missed.push((from, neighbour.node, fate));
                }
            } else if neighbour.node == to {
                self.radios[from as usize].fate = fate;
            }
        }
    }

    /// The frame that a radio sends ends: what became of it. Those that received it, whether it was for them or not, are added
    /// to `heard`.
    pub(crate) fn end(&mut self, from: Node, heard: &mut Vec<Node>) -> Fate {
        for neighbour in self.neighbours.of(from) {
            let radio = &mut self.radios[neighbour.node as usize];
            if neighbour.senses {
                radio.sensed -= 1;
            }
            if radio.locked_on == Some(from) {
                radio.locked_on = None;
                heard.push(neighbour.node);
            } else if neighbour.disturbed {
                radio.disturbed_by -= 1;
            }
        }
        let sender = &mut self.radios[from as usize];
        sender.is_sending = false;
        sender.fate
    }

    /// Takes out those in reach that did not receive the frame for everyone that this radio sent, and why.
    pub(crate) fn missed(&mut self, from: Node, missed: &mut Vec<(Node, Fate)>) {
        let own = self.missed.extract_if(.., |(sender, ..)| *sender == from);
        missed.extend(own.map(|(_, node, fate)| (node, fate)));
    }

    /// A radio loses what it was receiving; the rest of that frame only disturbs it.
    fn interrupt(&mut self, node: Node, why: Fate) {
        let radio = &mut self.radios[node as usize];
        let Some(from) = radio.locked_on.take() else { return };
        radio.disturbed_by += 1;
        let sender = &mut self.radios[from as usize];
        if sender.to == node {
            sender.fate = why;
        } else if sender.to == EVERYONE {
            self.missed.push((from, node, why));
        }
    }

    fn fades(&self, from: Node, to: Node, number: u32) -> bool {
        let ratio = self.delivery.ratio(self.chance, from, to);
        ratio < WHOLE && u64::from(self.chance.at(Purpose::Loss, [from, number, to, 0]).word()) >= ratio
    }
}

#[cfg(test)]
#[path = "medium_tests.rs"]
mod tests;

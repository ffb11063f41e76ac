//! The air between radios: who receives what is sent, and what becomes of it otherwise.
//!
//! The rules are those of the unit disk graph medium of Cooja (Contiki 2.7). A radio that a frame reaches either *locks on*
//! to it, if it is idle and undisturbed, or is *disturbed* until the frame ends. A radio that is locked on when a second
//! frame reaches it loses the first, and the second too: there is no capture effect. No time is known here; who drives the
//! medium says when a frame begins and ends.

use millpond_control::{ChanceSeed, Purpose};

use super::neighbours::{Neighbours, Node};

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
        Self { quantiles, of_links, mean }
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
        Self { neighbours, radios: vec![radio; nodes], delivery, chance }
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
            if neighbour.node == to {
                self.radios[from as usize].fate = fate;
            }
        }
    }

    /// The frame that a radio sends ends: what became of it. Whoever received it, whether it was for them or not, is added
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

    /// A radio loses what it was receiving; the rest of that frame only disturbs it.
    fn interrupt(&mut self, node: Node, why: Fate) {
        let radio = &mut self.radios[node as usize];
        let Some(sender) = radio.locked_on.take() else { return };
        radio.disturbed_by += 1;
        let sender = &mut self.radios[sender as usize];
        if sender.to == node {
            sender.fate = why;
        }
    }

    fn fades(&self, from: Node, to: Node, number: u32) -> bool {
        let ratio = self.delivery.ratio(self.chance, from, to);
        ratio < WHOLE && u64::from(self.chance.at(Purpose::Loss, [from, number, to, 0]).word()) >= ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::radio::neighbours::{Place, Reach};

    /// Nodes in a row at these metres, with the ranges of the source.
    fn row(metres: &[i64], delivery: Delivery) -> Medium {
        let places: Vec<Place> = metres.iter().map(|&x| Place { x: x * 1_000, y: 0 }).collect();
        let reach = Reach { transmission: 10_000, interference: 20_000, carrier: 7_900 };
        Medium::new(places.len(), Neighbours::new(&places, reach), delivery, ChanceSeed::new(1))
    }

    fn perfect(metres: &[i64]) -> Medium {
        row(metres, Delivery::perfect())
    }

    fn end(air: &mut Medium, from: Node) -> (Fate, Vec<Node>) {
        let mut heard = Vec::new();
        (air.end(from, &mut heard), heard)
    }

    #[test]
    fn an_undisturbed_frame_is_received_by_all_within_ten_metres() {
        let mut air = perfect(&[0, 10, 5, 11]);
        air.begin(0, 1);
        assert!(air.is_receiving(1) && air.is_receiving(2) && !air.is_receiving(3));
        // Only the one at 5 m senses the carrier.
        assert_eq!((air.is_busy(1), air.is_busy(2)), (false, true));
        assert_eq!(end(&mut air, 0), (Fate::Received, vec![1, 2]));
        assert!(!air.is_receiving(1) && !air.is_busy(2));
    }

    #[test]
    fn two_hidden_senders_destroy_both_frames_at_the_node_between_them() {
        let mut air = perfect(&[0, 10, 20]);
        air.begin(0, 1);
        assert!(!air.is_busy(2) && !air.is_receiving(2), "they do not know of each other");
        air.begin(2, 1);
        assert_eq!(end(&mut air, 0), (Fate::Collided, vec![]));
        assert_eq!(end(&mut air, 2), (Fate::Collided, vec![]));
        // Nothing is left of it.
        air.begin(0, 1);
        assert_eq!(end(&mut air, 0), (Fate::Received, vec![1]));
    }

    #[test]
    fn a_second_frame_destroys_the_first_even_if_it_ends_before_it() {
        let mut air = perfect(&[0, 10, 20]);
        air.begin(0, 1);
        air.begin(2, 1);
        assert_eq!(end(&mut air, 2).0, Fate::Collided);
        assert_eq!(end(&mut air, 0).0, Fate::Collided);
    }

    #[test]
    fn whoever_is_beyond_ten_metres_disturbs_and_at_twenty_does_not() {
        for (metres, expected) in [(29, Fate::Collided), (30, Fate::Received)] {
            let mut air = perfect(&[0, 10, metres, metres + 10]);
            air.begin(0, 1);
            air.begin(2, 3);
            assert_eq!(end(&mut air, 0).0, expected, "a disturber at {} m", metres - 10);
            assert_eq!(end(&mut air, 2).0, Fate::Received);
        }
    }

    #[test]
    fn a_disturbed_radio_cannot_lock_on_before_the_disturbance_ends() {
        let mut air = perfect(&[0, 10, 25, 35]);
        air.begin(2, 3);
        air.begin(0, 1);
        assert!(!air.is_receiving(1));
        assert_eq!(end(&mut air, 2).0, Fate::Received);
        // The rest of a frame whose begin was missed is of no use.
        assert!(!air.is_receiving(1));
        assert_eq!(end(&mut air, 0).0, Fate::Collided);
    }

    #[test]
    fn a_radio_that_sends_is_deaf_and_loses_what_it_was_receiving() {
        let mut air = perfect(&[0, 10, 20]);
        air.begin(0, 1);
        air.begin(1, 2);
        assert_eq!(end(&mut air, 0).0, Fate::Deaf);
        air.begin(0, 1);
        assert_eq!(end(&mut air, 0).0, Fate::Deaf);
        assert_eq!(end(&mut air, 1).0, Fate::Received);
    }

    #[test]
    fn a_radio_stays_disturbed_by_what_began_while_it_was_sending() {
        let mut air = perfect(&[0, 10, 20]);
        air.begin(1, 0);
        air.begin(2, 1);
        assert_eq!(end(&mut air, 1).0, Fate::Received);
        air.begin(0, 1);
        assert_eq!(end(&mut air, 0).0, Fate::Collided, "the frame of the third is still in the air");
        assert_eq!(end(&mut air, 2).0, Fate::Deaf);
    }

    #[test]
    fn a_frame_that_the_link_loses_disturbs_as_any_other() {
        let mut air = row(&[0, 10, 20], Delivery::new(vec![0], false));
        air.begin(0, 1);
        assert!(!air.is_receiving(1));
        air.delivery = Delivery::perfect();
        air.begin(2, 1);
        assert_eq!(end(&mut air, 0).0, Fate::Faded);
        assert_eq!(end(&mut air, 2).0, Fate::Collided);
    }

    #[test]
    fn ratios_drawn_for_each_frame_lose_as_their_mean() {
        let mut air = row(&[0, 10], Delivery::new(vec![WHOLE * 3 / 4, WHOLE], false));
        let n = 40_000;
        let mut received = 0;
        for _ in 0..n {
            air.begin(0, 1);
            received += u32::from(end(&mut air, 0).0 == Fate::Received);
        }
        let share = f64::from(received) / f64::from(n);
        assert!((share - 0.875).abs() < 4.0 * (0.875_f64 * 0.125 / f64::from(n)).sqrt(), "{share}");
    }

    #[test]
    fn ratios_of_links_hold_both_ways_and_have_the_mean_of_their_quantiles() {
        let quantiles = vec![WHOLE / 2, WHOLE * 3 / 4, WHOLE];
        let links = Delivery::new(quantiles, true);
        let chance = ChanceSeed::new(7);
        let n = 20_000;
        let mut sum = 0.0;
        for node in 0..n {
            let ratio = links.ratio(chance, node, node + 1);
            assert_eq!(ratio, links.ratio(chance, node + 1, node));
            assert!((WHOLE / 2..=WHOLE).contains(&ratio));
            sum += ratio as f64 / WHOLE as f64;
        }
        let mean = sum / f64::from(n);
        assert!((mean - 0.75).abs() < 4.0 * 0.1444 / f64::from(n).sqrt(), "{mean}");
        assert_eq!(links.mean, WHOLE * 3 / 4);
    }
}

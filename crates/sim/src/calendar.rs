//! Who of many acts next: one wake-up for each, earliest first, and of those that wake together the one with the lowest
//! number. That depends on nothing but who they are, so no other's doings change who of two goes first.
//!
//! It is a tree of times: each node knows the earliest of those below it. A note of who is first stands beside it and is looked
//! for anew only when the first one's wake-up has changed.

use millpond_control::Instant;

/// The number of one who acts.
pub(crate) type Actor = u32;

/// So many places have a node together: few enough for networks of a few links, enough for few levels under many clients.
const WIDTH: usize = 4;

type Node = [Instant; WIDTH];

/// The wake-ups of a fixed number of actors.
pub(crate) struct Calendar {
    /// The root first, then level by level. The last level has the actors in the order of their numbers, and behind them
    /// places that nobody has; each place above it has the earliest of the node below.
    nodes: Vec<Node>,
    /// The first node of the last level.
    actors: usize,
    earliest: Instant,
    /// Who of those that wake then has the lowest number.
    first: Actor,
}

impl Calendar {
    /// An event calendar on which nobody wakes.
    pub(crate) fn new(actors: usize) -> Self {
        let (mut nodes, mut above) = (1, 0);
        while nodes * WIDTH < actors {
            above += nodes;
            nodes *= WIDTH;
        }
        let used = actors.div_ceil(WIDTH).max(1);
        Self { nodes: vec![[Instant::NEVER; WIDTH]; above + used], actors: above, earliest: Instant::NEVER, first: 0 }
    }

    /// Sets when an actor wakes next.
    #[inline(always)]
    pub(crate) fn set(&mut self, actor: Actor, at: Instant) {
        if let [places] = &mut self.nodes[..] {
            // As on a path of two links: no tree to walk.
            places[actor as usize % WIDTH] = at;
            self.earliest = earliest(places);
            self.first = place(places, self.earliest) as Actor;
            return;
        }
        let (node, place) = (self.actors + actor as usize / WIDTH, actor as usize % WIDTH);
        if self.nodes[node][place] != at {
            self.change(actor, at, node, place);
        }
    }

    #[inline(never)]
    fn change(&mut self, actor: Actor, at: Instant, mut node: usize, mut place: usize) {
        let before = self.earliest;
        let mut here = at;
        loop {
            let places = &mut self.nodes[node];
            places[place] = here;
            here = earliest(places);
            if node == 0 {
                self.earliest = here;
                break;
            }
            (node, place) = ((node - 1) / WIDTH, (node - 1) % WIDTH);
            if self.nodes[node][place] == here {
                // As early as before: nothing further up has changed.
                break;
            }
        }
        if actor == self.first {
            self.look();
        } else if at < before || at == before && actor < self.first {
            self.first = actor;
        }
    }

    /// Looks for who is first.
    #[inline]
    fn look(&mut self) {
        let mut node = 0;
        loop {
            let place = place(&self.nodes[node], self.earliest);
            if node >= self.actors {
                self.first = ((node - self.actors) * WIDTH + place) as Actor;
                return;
            }
            node = node * WIDTH + place + 1;
        }
    }

    /// The earliest wake-up and whose it is; at [`Instant::NEVER`] everybody sleeps for good. It stays on the event calendar until it
    /// is set anew.
    #[inline]
    pub(crate) fn first(&self) -> (Instant, Actor) {
        (self.earliest, self.first)
    }
}

/// The earliest of a node.
#[inline]
fn earliest([a, b, c, d]: &Node) -> Instant {
    (*a).min(*b).min((*c).min(*d))
}

/// The first place of a node that has the earliest wake-up.
#[inline]
fn place([a, b, c, _]: &Node, earliest: Instant) -> usize {
    if *a == earliest {
        0
    } else if *b == earliest {
        1
    } else if *c == earliest {
        2
    } else {
        3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn next(calendar: &Calendar) -> Option<(Instant, Actor)> {
        Some(calendar.first()).filter(|(at, _)| *at != Instant::NEVER)
    }

    #[test]
    fn the_earliest_goes_first_and_equals_in_the_order_of_their_numbers() {
        let mut calendar = Calendar::new(5);
        assert_eq!(next(&calendar), None);
        calendar.set(4, at(7));
        calendar.set(1, at(7));
        calendar.set(0, at(9));
        assert_eq!(next(&calendar), Some((at(7), 1)));
        calendar.set(1, Instant::NEVER);
        assert_eq!(next(&calendar), Some((at(7), 4)));
        calendar.set(3, at(2));
        assert_eq!(next(&calendar), Some((at(2), 3)));
        calendar.set(3, Instant::NEVER);
        calendar.set(4, Instant::NEVER);
        assert_eq!(next(&calendar), Some((at(9), 0)));
        calendar.set(0, Instant::NEVER);
        assert_eq!(next(&calendar), None);
    }

    #[test]
    fn it_agrees_with_sorting() {
        let seed = millpond_control::ChanceSeed::new(3);
        for actors in [1_usize, 2, 3, 17, 64, 100] {
            let mut calendar = Calendar::new(actors);
            let mut plain: Vec<Option<u64>> = vec![None; actors];
            for step in 0..2_000_u32 {
                let draw = |k| seed.at(millpond_control::Purpose::Workload, [actors as u32, step, k, 0]);
                let actor = draw(0).pick(0, actors as u32 - 1);
                let time = u64::from(draw(1).pick(0, 50));
                plain[actor as usize] = Some(time);
                calendar.set(actor, at(time));
                let expected = (0..actors).filter_map(|a| plain[a].map(|time| (time, a))).min();
                assert_eq!(next(&calendar), expected.map(|(time, a)| (at(time), a as Actor)));
            }
        }
    }
}

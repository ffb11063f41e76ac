//! Who acts next: one wake-up per actor, earliest first.
//!
//! Actors (clients, server, links) keep their own queues and timers, so the agenda holds a single time for each. It is
//! a winner tree: changing one actor's time replays the matches on its way to the root, without allocation.

use millpond_control::Instant;

/// The number of an actor.
pub(crate) type Actor = u32;

/// When an actor wakes; of two that wake together, the one that was scheduled first goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wake {
    at: Instant,
    sequence: u64,
}

/// The wake-ups of a fixed number of actors.
pub(crate) struct Agenda {
    wakes: Vec<Wake>,
    /// `winners[1]` is the earliest of all; the children of `n` are `2n` and `2n + 1`; leaves are implied.
    winners: Vec<Actor>,
    leaves: usize,
    sequence: u64,
}

impl Agenda {
    /// An agenda on which nobody wakes.
    pub(crate) fn new(actors: usize) -> Self {
        let leaves = actors.next_power_of_two().max(2);
        let wakes = vec![Wake { at: Instant::NEVER, sequence: 0 }; leaves];
        let mut agenda = Self { wakes, winners: vec![0; leaves], leaves, sequence: 0 };
        for node in (1..leaves).rev() {
            agenda.winners[node] = agenda.left_of(node);
        }
        agenda
    }

    fn left_of(&self, node: usize) -> Actor {
        self.player(2 * node)
    }

    /// Who came out of the subtree `node`, a leaf or a match.
    #[inline]
    fn player(&self, node: usize) -> Actor {
        if node >= self.leaves { (node - self.leaves) as Actor } else { self.winners[node] }
    }

    /// Sets when an actor wakes next. Setting the same time again keeps its place among equals.
    #[inline]
    pub(crate) fn set(&mut self, actor: Actor, at: Instant) {
        if self.wakes[actor as usize].at == at {
            return;
        }
        self.sequence += 1;
        self.wakes[actor as usize] = Wake { at, sequence: self.sequence };
        let mut node = (self.leaves + actor as usize) / 2;
        while node >= 1 {
            let (left, right) = (self.player(2 * node), self.player(2 * node + 1));
            let winner = if self.wakes[right as usize] < self.wakes[left as usize] { right } else { left };
            let before = std::mem::replace(&mut self.winners[node], winner);
            if winner == before && winner != actor {
                // Lost this match as it did before: nobody further up has changed.
                break;
            }
            node /= 2;
        }
    }

    /// Marks an actor as asleep for good.
    #[inline]
    pub(crate) fn clear(&mut self, actor: Actor) {
        self.set(actor, Instant::NEVER);
    }

    /// The earliest wake-up, or `None` if everybody sleeps for good. It stays on the agenda until it is set anew.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Instant, Actor)> {
        let actor = self.winners[1];
        let at = self.wakes[actor as usize].at;
        (at != Instant::NEVER).then_some((at, actor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn the_earliest_goes_first_and_equals_keep_their_order() {
        let mut agenda = Agenda::new(5);
        assert_eq!(agenda.next(), None);
        agenda.set(4, at(7));
        agenda.set(1, at(7));
        agenda.set(0, at(9));
        assert_eq!(agenda.next(), Some((at(7), 4)));
        agenda.clear(4);
        assert_eq!(agenda.next(), Some((at(7), 1)));
        agenda.set(3, at(2));
        assert_eq!(agenda.next(), Some((at(2), 3)));
        agenda.clear(3);
        agenda.clear(1);
        assert_eq!(agenda.next(), Some((at(9), 0)));
        agenda.clear(0);
        assert_eq!(agenda.next(), None);
    }

    #[test]
    fn it_agrees_with_sorting() {
        let seed = millpond_control::ChanceSeed::new(3);
        for actors in [1_usize, 2, 3, 17, 64, 100] {
            let mut agenda = Agenda::new(actors);
            let mut plain: Vec<Option<(u64, u64)>> = vec![None; actors];
            for step in 0..2_000_u32 {
                let draw = |k| seed.at(millpond_control::Purpose::Workload, [actors as u32, step, k, 0]);
                let actor = draw(0).pick(0, actors as u32 - 1);
                let time = u64::from(draw(1).pick(0, 50));
                if plain[actor as usize].is_none_or(|(old, _)| old != time) {
                    plain[actor as usize] = Some((time, u64::from(step)));
                }
                agenda.set(actor, at(time));
                let expected = (0..actors).filter_map(|a| plain[a].map(|w| (w, a))).min();
                assert_eq!(agenda.next(), expected.map(|((time, _), a)| (at(time), a as Actor)));
            }
        }
    }
}

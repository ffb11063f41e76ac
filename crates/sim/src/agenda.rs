//! Who acts next: one wake-up per actor, earliest first.
//!
//! Actors (clients, server, links) keep their own queues and timers, so the agenda holds a single time for each. It is
//! a winner tree: changing one actor's time replays the matches on its way to the root, without allocation. The few who
//! change theirs at almost every step stand beside the tree, and play against its winner alone.

use millpond_control::Instant;

/// The number of an actor.
pub(crate) type Actor = u32;

/// So many stand beside the tree.
const APART: usize = 3;

/// When an actor wakes, as a number of which the least goes first: the time, and of two that wake together the rank. That
/// depends on nothing but who they are, so that no other node's doings change who of them goes first.
type Wake = u128;

const ASLEEP: Wake = wake(Instant::NEVER, 0);

const fn wake(at: Instant, rank: Rank) -> Wake {
    (at.as_micros() as u128) << RANK | rank as u128
}

const fn time(wake: Wake) -> Instant {
    Instant::from_micros((wake >> RANK) as u64)
}

/// The place of an actor among those that wake together: those apart come first.
type Rank = u32;

const RANK: u32 = Rank::BITS;

/// The wake-ups of a fixed number of actors.
pub(crate) struct Agenda {
    /// `matches[1]` is the earliest of all but those apart; the players of `n` are `2n` and `2n + 1`. Actors are the
    /// second half, in the order of their numbers.
    matches: Vec<Wake>,
    actors: usize,
    /// The wake-ups of those apart, and the number of the first of them. In the tree they sleep.
    apart: [Wake; APART],
    first_apart: Actor,
}

impl Agenda {
    /// An agenda on which nobody wakes. The actor `first_apart` and the two after it stand beside the tree.
    pub(crate) fn new(actors: usize, first_apart: Actor) -> Self {
        let actors = actors.max(1);
        Self { matches: vec![ASLEEP; 2 * actors], actors, apart: [ASLEEP; APART], first_apart }
    }

    /// Sets when an actor wakes next.
    #[inline]
    pub(crate) fn set(&mut self, actor: Actor, at: Instant) {
        let place = actor.wrapping_sub(self.first_apart);
        if let Some(apart) = self.apart.get_mut(place as usize) {
            *apart = wake(at, place);
            return;
        }
        let mut place = self.actors + actor as usize;
        let mut winner = wake(at, actor + APART as Rank);
        if self.matches[place] == winner {
            return;
        }
        self.matches[place] = winner;
        while place > 1 {
            winner = winner.min(self.matches[place ^ 1]);
            place /= 2;
            if self.matches[place] == winner {
                // Won by the same as before: nobody further up has changed.
                break;
            }
            self.matches[place] = winner;
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
        let earliest = self.apart.iter().fold(self.matches[1], |earliest, apart| earliest.min(*apart));
        let (at, rank) = (time(earliest), earliest as Rank);
        let actor = rank.checked_sub(APART as Rank).unwrap_or(rank.wrapping_add(self.first_apart));
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
    fn the_earliest_goes_first_and_equals_in_the_order_of_their_numbers() {
        let mut agenda = Agenda::new(8, 3);
        assert_eq!(agenda.next(), None);
        agenda.set(6, at(7));
        agenda.set(1, at(7));
        agenda.set(0, at(9));
        agenda.set(4, at(7));
        // Those apart come before all others.
        assert_eq!(agenda.next(), Some((at(7), 4)));
        agenda.clear(4);
        assert_eq!(agenda.next(), Some((at(7), 1)));
        agenda.clear(1);
        assert_eq!(agenda.next(), Some((at(7), 6)));
        agenda.set(2, at(2));
        assert_eq!(agenda.next(), Some((at(2), 2)));
        for actor in [2, 6, 0] {
            agenda.clear(actor);
        }
        assert_eq!(agenda.next(), None);
    }

    #[test]
    fn it_agrees_with_sorting() {
        let seed = millpond_control::ChanceSeed::new(3);
        for (actors, apart) in [(1_usize, 1), (2, 0), (3, 0), (17, 17), (64, 61), (100, 40)] {
            let mut agenda = Agenda::new(actors, apart);
            let mut plain: Vec<Option<u64>> = vec![None; actors];
            for step in 0..2_000_u32 {
                let draw = |k| seed.at(millpond_control::Purpose::Workload, [actors as u32, step, k, 0]);
                let actor = draw(0).pick(0, actors as u32 - 1);
                let time = u64::from(draw(1).pick(0, 50));
                plain[actor as usize] = Some(time);
                agenda.set(actor, at(time));
                let others = |actor: usize| !(apart..apart + APART as u32).contains(&(actor as u32));
                let expected = (0..actors).filter_map(|a| plain[a].map(|time| (time, others(a), a))).min();
                assert_eq!(agenda.next(), expected.map(|(time, _, a)| (at(time), a as Actor)));
            }
        }
    }
}

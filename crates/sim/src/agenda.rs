//! Who of many acts next: one wake-up for each, earliest first, and of those that wake together the one with the lowest
//! number. That depends on nothing but who they are, so no other's doings change who of two goes first.
//!
//! It is a winner tree: changing one wake-up replays the matches on its way to the root, without allocation.

use millpond_control::Instant;

/// The number of one who acts.
pub(crate) type Actor = u32;

/// When an actor wakes and who it is, as a number of which the least goes first.
type Wake = u128;

const ASLEEP: Wake = wake(Instant::NEVER, 0);

const fn wake(at: Instant, actor: Actor) -> Wake {
    (at.as_micros() as u128) << Actor::BITS | actor as u128
}

/// The wake-ups of a fixed number of actors.
pub(crate) struct Agenda {
    /// `matches[1]` is the earliest; the players of `n` are `2n` and `2n + 1`. Actors are the second half, in the order of
    /// their numbers.
    matches: Vec<Wake>,
    actors: usize,
}

impl Agenda {
    /// An agenda on which nobody wakes.
    pub(crate) fn new(actors: usize) -> Self {
        let actors = actors.max(1);
        Self { matches: vec![ASLEEP; 2 * actors], actors }
    }

    /// Sets when an actor wakes next.
    #[inline]
    pub(crate) fn set(&mut self, actor: Actor, at: Instant) {
        let mut place = self.actors + actor as usize;
        let mut winner = wake(at, actor);
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

    /// The earliest wake-up and whose it is; at [`Instant::NEVER`] everybody sleeps for good. It stays on the agenda until it
    /// is set anew.
    #[inline]
    pub(crate) fn first(&self) -> (Instant, Actor) {
        let earliest = self.matches[1];
        (Instant::from_micros((earliest >> Actor::BITS) as u64), earliest as Actor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn next(agenda: &Agenda) -> Option<(Instant, Actor)> {
        Some(agenda.first()).filter(|(at, _)| *at != Instant::NEVER)
    }

    #[test]
    fn the_earliest_goes_first_and_equals_in_the_order_of_their_numbers() {
        let mut agenda = Agenda::new(5);
        assert_eq!(next(&agenda), None);
        agenda.set(4, at(7));
        agenda.set(1, at(7));
        agenda.set(0, at(9));
        assert_eq!(next(&agenda), Some((at(7), 1)));
        agenda.clear(1);
        assert_eq!(next(&agenda), Some((at(7), 4)));
        agenda.set(3, at(2));
        assert_eq!(next(&agenda), Some((at(2), 3)));
        agenda.clear(3);
        agenda.clear(4);
        assert_eq!(next(&agenda), Some((at(9), 0)));
        agenda.clear(0);
        assert_eq!(next(&agenda), None);
    }

    #[test]
    fn it_agrees_with_sorting() {
        let seed = millpond_control::ChanceSeed::new(3);
        for actors in [1_usize, 2, 3, 17, 64, 100] {
            let mut agenda = Agenda::new(actors);
            let mut plain: Vec<Option<u64>> = vec![None; actors];
            for step in 0..2_000_u32 {
                let draw = |k| seed.at(millpond_control::Purpose::Workload, [actors as u32, step, k, 0]);
                let actor = draw(0).pick(0, actors as u32 - 1);
                let time = u64::from(draw(1).pick(0, 50));
                plain[actor as usize] = Some(time);
                agenda.set(actor, at(time));
                let expected = (0..actors).filter_map(|a| plain[a].map(|time| (time, a))).min();
                assert_eq!(next(&agenda), expected.map(|(time, a)| (at(time), a as Actor)));
            }
        }
    }
}

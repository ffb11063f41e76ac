//! Who of many acts next: one wake-up for each, earliest first, and of those that wake together the one with the lowest
//! number. That depends on nothing but who they are, so no other's doings change who of two goes first.
//!
//! It is a winner tree of times, with a note of who is first: changing one wake-up replays the matches on its way to the root, and
//! who wins there is looked for only when the first one's wake-up has changed.

use millpond_control::Instant;

/// The number of one who acts.
pub(crate) type Actor = u32;

/// The wake-ups of a fixed number of actors.
pub(crate) struct Agenda {
    /// `matches[1]` is the earliest; the players of `n` are `2n` and `2n + 1`, of which the left one wins if they are equal.
    /// Actors are the second half, in the order of their numbers; behind them are places that nobody has.
    matches: Vec<Instant>,
    /// Who wins at the root.
    first: Actor,
}

impl Agenda {
    /// An agenda on which nobody wakes.
    pub(crate) fn new(actors: usize) -> Self {
        Self { matches: vec![Instant::NEVER; 2 * actors.next_power_of_two()], first: 0 }
    }

    /// Sets when an actor wakes next.
    #[inline]
    pub(crate) fn set(&mut self, actor: Actor, at: Instant) {
        let mut place = self.matches.len() / 2 + actor as usize;
        if self.matches[place] == at {
            return;
        }
        let (earliest, first) = (self.matches[1], self.first);
        self.matches[place] = at;
        let mut winner = at;
        while place > 1 {
            winner = winner.min(self.matches[place ^ 1]);
            place /= 2;
            if self.matches[place] == winner {
                // Won by the same time as before: nobody further up has changed.
                break;
            }
            self.matches[place] = winner;
        }
        if actor == first {
            self.look();
        } else if (at, actor) < (earliest, first) {
            self.first = actor;
        }
    }

    /// Looks for who wins at the root.
    #[inline]
    fn look(&mut self) {
        let (earliest, actors) = (self.matches[1], self.matches.len() / 2);
        let mut place = 1;
        while place < actors {
            place = 2 * place + usize::from(self.matches[2 * place] != earliest);
        }
        self.first = (place - actors) as Actor;
    }

    /// The earliest wake-up and whose it is; at [`Instant::NEVER`] everybody sleeps for good. It stays on the agenda until it
    /// is set anew.
    #[inline]
    pub(crate) fn first(&self) -> (Instant, Actor) {
        (self.matches[1], self.first)
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
        agenda.set(1, Instant::NEVER);
        assert_eq!(next(&agenda), Some((at(7), 4)));
        agenda.set(3, at(2));
        assert_eq!(next(&agenda), Some((at(2), 3)));
        agenda.set(3, Instant::NEVER);
        agenda.set(4, Instant::NEVER);
        assert_eq!(next(&agenda), Some((at(9), 0)));
        agenda.set(0, Instant::NEVER);
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

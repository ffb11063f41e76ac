//! Which of the packets that were named wait in a link's queue.

use std::{collections::HashMap, hash::Hash};

use millpond_control::Instant;

use crate::Link;

/// The names of packets that were handed to one link. Its owner asks whether a packet of the same name still waits in the
/// queue, the packet in service included, before it hands over another one.
///
/// Memory holds at most twice as many names as ever waited at once, and a few more.
#[derive(Clone, Debug)]
pub struct QueuedNames<K> {
    /// The link's number of the latest packet of each name.
    numbers: HashMap<K, u64>,
    /// Names that are known when those that wait no more are cleared away next.
    clear_at: usize,
}

/// As few names are not worth clearing away.
const FEW: usize = 64;

impl<K> Default for QueuedNames<K> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), clear_at: FEW }
    }
}

impl<K: Hash + Eq> QueuedNames<K> {
    /// Whether a packet of this name waits in the link's queue at `now`.
    pub fn waits<P>(&self, link: &mut Link<P>, now: Instant, name: &K) -> bool {
        let number = self.numbers.get(name);
        number.is_some_and(|number| link.oldest_waiting(now).is_some_and(|oldest| *number >= oldest))
    }

    /// The link has taken a packet of this name at `now`: the last one that it took.
    pub fn took<P>(&mut self, link: &mut Link<P>, now: Instant, name: K) {
        let Some(number) = link.counters().offered.packets.checked_sub(1) else { return };
        self.numbers.insert(name, number);
        if self.numbers.len() > self.clear_at {
            let oldest = link.oldest_waiting(now).unwrap_or(u64::MAX);
            self.numbers.retain(|_, number| *number >= oldest);
            self.clear_at = FEW.max(2 * self.numbers.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_control::{ChanceSeed, Span};

    use super::*;
    use crate::{Config, InFlight, Limit, Rate};

    /// A byte a millisecond.
    fn link() -> Link<()> {
        let config = Config::plain(Rate::BitsPerSecond(8_000), Span::from_millis(500), Limit::Packets(1_000));
        Link::new(&config, ChanceSeed::new(1), 0).unwrap()
    }

    fn at(millis: u64) -> Instant {
        Instant::from_micros(1_000 * millis)
    }

    #[test]
    fn a_packet_waits_until_its_last_bit_is_out() {
        let (mut link, mut names) = (link(), QueuedNames::default());
        for name in ["first", "second"] {
            assert!(!names.waits(&mut link, at(0), &name));
            link.offer(at(0), 100, ()).unwrap();
            names.took(&mut link, at(0), name);
        }
        let mut waiting = |millis| ["first", "second"].map(|name| names.waits(&mut link, at(millis), &name));
        assert_eq!(waiting(99), [true, true]);
        // It is in the air for half a second more, and in nobody's queue.
        assert_eq!(waiting(100), [false, true]);
        assert_eq!(waiting(199), [false, true]);
        assert_eq!(waiting(200), [false, false]);
    }

    #[test]
    fn an_outage_keeps_it_waiting_and_a_faster_link_lets_it_go_sooner() {
        let (mut link, mut names) = (link(), QueuedNames::default());
        link.offer(at(0), 100, ()).unwrap();
        names.took(&mut link, at(0), "it");
        link.pause(at(50), InFlight::Delayed);
        assert!(names.waits(&mut link, at(10_000), &"it"));
        link.resume(at(10_000));
        link.set_rate(at(10_000), Rate::BitsPerSecond(80_000)).unwrap();
        assert!(names.waits(&mut link, at(10_004), &"it"));
        assert!(!names.waits(&mut link, at(10_005), &"it"));
    }

    #[test]
    fn names_of_what_has_left_are_forgotten() {
        let (mut link, mut names) = (link(), QueuedNames::default());
        for name in 0..10_000_u64 {
            link.offer(at(10 * name), 1, ()).unwrap();
            names.took(&mut link, at(10 * name), name);
            assert!(names.numbers.len() <= FEW + 1, "{} names of one packet", names.numbers.len());
        }
    }
}

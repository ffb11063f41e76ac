//! The queue before a path.

use core::time::Duration;

use crate::quota::{FairQueue, Shares, Source, Usage};

/// Requests that are asked over one path: so many at a time, the others wait for their turns. Networks of those who ask take turns, and
/// none has more than three quarters of the queue; unvalidated addresses share a quarter.
#[derive(Debug)]
pub struct Queue<W> {
    at_a_time: usize,
    under_way: usize,
    waiting: FairQueue<(Source, W)>,
    usage: Usage,
    shares: Shares,
    /// How long one request takes, lately, in microseconds.
    takes: u64,
}

/// Why there is no room in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// It is empty in so many seconds.
    Full {
        /// Seconds, at least one.
        again_in: u32,
    },
    /// Who asks may have forged its address, and too many such wait.
    Unvalidated,
}

/// Before anything was measured a request is taken to need so long: a round trip of NB-IoT with its access.
const FIRST_TAKES: u64 = 2_000_000;
/// No request counts for more, and nobody is sent away for longer.
const LONGEST: u64 = 3_600;

const MICROS: u64 = 1_000_000;

impl<W> Queue<W> {
    /// An empty one before a path that takes so many requests at a time.
    #[must_use]
    pub fn new(at_a_time: usize, most_waiting: usize) -> Self {
        Self {
            at_a_time,
            under_way: 0,
            waiting: FairQueue::default(),
            usage: Usage::new(),
            shares: Shares::of_places(most_waiting.max(at_a_time)),
            takes: FIRST_TAKES,
        }
    }

    /// How many wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.usage.all()
    }

    /// One more is to be asked. Gives it back if it is its turn at once; otherwise it waits.
    ///
    /// # Errors
    /// There is no room for it, and why.
    pub fn take(&mut self, source: Source, who: W) -> Result<Option<W>, NoRoom> {
        if self.under_way < self.at_a_time && self.waiting.is_empty() {
            self.under_way = self.under_way.saturating_add(1);
            return Ok(Some(who));
        }
        let full = self.usage.full(&self.shares, source, 1);
        // Shares are none of a queue in which nobody waits.
        if self.waiting() > 0 && full.is_unvalidated() {
            return Err(NoRoom::Unvalidated);
        }
        if self.waiting() > 0 && (full.all || full.network) {
            return Err(NoRoom::Full { again_in: self.drains_in() });
        }
        self.usage.add(source, 1);
        self.waiting.push(source.network, (source, who));
        Ok(None)
    }

    /// Those of a network that are gone wait no more.
    pub fn leave(&mut self, network: u64, is_gone: impl Fn(&W) -> bool) {
        let Self { waiting, usage, .. } = self;
        waiting.leave(network, |(_, who)| is_gone(who), |(source, _)| usage.remove(source, 1));
    }

    /// A turn is over, and took so long if it was used. Gives whose turn it is now.
    pub fn done(&mut self, took: Option<Duration>) -> Option<W> {
        if let Some(took) = took {
            let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).min(LONGEST.saturating_mul(MICROS));
            // As TCP smooths round trips (RFC 6298).
            self.takes = self.takes.saturating_sub(self.takes / 8).saturating_add(took / 8);
        }
        match self.waiting.pop() {
            Some((source, who)) => {
                self.usage.remove(source, 1);
                Some(who)
            }
            None => {
                self.under_way = self.under_way.saturating_sub(1);
                None
            }
        }
    }

    /// Seconds until those that wait are answered, if they take as long as those before.
    fn drains_in(&self) -> u32 {
        let requests = u64::try_from(self.waiting()).unwrap_or(u64::MAX);
        let at_a_time = u64::try_from(self.at_a_time).unwrap_or(u64::MAX).max(1);
        let seconds = self.takes.saturating_mul(requests).div_ceil(at_a_time.saturating_mul(MICROS));
        u32::try_from(seconds.clamp(1, LONGEST)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const fn of(network: u64) -> Source {
        Source::validated(network)
    }

    fn take(queue: &mut Queue<u64>, source: Source) -> Result<Option<u64>, NoRoom> {
        queue.take(source, source.network)
    }

    #[test]
    fn a_full_queue_says_when_it_will_be_empty() {
        let mut queue = Queue::new(2, 4);
        for _ in 0..40 {
            assert_eq!(take(&mut queue, of(1)), Ok(Some(1)));
            assert_eq!(queue.done(Some(Duration::from_secs(4))), None);
        }
        for network in [1, 2] {
            assert_eq!(take(&mut queue, of(network)), Ok(Some(network)), "two at a time");
        }
        for network in [1, 1, 1, 2] {
            assert_eq!(take(&mut queue, of(network)), Ok(None));
        }
        assert_eq!(take(&mut queue, of(3)), Err(NoRoom::Full { again_in: 8 }), "four of four seconds, two at a time");
        let order: Vec<_> = core::iter::from_fn(|| queue.done(None)).collect();
        assert_eq!(order, [1, 2, 1, 1]);
        assert_eq!((queue.done(None), queue.waiting(), queue.under_way), (None, 0, 0));
    }

    #[test]
    fn no_network_has_all_of_it_and_unvalidated_addresses_have_a_quarter() {
        let mut queue = Queue::new(1, 4);
        assert_eq!(take(&mut queue, of(1)), Ok(Some(1)));
        assert_eq!(take(&mut queue, Source::unvalidated(2)), Ok(None));
        assert_eq!(take(&mut queue, Source::unvalidated(3)), Err(NoRoom::Unvalidated));
        assert_eq!((take(&mut queue, of(2)), take(&mut queue, of(2))), (Ok(None), Ok(None)));
        assert_eq!(take(&mut queue, of(2)), Err(NoRoom::Full { again_in: 6 }), "three quarters are its network's");
        assert_eq!(take(&mut queue, of(3)), Ok(None));
        assert_eq!(queue.waiting(), 4);
    }

    #[test]
    fn who_stops_waiting_leaves_room() {
        let mut queue = Queue::new(1, 2);
        assert_eq!(take(&mut queue, of(1)), Ok(Some(1)));
        assert_eq!((take(&mut queue, of(2)), take(&mut queue, of(3))), (Ok(None), Ok(None)));
        assert!(take(&mut queue, of(4)).is_err());
        queue.leave(2, |who| *who == 2);
        assert_eq!((queue.waiting(), take(&mut queue, of(4))), (1, Ok(None)));
        assert_eq!((queue.done(None), queue.done(None), queue.done(None)), (Some(3), Some(4), None));
    }
}

//! Equal requests that are open together.

use alloc::collections::{BTreeMap, VecDeque};

/// Requests that are asked for, and for each those that wait for its answer.
#[derive(Debug)]
pub struct Flights<K, W> {
    flights: BTreeMap<K, VecDeque<W>>,
}

impl<K, W> Default for Flights<K, W> {
    fn default() -> Self {
        Self { flights: BTreeMap::new() }
    }
}

impl<K: Ord, W> Flights<K, W> {
    /// How many different requests are asked for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flights.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// One more wants the answer to this. Gives back who is to ask for it, as nobody does; if somebody does this one waits. Those that
    /// are gone meanwhile are forgotten before there is more room for others.
    pub fn join(&mut self, key: K, who: W, is_gone: impl Fn(&W) -> bool) -> Option<W> {
        let Some(waiting) = self.flights.get_mut(&key) else {
            self.flights.insert(key, VecDeque::new());
            return Some(who);
        };
        if waiting.len() == waiting.capacity() {
            waiting.retain(|who| !is_gone(who));
            waiting.reserve(waiting.len().saturating_add(1));
        }
        waiting.push_back(who);
        None
    }

    /// The answer is there: gives those that wait for it, in the order in which they came.
    pub fn end(&mut self, key: &K) -> VecDeque<W> {
        self.flights.remove(key).unwrap_or_default()
    }

    /// Who asked stops to, without an answer. Gives who is to ask now; who does not want to stops as well.
    pub fn pass(&mut self, key: &K) -> Option<W> {
        let next = self.flights.get_mut(key)?.pop_front();
        if next.is_none() {
            self.flights.remove(key);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(flights: &mut Flights<&'static str, u32>, key: &'static str, who: u32) -> Option<u32> {
        flights.join(key, who, |_| false)
    }

    #[test]
    fn one_asks_and_all_that_come_meanwhile_get_its_answer() {
        let mut flights = Flights::default();
        assert_eq!(join(&mut flights, "a", 1), Some(1));
        assert_eq!(
            (join(&mut flights, "a", 2), join(&mut flights, "b", 3), join(&mut flights, "a", 4)),
            (None, Some(3), None)
        );
        assert_eq!(flights.len(), 2);
        assert!(flights.end(&"a").into_iter().eq([2, 4]));
        assert_eq!(join(&mut flights, "a", 5), Some(5), "who comes behind the answer asks anew");
        assert!(flights.end(&"a").is_empty() && flights.end(&"b").is_empty() && flights.is_empty());
    }

    #[test]
    fn who_waits_asks_where_who_asked_stops() {
        let mut flights = Flights::default();
        join(&mut flights, "a", 1);
        join(&mut flights, "a", 2);
        assert_eq!(flights.pass(&"a"), Some(2));
        assert_eq!(join(&mut flights, "a", 3), None);
        assert_eq!((flights.pass(&"a"), flights.pass(&"a"), flights.is_empty()), (Some(3), None, true));
    }
    #[test]
    fn who_is_gone_takes_no_room() {
        let mut flights = Flights::default();
        flights.join("a", 0, |_| true);
        for who in 0..10_000 {
            flights.join("a", who, |_| true);
        }
        assert!(flights.end(&"a").capacity() < 100);
    }
}

use alloc::collections::{BTreeMap, VecDeque};

/// A queue with a place for each network: the networks of those who wait take turns, and in each they go in the order in which they came.
/// Who asks for much waits for itself, and not everybody behind it.
#[derive(Debug)]
pub struct FairQueue<W> {
    /// Whose turn is next, of the networks that wait.
    turns: VecDeque<u64>,
    networks: BTreeMap<u64, VecDeque<W>>,
}

impl<W> Default for FairQueue<W> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), networks: BTreeMap::new() }
    }
}

impl<W> FairQueue<W> {
    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// One more of this network waits.
    pub fn push(&mut self, network: u64, who: W) {
        let waiting = self.networks.entry(network).or_default();
        if waiting.is_empty() {
            self.turns.push_back(network);
        }
        waiting.push_back(who);
    }

    /// Whose turn it is.
    #[must_use]
    pub fn next(&self) -> Option<&W> {
        self.networks.get(self.turns.front()?)?.front()
    }

    /// It has its turn, and its network has the next one behind all others.
    pub fn pop(&mut self) -> Option<W> {
        let network = self.turns.pop_front()?;
        let waiting = self.networks.get_mut(&network)?;
        let who = waiting.pop_front();
        match waiting.is_empty() {
            true => drop(self.networks.remove(&network)),
            false => self.turns.push_back(network),
        }
        who
    }

    /// Those of a network that are gone leave. Calls this for each of them.
    pub fn leave(&mut self, network: u64, is_gone: impl Fn(&W) -> bool, mut left: impl FnMut(W)) {
        let Some(waiting) = self.networks.get_mut(&network) else { return };
        let (gone, rest): (VecDeque<W>, _) = core::mem::take(waiting).into_iter().partition(|who| is_gone(who));
        *waiting = rest;
        if waiting.is_empty() {
            self.networks.remove(&network);
            self.turns.retain(|other| *other != network);
        }
        gone.into_iter().for_each(&mut left);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn networks_take_turns_and_who_is_gone_has_none() {
        let mut queue = FairQueue::default();
        for (network, who) in [(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (2, 21)] {
            queue.push(network, who);
        }
        let mut gone = vec![];
        queue.leave(3, |_| true, |who| gone.push(who));
        queue.leave(1, |who| *who == 11, |who| gone.push(who));
        queue.leave(9, |_| true, |who| gone.push(who));
        assert_eq!(gone, [30, 11]);
        assert_eq!(queue.next(), Some(&10));
        let order: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [10, 20, 12, 21]);
        assert!(queue.is_empty() && queue.networks.is_empty() && queue.next().is_none());
    }
}

//! Answers of ours that wait for their leisure time, and whose they are. When there is no room for another, whoever has most
//! of them goes without one: a network first, then an address of it. What goes to strangers gives way before the rest.

use alloc::{collections::VecDeque, vec::Vec};
use core::hash::Hash;

use hashbrown::{HashTable, hash_table::Entry};
use millpond_control::Instant;

use crate::{
    block::Whose,
    endpoint::{Identities, RequestId},
};

/// Answers that may wait.
const MOST: usize = 1_024;

/// An answer that waits for its time.
#[derive(Debug)]
pub(in crate::endpoint) struct Answer<A> {
    pub(in crate::endpoint) due: Instant,
    pub(in crate::endpoint) to: A,
    pub(in crate::endpoint) whose: Whose,
    pub(in crate::endpoint) request: RequestId,
    /// The whole message without its ID.
    pub(in crate::endpoint) message: Vec<u8>,
}

/// All that wait.
#[derive(Debug)]
pub(in crate::endpoint) struct Leisurely<A> {
    /// In the order in which they are to leave.
    answers: VecDeque<Answer<A>>,
    /// How many there are of each network, and of each address. Strangers of a network are one of their own.
    networks: Tally<Whose>,
    addresses: Tally<(A, Whose)>,
}

/// How many there are of each of something.
#[derive(Debug)]
struct Tally<K>(HashTable<(K, u16)>);

impl<K: Copy + Eq + Hash> Tally<K> {
    const fn new() -> Self {
        Self(HashTable::new())
    }

    fn of(&self, key: K, identities: &Identities) -> u16 {
        self.0.find(identities.hash(&key), |of| of.0 == key).map_or(0, |of| of.1)
    }

    fn most(&self, is_meant: impl Fn(&K) -> bool) -> Option<u16> {
        self.0.iter().filter(|of| is_meant(&of.0)).map(|of| of.1).max()
    }

    fn add(&mut self, key: K, identities: &Identities) {
        match self.0.entry(identities.hash(&key), |of| of.0 == key, |of| identities.hash(&of.0)) {
            Entry::Occupied(mut of) => of.get_mut().1 = of.get().1.saturating_add(1),
            Entry::Vacant(place) => drop(place.insert((key, 1))),
        }
    }

    fn take(&mut self, key: K, identities: &Identities) {
        if let Ok(mut of) = self.0.find_entry(identities.hash(&key), |of| of.0 == key) {
            of.get_mut().1 = of.get().1.saturating_sub(1);
            if of.get().1 == 0 {
                of.remove();
            }
        }
    }
}

impl<A: Copy + Eq + Hash> Leisurely<A> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self { answers: VecDeque::new(), networks: Tally::new(), addresses: Tally::new() }
    }

    /// When the first one is to leave.
    pub(in crate::endpoint) fn first_due(&self) -> Option<Instant> {
        self.answers.front().map(|answer| answer.due)
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        let message = |sum: usize, answer: &Answer<A>| sum.saturating_add(answer.message.capacity());
        self.answers
            .iter()
            .fold(0, message)
            .saturating_add(self.answers.capacity().saturating_mul(size_of::<Answer<A>>()))
            .saturating_add(self.networks.0.allocation_size())
            .saturating_add(self.addresses.0.allocation_size())
    }

    /// The most that one more adds to the [memory](Self::memory), beside its message.
    pub(in crate::endpoint) const fn growth() -> usize {
        let counted = size_of::<(Whose, u16)>().saturating_add(size_of::<((A, Whose), u16)>());
        size_of::<Answer<A>>().saturating_add(counted).saturating_mul(3)
    }

    /// One more waits, if there is room for it or can be made.
    pub(in crate::endpoint) fn add(&mut self, answer: Answer<A>, identities: &Identities) {
        let Answer { due, to, whose, .. } = answer;
        if self.answers.len() >= MOST && !self.make_room(to, whose, identities) {
            return;
        }
        let place = self.answers.partition_point(|other| other.due <= due);
        self.answers.insert(place, answer);
        self.networks.add(whose, identities);
        self.addresses.add((to, whose), identities);
    }

    /// The first one leaves.
    pub(in crate::endpoint) fn pop(&mut self, identities: &Identities) -> Option<Answer<A>> {
        (!self.answers.is_empty()).then(|| self.remove(0, identities)).flatten()
    }

    /// One gives way to another one, unless those whose that is would then have most.
    fn make_room(&mut self, to: A, whose: Whose, identities: &Identities) -> bool {
        let (is_known, most) = match self.networks.most(|of| !of.is_known) {
            Some(most) => (false, most),
            None if whose.is_known => (true, self.networks.most(|_| true).unwrap_or_default()),
            None => return false,
        };
        let in_network = self.networks.of(whose, identities);
        let is_worth_more = whose.is_known && !is_known;
        let place = if is_worth_more || in_network.saturating_add(1) < most {
            // Of several that have as many the one whose answer would leave last: chance decides, and nobody's number.
            let is_meant = |of: Whose| of.is_known == is_known && self.networks.of(of, identities) == most;
            let last = self.answers.iter().rfind(|answer| is_meant(answer.whose));
            last.and_then(|last| self.last_of_the_largest(last.whose))
        } else {
            let own = self.addresses.of((to, whose), identities).saturating_add(1);
            if own >= self.addresses.most(|of| of.1 == whose).unwrap_or_default() {
                return false;
            }
            self.last_of_the_largest(whose)
        };
        place.and_then(|place| self.remove(place, identities)).is_some()
    }

    /// The answer that would leave last, of the address in this network that has most.
    fn last_of_the_largest(&self, network: Whose) -> Option<usize> {
        let of_it = self.addresses.0.iter().filter(|of| of.0.1 == network);
        let ((largest, _), _) = of_it.max_by_key(|of| of.1)?;
        self.answers.iter().rposition(|answer| answer.whose == network && answer.to == *largest)
    }

    fn remove(&mut self, place: usize, identities: &Identities) -> Option<Answer<A>> {
        let answer = self.answers.remove(place)?;
        self.networks.take(answer.whose, identities);
        self.addresses.take((answer.to, answer.whose), identities);
        Some(answer)
    }
}

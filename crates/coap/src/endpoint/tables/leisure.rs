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
    networks: HashTable<(Whose, u16)>,
    addresses: HashTable<(A, Whose, u16)>,
}

impl<A: Copy + Eq + Hash> Leisurely<A> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self { answers: VecDeque::new(), networks: HashTable::new(), addresses: HashTable::new() }
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
            .saturating_add(self.networks.allocation_size())
            .saturating_add(self.addresses.allocation_size())
    }

    /// The most that one more adds to the [memory](Self::memory), beside its message.
    pub(in crate::endpoint) const fn growth() -> usize {
        let counted = size_of::<(Whose, u16)>().saturating_add(size_of::<(A, Whose, u16)>());
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
        let hash = |of: &(Whose, u16)| identities.hash(&of.0);
        match self.networks.entry(identities.hash(&whose), |of| of.0 == whose, hash) {
            Entry::Occupied(mut of) => of.get_mut().1 = of.get().1.saturating_add(1),
            Entry::Vacant(place) => drop(place.insert((whose, 1))),
        }
        let hash = |of: &(A, Whose, u16)| identities.hash(&(of.0, of.1));
        match self.addresses.entry(identities.hash(&(to, whose)), |of| (of.0, of.1) == (to, whose), hash) {
            Entry::Occupied(mut of) => of.get_mut().2 = of.get().2.saturating_add(1),
            Entry::Vacant(place) => drop(place.insert((to, whose, 1))),
        }
    }

    /// The first one leaves.
    pub(in crate::endpoint) fn pop(&mut self, identities: &Identities) -> Option<Answer<A>> {
        (!self.answers.is_empty()).then(|| self.remove(0, identities)).flatten()
    }

    /// One gives way to another one, unless those whose that is would then have most.
    fn make_room(&mut self, to: A, whose: Whose, identities: &Identities) -> bool {
        let in_network = self.networks.find(identities.hash(&whose), |of| of.0 == whose).map_or(0, |of| of.1);
        let strangers = self.networks.iter().filter(|of| !of.0.is_known).map(|of| of.1).max();
        let (is_known, most) = match strangers {
            Some(most) => (false, most),
            None if whose.is_known => (true, self.networks.iter().map(|of| of.1).max().unwrap_or_default()),
            None => return false,
        };
        let is_worth_more = whose.is_known && !is_known;
        let place = if is_worth_more || in_network.saturating_add(1) < most {
            // Of several that have as many the one whose answer would leave last: chance decides, and nobody's number.
            let is_meant = |of: &Whose| {
                of.is_known == is_known
                    && self.networks.find(identities.hash(of), |other| other.0 == *of).is_some_and(|of| of.1 == most)
            };
            let last = self.answers.iter().rfind(|answer| is_meant(&answer.whose));
            last.and_then(|last| self.last_of_the_largest(last.whose))
        } else {
            let own = self.addresses.find(identities.hash(&(to, whose)), |of| (of.0, of.1) == (to, whose));
            let own = own.map_or(0, |of| of.2).saturating_add(1);
            let most = self.addresses.iter().filter(|of| of.1 == whose).map(|of| of.2).max().unwrap_or_default();
            if own >= most {
                return false;
            }
            self.last_of_the_largest(whose)
        };
        place.and_then(|place| self.remove(place, identities)).is_some()
    }

    /// The answer that would leave last, of the address in this network that has most.
    fn last_of_the_largest(&self, network: Whose) -> Option<usize> {
        let of_it = self.addresses.iter().filter(|of| of.1 == network);
        let (largest, ..) = of_it.max_by_key(|of| of.2)?;
        self.answers.iter().rposition(|answer| answer.whose == network && answer.to == *largest)
    }

    fn remove(&mut self, place: usize, identities: &Identities) -> Option<Answer<A>> {
        let answer = self.answers.remove(place)?;
        let (to, whose) = (answer.to, answer.whose);
        if let Ok(mut of) = self.networks.find_entry(identities.hash(&whose), |of| of.0 == whose) {
            of.get_mut().1 = of.get().1.saturating_sub(1);
            if of.get().1 == 0 {
                of.remove();
            }
        }
        let hash = identities.hash(&(to, whose));
        if let Ok(mut of) = self.addresses.find_entry(hash, |of| (of.0, of.1) == (to, whose)) {
            of.get_mut().2 = of.get().2.saturating_sub(1);
            if of.get().2 == 0 {
                of.remove();
            }
        }
        Some(answer)
    }
}

//! Responses of ours that wait for their leisure time, and whose they are. When there is no room for another, a peer that has most
//! of them goes without one: a network first, then an address of it. What goes to unvalidated peers gives way before the rest.

use alloc::{collections::VecDeque, vec::Vec};
use core::hash::Hash;

use millpond_control::Instant;

use crate::{
    endpoint::{IdGenerator, RequestId},
    quota::{Source, Tally},
};

/// Responses that may wait.
const MOST: usize = 1_024;

/// A response that waits for its time.
#[derive(Debug)]
pub(in crate::endpoint) struct DelayedResponse<A> {
    pub(in crate::endpoint) due: Instant,
    pub(in crate::endpoint) to: A,
    pub(in crate::endpoint) source: Source,
    pub(in crate::endpoint) request: RequestId,
    /// The whole message without its ID.
    pub(in crate::endpoint) message: Vec<u8>,
}

/// All that wait.
#[derive(Debug)]
pub(in crate::endpoint) struct DelayedResponses<A> {
    /// In the order in which they are to leave.
    responses: VecDeque<DelayedResponse<A>>,
    /// How many there are of each network, and of each address. Unvalidated peers of a network are one of their own.
    networks: Tally<Source>,
    addresses: Tally<(A, Source)>,
}

impl<A: Copy + Eq + Hash> DelayedResponses<A> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self { responses: VecDeque::new(), networks: Tally::new(), addresses: Tally::new() }
    }

    /// When the first one is to leave.
    pub(in crate::endpoint) fn first_due(&self) -> Option<Instant> {
        self.responses.front().map(|response| response.due)
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        let message = |sum: usize, response: &DelayedResponse<A>| sum.saturating_add(response.message.capacity());
        self.responses
            .iter()
            .fold(0, message)
            .saturating_add(self.responses.capacity().wrapping_mul(size_of::<DelayedResponse<A>>()))
            .saturating_add(self.networks.memory())
            .saturating_add(self.addresses.memory())
    }

    /// The most that one more adds to the [memory](Self::memory), beside its message.
    pub(in crate::endpoint) const fn growth() -> usize {
        let counted = size_of::<(Source, u16)>().saturating_add(size_of::<((A, Source), u16)>());
        size_of::<DelayedResponse<A>>().saturating_add(counted).saturating_mul(3)
    }

    /// One more waits, if there is room for it or can be made.
    pub(in crate::endpoint) fn add(&mut self, response: DelayedResponse<A>, id_generator: &IdGenerator) {
        let DelayedResponse { due, to, source, .. } = response;
        if self.responses.len() >= MOST && !self.make_room(to, source, id_generator) {
            return;
        }
        let place = self.responses.partition_point(|other| other.due <= due);
        self.responses.insert(place, response);
        self.networks.add(source, id_generator);
        self.addresses.add((to, source), id_generator);
    }

    /// The first one leaves.
    pub(in crate::endpoint) fn pop(&mut self, id_generator: &IdGenerator) -> Option<DelayedResponse<A>> {
        (!self.responses.is_empty()).then(|| self.remove(0, id_generator)).flatten()
    }

    /// One gives way to another one, unless those whose that is would then have most.
    fn make_room(&mut self, to: A, source: Source, id_generator: &IdGenerator) -> bool {
        let (is_known, most) = match self.networks.most(|of| !of.is_validated) {
            Some(most) => (false, most),
            None if source.is_validated => (true, self.networks.most(|_| true).unwrap_or_default()),
            None => return false,
        };
        let in_network = self.networks.of(source, id_generator);
        let is_worth_more = source.is_validated && !is_known;
        let place = if is_worth_more || in_network.saturating_add(1) < most {
            // Of several that have as many the one whose response would leave last: chance decides, and nobody's number.
            let is_meant = |of: Source| of.is_validated == is_known && self.networks.of(of, id_generator) == most;
            let last = self.responses.iter().rfind(|response| is_meant(response.source));
            last.and_then(|last| self.last_of_the_largest(last.source))
        } else {
            let own = self.addresses.of((to, source), id_generator).saturating_add(1);
            if own >= self.addresses.most(|of| of.1 == source).unwrap_or_default() {
                return false;
            }
            self.last_of_the_largest(source)
        };
        place.and_then(|place| self.remove(place, id_generator)).is_some()
    }

    /// The response that would leave last, of the address in this network that has most.
    fn last_of_the_largest(&self, network: Source) -> Option<usize> {
        let (largest, _) = self.addresses.largest(|of| of.1 == network)?;
        self.responses.iter().rposition(|response| response.source == network && response.to == largest)
    }

    fn remove(&mut self, place: usize, id_generator: &IdGenerator) -> Option<DelayedResponse<A>> {
        let response = self.responses.remove(place)?;
        self.networks.remove(response.source, id_generator);
        self.addresses.remove((response.to, response.source), id_generator);
        Some(response)
    }
}

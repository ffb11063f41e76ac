use alloc::boxed::Box;

use hashbrown::HashTable;
use millpond_control::Instant;

use super::duplicates::{Key, Reply};
use crate::endpoint::{
    IdGenerator,
    slots::{Linked, Links, List, NONE, Slots},
};
use crate::message::MessageId;

/// Networks that are looked at for one that has more than others: a forged datagram can have it done.
const LOOKED_AT: usize = 256;

/// What is remembered of a request that may have changed something.
#[derive(Debug)]
struct Record<A> {
    links: Links,
    from: A,
    id: MessageId,
    network: u32,
    expires: Instant,
    reply: Reply,
    response: Box<[u8]>,
}

/// The records of a network.
#[derive(Debug)]
struct Network {
    links: Links,
    name: u64,
    order: List,
    /// What they weigh.
    weight: usize,
}

impl<A> Linked for Record<A> {
    fn links(&self) -> &Links {
        &self.links
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Linked for Network {
    fn links(&self) -> &Links {
        &self.links
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// Requests that were handled and that to carry out once more would change something (POST, PUT, PATCH, DELETE), within a budget of
/// bytes that is theirs alone: copies of what only reads cost nothing but work, so that nothing that is read displaces these.
///
/// Of the network that has more than its share of them, if that is the newcomer's, else of another one that has, the oldest makes
/// room: who sends many takes from itself.
#[derive(Debug)]
pub(in crate::endpoint) struct Changes<A> {
    records: Slots<Record<A>>,
    table: HashTable<u32>,
    networks: Slots<Network>,
    names: HashTable<u32>,
    /// The networks, in the order in which they are looked at for what makes room.
    turns: List,
    /// Bytes of responses.
    bytes: usize,
    budget: usize,
}

impl<A: Copy + Eq + core::hash::Hash> Changes<A> {
    pub(in crate::endpoint) const fn new(budget: usize) -> Self {
        Self {
            records: Slots::new(),
            table: HashTable::new(),
            networks: Slots::new(),
            names: HashTable::new(),
            turns: List::EMPTY,
            bytes: 0,
            budget,
        }
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        let tables = self.table.allocation_size().saturating_add(self.names.allocation_size());
        tables.saturating_add(self.held())
    }

    /// The same without the tables, which have a quarter of the budget: they are lengthened when they like.
    fn held(&self) -> usize {
        self.records.memory().saturating_add(self.networks.memory()).saturating_add(self.bytes)
    }

    /// What is known of a request: the reply to it, when that is to be forgotten, and where its response is.
    pub(in crate::endpoint) fn find(&self, key: &Key<A>, now: Instant) -> Option<(Reply, Instant, u32)> {
        if self.table.is_empty() {
            return None;
        }
        let slot = *self.table.find(key.hash, |slot| self.is(*slot, key))?;
        let record = self.records.get(slot)?;
        (record.expires > now).then_some((record.reply, record.expires, slot))
    }

    fn is(&self, slot: u32, key: &Key<A>) -> bool {
        self.records.get(slot).is_some_and(|record| record.id == key.id && record.from == key.from)
    }

    /// The response to repeat.
    pub(in crate::endpoint) fn response(&self, slot: u32) -> &[u8] {
        self.records.get(slot).map_or(&[], |record| &record.response)
    }

    /// A request of this network was handled. Returns how many had to be forgotten before their time.
    pub(in crate::endpoint) fn handled(
        &mut self,
        key: &Key<A>,
        network: u64,
        (reply, response): (Reply, &[u8]),
        (now, expires): (Instant, Instant),
        id_generator: &IdGenerator,
    ) -> u32 {
        if let Ok(entry) = self.table.find_entry(key.hash, |slot| {
            self.records.get(*slot).is_some_and(|record| record.id == key.id && record.from == key.from)
        }) {
            let slot = *entry.get();
            self.remove(slot, id_generator);
        }
        self.expire(now, id_generator);
        let mut forgotten = 0_u32;
        loop {
            let known = self.find_network(network, id_generator);
            let limit = self.budget.saturating_sub(self.budget >> 2);
            let needed = self.held().saturating_add(self.records.growth()).saturating_add(response.len());
            let by_network = if known.is_some() { 0 } else { self.networks.growth() };
            let least = match needed > limit {
                true => self.least(now, known),
                // No record less makes room for a network more.
                false if needed.saturating_add(by_network) > limit => self.lightest(),
                false => break,
            };
            let Some(slot) = least else { return forgotten.saturating_add(1) };
            let is_early = self.records.get(slot).is_some_and(|record| record.expires > now);
            forgotten = forgotten.saturating_add(u32::from(is_early));
            self.remove(slot, id_generator);
        }
        let of = match self.find_network(network, id_generator) {
            Some(known) => known,
            None => {
                let made =
                    self.networks.put(Network { links: Links::NOWHERE, name: network, order: List::EMPTY, weight: 0 });
                let Self { networks, names, turns, .. } = self;
                turns.push(networks, made);
                let rehash = |slot: &u32| networks.get(*slot).map_or(0, |network| id_generator.hash(&network.name));
                names.insert_unique(id_generator.hash(&network), made, rehash);
                made
            }
        };
        let (links, response) = (Links::NOWHERE, Box::<[u8]>::from(response));
        self.bytes = self.bytes.saturating_add(response.len());
        let weight = weight::<A>(response.len());
        let record = Record { links, from: key.from, id: key.id, network: of, expires, reply, response };
        let slot = self.records.put(record);
        let Self { records, table, networks, .. } = self;
        if let Some(network) = networks.get_mut(of) {
            network.order.push(records, slot);
            network.weight = network.weight.saturating_add(weight);
        }
        let rehash =
            |slot: &u32| records.get(*slot).map_or(0, |record| Key::new(record.from, record.id, id_generator).hash);
        table.insert_unique(key.hash, slot, rehash);
        forgotten
    }

    fn find_network(&self, name: u64, id_generator: &IdGenerator) -> Option<u32> {
        let is_it = |slot: &u32| self.networks.get(*slot).is_some_and(|network| network.name == name);
        self.names.find(id_generator.hash(&name), is_it).copied()
    }

    /// The oldest of a network.
    fn oldest_of(&self, network: u32) -> Option<(u32, &Record<A>)> {
        self.networks.get(network)?.order.iter(&self.records).next()
    }

    /// Forgets a few whose time is over; each one that is remembered pays for two.
    fn expire(&mut self, now: Instant, id_generator: &IdGenerator) {
        for _ in 0..2 {
            let network = self.turns.first();
            if network == NONE {
                return;
            }
            match self.oldest_of(network) {
                Some((slot, oldest)) if oldest.expires <= now => self.remove(slot, id_generator),
                _ => self.turn(),
            }
        }
    }

    /// The network that was to be looked at next is the last one.
    fn turn(&mut self) {
        let network = self.turns.first();
        self.turns.remove(&mut self.networks, network);
        self.turns.push(&mut self.networks, network);
    }

    /// Which makes room for one more of this network; none if there is none.
    fn least(&mut self, now: Instant, comer: Option<u32>) -> Option<u32> {
        let all = self.bytes.saturating_add((self.records.taken() as usize).saturating_mul(weight::<A>(0)));
        let share = all.checked_div(self.networks.taken() as usize)?;
        let has_more = |network: u32| self.networks.get(network).is_some_and(|network| network.weight > share);
        if let Some(own) = comer.filter(|own| has_more(*own)) {
            return self.oldest_of(own).map(|(slot, _)| slot);
        }
        for _ in 0..LOOKED_AT.min(self.networks.taken() as usize) {
            let network = self.turns.first();
            let (slot, oldest) = self.oldest_of(network)?;
            let (is_over, weight) = (oldest.expires <= now, self.networks.get(network)?.weight);
            if is_over || weight >= share {
                return Some(slot);
            }
            self.turn();
        }
        self.oldest_of(self.turns.first()).map(|(slot, _)| slot)
    }

    /// The oldest of a network that has few.
    fn lightest(&self) -> Option<u32> {
        let looked_at = self.turns.iter(&self.networks).take(LOOKED_AT);
        let (network, _) = looked_at.min_by_key(|(_, network)| network.weight)?;
        self.oldest_of(network).map(|(slot, _)| slot)
    }

    fn remove(&mut self, slot: u32, id_generator: &IdGenerator) {
        let Some(record) = self.records.get_mut(slot) else { return };
        let (hash, of) = (Key::new(record.from, record.id, id_generator).hash, record.network);
        let length = core::mem::take(&mut record.response).len();
        self.bytes = self.bytes.saturating_sub(length);
        if let Ok(entry) = self.table.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        let Some(network) = self.networks.get_mut(of) else { return };
        network.order.remove(&mut self.records, slot);
        network.weight = network.weight.saturating_sub(weight::<A>(length));
        let (name, is_empty) = (network.name, network.order.is_empty());
        self.records.release(slot);
        if is_empty {
            self.turns.remove(&mut self.networks, of);
            if let Ok(entry) = self.names.find_entry(id_generator.hash(&name), |other| *other == of) {
                entry.remove();
            }
            self.networks.release(of);
        }
    }
}

/// What a record weighs whose response is so long.
const fn weight<A>(response: usize) -> usize {
    size_of::<Record<A>>().saturating_add(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network of 256 addresses each.
    fn handle(changes: &mut Changes<u32>, (from, id): (u32, u16), now: u64, id_generator: &IdGenerator) -> u32 {
        let key = Key::new(from, MessageId(id), id_generator);
        let times = (Instant::from_micros(now), Instant::from_micros(now + 1_000));
        let forgotten =
            changes.handled(&key, u64::from(from >> 8), (Reply::Acknowledgement, &[0; 20]), times, id_generator);
        assert!(changes.memory() <= changes.budget, "{} bytes", changes.memory());
        forgotten
    }

    fn knows(changes: &Changes<u32>, from: u32, now: u64, id_generator: &IdGenerator) -> bool {
        changes.find(&Key::new(from, MessageId(7), id_generator), Instant::from_micros(now)).is_some()
    }

    #[test]
    fn a_network_that_sends_many_takes_from_itself() {
        for id_generator in [IdGenerator::counted(), IdGenerator::secret(*b"sixteen of bytes")] {
            let mut changes = Changes::new(16_384);
            let others: [u32; 4] = [0x100, 0x200, 0x300, 0x400];
            for other in others {
                assert_eq!(handle(&mut changes, (other, 7), 0, &id_generator), 0);
            }
            let mut handle = |network: u32, number: u16| {
                handle(&mut changes, (network << 8 | u32::from(number % 256), number), 1, &id_generator)
            };
            let of_one: u32 = (0..1_000).map(|number| handle(9, number)).sum();
            let of_three: u32 = (0..1_000).map(|number| handle(10 + u32::from(number % 3), number)).sum();
            assert!(of_one > 700 && of_three > 700, "{of_one} and {of_three} were forgotten");
            assert!(others.iter().all(|other| knows(&changes, *other, 3, &id_generator)));
            // Their time ends all the same.
            assert!(others.iter().all(|other| !knows(&changes, *other, 1_000, &id_generator)));
        }
    }

    /// A network more may want a longer table of networks, for which no record less makes room.
    #[test]
    fn a_network_more_takes_the_place_of_one_and_not_of_all_records_of_another() {
        let id_generator = IdGenerator::counted();
        let mut changes = Changes::new(16_384);
        let times = (Instant::ORIGIN, Instant::from_micros(1_000));
        let mut most = 0;
        for number in 0..2_000_u32 {
            let network = if number < 60 { 1 } else { number };
            let key = Key::new(network << 8, MessageId(number as u16), &id_generator);
            changes.handled(&key, u64::from(network), (Reply::Silence, b""), times, &id_generator);
            most = most.max(changes.records.taken());
            assert!(changes.records.taken() + 2 >= most, "{} of {most} after {number}", changes.records.taken());
        }
        assert!(most > 60, "{most}");
    }

    #[test]
    fn what_is_over_makes_room_and_leaves_nothing() {
        let id_generator = IdGenerator::counted();
        let mut changes = Changes::new(8_192);
        let mut memory = 0;
        for round in 0..10_000 {
            assert_eq!(
                handle(&mut changes, ((round % 7) << 8, round as u16), u64::from(round) * 100, &id_generator),
                0,
                "{round}"
            );
            if round == 200 {
                memory = changes.memory();
            }
        }
        assert_eq!(changes.memory(), memory);
        let slots: alloc::vec::Vec<u32> = changes.records.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            changes.remove(slot, &id_generator);
        }
        let left =
            (changes.table.len(), changes.names.len(), changes.turns.len(), changes.bytes, changes.networks.taken());
        assert_eq!(left, (0, 0, 0, 0, 0));
    }
}

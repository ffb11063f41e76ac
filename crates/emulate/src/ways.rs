//! The ways of a relay's clients to the server: who has one, and who gives one up when there are no more.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
};

use millpond_control::Instant;

use crate::Toward;

/// So many ways are looked at for one that gives way: a flood of newcomers finds all taken with each datagram.
const LOOKED_AT: usize = 256;

/// One client's way to the server.
#[derive(Debug)]
pub(crate) struct Way<S> {
    pub(crate) socket: S,
    pub(crate) client: SocketAddr,
    /// Distinguishes it from those that had its place before.
    pub(crate) name: u64,
    used: Instant,
    /// What it sent, and what was for it.
    carried: [Carried; 2],
    /// The server has answered.
    is_answered: bool,
    /// The client has sent again since: who forges addresses does not hear of answers.
    has_come_back: bool,
}

/// Datagrams one way, and their bytes without headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// How many.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A client came by a place, or lost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientChange {
    /// It is there.
    Came {
        /// Who.
        client: SocketAddr,
        /// Where the server sees it, if the system tells.
        seen_as: Option<SocketAddr>,
    },
    /// It is there no more.
    Left {
        /// Who.
        client: SocketAddr,
        /// Its place is another's; else it had been silent for long.
        gave_way: bool,
        /// What it sent.
        up: Carried,
        /// What was for it.
        down: Carried,
    },
}

/// How the places of clients stand, for observers; zero where clients have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStanding {
    /// Clients that have one.
    pub clients: usize,
    /// As many as there is room for.
    pub room: usize,
    /// Clients that had to give theirs to others until now.
    pub gave_way: u64,
    /// Datagrams until now of clients for which there was none.
    pub refused: u64,
}

/// All of them, as many as there is room for.
#[derive(Debug)]
pub(crate) struct Ways<S> {
    most: usize,
    places: HashMap<SocketAddr, usize>,
    ways: Vec<Option<Way<S>>>,
    /// Places that nobody has, among those that somebody had.
    free: Vec<usize>,
    /// Where it was last looked for somebody to give way.
    looked_at: usize,
    /// Clients that had to give way to others.
    gave_way: u64,
    /// Datagrams of clients for which there was no place.
    pub(crate) refused: u64,
    /// How many each network has.
    crowds: HashMap<u64, usize>,
    named: u64,
}

impl<S> Ways<S> {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            places: HashMap::new(),
            ways: Vec::new(),
            free: Vec::new(),
            looked_at: 0,
            gave_way: 0,
            refused: 0,
            crowds: HashMap::new(),
            named: 0,
        }
    }

    /// As many as there is room for.
    pub(crate) const fn room(&self) -> usize {
        self.most
    }

    /// How they stand.
    pub(crate) fn standing(&self) -> ClientStanding {
        let Self { most: room, gave_way, refused, .. } = *self;
        ClientStanding { clients: self.places.len(), room, gave_way, refused }
    }

    /// Places that were ever taken.
    pub(crate) const fn len(&self) -> usize {
        self.ways.len()
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Way<S>> {
        self.ways.get(place).and_then(Option::as_ref)
    }

    /// The place and name of a client that sends at `now`, if it has one.
    pub(crate) fn of(&mut self, client: SocketAddr, now: Instant) -> Option<(usize, u64)> {
        let place = *self.places.get(&client)?;
        let way = self.ways.get_mut(place)?.as_mut()?;
        way.used = now;
        way.has_come_back |= way.is_answered;
        Some((place, way.name))
    }

    /// A datagram of so many bytes came for the other side.
    pub(crate) fn carries(&mut self, place: usize, toward: Toward, bytes: usize) {
        if let Some(way) = self.ways.get_mut(place).and_then(Option::as_mut) {
            let Carried { datagrams, bytes: all } = &mut way.carried[usize::from(toward == Toward::Clients)];
            (*datagrams, *all) = (*datagrams + 1, *all + bytes as u64);
        }
    }

    /// The server answered at a place.
    pub(crate) fn answered(&mut self, place: usize, now: Instant) {
        if let Some(way) = self.ways.get_mut(place).and_then(Option::as_mut) {
            (way.used, way.is_answered) = (now, true);
        }
    }

    /// A place for a client that has none: a free one, or that of somebody of a network that has at least as many with the
    /// newcomer, of those that are looked at the one that has most. Who was seen to come back gives it up to networks alone that
    /// have fewer even with the newcomer; so a flood takes from itself, and what many forged addresses took goes to who comes next.
    /// With it the way that was closed for that.
    pub(crate) fn room_for(&mut self, client: SocketAddr) -> Option<(usize, Option<Way<S>>)> {
        if let Some(free) = self.free.last() {
            return Some((*free, None));
        }
        if self.ways.len() < self.most {
            self.ways.push(None);
            self.free.push(self.ways.len() - 1);
            return Some((self.ways.len() - 1, None));
        }
        let with_it = self.crowd(client) + 1;
        let gives_way = |way: &Way<S>| match way.has_come_back {
            false => self.crowd(way.client) >= with_it,
            true => self.crowd(way.client) > with_it,
        };
        let ways = self.ways.iter().enumerate().cycle().skip(self.looked_at).take(self.ways.len().min(LOOKED_AT));
        let ways = ways.filter_map(|(place, way)| Some((place, way.as_ref()?)));
        let first = |way: &Way<S>| (std::cmp::Reverse(self.crowd(way.client)), way.has_come_back, way.used);
        let least = ways.filter(|(_, way)| gives_way(way)).min_by_key(|(_, way)| first(way));
        let place = least.map(|(place, _)| place);
        self.looked_at = (self.looked_at + LOOKED_AT) % self.ways.len();
        let closed = self.leave(place?);
        self.gave_way += 1;
        Some((place?, closed))
    }

    /// A client takes a place that is free.
    pub(crate) fn take(&mut self, place: usize, client: SocketAddr, socket: S, now: Instant) -> u64 {
        self.named += 1;
        if let Some(free) = self.ways.get_mut(place) {
            let (name, carried, is_answered, has_come_back) = (self.named, Default::default(), false, false);
            *free = Some(Way { socket, client, name, used: now, carried, is_answered, has_come_back });
            self.free.pop_if(|free| *free == place);
            self.places.insert(client, place);
            *self.crowds.entry(network(&client)).or_default() += 1;
        }
        self.named
    }

    /// Closes the ways of those that were used before then, and gives them back.
    pub(crate) fn forget_before(&mut self, then: Instant) -> Vec<Way<S>> {
        let is_old = |place: &usize| self.get(*place).is_some_and(|way| way.used < then);
        let old: Vec<usize> = (0..self.ways.len()).filter(is_old).collect();
        old.into_iter().filter_map(|place| self.leave(place)).collect()
    }

    fn crowd(&self, client: SocketAddr) -> usize {
        self.crowds.get(&network(&client)).copied().unwrap_or_default()
    }

    fn leave(&mut self, place: usize) -> Option<Way<S>> {
        let way = self.ways.get_mut(place).and_then(Option::take)?;
        self.free.push(place);
        self.places.remove(&way.client);
        let network = network(&way.client);
        let left = self.crowd(way.client).saturating_sub(1);
        if left == 0 {
            self.crowds.remove(&network);
        } else {
            self.crowds.insert(network, left);
        }
        Some(way)
    }
}

impl<S> Way<S> {
    /// That it was closed.
    pub(crate) fn left(&self, gave_way: bool) -> ClientChange {
        let [up, down] = self.carried;
        ClientChange::Left { client: self.client, gave_way, up, down }
    }
}

/// The network that a client is in: 24 bits of an IPv4 address, 48 of an IPv6 one.
#[must_use]
pub fn network(client: &SocketAddr) -> u64 {
    match client.ip().to_canonical() {
        IpAddr::V4(ip) => u64::from(ip.to_bits() >> 8),
        IpAddr::V6(ip) => (ip.to_bits() >> 80) as u64 | 1 << 63,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(network: u8, port: u16) -> SocketAddr {
        ([198, 51, network, 1], port).into()
    }

    fn come(ways: &mut Ways<()>, client: SocketAddr, micros: u64) -> bool {
        let now = Instant::from_micros(micros);
        if ways.of(client, now).is_some() {
            return true;
        }
        let Some((place, _)) = ways.room_for(client) else { return false };
        ways.take(place, client, (), now);
        true
    }

    fn has(ways: &Ways<()>, client: SocketAddr) -> bool {
        ways.places.get(&client).and_then(|place| ways.get(*place)).is_some_and(|way| way.client == client)
    }

    /// Answered, and heard of again.
    fn settle(ways: &mut Ways<()>, client: SocketAddr, micros: u64) {
        assert!(come(ways, client, micros));
        ways.answered(ways.places[&client], Instant::from_micros(micros));
        assert!(come(ways, client, micros));
    }

    #[test]
    fn a_network_that_takes_every_place_makes_room_for_others_until_they_have_as_many() {
        let mut ways = Ways::new(8);
        for port in 1..=100 {
            let client = at(1, port);
            assert_eq!(come(&mut ways, client, port.into()), port <= 8, "it takes nobody's place");
            if port <= 8 {
                settle(&mut ways, client, port.into());
            }
        }
        for port in 1..=100 {
            assert_eq!(come(&mut ways, at(2, port), 200), port <= 4);
        }
        let left: Vec<u16> = (1..=100).filter(|port| has(&ways, at(1, *port))).collect();
        assert_eq!((left, ways.places.len(), ways.crowds.len()), (vec![5, 6, 7, 8], 8, 2));
    }

    #[test]
    fn addresses_forged_in_any_number_of_networks_take_no_way_from_who_was_seen_to_come_back() {
        let mut ways = Ways::new(8);
        settle(&mut ways, at(0, 1), 1);
        for network in 1..=200 {
            assert!(come(&mut ways, at(network, 7), 1 + u64::from(network)));
        }
        assert!(has(&ways, at(0, 1)), "silent for the longest, but there");
        // And who comes now finds a place, that of the first of those that are left.
        assert!(come(&mut ways, at(201, 9), 300) && has(&ways, at(201, 9)));
        assert!(!has(&ways, at(194, 7)) && has(&ways, at(195, 7)));
    }

    #[test]
    fn who_is_silent_loses_its_place_and_no_name_comes_twice() {
        let mut ways = Ways::new(2);
        assert!(come(&mut ways, at(1, 1), 5) && come(&mut ways, at(1, 2), 9));
        ways.carries(0, Toward::Server, 40);
        ways.carries(0, Toward::Clients, 3);
        ways.carries(0, Toward::Clients, 4);
        let left: Vec<_> = ways.forget_before(Instant::from_micros(6)).iter().map(|way| way.left(false)).collect();
        let (up, down) = (Carried { datagrams: 1, bytes: 40 }, Carried { datagrams: 2, bytes: 7 });
        assert_eq!(left, [ClientChange::Left { client: at(1, 1), gave_way: false, up, down }]);
        assert!(!has(&ways, at(1, 1)) && has(&ways, at(1, 2)));
        assert!(come(&mut ways, at(3, 3), 10));
        assert_eq!((ways.len(), ways.get(0).map(|way| way.name)), (2, Some(3)));
    }
}

//! Connections that are open at a server: none silent for long, none that holds more than its share, and when they are too
//! many, one of those gives way that have shown least.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use millpond_coap::quota::{Holders, Shares, Source, Usage};
use tokio::{sync::Notify, time::Instant};

use crate::udp::network_of;

/// What all connections of a server may take together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// How many there may be. A quarter of them may not have asked yet, and a quarter of those be of one network; three
    /// quarters of all may be of one network.
    pub(crate) connections: usize,
    /// Bytes that they may hold.
    pub(crate) memory: usize,
}

/// All connections of a server.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: ConnectionLimits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// By when they came.
    open: BTreeMap<u64, Entry>,
    /// All of them, and those that have not asked for anything yet, by network; such a one is counted as an unvalidated source.
    all: Holders<u64>,
    unasked: Holders<u64>,
    usage: Usage,
    /// Bytes that they hold.
    bytes: Usage,
    made: u64,
    evicted: u64,
}

#[derive(Debug)]
struct Entry {
    network: u64,
    has_asked: bool,
    heard: Instant,
    memory: usize,
    give_way: Arc<Notify>,
}

impl Entry {
    const fn source(&self) -> Source {
        Source { is_validated: self.has_asked, network: self.network }
    }
}

/// One connection's place. It is free when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    connections: Arc<Connections>,
    number: u64,
    /// Told when the place is wanted for another.
    pub(super) give_way: Arc<Notify>,
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, table: Mutex::default() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are open, and the bytes that they hold.
    pub(crate) fn figures(&self) -> (usize, usize) {
        let table = self.table();
        (table.open.len(), table.bytes.all())
    }

    /// How many had to give way, or held too much.
    pub(crate) fn evicted(&self) -> u64 {
        self.table().evicted
    }

    /// A place for one that was just accepted. If there is none, another one gives way.
    pub(super) fn admit(self: &Arc<Self>, address: SocketAddr, now: Instant) -> ConnectionPermit {
        let network = network_of(address);
        let mut table = self.table();
        let shares = Shares::of_places(self.limits.connections.max(1));
        let full = table.usage.full(&shares, Source::unvalidated(network), 1);
        if full.unvalidated_of_network {
            table.evict_unasked(Some(network));
        } else if full.unvalidated {
            table.evict_unasked(None);
        } else if full.network {
            table.evict_idlest(Some(network));
        } else if full.all && !table.evict_unasked(None) {
            table.evict_idlest(None);
        }
        table.made += 1;
        let (number, give_way) = (table.made, Arc::new(Notify::new()));
        let entry = Entry { network, has_asked: false, heard: now, memory: 0, give_way: Arc::clone(&give_way) };
        table.usage.add(entry.source(), 1);
        table.open.insert(number, entry);
        table.all.add(network, number);
        table.unasked.add(network, number);
        ConnectionPermit { connections: Arc::clone(self), number, give_way }
    }

    /// The process has no descriptor left for another: one that has not asked for anything gives way, if there is one.
    pub(super) fn make_room(&self) {
        self.table().evict_unasked(None);
    }
}

impl Table {
    /// The one that waits longest for its first request, of this network or of those of which most wait, gives way.
    fn evict_unasked(&mut self, network: Option<u64>) -> bool {
        let first = match network {
            Some(network) => self.unasked.of(network).next(),
            None => self.unasked.of_largest().min(),
        };
        first.inspect(|number| self.evict(*number)).is_some()
    }

    /// The one that holds most gives way, of the network whose connections hold most, or of all that hold as much; of those
    /// alike the one that was heard of least lately. False if there is none.
    fn evict_heaviest(&mut self) -> bool {
        let is_largest = self.bytes.is_largest();
        let of_largest = self.open.iter().filter(|(_, entry)| is_largest(entry.network));
        let heaviest = of_largest.min_by_key(|(_, entry)| (Reverse(entry.memory), entry.heard));
        let number = heaviest.map(|(number, _)| *number);
        drop(is_largest);
        number.inspect(|number| self.evict(*number)).is_some()
    }

    /// The one of this network, or of those that have most, that was heard of least lately gives way.
    fn evict_idlest(&mut self, network: Option<u64>) {
        let heard = |number: &u64| self.open.get(number).map(|entry| entry.heard);
        let idlest = match network {
            Some(network) => self.all.of(network).min_by_key(heard),
            None => self.all.of_largest().min_by_key(heard),
        };
        if let Some(number) = idlest {
            self.evict(number);
        }
    }

    fn evict(&mut self, number: u64) {
        if let Some(entry) = self.remove(number) {
            self.evicted += 1;
            entry.give_way.notify_one();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.open.remove(&number)?;
        self.all.remove(entry.network, number);
        self.unasked.remove(entry.network, number);
        self.usage.remove(entry.source(), 1);
        self.bytes.remove(entry.source(), entry.memory);
        Some(entry)
    }
}

impl ConnectionPermit {
    /// Its first request came.
    pub(super) fn has_asked(&self) {
        let mut table = self.connections.table();
        let Table { open, unasked, usage, bytes, .. } = &mut *table;
        let Some(entry) = open.get_mut(&self.number) else { return };
        if unasked.remove(entry.network, self.number) {
            usage.remove(entry.source(), 1);
            bytes.remove(entry.source(), entry.memory);
            entry.has_asked = true;
            usage.add(entry.source(), 1);
            bytes.add(entry.source(), entry.memory);
        }
    }

    /// Something came at this time, and it holds so many bytes now. If all together hold more than they may, those that hold
    /// most end, of the network that does: who has many connections takes from itself. False if it is one of them.
    #[must_use]
    pub(super) fn holds(&self, heard: Instant, memory: usize) -> bool {
        let mut table = self.connections.table();
        let Table { open, bytes, .. } = &mut *table;
        let Some(entry) = open.get_mut(&self.number) else { return true };
        entry.heard = heard;
        let before = std::mem::replace(&mut entry.memory, memory);
        bytes.remove(entry.source(), before);
        bytes.add(entry.source(), memory);
        while table.bytes.all() > self.connections.limits.memory && table.evict_heaviest() {}
        table.open.contains_key(&self.number)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        // One that gave way is gone already.
        let _ = self.connections.table().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn connections() -> Arc<Connections> {
        Connections::new(ConnectionLimits { connections: 64, memory: 1_000 })
    }

    fn address(network: u8, host: u8) -> SocketAddr {
        ([198, 51, network, host], 5_683).into()
    }

    #[tokio::test]
    async fn silent_connections_give_way_to_one_another_and_never_one_that_has_asked() {
        let (all, now) = (connections(), Instant::now());
        let known = all.admit(address(0, 1), now);
        known.has_asked();
        let silent: Vec<ConnectionPermit> = (0..=255).map(|host| all.admit(address(1, host), now)).collect();
        assert_eq!(all.figures().0, 1 + 4, "a sixteenth from one network");
        silent.last().unwrap().has_asked();
        let silent: Vec<ConnectionPermit> = (0..=255).map(|network| all.admit(address(network, 9), now)).collect();
        assert_eq!(all.figures().0, 2 + 16, "a quarter in all");
        assert_eq!(all.evicted(), 252 + 256 - 13);
        let is_told = |permit: &ConnectionPermit| {
            let told = permit.give_way.notified();
            let waker = std::task::Waker::noop();
            std::pin::pin!(told).poll(&mut std::task::Context::from_waker(waker)).is_ready()
        };
        assert!(!is_told(&known) && is_told(&silent[0]) && !is_told(&silent[255]));
        drop((silent, known));
        assert_eq!(all.figures(), (1, 0));
    }

    #[tokio::test]
    async fn when_all_are_taken_the_idlest_of_the_most_crowded_network_gives_way() {
        let (all, now) = (connections(), Instant::now());
        let mut permits = Vec::new();
        for number in 0..64_u8 {
            let permit = all.admit(address(if number < 40 { 1 } else { number }, number), now);
            permit.has_asked();
            assert!(permit.holds(now + Duration::from_secs(u64::from(number)), 1));
            permits.push(permit);
        }
        assert_eq!(all.evicted(), 0);
        let newcomer = all.admit(address(99, 1), now);
        assert_eq!((all.figures().0, all.evicted()), (64, 1));
        assert!(all.table().open.contains_key(&newcomer.number) && !all.table().open.contains_key(&permits[0].number));
    }

    #[tokio::test]
    async fn who_holds_more_than_others_ends_when_all_hold_too_much() {
        let (all, now) = (connections(), Instant::now());
        let permits: Vec<ConnectionPermit> = (0..10).map(|network| all.admit(address(network, 1), now)).collect();
        for permit in &permits {
            assert!(permit.holds(now, 90));
        }
        assert!(permits[0].holds(now, 190));
        assert!(!permits[0].holds(now, 191), "1001 bytes, 100 on the average");
        assert!(permits[1].holds(now, 91), "the heaviest is gone");
        drop(permits);
        assert_eq!(all.figures(), (0, 0));
    }

    /// Each of them holds less than anybody who does something.
    #[tokio::test]
    async fn many_connections_of_one_network_that_hold_little_leave_room_for_one_that_holds_more() {
        let (all, now) = (connections(), Instant::now());
        let come = |host| {
            let permit = all.admit(address(1, host), now);
            permit.has_asked();
            assert!(permit.holds(now, 21));
            permit
        };
        let crowd: Vec<ConnectionPermit> = (0..47).map(come).collect();
        let known = all.admit(address(2, 1), now);
        known.has_asked();
        assert!((1..=300).all(|bytes| known.holds(now, bytes)), "a body that comes bit by bit");
        assert_eq!((all.figures(), all.evicted()), ((34, 33 * 21 + 300), 14));
        drop(crowd);
    }

    /// A newcomer asks a round trip after it came, or several under TLS.
    #[tokio::test]
    async fn silent_connections_of_several_networks_take_from_themselves_and_not_from_who_is_about_to_ask() {
        let (all, now) = (connections(), Instant::now());
        let newcomer = all.admit(address(99, 1), now);
        let crowd: Vec<ConnectionPermit> = (0..=255).map(|host| all.admit(address(host % 6, host), now)).collect();
        assert_eq!(all.figures().0, 16);
        assert!(all.table().open.contains_key(&newcomer.number));
        drop(crowd);
    }

    #[tokio::test]
    async fn of_networks_that_have_as_many_the_idlest_connection_gives_way_whatever_their_numbers() {
        let (all, now) = (connections(), Instant::now());
        let come = |network: u8| {
            let permit = all.admit(address(network, 1), now);
            permit.has_asked();
            assert!(permit.holds(now + Duration::from_secs(u64::from(network)), 1));
            permit
        };
        let permits: Vec<ConnectionPermit> = (0..64).map(come).collect();
        let newcomer = all.admit(address(99, 1), now);
        assert!(
            !all.table().open.contains_key(&permits[0].number) && all.table().open.contains_key(&permits[63].number)
        );
        drop(newcomer);
    }

    #[tokio::test]
    async fn of_networks_that_hold_as_much_the_most_silent_connection_gives_way_whatever_their_numbers() {
        let (all, now) = (connections(), Instant::now());
        let permits: Vec<ConnectionPermit> = (0..10).map(|network| all.admit(address(network, 1), now)).collect();
        for (network, permit) in (0..).zip(&permits) {
            assert!(permit.holds(now + Duration::from_secs(if network == 4 { 0 } else { 1 }), 100));
        }
        let light = all.admit(address(99, 1), now);
        assert!(light.holds(now, 1));
        let is_open = |permit: &&ConnectionPermit| all.table().open.contains_key(&permit.number);
        assert_eq!((permits.iter().filter(is_open).count(), is_open(&&permits[4])), (9, false));
    }
}

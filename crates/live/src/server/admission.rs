//! Who may have how many handlers under way, over all transports and workers of a server.
//!
//! Only handlers that wait take a place: what is answered at once needs none. Who may have how many is for [`Shares`] to say. A body
//! that comes or goes block by block has one, too, and keeps it between its blocks as long as nobody else wants it.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use millpond_coap::quota::{Shares, Source, Usage};
use millpond_control::Instant;
use tokio::sync::Notify;

use super::bodies::Bodies;
use crate::{clock::span, udp::network_of};

/// How long a client whose body comes or goes block by block may be silent before its place is for others who want one:
/// MAX_TRANSMIT_WAIT of RFC 7252 §4.8.2. Who has heard nothing for so long has given up what it sent last.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(93);

/// How much a server may have under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionLimits {
    /// Handlers that wait.
    pub(crate) running: usize,
    /// Those of one peer.
    pub(crate) running_per_peer: usize,
    /// Bytes of answers that handlers have made and that have not been taken over, and as many again of requests whose
    /// handlers wait.
    pub(crate) held: usize,
}

/// Whether a peer is known to be where it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressState {
    Validated,
    Unvalidated,
}

/// Why a handler is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// There is no place for anybody.
    Server,
    /// The peer, or its network, has as many as it may.
    Peer,
    /// There is none for an unvalidated address.
    Unvalidated,
}

/// What is under way.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: AdmissionLimits,
    taken: Mutex<Taken>,
    /// The long bodies of answers.
    pub(super) bodies: Arc<Bodies>,
}

#[derive(Debug, Default)]
struct Taken {
    handlers: Usage,
    /// Bytes of their requests.
    requests: Usage,
    /// Bytes of answers, and those of them that are for somebody.
    held: usize,
    answers: Usage,
    peers: HashMap<SocketAddr, usize>,
    /// Places whose clients are to send, or to ask for, the next block, and since when.
    silent: BTreeMap<(Instant, u64), Arc<OfPlace>>,
    entered: u64,
}

/// A handler that waits. Its place is free when this is dropped, or taken away before.
#[derive(Debug)]
pub(crate) struct Place(Arc<OfPlace>);

#[derive(Debug)]
struct OfPlace {
    admission: Arc<Admission>,
    peer: SocketAddr,
    source: Source,
    bytes: usize,
    number: u64,
    is_free: AtomicBool,
    taken_away: Notify,
}

/// Between the blocks of a body that has a place.
#[derive(Debug)]
pub(crate) struct Pause {
    of: Arc<OfPlace>,
    since: Option<Instant>,
}

/// Bytes of an answer that is on its way to the stack, and for whom it is.
#[derive(Debug)]
pub(crate) struct Held {
    admission: Arc<Admission>,
    source: Option<Source>,
    bytes: usize,
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default(), bodies: Arc::default() })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a handler that will have to wait, with a request of so many bytes.
    pub(crate) fn enter(
        self: &Arc<Self>,
        now: Instant,
        peer: SocketAddr,
        address_state: AddressState,
        length: usize,
    ) -> Result<Place, Busy> {
        self.has_room(now, peer, address_state, length)?;
        Ok(self.enter_anyway(peer, address_state, length))
    }

    /// Whether there is one. If not, clients that have been silent for too long in the middle of a body lose theirs: those of the network
    /// that has as many as it may, or of all.
    pub(crate) fn has_room(
        &self,
        now: Instant,
        peer: SocketAddr,
        address_state: AddressState,
        length: usize,
    ) -> Result<(), Busy> {
        let (source, bytes) = (source(peer, address_state), counted(length));
        let mut taken = self.taken();
        let Err(busy) = self.room(&taken, peer, source, bytes) else { return Ok(()) };
        taken.take_away(now, |other| match busy {
            Busy::Server => true,
            Busy::Unvalidated => !other.is_validated,
            Busy::Peer => other.network == source.network,
        });
        self.room(&taken, peer, source, bytes)
    }

    fn room(&self, taken: &Taken, peer: SocketAddr, source: Source, bytes: usize) -> Result<(), Busy> {
        let AdmissionLimits { running, running_per_peer, held } = self.limits;
        let handlers = taken.handlers.full(&Shares::of_places(running), source, 1);
        let requests = taken.requests.full_after_first(&Shares::of_bytes(held), source, bytes);
        if taken.peers.get(&peer).is_some_and(|running| *running >= running_per_peer) {
            return Err(Busy::Peer);
        }
        if handlers.all || requests.all {
            return Err(Busy::Server);
        }
        if handlers.is_unvalidated() || requests.is_unvalidated() {
            return Err(Busy::Unvalidated);
        }
        if handlers.network || requests.network {
            return Err(Busy::Peer);
        }
        Ok(())
    }

    /// A place whether there is one or not: for a handler that was asked because it had always answered at once.
    pub(crate) fn enter_anyway(
        self: &Arc<Self>,
        peer: SocketAddr,
        address_state: AddressState,
        length: usize,
    ) -> Place {
        let (source, bytes) = (source(peer, address_state), counted(length));
        let mut taken = self.taken();
        taken.handlers.add(source, 1);
        taken.requests.add(source, bytes);
        *taken.peers.entry(peer).or_default() += 1;
        taken.entered = taken.entered.wrapping_add(1);
        Place(Arc::new(OfPlace {
            admission: Arc::clone(self),
            peer,
            source,
            bytes,
            number: taken.entered,
            is_free: AtomicBool::new(false),
            taken_away: Notify::new(),
        }))
    }

    /// Counts an answer until it is taken over; `None` if there is no room for it.
    pub(crate) fn hold(self: &Arc<Self>, whose: Option<(SocketAddr, AddressState)>, bytes: usize) -> Option<Held> {
        let (most, mut taken) = (self.limits.held, self.taken());
        if taken.held.saturating_add(bytes) > most {
            return None;
        }
        let source = whose.map(|(peer, address_state)| source(peer, address_state));
        if let Some(source) = source {
            let full = taken.answers.full_after_first(&Shares::of_bytes(most), source, bytes);
            if full.network || full.is_unvalidated() {
                return None;
            }
            taken.answers.add(source, bytes);
        }
        taken.held += bytes;
        Some(Held { admission: Arc::clone(self), source, bytes })
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let taken = self.taken();
        taken.held
            + taken.requests.all()
            + taken.peers.capacity() * (size_of::<(SocketAddr, usize)>() + 1)
            + [&taken.handlers, &taken.requests, &taken.answers].map(Usage::memory).iter().sum::<usize>()
    }
}

fn source(peer: SocketAddr, address_state: AddressState) -> Source {
    Source { is_validated: address_state == AddressState::Validated, network: network_of(peer) }
}

/// Bytes of a request that count: what comes in one datagram does not, so that the long bodies of some keep nobody else's
/// short requests out.
const fn counted(length: usize) -> usize {
    const SHORT: usize = 2_048;
    if length > SHORT { length } else { 0 }
}

impl Taken {
    /// The places of clients that have been silent for too long, and are meant, are free.
    fn take_away(&mut self, now: Instant, is_meant: impl Fn(Source) -> bool) {
        let is_too_long = |since: Instant| now.since(since) >= span(LONGEST_SILENCE);
        let of_silent = self.silent.iter().take_while(|((since, _), _)| is_too_long(*since));
        let meant: Vec<_> = of_silent.filter(|(_, place)| is_meant(place.source)).map(|(key, _)| *key).collect();
        for key in meant {
            if let Some(place) = self.silent.remove(&key) {
                self.leave(&place);
                place.taken_away.notify_one();
            }
        }
    }

    fn leave(&mut self, place: &OfPlace) {
        if place.is_free.swap(true, Ordering::Relaxed) {
            return;
        }
        self.handlers.remove(place.source, 1);
        self.requests.remove(place.source, place.bytes);
        if let Some(running) = self.peers.get_mut(&place.peer) {
            *running = running.saturating_sub(1);
            if *running == 0 {
                self.peers.remove(&place.peer);
            }
        }
    }
}

impl Place {
    /// Of a body that comes or goes block by block.
    pub(crate) fn pause(&self) -> Pause {
        Pause { of: Arc::clone(&self.0), since: None }
    }

    /// Waits until it is somebody else's.
    pub(crate) async fn taken_away(&self) {
        self.0.taken_away.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.admission.taken().leave(&self.0);
    }
}

impl Pause {
    /// Its client is to go on.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.end();
        self.since = Some(now);
        self.of.admission.taken().silent.insert((now, self.of.number), Arc::clone(&self.of));
    }

    /// It has.
    pub(crate) fn end(&mut self) {
        if let Some(since) = self.since.take() {
            self.of.admission.taken().silent.remove(&(since, self.of.number));
        }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.end();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.admission.taken();
        taken.held = taken.held.saturating_sub(self.bytes);
        if let Some(source) = self.source {
            taken.answers.remove(source, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(running: usize) -> Arc<Admission> {
        Admission::new(AdmissionLimits { running, running_per_peer: 4, held: 100 })
    }

    fn at(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 5_683)
    }

    #[test]
    fn unproved_senders_share_a_quarter_of_the_places_and_a_network_of_them_a_quarter_of_that() {
        let admission = admission(64);
        let mut places = Vec::new();
        let mut of_one_network = 0;
        for host in 0..64 {
            match admission.enter(Instant::ORIGIN, at(&format!("192.0.2.{host}")), AddressState::Unvalidated, 0) {
                Ok(place) => {
                    of_one_network += 1;
                    places.push(place);
                }
                Err(busy) => assert_eq!(busy, Busy::Unvalidated),
            }
        }
        assert_eq!(of_one_network, 4);
        for network in 0..64 {
            places.extend(admission.enter(
                Instant::ORIGIN,
                at(&format!("2001:db8:{network:x}::1")),
                AddressState::Unvalidated,
                0,
            ));
        }
        assert_eq!(places.len(), 16);
        // Who has proved its address finds a place all the same.
        for host in 0..48 {
            places.push(
                admission.enter(Instant::ORIGIN, at(&format!("198.51.{host}.1")), AddressState::Validated, 0).unwrap(),
            );
        }
        assert_eq!(
            admission.enter(Instant::ORIGIN, at("203.0.113.1"), AddressState::Validated, 0).unwrap_err(),
            Busy::Server
        );
        drop(places);
        let taken = admission.taken();
        assert!((taken.handlers.all(), taken.handlers.memory()) == (0, 0) && taken.peers.is_empty());
    }

    #[test]
    fn no_peer_and_no_network_takes_all_places() {
        let admission = admission(16);
        let mut places = Vec::new();
        for port in 0..16 {
            let peer = SocketAddr::new("192.0.2.1".parse().unwrap(), port);
            for _ in 0..5 {
                places.extend(admission.enter(Instant::ORIGIN, peer, AddressState::Validated, 0));
            }
        }
        assert_eq!(places.len(), 12);
        assert_eq!(
            admission.enter(Instant::ORIGIN, at("192.0.2.9"), AddressState::Validated, 0).unwrap_err(),
            Busy::Peer
        );
        assert!(admission.enter(Instant::ORIGIN, at("192.0.3.9"), AddressState::Validated, 0).is_ok());
    }

    #[test]
    fn answers_on_their_way_are_bounded() {
        let admission = admission(1);
        let first = admission.hold(None, 60).unwrap();
        assert!(admission.hold(None, 41).is_none());
        drop(first);
        assert!(admission.hold(None, 100).is_some());
    }

    #[test]
    fn answers_for_one_network_leave_room_for_those_of_others() {
        let of = |peer, address_state| Some((at(peer), address_state));
        let (one, other) = (of("192.0.2.1", AddressState::Validated), of("198.51.100.1", AddressState::Validated));
        let admission = admission(1);
        let of_one: Vec<_> = (0..9).filter_map(|_| admission.hold(one, 20)).collect();
        assert_eq!(of_one.len(), 3);
        let of_other = admission.hold(other, 25).unwrap();
        drop((of_one, of_other));
        // Forged addresses, of however many networks, have a quarter.
        let forged = |host| of(host, AddressState::Unvalidated);
        let first = admission.hold(forged("203.0.113.1"), 20).unwrap();
        assert!(admission.hold(forged("192.0.2.1"), 6).is_none() && admission.hold(one, 60).is_some());
        drop(first);
        // A single one may be as long as there is room.
        assert!(admission.hold(one, 100).is_some());
        let taken = admission.taken();
        assert_eq!((taken.held, taken.answers.memory()), (0, 0));
    }

    /// Where nobody wants it a place is kept in silence.
    #[tokio::test]
    async fn who_is_silent_in_the_middle_of_a_body_leaves_its_place_to_who_wants_it() {
        let admission = admission(16);
        let after = |seconds| Instant::ORIGIN.after(span(Duration::from_secs(seconds)));
        let enter = |seconds, host: &str| admission.enter(after(seconds), at(host), AddressState::Validated, 0);
        let places: Vec<_> = (0..12).map(|host| enter(0, &format!("192.0.2.{host}")).unwrap()).collect();
        let mut pauses: Vec<_> = places.iter().map(Place::pause).collect();
        for (second, pause) in pauses.iter_mut().enumerate().take(3) {
            pause.begin(after(second as u64));
        }
        // The second one has gone on meanwhile.
        pauses[1].begin(after(90));
        let mut others: Vec<_> = (0..4).map(|host| enter(50, &format!("198.51.100.{host}")).unwrap()).collect();
        let mut of_others = others[0].pause();
        of_others.begin(after(50));
        assert_eq!(enter(92, "192.0.2.99").unwrap_err(), Busy::Server);
        let first = enter(93, "192.0.2.99").unwrap();
        places[0].taken_away().await;
        assert_eq!(enter(94, "203.0.113.1").unwrap_err(), Busy::Server);
        // What its network may not have more of it takes from itself, and leaves the silent of others in peace.
        others.truncate(1);
        assert_eq!(enter(94, "192.0.2.98").unwrap_err(), Busy::Peer);
        let second = enter(200, "192.0.2.98").unwrap();
        assert!(admission.taken().silent.len() == 1, "that of another network");
        pauses[1].end();
        of_others.end();
        drop((places, pauses, others, first, second));
        let taken = admission.taken();
        assert!((taken.handlers.all(), taken.silent.len()) == (0, 0) && taken.peers.is_empty());
    }

    /// A body that came in blocks is its handler's as long as that waits, and counted nowhere else by then.
    #[test]
    fn requests_whose_handlers_wait_are_bounded_in_bytes_and_short_ones_are_let_in() {
        const MIB: usize = 1 << 20;
        let admission = Admission::new(AdmissionLimits { running: 1_000, running_per_peer: 1_000, held: 64 * MIB });
        let mut places = Vec::new();
        for network in 0..100 {
            places.extend(admission.enter(
                Instant::ORIGIN,
                at(&format!("192.0.{network}.1")),
                AddressState::Validated,
                16 * MIB,
            ));
        }
        assert_eq!((places.len(), admission.taken().requests.all()), (4, 64 * MIB));
        assert!(admission.memory() > 64 * MIB);
        assert_eq!(
            admission.enter(Instant::ORIGIN, at("192.0.2.1"), AddressState::Validated, 3_000).unwrap_err(),
            Busy::Server
        );
        assert!(admission.enter(Instant::ORIGIN, at("192.0.2.1"), AddressState::Unvalidated, 1_152).is_ok());
        drop(places);
        assert_eq!(admission.taken().requests.memory(), 0);
        // Of forged addresses there are no more than a quarter, and one at the least; of one network three quarters.
        let unproved = admission.enter(Instant::ORIGIN, at("192.0.2.1"), AddressState::Unvalidated, 40 * MIB).unwrap();
        assert_eq!(
            admission.enter(Instant::ORIGIN, at("198.51.100.1"), AddressState::Unvalidated, MIB).unwrap_err(),
            Busy::Unvalidated
        );
        drop(unproved);
        let of_one: Vec<_> = (0..9)
            .filter_map(|_| admission.enter(Instant::ORIGIN, at("192.0.2.1"), AddressState::Validated, 8 * MIB).ok())
            .collect();
        assert_eq!(of_one.len(), 6);
        assert!(admission.enter(Instant::ORIGIN, at("198.51.100.1"), AddressState::Validated, 16 * MIB).is_ok());
    }
}

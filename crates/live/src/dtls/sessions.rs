//! All sessions over one socket.

mod beginning;
mod ending;

use std::{
    collections::{BTreeSet, HashMap},
    hash::BuildHasherDefault,
    ops::Range,
    sync::Arc,
};

use millpond_coap::quota::Holders;
use millpond_control::Instant;
use rustc_hash::FxHasher;
use rustls::pki_types::ServerName;

use super::{
    Origin,
    cookie::{Proof, Verdict},
    fault::Fault,
    keys::Keys,
    limits::Limits,
    record::Shape,
    session::{Out, Session, Stage},
    session_event::{Link, SessionEvent},
};
use crate::{
    Error, Stats,
    invariant::Sure,
    security::{PeerIdentity, ServerSecurity},
    udp::{Address, Outbox},
};

type Quick<K, V> = HashMap<K, V, BuildHasherDefault<FxHasher>>;

/// Bytes of a handshake under way and of a session that stands, as a thousand of each were measured: 22,300 and 21,600 by
/// certificates, 8,700 and 13,500 by pre-shared keys.
const HANDSHAKING: usize = 22_300;
const ESTABLISHED: usize = 21_600;

/// Microseconds after which a session that was spoken to and said nothing is doubted: the next request begins another.
const DOUBT: u64 = 10_000_000;
/// Microseconds after which another one is begun without a further request, beside the one that is doubted; or so many times what
/// the other side took to answer in it so far, if that is more. And how long after one such attempt the next may follow.
pub(super) const LOST: u64 = 20_000_000;
pub(super) const SLOWER: u64 = 4;

/// The alert unexpected_message (RFC 8446 §6): by this a server says that it knows no such session.
const UNEXPECTED: u8 = 10;

/// Why a peer is not asked that has no session where sessions are awaited.
const NONE_BEGUN: &str = "it has begun none with this server, which begins none by itself; ask it once it has, at the address \
                          from which it did";

/// Sessions with one address.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    established: Option<u32>,
    handshaking: Option<u32>,
}

/// All sessions over one socket.
pub(crate) struct Sessions {
    keys: Keys,
    origin: Origin,
    limits: Limits,
    sessions: Quick<u32, Session>,
    places: HashMap<Address, Place>,
    /// When each wants to be woken.
    order: BTreeSet<(Instant, u32)>,
    /// Handshakes that a server has under way, and sessions that stand, by the networks of their peers.
    handshaking: Holders<u32>,
    established: Holders<u32>,
    last: u32,
    /// What chooses among handshakes.
    chance: u64,
    room: Vec<u8>,
    /// Messages that came in, until the stack has taken them.
    plain: Vec<u8>,
    arrived: Vec<(Address, Range<usize>)>,
    pub(crate) events: Vec<SessionEvent>,
    /// Datagrams that belonged to no session, or could not be read.
    pub(crate) ignored: u64,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions")
            .field("keys", &self.keys)
            .field("established", &self.established.len())
            .finish_non_exhaustive()
    }
}

impl Sessions {
    /// None yet, with the limits that a socket has by default. Points of time count from `origin`.
    pub(crate) fn standard(keys: Keys, origin: std::time::Instant) -> Self {
        let limits = Limits::of(&keys);
        Self::new(keys, limits, origin)
    }

    /// None yet.
    pub(super) fn new(keys: Keys, limits: Limits, origin: std::time::Instant) -> Self {
        Self {
            keys,
            origin: Origin(origin),
            limits,
            sessions: Quick::default(),
            places: HashMap::new(),
            order: BTreeSet::new(),
            handshaking: Holders::default(),
            established: Holders::default(),
            last: 0,
            chance: 0,
            room: vec![0; 2_048],
            plain: Vec::new(),
            arrived: Vec::new(),
            events: Vec::new(),
            ignored: 0,
        }
    }

    /// A server makes further sessions with this.
    ///
    /// # Errors
    /// It cannot be used; then nothing has changed.
    pub(crate) fn renew(&mut self, security: &ServerSecurity) -> Result<(), Error> {
        match &mut self.keys {
            Keys::Client(_) => Ok(()),
            Keys::Server(keys) => keys.renew(security),
        }
    }

    /// When they want to be woken.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Sessions that carry messages.
    #[cfg(any(fuzzing, test))]
    pub(crate) const fn established(&self) -> usize {
        self.established.len()
    }

    /// Sessions that will be woken.
    #[cfg(test)]
    pub(crate) fn woken(&self) -> usize {
        self.order.len()
    }

    /// Handshakes under way. Who has not brought a cookie back is none of them.
    pub(crate) fn handshakes(&self) -> usize {
        self.sessions.len() - self.established.len()
    }

    /// Bytes that they take, about, counted as if all were by certificates.
    pub(crate) fn memory(&self) -> usize {
        let room = self.room.capacity() + self.plain.capacity();
        let arrived = self.arrived.capacity() * size_of::<(Address, Range<usize>)>();
        self.handshakes() * HANDSHAKING + self.established.len() * ESTABLISHED + room + arrived
    }

    /// Adds what was counted.
    pub(crate) fn count(&self, stats: &mut Stats) {
        stats.sessions += self.established.len();
        stats.handshakes += self.handshakes();
        stats.ignored += self.ignored;
        stats.memory += self.memory();
    }

    /// Who the other side of a session has proved to be.
    pub(crate) fn identity(&self, peer: Address) -> Option<&Arc<PeerIdentity>> {
        self.sessions.get(&peer.session()?)?.identity.as_ref()
    }

    /// The peer of the session that stands with an address, as the stack knows it.
    pub(crate) fn inside(&self, peer: Address) -> Option<Address> {
        self.places.get(&peer)?.established.map(|number| peer.in_session(number))
    }

    /// Sessions are begun here, not awaited.
    pub(crate) const fn begins(&self) -> bool {
        self.keys.is_client()
    }

    /// What there is with a peer for requests to a server of this name. Where sessions are awaited it is the peer that has begun
    /// one, and is asked in it whatever its name is; that it begins another one, or is silent, ends nothing.
    pub(crate) fn link(&mut self, now: Instant, peer: Address, name: &ServerName<'static>) -> Link {
        let place = self.places.get(&peer).copied().unwrap_or_default();
        if !self.begins() {
            let none = || Link::Unfit(NONE_BEGUN.into());
            return place.established.map_or_else(none, |number| Link::Established(peer.in_session(number)));
        }
        if place.handshaking.is_some() {
            return Link::Handshaking;
        }
        let Some(session) = place.established.and_then(|number| self.sessions.get_mut(&number)) else {
            return Link::None;
        };
        if session.unanswered.is_some_and(|since| micros(since, now) > DOUBT) {
            return Link::None;
        }
        match session.is_for(&self.keys, name) {
            Ok(()) => Link::Established(session.inside()),
            Err(fault) => Link::Unfit(fault.why(&self.keys)),
        }
    }

    /// A client begins a handshake.
    pub(crate) fn connect(&mut self, now: Instant, peer: Address, name: ServerName<'static>, outbox: &mut Outbox) {
        if let Some(number) = self.raise(now, peer, Some(name)) {
            self.on(now, number, outbox, |session, keys, room, out| session.wake(keys, now, room, out));
        }
    }

    /// A datagram came in. The messages in it are [taken](Self::take) next.
    pub(crate) fn receive(&mut self, now: Instant, from: Address, datagram: &[u8], outbox: &mut Outbox) {
        let place = self.places.get(&from).copied().unwrap_or_default();
        let shape = if datagram.len() > self.limits.longest { Shape::Other } else { Shape::of(datagram) };
        let (first, second) = match shape {
            Shape::Other => (None, None),
            Shape::ClientHello if !self.keys.is_client() => return self.welcome(now, from, place, datagram, outbox),
            // The keys report which of the two it is for: the other one cannot read it.
            Shape::Protected => (place.established, place.handshaking),
            // Anybody can have sent it.
            Shape::FatalAlert { description } => {
                self.doubt_alerted(now, place, outbox);
                // What is sent once more in the session that stands draws such an alert from a server that has lost it, which
                // says nothing of the one that is begun beside it.
                let is_of_handshake = description != UNEXPECTED || place.established.is_none();
                (place.handshaking.filter(|_| is_of_handshake), None)
            }
            Shape::ClientHello | Shape::Handshake | Shape::Plain => (place.handshaking.or(place.established), None),
        };
        if first.or(second).is_none() {
            self.ignored += 1;
            self.disown(shape, from, datagram, outbox);
        }
        if let (Shape::FatalAlert { description }, Some(number), true) = (shape, first, self.keys.is_client()) {
            return self.end(number, Some(&Fault::Alert(description)), outbox);
        }
        for number in [first, second].into_iter().flatten() {
            if self.on(now, number, outbox, |session, keys, room, out| session.receive(keys, now, datagram, room, out))
            {
                break;
            }
        }
    }

    /// A message goes to a peer within its session. False if that is over.
    pub(crate) fn send(&mut self, now: Instant, to: Address, plain: &[u8], outbox: &mut Outbox) -> bool {
        let Some(number) = to.session() else { return false };
        if self.sessions.get(&number).is_none_or(|session| session.stage != Stage::Standing) {
            return false;
        }
        self.on(now, number, outbox, |session, keys, room, out| session.send(keys, now, plain, room, out));
        true
    }

    /// The messages that came in, to be handed to the stack and [given back](Self::give_back).
    pub(crate) fn take(&mut self) -> (Vec<u8>, Vec<(Address, Range<usize>)>) {
        (std::mem::take(&mut self.plain), std::mem::take(&mut self.arrived))
    }

    /// The room of messages that were taken.
    pub(crate) fn give_back(&mut self, (mut plain, mut arrived): (Vec<u8>, Vec<(Address, Range<usize>)>)) {
        plain.clear();
        arrived.clear();
        (self.plain, self.arrived) = (plain, arrived);
    }

    /// What happened since this was asked last.
    pub(crate) fn take_events(&mut self) -> Vec<SessionEvent> {
        std::mem::take(&mut self.events)
    }

    /// Wakes those that are due.
    pub(crate) fn wake(&mut self, now: Instant, outbox: &mut Outbox) {
        while let Some((at, number)) = self.order.first().copied().filter(|(at, _)| *at <= now) {
            self.order.remove(&(at, number));
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            session.listed = Instant::from_micros(u64::MAX);
            let silent = micros(session.heard, now);
            if self.keys.is_client() && session.is_lost(now) {
                self.doubt(now, number, outbox);
            }
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            match session.stage {
                Stage::Standing if silent >= self.limits.idle => {
                    self.close(now, number, "the session was idle", outbox)
                }
                _ => {
                    self.on(now, number, outbox, |session, keys, room, out| session.wake(keys, now, room, out));
                }
            }
        }
    }

    /// Gives up a handshake to which nothing was said yet. False if there is none.
    pub(crate) fn cancel_handshake(&mut self, peer: Address) -> bool {
        let number = self.places.get(&peer).and_then(|place| place.handshaking);
        let unheard = number.filter(|number| self.sessions.get(number).is_some_and(Session::is_unheard));
        if let Some(number) = unheard {
            self.remove(number);
        }
        unheard.is_some()
    }

    /// Closes all sessions and gives up all handshakes.
    pub(crate) fn close_all(&mut self, now: Instant, outbox: &mut Outbox) {
        let mut numbers: Vec<u32> = self.sessions.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            self.close(now, number, "this side ended the session", outbox);
        }
    }

    /// Gives a session an input, and does what follows from it. Whether a message of the other side came of it.
    fn on(
        &mut self,
        now: Instant,
        number: u32,
        outbox: &mut Outbox,
        input: impl FnOnce(&mut Session, &Keys, &mut Vec<u8>, &mut dyn FnMut(Out<'_>)) -> Result<(), Fault>,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(&number).sure("session that is driven") else { return false };
        let (before, peer, inside) = (session.stage, session.peer, session.inside());
        let known = self.arrived.len();
        let (plain, arrived) = (&mut self.plain, &mut self.arrived);
        let done = input(session, &self.keys, &mut self.room, &mut |out| match out {
            Out::Datagram(datagram) => outbox.push(peer, datagram),
            Out::Plain(message) => {
                let start = plain.len();
                plain.extend_from_slice(message);
                arrived.push((inside, start..plain.len()));
            }
        });
        let (after, is_heard) = (session.stage, self.arrived.len() > known);
        if is_heard {
            self.trust(peer, number);
        }
        match (done, after) {
            (Err(fault), _) => self.end(number, Some(&fault), outbox),
            (Ok(()), Stage::Closed) if before != after => self.end(number, Some(&Fault::Alert(0)), outbox),
            (Ok(()), _) => {
                if before != after && after == Stage::Standing {
                    self.stands(now, number, outbox);
                }
                self.list(number);
            }
        }
        is_heard
    }

    /// Sees to it that a session is woken in time. One that stands is looked at when it may be idle.
    fn list(&mut self, number: u32) {
        let Some(session) = self.sessions.get_mut(&number).sure("session to be woken") else { return };
        let patience = (session.stage == Stage::Standing).then_some(self.limits.idle);
        let limit = patience.map(|patience| Instant::from_micros(session.heard.as_micros().saturating_add(patience)));
        let doubt = session.lost_at().filter(|_| self.keys.is_client());
        let Some(at) = session.timer.into_iter().chain(limit).chain(doubt).min() else { return };
        if at < session.listed {
            self.order.remove(&(session.listed, number));
            self.order.insert((at, number));
            session.listed = at;
        }
    }
}

pub(super) const fn micros(since: Instant, now: Instant) -> u64 {
    now.as_micros().saturating_sub(since.as_micros())
}

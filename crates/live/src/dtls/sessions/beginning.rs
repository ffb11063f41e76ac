//! How sessions begin: cookies, handshakes, and who gives way to whom.

use millpond_control::Instant;
use rustls::pki_types::ServerName;

use super::{Place, Proof, Sessions, UNEXPECTED, Verdict};
use crate::{
    dtls::{
        hello::Hello,
        record::{Shape, fatal_alert},
        session::{Session, Stage},
        session_event::{SessionChange, SessionEvent},
    },
    udp::{Address, Outbox, network_of},
};

impl Sessions {
    /// A ClientHello came to a server. Before a cookie comes back nothing is kept. A session that stands goes on until
    /// another handshake is done (RFC 6347 §4.2.8).
    pub(super) fn welcome(&mut self, now: Instant, from: Address, place: Place, datagram: &[u8], outbox: &mut Outbox) {
        let hello = Hello::of(datagram);
        let verdict = hello.zip(self.keys.cookies()).map(|(hello, cookies)| cookies.judge(now, from.peer(), &hello));
        let proof = match verdict {
            Some(Verdict::Answer(answer)) => return outbox.push(from, &answer),
            Some(Verdict::Proved(proof)) => proof,
            Some(Verdict::Ignore) | None => return self.ignored += 1,
        };
        let is_its = |number: &u32| self.sessions.get(number).is_some_and(|it| it.handshake == Some(proof.handshake));
        if let Some(number) = [place.handshaking, place.established].into_iter().flatten().find(is_its) {
            // It came once more.
            self.on(now, number, outbox, |session, keys, room, out| session.receive(keys, now, datagram, room, out));
            return;
        }
        if let Some(number) = place.handshaking {
            // The client has begun anew.
            self.remove(number);
        }
        if let Some(number) = self.raise(now, from, None) {
            self.has_proved(number, from, &proof);
            self.on(now, number, outbox, |session, keys, room, out| {
                session.begin(keys, now, (&proof, datagram), room, out)
            });
        }
    }

    pub(super) fn raise(&mut self, now: Instant, peer: Address, name: Option<ServerName<'static>>) -> Option<u32> {
        if self.places.get(&peer).is_some_and(|place| place.handshaking.is_some()) {
            return None;
        }
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.sessions.contains_key(&self.last) {
                break;
            }
        }
        let number = self.last;
        self.sessions.insert(number, Session::new(&self.keys, self.origin, now, (number, peer), name));
        self.places.entry(peer).or_default().handshaking = Some(number);
        Some(number)
    }

    /// A client begins another session beside one in which the server has not answered. Whichever is heard first stays.
    pub(super) fn doubt(&mut self, now: Instant, number: u32, outbox: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(&number).filter(|it| it.stage == Stage::Standing) else { return };
        session.doubted = Some(now);
        let (peer, name) = (session.peer, session.name().cloned());
        if let Some(handshaking) = self.raise(now, peer, name) {
            if let Some(session) = self.sessions.get_mut(&handshaking) {
                session.beside = Some(number);
            }
            self.on(now, handshaking, outbox, |session, keys, room, out| session.wake(keys, now, room, out));
        }
    }

    /// Somebody says at a client that there is no such session. Anybody can have said so: where an answer is awaited in it,
    /// that is found out, and not often.
    pub(super) fn doubt_alerted(&mut self, now: Instant, place: Place, outbox: &mut Outbox) {
        let Some(number) = place.established.filter(|_| self.keys.is_client() && place.handshaking.is_none()) else {
            return;
        };
        if self.sessions.get(&number).is_some_and(|session| session.may_be_doubted(now)) {
            self.doubt(now, number, outbox);
        }
    }

    /// A server says that it knows no such session: after a restart its clients would wait long. Never with more than came.
    pub(super) fn disown(&mut self, shape: Shape, from: Address, datagram: &[u8], outbox: &mut Outbox) {
        let alert = fatal_alert(0, UNEXPECTED);
        if shape == Shape::Protected && !self.keys.is_client() && datagram.len() >= alert.len() {
            outbox.push(from, &alert);
        }
    }

    /// The other side has said something in a session: what was begun beside it is not needed.
    pub(super) fn trust(&mut self, peer: Address, number: u32) {
        let handshaking = self.places.get(&peer).and_then(|place| place.handshaking);
        let is_beside = |handshaking: &u32| self.sessions.get(handshaking).is_some_and(|it| it.beside == Some(number));
        if let Some(handshaking) = handshaking.filter(is_beside) {
            self.remove(handshaking);
            self.events.push(SessionEvent { peer, inside: peer.in_session(number), what: SessionChange::Resumed });
        }
    }

    /// A handshake begins with an address that is proved. If there are too many another one gives way.
    pub(super) fn has_proved(&mut self, number: u32, peer: Address, proof: &Proof) {
        // A keyed hash: nobody knows it beforehand.
        let seed = proof.handshake.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.chance = self.chance.rotate_left(23) ^ seed;
        if self.handshaking.len() >= self.limits.handshaking {
            let candidates: Vec<u32> = self.handshaking.of_largest().collect();
            let chosen = self.chance.checked_rem(candidates.len() as u64).and_then(|place| usize::try_from(place).ok());
            if let Some(number) = chosen.and_then(|place| candidates.get(place)).copied() {
                self.remove(number);
            }
        }
        self.handshaking.add(network_of(peer.peer()), number);
    }

    /// A handshake is done.
    pub(super) fn stands(&mut self, now: Instant, number: u32, outbox: &mut Outbox) {
        let Some(session) = self.sessions.get(&number) else { return };
        let (peer, inside) = (session.peer, session.inside());
        let place = self.places.entry(peer).or_default();
        let before = place.established.replace(number);
        place.handshaking = None;
        let network = network_of(peer.peer());
        self.handshaking.remove(network, number);
        self.established.add(network, number);
        if let Some(before) = before {
            // The other side knows it no more.
            let was_used = self.sessions.get(&before).is_some_and(|session| session.is_used);
            self.remove(before);
            let why = match self.keys.is_client() {
                true => "the server knew its session no more, as after a restart; another one stands now",
                false => "the peer began another session",
            };
            let what = SessionChange::Ended { why: why.into(), was_used, is_ours: true };
            self.events.push(SessionEvent { peer, inside: peer.in_session(before), what });
        }
        let what = SessionChange::Established { before: before.map(|before| peer.in_session(before)) };
        self.events.push(SessionEvent { peer, inside, what });
        if self.established.len() > self.limits.established {
            let of_largest = self.established.of_largest().filter_map(|number| self.sessions.get(&number));
            let stands = |it: &&Session| it.stage == Stage::Standing && it.number != number;
            let most_silent = of_largest.filter(stands).min_by_key(|it| (it.heard, it.number));
            // The largest network may have this one alone.
            let of_all = || self.sessions.values().filter(stands).min_by_key(|it| (it.heard, it.number));
            let most_silent = most_silent.or_else(of_all);
            if let Some(number) = most_silent.map(|session| session.number) {
                self.close(now, number, "the session made room for others", outbox);
            }
        }
    }
}

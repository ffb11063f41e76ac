//! How sessions end, and what is reported of that.

use millpond_control::Instant;

use super::Sessions;
use crate::{
    dtls::{
        fault::Fault,
        session::{Out, Stage},
        session_event::{SessionChange, SessionEvent},
    },
    invariant::Sure,
    udp::{Outbox, network_of},
};

impl Sessions {
    /// Ends a session with a word to the other side.
    pub(super) fn close(&mut self, now: Instant, number: u32, why: &str, outbox: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(&number).sure("session to close") else { return };
        let (peer, inside, was_standing) = (session.peer, session.inside(), session.stage == Stage::Standing);
        let was_used = session.is_used;
        session.close(&self.keys, now, &mut self.room, &mut |out| {
            if let Out::Datagram(datagram) = out {
                outbox.push(peer, datagram);
            }
        });
        self.remove(number);
        let why = why.into();
        let what = if was_standing {
            SessionChange::Ended { why, was_used, is_ours: true }
        } else {
            SessionChange::Failed { why, timed_out: false }
        };
        self.events.push(SessionEvent { peer, inside, what });
    }

    /// A session is over, because of this if it matters to anyone.
    pub(super) fn end(&mut self, number: u32, why: Option<&Fault>, outbox: &mut Outbox) {
        let Some(session) = self.sessions.get(&number) else { return };
        let (peer, inside, stage, was_used) = (session.peer, session.inside(), session.stage, session.is_used);
        if let Some(alert) = why.and_then(|fault| session.refusal(fault)) {
            outbox.push(peer, &alert);
        }
        // What was begun beside a session says nothing of that one if nobody answers.
        let is_last_hope = self.keys.is_client() && stage == Stage::Rising && session.beside.is_none();
        let doubted =
            self.places.get(&peer).and_then(|place| place.established).filter(|it| is_last_hope && *it != number);
        self.remove(number);
        let Some(fault) = why else { return };
        match stage {
            Stage::Rising => {
                let why = fault.why(&self.keys);
                let timed_out = matches!(fault, Fault::TimedOut { .. });
                self.events.push(SessionEvent {
                    peer,
                    inside,
                    what: SessionChange::Failed { why: why.clone(), timed_out },
                });
                if let Some(doubted) = doubted {
                    self.remove(doubted);
                    self.events.push(SessionEvent {
                        peer,
                        inside: peer.in_session(doubted),
                        what: SessionChange::Ended { why, was_used: true, is_ours: false },
                    });
                }
            }
            Stage::Standing | Stage::Closed => {
                let why = match fault {
                    Fault::Alert(0) if self.keys.is_client_without_certificate() && !was_used => {
                        "the server closed the session at once; if it demands a certificate, give one and its key"
                            .into()
                    }
                    Fault::Alert(0) if self.keys.is_client() && !self.keys.knows_pre_shared() && !was_used => {
                        "the server closed the session at once; it may not accept the certificate that it was shown"
                            .into()
                    }
                    Fault::Alert(0) => "the peer closed the session".into(),
                    fault => fault.why(&self.keys),
                };
                self.events.push(SessionEvent {
                    peer,
                    inside,
                    what: SessionChange::Ended { why, was_used, is_ours: false },
                });
            }
        }
    }

    pub(super) fn remove(&mut self, number: u32) {
        let Some(session) = self.sessions.remove(&number).sure("session that ends") else { return };
        self.order.remove(&(session.listed, number));
        let Some(place) = self.places.get_mut(&session.peer).sure("place of a session") else { return };
        if place.handshaking == Some(number) {
            place.handshaking = None;
        }
        if place.established == Some(number) {
            place.established = None;
        }
        let network = network_of(session.peer.peer());
        self.handshaking.remove(network, number);
        self.established.remove(network, number);
        if place.handshaking.is_none() && place.established.is_none() {
            self.places.remove(&session.peer);
        }
    }
}

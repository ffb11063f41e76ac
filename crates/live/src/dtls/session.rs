//! One session: a state machine of DTLS, and what is known of the other side.

use std::sync::Arc;

use dimpl::{Dtls, Output, ProtocolVersion};
use millpond_control::Instant;
use rustls::pki_types::ServerName;

use super::{
    Origin,
    cookie::{Digest, Proof, agreed},
    fault::Fault,
    keys::Keys,
    record::{fatal_alert, has_finished, next_in_clear, renumber},
    sessions::{LOST, SLOWER, micros},
};
use crate::{security::PeerIdentity, udp::Address};

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The handshake is under way.
    Rising,
    /// It carries messages.
    Standing,
    /// The other side has closed it.
    Closed,
}

/// Handshakes that a wrong key can have spoilt before a client is told: its last flight may have come out of order once.
const MOST_SPOILT: u8 = 2;

/// One session.
pub(super) struct Session {
    engine: Dtls,
    origin: Origin,
    /// The other side, outside of the session.
    pub(super) peer: Address,
    pub(super) number: u32,
    pub(super) stage: Stage,
    /// Whose certificate the server must have.
    name: Option<ServerName<'static>>,
    /// Names for which the certificate was found good.
    good_for: Vec<ServerName<'static>>,
    certificate: Option<Vec<u8>>,
    /// The identity that a client named.
    named: Option<Vec<u8>>,
    pub(super) identity: Option<Arc<PeerIdentity>>,
    /// What tells a client's handshake from another one with its address.
    pub(super) handshake: Option<Digest>,
    /// Something came from the other side.
    is_heard: bool,
    /// By how much the sequence numbers of records in the clear are behind.
    behind: u64,
    /// The sequence number that an alert in the clear would have.
    clear: u64,
    spoilt: u8,
    /// Why the other side will be refused as soon as it can be informed.
    refused: Option<Fault>,
    /// It has carried a message of the other side.
    pub(super) is_used: bool,
    /// When something was heard that only the other side can have sent; before that, when it began.
    pub(super) heard: Instant,
    /// Since when it was spoken to and said nothing.
    pub(super) unanswered: Option<Instant>,
    /// When it was spoken to last.
    spoken: Instant,
    /// The longest that it took to answer, in microseconds.
    slowest: u64,
    /// When another session was begun beside it last.
    pub(super) doubted: Option<Instant>,
    /// The session that stands and is doubted, if it was begun beside one.
    pub(super) beside: Option<u32>,
    /// When the state machine wants to be asked again.
    pub(super) timer: Option<Instant>,
    /// For when it is on the list of those to be woken.
    pub(super) listed: Instant,
}

/// What comes out of a session.
pub(super) enum Out<'a> {
    /// To the other side.
    Datagram(&'a [u8]),
    /// From the other side.
    Plain(&'a [u8]),
}

impl Session {
    /// A session that is not begun. A client's has the name of the server.
    pub(super) fn new(
        keys: &Keys,
        origin: Origin,
        now: Instant,
        (number, peer): (u32, Address),
        name: Option<ServerName<'static>>,
    ) -> Self {
        Self {
            engine: keys.engine(origin.at(now)),
            origin,
            peer,
            number,
            stage: Stage::Rising,
            name,
            good_for: Vec::new(),
            certificate: None,
            named: None,
            identity: None,
            handshake: None,
            is_heard: false,
            behind: 0,
            clear: 0,
            spoilt: 0,
            refused: None,
            is_used: false,
            heard: now,
            unanswered: None,
            spoken: now,
            slowest: 0,
            doubted: None,
            beside: None,
            timer: None,
            listed: Instant::from_micros(u64::MAX),
        }
    }

    /// The other side as the stack knows it.
    pub(super) const fn inside(&self) -> Address {
        self.peer.in_session(self.number)
    }

    /// Nothing came from the other side.
    pub(super) const fn is_unheard(&self) -> bool {
        !self.is_heard
    }

    /// Whose certificate the server must have.
    pub(super) const fn name(&self) -> Option<&ServerName<'static>> {
        self.name.as_ref()
    }

    /// When another session is to be begun beside it if nothing is heard. After one attempt somebody must have spoken again:
    /// else nobody waits for an answer any more.
    pub(super) fn lost_at(&self) -> Option<Instant> {
        let since = self.unanswered.filter(|_| self.stage == Stage::Standing)?;
        let since = match self.doubted {
            Some(doubted) if doubted >= since && self.spoken <= doubted => return None,
            Some(doubted) => since.max(doubted),
            None => since,
        };
        let patience = LOST.max(self.slowest.saturating_mul(SLOWER));
        Some(Instant::from_micros(since.as_micros().saturating_add(patience)))
    }

    /// Whether that is now.
    pub(super) fn is_lost(&self, now: Instant) -> bool {
        self.lost_at().is_some_and(|at| at <= now)
    }

    /// Whether somebody who says that there is no such session is looked into.
    pub(super) fn may_be_doubted(&self, now: Instant) -> bool {
        let is_known_to_be = self.doubted.is_some_and(|doubted| micros(doubted, now) < LOST);
        self.stage == Stage::Standing && self.unanswered.is_some() && !is_known_to_be
    }

    /// A client brought a cookie back: its second ClientHello. The state machine is told what went before.
    pub(super) fn begin(
        &mut self,
        keys: &Keys,
        now: Instant,
        (proof, datagram): (&Proof, &[u8]),
        room: &mut Vec<u8>,
        out: &mut dyn FnMut(Out<'_>),
    ) -> Result<(), Fault> {
        (self.handshake, self.behind) = (Some(proof.handshake), proof.behind);
        // The numbers before were the cookie's: an alert with one of them would be taken for a copy of it.
        self.clear = proof.behind.saturating_add(1);
        agreed(proof.cookie, || {
            let at = self.origin.at(now);
            let told = self.engine.handle_timeout(at).and_then(|()| self.engine.handle_packet(&proof.first));
            told.map_or_else(|error| Fault::of(error, true), Ok)?;
            loop {
                match self.engine.poll_output(room) {
                    Output::BufferTooSmall { needed } => room.resize(needed, 0),
                    Output::Packet(answer) if answer != proof.answer => return Err(Fault::Unlike),
                    // The client has it already.
                    Output::Packet(_) => {}
                    Output::Timeout(_) => break,
                    _ => {}
                }
            }
            self.receive(keys, now, datagram, room, out)
        })
    }

    /// A datagram of the other side came in.
    pub(super) fn receive(
        &mut self,
        keys: &Keys,
        now: Instant,
        datagram: &[u8],
        room: &mut Vec<u8>,
        out: &mut dyn FnMut(Out<'_>),
    ) -> Result<(), Fault> {
        self.is_heard = true;
        let at = self.origin.at(now);
        let done = self.engine.handle_timeout(at).and_then(|()| self.engine.handle_packet(datagram));
        self.named = keys.take_named().or_else(|| self.named.take());
        let failed = done.map_or_else(|error| Fault::of(error, true), Ok);
        // What it wants said is said even if it gave up.
        self.drain(keys, now, room, out)?;
        let is_last = self.stage == Stage::Rising && self.named.is_some() && has_finished(datagram);
        if is_last && failed.is_err() {
            return Err(Fault::WrongKey);
        }
        failed?;
        if is_last {
            // A wrong key can show by nothing else than that this cannot be read.
            self.spoilt = self.spoilt.saturating_add(1);
            if self.spoilt >= MOST_SPOILT {
                return Err(Fault::WrongKey);
            }
        }
        Ok(())
    }

    /// Time has passed.
    pub(super) fn wake(
        &mut self,
        keys: &Keys,
        now: Instant,
        room: &mut Vec<u8>,
        out: &mut dyn FnMut(Out<'_>),
    ) -> Result<(), Fault> {
        let was_heard = self.is_heard;
        let done = self.engine.handle_timeout(self.origin.at(now));
        self.drain(keys, now, room, out)?;
        done.map_or_else(|error| Fault::of(error, was_heard), Ok)
    }

    /// A message goes to the other side, as one record in one datagram.
    pub(super) fn send(
        &mut self,
        keys: &Keys,
        now: Instant,
        plain: &[u8],
        room: &mut Vec<u8>,
        out: &mut dyn FnMut(Out<'_>),
    ) -> Result<(), Fault> {
        let done = self.engine.handle_timeout(self.origin.at(now));
        done.and_then(|()| self.engine.send_application_data(plain).map(drop)).map_err(Fault::Engine)?;
        // What is no confirmable message need not be answered (RFC 7252 §4.2).
        let is_confirmable = plain.first().is_some_and(|first| first & 0x30 == 0);
        if is_confirmable {
            (self.unanswered, self.spoken) = (self.unanswered.or(Some(now)), now);
        }
        self.drain(keys, now, room, out)
    }

    /// The other side is told that it ends.
    pub(super) fn close(&mut self, keys: &Keys, now: Instant, room: &mut Vec<u8>, out: &mut dyn FnMut(Out<'_>)) {
        if self.stage == Stage::Standing && self.engine.close().is_ok() {
            // It is over in either case.
            let _ = self.drain(keys, now, room, out);
        }
    }

    /// The alert that tells the other side why there will be no session.
    pub(super) fn refusal(&self, fault: &Fault) -> Option<[u8; 15]> {
        let alert = fault.alert().filter(|_| self.stage == Stage::Rising);
        alert.map(|alert| fatal_alert(self.clear, alert))
    }

    /// Whether the server's certificate is good for this name, too.
    pub(super) fn is_for(&mut self, keys: &Keys, name: &ServerName<'static>) -> Result<(), Fault> {
        let (Some(certificate), Keys::Client(keys)) = (&self.certificate, keys) else { return Ok(()) };
        if !self.good_for.contains(name) {
            keys.check(certificate, name).map_err(Fault::Certificate)?;
            self.good_for.push(name.clone());
        }
        Ok(())
    }

    fn drain(
        &mut self,
        keys: &Keys,
        now: Instant,
        room: &mut Vec<u8>,
        out: &mut dyn FnMut(Out<'_>),
    ) -> Result<(), Fault> {
        loop {
            match self.engine.poll_output(room) {
                Output::Packet(datagram) => {
                    if self.stage != Stage::Rising {
                        out(Out::Datagram(datagram));
                        continue;
                    }
                    let mut datagram = datagram.to_vec();
                    renumber(&mut datagram, self.behind);
                    self.clear = self.clear.max(next_in_clear(&datagram));
                    out(Out::Datagram(&datagram));
                }
                Output::BufferTooSmall { needed } => room.resize(needed, 0),
                Output::PeerCert(certificate) => {
                    let certificate = certificate.to_vec();
                    if let Err(error) = keys.check(&certificate, self.name.as_ref()).map_err(Fault::Certificate) {
                        let is_done_there = self.engine.protocol_version() == Some(ProtocolVersion::DTLS1_3);
                        if keys.is_client() || !is_done_there {
                            return Err(error);
                        }
                        // For a client of DTLS 1.3 the session stands already, and it believes no alert in the clear.
                        self.refused = Some(error);
                        continue;
                    }
                    self.good_for.extend(self.name.clone());
                    self.certificate = Some(certificate);
                }
                Output::Connected if self.refused.is_some() => {
                    // It is over in either case.
                    let _ = self.engine.close();
                }
                Output::Connected => {
                    self.identity = self.proved(keys)?.map(Arc::new);
                    (self.stage, self.heard) = (Stage::Standing, now);
                }
                Output::ApplicationData(plain) if self.stage == Stage::Standing => {
                    let since = self.unanswered.take().map_or(0, |since| micros(since, now));
                    (self.heard, self.is_used) = (now, true);
                    self.slowest = self.slowest.max(since);
                    out(Out::Plain(plain));
                }
                Output::CloseNotify => self.stage = Stage::Closed,
                Output::Timeout(at) => {
                    let at = self.origin.back(at);
                    let is_never = at.as_micros().saturating_sub(now.as_micros()) > NEVER;
                    // One that is due and was not taken is asked again a little later, and not at once for ever.
                    let soonest = Instant::from_micros(now.as_micros().saturating_add(SOONEST));
                    self.timer = (!is_never).then_some(at.max(soonest));
                    let is_told = self.engine.is_closing() || self.engine.is_closed();
                    return self.refused.clone().filter(|_| is_told).map_or(Ok(()), Err);
                }
                _ => {}
            }
        }
    }

    /// Who the other side has proved to be, now that the handshake is done; none if it need not prove anything.
    fn proved(&self, keys: &Keys) -> Result<Option<PeerIdentity>, Fault> {
        match (&self.certificate, &self.named, keys) {
            (Some(certificate), ..) => Ok(Some(PeerIdentity::Certificate(vec![certificate.clone().into()]))),
            (None, Some(named), Keys::Server(_)) => Ok(Some(PeerIdentity::PreSharedKey(named.clone().into()))),
            (None, _, Keys::Client(keys)) if keys.is_pre_shared() => Ok(None),
            (None, None, Keys::Server(keys)) if !keys.demands_certificate() => Ok(None),
            _ => Err(Fault::NoCertificate),
        }
    }
}

/// Microseconds after which the state machine is asked again at the soonest.
const SOONEST: u64 = 1_000;
/// Microseconds beyond which a timer of the state machine means none: a day. It tells ten years then.
const NEVER: u64 = 86_400_000_000;

//! Notifications, from being asked for to their end.

use alloc::boxed::Box;

use millpond_control::Instant;

use super::{
    Answer, CoapStack, Gone, ObserverId, Refused,
    observers::{Observer, Waiting},
    options,
    owner::Owner,
    queued_event::QueuedEvent,
    server::Pending,
    unvalidated::AddressValidation,
};
use crate::endpoint::{self, ExchangeId, Failure, Outgoing, RequestId};
use crate::invariant::Sure;
use crate::layer::{MessageLayer, Reason};
use crate::message::{Code, Kind, Token};
use crate::parts;

/// Sequence numbers have 24 bits (RFC 7641 §2).
pub(super) const SEQUENCE: u32 = (1 << 24) - 1;

impl<L: MessageLayer> CoapStack<L> {
    /// Input: the application answers a request that wants to observe, and its sender becomes an observer. `None` if it
    /// does not: the limits are reached, the answer is no success, or it does not want to. The answer is sent all the
    /// same, and says so.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn accept_observer(
        &mut self,
        now: Instant,
        id: RequestId,
        answer: &Answer<'_>,
    ) -> Result<Option<ObserverId>, Refused> {
        self.input(now);
        if id.is_of_burst() {
            return self.answer_in_bursts(now, id, answer).map(|()| None);
        }
        let Some(pending) = self.pending.get(id) else {
            return Err(Refused::Endpoint(endpoint::Refused::UnknownRequest));
        };
        if !parts::OBSERVE {
            self.respond_with(now, id, answer, None)?;
            return Ok(None);
        }
        let known = self.observer_of(pending.from, pending.token);
        let is_success = answer.code.class() == 2;
        let has_room = known.is_some() || self.has_room_for_observer(now, pending.from);
        if !pending.wants_to_observe || !is_success || !has_room {
            self.respond_with(now, id, answer, None)?;
            return Ok(None);
        }
        let known = known.and_then(|slot| self.observers.get(slot));
        let (before, confirmed_at, registered_at) =
            known.map_or((0, None, now), |known| (known.sequence, known.confirmed_at, known.registered_at));
        let sequence = before.wrapping_add(1) & SEQUENCE;
        self.respond_with(now, id, answer, Some(sequence))?;
        let limit = match pending.address_validation {
            AddressValidation::Unvalidated(_) if !self.sent.observes => return Ok(None),
            AddressValidation::Unvalidated(_) => self.sent.left,
            AddressValidation::Validated | AddressValidation::Remembered => None,
        };
        self.observer_is_gone(now, pending.from, pending.token, Gone::Replaced);
        let Pending { from, token, kind, key, asked, block2, .. } = pending;
        let observer = Observer {
            peer: from,
            token,
            kind,
            key,
            asked,
            block2,
            sequence,
            under_way: None,
            is_held: false,
            waiting: None,
            confirmed_at,
            registered_at,
            may_leave: Instant::ORIGIN,
            left: [None; 2],
            limit,
        };
        self.layer.hold_token(from, token, true);
        let layer = &self.layer;
        Ok(Some(self.observers.add(observer, |peer| layer.hash(&peer))))
    }

    /// Whether there is room for one more. Whom nothing could be sent to is not told that it observes.
    pub(super) fn has_room_for_observer(&self, now: Instant, peer: L::Peer) -> bool {
        let limits = &self.config.limits;
        let of_peer = self.observers.of_peer(peer, self.layer.hash(&peer)).count() as u32;
        self.observers.len() < limits.observers
            && of_peer < limits.observers_per_peer
            && self.layer.has_place_for(now, peer)
    }

    /// Input: an observer is forgotten without a word; over a stream it is told so by 5.03. False if it was gone before.
    pub fn remove_observer(&mut self, now: Instant, observer: ObserverId) -> bool {
        self.input(now);
        let slot = self.observers.find(observer);
        slot.is_some_and(|slot| self.end_observer(now, slot, Code::SERVICE_UNAVAILABLE))
    }

    /// The observers that are this peer.
    pub fn observers_of(&self, peer: L::Peer) -> impl Iterator<Item = ObserverId> {
        let of_peer = self.observers.of_peer(peer, self.layer.hash(&peer));
        of_peer.map(|(slot, _)| self.observers.name(slot))
    }

    /// Input: what an observer observes has a new state. If a notification is under way or may not leave yet, this one
    /// replaces what was to follow it. A code that is no success ends the observation (RFC 7641 §4.2): the observer is
    /// forgotten once that has left.
    ///
    /// # Errors
    /// An observer that is gone, and what cannot be sent or exceeds a limit. Nothing is sent then.
    pub fn notify(&mut self, now: Instant, id: ObserverId, answer: &Answer<'_>) -> Result<(), Refused> {
        self.input(now);
        options::check(answer.options)?;
        let slot = self.observers.find(id).ok_or(Refused::UnknownObserver)?;
        let Some(observer) = self.observers.get(slot) else { return Err(Refused::UnknownObserver) };
        let is_free = observer.under_way.is_none();
        let held = observer.under_way.filter(|_| observer.is_held);
        let may_leave = self.may_leave(now, observer, answer);
        // Over a stream it waits until all that came before was taken: of what nobody reads only the newest is kept.
        if is_free && may_leave <= now && !L::IS_RELIABLE {
            self.observers.wait(slot, None);
            self.observers.timers.clear(slot);
            return self.send_notification(now, slot, answer).map_err(Into::into);
        }
        let waiting = Waiting::of(answer)?;
        let limit = self.config.limits.bytes;
        let waits = self.observers.waiting_bytes_with(&waiting, observer.waiting.as_deref());
        if self.request_bytes().saturating_add(waits) > limit {
            return Err(Refused::OutOfBytes { limit });
        }
        self.observers.wait(slot, Some(Box::new(waiting)));
        if is_free {
            self.observers.timers.set(slot, may_leave);
        }
        // What has not left yet need not leave at all.
        if let Some(held) = held {
            self.layer.cancel(now, held);
        }
        Ok(())
    }

    /// When a notification may leave: confirmable ones are under NSTART instead, of the others a client gets one in a
    /// round-trip time (RFC 7641 §4.5.1). An unvalidated address, which somebody else may have registered under many tokens, gets
    /// none while another is under way.
    fn may_leave(&self, now: Instant, observer: &Observer<L::Peer>, answer: &Answer<'_>) -> Instant {
        let all = || self.observers.of_peer(observer.peer, self.layer.hash(&observer.peer)).map(|(_, other)| other);
        let is_limited = observer.limit.is_some() && !self.layer.is_validated(observer.peer);
        if is_limited && all().any(|other| other.under_way.is_some()) {
            return now.after(self.config.notify_every);
        }
        if L::IS_RELIABLE || self.kind_of(now, observer, answer) == Kind::Confirmable {
            return Instant::ORIGIN;
        }
        all().map(|other| other.may_leave).max().unwrap_or(Instant::ORIGIN)
    }

    fn kind_of(&self, now: Instant, observer: &Observer<L::Peer>, answer: &Answer<'_>) -> Kind {
        let is_last = answer.code.class() != 2;
        observer.kind_now(answer.kind, is_last, now, self.config.confirm_every)
    }

    fn send_notification(&mut self, now: Instant, slot: u32, answer: &Answer<'_>) -> Result<(), L::Refused> {
        let Some(observer) = self.observers.get(slot) else { return Ok(()) };
        let kind = self.kind_of(now, observer, answer);
        let sequence = observer.sequence.wrapping_add(1) & SEQUENCE;
        let is_last = answer.code.class() != 2;
        let (peer, token) = (observer.peer, observer.token);
        let pending = Pending::of_observer(observer);
        let answer = Answer { kind: Some(kind), ..*answer };
        let observe = (!is_last).then_some(sequence);
        let limit = observer.limit.map(|limit| observer.confirmed_at.map_or(limit, |_| limit.alone()));
        let (representation, sent) = match limit {
            Some(limit) => match self.notify_within(now, (&answer, &pending), limit, observe) {
                Some((representation, sent)) => (representation, Ok(sent)),
                None => {
                    self.gone(now, slot, Gone::Refused);
                    return Ok(());
                }
            },
            None => self.cut_to_fit(&answer, &pending, observe, |layer, message: &Outgoing<'_>| {
                layer.notify(now, peer, token, message)
            }),
        };
        let exchange = match sent {
            Ok(sent) => sent?,
            // Block 0 is never behind the end.
            Err(_) => return Ok(()),
        };
        self.counts.notifications = self.counts.notifications.saturating_add(1);
        self.keep_cut(now);
        if representation.is_long() {
            self.keep(now, pending.kept_under(), &representation);
        }
        if is_last {
            self.take_observer(now, slot);
        } else if let Some(observer) = self.observers.get_mut(slot) {
            observer.sequence = sequence;
            observer.under_way = exchange;
            observer.is_held = exchange.is_some() && kind == Kind::NonConfirmable;
            if let Some(exchange) = exchange {
                self.owners.set(exchange, Owner::Observer(slot));
            }
        }
        Ok(())
    }

    /// The newest state of what an observer observes leaves, if it waits.
    pub(super) fn send_waiting(&mut self, now: Instant, slot: u32) {
        let Some(observer) = self.observers.get(slot).filter(|observer| observer.under_way.is_none()) else { return };
        let Some(waiting) = observer.waiting.as_deref() else { return };
        let options = waiting.options.lend();
        let answer = waiting.answer(&options);
        let may_leave = self.may_leave(now, observer, &answer);
        if may_leave > now {
            return self.observers.timers.set(slot, may_leave);
        }
        drop(options);
        let Some(waiting) = self.observers.wait(slot, None).sure("representation that waits") else { return };
        let options = waiting.options.lend();
        let answer = waiting.answer(&options);
        match self.send_notification(now, slot, &answer) {
            Ok(()) => {}
            Err(why) if matches!(L::reason(&why), Reason::Message | Reason::TooLong) => {
                // It will never fit.
                self.end_observation(now, slot, Code::INTERNAL_SERVER_ERROR);
                self.gone(now, slot, Gone::Refused);
            }
            // Its connection ends, and told its observer so.
            Err(why) if L::reason(&why) == Reason::Gone => self.gone(now, slot, Gone::Closed),
            // For want of room: a little later.
            Err(_) => {
                drop(options);
                self.observers.wait(slot, Some(waiting));
                self.observers.timers.set(slot, now.after(self.config.notify_every));
            }
        }
    }

    /// A non-confirmable notification left.
    pub(super) fn notification_left(&mut self, now: Instant, exchange: ExchangeId) {
        let Some(Owner::Observer(slot)) = self.owners.take(exchange) else { return };
        let Some(peer) = self.observers.get(slot).sure("observer").map(|observer| observer.peer) else { return };
        let pause = self.layer.round_trip(peer).unwrap_or(self.config.notify_every);
        let Some(observer) = self.observers.get_mut(slot).sure("observer") else { return };
        observer.under_way = None;
        observer.has_left(exchange);
        observer.may_leave = now.after(pause);
        if observer.waiting.is_some() {
            self.send_waiting(now, slot);
        }
    }

    /// A notification that was asked for as a non-confirmable one left as a confirmable one.
    pub(crate) fn notification_is_confirmable(&mut self, exchange: ExchangeId) {
        let Some(Owner::Observer(slot)) = self.owners.get(exchange) else { return };
        if let Some(observer) = self.observers.get_mut(slot) {
            observer.is_held = false;
        }
    }

    /// A confirmable notification was acknowledged, or not.
    pub(crate) fn notification_ended(&mut self, now: Instant, exchange: ExchangeId, failure: Option<Failure>) {
        let Some(Owner::Observer(slot)) = self.owners.take(exchange) else { return };
        let Some(observer) = self.observers.get_mut(slot).sure("observer") else { return };
        observer.under_way = None;
        match failure {
            None | Some(Failure::Cancelled) => {
                observer.confirmed_at = if failure.is_none() { Some(now) } else { observer.confirmed_at };
                if observer.waiting.is_some() {
                    self.send_waiting(now, slot);
                }
            }
            Some(Failure::Reset) => self.gone(now, slot, Gone::Rejected),
            Some(_) => {
                let peer = observer.peer;
                self.gone(now, slot, Gone::Unreachable);
                if !self.layer.is_validated(peer) {
                    // It has never answered anything: somebody may have registered it under all its tokens.
                    // Those that wait for the others first: where one is cancelled the next one leaves.
                    let hash = self.layer.hash(&peer);
                    while let Some(slot) = self.observers.of_peer(peer, hash).map(|(slot, _)| slot).max() {
                        self.gone(now, slot, Gone::Unreachable);
                    }
                }
            }
        }
    }

    /// A non-confirmable message was answered with a reset.
    pub(crate) fn notification_rejected(&mut self, now: Instant, from: L::Peer, exchange: ExchangeId) {
        let hash = self.layer.hash(&from);
        let is_it = |observer: &Observer<L::Peer>| observer.left.contains(&Some(exchange));
        let mut found = self.observers.of_peer(from, hash).filter(|(_, observer)| is_it(observer));
        if let Some(slot) = found.next().map(|(slot, _)| slot) {
            drop(found);
            self.gone(now, slot, Gone::Rejected);
        }
    }

    /// The observer with this token is no more, if there is one.
    pub(crate) fn observer_is_gone(&mut self, now: Instant, peer: L::Peer, token: Token, why: Gone) {
        if let Some(slot) = self.observer_of(peer, token) {
            self.gone(now, slot, why);
        }
    }

    pub(super) fn observer_of(&self, peer: L::Peer, token: Token) -> Option<u32> {
        let hash = self.layer.hash(&peer);
        let mut all = self.observers.of_peer(peer, hash);
        all.find(|(_, observer)| observer.token == token).map(|(slot, _)| slot)
    }

    /// The layer has ended: so have all observations that it did not end itself.
    pub(super) fn all_gone(&mut self, now: Instant) {
        for slot in self.observers.slots() {
            self.gone(now, slot, Gone::Closed);
        }
    }

    /// An observer is no longer served, and is told so where that is possible.
    pub(super) fn end_observer(&mut self, now: Instant, slot: u32, code: Code) -> bool {
        self.end_observation(now, slot, code);
        self.take_observer(now, slot).is_some()
    }

    fn end_observation(&mut self, now: Instant, slot: u32, code: Code) {
        if let Some(observer) = self.observers.get(slot) {
            self.layer.end_observation(now, observer.peer, observer.token, code);
        }
    }

    fn gone(&mut self, now: Instant, slot: u32, why: Gone) {
        let observer = self.observers.name(slot);
        if let Some(peer) = self.take_observer(now, slot) {
            self.counts.observers_gone = self.counts.observers_gone.saturating_add(1);
            self.events.push_back(QueuedEvent::ObserverGone { observer, peer, why });
        }
    }

    /// Forgets an observer; what is under way to it is cancelled.
    pub(super) fn take_observer(&mut self, now: Instant, slot: u32) -> Option<L::Peer> {
        let layer = &self.layer;
        let observer = self.observers.remove(slot, |peer| layer.hash(&peer))?;
        self.layer.hold_token(observer.peer, observer.token, false);
        if let Some(exchange) = observer.under_way {
            self.cancel_exchange(now, exchange);
        }
        Some(observer.peer)
    }
}

//! The client's side of a stack.

use alloc::{boxed::Box, vec::Vec};

use millpond_control::{Instant, Purpose};

use super::{
    ClientRequest, ClientRequestId, CoapStack, Progress, Refused, RequestFailure,
    options::Read,
    owner::Owner,
    pending_request::{Aim, PendingRequest, Then, Watch},
    queued_event::QueuedEvent,
    request_table::Exchanged,
};
use crate::endpoint::{ExchangeId, Failure};
use crate::invariant::Sure;
use crate::layer::{MessageLayer, Reason, RequestMessage};
use crate::message::{NoResponse, Token};
use crate::newest::Newest;
use crate::output::Entry;
use crate::parts;

/// Freshness of a representation that does not tell it, seconds (RFC 7252 §5.10.5).
const MAX_AGE: u32 = 60;

/// The third word of chance after node and peer: not that of any exchange.
const RENEWAL: u32 = 0x103;

impl<L: MessageLayer> CoapStack<L> {
    /// Input: a request with its whole body is to be sent, and the whole response is wanted, or every representation.
    ///
    /// # Errors
    /// What cannot be sent or exceeds a limit. Nothing is sent then.
    pub fn request(
        &mut self,
        now: Instant,
        to: L::Peer,
        request: &ClientRequest<'_>,
    ) -> Result<ClientRequestId, Refused> {
        self.input(now);
        parts::needed(parts::CLIENT, "client")?;
        parts::needed(parts::OBSERVE || !request.observe, "observe")?;
        parts::needed(parts::BLOCK || (request.early.is_none() && request.piece.is_none()), "block")?;
        parts::needed(parts::Q_BLOCK || !request.q_block, "q-block")?;
        parts::needed(parts::NO_RESPONSE || NoResponse::of(request.options) == NoResponse::NONE, "no-response")?;
        let limits = self.config.limits;
        if self.requests.len() >= limits.client_requests {
            return Err(Refused::TooManyRequests { limit: limits.client_requests });
        }
        let uploads = |other: &PendingRequest<L::Peer>| other.to == to && other.is_uploading();
        let is_tagged = parts::BLOCK
            && request.body.len() > request.upload.bytes() as usize
            && self.requests.slots.iter().any(|(_, other)| other.as_deref().is_some_and(uploads));
        self.requests.count = self.requests.count.wrapping_add(1);
        let pending =
            PendingRequest::new(to, request, is_tagged.then_some(self.requests.count), self.layer.room().is_some())?;
        if parts::Q_BLOCK
            && request.q_block
            && !pending.limits_responses
            && !request.observe
            && request.piece.is_none()
            && self.may_burst(to)
        {
            return self.begin_burst(now, pending, request);
        }
        if self.waiting_bytes().saturating_add(pending.memory()) > limits.bytes {
            return Err(Refused::OutOfBytes { limit: limits.bytes });
        }
        let mut pending = Box::new(pending);
        let exchange = self.send(now, &mut pending, true).map_err(|why| match why {
            RequestFailure::Refused(refused) => Refused::Endpoint(refused),
            RequestFailure::Connection(refused) => Refused::Connection(refused),
            _ => Refused::OutOfBytes { limit: limits.bytes },
        })?;
        let slot = self.requests.slots.put(None);
        self.is_under_way(slot, exchange);
        self.requests.put_back(slot, pending);
        self.counts.client_requests = self.counts.client_requests.saturating_add(1);
        Ok(self.requests.name(slot))
    }

    /// The next message of a request leaves. Only the first one may find that too many wait: a request has one under way. `None`
    /// if it has to wait for others to end, or for what the other side says it takes.
    fn send(
        &mut self,
        now: Instant,
        pending: &mut PendingRequest<L::Peer>,
        is_first: bool,
    ) -> Result<Option<ExchangeId>, RequestFailure> {
        let (to, layer) = (pending.to, &mut self.layer);
        let (aim, place) = match pending.registers {
            true => (Aim::Register, RequestMessage::Subscription),
            false => (Aim::Next, if is_first { RequestMessage::First } else { RequestMessage::Next }),
        };
        if let Some(room) = layer.room() {
            if !room.is_settled && pending.is_several_blocks() {
                return Ok(None);
            }
            pending.keep_to(&room);
        }
        loop {
            let refused = match pending.request(aim, |request| layer.request(now, to, request, place))? {
                Ok(exchange) => {
                    pending.exchange = Some(exchange);
                    pending.has_next = false;
                    pending.has_left = true;
                    return Ok(Some(exchange));
                }
                Err(refused) => refused,
            };
            match (L::reason(&refused), layer.room()) {
                (Reason::NoRoom, Some(_)) => return Ok(None),
                (Reason::TooLong, Some(room)) if !room.is_settled => return Ok(None),
                (Reason::TooLong, Some(room)) if pending.cut(&room) => {}
                _ => return Err(refused.into()),
            }
        }
    }

    /// A message of a request was sent, or waits.
    fn is_under_way(&mut self, slot: u32, exchange: Option<ExchangeId>) {
        match exchange {
            Some(exchange) => self.owners.set(exchange, Owner::Request(slot)),
            None => self.requests.hold(slot),
        }
    }

    /// Something ended, or is known now: of the requests that wait for that so many are tried again.
    pub(crate) fn try_again(&mut self, now: Instant, most: usize) {
        // One that still has to wait is held again.
        for _ in 0..most.min(self.requests.held()) {
            let Some(slot) = self.requests.next_held() else { return };
            self.go_on(now, slot);
        }
    }

    /// A request has something to send.
    pub(super) fn go_on(&mut self, now: Instant, slot: u32) {
        let Some(mut pending) = self.requests.take(slot) else { return };
        if !pending.has_next {
            return self.requests.put_back(slot, pending);
        }
        match self.send(now, &mut pending, false) {
            Ok(exchange) => {
                self.is_under_way(slot, exchange);
                self.requests.put_back(slot, pending);
            }
            Err(why) => {
                let copies = u8::from(L::IS_RELIABLE && pending.has_left);
                self.fail(now, slot, *pending, why, copies);
            }
        }
    }

    /// A registration is to be renewed.
    pub(super) fn renew(&mut self, now: Instant, slot: u32) {
        let Some(mut pending) = self.requests.take(slot) else { return };
        if let Some(watch) = pending.watch.filter(|_| pending.renewal.is_none()) {
            let (to, layer) = (pending.to, &mut self.layer);
            let place = RequestMessage::Subscription;
            match pending.request(Aim::Renew(watch.token), |request| layer.request(now, to, request, place)) {
                Ok(Ok(exchange)) => {
                    pending.renewal = Some(exchange);
                    pending.was_notified = false;
                    self.owners.set(exchange, Owner::Request(slot));
                }
                // For want of room: a little later.
                _ => {
                    let renew_at = self.renewal(now, 0);
                    pending.watch = Some(Watch { renew_at, ..watch });
                }
            }
        }
        self.requests.put_back(slot, pending);
    }

    /// When to renew what is fresh for so many seconds. A stream that stands keeps its observations.
    fn renewal(&mut self, now: Instant, max_age: u32) -> Instant {
        if L::IS_RELIABLE {
            return Instant::NEVER;
        }
        let (low, high) = self.config.renew_after;
        self.requests.renewals = self.requests.renewals.wrapping_add(1);
        let place = [self.layer.node(), u32::MAX, self.requests.renewals, RENEWAL];
        let jitter = self.chance.at(Purpose::Dither, place).between(low, high);
        let fresh = u64::from(max_age).saturating_mul(1_000_000);
        Instant::from_micros(now.as_micros().saturating_add(fresh)).after(jitter)
    }

    /// An exchange is over: whose it was, if it was a request's. What waited for it goes first, and may get its slot in the layer.
    pub(super) fn exchange_ended(&mut self, now: Instant, exchange: ExchangeId) -> Option<u32> {
        let owner = self.owners.take(exchange);
        self.try_again(now, 1);
        match owner? {
            Owner::Request(slot) => Some(slot),
            Owner::Observer(_) => None,
        }
    }

    /// A request of ours was answered.
    pub(crate) fn response_came(
        &mut self,
        now: Instant,
        entry: Entry<L::Peer>,
        exchange: ExchangeId,
        exchanged: Exchanged,
    ) {
        let Some(slot) = self.exchange_ended(now, exchange) else { return };
        let Some(mut pending) = self.requests.take(slot).sure("request that has an exchange") else { return };
        let Some(message) = self.layer.message(&entry).sure("message of a response") else { return };
        let Read { observe, max_age, .. } = Read::of(&message, self.layer.room());
        let (token, is_success) = (message.token, message.code.class() == 2);
        let is_renewal = parts::OBSERVE && pending.renewal == Some(exchange);
        if is_renewal {
            pending.renewal = None;
            // A notification may have overtaken it (RFC 7641 §3.4). If none came, an older number means a server that
            // has begun anew.
            let newer = pending.watch.filter(|watch| {
                pending.was_notified
                    && is_success
                    && !self.layer.keeps_order(exchange)
                    && observe.is_some_and(|sequence| !watch.newest.is_before(sequence, now))
            });
            if let Some(watch) = newer {
                let renew_at = self.renewal(now, max_age.unwrap_or(MAX_AGE));
                pending.watch = Some(Watch { subscription: exchange, token, renew_at, ..watch });
                self.owners.take(watch.subscription);
                self.owners.set(exchange, Owner::Request(slot));
                self.counts.stale = self.counts.stale.saturating_add(1);
                return self.requests.put_back(slot, pending);
            }
            self.stop_fetching(now, &mut pending);
        } else {
            pending.exchange = None;
        }
        if parts::OBSERVE && (is_renewal || pending.registers) {
            pending.registers = false;
            pending.watch = None;
            match observe.filter(|_| is_success) {
                Some(sequence) => {
                    let renew_at = self.renewal(now, max_age.unwrap_or(MAX_AGE));
                    pending.watch =
                        Some(Watch { subscription: exchange, token, newest: Newest { sequence, at: now }, renew_at });
                    self.owners.set(exchange, Owner::Request(slot));
                }
                None => self.layer.cancel(now, exchange),
            }
        }
        self.take_message(now, slot, pending, entry, exchanged);
    }

    /// A renewal was answered by what is older than a notification to it, which was taken.
    pub(crate) fn renewal_was_overtaken(&mut self, now: Instant, exchange: ExchangeId) {
        let Some(slot) = self.exchange_ended(now, exchange) else { return };
        let Some(mut pending) = self.requests.take(slot).sure("request that has an exchange") else { return };
        pending.renewal = None;
        if let Some(watch) = &mut pending.watch {
            self.owners.take(watch.subscription);
            watch.subscription = exchange;
            self.owners.set(exchange, Owner::Request(slot));
        }
        self.counts.stale = self.counts.stale.saturating_add(1);
        self.requests.put_back(slot, pending);
    }

    /// A notification came, or something else on the token of an observation.
    pub(crate) fn additional_came(&mut self, now: Instant, entry: Entry<L::Peer>, exchange: ExchangeId) {
        if parts::GROUPS && self.groups.is_one(exchange) {
            return self.group_answer_came(now, entry, exchange);
        }
        if !parts::OBSERVE {
            return;
        }
        let Some(Owner::Request(slot)) = self.owners.get(exchange) else { return };
        let Some(mut pending) = self.requests.take(slot).sure("request that has a subscription") else { return };
        let Some(watch) = pending.watch.filter(|watch| watch.subscription == exchange) else {
            return self.requests.put_back(slot, pending);
        };
        let Some(message) = self.layer.message(&entry).sure("message of a response") else { return };
        let Read { observe, max_age, .. } = Read::of(&message, self.layer.room());
        let is_success = message.code.class() == 2;
        match observe.filter(|_| is_success) {
            Some(sequence) if !self.layer.keeps_order(exchange) && !watch.newest.is_before(sequence, now) => {
                self.counts.stale = self.counts.stale.saturating_add(1);
                return self.requests.put_back(slot, pending);
            }
            Some(sequence) => {
                let renew_at = self.renewal(now, max_age.unwrap_or(MAX_AGE));
                pending.watch = Some(Watch { newest: Newest { sequence, at: now }, renew_at, ..watch });
                pending.was_notified = true;
            }
            // The last one (RFC 7641 §4.2).
            None => {
                pending.watch = None;
                self.cancel_exchange(now, exchange);
                if let Some(renewal) = pending.renewal.take() {
                    self.cancel_exchange(now, renewal);
                }
            }
        }
        self.stop_fetching(now, &mut pending);
        self.take_message(now, slot, pending, entry, Exchanged::default());
    }

    /// What comes of an exchange is nobody's any more.
    pub(super) fn cancel_exchange(&mut self, now: Instant, exchange: ExchangeId) {
        self.owners.take(exchange);
        self.layer.cancel(now, exchange);
    }

    /// Nothing more is wanted of what was cut on its way.
    fn stop_outer(&mut self, now: Instant, pending: &mut PendingRequest<L::Peer>) {
        for outer in core::mem::take(&mut pending.outer) {
            self.cancel_exchange(now, outer.under_way);
        }
    }

    /// What was being fetched is out of date.
    fn stop_fetching(&mut self, now: Instant, pending: &mut PendingRequest<L::Peer>) {
        if let Some(fetching) = pending.exchange.take() {
            self.cancel_exchange(now, fetching);
            pending.outer.retain(|outer| outer.under_way != fetching);
        }
        pending.begin_anew();
    }

    /// A request has got a message, and is in no slot.
    fn take_message(
        &mut self,
        now: Instant,
        slot: u32,
        mut pending: Box<PendingRequest<L::Peer>>,
        entry: Entry<L::Peer>,
        exchanged: Exchanged,
    ) {
        let Some(message) = self.layer.message(&entry).sure("message of a response") else { return };
        let then = pending.take(&message, &Read::of(&message, self.layer.room()));
        let gathers = pending.gathers.filter(|_| parts::GROUPS);
        let has_room = match (&then, gathers) {
            (Then::Send, Some(_)) => self.has_room_for_rest(now, &pending),
            _ => self.waiting_bytes().saturating_add(pending.memory()) <= self.config.limits.bytes,
        };
        match then {
            Then::Send if !parts::BLOCK => {}
            Then::Send if !has_room => self.fail(now, slot, *pending, RequestFailure::OutOfBytes, 0),
            Then::Send => {
                pending.has_next = true;
                self.requests.put_back(slot, pending);
                self.go_on(now, slot);
            }
            Then::Fail(why) => self.fail(now, slot, *pending, why, exchanged.copies),
            Then::Done(body) => {
                if let Some(group) = gathers {
                    self.requests.remove(slot);
                    return self.group_answer_ended(group, QueuedEvent::GroupAnswer { entry, group, body });
                }
                let (request, goes_on) = (self.requests.name(slot), pending.watch.is_some());
                if goes_on {
                    pending.deadline = None;
                    pending.begin_anew();
                    self.requests.put_back(slot, pending);
                } else {
                    self.stop_outer(now, &mut pending);
                    self.requests.remove(slot);
                }
                self.events.push_back(QueuedEvent::Answer { entry, request, body, goes_on, exchanged });
            }
        }
    }

    /// A request of ours ended without an answer.
    pub(crate) fn request_failed(&mut self, now: Instant, exchange: ExchangeId, why: RequestFailure, copies: u8) {
        if let Some(slot) = self.exchange_ended(now, exchange) {
            self.exchange_failed(now, slot, why, copies);
        }
    }

    /// A message of a request failed.
    pub(super) fn exchange_failed(&mut self, now: Instant, slot: u32, why: RequestFailure, copies: u8) {
        if let Some(pending) = self.requests.take(slot).sure("request that has an exchange") {
            match why {
                RequestFailure::Exchange(Failure::NoResponse) if parts::NO_RESPONSE && pending.limits_responses => {
                    self.is_unanswered(now, slot, *pending);
                }
                why => self.fail(now, slot, *pending, why, copies),
            }
        }
    }

    /// The layer has ended: so have all requests that it did not end itself.
    pub(super) fn fail_all(&mut self, now: Instant, why: RequestFailure) {
        for slot in self.requests.slots.iter().map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.exchange_failed(now, slot, why, 0);
        }
    }

    /// A request, which is in no slot, ends without an answer.
    pub(super) fn fail(
        &mut self,
        now: Instant,
        slot: u32,
        pending: PendingRequest<L::Peer>,
        why: RequestFailure,
        copies: u8,
    ) {
        let (request, to, gathers) = (self.requests.name(slot), pending.to, pending.gathers.filter(|_| parts::GROUPS));
        // Where there are no resets, what the server sends on is stopped by a word alone.
        self.cancel_exchanges(now, pending, L::IS_RELIABLE);
        self.requests.remove(slot);
        if let Some(group) = gathers {
            return self.group_answer_ended(group, QueuedEvent::GroupAnswerLost { group, from: to, why });
        }
        self.counts.failed = self.counts.failed.saturating_add(1);
        self.events.push_back(QueuedEvent::Failed { request, to, why, copies });
    }

    /// Nothing more is wanted of a request.
    pub(super) fn cancel_exchanges(&mut self, now: Instant, mut pending: PendingRequest<L::Peer>, deregisters: bool) {
        self.stop_outer(now, &mut pending);
        if let Some(burst) = pending.burst.filter(|_| parts::Q_BLOCK) {
            self.cancel_burst(burst);
        }
        // One that was not answered yet may have been heard.
        let registering =
            pending.exchange.filter(|_| pending.registers).and_then(|exchange| self.layer.token_of(exchange));
        for exchange in [pending.exchange, pending.renewal].into_iter().flatten() {
            self.cancel_exchange(now, exchange);
        }
        if let Some(watch) = pending.watch.filter(|_| parts::OBSERVE) {
            self.cancel_exchange(now, watch.subscription);
        }
        let token = pending.watch.map(|watch| watch.token).or(registering);
        if let Some(token) = token.filter(|_| parts::OBSERVE && deregisters) {
            self.deregister(now, pending, token);
        }
    }

    /// The server is told that an observation is over.
    pub(super) fn deregister(&mut self, now: Instant, mut pending: PendingRequest<L::Peer>, token: Token) {
        let (to, layer) = (pending.to, &mut self.layer);
        // If there is no room for it, the next notification is answered with a reset, or not heeded.
        let _ =
            pending.request(Aim::Deregister(token), |request| layer.request(now, to, request, RequestMessage::First));
    }

    /// Input: the application no longer wants an answer. The request ends as [`RequestFailure::Cancelled`](super::RequestFailure::Cancelled); of an observation the
    /// server is told so (RFC 7641 §3.6). False if the request was over before.
    pub fn cancel(&mut self, now: Instant, request: ClientRequestId) -> bool {
        self.input(now);
        self.cancel_request(now, request, true)
    }

    /// Input: as [`cancel`](Self::cancel), without a word to the server: a notification that comes all the same is answered with a reset. Where
    /// there is none, over a stream, the server is told.
    pub fn forget(&mut self, now: Instant, request: ClientRequestId) -> bool {
        self.input(now);
        self.cancel_request(now, request, L::IS_RELIABLE)
    }

    /// The application no longer wants a request.
    pub(super) fn cancel_request(&mut self, now: Instant, id: ClientRequestId, deregisters: bool) -> bool {
        if self.requests.find(id).is_none() {
            return false;
        }
        let Some(pending) = self.requests.take(id.slot).sure("request of a name that is good") else { return false };
        let to = pending.to;
        self.cancel_exchanges(now, *pending, deregisters);
        self.requests.remove(id.slot);
        self.counts.failed = self.counts.failed.saturating_add(1);
        self.events.push_back(QueuedEvent::Failed { request: id, to, why: RequestFailure::Cancelled, copies: 0 });
        true
    }

    /// The timer of a request ran out.
    pub(super) fn request_is_due(&mut self, now: Instant, slot: u32) {
        self.requests.timers.clear(slot);
        let Some(mut pending) = self.requests.take(slot).sure("request whose timer ran out") else { return };
        if pending.deadline.is_some_and(|deadline| deadline <= now) {
            if self.may_be_unanswered(&pending) {
                return self.is_unanswered(now, slot, *pending);
            }
            return self.fail(now, slot, *pending, RequestFailure::Deadline, 0);
        }
        if parts::OBSERVE
            && let Some(watch) = &mut pending.watch
            && watch.renew_at <= now
        {
            watch.renew_at = Instant::NEVER;
            self.requests.put_back(slot, pending);
            return self.renew(now, slot);
        }
        self.requests.put_back(slot, pending);
    }

    pub(super) fn progress_of(&self, id: ClientRequestId) -> Option<Progress> {
        let pending = self.requests.find(id)?;
        pending
            .burst
            .filter(|_| parts::Q_BLOCK)
            .map_or_else(|| Some(pending.progress()), |burst| self.progress_of_burst(burst))
    }

    pub(super) fn name_of(&self, slot: u32) -> ClientRequestId {
        self.requests.name(slot)
    }
}

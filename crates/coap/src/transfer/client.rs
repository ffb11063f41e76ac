//! The client's side of a stack.

use alloc::{boxed::Box, vec::Vec};

use millpond_control::{Instant, Purpose};

use super::{
    Ask, AskFailure, AskId, CoapStack, Progress, Refused,
    asked::{Aim, Asked, Then, Watch},
    asks::Exchanged,
    options::Read,
    owner::Owner,
    told::Told,
};
use crate::endpoint::{ExchangeId, Failure};
use crate::invariant::Sure;
use crate::layer::{InAsk, MessageLayer, Reason};
use crate::message::{NoResponse, Token};
use crate::newest::Newest;
use crate::parts;

/// Freshness of a representation that does not tell it, seconds (RFC 7252 §5.10.5).
const MAX_AGE: u32 = 60;

/// The third word of chance after node and peer: not that of any exchange.
const RENEWAL: u32 = 0x103;

impl<L: MessageLayer> CoapStack<L> {
    pub(super) fn begin(&mut self, now: Instant, to: L::Peer, ask: &Ask<'_>) -> Result<AskId, Refused> {
        parts::needed(parts::CLIENT, "client")?;
        parts::needed(parts::OBSERVE || !ask.observe, "observe")?;
        parts::needed(parts::BLOCK || (ask.early.is_none() && ask.piece.is_none()), "block")?;
        parts::needed(parts::Q_BLOCK || !ask.q_block, "q-block")?;
        parts::needed(parts::NO_RESPONSE || NoResponse::of(ask.options) == NoResponse::NONE, "no-response")?;
        let limits = self.config.limits;
        if self.asks.len() >= limits.asks {
            return Err(Refused::TooManyAsks { limit: limits.asks });
        }
        let uploads = |other: &Asked<L::Peer>| other.to == to && other.is_uploading();
        let is_tagged = parts::BLOCK
            && ask.body.len() > ask.upload.bytes() as usize
            && self.asks.slots.iter().any(|(_, other)| other.as_deref().is_some_and(uploads));
        self.asks.count = self.asks.count.wrapping_add(1);
        let asked = Asked::new(to, ask, is_tagged.then_some(self.asks.count), self.layer.room().is_some())?;
        if parts::Q_BLOCK
            && ask.q_block
            && !asked.limits_responses
            && !ask.observe
            && ask.piece.is_none()
            && self.may_burst(to)
        {
            return self.begin_burst(now, asked, ask);
        }
        if self.waiting_bytes().saturating_add(asked.memory()) > limits.bytes {
            return Err(Refused::OutOfBytes { limit: limits.bytes });
        }
        let mut asked = Box::new(asked);
        let exchange = self.send(now, &mut asked, true).map_err(|why| match why {
            AskFailure::Refused(refused) => Refused::Endpoint(refused),
            AskFailure::Connection(refused) => Refused::Connection(refused),
            _ => Refused::OutOfBytes { limit: limits.bytes },
        })?;
        let slot = self.asks.slots.put(None);
        self.is_under_way(slot, exchange);
        self.asks.put_back(slot, asked);
        self.counts.asks = self.counts.asks.saturating_add(1);
        Ok(self.asks.name(slot))
    }

    /// The next request of an ask leaves. Only the first one may find that too many wait: an ask has one under way. `None`
    /// if it has to wait for others to end, or for what the other side says it takes.
    fn send(
        &mut self,
        now: Instant,
        asked: &mut Asked<L::Peer>,
        is_first: bool,
    ) -> Result<Option<ExchangeId>, AskFailure> {
        let (to, layer) = (asked.to, &mut self.layer);
        let (aim, place) = match asked.registers {
            true => (Aim::Register, InAsk::Subscription),
            false => (Aim::Next, if is_first { InAsk::First } else { InAsk::Next }),
        };
        if let Some(room) = layer.room() {
            if !room.is_settled && asked.is_several_blocks() {
                return Ok(None);
            }
            asked.keep_to(&room);
        }
        loop {
            let refused = match asked.request(aim, |request| layer.request(now, to, request, place))? {
                Ok(exchange) => {
                    asked.exchange = Some(exchange);
                    asked.has_next = false;
                    asked.has_left = true;
                    return Ok(Some(exchange));
                }
                Err(refused) => refused,
            };
            match (L::reason(&refused), layer.room()) {
                (Reason::NoRoom, Some(_)) => return Ok(None),
                (Reason::TooLong, Some(room)) if !room.is_settled => return Ok(None),
                (Reason::TooLong, Some(room)) if asked.cut(&room) => {}
                _ => return Err(refused.into()),
            }
        }
    }

    /// A request of an ask was sent, or waits.
    fn is_under_way(&mut self, slot: u32, exchange: Option<ExchangeId>) {
        match exchange {
            Some(exchange) => self.owners.set(exchange, Owner::Ask(slot)),
            None => self.asks.hold(slot),
        }
    }

    /// Something ended, or is known now: of the asks that wait for that so many are tried again.
    pub(crate) fn try_again(&mut self, now: Instant, most: usize) {
        // One that still has to wait is held again.
        for _ in 0..most.min(self.asks.held()) {
            let Some(slot) = self.asks.next_held() else { return };
            self.go_on(now, slot);
        }
    }

    /// An ask has something to send.
    pub(super) fn go_on(&mut self, now: Instant, slot: u32) {
        let Some(mut asked) = self.asks.take(slot) else { return };
        if !asked.has_next {
            return self.asks.put_back(slot, asked);
        }
        match self.send(now, &mut asked, false) {
            Ok(exchange) => {
                self.is_under_way(slot, exchange);
                self.asks.put_back(slot, asked);
            }
            Err(why) => {
                let copies = u8::from(L::IS_RELIABLE && asked.has_left);
                self.fail(now, slot, *asked, why, copies);
            }
        }
    }

    /// A registration is to be renewed.
    pub(super) fn renew(&mut self, now: Instant, slot: u32) {
        let Some(mut asked) = self.asks.take(slot) else { return };
        if let Some(watch) = asked.watch.filter(|_| asked.renewal.is_none()) {
            let (to, layer) = (asked.to, &mut self.layer);
            let place = InAsk::Subscription;
            match asked.request(Aim::Renew(watch.token), |request| layer.request(now, to, request, place)) {
                Ok(Ok(exchange)) => {
                    asked.renewal = Some(exchange);
                    asked.was_notified = false;
                    self.owners.set(exchange, Owner::Ask(slot));
                }
                // For want of room: a little later.
                _ => {
                    let renew_at = self.renewal(now, 0);
                    asked.watch = Some(Watch { renew_at, ..watch });
                }
            }
        }
        self.asks.put_back(slot, asked);
    }

    /// When to renew what is fresh for so many seconds. A stream that stands keeps its observations.
    fn renewal(&mut self, now: Instant, max_age: u32) -> Instant {
        if L::IS_RELIABLE {
            return Instant::NEVER;
        }
        let (low, high) = self.config.renew_after;
        self.asks.renewals = self.asks.renewals.wrapping_add(1);
        let place = [self.layer.node(), u32::MAX, self.asks.renewals, RENEWAL];
        let jitter = self.chance.at(Purpose::Dither, place).between(low, high);
        let fresh = u64::from(max_age).saturating_mul(1_000_000);
        Instant::from_micros(now.as_micros().saturating_add(fresh)).after(jitter)
    }

    /// An exchange is over: whose it was, if it was an ask's. What waited for it goes first, and may get its slot in the layer.
    fn exchange_ended(&mut self, now: Instant, exchange: ExchangeId) -> Option<u32> {
        let owner = self.owners.take(exchange);
        self.try_again(now, 1);
        match owner? {
            Owner::Ask(slot) => Some(slot),
            Owner::Observer(_) => None,
        }
    }

    /// A request of ours was answered.
    pub(crate) fn response_came(&mut self, now: Instant, entry: L::Entry, exchange: ExchangeId, exchanged: Exchanged) {
        let Some(slot) = self.exchange_ended(now, exchange) else { return };
        let Some(mut asked) = self.asks.take(slot).sure("ask that has an exchange") else { return };
        let Some(message) = self.layer.message(&entry).sure("message of a response") else { return };
        let Read { observe, max_age, .. } = Read::of(&message, self.layer.room());
        let (token, is_success) = (message.token, message.code.class() == 2);
        let is_renewal = parts::OBSERVE && asked.renewal == Some(exchange);
        if is_renewal {
            asked.renewal = None;
            // A notification may have overtaken it (RFC 7641 §3.4). If none came, an older number means a server that
            // has begun anew.
            let newer = asked.watch.filter(|watch| {
                asked.was_notified
                    && is_success
                    && !self.layer.keeps_order()
                    && observe.is_some_and(|sequence| !watch.newest.is_before(sequence, now))
            });
            if let Some(watch) = newer {
                let renew_at = self.renewal(now, max_age.unwrap_or(MAX_AGE));
                asked.watch = Some(Watch { subscription: exchange, token, renew_at, ..watch });
                self.owners.take(watch.subscription);
                self.owners.set(exchange, Owner::Ask(slot));
                self.counts.stale = self.counts.stale.saturating_add(1);
                return self.asks.put_back(slot, asked);
            }
            self.stop_fetching(now, &mut asked);
        } else {
            asked.exchange = None;
        }
        if parts::OBSERVE && (is_renewal || asked.registers) {
            asked.registers = false;
            asked.watch = None;
            match observe.filter(|_| is_success) {
                Some(sequence) => {
                    let renew_at = self.renewal(now, max_age.unwrap_or(MAX_AGE));
                    asked.watch =
                        Some(Watch { subscription: exchange, token, newest: Newest { sequence, at: now }, renew_at });
                    self.owners.set(exchange, Owner::Ask(slot));
                }
                None => self.layer.cancel(now, exchange),
            }
        }
        self.take_message(now, slot, asked, entry, exchanged);
    }

    /// A renewal was answered by what is older than a notification to it, which was taken.
    pub(crate) fn renewal_was_overtaken(&mut self, now: Instant, exchange: ExchangeId) {
        let Some(slot) = self.exchange_ended(now, exchange) else { return };
        let Some(mut asked) = self.asks.take(slot).sure("ask that has an exchange") else { return };
        asked.renewal = None;
        if let Some(watch) = &mut asked.watch {
            self.owners.take(watch.subscription);
            watch.subscription = exchange;
            self.owners.set(exchange, Owner::Ask(slot));
        }
        self.counts.stale = self.counts.stale.saturating_add(1);
        self.asks.put_back(slot, asked);
    }

    /// A notification came, or something else on the token of an observation.
    pub(crate) fn further_came(&mut self, now: Instant, entry: L::Entry, exchange: ExchangeId) {
        if parts::GROUPS && self.groups.is_one(exchange) {
            return self.group_answer_came(now, entry, exchange);
        }
        if !parts::OBSERVE {
            return;
        }
        let Some(Owner::Ask(slot)) = self.owners.get(exchange) else { return };
        let Some(mut asked) = self.asks.take(slot).sure("ask that has a subscription") else { return };
        let Some(watch) = asked.watch.filter(|watch| watch.subscription == exchange) else {
            return self.asks.put_back(slot, asked);
        };
        let Some(message) = self.layer.message(&entry).sure("message of a response") else { return };
        let Read { observe, max_age, .. } = Read::of(&message, self.layer.room());
        let is_success = message.code.class() == 2;
        match observe.filter(|_| is_success) {
            Some(sequence) if !self.layer.keeps_order() && !watch.newest.is_before(sequence, now) => {
                self.counts.stale = self.counts.stale.saturating_add(1);
                return self.asks.put_back(slot, asked);
            }
            Some(sequence) => {
                let renew_at = self.renewal(now, max_age.unwrap_or(MAX_AGE));
                asked.watch = Some(Watch { newest: Newest { sequence, at: now }, renew_at, ..watch });
                asked.was_notified = true;
            }
            // The last one (RFC 7641 §4.2).
            None => {
                asked.watch = None;
                self.cancel_exchange(now, exchange);
                if let Some(renewal) = asked.renewal.take() {
                    self.cancel_exchange(now, renewal);
                }
            }
        }
        self.stop_fetching(now, &mut asked);
        self.take_message(now, slot, asked, entry, Exchanged::default());
    }

    /// What comes of an exchange is nobody's any more.
    pub(super) fn cancel_exchange(&mut self, now: Instant, exchange: ExchangeId) {
        self.owners.take(exchange);
        self.layer.cancel(now, exchange);
    }

    /// What was being fetched is out of date.
    fn stop_fetching(&mut self, now: Instant, asked: &mut Asked<L::Peer>) {
        if let Some(fetching) = asked.exchange.take() {
            self.cancel_exchange(now, fetching);
        }
        asked.begin_anew();
    }

    /// An ask has got a message, and is in no slot.
    fn take_message(
        &mut self,
        now: Instant,
        slot: u32,
        mut asked: Box<Asked<L::Peer>>,
        entry: L::Entry,
        exchanged: Exchanged,
    ) {
        let Some(message) = self.layer.message(&entry).sure("message of a response") else { return };
        let then = asked.take(&message, &Read::of(&message, self.layer.room()));
        let gathers = asked.gathers.filter(|_| parts::GROUPS);
        let has_room = match (&then, gathers) {
            (Then::Send, Some(_)) => self.has_room_for_rest(now, &asked),
            _ => self.waiting_bytes().saturating_add(asked.memory()) <= self.config.limits.bytes,
        };
        match then {
            Then::Send if !parts::BLOCK => {}
            Then::Send if !has_room => self.fail(now, slot, *asked, AskFailure::OutOfBytes, 0),
            Then::Send => {
                asked.has_next = true;
                self.asks.put_back(slot, asked);
                self.go_on(now, slot);
            }
            Then::Fail(why) => self.fail(now, slot, *asked, why, exchanged.copies),
            Then::Done(body) => {
                if let Some(group) = gathers {
                    self.asks.forget(slot);
                    return self.group_answer_ended(group, Told::GroupAnswer { entry, group, body });
                }
                let (ask, goes_on) = (self.asks.name(slot), asked.watch.is_some());
                if goes_on {
                    asked.deadline = None;
                    asked.begin_anew();
                    self.asks.put_back(slot, asked);
                } else {
                    self.asks.forget(slot);
                }
                self.told.push_back(Told::Answer { entry, ask, body, goes_on, exchanged });
            }
        }
    }

    /// A request of ours ended without an answer.
    pub(crate) fn request_failed(&mut self, now: Instant, exchange: ExchangeId, why: AskFailure, copies: u8) {
        if let Some(slot) = self.exchange_ended(now, exchange) {
            self.exchange_failed(now, slot, why, copies);
        }
    }

    /// A message of an ask failed.
    pub(super) fn exchange_failed(&mut self, now: Instant, slot: u32, why: AskFailure, copies: u8) {
        if let Some(asked) = self.asks.take(slot).sure("ask that has an exchange") {
            match why {
                AskFailure::Exchange(Failure::NoResponse) if parts::NO_RESPONSE && asked.limits_responses => {
                    self.is_unanswered(now, slot, *asked);
                }
                why => self.fail(now, slot, *asked, why, copies),
            }
        }
    }

    /// The layer has ended: so have all asks that it did not end itself.
    pub(super) fn fail_all(&mut self, now: Instant, why: AskFailure) {
        for slot in self.asks.slots.iter().map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.exchange_failed(now, slot, why, 0);
        }
    }

    /// An ask, which is in no slot, ends without an answer.
    pub(super) fn fail(&mut self, now: Instant, slot: u32, asked: Asked<L::Peer>, why: AskFailure, copies: u8) {
        let (ask, to, gathers) = (self.asks.name(slot), asked.to, asked.gathers.filter(|_| parts::GROUPS));
        // Where there are no resets, what the server sends on is stopped by a word alone.
        self.abandon(now, asked, L::IS_RELIABLE);
        self.asks.forget(slot);
        if let Some(group) = gathers {
            return self.group_answer_ended(group, Told::GroupAnswerLost { group, from: to, why });
        }
        self.counts.failed = self.counts.failed.saturating_add(1);
        self.told.push_back(Told::Failed { ask, to, why, copies });
    }

    /// Nothing more is wanted of an ask.
    pub(super) fn abandon(&mut self, now: Instant, asked: Asked<L::Peer>, deregisters: bool) {
        if let Some(burst) = asked.burst.filter(|_| parts::Q_BLOCK) {
            self.abandon_burst(burst);
        }
        // One that was not answered yet may have been heard.
        let registering = asked.exchange.filter(|_| asked.registers).and_then(|exchange| self.layer.token_of(exchange));
        for exchange in [asked.exchange, asked.renewal].into_iter().flatten() {
            self.cancel_exchange(now, exchange);
        }
        if let Some(watch) = asked.watch.filter(|_| parts::OBSERVE) {
            self.cancel_exchange(now, watch.subscription);
        }
        let token = asked.watch.map(|watch| watch.token).or(registering);
        if let Some(token) = token.filter(|_| parts::OBSERVE && deregisters) {
            self.deregister(now, asked, token);
        }
    }

    /// The server is told that an observation is over.
    pub(super) fn deregister(&mut self, now: Instant, mut asked: Asked<L::Peer>, token: Token) {
        let (to, layer) = (asked.to, &mut self.layer);
        // If there is no room for it, the next notification is answered with a reset, or not heeded.
        let _ = asked.request(Aim::Deregister(token), |request| layer.request(now, to, request, InAsk::First));
    }

    /// The application no longer wants an ask.
    pub(super) fn give_up(&mut self, now: Instant, id: AskId, deregisters: bool) -> bool {
        if self.asks.find(id).is_none() {
            return false;
        }
        let Some(asked) = self.asks.take(id.slot).sure("ask of a name that is good") else { return false };
        let to = asked.to;
        self.abandon(now, *asked, deregisters);
        self.asks.forget(id.slot);
        self.counts.failed = self.counts.failed.saturating_add(1);
        self.told.push_back(Told::Failed { ask: id, to, why: AskFailure::Cancelled, copies: 0 });
        true
    }

    /// The timer of an ask ran out.
    pub(super) fn ask_is_due(&mut self, now: Instant, slot: u32) {
        self.asks.timers.clear(slot);
        let Some(mut asked) = self.asks.take(slot).sure("ask whose timer ran out") else { return };
        if asked.deadline.is_some_and(|deadline| deadline <= now) {
            if self.may_be_unanswered(&asked) {
                return self.is_unanswered(now, slot, *asked);
            }
            return self.fail(now, slot, *asked, AskFailure::Deadline, 0);
        }
        if parts::OBSERVE
            && let Some(watch) = &mut asked.watch
            && watch.renew_at <= now
        {
            watch.renew_at = Instant::NEVER;
            self.asks.put_back(slot, asked);
            return self.renew(now, slot);
        }
        self.asks.put_back(slot, asked);
    }

    pub(super) fn progress_of(&self, id: AskId) -> Option<Progress> {
        let asked = self.asks.find(id)?;
        asked
            .burst
            .filter(|_| parts::Q_BLOCK)
            .map_or_else(|| Some(asked.progress()), |burst| self.progress_of_burst(burst))
    }

    pub(super) fn name_of(&self, slot: u32) -> AskId {
        self.asks.name(slot)
    }
}

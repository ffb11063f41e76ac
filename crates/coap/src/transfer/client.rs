//! The client's side of a host.

use alloc::boxed::Box;
use core::{fmt::Debug, hash::Hash};

use millpond_control::{Instant, Purpose};

use super::{
    Ask, AskFailure, AskId, Host, Progress, Refused,
    act::{Act, Owner},
    asked::{Aim, Asked, Then, Watch},
    asks::Exchanged,
    options::Read,
    told::Told,
};
use crate::endpoint::{ExchangeId, Failure, queue::Entry};
use crate::message::Token;

/// Freshness of a representation that does not tell it, seconds (RFC 7252 §5.10.5).
const MAX_AGE: u32 = 60;

/// The third word of chance after node and peer: not that of any exchange.
const RENEWAL: u32 = 0x103;

impl<A: Copy + Eq + Hash + Debug> Host<A> {
    pub(super) fn begin(&mut self, now: Instant, to: A, ask: &Ask<'_>) -> Result<AskId, Refused> {
        let limits = self.config.limits;
        if self.asks.len() >= limits.asks {
            return Err(Refused::TooManyAsks { limit: limits.asks });
        }
        let uploads = |other: &Asked<A>| other.to == to && other.is_uploading();
        let is_tagged = ask.body.len() > ask.upload.bytes() as usize
            && self.asks.slots.iter().any(|(_, other)| other.as_deref().is_some_and(uploads));
        self.asks.count = self.asks.count.wrapping_add(1);
        let asked = Asked::new(to, ask, is_tagged.then_some(self.asks.count))?;
        if ask.q_block && !ask.observe && ask.piece.is_none() && self.may_burst(to) {
            return self.begin_burst(now, asked, ask);
        }
        if self.waiting_bytes().saturating_add(asked.memory()) > limits.bytes {
            return Err(Refused::OutOfBytes { limit: limits.bytes });
        }
        let mut asked = Box::new(asked);
        let exchange = self.send(now, &mut asked, true).map_err(|why| match why {
            AskFailure::Refused(refused) => Refused::Endpoint(refused),
            _ => Refused::OutOfBytes { limit: limits.bytes },
        })?;
        let slot = self.asks.slots.put(None);
        self.owners.set(exchange, Owner::Ask(slot));
        self.asks.put_back(slot, asked);
        self.counts.asks = self.counts.asks.saturating_add(1);
        Ok(self.asks.name(slot))
    }

    /// The next request of an ask leaves. Only the first one may find that too many wait: an ask has one under way.
    fn send(&mut self, now: Instant, asked: &mut Asked<A>, is_first: bool) -> Result<ExchangeId, AskFailure> {
        let (to, registers) = (asked.to, asked.registers);
        let endpoint = &mut self.endpoint;
        let exchange = if registers {
            asked.request(Aim::Register, |request| endpoint.subscribe(now, to, request))??
        } else if is_first {
            asked.request(Aim::Next, |request| endpoint.request(now, to, request))??
        } else {
            asked.request(Aim::Next, |request| endpoint.request_next(now, to, request))??
        };
        asked.exchange = Some(exchange);
        asked.has_next = false;
        Ok(exchange)
    }

    /// An ask has something to send.
    pub(super) fn go_on(&mut self, now: Instant, slot: u32) {
        let Some(mut asked) = self.asks.take(slot) else { return };
        if !asked.has_next {
            return self.asks.put_back(slot, asked);
        }
        match self.send(now, &mut asked, false) {
            Ok(exchange) => {
                self.owners.set(exchange, Owner::Ask(slot));
                self.asks.put_back(slot, asked);
            }
            Err(why) => self.fail(slot, *asked, why, 0),
        }
    }

    /// A registration is to be renewed.
    pub(super) fn renew(&mut self, now: Instant, slot: u32) {
        let Some(mut asked) = self.asks.take(slot) else { return };
        if let Some(watch) = asked.watch.filter(|_| asked.renewal.is_none()) {
            let (to, endpoint) = (asked.to, &mut self.endpoint);
            match asked.request(Aim::Renew(watch.token), |request| endpoint.subscribe(now, to, request)) {
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

    /// When to renew what is fresh for so many seconds.
    fn renewal(&mut self, now: Instant, max_age: u32) -> Instant {
        let (low, high) = self.config.renew_after;
        self.asks.renewals = self.asks.renewals.wrapping_add(1);
        let place = [self.endpoint.node(), u32::MAX, self.asks.renewals, RENEWAL];
        let jitter = self.chance.at(Purpose::Dither, place).between(low, high);
        let fresh = u64::from(max_age).saturating_mul(1_000_000);
        Instant::from_micros(now.as_micros().saturating_add(fresh)).after(jitter)
    }

    /// A request of an ask was answered.
    pub(super) fn response_came(
        &mut self,
        now: Instant,
        entry: Entry<A>,
        exchange: ExchangeId,
        exchanged: Exchanged,
    ) -> Option<Told<A>> {
        let Some(Owner::Ask(slot)) = self.owners.take(exchange) else { return None };
        let mut asked = self.asks.take(slot)?;
        let message = self.endpoint.message(&entry)?;
        let Read { observe, max_age, .. } = Read::of(&message);
        let (token, is_success) = (message.token, message.code.class() == 2);
        let is_renewal = asked.renewal == Some(exchange);
        if is_renewal {
            asked.renewal = None;
            // A notification may have overtaken it (RFC 7641 §3.4). If none came, an older number means a server that
            // has begun anew.
            let newer = asked.watch.filter(|watch| {
                asked.was_notified && is_success && observe.is_some_and(|sequence| !watch.is_news(sequence, now))
            });
            if let Some(watch) = newer {
                let renew_at = self.renewal(now, max_age.unwrap_or(MAX_AGE));
                asked.watch = Some(Watch { subscription: exchange, token, renew_at, ..watch });
                self.owners.take(watch.subscription);
                self.owners.set(exchange, Owner::Ask(slot));
                self.counts.stale = self.counts.stale.saturating_add(1);
                self.asks.put_back(slot, asked);
                return None;
            }
            self.stop_fetching(&mut asked);
        } else {
            asked.exchange = None;
        }
        if is_renewal || asked.registers {
            asked.registers = false;
            asked.watch = None;
            match observe.filter(|_| is_success) {
                Some(sequence) => {
                    let renew_at = self.renewal(now, max_age.unwrap_or(MAX_AGE));
                    asked.watch = Some(Watch { subscription: exchange, token, newest: (sequence, now), renew_at });
                    self.owners.set(exchange, Owner::Ask(slot));
                }
                None => self.acts.push_back(Act::Unsubscribe(exchange)),
            }
        }
        self.take_message(slot, asked, entry, exchanged)
    }

    /// A notification came, or something else on the token of an observation.
    pub(super) fn further_came(&mut self, now: Instant, entry: Entry<A>, exchange: ExchangeId) -> Option<Told<A>> {
        if let Some(told) = self.group_answer_came(entry, exchange) {
            return told;
        }
        let Some(Owner::Ask(slot)) = self.owners.get(exchange) else { return None };
        let mut asked = self.asks.take(slot)?;
        let Some(watch) = asked.watch.filter(|watch| watch.subscription == exchange) else {
            self.asks.put_back(slot, asked);
            return None;
        };
        let message = self.endpoint.message(&entry)?;
        let Read { observe, max_age, .. } = Read::of(&message);
        let is_success = message.code.class() == 2;
        match observe.filter(|_| is_success) {
            Some(sequence) if !watch.is_news(sequence, now) => {
                self.counts.stale = self.counts.stale.saturating_add(1);
                self.asks.put_back(slot, asked);
                return None;
            }
            Some(sequence) => {
                let renew_at = self.renewal(now, max_age.unwrap_or(MAX_AGE));
                asked.watch = Some(Watch { newest: (sequence, now), renew_at, ..watch });
                asked.was_notified = true;
            }
            // The last one (RFC 7641 §4.2).
            None => {
                asked.watch = None;
                self.owners.take(exchange);
                self.acts.push_back(Act::Unsubscribe(exchange));
                if let Some(renewal) = asked.renewal.take() {
                    self.owners.take(renewal);
                    self.acts.push_back(Act::Unsubscribe(renewal));
                }
            }
        }
        self.stop_fetching(&mut asked);
        self.take_message(slot, asked, entry, Exchanged::default())
    }

    /// What was being fetched is out of date.
    fn stop_fetching(&mut self, asked: &mut Asked<A>) {
        if let Some(fetching) = asked.exchange.take() {
            self.owners.take(fetching);
            self.acts.push_back(Act::Cancel(fetching));
        }
        asked.begin_anew();
    }

    /// An ask has got a message, and is in no slot.
    fn take_message(
        &mut self,
        slot: u32,
        mut asked: Box<Asked<A>>,
        entry: Entry<A>,
        exchanged: Exchanged,
    ) -> Option<Told<A>> {
        let message = self.endpoint.message(&entry)?;
        let then = asked.take(&message, &Read::of(&message));
        let limit = self.config.limits.bytes;
        match then {
            Then::Send if self.waiting_bytes().saturating_add(asked.memory()) > limit => {
                self.fail(slot, *asked, AskFailure::OutOfBytes, 0);
                None
            }
            Then::Send => {
                asked.has_next = true;
                self.acts.push_back(Act::Send(slot));
                self.asks.put_back(slot, asked);
                None
            }
            Then::Fail(why) => {
                self.fail(slot, *asked, why, exchanged.copies);
                None
            }
            Then::Done(body) => {
                if let Some(group) = asked.gathers {
                    self.asks.forget(slot);
                    self.group_answer_ended(group, Told::GroupAnswer { entry, group, body });
                    return None;
                }
                let (ask, goes_on) = (self.asks.name(slot), asked.watch.is_some());
                if goes_on {
                    asked.deadline = None;
                    asked.begin_anew();
                    self.asks.put_back(slot, asked);
                } else {
                    self.asks.forget(slot);
                }
                Some(Told::Answer { entry, ask, body, goes_on, exchanged })
            }
        }
    }

    /// A message of an ask failed.
    pub(super) fn exchange_failed(&mut self, slot: u32, why: Failure, copies: u8) {
        if let Some(asked) = self.asks.take(slot) {
            self.fail(slot, *asked, AskFailure::Exchange(why), copies);
        }
    }

    /// An ask, which is in no slot, ends without an answer.
    pub(super) fn fail(&mut self, slot: u32, asked: Asked<A>, why: AskFailure, copies: u8) {
        let (ask, to, gathers) = (self.asks.name(slot), asked.to, asked.gathers);
        self.abandon(asked, false);
        self.asks.forget(slot);
        if let Some(group) = gathers {
            return self.group_answer_ended(group, Told::GroupAnswerLost { group, from: to, why });
        }
        self.counts.failed = self.counts.failed.saturating_add(1);
        self.told.push_back(Told::Failed { ask, to, why, copies });
    }

    /// Nothing more is wanted of an ask.
    pub(super) fn abandon(&mut self, asked: Asked<A>, deregisters: bool) {
        if let Some(burst) = asked.burst {
            self.abandon_burst(burst);
        }
        for exchange in [asked.exchange, asked.renewal].into_iter().flatten() {
            self.owners.take(exchange);
            self.acts.push_back(Act::Cancel(exchange));
        }
        if let Some(watch) = asked.watch {
            self.owners.take(watch.subscription);
            self.acts.push_back(Act::Unsubscribe(watch.subscription));
            if deregisters {
                self.acts.push_back(Act::Deregister(Box::new(asked), watch.token));
            }
        }
    }

    /// The server is told that an observation is over.
    pub(super) fn deregister(&mut self, now: Instant, mut asked: Asked<A>, token: Token) {
        let (to, endpoint) = (asked.to, &mut self.endpoint);
        // If there is no room for it, the next notification is answered with a reset.
        let _ = asked.request(Aim::Deregister(token), |request| endpoint.request(now, to, request));
    }

    /// The application no longer wants an ask.
    pub(super) fn give_up(&mut self, id: AskId, deregisters: bool) -> bool {
        if self.asks.find(id).is_none() {
            return false;
        }
        let Some(asked) = self.asks.take(id.slot) else { return false };
        let to = asked.to;
        self.abandon(*asked, deregisters);
        self.asks.forget(id.slot);
        self.counts.failed = self.counts.failed.saturating_add(1);
        self.told.push_back(Told::Failed { ask: id, to, why: AskFailure::Cancelled, copies: 0 });
        true
    }

    /// The timer of an ask ran out.
    pub(super) fn ask_is_due(&mut self, now: Instant, slot: u32) {
        self.asks.timers.clear(slot);
        let Some(mut asked) = self.asks.take(slot) else { return };
        if asked.deadline.is_some_and(|deadline| deadline <= now) {
            return self.fail(slot, *asked, AskFailure::Deadline, 0);
        }
        if let Some(watch) = &mut asked.watch
            && watch.renew_at <= now
        {
            watch.renew_at = Instant::NEVER;
            self.acts.push_back(Act::Renew(slot));
        }
        self.asks.put_back(slot, asked);
    }

    pub(super) fn progress_of(&self, id: AskId) -> Option<Progress> {
        let asked = self.asks.find(id)?;
        asked.burst.map_or_else(|| Some(asked.progress()), |burst| self.progress_of_burst(burst))
    }

    pub(super) fn name_of(&self, slot: u32) -> AskId {
        self.asks.name(slot)
    }
}

//! What a stack says, and what it does between.

use alloc::borrow::Cow;
use core::{fmt::Debug, hash::Hash, ops::ControlFlow};

use millpond_control::Instant;

use super::{
    CoapStack, Event, Gone, RequestFailure, StackOutput, block_cache::BlockCache, owner::Owner,
    queued_event::QueuedEvent, request_table::Exchanged, server::Form,
};
use crate::block::{Assemblies, AssemblyLimits};
use crate::endpoint::beside::Beside;
use crate::endpoint::{Endpoint, ExchangeId, Failure};
use crate::invariant::Sure;
use crate::layer::MessageLayer;
use crate::message::{Message, is_callers, is_for_responses, number};
use crate::output::{Entry, Output, OutputKind, SleepReason};
use crate::parts;

impl<A: Copy + Eq + Hash + Debug> CoapStack<Endpoint<A>> {
    /// As [`Endpoint::quiet_until`]: until when a poll would say nothing but that, if that is plain to see.
    #[inline]
    pub fn quiet_until(&mut self, now: Instant) -> Option<Instant> {
        if !self.events.is_empty() || !self.bursts.are_none() {
            return None;
        }
        let until = self.layer.quiet_until(now)?;
        let at = self.next().map_or(until, |(at, _)| at.min(until));
        (at > now).then_some(at)
    }
}

impl<L: MessageLayer> CoapStack<L> {
    /// The next output. Also does what is due.
    pub fn poll(&mut self, now: Instant) -> StackOutput<'_, L> {
        loop {
            if let Some(event) = self.events.pop_front() {
                if parts::Q_BLOCK
                    && let QueuedEvent::BurstRequest { whole, .. } | QueuedEvent::BurstAnswer { whole, .. } = &event
                {
                    whole.write(&mut self.shown);
                }
                return self.show(event);
            }
            if let Some(why) = self.closing.take() {
                return Output::Close(why);
            }
            match self.layer.step(now) {
                Output::Event(entry) => {
                    self.take(now, entry);
                    return match self.layer.show(&entry) {
                        Output::Transmit(transmit) => Output::Transmit(transmit),
                        Output::Event(event) => Output::Trace(event),
                        _ => Output::Idle,
                    };
                }
                Output::Close(why) => {
                    self.ended(now);
                    self.closing = Some(why);
                }
                Output::Sleep(until, why) => {
                    if let ControlFlow::Break(next) = self.work(now) {
                        let (at, asleep) = next.unwrap_or((Instant::NEVER, SleepReason::Expiry));
                        let (at, asleep) = if at < until { (at, asleep) } else { (until, why) };
                        return Output::Sleep(at, asleep);
                    }
                }
                Output::Idle => {
                    if let ControlFlow::Break(next) = self.work(now) {
                        return next.map_or(Output::Idle, |(at, asleep)| Output::Sleep(at, asleep));
                    }
                }
            }
        }
    }

    /// Client and server take in what the layer gave. What follows from it stands ready.
    fn take(&mut self, now: Instant, entry: Entry<L::Peer>) {
        let is_protected = parts::OSCORE && self.layer.protection().is_some();
        let entry = if is_protected { self.unprotected(now, entry) } else { Some(entry) };
        let Some(entry) = entry else { return };
        if parts::Q_BLOCK && !matches!(entry.kind, OutputKind::Request { .. }) && self.is_of_burst(now, &entry) {
            return;
        }
        if L::IS_RELIABLE
            && let OutputKind::Response { exchange, .. } | OutputKind::AdditionalResponse { exchange } = entry.kind
            && let Some(number) = self.refused_option(&entry, exchange)
        {
            return self.request_failed(now, exchange, RequestFailure::BadOption { number }, 1);
        }
        match entry.kind {
            OutputKind::Request { id } if parts::SERVER => self.request_came(now, entry, id, Form::Plain),
            OutputKind::Response { exchange, sample, copies } if parts::CLIENT => {
                self.response_came(now, entry, exchange, Exchanged { sample, copies });
            }
            OutputKind::AdditionalResponse { exchange } if parts::ADDITIONAL_COME => {
                self.additional_came(now, entry, exchange);
            }
            OutputKind::Failed { exchange, why, copies } if parts::CLIENT => {
                self.request_failed(now, exchange, RequestFailure::Exchange(why), copies);
            }
            OutputKind::Copy { id, copy: 0, .. } if parts::NOTIFY => self.notification_is_confirmable(id),
            OutputKind::NonConfirmable { exchange } | OutputKind::Left { exchange } => self.message_left(now, exchange),
            OutputKind::Delivered { exchange, .. } => self.message_delivered(now, exchange),
            OutputKind::Undelivered { exchange, why, .. } if parts::NOTIFY => {
                self.notification_ended(now, exchange, Some(why));
            }
            OutputKind::Rejected { exchange } if parts::NOTIFY => self.notification_rejected(now, entry.peer, exchange),
            // A peer that registered again has taken the place of the one before.
            OutputKind::Unobserved { token, .. } if parts::NOTIFY && !self.layer.observes(entry.peer, token) => {
                let why = if self.layer.has_ended() { Gone::Closed } else { Gone::Deregistered };
                self.observer_is_gone(now, entry.peer, token, why);
            }
            OutputKind::Settings | OutputKind::TokenFree => self.try_again(now, usize::MAX),
            _ => {}
        }
    }

    /// The critical option of a response over a stream that is not understood, neither here nor by who put it into the request; an
    /// endpoint looks for it itself.
    fn refused_option(&self, entry: &Entry<L::Peer>, exchange: ExchangeId) -> Option<u16> {
        let is_known = |number| is_for_responses(number) && !matches!(number, number::Q_BLOCK1 | number::Q_BLOCK2);
        let request = match self.owners.get(exchange) {
            Some(Owner::Request(slot)) => self.requests.slots.get(slot).and_then(Option::as_deref),
            _ => None,
        };
        let has_asked = |number| is_callers(number) && request.is_some_and(|request| request.has(number));
        self.layer.message(entry)?.options().refused(|number| is_known(number) || has_asked(number))
    }

    /// The layer has ended, and all that it carried.
    fn ended(&mut self, now: Instant) {
        self.fail_all(now, RequestFailure::Exchange(Failure::ConnectionClosed));
        self.all_gone(now);
        let limits = AssemblyLimits { body: 0, bodies: 0, lifetime: self.config.lifetime, size: self.config.block };
        self.bodies = Assemblies::new(limits);
        self.cache = BlockCache::new(self.config.limits.cached, self.config.lifetime);
        self.pending = Beside::new();
    }

    /// Does one thing that is due now that the layer is drained. If there is none, gives what is due first.
    fn work(&mut self, now: Instant) -> ControlFlow<Option<(Instant, SleepReason)>> {
        if parts::Q_BLOCK && self.act_for_bursts(now) {
            return ControlFlow::Continue(());
        }
        let next = self.next();
        match next {
            Some((at, SleepReason::Request)) if parts::CLIENT && at <= now => {
                if let Some((_, slot)) = self.requests.timers.earliest() {
                    self.request_is_due(now, slot);
                }
            }
            Some((at, SleepReason::Notification)) if parts::NOTIFY && at <= now => {
                if let Some((_, slot)) = self.observers.timers.earliest() {
                    self.observers.timers.clear(slot);
                    self.send_waiting(now, slot);
                }
            }
            Some((at, SleepReason::Group)) if parts::GROUPS && at <= now => self.group_is_due(now),
            Some((at, SleepReason::Expiry)) if parts::SERVE_BLOCKS && at <= now => {
                self.bodies.expire(now);
                let layer = &self.layer;
                self.cache.expire(now, |key| layer.hash(&key));
            }
            _ => return ControlFlow::Break(next),
        }
        ControlFlow::Continue(())
    }

    /// What of the stack's own is due first.
    fn next(&self) -> Option<(Instant, SleepReason)> {
        let mut first: Option<(Instant, SleepReason)> = None;
        let mut consider = |at: Option<Instant>, why| {
            if let Some(at) = at
                && first.is_none_or(|(earliest, _)| at < earliest)
            {
                first = Some((at, why));
            }
        };
        if parts::CLIENT {
            consider(self.requests.timers.earliest().map(|(at, _)| at), SleepReason::Request);
        }
        if parts::NOTIFY {
            consider(self.observers.timers.earliest().map(|(at, _)| at), SleepReason::Notification);
        }
        if parts::SERVE_BLOCKS {
            consider(self.cache.next_expiry(), SleepReason::Expiry);
            consider(self.bodies.next_expiry(), SleepReason::Expiry);
        }
        if parts::GROUPS {
            consider(self.groups.next_end(), SleepReason::Group);
        }
        if parts::Q_BLOCK {
            consider(self.bursts.wakes(), SleepReason::Burst);
        }
        first
    }

    /// An event for the application.
    fn show(&self, event: QueuedEvent<L::Peer>) -> StackOutput<'_, L> {
        let message = |entry: &Entry<L::Peer>| self.layer.message(entry);
        let event = match event {
            // What no part of this build can have put there.
            QueuedEvent::Request { .. } | QueuedEvent::Refused { .. } if !parts::SERVER => None,
            QueuedEvent::Answer { .. } | QueuedEvent::Failed { .. } if !parts::CLIENT => None,
            QueuedEvent::Unanswered { .. } if !parts::NO_RESPONSE => None,
            QueuedEvent::GroupAnswer { .. } | QueuedEvent::GroupAnswerLost { .. } | QueuedEvent::GroupOver { .. }
                if !parts::GROUPS =>
            {
                None
            }
            QueuedEvent::BurstRequest { .. } | QueuedEvent::BurstAnswer { .. } if !parts::Q_BLOCK => None,
            QueuedEvent::ObserverGone { .. } if !parts::NOTIFY => None,
            QueuedEvent::Request { entry, id, body, wants_to_observe } => message(&entry).map(|message| {
                let body = body.map_or(Cow::Borrowed(message.payload()), Cow::Owned);
                let by_group = self.layer.came_by_group(id);
                let context = self.layer.protection().and_then(|protection| protection.context_of(id));
                Event::Request { from: entry.peer, id, message, body, wants_to_observe, by_group, context }
            }),
            QueuedEvent::Refused { entry, why, by_group } => {
                message(&entry).map(|message| Event::Refused { from: entry.peer, message, why, by_group })
            }
            QueuedEvent::Answer { entry, request, body, goes_on, exchanged } => message(&entry).map(|message| {
                let body = body.map_or(Cow::Borrowed(message.payload()), Cow::Owned);
                let Exchanged { sample, copies } = exchanged;
                Event::Answer { request, from: entry.peer, message, body, goes_on, sample, copies }
            }),
            QueuedEvent::Unanswered { request, to, is_acknowledged } => {
                Some(Event::Unanswered { request, to, is_acknowledged })
            }
            QueuedEvent::Failed { request, to, why, copies } => Some(Event::Failed { request, to, why, copies }),
            QueuedEvent::GroupAnswer { entry, group, body } => message(&entry).map(|message| {
                let body = body.map_or(Cow::Borrowed(message.payload()), Cow::Owned);
                Event::GroupAnswer { group, from: entry.peer, message, body }
            }),
            QueuedEvent::GroupAnswerLost { group, from, why } => Some(Event::GroupAnswerLost { group, from, why }),
            QueuedEvent::GroupOver { group } => Some(Event::GroupOver { group }),
            QueuedEvent::BurstRequest { id, from, whole } => {
                Message::parse(&self.shown).ok().map(|message| Event::Request {
                    from,
                    id,
                    message,
                    body: Cow::Owned(whole.body),
                    wants_to_observe: false,
                    by_group: false,
                    context: None,
                })
            }
            QueuedEvent::BurstAnswer { request, from, whole } => {
                Message::parse(&self.shown).ok().map(|message| Event::Answer {
                    request,
                    from,
                    message,
                    body: Cow::Owned(whole.body),
                    goes_on: false,
                    sample: None,
                    copies: 1,
                })
            }
            QueuedEvent::ObserverGone { observer, peer, why } => Some(Event::ObserverGone { observer, peer, why }),
        };
        // The bytes are there: inputs come once everything is drained.
        event.sure("message of an event").map_or(Output::Idle, Output::Event)
    }
}

//! Messages of ours, from the first copy to their end.

use core::{fmt::Debug, hash::Hash};

use millpond_control::{
    Controller, End, Fate, Feedback, Instant, Named, PlainMessage, Reason, ReplyKind, Sample, Span, Then, Wait,
};

use crate::endpoint::{
    Endpoint, Failure, SleepReason,
    counters::Count,
    exchanges::{Returns, Role, Stage},
    naming::CopyTag,
    random::About,
    slots::List,
};
use crate::message::{HEADER, Message};
use crate::output::OutputKind;
use crate::parts;

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// The timer of a message ran out.
    pub(in crate::endpoint) fn fire(&mut self, slot: u32, now: Instant) {
        let Some(exchange) = self.exchanges.get(slot) else { return self.timers.clear(slot) };
        let is_last = exchange.then == Then::Abandon || exchange.retransmissions >= exchange.most;
        // A retransmission sets it anew.
        if exchange.stage == Stage::Sent && !is_last && self.retransmit(slot, now).is_some() {
            return;
        }
        self.timers.clear(slot);
        let Some(exchange) = self.exchanges.get(slot) else { return };
        match exchange.stage {
            Stage::Waiting => {
                let peer = exchange.peer;
                self.pump(peer, now);
                self.peers.settle(peer, true);
            }
            Stage::Sent if is_last => {
                if !self.stays_overdue(slot, now) && !self.stays_exhausted(slot, now) {
                    self.give_up(slot, now);
                }
            }
            Stage::Exhausted => self.give_up(slot, now),
            Stage::Acknowledged | Stage::NonConfirmable => self.fail(slot, now, Failure::NoResponse),
            Stage::Sent | Stage::Subscribed => {}
        }
    }

    /// A retransmission leaves (RFC 7252 §4.2). Nothing if there is no such message or peer.
    #[inline]
    fn retransmit(&mut self, slot: u32, now: Instant) -> Option<()> {
        let random = self.random();
        let id = self.exchanges.name(slot);
        let exchange = self.exchanges.get_mut(slot)?;
        let (peer, path, waiting) = self.peers.with_path_mut(exchange.peer)?;
        exchange.next_copy(now, &self.setup.config.naming);
        let copy = exchange.retransmissions;
        let doubled = exchange.wait.doubled();
        let wait = if exchange.controlled {
            let cx = random.cx((peer.number, waiting), now, path.outstanding, exchange.number, About::Copy(copy));
            path.controller.on_timeout(&mut exchange.record, cx)
        } else {
            Wait::then_retransmit(doubled, Reason::BackedOff)
        };
        path.keeps_contract();
        let least = if exchange.is_lengthened { doubled } else { Span::ZERO };
        let wait = exchange.lengthen(wait, least);
        self.queue.push(peer.address, OutputKind::Copy { id, copy, wait }, exchange.message());
        self.counts.one_more(Count::Sent(exchange.kind));
        self.counts.one_more(Count::Retransmission);
        self.arm(slot, now, now.after(wait.span), SleepReason::Retransmission);
        Some(())
    }

    /// The peer's controller learns what a reply of so many bytes said about the path, if it waits for that.
    pub(in crate::endpoint) fn learn(
        &mut self,
        slot: u32,
        now: Instant,
        (kind, named): (ReplyKind, Named),
        reply_len: u16,
    ) -> Option<Sample> {
        let (random, is_marked) = (self.random(), self.exchanges.is_marked);
        let exchange = self.exchanges.get_mut(slot)?;
        let (peer, path, waiting) = self.peers.with_path_mut(exchange.peer)?;
        let mut sample = exchange.sample(kind, named, reply_len, now);
        if is_marked {
            sample = sample.marked();
        }
        if core::mem::take(&mut exchange.controlled) {
            let open = exchange.open_with(path.outstanding);
            let cx = random.cx((peer.number, waiting), now, open, exchange.number, About::Reply);
            path.controller.on_reply(&exchange.record, sample, cx);
            path.keeps_contract();
        }
        Some(sample)
    }

    /// The peer's controller learns what became of a non-confirmable request.
    fn tell(&mut self, slot: u32, now: Instant, fate: Fate, reply_len: u16) {
        if !parts::NON_CONFIRMABLE {
            return;
        }
        let random = self.random();
        let Some(exchange) = self.exchanges.get(slot).filter(|exchange| exchange.stage == Stage::NonConfirmable) else {
            return;
        };
        let Some((peer, path, waiting)) = self.peers.with_path_mut(exchange.peer) else { return };
        let (message, len, since) = (PlainMessage::Request, exchange.length(), now.since(exchange.first));
        let cx = random.cx((peer.number, waiting), now, path.outstanding, exchange.number, About::Feedback);
        let number = exchange.nth_asked();
        path.controller.on_feedback(Feedback { message, fate, since, len, reply_len, number }, cx);
        path.keeps_contract();
    }

    /// Input: a sender of bodies in bursts to a peer (RFC 9177) has learnt what became of a message of one, which the
    /// peer's controller is told. Nothing happens if the peer is not known.
    pub fn feedback(&mut self, now: Instant, peer: A, feedback: Feedback) {
        let now = self.input(now);
        let random = self.random();
        let Some(number) = self.peers.find(peer, &self.setup.id_generator) else { return };
        let Some((peer, path, waiting)) = self.peers.with_path_mut(number) else { return };
        let message = peer.ids.used() as u32;
        let cx = random.cx((peer.number, waiting), now, path.outstanding, message, About::Feedback);
        path.controller.on_feedback(feedback, cx);
        path.keeps_contract();
        // It may admit more now, or less.
        self.pump(number, now);
        self.peers.settle(number, false);
    }

    /// The peer's controller learns that there is nothing to learn, if it waits for anything.
    fn unlearn(&mut self, slot: u32, now: Instant, why: End) {
        let random = self.random();
        let Some(exchange) = self.exchanges.get_mut(slot) else { return };
        let Some((peer, path, waiting)) = self.peers.with_path_mut(exchange.peer) else { return };
        if core::mem::take(&mut exchange.controlled) {
            let open = exchange.open_with(path.outstanding);
            let cx = random.cx((peer.number, waiting), now, open, exchange.number, About::End);
            path.controller.on_end(&exchange.record, why, cx);
            path.keeps_contract();
        }
    }

    /// A confirmable message was acknowledged without a response.
    pub(in crate::endpoint) fn acknowledge(&mut self, slot: u32, now: Instant) {
        let evidence = (ReplyKind::EmptyAck, Named::Nothing);
        let Some(sample) = self.learn(slot, now, evidence, HEADER as u16) else { return };
        let id = self.exchanges.name(slot);
        let Some(exchange) = self.exchanges.get_mut(slot) else { return };
        let number = exchange.peer;
        let Some((peer, path, _)) = self.peers.with_path_mut(number) else { return };
        if !exchange.role.is_request() {
            let (kind, count) = match exchange.role {
                Role::Ping => (OutputKind::Pong { exchange: id, sample }, Count::Answered),
                _ => (OutputKind::Delivered { exchange: id, request: exchange.answers, sample }, Count::Delivered),
            };
            self.queue.push(peer.address, kind, &[]);
            self.counts.one_more(count);
            return self.leave(slot, now);
        }
        exchange.stage = Stage::Acknowledged;
        path.settled();
        self.queue.push(peer.address, OutputKind::Acknowledged { exchange: id, sample }, &[]);
        let due = self.response_due(slot, now);
        self.arm(slot, now, due, SleepReason::Response);
        self.pump(number, now);
    }

    /// A request was answered.
    pub(in crate::endpoint) fn answered(
        &mut self,
        slot: u32,
        now: Instant,
        kind: ReplyKind,
        response: &Message<'_>,
        datagram: &[u8],
    ) {
        let id = self.exchanges.name(slot);
        let sample = self.heard_of(slot, now, kind, response);
        let Some((from, retransmissions)) = self.whose(slot) else { return };
        let copies = retransmissions.saturating_add(1);
        self.queue.push_message(from, OutputKind::Response { exchange: id, sample, copies }, response, datagram);
        self.counts.one_more(Count::Answered);
        if self.exchanges.get(slot).is_some_and(|exchange| exchange.role.subscribes()) {
            self.stay_subscribed(slot, now, response.token);
        } else {
            self.leave(slot, now);
        }
    }

    /// A request was answered with what must not be processed (RFC 7252 §5.4.1), or cannot be. What that says about the path
    /// is true.
    pub(in crate::endpoint) fn answered_badly(
        &mut self,
        slot: u32,
        now: Instant,
        (kind, why): (ReplyKind, Failure),
        response: &Message<'_>,
    ) {
        self.heard_of(slot, now, kind, response);
        self.fail(slot, now, why);
    }

    /// The peer's controller learns what a response says about the path. A sample, if that says anything.
    fn heard_of(&mut self, slot: u32, now: Instant, kind: ReplyKind, response: &Message<'_>) -> Option<Sample> {
        let reply_len = u16::try_from(response.length()).unwrap_or(u16::MAX);
        match self.exchanges.get(slot)?.stage {
            Stage::Sent => {
                let named = if kind == ReplyKind::Piggybacked { self.named(slot, response) } else { Named::Nothing };
                self.learn(slot, now, (kind, named), reply_len)
            }
            _ => {
                self.tell(slot, now, Fate::Answered, reply_len);
                None
            }
        }
    }

    /// The copy that a piggybacked response names. Also, whether the peer's server knows how.
    fn named(&mut self, slot: u32, response: &Message<'_>) -> Named {
        let Some(exchange) = self.exchanges.get(slot).filter(|exchange| exchange.mark != CopyTag::Nothing) else {
            return Named::Nothing;
        };
        let named = exchange.named_by(response, &self.setup.config.naming);
        if let Some(peer) = self.peers.get_mut(exchange.peer) {
            peer.echoes.tell(exchange.mark, named != Named::Nothing);
        }
        named
    }

    /// The wait after the last copy of a message is over. Answers with a token that is not the request's may have been forged, so
    /// that they end nothing (RFC 7252 §5.3.1); where nothing else came they are why.
    pub(in crate::endpoint) fn give_up(&mut self, slot: u32, now: Instant) {
        let is_misanswered = self.exchanges.get(slot).is_some_and(|exchange| exchange.returns == Returns::WrongToken);
        self.fail(slot, now, if is_misanswered { Failure::WrongToken } else { Failure::GaveUp });
    }

    /// A message ends without what it was sent for.
    pub(in crate::endpoint) fn fail(&mut self, slot: u32, now: Instant, why: Failure) {
        self.unlearn(
            slot,
            now,
            match why {
                Failure::GaveUp | Failure::WrongToken => End::GaveUp,
                Failure::Reset => End::Reset,
                _ => End::Cancelled,
            },
        );
        match why {
            Failure::Reset => self.tell(slot, now, Fate::Answered, HEADER as u16),
            Failure::NoResponse => self.tell(slot, now, Fate::Lost, 0),
            _ => {}
        }
        let is_unanswered = parts::NON_CONFIRMABLE && matches!(why, Failure::NoResponse | Failure::Cancelled);
        if is_unanswered && self.exchanges.get(slot).is_some_and(|exchange| exchange.stage == Stage::NonConfirmable) {
            self.unanswered(slot);
        }
        let Some((to, retransmissions)) = self.whose(slot) else { return };
        let Some(exchange) = self.exchanges.get(slot) else { return };
        let id = self.exchanges.name(slot);
        let (was_waiting, was_exhausted) = (exchange.stage == Stage::Waiting, exchange.stage == Stage::Exhausted);
        let copies = if was_waiting { 0 } else { retransmissions.saturating_add(1) };
        let kind = if exchange.role.is_for_a_request() {
            OutputKind::Undelivered { exchange: id, request: exchange.answers, why }
        } else {
            OutputKind::Failed { exchange: id, why, copies }
        };
        self.queue.push(to, kind, &[]);
        if exchange.is_counted() {
            self.counts.one_more(Count::Failed(why));
        }
        if why == Failure::GaveUp
            && !was_exhausted
            && let Some(peer) = self.peers.get_mut(exchange.peer)
        {
            peer.answers = false;
        }
        self.leave(slot, now);
    }

    /// Exchanges under way with this peer go on without the controller of its path: it learns that they were cancelled, and from
    /// now on their waits double.
    pub(in crate::endpoint) fn release_controller(&mut self, number: u32, now: Instant) {
        let random = self.random();
        let Some((peer, path, waiting)) = self.peers.with_path_mut(number) else { return };
        let mut others = path.outstanding;
        let mut slot = peer.open.first();
        loop {
            let next = List::after(&self.exchanges.slots, slot);
            let Some(exchange) = self.exchanges.get_mut(slot) else { return };
            if core::mem::take(&mut exchange.controlled) {
                let open = exchange.open_with(others);
                let cx = random.cx((peer.number, waiting), now, open, exchange.number, About::End);
                path.controller.on_end(&exchange.record, End::Cancelled, cx);
                path.keeps_contract();
                others = open.saturating_sub(1);
            }
            slot = next;
        }
    }

    /// Takes a message out of the books; the next may leave.
    pub(in crate::endpoint) fn leave(&mut self, slot: u32, now: Instant) {
        self.timers.clear(slot);
        let Some(exchange) = self.exchanges.get(slot) else { return };
        let (number, stage) = (exchange.peer, exchange.stage);
        let is_counted = exchange.is_counted() && stage != Stage::Subscribed;
        if stage == Stage::Waiting {
            self.peers.unhold(number, &mut self.exchanges, slot);
        } else {
            let Some((peer, path, _)) = self.peers.with_path_mut(number) else { return };
            peer.open.remove(&mut self.exchanges.slots, slot);
            match stage {
                Stage::Sent | Stage::NonConfirmable => path.settled(),
                Stage::Exhausted | Stage::Acknowledged | Stage::Subscribed | Stage::Waiting => {}
            }
            self.exchanges.leave(slot, &self.setup.id_generator);
        }
        self.exchanges.counted = self.exchanges.counted.saturating_sub(u32::from(is_counted));
        self.exchanges.release(slot);
        self.pump(number, now);
        self.peers.settle(number, true);
    }

    /// Whom a message is for, and how many copies followed the first.
    fn whose(&self, slot: u32) -> Option<(A, u8)> {
        let exchange = self.exchanges.get(slot)?;
        Some((self.peers.get(exchange.peer)?.address, exchange.retransmissions))
    }
}

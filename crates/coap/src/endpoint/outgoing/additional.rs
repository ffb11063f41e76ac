//! Responses of ours beyond the first one to a request.

use alloc::{boxed::Box, collections::VecDeque};
use core::{fmt::Debug, hash::Hash};

use hashbrown::HashMap;
use millpond_control::{Controller, Instant};
use rustc_hash::FxBuildHasher;

use crate::endpoint::{
    Endpoint, ExchangeId, Outgoing, Refused,
    counters::Count,
    exchanges::{Exchange, Role},
    groups::Groups,
    message_ids::later,
    peers::Peer,
    send::{spelled, write},
    unanswered::Unanswered,
};
use crate::message::{Code, Kind, MessageId, Token};
use crate::output::OutputKind;
use crate::parts;
use crate::protection::Protection;

/// What only endpoints keep that send non-confirmable messages, use groups or are protected.
#[derive(Debug)]
pub(in crate::endpoint) struct ExtraState<A> {
    /// Those last sent, oldest first.
    rejectable: VecDeque<(A, MessageId, ExchangeId)>,
    /// Until when PROBING_RATE is used up towards peers that have never answered, by their slots: for what leaves
    /// non-confirmably.
    pub(in crate::endpoint) probes: HashMap<u32, Instant, FxBuildHasher>,
    pub(in crate::endpoint) groups: Option<Box<Groups<A>>>,
    pub(in crate::endpoint) unanswered: Unanswered<A>,
    /// By which its messages are protected.
    pub(in crate::endpoint) protection: Option<Box<dyn Protection<A>>>,
}

impl<A: Copy + Eq + Hash> ExtraState<A> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self {
            rejectable: VecDeque::new(),
            probes: HashMap::with_hasher(FxBuildHasher),
            groups: None,
            unanswered: Unanswered::new(),
            protection: None,
        }
    }

    pub(in crate::endpoint) fn groups_mut(&mut self) -> &mut Groups<A> {
        self.groups.get_or_insert_with(|| Box::new(Groups::new()))
    }

    /// When the first answer to a request that came to a group is to leave.
    #[inline]
    pub(in crate::endpoint) fn first_due(&self) -> Option<Instant> {
        self.groups.as_deref().filter(|_| parts::GROUPS).and_then(Groups::first_due)
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        let rejectable = self.rejectable.capacity().wrapping_mul(size_of::<(A, MessageId, ExchangeId)>());
        size_of::<Self>()
            .saturating_add(rejectable)
            .saturating_add(self.probes.allocation_size())
            .saturating_add(self.unanswered.memory())
            .saturating_add(self.groups.as_deref().map_or(0, Groups::memory))
    }

    /// The message that this reset is for, which is forgotten.
    pub(in crate::endpoint) fn rejected(&mut self, from: A, id: MessageId) -> Option<ExchangeId> {
        // IDs differ more often than addresses.
        let place = self.rejectable.iter().rposition(|(to, sent, _)| *sent == id && *to == from)?;
        self.rejectable.remove(place).map(|(_, _, exchange)| exchange)
    }
}

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Says that further responses will be sent on the token of a request that was answered, or no more of them. Of protected
    /// ones this is needed: from here on the endpoint knows by which request to protect them.
    pub fn hold_token(&mut self, peer: A, token: Token, is_held: bool) {
        self.observes_protected(peer, token, is_held);
        if let Some(inbox) = self.inbox.as_deref_mut() {
            inbox.requests.hold_token(token, is_held);
        }
    }

    /// Input: an additional response is to be sent on the token of a request that was answered before: a notification
    /// (RFC 7641), or a block of a burst (RFC 9177). A confirmable one is under NSTART like any other and ends as
    /// [`Event::Delivered`](crate::endpoint::Event::Delivered) or [`Event::Undelivered`](crate::endpoint::Event::Undelivered). A
    /// non-confirmable one leaves when the controller admits it, and not faster than PROBING_RATE to a peer that has
    /// never answered; a reset for it is [`Event::Rejected`](crate::endpoint::Event::Rejected).
    ///
    /// A non-confirmable request is taken too: one that is never answered on its own token, as the payloads of a body
    /// of RFC 9177. Nothing is awaited for it; see [`claim`](Self::claim).
    ///
    /// # Errors
    /// What cannot be sent or exceeds a limit. Nothing is sent then.
    pub fn send_additional(
        &mut self,
        now: Instant,
        to: A,
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<ExchangeId, Refused> {
        self.notify_protected(now, to, token, message)
    }

    /// Input: the same for a message of a body that is sent as RFC 9177 says: its §7.2 bounds a body by PROBING_RATE, not
    /// each of its messages, and the pauses between them are its sender's. If there is no place for its receiver among the peers, a
    /// non-confirmable response leaves all the same, and nothing is kept of it: what is returned names nothing any more.
    ///
    /// # Errors
    /// As [`send_additional`](Self::send_additional).
    pub fn send_of_body(
        &mut self,
        now: Instant,
        to: A,
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<ExchangeId, Refused> {
        let sent = self.submit_additional(now, to, Role::BodyBlock, token, message);
        sent.or_else(|refused| self.or_without_a_place(refused, to, token, message))
    }

    /// A message was refused. If there was no place for its receiver, which it does not need, it leaves all the same: addresses
    /// that anybody forges may have taken all of them.
    pub(in crate::endpoint) fn or_without_a_place(
        &mut self,
        refused: Refused,
        to: A,
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<ExchangeId, Refused> {
        let is_for_want_of_room = matches!(refused, Refused::TooManyPeers { .. } | Refused::OutOfBytes { .. });
        let is_known = self.peers.find(to, &self.setup.id_generator).is_some();
        let is_plain_response = message.code.is_response() && message.kind == Kind::NonConfirmable;
        if !is_for_want_of_room || is_known || !is_plain_response || self.exchanges.slots.growth() > 0 {
            return Err(refused);
        }
        let start = self.queue.bytes.len();
        let limit = usize::from(self.setup.config.limits.datagram);
        // Another one for each, until 65,536 have left to whomever.
        let count = MessageId(self.counts.get(Count::Sent(Kind::NonConfirmable)) as u16);
        let id = self.setup.id_generator.answer_id(&to, count);
        let token = spelled(self.inbox.as_deref(), to, token)?;
        write(&mut self.queue.bytes, Kind::NonConfirmable, id, token, message, limit)?;
        let slot = self.exchanges.take();
        let exchange = self.exchanges.name(slot);
        self.exchanges.release(slot);
        self.queue.push_written(to, OutputKind::NonConfirmable { exchange }, start);
        self.counts.one_more(Count::Sent(Kind::NonConfirmable));
        Ok(exchange)
    }

    pub(in crate::endpoint) fn submit_additional(
        &mut self,
        now: Instant,
        to: A,
        role: Role,
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<ExchangeId, Refused> {
        let now = self.input(now);
        parts::needed(parts::ADDITIONAL, "observe")?;
        let is_plain_request = message.code.is_request() && message.kind == Kind::NonConfirmable;
        if !message.code.is_response() && !is_plain_request {
            return Err(Refused::Code(message.code));
        }
        self.submit(now, to, (role, None), message, Some(token))
    }

    /// Input: a peer is to show that it is there, by rejecting an empty confirmable message (RFC 7252 §4.3). Ends as
    /// [`Event::Pong`](crate::endpoint::Event::Pong) or [`Event::Failed`](crate::endpoint::Event::Failed).
    ///
    /// # Errors
    /// What exceeds a limit. Nothing is sent then.
    pub fn ping(&mut self, now: Instant, to: A) -> Result<ExchangeId, Refused> {
        let now = self.input(now);
        self.submit(now, to, (Role::Ping, None), &Outgoing::confirmable(Code::EMPTY, &[]), Some(Token::EMPTY))
    }

    /// A non-confirmable message left. `length` is given if PROBING_RATE holds for it.
    pub(in crate::endpoint) fn additional_left(
        &mut self,
        now: Instant,
        peer: u32,
        message: (A, MessageId, ExchangeId),
        length: Option<u16>,
    ) {
        let most = usize::from(self.setup.config.limits.rejectable);
        let pause = length.map(|length| self.probing_pause(length));
        let extra = self.extra_mut();
        if let Some(pause) = pause {
            extra.probes.insert(peer, later(now, pause));
        }
        while extra.rejectable.len() >= most.max(1) {
            extra.rejectable.pop_front();
        }
        if most > 0 {
            extra.rejectable.push_back(message);
        }
    }

    /// For how long so many bytes use up PROBING_RATE, microseconds.
    pub(in crate::endpoint) fn probing_pause(&self, length: u16) -> u64 {
        let rate = u64::from(self.setup.config.transmission.probing_rate.max(1));
        u64::from(length).saturating_mul(1_000_000).checked_div(rate).unwrap_or(0)
    }

    pub(in crate::endpoint) fn extra_mut(&mut self) -> &mut ExtraState<A> {
        self.extra.get_or_insert_with(|| Box::new(ExtraState::new()))
    }

    /// Until when PROBING_RATE is used up towards the peer of a message that it holds for, if that has never answered
    /// (RFC 7252 §4.7).
    #[cold]
    pub(in crate::endpoint) fn probing(&self, peer: &Peer<A>, exchange: &Exchange) -> Option<Instant> {
        if !exchange.role.is_request() && !matches!(exchange.role, Role::AdditionalResponse | Role::Group) {
            return None;
        }
        let extra = self.extra.as_deref().filter(|_| parts::PROBES && !peer.answers)?;
        extra.probes.get(&exchange.peer).copied()
    }

    /// A non-confirmable request went unanswered. To a peer that has never answered the next one leaves when NSTART of them would
    /// not be more than PROBING_RATE (RFC 7252 §4.7), unless the controller sees to that itself.
    pub(in crate::endpoint) fn unanswered(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges.get(slot) else { return };
        let Some((peer, path, _)) = self.peers.with_path(exchange.peer) else { return };
        if peer.answers || path.controller.wishes().governs_requests {
            return;
        }
        let nstart = u64::from(path.nstart(self.setup.config.transmission.nstart));
        let (number, left) = (exchange.peer, exchange.first);
        let until = later(left, self.probing_pause(exchange.length()).saturating_mul(nstart));
        let probes = &mut self.extra_mut().probes;
        let before = probes.get(&number).copied().unwrap_or(until);
        probes.insert(number, before.max(until));
    }

    /// A peer has answered a message of ours.
    #[inline]
    pub(in crate::endpoint) fn heard(&mut self, number: u32, now: Instant) {
        self.acquaint(number, now);
        let Some(peer) = self.peers.get_mut(number) else { return };
        if !core::mem::replace(&mut peer.answers, true)
            && parts::PROBES
            && self.extra.as_deref_mut().is_some_and(|extra| extra.probes.remove(&number).is_some())
        {
            self.pump(number, now);
        }
    }
}

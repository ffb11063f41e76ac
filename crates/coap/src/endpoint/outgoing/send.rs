//! Messages of ours, from being asked for to the first copy.

use alloc::vec::Vec;
use core::{fmt::Debug, hash::Hash};

use millpond_control::{Controller, Instant, Naming, Span, Wishes};

use crate::endpoint::{
    Endpoint, ExchangeId, Failure, Lifetimes, Outgoing, Refused, RequestId, RetransmitOptions, SleepReason,
    Transmission,
    admission::Gate,
    counters::Count,
    exchanges::{Returns, Role, Stage},
    inbox::Inbox,
    message_ids::later,
    naming::CopyTag,
    peers::Full,
    random::About,
    slots::NONE,
};
use crate::layer::RequestMessage;
use crate::long_tokens::{Spelled, padded};
use crate::message::{Kind, MAX_DATAGRAM, MessageId, NoResponse, Token, WriteError, Writer};
use crate::output::OutputKind;
use crate::parts;

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Input: a request is to be sent. It leaves at once, or waits until NSTART, the controller, the token or the
    /// message ID allows it to. If the peer's controller wishes that copies are distinguished, room for that is kept free
    /// within [`Limits::datagram`](crate::Limits::datagram).
    ///
    /// One whose option No-Response (RFC 7967) wants no response at all is over sooner: a confirmable one once it was acknowledged
    /// ([`Delivered`](crate::Event::Delivered)), a non-confirmable one once it left ([`NonConfirmable`](crate::Cause::NonConfirmable)),
    /// which it does at most every 3 s to one peer, and not faster than PROBING_RATE to one that has never answered. A response that
    /// comes with the acknowledgement, or before it, is told as ever. A token given by the caller, or shorter than 3 bytes, then
    /// stays reserved, so that no request that wants a response has it, until no late response is possible.
    ///
    /// # Errors
    /// What cannot be sent or exceeds a limit. Nothing is sent then.
    #[inline]
    pub fn request(&mut self, now: Instant, to: A, request: &Outgoing<'_>) -> Result<ExchangeId, Refused> {
        self.request_as(now, to, request, RequestMessage::First)
    }

    /// The same for any of the messages of which a request may consist.
    pub(in crate::endpoint) fn request_as(
        &mut self,
        now: Instant,
        to: A,
        request: &Outgoing<'_>,
        place: RequestMessage,
    ) -> Result<ExchangeId, Refused> {
        match self.protection() {
            Some(_) => self.request_protected(now, to, request, place),
            None => self.send_request(now, to, request, place),
        }
    }

    /// The same as it is written. What goes on with what was begun before waits behind any number of others: who sends that has a
    /// bound of its own for what it begins.
    pub(in crate::endpoint) fn send_request(
        &mut self,
        now: Instant,
        to: A,
        request: &Outgoing<'_>,
        place: RequestMessage,
    ) -> Result<ExchangeId, Refused> {
        if place == RequestMessage::Subscription {
            return self.send_subscription(now, to, request);
        }
        let now = self.input(now);
        let role = (Role::of(request)?, None);
        match place {
            RequestMessage::Next => self.submit_behind(now, to, role, request, request.token, u32::MAX),
            _ => self.submit(now, to, role, request, request.token),
        }
    }

    /// Accepts a message for sending: it leaves now or waits. Returns its name, which names nothing any more if it was
    /// a non-confirmable response that left.
    pub(in crate::endpoint) fn submit(
        &mut self,
        now: Instant,
        to: A,
        (role, answers): (Role, Option<RequestId>),
        message: &Outgoing<'_>,
        token: Option<Token>,
    ) -> Result<ExchangeId, Refused> {
        let most = self.setup.config.limits.waiting_per_peer.into();
        self.submit_behind(now, to, (role, answers), message, token, most)
    }

    /// The same, behind at most so many that wait.
    pub(in crate::endpoint) fn submit_behind(
        &mut self,
        now: Instant,
        to: A,
        (role, answers): (Role, Option<RequestId>),
        message: &Outgoing<'_>,
        token: Option<Token>,
        most: u32,
    ) -> Result<ExchangeId, Refused> {
        if !matches!(message.kind, Kind::Confirmable | Kind::NonConfirmable) {
            return Err(Refused::Kind(message.kind));
        }
        self.check_protection(message)?;
        if role.asks() && token.is_some_and(|token| self.is_groups(token)) {
            return Err(Refused::TokenOfGroup);
        }
        if let Some(asked) =
            message.retransmit.max_retransmit.filter(|asked| *asked > Transmission::MOST_RETRANSMISSIONS)
        {
            return Err(Refused::TooManyCopies { asked });
        }
        let known = self.peers.find(to, &self.setup.id_generator);
        let slot = self.write((known, to), role, message, token)?;
        let peer = match known {
            Some(peer) => peer,
            None => self.new_peer(now, to, Some(role)).inspect_err(|_| self.exchanges.release(slot))?,
        };
        if !role.is_for_a_request() {
            self.acquaint(peer, now);
        }
        let Some(exchange) = self.exchanges.get_mut(slot) else { return Err(self.out_of_bytes()) };
        exchange.peer = peer;
        exchange.answers = answers;
        let name = self.exchanges.name(slot);
        let Some(exchange) = self.exchanges.get(slot) else { return Err(self.out_of_bytes()) };
        let is_counted = exchange.is_counted();
        let waiting = self.peers.get(peer).map_or(0, |peer| peer.waiting.len());
        // A non-confirmable response is not subject to NSTART, so it need not stand behind what is, nor the other way.
        let others_wait = is_counted && self.peers.others_wait(peer);
        let is_next = !others_wait && (waiting == 0 || !is_counted || self.only_furthers_wait(peer));
        let gate = if is_next { self.gate(slot, now) } else { Gate::Closed };
        let is_in_the_way = is_next && self.exchanges.has_overdue && !matches!(gate, Gate::Open);
        let gate = if is_in_the_way { self.make_way(peer, slot, now) } else { gate };
        // Who asked non-confirmably does not wait for long: what cannot leave at once is lost, as on the way.
        let may_wait = is_counted || !role.is_drawn();
        match gate {
            Gate::Open => self.launch(slot, now),
            _ if waiting >= most || !may_wait => {
                self.exchanges.release(slot);
                return Err(match gate {
                    Gate::Until(until, SleepReason::MessageId) => Refused::NoMessageId { until },
                    _ => Refused::TooManyWaiting { limit: self.setup.config.limits.waiting_per_peer },
                });
            }
            closed => self.hold_back(slot, now, peer, role, closed, is_next),
        }
        if is_counted {
            self.counts.one_more(Count::Begun);
            self.exchanges.counted = self.exchanges.counted.saturating_add(1);
        }
        if others_wait {
            // They may wait for what is theirs alone.
            self.pump(peer, now);
        }
        self.peers.settle(peer, true);
        Ok(name)
    }

    /// A message has to wait; if it is the next to leave, until the gate opens at the latest.
    #[cold]
    fn hold_back(&mut self, slot: u32, now: Instant, peer: u32, role: Role, gate: Gate, is_next: bool) {
        self.peers.hold(peer, &mut self.exchanges, slot);
        self.exchanges.holds_additional |= role.is_additional() || role.is_to_a_group() || role.is_unanswered();
        if let Gate::Until(at, reason) = gate
            && is_next
        {
            self.arm(slot, now, at, reason);
        }
    }

    /// Writes a message into a slot of its own; message ID and generated token are left blank. What is to tell its
    /// copies apart has room beside it.
    fn write(
        &mut self,
        (peer, to): (Option<u32>, A),
        role: Role,
        message: &Outgoing<'_>,
        token: Option<Token>,
    ) -> Result<u32, Refused> {
        let wishes = if role.is_request() { self.wishes(peer) } else { Wishes::NONE };
        let mark = if wishes.naming == Naming::None { CopyTag::Nothing } else { self.mark_for(peer, wishes, message) };
        let growth = self.exchanges.slots.growth();
        if growth > 0 && !self.has_room(growth) {
            return Err(self.out_of_bytes());
        }
        let most = message.retransmit.max_retransmit.unwrap_or(self.setup.config.transmission.max_retransmit);
        self.exchanges.names_by_token |= mark == CopyTag::Token;
        // From then on all have one length, so that none is ever another one with the number of a copy behind it.
        let longest = if self.exchanges.names_by_token { Token::MAX.saturating_sub(1) } else { Token::MAX };
        let made_length = longest.min(usize::from(self.setup.config.token_length));
        let blank = [0; Token::MAX];
        let blank = blank.get(..made_length).and_then(Token::new);
        let (own_token, token) = (token.is_some(), token.or(blank).unwrap_or_default());
        let longer =
            if parts::LONG_TOKENS && role.asks() { padded(token, self.setup.config.token_length.into()) } else { None };
        let spelled = match &longer {
            Some(longer) => Spelled::Long(longer),
            None => spelled(self.inbox.as_deref(), to, token)?,
        };
        let slot = self.exchanges.take();
        let Some(exchange) = self.exchanges.get_mut(slot) else { return Err(self.out_of_bytes()) };
        exchange.role = role;
        exchange.kind = message.kind;
        exchange.own_token = own_token;
        let limits = parts::NO_RESPONSE
            && message.kind == Kind::NonConfirmable
            && role.asks()
            && NoResponse::of(message.options) != NoResponse::NONE;
        exchange.returns = if limits { Returns::Limited } else { Returns::Response };
        exchange.mark = mark;
        exchange.most = most;
        exchange.wait = message.retransmit.ack_timeout;
        let before = exchange.bytes.capacity();
        let limit = usize::from(self.setup.config.limits.datagram).saturating_sub(mark.room());
        let written = write(&mut exchange.bytes, message.kind, MessageId(0), spelled, message, limit);
        if mark != CopyTag::Nothing {
            exchange.bytes.reserve_exact(mark.buffer(most));
        }
        let has_grown = exchange.bytes.capacity() > before;
        self.exchanges.account(slot);
        if let Err(error) = written {
            self.exchanges.release(slot);
            return Err(Refused::Message(error));
        }
        if has_grown && !self.has_room(0) {
            self.exchanges.release_with_buffer(slot);
            return Err(self.out_of_bytes());
        }
        Ok(slot)
    }

    /// What the controller of a peer wishes, or would if the peer were known.
    #[inline]
    fn wishes(&self, peer: Option<u32>) -> Wishes {
        let known = peer.and_then(|peer| self.peers.path(peer));
        known.map_or_else(|| self.setup.prototype.wishes(), |path| path.controller.wishes())
    }

    /// What is to tell the copies of a request apart: what the peer's controller wishes, unless the caller uses the same
    /// place for something of its own, tokens are padded, or the peer's server does not know it.
    #[cold]
    fn mark_for(&self, peer: Option<u32>, wishes: Wishes, request: &Outgoing<'_>) -> CopyTag {
        let config = &self.setup.config;
        // What is sent once need not be distinguished; a non-confirmable message may yet become confirmable.
        let may_repeat = request.kind == Kind::Confirmable || (config.may_confirm && wishes.confirmable_every > 0);
        let wished = if may_repeat { CopyTag::wished(wishes.naming) } else { CopyTag::Nothing };
        let is_callers = match wished.option(&config.naming) {
            Some(number) => request.options.iter().any(|(other, _)| *other == number),
            None => request.token.is_some() || usize::from(config.token_length) > Token::MAX,
        };
        match peer.and_then(|peer| self.peers.get(peer)) {
            _ if is_callers => CopyTag::Nothing,
            Some(peer) => peer.echoes.granted(wished),
            None => wished,
        }
    }

    /// The slot of a peer, which becomes known if it was not.
    pub(in crate::endpoint) fn peer_for(&mut self, now: Instant, address: A) -> Result<u32, Refused> {
        let peer = self.place_for(now, address)?;
        self.acquaint(peer, now);
        Ok(peer)
    }

    /// The same, and it comes onto no path yet that it shares.
    pub(in crate::endpoint) fn place_for(&mut self, now: Instant, address: A) -> Result<u32, Refused> {
        match self.peers.find(address, &self.setup.id_generator) {
            Some(peer) => Ok(peer),
            None => self.new_peer(now, address, None),
        }
    }

    /// The slot of a peer that was not known, which is unvalidated at first. It takes no place from anybody whose
    /// message IDs may not be used again yet; who is more than that takes it from unvalidated peers. For answers and parts of bodies, which leave
    /// without a place as well, there are half of the places: who observes has to have one.
    fn new_peer(&mut self, now: Instant, address: A, role: Option<Role>) -> Result<u32, Refused> {
        let is_unvalidated = role.is_some_and(Role::is_for_a_request);
        let limit = self.setup.config.limits.peers;
        let needs_none = matches!(role, Some(Role::Response | Role::BodyBlock | Role::GroupResponse));
        let limit = if needs_none { limit.div_ceil(2) } else { limit };
        let growth = self.peers.growth(&self.setup.prototype);
        let is_out_of_bytes = growth > 0 && !self.has_room(growth);
        if self.peers.len() >= limit || is_out_of_bytes {
            let forgettable = self.peers.forgettable(now, self.exchange_lifetime());
            let oldest = match (forgettable, self.peers.oldest_unvalidated_peer().filter(|_| !is_unvalidated)) {
                (Ok(oldest), _) => oldest,
                (Err(_), Some(unvalidated)) => {
                    self.drop_exchanges(unvalidated, now);
                    unvalidated
                }
                (Err(_), None) if is_out_of_bytes => return Err(self.out_of_bytes()),
                (Err(Full { until }), None) => return Err(Refused::TooManyPeers { limit, until }),
            };
            self.peers.remove(oldest, &self.setup.id_generator);
            self.counts.one_more(Count::ForgottenPeer);
        }
        let peer = self.peers.add(self.node(), address, self.setup.prototype.clone(), &self.setup.id_generator);
        if let Some(extra) = self.extra.as_deref_mut() {
            if parts::PROBES {
                extra.probes.remove(&peer);
            }
            if parts::NO_RESPONSE {
                extra.unanswered.remove(peer);
            }
        }
        Ok(peer)
    }

    /// Whatever is under way to a peer ends as cancelled. Those that wait go first, so that none of them leaves.
    pub(in crate::endpoint) fn drop_exchanges(&mut self, number: u32, now: Instant) {
        loop {
            let Some(peer) = self.peers.get(number) else { return };
            let slot = if peer.waiting.is_empty() { peer.open.first() } else { peer.waiting.first() };
            if slot == NONE {
                return;
            }
            self.fail(slot, now, Failure::Cancelled);
        }
    }

    /// The first copy leaves.
    pub(in crate::endpoint) fn launch(&mut self, slot: u32, now: Instant) {
        let random = self.random();
        let Some(exchange) = self.exchanges.get(slot) else { return };
        let number = exchange.peer;
        let Some((peer, path, _)) = self.peers.with_path(number) else { return };
        let token = if self.has_fixed_token(exchange) { None } else { self.make_token(peer, exchange) };
        let kind = self.kind_now(path, exchange);
        let (count, is_promoted) = (peer.ids.used(), kind != exchange.kind);
        if exchange.role.is_unanswered() {
            let token = (token.unwrap_or(exchange.token()), self.has_fixed_token(exchange));
            self.retire(number, now, token);
        }
        if parts::NON_MESSAGES && is_promoted {
            self.confirm(slot);
        }
        let (lifetime, longer) = (self.exchange_lifetime(), self.lives_longer(slot));
        let Self { peers, exchanges, setup, .. } = self;
        let Some(id) = peers.take_id(number, now, lifetime, longer) else { return };
        let name = exchanges.name(slot);
        let (Some(exchange), Some((peer, path, waiting))) = (exchanges.get_mut(slot), peers.with_path_mut(number))
        else {
            return;
        };
        exchange.number = count as u32;
        (exchange.first, exchange.last) = (now, now);
        exchange.address(id, token);
        if exchange.mark != CopyTag::Nothing {
            let is_repeated = kind == Kind::Confirmable;
            let mark = if is_repeated { peer.echoes.granted(exchange.mark) } else { CopyTag::Nothing };
            exchange.mark_first(mark, &setup.config.naming, now);
        }
        let is_drawn = exchange.role.is_drawn() && kind == Kind::NonConfirmable;
        if !is_drawn {
            path.left(exchange.role, kind);
        }
        self.counts.one_more(Count::Sent(exchange.kind));
        if parts::NON_MESSAGES && exchange.kind != Kind::Confirmable {
            return if !parts::NON_CONFIRMABLE || exchange.role.is_forgotten() {
                self.launch_and_forget(slot, now, name)
            } else {
                self.launch_plain(slot, now)
            };
        }
        path.outstanding = path.outstanding.saturating_add(1);
        let cx = random.cx((peer.number, waiting), now, path.outstanding, exchange.number, About::Copy(0));
        exchange.stage = Stage::Sent;
        exchange.controlled = true;
        let length = exchange.length();
        let wait = path.controller.on_start(&mut exchange.record, length, cx);
        let wait = exchange.lengthen(wait, exchange.wait);
        let at = now.after(wait.span);
        self.queue.push(peer.address, OutputKind::Copy { id: name, copy: 0, wait }, exchange.message());
        path.keeps_contract();
        peer.open.push(&mut exchanges.slots, slot);
        exchanges.enter(slot, &setup.id_generator);
        self.arm(slot, now, at, SleepReason::Retransmission);
    }

    /// A non-confirmable request leaves, of which the answer is awaited.
    #[cold]
    fn launch_plain(&mut self, slot: u32, now: Instant) {
        let random = self.random();
        let Some(exchange) = self.exchanges.get_mut(slot) else { return };
        let Some((peer, path, waiting)) = self.peers.with_path_mut(exchange.peer) else { return };
        path.outstanding = path.outstanding.saturating_add(1);
        let cx = random.cx((peer.number, waiting), now, path.outstanding, exchange.number, About::Copy(0));
        exchange.stage = Stage::NonConfirmable;
        exchange.set_nth_asked(path.asked);
        path.asked = path.asked.wrapping_add(1);
        path.controller.on_plain_send(exchange.length(), cx);
        self.queue.push(peer.address, OutputKind::NonConfirmableRequest, exchange.message());
        path.keeps_contract();
        let (number, length, limits) = (exchange.peer, exchange.length(), exchange.returns == Returns::Limited);
        peer.open.push(&mut self.exchanges.slots, slot);
        self.exchanges.enter(slot, &self.setup.id_generator);
        if limits {
            self.begin_pause(number, now, length);
        }
        let at = self.response_due(slot, now);
        self.arm(slot, now, at, SleepReason::Response);
    }

    /// A non-confirmable message leaves for which nothing is awaited.
    #[cold]
    fn launch_and_forget(&mut self, slot: u32, now: Instant, name: ExchangeId) {
        let random = self.random();
        let Some(exchange) = self.exchanges.get_mut(slot) else { return };
        let number = exchange.peer;
        let Some((peer, path, waiting)) = self.peers.with_path_mut(number) else { return };
        let length = exchange.length();
        let cx = random.cx((peer.number, waiting), now, path.outstanding, exchange.number, About::Copy(0));
        if !exchange.role.is_drawn() && !path.controller.wishes().governs_requests {
            path.controller.on_plain_send(length, cx);
        }
        let kind = match exchange.answers {
            Some(request) => OutputKind::Reply { request, repeated: false },
            None => OutputKind::NonConfirmable { exchange: name },
        };
        self.queue.push(peer.address, kind, exchange.message());
        if exchange.role.is_to_a_group() {
            self.group_request_left(now, number, name, length);
        } else if exchange.role.is_additional() {
            let probes = exchange.role == Role::AdditionalResponse && !peer.answers;
            let (address, id) = (peer.address, exchange.id());
            self.additional_left(now, number, (address, id, name), probes.then_some(length));
        } else if exchange.role.is_unanswered() {
            let (address, id) = (peer.address, exchange.id());
            self.additional_left(now, number, (address, id, name), None);
            self.begin_pause(number, now, length);
        }
        self.exchanges.release(slot);
    }

    /// By how many microseconds its own retransmission makes this message live longer than EXCHANGE_LIFETIME. That is its
    /// message ID's and nobody else's: what others send us lives as ever.
    #[inline]
    fn lives_longer(&self, slot: u32) -> u64 {
        let transmission = &self.setup.config.transmission;
        let confirmable = self.exchanges.get(slot).filter(|exchange| exchange.kind == Kind::Confirmable);
        let Some(exchange) = confirmable else { return 0 };
        if exchange.wait == Span::ZERO && exchange.most <= transmission.max_retransmit {
            return 0;
        }
        let Some(path) = self.peers.path(exchange.peer) else { return 0 };
        let retransmit = RetransmitOptions { max_retransmit: Some(exchange.most), ack_timeout: exchange.wait };
        let lifetimes = Lifetimes::with_retransmit(&path.controller, transmission, retransmit);
        lifetimes.exchange.saturating_sub(self.exchange_lifetime())
    }

    /// Makes a non-confirmable message confirmable. A response counts in the books from now on.
    fn confirm(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges.get_mut(slot) else { return };
        let was_counted = exchange.is_counted();
        exchange.confirm();
        if !was_counted {
            self.counts.one_more(Count::Begun);
            self.exchanges.counted = self.exchanges.counted.saturating_add(1);
        }
    }

    /// Sets the timer of a message. It never fires at once, so that draining always comes to an end.
    pub(in crate::endpoint) fn arm(&mut self, slot: u32, now: Instant, at: Instant, reason: SleepReason) {
        if let Some(exchange) = self.exchanges.get_mut(slot) {
            exchange.alarm = reason;
        }
        self.timers.set(slot, at.max(later(now, 1)));
    }

    /// Until when a response is awaited if none is being fetched by retransmissions: for the lifetime of the message. That of a
    /// non-confirmable one is at most the RFC's own, however long the timers of the peer's controller may become: it is not
    /// sent again.
    pub(in crate::endpoint) fn response_due(&self, slot: u32, now: Instant) -> Instant {
        /// MAX_TRANSMIT_SPAN of RFC 7252 §4.8.2, microseconds.
        const TRANSMIT_SPAN: u64 = 45_000_000;
        let is_confirmable = self.exchanges.get(slot).is_some_and(|exchange| exchange.kind == Kind::Confirmable);
        let latency = u64::from(self.setup.config.transmission.max_latency.as_micros());
        let most = if is_confirmable { u64::MAX } else { latency.saturating_add(TRANSMIT_SPAN) };
        let lifetime = if is_confirmable { self.exchange_lifetime() } else { self.non_lifetime() };
        later(now, lifetime.min(most))
    }

    /// May so many bytes more be held?
    #[cold]
    pub(in crate::endpoint) fn has_room(&self, more: usize) -> bool {
        self.memory().saturating_add(more) <= self.setup.config.limits.bytes
    }

    pub(in crate::endpoint) fn out_of_bytes(&self) -> Refused {
        Refused::OutOfBytes { limit: self.setup.config.limits.bytes }
    }
}

/// A token as it is written: one of more than 8 bytes is kept with the requests that came with it.
///
/// # Errors
/// It made room for those of others.
#[inline]
pub(in crate::endpoint) fn spelled<A: Copy + Eq + Hash>(
    inbox: Option<&Inbox<A>>,
    peer: A,
    token: Token,
) -> Result<Spelled<'_>, Refused> {
    if !parts::LONG_TOKENS || !token.is_long() {
        return Ok(Spelled::Short(token));
    }
    let kept = inbox.and_then(|inbox| inbox.requests.token_bytes(peer, token));
    kept.map(Spelled::Long).ok_or(Refused::TokenForgotten)
}

/// Writes one whole message behind what the buffer holds. What a token has beyond 8 bytes comes on top of the limit: who chose it
/// sent as much.
pub(in crate::endpoint) fn write(
    buffer: &mut Vec<u8>,
    kind: Kind,
    id: MessageId,
    token: Spelled<'_>,
    message: &Outgoing<'_>,
    limit: usize,
) -> Result<usize, WriteError> {
    let writer = match token {
        // Nobody has made one then.
        Spelled::Long(token) if !parts::LONG_TOKENS => {
            return Err(WriteError::OverLimit { needed: token.len(), limit });
        }
        Spelled::Short(token) => Writer::start(buffer, kind, message.code, id, token),
        Spelled::Long(token) => Writer::start_extended(buffer, kind, message.code, id, token),
    };
    let mut writer = writer.within(limit.saturating_add(token.beyond()).min(MAX_DATAGRAM));
    for (number, value) in message.options {
        writer.put_option(*number, value)?;
    }
    writer.payload(message.payload)?;
    writer.finish()
}

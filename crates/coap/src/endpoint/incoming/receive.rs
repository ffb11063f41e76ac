//! What comes in.

use core::{fmt::Debug, hash::Hash};

use millpond_control::{Instant, ReplyKind};

use crate::endpoint::{
    Config, Endpoint, Failure, Ignored, Outgoing, RequestId,
    counters::Count,
    duplicates::{Key, Known, Reply, Stored},
    exchanges::{Returns, Role, Stage},
    inbox::Inbox,
    message_ids::{earlier, later},
    naming::Echo,
    requests::ResponseMode,
    send::write,
};
use crate::long_tokens::{Spelled, unpadded};
use crate::message::{Code, Fault, Kind, Message, MessageId, ParseError, Token, Uint, Writer, copies_share, number};
use crate::output::OutputKind;
use crate::parts;

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Input: a datagram came in. Whatever its bytes, this ends in at most a few outputs.
    pub fn receive(&mut self, now: Instant, from: A, datagram: &[u8]) {
        let now = self.input(now);
        if datagram.len() > usize::from(self.setup.config.limits.longest_received()) {
            return self.too_long(now, from, datagram);
        }
        // Outputs that nobody drains must not fill the memory.
        if !self.queue.is_empty() && !self.has_room(self.queue.growth(datagram.len())) {
            return self.counts.one_more(Count::Ignored(Ignored::NoRoom));
        }
        // Looked at where it lies: it is not small.
        let parsed = Message::read(datagram);
        let message = match &parsed {
            Ok(message) => message,
            Err(error) => return self.take_unread(now, from, datagram, *error),
        };
        self.take_message(now, from, message, datagram);
    }

    /// The same with a datagram that a queue marked in place of dropping it (ECN, RFC 3168). If it answers a confirmable request,
    /// the peer's controller is told so with what the answer says of the path ([`Sample::is_marked`]). A caller must not say so, nor
    /// let answers be marked, unless the controller [asks for it][`Wishes::ecn`].
    ///
    /// [`Sample::is_marked`]: millpond_control::Sample::is_marked
    /// [`Wishes::ecn`]: millpond_control::Wishes::ecn
    pub fn receive_marked(&mut self, now: Instant, from: A, datagram: &[u8]) {
        self.exchanges.is_marked = true;
        self.receive(now, from, datagram);
        self.exchanges.is_marked = false;
    }

    /// A datagram that is no message of RFC 7252 may be one of RFC 8974.
    #[cold]
    fn take_unread(&mut self, now: Instant, from: A, datagram: &[u8], error: ParseError) {
        if !parts::LONG_TOKENS {
            return self.malformed(from, error);
        }
        let Config { longest_token, token_length, .. } = self.setup.config;
        let takes = |limit: u16| parts::LONG_TOKENS && usize::from(limit) > Token::MAX;
        let read = match error.fault {
            Fault::TokenLength(_) if takes(longest_token.max(token_length)) => Message::parse_extended(datagram),
            _ => Err(error),
        };
        let (message, token) = match read {
            Ok((message, _)) if message.code.is_request() && (!parts::SERVER || !takes(longest_token)) => {
                return self.malformed(from, error);
            }
            Ok(read) => read,
            Err(error) => return self.malformed(from, error),
        };
        let name = if !parts::SERVER || !message.code.is_request() {
            unpadded(token, token_length.into())
        } else if token.len() > longest_token.into() {
            return self.refuse_token(from, &message, token, Code::BAD_REQUEST);
        } else {
            let network = self.network_of(&from);
            let growth = self.inbox_or_new().requests.token_growth(token.len());
            let has_room = self.has_room(growth);
            let requests = &mut self.inbox_or_new().requests;
            let kept = if has_room { requests.keep_token(from, network, token) } else { None };
            match kept {
                Some(name) => name,
                None => return self.refuse_token(from, &message, token, Code::SERVICE_UNAVAILABLE),
            }
        };
        let (message, renamed) = (message.named(name), message.renamed(name));
        self.take_message(now, from, &message, &renamed);
    }

    /// It is no message: a confirmable one is rejected (RFC 7252 §4.2).
    fn malformed(&mut self, from: A, error: ParseError) {
        if let Some(id) = error.reset() {
            self.reset(from, id);
        }
        self.ignore(from, Ignored::Malformed(error));
    }

    /// A request is answered without anything being kept, for its token is too long or there is no room for it. It must not be
    /// rejected: that would say that long tokens are not understood at all (RFC 8974 §2.2.2).
    fn refuse_token(&mut self, from: A, message: &Message<'_>, token: &[u8], code: Code) {
        self.counts.one_more(Count::Received(message.kind));
        let (kind, id) = match message.kind {
            Kind::Confirmable => (Kind::Acknowledgement, message.id),
            _ => (Kind::NonConfirmable, self.setup.id_generator.answer_id(&from, message.id)),
        };
        let payload: &[u8] = if code == Code::BAD_REQUEST { b"token too long" } else { b"" };
        let refusal = Outgoing { payload, ..Outgoing::confirmable(code, &[]) };
        let (start, limit) = (self.queue.bytes.len(), usize::from(self.setup.config.limits.datagram));
        if write(&mut self.queue.bytes, kind, id, Spelled::Long(token), &refusal, limit).is_ok() {
            self.queue.push_written(from, OutputKind::Ack, start);
            self.counts.one_more(Count::Sent(kind));
        }
        self.ignore(from, Ignored::LongToken { is_for_want_of_room: code != Code::BAD_REQUEST });
    }

    fn take_message(&mut self, now: Instant, from: A, message: &Message<'_>, datagram: &[u8]) {
        self.counts.one_more(Count::Received(message.kind));
        match message.kind {
            Kind::Confirmable if message.code.is_empty() => {
                self.reset(from, message.id);
                self.ignore(from, Ignored::Ping);
            }
            Kind::Confirmable | Kind::NonConfirmable if message.code.is_request() => {
                if parts::SERVER {
                    return self.request_came(now, from, message, datagram, None);
                }
                self.not_served(from, message);
            }
            Kind::Confirmable | Kind::NonConfirmable => self.response_came(now, from, message, datagram),
            Kind::Acknowledgement => self.acknowledgement_came(now, from, message, datagram),
            Kind::Reset => self.reset_came(now, from, message, datagram),
        }
    }

    /// A request, and nobody serves any here: a confirmable one is rejected (RFC 7252 §4.2).
    #[cold]
    fn not_served(&mut self, from: A, message: &Message<'_>) {
        if message.kind == Kind::Confirmable {
            self.reset(from, message.id);
        }
        self.ignore(from, Ignored::NotServed);
    }

    /// A message that is longer than what is taken. A request is answered with 4.13; any other confirmable message is rejected,
    /// so that its sender need not find out by all its copies (RFC 7252 §4.2). One that answers a request ends it: what the
    /// server has will not become shorter.
    #[cold]
    fn too_long(&mut self, now: Instant, from: A, datagram: &[u8]) {
        match Message::read(datagram) {
            Ok(message) if parts::SERVER && message.code.is_request() => {
                self.counts.one_more(Count::Received(message.kind));
                if let Some(slot) = self.admit(now, from, &message, None) {
                    self.refuse_long(now, slot, message.kind);
                }
                return self.ignore(from, Ignored::TooLong { is_answered: true });
            }
            Ok(message) if message.code.is_response() => {
                if let Some((slot, peer, kind)) = self.answers(from, &message) {
                    self.answered_badly(slot, now, (kind, Failure::LongResponse), &message);
                    self.heard(peer, now);
                }
            }
            _ => {}
        }
        let header = copies_share(datagram).zip(datagram.first());
        if let Some((shared, _)) = header.filter(|(_, first)| Kind::of_first_byte(**first) == Kind::Confirmable) {
            self.reset(from, MessageId(shared as u16));
        }
        self.ignore(from, Ignored::TooLong { is_answered: false });
    }

    /// Answers a request whose datagram is too long: what else it says nobody looks at.
    #[cold]
    fn refuse_long(&mut self, now: Instant, slot: u32, kind: Kind) {
        let Some(id) = self.inbox.as_deref().map(|inbox| inbox.requests.name(slot)) else { return };
        let size1 = Uint::new(self.setup.config.limits.longest_received().into());
        let options = [(number::SIZE1, size1.as_bytes())];
        let payload = b"send it in blocks";
        let refusal = Outgoing { kind, payload, ..Outgoing::confirmable(Code::REQUEST_ENTITY_TOO_LARGE, &options) };
        // For want of room its sender asks again.
        let _ = self.send_response(now, id, &refusal);
    }

    /// RFC 7252 §4.5, §5.2. One that came to a group is to be answered at a certain time.
    pub(in crate::endpoint) fn request_came(
        &mut self,
        now: Instant,
        from: A,
        message: &Message<'_>,
        datagram: &[u8],
        by_group: Option<Instant>,
    ) {
        let Some(slot) = self.admit(now, from, message, by_group) else { return };
        let Some(inbox) = self.inbox.as_deref() else { return };
        self.queue.push_message(from, OutputKind::Request { id: inbox.requests.name(slot) }, message, datagram);
        self.counts.one_more(Count::Request);
    }

    /// The place of a request that came for the first time and for which there is room.
    fn admit(&mut self, now: Instant, from: A, message: &Message<'_>, by_group: Option<Instant>) -> Option<u32> {
        self.inbox_or_new();
        let key = self.setup.config.duplicates.stores().then(|| Key::new(from, message.id, &self.setup.id_generator));
        if key.is_some_and(|key| self.is_known(now, &key)) {
            return None;
        }
        let echo = match message.kind {
            Kind::Confirmable => Echo::of(message, &self.setup.config.naming),
            // The answer will not be piggybacked.
            _ => None,
        };
        let inbox = self.inbox.as_deref()?;
        let growth = inbox.requests.growth(echo.is_some());
        if inbox.requests.len() >= self.setup.config.limits.requests || (growth > 0 && !self.has_room(growth)) {
            match inbox.requests.abandoned(now, self.exchange_lifetime()) {
                Some(slot) => self.give_up_request(inbox.requests.name(slot)),
                // No acknowledgement: its sender will try again, and wait longer each time.
                None => {
                    self.ignore(from, Ignored::NoRoom);
                    return None;
                }
            }
        }
        let inbox = self.inbox.as_deref_mut()?;
        let due = by_group.unwrap_or_else(|| now.after(self.setup.config.ack_delay));
        let is_confirmable = message.kind == Kind::Confirmable;
        let changes = !matches!(message.code, Code::GET | Code::FETCH);
        let mode = match by_group {
            Some(_) => ResponseMode::Delayed,
            None if is_confirmable => ResponseMode::Piggybacked,
            None => ResponseMode::NonConfirmable,
        };
        let slot = inbox.requests.add(from, message.id, message.token, (mode, changes), due);
        if echo.is_some() {
            inbox.requests.set_echo(slot, echo);
        }
        if let Some(key) = key {
            if is_confirmable {
                inbox.duplicates.pending(&key, slot, &inbox.requests, &self.setup.id_generator);
            } else {
                let expires = later(now, self.non_lifetime());
                self.handled(now, &key, changes, (Reply::Silence, 0), expires);
            }
        }
        if is_confirmable {
            self.asked_calmly(now, from, message.id);
        }
        Some(slot)
    }

    /// A response in a message of its own (RFC 7252 §5.2.2, §5.2.3).
    #[cold]
    fn response_came(&mut self, now: Instant, from: A, message: &Message<'_>, datagram: &[u8]) {
        // Before the token is looked at: a later request may use the same one.
        let key = Key::new(from, message.id, &self.setup.id_generator);
        if self.is_known(now, &key) {
            return;
        }
        let is_confirmable = message.kind == Kind::Confirmable;
        let is_refused = self.refuses(message);
        let Some(slot) = self.peer_at(from).and_then(|number| {
            let peer = self.peers.get(number)?;
            match self.exchanges.with_token(number, &peer.open, message.token, &self.setup.id_generator) {
                Some(slot) => Some(self.whose_token(slot, &peer.open)),
                None if !parts::Q_BLOCK || !self.exchanges.has_claims => None,
                None => self.exchanges.claim_of(&peer.open, message.token),
            }
        }) else {
            if parts::GROUPS && !is_refused && self.group_answer_came(now, from, message, datagram) {
                return;
            }
            if self.setup.config.takes_unasked && !is_refused {
                return self.unasked_came(now, from, message, datagram, &key);
            }
            // A notification is not expected any more (RFC 7641 §3.6).
            if is_confirmable || message.option(number::OBSERVE).is_some() {
                self.reset(from, message.id);
            }
            return self.late(from, message, datagram);
        };
        let is_refused = is_refused && !self.has_asked_with(slot, message);
        let (reply, lifetime) = match (is_confirmable, is_refused) {
            (true, false) => {
                self.acknowledge_to(from, message.id);
                (Reply::Acknowledgement, self.exchange_lifetime())
            }
            (true, true) => {
                self.reset(from, message.id);
                (Reply::Reset, self.exchange_lifetime())
            }
            (false, _) => (Reply::Silence, self.non_lifetime()),
        };
        self.remember_handled(now, &key, reply, lifetime);
        let Some((stage, peer)) = self.exchanges.get(slot).map(|exchange| (exchange.stage, exchange.peer)) else {
            return;
        };
        match stage {
            Stage::Subscribed if !parts::ADDITIONAL_COME => {}
            Stage::Subscribed if is_refused => self.ignore(from, Ignored::BadOption),
            Stage::Subscribed => self.additional_came(slot, from, message, datagram),
            _ if is_refused => self.answered_badly(slot, now, (ReplyKind::Separate, Failure::BadOption), message),
            _ => self.answered(slot, now, ReplyKind::Separate, message, datagram),
        }
        self.heard(peer, now);
    }

    /// A response that nothing was asked for is handed up.
    #[cold]
    fn unasked_came(&mut self, now: Instant, from: A, message: &Message<'_>, datagram: &[u8], key: &Key<A>) {
        let (reply, lifetime) = match message.kind {
            Kind::Confirmable => (Reply::Acknowledgement, self.exchange_lifetime()),
            _ => (Reply::Silence, self.non_lifetime()),
        };
        if message.kind == Kind::Confirmable {
            self.acknowledge_to(from, message.id);
        }
        self.remember_handled(now, key, reply, lifetime);
        self.queue.push_message(from, OutputKind::Unasked, message, datagram);
    }

    /// RFC 7252 §4.2, §5.2.1, §5.3.2.
    fn acknowledgement_came(&mut self, now: Instant, from: A, message: &Message<'_>, datagram: &[u8]) {
        let Some(slot) = self.with_id(from, message.id) else {
            return if message.code.is_empty() && self.is_pong(now, from, message.id) {
            } else {
                self.late(from, message, datagram);
            };
        };
        let Some(exchange) = self.exchanges.get(slot) else { return };
        let peer = exchange.peer;
        if message.code.is_empty() {
            match exchange.stage {
                Stage::Sent | Stage::Exhausted => self.acknowledge(slot, now),
                _ => return self.late(from, message, datagram),
            }
            return self.heard(peer, now);
        }
        let is_whole = matches!(exchange.stage, Stage::Sent | Stage::Acknowledged);
        match exchange.role {
            role if role.asks() && is_whole && exchange.copy_with(message.token).is_some() => {
                let is_refused = self.refuses(message);
                if is_refused && !self.has_asked_with(slot, message) {
                    self.answered_badly(slot, now, (ReplyKind::Piggybacked, Failure::BadOption), message);
                } else {
                    self.answered(slot, now, ReplyKind::Piggybacked, message, datagram);
                }
            }
            // It left as a confirmable one, and the peer answers as it answers those.
            role if role.is_additional() && is_whole && exchange.token() == message.token => {
                self.acknowledge(slot, now);
                let claim = self.peers.get(peer).and_then(|peer| self.exchanges.claim_of(&peer.open, message.token));
                match claim {
                    Some(claim) => self.additional_came(claim, from, message, datagram),
                    None => self.late(from, message, datagram),
                }
            }
            role => {
                if role.asks() && is_whole && message.code.is_response() {
                    self.was_misanswered(slot);
                }
                return self.ignore(from, Ignored::Unmatched);
            }
        }
        self.heard(peer, now);
    }

    /// Something with the message ID of a request answered with another token.
    #[cold]
    fn was_misanswered(&mut self, slot: u32) {
        if let Some(exchange) = self.exchanges.get_mut(slot) {
            exchange.returns = Returns::WrongToken;
        }
    }

    /// RFC 7252 §4.2, §4.3. A reset is never answered.
    #[cold]
    fn reset_came(&mut self, now: Instant, from: A, message: &Message<'_>, datagram: &[u8]) {
        let exchange = self.with_id(from, message.id).and_then(|slot| Some((slot, self.exchanges.get(slot)?)));
        let peer = match exchange {
            Some((slot, exchange)) if exchange.stage != Stage::Acknowledged => {
                let (peer, role) = (exchange.peer, exchange.role);
                if role == Role::Ping {
                    self.acknowledge(slot, now);
                } else {
                    self.fail(slot, now, Failure::Reset);
                }
                Some(peer)
            }
            _ => match self
                .extra
                .as_deref_mut()
                .filter(|_| parts::ADDITIONAL || parts::NO_RESPONSE)
                .and_then(|extra| extra.rejected(from, message.id))
            {
                Some(exchange) => {
                    self.counts.one_more(Count::Rejected);
                    self.queue.push(from, OutputKind::Rejected { exchange }, &[]);
                    self.peer_at(from)
                }
                None if self.is_pong(now, from, message.id) => return,
                None => return self.late(from, message, datagram),
            },
        };
        if let Some(peer) = peer {
            self.heard(peer, now);
        }
    }

    /// Whether a message came before, in which case it has been seen to.
    #[inline(never)]
    fn is_known(&mut self, now: Instant, key: &Key<A>) -> bool {
        let lifetime = self.exchange_lifetime();
        let Some(inbox) = self.inbox.as_deref_mut() else { return false };
        let Some(known) = inbox.duplicates.find(key, now, &inbox.requests) else { return false };
        let Key { from, id, .. } = *key;
        self.counts.one_more(Count::Duplicate);
        if let Known::Handled(reply, stored, until) = known {
            match reply {
                Reply::Silence => {}
                Reply::Acknowledgement => self.acknowledge_to(from, id),
                Reply::Reset => self.reset(from, id),
                Reply::Response(_) | Reply::Separate(_) if !parts::SERVER => {}
                Reply::Response(request) => {
                    let Inbox { calm, duplicates, .. } = inbox;
                    if let Some(calm) = calm.as_mut().filter(|_| parts::CALM_SERVER) {
                        let before = (earlier(until, lifetime), duplicates.copy_came(key));
                        let verdict = calm.asked_again((from, id), before, now, &self.setup.id_generator);
                        if let Some(ping) = verdict.ping {
                            self.ping_calmly(from, ping);
                        }
                        if !verdict.answers {
                            return true;
                        }
                    }
                    self.reply_again(from, request, stored);
                }
                Reply::Separate(request) if self.is_answering(from, request) => self.acknowledge_to(from, id),
                Reply::Separate(request) => self.reply_again(from, request, stored),
            }
        }
        true
    }

    /// A stored response leaves once more.
    fn reply_again(&mut self, to: A, request: RequestId, stored: Stored) {
        let Some(inbox) = self.inbox.as_deref() else { return };
        let start = self.queue.bytes.len();
        inbox.duplicates.copy_response(stored, &mut self.queue.bytes);
        self.queue.push_written(to, OutputKind::Reply { request, repeated: true }, start);
        self.counts.one_more(Count::Sent(Kind::Acknowledgement));
    }

    /// The response to this request of a peer is under way in a message of its own, or waits to be.
    #[cold]
    fn is_answering(&self, peer: A, request: RequestId) -> bool {
        let Some(peer) = self.peer_at(peer).and_then(|number| self.peers.get(number)) else { return false };
        let mut exchanges = peer.open.iter(&self.exchanges.slots).chain(peer.waiting.iter(&self.exchanges.slots));
        exchanges.any(|(_, exchange)| exchange.role == Role::Response && exchange.answers == Some(request))
    }

    /// Remembers for so many microseconds that a response of a peer was handled.
    pub(in crate::endpoint) fn remember_handled(&mut self, now: Instant, key: &Key<A>, reply: Reply, lifetime: u64) {
        if self.inbox.is_none() && self.setup.config.limits.duplicate_bytes > 0 {
            self.inbox_or_new();
        }
        self.handled(now, key, false, (reply, 0), later(now, lifetime));
    }

    /// Remembers that a message was handled, which may be a request that changes something. The last `stored` bytes queued are the
    /// response to repeat.
    #[inline(never)]
    pub(in crate::endpoint) fn handled(
        &mut self,
        now: Instant,
        key: &Key<A>,
        changes: bool,
        (reply, stored): (Reply, usize),
        until: Instant,
    ) {
        let changes = parts::SERVER && changes;
        let network = if changes { self.network_of(&key.from) } else { 0 };
        let Some(inbox) = self.inbox.as_deref_mut() else { return };
        let start = self.queue.bytes.len().saturating_sub(stored);
        let response = self.queue.bytes.get(start..).filter(|_| parts::SERVER).unwrap_or_default();
        let Inbox { requests, duplicates, .. } = inbox;
        let (times, id_generator) = ((now, until), &self.setup.id_generator);
        let forgotten = match changes {
            true => duplicates.changed(key, network, (reply, response), times, requests, id_generator),
            false => duplicates.handled(key, reply, response, times, requests, id_generator),
        };
        for _ in 0..forgotten {
            self.counts.one_more(Count::ForgottenDuplicate);
        }
    }

    /// The request under way that a response answers, and whose peer that is.
    fn answers(&self, from: A, response: &Message<'_>) -> Option<(u32, u32, ReplyKind)> {
        let number = self.peer_at(from)?;
        let open = &self.peers.get(number)?.open;
        let (slot, kind) = match response.kind {
            Kind::Acknowledgement => (self.with_id(from, response.id)?, ReplyKind::Piggybacked),
            _ => {
                let slot = self.exchanges.with_token(number, open, response.token, &self.setup.id_generator)?;
                (slot, ReplyKind::Separate)
            }
        };
        let exchange = self.exchanges.get(slot)?;
        let is_under_way =
            matches!(exchange.stage, Stage::Sent | Stage::Acknowledged | Stage::NonConfirmable) && exchange.role.asks();
        (is_under_way && exchange.copy_with(response.token).is_some()).then_some((slot, number, kind))
    }

    fn peer_at(&self, address: A) -> Option<u32> {
        self.peers.find(address, &self.setup.id_generator)
    }

    #[cfg_attr(feature = "many-peers", inline(always))]
    fn with_id(&self, from: A, id: MessageId) -> Option<u32> {
        let number = self.peer_at(from)?;
        let peer = self.peers.get(number)?;
        self.exchanges.with_id(number, &peer.open, id, &self.setup.id_generator)
    }

    fn late(&mut self, from: A, message: &Message<'_>, datagram: &[u8]) {
        self.counts.one_more(Count::Late);
        if self.setup.config.tells_late {
            self.queue.push_message(from, OutputKind::Late, message, datagram);
        }
    }

    #[cold]
    pub(in crate::endpoint) fn ignore(&mut self, from: A, why: Ignored) {
        self.counts.one_more(Count::Ignored(why));
        self.queue.push(from, OutputKind::Ignored { why }, &[]);
    }

    pub(in crate::endpoint) fn reset(&mut self, to: A, id: MessageId) {
        let start = self.queue.bytes.len();
        Writer::reset(&mut self.queue.bytes, id);
        self.queue.push_written(to, OutputKind::Reset, start);
        self.counts.one_more(Count::Sent(Kind::Reset));
    }

    pub(in crate::endpoint) fn acknowledge_to(&mut self, to: A, id: MessageId) {
        let start = self.queue.bytes.len();
        Writer::acknowledgement(&mut self.queue.bytes, id);
        self.queue.push_written(to, OutputKind::Ack, start);
        self.counts.one_more(Count::Sent(Kind::Acknowledgement));
    }
}

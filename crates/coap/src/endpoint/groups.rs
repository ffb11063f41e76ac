//! Requests to a group of peers, whose answers come from any of them, and requests that came to such a group
//! (RFC 7252 §8, RFC 7390).

use alloc::vec::Vec;
use core::{fmt::Debug, hash::Hash};

use hashbrown::{HashTable, hash_table::Entry};
use millpond_control::{Instant, Purpose, Span};

use super::{
    Arc, Endpoint, ExchangeId, Ignored, Outgoing, Refused, RequestId,
    additional::ExtraState,
    counters::Count,
    delayed_responses::{DelayedResponse, DelayedResponses},
    duplicates::{Key, Reply},
    exchanges::Role,
    id_generator::Pair,
    message_ids::later,
    requests::{Request, ResponseMode},
    send::write,
};
use crate::invariant::Sure;
use crate::long_tokens::Spelled;
use crate::message::{Code, Kind, Message, MessageId, Token};
use crate::output::OutputKind;
use crate::parts;

/// DEFAULT_LEISURE of RFC 7252 §8.2.
pub const DEFAULT_LEISURE: Span = Span::from_secs(5);

/// Over how long the answers of a group should be spread: `lb_Leisure` of RFC 7252 §8.2, so that `members` answers of
/// `answer` bytes each are `bytes_per_second` on average. Zero bytes a second count as one; at most [`Span::MAX`].
#[must_use]
pub fn leisure(answer: u32, members: u32, bytes_per_second: u32) -> Span {
    let bytes = u64::from(answer).saturating_mul(u64::from(members));
    let micros = bytes.saturating_mul(1_000_000).checked_div(u64::from(bytes_per_second.max(1))).unwrap_or(0);
    Span::from_micros(u32::try_from(micros).unwrap_or(u32::MAX)).min(Span::MAX)
}

/// MAX_SERVER_RESPONSE_DELAY, microseconds: the longest that a member is expected to take for its answer, as RFC 7390
/// §2.5 estimates it.
const MAX_SERVER_RESPONSE_DELAY: u64 = 250_000_000;
/// Group requests whose tokens are remembered.
const MOST_REQUESTS: usize = 256;
/// Members of a group whose answers to one request are told.
const MOST_ANSWERS: usize = 4_096;
/// Tokens tried before a request is refused. Those of 2 bytes may collide often.
const TRIES: u64 = 1 << 16;
/// The last word in the address of chance that leisure is drawn from: not that of any call to a controller.
const LEISURE: u32 = 0x104;

/// What is kept of groups, on either side.
#[derive(Debug)]
pub(super) struct Groups<A> {
    requests: Vec<GroupRequest<A>>,
    /// Tokens ever made.
    made: u64,
    responses: DelayedResponses<A>,
    /// Requests that ever came to a group: the address of their chance.
    came: u32,
}

/// A request of ours to a group.
#[derive(Debug)]
struct GroupRequest<A> {
    name: ExchangeId,
    group: A,
    token: Token,
    /// When it left, if it has.
    left: Option<Instant>,
    /// Answers are told.
    is_wanted: bool,
    /// Who has answered.
    answered: HashTable<A>,
}

impl<A: Copy + Eq + Hash> Groups<A> {
    pub(super) const fn new() -> Self {
        Self { requests: Vec::new(), made: 0, responses: DelayedResponses::new(), came: 0 }
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let answered = |sum: usize, request: &GroupRequest<A>| sum.saturating_add(request.answered.allocation_size());
        size_of::<Self>()
            .saturating_add(self.requests.capacity().wrapping_mul(size_of::<GroupRequest<A>>()))
            .saturating_add(self.requests.iter().fold(0, answered))
            .saturating_add(self.responses.memory())
    }

    /// When the first delayed response is to leave.
    pub(super) fn first_due(&self) -> Option<Instant> {
        self.responses.first_due()
    }

    fn named(&mut self, name: ExchangeId) -> Option<&mut GroupRequest<A>> {
        self.requests.iter_mut().find(|request| request.name == name)
    }

    /// Whether the token of a group request is this one, or is this one and a byte that could distinguish its copies.
    fn has_like(&self, token: Token) -> bool {
        let is_like = |request: &GroupRequest<A>| {
            let own = request.token.as_bytes();
            own.starts_with(token.as_bytes()) && own.len() <= token.len().saturating_add(1)
        };
        self.requests.iter().any(is_like)
    }
}

/// Asking a group.
impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Input: a request is to be sent to a group: once, as a non-confirmable message, with a token that nothing else
    /// uses ([`Outgoing::kind`] and [`Outgoing::token`] are not looked at). Every response on that token, the sender
    /// it, is [`Event::AdditionalResponse`](super::Event::AdditionalResponse) of the exchange named, the first one of each peer only, until
    /// [`cancel_group`](Self::cancel_group). The token stays reserved until no late answer is possible: NON_LIFETIME,
    /// MAX_LATENCY and MAX_SERVER_RESPONSE_DELAY after it left (RFC 7390 §2.5).
    ///
    /// It leaves when the controller of the group's address admits it, and not sooner after the request before than
    /// PROBING_RATE allows towards who never answers (RFC 7252 §4.7). Once anybody has answered that request, it leaves
    /// [`DEFAULT_LEISURE`] after it: until then further answers may be on their way. That it left is
    /// [`Cause::NonConfirmable`](super::Cause::NonConfirmable).
    ///
    /// # Errors
    /// What cannot be sent or exceeds a limit. Nothing is sent then.
    pub fn request_group(&mut self, now: Instant, group: A, request: &Outgoing<'_>) -> Result<ExchangeId, Refused> {
        let now = self.input(now);
        parts::needed(parts::GROUPS && parts::CLIENT, "groups")?;
        if !request.code.is_request() {
            return Err(Refused::Code(request.code));
        }
        let kept = self.token_kept();
        self.extra_mut().groups_mut();
        let exchanges = &self.exchanges;
        let Some(groups) = self.extra.as_deref_mut().map(ExtraState::groups_mut) else {
            return Err(self.out_of_bytes());
        };
        groups.requests.retain(|request| match request.left {
            Some(left) => request.is_wanted || later(left, kept) > now,
            None => exchanges.find(request.name).is_some(),
        });
        let full = Refused::TooManyGroupRequests { limit: MOST_REQUESTS as u16 };
        if groups.requests.len() >= MOST_REQUESTS {
            return Err(full);
        }
        let token = self.make_group_token().ok_or(full)?;
        let request = Outgoing { kind: Kind::NonConfirmable, ..*request };
        let name = self.submit(now, group, (Role::Group, None), &request, Some(token))?;
        let left = self.exchanges.find(name).is_none().then_some(now);
        if let Some(groups) = self.extra.as_deref_mut().and_then(|extra| extra.groups.as_deref_mut()) {
            groups.requests.push(GroupRequest {
                name,
                group,
                token,
                left,
                is_wanted: true,
                answered: HashTable::new(),
            });
        }
        Ok(name)
    }

    /// Input: no more answers to a group request are wanted; those that come all the same are
    /// [`Event::Late`](super::Event::Late). One that has not left yet never does, and ends as
    /// [`Event::Undelivered`](super::Event::Undelivered). False if there is none of this name.
    pub fn cancel_group(&mut self, now: Instant, group: ExchangeId) -> bool {
        let now = self.input(now);
        let Some(request) = self
            .extra
            .as_deref_mut()
            .and_then(|extra| extra.groups.as_deref_mut())
            .and_then(|groups| groups.named(group))
        else {
            return false;
        };
        let was_wanted = core::mem::take(&mut request.is_wanted);
        request.answered = HashTable::new();
        if request.left.is_none()
            && let Some(slot) = self.exchanges.find(group)
        {
            self.fail(slot, now, super::Failure::Cancelled);
        }
        was_wanted
    }

    /// For how long a token is not used for anything else on which responses may come that nobody waits for, microseconds: those
    /// of a group, and those that are unwanted (TOKEN_REUSE_TIME of RFC 7967).
    pub(super) fn token_kept(&self) -> u64 {
        let latency = u64::from(self.setup.config.transmission.max_latency.as_micros());
        self.non_lifetime().saturating_add(latency).saturating_add(MAX_SERVER_RESPONSE_DELAY)
    }

    /// A token that no request has, to whomever. At least 2 bytes, so that there is one.
    fn make_group_token(&mut self) -> Option<Token> {
        let longest = if self.exchanges.names_by_token { Token::MAX.saturating_sub(1) } else { Token::MAX };
        let length = longest.min(usize::from(self.setup.config.token_length.max(2))) as u8;
        let groups = self.extra.as_deref_mut().and_then(|extra| extra.groups.as_deref_mut())?;
        let source = Pair { node: self.counts.node, peer: u32::MAX };
        for _ in 0..TRIES {
            let token = self.setup.id_generator.token(source, groups.made, length);
            groups.made = groups.made.wrapping_add(1);
            if !groups.has_like(token) && !self.exchanges.any_like(token) {
                return Some(token);
            }
        }
        None
    }

    /// Whether a request to one peer cannot have this token, because answers to a group request could be taken for its.
    #[inline]
    pub(super) fn is_groups(&self, token: Token) -> bool {
        let groups = self.extra.as_deref().filter(|_| parts::GROUPS).and_then(|extra| extra.groups.as_deref());
        groups.is_some_and(|groups| groups.has_like(token))
    }

    /// A group request left; `length` bytes.
    pub(super) fn group_request_left(&mut self, now: Instant, number: u32, name: ExchangeId, length: u16) {
        let probing = self.probing_pause(length);
        self.extra_mut().probes.insert(number, later(now, probing.max(u64::from(DEFAULT_LEISURE.as_micros()))));
        if let Some(request) = self
            .extra
            .as_deref_mut()
            .and_then(|extra| extra.groups.as_deref_mut())
            .and_then(|groups| groups.named(name))
        {
            request.left = Some(now);
        }
    }

    /// A response came that no request to its sender fits. True if it is an answer to a group request.
    pub(super) fn group_answer_came(&mut self, now: Instant, from: A, message: &Message<'_>, datagram: &[u8]) -> bool {
        let growth = size_of::<A>().saturating_mul(2);
        let has_room = self.has_room(growth);
        let id_generator = &self.setup.id_generator;
        let Some(groups) = self.extra.as_deref_mut().and_then(|extra| extra.groups.as_deref_mut()) else {
            return false;
        };
        let is_it = |request: &&mut GroupRequest<A>| {
            request.is_wanted && request.left.is_some() && request.token == message.token
        };
        let Some(request) = groups.requests.iter_mut().find(is_it) else { return false };
        let (name, group, left) = (request.name, request.group, request.left.unwrap_or(now));
        let is_full = request.answered.len() >= MOST_ANSWERS || !has_room;
        let is_first = request.answered.is_empty();
        match request.answered.entry(id_generator.hash(&from), |other| *other == from, |other| id_generator.hash(other))
        {
            Entry::Occupied(_) => self.counts.one_more(Count::Duplicate),
            Entry::Vacant(_) if is_full => {
                self.ignore(from, Ignored::NoRoom);
                return true;
            }
            Entry::Vacant(place) => {
                place.insert(from);
                self.counts.one_more(Count::AdditionalResponse);
                self.queue.push_message(from, OutputKind::AdditionalResponse { exchange: name }, message, datagram);
            }
        }
        let (reply, lifetime) = if message.kind == Kind::Confirmable {
            self.acknowledge_to(from, message.id);
            (Reply::Acknowledgement, self.exchange_lifetime())
        } else {
            (Reply::Silence, self.non_lifetime())
        };
        let key = Key::new(from, message.id, &self.setup.id_generator);
        self.remember_handled(now, &key, reply, lifetime);
        if is_first {
            self.group_answers(now, group, later(left, u64::from(DEFAULT_LEISURE.as_micros())));
        }
        true
    }

    /// Somebody of a group has answered: the next request to it need not wait for longer than this.
    fn group_answers(&mut self, now: Instant, group: A, at_the_latest: Instant) {
        let Some(number) = self.peers.find(group, &self.setup.id_generator) else { return };
        if let Some(until) = self.extra.as_deref_mut().and_then(|extra| extra.probes.get_mut(&number)) {
            *until = at_the_latest.min(*until);
            self.pump(number, now);
        }
    }
}

/// Being asked as one of a group.
impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Input: a datagram came in that was sent to a group which this endpoint is in. Only non-confirmable requests are
    /// taken; whatever else it is meets silence (RFC 7252 §8.1). So does what OSCORE protects, whose keys are those of two, where
    /// this endpoint has contexts.
    ///
    /// The request is an [`Event::Request`](super::Event::Request) like others, and [`came_by_group`](Self::came_by_group)
    /// is true of it. Its response leaves as a non-confirmable message at a point within
    /// [`Config::leisure`](super::Config::leisure) after the request that is drawn at random, or when it is there, if that
    /// is later. There is none if it is an error, or 2.05 without payload (RFC 7252 §8.2).
    #[cfg(all(feature = "server", feature = "groups"))]
    pub fn receive_by_group(&mut self, now: Instant, from: A, datagram: &[u8]) {
        let now = self.input(now);
        if datagram.len() > usize::from(self.setup.config.limits.longest_received()) {
            return self.ignore(from, Ignored::TooLong { is_answered: false });
        }
        match Message::parse(datagram) {
            Ok(message) => {
                self.counts.one_more(Count::Received(message.kind));
                let is_for_one =
                    self.protection().is_some() && message.option(crate::message::number::OSCORE).is_some();
                if message.kind == Kind::NonConfirmable && message.code.is_request() && !is_for_one {
                    let due = now.after(self.draw_leisure());
                    self.request_came(now, from, &message, datagram, Some(due));
                } else {
                    self.ignore(from, Ignored::NotForGroups);
                }
            }
            Err(error) => self.ignore(from, Ignored::Malformed(error)),
        }
    }

    /// Whether a request that was not answered yet came to a group.
    #[must_use]
    pub fn came_by_group(&self, request: RequestId) -> bool {
        let found = self.inbox.as_deref().and_then(|inbox| inbox.requests.find(request));
        found.is_some_and(|(_, request)| request.mode == ResponseMode::Delayed)
    }

    fn draw_leisure(&mut self) -> Span {
        let groups = self.extra_mut().groups_mut();
        groups.came = groups.came.wrapping_add(1);
        let came = groups.came;
        let place = [self.node(), u32::MAX, came, LEISURE];
        self.setup.chance.at(Purpose::Dither, place).between(Span::ZERO, self.setup.config.leisure)
    }

    /// The response to a request that came to a group waits for its time, or is left out for want of room.
    #[inline(never)]
    pub(super) fn answer_delayed(
        &mut self,
        now: Instant,
        id: RequestId,
        request: &Request<A>,
        response: &Outgoing<'_>,
    ) -> Result<(), Refused> {
        let says_nothing = response.code == Code::CONTENT && response.payload.is_empty();
        if response.code.class() != 2 || says_nothing {
            return Ok(());
        }
        let mut message = Vec::new();
        let limit = usize::from(self.setup.config.limits.datagram);
        let token = Spelled::Short(request.token);
        write(&mut message, Kind::NonConfirmable, MessageId(0), token, response, limit)?;
        message.shrink_to_fit();
        if !self.has_room(message.capacity().saturating_add(DelayedResponses::<A>::growth())) {
            return Err(self.out_of_bytes());
        }
        let to = request.from;
        let source = self.source_of(to);
        let delayed = DelayedResponse { due: request.due.max(now), to, source, request: id, message };
        let setup = Arc::clone(&self.setup);
        self.extra_mut().groups_mut().responses.add(delayed, &setup.id_generator);
        Ok(())
    }

    /// The first answer that waited for its time leaves.
    #[inline(never)]
    pub(super) fn leave_after_leisure(&mut self, now: Instant) {
        let Some(groups) = self.extra.as_deref_mut().and_then(|extra| extra.groups.as_deref_mut()) else { return };
        let Some(DelayedResponse { to, request, message, .. }) = groups.responses.pop(&self.setup.id_generator) else {
            return;
        };
        let Ok(message) = Message::parse(&message).sure("message of ours") else { return };
        let options: Vec<_> = message.options().map(|option| (option.number, option.value)).collect();
        let plain = Outgoing::non_confirmable(message.code, &options);
        let response = plain.with_payload(message.payload());
        let sent = self.submit(now, to, (Role::GroupResponse, Some(request)), &response, Some(message.token));
        // What is refused all the same is as good as lost on its way.
        let _ = sent.or_else(|refused| self.or_without_a_place(refused, to, message.token, &response));
    }
}

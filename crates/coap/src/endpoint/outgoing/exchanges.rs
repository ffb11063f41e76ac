use alloc::{boxed::Box, vec::Vec};

use hashbrown::HashTable;
use millpond_control::{Instant, Named, ReplyKind, Sample, Span, Then, Wait};

use crate::endpoint::{
    ExchangeId, Outgoing, Refused, RequestId, SleepReason,
    finding::Key,
    naming::CopyTag,
    slots::{Linked, Links, List, Slots},
};
use crate::message::{
    Code, HEADER, Kind, Message, MessageId, NoResponse, OptionHeader, Token, TokenLength, is_callers,
};
use crate::parts;

/// Peers that may have more exchanges than this under way are searched through a hash table instead of one by one.
const LOOKED_THROUGH: u16 = 16;

/// Buffers of at most so many bytes are kept for the next message.
const KEPT_BUFFER: usize = 2_048;

/// How far an exchange has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Stage {
    /// Held back; no copy has left.
    Waiting,
    /// Confirmable, sent, not acknowledged.
    Sent,
    /// The same of a response that may leave fewer times than others, after the wait for its last copy.
    Exhausted,
    /// A confirmable request, acknowledged; its response is awaited.
    Acknowledged,
    /// A non-confirmable request; its response is awaited.
    NonConfirmable,
    /// Nothing is under way; what stays is a token on which additional responses come.
    Subscribed,
}

/// What comes back for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Returns {
    /// A response, if it is a request.
    Response,
    /// It was asked for as non-confirmable, and not every response to it is wanted: nothing need come back.
    Limited,
    /// An acknowledgement with its message ID brought a response with another token.
    WrongToken,
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Role {
    Request,
    /// A request whose token stays in use after its response.
    Subscription,
    /// A request to which no response is wanted (RFC 7967).
    Unanswered,
    /// No message: tokens that begin like this one.
    Claim,
    /// An empty confirmable message, answered with a reset.
    Ping,
    /// A separate response.
    Response,
    /// An additional response (RFC 7641 §1.1), or a request that is never answered on its own token.
    AdditionalResponse,
    /// The same, as a part of a body whose sender sees to PROBING_RATE itself.
    BodyBlock,
    /// A request to a group.
    Group,
    /// A response to a request that came to a group.
    GroupResponse,
}

impl Role {
    /// A response is awaited.
    #[inline]
    pub(in crate::endpoint) const fn is_request(self) -> bool {
        parts::CLIENT && matches!(self, Self::Request | Self::Subscription)
    }

    /// What a request is for.
    ///
    /// # Errors
    /// It is none, or wants what this build is without.
    #[inline]
    pub(in crate::endpoint) fn of(request: &Outgoing<'_>) -> Result<Self, Refused> {
        parts::needed(parts::CLIENT, "client")?;
        if !request.code.is_request() {
            return Err(Refused::Code(request.code));
        }
        parts::needed(parts::NON_CONFIRMABLE || request.kind != Kind::NonConfirmable, "non-confirmable")?;
        match NoResponse::of(request.options) {
            NoResponse::NONE => Ok(Self::Request),
            unwanted => {
                parts::needed(parts::NO_RESPONSE, "no-response")?;
                Ok(if unwanted.is_all() { Self::Unanswered } else { Self::Request })
            }
        }
    }

    /// It asks, whether a response is awaited or not; one that comes is its.
    #[inline]
    pub(in crate::endpoint) const fn asks(self) -> bool {
        self.is_request() || self.is_unanswered()
    }

    /// A request to which no response is wanted.
    #[inline]
    pub(in crate::endpoint) const fn is_unanswered(self) -> bool {
        parts::NO_RESPONSE && matches!(self, Self::Unanswered)
    }

    /// A request whose token stays in use.
    #[inline]
    pub(in crate::endpoint) const fn subscribes(self) -> bool {
        parts::OBSERVE && matches!(self, Self::Subscription)
    }

    /// One of several messages that are answered by none of their own.
    #[inline]
    pub(in crate::endpoint) const fn is_additional(self) -> bool {
        parts::ADDITIONAL && matches!(self, Self::AdditionalResponse | Self::BodyBlock)
    }

    /// A request to a group.
    #[inline]
    pub(in crate::endpoint) const fn is_to_a_group(self) -> bool {
        parts::GROUPS && matches!(self, Self::Group)
    }

    /// It answers, or nobody was asked for it: whom it goes to may be an unvalidated peer.
    #[inline]
    pub(in crate::endpoint) const fn is_for_a_request(self) -> bool {
        parts::ANSWERS
            && matches!(
                self,
                Self::Response | Self::AdditionalResponse | Self::BodyBlock | Self::Group | Self::GroupResponse
            )
    }

    /// A request drew it. Non-confirmable, it is as a piggybacked one: one for each request that came, at once or never.
    #[inline]
    pub(in crate::endpoint) const fn is_drawn(self) -> bool {
        parts::SERVER && matches!(self, Self::Response | Self::GroupResponse)
    }

    /// Sent and forgotten if non-confirmable.
    #[inline]
    pub(in crate::endpoint) const fn is_forgotten(self) -> bool {
        self.is_for_a_request() || self.is_unanswered()
    }
}

/// A message of ours until its end.
#[derive(Debug)]
pub(in crate::endpoint) struct Exchange {
    links: Links,
    /// Slot of the peer.
    pub(in crate::endpoint) peer: u32,
    /// N-th message to this peer: its place in addressed chance.
    pub(in crate::endpoint) number: u32,
    /// When the first and the last copy left.
    pub(in crate::endpoint) first: Instant,
    pub(in crate::endpoint) last: Instant,
    /// What the controller keeps of this exchange; it keeps nothing of one that is not confirmable.
    pub(in crate::endpoint) record: millpond_control::Exchange,
    /// The wait that was armed last; until the first copy leaves, the shortest that the first one may be.
    pub(in crate::endpoint) wait: Span,
    /// What follows when it runs out.
    pub(in crate::endpoint) then: Then,
    /// The whole message, and behind it when its copies left if they are distinguished: see
    /// [`message`](Self::message). Message ID, and token unless `own_token`, are filled in when the first copy leaves.
    pub(in crate::endpoint) bytes: Vec<u8>,
    /// The request that it answers, if that is known here.
    pub(in crate::endpoint) answers: Option<RequestId>,
    pub(in crate::endpoint) role: Role,
    pub(in crate::endpoint) kind: Kind,
    pub(in crate::endpoint) stage: Stage,
    /// Retransmissions.
    pub(in crate::endpoint) retransmissions: u8,
    /// So many there may be.
    pub(in crate::endpoint) most: u8,
    /// The wait is longer than the controller's, as the message asks.
    pub(in crate::endpoint) is_lengthened: bool,
    /// The token was given by the caller, or is the request's.
    pub(in crate::endpoint) own_token: bool,
    pub(in crate::endpoint) returns: Returns,
    /// What distinguishes its copies; until the first one leaves, what is wished to.
    pub(in crate::endpoint) mark: CopyTag,
    /// The peer's controller was told of the start and waits for the end.
    pub(in crate::endpoint) controlled: bool,
    /// What its timer is for.
    pub(in crate::endpoint) alarm: SleepReason,
}

impl Linked for Exchange {
    fn links(&self) -> &Links {
        &self.links
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Exchange {
    fn blank() -> Self {
        Self {
            links: Links::NOWHERE,
            peer: 0,
            number: 0,
            first: Instant::ORIGIN,
            last: Instant::ORIGIN,
            record: millpond_control::Exchange::new(),
            wait: Span::ZERO,
            then: Then::Retransmit,
            bytes: Vec::new(),
            answers: None,
            role: Role::Request,
            kind: Kind::Confirmable,
            stage: Stage::Waiting,
            retransmissions: 0,
            most: 0,
            is_lengthened: false,
            own_token: false,
            returns: Returns::Response,
            mark: CopyTag::Nothing,
            controlled: false,
            alarm: SleepReason::Retransmission,
        }
    }

    /// Whether it counts in the books: a non-confirmable response, or request that wants none, is sent and forgotten.
    pub(in crate::endpoint) fn is_counted(&self) -> bool {
        !self.role.is_forgotten() || self.kind == Kind::Confirmable
    }

    pub(in crate::endpoint) fn id(&self) -> MessageId {
        match self.bytes.get(2..HEADER) {
            Some(&[high, low]) => MessageId(u16::from_be_bytes([high, low])),
            _ => MessageId(0),
        }
    }

    /// The token of the first copy.
    pub(in crate::endpoint) fn token(&self) -> Token {
        let field = self.bytes.first().map_or(0, |first| first & 0x0f);
        if parts::LONG_TOKENS && field > 8 {
            return self.short_token();
        }
        let mut length = usize::from(field);
        if self.mark == CopyTag::Token && self.retransmissions > 0 {
            length = length.saturating_sub(1);
        }
        let bytes = self.bytes.get(HEADER..).and_then(|rest| rest.get(..length));
        bytes.and_then(Token::new).unwrap_or_default()
    }

    /// What tells a request of ours apart whose token is longer: its first bytes.
    #[cold]
    fn short_token(&self) -> Token {
        let token = self.bytes.get(self.token_place()..).and_then(|rest| rest.get(..Token::MAX));
        token.and_then(Token::new).unwrap_or_default()
    }

    /// Where the token begins.
    fn token_place(&self) -> usize {
        let field = self.bytes.first().map_or(0, |first| first & 0x0f);
        let extension = if parts::LONG_TOKENS { TokenLength::extension_of(field) } else { 0 };
        HEADER.saturating_add(extension)
    }

    /// Nothing stays of the message but this token, and that it had options of which nobody here makes use: responses may have them.
    pub(in crate::endpoint) fn keep_token(&mut self, token: Token) {
        let request = Message::read(&self.bytes).ok();
        let mut bytes = Vec::with_capacity(HEADER.saturating_add(token.len()));
        let code = request.map_or(Code::EMPTY, |request| request.code).to_byte();
        bytes.extend_from_slice(&[0x40 | token.len() as u8, code, 0, 0]);
        bytes.extend_from_slice(token.as_bytes());
        let mut after = 0;
        for option in request.iter().flat_map(Message::options).filter(|option| is_callers(option.number)) {
            if let Ok(header) = OptionHeader::new(after, option.number, &[]) {
                header.put(&mut bytes);
                after = option.number;
            }
        }
        self.bytes = bytes;
        self.retransmissions = 0;
        self.mark = CopyTag::Nothing;
        self.stage = Stage::Subscribed;
    }

    /// Fills in what is known only when the first copy leaves. The token must be of the length that was kept free.
    pub(in crate::endpoint) fn address(&mut self, id: MessageId, token: Option<Token>) {
        if let Some(place) = self.bytes.get_mut(2..HEADER) {
            place.copy_from_slice(&id.0.to_be_bytes());
        }
        let Some(token) = token else { return };
        let begin = self.token_place();
        if let Some(place) = self.bytes.get_mut(begin..).and_then(|rest| rest.get_mut(..token.len())) {
            place.copy_from_slice(token.as_bytes());
        }
    }

    /// What is armed where the controller wants this wait. `least` is zero, or what the message asks for.
    pub(in crate::endpoint) fn lengthen(&mut self, wait: Wait, least: Span) -> Wait {
        let span = wait.span.max(least);
        self.is_lengthened = span > wait.span;
        (self.wait, self.then) = (span, wait.then);
        Wait { span, ..wait }
    }

    /// Makes a non-confirmable message confirmable.
    pub(in crate::endpoint) fn confirm(&mut self) {
        self.kind = Kind::Confirmable;
        if let Some(first) = self.bytes.first_mut() {
            *first &= 0b1100_1111;
        }
    }

    /// Exchanges that are open on a path where so many are outstanding, this one included.
    pub(in crate::endpoint) fn open_with(&self, outstanding: u16) -> u16 {
        outstanding.saturating_add(u16::from(self.stage == Stage::Exhausted))
    }

    /// How many non-confirmable requests had left on the path before this one, which is another. Kept where no controller
    /// looks.
    pub(in crate::endpoint) fn nth_asked(&self) -> u32 {
        self.record.mark().as_micros()
    }

    pub(in crate::endpoint) fn set_nth_asked(&mut self, number: u32) {
        self.record.set_mark(Span::from_micros(number));
    }

    /// What a reply of so many bytes that comes now and names this copy says about the path.
    pub(in crate::endpoint) fn sample(&self, kind: ReplyKind, named: Named, reply_len: u16, now: Instant) -> Sample {
        let sample = Sample::new(kind, now.since(self.first), now.since(self.last), self.retransmissions)
            .of_bytes(self.length(), reply_len);
        match named {
            Named::Nothing => sample,
            Named::Further => sample.naming_a_further_copy(),
            Named::Copy(copy) => self.left(copy).map_or(sample, |left| sample.naming(copy, now.since(left))),
        }
    }

    /// The length as controllers are told it.
    pub(in crate::endpoint) fn length(&self) -> u16 {
        u16::try_from(self.message_length()).unwrap_or(u16::MAX)
    }
}

/// The messages of an endpoint that have not come to their end.
#[derive(Debug)]
pub(in crate::endpoint) struct Exchanges {
    pub(in crate::endpoint) slots: Slots<Exchange>,
    /// By peer and message ID and by peer and token, for endpoints that may have many exchanges with one peer.
    pub(in crate::endpoint) table: Option<Box<HashTable<Key>>>,
    /// Bytes held by buffers of messages.
    buffers: usize,
    /// Those that count in the books.
    pub(in crate::endpoint) counted: u32,
    /// Copies of some request were ever distinguished by their tokens.
    pub(in crate::endpoint) names_by_token: bool,
    /// Some token ever stayed in use without a message.
    pub(in crate::endpoint) keeps_tokens: bool,
    /// Some token was ever claimed.
    pub(in crate::endpoint) has_claims: bool,
    /// Some additional response ever had to wait.
    pub(in crate::endpoint) holds_additional: bool,
    /// Some request was ever overdue.
    pub(in crate::endpoint) has_overdue: bool,
    /// A queue marked the datagram that is being taken in.
    pub(in crate::endpoint) is_marked: bool,
}

impl Exchanges {
    /// For at most so many exchanges with one peer.
    pub(in crate::endpoint) fn new(per_peer: u16) -> Self {
        let table = (parts::MANY_PEERS && per_peer > LOOKED_THROUGH).then(Box::default);
        Self {
            slots: Slots::new(),
            table,
            buffers: 0,
            counted: 0,
            names_by_token: false,
            keeps_tokens: false,
            has_claims: false,
            holds_additional: false,
            has_overdue: false,
            is_marked: false,
        }
    }

    #[inline]
    pub(in crate::endpoint) fn get(&self, slot: u32) -> Option<&Exchange> {
        self.slots.get(slot)
    }

    #[inline]
    pub(in crate::endpoint) fn get_mut(&mut self, slot: u32) -> Option<&mut Exchange> {
        self.slots.get_mut(slot)
    }

    #[inline]
    pub(in crate::endpoint) fn name(&self, slot: u32) -> ExchangeId {
        ExchangeId { slot, generation: self.slots.generation(slot) }
    }

    /// The slot of an exchange that is not over.
    #[inline]
    pub(in crate::endpoint) fn find(&self, id: ExchangeId) -> Option<u32> {
        self.slots.is(id.slot, id.generation).then_some(id.slot)
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        let table = self.table.as_ref().filter(|_| parts::MANY_PEERS);
        let table = table.map_or(0, |table| size_of::<HashTable<Key>>().saturating_add(table.allocation_size()));
        self.slots.memory().saturating_add(self.buffers).saturating_add(table)
    }

    /// Takes a slot with an empty message. Its buffer must be given back to the books with
    /// [`account`](Self::account) once the message is written.
    #[inline]
    pub(in crate::endpoint) fn take(&mut self) -> u32 {
        let slot = self.slots.take(Exchange::blank);
        if let Some(exchange) = self.slots.get_mut(slot) {
            let mut bytes = core::mem::take(&mut exchange.bytes);
            bytes.clear();
            self.buffers = self.buffers.saturating_sub(bytes.capacity());
            *exchange = Exchange { bytes, ..Exchange::blank() };
        }
        slot
    }

    /// Counts the buffer of a slot that was just taken.
    #[inline]
    pub(in crate::endpoint) fn account(&mut self, slot: u32) {
        let capacity = self.slots.get(slot).map_or(0, |exchange| exchange.bytes.capacity());
        self.buffers = self.buffers.saturating_add(capacity);
    }

    /// Of this exchange nothing stays but what [`Exchange::keep_token`] keeps.
    pub(in crate::endpoint) fn keep_token(&mut self, slot: u32, token: Token) {
        let Some(exchange) = self.slots.get_mut(slot) else { return };
        let before = exchange.bytes.capacity();
        exchange.keep_token(token);
        self.buffers = self.buffers.saturating_sub(before);
        self.has_claims |= exchange.role == Role::Claim;
        self.keeps_tokens = true;
        self.account(slot);
    }

    /// Of so many exchanges nothing stays but their tokens.
    #[inline]
    pub(in crate::endpoint) fn tokens_kept(&self, open: &List) -> u32 {
        if self.keeps_tokens { self.count_kept(open) } else { 0 }
    }

    #[cold]
    fn count_kept(&self, open: &List) -> u32 {
        open.iter(&self.slots).filter(|(_, exchange)| exchange.stage == Stage::Subscribed).count() as u32
    }

    /// Gives a slot back. Its buffer stays for the next message unless it is large.
    #[inline]
    pub(in crate::endpoint) fn release(&mut self, slot: u32) {
        if self.slots.get(slot).is_some_and(|exchange| exchange.bytes.capacity() > KEPT_BUFFER) {
            self.drop_buffer(slot);
        }
        self.slots.release(slot);
    }

    /// Gives a slot back, and nothing is left of what it held.
    pub(in crate::endpoint) fn release_with_buffer(&mut self, slot: u32) {
        self.drop_buffer(slot);
        self.slots.release(slot);
    }

    #[cold]
    fn drop_buffer(&mut self, slot: u32) {
        if let Some(exchange) = self.slots.get_mut(slot) {
            self.buffers = self.buffers.saturating_sub(exchange.bytes.capacity());
            exchange.bytes = Vec::new();
        }
    }
}

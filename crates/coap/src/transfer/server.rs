//! The server's side of a stack: requests that come, in one message or many, and their answers.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::num::NonZeroU32;

use millpond_control::Instant;

use super::{
    Answer, CoapStack, Gone, Refusal, Refused,
    block_cache::{CachedRepresentation, Key},
    options::{self, Read},
    queued_event::QueuedEvent,
    representation::{Cut, Representation},
    unvalidated::{AddressValidation, Sent, Validation},
};
use crate::block::{Block, BlockSize, PastEnd, Verdict, robust::Requester};
use crate::endpoint::{self, Outgoing, RequestId};
use crate::invariant::Sure;
use crate::layer::{MessageLayer, Reason};
use crate::message::{Code, Kind, Message, Token, Uint, number};
use crate::output::Entry;
use crate::parts;
use crate::protection::{MAX_UNFRAGMENTED, with};
use crate::quota::Source;

/// What must be known of a request to answer it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending<A> {
    pub(super) from: A,
    pub(super) token: Token,
    pub(super) kind: Kind,
    /// Of its code and options, and of its body if that is part of what is asked for.
    pub(super) key: u64,
    pub(super) asked: u64,
    pub(super) block1: Option<Block>,
    /// It came in blocks that were put together here: the last one may come again, and the answer is kept however short it is.
    pub(super) may_come_again: bool,
    pub(super) block2: Option<Block>,
    pub(super) wants_size: bool,
    pub(super) wants_to_observe: bool,
    pub(super) address_validation: AddressValidation,
}

/// As what a request is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As its sender wrote it.
    Plain,
    /// A block of what is protected.
    Cut,
    /// As its sender wrote it, put together of such blocks, of which the last came in a message of so many bytes.
    Whole(usize),
}

impl<L: MessageLayer> CoapStack<L> {
    /// By which later blocks of a body are known, of a request or of its answer: who has another context, or none, has no part of it.
    pub(super) fn key_of(&self, request: &Message<'_>, context: Option<&[u8]>) -> u64 {
        match context {
            Some(context) => self.layer.hash(&(options::CacheKey(request), context)),
            None => self.layer.hash(&options::CacheKey(request)),
        }
    }

    /// A request came in one message.
    pub(super) fn request_came(&mut self, now: Instant, entry: Entry<L::Peer>, id: RequestId, form: Form) {
        let from = entry.peer;
        let Some(message) = self.layer.message(&entry).sure("message of a request") else { return };
        let room = self.layer.room();
        let read = Read::of(&message, room);
        let length = if let Form::Whole(length) = form { length } else { message.length() };
        let address_validation = address_validation(self.validation.as_deref_mut(), now, from, (&message, length));
        let is_cut = parts::OSCORE && form == Form::Cut;
        // What is critical and not the stack's own is for the application to know.
        let by_group = self.layer.came_by_group(id);
        let in_pieces = parts::BLOCK
            && (read.block1.is_some() || read.q_block.is_some())
            && !by_group
            && !is_cut
            && self.in_pieces.has(&message);
        let takes_bursts = self.bursts.are_served() && !by_group && !in_pieces && self.layer.protection().is_none();
        let unknown = [
            read.q_block.filter(|_| !takes_bursts),
            read.block1.filter(|_| !parts::BLOCK).map(|_| number::BLOCK1),
            read.block2.filter(|_| !parts::BLOCK).map(|_| number::BLOCK2),
        ];
        if let Some(number) = read.illegal.into_iter().chain(unknown.into_iter().flatten()).min() {
            return self.refuse(now, entry, id, Refusal::Option(number));
        }
        if takes_bursts && read.q_block.is_some() {
            let echo = self.validation.as_mut().and_then(|validation| validation.echo(now, from));
            let requester = Requester { address_validation, echo };
            let taken = self.bursts.request_came(now, (from, self.layer.source_of(from), requester), id, &message);
            self.events.extend(taken.err().map(|code| QueuedEvent::Refused {
                entry,
                why: Refusal::Burst(code),
                by_group,
            }));
            return;
        }
        let (Ok(block1), Ok(block2)) = (read.block1.transpose(), read.block2.transpose()) else {
            return self.refuse(now, entry, id, Refusal::NoBlock);
        };
        // Nobody looks for what is neither kept nor put together.
        let key = match block1.is_some() || self.config.limits.cached > 0 {
            true => self.key_of(&message, self.layer.protection().and_then(|protection| protection.context_of(id))),
            false => 0,
        };
        let mut pending = Pending {
            from,
            token: message.token,
            kind: message.kind,
            key,
            asked: 0,
            block1: block1.filter(|_| in_pieces),
            may_come_again: false,
            block2,
            wants_size: read.size2 == Some(0),
            wants_to_observe: false,
            address_validation,
        };
        let is_observable = !by_group && !is_cut && matches!(message.code, Code::GET | Code::FETCH);
        pending.wants_to_observe =
            parts::OBSERVE && is_observable && read.observe == Some(0) && block2.is_none_or(|block| block.number == 0);
        let deregisters = parts::OBSERVE && is_observable && read.observe == Some(1);
        let changes = !matches!(message.code, Code::GET | Code::FETCH);
        let is_later = parts::BLOCK && block2.is_some_and(|block| block.number > 0);
        let Some(block1) = block1.filter(|_| parts::BLOCK && !in_pieces) else {
            pending.asked = self.hash_of_body(&message, message.payload());
            let has_body = !message.payload().is_empty();
            match self.find_kept(now, &pending, has_body) {
                Some(Ok((slot, generation))) => return self.respond_with_kept(now, id, pending, slot, generation),
                Some(Err(why)) => return self.refuse(now, entry, id, why),
                None => {}
            }
            // Its answer is forgotten, and to make it anew would be to carry out the request once more, without its body.
            if is_later && (changes || is_cut) && !in_pieces && !by_group {
                return self.refuse(now, entry, id, Refusal::Forgotten);
            }
            if is_cut {
                return self.request_is_whole(now, entry, id, &pending, None);
            }
            return self.hand_up(now, entry, id, pending, None, deregisters);
        };
        if by_group {
            return self.layer.drop_request(now, id);
        }
        let limits = &self.config.limits;
        let end = usize::try_from(block1.offset()).unwrap_or(usize::MAX).saturating_add(message.payload().len());
        if is_cut && end > MAX_UNFRAGMENTED {
            self.bodies.drop_of(|other| *other == (from, key));
            return self.refuse(now, entry, id, Refusal::TooLarge(MAX_UNFRAGMENTED as u32));
        }
        if block1.number == 0 {
            self.bodies.make_room_for(&(from, key), |(other, _)| *other == from, limits.bodies_per_peer as usize);
        }
        let source = self.layer.source_of(from);
        let verdict = self.bodies.take_of(now, (from, key), source, block1, read.size1, message.payload());
        self.bodies.keep_within(limits.bodies);
        match verdict {
            Verdict::Whole(body, block1) => {
                (pending.block1, pending.may_come_again) = (Some(block1), !L::IS_RELIABLE);
                pending.asked = self.hash_of_body(&message, &body);
                if is_cut {
                    return self.request_is_whole(now, entry, id, &pending, Some(&body));
                }
                // What is observed is kept as long as that goes on: it is no more than one message brings.
                pending.wants_to_observe &= block1.number == 0;
                self.hand_up(now, entry, id, pending, Some(body), deregisters);
            }
            // Nothing is delivered twice by a stream: who sends it again begins in the middle.
            Verdict::Repeated(_) if L::IS_RELIABLE => self.refuse(now, entry, id, Refusal::Incomplete),
            Verdict::Repeated(block1) => {
                // Its answer is kept, or the application has yet to give it to the copy that came first.
                let key = Key { peer: from, request: key };
                let cached = self.cache.find(now, key, self.layer.hash(&key));
                match cached.map(|(slot, generation, _)| (slot, generation)) {
                    Some((slot, generation)) => {
                        let pending = Pending { block1: Some(block1), ..pending };
                        self.respond_with_kept(now, id, pending, slot, generation);
                    }
                    None if self.is_owed(from, key.request, is_cut) => self.layer.drop_request(now, id),
                    None => self.refuse(now, entry, id, Refusal::Forgotten),
                }
            }
            Verdict::Continue(block) => self.go_on_with_body(now, id, block),
            Verdict::Incomplete => self.refuse(now, entry, id, Refusal::Incomplete),
            Verdict::TooLarge(most) => self.refuse(now, entry, id, Refusal::TooLarge(most)),
            Verdict::WrongLength => self.refuse(now, entry, id, Refusal::WrongLength),
        }
    }

    /// A request is answered with an error, and that is told.
    fn refuse(&mut self, now: Instant, entry: Entry<L::Peer>, id: RequestId, why: Refusal) {
        let by_group = self.layer.came_by_group(id);
        self.events.push_back(QueuedEvent::Refused { entry, why, by_group });
        self.respond_with_refusal(now, id, why);
    }

    /// Where that is kept of which a later block is asked for, or why there is none.
    fn find_kept(
        &self,
        now: Instant,
        pending: &Pending<L::Peer>,
        has_body: bool,
    ) -> Option<Result<(u32, NonZeroU32), Refusal>> {
        let block = pending.block2.filter(|block| parts::BLOCK && block.number > 0)?;
        let key = Key { peer: pending.from, request: pending.key };
        let (slot, generation, cached) = self.cache.find(now, key, self.layer.hash(&key))?;
        if has_body && cached.asked != pending.asked {
            return None;
        }
        if block.offset() >= cached.body.len() as u64 {
            return Some(Err(Refusal::PastEnd));
        }
        Some(Ok((slot, generation)))
    }

    /// What of a request's body is part of what is asked for: that of FETCH (RFC 8132 §2).
    pub(super) fn hash_of_body(&self, message: &Message<'_>, body: &[u8]) -> u64 {
        if message.code == Code::FETCH && !body.is_empty() { self.layer.hash(&body) } else { 0 }
    }

    /// Whether the application has a request with this key.
    fn is_owed(&mut self, from: L::Peer, key: u64, is_cut: bool) -> bool {
        if is_cut {
            return self.layer.protection().is_some_and(|protection| protection.is_to_be_cut(from, key));
        }
        let mut its = self.pending.named().filter(|(_, pending)| pending.from == from && pending.key == key);
        its.any(|((slot, generation), _)| self.layer.awaits_answer(RequestId { slot, generation }))
    }

    fn hand_up(
        &mut self,
        now: Instant,
        entry: Entry<L::Peer>,
        id: RequestId,
        pending: Pending<L::Peer>,
        body: Option<Vec<u8>>,
        deregisters: bool,
    ) {
        self.pending.set(id, pending);
        self.counts.requests = self.counts.requests.saturating_add(1);
        if deregisters {
            self.observer_is_gone(now, pending.from, pending.token, Gone::Deregistered);
        }
        self.events.push_back(QueuedEvent::Request { entry, id, body, wants_to_observe: pending.wants_to_observe });
    }

    /// Input: the application answers a request. What of the body does not fit the block asked for is kept for later
    /// ones.
    ///
    /// # Errors
    /// A request answered before, an answer that cannot be written (the request can still be answered then), and what
    /// exceeds a limit: the request is dropped then.
    pub fn answer(&mut self, now: Instant, to: RequestId, answer: &Answer<'_>) -> Result<(), Refused> {
        self.input(now);
        match to.is_of_burst() {
            true => self.answer_in_bursts(now, to, answer),
            false => self.respond_with(now, to, answer, None),
        }
    }

    /// Input: the application cannot make sense of a request. A reset goes back if the request was not acknowledged
    /// yet (RFC 7252 §4.2), else nothing.
    ///
    /// # Errors
    /// A request answered before.
    pub fn reject(&mut self, now: Instant, request: RequestId) -> Result<(), Refused> {
        self.input(now);
        if request.is_of_burst() {
            return self.pass_in_bursts(request, false);
        }
        self.pending.take(request);
        self.layer.reject(now, request).map_err(Into::into)
    }

    /// Input: nobody here answers a request, nor acknowledges it, so that a confirmable one comes again: to who is here next.
    pub fn leave(&mut self, now: Instant, request: RequestId) {
        self.input(now);
        if request.is_of_burst() {
            // It may have been dropped meanwhile.
            let _ = self.pass_in_bursts(request, false);
            return;
        }
        self.pending.take(request);
        self.layer.drop_request(now, request);
    }

    /// Input: a request gets no response, as its sender wished (RFC 7967).
    ///
    /// # Errors
    /// A request answered before.
    pub fn suppress_response(&mut self, now: Instant, request: RequestId) -> Result<(), Refused> {
        self.input(now);
        if request.is_of_burst() {
            return self.pass_in_bursts(request, true);
        }
        self.pending.take(request);
        self.layer.suppress_response(now, request).map_err(Into::into)
    }

    /// The application, or what is kept for it, answers.
    pub(super) fn respond_with(
        &mut self,
        now: Instant,
        id: RequestId,
        answer: &Answer<'_>,
        observe: Option<u32>,
    ) -> Result<(), Refused> {
        let Some(pending) = self.pending.get(id) else {
            return Err(Refused::Endpoint(endpoint::Refused::UnknownRequest));
        };
        if answer.is_piece {
            return self.respond_with_piece(now, id, answer, &pending);
        }
        options::check_answer(answer.code, answer.options)?;
        self.sent = Sent::NOTHING;
        if let AddressValidation::Unvalidated(limit) = pending.address_validation {
            let representation = self.respond_within(now, id, (answer, &pending), limit, observe)?;
            if let Some(representation) = representation.filter(|one| one.is_long() || pending.may_come_again) {
                self.keep(now, pending.kept_under(), &representation);
            }
            return Ok(());
        }
        let (representation, sent) =
            self.cut_to_fit(answer, &pending, observe, |layer, outgoing| layer.respond(now, id, outgoing));
        let sent = match sent {
            Ok(sent) => sent,
            Err(PastEnd { .. }) => {
                let words = words_of(Refusal::PastEnd);
                let past_end = Outgoing { payload: words.as_bytes(), ..plain(pending.kind, Refusal::PastEnd.code()) };
                self.layer.respond(now, id, &past_end)
            }
        };
        self.was_answered(now, id, sent)?;
        if representation.is_long() || pending.may_come_again {
            self.keep(now, pending.kept_under(), &representation);
        }
        Ok(())
    }

    /// A request was answered, or could not be: what is refused for want of room is dropped by the layer.
    pub(super) fn was_answered(
        &mut self,
        now: Instant,
        id: RequestId,
        sent: Result<(), L::Refused>,
    ) -> Result<(), Refused> {
        let reason = sent.as_ref().err().map(L::reason);
        if !matches!(reason, Some(Reason::Message | Reason::TooLong | Reason::Call)) {
            self.pending.take(id);
            self.keep_cut(now);
        }
        match self.layer.room().filter(|_| reason == Some(Reason::TooLong)) {
            Some(room) => Err(Refused::TooLongForPeer { limit: room.bytes }),
            None => sent.map_err(Into::into),
        }
    }

    /// Sends an answer, or the block of it that is asked for. Over a stream it goes whole if it fits and nobody asks for
    /// blocks, else in the largest that the other side takes.
    pub(super) fn cut_to_fit<'a, T>(
        &mut self,
        answer: &'a Answer<'a>,
        to: &Pending<L::Peer>,
        observe: Option<u32>,
        mut send: impl FnMut(&mut L, &Outgoing<'_>) -> Result<T, L::Refused>,
    ) -> (Representation<'a>, Result<Result<T, L::Refused>, PastEnd>) {
        let cut = self.cut(answer, self.block_size(answer.block, to.block2));
        let room = self.layer.room().filter(|_| to.block2.is_none() && answer.block.is_none());
        let representation =
            Representation::of(answer, if room.is_some() { Cut::WHOLE } else { cut }, self.config.etag_length);
        let sent = representation.message(to.block2, to, observe, |message| send(&mut self.layer, message));
        let is_too_long = matches!(&sent, Ok(Err(why)) if L::reason(why) == Reason::TooLong);
        if !is_too_long || answer.body.is_empty() || !room.is_some_and(|room| room.block_wise) {
            return (representation, sent);
        }
        let representation = Representation::of(answer, cut, self.config.etag_length);
        let sent = representation.message(to.block2, to, observe, |message| send(&mut self.layer, message));
        (representation, sent)
    }

    /// Into what an answer is cut, in blocks of this size at most.
    fn cut(&self, answer: &Answer<'_>, size: BlockSize) -> Cut {
        let datagram = if parts::BLOCK { Cut::of(size) } else { Cut::WHOLE };
        self.layer.room().map_or(datagram, |room| Cut::within(&room, answer.options, size))
    }

    /// The application answers with a block that it has cut by itself.
    fn respond_with_piece(
        &mut self,
        now: Instant,
        id: RequestId,
        answer: &Answer<'_>,
        pending: &Pending<L::Peer>,
    ) -> Result<(), Refused> {
        let kind = answer.kind.unwrap_or(pending.kind);
        let message = Outgoing { kind, payload: answer.body, ..Outgoing::confirmable(answer.code, answer.options) };
        if let AddressValidation::Unvalidated(limit) = pending.address_validation
            && message.length_with(pending.token) > limit.message()
        {
            return self.ask_for_proof(now, id, pending, limit);
        }
        self.sent = Sent::NOTHING;
        let sent = self.layer.respond(now, id, &message);
        self.was_answered(now, id, sent)
    }

    /// Keeps a representation for its later blocks.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        (key, asked): (Key<L::Peer>, u64),
        representation: &Representation<'_>,
    ) {
        // What would not fit is not copied first.
        if !parts::BLOCK || representation.answer.body.len() > self.config.limits.cached {
            return;
        }
        let Ok(options) = options::keep(&representation.options()).sure("way to write what was written") else {
            return;
        };
        let body = representation.body();
        let size = representation.cut.size;
        let source = self.layer.source_of(key.peer);
        let source = Source { is_validated: source.is_validated || representation.answer.is_proved, ..source };
        let cached = CachedRepresentation::new(key, asked, (representation.answer.code, options, body), size, source);
        let layer = &self.layer;
        self.cache.put(now, cached, |key| layer.hash(&key));
    }

    /// A request is answered with a block of what is kept.
    fn respond_with_kept(
        &mut self,
        now: Instant,
        id: RequestId,
        pending: Pending<L::Peer>,
        slot: u32,
        generation: NonZeroU32,
    ) {
        let Some(cached) = self.cache.take_up(slot, generation, now) else {
            return self.respond_with_refusal(now, id, Refusal::Forgotten);
        };
        if let AddressValidation::Unvalidated(limit) = pending.address_validation {
            // What is kept may be of somebody who was validated, and this of a peer that forges its address.
            let (encoded, body, code, size) = (cached.options.clone(), cached.body.clone(), cached.code, cached.size);
            let options = encoded.lend();
            let answer = Answer { body: &body, block: Some(size), ..Answer::new(code, &options) };
            self.pending.set(id, pending);
            if self.respond_within(now, id, (&answer, &pending), limit, None).is_err() {
                self.pending.take(id);
                return self.layer.drop_request(now, id);
            }
            self.counts.served = self.counts.served.saturating_add(1);
            return;
        }
        let options = cached.options.lend();
        let answer = Answer::new(cached.code, &options).with_shared_body(&cached.body);
        let cut = self.layer.room().map_or(Cut::of(cached.size), |room| {
            Cut::within(&room, &options, pending.block2.map_or(self.config.block, |block| block.size))
        });
        let representation = Representation { answer: &answer, cut, etag: None, echo: None };
        let layer = &mut self.layer;
        let sent = representation.message(pending.block2, &pending, None, |message| layer.respond(now, id, message));
        match sent {
            Ok(Ok(())) => {
                self.counts.served = self.counts.served.saturating_add(1);
                self.keep_cut(now);
            }
            // For want of room; the client asks again.
            Ok(Err(_)) => self.layer.drop_request(now, id),
            Err(PastEnd { .. }) => self.respond_with_refusal(now, id, Refusal::PastEnd),
        }
    }

    /// More of a request's body is awaited.
    fn go_on_with_body(&mut self, now: Instant, id: RequestId, block1: Block) {
        let block1 = block1.value();
        self.respond_plainly(now, id, Code::CONTINUE, &[(number::BLOCK1, block1.as_bytes())], b"");
    }

    /// A request is answered with an error, without the application.
    pub(super) fn respond_with_refusal(&mut self, now: Instant, id: RequestId, why: Refusal) {
        let size1 = if let Refusal::TooLarge(most) = why { Some(Uint::new(most)) } else { None };
        let options = size1.as_ref().map(|size1| (number::SIZE1, size1.as_bytes()));
        let words = words_of(why);
        self.respond_plainly(now, id, why.code(), options.as_slice(), words.as_bytes());
    }

    pub(super) fn respond_plainly(
        &mut self,
        now: Instant,
        id: RequestId,
        code: Code,
        options: &[(u16, &[u8])],
        payload: &[u8],
    ) {
        let response = Outgoing { options, payload, ..plain(self.layer.kind_of_answer(id), code) };
        match self.layer.respond(now, id, &response) {
            Ok(()) => self.keep_cut(now),
            Err(_) => self.layer.drop_request(now, id),
        }
    }

    /// A request that is not protected is answered, where all are to be: it may be a step in agreeing upon a security context. If there is
    /// no room for what it begins, because its address is not validated, its sender is asked to show that it is there (RFC 9175).
    pub(crate) fn establish(&mut self, now: Instant, id: RequestId, entry: &Entry<L::Peer>) {
        let from = entry.peer;
        let Some(request) = self.layer.message(entry).sure("message of a request") else { return };
        let came = (&request, request.length());
        let state = address_validation(self.validation.as_deref_mut(), now, from, came);
        let is_validated = !matches!(state, AddressValidation::Unvalidated(_));
        let answer = self.layer.establish(entry, Source { is_validated, ..self.layer.source_of(from) });
        let is_full = Message::parse(&answer).is_ok_and(|answer| answer.code == Code::SERVICE_UNAVAILABLE);
        let validation = self.validation.as_mut().filter(|_| is_full && !is_validated);
        match validation.and_then(|validation| validation.echo(now, from)) {
            Some(echo) => self.respond_plainly(now, id, Code::UNAUTHORIZED, &[(number::ECHO, &echo)], &[]),
            None => self.respond_as_written(now, id, &answer),
        }
    }

    /// A request is answered with what the layer below wrote.
    pub(crate) fn respond_as_written(&mut self, now: Instant, id: RequestId, answer: &[u8]) {
        let response = plain(self.layer.kind_of_answer(id), Code::UNAUTHORIZED);
        let sent = with(Some(answer), &response, |response| self.layer.respond(now, id, response));
        if !matches!(sent, Ok(Ok(()))) {
            self.layer.drop_request(now, id);
        }
    }

    /// The largest blocks that an answer may have: of all sizes that were wished, the smallest.
    pub(super) fn block_size(&self, wished: Option<BlockSize>, asked: Option<Block>) -> BlockSize {
        let sizes = [wished, asked.map(|asked| asked.size)];
        sizes.into_iter().flatten().fold(self.config.block, BlockSize::min)
    }
}

/// What may be sent for a request.
fn address_validation<A>(
    validation: Option<&mut (dyn Validation<A> + 'static)>,
    now: Instant,
    from: A,
    (request, length): (&Message<'_>, usize),
) -> AddressValidation {
    validation.map_or(AddressValidation::Validated, |validation| {
        validation.address_validation(now, from, request.option(number::ECHO), length)
    })
}

/// What is said to who is refused.
fn words_of(why: Refusal) -> String {
    if parts::DIAGNOSTICS && why.is_explained() { why.to_string() } else { String::new() }
}

/// A response without anything.
fn plain(kind: Kind, code: Code) -> Outgoing<'static> {
    Outgoing { kind, ..Outgoing::confirmable(code, &[]) }
}

impl<A: Copy> Pending<A> {
    /// Under what its answer is kept.
    pub(super) const fn kept_under(&self) -> (Key<A>, u64) {
        (Key { peer: self.from, request: self.key }, self.asked)
    }

    /// What a notification is cut by: the registration that it answers.
    pub(super) fn of_observer(observer: &super::observers::Observer<A>) -> Self {
        Self {
            from: observer.peer,
            token: observer.token,
            kind: observer.kind,
            key: observer.key,
            asked: observer.asked,
            block1: None,
            may_come_again: false,
            block2: observer.block2,
            wants_size: false,
            wants_to_observe: true,
            address_validation: AddressValidation::Validated,
        }
    }
}

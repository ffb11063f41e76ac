//! The bodies that a server holds: collecting, keeping, answering, and making room.

use alloc::vec::Vec;
use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use super::{
    super::{
        super::{Block, BlockSize},
        Accepted, BurstReceiver, Q_BLOCK2, REQUEST_TAG, Receipt, Whole,
        draft::{Draft, Recent, options_of, uint_of},
    },
    BlockSelection, BurstServer, Inbound, Outbound, PendingRequest, Reply, Representation, Stage, Step,
};
use crate::body::HeldBody;
use crate::message::{Code, HEADER, Kind, Message, OptionList, is_of_transfer, number};
use crate::quota::{Crowded, Source};
use crate::transfer::Answer;

impl<A: Copy + Eq + Hash + Debug> BurstServer<A> {
    /// A payload of a body came.
    ///
    /// # Errors
    /// The code to answer what cannot be.
    #[allow(clippy::too_many_arguments, reason = "what the request says, taken apart once")]
    pub(super) fn payload_came(
        &mut self,
        now: Instant,
        (from, source): (A, Source),
        reply: Reply,
        message: &Message<'_>,
        key: Vec<u8>,
        block: Block,
        selection: BlockSelection,
    ) -> Result<(), Code> {
        let tag = message.option(REQUEST_TAG).ok_or(Code::BAD_REQUEST)?;
        let total = uint_of(message, number::SIZE1).ok_or(Code::BAD_REQUEST)?;
        let is_it = |body: &Inbound<A>| body.from == from && body.tag == tag && body.key == key;
        // What it brings must fit; of what is there what is worth least makes room, but never the body itself.
        let length = message.payload().len();
        while self.memory().saturating_add(length) > self.options.limits.bytes {
            if !self.drop_least(source, None, true, |body| !is_it(body)) {
                return Err(Code::SERVICE_UNAVAILABLE);
            }
        }
        let place = match self.inbound.iter().position(is_it) {
            Some(place) => place,
            None => match self.room_for(from, source, total) {
                Err(Code::REQUEST_ENTITY_TOO_LARGE) => {
                    let most = u32::try_from(self.options.limits.body).unwrap_or(u32::MAX);
                    let draft = Draft::bare(Code::REQUEST_ENTITY_TOO_LARGE);
                    self.reply(from, reply, draft.with_uint(number::SIZE1, most));
                    return Ok(());
                }
                Err(code) => return Err(code),
                Ok(()) => {
                    let (parameters, limit) = (self.parameters_of(from), self.options.limits.body);
                    let receiver = BurstReceiver::new(parameters, block.size, total, limit, now);
                    self.inbound.push(Inbound {
                        from,
                        source,
                        came: 0,
                        bytes: 0,
                        requested: 0,
                        key,
                        tag: tag.to_vec(),
                        code: message.code,
                        options: options_of(message, |number| !is_of_transfer(number)),
                        selection,
                        token: message.token,
                        is_confirmable: false,
                        recent: Recent::default(),
                        stage: Stage::Collecting(receiver.ok_or(Code::BAD_REQUEST)?),
                        touched: now,
                        lifetime: parameters.lifetime,
                    });
                    self.inbound.len().saturating_sub(1)
                }
            },
        };
        let Some(body) = self.inbound.get_mut(place) else { return Ok(()) };
        (body.token, body.touched, body.is_confirmable) = (message.token, now, message.kind == Kind::Confirmable);
        body.source = source;
        let came = message.token.encoded_len().saturating_add(message.option_bytes().len()).saturating_add(length);
        body.bytes = body.bytes.saturating_add(HEADER).saturating_add(came);
        let accepted = body.take(now, &Receipt { block, total, payload: message.payload() });
        match (accepted, &body.stage) {
            (Some(Accepted::Misfit), Stage::Collecting(receiver)) => {
                // The first payload cannot be taken: nothing is to be kept for the others.
                if receiver.complete() == 0 && receiver.is_untouched() {
                    self.inbound.remove(place);
                }
                return Err(Code::BAD_REQUEST);
            }
            (Some(Accepted::Whole), _) => self.whole(now, place, reply)?,
            (None, Stage::Answered(draft)) => {
                let draft = draft.clone();
                self.reply(from, reply, draft);
            }
            _ => {
                if let Reply::To(request, _) = reply {
                    let draft = body.acknowledgement();
                    self.steps.push_back(Step::Respond(request, draft));
                }
            }
        }
        Ok(())
    }

    /// A body is whole: the application gets it.
    fn whole(&mut self, now: Instant, place: usize, reply: Reply) -> Result<(), Code> {
        let Some(body) = self.inbound.get(place) else { return Ok(()) };
        let (from, key, tag, selection) =
            ((body.from, body.source), body.key.clone(), body.tag.clone(), body.selection.clone());
        let id = self.add_pending(now, from, key, selection, reply, Some(tag))?;
        let Some(body) = self.inbound.get_mut(place) else { return Ok(()) };
        let (code, options) = (body.code, body.options.clone());
        let Some(body) = body.complete() else { return Ok(()) };
        self.events.push_back((id, from.0, Whole { code, options, body }));
        Ok(())
    }

    /// Makes room for a body of so many bytes.
    fn room_for(&mut self, from: A, source: Source, total: u32) -> Result<(), Code> {
        let limits = self.options.limits;
        if total as usize > limits.body {
            return Err(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        let of_peer = self.inbound.iter().filter(|body| body.from == from).count();
        if of_peer >= limits.bodies_per_peer.max(1) {
            let oldest = self.inbound.iter().enumerate().filter(|(_, body)| body.from == from);
            if let Some((place, _)) = oldest.min_by_key(|(_, body)| body.touched) {
                self.inbound.remove(place);
            }
        }
        // What is claimed takes no room; what comes does.
        let first = total.min(BlockSize::B1024.bytes()) as usize;
        self.make_room(source, first).then_some(()).ok_or(Code::SERVICE_UNAVAILABLE)
    }

    /// Makes room for one more body with so many bytes to begin with. A network that would have more than three quarters makes
    /// room itself: some is left for who comes anew. False if what is there is worth more.
    fn make_room(&mut self, source: Source, first: usize) -> bool {
        let (most, bytes) = (self.options.limits.bodies, self.options.limits.bytes);
        let share = |all: usize| all.saturating_sub(all >> 2);
        loop {
            let (own, own_bytes) = self.of_network(source.network);
            let (held, is_full) = (self.memory().saturating_add(first), self.bodies() >= most);
            let has_all = own > 0 && own >= share(most);
            let has_all_bytes = own > 0 && own_bytes.saturating_add(first) > share(bytes);
            let network = (has_all || has_all_bytes).then_some(source.network);
            if network.is_none() && !is_full && held <= bytes {
                return true;
            }
            let by_bytes = if network.is_some() { !has_all } else { !is_full };
            if !self.drop_least(source, network, by_bytes, |_| true) {
                return false;
            }
        }
    }

    /// Whose each body is, and what it weighs: its bytes, or one.
    fn weights(&self, by_bytes: bool) -> impl Iterator<Item = (Source, usize)> + Clone {
        let inbound = self.inbound.iter().map(move |body| (body.source, if by_bytes { body.memory() } else { 1 }));
        let outbound = self.outbound.iter().map(move |body| (body.source, if by_bytes { body.memory() } else { 1 }));
        inbound.chain(outbound)
    }

    /// How many bodies there are of a network, and their bytes.
    fn of_network(&self, network: u64) -> (usize, usize) {
        let of_it = self.weights(true).filter(|(source, _)| source.network == network);
        of_it.fold((0, 0), |(count, bytes), (_, more)| (count.saturating_add(1), bytes.saturating_add(more)))
    }

    /// Drops the body that is worth least of those that may go, of one network or of all, for want of bytes or of places: to begin
    /// one costs a forged datagram. Of those alike the ones that are kept for what was lost of them go first. Nobody known makes
    /// room for somebody who is not. False if there is none.
    fn drop_least(
        &mut self,
        source: Source,
        network: Option<u64>,
        by_bytes: bool,
        may_go: impl Fn(&Inbound<A>) -> bool,
    ) -> bool {
        let crowded = Crowded::among(self.weights(by_bytes));
        let kept = self.outbound.iter().map(|body| (body.source, (false, 0, body.touched())));
        let kept = kept.enumerate().map(|(place, (source, rest))| ((false, place), source, rest));
        let collected = self.inbound.iter().enumerate().filter(|(_, body)| may_go(body));
        let collected = collected.map(|(place, body)| ((true, place), body.source, (true, body.came, body.touched)));
        let all = kept.chain(collected).filter(|(_, of, _)| network.is_none_or(|network| network == of.network));
        match crowded.least(all.filter(|(_, of, _)| source.is_validated || !of.is_validated)) {
            Some((true, place)) => drop(self.inbound.remove(place)),
            Some((false, place)) => drop(self.outbound.remove(place)),
            None => return false,
        }
        true
    }

    /// Drops what is kept for this peer, the one idle for longest first, until it has room for one more.
    fn give_up_own(&mut self, from: A) {
        let most = self.options.limits.bodies_per_peer.max(1);
        while self.outbound.iter().filter(|body| body.to == from).count() >= most {
            let own = self.outbound.iter().enumerate().filter(|(_, body)| body.to == from);
            let Some((place, _)) = own.min_by_key(|(_, body)| body.touched()) else { return };
            self.outbound.remove(place);
        }
    }

    /// Where the representation is kept, in blocks of this size, that a request asks for more of. Who fetches it in two sizes,
    /// or fetches it while the first block is asked for as the question whether bursts are known, has it twice.
    pub(super) fn kept(&self, from: A, key: &[u8], tag: Option<&[u8]>, size: BlockSize) -> Option<usize> {
        let is_it = |body: &&Outbound<A>| body.to == from && body.key == key && body.size() == size;
        let all = || self.outbound.iter().enumerate().filter(|(_, body)| is_it(body));
        let tagged = all().find(|(_, body)| tag.is_some() && body.request_tag.as_deref() == tag);
        // A request need not name the body that was answered.
        tagged.or_else(|| all().last()).map(|(place, _)| place)
    }

    /// The application answered.
    pub(super) fn answered(&mut self, now: Instant, request: PendingRequest<A>, answer: &Answer<'_>) {
        let PendingRequest { from, key, selection, reply, tag, .. } = request;
        let source = Source { is_validated: request.source.is_validated || answer.is_proved, ..request.source };
        let size = selection.size().min(self.options.size).min(BlockSize::B1024);
        let given = answer.options.iter().find(|(number, _)| *number == number::ETAG).map(|(_, value)| *value);
        let options = OptionList::sorted(answer.options.iter().copied().filter(|(number, _)| !is_of_transfer(*number)));
        let is_short = answer.code.class() != 2 || answer.body.len() <= size.bytes() as usize;
        let kept = self.kept(from, &key, tag.as_deref(), size);
        if is_short {
            if let Some(place) = kept {
                self.outbound.remove(place);
            }
            let mut draft = Draft::plain(answer.code, &options).with_payload(answer.body);
            if answer.code.class() == 2 {
                draft = draft.with_block(Q_BLOCK2, Block { number: 0, more: false, size });
                if given.is_none() && !selection.begins() {
                    // A client that asked for more of what was there before must see that this is another one.
                    draft = draft.with(number::ETAG, &self.etag());
                }
            }
            self.remember(from, tag.as_deref(), &draft);
            return self.reply(from, reply, draft);
        }
        let is_same = |body: &Outbound<A>| body.is(answer, given, size);
        let place = match kept {
            Some(place) if self.outbound.get(place).is_some_and(is_same) => place,
            other => {
                if let Some(place) = other {
                    self.outbound.remove(place);
                }
                self.give_up_own(from);
                if !self.make_room(source, answer.body.len()) {
                    return self.reply(from, reply, Draft::bare(Code::SERVICE_UNAVAILABLE));
                }
                let etag = given.map_or_else(|| self.etag(), <[u8]>::to_vec);
                let options = options.only(|number| number != number::ETAG);
                let body = HeldBody::of(answer.body, answer.shared);
                let representation = Representation { code: answer.code, options, etag, body, size };
                let parameters = self.parameters_of(from);
                let pause = self.pause(&parameters);
                self.outbound.push(Outbound::new((from, source), key, representation, parameters, pause, now));
                self.outbound.len().saturating_sub(1)
            }
        };
        if let Some(body) = self.outbound.get_mut(place) {
            body.echo = request.requester.echo;
        }
        self.leave(now, place, &selection, reply, tag);
    }

    /// What was asked for of a representation leaves.
    fn leave(&mut self, now: Instant, place: usize, selection: &BlockSelection, reply: Reply, tag: Option<Vec<u8>>) {
        let Some(body) = self.outbound.get_mut(place) else { return };
        let from = body.to;
        body.given_again(now);
        body.request_tag.clone_from(&tag);
        let first = body.block(0);
        let in_acknowledgement = matches!(reply, Reply::To(..)) && selection.begins();
        let served = body.serve(now, selection, reply.token(), in_acknowledgement);
        if let Some(first) = &first {
            self.remember(from, tag.as_deref(), first);
        }
        match (served, reply, first) {
            (super::outbound::Served::PastEnd, ..) => {
                self.reply(from, reply, Draft::bare(Code::BAD_REQUEST));
            }
            (_, Reply::To(request, _), Some(first)) if in_acknowledgement => {
                self.steps.push_back(Step::Respond(request, first));
            }
            (_, Reply::To(request, _), _) => self.first_in_acknowledgement(now, place, request),
            (_, Reply::Plain(_), _) => {}
        }
    }

    /// A body that came in bursts was answered like this: so are its payloads that come again.
    fn remember(&mut self, from: A, tag: Option<&[u8]>, draft: &Draft) {
        let Some(tag) = tag else { return };
        for body in self.inbound.iter_mut().filter(|body| body.from == from && body.tag == tag) {
            if let Stage::HandedUp = body.stage {
                body.stage = Stage::Answered(draft.clone());
            }
        }
    }

    /// Drops what was kept for long enough.
    pub(super) fn expire(&mut self, now: Instant) {
        self.outbound.retain(|body| body.expiry() > now);
        self.pending.retain(|request| request.until > now);
        let is_due = |body: &Inbound<A>| body.touched.after(body.lifetime) <= now;
        self.inbound.retain(|body| matches!(body.stage, Stage::Collecting(_)) || !is_due(body));
    }
}

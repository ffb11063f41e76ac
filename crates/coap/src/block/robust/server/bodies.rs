//! The bodies that a server holds: collecting, keeping, answering, and making room.

use alloc::vec::Vec;
use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use super::{
    super::{
        super::{
            Block, BlockSize,
            whose::{Crowded, Whose},
        },
        Accepted, BurstReceiver, Q_BLOCK2, REQUEST_TAG, Receipt,
        draft::{Draft, Recent, options_of, own_options, uint_of},
    },
    BurstAnswer, BurstServer, Inbound, Outbound, Owed, Reply, Representation, ServerTold, Stage, Step, Wants,
};
use crate::message::{Code, Kind, Message, is_of_transfer, number};

impl<A: Copy + Eq + Hash + Debug> BurstServer<A> {
    /// A payload of a body came.
    ///
    /// # Errors
    /// The code to answer what cannot be.
    #[allow(clippy::too_many_arguments, reason = "what the request says, taken apart once")]
    pub(super) fn payload_came(
        &mut self,
        now: Instant,
        (from, whose): (A, Whose),
        reply: Reply,
        message: &Message<'_>,
        key: Vec<u8>,
        block: Block,
        wants: Wants,
    ) -> Result<(), Code> {
        let tag = message.option(REQUEST_TAG).ok_or(Code::BAD_REQUEST)?;
        let total = uint_of(message, number::SIZE1).ok_or(Code::BAD_REQUEST)?;
        let is_it = |body: &Inbound<A>| body.from == from && body.tag == tag && body.key == key;
        // What it brings must fit; of what is there what is worth least makes room, but never the body itself.
        let length = message.payload().len();
        while self.memory().saturating_add(length) > self.options.limits.bytes {
            if !self.drop_least(whose, Inbound::memory, |body| !is_it(body)) {
                return Err(Code::SERVICE_UNAVAILABLE);
            }
        }
        let place = match self.inbound.iter().position(is_it) {
            Some(place) => place,
            None => match self.room_for(from, whose, total) {
                Err(Code::REQUEST_ENTITY_TOO_LARGE) => {
                    let most = u32::try_from(self.options.limits.body).unwrap_or(u32::MAX);
                    let draft = Draft::plain(Code::REQUEST_ENTITY_TOO_LARGE, &Vec::new());
                    self.reply(from, reply, draft.with_uint(number::SIZE1, most));
                    return Ok(());
                }
                Err(code) => return Err(code),
                Ok(()) => {
                    let (parameters, limit) = (self.parameters_of(from), self.options.limits.body);
                    let receiver = BurstReceiver::new(parameters, block.size, total, limit, now);
                    self.inbound.push(Inbound {
                        from,
                        whose,
                        came: 0,
                        key,
                        tag: tag.to_vec(),
                        code: message.code,
                        options: own_options(options_of(message), is_of_transfer),
                        wants,
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
        body.whose = whose;
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
        let (from, key, tag, wants) = (body.from, body.key.clone(), body.tag.clone(), body.wants.clone());
        let id = self.owe(now, from, key, wants, reply, Some(tag))?;
        let Some(body) = self.inbound.get_mut(place) else { return Ok(()) };
        let (code, options) = (body.code, body.options.clone());
        let Some(body) = body.complete() else { return Ok(()) };
        self.told.push_back(ServerTold::Request { id, from, code, options, body });
        Ok(())
    }

    /// Makes room for a body of so many bytes.
    fn room_for(&mut self, from: A, whose: Whose, total: u32) -> Result<(), Code> {
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
        self.give_up_kept(from, first);
        while self.bodies() >= limits.bodies {
            if !self.drop_least(whose, |_| 1, |_| true) {
                return Err(Code::SERVICE_UNAVAILABLE);
            }
        }
        while self.memory().saturating_add(first) > limits.bytes {
            if !self.drop_least(whose, Inbound::memory, |_| true) {
                return Err(Code::SERVICE_UNAVAILABLE);
            }
        }
        Ok(())
    }

    /// Drops the body in the requests that is worth least of those that may go: to begin one costs a forged datagram. Nobody
    /// known makes room for somebody who is not. False if there is none.
    fn drop_least(
        &mut self,
        whose: Whose,
        weigh: impl Fn(&Inbound<A>) -> usize,
        may_go: impl Fn(&Inbound<A>) -> bool,
    ) -> bool {
        let crowded = Crowded::among(self.inbound.iter().map(|body| (body.whose, weigh(body))));
        let may_go = |body: &Inbound<A>| may_go(body) && (whose.is_known || !body.whose.is_known);
        let all = self.inbound.iter().enumerate().filter(|(_, body)| may_go(body));
        let least = crowded.least(all.map(|(place, body)| (place, body.whose, (body.came, body.touched))));
        least.map(|place| self.inbound.remove(place)).is_some()
    }

    /// Drops bodies that are kept for what may have been lost, the one idle for longest first, until there is room.
    fn give_up_kept(&mut self, from: A, more: usize) {
        let limits = self.options.limits;
        loop {
            let of_peer = self.outbound.iter().filter(|body| body.to == from).count();
            let full = self.memory().saturating_add(more) > limits.bytes || self.bodies() >= limits.bodies;
            let own_only = !full && of_peer >= limits.bodies_per_peer.max(1);
            if !full && !own_only {
                return;
            }
            let candidates = self.outbound.iter().enumerate().filter(|(_, body)| !own_only || body.to == from);
            let Some((place, _)) = candidates.min_by_key(|(_, body)| body.expiry()) else { return };
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
    pub(super) fn answered(&mut self, now: Instant, owed: Owed<A>, answer: &BurstAnswer<'_>) {
        let Owed { from, key, wants, reply, tag, .. } = owed;
        let size = wants.size().min(self.options.size).min(BlockSize::B1024);
        let given = answer.options.iter().find(|(number, _)| *number == number::ETAG).map(|(_, value)| *value);
        let options = own_options(answer.options.iter().copied(), is_of_transfer);
        let is_short = answer.code.class() != 2 || answer.body.len() <= size.bytes() as usize;
        let kept = self.kept(from, &key, tag.as_deref(), size);
        if is_short {
            if let Some(place) = kept {
                self.outbound.remove(place);
            }
            let mut draft = Draft::plain(answer.code, &options).with_payload(answer.body);
            if answer.code.class() == 2 {
                draft = draft.with_block(Q_BLOCK2, Block { number: 0, more: false, size });
                if given.is_none() && !wants.begins() {
                    // Whoever asked for more of what was there before must see that this is another one.
                    draft = draft.with(number::ETAG, &self.etag());
                }
            }
            self.remember(from, tag.as_deref(), &draft);
            return self.reply(from, reply, draft);
        }
        let is_same = |body: &Outbound<A>| body.is(answer.code, given, answer.body, size);
        let place = match kept {
            Some(place) if self.outbound.get(place).is_some_and(is_same) => place,
            other => {
                if let Some(place) = other {
                    self.outbound.remove(place);
                }
                self.give_up_kept(from, answer.body.len());
                let etag = given.map_or_else(|| self.etag(), <[u8]>::to_vec);
                let options = own_options(options.iter().map(|(number, value)| (*number, &**value)), |number| {
                    number == number::ETAG
                });
                let representation =
                    Representation { code: answer.code, options, etag, body: answer.body.to_vec(), size };
                let parameters = self.parameters_of(from);
                let pause = self.pause(&parameters);
                self.outbound.push(Outbound::new(from, key, representation, parameters, pause, now));
                self.outbound.len().saturating_sub(1)
            }
        };
        self.leave(now, place, &wants, reply, tag);
    }

    /// What was asked for of a representation leaves.
    fn leave(&mut self, now: Instant, place: usize, wants: &Wants, reply: Reply, tag: Option<Vec<u8>>) {
        let Some(body) = self.outbound.get_mut(place) else { return };
        let from = body.to;
        body.request_tag.clone_from(&tag);
        let first = body.block(0);
        let in_acknowledgement = matches!(reply, Reply::To(..)) && wants.begins();
        let served = body.serve(now, wants, reply.token(), in_acknowledgement);
        if let Some(first) = &first {
            self.remember(from, tag.as_deref(), first);
        }
        match (served, reply, first) {
            (super::outbound::Served::PastEnd, ..) => {
                self.reply(from, reply, Draft::plain(Code::BAD_REQUEST, &Vec::new()));
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
            if let Stage::Asked = body.stage {
                body.stage = Stage::Answered(draft.clone());
            }
        }
    }

    /// Drops what was kept for long enough.
    pub(super) fn expire(&mut self, now: Instant) {
        self.outbound.retain(|body| body.expiry() > now);
        self.owed.retain(|owed| owed.until > now);
        let is_due = |body: &Inbound<A>| body.touched.after(body.lifetime) <= now;
        self.inbound.retain(|body| matches!(body.stage, Stage::Collecting(_)) || !is_due(body));
    }
}

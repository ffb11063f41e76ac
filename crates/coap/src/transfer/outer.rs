//! Protected messages that were cut on their way, by who cannot read them: their blocks are put together before the protection is taken
//! off, and answers leave in the blocks that are asked for (RFC 8613 §4.1.3.4.2). What the ends cut by themselves is inside.

use alloc::{boxed::Box, vec::Vec};

use millpond_control::Instant;

use super::{
    Answer, CoapStack, RequestFailure,
    block_cache::Key,
    options::Read,
    owner::Owner,
    pending_request::PendingRequest,
    representation::{self, Representation},
    request_table::Exchanged,
    server::{Form, Pending},
};
use crate::block::{Block, BlockSize, Download, DownloadError, Next, Part};
use crate::endpoint::{ExchangeId, RequestId};
use crate::invariant::Sure;
use crate::layer::MessageLayer;
use crate::message::{Code, MARKER, Message, Token, number, sort};
use crate::output::{Entry, OutputKind};
use crate::parts;
use crate::protection::{Cut, MAX_UNFRAGMENTED, ResponseFault};

/// A protected response whose blocks are fetched.
#[derive(Debug)]
pub(super) struct OuterResponse {
    /// The exchange that it answers: as long as nothing else can come on its token, that of the last block.
    of: ExchangeId,
    /// None of a notification.
    exchanged: Option<Exchanged>,
    /// More may come on the token of what it answers.
    is_subscription: bool,
    /// The request of the next block.
    pub(super) under_way: ExchangeId,
    /// Header and options of the message that began it.
    head: Vec<u8>,
    download: Download,
}

/// A message to be looked at, and what it is once it was put together.
type PutTogether<A> = Option<(Entry<A>, Option<Vec<u8>>)>;

impl OuterResponse {
    /// Bytes held beside this value.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>().saturating_add(self.head.capacity()).saturating_add(self.download.received())
    }

    fn kind(&self) -> OutputKind {
        let exchange = self.of;
        self.exchanged.map_or(OutputKind::AdditionalResponse { exchange }, |Exchanged { sample, copies }| {
            OutputKind::Response { exchange, sample, copies }
        })
    }

    /// The message, if this is its last block, or the block to ask for.
    fn take(&mut self, message: &Message<'_>, read: &Read<'_>) -> Result<Option<Block>, RequestFailure> {
        if message.option(number::OSCORE).is_none() || message.code.class() != 2 {
            return Err(RequestFailure::Protection(ResponseFault::NotProtected(message.code)));
        }
        let block = read.block2.transpose().map_err(|_| RequestFailure::BadBlock)?;
        let (code, payload) = (message.code, message.payload());
        let part = Part { code, format: None, block, etag: read.etag, total: read.size2, payload };
        match self.download.take(&part)? {
            Next::Done => Ok(None),
            // It is another message by now, and the server takes the request for its first block once.
            Next::Request(Block { number: 0, .. }) => Err(DownloadError::Unstable(1).into()),
            Next::Request(block) => Ok(Some(block)),
        }
    }

    fn into_message(self) -> Vec<u8> {
        let (mut bytes, body) = (self.head, self.download.into_body());
        if !body.is_empty() {
            bytes.push(MARKER);
            bytes.extend_from_slice(&body);
        }
        bytes
    }
}

/// A message with this payload, which is that of all its blocks.
fn whole(message: &Message<'_>, payload: &[u8]) -> Option<Vec<u8>> {
    let of_blocks = |number| matches!(number, number::BLOCK1 | number::BLOCK2 | number::SIZE1 | number::SIZE2);
    message.rewritten(|number| !of_blocks(number), payload).ok()
}

/// Whether a message is protected, and a block of it.
fn is_cut(message: &Message<'_>) -> bool {
    let is_part = |value: &[u8]| Block::read(value, true).is_ok_and(|block| block.more || block.number > 0);
    let has_block = match message.code.is_request() {
        true => [number::BLOCK1, number::BLOCK2].into_iter().any(|number| message.option(number).is_some()),
        false => message.option(number::BLOCK2).is_some_and(is_part),
    };
    has_block && message.option(number::OSCORE).is_some() && message.token.len() <= Token::MAX
}

impl<L: MessageLayer> CoapStack<L> {
    /// What is to be looked at of what came in, once its protection is off.
    #[cold]
    pub(super) fn unprotected(&mut self, now: Instant, entry: Entry<L::Peer>) -> Option<Entry<L::Peer>> {
        let (entry, bytes) = if parts::BLOCK { self.put_together(now, entry)? } else { (entry, None) };
        let whole = bytes.as_deref().map(Message::parse).transpose();
        let whole = whole.ok().sure("message that was put together")?;
        self.layer.unprotect(&entry, whole.as_ref()).goes_on(now, self, &entry).then_some(entry)
    }

    /// The same, if no more blocks are awaited.
    fn put_together(&mut self, now: Instant, entry: Entry<L::Peer>) -> PutTogether<L::Peer> {
        match entry.kind {
            OutputKind::Request { id }
                if parts::SERVER && self.layer.message(&entry).is_some_and(|it| is_cut(&it) && self.takes(&it)) =>
            {
                self.request_came(now, entry, id, Form::Cut);
                None
            }
            OutputKind::Response { exchange, .. }
            | OutputKind::AdditionalResponse { exchange }
            | OutputKind::Failed { exchange, .. }
                if parts::CLIENT =>
            {
                self.put_response_together(now, entry, exchange)
            }
            _ => Some((entry, None)),
        }
    }

    /// Whether a request that is protected is not for others.
    fn takes(&self, request: &Message<'_>) -> bool {
        self.layer.protection().is_some_and(|protection| protection.takes(request))
    }

    fn put_response_together(
        &mut self,
        now: Instant,
        mut entry: Entry<L::Peer>,
        exchange: ExchangeId,
    ) -> PutTogether<L::Peer> {
        let Some(Owner::Request(slot)) = self.owners.get(exchange) else { return Some((entry, None)) };
        let is_ours = self.layer.protection().is_some_and(|protection| protection.has_sent(exchange));
        let message = self.layer.message(&entry).filter(|message| is_ours && is_cut(message));
        let fetches = |pending: &PendingRequest<L::Peer>| !pending.outer.is_empty();
        if message.is_none() && !self.requests.slots.get(slot).and_then(Option::as_deref).is_some_and(fetches) {
            return Some((entry, None));
        }
        let head = message.and_then(|message| whole(&message, &[]));
        let is_registered = message.is_some_and(|message| message.option(number::OBSERVE).is_some());
        let mut pending = self.requests.take(slot)?;
        if let Some(place) = pending.outer.iter().position(|outer| outer.under_way == exchange) {
            let outer = pending.outer.swap_remove(place);
            return self.block_came(now, entry, (slot, pending), outer);
        }
        // What comes after it on the same token takes its place.
        if let Some(place) = pending.outer.iter().position(|outer| outer.of == exchange) {
            let before = pending.outer.swap_remove(place);
            self.cancel_exchange(now, before.under_way);
            if matches!(entry.kind, OutputKind::AdditionalResponse { .. }) {
                entry.kind = before.kind();
            }
        }
        let Some(head) = head else {
            self.requests.put_back(slot, pending);
            return Some((entry, None));
        };
        let exchanged = match entry.kind {
            OutputKind::Response { sample, copies, .. } => Some(Exchanged { sample, copies }),
            _ => None,
        };
        let registers = pending.registers || pending.renewal == Some(exchange);
        let outer = OuterResponse {
            of: exchange,
            exchanged,
            is_subscription: exchanged.is_none() || (registers && is_registered),
            under_way: exchange,
            head,
            download: Download::new(None, MAX_UNFRAGMENTED),
        };
        self.block_came(now, entry, (slot, pending), outer)
    }

    /// A block of a response came, or none.
    fn block_came(
        &mut self,
        now: Instant,
        mut entry: Entry<L::Peer>,
        (slot, mut pending): (u32, Box<PendingRequest<L::Peer>>),
        mut outer: OuterResponse,
    ) -> PutTogether<L::Peer> {
        if outer.under_way != outer.of {
            self.exchange_ended(now, outer.under_way);
        }
        let next = match (entry.kind, self.layer.message(&entry)) {
            (OutputKind::Failed { why, .. }, _) => Err(RequestFailure::Exchange(why)),
            (_, Some(message)) => outer.take(&message, &Read::of(&message, self.layer.room())),
            (_, None) => Err(RequestFailure::BadBlock),
        };
        let asked = match next {
            Ok(Some(block)) => self.ask_for_block(now, (slot, &mut pending), &mut outer, block),
            Ok(None) => {
                self.requests.put_back(slot, pending);
                // It may be nobody's by now.
                self.owners.get(outer.of)?;
                entry.kind = outer.kind();
                return Some((entry, Some(outer.into_message())));
            }
            Err(why) => Err(why),
        };
        let failed = asked.err().map(|why| (why, outer.of, outer.exchanged));
        if failed.is_none() {
            pending.outer.push(outer);
        }
        self.requests.put_back(slot, pending);
        // An observation outlives what is wrong with a notification (RFC 8613 §8.4.2).
        if let Some((why, of, Some(exchanged))) = failed {
            self.request_failed(now, of, why, exchanged.copies);
        }
        None
    }

    /// A request leaves as it left before, but for the block of its response that it asks for.
    fn ask_for_block(
        &mut self,
        now: Instant,
        (slot, pending): (u32, &mut PendingRequest<L::Peer>),
        outer: &mut OuterResponse,
        block: Block,
    ) -> Result<(), RequestFailure> {
        let held = self.waiting_bytes().saturating_add(pending.memory()).saturating_add(outer.memory());
        if held > self.config.limits.bytes {
            return Err(RequestFailure::OutOfBytes);
        }
        let gone = RequestFailure::Protection(ResponseFault::NotNew);
        let written = self.layer.protection().and_then(|protection| protection.written(outer.of)).ok_or(gone)?;
        let request = Message::parse(&written).map_err(|_| gone)?;
        let block2 = block.value();
        let options = request.options().filter(|option| option.number != number::OBSERVE);
        let options = options.map(|option| (option.number, option.value));
        let mut options: Vec<_> = options.chain([(number::BLOCK2, block2.as_bytes())]).collect();
        sort(&mut options);
        let next = pending.as_written(request.code, &options, request.payload());
        let exchange = self.layer.request_as_written(now, pending.to, &next).map_err(Into::<RequestFailure>::into)?;
        if !outer.is_subscription {
            if let Some(protection) = self.layer.protection_mut() {
                protection.rename(outer.of, exchange);
            }
            self.cancel_exchange(now, outer.of);
            let place = if pending.renewal == Some(outer.of) { &mut pending.renewal } else { &mut pending.exchange };
            *place = Some(exchange);
            outer.of = exchange;
        }
        outer.under_way = exchange;
        self.owners.set(exchange, Owner::Request(slot));
        Ok(())
    }

    /// A protected request is whole. It is handed up once its protection is off.
    pub(super) fn request_is_whole(
        &mut self,
        now: Instant,
        entry: Entry<L::Peer>,
        id: RequestId,
        pending: &Pending<L::Peer>,
        body: Option<&[u8]>,
    ) {
        let Some(message) = self.layer.message(&entry).sure("message of a request") else { return };
        let (length, bytes) = (message.length(), whole(&message, body.unwrap_or(message.payload())));
        let Some(message) = bytes.as_deref().and_then(|bytes| Message::parse(bytes).ok()) else {
            return self.layer.drop_request(now, id);
        };
        let taken = self.layer.unprotect(&entry, Some(&message));
        if !taken.goes_on(now, self, &entry) {
            return;
        }
        let Pending { from: peer, key, asked, block1, block2, .. } = *pending;
        let protection = self.layer.protection_mut().filter(|protection| protection.context_of(id).is_some());
        let Some(protection) = protection else {
            // It has the ID of another's context by chance.
            return self.respond_plainly(now, id, Code::BAD_REQUEST, &[], &[]);
        };
        protection.cut(id, Cut { peer, key, asked, block1, block2 });
        self.request_came(now, entry, id, Form::Whole(length));
    }

    /// Keeps the protected answer of which a block has just left.
    pub(super) fn keep_cut(&mut self, now: Instant) {
        if !parts::OSCORE || !parts::SERVE_BLOCKS {
            return;
        }
        let cut = self.layer.protection_mut().and_then(|protection| protection.take_cut());
        let Some((Cut { peer, key, asked, block1, block2 }, bytes)) = cut else { return };
        let Some(message) = Message::parse(&bytes).ok().sure("message that was protected") else { return };
        let size = block2.map_or(BlockSize::B1024, |block| block.size.min(BlockSize::B1024));
        let is_long = block2.is_some() && message.payload().len() > size.bytes() as usize;
        if !is_long && (block1.is_none() || L::IS_RELIABLE) {
            return;
        }
        let options = message.options().filter(|option| option.number != number::OBSERVE);
        let options: Vec<_> = options.map(|option| (option.number, option.value)).collect();
        let answer = Answer::new(message.code, &options).with_body(message.payload());
        let cut = representation::Cut::of(size);
        let key = Key { peer, request: key };
        self.keep(now, (key, asked), &Representation { answer: &answer, cut, etag: None, echo: None });
    }
}

//! Bodies that are never whole in memory: of each request block by block to its handler, of each answer block by block from
//! what it is read from. What leaves and what comes is a message of its own each time (RFC 7959); here is kept what belongs
//! together.

mod downloads;
mod uploads;

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
};

use bytes::Bytes;
use millpond_coap::{
    block::{Block, BlockSize},
    message::{Code, Opt, is_cache_key, number},
};

use millpond_control::Instant;

use super::{Action, Dispatcher, PendingRequest, answering::is_unwanted};
use crate::{PeerIdentity, Request, Response, server::RequestBody};
use downloads::Download;
pub(super) use downloads::cut;
use uploads::Upload;

/// Streams that are over and whose last block may come, or be asked for, once more, or whose handlers answered between two
/// blocks; and bytes that they hold together, unless one alone holds more.
const MOST_OVER: usize = 256;
const MOST_BYTES_OVER: usize = 1 << 20;
/// Bytes of a message over a connection beside its payload.
pub(super) const OVERHEAD: usize = 256;
/// Bytes of a block over a connection that carries several in a message.
const MOST_AT_ONCE: usize = 16 << 10;

/// Which stream: whose, and of what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    peer: SocketAddr,
    key: Arc<[u8]>,
    /// So much of the key are options; the rest is the body of a FETCH.
    options: usize,
    identity: Option<Arc<PeerIdentity>>,
}

impl Name {
    /// Of a request's body, or else of what it asks for. That it was cut, and how, makes no difference.
    fn of(request: &Request, of_body: bool) -> Self {
        let mut key = vec![u8::from(request.transport().is_secure()), request.method().to_byte()];
        for Opt { number, value } in request.written() {
            let is_key = match number {
                number::REQUEST_TAG | number::CONTENT_FORMAT => of_body,
                _ => is_cache_key(number),
            };
            if is_key {
                key.extend_from_slice(&number.to_be_bytes());
                key.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
                key.extend_from_slice(value);
            }
        }
        let options = key.len();
        if !of_body && request.method() == Code::FETCH {
            // What it asks for (RFC 8132 §2).
            key.extend_from_slice(request.payload());
        }
        Self { peer: request.peer(), key: key.into(), options, identity: request.shared_identity() }
    }

    /// The other one has the same options, and a body that this one need not repeat: it came before.
    fn goes_on_with(&self, other: &Self) -> bool {
        let same = (self.peer, self.options, &self.identity) == (other.peer, other.options, &other.identity);
        same && self.key.len() == self.options && other.key.starts_with(&self.key)
    }
}

/// What a request of a resource that streams says about blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    pub(super) block1: Option<Block>,
    pub(super) block2: Option<Block>,
    /// Blocks in which the answer leaves, and the bytes of one.
    size: BlockSize,
    pub(super) length: usize,
    /// Its sender takes blocks at all.
    pub(super) may_cut: bool,
}

/// How much a message to a peer over a connection may carry, and whether it takes blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: usize,
    pub(crate) may_cut: bool,
}

impl Pieces {
    /// From the options of a request; `None` if they are none. `room` over a connection, else the longest blocks.
    pub(super) fn of(request: &Request, longest: usize, room: Option<Room>) -> Option<Self> {
        let bert = room.is_some();
        let read = |number| request.value(number).map(|value| Block::read(value, bert)).transpose().ok();
        let (block1, block2) = (read(number::BLOCK1)?, read(number::BLOCK2)?);
        let pending = block2.map(|block| block.size);
        let (size, length, may_cut) = match room {
            None => {
                let size = pending.map_or(longest, |size| longest.min(size.bytes() as usize));
                (BlockSize::at_most(size), size, true)
            }
            Some(Room { bytes, may_cut }) => {
                let room = bytes.saturating_sub(OVERHEAD);
                let several = room.min(MOST_AT_ONCE) >> 10 << 10;
                match pending {
                    _ if !may_cut => (BlockSize::B1024, room, false),
                    Some(size) if size.is_bert() && several > 0 => (size, several, true),
                    pending => {
                        let size = BlockSize::at_most(room).min(pending.unwrap_or(BlockSize::B1024));
                        (size, size.bytes() as usize, true)
                    }
                }
            }
        };
        Some(Self { block1, block2, size, length, may_cut })
    }

    /// Where the part begins that is asked for.
    pub(super) fn offset(&self) -> usize {
        self.block2.map_or(0, |block| usize::try_from(block.offset()).unwrap_or(usize::MAX))
    }
}

/// What tasks of a stream tell the dispatcher.
#[derive(Debug)]
pub(crate) enum Step {
    /// The handler has taken what came.
    Taken,
    /// The handler has answered.
    Answered(Response),
    /// What was asked for was read, and whether more follows.
    Read(Bytes, bool),
    /// It cannot be read, and why.
    Broken(String),
    /// What is asked for lies behind its end.
    PastEnd,
    /// Nobody asked for anything any more.
    Over,
}

/// All streams of a dispatcher.
#[derive(Default, Debug)]
pub(super) struct Streams {
    uploads: BTreeMap<Name, Upload>,
    downloads: BTreeMap<Name, Download>,
    /// The oldest first.
    over: VecDeque<(Name, u64)>,
    made: u64,
    /// Over a connection nothing comes twice.
    is_reliable: bool,
}

impl Streams {
    fn number(&mut self) -> u64 {
        self.made = self.made.wrapping_add(1);
        self.made
    }

    /// Bytes held, about; a message that waits counts as long as it came.
    pub(super) fn memory(&self) -> usize {
        let uploads = self.uploads.iter().map(|(name, upload)| name.key.len() + upload.memory());
        let downloads = self.downloads.iter().map(|(name, download)| name.key.len() + download.memory());
        uploads.sum::<usize>() + downloads.sum::<usize>() + self.over.capacity() * size_of::<(Name, u64)>()
    }

    /// A stream is over. What was said last is known for a while.
    fn is_over(&mut self, name: Name, number: u64) {
        if self.is_reliable {
            return self.remove(&name, number);
        }
        self.may_go(name, number);
    }

    /// A stream waits for nobody but its client, who may be gone: it makes room for others.
    fn may_go(&mut self, name: Name, number: u64) {
        self.over.push_back((name, number));
        while self.over.len() > 1 && (self.over.len() > MOST_OVER || self.bytes_over() > MOST_BYTES_OVER) {
            if let Some((name, number)) = self.over.pop_front() {
                self.remove(&name, number);
            }
        }
    }

    fn bytes_over(&self) -> usize {
        let uploads = self.over.iter().filter_map(|(name, _)| self.uploads.get(name));
        uploads.map(Upload::memory).sum()
    }

    fn remove(&mut self, name: &Name, number: u64) {
        if self.uploads.get(name).is_some_and(|upload| upload.number == number) {
            self.uploads.remove(name);
        }
        if self.downloads.get(name).is_some_and(|download| download.number == number) {
            self.downloads.remove(name);
        }
    }
}

impl Dispatcher {
    /// What a request is to its stream. That which begins one is given back, with the block by which its body begins; the others
    /// are dealt with. If the answer does not stream it is cut as any other.
    pub(super) fn sort(
        &mut self,
        now: Instant,
        mut pending: PendingRequest,
        room: Option<Room>,
        is_answer_streamed: bool,
    ) -> Option<(PendingRequest, Option<Block>)> {
        let Some(pieces) = Pieces::of(&pending.request, self.limits.block, room) else {
            self.say(&pending, Response::bad_request("a block option that is none"));
            return None;
        };
        pending.pieces = is_answer_streamed.then_some(pieces);
        pending.wants_to_observe = false;
        self.streams.is_reliable = room.is_some();
        match (pieces.block1, pieces.block2) {
            (Some(block), _) if block.number > 0 => self.next_of_upload(now, pending, block),
            (None, Some(block)) if block.number > 0 => {
                return self.next_of_download(pending, pieces).map(|pending| (pending, None));
            }
            (None, _) => {
                let body = RequestBody::whole(pending.request.payload().clone());
                pending.request.give_body(body);
                return Some((pending, None));
            }
            (block, _) => return Some((pending, block)),
        }
        None
    }

    /// A request may be for a later block of an answer that streams although its resource does not. If not it is given back.
    pub(super) fn go_on_streaming(&mut self, mut pending: PendingRequest) -> Option<PendingRequest> {
        if self.streams.downloads.is_empty() || !pending.request.may_stream() {
            return Some(pending);
        }
        let pieces = pending.request.fit().and_then(|fit| fit.pieces(&pending.request));
        let Some(pieces) = pieces.filter(|pieces| pieces.offset() > 0) else { return Some(pending) };
        pending.pieces = Some(pieces);
        self.next_of_download(pending, pieces).map(|pending| PendingRequest { pieces: None, ..pending })
    }

    /// A task of a stream told something.
    pub(super) fn step(&mut self, now: Instant, name: Name, number: u64, step: Step) {
        match step {
            Step::Taken => self.taken(now, &name, number),
            Step::Answered(response) => self.upload_answered(now, &name, number, response),
            Step::Read(..) | Step::Broken(_) | Step::PastEnd | Step::Over => self.has_read(now, &name, number, step),
        }
    }

    /// Another request took the place of this one, which waited.
    fn answer_waiting<T>(&mut self, waiting: Option<(PendingRequest, T)>) {
        if let Some((pending, _)) = waiting {
            self.say(&pending, about(Code::REQUEST_ENTITY_INCOMPLETE, None));
        }
    }

    /// Answers with this message as it is, if it is wanted. What has a body go on is, or that would go no further.
    pub(super) fn say(&mut self, pending: &PendingRequest, response: Response) {
        let is_unwanted = response.code() != Code::CONTINUE && is_unwanted(&pending.request, response.code());
        self.actions.push_back(match is_unwanted {
            true => Action::SuppressResponse(pending.id),
            false => Action::Piece(pending.id, response),
        });
    }
}

/// A response without body, with this Block1.
fn about(code: Code, block1: Option<Block>) -> Response {
    let response = Response::new(code);
    match block1 {
        Some(block) => response.with_option(number::BLOCK1, Bytes::copy_from_slice(block.value().as_bytes())),
        None => response,
    }
}

//! The other side's requests with their bodies, and our answers, from whole bodies to blocks.

use alloc::{collections::VecDeque, vec::Vec};

use millpond_control::Instant;

use super::{
    super::{Connection, RequestId as Asked, Settings, StreamRefused},
    Answer, Config, Event, ObserverId, Refused, RequestId,
    came::Frame,
    kept::{Kept, Representation},
};
use crate::{
    block::{
        Assemblies, AssemblyLimits, Block, BlockSize, Verdict,
        robust::{
            REQUEST_TAG,
            draft::{Draft, OwnedOptions, memory_of, own_options},
        },
        slice_of_blocks,
    },
    message::{Code, Kind, Opt, WriteError, is_cache_key, is_of_transfer, number},
    transfer::InPieces,
};

/// Bytes that may be held of requests and observers, however little may be kept of representations.
const LEAST_BOOKS: usize = 65_536;

/// Bytes of a block-wise answer beside payload and options.
const OVERHEAD: usize = 48;

#[derive(Debug)]
pub(super) struct Serving {
    config: Config,
    /// Several blocks may come in a message.
    bert: bool,
    assemblies: Assemblies<Vec<u8>>,
    kept: Kept,
    owed: Vec<Owed>,
    observers: Vec<Observer>,
    in_pieces: InPieces,
    made: u64,
}

/// A request that the application has and has not answered.
#[derive(Debug)]
struct Owed {
    id: RequestId,
    asked: Asked,
    key: Vec<u8>,
    wish: Wish,
    observe: bool,
}

/// What a request says about the blocks of its answer.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    /// Block1 of the answer.
    received: Option<Block>,
    /// Block2 of the request.
    block: Option<Block>,
    /// The length of the body is asked for.
    total: bool,
}

#[derive(Debug)]
struct Observer {
    id: ObserverId,
    asked: Asked,
    key: Vec<u8>,
    sequence: u32,
    wish: Wish,
    /// The newest state, if it has not left.
    waiting: Option<(Code, OwnedOptions, Vec<u8>)>,
}

impl Serving {
    pub(super) fn new(config: Config, bert: bool) -> Self {
        let limits = AssemblyLimits {
            body: config.body,
            bodies: config.bodies,
            lifetime: config.lifetime,
            size: if bert { BlockSize::BERT } else { BlockSize::B1024 },
        };
        Self {
            config,
            bert,
            assemblies: Assemblies::new(limits),
            kept: Kept::new(config.kept, config.lifetime),
            owed: Vec::new(),
            observers: Vec::new(),
            in_pieces: InPieces::default(),
            made: 0,
        }
    }

    /// From now on these come in pieces.
    pub(super) fn take_pieces(&mut self, in_pieces: InPieces) {
        self.in_pieces = in_pieces;
    }

    /// A request came. What the application is to learn is appended to `events`.
    pub(super) fn asked(
        &mut self,
        now: Instant,
        asked: Asked,
        frame: Frame,
        connection: &mut Connection,
        events: &mut VecDeque<Event>,
    ) {
        let plain = |code| Draft::new(Kind::Confirmable, code, &Vec::new());
        if frame.refused.is_some() {
            return reply(now, connection, asked, &plain(Code::BAD_OPTION));
        }
        let (sent, wanted) = (frame.block(number::BLOCK1, self.bert), frame.block(number::BLOCK2, self.bert));
        let (Ok(sent), Ok(block)) = (sent, wanted) else {
            return reply(now, connection, asked, &plain(Code::BAD_REQUEST));
        };
        let mut wish = Wish { received: None, block, total: frame.uint(number::SIZE2) == Some(0) };
        let in_pieces = self.in_pieces.has(frame.code, frame.options().map(|(number, value)| Opt { number, value }));
        if in_pieces {
            wish = Wish::default();
        }
        let body = match sent.filter(|_| !in_pieces) {
            None => frame.payload.clone(),
            Some(block) => {
                let total = frame.uint(number::SIZE1);
                let verdict = self.assemblies.take(now, key_of(&frame, true), block, total, &frame.payload);
                let answer = match verdict {
                    Verdict::Whole(body, block) => {
                        wish.received = Some(block);
                        Ok(body)
                    }
                    Verdict::Continue(block) => Err(plain(Code::CONTINUE).with_block(number::BLOCK1, block)),
                    // Nothing is delivered twice by a stream: who sends it again begins in the middle.
                    Verdict::Incomplete | Verdict::Repeated(_) => Err(plain(Code::REQUEST_ENTITY_INCOMPLETE)),
                    Verdict::TooLarge(most) => {
                        Err(plain(Code::REQUEST_ENTITY_TOO_LARGE).with_uint(number::SIZE1, most))
                    }
                    Verdict::WrongLength => Err(plain(Code::BAD_REQUEST)),
                };
                match answer {
                    Ok(body) => body,
                    Err(draft) => return reply(now, connection, asked, &draft),
                }
            }
        };
        let key = key_of(&frame, false);
        if let Some(block) = block.filter(|block| block.number > 0 && sent.is_none())
            && !in_pieces
            && let Some(kept) = self.kept.find(now, &key)
        {
            let cut = cut(kept, Wish { block: Some(block), ..wish }, connection.settings());
            return reply(now, connection, asked, &cut.map_or_else(|| plain(Code::BAD_REQUEST), |(draft, _)| draft));
        }
        if self.on_the_books().saturating_add(key.len()) > self.config.kept.max(LEAST_BOOKS) {
            return reply(now, connection, asked, &plain(Code::SERVICE_UNAVAILABLE));
        }
        self.made = self.made.wrapping_add(1);
        let id = RequestId(self.made);
        // A later block is never observed by itself (RFC 7959 §2.6).
        let observe = frame.uint(number::OBSERVE) == Some(0)
            && !in_pieces
            && matches!(frame.code, Code::GET | Code::FETCH)
            && block.is_none_or(|block| block.number == 0);
        let options = own_options(frame.options(), |number| !in_pieces && is_of_transfer(number));
        self.owed.push(Owed { id, asked, key, wish, observe });
        events.push_back(Event::Request { id, code: frame.code, options, body, wants_to_observe: observe });
    }

    /// The application answers. With `observe`, it grants that as well.
    ///
    /// # Errors
    /// What cannot be sent. The request can still be answered then.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        id: RequestId,
        answer: &Answer<'_>,
        observe: bool,
        connection: &mut Connection,
    ) -> Result<Option<ObserverId>, Refused> {
        let place = self.owed.iter().position(|owed| owed.id == id).ok_or(Refused::UnknownRequest)?;
        let owed = self.owed.get(place).ok_or(Refused::UnknownRequest)?;
        if answer.is_piece {
            let options = own_options(answer.options.iter().copied(), |_| false);
            let draft = Draft::new(Kind::Confirmable, answer.code, &options).with_payload(answer.body);
            draft.lend(|message| connection.respond(now, owed.asked, message))?;
            self.owed.remove(place);
            return Ok(None);
        }
        super::check(answer.options)?;
        let observes =
            observe && owed.observe && answer.code.class() == 2 && self.observers.len() < self.config.observers;
        let sequence = observes.then_some(1);
        let (asked, key, wish) = (owed.asked, owed.key.clone(), owed.wish);
        self.write(now, asked, &key, wish, answer, sequence, connection)?;
        self.owed.remove(place);
        if !observes {
            return Ok(None);
        }
        let id = ObserverId(id.0);
        let wish = Wish { block: wish.block, ..Wish::default() };
        self.observers.push(Observer { id, asked, key, sequence: 1, wish, waiting: None });
        Ok(Some(id))
    }

    /// The state has changed: what waits for this observer is replaced by it.
    ///
    /// # Errors
    /// The observer is gone, or an option is the host's.
    pub(super) fn notify(&mut self, id: ObserverId, answer: &Answer<'_>) -> Result<(), Refused> {
        super::check(answer.options)?;
        if !answer.code.is_response() {
            return Err(StreamRefused::Code(answer.code).into());
        }
        if answer.body.len() > self.config.body {
            return Err(Refused::TooLarge { length: answer.body.len(), limit: self.config.body });
        }
        let observer = self.observers.iter_mut().find(|observer| observer.id == id).ok_or(Refused::UnknownObserver)?;
        let options = own_options(answer.options.iter().copied(), |_| false);
        observer.waiting = Some((answer.code, options, answer.body.to_vec()));
        Ok(())
    }

    /// Sends one of the notifications that wait. True if one left.
    pub(super) fn send(&mut self, now: Instant, connection: &mut Connection) -> bool {
        let waiting = |observer: &&mut Observer| observer.waiting.is_some();
        let Some(observer) = self.observers.iter_mut().find(waiting) else { return false };
        let Some((code, options, body)) = observer.waiting.take() else { return false };
        observer.sequence = observer.sequence.wrapping_add(1) & 0xff_ffff;
        let (id, asked, key, wish) = (observer.id, observer.asked, observer.key.clone(), observer.wish);
        let sequence = (code.class() == 2).then_some(observer.sequence);
        let options: Vec<(u16, &[u8])> = options.iter().map(|(number, value)| (*number, value.as_slice())).collect();
        let answer = Answer::new(code, &options).with_body(&body);
        let sent = self.write(now, asked, &key, wish, &answer, sequence, connection);
        if sequence.is_none() || sent.is_err() {
            self.observers.retain(|observer| observer.id != id);
        }
        if sent.is_err() {
            // Nothing that it takes can be said: the observation ends with the shortest of errors.
            reply(now, connection, asked, &Draft::new(Kind::Confirmable, Code::INTERNAL_SERVER_ERROR, &Vec::new()));
        }
        true
    }

    /// The other side no longer observes.
    pub(super) fn unobserved(&mut self, asked: Asked) -> Option<ObserverId> {
        let place = self.observers.iter().position(|observer| observer.asked == asked)?;
        Some(self.observers.remove(place).id)
    }

    /// Forgets an observer: it gets one last answer, which says nothing. False if it was gone.
    pub(super) fn dismiss(&mut self, now: Instant, id: ObserverId, connection: &mut Connection) -> bool {
        let Some(place) = self.observers.iter().position(|observer| observer.id == id) else { return false };
        let observer = self.observers.remove(place);
        reply(now, connection, observer.asked, &Draft::new(Kind::Confirmable, Code::SERVICE_UNAVAILABLE, &Vec::new()));
        true
    }

    pub(super) fn observers(&self) -> usize {
        self.observers.len()
    }

    /// The connection has ended.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.config, self.bert);
    }

    /// Drops what was kept for long enough.
    pub(super) fn expire(&mut self, now: Instant) {
        self.assemblies.expire(now);
        self.kept.expire(now);
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.assemblies.next_expiry().into_iter().chain(self.kept.next_expiry()).min()
    }

    /// Bytes held of requests that were not answered and of observers.
    fn on_the_books(&self) -> usize {
        let owed = self.owed.capacity().saturating_mul(size_of::<Owed>());
        let observers = self.observers.capacity().saturating_mul(size_of::<Observer>());
        let keys = self.owed.iter().map(|owed| &owed.key).chain(self.observers.iter().map(|observer| &observer.key));
        let keys = keys.fold(0_usize, |sum, key| sum.saturating_add(key.capacity()));
        owed.saturating_add(observers).saturating_add(keys)
    }

    pub(super) fn memory(&self) -> usize {
        let waiting = self.observers.iter().filter_map(|observer| observer.waiting.as_ref());
        let waiting = waiting.fold(0_usize, |sum, (_, options, body)| {
            sum.saturating_add(body.capacity()).saturating_add(memory_of(options))
        });
        let collected =
            self.assemblies.keys().fold(self.assemblies.memory(), |sum, key| sum.saturating_add(key.capacity()));
        self.on_the_books().saturating_add(waiting).saturating_add(collected).saturating_add(self.kept.memory())
    }

    /// Writes an answer whole if it fits and nobody asked for blocks, else its block that was asked for.
    #[allow(clippy::too_many_arguments, reason = "an answer is told by all of these")]
    fn write(
        &mut self,
        now: Instant,
        asked: Asked,
        key: &[u8],
        wish: Wish,
        answer: &Answer<'_>,
        sequence: Option<u32>,
        connection: &mut Connection,
    ) -> Result<(), Refused> {
        let options = own_options(answer.options.iter().copied(), |_| false);
        let with = |mut draft: Draft| {
            if let Some(sequence) = sequence {
                draft = draft.with_uint(number::OBSERVE, sequence);
            }
            if let Some(block) = wish.received {
                draft = draft.with_block(number::BLOCK1, block);
            }
            draft
        };
        if wish.block.is_none() {
            let draft = with(Draft::new(Kind::Confirmable, answer.code, &options).with_payload(answer.body));
            match draft.lend(|message| connection.respond(now, asked, message)) {
                Ok(()) => return Ok(()),
                Err(StreamRefused::Message(WriteError::OverLimit { .. })) if answer.body.is_empty() => {}
                Err(StreamRefused::Message(WriteError::OverLimit { .. })) if connection.settings().block_wise => {}
                Err(StreamRefused::Message(WriteError::OverLimit { .. })) => {
                    return Err(Refused::TooLongForPeer { limit: connection.settings().max_message_size });
                }
                Err(why) => return Err(why.into()),
            }
        }
        let representation = Representation::of(key, answer.code, options, answer.body, self.etag());
        let Some((draft, is_part)) = cut(&representation, wish, connection.settings()) else {
            let draft = Draft::new(Kind::Confirmable, Code::BAD_REQUEST, &Vec::new());
            return draft.lend(|message| connection.respond(now, asked, message)).map_err(Into::into);
        };
        with(draft).lend(|message| connection.respond(now, asked, message))?;
        if answer.code.class() == 2 && is_part {
            self.kept.keep(now, representation);
        }
        Ok(())
    }

    fn etag(&mut self) -> Vec<u8> {
        self.made = self.made.wrapping_add(1);
        let bytes = self.made.to_be_bytes();
        bytes.get(4..).unwrap_or_default().to_vec()
    }
}

/// The block of a representation that is wished for, and whether there are others; `None` behind its end.
fn cut(representation: &Representation, wish: Wish, settings: Settings) -> Option<(Draft, bool)> {
    let options = representation
        .options
        .iter()
        .fold(OVERHEAD, |sum, (_, value)| sum.saturating_add(value.len()).saturating_add(5));
    let room = (settings.max_message_size as usize).saturating_sub(options);
    let (preferred, blocks) = match room >> 10 {
        blocks if blocks > 0 && settings.bert() => (BlockSize::BERT, u32::try_from(blocks).unwrap_or(u32::MAX)),
        _ => (BlockSize::at_most(room), 1),
    };
    let piece = slice_of_blocks(&representation.body, wish.block, preferred, blocks).ok()?;
    let mut draft =
        Draft::new(Kind::Confirmable, representation.code, &representation.options).with_payload(piece.payload);
    if let Some(block) = piece.block {
        draft = draft.with_block(number::BLOCK2, block);
    }
    let is_part = piece.block.is_some_and(|block| block.more || block.number > 0);
    if is_part {
        draft = draft.with(number::ETAG, &representation.etag);
    }
    Some((if wish.total { draft.with_uint(number::SIZE2, piece.total) } else { draft }, is_part))
}

fn reply(now: Instant, connection: &mut Connection, to: Asked, draft: &Draft) {
    // It fails only where the connection has ended, and then nobody waits for it.
    let _ended = draft.lend(|message| connection.respond(now, to, message));
}

/// What of a request tells one representation from another, or, with `of_body`, one body that is being collected.
fn key_of(frame: &Frame, of_body: bool) -> Vec<u8> {
    let mut key = Vec::new();
    key.push(frame.code.to_byte());
    for (number, value) in frame.options() {
        let is_key = match number {
            REQUEST_TAG | number::CONTENT_FORMAT => of_body,
            _ => is_cache_key(number),
        };
        if is_key {
            key.extend_from_slice(&number.to_be_bytes());
            key.extend_from_slice(&(value.len() as u32).to_be_bytes());
            key.extend_from_slice(value);
        }
    }
    key
}

//! One request of ours with its body, from its first message to its (last) answer.

use alloc::vec::Vec;

use millpond_control::Instant;

use super::{
    super::{Connection, ResponseId, Settings, StreamRefused},
    AskFailure, AskId,
    came::Frame,
};
use crate::{
    block::{
        Answer as UploadAnswer, Block, BlockSize, Download, Next, Part, Upload, UploadError, UploadNext,
        robust::{
            REQUEST_TAG,
            draft::{Draft, OwnedOptions, memory_of, own_options},
        },
    },
    message::{Code, Kind, Token, WriteError, is_of_transfer, number},
};

/// Bytes of a block-wise message beside payload and options: what stands before its options with a token of 8 bytes,
/// and the options of the transfer.
const OVERHEAD: usize = 48;

/// What became of an ask.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It goes on by itself.
    Going,
    /// A whole answer; the flag: further ones may follow.
    Answered {
        code: Code,
        options: OwnedOptions,
        body: Vec<u8>,
        goes_on: bool,
    },
    Failed(AskFailure),
}

#[derive(Debug)]
pub(super) struct Asking {
    pub(super) id: AskId,
    pub(super) deadline: Option<Instant>,
    code: Code,
    options: OwnedOptions,
    body: Vec<u8>,
    /// Request-Tag, should the body leave in blocks.
    tag: Vec<u8>,
    early: Option<BlockSize>,
    observe: bool,
    longest: usize,
    stage: Stage,
    /// The request under way that is to bring the next part.
    under_way: Option<ResponseId>,
    /// The request that stays open for what is observed, and its token.
    observation: Option<(ResponseId, Token)>,
    /// That of the first message, if it was given.
    token: Option<Token>,
    /// The token of all blocks of the body: some servers put a body together by it.
    upload_token: Option<Token>,
    /// Code and options of the representation that is being fetched.
    first: Option<(Code, OwnedOptions)>,
}

#[derive(Debug)]
enum Stage {
    /// The whole request is to leave in one message, if it fits.
    Whole,
    /// The body leaves in blocks; the flag: several in a message.
    Upload(Upload, bool),
    /// The answer comes in blocks: this one is next.
    Fetch(Download, Block),
    /// Nothing is to leave: an observation waits.
    Rest,
}

/// What an ask is made of.
pub(super) struct Wanted<'a> {
    pub(super) id: AskId,
    pub(super) ask: super::Ask<'a>,
}

impl Asking {
    pub(super) fn new(wanted: &Wanted<'_>) -> Self {
        let ask = &wanted.ask;
        Self {
            id: wanted.id,
            deadline: ask.deadline,
            code: ask.code,
            options: own_options(ask.options.iter().copied(), is_of_transfer),
            body: ask.body.to_vec(),
            tag: crate::message::Uint::new(wanted.id.0 as u32).as_bytes().to_vec(),
            early: ask.early,
            observe: ask.observe,
            longest: ask.longest,
            stage: Stage::Whole,
            under_way: None,
            observation: None,
            token: ask.token,
            upload_token: ask.token,
            first: None,
        }
    }

    pub(super) fn has(&self, request: ResponseId) -> bool {
        self.under_way == Some(request) || self.observation.is_some_and(|(open, _)| open == request)
    }

    /// Requests of it that are open.
    pub(super) fn requests(&self) -> impl Iterator<Item = ResponseId> + use<> {
        self.under_way.into_iter().chain(self.observation.map(|(open, _)| open))
    }

    /// The request that asks the other side not to notify any more, with its token.
    pub(super) fn deregistration(&self) -> Option<(Token, Draft)> {
        let (_, token) = self.observation?;
        let draft = Draft::new(Kind::Confirmable, self.code, &self.options).with_payload(&self.body);
        Some((token, draft.with_uint(number::OBSERVE, 1)))
    }

    pub(super) fn memory(&self) -> usize {
        let fetched = match &self.stage {
            Stage::Fetch(download, _) => download.received(),
            _ => 0,
        };
        let first = self.first.as_ref().map_or(0, |(_, options)| memory_of(options));
        let options = memory_of(&self.options).saturating_add(self.tag.capacity()).saturating_add(first);
        self.body.capacity().saturating_add(fetched).saturating_add(options)
    }

    /// Sends what is to be sent, if anything is and the connection takes it. True if something left.
    ///
    /// # Errors
    /// Why it will never leave.
    pub(super) fn send(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        tokens: &mut u32,
    ) -> Result<bool, AskFailure> {
        if self.under_way.is_some() {
            return Ok(false);
        }
        let settings = connection.settings();
        self.keep_to(settings);
        let draft = match &mut self.stage {
            Stage::Rest => return Ok(false),
            Stage::Whole => self.whole(),
            Stage::Fetch(_, block) => {
                let draft = Draft::new(Kind::Confirmable, self.code, &self.options);
                let draft = if self.body.is_empty() { draft } else { draft.without(number::CONTENT_FORMAT) };
                draft.with_block(number::BLOCK2, *block)
            }
            Stage::Upload(upload, _) => {
                let piece = upload.piece(&self.body)?;
                let mut draft = Draft::new(Kind::Confirmable, self.code, &self.options).with_payload(piece.payload);
                if let Some(block) = piece.block {
                    draft = draft.with_block(number::BLOCK1, block).with(REQUEST_TAG, &self.tag);
                    if block.number == 0 {
                        draft = draft.with_uint(number::SIZE1, piece.total);
                    }
                }
                if piece.block.is_some_and(|block| block.more) { draft } else { self.asking_for_blocks(draft) }
            }
        };
        let is_first = matches!(self.stage, Stage::Whole) && self.observe;
        let token = match &self.stage {
            Stage::Upload(..) => Some(*self.upload_token.get_or_insert_with(|| own_token(tokens))),
            Stage::Whole => self.token.or_else(|| is_first.then(|| own_token(tokens))),
            _ => None,
        };
        let sent = draft.lend(|message| connection.request(now, &crate::Outgoing { token, ..*message }));
        match sent {
            Ok(request) => {
                self.under_way = Some(request);
                if let Some(token) = token.filter(|_| is_first) {
                    self.observation = Some((request, token));
                }
                Ok(true)
            }
            Err(StreamRefused::TooManyRequests { .. } | StreamRefused::TokenInUse) => Ok(false),
            Err(StreamRefused::Message(WriteError::OverLimit { .. }))
                if matches!(self.stage, Stage::Whole) && (!connection.is_settled() || self.may_be_cut(settings)) =>
            {
                // What the other side takes is not known before its first settings came.
                if connection.is_settled() {
                    self.stage = self.upload(settings);
                    return self.send(now, connection, tokens);
                }
                Ok(false)
            }
            Err(why) => Err(why.into()),
        }
    }

    /// The whole request in one message.
    fn whole(&self) -> Draft {
        let draft = Draft::new(Kind::Confirmable, self.code, &self.options).with_payload(&self.body);
        let draft = if self.observe { draft.with_uint(number::OBSERVE, 0) } else { draft };
        self.asking_for_blocks(draft)
    }

    fn asking_for_blocks(&self, draft: Draft) -> Draft {
        match self.early {
            Some(size) => draft.with_block(number::BLOCK2, Block { number: 0, more: false, size }),
            None => draft,
        }
    }

    /// Whether the body may leave in blocks. What is observed stays in one request.
    fn may_be_cut(&self, settings: Settings) -> bool {
        settings.block_wise && !self.observe && !self.body.is_empty()
    }

    fn upload(&self, settings: Settings) -> Stage {
        let options =
            self.options.iter().fold(OVERHEAD, |sum, (_, value)| sum.saturating_add(value.len()).saturating_add(5));
        let room = (settings.max_message_size as usize).saturating_sub(options);
        match room >> 10 {
            blocks if blocks > 0 && settings.bert() => Stage::Upload(Upload::of_blocks(self.body.len(), blocks), true),
            _ => Stage::Upload(Upload::new(self.body.len(), BlockSize::at_most(room)), false),
        }
    }

    /// Later settings may take back that several blocks fit a message (RFC 8323 §6).
    fn keep_to(&mut self, settings: Settings) {
        if settings.bert() {
            return;
        }
        match &mut self.stage {
            // From the beginning: what was sent need not be a multiple of anything.
            Stage::Upload(_, true) => self.stage = self.upload(settings),
            Stage::Fetch(download, block) if block.size.is_bert() => {
                download.shrink_to(BlockSize::B1024);
                block.size = BlockSize::B1024;
            }
            _ => {}
        }
        self.early = self.early.map(|size| size.min(BlockSize::B1024));
    }

    /// An answer came to one of its requests. `bert`: we allow several blocks in a message, and so does the other side.
    pub(super) fn answered(
        &mut self,
        request: ResponseId,
        frame: &Frame,
        last: bool,
        (bert, theirs): (bool, bool),
    ) -> Outcome {
        let is_observation = self.observation.is_some_and(|(open, _)| open == request);
        if self.under_way == Some(request) {
            self.under_way = None;
        }
        if is_observation && last {
            // Not observed (any more).
            self.observation = None;
        }
        if let Stage::Upload(upload, _) = &mut self.stage {
            let Ok(block) = frame.block(number::BLOCK1, theirs) else { return Outcome::Failed(AskFailure::BadBlock) };
            let most = frame.uint(number::SIZE1);
            match upload.take(&UploadAnswer { code: frame.code, block, most }) {
                Ok(UploadNext::Send) => return Outcome::Going,
                // The server's own words say more than that it refuses.
                Ok(UploadNext::Done) | Err(UploadError::Refused(_) | UploadError::TooLarge { .. }) => {}
                Err(why) => return Outcome::Failed(why.into()),
            }
        }
        let download = match core::mem::replace(&mut self.stage, Stage::Rest) {
            Stage::Fetch(download, _) if !is_observation => download,
            // Another representation, whatever was being fetched.
            _ => {
                self.first = None;
                Download::new(self.early, self.longest)
            }
        };
        self.take_part(download, frame, bert)
    }

    fn take_part(&mut self, mut download: Download, frame: &Frame, bert: bool) -> Outcome {
        let goes_on = self.observation.is_some();
        let own = || own_options(frame.options(), is_of_transfer);
        if frame.code.class() != 2 {
            let body = frame.payload.clone();
            return Outcome::Answered { code: frame.code, options: own(), body, goes_on };
        }
        let Ok(block) = frame.block(number::BLOCK2, bert) else { return Outcome::Failed(AskFailure::BadBlock) };
        if self.first.is_none() || download.received() == 0 {
            self.first = Some((frame.code, own()));
        }
        let (etag, total) = (frame.option(number::ETAG), frame.uint(number::SIZE2));
        match download.take(&Part { block, etag, total, payload: &frame.payload }) {
            Ok(Next::Ask(block)) => {
                self.stage = Stage::Fetch(download, block);
                Outcome::Going
            }
            Ok(Next::Done) => {
                let (code, options) = self.first.take().unwrap_or((frame.code, Vec::new()));
                Outcome::Answered { code, options, body: download.into_body(), goes_on }
            }
            Err(why) => Outcome::Failed(why.into()),
        }
    }

    /// A newer representation comes: the request for a part of the older one is of no use.
    pub(super) fn abandon_fetch(&mut self, observation: ResponseId) -> Option<ResponseId> {
        let is_newer = self.observation.is_some_and(|(open, _)| open == observation);
        if is_newer && self.under_way != Some(observation) { self.under_way.take() } else { None }
    }
}

/// A token that the connection does not make by itself for a very long time.
fn own_token(made: &mut u32) -> Token {
    *made = made.wrapping_add(1);
    let [_, a, b, c] = made.to_be_bytes();
    Token::new(&[0xff, a, b, c]).unwrap_or_default()
}

//! One request, from its first message to its end.

use alloc::vec::Vec;

use millpond_control::Instant;

use super::{
    ClientRequest, GroupId, Piece, Progress, Refused, RequestFailure, options, options::Read, outer::OuterResponse,
};
use crate::block::{
    Answer, Block, BlockSize, Download, DownloadError, Next, Part, Upload, UploadError, UploadNext, robust::BurstId,
};
use crate::endpoint::{ExchangeId, Outgoing, RetransmitOptions};
use crate::layer::Room;
use crate::message::{Code, Kind, Message, NoResponse, OptionList, Token, Uint, number};
use crate::newest::Newest;
use crate::parts;

/// A request that is not over.
#[derive(Debug)]
pub(super) struct PendingRequest<A> {
    pub(super) to: A,
    kind: Kind,
    code: Code,
    options: OptionList,
    body: Vec<u8>,
    /// It is about one block alone.
    single: Option<Piece>,
    /// As long as the body is on its way.
    upload: Option<Upload>,
    /// The body fits one block, so that each request can carry it.
    is_short: bool,
    /// Over a stream: the body goes whole if that fits, and only then in blocks.
    fits: Option<Fit>,
    download: Download,
    early: Option<BlockSize>,
    wants_total: bool,
    longest: usize,
    total: Option<u32>,
    /// How often the body was fetched anew because it had become shorter.
    restarts: u8,
    /// Block2 of the next request.
    wanted: Option<Block>,
    /// Distinguishes this body from others that are on their way to the same resource (RFC 9175 §3).
    tag: Option<Uint>,
    /// What the server wants sent back with all that follows, to see that this client is where it says (RFC 9175 §2.3).
    echo: Option<Vec<u8>>,
    /// That of the next message, if it is not to be made: one that was given for the first, and then, as long as a body
    /// leaves, that of the block before. RFC 7959 leaves the choice, but there are servers that put a body together by
    /// its token.
    token: Option<Token>,
    /// That of the first message is that of all.
    one_token: bool,
    /// The request under way, apart from a renewal.
    pub(super) exchange: Option<ExchangeId>,
    pub(super) renewal: Option<ExchangeId>,
    /// There is something to be sent.
    pub(super) has_next: bool,
    /// Its first request has left.
    pub(super) has_left: bool,
    /// The next request is to register.
    pub(super) registers: bool,
    pub(super) watch: Option<Watch>,
    /// A notification was taken since the renewal left.
    pub(super) was_notified: bool,
    pub(super) deadline: Option<Instant>,
    /// Of each of its messages.
    retransmit: RetransmitOptions,
    /// Not every response to it is wanted (RFC 7967).
    pub(super) limits_responses: bool,
    /// It is under way in bursts.
    pub(super) burst: Option<BurstId>,
    /// It fetches the rest of an answer to this request to a group.
    pub(super) gathers: Option<GroupId>,
    /// Protected responses that were cut on their way.
    pub(super) outer: Vec<OuterResponse>,
}

/// How the body of a request leaves over a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Whole,
    Cut,
}

/// A registration as an observer that the server has accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) subscription: ExchangeId,
    pub(super) token: Token,
    pub(super) newest: Newest,
    /// When to register again.
    pub(super) renew_at: Instant,
}

/// What a response leads to.
#[derive(Debug)]
pub(super) enum Then {
    /// The next request.
    Send,
    /// The response is whole; its body is the message's if none is given.
    Done(Option<Vec<u8>>),
    Fail(RequestFailure),
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// The next piece of the body, or the next block of the response.
    Next,
    Register,
    Renew(Token),
    Deregister(Token),
}

impl<A> PendingRequest<A> {
    /// A body that has become shorter is fetched anew so many times.
    const RESTARTS: u8 = 4;

    pub(super) fn new(to: A, request: &ClientRequest<'_>, tag: Option<u32>, is_stream: bool) -> Result<Self, Refused> {
        let is_observable = matches!(request.code, Code::GET | Code::FETCH);
        if request.observe && !is_observable {
            return Err(Refused::NotObservable(request.code));
        }
        // What is observed stays in one request.
        let is_short = request.body.len() <= request.upload.bytes() as usize || (is_stream && request.observe);
        if request.observe && !is_short {
            return Err(Refused::LongObservation { length: request.body.len() });
        }
        let limits_responses = NoResponse::of(request.options) != NoResponse::NONE;
        if limits_responses && (request.observe || request.piece.is_some() || !(is_short || is_stream)) {
            return Err(Refused::NeedsResponses);
        }
        let download = Download::new(request.early, request.longest);
        Ok(Self {
            to,
            kind: request.kind,
            code: request.code,
            options: options::keep(request.options)?,
            body: request.body.to_vec(),
            single: request.piece,
            upload: (parts::BLOCK && !request.body.is_empty() && request.piece.is_none()).then(|| match is_stream {
                true => Upload::of_blocks(request.body.len(), usize::MAX),
                false => Upload::new(request.body.len(), request.upload),
            }),
            is_short,
            fits: is_stream.then_some(Fit::Whole),
            wanted: download.first(),
            download,
            early: request.early,
            wants_total: request.wants_total,
            longest: request.longest,
            total: None,
            restarts: 0,
            tag: request.piece.map_or(tag.filter(|_| !is_short), |piece| piece.tag).map(Uint::new),
            echo: None,
            token: request.token,
            one_token: request.one_token,
            exchange: None,
            renewal: None,
            has_next: true,
            has_left: false,
            registers: request.observe,
            watch: None,
            was_notified: false,
            deadline: request.deadline,
            retransmit: request.retransmit,
            limits_responses,
            burst: None,
            gathers: None,
            outer: Vec::new(),
        })
    }

    /// Bytes held beside this value.
    pub(super) fn memory(&self) -> usize {
        let echo = self.echo.as_ref().map_or(0, Vec::capacity);
        let held = self.options.memory().saturating_add(self.body.capacity()).saturating_add(echo);
        let outer = self.outer.iter().fold(0_usize, |sum, outer| sum.saturating_add(outer.memory()));
        held.saturating_add(self.download.received()).saturating_add(outer)
    }

    /// Whether the caller gave it an option with this number.
    pub(super) fn has(&self, number: u16) -> bool {
        self.options.get(number).is_some()
    }

    /// A body of several blocks leaves.
    pub(super) fn is_uploading(&self) -> bool {
        self.upload.is_some() && !self.is_short
    }

    /// It left confirmably, as far as it was asked to.
    pub(super) fn is_confirmable(&self) -> bool {
        self.kind == Kind::Confirmable
    }

    pub(super) fn progress(&self) -> Progress {
        let sent = self.upload.as_ref().map_or(self.body.len(), Upload::sent);
        Progress { sent, received: self.download.received(), total: self.total }
    }

    /// Over a stream: the body leaves in blocks, because it does not fit a message. False if that is so already, or cannot be.
    pub(super) fn cut(&mut self, room: &Room) -> bool {
        let may_be_cut = room.block_wise && self.fits == Some(Fit::Whole) && !self.registers && !self.limits_responses;
        let Some(upload) = self.upload.as_mut().filter(|_| parts::BLOCK && may_be_cut) else { return false };
        *upload = room.upload(self.body.len(), self.options.len());
        self.fits = Some(Fit::Cut);
        true
    }

    /// Over a stream: whether it is about several blocks in one message, which the other side has to allow first (RFC 8323 §6).
    pub(super) fn is_several_blocks(&self) -> bool {
        let blocks = self.single.map_or([None; 2], |single| [single.block1, single.block2]);
        blocks.into_iter().flatten().any(|block| block.size.is_bert())
    }

    /// Over a stream: later settings may take back how much fits a message, and that several blocks do (RFC 8323 §5.3, §6).
    pub(super) fn keep_to(&mut self, room: &Room) {
        if let Some(single) = &mut self.single {
            single.keep_to(room);
        }
        if let Some(upload) = self.upload.as_mut().filter(|_| self.fits == Some(Fit::Cut)) {
            match room.blocks(self.options.len()) {
                // From the beginning: what was sent need not be a multiple of anything.
                (size, _) if upload.is_bert() && !size.is_bert() => {
                    *upload = room.upload(self.body.len(), self.options.len());
                }
                (size, blocks) => upload.keep_within(size, blocks as usize),
            }
        }
        if room.bert {
            return;
        }
        if let Some(block) = self.wanted.as_mut().filter(|block| block.size.is_bert()) {
            self.download.shrink_to(BlockSize::B1024);
            block.size = BlockSize::B1024;
        }
        self.early = self.early.map(|size| size.min(BlockSize::B1024));
    }

    /// Writes the next request and hands it to `send`.
    pub(super) fn request<T, E>(
        &mut self,
        aim: Aim,
        send: impl FnOnce(&Outgoing<'_>) -> Result<T, E>,
    ) -> Result<Result<T, E>, RequestFailure> {
        let Self { kind, code, options, body, upload, is_short, wanted, retransmit, single, echo, .. } = self;
        let is_next = matches!(aim, Aim::Next | Aim::Register);
        let piece = match upload {
            Some(upload) if parts::BLOCK && is_next => Some(upload.piece(body)?),
            _ => None,
        };
        let block1 = single.map_or(piece.and_then(|piece| piece.block), |single| single.block1);
        // What is asked of the response goes with the last piece of the body.
        let block2 = wanted.filter(|_| is_next && block1.is_none_or(|block| !block.more));
        let block2 = single.map_or(block2, |single| single.block2);
        // How long the response is, is asked once, with its beginning.
        let begins = block2.is_none_or(|block| block.number == 0) && block1.is_none_or(|block| !block.more);
        let size2 = (self.wants_total && is_next && begins).then(|| Uint::new(0));
        let observe = match aim {
            Aim::Next => None,
            Aim::Register | Aim::Renew(_) => Some(Uint::new(0)),
            Aim::Deregister(_) => Some(Uint::new(1)),
        };
        let payload = match piece {
            Some(piece) => piece.payload,
            None if single.is_some() || (!parts::BLOCK && is_next) => body,
            // Of FETCH the body is part of what is asked for (RFC 8132 §2.1).
            None if *is_short && *code == Code::FETCH => body,
            None => &[],
        };
        // A whole body over a stream is told from others by its token. The rest of an answer is asked for with the tag of the body
        // that it answers, which is part of what distinguishes requests.
        let tag = self.tag.filter(|_| self.fits != Some(Fit::Whole) || single.is_some());
        let total = single.map_or(piece.map(|piece| piece.total), |single| single.total);
        let size1 = total.filter(|_| block1.is_some_and(|block| block.number == 0)).map(Uint::new);
        let (block1, block2) = (block1.map(Block::value), block2.map(Block::value));
        let own = [
            (number::OBSERVE, options::value(observe.as_ref())),
            (number::BLOCK2, options::value(block2.as_ref())),
            (number::BLOCK1, options::value(block1.as_ref())),
            (number::SIZE2, options::value(size2.as_ref())),
            (number::SIZE1, options::value(size1.as_ref())),
            (number::ECHO, echo.as_deref()),
            (number::REQUEST_TAG, options::value(tag.as_ref())),
        ];
        let is_renewed = |number| number == number::ECHO && echo.is_some();
        let theirs = options.iter().filter(|(number, _)| !is_renewed(*number));
        let merged = options::merge(theirs, &own);
        let token = match aim {
            Aim::Renew(token) | Aim::Deregister(token) => Some(token),
            Aim::Next | Aim::Register => self.token,
        };
        let sent =
            send(&Outgoing { kind: *kind, code: *code, options: &merged, payload, token, retransmit: *retransmit });
        if is_next && sent.is_ok() {
            self.token = None;
        }
        Ok(sent)
    }

    /// A message of it that was written before.
    pub(super) const fn as_written<'m>(
        &self,
        code: Code,
        options: &'m [(u16, &'m [u8])],
        payload: &'m [u8],
    ) -> Outgoing<'m> {
        Outgoing { kind: self.kind, code, options, payload, token: None, retransmit: self.retransmit }
    }

    /// The next response begins a body anew.
    pub(super) fn begin_anew(&mut self) {
        self.download = Download::new(self.early, self.longest);
        self.wanted = self.download.first();
        self.has_next = false;
        self.total = None;
        self.restarts = 0;
    }

    /// A response came, or a notification.
    pub(super) fn take(&mut self, message: &Message<'_>, read: &Read<'_>) -> Then {
        self.begin_or_go_on(message, read).unwrap_or_else(Then::Fail)
    }

    /// A response came, and none is put together here.
    fn take_whole(&self, message: &Message<'_>, read: &Read<'_>) -> Result<Then, RequestFailure> {
        let is_part = |block: Block| block.number > 0 || block.more;
        let block = read.block2.transpose().map_err(|_| RequestFailure::BadBlock)?;
        parts::needed(!block.is_some_and(is_part), "block")?;
        let limit = self.longest;
        if message.payload().len() > limit {
            Err(DownloadError::TooLarge { limit }.into())
        } else {
            Ok(Then::Done(None))
        }
    }

    fn begin_or_go_on(&mut self, message: &Message<'_>, read: &Read<'_>) -> Result<Then, RequestFailure> {
        if self.single.is_some() {
            return Ok(Then::Done(None));
        }
        if parts::BLOCK
            && let Some(upload) = &mut self.upload
        {
            let block = read.block1.transpose().map_err(|_| RequestFailure::BadBlock)?;
            match upload.take(&Answer { code: message.code, block, most: read.size1 }) {
                Ok(UploadNext::Send) => {
                    self.token = Some(message.token);
                    return Ok(Then::Send);
                }
                Ok(UploadNext::Done) => self.upload = None,
                // The server's own words say more.
                Err(UploadError::Refused(_) | UploadError::TooLarge { .. }) => return Ok(Then::Done(None)),
                Err(other) => return Err(other.into()),
            }
        }
        if !parts::BLOCK {
            return self.take_whole(message, read);
        }
        let has_begun = self.download.received() > 0;
        let is_first_word = read.echo.is_some() && self.echo.is_none();
        if let Some(value) = read.echo.filter(|_| message.code.class() == 2) {
            self.echo = Some(value.to_vec());
        }
        if message.code == Code::BAD_REQUEST && has_begun && self.restarts < Self::RESTARTS {
            // The block begins behind the end (RFC 7959 §2.4): the body has become shorter.
            self.restarts = self.restarts.saturating_add(1);
            self.download = self.download.once_more(self.wanted.map(|block| block.size));
            self.wanted = self.download.first();
            return Ok(Then::Send);
        }
        if message.code.class() != 2 {
            return Ok(Then::Done(None));
        }
        self.total = read.size2.or(self.total);
        let block = read.block2.transpose().map_err(|_| RequestFailure::BadBlock)?;
        if !has_begun && block.is_none_or(|block| block.number == 0 && !block.more) {
            let limit = self.longest;
            let is_short = message.payload().len() <= limit;
            return if is_short { Ok(Then::Done(None)) } else { Err(DownloadError::TooLarge { limit }.into()) };
        }
        // It was cut small for an address that has shown nothing. With what shows it large blocks come, from the first on; only
        // what changes nothing can be asked for again.
        let largest = self.early.unwrap_or(BlockSize::B1024);
        let is_safe = self.code == Code::GET || (self.code == Code::FETCH && self.is_short);
        let is_cut = block.is_some_and(|block| block.number == 0 && block.more && block.size < largest);
        if is_cut && is_first_word && is_safe && !has_begun {
            self.download = Download::new(Some(largest), self.longest);
            self.wanted = self.download.first();
            return Ok(Then::Send);
        }
        let Read { format, etag, size2: total, .. } = *read;
        let part = Part { code: message.code, format, block, etag, total, payload: message.payload() };
        match self.download.take(&part)? {
            Next::Request(block) => {
                self.wanted = Some(block);
                // That of an observation is taken by the notifications to come.
                if self.one_token && self.watch.is_none() {
                    self.token = Some(message.token);
                }
                Ok(Then::Send)
            }
            Next::Done => {
                let download = core::mem::replace(&mut self.download, Download::new(self.early, self.longest));
                Ok(Then::Done(Some(download.into_body())))
            }
        }
    }
}

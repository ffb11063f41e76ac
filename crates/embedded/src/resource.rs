//! The server's side: what comes as a request, and what goes back.

use alloc::vec::Vec;
use core::net::SocketAddr;

use millpond_coap::{
    Outgoing, RequestId,
    block::{Block, BlockSize, PastEnd, Piece, slice},
    message::{Code, Kind, Message, Token, Uint, number},
    transfer::Limit,
};

/// Answers the requests that come to a [`Node`](crate::Node). Every closure with these arguments is one.
pub trait Resource {
    /// Answers a request. It is called again for each later block of a long answer, and for each notification, so that nothing is kept;
    /// give a long answer an [`etag`](Reply::etag) that changes with it. What is not answered is 4.04.
    fn answer(&mut self, request: &Asked<'_>, reply: &mut Reply<'_>);
}

impl<F: FnMut(&Asked<'_>, &mut Reply<'_>)> Resource for F {
    fn answer(&mut self, request: &Asked<'_>, reply: &mut Reply<'_>) {
        self(request, reply);
    }
}

/// A request that came, whole.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'m> {
    /// From whom. Anybody can write any address there.
    pub from: SocketAddr,
    /// Its last message, for code and options.
    pub message: Message<'m>,
    /// Its body.
    pub body: &'m [u8],
}

impl Asked<'_> {
    /// Whether this is its path, as in `config/period`.
    #[must_use]
    pub fn is_for(&self, path: &str) -> bool {
        self.message.uri_path().eq(segments(path))
    }
}

/// A path as messages have it.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &[u8]> + Clone {
    path.split('/').filter(|part| !part.is_empty()).map(str::as_bytes)
}

/// The answer to a request.
#[derive(Debug)]
pub struct Reply<'s> {
    head: Answered,
    scratch: &'s mut [u8],
    form: Form,
    is_observable: bool,
}

/// How long an answer may be, and what it says besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The block that is asked for.
    pub(crate) asked: Option<Block>,
    /// The largest block.
    pub(crate) size: BlockSize,
    pub(crate) token: Token,
    pub(crate) block1: Option<Block>,
    /// Its receiver wants to observe, or does.
    pub(crate) observes: bool,
    /// What may go to an address that is not validated, and of it what is kept for a first notification.
    pub(crate) limit: Option<Limit>,
    pub(crate) kept: usize,
}

/// An answer but for its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    code: Code,
    format: Option<u16>,
    etag: Option<[u8; 4]>,
    max_age: Option<u32>,
    /// Observe: at first any number, if its receiver is to be an observer.
    pub(crate) observe: Option<u32>,
    block1: Option<Block>,
    block2: Option<Block>,
    size1: Option<u32>,
    size2: Option<u32>,
    /// Bytes of its payload.
    pub(crate) length: usize,
    /// What is at the request's path has a new state.
    pub(crate) has_changed: bool,
}

/// A request that is answered once the message layer has said all that it has to say.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) from: SocketAddr,
    pub(crate) to: RequestId,
    pub(crate) request: Vec<u8>,
}

impl<'s> Reply<'s> {
    /// Nothing so far.
    pub(crate) fn new(scratch: &'s mut [u8], form: Form) -> Self {
        Self { head: Answered::new(Code::NOT_FOUND).with_block1(form.block1), scratch, form, is_observable: false }
    }

    pub(crate) const fn into_head(self) -> Answered {
        self.head
    }

    /// A code alone.
    pub fn code(&mut self, code: Code) {
        self.head = self.begun(code);
    }

    /// A code and a body of this Content-Format. Of a body of any length the block leaves that was asked for. What goes to an address
    /// that has shown nothing is cut into smaller ones: it is at most three times as long as the request, or 136 bytes (RFC 9175 §2.4).
    pub fn body(&mut self, code: Code, format: u16, body: &[u8]) {
        let whole = Answered { format: Some(format), ..self.begun(code) };
        let observes = self.is_observable && self.form.observes && code.is_success();
        let observed = Answered { observe: Some(u32::MAX >> 8), ..whole };
        let mut fitted = if observes { self.fit(observed, body, self.form.kept) } else { Ok(None) };
        if matches!(fitted, Ok(None)) {
            fitted = self.fit(whole, body, 0);
        }
        self.head = match fitted {
            Ok(Some(head)) => head,
            // The node's blocks fit its buffer, and the smallest fits in what may go to any address.
            Ok(None) => self.begun(Code::INTERNAL_SERVER_ERROR),
            Err(PastEnd { .. }) => self.begun(Code::BAD_REQUEST),
        };
    }

    /// What the body that follows is told by from other states of the resource. To be called before [`body`](Self::body).
    pub const fn etag(&mut self, etag: [u8; 4]) {
        self.head.etag = Some(etag);
    }

    /// For how many seconds the body that follows is fresh; 60 unless said. To be called before [`body`](Self::body). Observers register
    /// again a little later.
    pub const fn max_age(&mut self, seconds: u32) {
        self.head.max_age = Some(seconds);
    }

    /// Who asks to observe the body that follows may: [`Node::notify`](crate::Node::notify) has each of them told of a new one. To be
    /// called before [`body`](Self::body).
    pub const fn observable(&mut self) {
        self.is_observable = true;
    }

    /// What is at the request's path has a new state now, of which its observers are to be told.
    pub const fn changed(&mut self) {
        self.head.has_changed = true;
    }

    const fn begun(&self, code: Code) -> Answered {
        let Answered { etag, max_age, has_changed, .. } = self.head;
        Answered { etag, max_age, has_changed, ..Answered::new(code).with_block1(self.form.block1) }
    }

    /// The answer with the largest block of the body that leaves so many bytes of the limit, if any does.
    fn fit(&mut self, answer: Answered, body: &[u8], kept: usize) -> Result<Option<Answered>, PastEnd> {
        let Form { asked, size, token, limit, .. } = self.form;
        let limit = limit.map(|limit| if kept > 0 { limit.after(kept) } else { limit });
        let most = limit.map_or(usize::MAX, Limit::message);
        for size in (0..7).rev().filter_map(BlockSize::from_exponent).filter(|other| *other <= size) {
            let Piece { block, total, payload } = slice(body, asked, size)?;
            let answer = Answered { block2: block, size2: block.map(|_| total), length: payload.len(), ..answer };
            let length = answer.message(Kind::Confirmable, payload, |message| message.length_with(token));
            if length > most {
                continue;
            }
            let Some(place) = self.scratch.get_mut(..payload.len()) else { continue };
            place.copy_from_slice(payload);
            return Ok(Some(answer));
        }
        Ok(None)
    }
}

impl Answered {
    pub(crate) const fn new(code: Code) -> Self {
        Self {
            code,
            format: None,
            etag: None,
            max_age: None,
            observe: None,
            block1: None,
            block2: None,
            size1: None,
            size2: None,
            length: 0,
            has_changed: false,
        }
    }

    pub(crate) const fn with_block1(self, block1: Option<Block>) -> Self {
        Self { block1, ..self }
    }

    pub(crate) const fn is_success(&self) -> bool {
        self.code.is_success()
    }

    pub(crate) const fn with_size1(self, most: u32) -> Self {
        Self { size1: Some(most), ..self }
    }

    /// Hands the message to `send`.
    pub(crate) fn message<T>(&self, kind: Kind, payload: &[u8], send: impl FnOnce(&Outgoing<'_>) -> T) -> T {
        let uint = |value: Option<u32>| value.map(Uint::new);
        let (format, size1, size2) = (uint(self.format.map(Into::into)), uint(self.size1), uint(self.size2));
        let (observe, max_age) = (uint(self.observe), uint(self.max_age));
        let (block1, block2) = (self.block1.map(Block::value), self.block2.map(Block::value));
        let all = [
            (number::ETAG, self.etag.as_ref().map(|etag| &etag[..])),
            (number::OBSERVE, observe.as_ref().map(Uint::as_bytes)),
            (number::CONTENT_FORMAT, format.as_ref().map(Uint::as_bytes)),
            (number::MAX_AGE, max_age.as_ref().map(Uint::as_bytes)),
            (number::BLOCK2, block2.as_ref().map(Uint::as_bytes)),
            (number::BLOCK1, block1.as_ref().map(Uint::as_bytes)),
            (number::SIZE2, size2.as_ref().map(Uint::as_bytes)),
            (number::SIZE1, size1.as_ref().map(Uint::as_bytes)),
        ];
        let mut options = [(0, &[][..]); 8];
        let mut count = 0_usize;
        for ((number, value), place) in
            all.iter().filter_map(|(number, value)| Some((*number, (*value)?))).zip(&mut options)
        {
            *place = (number, value);
            count = count.saturating_add(1);
        }
        let options = options.get(..count).unwrap_or_default();
        send(&Outgoing { kind, payload, ..Outgoing::confirmable(self.code, options) })
    }
}

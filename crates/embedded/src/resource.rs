//! The server's side: what comes as a request, and what goes back.

use core::net::SocketAddr;

use millpond_coap::{
    Outgoing, RequestId,
    block::{Block, BlockSize, Piece, slice},
    message::{Code, Kind, Message, Uint, number},
};

/// Answers the requests that come to a [`Node`](crate::Node). Every closure with these arguments is one.
pub trait Resource {
    /// Answers a request. It is called again for each later block of a long answer, so that nothing is kept; give such an answer an
    /// [`etag`](Reply::etag) that changes with it. What is not answered is 4.04.
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
        self.message.uri_path().eq(path.split('/').filter(|part| !part.is_empty()).map(str::as_bytes))
    }
}

/// The answer to a request.
#[derive(Debug)]
pub struct Reply<'s> {
    head: Answered,
    scratch: &'s mut [u8],
    asked: Option<Block>,
    size: BlockSize,
}

/// An answer but for its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    code: Code,
    format: Option<u16>,
    etag: Option<[u8; 4]>,
    block1: Option<Block>,
    block2: Option<Block>,
    size1: Option<u32>,
    size2: Option<u32>,
    /// Bytes of its payload.
    pub(crate) length: usize,
}

/// An answer that leaves once the message layer has said all that it has to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingAnswer {
    pub(crate) to: RequestId,
    pub(crate) kind: Kind,
    pub(crate) answer: Answered,
}

impl<'s> Reply<'s> {
    /// Nothing so far, in blocks of this size at most, of which this one is asked for.
    pub(crate) fn new(scratch: &'s mut [u8], asked: Option<Block>, size: BlockSize) -> Self {
        Self { head: Answered::new(Code::NOT_FOUND), scratch, asked, size }
    }

    pub(crate) const fn into_head(self) -> Answered {
        self.head
    }

    /// A code alone.
    pub fn code(&mut self, code: Code) {
        self.head = Answered::new(code);
    }

    /// A code and a body of this Content-Format. Of a body of any length the block leaves that was asked for.
    pub fn body(&mut self, code: Code, format: u16, body: &[u8]) {
        let etag = self.head.etag;
        self.head = match slice(body, self.asked, self.size) {
            Ok(Piece { block, total, payload }) => match self.scratch.get_mut(..payload.len()) {
                Some(place) => {
                    place.copy_from_slice(payload);
                    let size2 = block.map(|_| total);
                    let length = payload.len();
                    Answered { format: Some(format), etag, block2: block, size2, length, ..Answered::new(code) }
                }
                // The node's blocks fit its buffer.
                None => Answered::new(Code::INTERNAL_SERVER_ERROR),
            },
            Err(_) => Answered::new(Code::BAD_REQUEST),
        };
    }

    /// What the body that follows is told by from other states of the resource. To be called before [`body`](Self::body).
    pub const fn etag(&mut self, etag: [u8; 4]) {
        self.head.etag = Some(etag);
    }
}

impl Answered {
    pub(crate) const fn new(code: Code) -> Self {
        Self { code, format: None, etag: None, block1: None, block2: None, size1: None, size2: None, length: 0 }
    }

    pub(crate) const fn with_block1(self, block1: Option<Block>) -> Self {
        Self { block1, ..self }
    }

    pub(crate) const fn with_size1(self, most: u32) -> Self {
        Self { size1: Some(most), ..self }
    }

    /// Hands the message to `send`.
    pub(crate) fn message<T>(&self, kind: Kind, payload: &[u8], send: impl FnOnce(&Outgoing<'_>) -> T) -> T {
        let uint = |value: Option<u32>| value.map(Uint::new);
        let (format, size1, size2) = (uint(self.format.map(Into::into)), uint(self.size1), uint(self.size2));
        let (block1, block2) = (self.block1.map(Block::value), self.block2.map(Block::value));
        let all = [
            (number::ETAG, self.etag.as_ref().map(|etag| &etag[..])),
            (number::CONTENT_FORMAT, format.as_ref().map(Uint::as_bytes)),
            (number::BLOCK2, block2.as_ref().map(Uint::as_bytes)),
            (number::BLOCK1, block1.as_ref().map(Uint::as_bytes)),
            (number::SIZE2, size2.as_ref().map(Uint::as_bytes)),
            (number::SIZE1, size1.as_ref().map(Uint::as_bytes)),
        ];
        let mut options = [(0, &[][..]); 6];
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

//! A request with its whole body and its whole response, whose messages a node exchanges one after the other.

use alloc::vec::Vec;

use millpond_coap::{
    ExchangeId, Failure, Outgoing,
    block::{Answer, Block, BlockSize, DownloadBlocks, Next, Part, Taken, Upload, UploadError, UploadNext},
    message::{Code, Message, Token, Uint, number},
    transfer::Read,
};

use crate::{Error, Request, Response};

/// Max-Age where none is said (RFC 7252 §5.10.5), seconds.
pub(crate) const MAX_AGE: u32 = 60;

/// What its last message led to.
#[derive(Debug)]
pub(crate) enum Step<E> {
    /// The next message is to be sent.
    Next,
    /// The response is whole.
    Done,
    /// There is none.
    Failed(Error<E>),
}

/// The response as far as it has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) code: Code,
    pub(crate) format: Option<u16>,
    pub(crate) token: Token,
    /// Observe of the first response; token and Max-Age are that one's, too.
    pub(crate) observe: Option<u32>,
    pub(crate) max_age: u32,
    /// Bytes of its body.
    pub(crate) length: usize,
    pub(crate) copies: u8,
}

impl Head {
    /// The response, whose body is the beginning of this.
    pub(crate) fn response(self, body: &[u8]) -> Response<'_> {
        let Self { code, format, length, copies, max_age, .. } = self;
        Response { code, format, body: body.get(..length).unwrap_or_default(), copies, max_age }
    }
}

/// One under way.
#[derive(Debug)]
pub(crate) struct Transfer<'t, E> {
    request: &'t Request<'t>,
    body: &'t mut [u8],
    upload: Option<Upload>,
    blocks: DownloadBlocks,
    /// Block2 of the next message.
    wanted: Option<Block>,
    /// Of what was answered so far, if it is to be asked with it again.
    pub(crate) token: Option<Token>,
    /// What the server wants sent back, to see that this client is where it says (RFC 9175 §2.3).
    echo: Option<Vec<u8>>,
    pub(crate) exchange: Option<ExchangeId>,
    /// What became of the exchange.
    pub(crate) step: Option<Step<E>>,
    pub(crate) head: Option<Head>,
}

impl<'t, E> Transfer<'t, E> {
    /// In blocks of this size, asked for from the first message on if the server's choice may be too long.
    pub(crate) fn new(request: &'t Request<'t>, body: &'t mut [u8], size: BlockSize) -> Self {
        let early = (size < BlockSize::B1024).then_some(size);
        let blocks = DownloadBlocks::new(early, body.len());
        let upload = (!request.payload.is_empty()).then(|| Upload::new(request.payload.len(), size));
        let wanted = blocks.first();
        Self { request, body, upload, blocks, wanted, token: None, echo: None, exchange: None, step: None, head: None }
    }

    /// Writes the next message and hands it to `send`. With `observe` it registers.
    pub(crate) fn message<T>(
        &mut self,
        observe: bool,
        send: impl FnOnce(&Outgoing<'_>) -> Result<T, millpond_coap::Refused>,
    ) -> Result<T, Error<E>> {
        let piece = self.upload.as_mut().map(|upload| upload.piece(self.request.payload)).transpose()?;
        let block1 = piece.and_then(|piece| piece.block);
        let size1 = piece.filter(|_| block1.is_some_and(|block| block.number == 0)).map(|piece| Uint::new(piece.total));
        let block2 = self.wanted.filter(|_| block1.is_none_or(|block| !block.more));
        let (block1, block2) = (block1.map(Block::value), block2.map(Block::value));
        let format = self.request.format.filter(|_| piece.is_some()).map(|format| Uint::new(format.into()));
        let registers = observe.then(|| Uint::new(0));
        fn value(uint: Option<&Uint>) -> Option<&[u8]> {
            uint.map(Uint::as_bytes)
        }
        let own = [
            (number::OBSERVE, value(registers.as_ref())),
            (number::BLOCK2, value(block2.as_ref())),
            (number::BLOCK1, value(block1.as_ref())),
            (number::SIZE1, value(size1.as_ref())),
            (number::ECHO, self.echo.as_deref()),
        ];
        let options = self.request.all_options(value(format.as_ref()), &own);
        let payload = piece.map_or(&[][..], |piece| piece.payload);
        Ok(send(&self.request.outgoing(&options, payload))?)
    }

    /// Its exchange was answered.
    pub(crate) fn answered(&mut self, message: &Message<'_>, copies: u8) {
        let taken = self.take(message.code, message.token, &Read::of(message, None), message.payload(), copies);
        self.step = Some(taken.unwrap_or_else(Step::Failed));
    }

    /// Its exchange was not.
    pub(crate) fn failed(&mut self, why: Failure, copies: u8) {
        self.step = Some(Step::Failed(Error::Failed { why, copies }));
    }

    /// A notification came that may be the beginning of a longer state.
    pub(crate) fn begin_with(&mut self, code: Code, token: Token, read: &Read<'_>, payload: &[u8]) -> Step<E> {
        self.upload = None;
        self.take(code, token, read, payload, 0).unwrap_or_else(Step::Failed)
    }

    fn take(
        &mut self,
        code: Code,
        token: Token,
        read: &Read<'_>,
        payload: &[u8],
        copies: u8,
    ) -> Result<Step<E>, Error<E>> {
        let Read { block1, block2, size1, size2, etag, format, observe, max_age, echo, .. } = *read;
        if code == Code::UNAUTHORIZED && self.echo.is_none() && echo.is_some() {
            (self.echo, self.token) = (echo.map(<[u8]>::to_vec), Some(token));
            return Ok(Step::Next);
        }
        if let Some(upload) = &mut self.upload {
            let block = block1.transpose().map_err(|_| Error::BadBlock)?;
            match upload.take(&Answer { code, block, most: size1 }) {
                Ok(UploadNext::Send) => return Ok(Step::Next),
                // The server's own words say more.
                Ok(UploadNext::Done) | Err(UploadError::Refused(_) | UploadError::TooLarge { .. }) => {}
                Err(other) => return Err(other.into()),
            }
            self.upload = None;
        }
        if code.class() != 2 {
            // What came before is no part of it.
            self.blocks = DownloadBlocks::new(None, self.body.len());
        }
        let block = block2.transpose().map_err(|_| Error::BadBlock)?.filter(|_| code.class() == 2);
        let part = Part { code, format, block, etag, total: size2.filter(|_| block.is_some()), payload };
        let Taken { at, next } = self.blocks.take(&part)?;
        let length = self.blocks.received();
        let format = format.and_then(|format| u16::try_from(format).ok());
        let first = Head { code, format, token, observe, max_age: max_age.unwrap_or(MAX_AGE), length, copies };
        self.head = Some(self.head.map_or(first, |head| {
            let max_age = if code.class() == 2 { head.max_age } else { first.max_age };
            Head { code, format, length, copies, max_age, ..head }
        }));
        if let Some(place) = at.and_then(|at| self.body.get_mut(at..at.saturating_add(payload.len()))) {
            place.copy_from_slice(payload);
        }
        Ok(match next {
            Next::Request(block) => {
                self.wanted = Some(block);
                Step::Next
            }
            Next::Done => Step::Done,
        })
    }
}

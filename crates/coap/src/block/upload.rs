use super::{Block, BlockSize};
use crate::message::Code;

/// A body that leaves in the requests (Block1, RFC 7959 §2.5), from the client's side. The body stays with the caller.
#[derive(Clone, Debug)]
pub struct Upload {
    length: usize,
    size: BlockSize,
    /// Bytes that the server has.
    sent: usize,
    /// Bytes in the request under way.
    under_way: usize,
    /// Blocks of 1024 in a message, if the connection allows several.
    blocks: usize,
    restarts: u8,
}

/// What the next request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadPiece<'b> {
    /// Option Block1; none if the whole body is in this request.
    pub block: Option<Block>,
    /// Option Size1: bytes of the whole body.
    pub total: u32,
    /// The payload.
    pub payload: &'b [u8],
}

/// A response to one of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its code.
    pub code: Code,
    /// Its option Block1.
    pub block: Option<Block>,
    /// Its option Size1: the longest body that the server takes.
    pub most: Option<u32>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadNext {
    /// Send the next piece.
    Send,
    /// This response is the answer to the whole request.
    Done,
}

/// Why the body does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum UploadError {
    /// The server refused.
    #[error("the server answered {0} before it had the whole body")]
    Refused(Code),
    /// The server takes no body of this length.
    #[error("the server takes bodies of at most {most:?} bytes")]
    TooLarge {
        /// What it takes, if it said so.
        most: Option<u32>,
    },
    /// The server lost what it had, again and again.
    #[error("the server lost the beginning of the body {0} times")]
    Lost(u8),
    /// An answer that does not name the block that was sent.
    #[error("the answer names another block than the one sent, or none")]
    WrongBlock,
    /// The body has more blocks than numbers.
    #[error("the body needs more blocks than can be numbered")]
    TooManyBlocks,
}

impl Upload {
    /// The body is sent from its beginning so many times at most.
    const RESTARTS: u8 = 3;

    /// A body of `length` bytes in blocks of `size`; a shorter one goes in one request.
    #[must_use]
    pub const fn new(length: usize, size: BlockSize) -> Self {
        Self { length, size, sent: 0, under_way: 0, blocks: 1, restarts: 0 }
    }

    /// The same with up to `blocks` blocks of 1024 bytes in a message, for a connection that allows it (RFC 8323 §6).
    #[must_use]
    pub(crate) const fn of_blocks(length: usize, blocks: usize) -> Self {
        Self { blocks, ..Self::new(length, BlockSize::BERT) }
    }

    /// Bytes that the server has acknowledged.
    #[must_use]
    pub const fn sent(&self) -> usize {
        self.sent
    }

    /// From the next request on messages hold no larger blocks and no more of them. What was sent is a multiple of both.
    pub(crate) fn keep_within(&mut self, size: BlockSize, blocks: usize) {
        self.size = self.size.min(size);
        self.blocks = self.blocks.min(blocks);
    }

    /// Whether several blocks go in a message.
    pub(crate) const fn is_bert(&self) -> bool {
        self.size.is_bert()
    }

    /// What the next request carries of `body`.
    ///
    /// # Errors
    /// More blocks than numbers.
    pub fn piece<'b>(&mut self, body: &'b [u8]) -> Result<UploadPiece<'b>, UploadError> {
        let most =
            (self.size.bytes() as usize).saturating_mul(if self.size.is_bert() { self.blocks.max(1) } else { 1 });
        let rest = body.get(self.sent..).unwrap_or_default();
        let payload = rest.get(..most).unwrap_or(rest);
        let more = payload.len() < rest.len();
        self.under_way = payload.len();
        let block = if self.sent == 0 && !more {
            None
        } else {
            Some(Block::at(self.sent as u64, more, self.size).ok_or(UploadError::TooManyBlocks)?)
        };
        Ok(UploadPiece { block, total: u32::try_from(self.length).unwrap_or(u32::MAX), payload })
    }

    /// The answer to the last piece came.
    ///
    /// # Errors
    /// Why the body does not arrive.
    pub fn take(&mut self, answer: &Answer) -> Result<UploadNext, UploadError> {
        let Answer { code, block, most } = *answer;
        let last = self.sent.saturating_add(self.under_way) >= self.length;
        if code == Code::REQUEST_ENTITY_TOO_LARGE {
            return self.shrink(block, most);
        }
        if code == Code::REQUEST_ENTITY_INCOMPLETE {
            return self.restart();
        }
        if code.class() != 2 {
            return if last { Ok(UploadNext::Done) } else { Err(UploadError::Refused(code)) };
        }
        if last {
            return if code == Code::CONTINUE { Err(UploadError::WrongBlock) } else { Ok(UploadNext::Done) };
        }
        // 2.31 while the body is being collected; another success if the server acts on each block by itself.
        let block = block.ok_or(UploadError::WrongBlock)?;
        let sent = Block::at(self.sent as u64, true, self.size);
        // A smaller size in the answer leaves the number as it was sent (RFC 7959 §2.5).
        if sent.is_none_or(|sent| sent.number != block.number) {
            return Err(UploadError::WrongBlock);
        }
        self.sent = self.sent.saturating_add(self.under_way);
        self.size = self.size.min(block.size);
        Ok(UploadNext::Send)
    }

    /// 4.13: with a smaller block, begin anew with blocks of that size.
    fn shrink(&mut self, block: Option<Block>, most: Option<u32>) -> Result<UploadNext, UploadError> {
        let fits = most.is_none_or(|most| most as usize >= self.length);
        match block {
            Some(block) if fits && block.size < self.size => {
                self.size = block.size;
                self.sent = 0;
                Ok(UploadNext::Send)
            }
            _ => Err(UploadError::TooLarge { most }),
        }
    }

    fn restart(&mut self) -> Result<UploadNext, UploadError> {
        self.restarts = self.restarts.saturating_add(1);
        if self.restarts > Self::RESTARTS {
            return Err(UploadError::Lost(Self::RESTARTS));
        }
        self.sent = 0;
        Ok(UploadNext::Send)
    }
}

use alloc::vec::Vec;

use super::{Block, BlockSize};
use crate::message::Code;

/// A body that comes in the responses (Block2, RFC 7959 §2.4), from the client's side.
///
/// Each request of a transfer is an exchange of its own and carries the same options apart from Block2.
#[derive(Clone, Debug)]
pub struct Download {
    blocks: DownloadBlocks,
    body: Vec<u8>,
}

/// The blocks of a [`Download`] whose body stays with the caller.
#[derive(Clone, Debug)]
pub struct DownloadBlocks {
    /// Bytes of the body so far.
    received: usize,
    /// Code, Content-Format and ETag of what is there: those of one representation are the same.
    of: (Code, Option<u32>, Option<Vec<u8>>),
    /// The size that the client wished for.
    wished: Option<BlockSize>,
    /// The size to ask for from now on, once one is known.
    size: Option<BlockSize>,
    /// The size that was asked for last.
    asked: Option<BlockSize>,
    limit: usize,
    restarts: u8,
}

/// What a response holds of the body.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its code.
    pub code: Code,
    /// Its option Content-Format.
    pub format: Option<u32>,
    /// Its option Block2.
    pub block: Option<Block>,
    /// Its option ETag.
    pub etag: Option<&'a [u8]>,
    /// Its option Size2: bytes of the whole body.
    pub total: Option<u32>,
    /// Its payload.
    pub payload: &'a [u8],
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Request again, with this as Block2.
    Request(Block),
    /// The body is whole.
    Done,
}

/// What a response of success was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Where in the body its payload begins. What was there from that byte on is no part of the body. `None` if all that came is to
    /// be dropped, this payload too.
    pub at: Option<usize>,
    /// What comes next.
    pub next: Next,
}

/// Why the body will not become whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// Another block than the one asked for.
    #[error("the server sent the block at byte {got} instead of the one at byte {wanted}")]
    OutOfOrder {
        /// First byte of the block that came.
        got: u64,
        /// First byte of the block asked for.
        wanted: u64,
    },
    /// A block that is not full though more follow, or that holds more than it may.
    #[error("a block with {length} bytes of payload does not hold what its option says")]
    WrongLength {
        /// Bytes that came.
        length: usize,
    },
    /// A block larger than the one asked for.
    #[error("the server answered with larger blocks than it was asked for")]
    LargerBlocks,
    /// The body is longer than allowed.
    #[error("the body has more than {limit} bytes")]
    TooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// The body changed again and again while it was fetched.
    #[error("the body changed {0} times while it was fetched")]
    Unstable(u8),
    /// The body has more blocks than numbers.
    #[error("the body needs more blocks than can be numbered")]
    TooManyBlocks,
    /// Blocks much smaller than they need be, of the server's choice.
    #[error(
        "the server cuts a long body into blocks of {size} bytes, {most} of which came; ask for blocks of this size if all are wanted"
    )]
    SmallBlocks {
        /// Bytes of a block.
        size: u32,
        /// So many were taken.
        most: u32,
    },
}

impl Block {
    /// Whether a response may hold this block with a payload of so many bytes where blocks of at most this size were asked for.
    ///
    /// # Errors
    /// Why not.
    pub fn check_answer(self, asked: Option<BlockSize>, length: usize) -> Result<(), DownloadError> {
        if asked.is_some_and(|asked| self.size > asked) {
            return Err(DownloadError::LargerBlocks);
        }
        if self.fits(length) { Ok(()) } else { Err(DownloadError::WrongLength { length }) }
    }
}

impl BlockSize {
    /// So many blocks of a size that nobody wished for are enough for a body, unless blocks of 1024 bytes would be more: without it
    /// a server could be asked a million times for 16 MiB.
    const MOST_SMALL: usize = 1 << 16;

    /// Whether so many bytes of a body of at most `limit` may have come in blocks of this size, which is the server's choice.
    ///
    /// # Errors
    /// They are too many blocks.
    pub fn check_count(self, received: usize, limit: usize) -> Result<(), DownloadError> {
        let most = u32::try_from(Self::MOST_SMALL.max(limit >> 10)).unwrap_or(u32::MAX);
        let is_within = received as u64 <= u64::from(most).saturating_mul(self.bytes().into());
        if is_within { Ok(()) } else { Err(DownloadError::SmallBlocks { size: self.bytes(), most }) }
    }
}

impl Download {
    /// A body of at most `limit` bytes. With a size, the first request already asks for blocks of it (early
    /// negotiation); without, the server chooses (late negotiation).
    #[must_use]
    pub const fn new(size: Option<BlockSize>, limit: usize) -> Self {
        Self { blocks: DownloadBlocks::new(size, limit), body: Vec::new() }
    }

    /// Block2 of the first request.
    #[must_use]
    pub fn first(&self) -> Option<Block> {
        self.blocks.first()
    }

    /// The same from its beginning, in blocks of this size.
    pub(crate) fn once_more(&self, size: Option<BlockSize>) -> Self {
        let blocks = DownloadBlocks { wished: self.blocks.wished, ..DownloadBlocks::new(size, self.blocks.limit) };
        Self { blocks, body: Vec::new() }
    }

    /// As [`DownloadBlocks::shrink_to`].
    pub fn shrink_to(&mut self, size: BlockSize) {
        self.blocks.shrink_to(size);
    }

    /// Bytes of the body so far.
    #[must_use]
    pub const fn received(&self) -> usize {
        self.blocks.received
    }

    /// As [`DownloadBlocks::take`].
    ///
    /// # Errors
    /// Why the body will not become whole.
    pub fn take(&mut self, part: &Part<'_>) -> Result<Next, DownloadError> {
        let Taken { at, next } = self.blocks.take(part)?;
        self.body.truncate(at.unwrap_or(0));
        if at.is_some() {
            self.body.extend_from_slice(part.payload);
        }
        Ok(next)
    }

    /// The body so far; whole once [`Next::Done`] was told.
    #[must_use]
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }
}

impl DownloadBlocks {
    /// A changed body is fetched anew so many times.
    const RESTARTS: u8 = 4;

    /// As [`Download::new`].
    #[must_use]
    pub const fn new(size: Option<BlockSize>, limit: usize) -> Self {
        Self { received: 0, of: (Code::CONTENT, None, None), wished: size, size, asked: size, limit, restarts: 0 }
    }

    /// Block2 of the first request.
    #[must_use]
    pub fn first(&self) -> Option<Block> {
        self.size.and_then(|size| Block::at(0, false, size))
    }

    /// Asks for smaller blocks from the next request on. Larger ones than at present are not asked for: what was
    /// received need not be a multiple of them.
    pub fn shrink_to(&mut self, size: BlockSize) {
        self.size = Some(self.size.map_or(size, |now| now.min(size)));
    }

    /// Bytes of the body so far.
    #[must_use]
    pub const fn received(&self) -> usize {
        self.received
    }

    /// A response of success came. A changed ETag, Content-Format or code means that the server has something else by now: what
    /// was received is dropped, and the transfer begins anew.
    ///
    /// # Errors
    /// Why the body will not become whole.
    pub fn take(&mut self, part: &Part<'_>) -> Result<Taken, DownloadError> {
        let limit = self.limit;
        // Some servers answer the blocks before the last with 2.31, which is for those of a request's body.
        let code = if part.code == Code::CONTINUE { Code::CONTENT } else { part.code };
        if part.total.is_some_and(|total| total as usize > limit) {
            return Err(DownloadError::TooLarge { limit });
        }
        let has_begun = self.received > 0;
        let Some(block) = part.block else {
            // What is valid is not what was asked for (RFC 7252 §5.9.1.3).
            if has_begun && code != self.of.0 {
                self.begin_anew()?;
                return Ok(Taken { at: None, next: self.ask()? });
            }
            // The whole body in one message, whatever was asked for.
            self.received = 0;
            return Ok(Taken { at: Some(self.append(part.payload)?), next: Next::Done });
        };
        let (got, wanted) = (block.offset(), self.received as u64);
        let (of, format, etag) = &self.of;
        // Some servers tell the format with the first block alone.
        let is_of_another_format = format.zip(part.format).is_some_and(|(here, theirs)| here != theirs);
        if has_begun && (is_of_another_format || (*of, etag.as_deref()) != (code, part.etag)) {
            self.begin_anew()?;
            if got > 0 {
                return Ok(Taken { at: None, next: self.ask()? });
            }
        } else if got != wanted {
            return Err(DownloadError::OutOfOrder { got, wanted });
        }
        block.check_answer(self.asked, part.payload.len())?;
        if self.received == 0 {
            self.of = (code, part.format, part.etag.map(<[u8]>::to_vec));
        }
        let at = Some(self.append(part.payload)?);
        if !block.more {
            return Ok(Taken { at, next: Next::Done });
        }
        let size = self.size.map_or(block.size, |size| size.min(block.size));
        self.size = Some(size);
        if self.wished.is_none_or(|wished| size < wished) {
            size.check_count(self.received, limit)?;
        }
        Ok(Taken { at, next: self.ask()? })
    }

    /// Where a payload stands that follows what came.
    fn append(&mut self, payload: &[u8]) -> Result<usize, DownloadError> {
        let (at, limit) = (self.received, self.limit);
        let end = at.saturating_add(payload.len());
        if end > limit {
            return Err(DownloadError::TooLarge { limit });
        }
        self.received = end;
        Ok(at)
    }

    fn begin_anew(&mut self) -> Result<(), DownloadError> {
        self.restarts = self.restarts.saturating_add(1);
        if self.restarts > Self::RESTARTS {
            return Err(DownloadError::Unstable(Self::RESTARTS));
        }
        self.received = 0;
        Ok(())
    }

    fn ask(&mut self) -> Result<Next, DownloadError> {
        let size = self.size.unwrap_or(BlockSize::B1024);
        self.asked = Some(size);
        Block::at(self.received as u64, false, size).map(Next::Request).ok_or(DownloadError::TooManyBlocks)
    }
}

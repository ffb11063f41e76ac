//! Answers and what is cut from them.

use alloc::vec::Vec;

use super::{Answer, SharedBody, options, server::Pending, unvalidated::ECHO_LENGTH};
use crate::block::{Block, BlockSize, PastEnd, Piece, slice_of_blocks};
use crate::body;
use crate::endpoint::Outgoing;
use crate::layer::Room;
use crate::message::{Uint, number};

/// Into what a body is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) size: BlockSize,
    /// Of these in a message, if they are BERT's.
    blocks: u32,
    /// Bytes of the longest body that goes whole if nobody asks for a block.
    whole: usize,
    /// What is no success is cut as well.
    cuts_all: bool,
}

impl Cut {
    /// Nothing is cut that nobody asks for in blocks.
    pub(super) const WHOLE: Self = Self { size: BlockSize::B1024, blocks: 1, whole: usize::MAX, cuts_all: false };

    pub(super) const fn of(size: BlockSize) -> Self {
        Self { size, blocks: 1, whole: size.bytes() as usize, cuts_all: false }
    }

    /// The largest blocks that fit a message of a stream beside these options.
    pub(super) fn within(room: &Room, options: &[(u16, &[u8])], most: BlockSize) -> Self {
        let beside = options.iter().fold(0_usize, |sum, (_, value)| sum.saturating_add(value.len()).saturating_add(5));
        let (size, blocks) = room.blocks(beside);
        let size = size.min(most);
        let blocks = if size.is_bert() { blocks } else { 1 };
        let whole = (size.bytes() as usize).saturating_mul(blocks as usize);
        Self { size, blocks, whole, cuts_all: true }
    }

    fn piece<'b>(&self, body: &'b [u8], asked: Option<Block>) -> Result<Piece<'b>, PastEnd> {
        if asked.is_none() && body.len() <= self.whole {
            let total = u32::try_from(body.len()).unwrap_or(u32::MAX);
            return Ok(Piece { block: None, total, payload: body });
        }
        slice_of_blocks(body, asked, self.size, self.blocks)
    }
}

/// An answer with what is needed to cut it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Representation<'a> {
    pub(super) answer: &'a Answer<'a>,
    pub(super) cut: Cut,
    /// Made of its tag for an answer of several blocks that has none, of so many bytes. With four of them one body in four
    /// billions has that of another one.
    pub(super) etag: Option<([u8; 8], usize)>,
    /// Its receiver is to send this back.
    pub(super) echo: Option<[u8; ECHO_LENGTH]>,
}

impl<'a> Representation<'a> {
    pub(super) fn of(answer: &'a Answer<'a>, cut: Cut, etag_length: u8) -> Self {
        let mut made = Self { answer, cut, etag: None, echo: None };
        if etag_length > 0 && made.is_long() && !answer.options.iter().any(|(number, _)| *number == number::ETAG) {
            made.etag = Some((made.tag().to_be_bytes(), usize::from(etag_length)));
        }
        made
    }

    /// It needs several blocks. What is no success goes as it is: its body is a word to a human.
    pub(super) fn is_long(&self) -> bool {
        self.answer.code.class() == 2 && self.answer.body.len() > self.cut.whole
    }

    /// Of its body.
    fn tag(&self) -> u64 {
        self.answer.shared.map_or_else(|| body::tag(self.answer.body), SharedBody::tag)
    }

    /// Its body, to be kept.
    pub(super) fn body(&self) -> SharedBody {
        let tag = || self.etag.map_or_else(|| self.tag(), |(tag, _)| u64::from_be_bytes(tag));
        self.answer.shared.cloned().unwrap_or_else(|| SharedBody::copied(self.answer.body, tag()))
    }

    /// Its options with the ETag.
    pub(super) fn options(&self) -> Vec<(u16, &[u8])> {
        options::merge(self.answer.options.iter().copied(), &[(number::ETAG, self.etag())])
    }

    fn etag(&self) -> Option<&[u8]> {
        self.etag.as_ref().and_then(|(bytes, length)| bytes.get(..*length))
    }

    /// Writes the block that is asked for as a response, and hands it to `send`.
    pub(super) fn message<T, A>(
        &self,
        asked: Option<Block>,
        to: &Pending<A>,
        observe: Option<u32>,
        send: impl FnOnce(&Outgoing<'_>) -> T,
    ) -> Result<T, PastEnd> {
        let Answer { kind, code, body, .. } = *self.answer;
        let kind = kind.unwrap_or(to.kind);
        let whole = Piece { block: None, total: 0, payload: body };
        let is_success = code.class() == 2;
        let piece = if is_success || self.cut.cuts_all { self.cut.piece(body, asked)? } else { whole };
        let is_bare = piece.block.is_none() && to.block1.is_none() && observe.is_none() && !to.wants_size;
        if is_bare && self.etag.is_none() && self.echo.is_none() {
            let options = self.answer.options;
            return Ok(send(&Outgoing { kind, payload: piece.payload, ..Outgoing::confirmable(code, options) }));
        }
        let (block1, block2) = (to.block1.map(Block::value), piece.block.map(Block::value));
        let size2 = Some(Uint::new(piece.total)).filter(|_| to.wants_size && is_success);
        let observe = observe.map(Uint::new);
        // A smaller piece of a smaller block is a piece of the same representation.
        let own = [
            (number::ETAG, self.etag()),
            (number::OBSERVE, options::value(observe.as_ref())),
            (number::BLOCK2, options::value(block2.as_ref())),
            (number::BLOCK1, options::value(block1.as_ref())),
            (number::SIZE2, options::value(size2.as_ref())),
            (number::ECHO, self.echo.as_ref().map(|value| &value[..])),
        ];
        let merged = options::merge(self.answer.options.iter().copied(), &own);
        Ok(send(&Outgoing { kind, payload: piece.payload, ..Outgoing::confirmable(code, &merged) }))
    }
}

//! Answers and what is cut from them.

use alloc::vec::Vec;
use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::{Answer, options, server::Pending};
use crate::block::{Block, BlockSize, PastEnd, Piece, slice};
use crate::endpoint::Outgoing;
use crate::message::{Uint, number};

/// An answer with what is needed to cut it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Representation<'a> {
    pub(super) answer: &'a Answer<'a>,
    pub(super) size: BlockSize,
    /// Made for an answer of several blocks that has none. One body in four billions has that of another one.
    pub(super) etag: Option<[u8; 4]>,
}

impl<'a> Representation<'a> {
    pub(super) fn of(answer: &'a Answer<'a>, size: BlockSize) -> Self {
        let mut made = Self { answer, size, etag: None };
        if made.is_long() && !answer.options.iter().any(|(number, _)| *number == number::ETAG) {
            let mut hasher = SipHasher13::new();
            hasher.write(answer.body);
            let [a, b, c, d, ..] = hasher.finish().to_be_bytes();
            made.etag = Some([a, b, c, d]);
        }
        made
    }

    /// It needs several blocks. What is no success goes as it is: its body is a word to a human.
    pub(super) fn is_long(&self) -> bool {
        self.answer.code.class() == 2 && self.answer.body.len() > self.size.bytes() as usize
    }

    /// Its options with the ETag.
    pub(super) fn options(&self) -> Vec<(u16, &[u8])> {
        let etag = self.etag.as_ref().map(|etag| &etag[..]);
        options::merge(self.answer.options.iter().copied(), &[(number::ETAG, etag)])
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
        let piece = if is_success { slice(body, asked, self.size)? } else { whole };
        let is_bare = piece.block.is_none() && to.block1.is_none() && observe.is_none() && !to.wants_size;
        if is_bare && self.etag.is_none() {
            let options = self.answer.options;
            return Ok(send(&Outgoing { kind, payload: piece.payload, ..Outgoing::confirmable(code, options) }));
        }
        let (block1, block2) = (to.block1.map(Block::value), piece.block.map(Block::value));
        let size2 = Some(Uint::new(piece.total)).filter(|_| to.wants_size && is_success);
        let observe = observe.map(Uint::new);
        // A smaller piece of a smaller block is a piece of the same representation.
        let etag = self.etag.as_ref().map(|etag| &etag[..]);
        let own = [
            (number::ETAG, etag),
            (number::OBSERVE, options::value(observe.as_ref())),
            (number::BLOCK2, options::value(block2.as_ref())),
            (number::BLOCK1, options::value(block1.as_ref())),
            (number::SIZE2, options::value(size2.as_ref())),
        ];
        let merged = options::merge(self.answer.options.iter().copied(), &own);
        Ok(send(&Outgoing { kind, payload: piece.payload, ..Outgoing::confirmable(code, &merged) }))
    }
}

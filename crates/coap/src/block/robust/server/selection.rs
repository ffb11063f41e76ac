//! Which blocks of a body in the responses a request selects.

use alloc::vec::Vec;

use super::super::{
    super::{Block, BlockSize},
    Q_BLOCK2,
};
use crate::message::{Code, Message};

/// What the options Q-Block2 of a request ask for (RFC 9177 §4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlockSelection {
    /// The first block alone.
    First(BlockSize),
    /// The whole body.
    All(BlockSize),
    /// The sets from this block on: what is before has arrived.
    GoOn(Block),
    /// This block and the rest of its set.
    Rest(Block),
    /// These blocks, ascending.
    Blocks(Vec<u32>, BlockSize),
}

impl BlockSelection {
    /// What a request asks for in sets of `set`; none if it has no such option. More blocks than a few sets have are
    /// not looked at: the rest will be asked for again.
    ///
    /// # Errors
    /// The code to answer what cannot be.
    pub(super) fn read(message: &Message<'_>, set: u32) -> Result<Option<Self>, Code> {
        let set = set.max(1);
        let mut blocks = Vec::new();
        for value in message.values(Q_BLOCK2) {
            blocks.push(Block::read(value, false).map_err(|_| Code::BAD_REQUEST)?);
        }
        let Some(&first) = blocks.first() else { return Ok(None) };
        if blocks.len() == 1 && (first.more || first.number == 0) {
            return Ok(Some(match first.number {
                0 if first.more => Self::All(first.size),
                0 => Self::First(first.size),
                number if number.checked_rem(set) == Some(0) => Self::GoOn(first),
                _ => Self::Rest(first),
            }));
        }
        let ascends = blocks.iter().zip(blocks.iter().skip(1)).all(|(one, next)| one.number < next.number);
        if !ascends || blocks.iter().any(|block| block.size != first.size) {
            return Err(Code::BAD_REQUEST);
        }
        let most = set.saturating_mul(4) as usize;
        let mut numbers: Vec<u32> = Vec::new();
        for block in &blocks {
            let end = match block.more {
                false => block.number.saturating_add(1),
                true => block.number.checked_div(set).unwrap_or(0).saturating_add(1).saturating_mul(set),
            };
            // Each once, also where ranges overlap.
            let start = numbers.last().map_or(block.number, |last| block.number.max(last.saturating_add(1)));
            let room = most.saturating_sub(numbers.len());
            numbers.extend((start..end).take(room));
        }
        Ok(Some(Self::Blocks(numbers, first.size)))
    }

    /// One block of it.
    pub(super) fn alone(self) -> Self {
        match self {
            Self::First(size) | Self::All(size) => Self::First(size),
            Self::GoOn(Block { number, size, .. }) | Self::Rest(Block { number, size, .. }) => {
                Self::Blocks(Vec::from([number]), size)
            }
            Self::Blocks(mut numbers, size) => {
                numbers.truncate(1);
                Self::Blocks(numbers, size)
            }
        }
    }

    /// The largest blocks that may come.
    pub(super) const fn size(&self) -> BlockSize {
        match *self {
            Self::First(size) | Self::All(size) | Self::Blocks(_, size) => size,
            Self::GoOn(block) | Self::Rest(block) => block.size,
        }
    }

    /// Bytes held beside this value.
    pub(super) fn memory(&self) -> usize {
        if let Self::Blocks(numbers, _) = self { numbers.capacity().saturating_mul(size_of::<u32>()) } else { 0 }
    }

    /// Whether it asks for a representation anew, rather than for more of one.
    pub(super) const fn begins(&self) -> bool {
        matches!(self, Self::First(_) | Self::All(_))
    }
}

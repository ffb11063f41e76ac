use core::fmt;

use crate::message::Uint;

/// How much of a body one block holds: 16 to 1024 bytes, or several blocks of 1024 in one message over streams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u8);

impl BlockSize {
    /// 16 bytes.
    pub const B16: Self = Self(0);
    /// 32 bytes.
    pub const B32: Self = Self(1);
    /// 64 bytes.
    pub const B64: Self = Self(2);
    /// 128 bytes.
    pub const B128: Self = Self(3);
    /// 256 bytes.
    pub const B256: Self = Self(4);
    /// 512 bytes.
    pub const B512: Self = Self(5);
    /// 1024 bytes.
    pub const B1024: Self = Self(6);
    /// Several blocks of 1024 bytes in one message (BERT, RFC 8323 §6).
    pub const BERT: Self = Self(7);

    /// The size with this exponent (SZX), 0 to 7.
    #[must_use]
    pub const fn from_exponent(exponent: u8) -> Option<Self> {
        if exponent > 7 { None } else { Some(Self(exponent)) }
    }

    /// The largest size of at most so many bytes; 16 at least.
    #[must_use]
    pub const fn at_most(bytes: usize) -> Self {
        let mut size = Self::B1024;
        while size.0 > 0 && size.bytes() as usize > bytes {
            size.0 = size.0.saturating_sub(1);
        }
        size
    }

    /// Bytes of a block; 1024 for BERT, whose numbers count such blocks.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        1 << self.shift()
    }

    /// Whether a message may hold several blocks.
    #[must_use]
    pub const fn is_bert(self) -> bool {
        self.0 == 7
    }

    const fn shift(self) -> u32 {
        let exponent = if self.0 > 6 { 6 } else { self.0 };
        (exponent as u32).saturating_add(4)
    }
}

impl fmt::Debug for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_bert() { f.write_str("BERT") } else { write!(f, "{} B", self.bytes()) }
    }
}

/// The value of Block1 and Block2 (RFC 7959 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Number of the block, from 0 on; at most [`Block::MOST`].
    pub number: u32,
    /// More blocks follow.
    pub more: bool,
    /// Size of a block.
    pub size: BlockSize,
}

/// Why an option's value is no block. The answer is 4.00 (RFC 7959 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum BadBlock {
    /// More than three bytes.
    #[error("a block option has at most three bytes")]
    TooLong,
    /// Size exponent 7 where blocks of several were not agreed to.
    #[error("size exponent 7 is reserved unless the connection's settings allow BERT")]
    ReservedSize,
}

impl Block {
    /// The highest number.
    pub const MOST: u32 = (1 << 20) - 1;

    /// Reads an option's value. `bert`: the connection's settings allow several blocks in a message.
    ///
    /// # Errors
    /// What makes it no block.
    pub fn read(value: &[u8], bert: bool) -> Result<Self, BadBlock> {
        let bits = Uint::read(value).filter(|_| value.len() <= 3).ok_or(BadBlock::TooLong)?;
        let size = BlockSize((bits & 7) as u8);
        if size.is_bert() && !bert {
            return Err(BadBlock::ReservedSize);
        }
        Ok(Self { number: bits >> 4, more: bits & 8 != 0, size })
    }

    /// The option's value, in as few bytes as it takes.
    #[must_use]
    pub const fn value(self) -> Uint {
        let number = if self.number > Self::MOST { Self::MOST } else { self.number };
        Uint::new(number << 4 | (self.more as u32) << 3 | self.size.0 as u32)
    }

    /// Where in the body the block begins.
    #[must_use]
    pub const fn offset(self) -> u64 {
        (self.number as u64) << self.size.shift()
    }

    /// The block that begins at this byte of a body, which must be a multiple of the size; `None` beyond the highest
    /// number.
    pub(super) const fn at(offset: u64, more: bool, size: BlockSize) -> Option<Self> {
        let number = offset >> size.shift();
        if number > Self::MOST as u64 { None } else { Some(Self { number: number as u32, more, size }) }
    }

    /// Whether a payload of so many bytes is what the block says: full if more follow, else at most full.
    #[must_use]
    pub const fn fits(self, length: usize) -> bool {
        let size = self.size.bytes() as usize;
        match (self.size.is_bert(), self.more) {
            (false, true) => length == size,
            (false, false) => length <= size,
            (true, true) => length > 0 && length & (size.wrapping_sub(1)) == 0,
            (true, false) => true,
        }
    }
}

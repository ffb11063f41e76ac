use super::{Block, BlockSize};

/// A piece of a body for one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Option Block2; none if the whole body is in this response and nobody asked for blocks.
    pub block: Option<Block>,
    /// Option Size2: bytes of the whole body.
    pub total: u32,
    /// The payload.
    pub payload: &'a [u8],
}

/// A block was asked for that begins behind the end of the body. The answer is 4.00 (RFC 7959 §2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the block begins at byte {offset} of a body of {total}")]
pub struct PastEnd {
    /// First byte asked for.
    pub offset: u64,
    /// Bytes of the body.
    pub total: u32,
}

/// The piece of a body that a request asks for with its Block2, in blocks of at most `preferred`. Any block may be
/// asked for, in any order.
///
/// # Errors
/// A block behind the end.
pub fn slice(body: &[u8], asked: Option<Block>, preferred: BlockSize) -> Result<Piece<'_>, PastEnd> {
    slice_of_blocks(body, asked, preferred, 1)
}

/// The same for a connection that allows several blocks in a message ([`BlockSize::BERT`]): at most `blocks` of them.
///
/// # Errors
/// A block behind the end.
pub fn slice_of_blocks(
    body: &[u8],
    asked: Option<Block>,
    preferred: BlockSize,
    blocks: u32,
) -> Result<Piece<'_>, PastEnd> {
    let total = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let size = asked.map_or(preferred, |block| block.size.min(preferred));
    let most = usize::try_from(size.bytes()).unwrap_or(usize::MAX);
    let most = if size.is_bert() { most.saturating_mul(blocks.max(1) as usize) } else { most };
    let offset = asked.map_or(0, Block::offset);
    let past = PastEnd { offset, total };
    let rest = usize::try_from(offset).ok().and_then(|offset| body.get(offset..)).ok_or(past)?;
    if rest.is_empty() && offset > 0 {
        return Err(past);
    }
    let payload = rest.get(..most).unwrap_or(rest);
    let more = payload.len() < rest.len();
    let block = if asked.is_none() && !more { None } else { Some(Block::at(offset, more, size).ok_or(past)?) };
    Ok(Piece { block, total, payload })
}

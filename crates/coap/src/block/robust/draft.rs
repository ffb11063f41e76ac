//! Messages on their way into an endpoint, and what is read off those that come out.

use alloc::{collections::VecDeque, vec::Vec};

use super::super::{BadBlock, Block};
use crate::{
    ExchangeId, Outgoing, RetransmitOptions,
    message::{Code, Kind, Message, OptionList, Token, Uint, number},
};

/// A message of ours, with all that it holds.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    pub(crate) code: Code,
    options: OptionList,
    payload: Vec<u8>,
}

impl Draft {
    pub(crate) fn new(kind: Kind, code: Code, options: &OptionList) -> Self {
        Self { kind, code, options: options.clone(), payload: Vec::new() }
    }

    /// A non-confirmable message.
    pub(crate) fn plain(code: Code, options: &OptionList) -> Self {
        Self::new(Kind::NonConfirmable, code, options)
    }

    /// The same without options.
    pub(crate) fn bare(code: Code) -> Self {
        Self::plain(code, &OptionList::new())
    }

    /// With an option more, behind those of the same number.
    pub(crate) fn with(mut self, number: u16, value: &[u8]) -> Self {
        self.options = self.options.with(number, value);
        self
    }

    pub(crate) fn with_uint(self, number: u16, value: u32) -> Self {
        self.with(number, Uint::new(value).as_bytes())
    }

    pub(crate) fn with_block(self, number: u16, block: Block) -> Self {
        self.with(number, block.value().as_bytes())
    }

    /// The block that an option of this number says.
    pub(crate) fn block(&self, number: u16) -> Option<Block> {
        Block::read(self.options.get(number)?, false).ok()
    }

    /// Bytes held beside this value.
    pub(crate) fn memory(&self) -> usize {
        self.options.memory().saturating_add(self.payload.capacity())
    }

    /// Without the options of this number.
    pub(crate) fn without(mut self, number: u16) -> Self {
        self.options = self.options.only(|other| other != number);
        self
    }

    pub(crate) fn with_payload(self, payload: &[u8]) -> Self {
        Self { payload: payload.to_vec(), ..self }
    }

    /// Bytes of it on the wire, roughly.
    pub(crate) fn len(&self) -> usize {
        self.options.iter().fold(self.payload.len().saturating_add(16), |sum, (_, value)| {
            sum.saturating_add(value.len()).saturating_add(2)
        })
    }

    /// Hands it over in the form that an endpoint takes.
    pub(crate) fn lend<R>(&self, take: impl FnOnce(&Outgoing<'_>) -> R) -> R {
        let options = self.options.lend();
        take(&Outgoing {
            kind: self.kind,
            code: self.code,
            options: &options,
            payload: &self.payload,
            token: None,
            retransmit: RetransmitOptions::DEFAULT,
        })
    }
}

/// A token of so many bytes more than a prefix as the count needs, none for 0.
pub(crate) fn token_of(prefix: Token, count: u32) -> Token {
    let mut token = prefix;
    for byte in Uint::new(count).as_bytes() {
        token = token.followed_by(*byte).unwrap_or(token);
    }
    token
}

/// The options of a message to keep.
pub(crate) fn options_of(message: &Message<'_>, is_kept: impl Fn(u16) -> bool) -> OptionList {
    let options = message.options().map(|option| (option.number, option.value));
    OptionList::sorted(options.filter(|(number, _)| is_kept(*number)))
}

/// The first block of this number that a message has.
pub(crate) fn block_of(message: &Message<'_>, number: u16) -> Option<Result<Block, BadBlock>> {
    message.option(number).map(|value| Block::read(value, false))
}

pub(crate) fn uint_of(message: &Message<'_>, number: u16) -> Option<u32> {
    message.option(number).and_then(Uint::read)
}

/// Whether a message has any of those of RFC 7959 that must not stand beside them (RFC 9177 §4.1).
pub(crate) fn is_block_wise(message: &Message<'_>) -> bool {
    message.options().any(|option| matches!(option.number, number::BLOCK1 | number::BLOCK2))
}

/// The messages of a transfer that left last, of which a reset is understood.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent(VecDeque<ExchangeId>);

impl Recent {
    const MOST: usize = 32;

    pub(crate) fn push(&mut self, exchange: ExchangeId) {
        if self.0.len() >= Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back(exchange);
    }

    pub(crate) fn contains(&self, exchange: ExchangeId) -> bool {
        self.0.contains(&exchange)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn memory(&self) -> usize {
        self.0.capacity().saturating_mul(size_of::<ExchangeId>())
    }
}

/// A tag or ETag of so many bytes: counts up from anywhere, so that none comes again soon (RFC 9177 §4.3, §4.4).
pub(crate) fn tag_of(first: u64, made: u64, length: u8) -> Vec<u8> {
    let bytes = first.wrapping_add(made).to_be_bytes();
    let skipped = bytes.len().saturating_sub(usize::from(length.clamp(1, 8)));
    bytes.get(skipped..).unwrap_or_default().to_vec()
}

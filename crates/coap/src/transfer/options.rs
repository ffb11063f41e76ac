//! Options of messages: those of the application, and those that are the stack's own.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use super::Refused;
use crate::block::{BadBlock, Block};
use crate::layer::Room;
use crate::message::{Code, Message, Opt, OptionList, Uint, is_of_transfer, number, sort};

/// Refuses options that are the stack's own.
pub(super) fn check(options: &[(u16, &[u8])]) -> Result<(), Refused> {
    check_but(options, |_| false)
}

/// The same of an answer: who finds a body too long may say how long it may be (RFC 7959 §2.9.3).
pub(super) fn check_answer(code: Code, options: &[(u16, &[u8])]) -> Result<(), Refused> {
    check_but(options, |number| number == number::SIZE1 && code == Code::REQUEST_ENTITY_TOO_LARGE)
}

fn check_but(options: &[(u16, &[u8])], may_be: impl Fn(u16) -> bool) -> Result<(), Refused> {
    match options.iter().find(|(number, _)| is_of_transfer(*number) && !may_be(*number)) {
        Some((number, _)) => Err(Refused::OwnOption { number: *number }),
        None => Ok(()),
    }
}

/// The options of the application, to be kept.
pub(super) fn keep(options: &[(u16, &[u8])]) -> Result<OptionList, Refused> {
    check(options)?;
    Ok(OptionList::of(options)?)
}

/// Options of the application and of the stack's own in one ascending list.
pub(super) fn merge<'o>(
    theirs: impl IntoIterator<Item = (u16, &'o [u8])>,
    own: &[(u16, Option<&'o [u8]>)],
) -> Vec<(u16, &'o [u8])> {
    let own = own.iter().filter_map(|(number, value)| Some((*number, (*value)?)));
    let mut all: Vec<_> = theirs.into_iter().chain(own).collect();
    sort(&mut all);
    all
}

/// What a client or server of whole bodies reads of a message's options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read<'m> {
    /// Observe (RFC 7641 §2).
    pub observe: Option<u32>,
    /// Block1, if it is a block.
    pub block1: Option<Result<Block, BadBlock>>,
    /// Block2, if it is a block.
    pub block2: Option<Result<Block, BadBlock>>,
    /// Size1: bytes of a request's whole body, or the most that are taken.
    pub size1: Option<u32>,
    /// Size2: bytes of a response's whole body.
    pub size2: Option<u32>,
    /// The first ETag.
    pub etag: Option<&'m [u8]>,
    /// Content-Format.
    pub format: Option<u32>,
    /// Max-Age, seconds.
    pub max_age: Option<u32>,
    /// Echo (RFC 9175 §2).
    pub echo: Option<&'m [u8]>,
    /// The number of the first of Q-Block1 and Q-Block2 (RFC 9177 §4).
    pub q_block: Option<u16>,
    /// The number of the first critical option that is repeated or of a wrong length (RFC 7252 §5.4).
    pub illegal: Option<u16>,
}

impl<'m> Read<'m> {
    /// What it holds; in a stream of this room, several blocks may be in a message.
    #[must_use]
    pub fn of(message: &Message<'m>, room: Option<Room>) -> Self {
        let mut read = Self::default();
        let takes = room.is_some_and(|room| room.takes_bert);
        // What an answer says of our own blocks was agreed to when these left.
        let takes_own = if message.code.is_request() { takes } else { room.is_some() };
        let mut options = message.options().legal();
        while let Some((option, is_legal)) = options.judge() {
            if !is_legal {
                read.illegal = read.illegal.or(option.is_critical().then_some(option.number));
                continue;
            }
            match option.number {
                number::ETAG if read.etag.is_none() => read.etag = Some(option.value),
                number::CONTENT_FORMAT => read.format = option.uint(),
                number::OBSERVE => read.observe = option.uint(),
                number::MAX_AGE => read.max_age = option.uint(),
                number::BLOCK2 => read.block2 = Some(Block::read(option.value, takes)),
                number::BLOCK1 => read.block1 = Some(Block::read(option.value, takes_own)),
                number::SIZE2 => read.size2 = option.uint(),
                number::SIZE1 => read.size1 = option.uint(),
                number::ECHO => read.echo = Some(option.value),
                number::Q_BLOCK1 | number::Q_BLOCK2 => read.q_block = read.q_block.or(Some(option.number)),
                _ => {}
            }
        }
        read
    }
}

/// What tells requests for one representation from those for others: the code and all options that are part of a cache
/// key (RFC 7252 §5.4.6). To be hashed with a secret: behind a proxy, requests of different clients are of one peer, and
/// who finds two with the same hash could get what is another's.
pub(super) struct CacheKey<'m>(pub(super) &'m Message<'m>);

impl Hash for CacheKey<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // In as few words as distinguish one list from every other: a keyed hash takes its time for each.
        hasher.write_u8(self.0.code.to_byte());
        for option in self.0.options().filter(Opt::is_cache_key) {
            hasher.write_u64(u64::from(option.number) << 32 | option.value.len() as u64);
            hasher.write(option.value);
        }
    }
}

/// The value of an option that may be there.
pub(super) fn value(uint: Option<&Uint>) -> Option<&[u8]> {
    uint.map(Uint::as_bytes)
}

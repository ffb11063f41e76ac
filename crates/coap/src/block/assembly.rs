use alloc::vec::Vec;

use millpond_control::{Instant, Span};

use super::{Block, BlockSize};
use crate::quota::{Crowded, Source};

/// Bounds of what a server collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssemblyLimits {
    /// Bytes of one body.
    pub body: usize,
    /// Bodies being collected at a time.
    pub bodies: usize,
    /// A body that nothing came for in this time is dropped; EXCHANGE_LIFETIME of RFC 7252 §4.8.2 at the least.
    pub lifetime: Span,
    /// The largest blocks that are asked for.
    pub size: BlockSize,
}

impl Default for AssemblyLimits {
    /// 64 KiB a body, 64 bodies, 247 s, 1024 bytes.
    fn default() -> Self {
        Self { body: 65_536, bodies: 64, lifetime: Span::from_secs(247), size: BlockSize::B1024 }
    }
}

/// Bodies that come in the requests (Block1, RFC 7959 §2.5), from the server's side. `K` names a body: the peer, and
/// whatever of the request's options distinguishes one resource from another.
#[derive(Debug)]
pub struct Assemblies<K> {
    limits: AssemblyLimits,
    /// The one that nothing came for the longest stands first.
    bodies: Vec<Assembly<K>>,
}

#[derive(Debug)]
struct Assembly<K> {
    key: K,
    body: Vec<u8>,
    /// Bytes that the body had when it was whole and was handed over, and then its last block, if that is no longer than others.
    whole: Option<usize>,
    last: Vec<u8>,
    /// Requests that brought something new.
    came: u32,
    /// Whose it is.
    source: Source,
    touched: Instant,
}

/// What a block of a body leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Answer 2.31 with this as Block1.
    Continue(Block),
    /// The body is whole; answer the request, with this as Block1.
    Whole(Vec<u8>, Block),
    /// The body was whole before and its last block came again: answer as before, with this as Block1.
    Repeated(Block),
    /// Blocks before this one are missing: answer 4.08.
    Incomplete,
    /// The body is too long: answer 4.13, with this as Size1.
    TooLarge(u32),
    /// The block does not hold what its option says: answer 4.00.
    WrongLength,
}

impl<K: PartialEq> Assemblies<K> {
    /// Nothing collected.
    #[must_use]
    pub const fn new(limits: AssemblyLimits) -> Self {
        Self { limits, bodies: Vec::new() }
    }

    /// A request with Block1 came. `total` is its Size1. Block 0 always begins anew; a block that came before is
    /// answered as before.
    pub fn take(&mut self, now: Instant, key: K, block: Block, total: Option<u32>, payload: &[u8]) -> Verdict {
        self.take_of(now, key, Source::default(), block, total, payload)
    }

    /// The same from somebody. Where there is no place, the one that is [worth least](Self::drop_least) gives way.
    pub(crate) fn take_of(
        &mut self,
        now: Instant,
        key: K,
        source: Source,
        block: Block,
        total: Option<u32>,
        payload: &[u8],
    ) -> Verdict {
        self.expire(now);
        if !block.fits(payload.len()) {
            return Verdict::WrongLength;
        }
        let limit = self.limits.body;
        let most = u32::try_from(limit).unwrap_or(u32::MAX);
        let end = usize::try_from(block.offset()).unwrap_or(usize::MAX).saturating_add(payload.len());
        if end > limit || total.is_some_and(|total| total > most) {
            self.bodies.retain(|assembly| assembly.key != key);
            return Verdict::TooLarge(most);
        }
        let answer = Block { size: block.size.min(self.limits.size), ..block };
        let known = self.bodies.iter().position(|assembly| assembly.key == key);
        let mut assembly = match known.map(|index| self.bodies.remove(index)) {
            Some(assembly) => assembly,
            None if block.number > 0 => return Verdict::Incomplete,
            None => {
                if self.bodies.len() >= self.limits.bodies {
                    self.drop_least(|_| 1);
                }
                Assembly { key, body: Vec::new(), whole: None, last: Vec::new(), came: 0, source, touched: now }
            }
        };
        (assembly.touched, assembly.source) = (now, source);
        let verdict = assembly.take(block, answer, payload, end);
        self.bodies.push(assembly);
        verdict
    }

    /// Drops bodies that nothing came for.
    pub fn expire(&mut self, now: Instant) {
        let lifetime = self.limits.lifetime;
        self.bodies.retain(|assembly| now.since(assembly.touched) < lifetime);
    }

    /// When [`expire`](Self::expire) has something to do.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        self.bodies.first().map(|assembly| assembly.touched.after(self.limits.lifetime))
    }

    /// Drops bodies until all of them hold at most so many bytes.
    pub(crate) fn keep_within(&mut self, bytes: usize) {
        while self.memory() > bytes && self.drop_least(Assembly::memory) {}
    }

    /// Drops the body that is worth least: of those alike that of which the fewest blocks came, of these the one that nothing
    /// came for the longest. False if there is none.
    fn drop_least(&mut self, weigh: impl Fn(&Assembly<K>) -> usize) -> bool {
        let crowded = Crowded::among(self.bodies.iter().map(|assembly| (assembly.source, weigh(assembly))));
        let all = self.bodies.iter().enumerate();
        let least = crowded.least(all.map(|(place, assembly)| (place, assembly.source, assembly.came)));
        least.map(|place| self.bodies.remove(place)).is_some()
    }

    /// Drops the oldest bodies of an owner until one more makes at most so many, unless it is one that is there already.
    pub(crate) fn make_room_for(&mut self, key: &K, is_owners: impl Fn(&K) -> bool, most: usize) {
        if self.bodies.iter().any(|assembly| assembly.key == *key) {
            return;
        }
        let owned = self.bodies.iter().filter(|assembly| is_owners(&assembly.key)).count();
        for _ in most.max(1)..=owned {
            if let Some(place) = self.bodies.iter().position(|assembly| is_owners(&assembly.key)) {
                self.bodies.remove(place);
            }
        }
    }

    /// Drops the bodies of somebody.
    pub(crate) fn drop_of(&mut self, is_its: impl Fn(&K) -> bool) {
        self.bodies.retain(|assembly| !is_its(&assembly.key));
    }

    /// What the bodies are distinguished by.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.bodies.iter().map(|assembly| &assembly.key)
    }

    /// Bytes of bodies held; what their keys hold elsewhere is not counted.
    #[must_use]
    pub fn memory(&self) -> usize {
        let entries = self.bodies.capacity().saturating_mul(size_of::<Assembly<K>>());
        self.bodies.iter().fold(entries, |sum, assembly| sum.saturating_add(assembly.memory()))
    }
}

impl<K> Assembly<K> {
    /// Bytes held beside this value.
    fn memory(&self) -> usize {
        self.body.capacity().saturating_add(self.last.capacity())
    }

    fn take(&mut self, block: Block, answer: Block, payload: &[u8], end: usize) -> Verdict {
        let start = end.saturating_sub(payload.len());
        if self.whole == Some(end) && !block.more && start > 0 && self.last == payload {
            return Verdict::Repeated(answer);
        }
        if block.number == 0 {
            self.body.clear();
            self.last = Vec::new();
            self.whole = None;
            self.came = 0;
        } else if self.whole.is_some() {
            return Verdict::Incomplete;
        }
        let has = self.body.len();
        if start == has {
            self.came = self.came.saturating_add(1);
            self.body.extend_from_slice(payload);
        } else if start > has || self.body.get(start..end) != Some(payload) {
            return Verdict::Incomplete;
        }
        if block.more {
            return Verdict::Continue(answer);
        }
        self.whole = Some(end);
        // Those of several blocks are a stream's, where nothing comes twice.
        self.last = payload.get(..).filter(|_| !block.size.is_bert()).unwrap_or_default().to_vec();
        Verdict::Whole(core::mem::take(&mut self.body), answer)
    }
}

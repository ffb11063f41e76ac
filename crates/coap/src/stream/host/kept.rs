use alloc::{collections::VecDeque, vec::Vec};

use core::hash::Hasher;

use millpond_control::{Instant, Span};
use rustc_hash::FxHasher;

use crate::{
    block::robust::draft::{OwnedOptions, memory_of},
    message::{Code, number},
};

/// A whole answer of which blocks are cut.
#[derive(Debug)]
pub(super) struct Representation {
    key: Vec<u8>,
    pub(super) code: Code,
    /// Without ETag.
    pub(super) options: OwnedOptions,
    pub(super) etag: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// Of the key, so that few keys are looked at.
    hash: u64,
    touched: Instant,
}

impl Representation {
    /// With the ETag that is among the options, or with this one.
    pub(super) fn of(key: &[u8], code: Code, mut options: OwnedOptions, body: &[u8], etag: Vec<u8>) -> Self {
        let place = options.iter().position(|(number, _)| *number == number::ETAG);
        let etag = place.map_or(etag, |place| options.remove(place).1);
        let (key, body) = (key.to_vec(), body.to_vec());
        Self { hash: hash(&key), key, code, options, etag, body, touched: Instant::ORIGIN }
    }

    /// Bytes held, this value itself included.
    fn memory(&self) -> usize {
        let beside = self.key.capacity().saturating_add(self.etag.capacity()).saturating_add(self.body.capacity());
        size_of::<Self>().saturating_add(beside).saturating_add(memory_of(&self.options))
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    hasher.finish()
}

/// Representations kept for requests of their later blocks, the one that was asked for last in the end.
#[derive(Debug)]
pub(super) struct Kept {
    all: VecDeque<Representation>,
    bytes: usize,
    limit: usize,
    lifetime: Span,
}

impl Kept {
    pub(super) const fn new(limit: usize, lifetime: Span) -> Self {
        Self { all: VecDeque::new(), bytes: 0, limit, lifetime }
    }

    pub(super) fn find(&mut self, now: Instant, key: &[u8]) -> Option<&Representation> {
        let hash = hash(key);
        let place = self.all.iter().position(|kept| kept.hash == hash && kept.key == key)?;
        let mut kept = self.all.remove(place)?;
        kept.touched = now;
        self.all.push_back(kept);
        self.all.back()
    }

    /// Keeps a representation, instead of an older one under the same key and of those that were not asked for for the
    /// longest. One that has no room at all is not kept: its later blocks are cut from what the application answers then.
    pub(super) fn keep(&mut self, now: Instant, representation: Representation) {
        self.drop_where(|kept| kept.hash == representation.hash && kept.key == representation.key);
        let length = representation.memory();
        if length > self.limit {
            return;
        }
        while self.bytes.saturating_add(length) > self.limit {
            let Some(oldest) = self.all.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.memory());
        }
        self.bytes = self.bytes.saturating_add(length);
        self.all.push_back(Representation { touched: now, ..representation });
    }

    pub(super) fn expire(&mut self, now: Instant) {
        let lifetime = self.lifetime;
        self.drop_where(|kept| now >= kept.touched.after(lifetime));
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.all.front().map(|kept| kept.touched.after(self.lifetime))
    }

    pub(super) fn memory(&self) -> usize {
        let empty = self.all.capacity().saturating_sub(self.all.len());
        empty.saturating_mul(size_of::<Representation>()).saturating_add(self.bytes)
    }

    fn drop_where(&mut self, is_to_go: impl Fn(&Representation) -> bool) {
        self.all.retain(|kept| !is_to_go(kept));
        self.bytes = self.all.iter().fold(0, |sum, kept| sum.saturating_add(kept.memory()));
        if self.all.is_empty() {
            self.all = VecDeque::new();
        }
    }
}

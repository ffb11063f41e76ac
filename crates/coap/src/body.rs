//! Bodies that many hold at once.

// A processor without atomic swaps has no threads to share with.
#[cfg(not(target_has_atomic = "ptr"))]
use alloc::rc::{Rc as Arc, Weak};
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::{Arc, Weak};
use alloc::{boxed::Box, vec::Vec};
use core::{
    fmt,
    hash::{BuildHasher, Hasher},
    ops::Deref,
};

use hashbrown::{HashTable, hash_table::Entry};
use rustc_hash::FxBuildHasher;
use siphasher::sip::SipHasher13;

/// A body that is in memory once, however many hold it. To make it costs a hash of its bytes; from then on nothing costs by its
/// length: it is cloned, kept, and told from others by where it lies, and never copied or compared.
#[derive(Clone)]
pub struct SharedBody(Arc<Tagged<dyn AsRef<[u8]> + Send + Sync>>);

/// The same without holding it.
#[derive(Clone)]
pub struct WeakBody(Weak<Tagged<dyn AsRef<[u8]> + Send + Sync>>);

struct Tagged<B: ?Sized> {
    tag: u64,
    bytes: B,
}

impl SharedBody {
    /// Of what holds bytes, which must be the same each time that it is asked for them.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let tag = tag(bytes.as_ref());
        Self(Arc::new(Tagged { tag, bytes }))
    }

    /// Of these bytes, whose tag is known.
    pub(crate) fn copied(bytes: &[u8], tag: u64) -> Self {
        Self(Arc::new(Tagged { tag, bytes: Box::<[u8]>::from(bytes) }))
    }

    /// The hash of its bytes: alike in all that are alike.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.0.tag
    }

    /// Whether both are clones of one.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The same without holding it.
    #[must_use]
    pub fn downgrade(&self) -> WeakBody {
        WeakBody(Arc::downgrade(&self.0))
    }

    fn hash(&self) -> u64 {
        FxBuildHasher.hash_one(Arc::as_ptr(&self.0).addr())
    }
}

impl WeakBody {
    /// The body, if anybody still holds it.
    #[must_use]
    pub fn upgrade(&self) -> Option<SharedBody> {
        self.0.upgrade().map(SharedBody)
    }
}

impl Deref for SharedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes.as_ref()
    }
}

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for SharedBody {
    fn eq(&self, other: &Self) -> bool {
        self.is(other) || (self.tag() == other.tag() && **self == **other)
    }
}

impl Eq for SharedBody {}

impl fmt::Debug for SharedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBody({} bytes)", self.len())
    }
}

impl fmt::Debug for WeakBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakBody")
    }
}

/// What distinguishes a body from another one in an ETag.
pub(crate) fn tag(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish()
}

/// The body of an answer while it waits.
#[derive(Debug)]
pub(crate) enum HeldBody {
    Shared(SharedBody),
    Own(Vec<u8>),
}

impl HeldBody {
    pub(crate) fn of(bytes: &[u8], shared: Option<&SharedBody>) -> Self {
        shared.map_or_else(|| Self::Own(bytes.to_vec()), |shared| Self::Shared(shared.clone()))
    }

    pub(crate) const fn shared(&self) -> Option<&SharedBody> {
        match self {
            Self::Shared(body) => Some(body),
            Self::Own(_) => None,
        }
    }

    /// Bytes that nobody else holds.
    pub(crate) const fn own_bytes(&self) -> usize {
        match self {
            Self::Shared(_) => 0,
            Self::Own(bytes) => bytes.capacity(),
        }
    }
}

impl Deref for HeldBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Shared(body) => body,
            Self::Own(bytes) => bytes,
        }
    }
}

/// The shared bodies that are held somewhere, each counted once.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    /// With how many hold each.
    table: HashTable<(SharedBody, usize)>,
    bytes: usize,
}

impl Bodies {
    pub(crate) const fn new() -> Self {
        Self { table: HashTable::new(), bytes: 0 }
    }

    /// Bytes of all of them.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes held, the bodies included.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.saturating_add(self.table.allocation_size())
    }

    /// How many hold this one here.
    pub(crate) fn holders(&self, body: &SharedBody) -> usize {
        self.table.find(body.hash(), |(held, _)| held.is(body)).map_or(0, |(_, holders)| *holders)
    }

    /// Bytes that one more holder of it would cost.
    pub(crate) fn cost(&self, body: &SharedBody) -> usize {
        if self.holders(body) > 0 { 0 } else { body.len() }
    }

    /// Somebody holds it here.
    pub(crate) fn hold(&mut self, body: &SharedBody) {
        match self.table.entry(body.hash(), |(held, _)| held.is(body), |(held, _)| held.hash()) {
            Entry::Occupied(mut entry) => entry.get_mut().1 = entry.get().1.saturating_add(1),
            Entry::Vacant(entry) => {
                entry.insert((body.clone(), 1));
                self.bytes = self.bytes.saturating_add(body.len());
            }
        }
    }

    /// Somebody who held it does no more.
    pub(crate) fn release(&mut self, body: &SharedBody) {
        let Ok(mut entry) = self.table.find_entry(body.hash(), |(held, _)| held.is(body)) else { return };
        let holders = &mut entry.get_mut().1;
        *holders = holders.saturating_sub(1);
        if *holders == 0 {
            entry.remove();
            self.bytes = self.bytes.saturating_sub(body.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_counts_once_however_many_hold_it() {
        let mut bodies = Bodies::new();
        let (one, alike) = (SharedBody::new([7; 100]), SharedBody::new([7; 100]));
        assert_eq!((one.tag(), one.is(&alike), one.is(&one.clone())), (alike.tag(), false, true));
        for holders in 1..=3 {
            bodies.hold(&one.clone());
            assert_eq!((bodies.holders(&one), bodies.bytes(), bodies.cost(&one)), (holders, 100, 0));
        }
        assert_eq!(bodies.cost(&alike), 100);
        bodies.hold(&alike);
        (0..3).for_each(|_| bodies.release(&one));
        assert_eq!((bodies.bytes(), bodies.holders(&one), bodies.holders(&alike)), (100, 0, 1));
        let weak = one.downgrade();
        assert!(weak.upgrade().is_some_and(|held| held.is(&one)));
        drop(one);
        assert!(weak.upgrade().is_none(), "nothing is held that was released");
    }
}

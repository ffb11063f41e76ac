//! What a host remembers of its paths over a restart: temporal sharing in the words of RFC 9040 §6, of the one figure that is
//! worth it, the base round trip.
//!
//! Code that drives an [`Endpoint`](crate::Endpoint) keeps one of these, fills it from
//! [`base_rtt`](crate::Endpoint::base_rtt), puts its bytes where they outlive a restart, and tells a new endpoint what it knows of a
//! peer by [`recall`](crate::Endpoint::recall) before the first request to it:
//!
//! ```
//! use millpond_coap::Memory;
//! use millpond_control::Span;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Seconds of the wall clock.
//! let now = 1_795_000_000;
//! let mut memory = Memory::new();
//! memory.learn(b"192.0.2.7", Span::from_millis(640), now);
//! let bytes = memory.to_bytes();
//!
//! // … a restart …
//! let memory = Memory::from_bytes(&bytes)?;
//! assert_eq!(memory.base_rtt(b"192.0.2.7", now + 3_600), Some(Span::from_millis(640)));
//! assert_eq!(memory.base_rtt(b"192.0.2.7", now + Memory::LIFE + 1), None, "too old");
//! # Ok(())
//! # }
//! ```
//!
//! # The bytes
//!
//! A version, 1; the number of entries, 2 bytes; then each entry, by ascending keys: the length of its key, 1 byte; the key; the base round
//! trip in microseconds, 4 bytes; when it was learnt in seconds, 8 bytes. Numbers have their highest byte first. What is known
//! is written in one way only.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

use millpond_control::Span;

/// Base round trips by path. What a path is called is its owner's business: an address, say, with the name of the network from
/// which it was asked, if a host has several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    entries: BTreeMap<Box<[u8]>, Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    base_rtt: Span,
    /// Seconds.
    learned: u64,
}

/// Why bytes are no memory of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at} of what is remembered of paths: {why}; without it all of that is learnt anew")]
pub struct MemoryError {
    /// Where, counted from 0.
    pub at: usize,
    /// What is wrong there.
    pub why: &'static str,
}

impl Memory {
    /// Paths that are remembered; beyond that those learnt longest ago are forgotten.
    pub const MOST_PATHS: usize = 1_024;
    /// Bytes of the longest key.
    pub const LONGEST_KEY: usize = 255;
    /// Seconds for which something is worth remembering: a week, as long as a client may resume a session of TLS (RFC 8446 §4.6.1),
    /// and with that begin with the round-trip time of the connection before (RFC 9002 §6.2.2).
    pub const LIFE: u64 = 604_800;

    /// Nothing is remembered.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: BTreeMap::new() }
    }

    /// Paths that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is remembered of a path, unless that was learnt more than [`LIFE`](Self::LIFE) before `now`, in seconds of the wall
    /// clock. A clock that was set back by less than that changes nothing; one without a battery that always says the same has
    /// everything remembered for ever.
    #[must_use]
    pub fn base_rtt(&self, path: &[u8], now: u64) -> Option<Span> {
        self.entries.get(path).filter(|entry| entry.is_fresh(now)).map(|entry| entry.base_rtt)
    }

    /// Takes down what was measured on a path, in place of what was remembered of it, and forgets what is too old by then. `now` is
    /// when it was measured, in seconds of the wall clock. False, and nothing happens, if the key has more than
    /// [`LONGEST_KEY`](Self::LONGEST_KEY) bytes or no time at all was measured.
    pub fn learn(&mut self, path: &[u8], base_rtt: Span, now: u64) -> bool {
        if path.len() > Self::LONGEST_KEY || base_rtt == Span::ZERO {
            return false;
        }
        self.entries.retain(|_, entry| entry.is_fresh(now));
        if self.entries.len() >= Self::MOST_PATHS && !self.entries.contains_key(path) {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.learned).map(|(key, _)| key.clone());
            self.entries.remove(&oldest.unwrap_or_default());
        }
        self.entries.insert(path.into(), Entry { base_rtt, learned: now });
        true
    }

    /// All of it, to be kept over a restart: at most 275 kB, and some twenty bytes for each path by an address of IPv4.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // MOST_PATHS and LONGEST_KEY fit what they are written in.
        let mut bytes = [&[VERSION][..], &(self.entries.len() as u16).to_be_bytes()].concat();
        for (key, Entry { base_rtt, learned }) in &self.entries {
            bytes.push(key.len() as u8);
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&base_rtt.as_micros().to_be_bytes());
            bytes.extend_from_slice(&learned.to_be_bytes());
        }
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// The bytes are something else, or cut off, or those of a later version. A caller that cannot fix that goes on with
    /// [`new`](Self::new).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MemoryError> {
        let mut source = Source { bytes, at: 0 };
        if source.take::<1>()? != [VERSION] {
            return Err(MemoryError { at: 0, why: "a version that is not known" });
        }
        let count = usize::from(u16::from_be_bytes(source.take()?));
        if count > Self::MOST_PATHS {
            return Err(MemoryError { at: 1, why: "more paths than are remembered" });
        }
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let at = source.at;
            let [length] = source.take()?;
            let key: Box<[u8]> = source.slice(usize::from(length))?.into();
            if entries.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(MemoryError { at, why: "a path out of order" });
            }
            let at = source.at;
            let base_rtt = Span::from_micros(u32::from_be_bytes(source.take()?));
            if base_rtt == Span::ZERO {
                return Err(MemoryError { at, why: "a round trip of no time at all" });
            }
            entries.insert(key, Entry { base_rtt, learned: u64::from_be_bytes(source.take()?) });
        }
        if source.at < bytes.len() {
            return Err(MemoryError { at: source.at, why: "more than the paths that were announced" });
        }
        Ok(Self { entries })
    }
}

const VERSION: u8 = 1;

impl Entry {
    const fn is_fresh(&self, now: u64) -> bool {
        now.abs_diff(self.learned) <= Memory::LIFE
    }
}

/// Bytes that are read from the first to the last.
struct Source<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Source<'b> {
    fn slice(&mut self, length: usize) -> Result<&'b [u8], MemoryError> {
        let end = self.at.saturating_add(length);
        let slice =
            self.bytes.get(self.at..end).ok_or(MemoryError { at: self.bytes.len(), why: "it ends too early" })?;
        self.at = end;
        Ok(slice)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], MemoryError> {
        let mut taken = [0; N];
        taken.copy_from_slice(self.slice(N)?);
        Ok(taken)
    }
}

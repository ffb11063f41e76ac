//! What a host remembers of its paths over a restart: temporal sharing in the words of RFC 9040 §6, of the one figure that is
//! worth it, the base round trip; and the backoff after attempts to reach a peer that failed.
//!
//! Code that drives an [`Endpoint`](crate::Endpoint) keeps one of these, fills it from
//! [`base_rtt`](crate::Endpoint::base_rtt), puts its bytes where they outlive a restart, and tells a new endpoint what it knows of a
//! peer by [`recall`](crate::Endpoint::recall) before the first request to it:
//!
//! ```
//! use millpond_coap::PathCache;
//! use millpond_control::Span;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Seconds of the wall clock.
//! let now = 1_795_000_000;
//! let mut memory = PathCache::new();
//! memory.learn(b"192.0.2.7", Span::from_millis(640), now);
//! let bytes = memory.to_bytes();
//!
//! // … a restart …
//! let memory = PathCache::from_bytes(&bytes)?;
//! assert_eq!(memory.base_rtt(b"192.0.2.7", now + 3_600), Some(Span::from_millis(640)));
//! assert_eq!(memory.base_rtt(b"192.0.2.7", now + PathCache::LIFE + 1), None, "too old");
//! # Ok(())
//! # }
//! ```
//!
//! # The bytes
//!
//! A version, 1 or, where there are backoffs, 2; the number of entries, 2 bytes; then each entry, by ascending keys: the length of its key,
//! 1 byte; the key; the base round trip in microseconds, 4 bytes; when it was learnt in seconds, 8 bytes. In version 2 the number of
//! backoffs follows in the same way, and each: its key; failures, 4 bytes; the pause in milliseconds, 4 bytes; when it began in seconds,
//! 8 bytes. Numbers have their highest byte first. What is known is written in one way only.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use core::time::Duration;

use millpond_control::Span;

/// Base round trips and backoffs by path. What a path is called is its owner's business: an address, say, with the name of the network from
/// which it was asked, if a host has several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathCache {
    entries: BTreeMap<Box<[u8]>, Entry>,
    backoffs: BTreeMap<Box<[u8]>, Backoff>,
}

/// How often in a row somebody could not be reached, and the pause before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Attempts that failed in a row.
    pub failures: u32,
    /// The pause, in whole milliseconds.
    pub pause: Duration,
    /// When it began, in seconds of the wall clock.
    pub since: u64,
}

impl Backoff {
    /// What is left of the pause: all of it by a clock that has gone back since.
    #[must_use]
    pub const fn left(&self, now: u64) -> Duration {
        self.pause.saturating_sub(Duration::from_secs(now.saturating_sub(self.since)))
    }
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
pub struct PathCacheError {
    /// Where, counted from 0.
    pub at: usize,
    /// What is wrong there.
    pub why: &'static str,
}

impl PathCache {
    /// Paths that are remembered; beyond that those learnt longest ago are forgotten.
    pub const MOST_PATHS: usize = 1_024;
    /// Bytes of the longest key.
    pub const LONGEST_KEY: usize = 255;
    /// Bytes of all that may be remembered.
    pub const MOST_BYTES: usize =
        3 + Self::MOST_PATHS * (1 + Self::LONGEST_KEY + 12) + 2 + Self::MOST_PATHS * (1 + Self::LONGEST_KEY + 16);
    /// Seconds for which something is worth remembering: a week, as long as a client may resume a session of TLS (RFC 8446 §4.6.1),
    /// and with that begin with the round-trip time of the connection before (RFC 9002 §6.2.2).
    pub const LIFE: u64 = 604_800;
    /// The longest pause: whatever the clock says, nobody waits longer for what was remembered. An hour, the longest Max-Age that is worth
    /// believing, and half of it by chance.
    pub const LONGEST_PAUSE: Duration = Duration::from_secs(5_400);

    /// Nothing is remembered.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: BTreeMap::new(), backoffs: BTreeMap::new() }
    }

    /// Paths of which the base round trip is remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.backoffs.is_empty()
    }

    /// The backoffs that are remembered, but those that began more than [`LIFE`](Self::LIFE) before `now`, in seconds of the wall clock.
    pub fn backoffs(&self, now: u64) -> impl Iterator<Item = (&[u8], Backoff)> {
        let is_fresh = move |backoff: &Backoff| now.saturating_sub(backoff.since) <= Self::LIFE;
        self.backoffs.iter().filter(move |(_, backoff)| is_fresh(backoff)).map(|(key, backoff)| (&key[..], *backoff))
    }

    /// Remembers these backoffs and no others: at most [`MOST_PATHS`](Self::MOST_PATHS), those that began last, of keys that are not too
    /// long, and each with a pause of at most [`LONGEST_PAUSE`](Self::LONGEST_PAUSE).
    pub fn set_backoffs(&mut self, all: impl IntoIterator<Item = (Vec<u8>, Backoff)>) {
        let mut all: Vec<_> = all.into_iter().filter(|(key, _)| key.len() <= Self::LONGEST_KEY).collect();
        all.sort_by_key(|(_, backoff)| core::cmp::Reverse(backoff.since));
        all.truncate(Self::MOST_PATHS);
        let whole = |pause: Duration| Duration::from_millis(pause.min(Self::LONGEST_PAUSE).as_millis() as u64);
        let bounded = |backoff: Backoff| Backoff { pause: whole(backoff.pause), ..backoff };
        self.backoffs = all.into_iter().map(|(key, backoff)| (key.into(), bounded(backoff))).collect();
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

    /// All of it, to be kept over a restart: at most [`MOST_BYTES`](Self::MOST_BYTES), and some twenty bytes for each path by an address of
    /// IPv4.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // MOST_PATHS and LONGEST_KEY fit what they are written in, and LONGEST_PAUSE as well.
        let version = if self.backoffs.is_empty() { VERSION } else { WITH_BACKOFFS };
        let mut bytes = [&[version][..], &(self.entries.len() as u16).to_be_bytes()].concat();
        for (key, Entry { base_rtt, learned }) in &self.entries {
            bytes.push(key.len() as u8);
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&base_rtt.as_micros().to_be_bytes());
            bytes.extend_from_slice(&learned.to_be_bytes());
        }
        if !self.backoffs.is_empty() {
            bytes.extend_from_slice(&(self.backoffs.len() as u16).to_be_bytes());
        }
        for (key, Backoff { failures, pause, since }) in &self.backoffs {
            bytes.push(key.len() as u8);
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&failures.to_be_bytes());
            bytes.extend_from_slice(&(pause.as_millis() as u32).to_be_bytes());
            bytes.extend_from_slice(&since.to_be_bytes());
        }
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// The bytes are something else, or cut off, or those of a later version. A caller that cannot fix that goes on with
    /// [`new`](Self::new).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PathCacheError> {
        let mut source = Source { bytes, at: 0 };
        let [version] = source.take()?;
        if ![VERSION, WITH_BACKOFFS].contains(&version) {
            return Err(PathCacheError { at: 0, why: "a version that is not known" });
        }
        let entries = source.by_path(|source| {
            let at = source.at;
            let base_rtt = Span::from_micros(u32::from_be_bytes(source.take()?));
            if base_rtt == Span::ZERO {
                return Err(PathCacheError { at, why: "a round trip of no time at all" });
            }
            Ok(Entry { base_rtt, learned: u64::from_be_bytes(source.take()?) })
        })?;
        let mut backoffs = BTreeMap::new();
        if version == WITH_BACKOFFS {
            let at = source.at;
            backoffs = source.by_path(|source| {
                let failures = u32::from_be_bytes(source.take()?);
                let at = source.at;
                let pause = Duration::from_millis(u32::from_be_bytes(source.take()?).into());
                if pause > Self::LONGEST_PAUSE {
                    return Err(PathCacheError { at, why: "a pause of more than 90 minutes" });
                }
                Ok(Backoff { failures, pause, since: u64::from_be_bytes(source.take()?) })
            })?;
            if backoffs.is_empty() {
                return Err(PathCacheError { at, why: "no backoffs, in the version that has some" });
            }
        }
        if source.at < bytes.len() {
            return Err(PathCacheError { at: source.at, why: "more than the paths that were announced" });
        }
        Ok(Self { entries, backoffs })
    }
}

const VERSION: u8 = 1;
const WITH_BACKOFFS: u8 = 2;

impl Entry {
    const fn is_fresh(&self, now: u64) -> bool {
        now.abs_diff(self.learned) <= PathCache::LIFE
    }
}

/// Bytes that are read from the first to the last.
struct Source<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Source<'b> {
    fn slice(&mut self, length: usize) -> Result<&'b [u8], PathCacheError> {
        let end = self.at.saturating_add(length);
        let slice =
            self.bytes.get(self.at..end).ok_or(PathCacheError { at: self.bytes.len(), why: "it ends too early" })?;
        self.at = end;
        Ok(slice)
    }

    /// Entries by ascending keys, behind their number.
    fn by_path<T>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T, PathCacheError>,
    ) -> Result<BTreeMap<Box<[u8]>, T>, PathCacheError> {
        let at = self.at;
        let count = usize::from(u16::from_be_bytes(self.take()?));
        if count > PathCache::MOST_PATHS {
            return Err(PathCacheError { at, why: "more paths than are remembered" });
        }
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let at = self.at;
            let [length] = self.take()?;
            let key: Box<[u8]> = self.slice(usize::from(length))?.into();
            if entries.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(PathCacheError { at, why: "a path out of order" });
            }
            let entry = read(self)?;
            entries.insert(key, entry);
        }
        Ok(entries)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], PathCacheError> {
        let mut taken = [0; N];
        taken.copy_from_slice(self.slice(N)?);
        Ok(taken)
    }
}

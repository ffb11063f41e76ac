//! What is kept of representations (RFC 7252 §5.6): fresh ones need no request, stale ones are asked about by their ETag.

use alloc::{collections::BTreeMap, vec::Vec};
use core::time::Duration;

use millpond_control::Instant;

use crate::message::{Code, is_cache_key};

/// What an entry takes beside its bytes, about.
const OVERHEAD: usize = 200;

const MICROS: u64 = 1_000_000;

/// What a request asks for, as far as it matters to a cache (RFC 7252 §5.6).
// The lengths and the resource first, so that all of one are beside one another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheKey {
    /// So many of the bytes name the server, and so many the resource; the rest is of the request.
    origin: usize,
    resource: usize,
    bytes: Vec<u8>,
}

impl CacheKey {
    /// Of a request by this method with these options, in the order of their numbers, beside those that name the resource. Of the bytes
    /// that do, the first `origin` say which server has it.
    #[must_use]
    pub fn new<'o>(
        method: Code,
        resource: Vec<u8>,
        origin: usize,
        options: impl Iterator<Item = (u16, &'o [u8])>,
        payload: &[u8],
    ) -> Self {
        let (length, mut bytes) = (resource.len(), resource);
        bytes.push(method.to_byte());
        for (number, value) in options.filter(|(number, _)| is_cache_key(*number)) {
            bytes.extend(number.to_be_bytes());
            bytes.extend(value.len().to_be_bytes());
            bytes.extend_from_slice(value);
        }
        // No option has this number.
        bytes.extend([0, 0]);
        bytes.extend_from_slice(payload);
        Self { origin: origin.min(length), resource: length, bytes }
    }

    /// Nothing is changed by such a request, and its answer may be kept (RFC 8132 §2 for FETCH).
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.bytes.get(self.resource).is_some_and(|method| [Code::GET, Code::FETCH].map(Code::to_byte).contains(method))
    }

    /// Whose representation it is.
    fn origin(&self) -> &[u8] {
        self.bytes.get(..self.origin).unwrap_or_default()
    }

    fn resource(&self) -> &[u8] {
        self.bytes.get(..self.resource).unwrap_or_default()
    }

    fn is_of_resource_of(&self, other: &Self) -> bool {
        (self.origin, self.resource()) == (other.origin, other.resource())
    }
}

/// An answer that may be kept.
pub trait Answer: Clone {
    /// Its code.
    fn code(&self) -> Code;
    /// Its ETag.
    fn etag(&self) -> Option<&[u8]>;
    /// For how many seconds it is fresh: 60 where it does not say (RFC 7252 §5.10.5).
    fn max_age(&self) -> u32;
    /// Bytes of it, about.
    fn weight(&self) -> usize;
    /// The same as it is given when so many seconds of its Max-Age are left.
    #[must_use]
    fn aged(&self, left: u32) -> Self;
    /// The same, which this answer by 2.03 says is good still.
    #[must_use]
    fn renewed(&self, by: &Self) -> Self;
}

#[derive(Debug)]
struct Entry<A> {
    answer: A,
    /// When it was given, or found good still.
    since: Instant,
    fresh_until: Instant,
    bytes: usize,
    used: u64,
}

/// What is kept for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cached<A> {
    /// The answer, with the Max-Age that is left of it.
    Fresh(A),
    /// One that was good, and may still be, and for how long it is not fresh any more.
    Stale(A, Duration),
}

/// Representations by their freshness (RFC 7252 §5.6), the most recently used ones. Where there is no room, servers that have more than
/// their share of it lose theirs first.
#[derive(Debug)]
pub struct Cache<A> {
    entries: BTreeMap<CacheKey, Entry<A>>,
    /// Bytes of each server.
    origins: BTreeMap<Vec<u8>, usize>,
    uses: u64,
    bytes: usize,
    limit: usize,
}

impl<A: Answer> Cache<A> {
    /// An empty one that takes so many bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { entries: BTreeMap::new(), origins: BTreeMap::new(), uses: 0, bytes: 0, limit }
    }

    /// Bytes that it holds, about.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is kept for a request.
    pub fn get(&mut self, now: Instant, key: &CacheKey) -> Option<Cached<A>> {
        let entry = self.entries.get_mut(key)?;
        self.uses = self.uses.saturating_add(1);
        entry.used = self.uses;
        let left = micros(entry.fresh_until, now) / MICROS;
        Some(match u32::try_from(left).unwrap_or(u32::MAX) {
            0 => Cached::Stale(entry.answer.clone(), Duration::from_micros(micros(now, entry.fresh_until))),
            left => Cached::Fresh(entry.answer.aged(left)),
        })
    }

    /// For how long what is kept for a request has been kept, since it was last found good.
    #[must_use]
    pub fn age(&self, now: Instant, key: &CacheKey) -> Option<Duration> {
        self.entries.get(key).map(|entry| Duration::from_micros(micros(now, entry.since)))
    }

    /// An answer came to a request for which this was kept. Returns the answer for who asked.
    pub fn take(&mut self, now: Instant, key: &CacheKey, kept: Option<&A>, answer: A) -> A {
        if !key.is_safe() {
            if answer.code().is_success() {
                self.changed(key);
            }
            return answer;
        }
        let answer = match kept {
            Some(kept) if answer.code() == Code::VALID && is_same(kept, &answer) => kept.renewed(&answer),
            _ => answer,
        };
        if answer.code() == Code::CONTENT {
            self.put(now, key, &answer);
        }
        answer
    }

    /// A request was carried out, or may have been. If it may have changed something, what is kept of its resource is dropped.
    pub fn changed(&mut self, key: &CacheKey) {
        if key.is_safe() {
            return;
        }
        let from = CacheKey { bytes: key.resource().to_vec(), ..*key };
        let from = self.entries.range(from..).map(|(key, _)| key);
        let of_it: Vec<CacheKey> = from.take_while(|it| it.is_of_resource_of(key)).cloned().collect();
        for key in of_it {
            self.remove(&key);
        }
    }

    fn put(&mut self, now: Instant, key: &CacheKey, answer: &A) {
        self.remove(key);
        let lasts = u64::from(answer.max_age()).saturating_mul(MICROS);
        let fresh_until = now.as_micros().checked_add(lasts).map(Instant::from_micros);
        let bytes = key.bytes.len().saturating_add(answer.weight()).saturating_add(OVERHEAD);
        let is_of_use = answer.max_age() > 0 || answer.etag().is_some();
        let (Some(fresh_until), true) = (fresh_until, is_of_use && bytes <= self.limit) else { return };
        self.uses = self.uses.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        let entry = Entry { answer: answer.clone(), since: now, fresh_until, bytes, used: self.uses };
        self.entries.insert(key.clone(), entry);
        let of_origin = self.origins.entry(key.origin().to_vec()).or_default();
        *of_origin = of_origin.saturating_add(bytes);
        if self.bytes > self.limit {
            self.make_room();
        }
    }

    /// Drops an eighth, the least recently used first, of servers that have more than that of their share.
    fn make_room(&mut self) {
        let enough = (self.limit / 8).saturating_mul(7);
        let share = enough.checked_div(self.origins.len()).unwrap_or(enough);
        let mut oldest: Vec<_> = self.entries.iter().map(|(key, entry)| (entry.used, key.clone())).collect();
        oldest.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in oldest {
            if self.bytes <= enough {
                return;
            }
            if self.origins.get(key.origin()).is_some_and(|bytes| *bytes > share) {
                self.remove(&key);
            }
        }
    }

    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes = self.bytes.saturating_sub(entry.bytes);
            if let Some(bytes) = self.origins.get_mut(key.origin()) {
                *bytes = bytes.saturating_sub(entry.bytes);
                if *bytes == 0 {
                    self.origins.remove(key.origin());
                }
            }
        }
    }
}

/// From one point to a later one; spans end at 71 minutes.
const fn micros(later: Instant, earlier: Instant) -> u64 {
    later.as_micros().saturating_sub(earlier.as_micros())
}

/// The answer says that what is kept is good still. Without an ETag of its own it means the one that was asked about.
fn is_same<A: Answer>(kept: &A, answer: &A) -> bool {
    let etag = answer.etag();
    etag.is_none() || etag == kept.etag()
}

#[cfg(test)]
mod tests {
    use std::string::String;

    use super::*;

    /// An answer of 1,000 bytes, if not said otherwise.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Told {
        code: Code,
        etag: Option<Vec<u8>>,
        max_age: u32,
        weight: usize,
    }

    const CONTENT: Told = Told { code: Code::CONTENT, etag: None, max_age: 60, weight: 1_000 };

    impl Told {
        fn with(max_age: u32, etag: &str) -> Self {
            Self { max_age, etag: Some(etag.into()), ..CONTENT }
        }
    }

    impl Answer for Told {
        fn code(&self) -> Code {
            self.code
        }

        fn etag(&self) -> Option<&[u8]> {
            self.etag.as_deref()
        }

        fn max_age(&self) -> u32 {
            self.max_age
        }

        fn weight(&self) -> usize {
            self.weight
        }

        fn aged(&self, left: u32) -> Self {
            Self { max_age: left, ..self.clone() }
        }

        fn renewed(&self, by: &Self) -> Self {
            self.aged(by.max_age)
        }
    }

    const START: Instant = Instant::from_micros(7);

    fn after(seconds: u64) -> Instant {
        Instant::from_micros(START.as_micros() + seconds * MICROS)
    }

    /// Of a server's name, which ends at the slash, and a path.
    fn by(method: Code, resource: &str) -> CacheKey {
        let origin = resource.find('/').unwrap();
        CacheKey::new(method, String::from(resource).into_bytes(), origin, core::iter::empty(), b"")
    }

    fn key(resource: &str) -> CacheKey {
        by(Code::GET, resource)
    }

    #[test]
    fn what_is_fresh_is_given_with_the_age_that_is_left_and_what_is_stale_is_asked_about() {
        let (mut cache, key, answer) = (Cache::new(10_000), key("h/a"), Told::with(30, "1"));
        cache.take(START, &key, None, answer.clone());
        assert_eq!(cache.get(after(10), &key), Some(Cached::Fresh(answer.aged(20))));
        assert_eq!(cache.age(after(10), &key), Some(Duration::from_secs(10)));
        assert_eq!(cache.get(after(30), &key), Some(Cached::Stale(answer.clone(), Duration::ZERO)));
        let valid = Told { code: Code::VALID, ..Told::with(5, "1") };
        assert_eq!(cache.take(after(31), &key, Some(&answer), valid), answer.aged(5));
        assert_eq!(cache.get(after(35), &key), Some(Cached::Fresh(answer.aged(1))));
        assert_eq!(cache.get(after(40), &key), Some(Cached::Stale(answer.aged(5), Duration::from_secs(4))));
    }

    #[test]
    fn an_answer_of_max_age_0_is_of_use_only_if_it_can_be_asked_about() {
        let mut cache = Cache::new(10_000);
        cache.take(START, &key("h/a"), None, CONTENT);
        assert!(matches!(cache.get(after(59), &key("h/a")), Some(Cached::Fresh(_))));
        assert!(matches!(cache.get(after(60), &key("h/a")), Some(Cached::Stale(..))));
        cache.take(START, &key("h/b"), None, CONTENT.aged(0));
        assert_eq!(cache.get(START, &key("h/b")), None);
        cache.take(START, &key("h/b"), None, Told::with(0, "2"));
        assert!(matches!(cache.get(START, &key("h/b")), Some(Cached::Stale(..))));
    }

    #[test]
    fn errors_are_not_kept_and_changes_end_what_is_kept_of_that_resource_alone() {
        let mut cache = Cache::new(10_000);
        cache.take(START, &key("h/a"), None, Told { code: Code::NOT_FOUND, ..CONTENT });
        assert_eq!(cache.get(START, &key("h/a")), None);
        let others = ["h/a?x", "h/b", "g/a"];
        for resource in ["h/a"].into_iter().chain(others) {
            cache.take(START, &key(resource), None, CONTENT);
        }
        cache.take(START, &by(Code::FETCH, "h/a"), None, CONTENT);
        let put = by(Code::PUT, "h/a");
        cache.take(START, &put, None, Told { code: Code::FORBIDDEN, ..CONTENT });
        assert!(cache.get(START, &key("h/a")).is_some(), "nothing was changed");
        cache.take(START, &put, None, Told { code: Code::CHANGED, ..CONTENT });
        for gone in [key("h/a"), by(Code::FETCH, "h/a")] {
            assert_eq!(cache.get(START, &gone), None);
        }
        for resource in others {
            assert!(cache.get(START, &key(resource)).is_some(), "{resource}");
        }
    }

    #[test]
    fn what_was_used_longest_ago_gives_way_and_what_is_too_long_is_not_taken() {
        let mut cache = Cache::new(3_000);
        for resource in ["h/a", "h/b"] {
            cache.take(START, &key(resource), None, CONTENT);
        }
        assert!(cache.get(START, &key("h/a")).is_some());
        cache.take(START, &key("h/c"), None, CONTENT);
        assert_eq!(cache.get(START, &key("h/b")), None);
        assert!(cache.get(START, &key("h/a")).is_some() && cache.get(START, &key("h/c")).is_some());
        cache.take(START, &key("h/d"), None, Told { weight: 3_000, ..CONTENT });
        assert_eq!(cache.get(START, &key("h/d")), None);
        assert!(cache.bytes <= cache.limit);
    }

    #[test]
    fn who_has_more_than_a_share_loses_first() {
        let mut cache = Cache::new(40_000);
        for resource in ["quiet/a", "quiet/b", "other:7/a"] {
            cache.take(START, &key(resource), None, CONTENT);
        }
        for number in 0..1_000 {
            cache.take(START, &key(&std::format!("loud/{number}")), None, CONTENT);
        }
        for resource in ["quiet/a", "quiet/b", "other:7/a", "loud/999"] {
            assert!(cache.get(START, &key(resource)).is_some(), "{resource}");
        }
        assert!(cache.bytes <= cache.limit && cache.origins.values().sum::<usize>() == cache.bytes);
        assert_eq!(cache.origins.len(), 3);
    }
}

//! What a client keeps of representations (RFC 7252 §5.6): fresh ones need no request, stale ones are asked about by their
//! ETag. Time is an argument.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use millpond_coap::message::{Code, is_cache_key, number};
use tokio::time::Instant;

use crate::{Options, Response, Uri};

/// What an entry takes beside its bytes, about.
const OVERHEAD: usize = 200;

/// What a request asks for, as far as it matters to a cache (RFC 7252 §5.6).
// The URI first, so that all of one are beside one another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheKey {
    uri: String,
    rest: Vec<u8>,
}

impl CacheKey {
    /// Of a request by this method with these options, beside those of the URI.
    #[must_use]
    pub fn of(method: Code, uri: &Uri, options: &Options, payload: &Bytes) -> Self {
        let mut rest = vec![method.to_byte()];
        for (number, value) in options.iter().filter(|(number, _)| is_cache_key(*number)) {
            rest.extend(number.to_be_bytes());
            rest.extend(value.len().to_be_bytes());
            rest.extend_from_slice(value);
        }
        // No option has this number.
        rest.extend([0, 0]);
        rest.extend_from_slice(payload);
        Self { uri: uri.to_string(), rest }
    }

    /// Nothing is changed by such a request, and its answer may be kept (RFC 8132 §2 for FETCH).
    fn is_safe(&self) -> bool {
        self.rest.first().is_some_and(|method| [Code::GET, Code::FETCH].map(Code::to_byte).contains(method))
    }

    const fn bytes(&self) -> usize {
        self.uri.len() + self.rest.len()
    }

    /// Scheme and authority: whose representation it is.
    fn origin(&self) -> &str {
        let path = self.uri.find("://").and_then(|at| Some(at + 3 + self.uri.get(at + 3..)?.find('/')?));
        path.and_then(|path| self.uri.get(..path)).unwrap_or(&self.uri)
    }
}

#[derive(Debug)]
struct Entry {
    response: Response,
    /// When it was given, or found good still.
    since: Instant,
    fresh_until: Instant,
    bytes: usize,
    used: u64,
}

/// What is kept for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The answer, with the Max-Age that is left of it.
    Fresh(Response),
    /// One that was good, and may still be, and for how long it is not fresh any more.
    Stale(Response, Duration),
}

/// Representations by their freshness (RFC 7252 §5.6), the most recently used ones. Where there is no room, servers that have more than
/// their share of it lose theirs first.
#[derive(Debug)]
pub struct Cache {
    entries: BTreeMap<CacheKey, Entry>,
    /// Keys by when they were used.
    order: BTreeMap<u64, CacheKey>,
    /// Bytes of each server.
    origins: BTreeMap<String, usize>,
    uses: u64,
    bytes: usize,
    limit: usize,
}

impl Cache {
    /// An empty one that takes so many bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { entries: BTreeMap::new(), order: BTreeMap::new(), origins: BTreeMap::new(), uses: 0, bytes: 0, limit }
    }

    /// Bytes that it holds, about.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is kept for a request.
    pub fn get(&mut self, now: Instant, key: &CacheKey) -> Option<Kept> {
        let entry = self.entries.get_mut(key)?;
        self.order.remove(&entry.used);
        self.uses += 1;
        entry.used = self.uses;
        self.order.insert(self.uses, key.clone());
        let left = entry.fresh_until.saturating_duration_since(now).as_secs();
        Some(match u32::try_from(left).unwrap_or(u32::MAX) {
            0 => Kept::Stale(entry.response.clone(), now.saturating_duration_since(entry.fresh_until)),
            left => Kept::Fresh(entry.response.clone().with_max_age(left).with_exchange(None)),
        })
    }

    /// For how long what is kept for a request has been kept, since it was last found good.
    #[must_use]
    pub fn age(&self, now: Instant, key: &CacheKey) -> Option<Duration> {
        self.entries.get(key).map(|entry| now.saturating_duration_since(entry.since))
    }

    /// An answer came to a request for which this was kept. Returns the answer for who asked.
    pub fn take(&mut self, now: Instant, key: &CacheKey, kept: Option<&Response>, answer: Response) -> Response {
        if !key.is_safe() {
            if answer.is_success() {
                self.changed(key);
            }
            return answer;
        }
        let answer = match kept {
            Some(kept) if answer.code() == Code::VALID && is_same(kept, &answer) => {
                kept.clone().with_max_age(answer.max_age()).with_exchange(answer.exchange().copied())
            }
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
        let from = CacheKey { uri: key.uri.clone(), rest: Vec::new() };
        let of_it: Vec<CacheKey> =
            self.entries.range(from..).map(|(key, _)| key.clone()).take_while(|it| it.uri == key.uri).collect();
        for key in of_it {
            self.remove(&key);
        }
    }

    fn put(&mut self, now: Instant, key: &CacheKey, answer: &Response) {
        self.remove(key);
        let fresh_until = now.checked_add(answer.freshness());
        let bytes = OVERHEAD + 2 * key.bytes() + answer.weight();
        let is_of_use = answer.max_age() > 0 || answer.options().get(number::ETAG).is_some();
        let (Some(fresh_until), true) = (fresh_until, is_of_use && bytes <= self.limit) else { return };
        self.uses += 1;
        self.bytes += bytes;
        self.order.insert(self.uses, key.clone());
        let entry = Entry { response: answer.clone(), since: now, fresh_until, bytes, used: self.uses };
        self.entries.insert(key.clone(), entry);
        *self.origins.entry(key.origin().to_owned()).or_default() += bytes;
        if self.bytes > self.limit {
            self.make_room();
        }
    }

    /// Drops an eighth, the least recently used first, of servers that have more than that of their share.
    fn make_room(&mut self) {
        let enough = self.limit / 8 * 7;
        let share = enough / self.origins.len().max(1);
        let oldest: Vec<CacheKey> = self.order.values().cloned().collect();
        for key in oldest {
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
            self.order.remove(&entry.used);
            self.bytes -= entry.bytes;
            if let Some(bytes) = self.origins.get_mut(key.origin()) {
                *bytes -= entry.bytes;
                if *bytes == 0 {
                    self.origins.remove(key.origin());
                }
            }
        }
    }
}

/// The answer says that what is kept is good still. Without an ETag of its own it means the one that was asked about.
fn is_same(kept: &Response, answer: &Response) -> bool {
    let etag = answer.options().get(number::ETAG);
    etag.is_none() || etag == kept.options().get(number::ETAG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(uri: &str) -> CacheKey {
        CacheKey::of(Code::GET, &uri.parse().unwrap(), &Options::new(), &Bytes::new())
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_fresh_is_given_with_the_age_that_is_left_and_what_is_stale_is_asked_about() {
        let (mut cache, start, key) = (Cache::new(10_000), Instant::now(), key("coap://h/a"));
        let answer = Response::content("x").with_etag("1").with_max_age(30);
        cache.take(start, &key, None, answer.clone());
        assert_eq!(cache.get(after(start, 10), &key), Some(Kept::Fresh(answer.clone().with_max_age(20))));
        assert_eq!(cache.get(after(start, 30), &key), Some(Kept::Stale(answer.clone(), Duration::ZERO)));
        let valid = Response::new(Code::VALID).with_etag("1").with_max_age(5);
        let again = cache.take(after(start, 31), &key, Some(&answer), valid);
        assert_eq!(again, answer.clone().with_max_age(5));
        assert_eq!(cache.get(after(start, 35), &key), Some(Kept::Fresh(answer.with_max_age(1))));
    }

    #[test]
    fn an_answer_without_max_age_is_fresh_for_a_minute_and_one_of_0_only_if_it_can_be_asked_about() {
        let (mut cache, start) = (Cache::new(10_000), Instant::now());
        cache.take(start, &key("coap://h/a"), None, Response::content("x"));
        assert!(matches!(cache.get(after(start, 59), &key("coap://h/a")), Some(Kept::Fresh(_))));
        assert!(matches!(cache.get(after(start, 60), &key("coap://h/a")), Some(Kept::Stale(..))));
        cache.take(start, &key("coap://h/b"), None, Response::content("x").with_max_age(0));
        assert_eq!(cache.get(start, &key("coap://h/b")), None);
        cache.take(start, &key("coap://h/b"), None, Response::content("x").with_max_age(0).with_etag("2"));
        assert!(matches!(cache.get(start, &key("coap://h/b")), Some(Kept::Stale(..))));
    }

    #[test]
    fn errors_are_not_kept_and_changes_end_what_is_kept_of_that_resource_alone() {
        let (mut cache, start) = (Cache::new(10_000), Instant::now());
        cache.take(start, &key("coap://h/a"), None, Response::not_found());
        assert_eq!(cache.get(start, &key("coap://h/a")), None);
        for uri in ["coap://h/a", "coap://h/a?x", "coap://h/b", "coap://g/a"] {
            cache.take(start, &key(uri), None, Response::content("x"));
        }
        let put = CacheKey::of(Code::PUT, &"coap://h/a".parse().unwrap(), &Options::new(), &Bytes::from("new"));
        cache.take(start, &put, None, Response::new(Code::FORBIDDEN));
        assert!(cache.get(start, &key("coap://h/a")).is_some(), "nothing was changed");
        cache.take(start, &put, None, Response::changed());
        assert_eq!(cache.get(start, &key("coap://h/a")), None);
        for uri in ["coap://h/a?x", "coap://h/b", "coap://g/a"] {
            assert!(cache.get(start, &key(uri)).is_some(), "{uri}");
        }
    }

    #[test]
    fn what_was_used_longest_ago_gives_way_and_what_is_too_long_is_not_taken() {
        let (mut cache, start) = (Cache::new(3_000), Instant::now());
        let body = || Response::content(vec![0; 1_000]);
        for uri in ["coap://h/a", "coap://h/b"] {
            cache.take(start, &key(uri), None, body());
        }
        assert!(cache.get(start, &key("coap://h/a")).is_some());
        cache.take(start, &key("coap://h/c"), None, body());
        assert_eq!(cache.get(start, &key("coap://h/b")), None);
        assert!(cache.get(start, &key("coap://h/a")).is_some() && cache.get(start, &key("coap://h/c")).is_some());
        cache.take(start, &key("coap://h/d"), None, Response::content(vec![0; 3_000]));
        assert_eq!(cache.get(start, &key("coap://h/d")), None);
        assert!(cache.bytes <= cache.limit && cache.order.len() == cache.entries.len());
    }

    /// One server's representations leave those of others alone.
    #[test]
    fn who_has_more_than_a_share_loses_first() {
        let (mut cache, start) = (Cache::new(40_000), Instant::now());
        for uri in ["coap://quiet/a", "coap://quiet/b", "coap://other:7/a"] {
            cache.take(start, &key(uri), None, Response::content(vec![0; 1_000]));
        }
        for number in 0..1_000 {
            cache.take(start, &key(&format!("coap://loud/{number}")), None, Response::content(vec![0; 1_000]));
        }
        for uri in ["coap://quiet/a", "coap://quiet/b", "coap://other:7/a", "coap://loud/999"] {
            assert!(cache.get(start, &key(uri)).is_some(), "{uri}");
        }
        assert!(cache.bytes <= cache.limit && cache.origins.values().sum::<usize>() == cache.bytes);
        assert_eq!(cache.origins.len(), 3);
    }

    /// A byte each in a datagram.
    #[test]
    fn options_without_a_value_are_counted_in_what_is_kept() {
        let (mut cache, start) = (Cache::new(100_000), Instant::now());
        let answer = (0..1_000).fold(Response::content("x"), |answer, _| answer.with_option(number::LOCATION_PATH, ""));
        for number in 0..100 {
            cache.take(start, &key(&format!("coap://h/{number}")), None, answer.clone());
        }
        let held: usize = cache.entries.values().map(|entry| entry.response.weight()).sum();
        assert!(held > 0 && held <= cache.limit, "{held} bytes");
    }

    #[test]
    fn requests_that_may_get_something_else_are_told_apart() {
        let uri = "coap://h/a".parse().unwrap();
        let of = |method, options: &[(u16, &'static str)], payload: &'static str| {
            CacheKey::of(method, &uri, &options.iter().copied().collect(), &Bytes::from(payload))
        };
        let plain = of(Code::GET, &[], "");
        assert_eq!(of(Code::GET, &[(number::ETAG, "1"), (number::BLOCK2, "2")], ""), plain);
        for other in [of(Code::GET, &[(number::ACCEPT, "2")], ""), of(Code::FETCH, &[], ""), of(Code::GET, &[], "x")] {
            assert_ne!(other, plain);
        }
    }
}

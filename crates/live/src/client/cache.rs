//! What a client keeps of representations (RFC 7252 §5.6): fresh ones need no request, stale ones are asked about by their ETag.

use bytes::Bytes;
use millpond_coap::{
    message::{Code, number},
    proxy::{self, Answer},
};

use crate::{Host, Options, Response, Uri};

/// Representations by their freshness (RFC 7252 §5.6).
pub type Cache = proxy::Cache<Response>;
/// What is kept for a request.
pub type Cached = proxy::Cached<Response>;
pub use millpond_coap::proxy::CacheKey;

/// What a request by this method with these options asks for, beside those of the URI.
#[must_use]
pub fn cache_key(method: Code, uri: &Uri, options: &Options, payload: &Bytes) -> CacheKey {
    let mut resource = Vec::with_capacity(ROOM);
    resource.push(uri.transport() as u8);
    resource.extend(uri.port().to_be_bytes());
    match uri.host() {
        Host::Name(name) => put_part(&mut resource, 0, name.as_bytes()),
        Host::V4(ip) => put_part(&mut resource, 4, &ip.octets()),
        Host::V6(ip, zone) => {
            put_part(&mut resource, 6, &ip.octets());
            put_part(&mut resource, 0, zone.as_deref().unwrap_or_default().as_bytes());
        }
    }
    key_behind(resource, (uri.path(), uri.query()), (method, options, payload))
}

/// The same of what has no URI of CoAP that is its own: whose it is, and by which path and query that one has it.
#[must_use]
pub fn cache_key_of(
    owner: &str,
    path_and_query: (&[String], &[String]),
    (method, options, payload): (Code, &Options, &Bytes),
) -> CacheKey {
    let mut resource = Vec::with_capacity(ROOM);
    // No transport has this number.
    resource.push(u8::MAX);
    put_part(&mut resource, 0, owner.as_bytes());
    key_behind(resource, path_and_query, (method, options, payload))
}

/// Bytes of most resources' names.
const ROOM: usize = 64;

fn key_behind(
    mut resource: Vec<u8>,
    (path, query): (&[String], &[String]),
    (method, options, payload): (Code, &Options, &Bytes),
) -> CacheKey {
    let origin = resource.len();
    path.iter().for_each(|segment| put_part(&mut resource, number::URI_PATH, segment.as_bytes()));
    query.iter().for_each(|part| put_part(&mut resource, number::URI_QUERY, part.as_bytes()));
    let options = options.iter().map(|(number, value)| (number, &value[..]));
    CacheKey::new(method, resource, origin, options, payload)
}

fn put_part(resource: &mut Vec<u8>, kind: u16, part: &[u8]) {
    resource.extend(kind.to_be_bytes());
    resource.extend(part.len().to_be_bytes());
    resource.extend_from_slice(part);
}

impl Answer for Response {
    fn code(&self) -> Code {
        self.code()
    }

    fn etag(&self) -> Option<&[u8]> {
        self.options().get(number::ETAG).map(|etag| &etag[..])
    }

    fn max_age(&self) -> u32 {
        self.max_age()
    }

    fn weight(&self) -> usize {
        self.weight()
    }

    fn aged(&self, left: u32) -> Self {
        self.clone().with_max_age(left).with_exchange(None)
    }

    fn renewed(&self, by: &Self) -> Self {
        self.clone().with_max_age(by.max_age()).with_exchange(by.exchange().copied())
    }
}

#[cfg(test)]
mod tests {
    use millpond_control::Instant;

    use super::*;

    fn key(uri: &str) -> CacheKey {
        cache_key(Code::GET, &uri.parse().unwrap(), &Options::new(), &Bytes::new())
    }

    #[test]
    fn an_answer_has_the_age_that_is_left_and_the_options_that_it_had() {
        let (mut cache, start, key) = (Cache::new(10_000), Instant::ORIGIN, key("coap://h/a"));
        let answer = Response::content("x").with_etag("1").with_max_age(30);
        cache.take(start, &key, None, answer.clone());
        let later = Instant::from_micros(10_000_000);
        assert_eq!(cache.get(later, &key), Some(Cached::Fresh(answer.clone().with_max_age(20))));
        let valid = Response::new(Code::VALID).with_etag("1").with_max_age(5);
        assert_eq!(cache.take(later, &key, Some(&answer), valid), answer.with_max_age(5));
    }

    /// One server's representations leave those of others alone.
    #[test]
    fn servers_are_told_apart_by_scheme_and_authority() {
        let (mut cache, start) = (Cache::new(40_000), Instant::ORIGIN);
        let quiet = ["coap://quiet/a", "coaps://loud/a", "coap://loud:7/a"];
        for uri in quiet {
            cache.take(start, &key(uri), None, Response::content(vec![0; 1_000]));
        }
        for number in 0..1_000 {
            cache.take(start, &key(&format!("coap://loud/{number}")), None, Response::content(vec![0; 1_000]));
        }
        assert!(quiet.iter().all(|uri| cache.get(start, &key(uri)).is_some()));
    }

    /// A byte each in a datagram.
    #[test]
    fn options_without_a_value_are_counted_in_what_is_kept() {
        let (mut cache, start) = (Cache::new(100_000), Instant::ORIGIN);
        let answer = (0..1_000).fold(Response::content("x"), |answer, _| answer.with_option(number::LOCATION_PATH, ""));
        for number in 0..100 {
            cache.take(start, &key(&format!("coap://h/{number}")), None, answer.clone());
        }
        let kept = (0..100).filter_map(|number| match cache.get(start, &key(&format!("coap://h/{number}"))) {
            Some(Cached::Fresh(answer)) => Some(answer.weight()),
            _ => None,
        });
        let held: usize = kept.sum();
        assert!(held > 0 && held <= 100_000, "{held} bytes");
    }

    #[test]
    fn requests_that_may_get_something_else_are_told_apart() {
        let uri = "coap://h/a".parse().unwrap();
        let of = |method, options: &[(u16, &'static str)], payload: &'static str| {
            cache_key(method, &uri, &options.iter().copied().collect(), &Bytes::from(payload))
        };
        let plain = of(Code::GET, &[], "");
        assert_eq!(of(Code::GET, &[(number::ETAG, "1"), (number::BLOCK2, "2")], ""), plain);
        for other in [of(Code::GET, &[(number::ACCEPT, "2")], ""), of(Code::FETCH, &[], ""), of(Code::GET, &[], "x")] {
            assert_ne!(other, plain);
        }
    }
}

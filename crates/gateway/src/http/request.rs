//! What a request of HTTP asks for, in the words of CoAP (RFC 7252 §10.2, RFC 8075 §5 and §6).
//!
//! Whatever two readers could understand differently is refused.

use std::net::SocketAddr;

use hyper::{
    HeaderMap, Version,
    header::{self, HeaderName},
    http::{request::Parts, uri::Authority},
};
use millpond_live::{Bytes, Code, Options, Uri, number};

use super::{
    codes,
    media::{Accepts, MediaType},
};
use crate::{
    asked::{HOP_LIMIT, Wanted},
    refusal::Refusal,
    target::Target,
    upload::Payload,
};

/// A request whose body is still to be read.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) method: Code,
    host: Option<String>,
    path: Vec<String>,
    query: Vec<String>,
    pub(super) named: Option<Named>,
    hop_limit: u8,
    options: Options,
    pub(super) payload: Payload,
    pub(super) accepts: Accepts,
    /// Tags of what the client has.
    pub(super) has: Vec<Bytes>,
    pub(super) has_body: bool,
    /// The origin of the page that asks, if that is not the gateway itself.
    pub(super) origin: Option<String>,
}

/// What a client names, and by which words.
#[derive(Clone, Debug)]
pub(super) struct Named {
    target: Target,
    /// In the path at the gateway (RFC 8075 §5.3), and not as the target of the request (RFC 7252 §10.2).
    pub(super) is_in_path: bool,
}

/// Below this path a client names whom it asks (RFC 8075 §5.3).
pub(super) const MAPPED: &str = "/hc/";
/// Tags that are looked at.
const MOST_TAGS: usize = 16;

impl Read {
    pub(super) fn head(head: &Parts) -> Result<Self, Refusal> {
        let headers = &head.headers;
        for name in [header::HOST, header::CONTENT_TYPE, header::CONTENT_ENCODING, header::ORIGIN] {
            if headers.get_all(&name).iter().nth(1).is_some() {
                return Err(bad(format!("{name} stands there twice")));
            }
        }
        let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter().map(|coding| coding.as_bytes());
        if codings.next().is_some_and(|first| !first.eq_ignore_ascii_case(b"chunked")) || codings.next().is_some() {
            return Err(bad("Transfer-Encoding is chunked, once, or is not there"));
        }
        let method = codes::method(&head.method).ok_or_else(|| {
            Refusal::new(Code::NOT_IMPLEMENTED, "known methods are GET, HEAD, POST, PUT, DELETE, PATCH and QUERY")
        })?;
        let host = text(headers, &header::HOST)?.map(authority).transpose()?;
        if host.is_none() && head.version >= Version::HTTP_11 {
            return Err(bad("Host is missing"));
        }
        let (named, path, query) = target(head, host.as_ref())?;
        let is_safe = matches!(method, Code::GET | Code::FETCH);
        let length = text(headers, &header::CONTENT_LENGTH)?.unwrap_or("0");
        let has_body = !length.trim_start_matches('0').is_empty() || headers.contains_key(header::TRANSFER_ENCODING);
        if has_body && matches!(method, Code::GET | Code::DELETE) {
            return Err(bad("GET, HEAD and DELETE have no body"));
        }
        if headers.contains_key(header::CONTENT_RANGE) {
            return Err(bad("CoAP has no ranges: Content-Range says that this is a part of a body"));
        }
        let mut options = Options::new();
        let coding = text(headers, &header::CONTENT_ENCODING)?.unwrap_or_default().trim().to_ascii_lowercase();
        let coding = if coding == "identity" { String::new() } else { coding };
        if let Some(given) = text(headers, &header::CONTENT_TYPE)? {
            let format = MediaType::read(given).and_then(|media_type| media_type.content_format(&coding));
            let unknown = || {
                let coded = if coding.is_empty() { String::new() } else { format!(" coded as {coding:?}") };
                Refusal::new(Code::UNSUPPORTED_CONTENT_FORMAT, format!("{given:?}{coded} is no Content-Format"))
            };
            options.add_uint(number::CONTENT_FORMAT, format.ok_or_else(unknown)?.into());
        } else if method == Code::FETCH {
            return Err(bad("QUERY wants Content-Type"));
        } else if !coding.is_empty() {
            return Err(Refusal::new(Code::UNSUPPORTED_CONTENT_FORMAT, "a content coding wants Content-Type"));
        }
        match tags(headers, &header::IF_MATCH, false)? {
            None => {}
            Some(Tags::Any) => options.add(number::IF_MATCH, Bytes::new()),
            Some(Tags::These(tags)) if tags.is_empty() => {
                return Err(Refusal::new(Code::PRECONDITION_FAILED, "If-Match has no tag that is of a device"));
            }
            Some(Tags::These(tags)) => tags.into_iter().for_each(|tag| options.add(number::IF_MATCH, tag)),
        }
        let mut has = Vec::new();
        match tags(headers, &header::IF_NONE_MATCH, true)? {
            None => {}
            Some(Tags::These(tags)) if is_safe => has = tags,
            Some(Tags::Any) if !is_safe => options.add(number::IF_NONE_MATCH, Bytes::new()),
            Some(Tags::Any) => {}
            Some(Tags::These(_)) => {
                let why = "CoAP knows If-None-Match: * alone of what changes something";
                return Err(Refusal::new(Code::NOT_IMPLEMENTED, why));
            }
        }
        let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let origin = text(headers, &header::ORIGIN)?.filter(|origin| !is_same(origin, host.as_ref()));
        Ok(Self {
            method,
            host: host.map(|host| host.host().trim_matches(['[', ']']).to_ascii_lowercase()),
            path,
            query,
            named,
            hop_limit: HOP_LIMIT.saturating_sub(passed(headers)),
            options,
            payload: Payload::Whole(Bytes::new()),
            accepts: Accepts::read(accepts),
            has,
            has_body,
            origin: origin.map(str::to_owned),
        })
    }

    /// The options of a request for this Content-Format.
    pub(super) fn options(&self, format: Option<u16>) -> Options {
        let mut options = self.options.clone();
        if let Some(format) = format {
            options.add_uint(number::ACCEPT, format.into());
        }
        options
    }

    pub(super) fn wanted<'r>(&'r self, peer: SocketAddr, options: &'r Options) -> Wanted<'r> {
        Wanted {
            method: self.method,
            peer,
            // A connection shows that.
            is_validated: true,
            // Who asks by HTTP does not show who it is.
            identity: None,
            host: self.host.as_deref(),
            path: &self.path,
            query: &self.query,
            named: self.named.as_ref().map(|named| &named.target),
            hop_limit: self.hop_limit,
            options,
            payload: &self.payload,
            takes_streams: true,
        }
    }
}

fn bad(why: impl Into<String>) -> Refusal {
    Refusal::new(Code::BAD_REQUEST, why)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Refusal> {
    let read = |value: &'h header::HeaderValue| value.to_str().map_err(|_| bad(format!("{name} is no ASCII")));
    headers.get(name).map(read).transpose()
}

/// A host and its port.
fn authority(text: &str) -> Result<Authority, Refusal> {
    let read = text.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'));
    read.ok_or_else(|| bad("Host is no host"))
}

/// What the client names, or the path and query at the gateway.
type Led = (Option<Named>, Vec<String>, Vec<String>);

/// Whom the request is for, and which path.
fn target(head: &Parts, host: Option<&Authority>) -> Result<Led, Refusal> {
    let target = &head.uri;
    let path = target.path_and_query().map_or("/", |path| path.as_str());
    let scheme = target.scheme_str().unwrap_or_default();
    if scheme.starts_with("coap") {
        let authority = target.authority().map_or("", Authority::as_str);
        let uri = read_uri(&format!("{scheme}://{authority}"), path)?;
        return Ok((Some(Named { target: Target::coap(uri), is_in_path: false }), Vec::new(), Vec::new()));
    }
    match (scheme, target.authority()) {
        ("", None) => {}
        ("http" | "https", Some(authority)) if host == Some(authority) => {}
        ("http" | "https", _) => return Err(bad("Host is not the host of the target")),
        _ => return Err(Refusal::new(Code::PROXYING_NOT_SUPPORTED, "this gateway asks by coap alone for HTTP")),
    }
    if !path.starts_with('/') {
        return Err(bad("the target is no path"));
    }
    let mapped = path.strip_prefix(MAPPED).and_then(|mapped| mapped.split_once("://"));
    if let Some((scheme, rest)) =
        mapped.filter(|(scheme, _)| scheme.starts_with("coap") && !scheme.contains(['/', '?']))
    {
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        // Those of an IPv6 address must be encoded there (RFC 8075 §5.3.2).
        let authority = authority.replace("%5B", "[").replace("%5b", "[").replace("%5D", "]").replace("%5d", "]");
        let uri = read_uri(&format!("{scheme}://{authority}"), path)?;
        return Ok((Some(Named { target: Target::coap(uri), is_in_path: true }), Vec::new(), Vec::new()));
    }
    let uri = read_uri("coap://gateway", path)?;
    Ok((None, uri.path().to_vec(), uri.query().to_vec()))
}

fn read_uri(before: &str, path: &str) -> Result<Uri, Refusal> {
    let segments = path.split('?').next().unwrap_or_default();
    if segments.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(bad("the path has a segment of dots"));
    }
    let uri: Uri = format!("{before}{path}").parse().map_err(|error: millpond_live::UriError| match error {
        // That of the gateway was made up.
        millpond_live::UriError::Malformed { why, .. } => bad(format!("target: {why}")),
        error => bad(format!("target: {error}")),
    })?;
    match uri.path().iter().chain(uri.query()).any(|part| part.contains(char::is_control)) {
        true => Err(bad("the target has control characters")),
        false => Ok(uri),
    }
}

/// How many proxies a request has passed (RFC 9110 §7.6.3).
fn passed(headers: &HeaderMap) -> u8 {
    let entries = headers.get_all(header::VIA).iter().map(|via| via.as_bytes().split(|byte| *byte == b',').count());
    u8::try_from(entries.sum::<usize>()).unwrap_or(u8::MAX)
}

/// Whether a page is of the gateway itself.
fn is_same(origin: &str, host: Option<&Authority>) -> bool {
    let of = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    of.is_some_and(|of| host.is_some_and(|host| host.as_str().eq_ignore_ascii_case(of)))
}

enum Tags {
    Any,
    /// Those that can be of a device: others are of nothing that is here.
    These(Vec<Bytes>),
}

fn tags(headers: &HeaderMap, name: &HeaderName, takes_weak: bool) -> Result<Option<Tags>, Refusal> {
    if !headers.contains_key(name) {
        return Ok(None);
    }
    let mut these = Vec::new();
    for value in headers.get_all(name) {
        let value = value.to_str().map_err(|_| bad(format!("{name} is no ASCII")))?;
        if value.trim() == "*" {
            return Ok(Some(Tags::Any));
        }
        // No tag of a device has a comma in it.
        for tag in value.split(',').map(str::trim) {
            let strong = tag.strip_prefix("W/").filter(|_| takes_weak).unwrap_or(tag);
            let inner = strong.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'));
            these.extend(inner.and_then(from_hex));
        }
    }
    these.truncate(MOST_TAGS);
    Ok(Some(Tags::These(these)))
}

/// A tag as `response` writes it.
fn from_hex(text: &str) -> Option<Bytes> {
    if !(2..=16).contains(&text.len()) || !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair.first()?)? * 16 + digit(pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(method: &str, target: &str, headers: &[(&str, &[u8])]) -> Option<Parts> {
        let request = hyper::Request::builder().method(method).uri(target);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Some(request.body(()).ok()?.into_parts().0)
    }

    proptest! {
        /// What is read of a target says one thing alone, whatever it is.
        #[test]
        fn targets_are_read_in_one_way(path in "/?(hc/coap://)?[a-z0-9%/.?&=:@#\\[\\]+]{0,40}") {
            let Some(head) = head("GET", &path, &[("host", b"gate")]) else { return Ok(()) };
            let Ok(read) = Read::head(&head) else { return Ok(()) };
            let named = read.named.as_ref().map(|named| &named.target.uri);
            let path = named.map_or(&read.path[..], Uri::path);
            let query = named.map_or(&read.query[..], Uri::query);
            prop_assert!(path.iter().all(|segment| segment != "." && segment != ".." && segment.len() <= 255));
            prop_assert!(!path.iter().chain(query).any(|part| part.contains(char::is_control)));
        }

        /// No header is too odd to be read.
        #[test]
        fn headers_are_read_or_refused(
            name in prop::sample::select(vec![
                "accept", "content-type", "if-match", "if-none-match", "via", "host", "origin", "content-encoding",
            ]),
            value in prop::collection::vec(prop_oneof![Just(b'"'), Just(b','), Just(b';'), Just(b'='), Just(b'q'), Just(b'/'), Just(b'*'), 0x20_u8..=0xff], 0..40),
            method in prop::sample::select(vec!["GET", "PUT", "QUERY"]),
        ) {
            let Some(head) = head(method, "/a", &[("host", b"gate"), (name, &value)]) else { return Ok(()) };
            if let Ok(read) = Read::head(&head) {
                let formats = read.accepts.formats();
                prop_assert!(formats.len() <= 4);
                prop_assert!(read.options(None).all(number::IF_MATCH).all(|tag| tag.len() <= 8));
            }
        }
    }
}

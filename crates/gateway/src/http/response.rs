//! An answer of CoAP as one of HTTP (RFC 8075 §7 and §8).
//!
//! What a device says stands in the body alone: headers are made of numbers, of names of the registry, and of what is encoded.

use std::{io, time::Duration};

use futures_util::TryStreamExt;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Response, StatusCode,
    body::Frame,
    header::{self, HeaderName, HeaderValue},
};
use millpond_live::{Bytes, Code, number, percent_encoded};
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::{
    codes,
    media::media_type,
    request::{MAPPED, Read},
};
use crate::{
    asked::{Asked, Under},
    engine::Source,
    refusal::Refusal,
};

pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

const TEXT: &str = "text/plain; charset=utf-8";
/// Whatever a device sends does nothing in a browser: all of them have one origin, that of the gateway.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Bytes of a frame of a body that is forwarded while it comes.
const FRAME: usize = 8 << 10;

/// A body that is forwarded while it comes.
pub(super) fn coming(reader: impl AsyncRead + Send + 'static) -> Body {
    StreamBody::new(ReaderStream::with_capacity(reader, FRAME).map_ok(Frame::data)).boxed_unsync()
}

/// One that is whole.
pub(super) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// An answer to a request that was forwarded.
pub(super) struct Answer<'a> {
    pub(super) read: &'a Read,
    pub(super) asked: &'a Asked,
    pub(super) response: &'a millpond_live::Response,
    pub(super) source: Source,
    /// For how long it has been kept.
    pub(super) age: Option<Duration>,
}

impl Answer<'_> {
    pub(super) fn response(&self) -> Response<Body> {
        let Self { read, response, .. } = self;
        let (code, payload) = (response.code(), response.payload());
        let tag = response.options().get(number::ETAG);
        let has_it = tag.is_some_and(|tag| read.has.contains(tag));
        let is_content = code == Code::CONTENT && matches!(read.method, Code::GET | Code::FETCH);
        let has_body = !payload.is_empty() || response.has_body_to_come();
        let mut status = codes::status(code, has_body);
        let format = response.content_format().map(|format| media_type(format.number()));
        if is_content {
            if has_it {
                status = StatusCode::NOT_MODIFIED;
            } else if let Some((text, _)) = format.as_ref().filter(|(text, _)| !read.accepts.takes(text)) {
                let why = format!("{} answers with {text}, which Accept does not name", self.asked.authority());
                return refused(&Refusal::new(Code::NOT_ACCEPTABLE, why));
            }
        }
        let mut made = if status == StatusCode::NOT_MODIFIED {
            plain(status, Bytes::new())
        } else {
            match response.take_body() {
                Some(body) => plain(status, Bytes::new()).map(|_| coming(body)),
                None => plain(status, payload.clone()),
            }
        };
        let headers = made.headers_mut();
        if has_body && status != StatusCode::NOT_MODIFIED {
            let is_text = || std::str::from_utf8(payload).is_ok();
            let (kind, coding) = match format {
                Some(format) => format,
                None if response.is_success() || !is_text() => ("application/octet-stream".into(), None),
                None => (TEXT.into(), None),
            };
            set(headers, header::CONTENT_TYPE, &kind);
            if let Some(coding) = coding {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
        }
        if let Some(tag) = tag.filter(|_| response.is_success()) {
            set(headers, header::ETAG, &format!("\"{}\"", hex(tag)));
        }
        let left = response.options().uint(number::MAX_AGE).unwrap_or(60);
        if is_content {
            let age = self.age.map_or(0, |age| u32::try_from(age.as_secs()).unwrap_or(u32::MAX));
            // Kept by others it is given to those alone who may have it here.
            let whose = if self.is_for_some() { "private, " } else { "" };
            set(headers, header::CACHE_CONTROL, &format!("{whose}max-age={}", left.saturating_add(age)));
            if self.age.is_some() {
                set(headers, header::AGE, &age.to_string());
            }
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
        }
        if code.refuses_for_a_while() {
            set(headers, header::RETRY_AFTER, &left.to_string());
        }
        if let Some(location) = self.location() {
            set(headers, header::LOCATION, &location);
        }
        if let Some(status) = cache_status(self.source, self.asked.is_shared, left) {
            set(headers, CACHE_STATUS, &status);
        }
        made
    }

    /// Others may not have it.
    fn is_for_some(&self) -> bool {
        match &self.asked.under {
            Under::Rule(rule, _) => !rule.rights.who.is_empty(),
            Under::Forward(forward) => !forward.rights.who.is_empty(),
        }
    }

    /// Where what was made is.
    fn location(&self) -> Option<String> {
        const UNENCODED: &[u8] = b"-._~";
        let options = self.response.options();
        if self.response.code() != Code::CREATED || options.get(number::LOCATION_PATH).is_none() {
            return None;
        }
        let mut text = match &self.read.named {
            None => String::new(),
            Some(named) => {
                let authority = self.asked.authority();
                match named.is_in_path {
                    true => format!("{MAPPED}{}", authority.replace('[', "%5B").replace(']', "%5D")),
                    false => authority,
                }
            }
        };
        for segment in options.all(number::LOCATION_PATH) {
            text.push('/');
            text.push_str(&percent_encoded(std::str::from_utf8(segment).ok()?, UNENCODED));
        }
        for (place, part) in options.all(number::LOCATION_QUERY).enumerate() {
            text.push(if place == 0 { '?' } else { '&' });
            text.push_str(&percent_encoded(std::str::from_utf8(part).ok()?, b"-._~="));
        }
        Some(text)
    }
}

/// What the gateway itself answers.
pub(super) fn refused(refusal: &Refusal) -> Response<Body> {
    let is_ours = refusal.code == Code::METHOD_NOT_ALLOWED && !refusal.allowed.is_empty();
    let status = if is_ours { StatusCode::METHOD_NOT_ALLOWED } else { codes::status(refusal.code, true) };
    let mut made = plain(status, refusal.why.clone().into());
    let headers = made.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(TEXT));
    if is_ours {
        let mut methods: Vec<&str> = refusal.allowed.iter().filter_map(|method| codes::http_method(*method)).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        set(headers, header::ALLOW, &methods.join(", "));
    }
    if let Some(seconds) = refusal.again_in {
        set(headers, header::RETRY_AFTER, &seconds.to_string());
    }
    made
}

/// One with what all have.
pub(super) fn plain(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut made = Response::new(whole(body));
    *made.status_mut() = status;
    let headers = made.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    made
}

/// What is made here is a value of a header.
fn set(headers: &mut hyper::HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

pub(super) fn hex(tag: &[u8]) -> String {
    tag.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// RFC 9211.
fn cache_status(source: Source, is_shared: bool, left: u32) -> Option<String> {
    Some(match source {
        Source::Cache | Source::Observation => format!("millpond; hit; ttl={left}"),
        Source::Shared => "millpond; fwd=miss; collapsed".into(),
        Source::Stale => "millpond; fwd=stale; detail=stale-if-error".into(),
        Source::Upstream if is_shared => "millpond; fwd=miss".into(),
        Source::Upstream => "millpond; fwd=method".into(),
        Source::Gateway => return None,
    })
}

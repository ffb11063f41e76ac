//! Asking by HTTP for who asks by CoAP (RFC 7252 §10.1).
//!
//! A connection is for one request, to the very address that was found allowed: nothing is read behind its answer, and no redirection is
//! followed.

use std::{
    hash::{DefaultHasher, Hasher},
    net::SocketAddr,
};

use http_body_util::{BodyExt, Limited};
use hyper::{
    HeaderMap, Request, StatusCode,
    header::{self, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use millpond_live::{Bytes, Code, Error, Response, TlsConnector, Uri, number};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{
    codes,
    media::{MediaType, media_type},
    response::{Body, coming, whole},
};
use crate::{
    asked::{Asked, HOP_LIMIT},
    config::Config,
    engine::failed,
    refusal::Refusal,
    upload::{Payload, Upload},
};

/// How it is asked by HTTP.
#[derive(Debug)]
pub(crate) struct Asking {
    /// Where anything may be asked by TLS.
    tls: Option<TlsConnector>,
    longest: usize,
}

/// Bytes and lines of the longest head of an answer.
const LONGEST_HEAD: usize = 65_536;
const MOST_HEADERS: usize = 128;
/// Bytes of an ETag (RFC 7252 §5.10.6).
const TAG: usize = 8;
/// Bytes of a reason that is passed on.
const REASON: usize = 256;

impl Asking {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let is_secure = config.rules.iter().any(|rule| rule.goal.is_https())
            || config.forward.iter().any(|forward| forward.schemes.contains(&"https"));
        let tls = is_secure.then(|| TlsConnector::new(&config.client_security, b"http/1.1")).transpose()?;
        Ok(Self { tls, longest: config.http.body })
    }

    /// Asks who is at this address.
    pub(crate) async fn ask(
        &self,
        asked: &Asked,
        target: &str,
        etag: Option<&[u8]>,
        address: SocketAddr,
        until: Instant,
    ) -> Result<Response, Refusal> {
        let request = request(asked, target, etag)?;
        let exchange = async {
            let cannot = |error: std::io::Error| bad(asked, error);
            let stream = TcpStream::connect(address).await.map_err(cannot)?;
            if !asked.target.uri.transport().is_secure() {
                return self.exchange(asked, request, stream).await;
            }
            let Some(tls) = &self.tls else { return Err(bad(asked, "TLS is set up when the gateway starts again")) };
            let stream = tls.connect(stream, address, asked.target.uri.host()).await;
            self.exchange(asked, request, stream.map_err(|error| bad(asked, error))?).await
        };
        let upload = asked.payload.coming();
        let response = match upload {
            None => timeout_at(until, exchange).await,
            Some(upload) => upload.forwarding(asked.timeout, exchange).await,
        };
        match response.unwrap_or_else(|_| Err(failed(asked, &Error::Deadline { after: asked.timeout }))) {
            Ok(response) => Ok(asked.answer(&response)),
            Err(refusal) => Err(upload.and_then(Upload::refusal).unwrap_or(refusal)),
        }
    }

    async fn exchange<S>(&self, asked: &Asked, request: Request<Body>, stream: S) -> Result<Response, Refusal>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(LONGEST_HEAD).max_headers(MOST_HEADERS);
        let (mut sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| bad(asked, error))?;
        // Aborted with this.
        let mut connections = JoinSet::new();
        connections.spawn(connection);
        if let Some(upload) = asked.payload.coming() {
            upload.begin();
        }
        let (head, body) = sender.send_request(request).await.map_err(|error| bad(asked, error))?.into_parts();
        let Some(code) = codes::code(head.status, asked.method) else {
            let why = format!("answers {}, and no redirection is followed", head.status);
            return Err(bad(asked, why));
        };
        let body = Limited::new(body, self.longest).collect().await;
        let body = body.map_err(|error| bad(asked, format!("{error} ({} bytes at most)", self.longest)))?.to_bytes();
        read(asked, code, head.status, &head.headers, body)
    }
}

fn bad(asked: &Asked, why: impl std::fmt::Display) -> Refusal {
    Refusal::new(Code::BAD_GATEWAY, format!("{}: {why}", asked.authority()))
}

fn request(asked: &Asked, target: &str, etag: Option<&[u8]>) -> Result<Request<Body>, Refusal> {
    let method = codes::http_method(asked.method)
        .ok_or_else(|| Refusal::new(Code::METHOD_NOT_ALLOWED, "HTTP has no method like this one"))?;
    let uri = &asked.target.uri;
    let usual = if uri.transport().is_secure() { 443 } else { 80 };
    let port = if uri.port() == usual { String::new() } else { format!(":{}", uri.port()) };
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: String| {
        // A value is made of numbers, names of the registry, tags that are checked, and a host.
        HeaderValue::try_from(value).map(|value| headers.append(name, value))
    };
    let passed = usize::from(HOP_LIMIT.saturating_sub(asked.hop_limit).max(1));
    let mut fits = set(header::HOST, format!("{}{port}", uri.host())).is_ok();
    fits &= set(header::VIA, vec!["CoAP/1 millpond"; passed].join(", ")).is_ok();
    fits &= set(header::ACCEPT_ENCODING, "identity".into()).is_ok();
    fits &= set(header::CONNECTION, "close".into()).is_ok();
    for (option, value) in asked.options.iter() {
        let number = || value.iter().fold(0, |sum, byte| (sum << 8) | u16::from(*byte));
        fits &= match option {
            number::CONTENT_FORMAT => {
                let (text, coding) = media_type(number());
                let coded = coding.is_none_or(|coding| set(header::CONTENT_ENCODING, coding.into()).is_ok());
                coded && set(header::CONTENT_TYPE, text).is_ok()
            }
            number::ACCEPT => set(header::ACCEPT, media_type(number()).0).is_ok(),
            number::IF_NONE_MATCH => set(header::IF_NONE_MATCH, "*".into()).is_ok(),
            number::IF_MATCH => {
                let tag = if value.is_empty() { Some("*".into()) } else { quoted(value) };
                let tag = tag.ok_or_else(|| Refusal::new(Code::PRECONDITION_FAILED, "If-Match is no tag of HTTP"))?;
                set(header::IF_MATCH, tag).is_ok()
            }
            // The critical ones have odd numbers (RFC 7252 §5.4.6).
            option if option % 2 == 1 => {
                return Err(Refusal::new(Code::BAD_OPTION, format!("option {option} means nothing in HTTP")));
            }
            _ => true,
        };
    }
    if let Some(tag) = etag.and_then(quoted) {
        fits &= set(header::IF_NONE_MATCH, tag).is_ok();
    }
    let body = match &asked.payload {
        Payload::Whole(bytes) => whole(bytes.clone()),
        Payload::Coming(upload) => {
            if let Some(size) = upload.size {
                headers.insert(header::CONTENT_LENGTH, size.into());
            }
            coming(upload.reader())
        }
    };
    let request = Request::builder().method(method).uri(target).body(body);
    let mut request = request.ok().filter(|_| fits).ok_or_else(|| bad(asked, "this makes no request of HTTP"))?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// An ETag as it stands in a header, if it can stand there.
fn quoted(tag: &[u8]) -> Option<String> {
    let is_text = tag.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"');
    is_text.then(|| format!("\"{}\"", String::from_utf8_lossy(tag)))
}

fn read(asked: &Asked, code: Code, status: StatusCode, headers: &HeaderMap, body: Bytes) -> Result<Response, Refusal> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let coding = text(header::CONTENT_ENCODING).unwrap_or_default().trim().to_ascii_lowercase();
    let coding = if coding == "identity" { "" } else { &coding };
    let media_type = text(header::CONTENT_TYPE).and_then(MediaType::read);
    let mut response = Response::new(code);
    if code.is_success() {
        let format = media_type.as_ref().and_then(|media_type| media_type.content_format(coding));
        if format.is_none() && !coding.is_empty() {
            return Err(bad(asked, format!("its answer is coded as {coding:?}, which is no Content-Format")));
        }
        if let Some(format) = format {
            response = response.with_content_format(format);
        }
        if let Some(tag) = text(header::ETAG).and_then(tag) {
            response = response.with_etag(tag);
        }
        response = response.with_max_age(max_age(headers)).with_payload(body);
    } else {
        // A page for people is none for devices.
        let is_text = media_type.is_some_and(|media_type| media_type.essence == "text/plain") && coding.is_empty();
        let reason = std::str::from_utf8(&body).ok().filter(|_| is_text && body.len() <= REASON);
        response = response.with_payload(reason.map_or_else(|| status.to_string(), str::to_owned));
        if let Some(seconds) = text(header::RETRY_AFTER).and_then(|seconds| seconds.trim().parse().ok()) {
            response = response.with_max_age(seconds);
        }
    }
    if code == Code::CREATED
        && let Some(made) = text(header::LOCATION).and_then(|location| at(asked, location))
    {
        for segment in made.path() {
            response = response.with_option(number::LOCATION_PATH, segment.clone().into_bytes());
        }
        for part in made.query() {
            response = response.with_option(number::LOCATION_QUERY, part.clone().into_bytes());
        }
    }
    Ok(response)
}

/// An entity tag as an ETag: itself if it is short enough, and else something that is another for another tag.
fn tag(text: &str) -> Option<Bytes> {
    let tag = text.trim().strip_prefix('"')?.strip_suffix('"')?;
    match tag.len() {
        0 => None,
        length if length <= TAG => Some(Bytes::copy_from_slice(tag.as_bytes())),
        _ => {
            let mut hasher = DefaultHasher::new();
            hasher.write(tag.as_bytes());
            Some(Bytes::copy_from_slice(&hasher.finish().to_be_bytes()))
        }
    }
}

/// For how many seconds an answer is good for everybody (RFC 9111 §4.2). One that does not say so is not kept.
fn max_age(headers: &HeaderMap) -> u32 {
    let all = |name: HeaderName| {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','))
    };
    let varies =
        |name: &str| !["accept", "accept-encoding", "origin", ""].contains(&&*name.trim().to_ascii_lowercase());
    let (mut shared, mut own) = (None, None);
    for directive in all(header::CACHE_CONTROL) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        let seconds = || Some(value.trim().trim_matches('"').parse::<u32>().unwrap_or(0));
        match &*name.trim().to_ascii_lowercase() {
            "no-store" | "no-cache" | "private" => return 0,
            "s-maxage" => shared = seconds(),
            "max-age" => own = seconds(),
            _ => {}
        }
    }
    if all(header::VARY).any(varies) {
        return 0;
    }
    let age = all(header::AGE).next().and_then(|age| age.trim().parse().ok()).unwrap_or(0);
    shared.or(own).unwrap_or(0).saturating_sub(age)
}

/// Where something was made, if it is where it was asked for.
fn at(asked: &Asked, location: &str) -> Option<Uri> {
    let path = match location.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/')?);
            let made = crate::target::Target::read(&format!("{scheme}://{authority}/")).ok()?;
            if made.authority() == asked.authority() { path } else { return None }
        }
        None => location,
    };
    if !path.starts_with('/') || path.starts_with("//") {
        return None;
    }
    format!("coap://gateway{path}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_good_for_as_long_as_it_says() {
        for (lines, seconds) in [
            (&[][..], 0),
            (&[("cache-control", "max-age=60")], 60),
            (&[("cache-control", "max-age=60"), ("age", "20")], 40),
            (&[("cache-control", "max-age=60, s-maxage=9")], 9),
            (&[("cache-control", "max-age=60"), ("cache-control", "Private")], 0),
            (&[("cache-control", "max-age=60, no-store")], 0),
            (&[("cache-control", "max-age=-1")], 0),
            (&[("cache-control", "max-age=60"), ("vary", "Accept, Cookie")], 0),
            (&[("cache-control", "max-age=60"), ("vary", "*")], 0),
            (&[("cache-control", "max-age=60"), ("vary", "Accept")], 60),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_static(value));
            }
            assert_eq!(max_age(&headers), seconds, "{lines:?}");
        }
    }

    #[test]
    fn tags_fit_an_option() {
        assert_eq!(tag("\"abc\"").as_deref(), Some(&b"abc"[..]));
        assert_eq!((tag("W/\"abc\""), tag("abc"), tag("\"\"")), (None, None, None));
        let (one, other) = (tag("\"0123456789\"").unwrap(), tag("\"0123456780\"").unwrap());
        assert!(one != other && one.len() == 8 && other.len() == 8);
        assert_eq!(
            (quoted(b"a\"").as_deref(), quoted(b"a\n").as_deref(), quoted(&[0xff]).as_deref()),
            (None, None, None)
        );
    }
}

//! Who is asked for what: a URI of CoAP, or one of HTTP.

use std::{fmt, slice};

use millpond_live::{Bytes, CacheKey, Code, Options, Transport, Uri, cache_key, cache_key_of};

use crate::refusal::Refusal;

/// A URI that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Of a target of HTTP the same over TCP or TLS.
    pub(crate) uri: Uri,
    /// The path and query of a target of HTTP, as they are written; none of one of CoAP.
    pub(crate) web: Option<String>,
}

/// Bytes of the longest path and query of HTTP.
const LONGEST: usize = 4_096;

/// The transport that stands for a scheme of HTTP, and the port unless another is given.
pub(crate) fn web_transport(scheme: &str) -> Option<(Transport, u16)> {
    if scheme.eq_ignore_ascii_case("http") {
        Some((Transport::Tcp, 80))
    } else if scheme.eq_ignore_ascii_case("https") {
        Some((Transport::Tls, 443))
    } else {
        None
    }
}

/// An authority with its port, which is this one if it has none.
pub(crate) fn with_port(authority: &str, port: u16) -> String {
    let behind = authority.rsplit_once(']').map_or(authority, |(_, behind)| behind);
    match behind.rsplit_once(':') {
        Some((_, "")) => format!("{authority}{port}"),
        Some(_) => authority.to_owned(),
        None => format!("{authority}:{port}"),
    }
}

impl Target {
    pub(crate) const fn coap(uri: Uri) -> Self {
        Self { uri, web: None }
    }

    /// One of HTTP at this path and query.
    pub(crate) fn web(uri: Uri) -> Self {
        let text = uri.to_string();
        let behind = text.split_once("://").map_or("", |(_, behind)| behind);
        let web = behind.find('/').and_then(|at| behind.get(at..)).unwrap_or("/").to_owned();
        Self { uri, web: Some(web) }
    }

    /// As a client writes it. Not supported are other schemes; whatever else is wrong with it is the client's mistake.
    pub(crate) fn read(text: &str) -> Result<Self, Refusal> {
        let wrong = |error: millpond_live::UriError| match error {
            millpond_live::UriError::Scheme { .. } => Refusal::new(Code::PROXYING_NOT_SUPPORTED, error.to_string()),
            error => Refusal::new(Code::BAD_REQUEST, error.to_string()),
        };
        let Some((scheme, rest)) = text.split_once("://") else { return text.parse().map(Self::coap).map_err(wrong) };
        let Some((transport, port)) = web_transport(scheme) else { return text.parse().map(Self::coap).map_err(wrong) };
        let (authority, written) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // It stands in the first line of a request.
        let is_line = written.bytes().all(|byte| byte.is_ascii_graphic()) && written.len() <= LONGEST;
        let uri: Uri = format!("{transport}://{}{written}", with_port(authority, port)).parse().map_err(wrong)?;
        if !is_line {
            return Err(Refusal::new(Code::BAD_REQUEST, "the path of Proxy-Uri is too long, or is no ASCII"));
        }
        let web = if written.starts_with('/') { written.to_owned() } else { format!("/{written}") };
        Ok(Self { uri, web: Some(web) })
    }

    pub(crate) const fn scheme(&self) -> &'static str {
        match (&self.web, self.uri.transport()) {
            (Some(_), Transport::Udp | Transport::Tcp) => "http",
            (Some(_), Transport::Dtls | Transport::Tls) => "https",
            (None, Transport::Udp) => "coap",
            (None, Transport::Tcp) => "coap+tcp",
            (None, Transport::Dtls) => "coaps",
            (None, Transport::Tls) => "coaps+tcp",
        }
    }

    /// Scheme, host and port.
    pub(crate) fn authority(&self) -> String {
        format!("{}://{}:{}", self.scheme(), self.uri.host(), self.uri.port())
    }

    /// What answers are kept by, whose they are if not of who is at its address.
    pub(crate) fn key(&self, owner: Option<&str>, request: (Code, &Options, &Bytes)) -> CacheKey {
        match (owner, &self.web) {
            (Some(owner), _) => cache_key_of(owner, (self.uri.path(), self.uri.query()), request),
            // As it is written: a server may tell apart what is one URI of CoAP.
            (None, Some(web)) => cache_key_of(&self.authority(), (slice::from_ref(web), &[]), request),
            (None, None) => cache_key(request.0, &self.uri, request.1, request.2),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.web {
            Some(web) => write!(f, "{}{web}", self.authority()),
            None => self.uri.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_http_keep_their_path_as_it_is_written() {
        for (text, whole) in [
            ("http://h/a+b%2Bc?x=%26", "http://h:80/a+b%2Bc?x=%26"),
            ("HTTPS://h:8443", "https://h:8443/"),
            ("http://[2001:db8::1]?q", "http://[2001:db8::1]:80/?q"),
            ("http://192.0.2.1:/a", "http://192.0.2.1:80/a"),
        ] {
            assert_eq!(Target::read(text).unwrap().to_string(), whole, "{text}");
        }
        let long = format!("http://h/{}", "x/".repeat(3_000));
        for text in [
            "http://",
            "http:///a",
            "http://u@h/",
            "http://h/ b",
            "http://h/a\r\nX: y",
            "http://h/#f",
            "http://h:0/",
            "http://h/\u{e9}",
            &long,
        ] {
            assert_eq!(Target::read(text).unwrap_err().code, Code::BAD_REQUEST, "{text:?}");
        }
        assert_eq!(Target::read("ftp://h/").unwrap_err().code, Code::PROXYING_NOT_SUPPORTED);
    }

    #[test]
    fn what_is_kept_of_one_is_nothing_of_another() {
        let key =
            |text: &str, owner| Target::read(text).unwrap().key(owner, (Code::GET, &Options::new(), &Bytes::new()));
        let keys: std::collections::BTreeSet<CacheKey> = [
            ("http://h:80/a?b", None),
            ("https://h:80/a?b", None),
            ("coap+tcp://h:80/a?b", None),
            ("coap+tcp://h:80/a?b", Some("endpoint://h")),
            ("coap+tcp://h:80/a?b", Some("endpoint://g")),
            ("coap://h:80/a?b", None),
            ("http://h:80/a%3Fb", None),
            ("http://h:80/a/b", None),
        ]
        .into_iter()
        .map(|(text, owner)| key(text, owner))
        .collect();
        assert_eq!(keys.len(), 8, "{keys:?}");
    }
}

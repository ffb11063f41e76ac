//! From text to a URI: strict, as RFC 3986 has it.

use std::net::Ipv6Addr;
use std::str::FromStr;

use super::{Host, IN_HOST, IN_PATH, IN_QUERY, Transport, Uri, UriError, percent_encoded};

/// Longest value of Uri-Host, of one Uri-Path and of one Uri-Query, bytes (RFC 7252 §5.10).
const LONGEST_OPTION: usize = 255;

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let malformed = |why: String| UriError::Malformed { uri: text.to_owned(), why: in_one_line(&why) };
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(malformed(format!("the scheme is missing; write coap://{text}")));
        };
        let transport = match scheme.to_ascii_lowercase().as_str() {
            "coap" => Transport::Udp,
            "coap+tcp" => Transport::Tcp,
            "coaps" => Transport::Dtls,
            "coaps+tcp" => Transport::Tls,
            other => return Err(UriError::Scheme { uri: text.to_owned(), scheme: other.to_owned() }),
        };
        parts(transport, rest).map_err(malformed)
    }
}

impl Uri {
    /// The same host asked for another path and query, whose parts are decoded; none where one is longer than an option can carry, or
    /// is a segment that no path may have (RFC 7252 §5.10.1).
    #[must_use]
    pub fn at(&self, mut path: Vec<String>, query: Vec<String>) -> Option<Self> {
        let is_step = |segment: &String| matches!(segment.as_str(), "." | "..");
        if path.iter().any(is_step) || path.iter().chain(&query).any(|part| part.len() > LONGEST_OPTION) {
            return None;
        }
        if is_root(&path) {
            path.clear();
        }
        Some(Self { host: self.host.clone(), path, query, ..*self })
    }
}

/// The path "/", which is the same as none (RFC 7252 §6.4 step 8).
fn is_root(path: &[String]) -> bool {
    path == [""]
}

/// Everything behind `://`.
fn parts(transport: Transport, rest: &str) -> Result<Uri, String> {
    if rest.contains('#') {
        return Err("a fragment (#…) cannot be asked for; leave it out, or write %23".to_owned());
    }
    let (rest, query) = match rest.split_once('?') {
        None => (rest, Vec::new()),
        Some((before, query)) => {
            (before, query.split('&').map(|part| decoded(part, IN_QUERY, "query")).collect::<Result<_, _>>()?)
        }
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err("CoAP has no user names; leave out what stands before @".to_owned());
    }
    // The last colon, but none inside the brackets of an IPv6 literal.
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') && (name.ends_with(']') || !name.contains(':')) => (name, port),
        _ => (authority, ""),
    };
    let port = match port {
        "" => transport.default_port(),
        digits => match digits.parse() {
            Ok(port) if port > 0 && !digits.starts_with('+') => port,
            _ => return Err(format!("port {digits} is not between 1 and 65535")),
        },
    };
    Ok(Uri { transport, host: host(name)?, port, path: segments(path)?, query })
}

fn host(text: &str) -> Result<Host, String> {
    if let Some(open) = text.strip_prefix('[') {
        let literal = open.strip_suffix(']').ok_or("the bracket ] behind the IPv6 address is missing")?;
        let (address, zone) = literal.split_once('%').map_or((literal, None), |(address, zone)| (address, Some(zone)));
        let address: Ipv6Addr = address.parse().map_err(|_| format!("{address} is no IPv6 address"))?;
        // That of an IPv4 host in the form of IPv6 is asked over IPv4.
        return Ok(match (address.to_ipv4_mapped(), zone) {
            (Some(mapped), None) => Host::V4(mapped),
            _ => Host::V6(address, zone.map(zone_name).transpose()?),
        });
    }
    if let Ok(address) = text.parse() {
        return Ok(Host::V4(address));
    }
    if text.matches(':').count() > 0 {
        return Err(format!("{text} is no host; an IPv6 address stands in brackets: [{text}]"));
    }
    match decoded(text, IN_HOST, "host")?.to_lowercase() {
        name if name.is_empty() => Err("the host is missing".to_owned()),
        name => Ok(Host::Name(name)),
    }
}

/// An interface, whether `%` before it was encoded or not.
fn zone_name(zone: &str) -> Result<String, String> {
    let name = zone.strip_prefix("25").filter(|rest| !rest.is_empty()).unwrap_or(zone);
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) {
        return Err("behind % belongs the zone, an interface such as eth0".to_owned());
    }
    Ok(name.to_owned())
}

/// The segments of a path, dots resolved (RFC 3986 §5.2.4, which RFC 7252 §6.4 step 2 asks for).
fn segments(text: &str) -> Result<Vec<String>, String> {
    let Some(rest) = text.strip_prefix('/') else { return Ok(Vec::new()) };
    let mut segments: Vec<String> = Vec::new();
    let mut pieces = rest.split('/').peekable();
    while let Some(piece) = pieces.next() {
        if piece == ".." {
            segments.pop();
        }
        if piece == "." || piece == ".." {
            if pieces.peek().is_none() {
                segments.push(String::new());
            }
            continue;
        }
        let segment = decoded(piece, IN_PATH, "path")?;
        if segment == "." || segment == ".." {
            return Err(format!("{piece} in the path means {segment:?}, which no option may carry"));
        }
        segments.push(segment);
    }
    if is_root(&segments) {
        segments.clear();
    }
    Ok(segments)
}

/// A part without its percent encoding.
fn decoded(part: &str, unencoded: &[u8], place: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            if !first.is_ascii_alphanumeric() && !unencoded.contains(first) {
                let odd = part.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '%' && !stands(unencoded, *c));
                let odd = odd.unwrap_or(char::from(*first));
                return Err(format!(
                    "{odd:?} in the {place}; write {}",
                    percent_encoded(odd.encode_utf8(&mut [0; 4]), b"")
                ));
            }
            bytes.push(*first);
            continue;
        }
        let digits = rest.split_at_checked(2).and_then(|(digits, behind)| {
            rest = behind;
            let [high, low] = *digits else { return None };
            Some(char::from(high).to_digit(16)? * 16 + char::from(low).to_digit(16)?)
        });
        match digits.and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => bytes.push(byte),
            None => {
                return Err(format!("behind % in the {place} belong two hexadecimal digits; write %25 for % itself"));
            }
        }
    }
    if bytes.len() > LONGEST_OPTION {
        return Err(format!("a part of the {place} has {} bytes; an option can carry {LONGEST_OPTION}", bytes.len()));
    }
    String::from_utf8(bytes).map_err(|_| format!("{part} in the {place} is not UTF-8 when decoded"))
}

fn stands(unencoded: &[u8], c: char) -> bool {
    u8::try_from(c).is_ok_and(|byte| unencoded.contains(&byte))
}

/// What is said of a URI repeats parts of it, which may hold anything, and stays one line.
fn in_one_line(why: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().collect() } else { String::from(c) };
    why.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn parsed(text: &str) -> Uri {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn why(text: &str) -> String {
        match text.parse::<Uri>() {
            Ok(uri) => panic!("{text} gave {uri:?}"),
            Err(error) => error.to_string(),
        }
    }

    fn owned(parts: &[&str]) -> Vec<String> {
        parts.iter().map(|part| (*part).to_owned()).collect()
    }

    #[test]
    fn a_uri_becomes_the_options_that_the_rfc_prints() {
        // RFC 7252 §6.3: the three are equivalent.
        for text in [
            "coap://example.com:5683/~sensors/temp.xml",
            "coap://EXAMPLE.com/%7Esensors/temp.xml",
            "coap://EXAMPLE.com:/%7esensors/temp.xml",
        ] {
            let uri = parsed(text);
            assert_eq!((uri.port, uri.transport), (5683, Transport::Udp), "{text}");
            let options = uri.uri_options();
            let expected: [(u16, &[u8]); 3] = [(3, b"example.com"), (11, b"~sensors"), (11, b"temp.xml")];
            assert!(options.iter().map(|(number, value)| (*number, &value[..])).eq(expected), "{text}: {options:?}");
        }
    }

    #[test]
    fn paths_and_queries_are_taken_apart_and_decoded() {
        let table: [(&str, &[&str], &[&str]); 14] = [
            ("coap://h", &[], &[]),
            ("coap://h/", &[], &[]),
            ("coap://h//", &["", ""], &[]),
            ("coap://h/a/", &["a", ""], &[]),
            ("coap://h/a//b", &["a", "", "b"], &[]),
            // RFC 7252 appendix B: a slash and an ampersand inside values.
            ("coap://198.51.100.1:61616//%2F//?%2F%2F&?%26", &["", "/", "", ""], &["//", "?&"]),
            ("coap://h/%E3%81%93", &["こ"], &[]),
            ("coap://h/a/./b/../c", &["a", "c"], &[]),
            ("coap://h/a/..", &[], &[]),
            ("coap://h/../../a", &["a"], &[]),
            ("coap://h/a?", &["a"], &[""]),
            ("coap://h?x=1&y=%20&", &[], &["x=1", "y= ", ""]),
            ("coap://h/a+b;c=1", &["a+b;c=1"], &[]),
            ("coap://h/.well-known/core?rt=temp*", &[".well-known", "core"], &["rt=temp*"]),
        ];
        for (text, path, query) in table {
            let uri = parsed(text);
            assert_eq!(parsed(&uri.to_string()), uri, "{text} and {uri}");
            assert_eq!((uri.path, uri.query), (owned(path), owned(query)), "{text}");
        }
    }

    #[test]
    fn hosts_are_addresses_or_names_in_small_letters() {
        let v6 = |zone: Option<&str>| Host::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), zone.map(str::to_owned));
        for (text, host, port) in [
            ("coap://192.0.2.1", Host::V4(Ipv4Addr::new(192, 0, 2, 1)), 5683),
            ("coap://[fe80::1]:7", v6(None), 7),
            ("coap://[fe80::1%eth0]/x", v6(Some("eth0")), 5683),
            ("coap://[fe80::1%25eth0]:7/x%25", v6(Some("eth0")), 7),
            ("coap://[fe80::1%25]/x", v6(Some("25")), 5683),
            ("coap://[fe80::1%2525h]/x", v6(Some("25h")), 5683),
            ("coap://Caf%C3%89.example", Host::Name("café.example".to_owned()), 5683),
            ("COAP+TCP://h:1", Host::Name("h".to_owned()), 1),
        ] {
            let uri = parsed(text);
            assert_eq!(parsed(&uri.to_string()), uri, "{text} and {uri}");
            assert_eq!((uri.host, uri.port), (host, port), "{text}");
        }
    }

    #[test]
    fn each_scheme_has_its_transport_and_its_port() {
        for (text, transport, port) in [
            ("coap://h", Transport::Udp, 5683),
            ("coap+tcp://h", Transport::Tcp, 5683),
            ("coaps://h", Transport::Dtls, 5684),
            ("Coaps+Tcp://h:", Transport::Tls, 5684),
        ] {
            let uri = parsed(text);
            assert_eq!((uri.transport, uri.port), (transport, port), "{text}");
            assert_eq!(uri.to_string(), format!("{transport}://h/"));
        }
        assert_eq!(parsed("coaps://h:5683/a").to_string(), "coaps://h:5683/a");
        assert_eq!(parsed("coap+tcp://h:5684/a").to_string(), "coap+tcp://h:5684/a");
    }

    #[test]
    fn an_ipv4_address_in_the_form_of_ipv6_is_that_of_ipv4() {
        let uri = parsed("coap://[::ffff:192.0.2.1]:7/a");
        assert_eq!(uri.host(), &Host::V4(Ipv4Addr::new(192, 0, 2, 1)));
        assert!(parsed("coap://[::ffff:224.0.1.187]/").is_group());
        assert!(matches!(parsed("coap://[::1]/").host(), Host::V6(..)));
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_the_fix() {
        let long = format!("coap://h/{}", "a".repeat(256));
        for (text, part) in [
            ("localhost/x", "the scheme is missing; write coap://localhost/x"),
            ("localhost:5683/x", "the scheme is missing"),
            ("", "the scheme is missing"),
            ("http://h/", "unknown scheme \"http\": known: coap, coap+tcp"),
            ("coap+ws://h/", "unknown scheme"),
            ("coaps+ws://h/", "unknown scheme"),
            ("coap:///x", "the host is missing"),
            ("coap://me@h/", "no user names"),
            ("coap://h/#top", "fragment"),
            ("coap://h:0/", "port 0 is not between 1 and 65535"),
            ("coap://h:65536/", "port 65536"),
            ("coap://h:+1/", "port +1"),
            ("coap://h:x/", "port x"),
            ("coap://::1/", "an IPv6 address stands in brackets: [::1]"),
            ("coap://[::1/", "the bracket ]"),
            ("coap://[::g]/", "::g is no IPv6 address"),
            ("coap://[fe80::1%]/", "the zone"),
            ("coap://h/a b", "' ' in the path; write %20"),
            ("coap://h/é", "'é' in the path; write %C3%A9"),
            ("coap://h/[", "'[' in the path; write %5B"),
            ("coap://h/%2", "two hexadecimal digits; write %25"),
            ("coap://h/%+1", "two hexadecimal digits"),
            ("coap://h/%ff", "not UTF-8"),
            ("coap://h/%2e%2E", "which no option may carry"),
            (long.as_str(), "has 256 bytes; an option can carry 255"),
        ] {
            let error = why(text);
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn references_are_read_beside_a_base() {
        let base = parsed("coap://host:5700/a/b;x/c?d=1");
        for (reference, means) in [
            ("g", "coap://host:5700/a/b;x/g"),
            ("./g/", "coap://host:5700/a/b;x/g/"),
            ("..", "coap://host:5700/a/"),
            ("../../../g?y=/", "coap://host:5700/g?y=/"),
            ("/g", "coap://host:5700/g"),
            ("?y", "coap://host:5700/a/b;x/c?y"),
            ("", "coap://host:5700/a/b;x/c?d=1"),
            ("//[::1]/g", "coap://[::1]/g"),
            ("coaps+tcp://other", "coaps+tcp://other/"),
        ] {
            assert_eq!(base.join(reference).unwrap().to_string(), means, "{reference}");
        }
        assert_eq!(parsed("coap://host").join("g").unwrap().to_string(), "coap://host/g");
        assert!(base.join("g#there").unwrap_err().to_string().contains("fragment"));
    }
}

//! What the query of a registration or of an update says (RFC 9176 §5).

use std::net::Ipv6Addr;

use millpond_live::is_attribute_name;

use super::Refusal;

/// Bytes of the name of an endpoint, and of a sector (RFC 9176 §5).
pub const LONGEST_NAME: usize = 63;

/// Attributes that one endpoint may have. A judgement: no specification has more than a handful.
const MOST_ATTRIBUTES: usize = 64;

/// Names that mean something else in the links of look-ups, or in what these ask for.
const RESERVED: [&str; 5] = ["href", "anchor", "rt", "page", "count"];

/// What a registration or an update says of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// `ep`.
    pub name: Option<String>,
    /// `d`.
    pub sector: Option<String>,
    /// `lt`, in seconds.
    pub lifetime: Option<u32>,
    /// `base`.
    pub base: Option<String>,
    /// All else, by name; without a value where the query has none.
    pub attributes: Vec<(String, Option<String>)>,
}

impl Parameters {
    /// Reads the parts of a query, as Uri-Query holds them.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] with what is wrong.
    pub fn read<'q>(query: impl Iterator<Item = &'q str>) -> Result<Self, Refusal> {
        let mut read = Self::default();
        for part in query.filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
            let text = value.unwrap_or_default();
            let once = |is_first: bool| {
                let twice = || Refusal::malformed(format!("{name} stands twice; say it once"));
                is_first.then_some(()).ok_or_else(twice)
            };
            match name {
                "ep" => {
                    once(read.name.is_none())?;
                    read.name = Some(name_of_endpoint("ep", text)?);
                }
                "d" => {
                    once(read.sector.is_none())?;
                    read.sector = Some(name_of_endpoint("d", text)?);
                }
                "lt" => {
                    once(read.lifetime.is_none())?;
                    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                    let seconds = text.parse().ok().filter(|seconds| is_number && *seconds > 0);
                    let wrong = || Refusal::malformed("lt is the lifetime in seconds, 1 to 4294967295");
                    read.lifetime = Some(seconds.ok_or_else(wrong)?);
                }
                "base" => {
                    once(read.base.is_none())?;
                    check_base(text)?;
                    read.base = Some(text.to_owned());
                }
                name if RESERVED.contains(&name) => {
                    return Err(Refusal::malformed(format!("{name} is none of an endpoint's attributes")));
                }
                name if !is_attribute_name(name) => {
                    return Err(Refusal::malformed(format!("{name:?} is no name of an attribute (RFC 9176 §9.3)")));
                }
                name => {
                    check_count(read.attributes.len() + 1)?;
                    if text.contains(char::is_control) {
                        return Err(Refusal::malformed(format!("the value of {name} has a control character")));
                    }
                    read.attributes.push((name.to_owned(), value.map(str::to_owned)));
                }
            }
        }
        Ok(read)
    }
}

/// An endpoint may have so many attributes.
pub(super) fn check_count(attributes: usize) -> Result<(), Refusal> {
    if attributes > MOST_ATTRIBUTES {
        return Err(Refusal::malformed(format!("an endpoint may have {MOST_ATTRIBUTES} attributes; leave out some")));
    }
    Ok(())
}

/// A name as RFC 9176 §5 allows it.
fn name_of_endpoint(parameter: &str, text: &str) -> Result<String, Refusal> {
    let wrong = |why: &str| Err(Refusal::malformed(format!("{parameter} {why}")));
    match text.len() {
        0 => wrong("is empty"),
        1..=LONGEST_NAME if text.contains(char::is_control) => wrong("has a control character"),
        1..=LONGEST_NAME => Ok(text.to_owned()),
        more => wrong(&format!("has {more} bytes; a name may have {LONGEST_NAME}")),
    }
}

/// A base that references with one slash at their beginning can be resolved against, and that may be told to others.
fn check_base(text: &str) -> Result<(), Refusal> {
    let wrong = |why: &str| Err(Refusal::malformed(format!("base {why}")));
    let Some(origin) = origin_of(text) else { return wrong("is no URI such as coap://[2001:db8::1]:61616") };
    if text.contains(|c: char| c.is_control() || c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\\')) {
        return wrong("has a character that a URI may not have; encode it by percent signs");
    }
    if text.contains(['?', '#']) {
        return wrong("has a query or a fragment; leave it out");
    }
    let host = host_of(origin);
    if host.is_empty() || origin.contains('@') {
        return wrong("has no host, or a user name; write scheme://host");
    }
    if let Some(literal) = host.strip_prefix('[') {
        let literal = literal.trim_end_matches(']');
        if literal.contains('%') {
            return wrong("has a zone, which means nothing to others (RFC 9176 §5); leave out what stands behind %");
        }
        if literal.parse::<Ipv6Addr>().is_err() {
            return wrong("has brackets without an IPv6 address");
        }
    }
    Ok(())
}

/// Whether a reference begins with a scheme.
pub(super) fn has_scheme(reference: &str) -> bool {
    let scheme = reference.split_once(':').map(|(scheme, _)| scheme.as_bytes());
    scheme.is_some_and(|scheme| {
        scheme.first().is_some_and(u8::is_ascii_alphabetic)
            && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
    })
}

/// Scheme and authority of a URI: what a path can follow.
pub(super) fn origin_of(uri: &str) -> Option<&str> {
    let behind = uri.find("://").filter(|_| has_scheme(uri))? + 3;
    let authority = uri.get(behind..)?;
    let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
    uri.get(..behind + end)
}

/// The host of an origin, an IPv6 address in its brackets.
pub(super) fn host_of(origin: &str) -> &str {
    let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
    match authority.find(']') {
        Some(end) => authority.get(..=end).unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &[&str]) -> Result<Parameters, String> {
        Parameters::read(query.iter().copied()).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_query_is_read() {
        let longest = "é".repeat(31) + "x";
        let ep = format!("ep={longest}");
        let read =
            read(&[&ep, "d=floor 3", "lt=4294967295", "base=coaps+tcp://[2001:db8::1]:7/x", "et=a", "et=b", "b="]);
        let attribute = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let expected = Parameters {
            name: Some(longest),
            sector: Some("floor 3".into()),
            lifetime: Some(u32::MAX),
            base: Some("coaps+tcp://[2001:db8::1]:7/x".into()),
            attributes: vec![attribute("et", "a"), attribute("et", "b"), attribute("b", "")],
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let long = format!("ep={}", "x".repeat(64));
        for (part, why) in [
            ("ep=", "ep is empty"),
            ("ep", "ep is empty"),
            (long.as_str(), "ep has 64 bytes"),
            ("ep=a\u{0}", "ep has a control character"),
            ("ep=a\u{7f}", "ep has a control character"),
            ("ep=\u{9f}", "ep has a control character"),
            ("d=\n", "d has a control character"),
            ("lt=0", "lt is the lifetime"),
            ("lt=4294967296", "lt is the lifetime"),
            ("lt=+5", "lt is the lifetime"),
            ("lt=", "lt is the lifetime"),
            ("base=", "base is no URI"),
            ("base=/x", "base is no URI"),
            ("base=coap:x", "base is no URI"),
            ("base=coap://", "base has no host"),
            ("base=coap:///x", "base has no host"),
            ("base=coap://a@h", "base has no host, or a user name"),
            ("base=coap://h?x", "base has a query"),
            ("base=coap://h>;rt=x", "base has a character"),
            ("base=coap://[fe80::1%25eth0]", "base has a zone"),
            ("base=coap://[fe80:1]", "base has brackets"),
            ("base=coap://[]", "base has brackets"),
            ("page=1", "page is none of"),
            ("rt=x", "rt is none of"),
            ("a b=1", "\"a b\" is no name"),
            ("=1", "\"\" is no name"),
            ("et=\u{1}", "the value of et has a control character"),
        ] {
            let error = read(&[part]).unwrap_err();
            assert!(error.starts_with(why), "{part:?}: {error}");
        }
        assert_eq!(read(&["lt=1", "lt=1"]).unwrap_err(), "lt stands twice; say it once");
        let many: Vec<String> = (0..10_000).map(|number| format!("a{number}=1")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(read(&many).unwrap_err(), "an endpoint may have 64 attributes; leave out some");
    }
}

//! Paths with parameters, and the URIs that they lead to: `/meters/{id}/{*rest}` to `coap://10.77.1.{id}/{*rest}`.

use std::{fmt, sync::Arc};

use millpond_live::{Transport, Uri};

use crate::target::{Target, web_transport, with_port};

/// What a path must look like to be matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pieces: Vec<Piece>,
    text: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    /// One segment.
    One(String),
    /// All that follow, also none.
    Rest(String),
}

/// Values of parameters, by name: one segment, or for `{*name}` any number of them.
pub(crate) type Values<'p> = Vec<(&'p str, &'p [String])>;

impl Pattern {
    /// From `/meters/{id}/{*rest}`.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix('/').ok_or("does not begin with a slash")?;
        let segments: Vec<&str> = if rest.is_empty() { Vec::new() } else { rest.split('/').collect() };
        let mut pieces = Vec::with_capacity(segments.len());
        for (place, segment) in segments.iter().enumerate() {
            pieces.push(match segment.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
                None if segment.contains(['{', '}']) => {
                    return Err(format!("{segment:?}: a parameter is a whole segment, like /{{id}}/"));
                }
                None if matches!(*segment, "." | "..") => return Err(format!("has a segment {segment:?}")),
                None => Piece::Literal((*segment).to_owned()),
                Some(name) => match name.strip_prefix('*') {
                    Some(_) if place + 1 < segments.len() => return Err("goes on behind {*...}".into()),
                    Some(name) => Piece::Rest(checked(name)?),
                    None => Piece::One(checked(name)?),
                },
            });
        }
        let names: Vec<&str> = pieces.iter().filter_map(Piece::name).collect();
        if let Some(twice) =
            names.iter().enumerate().find(|(place, name)| names.iter().take(*place).any(|it| it == *name))
        {
            return Err(format!("has the parameter {:?} twice", twice.1));
        }
        Ok(Self { pieces, text: text.into() })
    }

    /// The values of its parameters, if a path matches.
    pub(crate) fn values<'p>(&'p self, mut path: &'p [String]) -> Option<Values<'p>> {
        let mut values = Values::new();
        for piece in &self.pieces {
            let (taken, rest) = path.split_at_checked(if piece.is_rest() { path.len() } else { 1 })?;
            match piece {
                Piece::Literal(text) if taken != std::slice::from_ref(text) => return None,
                Piece::Literal(_) => {}
                Piece::One(name) | Piece::Rest(name) => values.push((name, taken)),
            }
            path = rest;
        }
        path.is_empty().then_some(values)
    }

    /// The path that has these values: the other way round.
    pub(crate) fn path(&self, values: &Values<'_>) -> Option<Vec<String>> {
        let mut path = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => path.push(text.clone()),
                Piece::One(name) | Piece::Rest(name) => path.extend_from_slice(of(values, name)?),
            }
        }
        Some(path)
    }

    /// As it was written.
    pub(crate) const fn text(&self) -> &Arc<str> {
        &self.text
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(Piece::name)
    }

    /// Whether it matches every path that the other one does.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let (mut mine, mut others) = (self.pieces.iter(), other.pieces.iter());
        loop {
            match (mine.next(), others.next()) {
                (Some(Piece::Rest(_)), _) | (None, None) => return true,
                (Some(Piece::One(_)), Some(Piece::One(_) | Piece::Literal(_))) => {}
                (Some(Piece::Literal(text)), Some(Piece::Literal(other))) if text == other => {}
                _ => return false,
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Piece {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::One(name) | Self::Rest(name) => Some(name),
        }
    }

    const fn is_rest(&self) -> bool {
        matches!(self, Self::Rest(_))
    }
}

fn checked(name: &str) -> Result<String, String> {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name
        .then(|| name.to_owned())
        .ok_or_else(|| format!("{name:?} is no name of a parameter; write {{id}} or {{*rest}}"))
}

fn of<'p>(values: &Values<'p>, name: &str) -> Option<&'p [String]> {
    values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whom {
    Host(Uri),
    /// One whose name or address has parameters.
    OneOf(Transport, String, u16),
    /// The endpoint of this name in the directory.
    Endpoint(String),
}

/// Where a request goes: a URI whose host and path may have parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Goal {
    whom: Whom,
    /// By HTTP.
    is_web: bool,
    path: Pattern,
    query: Vec<String>,
}

impl Goal {
    /// From `coap://10.77.1.{id}:5683/{*rest}?k=v`.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub(crate) fn read(text: &str, known: &Pattern) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("is no URI; write coap://HOST/...")?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let web = web_transport(scheme);
        let whom = if scheme == "endpoint" {
            Whom::Endpoint(authority.to_owned())
        } else {
            // A digit in place of each parameter: what remains is a URI like others.
            let plain = match web {
                Some((transport, port)) => {
                    format!("{transport}://{}/", with_port(&in_place_of_parameters(authority), port))
                }
                None => format!("{scheme}://{}/", in_place_of_parameters(authority)),
            };
            let uri: Uri = plain.parse().map_err(|error: millpond_live::UriError| error.to_string())?;
            let bare = format!(":{}", uri.port());
            match authority.strip_suffix(&bare).unwrap_or(authority) {
                host if host.contains(['{', '}']) => Whom::OneOf(uri.transport(), host.to_owned(), uri.port()),
                _ => Whom::Host(uri),
            }
        };
        let goal = Self {
            whom,
            is_web: web.is_some(),
            path: Pattern::read(path)?,
            query: query.map(|query| query.split('&').map(str::to_owned).collect()).unwrap_or_default(),
        };
        let in_host = parameters(goal.open_host())?;
        let all = in_host.iter().map(String::as_str).chain(goal.path.names());
        if let Some(unknown) = all.into_iter().find(|name| !known.names().any(|it| it == *name)) {
            return Err(format!("{{{unknown}}} is no parameter of the path"));
        }
        if let Some(name) =
            in_host.iter().find(|name| known.pieces.iter().any(|it| matches!(it, Piece::Rest(rest) if rest == *name)))
        {
            return Err(format!(
                "{{{name}}} is several segments, and a host is one; use {{{name}}} without * in the path"
            ));
        }
        Ok(goal)
    }

    /// What a client says decides whom is asked.
    pub(crate) const fn has_open_host(&self) -> bool {
        !matches!(self.whom, Whom::Host(_))
    }

    fn open_host(&self) -> &str {
        match &self.whom {
            Whom::Host(_) => "",
            Whom::OneOf(_, text, _) | Whom::Endpoint(text) => text,
        }
    }

    /// An endpoint of the directory is asked.
    pub(crate) const fn is_endpoint(&self) -> bool {
        matches!(self.whom, Whom::Endpoint(_))
    }

    /// The name of the endpoint that is asked, with these values.
    pub(crate) fn endpoint(&self, values: &Values<'_>) -> Option<String> {
        let Whom::Endpoint(name) = &self.whom else { return None };
        let fill =
            |name: String, (known, value): &(&str, &[String])| name.replace(&format!("{{{known}}}"), &value.join("/"));
        Some(values.iter().fold(name.clone(), fill))
    }

    /// Its path with these values, and its query before the other one.
    pub(crate) fn path_and_query(&self, values: &Values<'_>, query: &[String]) -> Option<(Vec<String>, Vec<String>)> {
        Some((self.path.path(values)?, self.query.iter().chain(query).cloned().collect()))
    }

    /// Whom it leads to, if that is the same for all.
    pub(crate) fn fixed(&self) -> Option<Target> {
        let Whom::Host(uri) = &self.whom else { return None };
        Some(self.made()(uri.clone()))
    }

    const fn made(&self) -> fn(Uri) -> Target {
        if self.is_web { Target::web } else { Target::coap }
    }

    /// Whether it asks by TLS for HTTP.
    pub(crate) fn is_https(&self) -> bool {
        let transport = match &self.whom {
            Whom::Host(uri) => uri.transport(),
            Whom::OneOf(transport, ..) => *transport,
            Whom::Endpoint(_) => return false,
        };
        self.is_web && transport == Transport::Tls
    }

    /// What is asked with these values; none where a value makes no host.
    pub(crate) fn target(&self, values: &Values<'_>, query: &[String]) -> Option<Target> {
        let (path, query) = self.path_and_query(values, query)?;
        let uri = match &self.whom {
            Whom::Host(uri) => uri.at(path, query),
            Whom::OneOf(transport, host, port) => uri(*transport, &filled(host, values)?, *port, path, query),
            Whom::Endpoint(_) => None,
        };
        uri.map(self.made())
    }

    /// The path at the gateway that leads to this path of the one that is asked.
    pub(crate) fn path_here(&self, here: &Pattern, asked: &[String], there: &[String]) -> Option<Vec<String>> {
        let mut values = self.path.values(there)?;
        // What stands in the host is the same as it was.
        values.extend(here.values(asked)?.into_iter().filter(|(name, _)| !self.path.names().any(|it| it == *name)));
        here.path(&values)
    }
}

/// A host with these values in place of its parameters; none where one is no label: a dot, colon or at sign would lead to somebody else's
/// host.
fn filled(host: &str, values: &Values<'_>) -> Option<String> {
    let mut host = host.to_owned();
    for (name, value) in values {
        let hole = format!("{{{name}}}");
        if !host.contains(&hole) {
            continue;
        }
        let [label] = value else { return None };
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if label.is_empty() || label.len() > 63 || !label.bytes().all(is_letter) {
            return None;
        }
        host = host.replace(&hole, label);
    }
    Some(host)
}

/// A URI of these parts; none where they make none.
pub(crate) fn uri(transport: Transport, host: &str, port: u16, path: Vec<String>, query: Vec<String>) -> Option<Uri> {
    format!("{transport}://{host}:{port}/").parse::<Uri>().ok()?.at(path, query)
}

fn in_place_of_parameters(text: &str) -> String {
    let (mut plain, mut is_inside) = (String::new(), false);
    for letter in text.chars() {
        match letter {
            '{' => is_inside = true,
            // A digit: an address stays one.
            '}' => {
                is_inside = false;
                plain.push('1');
            }
            letter if !is_inside => plain.push(letter),
            _ => {}
        }
    }
    plain
}

fn parameters(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}').ok_or("has { without }")?;
        names.push(checked(name)?);
        rest = behind;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(path: &[&str]) -> Vec<String> {
        path.iter().map(|segment| (*segment).to_owned()).collect()
    }

    fn led(path: &str, goal: &str, asked: &[&str]) -> Option<String> {
        let pattern = Pattern::read(path).unwrap();
        let goal = Goal::read(goal, &pattern).unwrap();
        goal.target(&pattern.values(&owned(asked))?, &["q=1".into()]).map(|target| target.to_string())
    }

    #[test]
    fn a_path_leads_where_its_parameters_say() {
        let meters = |asked: &[&str]| led("/meters/{id}/{*rest}", "coap://10.77.1.{id}/{*rest}", asked);
        assert_eq!(meters(&["meters", "7", "a", "b c"]).as_deref(), Some("coap://10.77.1.7/a/b%20c?q=1"));
        assert_eq!(meters(&["meters", "7"]).as_deref(), Some("coap://10.77.1.7/?q=1"));
        assert_eq!(meters(&["meters"]), None);
        let fixed = led("/{*all}", "coaps+tcp://[2001:db8::1]:99/x/{*all}?k", &["y"]);
        assert_eq!(fixed.as_deref(), Some("coaps+tcp://[2001:db8::1]:99/x/y?k&q=1"));
        assert_eq!(led("/", "coap://a/b", &[]).as_deref(), Some("coap://a/b?q=1"));
        assert_eq!(led("/{*r}", "http://a/{*r}", &["b c"]).as_deref(), Some("http://a:80/b%20c?q=1"));
        assert_eq!(led("/", "https://[2001:db8::1]:99/", &[]).as_deref(), Some("https://[2001:db8::1]:99/?q=1"));
        assert_eq!(led("/{id}", "http://10.77.1.{id}/", &["7"]).as_deref(), Some("http://10.77.1.7:80/?q=1"));
    }

    /// What a client writes in place of a parameter never names another host, port or path than one segment would.
    #[test]
    fn values_of_parameters_stay_in_their_place() {
        for value in ["7.evil.example", "7:99", "7@evil", "", "7/x", "%2e", "[::1]", "7\r\n", &"9".repeat(64)] {
            assert_eq!(led("/m/{id}", "coap://10.77.1.{id}/x", &["m", value]), None, "{value:?}");
        }
        for value in ["a/b", "?x#y", "", "%2e%2e", "\r\n"] {
            let uri = led("/m/{id}", "coap://h/{id}/z", &["m", value]).unwrap();
            let back: Uri = uri.parse().unwrap();
            assert_eq!(back.path(), [value, "z"]);
        }
        for value in [".", ".."] {
            assert_eq!(led("/m/{id}", "coap://h/{id}/z", &["m", value]), None);
        }
    }

    #[test]
    fn a_location_is_found_at_the_gateway_again() {
        let here = Pattern::read("/meters/{id}/{*rest}").unwrap();
        let goal = Goal::read("coap://10.77.1.{id}/v1/{*rest}", &here).unwrap();
        let asked = owned(&["meters", "7", "jobs"]);
        let location = |there: &[&str]| goal.path_here(&here, &asked, &owned(there));
        assert_eq!(location(&["v1", "jobs", "3"]).unwrap(), ["meters", "7", "jobs", "3"]);
        assert_eq!(location(&["elsewhere"]), None);
    }

    #[test]
    fn what_makes_no_rule_is_told_with_the_fix() {
        for (path, part) in [
            ("x", "begin with a slash"),
            ("/{}", "no name"),
            ("/a{b}", "whole segment"),
            ("/{*a}/b", "goes on behind"),
            ("/{a}/{a}", "twice"),
            ("/a/../b", "segment"),
        ] {
            assert!(Pattern::read(path).unwrap_err().contains(part), "{path}");
        }
        let pattern = Pattern::read("/{id}/{*rest}").unwrap();
        for (goal, part) in [
            ("10.0.0.1", "no URI"),
            ("coop://h/", "unknown scheme"),
            ("coap://h/{x}", "no parameter of the path"),
            ("coap://h.{rest}/", "several segments"),
            ("coap://h{id/", "without }"),
        ] {
            let told = Goal::read(goal, &pattern).unwrap_err();
            assert!(told.contains(part), "{goal}: {told}");
        }
    }

    #[test]
    fn a_pattern_covers_what_it_matches_too() {
        let covers = |one: &str, other: &str| Pattern::read(one).unwrap().covers(&Pattern::read(other).unwrap());
        assert!(covers("/{*all}", "/a/{id}") && covers("/{x}", "/a") && covers("/a", "/a") && covers("/a/{*r}", "/a"));
        assert!(
            !covers("/a", "/{x}") && !covers("/{x}", "/{*all}") && !covers("/a/{*r}", "/b") && !covers("/a", "/a/b")
        );
    }
}

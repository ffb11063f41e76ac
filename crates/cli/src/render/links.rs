//! Links of RFC 6690: one a line, or taken apart.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A link: where it leads, and what is said of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What stands between the angle brackets.
    pub href: String,
    /// Names and values, in order; no value for one that stands alone.
    pub attributes: Vec<(String, Option<String>)>,
}

/// One object; an attribute without value is `true`, and of those with one name the last one counts.
impl Serialize for Link {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let last: BTreeMap<_, _> = self.attributes.iter().enumerate().map(|(at, (name, _))| (name, at)).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("href", &self.href)?;
        for (position, (name, value)) in self.attributes.iter().enumerate() {
            match value {
                _ if name == "href" || last.get(name) != Some(&position) => {}
                Some(value) => map.serialize_entry(name, value)?,
                None => map.serialize_entry(name, &true)?,
            }
        }
        map.end()
    }
}

/// Takes links apart. What is none is passed over.
#[must_use]
pub fn parse(text: &str) -> Vec<Link> {
    let link = |text: &str| {
        let (href, rest) = text.trim().strip_prefix('<')?.split_once('>')?;
        let attributes = parts(rest, ';').filter(|part| !part.is_empty()).map(|part| match part.split_once('=') {
            Some((name, value)) => (name.trim().to_owned(), Some(unquoted(value.trim()))),
            None => (part.to_owned(), None),
        });
        Some(Link { href: href.to_owned(), attributes: attributes.collect() })
    };
    one_a_line(text).split('\n').filter_map(link).collect()
}

/// The parts of an attribute list, of which none ends within quotation marks.
fn parts(text: &str, end: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c: char| {
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = c == '\\' && !escaped;
        c == end && !quoted
    })
    .map(str::trim)
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut escaped = false;
    inner
        .chars()
        .filter(|c| {
            escaped = *c == '\\' && !escaped;
            !escaped
        })
        .collect()
}

/// Breaks the text at commas that part links: those outside quotation marks and angle brackets.
pub(super) fn one_a_line(text: &str) -> String {
    let (mut quoted, mut escaped, mut bracketed) = (false, false, false);
    text.chars()
        .map(|c| {
            match c {
                '"' if !escaped => quoted = !quoted,
                '<' if !quoted => bracketed = true,
                '>' if !quoted => bracketed = false,
                _ => {}
            }
            escaped = c == '\\' && !escaped;
            if c == ',' && !quoted && !bracketed { '\n' } else { c }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_taken_apart() {
        let link = |href: &str, attributes: &[(&str, Option<&str>)]| Link {
            href: href.into(),
            attributes: attributes.iter().map(|(name, value)| ((*name).into(), value.map(Into::into))).collect(),
        };
        let text = r#"</a,b>;rt="x;y \"z\"";ct=40;obs, <coap://h/c> ,nothing,</d>;"#;
        let expected = [
            link("/a,b", &[("rt", Some("x;y \"z\"")), ("ct", Some("40")), ("obs", None)]),
            link("coap://h/c", &[]),
            link("/d", &[]),
        ];
        assert_eq!(parse(text), expected);
        assert_eq!(parse(""), []);
    }

    /// 200 kB of attributes took seconds, a megabyte a minute.
    #[test]
    fn attributes_of_a_link_are_not_compared_with_all_that_follow() {
        let text: String = (0..1 << 20).map(|number| format!(";{number:x}")).collect();
        let links = parse(&format!("<a>{text};0=x;0=y"));
        let told = serde_json::to_string(&links).expect("no odd keys");
        assert!(told.starts_with(r#"[{"href":"a","1":true,"2":true,"#) && told.ends_with(r#","0":"y"}]"#));
    }

    #[test]
    fn commas_within_a_link_stay() {
        let text = r#"</a,b>;rt="x,\"y,",</c>"#;
        assert_eq!(one_a_line(text), "</a,b>;rt=\"x,\\\"y,\"\n</c>");
    }
}

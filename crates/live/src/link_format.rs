//! Links of RFC 6690: read where they stand, and written.

use std::{borrow::Cow, fmt};

use crate::percent_encoded;

/// The links that a text holds, as pieces of it: what stands between commas that are in neither quotation marks nor angle brackets.
/// [`Link::parse`] reads each.
///
/// ```
/// use millpond_live::{Link, links};
///
/// let text = r#"</sensors/temp>;rt="temperature-c";ct=40,</a,b>"#;
/// let targets: Vec<_> = links(text).filter_map(|piece| Link::parse(piece).ok()).map(|link| link.target()).collect();
/// assert_eq!(targets, ["/sensors/temp", "/a,b"]);
/// ```
pub fn links(text: &str) -> impl Iterator<Item = &str> {
    parts(text, ',').filter(|piece| !piece.is_empty())
}

/// One link, as it stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'t> {
    target: &'t str,
    attributes: &'t str,
}

/// What is said of the target of a [`Link`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkAttribute<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its value, without quotation marks; none for one that stands alone.
    pub value: Option<Cow<'t, str>>,
    /// The same as it is written: `rt="a b"`.
    pub written: &'t str,
}

/// Why a text is no link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{shown:?} {why}")]
pub struct LinkError {
    shown: String,
    why: &'static str,
}

/// Characters of a text that an error shows.
const SHOWN: usize = 40;

impl LinkError {
    fn new(text: &str, why: &'static str) -> Self {
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        Self { shown, why }
    }
}

impl<'t> Link<'t> {
    /// Reads a link (`link-value` of RFC 6690 §2). White space around it and around its attributes is no part of it.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &'t str) -> Result<Self, LinkError> {
        let text = text.trim_matches(is_space);
        let wrong = |part: &str, why| Err(LinkError::new(part, why));
        let Some(opened) = text.strip_prefix('<') else { return wrong(text, "does not begin with <") };
        let Some((target, rest)) = opened.split_once('>') else { return wrong(text, "has no > behind its target") };
        if target.contains(|c: char| c.is_control() || c.is_whitespace() || matches!(c, '<' | '"')) {
            return wrong(
                target,
                "is no URI reference; encode white space, control characters, < and \" by percent signs",
            );
        }
        let rest = rest.trim_start_matches(is_space);
        let attributes = match rest.strip_prefix(';') {
            Some(attributes) => attributes,
            None if rest.is_empty() => rest,
            None => return wrong(rest, "stands behind the target; attributes begin with ;"),
        };
        let link = Self { target, attributes };
        for written in link.written() {
            let (name, value) = name_and_value(written);
            if !is_attribute_name(name) {
                return wrong(written, "has no name of an attribute");
            }
            let Some(value) = value else { continue };
            if value.starts_with('"') {
                match quoted_length(value) {
                    None => return wrong(written, "has no quotation mark at its end"),
                    Some(length) if length < value.len() => return wrong(written, "goes on behind a quotation mark"),
                    Some(_) if value.contains(char::is_control) => return wrong(written, "has a control character"),
                    Some(_) => {}
                }
            } else if value.is_empty() || !value.bytes().all(stands_unquoted) {
                return wrong(written, "has a value that has to stand in quotation marks");
            }
        }
        Ok(link)
    }

    /// What stands between its angle brackets.
    #[must_use]
    pub const fn target(&self) -> &'t str {
        self.target
    }

    /// What is said of that, in order.
    pub fn attributes(&self) -> impl Iterator<Item = LinkAttribute<'t>> + use<'t> {
        self.written().map(|written| {
            let (name, value) = name_and_value(written);
            LinkAttribute { name, value: value.map(unquoted), written }
        })
    }

    fn written(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        parts(self.attributes, ';').filter(|part| !part.is_empty())
    }
}

/// A text in which links are written one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkWriter(String);

impl LinkWriter {
    /// One more, with this between its angle brackets. What may not stand in a URI reference is percent-encoded.
    pub fn link(&mut self, target: &str) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push('<');
        // What is encoded already stays so, and so do letters of all languages (RFC 9176 appendix B.4).
        for c in target.chars() {
            match c {
                c if c.is_control() || c.is_whitespace() || matches!(c, '<' | '>' | '"') => {
                    self.0.push_str(&percent_encoded(c.encode_utf8(&mut [0; 4]), b""));
                }
                c => self.0.push(c),
            }
        }
        self.0.push('>');
        self
    }

    /// One more attribute of the last link. A number of `ct` and `sz` stands as it is, everything else in quotation marks.
    pub fn attribute(&mut self, name: &str, value: &str) -> &mut Self {
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        self.flag(name).0.push('=');
        if is_number && matches!(name, "ct" | "sz") {
            self.0.push_str(value);
            return self;
        }
        self.0.push('"');
        for c in value.chars() {
            if matches!(c, '"' | '\\') {
                self.0.push('\\');
            }
            self.0.push(c);
        }
        self.0.push('"');
        self
    }

    /// The same without a value.
    pub fn flag(&mut self, name: &str) -> &mut Self {
        self.0.push(';');
        self.0.push_str(name);
        self
    }

    /// The same as another link has it.
    pub fn copy(&mut self, attribute: &LinkAttribute<'_>) -> &mut Self {
        self.flag(attribute.written)
    }

    /// Bytes that are written.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Nothing is written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }
}

impl fmt::Display for LinkWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether an attribute fits what a query asks for (RFC 6690 §4.1): the same, or what begins so if an asterisk ends it. Of
/// attributes that hold several values, separated by spaces, one has to fit.
#[must_use]
pub fn attribute_fits(name: &str, value: &str, wanted: &str) -> bool {
    let fits = |value: &str| match wanted.strip_suffix('*') {
        Some(start) => value.starts_with(start),
        None => value == wanted,
    };
    match name {
        "rt" | "if" | "ct" | "rel" | "rev" => value.split(' ').any(fits),
        _ => fits(value),
    }
}

/// Whether an attribute may be called so (`parmname` of RFC 5987, with an asterisk at its end or without).
#[must_use]
pub fn is_attribute_name(name: &str) -> bool {
    let name = name.strip_suffix('*').unwrap_or(name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte))
}

/// What may stand in a value without quotation marks (`ptokenchar` of RFC 6690 §2).
fn stands_unquoted(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

/// White space between the parts of links.
const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// The parts of a text that this ends, of which none ends within quotation marks or angle brackets.
fn parts(text: &str, end: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped, mut is_bracketed, mut is_new) = (false, false, false, true);
    text.split(move |c: char| {
        if is_bracketed {
            is_bracketed = c != '>';
            return false;
        }
        if is_quoted {
            is_quoted = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            return false;
        }
        // Behind the target an angle bracket is part of a value.
        is_bracketed = c == '<' && is_new;
        is_quoted = c == '"';
        is_new = c == end || is_new && is_space(c);
        c == end
    })
    .map(|part| part.trim_matches(is_space))
}

fn name_and_value(written: &str) -> (&str, Option<&str>) {
    match written.split_once('=') {
        Some((name, value)) => (name.trim_end_matches(is_space), Some(value.trim_start_matches(is_space))),
        None => (written, None),
    }
}

/// Bytes of what stands in quotation marks at the beginning of a text, these included.
fn quoted_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let inner = text.strip_prefix('"')?;
    let end = inner.find(|c: char| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })?;
    Some(end + 2)
}

fn unquoted(value: &str) -> Cow<'_, str> {
    let Some(inner) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) else {
        return Cow::Borrowed(value);
    };
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut is_escaped = false;
    let kept = inner.chars().filter(|c| {
        is_escaped = *c == '\\' && !is_escaped;
        !is_escaped
    });
    Cow::Owned(kept.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(piece: &str) -> (String, Vec<(String, Option<String>)>) {
        let link = Link::parse(piece).unwrap();
        let attributes =
            link.attributes().map(|attribute| (attribute.name.to_owned(), attribute.value.map(Cow::into_owned)));
        (link.target().to_owned(), attributes.collect())
    }

    #[test]
    fn links_are_read_where_they_stand() {
        let text =
            "</a,b>;rt=\"x;y \\\"z\\\"\";ct=40;obs, <coap://h/c> ,\n</d>;,</e>;\n  if = sensor ; title*=UTF-8'en'x";
        let read: Vec<_> = links(text).map(read).collect();
        let link = |target: &str, attributes: &[(&str, Option<&str>)]| {
            let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)));
            (target.to_owned(), attributes.collect::<Vec<_>>())
        };
        let expected = [
            link("/a,b", &[("rt", Some("x;y \"z\"")), ("ct", Some("40")), ("obs", None)]),
            link("coap://h/c", &[]),
            link("/d", &[]),
            link("/e", &[("if", Some("sensor")), ("title*", Some("UTF-8'en'x"))]),
        ];
        assert_eq!(read, expected);
        assert_eq!(links("").count(), 0);
        assert_eq!(links(" ,, ").count(), 0);
    }

    #[test]
    fn commas_and_semicolons_within_a_link_stay() {
        let text = r#"</a,b>;rt="x,\"y,;z",</c;d"e>,</f>;if=<x, </g>"#;
        let pieces = [r#"</a,b>;rt="x,\"y,;z""#, r#"</c;d"e>"#, "</f>;if=<x", "</g>"];
        assert_eq!(links(text).collect::<Vec<_>>(), pieces);
    }

    #[test]
    fn what_is_no_link_says_where_and_why() {
        for (text, why) in [
            ("", "\"\" does not begin with <"),
            ("/a", "\"/a\" does not begin with <"),
            ("</a", "\"</a\" has no > behind its target"),
            ("</a b>", "\"/a b\" is no URI reference"),
            ("</a\u{1}>", "\"/a\\u{1}\" is no URI reference"),
            ("</a>rt=x", "\"rt=x\" stands behind the target"),
            ("</a>;=x", "\"=x\" has no name"),
            ("</a>;r t=x", "\"r t=x\" has no name"),
            ("</a>;rt=", "\"rt=\" has a value that has to stand in quotation marks"),
            ("</a>;rt=é", "has to stand in quotation marks"),
            ("</a>;rt=\"x", "\"rt=\\\"x\" has no quotation mark at its end"),
            ("</a>;rt=\"x\\\"", "has no quotation mark at its end"),
            ("</a>;rt=\"x\"y", "goes on behind a quotation mark"),
            ("</a>;rt=\"x\ny\"", "has a control character"),
        ] {
            let error = Link::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        let long = format!("</{}", "a".repeat(10_000));
        assert!(Link::parse(&long).unwrap_err().to_string().len() < 120);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut writer = LinkWriter::default();
        writer
            .link("/a b/<é>%20")
            .attribute("title", "a \"q\" \\")
            .attribute("ct", "40")
            .attribute("ct", "0 41")
            .flag("obs");
        writer.link("/c").attribute("sz", "");
        let text = writer.into_text();
        assert_eq!(text, "</a%20b/%3Cé%3E%20>;title=\"a \\\"q\\\" \\\\\";ct=40;ct=\"0 41\";obs,</c>;sz=\"\"");
        let all: Vec<_> = links(&text).map(read).collect();
        assert_eq!(all[0].1[0].1.as_deref(), Some("a \"q\" \\"));
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn values_fit_as_the_rfc_says() {
        for (name, value, wanted, fits) in [
            ("rt", "a bc", "bc", true),
            ("rt", "a bc", "b*", true),
            ("rt", "a bc", "a bc", false),
            ("title", "a bc", "bc", false),
            ("title", "a bc", "a bc", true),
            ("title", "a", "*", true),
            ("obs", "", "*", true),
            ("obs", "", "", true),
            ("et", "ab", "a", false),
        ] {
            assert_eq!(attribute_fits(name, value, wanted), fits, "{name}={value} and {wanted}");
        }
    }
}

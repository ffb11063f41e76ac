//! Links of RFC 6690: one a line, or taken apart.

use std::collections::BTreeMap;

use millpond_live::{Link, LinkAttribute};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A link as one object; an attribute without value is `true`, and of those with one name the last one counts.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'t>(Link<'t>);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let attributes: Vec<LinkAttribute<'_>> = self.0.attributes().collect();
        let last: BTreeMap<_, _> = attributes.iter().enumerate().map(|(at, attribute)| (attribute.name, at)).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("href", self.0.target())?;
        for (position, LinkAttribute { name, value, .. }) in attributes.iter().enumerate() {
            match value {
                _ if *name == "href" || last.get(name) != Some(&position) => {}
                Some(value) => map.serialize_entry(name, value)?,
                None => map.serialize_entry(name, &true)?,
            }
        }
        map.end()
    }
}

/// Takes links apart. What is none is passed over.
#[must_use]
pub fn parse(text: &str) -> Vec<Shown<'_>> {
    millpond_live::links(text).filter_map(|piece| Link::parse(piece).ok()).map(Shown).collect()
}

/// Each link on a line of its own.
pub(super) fn one_a_line(text: &str) -> String {
    millpond_live::links(text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_taken_apart() {
        let text = r#"</a,b>;rt="x;y \"z\"";ct=40;obs, <coap://h/c> ,nothing,</d>;"#;
        let told = serde_json::to_string(&parse(text)).expect("no odd keys");
        let expected = r#"[{"href":"/a,b","rt":"x;y \"z\"","ct":"40","obs":true},{"href":"coap://h/c"},{"href":"/d"}]"#;
        assert_eq!(told, expected);
        assert_eq!(parse("").len(), 0);
    }

    /// 200 kB of attributes took seconds, a megabyte a minute.
    #[test]
    fn attributes_of_a_link_are_not_compared_with_all_that_follow() {
        let text: String = (0..1 << 20).map(|number| format!(";{number:x}")).collect();
        let told = format!("<a>{text};0=x;0=y");
        let told = serde_json::to_string(&parse(&told)).expect("no odd keys");
        assert!(told.starts_with(r#"[{"href":"a","1":true,"2":true,"#) && told.ends_with(r#","0":"y"}]"#));
    }

    #[test]
    fn commas_within_a_link_stay() {
        let text = r#"</a,b>;rt="x,\"y,",nothing,</c>"#;
        assert_eq!(one_a_line(text), "</a,b>;rt=\"x,\\\"y,\"\nnothing\n</c>");
    }
}

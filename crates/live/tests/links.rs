//! Arbitrary text as links.

use millpond_live::{Link, LinkWriter, attribute_fits, is_attribute_name, links};
use proptest::{collection::vec, option, prelude::*};

/// Text of the characters that mean something, and of some that do not.
fn text() -> impl Strategy<Value = String> {
    let meaningful = "[<>\"\\\\,;=* \n\r\ta-c/é%\u{0}\u{7f}\u{202e}]{0,60}";
    prop_oneof![meaningful, ".{0,40}", "(<[a-c/ ]{0,3}>?(;[a-c*]{0,2}(=\"?[a-c,;\\\\]{0,3}\"?)?){0,3},?){0,5}"]
}

/// What a link that is written may be made of.
fn link() -> impl Strategy<Value = (String, Vec<(String, Option<String>)>)> {
    (".{0,12}", vec(("[a-z][a-z0-9.-]{0,4}", option::of("[^\\p{C}]{0,12}")), 0..5))
}

proptest! {
    /// Each piece is read or refused; nothing that is read is more than the text, and nothing is lost between pieces.
    #[test]
    fn any_text_is_read_or_refused(text in text()) {
        let mut read = 0;
        for piece in links(&text) {
            read += piece.len();
            match Link::parse(piece) {
                Err(error) => prop_assert!(!error.to_string().contains(char::is_control)),
                Ok(link) => {
                    let mut again = LinkWriter::default();
                    again.link(link.target());
                    for attribute in link.attributes() {
                        prop_assert!(is_attribute_name(attribute.name));
                        match &attribute.value {
                            Some(value) => again.attribute(attribute.name, value),
                            None => again.flag(attribute.name),
                        };
                    }
                    let again = again.into_text();
                    prop_assert_eq!(links(&again).count(), 1, "{}", again);
                    let second = Link::parse(&again).map_err(|error| TestCaseError::fail(error.to_string()))?;
                    prop_assert_eq!(second.target(), link.target());
                    let pairs = |link: Link<'_>| -> Vec<_> {
                        link.attributes().map(|it| (it.name.to_owned(), it.value.map(|value| value.into_owned()))).collect()
                    };
                    prop_assert_eq!(pairs(second), pairs(link));
                }
            }
        }
        let between = text.chars().filter(|c| matches!(c, ',' | ' ' | '\t' | '\r' | '\n')).count();
        prop_assert!(read <= text.len() && read + between >= text.len());
    }

    /// What is written is read as what it was, whatever it is made of.
    #[test]
    fn whatever_is_written_is_read_again(all in vec(link(), 0..5)) {
        let mut writer = LinkWriter::default();
        for (target, attributes) in &all {
            writer.link(target);
            for (name, value) in attributes {
                match value {
                    Some(value) => writer.attribute(name, value),
                    None => writer.flag(name),
                };
            }
        }
        let text = writer.into_text();
        let read: Vec<_> = links(&text).map(Link::parse).collect::<Result<_, _>>()
            .map_err(|error| TestCaseError::fail(format!("{error} of {text}")))?;
        prop_assert_eq!(read.len(), all.len());
        for (link, (_, attributes)) in read.iter().zip(&all) {
            let read: Vec<_> = link.attributes().map(|it| (it.name.to_owned(), it.value.map(|v| v.into_owned()))).collect();
            prop_assert_eq!(&read, attributes);
            for (name, value) in read {
                let value = value.unwrap_or_default();
                prop_assert!(attribute_fits(&name, &value, "*") && (value.ends_with('*') || value.contains(' ') || attribute_fits(&name, &value, &value)));
            }
        }
    }
}

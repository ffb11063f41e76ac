//! JSON with indentation, its numbers and the order of its keys left as they are; and JSON of our own, a line each.

use std::io::{Result, Write};

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::ser::{Formatter, Serializer};

use super::DEEPEST;

/// Writes a value as a line in which nothing steers a terminal.
///
/// # Errors
/// What the writer says.
pub fn put(mut out: impl Write, value: &impl Serialize) -> Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut out, Harmless))?;
    out.write_all(b"\n")
}

/// JSON asks for the control characters below space to be escaped, and for no others (RFC 8259 §7). What steers is one UTF-16 unit.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> Result<()> {
        for c in fragment.chars() {
            if super::steers(c) {
                write!(out, "\\u{:04x}", u32::from(c))?;
            } else {
                write!(out, "{c}")?;
            }
        }
        Ok(())
    }
}

/// The same JSON, two spaces a level; `None` if it is none, or deeper than anybody writes: each level is once more in the
/// indentation of every line within.
#[must_use]
pub fn indented(bytes: &[u8]) -> Option<String> {
    serde_json::from_slice::<IgnoredAny>(bytes).ok()?;
    let text = std::str::from_utf8(bytes).ok()?;
    let mut shown = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut characters = text.chars().filter(|c| !c.is_whitespace()).peekable();
    // White space outside strings was taken away and inside strings must not be: strings are copied from the text itself.
    let mut strings = strings(text);
    while let Some(c) = characters.next() {
        match c {
            '"' => {
                let string = strings.next()?;
                shown.push_str(string);
                let length = string.chars().filter(|c| !c.is_whitespace()).count();
                for _ in 1..length {
                    characters.next();
                }
            }
            '{' | '[' => {
                shown.push(c);
                match characters.peek() {
                    Some(close @ ('}' | ']')) => {
                        shown.push(*close);
                        characters.next();
                    }
                    _ if depth >= DEEPEST => return None,
                    _ => {
                        depth += 1;
                        line(&mut shown, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut shown, depth);
                shown.push(c);
            }
            ',' => {
                shown.push(c);
                line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            other => shown.push(other),
        }
    }
    Some(shown)
}

fn line(shown: &mut String, depth: usize) {
    shown.push('\n');
    shown.extend(std::iter::repeat_n("  ", depth));
}

/// The strings of a valid JSON text in their order, quotation marks included.
fn strings(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let open = rest.find('"')?;
        let inside = rest.get(open + 1..)?;
        let mut escaped = false;
        let close = inside.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })?;
        let string = rest.get(open..open + close + 2)?;
        rest = rest.get(open + close + 2..)?;
        Some(string)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keys_and_strings_stay_as_they_are() {
        let text = br#"{ "z":1e400 ,"a" : [ ] , "s":"a b: \"c\\" , "n":[{},12345678901234567890.10,null] }"#;
        let shown = indented(text).expect("valid");
        assert_eq!(
            shown,
            "{\n  \"z\": 1e400,\n  \"a\": [],\n  \"s\": \"a b: \\\"c\\\\\",\n  \"n\": [\n    {},\n    \
             12345678901234567890.10,\n    null\n  ]\n}"
        );
        assert_eq!(indented(shown.as_bytes()), Some(shown));
    }

    #[test]
    fn what_is_no_json_is_not_touched() {
        for text in ["", "{", "[1,]", "{\"a\":1} x", "hello"] {
            assert_eq!(indented(text.as_bytes()), None, "{text}");
        }
    }
}

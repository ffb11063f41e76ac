//! Bodies as a person reads them.
//!
//! Piped, a body is the bytes that the server sent. On a terminal it is shown for what it is, and nothing in it can steer
//! the terminal.

pub mod cbor;
mod hex;
pub mod json;
pub mod links;
pub mod options;
mod steering;

pub use hex::dump;
pub use steering::steers;

use crate::content_format::{self, Shown};

/// Bytes of the longest body that is taken apart to be shown. A longer one is shown as it came: what is made of each byte may be a
/// hundred.
pub(crate) const LONGEST: usize = 1 << 20;

/// How deep data may be nested that is indented.
const DEEPEST: usize = 32;

/// The body as text that ends in a line break, shown for what its format says, or where that is missing or wrong, for
/// what its bytes say. Empty for an empty body.
#[must_use]
pub fn body(bytes: &[u8], format: Option<u16>) -> String {
    if bytes.is_empty() {
        return String::new();
    }
    let told = format.and_then(content_format::shown);
    let shown = match told {
        Some(Shown::Json | Shown::Cbor) if bytes.len() > LONGEST => None,
        Some(Shown::Json) => json::indented(bytes),
        Some(Shown::Cbor) => cbor::diagnostic(bytes),
        Some(Shown::Links) => plain(bytes).map(|text| links::one_a_line(&text)),
        Some(Shown::Text) | None => plain(bytes),
        Some(Shown::Bytes) => None,
    };
    // A format that the bytes do not keep to is no reason to show nothing.
    let shown = shown.or_else(|| told.filter(|told| *told != Shown::Bytes).and_then(|_| plain(bytes)));
    match shown {
        Some(text) => with_line_break(harmless(&text)),
        None => hex::dump(bytes),
    }
}

/// UTF-8 that a person may have written: without control characters but for white space and escape, which is shown.
fn plain(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}');
    (!text.chars().any(odd)).then(|| text.to_owned())
}

/// What a server could steer the terminal by, in a visible form.
fn harmless(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match c {
            '\r' => {}
            '\n' | '\t' => shown.push(c),
            c if steers(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
        shown
    })
}

fn with_line_break(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content_format::{BYTES, CBOR, JSON, LINKS, TEXT};

    #[test]
    fn a_body_is_shown_for_what_its_format_says() {
        let cases: [(&[u8], Option<u16>, &str); 8] = [
            (b"", Some(TEXT), ""),
            (b"hello", Some(TEXT), "hello\n"),
            (b"hello\n", None, "hello\n"),
            (b"{\"a\":[1,2]}", Some(JSON), "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n"),
            (b"\xa1\x61a\x01", Some(CBOR), "{\"a\": 1}\n"),
            (b"</a>;rt=\"x,y\",</b>", Some(LINKS), "</a>;rt=\"x,y\"\n</b>\n"),
            (b"\x01\x02", None, "00000000  01 02                                             ..\n"),
            (b"abc", Some(BYTES), "00000000  61 62 63                                          abc\n"),
        ];
        for (bytes, format, shown) in cases {
            assert_eq!(body(bytes, format), shown, "{bytes:?} as {format:?}");
        }
    }

    #[test]
    fn a_body_that_belies_its_format_is_shown_all_the_same() {
        assert_eq!(body(b"not json", Some(JSON)), "not json\n");
        assert!(body(b"\xff\xfe", Some(JSON)).starts_with("00000000  ff fe"));
        assert!(body(b"\xff\xfe", Some(TEXT)).starts_with("00000000  ff fe"));
    }

    /// Sixteen kilobytes of brackets were 128 MB of indentation.
    #[test]
    fn a_body_made_of_brackets_does_not_grow_by_the_square() {
        let nested =
            |depth: usize| "[".repeat(depth) + &"0,".repeat(LONGEST / 2 - 1 - depth) + "0" + &"]".repeat(depth);
        for (depth, is_indented) in [(DEEPEST, true), (DEEPEST + 1, false), (LONGEST / 2 - 1, false)] {
            let shown = body(nested(depth).as_bytes(), Some(JSON));
            assert!(shown.len() <= LONGEST * (DEEPEST + 2), "{} bytes", shown.len());
            assert_eq!(shown.starts_with("[\n"), is_indented, "{depth} levels");
        }
        let long = [nested(1).as_bytes(), &[b' '; LONGEST]].concat();
        assert!(body(&long, Some(JSON)).starts_with("[0,0,"));
        let cbor = [vec![0x81; DEEPEST - 1], vec![0x9f], vec![0; LONGEST], vec![0xff]].concat();
        assert!(body(&cbor, Some(CBOR)).starts_with("00000000  81 81"));
        // Lengths that are claimed.
        for kind in [0x5b, 0x7b, 0x9b, 0xbb] {
            assert!(body(&[&[kind][..], &[0xff; 8], b"a"].concat(), Some(CBOR)).starts_with("00000000  "));
        }
    }

    #[test]
    fn nothing_in_a_body_steers_the_terminal() {
        assert_eq!(body(b"\x1b[2Jgone\r\n", Some(TEXT)), "\\u{1b}[2Jgone\n");
        let shown = body(b"\x61\x1b", Some(CBOR));
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
        assert_eq!(body("user\u{202e}nimda".as_bytes(), None), "user\\u{202e}nimda\n");
        assert_eq!(body("שלום\u{200f}".as_bytes(), None), "שלום\u{200f}\n");
    }
}

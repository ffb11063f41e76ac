//! Content-Formats by name and by number (RFC 7252 §12.3 and its registry), and those of files by their endings.

use coap_numbers::content_format as registry;

/// `text/plain; charset=utf-8`.
pub const TEXT: u16 = 0;
/// `application/link-format` (RFC 6690).
pub const LINKS: u16 = 40;
/// `application/octet-stream`.
pub const BYTES: u16 = 42;
/// `application/json`.
pub const JSON: u16 = 50;
/// `application/cbor`.
pub const CBOR: u16 = 60;
/// `application/cbor-seq`.
pub const CBOR_SEQUENCE: u16 = 63;

/// Short names, taken beside the registered ones.
const SHORT: &[(&str, u16)] = &[
    ("text", TEXT),
    ("text/plain", TEXT),
    ("links", LINKS),
    ("link-format", LINKS),
    ("xml", 41),
    ("bytes", BYTES),
    ("octet-stream", BYTES),
    ("exi", 47),
    ("json", JSON),
    ("cbor", CBOR),
    ("cbor-seq", CBOR_SEQUENCE),
    ("cwt", 61),
    ("senml+json", 110),
    ("senml+cbor", 112),
    ("sensml+json", 111),
    ("sensml+cbor", 113),
    ("senml+xml", 310),
];

/// What files hold, by their endings.
const ENDINGS: &[(&str, u16)] = &[
    ("txt", TEXT),
    ("text", TEXT),
    ("log", TEXT),
    ("md", TEXT),
    ("csv", TEXT),
    ("toml", TEXT),
    ("html", TEXT),
    ("gif", 21),
    ("jpg", 22),
    ("jpeg", 22),
    ("png", 23),
    ("wlnk", LINKS),
    ("xml", 41),
    ("exi", 47),
    ("json", JSON),
    ("cbor", CBOR),
    ("cborseq", CBOR_SEQUENCE),
    ("cwt", 61),
    ("senml", 110),
    ("sensml", 111),
    ("senmlc", 112),
    ("sensmlc", 113),
    ("js", 10002),
    ("css", 20000),
];

/// Every number that the registry has a name for.
fn registered() -> impl Iterator<Item = (u16, &'static str)> {
    (0..=u16::MAX).filter_map(|number| registry::to_str(number).map(|name| (number, name)))
}

/// The number that a person wrote: a number, a registered name, or a short one such as `json`.
///
/// # Errors
/// A name that nothing has, with the nearest one that something has.
pub fn parse(text: &str) -> Result<u16, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        return text.parse().map_err(|_| format!("{text} is above 65535"));
    }
    let wanted = text.to_ascii_lowercase();
    if let Some((_, number)) = SHORT.iter().find(|(name, _)| *name == wanted) {
        return Ok(*number);
    }
    let squeezed = |name: &str| name.replace(' ', "").to_ascii_lowercase();
    if let Some((number, _)) = registered().find(|(_, name)| squeezed(name) == squeezed(text)) {
        return Ok(number);
    }
    let names = SHORT.iter().map(|(name, _)| *name).chain(registered().map(|(_, name)| name));
    match crate::nearest::nearest(&wanted, names) {
        Some(near) => Err(format!("unknown content format {text:?}: did you mean {near:?}? A number will do too")),
        None => Err(format!("unknown content format {text:?}: write a registered name, json, cbor, text, or a number")),
    }
}

/// The registered name, or the number where there is none.
#[must_use]
pub fn name(number: u16) -> String {
    registry::to_str(number).map_or_else(|| number.to_string(), str::to_owned)
}

/// What a file of this name holds.
#[must_use]
pub fn of_file(name: &str) -> u16 {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    ENDINGS.iter().find(|(known, _)| *known == ending).map_or(BYTES, |(_, number)| *number)
}

/// The usual ending of a file that holds this.
#[must_use]
pub fn ending(number: u16) -> &'static str {
    ENDINGS.iter().find(|(_, known)| *known == number).map_or("bin", |(ending, _)| *ending)
}

/// How a body can be shown to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// As it is.
    Text,
    /// Indented.
    Json,
    /// One link a line.
    Links,
    /// In diagnostic notation.
    Cbor,
    /// As hexadecimal digits.
    Bytes,
}

/// How a body of this format can be shown; `None` if the format says nothing, so that the bytes must.
#[must_use]
pub fn shown(number: u16) -> Option<Shown> {
    // The media type without parameters; a content coding ("@deflate") makes anything bytes.
    let name = registry::to_str(number)?;
    let media = name.split([';', '@']).next().unwrap_or(name).trim();
    Some(match number {
        _ if name.contains('@') => Shown::Bytes,
        LINKS => Shown::Links,
        _ if media == "application/json" || media.ends_with("+json") => Shown::Json,
        _ if media == "application/cbor" || media.ends_with("+cbor") || media.ends_with("cbor-seq") => Shown::Cbor,
        _ if media == "application/cwt" || media.ends_with("+cwt") || media.starts_with("application/cose") => {
            Shown::Cbor
        }
        _ if media.starts_with("text/") || media.ends_with("xml") || media == "application/javascript" => Shown::Text,
        _ => Shown::Bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_named_in_short_in_full_or_by_number() {
        for (text, number) in [
            ("json", 50),
            ("JSON", 50),
            ("application/json", 50),
            ("text/plain;charset=utf-8", 0),
            ("text/plain; charset=utf-8", 0),
            ("text/plain", 0),
            ("cbor", 60),
            ("application/senml+cbor", 112),
            ("application/cose; cose-type=\"cose-sign1\"", 18),
            ("0", 0),
            ("65000", 65000),
        ] {
            assert_eq!(parse(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn an_unknown_format_gets_the_nearest_name() {
        for (text, part) in [
            ("jsn", "did you mean \"json\"?"),
            ("aplication/cbor", "did you mean \"application/cbor\"?"),
            ("65536", "above 65535"),
            ("", "unknown content format"),
            ("?", "or a number"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn every_registered_name_finds_its_number() {
        for (number, name) in registered() {
            assert_eq!(parse(name), Ok(number), "{name}");
        }
        assert!(registered().count() > 100);
    }

    #[test]
    fn files_are_known_by_their_endings() {
        for (file, number) in [
            ("a.json", 50),
            ("b/c.TXT", 0),
            ("d.tar.gz", 42),
            ("noending", 42),
            (".json", 50),
            ("e.", 42),
            ("f.css", 20000),
        ] {
            assert_eq!(of_file(file), number, "{file}");
        }
        assert_eq!((ending(50), ending(42), ending(0)), ("json", "bin", "txt"));
    }

    #[test]
    fn formats_are_shown_for_what_they_are() {
        for (number, how) in [
            (0, Some(Shown::Text)),
            (41, Some(Shown::Text)),
            (110, Some(Shown::Json)),
            (112, Some(Shown::Cbor)),
            (63, Some(Shown::Cbor)),
            (18, Some(Shown::Cbor)),
            (11050, Some(Shown::Bytes)),
            (42, Some(Shown::Bytes)),
            (23, Some(Shown::Bytes)),
            (64999, None),
        ] {
            assert_eq!(shown(number), how, "{number}");
        }
    }
}

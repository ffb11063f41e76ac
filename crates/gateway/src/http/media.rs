//! Media types and Content-Formats, by the registry of IANA (RFC 7252 §12.3, RFC 8075 §6).

use std::{collections::BTreeMap, sync::OnceLock};

use coap_numbers::content_format;

/// A media type without what makes no difference: small letters, parameters in order, no charset that is UTF-8 anyway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MediaType {
    /// `type/subtype`.
    pub(super) essence: String,
    parameters: Vec<(String, String)>,
}

/// Numbers that the registry does not name (RFC 8075 §6.2).
const BY_NUMBER: &str = "application/coap-payload";
/// Parts of a header that are looked at.
const MOST_PARTS: usize = 32;

impl MediaType {
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = split(text, ';');
        let essence = parts.next()?.trim().to_ascii_lowercase();
        let (kind, subtype) = essence.split_once('/')?;
        let is_token = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        };
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let mut parameters = Vec::new();
        for part in parts.filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=')?;
            let (name, value) = (name.trim().to_ascii_lowercase(), unquoted(value.trim()));
            let is_plain =
                name == "charset" && (value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("us-ascii"));
            if !is_plain {
                parameters.push((name, value));
            }
        }
        parameters.sort();
        Some(Self { essence, parameters })
    }

    /// Takes a parameter out.
    fn take(&mut self, name: &str) -> Option<String> {
        let place = self.parameters.iter().position(|(known, _)| known == name)?;
        Some(self.parameters.remove(place).1)
    }

    /// The Content-Format of this type in a content coding.
    pub(super) fn content_format(&self, coding: &str) -> Option<u16> {
        if self.essence == BY_NUMBER && coding.is_empty() {
            let [(name, number)] = &self.parameters[..] else { return None };
            return if name == "cf" { number.parse().ok() } else { None };
        }
        registry().get(&(self.clone(), coding.to_owned())).copied()
    }
}

fn registry() -> &'static BTreeMap<(MediaType, String), u16> {
    static REGISTRY: OnceLock<BTreeMap<(MediaType, String), u16>> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut all = BTreeMap::new();
        for number in 0..=u16::MAX {
            let Some(text) = content_format::to_str(number) else { continue };
            let (media_type, coding) = text.split_once('@').unwrap_or((text, ""));
            if let Some(media_type) = MediaType::read(media_type) {
                all.entry((media_type, coding.to_owned())).or_insert(number);
            }
        }
        all
    })
}

/// The media type of a Content-Format as it is written, and its coding if it has one.
pub(super) fn media_type(format: u16) -> (String, Option<&'static str>) {
    match content_format::to_str(format) {
        Some(text) => {
            text.split_once('@').map_or((text.to_owned(), None), |(text, coding)| (text.to_owned(), Some(coding)))
        }
        None => (format!("{BY_NUMBER};cf={format}"), None),
    }
}

/// What a client takes (RFC 9110 §12.5.1).
#[derive(Clone, Debug, Default)]
pub(super) struct Accepts(Vec<(MediaType, u16)>);

/// Who sends events.
const EVENTS: &str = "text/event-stream";

impl Accepts {
    /// From the values of Accept. What cannot be read is as if it were not there.
    pub(super) fn read<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let ranges = values.flat_map(|value| split(value, ',')).take(MOST_PARTS).filter_map(|range| {
            let mut media_type = MediaType::read(range)?;
            let quality = media_type.take("q").map_or(Some(1_000), |text| quality(&text))?;
            Some((media_type, quality))
        });
        let mut ranges: Vec<_> = ranges.collect();
        // The ones liked best first.
        ranges.sort_by_key(|(_, quality)| std::cmp::Reverse(*quality));
        Self(ranges)
    }

    fn wanted(&self) -> impl Iterator<Item = &MediaType> {
        self.0.iter().filter(|(_, quality)| *quality > 0).map(|(range, _)| range)
    }

    /// Whether events are asked for, by name.
    pub(super) fn has_events(&self) -> bool {
        self.wanted().any(|range| range.essence == EVENTS)
    }

    /// The Content-Formats to ask for, one after the other, with none where any will do; nothing if there is none that the client takes.
    pub(super) fn formats(&self) -> Vec<Option<u16>> {
        /// Of a client that takes more the rest is not tried.
        const MOST: usize = 4;
        let of_states = || self.wanted().filter(|range| range.essence != EVENTS);
        if of_states().next().is_none() && (self.0.is_empty() || self.has_events()) {
            return vec![None];
        }
        // A device that has several and one that the client takes is rare; that it is asked for by a number is a demand in CoAP.
        if of_states().any(|range| range.essence.ends_with("/*")) {
            return vec![None];
        }
        of_states().filter_map(|range| range.content_format("")).map(Some).take(MOST).collect()
    }

    /// Whether the client takes what is of this type.
    pub(super) fn takes(&self, text: &str) -> bool {
        let Some(media_type) = MediaType::read(text) else { return true };
        let kind = media_type.essence.split('/').next().unwrap_or_default();
        let fits = |range: &MediaType| match range.essence.strip_suffix("/*") {
            Some("*") => true,
            Some(of) => of == kind,
            None => range.essence == media_type.essence,
        };
        self.0.is_empty() || self.has_events() || self.wanted().any(fits)
    }
}

/// A weight in thousandths (RFC 9110 §12.4.2).
fn quality(text: &str) -> Option<u16> {
    let weight: f32 = text.parse().ok().filter(|weight| (0.0..=1.0).contains(weight))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 1")]
    let thousandths = (weight * 1_000.0).round() as u16;
    Some(thousandths)
}

/// The parts between separators that do not stand in quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |letter| {
        let is_end = letter == separator && !is_quoted;
        match letter {
            '"' if !is_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        is_escaped = letter == '\\' && is_quoted && !is_escaped;
        is_end
    })
}

fn unquoted(text: &str) -> String {
    match text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => inner.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(text: &str) -> Option<u16> {
        MediaType::read(text)?.content_format("")
    }

    #[test]
    fn media_types_and_content_formats_are_those_of_the_registry() {
        for (text, number) in [
            ("text/plain", 0),
            ("text/plain; charset=UTF-8", 0),
            ("Text/Plain;charset=\"us-ascii\"", 0),
            ("application/json; charset=utf-8", 50),
            ("application/cose; cose-type=\"cose-sign1\"", 18),
            ("application/cose;cose-type=cose-sign1", 18),
            ("application/coap-payload;cf=65000", 65_000),
        ] {
            assert_eq!(format(text), Some(number), "{text}");
        }
        for text in [
            "text/plain; charset=utf-16",
            "text/html",
            "application/json; v=2",
            "json",
            "",
            "a/b/c",
            "a/",
            "text/plain;x",
        ] {
            assert_eq!(format(text), None, "{text}");
        }
        assert_eq!(MediaType::read("application/json").unwrap().content_format("deflate"), Some(11_050));
        assert_eq!(media_type(11_050), ("application/json".into(), Some("deflate")));
        assert_eq!(media_type(65_000).0, "application/coap-payload;cf=65000");
    }

    /// Each number leads back to itself, or to the one that means the same.
    #[test]
    fn formats_go_there_and_back() {
        for number in 0..=u16::MAX {
            let (text, coding) = media_type(number);
            let back = MediaType::read(&text).unwrap().content_format(coding.unwrap_or_default()).unwrap();
            assert_eq!(media_type(back).1, coding);
            assert!(
                back == number || MediaType::read(&media_type(back).0) == MediaType::read(&text),
                "{number}: {back}"
            );
        }
    }

    #[test]
    fn what_a_client_takes_is_asked_for_in_the_order_that_it_likes() {
        let accepts = |text: &str| Accepts::read([text].into_iter());
        assert_eq!(Accepts::default().formats(), [None]);
        let ranked = accepts("application/cbor;q=0.5, application/json, text/html");
        assert_eq!(ranked.formats(), [Some(50), Some(60)]);
        assert!(ranked.takes("application/cbor") && !ranked.takes("text/plain; charset=utf-8"));
        assert_eq!(accepts("text/html,application/xml;q=0.9,*/*;q=0.8").formats(), [None]);
        assert_eq!(accepts("text/*").formats(), [None]);
        assert!(!accepts("text/*").takes("application/json"));
        assert_eq!(accepts("text/html").formats(), []);
        assert_eq!(accepts("application/json;q=0").formats(), []);
        let events = accepts("text/event-stream");
        assert!(events.has_events() && events.formats() == [None]);
        assert_eq!(accepts("text/event-stream, application/json").formats(), [Some(50)]);
    }
}

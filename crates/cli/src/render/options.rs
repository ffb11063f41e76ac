//! Options of a message as a person reads them.

use coap_numbers::option as registry;

use crate::{content_format, values};

/// `Name: value`, the value in the form that the option's definition gives it.
#[must_use]
pub fn line(number: u16, value: &[u8]) -> String {
    format!("{}: {}", values::option_name(number), shown(number, value))
}

/// The value alone.
#[must_use]
pub fn shown(number: u16, value: &[u8]) -> String {
    match number {
        registry::CONTENT_FORMAT | registry::ACCEPT => integer(value)
            .and_then(|format| u16::try_from(format).ok())
            .map_or_else(|| hexadecimal(value), content_format::name),
        registry::BLOCK1 | registry::BLOCK2 | registry::Q_BLOCK1 | registry::Q_BLOCK2 => {
            integer(value).map_or_else(|| hexadecimal(value), block)
        }
        registry::OBSERVE
        | registry::MAX_AGE
        | registry::SIZE1
        | registry::SIZE2
        | registry::URI_PORT
        | registry::HOP_LIMIT
        | registry::NO_RESPONSE => integer(value).map_or_else(|| hexadecimal(value), |number| number.to_string()),
        registry::URI_HOST
        | registry::URI_PATH
        | registry::URI_QUERY
        | registry::LOCATION_PATH
        | registry::LOCATION_QUERY
        | registry::PROXY_URI
        | registry::PROXY_SCHEME => text(value).unwrap_or_else(|| hexadecimal(value)),
        _ => hexadecimal(value),
    }
}

/// An unsigned integer of at most four bytes (RFC 7252 §3.2).
fn integer(value: &[u8]) -> Option<u32> {
    (value.len() <= 4).then(|| value.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Number, whether more follow, size (RFC 7959 §2.2).
fn block(value: u32) -> String {
    let more = if value & 8 == 0 { "the last" } else { "more follow" };
    let size = match value & 7 {
        // Several in a message (BERT, RFC 8323 §6).
        7 => "blocks of 1024 bytes".to_owned(),
        exponent => format!("{} bytes", 16 << exponent),
    };
    format!("{}, {more}, {size}", value >> 4)
}

fn text(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    (!text.chars().any(super::steers)).then(|| text.to_owned())
}

fn hexadecimal(value: &[u8]) -> String {
    if value.is_empty() {
        return "(empty)".to_owned();
    }
    value.iter().fold("0x".to_owned(), |digits, byte| format!("{digits}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_as_their_definitions_have_them() {
        for (number, value, written) in [
            (12, &[50][..], "Content-Format: application/json"),
            (12, &[], "Content-Format: text/plain; charset=utf-8"),
            (14, &[1, 44], "Max-Age: 300"),
            (6, &[], "Observe: 0"),
            (23, &[0x1e], "Block2: 1, more follow, 1024 bytes"),
            (27, &[0x02], "Block1: 0, the last, 64 bytes"),
            (23, &[0x0f], "Block2: 0, more follow, blocks of 1024 bytes"),
            (8, b"caf\xc3\xa9", "Location-Path: café"),
            (8, b"\x1b[2J", "Location-Path: 0x1b5b324a"),
            (8, "\u{202e}".as_bytes(), "Location-Path: 0xe280ae"),
            (4, &[0xab, 0xcd], "ETag: 0xabcd"),
            (5, &[], "If-None-Match: (empty)"),
            (65000, &[1], "option 65000: 0x01"),
            (14, &[1, 2, 3, 4, 5], "Max-Age: 0x0102030405"),
        ] {
            assert_eq!(line(number, value), written);
        }
    }
}

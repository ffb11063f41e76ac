//! CBOR in diagnostic notation (RFC 8949 §8).

use std::fmt::Write;

use ciborium::Value;

use super::DEEPEST;

/// Lists and maps longer than this are spread over lines, characters.
const LINE: usize = 80;

/// Every item, one after the other (RFC 8742 has sequences); `None` if the bytes are no CBOR.
#[must_use]
pub fn diagnostic(bytes: &[u8]) -> Option<String> {
    let mut rest = bytes;
    let mut shown = String::new();
    while !rest.is_empty() {
        let value: Value = ciborium::de::from_reader_with_recursion_limit(&mut rest, DEEPEST).ok()?;
        if !shown.is_empty() {
            shown.push_str(",\n");
        }
        item(&value, 0, &mut shown);
    }
    Some(shown)
}

fn item(value: &Value, depth: usize, shown: &mut String) {
    let start = shown.len();
    write(value, None, shown);
    let nested = matches!(value, Value::Array(_) | Value::Map(_) | Value::Tag(..));
    if nested && shown.len() - start + 2 * depth > LINE {
        shown.truncate(start);
        write(value, Some(depth), shown);
    }
}

/// One item, on one line if `depth` is `None`.
fn write(value: &Value, depth: Option<usize>, shown: &mut String) {
    match value {
        Value::Integer(number) => drop(write!(shown, "{}", i128::from(*number))),
        Value::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let _ = write!(shown, "h'{digits}'");
        }
        Value::Float(number) => shown.push_str(&float(*number)),
        Value::Text(text) => {
            let _ = write!(shown, "{}", serde_json::Value::from(text.as_str()));
        }
        Value::Bool(value) => drop(write!(shown, "{value}")),
        Value::Null => shown.push_str("null"),
        Value::Tag(number, inner) => {
            let _ = write!(shown, "{number}(");
            part(inner, depth, shown);
            shown.push(')');
        }
        Value::Array(items) => {
            between('[', ']', items.len(), depth, shown, |position, depth, shown| {
                if let Some(value) = items.get(position) {
                    part(value, depth, shown);
                }
            });
        }
        Value::Map(pairs) => {
            between('{', '}', pairs.len(), depth, shown, |position, depth, shown| {
                if let Some((key, value)) = pairs.get(position) {
                    write(key, None, shown);
                    shown.push_str(": ");
                    part(value, depth, shown);
                }
            });
        }
        // Simple values that this reader does not distinguish.
        _ => shown.push_str("undefined"),
    }
}

/// Something within: on the same line, or on its own where it is long.
fn part(value: &Value, depth: Option<usize>, shown: &mut String) {
    match depth {
        None => write(value, None, shown),
        Some(depth) => item(value, depth, shown),
    }
}

fn between(
    open: char,
    close: char,
    count: usize,
    depth: Option<usize>,
    shown: &mut String,
    mut each: impl FnMut(usize, Option<usize>, &mut String),
) {
    let inner = depth.map(|depth| depth + 1);
    let line = |depth: usize, shown: &mut String| {
        shown.push('\n');
        shown.extend(std::iter::repeat_n("  ", depth));
    };
    shown.push(open);
    for position in 0..count {
        if position > 0 {
            shown.push(',');
        }
        match inner {
            Some(depth) => line(depth, shown),
            None if position > 0 => shown.push(' '),
            None => {}
        }
        each(position, inner, shown);
    }
    if let Some(depth) = depth {
        line(depth, shown);
    }
    shown.push(close);
}

fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let text = format!("{number:?}");
    if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of RFC 8949 appendix A and how it writes them.
    #[test]
    fn the_examples_of_the_rfc_are_written_as_it_writes_them() {
        let table: [(&[u8], &str); 17] = [
            (&[0x00], "0"),
            (&[0x18, 0x64], "100"),
            (&[0x20], "-1"),
            (&[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "18446744073709551615"),
            (&[0xf9, 0x00, 0x00], "0.0"),
            (&[0xf9, 0x3e, 0x00], "1.5"),
            (&[0xf9, 0x7c, 0x00], "Infinity"),
            (&[0xf9, 0x7e, 0x00], "NaN"),
            (&[0xf4], "false"),
            (&[0xf6], "null"),
            (&[0x44, 1, 2, 3, 4], "h'01020304'"),
            (&[0x64, 0x49, 0x45, 0x54, 0x46], "\"IETF\""),
            (&[0x62, 0x22, 0x5c], "\"\\\"\\\\\""),
            (&[0x83, 1, 2, 3], "[1, 2, 3]"),
            (&[0xa2, 1, 2, 3, 4], "{1: 2, 3: 4}"),
            (&[0xc1, 0x1a, 0x51, 0x4b, 0x67, 0xb0], "1(1363896240)"),
            (&[0x9f, 1, 2, 0xff], "[1, 2]"),
        ];
        for (bytes, written) in table {
            assert_eq!(diagnostic(bytes).as_deref(), Some(written), "{bytes:02x?}");
        }
    }

    #[test]
    fn sequences_are_written_one_after_the_other() {
        assert_eq!(diagnostic(&[1, 0x82, 2, 3]).as_deref(), Some("1,\n[2, 3]"));
    }

    #[test]
    fn what_does_not_fit_a_line_is_spread_over_several() {
        let mut bytes = vec![0xa1, 0x61, b'k', 0x98, 40];
        bytes.extend([0x18, 0xff].repeat(40));
        let shown = diagnostic(&bytes).expect("valid");
        assert!(shown.starts_with("{\n  \"k\": [\n    255,\n    255,\n"), "{shown}");
        assert!(shown.ends_with("    255\n  ]\n}"), "{shown}");
    }

    #[test]
    fn cut_and_endlessly_nested_bytes_are_no_cbor() {
        assert_eq!(diagnostic(&[0x83, 1, 2]), None);
        assert_eq!(diagnostic(&[0x1c]), None);
        assert_eq!(diagnostic(&[0x81; 100_000]), None);
    }
}

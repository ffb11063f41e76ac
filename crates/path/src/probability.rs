//! Probabilities as people write them: a fraction, `0.01`, or a share, `"1 %"`.

use std::fmt;

use serde::{Deserializer, de};

/// Reads a probability: a number, or text in per cent. Whether it lies between 0 and 1 is for the check that knows its place.
///
/// # Errors
/// That it is neither, with the fix.
pub fn probability<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    struct Written;
    impl de::Visitor<'_> for Written {
        type Value = f64;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a fraction from 0 to 1, or \"1 %\"")
        }
        fn visit_f64<E>(self, fraction: f64) -> Result<f64, E> {
            Ok(fraction)
        }
        fn visit_i64<E>(self, number: i64) -> Result<f64, E> {
            Ok(number as f64)
        }
        fn visit_u64<E>(self, number: u64) -> Result<f64, E> {
            Ok(number as f64)
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<f64, E> {
            share(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_any(Written)
}

/// Reads `"1 %"`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let out_of_range =
        || format!("`{text}` is out of range: write a share from 0 % to 100 %, or a fraction from 0 to 1");
    let decimal = |number: &str| number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let Some(number) = text.trim().strip_suffix('%').map(str::trim).filter(|number| decimal(number)) else {
        return Err(match text.trim().parse::<f64>() {
            Ok(number) if (0.0..=1.0).contains(&number) => {
                format!("`{text}` is text: write {number} without quotes, or a share, such as \"1 %\"")
            }
            Ok(number) if (0.0..=100.0).contains(&number) => format!("`{text}` has no unit: write \"{number} %\""),
            Ok(number) if number.is_finite() => out_of_range(),
            Err(_) if text.trim().starts_with('-') => out_of_range(),
            _ => {
                format!("`{text}` is not a probability: write a fraction, such as 0.01, or a share, such as \"1 %\"")
            }
        });
    };
    // The decimal point moves in the text, so that "17.6 %" is the number that 0.176 is.
    let fraction: f64 =
        format!("{number}e-2").parse().map_err(|_| format!("`{text}` is not a number: write it as in \"1 %\""))?;
    if fraction > 1.0 { Err(out_of_range()) } else { Ok(fraction) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_the_number_that_the_fraction_is() {
        for (text, fraction) in [("1 %", 0.01), ("17.6%", 0.176), (" 2 % ", 0.02), ("100 %", 1.0), (".5 %", 0.005)] {
            assert_eq!(share(text), Ok(fraction), "{text}");
        }
    }

    #[test]
    fn other_text_is_answered_with_the_fix() {
        for (text, fix) in [
            ("0.01", "write 0.01 without quotes"),
            ("5", "write \"5 %\""),
            ("few", "such as \"1 %\""),
            ("-1 %", "0 % to 100 %"),
            ("101 %", "0 % to 100 %"),
            ("150", "0 % to 100 %"),
            ("-5", "0 % to 100 %"),
            ("nan", "write a fraction"),
            ("%", "is not a number"),
            ("1.2.3 %", "is not a number"),
        ] {
            let told = share(text).unwrap_err();
            assert!(told.contains(fix), "{text}: {told}");
        }
    }
}

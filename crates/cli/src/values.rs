//! Values that flags take: durations, sizes, options, tokens, payloads.

use std::io::Read;
use std::time::Duration;

use coap_numbers::option as registry;
use millpond_coap::message::Token;
use millpond_live::{IpNet, NoResponse, Uri};

use crate::failure::Failure;

/// A URI; one without a scheme is one of coap.
///
/// # Errors
/// What cannot be asked for, and why.
pub fn uri(text: &str) -> Result<Uri, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("coap://{text}") };
    whole.parse().map_err(|error: millpond_live::UriError| error.to_string())
}

/// An option given by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawOption {
    /// Its number.
    pub number: u16,
    /// Its value as it is sent.
    pub value: Vec<u8>,
}

/// Numbers that the program fills in itself, with the flag that does.
const OWN_OPTIONS: &[(u16, &str)] = &[
    (registry::OBSERVE, "the verb observe"),
    (registry::BLOCK1, "--block-size"),
    (registry::BLOCK2, "--block-size"),
    (registry::Q_BLOCK1, "--q-block"),
    (registry::Q_BLOCK2, "--q-block"),
    (registry::CONTENT_FORMAT, "--content-format"),
    (registry::ACCEPT, "--accept"),
    (registry::NO_RESPONSE, "--no-response"),
];

/// A length of time: `500ms`, `2.5s`, `1min 30s`, or a number of seconds.
///
/// # Errors
/// What is none, and none at all (0).
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let parsed = seconds.map_or_else(|| humantime::parse_duration(text), Ok);
    match parsed {
        Ok(Duration::ZERO) => Err("must be longer than 0".to_owned()),
        Ok(duration) if duration > Duration::from_secs(365 * 86_400) => Err("is longer than a year".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; write 500ms, 2.5s or 1min")),
    }
}

/// The same, or none at all: `0`.
///
/// # Errors
/// What is no length of time.
pub fn duration_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

/// Classes of responses: `2xx`, or `2xx,5xx`.
///
/// # Errors
/// What is none.
pub fn no_response(text: &str) -> Result<NoResponse, String> {
    text.split(',').try_fold(NoResponse::NONE, |classes, class| match class.trim() {
        "2xx" => Ok(classes | NoResponse::SUCCESS),
        "4xx" => Ok(classes | NoResponse::CLIENT_ERROR),
        "5xx" => Ok(classes | NoResponse::SERVER_ERROR),
        other => Err(format!("{other:?} is no class of responses; write 2xx, 4xx, 5xx, or several: 2xx,5xx")),
    })
}

/// An address with its port: `127.0.0.1:9100`, `[::1]:9100`.
///
/// # Errors
/// What is none.
pub fn address_and_port(text: &str) -> Result<std::net::SocketAddr, String> {
    text.parse().map_err(|_| {
        "no address with a port; write 127.0.0.1:9100, [::1]:9100 or, for all addresses, [::]:9100".to_owned()
    })
}

/// A number of bytes: `1024`, `64k`, `1.5M`; k and M are 1000 and 1000000, Ki and Mi 1024 and 1048576.
///
/// # Errors
/// What is none.
pub fn size(text: &str) -> Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().trim_end_matches('B') {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        _ => return Err(format!("unknown unit {unit:?}; write 1024, 64k, 1M or 1Mi")),
    };
    let bytes = number.parse::<f64>().map_err(|_| "no number; write 1024, 64k, 1M or 1Mi".to_owned())? * factor;
    if bytes.fract() != 0.0 || bytes > 1e12 {
        return Err("no whole number of bytes up to 10^12".to_owned());
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, positive and at most 10^12")]
    Ok(bytes as usize)
}

/// Bytes of the longest datagram: at most what UDP carries.
///
/// # Errors
/// What is none.
pub fn datagram(text: &str) -> Result<u16, String> {
    let bytes = size(text)?;
    let most = millpond_coap::message::MAX_DATAGRAM;
    u16::try_from(bytes)
        .ok()
        .filter(|bytes| (32..=most).contains(&usize::from(*bytes)))
        .ok_or_else(|| format!("a datagram has 32 to {most} bytes"))
}

/// A number of exchanges a second above 0.
///
/// # Errors
/// What is none.
pub fn rate(text: &str) -> Result<f64, String> {
    match text.trim_end_matches("/s").parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 && rate <= 10e6 => Ok(rate),
        _ => Err("no number above 0 and at most 10000000".to_owned()),
    }
}

/// The size of blocks (RFC 7959 §2.2).
///
/// # Errors
/// What is none of 16, 32, …, 1024.
pub fn block_size(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(size @ (16 | 32 | 64 | 128 | 256 | 512 | 1024)) => Ok(size),
        _ => Err("a block has 16, 32, 64, 128, 256, 512 or 1024 bytes".to_owned()),
    }
}

/// A token of 0 to 8 bytes in hexadecimal digits (RFC 7252 §3).
///
/// # Errors
/// What is none.
pub fn token(text: &str) -> Result<Token, String> {
    let bytes = hex(text.strip_prefix("0x").unwrap_or(text))?;
    let length = bytes.len();
    Token::new(&bytes)
        .ok_or_else(|| format!("{length} bytes; a token has 0 to 8 (for longer ones of zeros see --token-length)"))
}

/// `NUMBER=VALUE` or `NAME=VALUE`. A value `0x…` is bytes, one of digits only becomes the shortest unsigned integer,
/// anything else its UTF-8; `"…"` in quotation marks is text whatever stands in it.
///
/// # Errors
/// What is none, and what another flag is for.
pub fn option(text: &str) -> Result<RawOption, String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let number = option_number(name)?;
    if let Some((_, flag)) = OWN_OPTIONS.iter().find(|(own, _)| *own == number) {
        return Err(format!("{} is set by {flag}", option_name(number)));
    }
    let value = if let Some(quoted) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        quoted.as_bytes().to_vec()
    } else if let Some(digits) = value.strip_prefix("0x") {
        hex(digits)?
    } else if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: u64 = value.parse().map_err(|_| format!("{value} does not fit 8 bytes"))?;
        number.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect()
    } else {
        value.as_bytes().to_vec()
    };
    Ok(RawOption { number, value })
}

fn option_number(name: &str) -> Result<u16, String> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let plain = |name: &str| name.to_ascii_lowercase().replace(['-', '_'], "");
    let known = || (0..=u16::MAX).filter_map(|number| registry::to_name(number).map(|name| (number, name)));
    if let Some((number, _)) = known().find(|(_, known)| plain(known) == plain(name)) {
        return Ok(number);
    }
    let hint = crate::nearest::nearest(name, known().map(|(_, known)| known));
    Err(hint.map_or_else(
        || format!("unknown option {name:?}; write its number: --option 65000=0x01"),
        |near| format!("unknown option {name:?}: did you mean {near:?}? Its number will do too"),
    ))
}

/// The registered name of an option, or its number.
#[must_use]
pub fn option_name(number: u16) -> String {
    registry::to_name(number).map_or_else(|| format!("option {number}"), str::to_owned)
}

/// What is sent as payload: the text itself, `@file`, or `-` for standard input. `@@…` is a text that begins with `@`.
///
/// # Errors
/// A file that cannot be read, or more than `limit` bytes.
pub fn payload(text: &str, limit: usize) -> Result<Vec<u8>, Failure> {
    let read = |name: &str, source: &mut dyn Read| {
        let mut bytes = Vec::new();
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        source.take(most).read_to_end(&mut bytes).map_err(|error| Failure::of_file(name, &error))?;
        if bytes.len() > limit {
            return Err(Failure::Usage(format!("{name}: more than {limit} bytes cannot be sent")));
        }
        Ok(bytes)
    };
    match text.strip_prefix('@') {
        Some(quoted) if quoted.starts_with('@') => Ok(quoted.as_bytes().to_vec()),
        Some(path) => {
            let mut file = std::fs::File::open(path).map_err(|error| Failure::of_file(path, &error))?;
            read(path, &mut file)
        }
        None if text == "-" => read("standard input", &mut std::io::stdin().lock()),
        None => Ok(text.as_bytes().to_vec()),
    }
}

/// Bytes as hexadecimal digits, two for each.
///
/// # Errors
/// An odd number of them, or others.
pub fn hex(digits: &str) -> Result<Vec<u8>, String> {
    if !digits.len().is_multiple_of(2) {
        return Err("an odd number of hexadecimal digits".to_owned());
    }
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+')))
        .map(|pair| pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{digits:?} are not all hexadecimal digits"))
}

/// A network, or one address.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<std::net::IpAddr>().ok().map(IpNet::from);
    let wrong = || "no network; write 192.0.2.0/24, 2001:db8::/32, or an address".to_owned();
    text.parse().ok().or_else(address).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_or_are_seconds() {
        for (text, millis) in
            [("2", 2000), ("0.5", 500), ("500ms", 500), ("2.5s", 2500), ("1min 30s", 90_000), ("1m", 60_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "0", "-1", "soon", "2 fortnights", "inf", "NaN", "2years"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_whole_numbers_of_bytes() {
        for (text, bytes) in
            [("0", 0), ("1024", 1024), ("64k", 64_000), ("1.5M", 1_500_000), ("1Ki", 1024), ("2MiB", 2_097_152)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "x", "1.5", "10q", "-1", "1e3", "9999999M"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn options_are_numbers_or_names_and_values_are_bytes_integers_or_text() {
        for (text, number, value) in [
            ("65000=0x0102", 65000, &[1, 2][..]),
            ("14=60", 14, &[60]),
            ("14=0", 14, &[]),
            ("Max-Age=300", 14, &[1, 44]),
            ("5", 5, &[]),
            ("if-none-match=", 5, &[]),
            ("uri-query=a=b", 15, b"a=b"),
            ("Uri-Query=\"12\"", 15, b"12"),
            ("4=0x", 4, &[]),
        ] {
            assert_eq!(option(text), Ok(RawOption { number, value: value.to_vec() }), "{text}");
        }
        for (text, part) in [
            ("65536=1", "unknown option"),
            ("Etga=1", "did you mean \"ETag\"?"),
            ("4=0x1", "odd number"),
            ("4=0xzz", "not all hexadecimal"),
            ("4=99999999999999999999", "does not fit"),
            ("12=0", "set by --content-format"),
            ("observe=0", "set by the verb observe"),
        ] {
            let error = option(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn tokens_are_hexadecimal_and_short() {
        assert_eq!(token("0xa1b2"), Ok(Token::new(&[0xa1, 0xb2]).expect("two bytes")));
        assert_eq!(token(""), Ok(Token::EMPTY));
        for text in ["a", "zz", "000102030405060708", "+1"] {
            assert!(token(text).is_err(), "{text}");
        }
    }

    #[test]
    fn blocks_have_a_power_of_two() {
        assert_eq!(block_size("64"), Ok(64));
        for text in ["0", "8", "100", "2048", "x"] {
            assert!(block_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_payload_is_the_text_or_a_file() {
        assert_eq!(payload("hello", 5), Ok(b"hello".to_vec()));
        assert_eq!(payload("@@home", 100), Ok(b"@home".to_vec()));
        assert_eq!(payload("@Cargo.toml", 1 << 20), Ok(std::fs::read("Cargo.toml").expect("the crate's own file")));
        let error = payload("@Cargo.toml", 10).expect_err("longer than ten bytes");
        assert!(matches!(&error, Failure::Usage(line) if line == "Cargo.toml: more than 10 bytes cannot be sent"));
        let error = payload("@no/such/file", 10).expect_err("there is none");
        assert!(matches!(&error, Failure::Failed(line) if line == "no/such/file: No such file or directory"));
    }
}

//! An answer on its way to standard output.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use millpond_coap::message::Code;
use millpond_live::{ContentFormat, Outcome, Response};
use serde::Serialize;

use crate::arguments::Request;
use crate::content_format::{self, Shown};
use crate::failure::Failure;
use crate::render;

/// In which form bodies are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The bytes that came.
    Bytes,
    /// For a person.
    Shown,
    /// The whole answer as one line of JSON.
    Json,
}

impl Form {
    /// What the flags ask for; where they are silent, bytes into a pipe and a person's form on a terminal.
    #[must_use]
    pub fn wanted(flags: &Request) -> Self {
        match (flags.json, flags.pretty, flags.raw) {
            (true, ..) => Self::Json,
            (_, true, _) => Self::Shown,
            (_, _, true) => Self::Bytes,
            _ if std::io::stdout().is_terminal() => Self::Shown,
            _ => Self::Bytes,
        }
    }
}

/// The number of its Content-Format.
pub(crate) fn format_of(answer: &Response) -> Option<u16> {
    answer.content_format().map(ContentFormat::number)
}

/// Prints an answer. In a series, bodies of text end in a line break each.
///
/// # Errors
/// An answer of class 4 or 5, and standard output that cannot be written.
pub fn print(answer: &Response, form: Form, series: bool) -> Result<(), Failure> {
    let failure = (!answer.is_success()).then(|| refusal(answer));
    let mut out = std::io::stdout().lock();
    match form {
        Form::Json => render::json::put(&mut out, &Json::of(answer))?,
        // A diagnostic payload is in the line of the failure (RFC 7252 §5.5.2).
        _ if failure.is_some() && answer.content_format().is_none() => {}
        Form::Shown => out.write_all(render::body(answer.payload(), format_of(answer)).as_bytes())?,
        Form::Bytes => {
            out.write_all(answer.payload())?;
            if series && std::str::from_utf8(answer.payload()).is_ok_and(|text| !text.ends_with('\n')) {
                out.write_all(b"\n")?;
            }
        }
    }
    out.flush()?;
    failure.map_or(Ok(()), Err)
}

/// Reports that a request is done without an answer: in JSON, or if more is to be told.
///
/// # Errors
/// Standard output that cannot be written.
pub(crate) fn print_unanswered(outcome: &Outcome, form: Form, is_verbose: bool) -> Result<(), Failure> {
    let word = if *outcome == Outcome::Acknowledged { "acknowledged" } else { "sent" };
    if is_verbose {
        let _ = writeln!(anstream::stderr(), "< {word}, and no response wanted or come");
    }
    if form == Form::Json {
        let mut out = std::io::stdout().lock();
        render::json::put(&mut out, &serde_json::json!({ "outcome": word }))?;
        out.flush()?;
    }
    Ok(())
}

/// `4.04 Not Found: the reason that came along`.
fn refusal(answer: &Response) -> Failure {
    let mut line = String::new();
    if let Some(report) = answer.exchange() {
        let _ = write!(line, "{} answered ", report.peer);
    }
    line.push_str(&titled(answer.code()));
    match answer.text() {
        Ok(text) if !text.is_empty() && answer.content_format().is_none() => {
            let _ = write!(line, ": {text}");
        }
        _ => {}
    }
    Failure::Answered(answer.code(), line)
}

/// `2.05 Content`.
#[must_use]
pub fn titled(code: Code) -> String {
    code.name().map_or_else(|| code.to_string(), |name| format!("{code} {name}"))
}

/// Code, options and the length of the body, a line each, for standard error.
#[must_use]
pub fn headers(answer: &Response, length: usize) -> String {
    let mut text = format!("< {}", titled(answer.code()));
    if let Some(report) = answer.exchange() {
        let _ = write!(text, " from {}", report.peer);
        if let (Some(time), Some(grade)) = (report.round_trip, report.grade) {
            let _ = write!(text, ", round trip {:.1} ms ({grade})", time.as_secs_f64() * 1e3);
        }
        if report.copies > 1 {
            let _ = write!(text, ", {} copies", report.copies);
        }
    }
    for (number, value) in answer.options().iter() {
        let _ = write!(text, "\n<   {}", render::options::line(number, value));
    }
    let _ = write!(text, "\n<   ({length} bytes)");
    text
}

/// An answer as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Json {
    code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<&'static str>,
    options: Vec<JsonOption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_format: Option<String>,
    #[serde(flatten)]
    payload: Payload,
}

#[derive(Debug, Serialize)]
struct JsonOption {
    number: u16,
    name: String,
    value: String,
}

/// What came, in the form that loses nothing.
#[derive(Debug, Serialize)]
#[serde(tag = "encoding", content = "payload", rename_all = "lowercase")]
enum Payload {
    /// Whatever JSON it is.
    Json(serde_json::Value),
    /// A string.
    Text(String),
    /// Hexadecimal digits.
    Hex(String),
}

impl Json {
    pub(crate) fn of(answer: &Response) -> Self {
        let report = answer.exchange();
        let options = answer.options().iter().map(|(number, value)| JsonOption {
            number,
            name: crate::values::option_name(number),
            value: render::options::shown(number, value),
        });
        Self {
            code: answer.code().to_string(),
            name: answer.code().name(),
            peer: report.map(|report| report.peer.to_string()),
            copies: report.map(|report| report.copies),
            round_trip_ms: report.and_then(|report| report.round_trip).map(|time| time.as_secs_f64() * 1e3),
            grade: report.and_then(|report| report.grade).map(millpond_live::Grade::name),
            options: options.collect(),
            content_format: format_of(answer).map(content_format::name),
            payload: Payload::of(answer),
        }
    }
}

impl Payload {
    fn of(answer: &Response) -> Self {
        let format = format_of(answer).and_then(content_format::shown);
        if format == Some(Shown::Json)
            && answer.payload().len() <= render::LONGEST
            && let Ok(value) = serde_json::from_slice(answer.payload())
        {
            return Self::Json(value);
        }
        match answer.text() {
            Ok(text) if !matches!(format, Some(Shown::Cbor | Shown::Bytes)) => Self::Text(text.to_owned()),
            _ => Self::Hex(answer.payload().iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(answer: &Response) -> String {
        let mut line = Vec::new();
        render::json::put(&mut line, &Json::of(answer)).expect("no map with odd keys");
        String::from_utf8(line).expect("JSON is UTF-8").trim_end().to_owned()
    }

    #[test]
    fn nothing_in_a_line_of_json_steers_the_terminal() {
        let odd = "\u{9b}2J\u{7f}\u{1b}\u{80}\u{9f}\u{a0}ä\u{202e}\n";
        let text = Response::content(odd).with_content_format(0_u16).with_option(8, "\u{9b}2J");
        let of_json = Response::content("{\"\u{9b}2J\":\"\u{7f}\"}").with_content_format(50_u16);
        let lines = [json(&text), json(&of_json)];
        for line in &lines {
            assert!(line.contains(r"\u009b2J") && !line.chars().any(render::steers), "{line:?}");
        }
        let [text, of_json] = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).expect("JSON"));
        assert_eq!((&text["payload"], &of_json["payload"]["\u{9b}2J"]), (&odd.into(), &"\u{7f}".into()));
    }

    #[test]
    fn json_holds_the_body_in_the_form_that_loses_nothing() {
        for (format, body, expected) in [
            (Some(0_u16), &b"hi"[..], r#""encoding":"text","payload":"hi""#),
            (None, b"hi", r#""encoding":"text","payload":"hi""#),
            (Some(50), b"{\"a\": 1}", r#""encoding":"json","payload":{"a":1}"#),
            (Some(50), b"{", r#""encoding":"text","payload":"{""#),
            (Some(60), b"\x61a", r#""encoding":"hex","payload":"6161""#),
            (None, b"\xff", r#""encoding":"hex","payload":"ff""#),
        ] {
            let mut answer = Response::content(body.to_vec());
            if let Some(format) = format {
                answer = answer.with_content_format(format);
            }
            assert!(json(&answer).ends_with(&format!("{expected}}}")), "{}", json(&answer));
        }
    }

    #[test]
    fn json_names_code_and_options() {
        let answer = Response::new(Code::VALID).with_etag(vec![1, 2]).with_max_age(60);
        assert_eq!(
            json(&answer),
            r#"{"code":"2.03","name":"Valid","options":[{"number":4,"name":"ETag","value":"0x0102"},"#.to_owned()
                + r#"{"number":14,"name":"Max-Age","value":"60"}],"encoding":"text","payload":""}"#
        );
    }

    #[test]
    fn a_refusal_says_what_the_server_said() {
        let Failure::Answered(code, line) = refusal(&Response::bad_request("no such unit")) else {
            panic!("4.00 is an answer")
        };
        assert_eq!((code, line.as_str()), (Code::BAD_REQUEST, "4.00 Bad Request: no such unit"));
    }
}

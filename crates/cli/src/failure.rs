//! How a verb ends when it does not end well: one line, and the exit code that goes with it.

use std::fmt::Display;
use std::io;

use millpond_coap::message::Code;

use crate::render;

/// Why the program did not do what was asked.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request cannot be understood or carried out as asked. Exit code 2.
    Usage(String),
    /// It was tried and did not come about: no answer, no such file, port in use. Exit code 1.
    Failed(String),
    /// An emulated path handed packets on too late for its figures to be believed. Exit code 3.
    Late(String),
    /// No answer came in the time that there was. Exit code 6.
    TimedOut(String),
    /// A name has no address, or the network said that nobody can be reached there. Exit code 7.
    Unreachable(String),
    /// There is no secure session: certificates, keys or versions do not fit. Exit code 8.
    Insecure(String),
    /// The peer answered with an error. Exit code 4 or 5, the class of the answer.
    Answered(Code, String),
    /// A program that was run ended with this exit code, and has said why itself.
    Command(u8),
    /// Stopped by Ctrl-C before the end. Exit code 130.
    Stopped,
    /// The reader of the output has gone. Nothing is said. Exit code 1.
    ReaderGone,
}

impl Failure {
    /// The exit code of the program.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Late(_) => 3,
            Self::Failed(_) | Self::ReaderGone => 1,
            Self::Answered(code, _) => match code.class() {
                5 => 5,
                _ => 4,
            },
            Self::Command(code) => *code,
            Self::TimedOut(_) => 6,
            Self::Unreachable(_) => 7,
            Self::Insecure(_) => 8,
            Self::Stopped => 130,
        }
    }

    /// The line that is printed; `None` if there is nothing to say.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Usage(line)
            | Self::Failed(line)
            | Self::Late(line)
            | Self::TimedOut(line)
            | Self::Unreachable(line)
            | Self::Insecure(line)
            | Self::Answered(_, line) => Some(one_line(line)),
            Self::Stopped => Some("stopped".to_owned()),
            Self::Command(_) | Self::ReaderGone => None,
        }
    }

    /// What went wrong with a file or the output.
    #[must_use]
    pub fn of_file(path: impl Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ReaderGone;
        }
        Self::Failed(format!("{path}: {}", without_number(error)))
    }
}

/// Standard output could not be written.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::of_file("standard output", &error)
    }
}

impl From<millpond_live::Error> for Failure {
    fn from(error: millpond_live::Error) -> Self {
        match error {
            millpond_live::Error::Setting { name, reason } => Self::Usage(format!("{}: {reason}", flag(name))),
            millpond_live::Error::Uri(_) | millpond_live::Error::UnknownController(_) => Self::Usage(error.to_string()),
            millpond_live::Error::Insecure { .. } => Self::Insecure(error.to_string()),
            millpond_live::Error::NameNotResolved { .. } => Self::Unreachable(error.to_string()),
            _ if error.is_unreachable() => Self::Unreachable(in_flags(&error.to_string())),
            _ if error.is_timeout() => Self::TimedOut(in_flags(&error.to_string())),
            _ => Self::Failed(in_flags(&error.to_string())),
        }
    }
}

/// The flag that a setting of the library is given by, or else the setting's own name.
fn flag(setting: &'static str) -> &'static str {
    match setting {
        "ack_timeout" => "--ack-timeout",
        "block_size" => "--block-size",
        "join" => "--join",
        "path_cache_file" => "--memory",
        "state_file" => "--state",
        "multicast_interface" => "--interface",
        "workers" => "--workers",
        other => other,
    }
}

/// The settings that an error of the library names, as the flags that set them.
fn in_flags(text: &str) -> String {
    const SETTINGS: [(&str, &str); 5] = [
        ("a token length", "a --token-length"),
        ("longest_body", "--max-size"),
        ("longest_datagram", "--max-datagram"),
        ("block_size", "--block-size"),
        ("without_settings", "with --no-csm"),
    ];
    SETTINGS.iter().fold(text.to_owned(), |text, (setting, flag)| text.replace(setting, flag))
}

/// The system's words without "(os error 2)".
pub fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// Line breaks and whatever else steers, which a peer may have sent, become spaces.
fn one_line(text: &str) -> String {
    let cleaned: String = text.chars().map(|c| if render::steers(c) { ' ' } else { c }).collect();
    cleaned.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_usage_failure_and_both_classes_of_errors_apart() {
        for (failure, code) in [
            (Failure::Usage(String::new()), 2),
            (Failure::Failed(String::new()), 1),
            (Failure::Late(String::new()), 3),
            (Failure::Answered(Code::NOT_FOUND, String::new()), 4),
            (Failure::Answered(Code::SERVICE_UNAVAILABLE, String::new()), 5),
            (Failure::TimedOut(String::new()), 6),
            (Failure::Unreachable(String::new()), 7),
            (Failure::Insecure(String::new()), 8),
            (Failure::Stopped, 130),
            (Failure::Command(42), 42),
            (Failure::ReaderGone, 1),
        ] {
            assert_eq!(failure.exit_code(), code, "{failure:?}");
        }
    }

    #[test]
    fn errors_of_time_of_the_way_and_of_security_have_codes_of_their_own() {
        use millpond_live::Error;
        let peer = "192.0.2.1:5683".parse().unwrap();
        let after = std::time::Duration::from_secs(1);
        for (error, code) in [
            (Error::GaveUp { peer, copies: 5, after }, 6),
            (Error::Deadline { after }, 6),
            (Error::NoResponse { peer, after }, 6),
            (Error::Unreachable { peer, reason: "refused".into(), source: None }, 7),
            (Error::NameNotResolved { host: "h".into(), reason: "none".into(), source: None }, 7),
            (Error::HandshakeTimedOut { peer, reason: "no answer".into(), source: None }, 6),
            (Error::Insecure { peer, reason: "expired".into(), source: None }, 8),
            (Error::Reset { peer }, 1),
        ] {
            assert_eq!(Failure::from(error.clone()).exit_code(), code, "{error}");
        }
    }

    #[test]
    fn what_a_peer_sent_cannot_break_the_line_or_steer_the_terminal() {
        let failure = Failure::Answered(Code::NOT_FOUND, "no\r\n\u{1b}[31msuch\tfile \u{7}".to_owned());
        assert_eq!(failure.line().as_deref(), Some("no [31msuch file"));
    }

    /// Every setting that an error of the library asks the reader to change is one of the program's flags.
    #[test]
    fn errors_name_the_flags_of_this_program() {
        use millpond_live::Error;
        let peer = "192.0.2.1:5683".parse().unwrap();
        for (error, flag) in [
            (Error::BodyTooLarge { limit: 1 }, "raise --max-size"),
            (Error::LongDatagram { peer }, "raise --max-datagram, or ask for it in blocks (--block-size)"),
            (Error::NoSettings { peer, after: std::time::Duration::from_secs(1) }, "ask it with --no-csm"),
        ] {
            let line = Failure::from(error).line().unwrap_or_default();
            assert!(line.contains(flag), "{line}");
        }
    }

    #[test]
    fn the_systems_words_go_without_their_number() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(Failure::of_file("x.json", &error), Failure::Failed("x.json: No such file or directory".to_owned()));
    }
}

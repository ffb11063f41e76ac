//! One line for what cannot be used as it is written: the place and the fix.

use std::fmt;

/// Why a file was refused. Its text is one line that names the place and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    place: String,
    problem: String,
}

impl InputError {
    /// An error at a place, told as the user would look for it.
    #[must_use]
    pub fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }

    /// An error of a key, told as a dotted path inside `origin`.
    #[must_use]
    pub fn at_key(origin: &str, key: &str, problem: impl Into<String>) -> Self {
        Self::new(format!("{origin}: {key}"), problem)
    }

    /// Turns the parser's complaint into ours: with the line, and for a misspelt name the nearest legal one.
    #[must_use]
    pub fn from_toml(origin: &str, text: &str, error: &toml::de::Error) -> Self {
        let place = match error.span() {
            Some(span) => {
                let before = text.get(..span.start).unwrap_or(text);
                format!("{origin}:{}", before.matches('\n').count() + 1)
            }
            None => origin.to_owned(),
        };
        Self::new(place, explain(error.message()))
    }

    /// The same for another parser: its complaint, in serde's words, and the line.
    #[must_use]
    pub fn at_line(origin: &str, line: usize, complaint: &str) -> Self {
        Self::new(format!("{origin}:{line}"), explain(complaint))
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for InputError {}

/// Serde says `unknown field `quue`, expected one of `rate`, `queue``; we say which one was meant.
fn explain(message: &str) -> String {
    let message = message.lines().next().unwrap_or(message);
    let (kind, rest) = if let Some(rest) = message.strip_prefix("unknown field ") {
        ("key", rest)
    } else if let Some(rest) = message.strip_prefix("unknown variant ") {
        ("value", rest)
    } else {
        if let Some(told) = wrong_type(message) {
            return told;
        }
        return message.replacen("missing field", "missing key", 1).replacen("duplicate field", "key given twice:", 1);
    };
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(wrong) = names.next() else { return message.to_owned() };
    let legal: Vec<&str> = names.collect();
    unknown(kind, wrong, &legal)
}

/// Serde says `invalid type: string "50", expected u32`; we say what to write instead.
fn wrong_type(message: &str) -> Option<String> {
    let (problem, rest) = match message.strip_prefix("invalid type: ") {
        Some(rest) => ("does not belong here", rest),
        None => ("is out of range", message.strip_prefix("invalid value: ")?),
    };
    let (given, wanted) = rest.rsplit_once(", expected ")?;
    let wanted = match wanted {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number from 0 on",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "text in quotes",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum ") => "a table",
        other => other,
    };
    let told = match (given, given.strip_prefix("string ")) {
        (_, Some(text)) => format!("{text} is text"),
        ("sequence", _) => format!("a list {problem}"),
        ("map", _) => format!("a table {problem}"),
        // integer `300`, boolean `true`
        _ => format!("{} {problem}", given.split('`').nth(1).unwrap_or(given)),
    };
    Some(format!("{told}: write {wanted}"))
}

/// One line for an unknown name: `unknown key `quue`: did you mean `queue`? (known here: …)`.
#[must_use]
pub fn unknown(kind: &str, wrong: &str, legal: &[&str]) -> String {
    let mut told = format!("unknown {kind} `{wrong}`");
    if let Some(near) = nearest(wrong, legal) {
        told.push_str(&format!(": did you mean `{near}`?"));
    }
    told.push_str(&format!(" (known here: {})", legal.join(", ")));
    told
}

/// The legal name that a misspelling most likely meant, if any is near enough.
fn nearest<'a>(wrong: &str, legal: &[&'a str]) -> Option<&'a str> {
    let wrong = wrong.to_lowercase().replace('_', "-");
    legal
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&wrong, &name.to_lowercase().replace('_', "-")), *name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3).max(1))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_say_what_to_write_instead() {
        for (complaint, told) in [
            (
                "unknown field `quue`, expected one of `rate`, `queue`",
                "unknown key `quue`: did you mean `queue`? (known here: rate, queue)",
            ),
            (
                "unknown variant `al`, expected `waiting` or `all`",
                "unknown value `al`: did you mean `all`? (known here: waiting, all)",
            ),
            ("missing field `rate`", "missing key `rate`"),
            ("invalid type: string \"50\", expected u32", "\"50\" is text: write a whole number from 0 to 4294967295"),
            ("invalid value: integer `300`, expected u8", "300 is out of range: write a whole number from 0 to 255"),
            (
                "invalid type: floating point `1.5`, expected u16",
                "1.5 does not belong here: write a whole number from 0 to 65535",
            ),
            ("invalid type: integer `3`, expected struct Direction", "3 does not belong here: write a table"),
            ("invalid type: map, expected a sequence", "a table does not belong here: write a list"),
            ("invalid type: sequence, expected a boolean", "a list does not belong here: write true or false"),
            ("invalid type: null, expected a string", "null does not belong here: write text in quotes"),
        ] {
            assert_eq!(explain(complaint), told);
        }
    }

    #[test]
    fn far_names_are_not_offered() {
        assert_eq!(unknown("key", "zebra", &["rate", "queue"]), "unknown key `zebra` (known here: rate, queue)");
    }
}

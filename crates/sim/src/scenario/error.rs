//! One line for a scenario that cannot be run: the place and the mend.

use std::fmt;

/// Why a scenario was refused. Its text is one line that names the place and the mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    place: String,
    problem: String,
}

impl ScenarioError {
    pub(super) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }

    /// An error of a key, told as a dotted path inside `origin`.
    pub(super) fn at_key(origin: &str, key: &str, problem: impl Into<String>) -> Self {
        Self::new(format!("{origin}: {key}"), problem)
    }

    /// Turns the parser's complaint into ours: with the line, and for a misspelt name the nearest legal one.
    pub(super) fn from_toml(origin: &str, text: &str, error: &toml::de::Error) -> Self {
        let place = match error.span() {
            Some(span) => {
                let before = text.get(..span.start).unwrap_or(text);
                format!("{origin}:{}", before.matches('\n').count() + 1)
            }
            None => origin.to_owned(),
        };
        Self::new(place, explain(error.message()))
    }

    /// The same for JSON.
    pub(super) fn from_json(origin: &str, error: &serde_json::Error) -> Self {
        let told = error.to_string();
        let problem = told.rsplit_once(" at line").map_or(told.as_str(), |(problem, _)| problem);
        Self::new(format!("{origin}:{}", error.line()), explain(problem))
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for ScenarioError {}

/// Serde says `unknown field `quue`, expected one of `rate`, `queue``; we say which one was meant.
fn explain(message: &str) -> String {
    let message = message.lines().next().unwrap_or(message);
    let (kind, rest) = if let Some(rest) = message.strip_prefix("unknown field ") {
        ("key", rest)
    } else if let Some(rest) = message.strip_prefix("unknown variant ") {
        ("value", rest)
    } else {
        return message.replacen("missing field", "missing key", 1).replacen("duplicate field", "key given twice:", 1);
    };
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(wrong) = names.next() else { return message.to_owned() };
    let legal: Vec<&str> = names.collect();
    unknown(kind, wrong, &legal)
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

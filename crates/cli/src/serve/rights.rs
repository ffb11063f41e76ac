//! The file that says who may do what, and how often.

use std::path::Path;

use millpond_live::{Code, METHODS, Policy, RateLimit, Rule, Who};
use millpond_path::{InputError, unknown};
use serde::Deserialize;

use crate::failure::Failure;

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Written>,
}

/// One rule of it: for whom, and what they may do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    psk: Option<String>,
    certificate: Option<String>,
    oscore: Option<String>,
    network: Option<String>,
    paths: Option<std::collections::BTreeMap<String, Vec<String>>>,
    rate: Option<String>,
    burst: Option<u32>,
}

/// Reads the policy in a file.
///
/// # Errors
/// A file that cannot be read; one line that names what in it cannot be used, and what can.
pub(super) fn read(path: &Path) -> Result<Policy, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::of_file(path.display(), &error))?;
    policy(&path.display().to_string(), &text).map_err(|error| Failure::Usage(error.to_string()))
}

fn policy(origin: &str, text: &str) -> Result<Policy, InputError> {
    let file: File = toml::from_str(text).map_err(|error| InputError::from_toml(origin, text, &error))?;
    let mut policy = Policy::new();
    for (place, written) in file.rule.into_iter().enumerate() {
        // As people count.
        let at = |key: &str| format!("rule {}: {key}", place + 1);
        policy = policy.rule(written.rule().map_err(|(key, problem)| InputError::at_key(origin, &at(&key), problem))?);
    }
    Ok(policy)
}

impl Written {
    fn rule(self) -> Result<Rule, (String, String)> {
        let wrong = |key: &str, problem: String| (key.to_owned(), problem);
        let who = match (&self.psk, &self.certificate, &self.oscore, &self.network) {
            (Some(identity), None, None, None) => Who::pre_shared_key(identity),
            (None, Some(name), None, None) => Who::certificate(name),
            (None, None, Some(id), None) => Who::oscore(id).map_err(|error| wrong("oscore", error.unnamed()))?,
            (None, None, None, Some(network)) => {
                Who::network(network).map_err(|error| wrong("network", error.unnamed()))?
            }
            _ => {
                let problem = "name one of the four: a rule is for one kind";
                return Err(wrong("psk, certificate, oscore, network", problem.into()));
            }
        };
        let mut rule = Rule::of(who);
        match &self.paths {
            Some(paths) if paths.is_empty() => rule = rule.allow_nothing(),
            paths => {
                for (path, methods) in paths.iter().flatten() {
                    let methods = codes(methods).map_err(|problem| wrong(&format!("paths.{path:?}"), problem))?;
                    rule = rule.allow(path, methods).map_err(|error| wrong("paths", error.unnamed()))?;
                }
            }
        }
        match (self.rate.as_deref().map(rate), self.burst) {
            (None, None) if self.paths.is_none() => {
                Err(wrong("paths, rate", "the rule has neither; say what may be done, or how often".into()))
            }
            (None, None) => Ok(rule),
            (None, Some(_)) => Err(wrong("burst", "is there without rate; say how often, like rate = \"2/s\"".into())),
            (Some(Err(problem)), _) => Err(wrong("rate", problem)),
            (Some(Ok(_)), Some(0)) => Err(wrong("burst", "is 0; write 1 or more".into())),
            (Some(Ok(rate)), burst) => Ok(rule.limit(burst.map_or(rate, |burst| rate.burst(burst)))),
        }
    }
}

/// Methods by their names; none for all.
fn codes(names: &[String]) -> Result<Vec<Code>, String> {
    if names.is_empty() {
        return Err("names no method; write [\"GET\"], or [\"*\"] for all".into());
    }
    let known: Vec<&str> = METHODS.iter().map(|(name, _)| *name).chain(["*"]).collect();
    let code = |name: &String| {
        let found = METHODS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, code)| *code).ok_or_else(|| unknown("method", name, &known))
    };
    if names.iter().any(|name| name == "*") {
        return if names.len() == 1 { Ok(Vec::new()) } else { Err("has * among others, and * is all of them".into()) };
    }
    names.iter().map(code).collect()
}

/// How often: `2/s`, `100/min`, `10/h`.
fn rate(text: &str) -> Result<RateLimit, String> {
    let wrong = || format!("{text:?} is no rate; write 2/s, 100/min or 10/h");
    let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
    let seconds = match unit.trim() {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(wrong()),
    };
    let count: f64 = count.trim().parse().map_err(|_| wrong())?;
    RateLimit::per_second(count / seconds).map_err(|error| error.unnamed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_manual_is_read() {
        let manual = include_str!("../../../../docs/security.md");
        let (_, example) = manual.split_once("```toml\n# rights.toml\n").expect("an example");
        let (example, _) = example.split_once("```").expect("its end");
        policy("rights.toml", example).expect("it can be used");
    }

    #[test]
    fn whatever_cannot_be_used_is_one_line_that_names_the_place_and_what_can() {
        for (text, line) in [
            ("[[rule]]\npks = \"a\"", "r.toml:2: unknown key `pks`: did you mean `psk`?"),
            ("[[rul]]\npsk = \"a\"", "r.toml:1: unknown key `rul`: did you mean `rule`?"),
            ("[[rule]]\nrate = \"1/s\"", "rule 1: psk, certificate, oscore, network: name one of the four"),
            ("[[rule]]\npsk = \"a\"\nnetwork = \"::/0\"\nrate = \"1/s\"", "name one of the four"),
            ("[[rule]]\npsk = \"a\"", "rule 1: paths, rate: the rule has neither"),
            ("[[rule]]\npsk = \"a\"\nburst = 4\npaths = {}", "rule 1: burst: is there without rate"),
            ("[[rule]]\npsk = \"a\"\nrate = \"4\"", "rule 1: rate: \"4\" is no rate; write 2/s, 100/min or 10/h"),
            ("[[rule]]\npsk = \"a\"\nrate = \"0/s\"", "rule 1: rate: a rate of 0/s; write one above 0"),
            ("[[rule]]\nnetwork = \"10.0.0.0/40\"\nrate = \"4/s\"", "rule 1: network: \"10.0.0.0/40\" is no network"),
            (
                "[[rule]]\noscore = \"0G\"\nrate = \"4/s\"",
                "rule 1: oscore: \"0G\" is no ID in lower-case hexadecimal digits",
            ),
            (
                "[[rule]]\npsk = \"a\"\nrate = \"4/s\"\n[[rule]]\npsk = \"b\"\npaths = { \"/x\" = [\"GTE\"] }",
                "rule 2: paths.\"/x\": unknown method `GTE`: did you mean `GET`?",
            ),
            (
                "[[rule]]\npsk = \"a\"\npaths = { \"x\" = [\"GET\"] }",
                "rule 1: paths: \"x\" does not begin with a slash",
            ),
            ("[[rule]]\npsk = \"a\"\npaths = { \"/x\" = [] }", "names no method"),
            ("[[rule]]\npsk = 4", "r.toml:2: 4 does not belong here: write text in quotes"),
        ] {
            let told = policy("r.toml", text).expect_err(text).to_string();
            assert!(told.contains(line) && !told.contains('\n'), "{text}: {told}");
        }
    }
}

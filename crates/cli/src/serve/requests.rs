//! A line for each request.

use millpond_live::{AccessOutcome, AccessRecord};

use crate::{answer, render::steers};

/// Tells a request and what became of it.
pub(super) fn line(access: &AccessRecord) -> String {
    let AccessRecord { peer, method, path, outcome, reason, took, .. } = access;
    let method =
        method.map_or("-".into(), |method| method.name().map_or_else(|| method.to_string(), str::to_uppercase));
    let path: String = path.chars().map(|c| if steers(c) { '?' } else { c }).collect();
    let outcome = match outcome {
        AccessOutcome::Answered { code, bytes } => format!("{}, {bytes} bytes", answer::titled(*code)),
        AccessOutcome::Reset => "reset".into(),
        AccessOutcome::Insecure => "no secure session".into(),
        _ => "not answered".into(),
    };
    let reason = reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
    format!("{peer}  {method} {path}  {outcome}{reason}, {:.1} ms", took.as_secs_f64() * 1e3)
}

//! A line for each request.

use millpond_live::{AccessOutcome, AccessRecord, Code, PeerIdentity};
use serde_json::json;

use crate::arguments::LogFormat;
use crate::{answer, render::steers};

/// Tells a request that was answered at this time, and what became of it.
pub(super) fn line(time: String, access: &AccessRecord, format: LogFormat) -> String {
    match format {
        LogFormat::Text => text(&time, access),
        LogFormat::Json => json(&time, access),
    }
}

fn text(time: &str, access: &AccessRecord) -> String {
    let AccessRecord { peer, path, received, outcome, reason, took, .. } = access;
    let identity =
        identity(access.identity.as_deref()).map_or(String::new(), |(kind, name)| format!(" {kind}:{}", plain(&name)));
    let received = if *received > 0 { format!("{received} bytes in, ") } else { String::new() };
    let outcome = match outcome {
        AccessOutcome::Answered { code, bytes } => format!("{}, {received}{bytes} bytes", answer::titled(*code)),
        AccessOutcome::Reset => "reset".into(),
        AccessOutcome::Insecure => "no secure session".into(),
        _ => "not answered".into(),
    };
    let reason = reason.as_ref().map_or(String::new(), |reason| format!(" ({})", plain(reason)));
    let (method, took) = (method(access.method).unwrap_or_else(|| "-".into()), took.as_secs_f64() * 1e3);
    format!("{time}  {peer}{identity}  {method} {}  {outcome}{reason}, {took:.1} ms", plain(path))
}

fn json(time: &str, access: &AccessRecord) -> String {
    let (code, sent) = match access.outcome {
        AccessOutcome::Answered { code, bytes } => (Some(code.to_string()), Some(bytes)),
        _ => (None, None),
    };
    let outcome = match access.outcome {
        AccessOutcome::Answered { .. } => "answered",
        AccessOutcome::Reset => "reset",
        AccessOutcome::Insecure => "insecure",
        _ => "unanswered",
    };
    let identity = identity(access.identity.as_deref());
    json!({
        "time": time,
        "peer": access.peer.to_string(),
        "transport": access.transport.to_string(),
        "identity": identity.as_ref().map(|(_, name)| name),
        "identity_kind": identity.as_ref().map(|(kind, _)| kind),
        "method": method(access.method),
        "path": access.path,
        "outcome": outcome,
        "code": code,
        "bytes_in": access.received,
        "bytes_out": sent,
        "ms": (access.took.as_secs_f64() * 1e6).round() / 1e3,
        "reason": access.reason,
    })
    .to_string()
}

/// What kind of identity was proved, and its name; of a certificate the first of those that it has.
pub(crate) fn identity(identity: Option<&PeerIdentity>) -> Option<(&'static str, String)> {
    let identity = identity?;
    let kind = match identity {
        PeerIdentity::PreSharedKey(_) => "psk",
        PeerIdentity::Certificate(_) => "certificate",
        PeerIdentity::Oscore(_) => "oscore",
        _ => "other",
    };
    Some((kind, identity.names().into_iter().next().unwrap_or_default()))
}

pub(crate) fn method(method: Option<Code>) -> Option<String> {
    method.map(|method| method.name().map_or_else(|| method.to_string(), str::to_uppercase))
}

/// What a peer sent, without what would break the line or steer a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '?' } else { c }).collect()
}

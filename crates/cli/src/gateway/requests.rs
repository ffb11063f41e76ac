//! A line for each request.

use millpond_gateway::Access;
use serde_json::json;

use crate::answer;
use crate::arguments::LogFormat;
use crate::serve::requests::{identity, method, plain};

/// Tells a request that was answered at this time, by whom, and what became of it.
pub(super) fn line(time: String, access: &Access, format: LogFormat) -> String {
    match format {
        LogFormat::Text => text(&time, access),
        LogFormat::Json => json(&time, access),
    }
}

fn text(time: &str, access: &Access) -> String {
    let Access { peer, path, source, code, bytes, took, .. } = access;
    let identity =
        identity(access.identity.as_ref()).map_or(String::new(), |(kind, name)| format!(" {kind}:{}", plain(&name)));
    let upstream = access.upstream.as_ref().map_or(String::new(), |uri| format!(" -> {}", plain(uri)));
    let outcome = code.map_or("not answered".into(), |code| format!("{}, {bytes} bytes", answer::titled(code)));
    let reason = access.reason.as_ref().map_or(String::new(), |reason| format!(" ({})", plain(reason)));
    let (method, took) = (method(access.method).unwrap_or_else(|| "-".into()), took.as_secs_f64() * 1e3);
    format!(
        "{time}  {peer}{identity}  {method} {}{upstream}  {outcome}, {}{reason}, {took:.1} ms",
        plain(path),
        source.name()
    )
}

fn json(time: &str, access: &Access) -> String {
    let identity = identity(access.identity.as_ref());
    json!({
        "time": time,
        "peer": access.peer.to_string(),
        "transport": access.scheme,
        "identity": identity.as_ref().map(|(_, name)| name),
        "identity_kind": identity.as_ref().map(|(kind, _)| kind),
        "method": method(access.method),
        "path": access.path,
        "rule": access.rule,
        "upstream": access.upstream,
        "source": access.source.name(),
        "code": access.code.map(|code| code.to_string()),
        "bytes_out": access.bytes,
        "ms": (access.took.as_secs_f64() * 1e6).round() / 1e3,
        "reason": access.reason,
    })
    .to_string()
}

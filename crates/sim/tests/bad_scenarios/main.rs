//! What a scenario must not say, and what the user is told: one line with the place and the fix.

mod keys;
mod workloads;

use millpond_sim::Scenario;

pub(crate) const GOOD: &str = r#"
title = "a test"
[path]
header = "28 B"
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "2500 B"
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "8 packets"
jitter = { from = "0 ms", to = "10 ms" }
loss = { kind = "bernoulli", rate = 0.02 }
[[clients]]
count = 4
controller = "rfc7252"
[server]
duplicates = "afresh"
"#;

/// The complaint about the good scenario with one text replaced.
pub(crate) fn complaint(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?} is not in the scenario");
    let told = Scenario::from_toml(&GOOD.replacen(from, to, 1), "test.toml").unwrap_err().to_string();
    assert!(!told.contains('\n'), "more than one line: {told}");
    assert!(told.starts_with("test.toml"), "does not name its place: {told}");
    told
}

#[track_caller]
pub(crate) fn tells(from: &str, to: &str, parts: &[&str]) {
    let told = complaint(from, to);
    for part in parts {
        assert!(told.contains(part), "{told:?} does not say {part:?}");
    }
}

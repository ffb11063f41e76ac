//! Bodies over the path of the MSc thesis on CoAP over TCP (University of Helsinki, 2020), chapter 5, and how long they take.

use millpond_sim::{Options, Outcome, Scenario, run};

use crate::path::path;

/// The path with this much buffer, a server with this much to give (what else is said of it may follow), and one group of
/// clients.
pub(crate) fn scenario(buffer: u32, payload: &str, server: &str, clients: &str) -> Scenario {
    let path = path(&format!("{buffer} B"));
    let text = format!("{path}\n[server]\npayload = \"{payload}\"\n{server}\n[[clients]]\n{clients}\n");
    Scenario::from_toml(&text, "test").unwrap()
}

pub(crate) fn go(scenario: &Scenario, seed: u64) -> Outcome {
    run(scenario, seed, &Options::default(), || false).unwrap()
}

/// How long the first client took.
pub(crate) fn seconds(outcome: &Outcome) -> f64 {
    outcome.flows[0].fct_us.unwrap() as f64 / 1e6
}

#[track_caller]
pub(crate) fn assert_near(ours: f64, expected: f64, tolerance: f64) {
    assert!((ours - expected).abs() <= tolerance, "{ours} s, expected {expected} ± {tolerance} s");
}

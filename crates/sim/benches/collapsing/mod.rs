//! The scenario in which the standard's timer collapses: very many clients over an unlimited buffer.

use millpond_sim::Scenario;

/// The standard's timer, with a cap.
pub(crate) const STANDARD: &str = r#"{ preset = "rfc7252", max-wait = "60 s" }"#;

pub(crate) fn scenario(clients: u32, exchanges: u32, controller: &str, spread: &str) -> Scenario {
    let text = format!(
        r#"
        [path]
        profile = "nbiot-anrw18"
        uplink.queue = "1410000 B"
        downlink.queue = "1410000 B"
        [[clients]]
        count = {clients}
        exchanges = {exchanges}
        controller = {controller}
        max_retransmit = 20
        start_spread = "{spread}"
        [server]
        duplicates = "afresh"
        "#
    );
    Scenario::from_toml(&text, "bench").expect("the scenario is legal")
}

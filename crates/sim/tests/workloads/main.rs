//! What clients do over time: closed forms on an empty link, counts, events, and nothing lost from the books.

mod arrivals;
#[path = "../books/mod.rs"]
mod books;
mod open;
mod restarts;

use millpond_sim::{Options, Outcome, Scenario, run};

/// A link of 100 Mbit/s and 10 ms each way, on which nothing waits.
pub(crate) const EMPTY: &str = r#"
[path.uplink]
rate = "100 Mbit/s"
delay = "10 ms"
queue = "1 MB"
[path.downlink]
rate = "100 Mbit/s"
delay = "10 ms"
queue = "1 MB"
"#;

/// The path of study anrw18 with a buffer of 2,500 B.
pub(crate) const NARROW: &str = r#"
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "2500 B"
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "2500 B"
"#;

pub(crate) fn scenario(path: &str, group: &str) -> Scenario {
    Scenario::from_toml(&format!("{path}\n[[clients]]\n{group}"), "test").unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn go(path: &str, group: &str) -> Outcome {
    run(&scenario(path, group), 1, &Options::default(), || false).unwrap()
}

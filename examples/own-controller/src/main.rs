//! A custom congestion controller in the laboratory, beside built-in ones.
//!
//! `cargo run --release -p millpond-example-own-controller` prints a small table. The controller is in `patient.rs`; here
//! a scenario names it, and the run is handed what makes it.

mod patient;

use std::error::Error;

use millpond_control::PeerController;
use millpond_sim::scenario::{Controllers, OwnChoice, Value};
use millpond_sim::{Options, Outcome, Scenario, run_with};

use patient::Patient;

/// Where a run gets the controllers that are not built in.
struct Mine;

impl Controllers for Mine {
    fn own(&self, choice: &OwnChoice) -> Result<PeerController, String> {
        if choice.name() != "example:patient" {
            return Err(format!("`{}` is not ours: there is `example:patient`", choice.name()));
        }
        let times = match choice.settings().get("times") {
            None => 4,
            Some(Value::Whole(times @ 1..=100)) => *times as u32,
            Some(other) => return Err(format!("times: {other} is not a whole number from 1 to 100")),
        };
        Ok(PeerController::own(Patient::new(times)))
    }
}

/// Many clients behind a link of 30 kbit/s with a deep queue: who is impatient fills it with copies.
fn scenario(controller: &str) -> String {
    format!(
        r#"
        [path.uplink]
        rate = "60 kbit/s"
        delay = "215 ms"
        queue = "28200 B"
        [path.downlink]
        rate = "30 kbit/s"
        delay = "415 ms"
        queue = "28200 B"
        [[clients]]
        count = 150
        controller = {controller}
        max_retransmit = 20
        [server]
        duplicates = "afresh"
        "#
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{:44} {:>10} {:>14} {:>8}", "150 clients, 50 exchanges each", "median", "copies/client", "spurious");
    for controller in [
        r#"{ preset = "rfc7252", max-wait = "60 s" }"#,
        r#""cocoa-03""#,
        r#""example:patient""#,
        r#"{ own = "example:patient", times = 2 }"#,
    ] {
        let scenario = Scenario::from_toml(&scenario(controller), "example")?;
        let outcome = run_with(&scenario, 1, &Options::default(), &Mine, || false)?;
        print_row(&scenario.clients[0].algorithm(), &outcome);
    }
    Ok(())
}

fn print_row(name: &str, outcome: &Outcome) {
    let mut times: Vec<_> = outcome.flows.iter().filter_map(|flow| flow.fct_us).collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2).map_or_else(|| "-".to_owned(), |us| format!("{:.1} s", *us as f64 / 1e6));
    let clients = outcome.flows.len() as f64;
    let mean = |count: fn(&millpond_sim::FlowRow) -> u32| {
        outcome.flows.iter().map(|flow| f64::from(count(flow))).sum::<f64>() / clients
    };
    let (copies, in_vain) = (mean(|flow| flow.transmissions), mean(|flow| flow.unnecessary));
    println!("{name:44} {median:>10} {copies:>14.1} {in_vain:>8.1}");
}

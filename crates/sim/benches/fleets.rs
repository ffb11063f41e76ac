//! How fast fleets are that sleep most of the time: one cell of 100,000 clients for a day, and a million devices in 2,500
//! cells, with the memory that each takes.

#[path = "../tests/counting/mod.rs"]
mod counting;

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Instant,
};

use millpond_sim::{Options, Scenario, run};

fn scenario(clients: u32, rate: &str, workload: &str) -> Scenario {
    let text = format!(
        r#"
        [path.uplink]
        rate = "{rate}"
        delay = "215 ms"
        queue = "141000 B"
        [path.downlink]
        rate = "{rate}"
        delay = "415 ms"
        queue = "141000 B"
        [[clients]]
        count = {clients}
        controller = "rfc7252"
        workload = {workload}
        [server]
        duplicates = "afresh"
        [run]
        for = "1 d"
        "#
    );
    Scenario::from_toml(&text, "bench").expect("the scenario is legal")
}

/// Runs cells on all cores; gives requests and events.
fn cells(scenario: &Scenario, cells: u64) -> (u64, u64) {
    let (next, arrivals, events) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= cells {
                return;
            }
            let summary = run(scenario, seed, &Options::default(), || false).expect("it runs").summary;
            arrivals.fetch_add(summary.arrivals, Relaxed);
            events.fetch_add(summary.events, Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    (arrivals.load(Relaxed), events.load(Relaxed))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark goes by the clock")]
fn measure(name: &str, scenario: &Scenario, number: u64) {
    let begun = Instant::now();
    let (mut requests, mut events) = (0, 0);
    let peak = counting::peak(|| (requests, events) = cells(scenario, number));
    println!(
        "fleets/{name}: {:.1} s, {requests} requests, {events} events, {:.1} MB of heap at the peak",
        begun.elapsed().as_secs_f64(),
        peak as f64 / 1e6
    );
}

fn main() {
    let cell = scenario(100_000, "1 Mbit/s", "{ kind = \"periodic\", period = \"2 h\" }");
    measure("100000 clients of one cell for a day", &cell, 1);
    let cell = scenario(400, "30 kbit/s", "\"tr45820-reporting\"");
    measure("1000000 devices in 2500 cells for a day", &cell, 2_500);
}

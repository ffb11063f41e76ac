//! How fast meshes of radios are: a loaded grid for ten minutes, and a mesh of a thousand nodes.

use std::time::Instant;

use millpond_sim::{Options, Scenario, run};

/// Ten minutes in which some node of the mesh has something to say every so often.
fn scenario(mesh: &str, together: &str) -> Scenario {
    let text = format!(
        r#"
        [mesh]
        {mesh}
        [[clients]]
        controller = "rfc7252"
        request_payload = "30 B"
        application_queue = 4
        workload = {{ kind = "periodic", period = {{ together = "{together}" }} }}
        [server]
        payload = "0 B"
        [run]
        for = "10 min"
        "#
    );
    Scenario::from_toml(&text, "bench").expect("the scenario is legal")
}

#[expect(clippy::disallowed_methods, reason = "a benchmark goes by the clock")]
fn measure(name: &str, scenario: &Scenario) {
    let begun = Instant::now();
    let summary = run(scenario, 1, &Options::default(), || false).expect("it runs").summary;
    let took = begun.elapsed().as_secs_f64();
    let rate = summary.simulated_us as f64 / 1e6 / took;
    let (requests, events) = (summary.arrivals, summary.events);
    println!("meshes/{name}: {took:.2} s, {rate:.0} simulated seconds a second, {requests} requests, {events} events");
}

fn main() {
    // 96 B every 76.8 ms are 10 kbit/s.
    measure("7x7 grid at 10 kbit/s for ten minutes", &scenario("topology = \"grid-7x7\"", "76800 us"));
    let thousand = r#"
        topology = { kind = "random", nodes = 1000, side = "145 m", seed = 3 }
        border_router = "0"
        sinks = { primary = { nodes = ["1", "2", "3", "4", "5", "6", "7", "8"] } }
        delivery = [0.75, 1.0]
        "#;
    measure("1000 random nodes at 10 kbit/s for ten minutes", &scenario(thousand, "76800 us"));
}

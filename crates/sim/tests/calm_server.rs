//! A server that withholds answers to copies ends a collapse, and costs nothing where packets are lost at random.

mod path;

use millpond_sim::{Options, Outcome, Scenario, TraceKind, run};

/// The path of study anrw18 with an endless buffer, these clients and a server that meets copies so.
fn collapse(controller: &str, workload: &str, server: &str, seed: u64) -> Outcome {
    let path = path::path("1410000 B");
    let text = format!(
        "{path}\n[[clients]]\ncount = 400\nexchanges = 50\ncontroller = {controller}\nworkload = \"{workload}\"\n\
         max_retransmit = 20\nstart_spread = \"10 s\"\n[server]\n{server}\n"
    );
    let scenario = Scenario::from_toml(&text, "test").unwrap();
    let options = Options { traces: vec![TraceKind::Queue, TraceKind::Exchanges], ..Options::default() };
    run(&scenario, seed, &options, || false).unwrap()
}

fn median(outcome: &Outcome) -> f64 {
    let mut times: Vec<f64> = outcome.flows.iter().map(|row| row.fct_us.unwrap() as f64 / 1e6).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

const DEFAULT: &str = r#"{ preset = "rfc7252", max-wait = "60 s" }"#;

const STORED: &str = r#"duplicates = "stored""#;
const CALM: &str = r#"duplicates = "calm""#;

/// 20,000 responses of 94 B take 501.3 s of a link of 30 kbit/s.
#[test]
fn it_ends_the_collapse_of_clients_that_nobody_can_change() {
    let busy = 20_000.0 * 94.0 * 8.0 / 30e3;
    for (controller, workload) in [(DEFAULT, "continuous"), (r#""cocoa-03""#, "fresh-batches")] {
        let stored = median(&collapse(controller, workload, STORED, 1));
        let calm = median(&collapse(controller, workload, CALM, 1));
        println!("{controller} {workload}: stored {stored:.1} s, calm {calm:.1} s");
        assert!(stored > 4.0 * busy, "{controller}: collapsed at {stored} s");
        assert!(calm < 1.05 * busy, "{controller}: {calm} s, the link needs {busy} s");
    }
}

/// How many requests were answered by then, µs, and how many there are.
fn answered(outcome: &Outcome, by: u64) -> (usize, usize) {
    let ends = outcome.exchanges.iter().filter_map(|row| row.accepted_us);
    (ends.filter(|end| *end <= by).count(), outcome.exchanges.len())
}

/// Bytes on their way to the clients then, µs.
fn queued(outcome: &Outcome, at: u64) -> u64 {
    let mut downlink = outcome.queue_trace.iter().filter(|sample| &*sample.link == "downlink" && sample.t_us <= at);
    downlink.next_back().unwrap().bytes
}

/// A server that turns calm in the middle of a collapse knows nothing of the time before. Requests that are left take
/// the time of the link, and what is in its queue already once more. It takes a tenth longer: until clients have rejected a ping,
/// which stands in that queue, all copies are answered.
#[test]
fn a_collapse_is_over_within_the_time_of_the_link_once_the_server_is_calm() {
    let (controller, workload) = (DEFAULT, "continuous");
    let at = 500;
    let late = format!("{STORED}\n[[timeline]]\nat = \"{at} s\"\nkind = \"server\"\n{CALM}");
    let outcome = collapse(controller, workload, &late, 1);
    let (done, all) = answered(&outcome, at * 1_000_000);
    let response = 94.0 * 8.0 / 30e3;
    let (left, queue) = ((all - done) as f64 * response, queued(&outcome, at * 1_000_000) as f64 * 8.0 / 30e3);
    let last = outcome.exchanges.iter().filter_map(|row| row.accepted_us).max().unwrap();
    let took = last as f64 / 1e6 - at as f64;
    println!(
        "{controller} {workload}: calm from {at} s on, {done} of {all} answered; over after {took:.1} s, the link \
         needs {left:.1} s for what is left, and {queue:.1} s stood in the queue"
    );
    assert!(done < all / 2, "{controller}: no collapse");
    assert!(took < 1.15 * (left + queue), "{controller}: {took} s");
}

/// Ten clients and nothing to wait for: what is lost is asked for again, and answered.
#[test]
fn random_loss_costs_as_much_as_with_a_server_that_answers_every_copy() {
    let medians = |duplicates: &str| -> f64 {
        let of = |seed| {
            let text = format!(
                "[path.uplink]\nrate = \"60 kbit/s\"\ndelay = \"215 ms\"\nqueue = \"1410000 B\"\n\
                 loss = {{ kind = \"bernoulli\", rate = 0.2 }}\n\
                 [path.downlink]\nrate = \"30 kbit/s\"\ndelay = \"415 ms\"\nqueue = \"1410000 B\"\n\
                 loss = {{ kind = \"bernoulli\", rate = 0.2 }}\n\
                 [[clients]]\ncount = 10\nexchanges = 50\ncontroller = {DEFAULT}\nmax_retransmit = 20\n\
                 [server]\nduplicates = \"{duplicates}\"\n"
            );
            let scenario = Scenario::from_toml(&text, "test").unwrap();
            median(&run(&scenario, seed, &Options::default(), || false).unwrap())
        };
        (1..=20).map(of).sum::<f64>() / 20.0
    };
    let (stored, calm) = (medians("stored"), medians("calm"));
    println!("20 % each way: stored {stored:.1} s, calm {calm:.1} s");
    assert!(calm < 1.05 * stored, "{calm} s, and {stored} s where every copy is answered");
}

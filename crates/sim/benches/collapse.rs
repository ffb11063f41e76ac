//! How fast the laboratory is: the congestion collapse of 400 clients over an unlimited buffer, the example networks of several
//! links with ten times their clients, downloads of 102,400 bytes by every transport, and what a client weighs.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

mod collapsing;
#[path = "../tests/counting/mod.rs"]
mod counting;

use std::hint::black_box;

use collapsing::{STANDARD, scenario};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use millpond_sim::{Options, Scenario, run};

fn collapse(c: &mut Criterion) {
    let mut group = c.benchmark_group("collapse");
    group.sample_size(20);
    for (name, controller) in [
        ("rfc7252", STANDARD),
        ("default-fb1", r#"{ preset = "default-fb1", max-wait = "60 s" }"#),
        ("cocoa-03", r#""cocoa-03""#),
    ] {
        let scenario = scenario(400, 50, controller, "0 s");
        let events = run(&scenario, 1, &Options::default(), || false).expect("it runs").summary.events;
        println!("collapse/{name}: {events} events a run");
        group.throughput(Throughput::Elements(events));
        group.bench_function(name, |b| {
            b.iter(|| run(black_box(&scenario), 1, &Options::default(), || false));
        });
    }
    group.finish();
}

fn networks(c: &mut Criterion) {
    let mut group = c.benchmark_group("network");
    group.sample_size(20);
    for (name, text) in [
        ("star", include_str!("../../../scenarios/star.toml")),
        ("chain", include_str!("../../../scenarios/chain.toml")),
    ] {
        let mut scenario = Scenario::from_toml(text, "bench").expect("the scenario is legal");
        scenario.clients.iter_mut().for_each(|group| group.count *= 10);
        let events = run(&scenario, 1, &Options::default(), || false).expect("it runs").summary.events;
        println!("network/{name}: {events} events a run");
        group.throughput(Throughput::Elements(events));
        group.bench_function(name, |b| {
            b.iter(|| run(black_box(&scenario), 1, &Options::default(), || false));
        });
    }
    group.finish();
}

fn downloads(c: &mut Criterion) {
    let mut group = c.benchmark_group("download");
    group.sample_size(20);
    let udp = "controller = \"rfc7252\"\nmax_retransmit = 20\ntransfer";
    for (name, clients) in [
        ("new-reno", "transport = \"tcp\"".to_owned()),
        ("bbr", "transport = { kind = \"tcp\", congestion = \"bbr\" }".to_owned()),
        ("blocks", format!("{udp} = {{ kind = \"blocks\", size = \"256 B\" }}")),
        ("bursts", format!("{udp} = {{ kind = \"bursts\", size = \"128 B\" }}")),
    ] {
        let text = format!(
            r#"
            [path.uplink]
            rate = "60 kbit/s"
            delay = "215 ms"
            queue = "14100 B"
            loss = {{ kind = "bernoulli", rate = 0.02 }}
            [path.downlink]
            rate = "30 kbit/s"
            delay = "415 ms"
            queue = "14100 B"
            loss = {{ kind = "bernoulli", rate = 0.02 }}
            [server]
            payload = "102400 B"
            [[clients]]
            count = 4
            exchanges = 1
            start_spread = "1 s"
            {clients}
            "#
        );
        let scenario = Scenario::from_toml(&text, "bench").expect("the scenario is legal");
        let summary = run(&scenario, 1, &Options::default(), || false).expect("it runs").summary;
        println!("download/{name}: {} events and {} s a run", summary.events, summary.simulated_us / 1_000_000);
        group.throughput(Throughput::Elements(summary.events));
        group.bench_function(name, |b| {
            b.iter(|| run(black_box(&scenario), 1, &Options::default(), || false));
        });
    }
    group.finish();
}

fn weight(_: &mut Criterion) {
    let peak = |clients| {
        let scenario = scenario(clients, 1, "\"cocoa-03\"", "60 min");
        counting::peak(|| black_box(run(&scenario, 1, &Options::default(), || false)).expect("it runs"))
    };
    let (few, many) = (peak(1_000), peak(11_000));
    println!(
        "weight: {} bytes of heap a client at the peak (endpoint, application, the server's entry, ledger, result row)",
        (many - few) / 10_000
    );
}

criterion_group!(benches, weight, collapse, networks, downloads);
criterion_main!(benches);

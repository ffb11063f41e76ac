//! What one packet costs on its way through a link: offered, queued, sent, delivered, and the wake-up asked for.
//!
//! Each case is a link in its steady state: as many packets leave as come in, at the backlog that its name says. The
//! figure per element is the whole price of one packet, statistics included.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use millpond_control::{ChanceSeed, Instant, Span};
use millpond_link::{Config, Jitter, Limit, Link, Loss, Order, Probability, Rate};
use std::hint::black_box;

const PACKETS: u64 = 10_000;
/// 94 B at 30 kbit/s take 25 066.67 µs.
const SERVICE: u64 = 25_067;

fn plain() -> Config {
    Config::plain(Rate::BitsPerSecond(30_000), Span::from_millis(415), Limit::Bytes(1_410_000))
}

/// Fills the queue with `backlog` packets and lets one packet come for each that leaves.
fn steady(config: &Config, backlog: u64) -> (Link<u32>, u64) {
    let mut link = Link::new(config, ChanceSeed::new(1), 0).expect("a sound configuration");
    for number in 0..backlog {
        let _ = link.offer(Instant::ORIGIN, 94, number as u32);
    }
    let mut now = 0;
    // Everything that will ever be allocated is, after a full turn of the queue.
    pass(&mut link, &mut now, 2 * backlog + 100, |_| 94);
    (link, now)
}

fn pass(link: &mut Link<u32>, now: &mut u64, packets: u64, len: impl Fn(u64) -> u32) {
    for number in 0..packets {
        *now += SERVICE;
        let at = Instant::from_micros(*now);
        let _ = black_box(link.offer(at, len(number), number as u32));
        while link.next().is_some_and(|due| due <= at) {
            black_box(link.deliver(at));
        }
    }
}

fn measure(c: &mut Criterion, name: &str, config: &Config, backlog: u64, len: impl Fn(u64) -> u32 + Copy) {
    let mut group = c.benchmark_group("packet");
    group.throughput(Throughput::Elements(PACKETS));
    let steady = steady(config, backlog);
    group.bench_function(name, |bencher| {
        bencher.iter_batched_ref(|| steady.clone(), |(link, now)| pass(link, now, PACKETS, len), BatchSize::LargeInput);
    });
    group.finish();
}

fn packets(c: &mut Criterion) {
    let plain = plain();
    measure(c, "plain, idle link", &plain, 0, |_| 94);
    measure(c, "plain, 300 waiting", &plain, 300, |_| 94);
    measure(c, "plain, 14000 waiting", &plain, 14_000, |_| 94);
    measure(c, "plain, lengths vary", &plain, 300, |number| 60 + (number * 29 % 69) as u32);
    let full = Config { queue: Limit::Packets(1), rate: Rate::BitsPerSecond(1), ..plain };
    measure(c, "plain, queue full", &full, 10, |_| 94);

    let probability = |millionths| Probability::from_millionths(millionths).expect("at most a million");
    let jitter = |order| Jitter::Uniform { from: Span::from_millis(10), to: Span::from_millis(40), order };
    let (good_dwell, bad_dwell) = (Span::from_millis(400), Span::from_millis(100));
    let (good_loss, bad_loss) = (probability(20_000), probability(800_000));
    let cases = [
        ("bernoulli", Config { loss: Loss::Bernoulli { rate: probability(20_000) }, ..plain }),
        ("markov", Config { loss: Loss::Markov { good_loss, bad_loss, good_dwell, bad_dwell }, ..plain }),
        ("gilbert-elliott", Config { loss: Loss::gilbert_elliott(probability(20_000)), ..plain }),
        ("jitter, order preserved", Config { jitter: jitter(Order::Preserved), ..plain }),
        ("jitter, order free", Config { jitter: jitter(Order::Free), ..plain }),
    ];
    for (name, config) in cases {
        measure(c, name, &config, 300, |_| 94);
    }
}

criterion_group!(benches, packets);
criterion_main!(benches);

//! What one call of a controller costs.
//!
//! `cargo bench -p millpond-control`. Each figure is one call on a peer in mid-life, through [`AnyController`] and
//! with the word of chance already drawn.

#![allow(missing_docs, clippy::arithmetic_side_effects, reason = "a benchmark, whose entry points are made by a macro")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use millpond_control::{
    AnyController, Chance, ChanceSeed, Controller, Cx, Exchange, Instant, Preset, Purpose, ReplyKind, Sample, Span,
};
use std::hint::black_box;

/// Calls measured together: one alone is shorter than reading the clock.
const CALLS: u32 = 1_024;

/// A peer that has seen clean exchanges, retransmissions and their answers.
fn mid_life(preset: Preset) -> (AnyController, Instant) {
    let mut controller = preset.build();
    let mut now = Instant::ORIGIN;
    for number in 0..100_u32 {
        let chance = ChanceSeed::new(1).at(Purpose::Dither, [0, 0, number, 0]);
        let mut exchange = Exchange::new();
        let first = now;
        let wait = controller.on_start(&mut exchange, 40, Cx::new(now, chance));
        let retransmissions = u8::from(number % 4 == 3);
        let mut last = first;
        if retransmissions > 0 {
            now = now.after(wait.span);
            last = now;
            controller.on_timeout(&mut exchange, Cx::new(now, chance));
        }
        now = now.after(Span::from_micros(300_000 + chance.pick(0, 200_000)));
        let sample = Sample::new(ReplyKind::Piggybacked, now.since(first), now.since(last), retransmissions);
        controller.on_reply(&exchange, sample, Cx::new(now, chance));
    }
    (controller, now)
}

fn calls(criterion: &mut Criterion) {
    for preset in Preset::ALL {
        let (controller, now) = mid_life(*preset);
        let mut group = criterion.benchmark_group(preset.name());
        group.throughput(criterion::Throughput::Elements(CALLS.into()));

        group.bench_function("on_start", |bencher| {
            bencher.iter_batched_ref(
                || (controller, Exchange::new()),
                |(controller, exchange)| {
                    for word in 0..CALLS {
                        let cx = Cx::new(now, Chance::from_word(word << 22));
                        black_box(controller.on_start(black_box(exchange), 40, black_box(cx)));
                    }
                },
                BatchSize::SmallInput,
            );
        });

        group.bench_function("on_timeout", |bencher| {
            let mut started = controller;
            let mut exchange = Exchange::new();
            started.on_start(&mut exchange, 40, Cx::new(now, Chance::MIDDLE));
            bencher.iter_batched_ref(
                || started,
                |controller| {
                    for _ in 0..CALLS {
                        let mut exchange = black_box(exchange);
                        black_box(controller.on_timeout(&mut exchange, black_box(Cx::new(now, Chance::MIDDLE))));
                    }
                },
                BatchSize::SmallInput,
            );
        });

        for (name, retransmissions) in [("on_reply, clean", 0), ("on_reply, retransmitted", 1)] {
            let mut started = controller;
            let mut exchange = Exchange::new();
            started.on_start(&mut exchange, 40, Cx::new(now, Chance::MIDDLE));
            for _ in 0..retransmissions {
                started.on_timeout(&mut exchange, Cx::new(now, Chance::MIDDLE));
            }
            group.bench_function(name, |bencher| {
                bencher.iter_batched_ref(
                    || started,
                    |controller| {
                        for micros in 0..CALLS {
                            let rtt = Span::from_micros(400_000 + micros);
                            let sample = Sample::new(ReplyKind::Piggybacked, rtt, rtt, retransmissions);
                            controller.on_reply(
                                black_box(&exchange),
                                black_box(sample),
                                black_box(Cx::new(now, Chance::MIDDLE)),
                            );
                        }
                    },
                    BatchSize::SmallInput,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, calls);
criterion_main!(benches);

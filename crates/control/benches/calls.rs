//! What one call of a controller costs, and what one peer takes up.
//!
//! `cargo bench -p millpond-control`. Each time is one call on a peer in mid-life, through [`AnyController`] and with the
//! word of chance already drawn.

#![allow(missing_docs, clippy::arithmetic_side_effects, reason = "a benchmark, whose entry points are made by a macro")]

use criterion::{Criterion, criterion_group, criterion_main};
use millpond_control::{
    AnyController, BasicRto, BbrCon, Calm, CalmPath, CalmPeer, Chance, ChanceSeed, CoapPlusRate, Cocoa, Controller, Cx,
    Exchange, Fasor, Instant, LinuxRto, PeakHopper, Preset, Purpose, ReplyKind, Rfc7252, Sample, Span, TfrcNon, Voter,
};
use std::{hint::black_box, time::Duration};

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
    for preset in Preset::all() {
        let (controller, now) = mid_life(preset);
        let cx = Cx::new(now, Chance::MIDDLE);
        let mut group = criterion.benchmark_group(preset.name());
        // Calls of a few nanoseconds need no longer to be distinguished.
        group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(300));

        let (mut peer, mut exchange) = (controller, Exchange::new());
        group.bench_function("on_start", |bencher| {
            bencher.iter(|| peer.on_start(black_box(&mut exchange), 40, black_box(cx)));
        });

        let (mut peer, mut started) = (controller, Exchange::new());
        peer.on_start(&mut started, 40, cx);
        group.bench_function("on_timeout", |bencher| {
            bencher.iter(|| peer.on_timeout(&mut black_box(started), black_box(cx)));
        });

        for (name, retransmissions) in [("on_reply, clean", 0), ("on_reply, retransmitted", 1)] {
            let (mut peer, mut exchange) = (controller, Exchange::new());
            peer.on_start(&mut exchange, 40, cx);
            for _ in 0..retransmissions {
                peer.on_timeout(&mut exchange, cx);
            }
            let mut micros = 400_000;
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    micros = (micros + 1) & 0x7_FFFF;
                    let rtt = Span::from_micros(micros);
                    let sample = Sample::new(ReplyKind::Piggybacked, rtt, rtt, retransmissions);
                    peer.on_reply(black_box(&exchange), black_box(sample), black_box(cx));
                });
            });
        }
        group.finish();
    }
}

/// The calm server's, of a path on which answers wait in a queue and copies come.
fn server(criterion: &mut Criterion) {
    let (mut path, mut peer) = (CalmPath::new(), CalmPeer::new());
    let mut now = Instant::ORIGIN;
    peer.asked();
    path.pings(&mut peer, now);
    now = now.after(Span::from_millis(8_000));
    path.rejected(&mut peer, Voter::MIN, now);
    let mut group = criterion.benchmark_group("calm server");
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(300));
    group.bench_function("asked and answered", |bencher| {
        let (mut path, mut peer, mut now) = (path, peer, now);
        bencher.iter(|| {
            now = now.after(Span::from_millis(4_000));
            black_box(&mut peer).asked();
            black_box(&mut path).pings(black_box(&mut peer), now);
            black_box(&mut peer).answered(now);
        });
    });
    group.bench_function("asked_again", |bencher| {
        let (mut path, mut peer, mut now) = (path, peer, now);
        bencher.iter(|| {
            now = now.after(Span::from_micros(1));
            black_box(&mut path).asked_again(black_box(&mut peer), black_box(now))
        });
    });
    group.finish();
}

/// Bytes, which no clock can tell.
fn sizes(_: &mut Criterion) {
    println!("bytes for each peer: {}, whatever is inside", size_of::<AnyController>());
    for (family, size) in [
        ("rfc7252", size_of::<Rfc7252>()),
        ("cocoa", size_of::<Cocoa>()),
        ("fasor", size_of::<Fasor>()),
        ("linux-rto", size_of::<LinuxRto>()),
        ("peak-hopper", size_of::<PeakHopper>()),
        ("basic-rto", size_of::<BasicRto>()),
        ("coap-plus-rate", size_of::<CoapPlusRate>()),
        ("bbr-con", size_of::<BbrCon>()),
        ("tfrc-non", size_of::<TfrcNon>()),
        ("calm", size_of::<Calm>()),
    ] {
        println!("    with {family} alone: {size}");
    }
    println!("bytes for each exchange: {}", size_of::<Exchange>());
    let (peer, path) = (size_of::<CalmPeer>(), size_of::<CalmPath>());
    println!("bytes of a calm server for each peer: {peer}, for each path: {path}");
}

criterion_group!(benches, sizes, calls, server);
criterion_main!(benches);

//! Links that follow a trace, and what becomes of packets in flight when a link stops.

use std::sync::Arc;

use millpond_control::{ChanceSeed, Instant, Span};
use millpond_link::{Config, Delivered, InFlight, Jitter, Limit, Link, Order, Probability, Rate, Step, Trace};

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn link(config: &Config, trace: &Arc<Trace>, ahead: u64) -> Link<u64> {
    Link::new(config, ChanceSeed::new(1), 0).unwrap().follow(trace, ahead)
}

fn plain() -> Config {
    Config::plain(Rate::BitsPerSecond(8_000), Span::from_millis(100), Limit::Packets(1_000))
}

/// Number, arrival, lost, of all that comes out.
fn drain(link: &mut Link<u64>) -> Vec<(u64, u64, bool)> {
    let mut out = Vec::new();
    while let Some(now) = link.next() {
        while let Some(delivered) = link.deliver(now) {
            let (parcel, lost) = match delivered {
                Delivered::Arrived(parcel) => (parcel, false),
                Delivered::Lost(parcel) => (parcel, true),
                Delivered::Dropped(..) => panic!("no queue here manages itself"),
            };
            out.push((parcel.number, parcel.at.as_micros(), lost));
        }
    }
    link.check_conservation().unwrap();
    out
}

fn rates(steps: &[(u64, u64)], every: Option<u64>) -> Arc<Trace> {
    let step = |&(at, rate)| Step { at, rate: Some(rate), ..Step::default() };
    Arc::new(Trace::new(&steps.iter().map(step).collect::<Vec<_>>(), every).unwrap())
}

#[test]
fn a_constant_trace_is_the_constant_rate() {
    let trace = rates(&[(0, 8_000), (777, 8_000)], Some(12_345));
    let mut traced = link(&plain(), &trace, 99);
    let mut constant = Link::new(&plain(), ChanceSeed::new(1), 0).unwrap();
    for number in 0..500 {
        let now = at(number * number * 100);
        traced.offer(now, 100 + number as u32, number).unwrap();
        constant.offer(now, 100 + number as u32, number).unwrap();
        assert_eq!(traced.queued(now), constant.queued(now));
    }
    assert_eq!(drain(&mut traced), drain(&mut constant));
    let end = at(1_000_000_000);
    assert_eq!(traced.statistics(end), constant.statistics(end));
}

#[test]
fn a_packet_in_service_is_sent_on_at_the_rates_that_follow() {
    // 100 B: half of its bits at 8 kbit/s, nothing for a second, the rest at 4 kbit/s.
    let trace = rates(&[(0, 8_000), (50_000, 0), (1_050_000, 4_000)], None);
    let mut link = link(&plain(), &trace, 0);
    link.offer(at(0), 100, 0).unwrap();
    link.offer(at(10), 100, 1).unwrap();
    assert_eq!(drain(&mut link), [(0, 1_250_000, false), (1, 1_450_000, false)]);
    assert_eq!(link.statistics(at(2_000_000)).busy_micros, 1_350_000);
}

#[test]
fn unused_opportunities_are_gone_and_small_packets_share_one() {
    // 1504 B every 10 ms, all at once.
    let steps = [Step { rate: Some(0), ..Step::default() }, Step { at: 10_000, burst: 1_504, ..Step::default() }];
    let trace = Arc::new(Trace::new(&steps, Some(10_000)).unwrap());
    let mut link = link(&Config { propagation: Span::ZERO, ..plain() }, &trace, 0);
    for (number, len) in [700, 700, 700, 1_504].into_iter().enumerate() {
        link.offer(at(25_000), len, number as u64).unwrap();
    }
    // Two and 104 B of the third at 30 ms; its rest and 908 B of the fourth at 40 ms; the others at 50 ms.
    assert_eq!(drain(&mut link), [(0, 30_000, false), (1, 30_000, false), (2, 40_000, false), (3, 50_000, false)]);
}

#[test]
fn delay_and_loss_are_those_of_the_instant_at_which_the_packet_leaves() {
    let step =
        |at, delay, loss| Step { at, delay: Some(Span::from_millis(delay)), loss: Some(loss), ..Step::default() };
    let (never, always) = (Probability::ZERO, Probability::ONE);
    let steps = [step(0, 500, never), step(1_000_000, 20, never), step(2_000_000, 200, always)];
    let trace = Arc::new(Trace::new(&steps, Some(3_000_000)).unwrap());
    let config = Config { rate: Rate::Unlimited, ..plain() };
    let times = [0, 900_000, 1_100_000, 1_500_000, 2_500_000, 3_100_000];
    let run = |config: &Config| {
        let mut link = link(config, &trace, 0);
        for (number, time) in times.into_iter().enumerate() {
            link.offer(at(time), 100, number as u64).unwrap();
        }
        drain(&mut link)
    };
    // In order, what left with a shorter delay waits for what is before it. A lost packet is told of early.
    let in_order = [
        (0, 500_000, false),
        (1, 1_400_000, false),
        (2, 1_400_000, false),
        (3, 1_520_000, false),
        (4, 2_520_000, true),
        (5, 3_600_000, false),
    ];
    assert_eq!(run(&config), in_order);
    let jitter = Jitter::Uniform { from: Span::ZERO, to: Span::ZERO, order: Order::Free };
    let mut free = in_order;
    (free[1], free[2]) = ((2, 1_120_000, false), (1, 1_400_000, false));
    assert_eq!(run(&Config { jitter, ..config }), free);
}

#[test]
fn a_queue_behind_a_long_delay_is_announced_in_time() {
    // The first packet in the queue arrives after the second, and nobody looked at the link meanwhile.
    let step = |at, delay| Step { at, delay: Some(Span::from_millis(delay)), ..Step::default() };
    let trace = Arc::new(Trace::new(&[step(0, 5_000), step(150_000, 10)], None).unwrap());
    let jitter = Jitter::Uniform { from: Span::ZERO, to: Span::ZERO, order: Order::Free };
    let mut link = link(&Config { jitter, ..plain() }, &trace, 0);
    for number in 0..2 {
        link.offer(at(0), 100, number).unwrap();
    }
    assert_eq!(drain(&mut link), [(1, 210_000, false), (0, 5_100_000, false)]);
}

#[test]
fn where_the_trace_begins_is_the_owner_s_choice() {
    let trace = rates(&[(0, 8_000), (1_000_000, 80_000)], Some(2_000_000));
    for (ahead, arrives) in [(0, 200_000), (1_000_000, 110_000), (1_995_000, 5_000 + 50_000 + 100_000)] {
        let mut link = link(&plain(), &trace, ahead);
        link.offer(at(0), 100, 0).unwrap();
        assert_eq!(drain(&mut link), [(0, arrives, false)], "{ahead}");
    }
}

#[test]
fn another_rate_ends_the_trace_and_an_outage_only_interrupts_it() {
    let trace = rates(&[(0, 8_000), (1_000_000, 4_000)], None);
    let mut changed = link(&plain(), &trace, 0);
    changed.offer(at(0), 1_000, 0).unwrap();
    changed.set_rate(at(500_000), Rate::BitsPerSecond(1_000)).unwrap();
    assert_eq!(drain(&mut changed), [(0, 4_600_000, false)]);
    let mut paused = link(&plain(), &trace, 0);
    paused.offer(at(0), 1_000, 0).unwrap();
    paused.pause(at(500_000), InFlight::Kept);
    paused.resume(at(2_000_000));
    assert_eq!(drain(&mut paused), [(0, 3_100_000, false)]);
}

#[test]
fn an_outage_delays_keeps_or_loses_what_is_in_flight() {
    for order in [Order::Preserved, Order::Free] {
        let jitter = Jitter::Uniform { from: Span::ZERO, to: Span::ZERO, order };
        for (in_flight, first) in [
            (InFlight::Delayed, (0, 2_000_000, false)),
            (InFlight::Kept, (0, 200_000, false)),
            (InFlight::Lost, (0, 200_000, true)),
        ] {
            let mut link = Link::new(&Config { jitter, ..plain() }, ChanceSeed::new(1), 0).unwrap();
            for number in 0..2 {
                link.offer(at(0), 100, number).unwrap();
            }
            // The first is out and on its way, the second is half sent.
            link.pause(at(150_000), in_flight);
            let mut out = drain(&mut link);
            link.resume(at(2_000_000));
            out.append(&mut drain(&mut link));
            assert_eq!(out, [first, (1, 2_150_000, false)], "{in_flight:?}");
            let lost = u64::from(in_flight == InFlight::Lost);
            assert_eq!((link.counters().lost.packets, link.counters().delivered.packets), (lost, 2 - lost));
        }
    }
}

#[test]
fn a_million_steps_are_a_look_up() {
    let mut state = 7_u64;
    let mut rate = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 44
    };
    let steps: Vec<(u64, u64)> = (0..1_000_000).map(|step| (step * 1_000, rate())).collect();
    let trace = rates(&steps, Some(1_000_000_000));
    // The first packet takes all of one round and the second of a hundred more.
    let bits: u64 = steps.iter().map(|(_, rate)| rate / 1_000).sum();
    let len = u32::try_from(bits / 8).unwrap();
    let mut link = link(&Config { propagation: Span::ZERO, ..plain() }, &trace, 0);
    link.offer(at(0), len, 0).unwrap();
    for number in 1..=100 {
        link.offer(at(0), len, number).unwrap();
    }
    let out = drain(&mut link);
    assert!(out[0].1 > 990_000_000 && out[0].1 <= 1_000_000_000, "{:?}", out[0]);
    assert!(out[100].1 > 100 * 990_000_000 && out[100].1 <= 101 * 1_000_000_000);
}

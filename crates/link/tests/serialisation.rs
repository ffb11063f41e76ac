//! The rate stage and the queue, seen from outside.

use millpond_control::{ChanceSeed, Instant, Span};
use millpond_link::{Config, Delivered, DropReason, Limit, Link, Occupancy, Rate};

const DOWNLINK: Rate = Rate::BitsPerSecond(30_000);

fn link<P>(config: Config) -> Link<P> {
    Link::new(&config, ChanceSeed::new(1), 0).unwrap()
}

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// Everything that arrives from now on: payload and instant (µs).
fn drain<P>(link: &mut Link<P>) -> Vec<(P, u64)> {
    let mut arrived = Vec::new();
    while let Some(now) = link.next() {
        match link.deliver(now) {
            Some(Delivered::Arrived(parcel)) => arrived.push((parcel.payload, parcel.at.as_micros())),
            Some(Delivered::Lost(parcel) | Delivered::Dropped(parcel, _)) => {
                panic!("packet {} lost on a link without losses", parcel.number)
            }
            None => panic!("a plain link is never woken in vain"),
        }
    }
    arrived
}

/// `count · bytes · 8 / rate` seconds, rounded up to a microsecond, without floats.
fn exact(count: u64, bytes: u64, rate: u64) -> u64 {
    (count * bytes * 8_000_000).div_ceil(rate)
}

#[test]
fn a_busy_period_of_96000_packets_ends_where_exact_arithmetic_ends_it() {
    // 94 B at 30 kbit/s take 25066.67 µs. Rounding each would be off by 32 ms in the end.
    let mut link = link(Config::plain(DOWNLINK, Span::ZERO, Limit::Packets(96_000)));
    for number in 0..96_000_u64 {
        link.offer(Instant::ORIGIN, 94, number).unwrap();
    }
    let arrived = drain(&mut link);
    assert_eq!(arrived.len(), 96_000);
    for (number, at) in &arrived {
        assert_eq!(*at, exact(number + 1, 94, 30_000));
    }
    assert_eq!(arrived.last().unwrap().1, 2_406_400_000);
    let seen = link.statistics(at(2_406_400_000));
    assert_eq!((seen.busy_micros, seen.observed_micros), (2_406_400_000, 2_406_400_000));
}

#[test]
fn a_queue_that_never_empties_does_not_drift_either() {
    // Packets come one by one, each while the one before is being sent.
    let mut link = link(Config::plain(DOWNLINK, Span::from_millis(415), Limit::Packets(4)));
    let mut arrived = Vec::new();
    for number in 0..96_000_u64 {
        let now = at(number * 25_066);
        while let Some(Delivered::Arrived(parcel)) = link.deliver(now) {
            arrived.push((parcel.payload, parcel.at.as_micros()));
        }
        // The sender gains 2/3 µs a packet: 64 ms in all, less than three packets.
        link.offer(now, 94, number).unwrap();
    }
    arrived.extend(drain(&mut link));
    for (number, at) in &arrived {
        assert_eq!(*at, exact(number + 1, 94, 30_000) + 415_000);
    }
    assert_eq!(arrived.len(), 96_000);
}

#[test]
fn one_exchange_of_the_nbiot_path_takes_what_the_study_measured() {
    // Request 38 B up, response 94 B down, 15 ms of Internet each way: 660.13 ms; 50 of them: 33.007 s.
    let uplink = Config::plain(Rate::BitsPerSecond(60_000), Span::from_millis(215), Limit::Bytes(2_500));
    let downlink = Config::plain(DOWNLINK, Span::from_millis(415), Limit::Bytes(2_500));
    let (mut up, mut down) = (link(uplink), link(downlink));
    let mut now = Instant::ORIGIN;
    for _ in 0..50 {
        up.offer(now, 38, ()).unwrap();
        now = at(drain(&mut up)[0].1);
        down.offer(now, 94, ()).unwrap();
        now = at(drain(&mut down)[0].1);
    }
    // Each link rounds a departure up to a microsecond: at most 2 µs per exchange above 33 006.667 ms.
    assert!((33_006_667..=33_006_767).contains(&now.as_micros()), "{now:?}");
}

#[test]
fn the_packet_in_service_counts_against_the_limit() {
    for (limit, packets_94, packets_296) in
        [(2_500, 26, 8), (14_100, 150, 47), (28_200, 300, 95), (1_410_000, 15_000, 4_763)]
    {
        for (len, capacity) in [(94, packets_94), (296, packets_296)] {
            let mut link = link(Config::plain(DOWNLINK, Span::ZERO, Limit::Bytes(limit)));
            let taken = (0..20_000).take_while(|_| link.offer(Instant::ORIGIN, len, ()).is_ok()).count() as u64;
            assert_eq!(taken, capacity, "{limit} B of {len} B");
            let held = link.queued(Instant::ORIGIN);
            assert_eq!(held, Occupancy { bytes: capacity * u64::from(len), packets: capacity });
            // One microsecond before the first is out there is no room, and then there is.
            let out = exact(1, u64::from(len), 30_000);
            assert_eq!(link.offer(at(out - 1), len, ()), Err((DropReason::QueueFull, ())));
            assert_eq!(link.offer(at(out), len, ()), Ok(()));
        }
    }
}

#[test]
fn a_queue_of_packets_does_not_look_at_their_length() {
    let mut link = link(Config::plain(DOWNLINK, Span::ZERO, Limit::Packets(3)));
    for len in [1_500, 1, 60_000] {
        assert_eq!(link.offer(Instant::ORIGIN, len, len), Ok(()));
    }
    assert_eq!(link.offer(Instant::ORIGIN, 1, 7), Err((DropReason::QueueFull, 7)));
}

#[test]
fn the_tail_is_dropped_and_handed_back() {
    // 300 B: three of 94 fit, the fourth and fifth do not, a shorter one after them still does.
    let mut link = link(Config::plain(DOWNLINK, Span::ZERO, Limit::Bytes(300)));
    let offers: Vec<_> =
        [94, 94, 94, 94, 301, 18, 1].iter().zip('a'..).map(|(&len, name)| link.offer(at(5), len, name)).collect();
    let full = DropReason::QueueFull;
    let expected =
        [Ok(()), Ok(()), Ok(()), Err((full, 'd')), Err((DropReason::TooLarge, 'e')), Ok(()), Err((full, 'g'))];
    assert_eq!(offers, expected);
    link.check_conservation().unwrap();
    let names: String = drain(&mut link).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, "abcf");
    let counters = *link.counters();
    assert_eq!((counters.dropped_full.packets, counters.dropped_full.bytes), (2, 95));
    assert_eq!((counters.dropped_too_large.packets, counters.dropped_too_large.bytes), (1, 301));
    assert_eq!(counters.dropped_by_queue().bytes, 396);
    assert_eq!((counters.delivered, counters.carried), (counters.carried, counters.delivered));
    link.check_conservation().unwrap();
}

#[test]
fn overhead_is_charged_by_the_rate_and_by_the_queue_only_when_asked() {
    let plain = Config::plain(DOWNLINK, Span::ZERO, Limit::Bytes(188));
    let run = |overhead, overhead_in_queue| {
        let mut link = link(Config { overhead, overhead_in_queue, ..plain });
        let taken = (0..10).filter(|_| link.offer(Instant::ORIGIN, 94, ()).is_ok()).count();
        link.check_conservation().unwrap();
        (taken, drain(&mut link)[0].1, link.counters().delivered.bytes)
    };
    assert_eq!(run(0, false), (2, exact(1, 94, 30_000), 188));
    assert_eq!(run(14, false), (2, exact(1, 108, 30_000), 188));
    assert_eq!(run(14, true), (1, exact(1, 108, 30_000), 94));
    assert_eq!(run(-14, false), (2, exact(1, 80, 30_000), 188));
    assert_eq!(run(-14, true), (2, exact(1, 80, 30_000), 188));
    // Charged for nothing at all, packets do not wait.
    assert_eq!(run(-94, false), (10, 0, 940));
    assert_eq!(run(i32::MIN, true), (10, 0, 940));
}

#[test]
fn without_a_rate_nothing_waits() {
    let mut link = link(Config::plain(Rate::Unlimited, Span::from_millis(10), Limit::Packets(1)));
    for number in 0..100 {
        link.offer(at(number / 10), 1_500, number).unwrap();
        assert_eq!(link.queued(at(number / 10)), Occupancy::default());
    }
    let arrived = drain(&mut link);
    assert!(arrived.iter().enumerate().all(|(n, &(number, at))| n as u64 == number && at == number / 10 + 10_000));
    assert_eq!(arrived.len(), 100);
    let seen = link.statistics(at(1_000_000));
    assert_eq!((seen.busy_micros, seen.bytes.max, seen.packets.max), (0, 0, 0));
}

#[test]
fn a_change_of_rate_moves_what_waits() {
    let mut link = link(Config::plain(Rate::BitsPerSecond(8_000), Span::ZERO, Limit::Packets(10)));
    for number in 0..4 {
        link.offer(Instant::ORIGIN, 1_000, number).unwrap();
    }
    // One second a packet. At 0.5 s the rate doubles: half a packet is left, then half a second each.
    link.set_rate(at(500_000), Rate::BitsPerSecond(16_000)).unwrap();
    assert_eq!(link.next(), Some(at(750_000)));
    assert!(link.set_rate(at(600_000), Rate::BitsPerSecond(0)).is_err());
    assert_eq!(link.deliver(at(750_000)).map(|_| link.queued(at(750_000)).packets), Some(3));
    assert_eq!(link.next(), Some(at(1_250_000)));
    link.set_rate(at(1_000_000), Rate::Unlimited).unwrap();
    assert_eq!(link.queued(at(1_000_000)).packets, 0);
    assert_eq!(drain(&mut link), [(1, 1_000_000), (2, 1_000_000), (3, 1_000_000)]);
    assert_eq!(link.statistics(at(2_000_000)).busy_micros, 1_000_000);
    link.check_conservation().unwrap();
}

#[test]
fn statistics_can_leave_out_the_warm_up() {
    let mut link = link(Config::plain(Rate::BitsPerSecond(8_000), Span::ZERO, Limit::Packets(10)));
    // One second a packet: three, two, one inside, then a second of silence.
    (0..3).for_each(|number| link.offer(Instant::ORIGIN, 1_000, number).unwrap());
    link.restart_statistics(at(2_000_000));
    let seen = link.statistics(at(4_000_000));
    assert_eq!((seen.observed_micros, seen.busy_micros), (2_000_000, 1_000_000));
    assert_eq!((seen.packets.max, seen.packets.mean, seen.bytes.mean), (1, 0.5, 500.0));
    assert_eq!(link.counters().carried.packets, 3);
}

#[test]
fn time_that_goes_back_counts_as_the_latest_seen() {
    let mut link = link(Config::plain(DOWNLINK, Span::ZERO, Limit::Packets(10)));
    link.offer(at(1_000_000), 94, 0).unwrap();
    link.offer(at(5), 94, 1).unwrap();
    assert!(link.deliver(at(3)).is_none());
    assert_eq!(drain(&mut link), [(0, 1_025_067), (1, 1_050_134)]);
    link.queued(at(2_000_000));
    link.offer(at(1_500_000), 94, 2).unwrap();
    assert_eq!(drain(&mut link), [(2, 2_025_067)]);
}

#[test]
fn the_end_of_time_is_never_not_a_wrap() {
    let mut link = link(Config::plain(Rate::BitsPerSecond(1), Span::MAX, Limit::Bytes(u64::MAX)));
    for number in 0..2_000 {
        link.offer(at(u64::MAX - 10), u32::MAX, number).unwrap();
    }
    assert_eq!(link.next(), Some(Instant::NEVER));
    link.set_rate(at(u64::MAX - 5), Rate::BitsPerSecond(2)).unwrap();
    link.check_conservation().unwrap();
    assert_eq!(drain(&mut link).len(), 2_000);
}

#[test]
fn memory_is_that_of_the_packets_inside() {
    let mut link: Link<u32> = link(Config::plain(DOWNLINK, Span::ZERO, Limit::Packets(1_000)));
    let empty = link.memory();
    assert!(empty < 1_024, "{empty}");
    let mut turn = |round: u64| {
        let now = at(round * 100_000_000);
        (0..1_000).for_each(|number| link.offer(now, 94, number).unwrap());
        drain(&mut link);
        link.memory()
    };
    let filled = turn(0);
    assert!((1..20).all(|round| turn(round) == filled), "a link in its steady state does not grow");
    // Doubling may leave half of the room unused; two stages; the histograms of the statistics.
    let bound = empty + 1_024 * 2 * 2 * Link::<u32>::BYTES_PER_PACKET + 40_000;
    assert!(filled <= bound, "{filled} of {bound}");
}

//! Losses seen from outside: where they are decided, what they cost, and whose random numbers they are.

use millpond_control::{ChanceSeed, Instant, Span};
use millpond_link::{Config, Delivered, DropReason, Jitter, Limit, Link, Loss, LossAt, Order, Probability, Rate};

const STEP: u64 = 30_000;

fn probability(value: f64) -> Probability {
    Probability::from_f64(value).unwrap()
}

/// A packet of 94 B takes 25 ms.
fn config(loss: Loss, loss_at: LossAt) -> Config {
    let plain = Config::plain(Rate::BitsPerSecond(30_080), Span::from_millis(415), Limit::Bytes(28_200));
    Config { loss, loss_at, ..plain }
}

fn kinds() -> [Loss; 4] {
    [
        Loss::Bernoulli { rate: probability(0.176) },
        Loss::Markov {
            good_loss: probability(0.02),
            bad_loss: probability(0.8),
            good_dwell: Span::from_millis(400),
            bad_dwell: Span::from_millis(100),
        },
        Loss::GilbertElliott {
            p: probability(0.2),
            r: probability(0.8),
            one_minus_h: probability(0.8),
            one_minus_k: probability(0.02),
        },
        Loss::GilbertElliott {
            p: probability(0.05),
            r: probability(0.2),
            one_minus_h: probability(0.8),
            one_minus_k: probability(0.02),
        },
    ]
}

/// Offers `count` packets, one every 30 ms, and returns which were lost, with the link and the instant of the end.
fn run(config: Config, seed: u64, link: u32, count: u64) -> (Vec<bool>, Link<u64>, Instant) {
    let mut link = Link::new(&config, ChanceSeed::new(seed), link).unwrap();
    let mut lost = vec![true; count as usize];
    let mut arrive = |link: &mut Link<u64>, now| {
        while let Some(delivered) = link.deliver(now) {
            if let Delivered::Arrived(parcel) = delivered {
                lost[parcel.payload as usize] = false;
            }
        }
    };
    for number in 0..count {
        let now = Instant::from_micros(number * STEP);
        arrive(&mut link, now);
        let offered = link.offer(now, 94, number);
        assert!(matches!(offered, Ok(()) | Err((DropReason::Radio, _))), "the queue has room");
    }
    let mut end = Instant::ORIGIN;
    for wake_up in 0.. {
        let Some(now) = link.next() else { break };
        arrive(&mut link, now);
        end = now;
        assert!(wake_up < 2 * count, "at most one wake-up in vain for each packet");
    }
    link.check_conservation().unwrap();
    (lost, link, end)
}

#[test]
fn every_kind_has_its_mean_at_either_place() {
    let n = 200_000_u64;
    for loss_at in [LossAt::AfterRate, LossAt::BeforeRate] {
        for loss in kinds() {
            let (lost, link, _) = run(config(loss, loss_at), 1, 0, n);
            let share = lost.iter().filter(|&&lost| lost).count() as f64 / n as f64;
            // The longest memory has a correlation of 0.75 a packet: a variance up to seven times that of independent
            // losses. Four standard errors of that.
            let bound = 4.0 * (7.0 * 0.176 * 0.824 / n as f64).sqrt();
            assert!((share - 0.176).abs() < bound, "{loss:?} {loss_at:?}: {share} ± {bound}");
            assert_eq!(link.counters().lost.packets as usize, lost.iter().filter(|&&lost| lost).count());
        }
    }
}

#[test]
fn a_packet_lost_after_the_rate_stage_has_used_queue_and_link() {
    let n = 1_000;
    let certain = Loss::Bernoulli { rate: Probability::ONE };
    let (lost, mut link, end) = run(config(certain, LossAt::AfterRate), 1, 0, n);
    assert!(lost.iter().all(|&lost| lost));
    assert_eq!(end.as_micros(), (n - 1) * STEP + 25_000 + 415_000);
    let seen = link.statistics(end);
    assert_eq!((seen.busy_micros, seen.packets.max), (n * 25_000, 1));
    assert_eq!((link.counters().carried.packets, link.counters().lost.packets), (n, n));
}

#[test]
fn a_packet_lost_before_the_rate_stage_uses_nothing() {
    let certain = Loss::Bernoulli { rate: Probability::ONE };
    let mut link = Link::new(&config(certain, LossAt::BeforeRate), ChanceSeed::new(1), 0).unwrap();
    for number in 0..1_000 {
        assert_eq!(link.offer(Instant::ORIGIN, 94, number), Err((DropReason::Radio, number)));
    }
    assert_eq!(link.next(), None);
    let seen = link.statistics(Instant::from_micros(1_000_000));
    assert_eq!((seen.busy_micros, seen.packets.max), (0, 0));
    let counters = link.counters();
    assert_eq!((counters.lost.packets, counters.carried.packets, counters.dropped_by_queue().packets), (1_000, 0, 0));
    link.check_conservation().unwrap();
}

#[test]
fn what_is_lost_before_a_full_queue_is_a_radio_loss() {
    let half = Loss::Bernoulli { rate: probability(0.5) };
    let small = Config { queue: Limit::Packets(10), ..config(half, LossAt::BeforeRate) };
    let mut link = Link::new(&small, ChanceSeed::new(1), 0).unwrap();
    for _ in 0..10_000 {
        let _ = link.offer(Instant::ORIGIN, 94, ());
    }
    let counters = *link.counters();
    assert!((4_800..5_200).contains(&counters.lost.packets), "{counters:?}");
    assert_eq!(counters.dropped_full.packets, 10_000 - 10 - counters.lost.packets);
    link.check_conservation().unwrap();
}

#[test]
fn the_same_packet_is_lost_on_either_side_of_the_rate_stage() {
    for loss in [kinds()[0], kinds()[2]] {
        let (before, ..) = run(config(loss, LossAt::BeforeRate), 3, 1, 5_000);
        let (after, ..) = run(config(loss, LossAt::AfterRate), 3, 1, 5_000);
        assert_eq!(before, after);
    }
}

#[test]
fn traffic_on_another_link_changes_nothing_here() {
    for loss in kinds() {
        let config = config(loss, LossAt::AfterRate);
        let alone = run(config, 9, 1, 5_000).0;
        // The same again, with a neighbour that carries far more.
        let mut here = Link::new(&config, ChanceSeed::new(9), 1).unwrap();
        let mut there = Link::new(&config, ChanceSeed::new(9), 2).unwrap();
        let mut lost = vec![true; 5_000];
        for number in 0..5_000_u64 {
            let now = Instant::from_micros(number * STEP);
            for _ in 0..number % 7 {
                let _ = there.offer(now, 94, number);
            }
            here.offer(now, 94, number).unwrap();
            while let Some(delivered) = here.deliver(now) {
                if let Delivered::Arrived(parcel) = delivered {
                    lost[parcel.payload as usize] = false;
                }
            }
            while there.deliver(now).is_some() {}
        }
        let judged = 4_900;
        assert_eq!(lost[..judged], alone[..judged], "{loss:?}");
        // And the neighbour's random stream is its own.
        assert_ne!(run(config, 9, 2, 5_000).0, alone, "{loss:?}");
    }
}

#[test]
fn independent_losses_follow_the_number_of_the_packet_and_not_its_moment_or_length() {
    let config = config(kinds()[0], LossAt::AfterRate);
    let fates = |gap: u64, len: u32| -> Vec<u64> {
        let mut link = Link::new(&config, ChanceSeed::new(4), 6).unwrap();
        (0..200).for_each(|n| link.offer(Instant::from_micros(n * gap), len, n).unwrap());
        let all = std::iter::from_fn(|| link.next().and_then(|now| link.deliver(now)));
        all.filter_map(|delivered| match delivered {
            Delivered::Arrived(parcel) => Some(parcel.number),
            Delivered::Lost(_) | Delivered::Dropped(..) => None,
        })
        .collect()
    };
    assert_eq!(fates(0, 94), fates(33_333, 120));
}

#[test]
fn a_dropped_packet_does_not_shift_the_draws_of_those_behind_it() {
    let loss = Loss::Bernoulli { rate: probability(0.5) };
    let arrived = |limit| -> Vec<u64> {
        let mut link =
            Link::new(&Config { queue: limit, ..config(loss, LossAt::AfterRate) }, ChanceSeed::new(4), 6).unwrap();
        // Bursts of three; the small queue drops the third of each.
        for n in 0..300 {
            let _ = link.offer(Instant::from_micros(n / 3 * 1_000_000), 94, n);
        }
        let all = std::iter::from_fn(|| link.next().and_then(|now| link.deliver(now)));
        all.filter_map(|delivered| match delivered {
            Delivered::Arrived(parcel) => Some(parcel.number),
            Delivered::Lost(_) | Delivered::Dropped(..) => None,
        })
        .collect()
    };
    let roomy: Vec<u64> = arrived(Limit::Packets(100)).into_iter().filter(|n| n % 3 != 2).collect();
    assert_eq!(arrived(Limit::Packets(2)), roomy);
}

#[test]
fn how_often_a_link_is_looked_at_changes_nothing() {
    for loss in kinds() {
        let jitter = Jitter::Uniform { from: Span::ZERO, to: Span::from_millis(50), order: Order::Free };
        let config = Config { jitter, ..config(loss, LossAt::AfterRate) };
        let run = |often: bool| -> Vec<_> {
            let mut link = Link::new(&config, ChanceSeed::new(6), 0).unwrap();
            (0..300).for_each(|number| link.offer(Instant::ORIGIN, 94, number).unwrap());
            if often {
                (0..8_000).for_each(|milli| {
                    link.queued(Instant::from_micros(milli * 1_000));
                });
            }
            std::iter::from_fn(|| link.deliver(Instant::from_micros(10_000_000))).collect()
        };
        assert_eq!(run(true), run(false), "{loss:?}");
        assert_eq!(run(true).len(), 300);
    }
}

#[test]
fn the_process_in_time_is_looked_at_when_the_packet_leaves() {
    // A burst offered at one instant leaves over 7.5 s: after the rate stage its packets see the process change, before
    // it they all see the same state.
    let loss = Loss::Markov {
        good_loss: Probability::ZERO,
        bad_loss: Probability::ONE,
        good_dwell: Span::from_millis(500),
        bad_dwell: Span::from_millis(500),
    };
    let burst = |loss_at| {
        let mut link = Link::new(&config(loss, loss_at), ChanceSeed::new(2), 0).unwrap();
        for n in 0..300 {
            let _ = link.offer(Instant::ORIGIN, 94, n);
        }
        while let Some(now) = link.next() {
            link.deliver(now);
        }
        link.counters().lost.packets
    };
    assert!((50..250).contains(&burst(LossAt::AfterRate)));
    assert!([0, 300].contains(&burst(LossAt::BeforeRate)));
}

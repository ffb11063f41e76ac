//! Random sequences of calls against a model that recomputes everything from the list of offers.

use millpond_control::{ChanceSeed, Instant, Span};
use millpond_link::{
    Aqm, CoDelRules, Config, Counted, Counters, Delivered, DropReason, FqCoDelRules, InFlight, Jitter, Level, Limit,
    Link, Loss, LossAt, Occupancy, Order, PieRules, Probability, Rate, Statistics,
};
use proptest::prelude::*;

/// One call.
#[derive(Clone, Copy, Debug)]
enum Step {
    Offer(u32),
    /// Take one packet, if one is due.
    Deliver,
    /// Take all that is due.
    Drain,
    Look,
    SetRate(u64),
    /// Lose each packet by itself, so many in a thousand.
    SetLoss(u32),
    Pause(InFlight),
    Resume,
    /// Sleep until the link asks for attention.
    Sleep,
}

fn steps(with_changes: bool) -> impl Strategy<Value = Vec<(u64, Step)>> {
    let gap = prop_oneof![3 => Just(0_u64), 3 => 0..3_000_u64, 1 => 0..200_000_u64];
    let len = prop_oneof![Just(94_u32), Just(38), 0..2_000_u32];
    let rate = if with_changes { 1 } else { 0 };
    let in_flight = prop_oneof![Just(InFlight::Delayed), Just(InFlight::Kept), Just(InFlight::Lost)];
    let step = prop_oneof![
        8 => len.prop_map(Step::Offer),
        2 => Just(Step::Deliver),
        2 => Just(Step::Drain),
        1 => Just(Step::Look),
        rate => (1_000..5_000_000_u64).prop_map(Step::SetRate),
        rate => (0..=1_000_u32).prop_map(Step::SetLoss),
        rate => in_flight.prop_map(Step::Pause),
        rate => Just(Step::Resume),
        2 => Just(Step::Sleep),
    ];
    prop::collection::vec((gap, step), 1..200)
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![(1..20_000_u64).prop_map(Limit::Bytes), (1..40_u64).prop_map(Limit::Packets)]
}

fn probability() -> impl Strategy<Value = Probability> {
    (0..=1_000_000_u32).prop_map(|millionths| Probability::from_millionths(millionths).unwrap())
}

fn span() -> impl Strategy<Value = Span> {
    (0..300_000_u32).prop_map(Span::from_micros)
}

fn plain() -> impl Strategy<Value = Config> {
    let counts = prop_oneof![Just(Counted::Waiting), Just(Counted::All)];
    ((1_000..5_000_000_u64), span(), limit(), counts, -20..40_i32, any::<bool>()).prop_map(
        |(rate, propagation, queue, queue_counts, overhead, overhead_in_queue)| Config {
            queue_counts,
            overhead,
            overhead_in_queue,
            ..Config::plain(Rate::BitsPerSecond(rate), propagation, queue)
        },
    )
}

fn any_config() -> impl Strategy<Value = Config> {
    let order = prop_oneof![Just(Order::Preserved), Just(Order::Free)];
    let jitter = prop_oneof![
        Just(Jitter::None),
        (span(), span(), order).prop_map(|(a, b, order)| Jitter::Uniform { from: a.min(b), to: a.max(b), order }),
    ];
    let dwell = || (1_000..2_000_000_u32).prop_map(Span::from_micros);
    let loss = prop_oneof![
        Just(Loss::None),
        probability().prop_map(|rate| Loss::Bernoulli { rate }),
        (probability(), probability(), dwell(), dwell()).prop_map(|(good_loss, bad_loss, good_dwell, bad_dwell)| {
            Loss::Markov { good_loss, bad_loss, good_dwell, bad_dwell }
        }),
        (probability(), probability(), probability(), probability())
            .prop_map(|(p, r, one_minus_h, one_minus_k)| Loss::GilbertElliott { p, r, one_minus_h, one_minus_k }),
    ];
    let loss_at = prop_oneof![Just(LossAt::AfterRate), Just(LossAt::BeforeRate)];
    let codel = (1..40_u32, 1..400_u32, 0..2_000_u32).prop_map(|(target, interval, max_packet)| CoDelRules {
        target: Span::from_millis(target),
        interval: Span::from_millis(interval),
        max_packet,
    });
    let aqm = prop_oneof![
        3 => Just(Aqm::None),
        1 => codel.clone().prop_map(Aqm::CoDel),
        1 => (codel, 1..4_u16, 1..2_000_u32)
            .prop_map(|(codel, flows, quantum)| Aqm::FqCoDel(FqCoDelRules { codel, flows, quantum })),
        1 => (1..40_u32, 0..200_u32).prop_map(|(target, max_packet)| Aqm::Pie(PieRules {
            target: Span::from_millis(target),
            max_packet,
            ..PieRules::RFC8033
        })),
    ];
    let config = (plain(), prop::bool::weighted(0.1), jitter, loss, loss_at, aqm);
    config.prop_map(|(plain, unlimited, jitter, loss, loss_at, aqm)| {
        let rate = if unlimited { Rate::Unlimited } else { plain.rate };
        Config { rate, jitter, loss, loss_at, aqm, ..plain }
    })
}

/// Everything that can be seen of a run.
#[derive(Debug, PartialEq)]
struct Record {
    offers: Vec<(u64, u32, Result<(), DropReason>)>,
    /// Number, arrival (µs), lost.
    out: Vec<(u64, u64, bool)>,
    looks: Vec<(u64, Occupancy)>,
    statistics: Statistics,
    counters: Counters,
    end: u64,
}

/// Runs the calls, then drains the link; checks on the way whatever must hold of any link.
fn run(config: &Config, seed: u64, steps: &[(u64, Step)]) -> Record {
    let mut link = Link::new(config, ChanceSeed::new(seed), 11).unwrap();
    let (mut offers, mut out, mut looks) = (Vec::new(), Vec::new(), Vec::new());
    let mut inside = 0_u64;
    let mut now = 0;
    let (mut is_paused, mut is_halted) = (false, false);
    let mut take = |link: &mut Link<u64>, now: u64, inside: &mut u64| {
        let promised = link.next();
        let delivered = link.deliver(Instant::from_micros(now));
        let (parcel, lost) = match delivered? {
            Delivered::Arrived(parcel) => (parcel, false),
            Delivered::Lost(parcel) => (parcel, true),
            // It is told of at the instant of the drop.
            Delivered::Dropped(parcel, reason) => {
                assert!(config.aqm != Aqm::None && reason != DropReason::Radio);
                *inside -= 1;
                out.push((parcel.number, parcel.at.as_micros(), true));
                return Some(());
            }
        };
        assert!(promised.is_some_and(|promised| promised <= parcel.at), "never due before it was announced");
        assert!(parcel.at.as_micros() <= now && parcel.left <= parcel.at);
        assert_eq!(parcel.number, parcel.payload);
        *inside -= 1;
        out.push((parcel.number, parcel.at.as_micros(), lost));
        Some(())
    };
    for &(gap, step) in steps {
        now += gap;
        let at = Instant::from_micros(now);
        match step {
            Step::Offer(len) => {
                let number = offers.len() as u64;
                let offered = link.offer(at, len, number);
                assert!(offered.is_ok_and(|()| true) || offered == Err((offered.unwrap_err().0, number)));
                inside += u64::from(offered.is_ok());
                offers.push((now, len, offered.map_err(|(why, _)| why)));
            }
            Step::Deliver => drop(take(&mut link, now, &mut inside)),
            Step::Drain => while take(&mut link, now, &mut inside).is_some() {},
            Step::Look => looks.push((now, link.queued(at))),
            Step::SetRate(rate) => link.set_rate(at, Rate::BitsPerSecond(rate)).unwrap(),
            Step::SetLoss(thousandths) => {
                let rate = Probability::from_millionths(thousandths * 1_000).unwrap();
                link.set_loss(at, Loss::Bernoulli { rate }).unwrap();
            }
            Step::Pause(in_flight) => {
                link.pause(at, in_flight);
                is_halted |= !is_paused && in_flight == InFlight::Delayed;
                is_paused = true;
                assert!(!is_halted || config.aqm != Aqm::None || link.next().is_none());
            }
            Step::Resume => {
                link.resume(at);
                (is_paused, is_halted) = (false, false);
            }
            Step::Sleep => now = now.max(link.next().map_or(0, Instant::as_micros)),
        }
        link.check_conservation().unwrap();
        let counters = link.counters();
        let gone = counters.dropped_by_queue().plus(counters.lost).plus(counters.delivered);
        // What a queue dropped is gone, and inside until it is fetched.
        let is_gone = counters.offered.packets - gone.packets;
        assert!(is_gone == inside || (is_gone < inside && config.aqm != Aqm::None));
    }
    link.resume(Instant::from_micros(now));
    let mut wake_ups = 0;
    // A queue that manages itself is looked at whenever a packet leaves it.
    let bound = if config.aqm == Aqm::None { 2 * inside } else { 3 * inside };
    while let Some(next) = link.next() {
        now = now.max(next.as_micros());
        take(&mut link, now, &mut inside);
        wake_ups += 1;
        assert!(wake_ups <= bound, "at most one wake-up in vain for each packet");
    }
    link.check_conservation().unwrap();
    assert_eq!(inside, 0);
    now += 1_000;
    let statistics = link.statistics(Instant::from_micros(now));
    Record { offers, out, looks, statistics, counters: *link.counters(), end: now }
}

fn charged(config: &Config, len: u32) -> u64 {
    (i64::from(len) + i64::from(config.overhead)).max(0) as u64
}

/// What one packet counts for in the queue.
fn room(config: &Config, len: u32) -> u64 {
    if config.overhead_in_queue { charged(config, len) } else { u64::from(len) }
}

/// Accepted packets of a link without randomness: arrival, departure (µs, rounded up), room, departure in parts of the rate.
type Accepted = (u64, u64, u64, u128);

/// The model: every offer looks at the whole list before it.
fn predict(config: &Config, record: &Record) -> Vec<(u64, Accepted)> {
    let Rate::BitsPerSecond(rate) = config.rate else { panic!("the model has a rate") };
    let mut accepted: Vec<(u64, Accepted)> = Vec::new();
    for (number, &(now, len, result)) in record.offers.iter().enumerate() {
        let further = if config.queue_counts == Counted::All { config.propagation.as_micros() } else { 0 };
        let waiting = || accepted.iter().filter(|packet| packet.1.1 + u64::from(further) > now);
        let room = room(config, len);
        let expected = match config.queue {
            Limit::Bytes(limit) if room > limit => Err(DropReason::TooLarge),
            Limit::Bytes(limit) if waiting().map(|packet| packet.1.2).sum::<u64>() + room > limit => {
                Err(DropReason::QueueFull)
            }
            Limit::Packets(limit) if waiting().count() as u64 >= limit => Err(DropReason::QueueFull),
            Limit::Bytes(_) | Limit::Packets(_) => Ok(()),
        };
        assert_eq!(result, expected, "packet {number}");
        if result.is_ok() {
            let free = accepted.last().map_or(0, |packet| packet.1.3);
            let work = u128::from(charged(config, len)) * 8_000_000;
            let out = free.max(u128::from(now) * u128::from(rate)) + work;
            accepted.push((number as u64, (now, out.div_ceil(u128::from(rate)) as u64, room, out)));
        }
    }
    accepted
}

fn occupancy(accepted: &[(u64, Accepted)], at: u64) -> Occupancy {
    let inside = accepted.iter().filter(|(_, packet)| packet.0 <= at && at < packet.1);
    inside.fold(Occupancy::default(), |sum, (_, packet)| Occupancy {
        bytes: sum.bytes + packet.2,
        packets: sum.packets + 1,
    })
}

/// Time-weighted statistics from the occupancy in each stretch between two changes.
fn brute_force(stretches: &[(u64, u64)], end: u64) -> Level {
    let sum: u128 = stretches.iter().map(|&(time, level)| u128::from(time) * u128::from(level)).sum();
    let mut sorted: Vec<(u64, u64)> = stretches.iter().map(|&(time, level)| (level, time)).collect();
    sorted.sort_unstable();
    let mut passed = 0_u128;
    let reached = sorted.iter().find(|&&(_, time)| {
        passed += u128::from(time);
        passed * 20 >= u128::from(end) * 19
    });
    let max = sorted.last().map_or(0, |&(level, _)| level);
    Level { mean: sum as f64 / end as f64, p95: reached.map_or(0, |&(level, _)| level), max }
}

proptest! {
    #[test]
    fn a_link_without_chance_does_what_the_model_says(config in plain(), steps in steps(false)) {
        let record = run(&config, 1, &steps);
        let accepted = predict(&config, &record);
        let propagation = u64::from(config.propagation.as_micros());
        let out: Vec<_> = accepted.iter().map(|&(number, packet)| (number, packet.1 + propagation, false)).collect();
        prop_assert_eq!(&record.out, &out);

        // A look sees what was offered before it: at one instant, calls count in their order.
        let mut offered = 0;
        let mut looks = record.looks.iter();
        let mut now = 0;
        for &(gap, step) in &steps {
            if let Step::Sleep = step {
                break; // The model does not know how long it slept.
            }
            now += gap;
            match step {
                Step::Offer(_) => offered += 1,
                Step::Look => {
                    let before: Vec<_> = accepted.iter().copied().filter(|packet| packet.0 < offered).collect();
                    prop_assert_eq!(looks.next(), Some(&(now, occupancy(&before, now))));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn statistics_are_those_of_a_recomputation(config in plain(), steps in steps(false)) {
        let record = run(&config, 1, &steps);
        let accepted = predict(&config, &record);
        let mut changes: Vec<u64> = accepted.iter().flat_map(|(_, packet)| [packet.0, packet.1]).collect();
        changes.extend([0, record.end]);
        changes.sort_unstable();
        changes.dedup();
        let stretches: Vec<(u64, Occupancy)> =
            changes.windows(2).map(|pair| (pair[1] - pair[0], occupancy(&accepted, pair[0]))).collect();
        let seen = record.statistics;
        let packets: Vec<_> = stretches.iter().map(|&(time, held)| (time, held.packets)).collect();
        let bytes: Vec<_> = stretches.iter().map(|&(time, held)| (time, held.bytes)).collect();
        prop_assert_eq!(seen.observed_micros, record.end);
        let expected = brute_force(&packets, record.end);
        prop_assert_eq!((seen.packets.mean, seen.packets.max), (expected.mean, expected.max));
        let expected = brute_force(&bytes, record.end);
        prop_assert_eq!((seen.bytes.mean, seen.bytes.max), (expected.mean, expected.max));
        prop_assert!(seen.bytes.p95 >= expected.p95 && seen.bytes.p95 <= expected.p95 + expected.p95 / 128);

        let Rate::BitsPerSecond(rate) = config.rate else { unreachable!() };
        let sent = record.offers.iter().filter(|offer| offer.2.is_ok());
        let work: u128 = sent.map(|&(_, len, _)| u128::from(charged(&config, len)) * 8_000_000).sum();
        prop_assert_eq!(u128::from(seen.busy_micros), work / u128::from(rate));
    }

    #[test]
    fn nothing_vanishes_and_equal_runs_are_equal(config in any_config(), seed: u64, steps in steps(true)) {
        let record = run(&config, seed, &steps);
        prop_assert_eq!(&record, &run(&config, seed, &steps));
        // Each packet that was taken comes out once, lost or not.
        let mut out: Vec<u64> = record.out.iter().map(|packet| packet.0).collect();
        let ordered = out.is_sorted();
        out.sort_unstable();
        let taken = record.offers.iter().zip(0_u64..).filter(|(offer, _)| offer.2.is_ok());
        prop_assert_eq!(out, taken.map(|(_, number)| number).collect::<Vec<_>>());
        let may_overtake = matches!(config.jitter, Jitter::Uniform { order: Order::Free, .. });
        prop_assert!(ordered || may_overtake || config.aqm != Aqm::None);
        prop_assert!(record.statistics.busy_micros <= record.statistics.observed_micros);
    }

    #[test]
    fn work_is_conserved_over_changes_of_rate(
        lens in prop::collection::vec(1..2_000_u32, 1..50),
        changes in prop::collection::vec((0..500_000_u64, 1_000..5_000_000_u64), 0..20),
    ) {
        let config = Config::plain(Rate::BitsPerSecond(100_000), Span::ZERO, Limit::Packets(1_000));
        let mut link = Link::new(&config, ChanceSeed::new(1), 0).unwrap();
        for &len in &lens {
            link.offer(Instant::ORIGIN, len, ()).unwrap();
        }
        let (mut now, mut rate, mut done) = (0, 100_000, 0_u128);
        for (gap, new) in changes {
            if link.queued(Instant::from_micros(now + gap)).packets == 0 {
                break;
            }
            now += gap;
            done += u128::from(gap) * u128::from(rate);
            rate = new;
            link.set_rate(Instant::from_micros(now), Rate::BitsPerSecond(rate)).unwrap();
        }
        let mut last = 0;
        while let Some(next) = link.next() {
            match link.deliver(next.max(Instant::from_micros(now))) {
                Some(Delivered::Arrived(parcel)) => last = parcel.left.as_micros(),
                other => prop_assert!(false, "a plain link is never woken in vain: {other:?}"),
            }
        }
        let work: u128 = lens.iter().map(|&len| u128::from(len) * 8_000_000).sum();
        let rest = (work - done).div_ceil(u128::from(rate));
        prop_assert_eq!(u128::from(last), u128::from(now) + rest);
        let busy = link.statistics(Instant::from_micros(last + 1)).busy_micros;
        prop_assert!(busy == last || busy + 1 == last);
    }
}

//! Queues that manage themselves against oracles: the pseudo-code of their RFCs once more, straight from the text, in an event loop of
//! its own and other arithmetic; and what theory says of their steady states.

mod rfcs;

use std::collections::BTreeMap;

use millpond_control::{ChanceSeed, Instant, Purpose, Span};
use millpond_link::{Aqm, CoDelRules, Config, Delivered, DropReason, FqCoDelRules, Limit, Link, PieRules, Rate};
use proptest::prelude::*;

use rfcs::{Flows, One, Pie, oracle};

const SEED: u64 = 5;
const LINK: u32 = 3;

/// When it comes, µs; whose it is; bytes.
type Arrival = (u64, u32, u32);

/// What became of a packet, and when, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Left(u64),
    Dropped(u64),
    Full(u64),
}

/// Runs the link; fates by number.
fn ours(aqm: Aqm, queue: Limit, rate: u64, arrivals: &[Arrival]) -> Vec<Fate> {
    let config = Config { aqm, ..Config::plain(Rate::BitsPerSecond(rate), Span::ZERO, queue) };
    let mut link = Link::new(&config, ChanceSeed::new(SEED), LINK).unwrap();
    let mut fates = BTreeMap::new();
    let told = |reason, at| if reason == DropReason::Managed { Fate::Dropped(at) } else { Fate::Full(at) };
    let drain = |link: &mut Link<()>, now: u64, fates: &mut BTreeMap<u64, Fate>| {
        while let Some(delivered) = link.deliver(Instant::from_micros(now)) {
            let (parcel, fate): (_, fn(u64) -> Fate) = match delivered {
                Delivered::Arrived(parcel) => (parcel, Fate::Left),
                Delivered::Dropped(parcel, DropReason::Managed) => (parcel, Fate::Dropped),
                Delivered::Dropped(parcel, _) => (parcel, Fate::Full),
                Delivered::Lost(_) => panic!("this link loses nothing"),
            };
            assert_eq!(fates.insert(parcel.number, fate(parcel.at.as_micros())), None);
        }
        // It counts all that waits: at most 500 times in long runs.
        if fates.len().is_multiple_of(arrivals.len() / 500 + 1) {
            link.check_conservation().unwrap();
        }
    };
    for (number, &(at, flow, len)) in arrivals.iter().enumerate() {
        if let Err((reason, ())) = link.offer_of(Instant::from_micros(at), flow, len, ()) {
            fates.insert(number as u64, told(reason, at));
        }
        drain(&mut link, at, &mut fates);
    }
    while let Some(next) = link.next() {
        drain(&mut link, next.as_micros(), &mut fates);
    }
    link.check_conservation().unwrap();
    let dropped = link.counters().dropped_managed.packets;
    assert_eq!(dropped, fates.values().filter(|fate| matches!(fate, Fate::Dropped(_))).count() as u64);
    assert_eq!(fates.len(), arrivals.len());
    fates.into_values().collect()
}

/// Bursts, lulls and steady streams of several flows: gaps in units of a packet's time.
fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![6 => 0..900_u64, 3 => 900..2_500_u64, 1 => 2_500..600_000_u64];
    let packet = (gap, 0..5_u32, prop_oneof![Just(1_000_u32), Just(94), 40..1_500_u32]);
    prop::collection::vec(packet, 1..900).prop_map(|packets| {
        let mut now = 0;
        packets
            .into_iter()
            .map(|(gap, flow, len)| {
                now += gap;
                (now, flow, len)
            })
            .collect()
    })
}

const RATE: u64 = 8_000_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn codel_does_what_its_rfc_says(arrivals in arrivals(), limit in prop_oneof![Just(10_000_usize), 5..200_usize]) {
        let ours = ours(Aqm::CoDel(CoDelRules::RFC8289), Limit::Packets(limit as u64), RATE, &arrivals);
        let mut one = One::new(limit);
        prop_assert_eq!(ours, oracle(&mut one, RATE, &arrivals));
    }

    #[test]
    fn fq_codel_does_what_its_rfc_says(arrivals in arrivals(), limit in prop_oneof![Just(10_000_usize), 5..200_usize]) {
        let ours = ours(Aqm::FqCoDel(FqCoDelRules::RFC8290), Limit::Packets(limit as u64), RATE, &arrivals);
        let place = (0..5).map(|flow| (flow, ChanceSeed::new(SEED).wide(Purpose::Loss, [LINK, flow, 0, 6]))).collect();
        let mut flows = Flows::new(limit, place);
        prop_assert_eq!(ours, oracle(&mut flows, RATE, &arrivals));
    }

    #[test]
    fn pie_does_what_its_rfc_says(arrivals in arrivals()) {
        let ours = ours(Aqm::Pie(PieRules::RFC8033), Limit::Packets(100_000), RATE, &arrivals);
        prop_assert_eq!(ours, oracle(&mut Pie::new(), RATE, &arrivals));
    }
}

/// A queue that stands, or comes and goes, for long: hundreds of drops, one by one as the oracle has them.
#[test]
fn long_overloads_are_dropped_packet_by_packet_as_the_rfcs_say() {
    let mut arrivals = steady(6_000, 130);
    let end = arrivals[5_999].0 + 300_000;
    // Several flows, one of which sends more than its share, with a lull and at a lesser load.
    arrivals.extend((0..6_000).map(|n: u64| (end + n * 950, (n % 7).min(3) as u32, 400 + (n * 137 % 1_100) as u32)));
    let limit = Limit::Packets(100_000);
    let drops = |fates: &[Fate]| fates.iter().filter(|fate| matches!(fate, Fate::Dropped(_))).count();
    let codel = ours(Aqm::CoDel(CoDelRules::RFC8289), limit, RATE, &arrivals);
    let mut one = One::new(100_000);
    assert_eq!(codel, oracle(&mut one, RATE, &arrivals));
    let flows = ours(Aqm::FqCoDel(FqCoDelRules::RFC8290), limit, RATE, &arrivals);
    let place = (0..5).map(|flow| (flow, u64::from(flow))).collect();
    assert_eq!(flows, oracle(&mut Flows::new(100_000, place), RATE, &arrivals));
    let pie = ours(Aqm::Pie(PieRules::RFC8033), limit, RATE, &arrivals);
    assert_eq!(pie, oracle(&mut Pie::new(), RATE, &arrivals));
    for dropped in [drops(&codel), drops(&flows), drops(&pie)] {
        assert!(dropped > 200, "{dropped}");
    }
}

/// `of` packets of 1000 B (1 ms each) that come evenly at so many hundredths of the rate.
fn steady(of: u64, hundredths: u64) -> Vec<Arrival> {
    (0..of).map(|number| (number * 100_000 / hundredths, 0, 1_000)).collect()
}

/// The n-th drop of a standing queue comes an interval over the square root of n after the one before it.
#[test]
fn codel_drops_ever_faster_while_the_queue_stands() {
    let fates = ours(Aqm::CoDel(CoDelRules::RFC8289), Limit::Packets(100_000), RATE, &steady(8_000, 200));
    let mut drops: Vec<u64> =
        fates.iter().filter_map(|fate| if let Fate::Dropped(at) = fate { Some(*at) } else { None }).collect();
    drops.sort_unstable();
    let first = drops[0] as f64;
    let mut due = first;
    for (n, at) in drops.iter().enumerate().skip(1).take(500) {
        due += 100_000.0 / (n as f64).sqrt();
        // It is dropped when the packet before it is out, at most 1 ms later.
        assert!((*at as f64) >= due - n as f64 && (*at as f64) <= due + 1_001.0, "drop {n} at {at}, due at {due}");
    }
    assert!(drops.len() > 500);
}

/// Runs a link whose owner looks at it when [`Link::next`] says so and at no other time, over a load that comes and goes. Gives how
/// often it did, and how many packets came out, or were dropped from the queue; each of those at the instant.
fn woken(aqm: Aqm) -> (u64, u64, u64) {
    let config =
        Config { aqm, ..Config::plain(Rate::BitsPerSecond(RATE), Span::from_millis(30), Limit::Packets(100_000)) };
    let mut link = Link::new(&config, ChanceSeed::new(SEED), LINK).unwrap();
    let mut arrivals = steady(2_000, 150);
    arrivals.extend(steady(2_000, 90).into_iter().map(|(at, _, len)| (3_000_000 + at, 0, len)));
    arrivals.extend(steady(2_000, 130).into_iter().map(|(at, _, len)| (6_000_000 + at, at as u32 % 3, len)));
    let (mut wakes, mut arrived, mut dropped) = (0, 0, 0);
    let mut coming = arrivals.into_iter().peekable();
    // As an owner does who asks again only if a packet may bring that forward.
    let mut next = link.next();
    loop {
        match (next, coming.peek()) {
            (None, None) => return (wakes, arrived, dropped),
            (Some(now), offered) if offered.is_none_or(|(at, ..)| now.as_micros() <= *at) => {
                wakes += 1;
                while let Some(delivered) = link.deliver(now) {
                    let parcel = match delivered {
                        Delivered::Arrived(parcel) => (parcel, &mut arrived),
                        Delivered::Dropped(parcel, _) => (parcel, &mut dropped),
                        Delivered::Lost(_) => panic!("this link loses nothing"),
                    };
                    assert_eq!(parcel.0.at, now);
                    *parcel.1 += 1;
                }
                next = link.next();
            }
            _ => {
                let (at, flow, len) = coming.next().unwrap();
                let is_first = !link.is_waiting();
                let taken = link.offer_of(Instant::from_micros(at), flow, len, ());
                if taken.is_ok() && is_first {
                    next = link.next();
                }
            }
        }
    }
}

/// What is dropped is handed out when it is dropped, and nobody looks at every departure for that: with CoDel about once an interval, and
/// with PIE, which drops packets as they come, never.
#[test]
fn drops_are_told_at_once_and_links_are_looked_at_no_more_than_that_takes() {
    let codel = Aqm::CoDel(CoDelRules::RFC8289);
    for aqm in [codel, Aqm::FqCoDel(FqCoDelRules::RFC8290), Aqm::Pie(PieRules::RFC8033)] {
        let (wakes, arrived, dropped) = woken(aqm);
        assert!(arrived > 3_500 && (dropped > 100) == !matches!(aqm, Aqm::Pie(_)), "{aqm:?}: {arrived} and {dropped}");
        match aqm {
            Aqm::Pie(_) => assert_eq!(wakes, arrived),
            Aqm::FqCoDel(_) | Aqm::None => {}
            // One before the first drop of each stand, and one for each drop.
            Aqm::CoDel(_) => {
                assert!(wakes <= arrived + 2 * dropped + 9_000_000 / 100_000, "{wakes}: {arrived}, {dropped}")
            }
        }
    }
}

/// What an overloaded queue that marks does with packets of which every fourth may not be marked, one every 0.5 ms for each of 1 ms:
/// when each was marked, and when each was dropped, with its number; µs.
fn marking(aqm: Aqm, packets: u64) -> (Vec<u64>, Vec<(u64, u64)>) {
    let rate = Rate::BitsPerSecond(RATE);
    let config = Config { aqm, ecn: true, ..Config::plain(rate, Span::ZERO, Limit::Packets(1_000_000)) };
    let mut link = Link::new(&config, ChanceSeed::new(SEED), LINK).unwrap();
    let (mut marked, mut dropped) = (Vec::new(), Vec::new());
    for number in 0..packets {
        let now = Instant::from_micros(number * 500);
        let offer = if number % 4 == 3 { Link::offer_of } else { Link::offer_capable };
        if offer(&mut link, now, 0, 1_000, ()).is_err() {
            dropped.push((now.as_micros(), number));
        }
        while let Some(delivered) = link.deliver(now) {
            match delivered {
                // It was taken out of the queue a millisecond before.
                Delivered::Arrived(parcel) if parcel.marked => {
                    assert_ne!(parcel.number % 4, 3);
                    marked.push(parcel.at.as_micros() - 1_000);
                }
                Delivered::Dropped(parcel, _) => dropped.push((parcel.at.as_micros(), parcel.number)),
                Delivered::Arrived(_) | Delivered::Lost(_) => {}
            }
        }
    }
    link.check_conservation().unwrap();
    assert!(link.counters().marked.packets - marked.len() as u64 <= 1, "one is on its way");
    (marked, dropped)
}

/// Marks and drops come at the same times, an interval over the root of their number apart.
#[test]
fn codel_marks_when_it_would_drop() {
    let (marked, dropped) = marking(Aqm::CoDel(CoDelRules::RFC8289), 16_000);
    assert!(dropped.iter().all(|(_, number)| number % 4 == 3), "what may be marked is not dropped");
    let mut acts: Vec<u64> = marked.iter().copied().chain(dropped.iter().map(|(at, _)| *at)).collect();
    acts.sort_unstable();
    assert!(marked.len() > 300 && dropped.len() > 50, "{} and {}", marked.len(), dropped.len());
    let mut due = acts[0] as f64;
    for (n, at) in acts.iter().enumerate().skip(1).take(500) {
        due += 100_000.0 / (n as f64).sqrt();
        assert!((*at as f64) >= due - n as f64 && (*at as f64) <= due + 1_001.0, "act {n} at {at}, due at {due}");
    }
}

/// RFC 8033, section 5.1: what does not react to marks is dropped once its probability is above a tenth.
#[test]
fn pie_marks_as_long_as_it_would_drop_few() {
    let (marked, dropped) = marking(Aqm::Pie(PieRules::RFC8033), 20_000);
    let first = |may_be_marked: bool| dropped.iter().find(|(_, number)| (number % 4 != 3) == may_be_marked).unwrap().0;
    assert!(!marked.is_empty() && marked.iter().all(|at| *at < 2_000_000), "{marked:?}");
    assert!(first(true) > 0 && dropped.iter().filter(|(_, number)| number % 4 != 3).count() > 3_000, "{dropped:?}");
}

/// Of an unresponsive load of 1.25 times the rate a fifth has to go, and what is left waits about as long as it may.
#[test]
fn pie_drops_what_is_too_much_and_holds_its_target() {
    let arrivals = steady(120_000, 125);
    let fates = ours(Aqm::Pie(PieRules::RFC8033), Limit::Packets(100_000), RATE, &arrivals);
    let late = 40_000..;
    let settled: Vec<_> = fates[late.clone()].iter().zip(&arrivals[late]).collect();
    let dropped = settled.iter().filter(|(fate, _)| matches!(fate, Fate::Dropped(_))).count();
    let share = dropped as f64 / settled.len() as f64;
    assert!((share - 0.2).abs() < 0.005, "{share}");
    let waits: Vec<f64> = settled
        .iter()
        .filter_map(
            |(fate, arrival)| if let Fate::Left(at) = fate { Some((at - arrival.0) as f64 - 1_000.0) } else { None },
        )
        .collect();
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    assert!((mean - 15_000.0).abs() < 1_500.0, "{mean}");
}

/// Two greedy flows with packets of other sizes share by bytes; one that sends little hardly waits for them.
#[test]
fn fq_codel_shares_by_bytes_and_lets_sparse_flows_pass() {
    let mut arrivals: Vec<Arrival> = (0..20_000).flat_map(|n: u64| [(n * 500, 1, 1_000), (n * 500, 2, 500)]).collect();
    arrivals.extend((0..400).map(|n: u64| (n * 25_000, 3, 100)));
    arrivals.sort_by_key(|arrival| arrival.0);
    let fates = ours(Aqm::FqCoDel(FqCoDelRules::RFC8290), Limit::Packets(100_000), RATE, &arrivals);
    let during = 2_000_000..10_000_000_u64;
    let mut bytes = BTreeMap::new();
    let mut longest = 0;
    for (fate, (came, flow, len)) in fates.iter().zip(&arrivals) {
        if let Fate::Left(at) = fate
            && during.contains(at)
        {
            *bytes.entry(*flow).or_insert(0_u64) += u64::from(*len);
            if *flow == 3 {
                longest = longest.max(at - came);
            }
        }
    }
    let (one, two) = (bytes[&1] as f64, bytes[&2] as f64);
    assert!((one / two - 1.0).abs() < 0.02, "{bytes:?}");
    // At most the packet in service and its own 100 B.
    assert!(longest <= 1_100 + 1, "{longest}");
}

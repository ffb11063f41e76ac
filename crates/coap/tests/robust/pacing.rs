//! Bursts into a short queue and over lossy paths, and what a pace does for them.

use alloc::{boxed::Box, vec::Vec};

use crate::block::BlockSize;
use crate::block::robust::{BurstOptions, BurstParameters, End};
use crate::message::{Code, number};
use millpond_control::Span;

use super::world::{BurstAsk, CLIENT, SERVER, Way, World, at, body};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

fn options(paced: bool) -> BurstOptions {
    BurstOptions { parameters: BurstParameters { paced, ..BurstParameters::RFC9177 }, ..BurstOptions::RFC9177 }
}

/// 50 ms round trip, 20 kB/s, and a queue of 6 kB: what six blocks of 1024 bytes fill.
fn short_queue(paced: bool) -> World {
    let mut world = World::new(options(paced)).serving(body(100_000));
    for way in [&mut world.up, &mut world.down] {
        *way = Way::new(160_000, 25);
        way.queue = 6_000;
    }
    world
}

/// A burst of ten does not fit, and the queue drops more than every other block; at the pace at which they arrive a few are
/// dropped until that is found, and the link is hardly ever idle: 97 blocks of 1,081 bytes take it 5.2 s.
#[test]
fn a_short_queue_drops_much_of_bursts_and_little_of_what_is_spread() {
    let (mut dropped, mut took) = ([0; 2], [0; 2]);
    for (which, paced) in [(0, false), (1, true)] {
        for upload in [false, true] {
            let mut world = short_queue(paced);
            let bytes = body(100_000);
            if upload {
                world.application =
                    Box::new(|_, bytes| (Code::CHANGED, Vec::new(), vec![(bytes.len() == 100_000).into()]));
                world.ask(&BurstAsk { code: Code::PUT, options: &PATH, body: &bytes, size: BlockSize::B1024 });
            } else {
                world.ask(&BurstAsk::get(&PATH));
            }
            world.run(at(1_000_000));
            let (when, _, answer) = world.answer();
            assert_eq!(answer, if upload { vec![1] } else { bytes });
            dropped[which] += world.down.dropped + world.up.dropped;
            took[which] += when.as_micros();
        }
    }
    assert!(dropped[0] > 200 && dropped[1] <= 40, "{dropped:?}");
    assert!(took[1] < 14_000_000 && took[1] * 7 < took[0], "{took:?}");
}

/// The first set leaves at once. It comes without a queue, and a round trip later the next ones follow at twice that rate, then
/// at twice this one, without waiting for "go on".
#[test]
fn a_first_set_without_a_queue_is_the_first_round_of_slow_start() {
    let mut world = World::new(options(true)).serving(body(60 * 16));
    world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
    world.run(at(1_000_000));
    let left = |block: u32| world.when(SERVER, &format!("QB2:{block}/"))[0];
    assert_eq!((left(9) - left(1), left(10) - left(9)), (0, 100), "a set, and a round trip");
    // Nine of the first set were not known before.
    assert_eq!((left(20) - left(10), left(30) - left(20)), (55, 56));
    assert!(left(59) - left(49) <= 28, "{} ms", left(59) - left(49));
}

/// The last block of the first set is lost, or the complaint about it. The set was no more than what the path takes in a round
/// trip, and so is the next.
#[test]
fn what_is_lost_of_the_first_set_costs_a_round_trip_or_two() {
    for (lost, took) in [("QB2:9/", 725), ("QB2:9/0", 850), ("QB2:10/1", 850)] {
        let mut world = World::new(options(true)).serving(body(60 * 16));
        world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
        world.run(at(110));
        let from = if lost == "QB2:9/" { SERVER } else { CLIENT };
        let way = if from == CLIENT { &mut world.up } else { &mut world.down };
        // The ninth block after the first, or what the client says after it.
        way.lost_one = Some(if from == SERVER { 9 } else { 2 });
        if lost == "QB2:9/0" {
            world.down.lost_one = Some(8);
        }
        world.run(at(1_000_000));
        assert!(world.answer().0 <= at(took), "{lost}: {:?}", world.answer().0);
    }
}

/// The request for all but the first block is lost, and what comes answers the next one: its time is no round trip. "Go on" is lost,
/// too, and made good after twice what the question took, and 25 ms.
#[test]
fn a_request_that_was_lost_is_no_round_trip() {
    let mut world = World::new(options(true)).serving(body(60 * 16));
    world.up.lost = |number, _| matches!(number, 1 | 3);
    world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
    world.run(at(1_000_000));
    assert_eq!(world.when(CLIENT, "QB2:1/")[..2], [100, 325]);
    assert_eq!((world.when(CLIENT, "QB2:10/1")[0], world.when(CLIENT, "QB2:10/0")[0]), (425, 650));
}

/// 5 % lost each way: a few round trips more than without, and more than that only where the question at the beginning was lost,
/// which waits for the timer of RFC 7252.
#[test]
fn losses_cost_little() {
    for upload in [false, true] {
        let (times, failed) = over(50, 50_000, true, upload, 30);
        assert!(failed == 0 && times[15] < 400 && times[25] < 800 && times[29] < 4_000, "{times:?}");
        let (times, failed) = over(600, 50_000, true, upload, 30);
        assert!(failed == 0 && times[15] < 4_500 && times[22] < 5_000 && times[29] < 7_600, "{times:?}");
        let (times, failed) = over(600, 0, true, upload, 1);
        assert!(failed == 0 && times[0] < 4_000, "{times:?}");
    }
}

/// What RFC 9177 says is what happens unless something else is asked for.
#[test]
fn bursts_are_bursts_by_default() {
    let mut world = World::new(BurstOptions::RFC9177).serving(body(30 * 16));
    world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
    world.run(world.now.after(Span::from_secs(60)));
    assert_eq!(world.when(SERVER, "QB2:10/1"), world.when(SERVER, "QB2:19/1"));
}

/// 100 000 bytes in blocks of 1024, one way and the other: how long they take with these seeds, in milliseconds.
fn over(rtt: u32, lost_in_a_million: u32, paced: bool, upload: bool, seeds: u64) -> (Vec<u64>, usize) {
    let (mut times, mut failed) = (Vec::new(), 0);
    for seed in 0..seeds {
        let mut world = World::new(options(paced)).serving(body(100_000));
        for (index, way) in [&mut world.up, &mut world.down].into_iter().enumerate() {
            *way = Way::new(0, rtt / 2);
            way.chance =
                (seed * 2 + index as u64, 1_000_000_u32.checked_div(lost_in_a_million).map_or(0, |all| all - 1));
        }
        let bytes = body(100_000);
        if upload {
            world.application = Box::new(|_, _| (Code::CHANGED, Vec::new(), Vec::new()));
            world.ask(&BurstAsk { code: Code::PUT, options: &PATH, body: &bytes, size: BlockSize::B1024 });
        } else {
            world.ask(&BurstAsk::get(&PATH));
        }
        world.run(at(1_000_000));
        match &world.told[0] {
            (when, End::Done(_)) => times.push(when.as_micros() / 1_000),
            (_, _) => failed += 1,
        }
    }
    times.sort_unstable();
    (times, failed)
}

#[test]
#[ignore = "prints the figures of docs/reports/bursts.md"]
fn figures_of_bodies_over_lossy_paths() {
    for (rtt, loss) in [(50, 0), (50, 20_000), (50, 50_000), (600, 0), (600, 50_000)] {
        for (upload, paced) in [(true, false), (true, true), (false, false), (false, true)] {
            let (times, failed) = over(rtt, loss, paced, upload, 100);
            let [least, middle, many, most] =
                [0, 50, 95, 99].map(|place| times[place * times.len() / 100] as f64 / 1e3);
            let late = times.iter().filter(|time| **time > 5_000).count();
            println!(
                "{rtt} ms, loss {loss} in a million, upload {upload}, paced {paced}: {least:.2} / {middle:.2} / {many:.2} / \
                 {most:.2} s, {late} above 5 s, {failed} failed"
            );
        }
    }
    for paced in [false, true] {
        let mut world = short_queue(paced);
        world.ask(&BurstAsk::get(&PATH));
        world.run(at(1_000_000));
        println!("queue of 6000 bytes, paced {paced}: {:?}, {} dropped", world.answer().0, world.down.dropped);
    }
}

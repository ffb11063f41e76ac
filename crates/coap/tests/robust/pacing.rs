//! Bursts into a short queue and over lossy paths, and what a pace does for them.

use alloc::{boxed::Box, vec::Vec};

use crate::block::BlockSize;
use crate::block::robust::{BurstAsk, BurstOptions, BurstParameters, ClientTold};
use crate::message::{Code, number};
use millpond_control::Span;

use super::world::{CLIENT, SERVER, Sent, Way, World, at, body};

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
    assert!(took[1] < 12_000_000 && took[1] * 7 < took[0], "{took:?}");
}

/// As long as nothing speaks against it, paced bursts are those of RFC 9177: a set leaves at once, the next one with "go on".
#[test]
fn nothing_is_paced_before_there_is_a_reason() {
    let mut world = World::new(options(true)).serving(body(40 * 16));
    world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
    world.run(at(1_000_000));
    let left = |block: u32| world.when(SERVER, &format!("QB2:{block}/"))[0];
    assert_eq!([left(10), left(20), left(30)], [left(19), left(29), left(39)]);
    assert_eq!((left(20) - left(10), left(30) - left(20)), (100, 100), "a round trip");
}

/// A lost block is complained about with the last one of its set, a round trip after that it is there, and the blocks after
/// the complaint are paced: no faster than the set before, then twice as fast with each set that comes whole.
#[test]
fn the_first_complaint_ends_the_bursts() {
    let mut world = World::new(options(true)).serving(body(60 * 16));
    world.down.lost = |_, bytes| {
        static ONCE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(true);
        let is_it = Sent { at: at(0), from: SERVER, bytes: bytes.to_vec() }.summary().contains("QB2:13/1");
        is_it && ONCE.swap(false, std::sync::atomic::Ordering::Relaxed)
    };
    world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
    world.run(at(1_000_000));
    let left = |block: u32, copy: usize| world.when(SERVER, &format!("QB2:{block}/"))[copy];
    let complaint = world.when(CLIENT, "QB2:13/0")[0];
    assert_eq!((complaint - left(19, 0), left(13, 1) - complaint), (50, 50));
    let apart = |block: u32| left(block + 1, 0) - left(block, 0);
    assert_eq!([apart(20), apart(21), apart(22)], [10; 3], "ten in a round trip of 100 ms");
    assert_eq!([apart(56), apart(57)], [5; 2]);
}

/// 5 % lost each way at 50 ms: half a second, and more than four only where the question at the beginning was lost, which
/// waits for the timer of RFC 7252.
#[test]
fn losses_cost_little() {
    for upload in [false, true] {
        let (times, failed) = over(50, 50_000, true, upload, 30);
        assert!(failed == 0 && times[15] < 800 && times[25] < 4_000, "{times:?}");
        let (times, failed) = over(600, 0, true, upload, 1);
        assert!(failed == 0 && times[0] < 7_000, "{times:?}");
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
            (when, ClientTold::Done { .. }) => times.push(when.as_micros() / 1_000),
            (_, _) => failed += 1,
        }
    }
    times.sort_unstable();
    (times, failed)
}

#[test]
#[ignore = "prints the figures of docs/robust.md"]
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

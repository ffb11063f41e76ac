//! Bursts into a short queue, and what spreading them over the round trip does.

use millpond_coap::block::BlockSize;
use millpond_coap::block::robust::{BurstAsk, BurstOptions, BurstParameters, ClientTold};
use millpond_coap::message::{Code, number};
use millpond_control::Span;

use crate::world::{SERVER, Way, World, at, body};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

fn options(paced: bool) -> BurstOptions {
    BurstOptions { parameters: BurstParameters { paced, ..BurstParameters::RFC9177 }, ..BurstOptions::default() }
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

/// A burst of ten does not fit, and the queue drops more than every other block; spread over the round trip, which doubles
/// with complaints, fewer than one in ten.
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
            let (when, _, answer, _) = world.answer();
            assert_eq!(answer, if upload { vec![1] } else { bytes });
            dropped[which] += world.down.dropped + world.up.dropped;
            took[which] += when.as_micros();
        }
    }
    assert!(dropped[0] > 200 && dropped[1] <= 20, "{dropped:?}");
    assert!(took[1] * 3 < took[0], "{took:?}");
}

/// The spreading is that of the round trip, and it is not a burst.
#[test]
fn payloads_of_a_set_are_a_tenth_of_a_round_trip_apart() {
    let mut world = World::new(options(true)).serving(body(200 * 16));
    (world.up, world.down) = (Way::new(0, 400), Way::new(0, 100));
    world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
    world.run(at(1_000_000));
    let Some((_, ClientTold::Done { body: whole, .. })) = world.told.pop() else { panic!() };
    assert_eq!(whole, body(200 * 16));
    let left = |block: u32| world.when(SERVER, &format!("QB2:{block}/"))[0];
    let apart: Vec<u64> = (100..109).map(|block| left(block + 1) - left(block)).collect();
    assert!(apart.iter().all(|gap| gap.abs_diff(50) <= 1), "{apart:?}");
    // Before anything was measured: a tenth of NON_TIMEOUT.
    assert_eq!(left(5) - left(4), 200);
}

/// What RFC 9177 says is what happens unless something else is asked for.
#[test]
fn bursts_are_bursts_by_default() {
    let mut world = World::new(BurstOptions::default()).serving(body(30 * 16));
    world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
    world.run(world.now.after(Span::from_secs(60)));
    assert_eq!(world.when(SERVER, "QB2:10/1"), world.when(SERVER, "QB2:19/1"));
}

/// 100 000 bytes up in blocks of 1024, 20 seeds a row.
#[test]
#[ignore = "prints the figures of docs/robust.md"]
fn figures_of_bodies_over_lossy_paths() {
    for (rtt, loss) in [(50, 0), (50, 20_000), (50, 50_000), (600, 0)] {
        for paced in [false, true] {
            let (mut times, mut failed) = (Vec::new(), 0);
            for seed in 0..20 {
                let mut world = World::new(options(paced));
                for (index, way) in [&mut world.up, &mut world.down].into_iter().enumerate() {
                    *way = Way::new(0, rtt / 2);
                    way.chance = (seed * 2 + index as u64, 1_000_000_u32.checked_div(loss).map_or(0, |all| all - 1));
                }
                world.application = Box::new(|_, _| (Code::CHANGED, Vec::new(), Vec::new()));
                let bytes = body(100_000);
                world.ask(&BurstAsk { code: Code::PUT, options: &PATH, body: &bytes, size: BlockSize::B1024 });
                world.run(at(1_000_000));
                match &world.told[0] {
                    (when, ClientTold::Done { .. }) => times.push(when.as_micros() / 10_000),
                    (_, _) => failed += 1,
                }
            }
            times.sort_unstable();
            let [least, middle, most] = [0, times.len() / 2, times.len() - 1].map(|place| times[place] as f64 / 100.0);
            println!(
                "{rtt} ms, loss {loss} in a million, paced {paced}: {least} / {middle} / {most} s, {failed} failed"
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

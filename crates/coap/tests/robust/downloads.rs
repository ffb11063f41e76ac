//! Bodies in the responses (Q-Block2).

use alloc::{boxed::Box, vec::Vec};

use std::cell::Cell;
use std::rc::Rc;

use crate::Config;
use crate::block::BlockSize;
use crate::block::robust::{BurstFailure, BurstOptions, BurstParameters, End, Whole};
use crate::message::{Code, number};
use millpond_control::{Preset, Span};

use super::world::{BurstAsk, CLIENT, SERVER, Way, World, at, body, lost_in_turn};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

fn get(size: BlockSize) -> BurstAsk<'static> {
    BurstAsk { size, ..BurstAsk::get(&PATH) }
}

/// A world in which the client knows that the server takes bursts.
fn acquainted(options: BurstOptions) -> World {
    let mut world = World::new(options).serving(body(20));
    world.ask(&get(BlockSize::B32));
    world.run(at(1_000));
    assert_eq!(world.client.is_supported_by(SERVER), Some(true));
    world.forget();
    world
}

/// 102 400 bytes in blocks of 128 over 60 kbit/s up and 30 kbit/s down, 215 and 415 ms: 800 blocks of 173 bytes at IP
/// level in 80 sets, of which each takes its serialisation and one round trip.
#[test]
fn a_firmware_takes_a_round_trip_for_each_set() {
    let options = BurstOptions { tag_length: 1, ..BurstOptions::RFC9177 };
    let config = Config { token_length: 1, ..Config::default() };
    let mut world = World::of(options, Preset::RFC7252, config).serving(body(102_400));
    (world.up, world.down) = (Way::new(60_000, 215), Way::new(30_000, 415));
    world.ask(&get(BlockSize::B128));
    world.run(at(1_000_000));
    let (when, code, bytes) = world.answer();
    assert_eq!(code, Code::CONTENT);
    assert_eq!(bytes, body(102_400));
    assert!((88_000_000..89_000_000).contains(&when.as_micros()), "{when:?}");
    let said = world.said(CLIENT);
    assert_eq!(said[..4], ["CON 0.01 QB2:0/0", "NON 0.01 QB2:1/1", "NON 0.01 QB2:10/1", "NON 0.01 QB2:20/1"]);
    assert_eq!(said.len(), 81, "one for the first block, one for each set");
    let lengths = world.sent.iter().filter(|sent| sent.from == SERVER).map(|sent| sent.bytes.len() + 28);
    assert!(lengths.skip(16).all(|length| length == 173));
    assert_eq!(world.down.sent, 800, "no block twice");
    assert_eq!(world.client.transfers(), 0);
}

#[test]
fn every_block_says_whose_it_is_and_how_long_the_body_is() {
    let mut world = World::new(BurstOptions::RFC9177).serving(body(500));
    world.ask(&get(BlockSize::B32));
    world.run(at(10_000));
    let blocks: Vec<_> = world.sent.iter().filter(|sent| sent.from == SERVER).map(|sent| sent.message()).collect();
    assert_eq!(blocks.len(), 16);
    let etag = blocks[0].option(number::ETAG).unwrap();
    assert_eq!(etag.len(), 4);
    for block in &blocks {
        assert_eq!(block.option(number::ETAG), Some(etag));
        assert_eq!(block.option(number::SIZE2), Some(&[1, 244][..]));
        assert_eq!(block.option(number::CONTENT_FORMAT), Some(&[][..]));
    }
}

#[test]
fn a_short_body_takes_one_exchange() {
    let mut world = World::new(BurstOptions::RFC9177).serving(body(32));
    world.ask(&get(BlockSize::B32));
    world.run(at(1_000));
    let (_, code, bytes) = world.answer();
    assert_eq!((code, bytes), (Code::CONTENT, body(32)));
    assert_eq!(world.said(SERVER), ["ACK 2.05 QB2:0/0"]);
    assert_eq!(world.server.bodies(), 0);
}

#[test]
fn support_is_asked_for_once() {
    let mut world = acquainted(BurstOptions::RFC9177).serving(body(300));
    world.ask(&get(BlockSize::B32));
    world.run(at(2_000));
    assert_eq!(world.answer().2, body(300));
    assert_eq!(world.said(CLIENT), ["NON 0.01 QB2:0/1"], "ten blocks: nothing to go on with");
}

/// Every message of either side is lost once, one in each run.
#[test]
fn any_one_message_may_be_lost() {
    for known in [false, true] {
        lost_in_turn(|| {
            let mut world = if known { acquainted(BurstOptions::RFC9177) } else { World::new(BurstOptions::RFC9177) };
            world = world.serving(body(25 * 16 - 3));
            world.ask(&get(BlockSize::B16));
            world
        });
    }
}

/// The sets follow each other although nothing but the first request arrives, one drawn pause apart.
#[test]
fn without_any_go_on_the_sets_are_one_pause_apart() {
    let mut world = acquainted(BurstOptions::RFC9177).serving(body(45 * 16));
    world.up.lost = |number, _| number > 1;
    world.ask(&get(BlockSize::B16));
    world.run(at(20_000));
    assert_eq!(world.answer().2, body(45 * 16));
    let starts: Vec<u64> =
        [":0/1", ":10/1", ":20/1", ":30/1", ":40/1"].map(|block| world.when(SERVER, block)[0]).to_vec();
    let pauses: Vec<u64> = starts.iter().zip(&starts[1..]).map(|(one, next)| next - one).collect();
    assert!((2_000..=3_000).contains(&pauses[0]), "{pauses:?}");
    assert!(pauses.iter().all(|pause| pause.abs_diff(pauses[0]) <= 1), "drawn once for the body: {pauses:?}");
    assert_eq!(world.when(CLIENT, "QB2:10/1").len(), 1, "it was asked for, in vain");
}

/// Gaps are told with the first block of the next set.
#[test]
fn gaps_are_filled_before_the_body_goes_on() {
    let mut world = acquainted(BurstOptions::RFC9177).serving(body(25 * 16));
    // The acquaintance was message 0 downwards; 1 to 10 are the first set.
    world.down.lost = |number, _| matches!(number, 3 | 8);
    world.ask(&get(BlockSize::B16));
    world.run(at(30_000));
    assert_eq!(world.answer().2, body(25 * 16));
    let said = world.said(CLIENT);
    assert_eq!(said[1], "NON 0.01 QB2:2/0 QB2:7/0", "{said:?}");
    let blocks = world.said(SERVER);
    assert_eq!(blocks[20..22], ["NON 2.05 QB2:2/1", "NON 2.05 QB2:7/1"], "{blocks:?}");
    let asked = world.when(CLIENT, "QB2:2/0")[0];
    let paused = world.when(SERVER, "QB2:10/1")[0];
    assert_eq!(asked, paused + 50, "with the first block of the next set");
}

/// Nothing comes any more: complaints after 4, 8, 16, 32 s, and the end after 64 more (NON_MAX_RETRANSMIT).
#[test]
fn a_server_that_falls_silent_is_asked_four_times() {
    let mut world = acquainted(BurstOptions::RFC9177).serving(body(25 * 16));
    world.down.lost = |number, _| number > 5;
    world.application = no_longer_than_a_day(body(25 * 16));
    world.ask(&get(BlockSize::B16));
    world.run(at(1_000_000));
    let start = world.when(SERVER, "QB2:4/1")[0] + 50;
    let asked = world.when(CLIENT, "QB2:5/0");
    assert_eq!(asked, [4, 12, 28, 60].map(|seconds| start + seconds * 1_000));
    let (when, why) = world.failure();
    assert_eq!((when, why), (at(start + 124_000), BurstFailure::Incomplete));
    assert_eq!(world.client.transfers(), 0);
}

/// Nothing came at all: the request is repeated in the same way.
#[test]
fn a_server_that_never_answers_is_asked_five_times() {
    let mut world = acquainted(BurstOptions::RFC9177);
    world.down.lost = |_, _| true;
    world.ask(&get(BlockSize::B16));
    let start = world.now;
    world.run(at(1_000_000));
    let asked = world.when(CLIENT, "QB2:0/1");
    let from = start.as_micros() / 1_000;
    assert_eq!(asked, [0, 4, 12, 28, 60].map(|seconds| from + seconds * 1_000));
    assert_eq!(world.failure(), (at(from + 124_000), BurstFailure::Silent));
}

/// Part of a body is kept as long as it is fresh, 60 s if nothing else is said, and no longer than NON_PARTIAL_TIMEOUT.
#[test]
fn part_of_a_body_is_dropped_when_it_is_no_longer_fresh() {
    let patient = BurstParameters { repeats: 200, ..BurstParameters::RFC9177 };
    let options = BurstOptions { parameters: patient, ..BurstOptions::RFC9177 };
    for (max_age, kept) in [(None, 60_000), (Some(vec![30]), 30_000), (Some(vec![1, 0, 0, 0]), 247_000)] {
        let mut world = acquainted(options);
        world.down.lost = |number, _| number > 5;
        let answer: Vec<(u16, Vec<u8>)> = max_age.into_iter().map(|age| (number::MAX_AGE, age)).collect();
        world.application = Box::new(move |_, _| (Code::CONTENT, answer.clone(), body(400)));
        world.ask(&get(BlockSize::B16));
        world.run(at(1_000_000));
        let last = world.when(SERVER, "QB2:4/1")[0] + 50;
        assert_eq!(world.failure(), (at(last + kept), BurstFailure::Incomplete));
    }
}

#[test]
fn order_does_not_matter() {
    let mut world = acquainted(BurstOptions::RFC9177).serving(body(40 * 16));
    // Within a set and across its end.
    world.down.late = |number| (number as u64 * 7 % 11) * 20;
    world.up.late = |number| (number as u64 * 5 % 3) * 300;
    world.ask(&get(BlockSize::B16));
    world.run(at(60_000));
    assert_eq!(world.answer().2, body(40 * 16));
}

/// The resource changes while it is fetched, and what is kept is dropped: a new ETag, and everything anew.
#[test]
fn another_etag_makes_what_came_before_stale() {
    let mut world = acquainted(BurstOptions::RFC9177);
    let version = Rc::new(Cell::new(1_u8));
    let now = Rc::clone(&version);
    world.application = Box::new(move |_, _| (Code::CONTENT, Vec::new(), vec![now.get(); 400]));
    world.down.lost = |number, _| matches!(number, 3);
    world.ask(&get(BlockSize::B16));
    world.run(at(1_100));
    version.set(2);
    world.restart_server();
    world.run(at(60_000));
    assert_eq!(world.answer().2, vec![2; 400]);
    assert_eq!(world.asked, 3 + 1, "acquaintance, first version, second for what was missing, and whole");
}

#[test]
fn a_body_that_never_stays_the_same_is_given_up() {
    let mut world = acquainted(BurstOptions::RFC9177);
    let mut version = 0_u8;
    world.application = Box::new(move |_, _| {
        version += 1;
        (Code::CONTENT, Vec::new(), vec![version; 400])
    });
    world.down.lost = |number, _| number % 3 == 1;
    // What is kept lasts no longer than a moment.
    world.server_options(BurstOptions {
        parameters: BurstParameters { lifetime: Span::from_millis(1_000), ..BurstParameters::RFC9177 },
        ..BurstOptions::RFC9177
    });
    world.ask(&get(BlockSize::B16));
    world.run(at(500_000));
    assert_eq!(world.failure().1, BurstFailure::Unstable);
}

/// The same bytes asked for again are the same representation, under the same ETag.
#[test]
fn the_same_bytes_keep_their_etag() {
    let mut world = World::new(BurstOptions::RFC9177).serving(body(400));
    let mut etags = Vec::new();
    for _ in 0..2 {
        world.ask(&get(BlockSize::B16));
        world.run(world.now.after(Span::from_secs(5)));
        let Some((_, End::Done(Whole { options, body: bytes, .. }))) = world.told.pop() else { panic!() };
        assert_eq!(bytes, body(400));
        etags.push(options.get(number::ETAG).unwrap().to_vec());
    }
    assert_eq!(etags[0], etags[1]);
    assert_eq!(world.server.bodies(), 1);
}

#[test]
fn a_server_may_choose_smaller_blocks() {
    let mut world = World::new(BurstOptions::RFC9177).serving(body(1_000));
    world.server_options(BurstOptions { size: BlockSize::B64, ..BurstOptions::RFC9177 });
    world.ask(&get(BlockSize::B512));
    world.run(at(10_000));
    assert_eq!(world.answer().2, body(1_000));
    assert_eq!(world.down.sent, 16);
}

#[test]
fn an_error_is_an_answer() {
    let mut world = World::new(BurstOptions::RFC9177);
    world.application = Box::new(|_, _| (Code::NOT_FOUND, Vec::new(), b"no such thing".to_vec()));
    world.ask(&get(BlockSize::B16));
    world.run(at(1_000));
    let (_, code, bytes) = world.answer();
    assert_eq!((code, &bytes[..]), (Code::NOT_FOUND, &b"no such thing"[..]));
}

#[test]
fn a_body_longer_than_allowed_is_not_begun() {
    let mut options = BurstOptions::RFC9177;
    options.limits.body = 300;
    let mut world = World::new(options);
    world.server_options(BurstOptions::RFC9177);
    world.ask(&get(BlockSize::B64));
    world.run(at(1_000));
    assert_eq!(world.failure().1, BurstFailure::TooLarge { limit: 300 });
}

/// Kept for NON_PARTIAL_TIMEOUT after it was last of use, then gone; the client holds nothing once it is whole.
#[test]
fn memory_is_given_back() {
    let mut world = World::new(BurstOptions::RFC9177).serving(body(50_000));
    world.ask(&get(BlockSize::B512));
    world.run(at(20_000));
    assert_eq!(world.answer().2.len(), 50_000);
    assert!(world.server.memory() > 50_000);
    assert!(world.client.memory() < 2_304, "{}", world.client.memory());
    let last = world.sent.iter().rev().find(|sent| sent.from == SERVER).unwrap().at;
    world.run(last.after(Span::from_secs(248)));
    assert_eq!((world.server.bodies(), world.server.memory() < 2_200), (0, true));
}

/// Asks for the freshness of a day, so that nothing but silence ends a transfer.
fn no_longer_than_a_day(bytes: Vec<u8>) -> super::world::Application {
    Box::new(move |_, _| (Code::CONTENT, vec![(number::MAX_AGE, vec![1, 0x51, 0x80])], bytes.clone()))
}

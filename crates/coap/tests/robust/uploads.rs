//! Bodies in the requests (Q-Block1).

use alloc::{boxed::Box, vec::Vec};

use std::cell::RefCell;
use std::rc::Rc;

use crate::block::BlockSize;
use crate::block::robust::{BurstFailure, BurstOptions, BurstParameters, End, read_missing_blocks};
use crate::message::{Code, Kind, number};
use millpond_control::Span;

use super::world::{BurstAsk, CLIENT, SERVER, World, at, body, lost_in_turn};

const OPTIONS: [(u16, &[u8]); 2] = [(number::URI_PATH, b"store"), (number::CONTENT_FORMAT, b"")];

fn put(bytes: &[u8]) -> BurstAsk<'_> {
    BurstAsk { code: Code::PUT, options: &OPTIONS, body: bytes, size: BlockSize::B16 }
}

/// A server that stores what it gets, and what it got.
fn storing(options: BurstOptions) -> (World, Rc<RefCell<Vec<Vec<u8>>>>) {
    let mut world = World::new(options);
    let stored = Rc::new(RefCell::new(Vec::new()));
    let store = Rc::clone(&stored);
    world.application = Box::new(move |code, bytes| match code {
        Code::PUT => {
            store.borrow_mut().push(bytes.to_vec());
            (Code::CHANGED, Vec::new(), Vec::new())
        }
        _ => (Code::NOT_FOUND, Vec::new(), Vec::new()),
    });
    (world, stored)
}

/// The same, and the client knows that the server takes bursts.
fn acquainted() -> (World, Rc<RefCell<Vec<Vec<u8>>>>) {
    let (mut world, stored) = storing(BurstOptions::RFC9177);
    world.ask(&put(&body(20)));
    world.run(at(2_000));
    assert_eq!(world.answer().1, Code::CHANGED);
    stored.borrow_mut().clear();
    world.forget();
    world.asked = 0;
    (world, stored)
}

#[test]
fn a_body_leaves_set_by_set() {
    let (mut world, stored) = storing(BurstOptions::RFC9177);
    world.ask(&put(&body(25 * 16 - 5)));
    world.run(at(10_000));
    let (when, code, ..) = world.answer();
    assert_eq!(code, Code::CHANGED);
    assert_eq!(*stored.borrow(), [body(25 * 16 - 5)]);
    assert_eq!(when, at(4 * 100), "the probe, two sets that are gone on from, and the last one");
    assert_eq!(world.said(SERVER)[1..], ["NON 2.31 QB1:9/1", "NON 2.31 QB1:19/1", "NON 2.04 QB2:0/0"]);
    let payloads: Vec<_> = world.sent.iter().filter(|sent| sent.from == CLIENT).map(|sent| sent.message()).collect();
    assert_eq!(payloads.len(), 26);
    assert_eq!((payloads[0].kind, payloads[0].code), (Kind::Confirmable, Code::GET), "does it know bursts?");
    let tag = payloads[1].option(number::REQUEST_TAG).unwrap();
    let mut tokens: Vec<Vec<u8>> = Vec::new();
    for payload in &payloads[1..] {
        assert_eq!((payload.kind, payload.code), (Kind::NonConfirmable, Code::PUT));
        assert_eq!(payload.option(number::REQUEST_TAG), Some(tag));
        assert_eq!(payload.option(number::SIZE1), Some(&[1, 139][..]));
        tokens.push(payload.token.as_bytes().to_vec());
    }
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 25, "each payload has a token of its own");
}

#[test]
fn bodies_have_tags_of_their_own() {
    let (mut world, _) = acquainted();
    let mut tags = Vec::new();
    for _ in 0..2 {
        world.ask(&put(&body(40)));
        world.run(world.now.after(Span::from_secs(5)));
        assert_eq!(world.answer().1, Code::CHANGED);
        tags.push(world.sent[0].message().option(number::REQUEST_TAG).unwrap().to_vec());
        world.forget();
    }
    assert_ne!(tags[0], tags[1]);
}

/// Every message of either side is lost once, one in each run, and the body is stored once.
#[test]
fn any_one_message_may_be_lost() {
    for known in [false, true] {
        lost_in_turn(|| {
            let (mut world, _) = if known { acquainted() } else { storing(BurstOptions::RFC9177) };
            world.ask(&put(&body(25 * 16 - 5)));
            world
        });
    }
}

/// The first payload of the next set shows the gaps; they are filled before the body goes on.
#[test]
fn gaps_are_told_with_the_next_set() {
    let (mut world, stored) = acquainted();
    // The acquaintance took three messages upwards.
    let first = world.up.sent;
    assert_eq!(first, 3);
    world.up.lost = |number, _| matches!(number, 4 | 12);
    world.ask(&put(&body(12 * 16)));
    world.run(at(60_000));
    assert_eq!(world.answer().1, Code::CHANGED);
    assert_eq!(*stored.borrow(), [body(12 * 16)]);
    let complaint = world.sent.iter().find(|sent| sent.from == SERVER).unwrap().message();
    assert_eq!(complaint.code, Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(complaint.option(number::CONTENT_FORMAT), Some(&[1, 16][..]));
    assert_eq!(read_missing_blocks(complaint.payload()).unwrap(), [1, 9]);
    let said = world.said(CLIENT);
    assert_eq!(
        said[10..],
        ["QB1:10/1", "QB1:11/0", "QB1:1/1", "QB1:9/1"].map(|block| format!("NON 0.03 {block} QB2:0/1"))
    );
    let last = world.sent.iter().rev().find(|sent| sent.from == SERVER).unwrap();
    let newest = world.sent.iter().rev().find(|sent| sent.from == CLIENT).unwrap();
    assert_eq!(last.message().token, newest.message().token, "the token of what came last");
}

/// A set of which the end is lost, and no later one: 4.08 after NON_RECEIVE_TIMEOUT, and doubling.
#[test]
fn a_client_that_falls_silent_is_told_four_times_what_is_missing() {
    let (mut world, stored) = acquainted();
    world.up.lost = |number, _| number >= 3 + 2;
    world.ask(&put(&body(5 * 16)));
    let start = world.now.as_micros() / 1_000 + 50;
    world.run(at(start + 123_999));
    let told = world.when(SERVER, "4.08 [2, 3, 4]");
    assert_eq!(told, [4, 12, 28, 60].map(|seconds| start + seconds * 1_000));
    assert_eq!(world.server.bodies(), 1 + 1, "that of the acquaintance, and part of this one");
    world.run(at(start + 124_000));
    assert_eq!(world.server.bodies(), 1, "after NON_MAX_RETRANSMIT complaints");
    assert!(stored.borrow().is_empty());
}

/// However patient a server is: part of a body is kept for NON_PARTIAL_TIMEOUT after its last payload.
#[test]
fn part_of_a_body_is_dropped_after_its_lifetime() {
    let patient = BurstParameters { repeats: 200, ..BurstParameters::RFC9177 };
    let (mut world, _) = storing(BurstOptions { parameters: patient, ..BurstOptions::RFC9177 });
    world.up.lost = |number, _| number >= 3;
    world.ask(&put(&body(5 * 16)));
    world.run(at(2_000));
    let last = world.when(CLIENT, "QB1:1/1")[0] + 50;
    world.run(at(last + 246_999));
    assert_eq!(world.server.bodies(), 1);
    assert_eq!(world.when(SERVER, "4.08").len(), 5, "after 4, 12, 28, 60 and 124 s");
    world.run(at(last + 247_000));
    assert_eq!(world.server.bodies(), 0);
}

/// The answer is lost: the last payload is repeated and answered as if it were new, and nothing is done twice.
#[test]
fn a_lost_answer_is_made_good() {
    let (mut world, stored) = acquainted();
    let answers = world.down.sent;
    assert_eq!(answers, 2);
    world.down.lost = |number, _| number == 2;
    world.ask(&put(&body(5 * 16)));
    world.run(at(60_000));
    assert_eq!(world.answer().1, Code::CHANGED);
    assert_eq!(stored.borrow().len(), 1);
    assert_eq!(world.said(CLIENT).last().unwrap(), "NON 0.03 QB1:4/0 QB2:0/1");
    assert_eq!(
        world.when(CLIENT, "QB1:4/0"),
        [world.when(CLIENT, "QB1:4/0")[0], world.when(CLIENT, "QB1:4/0")[0] + 4_000]
    );
}

/// Nothing comes back for a body: the last payload is repeated four times; then the next body waits as PROBING_RATE and
/// NON_PROBING_WAIT have it.
#[test]
fn a_server_that_never_answers_is_left_alone() {
    // From the first byte on that nothing came back for, 124 s before.
    for (rate, least, most) in [(1, 123, 123), (4, 1, 50), (100, 0, 0)] {
        let options = BurstOptions { probing_rate: rate, ..BurstOptions::RFC9177 };
        let (mut world, _) = storing(options);
        world.ask(&put(&body(20)));
        world.run(at(2_000));
        world.forget();
        world.down.lost = |_, _| true;
        world.ask(&put(&body(5 * 16)));
        let start = world.now.as_micros() / 1_000;
        world.run(at(1_000_000));
        let last = world.when(CLIENT, "QB1:4/0");
        assert_eq!(last, [0, 4, 12, 28, 60].map(|seconds| start + seconds * 1_000));
        let (when, why) = world.failure();
        assert_eq!((when, why), (at(start + 124_000), BurstFailure::Silent));
        world.forget();
        world.now = when;
        world.down.lost = |_, _| false;
        world.ask(&put(&body(5 * 16)));
        world.run(at(2_000_000));
        let waited = world.sent[0].at.since(when).as_micros() / 1_000_000;
        assert!((least..=most).contains(&waited), "{waited} s at {rate} byte/s");
        assert_eq!(world.answer().1, Code::CHANGED);
    }
}

/// Who gives up forgets its tokens: the server's complaint draws a reset, and the server drops what it has (§4.3).
#[test]
fn giving_up_tells_the_server() {
    let (mut world, stored) = acquainted();
    let bodies = world.server.bodies();
    let id = world.ask(&put(&body(30 * 16)));
    // The second set is on its way.
    world.run(world.now.after(Span::from_millis(120)));
    assert!(world.client.cancel(id));
    assert!(!world.client.cancel(id));
    world.run(at(60_000));
    assert_eq!(world.said(CLIENT).last().unwrap(), "RST 0.00");
    assert_eq!((world.server.bodies(), stored.borrow().len()), (bodies, 0));
    assert!(world.told.is_empty());
    assert_eq!(world.client.transfers(), 0);
}

/// A long body both ways: the answer comes in bursts once the body is whole.
#[test]
fn a_long_answer_to_a_long_body() {
    lost_in_turn(|| {
        let mut world = World::new(BurstOptions::RFC9177);
        world.application = Box::new(|code, bytes| match code {
            Code::FETCH => (Code::CONTENT, Vec::new(), bytes.iter().rev().copied().collect()),
            _ => (Code::NOT_FOUND, Vec::new(), Vec::new()),
        });
        world.ask(&BurstAsk { code: Code::FETCH, ..put(&body(23 * 16)) });
        world
    });
    let mut world = World::new(BurstOptions::RFC9177).serving(body(23 * 16));
    world.ask(&BurstAsk { code: Code::FETCH, ..put(&body(23 * 16)) });
    world.run(at(60_000));
    assert_eq!((world.up.sent, world.down.sent), (1 + 23 + 2, 1 + 2 + 23), "nothing twice");
}

#[test]
fn a_short_body_goes_in_one_request_and_its_answer_may_be_long() {
    lost_in_turn(|| {
        let mut world = World::new(BurstOptions::RFC9177).serving(body(23 * 16));
        world.ask(&BurstAsk { code: Code::POST, ..put(&body(16)) });
        world
    });
}

#[test]
fn a_body_longer_than_the_server_takes_is_refused_at_once() {
    let (mut world, _) = acquainted();
    let mut options = BurstOptions::RFC9177;
    options.limits.body = 100;
    world.server_options(options);
    world.ask(&put(&body(25 * 16)));
    world.run(at(60_000));
    assert_eq!(world.answer().1, Code::REQUEST_ENTITY_TOO_LARGE);
    let refusal = world.sent.iter().find(|sent| sent.from == SERVER).unwrap().message();
    assert_eq!(refusal.option(number::SIZE1), Some(&[100][..]));
    assert_eq!((world.server.bodies(), world.client.transfers()), (0, 0));
}

/// A server that restarts in the middle knows nothing of what came before: the payloads that follow begin the body
/// there, and what is missing is asked for.
#[test]
fn a_server_that_restarts_in_the_middle_gets_the_body_all_the_same() {
    let (mut world, stored) = acquainted();
    world.ask(&put(&body(30 * 16)));
    world.run(world.now.after(Span::from_millis(120)));
    assert_eq!(world.when(CLIENT, "QB1:19/1").len(), 1);
    assert_eq!(world.when(CLIENT, "QB1:20/1").len(), 0);
    world.restart_server();
    world.run(at(60_000));
    assert_eq!(world.answer().1, Code::CHANGED);
    assert_eq!(*stored.borrow(), [body(30 * 16)]);
}

/// 4.08 without a list: begun anew once, and then no more in bursts.
#[test]
fn a_body_that_is_dropped_twice_is_not_sent_in_bursts_any_more() {
    let (mut world, _) = acquainted();
    world.up.lost = |number, _| number > 3;
    world.ask(&put(&body(25 * 16)));
    for id in [1, 2] {
        world.run(world.now.after(Span::from_millis(10)));
        assert!(world.told.is_empty());
        let newest = world.sent.iter().rev().find(|sent| sent.from == CLIENT).unwrap();
        let token = newest.message().token;
        assert!(newest.summary().starts_with("NON 0.03 QB1:9/1"), "{}", newest.summary());
        let head = [0x50 | token.len() as u8, Code::REQUEST_ENTITY_INCOMPLETE.to_byte(), 0xff, id];
        world.inject(CLIENT, &[&head[..], token.as_bytes()].concat());
    }
    world.run(world.now.after(Span::from_millis(10)));
    assert!(matches!(world.told[..], [(_, End::Unsupported)]), "{:?}", world.told);
}

#[test]
fn order_does_not_matter() {
    let (mut world, stored) = acquainted();
    world.up.late = |number| (number as u64 * 7 % 11) * 20;
    world.down.late = |number| (number as u64 * 5 % 3) * 300;
    world.ask(&put(&body(40 * 16)));
    world.run(at(60_000));
    assert_eq!(world.answer().1, Code::CHANGED);
    assert_eq!(*stored.borrow(), [body(40 * 16)]);
}

/// What was stored and its answer are forgotten after NON_PARTIAL_TIMEOUT.
#[test]
fn memory_is_given_back() {
    let (mut world, _) = acquainted();
    world.ask(&BurstAsk { size: BlockSize::B512, ..put(&body(50_000)) });
    world.run(at(60_000));
    assert_eq!(world.answer().1, Code::CHANGED);
    assert!(world.client.memory() < 2_304, "{}", world.client.memory());
    assert!(world.server.memory() < 3_000, "{}", world.server.memory());
    world.run(at(400_000));
    assert_eq!(world.server.bodies(), 0);
}

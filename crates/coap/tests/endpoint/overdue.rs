//! An answer to the last copy that is awaited for longer than the wait after it, as the controller wishes.

use millpond_coap::message::Kind;
use millpond_coap::{
    Config, Endpoint, Event, IdGenerator, Lifetimes, Output, RetransmitOptions, SleepReason, Transmission,
};
use millpond_control::{ChanceSeed, Controller, Instant, PeerController, Span, Wishes};

use crate::pair::{Pair, SECOND, Side, get, steady};
use crate::session::Wishing;

/// Copies leave after 0, 2.5, 7.5, 17.5 and 37.5 s; the last one's wait is over after 77.5 s.
const OVER: u64 = 77 * SECOND + SECOND / 2;
/// Answers are awaited for 60 to 90 s after the last copy, so until 97.5 s at least and 127.5 s at most.
const WISHES: Wishes = Wishes { last_wait: Span::from_secs(60), ..Wishes::NONE };

/// A pair of which the first `lost` datagrams get lost.
fn pair(change: impl Fn(Side, &mut Config), lost: usize) -> Pair {
    Pair::new(change).losing(0..lost).wishing(WISHES)
}

/// One whose only request is overdue, which its log says.
fn overdue(change: impl Fn(Side, &mut Config)) -> Pair {
    let mut pair = pair(change, 5);
    pair.get();
    pair.run_until(OVER);
    assert_eq!(pair.take_log().last().unwrap(), "77.5 C is overdue");
    assert_eq!((pair.client.overdue(Side::Server), pair.client.exchanges()), (1, 1));
    pair
}

#[test]
fn an_answer_in_the_last_wait_is_one() {
    let mut pair = pair(|_, _| {}, 4);
    pair.delays.insert(4, 50 * SECOND);
    pair.get();
    pair.run_until(OVER);
    pair.take_log();
    pair.run();
    pair.happened(&[
        "87.5 S has CON GET 0",
        "87.5 S sends ACK Content 0",
        "87.55 C gets ACK Content 0: Piggybacked after 87.55 s, 5 copies",
    ]);
    assert_eq!(pair.client.overdue(Side::Server), 0);
}

#[test]
fn an_acknowledgement_in_the_last_wait_is_one() {
    let mut pair = overdue(|_, _| {});
    pair.run_until(80 * SECOND);
    pair.inject(Side::Client, b"\x60\x00\x00\x00");
    assert_eq!(pair.client.overdue(Side::Server), 0);
    // It no longer counts for NSTART, and nothing makes way any more.
    pair.get();
    let log = pair.take_log();
    assert!(log[0].starts_with("80 C is acknowledged"), "{log:?}");
    assert_eq!(log[1..], ["80 C sends CON GET 1"]);
}

#[test]
fn what_is_to_leave_takes_its_place_at_once() {
    let mut pair = overdue(|_, _| {});
    pair.run_until(80 * SECOND);
    pair.get();
    pair.happened(&["80 C fails: GaveUp", "80 C sends CON GET 1"]);
    assert_eq!(pair.client.counters().failed.gave_up, 1);
}

#[test]
fn a_ping_takes_its_place_as_well() {
    let mut pair = overdue(|_, _| {});
    pair.client.ping(Instant::from_micros(OVER), Side::Server).unwrap();
    pair.drain(Side::Client);
    pair.happened(&["77.5 C fails: GaveUp", "77.5 C sends CON 1"]);
}

#[test]
fn what_waits_already_leaves_when_the_controllers_wait_is_over() {
    let mut pair = pair(|_, _| {}, 5);
    pair.get();
    pair.get();
    pair.run_until(OVER);
    assert_eq!(pair.take_log()[5..], ["77.5 C fails: GaveUp", "77.5 C sends CON GET 1"]);
}

#[test]
fn it_ends_within_what_is_wished_and_half_more() {
    let mut ends: Vec<u64> = (0..20).map(ends_with).collect();
    ends.sort_unstable();
    ends.dedup();
    assert!(ends.len() > 10 && ends[0] >= 97_500_000 && ends[ends.len() - 1] <= 127_500_000, "{ends:?}");
}

/// When a request that nobody answers fails, with this seed.
fn ends_with(seed: u64) -> u64 {
    let controller = PeerController::own(Wishing { inner: steady(), wishes: WISHES });
    let chance = ChanceSeed::new(seed);
    let mut client = Endpoint::new(Config::default(), controller, chance, 0, IdGenerator::counted()).unwrap();
    let mut now = Instant::ORIGIN;
    client.request(now, 0_u8, &get()).unwrap();
    let mut is_overdue = false;
    loop {
        match client.poll(now) {
            Output::Event(Event::Overdue { to: 0, .. }) => is_overdue = true,
            Output::Event(Event::Failed { copies: 5, .. }) if is_overdue => return now.as_micros(),
            Output::Event(event) => panic!("{event:?}"),
            Output::Sleep(until, reason) => {
                assert_eq!(reason == SleepReason::Overdue, is_overdue);
                now = until;
            }
            Output::Transmit(_) => {}
            Output::Idle => panic!("it never ends"),
        }
    }
}

#[test]
fn a_free_place_is_taken_first() {
    let mut pair = overdue(|_, config| config.transmission.nstart = 2);
    pair.get();
    pair.happened(&["77.5 C sends CON GET 1"]);
    pair.get();
    pair.happened(&["77.5 C fails: GaveUp", "77.5 C sends CON GET 2"]);
    pair.get();
    pair.happened(&[]);
}

#[test]
fn it_makes_way_where_there_is_but_one_place_or_one_token() {
    for change in [
        |_, config: &mut Config| config.limits.exchanges_per_peer = 1,
        |_, config: &mut Config| (config.token_length, config.transmission.nstart) = (0, 4),
    ] {
        let mut pair = overdue(change);
        pair.get();
        pair.happened(&["77.5 C fails: GaveUp", "77.5 C sends CON GET 1"]);
    }
}

/// Of 60 s for four retransmissions, as of a wait that doubles: 3.75 s for none, 7.5 s for one, 15 s for two, up to half more.
#[test]
fn who_wants_fewer_copies_knows_sooner() {
    for (copies, last, least) in [(0, 0, 3_750_000), (1, 2_500_000, 7_500_000), (2, 7_500_000, 15_000_000)] {
        let mut pair = pair(|_, _| {}, 3);
        let retransmit = RetransmitOptions { max_retransmit: Some(copies), ..RetransmitOptions::DEFAULT };
        pair.ask(&get().with_retransmit(retransmit)).unwrap();
        pair.run();
        let log = pair.take_log();
        assert!(log.last().unwrap().ends_with("C fails: GaveUp"), "{log:?}");
        assert!((last + least..=last + least * 3 / 2).contains(&pair.now), "{copies}: {} µs", pair.now);
    }
}

#[test]
fn it_can_be_cancelled() {
    let mut pair = pair(|_, _| {}, 5);
    let id = pair.get();
    pair.run_until(OVER);
    pair.take_log();
    assert!(pair.cancel(id));
    pair.happened(&["77.5 C fails: Cancelled"]);
    assert_eq!(pair.client.overdue(Side::Server), 0);
}

#[test]
fn another_controller_changes_nothing_about_it() {
    let mut pair = overdue(|_, _| {});
    pair.client.set_controller(Instant::from_micros(OVER), Side::Server, steady()).unwrap();
    pair.drain(Side::Client);
    pair.get();
    pair.happened(&["77.5 C fails: GaveUp", "77.5 C sends CON GET 1"]);
}

#[test]
fn only_requests_are_ever_overdue() {
    // A separate response that nobody acknowledges: the request, its acknowledgement, and no copy gets through.
    let mut pair = Pair::new(|_, config| config.ack_delay = Span::ZERO).losing(2..7);
    let controller = PeerController::own(Wishing { inner: steady(), wishes: WISHES });
    pair.server.set_controller(Instant::ORIGIN, Side::Client, controller).unwrap();
    pair.drain(Side::Server);
    pair.answer = Kind::Confirmable;
    pair.get();
    pair.run_until(OVER + SECOND);
    assert_eq!(pair.take_log().last().unwrap(), "77.55 S has not delivered: GaveUp");
}

#[test]
fn peers_that_share_a_path_are_given_up_as_ever() {
    let controller = PeerController::own(Wishing { inner: steady(), wishes: WISHES });
    let mut client = Endpoint::new(Config::default(), controller, ChanceSeed::new(1), 0, IdGenerator::counted())
        .unwrap()
        .sharing_paths(|_: &u8| 0);
    let mut now = Instant::ORIGIN;
    client.request(now, 0, &get()).unwrap();
    loop {
        match client.poll(now) {
            Output::Event(Event::Failed { .. }) => break,
            Output::Event(event) => panic!("{event:?}"),
            Output::Sleep(until, _) => now = until,
            Output::Transmit(_) | Output::Idle => {}
        }
    }
    assert_eq!(now.as_micros(), OVER);
}

#[test]
fn lifetimes_last_as_long() {
    let transmission = Transmission { max_retransmit: 0, max_latency: Span::ZERO, ..Transmission::RFC7252 };
    let with = |wishes| Lifetimes::of(&Wishing { inner: steady(), wishes }, &transmission);
    assert_eq!(with(Wishes::NONE).exchange, u64::from(steady().longest_wait(0, Span::ZERO).as_micros()));
    assert_eq!((with(WISHES).transmit_wait, with(WISHES).exchange), (90 * SECOND / 16, 90 * SECOND / 16));
    let transmission = Transmission { max_retransmit: 4, max_latency: Span::ZERO, ..transmission };
    let lifetimes = Lifetimes::of(&Wishing { inner: steady(), wishes: WISHES }, &transmission);
    assert_eq!(lifetimes.transmit_wait - lifetimes.transmit_span, 90 * SECOND);
}

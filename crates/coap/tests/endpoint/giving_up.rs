//! When copies leave and when nobody hopes any more (RFC 7252 §4.2).

use millpond_coap::{Cause, Config, Endpoint, Event, Failure, IdGenerator, Output};
use millpond_control::{AnyController, ChanceSeed, Instant, Preset, Purpose, Reason, SettingValue, Span};

use crate::pair::{Pair, Side, get, steady};

/// The times of all copies and of the failure, in microseconds, of a request that nobody answers, with the reasons of
/// the waits.
fn unanswered(controller: AnyController, max_retransmit: u8, seed: u64) -> (Vec<u64>, Vec<Reason>, u64) {
    let mut config = Config::default();
    config.transmission.max_retransmit = max_retransmit;
    let mut client = Endpoint::new(config, controller, ChanceSeed::new(seed), 9, IdGenerator::counted()).unwrap();
    let mut now = Instant::ORIGIN;
    let id = client.request(now, 0_u8, &get()).unwrap();
    let (mut copies, mut reasons, mut armed) = (Vec::new(), Vec::new(), Instant::ORIGIN);
    loop {
        match client.poll(now) {
            Output::Transmit(transmit) => {
                let Cause::Exchange { id: of, copy, wait } = transmit.cause else { panic!("{:?}", transmit.cause) };
                assert_eq!((of, usize::from(copy)), (id, copies.len()));
                copies.push(now.as_micros());
                reasons.push(wait.reason);
                armed = now.after(wait.span);
            }
            Output::Sleep(until, _) => {
                assert_eq!(until, armed, "the wait is the controller's");
                now = until;
            }
            Output::Event(Event::Failed { why: Failure::GaveUp, .. }) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(client.poll(now), Output::Idle));
    (copies, reasons, now.as_micros())
}

const HALF: u64 = 500_000;

#[test]
fn with_the_middle_of_the_dither() {
    // The word of the first copy of the first message to the first peer decides; look for one in the middle.
    let (low, high) = (Span::from_secs(2), Span::from_secs(3));
    let is_middle = |seed: &u64| {
        let word = ChanceSeed::new(*seed).at(Purpose::Dither, [9, 0, 0, 0]);
        word.between(low, high) == Span::from_millis(2_500)
    };
    let seed = (0..).find(is_middle).unwrap();
    let (copies, reasons, gave_up) = unanswered(Preset::RFC7252.build(), 4, seed);
    assert_eq!(copies, [0, 5 * HALF, 15 * HALF, 35 * HALF, 75 * HALF]);
    assert_eq!(gave_up, 155 * HALF);
    assert_eq!(reasons[0], Reason::Initial);
    assert!(reasons[1..].iter().all(|reason| *reason == Reason::BackedOff));
}

#[test]
fn with_a_cap_and_more_copies() {
    let mut controller = steady();
    controller.set("max-wait", SettingValue::Time(Span::from_secs(60))).unwrap();
    let (copies, _, gave_up) = unanswered(controller, 20, 0);
    let waits: Vec<u64> = copies.windows(2).map(|pair| (pair[1] - pair[0]) / HALF).collect();
    assert_eq!(waits[..6], [5, 10, 20, 40, 80, 120]);
    assert!(waits[6..].iter().all(|wait| *wait == 120));
    // The rows of RFC 7252 §4.8.2 with these settings: 977.5 s to the last copy, 1037.5 s until giving up.
    assert_eq!((copies.len(), copies[20], gave_up), (21, 1_955 * HALF, 2_075 * HALF));
}

#[test]
fn without_retransmissions_there_is_still_one_wait() {
    assert_eq!(unanswered(steady(), 0, 0), (vec![0], vec![Reason::Initial], 5 * HALF));
}

#[test]
fn a_reply_after_giving_up_is_late() {
    let mut pair = Pair::usual().losing(0..5);
    pair.get();
    pair.run();
    assert_eq!(pair.now, 155 * HALF);
    pair.take_log();
    pair.inject(Side::Client, b"\x64\x45\x00\x00\0\0\0\0\xffworld");
    pair.happened(&["77.5 C is told late ACK Content 0"]);
    let counters = pair.client.counters();
    assert_eq!((counters.failed.gave_up, counters.late, counters.sent.confirmable), (1, 1, 5));
}

/// A driver that oversleeps shifts the later copies; it never sends two at once.
#[test]
fn waits_count_from_when_the_copy_really_left() {
    let mut client = Pair::usual().client;
    client.request(Instant::ORIGIN, Side::Server, &get()).unwrap();
    while !matches!(client.poll(Instant::ORIGIN), Output::Sleep(..)) {}
    let late = Instant::from_micros(100 * HALF);
    assert!(matches!(client.poll(late), Output::Transmit(_)));
    let Output::Sleep(until, _) = client.poll(late) else { panic!("not asleep") };
    assert_eq!(until.as_micros(), 110 * HALF);
}

/// Time that goes back is taken for no time at all.
#[test]
fn time_does_not_go_back() {
    let mut client = Pair::usual().client;
    client.request(Instant::from_micros(10 * HALF), Side::Server, &get()).unwrap();
    while !matches!(client.poll(Instant::ORIGIN), Output::Sleep(..)) {}
    let Output::Sleep(until, _) = client.poll(Instant::ORIGIN) else { panic!("not asleep") };
    assert_eq!(until.as_micros(), 15 * HALF);
}

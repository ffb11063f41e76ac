//! Messages that may not leave yet: NSTART (RFC 7252 §4.7), tokens, limits, and the order among them.

use millpond_coap::message::{Code, Kind, Token};
use millpond_coap::{Config, Outgoing, Output, Refused, SleepReason};
use millpond_control::Instant;

use crate::pair::{HELLO, Pair, SECOND, Side, get};

fn with(change: impl Fn(&mut Config)) -> Pair {
    Pair::new(|_, config| change(config))
}

#[test]
fn one_at_a_time_in_the_order_of_asking() {
    let mut pair = Pair::usual();
    for _ in 0..3 {
        pair.get();
    }
    assert_eq!(pair.client.exchanges(), 3);
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.05 S sends ACK Content 0",
        "0.1 C gets ACK Content 0: Piggybacked after 0.1 s",
        "0.1 C sends CON GET 1",
        "0.15 S has CON GET 1",
        "0.15 S sends ACK Content 1",
        "0.2 C gets ACK Content 1: Piggybacked after 0.1 s",
        "0.2 C sends CON GET 2",
        "0.25 S has CON GET 2",
        "0.25 S sends ACK Content 2",
        "0.3 C gets ACK Content 2: Piggybacked after 0.1 s",
    ]);
}

#[test]
fn as_many_as_nstart_says() {
    let mut pair = with(|config| config.transmission.nstart = 2).losing([0]);
    for _ in 0..3 {
        pair.get();
    }
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0 (lost)",
        "0 C sends CON GET 1",
        "0.05 S has CON GET 1",
        "0.05 S sends ACK Content 1",
        "0.1 C gets ACK Content 1: Piggybacked after 0.1 s",
        "0.1 C sends CON GET 2",
        "0.15 S has CON GET 2",
        "0.15 S sends ACK Content 2",
        "0.2 C gets ACK Content 2: Piggybacked after 0.1 s",
        "2.5 C sends CON GET 0 #1",
        "2.55 S has CON GET 0",
        "2.55 S sends ACK Content 0",
        "2.6 C gets ACK Content 0: Piggybacked after 2.6 s, 2 copies",
    ]);
}

/// An acknowledged request is not outstanding any more, although its response is awaited.
#[test]
fn an_acknowledgement_lets_the_next_one_leave() {
    let mut pair = Pair::usual().thinking(SECOND);
    pair.get();
    pair.get();
    pair.run_until(SECOND);
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0",
        "0.6 C is acknowledged: EmptyAck after 0.6 s",
        "0.6 C sends CON GET 1",
        "0.65 S has CON GET 1",
    ]);
    pair.run();
    assert_eq!((pair.client.counters().answered, pair.server.counters().delivered), (2, 2));
}

/// Giving up, a reset and a cancellation make room as an answer does.
#[test]
fn however_one_ends_the_next_leaves() {
    let mut pair = Pair::usual().losing(0..100);
    pair.get();
    let second = pair.get();
    pair.get();
    pair.run_until(77 * SECOND);
    pair.take_log();
    pair.run_until(80 * SECOND);
    pair.happened(&["77.5 C fails: GaveUp", "77.5 C sends CON GET 1 (lost)", "80 C sends CON GET 1 #1 (lost)"]);
    assert!(pair.cancel(second));
    pair.happened(&["80 C fails: Cancelled", "80 C sends CON GET 2 (lost)"]);
    pair.get();
    pair.inject(Side::Client, b"\x70\x00\x00\x02");
    pair.happened(&["80 C fails: Reset", "80 C sends CON GET 3 (lost)"]);
}

#[test]
fn one_that_waits_can_be_cancelled() {
    let mut pair = Pair::usual();
    pair.get();
    let second = pair.get();
    pair.get();
    assert!(pair.cancel(second));
    assert!(!pair.cancel(second));
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0 C fails: Cancelled",
        "0.05 S has CON GET 0",
        "0.05 S sends ACK Content 0",
        "0.1 C gets ACK Content 0: Piggybacked after 0.1 s",
        "0.1 C sends CON GET 1",
        "0.15 S has CON GET 1",
        "0.15 S sends ACK Content 1",
        "0.2 C gets ACK Content 1: Piggybacked after 0.1 s",
    ]);
}

#[test]
fn no_more_than_may_wait() {
    let mut pair = with(|config| config.limits.waiting_per_peer = 2);
    for _ in 0..3 {
        pair.get();
    }
    assert_eq!(pair.ask(&get()), Err(Refused::TooManyWaiting { limit: 2 }));
    assert_eq!((pair.client.exchanges(), pair.client.counters().begun), (3, 3));
    pair.run();
    assert_eq!(pair.client.counters().answered, 3);
    pair.get();
}

#[test]
fn no_more_under_way_than_may_be() {
    let mut pair = with(|config| {
        config.transmission.nstart = 10;
        config.limits.exchanges_per_peer = 2;
    });
    for _ in 0..3 {
        pair.get();
    }
    pair.happened(&["0 C sends CON GET 0", "0 C sends CON GET 1"]);
}

/// Requests without a token could not be distinguished by their separate responses.
#[test]
fn without_tokens_one_request_at_a_time() {
    let mut pair = with(|config| {
        config.transmission.nstart = 10;
        config.token_length = 0;
    })
    .thinking(SECOND);
    pair.get();
    pair.get();
    pair.run_until(2 * SECOND);
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0",
        "0.6 C is acknowledged: EmptyAck after 0.6 s",
        "1.05 S sends CON Content 0",
        "1.1 C sends ACK 0",
        "1.1 C gets CON Content 0: no sample",
        "1.1 C sends CON GET 1",
        "1.15 S has delivered: EmptyAck after 0.1 s",
        "1.15 S has CON GET 1",
        "1.65 S sends ACK 1",
        "1.7 C is acknowledged: EmptyAck after 0.6 s",
    ]);
}

#[test]
fn a_token_of_the_callers_waits_while_it_is_under_way() {
    let mut pair = with(|config| config.transmission.nstart = 10);
    let token = Token::new(b"mine");
    for _ in 0..2 {
        pair.ask(&Outgoing { token, ..get() }).unwrap();
    }
    pair.ask(&get()).unwrap();
    pair.happened(&["0 C sends CON GET 0"]);
    pair.run();
    assert_eq!(pair.client.counters().answered, 3);
}

/// A separate response shares NSTART with the requests that its sender has under way itself.
#[test]
fn a_confirmable_response_waits_too_and_a_non_confirmable_one_does_not() {
    for (kind, waits) in [(Kind::Confirmable, true), (Kind::NonConfirmable, false)] {
        let mut pair = Pair::usual();
        pair.think = None;
        pair.inject(Side::Client, b"\x50\x01\x12\x34");
        let log = pair.take_log();
        assert_eq!(log, ["0 C has NON GET 4660"]);
        // One leaves, one waits.
        pair.get();
        pair.get();
        let (now, request) = (pair.now(), pair.handed.unwrap());
        pair.client.respond(now, request, &crate::pair::content(kind)).unwrap();
        pair.drain(Side::Client);
        let sent =
            if waits { &["0 C sends CON GET 0"][..] } else { &["0 C sends CON GET 0", "0 C sends NON Content 1"] };
        pair.happened(sent);
    }
}

#[test]
fn what_for_the_endpoint_sleeps_is_told() {
    let mut client = crate::pair::endpoint(0, |_| {});
    let now = Instant::ORIGIN;
    client.request(now, 2_u8, &Outgoing::non_confirmable(Code::GET, HELLO)).unwrap();
    assert_eq!(sleep(&mut client, now), (137_500_000, SleepReason::Response));
    client.request(now, 1, &get()).unwrap();
    assert_eq!(sleep(&mut client, now), (2_500_000, SleepReason::Retransmission));
    client.receive(now, 1, b"\x60\x00\x00\x00");
    assert_eq!(sleep(&mut client, now), (137_500_000, SleepReason::Response));
    client.receive(now, 1, b"\x40\x01\x00\x00");
    assert_eq!(sleep(&mut client, now), (500_000, SleepReason::Acknowledgement));
}

/// Drains; until when and what for the endpoint sleeps.
fn sleep(endpoint: &mut millpond_coap::Endpoint<u8>, now: Instant) -> (u64, SleepReason) {
    loop {
        match endpoint.poll(now) {
            Output::Sleep(until, reason) => return (until.as_micros(), reason),
            Output::Idle => panic!("idle"),
            _ => {}
        }
    }
}

//! Non-confirmable requests and responses (RFC 7252 §4.3, §5.2.3).

use millpond_coap::Outgoing;
use millpond_coap::message::{Code, Kind};

use crate::pair::{HELLO, Pair, SECOND, Side};

const ASK: Outgoing<'static> = Outgoing::non_confirmable(Code::GET, HELLO);

#[test]
fn a_request_and_its_response_without_acknowledgement() {
    let mut pair = Pair::usual();
    pair.answer = Kind::NonConfirmable;
    pair.ask(&ASK).unwrap();
    pair.run();
    pair.happened(&[
        "0 C sends NON GET 0",
        "0.05 S has NON GET 0",
        "0.05 S sends NON Content 0",
        "0.1 C gets NON Content 0: no sample",
    ]);
}

#[test]
fn the_response_may_be_confirmable() {
    let mut pair = Pair::usual();
    pair.ask(&ASK).unwrap();
    pair.run();
    pair.happened(&[
        "0 C sends NON GET 0",
        "0.05 S has NON GET 0",
        "0.05 S sends CON Content 0",
        "0.1 C sends ACK 0",
        "0.1 C gets CON Content 0: no sample",
        "0.15 S has delivered: EmptyAck after 0.1 s",
    ]);
}

/// NON_LIFETIME: 37.5 s of retransmissions, were there any, and 100 s of latency.
#[test]
fn a_lost_request_is_not_sent_again_and_fails_after_its_lifetime() {
    let mut pair = Pair::usual().losing([0]);
    pair.ask(&ASK).unwrap();
    pair.run();
    pair.happened(&["0 C sends NON GET 0 (lost)", "137.5 C fails: NoResponse"]);
}

/// A long message to a silent peer keeps its place for longer: 1 byte a second is PROBING_RATE.
#[test]
fn probing_rate_makes_long_messages_wait_longer() {
    let mut pair = Pair::usual().losing([0]);
    let payload = [0; 1_000];
    pair.ask(&ASK.with_payload(&payload)).unwrap();
    // 4 bytes of header, 4 of token, 6 of option, the marker.
    pair.run();
    pair.happened(&["0 C sends NON GET 0 (lost)", "1015 C fails: NoResponse"]);
}

/// And with NSTART of them under way it takes so many times as long; a rate of zero counts as one.
#[test]
fn probing_rate_is_shared_by_all_that_is_under_way() {
    for (rate, seconds) in [(0, 2_030), (1, 2_030), (4, 507)] {
        let mut pair = Pair::new(|_, config| {
            config.transmission.nstart = 2;
            config.transmission.probing_rate = rate;
        })
        .losing([0]);
        pair.ask(&ASK.with_payload(&[0; 1_000])).unwrap();
        pair.run();
        assert_eq!(pair.now / SECOND, seconds);
    }
}

#[test]
fn a_request_under_way_holds_the_next_one_back() {
    let mut pair = Pair::usual().losing([0]);
    pair.answer = Kind::NonConfirmable;
    pair.ask(&ASK).unwrap();
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends NON GET 0 (lost)",
        "137.5 C fails: NoResponse",
        "137.5 C sends CON GET 1",
        "137.55 S has CON GET 1",
        "137.55 S sends ACK Content 1",
        "137.6 C gets ACK Content 1: Piggybacked after 0.1 s",
    ]);
}

#[test]
fn a_copy_of_a_request_is_dropped_and_a_copy_of_a_response_is_not_delivered() {
    let mut pair = Pair::usual();
    pair.answer = Kind::NonConfirmable;
    pair.ask(&ASK).unwrap();
    pair.run();
    pair.take_log();
    pair.inject(Side::Server, b"\x54\x01\x00\x00\0\0\0\0\xb5hello");
    pair.inject(Side::Client, b"\x54\x45\x00\x00\0\0\0\0\xffworld");
    pair.happened(&[]);
    assert_eq!((pair.server.counters().duplicates, pair.client.counters().duplicates), (1, 1));

    // The server's memory of it ends with NON_LIFETIME.
    pair.run_until(137 * SECOND + 550_000);
    pair.inject(Side::Server, b"\x54\x01\x00\x00\0\0\0\0\xb5hello");
    pair.happened(&["137.55 S has NON GET 0"]);
}

#[test]
fn a_response_that_nobody_waits_for_is_late_and_not_rejected() {
    let mut pair = Pair::usual();
    pair.inject(Side::Client, b"\x54\x45\x00\x07\x01\x02\x03\x04");
    pair.happened(&["0 C is told late NON Content 7"]);
    assert_eq!(pair.client.counters().sent.total(), 0);
}

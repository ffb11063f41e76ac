//! A confirmable request and its response in the acknowledgement (RFC 7252 §5.2.1), whole and with each message lost.

use millpond_coap::Duplicates;

use crate::pair::{Pair, SECOND, Side};

#[test]
fn two_datagrams_and_an_exact_sample() {
    let mut pair = Pair::usual();
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.05 S sends ACK Content 0",
        "0.1 C gets ACK Content 0: Piggybacked after 0.1 s",
    ]);
    let counters = pair.client.counters();
    assert_eq!((counters.sent.confirmable, counters.received.acknowledgement), (1, 1));
    assert_eq!((counters.begun, counters.answered, counters.retransmissions), (1, 1, 0));
    assert_eq!(pair.server.counters().requests, 1);
    assert_eq!((pair.server.peers(), pair.server.requests()), (0, 0), "who is answered leaves no state");
}

#[test]
fn a_response_just_before_the_acknowledgement_is_due_is_piggybacked() {
    let mut pair = Pair::usual().thinking(499_999);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.549999 S sends ACK Content 0",
        "0.599999 C gets ACK Content 0: Piggybacked after 0.599999 s",
    ]);
}

#[test]
fn a_lost_request_is_sent_again() {
    let mut pair = Pair::usual().losing([0]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0 (lost)",
        "2.5 C sends CON GET 0 #1",
        "2.55 S has CON GET 0",
        "2.55 S sends ACK Content 0",
        "2.6 C gets ACK Content 0: Piggybacked after 2.6 s, 2 copies",
    ]);
    assert_eq!(pair.client.counters().retransmissions, 1);
}

#[test]
fn a_lost_response_is_sent_again_from_store() {
    let mut pair = Pair::usual().losing([1]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.05 S sends ACK Content 0 (lost)",
        "2.5 C sends CON GET 0 #1",
        "2.55 S sends ACK Content 0 again",
        "2.6 C gets ACK Content 0: Piggybacked after 2.6 s, 2 copies",
    ]);
    let counters = pair.server.counters();
    assert_eq!((counters.requests, counters.duplicates, counters.sent.acknowledgement), (1, 1, 2));
}

#[test]
fn a_lost_response_is_made_afresh_where_that_is_wanted() {
    let mut pair = Pair::new(|_, config| config.duplicates = Duplicates::Afresh).losing([1]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.05 S sends ACK Content 0 (lost)",
        "2.5 C sends CON GET 0 #1",
        "2.55 S has CON GET 0",
        "2.55 S sends ACK Content 0",
        "2.6 C gets ACK Content 0: Piggybacked after 2.6 s, 2 copies",
    ]);
    assert_eq!(pair.server.counters().requests, 2);
}

/// The same message lost over and over: the exchange survives as long as one copy of each gets through.
#[test]
fn the_last_copy_is_as_good_as_the_first() {
    let mut pair = Pair::usual().losing([0, 1, 2, 3]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0 (lost)",
        "2.5 C sends CON GET 0 #1 (lost)",
        "7.5 C sends CON GET 0 #2 (lost)",
        "17.5 C sends CON GET 0 #3 (lost)",
        "37.5 C sends CON GET 0 #4",
        "37.55 S has CON GET 0",
        "37.55 S sends ACK Content 0",
        "37.6 C gets ACK Content 0: Piggybacked after 37.6 s, 5 copies",
    ]);
}

/// A reply to the first copy arrives after the second has left, and another one behind it.
#[test]
fn the_second_reply_is_late() {
    let mut pair = Pair::new(|_, config| config.ack_delay = millpond_control::Span::from_secs(10)).thinking(3 * SECOND);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "2.5 C sends CON GET 0 #1",
        "3.05 S sends ACK Content 0",
        "3.1 C gets ACK Content 0: Piggybacked after 3.1 s, 2 copies",
    ]);
    assert_eq!(pair.server.counters().duplicates, 1, "a copy of what the application has in hand");
    pair.inject(Side::Client, b"\x64\x45\x00\x00\0\0\0\0\xffworld");
    pair.happened(&["3.1 C is told late ACK Content 0"]);
    assert_eq!(pair.client.counters().late, 1);
}

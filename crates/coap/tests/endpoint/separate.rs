//! A response in a message of its own (RFC 7252 §5.2.2), whole and with each message lost.

use millpond_coap::message::Kind;

use crate::pair::{Pair, SECOND, Side};

fn slow() -> Pair {
    Pair::usual().thinking(SECOND)
}

#[test]
fn four_datagrams_and_two_exchanges_of_the_message_layer() {
    let mut pair = slow();
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0",
        "0.6 C is acknowledged: EmptyAck after 0.6 s",
        "1.05 S sends CON Content 0",
        "1.1 C sends ACK 0",
        "1.1 C gets CON Content 0: no sample",
        "1.15 S has delivered: EmptyAck after 0.1 s",
    ]);
    assert_eq!(pair.server.counters().delivered, 1);
    assert_eq!((pair.client.exchanges(), pair.server.exchanges()), (0, 0));
}

#[test]
fn a_non_confirmable_response_is_not_acknowledged() {
    let mut pair = slow();
    pair.answer = Kind::NonConfirmable;
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0",
        "0.6 C is acknowledged: EmptyAck after 0.6 s",
        "1.05 S sends NON Content 0",
        "1.1 C gets NON Content 0: no sample",
    ]);
    assert_eq!((pair.server.counters().begun, pair.server.counters().sent.non_confirmable), (0, 1));
}

#[test]
fn with_the_request_lost() {
    let mut pair = slow().losing([0]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0 (lost)",
        "2.5 C sends CON GET 0 #1",
        "2.55 S has CON GET 0",
        "3.05 S sends ACK 0",
        "3.1 C is acknowledged: EmptyAck after 3.1 s",
        "3.55 S sends CON Content 0",
        "3.6 C sends ACK 0",
        "3.6 C gets CON Content 0: no sample, 2 copies",
        "3.65 S has delivered: EmptyAck after 0.1 s",
    ]);
}

/// The response comes although the acknowledgement was lost: it counts as both (RFC 7252 §5.2.2), but says nothing
/// about the path.
#[test]
fn with_the_acknowledgement_lost() {
    let mut pair = slow().losing([1]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0 (lost)",
        "1.05 S sends CON Content 0",
        "1.1 C sends ACK 0",
        "1.1 C gets CON Content 0: Separate after 1.1 s",
        "1.15 S has delivered: EmptyAck after 0.1 s",
    ]);
}

/// The acknowledgement is lost and the response takes longer than the client's timer: the stored empty acknowledgement
/// is sent again and the application is asked once.
#[test]
fn with_the_acknowledgement_lost_and_a_slower_application() {
    let mut pair = Pair::usual().thinking(4 * SECOND).losing([1]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0 (lost)",
        "2.5 C sends CON GET 0 #1",
        "2.55 S sends ACK 0",
        "2.6 C is acknowledged: EmptyAck after 2.6 s",
        "4.05 S sends CON Content 0",
        "4.1 C sends ACK 0",
        "4.1 C gets CON Content 0: no sample, 2 copies",
        "4.15 S has delivered: EmptyAck after 0.1 s",
    ]);
}

#[test]
fn with_the_response_lost() {
    let mut pair = slow().losing([2]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0",
        "0.6 C is acknowledged: EmptyAck after 0.6 s",
        "1.05 S sends CON Content 0 (lost)",
        "3.55 S sends CON Content 0 #1",
        "3.6 C sends ACK 0",
        "3.6 C gets CON Content 0: no sample",
        "3.65 S has delivered: EmptyAck after 2.6 s",
    ]);
}

/// The copy of the response is acknowledged again and not delivered again.
#[test]
fn with_the_last_acknowledgement_lost() {
    let mut pair = slow().losing([3]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0",
        "0.6 C is acknowledged: EmptyAck after 0.6 s",
        "1.05 S sends CON Content 0",
        "1.1 C sends ACK 0 (lost)",
        "1.1 C gets CON Content 0: no sample",
        "3.55 S sends CON Content 0 #1",
        "3.6 C sends ACK 0",
        "3.65 S has delivered: EmptyAck after 2.6 s",
    ]);
    assert_eq!((pair.client.counters().duplicates, pair.client.counters().answered), (1, 1));
}

#[test]
fn a_response_that_nobody_acknowledges_is_given_up() {
    let mut pair = slow();
    pair.get();
    pair.run_until(SECOND);
    pair.lose = (2..100).collect();
    pair.take_log();
    pair.run_until(100 * SECOND);
    pair.happened(&[
        "1.05 S sends CON Content 0 (lost)",
        "3.55 S sends CON Content 0 #1 (lost)",
        "8.55 S sends CON Content 0 #2 (lost)",
        "18.55 S sends CON Content 0 #3 (lost)",
        "38.55 S sends CON Content 0 #4 (lost)",
        "78.55 S has not delivered: GaveUp",
    ]);
    // The client hears of nothing, and stops waiting EXCHANGE_LIFETIME after the acknowledgement: here the longest
    // waits add up to 37.5 s, and 202 s come on top.
    pair.run();
    pair.happened(&["240.1 C fails: NoResponse"]);
    assert_eq!(pair.client.counters().failed.no_response, 1);
}

/// After the empty acknowledgement the client keeps silent, however long the response takes.
#[test]
fn an_acknowledged_request_is_not_sent_again() {
    let mut pair = Pair::usual().thinking(200 * SECOND);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0",
        "0.6 C is acknowledged: EmptyAck after 0.6 s",
        "200.05 S sends CON Content 0",
        "200.1 C sends ACK 0",
        "200.1 C gets CON Content 0: no sample",
        "200.15 S has delivered: EmptyAck after 0.1 s",
    ]);
}

/// A response that overtakes the acknowledgement ends the exchange; the acknowledgement then is late.
#[test]
fn a_response_may_overtake_the_acknowledgement() {
    let mut pair = Pair::usual();
    pair.think = None;
    pair.lose = (0..1).collect();
    pair.get();
    pair.take_log();
    pair.inject(Side::Client, b"\x44\x45\x12\x34\0\0\0\0\xffworld");
    pair.inject(Side::Client, b"\x60\x00\x00\x00");
    pair.run();
    pair.happened(&[
        "0 C sends ACK 4660",
        "0 C gets CON Content 4660: Separate after 0 s",
        "0 C is told late ACK 0",
        "0.05 S is told late ACK 4660",
    ]);
}

/// Zero means that nothing is ever piggybacked.
#[test]
fn without_ack_delay_every_response_is_separate() {
    let mut pair = Pair::new(|_, config| config.ack_delay = millpond_control::Span::ZERO);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.05 S sends ACK 0",
        "0.05 S sends CON Content 0",
        "0.1 C is acknowledged: EmptyAck after 0.1 s",
        "0.1 C sends ACK 0",
        "0.1 C gets CON Content 0: no sample",
        "0.15 S has delivered: EmptyAck after 0.1 s",
    ]);
}

//! Resets: who sends them, what they end, and that none answers another (RFC 7252 §4.2, §4.3).

use millpond_coap::message::Code;
use millpond_coap::{Event, Failure, Outgoing, Output, Refused, RequestId};
use millpond_control::Instant;

use crate::pair::{HELLO, Pair, Side, content, endpoint};

const REQUEST: &[u8] = b"\x40\x01\x12\x34\xb5hello";
const RESET: &[u8] = b"\x70\x00\x12\x34";

#[test]
fn a_reset_ends_a_confirmable_request() {
    let mut pair = Pair::usual().losing([0]);
    pair.get();
    pair.inject(Side::Client, b"\x70\x00\x00\x00");
    pair.run();
    pair.happened(&["0 C sends CON GET 0 (lost)", "0 C fails: Reset"]);
    assert_eq!(pair.client.counters().failed.reset, 1);
}

#[test]
fn a_reset_ends_a_non_confirmable_request() {
    let mut pair = Pair::usual().losing([0]);
    pair.ask(&Outgoing::non_confirmable(Code::GET, HELLO)).unwrap();
    pair.inject(Side::Client, b"\x70\x00\x00\x00");
    pair.run();
    pair.happened(&["0 C sends NON GET 0 (lost)", "0 C fails: Reset"]);
}

/// Nobody here ever asked with this token.
#[test]
fn an_unknown_confirmable_response_is_rejected() {
    let mut pair = Pair::usual();
    pair.inject(Side::Client, b"\x44\x45\x00\x63\xde\xad\xbe\xef");
    pair.run();
    pair.happened(&["0 C sends RST 99", "0 C is told late CON Content 99", "0.05 S is told late RST 99"]);
}

#[test]
fn a_cancelled_request_answers_its_separate_response_with_a_reset() {
    let mut pair = Pair::usual().thinking(1_000_000);
    let exchange = pair.get();
    pair.run_until(700_000);
    pair.take_log();
    assert!(pair.cancel(exchange));
    pair.run();
    pair.happened(&[
        "0.7 C fails: Cancelled",
        "1.05 S sends CON Content 0",
        "1.1 C sends RST 0",
        "1.1 C is told late CON Content 0",
        "1.15 S has not delivered: Reset",
    ]);
    assert!(!pair.cancel(exchange), "it is over");
}

#[test]
fn a_reset_for_nothing_is_late_and_never_answered() {
    let mut pair = Pair::usual();
    pair.inject(Side::Client, RESET);
    pair.inject(Side::Server, RESET);
    pair.run();
    pair.happened(&["0 C is told late RST 4660", "0 S is told late RST 4660"]);
    assert_eq!(pair.client.counters().sent.total() + pair.server.counters().sent.total(), 0);
}

/// An acknowledged request is beyond the message layer; a reset that comes then was not for it.
#[test]
fn a_reset_after_the_acknowledgement_changes_nothing() {
    let mut pair = Pair::usual().thinking(1_000_000);
    pair.get();
    pair.run_until(700_000);
    pair.take_log();
    pair.inject(Side::Client, b"\x70\x00\x00\x00");
    pair.run();
    pair.happened(&[
        "0.7 C is told late RST 0",
        "1.05 S sends CON Content 0",
        "1.1 C sends ACK 0",
        "1.1 C gets CON Content 0: no sample",
        "1.15 S has delivered: EmptyAck after 0.1 s",
    ]);
}

#[test]
fn a_ping_is_answered_with_a_reset() {
    let mut pair = Pair::usual();
    pair.inject(Side::Server, b"\x40\x00\x12\x34");
    pair.run();
    pair.happened(&["0 S sends RST 4660", "0 S ignores Ping", "0.05 C is told late RST 4660"]);
}

#[test]
fn an_application_may_reject_a_request() {
    let mut server = endpoint(0, |_| {});
    let (now, id) = asked(&mut server);
    server.reject(now, id).unwrap();
    assert_eq!(sent(&mut server, now), [RESET]);
    assert_eq!(server.requests(), 0);
    // The reset is stored like any other reply.
    server.receive(now, 0_u8, REQUEST);
    assert_eq!(sent(&mut server, now), [RESET]);
    assert_eq!(server.counters().duplicates, 1);
    assert_eq!(server.reject(now, id), Err(Refused::UnknownRequest));
    assert_eq!(
        server.respond(now, id, &content(millpond_coap::message::Kind::Confirmable)),
        Err(Refused::UnknownRequest)
    );
}

#[test]
fn an_acknowledged_request_is_rejected_in_silence() {
    let mut server = endpoint(0, |_| {});
    let (now, id) = asked(&mut server);
    let later = now.after(millpond_control::Span::from_secs(1));
    assert_eq!(sent(&mut server, later), [b"\x60\x00\x12\x34"]);
    server.reject(later, id).unwrap();
    assert!(sent(&mut server, later).is_empty());
    assert_eq!(server.requests(), 0);
}

#[test]
fn the_reason_of_a_failure_is_told() {
    let mut client = endpoint(0, |_| {});
    let now = Instant::ORIGIN;
    let id = client.request(now, 7_u8, &crate::pair::get()).unwrap();
    sent(&mut client, now);
    client.receive(now, 7, b"\x70\x00\x00\x00");
    let Output::Event(Event::Failed { exchange, to, why, copies: 1 }) = client.poll(now) else { panic!("no failure") };
    assert_eq!((exchange, to, why), (id, 7, Failure::Reset));
    assert!(matches!(client.poll(now), Output::Idle));
}

/// A server that has been handed [`REQUEST`].
fn asked(server: &mut millpond_coap::Endpoint<u8>) -> (Instant, RequestId) {
    let now = Instant::from_micros(5);
    server.receive(now, 0, REQUEST);
    let Output::Event(Event::Request { id, .. }) = server.poll(now) else { panic!("no request") };
    sent(server, now);
    (now, id)
}

/// Drains; what was sent.
fn sent(endpoint: &mut millpond_coap::Endpoint<u8>, now: Instant) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    loop {
        match endpoint.poll(now) {
            Output::Transmit(transmit) => sent.push(transmit.bytes.to_vec()),
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => return sent,
        }
    }
}

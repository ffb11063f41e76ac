//! What is no message of RFC 7252, and what is one that makes no sense here.

use millpond_coap::message::{Code, Kind};
use millpond_coap::{Ignored, Outgoing, Refused};

use crate::pair::{Pair, Side, content, get};

/// The reset that a confirmable message with ID 0x1234 is met with; all else is met with silence.
#[test]
fn confirmable_rubbish_is_reset_and_other_rubbish_ignored() {
    let cases: &[(&[u8], bool)] = &[
        // Too short for a header.
        (b"", false),
        (b"\x40", false),
        (b"\x40\x01\x12", false),
        // Versions 0, 2 and 3 are ignored whatever they are (§3).
        (b"\x00\x01\x12\x34", false),
        (b"\x80\x01\x12\x34", false),
        (b"\xc0\x01\x12\x34", false),
        // Reserved token lengths, and tokens cut short.
        (b"\x49\x01\x12\x34123456789", true),
        (b"\x59\x01\x12\x34123456789", false),
        (b"\x44\x01\x12\x34123", true),
        (b"\x64\x45\x12\x34123", false),
        // Reserved code classes (§4.2, §4.3).
        (b"\x40\x21\x12\x34", true),
        (b"\x40\xc1\x12\x34", true),
        (b"\x40\xe1\x12\x34", true),
        (b"\x50\xe1\x12\x34", false),
        (b"\x60\xe1\x12\x34", false),
        // A request in an acknowledgement, anything in a reset, nothing in a non-confirmable message.
        (b"\x60\x01\x12\x34", false),
        (b"\x70\x01\x12\x34", false),
        (b"\x70\x45\x12\x34", false),
        (b"\x50\x00\x12\x34", false),
        // Empty messages that are not.
        (b"\x40\x00\x12\x34\xb5hello", true),
        (b"\x41\x00\x12\x34t", true),
        (b"\x60\x00\x12\x34\xff!", false),
        (b"\x71\x00\x12\x34t", false),
        // Options and payload.
        (b"\x40\x01\x12\x34\xb5hell", true),
        (b"\x40\x01\x12\x34\xf0", true),
        (b"\x40\x01\x12\x34\x0f", true),
        (b"\x40\x01\x12\x34\xe0\xff\xff", true),
        (b"\x40\x01\x12\x34\xff", true),
        (b"\x50\x01\x12\x34\xff", false),
    ];
    for (bytes, reset) in cases {
        let mut pair = Pair::usual();
        pair.inject(Side::Server, bytes);
        let log = pair.take_log();
        let ignored = log.last().unwrap();
        assert!(ignored.starts_with("0 S ignores Malformed"), "{bytes:02x?}: {ignored}");
        assert_eq!(log.len() == 2, *reset, "{bytes:02x?}: {log:?}");
        assert!(!reset || log[0] == "0 S sends RST 4660", "{log:?}");
        assert_eq!(pair.server.counters().ignored.malformed, 1);
        assert_eq!(pair.server.counters().received.total(), 0);
    }
}

/// RFC 7252 §4.6, RFC 7959 §4: a request gets 4.13 with Size1, whatever else is confirmable a reset.
#[test]
fn a_datagram_over_the_limit_is_answered_or_rejected_and_not_looked_at() {
    let mut pair = Pair::new(|_, config| (config.limits.datagram, config.limits.received) = (32, 32));
    let mut bytes = b"\x40\x01\x12\x34\xff".to_vec();
    bytes.resize(32, b'.');
    pair.inject(Side::Server, &bytes);
    bytes.push(b'.');
    // A confirmable request, which comes again, a non-confirmable one, a response, one of another version.
    for (first, code, id) in
        [(0x40, 0x01, 0x35), (0x40, 0x01, 0x35), (0x50, 0x01, 0x36), (0x40, 0x45, 0x37), (0x80, 0x01, 0x38)]
    {
        (bytes[0], bytes[1], bytes[3]) = (first, code, id);
        pair.inject(Side::Server, &bytes);
    }
    let log = pair.take_log();
    assert_eq!(
        log,
        [
            "0 S has CON GET 4660",
            "0 S sends ACK Request Entity Too Large 4661",
            "0 S ignores TooLong { is_answered: true }",
            "0 S sends ACK Request Entity Too Large 4661 again",
            "0 S ignores TooLong { is_answered: true }",
            "0 S sends NON Request Entity Too Large 0",
            "0 S ignores TooLong { is_answered: true }",
            "0 S sends RST 4663",
            "0 S ignores TooLong { is_answered: false }",
            "0 S ignores TooLong { is_answered: false }"
        ]
    );
}

#[test]
fn nothing_longer_than_the_limit_is_sent() {
    let mut pair = Pair::new(|_, config| config.limits.datagram = 32);
    let refused = pair.ask(&get().with_payload(&[0; 40])).unwrap_err();
    assert!(matches!(refused, Refused::Message(_)), "{refused}");
    let disordered: &[(u16, &[u8])] = &[(12, b""), (11, b"")];
    let refused = pair.ask(&Outgoing::confirmable(Code::GET, disordered)).unwrap_err();
    assert_eq!(refused.to_string(), "option 11 after option 12: options go in ascending order");
    pair.happened(&[]);
    assert_eq!((pair.client.exchanges(), pair.client.peers()), (0, 0));
}

#[test]
fn what_is_no_request_cannot_be_asked_and_what_is_no_response_cannot_be_answered() {
    let mut pair = Pair::usual();
    for code in [Code::EMPTY, Code::CONTENT, Code::from_byte(0xe1)] {
        assert_eq!(pair.ask(&Outgoing::confirmable(code, &[])), Err(Refused::Code(code)));
    }
    for kind in [Kind::Acknowledgement, Kind::Reset] {
        assert_eq!(pair.ask(&Outgoing { kind, ..get() }), Err(Refused::Kind(kind)));
    }
    pair.happened(&[]);
}

/// The message ID of the acknowledgement fits and its token does not: somebody guesses (RFC 7252 §5.3.2).
#[test]
fn a_piggybacked_response_with_a_wrong_token_does_not_end_the_exchange() {
    let mut pair = Pair::usual();
    pair.get();
    pair.inject(Side::Client, b"\x64\x45\x00\x00evil\xffworld");
    pair.inject(Side::Client, b"\x60\x45\x00\x00\xffworld");
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0 C ignores Unmatched",
        "0 C ignores Unmatched",
        "0.05 S has CON GET 0",
        "0.05 S sends ACK Content 0",
        "0.1 C gets ACK Content 0: Piggybacked after 0.1 s",
    ]);
    assert_eq!(pair.client.counters().ignored.unmatched, 2);
}

/// Where nothing else came they are told as the cause.
#[test]
fn an_exchange_that_only_wrong_tokens_answered_fails_as_that() {
    let mut pair = Pair::usual().losing(0..5);
    pair.get();
    pair.inject(Side::Client, b"\x60\x45\x00\x00\xffworld");
    pair.run();
    let log = pair.take_log();
    assert!(log.last().is_some_and(|line| line.ends_with("C fails: WrongToken")), "{log:?}");
}

/// A response cannot be answered with a response.
#[test]
fn a_response_in_the_acknowledgement_of_a_response_is_ignored() {
    let mut pair = Pair::usual().thinking(1_000_000).losing([2]);
    pair.get();
    pair.run_until(1_050_000);
    pair.take_log();
    pair.inject(Side::Server, b"\x64\x45\x00\x00\0\0\0\0");
    pair.happened(&["1.05 S ignores Unmatched"]);
    assert_eq!(pair.server.exchanges(), 1);
}

/// An acknowledgement of a non-confirmable request acknowledges nothing.
#[test]
fn an_acknowledgement_of_a_non_confirmable_request_is_late() {
    let mut pair = Pair::usual().losing([0]);
    pair.ask(&Outgoing::non_confirmable(Code::GET, &[])).unwrap();
    pair.take_log();
    pair.inject(Side::Client, b"\x60\x00\x00\x00");
    pair.happened(&["0 C is told late ACK 0"]);
    assert_eq!(pair.client.exchanges(), 1);
}

#[test]
fn ignored_reasons_tell_what_was_wrong() {
    let mut pair = Pair::usual();
    let now = pair.now();
    pair.server.receive(now, Side::Client, b"\x40\x01\x12\x34\xff");
    let why = loop {
        match pair.server.poll(now) {
            millpond_coap::Output::Event(millpond_coap::Event::Ignored { why, .. }) => break why,
            millpond_coap::Output::Idle => panic!("nothing ignored"),
            _ => {}
        }
    };
    let Ignored::Malformed(error) = why else { panic!("{why:?}") };
    assert_eq!(error.to_string(), "a payload marker without payload (byte 4)");
}

#[test]
fn a_request_that_nobody_was_handed_cannot_be_answered() {
    let mut other = Pair::usual();
    other.think = None;
    other.inject(Side::Server, b"\x40\x01\x12\x34");
    let mut pair = Pair::usual();
    let refused = pair.server.respond(pair.now(), other.handed.unwrap(), &content(Kind::Confirmable));
    assert_eq!(refused, Err(Refused::UnknownRequest));
}

//! Tokens of more than 8 bytes (RFC 8974).

use millpond_coap::message::{Code, Kind, Message, MessageId, Writer, number};
use millpond_coap::{Event, Output};
use millpond_control::Naming;

use crate::pair::{Pair, SECOND, Side, endpoint};

/// A request with this token.
fn request(kind: Kind, id: u16, token: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start_extended(&mut bytes, kind, Code::GET, MessageId(id), token);
    writer.option(number::URI_PATH, b"hello").unwrap();
    writer.finish().unwrap();
    bytes
}

fn token_of(datagram: &[u8]) -> Vec<u8> {
    Message::parse_extended(datagram).unwrap().1.to_vec()
}

/// Tokens of the server's have at most so many bytes, those of the client's exactly so many.
fn pair(longest: u16, length: u16) -> Pair {
    Pair::new(|side, config| match side {
        Side::Client => config.token_length = length,
        Side::Server => config.longest_token = longest,
    })
}

/// All lengths of which the encoding changes, and one in between.
#[test]
fn a_request_is_answered_with_its_token_whatever_its_length() {
    for length in [9, 12, 13, 14, 100, 268, 269, 270, 1_000] {
        let mut pair = pair(1_000, length);
        pair.get();
        pair.run();
        let told = format!("token ({length} bytes)");
        pair.happened(&[
            &format!("0 C sends CON GET 0 {told}"),
            &format!("0.05 S has CON GET 0 {told}"),
            &format!("0.05 S sends ACK Content 0 {told}"),
            "0.1 C gets ACK Content 0: Piggybacked after 0.1 s",
        ]);
        let expected = [vec![0; 8], vec![0; usize::from(length) - 8]].concat();
        assert_eq!((token_of(&pair.datagrams[0]), token_of(&pair.datagrams[1])), (expected.clone(), expected));
    }
}

#[test]
fn copies_are_not_told_apart_by_it() {
    let mut pair = pair(9, 9).naming(Naming::Token).losing([0]);
    pair.get();
    pair.run();
    assert_eq!(pair.datagrams[0], pair.datagrams[1]);
    assert_eq!(token_of(&pair.datagrams[1]).len(), 9);
}

#[test]
fn what_is_not_taken_is_a_format_error_as_ever() {
    let mut pair = pair(8, 9);
    pair.get();
    pair.run();
    let fault = "Malformed(ParseError { at: 0, fault: TokenLength(9), header: Some((Confirmable, MessageId(0))) })";
    pair.happened(&[
        "0 C sends CON GET 0 token (9 bytes)",
        "0.05 S sends RST 0",
        &format!("0.05 S ignores {fault}"),
        "0.1 C fails: Reset",
    ]);
}

/// RFC 8974 §2.2.2: it must not be rejected, for that would say that long tokens are not understood.
#[test]
fn one_that_is_too_long_is_answered_with_4_00_and_nothing_is_kept_of_it() {
    let mut pair = pair(20, 21);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0 token (21 bytes)",
        "0.05 S sends ACK Bad Request 0 token (21 bytes)",
        "0.05 S ignores LongToken { is_for_want_of_room: false }",
        "0.1 C gets ACK Bad Request 0: Piggybacked after 0.1 s",
    ]);
    pair.inject(Side::Server, &request(Kind::NonConfirmable, 7, &[1; 30]));
    assert_eq!(token_of(pair.datagrams.last().unwrap()), [1; 30]);
    assert_eq!(Message::parse_extended(pair.datagrams.last().unwrap()).unwrap().0.kind, Kind::NonConfirmable);
}

#[test]
fn a_copy_of_a_request_meets_the_stored_answer_with_its_token() {
    let mut pair = pair(300, 300).losing([1]);
    pair.get();
    pair.run();
    assert_eq!(pair.datagrams.len(), 4);
    assert_eq!(pair.datagrams[1], pair.datagrams[3]);
    assert_eq!(token_of(&pair.datagrams[3]).len(), 300);
    assert_eq!(pair.server.counters().duplicates, 1);
}

#[test]
fn a_separate_answer_has_it_and_so_have_its_copies() {
    let mut pair = pair(40, 40).thinking(SECOND).losing([2]);
    pair.get();
    pair.run();
    assert_eq!(pair.client.counters().answered, 1);
    let lengths: Vec<_> = pair.datagrams.iter().map(|datagram| token_of(datagram).len()).collect();
    assert_eq!(lengths, [40, 0, 40, 40, 0], "request, acknowledgement, answer, its copy, acknowledgement");
}

#[test]
fn who_sends_many_takes_a_quarter_of_the_room_and_no_more() {
    let mut server = endpoint::<u32>(0, |config| {
        config.longest_token = 65_000;
        config.limits.received = 65_527;
    });
    let now = millpond_control::Instant::from_micros(1);
    let (mut refused, mut held) = (0, 0);
    for id in 0..100 {
        let token = [&u16::to_be_bytes(id)[..], &[7; 10_000]].concat();
        server.receive(now, 1, &request(Kind::Confirmable, id, &token));
        loop {
            match server.poll(now) {
                Output::Transmit(transmit) => {
                    let (message, echoed) = Message::parse_extended(transmit.bytes).unwrap();
                    assert_eq!((message.code, echoed), (Code::SERVICE_UNAVAILABLE, &token[..]));
                    refused += 1;
                }
                Output::Event(Event::Request { .. }) => held += 1,
                Output::Event(_) => {}
                _ => break,
            }
        }
    }
    assert_eq!((refused, held), (100 - 26, 26), "a quarter of a mebibyte");
    assert!(server.memory() < 1 << 20, "{}", server.memory());
    // Another peer has room.
    server.receive(now, 2, &request(Kind::Confirmable, 0, &[8; 10_000]));
    assert!(matches!(server.poll(now), Output::Event(Event::Request { .. })));
}

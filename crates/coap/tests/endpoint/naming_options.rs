//! Options that tell the copies of a request apart: who knows them, and what may be said in them.

use millpond_coap::Outgoing;
use millpond_coap::message::{Code, Kind, Message, Token, Writer, number};
use millpond_control::Naming;

use crate::naming::{OPTIONS, carried, option_of, replies};
use crate::pair::{Pair, SECOND, Side, get};
use crate::session::NAMINGS;

/// A reply to a message of the client's with this option.
pub(crate) fn reply(request: &[u8], options: &[(u16, &[u8])]) -> Vec<u8> {
    let request = Message::parse(request).unwrap();
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, Kind::Acknowledgement, Code::CONTENT, request.id, request.token);
    for (number, value) in options {
        writer.option(*number, value).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// One request and two retransmissions that all get lost, and then a reply from nowhere, at 7.6 s.
pub(crate) fn forged(naming: Naming, options: &[(u16, &[u8])]) -> String {
    let mut pair = Pair::usual().naming(naming).losing(0..3);
    pair.get();
    pair.run_until(7_600_000);
    let forged = reply(&pair.datagrams[2], options);
    pair.inject(Side::Client, &forged);
    replies(&mut pair).pop().unwrap()
}

/// The first piggybacked response reports whether the server knows the option. If not, it is left out from then on, also
/// of what waits already.
#[test]
fn a_server_that_does_not_know_the_option_is_not_bothered_again() {
    for naming in OPTIONS {
        let mut pair = Pair::new(|_, config| {
            config.naming.count.echoed = false;
            config.naming.flag.echoed = false;
            config.naming.timestamp.echoed = false;
        })
        .naming(naming)
        .losing([1]);
        for _ in 0..3 {
            pair.get();
        }
        pair.run();
        let has_it: Vec<bool> = pair.datagrams.iter().map(|bytes| carried(bytes, naming).is_some()).collect();
        // Two copies of the first request with a reply each, then a request and a reply, and once more.
        assert_eq!(has_it, [true, false, true, false, false, false, false, false], "{naming:?}");
        assert_eq!(pair.client.counters().answered, 3);
        assert!(!pair.take_log().iter().any(|line| line.contains("copy")), "nothing was named");
    }
}

/// As long as no piggybacked response has told, every first copy asks.
#[test]
fn every_first_copy_asks_until_the_server_has_told() {
    let mut pair = Pair::usual().naming(Naming::Count).thinking(SECOND);
    for _ in 0..2 {
        pair.get();
        pair.run();
    }
    pair.think = Some(0);
    for _ in 0..2 {
        pair.get();
        pair.run();
    }
    let carried: Vec<_> = pair.datagrams.iter().filter_map(|bytes| carried(bytes, Naming::Count)).collect();
    // Two requests acknowledged and answered separately; one with its reply; one with its reply.
    assert_eq!(carried, [vec![255], vec![255], vec![255], vec![255], vec![], vec![]]);
}

/// What is known of a server outlives its controller, and what is known about one option tells nothing of another.
#[test]
fn what_the_server_knows_is_kept_for_each_option() {
    let mut pair = Pair::new(|side, config| {
        if side == Side::Server {
            config.naming.flag.echoed = false;
        }
    });
    let mut has_it = Vec::new();
    for naming in [Naming::Flag, Naming::Count, Naming::Flag, Naming::Count] {
        pair = pair.naming(naming);
        let before = pair.datagrams.len();
        pair.get();
        pair.run();
        has_it.push(carried(&pair.datagrams[before], naming));
    }
    assert_eq!(has_it, [Some(vec![]), Some(vec![255]), None, Some(vec![])]);
}

#[test]
fn an_echo_of_what_was_never_sent_names_nothing() {
    const NOTHING: &str = "Piggybacked after 7.6 s, 3 copies";
    let stamp = |micros: u32| micros.to_be_bytes();
    let (none, first, last, future) = (stamp(1), stamp(0), stamp(7_500_000), stamp(9_999_999));
    let garbage: [(Naming, &[&[u8]]); 3] = [
        // A copy not sent; no value where 255 was asked with; too long; a leading zero.
        (Naming::Count, &[&[3], &[254], &[], &[0], &[0, 1], &[1, 0], &[0; 5]]),
        (Naming::Flag, &[&[0], &[2], &[255], &[0, 1], &[1, 1]]),
        // Never; from the future; the right ones cut, and with more behind.
        (Naming::Timestamp, &[&none, &future, &[], &first[..3], &last[1..], &[0, 0, 0, 0, 0]]),
    ];
    for (naming, values) in garbage {
        let number = option_of(naming).unwrap();
        for value in values {
            assert_eq!(forged(naming, &[(number, value)]), NOTHING, "{naming:?} {value:?}");
        }
        // The right value of another option.
        for other in OPTIONS.into_iter().filter(|other| *other != naming) {
            let number = option_of(other).unwrap();
            assert_eq!(forged(naming, &[(number, &[1])]), NOTHING, "{naming:?}");
        }
    }
    // To show that they are right but for what they are.
    let echoed = [
        (Naming::Count, &[255][..], "copy 0: at most 7.6 s"),
        (Naming::Count, &[1], "copy 1: at most 5.1 s"),
        (Naming::Count, &[2], "copy 2: exactly 0.1 s"),
        (Naming::Flag, &[], "copy 0: at most 7.6 s"),
        (Naming::Flag, &[1], "a further copy: from 0.1 s to 7.6 s"),
        (Naming::Timestamp, &first, "copy 0: at most 7.6 s"),
        (Naming::Timestamp, &last, "copy 2: exactly 0.1 s"),
    ];
    for (naming, value, named) in echoed {
        let number = option_of(naming).unwrap();
        assert_eq!(forged(naming, &[(number, value)]), format!("Piggybacked after 7.6 s, {named}, 3 copies"));
        // It is not repeatable: another one behind it is not looked at.
        assert_eq!(
            forged(naming, &[(number, value), (number, &[7])]),
            format!("Piggybacked after 7.6 s, {named}, 3 copies")
        );
    }
}

/// A first copy cannot be a further one, nor have been sent at another time.
#[test]
fn of_a_message_sent_once_only_the_first_copy_can_be_named() {
    for (naming, value) in [(Naming::Count, &[1][..]), (Naming::Flag, &[1]), (Naming::Timestamp, &[0, 0, 0, 1])] {
        let mut pair = Pair::usual().naming(naming).losing([0]);
        pair.get();
        let forged = reply(&pair.datagrams[0], &[(option_of(naming).unwrap(), value)]);
        pair.run_until(SECOND);
        pair.inject(Side::Client, &forged);
        assert_eq!(replies(&mut pair), ["Piggybacked after 1 s"], "{naming:?}");
    }
}

/// A token of a copy that was not sent is none that is waited for (RFC 7252 §5.3.2).
#[test]
fn a_token_of_a_copy_not_sent_is_not_matched() {
    let mut pair = Pair::usual().naming(Naming::Token).losing(0..100);
    pair.get();
    pair.run_until(7_600_000);
    pair.take_log();
    for wrong in [
        &b"\x65\x45\0\0\0\0\0\0\x00"[..],
        b"\x65\x45\0\0\0\0\0\0\x03",
        b"\x63\x45\0\0\0\0\0",
        b"\x66\x45\0\0\0\0\0\0\x01\x01",
    ] {
        pair.inject(Side::Client, wrong);
        pair.happened(&["7.6 C ignores Unmatched"]);
        let separate = [&[wrong[0] & 0x0f | 0x50], &wrong[1..]].concat();
        pair.inject(Side::Client, &separate);
        pair.happened(&["7.6 C is told late NON Content 0"]);
    }
    pair.inject(Side::Client, b"\x65\x45\0\0\0\0\0\0\x01");
    pair.happened(&["7.6 C gets ACK Content 0: Piggybacked after 7.6 s, copy 1: at most 5.1 s, 3 copies"]);
}

/// An echo in the reply to a request that had no such option is not looked at, nor is it taken for knowledge of it.
#[test]
fn an_echo_that_was_not_asked_for_means_nothing() {
    let mut pair = Pair::usual().naming(Naming::Token);
    pair.get();
    pair.inject(Side::Client, &reply(&pair.datagrams[0].clone(), &[(65_020, &[255]), (65_084, &[0; 4])]));
    assert_eq!(replies(&mut pair), ["Piggybacked after 0 s, copy 0: exactly 0 s"]);
    let mut pair = pair.naming(Naming::Count);
    pair.get();
    assert_eq!(carried(pair.datagrams.last().unwrap(), Naming::Count), Some(vec![255]), "it asks");
}

/// A token given by the caller is not changed, and neither is an option of the caller's.
#[test]
fn what_the_caller_gave_is_respected() {
    let own = Outgoing { token: Token::new(b"own"), ..get() };
    let mut pair = Pair::usual().naming(Naming::Token).losing([0]);
    pair.ask(&own).unwrap();
    pair.run();
    assert_eq!(pair.datagrams[0], pair.datagrams[1]);
    assert_eq!(replies(&mut pair), ["Piggybacked after 2.6 s, 2 copies"]);

    for naming in OPTIONS {
        let options = [(number::URI_PATH, &b"hello"[..]), (option_of(naming).unwrap(), &[1])];
        let mut pair = Pair::usual().naming(naming).losing([0]);
        pair.ask(&Outgoing::confirmable(Code::GET, &options)).unwrap();
        pair.run();
        assert_eq!(pair.datagrams[0], pair.datagrams[1]);
        assert_eq!(replies(&mut pair), ["Piggybacked after 2.6 s, 2 copies"]);
        // With a token of its own a request can still be marked by an option.
        pair.ask(&own).unwrap();
        assert!(carried(pair.datagrams.last().unwrap(), naming).is_some());
    }
}

/// Options of the caller's with larger numbers stay what they are.
#[test]
fn an_option_stands_among_those_of_the_caller() {
    let options = [(number::URI_PATH, &b"hello"[..]), (65_021, b"a"), (65_060, b""), (65_535, b"z")];
    for naming in OPTIONS {
        let mut pair = Pair::usual().naming(naming).losing([0]);
        pair.ask(&Outgoing::confirmable(Code::GET, &options).with_payload(b"body")).unwrap();
        pair.run();
        for sent in &pair.datagrams[..2] {
            let message = Message::parse(sent).unwrap();
            let others: Vec<_> = message.options().filter(|option| Some(option.number) != option_of(naming)).collect();
            assert!(others.iter().map(|option| (option.number, option.value)).eq(options));
            assert_eq!(message.payload(), b"body");
        }
        assert_eq!(replies(&mut pair), ["Piggybacked after 2.6 s, copy 1: exactly 0.1 s, 2 copies"]);
    }
}

/// Room for the longest copy is kept free, so that no copy is longer than a datagram may be.
#[test]
fn the_longest_copy_respects_the_limit() {
    // Header and token of 4 bytes each, the path of 6, the marker; the rest of 100 bytes is payload.
    for (naming, room) in NAMINGS.into_iter().zip([0, 1, 4, 4, 7]) {
        let payload = [b'.'; 100];
        let most = 100 - 15 - room;
        let mut pair = Pair::new(|_, config| config.limits.datagram = 100).naming(naming).losing(0..5);
        let refused = pair.ask(&get().with_payload(&payload[..most + 1])).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "{} bytes, but the message may have {}; shorten path and query, or the payload",
                101 - room,
                100 - room
            )
        );
        pair.ask(&get().with_payload(&payload[..most])).unwrap();
        pair.run();
        assert_eq!(pair.datagrams.iter().map(Vec::len).max(), Some(100), "{naming:?}");
    }
}

//! Copies of a request told apart: what is on the wire, and what replies that name one are worth. docs/naming-copies.md
//! has the byte examples of this file.

use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use millpond_coap::{Duplicates, Outgoing};
use millpond_control::{Naming, Wishes};

use crate::pair::{HELLO, Pair, SECOND, Side, get};
use crate::session::NAMINGS;

/// A pair whose server answers duplicates like this.
fn with(duplicates: Duplicates, naming: Naming) -> Pair {
    Pair::new(|side, config| {
        if side == Side::Server {
            config.duplicates = duplicates;
        }
    })
    .naming(naming)
}

const STORED_OR_AFRESH: [Duplicates; 2] = [Duplicates::Stored, Duplicates::Afresh];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was said of replies, without when.
fn replies(pair: &mut Pair) -> Vec<String> {
    let log = pair.take_log();
    let of_reply = |line: String| line.split_once("Content 0: ").map(|(_, said)| said.to_owned());
    log.into_iter().filter_map(of_reply).collect()
}

/// The first two copies of a request and the reply to the second, then the first copy of the next request. Times are
/// 1 s, 3.5 s and 3.6 s.
#[test]
fn what_is_on_the_wire() {
    let cases = [
        (
            Naming::Token,
            [
                "44010000 00000000 b568656c6c6f",
                "45010000 0000000001 b568656c6c6f",
                "65450000 0000000001 ff776f726c64",
                "44010001 00000001 b568656c6c6f",
            ],
        ),
        (
            Naming::Count,
            [
                "44010000 00000000 b568656c6c6f e1fce4ff",
                "44010000 00000000 b568656c6c6f e1fce401",
                "64450000 00000000 e1fcef01 ff776f726c64",
                "44010001 00000001 b568656c6c6f e0fce4",
            ],
        ),
        (
            Naming::Flag,
            [
                "44010000 00000000 b568656c6c6f e0fd04",
                "44010000 00000000 b568656c6c6f e1fd0401",
                "64450000 00000000 e1fd0f01 ff776f726c64",
                "44010001 00000001 b568656c6c6f e0fd04",
            ],
        ),
        (
            Naming::Timestamp,
            [
                "44010000 00000000 b568656c6c6f e4fd24000f4240",
                "44010000 00000000 b568656c6c6f e4fd24003567e0",
                "64450000 00000000 e4fd2f003567e0 ff776f726c64",
                "44010001 00000001 b568656c6c6f e4fd240036ee80",
            ],
        ),
        (
            Naming::None,
            [
                "44010000 00000000 b568656c6c6f",
                "44010000 00000000 b568656c6c6f",
                "64450000 00000000 ff776f726c64",
                "44010001 00000001 b568656c6c6f",
            ],
        ),
    ];
    for (naming, expected) in cases {
        let mut pair = Pair::usual().naming(naming).losing([0]);
        pair.now = SECOND;
        pair.get();
        pair.run();
        pair.get();
        let sent: Vec<String> = pair.datagrams.iter().map(|bytes| hex(bytes)).collect();
        assert_eq!(sent, expected.map(|spaced| spaced.replace(' ', "")), "{naming:?}");
    }
}

#[test]
fn a_request_sent_once_is_exact_whatever_is_wished() {
    for duplicates in STORED_OR_AFRESH {
        for naming in NAMINGS {
            let mut pair = with(duplicates, naming);
            pair.get();
            pair.run();
            let named = if naming == Naming::None { "" } else { ", copy 0: exactly 0.1 s" };
            assert_eq!(replies(&mut pair), [format!("Piggybacked after 0.1 s{named}")]);
        }
    }
}

/// Datagrams by number: copy 0, copy 1 and the reply to it.
#[test]
fn with_the_first_request_lost_the_second_is_named() {
    for duplicates in STORED_OR_AFRESH {
        for naming in NAMINGS {
            let mut pair = with(duplicates, naming).losing([0]);
            pair.get();
            pair.run();
            // With one retransmission, a further copy can only be the second.
            let named = if naming == Naming::None { "" } else { ", copy 1: exactly 0.1 s" };
            assert_eq!(replies(&mut pair), [format!("Piggybacked after 2.6 s{named}, 2 copies")]);
        }
    }
}

/// A server that stores names the copy that it answered first; one that does not names each.
#[test]
fn with_the_first_reply_lost_it_matters_what_the_server_does_with_duplicates() {
    for duplicates in STORED_OR_AFRESH {
        for naming in NAMINGS {
            let mut pair = with(duplicates, naming).losing([1]);
            pair.get();
            pair.run();
            let named = match (naming, duplicates) {
                (Naming::None, _) => "",
                (_, Duplicates::Stored | Duplicates::Calm) => ", copy 0: at most 2.6 s",
                (_, Duplicates::Afresh) => ", copy 1: exactly 0.1 s",
            };
            assert_eq!(replies(&mut pair), [format!("Piggybacked after 2.6 s{named}, 2 copies")], "{duplicates:?}");
        }
    }
}

/// Copies leave at 0, 2.5 and 7.5 s. The first is lost and the reply to the second: a server that stores names the one
/// in the middle.
#[test]
fn a_copy_in_the_middle_is_named_with_its_age() {
    for duplicates in STORED_OR_AFRESH {
        for naming in NAMINGS {
            let mut pair = with(duplicates, naming).losing([0, 2]);
            pair.get();
            pair.run();
            let named = match (naming, duplicates) {
                (Naming::None, _) => "",
                (Naming::Flag, _) => ", a further copy: from 0.1 s to 7.6 s",
                (_, Duplicates::Stored | Duplicates::Calm) => ", copy 1: at most 5.1 s",
                (_, Duplicates::Afresh) => ", copy 2: exactly 0.1 s",
            };
            assert_eq!(replies(&mut pair), [format!("Piggybacked after 7.6 s{named}, 3 copies")], "{duplicates:?}");
        }
    }
}

/// The path is merely slow: the reply to the first copy comes after the second left, and that to the second is late.
#[test]
fn a_spurious_retransmission_is_seen_as_one() {
    for duplicates in STORED_OR_AFRESH {
        for naming in NAMINGS {
            let mut pair = with(duplicates, naming);
            pair.delays = [(1, 3 * SECOND), (3, 3 * SECOND)].into();
            pair.get();
            pair.run();
            let named = if naming == Naming::None { "" } else { ", copy 0: at most 3.05 s" };
            let said = replies(&mut pair);
            assert_eq!(said, [format!("Piggybacked after 3.05 s{named}, 2 copies")], "{duplicates:?} {naming:?}");
            assert_eq!(pair.client.counters().late, 1);
        }
    }
}

/// The second copy overtakes the first on the way there, and its reply is lost. To a server that stores, the second is
/// the one that it answered, and it says so when the first comes: the one case in which the last copy is named though
/// another called the reply forth. What is made of it is as long as the way of the second there and that of the reply
/// back, and longer by the time in between.
#[test]
fn a_copy_that_was_overtaken() {
    for duplicates in STORED_OR_AFRESH {
        for naming in NAMINGS {
            let mut pair = with(duplicates, naming).losing([2]);
            pair.delays = [(0, 4 * SECOND)].into();
            pair.get();
            pair.run();
            let named = match (naming, duplicates) {
                (Naming::None, _) => "",
                (_, Duplicates::Stored | Duplicates::Calm) => ", copy 1: exactly 1.55 s",
                (_, Duplicates::Afresh) => ", copy 0: at most 4.05 s",
            };
            assert_eq!(replies(&mut pair), [format!("Piggybacked after 4.05 s{named}, 2 copies")], "{duplicates:?}");
        }
    }
}

/// An empty acknowledgement has neither token nor options, and the separate response does not echo.
#[test]
fn an_empty_acknowledgement_names_nothing() {
    for duplicates in STORED_OR_AFRESH {
        for naming in NAMINGS {
            let mut pair = with(duplicates, naming).thinking(SECOND).losing([0]);
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
            // The separate response has the token of the copy that it answers, and nothing else of it.
            let token = if naming == Naming::Token { "45450000 0000000001" } else { "44450000 00000000" };
            assert_eq!(hex(&pair.datagrams[3]), format!("{token}ff776f726c64").replace(' ', ""));
        }
    }
}

/// A separate response that comes before the acknowledgement, to a copy before the last: it is known by the token of its
/// copy, and gives no sample.
#[test]
fn a_separate_response_is_known_by_the_token_of_any_copy_sent() {
    for duplicates in STORED_OR_AFRESH {
        for naming in NAMINGS {
            // Copy 0, its acknowledgement, copy 1; a server that stores sends the acknowledgement again.
            let lose: &[usize] = if duplicates == Duplicates::Stored { &[1, 3] } else { &[1] };
            let mut pair = with(duplicates, naming).thinking(2_600_000).losing(lose.iter().copied());
            pair.get();
            pair.run();
            assert_eq!(replies(&mut pair), ["Separate after 2.7 s, 2 copies"], "{duplicates:?} {naming:?}");
        }
    }
}

/// Both copies are handed up and acknowledged; the response to the second is rejected, for nobody waits for it.
#[test]
fn a_server_that_answers_afresh_answers_each_copy_under_its_own_token() {
    let mut pair = with(Duplicates::Afresh, Naming::Token).thinking(2 * SECOND).losing([1]);
    pair.get();
    pair.run();
    assert_eq!((pair.server.counters().requests, pair.client.counters().answered), (1, 1));

    let mut pair = with(Duplicates::Afresh, Naming::Token).thinking(4 * SECOND).losing([1]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0 (lost)",
        "2.5 C sends CON GET 0 #1",
        "2.55 S has CON GET 0",
        "3.05 S sends ACK 0",
        "3.1 C is acknowledged: EmptyAck after 3.1 s",
        "4.05 S sends CON Content 0",
        "4.1 C sends ACK 0",
        "4.1 C gets CON Content 0: no sample, 2 copies",
        "4.15 S has delivered: EmptyAck after 0.1 s",
        "6.55 S sends CON Content 1",
        "6.6 C sends RST 1",
        "6.6 C is told late CON Content 1",
        "6.65 S has not delivered: Reset",
    ]);
    let tokens = [4, 6].map(|sent| hex(Message::parse(&pair.datagrams[sent]).unwrap().token.as_bytes()));
    assert_eq!(tokens, ["00000000", "0000000001"]);
}

fn option_of(naming: Naming) -> Option<u16> {
    match naming {
        Naming::Count => Some(65_020),
        Naming::Flag => Some(65_052),
        Naming::Timestamp => Some(65_084),
        _ => None,
    }
}

fn carried(bytes: &[u8], naming: Naming) -> Option<Vec<u8>> {
    Message::parse(bytes).unwrap().option(option_of(naming)?).map(<[u8]>::to_vec)
}

const OPTIONS: [Naming; 3] = [Naming::Count, Naming::Flag, Naming::Timestamp];

/// The first piggybacked response tells whether the server knows the option. If not, it is left out from then on, also
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

/// A reply to a message of the client's with this option.
fn reply(request: &[u8], options: &[(u16, &[u8])]) -> Vec<u8> {
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
fn forged(naming: Naming, options: &[(u16, &[u8])]) -> String {
    let mut pair = Pair::usual().naming(naming).losing(0..3);
    pair.get();
    pair.run_until(7_600_000);
    let forged = reply(&pair.datagrams[2], options);
    pair.inject(Side::Client, &forged);
    replies(&mut pair).pop().unwrap()
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

/// A response that has no room for the echo goes without it, and the client learns that there will be none.
#[test]
fn an_echo_gives_way_to_the_response() {
    let mut pair = Pair::usual().naming(Naming::Count);
    let mut ask = |payload: usize| {
        pair.think = None;
        pair.get();
        pair.run_until(pair.now + SECOND / 10);
        let response = Outgoing::confirmable(Code::CONTENT, &[]);
        let payload = vec![b'.'; payload];
        pair.server.respond(pair.now(), pair.handed.unwrap(), &response.with_payload(&payload)).unwrap();
        pair.drain(Side::Server);
        let sent = pair.datagrams.last().unwrap().clone();
        pair.run_until(pair.now + SECOND / 10);
        (sent.len(), carried(&sent, Naming::Count))
    };
    // Header, token and marker take 9 bytes, the echo 4.
    assert_eq!(ask(1_152 - 13), (1_152, Some(vec![255])));
    assert_eq!(ask(1_152 - 11), (1_150, None), "an empty echo takes three bytes");
    assert_eq!(ask(1_152 - 12), (1_152, Some(vec![])), "it is known to be known");
}

/// The server's side alone: what it echoes of this request, and to a copy of it.
fn echoed(kind: Kind, options: &[(u16, &[u8])], think: u64) -> Vec<Vec<(u16, Vec<u8>)>> {
    let mut pair = Pair::usual().thinking(think);
    pair.answer = kind;
    let mut request = Vec::new();
    let mut writer = Writer::start(&mut request, kind, Code::GET, MessageId(7), Token::EMPTY);
    for (number, value) in HELLO.iter().chain(options) {
        writer.option(*number, value).unwrap();
    }
    writer.finish().unwrap();
    pair.lose = (0..100).collect();
    pair.inject(Side::Server, &request);
    pair.run_until(4 * SECOND / 10);
    pair.inject(Side::Server, &request);
    pair.run_until(2 * SECOND);
    let of = |bytes: &Vec<u8>| {
        let message = Message::parse(bytes).unwrap();
        message.options().map(|option| (option.number, option.value.to_vec())).collect()
    };
    pair.datagrams.iter().map(of).collect()
}

#[test]
fn a_server_echoes_what_it_knows_unmodified() {
    let asked: [&[(u16, &[u8])]; 8] = [
        &[(65_020, &[])],
        &[(65_020, &[255])],
        &[(65_020, &[0])],
        &[(65_052, &[])],
        &[(65_052, &[9])],
        &[(65_084, &[0, 0, 0, 0])],
        &[(65_020, &[3]), (65_052, &[1]), (65_084, &[1, 2, 3, 4])],
        &[],
    ];
    for options in asked {
        let expected: Vec<(u16, Vec<u8>)> = options.iter().map(|(number, value)| (*number, value.to_vec())).collect();
        // The stored reply to the copy is the same.
        assert_eq!(echoed(Kind::Confirmable, options, 0), [expected.clone(), expected], "{options:?}");
    }
}

#[test]
fn a_server_echoes_nothing_else() {
    let none: Vec<(u16, Vec<u8>)> = Vec::new();
    let unknown: [&[(u16, &[u8])]; 5] = [
        // Lengths that the options do not have make them unknown ones.
        &[(65_020, &[0, 1])],
        &[(65_052, &[0, 1])],
        &[(65_084, &[0, 0, 0])],
        &[(65_084, &[0, 0, 0, 0, 0])],
        // And this one is.
        &[(65_116, &[1])],
    ];
    for options in unknown {
        assert_eq!(echoed(Kind::Confirmable, options, 0), [none.clone(), none.clone()], "{options:?}");
    }
    // What comes again is not looked at.
    let twice: &[(u16, &[u8])] = &[(65_020, &[1]), (65_020, &[2])];
    assert_eq!(echoed(Kind::Confirmable, twice, 0), vec![vec![(65_020, vec![1])]; 2]);
    // No acknowledgement has the response: it is non-confirmable, or separate.
    assert_eq!(echoed(Kind::NonConfirmable, &[(65_020, &[1])], 0), vec![none.clone()]);
    assert_eq!(echoed(Kind::Confirmable, &[(65_020, &[1])], SECOND), vec![none; 2]);
}

/// What one request asked is not answered to the next one in its place.
#[test]
fn an_echo_ends_with_its_request() {
    let mut pair = Pair::usual().losing(0..100);
    pair.inject(Side::Server, b"\x40\x01\0\x01\xb5hello\xe1\xfc\xe4\x07");
    pair.run_until(SECOND / 10);
    pair.inject(Side::Server, b"\x40\x01\0\x02\xb5hello");
    pair.run_until(SECOND);
    let carried = [0, 1].map(|sent| carried(&pair.datagrams[sent], Naming::Count));
    assert_eq!(carried, [Some(vec![7]), None]);
}

/// The application's own word for an option stands.
#[test]
fn an_application_may_say_something_else() {
    let mut pair = Pair::usual().losing(0..100);
    pair.think = None;
    pair.inject(Side::Server, b"\x40\x01\0\x01\xb5hello\xe1\xfc\xe4\x07");
    let response = Outgoing::confirmable(Code::CONTENT, &[(65_020, b"mine")]);
    pair.server.respond(pair.now(), pair.handed.unwrap(), &response).unwrap();
    pair.drain(Side::Server);
    assert_eq!(carried(&pair.datagrams[0], Naming::Count), Some(b"mine".to_vec()));
}

/// Numbers are a matter of configuration on both sides.
#[test]
fn other_numbers_do_as_well() {
    let mut pair = Pair::new(|_, config| config.naming.count.number = 65_532).naming(Naming::Count).losing([1]);
    pair.get();
    pair.run();
    assert_eq!(replies(&mut pair), ["Piggybacked after 2.6 s, copy 0: at most 2.6 s, 2 copies"]);
    assert_eq!(Message::parse(&pair.datagrams[2]).unwrap().option(65_532), Some(&[1][..]));
}

/// Twenty copies, as in published experiments, and the last but one is named.
#[test]
fn many_copies() {
    for naming in NAMINGS {
        let mut pair = Pair::new(|side, config| {
            config.transmission.max_retransmit = 20;
            if side == Side::Server {
                config.duplicates = Duplicates::Stored;
            }
        })
        .naming(naming);
        // Copies 0 to 9 are lost on the way there, copies 10 to 18 have their replies lost.
        pair.lose = (0..10).chain((10..28).filter(|number| number % 2 == 1)).collect();
        pair.get();
        pair.run();
        let said = replies(&mut pair).pop().unwrap();
        // Waits double from 2.5 s up to what 32 bits of microseconds can hold.
        let named = match naming {
            Naming::None => "",
            Naming::Flag => ", a further copy: from 0.1 s to 4294.967295 s",
            // Farther behind the first than can be noted.
            _ => ", copy 10: at most 4294.967295 s",
        };
        assert!(said.starts_with(&format!("Piggybacked after 4294.967295 s{named}")), "{naming:?}: {said}");
    }
}

/// A wish that is there when the request is asked for counts, for what waits too.
#[test]
fn a_request_that_waits_is_marked_when_it_leaves() {
    for naming in NAMINGS {
        let mut pair = Pair::usual().naming(naming).losing([2]);
        pair.get();
        pair.get();
        pair.run();
        if naming == Naming::Count {
            let counts = [0, 2, 3].map(|sent| carried(&pair.datagrams[sent], naming).unwrap());
            assert_eq!(counts, [vec![255], vec![], vec![1]], "it was asked for before the server had told");
        }
        let said: Vec<String> = pair.take_log().into_iter().filter(|line| line.contains("gets")).collect();
        let named =
            if naming == Naming::None { ["", ""] } else { [", copy 0: exactly 0.1 s", ", copy 1: exactly 0.1 s"] };
        assert_eq!(
            said,
            [
                format!("0.1 C gets ACK Content 0: Piggybacked after 0.1 s{}", named[0]),
                format!("2.7 C gets ACK Content 1: Piggybacked after 2.6 s{}, 2 copies", named[1]),
            ]
        );
    }
}

/// The controller is exchanged while copies are under way: they go on as they began.
#[test]
fn an_exchange_keeps_its_marks_when_its_controller_goes() {
    let mut pair = Pair::usual().naming(Naming::Token).losing([0]);
    pair.get();
    pair.run_until(SECOND);
    let mut pair = pair.wishing(Wishes::NONE);
    pair.run();
    assert_eq!(replies(&mut pair), ["Piggybacked after 2.6 s, copy 1: exactly 0.1 s, 2 copies"]);
}

/// Confirmable separate responses are answered with empty acknowledgements, which name nothing: their copies are alike.
#[test]
fn separate_responses_are_not_marked() {
    for naming in NAMINGS {
        let mut pair = Pair::usual().thinking(SECOND).losing([2]);
        pair.server
            .set_controller(
                pair.now(),
                Side::Client,
                millpond_control::PeerController::own(crate::session::Wishing {
                    inner: crate::pair::steady(),
                    wishes: Wishes { naming, ..Wishes::NONE },
                }),
            )
            .unwrap();
        pair.drain(Side::Server);
        pair.get();
        pair.run();
        assert_eq!(hex(&pair.datagrams[2]), "4445000000000000ff776f726c64");
        assert_eq!(pair.datagrams[2], pair.datagrams[3]);
        assert_eq!(pair.take_log().last().unwrap(), "3.65 S has delivered: EmptyAck after 2.6 s");
    }
}

//! Copies of a request distinguished: what is on the wire, and what replies that name one are worth. docs/naming-copies.md
//! has the byte examples of this file.

use millpond_coap::Duplicates;
use millpond_coap::message::Message;
use millpond_control::{Naming, Wishes};

use crate::pair::{Pair, SECOND, Side};
use crate::session::NAMINGS;

/// A pair whose server answers duplicates like this.
pub(crate) fn with(duplicates: Duplicates, naming: Naming) -> Pair {
    Pair::new(|side, config| {
        if side == Side::Server {
            config.duplicates = duplicates;
        }
    })
    .naming(naming)
}

pub(crate) const STORED_OR_AFRESH: [Duplicates; 2] = [Duplicates::Stored, Duplicates::Afresh];

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was said of replies, without when.
pub(crate) fn replies(pair: &mut Pair) -> Vec<String> {
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
            // With one retransmission, a retransmission can only be the second.
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

pub(crate) fn option_of(naming: Naming) -> Option<u16> {
    match naming {
        Naming::Count => Some(65_020),
        Naming::Flag => Some(65_052),
        Naming::Timestamp => Some(65_084),
        _ => None,
    }
}

pub(crate) fn carried(bytes: &[u8], naming: Naming) -> Option<Vec<u8>> {
    Message::parse(bytes).unwrap().option(option_of(naming)?).map(<[u8]>::to_vec)
}

pub(crate) const OPTIONS: [Naming; 3] = [Naming::Count, Naming::Flag, Naming::Timestamp];

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

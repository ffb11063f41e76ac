//! Bodies that leave in the requests (RFC 7959 §2.5).

use millpond_coap::block::{BlockSize, UploadError};
use millpond_coap::message::{Code, Kind, Message, number};
use millpond_coap::transfer::{ClientRequest, RequestFailure};
use millpond_coap::{Duplicates, Failure};

use crate::pair::{CLIENT, PATH, Pair, SECOND, SERVER, Told, block_of, body, put};

fn blocks(pair: &Pair, side: u8) -> Vec<(u32, bool, u32)> {
    let of_side = pair.datagrams.iter().filter(|(_, sender, _)| *sender == side);
    of_side.filter_map(|(_, _, datagram)| block_of(datagram, number::BLOCK1)).collect()
}

#[track_caller]
fn arrived(pair: &mut Pair, length: usize) {
    let asked = Told::Asked { code: Code::PUT, body: body(length), observe: false };
    assert_eq!(pair.take_told(SERVER), [asked]);
    assert_eq!(pair.answers(), [(vec![], false)]);
}

#[test]
fn a_short_body_is_one_exchange() {
    let mut pair = Pair::serving(0, BlockSize::B1024);
    pair.ask(&put(&body(1_024)));
    pair.run();
    arrived(&mut pair, 1_024);
    assert_eq!((pair.datagrams.len(), blocks(&pair, CLIENT).len()), (2, 0));
}

#[test]
fn a_long_body_leaves_in_blocks_and_the_application_gets_it_whole() {
    for (length, count) in [(20_000, 20), (1_025, 2), (4_096, 4)] {
        let mut pair = Pair::serving(0, BlockSize::B1024);
        pair.ask(&put(&body(length)));
        pair.settle();
        arrived(&mut pair, length);
        assert_eq!(blocks(&pair, CLIENT).len(), count);
        // The final answer carries it too.
        assert_eq!(blocks(&pair, SERVER).len(), count);
        let size = Message::parse(&pair.datagrams[0].2).unwrap().option(number::SIZE1).map(<[u8]>::to_vec);
        assert_eq!(size, Some((length as u16).to_be_bytes().to_vec()));
        let codes = pair.datagrams.iter().filter(|(_, side, _)| *side == SERVER);
        let codes: Vec<_> = codes.map(|(_, _, datagram)| Message::parse(datagram).unwrap().code).collect();
        assert!(codes[..count - 1].iter().all(|code| *code == Code::CONTINUE));
        assert_eq!(codes[count - 1], Code::CHANGED);
    }
}

/// Some servers put a body together by its token.
#[test]
fn all_blocks_of_a_body_have_one_token_and_the_next_body_another() {
    let mut pair = Pair::serving(0, BlockSize::B256);
    pair.application.echoes = true;
    let ask = ClientRequest { upload: BlockSize::B256, ..ClientRequest::new(Code::POST, PATH) };
    let long = body(1_200);
    for _ in 0..2 {
        pair.ask(&ask.with_body(&long));
        pair.settle();
    }
    let requests = pair
        .datagrams
        .iter()
        .filter(|(_, side, datagram)| *side == CLIENT && block_of(datagram, number::BLOCK1).is_some());
    let tokens: Vec<_> = requests.map(|(_, _, datagram)| Message::parse(datagram).unwrap().token).collect();
    assert_eq!(tokens.len(), 10);
    assert!(tokens[..5].iter().all(|token| *token == tokens[0]));
    assert!(tokens[5..].iter().all(|token| *token == tokens[5] && *token != tokens[0]));
}

#[test]
fn the_server_may_want_smaller_blocks() {
    let mut pair = Pair::serving(0, BlockSize::B128);
    pair.ask(&ClientRequest { upload: BlockSize::B512, ..put(&body(1_200)) });
    pair.settle();
    arrived(&mut pair, 1_200);
    assert_eq!(blocks(&pair, CLIENT)[..3], [(0, true, 512), (4, true, 128), (5, true, 128)]);
}

#[test]
fn whichever_message_is_lost_the_body_arrives() {
    for duplicates in [Duplicates::Stored, Duplicates::Afresh] {
        for lost in 0..10 {
            let mut pair = Pair::new(|_, endpoint, config| {
                endpoint.duplicates = duplicates;
                config.block = BlockSize::B256;
            })
            .losing([lost]);
            pair.ask(&ClientRequest { upload: BlockSize::B256, ..put(&body(1_200)) });
            pair.settle();
            arrived(&mut pair, 1_200);
        }
    }
}

/// The final answer is lost, the last block comes again, and the application is asked once all the same.
#[test]
fn a_last_block_that_comes_again_is_answered_as_before() {
    let mut pair = Pair::new(|_, endpoint, _| endpoint.duplicates = Duplicates::Afresh).losing([3]);
    pair.application.echoes = true;
    pair.ask(&put(&body(2_000)));
    pair.settle();
    assert_eq!(pair.asked(), 1);
    let answers = pair.answers();
    assert_eq!(answers, [(body(2_000), false)]);
}

/// And so it is while the application thinks.
#[test]
fn a_last_block_that_comes_again_waits_for_the_answer_to_the_first() {
    let mut pair = Pair::new(|_, endpoint, _| endpoint.duplicates = Duplicates::Afresh);
    pair.application.answers = false;
    pair.ask(&put(&body(2_000)));
    pair.run_until(SECOND / 5);
    let last = pair.datagrams[2].2.clone();
    pair.inject(SERVER, &last);
    assert_eq!(pair.asked(), 1);
    assert_eq!(pair.stacks[1].endpoint().requests(), 1);
}

/// One that the application never answers gives way to others at last, and nobody waits for its answer then.
#[test]
fn a_last_block_that_comes_again_is_refused_once_its_request_has_given_way() {
    let mut pair = Pair::new(|node, endpoint, _| {
        endpoint.duplicates = Duplicates::Afresh;
        endpoint.limits.requests = if node == SERVER { 2 } else { 10 };
    });
    pair.application.answers = false;
    pair.ask(&put(&body(2_000)));
    pair.run_until(SECOND);
    let last = pair.datagrams[2].2.clone();
    pair.run_until(200 * SECOND);
    pair.inject(SERVER, &last);
    pair.run_until(240 * SECOND);
    // Not answered either.
    pair.inject(SERVER, &[0x50, 0x01, 0x12, 0x34]);
    assert_eq!(pair.asked(), 2);
    for seconds in [260, 270] {
        pair.run_until(seconds * SECOND);
        pair.datagrams.clear();
        pair.inject(SERVER, &last);
        let of_server = pair.datagrams.iter().filter(|(_, side, _)| *side == SERVER);
        let codes: Vec<_> = of_server.map(|(_, _, datagram)| Message::parse(datagram).unwrap().code).collect();
        assert_eq!(codes, [Code::REQUEST_ENTITY_INCOMPLETE], "{seconds}");
    }
}

#[test]
fn a_body_that_is_too_long_is_refused_with_the_limit() {
    for length in [1_500, 5_000] {
        let mut pair = Pair::new(|node, _, config| {
            if node == SERVER {
                config.limits.body = 1_400;
            }
        });
        let ask = pair.ask(&put(&body(length)));
        pair.settle();
        let code = Code::REQUEST_ENTITY_TOO_LARGE;
        assert_eq!(pair.take_told(CLIENT), [Told::Answer { request: ask, code, body: vec![], goes_on: false }]);
        let last = Message::parse(&pair.datagrams.last().unwrap().2).unwrap();
        assert_eq!(last.option(number::SIZE1), Some(&[5, 120][..]));
        assert_eq!(pair.asked(), 0);
    }
}

#[test]
fn a_refusal_in_the_middle_is_the_answer() {
    let mut pair = Pair::serving(0, BlockSize::B1024);
    let ask = pair.ask(&put(&body(5_000)));
    pair.lose = (0..100).collect();
    pair.run_until(DELAY_AND_MORE);
    let token = Message::parse(&pair.datagrams[0].2).unwrap().token;
    let refusal = [&[0x64, 0x84, 0, 0], token.as_bytes()].concat();
    pair.inject(CLIENT, &refusal);
    assert_eq!(
        pair.take_told(CLIENT),
        [Told::Answer { request: ask, code: Code::NOT_FOUND, body: vec![], goes_on: false }]
    );
    assert_eq!(pair.stacks[0].requests(), 0);
}

const DELAY_AND_MORE: u64 = SECOND / 10;

#[test]
fn a_server_that_lost_the_beginning_gets_it_again() {
    let mut pair = Pair::serving(0, BlockSize::B256);
    pair.ask(&ClientRequest { upload: BlockSize::B256, ..put(&body(1_000)) });
    pair.run_until(SECOND / 8);
    let config = millpond_coap::transfer::Config { block: BlockSize::B256, ..Default::default() };
    pair.stacks[1] = crate::pair::stack(7, millpond_coap::Config::default(), config);
    pair.settle();
    arrived(&mut pair, 1_000);
    let numbers: Vec<_> = blocks(&pair, CLIENT).iter().map(|block| block.0).collect();
    assert_eq!(numbers, [0, 1, 0, 1, 2, 3]);
}

#[test]
fn a_server_that_always_loses_the_beginning_is_left() {
    let mut pair = Pair::new(|node, _, config| {
        if node == SERVER {
            config.limits.bodies = 100;
        }
    });
    let ask = pair.ask(&put(&body(3_000)));
    pair.settle();
    let why = RequestFailure::Upload(UploadError::Lost(3));
    assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why }]);
}

#[test]
fn an_upload_nobody_answers_fails() {
    let mut pair = Pair::serving(0, BlockSize::B256).losing(2..100);
    let ask = pair.ask(&put(&body(3_000)));
    pair.settle();
    assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why: RequestFailure::Exchange(Failure::GaveUp) }]);
}

/// RFC 9175 §3: bodies on their way to one resource at a time are distinguished.
#[test]
fn two_bodies_to_one_resource_are_not_mixed() {
    let mut pair = Pair::serving(0, BlockSize::B256);
    let (first, second) = (body(1_000), vec![7; 900]);
    pair.ask(&ClientRequest { upload: BlockSize::B256, ..put(&first) });
    pair.ask(&ClientRequest { upload: BlockSize::B256, ..put(&second) });
    pair.settle();
    let mut came: Vec<_> = pair
        .take_told(SERVER)
        .into_iter()
        .map(|told| match told {
            Told::Asked { body, .. } => body,
            other => panic!("{other:?}"),
        })
        .collect();
    came.sort_by_key(Vec::len);
    assert_eq!(came, [second, first]);
}

#[test]
fn non_confirmable_blocks_are_answered_likewise() {
    let mut pair = Pair::serving(0, BlockSize::B256);
    let ask =
        ClientRequest { kind: Kind::NonConfirmable, upload: BlockSize::B256, ..ClientRequest::new(Code::PUT, PATH) };
    let long = body(700);
    pair.ask(&ask.with_body(&long));
    pair.settle();
    arrived(&mut pair, 700);
    assert!(pair.datagrams.iter().all(|(_, _, datagram)| datagram[0] & 0x30 == 0x10));
}

/// A server that acknowledges at once answers in messages of their own: those to confirmable blocks are confirmable too.
#[test]
fn an_answer_to_a_confirmable_block_is_repeated_if_it_gets_lost() {
    let mut pair = Pair::new(|node, endpoint, _| {
        if node == SERVER {
            endpoint.ack_delay = millpond_control::Span::ZERO;
        }
    });
    let bytes = body(600);
    pair.lose.insert(2);
    let ask = pair.ask(&millpond_coap::transfer::ClientRequest { upload: BlockSize::B256, ..put(&bytes) });
    pair.run_for(60 * SECOND);
    let answer = Told::Answer { request: ask, code: Code::CHANGED, body: vec![], goes_on: false };
    assert_eq!(pair.take_told(CLIENT), [answer]);
}

#[test]
fn blocks_that_cannot_be_are_answered_with_errors() {
    let mut pair = Pair::serving(0, BlockSize::B256);
    let ask = |id: u8, block: &[u8], payload: &[u8]| {
        let option = [&[0xd0 | block.len() as u8, 3], block].concat();
        [&[0x40, 3, 0, id][..], b"\xb5large", &option, b"\xff", payload].concat()
    };
    for (id, (block, payload, code)) in [
        // Exponent 7; too short for one that is followed by more; not begun; four bytes.
        (&[0x0f][..], &[1; 16][..], Code::BAD_REQUEST),
        (&[0x08], &[1; 15], Code::BAD_REQUEST),
        (&[0x18], &[1; 16], Code::REQUEST_ENTITY_INCOMPLETE),
        (&[0, 0, 0, 8], &[1; 16], Code::BAD_OPTION),
        // Begun, gone on with, and with a gap.
        (&[0x08], &[1; 16], Code::CONTINUE),
        (&[0x18], &[1; 16], Code::CONTINUE),
        (&[0x18], &[1; 16], Code::CONTINUE),
        (&[0x38], &[1; 16], Code::REQUEST_ENTITY_INCOMPLETE),
        (&[0x20], &[1; 3], Code::CHANGED),
    ]
    .into_iter()
    .enumerate()
    {
        pair.inject(SERVER, &ask(id as u8, block, payload));
        assert_eq!(Message::parse(&pair.datagrams[id].2).unwrap().code, code, "{block:?}");
    }
    assert_eq!(pair.take_told(SERVER), [Told::Asked { code: Code::PUT, body: vec![1; 35], observe: false }]);
}

/// RFC 7959 §2.5: whatever is part of the cache key distinguishes bodies.
#[test]
fn blocks_of_another_format_or_query_are_no_part_of_a_body() {
    for second in [&b"\xc1\x32"[..], b"\xc0\x31x", b""] {
        let mut pair = Pair::serving(0, BlockSize::B16);
        // Content-Format 0 and Block1 0/1/16; then another format, a Uri-Query, or no format at all.
        let first = [&[0x40, 3, 0, 1, 0xc0, 0xd1, 2, 8, 0xff][..], &[b'.'; 16]].concat();
        pair.inject(SERVER, &first);
        let block = match second {
            [] => &[0xd1, 14, 0x10][..],
            [0xc1, ..] => &[0xd1, 2, 0x10],
            _ => &[0xc1, 0x10],
        };
        let second = [&[0x40, 3, 0, 2], second, block, &[0xff, b'.']].concat();
        pair.inject(SERVER, &second);
        let codes: Vec<u8> = pair.datagrams.iter().map(|(.., bytes)| bytes[1]).collect();
        assert_eq!((codes, pair.asked()), (vec![0x5f, 0x88], 0), "{second:x?}");
    }
}

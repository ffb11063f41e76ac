//! Bodies that come in the responses (RFC 7959 §2.4).

use millpond_coap::block::{BlockSize, DownloadError};
use millpond_coap::message::{Code, Kind, Message, number};
use millpond_coap::transfer::{ClientRequest, Progress, RequestFailure};

use crate::pair::{CLIENT, PATH, Pair, SECOND, SERVER, Told, block_of, body, get};

#[test]
fn a_short_body_is_one_exchange() {
    let mut pair = Pair::serving(100, BlockSize::B1024);
    pair.get();
    pair.run();
    assert_eq!(pair.answers(), [(body(100), false)]);
    assert_eq!(pair.datagrams.len(), 2);
    assert_eq!(block_of(&pair.datagrams[1].2, number::BLOCK2), None);
}

#[test]
fn a_long_body_comes_in_blocks_and_the_application_is_asked_once() {
    for (length, block, blocks) in
        [(20_000, BlockSize::B1024, 20), (2_048, BlockSize::B1024, 2), (33, BlockSize::B16, 3)]
    {
        let mut pair = Pair::serving(length, block);
        pair.get();
        pair.settle();
        assert_eq!(pair.answers(), [(body(length), false)]);
        assert_eq!((pair.asked(), pair.datagrams.len()), (1, 2 * blocks));
        // Late negotiation: the first request names no size.
        assert_eq!(block_of(&pair.datagrams[0].2, number::BLOCK2), None);
        // One tag for all of them.
        let etag = |at: usize| Message::parse(&pair.datagrams[at].2).unwrap().option(number::ETAG).map(<[u8]>::to_vec);
        assert!(etag(1).is_some() && (1..blocks).all(|block| etag(2 * block + 1) == etag(1)));
    }
}

#[test]
fn the_firmware_of_the_study_takes_400_exchanges() {
    let mut pair = Pair::serving(102_400, BlockSize::B256);
    pair.get();
    pair.settle();
    assert_eq!(pair.answers(), [(body(102_400), false)]);
    assert_eq!(pair.datagrams.len(), 800);
    assert_eq!(block_of(&pair.datagrams[799].2, number::BLOCK2), Some((399, false, 256)));
    assert_eq!(pair.stacks[0].endpoint().counters().answered, 400);
}

/// An ETag that is made has as many bytes as the configuration says; without one there is none.
#[test]
fn an_etag_is_as_long_as_it_is_to_be() {
    for length in 0..=8 {
        let mut pair = Pair::new(|_, _, config| (config.etag_length, config.block) = (length, BlockSize::B64));
        pair.application.body = body(300);
        pair.get();
        pair.settle();
        assert_eq!(pair.answers(), [(body(300), false)]);
        let responses = pair.datagrams.iter().filter(|(_, from, _)| *from == SERVER);
        for (_, _, bytes) in responses {
            let etag = Message::parse(bytes).unwrap().option(number::ETAG).map(<[u8]>::len);
            assert_eq!(etag, Some(usize::from(length)).filter(|length| *length > 0));
        }
    }
}

#[test]
fn the_client_may_choose_the_size_at_once() {
    let mut pair = Pair::serving(1_000, BlockSize::B1024);
    pair.ask(&ClientRequest { early: Some(BlockSize::B64), ..get() });
    pair.settle();
    assert_eq!(pair.answers(), [(body(1_000), false)]);
    assert_eq!(pair.datagrams.len(), 2 * 16);
    assert_eq!(block_of(&pair.datagrams[0].2, number::BLOCK2), Some((0, false, 64)));
}

/// What the server would send whole is kept and tagged all the same if the client wants it in pieces.
#[test]
fn a_body_that_is_long_for_the_client_alone_is_kept() {
    let mut pair = Pair::serving(100, BlockSize::B1024);
    pair.ask(&ClientRequest { early: Some(BlockSize::B32), ..get() });
    pair.settle();
    assert_eq!(pair.answers(), [(body(100), false)]);
    assert_eq!((pair.asked(), pair.stacks[1].cached()), (1, 1));
    assert!(Message::parse(&pair.datagrams[1].2).unwrap().option(number::ETAG).is_some());
}

#[test]
fn the_server_may_choose_a_smaller_one() {
    let mut pair = Pair::serving(1_000, BlockSize::B32);
    pair.ask(&ClientRequest { early: Some(BlockSize::B512), ..get() });
    pair.settle();
    assert_eq!(pair.answers(), [(body(1_000), false)]);
    assert_eq!(pair.datagrams.len(), 2 * 32);
}

#[test]
fn an_empty_body_and_one_that_ends_with_a_block() {
    for length in [0, 256, 512] {
        let mut pair = Pair::serving(length, BlockSize::B256);
        pair.get();
        pair.settle();
        assert_eq!(pair.answers(), [(body(length), false)]);
        assert_eq!(pair.datagrams.len(), 2 * (length / 256).max(1));
    }
}

#[test]
fn whichever_message_is_lost_the_body_arrives() {
    for kind in [Kind::Confirmable, Kind::NonConfirmable] {
        for lost in 0..10 {
            let mut pair = Pair::serving(1_200, BlockSize::B256).losing([lost]);
            pair.ask(&ClientRequest { kind, ..get() });
            pair.settle();
            let told = pair.take_told(CLIENT);
            match (kind, &told[..]) {
                (_, [Told::Answer { body: came, .. }]) => assert_eq!(*came, body(1_200)),
                // A non-confirmable request is not sent again.
                (Kind::NonConfirmable, [Told::Failed { why: RequestFailure::Exchange(_), .. }]) => {}
                other => panic!("{other:?} with {lost} lost"),
            }
        }
    }
}

#[test]
fn a_slow_application_answers_in_a_message_of_its_own() {
    let mut pair = Pair::new(|_, endpoint, config| {
        endpoint.ack_delay = millpond_control::Span::ZERO;
        config.block = BlockSize::B64;
    });
    pair.application.body = body(200);
    pair.get();
    pair.settle();
    assert_eq!(pair.answers(), [(body(200), false)]);
}

#[test]
fn a_changed_body_is_fetched_anew() {
    let mut pair = Pair::serving(1_000, BlockSize::B256);
    pair.get();
    pair.run_until(SECOND / 8);
    // The representation that is kept goes when another client's does; here the server starts anew.
    pair.stacks[1] = crate::pair::stack(
        7,
        millpond_coap::Config::default(),
        millpond_coap::transfer::Config { block: BlockSize::B256, ..Default::default() },
    );
    pair.application.body = body(1_100).into_iter().rev().collect();
    pair.settle();
    let expected: Vec<u8> = body(1_100).into_iter().rev().collect();
    assert_eq!(pair.answers(), [(expected, false)]);
}

#[test]
fn a_server_that_was_restarted_goes_on_with_the_same_body() {
    let mut pair = Pair::serving(1_000, BlockSize::B256);
    pair.get();
    pair.run_until(SECOND / 8);
    let config = millpond_coap::transfer::Config { block: BlockSize::B256, ..Default::default() };
    pair.stacks[1] = crate::pair::stack(7, millpond_coap::Config::default(), config);
    pair.settle();
    assert_eq!(pair.answers(), [(body(1_000), false)]);
    // The tag is the body's: no block was fetched twice.
    assert_eq!(pair.datagrams.iter().filter(|(_, side, _)| *side == CLIENT).count(), 4);
    assert_eq!(pair.asked(), 2);
}

/// The block that is asked for begins behind the end of what the body is by now.
#[test]
fn a_body_that_became_shorter_is_fetched_anew() {
    for (length, blocks) in [(300, 2), (10, 1), (0, 1)] {
        let mut pair = Pair::serving(2_000, BlockSize::B256);
        pair.get();
        pair.run_until(SECOND / 3);
        let config = millpond_coap::transfer::Config { block: BlockSize::B256, ..Default::default() };
        pair.stacks[1] = crate::pair::stack(7, millpond_coap::Config::default(), config);
        pair.application.body = body(length);
        let before = pair.datagrams.len();
        pair.settle();
        assert_eq!(pair.answers(), [(body(length), false)]);
        assert_eq!((pair.datagrams.len() - before).div_ceil(2), blocks + 1);
    }
}

#[test]
fn when_nothing_is_kept_the_application_is_asked_for_each_block() {
    let mut pair = Pair::new(|node, _, config| {
        if node == SERVER {
            (config.block, config.limits.cached) = (BlockSize::B256, 0);
        }
    });
    pair.application.body = body(1_000);
    pair.get();
    pair.settle();
    assert_eq!(pair.answers(), [(body(1_000), false)]);
    assert_eq!((pair.asked(), pair.stacks[1].cached()), (4, 0));
}

#[test]
fn the_application_may_name_the_representation() {
    let mut pair = Pair::serving(600, BlockSize::B256);
    pair.application.options = vec![(number::ETAG, b"mine".to_vec()), (number::CONTENT_FORMAT, b"*".to_vec())];
    pair.get();
    pair.settle();
    for (_, side, datagram) in &pair.datagrams {
        let message = Message::parse(datagram).unwrap();
        if *side == SERVER {
            assert_eq!((message.option(number::ETAG), message.content_format()), (Some(&b"mine"[..]), Some(42)));
        }
    }
}

/// RFC 7959 §4.
#[test]
fn the_length_is_told_if_it_is_asked_for() {
    let mut pair = Pair::serving(600, BlockSize::B256);
    pair.inject(SERVER, b"\x40\x01\x00\x01\xb5large\xd0\x04");
    let message = Message::parse(&pair.datagrams[0].2).unwrap();
    assert_eq!(message.option(number::SIZE2), Some(&[2, 88][..]));
}

#[test]
fn a_client_that_wants_to_know_the_length_asks_with_the_beginning_alone() {
    for early in [None, Some(BlockSize::B64)] {
        let mut pair = Pair::serving(600, BlockSize::B64);
        let ask = pair.ask(&ClientRequest { wants_total: true, early, ..get() });
        pair.run_until(3 * SECOND / 10);
        let progress = pair.stacks[0].progress(ask).unwrap();
        assert!(progress.received < 600 && progress.total == Some(600), "{progress:?}");
        pair.settle();
        assert_eq!(pair.answers(), [(body(600), false)]);
        let asked = pair.datagrams.iter().filter(|(_, side, _)| *side == CLIENT);
        let sizes: Vec<_> =
            asked.map(|(_, _, it)| Message::parse(it).unwrap().option(number::SIZE2).map(<[u8]>::len)).collect();
        assert!(sizes.len() > 5 && sizes[0] == Some(0) && sizes[1..].iter().all(Option::is_none), "{sizes:?}");
    }
}

#[test]
fn any_block_can_be_asked_for_and_none_behind_the_end() {
    let mut pair = Pair::serving(600, BlockSize::B256);
    for (id, (block, code, length)) in [
        (0x14, Code::CONTENT, 256),
        (0x24, Code::CONTENT, 88),
        (0x34, Code::BAD_REQUEST, 22),
        (0x04, Code::CONTENT, 256),
        (0x92, Code::CONTENT, 24),
        (0xa2, Code::BAD_REQUEST, 22),
        (0x07, Code::BAD_REQUEST, 27),
    ]
    .into_iter()
    .enumerate()
    {
        pair.inject(SERVER, &[&b"\x40\x01\x00"[..], &[id as u8], b"\xb5large\xc1", &[block]].concat());
        let message = Message::parse(&pair.datagrams[id].2).unwrap();
        assert_eq!((message.code, message.payload().len()), (code, length), "block {block:#x}");
    }
    // Of the first, of block 0, which is always new, and not of the one whose option is none.
    assert_eq!(pair.asked(), 2);
}

#[test]
fn an_error_is_an_answer() {
    let mut pair = Pair::serving(10, BlockSize::B256);
    pair.application.code = Code::NOT_FOUND;
    let ask = pair.get();
    pair.settle();
    let answer = Told::Answer { request: ask, code: Code::NOT_FOUND, body: body(10), goes_on: false };
    assert_eq!(pair.take_told(CLIENT), [answer]);
}

#[test]
fn a_body_that_is_too_long_is_refused() {
    for length in [100, 5_000] {
        let mut pair = Pair::serving(length, BlockSize::B256);
        let ask = pair.ask(&ClientRequest { longest: 99, ..get() });
        pair.settle();
        let why = RequestFailure::Download(DownloadError::TooLarge { limit: 99 });
        assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why }]);
    }
}

#[test]
fn an_ask_fails_at_its_deadline_and_not_before() {
    let mut pair = Pair::serving(100_000, BlockSize::B16);
    let deadline = Some(millpond_control::Instant::from_micros(5 * SECOND));
    let ask = pair.ask(&ClientRequest { deadline, ..get() });
    pair.run_until(5 * SECOND - 1);
    assert_eq!(pair.take_told(CLIENT), []);
    let progress = pair.stacks[0].progress(ask).unwrap();
    assert_eq!(progress, Progress { sent: 0, received: 49 * 16, total: None });
    pair.run_until(5 * SECOND);
    assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why: RequestFailure::Deadline }]);
    let sent = pair.datagrams.iter().filter(|(_, side, _)| *side == CLIENT).count();
    pair.run_for(20 * SECOND);
    assert_eq!(pair.datagrams.iter().filter(|(_, side, _)| *side == CLIENT).count(), sent);
}

#[test]
fn a_cancelled_ask_leaves_nothing_under_way() {
    let mut pair = Pair::serving(10_000, BlockSize::B256);
    let ask = pair.get();
    pair.run_until(SECOND / 2);
    assert!(pair.cancel(ask) && !pair.cancel(ask));
    pair.run_for(10 * SECOND);
    assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why: RequestFailure::Cancelled }]);
    assert_eq!((pair.stacks[0].requests(), pair.stacks[0].endpoint().exchanges()), (0, 0));
}

#[test]
fn the_first_message_may_have_a_token_of_ones_own() {
    let mut pair = Pair::serving(600, BlockSize::B256);
    let token = millpond_coap::message::Token::new(b"mine");
    pair.ask(&ClientRequest { token, ..get() });
    pair.settle();
    let requests = pair.datagrams.iter().filter(|(_, side, _)| *side == CLIENT);
    let tokens: Vec<_> = requests.map(|(_, _, datagram)| Message::parse(datagram).unwrap().token).collect();
    assert!(tokens.len() == 3 && Some(tokens[0]) == token && Some(tokens[1]) != token);
}

#[test]
fn several_asks_go_on_side_by_side() {
    let mut pair = Pair::serving(2_000, BlockSize::B256);
    let asks: Vec<_> = (0..3).map(|_| pair.get()).collect();
    pair.settle();
    let told = pair.take_told(CLIENT);
    assert_eq!(told.len(), 3);
    for ask in asks {
        let answer = Told::Answer { request: ask, code: Code::CONTENT, body: body(2_000), goes_on: false };
        assert!(told.contains(&answer));
    }
}

/// RFC 8132 §2: the body of FETCH says what is asked for.
#[test]
fn fetch_carries_its_body_with_every_request() {
    let mut pair = Pair::serving(600, BlockSize::B256);
    pair.ask(&ClientRequest::new(Code::FETCH, PATH).with_body(b"query"));
    pair.settle();
    assert_eq!(pair.answers(), [(body(600), false)]);
    assert_eq!(pair.asked(), 1);
    let requests: Vec<_> = pair.datagrams.iter().filter(|(_, side, _)| *side == CLIENT).collect();
    assert!(requests.iter().all(|(_, _, datagram)| Message::parse(datagram).unwrap().payload() == b"query"));
    // Another body is another question.
    let later = [&b"\x40\x05\x12\x34\xb5large\xc1\x14\xff"[..], b"other"].concat();
    pair.inject(SERVER, &later);
    assert_eq!(pair.asked(), 1);
}

/// A block of an answer that is forgotten by now: to make it anew would be to carry the request out once more, without the
/// body that it had.
#[test]
fn a_later_block_of_a_forgotten_answer_carries_nothing_out_again() {
    let mut pair = Pair::serving(100, BlockSize::B32);
    for (method, is_asked) in [(2, false), (3, false), (4, false), (6, false), (7, false), (1, true), (5, true)] {
        pair.take_told(SERVER);
        // Block2 1/0/32 behind the path.
        pair.inject(SERVER, &[b"\x40", &[method, 0, method][..], b"\xb5large\xc1\x11"].concat());
        let code = Message::parse(&pair.datagrams.last().unwrap().2).unwrap().code;
        assert_eq!(pair.asked(), usize::from(is_asked), "{method}");
        assert_eq!(code, if is_asked { Code::CONTENT } else { Code::REQUEST_ENTITY_INCOMPLETE }, "{method}");
    }
}

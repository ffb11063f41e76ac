//! Whole bodies over a connection: in one frame, in blocks, and in several blocks a frame (BERT).

use std::cell::Cell;
use std::rc::Rc;

use millpond_coap::Failure;
use millpond_coap::block::{BlockSize, DownloadError};
use millpond_coap::message::Token;
use millpond_coap::message::{Code, number};
use millpond_coap::stream::{Closing, Options, Signal, StreamRefused, write_frame};
use millpond_coap::transfer::{Answer, ClientRequest, Config, Refused, RequestFailure};
use millpond_control::{Instant, Span};

use crate::owned::{Event, Output, limited, poll, stack};
use crate::stacks::{Stacks, body, taking};

const MIB: usize = 1 << 20;
const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

fn get() -> ClientRequest<'static> {
    ClientRequest::new(Code::GET, &PATH)
}

/// What an upload of these bytes answers: how many arrived as they were sent.
fn counting(mut stacks: Stacks, bytes: &[u8]) -> Stacks {
    let expected = bytes.to_vec();
    stacks.application = Box::new(move |_, body| (Code::CHANGED, Vec::new(), vec![u8::from(body == expected)]));
    stacks
}

#[test]
fn a_body_that_fits_goes_in_one_frame() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(body(60_000));
    stacks.ask(&get());
    stacks.run();
    assert_eq!(stacks.answered(), (Code::CONTENT, body(60_000)));
    assert_eq!((stacks.up.len(), stacks.down.len()), (2, 2), "settings, request and answer");
    assert_eq!(stacks.down[1].option(number::ETAG), None);
}

/// 1 MiB to a client that takes 1152 bytes: 1024 blocks of 1024 bytes, and nothing is longer than it takes.
#[test]
fn a_mebibyte_down_in_single_blocks() {
    let mut stacks = Stacks::new(taking(1_152), Options::default()).serving(body(MIB));
    stacks.ask(&get());
    stacks.run();
    assert!(stacks.answered() == (Code::CONTENT, body(MIB)));
    assert_eq!(stacks.down.len(), 1 + 1_024);
    assert!(stacks.down.iter().all(|frame| frame.length <= 1_152));
    assert_eq!(stacks.up[2].summary(), "0.01 B2:1/0/6");
    assert_eq!(stacks.down[1_024].summary(), "2.05 B2:1023/0/6");
    let etags: Vec<_> = stacks.down[1..].iter().map(|frame| frame.option(number::ETAG)).collect();
    assert!(etags[0].is_some() && etags.iter().all(|etag| *etag == etags[0]));
}

/// To one that takes 10 000 bytes: nine blocks a frame.
#[test]
fn a_mebibyte_down_with_several_blocks_in_a_frame() {
    let mut stacks = Stacks::new(taking(10_000), Options::default()).serving(body(MIB));
    stacks.ask(&get());
    stacks.run();
    assert!(stacks.answered() == (Code::CONTENT, body(MIB)));
    assert_eq!(stacks.down.len(), 1 + MIB.div_ceil(9 * 1_024));
    assert!(stacks.down.iter().all(|frame| frame.length <= 10_000));
    assert_eq!(stacks.down[1].summary(), "2.05 B2:0/1/7");
    assert_eq!(stacks.up[2].summary(), "0.01 B2:9/0/7");
}

#[test]
fn a_mebibyte_up_in_single_blocks() {
    let bytes = body(MIB);
    let mut stacks = counting(Stacks::new(Options::default(), taking(1_152)), &bytes);
    stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    stacks.run();
    assert_eq!(stacks.answered(), (Code::CHANGED, vec![1]));
    assert_eq!(stacks.up.len(), 1 + 1_024);
    assert!(stacks.up.iter().all(|frame| frame.length <= 1_152));
    assert_eq!(stacks.down[1].summary(), "2.31 B1:0/1/6");
    assert_eq!(stacks.down[1_024].summary(), "2.04 B1:1023/0/6");
    assert_eq!(stacks.up[1].option(number::SIZE1), Some(&[0x10, 0, 0][..]));
    // Some servers put a body together by the token.
    assert!(stacks.up[2..].iter().all(|frame| frame.token == stacks.up[1].token));
}

#[test]
fn a_mebibyte_up_with_several_blocks_in_a_frame() {
    let bytes = body(MIB);
    let mut stacks = counting(Stacks::new(Options::default(), taking(10_000)), &bytes);
    stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    stacks.run();
    assert_eq!(stacks.answered(), (Code::CHANGED, vec![1]));
    assert_eq!(stacks.up.len(), 1 + MIB.div_ceil(9 * 1_024));
    assert_eq!(stacks.up[2].summary(), "0.03 B1:9/1/7");
    assert!(stacks.up.iter().all(|frame| frame.length <= 10_000));
}

#[test]
fn a_long_answer_to_a_long_body() {
    let bytes = body(20_000);
    let mut stacks = Stacks::new(taking(1_152), taking(5_000));
    stacks.ask(&ClientRequest::new(Code::FETCH, &PATH).with_body(&bytes));
    stacks.run();
    assert_eq!(stacks.answered(), (Code::CHANGED, bytes));
    let turn = stacks.down.iter().find(|frame| frame.code == Code::CHANGED).unwrap();
    assert_eq!(turn.summary(), "2.04 B2:0/1/6 B1:16/0/7");
    assert_eq!(stacks.up.last().unwrap().payload, 0, "more of the answer is asked for without the body");
}

/// Bytes arrive one by one, and all is as if they had come at once.
#[test]
fn it_does_not_matter_where_the_stream_is_cut() {
    let bytes = body(3_000);
    let run = |piece| {
        let mut stacks = counting(Stacks::new(taking(1_152), taking(1_152)), &bytes);
        stacks.piece = piece;
        let whole = bytes.clone();
        stacks.application = Box::new(move |code, body| match code {
            Code::GET => (Code::CONTENT, Vec::new(), whole.clone()),
            _ => (Code::CHANGED, Vec::new(), vec![u8::from(body == whole)]),
        });
        stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
        stacks.run();
        stacks.ask(&get());
        stacks.run();
        stacks.answers()
    };
    let whole = run(usize::MAX);
    assert_eq!(whole, [(Code::CHANGED, vec![1], false), (Code::CONTENT, bytes.clone(), false)]);
    for piece in [1, 2, 3, 5, 7, 64, 1_000, 1_151, 1_153] {
        assert_eq!(run(piece), whole, "{piece} bytes at a time");
    }
}

#[test]
fn the_client_may_ask_for_smaller_blocks_from_the_first() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(body(1_000));
    stacks.ask(&ClientRequest { early: Some(BlockSize::B256), ..get() });
    stacks.run();
    assert_eq!(stacks.answered().1, body(1_000));
    let said: Vec<String> = stacks.up[1..].iter().map(super::stacks::Sent::summary).collect();
    assert_eq!(said, ["0.01 B2:0/0/4", "0.01 B2:1/0/4", "0.01 B2:2/0/4", "0.01 B2:3/0/4"]);
}

/// A request that does not fit the base values waits for what the other side really takes.
#[test]
fn a_long_request_waits_for_the_settings() {
    let bytes = body(5_000);
    let mut stacks = counting(Stacks::new(Options::default(), Options::default()), &bytes);
    stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    stacks.ask(&get());
    let first = stacks.drain_client();
    assert!(first.len() < 100, "settings, and the request that fits");
    stacks.server.receive(stacks.now, &first);
    stacks.run();
    assert_eq!(stacks.answers().len(), 2);
    assert_eq!(stacks.up.len(), 3, "in one frame, once it is known to fit");
}

#[test]
fn a_side_without_blocks_gets_none() {
    let plain = Options { block_wise: false, max_message_size: 1_152, ..Options::default() };
    let bytes = body(5_000);
    let mut stacks = Stacks::new(Options::default(), plain);
    stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    stacks.run();
    assert!(
        matches!(stacks.failure(), RequestFailure::Connection(StreamRefused::Message(_))),
        "{:?}",
        stacks.failure()
    );

    let now = Instant::ORIGIN;
    let (mut client, mut server) = (stack(plain, Config::STREAM), stack(Options::default(), Config::STREAM));
    client.request(now, (), &get()).unwrap();
    if let Output::Transmit(bytes) = poll(&mut client, now) {
        server.receive(now, &bytes);
    }
    if let Output::Transmit(bytes) = poll(&mut client, now) {
        server.receive(now, &bytes);
    }
    let id = loop {
        match poll(&mut server, now) {
            Output::Event(Event::Request { id, .. }) => break id,
            Output::Idle => panic!("no request"),
            _ => {}
        }
    };
    let long = Answer::new(Code::CONTENT, &[]).with_body(&bytes);
    assert_eq!(server.answer(now, id, &long), Err(Refused::TooLongForPeer { limit: 1_152 }));
    assert_eq!(server.answer(now, id, &Answer::new(Code::INTERNAL_SERVER_ERROR, &[])), Ok(()));
    assert_eq!(server.answer(now, id, &long), Err(Refused::Endpoint(millpond_coap::Refused::UnknownRequest)));
}

/// Later settings take back that several blocks fit a frame: the upload begins anew with single ones.
#[test]
fn later_settings_may_take_several_blocks_back() {
    let bytes = body(100_000);
    let mut stacks = counting(Stacks::new(Options::default(), taking(10_000)), &bytes);
    stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    // Settings to and fro, and the first pieces.
    for _ in 0..3 {
        let up = stacks.drain_client();
        stacks.server.receive(stacks.now, &up);
        let down = stacks.drain_server();
        stacks.client.receive(stacks.now, &down);
    }
    assert!(stacks.up.last().unwrap().summary().ends_with("/1/7"));
    let mut csm = Vec::new();
    Signal::Csm { max_message_size: Some(1_152), block_wise: true, longest_token: None }
        .write(&mut csm, Token::EMPTY, u32::MAX)
        .unwrap();
    stacks.client.receive(stacks.now, &csm);
    stacks.run();
    assert_eq!(stacks.answered(), (Code::CHANGED, vec![1]));
    let single = stacks.up.iter().filter(|frame| frame.summary().ends_with("/6")).count();
    assert_eq!(single, 98, "all of it once more");
}

/// Whatever the connection answers by itself reaches the other side.
#[test]
fn pings_and_refused_requests_are_answered() {
    let deaf = Options { serves: false, ..Options::default() };
    let mut stacks = Stacks::new(Options::default(), deaf);
    stacks.run();
    stacks.client.ping(stacks.now, true).unwrap();
    stacks.run();
    assert_eq!(stacks.told.last(), Some(&Event::Pong { custody: true }));
    stacks.ask(&get());
    stacks.run();
    assert!(matches!(stacks.told.last(), Some(Event::Answer { code: Code::NOT_IMPLEMENTED, .. })));
}

#[test]
fn a_peer_that_does_not_begin_with_its_settings_is_left() {
    let mut client = stack(Options::default(), Config::STREAM);
    client.request(Instant::ORIGIN, (), &get()).unwrap();
    client.receive(Instant::ORIGIN, &[0x01, 0x45, 0x01]);
    let (mut told, mut sent) = (Vec::new(), Vec::new());
    let why = loop {
        match poll(&mut client, Instant::ORIGIN) {
            Output::Close(why) => break why,
            Output::Event(event) => told.push(event),
            Output::Transmit(bytes) => sent.extend_from_slice(&bytes),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(why, Closing::NoSettings);
    assert!(
        matches!(told[..], [Event::Failed { why: RequestFailure::Exchange(Failure::ConnectionClosed), .. }]),
        "{told:?}"
    );
    assert!(matches!(poll(&mut client, Instant::ORIGIN), Output::Idle));
    assert!(client.request(Instant::ORIGIN, (), &get()).is_err());
}

/// A repeated CSM changes what it names and leaves the rest.
#[test]
fn repeated_settings_add_up() {
    let mut stacks = Stacks::new(Options::default(), Options::default());
    stacks.run();
    for (csm, expected) in [
        (Signal::Csm { max_message_size: Some(2_000), block_wise: false, longest_token: None }, (2_000, true)),
        (Signal::Csm { max_message_size: None, block_wise: false, longest_token: None }, (2_000, true)),
        (Signal::Csm { max_message_size: Some(500), block_wise: true, longest_token: None }, (500, true)),
    ] {
        let mut bytes = Vec::new();
        csm.write(&mut bytes, Token::EMPTY, u32::MAX).unwrap();
        stacks.client.receive(stacks.now, &bytes);
        stacks.run();
        let settings = stacks.client.settings();
        assert_eq!((settings.max_message_size, settings.block_wise), expected);
    }
}

#[test]
fn bodies_over_the_limit_are_refused() {
    let config = limited(|limits| (limits.body, limits.bytes) = (4_000, 4_000));
    let bytes = body(5_000);
    // Its own.
    let mut stacks = Stacks::with(Options::default(), taking(1_152), config);
    let refused = stacks.client.request(stacks.now, (), &ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    assert_eq!(refused, Err(Refused::OutOfBytes { limit: 4_000 }));
    // The other side's, by Size1 of the first block.
    stacks.client = stack(Options::default(), Config::STREAM);
    stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    stacks.run();
    assert_eq!(stacks.answered().0, Code::REQUEST_ENTITY_TOO_LARGE, "an error is an answer");
    assert_eq!(stacks.up.len(), 2, "after the first block");
    assert_eq!(stacks.closed, [None; 2], "the connection stays");
    // An answer's.
    let mut stacks = Stacks::new(taking(1_152), Options::default()).serving(body(5_000));
    stacks.ask(&ClientRequest { longest: 3_000, ..get() });
    stacks.run();
    assert_eq!(stacks.failure(), RequestFailure::Download(DownloadError::TooLarge { limit: 3_000 }));
    assert_eq!((stacks.client.requests(), stacks.closed), (0, [None; 2]));
}

/// Raw requests to a server: what cannot be is answered, and the connection stays.
#[test]
fn blocks_that_cannot_be_are_answered_as_the_rfc_asks() {
    // Max-Message-Size of the server, option, payload, answer.
    type Case = (&'static str, u32, u16, Vec<u8>, usize, Code);
    let block = |number: u32, more: u32, size: u32| (number << 4 | more << 3 | size).to_be_bytes()[1..].to_vec();
    let cases: [Case; 7] = [
        ("past the end", 65_536, number::BLOCK2, block(100, 0, 6), 0, Code::BAD_REQUEST),
        ("far past the end", 65_536, number::BLOCK2, block(0xf_ffff, 0, 7), 0, Code::BAD_REQUEST),
        ("several blocks where none were allowed", 1_152, number::BLOCK2, block(0, 0, 7), 0, Code::BAD_REQUEST),
        ("an option of four bytes", 65_536, number::BLOCK2, vec![0, 0, 0, 6], 0, Code::BAD_OPTION),
        ("a body without beginning", 65_536, number::BLOCK1, block(1, 1, 6), 1_024, Code::REQUEST_ENTITY_INCOMPLETE),
        ("a block that is not full", 65_536, number::BLOCK1, block(0, 1, 6), 1_000, Code::BAD_REQUEST),
        ("several blocks that are not full", 65_536, number::BLOCK1, block(0, 1, 7), 2_000, Code::BAD_REQUEST),
    ];
    for (what, size, number, value, payload, code) in cases {
        let mut stacks = Stacks::new(Options::default(), taking(size)).serving(body(80_000));
        stacks.run();
        let mut bytes = Vec::new();
        let token = Token::new(&[9]).unwrap();
        write_frame(&mut bytes, Code::GET, token, &[(number, &value)], &body(payload), u32::MAX).unwrap();
        stacks.server.receive(stacks.now, &bytes);
        stacks.drain_server();
        assert_eq!(stacks.down.last().unwrap().code, code, "{what}");
        assert_eq!(stacks.closed[1], None, "{what}: the connection stays");
    }
}

/// A peer stops in the middle of a frame, and in the middle of a body: what was held is dropped.
#[test]
fn what_a_peer_does_not_finish_is_dropped() {
    let mut stacks = Stacks::new(Options::default(), taking(10_000));
    let bytes = body(500_000);
    stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    for _ in 0..20 {
        let up = stacks.drain_client();
        stacks.server.receive(stacks.now, &up);
        let down = stacks.drain_server();
        stacks.client.receive(stacks.now, &down);
    }
    assert!(stacks.server.memory() > 100_000, "{}", stacks.server.memory());
    // Nothing comes any more.
    stacks.later(248);
    stacks.drain_server();
    assert!(stacks.server.memory() < 40_000, "{}", stacks.server.memory());
    // Half a frame, and the stream breaks.
    let up = stacks.drain_client();
    stacks.server.receive(stacks.now, &up[..up.len() / 2]);
    stacks.server.stream_ended();
    stacks.drain_server();
    assert_eq!(stacks.closed[1], Some(Closing::StreamEnded));
    assert!(stacks.server.memory() < 40_000, "{}", stacks.server.memory());
    stacks.client.stream_ended();
    stacks.run();
    assert_eq!(stacks.failure(), RequestFailure::Exchange(Failure::ConnectionClosed));
    assert_eq!(stacks.client.requests(), 0);
}

/// The representation is no longer kept: the application is asked again, and the block that was asked for is cut from
/// what it answers now; another ETag begins the body anew.
#[test]
fn a_body_that_is_no_longer_kept_is_asked_for_again() {
    let config = limited(|limits| limits.cached = 0);
    let asked = Rc::new(Cell::new(0));
    let count = Rc::clone(&asked);
    let mut stacks = Stacks::with(taking(1_152), Options::default(), config);
    stacks.application = Box::new(move |_, _| {
        count.set(count.get() + 1);
        (Code::CONTENT, vec![(number::ETAG, vec![7])], body(5_000))
    });
    stacks.ask(&get());
    stacks.run();
    assert_eq!(stacks.answered().1, body(5_000));
    assert_eq!(asked.get(), 5, "once for each block");

    let mut stacks = Stacks::with(taking(1_152), Options::default(), config);
    let mut version = 0_u8;
    stacks.application = Box::new(move |_, _| {
        version = (version + 1).min(3);
        (Code::CONTENT, vec![(number::ETAG, vec![version])], vec![version; 5_000])
    });
    stacks.ask(&get());
    stacks.run();
    assert_eq!(stacks.answered().1, vec![3; 5_000]);
}

#[test]
fn a_deadline_ends_an_ask() {
    let mut stacks = Stacks::new(Options::default(), Options::default());
    stacks.run();
    let due = stacks.now.after(Span::from_secs(10));
    stacks.ask(&ClientRequest { deadline: Some(due), ..get() });
    stacks.drain_client();
    assert_eq!(stacks.sleep, Some(due));
    stacks.later(9);
    stacks.drain_client();
    assert_eq!(stacks.client.requests(), 1);
    stacks.later(1);
    stacks.drain_client();
    assert_eq!((stacks.failure(), stacks.client.requests()), (RequestFailure::Deadline, 0));
}

#[test]
fn many_asks_at_once_wait_for_their_turn() {
    let few = Options { requests: 4, ..Options::default() };
    let mut stacks = Stacks::new(few, Options::default()).serving(body(3_000));
    for _ in 0..100 {
        stacks.ask(&get());
    }
    stacks.run();
    assert_eq!(stacks.answers().len(), 100);
    assert!(stacks.answers().iter().all(|(_, bytes, goes_on)| *bytes == body(3_000) && !goes_on));
}

#[test]
fn what_the_stack_sets_itself_is_refused() {
    let mut client = stack(Options::default(), Config::STREAM);
    let own = [(number::BLOCK2, &[][..])];
    let refused = client.request(Instant::ORIGIN, (), &ClientRequest::new(Code::GET, &own));
    assert_eq!(refused, Err(Refused::OwnOption { number: number::BLOCK2 }));
    let refused = client.request(Instant::ORIGIN, (), &ClientRequest::new(Code::PUT, &PATH).observing());
    assert_eq!(refused, Err(Refused::NotObservable(Code::PUT)));
    let refused = client.request(Instant::ORIGIN, (), &ClientRequest::new(Code::CONTENT, &PATH));
    assert_eq!(refused, Err(Refused::Connection(StreamRefused::Code(Code::CONTENT))));
}

/// The block that is asked for lies behind the end of what is there now (RFC 7959 §2.4): the body is fetched anew.
#[test]
fn a_body_that_becomes_shorter_is_fetched_anew() {
    let mut stacks = Stacks::with(taking(1_152), Options::default(), limited(|limits| limits.cached = 0));
    let mut lengths = [5_000, 5_000, 1_500].into_iter();
    stacks.application = Box::new(move |_, _| (Code::CONTENT, Vec::new(), body(lengths.next().unwrap_or(1_500))));
    stacks.ask(&get());
    stacks.run();
    assert_eq!(stacks.answered(), (Code::CONTENT, body(1_500)));
    assert!(stacks.down.iter().any(|frame| frame.code == Code::BAD_REQUEST));
}

/// A peer that is answered by nothing keeps no place at the server.
#[test]
fn requests_that_are_rejected_or_get_no_answer_are_off_the_books() {
    let (now, few) = (Instant::ORIGIN, Options { requests: 2, ..Options::default() });
    let mut server = stack(few, Config::STREAM);
    server.receive(now, b"\x00\xe1");
    for token in 0..100_u8 {
        server.receive(now, &[0x01, 0x01, token]);
        let (mut sent, mut asked) = (Vec::new(), None);
        loop {
            match poll(&mut server, now) {
                Output::Transmit(bytes) => sent.extend_from_slice(&bytes),
                Output::Event(Event::Request { id, .. }) => asked = Some(id),
                Output::Event(_) => {}
                _ => match asked.take() {
                    Some(id) if token % 2 == 0 => server.suppress_response(now, id).unwrap(),
                    Some(id) => server.reject(now, id).unwrap(),
                    None => break,
                },
            }
        }
        let answer: &[u8] = if token % 2 == 0 { &[] } else { &[0x01, 0x82, token] };
        assert!(sent.ends_with(answer) && (token == 0 || sent.len() == answer.len()), "{token}: {sent:x?}");
    }
}

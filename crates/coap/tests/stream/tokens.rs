//! Tokens that the client has chosen.

use millpond_coap::message::{Code, Token, number};
use millpond_coap::stream::Options;
use millpond_coap::transfer::ClientRequest;

use crate::owned::Event;
use crate::stacks::{Stacks, body, taking};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

fn with(token: &[u8]) -> ClientRequest<'static> {
    ClientRequest { token: Token::new(token), ..ClientRequest::new(Code::GET, &PATH) }
}

fn tokens(stacks: &Stacks) -> Vec<Vec<u8>> {
    stacks.up.iter().skip(1).map(|frame| frame.token.clone()).collect()
}

#[test]
fn a_request_has_the_token_that_it_was_given_of_any_length() {
    let bytes = *b"\xff\0\0\x01\x05\x06\x07\x08";
    for length in 0..=8 {
        let mut stacks = Stacks::new(Options::default(), Options::default()).serving(body(10));
        stacks.ask(&with(&bytes[..length]));
        stacks.run();
        assert_eq!(stacks.answered(), (Code::CONTENT, body(10)));
        assert_eq!(tokens(&stacks), [bytes[..length].to_vec()]);
    }
}

#[test]
fn two_requests_with_one_token_are_under_way_one_after_the_other() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(body(10));
    let asks = [stacks.ask(&with(b"same")), stacks.ask(&with(b"same"))];
    stacks.run();
    let answered = stacks.told.iter().filter_map(|told| match told {
        Event::Answer { request: ask, .. } => Some(*ask),
        _ => None,
    });
    assert!(answered.eq(asks));
    assert_eq!(tokens(&stacks), [b"same".to_vec(), b"same".to_vec()]);
}

#[test]
fn all_blocks_of_a_body_have_it_and_the_blocks_of_its_answer_have_others() {
    let mut stacks = Stacks::new(Options::default(), taking(1_152));
    let bytes = body(3_000);
    stacks.ask(&ClientRequest { token: Token::new(b"mine"), ..ClientRequest::new(Code::PUT, &PATH).with_body(&bytes) });
    stacks.run();
    assert_eq!(tokens(&stacks), vec![b"mine".to_vec(); 3]);

    let mut stacks = Stacks::new(taking(1_152), Options::default()).serving(body(3_000));
    stacks.ask(&with(b"mine"));
    stacks.run();
    let tokens = tokens(&stacks);
    assert_eq!(tokens.len(), 3);
    assert_eq!(tokens[0], b"mine");
    assert!(tokens[1..].iter().all(|token| token != b"mine"));
}

#[test]
fn an_observation_has_it_until_it_is_over() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(body(10));
    let ask = stacks.ask(&with(b"eye").observing());
    stacks.run();
    assert!(stacks.client.cancel(stacks.now, ask));
    stacks.run();
    assert_eq!(tokens(&stacks), [b"eye".to_vec(), b"eye".to_vec()], "registration and its end");
    assert_eq!(stacks.up[2].summary(), "0.01 O:1");
}

/// RFC 8974: a client whose tokens have so many bytes, and a server that takes as many.
fn extended(length: u16, longest: u16) -> Stacks {
    let client = Options { token_length: length, ..Options::default() };
    Stacks::new(client, Options { longest_token: longest, ..Options::default() })
}

#[test]
fn long_tokens_are_taken_as_far_as_the_settings_say() {
    for length in [9, 13, 268, 269, 60_000] {
        let mut stacks = extended(length, length).serving(body(10));
        stacks.ask(&ClientRequest::new(Code::GET, &PATH));
        stacks.run();
        assert_eq!(stacks.answered(), (Code::CONTENT, body(10)));
        assert_eq!(tokens(&stacks)[0].len(), usize::from(length));
    }
}

#[test]
fn a_client_does_not_send_what_is_not_taken() {
    let mut stacks = extended(20, 8).serving(body(10));
    let ask = stacks.ask(&ClientRequest::new(Code::GET, &PATH));
    stacks.run();
    let failed = stacks.told.iter().any(|told| matches!(told, Event::Failed { request: failed, .. } if *failed == ask));
    assert!(failed && tokens(&stacks).is_empty(), "{:?}", stacks.told);
}

#[test]
fn an_observation_lasts_on_a_long_token() {
    let mut stacks = extended(30, 30).serving(body(10));
    let ask = stacks.ask(&ClientRequest::new(Code::GET, &PATH).observing());
    stacks.run();
    assert!(stacks.client.cancel(stacks.now, ask));
    stacks.run();
    let tokens = tokens(&stacks);
    assert_eq!((tokens.len(), &tokens[0]), (2, &tokens[1]), "registration and its end");
    assert_eq!(tokens[0].len(), 30);
}

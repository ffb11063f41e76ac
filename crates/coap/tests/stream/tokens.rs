//! Tokens that the client has chosen.

use millpond_coap::message::{Code, Token, number};
use millpond_coap::stream::Options;
use millpond_coap::transfer::Ask;

use crate::hosts::{Hosts, body, taking};
use crate::owned::Event;

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

fn with(token: &[u8]) -> Ask<'static> {
    Ask { token: Token::new(token), ..Ask::new(Code::GET, &PATH) }
}

fn tokens(hosts: &Hosts) -> Vec<Vec<u8>> {
    hosts.up.iter().skip(1).map(|frame| frame.token.clone()).collect()
}

#[test]
fn a_request_has_the_token_that_it_was_given_of_any_length() {
    let bytes = *b"\xff\0\0\x01\x05\x06\x07\x08";
    for length in 0..=8 {
        let mut hosts = Hosts::new(Options::default(), Options::default()).serving(body(10));
        hosts.ask(&with(&bytes[..length]));
        hosts.run();
        assert_eq!(hosts.answered(), (Code::CONTENT, body(10)));
        assert_eq!(tokens(&hosts), [bytes[..length].to_vec()]);
    }
}

#[test]
fn two_requests_with_one_token_are_under_way_one_after_the_other() {
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(body(10));
    let asks = [hosts.ask(&with(b"same")), hosts.ask(&with(b"same"))];
    hosts.run();
    let answered = hosts.told.iter().filter_map(|told| match told {
        Event::Answer { ask, .. } => Some(*ask),
        _ => None,
    });
    assert!(answered.eq(asks));
    assert_eq!(tokens(&hosts), [b"same".to_vec(), b"same".to_vec()]);
}

#[test]
fn all_blocks_of_a_body_have_it_and_the_blocks_of_its_answer_have_others() {
    let mut hosts = Hosts::new(Options::default(), taking(1_152));
    let bytes = body(3_000);
    hosts.ask(&Ask { token: Token::new(b"mine"), ..Ask::new(Code::PUT, &PATH).with_body(&bytes) });
    hosts.run();
    assert_eq!(tokens(&hosts), vec![b"mine".to_vec(); 3]);

    let mut hosts = Hosts::new(taking(1_152), Options::default()).serving(body(3_000));
    hosts.ask(&with(b"mine"));
    hosts.run();
    let tokens = tokens(&hosts);
    assert_eq!(tokens.len(), 3);
    assert_eq!(tokens[0], b"mine");
    assert!(tokens[1..].iter().all(|token| token != b"mine"));
}

#[test]
fn an_observation_has_it_until_it_is_over() {
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(body(10));
    let ask = hosts.ask(&with(b"eye").observing());
    hosts.run();
    assert!(hosts.client.cancel(hosts.now, ask));
    hosts.run();
    assert_eq!(tokens(&hosts), [b"eye".to_vec(), b"eye".to_vec()], "registration and its end");
    assert_eq!(hosts.up[2].summary(), "0.01 O:1");
}

/// RFC 8974: a client whose tokens have so many bytes, and a server that takes as many.
fn extended(length: u16, longest: u16) -> Hosts {
    let client = Options { token_length: length, ..Options::default() };
    Hosts::new(client, Options { longest_token: longest, ..Options::default() })
}

#[test]
fn long_tokens_are_taken_as_far_as_the_settings_say() {
    for length in [9, 13, 268, 269, 60_000] {
        let mut hosts = extended(length, length).serving(body(10));
        hosts.ask(&Ask::new(Code::GET, &PATH));
        hosts.run();
        assert_eq!(hosts.answered(), (Code::CONTENT, body(10)));
        assert_eq!(tokens(&hosts)[0].len(), usize::from(length));
    }
}

#[test]
fn a_client_does_not_send_what_is_not_taken() {
    let mut hosts = extended(20, 8).serving(body(10));
    let ask = hosts.ask(&Ask::new(Code::GET, &PATH));
    hosts.run();
    let failed = hosts.told.iter().any(|told| matches!(told, Event::Failed { ask: failed, .. } if *failed == ask));
    assert!(failed && tokens(&hosts).is_empty(), "{:?}", hosts.told);
}

#[test]
fn an_observation_lasts_on_a_long_token() {
    let mut hosts = extended(30, 30).serving(body(10));
    let ask = hosts.ask(&Ask::new(Code::GET, &PATH).observing());
    hosts.run();
    assert!(hosts.client.cancel(hosts.now, ask));
    hosts.run();
    let tokens = tokens(&hosts);
    assert_eq!((tokens.len(), &tokens[0]), (2, &tokens[1]), "registration and its end");
    assert_eq!(tokens[0].len(), 30);
}

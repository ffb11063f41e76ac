//! Requests that do not want all responses (No-Response, RFC 7967): over a stream nothing acknowledges them.

use millpond_coap::message::{Code, NoResponse, Token, number};
use millpond_coap::stream::{Options, StreamRefused};
use millpond_coap::transfer::{ClientRequest, RequestFailure};
use millpond_coap::{Failure, Outgoing};

use crate::owned::Event;
use crate::side::{Both, Told, asked, drain};
use crate::stacks::{Stacks, body, taking};

const NOTHING: &[(u16, &[u8])] = &[(number::NO_RESPONSE, &[NoResponse::ALL.value()])];
const ERRORS: &[(u16, &[u8])] = &[(number::NO_RESPONSE, &[NoResponse::SUCCESS.value()])];

#[test]
fn one_that_wants_none_is_over_once_it_left_and_what_comes_all_the_same_is_unasked() {
    let mut both = Both::new();
    let first = both.client.request(both.now, &Outgoing::confirmable(Code::PUT, NOTHING)).unwrap();
    assert_eq!(both.client.requests(), 0);
    let (client, server) = both.exchange();
    assert_eq!(client, [Told::Left(first)]);
    let request = asked(&server);
    both.server.respond(both.now, request, &Outgoing::confirmable(Code::CHANGED, &[])).unwrap();
    assert_eq!(both.exchange().0, [Told::Unasked(Code::CHANGED)]);
    // The next one has another token.
    let second = both.client.request(both.now, &Outgoing::confirmable(Code::GET, &[])).unwrap();
    assert_ne!(first, second);
    let (_, server) = both.exchange();
    let answer = Outgoing::confirmable(Code::CONTENT, &[]);
    both.server.respond(both.now, asked(&server), &answer).unwrap();
    assert_eq!(both.exchange().0, [Told::Response(second, Code::CONTENT, vec![], true)]);
}

/// A server that does not know the option answers on the token, and a peer that has it next would take that for its own answer.
#[test]
fn a_token_that_was_chosen_for_one_rests_until_a_response_came_or_none_can_come() {
    let mut both = Both::new();
    let token = Token::new(b"mine");
    let put = Outgoing { token, ..Outgoing::confirmable(Code::PUT, NOTHING) };
    let get = Outgoing { token, ..Outgoing::confirmable(Code::GET, &[]) };
    both.client.request(both.now, &put).unwrap();
    let (_, server) = both.exchange();
    let late = asked(&server);
    assert_eq!(both.client.request(both.now, &get), Err(StreamRefused::TokenInUse));
    both.server.respond(both.now, late, &Outgoing::confirmable(Code::CHANGED, &[])).unwrap();
    assert_eq!(both.exchange().0, [Told::Unasked(Code::CHANGED), Told::TokenFree]);
    let id = both.client.request(both.now, &get).unwrap();
    let (_, server) = both.exchange();
    both.server.respond(both.now, asked(&server), &Outgoing::confirmable(Code::CONTENT, &[])).unwrap();
    assert_eq!(both.exchange().0, [Told::Response(id, Code::CONTENT, vec![], true)]);
    // Those that take no response may have it meanwhile. Unanswered it rests after the last of them.
    both.client.request(both.now, &put).unwrap();
    both.later(100);
    both.client.request(both.now, &put).unwrap();
    both.later(249);
    assert_eq!(both.client.request(both.now, &get), Err(StreamRefused::TokenInUse));
    both.later(1);
    assert_eq!(drain(&mut both.client, both.now).1.last(), Some(&Told::TokenFree));
    assert!(both.client.request(both.now, &get).is_ok());
}

#[test]
fn of_tokens_that_rest_so_many_are_remembered_and_none_is_made_again() {
    let mut both = Both::new();
    let fixed = |number: u16| Token::new(&number.to_be_bytes());
    let mut memory = 0;
    for number in 0..5_000 {
        let put = Outgoing { token: fixed(number), ..Outgoing::confirmable(Code::PUT, NOTHING) };
        both.client.request(both.now, &put).unwrap();
        drain(&mut both.client, both.now);
        if number == 2_000 {
            memory = both.client.memory();
        }
    }
    assert!(both.client.memory() <= memory + 1_000);
    let get = Outgoing { token: fixed(4_999), ..Outgoing::confirmable(Code::GET, &[]) };
    assert_eq!(both.client.request(both.now, &get), Err(StreamRefused::TokenInUse));
    // The next one of its own making would be that which was chosen before.
    let mut both = Both::new();
    let chosen = Outgoing { token: Token::new(&[2]), ..Outgoing::confirmable(Code::PUT, NOTHING) };
    both.client.request(both.now, &chosen).unwrap();
    both.client.request(both.now, &Outgoing::confirmable(Code::GET, &[])).unwrap();
    let (_, server) = both.exchange();
    let Told::Request(late, ..) = server[0] else { panic!("{server:?}") };
    both.server.respond(both.now, late, &Outgoing::confirmable(Code::CHANGED, &[])).unwrap();
    assert_eq!(both.exchange().0, [Told::Unasked(Code::CHANGED)]);
}

#[test]
fn a_stack_holds_a_request_back_whose_token_rests() {
    let mut stacks = Stacks::new(Options::default(), Options::default());
    stacks.application =
        Box::new(
            |code, _| {
                if code == Code::GET { (Code::CONTENT, vec![], body(9)) } else { (Code::CHANGED, vec![], body(1)) }
            },
        );
    stacks.run();
    stacks.told.clear();
    let token = Token::new(b"mine");
    let put = stacks.ask(&ClientRequest { token, ..ClientRequest::new(Code::PUT, NOTHING) });
    let get = stacks.ask(&ClientRequest { token, ..ClientRequest::new(Code::GET, &[]) });
    stacks.run();
    let [Event::Unanswered { request: ask, .. }, Event::Answer { request: answered, code, body: got, .. }] =
        &stacks.told[..]
    else {
        panic!("{:?}", stacks.told)
    };
    assert_eq!((*ask, *answered, *code, got), (put, get, Code::CONTENT, &body(9)));
    // From a server that knows the option nothing comes, and it leaves when nothing can come any more.
    stacks.told.clear();
    stacks.ask(&ClientRequest { token, ..ClientRequest::new(Code::PUT, NOTHING) });
    stacks.ask(&ClientRequest { token, ..ClientRequest::new(Code::GET, &[]) });
    let before = stacks.now;
    stacks.drain_client();
    assert_eq!(stacks.up.last().map(|sent| sent.code), Some(Code::PUT));
    stacks.later(250);
    assert_eq!((stacks.sleep, stacks.now > before), (Some(stacks.now), true));
    stacks.drain_client();
    assert_eq!(stacks.up.last().map(|sent| sent.code), Some(Code::GET));
}

#[test]
fn a_stack_tells_that_it_left_whatever_the_length_of_the_body_that_fits_a_message() {
    let mut stacks = Stacks::new(Options::default(), taking(1 << 20));
    stacks.run();
    stacks.told.clear();
    let long = body(50_000);
    let ask = stacks.ask(&ClientRequest::new(Code::PUT, NOTHING).with_body(&long));
    stacks.run();
    assert_eq!(stacks.told, [Event::Unanswered { request: ask, is_acknowledged: false }]);
    assert_eq!(stacks.client.requests(), 0);
}

/// Each block would need its response.
#[test]
fn a_body_that_does_not_fit_a_message_is_not_cut() {
    let mut stacks = Stacks::new(Options::default(), taking(2_000));
    stacks.run();
    stacks.told.clear();
    let long = body(50_000);
    assert!(stacks.client.request(stacks.now, (), &ClientRequest::new(Code::PUT, NOTHING).with_body(&long)).is_err());
    assert_eq!(stacks.client.requests(), 0);
}

#[test]
fn one_that_wants_some_is_let_go_and_fails_with_its_connection() {
    let mut stacks = Stacks::new(Options::default(), Options::default());
    let ask = stacks.ask(&ClientRequest::new(Code::PUT, ERRORS));
    let _up = stacks.drain_client();
    assert!(stacks.client.end_unanswered(stacks.now, ask) && !stacks.client.end_unanswered(stacks.now, ask));
    stacks.drain_client();
    assert_eq!(stacks.told, [Event::Unanswered { request: ask, is_acknowledged: false }]);
    stacks.told.clear();
    let ask = stacks.ask(&ClientRequest::new(Code::PUT, ERRORS));
    stacks.drain_client();
    stacks.client.stream_ended();
    stacks.drain_client();
    assert!(
        matches!(stacks.told[..], [Event::Failed { request: lost, why: RequestFailure::Exchange(Failure::ConnectionClosed) }] if lost == ask)
    );
}

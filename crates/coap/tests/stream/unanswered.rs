//! Requests that do not want all responses (No-Response, RFC 7967): over a stream nothing acknowledges them.

use millpond_coap::Outgoing;
use millpond_coap::message::{Code, NoResponse, number};
use millpond_coap::stream::Options;
use millpond_coap::transfer::{Ask, AskFailure};

use crate::hosts::{Hosts, body, taking};
use crate::owned::Event;
use crate::side::{Both, Told, asked};

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

#[test]
fn a_host_tells_that_it_left_whatever_the_length_of_the_body_that_fits_a_message() {
    let mut hosts = Hosts::new(Options::default(), taking(1 << 20));
    hosts.run();
    hosts.told.clear();
    let long = body(50_000);
    let ask = hosts.ask(&Ask::new(Code::PUT, NOTHING).with_body(&long));
    hosts.run();
    assert_eq!(hosts.told, [Event::Unanswered { ask, is_acknowledged: false }]);
    assert_eq!(hosts.client.asks(), 0);
}

/// Each block would need its response.
#[test]
fn a_body_that_does_not_fit_a_message_is_not_cut() {
    let mut hosts = Hosts::new(Options::default(), taking(2_000));
    hosts.run();
    hosts.told.clear();
    let long = body(50_000);
    assert!(hosts.client.ask(hosts.now, (), &Ask::new(Code::PUT, NOTHING).with_body(&long)).is_err());
    assert_eq!(hosts.client.asks(), 0);
}

#[test]
fn one_that_wants_some_is_let_go_and_fails_with_its_connection() {
    let mut hosts = Hosts::new(Options::default(), Options::default());
    let ask = hosts.ask(&Ask::new(Code::PUT, ERRORS));
    let _up = hosts.drain_client();
    assert!(hosts.client.let_go(hosts.now, ask) && !hosts.client.let_go(hosts.now, ask));
    hosts.drain_client();
    assert_eq!(hosts.told, [Event::Unanswered { ask, is_acknowledged: false }]);
    hosts.told.clear();
    let ask = hosts.ask(&Ask::new(Code::PUT, ERRORS));
    hosts.drain_client();
    hosts.client.stream_ended();
    hosts.drain_client();
    assert!(matches!(hosts.told[..], [Event::Failed { ask: lost, why: AskFailure::Lost(_) }] if lost == ask));
}

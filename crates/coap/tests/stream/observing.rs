//! Observations over a connection, of bodies of any length.

use millpond_coap::Failure;
use millpond_coap::message::{Code, number};
use millpond_coap::stream::{Closing, Options};
use millpond_coap::transfer::{Answer, Ask, AskFailure};

use crate::hosts::{Hosts, body, taking};
use crate::owned::{Event, limited};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

fn observe() -> Ask<'static> {
    Ask::new(Code::GET, &PATH).observing()
}

fn notify(hosts: &mut Hosts, bytes: &[u8]) {
    let observer = hosts.observers[0];
    hosts.server.notify(hosts.now, observer, &Answer::new(Code::CONTENT, &[]).with_body(bytes)).unwrap();
}

#[test]
fn every_state_is_told_until_it_is_no_longer_wanted() {
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(b"first".to_vec());
    let ask = hosts.ask(&observe());
    hosts.run();
    notify(&mut hosts, b"second");
    hosts.run();
    let said: Vec<_> = hosts.answers().into_iter().map(|(_, body, goes_on)| (body, goes_on)).collect();
    assert_eq!(said, [(b"first".to_vec(), true), (b"second".to_vec(), true)]);
    assert!(hosts.client.cancel(hosts.now, ask));
    hosts.run();
    assert_eq!(hosts.up.last().unwrap().summary(), "0.01 O:1");
    assert!(matches!(hosts.told.last(), Some(Event::Failed { why: AskFailure::Cancelled, .. })));
    assert!(matches!(hosts.server_told.last(), Some(Event::ObserverGone { .. })), "{:?}", hosts.server_told);
    assert_eq!((hosts.client.asks(), hosts.server.observers()), (0, 0));
}

/// Only what is newest leaves, however many there were.
#[test]
fn only_the_newest_state_leaves() {
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(b"first".to_vec());
    hosts.ask(&observe());
    hosts.run();
    for state in 0..100_u8 {
        notify(&mut hosts, &[state]);
    }
    hosts.run();
    assert_eq!(hosts.answers().len(), 2);
    assert_eq!(hosts.answers()[1].1, [99]);
}

/// The first block comes with the notification, the rest is fetched without Observe.
#[test]
fn long_states_are_fetched_block_by_block() {
    let mut hosts = Hosts::new(taking(1_152), Options::default()).serving(body(3_000));
    hosts.ask(&observe());
    hosts.run();
    assert_eq!(hosts.answers()[0].1, body(3_000));
    let requests: Vec<String> = hosts.up[1..].iter().map(super::hosts::Sent::summary).collect();
    assert_eq!(requests, ["0.01 O:0", "0.01 B2:1/0/6", "0.01 B2:2/0/6"]);
    assert!(hosts.down[1].option(number::OBSERVE).is_some());
    assert!(hosts.down[2..].iter().all(|frame| frame.option(number::OBSERVE).is_none()));
    notify(&mut hosts, &body(4_000));
    hosts.run();
    assert_eq!(hosts.answers()[1].1, body(4_000));
    notify(&mut hosts, b"short");
    hosts.run();
    assert_eq!(hosts.answers()[2], (Code::CONTENT, b"short".to_vec(), true));
}

/// A newer state comes while an older one is being fetched: only the newer one is told.
#[test]
fn a_newer_state_replaces_one_that_is_being_fetched() {
    let mut hosts = Hosts::new(taking(1_152), Options::default()).serving(b"first".to_vec());
    hosts.ask(&observe());
    hosts.run();
    notify(&mut hosts, &[2; 3_000]);
    let down = hosts.drain_server();
    hosts.client.receive(hosts.now, &down);
    let up = hosts.drain_client();
    assert_eq!(hosts.up.last().unwrap().summary(), "0.01 B2:1/0/6");
    notify(&mut hosts, &[3; 3_000]);
    let down = hosts.drain_server();
    hosts.client.receive(hosts.now, &down);
    hosts.drain_client_into(up);
    hosts.run();
    let said: Vec<_> = hosts.answers().into_iter().map(|(_, body, _)| body).collect();
    assert_eq!(said, [b"first".to_vec(), vec![3; 3_000]]);
    assert_eq!(hosts.client.asks(), 1);
}

#[test]
fn an_error_is_the_last_state() {
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(b"first".to_vec());
    hosts.ask(&observe());
    hosts.run();
    let observer = hosts.observers[0];
    hosts.server.notify(hosts.now, observer, &Answer::new(Code::NOT_FOUND, &[])).unwrap();
    hosts.run();
    assert_eq!(hosts.answers()[1], (Code::NOT_FOUND, Vec::new(), false));
    assert_eq!((hosts.client.asks(), hosts.server.observers()), (0, 0));
    assert!(hosts.server.notify(hosts.now, observer, &Answer::new(Code::CONTENT, &[])).is_err());
}

#[test]
fn a_server_need_not_grant_it() {
    let config = limited(|limits| limits.observers = 1);
    let mut hosts = Hosts::with(Options::default(), Options::default(), config).serving(b"state".to_vec());
    hosts.ask(&observe());
    hosts.ask(&observe());
    hosts.run();
    let said: Vec<bool> = hosts.answers().into_iter().map(|(_, _, goes_on)| goes_on).collect();
    assert_eq!(said, [true, false]);
    assert_eq!((hosts.client.asks(), hosts.server.observers()), (1, 1));
}

#[test]
fn the_end_of_the_connection_is_the_end_of_observations() {
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(b"state".to_vec());
    hosts.ask(&observe());
    hosts.run();
    hosts.server.stream_ended();
    hosts.client.stream_ended();
    hosts.run();
    assert!(matches!(
        hosts.told.last(),
        Some(Event::Failed { why: AskFailure::Exchange(Failure::ConnectionClosed), .. })
    ));
    assert!(matches!(hosts.server_told.last(), Some(Event::ObserverGone { .. })));
    assert_eq!((hosts.client.asks(), hosts.server.observers()), (0, 0));
}

#[test]
fn whom_the_server_dismisses_is_told() {
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(b"state".to_vec());
    hosts.ask(&observe());
    hosts.run();
    assert!(hosts.server.dismiss(hosts.now, hosts.observers[0]));
    assert!(!hosts.server.dismiss(hosts.now, hosts.observers[0]));
    hosts.run();
    assert_eq!(hosts.answers()[1], (Code::SERVICE_UNAVAILABLE, Vec::new(), false));
}

/// A peer that is granted an observation while the connection is being released gets this one answer, and is told of.
#[test]
fn an_observation_granted_during_a_release_is_over_with_it() {
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(b"state".to_vec());
    hosts.run();
    hosts.ask(&observe());
    let up = hosts.drain_client();
    hosts.server.release(hosts.now, None, None).unwrap();
    hosts.server.receive(hosts.now, &up);
    hosts.run();
    let answered = hosts.told.iter().filter(|told| matches!(told, Event::Answer { .. })).count();
    assert_eq!((answered, hosts.closed[0]), (1, Some(Closing::Released)), "{:?}", hosts.told);
    let granted = hosts.observers.len();
    hosts.server.stream_ended();
    hosts.run();
    let gone = hosts.server_told.iter().filter(|told| matches!(told, Event::ObserverGone { .. })).count();
    assert_eq!((gone, hosts.server.observers()), (granted, 0));
}

/// There is no reset that would stop what comes all the same: the server is told, by the token that it knows.
#[test]
fn an_observation_given_up_before_its_first_answer_is_deregistered() {
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(b"state".to_vec());
    hosts.run();
    let ask = hosts.ask(&observe());
    let up = hosts.drain_client();
    assert!(hosts.client.forget(hosts.now, ask));
    hosts.server.receive(hosts.now, &up);
    hosts.run();
    let [.., registration, end] = &hosts.up[..] else { panic!("{:?}", hosts.up) };
    assert_eq!((end.summary(), &end.token), ("0.01 O:1".into(), &registration.token));
    assert_eq!((hosts.client.asks(), hosts.server.observers()), (0, 0));
    assert!(matches!(hosts.told.last(), Some(Event::Failed { why: AskFailure::Cancelled, .. })), "{:?}", hosts.told);
}

/// What is observed stays in one request, however long its body is, if that fits a message.
#[test]
fn what_a_long_body_asks_for_can_be_observed() {
    let bytes = body(20_000);
    let mut hosts = Hosts::new(Options::default(), Options::default()).serving(b"state".to_vec());
    hosts.run();
    hosts.ask(&Ask::new(Code::FETCH, &PATH).with_body(&bytes).observing());
    hosts.run();
    assert_eq!(hosts.up.last().unwrap().payload, 20_000);
    assert_eq!(hosts.answers(), [(Code::CONTENT, b"state".to_vec(), true)]);
}

//! Observations over a connection, of bodies of any length.

use millpond_coap::Failure;
use millpond_coap::message::{Code, number};
use millpond_coap::stream::{Closing, Options};
use millpond_coap::transfer::{Answer, ClientRequest, RequestFailure};

use crate::owned::{Event, limited};
use crate::stacks::{Stacks, body, taking};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

fn observe() -> ClientRequest<'static> {
    ClientRequest::new(Code::GET, &PATH).observing()
}

fn notify(stacks: &mut Stacks, bytes: &[u8]) {
    let observer = stacks.observers[0];
    stacks.server.notify(stacks.now, observer, &Answer::new(Code::CONTENT, &[]).with_body(bytes)).unwrap();
}

#[test]
fn every_state_is_told_until_it_is_no_longer_wanted() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(b"first".to_vec());
    let ask = stacks.ask(&observe());
    stacks.run();
    notify(&mut stacks, b"second");
    stacks.run();
    let said: Vec<_> = stacks.answers().into_iter().map(|(_, body, goes_on)| (body, goes_on)).collect();
    assert_eq!(said, [(b"first".to_vec(), true), (b"second".to_vec(), true)]);
    assert!(stacks.client.cancel(stacks.now, ask));
    stacks.run();
    assert_eq!(stacks.up.last().unwrap().summary(), "0.01 O:1");
    assert!(matches!(stacks.told.last(), Some(Event::Failed { why: RequestFailure::Cancelled, .. })));
    assert!(matches!(stacks.server_told.last(), Some(Event::ObserverGone { .. })), "{:?}", stacks.server_told);
    assert_eq!((stacks.client.requests(), stacks.server.observers()), (0, 0));
}

/// Only what is newest leaves, however many there were.
#[test]
fn only_the_newest_state_leaves() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(b"first".to_vec());
    stacks.ask(&observe());
    stacks.run();
    for state in 0..100_u8 {
        notify(&mut stacks, &[state]);
    }
    stacks.run();
    assert_eq!(stacks.answers().len(), 2);
    assert_eq!(stacks.answers()[1].1, [99]);
}

/// The first block comes with the notification, the rest is fetched without Observe.
#[test]
fn long_states_are_fetched_block_by_block() {
    let mut stacks = Stacks::new(taking(1_152), Options::default()).serving(body(3_000));
    stacks.ask(&observe());
    stacks.run();
    assert_eq!(stacks.answers()[0].1, body(3_000));
    let requests: Vec<String> = stacks.up[1..].iter().map(super::stacks::Sent::summary).collect();
    assert_eq!(requests, ["0.01 O:0", "0.01 B2:1/0/6", "0.01 B2:2/0/6"]);
    assert!(stacks.down[1].option(number::OBSERVE).is_some());
    assert!(stacks.down[2..].iter().all(|frame| frame.option(number::OBSERVE).is_none()));
    notify(&mut stacks, &body(4_000));
    stacks.run();
    assert_eq!(stacks.answers()[1].1, body(4_000));
    notify(&mut stacks, b"short");
    stacks.run();
    assert_eq!(stacks.answers()[2], (Code::CONTENT, b"short".to_vec(), true));
}

/// A newer state comes while an older one is being fetched: only the newer one is told.
#[test]
fn a_newer_state_replaces_one_that_is_being_fetched() {
    let mut stacks = Stacks::new(taking(1_152), Options::default()).serving(b"first".to_vec());
    stacks.ask(&observe());
    stacks.run();
    notify(&mut stacks, &[2; 3_000]);
    let down = stacks.drain_server();
    stacks.client.receive(stacks.now, &down);
    let up = stacks.drain_client();
    assert_eq!(stacks.up.last().unwrap().summary(), "0.01 B2:1/0/6");
    notify(&mut stacks, &[3; 3_000]);
    let down = stacks.drain_server();
    stacks.client.receive(stacks.now, &down);
    stacks.drain_client_into(up);
    stacks.run();
    let said: Vec<_> = stacks.answers().into_iter().map(|(_, body, _)| body).collect();
    assert_eq!(said, [b"first".to_vec(), vec![3; 3_000]]);
    assert_eq!(stacks.client.requests(), 1);
}

#[test]
fn an_error_is_the_last_state() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(b"first".to_vec());
    stacks.ask(&observe());
    stacks.run();
    let observer = stacks.observers[0];
    stacks.server.notify(stacks.now, observer, &Answer::new(Code::NOT_FOUND, &[])).unwrap();
    stacks.run();
    assert_eq!(stacks.answers()[1], (Code::NOT_FOUND, Vec::new(), false));
    assert_eq!((stacks.client.requests(), stacks.server.observers()), (0, 0));
    assert!(stacks.server.notify(stacks.now, observer, &Answer::new(Code::CONTENT, &[])).is_err());
}

#[test]
fn a_server_need_not_grant_it() {
    let config = limited(|limits| limits.observers = 1);
    let mut stacks = Stacks::with(Options::default(), Options::default(), config).serving(b"state".to_vec());
    stacks.ask(&observe());
    stacks.ask(&observe());
    stacks.run();
    let said: Vec<bool> = stacks.answers().into_iter().map(|(_, _, goes_on)| goes_on).collect();
    assert_eq!(said, [true, false]);
    assert_eq!((stacks.client.requests(), stacks.server.observers()), (1, 1));
}

#[test]
fn the_end_of_the_connection_is_the_end_of_observations() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(b"state".to_vec());
    stacks.ask(&observe());
    stacks.run();
    stacks.server.stream_ended();
    stacks.client.stream_ended();
    stacks.run();
    assert!(matches!(
        stacks.told.last(),
        Some(Event::Failed { why: RequestFailure::Exchange(Failure::ConnectionClosed), .. })
    ));
    assert!(matches!(stacks.server_told.last(), Some(Event::ObserverGone { .. })));
    assert_eq!((stacks.client.requests(), stacks.server.observers()), (0, 0));
}

#[test]
fn whom_the_server_dismisses_is_told() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(b"state".to_vec());
    stacks.ask(&observe());
    stacks.run();
    assert!(stacks.server.remove_observer(stacks.now, stacks.observers[0]));
    assert!(!stacks.server.remove_observer(stacks.now, stacks.observers[0]));
    stacks.run();
    assert_eq!(stacks.answers()[1], (Code::SERVICE_UNAVAILABLE, Vec::new(), false));
}

/// A peer that is granted an observation while the connection is being released gets this one answer, and is told of.
#[test]
fn an_observation_granted_during_a_release_is_over_with_it() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(b"state".to_vec());
    stacks.run();
    stacks.ask(&observe());
    let up = stacks.drain_client();
    stacks.server.release(stacks.now, None, None).unwrap();
    stacks.server.receive(stacks.now, &up);
    stacks.run();
    let answered = stacks.told.iter().filter(|told| matches!(told, Event::Answer { .. })).count();
    assert_eq!((answered, stacks.closed[0]), (1, Some(Closing::Released)), "{:?}", stacks.told);
    let granted = stacks.observers.len();
    stacks.server.stream_ended();
    stacks.run();
    let gone = stacks.server_told.iter().filter(|told| matches!(told, Event::ObserverGone { .. })).count();
    assert_eq!((gone, stacks.server.observers()), (granted, 0));
}

/// There is no reset that would stop what comes all the same: the server is told, by the token that it knows.
#[test]
fn an_observation_given_up_before_its_first_answer_is_deregistered() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(b"state".to_vec());
    stacks.run();
    let ask = stacks.ask(&observe());
    let up = stacks.drain_client();
    assert!(stacks.client.forget(stacks.now, ask));
    stacks.server.receive(stacks.now, &up);
    stacks.run();
    let [.., registration, end] = &stacks.up[..] else { panic!("{:?}", stacks.up) };
    assert_eq!((end.summary(), &end.token), ("0.01 O:1".into(), &registration.token));
    assert_eq!((stacks.client.requests(), stacks.server.observers()), (0, 0));
    assert!(
        matches!(stacks.told.last(), Some(Event::Failed { why: RequestFailure::Cancelled, .. })),
        "{:?}",
        stacks.told
    );
}

/// What is observed stays in one request, however long its body is, if that fits a message.
#[test]
fn what_a_long_body_asks_for_can_be_observed() {
    let bytes = body(20_000);
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(b"state".to_vec());
    stacks.run();
    stacks.ask(&ClientRequest::new(Code::FETCH, &PATH).with_body(&bytes).observing());
    stacks.run();
    assert_eq!(stacks.up.last().unwrap().payload, 20_000);
    assert_eq!(stacks.answers(), [(Code::CONTENT, b"state".to_vec(), true)]);
}

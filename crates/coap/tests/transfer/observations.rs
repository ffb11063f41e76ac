//! Observing, from the client's side (RFC 7641 §3), and with bodies of several blocks (RFC 7959 §2.6).

use millpond_coap::Failure;
use millpond_coap::block::BlockSize;
use millpond_coap::message::{Code, Kind, Message, number};
use millpond_coap::transfer::{Answer, ClientRequest, ClientRequestId, Gone, RequestFailure};

use crate::pair::{CLIENT, PATH, Pair, SECOND, SERVER, Told, block_of, body, get};

/// A client that observes a resource and has got its first representation.
fn observing(length: usize) -> (Pair, ClientRequestId) {
    let mut pair = Pair::serving(length, BlockSize::B256);
    let ask = pair.ask(&get().observing());
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(body(length), true)]);
    assert_eq!(pair.application.observers.len(), 1);
    pair.take_told(SERVER);
    (pair, ask)
}

fn observe_of(datagram: &[u8]) -> Option<u32> {
    let message = Message::parse(datagram).unwrap();
    message.option(number::OBSERVE).map(|value| value.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

#[test]
fn every_new_state_is_told() {
    let (mut pair, ask) = observing(10);
    for state in 1..6_u8 {
        pair.notify(&[state; 20]);
        pair.run_for(5 * SECOND);
        assert_eq!(pair.answers(), [(vec![state; 20], true)]);
    }
    assert_eq!((pair.stacks[0].requests(), pair.stacks[1].observers()), (1, 1));
    let sequence: Vec<_> =
        pair.datagrams.iter().filter(|sent| sent.1 == SERVER).filter_map(|sent| observe_of(&sent.2)).collect();
    assert!(sequence.windows(2).all(|pair| pair[0] < pair[1]), "{sequence:?}");
    assert!(pair.cancel(ask));
}

#[test]
fn a_long_representation_is_fetched_by_requests_of_their_own() {
    let (mut pair, _) = observing(10);
    let before = pair.datagrams.len();
    pair.notify(&body(1_000));
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(body(1_000), true)]);
    assert_eq!(pair.asked(), 0, "what was notified is kept");
    let token = |at: usize| Message::parse(&pair.datagrams[at].2).unwrap().token;
    assert_eq!(block_of(&pair.datagrams[before].2, number::BLOCK2), Some((0, true, 256)));
    let fetches: Vec<_> = (before..pair.datagrams.len())
        .filter(|at| pair.datagrams[*at].1 == CLIENT && block_of(&pair.datagrams[*at].2, number::BLOCK2).is_some())
        .collect();
    assert_eq!(fetches.len(), 3);
    for at in fetches {
        assert_eq!(observe_of(&pair.datagrams[at].2), None);
        assert_ne!(token(at), token(before));
    }
}

#[test]
fn the_first_representation_may_be_long_too() {
    let (mut pair, _) = observing(1_000);
    pair.notify(b"short");
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(b"short".to_vec(), true)]);
}

#[test]
fn a_newer_notification_begins_the_fetch_anew() {
    let (mut pair, _) = observing(10);
    pair.application.kind = Some(Kind::NonConfirmable);
    pair.notify(&body(10_000));
    pair.run_for(SECOND);
    let newer: Vec<u8> = body(700).into_iter().rev().collect();
    pair.notify(&newer);
    pair.run_for(120 * SECOND);
    let answers = pair.answers();
    // Once more when the registration is renewed.
    assert!(answers[0] == (newer, true) && answers.iter().all(|answer| answer == &answers[0]), "{answers:?}");
}

/// RFC 7641 §3.4.
#[test]
fn a_notification_that_was_overtaken_is_dropped() {
    let (mut pair, _) = observing(10);
    let token = Message::parse(&pair.datagrams[0].2).unwrap().token;
    let mut id = 100;
    let mut notify = |pair: &mut Pair, sequence: u32| {
        id += 1;
        let value = sequence.to_be_bytes();
        let notification = [&[0x54, 0x45, 1, id], token.as_bytes(), &[0x63], &value[1..], b"\xffx"].concat();
        pair.inject(CLIENT, &notification);
        pair.answers().len()
    };
    for (sequence, is_news) in [(100, 1), (99, 0), (100, 0), (101, 1), (1 << 23, 1), (5, 0), ((1 << 24) - 1, 1), (3, 1)]
    {
        assert_eq!(notify(&mut pair, sequence), is_news, "{sequence}");
    }
    // After 128 s anything is news.
    pair.now += 128 * SECOND;
    assert_eq!(notify(&mut pair, 3), 0);
    pair.now += 1;
    assert_eq!(notify(&mut pair, 3), 1);
    assert_eq!(pair.stacks[0].counters().stale, 4);
}

/// RFC 7641 §3.4 holds for the answer to a renewed registration too: the server's stored reply may be older than what was
/// notified since.
#[test]
fn the_answer_to_a_renewal_that_was_overtaken_is_dropped() {
    let (mut pair, _) = observing(10);
    let sent = pair.datagrams.len();
    while pair.datagrams.len() == sent {
        pair.run_for(SECOND / 100);
    }
    assert_eq!(observe_of(&pair.datagrams[sent].2), Some(0), "it registers again");
    pair.lose.insert(sent + 1);
    pair.run_for(SECOND / 5);
    assert_eq!(pair.datagrams.len(), sent + 2, "the answer is lost");
    pair.notify(b"newer");
    pair.run_for(20 * SECOND);
    assert_eq!(pair.answers(), [(b"newer".to_vec(), true)]);
    assert_eq!(pair.stacks[0].counters().stale, 1);
    // It goes on with what was registered last.
    pair.notify(b"newest");
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(b"newest".to_vec(), true)]);
    assert_eq!((pair.stacks[0].requests(), pair.stacks[1].observers()), (1, 1));
}

#[test]
fn an_error_ends_the_observation() {
    let (mut pair, ask) = observing(10);
    pair.application.code = Code::NOT_FOUND;
    pair.notify(b"gone");
    pair.run_for(SECOND);
    let last = Told::Answer { request: ask, code: Code::NOT_FOUND, body: b"gone".to_vec(), goes_on: false };
    assert_eq!(pair.take_told(CLIENT), [last]);
    assert_eq!((pair.stacks[0].requests(), pair.stacks[1].observers()), (0, 0));
    assert_eq!(pair.stacks[0].endpoint().subscriptions(), 0);
    assert_eq!(observe_of(&pair.datagrams[2].2), None);
}

#[test]
fn a_server_that_does_not_observe_answers_once() {
    let mut pair = Pair::serving(600, BlockSize::B256);
    pair.application.accepts = false;
    pair.ask(&get().observing());
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(body(600), false)]);
    assert_eq!((pair.stacks[0].requests(), pair.stacks[0].endpoint().subscriptions()), (0, 0));
}

/// RFC 7641 §3.6.
#[test]
fn a_cancelled_observation_is_deregistered() {
    let (mut pair, ask) = observing(10);
    assert!(pair.cancel(ask));
    pair.run_for(SECOND);
    assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why: RequestFailure::Cancelled }]);
    let told = pair.take_told(SERVER);
    assert!(matches!(told[0], Told::Gone { why: Gone::Deregistered, .. }), "{told:?}");
    assert!(matches!(&told[1], Told::Asked { observe: false, .. }), "it is a request like any other");
    let farewell = &pair.datagrams[2].2;
    assert_eq!(observe_of(farewell), Some(1));
    let token = |at: usize| Message::parse(&pair.datagrams[at].2).unwrap().token;
    assert_eq!(token(2), token(0));
    assert_eq!((pair.stacks[0].endpoint().exchanges(), pair.stacks[0].endpoint().subscriptions()), (0, 0));
}

#[test]
fn what_comes_after_forgetting_is_rejected_and_the_observer_gone() {
    for kind in [Kind::Confirmable, Kind::NonConfirmable] {
        let (mut pair, ask) = observing(10);
        let now = pair.now();
        assert!(pair.stacks[0].forget(now, ask));
        pair.drain(CLIENT);
        pair.application.kind = Some(kind);
        pair.notify(b"late");
        pair.run_for(SECOND);
        let told = pair.take_told(SERVER);
        assert!(matches!(told[..], [Told::Gone { why: Gone::Rejected, .. }]), "{told:?}");
        assert_eq!(pair.stacks[1].observers(), 0);
    }
}

/// RFC 7641 §3.3.1: Max-Age is 60 s by default, and 5 to 15 s later the client registers again, with the same token.
#[test]
fn td_coap_obs_04_a_client_whose_registration_was_lost_registers_again() {
    let (mut pair, _) = observing(10);
    let config = millpond_coap::transfer::Config { block: BlockSize::B256, ..Default::default() };
    pair.stacks[1] = crate::pair::stack(7, millpond_coap::Config::default(), config);
    pair.application.observers.clear();
    pair.run_until(64 * SECOND);
    assert_eq!(pair.datagrams.len(), 2);
    pair.run_until(77 * SECOND);
    assert_eq!(pair.answers(), [(body(10), true)]);
    let (first, again) = (&pair.datagrams[0], &pair.datagrams[2]);
    assert!((65 * SECOND..75 * SECOND + SECOND).contains(&again.0), "{}", again.0);
    assert_eq!(observe_of(&again.2), Some(0));
    assert_eq!(Message::parse(&first.2).unwrap().token, Message::parse(&again.2).unwrap().token);
    pair.notify(b"news");
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(b"news".to_vec(), true)]);
    assert_eq!((pair.stacks[0].endpoint().subscriptions(), pair.stacks[1].observers()), (1, 1));
}

#[test]
fn what_is_still_fresh_is_not_registered_again() {
    let mut pair = Pair::serving(10, BlockSize::B256);
    pair.application.options = vec![(number::MAX_AGE, vec![100])];
    pair.ask(&get().observing());
    pair.run_until(104 * SECOND);
    assert_eq!(pair.datagrams.len(), 2);
    pair.run_until(90 * SECOND);
    pair.run_until(117 * SECOND);
    assert_eq!(pair.datagrams.len(), 4);
    // On the server it has taken the place of the first.
    let told = pair.take_told(SERVER);
    assert!(told.iter().any(|told| matches!(told, Told::Gone { why: Gone::Replaced, .. })), "{told:?}");
    assert_eq!(pair.stacks[1].observers(), 1);
}

#[test]
fn an_observation_whose_server_is_gone_fails() {
    let (mut pair, ask) = observing(10);
    pair.lose = (2..100).collect();
    pair.settle();
    assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why: RequestFailure::Exchange(Failure::GaveUp) }]);
    assert_eq!(pair.stacks[0].endpoint().subscriptions(), 0);
}

#[test]
fn the_deadline_of_an_observation_is_that_of_its_first_representation() {
    let mut pair = Pair::serving(10, BlockSize::B256);
    let deadline = Some(millpond_control::Instant::from_micros(2 * SECOND));
    pair.ask(&ClientRequest { deadline, ..get().observing() });
    pair.run_until(10 * SECOND);
    assert_eq!(pair.answers(), [(body(10), true)]);
    pair.application.answers = false;
    let deadline = Some(millpond_control::Instant::from_micros(12 * SECOND));
    let ask = pair.ask(&ClientRequest { deadline, ..get().observing() });
    pair.run_until(13 * SECOND);
    assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why: RequestFailure::Deadline }]);
}

#[test]
fn whichever_message_is_lost_the_newest_state_arrives() {
    for lost in 2..14 {
        let (mut pair, _) = observing(10);
        pair.lose = [lost].into();
        pair.notify(&body(900));
        pair.run_for(3 * SECOND);
        pair.notify(&body(600));
        // The second is non-confirmable: if it is lost, renewing the registration brings the state.
        pair.run_for(100 * SECOND);
        let answers = pair.answers();
        assert!(answers.last() == Some(&(body(600), true)), "{lost} lost");
    }
}

#[test]
fn only_get_and_fetch_observe() {
    let mut pair = Pair::serving(10, BlockSize::B256);
    let now = pair.now();
    let put = ClientRequest::new(Code::PUT, PATH).observing();
    assert!(pair.stacks[0].request(now, SERVER, &put).unwrap_err().to_string().contains("only GET and FETCH"));
    let long = body(2_000);
    let fetch = ClientRequest::new(Code::FETCH, PATH).observing().with_body(&long);
    assert!(pair.stacks[0].request(now, SERVER, &fetch).unwrap_err().to_string().contains("must fit one block"));
    pair.ask(&ClientRequest::new(Code::FETCH, PATH).observing().with_body(b"short"));
    pair.run_for(SECOND);
    pair.notify(&body(600));
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(body(10), true), (body(600), true)]);
    assert_eq!(pair.asked(), 1);
}

#[test]
fn options_of_the_stacks_own_are_refused() {
    let mut pair = Pair::serving(10, BlockSize::B256);
    let now = pair.now();
    for number in [number::OBSERVE, number::BLOCK1, number::BLOCK2, number::SIZE1, number::SIZE2, number::REQUEST_TAG] {
        let options: &[(u16, &[u8])] = &[(number, b"")];
        let refused = pair.stacks[0].request(now, SERVER, &ClientRequest::new(Code::GET, options)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("option {number} is the stack's own: it follows from the other fields")
        );
    }
    pair.application.answers = false;
    pair.get();
    pair.run_for(SECOND / 10);
    let now = pair.now();
    let id = pair.application.handed[0];
    let options: &[(u16, &[u8])] = &[(number::OBSERVE, b"")];
    assert!(pair.stacks[1].answer(now, id, &Answer::new(Code::CONTENT, options)).is_err());
    pair.stacks[1].answer(now, id, &Answer::new(Code::CONTENT, &[])).unwrap();
}

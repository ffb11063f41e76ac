//! Observers, from the server's side (RFC 7641 §4).

use millpond_coap::block::BlockSize;
use millpond_coap::message::{Code, Kind, Message, Token};
use millpond_coap::transfer::{Answer, Gone, Refused};
use millpond_control::{Preset, Span};

use crate::pair::{CLIENT, Pair, SECOND, SERVER, Told, body, get};

fn observed(change: impl Fn(u8, &mut millpond_coap::Config, &mut millpond_coap::transfer::Config)) -> Pair {
    let mut pair = Pair::new(change);
    pair.application.body = body(10);
    pair.ask(&get().observing());
    pair.run_for(SECOND);
    pair.take_told(CLIENT);
    pair.take_told(SERVER);
    pair
}

/// When the server sent what, confirmable or not.
fn notifications(pair: &Pair, from: usize) -> Vec<(u64, Kind)> {
    let kind = |bytes: &[u8]| Message::parse(bytes).unwrap().kind;
    let of_server = pair.datagrams.iter().skip(from).filter(|sent| sent.1 == SERVER);
    of_server.map(|(at, _, bytes)| (*at, kind(bytes))).filter(|(_, kind)| *kind != Kind::Acknowledgement).collect()
}

#[test]
fn the_first_notification_is_confirmable_and_the_next_are_not() {
    let mut pair = observed(|_, _, _| {});
    for state in 0..4 {
        pair.notify(&[state]);
        pair.run_for(10 * SECOND);
    }
    let kinds: Vec<_> = notifications(&pair, 2).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, [Kind::Confirmable, Kind::NonConfirmable, Kind::NonConfirmable, Kind::NonConfirmable]);
}

#[test]
fn one_in_every_so_often_is_confirmable() {
    let mut pair = observed(|_, _, config| config.confirm_every = 25 * SECOND);
    pair.application.kind = Some(Kind::NonConfirmable);
    for state in 0..8 {
        pair.application.kind = (state > 0).then_some(Kind::NonConfirmable);
        pair.notify(&[state]);
        pair.run_for(10 * SECOND);
    }
    let confirmable: Vec<_> = notifications(&pair, 2).into_iter().map(|(_, kind)| kind == Kind::Confirmable).collect();
    assert_eq!(confirmable, [true, false, false, true, false, false, true, false]);
}

#[test]
fn while_one_is_under_way_only_the_newest_state_waits() {
    let mut pair = observed(|_, _, _| {});
    for state in 0..10 {
        pair.notify(&[state]);
    }
    pair.run_for(10 * SECOND);
    let states: Vec<_> = pair.answers().into_iter().map(|(body, _)| body).collect();
    assert_eq!(states, [vec![0], vec![9]]);
}

#[test]
fn while_one_is_sent_again_and_again_only_the_newest_state_waits() {
    let mut pair = observed(|_, _, _| {}).losing([2, 3]);
    for state in 0..5 {
        pair.notify(&[state]);
        pair.run_for(SECOND);
    }
    pair.run_for(30 * SECOND);
    let states: Vec<_> = pair.answers().into_iter().map(|(body, _)| body).collect();
    assert_eq!(states, [vec![0], vec![4]]);
}

/// RFC 7641 §4.5.1: one in a round-trip time, or in 3 s if that is not known.
#[test]
fn non_confirmable_ones_are_paced_by_the_round_trip_time() {
    for (preset, pause) in [(Preset::RFC7252, 3 * SECOND), (Preset::LINUX_RTO, SECOND / 10)] {
        let mut pair = observed(|_, _, _| {});
        let now = pair.now();
        pair.stacks[1].set_controller(now, CLIENT, preset.build()).unwrap();
        pair.drain(SERVER);
        pair.notify(b"confirmed");
        pair.run_for(10 * SECOND);
        let from = pair.datagrams.len();
        for state in 0..100 {
            pair.notify(&[state]);
            pair.run_for(SECOND / 20);
        }
        pair.run_for(10 * SECOND);
        let sent = notifications(&pair, from);
        let pauses: Vec<_> = sent.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(pauses.iter().all(|this| *this >= pause), "{pauses:?}");
        assert!(sent.len() as u64 > SECOND / pause, "{}", sent.len());
        assert_eq!(pair.answers().last(), Some(&(vec![99], true)));
    }
}

/// The client has never answered, so PROBING_RATE holds back the second; what it says is out of date by then.
#[test]
fn what_the_endpoint_holds_back_is_replaced_too() {
    let mut pair = observed(|_, _, _| {});
    pair.application.kind = Some(Kind::NonConfirmable);
    for state in 0..20 {
        pair.notify(&[state]);
        pair.run_for(SECOND);
    }
    pair.run_for(60 * SECOND);
    let states: Vec<_> = pair.answers().into_iter().map(|(body, _)| body[0]).collect();
    assert_eq!(states[0], 0);
    assert_eq!(states.last(), Some(&19));
    assert!(states.windows(2).all(|pair| pair[1] >= 10), "{states:?}");
}

/// A client that does not acknowledge is no observer any more.
#[test]
fn td_coap_obs_05_an_observer_that_does_not_acknowledge_is_given_up() {
    let mut pair = observed(|_, _, _| {}).losing(2..100);
    pair.notify(b"0");
    pair.run_for(SECOND);
    pair.notify(b"1");
    pair.run_for(60 * SECOND);
    assert_eq!(pair.stacks[1].observers(), 1);
    pair.run_for(60 * SECOND);
    let told = pair.take_told(SERVER);
    assert!(matches!(told[..], [Told::Gone { why: Gone::Unreachable, .. }]), "{told:?}");
    assert_eq!(pair.stacks[1].observers(), 0);
    assert_eq!(notifications(&pair, 2).len(), 5, "nothing follows");
}

#[test]
fn an_observer_can_be_dismissed_and_then_is_unknown() {
    let mut pair = observed(|_, _, _| {});
    let id = pair.application.observers[0];
    let now = pair.now();
    pair.notify(b"under way");
    assert!(
        pair.stacks[1].remove_observer(now, id)
            && !{
                pair.drain(SERVER);
                pair.stacks[1].remove_observer(now, id)
            }
    );
    pair.drain(SERVER);
    assert_eq!(pair.stacks[1].notify(now, id, &Answer::new(Code::CONTENT, &[])), Err(Refused::UnknownObserver));
    pair.run_for(60 * SECOND);
    assert_eq!(pair.stacks[1].endpoint().exchanges(), 0);
    assert_eq!(pair.take_told(SERVER), []);
}

/// A registration: GET with Observe 0 and this token.
fn register(id: u16, token: &[u8]) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [&[0x40 | token.len() as u8, 1, high, low], token, b"\x60\x55large"].concat()
}

#[test]
fn as_many_observers_as_may_be_and_then_plain_answers() {
    let mut pair = Pair::new(|_, _, config| (config.limits.observers, config.limits.observers_per_peer) = (5, 3));
    for token in 0..4_u8 {
        pair.inject_from(7, SERVER, &register(token.into(), &[token]));
    }
    assert_eq!(pair.application.observers.len(), 3);
    assert!(Message::parse(&pair.datagrams[2].2).unwrap().option(6).is_some());
    assert!(Message::parse(&pair.datagrams[3].2).unwrap().option(6).is_none());
    for token in 0..4_u8 {
        pair.inject_from(8, SERVER, &register(token.into(), &[token]));
    }
    assert_eq!(pair.stacks[1].observers(), 5);
    // One that registers again takes its own place.
    pair.inject_from(7, SERVER, &register(100, &[0]));
    assert_eq!(pair.stacks[1].observers(), 5);
    let told = pair.take_told(SERVER);
    assert_eq!(told.iter().filter(|told| matches!(told, Told::Gone { why: Gone::Replaced, .. })).count(), 1);
}

#[test]
fn observers_of_one_resource_are_told_apart_by_their_tokens() {
    let mut pair = Pair::serving(3, BlockSize::B256);
    for token in 0..4_u8 {
        pair.inject_from(7, SERVER, &register(token.into(), &[token]));
    }
    let from = pair.datagrams.len();
    pair.application.kind = Some(Kind::NonConfirmable);
    let ids = pair.application.observers.clone();
    pair.application.observers = vec![ids[2]];
    pair.notify(b"x");
    assert_eq!(Message::parse(&pair.datagrams[from].2).unwrap().token, Token::new(&[2]).unwrap());
    // It is rejected: that one is gone and no other.
    let [_, _, high, low] = pair.datagrams[from].2[..4] else { panic!("too short") };
    pair.inject_from(7, SERVER, &[0x70, 0, high, low]);
    assert_eq!(pair.stacks[1].observers(), 3);
    assert!(pair.take_told(SERVER).contains(&Told::Gone { observer: ids[2], why: Gone::Rejected }));
}

#[test]
fn a_last_notification_is_confirmable_and_nothing_follows_it() {
    let mut pair = observed(|_, _, _| {});
    pair.notify(b"first");
    pair.run_for(SECOND);
    pair.application.code = Code::NOT_FOUND;
    let from = pair.datagrams.len();
    pair.notify(b"");
    pair.run_for(SECOND);
    assert_eq!(notifications(&pair, from).iter().map(|sent| sent.1).collect::<Vec<_>>(), [Kind::Confirmable]);
    assert_eq!(pair.stacks[1].observers(), 0);
    assert_eq!(pair.take_told(SERVER), []);
}

#[test]
fn a_registration_answered_late_is_a_registration() {
    let mut pair = observed(|_, endpoint, _| endpoint.ack_delay = Span::ZERO);
    assert_eq!(pair.stacks[1].observers(), 1);
    pair.notify(b"news");
    pair.run_for(5 * SECOND);
    assert_eq!(pair.answers(), [(b"news".to_vec(), true)]);
}

#[test]
fn sequence_numbers_go_round_after_24_bits() {
    let mut pair = observed(|_, _, _| {});
    pair.application.kind = Some(Kind::Confirmable);
    for state in 0..300_u16 {
        pair.notify(&state.to_be_bytes());
        pair.run_for(SECOND / 2);
    }
    assert_eq!(pair.answers().len(), 300);
    assert_eq!(pair.stacks[0].counters().stale, 0);
}

/// Whatever the application wishes for, a notification is confirmable every hour: who has vanished is forgotten.
#[test]
fn an_observer_that_has_vanished_is_forgotten_within_little_more_than_an_hour() {
    let mut pair = Pair::serving(10, BlockSize::B256);
    pair.application.kind = Some(Kind::NonConfirmable);
    pair.ask(&get().observing());
    pair.run_for(SECOND);
    pair.take_told(SERVER);
    // From now on nothing arrives.
    pair.lose = (pair.datagrams.len()..10_000).collect();
    let mut minutes = 0;
    while pair.stacks[1].observers() > 0 {
        pair.notify(&[minutes as u8]);
        pair.run_for(60 * SECOND);
        minutes += 1;
        assert!(minutes < 90, "it is notified for ever");
    }
    assert!((60..=62).contains(&minutes), "{minutes} minutes");
    let told = pair.take_told(SERVER);
    assert!(matches!(told[..], [Told::Gone { why: Gone::Unreachable, .. }]), "{told:?}");
}

/// Somebody registers an address that is not his, under all the tokens that one peer may have.
#[test]
fn who_never_answered_anything_is_sent_one_notification_and_not_one_for_each_of_its_tokens() {
    let mut pair = Pair::serving(3, BlockSize::B256);
    for token in 0..64_u8 {
        pair.inject_from(7, SERVER, &register(token.into(), &[token]));
    }
    assert_eq!(pair.application.observers.len(), 64);
    for observer in pair.application.observers.clone() {
        let answer = Answer::new(Code::CONTENT, &[]).with_body(b"x");
        let now = pair.now();
        pair.stacks[1].notify(now, observer, &answer).unwrap();
        pair.drain(SERVER);
    }
    pair.run();
    assert_eq!(notifications(&pair, 0).len(), 6, "five copies of one, and one of the next, which had left by then");
    assert!(pair.application.observers.is_empty());
}

/// Nothing could be sent to it, so it is not told that it observes.
#[test]
fn who_finds_no_place_among_the_peers_is_answered_and_does_not_observe() {
    let mut pair = Pair::new(|_, endpoint, _| endpoint.limits.peers = 4);
    for from in 10..14 {
        pair.inject_from(from, SERVER, &register(from.into(), b"o"));
        pair.notify(b"x");
    }
    pair.datagrams.clear();
    pair.inject_from(20, SERVER, &register(20, b"o"));
    let answer = Message::parse(&pair.datagrams[0].2).unwrap();
    assert_eq!((answer.code, answer.option(6)), (Code::CONTENT, None));
    // Single answers have half of the places, so they do not bring that about.
    let mut pair = Pair::new(|_, endpoint, _| endpoint.limits.peers = 4);
    for from in 10..200 {
        pair.inject_from(from, SERVER, &[0x50, 1, 0, from]);
    }
    pair.datagrams.clear();
    pair.inject_from(250, SERVER, &register(20, b"o"));
    assert!(Message::parse(&pair.datagrams[0].2).unwrap().option(6).is_some());
    pair.notify(b"x");
    assert_eq!(notifications(&pair, 1).len(), 1);
}

//! Responses that may leave fewer times than others, as to an unvalidated peer (RFC 9175 §2.4), and are acknowledged after the wait
//! for their last copy.

use millpond_coap::message::{Kind, Message};
use millpond_coap::{ExchangeId, RetransmitOptions};

use crate::pair::{Pair, SECOND, Side, notification};

/// A client that observes, in whose server's log nothing is yet.
fn observed() -> Pair {
    let mut pair = Pair::usual();
    pair.subscribe(&crate::pair::get()).unwrap();
    pair.run();
    pair.take_log();
    pair.now = SECOND;
    pair
}

/// A notification leaves, and is repeated so often.
fn say(pair: &mut Pair, copies: u8) -> ExchangeId {
    let token = Message::parse(&pair.datagrams[0]).unwrap().token;
    let retransmit = RetransmitOptions { max_retransmit: Some(copies), ..RetransmitOptions::DEFAULT };
    let message = notification(Kind::Confirmable).with_retransmit(retransmit);
    let id = pair.server.send_additional(pair.now(), Side::Client, token, &message).unwrap();
    pair.drain(Side::Server);
    id
}

#[test]
fn an_acknowledgement_counts_that_comes_after_the_wait_for_the_only_copy() {
    let mut pair = observed();
    pair.delays.insert(3, 60 * SECOND);
    say(&mut pair, 0);
    pair.run();
    pair.happened(&[
        "1 S sends CON Content 0",
        "1.05 C sends ACK 0",
        "1.05 C gets further CON Content 0",
        "61.05 S has delivered: EmptyAck after 60.05 s",
    ]);
    assert_eq!(pair.server.exchanges(), 0);
    // The path's controller has learnt from it, and the peer is validated.
    assert!(pair.server.is_validated(Side::Client));
    assert_eq!(pair.server.counters().retransmissions, 0);
}

#[test]
fn what_nobody_acknowledges_ends_when_one_with_all_copies_would() {
    for (copies, sent) in [(0, 1), (1, 2), (4, 5)] {
        let mut pair = observed();
        pair.lose.extend(2..50);
        say(&mut pair, copies);
        pair.run();
        let log = pair.take_log();
        assert_eq!(log.last().unwrap(), "78.5 S has not delivered: GaveUp");
        assert_eq!(log.len(), sent + 1, "{log:?}");
    }
}

#[test]
fn one_with_more_copies_than_others_ends_after_the_last() {
    let mut pair = observed();
    pair.lose.extend(2..50);
    say(&mut pair, 5);
    pair.run();
    assert_eq!(pair.take_log().last().unwrap(), "158.5 S has not delivered: GaveUp");
}

#[test]
fn a_reset_ends_it_at_once() {
    let mut pair = observed();
    pair.lose.insert(2);
    say(&mut pair, 0);
    pair.run_until(20 * SECOND);
    pair.inject(Side::Server, b"\x70\0\0\0");
    pair.run();
    pair.happened(&["1 S sends CON Content 0 (lost)", "20 S has not delivered: Reset"]);
}

#[test]
fn the_next_message_leaves_after_the_wait() {
    let mut pair = observed();
    pair.lose.insert(2);
    say(&mut pair, 0);
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    pair.happened(&[
        "1 S sends CON Content 0 (lost)",
        "3.5 S sends CON Content 1",
        "3.55 C sends ACK 1",
        "3.55 C gets further CON Content 1",
        "3.6 S has delivered: EmptyAck after 0.1 s",
        "78.5 S has not delivered: GaveUp",
    ]);
    // It has answered since, so nothing is held back by PROBING_RATE.
    pair.now = 80 * SECOND;
    pair.say(Kind::NonConfirmable).unwrap();
    pair.say(Kind::NonConfirmable).unwrap();
    pair.happened(&["80 S sends NON Content 2", "80 S sends NON Content 3"]);
}

/// What a peer that nobody has heard of has held for it does not grow with what is asked in its name.
#[test]
fn one_message_to_a_peer_is_kept_so() {
    let mut pair = observed();
    pair.lose.extend(2..50);
    let first = say(&mut pair, 0);
    let others = [(); 9].map(|()| say(&mut pair, 0));
    pair.run_until(60 * SECOND);
    assert_eq!(pair.server.exchanges(), 1);
    assert!(pair.server.cancel(pair.now(), first) && !others.iter().any(|id| pair.server.cancel(pair.now(), *id)));
}

/// A lost response ends nothing, a lost notification an observation.
#[test]
fn a_notification_takes_the_place_of_another_response() {
    let mut pair = Pair::usual();
    pair.think = None;
    let retransmit = RetransmitOptions { max_retransmit: Some(0), ..RetransmitOptions::DEFAULT };
    pair.subscribe(&crate::pair::get()).unwrap();
    pair.run_until(SECOND);
    pair.lose.extend(2..50);
    let answer = crate::pair::content(Kind::Confirmable).with_retransmit(retransmit);
    pair.server.respond(pair.now(), pair.handed.unwrap(), &answer).unwrap();
    pair.drain(Side::Server);
    say(&mut pair, 0);
    pair.take_log();
    pair.run_until(100 * SECOND);
    pair.happened(&[
        "3.5 S sends CON Content 1 (lost)",
        "6 S has not delivered: GaveUp",
        "81 S has not delivered: GaveUp",
    ]);
}

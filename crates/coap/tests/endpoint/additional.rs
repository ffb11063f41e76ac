//! Responses of ours beyond the first one, pings, and what an endpoint reports of its peers.

use millpond_coap::message::{Code, Kind, Token};
use millpond_coap::{Outgoing, Refused};
use millpond_control::{Instant, Preset, Wishes};

use crate::pair::{Pair, SECOND, Side, get, notification};

/// A server that was asked by a client and has answered it.
fn known() -> Pair {
    let mut pair = Pair::usual();
    pair.subscribe(&get()).unwrap();
    pair.run();
    pair.take_log();
    pair
}

/// NSTART is 1.
#[test]
fn confirmable_ones_leave_one_after_the_other() {
    let mut pair = known();
    pair.say(Kind::Confirmable).unwrap();
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    pair.happened(&[
        "0.1 S sends CON Content 0",
        "0.15 C sends ACK 0",
        "0.15 C gets further CON Content 0",
        "0.2 S has delivered: EmptyAck after 0.1 s",
        "0.2 S sends CON Content 1",
        "0.25 C sends ACK 1",
        "0.25 C gets further CON Content 1",
        "0.3 S has delivered: EmptyAck after 0.1 s",
    ]);
}

#[test]
fn a_lost_one_is_sent_again_and_given_up_at_last() {
    let mut pair = known().losing([2]);
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    assert_eq!(pair.take_log().last().unwrap(), "2.7 S has delivered: EmptyAck after 2.6 s");
    let mut pair = known().losing(2..100);
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    assert_eq!(pair.take_log().last().unwrap(), "77.6 S has not delivered: GaveUp");
}

#[test]
fn neither_kind_stands_behind_the_other() {
    let mut pair = known();
    pair.say(Kind::Confirmable).unwrap();
    pair.say(Kind::Confirmable).unwrap();
    pair.say(Kind::NonConfirmable).unwrap();
    // The second confirmable one waits for NSTART, the first non-confirmable one leaves.
    pair.happened(&["0.1 S sends CON Content 0", "0.1 S sends NON Content 1"]);
    pair.say(Kind::NonConfirmable).unwrap();
    // The next waits for PROBING_RATE; a confirmable one passes it once there is room.
    pair.run_until(210_000);
    let log = pair.take_log();
    let left = |line: &str| log.iter().any(|told| told == line);
    assert!(left("0.2 S sends CON Content 2") && left("0.2 S sends NON Content 3"), "{log:?}");
}

/// RFC 7252 §4.7: 16 bytes at 1 byte a second.
#[test]
fn probing_rate_holds_for_a_peer_that_never_answers() {
    let mut pair = known().losing(2..100);
    for _ in 0..3 {
        pair.say(Kind::NonConfirmable).unwrap();
    }
    pair.run();
    pair.happened(&[
        "0.1 S sends NON Content 0 (lost)",
        "15.1 S sends NON Content 1 (lost)",
        "30.1 S sends NON Content 2 (lost)",
    ]);
}

/// RFC 9177 §7.2.
#[test]
fn messages_of_a_body_are_not_under_probing_rate() {
    let mut pair = known();
    let token = millpond_coap::message::Message::parse(&pair.datagrams[0]).unwrap().token;
    for _ in 0..3 {
        let now = pair.now();
        pair.server.send_of_body(now, Side::Client, token, &notification(Kind::NonConfirmable)).unwrap();
        pair.drain(Side::Server);
    }
    pair.happened(&["0.1 S sends NON Content 0", "0.1 S sends NON Content 1", "0.1 S sends NON Content 2"]);
}

#[test]
fn probing_ends_with_the_first_answer() {
    let mut pair = known();
    for _ in 0..3 {
        pair.say(Kind::NonConfirmable).unwrap();
    }
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    let sent: Vec<_> = pair.take_log().into_iter().filter(|line| line.contains("S sends")).collect();
    assert_eq!(
        sent,
        [
            "0.1 S sends NON Content 0",
            "0.1 S sends CON Content 1",
            "0.2 S sends NON Content 2",
            "0.2 S sends NON Content 3"
        ]
    );
}

/// And begins again when the peer no longer acknowledges.
#[test]
fn probing_comes_back_when_a_message_was_given_up() {
    let mut pair = known();
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    pair.lose = (4..100).collect();
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    pair.take_log();
    pair.say(Kind::NonConfirmable).unwrap();
    pair.say(Kind::NonConfirmable).unwrap();
    let start = pair.now;
    pair.run();
    assert_eq!(pair.now - start, 15 * SECOND);
}

/// CoCoA lets one leave in each timeout.
#[test]
fn a_controller_paces_those_that_nobody_acknowledges() {
    let mut pair = known();
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    let now = pair.now();
    pair.server.set_controller(now, Side::Client, Preset::COCOA_03.build()).unwrap();
    pair.drain(Side::Server);
    pair.take_log();
    for _ in 0..4 {
        pair.say(Kind::NonConfirmable).unwrap();
    }
    pair.run();
    let left: Vec<f64> = pair
        .take_log()
        .iter()
        .filter(|line| line.contains("S sends NON"))
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(left.len(), 4);
    assert!(left.windows(2).all(|pair| pair[1] - pair[0] >= 1.0), "{left:?}");
}

/// Of four in a row one is confirmable, and its end is told by the name it was given.
#[test]
fn some_of_them_leave_as_confirmable_ones() {
    let mut pair = known();
    let wishes = Wishes { confirmable_every: 4, ..Wishes::NONE };
    let controller =
        millpond_control::PeerController::own(crate::session::Wishing { inner: crate::pair::steady(), wishes });
    let now = pair.now();
    pair.server.set_controller(now, Side::Client, controller).unwrap();
    pair.drain(Side::Server);
    pair.take_log();
    for _ in 0..8 {
        pair.say(Kind::NonConfirmable).unwrap();
        pair.run();
    }
    let log = pair.take_log();
    assert_eq!(log.iter().filter(|line| line.contains("S sends CON")).count(), 2, "{log:#?}");
    assert_eq!(pair.server.counters().delivered, 2);
    assert_eq!(pair.client.counters().additional_responses, 8);
}

#[test]
fn only_what_was_sent_lately_can_be_rejected() {
    let mut pair = Pair::new(|_, config| config.limits.rejectable = 2);
    pair.subscribe(&get()).unwrap();
    pair.run();
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    for _ in 0..3 {
        pair.say(Kind::NonConfirmable).unwrap();
        pair.run();
    }
    pair.take_log();
    for id in 1..4_u8 {
        pair.inject(Side::Server, &[0x70, 0, 0, id]);
        pair.inject(Side::Server, &[0x70, 0, 0, id]);
    }
    let log: Vec<_> = pair.take_log().into_iter().map(|line| line[5..].to_owned()).collect();
    assert_eq!(
        log,
        [
            "S is told late RST 1",
            "S is told late RST 1",
            "S is rejected",
            "S is told late RST 2",
            "S is rejected",
            "S is told late RST 3",
        ]
    );
}

#[test]
fn a_message_that_waits_can_be_cancelled() {
    let mut pair = known();
    pair.say(Kind::NonConfirmable).unwrap();
    let id = pair.say(Kind::NonConfirmable).unwrap();
    let now = pair.now();
    assert!(pair.server.cancel(now, id));
    pair.drain(Side::Server);
    pair.run();
    pair.happened(&[
        "0.1 S sends NON Content 0",
        "0.1 S has not delivered: Cancelled",
        "0.15 C gets further NON Content 0",
    ]);
}

#[test]
fn confirmable_requests_and_empty_messages_are_refused() {
    let mut pair = known();
    let now = pair.now();
    let refused = pair.server.send_additional(now, Side::Client, Token::EMPTY, &get());
    assert_eq!(refused, Err(Refused::Code(Code::GET)));
    let empty = Outgoing::non_confirmable(Code::EMPTY, &[]);
    assert_eq!(pair.server.send_additional(now, Side::Client, Token::EMPTY, &empty), Err(Refused::Code(Code::EMPTY)));
    let acknowledgement = Outgoing { kind: Kind::Acknowledgement, ..notification(Kind::Confirmable) };
    assert!(pair.server.send_additional(now, Side::Client, Token::EMPTY, &acknowledgement).is_err());
}

#[test]
fn a_ping_is_answered_or_given_up() {
    let mut pair = Pair::usual();
    pair.client.ping(Instant::ORIGIN, Side::Server).unwrap();
    pair.drain(Side::Client);
    pair.run();
    pair.happened(&[
        "0 C sends CON 0",
        "0.05 S sends RST 0",
        "0.05 S ignores Ping",
        "0.1 C has a pong: EmptyAck after 0.1 s",
    ]);
    assert_eq!(pair.client.counters().answered, 1);
    pair.lose = (2..100).collect();
    let now = pair.now();
    pair.client.ping(now, Side::Server).unwrap();
    pair.drain(Side::Client);
    pair.run();
    assert_eq!(pair.take_log().last().unwrap(), "77.6 C fails: GaveUp");
}

#[test]
fn it_is_told_how_many_message_ids_are_left() {
    let mut pair = Pair::usual();
    assert_eq!(pair.client.message_ids_left(pair.now(), Side::Server), 65_536);
    for asked in 1..=3_000 {
        pair.get();
        pair.run();
        assert_eq!(pair.client.message_ids_left(pair.now(), Side::Server), 65_536 - asked);
    }
    // 300 s: the lifetime of the first blocks is over.
    assert_eq!(
        pair.client.message_ids_left(Instant::from_micros(1_000 * SECOND), Side::Server),
        65_536 - 3_000 % 1_024
    );
    assert!(pair.client.known_peers().eq([Side::Server]));
}

#[test]
fn a_copy_of_a_controller_goes_on_elsewhere() {
    let mut pair = Pair::usual();
    assert!(pair.client.controller(Side::Server).is_none());
    pair.client.set_controller(Instant::ORIGIN, Side::Server, Preset::COCOA_03.build()).unwrap();
    pair.drain(Side::Client);
    pair.get();
    pair.run();
    let learnt = pair.client.view(Side::Server).unwrap();
    let mut elsewhere = Pair::usual();
    let copy = pair.client.controller(Side::Server).unwrap();
    elsewhere.client.set_controller(Instant::ORIGIN, Side::Server, copy).unwrap();
    assert_eq!(elsewhere.client.view(Side::Server), Some(learnt));
    assert!(learnt.srtt.is_some());
}

//! Unvalidated peers are those that ask and have never answered anything: nothing of what they take keeps others from theirs.

use std::collections::HashSet;

use millpond_coap::message::{Kind, Message, Token};
use millpond_coap::{Endpoint, Event, Failure, Output, Refused, RequestId};
use millpond_control::{Instant, Span};

use crate::pair::{content, endpoint, get, notification};

const LIMIT: u32 = 100;

/// What an endpoint says until it is drained.
#[derive(Debug, Default)]
struct Said {
    sent: Vec<(u32, Vec<u8>)>,
    asked: Vec<RequestId>,
    undelivered: Vec<(u32, Failure)>,
}

fn drain(endpoint: &mut Endpoint<u32>, now: Instant) -> Said {
    let mut said = Said::default();
    loop {
        match endpoint.poll(now) {
            Output::Transmit(transmit) => said.sent.push((transmit.to, transmit.bytes.to_vec())),
            Output::Event(Event::Request { id, .. }) => said.asked.push(id),
            Output::Event(Event::Undelivered { to, why, .. }) => said.undelivered.push((to, why)),
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => return said,
        }
    }
}

fn server() -> Endpoint<u32> {
    endpoint(0, |config| {
        config.limits.peers = LIMIT;
        config.ack_delay = Span::ZERO;
    })
}

/// Hands over a request and answers it.
fn ask(server: &mut Endpoint<u32>, now: Instant, from: u32, request: &[u8], kind: Kind) -> (Result<(), Refused>, Said) {
    server.receive(now, from, request);
    let mut said = drain(server, now);
    let answered = server.respond(now, said.asked[0], &content(kind));
    said.sent.extend(drain(server, now).sent);
    (answered, said)
}

/// A non-confirmable request with this message ID.
fn plain(id: u16) -> [u8; 4] {
    let [high, low] = id.to_be_bytes();
    [0x50, 1, high, low]
}

/// The peer becomes known: it rejects a request of ours.
fn meet(server: &mut Endpoint<u32>, now: Instant, peer: u32) -> Result<(), Refused> {
    server.request(now, peer, &get())?;
    let [(_, request)] = &drain(server, now).sent[..] else { panic!("a request leaves") };
    server.receive(now, peer, &[0x70, 0, request[2], request[3]]);
    drain(server, now);
    Ok(())
}

#[test]
fn whoever_asks_gets_an_answer_when_every_place_is_taken_and_no_id_comes_twice() {
    let mut server = server();
    let now = Instant::ORIGIN;
    for from in 0..10 * LIMIT {
        let (answered, said) = ask(&mut server, now, from, &plain(7), Kind::NonConfirmable);
        assert_eq!((answered, said.sent.len()), (Ok(()), 1), "{from}");
    }
    assert_eq!((server.peers(), server.requests()), (LIMIT / 2, 0));
    let mut ids = HashSet::new();
    for id in 8..1_008 {
        let (_, said) = ask(&mut server, now, 10 * LIMIT - 1, &plain(id), Kind::NonConfirmable);
        let answer = Message::parse(&said.sent[0].1).unwrap();
        assert_eq!(answer.kind, Kind::NonConfirmable);
        assert!(ids.insert(answer.id), "{:?} came twice", answer.id);
    }
}

#[test]
fn unvalidated_peers_that_were_answered_make_room_for_a_peer_that_is_asked() {
    let mut server = server();
    let now = Instant::ORIGIN;
    for from in 0..10 * LIMIT {
        ask(&mut server, now, from, &plain(7), Kind::NonConfirmable).0.unwrap();
    }
    for peer in 0..LIMIT {
        meet(&mut server, now, 100_000 + peer).unwrap();
    }
    assert_eq!(server.peers(), LIMIT);
    let full = meet(&mut server, now, 200_000);
    assert!(matches!(full, Err(Refused::TooManyPeers { until: Some(_), .. })), "{full:?}");
}

#[test]
fn who_has_answered_once_is_not_forgotten_for_any_number_of_unvalidated_peers() {
    let mut server = server();
    let now = Instant::ORIGIN;
    for from in 0..LIMIT {
        ask(&mut server, now, from, &plain(7), Kind::NonConfirmable).0.unwrap();
    }
    // One of those that were answered is asked itself, another one is met for the first time.
    meet(&mut server, now, 3).unwrap();
    meet(&mut server, now, 1_000).unwrap();
    for from in 2_000..4_000 {
        ask(&mut server, now, from, &plain(7), Kind::NonConfirmable).0.unwrap();
    }
    for peer in 5_000..5_000 + LIMIT - 2 {
        meet(&mut server, now, peer).unwrap();
    }
    assert!(server.view(3).is_some() && server.view(1_000).is_some() && server.view(4).is_none());
}

#[test]
fn separate_answers_under_way_to_unvalidated_peers_make_room_for_a_peer_that_is_asked() {
    let mut server = server();
    let now = Instant::ORIGIN;
    for from in 0..LIMIT / 2 {
        ask(&mut server, now, from, b"\x40\x01\x00\x07", Kind::Confirmable).0.unwrap();
    }
    // The other half of the places is for those who are notified of changes.
    for from in LIMIT / 2..LIMIT {
        let token = Token::new(b"o").unwrap();
        server.send_additional(now, from, token, &notification(Kind::Confirmable)).unwrap();
        drain(&mut server, now);
    }
    assert_eq!(server.exchanges(), LIMIT);
    server.request(now, 1_000, &get()).unwrap();
    let said = drain(&mut server, now);
    assert_eq!(said.undelivered, [(0, Failure::Cancelled)]);
    assert_eq!(said.sent.len(), 1);
    assert_eq!((server.exchanges(), server.peers()), (LIMIT, LIMIT));
    // But not for one more unvalidated peer.
    ask(&mut server, now, 2_000, b"\x40\x01\x00\x07", Kind::Confirmable).0.unwrap();
    assert!(server.view(2_000).is_none() && server.view(1).is_some());
}

/// A flood of non-confirmable requests took all places; a peer that comes then and asks what takes time is acknowledged first.
#[test]
fn a_late_answer_leaves_when_every_place_is_taken_and_its_request_takes_none() {
    let mut server = server();
    let now = Instant::ORIGIN;
    for from in 0..LIMIT {
        ask(&mut server, now, from, &plain(7), Kind::NonConfirmable).0.unwrap();
    }
    let mut ids = HashSet::new();
    for round in 0..100_u8 {
        for from in 1_000..1_020 {
            let (answered, said) = ask(&mut server, now, from, &[0x41, 1, 0, round, 0xaa], Kind::Confirmable);
            assert_eq!((answered, said.sent.len()), (Ok(()), 2), "an acknowledgement and an answer");
            let answer = Message::parse(&said.sent[1].1).unwrap();
            assert_eq!((answer.kind, answer.token.as_bytes()), (Kind::NonConfirmable, &[0xaa][..]));
            assert!(ids.insert((from, answer.id)), "{:?} came twice", answer.id);
            assert_eq!(server.requests(), 0);
        }
    }
}

/// As peers are in sessions that end.
#[test]
fn peers_that_are_no_more_leave_their_places_at_once_whatever_was_under_way() {
    let mut server = server();
    let now = Instant::ORIGIN;
    for from in 0..10 * LIMIT {
        meet(&mut server, now, from).unwrap();
        // An answer under way, a request of ours, and a question that its handler still has.
        ask(&mut server, now, from, &plain(7), Kind::Confirmable).0.unwrap();
        server.request(now, from, &get()).unwrap();
        server.receive(now, from, &plain(8));
        let asked = drain(&mut server, now).asked[0];
        server.forget_peer(now, from);
        assert_eq!(drain(&mut server, now).undelivered.len(), 1);
        assert!(server.respond(now, asked, &content(Kind::Confirmable)).is_err(), "{from}");
        assert_eq!((server.peers(), server.requests(), server.exchanges()), (0, 0, 0));
    }
    server.forget_peer(now, 7);
    meet(&mut server, now, 7).unwrap();
}

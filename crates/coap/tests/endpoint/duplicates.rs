//! Messages that come more than once (RFC 7252 §4.5).

use std::collections::BTreeMap;

use millpond_coap::message::Kind;
use millpond_coap::{Cause, Duplicates, Endpoint, Event, Output};
use millpond_control::{Instant, Span};

use crate::pair::{Pair, SECOND, Side, content, endpoint};

const REQUEST: &[u8] = b"\x40\x01\x12\x34\xb5hello";

/// Hands a request over and answers it at once if it is one for the application. What was sent, and whether it was
/// sent again.
pub(crate) fn serve(server: &mut Endpoint<u32>, now: u64, from: u32, request: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let now = Instant::from_micros(now);
    server.receive(now, from, request);
    let mut sent = Vec::new();
    let mut asked = None;
    loop {
        match server.poll(now) {
            Output::Transmit(transmit) => {
                assert_eq!(transmit.to, from);
                let again = matches!(transmit.cause, Cause::Reply { repeated: true, .. });
                sent.push((transmit.bytes.to_vec(), again));
            }
            Output::Event(Event::Request { id, .. }) => asked = Some(id),
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => match asked.take() {
                Some(id) => server.respond(now, id, &content(Kind::Confirmable)).unwrap(),
                None => return sent,
            },
        }
    }
}

#[test]
fn a_stored_reply_is_sent_until_its_lifetime_is_over() {
    let mut server = endpoint(0, |_| {});
    // 37.5 s of retransmissions and 202 s for the longest round trip.
    let lifetime = 239 * SECOND + SECOND / 2;
    let first = serve(&mut server, 0, 1, REQUEST);
    assert_eq!(first.len(), 1);
    for (now, again) in [(1, true), (lifetime - 1, true), (lifetime, false), (lifetime + 1, true)] {
        assert_eq!(serve(&mut server, now, 1, REQUEST), [(first[0].0.clone(), again)], "at {now}");
    }
    assert_eq!((server.counters().requests, server.counters().duplicates), (2, 3));
}

#[test]
fn the_same_id_from_another_peer_is_another_message() {
    let mut server = endpoint(0, |_| {});
    for from in 0..1_000 {
        assert!(!serve(&mut server, 0, from, REQUEST)[0].1);
    }
    for from in 0..1_000 {
        assert!(serve(&mut server, 1, from, REQUEST)[0].1);
    }
    assert_eq!((server.counters().requests, server.counters().duplicates), (1_000, 1_000));
}

#[test]
fn answered_afresh_every_copy_is_a_request_and_nothing_is_kept() {
    let mut server = endpoint(0, |config| config.duplicates = Duplicates::Afresh);
    let mut memory = 0;
    for copy in 0..10_000 {
        let sent = serve(&mut server, copy, 1, REQUEST);
        assert_eq!((sent.len(), sent[0].1), (1, false));
        if copy == 10 {
            memory = server.memory();
        }
    }
    assert_eq!((server.counters().requests, server.counters().duplicates), (10_000, 0));
    assert_eq!(server.memory(), memory);
}

/// Beyond the budget the oldest are forgotten; the newest are always known.
#[test]
fn the_oldest_make_room_within_the_budget() {
    for budget in [4_096, 10_000, 100_000] {
        let mut server = endpoint(0, |config| config.limits.duplicate_bytes = budget);
        let empty = server.memory();
        for from in 0..20_000 {
            serve(&mut server, u64::from(from), from, REQUEST);
        }
        let held = server.memory() - empty;
        // Beside the budget: one unanswered request, outputs, the boxes themselves.
        assert!(held <= budget + 1_024, "{held} bytes with a budget of {budget}");
        let forgotten = server.counters().forgotten_duplicates;
        // From the newest on, for asking about one that is not known makes it the newest.
        let kept = (0..20_000).rev().take_while(|from| known(&mut server, *from)).count();
        assert_eq!(kept as u64, 20_000 - forgotten, "the oldest goes first");
        assert!(kept >= budget / 250, "{kept} replies of 13 bytes kept in {budget} bytes");
    }
}

/// Whether a copy of the request is recognised.
fn known(server: &mut Endpoint<u32>, from: u32) -> bool {
    serve(server, 30_000, from, REQUEST)[0].1
}

#[test]
fn replies_of_all_lengths_come_back_whole() {
    let mut server = endpoint(0, |config| config.limits.duplicate_bytes = 20_000);
    let mut replies = BTreeMap::new();
    let mut asked = None;
    let mut word = 1_u32;
    for round in 0..5_000_u32 {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let now = Instant::from_micros(u64::from(round));
        // An old one or a new one.
        let from = if word >> 31 == 0 { round } else { round.saturating_sub(word >> 27 & 15) };
        server.receive(now, from, REQUEST);
        let mut sent = None;
        loop {
            match server.poll(now) {
                Output::Transmit(transmit) => sent = Some(transmit.bytes.to_vec()),
                Output::Event(Event::Request { id, .. }) => asked = Some(id),
                Output::Event(_) => {}
                Output::Sleep(..) | Output::Idle => match asked.take() {
                    Some(id) => {
                        let payload = vec![round as u8; (word >> 20) as usize % 300];
                        server.respond(now, id, &content(Kind::Confirmable).with_payload(&payload)).unwrap();
                        replies.remove(&from);
                    }
                    None => break,
                },
            }
        }
        let sent = sent.unwrap();
        assert_eq!(*replies.entry(from).or_insert_with(|| sent.clone()), sent);
    }
    assert!(server.counters().duplicates > 1_000 && server.counters().forgotten_duplicates > 1_000);
}

/// While the application thinks, copies are dropped; after the empty acknowledgement they are acknowledged.
#[test]
fn copies_while_the_application_thinks() {
    let mut server = endpoint(0, |_| {});
    let mut drained = |now: u64, datagram: Option<&[u8]>| {
        let now = Instant::from_micros(now);
        if let Some(datagram) = datagram {
            server.receive(now, 1_u8, datagram);
        }
        let mut outputs = (0, 0);
        loop {
            match server.poll(now) {
                Output::Transmit(transmit) => {
                    assert_eq!((transmit.bytes, transmit.cause), (&b"\x60\x00\x12\x34"[..], Cause::Ack));
                    outputs.0 += 1;
                }
                Output::Event(Event::Request { .. }) => outputs.1 += 1,
                Output::Sleep(..) | Output::Idle => return outputs,
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(drained(0, Some(REQUEST)), (0, 1));
    assert_eq!(drained(100, Some(REQUEST)), (0, 0));
    assert_eq!(drained(500_000, None), (1, 0));
    assert_eq!(drained(500_001, Some(REQUEST)), (1, 0));
}

/// A device that starts anew, or a program that is run for each request, may draw a message ID that it used before. Its token is the same,
/// too, and nothing tells the request from a duplicate: an empty acknowledgement alone has it wait for a response that never comes.
#[test]
fn a_duplicate_behind_a_separate_response_is_answered() {
    for (code, kind) in [(1, Kind::Confirmable), (2, Kind::Confirmable), (1, Kind::NonConfirmable)] {
        let mut server = endpoint(0, |_| {});
        let request = [&[0x40, code], &REQUEST[2..]].concat();
        let (mut sent, mut asked) = (Vec::new(), Vec::new());
        let mut poll = |server: &mut Endpoint<u32>, second: u64, datagram: Option<&[u8]>| {
            let now = Instant::from_micros(second * SECOND);
            if let Some(datagram) = datagram {
                server.receive(now, 1, datagram);
            }
            loop {
                match server.poll(now) {
                    Output::Transmit(transmit) => sent.push(transmit.bytes.to_vec()),
                    Output::Event(Event::Request { id, .. }) => asked.push(id),
                    Output::Event(_) => {}
                    Output::Sleep(..) | Output::Idle => break,
                }
            }
            (std::mem::take(&mut sent), asked.clone())
        };
        let (empty, asked) = (b"\x60\x00\x12\x34".to_vec(), poll(&mut server, 0, Some(&request)).1);
        assert_eq!(poll(&mut server, 1, None).0, [&empty[..]]);
        server.respond(Instant::from_micros(SECOND), asked[0], &content(kind)).unwrap();
        let response = poll(&mut server, 1, None).0.remove(0);
        if kind == Kind::Confirmable {
            assert!(poll(&mut server, 2, Some(&request)).0.contains(&empty), "the response is under way");
            poll(&mut server, 3, Some(&[0x60, 0, response[2], response[3]]));
        }
        let piggybacked = [&[0x60, response[1], 0x12, 0x34], &response[4..]].concat();
        for second in [4, 100] {
            assert_eq!(poll(&mut server, second, Some(&request)).0, [&piggybacked[..]], "{kind:?} after {second} s");
        }
        assert_eq!(server.counters().requests, 1);
    }
}

/// A confirmable copy of a response to an earlier request must not pass for the response to the next one, even if both
/// have the same token.
#[test]
fn an_old_response_is_not_taken_for_the_next_one() {
    let mut pair = Pair::new(|_, config| config.token_length = 0).thinking(SECOND);
    pair.get();
    pair.run_until(2 * SECOND);
    pair.lose = (0..1_000).collect();
    pair.get();
    pair.take_log();
    pair.inject(Side::Client, b"\x40\x45\x00\x00\xffworld");
    pair.happened(&["2 C sends ACK 0 (lost)"]);
    assert_eq!(pair.client.exchanges(), 1);
}

/// With no budget for duplicates a client still works, and rejects the copy of a response instead of acknowledging it.
#[test]
fn without_budget_the_copy_of_a_response_is_rejected() {
    let mut pair = Pair::new(|side, config| {
        if side == Side::Client {
            config.duplicates = Duplicates::Afresh;
            config.limits.duplicate_bytes = 0;
        }
    })
    .thinking(SECOND)
    .losing([3]);
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.55 S sends ACK 0",
        "0.6 C is acknowledged: EmptyAck after 0.6 s",
        "1.05 S sends CON Content 0",
        "1.1 C sends ACK 0 (lost)",
        "1.1 C gets CON Content 0: no sample",
        "3.55 S sends CON Content 0 #1",
        "3.6 C sends RST 0",
        "3.6 C is told late CON Content 0",
        "3.65 S has not delivered: Reset",
    ]);
}

/// An application that leaves a request lying for EXCHANGE_LIFETIME and more must not keep others from being served.
#[test]
fn requests_left_lying_make_room_when_their_time_is_over() {
    let mut server = endpoint(0, |config| config.limits.requests = 2);
    let mut hand = |now: Span, from: u32| {
        let now = Instant::ORIGIN.after(now);
        server.receive(now, from, REQUEST);
        let mut handed = false;
        loop {
            match server.poll(now) {
                Output::Event(Event::Request { .. }) => handed = true,
                Output::Sleep(..) | Output::Idle => return (handed, server.counters().ignored.no_room),
                _ => {}
            }
        }
    };
    assert_eq!(hand(Span::from_secs(0), 1), (true, 0));
    assert_eq!(hand(Span::from_secs(10), 2), (true, 0));
    assert_eq!(hand(Span::from_secs(20), 3), (false, 1));
    assert_eq!(hand(Span::from_secs(240), 4), (true, 1), "half a second of delay and 239.5 s are over for the first");
    assert_eq!(hand(Span::from_secs(249), 5), (false, 2));
    assert_eq!(hand(Span::from_secs(250), 6), (true, 2));
}

#[test]
fn requests_left_lying_leave_nothing_behind() {
    let mut server = endpoint(0, |config| config.limits.requests = 1);
    let mut memory = 0;
    for round in 0..20_000_u32 {
        let now = Instant::from_micros(u64::from(round) * 250 * SECOND);
        server.receive(now, round, REQUEST);
        while !matches!(server.poll(now), Output::Sleep(..) | Output::Idle) {}
        if round == 100 {
            memory = server.memory();
        }
    }
    assert_eq!((server.counters().requests, server.requests()), (20_000, 1));
    assert_eq!(server.memory(), memory);
}

/// A reply that no budget holds is not stored; then a copy of its request is a request again.
#[test]
fn a_reply_that_cannot_be_stored_is_made_again() {
    let mut server = endpoint(0, |config| {
        config.limits.duplicate_bytes = 4_096;
        config.limits.datagram = 8_192;
    });
    for round in 1..4 {
        server.receive(Instant::ORIGIN, 1_u32, REQUEST);
        let Output::Event(Event::Request { id, .. }) = server.poll(Instant::ORIGIN) else { panic!("round {round}") };
        while !matches!(server.poll(Instant::ORIGIN), Output::Sleep(..)) {}
        let response = content(Kind::Confirmable).with_payload(&[0; 5_000]);
        server.respond(Instant::ORIGIN, id, &response).unwrap();
        assert!(matches!(server.poll(Instant::ORIGIN), Output::Transmit(transmit) if transmit.bytes.len() == 5_005));
        assert!(matches!(server.poll(Instant::ORIGIN), Output::Idle));
        assert_eq!(server.counters().forgotten_duplicates, round);
    }
}

/// A client that asked for much that only reads had the server forget what it had carried out for others: a copy of their POST was carried
/// out once more.
#[test]
fn no_number_of_requests_that_read_or_of_one_network_has_a_change_carried_out_twice() {
    const POST: &[u8] = b"\x40\x02\x12\x34\xb5hello";
    let limits = |config: &mut millpond_coap::Config| config.limits.duplicate_bytes = 10_000;
    let mut server = endpoint(0, limits).with_paths(|from| u64::from(from >> 16));
    let first = serve(&mut server, 0, 1, POST);
    for from in 0..9_000 {
        serve(&mut server, 1, 0x2_0000 + from, REQUEST);
    }
    assert_eq!(serve(&mut server, 2, 1, POST), [(first[0].0.clone(), true)]);
    for from in 0..9_000 {
        serve(&mut server, 3, 0x3_0000 + from, POST);
    }
    assert_eq!(serve(&mut server, 4, 1, POST), [(first[0].0.clone(), true)]);
    assert!(serve(&mut server, 5, 0x3_0000 + 8_999, POST)[0].1, "and the newest of all");
    // Non-confirmable ones likewise.
    let plain = b"\x50\x02\x12\x35\xb5hello";
    serve(&mut server, 6, 1, plain);
    for from in 0..9_000 {
        serve(&mut server, 7, 0x3_0000 + from, plain);
    }
    let asked = server.counters().requests;
    serve(&mut server, 8, 1, plain);
    assert_eq!(server.counters().requests, asked);
}

//! A server that does not answer a copy while the answer before is on its way.

use millpond_coap::{Duplicates, Endpoint, Repeats};

use crate::{
    duplicates,
    pair::{SECOND, endpoint},
};

/// What is sent for a request or a copy of it, but for pings.
pub(crate) fn serve(server: &mut Endpoint<u32>, now: u64, peer: u32, request: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let mut sent = duplicates::serve(server, now, peer, request);
    sent.retain(|(bytes, _)| bytes[..2] != [0x40, 0]);
    sent
}

/// A confirmable GET with this message ID.
fn request(id: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [0x40, 1, high, low, 0xb5, b'h', b'e', b'l', b'l', b'o'].to_vec()
}

fn calm() -> Endpoint<u32> {
    endpoint(0, |config| config.duplicates = Duplicates::Calm)
}

/// The last request of those that find a queue.
pub(crate) const LAST: u16 = 52;

/// How a queue looks to a server: a second for the first answer, then ten for each, and a copy of each request but the last.
/// When each request comes, its ID, and whether a copy follows.
pub(crate) fn queue() -> impl Iterator<Item = (u64, u16, bool)> {
    (0..=LAST).map(|id| (SECOND * if id < 2 { u64::from(id) } else { 10 * u64::from(id) - 9 }, id, id < LAST))
}

/// A validated peer finds a queue. Now, and the ID of its last request.
fn in_a_queue(server: &mut Endpoint<u32>, peer: u32) -> (u64, u16) {
    let mut now = 0;
    for (moment, id, is_copied) in queue() {
        now = moment;
        assert_eq!(serve(server, now, peer, &request(id)).len(), 1);
        server.validated(peer);
        if is_copied {
            serve(server, now, peer, &request(id));
        }
    }
    // The allowance is used up by a neighbour.
    for _ in 0..3 {
        serve(server, now, peer + 50, &request(0));
    }
    (now, LAST)
}

/// Which of so many copies that come at one time are answered.
fn answered(server: &mut Endpoint<u32>, now: u64, peer: u32, id: u16, copies: u32) -> Vec<u32> {
    (1..=copies).filter(|_| !serve(server, now, peer, &request(id)).is_empty()).collect()
}

#[test]
fn a_copy_is_withheld_while_the_answer_is_in_the_queue_and_answered_once_it_is_overdue() {
    let mut server = calm();
    let (now, id) = in_a_queue(&mut server, 1);
    let before = server.counters();
    assert_eq!(answered(&mut server, now + 2 * SECOND, 1, id, 2), []);
    // The last answer left when the request came; answers take ten seconds.
    assert_eq!(answered(&mut server, now + 11 * SECOND, 1, id, 1), [1], "every third is answered");
    assert_eq!(answered(&mut server, now + 22 * SECOND, 1, id, 1), []);
    assert_eq!(answered(&mut server, now + 22 * SECOND + SECOND / 2, 1, id, 1), [1], "due");
    let (Repeats { calm, due, allowed, third, unknown, withheld }, before_it) =
        (server.counters().repeats, before.repeats);
    let since = (calm - before_it.calm, allowed - before_it.allowed, withheld - before_it.withheld);
    assert_eq!((since, due, third, unknown), ((0, 0, 3), 1, 1, 0));
    assert_eq!(server.counters().duplicates - before.duplicates, 5);
    assert_eq!(server.counters().requests, u64::from(LAST) + 2, "copies never reach the application");
}

#[test]
fn stored_replies_answer_every_copy() {
    let mut server = endpoint(0, |_| {});
    let (now, id) = in_a_queue(&mut server, 1);
    assert_eq!(answered(&mut server, now + 2 * SECOND, 1, id, 20).len(), 20);
    assert_eq!(server.counters().repeats, Repeats::default());
}

#[test]
fn where_nothing_waits_every_copy_is_answered() {
    let mut server = calm();
    for id in 0..20 {
        serve(&mut server, u64::from(id) * SECOND, 1, &request(id));
    }
    assert_eq!(answered(&mut server, 19 * SECOND + SECOND / 2, 1, 19, 1), [1]);
    assert_eq!(server.counters().repeats.calm, 1);
}

#[test]
fn an_answer_that_has_not_left_is_not_repeated() {
    let mut server = calm();
    let (now, _) = in_a_queue(&mut server, 1);
    let before = server.counters().repeats;
    // A copy of a request that the application still has: it owes the acknowledgement.
    let moment = millpond_control::Instant::from_micros(now + SECOND);
    server.receive(moment, 1, &request(LAST + 1));
    while !matches!(server.poll(moment), millpond_coap::Output::Sleep(..) | millpond_coap::Output::Idle) {}
    server.receive(moment, 1, &request(LAST + 1));
    while !matches!(server.poll(moment), millpond_coap::Output::Sleep(..) | millpond_coap::Output::Idle) {}
    assert_eq!(server.counters().repeats, before);
}

/// A flood of peers and prefixes takes bounded memory; those that are forgotten for it are answered.
#[test]
fn a_flood_of_peers_costs_bounded_memory_and_silences_nobody() {
    let mut server = endpoint(0, |config| {
        config.duplicates = Duplicates::Calm;
        config.limits.duplicate_bytes = 100_000;
    })
    .with_paths(|from| u64::from(*from));
    let empty = server.memory();
    let (now, id) = in_a_queue(&mut server, 1);
    for other in 100..50_000 {
        serve(&mut server, now, other, &request(1));
    }
    assert!(server.memory() - empty <= 100_000 + 2 * 100_000 / 8 + 1_024, "{}", server.memory());
    let before = server.counters().requests;
    assert_eq!(answered(&mut server, now + SECOND, 1, id, 20).len(), 20);
    assert!(server.counters().repeats.unknown + (server.counters().requests - before) > 0);
}

#[test]
fn peers_on_other_paths_are_judged_apart() {
    let mut server = calm().with_paths(|from| u64::from(*from % 2));
    let (now, id) = in_a_queue(&mut server, 1);
    for round in 0..6 {
        serve(&mut server, now + round * SECOND, 2, &request(round as u16));
        server.validated(2);
    }
    let now = now + 5 * SECOND;
    assert_eq!(answered(&mut server, now, 1, id, 6), [3, 6]);
    assert_eq!(answered(&mut server, now, 2, 5, 20).len(), 20, "no queue there");
}

#[test]
fn copies_of_older_requests_are_withheld_alike_but_for_every_third() {
    let mut server = calm();
    let (now, id) = in_a_queue(&mut server, 1);
    assert_eq!(serve(&mut server, now + 9 * SECOND, 1, &request(id + 1)).len(), 1);
    assert_eq!(answered(&mut server, now + 10 * SECOND, 1, id, 7), [3, 6]);
    assert_eq!(answered(&mut server, now + 12 * SECOND, 1, id, 1), [1], "due");
}

/// The rejection of the ping that is sent besides, if there is one.
fn pinged(server: &mut Endpoint<u32>, now: u64, peer: u32, id: u16) -> Option<[u8; 4]> {
    let sent = duplicates::serve(server, now, peer, &request(id));
    let ping = sent.iter().find(|(bytes, _)| bytes[..2] == [0x40, 0])?;
    assert_eq!(sent[0].0, ping.0, "before the answer, so that who goes with the answer has it");
    Some([0x70, 0, ping.0[2], ping.0[3]])
}

#[test]
fn a_peer_is_pinged_when_it_first_asks_and_when_it_repeats_requests_until_it_shows_that_it_is_there() {
    let mut server = calm();
    for id in 0..6 {
        let now = 10 * SECOND * u64::from(id);
        assert_eq!(pinged(&mut server, now, 1, id).is_some(), id == 0);
        let is_pinged = pinged(&mut server, now + 1, 1, id).is_some();
        assert_eq!(is_pinged, (1..4).contains(&id), "one for each request, four in all: {id}");
        assert_eq!(pinged(&mut server, now + 2, 1, id), None);
    }
    let rejection = pinged(&mut server, 70 * SECOND, 2, 1).unwrap();
    let late = server.counters().late;
    serve(&mut server, 72 * SECOND, 2, &rejection);
    assert_eq!(server.counters().late, late, "it was waited for");
    serve(&mut server, 80 * SECOND, 2, &request(2));
    assert_eq!(pinged(&mut server, 81 * SECOND, 2, 2), None, "it is validated");
}

/// Devices that show nothing of themselves but that they reject pings are helped: the first four exchanges are for finding out.
#[test]
fn a_peer_that_only_rejects_pings_is_withheld_copies_from() {
    let mut server = calm();
    let mut withheld = Vec::new();
    for (moment, id, _) in queue() {
        if let Some(rejection) = pinged(&mut server, moment, 1, id) {
            serve(&mut server, moment + 1, 1, &rejection);
        }
        let before = server.counters().repeats.withheld;
        serve(&mut server, moment + 2, 1, &request(id));
        serve(&mut server, moment + 3, 1, &request(id));
        withheld.push(server.counters().repeats.withheld > before);
    }
    assert!(withheld[10..].iter().all(|is| *is), "{withheld:?}");
}

/// Who guesses the ID of a ping has one guess for each: 65,536 of them validate one forged address.
#[test]
fn a_ping_can_be_guessed_at_once() {
    let mut server = calm();
    let [first, code, high, low] = pinged(&mut server, 0, 1, 1).unwrap();
    serve(&mut server, 2, 1, &[first, code, high, low ^ 1]);
    serve(&mut server, 3, 1, &[first, code, high, low]);
    serve(&mut server, 4, 1, &request(2));
    assert!(pinged(&mut server, 5, 1, 2).is_some(), "it is not validated");
}

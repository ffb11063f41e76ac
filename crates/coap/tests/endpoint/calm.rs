//! A server that does not answer a duplicate while the answer before is on its way.

use millpond_coap::{Duplicates, Endpoint, Repeats};

use crate::{
    duplicates,
    pair::{SECOND, endpoint},
};

/// What is sent for a request or a duplicate of it, but for pings.
pub(crate) fn serve(server: &mut Endpoint<u32>, now: u64, peer: u32, request: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let mut sent = duplicates::serve(server, now, peer, request);
    sent.retain(|(bytes, _)| bytes[..2] != [0x40, 0]);
    sent
}

/// The rejection of the ping that is sent for a request, if there is one.
pub(crate) fn pinged(server: &mut Endpoint<u32>, now: u64, peer: u32, request: &[u8]) -> Option<[u8; 4]> {
    let sent = duplicates::serve(server, now, peer, request);
    let ping = sent.iter().find(|(bytes, _)| bytes[..2] == [0x40, 0])?;
    assert_eq!(sent[0].0, ping.0, "before the answer: who sleeps after that has it");
    Some([0x70, 0, ping.0[2], ping.0[3]])
}

/// A confirmable GET with this message ID.
pub(crate) fn request(id: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [0x40, 1, high, low, 0xb5, b'h', b'e', b'l', b'l', b'o'].to_vec()
}

fn calm() -> Endpoint<u32> {
    endpoint(0, |config| config.duplicates = Duplicates::Calm)
}

/// How long a ping takes in the queue of these tests.
const QUEUE: u64 = 10 * SECOND;

/// A peer and two neighbours reject their pings after a while, and it asks something. Now, and the ID of that.
pub(crate) fn in_a_queue(server: &mut Endpoint<u32>, peer: u32) -> (u64, u16) {
    let peers = [peer + 51, peer + 52, peer];
    let rejections = peers.map(|peer| pinged(server, 0, peer, &request(0)).unwrap());
    for (peer, rejection) in peers.into_iter().zip(rejections) {
        serve(server, QUEUE, peer, &rejection);
    }
    assert_eq!(serve(server, QUEUE, peer, &request(1)).len(), 1);
    (QUEUE, 1)
}

/// Which of so many duplicates that come at one time are answered.
fn answered(server: &mut Endpoint<u32>, now: u64, peer: u32, id: u16, copies: u32) -> Vec<u32> {
    (1..=copies).filter(|_| !serve(server, now, peer, &request(id)).is_empty()).collect()
}

#[test]
fn a_duplicate_is_withheld_while_the_answer_is_in_the_queue_and_answered_once_it_is_overdue() {
    let mut server = calm();
    let (now, id) = in_a_queue(&mut server, 1);
    assert_eq!(answered(&mut server, now + 2 * SECOND, 1, id, 2), []);
    assert_eq!(answered(&mut server, now + 11 * SECOND, 1, id, 1), [], "so far away it has shown itself to be");
    assert_eq!(answered(&mut server, now + 11 * SECOND + SECOND / 2, 1, id, 1), [1], "due");
    let Repeats { due, lost, third, unknown, withheld } = server.counters().repeats;
    assert_eq!((due, lost, third, unknown, withheld), (1, 0, 0, 0, 3));
    assert_eq!((server.counters().duplicates, server.counters().requests), (4, 4), "none reach the application");
}

#[test]
fn who_asks_after_a_later_ping_came_back_is_answered_at_once() {
    let mut server = calm();
    let (now, id) = in_a_queue(&mut server, 1);
    let rejection = pinged(&mut server, now + 2 * SECOND, 1, &request(id)).unwrap();
    assert_eq!(answered(&mut server, now + 3 * SECOND, 1, id, 1), []);
    serve(&mut server, now + 4 * SECOND, 1, &rejection);
    assert_eq!(answered(&mut server, now + 6 * SECOND, 1, id, 1), [1]);
    assert_eq!(server.counters().repeats.lost, 1);
}

#[test]
fn stored_replies_answer_every_duplicate() {
    let mut server = endpoint(0, |_| {});
    for peer in 0..3 {
        assert_eq!(pinged(&mut server, 0, peer, &request(0)), None);
    }
    assert_eq!(answered(&mut server, 2 * SECOND, 1, 0, 20).len(), 20);
    assert_eq!(server.counters().repeats, Repeats::default());
}

/// Devices pause for a minute, on a path where nothing waits: what they ask for again is lost.
#[test]
fn where_nothing_waits_every_duplicate_is_answered_however_long_devices_pause() {
    let mut server = calm();
    for id in 0..50 {
        for peer in 0..10 {
            let now = 60 * SECOND * u64::from(id) + SECOND * u64::from(peer);
            if let Some(rejection) = pinged(&mut server, now, peer, &request(id)) {
                serve(&mut server, now + SECOND / 10, peer, &rejection);
            }
            assert_eq!(answered(&mut server, now + 3 * SECOND, peer, id, 1), [1]);
        }
    }
    assert_eq!(server.counters().repeats.withheld, 0);
}

#[test]
fn an_answer_that_has_not_left_is_not_repeated() {
    let mut server = calm();
    let (now, id) = in_a_queue(&mut server, 1);
    let before = server.counters().repeats;
    // A duplicate of a request that the application still has, and will acknowledge with its answer.
    let moment = millpond_control::Instant::from_micros(now + SECOND);
    for _ in 0..2 {
        server.receive(moment, 1, &request(id + 1));
        while !matches!(server.poll(moment), millpond_coap::Output::Sleep(..) | millpond_coap::Output::Idle) {}
    }
    assert_eq!(server.counters().repeats, before);
}

/// A flood of peers and prefixes takes bounded memory; those that are forgotten for it are answered.
#[test]
fn a_flood_of_peers_costs_bounded_memory_and_silences_nobody() {
    let mut server = endpoint(0, |config| {
        config.duplicates = Duplicates::Calm;
        config.limits.duplicate_bytes = 100_000;
    })
    .with_paths(|from| u64::from(*from / 100));
    let empty = server.memory();
    let (now, id) = in_a_queue(&mut server, 1);
    for network in 1..50_000 {
        serve(&mut server, now, 100 * network, &request(1));
    }
    assert!(server.memory() - empty <= 100_000 + 2 * 100_000 / 8 + 1_024, "{}", server.memory());
    let before = server.counters().requests;
    assert_eq!(answered(&mut server, now + SECOND, 1, id, 20).len(), 20);
    assert!(server.counters().repeats.unknown + (server.counters().requests - before) > 0);
}

#[test]
fn peers_on_other_paths_are_judged_apart() {
    let mut server = calm().with_paths(|from| u64::from(*from / 100));
    let (now, id) = in_a_queue(&mut server, 1);
    let rejection = pinged(&mut server, now, 101, &request(5)).unwrap();
    serve(&mut server, now + 1, 101, &rejection);
    assert_eq!(answered(&mut server, now + SECOND, 1, id, 2), []);
    assert_eq!(answered(&mut server, now + SECOND, 101, 5, 1), [1], "no queue there");
}

#[test]
fn duplicates_of_older_requests_are_withheld_alike_but_for_every_third() {
    let mut server = calm();
    let (now, id) = in_a_queue(&mut server, 1);
    assert_eq!(serve(&mut server, now + 9 * SECOND, 1, &request(id + 1)).len(), 1);
    assert_eq!(answered(&mut server, now + 10 * SECOND, 1, id, 7), [3, 6]);
    assert_eq!(answered(&mut server, now + 12 * SECOND, 1, id, 1), [1], "due");
}

#[test]
fn a_peer_is_pinged_when_it_first_asks_and_when_it_repeats_requests_and_not_for_ever_if_it_rejects_nothing() {
    let mut server = calm();
    for id in 0..6 {
        let now = 10 * SECOND * u64::from(id);
        assert_eq!(pinged(&mut server, now, 1, &request(id)).is_some(), id == 0);
        let is_pinged = pinged(&mut server, now + 5 * SECOND, 1, &request(id)).is_some();
        assert_eq!(is_pinged, id < 3, "four in all: {id}");
        assert_eq!(pinged(&mut server, now + 5 * SECOND + 1, 1, &request(id)), None);
    }
    let rejection = pinged(&mut server, 70 * SECOND, 2, &request(1)).unwrap();
    let late = server.counters().late;
    serve(&mut server, 72 * SECOND, 2, &rejection);
    assert_eq!(server.counters().late, late, "it was waited for");
    assert_eq!(pinged(&mut server, 80 * SECOND, 2, &request(2)), None);
}

/// Who guesses the ID of a ping has one guess for each: 65,536 of them measure one round trip.
#[test]
fn a_ping_can_be_guessed_at_once() {
    let mut server = calm();
    let [first, code, high, low] = pinged(&mut server, 0, 1, &request(1)).unwrap();
    serve(&mut server, 2, 1, &[first, code, high, low ^ 1]);
    serve(&mut server, 10 * SECOND, 1, &[first, code, high, low]);
    assert_eq!(answered(&mut server, 10 * SECOND, 1, 1, 2), [1, 2], "nothing is known");
}

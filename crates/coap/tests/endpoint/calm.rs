//! A server that does not answer a copy while the answer before is on its way.

use millpond_coap::{Duplicates, Endpoint, Repeats};

use crate::{
    duplicates::serve,
    pair::{SECOND, endpoint},
};

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

/// Now, and the ID of the last request.
fn in_a_queue(server: &mut Endpoint<u32>, peer: u32) -> (u64, u16) {
    let mut now = 0;
    for (moment, id, is_copied) in queue() {
        now = moment;
        for _ in 0..=u8::from(is_copied) {
            assert_eq!(serve(server, now, peer, &request(id)).len(), 1);
        }
    }
    (now, LAST)
}

/// How many of so many copies that come at one time are answered.
fn answered(server: &mut Endpoint<u32>, now: u64, peer: u32, id: u16, copies: u32) -> usize {
    (0..copies).map(|_| serve(server, now, peer, &request(id)).len()).sum()
}

#[test]
fn a_copy_is_withheld_while_the_answer_is_in_the_queue_and_answered_once_it_is_overdue() {
    let mut server = calm();
    let (now, id) = in_a_queue(&mut server, 1);
    let before = server.counters();
    assert_eq!(answered(&mut server, now + 2 * SECOND, 1, id, 20), 5, "the allowance for copies");
    assert_eq!(answered(&mut server, now + 2 * SECOND + 1, 1, id, 20), 0);
    // The last answer left two seconds after the first; answers take ten.
    assert_eq!(answered(&mut server, now + 13 * SECOND + SECOND / 2, 1, id, 1), 1, "due");
    let Repeats { calm, due, allowed, unknown, withheld } = server.counters().repeats;
    assert_eq!((due, allowed - before.repeats.allowed, unknown, withheld), (1, 5, 0, 35));
    assert_eq!(calm, before.repeats.calm);
    assert_eq!(server.counters().duplicates - before.duplicates, 41);
    assert_eq!(server.counters().requests, u64::from(LAST) + 1, "copies never reach the application");
}

#[test]
fn stored_replies_answer_every_copy() {
    let mut server = endpoint(0, |_| {});
    let (now, id) = in_a_queue(&mut server, 1);
    assert_eq!(answered(&mut server, now + 2 * SECOND, 1, id, 20), 20);
    assert_eq!(server.counters().repeats, Repeats::default());
}

#[test]
fn where_nothing_waits_every_copy_is_answered() {
    let mut server = calm();
    for id in 0..20 {
        serve(&mut server, u64::from(id) * SECOND, 1, &request(id));
    }
    assert_eq!(answered(&mut server, 19 * SECOND + SECOND / 2, 1, 19, 1), 1);
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

/// Who forges requests can only make the times shorter that answers are known to take: then copies are answered as
/// everywhere else.
#[test]
fn forged_requests_make_it_answer_more() {
    let mut server = calm();
    let (now, id) = in_a_queue(&mut server, 1);
    for forged in 100..200 {
        serve(&mut server, now + u64::from(forged), 2, &request(forged));
    }
    assert_eq!(answered(&mut server, now + 2 * SECOND, 1, id, 8), 8);
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
    for stranger in 100..50_000 {
        serve(&mut server, now, stranger, &request(1));
    }
    assert!(server.memory() - empty <= 100_000 + 2 * 100_000 / 8 + 1_024, "{}", server.memory());
    let before = server.counters().requests;
    assert_eq!(answered(&mut server, now + SECOND, 1, id, 20), 20);
    assert!(server.counters().repeats.unknown + (server.counters().requests - before) > 0);
}

#[test]
fn peers_on_other_paths_are_judged_apart() {
    let mut server = calm().with_paths(|from| u64::from(*from % 2));
    let (now, id) = in_a_queue(&mut server, 1);
    for round in 0..6 {
        serve(&mut server, now + round * SECOND, 2, &request(round as u16));
    }
    let now = now + 5 * SECOND;
    assert_eq!(answered(&mut server, now, 1, id, 20), 5, "the allowance is the server's");
    assert_eq!(answered(&mut server, now, 2, 5, 20), 20, "no queue there");
}

use super::*;

const SECOND: u64 = 1_000_000;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn voter(number: u16) -> Voter {
    Voter::new(number).unwrap_or(Voter::MAX)
}

/// A peer asks and is answered at once; whether a ping left before.
fn asks(path: &mut CalmPath, peer: &mut CalmPeer, now: u64) -> bool {
    peer.asked();
    let pings = path.pings(peer, at(now));
    peer.answered(at(now));
    pings
}

/// A duplicate of its newest request comes: the verdict, and whether a ping leaves.
fn asks_again(path: &mut CalmPath, peer: &mut CalmPeer, now: u64) -> (Again, bool) {
    (path.asked_again(peer, at(now)), path.pings(peer, at(now)))
}

/// A path on which pings took so long, of four peers at time 0, and a peer that was answered `now` and rejects nothing.
fn queue(took: u64) -> (CalmPath, CalmPeer, u64) {
    let mut path = CalmPath::new();
    for number in 1..=4 {
        let mut peer = CalmPeer::new();
        assert!(asks(&mut path, &mut peer, 0), "the first request of a peer");
        path.rejected(&mut peer, voter(number), at(took));
    }
    let mut peer = CalmPeer::new();
    assert!(asks(&mut path, &mut peer, took));
    (path, peer, took)
}

use Again::{Due, Lost, Third, Unknown, Withhold};

#[test]
fn what_is_not_known_is_answered() {
    let (mut path, mut peer) = (CalmPath::new(), CalmPeer::new());
    asks(&mut path, &mut peer, 0);
    assert_eq!((1..8).map(|copy| path.asked_again(&mut peer, at(copy))).filter(|again| *again == Unknown).count(), 7);
    assert_eq!(path.asked_late(at(0), 1, at(9)), Unknown);
    assert!(Again::Unknown.answers() && !Withhold.answers());
}

#[test]
fn in_a_queue_a_duplicate_is_answered_when_the_last_answer_should_have_come() {
    // 1.1 of 10 s and 20 ms more
    let (path, mut peer, now) = queue(10 * SECOND);
    let due = now + 11_020_000;
    assert_eq!([due - 10_000_000, due].map(|moment| path.asked_again(&mut peer, at(moment))), [Withhold; 2]);
    assert_eq!(path.asked_again(&mut peer, at(due + 1)), Due);
    assert_eq!(path.asked_again(&mut peer, at(due + 2)), Withhold, "it was answered just now");
    assert_eq!([11, 12].map(|ago| path.asked_late(at(now), 1, at(now + ago * SECOND))), [Withhold, Due]);
}

#[test]
fn where_pings_come_back_at_once_every_duplicate_is_due_however_long_applications_pause() {
    let (mut path, mut peer, mut now) = queue(SECOND / 10);
    for _ in 0..100 {
        now += 60 * SECOND;
        asks(&mut path, &mut peer, now);
        let (again, pings) = asks_again(&mut path, &mut peer, now + 2 * SECOND);
        assert!([Due, Unknown].contains(&again), "{again:?}");
        if pings {
            path.rejected(&mut peer, voter(9), at(now + 2 * SECOND + SECOND / 10));
        }
    }
}

#[test]
fn who_asks_after_a_later_ping_came_back_has_lost_the_answer() {
    let (mut path, mut peer, now) = queue(100 * SECOND);
    path.rejected(&mut peer, voter(9), at(now + 1));
    assert_eq!(path.asked_again(&mut peer, at(now + 2 * SECOND)), Withhold, "that one left before the answer");
    assert!(path.pings(&mut peer, at(now + 2 * SECOND)));
    assert_eq!(path.asked_again(&mut peer, at(now + 3 * SECOND)), Withhold, "nothing came back");
    path.rejected(&mut peer, voter(9), at(now + 3 * SECOND));
    assert_eq!(path.asked_again(&mut peer, at(now + 6 * SECOND)), Lost);
    assert_eq!(path.asked_again(&mut peer, at(now + 6 * SECOND + 1)), Withhold, "it was answered just now");
}

#[test]
fn every_third_duplicate_is_answered_whatever_others_show() {
    let (path, mut peer, now) = queue(100 * SECOND);
    let verdicts = [1, 2, 3, 4, 5, 6, 7].map(|copy| path.asked_again(&mut peer, at(now + copy)));
    assert_eq!(verdicts, [Withhold, Withhold, Third, Withhold, Withhold, Third, Withhold]);
    let late = [1, 2, 3, 4, 5, 6].map(|copy| path.asked_late(at(now), copy, at(now + 9)));
    assert_eq!(late, [Withhold, Withhold, Third, Withhold, Withhold, Third]);
}

#[test]
fn the_third_is_withheld_from_a_peer_that_has_shown_of_late_that_it_is_so_far() {
    let (mut path, mut peer, now) = queue(40 * SECOND);
    path.rejected(&mut peer, voter(9), at(now + 40 * SECOND));
    let third = |peer: &mut CalmPeer, path: &mut CalmPath, asked: u64, after: u64| {
        asks(path, peer, asked);
        (1..3).for_each(|copy| assert_eq!(path.asked_again(peer, at(asked + copy)), Withhold));
        path.asked_again(peer, at(asked + after))
    };
    let asked = now + 41 * SECOND;
    assert_eq!(third(&mut peer.clone(), &mut path, asked, 17 * SECOND), Withhold);
    let mut near = CalmPeer { took: Span::from_secs(15), ..peer };
    assert_eq!(third(&mut near, &mut path, asked, 17 * SECOND), Third, "its own are over");
    // Eight times as long after the ping left it counts no more.
    path.told = at(now + 400 * SECOND);
    assert_eq!(third(&mut peer.clone(), &mut path, now + 300 * SECOND, 19 * SECOND), Withhold);
    assert_eq!(third(&mut peer, &mut path, now + 320 * SECOND, 17 * SECOND), Third);
}

#[test]
fn a_path_is_pinged_once_a_second_for_what_is_withheld_and_each_sixteen_for_what_is_due() {
    for (took, again, between) in [(40, Withhold, 1), (1, Due, 16)] {
        let (path, peer, _) = queue(took * SECOND);
        let now = 100 * SECOND;
        let pings = |after: u64| {
            let (mut path, mut peer) = (path, peer);
            (path.pinged, path.told) = (at(now), at(now));
            (peer.last, peer.is_out) = (at(now + after - 3 * SECOND), false);
            let (verdict, pings) = asks_again(&mut path, &mut peer, now + after);
            assert_eq!(verdict, again);
            pings
        };
        assert!(!pings(between * SECOND - 1) && pings(between * SECOND));
    }
}

#[test]
fn no_ping_leaves_while_one_is_on_its_way() {
    let (mut path, mut peer, now) = queue(10 * SECOND);
    assert!(!asks_again(&mut path, &mut peer, now + 9 * SECOND).1);
    assert!(!asks_again(&mut path, &mut peer, now + 22 * SECOND).1);
    assert!(asks_again(&mut path, &mut peer, now + 23 * SECOND).1, "it is lost");
}

#[test]
fn a_peer_that_rejects_nothing_is_pinged_four_times() {
    let (mut path, mut peer) = (CalmPath::new(), CalmPeer::new());
    let pings = (0..20).map(|number| {
        let now = number * 10 * SECOND;
        usize::from(asks(&mut path, &mut peer, now)) + usize::from(asks_again(&mut path, &mut peer, now + 5 * SECOND).1)
    });
    assert_eq!(pings.sum::<usize>(), 4);
}

#[test]
fn before_a_third_that_would_come_too_soon_its_peer_is_pinged() {
    let (mut path, mut peer, now) = queue(40 * SECOND);
    path.rejected(&mut peer, voter(9), at(now + 1));
    path.pinged = at(now + 7 * SECOND);
    assert!(!asks_again(&mut path, &mut peer, now + 2 * SECOND).1);
    let mut answered = peer;
    assert!(asks_again(&mut path, &mut peer, now + 7 * SECOND).1);
    let mut path = CalmPath { kept: [Span::from_secs(1); KEPT], ..path };
    assert_eq!(asks_again(&mut path, &mut answered, now + 7 * SECOND), (Due, false));
}

#[test]
fn what_is_known_of_a_path_is_forgotten_after_two_minutes() {
    let (mut path, mut peer, now) = queue(119 * SECOND);
    assert_eq!(path.asked_again(&mut peer, at(now + 120 * SECOND)), Due, "nothing is withheld for longer");
    asks(&mut path, &mut peer, now + 120 * SECOND);
    assert_eq!(path.asked_again(&mut peer, at(now + 120 * SECOND)), Withhold);
    assert_eq!(path.asked_again(&mut peer, at(now + 120 * SECOND + 1)), Unknown);
    let (mut path, mut peer, now) = queue(121 * SECOND);
    assert_eq!(asks_again(&mut path, &mut peer, now + 1).0, Unknown, "no round trip is so long");
}

fn took(path: &mut CalmPath, number: u16, seconds: u32) {
    path.took(voter(number), Span::from_secs(seconds));
}

#[test]
fn peers_have_as_many_places_as_each_other_whoever_asks_more() {
    let mut path = CalmPath::new();
    let places = |path: &CalmPath, number| path.whose.iter().filter(|whose| **whose == number).count();
    for _ in 0..20 {
        took(&mut path, 1, 1);
    }
    assert_eq!(places(&path, 1), 8);
    for _ in 0..4 {
        took(&mut path, 2, 2);
    }
    for _ in 0..100 {
        took(&mut path, 1, 1);
    }
    assert_eq!((places(&path, 1), places(&path, 2)), (4, 4));
    for number in 3..=8 {
        took(&mut path, number, 3);
    }
    for _ in 0..100 {
        took(&mut path, 1, 1);
        took(&mut path, 2, 1);
    }
    assert!((1..=8).all(|number| places(&path, number) == 1), "{:?}", path.whose);
}

#[test]
fn the_median_is_that_of_the_sorted_times() {
    let mut path = CalmPath::new();
    assert_eq!(path.median(), None);
    for number in 0..200_u32 {
        path.took(Voter::MIN, Span::from_micros(number.wrapping_mul(2_654_435_761) >> 28));
        let mut kept = path.kept;
        kept.sort_unstable();
        let so_many = KEPT.min(number as usize + 1);
        assert_eq!(path.median(), kept.get((so_many - 1) / 2).copied(), "{kept:?}");
    }
}

#[test]
fn states_are_small() {
    assert!(size_of::<CalmPeer>() <= 24 && size_of::<CalmPath>() <= 64);
}

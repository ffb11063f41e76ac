use super::*;

const SECOND: u64 = 1_000_000;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn voter(number: u16) -> Option<Voter> {
    Voter::new(number)
}

const ONE: Option<Voter> = Voter::new(1);

/// A share of exchanges with copies, known well.
const fn share(share: u16) -> Share {
    Share { share, exchanges: u8::MAX }
}

/// A path and a peer whose requests came these times after the answers, each answered at once; the last
/// answer left at the time returned. Copies came to some of its exchanges, and no allowance is left.
fn known(times: &[u64]) -> (CalmPath, CalmPeer, u64) {
    let (mut path, mut peer) = (CalmPath::new(), CalmPeer::new());
    let mut now = 0_u64;
    for time in [0].iter().chain(times) {
        now = now.saturating_add(*time);
        path.asked(&mut peer, ONE, at(now));
        peer.answered(at(now));
    }
    path.copied = share(SOME);
    path.allowed = Span::ZERO;
    (path, peer, now)
}

/// A copy that is not the third.
fn copy(path: &mut CalmPath, peer: &mut CalmPeer, now: u64) -> Again {
    peer.copies = 0;
    path.asked_again(peer, ONE, at(now))
}

#[test]
fn without_a_sign_of_a_queue_every_copy_is_answered() {
    let (mut path, mut peer, now) = known(&[SECOND, SECOND, 2 * SECOND - 1]);
    assert_eq!(copy(&mut path, &mut peer, now + 1), Again::Calm);
    assert_eq!(copy(&mut CalmPath::new(), &mut peer, now + 2), Again::Calm, "nothing is known of the path");
}

#[test]
fn in_a_queue_a_copy_is_answered_when_the_last_answer_should_have_come() {
    // The median is 10 s, of which 1.1 and 20 ms more are 11.02 s.
    let (mut path, mut peer, now) = known(&[SECOND, 10 * SECOND, 10 * SECOND, 12 * SECOND]);
    let due = now + 11_020_000;
    for moment in [due - 10_700_000, due - 10_600_000, due] {
        assert_eq!(copy(&mut path, &mut peer, moment), Again::Withhold);
    }
    assert_eq!(copy(&mut path, &mut peer, due + 1), Again::Due);
    assert_eq!(copy(&mut path, &mut peer, due + 2), Again::Withhold, "it was answered just now");
}

#[test]
fn copies_of_many_exchanges_are_a_sign_of_a_queue() {
    for (before, needed) in [(Share::NONE, 6), (share(0), 91)] {
        let (mut path, mut peer, mut now) = known(&[SECOND; 8]);
        path.copied = before;
        let mut exchanges = 0;
        loop {
            now += SECOND;
            path.asked(&mut peer, ONE, at(now));
            peer.answered(at(now));
            path.allowed = Span::ZERO;
            exchanges += 1;
            if copy(&mut path, &mut peer, now + 1) == Again::Withhold {
                break;
            }
        }
        // 1 - (15/16)^n >= 0.3 and 1 - (255/256)^n >= 0.3, with what integers cut off
        assert_eq!(exchanges, needed);
    }
}

#[test]
fn long_times_with_few_copies_are_pauses_and_no_queue() {
    let (mut path, mut peer, now) = known(&[SECOND, 40 * SECOND, 90 * SECOND, 60 * SECOND]);
    path.copied = share(SOME - 257);
    assert_eq!(copy(&mut path, &mut peer, now + 2 * SECOND), Again::Calm);
    path.copied = share(SOME);
    assert_eq!(copy(&mut path, &mut peer, now + 2 * SECOND), Again::Withhold);
}

/// A path that looks like a queue, on which answered and withheld copies are followed by further ones as often as
/// this says, in sixteenths; how many of the last hundred first copies were withheld.
fn withheld(answered: u32, withheld: u32) -> usize {
    let (mut path, mut peer, begun) = known(&[SECOND, 40 * SECOND, 40 * SECOND, 40 * SECOND]);
    let verdicts = (0..300_u32).map(|number| {
        let asked = begun.saturating_add(u64::from(number).saturating_mul(40 * SECOND));
        let later = |seconds: u64| asked.saturating_add(seconds.saturating_mul(SECOND));
        path.copied = share(SOME);
        // Half of the time the allowance is used up.
        path.allowed = if number % 2 == 0 { Span::ZERO } else { ALLOWANCE };
        let verdict = path.asked_again(&mut peer, ONE, at(later(2)));
        let followed = if verdict.answers() { answered } else { withheld };
        if number.wrapping_mul(7) % 16 < followed {
            path.asked_again(&mut peer, ONE, at(later(6)));
        }
        path.asked(&mut peer, ONE, at(later(40)));
        peer.answered(at(later(40)));
        verdict
    });
    verdicts.skip(200).filter(|verdict| !verdict.answers()).count()
}

#[test]
fn where_answers_end_copies_packets_are_lost_and_every_copy_is_answered() {
    assert_eq!(withheld(3, 16), 0, "a fifth is lost");
    assert_eq!(withheld(7, 16), 0, "as much, in bursts");
    assert_eq!(withheld(16, 16), 50, "a queue, in which timers double once and more");
    assert_eq!(withheld(0, 0), 50, "a queue, in which they do not");
    assert!(withheld(10, 14) > 0, "a queue that loses as well");
}

/// One exchange of a peer that is answered at once, with so many copies a microsecond apart: the last verdict.
fn exchange(path: &mut CalmPath, peer: &mut CalmPeer, who: Option<Voter>, from: u64, copies: u64) -> Option<Again> {
    path.asked(peer, who, at(from));
    peer.answered(at(from));
    (1..=copies).map(|copy| path.asked_again(peer, who, at(from.saturating_add(copy)))).last()
}

#[test]
fn copies_on_one_path_are_a_sign_there_and_nowhere_else() {
    let (mut crowded, mut quiet) = (CalmPath::new(), CalmPath::new());
    let (mut peer, mut other) = (CalmPeer::new(), CalmPeer::new());
    let mut last = None;
    for number in 0..100 {
        let now = 10 * SECOND * number;
        exchange(&mut quiet, &mut other, voter(2), now, 0);
        last = exchange(&mut crowded, &mut peer, ONE, now + SECOND, 8);
    }
    assert_eq!(last, Some(Again::Withhold));
    assert_eq!(quiet.asked_again(&mut other, voter(2), at(2_000 * SECOND)), Again::Calm);
}

#[test]
fn who_is_not_validated_says_nothing_about_a_path() {
    let (mut path, mut peer) = (CalmPath::new(), CalmPeer::new());
    for number in 0..200 {
        exchange(&mut path, &mut peer, None, 10 * SECOND * number, 2);
    }
    assert_eq!(CalmPath { since: Instant::ORIGIN, allowed: ALLOWANCE, ..path }, CalmPath::new());
    // Once it is, its exchange counts.
    assert!(path.asked_again(&mut CalmPeer { copies: 0, first_copy: FirstCopy::None, ..peer }, ONE, at(1)).answers());
    assert!(path.copied.share > 0);
}

#[test]
fn who_asks_quickly_does_not_outweigh_who_asks_slowly() {
    let mut path = CalmPath::new();
    let mut slow = [CalmPeer::new(); 10];
    let mut quick = CalmPeer::new();
    for round in 0..20 {
        for (number, peer) in slow.iter_mut().enumerate() {
            let now = (60 * round + 6 * number as u64) * SECOND;
            exchange(&mut path, peer, voter(10 + number as u16), now, 0);
            for moment in 0..100 {
                exchange(&mut path, &mut quick, ONE, now + moment * 50_000, 2);
            }
        }
    }
    assert_eq!(path.median(), Some(Span::from_secs(60)));
    assert_eq!(path.whose.iter().filter(|whose| **whose == 1).count(), 1);
    assert!(path.copied.share < SOME / 2, "{:?}", path.copied);
}

fn took(path: &mut CalmPath, number: u16, seconds: u32) {
    if let Some(who) = voter(number) {
        path.took(who, Span::from_secs(seconds));
    }
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
fn every_third_copy_of_a_request_is_answered_whatever_is_known() {
    let (mut path, mut peer, now) = known(&[SECOND, 100 * SECOND, 100 * SECOND]);
    let verdicts = [1, 2, 3, 4, 5, 6, 7].map(|copy| path.asked_again(&mut peer, ONE, at(now + copy)));
    use Again::{Third, Withhold};
    assert_eq!(verdicts, [Withhold, Withhold, Third, Withhold, Withhold, Third, Withhold]);
    let late = [1, 2, 3, 4, 5, 6].map(|copy| path.asked_late(at(now), copy, at(now + 9)));
    assert_eq!(late, [Withhold, Withhold, Third, Withhold, Withhold, Third]);
}

#[test]
fn one_copy_in_four_exchanges_is_answered_for_nothing_one_a_second_and_five_at_once() {
    let allowed = |between: u64, peers: u64| {
        let (mut path, mut peer, now) = known(&[SECOND, 100 * SECOND, 100 * SECOND]);
        for number in 1..=peers {
            path.asked(&mut CalmPeer::new(), None, at(now + number * between));
        }
        let now = now + peers * between;
        (0..20).filter(|moment| copy(&mut path, &mut peer, now + moment) == Again::Allowed).count()
    };
    assert_eq!(allowed(10 * SECOND, 3), 0);
    assert_eq!(allowed(10 * SECOND, 4), 1);
    assert_eq!(allowed(10 * SECOND, 9), 2);
    assert_eq!(allowed(100, 20_000), 2, "in two seconds, however many ask");
    assert_eq!(allowed(SECOND, 90), 5);
}

#[test]
fn pauses_of_an_application_are_no_round_trips() {
    let (mut path, mut peer, now) = known(&[121 * SECOND, 3_600 * SECOND]);
    assert_eq!(path.median(), None);
    assert_eq!(copy(&mut path, &mut peer, now + 1), Again::Calm);
}

#[test]
fn nothing_is_withheld_for_longer_than_two_minutes() {
    let (mut path, mut peer, now) = known(&[SECOND, 119 * SECOND, 119 * SECOND]);
    assert_eq!(copy(&mut path, &mut peer, now + 119 * SECOND), Again::Withhold);
    assert_eq!(copy(&mut path, &mut peer, now + 120 * SECOND), Again::Due);
}

#[test]
fn a_copy_of_an_older_request_is_measured_by_its_own_answer() {
    let (mut path, _, now) = known(&[SECOND, 10 * SECOND, 10 * SECOND]);
    assert_eq!(path.asked_late(at(now - 10 * SECOND), 1, at(now)), Again::Withhold);
    assert_eq!(path.asked_late(at(now - 12 * SECOND), 1, at(now)), Again::Due);
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
    assert!(size_of::<CalmPeer>() <= 24 && size_of::<CalmPath>() <= 72);
}

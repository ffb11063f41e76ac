use super::*;

const SECOND: u64 = 1_000_000;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// A server, a path and a peer whose requests came these times after the answers, each answered at once; the last
/// answer left at the time returned. Copies came to some of its exchanges.
fn known(times: &[u64]) -> (CalmServer, CalmPath, CalmPeer, u64) {
    let (mut server, mut path, mut peer) = (CalmServer::new(), CalmPath::new(), CalmPeer::new());
    let mut now = 0_u64;
    for time in [0].iter().chain(times) {
        now = now.saturating_add(*time);
        server.asked(&mut path, &mut peer, at(now));
        server.answered(&mut peer, at(now));
    }
    server.copied = SOME;
    (server, path, peer, now)
}

/// No allowance is left.
fn spent(server: &mut CalmServer, now: u64) {
    (server.allowed, server.since) = (Span::ZERO, at(now));
}

#[test]
fn without_a_sign_of_a_queue_every_copy_is_answered() {
    let (mut server, path, mut peer, now) = known(&[SECOND, SECOND, 2 * SECOND - 1]);
    spent(&mut server, now);
    assert_eq!(server.asked_again(&path, &mut peer, at(now + 1)), Again::Calm);
    let nothing = CalmPath::new();
    assert_eq!(server.asked_again(&nothing, &mut peer, at(now + 2)), Again::Calm, "nothing is known of the path");
}

#[test]
fn in_a_queue_a_copy_is_answered_when_the_last_answer_should_have_come() {
    // The median is 10 s, of which 1.1 and 20 ms more are 11.02 s.
    let (mut server, path, mut peer, now) = known(&[SECOND, 10 * SECOND, 10 * SECOND, 12 * SECOND]);
    spent(&mut server, now);
    let due = now + 11_020_000;
    for (moment, verdict) in [(due - 10_700_000, Again::Withhold), (due - 10_600_000, Again::Withhold)] {
        assert_eq!(server.asked_again(&path, &mut peer, at(moment)), verdict);
    }
    spent(&mut server, due);
    assert_eq!(server.asked_again(&path, &mut peer, at(due)), Again::Withhold);
    assert_eq!(server.asked_again(&path, &mut peer, at(due + 1)), Again::Due);
    assert_eq!(server.asked_again(&path, &mut peer, at(due + 2)), Again::Withhold, "it was answered just now");
}

#[test]
fn copies_of_many_exchanges_are_a_sign_of_a_queue() {
    let (mut server, mut path, mut peer, mut now) = known(&[SECOND; 8]);
    server.copied = Share(0);
    let mut exchanges = 0;
    loop {
        now += SECOND;
        server.asked(&mut path, &mut peer, at(now));
        server.answered(&mut peer, at(now));
        spent(&mut server, now);
        exchanges += 1;
        if server.asked_again(&path, &mut peer, at(now + 1)) == Again::Withhold {
            break;
        }
    }
    // 1 - (255/256)^n >= 0.3, with what integers cut off
    assert_eq!(exchanges, 91);
}

#[test]
fn long_times_with_few_copies_are_pauses_and_no_queue() {
    let (mut server, path, mut peer, now) = known(&[SECOND, 40 * SECOND, 90 * SECOND, 60 * SECOND]);
    server.copied = Share(SOME.0 - 257);
    spent(&mut server, now);
    assert_eq!(server.asked_again(&path, &mut peer, at(now + 2 * SECOND)), Again::Calm);
    server.copied.copy_came();
    spent(&mut server, now + 2 * SECOND);
    assert_eq!(server.asked_again(&path, &mut peer, at(now + 2 * SECOND)), Again::Withhold);
}

/// A path that looks like a queue, on which answered and withheld copies are followed by further ones as often as
/// this says, in sixteenths; how many of the last hundred first copies were withheld.
fn withheld(answered: u32, withheld: u32) -> usize {
    let (mut server, mut path, mut peer, begun) = known(&[SECOND, 40 * SECOND, 40 * SECOND, 40 * SECOND]);
    let verdicts = (0..300_u32).map(|number| {
        let asked = begun.saturating_add(u64::from(number).saturating_mul(40 * SECOND));
        let later = |seconds: u64| asked.saturating_add(seconds.saturating_mul(SECOND));
        server.copied = SOME;
        // Half of the time the allowance is used up.
        if number % 2 == 0 {
            spent(&mut server, later(2));
        }
        let verdict = server.asked_again(&path, &mut peer, at(later(2)));
        let followed = if verdict.answers() { answered } else { withheld };
        if number.wrapping_mul(7) % 16 < followed {
            server.asked_again(&path, &mut peer, at(later(6)));
        }
        server.asked(&mut path, &mut peer, at(later(40)));
        server.answered(&mut peer, at(later(40)));
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

#[test]
fn copies_on_one_path_are_a_sign_there_however_many_peers_elsewhere_have_none() {
    let (mut server, mut crowded, mut quiet) = (CalmServer::new(), CalmPath::new(), CalmPath::new());
    let (mut peer, mut other) = (CalmPeer::new(), CalmPeer::new());
    let mut exchange = |path: &mut CalmPath, peer: &mut CalmPeer, from: u64, copies: u64| {
        server.asked(path, peer, at(from));
        server.answered(peer, at(from));
        (1..=copies).map(|copy| server.asked_again(path, peer, at(from + copy))).last()
    };
    let mut last = None;
    for number in 0..100 {
        let now = 10 * SECOND * number;
        for elsewhere in 0..99 {
            exchange(&mut quiet, &mut other, now + 1000 * elsewhere, 0);
        }
        last = exchange(&mut crowded, &mut peer, now + SECOND, 8);
    }
    assert_eq!(last, Some(Again::Withhold));
    assert!(server.copied < SOME);
    assert_eq!(server.asked_again(&quiet, &mut other, at(2_000 * SECOND)), Again::Calm);
}

#[test]
fn one_copy_a_second_is_answered_for_nothing_and_five_at_once() {
    let (mut server, path, mut peer, now) = known(&[SECOND, 100 * SECOND, 100 * SECOND]);
    let mut verdicts = |now| server.asked_again(&path, &mut peer, at(now));
    for copy in 0..5 {
        assert_eq!(verdicts(now + copy), Again::Allowed);
    }
    assert_eq!(verdicts(now + SECOND / 2), Again::Withhold);
    assert_eq!(verdicts(now + SECOND + 5), Again::Allowed);
    assert_eq!(verdicts(now + SECOND + 6), Again::Withhold);
}

#[test]
fn pauses_of_an_application_are_no_round_trips() {
    let (mut server, path, mut peer, now) = known(&[121 * SECOND, 3_600 * SECOND]);
    spent(&mut server, now);
    assert_eq!(path, CalmPath::new());
    assert_eq!(server.asked_again(&path, &mut peer, at(now + 1)), Again::Calm);
}

#[test]
fn nothing_is_withheld_for_longer_than_two_minutes() {
    let (mut server, path, mut peer, now) = known(&[SECOND, 119 * SECOND, 119 * SECOND]);
    spent(&mut server, now + 119 * SECOND);
    assert_eq!(server.asked_again(&path, &mut peer, at(now + 119 * SECOND)), Again::Withhold);
    spent(&mut server, now + 120 * SECOND);
    assert_eq!(server.asked_again(&path, &mut peer, at(now + 120 * SECOND)), Again::Due);
}

#[test]
fn a_copy_of_an_older_request_is_measured_by_its_own_answer() {
    let (mut server, path, _, now) = known(&[SECOND, 10 * SECOND, 10 * SECOND]);
    spent(&mut server, now);
    assert_eq!(server.asked_late(&path, at(now - 10 * SECOND), at(now)), Again::Withhold);
    assert_eq!(server.asked_late(&path, at(now - 12 * SECOND), at(now)), Again::Due);
}

#[test]
fn the_median_is_that_of_the_sorted_times() {
    let mut path = CalmPath::new();
    assert_eq!(path.median(), None);
    for number in 0..200_u32 {
        path.took(Span::from_micros(number.wrapping_mul(2_654_435_761) >> 28));
        let mut kept = path.kept;
        kept.sort_unstable();
        let so_many = KEPT.min(number as usize + 1);
        assert_eq!(path.median(), kept.get((so_many - 1) / 2).copied(), "{kept:?}");
    }
}

#[test]
fn states_are_small() {
    assert!(size_of::<CalmPeer>() <= 24 && size_of::<CalmPath>() <= 40 && size_of::<CalmServer>() <= 16);
}

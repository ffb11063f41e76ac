//! "Is CoAP Congestion Safe?" (ANRW 2018), §4.2.

use crate::{Peer, assert_printed, printed_series, secs};
use millpond_control::{
    Chance, Cocoa, Controller, Cx, End, Exchange, Instant, Reason, ReplyKind, Rfc7252, Sample, Span,
    backoff::{Basis, Variable},
    cocoa, rfc7252,
};

/// The word that draws this wait from `[2, 3]` s.
fn draw(printed: &str) -> Chance {
    let above = u64::from(secs(printed).as_micros()) - 2_000_000;
    let word = (above << 32).div_ceil(1_000_001);
    Chance::from_word(u32::try_from(word).unwrap_or(u32::MAX))
}

#[test]
fn default_full_backoff_1() {
    let mut peer = Peer::new(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_1));
    assert_eq!(peer.start_drawing(draw("2.5")), secs("2.5"));
    assert_eq!(peer.answer_after("12"), 2);
    assert_eq!(peer.start(), secs("10"));
    assert_eq!(peer.wait.reason, Reason::Carried);
    assert_eq!(peer.answer_after("11"), 1);
    assert_eq!(peer.start(), secs("20"));
    assert_eq!(peer.answer_after("5"), 0);
    assert_eq!(peer.start_drawing(draw("2.8")), secs("2.8"), "a clean exchange ends the backoff");
    assert_eq!(peer.wait.reason, Reason::Initial);
}

#[test]
fn default_full_backoff_2() {
    let mut peer = Peer::new(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_2));
    assert_eq!(peer.start_drawing(draw("2.5")), secs("2.5"));
    assert_eq!(peer.answer_after("12"), 2);
    assert_eq!(peer.start(), secs("10"));
    assert_eq!(peer.answer_after("11"), 1);
    for halved in ["20", "10", "5"] {
        assert_eq!(peer.start_drawing(draw("2.8")), secs(halved));
        assert_eq!(peer.answer_after("1"), 0);
    }
    assert_eq!(peer.controller.view().carried, Some(secs("2.5")));
    assert_eq!(peer.start_drawing(draw("2.8")), secs("2.8"), "the longer of 2.5 and the draw");
    assert_eq!(peer.controller.view().carried, None);
}

#[test]
fn a_halved_wait_is_still_longer_than_a_low_draw() {
    let mut peer = Peer::new(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_2));
    peer.start_drawing(draw("2.5"));
    assert_eq!(peer.answer_after("4"), 1);
    peer.start();
    assert_eq!(peer.answer_after("1"), 0);
    assert_eq!(peer.start_drawing(draw("2.1")), secs("2.5"));
    assert_eq!(peer.answer_after("1"), 0);
    assert_eq!(peer.controller.view().carried, None, "half of 2.5 s lies below the initial timeout");
}

#[test]
fn carried_waits_end_at_the_cap() {
    let mut peer = Peer::new(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_1));
    assert_eq!(peer.series(Chance::LOWEST, 7), printed_series("2 4 8 16 32 60 60"));
    peer.answer_after("150");
    assert_eq!(peer.series(Chance::LOWEST, 3), printed_series("60 60 60"));
}

/// CoCoA whose timeout is 2.2125 s with an empty weak estimator.
fn cocoa_at_2_2125(parts: cocoa::Parts) -> Peer<Cocoa> {
    let mut peer = Peer::new(Cocoa::new(parts));
    peer.learn(0, "0.8");
    peer.learn(0, "1.0");
    assert_eq!(peer.controller.view().rto, Some(secs("2.2125")));
    peer
}

#[test]
fn cocoa_series_before_the_answer() {
    let mut peer = cocoa_at_2_2125(cocoa::Parts::DRAFT_03);
    assert_eq!(peer.series(Chance::LOWEST, 5), printed_series("2.2125 4.425 6.6375 9.95625 14.934375"));
    let mut peer = cocoa_at_2_2125(cocoa::Parts::DRAFT_03);
    peer.start();
    let copies: Vec<Span> = (0..4)
        .map(|_| {
            peer.expire();
            peer.now.since(peer.started)
        })
        .collect();
    assert_eq!(copies, printed_series("2.2125 6.6375 13.275 23.23125"));
}

#[test]
fn cocoa_after_two_retransmissions() {
    for (parts, next, reason) in [
        (cocoa::Parts::DRAFT_03, "4.284375", Reason::Initial),
        (cocoa::Parts::FULL_BACKOFF_1, "6.6375", Reason::Carried),
        (cocoa::Parts::FULL_BACKOFF_2, "9.63984375", Reason::Carried),
    ] {
        let mut peer = cocoa_at_2_2125(parts);
        peer.start();
        assert_eq!(peer.answer_after("7"), 2);
        assert_eq!(peer.controller.view().rto, Some(secs("4.284375")));
        assert_printed(Some(peer.start()), next, "the next first wait");
        assert_eq!(peer.wait.reason, reason);
    }
}

#[test]
fn cocoa_after_four_retransmissions() {
    for (parts, next) in [
        (cocoa::Parts::DRAFT_03, "2.2125"),
        (cocoa::Parts::FULL_BACKOFF_1, "14.934375"),
        (cocoa::Parts::FULL_BACKOFF_2, "14.934375"),
    ] {
        let mut peer = cocoa_at_2_2125(parts);
        peer.start();
        assert_eq!(peer.answer_after("30"), 4);
        assert_eq!(peer.controller.view().rto, Some(secs("2.2125")), "no sample, no update");
        assert_eq!(peer.start(), secs(next));
    }
}

/// An exchange that began with a persisted backoff had that for its timeout.
#[test]
fn cocoa_full_backoff_2_goes_on_from_the_carried_wait() {
    let mut peer = cocoa_at_2_2125(cocoa::Parts::FULL_BACKOFF_2);
    peer.start();
    assert_eq!(peer.answer_after("30"), 4);
    assert_eq!(peer.start(), secs("14.934375"));
    assert_eq!(peer.answer_after("15"), 1);
    assert!(peer.controller.view().rto < Some(secs("14.934375")));
    assert_printed(Some(peer.start()), "22.4015625", "one step of 1.5");
    // From 22.4015625: 32 is the cap.
    assert_eq!(peer.answer_after("23"), 1);
    assert_eq!(peer.start(), secs("32"));
    // A clean answer ends it; the estimate takes over.
    assert_eq!(peer.answer_after("1"), 0);
    assert_eq!(peer.controller.view().carried, None);
    assert_eq!(Some(peer.start()), peer.controller.view().rto);
}

#[test]
fn a_carried_wait_is_not_dithered_again() {
    for parts in [cocoa::Parts::FULL_BACKOFF_1, cocoa::Parts::FULL_BACKOFF_2] {
        let mut peer = cocoa_at_2_2125(parts);
        peer.start();
        peer.answer_after("30");
        assert_eq!(peer.start_drawing(Chance::HIGHEST), secs("14.934375"));
    }
    let mut peer = Peer::new(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_1));
    peer.start();
    peer.answer_after("3");
    assert_eq!(peer.start_drawing(Chance::HIGHEST), secs("4"));
}

#[test]
fn giving_up_leaves_the_last_timer() {
    let mut default = Peer::new(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_2));
    default.start();
    default.give_up(4);
    assert_eq!(default.start_drawing(Chance::HIGHEST), secs("32"));
    for parts in [cocoa::Parts::FULL_BACKOFF_1, cocoa::Parts::FULL_BACKOFF_2] {
        let mut peer = cocoa_at_2_2125(parts);
        let before = peer.controller.view();
        peer.start();
        peer.give_up(4);
        let after = peer.controller.view();
        assert_eq!(after.carried, Some(secs("14.934375")));
        assert_eq!((after.rto, after.srtt, after.weak_srtt), (before.rto, before.srtt, before.weak_srtt));
    }
}

/// Even where no retransmission is allowed.
#[test]
fn giving_up_after_one_copy_leaves_its_timer() {
    let mut default = Peer::new(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_1));
    default.start_drawing(draw("2.5"));
    default.give_up(0);
    assert_eq!(default.controller.view().carried, Some(secs("2.5")));
    let mut cocoa = cocoa_at_2_2125(cocoa::Parts::FULL_BACKOFF_1);
    cocoa.start();
    cocoa.give_up(0);
    assert_eq!(cocoa.controller.view().carried, Some(secs("2.2125")));
}

/// Who cancels after a retransmission has had no answer either: the backoff stays.
#[test]
fn a_cancelled_exchange_keeps_what_was_backed_off() {
    fn check<C: Controller + Copy>(peer: &mut Peer<C>, backed_off: &str) {
        let fresh = peer.controller;
        for why in [End::Cancelled, End::Reset] {
            peer.controller = fresh;
            peer.start();
            let cx = peer.cx(Chance::LOWEST, 1);
            peer.controller.on_end(&peer.exchange, why, cx);
            assert_eq!(peer.controller.view().carried, None, "nothing was backed off");
            peer.start();
            peer.expire();
            peer.controller.on_end(&peer.exchange, why, cx);
            assert_eq!(peer.controller.view().carried, Some(secs(backed_off)));
        }
    }
    check(&mut Peer::new(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_1)), "4");
    check(&mut cocoa_at_2_2125(cocoa::Parts::FULL_BACKOFF_2), "4.425");
}

/// While an exchange that began with a persisted backoff is open, another one raises the estimate above that wait. Without a
/// sample of its own the first exchange still goes on from what it began with.
#[test]
fn cocoa_full_backoff_2_minds_only_its_own_update() {
    let mut peer = cocoa_at_2_2125(cocoa::Parts::FULL_BACKOFF_2);
    peer.start();
    peer.give_up(0);
    assert_eq!(peer.start(), secs("2.2125"));
    assert_eq!(peer.wait.reason, Reason::Carried);
    for _ in 0..3 {
        peer.expire();
    }
    let (exchange, elapsed) = (peer.exchange, secs("14"));
    peer.learn(0, "10");
    assert!(peer.controller.view().rto > Some(secs("2.2125")));
    let cx = peer.cx(Chance::LOWEST, 1);
    peer.controller.on_reply(&exchange, Sample::new(ReplyKind::Piggybacked, elapsed, elapsed, 3), cx);
    // 2.2125 pushed through 2, 1.5 and 1.5.
    assert_eq!(peer.controller.view().carried, Some(secs("9.95625")));
}

/// Where the factor is fixed for the exchange, the persisted backoff is pushed with that factor: 4.284375 by 2 and 2, not by
/// 1.5.
#[test]
fn cocoa_full_backoff_2_pushes_with_the_factor_of_the_exchange() {
    let backoff = Variable { basis: Basis::FirstWait, ..Variable::COCOA_03 };
    let mut peer = cocoa_at_2_2125(cocoa::Parts { backoff, ..cocoa::Parts::FULL_BACKOFF_2 });
    peer.start();
    assert_eq!(peer.answer_after("7"), 2);
    assert_eq!(peer.controller.view().carried, Some(secs("17.1375")));
}

/// A separate response says nothing about the path, but it is an answer.
#[test]
fn a_separate_response_counts_as_an_answer() {
    let mut peer = cocoa_at_2_2125(cocoa::Parts::FULL_BACKOFF_1);
    let before = peer.controller.view();
    peer.start();
    peer.expire();
    let (cx, rtt) = (peer.cx(Chance::LOWEST, 1), secs("3"));
    peer.controller.on_reply(&peer.exchange, Sample::new(ReplyKind::Separate, rtt, rtt, 1), cx);
    assert_eq!(peer.controller.view().carried, Some(secs("4.425")));
    peer.start();
    peer.controller.on_reply(&peer.exchange, Sample::new(ReplyKind::Separate, rtt, rtt, 0), cx);
    assert_eq!(peer.controller.view(), before);
}

/// Several exchanges open: the longer of the old and the new wait stays; the last one open decides alone.
#[test]
fn the_longer_wait_stays_while_others_are_open() {
    let mut controller = Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_1);
    let at = |open| Cx { open, ..Cx::new(Instant::ORIGIN, Chance::LOWEST) };
    let (mut slow, mut quick) = (Exchange::new(), Exchange::new());
    controller.on_start(&mut slow, 40, at(1));
    controller.on_start(&mut quick, 40, at(2));
    for _ in 0..3 {
        controller.on_timeout(&mut slow, at(2));
    }
    controller.on_timeout(&mut quick, at(2));
    let sample = |retransmissions| Sample::new(ReplyKind::Piggybacked, secs("9"), secs("1"), retransmissions);
    controller.on_reply(&slow, sample(3), at(2));
    assert_eq!(controller.view().carried, Some(secs("16")));

    let mut last_of_all = controller;
    controller.on_reply(&quick, sample(1), at(2));
    assert_eq!(controller.view().carried, Some(secs("16")));
    last_of_all.on_reply(&quick, sample(1), at(1));
    assert_eq!(last_of_all.view().carried, Some(secs("4")));
}

/// A persisted backoff stands in for the estimate also where the factor is chosen by the estimate: 2.2125 s would double.
#[test]
fn a_carried_wait_chooses_the_factor() {
    let backoff = Variable { basis: Basis::Estimate, ..Variable::COCOA_03 };
    let mut peer = cocoa_at_2_2125(cocoa::Parts { backoff, ..cocoa::Parts::FULL_BACKOFF_1 });
    peer.start();
    peer.give_up(2);
    assert_eq!(peer.series(Chance::LOWEST, 2), printed_series("8.85 13.275"));
}

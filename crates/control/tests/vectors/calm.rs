//! Calm: what docs/calm.md states, worked out by hand.

use crate::{Peer, printed_series, secs};
use millpond_control::{
    Admit, Calm, Chance, Class, Controller, Cx, Named, Naming, Preset, Reason, Span,
    calm::{Parts, Without},
};

const RTT: &str = "0.24";

fn peer() -> Peer<Calm> {
    Peer::new(Calm::new(Parts::CALM))
}

/// A peer whose round trips were all of this length, with no queue in sight.
fn measured(rtt: &str) -> Peer<Calm> {
    let mut peer = peer();
    for _ in 0..8 {
        peer.start();
        peer.answer_after(rtt);
        peer.now = peer.now.after(Span::from_secs(1));
    }
    peer
}

#[test]
fn an_unknown_peer_waits_as_rfc_7252_has_it_and_then_longer() {
    assert_eq!(peer().start_drawing(Chance::LOWEST), secs("2"));
    assert_eq!(peer().start_drawing(Chance::HIGHEST), secs("3"));
    // 3, then 4 twice, then 1.5, up to 60 s.
    assert_eq!(peer().series(Chance::LOWEST, 6), printed_series("2 6 24 60 60 60"));
    assert_eq!(peer().controller.wishes().naming, Naming::Token);
}

#[test]
fn a_measured_peer_without_a_queue_waits_a_little_longer_than_a_round_trip() {
    let mut peer = measured(RTT);
    // SRTT 240 ms; RTTVAR, 60 ms at first, has shrunk by a quarter seven times; four of it are 32.036 ms.
    assert_eq!(peer.controller.view().srtt, Some(secs(RTT)));
    let rto = peer.controller.view().rto.expect("a timeout");
    assert_eq!(rto, secs("0.272036"));
    // 1.5, 2, 2, and from the fourth expiry on 1.5.
    let series = printed_series("0.272036 0.408054 0.816108 1.632216 2.448324");
    assert_eq!(peer.series(Chance::LOWEST, 5), series);
    assert_eq!(measured(RTT).start_drawing(Chance::HIGHEST), rto.plus(Span::from_millis(24)), "a tenth of SRTT");
}

#[test]
fn random_loss_without_a_queue_leaves_no_backoff_behind() {
    let mut peer = measured(RTT);
    for _ in 0..6 {
        peer.start();
        peer.expire();
        peer.expire();
        let waited = peer.now.since(peer.started).plus(secs(RTT));
        let text = format!("{}.{:06}", waited.as_micros() / 1_000_000, waited.as_micros() % 1_000_000);
        assert_eq!(peer.answer_naming(&text, Named::Copy(2)), 2);
        assert_eq!(peer.controller.view().carried, None);
        peer.now = peer.now.after(Span::from_secs(5));
    }
    assert!(peer.controller.loss() >= 500, "{}", peer.controller.loss());
}

#[test]
fn a_reply_after_a_long_round_trip_keeps_the_backoff() {
    let mut peer = measured(RTT);
    peer.start();
    peer.expire();
    peer.answer_naming("3", Named::Copy(1));
    let carried = peer.controller.view().carried;
    assert!(carried.is_some_and(|kept| kept >= secs("0.4")), "{carried:?}");
    assert_eq!(peer.wait.reason, Reason::BackedOff);
}

/// A server that stores replies names the first copy it saw, whichever reply got through.
#[test]
fn a_stored_reply_is_no_sample() {
    let mut doubtful = measured(RTT);
    doubtful.start();
    doubtful.series(Chance::LOWEST, 3);
    let before = doubtful.controller.view();
    let waited = doubtful.now.since(doubtful.started).plus(secs(RTT));
    let text = format!("0.{:06}", waited.as_micros());
    doubtful.answer_naming(&text, Named::Copy(0));
    assert_eq!(doubtful.controller.view().srtt, before.srtt, "the third copy fits as well");

    let mut believing = Peer::new(Calm::new(Parts { without: Without::Grades, ..Parts::CALM }));
    believing.learn(0, RTT);
    believing.start();
    believing.expire();
    believing.answer_naming("1.2", Named::Copy(0));
    assert!(believing.controller.view().srtt > Some(secs(RTT)), "without the rule it is believed");
}

#[test]
fn requests_are_held_back_while_a_queue_stands() {
    let mut peer = measured(RTT);
    for _ in 0..4 {
        peer.start();
        peer.answer_after("0.24");
    }
    assert_eq!(admit(&peer), Admit::Now);
    for _ in 0..4 {
        peer.start();
        // Answers take 10 s: longer than any wait, so that no copy leaves before.
        peer.wait.span = secs("11");
        peer.answer_after("10");
    }
    // 16 times (10 s - 2 s) is more than 8 round trips; the lowest draw is half of that.
    assert_eq!(admit(&peer), Admit::At(peer.now.after(secs("40"))));
}

/// One short round trip says that the queue is gone.
#[test]
fn one_short_round_trip_ends_the_pauses() {
    let mut peer = measured(RTT);
    for rtt in ["10", "10", "10", "10", "0.3"] {
        peer.now = peer.now.after(Span::from_secs(300));
        peer.start();
        peer.wait.span = secs("11");
        peer.answer_after(rtt);
    }
    assert_eq!(admit(&peer), Admit::Now);
}

#[test]
fn patience_bounds_the_steps() {
    let parts = Parts { patience: secs("4"), ..Parts::CALM };
    // 3, then twice at most, and from the fourth expiry on 1.5.
    assert_eq!(Peer::new(Calm::new(parts)).series(Chance::LOWEST, 5), printed_series("2 6 12 24 36"));
}

/// Nothing is learnt from it but that the exchange took long.
#[test]
fn a_reply_that_names_a_copy_never_sent_names_nothing() {
    let mut liar = measured(RTT);
    let mut silent = liar.clone();
    for peer in [&mut liar, &mut silent] {
        peer.series(Chance::LOWEST, 2);
    }
    // Two copies were sent; the helper asks when the ninth left, which nobody knows.
    liar.copies.resize(10, liar.started);
    liar.answer_naming("0.9", Named::Copy(9));
    silent.answer_naming("0.9", Named::Nothing);
    assert_eq!(liar.controller, silent.controller);
}

/// One that always names the first copy, in time for the last: stored replies, or lies.
#[test]
fn a_peer_that_lies_in_names_moves_no_estimate_and_no_wait_beyond_the_cap() {
    let mut peer = measured(RTT);
    let before = peer.controller.view();
    for _ in 0..50 {
        for wait in peer.series(Chance::HIGHEST, 4) {
            assert!(wait <= secs("60"), "{wait}");
        }
        let waited = peer.now.since(peer.started).plus(secs(RTT));
        let text = format!("{}.{:06}", waited.as_micros() / 1_000_000, waited.as_micros() % 1_000_000);
        peer.answer_naming(&text, Named::Copy(0));
        let view = peer.controller.view();
        assert_eq!((view.srtt, view.rttvar), (before.srtt, before.rttvar));
        match admit(&peer) {
            Admit::Now => {}
            Admit::At(at) => assert!(at <= peer.now.after(secs("1.5")), "held back until {at:?}"),
            Admit::WhenOneEnds => panic!("nothing is open"),
        }
        peer.now = peer.now.after(secs("2"));
    }
}

#[test]
fn ten_minutes_of_silence_forget_everything() {
    let mut peer = measured("1.5");
    peer.now = peer.now.after(Span::from_secs(601));
    assert_eq!(peer.start_drawing(Chance::LOWEST), secs("2"));
    assert_eq!(peer.wait.reason, Reason::Blind);
}

#[test]
fn the_preset_is_what_the_page_says() {
    assert_eq!(Preset::CALM.build(), millpond_control::AnyController::Calm(Calm::new(Parts::CALM)));
}

fn admit(peer: &Peer<Calm>) -> Admit {
    peer.controller.admit(Class::Confirmable, 40, Cx::new(peer.now, Chance::LOWEST))
}

/// Answers come a second after the request, over a path of 0.24 s, and name the first copy or the last whichever they
/// answer. Waits stay below their cap, and after some forty honest answers at most nothing of it is left.
#[test]
fn abuse_by_a_peer_that_lies_in_echoed_names() {
    let exchange = |peer: &mut Peer<Calm>, names_last: bool| {
        peer.start();
        let end = peer.started.after(secs("1"));
        let mut longest = peer.wait.span;
        // MAX_RETRANSMIT of RFC 7252.
        while peer.now.after(peer.wait.span) < end && peer.copies.len() < 5 {
            longest = longest.max(peer.expire());
        }
        peer.wait.span = Span::from_secs(60);
        let last = peer.copies.len() as u8 - 1;
        peer.answer_naming("1", Named::Copy(if names_last { last } else { 0 }));
        peer.now = peer.now.after(Span::from_secs(300));
        longest
    };
    for names_last in [false, true] {
        let mut peer = measured(RTT);
        for _ in 0..200 {
            let longest = exchange(&mut peer, names_last);
            assert!(longest <= secs("60"), "{longest}");
        }
        let mut honest = 0;
        while peer.start() > secs("0.6") || peer.wait.span < secs(RTT) {
            peer.answer_after(RTT);
            peer.now = peer.now.after(Span::from_secs(300));
            honest += 1;
            assert!(honest <= 40, "{:?}", peer.controller.view());
        }
        println!("names the {}: {honest} honest answers", if names_last { "last" } else { "first" });
    }
}

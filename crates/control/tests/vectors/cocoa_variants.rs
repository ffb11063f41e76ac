//! CoCoA before its last draft, and the variants that learn from more than the number of copies.

use crate::{Peer, assert_printed, printed_series, secs};
use millpond_control::{
    Chance, Cocoa, Controller, Cx, End, Exchange, Instant, Named, Naming, Preset, ReplyKind, Sample, Span,
    ageing::Ageing,
    backoff::{Basis, Variable},
    cocoa::Parts,
    estimator::Gains,
};

/// Its author runs swapped gains; the worked figures are for those of RFC 6298.
const fn rfc6298(parts: Parts) -> Parts {
    Parts { gains: Gains::RFC6298, ..parts }
}

/// After samples of 0.8 s and 1 s: SRTT 0.825, RTTVAR 0.35, timeout 2.2125 s.
fn at_2_2125(parts: Parts) -> Peer<Cocoa> {
    let mut peer = Peer::new(Cocoa::new(rfc6298(parts)));
    peer.learn(0, "0.8");
    peer.learn(0, "1");
    assert_eq!(peer.controller.view().rto, Some(secs("2.2125")));
    peer
}

/// An exchange whose evidence is given.
fn learn(peer: &mut Peer<Cocoa>, elapsed: &str, retransmissions: u8, name: impl Fn(Sample) -> Sample) {
    let cx = peer.cx(Chance::LOWEST, 1);
    let mut exchange = Exchange::new();
    peer.controller.on_start(&mut exchange, 40, cx);
    for _ in 0..retransmissions {
        peer.controller.on_timeout(&mut exchange, cx);
    }
    let sample = Sample::new(ReplyKind::Piggybacked, secs(elapsed), secs("0.1"), retransmissions);
    peer.controller.on_reply(&exchange, name(sample), cx);
}

#[test]
fn draft_00_doubles() {
    let mut peer = Peer::new(Cocoa::new(Parts { ack_timeout: secs("6"), ..Parts::DRAFT_00 }));
    assert_eq!(peer.series(Chance::LOWEST, 5), printed_series("6 12 24 32 32"));
    let mut controller = Preset::COCOA_00.build();
    for (open, first) in [(1, "2"), (2, "4"), (3, "8"), (4, "16"), (5, "32"), (6, "32")] {
        let cx = Cx { open, ..Cx::new(Instant::ORIGIN, Chance::LOWEST) };
        assert_eq!(controller.on_start(&mut Exchange::new(), 40, cx).span, secs(first));
    }
}

#[test]
fn draft_00_leaves_a_choice_of_ageing() {
    for (rule, estimate, silence, aged, used) in [
        (Ageing::Cocoa00, "0.3", "60", "1", "60"),
        (Ageing::Cocoa00Doubling, "0.3", "60", "1.2", "14.4"),
        (Ageing::Cocoa00Eighth, "0.3", "60", "7.5", "60"),
        // Not more than 16 times itself.
        (Ageing::Cocoa00, "0.3", "4.8", "0.3", "0"),
        (Ageing::Cocoa00Doubling, "0.3", "4.8", "0.3", "0"),
        (Ageing::Cocoa00Eighth, "0.3", "4.8", "0.3", "0"),
        // An eighth of the silence is at least twice the estimate.
        (Ageing::Cocoa00Eighth, "0.3", "4.808", "0.601", "4.808"),
        // From one second on nothing ages.
        (Ageing::Cocoa00, "1", "4000", "1", "0"),
        (Ageing::Cocoa00Doubling, "32", "4000", "32", "0"),
        (Ageing::Cocoa00Eighth, "9", "4000", "9", "0"),
    ] {
        let start = Instant::from_micros(7);
        let (ours, updated) = rule.apply(secs(estimate), start, start.after(secs(silence)));
        assert_eq!((ours, updated.since(start)), (secs(aged), secs(used)), "{rule:?}: {estimate} after {silence}");
    }
}

#[test]
fn cocoa_plus_chooses_one_factor_and_has_no_cap() {
    for (first, series, sum) in [
        ("0.25", "0.25 0.75 2.25 6.75 20.25", "30.25"),
        ("0.5", "0.5 1.5 4.5 13.5 40.5", "60.5"),
        ("1.5", "1.5 3 6 12 24", "46.5"),
        ("6", "6 7.8 10.14 13.182 17.1366", "54.2586"),
    ] {
        let mut peer = Peer::new(Cocoa::new(Parts { ack_timeout: secs(first), ..Parts::COCOA_PLUS }));
        let waits = peer.series(Chance::LOWEST, 5);
        assert_eq!(waits, printed_series(series));
        assert_eq!(waits.into_iter().fold(Span::ZERO, Span::plus), secs(sum));
    }
}

/// One step for each first transmission after more than 30 s of silence.
#[test]
fn cocoa_plus_ages_by_one_step() {
    let mut peer = Peer::new(Cocoa::new(Parts { ack_timeout: secs("4"), ..Parts::COCOA_PLUS }));
    peer.start();
    // The estimator says 12 s, so the timeout becomes 8 s.
    peer.controller.on_reply(
        &peer.exchange,
        Sample::new(ReplyKind::Piggybacked, secs("4"), Span::ZERO, 0),
        peer.cx(Chance::LOWEST, 1),
    );
    assert_eq!(peer.controller.view().rto, Some(secs("8")));
    for aged in ["5", "3.5", "2.75", "2.375"] {
        peer.now = peer.now.after(secs("3000"));
        assert_eq!(peer.start(), secs(aged), "one step, however long the silence");
        let cx = peer.cx(Chance::LOWEST, 1);
        peer.controller.on_end(&peer.exchange, End::Cancelled, cx);
    }
}

/// The waits of Californium: one factor for the exchange, chosen by the estimate, and 60 s.
#[test]
fn californium_waits_up_to_a_minute() {
    let mut peer = Peer::new(Cocoa::new(Parts::WEAK_ALL));
    assert_eq!(peer.series(Chance::HIGHEST, 6), printed_series("3 6 12 24 48 60"));
}

#[test]
fn echoed_times_are_strong_samples() {
    let mut peer = at_2_2125(Parts::ECHO);
    assert_eq!(peer.controller.wishes().naming, Naming::Timestamp);
    assert_eq!(peer.start(), secs("2.2125"));
    assert_eq!(peer.answer_naming("3.5", Named::Copy(1)), 1);
    let view = peer.controller.view();
    assert_eq!((view.srtt, view.rttvar), (Some(Span::from_micros(882_813)), Some(secs("0.378125"))));
    assert_printed(view.rto, "2.30390625", "the timeout");
    assert_eq!(view.weak_srtt, None);
    // The first copy is a sample as well, and a reply that names nothing is none.
    learn(&mut peer, "3.5", 1, |sample| sample.naming(0, secs("3.5")));
    assert_ne!(peer.controller.view(), view);
    let before = peer.controller.view();
    learn(&mut peer, "3.5", 1, |sample| sample);
    learn(&mut peer, "3.5", 3, Sample::naming_a_further_copy);
    assert_eq!(peer.controller.view(), before);
}

#[test]
fn an_answer_to_the_first_copy_means_congestion() {
    for (parts, naming) in [(Parts::NUMBER, Naming::Count), (Parts::FLAG, Naming::Flag)] {
        let mut peer = at_2_2125(parts);
        assert_eq!(peer.controller.wishes().naming, naming);
        let before = peer.controller.view();
        for (elapsed, longest) in [("3.5", "3.5"), ("2.5", "3.5"), ("7", "7"), ("0.5", "7")] {
            learn(&mut peer, elapsed, 2, |sample| sample.naming(0, secs(elapsed)));
            let view = peer.controller.view();
            assert_eq!(view.rto, Some(secs(longest)));
            assert_eq!((view.srtt, view.rttvar, view.weak_srtt), (before.srtt, before.rttvar, None));
        }
        let before = peer.controller.view();
        learn(&mut peer, "3.5", 2, |sample| sample);
        assert_eq!(peer.controller.view(), before, "a reply that names nothing says nothing");
    }
}

#[test]
fn congestion_before_any_sample_counts_as_measured() {
    let mut peer = Peer::new(Cocoa::new(Parts::NUMBER));
    learn(&mut peer, "5", 1, |sample| sample.naming(0, secs("5")));
    let cx = Cx { open: 3, ..peer.cx(Chance::LOWEST, 1) };
    assert_eq!(peer.controller.on_start(&mut Exchange::new(), 40, cx).span, secs("5"), "no blind factor any more");
}

#[test]
fn an_answer_to_a_later_copy_means_loss() {
    let mut peer = at_2_2125(Parts::NUMBER);
    peer.start();
    assert_eq!(peer.answer_naming("3.5", Named::Copy(1)), 1);
    assert_printed(peer.controller.view().rto, "2.30390625", "as if echoed");
}

/// SRTT 0.7, first wait 2.5 s, answer after 3.4 s: 0.9 s are left.
#[test]
fn a_flag_leaves_a_guess() {
    let peer = {
        let mut peer = Peer::new(Cocoa::new(rfc6298(Parts { ack_timeout: secs("2.9"), ..Parts::FLAG })));
        peer.learn(0, "0.7");
        assert_eq!(peer.controller.view().rto, Some(secs("2.5")));
        peer
    };
    for (retransmissions, guess) in [(1, "0.7"), (2, "0.9"), (3, "0.9")] {
        let mut peer = peer.clone();
        let before = peer.controller.view();
        learn(&mut peer, "3.4", retransmissions, Sample::naming_a_further_copy);
        let view = peer.controller.view();
        assert_eq!(view.weak_srtt, Some(secs(guess)));
        assert_eq!((view.srtt, view.rttvar), (before.srtt, before.rttvar));
    }
    // Where the strong estimator knows nothing, the rest is all there is.
    let mut peer = Peer::new(Cocoa::new(Parts::FLAG));
    learn(&mut peer, "3.4", 1, Sample::naming_a_further_copy);
    assert_eq!(peer.controller.view().weak_srtt, Some(secs("1.4")));
}

/// After an exchange without a sample the factor goes by the timer that it left, 16 s, and so a fresh first wait of 2 s
/// backs off by 1.5.
#[test]
fn the_factor_can_go_by_the_last_timer() {
    let backoff = Variable { basis: Basis::LastTimer, ..Parts::WEAK_ALL.backoff };
    let mut peer = Peer::new(Cocoa::new(Parts { backoff, weak_retransmissions: 2, ..Parts::WEAK_ALL }));
    assert_eq!(peer.clone().series(Chance::LOWEST, 5), printed_series("2 4 8 16 32"));
    peer.start();
    assert_eq!(peer.answer_after("20"), 3, "no sample");
    assert_eq!(peer.controller.view().carried, None, "nothing else is kept");
    assert_eq!(peer.clone().series(Chance::LOWEST, 5), printed_series("2 3 4.5 6.75 10.125"));

    let mut without_a_sample = peer.clone();
    without_a_sample.start();
    without_a_sample.give_up(4);
    assert_eq!(without_a_sample.series(Chance::LOWEST, 3), printed_series("2 3 4.5"));

    peer.start();
    assert_eq!(peer.answer_after("2.5"), 1);
    // The weak estimator says 2.5 s + 1.25 s, a quarter of which makes 2.4375 s.
    assert_eq!(peer.series(Chance::LOWEST, 3), printed_series("2.4375 4.875 9.75"), "a sample ends it");
}

/// Weak samples after up to 20 retransmissions, not after 21.
#[test]
fn the_last_copy_that_counts() {
    for (retransmissions, counts) in [(20, true), (21, false)] {
        let mut peer = Peer::new(Cocoa::new(Parts::WEAK_ALL));
        peer.learn(retransmissions, "20");
        assert_eq!(peer.controller.view().weak_srtt.is_some(), counts);
    }
}

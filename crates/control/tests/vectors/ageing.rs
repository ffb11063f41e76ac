//! What silence does to an estimate.

use crate::{Peer, secs};
use millpond_control::{
    Admit, Chance, Class, Cocoa, Controller, Instant, Span, ageing::Ageing, blind::Blind, cocoa::Parts,
};

/// The estimate after this silence, and how much of the silence its steps used up.
fn aged(rule: Ageing, estimate: &str, silence: &str) -> (Span, Span) {
    let start = Instant::from_micros(7);
    let (estimate, updated) = rule.apply(secs(estimate), start, start.after(secs(silence)));
    (estimate, updated.since(start))
}

#[test]
fn draft_03() {
    for (estimate, silence, expected, used) in [
        ("0.3", "15", "1.2", "14.4"),
        ("0.3", "14.4", "0.6", "4.8"),
        ("0.3", "4.8", "0.3", "0"),
        ("0.3", "4.800001", "0.6", "4.8"),
        ("9", "36", "9", "0"),
        ("9", "57", "5.5", "36"),
        ("9", "72", "3.75", "58"),
        ("9", "100", "2.875", "73"),
        ("4.5", "18.1", "3.25", "18"),
        ("4", "16.1", "3", "16"),
        ("1", "4000", "1", "0"),
        ("3", "4000", "3", "0"),
    ] {
        assert_eq!(
            aged(Ageing::Draft03, estimate, silence),
            (secs(expected), secs(used)),
            "{estimate} after {silence}"
        );
    }
}

#[test]
fn cocoa_plus() {
    let (mut estimate, mut silence_from) = (secs("8"), Instant::ORIGIN);
    for expected in ["5", "3.5", "2.75", "2.375"] {
        let now = silence_from.after(secs("30.1"));
        (estimate, silence_from) = Ageing::CocoaPlus.apply(estimate, silence_from, now);
        assert_eq!((estimate, silence_from), (secs(expected), now));
    }
    assert_eq!(aged(Ageing::CocoaPlus, "8", "30").0, secs("8"));
    assert_eq!(aged(Ageing::CocoaPlus, "2", "4000").0, secs("2"));
    assert_eq!(aged(Ageing::CocoaPlus, "0.3", "4.8").0, secs("0.3"));
    assert_eq!(aged(Ageing::CocoaPlus, "0.3", "60").0, secs("1"));
}

#[test]
fn no_ageing() {
    assert_eq!(aged(Ageing::None, "0.3", "4000"), (secs("0.3"), Span::ZERO));
}

/// A silence far longer than a span can tell, and the shortest estimate there is.
#[test]
fn every_silence_ends_between_one_and_three_seconds() {
    for micros in [1, 2, 999_999, 3_000_001, u32::MAX] {
        let (estimate, _) = Ageing::Draft03.apply(Span::from_micros(micros), Instant::ORIGIN, Instant::NEVER);
        assert!(estimate >= secs("1") && estimate <= secs("3"), "{micros} µs became {estimate}");
    }
}

/// Ageing moves the timeout when the next exchange starts, and neither average.
#[test]
fn a_peer_that_was_silent_starts_from_the_aged_timeout() {
    let mut peer = Peer::new(Cocoa::new(Parts { ack_timeout: secs("9"), blind: Blind::Plain, ..Parts::DRAFT_03 }));
    peer.now = peer.now.after(secs("1000"));
    assert_eq!(peer.start(), secs("9"), "an unmeasured timeout does not age");
    // RTT 6 s: the estimator says 18 s, the timeout becomes 13.5 s.
    assert_eq!(peer.answer_after("6"), 0);
    let before = peer.controller.view();
    assert_eq!(before.rto, Some(secs("13.5")));
    peer.now = peer.now.after(secs("54.000001"));
    let (mut sender, cx) = (peer.controller, peer.cx(Chance::LOWEST, 0));
    sender.on_plain_send(40, cx);
    assert_eq!(sender.admit(Class::Plain, 40, cx), Admit::At(peer.now.after(secs("7.75"))));
    assert_eq!(sender.view(), before, "a plain message only looks");
    assert_eq!(peer.start(), secs("7.75"));
    let after = peer.controller.view();
    assert_eq!((after.srtt, after.rttvar), (before.srtt, before.rttvar));
    // The second step needs 31 s more, counted from the end of the first.
    peer.now = peer.now.after(secs("30.999999"));
    assert_eq!(peer.start(), secs("7.75"));
    peer.now = peer.now.after(secs("0.000001"));
    assert_eq!(peer.start(), secs("4.875"));
}

//! RFC 7252 §4.2.

use crate::{Peer, printed_series, secs};
use millpond_control::{
    Chance, Controller, Reason, Rfc7252, Span,
    backoff::{Exponential, Factor},
    rfc7252::Parts,
};

fn capped() -> Rfc7252 {
    let backoff = Exponential { cap: Span::from_secs(60), ..Exponential::RFC7252 };
    Rfc7252::new(Parts { backoff, ..Parts::RFC7252 })
}

#[test]
fn waits_double_from_the_draw() {
    let mut peer = Peer::new(Rfc7252::new(Parts::RFC7252));
    assert_eq!(peer.series(Chance::MIDDLE, 5), printed_series("2.5 5 10 20 40"));
    assert_eq!(peer.series(Chance::HIGHEST, 5), printed_series("3 6 12 24 48"));
    assert_eq!(peer.series(Chance::LOWEST, 5), printed_series("2 4 8 16 32"));
}

#[test]
fn copies_leave_and_the_exchange_ends_at_the_printed_times() {
    for (chance, copies, end) in [(Chance::MIDDLE, "2.5 7.5 17.5 37.5", "77.5"), (Chance::HIGHEST, "3 9 21 45", "93")] {
        let mut peer = Peer::new(Rfc7252::new(Parts::RFC7252));
        peer.start_drawing(chance);
        let mut left = Vec::new();
        for _ in 0..4 {
            peer.expire();
            left.push(peer.now.since(peer.started));
        }
        assert_eq!(left, printed_series(copies));
        peer.give_up(4);
        assert_eq!(peer.now.since(peer.started), secs(end));
    }
}

#[test]
fn a_cap_ends_the_growth() {
    let mut peer = Peer::new(capped());
    assert_eq!(peer.series(Chance::MIDDLE, 8), printed_series("2.5 5 10 20 40 60 60 60"));
    assert_eq!(peer.start_drawing(Chance::MIDDLE), secs("2.5"));
    assert_eq!(peer.answer_after("48.5"), 4, "the fourth retransmission is out when the answer comes");
}

#[test]
fn a_cap_below_the_wait_does_not_shorten_it() {
    let backoff = Exponential { cap: Span::from_secs(1), factor: Factor::TWO };
    let mut peer = Peer::new(Rfc7252::new(Parts { backoff, ..Parts::RFC7252 }));
    assert_eq!(peer.series(Chance::MIDDLE, 3), printed_series("2.5 2.5 2.5"));
}

#[test]
fn an_answer_teaches_nothing() {
    let mut peer = Peer::new(capped());
    let fresh = peer.controller;
    peer.start();
    assert_eq!(peer.answer_after("48.5"), 4);
    assert_eq!(peer.controller, fresh);
    peer.start();
    assert_eq!(peer.answer_after("0.1"), 0);
    assert_eq!(peer.controller, fresh);
    peer.start();
    peer.give_up(4);
    assert_eq!(peer.controller, fresh);
    assert_eq!(peer.start(), secs("2"));
    assert_eq!(peer.wait.reason, Reason::Initial);
}

#[test]
fn an_expiry_says_that_it_backed_off() {
    let mut peer = Peer::new(capped());
    peer.start();
    peer.expire();
    assert_eq!(peer.wait.reason, Reason::BackedOff);
    assert_eq!(peer.controller.view().rto, Some(secs("2")));
}

/// Exponential backoff with the 32 s of the CoCoA drafts.
#[test]
fn doubling_up_to_32_seconds() {
    let backoff = Exponential { cap: Span::from_secs(32), factor: Factor::TWO };
    let mut peer = Peer::new(Rfc7252::new(Parts { backoff, ack_timeout: secs("6"), ..Parts::RFC7252 }));
    assert_eq!(peer.series(Chance::LOWEST, 5), printed_series("6 12 24 32 32"));
    for (first, series) in [("0.25", "0.25 0.5 1 2 4"), ("0.5", "0.5 1 2 4 8"), ("1.5", "1.5 3 6 12 24")] {
        let mut peer = Peer::new(Rfc7252::new(Parts { ack_timeout: secs(first), ..Parts::RFC7252 }));
        assert_eq!(peer.series(Chance::LOWEST, 5), printed_series(series));
    }
}

//! draft-ietf-core-cocoa-03: backoff, first waits, mixing, and messages without acknowledgement.

use crate::{Peer, assert_printed, printed_series, secs};
use millpond_control::{
    Admit, Chance, Class, Cocoa, Controller, Cx, End, Exchange, Instant, Reason, ReplyKind, Sample, Span,
    backoff::{Basis, Variable},
    blind::Blind,
    cocoa::Parts,
    estimator::Share,
};

/// CoCoA whose first wait, with the lowest draw, is this long.
fn from(first: &str, backoff: Variable) -> Peer<Cocoa> {
    Peer::new(Cocoa::new(Parts { ack_timeout: secs(first), backoff, ..Parts::DRAFT_03 }))
}

#[test]
fn variable_backoff_step_by_step() {
    for (first, series) in [
        ("0.25", "0.25 0.75 2.25 4.5 6.75"),
        ("0.5", "0.5 1.5 3 6 9"),
        ("0.9", "0.9 2.7 5.4 8.1 12.15"),
        ("2", "2 4 6 9 13.5"),
        ("2.5", "2.5 5 7.5 11.25 16.875"),
        ("3", "3 6 9 13.5 20.25"),
        ("6", "6 9 13.5 20.25 30.375"),
    ] {
        assert_eq!(from(first, Variable::COCOA_03).series(Chance::LOWEST, 5), printed_series(series), "{first}");
    }
}

#[test]
fn variable_backoff_fixed_for_the_exchange() {
    for basis in [Basis::FirstWait, Basis::Estimate] {
        let backoff = Variable { basis, ..Variable::COCOA_03 };
        for (first, series) in [
            ("0.25", "0.25 0.75 2.25 6.75 20.25"),
            ("0.5", "0.5 1.5 4.5 13.5 32"),
            ("0.9", "0.9 2.7 8.1 24.3 32"),
            ("2", "2 4 8 16 32"),
            ("2.5", "2.5 5 10 20 32"),
            ("3", "3 6 12 24 32"),
            ("6", "6 9 13.5 20.25 30.375"),
        ] {
            assert_eq!(from(first, backoff).series(Chance::LOWEST, 5), printed_series(series), "{first}");
        }
    }
}

/// The factor of the whole exchange comes from the dithered wait or from the estimate: 2.5 s spread to 3.75 s tells
/// them apart.
#[test]
fn the_two_ways_to_fix_the_factor_differ_by_the_dither() {
    let by_wait = Variable { basis: Basis::FirstWait, ..Variable::COCOA_03 };
    assert_eq!(from("2.5", by_wait).series(Chance::HIGHEST, 3), printed_series("3.75 5.625 8.4375"));
    let by_estimate = Variable { basis: Basis::Estimate, ..Variable::COCOA_03 };
    assert_eq!(from("2.5", by_estimate).series(Chance::HIGHEST, 3), printed_series("3.75 7.5 15"));
}

#[test]
fn exactly_one_and_three_seconds_double() {
    assert_eq!(from("1", Variable::COCOA_03).series(Chance::LOWEST, 2), printed_series("1 2"));
    assert_eq!(from("0.999999", Variable::COCOA_03).series(Chance::LOWEST, 2), printed_series("0.999999 2.999997"));
    assert_eq!(from("3", Variable::COCOA_03).series(Chance::LOWEST, 2), printed_series("3 6"));
    assert_eq!(from("3.000002", Variable::COCOA_03).series(Chance::LOWEST, 2), printed_series("3.000002 4.500003"));
}

/// Copies of an exchange that starts with 2.5 s, as the study of ANRW 2018 saw them.
#[test]
fn five_retransmissions_fit_into_58_seconds() {
    let mut peer = from("2.5", Variable::COCOA_03);
    peer.start();
    let copies: Vec<Span> = (0..6)
        .map(|_| {
            peer.expire();
            peer.now.since(peer.started)
        })
        .collect();
    assert_eq!(copies, printed_series("2.5 7.5 15 26.25 43.125 68.4375"));
    let mut peer = from("2.5", Variable::COCOA_03);
    peer.start();
    assert_eq!(peer.answer_after("58"), 5);
}

#[test]
fn ten_seconds_outlive_the_default_lifetime() {
    let mut peer = from("10", Variable::COCOA_03);
    peer.start();
    peer.give_up(4);
    assert_eq!(peer.now.since(peer.started), secs("111.5"));
}

#[test]
fn an_unmeasured_peer_waits_longer_the_more_exchanges_are_open() {
    for (blind, bases) in [
        (Blind::PerOpen, ["2", "4", "6", "8", "10"]),
        (Blind::Doubling, ["2", "4", "8", "16", "32"]),
        (Blind::Plain, ["2", "2", "2", "2", "2"]),
    ] {
        let mut cocoa = Cocoa::new(Parts { blind, ..Parts::DRAFT_03 });
        for (open, base) in (1..).zip(bases) {
            let cx = Cx { open, ..Cx::new(Instant::ORIGIN, Chance::LOWEST) };
            let wait = cocoa.on_start(&mut Exchange::new(), 40, cx);
            assert_eq!((wait.span, wait.reason), (secs(base), Reason::Blind), "{blind:?} with {open} open");
        }
        let cx = Cx { open: u16::MAX, ..Cx::new(Instant::ORIGIN, Chance::HIGHEST) };
        let wait = cocoa.on_start(&mut Exchange::new(), 40, cx);
        let longest = if blind == Blind::Plain { "3" } else { "48" };
        assert_eq!(wait.span, secs(longest), "limited to 32 s before dithering");
    }
}

#[test]
fn one_sample_of_either_kind_ends_the_blind_phase() {
    for retransmissions in [0, 1] {
        let mut peer = Peer::new(Cocoa::new(Parts::DRAFT_03));
        peer.learn(retransmissions, "0.8");
        let cx = peer.cx(Chance::LOWEST, 5);
        let wait = peer.controller.on_start(&mut Exchange::new(), 40, cx);
        assert_eq!(Some(wait.span), peer.controller.view().rto);
        assert_eq!(wait.reason, Reason::Initial);
    }
    let mut peer = Peer::new(Cocoa::new(Parts::DRAFT_03));
    peer.learn(3, "20");
    assert_eq!(peer.start(), secs("2"));
    assert_eq!(peer.wait.reason, Reason::Blind, "three retransmissions are no sample");
}

#[test]
fn the_estimate_is_limited_before_the_dither() {
    let mut peer = Peer::new(Cocoa::new(Parts::DRAFT_03));
    for _ in 0..20 {
        peer.learn(0, "100");
    }
    assert!(peer.controller.view().rto.is_some_and(|rto| rto > secs("90")), "the estimate itself has no limit");
    assert_eq!(peer.start(), secs("32"));
    assert_eq!(peer.series(Chance::HIGHEST, 3), printed_series("48 48 48"), "a timer above the cap does not shrink");
}

/// Appendix C.1 of the draft holds the weak estimator at 3 s: three steps of mixing.
#[test]
fn mixing_as_in_the_draft_s_example() {
    let mut rto = secs("1.5");
    for mixed in ["1.875", "2.15625", "2.3671875"] {
        rto = Share::QUARTER.blend(rto, secs("3"));
        assert_printed(Some(rto), mixed, "example C.1");
    }
}

/// The same samples through the update that the draft itself prescribes: the deviation shrinks.
#[test]
fn the_draft_s_example_with_the_deviation_updated() {
    let mut peer = Peer::new(Cocoa::new(Parts { ack_timeout: secs("1.5"), ..Parts::DRAFT_03 }));
    for mixed in ["1.875", "2.09375"] {
        peer.learn(1, "2");
        assert_printed(peer.controller.view().rto, mixed, "two weak samples of 2 s");
    }
}

#[test]
fn an_echo_counts_as_the_copies_count() {
    let at = Cx::new(Instant::ORIGIN, Chance::LOWEST);
    let sample = Sample::new(ReplyKind::Piggybacked, secs("3.5"), secs("0.5"), 1);
    let mut plain = Cocoa::new(Parts::DRAFT_03);
    let mut exchange = Exchange::new();
    plain.on_start(&mut exchange, 40, at);
    plain.on_timeout(&mut exchange, at);
    let (mut first_named, mut last_named) = (plain, plain);
    plain.on_reply(&exchange, sample, at);
    first_named.on_reply(&exchange, sample.naming(0, secs("3.5")), at);
    last_named.on_reply(&exchange, sample.naming(1, secs("0.5")), at);
    assert_eq!(plain, first_named);
    assert_eq!(plain, last_named);
    assert_eq!(plain.view().srtt, None);
    assert_eq!(plain.view().weak_srtt, Some(secs("3.5")));
}

#[test]
fn ends_without_evidence_change_no_estimator() {
    let mut peer = Peer::new(Cocoa::new(Parts::DRAFT_03));
    peer.learn(0, "0.8");
    peer.learn(1, "3.5");
    let learnt = peer.controller;
    peer.start();
    peer.give_up(2);
    assert_eq!(peer.controller.view(), learnt.view());
    for why in [End::Reset, End::Cancelled] {
        peer.start();
        let cx = peer.cx(Chance::LOWEST, 1);
        peer.controller.on_end(&peer.exchange, why, cx);
        assert_eq!(peer.controller.view(), learnt.view());
    }
    peer.start();
    let (cx, rtt) = (peer.cx(Chance::LOWEST, 1), secs("0.1"));
    peer.controller.on_reply(&peer.exchange, Sample::new(ReplyKind::Separate, rtt, rtt, 0), cx);
    assert_eq!(peer.controller.view(), learnt.view());
}

#[test]
fn one_plain_message_per_timeout() {
    let mut cocoa = Cocoa::new(Parts { ack_timeout: secs("2.5"), ..Parts::DRAFT_03 });
    let at = |printed| Cx::new(Instant::ORIGIN.after(secs(printed)), Chance::LOWEST);
    assert_eq!(cocoa.admit(Class::Plain, 10, at("1")), Admit::Now);
    cocoa.on_plain_send(10, at("1"));
    let opens = Admit::At(Instant::from_micros(3_500_000));
    assert_eq!(cocoa.admit(Class::Plain, 10, at("1")), opens);
    assert_eq!(cocoa.admit(Class::Plain, 10, at("3.499999")), opens);
    assert_eq!(cocoa.admit(Class::Plain, 10, at("3.5")), Admit::Now);
    assert_eq!(cocoa.admit(Class::Confirmable, 10, at("1")), Admit::Now);
    assert_eq!(cocoa.wishes().confirmable_every, 8);
}

/// One byte a second is allowed whatever the estimate.
#[test]
fn a_long_timeout_does_not_silence_plain_messages() {
    let mut peer = Peer::new(Cocoa::new(Parts::DRAFT_03));
    for _ in 0..20 {
        peer.learn(0, "100");
    }
    let cx = peer.cx(Chance::LOWEST, 0);
    peer.controller.on_plain_send(40, cx);
    assert_eq!(peer.controller.admit(Class::Plain, 40, cx), Admit::At(Instant::from_micros(40_000_000)));
}

//! One list of samples through every published way of mixing two estimators.

use crate::{Peer, assert_printed};
use millpond_control::{
    Cocoa, Controller,
    cocoa::{Branch, Parts},
    estimator::{Gains, Share},
};

/// Retransmissions and elapsed time of the six exchanges.
const SAMPLES: [(u8, &str); 6] = [(0, "0.8"), (0, "1.0"), (1, "3.5"), (2, "7.0"), (3, "20.0"), (0, "1.2")];

/// draft-bormann-core-cocoa-01: K = 1 for the weak estimator.
const BORMANN_01: Parts = Parts { weak: Branch { k: 1, share: Share::HALF }, ..Parts::DRAFT_00 };

const fn rfc6298(parts: Parts) -> Parts {
    Parts { gains: Gains::RFC6298, ..parts }
}

const fn swapped(parts: Parts) -> Parts {
    Parts { gains: Gains::SWAPPED, ..parts }
}

#[track_caller]
fn check(parts: Parts, printed: [&str; 6]) {
    let mut peer = Peer::new(Cocoa::new(parts));
    for ((retransmissions, elapsed), printed) in SAMPLES.into_iter().zip(printed) {
        peer.learn(retransmissions, elapsed);
        assert_printed(peer.controller.view().rto, printed, elapsed);
    }
}

#[test]
fn draft_03() {
    check(Parts::DRAFT_03, ["2.2", "2.2125", "2.971875", "3.76015625", "3.76015625", "3.028515625"]);
    check(swapped(Parts::DRAFT_03), ["2.2", "2.275", "3.01875", "3.85", "3.85", "3.1375"]);
}

#[test]
fn draft_00() {
    check(Parts::DRAFT_00, ["2.2", "2.2125", "6.35625", "9.521875", "19.04609375", "10.671484375"]);
    check(swapped(Parts::DRAFT_00), ["2.2", "2.275", "6.3875", "9.31875", "16.1515625", "9.28828125"]);
}

#[test]
fn bormann_draft_01() {
    check(BORMANN_01, ["2.2", "2.2125", "3.73125", "4.928125", "8.26484375", "5.280859375"]);
}

#[test]
fn cocoa_plus() {
    check(Parts::COCOA_PLUS, ["2.2", "2.2125", "2.971875", "2.971875", "2.971875", "2.634375"]);
    check(swapped(Parts::COCOA_PLUS), ["2.2", "2.275", "3.01875", "3.01875", "3.01875", "2.721875"]);
}

#[test]
fn cocoa_s() {
    check(Parts::STRONG_ONLY, ["2.2", "2.2125", "2.2125", "2.2125", "2.2125", "2.2546875"]);
}

#[test]
fn modified_cocoa() {
    check(rfc6298(Parts::WEAK_ALL), ["2.2", "2.2125", "2.971875", "3.76015625", "5.7205078125", "4.00869140625"]);
    check(Parts::WEAK_ALL, ["2.2", "2.275", "3.01875", "3.85", "5.8767578125", "4.15087890625"]);
}

#[test]
fn averages_between_the_steps() {
    let mut peer = Peer::new(Cocoa::new(rfc6298(Parts::WEAK_ALL)));
    // Strong SRTT and RTTVAR, then weak ones, after each sample.
    let expected = [
        ("0.8", "0.4", None),
        ("0.825", "0.35", None),
        ("0.825", "0.35", Some(("3.5", "1.75"))),
        ("0.825", "0.35", Some(("3.9375", "2.1875"))),
        ("0.825", "0.35", Some(("5.9453125", "5.65625"))),
        ("0.871875", "0.35625", Some(("5.9453125", "5.65625"))),
    ];
    for ((retransmissions, elapsed), (srtt, rttvar, weak)) in SAMPLES.into_iter().zip(expected) {
        peer.learn(retransmissions, elapsed);
        let view = peer.controller.view();
        assert_printed(view.srtt, srtt, "strong SRTT");
        assert_printed(view.rttvar, rttvar, "strong RTTVAR");
        assert_eq!(view.weak_srtt.is_some(), weak.is_some());
        if let Some((srtt, rttvar)) = weak {
            assert_printed(view.weak_srtt, srtt, "weak SRTT");
            assert_printed(view.weak_rttvar, rttvar, "weak RTTVAR");
        }
    }
}

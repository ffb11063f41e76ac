//! FASOR: every state with every grade of evidence and every number of copies.

use crate::{Peer, secs};
use millpond_control::{
    Chance, Controller, Fasor, Named, Naming, ReplyKind, Sample, Span,
    fasor::{Echo, Parts, Spread, State},
};

/// What an answer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Moves the estimator and leads to the fast state.
    Measure,
    /// Sets the slow timeout and leads one state down.
    Slow,
    /// Nothing.
    Nothing,
}
use Does::{Measure, Nothing, Slow};

const STATES: [State; 3] = [State::Fast, State::FastSlowFast, State::SlowFast];
const BASIC: Parts = Parts { spread: Spread::Nothing, ..Parts::DRAFT_02 };
const NAMED: Parts = Parts { naming: Naming::Token, ..BASIC };
const EXACT_ONLY: Parts = Parts { echo: Echo::ExactOnly, ..NAMED };

/// Kind of answer, copies after the first, the copy it names; then what it does without names, with names that are
/// believed, and with names of which only the last is.
const TABLE: &[(ReplyKind, u8, Named, [Does; 3])] = &[
    // One copy: nothing to distinguish.
    (ReplyKind::Piggybacked, 0, Named::Nothing, [Measure, Measure, Measure]),
    (ReplyKind::EmptyAck, 0, Named::Nothing, [Measure, Measure, Measure]),
    (ReplyKind::Piggybacked, 0, Named::Copy(0), [Measure, Measure, Measure]),
    (ReplyKind::Separate, 0, Named::Nothing, [Nothing, Nothing, Nothing]),
    // Several, and none is named.
    (ReplyKind::Piggybacked, 1, Named::Nothing, [Slow, Slow, Slow]),
    (ReplyKind::Piggybacked, 2, Named::Nothing, [Slow, Slow, Slow]),
    (ReplyKind::Piggybacked, 3, Named::Nothing, [Slow, Slow, Slow]),
    (ReplyKind::EmptyAck, 1, Named::Nothing, [Slow, Slow, Slow]),
    (ReplyKind::EmptyAck, 3, Named::Nothing, [Slow, Slow, Slow]),
    // Several, and the last is named.
    (ReplyKind::Piggybacked, 1, Named::Copy(1), [Slow, Measure, Measure]),
    (ReplyKind::Piggybacked, 2, Named::Copy(2), [Slow, Measure, Measure]),
    (ReplyKind::Piggybacked, 3, Named::Copy(3), [Slow, Measure, Measure]),
    // Several, and an earlier one is named.
    (ReplyKind::Piggybacked, 1, Named::Copy(0), [Slow, Measure, Slow]),
    (ReplyKind::Piggybacked, 2, Named::Copy(0), [Slow, Measure, Slow]),
    (ReplyKind::Piggybacked, 2, Named::Copy(1), [Slow, Measure, Slow]),
    (ReplyKind::Piggybacked, 3, Named::Copy(2), [Slow, Measure, Slow]),
    // Several, and one after the first is named, not which: of two copies that is the last.
    (ReplyKind::Piggybacked, 1, Named::Further, [Slow, Measure, Measure]),
    (ReplyKind::Piggybacked, 2, Named::Further, [Slow, Slow, Slow]),
    (ReplyKind::Piggybacked, 3, Named::Further, [Slow, Slow, Slow]),
    // A separate response says nothing about the path.
    (ReplyKind::Separate, 1, Named::Copy(1), [Nothing, Nothing, Nothing]),
    (ReplyKind::Separate, 3, Named::Nothing, [Nothing, Nothing, Nothing]),
];

/// A peer with one sample, in this state. The slow timeout is 6 s in the lower ones.
fn peer_in(state: State, parts: Parts) -> Peer<Fasor> {
    let mut peer = Peer::new(Fasor::new(parts));
    peer.learn(0, "1");
    for _ in 0..state as u8 {
        peer.learn(1, "4");
    }
    assert_eq!(peer.controller.state(), state);
    peer
}

const fn one_down(state: State) -> State {
    match state {
        State::Fast => State::FastSlowFast,
        State::FastSlowFast | State::SlowFast => State::SlowFast,
    }
}

#[test]
fn every_state_grade_and_number_of_copies() {
    for state in STATES {
        for (kind, copies, named, expected) in TABLE.iter().copied() {
            for (parts, expected) in [BASIC, NAMED, EXACT_ONLY].into_iter().zip(expected) {
                let mut peer = peer_in(state, parts);
                let before = peer.controller;
                peer.start();
                for _ in 0..copies {
                    peer.expire();
                }
                let (elapsed, age) = (Span::from_secs(10), Span::from_secs(2));
                let sample = Sample::new(kind, elapsed, age, copies);
                let sample = match named {
                    Named::Nothing => sample,
                    Named::Copy(0) => sample.naming(0, elapsed),
                    Named::Copy(copy) => sample.naming(copy, age),
                    Named::Further => sample.naming_a_further_copy(),
                };
                let cx = peer.cx(Chance::LOWEST, 1);
                peer.controller.on_reply(&peer.exchange, sample, cx);

                let (after, what) = (peer.controller, format!("{state:?}, {kind:?} {copies} {named:?}, {parts:?}"));
                let measured = after.view() != before.view();
                assert_eq!(measured, expected == Measure, "{what}");
                let next = match expected {
                    Measure => State::Fast,
                    Slow => one_down(state),
                    Nothing => state,
                };
                assert_eq!(after.state(), next, "{what}");
                let slow = if expected == Slow { Some(secs("15")) } else { before.slow() };
                assert_eq!(after.slow(), slow, "{what}");
            }
        }
    }
}

/// The waits of every state: F = 1.5 s and L = 6 s.
#[test]
fn every_state_has_its_series() {
    for (state, series) in [
        (State::Fast, "1.5 3 6 12 24 48 60 60"),
        (State::FastSlowFast, "1.5 6 3 6 12 24 48 60"),
        (State::SlowFast, "6 1.5 3 6 12 24 48 60"),
    ] {
        assert_eq!(peer_in(state, BASIC).series(Chance::LOWEST, 8), crate::printed_series(series), "{state:?}");
    }
}

//! Timers of TCP in the frame of Eclipse Californium.

use crate::{Peer, assert_near, printed_series, secs};
use millpond_control::{
    Admit, AnyController, Chance, Class, Controller, Cx, Instant, Preset, Reason, ReplyKind, Sample, SettingValue, Span,
};

/// The samples of all three, in seconds.
const SAMPLES: [&str; 6] = ["0.8", "1.0", "0.6", "0.6", "2.4", "0.8"];
/// Printed to the microsecond, where every average rounds by half of one and the timeout takes four variations.
const ROUNDING: u64 = 3_000;
/// The same where only a product is rounded.
const PRODUCT: u64 = 1_000;

fn with(preset: Preset, settings: &[(&str, &'static str)]) -> Peer<AnyController> {
    let mut controller = preset.build();
    for (name, word) in settings {
        controller.set(name, SettingValue::Word(word)).expect(name);
    }
    controller.check().expect("settings that go together");
    Peer::new(controller)
}

#[track_caller]
fn check_linux(mut peer: Peer<AnyController>, rows: [[&str; 3]; 6], bound: u64) {
    for (sample, [srtt, rttvar, rto]) in SAMPLES.into_iter().zip(rows) {
        peer.learn(0, sample);
        let view = peer.controller.view();
        assert_near(view.srtt, srtt, bound, "SRTT");
        assert_near(view.rttvar, rttvar, bound, "RTTVAR");
        assert_near(view.rto, rto, bound, "RTO");
    }
}

#[test]
fn linux_in_the_order_of_the_kernel() {
    check_linux(
        with(Preset::LINUX_RTO, &[]),
        [
            ["0.8", "0.4", "2.4"],
            ["0.825", "0.4", "2.425"],
            ["0.796875", "0.3796875", "2.315625"],
            ["0.772265625", "0.3568359375", "2.199609375"],
            ["0.975732", "0.623145", "3.468311"],
            ["0.953766", "0.595181", "3.334491"],
        ],
        ROUNDING,
    );
}

#[test]
fn linux_in_the_order_of_californium() {
    check_linux(
        with(Preset::LINUX_RTO, &[("order", "californium")]),
        [
            ["0.8", "0.4", "2.4"],
            ["0.825", "0.4", "2.425"],
            ["0.797", "0.377", "2.305"],
            ["0.772", "0.351", "2.176"],
            ["0.976", "0.561", "3.22"],
            ["0.954", "0.536", "3.098"],
        ],
        0,
    );
}

#[test]
fn linux_stays_above_the_average_by_four_times_50_ms() {
    let mut peer = with(Preset::LINUX_RTO, &[]);
    peer.learn(0, "0.02");
    assert_eq!(peer.controller.view().rto, Some(secs("0.22")));
    let mut peer = with(Preset::LINUX_RTO, &[]);
    peer.controller.set("least-variation", SettingValue::Time(Span::ZERO)).expect("legal");
    peer.learn(0, "0.02");
    assert_eq!(peer.controller.view().rto, Some(secs("0.06")));
}

#[track_caller]
fn check_hopper(mut peer: Peer<AnyController>, rtos: [&str; 6]) {
    for (sample, rto) in SAMPLES.into_iter().zip(rtos) {
        peer.learn(0, sample);
        assert_near(peer.controller.view().rto, rto, PRODUCT, sample);
    }
}

#[test]
fn peak_hopper_of_californium() {
    // The fourth is 23/24 of 2 s.
    check_hopper(with(Preset::PEAK_HOPPER, &[]), ["1.4", "2", "2", "1.916666667", "4.8", "4.8"]);
}

#[test]
fn peak_hopper_of_the_paper() {
    let original = [("previous", "first-sample"), ("order", "original")];
    check_hopper(
        with(Preset::PEAK_HOPPER, &original),
        ["1.4", "1.341666667", "1.285763889", "1.232190394", "9.6", "9.3"],
    );
    let mut peer = with(Preset::PEAK_HOPPER, &original);
    peer.controller.set("first-bonus", SettingValue::Ratio(750)).expect("legal");
    check_hopper(peer, ["1.4", "1.71875", "1.688802083", "1.618435330", "9.6", "9.3"]);
}

#[test]
fn peak_hopper_keeps_its_distance_from_the_larger_sample() {
    let mut peer = with(Preset::PEAK_HOPPER, &[]);
    for _ in 0..200 {
        peer.learn(0, "1");
    }
    assert_eq!(peer.controller.view().rto, Some(secs("1.1")));
    peer.learn(0, "0.5");
    // Half as long: a change of 1, so the bonus is 1 and the timeout twice the larger.
    assert_eq!(peer.controller.view().rto, Some(secs("2")));
}

#[test]
fn basic_rto() {
    let mut peer = with(Preset::BASIC_RTO, &[]);
    for (retransmissions, elapsed, rto) in [(0, "0.8", "1.2"), (2, "7", "10.5"), (3, "1", "10.5"), (1, "1", "1.5")] {
        peer.learn(retransmissions, elapsed);
        assert_eq!(peer.controller.view().rto, Some(secs(rto)));
    }
    assert_eq!(peer.series(Chance::HIGHEST, 8), printed_series("1.5 3 6 12 24 48 60 60"), "no dither");
    peer.answer_after("200");
    assert_eq!(peer.start(), secs("1.5"), "nothing is carried, and five retransmissions are no sample");
    peer.learn(0, "50");
    assert_eq!(peer.start(), secs("60"), "an estimate ends at the cap as well");
}

/// A clean exchange ends what one with retransmissions left; nothing of it passes 32 s.
#[test]
fn a_backed_off_wait_is_kept_until_a_clean_answer() {
    for preset in [Preset::LINUX_RTO, Preset::PEAK_HOPPER] {
        let mut peer = with(preset, &[]);
        assert_eq!(peer.series(Chance::HIGHEST, 3), printed_series("2 4 8"));
        peer.answer_after("7");
        assert_eq!(peer.controller.view().rto, Some(secs("2")), "{preset:?} took an ambiguous sample");
        assert_eq!(peer.start(), secs("8"));
        assert_eq!(peer.wait.reason, Reason::Carried);
        assert_eq!(peer.answer_after("60"), 3);
        assert_eq!(peer.controller.view().carried, Some(secs("60")));
        assert_eq!(peer.start(), secs("32"));
        peer.give_up(1);
        assert_eq!(peer.start(), secs("32"));
        assert_eq!(peer.answer_after("0.8"), 0);
        assert_eq!(peer.controller.view().carried, None);
        assert_eq!(Some(peer.start()), peer.controller.view().rto);
        assert_eq!(peer.wait.reason, Reason::Initial);

        let mut peer = with(preset, &[("carry", "none")]);
        peer.start();
        peer.answer_after("7");
        assert_eq!(peer.start(), secs("2"));
    }
}

#[test]
fn exchanges_in_parallel_multiply_the_default_until_the_first_sample() {
    for preset in [Preset::LINUX_RTO, Preset::PEAK_HOPPER] {
        let mut controller = preset.build();
        let mut first = |open| {
            let cx = Cx { open, ..Cx::new(Instant::ORIGIN, Chance::HIGHEST) };
            controller.on_start(&mut Default::default(), 40, cx)
        };
        assert_eq!([1, 2, 3, 20].map(|open| first(open).span), ["2", "4", "6", "32"].map(secs));
        assert_eq!(first(2).reason, Reason::Blind);
    }
    let cx = Cx { open: 3, ..Cx::new(Instant::ORIGIN, Chance::HIGHEST) };
    assert_eq!(Preset::BASIC_RTO.build().on_start(&mut Default::default(), 40, cx).span, secs("2"));
}

/// One message in each timeout, however short the messages are.
#[test]
fn messages_without_acknowledgement_are_paced() {
    for preset in [Preset::LINUX_RTO, Preset::PEAK_HOPPER, Preset::BASIC_RTO] {
        let mut controller = preset.build();
        let cx = Cx::new(Instant::ORIGIN, Chance::LOWEST);
        assert_eq!(controller.admit(Class::Plain, 1, cx), Admit::Now);
        controller.on_plain_send(1, cx);
        assert_eq!(controller.admit(Class::Plain, 1, cx), Admit::At(Instant::ORIGIN.after(secs("2"))));
    }
}

#[test]
fn a_separate_response_is_an_answer_and_no_sample() {
    for preset in [Preset::LINUX_RTO, Preset::PEAK_HOPPER, Preset::BASIC_RTO] {
        let mut peer = with(preset, &[]);
        peer.start();
        let cx = peer.cx(Chance::LOWEST, 1);
        let sample = Sample::new(ReplyKind::Separate, secs("1"), secs("1"), 0);
        peer.controller.on_reply(&peer.exchange, sample, cx);
        assert_eq!(peer.controller.view(), preset.build().view());
    }
}

//! Parameters by name: what they change, and what is said about wrong ones.

#![cfg(all(feature = "rfc7252", feature = "cocoa"))]
#![allow(clippy::expect_used, reason = "a test may stop at the first surprise")]

use millpond_control::{
    AnyController, Chance, Cocoa, Controller, Cx, Exchange, Instant, Preset, Rfc7252, Setting, SettingError,
    SettingKind, SettingValue, Span,
    ageing::Ageing,
    backoff::{Basis, Exponential, Factor, Variable},
    carry::Carry,
    cocoa::{self, Blind, Branch},
    dither::Dither,
    estimator::{Gains, Share},
    rfc7252,
};

const MINUTE: Span = Span::from_secs(60);

fn set(mut controller: AnyController, settings: &[(&str, SettingValue<'_>)]) -> AnyController {
    for (name, value) in settings {
        controller.set(name, *value).expect(name);
    }
    controller
}

#[test]
fn every_setting_of_the_default_changes_its_part() {
    let ours = set(
        Preset::Rfc7252.build(),
        &[
            ("ack-timeout", SettingValue::Time(Span::from_secs(4))),
            ("random-factor", SettingValue::Ratio(1_250)),
            ("backoff-factor", SettingValue::Ratio(3_000)),
            ("max-wait", SettingValue::Time(MINUTE)),
            ("carry", SettingValue::Word("full-backoff-2")),
        ],
    );
    let parts = rfc7252::Parts {
        ack_timeout: Span::from_secs(4),
        dither: Dither { factor: Factor::from_thousandths(1_250) },
        backoff: Exponential { factor: Factor::THREE, cap: MINUTE },
        carry: Carry::FullBackoff2,
    };
    assert_eq!(ours, AnyController::Rfc7252(Rfc7252::new(parts)));
}

#[test]
fn every_setting_of_cocoa_changes_its_part() {
    let ours = set(
        Preset::Cocoa03.build(),
        &[
            ("ack-timeout", SettingValue::Time(Span::from_secs(4))),
            ("random-factor", SettingValue::Ratio(1_000)),
            ("max-wait", SettingValue::Time(MINUTE)),
            ("max-estimate", SettingValue::Word("none")),
            ("carry", SettingValue::Word("full-backoff-1")),
            ("gains", SettingValue::Word("swapped")),
            ("strong-k", SettingValue::Count(3)),
            ("strong-share", SettingValue::Word("1")),
            ("weak-k", SettingValue::Count(0)),
            ("weak-share", SettingValue::Word("1/8")),
            ("weak-retransmissions", SettingValue::Count(20)),
            ("vbf", SettingValue::Word("by-estimate")),
            ("vbf-low", SettingValue::Ratio(2_500)),
            ("vbf-middle", SettingValue::Ratio(2_100)),
            ("vbf-high", SettingValue::Ratio(1_300)),
            ("vbf-short", SettingValue::Time(Span::from_millis(500))),
            ("vbf-long", SettingValue::Time(Span::from_secs(8))),
            ("blind", SettingValue::Word("doubling")),
            ("ageing", SettingValue::Word("cocoa+")),
        ],
    );
    let parts = cocoa::Parts {
        ack_timeout: Span::from_secs(4),
        longest_estimate: Span::MAX,
        backoff: Variable {
            short: Span::from_millis(500),
            long: Span::from_secs(8),
            cap: MINUTE,
            low: Factor::from_thousandths(2_500),
            middle: Factor::from_thousandths(2_100),
            high: Factor::from_thousandths(1_300),
            basis: Basis::Estimate,
        },
        dither: Dither::NONE,
        gains: Gains::SWAPPED,
        strong: Branch { k: 3, share: Share::WHOLE },
        weak: Branch { k: 0, share: Share::EIGHTH },
        weak_retransmissions: 20,
        blind: Blind::Doubling,
        ageing: Ageing::CocoaPlus,
        carry: Carry::FullBackoff1,
    };
    assert_eq!(ours, AnyController::Cocoa(Cocoa::new(parts)));
}

/// The presets with Full Backoff are their base with a rule of carry-over (and, over RFC 7252, the cap).
#[test]
fn full_backoff_is_a_setting_away() {
    for (base, preset, word) in [
        (Preset::Rfc7252, Preset::DefaultFb1, "full-backoff-1"),
        (Preset::Rfc7252, Preset::DefaultFb2, "full-backoff-2"),
        (Preset::Cocoa03, Preset::CocoaFb1, "full-backoff-1"),
        (Preset::Cocoa03, Preset::CocoaFb2, "full-backoff-2"),
    ] {
        let mut built = set(base.build(), &[("carry", SettingValue::Word(word))]);
        if base == Preset::Rfc7252 {
            built = set(built, &[("max-wait", SettingValue::Time(MINUTE))]);
        }
        assert_eq!(built, preset.build());
    }
}

#[test]
fn what_was_learnt_stays() {
    let mut cocoa = Preset::Cocoa03.build();
    let cx = Cx::new(Instant::ORIGIN, Chance::LOWEST);
    let mut exchange = Exchange::new();
    cocoa.on_start(&mut exchange, 40, cx);
    let rtt = Span::from_millis(800);
    let sample = millpond_control::Sample::new(millpond_control::ReplyKind::EmptyAck, rtt, rtt, 0);
    cocoa.on_reply(&exchange, sample, cx);
    let before = cocoa.view();
    cocoa.set("ack-timeout", SettingValue::Time(MINUTE)).expect("legal");
    assert_eq!(cocoa.view(), before);
}

/// Every setting that a controller has: its legal ends are accepted, what lies beyond is refused, and a refusal
/// changes nothing.
#[test]
fn ranges_are_enforced_at_both_ends() {
    for preset in Preset::ALL {
        for setting in preset.build().settings() {
            let (legal, beyond) = samples_of(setting.kind());
            for value in legal {
                let mut controller = preset.build();
                assert_eq!(controller.set(setting.name(), value), Ok(()), "{setting} {value:?}");
            }
            for value in beyond {
                let mut controller = preset.build();
                let error = controller.set(setting.name(), value).expect_err(setting.name());
                assert!(
                    matches!(error, SettingError::OutOfRange(_) | SettingError::UnknownWord(_)),
                    "{setting} {value:?}: {error}"
                );
                assert_eq!(controller, preset.build(), "a refusal changes nothing");
            }
        }
    }
}

/// The ends of the legal range, and the nearest values outside it.
fn samples_of(kind: SettingKind) -> (Vec<SettingValue<'static>>, Vec<SettingValue<'static>>) {
    let tick = Span::from_micros(1);
    match kind {
        SettingKind::Time { low, high, none } => {
            let mut legal = vec![SettingValue::Time(low), SettingValue::Time(high)];
            if none {
                legal.push(SettingValue::Word("none"));
            }
            let mut beyond = Vec::new();
            if low > Span::ZERO {
                beyond.push(SettingValue::Time(low.minus(tick)));
            }
            if high < Span::MAX {
                beyond.push(SettingValue::Time(high.plus(tick)));
            }
            (legal, beyond)
        }
        SettingKind::Ratio { low, high } => (
            vec![SettingValue::Ratio(low.into()), SettingValue::Ratio(high.into())],
            vec![
                SettingValue::Ratio(u32::from(low).saturating_sub(1)),
                SettingValue::Ratio(u32::from(high).saturating_add(1)),
                SettingValue::Ratio(u32::MAX),
            ],
        ),
        SettingKind::Count { high } => (
            vec![SettingValue::Count(0), SettingValue::Count(high.into())],
            vec![SettingValue::Count(u32::from(high).saturating_add(1)), SettingValue::Count(u32::MAX)],
        ),
        SettingKind::Word(words) => {
            (words.iter().copied().map(SettingValue::Word).collect(), vec![SettingValue::Word("nonsense")])
        }
        _ => (Vec::new(), Vec::new()),
    }
}

#[test]
fn errors_say_what_is_legal() {
    let mut default = Preset::Rfc7252.build();
    for (name, value, message) in [
        (
            "max-wiat",
            SettingValue::Time(MINUTE),
            "no such setting here; there are ack-timeout, random-factor, backoff-factor, max-wait, carry",
        ),
        (
            "gains",
            SettingValue::Word("swapped"),
            "no such setting here; there are ack-timeout, random-factor, backoff-factor, max-wait, carry",
        ),
        (
            "max-wait",
            SettingValue::Ratio(60_000),
            "max-wait takes a length of time from 0.001 s to 4294.967295 s, or none",
        ),
        (
            "max-wait",
            SettingValue::Word("off"),
            "max-wait takes a length of time from 0.001 s to 4294.967295 s, or none",
        ),
        ("ack-timeout", SettingValue::Word("none"), "ack-timeout takes a length of time from 0.001 s to 600 s"),
        ("random-factor", SettingValue::Ratio(999), "out of range: random-factor takes a ratio from 1 to 10"),
        ("backoff-factor", SettingValue::Ratio(1_000), "out of range: backoff-factor takes a ratio from 1.001 to 10"),
        ("carry", SettingValue::Word("fb1"), "unknown word: carry takes one of none, full-backoff-1, full-backoff-2"),
    ] {
        let error = default.set(name, value).expect_err(name);
        assert_eq!(error.to_string(), message);
    }
    let mut cocoa = Preset::Cocoa03.build();
    let error = cocoa.set("weak-k", SettingValue::Count(17)).expect_err("too many");
    assert_eq!(error.to_string(), "out of range: weak-k takes a whole number from 0 to 16");
    assert!(matches!(cocoa.set("backoff-factor", SettingValue::Ratio(2_000)), Err(SettingError::Unknown { .. })));
}

#[test]
fn settings_are_found_by_their_names() {
    for setting in Setting::ALL {
        assert_eq!(Setting::from_name(setting.name()), Some(*setting));
        let owners = Preset::ALL.iter().filter(|preset| preset.build().settings().contains(setting)).count();
        assert!(owners > 0, "{setting} belongs to no controller");
    }
    assert_eq!(Setting::from_name("Max-Wait"), None);
}

//! What can be expressed of settings, and which values are legal.

use millpond_control::{
    Chance, Controller, Cx, Exchange, Instant, Preset, Setting, SettingError, SettingKind, SettingValue, Span,
};

use crate::set;

const MINUTE: Span = Span::from_secs(60);

/// What is put is what is got, and what is got builds the same controller again.
#[test]
fn every_value_in_force_can_be_told() {
    for preset in Preset::all() {
        let (built, mut again) = (preset.build(), preset.build());
        for setting in built.settings() {
            let (legal, _) = samples_of(setting.kind());
            for value in legal {
                let mut controller = built;
                controller.put(*setting, value).expect("legal");
                let same = controller.get(*setting).expect("legal");
                assert!(same == value || same == SettingValue::Word("none"), "{preset:?}: {setting}, {same:?}");
                controller.put(*setting, built.get(*setting).expect("legal")).expect("legal");
                assert_eq!(controller, built, "{preset:?}: {setting}");
            }
            again.put(*setting, built.get(*setting).expect("legal")).expect("legal");
        }
        assert_eq!(again, built);
        let others = Setting::ALL.iter().filter(|setting| !built.settings().contains(setting));
        for other in others {
            assert_eq!(built.get(*other), None, "{preset:?} has no {other}");
        }
    }
    assert_eq!(Preset::COCOA_PLUS.build().get(Setting::MaxWait), Some(SettingValue::Word("none")));
    assert_eq!(Preset::COCOA_PLUS.build().get(Setting::VbfHigh), Some(SettingValue::Ratio(1_300)));
    assert_eq!(Preset::COCOA_WEAK_ALL.build().get(Setting::Gains), Some(SettingValue::Word("swapped")));
}

/// Callers without strings reach the same by numbers.
#[test]
fn numbers_stand_for_values() {
    for preset in Preset::all() {
        for setting in preset.build().settings() {
            let (low, high) = setting.range();
            let (legal, _) = samples_of(setting.kind());
            for number in [low, high] {
                let mut controller = preset.build();
                assert_eq!(controller.put_number(*setting, number), Ok(()), "{setting} {number}");
                assert_eq!(controller.get_number(*setting), Some(number), "{setting}");
                let value = controller.get(*setting).expect("a value");
                assert!(legal.contains(&value), "{setting}: {number} is {value:?}");
                let mut by_value = preset.build();
                by_value.put(*setting, value).expect("legal");
                assert_eq!(by_value, controller);
            }
            for beyond in low.checked_sub(1).into_iter().chain(high.checked_add(1)) {
                let mut controller = preset.build();
                assert_eq!(controller.put_number(*setting, beyond), Err(SettingError::OutOfRange(*setting)));
                assert_eq!(controller, preset.build(), "a refusal changes nothing");
            }
        }
    }
    let mut default = Preset::RFC7252.build();
    assert!(matches!(default.put_number(Setting::Gains, 0), Err(SettingError::Unknown { .. })));
    assert_eq!(default.get_number(Setting::Gains), None);
}

#[test]
fn what_is_published_goes_together() {
    for preset in Preset::all() {
        assert_eq!(preset.build().check(), Ok(()), "{preset:?}");
    }
}

#[test]
fn contradictions_name_both_settings() {
    let time = |seconds| SettingValue::Time(Span::from_secs(seconds));
    for (preset, settings, message) in [
        (Preset::RFC7252, vec![("max-wait", time(1))], "ack-timeout must not be above max-wait"),
        (Preset::COCOA_03, vec![("max-wait", time(1))], "ack-timeout must not be above max-wait"),
        (Preset::COCOA_03, vec![("max-estimate", time(1))], "ack-timeout must not be above max-estimate"),
        (Preset::COCOA_03, vec![("vbf-short", time(4))], "vbf-short must not be above vbf-long"),
        (
            Preset::COCOA_03,
            vec![("learns-from", SettingValue::Word("echo"))],
            "weak-retransmissions as it is set needs learns-from = copies",
        ),
        (Preset::FASOR, vec![("ack-timeout", time(61))], "ack-timeout must not be above max-wait"),
        (Preset::FASOR, vec![("max-slow", time(1))], "ack-timeout must not be above max-slow"),
        (
            Preset::FASOR,
            vec![("echo", SettingValue::Word("exact-only"))],
            "echo as it is set needs naming = token or count",
        ),
        (Preset::LINUX_RTO, vec![("ack-timeout", time(33))], "ack-timeout must not be above max-estimate"),
        (Preset::BASIC_RTO, vec![("max-wait", time(1))], "ack-timeout must not be above max-wait"),
        (
            Preset::PEAK_HOPPER,
            vec![("order", SettingValue::Word("original"))],
            "order as it is set needs previous = first-sample",
        ),
        (
            Preset::PEAK_HOPPER,
            vec![("first-bonus", SettingValue::Ratio(1))],
            "first-bonus as it is set needs order = original",
        ),
    ] {
        let conflict = set(preset.build(), &settings).check().expect_err(message);
        assert_eq!(conflict.to_string(), message);
    }
    let both = [("learns-from", SettingValue::Word("echo")), ("weak-retransmissions", SettingValue::Count(0))];
    assert_eq!(set(Preset::COCOA_03.build(), &both).check(), Ok(()));
}

/// The presets with Full Backoff are their base with a rule of carry-over (and, over RFC 7252, the cap).
#[test]
fn full_backoff_is_a_setting_away() {
    for (base, preset, word) in [
        (Preset::RFC7252, Preset::DEFAULT_FB1, "full-backoff-1"),
        (Preset::RFC7252, Preset::DEFAULT_FB2, "full-backoff-2"),
        (Preset::COCOA_03, Preset::COCOA_FB1, "full-backoff-1"),
        (Preset::COCOA_03, Preset::COCOA_FB2, "full-backoff-2"),
    ] {
        let mut built = set(base.build(), &[("carry", SettingValue::Word(word))]);
        if base == Preset::RFC7252 {
            built = set(built, &[("max-wait", SettingValue::Time(MINUTE))]);
        }
        assert_eq!(built, preset.build());
    }
}

#[test]
fn what_was_learnt_stays() {
    let mut cocoa = Preset::COCOA_03.build();
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
    for preset in Preset::all() {
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
            u32::from(low)
                .checked_sub(1)
                .into_iter()
                .chain([u32::from(high).saturating_add(1), u32::MAX])
                .map(SettingValue::Ratio)
                .collect(),
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
    let mut default = Preset::RFC7252.build();
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
    let mut cocoa = Preset::COCOA_03.build();
    let error = cocoa.set("weak-k", SettingValue::Count(17)).expect_err("too many");
    assert_eq!(error.to_string(), "out of range: weak-k takes a whole number from 0 to 16");
    assert!(matches!(cocoa.set("backoff-factor", SettingValue::Ratio(2_000)), Err(SettingError::Unknown { .. })));
}

#[test]
fn settings_are_found_by_number_and_in_their_controllers_by_name() {
    for setting in Setting::ALL {
        assert_eq!(Setting::from_id(setting.id()), Some(*setting));
        let owners = Preset::all().filter(|preset| preset.build().settings().contains(setting)).count();
        assert!(owners > 0, "{setting} belongs to no controller");
    }
    assert_eq!(Setting::from_id(0), None);
    for preset in Preset::all() {
        let controller = preset.build();
        for setting in controller.settings() {
            assert_eq!(controller.setting(setting.name()), Some(*setting), "{preset:?}: {setting}");
        }
        assert_eq!(controller.setting("Max-Wait"), None);
    }
}

//! With one round-trip time, always, every algorithm ends where its formula says.

use millpond_control::{
    AnyController, Chance, Checked, Controller, Cx, Exchange, Instant, Preset, ReplyKind, Sample, Setting,
    SettingValue, Span,
};

/// A clean exchange of this round-trip time.
fn exchange(controller: &mut Checked<AnyController>, now: &mut Instant, rtt: Span) {
    let mut exchange = Exchange::new();
    let wait = controller.on_start(&mut exchange, 40, Cx::new(*now, Chance::LOWEST));
    assert!(wait.span > rtt, "{} cut an exchange of {rtt} short", wait.span);
    *now = now.after(rtt);
    let sample = Sample::new(ReplyKind::EmptyAck, rtt, rtt, 0);
    controller.on_reply(&exchange, sample, Cx::new(*now, Chance::LOWEST));
}

/// Where the timeout of a preset ends, and how far rounding may keep it from there.
fn limit(preset: Preset, rtt: Span) -> Option<(Span, Span)> {
    /// Four times what RTTVAR may be off, what SRTT may be off, and half a microsecond for each average beside.
    const ROUNDING: Span = Span::from_micros(4 * 6 + 4 + 2);
    let name = preset.name();
    Some(match name {
        "rfc7252" | "default-fb1" | "default-fb2" => return None,
        // From what nobody acknowledges alone: `vectors/tfrc_non.rs`.
        "tfrc-non" => return None,
        // RTTVAR ends at its floor of 50 ms.
        "linux-rto" => (rtt.plus(Span::from_millis(4 * 50)), ROUNDING),
        // The bonus is gone, and the floor stands 100 ms above the larger sample.
        "peak-hopper" => (rtt.plus(Span::from_millis(100)), Span::ZERO),
        "basic-rto" => (rtt.scaled(3, 2), Span::ZERO),
        "bbr-con" => (rtt.max(Span::from_secs(1)), ROUNDING),
        // A fixed timer beside the estimate.
        // The larger of the least margin and a tenth of the sample.
        "calm" | "calm-unlimited" => (rtt.plus(Span::from_millis(20)).max(rtt.scaled(11, 10)), ROUNDING),
        _ if name.starts_with("coap-plus-rate") => (Span::from_secs(2), Span::ZERO),
        _ if name.starts_with("cocoa") || name.starts_with("fasor") => (rtt, ROUNDING),
        _ => panic!("{name}: where does its timeout end?"),
    })
}

#[test]
fn a_constant_round_trip_time_converges() {
    for rtt in [Span::from_micros(1), Span::from_micros(777), Span::from_millis(500), Span::from_millis(1_999)] {
        for preset in Preset::all() {
            let (mut controller, mut now) = (Checked::new(preset.build()), Instant::ORIGIN);
            for _ in 0..400 {
                exchange(&mut controller, &mut now, rtt);
            }
            assert_eq!(controller.violation(), None);
            let view = controller.view();
            let Some((rto, rounding)) = limit(preset, rtt) else {
                assert_eq!(view, preset.build().view(), "{preset:?} learns nothing");
                continue;
            };
            let ours = view.rto.unwrap();
            assert!(ours.distance(rto) <= rounding, "{preset:?}: {ours}, not {rto}, for {rtt}");
            assert!(view.srtt.is_none_or(|srtt| srtt.distance(rtt) <= Span::from_micros(4)), "{preset:?}: {view:?}");
        }
    }
}

/// What is answered at once leaves no backoff behind, whatever came before.
#[test]
fn only_what_is_told_to_carries_and_clean_answers_end_it() {
    for preset in Preset::all() {
        let (mut controller, mut now) = (Checked::new(preset.build()), Instant::ORIGIN);
        let mut record = Exchange::new();
        for _ in 0..5 {
            let cx = Cx::new(now, Chance::MIDDLE);
            let wait = if record == Exchange::new() {
                controller.on_start(&mut record, 40, cx)
            } else {
                controller.on_timeout(&mut record, cx)
            };
            now = now.after(wait.span);
        }
        let sample = Sample::new(ReplyKind::EmptyAck, now.since(record.started()), Span::ZERO, 4);
        controller.on_reply(&record, sample, Cx::new(now, Chance::MIDDLE));

        let told = |setting| controller.inner().get(setting).is_some_and(|word| word != SettingValue::Word("none"));
        let carries = told(Setting::Carry) || told(Setting::TimerCarry) || preset.family() == "calm";
        assert_eq!(controller.view().carried.is_some(), carries, "{preset:?}");
        // From the longest wait there is, halving takes at most 32 clean answers.
        for _ in 0..32 {
            exchange(&mut controller, &mut now, Span::from_millis(100));
        }
        assert_eq!(controller.view().carried, None, "{preset:?}");
        assert_eq!(controller.violation(), None);
    }
}

//! Every setting of every algorithm changes its part.

use millpond_control::{
    AnyController, BasicRto, BbrCon, Calm, CoapPlusRate, Cocoa, Fasor, LinuxRto, Naming, PeakHopper, Preset, Rfc7252,
    SettingValue, Span, TfrcNon,
    ageing::Ageing,
    backoff::{Basis, Exponential, Factor, Variable},
    basic_rto::Basic,
    bbr_con,
    blind::Blind,
    calm::{self, Without},
    carry::Carry,
    coap_plus_rate::{
        self, EndsBackoff, FirstRtt, InBackoff, Increase, Leftover, LossSignal, Slowest, Smoothing, StartCount,
        StartRate, Timer, Window,
    },
    cocoa::{self, Branch, LearnsFrom},
    dither::Dither,
    estimator::{Gains, Share},
    fasor::{self, Echo, GivingUp, Init, Spread},
    frame::{Frame, Keep},
    linux_rto::{self, Linux},
    peak_hopper::{self, Hopper, Previous},
    rfc7252, tfrc_non,
};

use crate::set;

const MINUTE: Span = Span::from_secs(60);

#[test]
fn every_setting_of_the_default_changes_its_part() {
    let ours = set(
        Preset::RFC7252.build(),
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
        Preset::COCOA_03.build(),
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
            ("learns-from", SettingValue::Word("number")),
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
        learns_from: LearnsFrom::Number,
        weak_retransmissions: 20,
        blind: Blind::Doubling,
        ageing: Ageing::CocoaPlus,
        carry: Carry::FullBackoff1,
    };
    assert_eq!(ours, AnyController::Cocoa(Cocoa::new(parts)));
}

#[test]
fn every_setting_of_fasor_changes_its_part() {
    let ours = set(
        Preset::FASOR.build(),
        &[
            ("ack-timeout", SettingValue::Time(Span::from_secs(4))),
            ("max-wait", SettingValue::Word("none")),
            ("max-slow", SettingValue::Time(MINUTE)),
            ("slow-factor", SettingValue::Ratio(2_000)),
            ("fasor-init", SettingValue::Word("pseudocode")),
            ("dither", SettingValue::Word("none")),
            ("give-up", SettingValue::Word("keep")),
            ("naming", SettingValue::Word("count")),
            ("echo", SettingValue::Word("exact-only")),
        ],
    );
    let parts = fasor::Parts {
        ack_timeout: Span::from_secs(4),
        backoff: Exponential { factor: Factor::TWO, cap: Span::MAX },
        longest_slow: MINUTE,
        slow_factor: Factor::TWO,
        init: Init::PseudoCode,
        spread: Spread::Nothing,
        giving_up: GivingUp::ChangesNothing,
        naming: Naming::Count,
        echo: Echo::ExactOnly,
    };
    assert_eq!(ours, AnyController::Fasor(Fasor::new(parts)));
}

#[test]
fn every_setting_of_the_rate_of_coap_plus_changes_its_part() {
    let ours = set(
        Preset::COAP_PLUS_RATE.build(),
        &[
            ("ack-timeout", SettingValue::Time(Span::from_secs(4))),
            ("random-factor", SettingValue::Ratio(1_250)),
            ("alpha", SettingValue::Ratio(3_000)),
            ("restart-after", SettingValue::Time(Span::from_secs(247))),
            ("loss-signal", SettingValue::Word("first-timeout")),
            ("start-rate", SettingValue::Word("1-per-second")),
            ("first-rtt", SettingValue::Word("default")),
            ("smoothing", SettingValue::Word("last")),
            ("leftover", SettingValue::Word("dropped")),
            ("window", SettingValue::Word("alpha-t-lambda")),
            ("start-count", SettingValue::Word("1-rtt")),
            ("increase", SettingValue::Word("per-ack")),
            ("slowest", SettingValue::Word("1-per-timeout")),
            ("in-backoff", SettingValue::Word("paced")),
            ("timer", SettingValue::Word("rfc6298")),
            ("ends-backoff", SettingValue::Word("clean-answer")),
        ],
    );
    let parts = coap_plus_rate::Parts {
        ack_timeout: Span::from_secs(4),
        dither: Dither { factor: Factor::from_thousandths(1_250) },
        alpha: 3_000,
        restart_after: Span::from_secs(247),
        loss_signal: LossSignal::FirstTimeout,
        start_rate: StartRate::OnePerSecond,
        first_rtt: FirstRtt::Default,
        smoothing: Smoothing::Last,
        leftover: Leftover::Dropped,
        window: Window::AlphaTLambda,
        start_count: StartCount::OneRtt,
        increase: Increase::PerAck,
        slowest: Slowest::PerTimeout,
        in_backoff: InBackoff::Paced,
        timer: Timer::Rfc6298,
        ends_backoff: EndsBackoff::CleanAnswer,
    };
    assert_eq!(ours, AnyController::CoapPlusRate(CoapPlusRate::new(parts)));
}

#[test]
fn every_setting_of_bbr_changes_its_part() {
    let ours = set(
        Preset::BBR_CON.build(),
        &[
            ("ack-timeout", SettingValue::Time(Span::from_secs(4))),
            ("random-factor", SettingValue::Ratio(1_250)),
            ("max-wait", SettingValue::Time(Span::from_secs(90))),
        ],
    );
    let parts = bbr_con::Parts {
        ack_timeout: Span::from_secs(4),
        dither: Dither { factor: Factor::from_thousandths(1_250) },
        backoff: Exponential { factor: Factor::TWO, cap: Span::from_secs(90) },
    };
    assert_eq!(ours, AnyController::BbrCon(BbrCon::new(parts)));
}

#[test]
fn every_setting_of_tfrc_changes_its_part() {
    let ours = set(Preset::TFRC_NON.build(), &[("initial-window", SettingValue::Count(2))]);
    let parts = tfrc_non::Parts { initial_window: 2 };
    assert_eq!(ours, AnyController::TfrcNon(TfrcNon::new(parts)));
}

#[test]
fn every_setting_of_calm_changes_its_part() {
    let ours = set(
        Preset::CALM.build(),
        &[
            ("ack-timeout", SettingValue::Time(Span::from_secs(4))),
            ("max-wait", SettingValue::Word("none")),
            ("patience", SettingValue::Time(Span::from_secs(3))),
            ("least-wait", SettingValue::Time(Span::from_millis(7))),
            ("without", SettingValue::Word("grades")),
        ],
    );
    let parts = calm::Parts {
        ack_timeout: Span::from_secs(4),
        max_wait: Span::MAX,
        patience: Span::from_secs(3),
        least_wait: Span::from_millis(7),
        without: Without::Grades,
    };
    assert_eq!(ours, AnyController::Calm(Calm::new(parts)));
}

#[test]
fn a_rate_that_nothing_is_left_of_is_refused() {
    let mut rate = Preset::COAP_PLUS_RATE.build();
    let error = rate.set("alpha", SettingValue::Ratio(0)).expect_err("no rate");
    assert_eq!(error.to_string(), "out of range: alpha takes a ratio from 0.001 to 10");
}

#[test]
fn every_setting_of_the_timers_of_tcp_changes_its_part() {
    const FRAME: &[(&str, SettingValue<'_>)] = &[
        ("ack-timeout", SettingValue::Time(Span::from_secs(4))),
        ("random-factor", SettingValue::Ratio(1_500)),
        ("backoff-factor", SettingValue::Ratio(3_000)),
        ("max-wait", SettingValue::Word("none")),
        ("max-estimate", SettingValue::Time(MINUTE)),
        ("carry", SettingValue::Word("none")),
        ("blind", SettingValue::Word("doubling")),
    ];
    let frame = Frame {
        ack_timeout: Span::from_secs(4),
        longest_estimate: MINUTE,
        backoff: Exponential { factor: Factor::THREE, cap: Span::MAX },
        dither: Dither::RFC7252,
        blind: Blind::Doubling,
        keep: Keep::Nothing,
    };
    let framed = |preset: Preset, own: &[(&str, SettingValue<'_>)]| set(set(preset.build(), FRAME), own);

    let mut linux = Linux::KERNEL;
    (linux.least_variation, linux.order) = (Span::ZERO, linux_rto::Order::Californium);
    let own = [("least-variation", SettingValue::Time(Span::ZERO)), ("order", SettingValue::Word("californium"))];
    assert_eq!(framed(Preset::LINUX_RTO, &own), AnyController::LinuxRto(LinuxRto::new((frame, linux))));

    let mut hopper = Hopper::CALIFORNIUM_1;
    (hopper.order, hopper.before_first, hopper.first_bonus) =
        (peak_hopper::Order::Original, Previous::FirstSample, 750);
    let own = [
        ("order", SettingValue::Word("original")),
        ("previous", SettingValue::Word("first-sample")),
        ("first-bonus", SettingValue::Ratio(750)),
    ];
    assert_eq!(framed(Preset::PEAK_HOPPER, &own), AnyController::PeakHopper(PeakHopper::new((frame, hopper))));

    let mut basic = Basic::CALIFORNIUM_4;
    basic.most_retransmissions = 0;
    let own = [("weak-retransmissions", SettingValue::Count(0))];
    let kept = set(framed(Preset::BASIC_RTO, &own), &[("carry", SettingValue::Word("until-clean"))]);
    let frame = Frame { keep: Keep::UntilClean, ..frame };
    assert_eq!(kept, AnyController::BasicRto(BasicRto::new((frame, basic))));
}

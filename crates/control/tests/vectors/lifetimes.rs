//! The times that RFC 7252 §4.8.2 derives, from sums of waits.

use crate::{Peer, secs};
use millpond_control::{Cocoa, Controller, Preset, SettingValue, Span, cocoa};

/// MAX_TRANSMIT_SPAN (first copy to last) and MAX_TRANSMIT_WAIT (first copy to giving up) in microseconds.
fn derived(controller: &dyn Controller, max_retransmit: u8) -> (u64, u64) {
    let mut previous = Span::ZERO;
    let (mut span, mut wait) = (0, 0);
    for copy in 0..=max_retransmit {
        span = wait;
        previous = controller.longest_wait(copy, previous);
        wait += u64::from(previous.as_micros());
    }
    (span, wait)
}

const fn micros(seconds: u64) -> u64 {
    seconds * 1_000_000
}

#[test]
fn worst_case_of_the_default() {
    let controller = Preset::RFC7252.build();
    assert_eq!(derived(&controller, 4), (micros(45), micros(93)));
}

#[test]
fn worst_case_of_the_default_with_a_cap() {
    let mut controller = Preset::RFC7252.build();
    controller.set("max-wait", SettingValue::Time(secs("60"))).expect("legal");
    assert_eq!(derived(&controller, 20), (micros(993), micros(1_053)));
}

#[test]
fn worst_case_of_cocoa() {
    let controller = Preset::COCOA_03.build();
    assert_eq!(derived(&controller, 20), (micros(960), micros(1_008)));
    assert_eq!(derived(&controller, 4), (micros(192), micros(240)));
}

/// With Full Backoff a first wait can already be at the cap.
#[test]
fn worst_case_of_full_backoff() {
    for preset in [Preset::DEFAULT_FB1, Preset::DEFAULT_FB2] {
        assert_eq!(derived(&preset.build(), 4), (micros(240), micros(300)));
    }
    for preset in [Preset::COCOA_FB1, Preset::COCOA_FB2] {
        assert_eq!(derived(&preset.build(), 4), (micros(192), micros(240)));
    }
}

/// No cap and many copies: a wait ends at the longest length there is, and so does its share in the sums.
#[test]
fn without_a_cap_waits_end_at_the_longest_span() {
    let controller = Preset::RFC7252.build();
    // 3 s · (2^11 − 1), then nine saturated waits up to the last copy.
    let (span, wait) = derived(&controller, 20);
    assert_eq!(span, micros(3 * 2_047) + 9 * u64::from(Span::MAX.as_micros()));
    assert_eq!(wait, span + u64::from(Span::MAX.as_micros()));
}

/// Sums of the waits that are really armed, from a given first one.
#[test]
fn sums_from_a_given_first_wait() {
    let default = |first: &str| {
        let mut controller = Preset::RFC7252.build();
        controller.set("max-wait", SettingValue::Time(secs("60"))).expect("legal");
        controller.set("ack-timeout", SettingValue::Time(secs(first))).expect("legal");
        sums(Peer::new(controller))
    };
    assert_eq!(default("3"), (micros(993), micros(1_053)));
    assert_eq!(default("2.5"), (977_500_000, 1_037_500_000));
    assert_eq!(default("2"), (micros(962), micros(1_022)));

    let cocoa =
        |first: &str| sums(Peer::new(Cocoa::new(cocoa::Parts { ack_timeout: secs(first), ..cocoa::Parts::DRAFT_03 })));
    assert_eq!(cocoa("3"), (530_125_000, 562_125_000));
    assert_eq!(cocoa("2.5"), (516_437_500, 548_437_500));
    assert_eq!(cocoa("2"), (501_125_000, 533_125_000));
}

/// Span and wait of one unanswered exchange with 20 retransmissions, in microseconds.
fn sums<C: Controller>(mut peer: Peer<C>) -> (u64, u64) {
    let waits = peer.series(millpond_control::Chance::LOWEST, 21);
    let total: u64 = waits.iter().map(|wait| u64::from(wait.as_micros())).sum();
    (total - u64::from(waits[20].as_micros()), total)
}

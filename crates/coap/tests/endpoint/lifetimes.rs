//! The times derived from the transmission parameters (RFC 7252 §4.8.2), for the waits that controllers really arm.

use millpond_coap::{Lifetimes, Transmission};
use millpond_control::{AnyController, Preset, SettingValue, Span};

const TWENTY: Transmission = Transmission { max_retransmit: 20, ..Transmission::RFC7252 };

fn seconds(controller: &AnyController, transmission: &Transmission) -> [f64; 4] {
    let Lifetimes { transmit_span, transmit_wait, exchange, non } = Lifetimes::of(controller, transmission);
    [transmit_span, transmit_wait, exchange, non].map(|micros| micros as f64 / 1e6)
}

#[test]
fn the_default_timer_has_those_of_the_rfc() {
    assert_eq!(seconds(&Preset::RFC7252.build(), &Transmission::RFC7252), [45.0, 93.0, 247.0, 145.0]);
}

#[test]
fn the_default_timer_with_a_cap() {
    let mut controller = Preset::RFC7252.build();
    controller.set("max-wait", SettingValue::Time(Span::from_secs(60))).unwrap();
    assert_eq!(seconds(&controller, &TWENTY), [993.0, 1053.0, 1195.0, 1093.0]);
}

/// The largest first wait is 48 s, the 32 s limit of the estimate dithered by 1.5, even with four retransmissions.
#[test]
fn cocoa_outlives_the_defaults() {
    let cocoa = Preset::COCOA_03.build();
    assert_eq!(seconds(&cocoa, &TWENTY), [960.0, 1008.0, 1162.0, 1060.0]);
    assert_eq!(seconds(&cocoa, &Transmission::RFC7252), [192.0, 240.0, 394.0, 292.0]);
}

/// draft-ietf-core-cocoa-03 from a first wait of 3 s: twice, then 1.5 times, up to 32 s.
#[test]
fn waits_can_be_given() {
    let waits = [3_000_000, 6_000_000, 9_000_000, 13_500_000, 20_250_000, 30_375_000];
    let waits = waits.into_iter().chain([32_000_000; 15]);
    let expected =
        Lifetimes { transmit_span: 530_125_000, transmit_wait: 562_125_000, exchange: 732_125_000, non: 630_125_000 };
    assert_eq!(Lifetimes::of_waits(waits, &TWENTY), expected);
}

/// Waits are 32 bits of microseconds wide, so a doubling timer without a cap stops doubling at 4294.967295 s.
#[test]
fn without_a_cap_waits_end_at_what_a_span_can_hold() {
    let lifetimes = Lifetimes::of(&Preset::RFC7252.build(), &TWENTY);
    let longest = u64::from(Span::MAX.as_micros());
    let doubling: u64 = (0..11).map(|copy| 3_000_000_u64 << copy).sum();
    assert_eq!(lifetimes.transmit_wait, doubling + 10 * longest);
    assert_eq!(lifetimes.exchange, lifetimes.transmit_wait, "the last wait exceeds the longest round trip");
}

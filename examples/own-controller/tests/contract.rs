//! The rules by themselves, without Python.

#[path = "../src/patient.rs"]
mod patient;

use millpond_control::{Chance, Checked, Controller, Cx, End, Exchange, Instant, ReplyKind, Sample, Span};

use patient::Patient;

fn at(seconds: u32) -> Cx {
    Cx::new(Instant::ORIGIN.after(Span::from_secs(seconds)), Chance::LOWEST)
}

/// `Checked` watches both sides of the contract: what the caller does, and what the controller answers.
#[test]
fn it_keeps_the_contract() {
    let mut watched = Checked::new(Patient::new(4));
    for (begun, lost) in [(0, 0), (10, 3), (200, 9), (2_000, 1)] {
        let (mut exchange, mut now) = (Exchange::new(), begun);
        let mut wait = watched.on_start(&mut exchange, 40, at(now));
        for _ in 0..lost {
            now += wait.span.as_micros().div_ceil(1_000_000);
            wait = watched.on_timeout(&mut exchange, at(now));
        }
        let rtt = Span::from_millis(700);
        let since_first = at(now).now.since(exchange.started()).plus(rtt);
        let sample = Sample::new(ReplyKind::Piggybacked, since_first, rtt, lost);
        watched.on_reply(&exchange, sample, at(now + 1));
    }
    let mut exchange = Exchange::new();
    watched.on_start(&mut exchange, 40, at(3_000));
    watched.on_end(&exchange, End::Reset, at(3_001));
    assert_eq!(watched.violation(), None);
}

#[test]
fn it_learns_from_certain_times_alone() {
    let mut patient = Patient::new(4);
    let mut exchange = Exchange::new();
    patient.on_start(&mut exchange, 40, at(0));
    patient.on_reply(&exchange, Sample::new(ReplyKind::Piggybacked, Span::from_secs(9), Span::from_secs(1), 1), at(9));
    assert_eq!(patient.view().rto, Some(Span::from_secs(3)));
    patient.on_reply(&exchange, Sample::new(ReplyKind::Piggybacked, Span::from_secs(2), Span::from_secs(2), 0), at(9));
    assert_eq!(patient.view().rto, Some(Span::from_secs(8)));
}

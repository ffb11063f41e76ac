//! A custom controller: waits three seconds at first, then four times the last certain round-trip time.

use millpond_control::{Controller, Cx, Exchange, Reason, Sample, Span, View, Wait};

/// What is known about one peer. Endpoints make a copy for each.
#[derive(Clone, Debug)]
pub(crate) struct Patient {
    /// Where first waits are drawn from: once to one and a half times this.
    base: Span,
    /// Round-trip times that the base is made of.
    times: u32,
    measured: bool,
}

/// No backed-off wait is longer (RFC 8961 §4 allows any cap from 60 s).
const CAP: Span = Span::from_secs(60);
/// No first wait is shorter (RFC 8961 §4).
const FLOOR: Span = Span::from_secs(1);
/// The base before any measurement.
const BLIND: Span = Span::from_secs(3);

impl Patient {
    /// A controller that waits `times` round-trip times.
    #[must_use]
    pub(crate) fn new(times: u32) -> Self {
        Self { base: BLIND, times, measured: false }
    }
}

impl Controller for Patient {
    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        let wait = cx.chance.between(self.base, self.base.scaled(3, 2));
        // The record is told every wait that is answered.
        exchange.begin(cx.now, wait);
        Wait::then_retransmit(wait, if self.measured { Reason::Initial } else { Reason::Blind })
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        // A first wait above the cap stays as it is.
        let wait = exchange.current().doubled().min(CAP.max(exchange.current()));
        exchange.advance(wait);
        Wait::then_retransmit(wait, Reason::BackedOff)
    }

    fn on_reply(&mut self, _exchange: &Exchange, sample: Sample, _cx: Cx) {
        // Only a certain round-trip time has this type: Karn's rule cannot be forgotten.
        if let Some(rtt) = sample.exact() {
            self.base = rtt.span().scaled(self.times, 1).max(FLOOR);
            self.measured = true;
        }
    }

    fn view(&self) -> View {
        View { rto: Some(self.base), ..View::default() }
    }

    fn shortest_wait(&self) -> Span {
        FLOOR
    }

    fn longest_wait(&self, _copy: u8, _previous: Span) -> Span {
        // A round-trip time can be as long as can be expressed.
        Span::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_control::{Chance, Checked, End, Instant, ReplyKind};

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
        patient.on_reply(
            &exchange,
            Sample::new(ReplyKind::Piggybacked, Span::from_secs(9), Span::from_secs(1), 1),
            at(9),
        );
        assert_eq!(patient.view().rto, Some(BLIND));
        patient.on_reply(
            &exchange,
            Sample::new(ReplyKind::Piggybacked, Span::from_secs(2), Span::from_secs(2), 0),
            at(9),
        );
        assert_eq!(patient.view().rto, Some(Span::from_secs(8)));
    }
}

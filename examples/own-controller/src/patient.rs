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

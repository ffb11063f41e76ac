//! Waits that are no shorter than a least one, whatever their controller says.
//!
//! An estimator knows how long the path takes when a peer answers at once. A server may also take its time before it
//! acknowledges (RFC 7252 §5.2.2), and nothing in a fast answer tells so. On a path of a millisecond all copies would be
//! sent, and the message given up, before such an acknowledgement leaves. TCP has the same trouble with delayed
//! acknowledgements and the same cure: a least timeout, of 200 ms on Linux.

use crate::{Exchange, Span, Wait};

#[cfg(feature = "alloc")]
pub use wrapper::not_below;

/// No wait of `calm` is shorter than this, nor one of another preset in the live stack: 200 ms, as Linux has for TCP.
pub const LEAST_WAIT: Span = Span::from_millis(200);

/// After [`on_start`](crate::Controller::on_start) or [`on_timeout`](crate::Controller::on_timeout): the wait that they armed, with
/// at least this wait, and the exchange told so.
pub const fn at_least(least: Span, exchange: &mut Exchange, wait: Wait) -> Wait {
    if wait.span.as_micros() >= least.as_micros() {
        return wait;
    }
    exchange.lengthen(least);
    Wait { span: least, ..wait }
}

/// The same for a controller of a peer, whatever calls it.
#[cfg(feature = "alloc")]
mod wrapper {
    use crate::{
        Admit, AnyController, Class, Controller, Cx, End, Exchange, Feedback, PeerController, Sample, Setting, Span,
        View, Wait, Wishes,
    };

    /// A controller none of whose waits is shorter than the least.
    #[derive(Clone, Debug)]
    struct NotBelow {
        inner: AnyController,
        least: Span,
    }

    /// The controller, with this least wait in place of one of its own if it has such a parameter; else if it can have a shorter one.
    #[must_use]
    pub fn not_below(mut inner: AnyController, least: Span) -> PeerController {
        let is_set = inner.put_number(Setting::LeastWait, least.as_micros()).is_ok();
        if is_set || inner.shortest_wait() >= least {
            inner.into()
        } else {
            PeerController::own(NotBelow { inner, least })
        }
    }

    impl Controller for NotBelow {
        fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
            self.inner.admit(class, len, cx)
        }

        fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
            let wait = self.inner.on_start(exchange, len, cx);
            super::at_least(self.least, exchange, wait)
        }

        fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
            let wait = self.inner.on_timeout(exchange, cx);
            super::at_least(self.least, exchange, wait)
        }

        fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
            self.inner.on_reply(exchange, sample, cx);
        }

        fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
            self.inner.on_end(exchange, why, cx);
        }

        fn on_plain_send(&mut self, len: u16, cx: Cx) {
            self.inner.on_plain_send(len, cx);
        }

        fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
            self.inner.on_feedback(feedback, cx);
        }

        fn wishes(&self) -> Wishes {
            self.inner.wishes()
        }

        fn view(&self) -> View {
            self.inner.view()
        }

        fn base_rtt(&self) -> Option<Span> {
            self.inner.base_rtt()
        }

        fn recall(&mut self, base_rtt: Span) {
            self.inner.recall(base_rtt);
        }

        fn shortest_wait(&self) -> Span {
            self.inner.shortest_wait().max(self.least)
        }

        fn longest_wait(&self, copy: u8, previous: Span) -> Span {
            self.inner.longest_wait(copy, previous).max(self.least)
        }
    }
}

#[cfg(all(test, feature = "alloc", feature = "all"))]
mod tests {
    use super::*;
    use crate::{Chance, Checked, Controller, Cx, End, Instant, PeerController, Preset, ReplyKind, Sample};

    /// Fast answers, then silence: every wait is at least the least, and both sides keep the contract.
    #[test]
    fn no_wait_is_shorter_than_the_least_whatever_was_learnt() {
        for preset in Preset::all() {
            let mut controller = Checked::new(not_below(preset.build(), LEAST_WAIT));
            let mut now = Instant::ORIGIN;
            let cx = |now| Cx::new(now, Chance::MIDDLE);
            for _ in 0..20 {
                let mut exchange = Exchange::new();
                let wait = controller.on_start(&mut exchange, 40, cx(now));
                assert!(wait.span >= LEAST_WAIT);
                let rtt = Span::from_millis(1);
                now = now.after(rtt);
                controller.on_reply(&exchange, Sample::new(ReplyKind::Piggybacked, rtt, rtt, 0), cx(now));
            }
            let mut exchange = Exchange::new();
            let mut wait = controller.on_start(&mut exchange, 40, cx(now));
            for _ in 0..4 {
                assert!(wait.span >= LEAST_WAIT, "{preset:?}: {wait:?}");
                now = now.after(wait.span);
                wait = controller.on_timeout(&mut exchange, cx(now));
            }
            controller.on_end(&exchange, End::GaveUp, cx(now));
            assert_eq!(controller.violation(), None, "{preset:?}");
        }
    }

    #[test]
    fn a_controller_that_is_slow_anyway_stays_as_it_is() {
        assert!(matches!(not_below(Preset::RFC7252.build(), LEAST_WAIT), PeerController::Built(_)));
        assert!(matches!(not_below(Preset::FASOR.build(), LEAST_WAIT), PeerController::Own(_)));
    }

    #[test]
    fn one_that_has_a_least_wait_of_its_own_is_set() {
        for least in [Span::from_millis(1), LEAST_WAIT, Span::from_secs(1)] {
            let calm = not_below(Preset::CALM.build(), least);
            assert!(matches!(calm, PeerController::Built(_)));
            assert_eq!(calm.shortest_wait(), least);
        }
    }
}

//! Custom controllers beside the built-in ones.

use alloc::boxed::Box;
use core::fmt::Debug;

use crate::{
    any::AnyController,
    controller::{Admit, Class, Controller, Cx, End, Exchange, View, Wait, Wishes},
    evidence::Sample,
    feedback::Feedback,
    time::Span,
};

/// A custom controller. Every [`Controller`] that can be cloned and shared between threads is one.
pub trait OwnController: Controller + Debug + Send + Sync {
    /// A copy that knows what this one knows; from now on each goes its own way.
    fn fork(&self) -> Box<dyn OwnController>;
}

impl<C: Controller + Clone + Debug + Send + Sync + 'static> OwnController for C {
    fn fork(&self) -> Box<dyn OwnController> {
        Box::new(self.clone())
    }
}

/// The controller of one peer: a built-in one, or one of the user's own behind a pointer.
#[derive(Debug)]
pub enum PeerController {
    /// A built-in one.
    Built(AnyController),
    /// A custom controller.
    Own(Box<dyn OwnController>),
}

impl PeerController {
    /// One of the user's own.
    #[must_use]
    pub fn own(controller: impl OwnController + 'static) -> Self {
        Self::Own(Box::new(controller))
    }
}

impl From<AnyController> for PeerController {
    fn from(controller: AnyController) -> Self {
        Self::Built(controller)
    }
}

impl Clone for PeerController {
    fn clone(&self) -> Self {
        match self {
            Self::Built(controller) => Self::Built(*controller),
            // The box itself would fork into a box around a box.
            Self::Own(controller) => Self::Own((**controller).fork()),
        }
    }
}

/// Calls the same method on whichever controller is inside.
macro_rules! each {
    ($peer:expr, $inner:ident => $call:expr) => {
        match $peer {
            PeerController::Built($inner) => $call,
            PeerController::Own($inner) => $call,
        }
    };
}

impl Controller for PeerController {
    #[inline]
    fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
        each!(self, inner => inner.admit(class, len, cx))
    }

    #[inline]
    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        each!(self, inner => inner.on_start(exchange, len, cx))
    }

    #[inline]
    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        each!(self, inner => inner.on_timeout(exchange, cx))
    }

    #[inline]
    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        each!(self, inner => inner.on_reply(exchange, sample, cx));
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        each!(self, inner => inner.on_end(exchange, why, cx));
    }

    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        each!(self, inner => inner.on_plain_send(len, cx));
    }

    fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
        each!(self, inner => inner.on_feedback(feedback, cx));
    }

    fn wishes(&self) -> Wishes {
        each!(self, inner => inner.wishes())
    }

    fn view(&self) -> View {
        each!(self, inner => inner.view())
    }

    fn base_rtt(&self) -> Option<Span> {
        each!(self, inner => inner.base_rtt())
    }

    fn recall(&mut self, base_rtt: Span) {
        each!(self, inner => inner.recall(base_rtt));
    }

    fn shortest_wait(&self) -> Span {
        each!(self, inner => inner.shortest_wait())
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        each!(self, inner => inner.longest_wait(copy, previous))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Chance, Instant, Reason};

    /// Waits a second longer after every answer.
    #[derive(Clone, Debug)]
    struct Counting(u32);

    impl Controller for Counting {
        fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
            exchange.begin(cx.now, Span::from_secs(self.0));
            Wait::then_retransmit(exchange.current(), Reason::Initial)
        }

        fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
            exchange.advance(exchange.current());
            Wait::then_retransmit(exchange.current(), Reason::BackedOff)
        }

        fn on_reply(&mut self, _exchange: &Exchange, _sample: Sample, _cx: Cx) {
            self.0 = self.0.saturating_add(1);
        }

        fn view(&self) -> View {
            View { rto: Some(Span::from_secs(self.0)), ..View::default() }
        }

        fn longest_wait(&self, _copy: u8, _previous: Span) -> Span {
            Span::MAX
        }
    }

    #[test]
    fn a_copy_goes_its_own_way() {
        let mut one = PeerController::own(Counting(2));
        let other = one.clone();
        let sample = Sample::new(crate::ReplyKind::EmptyAck, Span::ZERO, Span::ZERO, 0);
        one.on_reply(&Exchange::new(), sample, Cx::new(Instant::ORIGIN, Chance::MIDDLE));
        assert_eq!(one.view().rto, Some(Span::from_secs(3)));
        assert_eq!(other.view().rto, Some(Span::from_secs(2)));
    }
}

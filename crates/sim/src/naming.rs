//! A scenario's word on how the copies of a request are named, over the controller's.

use millpond_control::{
    Admit, Class, Controller, Cx, End, Exchange, Feedback, PeerController, Sample, Span, View, Wait, Wishes,
};

use crate::scenario::Naming;

/// A controller that asks for another naming than its own and is otherwise as it was. What replies then name is for it
/// to use or to ignore.
#[derive(Clone, Debug)]
pub(crate) struct Renamed {
    inner: PeerController,
    naming: millpond_control::Naming,
}

impl Renamed {
    pub(crate) fn new(inner: PeerController, naming: Naming) -> Self {
        Self { inner, naming: naming.into() }
    }
}

impl Controller for Renamed {
    fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
        self.inner.admit(class, len, cx)
    }

    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        self.inner.on_start(exchange, len, cx)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        self.inner.on_timeout(exchange, cx)
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
        Wishes { naming: self.naming, ..self.inner.wishes() }
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
        self.inner.shortest_wait()
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        self.inner.longest_wait(copy, previous)
    }
}

//! A controller with wishes.

use millpond_control::{Admit, AnyController, Class, Controller, Cx, End, Exchange, Sample, Span, View, Wait, Wishes};

/// A built-in controller that wishes something of its endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Wishing {
    pub(crate) inner: AnyController,
    pub(crate) wishes: Wishes,
}

impl Controller for Wishing {
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

    fn wishes(&self) -> Wishes {
        self.wishes
    }

    fn view(&self) -> View {
        self.inner.view()
    }

    fn shortest_wait(&self) -> Span {
        self.inner.shortest_wait()
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        self.inner.longest_wait(copy, previous)
    }
}

//! A wrapper that watches both sides of the contract of [`Controller`].

use crate::{
    controller::{Admit, Class, Controller, Cx, End, Exchange, View, Wait, Wishes},
    evidence::Sample,
    feedback::Feedback,
    time::{Instant, Span},
};
use core::fmt;

/// What was wrong with a call or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// The caller's `now` lay before that of the call before.
    TimeWentBack,
    /// The caller named no open exchange, though the call is about one.
    NoneOpen,
    /// The caller started an exchange with a record that was not blank.
    RecordInUse,
    /// The caller went on with, or ended, an exchange that was never started.
    NeverStarted,
    /// The caller ended more exchanges than it started, or one twice and another never.
    EndedTwice,
    /// The controller did not tell the exchange record the wait that it answered.
    RecordNotKept,
    /// The controller answered a wait below its own shortest.
    WaitTooShort,
    /// The controller answered a wait above its own longest.
    WaitTooLong,
    /// The controller deferred a message to a point that does not lie after `now`.
    DeferredToThePast,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimeWentBack => "time went back between two calls",
            Self::NoneOpen => "a call about an exchange with none open",
            Self::RecordInUse => "an exchange was started with a record that was not blank",
            Self::NeverStarted => "an exchange went on that was never started",
            Self::EndedTwice => "an exchange ended twice",
            Self::RecordNotKept => "the exchange record was not told the wait",
            Self::WaitTooShort => "a wait below the controller's own shortest",
            Self::WaitTooLong => "a wait above the controller's own longest",
            Self::DeferredToThePast => "a message was deferred to a point that does not lie ahead",
        })
    }
}

/// A controller under watch. It behaves like the controller inside and remembers the first violation of the contract,
/// by the caller or by the controller. Meant for debug builds and tests; it never panics.
///
/// That every exchange ends exactly once is known for certain whenever none is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked<C> {
    last: Instant,
    /// Exchanges started and not yet ended.
    open: u32,
    /// The sum of the tickets of the open exchanges, spread over 32 bits: zero when none is open.
    tickets: u32,
    next_ticket: u16,
    violation: Option<Violation>,
    inner: C,
}

impl<C: Controller> Checked<C> {
    /// Watches `inner`.
    pub const fn new(inner: C) -> Self {
        Self { last: Instant::ORIGIN, open: 0, tickets: 0, next_ticket: 1, violation: None, inner }
    }

    /// The first violation, if there was any.
    #[must_use]
    pub const fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// The controller inside.
    pub const fn inner(&self) -> &C {
        &self.inner
    }

    /// The controller inside.
    pub fn into_inner(self) -> C {
        self.inner
    }

    fn demand(&mut self, holds: bool, otherwise: Violation) {
        if !holds && self.violation.is_none() {
            self.violation = Some(otherwise);
        }
    }

    /// What every call must satisfy.
    fn enter(&mut self, cx: Cx) {
        self.demand(cx.now >= self.last, Violation::TimeWentBack);
        self.last = cx.now;
    }

    /// What every call about an exchange that goes on or ends must satisfy.
    fn enter_exchange(&mut self, exchange: &Exchange, cx: Cx) {
        self.enter(cx);
        self.demand(cx.open > 0, Violation::NoneOpen);
        self.demand(exchange.ticket != 0, Violation::NeverStarted);
    }

    fn leave_exchange(&mut self, exchange: &Exchange, cx: Cx) {
        self.demand(self.open > 0, Violation::EndedTwice);
        self.open = self.open.saturating_sub(1);
        self.tickets = self.tickets.wrapping_sub(spread(exchange.ticket));
        self.demand(self.open > 0 || self.tickets == 0, Violation::EndedTwice);
        self.leave(cx);
    }

    /// A wait was answered: is it in bounds, and does the record know it?
    fn judge(&mut self, exchange: &Exchange, copy: u8, wait: Wait) {
        self.demand(exchange.current() == wait.span && exchange.retransmissions() == copy, Violation::RecordNotKept);
        self.demand(wait.span >= self.inner.shortest_wait() && wait.span > Span::ZERO, Violation::WaitTooShort);
        let longest = (0..=copy).fold(Span::ZERO, |previous, copy| self.inner.longest_wait(copy, previous));
        self.demand(wait.span <= longest, Violation::WaitTooLong);
    }

    /// What the controller must satisfy after every call that may have changed it.
    fn leave(&mut self, cx: Cx) {
        for class in [Class::Confirmable, Class::Plain] {
            if let Admit::At(point) = self.inner.admit(class, 0, cx) {
                self.demand(point > cx.now, Violation::DeferredToThePast);
            }
        }
    }
}

/// A ticket as a scattered 32-bit word, so that the sums of two different sets of tickets hardly ever agree.
const fn spread(ticket: u16) -> u32 {
    let word = (ticket as u32).wrapping_mul(0x9E37_79B1);
    (word ^ (word >> 15)).wrapping_mul(0x85EB_CA6B)
}

impl<C: Controller> Controller for Checked<C> {
    fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
        self.inner.admit(class, len, cx)
    }

    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        self.enter(cx);
        self.demand(cx.open > 0, Violation::NoneOpen);
        self.demand(*exchange == Exchange::new(), Violation::RecordInUse);
        let ticket = self.next_ticket;
        self.next_ticket = self.next_ticket.checked_add(1).unwrap_or(1);
        self.open = self.open.saturating_add(1);
        self.tickets = self.tickets.wrapping_add(spread(ticket));

        let wait = self.inner.on_start(exchange, len, cx);
        exchange.ticket = ticket;
        self.judge(exchange, 0, wait);
        self.leave(cx);
        wait
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        self.enter_exchange(exchange, cx);
        let (ticket, copy) = (exchange.ticket, exchange.retransmissions().saturating_add(1));
        let wait = self.inner.on_timeout(exchange, cx);
        exchange.ticket = ticket;
        self.judge(exchange, copy, wait);
        self.leave(cx);
        wait
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        self.enter_exchange(exchange, cx);
        self.inner.on_reply(exchange, sample, cx);
        self.leave_exchange(exchange, cx);
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        self.enter_exchange(exchange, cx);
        self.inner.on_end(exchange, why, cx);
        self.leave_exchange(exchange, cx);
    }

    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        self.enter(cx);
        self.inner.on_plain_send(len, cx);
        self.leave(cx);
    }

    fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
        self.enter(cx);
        self.inner.on_feedback(feedback, cx);
        self.leave(cx);
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
        self.inner.shortest_wait()
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        self.inner.longest_wait(copy, previous)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{chance::Chance, controller::Reason, evidence::ReplyKind};
    use std::{boxed::Box, string::ToString};

    /// A user's own controller, and one with every fault that a controller can have.
    #[derive(Clone, Copy)]
    struct Own {
        wait: Span,
        keeps_record: bool,
        defers_by: Option<Span>,
    }

    const GOOD: Own = Own { wait: Span::from_secs(2), keeps_record: true, defers_by: None };

    impl Controller for Own {
        fn admit(&self, _class: Class, _len: u16, cx: Cx) -> Admit {
            self.defers_by.map_or(Admit::Now, |span| Admit::At(cx.now.after(span)))
        }

        fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
            if self.keeps_record {
                exchange.begin(cx.now, self.wait);
            }
            Wait::then_retransmit(self.wait, Reason::Initial)
        }

        fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
            exchange.advance(self.wait);
            Wait::then_retransmit(self.wait, Reason::BackedOff)
        }

        fn on_reply(&mut self, _exchange: &Exchange, _sample: Sample, _cx: Cx) {}

        fn view(&self) -> View {
            View::default()
        }

        fn shortest_wait(&self) -> Span {
            Span::from_secs(1)
        }

        fn longest_wait(&self, _copy: u8, _previous: Span) -> Span {
            Span::from_secs(3)
        }
    }

    const SAMPLE: Sample = Sample::new(ReplyKind::EmptyAck, Span::from_secs(1), Span::from_secs(1), 0);

    const LOST: Feedback = Feedback {
        message: crate::feedback::PlainMessage::Request,
        fate: crate::feedback::Fate::Lost,
        number: 0,
        since: Span::ZERO,
        len: 40,
        reply_len: 0,
    };

    fn at(seconds: u32) -> Cx {
        Cx::new(Instant::ORIGIN.after(Span::from_secs(seconds)), Chance::MIDDLE)
    }

    #[test]
    fn a_good_caller_and_a_good_controller_pass() {
        let mut watched = Checked::new(GOOD);
        let (mut one, mut other) = (Exchange::new(), Exchange::new());
        watched.on_start(&mut one, 40, at(1));
        watched.on_start(&mut other, 40, at(1));
        watched.on_timeout(&mut one, at(3));
        watched.on_timeout(&mut one, at(5));
        watched.on_plain_send(40, at(5));
        watched.on_feedback(LOST, at(5));
        watched.on_reply(&one, SAMPLE, at(6));
        watched.on_end(&other, End::Reset, at(6));
        one = Exchange::new();
        watched.on_start(&mut one, 40, at(7));
        watched.on_end(&one, End::Cancelled, at(7));
        assert_eq!(watched.violation(), None);
    }

    #[test]
    fn time_must_not_go_back() {
        let mut watched = Checked::new(GOOD);
        watched.on_plain_send(40, at(2));
        watched.on_plain_send(40, at(1));
        assert_eq!(watched.violation(), Some(Violation::TimeWentBack));
        let mut watched = Checked::new(GOOD);
        watched.on_plain_send(40, at(2));
        watched.on_feedback(LOST, at(1));
        assert_eq!(watched.violation(), Some(Violation::TimeWentBack));
    }

    #[test]
    fn an_exchange_is_one_of_those_open() {
        let mut watched = Checked::new(GOOD);
        watched.on_start(&mut Exchange::new(), 40, Cx { open: 0, ..at(1) });
        assert_eq!(watched.violation(), Some(Violation::NoneOpen));
    }

    #[test]
    fn a_record_starts_blank() {
        let mut watched = Checked::new(GOOD);
        let mut exchange = Exchange::new();
        watched.on_start(&mut exchange, 40, at(1));
        watched.on_start(&mut exchange, 40, at(1));
        assert_eq!(watched.violation(), Some(Violation::RecordInUse));
    }

    #[test]
    fn an_exchange_starts_before_it_goes_on_or_ends() {
        let mut watched = Checked::new(GOOD);
        watched.on_timeout(&mut Exchange::new(), at(1));
        assert_eq!(watched.violation(), Some(Violation::NeverStarted));
        let mut watched = Checked::new(GOOD);
        watched.on_reply(&Exchange::new(), SAMPLE, at(1));
        assert_eq!(watched.violation(), Some(Violation::NeverStarted));
    }

    #[test]
    fn an_exchange_ends_once() {
        let mut watched = Checked::new(GOOD);
        let mut exchange = Exchange::new();
        watched.on_start(&mut exchange, 40, at(1));
        watched.on_reply(&exchange, SAMPLE, at(2));
        assert_eq!(watched.violation(), None);
        watched.on_end(&exchange, End::Cancelled, at(2));
        assert_eq!(watched.violation(), Some(Violation::EndedTwice));
    }

    #[test]
    fn one_end_for_two_does_not_go_unseen() {
        let mut watched = Checked::new(GOOD);
        let mut exchanges = [Exchange::new(); 4];
        for exchange in &mut exchanges {
            watched.on_start(exchange, 40, at(1));
        }
        let [first, second, third, _] = exchanges;
        // The first twice and the fourth never; plain sums of their numbers (1 + 2 + 3 + 4) would need 4.
        for ended in [first, second, third, first] {
            watched.on_reply(&ended, SAMPLE, at(2));
        }
        assert_eq!(watched.violation(), Some(Violation::EndedTwice));
    }

    #[test]
    fn a_controller_keeps_its_bounds_and_its_record() {
        for (own, fault) in [
            (Own { wait: Span::from_millis(999), ..GOOD }, Violation::WaitTooShort),
            (Own { wait: Span::from_millis(3_001), ..GOOD }, Violation::WaitTooLong),
            (Own { keeps_record: false, ..GOOD }, Violation::RecordNotKept),
            (Own { defers_by: Some(Span::ZERO), ..GOOD }, Violation::DeferredToThePast),
        ] {
            let mut watched = Checked::new(own);
            watched.on_start(&mut Exchange::new(), 40, at(1));
            assert_eq!(watched.violation(), Some(fault));
        }
        let mut watched = Checked::new(Own { defers_by: Some(Span::from_micros(1)), ..GOOD });
        watched.on_plain_send(40, at(1));
        assert_eq!(watched.violation(), None);
    }

    #[test]
    fn the_first_violation_is_kept() {
        let mut watched = Checked::new(GOOD);
        watched.on_timeout(&mut Exchange::new(), at(2));
        watched.on_plain_send(40, at(1));
        assert_eq!(watched.violation(), Some(Violation::NeverStarted));
        assert_eq!(Violation::NeverStarted.to_string(), "an exchange went on that was never started");
    }

    #[test]
    fn a_controller_of_unknown_type_is_held_behind_a_pointer() {
        let mut own: Box<dyn Controller> = Box::new(GOOD);
        let mut watched = Checked::new(&mut *own);
        let mut exchange = Exchange::new();
        assert_eq!(watched.on_start(&mut exchange, 40, at(1)).span, GOOD.wait);
        assert_eq!(watched.on_timeout(&mut exchange, at(3)).reason, Reason::BackedOff);
        watched.on_reply(&exchange, SAMPLE, at(4));
        assert_eq!((watched.violation(), watched.wishes()), (None, Wishes::NONE));
    }

    #[test]
    fn watching_does_not_change_the_answers() {
        let (mut bare, mut watched) = (GOOD, Checked::new(GOOD));
        let (mut one, mut other) = (Exchange::new(), Exchange::new());
        assert_eq!(bare.on_start(&mut one, 40, at(1)), watched.on_start(&mut other, 40, at(1)));
        assert_eq!(bare.on_timeout(&mut one, at(3)), watched.on_timeout(&mut other, at(3)));
        assert_eq!(watched.inner().wait, watched.into_inner().wait);
    }
}

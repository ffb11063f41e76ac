//! The interface between a congestion controller and the endpoint that asks it.

use crate::{
    chance::Chance,
    evidence::Sample,
    feedback::Feedback,
    layout::laid_out,
    time::{Instant, Span},
};

/// What a call may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cx {
    /// The time of the call; never earlier than in the call before.
    pub now: Instant,
    /// One uniform word that belongs to this call alone.
    pub chance: Chance,
    /// Exchanges outstanding to this peer, the one the call is about included.
    pub open: u16,
    /// Messages held back for this peer; zero means that the application is what limits the rate.
    pub waiting: u16,
}

impl Cx {
    /// A context with one exchange open and nothing waiting.
    #[must_use]
    pub const fn new(now: Instant, chance: Chance) -> Self {
        Self { now, chance, open: 1, waiting: 0 }
    }
}

/// Whether the peer will acknowledge a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A confirmable message: opens an exchange.
    Confirmable,
    /// A message that nobody acknowledges.
    Plain,
}

/// Whether a message may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admit {
    /// It may leave now.
    Now,
    /// Nothing leaves before this point, which lies after the call's `now`; ask again then.
    At(Instant),
    /// Ask again when an exchange with this peer ends.
    WhenOneEnds,
}

/// Why a wait is as long as it is, so that traces explain themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The first copy, timed by the controller's estimate or default.
    Initial,
    /// A later copy, backed off from the wait before.
    BackedOff,
    /// Timed by a separate, slow estimate of the path.
    Slow,
    /// The first copy, timed by a backed-off wait kept from an earlier exchange.
    Carried,
    /// The first copy to a peer whose round-trip time was never measured.
    Blind,
}

impl Reason {
    /// One lower-case word for traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::BackedOff => "backed-off",
            Self::Slow => "slow",
            Self::Carried => "carried",
            Self::Blind => "blind",
        }
    }
}

/// What follows when a wait runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// A retransmission leaves, if the endpoint's limit allows one.
    Retransmit,
    /// The exchange ends without an answer.
    Abandon,
}

/// How long to wait, and what then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// How long.
    pub span: Span,
    /// What follows.
    pub then: Then,
    /// Why this long.
    pub reason: Reason,
}

impl Wait {
    /// Wait this long, then send a retransmission.
    #[must_use]
    pub const fn then_retransmit(span: Span, reason: Reason) -> Self {
        Self { span, then: Then::Retransmit, reason }
    }
}

/// Why an exchange ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// The wait after the last copy ran out.
    GaveUp,
    /// The peer rejected the message with a Reset.
    Reset,
    /// The application no longer wants it, or the peer's state was dropped.
    Cancelled,
}

/// How the copies of a request are distinguished, so that a reply can name the one it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
#[non_exhaustive]
pub enum Naming {
    /// They are alike: a reply names no copy.
    #[default]
    None = 0,
    /// The number of the copy is part of the token, which every server echoes (draft-ietf-core-fasor-02 §4.5).
    Token = 1,
    /// The number of the copy travels in the option Rexmit-Cnt, which the server must know (same section).
    Count = 2,
    /// One bit in an option distinguishes a retransmission from the first transmission; the server must know the option (L. Aldana Parra:
    /// Advanced Congestion Control Mechanisms for Internet of Things, 2019, §7.2.2).
    Flag = 3,
    /// Every copy carries the time it left, which the server echoes (same source, §4.2.5).
    Timestamp = 4,
}

laid_out!(Naming = None | Token | Count | Flag | Timestamp);

/// What an algorithm asks of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Wishes {
    /// How copies of a request are to be distinguished.
    pub naming: Naming,
    /// Among this many consecutive unacknowledged messages, make one confirmable; zero: no wish.
    pub confirmable_every: u8,
    /// NSTART (RFC 7252 §4.7): exchanges that may be outstanding on the path; zero: no wish, as the endpoint is set.
    pub nstart: u16,
    /// It governs non-confirmable requests by their answers. An answer is then expected, and the request counts for NSTART, for
    /// NON_LIFETIME and not longer, since what goes to a silent peer is bounded here and not by PROBING_RATE (RFC 7252 §4.7).
    /// Of other non-confirmable messages it is neither asked nor told: responses leave at the rate of the requests, and
    /// notifications and bodies in bursts have rules of their own.
    pub governs_requests: bool,
    /// How long an answer to the last copy of a request is awaited at least, and up to ACK_RANDOM_FACTOR times as long, as long as
    /// nothing else is to leave for the peer: what is to leave ends the exchange as soon as the controller's own wait is over.
    /// For a request of fewer copies than RFC 7252 has by default it is half as long for each, as it is with a timer that doubles.
    /// Zero: no wish; then that wait is all.
    pub last_wait: Span,
    /// It reacts to [marks](Sample::is_marked) as RFC 3168 §6.1.2 asks of a sender, so that replies to it may be marked in place of
    /// being dropped. Who does not react must not ask for that.
    pub ecn: bool,
}

impl Wishes {
    /// Nothing.
    pub const NONE: Self = Self {
        naming: Naming::None,
        confirmable_every: 0,
        nstart: 0,
        governs_requests: false,
        last_wait: Span::ZERO,
        ecn: false,
    };
}

/// Numbers for traces and reports, never for decisions. What a controller does not keep is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct View {
    /// The timeout, before limit and dither, that the next exchange starts from unless a wait is carried.
    pub rto: Option<Span>,
    /// Smoothed round-trip time of the (strong) estimator.
    pub srtt: Option<Span>,
    /// Round-trip time variation of the (strong) estimator.
    pub rttvar: Option<Span>,
    /// Smoothed round-trip time of the weak estimator.
    pub weak_srtt: Option<Span>,
    /// Round-trip time variation of the weak estimator.
    pub weak_rttvar: Option<Span>,
    /// A backed-off wait kept for the next exchange.
    pub carried: Option<Span>,
}

/// The scratch record of one confirmable exchange. It is kept beside the message and
/// handed back unread; only controllers read and write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Exchange {
    started: Instant,
    current: Span,
    base: Span,
    mark: Span,
    retransmissions: u8,
    series: u8,
    /// Written by [`Checked`](crate::Checked) alone; zero means that the record is not under its eye.
    pub(crate) ticket: u16,
}

laid_out!(Exchange { started, current, base, mark, retransmissions, series, ticket });

impl Exchange {
    /// A blank record, to be given to `on_start`.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            started: Instant::ORIGIN,
            current: Span::ZERO,
            base: Span::ZERO,
            mark: Span::ZERO,
            retransmissions: 0,
            series: 0,
            ticket: 0,
        }
    }

    /// For controllers, in `on_start`: starts the record afresh with the first wait.
    pub const fn begin(&mut self, now: Instant, first: Span) {
        *self = Self { started: now, current: first, base: first, ticket: self.ticket, ..Self::new() };
    }

    /// For controllers, in `on_timeout`: a retransmission leaves and waits this long.
    pub const fn advance(&mut self, wait: Span) {
        self.retransmissions = self.retransmissions.saturating_add(1);
        self.current = wait;
    }

    /// Makes the wait in force this one, as if the controller had armed it.
    pub(crate) const fn lengthen(&mut self, wait: Span) {
        self.current = wait;
        if self.retransmissions == 0 {
            self.base = wait;
        }
    }

    /// When the first copy left.
    #[must_use]
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// The wait in force.
    #[must_use]
    pub const fn current(&self) -> Span {
        self.current
    }

    /// The first wait.
    #[must_use]
    pub const fn first_wait(&self) -> Span {
        self.base
    }

    /// Retransmissions.
    #[must_use]
    pub const fn retransmissions(&self) -> u8 {
        self.retransmissions
    }

    /// A length that the algorithm left in the record; zero if it left none.
    #[must_use]
    pub const fn mark(&self) -> Span {
        self.mark
    }

    /// For controllers: leaves a length in the record.
    pub const fn set_mark(&mut self, mark: Span) {
        self.mark = mark;
    }

    /// A small number (a state, a choice of series) that the algorithm left in the record; zero if it left none.
    #[must_use]
    pub const fn series(&self) -> u8 {
        self.series
    }

    /// For controllers: leaves a small number in the record.
    pub const fn set_series(&mut self, series: u8) {
        self.series = series;
    }
}

/// The congestion controller of a path, to one peer or to several that share it: a small value with a handful of calls.
///
/// The contract, checked by [`Checked`](crate::Checked) in debug builds:
///
/// 1. Per exchange one [`on_start`](Self::on_start), any number of [`on_timeout`](Self::on_timeout), then
///    exactly one of [`on_reply`](Self::on_reply) and [`on_end`](Self::on_end).
/// 2. `cx.now` never goes back.
/// 3. The same calls give the same answers: the value and the list of calls are the whole history.
/// 4. There is no error value and no panic. How many copies there may be, when an id may be used again and what
///    counts as a duplicate is the endpoint's business; the wait after the *last* copy is still the controller's.
/// 5. A retransmission is never held back by [`admit`](Self::admit), but it is charged.
/// 6. Every wait lies within [`shortest_wait`](Self::shortest_wait) and [`longest_wait`](Self::longest_wait), and
///    is what the exchange record was told by [`begin`](Exchange::begin) or [`advance`](Exchange::advance).
/// 7. An exchange ends with the controller that started it. When a peer gets another controller, exchanges still
///    open end with the old one as [`End::Cancelled`]; if they go on, the new one sees a blank record in
///    [`on_start`](Self::on_start) when their next copy leaves.
///
/// May grow by provided methods.
pub trait Controller {
    /// May a message of this class and length (bytes of CoAP) leave now, and if not, when? Asking changes nothing.
    /// NSTART is not asked about here: it is the endpoint's setting, or a [wish](Wishes::nstart).
    fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
        let _ = (class, len, cx);
        Admit::Now
    }

    /// The first copy of a confirmable message of `len` bytes leaves now. How long until the second?
    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait;

    /// The wait ran out and a retransmission leaves now. How long this time? Also asked for the last copy.
    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait;

    /// The exchange ended with an answer.
    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx);

    /// The exchange ended without an answer.
    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        let _ = (exchange, why, cx);
    }

    /// A message of `len` bytes that nobody will acknowledge left now.
    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        let _ = (len, cx);
    }

    /// It became known what happened to a message that nobody acknowledges: a non-confirmable request was answered or was
    /// not, or the receiver of a burst (RFC 9177) said which of its blocks came. Of most such messages nothing becomes
    /// known, so nothing may wait for this call.
    fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
        let _ = (feedback, cx);
    }

    /// What this algorithm asks of the endpoint.
    fn wishes(&self) -> Wishes {
        Wishes::NONE
    }

    /// Numbers for traces and reports.
    fn view(&self) -> View;

    /// The round trip of the path without a queue, as far as it is known from measurements of this controller's own: what is
    /// worth keeping over a restart (temporal sharing, RFC 9040 §6). Nothing before the first, and from one that keeps none.
    fn base_rtt(&self) -> Option<Span> {
        None
    }

    /// A base round trip from an earlier life. It may be old, or of another path, or forged: a controller takes it for a bound
    /// that its own samples correct, and never waits less by it. Zero, and what comes after the first sample, changes nothing.
    fn recall(&mut self, base_rtt: Span) {
        let _ = base_rtt;
    }

    /// The shortest wait that this controller can ever arm; never zero.
    fn shortest_wait(&self) -> Span {
        Span::from_micros(1)
    }

    /// The longest wait that this controller can ever arm after copy number `copy` (0 is the first), given the
    /// longest after the copy before (`previous`; zero for the first). Endpoints sum these to get the times that
    /// RFC 7252 §4.8.2 derives, which an adaptive timer would otherwise outlive.
    fn longest_wait(&self, copy: u8, previous: Span) -> Span;
}

impl<C: Controller + ?Sized> Controller for &mut C {
    fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
        (**self).admit(class, len, cx)
    }

    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        (**self).on_start(exchange, len, cx)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        (**self).on_timeout(exchange, cx)
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        (**self).on_reply(exchange, sample, cx);
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        (**self).on_end(exchange, why, cx);
    }

    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        (**self).on_plain_send(len, cx);
    }

    fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
        (**self).on_feedback(feedback, cx);
    }

    fn wishes(&self) -> Wishes {
        (**self).wishes()
    }

    fn view(&self) -> View {
        (**self).view()
    }

    fn base_rtt(&self) -> Option<Span> {
        (**self).base_rtt()
    }

    fn recall(&mut self, base_rtt: Span) {
        (**self).recall(base_rtt);
    }

    fn shortest_wait(&self) -> Span {
        (**self).shortest_wait()
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        (**self).longest_wait(copy, previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stay_small() {
        assert_eq!(size_of::<Exchange>(), 24);
        assert!(size_of::<Cx>() <= 24);
        assert_eq!(size_of::<Wait>(), 8);
    }
}

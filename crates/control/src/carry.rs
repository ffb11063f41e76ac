//! Carry-over: a backed-off wait that outlives its exchange.
//!
//! An answer that came after retransmissions may belong to any copy, so it must not end the backoff (Karn's rule).
//! RFC 7252 and CoCoA forget the backed-off wait all the same; "Is CoAP Congestion Safe?" (ANRW 2018) §4.2 keeps it
//! and calls that Full Backoff. Its two variants differ by algorithm and are spelt out where they are used.

use crate::{
    backoff::longer,
    controller::{End, Exchange},
    layout::laid_out,
    time::Span,
};

/// Whether and how a backed-off wait is carried to the next exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carry {
    /// Every exchange starts afresh.
    None,
    /// Full Backoff 1: the next exchange starts from the wait in force when the answer came, until an answer comes
    /// without a retransmission ("Is CoAP Congestion Safe?", ANRW 2018, §4.2).
    FullBackoff1,
    /// Full Backoff 2: as 1, but over a fixed timeout a clean answer halves the persisted backoff, and over CoCoA the persisted
    /// one is built from the larger estimate (same source).
    FullBackoff2,
}

laid_out!(Carry = None | FullBackoff1 | FullBackoff2);

impl Carry {
    /// Whether anything is carried at all.
    #[must_use]
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// The wait carried to the next exchange with one peer, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Carried(Span);

laid_out!(Carried { 0 });

impl Carried {
    /// Nothing carried.
    pub const NOTHING: Self = Self(Span::ZERO);

    /// The persisted backoff.
    #[must_use]
    pub const fn wait(self) -> Option<Span> {
        if self.0.as_micros() == 0 { None } else { Some(self.0) }
    }

    /// Carries `wait` from now on. While other exchanges with the peer are open (`open` counts them all, the one that
    /// ends included), the longer of the old and the new wait stays.
    pub const fn keep(&mut self, wait: Span, open: u16) {
        self.0 = if open > 1 { longer(self.0, wait) } else { wait };
    }

    /// The exchange ended without an answer: what was in force stays if it gave up or had backed off. Giving up after one
    /// copy counts; a message rejected or cancelled before its first wait ran out says nothing.
    pub fn keep_unanswered(&mut self, exchange: &Exchange, why: End, open: u16) {
        if why == End::GaveUp || exchange.retransmissions() > 0 {
            self.keep(exchange.current(), open);
        }
    }

    /// Halves the persisted backoff and drops it once it is down to `least`.
    pub const fn halve(&mut self, least: Span) {
        let half = self.0.halved();
        self.0 = if half.as_micros() > least.as_micros() { half } else { Span::ZERO };
    }

    /// Carries nothing from now on.
    pub const fn clear(&mut self) {
        self.0 = Span::ZERO;
    }
}

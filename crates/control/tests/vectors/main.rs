//! The worked examples of the sources, number by number, through the public interface.
//!
//! Expected figures stand as their sources print them, in seconds. A controller counts whole microseconds, so a
//! figure with more decimals is met to within `ROUNDING`.

#![cfg(feature = "all")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod ageing;
mod calm;
mod coap_plus_rate;
mod cocoa;
mod cocoa_variants;
mod default;
mod estimators;
mod fasor;
mod fasor_table;
mod full_backoff;
mod lifetimes;
mod tcp_timers;
mod tfrc_non;

use millpond_control::{Chance, Controller, Cx, End, Exchange, Instant, Named, Reason, ReplyKind, Sample, Span, Wait};

/// How far, in nanoseconds, our microseconds may be from a figure with more than six decimals. Each step rounds by at
/// most half a microsecond, and a step of backoff multiplies what the step before left: two steps of 1.5 give the
/// most seen here.
const ROUNDING: u64 = 1_250;

/// A figure of seconds as printed, in nanoseconds.
fn nanos(printed: &str) -> u64 {
    let (whole, decimals) = printed.split_once('.').unwrap_or((printed, ""));
    // Figures with more than nine decimals are cut; the rest is far below the bound.
    let decimals: String = decimals.chars().chain("000000000".chars()).take(9).collect();
    whole.parse::<u64>().expect("digits") * 1_000_000_000 + decimals.parse::<u64>().expect("digits")
}

/// A printed figure that is a whole number of microseconds.
fn secs(printed: &str) -> Span {
    let nanos = nanos(printed);
    assert_eq!(nanos % 1_000, 0, "{printed} has no exact microsecond");
    Span::from_micros(u32::try_from(nanos / 1_000).expect("a span"))
}

/// The printed figure is ours, up to the rounding of integers.
#[track_caller]
fn assert_printed(ours: Option<Span>, printed: &str, what: &str) {
    assert_near(ours, printed, ROUNDING, what);
}

/// The printed figure is ours to within so many nanoseconds.
#[track_caller]
fn assert_near(ours: Option<Span>, printed: &str, bound: u64, what: &str) {
    let ours = ours.expect("a value");
    let off = (u64::from(ours.as_micros()) * 1_000).abs_diff(nanos(printed));
    assert!(off <= bound, "{what}: ours {ours}, printed {printed}");
}

/// One peer, its clock, and one exchange after the other.
#[derive(Clone)]
struct Peer<C> {
    controller: C,
    now: Instant,
    exchange: Exchange,
    wait: Wait,
    started: Instant,
    copies: Vec<Instant>,
}

impl<C: Controller> Peer<C> {
    fn new(controller: C) -> Self {
        let wait = Wait::then_retransmit(Span::ZERO, Reason::Initial);
        let (now, started) = (Instant::ORIGIN, Instant::ORIGIN);
        Self { controller, now, exchange: Exchange::new(), wait, started, copies: Vec::new() }
    }

    fn cx(&self, chance: Chance, open: u16) -> Cx {
        Cx { open, ..Cx::new(self.now, chance) }
    }

    /// The first copy leaves, with the lowest draw.
    fn start(&mut self) -> Span {
        self.start_drawing(Chance::LOWEST)
    }

    fn start_drawing(&mut self, chance: Chance) -> Span {
        let cx = self.cx(chance, 1);
        self.exchange = Exchange::new();
        self.started = self.now;
        self.copies = vec![self.now];
        self.wait = self.controller.on_start(&mut self.exchange, 40, cx);
        self.wait.span
    }

    /// The wait in force runs out and a retransmission leaves.
    fn expire(&mut self) -> Span {
        self.now = self.now.after(self.wait.span);
        let cx = self.cx(Chance::LOWEST, 1);
        self.copies.push(self.now);
        self.wait = self.controller.on_timeout(&mut self.exchange, cx);
        self.wait.span
    }

    /// The first waits of an exchange that nobody answers.
    fn series(&mut self, chance: Chance, waits: usize) -> Vec<Span> {
        let mut series = vec![self.start_drawing(chance)];
        while series.len() < waits {
            series.push(self.expire());
        }
        series
    }

    /// The answer comes this long after the first copy; every wait that ran out before is served. Returns the
    /// retransmissions.
    fn answer_after(&mut self, elapsed: &str) -> u8 {
        self.answer_naming(elapsed, Named::Nothing)
    }

    /// The same where the answer names a copy.
    fn answer_naming(&mut self, elapsed: &str, named: Named) -> u8 {
        let end = self.started.after(secs(elapsed));
        while self.now.after(self.wait.span) < end {
            self.expire();
        }
        let last_copy = self.now;
        self.now = end;
        let retransmissions = self.exchange.retransmissions();
        let sample =
            Sample::new(ReplyKind::Piggybacked, end.since(self.started), end.since(last_copy), retransmissions);
        let sample = match named {
            Named::Nothing => sample,
            Named::Copy(copy) => sample.naming(copy, end.since(self.copies[usize::from(copy)])),
            Named::Further => sample.naming_a_further_copy(),
        };
        let cx = self.cx(Chance::LOWEST, 1);
        self.controller.on_reply(&self.exchange, sample, cx);
        retransmissions
    }

    /// A whole exchange whose evidence is given: no clock moves.
    fn learn(&mut self, retransmissions: u8, elapsed: &str) {
        let cx = self.cx(Chance::LOWEST, 1);
        let mut exchange = Exchange::new();
        self.controller.on_start(&mut exchange, 40, cx);
        for _ in 0..retransmissions {
            self.controller.on_timeout(&mut exchange, cx);
        }
        let elapsed = secs(elapsed);
        self.controller.on_reply(&exchange, Sample::new(ReplyKind::Piggybacked, elapsed, elapsed, retransmissions), cx);
    }

    /// Every copy that `max_retransmit` allows runs out.
    fn give_up(&mut self, max_retransmit: u8) {
        while self.exchange.retransmissions() < max_retransmit {
            self.expire();
        }
        self.now = self.now.after(self.wait.span);
        let cx = self.cx(Chance::LOWEST, 1);
        self.controller.on_end(&self.exchange, End::GaveUp, cx);
    }
}

/// Spans from a list of printed figures.
fn printed_series(printed: &str) -> Vec<Span> {
    printed.split_whitespace().map(secs).collect()
}

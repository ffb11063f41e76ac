//! One workload of one client.

use millpond_control::Instant;
use millpond_link::minus_ln;

use super::draws::{Draws, Of, below, exponential, time};
use crate::{
    ledger::NO_EVENT,
    scenario::{ArrivalProcess, Duration, Periods, Ramp, Retry, Spacing, Workload},
};

/// What all clients of a group share of one workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'s> {
    pub(crate) workload: &'s Workload,
    /// Its place among those of the group.
    pub(crate) index: u32,
    /// Requests of a client, or for each event; nothing if without end.
    pub(crate) requests: Option<u32>,
    /// So many may be open at once.
    pub(crate) nstart: u32,
    /// The clients that have it.
    pub(crate) clients: u32,
}

impl Plan<'_> {
    /// Whether it never ends by itself.
    pub(crate) fn is_endless(&self) -> bool {
        self.requests.is_none() && self.workload.lasts.is_none()
    }
}

/// Where one workload of one client stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// When the next request arrives, as far as that is known.
    next: Instant,
    /// Nothing arrives from here on.
    until: Instant,
    /// The next beat of a rhythm, without jitter; of a ramp its beginning.
    beat: Instant,
    /// Requests that arrived since it began last.
    arrivals: u32,
    /// Arrivals so far, whatever it began: numbers for chance.
    number: u32,
    /// Requests that arrived and not ended.
    open: u16,
    /// Requests of the running burst that have not arrived yet.
    burst_left: u16,
    begun: u16,
    /// The event that its requests belong to.
    event: u16,
    /// Not every request since it began last was answered.
    has_lost: bool,
    /// Attempts since then that failed, where there are several.
    failed: u32,
}

impl Source {
    /// A workload that has not begun.
    pub(crate) const fn idle() -> Self {
        Self {
            next: Instant::NEVER,
            until: Instant::NEVER,
            beat: Instant::NEVER,
            arrivals: 0,
            number: 0,
            open: 0,
            burst_left: 0,
            begun: 0,
            event: NO_EVENT,
            has_lost: false,
            failed: 0,
        }
    }

    /// It begins: at the start of its client, or after an event that it waited for. What it began before is not finished.
    pub(crate) fn begin(&mut self, now: Instant, event: u16, plan: &Plan<'_>, draws: Draws) {
        // What was open belongs to what it began before, which nobody completes any more.
        (self.arrivals, self.event, self.has_lost, self.beat, self.failed) = (0, event, self.open > 0, now, 0);
        self.until = plan.workload.lasts.map_or(Instant::NEVER, |lasts| later(now, lasts.0));
        self.go_on(now, plan, draws);
    }

    /// It goes on after its client was away: a rhythm begins anew, what was open is lost to it.
    pub(crate) fn go_on(&mut self, now: Instant, plan: &Plan<'_>, draws: Draws) {
        let (index, begun) = (plan.index, u32::from(self.begun));
        self.begun = self.begun.saturating_add(1);
        // A time that was cut short is drawn afresh.
        self.number += u32::from(begun > 0);
        self.next = match &plan.workload.arrivals {
            ArrivalProcess::Continuous { .. } | ArrivalProcess::FreshBatches | ArrivalProcess::Backlog => now,
            ArrivalProcess::AfterEvent { arrival, .. } => later(now, draws.arrival(index, begun, Of::Arrival, arrival)),
            ArrivalProcess::Poisson { interval } => {
                later(now, exponential(draws.word(index, self.number, Of::Interval), interval.0))
            }
            ArrivalProcess::Ramp(ramp) => {
                let share = draws.word(index, begun, Of::Phase) >> 32;
                self.on_ramp(now, ramp, share, plan, draws)
            }
            ArrivalProcess::Periodic { phase, aligned, burst, .. } => {
                let period = self.period(plan, draws);
                self.beat = if *aligned {
                    let phase = phase.map_or(0, |phase| phase.0);
                    let since = now.as_micros().saturating_sub(phase);
                    Instant::from_micros(since.div_ceil(period).saturating_mul(period).saturating_add(phase))
                } else {
                    let drawn = || below(draws.word(index, begun, Of::Phase), period - 1);
                    later(now, phase.map_or_else(drawn, |phase| phase.0))
                };
                self.burst_left = *burst;
                self.jittered(plan, draws)
            }
        };
        self.cut(plan);
    }

    /// When the next request arrives; never if none is, or if that waits for an end.
    #[inline]
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// The event that its requests belong to.
    #[inline]
    pub(crate) const fn event(&self) -> u16 {
        self.event
    }

    /// A request arrives, at `next`: its number for chance, and its number since the source began.
    pub(crate) fn take(&mut self, plan: &Plan<'_>, draws: Draws) -> (u32, u32) {
        let now = self.next;
        let taken = (self.number, self.arrivals);
        self.number += 1;
        self.arrivals += 1;
        self.open = self.open.saturating_add(1);
        self.next = match &plan.workload.arrivals {
            // Each goes on when one has ended.
            ArrivalProcess::Continuous { .. } | ArrivalProcess::FreshBatches | ArrivalProcess::AfterEvent { .. } => {
                Instant::NEVER
            }
            ArrivalProcess::Backlog if u32::from(self.open) < plan.nstart => now,
            ArrivalProcess::Backlog => Instant::NEVER,
            ArrivalProcess::Poisson { interval } => {
                later(now, exponential(draws.word(plan.index, self.number, Of::Interval), interval.0))
            }
            ArrivalProcess::Ramp(ramp) => self.on_ramp(now, ramp, 1 << 32, plan, draws),
            ArrivalProcess::Periodic { burst, .. } => {
                self.burst_left -= 1;
                if self.burst_left > 0 {
                    now
                } else {
                    self.burst_left = *burst;
                    self.beat = later(self.beat, self.period(plan, draws));
                    self.jittered(plan, draws)
                }
            }
        };
        self.cut(plan);
        taken
    }

    /// A request of it has ended, answered or lost.
    pub(crate) fn ended(&mut self, now: Instant, answered: bool, plan: &Plan<'_>, draws: Draws) {
        self.open = self.open.saturating_sub(1);
        self.has_lost |= !answered;
        if let ArrivalProcess::AfterEvent { retry: Some(retry), .. } = &plan.workload.arrivals
            && self.has_lost
        {
            self.try_again(now, retry, plan);
            return;
        }
        if self.next == Instant::NEVER {
            self.next = match &plan.workload.arrivals {
                ArrivalProcess::Continuous { think } | ArrivalProcess::AfterEvent { think, .. } if self.open == 0 => {
                    later(now, time(|| draws.word(plan.index, self.number, Of::Think), think))
                }
                ArrivalProcess::FreshBatches if self.open == 0 => now,
                ArrivalProcess::Backlog => now,
                _ => return,
            };
            self.cut(plan);
        }
    }

    /// All of it begins anew, once nothing of the attempt that failed is open and the time has come; or nothing does.
    #[cold]
    fn try_again(&mut self, now: Instant, retry: &Retry, plan: &Plan<'_>) {
        self.next = Instant::NEVER;
        if self.open > 0 {
            return;
        }
        self.failed = self.failed.saturating_add(1);
        match retry.wait(self.failed) {
            Some(wait) => {
                (self.arrivals, self.has_lost) = (0, false);
                self.next = later(now, wait);
                self.cut(plan);
            }
            None => self.until = Instant::ORIGIN,
        }
    }

    /// Nothing arrives any more, not even once something ends.
    pub(crate) fn is_exhausted(&self, plan: &Plan<'_>) -> bool {
        self.next == Instant::NEVER
            && (plan.requests.is_some_and(|most| self.arrivals >= most)
                || self.until == Instant::ORIGIN
                || (!plan.workload.is_closed() && self.begun > 0))
    }

    /// Everything that it was to ask for since it began was answered.
    pub(crate) fn is_complete(&self, plan: &Plan<'_>) -> bool {
        self.is_exhausted(plan) && self.open == 0 && !self.has_lost && self.arrivals > 0
    }

    /// Nothing arrives while its client is away.
    pub(crate) fn pause(&mut self) {
        self.next = Instant::NEVER;
    }

    /// The period of this client.
    fn period(&self, plan: &Plan<'_>, draws: Draws) -> u64 {
        let ArrivalProcess::Periodic { period, .. } = &plan.workload.arrivals else { return u64::MAX };
        let period = match period {
            Periods::One(period) => *period,
            Periods::Together(period) => Duration(period.0.saturating_mul(u64::from(plan.clients))),
            Periods::Mix(shares) => {
                let mut left = draws.word(plan.index, 0, Of::Period) as f64 / u64::MAX as f64;
                let chosen = shares.iter().find(|share| {
                    left -= share.share;
                    left < 0.0
                });
                chosen.or(shares.last()).map(|share| share.period).unwrap_or_default()
            }
        };
        period.0.max(1)
    }

    /// The next arrival of a ramp after a point, where even ones are so far apart (in 2^-32 of one). While its client is away
    /// a ramp goes on, and nobody arrives.
    fn on_ramp(&self, now: Instant, ramp: &Ramp, even: u64, plan: &Plan<'_>, draws: Draws) -> Instant {
        let arrivals = match ramp.spacing {
            Spacing::Even => even,
            Spacing::Poisson => minus_ln(draws.word(plan.index, self.number, Of::Interval)),
        };
        let since = now.as_micros().saturating_sub(self.beat.as_micros());
        ramp.reaches(since, arrivals).map_or(Instant::NEVER, |at| later(self.beat, at))
    }

    /// The time of the next beat with its jitter.
    fn jittered(&self, plan: &Plan<'_>, draws: Draws) -> Instant {
        let ArrivalProcess::Periodic { jitter, .. } = &plan.workload.arrivals else { return Instant::NEVER };
        if jitter.0 == 0 {
            return self.beat;
        }
        later(self.beat, below(draws.word(plan.index, self.number, Of::Jitter), jitter.0))
    }

    /// Nothing arrives beyond the number and the time that it has.
    fn cut(&mut self, plan: &Plan<'_>) {
        if self.next != Instant::NEVER
            && (plan.requests.is_some_and(|most| self.arrivals >= most) || self.next >= self.until)
        {
            self.next = Instant::NEVER;
            if plan.requests.is_none_or(|most| self.arrivals < most) {
                // Its time is over: so that no end begins anything again.
                self.until = Instant::ORIGIN;
            }
        }
    }
}

fn later(point: Instant, micros: u64) -> Instant {
    Instant::from_micros(point.as_micros().saturating_add(micros))
}

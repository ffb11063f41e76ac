//! A rate, a delay and losses that follow a trace: steps in time, once or over and over.
//!
//! How much a link can carry by an instant is a sum over the steps before it, reckoned once. When a packet's last bit is out is a
//! look-up in that sum, however many steps pass meanwhile.

use crate::config::Rate;
use crate::probability::Probability;
use core::fmt;
use millpond_control::Span;
use std::sync::Arc;

/// What holds from an instant on until the next step. What a step leaves out is as in the step before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// When it begins, µs from the beginning of the trace.
    pub at: u64,
    /// Bits per second, up to [`Rate::HIGHEST`]; with 0 nothing is sent.
    pub rate: Option<u64>,
    /// Bytes that can be sent at this very instant, besides.
    pub burst: u32,
    /// The propagation delay of packets whose last bit leaves from now on.
    pub delay: Option<Span>,
    /// The probability of losing a packet.
    pub loss: Option<Probability>,
}

/// Steps in time. Those of the first step (rate, delay, loss) are what the trace speaks of; of the rest a link has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// When each step begins, µs.
    at: Vec<u64>,
    rates: Vec<u64>,
    /// Work that can be done up to each step, its burst included: bits times 10^6.
    work: Vec<u128>,
    delays: Vec<Span>,
    losses: Vec<Probability>,
    /// After how long it begins again, µs.
    every: Option<u64>,
    /// Work that can be done in so long.
    round: u128,
}

/// Why a trace cannot be followed, and the number of the step that is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// There are no steps.
    Empty,
    /// The first step does not begin at 0.
    Late,
    /// A step does not begin after the one before it.
    GoesBack(usize),
    /// A rate is above [`Rate::HIGHEST`].
    RateTooHigh(usize),
    /// A step begins after the trace is to begin again.
    Beyond(usize),
    /// It is to begin again at once.
    NoLength,
    /// There is a time from which on nothing is sent any more.
    NeverCarries,
}

impl TraceError {
    /// The number of the step at fault, if it is one's.
    #[must_use]
    pub const fn step(self) -> Option<usize> {
        match self {
            Self::GoesBack(step) | Self::RateTooHigh(step) | Self::Beyond(step) => Some(step),
            Self::Empty | Self::Late | Self::NoLength | Self::NeverCarries => None,
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a trace without steps: write at least one"),
            Self::Late => f.write_str("the first step does not begin at 0"),
            Self::GoesBack(_) => f.write_str("the time is not after that of the step before: write the steps in order"),
            Self::RateTooHigh(_) => write!(f, "the rate is above the highest, {} bit/s", Rate::HIGHEST),
            Self::Beyond(_) => f.write_str("the step begins when the trace has begun again: let it be longer"),
            Self::NoLength => f.write_str("a trace that begins again after no time: write how long it lasts"),
            Self::NeverCarries => f.write_str(
                "nothing is ever sent again, because the rate stays 0: let it rise, or the trace begin again",
            ),
        }
    }
}

impl std::error::Error for TraceError {}

/// Microseconds of a second times bits of a byte.
const WORK: u128 = 8_000_000;

impl Trace {
    /// A trace of these steps in the order of time, the first at 0. It begins again `every` so many microseconds, or its last step
    /// holds for ever. A burst may be at the very end, when it begins again.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn new(steps: &[Step], every: Option<u64>) -> Result<Self, TraceError> {
        let first = steps.first().ok_or(TraceError::Empty)?;
        if first.at != 0 {
            return Err(TraceError::Late);
        }
        if every == Some(0) {
            return Err(TraceError::NoLength);
        }
        let mut trace = Self {
            at: Vec::with_capacity(steps.len()),
            rates: Vec::new(),
            work: Vec::new(),
            delays: Vec::new(),
            losses: Vec::new(),
            every,
            round: 0,
        };
        for (number, step) in steps.iter().enumerate() {
            if trace.at.last().is_some_and(|last| *last >= step.at) {
                return Err(TraceError::GoesBack(number));
            }
            if step.rate.is_some_and(|rate| rate > Rate::HIGHEST) {
                return Err(TraceError::RateTooHigh(number));
            }
            if every.is_some_and(|every| step.at > every || (step.at == every && step.burst == 0)) {
                return Err(TraceError::Beyond(number));
            }
            if first.rate.is_some() {
                trace.work.push(trace.work_by(step.at) + u128::from(step.burst) * WORK);
                go_on(&mut trace.rates, step.rate);
            }
            if first.delay.is_some() {
                go_on(&mut trace.delays, step.delay);
            }
            if first.loss.is_some() {
                go_on(&mut trace.losses, step.loss);
            }
            trace.at.push(step.at);
        }
        trace.round = every.map_or(0, |every| trace.work_by(every));
        let carries = if every.is_some() { trace.round > 0 } else { trace.rates.last().is_none_or(|rate| *rate > 0) };
        if trace.has_rates() && !carries {
            return Err(TraceError::NeverCarries);
        }
        Ok(trace)
    }

    /// Whether it speaks of the rate.
    #[must_use]
    pub const fn has_rates(&self) -> bool {
        !self.rates.is_empty()
    }

    /// Whether it speaks of the delay.
    #[must_use]
    pub const fn has_delays(&self) -> bool {
        !self.delays.is_empty()
    }

    /// Whether it speaks of losses.
    #[must_use]
    pub const fn has_losses(&self) -> bool {
        !self.losses.is_empty()
    }

    /// After how long it begins again, µs.
    #[must_use]
    pub const fn every(&self) -> Option<u64> {
        self.every
    }

    /// The highest of its rates, bit/s; of bursts what they come to on the average. None if it does not speak of the rate.
    #[must_use]
    pub fn highest_rate(&self) -> Option<u64> {
        let mean = self.every.map_or(0, |every| self.round / u128::from(every));
        self.rates.iter().max().map(|highest| (*highest).max(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// Work that can be done from the last step so far until an instant after it.
    fn work_by(&self, at: u64) -> u128 {
        match (self.at.last(), self.work.last(), self.rates.last()) {
            (Some(begin), Some(work), Some(rate)) => work + u128::from(at - begin) * u128::from(*rate),
            _ => 0,
        }
    }
}

/// A column goes on with a value, or with the one before.
fn go_on<T: Copy>(column: &mut Vec<T>, value: Option<T>) {
    column.extend(value.or_else(|| column.last().copied()));
}

/// A trace and how far into it time 0 is.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    trace: Arc<Trace>,
    ahead: u64,
    /// The step that was looked at last, near which the next is looked for.
    near: usize,
}

impl Follower {
    pub(crate) const fn new(trace: Arc<Trace>, ahead: u64) -> Self {
        Self { trace, ahead, near: 0 }
    }

    /// The least delay that it ever has.
    pub(crate) fn least_delay(&self) -> Span {
        self.trace.delays.iter().copied().min().unwrap_or(Span::ZERO)
    }

    /// The delay at an instant.
    pub(crate) fn delay(&self, now: u64) -> Span {
        self.trace.delays.get(self.step(now).2).copied().unwrap_or(Span::ZERO)
    }

    /// The probability of losing a packet at an instant, which never goes back.
    pub(crate) fn loss(&mut self, now: u64) -> Probability {
        self.near = self.step(now).2;
        self.trace.losses.get(self.near).copied().unwrap_or(Probability::ZERO)
    }

    /// Work that can be done by an instant, which never goes back.
    pub(crate) fn work(&mut self, now: u64) -> u128 {
        let (rounds, local, step) = self.step(now);
        self.near = step;
        let trace = &self.trace;
        let (Some(begin), Some(work), Some(rate)) = (trace.at.get(step), trace.work.get(step), trace.rates.get(step))
        else {
            return 0;
        };
        u128::from(rounds) * trace.round + work + u128::from(local - begin) * u128::from(*rate)
    }

    /// The first instant, in whole microseconds, by which so much work can be done.
    pub(crate) fn done(&self, work: u128) -> u64 {
        let trace = &self.trace;
        let (rounds, rest) = match (work, trace.round) {
            (0, _) | (_, 0) => (0, work),
            (work, round) => ((work - 1) / round, (work - 1) % round + 1),
        };
        let further = seek(&trace.work, self.near, |before| *before < rest);
        let within = match further.checked_sub(1) {
            None => Some(0),
            Some(step) => {
                let rate = u128::from(trace.rates[step]);
                let sent = (rest - trace.work[step]).div_ceil(rate.max(1));
                let reached = u64::try_from(sent).ok().filter(|_| rate > 0);
                let reached = reached.and_then(|sent| trace.at[step].checked_add(sent));
                // By a burst at the next step, if not before.
                reached.into_iter().chain(trace.at.get(further).copied()).min()
            }
        };
        let every = u128::from(trace.every.unwrap_or(0));
        let at = within.map(|within| (rounds * every).saturating_add(u128::from(within)));
        let at = at.and_then(|at| u64::try_from(at).ok());
        at.map_or(u64::MAX, |at| at.saturating_sub(self.ahead))
    }

    /// How often the trace had begun again by an instant, how far into it that is, and in which step.
    fn step(&self, now: u64) -> (u64, u64, usize) {
        let now = now.saturating_add(self.ahead);
        let (rounds, local) = self.trace.every.map_or((0, now), |every| (now / every, now % every));
        (rounds, local, seek(&self.trace.at, self.near, |begin| *begin <= local).saturating_sub(1))
    }
}

/// How many of a sorted list, the first ones, are as asked; as a rule as many as `near`, or one or two more.
fn seek<T>(list: &[T], near: usize, is_before: impl Fn(&T) -> bool) -> usize {
    for count in near..=near + 2 {
        let holds = |place: usize| list.get(place).is_some_and(&is_before);
        if (count == 0 || holds(count - 1)) && !holds(count) && count <= list.len() {
            return count;
        }
    }
    list.partition_point(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates(steps: &[(u64, u64, u32)], every: Option<u64>) -> Result<Trace, TraceError> {
        let step = |&(at, rate, burst)| Step { at, rate: Some(rate), burst, ..Step::default() };
        Trace::new(&steps.iter().map(step).collect::<Vec<_>>(), every)
    }

    fn follow(trace: Trace, ahead: u64) -> Follower {
        Follower::new(Arc::new(trace), ahead)
    }

    /// Bits that can be sent by an instant, counted step by step.
    fn counted(steps: &[(u64, u64, u32)], every: Option<u64>, until: u64) -> u128 {
        let (mut work, mut begin) = (0, 0);
        loop {
            for (number, &(at, rate, burst)) in steps.iter().enumerate() {
                if begin + at > until {
                    return work;
                }
                let next = steps.get(number + 1).map(|next| next.0).or(every).map_or(until, |next| begin + next);
                work += u128::from(burst) * WORK + u128::from(next.min(until) - begin - at) * u128::from(rate);
            }
            match every {
                Some(every) => begin += every,
                None => return work,
            }
        }
    }

    #[test]
    fn work_is_done_at_the_rate_of_its_step() {
        // 1000 bit/s for a second, nothing for another, then 500 bit/s: 1500 bits are out after 3 s.
        let steps = [(0, 1_000, 0), (1_000_000, 0, 0), (2_000_000, 500, 0)];
        let mut once = follow(rates(&steps, None).unwrap(), 0);
        for (bits, micros) in [(0, 0), (1, 1_000), (1_000, 1_000_000), (1_001, 2_002_000), (1_500, 3_000_000)] {
            assert_eq!(once.done(bits * 1_000_000), micros, "{bits} bits");
        }
        assert_eq!(once.work(1_700_000), 1_000_000_000);
        // Over and over, every three seconds.
        let again = follow(rates(&steps, Some(3_000_000)).unwrap(), 0);
        assert_eq!(again.done(1_500_000_000), 3_000_000);
        assert_eq!(again.done(1_501_000_000), 3_001_000);
        assert_eq!(again.done(4_501_000_000), 9_001_000);
        // A quarter of a second into it.
        let ahead = follow(rates(&steps, None).unwrap(), 250_000);
        assert_eq!(ahead.done(1_001_000_000), 1_752_000);
    }

    #[test]
    fn bursts_are_there_at_their_instant() {
        let bursts = [(0, 0, 0), (2_000, 0, 1_504), (5_000, 0, 3_008), (9_000, 0, 1_504)];
        let mut trace = follow(rates(&bursts, Some(9_000)).unwrap(), 0);
        let bytes = |bytes: u128| bytes * WORK;
        for (bytes, at) in [(1_504, 2_000), (1_505, 5_000), (4_512, 5_000), (4_513, 9_000), (6_016, 9_000)] {
            assert_eq!(trace.done(bytes * WORK), at, "{bytes} B");
        }
        assert_eq!(trace.done(bytes(6_017)), 11_000);
        assert_eq!((trace.work(1_999), trace.work(2_000)), (0, bytes(1_504)));
        assert_eq!((trace.work(8_999), trace.work(9_000)), (bytes(4_512), bytes(6_016)));
    }

    #[test]
    fn a_trace_that_cannot_be_followed_is_refused() {
        assert_eq!(Trace::new(&[], None), Err(TraceError::Empty));
        for (steps, every, error) in [
            (&[(1, 5, 0)][..], None, TraceError::Late),
            (&[(0, 5, 0), (9, 6, 0), (9, 7, 0)], None, TraceError::GoesBack(2)),
            (&[(0, 5, 0), (9, u64::MAX, 0)], None, TraceError::RateTooHigh(1)),
            (&[(0, 5, 0)], Some(0), TraceError::NoLength),
            (&[(0, 5, 0), (9, 6, 0)], Some(9), TraceError::Beyond(1)),
            (&[(0, 5, 0), (9, 0, 0)], None, TraceError::NeverCarries),
            (&[(0, 0, 0), (9, 0, 0)], Some(20), TraceError::NeverCarries),
        ] {
            assert_eq!(rates(steps, every), Err(error));
        }
        assert!(rates(&[(0, 0, 0), (9, 0, 1)], Some(9)).is_ok());
    }

    #[test]
    fn what_a_step_leaves_out_is_as_before() {
        let (short, long) = (Span::from_millis(20), Span::from_millis(200));
        let step = |at, delay| Step { at, delay, ..Step::default() };
        let trace = Trace::new(&[step(0, Some(long)), step(10, Some(short)), step(20, None)], Some(30)).unwrap();
        assert!(!trace.has_rates() && trace.has_delays() && !trace.has_losses());
        let follower = follow(trace, 0);
        let delays = [0, 9, 10, 25, 30].map(|now| follower.delay(now));
        assert_eq!(delays, [long, long, short, short, long]);
        assert_eq!(follower.least_delay(), short);
    }

    proptest! {
        #[test]
        fn what_is_done_by_an_instant_is_what_step_by_step_can_be_sent(
            steps in prop::collection::vec((1..5_000_u64, prop_oneof![Just(0_u64), 1..9_000_000_u64], 0..3_u32), 1..12),
            is_over_and_over: bool,
            ahead in 0..30_000_u64,
            mut instants in prop::collection::vec(0..90_000_u64, 1..20),
            bytes in 0..2_000_u32,
        ) {
            let mut begin = 0;
            let steps: Vec<_> = steps
                .into_iter()
                .map(|(lasts, rate, burst)| {
                    begin += lasts;
                    (begin - lasts, rate, if rate == 0 { burst * 700 } else { 0 })
                })
                .collect();
            let every = is_over_and_over.then_some(begin);
            let Ok(trace) = rates(&steps, every) else { return Ok(()) };
            let mut follower = follow(trace, ahead);
            instants.sort_unstable();
            for now in instants {
                let work = follower.work(now);
                prop_assert_eq!(work, counted(&steps, every, now + ahead));
                let target = work + u128::from(bytes) * WORK;
                let done = follower.done(target);
                prop_assert!(done <= now || follower.clone().work(done - 1) < target);
                prop_assert!(done.max(now) == now || follower.clone().work(done) >= target);
            }
        }
    }
}

//! The rate stage: when the last bit of each packet is out, without drift.
//!
//! Departures are kept as a whole number of microseconds plus a remainder in parts of the rate, so that a busy period
//! of any length ends where arithmetic without rounding would end it: 94 bytes at 30 kbit/s take 25066 + 2/3 µs, and
//! three of them exactly 75200 µs. Where the rate follows a trace, the work accepted is kept instead, and a departure is looked up.

use crate::config::Rate;
use crate::trace::Follower;
use core::num::NonZeroU64;

/// Microseconds of a second times bits of a byte: `bytes · WORK / rate` is a time in microseconds.
const WORK: u64 = 8_000_000;

#[derive(Clone, Debug)]
pub(crate) struct RateStage {
    /// Bits per second; none is no limit.
    rate: Option<NonZeroU64>,
    /// When the last packet accepted will be out: whole microseconds …
    free: u64,
    /// … and the rest, in parts of the rate: always below it.
    part: u64,
    /// When the current busy period (or, if idle, the latest) began.
    since: u64,
    /// Length of all earlier busy periods, whole and part.
    closed: (u64, u64),
    /// While it is stopped, the work accepted and not done, in bytes times [`WORK`].
    stopped: Option<u128>,
    /// Service time of the previous packet, because the next is often as long: bytes, whole, part.
    memo: (u64, u64, u64),
    /// The trace that the rate follows, if it does.
    traced: Option<Box<Traced>>,
}

#[derive(Clone, Debug)]
struct Traced {
    trace: Follower,
    /// The work that the trace can do by the time at which everything accepted is out.
    until: u128,
}

impl RateStage {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self {
            rate: per_second(rate),
            free: 0,
            part: 0,
            since: 0,
            closed: (0, 0),
            stopped: None,
            memo: (0, 0, 0),
            traced: None,
        }
    }

    /// Follows a trace from the beginning.
    pub(crate) fn follow(&mut self, trace: Follower) {
        // Its instants are whole microseconds: there are no parts of a rate.
        self.rate = Some(NonZeroU64::MIN);
        self.traced = Some(Box::new(Traced { trace, until: 0 }));
    }

    /// Accepts a packet of `bytes` at `now`, behind all accepted before. Returns when its last bit is out, rounded up
    /// to a whole microsecond; while the stage is stopped, never.
    pub(crate) fn serve(&mut self, now: u64, bytes: u64) -> u64 {
        if let Some(left) = &mut self.stopped {
            *left += u128::from(bytes) * u128::from(WORK);
            return u64::MAX;
        }
        if self.traced.is_some() {
            return self.serve_traced(now, bytes);
        }
        let Some(rate) = self.rate else { return now };
        if self.free_by() <= now {
            self.close(now);
        }
        if self.memo.0 != bytes {
            let work = bytes * WORK;
            self.memo = (bytes, work / rate, work % rate);
        }
        let (_, whole, part) = self.memo;
        self.append(rate, whole, part)
    }

    /// Accepts a packet of `bytes` at the very instant, `now`, at which the one before it was out. Returns when its last bit is.
    pub(crate) fn serve_next(&mut self, now: u64, bytes: u64) -> u64 {
        let work = bytes * WORK;
        match self.rate {
            _ if self.stopped.is_some() => self.serve(now, bytes),
            _ if self.traced.is_some() => self.append_traced(now, u128::from(work)),
            None => now,
            Some(rate) => self.append(rate, work / rate, work % rate),
        }
    }

    /// The same where the rate follows a trace.
    #[cold]
    fn serve_traced(&mut self, now: u64, bytes: u64) -> u64 {
        if self.free <= now {
            self.close(now);
        }
        let Some(traced) = &mut self.traced else { return now };
        traced.until = traced.until.max(traced.trace.work(now));
        self.append_traced(now, u128::from(bytes) * u128::from(WORK))
    }

    /// Time spent sending since the beginning, in microseconds, rounded down; where the rate follows a trace, time in which there was
    /// something to send.
    pub(crate) fn busy(&self, now: u64) -> u64 {
        let Some(rate) = self.rate else { return self.closed.0 };
        let (whole, part) = if self.free_by() <= now { (self.free, self.part) } else { (now, 0) };
        self.closed.0 + whole.saturating_sub(self.since) + u64::from(self.closed.1 + part >= rate.get())
    }

    /// Changes the rate at `now`. `waiting` are the bytes of each packet not yet out, in order, with its departure,
    /// which is put right; `total` is the sum of those bytes. What is left of the packet in service is sent at the new
    /// rate.
    pub(crate) fn change<'q>(
        &mut self,
        now: u64,
        rate: Rate,
        total: u128,
        waiting: impl Iterator<Item = (u64, &'q mut u64)>,
    ) {
        let stopped = self.stopped;
        let left = stopped.unwrap_or_else(|| self.left(now));
        self.pause_at(now);
        (self.rate, self.traced) = (per_second(rate), None);
        if stopped.is_none() {
            self.go(now, left, total, waiting);
        }
    }

    /// Sends nothing from `now` on. `waiting` are the departures of all packets not yet out.
    pub(crate) fn stop<'q>(&mut self, now: u64, waiting: impl Iterator<Item = &'q mut u64>) {
        if self.stopped.is_none() {
            self.stopped = Some(self.left(now));
            self.pause_at(now);
            waiting.for_each(|departs| *departs = u64::MAX);
        }
    }

    /// Goes on at `now` where it stopped; the others as in [`RateStage::change`].
    pub(crate) fn resume<'q>(&mut self, now: u64, total: u128, waiting: impl Iterator<Item = (u64, &'q mut u64)>) {
        if let Some(left) = self.stopped.take() {
            self.pause_at(now);
            self.go(now, left, total, waiting);
        }
    }

    /// The work accepted and not done at `now`, in bytes times [`WORK`].
    fn left(&mut self, now: u64) -> u128 {
        if let Some(traced) = &mut self.traced {
            return traced.until.saturating_sub(traced.trace.work(now));
        }
        let Some(rate) = self.rate.filter(|_| self.free_by() > now) else { return 0 };
        u128::from(self.free.saturating_sub(now)) * u128::from(rate.get()) + u128::from(self.part)
    }

    /// Ends the busy period at `now`. It keeps its whole microseconds: remainders of two rates do not add up.
    fn pause_at(&mut self, now: u64) {
        self.closed = (self.busy(now), 0);
        (self.since, self.free, self.part, self.memo) = (now, now, 0, (0, 0, 0));
    }

    /// Sends what waits from `now` on; `left` is the work of all of it.
    fn go<'q>(&mut self, now: u64, left: u128, total: u128, waiting: impl Iterator<Item = (u64, &'q mut u64)>) {
        let mut first = Some(left);
        if let Some(traced) = &mut self.traced {
            traced.until = traced.trace.work(now);
        }
        for (bytes, departs) in waiting {
            let behind = (total - u128::from(bytes)) * u128::from(WORK);
            let work = first.take().map_or(bytes * WORK, |left| left.saturating_sub(behind) as u64);
            *departs = match self.rate {
                _ if self.traced.is_some() => self.append_traced(now, u128::from(work)),
                None => now,
                Some(rate) => self.append(rate, work / rate, work % rate),
            };
        }
    }

    fn append_traced(&mut self, now: u64, work: u128) -> u64 {
        if let Some(traced) = &mut self.traced {
            traced.until += work;
            self.free = traced.trace.done(traced.until).max(now);
        }
        self.free
    }

    /// When everything accepted is out, in whole microseconds.
    const fn free_by(&self) -> u64 {
        self.free.saturating_add((self.part > 0) as u64)
    }

    fn append(&mut self, rate: NonZeroU64, whole: u64, part: u64) -> u64 {
        self.free = self.free.saturating_add(whole);
        self.part += part;
        if self.part >= rate.get() {
            self.part -= rate.get();
            self.free = self.free.saturating_add(1);
        }
        self.free_by()
    }

    /// Ends the latest busy period, which is over, and begins one at `now`.
    fn close(&mut self, now: u64) {
        self.closed.0 += self.free - self.since;
        self.closed.1 += self.part;
        if let Some(rate) = self.rate
            && self.closed.1 >= rate.get()
        {
            self.closed.1 -= rate.get();
            self.closed.0 += 1;
        }
        (self.since, self.free, self.part) = (now, now, 0);
    }
}

const fn per_second(rate: Rate) -> Option<NonZeroU64> {
    match rate {
        Rate::Unlimited => None,
        Rate::BitsPerSecond(bits) => NonZeroU64::new(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_add_up_while_busy() {
        let mut stage = RateStage::new(Rate::BitsPerSecond(30_000));
        let departures: Vec<u64> = (0..6).map(|_| stage.serve(0, 94)).collect();
        assert_eq!(departures, [25_067, 50_134, 75_200, 100_267, 125_334, 150_400]);
        assert_eq!(stage.busy(150_400), 150_400);
    }

    #[test]
    fn an_idle_link_begins_afresh_at_a_whole_microsecond() {
        let mut stage = RateStage::new(Rate::BitsPerSecond(30_000));
        assert_eq!(stage.serve(0, 94), 25_067);
        // The first was out a third of a microsecond before: nothing is made up for.
        assert_eq!(stage.serve(25_067, 94), 50_134);
        assert_eq!(stage.serve(50_134, 94), 75_201);
        assert_eq!(stage.serve(100_000, 94), 125_067);
        // Four times 25066.67, each in a period of its own.
        assert_eq!(stage.busy(200_000), 100_266);
        assert_eq!(stage.busy(100_010), 75_210);
    }

    #[test]
    fn rates_far_above_one_bit_per_microsecond_do_not_round_to_nothing() {
        let mut stage = RateStage::new(Rate::BitsPerSecond(10_000_000_000));
        let last = (0..10_000).map(|_| stage.serve(0, 125)).last();
        // 125 B at 10 Gbit/s are 0.1 µs.
        assert_eq!(last, Some(1_000));
        assert_eq!(stage.busy(5_000), 1_000);
    }

    #[test]
    fn the_largest_packet_at_either_end_of_the_rates_stays_in_range() {
        let largest = u64::from(u32::MAX) + i32::MAX as u64;
        let mut slow = RateStage::new(Rate::BitsPerSecond(1));
        assert_eq!(slow.serve(0, largest), largest * WORK);
        for _ in 0..10_000 {
            slow.serve(0, largest);
        }
        assert_eq!(slow.serve(0, largest), u64::MAX);
        let mut fast = RateStage::new(Rate::BitsPerSecond(Rate::HIGHEST));
        assert_eq!(fast.serve(0, largest), 52);
    }

    #[test]
    fn a_stop_takes_as_long_as_it_lasts() {
        // Two packets of 1000 bits at 1000 bit/s; 0.25 s into the first nothing goes for 10 s, and a third comes.
        let mut stage = RateStage::new(Rate::BitsPerSecond(1_000));
        let mut departures = vec![stage.serve(0, 125), stage.serve(0, 125)];
        stage.stop(250_000, departures.iter_mut());
        assert_eq!(departures, [u64::MAX; 2]);
        departures.push(stage.serve(5_000_000, 125));
        assert_eq!(departures[2], u64::MAX);
        assert_eq!(stage.busy(9_000_000), 250_000);
        // Stopped twice is stopped; the rate may change meanwhile.
        stage.stop(6_000_000, departures.iter_mut());
        stage.change(7_000_000, Rate::BitsPerSecond(500), 375, departures.iter_mut().map(|d| (125, d)));
        assert_eq!(departures, [u64::MAX; 3]);
        stage.resume(10_250_000, 375, departures.iter_mut().map(|d| (125, d)));
        assert_eq!(departures, [11_750_000, 13_750_000, 15_750_000]);
        assert_eq!(stage.busy(20_000_000), 250_000 + 5_500_000);
        // One that was idle when it stopped has nothing to make up for.
        stage.stop(30_000_000, std::iter::empty());
        stage.resume(31_000_000, 0, std::iter::empty());
        assert_eq!(stage.serve(31_000_000, 125), 33_000_000);
    }

    #[test]
    fn a_change_of_rate_keeps_the_bits_already_sent() {
        // Two packets of 1000 bits at 1000 bit/s; after 0.25 s the link slows to 100 bit/s.
        let mut stage = RateStage::new(Rate::BitsPerSecond(1_000));
        let mut departures = [stage.serve(0, 125), stage.serve(0, 125)];
        assert_eq!(departures, [1_000_000, 2_000_000]);
        stage.change(250_000, Rate::BitsPerSecond(100), 250, departures.iter_mut().map(|d| (125, d)));
        assert_eq!(departures, [250_000 + 7_500_000, 250_000 + 17_500_000]);
        assert_eq!(stage.busy(20_000_000), 17_750_000);
        let mut rest = [departures[1]];
        stage.change(10_000_000, Rate::Unlimited, 125, rest.iter_mut().map(|d| (125, d)));
        assert_eq!(rest, [10_000_000]);
        assert_eq!(stage.serve(11_000_000, 125), 11_000_000);
        assert_eq!(stage.busy(12_000_000), 10_000_000);
    }
}

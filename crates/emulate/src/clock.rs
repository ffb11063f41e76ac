//! Real time: what a run counts from, and what wakes its loop.

use std::{io, time::Duration};

use millpond_control::Instant;
use mio::Registry;

/// Microseconds since the run began. On Linux it is the clock that timers count on, so that a deadline is absolute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    #[cfg(target_os = "linux")]
    origin: u64,
    #[cfg(not(target_os = "linux"))]
    origin: std::time::Instant,
}

#[cfg(target_os = "linux")]
impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: Self::nanos() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(Self::nanos().saturating_sub(self.origin) / 1_000)
    }

    fn nanos() -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
    }

    /// A point of the run as a point of the clock.
    fn at(&self, point: Instant) -> rustix::time::Timespec {
        // Points beyond some thirty years are one.
        let micros = point.as_micros().min(1_000_000_000_000_000);
        let nanos = self.origin + micros * 1_000;
        // Both fit: the first is at most 10^12, the second below 10^9.
        rustix::time::Timespec { tv_sec: (nanos / 1_000_000_000) as _, tv_nsec: (nanos % 1_000_000_000) as _ }
    }
}

#[cfg(not(target_os = "linux"))]
impl Clock {
    #[expect(clippy::disallowed_methods, reason = "links meet real time here")]
    pub(crate) fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// Wakes a poll at a point in time: on Linux to some microseconds, elsewhere as the poll itself does, which may be a
/// millisecond late.
#[derive(Debug)]
pub(crate) struct Alarm {
    clock: Clock,
    set: Option<Instant>,
    #[cfg(target_os = "linux")]
    timer: std::os::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl Alarm {
    pub(crate) fn new(clock: Clock, registry: &Registry, token: mio::Token) -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        use std::os::fd::AsRawFd;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        registry.register(&mut mio::unix::SourceFd(&timer.as_raw_fd()), token, mio::Interest::READABLE)?;
        Ok(Self { clock, set: None, timer })
    }

    /// Wakes at `point`, and no more at what was set before. Gives how long a poll may last besides.
    pub(crate) fn set(&mut self, point: Option<Instant>) -> io::Result<Option<Duration>> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        if self.set != point {
            let never = Timespec { tv_sec: 0, tv_nsec: 0 };
            let value = point.map_or(never, |point| self.clock.at(point));
            timerfd_settime(
                &self.timer,
                TimerfdTimerFlags::ABSTIME,
                &Itimerspec { it_interval: never, it_value: value },
            )?;
            self.set = point;
        }
        Ok(None)
    }
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    pub(crate) fn new(clock: Clock, _registry: &Registry, _token: mio::Token) -> io::Result<Self> {
        Ok(Self { clock, set: None })
    }

    pub(crate) fn set(&mut self, point: Option<Instant>) -> io::Result<Option<Duration>> {
        self.set = point;
        let now = self.clock.now().as_micros();
        Ok(point.map(|point| Duration::from_micros(point.as_micros().saturating_sub(now))))
    }
}

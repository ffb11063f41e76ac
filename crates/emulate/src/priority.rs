//! As much of the machine's attention as it gives.

use std::time::Duration;

/// What this machine granted, and what it did not.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    /// The thread with the links goes before every ordinary one.
    pub(crate) real_time: bool,
    /// What was not granted, each in a line.
    pub(crate) hindrances: Vec<String>,
    /// Processors' time that a host had taken for itself before the run began.
    taken: Duration,
}

impl Attention {
    /// What was not granted until now.
    pub(crate) fn hindrances(&self) -> Vec<String> {
        let taken = taken().saturating_sub(self.taken);
        let told = format!("the host kept processors of this machine for {:.2} s (steal time)", taken.as_secs_f64());
        self.hindrances.iter().cloned().chain((!taken.is_zero()).then_some(told)).collect()
    }
}

#[cfg(target_os = "linux")]
pub(crate) use rustix::thread::CpuSet as Processors;

/// Elsewhere no thread is bound to any.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) enum Processors {}

/// Asks that this thread goes before every ordinary one and that no memory of the program is paged out. With real-time
/// priority it is bound to one processor; the others that this program may run on are given, if there are some.
#[cfg(target_os = "linux")]
pub(crate) fn raise() -> (Attention, Option<Processors>) {
    use rustix::mm::{MlockAllFlags, mlockall};
    let (real_time, mut hindrances) = (real_time(), Vec::new());
    if !real_time {
        hindrances.push("no real-time priority (needs root or the right CAP_SYS_NICE)".to_owned());
        let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    }
    // What is locked later must be granted too, or memory that is asked for then is refused.
    if rustix::process::getrlimit(rustix::process::Resource::Memlock).current.is_some()
        && !rustix::process::geteuid().is_root()
        || mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).is_err()
    {
        hindrances.push("memory may be paged out (needs root or the right CAP_IPC_LOCK)".to_owned());
    }
    (Attention { real_time, hindrances, taken: taken() }, if real_time { settle() } else { None })
}

/// Lets this thread go before every ordinary one. False if that is not granted.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a call of the system that no safe crate here has")]
fn real_time() -> bool {
    // Low among real-time priorities: above programs, below the kernel's own threads.
    let low: libc::c_int = 10;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // By number, since musl's function of this name refuses always. To the kernel a `sched_param` is one int.
    // SAFETY: it reads the one int that it is handed, which outlives the call; 0 is this thread.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const low) == 0 }
}

/// Binds this thread to one of its processors, and gives the others; none if there is but one. Programs that run at the same
/// time are spread over all of them.
#[cfg(target_os = "linux")]
fn settle() -> Option<Processors> {
    use rustix::thread::{sched_getaffinity, sched_setaffinity};
    let mut others = sched_getaffinity(None).ok()?;
    let all: Vec<_> = (0..Processors::MAX_CPU).filter(|&processor| others.is_set(processor)).collect();
    if all.len() < 2 {
        return None;
    }
    let place = *all.get(std::process::id() as usize % all.len())?;
    let mut own = Processors::new();
    own.set(place);
    others.unset(place);
    sched_setaffinity(None, &own).ok()?;
    Some(others)
}

/// For the thread that stands by for one with real-time priority: the same, on these processors. Where that is refused it is
/// of less use, and of some.
#[cfg(target_os = "linux")]
pub(crate) fn stand_by(on: &Processors) {
    let _ = (real_time(), rustix::thread::sched_setaffinity(None, on));
}

/// Time that the host of this machine gave to others while a processor of it had work, of all its processors since it was
/// started. It is told in hundredths of a second.
#[cfg(target_os = "linux")]
fn taken() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // The first line is of all processors; before it come user, nice, system, idle, waits, interrupts and soft interrupts.
    let ticks = text.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok());
    Duration::from_millis(ticks.unwrap_or(0).saturating_mul(1_000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// Elsewhere nothing is asked for.
#[cfg(not(target_os = "linux"))]
pub(crate) fn raise() -> (Attention, Option<Processors>) {
    let told = "no real-time priority (asked for on Linux alone)".to_owned();
    (Attention { hindrances: vec![told], ..Attention::default() }, None)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn stand_by(_: &Processors) {}

#[cfg(not(target_os = "linux"))]
fn taken() -> Duration {
    Duration::ZERO
}

//! As much of the machine's attention as it gives.

/// Asks that this thread goes before every ordinary one and that no memory of the program is paged out. Gives what was not
/// granted, each in a line.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a call of the system that no safe crate here has")]
pub(crate) fn raise() -> Vec<String> {
    use rustix::mm::{MlockAllFlags, mlockall};
    let mut hindrances = Vec::new();
    // Low among real-time priorities: above programs, below the kernel's own threads.
    let low = libc::sched_param { sched_priority: 10 };
    // SAFETY: it reads the one record that it is handed, which outlives the call; 0 is this thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const low) } != 0 {
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
    hindrances
}

/// Elsewhere nothing is asked for.
#[cfg(not(target_os = "linux"))]
pub(crate) fn raise() -> Vec<String> {
    vec!["no real-time priority (asked for on Linux alone)".to_owned()]
}

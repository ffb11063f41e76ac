//! Runs that call into Python: who they are, how they are interrupted, and that none outlives the interpreter.

use std::ffi::c_long;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// The runs under way. Code that holds the lock must not wait for the interpreter lock.
static RUNS: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
/// One of them has ended.
static ENDED: Condvar = Condvar::new();
/// The interpreter is about to close: no run begins any more.
static CLOSING: AtomicBool = AtomicBool::new(false);

/// A run under way on some thread.
struct Entry {
    thread: c_long,
    cancelled: Arc<AtomicBool>,
}

/// A run that may call into Python. The thread keeps its place in the interpreter as long as this lives.
pub(crate) struct Running {
    thread: c_long,
}

impl Running {
    /// Does something that calls into Python now and then, without holding the interpreter lock in between; `None` if it is
    /// not to begin any more. `cancelled` is what a cancelled batch raises before it interrupts its runs.
    pub(crate) fn during<T: Send>(cancelled: &Arc<AtomicBool>, work: impl FnOnce() -> T + Send) -> Option<T> {
        Python::try_attach(|py| {
            let _running = Self::enter(py, cancelled)?;
            Some(py.detach(work))
        })
        .flatten()
    }

    fn enter(py: Python<'_>, cancelled: &Arc<AtomicBool>) -> Option<Self> {
        // What Python calls the thread; it fits, for that is what PyThreadState_SetAsyncExc takes.
        let ident = py.import("_thread").and_then(|module| module.call_method0("get_ident")).ok()?;
        let thread =
            c_long::from_ne_bytes(ident.cast::<PyInt>().ok()?.extract::<std::ffi::c_ulong>().ok()?.to_ne_bytes());
        let mut runs = runs();
        // Code that cancels from now on finds this run in the list.
        if CLOSING.load(Ordering::Relaxed) || cancelled.load(Ordering::Relaxed) {
            return None;
        }
        runs.push(Entry { thread, cancelled: Arc::clone(cancelled) });
        Some(Self { thread })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        runs().retain(|entry| entry.thread != self.thread);
        ENDED.notify_all();
    }
}

/// Interrupts the runs of a batch that are in the middle of Python code, however long that would go on.
pub(crate) fn interrupt(py: Python<'_>, cancelled: &Arc<AtomicBool>) {
    for entry in runs().iter().filter(|entry| Arc::ptr_eq(&entry.cancelled, cancelled)) {
        entry.interrupt(py);
    }
}

/// Ends all runs and waits until none of them will call into Python any more. To be called before the interpreter closes:
/// afterwards a thread that enters it is lost.
#[pyfunction]
pub(crate) fn stop_all(py: Python<'_>) {
    CLOSING.store(true, Ordering::Relaxed);
    for entry in runs().iter() {
        entry.cancelled.store(true, Ordering::Relaxed);
        entry.interrupt(py);
    }
    py.detach(|| {
        let mut under_way = runs();
        while !under_way.is_empty() {
            under_way = ENDED.wait(under_way).unwrap_or_else(PoisonError::into_inner);
        }
    });
}

impl Entry {
    #[expect(unsafe_code, reason = "the only way to end Python code that does not end by itself")]
    fn interrupt(&self, py: Python<'_>) {
        let exception = py.get_type::<PyKeyboardInterrupt>();
        // SAFETY: the interpreter lock is held, as `py` shows, and the exception outlives the call, which takes a
        // reference of its own. A thread that is no more is passed over.
        unsafe { pyo3::ffi::PyThreadState_SetAsyncExc(self.thread, exception.as_ptr()) };
    }
}

fn runs() -> MutexGuard<'static, Vec<Entry>> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

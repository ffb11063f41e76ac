//! Runs spread over threads. A thread is known to Python only while a run of its calls controllers written in Python.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use millpond_sim::{Options, Outcome, RunError, Scenario, Site, tables};
use pyo3::PyErr;

use crate::columns::{Columns, Tables};
use crate::controllers::{OwnClasses, Running};

/// Finished runs that may wait to be fetched before workers pause.
const WAITING: usize = 64;

/// One run to do.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) own: Arc<OwnClasses>,
    pub(crate) seed: u64,
    pub(crate) run: u32,
}

/// One run that is done: its tables, or one line that says why there are none.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) run: u32,
    pub(crate) tables: Result<Tables, String>,
    /// Every packet as a file, if asked for.
    pub(crate) capture: Option<Vec<u8>>,
    /// What a controller written in Python raised, if that is why.
    pub(crate) cause: Option<PyErr>,
}

/// Threads at work on a list of jobs. Dropping it stops them.
#[derive(Debug)]
pub(crate) struct Workers {
    finished: Mutex<Receiver<Finished>>,
    cancelled: Arc<AtomicBool>,
    done: AtomicBool,
    threads: usize,
}

/// What waiting for a finished run came to.
#[derive(Debug)]
pub(crate) enum Received {
    Finished(Box<Finished>),
    NothingYet,
    NoMore,
}

impl Workers {
    /// Starts `threads` workers (0: as many as this machine runs at once), which take the jobs in their order.
    /// `together`: they are sites that share links.
    pub(crate) fn start(jobs: Vec<Job>, options: Options, threads: usize, together: bool) -> std::io::Result<Self> {
        let wanted = if threads == 0 { thread::available_parallelism().map_or(1, usize::from) } else { threads };
        let threads = wanted.min(jobs.len());
        let (sender, receiver) =
            sync_channel(if options.traces.is_empty() && !options.capture { WAITING } else { threads });
        let cancelled = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared { jobs, options, next: AtomicUsize::new(0), cancelled: Arc::clone(&cancelled) });
        let workers = Self { finished: Mutex::new(receiver), cancelled, done: AtomicBool::new(threads == 0), threads };
        if together && threads > 0 {
            // One of them takes the others along.
            thread::Builder::new().name("millpond".to_owned()).spawn(move || shared.work_together(threads, &sender))?;
            return Ok(workers);
        }
        for _ in 0..threads {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            thread::Builder::new().name("millpond".to_owned()).spawn(move || shared.work(&sender))?;
        }
        Ok(workers)
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Whether every worker has left and every finished run was received.
    pub(crate) fn are_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    /// Asks every worker to stop now. Runs already finished can still be received.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Raised once the workers are to stop.
    pub(crate) fn cancelled(&self) -> &Arc<AtomicBool> {
        &self.cancelled
    }

    pub(crate) fn receive(&self, patience: Duration) -> Received {
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        match finished.recv_timeout(patience) {
            Ok(run) => Received::Finished(Box::new(run)),
            Err(RecvTimeoutError::Timeout) => Received::NothingYet,
            Err(RecvTimeoutError::Disconnected) => {
                self.done.store(true, Ordering::Relaxed);
                Received::NoMore
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// What all workers of a batch look at.
struct Shared {
    jobs: Vec<Job>,
    options: Options,
    next: AtomicUsize,
    cancelled: Arc<AtomicBool>,
}

impl Shared {
    fn work(&self, sender: &SyncSender<Finished>) {
        while !self.cancelled.load(Ordering::Relaxed) {
            let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) else { return };
            let Some(finished) = self.run(job) else { return };
            if sender.send(finished).is_err() {
                return;
            }
        }
    }

    /// Does all jobs, sites of one fleet. A failure is reported for the site that had it, and there are no others.
    #[expect(clippy::disallowed_methods, reason = "the wall clock of a run is measured outside of the simulation")]
    fn work_together(&self, threads: usize, sender: &SyncSender<Finished>) {
        let began = Instant::now();
        let sites: Vec<Site<'_>> =
            self.jobs.iter().map(|job| Site { scenario: &job.scenario, seed: job.seed }).collect();
        let is_cancelled = || self.cancelled.load(Ordering::Relaxed);
        let each = |number: usize, outcome: Outcome| {
            // Of the time that all took together.
            let wall = began.elapsed() / u32::try_from(self.jobs.len()).unwrap_or(u32::MAX).max(1);
            let job = &self.jobs[number];
            let tables = self.tables(job, &outcome, wall);
            // The receiver may wait no more.
            _ = sender.send(Finished { run: job.run, tables, capture: None, cause: None });
        };
        let ended = catch_unwind(AssertUnwindSafe(|| millpond_sim::run_sites(&sites, threads, is_cancelled, each)));
        let (number, told) = match ended {
            Ok(Ok(()) | Err((_, RunError::Cancelled))) => return,
            Ok(Err((number, error))) => (number, error.to_string()),
            Err(panic) => (0, failed(panic.as_ref())),
        };
        let run = self.jobs.get(number).map_or(0, |job| job.run);
        _ = sender.send(Finished { run, tables: Err(told), capture: None, cause: None });
    }

    /// The tables of a run that took so long.
    fn tables(&self, job: &Job, outcome: &Outcome, wall: Duration) -> Result<Tables, String> {
        let wall_us = u64::try_from(wall.as_micros()).unwrap_or(u64::MAX);
        let label = tables::Label { run: job.run, seed: job.seed, wall_us };
        let mut columns = Columns::default();
        tables::write(label, &job.scenario, &self.options, outcome, &mut columns);
        columns.finish().map_err(|error| format!("tables: {error}"))
    }

    /// Does one job; `None` if it was cut short. A panic of the engine is this run's error, not the program's end.
    #[expect(clippy::disallowed_methods, reason = "the wall clock of a run is measured outside of the simulation")]
    fn run(&self, job: &Job) -> Option<Finished> {
        let began = Instant::now();
        let own = job.own.for_a_run();
        let is_cancelled = || self.cancelled.load(Ordering::Relaxed);
        let simulate = || {
            catch_unwind(AssertUnwindSafe(|| {
                millpond_sim::run_with(&job.scenario, job.seed, &self.options, &own, is_cancelled)
            }))
        };
        let ended = if job.own.is_empty() { simulate() } else { Running::during(&self.cancelled, simulate)? };
        let wall = began.elapsed();
        let mut capture = None;
        let tables = match ended {
            Ok(Err(RunError::Cancelled)) => return None,
            // Being interrupted is no failure of a controller.
            Ok(Err(RunError::Controller(_))) if is_cancelled() => return None,
            Ok(Err(error)) => Err(error.to_string()),
            Ok(Ok(mut outcome)) => {
                capture = outcome.capture.take();
                self.tables(job, &outcome, wall)
            }
            Err(panic) => Err(failed(panic.as_ref())),
        };
        Some(Finished { run: job.run, tables, capture, cause: own.cause() })
    }
}

fn failed(panic: &(dyn Any + Send)) -> String {
    let fixed = panic.downcast_ref::<&str>().copied();
    let told = fixed.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    format!("the engine failed, which is a defect of it: {told}")
}

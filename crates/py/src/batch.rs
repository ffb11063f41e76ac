//! Many runs at once: what Python hands in, waits for and gets back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millpond_sim::{Options, TraceKind};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::controllers::interrupt;
use crate::scenario::Scenario;
use crate::table::Table;
use crate::workers::{Finished, Job, Received, Workers};

/// How long a wait goes on before it looks whether the user pressed Ctrl-C.
const GLANCE: Duration = Duration::from_millis(50);

/// Runs spread over worker threads, handed out as they finish.
///
/// Each run depends on its scenario and seed alone: the number of workers changes the order, never a result.
#[pyclass(frozen, module = "millpond._engine")]
#[derive(Debug)]
pub(crate) struct Batch {
    workers: Workers,
    total: usize,
    handed_out: AtomicUsize,
}

#[pymethods]
impl Batch {
    /// Starts the jobs `(scenario, seed, run)` in their order. `workers = 0` uses every core; `capture` keeps every packet
    /// of every run, which is for a few runs at a time. `together`: they are sites that share the links which their scenarios
    /// name as shared, all under way at the same time, with built-in controllers and without traces.
    #[new]
    #[pyo3(signature = (jobs, *, workers = 0, trace = Vec::new(), trace_step_us = 1_000_000, capture = false, together = false))]
    fn new(
        jobs: Vec<(PyRef<'_, Scenario>, u64, u32)>,
        workers: usize,
        trace: Vec<String>,
        trace_step_us: u64,
        capture: bool,
        together: bool,
    ) -> PyResult<Self> {
        let traces = trace.iter().map(|name| name.parse()).collect::<Result<Vec<TraceKind>, _>>();
        let options = Options { traces: traces.map_err(PyValueError::new_err)?, trace_step_us, capture };
        let jobs: Vec<_> = jobs
            .iter()
            .map(|(scenario, seed, run)| Job {
                scenario: Arc::clone(&scenario.inner),
                own: Arc::clone(&scenario.own),
                seed: *seed,
                run: *run,
            })
            .collect();
        let total = jobs.len();
        let is_plain = options.traces.is_empty() && !options.capture && jobs.iter().all(|job| job.own.is_empty());
        if together && !is_plain {
            return Err(PyValueError::new_err(
                "sites that share links have built-in controllers and neither traces nor captures: leave these out",
            ));
        }
        let workers = Workers::start(jobs, options, workers, together)
            .map_err(|error| PyOSError::new_err(format!("cannot start worker threads: {error}")))?;
        Ok(Self { workers, total, handed_out: AtomicUsize::new(0) })
    }

    /// Waits up to `timeout` seconds (`None`: as long as it takes) for the next run that has finished. `None` if none
    /// did, or if none is left. The interpreter lock is released meanwhile; Ctrl-C is noticed at once.
    #[pyo3(signature = (timeout = None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Outcome>> {
        let mut left = match timeout {
            None => Duration::MAX,
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .map_err(|_| PyValueError::new_err(format!("timeout: {seconds} is not a number of seconds")))?,
        };
        loop {
            let glance = left.min(GLANCE);
            match py.detach(|| self.workers.receive(glance)) {
                Received::Finished(finished) => {
                    self.handed_out.fetch_add(1, Ordering::Relaxed);
                    return Ok(Some(Outcome(finished)));
                }
                Received::NoMore => return Ok(None),
                Received::NothingYet => py.check_signals()?,
            }
            left = left.saturating_sub(glance);
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Stops the workers promptly. Runs that had finished can still be fetched; those cut short are as if never begun.
    fn cancel(&self, py: Python<'_>) {
        self.workers.cancel();
        interrupt(py, self.workers.cancelled());
    }

    /// Whether no further run will come.
    #[getter]
    fn done(&self) -> bool {
        self.workers.are_done() || self.finished() == self.total
    }

    /// Runs in all.
    #[getter]
    fn total(&self) -> usize {
        self.total
    }

    /// Runs handed out so far.
    #[getter]
    fn finished(&self) -> usize {
        self.handed_out.load(Ordering::Relaxed)
    }

    /// Threads at work.
    #[getter]
    fn workers(&self) -> usize {
        self.workers.threads()
    }

    fn __repr__(&self) -> String {
        format!("<Batch, {} of {} runs handed out, {} workers>", self.finished(), self.total, self.workers.threads())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.workers.cancel();
        Python::try_attach(|py| interrupt(py, self.workers.cancelled()));
    }
}

/// One run that has finished.
#[pyclass(frozen, module = "millpond._engine")]
#[derive(Debug)]
pub(crate) struct Outcome(Box<Finished>);

#[pymethods]
impl Outcome {
    /// The number that the caller gave the run.
    #[getter]
    fn run(&self) -> u32 {
        self.0.run
    }

    /// Why the run failed, in one line; `None` if it did not.
    #[getter]
    fn error(&self) -> Option<&str> {
        self.0.tables.as_ref().err().map(String::as_str)
    }

    /// What a custom controller raised, if that is why the run failed.
    #[getter]
    fn cause<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.0.cause.as_ref().map(|cause| cause.clone_ref(py).into_value(py).into_bound(py).into_any())
    }

    /// The run's tables by name; none if it failed.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for (name, batch) in self.0.tables.iter().flatten() {
            tables.set_item(name, Table::of(batch.clone()))?;
        }
        Ok(tables)
    }

    /// Every packet as a pcapng file; `None` if it was not asked for or the run failed.
    fn capture<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.capture.as_deref().map(|file| PyBytes::new(py, file))
    }

    fn __repr__(&self) -> String {
        match &self.0.tables {
            Ok(tables) => format!("<Outcome of run {}, {} tables>", self.0.run, tables.len()),
            Err(error) => format!("<Outcome of run {}, failed: {error}>", self.0.run),
        }
    }
}

//! Failures of controllers written in Python, in one line each.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Why a controller cannot go on.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One line with the class, the call and the value.
    pub(crate) told: String,
    /// What Python raised.
    pub(crate) cause: Option<PyErr>,
}

impl Failure {
    /// The failure as an exception of Python, what was raised being its cause.
    pub(super) fn raised(&self, py: Python<'_>) -> PyErr {
        let error = PyValueError::new_err(self.told.clone());
        error.set_cause(py, self.cause.as_ref().map(|cause| cause.clone_ref(py)));
        error
    }
}

/// What went wrong in one call.
pub(super) enum Fault {
    Raised(PyErr),
    /// What the call returned and what is wrong with it, to be read behind "returned".
    Returned(String),
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Fault {
    /// The failure of this call of a controller.
    pub(super) fn told(self, py: Python<'_>, name: &str, call: &str) -> Failure {
        match self {
            Self::Raised(error) => {
                Failure { told: format!("{name}: {call} raised {}", in_one_line(py, &error)), cause: Some(error) }
            }
            Self::Returned(what) => Failure { told: format!("{name}: {call} returned {what}"), cause: None },
        }
    }
}

/// What was raised, and where, if Python knows: `ZeroDivisionError: division by zero (mine.py, line 12)`.
fn in_one_line(py: Python<'_>, error: &PyErr) -> String {
    let told = error.value(py).str().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    let mut line = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    if let Some(first) = told.lines().next().filter(|first| !first.is_empty()) {
        line.push_str(": ");
        line.push_str(first);
    }
    if let Some(place) = place(py, error) {
        line.push_str(&format!(" ({place})"));
    }
    line
}

/// File and line of the innermost frame.
fn place(py: Python<'_>, error: &PyErr) -> Option<String> {
    let frames = py.import("traceback").ok()?.call_method1("extract_tb", (error.traceback(py)?,)).ok()?;
    let frame = frames.get_item(frames.len().ok()?.checked_sub(1)?).ok()?;
    let file: String = frame.getattr("filename").ok()?.extract().ok()?;
    let line: u32 = frame.getattr("lineno").ok()?.extract().ok()?;
    let file = std::path::Path::new(&file).file_name()?.to_str()?.to_owned();
    Some(format!("{file}, line {line}"))
}

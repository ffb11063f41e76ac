//! A custom congestion controller for millpond's laboratory, as a Python module.
//!
//! The controller is in `patient.rs`; here a class of Python hands it over.

mod patient;

use millpond_plugin::{CAPSULE, Plugin};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyCapsule};

use patient::Patient;

/// Waits three seconds at first, then so many times the last certain round-trip time.
#[pyclass(frozen, name = "Patient", module = "own_controller")]
struct Class(Patient);

#[pymethods]
impl Class {
    /// Parameters are settings of a scenario.
    #[new]
    #[pyo3(signature = (times = 4))]
    fn new(times: u32) -> PyResult<Self> {
        if !(1..=100).contains(&times) {
            return Err(PyValueError::new_err(format!("times: {times} is not a whole number from 1 to 100")));
        }
        Ok(Self(Patient::new(times)))
    }

    /// Every peer gets a clone; Python is not asked again.
    fn __millpond__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, Plugin::of(self.0.clone()), CAPSULE)
    }
}

#[pymodule]
mod own_controller {
    #[pymodule_export]
    use super::Class;
}

//! `millpond._engine`, the native module behind the Python package `millpond`.
//!
//! Scenarios go in as text, results come out as Arrow tables, and between the two a batch of runs is spread over
//! worker threads that never hold the interpreter lock. Nothing here knows what a packet or a study is.

mod batch;
mod columns;
mod scenario;
mod table;
mod tables;
mod workers;

use pyo3::prelude::*;

/// The native engine of the laboratory. Use it through the package `millpond`.
#[pymodule]
mod _engine {
    use super::*;

    #[pymodule_export]
    use super::batch::{Batch, Outcome};
    #[pymodule_export]
    use super::scenario::{Scenario, ScenarioError};
    #[pymodule_export]
    use super::table::Table;

    /// The version of the engine, which is the version of the package.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// Every named controller preset as `(name, source)`.
    #[pyfunction]
    fn presets() -> Vec<(&'static str, &'static str)> {
        millpond_control::Preset::ALL.iter().map(|preset| (preset.name(), preset.source())).collect()
    }
}

//! `millpond._engine`, the native module behind the Python package `millpond`.
//!
//! Scenarios go in as text, results come out as Arrow tables, and between the two a batch of runs is spread over
//! worker threads, which hold the interpreter lock only while a controller written in Python is asked. Nothing here knows
//! what a packet or a study is.
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | batch | runs of one plan, spread over threads |
//! | engine | this module; `_engine.pyi` says what it offers |

mod batch;
mod columns;
mod controllers;
mod diagnosis;
mod scenario;
mod table;
mod workers;

use pyo3::{exceptions::PyValueError, prelude::*};

/// The native engine of the laboratory. Use it through the package `millpond`.
#[pymodule]
mod _engine {
    use super::*;

    #[pymodule_export]
    use super::batch::{Batch, Outcome};
    #[pymodule_export]
    use super::controllers::{Controller, Cx, Exchange, Feedback, Sample, View, Wait, Wishes, presets};
    #[pymodule_export]
    use super::diagnosis::diagnose;
    #[pymodule_export]
    use super::scenario::{Group, Scenario, ScenarioError, groups_of, profiles, quantity};
    #[pymodule_export]
    use super::table::Table;

    /// The version of the engine, which is the version of the package.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// The version with the commit that this was built from, where that is known, as `--version` prints it.
    #[pyfunction]
    fn built() -> &'static str {
        millpond_cli::version()
    }

    /// That commit, and whether the sources were as committed.
    #[pyfunction]
    fn commit() -> Option<(&'static str, bool)> {
        millpond_cli::commit()
    }

    /// The verbs that need no laboratory, each with its line of help.
    #[pyfunction]
    fn live_verbs() -> Vec<(String, String)> {
        millpond_cli::verbs()
    }

    /// The same verbs by what they are for.
    #[pyfunction]
    fn verb_groups() -> Vec<(&'static str, Vec<&'static str>)> {
        millpond_cli::GROUPS.iter().map(|(title, verbs)| (*title, verbs.to_vec())).collect()
    }

    /// What they do by default: the controller, its settings, the least wait.
    #[pyfunction]
    fn defaults() -> [(&'static str, String); 2] {
        millpond_cli::defaults()
    }

    /// Of the bytes that a link carries, the share that completes no exchange above which it has collapsed.
    #[pymodule_export]
    const COLLAPSE: f64 = millpond_sim::COLLAPSE;

    /// Runs one of them: `arguments` begin with the program's name. Completions and manual report the `further` verbs of the
    /// program, too: JSON. Gives the exit code.
    #[pyfunction]
    #[pyo3(signature = (arguments, further = None))]
    fn live(py: Python<'_>, arguments: Vec<std::ffi::OsString>, further: Option<&str>) -> PyResult<u8> {
        let further = further.map_or_else(|| Ok(Vec::new()), serde_json::from_str);
        let further = further.map_err(|error| PyValueError::new_err(format!("verbs: {error}")))?;
        Ok(py.detach(|| millpond_cli::main_among(arguments, further)))
    }

    /// Runs that call into Python end before the interpreter does.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let stop_all = wrap_pyfunction!(super::controllers::stop_all, module)?;
        module.py().import("atexit")?.call_method1("register", (stop_all,))?;
        Ok(())
    }
}

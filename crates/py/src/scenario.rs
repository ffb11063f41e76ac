//! A validated scenario, and the one error that a refused one gives.

use std::sync::Arc;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::controllers::OwnClasses;

create_exception!(
    millpond._engine,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run. Its text is one line: the place and the mend."
);

/// A validated scenario. Immutable; cheap to hand to many runs.
#[pyclass(frozen, module = "millpond._engine")]
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) inner: Arc<millpond_sim::Scenario>,
    pub(crate) own: Arc<OwnClasses>,
}

#[pymethods]
impl Scenario {
    /// Reads a scenario from TOML; `origin` names it in errors, as a rule the file's path. `find` is asked for every
    /// controller that is not built in, with its name and settings, and gives a callable that makes one.
    #[staticmethod]
    #[pyo3(signature = (text, origin, find = None))]
    fn from_toml(text: &str, origin: &str, find: Option<&Bound<'_, PyAny>>, py: Python<'_>) -> PyResult<Self> {
        Self::checked(py, millpond_sim::Scenario::from_toml(text, origin), origin, find)
    }

    /// Reads a scenario from JSON, as `to_json` writes it.
    #[staticmethod]
    #[pyo3(signature = (text, origin = "scenario", find = None))]
    fn from_json(text: &str, origin: &str, find: Option<&Bound<'_, PyAny>>, py: Python<'_>) -> PyResult<Self> {
        Self::checked(py, millpond_sim::Scenario::from_json(text, origin), origin, find)
    }

    /// The whole scenario with every default filled in; equal scenarios give equal text.
    fn to_json(&self) -> String {
        self.inner.to_json()
    }

    /// Bytes that one run of it is expected to hold at its peak.
    fn estimated_bytes(&self) -> u64 {
        self.inner.estimated_bytes()
    }

    /// The nodes of its mesh and the tree of a run with this seed: name, place in millimetres, role, parent, hops to
    /// the border router; none without a mesh.
    fn nodes(&self, seed: u64) -> Vec<NodeEntry> {
        let entry = |row: millpond_sim::NodeRow| {
            let parent = row.parent.map(|parent| parent.to_string());
            (row.node.to_string(), row.x_mm, row.y_mm, row.role.to_string(), parent, row.depth)
        };
        self.inner.mesh_nodes(seed).into_iter().map(entry).collect()
    }

    /// Clients of all groups together.
    #[getter]
    fn clients(&self) -> u64 {
        self.inner.client_count()
    }

    /// The line for people.
    #[getter]
    fn title(&self) -> &str {
        &self.inner.title
    }

    fn __repr__(&self) -> String {
        format!("<Scenario {:?}, {} clients>", self.inner.title, self.clients())
    }
}

impl Scenario {
    fn checked(
        py: Python<'_>,
        read: Result<millpond_sim::Scenario, millpond_sim::ScenarioError>,
        origin: &str,
        find: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let scenario = read.map_err(|error| ScenarioError::new_err(error.to_string()))?;
        let own = OwnClasses::find(py, &scenario, find).map_err(|(key, error)| {
            let refused = ScenarioError::new_err(format!("{origin}: {key}: {}", error.value(py)));
            refused.set_cause(py, Some(error));
            refused
        })?;
        Ok(Self { inner: Arc::new(scenario), own: Arc::new(own) })
    }
}

/// Name, place, role, parent, hops.
type NodeEntry = (String, i64, i64, String, Option<String>, u32);

/// Name, title, source, text.
type ProfileRow = (&'static str, String, String, &'static str);

/// Every path that has a name: its name, what it is in one line, where it is described, and its file with the place of
/// every figure.
#[pyfunction]
pub(crate) fn profiles() -> Vec<ProfileRow> {
    let row = |profile: millpond_path::Profile| (profile.name, profile.title, profile.source, profile.text);
    millpond_path::profiles().into_iter().map(row).collect()
}

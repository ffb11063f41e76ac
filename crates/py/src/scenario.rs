//! A validated scenario, and the one error that a refused one gives.

use std::sync::Arc;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use millpond_sim::scenario::{ArrivalProcess, BitRate, Duration, QueueLimit, Size, Transport, Workload};

use crate::controllers::OwnClasses;

create_exception!(
    millpond._engine,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run. Its text is one line: the place and the fix."
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

    /// All groups of flows by their numbers.
    fn groups(&self) -> Vec<Group> {
        groups(&self.inner)
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

/// Flows that are alike: one for each client of a table of a scenario, or what the server sends to each of these.
#[pyclass(frozen, get_all, module = "millpond._engine")]
#[derive(Debug)]
pub(crate) struct Group {
    /// The number of the clients' table.
    table: usize,
    /// Who asks: `requests`, `commands`, `notifications`.
    traffic: &'static str,
    /// The scenario's name for it; empty if it has none.
    name: String,
    /// How many clients.
    count: u32,
    /// How requests travel: `udp`, `tcp`.
    transport: &'static str,
    /// Whether work that it begins by itself, and not after an event, goes on until the run ends.
    starts_endless: bool,
    /// Whether it is never done, because its work goes on until the run ends; that after an event has an end.
    is_endless: bool,
    /// Whether every request follows on the one before, and none on an event.
    is_loop: bool,
}

fn groups(scenario: &millpond_sim::Scenario) -> Vec<Group> {
    let row = |group: millpond_sim::scenario::FlowGroup<'_>| {
        let works = group.clients.workload.all();
        let waits = |work: &Workload| matches!(work.arrivals, ArrivalProcess::AfterEvent { .. });
        let starts_endless = works.iter().any(Workload::is_endless);
        let is_over_tcp = matches!(group.clients.transport, Transport::Tcp(_));
        Group {
            table: group.group,
            traffic: group.traffic.name(),
            name: group.clients.name.clone().unwrap_or_default(),
            count: group.clients.count,
            transport: if is_over_tcp { "tcp" } else { "udp" },
            starts_endless,
            is_endless: starts_endless && !works.iter().any(waits),
            is_loop: !works.is_empty() && works.iter().all(|work| work.is_closed() && !waits(work)),
        }
    };
    scenario.flow_groups().into_iter().map(row).collect()
}

/// All groups of flows of a scenario that results keep, as `to_json` wrote it.
#[pyfunction]
pub(crate) fn groups_of(text: &str) -> PyResult<Vec<Group>> {
    let read = millpond_sim::Scenario::from_json(text, "scenario");
    read.map(|scenario| groups(&scenario)).map_err(|error| ScenarioError::new_err(error.to_string()))
}

/// A quantity as scenarios write it back: a `time`, a `rate`, a limit of a `queue`, a `size`. `written` is JSON.
#[pyfunction]
pub(crate) fn quantity(kind: &str, written: &str) -> PyResult<String> {
    fn again<T: serde::de::DeserializeOwned + serde::Serialize>(written: &str) -> Result<String, serde_json::Error> {
        let told = serde_json::to_value(serde_json::from_str::<T>(written)?)?;
        Ok(told.as_str().map_or_else(|| told.to_string(), ToOwned::to_owned))
    }
    let told = match kind {
        "time" => again::<Duration>(written),
        "rate" => again::<BitRate>(written),
        "queue" => again::<QueueLimit>(written),
        "size" => again::<Size>(written),
        other => return Err(PyValueError::new_err(format!("unknown kind `{other}`: time, rate, queue or size"))),
    };
    told.map_err(|error| {
        let told = error.to_string();
        // one line of JSON has no place that anybody knows
        PyValueError::new_err(told.split(" at line ").next().unwrap_or_default().to_owned())
    })
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

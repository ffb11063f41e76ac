//! What happens while a run goes on.

use serde::{Deserialize, Serialize};

use super::{Arrival, Clients, Duration, ScenarioError, unknown};

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// Clients go down and come back. Their open requests are lost.
    Restart {
        /// When they go down.
        at: Duration,
        /// The group, by its name; left out: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clients: Option<String>,
        /// When they are back, counted from `at`.
        #[serde(default)]
        back: Arrival,
        /// What becomes of congestion-control state and message IDs.
        #[serde(default)]
        memory: Memory,
        /// What becomes of requests that wait in their applications.
        #[serde(default)]
        queue: Queued,
    },
    /// Something happens that clients report: workloads of the kind `after-event` wait for it.
    Alarm {
        /// When.
        at: Duration,
        /// The group, by its name; left out: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clients: Option<String>,
    },
}

/// What becomes of what a client knows of its server when it restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// It starts afresh, with message IDs from another place.
    #[default]
    Lost,
    /// It is kept.
    Kept,
}

/// What becomes of requests that wait when their client restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queued {
    /// They fail.
    #[default]
    Lost,
    /// They are made once it is back.
    Kept,
}

impl Event {
    /// When it happens.
    #[must_use]
    pub const fn at(&self) -> Duration {
        match self {
            Self::Restart { at, .. } | Self::Alarm { at, .. } => *at,
        }
    }

    /// The group that it is for, if not for all.
    #[must_use]
    pub fn clients(&self) -> Option<&str> {
        match self {
            Self::Restart { clients, .. } | Self::Alarm { clients, .. } => clients.as_deref(),
        }
    }

    /// Whether it concerns this group.
    pub(crate) fn concerns(&self, clients: &Clients) -> bool {
        self.clients().is_none_or(|name| clients.name.as_deref() == Some(name))
    }

    pub(super) fn check(
        &self,
        groups: &[Clients],
        end: Duration,
        key: &str,
        origin: &str,
    ) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        let at = self.at();
        if at == Duration(0) {
            return refuse("at", "0 s is the start, where nothing runs yet: write a time after it".to_owned());
        }
        if at >= end {
            return refuse("at", format!("{at} is not before the end of the run ({end})"));
        }
        if let Some(name) = self.clients() {
            let names: Vec<&str> = groups.iter().filter_map(|group| group.name.as_deref()).collect();
            if names.is_empty() {
                return refuse("clients", format!("no group has a name: write name = \"{name}\" in its [[clients]]"));
            }
            if !names.contains(&name) {
                return refuse("clients", unknown("group", name, &names));
            }
        }
        if let Self::Restart { back, .. } = self
            && let Some(problem) = back.problem()
        {
            return refuse("back", problem);
        }
        Ok(())
    }
}

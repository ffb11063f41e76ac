//! What happens while a run goes on.

use serde::{Deserialize, Serialize};

use super::{
    Arrival, Births, BitRate, Clients, Direction, Duplicates, Duration, Loss, Ratio, Scenario, ScenarioError, unknown,
};

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
    /// A link has another rate from now on.
    Rate {
        /// When.
        at: Duration,
        /// The link, by its name.
        link: String,
        /// The new rate.
        rate: BitRate,
    },
    /// A link loses otherwise from now on.
    Loss {
        /// When.
        at: Duration,
        /// The link, by its name.
        link: String,
        /// The new losses.
        loss: Loss,
    },
    /// A link of a mesh delivers another share of its frames from now on, both ways.
    Delivery {
        /// When.
        at: Duration,
        /// The two nodes, by their names.
        between: [String; 2],
        /// The share.
        ratio: Ratio,
    },
    /// Nothing is sent and nothing arrives for a while. What waits and what is under way stays where it is; queues take
    /// packets as long as they have room.
    Outage {
        /// When it begins.
        at: Duration,
        /// How long it lasts.
        #[serde(rename = "for")]
        lasts: Duration,
        /// The link, by its name; left out: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<String>,
    },
    /// The server meets copies of requests otherwise from now on. The responses that it stored it keeps.
    Server {
        /// When.
        at: Duration,
        /// What becomes of them.
        duplicates: Duplicates,
    },
}

/// What becomes of what a client knows of its server when it restarts, or before each of its batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// It starts afresh, after a restart with message IDs from another place.
    #[default]
    Lost,
    /// It starts afresh but for the base round trip, of controllers that keep one.
    BaseRtt,
    /// It is kept.
    Kept,
}

impl Memory {
    pub(crate) fn is_lost(&self) -> bool {
        *self == Self::Lost
    }
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
            Self::Restart { at, .. }
            | Self::Alarm { at, .. }
            | Self::Rate { at, .. }
            | Self::Loss { at, .. }
            | Self::Delivery { at, .. }
            | Self::Outage { at, .. }
            | Self::Server { at, .. } => *at,
        }
    }

    /// The group that it is for, if it is for one.
    #[must_use]
    pub fn clients(&self) -> Option<&str> {
        match self {
            Self::Restart { clients, .. } | Self::Alarm { clients, .. } => clients.as_deref(),
            Self::Rate { .. }
            | Self::Loss { .. }
            | Self::Delivery { .. }
            | Self::Outage { .. }
            | Self::Server { .. } => None,
        }
    }

    /// The link that it is for, if it is for one.
    #[must_use]
    pub fn link(&self) -> Option<&str> {
        match self {
            Self::Rate { link, .. } | Self::Loss { link, .. } => Some(link),
            Self::Outage { link, .. } => link.as_deref(),
            Self::Restart { .. } | Self::Alarm { .. } | Self::Delivery { .. } | Self::Server { .. } => None,
        }
    }

    /// Whether it concerns this group: its clients themselves, not the links that they cross.
    pub(crate) fn concerns(&self, clients: &Clients) -> bool {
        let is_theirs = matches!(self, Self::Restart { .. } | Self::Alarm { .. });
        is_theirs && self.clients().is_none_or(|name| clients.name.as_deref() == Some(name))
    }

    /// What it makes of a link's description, if that changes.
    pub(crate) fn applied_to(&self, direction: &Direction) -> Option<Direction> {
        match self {
            Self::Rate { rate, .. } => Some(Direction { rate: *rate, ..direction.clone() }),
            Self::Loss { loss, .. } => Some(Direction { loss: loss.clone(), ..direction.clone() }),
            Self::Restart { .. }
            | Self::Alarm { .. }
            | Self::Delivery { .. }
            | Self::Outage { .. }
            | Self::Server { .. } => None,
        }
    }

    pub(super) fn check(&self, scenario: &Scenario, key: &str, origin: &str) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        let (at, end) = (self.at(), scenario.run.end());
        if at == Duration(0) {
            return refuse("at", "0 s is the start, where nothing runs yet: write a time after it".to_owned());
        }
        if at >= end {
            return refuse("at", format!("{at} is not before the end of the run ({end})"));
        }
        if let Some(name) = self.clients() {
            let names: Vec<&str> = scenario.clients.iter().filter_map(|group| group.name.as_deref()).collect();
            if names.is_empty() {
                return refuse("clients", format!("no group has a name: write name = \"{name}\" in its [[clients]]"));
            }
            if !names.contains(&name) {
                return refuse("clients", unknown("group", name, &names));
            }
        }
        if let Some(name) = self.link() {
            let links = scenario.links();
            let Some((_, direction)) = links.iter().find(|(known, _)| *known == name) else {
                let known: Vec<&str> = links.iter().map(|(name, _)| *name).collect();
                return refuse("link", unknown("link", name, &known));
            };
            if let Some(changed) = self.applied_to(direction) {
                changed.check(key, origin)?;
            }
        }
        match self {
            Self::Restart { back, .. } => match back.problem() {
                Some(problem) => refuse("back", problem),
                None => Ok(()),
            },
            Self::Outage { lasts: Duration(0), .. } => {
                refuse("for", "an outage of 0 s is none: write how long it lasts".to_owned())
            }
            Self::Delivery { .. } if scenario.mesh.is_none() => {
                refuse("kind", "only a [mesh] has links with a delivery ratio: write `loss` for others".to_owned())
            }
            Self::Alarm { clients, .. } if !scenario.clients.iter().any(|group| waits(group, clients.as_deref())) => {
                refuse("kind", "nobody waits for this alarm: write workload = \"after-event\" in [[clients]] or its commands, or leave it out".to_owned())
            }
            Self::Alarm { .. }
            | Self::Rate { .. }
            | Self::Loss { .. }
            | Self::Delivery { .. }
            | Self::Outage { .. }
            | Self::Server { .. } => Ok(()),
        }
    }
}

/// Whether an alarm in the group of that name, or in any, makes these clients or the server that commands them ask.
fn waits(group: &Clients, name: Option<&str>) -> bool {
    let commands = group.commands.iter().map(|commands| &commands.workload);
    let notifications = group.notifications.iter().map(|notifications| &notifications.workload);
    let mut workloads = std::iter::once(&group.workload).chain(commands).chain(notifications);
    name.is_none_or(|name| group.name.as_deref() == Some(name))
        && workloads.any(|workloads| {
            workloads.all().iter().any(|workload| matches!(workload.births, Births::AfterEvent { .. }))
        })
}

//! What happens while a run goes on.

use serde::{Deserialize, Serialize};

use super::{
    Arrival, ArrivalProcess, BitRate, Clients, Direction, Duplicates, Duration, Loss, Ratio, Scenario, ScenarioError,
    Trace, unknown,
};

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// Clients go down and come back. Their open requests are lost.
    Restart {
        /// When they go down.
        at: Duration,
        /// After how long it comes again, and so on until the run ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<Duration>,
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
        /// After how long it comes again, and so on until the run ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<Duration>,
        /// The group, by its name; left out: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clients: Option<String>,
    },
    /// A link has another rate from now on.
    Rate {
        /// When.
        at: Duration,
        /// After how long it comes again, and so on until the run ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<Duration>,
        /// The link, by its name.
        link: String,
        /// The new rate.
        rate: BitRate,
    },
    /// A link loses otherwise from now on.
    Loss {
        /// When.
        at: Duration,
        /// After how long it comes again, and so on until the run ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<Duration>,
        /// The link, by its name.
        link: String,
        /// The new losses.
        loss: Loss,
    },
    /// A link of a mesh delivers another share of its frames from now on, both ways.
    Delivery {
        /// When.
        at: Duration,
        /// After how long it comes again, and so on until the run ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<Duration>,
        /// The two nodes, by their names.
        between: [String; 2],
        /// The share.
        ratio: Ratio,
    },
    /// Nothing is sent for a while. What waits stays where it is, and queues take packets as long as they have room.
    Outage {
        /// When it begins.
        at: Duration,
        /// After how long it comes again, and so on until the run ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<Duration>,
        /// How long it lasts.
        #[serde(rename = "for")]
        lasts: Duration,
        /// The link, by its name; left out: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<String>,
        /// What becomes of packets that have left their queue.
        #[serde(default, skip_serializing_if = "InFlight::is_delayed")]
        in_flight: InFlight,
    },
    /// The server meets copies of requests otherwise from now on. The responses that it stored it keeps.
    Server {
        /// When.
        at: Duration,
        /// After how long it comes again, and so on until the run ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<Duration>,
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

/// What becomes of packets that have left their queue when an outage begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InFlight {
    /// Those that are due meanwhile arrive when it is over.
    #[default]
    Delayed,
    /// They arrive when they are due.
    Kept,
    /// They are lost, as by the radio.
    Lost,
}

impl InFlight {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
    fn is_delayed(&self) -> bool {
        *self == Self::Delayed
    }

    pub(crate) const fn model(self) -> millpond_link::InFlight {
        match self {
            Self::Delayed => millpond_link::InFlight::Delayed,
            Self::Kept => millpond_link::InFlight::Kept,
            Self::Lost => millpond_link::InFlight::Lost,
        }
    }
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

    /// After how long it comes again, if it does.
    #[must_use]
    pub const fn every(&self) -> Option<Duration> {
        match self {
            Self::Restart { every, .. }
            | Self::Alarm { every, .. }
            | Self::Rate { every, .. }
            | Self::Loss { every, .. }
            | Self::Delivery { every, .. }
            | Self::Outage { every, .. }
            | Self::Server { every, .. } => *every,
        }
    }

    /// How often it happens before the end.
    pub(super) fn occurrences(&self, end: Duration) -> u64 {
        let every = self.every().filter(|every| every.0 > 0);
        every.map_or(1, |every| end.0.saturating_sub(self.at().0).div_ceil(every.0))
    }

    /// It and those after it, each by itself.
    pub(super) fn repeated(&self, end: Duration) -> impl Iterator<Item = Self> {
        (0..self.occurrences(end)).map(|number| {
            let mut event = self.clone();
            let (Self::Restart { at, every, .. }
            | Self::Alarm { at, every, .. }
            | Self::Rate { at, every, .. }
            | Self::Loss { at, every, .. }
            | Self::Delivery { at, every, .. }
            | Self::Outage { at, every, .. }
            | Self::Server { at, every, .. }) = &mut event;
            at.0 += number * every.take().map_or(0, |every| every.0);
            event
        })
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
        match (self.every(), self) {
            (Some(every), Self::Outage { lasts, .. }) if every <= *lasts => {
                return refuse(
                    "every",
                    format!("{every} is not longer than the outage ({lasts}), which would never end"),
                );
            }
            (Some(Duration(0)), _) => {
                return refuse("every", "0 s is no time between two events: write how long".to_owned());
            }
            _ => {}
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
            let traced = |speaks: fn(&Trace) -> bool| direction.trace.as_ref().is_some_and(speaks);
            match self {
                Self::Rate { .. } if traced(Trace::has_rates) => {
                    return refuse("kind", format!("`{name}` follows a trace, which says its rate: change it there"));
                }
                Self::Loss { .. } if traced(Trace::has_losses) => {
                    return refuse(
                        "kind",
                        format!("`{name}` follows a trace, which says what it loses: change it there"),
                    );
                }
                _ => {}
            }
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
            workloads.all().iter().any(|workload| matches!(workload.arrivals, ArrivalProcess::AfterEvent { .. }))
        })
}

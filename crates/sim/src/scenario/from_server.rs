//! What the server sends by itself to each client of a group: commands, and notifications of what the client observes.
//!
//! Those who ask alike are a group of flows: the clients of a group, or the server for one purpose towards all of them. To
//! the laboratory the latter are described as clients are, only that the server asks and they serve.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{
    ArrivalProcess, Clients, MOST_PAYLOAD, Scenario, ScenarioError, Size, Sizes, Workload, Workloads, clients,
};

/// Requests of the server to each client of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// When they arrive.
    pub workload: Workloads,
    /// Whether they are confirmable.
    #[serde(default = "clients::yes")]
    pub confirmable: bool,
    /// As many as the server holds for one client, as [`Clients::application_queue`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_queue: Option<u32>,
    /// The resource of a client that they are for.
    #[serde(default = "command")]
    pub uri_path: String,
    /// Payload of a command. None makes it a GET, any other a PUT.
    #[serde(default)]
    pub request_payload: Sizes,
    /// Payload of a client's response.
    #[serde(default)]
    pub response_payload: Size,
}

/// Notifications (RFC 7641) of a resource that each client of a group observes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// When the resource changes, counted from a client's registration.
    pub workload: Workloads,
    /// Whether they are confirmable. The first one after a registration is in any case.
    #[serde(default = "clients::yes")]
    pub confirmable: bool,
    /// The resource that is observed.
    #[serde(default = "status")]
    pub uri_path: String,
    /// Payload of a notification, and at its longest of the response to a registration.
    #[serde(default = "sixty")]
    pub payload: Sizes,
}

fn command() -> String {
    "command".to_owned()
}
fn status() -> String {
    "status".to_owned()
}
fn sixty() -> Sizes {
    Sizes::Fixed(Size(60))
}

/// Who asks whom for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// The clients of a group ask the server.
    Requests,
    /// The server asks the clients of a group.
    Commands,
    /// The server notifies the clients of a group.
    Notifications,
}

impl Traffic {
    /// The key that a scenario has for it, and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Commands => "commands",
            Self::Notifications => "notifications",
        }
    }
}

/// Flows that are alike: one for each client of a group.
#[derive(Clone, Debug)]
pub struct FlowGroup<'s> {
    /// What is asked and how, the client.
    pub clients: Cow<'s, Clients>,
    /// The number of the clients' group.
    pub group: usize,
    /// Who asks.
    pub traffic: Traffic,
}

impl FlowGroup<'_> {
    /// The place that describes it in a scenario.
    pub(crate) fn key(&self) -> String {
        match self.traffic {
            Traffic::Requests => format!("clients[{}]", self.group),
            other => format!("clients[{}].{}", self.group, other.name()),
        }
    }

    /// Whether the server asks.
    pub(crate) fn is_of_server(&self) -> bool {
        self.traffic != Traffic::Requests
    }
}

impl Scenario {
    /// All groups of flows by their numbers: those of clients in the scenario's order, then what the server sends to each of
    /// these.
    #[must_use]
    pub fn flow_groups(&self) -> Vec<FlowGroup<'_>> {
        let group = |(group, clients)| FlowGroup { clients: Cow::Borrowed(clients), group, traffic: Traffic::Requests };
        let mut groups: Vec<_> = self.clients.iter().enumerate().map(group).collect();
        for (group, clients) in self.clients.iter().enumerate() {
            let mut add = |traffic, described| {
                let clients = Cow::Owned(Clients {
                    name: clients.name.clone(),
                    count: clients.count,
                    controller: self.server.controller.clone(),
                    exchanges: clients.exchanges,
                    max_retransmit: self.server.max_retransmit,
                    ..described
                });
                groups.push(FlowGroup { clients, group, traffic });
            };
            if let Some(commands) = &clients.commands {
                add(
                    Traffic::Commands,
                    Clients {
                        workload: commands.workload.clone(),
                        confirmable: commands.confirmable,
                        application_queue: commands.application_queue,
                        uri_path: commands.uri_path.clone(),
                        request_payload: commands.request_payload,
                        nstart: self.server.nstart,
                        token_length: self.server.token_length,
                        protection: clients.protection,
                        ..Clients::plain()
                    },
                );
            }
            if let Some(notifications) = &clients.notifications {
                add(
                    Traffic::Notifications,
                    Clients {
                        workload: notifications.workload.clone(),
                        confirmable: notifications.confirmable,
                        uri_path: notifications.uri_path.clone(),
                        request_payload: notifications.payload,
                        token_length: clients.token_length,
                        ..Clients::plain()
                    },
                );
            }
        }
        groups
    }

    pub(super) fn check_from_server(&self, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: &str, problem: &str| Err(ScenarioError::at_key(origin, key, problem));
        let groups = self.flow_groups();
        let Some(first) = groups.iter().find(|group| group.is_of_server()) else {
            if self.server.controller.is_some() {
                let problem = "the server sends nothing by itself: write `commands` or `notifications` in a group of \
                               [[clients]], or leave this key out";
                return refuse("server.controller", problem);
            }
            return Ok(());
        };
        if self.server.controller.is_none() {
            let problem = format!("missing key: {} are under the server's own, such as `rfc7252`", first.key());
            return refuse("server.controller", &problem);
        }
        if let Some(problem) = clients::copies_problem(self.server.max_retransmit) {
            return refuse("server.max_retransmit", &problem);
        }
        if let Some(problem) = clients::token_problem(self.server.token_length) {
            return refuse("server.token_length", &problem);
        }
        if let Some(problem) = clients::nstart_problem(self.server.nstart, self.server.token_length) {
            return refuse("server.nstart", &problem);
        }
        for flows in groups.iter().filter(|group| group.is_of_server()) {
            self.check_flows(flows, origin)?;
        }
        Ok(())
    }

    /// Whether the server can send this to the clients of a group.
    fn check_flows(&self, flows: &FlowGroup<'_>, origin: &str) -> Result<(), ScenarioError> {
        let (key, told, clients) = (flows.key(), &flows.clients, &self.clients[flows.group]);
        let refuse = |name: &str, problem: &str| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        if !clients.has_exchanges() || !clients.transfer.is_whole() {
            let problem = "clients over TCP, in blocks and in bursts are told nothing: leave this key out";
            return Err(ScenarioError::at_key(origin, &key, problem));
        }
        let has = |is: fn(&Workload) -> bool| told.workload.all().iter().any(is);
        if has(|workload| workload.arrivals == ArrivalProcess::FreshBatches) {
            return refuse("workload", "batches drop congestion-control state, which is a client's to do");
        }
        if told.workload.flights().next().is_some() {
            return refuse("workload", "a handshake is a client's to begin: leave `flights` out");
        }
        if flows.traffic == Traffic::Notifications {
            if has(|workload| !workload.script.is_empty()) {
                return refuse("workload", "a notification has no method and no path of its own: leave `script` out");
            }
            if !told.confirmable && has(|workload| workload.arrivals == ArrivalProcess::Backlog) {
                return refuse("workload", "a backlog waits for answers: write confirmable = true");
            }
            if clients.token_length == 0 {
                let problem = "an observation keeps its token: write token_length = 2";
                return Err(ScenarioError::at_key(origin, &format!("clients[{}].token_length", flows.group), problem));
            }
            if let Some(problem) = told.request_payload.problem() {
                return refuse("payload", &problem);
            }
            if told.request_bytes() > MOST_PAYLOAD {
                return refuse("payload", &format!("it does not fit a datagram (at most {MOST_PAYLOAD} B)"));
            }
        }
        if self.response_payload(flows) > MOST_PAYLOAD {
            return refuse("response_payload", &format!("it does not fit a datagram (at most {MOST_PAYLOAD} B)"));
        }
        told.check(&key, origin, Size(0))
    }

    /// Bytes of payload that come back for a message of these flows.
    pub(crate) fn response_payload(&self, flows: &FlowGroup<'_>) -> u64 {
        let commands = self.clients.get(flows.group).and_then(|clients| clients.commands.as_ref());
        match flows.traffic {
            // Who asks for nothing gets no body.
            Traffic::Requests if flows.clients.workload.all().is_empty() => 0,
            Traffic::Requests => self.body(&flows.clients).0,
            Traffic::Commands => commands.map_or(0, |commands| commands.response_payload.0),
            Traffic::Notifications => 0,
        }
    }
}

//! Scenarios: what is simulated, as a file says it.
//!
//! A scenario is a network (one path, or named links with routes), groups of clients on it and one server. Every key
//! is checked, an unknown one is refused with the nearest legal name, and every default is written out by
//! [`Scenario::to_json`].

mod clients;
mod controllers;
mod cross_traffic;
mod from_server;
mod marks;
mod mesh;
mod network;
mod packets;
mod proxies;
mod relays;
mod responses;
mod security;
mod spread;
mod timeline;
mod timing;
mod transfer;
mod transport;
mod workload;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ledger::MOST_WAITS;

pub use clients::{Batch, Clients, GivesUp, Naming, NearEnd};
pub use controllers::{BuiltChoice, BuiltIn, ControllerChoice, Controllers, OwnChoice, Settings, Value};
pub use cross_traffic::{CrossTraffic, Heading};
pub use from_server::{Commands, FlowGroup, Notifications, Traffic};
pub(crate) use marks::REACTS_NOT;
pub use mesh::{Access, Choose, DeliveryOf, Mesh, ObjectiveFunction, Ratio, Routing, Rpl, Sink, Topology};
pub(crate) use millpond_path::word_or_table;
pub use millpond_path::{
    Aqm, BitRate, Direction, Duration, InputError as ScenarioError, Jitter, Length, Loss, LossAt, LossOf, Order, Path,
    QueueCounts, QueueLimit, Size, Trace, Wifi, unknown,
};
pub use network::{Network, Route};
pub use proxies::Proxy;
pub use relays::{Copies, Relay};
pub use security::Protection;
pub use spread::{Arrival, Sizes, Times};
pub use timeline::{Event, InFlight, Memory, Queued};
pub use transfer::{Blocks, Bursts, Negotiation, Transfer};
pub(crate) use transport::SEGMENT_OVER_DATAGRAM;
pub use transport::{Congestion, DelayedAcks, Recovery, Tcp, TimerRule, Transport};
pub use workload::{
    ArrivalProcess, Flights, Frequency, Method, Periods, Ramp, Retry, Share, Spacing, Step, Workload, Workloads,
};

/// Everything that a run needs, apart from its seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// The path that all clients share; else there is a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
    /// The links and the routes over them; else there is a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// A mesh of radios in place of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<Mesh>,
    /// Nodes that hand packets on, each in front of a link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<Relay>,
    /// Nodes on the way that ask for clients behind them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<Proxy>,
    /// What others send over the same links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross_traffic: Vec<CrossTraffic>,
    /// Groups of clients, at least one.
    pub clients: Vec<Clients>,
    /// The server that all clients ask.
    #[serde(default)]
    pub server: Server,
    /// What happens while the run goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Event>,
    /// How long the run may last.
    #[serde(default)]
    pub run: Run,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Payload of a response, or the body that clients fetch in blocks.
    pub payload: Size,
    /// Payloads of responses of resources that have one of their own, by their paths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, Size>,
    /// Content-Format of a response; 0 (text) is written as an option without value.
    pub content_format: u16,
    /// What becomes of a retransmission of a request.
    pub duplicates: Duplicates,
    /// Time from a request to its response.
    pub host_time: Duration,
    /// The options that name a copy which it knows and echoes; the others it ignores. It echoes every token.
    pub echoes: Vec<Echo>,
    /// The congestion controller of what it sends by itself, one state for each client. There if it sends anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerChoice>,
    /// Copies after the first before it gives up what it sent by itself (RFC 7252 §4.8, MAX_RETRANSMIT).
    #[serde(skip_serializing_if = "is_four")]
    pub max_retransmit: u8,
    /// Exchanges of its own that it may have open at once with one client (RFC 7252 §4.7, NSTART).
    #[serde(skip_serializing_if = "clients::is_one")]
    pub nstart: u16,
    /// Bytes of the tokens of its own requests.
    #[serde(skip_serializing_if = "is_none")]
    pub token_length: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_four(copies: &u8) -> bool {
    *copies == clients::four()
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_none(length: &u8) -> bool {
    *length == 0
}

impl Default for Server {
    fn default() -> Self {
        Self {
            payload: Size(60),
            resources: BTreeMap::new(),
            content_format: 0,
            duplicates: Duplicates::default(),
            host_time: Duration(0),
            echoes: Echo::ALL.to_vec(),
            controller: None,
            max_retransmit: clients::four(),
            nstart: clients::one(),
            token_length: 0,
        }
    }
}

/// An option that names a copy of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Echo {
    /// Its number.
    Count,
    /// Whether it is a further one.
    Flag,
    /// When it left.
    Timestamp,
}

impl Echo {
    const ALL: [Self; 3] = [Self::Count, Self::Flag, Self::Timestamp];
}

/// What a server does with a retransmission of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicates {
    /// It repeats the stored response (RFC 7252 §4.5).
    #[default]
    Stored,
    /// It answers as if the request were the first.
    Afresh,
    /// It repeats the stored response, unless that is still on its way through a queue (docs/calm-server.md).
    Calm,
}

/// Limits of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// When the run ends at the latest, in simulated time. Clients that are not done by then are counted as unfinished.
    pub until: Duration,
    /// The run lasts exactly this long; what is open then has not finished. Left out: until all clients are done.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Duration>,
    /// Requests that arrived before this are left out of all counts of requests and exchanges, and what links and nodes did before
    /// it out of theirs.
    #[serde(skip_serializing_if = "is_zero")]
    pub warm_up: Duration,
}

fn is_zero(time: &Duration) -> bool {
    time.0 == 0
}

impl Run {
    /// When it ends at the latest.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.lasts.unwrap_or(self.until)
    }
}

impl Default for Run {
    fn default() -> Self {
        Self { until: Duration(86_400_000_000), lasts: None, warm_up: Duration(0) }
    }
}

/// The largest payload of a response, and the longest request: what a datagram of 64 KiB leaves for them.
const MOST_PAYLOAD: u64 = 65_000;
/// The largest body: what 2^20 blocks of 16 bytes hold.
const MOST_BODY: Size = Size(1 << 24);
/// The longest a server may think: after that it would send an empty acknowledgement first, which no workload here models.
const MOST_HOST_TIME: Duration = Duration(1_000_000);
/// Every exchange of a run has a number of 32 bits.
const MOST_EXCHANGES: u64 = u32::MAX as u64;

impl Scenario {
    /// Reads and checks a scenario. `origin` names the source in errors.
    ///
    /// # Errors
    /// One line with the place and the fix.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Self =
            toml::from_str(text).map_err(|error| ScenarioError::from_toml(origin, text, &error))?;
        scenario.count_clients();
        scenario.check(origin)?;
        scenario.repeat_events();
        Ok(scenario)
    }

    /// The same from JSON, as [`to_json`](Self::to_json) writes it.
    ///
    /// # Errors
    /// One line with the place and the fix.
    pub fn from_json(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Self = serde_json::from_str(text).map_err(|error| {
            let told = error.to_string();
            let complaint = told.rsplit_once(" at line").map_or(told.as_str(), |(complaint, _)| complaint);
            ScenarioError::at_line(origin, error.line(), complaint)
        })?;
        scenario.count_clients();
        scenario.check(origin)?;
        scenario.repeat_events();
        Ok(scenario)
    }

    /// Writes out events that come again and again, each with its own time.
    fn repeat_events(&mut self) {
        if self.timeline.iter().any(|event| event.every().is_some()) {
            let end = self.run.end();
            self.timeline = std::mem::take(&mut self.timeline).iter().flat_map(|event| event.repeated(end)).collect();
            self.timeline.sort_by_key(Event::at);
        }
    }

    /// The scenario in one line with every default written out: the same scenario always gives the same text.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Only maps with keys that are not text can fail, and there are none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Every controller that it names, with its place: those of the groups, of the server and of the proxies.
    pub fn controllers(&self) -> impl Iterator<Item = (String, &ControllerChoice)> {
        let numbered = |kind, place, choice| (format!("{kind}[{place}].controller"), choice);
        let groups = self.clients.iter().enumerate();
        let groups =
            groups.filter_map(move |(place, group)| Some(numbered("clients", place, group.controller.as_ref()?)));
        let server = self.server.controller.iter().map(|choice| ("server.controller".to_owned(), choice));
        let proxies = self.proxies.iter().enumerate();
        groups.chain(server).chain(proxies.map(move |(place, proxy)| numbered("proxies", place, &proxy.controller)))
    }

    /// Clients of all groups.
    #[must_use]
    pub fn client_count(&self) -> u64 {
        self.clients.iter().map(|group| u64::from(group.count)).sum()
    }

    /// Exchanges of all clients whose workload has an end in numbers; of a body fetched in blocks each block counts.
    #[must_use]
    pub fn exchange_count(&self) -> u64 {
        let of_group = |group: &FlowGroup<'_>| {
            let clients = &group.clients;
            u64::from(clients.count).saturating_mul(clients.exchanges_for(self.body(clients)).unwrap_or(0))
        };
        self.flow_groups().iter().map(of_group).fold(0, u64::saturating_add)
    }

    /// The longest body of all.
    pub(crate) fn longest_body(&self) -> Size {
        self.clients.iter().map(|group| self.body(group)).max().unwrap_or(self.server.payload)
    }

    /// Roughly the most memory that a run takes, in bytes: what clients, exchanges and full queues need.
    #[must_use]
    pub fn estimated_bytes(&self) -> u64 {
        /// A client with its endpoint, and its entry at the server.
        const CLIENT: u64 = 1_600;
        /// The first wait of an exchange, as long as there are few.
        const EXCHANGE: u64 = 4;
        /// A packet in a queue, beside its bytes.
        const PACKET: u64 = 120;
        /// What the server sends to one client by itself, beside its exchanges, and the client's knowledge of it.
        const FLOW: u64 = 800;
        /// Both ends of a connection.
        const CONNECTION: u64 = 3_000;
        // A client gathers the body; what a server has written and nobody acknowledged is held as well, and what waits in
        // the window beyond a gap.
        let bodies = self.clients.iter().map(|group| {
            let body = self.body(group).0;
            let each = match (&group.transport, group.transfer.is_whole()) {
                (Transport::Tcp(_), _) => CONNECTION + 3 * (body + group.longest_payload()),
                (Transport::Udp, false) => 2 * body,
                (Transport::Udp, true) => 0,
            };
            u64::from(group.count).saturating_mul(each)
        });
        let bodies = bodies.fold(0, u64::saturating_add);
        let asked = self.clients.iter().map(Clients::request_bytes).max().unwrap_or(0) + self.header().0;
        let message = |group: &Clients| {
            let body = self.body(group).0;
            match &group.transport {
                Transport::Tcp(tcp) => tcp.mss.0.min(body),
                Transport::Udp => group.transfer.block_size().map_or(body, |size| u64::from(size.bytes()).min(body)),
            }
        };
        let answer = self.clients.iter().map(message).max().unwrap_or(0) + self.header().0 + 16;
        let queue = |direction: &Direction, size: u64| {
            let most = match direction.queue {
                QueueLimit::Bytes(bytes) => bytes / size.max(1),
                QueueLimit::Packets(packets) => packets,
            };
            // No more copies can be under way than all clients can send.
            let copies = self.clients.iter().map(|group| {
                let body = self.body(group).0;
                let each = match &group.transport {
                    Transport::Tcp(tcp) => (body / tcp.mss.0.max(1) + 1).min(tcp.receive_window.0 / tcp.mss.0.max(1)),
                    Transport::Udp => u64::from(group.max_retransmit) + 1,
                };
                u64::from(group.count) * each
            });
            // What others send has no such bound.
            let copies = if self.cross_traffic.is_empty() { copies.sum::<u64>().saturating_mul(4) } else { most };
            most.min(copies).saturating_mul(PACKET + size)
        };
        // A link with a long queue may be crossed either way; of a path it is known which.
        let one_way = |place: usize| self.path.is_some().then_some(if place == 0 { asked } else { answer });
        let longest = |place| one_way(place).unwrap_or(asked.max(answer));
        let links = self.links().into_iter().enumerate();
        let queues = links.map(|(place, (_, link))| queue(link, longest(place))).fold(0, u64::saturating_add);
        let flows: u64 = self.flow_groups().iter().map(|group| u64::from(group.clients.count)).sum();
        (self.client_count() * CLIENT)
            .saturating_add(bodies)
            .saturating_add((flows - self.client_count()).saturating_mul(FLOW))
            .saturating_add(self.exchange_count().min(flows.saturating_mul(MOST_WAITS)).saturating_mul(EXCHANGE))
            .saturating_add(queues)
    }

    fn check(&self, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: &str, problem: String| Err(ScenarioError::at_key(origin, key, problem));
        self.check_network(origin)?;
        self.check_relays(origin)?;
        self.check_proxies(origin)?;
        self.check_cross_traffic(origin)?;
        if self.clients.is_empty() {
            return refuse("clients", "no group of clients: add a table [[clients]]".to_owned());
        }
        self.check_responses(origin)?;
        for (index, group) in self.clients.iter().enumerate() {
            let key = format!("clients[{index}]");
            group.check(&key, origin, self.body(group))?;
        }
        if self.client_count() >= u64::from(u32::MAX) {
            return refuse("clients", format!("{} clients in all; at most {}", self.client_count(), u32::MAX - 1));
        }
        if self.exchange_count() > MOST_EXCHANGES {
            return refuse("clients", format!("{} exchanges in all; at most {MOST_EXCHANGES}", self.exchange_count()));
        }
        if self.server.host_time > MOST_HOST_TIME {
            let time = self.server.host_time;
            return refuse("server.host_time", format!("{time} is too long (at most {MOST_HOST_TIME})"));
        }
        self.check_from_server(origin)?;
        self.check_protection(origin)?;
        self.check_marks(origin)?;
        self.check_queues(origin)?;
        if self.run.until.0 == 0 {
            return refuse("run.until", "0 s leaves no time for anything: write at least `1 s`".to_owned());
        }
        self.check_time(origin)
    }
}

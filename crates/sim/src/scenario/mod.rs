//! Scenarios: what is simulated, as a file says it.
//!
//! A scenario is one shared path (an uplink and a downlink), groups of clients behind it and one server. Every key
//! is checked, an unknown one is refused with the nearest legal name, and every default is written out by
//! [`Scenario::to_json`].

mod controllers;
mod error;
mod links;
mod quantity;

use serde::{Deserialize, Serialize};

pub use controllers::ControllerChoice;
pub use error::ScenarioError;
pub use quantity::{BitRate, Duration, QueueLimit, Size};

/// Everything that a run needs, apart from its seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// The shared path.
    pub path: Path,
    /// Groups of clients, at least one.
    pub clients: Vec<Clients>,
    /// The server that all clients ask.
    #[serde(default)]
    pub server: Server,
    /// How long the run may last.
    #[serde(default)]
    pub run: Run,
}

/// The path that all clients share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Bytes of IP and UDP header in front of every CoAP message.
    #[serde(default = "default_header")]
    pub header: Size,
    /// From the clients to the server.
    pub uplink: Direction,
    /// From the server to the clients.
    pub downlink: Direction,
}

/// One direction of the path: a queue, a rate, a delay, losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// The rate of the bottleneck.
    pub rate: BitRate,
    /// Propagation delay after the last bit has left.
    pub delay: Duration,
    /// The one queue of this direction; the packet in service counts.
    pub queue: QueueLimit,
    /// Extra delay, drawn for each packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Radio loss.
    #[serde(default)]
    pub loss: Loss,
    /// Whether a lost packet has used the queue and the link.
    #[serde(default)]
    pub loss_at: LossAt,
    /// Bytes that the link adds to each packet, such as an Ethernet header.
    #[serde(default)]
    pub overhead: Size,
}

/// Extra delay of a packet, uniform between two lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// The least.
    pub from: Duration,
    /// The most.
    pub to: Duration,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub order: Order,
}

/// Whether jitter may reorder packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// A packet never arrives before one that left earlier.
    #[default]
    Preserved,
    /// Packets may overtake.
    Free,
}

/// How the radio loses packets. Probabilities are fractions from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// Never.
    #[default]
    None,
    /// Each packet by itself.
    Bernoulli {
        /// Probability of loss.
        rate: f64,
    },
    /// A good and a bad state that alternate in time.
    Markov {
        /// Probability of loss in the good state.
        good_loss: f64,
        /// Probability of loss in the bad state.
        bad_loss: f64,
        /// Mean time in the good state.
        good_dwell: Duration,
        /// Mean time in the bad state.
        bad_dwell: Duration,
    },
    /// A good and a bad state that alternate packet by packet, in netem's order of parameters.
    GilbertElliott {
        /// Probability of going from good to bad.
        p: f64,
        /// Probability of going from bad to good.
        #[serde(default = "one")]
        r: f64,
        /// Probability of loss in the bad state.
        #[serde(default = "one", rename = "1-h")]
        one_minus_h: f64,
        /// Probability of loss in the good state.
        #[serde(default, rename = "1-k")]
        one_minus_k: f64,
    },
}

/// Where on the path the radio loses a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossAt {
    /// After the rate stage: a lost packet has used queue and link.
    #[default]
    AfterRate,
    /// Before the queue: a lost packet uses neither.
    BeforeRate,
}

/// Clients that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// How many.
    pub count: u32,
    /// Their congestion controller.
    pub controller: ControllerChoice,
    /// What they do.
    #[serde(default)]
    pub workload: Workload,
    /// Exchanges of each client.
    #[serde(default = "fifty")]
    pub exchanges: u32,
    /// Sizes of the batches of the random workload.
    #[serde(default)]
    pub batch: Batch,
    /// Clients start evenly spread over this long; zero: all at once.
    #[serde(default)]
    pub start_spread: Duration,
    /// Copies after the first before a client gives up (RFC 7252 §4.8, MAX_RETRANSMIT).
    #[serde(default = "four")]
    pub max_retransmit: u8,
    /// The resource they ask for: segments with slashes between.
    #[serde(default = "hello")]
    pub uri_path: String,
}

/// What a client does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// The next request leaves in the instant the response is accepted.
    #[default]
    Continuous,
    /// The same in batches; all congestion-control state is dropped between two batches.
    Random,
}

/// Sizes of batches: uniform, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The smallest.
    pub from: u32,
    /// The largest.
    pub to: u32,
}

impl Default for Batch {
    fn default() -> Self {
        Self { from: 1, to: 10 }
    }
}

/// The server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Payload of a response.
    pub payload: Size,
    /// Content-Format of a response; 0 (text) is written as an option without value.
    pub content_format: u16,
    /// What becomes of a further copy of a request.
    pub duplicates: Duplicates,
    /// Time from a request to its response.
    pub host_time: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Self { payload: Size(60), content_format: 0, duplicates: Duplicates::default(), host_time: Duration(0) }
    }
}

/// What a server does with a further copy of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicates {
    /// It repeats the stored response (RFC 7252 §4.5).
    #[default]
    Stored,
    /// It answers as if the request were the first.
    Afresh,
}

/// Limits of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// When the run ends at the latest, in simulated time. Clients that are not done by then are counted as unfinished.
    pub until: Duration,
}

impl Default for Run {
    fn default() -> Self {
        Self { until: Duration(86_400_000_000) }
    }
}

fn default_header() -> Size {
    Size(28)
}
fn one() -> f64 {
    1.0
}
fn four() -> u8 {
    4
}
fn fifty() -> u32 {
    50
}
fn hello() -> String {
    "hello".to_owned()
}

/// The largest payload of a response: what a datagram of 64 KiB leaves for it.
const MOST_PAYLOAD: u64 = 65_000;
/// The longest a server may think: after that it would send an empty acknowledgement first, which no workload here models.
const MOST_HOST_TIME: Duration = Duration(1_000_000);
/// Every exchange of a run has a number of 32 bits.
const MOST_EXCHANGES: u64 = u32::MAX as u64;

impl Scenario {
    /// Reads and checks a scenario. `origin` names the source in errors.
    ///
    /// # Errors
    /// One line with the place and the mend.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| ScenarioError::from_toml(origin, text, &error))?;
        scenario.check(origin)?;
        Ok(scenario)
    }

    /// The same from JSON, as [`to_json`](Self::to_json) writes it.
    ///
    /// # Errors
    /// One line with the place and the mend.
    pub fn from_json(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = serde_json::from_str(text).map_err(|error| ScenarioError::from_json(origin, &error))?;
        scenario.check(origin)?;
        Ok(scenario)
    }

    /// The scenario in one line with every default written out: the same scenario always gives the same text.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Only maps with keys that are not text can fail, and there are none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Clients of all groups.
    #[must_use]
    pub fn client_count(&self) -> u64 {
        self.clients.iter().map(|group| u64::from(group.count)).sum()
    }

    /// Exchanges of all clients.
    #[must_use]
    pub fn exchange_count(&self) -> u64 {
        self.clients.iter().map(|group| u64::from(group.count) * u64::from(group.exchanges)).sum()
    }

    /// Roughly the most memory that a run takes, in bytes: what clients, exchanges and full queues need.
    #[must_use]
    pub fn estimated_bytes(&self) -> u64 {
        /// A client with its endpoint, and its entry at the server.
        const CLIENT: u64 = 1_600;
        /// An exchange in the ledger.
        const EXCHANGE: u64 = 32;
        /// A packet in a queue, beside its bytes.
        const PACKET: u64 = 120;
        let answer = self.server.payload.0 + self.path.header.0 + 16;
        let queue = |direction: &Direction, size: u64| {
            let most = match direction.queue {
                QueueLimit::Bytes(bytes) => bytes / size.max(1),
                QueueLimit::Packets(packets) => packets,
            };
            // No more copies can be under way than all clients can send.
            let copies =
                self.clients.iter().map(|group| u64::from(group.count) * (u64::from(group.max_retransmit) + 1));
            most.min(copies.sum::<u64>().saturating_mul(4)).saturating_mul(PACKET + size)
        };
        (self.client_count() * CLIENT)
            .saturating_add(self.exchange_count().saturating_mul(EXCHANGE))
            .saturating_add(queue(&self.path.uplink, 38))
            .saturating_add(queue(&self.path.downlink, answer))
    }

    fn check(&self, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: &str, problem: String| Err(ScenarioError::at_key(origin, key, problem));
        self.path.uplink.check("path.uplink", origin)?;
        self.path.downlink.check("path.downlink", origin)?;
        if self.path.header.0 > 1_000 {
            return refuse(
                "path.header",
                format!("{} is more than any IP and UDP header (at most 1000 B)", self.path.header),
            );
        }
        if self.clients.is_empty() {
            return refuse("clients", "no group of clients: add a table [[clients]]".to_owned());
        }
        for (index, group) in self.clients.iter().enumerate() {
            group.check(&format!("clients[{index}]"), origin)?;
        }
        if self.client_count() >= u64::from(u32::MAX) {
            return refuse("clients", format!("{} clients in all; at most {}", self.client_count(), u32::MAX - 1));
        }
        if self.exchange_count() > MOST_EXCHANGES {
            return refuse("clients", format!("{} exchanges in all; at most {MOST_EXCHANGES}", self.exchange_count()));
        }
        if self.server.payload.0 > MOST_PAYLOAD {
            let payload = self.server.payload;
            return refuse("server.payload", format!("{payload} does not fit a datagram (at most {MOST_PAYLOAD} B)"));
        }
        if self.server.host_time > MOST_HOST_TIME {
            let time = self.server.host_time;
            return refuse("server.host_time", format!("{time} is too long (at most {MOST_HOST_TIME})"));
        }
        if self.run.until.0 == 0 {
            return refuse("run.until", "0 s leaves no time for anything: write at least `1 s`".to_owned());
        }
        Ok(())
    }
}

impl Direction {
    fn check(&self, key: &str, origin: &str) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        let longest = Duration(u64::from(u32::MAX));
        if let Err(error) = self.config().check() {
            return refuse(error.field(), error.to_string());
        }
        if self.delay > longest {
            return refuse("delay", format!("{} is longer than can be told (at most {longest})", self.delay));
        }
        if let Some(jitter) = self.jitter.as_ref().filter(|jitter| jitter.to > longest) {
            return refuse("jitter.to", format!("{} is longer than can be told (at most {longest})", jitter.to));
        }
        if self.overhead.0 > 10_000 {
            return refuse("overhead", format!("{} a packet is too much (at most 10000 B)", self.overhead));
        }
        let fractions: &[(&str, f64)] = match &self.loss {
            Loss::None => &[],
            Loss::Bernoulli { rate } => &[("rate", *rate)],
            Loss::Markov { good_loss, bad_loss, good_dwell, bad_dwell } => {
                for (name, dwell) in [("good_dwell", good_dwell), ("bad_dwell", bad_dwell)] {
                    let shortest = Duration(u64::from(links::SHORTEST_DWELL.as_micros()));
                    if !(shortest..=longest).contains(dwell) {
                        let problem = format!("{dwell} is out of range ({shortest} to {longest})");
                        return refuse(&format!("loss.{name}"), problem);
                    }
                }
                &[("good_loss", *good_loss), ("bad_loss", *bad_loss)]
            }
            Loss::GilbertElliott { p, r, one_minus_h, one_minus_k } => {
                &[("p", *p), ("r", *r), ("1-h", *one_minus_h), ("1-k", *one_minus_k)]
            }
        };
        for (name, fraction) in fractions {
            if !(0.0..=1.0).contains(fraction) {
                let problem = format!("{fraction} is not a probability: write a fraction from 0 to 1");
                return refuse(&format!("loss.{name}"), problem);
            }
        }
        Ok(())
    }
}

impl Clients {
    fn check(&self, key: &str, origin: &str) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        if self.count == 0 {
            return refuse("count", "0 clients send nothing: write at least 1".to_owned());
        }
        if self.exchanges == 0 {
            return refuse("exchanges", "0 exchanges measure nothing: write at least 1".to_owned());
        }
        if self.batch.from == 0 || self.batch.from > self.batch.to {
            return refuse("batch", format!("from {} to {}: write 1 ≤ from ≤ to", self.batch.from, self.batch.to));
        }
        if self.max_retransmit > 60 {
            return refuse("max_retransmit", format!("{} is too many (at most 60)", self.max_retransmit));
        }
        if self.start_spread.0 > u64::from(u32::MAX) {
            return refuse("start_spread", format!("{} is too long (at most 71 min)", self.start_spread));
        }
        if self.uri_path.split('/').any(|segment| segment.len() > 255) || self.uri_path.len() > 1_000 {
            return refuse("uri_path", "a segment has at most 255 bytes, the path at most 1000".to_owned());
        }
        Ok(())
    }
}

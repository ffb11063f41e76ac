//! Packets of others that cross the same links and queues.

use serde::{Deserialize, Serialize};

use super::{BitRate, Duration, QueueLimit, Scenario, ScenarioError, Size, Times, network::check_name, unknown};

/// Senders of UDP that are alike. Each sends packets of one length at a constant rate: all the time, or on and off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossTraffic {
    /// What tables call them.
    pub name: String,
    /// How many send.
    #[serde(default = "one")]
    pub count: u32,
    /// Rate of each while it sends, in bits of IP packets.
    pub rate: BitRate,
    /// Length of a packet, headers included.
    pub packet: Size,
    /// The links that they cross: those of the clients' packets, or of the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Heading>,
    /// Links of a network by their names, one after the other, instead of a direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<String>,
    /// When they begin.
    #[serde(default)]
    pub start: Duration,
    /// When they end; left out, with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// How long each sends, after which it is silent; left out, all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Times>,
    /// How long it is silent. With that it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Times>,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heading {
    /// Towards the server.
    Up,
    /// Towards the clients.
    Down,
}

/// As many senders there may be.
const MOST: u64 = 100_000;
/// The longest packet of IP.
const LONGEST: u64 = 65_535;
/// The shortest mean of a time in which one sends.
const LEAST_ON: Duration = Duration(1_000);

fn one() -> u32 {
    1
}

impl CrossTraffic {
    /// When the packet of this number leaves, in microseconds of the time in which its sender sends.
    pub(crate) fn leaves(&self, number: u64) -> u64 {
        let bits = u128::from(self.packet.0) * 8 * u128::from(number);
        u64::try_from(bits * 1_000_000 / u128::from(self.rate.0.max(1))).unwrap_or(u64::MAX)
    }
}

impl Scenario {
    /// The links that these packets cross, told by their places.
    pub(crate) fn crossed_by(&self, traffic: &CrossTraffic) -> Vec<usize> {
        let links = self.links();
        let names = match (&self.network, traffic.direction) {
            _ if !traffic.route.is_empty() => &traffic.route,
            (Some(network), Some(Heading::Up)) => &network.up,
            (Some(network), _) => &network.down,
            (None, heading) => return vec![usize::from(heading == Some(Heading::Down))],
        };
        names.iter().filter_map(|name| links.iter().position(|(known, _)| known == name)).collect()
    }

    pub(super) fn check_cross_traffic(&self, origin: &str) -> Result<(), ScenarioError> {
        let all: u64 = self.cross_traffic.iter().map(|traffic| u64::from(traffic.count)).sum();
        if all > MOST {
            let problem = format!("{all} senders in all; at most {MOST}");
            return Err(ScenarioError::at_key(origin, "cross_traffic", problem));
        }
        for (index, traffic) in self.cross_traffic.iter().enumerate() {
            let told = self.problem_of(traffic, &self.cross_traffic[..index]);
            if let Some((key, problem)) = told {
                return Err(ScenarioError::at_key(origin, &format!("cross_traffic[{index}].{key}"), problem));
            }
        }
        Ok(())
    }

    /// What is wrong with it, if anything is, and with which key.
    fn problem_of(&self, traffic: &CrossTraffic, before: &[CrossTraffic]) -> Option<(&'static str, String)> {
        let CrossTraffic { name, count, packet, direction, route, start, stop, on, off, .. } = traffic;
        let links = self.links();
        if let Some(problem) = check_name(name) {
            return Some(("name", problem));
        }
        if before.iter().any(|other| other.name == *name) {
            return Some(("name", format!("other traffic is called `{name}` already")));
        }
        if self.mesh.is_some() {
            return Some(("name", "in a [mesh] all packets are of clients: leave [[cross_traffic]] out".to_owned()));
        }
        if *count == 0 {
            return Some(("count", "0 senders send nothing: write at least 1".to_owned()));
        }
        match (direction, &route[..]) {
            (None, []) => return Some(("direction", "missing key: write \"up\" or \"down\"".to_owned())),
            (Some(_), [_, ..]) => {
                return Some(("route", "there is a `direction` already: write one of the two".to_owned()));
            }
            (None, _) if self.network.is_none() => {
                return Some(("route", "a [path] is the one route of all: write `direction`".to_owned()));
            }
            _ => {}
        }
        let known: Vec<&str> = links.iter().map(|(name, _)| *name).collect();
        if let Some(other) = route.iter().find(|name| !known.contains(&name.as_str())) {
            return Some(("route", unknown("link", other, &known)));
        }
        let crossed = self.crossed_by(traffic);
        if crossed.is_empty() || crossed.len() > usize::from(u8::MAX) {
            let count = crossed.len();
            return Some(("direction", format!("{count} links lie in this direction: write `route`, 1 to 255 names")));
        }
        let header = self.header().0;
        if packet.0 < header || packet.0 > LONGEST {
            return Some((
                "packet",
                format!("{packet} is no length of a packet with headers ({header} to {LONGEST} B)"),
            ));
        }
        for (name, link) in crossed.iter().filter_map(|&place| links.get(place)) {
            if let Some(mtu) = link.mtu.filter(|mtu| mtu < packet) {
                return Some(("packet", format!("`{name}` carries none longer than {mtu}: write a shorter one")));
            }
            if let QueueLimit::Bytes(limit) = link.queue
                && limit < packet.0
            {
                return Some(("packet", format!("the queue of `{name}` holds {limit} B and would drop every one")));
            }
        }
        if traffic.leaves(1) == 0 {
            return Some(("rate", format!("{} are more than a packet of {packet} each microsecond", traffic.rate)));
        }
        if stop.is_some_and(|stop| stop <= *start) {
            return Some(("stop", format!("it ends before it begins, at {start}: write a later time")));
        }
        match (on, off) {
            (Some(_), None) => return Some(("off", "missing key: write how long it is silent".to_owned())),
            (None, Some(_)) => return Some(("on", "missing key: write how long it sends".to_owned())),
            _ => {}
        }
        for (key, times) in [("on", on), ("off", off)] {
            if let Some(problem) = times.as_ref().and_then(Times::problem) {
                return Some((key, problem));
            }
        }
        on.as_ref()
            .filter(|on| on.scale() < LEAST_ON)
            .map(|on| ("on", format!("{} is too short to send in: write at least {LEAST_ON}", on.scale())))
    }
}

//! The links of a scenario, and who crosses which of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Aqm, Clients, Direction, Duration, Event, Proxy, Scenario, ScenarioError, Size, Wifi, unknown};

/// Named links and the routes over them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Bytes of IP and UDP header in front of every CoAP message.
    #[serde(default = "default_header")]
    pub header: Size,
    /// The links that packets of the clients cross one after the other, unless their group has a route of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub up: Vec<String>,
    /// The same for packets of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub down: Vec<String>,
    /// What clients share in front of their routes: a channel of IEEE 802.11.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<Wifi>,
    /// Those of the links that all sites of a fleet share. In a run of its own a site has them for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
    /// The links by name. One that stands in both directions of a route is half-duplex: one queue and one rate for both.
    #[serde(default)]
    pub links: BTreeMap<String, Direction>,
}

/// The links between those who ask and whom they ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Route {
    /// Those that packets of who asks cross, one after the other.
    pub up: Vec<String>,
    /// Those that packets back cross.
    pub down: Vec<String>,
}

/// As many links as a packet can count.
const MOST_HOPS: usize = u8::MAX as usize;
/// As many links as have places.
const MOST_LINKS: usize = u16::MAX as usize;

/// The least delay of a link that sites share.
const LEAST_SHARED: Duration = Duration(1_000);

/// IPv4 and UDP.
fn default_header() -> Size {
    Size(28)
}

impl Scenario {
    /// Bytes of IP and UDP header in front of every CoAP message.
    #[must_use]
    pub fn header(&self) -> Size {
        if self.mesh.is_some() {
            return Size(u64::from(crate::network::radio::HEADER));
        }
        match (&self.path, &self.network) {
            (Some(path), _) => path.header,
            (None, Some(network)) => network.header,
            (None, None) => default_header(),
        }
    }

    /// Its links by name, in the order of the rows of a run: of a path the uplink and the downlink, else as their names sort.
    #[must_use]
    pub fn links(&self) -> Vec<(&str, &Direction)> {
        let path = self.path.iter().flat_map(|path| [("uplink", &path.uplink), ("downlink", &path.downlink)]);
        let network = self.network.iter().flat_map(|network| &network.links);
        path.chain(network.map(|(name, link)| (name.as_str(), link))).collect()
    }

    /// The channel that clients share with their access point, if there is one.
    pub(crate) fn wifi(&self) -> Option<&Wifi> {
        let of_path = self.path.as_ref().and_then(|path| path.wifi.as_ref());
        of_path.or_else(|| self.network.as_ref().and_then(|network| network.wifi.as_ref()))
    }

    /// The names of the links that all sites of a fleet share.
    #[must_use]
    pub fn shared(&self) -> &[String] {
        self.network.as_ref().map_or(&[], |network| &network.shared)
    }

    /// Which of its links, told by their places, packets of a group cross: those to the server, and those back.
    pub(crate) fn route(&self, group: usize) -> [Vec<usize>; 2] {
        let Some(network) = &self.network else { return [vec![0], vec![1]] };
        let own = self.clients.get(group).and_then(|group| group.route.as_ref());
        let (up, down) = own.map_or((&network.up, &network.down), |route| (&route.up, &route.down));
        [network.places(up), network.places(down)]
    }

    /// The same for each proxy.
    pub(crate) fn proxy_route(&self, proxy: usize) -> [Vec<usize>; 2] {
        let (Some(network), Some(proxy)) = (&self.network, self.proxies.get(proxy)) else { return Default::default() };
        [network.places(&proxy.route.up), network.places(&proxy.route.down)]
    }

    pub(super) fn check_network(&self, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: &str, problem: &str| Err(ScenarioError::at_key(origin, key, problem));
        if let Some(mesh) = &self.mesh {
            if self.path.is_some() || self.network.is_some() {
                return refuse("mesh", "there is a [path] or a [network] already: write one of the three");
            }
            return self.check_mesh(mesh, origin);
        }
        let place =
            |group: &Clients| if group.at.is_empty() { group.sink.as_ref().map(|_| "sink") } else { Some("at") };
        if let Some((index, key)) =
            self.clients.iter().enumerate().find_map(|(index, group)| Some((index, place(group)?)))
        {
            return refuse(
                &format!("clients[{index}].{key}"),
                "only a [mesh] has nodes with names: leave this key out",
            );
        }
        match (&self.path, &self.network) {
            (Some(_), Some(_)) => refuse("network", "there is a [path] already: write one of the two"),
            (None, None) => {
                refuse("path", "missing key: write [path.uplink] and [path.downlink], or [network], or [mesh]")
            }
            (None, Some(network)) => {
                network.check(&self.clients, &self.proxies, origin)?;
                network.check_shared(&self.timeline, origin)
            }
            (Some(path), None) => {
                if let Some(index) = self.clients.iter().position(|group| group.route.is_some()) {
                    let problem = "a [path] is the one route of all: write [network] with named links instead of it";
                    return refuse(&format!("clients[{index}].route"), problem);
                }
                path.check("path", origin)
            }
        }
    }
}

/// What is wrong with the name of a link or a relay, if anything is.
pub(super) fn check_name(name: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let is_good = !name.is_empty() && name.len() <= 60 && name.chars().all(is_plain);
    (!is_good).then(|| format!("`{name}` is no name: write up to 60 letters, digits, - and _"))
}

impl Network {
    /// The places of links of these names.
    fn places(&self, names: &[String]) -> Vec<usize> {
        names.iter().filter_map(|name| self.links.keys().position(|known| known == name)).collect()
    }

    fn check(&self, groups: &[Clients], proxies: &[Proxy], origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: &str, problem: String| Err(ScenarioError::at_key(origin, key, problem));
        if self.header.0 > 1_000 {
            return refuse(
                "network.header",
                format!("{} is more than any IP and UDP header (at most 1000 B)", self.header),
            );
        }
        if let Some(wifi) = &self.wifi {
            wifi.check("network.wifi", origin)?;
            if !proxies.is_empty() {
                return refuse("network.wifi", "proxies are no stations of it: leave one of the two out".to_owned());
            }
        }
        if self.links.is_empty() || self.links.len() > MOST_LINKS {
            let count = self.links.len();
            let problem = format!("{count} links: add tables [network.links.<name>], from 1 to {MOST_LINKS}");
            return refuse("network.links", problem);
        }
        for (name, link) in &self.links {
            if let Some(problem) = check_name(name) {
                return refuse("network.links", problem);
            }
            link.check(&format!("network.links.{name}"), origin)?;
        }
        let mut used: Vec<&str> = Vec::new();
        let is_common = groups.iter().any(|group| group.route.is_none());
        if is_common || !(self.up.is_empty() && self.down.is_empty()) {
            self.check_route("network", &self.up, &self.down, origin)?;
        }
        if is_common {
            used.extend(self.up.iter().chain(&self.down).map(String::as_str));
        }
        for (index, group) in groups.iter().enumerate() {
            if let Some(Route { up, down }) = &group.route {
                self.check_route(&format!("clients[{index}].route"), up, down, origin)?;
                used.extend(up.iter().chain(down).map(String::as_str));
            }
        }
        for (index, Proxy { route: Route { up, down }, .. }) in proxies.iter().enumerate() {
            self.check_route(&format!("proxies[{index}].route"), up, down, origin)?;
            used.extend(up.iter().chain(down).map(String::as_str));
        }
        if let Some(idle) = self.links.keys().find(|name| !used.contains(&name.as_str())) {
            let problem = "nobody uses this link: name it in a route, or leave it out";
            return refuse(&format!("network.links.{idle}"), problem.to_owned());
        }
        Ok(())
    }

    /// What sites share has a delay, within which they cannot feel each other, and is what it is all the time.
    fn check_shared(&self, timeline: &[Event], origin: &str) -> Result<(), ScenarioError> {
        let refuse = |problem: String| Err(ScenarioError::at_key(origin, "network.shared", problem));
        for (place, name) in self.shared.iter().enumerate() {
            let Some(link) = self.links.get(name) else {
                let known: Vec<&str> = self.links.keys().map(String::as_str).collect();
                return refuse(unknown("link", name, &known));
            };
            if self.shared[..place].contains(name) {
                return refuse(format!("`{name}` stands there twice: write it once"));
            }
            if link.delay.0 < LEAST_SHARED.0 {
                let least = LEAST_SHARED;
                return refuse(format!(
                    "`{name}` has a delay of {}: sites share links of at least {least}",
                    link.delay
                ));
            }
            if link.aqm != Aqm::None {
                return refuse(format!("`{name}` manages its queue, which no link does yet that sites share"));
            }
            if link.trace.is_some() {
                return refuse(format!("`{name}` follows a trace, and what sites share is what it is all the time"));
            }
            let changes = |event: &&Event| match event {
                Event::Rate { link, .. } | Event::Loss { link, .. } => link == name,
                Event::Outage { link, .. } => link.as_ref().is_none_or(|link| link == name),
                Event::Restart { .. } | Event::Alarm { .. } | Event::Delivery { .. } | Event::Server { .. } => false,
            };
            if timeline.iter().any(|event| changes(&event)) {
                return refuse(format!(
                    "the timeline changes `{name}`, which no single site may: name another link there"
                ));
            }
        }
        Ok(())
    }

    fn check_route(&self, key: &str, up: &[String], down: &[String], origin: &str) -> Result<(), ScenarioError> {
        for (way, whose, links) in [("up", "the clients", up), ("down", "the server", down)] {
            let refuse = |problem| Err(ScenarioError::at_key(origin, &format!("{key}.{way}"), problem));
            if links.is_empty() {
                return refuse(format!(
                    "a route that leads nowhere: name the links that packets of {whose} cross, such as {way} = [\"{}\"]",
                    self.links.keys().next().map_or("", String::as_str)
                ));
            }
            if links.len() > MOST_HOPS {
                return refuse(format!("{} links in a row (at most {MOST_HOPS})", links.len()));
            }
            for name in links {
                if !self.links.contains_key(name) {
                    let known: Vec<&str> = self.links.keys().map(String::as_str).collect();
                    return refuse(unknown("link", name, &known));
                }
            }
        }
        Ok(())
    }
}

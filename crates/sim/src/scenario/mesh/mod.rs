//! A mesh of radios: where its nodes stand, what they are, and how their radios work.

mod routing;
mod topology;

use std::collections::BTreeMap;

use millpond_control::{ChanceSeed, Instant};
use serde::{Deserialize, Serialize};

use super::{Clients, Duration, Event, Length, Scenario, ScenarioError, Size, Transport, unknown};
pub use crate::network::radio::Access;
use crate::network::{
    LinkName,
    radio::{self, Delivery, LONGEST_PACKET, Neighbours, Node, Plan, Reach, Rules, Tree, WHOLE},
};
use crate::outcome::NodeRow;
pub use routing::{ObjectiveFunction, Routing, Rpl};
use topology::Laid;
pub use topology::Topology;

/// A mesh in place of links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    /// Where the nodes stand.
    pub topology: Topology,
    /// The node that is the root of the tree. Unless it is named as a sink, or as the place of clients, it only relays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub border_router: Option<String>,
    /// The nodes that answer, in groups with names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sinks: BTreeMap<String, Sink>,
    /// Frames can be received up to here.
    #[serde(default = "topology::ten_metres")]
    pub range: Length,
    /// Reception is disturbed up to here.
    #[serde(default = "twenty_metres")]
    pub interference: Length,
    /// A carrier is sensed up to here; left out, as far as the rule of access does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier_sense: Option<Length>,
    /// The share of frames that a link delivers: one for all, or evenly spaced quantiles.
    #[serde(default = "everything")]
    pub delivery: Vec<Ratio>,
    /// What has a ratio of its own.
    #[serde(default)]
    pub delivery_of: DeliveryOf,
    /// How a node comes to send.
    #[serde(default)]
    pub access: Access,
    /// How often a frame is sent again; with 0 frames are not acknowledged.
    #[serde(default = "three")]
    pub retransmissions: u8,
    /// Frames that a node has room for.
    #[serde(default = "four")]
    pub buffers: u16,
    /// The same at the border router.
    #[serde(default = "eight")]
    pub border_router_buffers: u16,
    /// The least wait after an attempt that failed; of `contiki27` and `contiki26`.
    #[serde(default = "eighth", skip_serializing_if = "is_eighth")]
    pub timebase: Duration,
    /// From the last bit of a packet until its node goes on with it.
    #[serde(default = "two_milliseconds")]
    pub processing: Duration,
    /// From the start of an attempt until its frame is in the radio.
    #[serde(default, skip_serializing_if = "is_none")]
    pub loading: Duration,
    /// Which way packets take.
    #[serde(default, skip_serializing_if = "Routing::is_static")]
    pub routing: Routing,
}

/// Nodes that answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sink {
    /// Their names.
    pub nodes: Vec<String>,
    /// Which of them a node sends to.
    #[serde(default)]
    pub choose: Choose,
}

/// Which of several sinks a node sends to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choose {
    /// The one that is nearest in the plane.
    #[default]
    Nearest,
    /// The one that is farthest away.
    Farthest,
}

/// A share of the frames of a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ratio(#[serde(deserialize_with = "millpond_path::probability")] pub f64);

/// What has a delivery ratio of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryOf {
    /// Every frame.
    #[default]
    EachFrame,
    /// Every link, both ways and for the whole run.
    EachLink,
}

fn twenty_metres() -> Length {
    Length(20_000)
}
fn everything() -> Vec<Ratio> {
    vec![Ratio(1.0)]
}
fn three() -> u8 {
    3
}
fn four() -> u16 {
    4
}
fn eight() -> u16 {
    8
}
fn two_milliseconds() -> Duration {
    Duration(2_000)
}

fn eighth() -> Duration {
    Duration(125_000)
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_eighth(time: &Duration) -> bool {
    *time == eighth()
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_none(time: &Duration) -> bool {
    time.0 == 0
}

/// The longest of ranges.
const LONGEST_RANGE: Length = Length(100_000_000);

/// A mesh whose names have been looked up.
struct Settled {
    laid: Laid,
    border_router: Node,
    /// The nodes of each group of sinks.
    sinks: BTreeMap<String, (Vec<Node>, Choose)>,
}

impl Settled {
    fn node(&self, name: &str) -> Option<Node> {
        self.laid.names.iter().position(|known| known == name).map(|node| node as Node)
    }

    fn role(&self, node: Node) -> Option<&str> {
        if node == self.border_router {
            return Some("border-router");
        }
        self.sinks.iter().find(|(_, (nodes, _))| nodes.contains(&node)).map(|(name, _)| name.as_str())
    }

    /// The sink of a group of sinks that a node sends to.
    fn sink(&self, name: &str, node: Node) -> Option<Node> {
        let (nodes, choose) = self.sinks.get(name)?;
        let place = |node: Node| self.laid.places[node as usize];
        let far = |sink: &&Node| place(node).square(place(**sink));
        match choose {
            Choose::Nearest => nodes.iter().min_by_key(far),
            Choose::Farthest => nodes.iter().max_by_key(far),
        }
        .copied()
    }

    /// The group of sinks that a group of clients sends to.
    fn aim<'a>(&'a self, group: &'a Clients) -> Option<&'a str> {
        match &group.sink {
            Some(name) => self.sinks.contains_key(name).then_some(name),
            None if self.sinks.contains_key("primary") => Some("primary"),
            None if self.sinks.len() == 1 => self.sinks.keys().next().map(String::as_str),
            None => None,
        }
    }

    /// What an event does to a link.
    fn change(&self, event: &Event, share: impl Fn(&Ratio) -> u64) -> Option<(Instant, [Node; 2], u64)> {
        let Event::Delivery { at, between: [a, b], ratio, .. } = event else { return None };
        Some((Instant::from_micros(at.0), [self.node(a)?, self.node(b)?], share(ratio)))
    }

    /// Where the clients of a group are: where it says, else at every node without another role.
    fn nodes_of(&self, group: &Clients) -> Vec<Node> {
        if group.at.is_empty() {
            return (0..self.laid.names.len() as Node).filter(|&node| self.role(node).is_none()).collect();
        }
        group.at.iter().filter_map(|name| self.node(name)).collect()
    }
}

impl Mesh {
    /// Whether its nodes find their tree by RPL.
    pub(crate) fn has_rpl(&self) -> bool {
        !self.routing.is_static()
    }

    /// Looks all names up.
    fn settle(&self) -> Result<Settled, (String, String)> {
        let laid = self.topology.lay().map_err(|(key, problem)| (format!("topology.{key}"), problem))?;
        let names: Vec<&str> = laid.names.iter().map(String::as_str).collect();
        let look_up = |key: &str, name: &str| match names.iter().position(|known| *known == name) {
            Some(node) => Ok(node as Node),
            None => Err((key.to_owned(), unknown("node", name, &names))),
        };
        let Some(router) = self.border_router.as_ref().or(laid.border_router.as_ref()) else {
            let problem = "no border router: write border_router = \"<node>\", the root of the tree";
            return Err(("border_router".to_owned(), problem.to_owned()));
        };
        let border_router = look_up("border_router", router)?;
        let mut sinks = BTreeMap::new();
        for (name, Sink { nodes, choose }) in if self.sinks.is_empty() { &laid.sinks } else { &self.sinks } {
            let key = format!("sinks.{name}");
            if nodes.is_empty() {
                return Err((key, "no node: name those that answer, such as nodes = [\"0\"]".to_owned()));
            }
            let found = nodes.iter().map(|node| look_up(&key, node)).collect::<Result<Vec<_>, _>>()?;
            sinks.insert(name.clone(), (found, *choose));
        }
        if sinks.is_empty() {
            let problem = "no sink: write sinks = { primary = { nodes = [\"<node>\"] } }, nodes that answer";
            return Err(("sinks".to_owned(), problem.to_owned()));
        }
        Ok(Settled { laid, border_router, sinks })
    }

    fn reach(&self) -> Reach {
        // The CC2420 of Cooja 2.6 and 2.7 calls a channel clear only below -95 dBm, which is what disturbs gives as far as it does.
        let sensed = match self.access {
            Access::Contiki27 | Access::Contiki26 => self.range.0.max(self.interference.0.saturating_sub(1)),
            Access::Ieee => self.range.0,
        };
        Reach {
            transmission: self.range.0,
            interference: self.interference.0,
            carrier: self.carrier_sense.map_or(sensed, |length| length.0),
        }
    }

    fn rules(&self, is_border_router: bool) -> Rules {
        Rules {
            access: self.access,
            attempts: if self.retransmissions == 0 { 0 } else { self.retransmissions + 1 },
            buffers: if is_border_router { self.border_router_buffers } else { self.buffers },
            timebase: self.timebase.span(),
            loading: self.loading.span(),
        }
    }

    /// Checks what does not depend on who is where.
    fn check_radio(&self) -> Result<(), (String, String)> {
        let refuse = |key: &str, problem: String| Err((key.to_owned(), problem));
        for (key, length) in [
            ("range", Some(self.range)),
            ("interference", Some(self.interference)),
            ("carrier_sense", self.carrier_sense),
        ] {
            if length.is_some_and(|length| length > LONGEST_RANGE) {
                return refuse(key, format!("more than {LONGEST_RANGE}"));
            }
        }
        if self.range == Length(0) {
            return refuse("range", "0 m reaches nobody: write at least the distance of two nodes".to_owned());
        }
        if self.interference == Length(0) {
            return refuse("interference", "0 m disturbs nobody, not even where frames can be received".to_owned());
        }
        if self.delivery.is_empty() || self.delivery.len() > 1_000 {
            let problem = "write one ratio, [1.0], or up to 1000 quantiles from the least to the greatest";
            return refuse("delivery", problem.to_owned());
        }
        let rising = self.delivery.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        if !rising || !self.delivery.iter().all(|ratio| (0.0..=1.0).contains(&ratio.0)) {
            return refuse("delivery", "write ratios from 0 to 1, from the least to the greatest".to_owned());
        }
        if self.delivery.last().is_some_and(|ratio| ratio.0 <= 0.0) {
            return refuse("delivery", "a link that delivers nothing is none".to_owned());
        }
        if self.retransmissions > 20 {
            return refuse("retransmissions", format!("{} are too many (at most 20)", self.retransmissions));
        }
        for (key, buffers) in [("buffers", self.buffers), ("border_router_buffers", self.border_router_buffers)] {
            if buffers == 0 || buffers > 1_000 {
                return refuse(key, format!("{buffers}: write 1 to 1000 frames"));
            }
        }
        let times = [("timebase", self.timebase), ("processing", self.processing), ("loading", self.loading)];
        if let Some((key, time)) = times.into_iter().find(|(_, time)| time.0 > 1_000_000) {
            return refuse(key, format!("{time} is too long (at most 1 s)"));
        }
        if self.timebase.0 == 0 {
            return refuse("timebase", "0 s is no wait: write at least `1 us`".to_owned());
        }
        self.routing.check(self.retransmissions)
    }

    /// Checks that every node has a place of its own and a way to the border router.
    fn check_places(&self, settled: &Settled) -> Result<(), (String, String)> {
        let refuse = |key: &str, problem: String| Err((key.to_owned(), problem));
        let Laid { names, places, .. } = &settled.laid;
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&node| places[node]);
        if let Some(pair) = order.windows(2).find(|pair| places[pair[0]] == places[pair[1]]) {
            let (a, b) = (&names[pair[0]], &names[pair[1]]);
            return refuse("topology", format!("nodes `{a}` and `{b}` stand in one place: move one of them"));
        }
        let neighbours = Neighbours::new(places, self.reach());
        let seed = ChanceSeed::new(0);
        let tree = Tree::new(places.len(), &neighbours, settled.border_router, seed);
        let cut_off: Vec<&String> =
            (0..names.len()).filter(|&node| tree.depth(node as Node).is_none()).map(|node| &names[node]).collect();
        let Some(first) = cut_off.first() else { return Ok(()) };
        let more = if cut_off.len() > 1 { format!(" and {} more", cut_off.len() - 1) } else { String::new() };
        let fix = match self.topology {
            Topology::Random { .. } => "take another seed, a smaller side or a longer range",
            _ => "bring nodes nearer or write a longer range",
        };
        refuse("topology", format!("no way from node `{first}`{more} to the border router: {fix}"))
    }

    /// Checks that a link of which the timeline speaks is one.
    fn check_link(&self, settled: &Settled, between: &[String; 2]) -> Result<(), String> {
        let known = || settled.laid.names.iter().map(String::as_str).collect::<Vec<_>>();
        let find = |name: &String| settled.node(name).ok_or_else(|| unknown("node", name, &known()));
        let [a, b] = [find(&between[0])?, find(&between[1])?].map(|node| settled.laid.places[node as usize]);
        let is_link = a != b && a.square(b) <= self.range.0 * self.range.0;
        let problem =
            || format!("no link joins `{}` and `{}`: name two nodes within {}", between[0], between[1], self.range);
        is_link.then_some(()).ok_or_else(problem)
    }

    fn check_group(&self, settled: &Settled, key: &str, group: &Clients) -> Result<(), (String, String)> {
        let refuse = |name: &str, problem: String| Err((format!("{key}.{name}"), problem));
        if group.transport != Transport::Udp {
            return refuse("transport", "a mesh carries datagrams: leave this key out".to_owned());
        }
        if group.route.is_some() {
            return refuse("route", "in a mesh the tree says which way packets go: leave this key out".to_owned());
        }
        let from_server = [("commands", group.commands.is_some()), ("notifications", group.notifications.is_some())];
        if let Some((key, _)) = from_server.into_iter().find(|(_, given)| *given) {
            return refuse(key, "in a mesh clients ask and sinks answer: leave this key out".to_owned());
        }
        if let Some(name) = group.at.iter().find(|name| settled.node(name).is_none()) {
            let known: Vec<&str> = settled.laid.names.iter().map(String::as_str).collect();
            return refuse("at", unknown("node", name, &known));
        }
        let Some(aim) = settled.aim(group) else {
            let known: Vec<&str> = settled.sinks.keys().map(String::as_str).collect();
            let problem = match &group.sink {
                Some(name) => unknown("group of sinks", name, &known),
                None => format!("which of the sinks: write sink = \"{}\"", known.first().unwrap_or(&"primary")),
            };
            return refuse("sink", problem);
        };
        let nodes = settled.nodes_of(group);
        if nodes.is_empty() {
            return refuse("at", "every node has another role: name nodes that ask".to_owned());
        }
        if group.count as usize != nodes.len() {
            let (count, nodes) = (group.count, nodes.len());
            return refuse(
                "count",
                format!("{count} clients at {nodes} nodes: leave this key out, there is one at each"),
            );
        }
        if let Some(own) = nodes.iter().find(|node| settled.sink(aim, **node) == Some(**node)) {
            let name = &settled.laid.names[*own as usize];
            return refuse("at", format!("node `{name}` is its own sink: leave it out, or name another sink"));
        }
        Ok(())
    }
}

impl Scenario {
    /// Fills in how many clients there are in groups that do not say: one at each node.
    pub(super) fn count_clients(&mut self) {
        let Some(settled) = self.mesh.as_ref().and_then(|mesh| mesh.settle().ok()) else { return };
        for group in self.clients.iter_mut().filter(|group| group.count == 0) {
            group.count = settled.nodes_of(group).len() as u32;
        }
    }

    pub(super) fn check_mesh(&self, mesh: &Mesh, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: String, problem: String| Err(ScenarioError::at_key(origin, &key, problem));
        let in_mesh = |(key, problem): (String, String)| ScenarioError::at_key(origin, &format!("mesh.{key}"), problem);
        mesh.check_radio().map_err(in_mesh)?;
        let settled = mesh.settle().map_err(in_mesh)?;
        mesh.check_places(&settled).map_err(in_mesh)?;
        for (index, group) in self.clients.iter().enumerate() {
            let told = mesh.check_group(&settled, &format!("clients[{index}]"), group);
            told.map_err(|(key, problem)| ScenarioError::at_key(origin, &key, problem))?;
        }
        for (index, event) in self.timeline.iter().enumerate() {
            let key = |name: &str| format!("timeline[{index}].{name}");
            match event {
                Event::Restart { .. } | Event::Alarm { .. } | Event::Server { .. } => {}
                Event::Delivery { ratio, .. } if !(0.0..=1.0).contains(&ratio.0) => {
                    return refuse(key("ratio"), format!("{}: write a share from 0 to 1", ratio.0));
                }
                Event::Delivery { between, .. } => {
                    let told = mesh.check_link(&settled, between);
                    told.map_err(|problem| ScenarioError::at_key(origin, &key("between"), problem))?;
                }
                Event::Rate { .. } | Event::Loss { .. } | Event::Outage { .. } => {
                    let problem = "a mesh has no links with names: write `delivery` and its two nodes";
                    return refuse(key("kind"), problem.to_owned());
                }
            }
        }
        let asked = self.clients.iter().map(Clients::request_bytes).max().unwrap_or(0);
        let of_group =
            |group: &Clients| group.transfer.block_size().map_or(self.server.payload.0, |s| u64::from(s.bytes()));
        let answered = self.clients.iter().map(of_group).max().unwrap_or(0) + 24;
        for (key, message) in [("clients", asked), ("server.payload", answered)] {
            let packet = u64::from(radio::HEADER) + message;
            if packet > u64::from(LONGEST_PACKET) {
                let most = Size(u64::from(LONGEST_PACKET - radio::HEADER) - 24);
                return refuse(
                    key.to_owned(),
                    format!("a message of {message} B is too long for a mesh (at most {most})"),
                );
            }
            let mut frames = Vec::new();
            radio::frames(packet as u32, &mut frames);
            let needed = frames.len() + usize::from(frames.len() > 1 && mesh.access != Access::Ieee);
            if needed > usize::from(mesh.buffers.min(mesh.border_router_buffers)) {
                let problem = format!("a message of {message} B needs {needed} buffers: write more");
                return refuse("mesh.buffers".to_owned(), problem);
            }
        }
        Ok(())
    }

    /// How long before the run begins the nodes of its mesh are switched on.
    pub(crate) fn idle_start(&self) -> Duration {
        self.mesh.as_ref().map_or(Duration(0), |mesh| mesh.routing.idle_start())
    }

    /// Where the nodes of its mesh stand, what they are, and the tree with which a run with this seed begins: with RPL the one
    /// that they found in the idle start. None without a mesh.
    #[must_use]
    pub fn mesh_nodes(&self, seed: u64) -> Vec<NodeRow> {
        let mesh = self.mesh_plan(&[]);
        mesh.map_or_else(Vec::new, |plan| radio::Mesh::new(plan, ChanceSeed::new(seed), false).nodes())
    }

    /// The mesh for a run whose clients belong to these groups; nothing if the scenario has none.
    pub(crate) fn mesh_plan(&self, groups: &[u32]) -> Option<Plan> {
        let mesh = self.mesh.as_ref()?;
        let settled = mesh.settle().ok()?;
        let mut nodes: Vec<_> = self.clients.iter().map(|group| settled.nodes_of(group).into_iter()).collect();
        let seat = |&group: &u32| {
            let node = nodes.get_mut(group as usize).and_then(Iterator::next).unwrap_or(settled.border_router);
            let aim = self.clients.get(group as usize).and_then(|group| settled.aim(group));
            [node, aim.and_then(|aim| settled.sink(aim, node)).unwrap_or(settled.border_router)]
        };
        let clients = groups.iter().map(seat).collect();
        let count = settled.laid.names.len() as Node;
        // A ratio is kept in units of 2⁻³².
        let share = |ratio: &Ratio| (ratio.0 * WHOLE as f64).round() as u64;
        Some(Plan {
            names: settled.laid.names.iter().map(|name| LinkName::from(name.as_str())).collect(),
            roles: (0..count).map(|node| settled.role(node).unwrap_or("device").into()).collect(),
            reach: mesh.reach(),
            delivery: Delivery::new(
                mesh.delivery.iter().map(share).collect(),
                mesh.delivery_of == DeliveryOf::EachLink,
            ),
            changes: self.timeline.iter().filter_map(|event| settled.change(event, share)).collect(),
            border_router: settled.border_router,
            rpl: mesh.routing.settings(),
            idle: mesh.routing.idle_start().0,
            rules: (0..count).map(|node| mesh.rules(node == settled.border_router)).collect(),
            processing: mesh.processing.span(),
            clients,
            places: settled.laid.places,
        })
    }
}

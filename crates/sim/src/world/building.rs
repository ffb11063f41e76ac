//! How a run begins.

use std::{borrow::Cow, collections::BTreeMap};

use millpond_control::{ChanceSeed, Instant, PeerController};

use super::{Client, Groups, Nodes, World, draws};
use crate::{
    RunError,
    application::Application,
    bodies::BodyDevice,
    calendar::Calendar,
    calls::Callers,
    device::Device,
    evidence::Evidence,
    ledger::Ledger,
    network::Network,
    oscore::Contexts,
    outcome::Books,
    population::{client_endpoint, controllers, datagram, interleave},
    proxy::{self, Proxy},
    scenario::{Controllers, FlowGroup, Scenario, Traffic},
    server::Server,
    stream_end::{StreamClient, StreamServer},
    trace::{Options, Recorder, TraceKind},
    workload::{ClientProfile, Draws},
};

impl<'s> World<'s> {
    /// Everybody and everything, at the beginning.
    pub(crate) fn new(
        scenario: &'s Scenario,
        flows: &'s [FlowGroup<'s>],
        seed: u64,
        options: &Options,
        own: &dyn Controllers,
    ) -> Result<Self, RunError> {
        let seed = ChanceSeed::new(seed);
        let groups = interleave(&scenario.clients);
        let connected = groups.iter().filter(|&&group| !scenario.clients[group as usize].transport.is_udp()).count();
        let mut clients = Vec::with_capacity(groups.len());
        let mut streams = Vec::with_capacity(connected);
        let everybody: usize = flows.iter().map(|group| group.clients.count as usize).sum();
        let mut calendar = Calendar::new(everybody + scenario.proxies.len());
        let mut callers = Callers::new(groups.len());
        let controllers = controllers(flows, own)?;
        let alike = |(clients, controller): (_, &PeerController)| {
            client_endpoint(clients, controller.clone(), datagram(scenario), seed)
        };
        let alike: Vec<_> = scenario.clients.iter().zip(&controllers).map(alike).collect::<Result<_, _>>()?;
        let contexts = Contexts::of(scenario, &groups)?;
        let profiles: Vec<_> = flows.iter().map(|group| ClientProfile::of(scenario, group)).collect();
        for (flow, &group) in groups.iter().enumerate() {
            let described = &scenario.clients[group as usize];
            let flow = flow as u32;
            // Clients of a group share what never changes.
            let endpoint = contexts.protect(flow, alike[group as usize].sibling(flow))?;
            let application = Application::new(&profiles[group as usize], Draws { seed, flow, client: flow });
            calendar.set(flow, application.wakes());
            clients.push(if !described.transfer.is_whole() {
                Client::Bodies(Box::new(BodyDevice::new(endpoint, application, &described.transfer, seed, group)?))
            } else if described.transport.is_udp() {
                Client::Device(Device::new(endpoint, application, group))
            } else {
                streams.push(StreamServer::new(flow));
                Client::Stream(Box::new(StreamClient::new(application, group, streams.len() - 1)))
            });
            let to_it = profiles.iter().enumerate().filter(|(_, profile)| profile.group == group as usize);
            for (group, profile) in to_it.filter(|(_, profile)| profile.traffic != Traffic::Requests) {
                let draws = draws(seed, flow, flow, profile.traffic);
                let mut application = Application::new(profile, draws);
                let notifies = profile.traffic == Traffic::Notifications;
                if notifies {
                    application.unattended(profile, draws);
                }
                let wakes = application.wakes();
                calendar.set(callers.add(flow, group as u32, notifies, application), wakes);
            }
        }
        let asking =
            scenario.proxies.iter().enumerate().map(|(place, described)| proxy::parameters(described, place, own));
        let asking: Vec<_> = asking.collect::<Result<_, _>>()?;
        let proxy = |(place, parameters): (usize, &(_, _))| {
            let number = (everybody + place) as u32;
            Proxy::new(scenario, place, number, seed, parameters.clone(), &controllers, &groups)
        };
        let proxies = asking.iter().enumerate().map(proxy).collect::<Result<Vec<_>, _>>()?;
        let mut nodes = Cow::Borrowed(&groups);
        if !proxies.is_empty() {
            // What the server sends by itself is on no route of its own.
            nodes.to_mut().resize(everybody, 0);
            nodes.to_mut().extend((scenario.clients.len()..).zip(&proxies).map(|(group, _)| group as u32));
        }
        let mut network = Network::new(scenario, seed, &nodes, options.capture)?;
        let idle_start = scenario.idle_start().0;
        let before = if idle_start > 0 { network.warmed_up(Instant::ORIGIN)? } else { Books::default() };
        let exchanges = |group: u32| {
            let profile = &profiles[group as usize];
            (
                group,
                profile
                    .clients
                    .exchanges_for(scenario.body(profile.clients))
                    .map(|known| known + u64::from(profile.registers())),
            )
        };
        let described = groups.iter().copied().chain(callers.groups()).map(exchanges);
        let warm_up = Instant::from_micros(scenario.run.warm_up.0);
        let keeps = options.traces.contains(&TraceKind::Exchanges);
        let mut ledger = Ledger::new(described, flows.len(), keeps, warm_up);
        if let Some(event) = scenario.timeline.first() {
            ledger = ledger.with_arrivals(flows.len(), Instant::from_micros(event.at().0));
        }
        let grouped: Vec<u32> = groups.iter().copied().chain(callers.groups()).collect();
        let called: Vec<_> = callers.clients().collect();
        let mut server = Server::new(scenario, seed, &controllers, &contexts, streams, callers, asking)?;
        for (client, group) in called {
            server.controlled_by(client, &controllers[group as usize])?;
        }
        Ok(Self {
            scenario,
            groups: Groups { described: flows, profiles, controllers, restarted: Vec::new() },
            nodes: Nodes {
                clients,
                remembered: BTreeMap::new(),
                server,
                first_proxy: everybody as u32,
                proxy_of_group: scenario.clients.iter().map(|group| scenario.proxy_of(group)).collect(),
                proxies,
                contexts,
            },
            seed,
            calendar,
            evidence: Evidence::new(flows.len()),
            rec: Recorder::new(options, network.links(), grouped.into_iter()).ahead_by(idle_start),
            ledger,
            network,
            transmissions: 0,
            before,
            unfinished: everybody as u32,
            last: Instant::ORIGIN,
            is_over: false,
        })
    }
}

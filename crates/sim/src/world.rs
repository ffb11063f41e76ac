//! One run: clients and a server on a network in virtual time.
//!
//! Everybody keeps their own timers and has one wake-up. A step takes the earliest, hands over the input and drains. Of
//! those that wake together the network comes first, so that what arrives counts before a timer that runs out; then the
//! server, the clients by number, the server's ends of connections. A run is single-threaded and a pure function of
//! scenario and seed.

use millpond_control::{ChanceSeed, Instant, PeerController, Purpose, Span};

use crate::{
    RunError,
    agenda::Agenda,
    application::{Application, Next},
    burst_ends::{self, BurstDevice},
    device::Device,
    evidence::Evidence,
    ledger::Ledger,
    network::{Load, Network, Packet, SERVER},
    outcome::{Outcome, Summary},
    population::{Ask, client_endpoint, controllers, datagram, interleave},
    scenario::{Clients, Controllers, Scenario},
    server::Server,
    stream_end::{StreamClient, StreamServer},
    trace::{Options, Recorder},
};

/// A client, by what carries its requests.
#[expect(
    clippy::large_enum_variant,
    reason = "runs of very many clients are runs of devices, which are at hand this way"
)]
pub(crate) enum Client {
    Device(Device),
    Stream(Box<StreamClient>),
    Burst(Box<BurstDevice>),
}

impl Client {
    #[inline]
    pub(crate) fn group(&self) -> u32 {
        match self {
            Self::Device(device) => device.group,
            Self::Stream(client) => client.group,
            Self::Burst(device) => device.group,
        }
    }

    #[inline]
    fn application(&mut self) -> &mut Application {
        match self {
            Self::Device(device) => &mut device.application,
            Self::Stream(client) => &mut client.application,
            Self::Burst(device) => &mut device.application,
        }
    }

    /// Drops all congestion-control state; over TCP that is the connection's.
    fn forget(&mut self, now: Instant) {
        match self {
            Self::Device(device) => device.endpoint.forget_controller(now, SERVER),
            Self::Stream(client) => client.hang_up(),
            Self::Burst(device) => device.endpoint.forget_controller(now, SERVER),
        }
    }
}

/// Whose turn it is.
#[derive(Clone, Copy)]
enum Turn {
    Network,
    Server,
    Client(u32),
    /// The server's end of a connection.
    Stream(u32),
}

/// The parts of a run.
pub(crate) struct World<'s> {
    pub(crate) scenario: &'s Scenario,
    pub(crate) seed: ChanceSeed,
    /// The wake-ups of the clients.
    pub(crate) agenda: Agenda,
    /// The request of each group.
    pub(crate) asks: Vec<Ask<'s>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) server: Server,
    pub(crate) network: Network,
    pub(crate) ledger: Ledger,
    pub(crate) evidence: Evidence,
    pub(crate) rec: Recorder,
    pub(crate) transmissions: u64,
    pub(crate) unfinished: u32,
}

impl<'s> World<'s> {
    pub(crate) fn new(
        scenario: &'s Scenario,
        seed: u64,
        options: &Options,
        own: &dyn Controllers,
    ) -> Result<Self, RunError> {
        let seed = ChanceSeed::new(seed);
        let groups = interleave(&scenario.clients);
        let count = groups.len() as u32;
        let connected = groups.iter().filter(|&&group| !scenario.clients[group as usize].transport.is_udp()).count();
        let mut clients = Vec::with_capacity(groups.len());
        let mut streams = Vec::with_capacity(connected);
        let mut agenda = Agenda::new(groups.len());
        let controllers = controllers(&scenario.clients, own)?;
        let alike = |(clients, controller): (_, &PeerController)| {
            client_endpoint(clients, controller.clone(), datagram(scenario), seed)
        };
        let alike: Vec<_> = scenario.clients.iter().zip(&controllers).map(alike).collect::<Result<_, _>>()?;
        for (flow, &group) in groups.iter().enumerate() {
            let described = &scenario.clients[group as usize];
            let flow = flow as u32;
            // Clients of a group share what never changes.
            let endpoint = || alike[group as usize].sibling(flow);
            clients.push(if let Some(options) = burst_ends::options(scenario, described) {
                Client::Burst(Box::new(BurstDevice::new(endpoint(), options, seed, flow, group)))
            } else if described.transport.is_udp() {
                Client::Device(Device::new(endpoint(), group))
            } else {
                streams.push(StreamServer::new(flow));
                Client::Stream(Box::new(StreamClient::new(group, streams.len() - 1)))
            });
            let spread = described.start_spread.span();
            let start = seed.at(Purpose::Start, [flow, 0, 0, 0]).between(Span::ZERO, spread);
            agenda.set(flow, Instant::ORIGIN.after(start));
        }
        let network = Network::new(scenario, seed, &groups, options.capture)?;
        let exchanges =
            groups.iter().map(|&group| scenario.clients[group as usize].exchanges_for(scenario.server.payload) as u32);
        Ok(Self {
            scenario,
            seed,
            agenda,
            asks: scenario.clients.iter().map(Ask::of).collect(),
            ledger: Ledger::new(exchanges),
            evidence: Evidence::new(scenario.clients.len()),
            clients,
            server: Server::new(scenario, seed, count, &controllers, streams)?,
            rec: Recorder::new(options, network.links()),
            network,
            transmissions: 0,
            unfinished: count,
        })
    }

    /// Runs until every client is done, the time is up or `is_cancelled` says so (asked every few thousand steps).
    pub(crate) fn run(&mut self, mut is_cancelled: impl FnMut() -> bool) -> Result<Instant, RunError> {
        let until = Instant::from_micros(self.scenario.run.until.0);
        let mut steps = 0_u32;
        let mut last = Instant::ORIGIN;
        while self.unfinished > 0 {
            let Some((now, turn)) = self.next() else { break };
            if now > until {
                last = until;
                break;
            }
            debug_assert!(now >= last, "time went back");
            last = now;
            if self.rec.is_due(now) {
                self.network.sample(now, &mut self.rec);
            }
            match turn {
                Turn::Network => self.deliver(now)?,
                Turn::Server => self.wake_server(now)?,
                Turn::Client(flow) => self.wake_client(flow, now)?,
                Turn::Stream(place) => self.drain_stream_server(place as usize, now)?,
            }
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(4_096) && is_cancelled() {
                return Err(RunError::Cancelled);
            }
        }
        Ok(last)
    }

    /// Who comes next, unless everybody sleeps for good.
    #[inline]
    fn next(&self) -> Option<(Instant, Turn)> {
        let mut first = (self.network.next(), Turn::Network);
        let server = Some((self.server.wakes, Turn::Server));
        let client = self.agenda.next().map(|(at, flow)| (at, Turn::Client(flow)));
        let stream = self.server.stream_agenda.next().map(|(at, place)| (at, Turn::Stream(place)));
        for other in [server, client, stream].into_iter().flatten() {
            if other.0 < first.0 {
                first = other;
            }
        }
        (first.0 != Instant::NEVER).then_some(first)
    }

    /// A client's application goes on: the group whose request is to be made next, or nothing if all were made.
    #[inline]
    pub(crate) fn next_request(&mut self, flow: u32, now: Instant) -> Option<&'s Clients> {
        let client = &mut self.clients[flow as usize];
        let clients = &self.scenario.clients[client.group() as usize];
        match client.application().next(flow, clients, self.seed) {
            Next::Done => {
                self.unfinished -= 1;
                return None;
            }
            Next::Ask => {}
            Next::ForgetAndAsk => client.forget(now),
        }
        Some(clients)
    }

    fn wake_client(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        match &self.clients[flow as usize] {
            Client::Device(_) => self.wake_device(flow, now),
            Client::Stream(_) => self.wake_stream(flow, now),
            Client::Burst(_) => self.wake_burst(flow, now),
        }
    }

    /// Hands over everything that has arrived.
    fn deliver(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(Packet { load, tag, to_client, .. }) = self.network.deliver(now, &mut self.rec) {
            match (load, to_client) {
                (Load::Datagram(bytes), true) => self.datagram_to_client(now, tag, bytes)?,
                (Load::Datagram(bytes), false) => self.datagram_to_server(now, tag, bytes)?,
                (Load::Segment(carried), true) => self.segment_to_client(now, tag, *carried)?,
                (Load::Segment(carried), false) => self.segment_to_server(now, tag, *carried)?,
            }
        }
        Ok(())
    }

    /// Closes the books.
    pub(crate) fn finish(mut self, end: Instant) -> Result<Outcome, RunError> {
        let mut outcome = Outcome::default();
        let groups: Vec<u32> = self.clients.iter().map(Client::group).collect();
        let row = |(flow, client): (usize, Client)| {
            let (flow, described) = (flow as u32, &self.scenario.clients[client.group() as usize]);
            let mut messages = None;
            let mut row = match client {
                Client::Device(device) => device.row(flow, described),
                Client::Burst(device) => {
                    messages = Some(device.messages);
                    device.row(flow, described)
                }
                Client::Stream(client) => {
                    let far = &self.server.streams[client.far];
                    client.row(flow, described, far)
                }
            };
            self.ledger.sum(&mut row);
            if row.tcp.is_some() {
                // No message waits for anything there.
                (row.first_wait_mean_us, row.first_wait_median_us) = (None, None);
            }
            row.transmissions = messages.unwrap_or(row.transmissions);
            self.network.sum(&mut row);
            row
        };
        // The rows take the places of the clients, one after the other, where the standard library collects in place.
        outcome.flows = self.clients.into_iter().enumerate().map(row).collect();
        outcome.histogram = self.ledger.histogram(&groups);
        outcome.histogram.retain(|row| self.scenario.clients[row.group as usize].has_exchanges());
        outcome.evidence = self.evidence.rows();
        if self.rec.exchanges {
            outcome.exchanges = self.ledger.rows();
        }
        let (links, events) = self.network.rows(end)?;
        outcome.links = links;
        let first = outcome.flows.iter().map(|row| row.first_send_us).min().unwrap_or(0);
        outcome.summary = Summary {
            simulated_us: end.as_micros(),
            events: events + self.transmissions,
            // None either if nothing ever left.
            makespan_us: end.as_micros().checked_sub(first).filter(|_| self.unfinished == 0),
            flows: groups.len() as u32,
            unfinished: self.unfinished,
        };
        outcome.capture = self.network.take_recording().map(|recording| recording.into_file());
        self.rec.give(&mut outcome);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{outcome::FlowRow, scenario};

    /// There may be very many of them, each with a row in the end.
    #[test]
    fn a_client_over_udp_has_no_room_for_what_only_others_need() {
        assert_eq!(size_of::<Client>(), size_of::<Device>());
        let beside = size_of::<Device>() - size_of::<millpond_coap::Endpoint<u32>>();
        assert!(beside <= 96, "{beside} bytes beside the endpoint");
        assert!(size_of::<FlowRow>() <= 184, "{} bytes a row", size_of::<FlowRow>());
    }

    #[test]
    fn a_server_that_stores_replies_knows_every_copy_however_late() {
        // Nine in ten responses are lost, so that exchanges outlast the 247 s of RFC 7252's default parameters by far.
        let scenario = Scenario::from_toml(
            r#"
            [path.uplink]
            rate = "60 kbit/s"
            delay = "215 ms"
            queue = "1410000 B"
            [path.downlink]
            rate = "30 kbit/s"
            delay = "415 ms"
            queue = "1410000 B"
            loss = { kind = "bernoulli", rate = 0.9 }
            [[clients]]
            count = 20
            controller = { preset = "rfc7252", max-wait = "60 s" }
            max_retransmit = 20
            "#,
            "test",
        )
        .unwrap();
        let mut world = World::new(&scenario, 1, &Options::default(), &scenario::BuiltIn).unwrap();
        world.run(|| false).unwrap();
        let longest = world.ledger.rows().iter().filter_map(|row| Some(row.accepted_us? - row.first_send_us)).max();
        assert!(longest > Some(247_000_000), "{longest:?}");
        let begun = world.ledger.rows().len() as u64;
        let links = world.network.rows(Instant::from_micros(86_400_000_000)).unwrap().0;
        let arrived = links.iter().find(|row| row.link == "uplink").unwrap().delivered_packets;
        assert_eq!(world.server.endpoint.counters().duplicates, arrived - begun);
    }
}

//! One run: clients, two links and a server in virtual time.
//!
//! Every actor keeps its own timers; the [`Agenda`] holds one wake-up for each. A step takes the earliest, hands the
//! actor its input and drains it. A run is single-threaded and a pure function of scenario and seed.

use millpond_coap::{Cause, Event, Output, Transmit};
use millpond_control::{ChanceSeed, Instant, PeerController, Purpose, Sample, Span};
use millpond_link::{Delivered, DropReason, Link};

use crate::{
    RunError,
    agenda::{Actor, Agenda},
    device::{Device, Next, SERVER},
    evidence::Evidence,
    ledger::{Ledger, NO_EXCHANGE, Tag},
    outcome::{LinkRow, Outcome, Summary},
    population::{Ask, client_endpoint, controllers, datagram, interleave},
    scenario::{self, Controllers, Scenario},
    server::{Asked, Server},
    trace::{LINKS, Options, Recorder},
};

const UP: usize = 0;
const DOWN: usize = 1;

/// A datagram on its way, with what only the laboratory knows about it.
struct Packet {
    bytes: Vec<u8>,
    tag: Tag,
}

/// The path: one link a direction, and the buffers that both share.
struct Network {
    links: [Link<Packet>; 2],
    /// Actors of the two links on the agenda.
    actors: [Actor; 2],
    header: u32,
    /// Empty buffers, so that the steady state allocates nothing.
    spare: Vec<Vec<u8>>,
    useful: [u64; 2],
    datagrams: u64,
}

impl Network {
    /// Offers a datagram to a link and wakes the link accordingly.
    #[inline]
    fn send(&mut self, way: usize, now: Instant, payload: &[u8], tag: Tag, agenda: &mut Agenda, rec: &mut Recorder) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        let length = self.length(payload);
        match self.links[way].offer(now, length, Packet { bytes, tag }) {
            Ok(()) => rec.packet(now, "enq", way, &tag, length),
            Err((reason, packet)) => {
                let event = if reason == DropReason::Radio { "drop_radio" } else { "drop_queue" };
                rec.packet(now, event, way, &tag, length);
                self.spare.push(packet.bytes);
            }
        }
        self.wake(way, agenda);
    }

    /// Puts a link's next wake-up on the agenda.
    #[inline]
    fn wake(&self, way: usize, agenda: &mut Agenda) {
        agenda.set(self.actors[way], self.links[way].next().unwrap_or(Instant::NEVER));
    }

    /// The next datagram that arrives at or before `now`.
    #[inline]
    fn receive(&mut self, way: usize, now: Instant, rec: &mut Recorder) -> Option<Packet> {
        loop {
            match self.links[way].deliver(now)? {
                Delivered::Arrived(parcel) => {
                    rec.carried(way, parcel.len);
                    rec.packet(now, "recv", way, &parcel.payload.tag, parcel.len);
                    self.datagrams += 1;
                    return Some(parcel.payload);
                }
                Delivered::Lost(parcel) => {
                    rec.packet(now, "drop_radio", way, &parcel.payload.tag, parcel.len);
                    self.spare.push(parcel.payload.bytes);
                }
            }
        }
    }

    fn length(&self, payload: &[u8]) -> u32 {
        self.header + payload.len() as u32
    }
}

/// How an exchange ended.
enum Ended {
    /// With a response, and what it said about the round-trip time.
    Answered(Option<Sample>),
    Abandoned,
}

/// The parts of a run.
pub(crate) struct World<'s> {
    scenario: &'s Scenario,
    seed: ChanceSeed,
    agenda: Agenda,
    /// The request of each group.
    asks: Vec<Ask<'s>>,
    devices: Vec<Device>,
    server: Server,
    network: Network,
    ledger: Ledger,
    evidence: Evidence,
    rec: Recorder,
    transmissions: u64,
    unfinished: u32,
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
        let mut devices = Vec::with_capacity(groups.len());
        let mut agenda = Agenda::new(groups.len() + 3);
        let controllers = controllers(&scenario.clients, own)?;
        let alike = |(clients, controller): (_, &PeerController)| {
            client_endpoint(clients, controller.clone(), datagram(scenario), seed)
        };
        let alike: Vec<_> = scenario.clients.iter().zip(&controllers).map(alike).collect::<Result<_, _>>()?;
        for (flow, &group) in groups.iter().enumerate() {
            let clients = &scenario.clients[group as usize];
            let flow = flow as u32;
            // Clients of a group share what never changes.
            devices.push(Device::new(alike[group as usize].sibling(flow), group));
            let spread = clients.start_spread.span();
            let start = seed.at(Purpose::Start, [flow, 0, 0, 0]).between(Span::ZERO, spread);
            agenda.set(flow, Instant::ORIGIN.after(start));
        }
        let link = |way: usize, direction: &scenario::Direction| {
            Link::new(&direction.config(), seed, way as u32)
                .map_err(|error| RunError::Link(LINKS[way], error.to_string()))
        };
        let network = Network {
            links: [link(UP, &scenario.path.uplink)?, link(DOWN, &scenario.path.downlink)?],
            actors: [count + 1, count + 2],
            header: scenario.path.header.0 as u32,
            spare: Vec::new(),
            useful: [0; 2],
            datagrams: 0,
        };
        let exchanges = groups.iter().map(|&group| scenario.clients[group as usize].exchanges);
        Ok(Self {
            scenario,
            seed,
            agenda,
            asks: scenario.clients.iter().map(Ask::of).collect(),
            ledger: Ledger::new(exchanges),
            evidence: Evidence::new(scenario.clients.len()),
            devices,
            server: Server::new(scenario, seed, count, &controllers)?,
            network,
            rec: Recorder::new(options),
            transmissions: 0,
            unfinished: count,
        })
    }

    /// Runs until every client is done, the time is up or `is_cancelled` says so (asked every few thousand steps).
    pub(crate) fn run(&mut self, mut is_cancelled: impl FnMut() -> bool) -> Result<Instant, RunError> {
        let until = Instant::from_micros(self.scenario.run.until.0);
        let server = self.devices.len() as Actor;
        let (up, down) = (self.network.actors[UP], self.network.actors[DOWN]);
        let mut steps = 0_u32;
        let mut last = Instant::ORIGIN;
        while self.unfinished > 0 {
            let Some((now, actor)) = self.agenda.next() else { break };
            if now > until {
                last = until;
                break;
            }
            debug_assert!(now >= last, "time went back");
            last = now;
            if self.rec.is_due(now) {
                let links = &mut self.network.links;
                self.rec.sample(now, |at| {
                    links.each_mut().map(|link| {
                        let occupancy = link.queued(at);
                        (occupancy.bytes, occupancy.packets)
                    })
                });
            }
            if actor == down {
                self.deliver_to_clients(now)?;
            } else if actor == up {
                self.deliver_to_server(now)?;
            } else if actor == server {
                self.wake_server(now)?;
            } else {
                self.wake_client(actor, now)?;
            }
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(4_096) && is_cancelled() {
                return Err(RunError::Cancelled);
            }
        }
        self.rec.finish();
        Ok(last)
    }

    fn wake_client(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        if self.devices[flow as usize].has_begun() { self.drain_client(flow, now, None) } else { self.go_on(flow, now) }
    }

    fn deliver_to_clients(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(packet) = self.network.receive(DOWN, now, &mut self.rec) {
            let tag = packet.tag;
            if tag.exchange != NO_EXCHANGE {
                self.ledger.reached(&tag);
            }
            self.devices[tag.flow as usize].endpoint.receive(now, SERVER, &packet.bytes);
            let length = self.network.length(&packet.bytes);
            self.network.spare.push(packet.bytes);
            self.drain_client(tag.flow, now, Some((tag, length)))?;
        }
        self.network.wake(DOWN, &mut self.agenda);
        Ok(())
    }

    /// Drains a client's endpoint; `arrived` is what was just handed to it, with its length.
    fn drain_client(&mut self, flow: u32, now: Instant, arrived: Option<(Tag, u32)>) -> Result<(), RunError> {
        let device = &mut self.devices[flow as usize];
        let first_batch = device.in_first_batch();
        let mut ended: Option<Ended> = None;
        loop {
            // The endpoint lends its buffers until the next call, so what else is needed of the device is read before.
            let open = device.open();
            match device.endpoint.poll(now) {
                Output::Transmit(Transmit { bytes, cause, .. }) => {
                    let mut tag = Tag {
                        flow,
                        exchange: NO_EXCHANGE,
                        copy: 0,
                        request_bytes: self.network.length(bytes),
                        sent: now,
                    };
                    if let Cause::Exchange { id, copy, wait } = cause
                        && let Some((_, number)) = open.filter(|(open, _)| *open == id)
                    {
                        tag.exchange = number;
                        tag.copy = copy;
                        self.ledger.sent(&tag, wait.span, first_batch);
                        self.rec.armed(&tag, wait);
                    }
                    self.transmissions += 1;
                    self.network.send(UP, now, bytes, tag, &mut self.agenda, &mut self.rec);
                }
                Output::Event(Event::Response { sample, .. }) => ended = Some(Ended::Answered(sample)),
                Output::Event(Event::Failed { .. }) => ended = Some(Ended::Abandoned),
                Output::Event(Event::Late { .. }) => device.late += 1,
                Output::Event(_) => {}
                Output::Sleep(at, _) => {
                    self.agenda.set(flow, at);
                    break;
                }
                Output::Idle => {
                    self.agenda.clear(flow);
                    break;
                }
            }
        }
        match (ended, arrived) {
            (Some(Ended::Answered(sample)), Some((tag, length))) => {
                self.ledger.accepted(&tag, now);
                let judged = sample.and_then(|sample| self.evidence.take(device.group, &sample, &tag, now));
                if let Some(judged) = judged.filter(|_| self.rec.exchanges) {
                    self.rec.judged(&tag, judged, device.endpoint.view(SERVER).and_then(|view| view.rto));
                }
                for (way, bytes) in [(UP, tag.request_bytes), (DOWN, length)] {
                    self.network.useful[way] += u64::from(bytes);
                    self.rec.useful(way, bytes);
                }
                device.answered(&tag, now);
            }
            (None, _) => return Ok(()),
            _ => device.abandoned(),
        }
        self.go_on(flow, now)
    }

    /// The client's application goes on: asks again, or is done.
    fn go_on(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let device = &mut self.devices[flow as usize];
        let clients = &self.scenario.clients[device.group as usize];
        match device.next(flow, clients, self.seed) {
            Next::Done => {
                self.unfinished -= 1;
                return Ok(());
            }
            Next::Ask => {}
            Next::ForgetAndAsk => device.endpoint.forget_controller(now, SERVER),
        }
        let request = self.asks[device.group as usize].request();
        let id =
            device.endpoint.request(now, SERVER, &request).map_err(|why| RunError::Refused(flow, why.to_string()))?;
        device.begin(id, now);
        self.drain_client(flow, now, None)
    }

    fn deliver_to_server(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(packet) = self.network.receive(UP, now, &mut self.rec) {
            let tag = packet.tag;
            self.server.endpoint.receive(now, tag.flow, &packet.bytes);
            self.network.spare.push(packet.bytes);
            self.drain_server(now, tag)?;
        }
        self.network.wake(UP, &mut self.agenda);
        Ok(())
    }

    fn wake_server(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(tag) = self.server.finish(now)? {
            self.drain_server(now, tag)?;
        }
        // What the endpoint sends of its own accord answers nobody in particular.
        let nobody = Tag { flow: 0, exchange: NO_EXCHANGE, copy: 0, request_bytes: 0, sent: now };
        self.drain_server(now, nobody)
    }

    /// Drains the server's endpoint; what it sends answers the request copy with this tag.
    fn drain_server(&mut self, now: Instant, tag: Tag) -> Result<(), RunError> {
        loop {
            let mut asked = None;
            let sleep = loop {
                match self.server.endpoint.poll(now) {
                    Output::Transmit(Transmit { to, bytes, .. }) => {
                        let tag = Tag { flow: to, ..tag };
                        self.transmissions += 1;
                        self.network.send(DOWN, now, bytes, tag, &mut self.agenda, &mut self.rec);
                    }
                    Output::Event(Event::Request { id, message, .. }) => {
                        // The server has what the groups ask for, and nothing else.
                        if !self.asks.iter().any(|ask| ask.is_for(message.uri_path())) {
                            return Err(RunError::Refused(
                                tag.flow,
                                "it asks for a resource that nobody has".to_owned(),
                            ));
                        }
                        asked = Some(Asked { id, code: message.code, tag });
                    }
                    Output::Event(_) => {}
                    Output::Sleep(at, _) => break at,
                    Output::Idle => break Instant::NEVER,
                }
            };
            match asked {
                Some(asked) => self.server.take(now, asked)?,
                None => {
                    self.agenda.set(self.devices.len() as Actor, sleep.min(self.server.next_done()));
                    return Ok(());
                }
            }
        }
    }

    /// Closes the books.
    pub(crate) fn finish(mut self, end: Instant) -> Result<Outcome, RunError> {
        let mut outcome = Outcome::default();
        let clients = &self.scenario.clients;
        // Their memory is enough for the rows of the clients.
        drop((self.server, self.agenda));
        outcome.flows.reserve_exact(self.devices.len());
        for (flow, device) in self.devices.iter().enumerate() {
            let mut row = device.row(flow as u32, &clients[device.group as usize]);
            self.ledger.sum(&mut row);
            outcome.flows.push(row);
        }
        let groups: Vec<u32> = self.devices.iter().map(|device| device.group).collect();
        outcome.histogram = self.ledger.histogram(&groups);
        outcome.evidence = self.evidence.rows();
        if self.rec.exchanges {
            outcome.exchanges = self.ledger.rows();
        }
        let mut events = self.transmissions + self.network.datagrams;
        for (way, name) in LINKS.into_iter().enumerate() {
            let link = &mut self.network.links[way];
            link.check_conservation().map_err(|error| RunError::Conservation(name, error.to_string()))?;
            let counters = *link.counters();
            let statistics = link.statistics(end);
            events += counters.offered.packets + counters.carried.packets + counters.delivered.packets;
            let dropped = counters.dropped_by_queue();
            outcome.links.push(LinkRow {
                link: name,
                offered_packets: counters.offered.packets,
                offered_bytes: counters.offered.bytes,
                dropped_queue_packets: dropped.packets,
                dropped_queue_bytes: dropped.bytes,
                dropped_radio_packets: counters.lost.packets,
                dropped_radio_bytes: counters.lost.bytes,
                delivered_packets: counters.delivered.packets,
                delivered_bytes: counters.delivered.bytes,
                useful_bytes: self.network.useful[way],
                busy_us: statistics.busy_micros,
                queue_mean_bytes: statistics.bytes.mean,
                queue_p95_bytes: statistics.bytes.p95,
                queue_max_bytes: statistics.bytes.max,
                queue_mean_packets: statistics.packets.mean,
                queue_max_packets: statistics.packets.max,
            });
        }
        let first = outcome.flows.iter().map(|row| row.first_send_us).min().unwrap_or(0);
        outcome.summary = Summary {
            simulated_us: end.as_micros(),
            events,
            makespan_us: (self.unfinished == 0).then(|| end.as_micros() - first),
            flows: self.devices.len() as u32,
            unfinished: self.unfinished,
        };
        self.rec.give(&mut outcome);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let arrived = world.network.links[UP].counters().delivered.packets;
        assert_eq!(world.server.endpoint.counters().duplicates, arrived - begun);
    }
}

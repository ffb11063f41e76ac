//! One run: clients and a server on a network in virtual time.
//!
//! Everybody keeps their own timers and has one wake-up. A step takes the earliest, hands over the input and drains. Of
//! those that wake together the network comes first, so that what arrives counts before a timer that runs out; then the
//! server, the clients by number, the server's ends of connections. A run is single-threaded and a pure function of
//! scenario and seed.

mod building;

use std::collections::BTreeMap;

use millpond_coap::Endpoint;
use millpond_control::{ChanceSeed, Instant, PeerController, Span, View};

use crate::{
    RunError,
    application::{Application, Next},
    bodies::BodyDevice,
    calendar::Calendar,
    calls::Callers,
    device::Device,
    evidence::Evidence,
    ledger::Ledger,
    network::{Network, SERVER},
    oscore::Contexts,
    outcome::{Books, Outcome, Summary},
    proxy::Proxy,
    scenario::{FlowGroup, Scenario, Traffic},
    server::Server,
    stream_end::StreamClient,
    trace::Recorder,
    workload::{ClientProfile, Draws, Due},
};

/// A client, by what carries its requests.
#[expect(
    clippy::large_enum_variant,
    reason = "runs of very many clients are runs of devices, which are at hand this way"
)]
pub(crate) enum Client {
    Device(Device),
    Bodies(Box<BodyDevice>),
    Stream(Box<StreamClient>),
}

impl Client {
    #[inline]
    pub(crate) fn group(&self) -> u32 {
        match self {
            Self::Device(device) => device.group,
            Self::Bodies(device) => device.group,
            Self::Stream(client) => client.group,
        }
    }

    #[inline]
    pub(crate) fn is_burst(&self) -> bool {
        matches!(self, Self::Bodies(device) if device.is_burst())
    }

    /// Whether the server sends this block to it again. Asked for traces.
    pub(crate) fn is_repeated(&mut self, bytes: &[u8]) -> bool {
        if let Self::Bodies(device) = self { device.is_repeated(bytes) } else { false }
    }

    #[inline]
    pub(crate) fn application(&mut self) -> &mut Application {
        match self {
            Self::Device(device) => &mut device.application,
            Self::Bodies(device) => &mut device.application,
            Self::Stream(client) => &mut client.application,
        }
    }

    /// What its controller shows of the server.
    #[inline]
    pub(crate) fn view(&self) -> Option<View> {
        match self {
            Self::Device(device) => device.endpoint.view(SERVER),
            Self::Bodies(device) => device.stack.endpoint().view(SERVER),
            Self::Stream(_) => None,
        }
    }

    /// The base round trip to the server that its controller has measured.
    pub(crate) fn base_rtt(&self) -> Option<Span> {
        match self {
            Self::Device(device) => device.endpoint.base_rtt(SERVER),
            Self::Bodies(device) => device.stack.endpoint().base_rtt(SERVER),
            Self::Stream(_) => None,
        }
    }

    /// Its controller is notified of a base round trip of before.
    pub(crate) fn recall(&mut self, now: Instant, base_rtt: Span) -> Result<(), String> {
        match self {
            Self::Device(device) => device.endpoint.recall(now, SERVER, base_rtt).map_err(|why| why.to_string()),
            Self::Bodies(device) => device.stack.recall(now, SERVER, base_rtt).map_err(|why| why.to_string()),
            Self::Stream(_) => Ok(()),
        }
    }

    /// Drops all congestion-control state; over TCP that is the connection's.
    pub(crate) fn forget(&mut self, now: Instant) {
        match self {
            Self::Device(device) => device.endpoint.forget_controller(now, SERVER),
            Self::Bodies(device) => device.stack.forget_controller(now, SERVER),
            Self::Stream(client) => client.hang_up(),
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

/// Those who ask alike, group by group.
pub(crate) struct Groups<'s> {
    described: &'s [FlowGroup<'s>],
    /// How those of each group behave.
    pub(crate) profiles: Vec<ClientProfile<'s>>,
    /// The controller that each group begins with.
    pub(crate) controllers: Vec<PeerController>,
    /// What the clients of a group are after an event at which they forgot everything.
    pub(crate) restarted: Vec<((usize, u16), Endpoint<u32>)>,
}

/// All that send and receive.
pub(crate) struct Nodes {
    pub(crate) clients: Vec<Client>,
    /// The base round trips that clients remember over restarts and batches, by their numbers.
    pub(crate) remembered: BTreeMap<u32, Span>,
    pub(crate) server: Server,
    pub(crate) proxies: Vec<Proxy>,
    /// The number of the first of them on the network and on the event calendar: they come behind all flows.
    pub(crate) first_proxy: u32,
    /// The one that the clients of each group are behind.
    pub(crate) proxy_of_group: Vec<Option<usize>>,
    /// By which clients protect their messages, if they do.
    pub(crate) contexts: Contexts,
}

/// The parts of a run.
pub(crate) struct World<'s> {
    pub(crate) scenario: &'s Scenario,
    pub(crate) seed: ChanceSeed,
    /// The wake-ups of all but the server.
    pub(crate) calendar: Calendar,
    pub(crate) groups: Groups<'s>,
    pub(crate) nodes: Nodes,
    pub(crate) network: Network,
    pub(crate) ledger: Ledger,
    pub(crate) evidence: Evidence,
    pub(crate) rec: Recorder,
    pub(crate) transmissions: u64,
    /// What had become of packets when the warm-up ended, or else the idle start of a mesh; nothing if there is neither.
    pub(crate) before: Books,
    pub(crate) unfinished: u32,
    /// When anything happened last.
    last: Instant,
    /// Its time is up.
    is_over: bool,
}

impl<'s> World<'s> {
    /// Runs until every client is done, the time is up or `is_cancelled` says so (asked every few thousand steps).
    pub(crate) fn run(&mut self, mut is_cancelled: impl FnMut() -> bool) -> Result<Instant, RunError> {
        let end = Instant::from_micros(self.scenario.run.end().0);
        let warm_up @ 1.. = self.scenario.run.warm_up.0 else { return self.run_until(end, &mut is_cancelled) };
        let warm_up = Instant::from_micros(warm_up);
        let last = self.run_until(warm_up, &mut is_cancelled)?;
        if last < warm_up {
            // All was over in the warm-up.
            self.warm_up(last)?;
            return Ok(last);
        }
        self.warm_up(warm_up)?;
        Ok(self.run_until(end, &mut is_cancelled)?.max(warm_up))
    }

    /// The warm-up is over at `now`.
    fn warm_up(&mut self, now: Instant) -> Result<(), RunError> {
        self.before = self.network.warmed_up(now)?;
        self.nodes.proxies.iter_mut().for_each(Proxy::warmed_up);
        Ok(())
    }

    /// Runs until there is nothing left to do, or nothing that comes by `until`, which is then what it gives.
    fn run_until(&mut self, until: Instant, is_cancelled: &mut impl FnMut() -> bool) -> Result<Instant, RunError> {
        let stop = Instant::from_micros(until.as_micros().saturating_add(1));
        Ok(if self.run_before(stop, is_cancelled)? { until } else { self.last })
    }

    /// All that happens before `limit` of a site, whose time may be up by then.
    pub(crate) fn pass(&mut self, limit: Instant) -> Result<(), RunError> {
        let end = Instant::from_micros(self.scenario.run.end().0);
        let stop = limit.min(Instant::from_micros(end.as_micros().saturating_add(1)));
        self.is_over |= self.run_before(stop, &mut || false)? && limit > end;
        Ok(())
    }

    /// All that happens before a point; whether something comes later.
    fn run_before(&mut self, stop: Instant, is_cancelled: &mut impl FnMut() -> bool) -> Result<bool, RunError> {
        let mut steps = 0_u32;
        let mut last = self.last;
        while self.unfinished > 0 {
            let Some((now, turn)) = self.next() else { break };
            if now >= stop {
                self.last = last;
                return Ok(true);
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
            if self.network.has_news() {
                self.hear_news(now);
            }
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(4_096) && is_cancelled() {
                return Err(RunError::Cancelled);
            }
        }
        self.last = last;
        Ok(false)
    }

    /// Whether nothing happens any more, whatever arrives.
    pub(crate) fn is_over(&self) -> bool {
        self.unfinished == 0 || self.is_over
    }

    /// When something happens next; never, once it is over.
    pub(crate) fn wakes(&self) -> Instant {
        if self.is_over() { Instant::NEVER } else { self.next().map_or(Instant::NEVER, |(at, _)| at) }
    }

    /// Notes which datagrams the network has lost, and of which there is one more.
    #[inline(never)]
    pub(crate) fn hear_news(&mut self, now: Instant) {
        while let Some(tag) = self.network.branched() {
            self.ledger.branched(&tag, 1);
        }
        while let Some(tag) = self.network.lost() {
            self.gone(&tag, now);
        }
    }

    /// Who comes next, unless everybody sleeps for good.
    #[inline]
    fn next(&self) -> Option<(Instant, Turn)> {
        let mut first = (self.network.next(), Turn::Network);
        if self.nodes.server.wakes < first.0 {
            first = (self.nodes.server.wakes, Turn::Server);
        }
        let (at, flow) = self.calendar.first();
        if at < first.0 {
            first = (at, Turn::Client(flow));
        }
        let (at, place) = self.nodes.server.stream_calendar.first();
        if at < first.0 {
            first = (at, Turn::Stream(place));
        }
        (first.0 != Instant::NEVER).then_some(first)
    }

    /// The chance of a client.
    #[inline]
    pub(crate) fn draws(&self, flow: u32) -> Draws {
        match self.nodes.server.callers.get(flow) {
            None => Draws { seed: self.seed, flow, client: flow },
            Some(caller) => draws(self.seed, flow, caller.client, self.groups.profiles[caller.group as usize].traffic),
        }
    }

    /// The next request of a flow that is made now, if there is one and it may.
    #[inline]
    pub(crate) fn next_request(&mut self, flow: u32, now: Instant) -> Result<Option<Due>, RunError> {
        let (draws, overdue) = (self.draws(flow), self.overdue(flow));
        let Some((application, group)) = asker(&mut self.nodes.clients, &mut self.nodes.server.callers, flow) else {
            return Ok(None);
        };
        match application.next(now, &self.groups.profiles[group as usize], draws, overdue, &mut self.ledger) {
            Next::Ask(due) => return Ok(Some(due)),
            Next::ForgetAndAsk(due) => {
                self.begins_batch(flow, now)?;
                return Ok(Some(due));
            }
            Next::Done => self.unfinished -= 1,
            Next::Wait => {}
        }
        Ok(None)
    }

    /// How many requests of a flow make way for others.
    #[inline]
    fn overdue(&self, flow: u32) -> u32 {
        match self.nodes.clients.get(flow as usize) {
            Some(Client::Device(device)) => device.endpoint.overdue(SERVER),
            Some(Client::Bodies(_) | Client::Stream(_)) => 0,
            // Notifications never do.
            None => {
                let caller = self.nodes.server.callers.get(flow);
                let commands =
                    caller.filter(|one| self.groups.profiles[one.group as usize].traffic == Traffic::Commands);
                commands.map_or(0, |caller| self.nodes.server.stack.endpoint().overdue(caller.client))
            }
        }
    }

    /// A request that was made has ended.
    #[inline]
    pub(crate) fn end(&mut self, flow: u32, request: u32, answered: bool, now: Instant) {
        let draws = self.draws(flow);
        if let Some((application, group)) = asker(&mut self.nodes.clients, &mut self.nodes.server.callers, flow) {
            let profile = &self.groups.profiles[group as usize];
            application.end(request, answered, now, profile, draws, &mut self.ledger);
        }
    }

    fn wake_client(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        if flow as usize >= self.nodes.clients.len() {
            return match self.proxy(flow) {
                Some(place) => self.drain_proxy(place, now, None),
                None => self.wake_caller(flow, now),
            };
        }
        if !self.scenario.timeline.is_empty() {
            self.restarts(flow, now)?;
        }
        match &self.nodes.clients[flow as usize] {
            Client::Device(_) => self.wake_device(flow, now),
            Client::Bodies(_) => self.wake_fetching(flow, now),
            Client::Stream(_) => self.wake_stream(flow, now),
        }
    }

    /// Hands over everything that has arrived.
    fn deliver(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(arrival) = self.network.deliver(now, &mut self.rec) {
            if arrival.is_segment {
                let Some(carried) = self.network.segment() else { continue };
                if arrival.to_client {
                    self.segment_to_client(now, arrival.tag, *carried)?;
                } else {
                    self.segment_to_server(now, arrival.tag, *carried)?;
                }
            } else if let Some(place) = self.proxy_at(&arrival) {
                self.datagram_to_proxy(place, now, &arrival)?;
            } else if arrival.to_client {
                self.datagram_to_client(now, &arrival)?;
            } else {
                self.datagram_to_server(now, &arrival)?;
            }
        }
        Ok(())
    }

    /// Closes the books.
    pub(crate) fn finish(mut self, end: Instant) -> Result<Outcome, RunError> {
        let mut outcome = Outcome::default();
        self.ledger.close();
        let row = |(flow, client): (usize, Client)| {
            let (flow, profile) = (flow as u32, &self.groups.profiles[client.group() as usize]);
            let mut messages = None;
            let mut row = match client {
                Client::Device(device) => device.row(flow, profile),
                Client::Bodies(device) => {
                    let (row, sent) = device.row(flow, profile);
                    messages = sent;
                    row
                }
                Client::Stream(client) => {
                    let far = &self.nodes.server.streams[client.far];
                    client.row(flow, profile, far)
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
        outcome.flows = self.nodes.clients.into_iter().enumerate().map(row).collect();
        let called = self.nodes.server.callers.rows(&self.groups.profiles).map(|mut row| {
            self.ledger.sum(&mut row);
            row
        });
        outcome.flows.extend(called);
        outcome.called = self.nodes.server.callers.clients().map(|(client, _)| client).collect();
        outcome.histogram = self.ledger.histogram();
        outcome.histogram.retain(|row| self.groups.described[row.group as usize].clients.has_exchanges());
        outcome.reported = self.ledger.reported(self.groups.described.iter().map(|group| group.clients.count));
        outcome.delays = self.ledger.delays();
        outcome.arrivals = self.ledger.arrivals();
        outcome.evidence = self.evidence.rows();
        outcome.exchanges = self.ledger.rows();
        let (books, events) = self.network.books(end)?;
        let books = books.since(&self.before);
        (outcome.links, outcome.relays) = (books.links, books.relays);
        (outcome.access, outcome.nodes) = (books.access, books.nodes);
        (outcome.cross_traffic, outcome.wifi) = (books.cross_traffic, books.wifi);
        outcome.proxies = self.nodes.proxies.into_iter().map(Proxy::into_row).collect();
        outcome.summary = Summary::of(&outcome.flows, end, events + self.transmissions);
        outcome.capture = self.network.take_recording().map(|recording| recording.into_file());
        self.rec.give(&mut outcome);
        Ok(outcome)
    }
}

/// The application of a flow, and its group.
#[inline]
fn asker<'w>(clients: &'w mut [Client], callers: &'w mut Callers, flow: u32) -> Option<(&'w mut Application, u32)> {
    match clients.get_mut(flow as usize) {
        Some(client) => {
            let group = client.group();
            Some((client.application(), group))
        }
        None => callers.get_mut(flow).map(|caller| (&mut caller.application, caller.group)),
    }
}

/// The chance of a flow. What the server sends to a client has another than what the client asks.
fn draws(seed: ChanceSeed, flow: u32, client: u32, traffic: Traffic) -> Draws {
    let seed = match traffic {
        Traffic::Requests => seed,
        Traffic::Commands => seed.part(u64::from(u32::MAX) + 1),
        Traffic::Notifications => seed.part(u64::from(u32::MAX) + 2),
    };
    Draws { seed, flow, client }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        outcome::FlowRow,
        scenario,
        trace::{Options, TraceKind},
    };

    /// There may be very many of them, each with a row in the end.
    #[test]
    fn a_client_over_udp_has_no_room_for_what_only_others_need() {
        assert_eq!(size_of::<Client>(), size_of::<Device>());
        let beside = size_of::<Device>() - size_of::<millpond_coap::Endpoint<u32>>();
        assert!(beside <= 96, "{beside} bytes beside the endpoint");
        assert!(size_of::<FlowRow>() <= 224, "{} bytes a row", size_of::<FlowRow>());
    }

    #[test]
    fn a_server_that_stores_replies_knows_every_copy_however_late() {
        // Nine in ten responses are lost, so that exchanges outlast the 247 s of RFC 7252's default parameters by far.
        let scenario = Scenario::from_toml(
            r#"
            [path]
            profile = "nbiot-anrw18"
            uplink.queue = "1410000 B"
            downlink.queue = "1410000 B"
            downlink.loss = { kind = "bernoulli", rate = 0.9 }
            [[clients]]
            count = 20
            controller = { preset = "rfc7252", max-wait = "60 s" }
            max_retransmit = 20
            "#,
            "test",
        )
        .unwrap();
        let options = Options { traces: vec![TraceKind::Exchanges], ..Options::default() };
        let groups = scenario.flow_groups();
        let mut world = World::new(&scenario, &groups, 1, &options, &scenario::BuiltIn).unwrap();
        world.run(|| false).unwrap();
        world.ledger.close();
        let rows = world.ledger.rows();
        let longest = rows.iter().filter_map(|row| Some(row.accepted_us? - row.first_send_us)).max();
        assert!(longest > Some(247_000_000), "{longest:?}");
        let begun = rows.len() as u64;
        let links = world.network.books(Instant::from_micros(86_400_000_000)).unwrap().0.links;
        let arrived = links.iter().find(|row| row.link == "uplink").unwrap().delivered_packets;
        assert_eq!(world.nodes.server.stack.endpoint().counters().duplicates, arrived - begun);
    }
}

//! The task that owns the sockets of a client.

mod asking;
mod ports;
mod secure;
mod unreachable;

use std::{collections::BTreeMap, future::Future, net::SocketAddr, pin::Pin, sync::Arc, task::Poll, time::Duration};

use millpond_coap::Endpoint;
use millpond_control::{ChanceSeed, Instant};
use tokio::sync::{mpsc, oneshot};

use super::{
    Command, Settings,
    asks::{AskSink, Asks, EarlyPing},
    progress::Watched,
    routes::Routes,
};
use crate::{
    ControllerChoice, Error, Stats,
    clock::Clock,
    dtls::Keys,
    lane::{DatagramHost, Lane},
    secrets,
    transfer::{AskId, Host, Refused},
    udp::{Address, Inbox, PortError},
    watch::{Known, Watch},
};

/// Message IDs that a port keeps unused: enough for the blocks of what is already under way.
const RESERVE: u32 = 2_048;
/// Commands taken at once.
const COMMANDS: usize = 256;

/// Owns sockets and hosts, takes commands, sleeps in between.
pub(crate) struct Driver {
    pub(super) settings: Arc<Settings>,
    /// What sessions are made with, if all its datagrams are under DTLS.
    keys: Option<Keys>,
    /// The controllers of single peers.
    controllers: BTreeMap<SocketAddr, ControllerChoice>,
    clock: Clock,
    commands: mpsc::UnboundedReceiver<Command>,
    pub(super) lanes: Vec<Lane>,
    /// When a request last left from each of them.
    used: Vec<Instant>,
    /// Lanes that were ever opened.
    opened: u32,
    /// What each further lane's host is made like.
    pattern: DatagramHost,
    pub(super) asks: Asks,
    routes: Routes,
    inbox: Inbox,
    watch: Watch,
    /// Requests whose progress somebody wants to know.
    watched: Vec<((usize, AskId), Watched)>,
    complaints: Vec<PortError>,
    /// Nobody can ask any more; when it ends whatever is still under way.
    end: Option<tokio::time::Instant>,
    /// Who waits for the end.
    waiting: Vec<oneshot::Sender<()>>,
}

/// How long a driver that ends waits for the acknowledgement of what it said last.
const GRACE: Duration = Duration::from_secs(2);

impl Driver {
    /// With keys all that it sends is under DTLS.
    pub(crate) fn new(
        settings: Arc<Settings>,
        commands: mpsc::UnboundedReceiver<Command>,
        keys: Option<Keys>,
    ) -> Result<Self, Error> {
        let chance = secrets::chance()?;
        let controller = settings.controller.build(settings.least_wait);
        let mut endpoint = Endpoint::new(settings.endpoint(), controller, chance, 0, secrets::identities()?)
            .map_err(|error| Error::Setting { name: "transmission", reason: error.to_string() })?;
        if let Some(key) = &settings.shared_paths {
            endpoint = key.sharing_paths(endpoint);
        }
        let pattern = Host::new(endpoint, settings.transfer(), ChanceSeed::new(u64::from_le_bytes(secrets::bytes()?)))
            .map_err(|error| Error::Setting { name: "transfer", reason: error.to_string() })?;
        let mut driver = Self {
            keys,
            controllers: settings.controllers.clone(),
            clock: Clock::start(),
            commands,
            lanes: Vec::new(),
            used: Vec::new(),
            opened: 0,
            pattern,
            asks: Asks::default(),
            routes: Routes::default(),
            inbox: Inbox::new(),
            watch: Watch::new(settings.hook.clone()),
            watched: Vec::new(),
            complaints: Vec::new(),
            end: None,
            waiting: Vec::new(),
            settings,
        };
        let local = match (driver.settings.bind, driver.keys.is_some()) {
            (bind, false) => bind,
            // The port itself is that of requests without security.
            (bind, true) => driver.settings.bind_dtls.or(bind.map(|local| SocketAddr::new(local.ip(), 0))),
        };
        if let Some(local) = local {
            driver.open(local)?;
        }
        Ok(driver)
    }

    /// Runs until nobody is left who could ask, and nothing is under way.
    pub(crate) async fn run(mut self) {
        let mut orders = Vec::new();
        let mut sleep: Option<Pin<Box<tokio::time::Sleep>>> = None;
        while !self.is_over() {
            let wakes = self.lanes.iter().filter_map(|lane| lane.next).map(|at| self.clock.at(at));
            let next = wakes.chain(self.end).chain(self.next_closing()).min();
            match (&mut sleep, next) {
                (Some(sleep), Some(at)) if sleep.deadline() == at => {}
                (Some(sleep), Some(at)) => sleep.as_mut().reset(at),
                (none, Some(at)) => *none = Some(Box::pin(tokio::time::sleep_until(at))),
                (_, None) => {}
            }
            let Self { commands, lanes, end, .. } = &mut self;
            std::future::poll_fn(|cx| {
                let mut is_ready = false;
                if end.is_none()
                    && !lanes.iter().any(Lane::is_full)
                    && let Poll::Ready(count) = commands.poll_recv_many(cx, &mut orders, COMMANDS)
                {
                    if count == 0 {
                        *end = Some(tokio::time::Instant::now() + GRACE);
                    }
                    is_ready = true;
                }
                for lane in lanes.iter_mut() {
                    is_ready |= lane.poll_ready(cx).is_ready();
                }
                if next.is_some()
                    && let Some(sleep) = &mut sleep
                {
                    is_ready |= sleep.as_mut().poll(cx).is_ready();
                }
                if is_ready { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            if self.keys.is_some() {
                // Whose session was closed meanwhile is asked in another one.
                self.turn();
            }
            for order in orders.drain(..) {
                self.command(order);
            }
            self.turn();
        }
        let now = self.clock.now();
        for lane in &mut self.lanes {
            lane.close_sessions(now, &mut self.watch);
        }
    }

    fn is_over(&self) -> bool {
        let is_quiet = |lane: &Lane| lane.host.endpoint().exchanges() == 0 && !lane.is_full();
        self.end.is_some_and(|end| tokio::time::Instant::now() >= end || self.lanes.iter().all(is_quiet))
    }

    /// Takes in what came, fires what is due, hands over what leaves.
    fn turn(&mut self) {
        let clock = self.clock;
        self.close_idle(clock.now());
        for number in 0..self.lanes.len() {
            let Some(lane) = self.lanes.get_mut(number) else { continue };
            let mut sink = AskSink { lane: number, asks: &mut self.asks };
            let complaints = &mut self.complaints;
            lane.flush(clock.now(), &mut self.watch);
            lane.receive(|| clock.now(), &mut self.inbox, &mut self.watch, &mut sink, |error| complaints.push(error));
            let now = clock.now();
            if lane.next.is_some_and(|next| next <= now) {
                lane.poll(now, &mut self.watch, &mut sink);
            }
        }
        for complaint in std::mem::take(&mut self.complaints) {
            self.complain(&complaint);
        }
        if self.keys.is_some() {
            for at in 0..self.lanes.len() {
                self.hear(at);
            }
        }
        self.settle();
        self.flush();
        let lanes = &self.lanes;
        self.watched.retain_mut(|((at, ask), watched)| {
            let progress = lanes.get(*at).and_then(|lane| lane.host.progress(*ask));
            progress.inspect(|progress| watched.tell((*progress).into())).is_some()
        });
    }

    /// Hands over what leaves. Requests to whom the kernel sends nothing end, and others may take their place.
    fn flush(&mut self) {
        loop {
            let now = self.clock.now();
            let mut refused = Vec::new();
            for lane in &mut self.lanes {
                lane.flush(now, &mut self.watch);
                refused.append(&mut lane.take_refused());
            }
            if refused.is_empty() {
                return;
            }
            for error in refused {
                self.group_is_out_of_reach(now, error.to, &error.reason);
                self.cut_off(&error);
            }
            self.settle();
        }
    }

    fn command(&mut self, command: Command) {
        let now = self.clock.now();
        match command {
            Command::Ask(wanted) => self.accept(wanted),
            Command::Gather(wanted) => self.gather(now, *wanted),
            Command::StopGathering(number) => self.stop_gathering(now, number),
            Command::Cancel(number) => match self.asks.find(number) {
                Some(place) => self.cancel(now, place),
                None => self.routes.cancel_held(number),
            },
            Command::LetGo(number) => match self.asks.find(number) {
                Some((lane, ask)) => {
                    if self.on_host(lane, now, |host| host.let_go(now, ask)) != Some(true) {
                        self.cancel(now, (lane, ask));
                    }
                    self.settle();
                }
                None => self.routes.cancel_held(number),
            },
            Command::Forget(number) => {
                if let Some((lane, ask)) = self.asks.find(number) {
                    self.on_host(lane, now, |host| host.forget(now, ask));
                    self.asks.drop_silently((lane, ask));
                }
            }
            Command::SetController(peer, controller, reply) => {
                let done = self.lane_for(peer).and_then(|home| {
                    let at = self.routes.get_mut(peer).map_or(home, |route| route.lane);
                    let to = self.known_as(at, peer);
                    if self.keys.is_some() {
                        // Each session gets it.
                        self.controllers.insert(peer, controller.clone());
                        if to.session().is_none() {
                            return Ok(());
                        }
                    }
                    let controller = controller.build(self.settings.least_wait);
                    let set = |host: &mut DatagramHost| host.set_controller(now, to, controller);
                    self.on_host(at, now, set).unwrap_or(Ok(())).map_err(refused)
                });
                let _ = reply.send(done);
            }
            // That of datagrams is known without asking.
            Command::Room(..) => {}
            Command::Stats(reply) => drop(reply.send(self.stats())),
            Command::Ping(peer, None, reply) => self.ping(now, peer, reply),
            Command::Ping(peer, Some(name), reply) => {
                self.asks.early_pings.push(EarlyPing { peer, name, reply });
                self.launch_pings(peer);
            }
            Command::Shutdown(reply) => {
                self.waiting.push(reply);
                self.asks.early_pings.drain(..).for_each(|ping| drop(ping.reply.send(Err(Error::Closed))));
                self.routes.take_all_held().into_iter().for_each(|wanted| wanted.reply.end(Err(Error::Closed)));
                self.asks.all().into_iter().for_each(|place| self.cancel(now, place));
                self.stop_all_gathering(now);
                self.end = Some(tokio::time::Instant::now() + GRACE);
            }
        }
    }

    /// Requests ended: others take their place.
    fn settle(&mut self) {
        while let Some(peer) = self.asks.ended.pop() {
            if let Some(route) = self.routes.get_mut(peer) {
                route.open = route.open.saturating_sub(1);
            }
            self.launch(peer);
            self.settle_route(peer);
        }
        // What is acknowledged is outstanding no more, however long its response takes.
        for peer in std::mem::take(&mut self.asks.acknowledged_by) {
            if self.routes.get_mut(peer).is_some_and(|route| route.is_moving) {
                self.launch(peer);
            }
        }
    }

    fn settle_route(&mut self, peer: SocketAddr) {
        let lanes = &self.lanes;
        let is_home = |at: usize| lanes.iter().position(|lane| lane.local().is_ipv4() == peer.is_ipv4()) == Some(at);
        self.routes.settle(peer, is_home);
    }

    fn known_as(&self, at: usize, peer: SocketAddr) -> Address {
        self.lanes.get(at).map_or_else(|| Address::of(peer), |lane| lane.known_as(peer))
    }

    fn cancel(&mut self, now: Instant, (lane, ask): (usize, AskId)) {
        self.asks.drop_silently((lane, ask));
        self.on_host(lane, now, |host| host.cancel(now, ask));
    }

    /// Gives a host an input and drains it.
    pub(super) fn on_host<T>(
        &mut self,
        at: usize,
        now: Instant,
        input: impl FnOnce(&mut DatagramHost) -> T,
    ) -> Option<T> {
        let lane = self.lanes.get_mut(at)?;
        let done = input(&mut lane.host);
        lane.poll(now, &mut self.watch, &mut AskSink { lane: at, asks: &mut self.asks });
        Some(done)
    }

    fn stats(&self) -> Stats {
        let memory = self.asks.gatherings.memory();
        let mut stats = Stats { sockets: self.lanes.len(), memory, ..Stats::default() };
        for lane in &self.lanes {
            stats.add(&lane.host.endpoint().counters());
            stats.memory += lane.host.memory();
            stats.exchanges += u64::from(lane.host.endpoint().exchanges());
            if let Some(sessions) = &lane.sessions {
                sessions.count(&mut stats);
            }
        }
        (stats.backlogs, stats.unsent) = (self.watch.backlogs, self.watch.unsent);
        stats.unnecessary_retransmissions = self.watch.unnecessary;
        stats.peers = self.watch.peers(self.clock.now(), |peer| {
            // The port that knows it last knows it best.
            let knows = |lane: &&Lane| lane.host.endpoint().view(lane.known_as(peer)).is_some();
            let known = self.lanes.iter().rev().find(knows).map(|lane| (lane.host.endpoint(), lane.known_as(peer)));
            let view = known.and_then(|(endpoint, peer)| endpoint.view(peer)).unwrap_or_default();
            let base_rtt = known.and_then(|(endpoint, peer)| endpoint.base_rtt(peer));
            // All of them were asked.
            Known { is_validated: true, view, base_rtt, waiting: self.routes.held(peer) }
        });
        stats
    }
}

pub(super) fn refused(error: Refused) -> Error {
    Error::Refused { reason: error.to_string() }
}

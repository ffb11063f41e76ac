//! A server's settings.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use millpond_coap::{Config, Duplicates, Endpoint, Limits, Transmission};
use millpond_control::ChanceSeed;
use tokio::sync::mpsc;

use super::{
    AddressRule, IntoResponse, Next, Request, Resource, Running, Server,
    admission::{Admission, AdmissionLimits},
    desk::{Desk, DeskLimits},
    layer::{Layer, layer},
    memberships::{Membership, join_all},
    metrics,
    reachability::Reachability,
    request::{Shared, State},
    resource::Handling,
    router::Router,
    worker::{Order, Worker, keep_running},
};
use crate::{
    ControllerChoice, DEFAULT_PORT, Error, ServerSecurity, TraceEvent, Transport,
    client::block_size,
    clock::{Clock, span},
    dtls::{Keys, ServerKeys, Sessions},
    lane::Lane,
    least_wait::LEAST_WAIT,
    secrets,
    tcp::{self, ConnectionLimits, Connections},
    trace::Hook,
    transfer::{self, Host},
    udp::{ALL_COAP_NODES, Address, Interface, Port, Role},
    watch::Watch,
};

/// Bytes of answers that handlers have made and that have not been taken over; more if bodies may be longer than a
/// quarter of it.
const MOST_HELD: usize = 64 << 20;

/// Bytes that connections may hold together; more if bodies may be longer than a sixteenth of it.
const MOST_IN_CONNECTIONS: usize = 256 << 20;

/// Sets up a [`Server`].
pub struct ServerBuilder {
    udp: Vec<SocketAddr>,
    tcp: Vec<SocketAddr>,
    tls: Vec<SocketAddr>,
    dtls: Vec<SocketAddr>,
    workers: usize,
    controller: ControllerChoice,
    controllers: BTreeMap<SocketAddr, ControllerChoice>,
    routes: Vec<(String, Resource)>,
    fallback: Option<Handling>,
    is_fallback_conditional: bool,
    layers: Vec<Layer>,
    state: Vec<Shared>,
    transmission: Transmission,
    ack_delay: Duration,
    duplicates: Duplicates,
    block_size: u16,
    longest_body: usize,
    most_running: usize,
    most_running_per_peer: usize,
    handling_time: Duration,
    most_connections: usize,
    rule: AddressRule,
    security: ServerSecurity,
    groups: Vec<Membership>,
    leisure: Duration,
    changes_by_group: bool,
    metrics: Option<SocketAddr>,
    hook: Option<Hook>,
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("udp", &self.udp).field("tcp", &self.tcp).finish_non_exhaustive()
    }
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            udp: Vec::new(),
            tcp: Vec::new(),
            tls: Vec::new(),
            dtls: Vec::new(),
            workers: 1,
            controller: ControllerChoice::default(),
            controllers: BTreeMap::new(),
            routes: Vec::new(),
            fallback: None,
            is_fallback_conditional: false,
            layers: Vec::new(),
            state: Vec::new(),
            transmission: Transmission::RFC7252,
            ack_delay: Duration::from_millis(100),
            duplicates: Duplicates::Stored,
            block_size: 1_024,
            longest_body: 1 << 20,
            most_running: 4_096,
            most_running_per_peer: 64,
            handling_time: Duration::from_secs(247),
            most_connections: 16_384,
            rule: AddressRule::default(),
            security: ServerSecurity::default(),
            groups: Vec::new(),
            leisure: Duration::from_secs(5),
            changes_by_group: false,
            metrics: None,
            hook: None,
        }
    }
}

impl ServerBuilder {
    /// Listens on this address for datagrams. Repeatable; without any, and without another listener, on port 5683
    /// of all addresses.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.udp.push(address);
        self
    }

    /// Listens on this address for connections (RFC 8323). Repeatable.
    #[must_use]
    pub fn bind_tcp(mut self, address: SocketAddr) -> Self {
        self.tcp.push(address);
        self
    }

    /// Listens on this address for connections under TLS (RFC 8323 §8.2), with the certificate of
    /// [`security`](Self::security). Repeatable.
    #[must_use]
    pub fn bind_tls(mut self, address: SocketAddr) -> Self {
        self.tls.push(address);
        self
    }

    /// Listens on this address for datagrams under DTLS (RFC 7252 §9): `coaps`, port 5684 by custom. Repeatable. Needs
    /// [`security`](Self::security) with a certificate or pre-shared keys.
    #[must_use]
    pub fn bind_dtls(mut self, address: SocketAddr) -> Self {
        self.dtls.push(address);
        self
    }

    /// How many sockets share each UDP port, each with a task of its own; 1. The kernel spreads peers over them, and
    /// leaves each peer, with its session, at one of them as long as address and port are the same.
    #[must_use]
    pub const fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// The congestion controller for separate responses and notifications to every peer;
    /// [`DEFAULT_CONTROLLER`](crate::DEFAULT_CONTROLLER) if none is chosen.
    #[must_use]
    pub fn controller(mut self, controller: impl Into<ControllerChoice>) -> Self {
        self.controller = controller.into();
        self
    }

    /// The congestion controller of this peer.
    #[must_use]
    pub fn controller_for(mut self, peer: SocketAddr, controller: impl Into<ControllerChoice>) -> Self {
        self.controllers.insert(peer, controller.into());
        self
    }

    /// What stands at a path: `/sensors/{id}` matches one segment and names it, `/files/{*rest}` all the rest.
    #[must_use]
    pub fn route(mut self, path: &str, resource: Resource) -> Self {
        self.routes.push((path.into(), resource));
        self
    }

    /// Answers whatever no route matches, with any method; otherwise that is 4.04.
    #[must_use]
    pub fn fallback<F, R>(mut self, handler: F) -> Self
    where
        F: Fn(Request) -> R + Send + Sync + 'static,
        R: Future<Output: IntoResponse> + Send + 'static,
    {
        self.fallback = Some(Handling::new(handler));
        self.is_fallback_conditional = false;
        self
    }

    /// The same by a handler that keeps to If-Match and If-None-Match, as with
    /// [`Resource::conditional`](crate::Resource::conditional).
    #[must_use]
    pub fn conditional_fallback<F, R>(self, handler: F) -> Self
    where
        F: Fn(Request) -> R + Send + Sync + 'static,
        R: Future<Output: IntoResponse> + Send + 'static,
    {
        Self { is_fallback_conditional: true, ..self.fallback(handler) }
    }

    /// Puts this around the handlers of all routes and around the fallback, as [`Resource::layer`](crate::Resource::layer) does
    /// around those of one resource: for logs, limits and rights that concern all. Repeatable; the first one is outermost.
    /// What the server answers by itself (4.04, 4.05, `/.well-known/core`) passes through none.
    #[must_use]
    pub fn layer<F, R>(mut self, around: F) -> Self
    where
        F: Fn(Request, Next) -> R + Send + Sync + 'static,
        R: Future<Output: IntoResponse> + Send + 'static,
    {
        self.layers.push(layer(around));
        self
    }

    /// Gives all handlers and layers this value; [`Request::state`](crate::Request::state) finds it by its type. Of several
    /// values of one type the last one counts.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.push(Box::new(value));
        self
    }

    /// MAX_RETRANSMIT of separate responses and confirmable notifications; 4 (RFC 7252 §4.8).
    #[must_use]
    pub const fn max_retransmit(mut self, count: u8) -> Self {
        self.transmission.max_retransmit = count;
        self
    }

    /// What a further copy of a request meets: [`Duplicates::Stored`] unless it is said. [`Duplicates::Calm`] does not
    /// answer while the answer before is still in the queue of a slow link, which ends the collapse of devices whose
    /// timers are too short for it. Peers in one network (24 bits of IPv4, 48 of IPv6) count as on one path.
    #[must_use]
    pub const fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.duplicates = duplicates;
        self
    }

    /// How long a handler may take before its request is acknowledged and its answer becomes a separate one (RFC 7252
    /// §5.2.2); 100 ms, so that the acknowledgement comes before the timers of clients that have learnt a fast path.
    #[must_use]
    pub const fn ack_delay(mut self, delay: Duration) -> Self {
        self.ack_delay = delay;
        self
    }

    /// The largest blocks, 16 to 1024 bytes; 1024.
    #[must_use]
    pub const fn block_size(mut self, bytes: u16) -> Self {
        self.block_size = bytes;
        self
    }

    /// The longest body that is taken, in bytes; 1 MiB. Longer ones are answered with 4.13.
    #[must_use]
    pub const fn longest_body(mut self, bytes: usize) -> Self {
        self.longest_body = bytes;
        self
    }

    /// How many handlers that wait may be under way; 4096, over all workers and connections. Requests beyond are answered
    /// with 5.03 and Max-Age; those whose handler has always had its answer at hand are answered all the same.
    ///
    /// Senders that have not proved their address share a quarter of the places, and each network of theirs (24 bits of an
    /// IPv4 address, 48 of an IPv6 one) a quarter of that. Beyond it they are told to prove it (4.01 with Echo). No network
    /// has more than three quarters of all.
    #[must_use]
    pub const fn most_running(mut self, handlers: usize) -> Self {
        self.most_running = handlers;
        self
    }

    /// How many of them for one peer; 64. Requests beyond are answered with 4.29 and Max-Age (RFC 8516).
    #[must_use]
    pub const fn most_running_per_peer(mut self, handlers: usize) -> Self {
        self.most_running_per_peer = handlers;
        self
    }

    /// How long a handler may take; 247 s, EXCHANGE_LIFETIME of RFC 7252 §4.8.2, after which nobody need wait any more.
    /// Then it is dropped, its place is free, and the answer is 5.03.
    #[must_use]
    pub const fn handling_time(mut self, longest: Duration) -> Self {
        self.handling_time = longest;
        self
    }

    /// How many connections may be open; 16,384, over all listeners. A quarter of them may not have asked for anything yet,
    /// and a quarter of those be of one network (24 bits of an IPv4 address, 48 of an IPv6 one); three quarters of all may be
    /// of one network. Beyond each the one that has shown least gives way: that waits longest for its first request, else
    /// that was silent longest.
    #[must_use]
    pub const fn most_connections(mut self, connections: usize) -> Self {
        self.most_connections = connections;
        self
    }

    /// Before which answers a client must prove that it is where it says.
    #[must_use]
    pub const fn verify_addresses(mut self, rule: AddressRule) -> Self {
        self.rule = rule;
        self
    }

    /// What secure sessions are made with.
    #[must_use]
    pub fn security(mut self, security: ServerSecurity) -> Self {
        self.security = security;
        self
    }

    /// Answers what is sent to this group and comes in by this interface, or by the one that routes give. Repeatable. The
    /// server must listen on all addresses of the group's family, as it does without [`bind`](Self::bind).
    ///
    /// A request that came to a group is answered within [`leisure`](Self::leisure), once, without acknowledgement, and only
    /// if there is something to say (RFC 7252 §8): no error, no empty list of links. One that is not non-confirmable is
    /// ignored, and so is one that would change something, see [`changes_by_group`](Self::changes_by_group). Of an answer too
    /// large for an address that nobody has proved the first 128 bytes leave; the rest is asked for by unicast.
    #[must_use]
    pub fn join(mut self, group: IpAddr, interface: Option<Interface>) -> Self {
        self.groups.push(Membership { group, interface, must_be: true });
        self
    }

    /// Joins the groups of all CoAP nodes (RFC 7252 §12.8), as far as this machine has IPv4 and IPv6: 224.0.1.187, ff02::fd
    /// and ff05::fd.
    #[must_use]
    pub fn join_all_coap_nodes(mut self, interface: Option<Interface>) -> Self {
        let all = ALL_COAP_NODES.into_iter();
        self.groups.extend(all.map(|group| Membership { group, interface: interface.clone(), must_be: false }));
        self
    }

    /// Over how long the answers to requests that came to a group are spread; 5 s, DEFAULT_LEISURE of RFC 7252 §8.2.
    /// [`leisure`](crate::leisure) computes another from the size of the group.
    #[must_use]
    pub const fn leisure(mut self, period: Duration) -> Self {
        self.leisure = period;
        self
    }

    /// Whether a request that came to a group may have another method than GET and FETCH; no, because it can be sent to all
    /// servers of a link at once, from a forged address, by whoever is there.
    #[must_use]
    pub const fn changes_by_group(mut self, may: bool) -> Self {
        self.changes_by_group = may;
        self
    }

    /// Tells its figures in the text format of Prometheus at `http://address/metrics`.
    #[must_use]
    pub const fn metrics(mut self, address: SocketAddr) -> Self {
        self.metrics = Some(address);
        self
    }

    /// Tells everything that happens on the wire, from the workers' tasks: do little there.
    #[must_use]
    pub fn trace(mut self, hook: impl Fn(&TraceEvent) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Starts the server in the current runtime.
    ///
    /// # Errors
    /// A setting or a route that cannot be used; an address that cannot be bound; no random bytes from the operating
    /// system.
    pub async fn start(mut self) -> Result<Server, Error> {
        if self.workers == 0 {
            return Err(Error::Setting { name: "workers", reason: "is 0; use 1 or more".into() });
        }
        let is_told = |addresses: &Vec<SocketAddr>| !addresses.is_empty();
        if ![&self.udp, &self.tcp, &self.dtls, &self.tls].into_iter().any(is_told) {
            let port = DEFAULT_PORT;
            self.udp = vec![(Ipv4Addr::UNSPECIFIED, port).into(), (Ipv6Addr::UNSPECIFIED, port).into()];
        }
        let mut router = Router::default();
        router.fallback = self.fallback.take();
        router.is_fallback_conditional = self.is_fallback_conditional;
        if let Some(fallback) = &mut router.fallback {
            fallback.put_within(self.layers.iter());
        }
        router.state = State::of(std::mem::take(&mut self.state));
        for (path, mut resource) in std::mem::take(&mut self.routes) {
            resource.put_within(&self.layers);
            router.add(&path, resource)?;
        }
        let router = Arc::new(router);
        let admission = Admission::new(AdmissionLimits {
            running: self.most_running,
            running_per_peer: self.most_running_per_peer,
            held: MOST_HELD.max(self.longest_body.saturating_mul(4)),
        });
        let connections = Connections::new(ConnectionLimits {
            connections: self.most_connections,
            memory: MOST_IN_CONNECTIONS.max(self.longest_body.saturating_mul(16)),
        });
        let mut server = Server {
            addresses: Vec::new(),
            groups: Vec::new(),
            metrics: None,
            running: Running { orders: Vec::new(), admission, connections, panics: Arc::default() },
            tasks: Vec::new(),
            helpers: Vec::new(),
        };
        self.start_udp(&router, &mut server)?;
        self.start_tcp(&router, &mut server).await?;
        if let Some(address) = self.metrics {
            let running = server.running.clone();
            let (at, task) = metrics::serve(address, move || {
                let running = running.clone();
                async move { running.stats().await }
            })
            .await?;
            server.metrics = Some(at);
            server.helpers.push(task);
        }
        Ok(server)
    }

    fn start_udp(&self, router: &Arc<Router>, server: &mut Server) -> Result<(), Error> {
        let pattern = self.host()?;
        let controllers = Arc::new(self.controllers.clone());
        let mut node = 0;
        let mut ports = Vec::new();
        let plain = self.udp.iter().map(|address| (Transport::Udp, address));
        for (transport, address) in plain.chain(self.dtls.iter().map(|address| (Transport::Dtls, address))) {
            let role = if self.workers > 1 { Role::Worker } else { Role::Server };
            let mut address = *address;
            for _ in 0..self.workers {
                let port = Port::bind(address, role)?;
                if address != port.local() || !server.addresses.contains(&(transport, address)) {
                    address = port.local();
                    server.addresses.push((transport, address));
                }
                // Each worker has keys of its own: who named which identity is kept in them.
                let keys = (transport == Transport::Dtls).then(|| ServerKeys::new(&self.security).map(Keys::Server));
                ports.push((port, keys.transpose()?));
            }
        }
        let plain: Vec<&Port> = ports.iter().filter(|(_, keys)| keys.is_none()).map(|(port, _)| port).collect();
        server.groups = join_all(&self.groups, &plain)?;
        let sockets = u32::try_from(ports.len()).unwrap_or(u32::MAX);
        for (port, keys) in ports {
            let (orders, ordered) = mpsc::unbounded_channel::<Order>();
            let (port, is_secure) = (Arc::new(port), keys.is_some());
            let (router, admission) = (Arc::clone(router), Arc::clone(&server.running.admission));
            let (limits, rule, security) = (self.limits()?, self.rule, self.security.clone());
            let (controllers, hook) = (Arc::clone(&controllers), self.hook.clone());
            // Each that follows another has a number of its own, and with it other message IDs and tokens.
            let (pattern, mut number) = (pattern.sibling(node), node);
            node += 1;
            let mut make = move |keys: Option<Keys>| -> Result<Worker, Error> {
                let (telling, told) = mpsc::unbounded_channel();
                let (router, admission) = (Arc::clone(&router), Arc::clone(&admission));
                let desk = Desk::new(router, limits, Reachability::new(rule)?, admission, telling);
                let sessions = keys.map(|keys| Sessions::standard(keys, Clock::start().origin()));
                let lane = Lane::new(Arc::clone(&port), pattern.sibling(number), sessions);
                number = number.wrapping_add(sockets);
                Ok(Worker::new(lane, desk, told, Arc::clone(&controllers), Watch::new(hook.clone())))
            };
            let first = make(keys)?;
            let another = move || {
                let keys = is_secure.then(|| ServerKeys::new(&security).map(Keys::Server)).transpose()?;
                make(keys)
            };
            server.running.orders.push(orders);
            server.tasks.push(tokio::spawn(keep_running(first, ordered, Arc::clone(&server.running.panics), another)));
        }
        Ok(())
    }

    async fn start_tcp(&self, router: &Arc<Router>, server: &mut Server) -> Result<(), Error> {
        let (limits, longest_body) = (self.limits()?, self.longest_body);
        let hook = self.hook.clone();
        let (router, admission) = (Arc::clone(router), Arc::clone(&server.running.admission));
        let connections = Arc::clone(&server.running.connections);
        let shared = Arc::new(tcp::Shared { router, admission, connections, limits, longest_body, hook });
        let acceptor = if self.tls.is_empty() { None } else { Some(tcp::acceptor(&self.security)?) };
        let plain = self.tcp.iter().map(|address| (*address, Transport::Tcp, None));
        let secure = self.tls.iter().map(|address| (*address, Transport::Tls, acceptor.clone()));
        for (address, transport, acceptor) in plain.chain(secure) {
            let (orders, ordered) = mpsc::unbounded_channel::<Order>();
            let (local, task) = tcp::listen(address, Arc::clone(&shared), acceptor, ordered).await?;
            server.addresses.push((transport, local));
            server.running.orders.push(orders);
            server.tasks.push(task);
        }
        Ok(())
    }

    fn limits(&self) -> Result<DeskLimits, Error> {
        Ok(DeskLimits {
            handling: self.handling_time,
            changes_by_group: self.changes_by_group,
            block: block_size(self.block_size)?.bytes() as usize,
        })
    }

    /// A host that the workers' are made like.
    fn host(&self) -> Result<Host<Address>, Error> {
        let config = Config {
            transmission: self.transmission,
            ack_delay: span(self.ack_delay),
            duplicates: self.duplicates,
            leisure: span(self.leisure),
            limits: Limits { waiting_per_peer: 64, ..Limits::DEFAULT },
            ..Config::DEFAULT
        };
        let (chance, identities) = (secrets::chance()?, secrets::identities()?);
        let endpoint = Endpoint::new(config, self.controller.build(LEAST_WAIT), chance, 0, identities)
            .map_err(|error| Error::Setting { name: "transmission", reason: error.to_string() })?
            .with_paths(Address::path);
        let jitter = ChanceSeed::new(u64::from_le_bytes(secrets::bytes()?));
        let defaults = transfer::Limits::DEFAULT;
        let bodies = defaults.bodies.max(self.longest_body.saturating_mul(4));
        let limits = transfer::Limits { body: self.longest_body, bodies, ..defaults };
        let config = transfer::Config { block: block_size(self.block_size)?, limits, ..transfer::Config::DEFAULT };
        Host::new(endpoint, config, jitter)
            .map_err(|error| Error::Setting { name: "transfer", reason: error.to_string() })
    }
}

//! How a server begins: its sockets, and the tasks that own them.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use millpond_coap::{Config, Endpoint, Limits, PathCache, block::robust::BurstParameters};
use millpond_control::ChanceSeed;
#[cfg(feature = "state")]
use tokio::sync::Notify;
use tokio::sync::mpsc;

#[cfg(feature = "state")]
use super::state::{self, Observing, State};
use super::{
    Offered, Running, Server, ServerBuilder,
    admission::{Admission, AdmissionLimits},
    bound::Bound,
    dispatcher::{Dispatcher, DispatcherLimits},
    memberships::{Joined, join_all},
    metrics,
    policy::Policing,
    reachability::Reachability,
    request::States,
    router::Router,
};
#[cfg(feature = "tcp")]
use crate::tcp;
use crate::{
    DEFAULT_PORT, Error, PathKey, Transport,
    client::{Settings, block_size, datagram_with},
    clock::{Clock, span},
    dtls::{ClientKeys, Keys, ServerKeys, Sessions},
    secrets,
    security::{ClientSecurity, Other, ServerSecurity},
    socket::{DatagramStack, Order, Serving, SocketStack, SocketTask, keep_running},
    transfer,
    udp::{Address, BoundSocket, Role},
};

/// Bytes of answers that handlers have made and that have not been taken over; more if bodies may be longer than a
/// quarter of it.
const MOST_HELD: usize = 64 << 20;

/// Bytes that connections may hold together: 256 MiB, or more if bodies may be longer than a sixteenth of it.
#[cfg(feature = "tcp")]
pub(crate) fn most_in_connections(longest_body: usize) -> usize {
    (256 << 20).max(longest_body.saturating_mul(16))
}

/// What the sessions of a port are made with, by who the other side is in them.
fn keys(other: Option<Other>, server: &ServerSecurity, client: &ClientSecurity) -> Result<Option<Keys>, Error> {
    Ok(match other {
        None => None,
        Some(Other::Client) => Some(Keys::Server(ServerKeys::new(server)?)),
        Some(Other::Server) => Some(Keys::Client(ClientKeys::new(client)?)),
    })
}

/// What an earlier server has left, and who is told when that changes.
#[derive(Default)]
struct Outliving {
    path_cache: PathCache,
    #[cfg(feature = "state")]
    keeper: Option<Arc<Notify>>,
    #[cfg(feature = "state")]
    observers: Vec<Observing>,
    #[cfg(feature = "state")]
    state: Option<State>,
}

#[cfg(feature = "state")]
impl Outliving {
    /// Keeps what this server will leave.
    fn keep(self, server: &mut Server) {
        let Some((state, keeper)) = self.state.zip(self.keeper) else { return };
        let state = Arc::new(tokio::sync::Mutex::new(state));
        server.state = Some(Arc::clone(&state));
        // The first worker may have had a word before there was anybody to hear it.
        keeper.notify_one();
        server.helpers.push(tokio::spawn(state::run(state, keeper, server.running.clone())));
    }
}

impl ServerBuilder {
    /// Starts the server in the current runtime.
    ///
    /// # Errors
    /// A setting or a route that cannot be used; an address that cannot be bound; no random bytes from the operating
    /// system.
    pub async fn start(mut self) -> Result<Server, Error> {
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        if self.workers == 0 {
            return Err(Error::Setting { name: "workers", reason: "is 0; use 1 or more".into() });
        }
        let is_told = |addresses: &Vec<SocketAddr>| !addresses.is_empty();
        let datagrams = [&self.udp, &self.dtls, &self.dtls_clients];
        let streams = [&self.tcp, &self.tcp_clients, &self.tls, &self.tls_clients];
        if !datagrams.into_iter().chain(streams).any(is_told) {
            let port = DEFAULT_PORT;
            self.udp = vec![(Ipv4Addr::UNSPECIFIED, port).into(), (Ipv6Addr::UNSPECIFIED, port).into()];
        }
        let mut router = Router::default();
        router.state = States::of(std::mem::take(&mut self.state));
        router.is_fallback_conditional = self.is_fallback_conditional;
        if let Some(mut fallback) = self.fallback.take() {
            let offered = Offered { states: &router.state, parameters: &[] };
            fallback.check(&offered).map_err(|reason| Error::Setting { name: "fallback", reason })?;
            fallback.put_within(self.layers.iter());
            router.fallback = Some(fallback);
        }
        for (path, mut resource) in std::mem::take(&mut self.routes) {
            resource.put_within(&self.layers);
            router.add(&path, resource)?;
        }
        if let Some(mut proxy) = self.proxy.take() {
            proxy.put_within(&self.layers);
            router.add_proxy(proxy)?;
        }
        let router = Arc::new(router);
        let outliving = self.outliving().await?;
        let admission = Admission::new(AdmissionLimits {
            running: self.most_running,
            running_per_peer: self.most_running_per_peer,
            held: MOST_HELD.max(self.longest_body.saturating_mul(4)),
        });
        // One for all workers: what they share is told the time of each.
        let clock = Clock::start();
        let mut server = Server {
            addresses: Vec::new(),
            groups: Vec::new(),
            missed_groups: Vec::new(),
            metrics: None,
            running: Running {
                orders: Vec::new(),
                admission,
                policing: Policing::by(std::mem::take(&mut self.policy)),
                #[cfg(feature = "tcp")]
                connections: tcp::Connections::new(tcp::ConnectionLimits {
                    connections: self.most_connections,
                    memory: most_in_connections(self.longest_body),
                }),
                security: Arc::new(RwLock::new(self.security.clone())),
                panics: Arc::default(),
            },
            settings: Arc::new(Settings { path_cache: outliving.path_cache.clone(), ..self.settings_of_clients()? }),
            clients: Mutex::default(),
            #[cfg(feature = "tcp")]
            sources: Vec::new(),
            workers: self.workers,
            #[cfg(feature = "_secure")]
            awaits_sessions: !self.dtls.is_empty(),
            tasks: Vec::new(),
            helpers: Vec::new(),
            #[cfg(feature = "state")]
            state: None,
        };
        let latencies = metrics::Latencies::new();
        if self.metrics.is_some() {
            let latencies = latencies.clone();
            self.accesses = std::mem::take(&mut self.accesses).behind(move |access| latencies.count(access));
        }
        let mut bound = std::mem::take(&mut self.bound);
        self.start_udp(&router, clock, &mut server, &mut bound, &outliving)?;
        #[cfg(feature = "tcp")]
        self.start_tcp(&router, clock, &mut server, &mut bound).await?;
        bound.check_used()?;
        if let Some(address) = self.metrics {
            let (running, most, beside) = (server.running.clone(), self.metrics_peers, self.metrics_beside.take());
            let (at, task) = metrics::serve_metrics(address, move || {
                let (running, latencies, beside) = (running.clone(), latencies.clone(), beside.clone());
                async move {
                    let own = metrics::text(running.stats().await, (most, &latencies));
                    metrics::with_those(own, beside.as_ref()).await
                }
            })
            .await?;
            server.metrics = Some(at);
            server.helpers.push(task);
        }
        #[cfg(feature = "state")]
        outliving.keep(&mut server);
        Ok(server)
    }

    /// What an earlier server has left.
    #[cfg(feature = "state")]
    async fn outliving(&mut self) -> Result<Outliving, Error> {
        let Some(path) = self.state_file.take() else { return Ok(Outliving::default()) };
        if self.workers > 1 {
            let reason = "knows observers of a single worker; use workers 1, or leave it out".into();
            return Err(Error::Setting { name: "state_file", reason });
        }
        let (state, observers) = State::open(path).await?;
        Ok(Outliving { path_cache: state.path_cache(), keeper: Some(Arc::default()), observers, state: Some(state) })
    }

    /// Nothing is left.
    #[cfg(not(feature = "state"))]
    async fn outliving(&mut self) -> Result<Outliving, Error> {
        Ok(Outliving::default())
    }

    fn start_udp(
        &self,
        router: &Arc<Router>,
        clock: Clock,
        server: &mut Server,
        bound: &mut Bound,
        #[cfg_attr(not(feature = "state"), allow(unused_variables, reason = "nothing outlives a server then"))]
        outliving: &Outliving,
    ) -> Result<(), Error> {
        let pattern = self.stack()?;
        let mut node = 0;
        let mut sockets = Vec::new();
        let plain = self.udp.iter().map(|address| (None, address));
        let awaits = self.dtls.iter().map(|address| (Some(Other::Client), address));
        let begins = self.dtls_clients.iter().map(|address| (Some(Other::Server), address));
        for (other, address) in plain.chain(awaits).chain(begins) {
            let transport = if other.is_some() { Transport::Dtls } else { Transport::Udp };
            let role = if self.workers > 1 { Role::Worker } else { Role::Server };
            let mut address = *address;
            for _ in 0..self.workers {
                let socket = match bound.udp(address) {
                    Some(socket) => BoundSocket::bound(socket, address, role)?,
                    None => BoundSocket::bind(address, role)?,
                };
                if address != socket.local() || !server.addresses.contains(&(transport, address)) {
                    address = socket.local();
                    server.addresses.push((transport, address));
                }
                // Each worker has keys of its own: who named which identity is kept in them.
                sockets.push((socket, other, keys(other, &self.security, &self.client_security)?));
            }
        }
        let plain: Vec<&BoundSocket> =
            sockets.iter().filter(|(_, other, _)| other.is_none()).map(|(socket, ..)| socket).collect();
        Joined { at: server.groups, missed: server.missed_groups } = join_all(&self.groups, &plain)?;
        let count = u32::try_from(sockets.len()).unwrap_or(u32::MAX);
        for (socket, other, first_keys) in sockets {
            let (orders, ordered) = mpsc::unbounded_channel::<Order>();
            let (socket, client_security) = (Arc::new(socket), self.client_security.clone());
            let (router, admission) = (Arc::clone(router), Arc::clone(&server.running.admission));
            let policing = Arc::clone(&server.running.policing);
            let (limits, rule, security) = (self.limits()?, self.rule, Arc::clone(&server.running.security));
            let trusted = self.trusted.clone();
            let (settings, accesses) = (Arc::clone(&server.settings), self.accesses.clone());
            let unasked = self.unasked.clone();
            let is_by_identity = self.shared_paths.as_ref().is_some_and(PathKey::is_by_identity);
            // Each that follows another has a number of its own, and with it other message IDs and tokens.
            let (pattern, mut number) = (pattern.sibling(node), node);
            node += 1;
            #[cfg(feature = "state")]
            let keeper = outliving.keeper.clone();
            let mut make = move |keys: Option<Keys>| -> Result<SocketTask, Error> {
                let (task_events, received) = mpsc::unbounded_channel();
                let takes_pieces = || router.streams().then(|| router.takes_pieces());
                let admission = Arc::clone(&admission);
                let reachability = Reachability::new(rule)?.trusting(&trusted);
                let validation = reachability.clone();
                let (policing, accesses) = (Arc::clone(&policing), accesses.clone());
                let dispatcher = Dispatcher::new(
                    Arc::clone(&router),
                    limits,
                    reachability,
                    admission,
                    policing,
                    task_events,
                    accesses,
                );
                let is_plain = keys.is_none();
                let sessions = keys.map(|keys| Sessions::standard(keys, clock.origin()));
                let mut stack = pattern.sibling(number);
                if let Some(takes_pieces) = takes_pieces() {
                    stack.take_pieces(takes_pieces);
                }
                // A session has shown where it is (RFC 6347 §4.2.1, RFC 9147 §5.1).
                if is_plain {
                    stack.validate_by(validation);
                }
                let mut socket = SocketStack::new(0, Arc::clone(&socket), stack, sessions);
                socket.vet_complaints();
                socket.shares_by_identity = is_by_identity;
                number = number.wrapping_add(count);
                let serving = Serving::new(dispatcher, received);
                #[cfg(feature = "state")]
                let serving = serving.kept_by(keeper.clone().filter(|_| is_plain));
                Ok(SocketTask::of_server(Arc::clone(&settings), clock, socket, serving, unasked.clone()))
            };
            #[cfg_attr(not(feature = "state"), allow(unused_mut, reason = "nobody observed before"))]
            let mut first = make(first_keys)?;
            #[cfg(feature = "state")]
            first.observe_again(&outliving.observers);
            let another = move || {
                let security = security.read().unwrap_or_else(PoisonError::into_inner);
                make(keys(other, &security, &client_security)?)
            };
            server.running.orders.push(orders);
            server.tasks.push(tokio::spawn(keep_running(first, ordered, Arc::clone(&server.running.panics), another)));
        }
        Ok(())
    }

    #[cfg(feature = "tcp")]
    async fn start_tcp(
        &self,
        router: &Arc<Router>,
        clock: Clock,
        server: &mut Server,
        bound: &mut Bound,
    ) -> Result<(), Error> {
        let (limits, longest_body, longest_token) = (self.limits()?, self.longest_body, self.longest_token);
        let (hook, accesses) = (self.hook.clone(), self.accesses.clone());
        let (router, admission) = (Arc::clone(router), Arc::clone(&server.running.admission));
        let (connections, policing) = (Arc::clone(&server.running.connections), Arc::clone(&server.running.policing));
        let shared = tcp::Shared {
            clock,
            router,
            admission,
            policing,
            connections,
            limits,
            longest_body,
            longest_token,
            protecting: self.protecting.clone(),
            hook,
            accesses,
        };
        let shared = Arc::new(shared);
        let acceptor = if self.tls.is_empty() { None } else { Some(tcp::acceptor(&self.security)?) };
        if !self.tls_clients.is_empty() {
            tcp::client_config(&self.client_security)?;
        }
        let mut open = |transport, (local, source, task): tcp::Opened, orders| {
            server.addresses.push((transport, local));
            server.sources.push((transport, local, source));
            server.running.orders.push(orders);
            server.tasks.push(task);
        };
        let plain = self.tcp.iter().map(|address| (*address, Transport::Tcp, None));
        let secure = self.tls.iter().map(|address| (*address, Transport::Tls, acceptor.clone()));
        for (address, transport, acceptor) in plain.chain(secure) {
            let (orders, ordered) = mpsc::unbounded_channel::<Order>();
            let listens = tcp::listen(address, bound.tcp(address), Arc::clone(&shared), acceptor, ordered);
            open(transport, listens.await?, orders);
        }
        let plain = self.tcp_clients.iter().map(|address| (*address, Transport::Tcp));
        let secure = self.tls_clients.iter().map(|address| (*address, Transport::Tls));
        for (address, transport) in plain.chain(secure) {
            let (orders, ordered) = mpsc::unbounded_channel::<Order>();
            open(transport, tcp::begin_from(address, Arc::clone(&shared), ordered)?, orders);
        }
        Ok(())
    }

    /// How clients on the server's sockets behave.
    fn settings_of_clients(&self) -> Result<Settings, Error> {
        Ok(Settings {
            controller: self.controller.clone(),
            controllers: self.controllers.clone(),
            shared_paths: self.shared_paths.clone(),
            transmission: self.transmission,
            block: block_size(self.block_size)?,
            longest_body: self.longest_body,
            security: self.client_security.clone(),
            q_block: false,
            hook: self.hook.clone(),
            protecting: self.protecting.clone(),
            ..Settings::default()
        })
    }

    fn limits(&self) -> Result<DispatcherLimits, Error> {
        Ok(DispatcherLimits {
            handling: self.handling_time,
            changes_by_group: self.changes_by_group,
            block: block_size(self.block_size)?.bytes() as usize,
        })
    }

    /// A stack that the workers' are made like.
    fn stack(&self) -> Result<DatagramStack, Error> {
        let received = self.longest_datagram.max(datagram_with(self.longest_token));
        let config = Config {
            transmission: self.transmission,
            ack_delay: span(self.ack_delay),
            duplicates: self.duplicates,
            leisure: span(self.leisure),
            // A set leaves as RFC 9177 §7.2 has it.
            admits_pieces: false,
            takes_unasked: self.unasked.is_some(),
            longest_token: self.longest_token,
            limits: Limits { waiting_per_peer: 64, received, ..Limits::DEFAULT },
            ..Config::DEFAULT
        };
        let (chance, id_generator) = (secrets::chance()?, secrets::id_generator()?);
        let mut endpoint = Endpoint::new(config, self.controller.controller(), chance, 0, id_generator)
            .map_err(|error| Error::Setting { name: "transmission", reason: error.to_string() })?
            .with_paths(Address::path);
        if let Some(key) = &self.shared_paths {
            key.check()?;
            endpoint = key.sharing_paths(endpoint);
        }
        endpoint = self.protecting.endpoint(endpoint);
        let jitter = ChanceSeed::new(u64::from_le_bytes(secrets::bytes()?));
        let defaults = transfer::Limits::DEFAULT;
        let several = self.longest_body.saturating_mul(4);
        let (bodies, cached) = (defaults.bodies.max(several), defaults.cached.max(several));
        let limits = transfer::Limits { body: self.longest_body, bodies, cached, ..defaults };
        let config = transfer::Config {
            block: block_size(self.block_size)?,
            confirm_every: u64::try_from(self.confirm_every.as_micros()).unwrap_or(u64::MAX),
            q_block: self.q_block.then_some(BurstParameters::PACED),
            limits,
            ..transfer::Config::DEFAULT
        };
        DatagramStack::new(endpoint, config, jitter)
            .map_err(|error| Error::Setting { name: "transfer", reason: error.to_string() })
    }
}

//! A server's settings.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    net::{IpAddr, SocketAddr, TcpListener, UdpSocket},
    sync::Arc,
    time::Duration,
};

use ipnet::IpNet;
use millpond_coap::{Duplicates, Limits, Transmission};

use super::{
    AccessRecord, AddressRule, Handler, IntoResponse, Next, Policy, Request, Resource,
    access::AccessHook,
    bound::Bound,
    handler::Handling,
    layer::{Layer, layer},
    memberships::Membership,
    metrics::MetricsBeside,
    request::Shared,
    unasked::{Unasked, UnaskedHook},
};
use crate::{
    ControllerChoice, Error, PathKey, TraceEvent,
    security::{ClientSecurity, Protecting, ServerSecurity},
    trace::Hook,
    udp::{ALL_COAP_NODES, Interface, IntoAddress, canonical},
};

/// Peers that have metrics of their own. A judgement: some five series each.
const METRICS_PEERS: usize = 100;

/// Sets up a [`Server`](super::Server).
pub struct ServerBuilder {
    /// What the first address that is none was refused with.
    pub(super) refused: Option<Error>,
    pub(super) udp: Vec<SocketAddr>,
    pub(super) tcp: Vec<SocketAddr>,
    pub(super) tcp_clients: Vec<SocketAddr>,
    pub(super) tls: Vec<SocketAddr>,
    pub(super) tls_clients: Vec<SocketAddr>,
    pub(super) dtls: Vec<SocketAddr>,
    pub(super) dtls_clients: Vec<SocketAddr>,
    pub(super) bound: Bound,
    pub(super) workers: usize,
    pub(super) controller: ControllerChoice,
    pub(super) controllers: BTreeMap<SocketAddr, ControllerChoice>,
    pub(super) shared_paths: Option<PathKey>,
    pub(super) routes: Vec<(String, Resource)>,
    pub(super) fallback: Option<Handling>,
    pub(super) is_fallback_conditional: bool,
    pub(super) proxy: Option<Resource>,
    pub(super) layers: Vec<Layer>,
    pub(super) state: Vec<Shared>,
    pub(super) transmission: Transmission,
    pub(super) ack_delay: Duration,
    pub(super) duplicates: Duplicates,
    pub(super) block_size: u16,
    pub(super) longest_body: usize,
    pub(super) longest_datagram: u16,
    pub(super) longest_token: u16,
    pub(super) unasked: Option<UnaskedHook>,
    pub(super) q_block: bool,
    pub(super) confirm_every: Duration,
    pub(super) most_running: usize,
    pub(super) most_running_per_peer: usize,
    pub(super) handling_time: Duration,
    pub(super) most_connections: usize,
    pub(super) rule: AddressRule,
    pub(super) trusted: Vec<IpNet>,
    pub(super) policy: Policy,
    pub(super) security: ServerSecurity,
    pub(super) client_security: ClientSecurity,
    pub(super) groups: Vec<Membership>,
    pub(super) leisure: Duration,
    pub(super) changes_by_group: bool,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) metrics_peers: usize,
    pub(super) metrics_beside: Option<MetricsBeside>,
    pub(super) hook: Option<Hook>,
    pub(super) accesses: AccessHook,
    pub(super) protecting: Protecting,
    #[cfg(feature = "state")]
    pub(super) state_file: Option<std::path::PathBuf>,
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("udp", &self.udp).field("tcp", &self.tcp).finish_non_exhaustive()
    }
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            refused: None,
            udp: Vec::new(),
            tcp: Vec::new(),
            tcp_clients: Vec::new(),
            tls: Vec::new(),
            tls_clients: Vec::new(),
            dtls: Vec::new(),
            dtls_clients: Vec::new(),
            bound: Bound::default(),
            workers: 1,
            controller: ControllerChoice::default(),
            controllers: BTreeMap::new(),
            shared_paths: None,
            routes: Vec::new(),
            fallback: None,
            is_fallback_conditional: false,
            proxy: None,
            layers: Vec::new(),
            state: Vec::new(),
            transmission: Transmission::RFC7252,
            ack_delay: Duration::from_millis(100),
            duplicates: Duplicates::Stored,
            block_size: 1_024,
            longest_body: 1 << 20,
            longest_datagram: Limits::DEFAULT.received,
            longest_token: 8,
            unasked: None,
            q_block: false,
            confirm_every: Duration::from_secs(3_600),
            most_running: 4_096,
            most_running_per_peer: 64,
            handling_time: Duration::from_secs(247),
            most_connections: 16_384,
            rule: AddressRule::default(),
            trusted: Vec::new(),
            policy: Policy::default(),
            security: ServerSecurity::default(),
            client_security: ClientSecurity::default(),
            groups: Vec::new(),
            leisure: Duration::from_secs(5),
            changes_by_group: false,
            metrics: None,
            metrics_peers: METRICS_PEERS,
            metrics_beside: None,
            hook: None,
            accesses: AccessHook::default(),
            protecting: Protecting::Nothing,
            #[cfg(feature = "state")]
            state_file: None,
        }
    }
}

impl ServerBuilder {
    /// The address, unless it is none, with which the server will not start.
    fn address(&mut self, setting: &'static str, address: impl IntoAddress) -> Option<SocketAddr> {
        address.into_address(setting).map_err(|error| self.refused.get_or_insert(error)).ok()
    }

    /// Listens on this address for datagrams. Repeatable; without any, and without another listener, on port 5683
    /// of all addresses.
    #[must_use]
    pub fn bind(mut self, address: impl IntoAddress) -> Self {
        let address = self.address("bind", address);
        self.udp.extend(address);
        self
    }

    /// Listens on this address for connections (RFC 8323). Repeatable.
    #[cfg(feature = "tcp")]
    #[must_use]
    pub fn bind_tcp(mut self, address: impl IntoAddress) -> Self {
        let address = self.address("bind_tcp", address);
        self.tcp.extend(address);
        self
    }

    /// Listens on this address for connections under TLS (RFC 8323 §8.2), with the certificate of
    /// [`security`](Self::security). Repeatable.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn bind_tls(mut self, address: impl IntoAddress) -> Self {
        let address = self.address("bind_tls", address);
        self.tls.extend(address);
        self
    }

    /// Listens on this address for datagrams under DTLS (RFC 7252 §9): `coaps`, port 5684 by custom. Repeatable. Needs
    /// [`security`](Self::security) with a certificate or pre-shared keys.
    #[cfg(feature = "dtls")]
    #[must_use]
    pub fn bind_dtls(mut self, address: impl IntoAddress) -> Self {
        let address = self.address("bind_dtls", address);
        self.dtls.extend(address);
        self
    }

    /// A socket that is bound already, as service managers pass them: what listens for datagrams at its address, plain or under DTLS,
    /// uses it and binds none. Such an address must be given, too. Repeatable.
    #[must_use]
    pub fn bound_udp(mut self, socket: UdpSocket) -> Self {
        self.bound.udp.push(socket);
        self
    }

    /// The same of a listener for connections, plain or under TLS. Repeatable.
    #[cfg(feature = "tcp")]
    #[must_use]
    pub fn bound_tcp(mut self, listener: TcpListener) -> Self {
        self.bound.tcp.push(listener);
        self
    }

    /// Binds a port from which the server's [client](super::Server::client) begins sessions of DTLS, with
    /// [`client_security`](Self::client_security), and answers what it is asked in them: a device behind a NAT serves so whom it
    /// registers with. Nobody can begin a session with it. Repeatable.
    #[cfg(feature = "dtls")]
    #[must_use]
    pub fn bind_dtls_client(mut self, address: impl IntoAddress) -> Self {
        let address = self.address("bind_dtls_client", address);
        self.dtls_clients.extend(address);
        self
    }

    /// An address of this machine from which the server's [client](super::Server::client) begins connections, and answers what it is
    /// asked in them (RFC 8323 §3.3): a device behind a NAT serves so whom it registers with. Nobody can begin a connection with it.
    /// Port 0 is another one for each connection; one that is given can have one to a peer, and for a while after that none. Repeatable.
    #[cfg(feature = "tcp")]
    #[must_use]
    pub fn bind_tcp_client(mut self, address: impl IntoAddress) -> Self {
        let address = self.address("bind_tcp_client", address);
        self.tcp_clients.extend(address);
        self
    }

    /// The same under TLS, with [`client_security`](Self::client_security). Repeatable.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn bind_tls_client(mut self, address: impl IntoAddress) -> Self {
        let address = self.address("bind_tls_client", address);
        self.tls_clients.extend(address);
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
        self.controllers.insert(canonical(peer), controller.into());
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
    pub fn fallback<A: 'static>(mut self, handler: impl Handler<A>) -> Self {
        self.fallback = Some(Handling::new(handler));
        self.is_fallback_conditional = false;
        self
    }

    /// The same by a handler that keeps to If-Match and If-None-Match, as with
    /// [`Resource::conditional`](crate::Resource::conditional).
    #[must_use]
    pub fn conditional_fallback<A: 'static>(self, handler: impl Handler<A>) -> Self {
        Self { is_fallback_conditional: true, ..self.fallback(handler) }
    }

    /// Asks others in the place of its clients: this resource gets all requests for a proxy (Proxy-Uri, Proxy-Scheme), and those that no
    /// route matches (RFC 7252 §5.7). It keeps to If-Match and If-None-Match by forwarding them, and gets critical options that the server
    /// does not know where they are [safe to forward](https://www.rfc-editor.org/rfc/rfc7252#section-5.4.2); others are answered with
    /// 4.02. Blocks, Observe and Echo concern the server and its client alone.
    #[must_use]
    pub fn proxy(mut self, resource: Resource) -> Self {
        self.proxy = Some(resource.conditional().hidden());
        self
    }

    /// Puts this around the handlers of all routes and around the fallback, as [`Resource::layer`](crate::Resource::layer) does
    /// around those of one resource: for logs, limits and rights that concern all. Repeatable; the first one is outermost.
    /// What the server answers by itself (4.04, 4.05, `/.well-known/core`) passes through none;
    /// [`access_log`](Self::access_log) is notified of that as well.
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

    /// Peers that this says share a path have one controller, one NSTART and one queue together, in which they take turns; else each
    /// has its own. Each worker has paths of its own. Unvalidated peers, who may have forged their
    /// addresses, share nothing.
    ///
    /// ```
    /// use millpond_live::{Server, PathKey};
    ///
    /// // All of a network: a cell, or what is behind one gateway.
    /// let builder = Server::builder().share_paths(PathKey::prefix(24, 64));
    /// // All that prove one identity under DTLS, at whichever addresses.
    /// let builder = Server::builder().share_paths(PathKey::identity());
    /// ```
    #[must_use]
    pub fn share_paths(mut self, key: PathKey) -> Self {
        self.shared_paths = Some(key);
        self
    }

    /// MAX_RETRANSMIT of separate responses and confirmable notifications; 4 (RFC 7252 §4.8).
    #[must_use]
    pub const fn max_retransmit(mut self, count: u8) -> Self {
        self.transmission.max_retransmit = count;
        self
    }

    /// What a retransmission of a request meets: [`Duplicates::Stored`] unless it is said. [`Duplicates::Calm`] does not
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

    /// The longest body that is taken, in bytes; 1 MiB. Longer ones are answered with 4.13. Of answers in blocks 16 MiB are kept, or four
    /// times this, if that is more: the handler of a longer one is asked anew for each block.
    #[must_use]
    pub const fn longest_body(mut self, bytes: usize) -> Self {
        self.longest_body = bytes;
        self
    }

    /// The longest datagram that is taken, in bytes of CoAP; 1452, what a packet of IPv6 of 1500 bytes holds. A request in a longer
    /// one is answered with 4.13 and this as Size1. What is longer than a packet arrives in fragments, which are put together up to
    /// 65,527; under DTLS at most 4,000 are taken.
    #[must_use]
    pub const fn longest_datagram(mut self, bytes: u16) -> Self {
        self.longest_datagram = bytes;
        self
    }

    /// The longest token that is taken with a request, in bytes, up to 65,000; 8. Beyond 8 (RFC 8974) longer ones are answered with 4.00
    /// instead of rejected, peers over TCP and TLS are told the limit, and datagrams may be longer by that. All such tokens together have
    /// a mebibyte, of which a network has a quarter at most, and in a connection 128 KiB; for want of room they are answered with 5.03.
    #[must_use]
    pub const fn longest_token(mut self, bytes: u16) -> Self {
        self.longest_token = bytes;
        self
    }

    /// Takes responses that nothing was asked for, and reports them: for devices that report so. Confirmable ones are acknowledged
    /// instead of rejected. Of whom they are is not known: a peer that reaches the server can send them. For UDP and DTLS.
    #[must_use]
    pub fn unasked(mut self, hook: impl Fn(&Unasked) + Send + Sync + 'static) -> Self {
        self.unasked = Some(UnaskedHook::new(hook));
        self
    }

    /// Whether long bodies may travel in bursts, by Q-Block1 and Q-Block2 (RFC 9177), to and from clients that ask for it; no.
    /// Others go block by block in any case. RFC 9177 §11 recommends them under security only. Handlers do not notice.
    #[must_use]
    pub const fn q_block(mut self, may: bool) -> Self {
        self.q_block = may;
        self
    }

    /// How often a notification is confirmable whatever its resource says; once an hour. Who does not acknowledge it observes no
    /// more. RFC 7641 §4.5 asks for one in 24 hours. The first one is confirmable in any case, and so are all of
    /// [`Observable::confirmable`](crate::Observable::confirmable). For UDP and DTLS.
    #[must_use]
    pub const fn confirm_notifications_every(mut self, interval: Duration) -> Self {
        self.confirm_every = interval;
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
    #[cfg(feature = "tcp")]
    #[must_use]
    pub const fn most_connections(mut self, connections: usize) -> Self {
        self.most_connections = connections;
        self
    }

    /// Who asks from this network need not show that it is where it says: it gets large answers, and bursts, at once. For custom controllers
    /// networks, into which nobody can send with a forged address. Repeatable.
    ///
    /// ```
    /// use millpond_live::Server;
    ///
    /// let builder = Server::builder().trust("192.0.2.0/24".parse().unwrap());
    /// ```
    #[must_use]
    pub fn trust(mut self, network: IpNet) -> Self {
        self.trusted.push(network);
        self
    }

    /// Before which answers a client must show that it is where it says; see [`AddressRule`].
    #[must_use]
    pub const fn verify_addresses(mut self, rule: AddressRule) -> Self {
        self.rule = rule;
        self
    }

    /// Who may do what, and how often; everybody everything, without limits, unless something is set. It can be
    /// [replaced](super::Server::set_policy) while the server runs.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What secure sessions are made with.
    #[cfg(feature = "_secure")]
    #[must_use]
    pub fn security(mut self, security: ServerSecurity) -> Self {
        self.security = security;
        self
    }

    /// Only requests are served that one of these contexts protects (RFC 8613); another is refused with 4.01, over whatever
    /// transport. Nothing is sent in bursts.
    #[cfg(feature = "oscore")]
    #[must_use]
    pub fn oscore(mut self, contexts: crate::OscoreContexts) -> Self {
        self.protecting = Protecting::By(contexts);
        self
    }

    /// What secure sessions are made with that the server's [clients](super::Server::client) begin; [`ClientSecurity::new`]
    /// unless something is set.
    #[cfg(feature = "_secure")]
    #[must_use]
    pub fn client_security(mut self, security: ClientSecurity) -> Self {
        self.client_security = security;
        self
    }

    /// Answers what is sent to this group and comes in by this interface, or by the one that routes give. Repeatable. The
    /// server must listen on all addresses of the group's family, as it does without [`bind`](Self::bind).
    ///
    /// A request that came to a group is answered within [`leisure`](Self::leisure), once, without acknowledgement, and only
    /// if there is something to say (RFC 7252 §8): no error, no empty list of links. One that is not non-confirmable is
    /// ignored, and so is one that would change something, see [`changes_by_group`](Self::changes_by_group). Of an answer too
    /// long for an address that has shown nothing the first block leaves; the rest is asked for by unicast.
    #[must_use]
    pub fn join(mut self, group: IpAddr, interface: Option<Interface>) -> Self {
        self.groups.push(Membership { group, interface, must_be: true });
        self
    }

    /// Joins the groups of all CoAP nodes (RFC 7252 §12.8), as far as this machine has IPv4 and IPv6: 224.0.1.187, ff02::fd
    /// and ff05::fd. Those that cannot be joined are [told](super::Server::missed_groups).
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
    /// servers of a link at once, from a forged address, by a peer that is there.
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

    /// Reports what became of each request, from the workers' tasks: do little there. Whichever layer answers or refuses it, a
    /// handler, the server (4.04, 4.05, 4.29, 5.05, ...) or the layers below it (4.00, 4.02, 4.08, 4.13, resets), it is told once.
    ///
    /// ```
    /// use millpond_live::Server;
    ///
    /// let builder = Server::builder().access_log(|access| {
    ///     println!("{} {} {:?} {:?}", access.peer, access.path, access.outcome, access.reason);
    /// });
    /// ```
    #[must_use]
    pub fn access_log(mut self, hook: impl Fn(&AccessRecord) + Send + Sync + 'static) -> Self {
        self.accesses = AccessHook::new(hook);
        self
    }

    /// How many peers have [metrics](Self::metrics) of their own; 100. They are peers that were asked for something or are
    /// validated ([`PeerStats::is_validated`](crate::PeerStats::is_validated)), those with the most round trips; what the
    /// others did is in the totals.
    #[must_use]
    pub const fn metrics_peers(mut self, peers: usize) -> Self {
        self.metrics_peers = peers;
        self
    }

    /// Tells these figures beside its own [metrics](Self::metrics): text in the format of OpenMetrics, with its end (`# EOF`).
    #[must_use]
    pub fn metrics_beside<F, T>(mut self, figures: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = String> + Send + 'static,
    {
        self.metrics_beside = Some(Arc::new(move || Box::pin(figures())));
        self
    }

    /// Goes on after a restart, also by a power cut: this file, a database of its own, has who observes over UDP, in the clear or by a
    /// context of OSCORE that goes on, and the round trips of 1,024 paths. It is written within a second of what changes.
    ///
    /// A server that is started with it tells those who observed the state as it is, by a confirmable notification that is newer than those
    /// before; who has forgotten rejects it, and observes no more. [`shutdown`](super::Server::shutdown) does not tell them an
    /// end, and leaves what still comes to the next server, to which a confirmable request comes again. Kept are at most as many as may observe, and 16 MiB of their requests; an unvalidated address takes no place of a validated one,
    /// and is kept until it was notified once without acknowledging that. What a connection or a session of DTLS observes ends with it.
    ///
    /// For a single [worker](Self::workers): the kernel has no reason to leave a peer at the same one of several.
    #[cfg(feature = "state")]
    #[must_use]
    pub fn state_file(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.state_file = Some(path.into());
        self
    }

    /// Tells everything that happens on the wire, from the workers' tasks: do little there.
    #[must_use]
    pub fn trace(mut self, hook: impl Fn(&TraceEvent) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }
}

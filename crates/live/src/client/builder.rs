//! A client's settings.

use std::{collections::BTreeMap, fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use millpond_coap::{
    Config, Limits, PathCache, Transmission,
    block::BlockSize,
    message::{MAX_DATAGRAM, Token},
};
use millpond_control::Span;
use tokio::time::Instant;

use super::{Attempts, Client, IntoUri, Reconnect, block_size, chance, path_cache};
use crate::{
    ControllerChoice, Error, Interface, IntoAddress, PathKey, TraceEvent, Uri,
    clock::{seconds, span},
    security::{ClientSecurity, Protecting},
    trace::Hook,
    transfer,
    udp::canonical,
};

/// Sets up a [`Client`].
#[derive(Debug, Default)]
pub struct ClientBuilder {
    settings: Settings,
    block_size: Option<u16>,
    /// What the first address or URI that is none was refused with.
    refused: Option<Error>,
}

/// Who gives peers their controllers.
pub(crate) type Chooser = Arc<dyn Fn(SocketAddr) -> Option<ControllerChoice> + Send + Sync>;

/// A client's settings.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) base: Option<Uri>,
    pub(crate) bind: Option<SocketAddr>,
    pub(crate) bind_dtls: Option<SocketAddr>,
    pub(crate) controller: ControllerChoice,
    pub(crate) controllers: BTreeMap<SocketAddr, ControllerChoice>,
    pub(crate) chooser: Option<Chooser>,
    pub(crate) shared_paths: Option<PathKey>,
    pub(crate) path_cache: PathCache,
    /// Where that is kept.
    pub(crate) path_cache_file: Option<PathBuf>,
    pub(crate) transmission: Transmission,
    pub(crate) least_wait: Option<Span>,
    pub(crate) deadline: Option<Duration>,
    /// Attempts to come back to servers.
    pub(crate) attempts: Attempts,
    pub(crate) block: BlockSize,
    pub(crate) longest_body: usize,
    pub(crate) longest_datagram: u16,
    /// Peers over TCP have to begin with theirs (CSM).
    #[cfg_attr(not(feature = "tcp"), allow(dead_code, reason = "it is for connections"))]
    pub(crate) needs_settings: bool,
    pub(crate) token_length: u16,
    /// Bytes of representations that are kept.
    pub(crate) cache: Option<usize>,
    pub(crate) q_block: bool,
    pub(crate) most_sockets: u16,
    pub(crate) security: ClientSecurity,
    pub(crate) multicast_interface: Option<Interface>,
    pub(crate) multicast_hops: u8,
    pub(crate) hook: Option<Hook>,
    /// By which all messages are protected.
    pub(crate) protecting: Protecting,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bind, controller, transmission, .. } = self;
        f.debug_struct("Settings")
            .field("bind", bind)
            .field("controller", controller)
            .field("transmission", transmission)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Requests that a stack is handed for one peer at a time. Those that were acknowledged and wait for their response
    /// are among them; NSTART is the endpoint's.
    pub(crate) fn window(&self) -> u16 {
        self.transmission.nstart.saturating_mul(2).max(64)
    }

    /// How the stacks below behave.
    pub(crate) fn transfer(&self) -> transfer::Config {
        let limits = transfer::Limits { client_requests: 1 << 20, bytes: 256 << 20, ..transfer::Limits::DEFAULT };
        transfer::Config { block: self.block, limits, ..transfer::Config::DEFAULT }
    }

    /// How the endpoints below behave.
    pub(crate) fn endpoint(&self) -> Config {
        let limits = Limits {
            exchanges_per_peer: self.window().saturating_mul(2),
            waiting_per_peer: self.window().saturating_mul(2),
            received: self.longest_datagram.max(datagram_with(self.token_length)),
            ..Limits::DEFAULT
        };
        let token_length = self.token_length;
        Config { transmission: self.transmission, token_length, admits_pieces: false, limits, ..Config::DEFAULT }
    }
}

/// Bytes of a datagram with a token of so many bytes that is taken all the same.
pub(crate) fn datagram_with(token: u16) -> u16 {
    let beyond = usize::from(token).saturating_sub(Token::MAX);
    let bytes = usize::from(Limits::DEFAULT.received).saturating_add(beyond).min(MAX_DATAGRAM);
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base: None,
            bind: None,
            bind_dtls: None,
            controller: ControllerChoice::default(),
            controllers: BTreeMap::new(),
            chooser: None,
            shared_paths: None,
            path_cache: PathCache::new(),
            path_cache_file: None,
            transmission: Transmission::RFC7252,
            least_wait: None,
            deadline: None,
            attempts: Attempts::default(),
            block: BlockSize::B1024,
            longest_body: 16 << 20,
            longest_datagram: Limits::DEFAULT.received,
            needs_settings: true,
            token_length: Config::DEFAULT.token_length,
            cache: None,
            q_block: false,
            most_sockets: 64,
            security: ClientSecurity::default(),
            multicast_interface: None,
            multicast_hops: 1,
            hook: None,
            protecting: Protecting::Nothing,
        }
    }
}

impl ClientBuilder {
    /// A setting, unless it was refused, with which no client is built.
    fn unless_refused<T>(&mut self, setting: Result<T, Error>) -> Option<T> {
        setting.map_err(|error| self.refused.get_or_insert(error)).ok()
    }

    /// What requests ask is named beside this, as a link is on a page (RFC 3986 §5.2): with a base of `coap://[2001:db8::1]/v1/`,
    /// `get("level")` asks for `/v1/level` there, `get("/time")` for `/time`, and a whole URI for itself.
    #[must_use]
    pub fn base(mut self, uri: impl IntoUri) -> Self {
        self.settings.base = self.unless_refused(uri.into_uri(None).map_err(Error::from));
        self
    }

    /// All requests are protected by one of these contexts (RFC 8613), over whatever transport: that
    /// [for the server](crate::OscoreContexts::add_for) of their URI, or the first for any. Nothing but responses that are is taken. Requests to groups are refused then, and nothing is sent in bursts.
    #[cfg(feature = "oscore")]
    #[must_use]
    pub fn oscore(mut self, contexts: crate::OscoreContexts) -> Self {
        self.settings.protecting = Protecting::By(contexts);
        self
    }

    /// From this local address. Otherwise one socket for IPv4 and one for IPv6 are bound to any port when first needed.
    /// The further sockets of [`most_sockets`](Self::most_sockets) and those of `coaps` have other ports in any case; that of `coaps`
    /// is given by [`bind_dtls`](Self::bind_dtls).
    #[must_use]
    pub fn bind(mut self, local: impl IntoAddress) -> Self {
        self.settings.bind = self.unless_refused(local.into_address("bind"));
        self
    }

    /// Requests over DTLS leave from this local address: for firewalls and devices that know their peer by its port. Otherwise from
    /// any port of the address of [`bind`](Self::bind).
    #[cfg(feature = "dtls")]
    #[must_use]
    pub fn bind_dtls(mut self, local: impl IntoAddress) -> Self {
        self.settings.bind_dtls = self.unless_refused(local.into_address("bind_dtls"));
        self
    }

    /// The congestion controller of every peer; [`DEFAULT_CONTROLLER`](crate::DEFAULT_CONTROLLER) if none is chosen.
    #[must_use]
    pub fn controller(mut self, controller: impl Into<ControllerChoice>) -> Self {
        self.settings.controller = controller.into();
        self
    }

    /// The congestion controller of this peer.
    #[must_use]
    pub fn controller_for(mut self, peer: SocketAddr, controller: impl Into<ControllerChoice>) -> Self {
        self.settings.controllers.insert(canonical(peer), controller.into());
        self
    }

    /// Asks this for the congestion controller of each peer about which nothing is known yet, from the client's task. Peers
    /// for which it gives none, and those of [`controller_for`](Self::controller_for), have theirs.
    ///
    /// ```
    /// use millpond_live::{Client, ControllerChoice, Preset};
    ///
    /// // What is behind the gateway at 192.0.2.1 shares a slow cell.
    /// let builder = Client::builder().controllers(|peer| {
    ///     (peer.ip() == std::net::Ipv4Addr::new(192, 0, 2, 1)).then(|| Preset::RFC7252.into())
    /// });
    /// ```
    #[must_use]
    pub fn controllers(
        mut self,
        by_peer: impl Fn(SocketAddr) -> Option<ControllerChoice> + Send + Sync + 'static,
    ) -> Self {
        self.settings.chooser = Some(Arc::new(by_peer));
        self
    }

    /// Peers that this says share a path have one controller, one NSTART and one queue together, in which they take turns; else each
    /// has its own. Each socket has paths of its own: those of IPv4, IPv6 and `coaps`, and the further ones of
    /// [`most_sockets`](Self::most_sockets). A controller that is chosen for a peer becomes that of its path if it is the first
    /// there, or known already.
    ///
    /// ```
    /// use millpond_live::{Client, PathKey};
    ///
    /// // All of a network: a cell, or what is behind one gateway.
    /// let builder = Client::builder().share_paths(PathKey::prefix(24, 64));
    /// // All servers that prove one identity under DTLS, by its certificate.
    /// let builder = Client::builder().share_paths(PathKey::identity());
    /// ```
    #[must_use]
    pub fn share_paths(mut self, key: PathKey) -> Self {
        self.settings.shared_paths = Some(key);
        self
    }

    /// Begins with what an earlier client [knew](Client::path_cache). The round trips of paths to its peers are taken into account by
    /// controllers that do: of the built-in ones by `calm`, which can distinguish a queue from a long way by it from the first answer on.
    /// What is wrong or old in it makes the client slower for a while, and not bolder (docs/calm.md). Where that client
    /// waited before it came back to a server, this one goes on: after what is left of the pause, at most 90 minutes, and with pauses
    /// that are as long as those would have been.
    #[must_use]
    pub fn path_cache(mut self, cache: PathCache) -> Self {
        self.settings.path_cache = cache;
        self
    }

    /// Begins with the [cache](Self::path_cache) in this file, if it is there, and keeps it there for the next client: within a second of
    /// each attempt to come back that failed or succeeded, round trips every 10 minutes, and all of it in [`Client::shutdown`]. The file is
    /// whole whenever the power fails. One client at a time; it has addresses in it and no secrets.
    #[must_use]
    pub fn path_cache_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.path_cache_file = Some(path.into());
        self
    }

    /// How it comes back to servers.
    #[must_use]
    pub fn reconnect(mut self, policy: Reconnect) -> Self {
        self.settings.attempts = Attempts::new(policy);
        self
    }

    /// NSTART: interactions outstanding with one peer; 1 as RFC 7252 §4.7 asks, unless it is known that more are safe.
    #[must_use]
    pub const fn nstart(mut self, nstart: u16) -> Self {
        self.settings.transmission.nstart = nstart;
        self
    }

    /// MAX_RETRANSMIT: copies after the first; 4 (RFC 7252 §4.8).
    #[must_use]
    pub const fn max_retransmit(mut self, count: u8) -> Self {
        self.settings.transmission.max_retransmit = count;
        self
    }

    /// The shortest that a preset may wait for an acknowledgement, whatever it has learnt; 200 ms, or what
    /// [`Setting::LeastWait`](crate::control::Setting::LeastWait) of `calm` was set to. A server may take its time before it
    /// acknowledges, and nothing in a fast answer tells so.
    #[must_use]
    pub fn least_wait(mut self, wait: Duration) -> Self {
        self.settings.least_wait = Some(span(wait));
        self
    }

    /// PROBING_RATE: bytes a second to a peer that does not answer; 1 (RFC 7252 §4.8).
    #[must_use]
    pub const fn probing_rate(mut self, bytes_per_second: u32) -> Self {
        self.settings.transmission.probing_rate = bytes_per_second;
        self
    }

    /// How long each request may take. Without one, over UDP until its exchange gives up; over TCP until nothing has come on
    /// its connection for 247 s but answers to pings, or for 40 s not even these.
    #[must_use]
    pub const fn deadline(mut self, each_request: Option<Duration>) -> Self {
        self.settings.deadline = each_request;
        self
    }

    /// The largest blocks, 16 to 1024 bytes; 1024.
    #[must_use]
    pub const fn block_size(mut self, bytes: u16) -> Self {
        self.block_size = Some(bytes);
        self
    }

    /// Whether the long bodies of all requests travel in bursts, as with [`q_block`](super::RequestBuilder::q_block); no.
    #[must_use]
    pub const fn q_block(mut self, all: bool) -> Self {
        self.settings.q_block = all;
        self
    }

    /// The longest body that is taken, in bytes; 16 MiB.
    #[must_use]
    pub const fn longest_body(mut self, bytes: usize) -> Self {
        self.settings.longest_body = bytes;
        self
    }

    /// The longest datagram that is taken, in bytes of CoAP; 1452, what a packet of IPv6 of 1500 bytes holds. More than 1152 is
    /// against the advice that RFC 7252 §4.6 has for senders, and there are devices that send their answers so. What is longer than
    /// a packet arrives in fragments, which are put together up to 65,527.
    #[must_use]
    pub const fn longest_datagram(mut self, bytes: u16) -> Self {
        self.settings.longest_datagram = bytes;
        self
    }

    /// Bytes in the tokens of requests, up to 65,000; 4. With more than 8 (RFC 8974) there are zeros behind those that tell requests
    /// apart, to see what a server makes of that: one that does not know such tokens rejects the request, or says so in its settings
    /// (TCP, TLS). Without effect on tokens of up to 8 bytes over TCP and TLS, which are as short as can be.
    #[must_use]
    pub const fn token_length(mut self, bytes: u16) -> Self {
        self.settings.token_length = bytes;
        self
    }

    /// Asks peers over TCP and TLS that never send their settings (CSM), although RFC 8323 §5.3 asks them to: they are taken for
    /// ones that know block-wise transfer and messages of 1152 bytes.
    #[cfg(feature = "tcp")]
    #[must_use]
    pub const fn without_settings(mut self) -> Self {
        self.settings.needs_settings = false;
        self
    }

    /// Keeps representations of up to so many bytes together, the most recently used ones; none unless this is set. GET and
    /// FETCH are answered from what is fresh (Max-Age, RFC 7252 §5.6.1) without a word to the server, and what is stale is asked
    /// about by its ETag (§5.6.2). A request that changes something forgets what is kept of its URI. An answer that was kept has
    /// no [`exchange`](crate::Response::exchange). Observations and requests with an ETag of their own go past it.
    #[must_use]
    pub const fn cache(mut self, bytes: usize) -> Self {
        self.settings.cache = Some(bytes);
        self
    }

    /// How many source ports may be used at most; 64. A port has 65,536 message IDs for one peer, none of which comes
    /// again within EXCHANGE_LIFETIME (RFC 7252 §4.4): some 265 requests a second. Before they run out, requests to that
    /// peer go on from a further port, with the peer's congestion state and with NSTART over all of them.
    #[must_use]
    pub const fn most_sockets(mut self, count: u16) -> Self {
        self.settings.most_sockets = count;
        self
    }

    /// What secure sessions are made with; [`ClientSecurity::new`] unless something is set.
    #[cfg(feature = "_secure")]
    #[must_use]
    pub fn security(mut self, security: ClientSecurity) -> Self {
        self.settings.security = security;
        self
    }

    /// By which interface requests to groups leave; without it, by the one that routes give, or the zone of the group's
    /// address.
    #[must_use]
    pub fn multicast_interface(mut self, interface: impl Into<Interface>) -> Self {
        self.settings.multicast_interface = Some(interface.into());
        self
    }

    /// How far requests to groups go, as TTL or hop limit; 1, which no router passes on.
    #[must_use]
    pub const fn multicast_hops(mut self, hops: u8) -> Self {
        self.settings.multicast_hops = hops;
        self
    }

    /// Tells everything that happens on the wire, from the driver's task: do little there.
    #[must_use]
    pub fn trace(mut self, hook: impl Fn(&TraceEvent) + Send + Sync + 'static) -> Self {
        self.settings.hook = Some(Arc::new(hook));
        self
    }

    /// Starts the client in the current runtime.
    ///
    /// # Errors
    /// A setting that cannot be used; no random bytes from the operating system; a local address that cannot be bound.
    pub async fn build(self) -> Result<Client, Error> {
        let Self { mut settings, block_size: size, refused } = self;
        if let Some(refused) = refused {
            return Err(refused);
        }
        if let Some(bytes) = size {
            settings.block = block_size(bytes)?;
        }
        if settings.most_sockets == 0 {
            return Err(Error::Setting { name: "most_sockets", reason: "is 0; use 1 or more".into() });
        }
        settings.attempts.policy.check()?;
        if let Some(key) = &settings.shared_paths {
            key.check()?;
        }
        if let Some(cache) = match settings.path_cache_file.clone() {
            Some(path) => path_cache::read(path).await?,
            None => None,
        } {
            settings.path_cache = cache;
        }
        settings.attempts.recall(&settings.path_cache, Instant::now(), seconds());
        settings.attempts.begin(Instant::now(), chance());
        Ok(Client::start(settings)?.keep_path_cache())
    }
}

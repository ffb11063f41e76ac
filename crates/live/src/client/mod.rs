//! The client: handles that ask.

mod body;
mod builder;
mod cache;
mod command;
#[cfg(feature = "tcp")]
mod connections;
mod deadline;
mod group_responses;
mod groups;
mod lasting;
mod names;
mod observation;
mod path_cache;
mod peer;
mod pending_requests;
mod progress;
mod reconnect;
mod request;
mod routes;
mod streaming;
mod unanswered;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use millpond_coap::message::Code;
use tokio::sync::{mpsc, oneshot};

pub use builder::ClientBuilder;
pub use cache::{Cache, CacheKey, Cached, cache_key, cache_key_of};
pub(crate) use group_responses::GroupSender;
pub(crate) use groups::GroupRequestSpec;
pub use groups::{GroupAnswers, GroupRequest};
pub use observation::{Interruption, Observation, Observed};
#[cfg(feature = "state")]
pub(crate) use path_cache::learn;
pub(crate) use path_cache::path;
pub use peer::{IntoPeer, IntoUri};
#[cfg(any(feature = "server", feature = "tcp"))]
pub(crate) use pending_requests::options;
pub(crate) use pending_requests::{EarlyPing, PendingRequests, Ping, Queue, failure};
pub use progress::Progress;
pub(crate) use progress::{OnProgress, Watched};
pub use reconnect::Reconnect;
pub(crate) use reconnect::{Attempts, Later, chance};
pub use request::RequestBuilder;
pub(crate) use routes::Routes;
pub use unanswered::Outcome;

use names::Names;

pub(crate) use builder::{Settings, datagram_with};
#[cfg(test)]
pub(crate) use command::request_for_test;
pub(crate) use command::{Command, Reply, RequestNumber, RequestSpec, Room};
#[cfg(feature = "tcp")]
pub(crate) use connections::ConnectionHandle;

pub(crate) use request::block_size;

use crate::{
    ControllerChoice, Error, Host, Stats, Transport, Uri,
    clock::Clock,
    dtls::{ClientKeys, Keys},
    socket::{Inputs, SocketTask},
    udp::canonical,
};

/// Where commands go.
pub(crate) type Commands = mpsc::UnboundedSender<Command>;

/// A CoAP client. Clone it freely: all clones share sockets and what is known of peers.
///
/// ```no_run
/// # async fn run() -> Result<(), millpond_live::Error> {
/// let client = millpond_live::Client::new().await?;
/// let response = client.get("coap://192.0.2.1/temperature").await?;
/// println!("{}: {}", response.code(), response.text().unwrap_or("?"));
/// # Ok(())
/// # }
/// ```
///
/// Its driver is a task of the runtime in which it was built. It ends once the last clone, request and observation is
/// gone.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) settings: Arc<Settings>,
    /// Where requests over datagrams go, or why none are asked.
    commands: Result<Commands, Error>,
    numbers: Arc<AtomicU64>,
    #[cfg(feature = "tcp")]
    connections: Arc<tokio::sync::Mutex<connections::Connections>>,
    /// How sessions of TLS are made, once one was needed.
    #[cfg(feature = "tcp")]
    tls: Arc<std::sync::OnceLock<Result<Arc<crate::tcp::ClientConfig>, Error>>>,
    /// How it comes by connections, if not from sockets of its own.
    #[cfg(all(feature = "tcp", feature = "server"))]
    sources: Arc<[(Transport, crate::tcp::ConnectionSource)]>,
    /// Controllers that were chosen for single peers.
    chosen: Arc<std::sync::Mutex<BTreeMap<SocketAddr, ControllerChoice>>>,
    /// Where requests over DTLS go, once there are any.
    secure: Arc<tokio::sync::OnceCell<Commands>>,
    /// What names resolved to lately.
    pub(crate) names: Arc<Names>,
    /// Room for requests that have not ended.
    room: Arc<tokio::sync::Semaphore>,
    /// Representations that were got, if any are to be kept.
    pub(crate) cache: Option<Arc<std::sync::Mutex<Cache>>>,
    clock: Clock,
    /// Who keeps what it knows in a file.
    keeper: Option<path_cache::Orders>,
}

/// Starts the task that owns a client's sockets.
fn start_task(task: SocketTask, commands: mpsc::UnboundedReceiver<Command>) {
    tokio::spawn(async move { task.run(&mut Inputs::of_client(commands)).await });
}

/// Requests that a client has at a time, those that wait for their peer included. A further one waits to be sent.
const MOST_REQUESTS: usize = 65_536;

impl Client {
    /// A client to be set up step by step.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client with all defaults.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub async fn new() -> Result<Self, Error> {
        Self::builder().build().await
    }

    fn start(settings: Settings) -> Result<Self, Error> {
        let (commands, orders) = mpsc::unbounded_channel();
        let settings = Arc::new(settings);
        start_task(SocketTask::of_client(Arc::clone(&settings), None)?, orders);
        Ok(Self::over(settings, Ok(commands)))
    }

    /// One whose requests over UDP are taken by a peer that hears these commands; or by nobody, for this reason.
    pub(crate) fn over(settings: Arc<Settings>, commands: Result<Commands, Error>) -> Self {
        Self::with(settings, commands, tokio::sync::OnceCell::new())
    }

    /// One whose requests over DTLS are, and those over UDP refused.
    #[cfg(feature = "server")]
    pub(crate) fn over_sessions(settings: Arc<Settings>, commands: Commands) -> Self {
        let secure = tokio::sync::OnceCell::new_with(Some(commands.clone()));
        Self::with(settings, Ok(commands), secure)
    }

    /// The same, with these connections for those of their transports.
    #[cfg(all(feature = "tcp", feature = "server"))]
    pub(crate) fn in_connections(self, sources: Vec<(Transport, crate::tcp::ConnectionSource)>) -> Self {
        Self { sources: sources.into(), ..self }
    }

    fn with(
        settings: Arc<Settings>,
        commands: Result<Commands, Error>,
        secure: tokio::sync::OnceCell<Commands>,
    ) -> Self {
        let cache = settings.cache.map(|bytes| Arc::new(std::sync::Mutex::new(Cache::new(bytes))));
        Self {
            settings,
            commands,
            numbers: Arc::default(),
            #[cfg(feature = "tcp")]
            connections: Arc::default(),
            #[cfg(feature = "tcp")]
            tls: Arc::default(),
            #[cfg(all(feature = "tcp", feature = "server"))]
            sources: Arc::default(),
            chosen: Arc::default(),
            secure: Arc::new(secure),
            names: Arc::default(),
            room: Arc::new(tokio::sync::Semaphore::new(MOST_REQUESTS)),
            cache,
            clock: Clock::start(),
            keeper: None,
        }
    }

    /// A GET request.
    pub fn get(&self, uri: impl IntoUri) -> RequestBuilder {
        self.request(Code::GET, uri)
    }

    /// A PUT request.
    pub fn put(&self, uri: impl IntoUri) -> RequestBuilder {
        self.request(Code::PUT, uri)
    }

    /// A POST request.
    pub fn post(&self, uri: impl IntoUri) -> RequestBuilder {
        self.request(Code::POST, uri)
    }

    /// A DELETE request.
    pub fn delete(&self, uri: impl IntoUri) -> RequestBuilder {
        self.request(Code::DELETE, uri)
    }

    /// A FETCH request (RFC 8132).
    pub fn fetch(&self, uri: impl IntoUri) -> RequestBuilder {
        self.request(Code::FETCH, uri)
    }

    /// A PATCH request (RFC 8132).
    pub fn patch(&self, uri: impl IntoUri) -> RequestBuilder {
        self.request(Code::PATCH, uri)
    }

    /// An iPATCH request (RFC 8132).
    pub fn ipatch(&self, uri: impl IntoUri) -> RequestBuilder {
        self.request(Code::IPATCH, uri)
    }

    /// A request with any method.
    pub fn request(&self, method: Code, uri: impl IntoUri) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method, uri)
    }

    /// What the servers of a group have: a GET request to all of them, for `/.well-known/core` (RFC 6690) if the URI has no
    /// path.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), millpond_live::Error> {
    /// let client = millpond_live::Client::new().await?;
    /// let mut answers = client.discover("coap://224.0.1.187").send().await?;
    /// while let Some(answer) = answers.next().await {
    ///     let answer = answer?;
    ///     let who = answer.exchange().map(|report| report.peer);
    ///     println!("{who:?}: {}", answer.text().unwrap_or("?"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn discover(&self, uri: impl IntoUri) -> GroupRequest {
        GroupRequest::new(self.clone(), Code::GET, uri, true)
    }

    /// A request with any method to all servers of a group.
    pub fn request_group(&self, method: Code, uri: impl IntoUri) -> GroupRequest {
        GroupRequest::new(self.clone(), method, uri, false)
    }

    /// The addresses that a URI leads to, in the order in which they are tried. A name is resolved once a minute.
    ///
    /// # Errors
    /// It has none.
    pub async fn resolve(&self, uri: &Uri) -> Result<Vec<SocketAddr>, Error> {
        peer::resolve_all(uri, &self.names).await
    }

    /// This peer gets this controller from now on, about the path of which it knows nothing yet.
    ///
    /// # Errors
    /// There is no room for another peer.
    pub async fn set_controller(&self, peer: SocketAddr, controller: impl Into<ControllerChoice>) -> Result<(), Error> {
        let (peer, controller) = (canonical(peer), controller.into());
        if let Ok(mut chosen) = self.chosen.lock() {
            chosen.insert(peer, controller.clone());
        }
        for commands in self.over_datagrams() {
            let (reply, answer) = oneshot::channel();
            let command = Command::SetController(peer, controller.clone(), reply);
            commands.send(command).map_err(|_| Error::Closed)?;
            answer.await.map_err(|_| Error::Closed)??;
        }
        Ok(())
    }

    /// What was counted over UDP and DTLS, and what is known of each peer.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn stats(&self) -> Result<Stats, Error> {
        let mut all = Stats::default();
        for commands in self.over_datagrams() {
            let (reply, answer) = oneshot::channel();
            commands.send(Command::Stats(reply)).map_err(|_| Error::Closed)?;
            all.join(answer.await.map_err(|_| Error::Closed)?);
        }
        Ok(all)
    }

    /// Whether a peer is there: an empty confirmable message, which every endpoint rejects (RFC 7252 §4.3). Returns how
    /// long that took.
    ///
    /// # Errors
    /// No sign of life came, and why.
    pub async fn ping(&self, whom: impl IntoPeer) -> Result<Duration, Error> {
        self.settings.attempts.begun().await;
        let (transport, peer, host) = whom.into_peer().await?;
        let (reply, answer) = oneshot::channel();
        let name = peer::secure_name(transport, &host)?;
        self.order(transport, &[peer], &host, Command::Ping(peer, name, reply)).await?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Cancels everything, tells servers that nothing is observed any more, and returns once they know, or after 2 s.
    /// Other clones of this client can ask no more.
    pub async fn shutdown(self) {
        self.write_memory().await;
        #[cfg(feature = "tcp")]
        let connections = self.all_connections().await;
        #[cfg(not(feature = "tcp"))]
        let connections = Vec::new();
        let all = connections.iter().chain(self.over_datagrams());
        let ends: Vec<_> = all
            .filter_map(|commands| {
                let (reply, end) = oneshot::channel();
                commands.send(Command::Shutdown(reply)).is_ok().then_some(end)
            })
            .collect();
        for end in ends {
            // An error says that the task is gone: that is what is waited for.
            let _ = end.await;
        }
    }

    /// Whether it asks in sessions, or connections, that peers have begun: those that follow may be others'.
    fn asks_where_peers_begin(&self, transport: Transport) -> bool {
        match transport {
            Transport::Udp => false,
            Transport::Dtls => {
                self.commands.as_ref().ok().zip(self.secure.get()).is_some_and(|(one, other)| one.same_channel(other))
            }
            #[cfg(all(feature = "tcp", feature = "server"))]
            Transport::Tcp | Transport::Tls => !self.sources.is_empty(),
            #[cfg(not(all(feature = "tcp", feature = "server")))]
            Transport::Tcp | Transport::Tls => false,
        }
    }

    /// Who takes requests over datagrams.
    fn over_datagrams(&self) -> impl Iterator<Item = &Commands> {
        let commands = self.commands.as_ref().ok();
        let is_other = |secure: &&Commands| commands.is_none_or(|commands| !secure.same_channel(commands));
        commands.into_iter().chain(self.secure.get().filter(is_other))
    }

    fn number(&self) -> RequestNumber {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Hands a command to who takes requests to this peer, and returns who that is.
    async fn order(
        &self,
        transport: Transport,
        peers: &[SocketAddr],
        host: &Host,
        mut command: Command,
    ) -> Result<Commands, Error> {
        loop {
            let commands = self.commands(transport, peers, host).await?;
            match commands.send(command) {
                Ok(()) => return Ok(commands),
                // The connection ended this moment: there is another one.
                Err(back) if !transport.is_datagram() => command = back.0,
                Err(_) => return Err(Error::Closed),
            }
        }
    }

    /// Who takes requests to the peer that has these addresses: to the first one, or over the connection that is made first.
    async fn commands(&self, transport: Transport, peers: &[SocketAddr], host: &Host) -> Result<Commands, Error> {
        peers.iter().try_for_each(|peer| peer::check_unicast(transport, *peer))?;
        match transport {
            Transport::Udp => self.commands.clone(),
            Transport::Dtls => {
                self.commands.as_ref().map_err(Clone::clone)?;
                let secure = async {
                    let keys = Keys::Client(ClientKeys::new(&self.settings.security)?);
                    let (commands, orders) = mpsc::unbounded_channel();
                    start_task(SocketTask::of_client(Arc::clone(&self.settings), Some(keys))?, orders);
                    let chosen = self.chosen.lock().map(|chosen| chosen.clone()).unwrap_or_default();
                    for (peer, controller) in chosen {
                        // There is room for a choice in any case.
                        let _ = commands.send(Command::SetController(peer, controller, oneshot::channel().0));
                    }
                    Ok(commands)
                };
                self.secure.get_or_try_init(|| secure).await.cloned()
            }
            #[cfg(not(feature = "tcp"))]
            Transport::Tcp | Transport::Tls => Err(Error::not_built(transport)),
            #[cfg(feature = "tcp")]
            Transport::Tcp | Transport::Tls => self.connection(transport, peers, host).await,
        }
    }
}

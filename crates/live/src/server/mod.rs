//! The server: resources at paths, handlers, observers.

mod access;
mod admission;
mod bodies;
mod body;
mod bound;
mod builder;
mod dispatcher;
mod extract;
mod handler;
mod into_response;
mod layer;
mod links;
mod memberships;
mod metrics;
mod observable;
mod observers;
mod policy;
mod reachability;
mod request;
mod resource;
mod router;
mod running;
mod starting;
#[cfg(feature = "state")]
mod state;
mod unasked;

use std::{
    collections::BTreeMap,
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

pub use access::{AccessOutcome, AccessRecord};
pub use body::RequestBody;
pub use builder::ServerBuilder;
pub use extract::{FromRequest, Offered, Path, Query, State};
pub use handler::Handler;
pub use into_response::{HandlerError, IntoResponse};
pub use layer::Next;
pub use metrics::serve_metrics;
pub use observable::{Interest, Observable};
pub use policy::{METHODS, Policy, RateLimit, Rule, Who};
pub use reachability::AddressRule;
pub use request::Request;
pub use resource::Resource;
pub use unasked::Unasked;
pub(crate) use unasked::UnaskedHook;

pub(crate) use access::AccessHook;
pub(crate) use admission::Admission;
#[cfg(test)]
pub(crate) use admission::AdmissionLimits;
pub use admission::LONGEST_SILENCE;
pub(crate) use dispatcher::{ASK_AGAIN, Action, Dispatcher, DispatcherLimits, IncomingRequest, Room, TaskEvent};
pub(crate) use policy::Policing;
pub(crate) use reachability::Reachability;
pub(crate) use router::Router;
pub(crate) use running::Caught;
#[cfg(all(test, feature = "tcp"))]
pub(crate) use starting::most_in_connections;
#[cfg(feature = "state")]
pub(crate) use state::Observing;

#[cfg(feature = "_secure")]
use crate::dtls::ServerKeys;
use crate::{Client, Error, NotSent, Stats, Transport, client::Settings, security::ServerSecurity, socket::Order};

/// A CoAP server. It runs in tasks of the runtime in which it was started, until it is shut down or dropped.
///
/// ```no_run
/// use millpond_live::{Resource, Server};
///
/// # async fn run() -> Result<(), millpond_live::Error> {
/// let hello = Resource::new().get(|| async { "world" });
/// let server = Server::builder().route("/hello", hello).start().await?;
/// println!("listening on {}", server.local_addr());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    addresses: Vec<(Transport, SocketAddr)>,
    groups: Vec<SocketAddr>,
    missed_groups: Vec<(IpAddr, Error)>,
    metrics: Option<SocketAddr>,
    running: Running,
    /// How clients on its sockets behave, and those that there are, by the address that they ask from.
    settings: Arc<Settings>,
    clients: Mutex<BTreeMap<SocketAddr, Client>>,
    /// How these come by connections of its ports.
    #[cfg(feature = "tcp")]
    sources: Vec<(Transport, SocketAddr, crate::tcp::ConnectionSource)>,
    workers: usize,
    /// Clients may begin sessions of DTLS with it.
    #[cfg(feature = "_secure")]
    awaits_sessions: bool,
    tasks: Vec<JoinHandle<Result<(), Error>>>,
    /// Tasks that end with the server and have nothing to say.
    helpers: Vec<JoinHandle<()>>,
    /// What outlives it.
    #[cfg(feature = "state")]
    state: Option<Arc<tokio::sync::Mutex<state::State>>>,
}

impl Server {
    /// A server to be set up step by step.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The first address on which it listens, one of UDP if there is any.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        let first = self.addresses.first().map(|(_, address)| *address);
        first.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// All addresses on which it listens.
    #[must_use]
    pub fn local_addrs(&self) -> &[(Transport, SocketAddr)] {
        &self.addresses
    }

    /// The first address on which it listens by this transport.
    #[must_use]
    pub fn local_addr_of(&self, transport: Transport) -> Option<SocketAddr> {
        self.addresses.iter().find(|(known, _)| *known == transport).map(|(_, address)| *address)
    }

    /// The groups that it has joined.
    #[must_use]
    pub fn groups(&self) -> &[SocketAddr] {
        &self.groups
    }

    /// The groups of [`join_all_coap_nodes`](ServerBuilder::join_all_coap_nodes) that it could not join, with why: without a
    /// route for groups an interface has to be named, and each family of addresses is to be listened on.
    #[must_use]
    pub fn missed_groups(&self) -> &[(IpAddr, Error)] {
        &self.missed_groups
    }

    /// Where its figures can be fetched by HTTP, if asked for.
    #[must_use]
    pub const fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// What all its workers have counted.
    pub async fn stats(&self) -> Stats {
        self.running.stats().await
    }

    /// Makes further secure sessions with this: another certificate, other keys, other trust anchors. Sessions that stand go
    /// on as they are, handshakes under way may end either way. Whatever begins once this is done is made with it.
    ///
    /// # Errors
    /// It cannot be used for the listeners that there are; then nothing has changed.
    #[cfg(feature = "_secure")]
    pub async fn set_security(&self, security: ServerSecurity) -> Result<(), Error> {
        if self.awaits_sessions {
            ServerKeys::new(&security)?;
        }
        #[cfg(feature = "tcp")]
        if self.addresses.iter().any(|(transport, _)| *transport == Transport::Tls) {
            crate::tcp::acceptor(&security)?;
        }
        if let Ok(mut current) = self.running.security.write() {
            current.clone_from(&security);
        }
        let mut told = Vec::new();
        for order in &self.running.orders {
            let (done, is_done) = oneshot::channel();
            if order.send(Order::Secure(Box::new(security.clone()), done)).is_ok() {
                told.push(is_done);
            }
        }
        for is_done in told {
            // A worker that has ended meanwhile needs none.
            let _ = is_done.await;
        }
        Ok(())
    }

    /// Who may do what and how often from now on. Observations that are not allowed any more end with 4.03, or with 4.01 where
    /// the client has proved no identity.
    pub fn set_policy(&self, policy: Policy) {
        self.running.policing.replace(policy);
        for order in &self.running.orders {
            // A worker that has ended has no observers.
            let _ = order.send(Order::Policy);
        }
    }

    /// The client from one of the addresses at which this server listens: what it asks and what it is asked go through one
    /// socket, so that answers come through NATs, and peers may report who asks by its address. It has the server's settings, asks no
    /// groups, and goes on from no further ports. It ends with the server.
    ///
    /// At an address of [`bind_dtls`](ServerBuilder::bind_dtls), [`bind_tcp`](ServerBuilder::bind_tcp) or
    /// [`bind_tls`](ServerBuilder::bind_tls) it asks in the sessions or connections that peers have begun there, each by the
    /// address that [`Request::peer`] tells, and begins none: who has none is not asked ([`Error::Insecure`]; in the clear,
    /// [`Error::Refused`]). At one of [`bind_dtls_client`](ServerBuilder::bind_dtls_client),
    /// [`bind_tcp_client`](ServerBuilder::bind_tcp_client) or [`bind_tls_client`](ServerBuilder::bind_tls_client) it begins them. None
    /// of those for DTLS asks in the clear by UDP, and one for TCP and TLS alone asks by no datagrams. Where the server has no port of
    /// TCP or of TLS at the address, it begins such connections from sockets of its own, in which it is not asked.
    ///
    /// ```no_run
    /// use millpond_live::{Resource, Server};
    ///
    /// # async fn run() -> Result<(), millpond_live::Error> {
    /// // A device behind a NAT: it registers, and is asked by way of the port that it registered from.
    /// let reading = Resource::new().get(|| async { "21.5" });
    /// let device = Server::builder().bind("0.0.0.0:0").route("/reading", reading).start().await?;
    /// let client = device.client(device.local_addr())?;
    /// client.post("coap://192.0.2.1/rd?ep=device").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server does not listen there, or over datagrams with [several workers](ServerBuilder::workers), of which the kernel chooses who
    /// hears the answer; it has ended.
    pub fn client(&self, local: SocketAddr) -> Result<Client, Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&local) {
            return Ok(client.clone());
        }
        let client = self.on_datagrams(local)?;
        #[cfg(feature = "tcp")]
        let client = {
            let here = self.sources.iter().filter(|(_, address, _)| *address == local);
            client.in_connections(here.map(|(transport, _, source)| (*transport, source.clone())).collect())
        };
        clients.insert(local, client.clone());
        Ok(client)
    }

    /// One that asks over datagrams from this address, if the server listens there for any.
    fn on_datagrams(&self, local: SocketAddr) -> Result<Client, Error> {
        let wrong = |name, reason: String| Err(Error::Setting { name, reason });
        let is_there = |known: &(Transport, SocketAddr)| known.0.is_datagram() && known.1 == local;
        let Some(place) = self.addresses.iter().position(is_there) else {
            if !self.addresses.iter().any(|(_, address)| *address == local) {
                return wrong("client", format!("the server does not listen at {local}"));
            }
            let reason =
                format!("{local} is a port of TCP; ask by coap+tcp or coaps+tcp, or by a client on a port of UDP");
            return Ok(Client::over(Arc::clone(&self.settings), Err(Error::refused(NotSent::Destination, reason))));
        };
        if self.workers > 1 {
            return wrong("workers", "a client on a server's socket wants a single worker".into());
        }
        let (commands, asked) = mpsc::unbounded_channel();
        // With one worker there is one task for each address, those of datagrams first.
        let order = self.running.orders.get(place).ok_or(Error::Closed)?;
        order.send(Order::Requests(asked)).map_err(|_| Error::Closed)?;
        let settings = Arc::clone(&self.settings);
        Ok(match self.addresses.get(place) {
            Some((Transport::Dtls, _)) => Client::over_sessions(settings, commands),
            _ => Client::over(settings, Ok(commands)),
        })
    }

    /// Waits for the server to end by itself, which it does only if it cannot go on.
    ///
    /// # Errors
    /// Why it ended.
    pub async fn wait(&mut self) -> Result<(), Error> {
        std::future::poll_fn(|cx| {
            let mut place = 0;
            while let Some(task) = self.tasks.get_mut(place) {
                match Pin::new(task).poll(cx) {
                    Poll::Pending => place += 1,
                    Poll::Ready(ended) => {
                        drop(self.tasks.swap_remove(place));
                        match ended {
                            Ok(Ok(())) => {}
                            Ok(Err(error)) => return Poll::Ready(Err(error)),
                            Err(error) => return Poll::Ready(Err(Error::Ended { reason: error.to_string() })),
                        }
                    }
                }
            }
            if self.tasks.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }

    /// Answers what was asked, tells observers with 5.03 that it ends, and ends once all that was acknowledged. Handlers that
    /// take longer than 3 s are dropped, and their requests answered with 5.03; after 4 s it ends in any case.
    ///
    /// Where a [file](ServerBuilder::state_file) has them, observers over UDP are told nothing: the next server goes on with them.
    pub async fn shutdown(mut self) {
        #[cfg(feature = "state")]
        self.hand_over().await;
        for order in &self.running.orders {
            // A worker that has ended needs no order.
            let _ = order.send(Order::Shutdown);
        }
        for task in std::mem::take(&mut self.tasks) {
            let _ = task.await;
        }
    }
}

#[cfg(feature = "state")]
impl Server {
    /// Keeps what the next server is to know.
    async fn hand_over(&mut self) {
        let Some(state) = self.state.take() else { return };
        let stats = self.running.stats().await;
        let observers = self.running.observers(Order::HandOver).await;
        // What is being written is written first.
        let mut state = state.lock().await;
        self.helpers.iter().for_each(JoinHandle::abort);
        state.keep(observers, &stats).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.helpers.iter().for_each(JoinHandle::abort);
    }
}

/// The tasks of a server, and what they share.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    orders: Vec<mpsc::UnboundedSender<Order>>,
    admission: Arc<Admission>,
    policing: Arc<Policing>,
    #[cfg(feature = "tcp")]
    connections: Arc<crate::tcp::Connections>,
    /// What sessions are made with, also by workers that follow one that panicked.
    security: Arc<RwLock<ServerSecurity>>,
    /// Of workers.
    panics: Arc<AtomicU64>,
}

impl Running {
    /// The figures of all workers together.
    async fn stats(&self) -> Stats {
        let mut all =
            Stats { memory: self.admission.memory(), panics: self.panics.load(Ordering::Relaxed), ..Stats::default() };
        (all.forbidden, all.limited) = self.policing.refused();
        #[cfg(feature = "_secure")]
        if let Ok(security) = self.security.read() {
            all.certificate_expiry = security.own_certificate().and_then(|certificate| certificate.expires_at());
        }
        #[cfg(feature = "tcp")]
        {
            let (connections, memory) = self.connections.figures();
            all.memory += memory;
            (all.connections, all.evicted) = (connections, self.connections.evicted());
        }
        for order in &self.orders {
            let (reply, answer) = oneshot::channel();
            if order.send(Order::Stats(reply)).is_ok()
                && let Ok(stats) = answer.await
            {
                all.join(stats);
            }
        }
        all
    }
}

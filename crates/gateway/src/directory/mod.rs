//! A resource directory (RFC 9176): endpoints register their resources, others look them up, and a gateway finds by it the devices
//! that nobody else can reach.
//!
//! [`routes`] puts a [`Directory`] into a server, at `/rd`, `/rd-lookup/ep`, `/rd-lookup/res` and `/.well-known/rd`, where
//! `/.well-known/core` tells of it. What is registered is in memory, and in a database on disk if [`DirectorySettings::file`] names
//! one: a restart forgets nobody. The rules are those of [`Registry`], which knows neither clock nor sockets nor files.
//!
//! ```no_run
//! use millpond_gateway::directory::{Directory, DirectorySettings, routes};
//! use millpond_live::Server;
//!
//! # async fn run() -> Result<(), millpond_live::Error> {
//! let directory = Directory::start(DirectorySettings::default()).await;
//! let server = routes(Server::builder(), &directory).start().await?;
//! directory.ask_by(&server);
//! # Ok(())
//! # }
//! ```
//!
//! # Who may change a registration
//!
//! The policy is that of RFC 9176 §7.5: a name is whose registers it first, until the registration ends.
//!
//! - Who registers in a secure session with an identity, a pre-shared key or a certificate, owns the registration by it: nobody else
//!   can change or remove it, or register its name, from whatever address. A certificate is the very certificate; one that is renewed
//!   registers once the old registration has ended, or was removed.
//! - Without identity it is owned by the address. Ports do not matter, since NATs and restarts change them; of IPv6 the network of 64
//!   bits counts, in which hosts change their addresses. Everybody has to prove the address first (4.01 with Echo, RFC 9175), or
//!   ask in a connection. An identity at that address may take the registration over, and owns it from then on.
//!
//! So endpoints without Echo can register from networks alone that the server [trusts](millpond_live::ServerBuilder::trust).
//!
//! # What is bounded
//!
//! All registrations together have a budget of bytes, of which one network may have three quarters. Those without identity have three
//! quarters of it together, and half if they are of one network. ExtraState it a network is refused with 4.29, and with 5.03 where
//! others have used it up, both with Max-Age. One registration may have 64 KiB of links and 64 attributes, a look-up 16 criteria and 4 MiB of
//! answer; look-ups that take long take turns by network. Observers are notified once a second at most. Links are fetched from one peer once at a time, and from 64 peers.

mod lookup;
mod parameters;
mod refusal;
mod registration;
mod registry;
mod routes;
mod simple;
mod store;
mod worker;

#[cfg(test)]
mod full_disk;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use millpond_live::{Client, FairSemaphore, Observable, Server, database::Store};
use tokio::sync::{Notify, mpsc, oneshot};

pub use lookup::Query;
pub use parameters::{LONGEST_NAME, Parameters};
pub use refusal::Refusal;
pub use registration::Registrant;
pub use registry::{DEFAULT_LIFETIME, Registry};
pub use routes::routes;

/// What a [`Directory`] is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectorySettings {
    /// Bytes that all registrations may have together; 32 MiB.
    pub memory: usize,
    /// The database that registrations are kept in over a restart; none.
    pub file: Option<PathBuf>,
}

impl Default for DirectorySettings {
    fn default() -> Self {
        Self { memory: 32 << 20, file: None }
    }
}

/// Bytes of links of one endpoint. A judgement: a device with a hundred resources has some 5 KiB.
const LONGEST_LINKS: usize = 64 << 10;

/// A resource directory. Clones are one.
#[derive(Clone, Debug)]
pub struct Directory {
    shared: Arc<Shared>,
    /// Orders to the worker to write what has changed. It ends once nobody can send any.
    orders: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

/// What handlers and the worker share.
#[derive(Debug)]
struct Shared {
    clock: Clock,
    registry: Mutex<Registry>,
    /// Look-ups tell something else than before.
    changed: Observable,
    /// There is something to do for the worker.
    work: Notify,
    /// Why registrations are not on disk.
    trouble: Mutex<Option<String>>,
    fetching: simple::Fetching,
    /// For look-ups that take long.
    turns: FairSemaphore,
}

/// The endpoint of a registration: how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// Its base, such as `coap://[2001:db8::1]:61616`, of whatever scheme. One that its registration named says what its
    /// sender wrote: ask there as at any destination that somebody else chose.
    pub base: String,
    /// Who has registered it, unless a base was named: that one is reached at the address that it registered from, in that very
    /// session or connection if it was one, and is asked for its identity if it has proved one
    /// ([`RequestBuilder::identity`](millpond_live::RequestBuilder::identity)).
    pub registrant: Option<Registrant>,
    /// Until its registration ends.
    pub expires_in: Duration,
}

impl Directory {
    /// Starts one in the current runtime, with what its database holds.
    ///
    /// It serves in any case. Where the file cannot be read it is left as it is, and registrations are in memory alone; where it
    /// cannot be written, writing is tried again each minute. Both are logged by `tracing`, once, and [told](Self::trouble).
    pub async fn start(settings: DirectorySettings) -> Self {
        let clock = Clock::start();
        let mut registry = Registry::new(settings.memory, LONGEST_LINKS);
        let disk = match settings.file {
            None => Ok(None),
            Some(path) => store::open(Store::at(path), &mut registry, clock.now()).await.map(Some),
        };
        Self::over(clock, registry, disk)
    }

    /// Over what a disk holds, or why it does not.
    fn over(clock: Clock, registry: Registry, disk: Result<Option<Store>, String>) -> Self {
        let trouble = disk.as_ref().err().cloned();
        if let Some(trouble) = &trouble {
            tracing::error!(target: "millpond_gateway", "{trouble}; registrations are kept in memory alone");
        }
        let shared = Arc::new(Shared {
            clock,
            registry: Mutex::new(registry),
            changed: Observable::new(),
            work: Notify::new(),
            trouble: Mutex::new(trouble),
            fetching: simple::Fetching::default(),
            turns: FairSemaphore::new(1),
        });
        let (orders, received) = mpsc::unbounded_channel();
        tokio::spawn(worker::run(Arc::clone(&shared), disk.unwrap_or_default(), received));
        Self { shared, orders }
    }

    /// The endpoint of this name that is registered without a sector.
    #[must_use]
    pub fn endpoint(&self, name: &str) -> Option<Endpoint> {
        self.shared.registry().endpoint(self.shared.clock.now(), None, name)
    }

    /// The endpoint of this name in a sector (`d` of RFC 9176).
    #[must_use]
    pub fn endpoint_in(&self, sector: &str, name: &str) -> Option<Endpoint> {
        self.shared.registry().endpoint(self.shared.clock.now(), Some(sector), name)
    }

    /// Fetches the links of endpoints that register simply (RFC 9176 §5.1) by the ports of this server: through their NATs, and in
    /// their sessions and connections. Without it, or with several workers, they are asked from another port, and in sessions and
    /// connections not at all.
    pub fn ask_by(&self, server: &Server) {
        self.shared.fetching.ask_by(server);
    }

    /// Who asks an endpoint that has registered so, by the ports of the server that it [asks by](Self::ask_by).
    pub(crate) fn clients(&self, of: &Registrant) -> Vec<Client> {
        self.shared.fetching.clients(of)
    }

    /// Returns once all that was registered before is on disk, or could not be written: to be called before the program ends. What
    /// is not waited for so is written within a second or so.
    pub async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.orders.send(done).is_ok() {
            // A worker that has ended writes no more.
            let _ = is_done.await;
        }
    }

    /// Why registrations are not on disk, if they should be: one line.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble().clone()
    }

    /// Endpoints that are registered, and those whose registration ended a few minutes ago and can still be refreshed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.registry().len()
    }

    /// None is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that registrations have, about.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.shared.registry().memory()
    }
}

impl Shared {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the registry at this time, which the worker is told.
    fn change<T>(&self, change: impl FnOnce(&mut Registry, Duration) -> T) -> T {
        let changed = change(&mut self.registry(), self.clock.now());
        self.work.notify_one();
        changed
    }
}

/// The location of a registration.
fn location(id: u64) -> String {
    format!("/rd/{id}")
}

/// The time of day since 1970 when it was made, and what has passed since on tokio's clock, which never goes back.
#[derive(Clone, Copy, Debug)]
struct Clock {
    origin: tokio::time::Instant,
    since_1970: Duration,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "registrations on disk end by the time of day")]
    fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin: tokio::time::Instant::now(), since_1970 }
    }

    fn now(&self) -> Duration {
        self.since_1970.saturating_add(self.origin.elapsed())
    }

    /// A point as tokio can sleep until it; some thirty years from now at most.
    fn at(&self, point: Duration) -> tokio::time::Instant {
        const LONGEST: Duration = Duration::from_secs(1_000_000_000);
        self.origin + point.saturating_sub(self.since_1970).min(LONGEST)
    }
}

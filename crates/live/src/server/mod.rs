//! The server: resources at paths, handlers, observers.

mod admission;
mod builder;
mod desk;
mod links;
mod memberships;
mod metrics;
mod observable;
mod observers;
mod reachability;
mod request;
mod resource;
mod router;
mod running;
mod worker;

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

pub use builder::ServerBuilder;
pub use observable::Observable;
pub use reachability::AddressRule;
pub use request::Request;
pub use resource::Resource;

pub(crate) use admission::Admission;
pub(crate) use desk::{Action, Arrived, Desk, DeskLimits};
pub(crate) use reachability::Reachability;
pub(crate) use request::Unrouted;
pub(crate) use router::Router;
pub(crate) use worker::{GRACE, Order};

use crate::{Stats, Transport};

/// A CoAP server. It runs in tasks of the runtime in which it was started, until it is shut down or dropped.
///
/// ```no_run
/// use millpond_live::{Resource, Response, Server};
///
/// # async fn run() -> Result<(), millpond_live::Error> {
/// let hello = Resource::new().get(|_| async { Response::content("world").with_content_format(0) });
/// let server = Server::builder().route("/hello", hello).start().await?;
/// println!("listening on {}", server.local_addr());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    addresses: Vec<(Transport, SocketAddr)>,
    groups: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
    running: Running,
    tasks: Vec<JoinHandle<()>>,
    /// Tasks that end with the server and have nothing to say.
    helpers: Vec<JoinHandle<()>>,
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

    /// The groups that it has joined.
    #[must_use]
    pub fn groups(&self) -> &[SocketAddr] {
        &self.groups
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

    /// Answers what was asked, tells observers with 5.03 that it ends, and ends once all that was acknowledged. Handlers that
    /// take longer than 3 s are dropped, and their requests answered with 5.03; after 4 s it ends in any case.
    pub async fn shutdown(mut self) {
        for order in &self.running.orders {
            // A worker that has ended needs no order.
            let _ = order.send(Order::Shutdown);
        }
        for task in std::mem::take(&mut self.tasks) {
            let _ = task.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for task in self.tasks.iter().chain(&self.helpers) {
            task.abort();
        }
    }
}

/// The tasks of a server, and what they share.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    orders: Vec<mpsc::UnboundedSender<Order>>,
    admission: Arc<Admission>,
}

impl Running {
    /// The figures of all workers together.
    async fn stats(&self) -> Stats {
        let mut all = Stats { memory: self.admission.memory(), ..Stats::default() };
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

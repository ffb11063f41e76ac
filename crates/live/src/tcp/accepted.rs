//! Connections that peers have begun at a port, for the client in them.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, mpsc};

use super::connection_task::CommandSource;
use crate::client::{Command, Commands};

/// Connections that peers have begun at a port, by peer.
#[derive(Debug, Default)]
pub(crate) struct AcceptedConnections(Mutex<BTreeMap<SocketAddr, Arc<CommandChannel>>>);

/// Where the client in a connection meets its task. Most connections are never asked in, and have no channel.
#[derive(Debug, Default)]
struct CommandChannel {
    requested: Notify,
    ends: Mutex<(Option<Commands>, Option<mpsc::UnboundedReceiver<Command>>)>,
}

/// An address as every URI of it is read, in whichever family it came.
fn plain(peer: SocketAddr) -> SocketAddr {
    match peer.ip().to_canonical() {
        ip if ip == peer.ip() => peer,
        ip => SocketAddr::new(ip, peer.port()),
    }
}

impl AcceptedConnections {
    fn channels(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Arc<CommandChannel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where requests in the connection of this peer go, if it has one.
    pub(crate) fn of(&self, peer: SocketAddr) -> Option<Commands> {
        let channel = Arc::clone(self.channels().get(&plain(peer))?);
        let mut ends = channel.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.0.is_none() {
            let (commands, orders) = mpsc::unbounded_channel();
            *ends = (Some(commands), Some(orders));
            channel.requested.notify_one();
        }
        ends.0.clone()
    }

    /// Of all connections in which something was asked.
    pub(crate) fn asked(&self) -> Vec<Commands> {
        let commands =
            |channel: &Arc<CommandChannel>| channel.ends.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        self.channels().values().filter_map(commands).collect()
    }

    /// The connection of a peer stands. Of two the later one counts: the one before is dead, as its address is another's.
    pub(super) fn enter(self: &Arc<Self>, peer: SocketAddr) -> CommandSource {
        let (peer, channel) = (plain(peer), Arc::<CommandChannel>::default());
        self.channels().insert(peer, Arc::clone(&channel));
        CommandSource::Accepted(Registration { all: Arc::clone(self), peer, channel }, None)
    }
}

/// The place of a connection among those that stand, until it is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    all: Arc<AcceptedConnections>,
    peer: SocketAddr,
    channel: Arc<CommandChannel>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut channels = self.all.channels();
        if channels.get(&self.peer).is_some_and(|channel| Arc::ptr_eq(channel, &self.channel)) {
            channels.remove(&self.peer);
        }
    }
}

impl Registration {
    /// Waits until somebody wants to ask in the connection: where it comes from what they ask.
    pub(super) async fn requested(&self) -> Option<mpsc::UnboundedReceiver<Command>> {
        self.channel.requested.notified().await;
        self.take()
    }

    pub(super) fn take(&self) -> Option<mpsc::UnboundedReceiver<Command>> {
        self.channel.ends.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}

//! Connections that peers have begun at a port, for the client in them.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, mpsc};

use super::asking::refuse_rest;
use crate::{
    Error,
    client::{Command, Commands},
};

/// Those that stand at a port, by whom they lead to.
#[derive(Debug, Default)]
pub(crate) struct Standing(Mutex<BTreeMap<SocketAddr, Arc<Door>>>);

/// Where the client in a connection meets its task. Most connections are never asked in, and have no channel.
#[derive(Debug, Default)]
struct Door {
    knocked: Notify,
    line: Mutex<(Option<Commands>, Option<mpsc::UnboundedReceiver<Command>>)>,
}

/// An address as every URI of it is read, in whichever family it came.
fn plain(peer: SocketAddr) -> SocketAddr {
    match peer.ip().to_canonical() {
        ip if ip == peer.ip() => peer,
        ip => SocketAddr::new(ip, peer.port()),
    }
}

impl Standing {
    fn doors(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Arc<Door>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where requests in the connection of this peer go, if it has one.
    pub(crate) fn of(&self, peer: SocketAddr) -> Option<Commands> {
        let door = Arc::clone(self.doors().get(&plain(peer))?);
        let mut line = door.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.0.is_none() {
            let (commands, orders) = mpsc::unbounded_channel();
            *line = (Some(commands), Some(orders));
            door.knocked.notify_one();
        }
        line.0.clone()
    }

    /// Of all connections in which something was asked.
    pub(crate) fn asked(&self) -> Vec<Commands> {
        let line = |door: &Arc<Door>| door.line.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        self.doors().values().filter_map(line).collect()
    }

    /// The connection of a peer stands. Of two the later one counts: the one before is dead, as its address is another's.
    pub(super) fn enter(self: &Arc<Self>, peer: SocketAddr) -> Orders {
        let (peer, door) = (plain(peer), Arc::<Door>::default());
        self.doors().insert(peer, Arc::clone(&door));
        Orders::Found(Entrance { all: Arc::clone(self), peer, door }, None)
    }
}

/// The place of a connection among those that stand, until it is dropped.
#[derive(Debug)]
pub(super) struct Entrance {
    all: Arc<Standing>,
    peer: SocketAddr,
    door: Arc<Door>,
}

impl Drop for Entrance {
    fn drop(&mut self) {
        let mut doors = self.all.doors();
        if doors.get(&self.peer).is_some_and(|door| Arc::ptr_eq(door, &self.door)) {
            doors.remove(&self.peer);
        }
    }
}

/// What is asked in a connection.
#[derive(Debug)]
pub(super) enum Orders {
    /// Of one that a peer began, by who found it.
    Found(Entrance, Option<mpsc::UnboundedReceiver<Command>>),
    /// Of one that was begun here, by who wanted it.
    Line(mpsc::UnboundedReceiver<Command>),
}

impl Orders {
    /// The next one; none if nobody can ask any more.
    pub(super) async fn recv(&mut self) -> Option<Command> {
        match self {
            Self::Line(orders) => orders.recv().await,
            Self::Found(entrance, orders) => loop {
                if let Some(orders) = orders {
                    return orders.recv().await;
                }
                entrance.door.knocked.notified().await;
                *orders = entrance.take();
            },
        }
    }

    /// Ends those that were not taken, and the place of the connection.
    pub(super) async fn refuse(self, why: &Error) {
        let orders = match self {
            Self::Line(orders) => Some(orders),
            Self::Found(entrance, orders) => orders.or_else(|| entrance.take()),
        };
        if let Some(orders) = orders {
            refuse_rest(orders, why).await;
        }
    }
}

impl Entrance {
    fn take(&self) -> Option<mpsc::UnboundedReceiver<Command>> {
        self.door.line.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}

//! The connections that a client has.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use millpond_coap::stream::Connection;
use tokio::sync::mpsc::WeakUnboundedSender;

use super::{Client, Command, Commands};
#[cfg(feature = "server")]
use crate::tcp::ConnectionSource;
use crate::{
    Error, Host, NotSent, Transport,
    tcp::{self, ConnectTarget, client_config, connect},
};

/// A connection, as the client over it has it.
#[derive(Debug)]
pub(crate) struct ConnectionHandle {
    pub(crate) commands: Commands,
    /// Its server wants it to end: what was asked is answered still, and nothing more can be asked (RFC 8323 §5.5).
    pub(crate) is_released: Arc<AtomicBool>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// For each peer; over TLS for each host that it was proved to be.
    handles: BTreeMap<(SocketAddr, Option<Host>), ConnectionHandle>,
    /// Those released by their servers. They end with the client something over them.
    leaving: Vec<WeakUnboundedSender<Command>>,
}

impl Connections {
    /// The one that leads to one of these addresses, or else another one.
    fn to(
        &mut self,
        to: &[SocketAddr],
        host: Option<Host>,
        connect: impl FnOnce() -> Result<ConnectionHandle, Error>,
    ) -> Result<Commands, Error> {
        let Self { handles, leaving } = self;
        leaving.retain(|commands| commands.strong_count() > 0);
        handles.retain(|_, handle| {
            let is_released = handle.is_released.load(Ordering::Relaxed);
            if is_released {
                leaving.push(handle.commands.downgrade());
            }
            !is_released && !handle.commands.is_closed()
        });
        let key = |address: &SocketAddr| (*address, host.clone());
        if let Some(there) = to.iter().find_map(|address| handles.get(&key(address))) {
            return Ok(there.commands.clone());
        }
        let handle = connect()?;
        let commands = handle.commands.clone();
        if let Some(first) = to.first() {
            handles.insert(key(first), handle);
        }
        Ok(commands)
    }

    /// All of them, which are these no more.
    fn take(&mut self) -> Vec<Commands> {
        let Self { handles, leaving } = std::mem::take(self);
        let leaving = leaving.into_iter().filter_map(|commands| commands.upgrade());
        handles.into_values().map(|handle| handle.commands).chain(leaving).collect()
    }
}

impl Client {
    /// The connection that leads to one of these addresses: one that stands or is being made, or another one, to whichever
    /// of them takes it first.
    pub(super) async fn connection(
        &self,
        transport: Transport,
        peers: &[SocketAddr],
        host: &Host,
    ) -> Result<Commands, Error> {
        #[cfg(feature = "server")]
        let (source, from) = match self.sources.iter().find(|(of, _)| *of == transport) {
            Some((_, ConnectionSource::Accepted { at, connections })) => {
                return tcp::find(transport, *at, connections, peers);
            }
            Some((_, ConnectionSource::Connect { from, connects })) => (Some(connects), Some(*from)),
            None => (None, None),
        };
        #[cfg(not(feature = "server"))]
        let from = None::<SocketAddr>;
        let of_family = |peer: &&SocketAddr| from.is_none_or(|from| from.is_ipv4() == peer.is_ipv4());
        let reached: Vec<SocketAddr> = peers.iter().filter(of_family).copied().collect();
        if let (Some(from), true, Some(peer)) = (from, reached.is_empty(), peers.first()) {
            let reason = format!("{from} cannot ask {peer}: another family of addresses");
            return Err(Error::refused(NotSent::Destination, reason));
        }
        // Who was proved to be one host need not be another.
        let (proved, secure) = if transport == Transport::Tls {
            let config = self.tls.get_or_init(|| client_config(&self.settings.security)).clone()?;
            (Some(host.clone()), Some((host.clone(), config)))
        } else {
            (None, None)
        };
        let options = tcp::options(self.settings.needs_settings, self.settings.token_length);
        let connection = Box::new(self.settings.protecting.connection(Connection::new(options)));
        let attempts = self.settings.attempts.clone();
        let target = ConnectTarget { peers: reached.clone(), from, secure, connection, attempts };
        let begin = || {
            #[cfg(feature = "server")]
            if let Some(connects) = source {
                return tcp::begin(connects, target);
            }
            Ok(connect(target))
        };
        self.connections.lock().await.to(&reached, proved, begin)
    }

    /// Those that it has, which are its own no more, and those of others in which it asked.
    pub(super) async fn all_connections(&self) -> Vec<Commands> {
        let connections = self.connections.lock().await.take();
        #[cfg(feature = "server")]
        let connections = self.sources.iter().fold(connections, |mut all, (_, way)| {
            if let ConnectionSource::Accepted { connections, .. } = way {
                all.extend(connections.upgrade().into_iter().flat_map(|standing| standing.asked()));
            }
            all
        });
        connections
    }
}

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
use crate::tcp::Way;
use crate::{
    Error, Host, NotSent, Transport,
    tcp::{self, Goal, client_config, connect},
};

/// A connection, as the client over it has it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) commands: Commands,
    /// Its server wants it to end: what was asked is answered still, and nothing more can be asked (RFC 8323 §5.5).
    pub(crate) is_released: Arc<AtomicBool>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// For each peer; over TLS for each host that it was proved to be.
    lines: BTreeMap<(SocketAddr, Option<Host>), Line>,
    /// Those released by their servers. They end with the client something over them.
    leaving: Vec<WeakUnboundedSender<Command>>,
}

impl Connections {
    /// The one that leads to one of these addresses, or else another one.
    fn to(
        &mut self,
        to: &[SocketAddr],
        host: Option<Host>,
        connect: impl FnOnce() -> Result<Line, Error>,
    ) -> Result<Commands, Error> {
        let Self { lines, leaving } = self;
        leaving.retain(|commands| commands.strong_count() > 0);
        lines.retain(|_, line| {
            let is_released = line.is_released.load(Ordering::Relaxed);
            if is_released {
                leaving.push(line.commands.downgrade());
            }
            !is_released && !line.commands.is_closed()
        });
        let key = |address: &SocketAddr| (*address, host.clone());
        if let Some(there) = to.iter().find_map(|address| lines.get(&key(address))) {
            return Ok(there.commands.clone());
        }
        let line = connect()?;
        let commands = line.commands.clone();
        if let Some(first) = to.first() {
            lines.insert(key(first), line);
        }
        Ok(commands)
    }

    /// All of them, which are these no more.
    fn take(&mut self) -> Vec<Commands> {
        let Self { lines, leaving } = std::mem::take(self);
        let leaving = leaving.into_iter().filter_map(|commands| commands.upgrade());
        lines.into_values().map(|line| line.commands).chain(leaving).collect()
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
        let (way, from) = match self.ways.iter().find(|(of, _)| *of == transport) {
            Some((_, Way::Standing { at, connections })) => return tcp::find(transport, *at, connections, peers),
            Some((_, Way::From { from, calls })) => (Some(calls), Some(*from)),
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
        let goal = Goal { peers: reached.clone(), from, secure, connection, attempts };
        let begin = || {
            #[cfg(feature = "server")]
            if let Some(calls) = way {
                return tcp::begin(calls, goal);
            }
            Ok(connect(goal))
        };
        self.connections.lock().await.to(&reached, proved, begin)
    }

    /// Those that it has, which are its own no more, and those of others in which it asked.
    pub(super) async fn all_connections(&self) -> Vec<Commands> {
        let connections = self.connections.lock().await.take();
        #[cfg(feature = "server")]
        let connections = self.ways.iter().fold(connections, |mut all, (_, way)| {
            if let Way::Standing { connections, .. } = way {
                all.extend(connections.upgrade().into_iter().flat_map(|standing| standing.asked()));
            }
            all
        });
        connections
    }
}

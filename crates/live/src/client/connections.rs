//! The connections that a client has.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::mpsc::WeakUnboundedSender;

use super::{Command, Commands};
use crate::Host;

/// A connection, as whoever asks over it has it.
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
    /// Those released by their servers. They end with whoever asked something over them.
    leaving: Vec<WeakUnboundedSender<Command>>,
}

impl Connections {
    /// The one that leads to one of these addresses, or else another one.
    pub(super) fn to(&mut self, to: &[SocketAddr], host: Option<Host>, connect: impl FnOnce() -> Line) -> Commands {
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
            return there.commands.clone();
        }
        let line = connect();
        let commands = line.commands.clone();
        if let Some(first) = to.first() {
            lines.insert(key(first), line);
        }
        commands
    }

    /// All of them, which are these no more.
    pub(super) fn take(&mut self) -> Vec<Commands> {
        let Self { lines, leaving } = std::mem::take(self);
        let leaving = leaving.into_iter().filter_map(|commands| commands.upgrade());
        lines.into_values().map(|line| line.commands).chain(leaving).collect()
    }
}

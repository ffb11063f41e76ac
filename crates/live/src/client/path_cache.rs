//! What a client knows of its peers after a restart.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Write},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use millpond_coap::PathCache;
use tokio::{
    sync::{OnceCell, mpsc, oneshot},
    time::{Instant, sleep, sleep_until},
};

use super::{Client, Command, Commands, Settings};
use crate::{
    Error, Stats,
    clock::{seconds, span},
};

/// How often round trips are written down while they change.
const EVERY: Duration = Duration::from_secs(600);
/// The file is not written more often.
const PAUSE: Duration = Duration::from_secs(1);

impl Client {
    /// What is to be remembered of peers when this client is gone: what it was [told](super::ClientBuilder::path_cache), the round trips
    /// over UDP and DTLS that it has measured since, and where it waits to [come back](super::Reconnect). A peer is its address and
    /// port.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn path_cache(&self) -> Result<PathCache, Error> {
        let mut memory = self.settings.path_cache.clone();
        update(&mut memory, &self.settings, &self.stats().await?);
        Ok(memory)
    }

    /// Keeps the memory in a file, if there is one for it, until this client and all its clones are gone.
    pub(super) fn keep_path_cache(self) -> Self {
        let Some(path) = self.settings.path_cache_file.clone() else { return self };
        let (keeper, orders) = mpsc::unbounded_channel();
        let settings = Arc::clone(&self.settings);
        let sockets = (self.commands.as_ref().ok().map(Commands::downgrade), Arc::downgrade(&self.secure));
        tokio::spawn(Keeper { path, settings, sockets }.run(orders));
        Self { keeper: Some(keeper), ..self }
    }

    /// Writes it now.
    pub(super) async fn write_memory(&self) {
        let (reply, written) = oneshot::channel();
        if self.keeper.as_ref().is_some_and(|keeper| keeper.send(reply).is_ok()) {
            // An error says that the task is gone.
            let _ = written.await;
        }
    }
}

/// Adds what there is to remember now.
fn update(memory: &mut PathCache, settings: &Settings, stats: &Stats) {
    learn(memory, stats);
    settings.attempts.remember(memory, Instant::now(), seconds());
}

/// Adds the round trips that were measured.
pub(crate) fn learn(memory: &mut PathCache, stats: &Stats) {
    let now = seconds();
    for peer in &stats.peers {
        if let Some(base_rtt) = peer.base_round_trip {
            memory.learn(&path(peer.address), span(base_rtt), now.saturating_sub(peer.quiet.as_secs()));
        }
    }
}

/// Whom the task asks for the file, each time it is to be written at once.
pub(super) type Orders = mpsc::UnboundedSender<oneshot::Sender<()>>;

/// Who writes the file. It keeps no client alive.
struct Keeper {
    path: PathBuf,
    settings: Arc<Settings>,
    sockets: (Option<mpsc::WeakUnboundedSender<Command>>, Weak<OnceCell<Commands>>),
}

impl Keeper {
    async fn run(self, mut orders: mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
        let mut memory = self.settings.path_cache.clone();
        let (mut written, mut may_write, mut ends) = (memory.to_bytes(), Instant::now(), false);
        while !ends {
            let mut order = None;
            let changed = async {
                sleep_until(may_write).await;
                self.settings.attempts.changed().await;
            };
            tokio::select! {
                asked = orders.recv() => (order, ends) = (asked, orders.is_closed()),
                () = changed => {}
                () = sleep(EVERY) => {}
            }
            update(&mut memory, &self.settings, &self.stats().await);
            let bytes = memory.to_bytes();
            if bytes != written {
                let (path, writes) = (self.path.clone(), bytes.clone());
                match tokio::task::spawn_blocking(move || write(&path, &writes)).await {
                    Ok(Ok(())) => written = bytes,
                    Ok(Err(error)) => tracing::warn!("{}: {error}", self.path.display()),
                    Err(error) => tracing::warn!("{}: {error}", self.path.display()),
                }
                may_write = Instant::now() + PAUSE;
            }
            if let Some(order) = order {
                // Who asked may have gone.
                let _ = order.send(());
            }
        }
    }

    /// What the sockets have measured, of those that are still there.
    async fn stats(&self) -> Stats {
        let (socket, secure) = &self.sockets;
        let secure = secure.upgrade().and_then(|secure| secure.get().cloned());
        let mut all = Stats::default();
        for commands in socket.as_ref().and_then(mpsc::WeakUnboundedSender::upgrade).into_iter().chain(secure) {
            let (reply, answer) = oneshot::channel();
            if commands.send(Command::Stats(reply)).is_ok() {
                drop(commands);
                all.join(answer.await.unwrap_or_default());
            }
        }
        all
    }
}

/// What is remembered in a file; nothing if there is none.
///
/// # Errors
/// It cannot be read, or has something else in it.
pub(super) async fn read(path: PathBuf) -> Result<Option<PathCache>, Error> {
    let refused = |reason: String| Error::Setting { name: "path_cache_file", reason };
    let origin = path.display().to_string();
    let bytes = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        // More is refused by what reads it.
        File::open(path)?.take(PathCache::MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    match bytes.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(bytes) => PathCache::from_bytes(&bytes).map(Some).map_err(|error| refused(format!("{origin}: {error}"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused(format!("{origin}: {error}"))),
    }
}

/// The file has all of this, or after a power cut what it had before.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let mut file = File::create(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    // Of its directory some systems let nobody say that.
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// What the path to a peer is called.
pub(crate) fn path(peer: SocketAddr) -> Vec<u8> {
    let port = peer.port().to_be_bytes();
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => [&ip.octets()[..], &port].concat(),
        IpAddr::V6(ip) => [&ip.octets()[..], &port].concat(),
    }
}

/// Whose path it is that is called so.
pub(super) fn peer_of(path: &[u8]) -> Option<SocketAddr> {
    let (ip, port) = path.split_last_chunk()?;
    let ip = match ip.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(ip).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(ip).ok()?),
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_called_by_address_and_port() {
        let path = |peer: &str| path(peer.parse().unwrap());
        assert_eq!(path("192.0.2.1:5683"), [192, 0, 2, 1, 22, 51]);
        assert_eq!(path("[::ffff:192.0.2.1]:5683"), path("192.0.2.1:5683"));
        assert_eq!(path("[2001:db8::1]:1").len(), 18);
        for peer in ["192.0.2.1:5683", "[2001:db8::1]:1"] {
            assert_eq!(peer_of(&path(peer)).unwrap().to_string(), peer);
        }
        assert_eq!([peer_of(b""), peer_of(&[0; 5]), peer_of(&[0; 19])], [None; 3]);
    }
}

//! Whom the gateway asks, and how many requests at a time: devices behind one link share one path, its controller, NSTART and queue.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use millpond_live::{
    Client, Error, FairPermit, FairSemaphore, IpNet, PathKey, Uri, network_of,
    quota::{Shares, Source, Usage},
};
use tokio::time::Instant;

use crate::config::{Config, PathOf};

/// All paths.
#[derive(Debug)]
pub(crate) struct Paths {
    declared: Vec<Declared>,
    /// For those that are behind no declared path.
    others: Client,
    nstart: u16,
    queue: usize,
    /// What is asked at a time of each of those, while anybody asks it.
    asked: Mutex<BTreeMap<(IpAddr, u16), Weak<Turns>>>,
}

#[derive(Debug)]
struct Declared {
    name: String,
    devices: Vec<IpNet>,
    client: Client,
    turns: Arc<Turns>,
}

/// A way to a device.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) client: Client,
    pub(crate) turns: Arc<Turns>,
}

/// The queue before a path.
#[derive(Debug)]
pub(crate) struct Turns {
    permits: FairSemaphore,
    at_a_time: usize,
    /// Who waits, and how many may.
    waiting: Mutex<Usage>,
    shares: Shares,
    /// How long one request takes, lately, in microseconds.
    takes: Mutex<f64>,
}

/// A request's turn, until its answer is there.
#[derive(Debug)]
pub(crate) struct Turn {
    _permit: FairPermit,
    of: Arc<Turns>,
    began: Instant,
}

/// Why there is no room in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// It is empty in so many seconds.
    Full { again_in: u32 },
    /// Who asks may have forged its address, and too many such wait.
    Unvalidated,
}

/// Requests in connections, whose pace is the operating system's matter: enough to fill a pipe, few enough for others to have turns.
const IN_CONNECTIONS: usize = 64;
/// Before anything was measured a request is taken to need so long: a round trip of NB-IoT with its access.
const FIRST_TAKES: f64 = 2e6;
/// Upstreams of which it is known how many requests are open. Beyond it those that are asked no more are dropped.
const MOST_KNOWN: usize = 1_024;

impl Paths {
    pub(crate) async fn new(config: &Config) -> Result<Self, Error> {
        let mut declared = Vec::with_capacity(config.paths.len());
        for PathOf { name, devices, nstart, queue, controller } in &config.paths {
            let builder = Client::builder().controller(controller.clone()).nstart(*nstart);
            // All its devices are behind one link.
            let builder = builder.share_paths(PathKey::by(|_| 0)).security(config.client_security.clone());
            declared.push(Declared {
                name: name.clone(),
                devices: devices.clone(),
                client: builder.build().await?,
                turns: Arc::new(Turns::new(usize::from(*nstart), *queue)),
            });
        }
        let upstream = &config.upstream;
        let others = Client::builder().controller(upstream.controller.clone()).nstart(upstream.nstart);
        Ok(Self {
            declared,
            others: others.security(config.client_security.clone()).build().await?,
            nstart: upstream.nstart,
            queue: upstream.queue,
            asked: Mutex::default(),
        })
    }

    /// Who knows the addresses of names.
    pub(crate) const fn resolver(&self) -> &Client {
        &self.others
    }

    /// Whether a device of a declared path has this address.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.declared(address).is_some()
    }

    fn declared(&self, address: IpAddr) -> Option<&Declared> {
        let address = address.to_canonical();
        self.declared.iter().find(|path| path.devices.iter().any(|network| network.contains(&address)))
    }

    /// The way to who has this address.
    pub(crate) fn way(&self, uri: &Uri, address: SocketAddr) -> Way {
        if let Some(Declared { client, turns, .. }) = self.declared(address.ip()) {
            return Way { client: client.clone(), turns: Arc::clone(turns) };
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= MOST_KNOWN {
            asked.retain(|_, turns| turns.strong_count() > 0);
        }
        let known = asked.entry((address.ip(), address.port())).or_default();
        let turns = known.upgrade().unwrap_or_else(|| {
            let at_a_time = if uri.transport().is_datagram() { self.nstart.into() } else { IN_CONNECTIONS };
            Arc::new(Turns::new(at_a_time, self.queue))
        });
        *known = Arc::downgrade(&turns);
        Way { client: self.others.clone(), turns }
    }

    /// How many requests wait before each declared path.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&str, usize)> {
        self.declared.iter().map(|path| (path.name.as_str(), path.turns.usage().all()))
    }

    /// The clients that ask.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (&str, &Client)> {
        let declared = self.declared.iter().map(|path| (path.name.as_str(), &path.client));
        declared.chain([("", &self.others)])
    }
}

impl Turns {
    fn new(at_a_time: usize, most_waiting: usize) -> Self {
        Self {
            permits: FairSemaphore::new(at_a_time),
            at_a_time,
            waiting: Mutex::new(Usage::new()),
            shares: Shares::of_places(most_waiting.max(at_a_time)),
            takes: Mutex::new(FIRST_TAKES),
        }
    }

    /// Waits for a turn. Networks of those who wait take turns, and none has more than three quarters of the queue; unvalidated addresses
    /// share a quarter.
    pub(crate) async fn take(self: &Arc<Self>, peer: SocketAddr, is_validated: bool) -> Result<Turn, NoRoom> {
        struct Waits<'t>(&'t Turns, Source);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.usage().remove(self.1, 1);
            }
        }
        let source = Source { is_validated, network: network_of(peer) };
        let waits = {
            let mut usage = self.usage();
            let full = usage.full(&self.shares, source, 1);
            // Where nobody waits it may be its turn at once.
            if usage.all() > 0 && full.is_unvalidated() {
                return Err(NoRoom::Unvalidated);
            }
            if usage.all() > 0 && (full.all || full.network) {
                return Err(NoRoom::Full { again_in: self.drains_in(usage.all()) });
            }
            usage.add(source, 1);
            Waits(self, source)
        };
        let permit = self.permits.acquire(peer, 1).await;
        drop(waits);
        Ok(Turn { _permit: permit, of: Arc::clone(self), began: Instant::now() })
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seconds until so many requests are answered, if they take as long as those before.
    fn drains_in(&self, requests: usize) -> u32 {
        let takes = *self.takes.lock().unwrap_or_else(PoisonError::into_inner);
        #[allow(clippy::cast_precision_loss, reason = "counts are small")]
        let seconds = takes / 1e6 * requests as f64 / self.at_a_time as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is bounded")]
        let seconds = seconds.ceil().clamp(1.0, 3_600.0) as u32;
        seconds
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let took = self.began.elapsed().min(Duration::from_secs(3_600)).as_secs_f64() * 1e6;
        let mut takes = self.of.takes.lock().unwrap_or_else(PoisonError::into_inner);
        // As TCP smooths round trips (RFC 6298).
        *takes += (took - *takes) / 8.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(network: u8) -> SocketAddr {
        ([192, 0, network, 1], 5_683).into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_says_when_it_will_be_empty() {
        let turns = Arc::new(Turns::new(1, 4));
        for _ in 0..40 {
            let turn = turns.take(peer(1), true).await.unwrap();
            tokio::time::advance(Duration::from_secs(4)).await;
            drop(turn);
        }
        let under_way = turns.take(peer(1), true).await.unwrap();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let turns = Arc::clone(&turns);
                tokio::spawn(async move { turns.take(peer(2), true).await.map(drop) })
            })
            .collect();
        tokio::task::yield_now().await;
        let full = turns.take(peer(2), true).await.unwrap_err();
        assert_eq!(full, NoRoom::Full { again_in: 12 }, "three requests of four seconds each wait");
        drop(under_way);
        for one in waiting {
            one.await.unwrap().unwrap();
        }
        assert_eq!(turns.usage().all(), 0);
    }

    #[tokio::test]
    async fn unvalidated_addresses_leave_the_queue_to_others() {
        let turns = Arc::new(Turns::new(1, 4));
        let under_way = turns.take(peer(1), true).await.unwrap();
        let wait = |network, is_validated| {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move { turns.take(peer(network), is_validated).await.map(drop) })
        };
        let first = wait(2, false);
        tokio::task::yield_now().await;
        assert_eq!(wait(3, false).await.unwrap(), Err(NoRoom::Unvalidated));
        let known = wait(3, true);
        tokio::task::yield_now().await;
        assert_eq!(turns.usage().all(), 2);
        drop(under_way);
        assert_eq!((first.await.unwrap(), known.await.unwrap()), (Ok(()), Ok(())));
    }

    #[tokio::test]
    async fn who_stops_waiting_leaves_the_queue() {
        let turns = Arc::new(Turns::new(1, 4));
        let _under_way = turns.take(peer(1), true).await.unwrap();
        let waits = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.take(peer(1), true).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(turns.usage().all(), 1);
        waits.abort();
        let _ = waits.await;
        assert_eq!(turns.usage().all(), 0);
    }
}

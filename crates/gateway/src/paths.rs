//! Whom the gateway asks, and how many requests at a time: devices behind one link share one path, its controller, NSTART and queue.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, Weak},
};

use millpond_live::{
    Client, ClientBuilder, Error, IpNet, PathKey, Uri, network_of,
    proxy::{NoRoom, Queue},
    quota::Source,
};
use tokio::{sync::oneshot, time::Instant};

use crate::{
    config::{Config, PathOf},
    engine::locked,
};

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
    /// What a resolver says instead, one time after the other.
    #[cfg(test)]
    pub(crate) told: Mutex<std::collections::VecDeque<Vec<SocketAddr>>>,
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
pub(crate) struct Turns(Mutex<Queue<oneshot::Sender<Turn>>>);

/// A request's turn, until its answer is there.
#[derive(Debug)]
pub(crate) struct Turn {
    of: Arc<Turns>,
    /// There from when it is used until it has ended.
    began: Option<Instant>,
    has_ended: bool,
}

/// Requests in connections, whose pace is the operating system's matter: enough to fill a pipe, few enough for others to have turns.
const IN_CONNECTIONS: usize = 64;
/// Upstreams of which it is known how many requests are open. ExtraState it those that are asked no more are dropped.
const MOST_KNOWN: usize = 1_024;

impl Paths {
    pub(crate) async fn new(config: &Config) -> Result<Self, Error> {
        let mut declared = Vec::with_capacity(config.paths.len());
        for PathOf { name, devices, nstart, queue, controller } in &config.paths {
            let builder = Client::builder().controller(controller.clone()).nstart(*nstart);
            // All its devices are behind one link.
            declared.push(Declared {
                name: name.clone(),
                devices: devices.clone(),
                client: protecting(builder.share_paths(PathKey::by(|_| 0)), config).build().await?,
                turns: Arc::new(Turns::new(usize::from(*nstart), *queue)),
            });
        }
        let upstream = &config.upstream;
        let others = Client::builder().controller(upstream.controller.clone()).nstart(upstream.nstart);
        Ok(Self {
            declared,
            others: protecting(others, config).build().await?,
            nstart: upstream.nstart,
            queue: upstream.queue,
            asked: Mutex::default(),
            #[cfg(test)]
            told: Mutex::default(),
        })
    }

    /// The addresses of whom a URI names.
    pub(crate) async fn resolve(&self, uri: &Uri) -> Result<Vec<SocketAddr>, Error> {
        #[cfg(test)]
        if let Some(addresses) = locked(&self.told).pop_front() {
            return Ok(addresses);
        }
        self.others.resolve(uri).await
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
        let mut asked = locked(&self.asked);
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
        self.declared.iter().map(|path| (path.name.as_str(), path.turns.waiting()))
    }

    /// The clients that ask.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (&str, &Client)> {
        let declared = self.declared.iter().map(|path| (path.name.as_str(), &path.client));
        declared.chain([("", &self.others)])
    }
}

/// A client with what it protects its requests by.
fn protecting(builder: ClientBuilder, config: &Config) -> ClientBuilder {
    let builder = builder.security(config.client_security.clone());
    match config.contexts.clone() {
        Some(contexts) => builder.oscore(contexts),
        None => builder,
    }
}

impl Turns {
    fn new(at_a_time: usize, most_waiting: usize) -> Self {
        Self(Mutex::new(Queue::new(at_a_time, most_waiting)))
    }

    /// How many wait.
    fn waiting(&self) -> usize {
        locked(&self.0).waiting()
    }

    /// Waits for a turn.
    pub(crate) async fn take(self: &Arc<Self>, peer: SocketAddr, is_validated: bool) -> Result<Turn, NoRoom> {
        struct Waits<'t> {
            of: &'t Turns,
            network: u64,
            turn: oneshot::Receiver<Turn>,
        }
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.turn.close();
                locked(&self.of.0).leave(self.network, oneshot::Sender::is_closed);
            }
        }
        let source = Source { is_validated, network: network_of(peer) };
        let (has_turn, turn) = oneshot::channel();
        let at_once = locked(&self.0).take(source, has_turn)?.is_some();
        if at_once {
            return Ok(Turn::of(self).begun());
        }
        let mut waits = Waits { of: self, network: source.network, turn };
        // Who waits keeps the queue, and this one those who wait.
        (&mut waits.turn).await.map(Turn::begun).map_err(|_| NoRoom::Full { again_in: 1 })
    }
}

impl Turn {
    fn of(turns: &Arc<Turns>) -> Self {
        Self { of: Arc::clone(turns), began: None, has_ended: false }
    }

    fn begun(mut self) -> Self {
        self.began = Some(Instant::now());
        self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let mut took = self.began.map(|began| began.elapsed());
        loop {
            let Some(next) = locked(&self.of.0).done(took.take()) else { return };
            // Who is gone gives it back.
            let Err(mut unwanted) = next.send(Self::of(&self.of)) else { return };
            unwanted.has_ended = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        assert_eq!(turns.waiting(), 0);
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
        assert_eq!(turns.waiting(), 2);
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
        assert_eq!(turns.waiting(), 1);
        waits.abort();
        let _ = waits.await;
        assert_eq!(turns.waiting(), 0);
    }
}

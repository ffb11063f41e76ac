//! What a server knows of its clients, on disk, so that one that is started again goes on: who observes what, and how long the way to
//! whom is.
//!
//! It is written within a second of every change that matters. Of what a notification is numbered by a bound is written, which holds for
//! thousands of them.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr, SocketAddrV6},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use millpond_coap::{
    PathCache,
    message::{Kind, Message, MessageId, Token, Writer},
    quota::{Shares, Source, Usage},
    transfer::KeptObserver,
};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::{
    sync::{Mutex, Notify, oneshot},
    time::sleep,
};

use super::{Request, Running};
use crate::{Error, Stats, client, database::Store, socket::Order, transfer::Limits, udp::network_of};

/// Observers by where they are and their token. Another format gets another name.
const OBSERVERS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("observers 1");
/// Of round trips, as a client keeps them.
const MEMORY: TableDefinition<'_, (), &[u8]> = TableDefinition::new("memory 1");

/// How often round trips are written while nothing else changes.
const EVERY: Duration = Duration::from_secs(600);
/// Nothing is written more often.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes of all observers that are kept.
const MOST_BYTES: usize = 16 << 20;

/// Records by their keys.
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// An observer as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observing {
    /// Where the server's socket is bound.
    pub(crate) socket: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// By which of our addresses it asked, if that is the socket's to say.
    pub(crate) own: Option<IpAddr>,
    pub(crate) kept: KeptObserver,
    /// What it asked, as a message.
    pub(crate) request: Vec<u8>,
}

impl Observing {
    pub(crate) fn of(
        (socket, peer, own): (SocketAddr, SocketAddr, Option<IpAddr>),
        kept: KeptObserver,
        request: &Request,
    ) -> Option<Self> {
        let mut message = Vec::new();
        let kind = Kind::Confirmable;
        let mut writer = Writer::start(&mut message, kind, request.method(), MessageId(0), Token::EMPTY);
        for option in request.written() {
            writer.option(option.number, option.value).ok()?;
        }
        writer.payload(request.payload()).ok()?;
        writer.finish().ok()?;
        Some(Self { socket, peer, own, kept, request: message })
    }

    fn source(&self) -> Source {
        Source { is_validated: self.kept.is_validated(), network: network_of(self.peer) }
    }

    fn key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        put_address(&mut key, self.socket);
        put_address(&mut key, self.peer);
        put_ip(&mut key, self.own);
        key.extend_from_slice(self.kept.token().as_bytes());
        key
    }

    fn value(&self) -> Vec<u8> {
        let kept = self.kept.to_bytes();
        [&[kept.len() as u8], &kept[..], &self.request].concat()
    }

    /// None for what this version has not written.
    fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let (socket, rest) = take_address(key)?;
        let (peer, rest) = take_address(rest)?;
        let (own, token) = take_ip(rest)?;
        let (length, rest) = value.split_first()?;
        let (kept, request) = rest.split_at_checked(usize::from(*length))?;
        let kept = KeptObserver::from_bytes(kept).filter(|kept| kept.token().as_bytes() == token)?;
        let is_request = Message::parse(request).is_ok_and(|message| message.code.is_request());
        is_request.then(|| Self { socket, peer, own, kept, request: request.into() })
    }
}

fn put_ip(into: &mut Vec<u8>, ip: Option<IpAddr>) {
    match ip {
        None => into.push(0),
        Some(IpAddr::V4(ip)) => into.extend([&[4][..], &ip.octets()].concat()),
        Some(IpAddr::V6(ip)) => into.extend([&[16][..], &ip.octets()].concat()),
    }
}

fn take_ip(bytes: &[u8]) -> Option<(Option<IpAddr>, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    Some(match length {
        0 => (None, rest),
        4 => rest.split_first_chunk::<4>().map(|(ip, rest)| (Some(IpAddr::from(*ip)), rest))?,
        16 => rest.split_first_chunk::<16>().map(|(ip, rest)| (Some(IpAddr::from(*ip)), rest))?,
        _ => return None,
    })
}

fn put_address(into: &mut Vec<u8>, address: SocketAddr) {
    put_ip(into, Some(address.ip()));
    into.extend_from_slice(&address.port().to_be_bytes());
    if let SocketAddr::V6(v6) = address {
        into.extend_from_slice(&v6.scope_id().to_be_bytes());
    }
}

fn take_address(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (ip, rest) = take_ip(bytes)?;
    let (port, rest) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    Some(match ip? {
        IpAddr::V4(ip) => (SocketAddr::new(ip.into(), port), rest),
        IpAddr::V6(ip) => {
            let (scope, rest) = rest.split_first_chunk()?;
            (SocketAddrV6::new(ip, port, 0, u32::from_be_bytes(*scope)).into(), rest)
        }
    })
}

/// Those that are kept: as many as observe, and of all bytes what is left when the validated ones have theirs.
fn chosen(mut all: Vec<Observing>) -> Entries {
    let places = Shares::of_places(Limits::DEFAULT.observers as usize);
    let bytes = Shares::of_bytes(MOST_BYTES);
    let (mut taken, mut held) = (Usage::new(), Usage::new());
    let mut chosen = Entries::new();
    all.sort_by_key(|observing| !observing.kept.is_validated());
    for observing in all {
        let (key, value, source) = (observing.key(), observing.value(), observing.source());
        let weight = key.len() + value.len();
        let full = [taken.full(&places, source, 1), held.full(&bytes, source, weight)];
        if full.iter().any(|full| full.all || full.network || full.is_unvalidated()) {
            continue;
        }
        taken.add(source, 1);
        held.add(source, weight);
        chosen.insert(key, value);
    }
    chosen
}

/// What a server keeps, and where.
#[derive(Debug)]
pub(super) struct State {
    /// None while it is written.
    store: Option<Store>,
    memory: PathCache,
    /// What the database has.
    written: Entries,
    /// It was told that it cannot be written.
    is_told: bool,
}

impl State {
    /// Takes up what a database holds: with the round trips, and those who observed. What is to be kept of these once they are notified
    /// again is written already.
    ///
    /// # Errors
    /// It cannot be read or written, or is something else.
    pub(super) async fn open(path: PathBuf) -> Result<(Self, Vec<Observing>), Error> {
        let refused = |reason| Error::Setting { name: "state_file", reason };
        let store = Store::at(path);
        let shown = store.shown();
        let (store, read) = store.with(read).await;
        let (memory, entries) = read.map_err(refused)?;
        let memory = match memory {
            None => PathCache::new(),
            Some(bytes) => PathCache::from_bytes(&bytes).map_err(|error| refused(format!("{shown}: {error}")))?,
        };
        let all: Vec<_> = entries.iter().filter_map(|(key, value)| Observing::read(key, value)).collect();
        if all.len() < entries.len() {
            let unread = entries.len() - all.len();
            tracing::error!(target: "millpond_live", "{shown}: {unread} observers cannot be read, and are left out");
        }
        let again = all.iter().cloned().map(|it| Observing { kept: it.kept.again(), ..it }).collect();
        let mut state = Self { store: Some(store), memory, written: entries, is_told: false };
        state.write(chosen(again)).await.map_err(refused)?;
        let taken = all.into_iter().filter(|observing| state.written.contains_key(&observing.key())).collect();
        Ok((state, taken))
    }

    pub(super) fn path_cache(&self) -> PathCache {
        self.memory.clone()
    }

    /// Writes these observers in place of those that it has, and the round trips.
    async fn write(&mut self, observers: Entries) -> Result<(), String> {
        let Some(store) = self.store.take() else { return Ok(()) };
        let gone = self.written.keys().filter(|key| !observers.contains_key(*key)).cloned();
        let gone: Vec<Vec<u8>> = gone.collect();
        let is_new = |(key, value): &(&Vec<u8>, &Vec<u8>)| self.written.get(*key) != Some(*value);
        let new: Vec<_> = observers.iter().filter(is_new).map(|(key, value)| (key.clone(), value.clone())).collect();
        let memory = self.memory.to_bytes();
        let (store, done) = store.with(move |database| write(database, &gone, &new, &memory)).await;
        self.store = Some(store);
        if done.is_ok() {
            self.written = observers;
        }
        done
    }

    /// Writes these observers, and the round trips.
    pub(super) async fn keep(&mut self, observers: Entries, stats: &Stats) {
        client::learn(&mut self.memory, stats);
        match self.write(observers).await {
            Ok(()) => self.is_told = false,
            Err(why) if self.is_told => tracing::debug!(target: "millpond_live", "{why}"),
            Err(why) => {
                self.is_told = true;
                tracing::error!(target: "millpond_live", "what is known of clients is not written: {why}");
            }
        }
    }
}

fn read(database: &Database) -> Result<(Option<Vec<u8>>, Entries), redb::Error> {
    // So that a new one has its tables, and one that cannot be written says so at once.
    let beginning = database.begin_write()?;
    beginning.open_table(OBSERVERS)?;
    beginning.open_table(MEMORY)?;
    beginning.commit()?;
    let reading = database.begin_read()?;
    let memory = reading.open_table(MEMORY)?.get(())?.map(|bytes| bytes.value().to_vec());
    let mut entries = Entries::new();
    for entry in reading.open_table(OBSERVERS)?.iter()? {
        let (key, value) = entry?;
        entries.insert(key.value().to_vec(), value.value().to_vec());
    }
    Ok((memory, entries))
}

fn write(database: &Database, gone: &[Vec<u8>], new: &[(Vec<u8>, Vec<u8>)], memory: &[u8]) -> Result<(), redb::Error> {
    let writing = database.begin_write()?;
    {
        let mut observers = writing.open_table(OBSERVERS)?;
        for key in gone {
            observers.remove(&key[..])?;
        }
        for (key, value) in new {
            observers.insert(&key[..], &value[..])?;
        }
        writing.open_table(MEMORY)?.insert((), memory)?;
    }
    Ok(writing.commit()?)
}

/// Keeps what a server knows in its database, until the task is ended.
pub(super) async fn run(state: Arc<Mutex<State>>, changed: Arc<Notify>, running: Running) {
    loop {
        let is_time = tokio::select! {
            () = changed.notified() => false,
            () = sleep(EVERY) => true,
        };
        let observers = running.observers(Order::Observers).await;
        let mut state = state.lock().await;
        if is_time || observers != state.written {
            let stats = running.stats().await;
            state.keep(observers, &stats).await;
        }
        drop(state);
        sleep(PAUSE).await;
    }
}

impl Running {
    /// All observers that are to be kept, asked for by this order.
    pub(super) async fn observers(&self, order: fn(oneshot::Sender<Vec<Observing>>) -> Order) -> Entries {
        let mut all = Vec::new();
        for worker in &self.orders {
            let (reply, answer) = oneshot::channel();
            if worker.send(order(reply)).is_ok()
                && let Ok(observers) = answer.await
            {
                all.extend(observers);
            }
        }
        chosen(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::request::of_options;

    fn observing(peer: &str, is_validated: bool, query: usize) -> Observing {
        let peer = peer.parse().unwrap();
        // A confirmable registration by the token `t`; of an address that has shown nothing, for which 136 bytes may go.
        let kept: &[u8] = if is_validated { b"\x01\0\x80\0\x01t" } else { b"\x05\0\x80\0\x01t\0\0\0\xc6\x3e" };
        let query = vec![b'q'; query];
        let options = [(11, &b"n"[..]), (15, &query[..])];
        let request = of_options(&options, b"", peer);
        let socket = "[::]:5683".parse().unwrap();
        let own = Some("2001:db8::7".parse().unwrap());
        Observing::of((socket, peer, own), KeptObserver::from_bytes(kept).unwrap(), &request).unwrap()
    }

    #[test]
    fn an_observer_is_read_as_it_was_written_and_nothing_else_is() {
        for peer in ["192.0.2.1:5683", "[2001:db8::1]:7"] {
            let one = observing(peer, false, 20);
            let (key, value) = (one.key(), one.value());
            assert_eq!(Observing::read(&key, &value), Some(one));
            for end in 0..key.len() {
                assert_eq!(Observing::read(&key[..end], &value), None);
            }
            for end in 0..value.len() {
                // What is cut off within a message is a shorter one at most.
                let _ = Observing::read(&key, &value[..end]);
                assert!(end > 12 || Observing::read(&key, &value[..end]).is_none());
            }
            for place in 0..value.len() * 8 {
                let (mut key, mut value) = (key.clone(), value.clone());
                value[place / 8] ^= 1 << (place % 8);
                let _ = Observing::read(&key, &value);
                let at = place / 8 % key.len();
                key[at] ^= 1 << (place % 8);
                let _ = Observing::read(&key, &value);
            }
        }
    }

    /// Forged addresses of every network there is, and a network that has all the addresses of its own.
    #[test]
    fn unvalidated_addresses_take_no_place_of_a_validated_one() {
        let forged = |number: u32| observing(&format!("{}:1", std::net::Ipv4Addr::from(number << 8)), false, 0);
        let mut all: Vec<_> = (0..20_000).map(forged).collect();
        let known = |number: u32| observing(&format!("{}:2", std::net::Ipv4Addr::from(number << 8 | 1)), true, 0);
        let validated: Vec<_> = (0..12_288).map(known).collect();
        all.extend(validated.clone());
        let kept = chosen(all);
        assert_eq!(kept.len(), 16_384, "{}", Limits::DEFAULT.observers);
        assert!(validated.iter().all(|one| kept.contains_key(&one.key())));
        // By their bytes, too.
        let long = |number: u32, is_validated| {
            observing(&format!("{}:1", std::net::Ipv4Addr::from(number << 8)), is_validated, 8_000)
        };
        let kept = chosen((0..4_000).map(|number| long(number, number % 2 == 0)).collect());
        let bytes: usize = kept.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(bytes <= MOST_BYTES && bytes > MOST_BYTES - 10_000, "{bytes}");
        assert!((0..2_000).all(|number| kept.contains_key(&long(number * 2, true).key())));
        let of_one = chosen((0..16_384).map(|port| observing(&format!("192.0.2.1:{port}"), true, 0)).collect());
        assert_eq!(of_one.len(), 12_288, "three quarters");
    }
}

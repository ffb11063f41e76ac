//! Registrations on disk: a database of redb.

use std::{
    net::{IpAddr, SocketAddr, SocketAddrV6},
    time::Duration,
};

use bytes::Bytes;
use millpond_live::{
    PeerIdentity, Transport,
    database::{
        Store,
        redb::{self, Database, ReadableDatabase, ReadableTable, TableDefinition},
    },
};
use serde::{Deserialize, Serialize};

use super::{
    Registrant, Registry,
    registration::{Registration, checked},
};

/// Registrations by their numbers, in CBOR. Another format gets another name.
const REGISTRATIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("registrations 1");

/// Two numbers.
const NUMBERS: TableDefinition<'_, u64, u64> = TableDefinition::new("numbers 1");
/// That of the next registration.
const NEXT: u64 = 0;
/// Seconds since 1970 when something was written last.
const WRITTEN: u64 = 1;

/// For how long those whose registration ended while there was no directory can still refresh it: EXCHANGE_LIFETIME of RFC 7252,
/// in which who asked meanwhile has asked again.
const GRACE: Duration = Duration::from_secs(247);

/// Takes up what a database holds.
///
/// # Errors
/// One line that says why it cannot be read, and what to do.
pub(super) async fn open(store: Store, registry: &mut Registry, now: Duration) -> Result<Store, String> {
    let (store, held) = store.with(read).await;
    let (Held { next, written, all }, shown) = (held?, store.shown());
    registry.begin_at(next);
    let (mut unread, mut unplaced) = (0_u64, 0_u64);
    for (id, bytes) in all {
        match Record::read(&bytes, now, written) {
            Some(registration) => unplaced += u64::from(registry.restore(id, registration).is_err()),
            None => unread += 1,
        }
        registry.begin_at(id.saturating_add(1));
    }
    if unread > 0 {
        tracing::error!(target: "millpond_gateway", "{shown}: {unread} registrations cannot be read, and are left out");
    }
    if unplaced > 0 {
        let what = "registrations do not fit the memory of the directory, and are left out; raise it";
        tracing::error!(target: "millpond_gateway", "{shown}: {unplaced} {what}");
    }
    Ok(store)
}

/// What a database holds.
struct Held {
    next: u64,
    /// When something was written last, since 1970.
    written: Duration,
    /// Records by number.
    all: Vec<(u64, Vec<u8>)>,
}

fn read(database: &Database) -> Result<Held, redb::Error> {
    // So that a new one has its tables, and one that cannot be written says so at once.
    let beginning = database.begin_write()?;
    beginning.open_table(REGISTRATIONS)?;
    beginning.open_table(NUMBERS)?;
    beginning.commit()?;
    let reading = database.begin_read()?;
    let numbers = reading.open_table(NUMBERS)?;
    let number = |place| Ok::<_, redb::Error>(numbers.get(place)?.map_or(0, |number| number.value()));
    let (next, written) = (number(NEXT)?, Duration::from_secs(number(WRITTEN)?));
    let mut all = Vec::new();
    for entry in reading.open_table(REGISTRATIONS)?.iter()? {
        let (id, bytes) = entry?;
        all.push((id.value(), bytes.value().to_vec()));
    }
    Ok(Held { next, written, all })
}

/// Writes how registrations are now.
pub(super) fn write(
    database: &Database,
    changed: &[(u64, Option<Registration>)],
    next: u64,
    now: Duration,
) -> Result<(), redb::Error> {
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(REGISTRATIONS)?;
        for (id, registration) in changed {
            match registration.as_ref().and_then(Record::bytes) {
                Some(bytes) => drop(table.insert(id, &bytes[..])?),
                None => drop(table.remove(id)?),
            }
        }
        let mut numbers = writing.open_table(NUMBERS)?;
        numbers.insert(NEXT, next)?;
        numbers.insert(WRITTEN, now.as_secs())?;
    }
    Ok(writing.commit()?)
}

/// A registration as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    ep: Box<str>,
    d: Option<Box<str>>,
    lt: u32,
    base: Option<Box<str>>,
    attributes: Vec<(Box<str>, Option<Box<str>>)>,
    links: Box<str>,
    transport: Carrier,
    ip: IpAddr,
    port: u16,
    zone: u32,
    identity: Option<Identity>,
    /// Seconds since 1970.
    expires: u64,
}

/// [`Transport`], as it is written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Carrier {
    Udp,
    Tcp,
    Dtls,
    Tls,
}

/// [`PeerIdentity`], as it is written.
#[derive(Debug, Serialize, Deserialize)]
enum Identity {
    PreSharedKey(Bytes),
    Certificate(Vec<Bytes>),
    Oscore(Bytes),
}

impl Record {
    /// None for what another version of the library knows, and this program does not.
    fn bytes(registration: &Registration) -> Option<Vec<u8>> {
        let Registration { name, sector, lifetime, base, attributes, links, registrant, expires, .. } =
            registration.clone();
        let Registrant { transport, peer, identity } = registrant;
        let identity = match identity {
            None => None,
            Some(PeerIdentity::PreSharedKey(identity)) => Some(Identity::PreSharedKey(identity)),
            Some(PeerIdentity::Certificate(chain)) => Some(Identity::Certificate(chain)),
            Some(PeerIdentity::Oscore(id)) => Some(Identity::Oscore(id)),
            Some(_) => return None,
        };
        let record = Self {
            ep: name,
            d: sector,
            lt: lifetime,
            base,
            attributes,
            links,
            transport: match transport {
                Transport::Udp => Carrier::Udp,
                Transport::Tcp => Carrier::Tcp,
                Transport::Dtls => Carrier::Dtls,
                Transport::Tls => Carrier::Tls,
            },
            ip: peer.ip(),
            port: peer.port(),
            zone: match peer {
                SocketAddr::V4(_) => 0,
                SocketAddr::V6(v6) => v6.scope_id(),
            },
            identity,
            expires: expires.as_secs(),
        };
        let mut bytes = Vec::new();
        ciborium::into_writer(&record, &mut bytes).ok()?;
        Some(bytes)
    }

    /// None for what is no record of this version. When the database was written last there was a directory.
    fn read(bytes: &[u8], now: Duration, written: Duration) -> Option<Registration> {
        let record: Self = ciborium::from_reader(bytes).ok()?;
        let lifetime = Duration::from_secs(record.lt.into());
        let identity = record.identity.map(|identity| match identity {
            Identity::PreSharedKey(identity) => PeerIdentity::PreSharedKey(identity),
            Identity::Certificate(chain) => PeerIdentity::Certificate(chain),
            Identity::Oscore(id) => PeerIdentity::Oscore(id),
        });
        let registrant = Registrant {
            transport: match record.transport {
                Carrier::Udp => Transport::Udp,
                Carrier::Tcp => Transport::Tcp,
                Carrier::Dtls => Transport::Dtls,
                Carrier::Tls => Transport::Tls,
            },
            peer: match record.ip {
                IpAddr::V4(ip) => SocketAddr::new(ip.into(), record.port),
                IpAddr::V6(ip) => SocketAddrV6::new(ip, record.port, 0, record.zone).into(),
            },
            identity,
        };
        let expires = Duration::from_secs(record.expires);
        // The clock may have been set back.
        let expires = if expires > written {
            // Nobody could refresh it since.
            expires.max(now.saturating_add(GRACE.min(lifetime))).min(now.saturating_add(lifetime))
        } else {
            expires.min(now)
        };
        Some(Registration {
            name: record.ep,
            sector: record.d,
            lifetime: record.lt,
            base: record.base,
            attributes: record.attributes,
            links: checked(&record.links).ok()?,
            registrant,
            expires,
            fresh_until: None,
        })
    }
}

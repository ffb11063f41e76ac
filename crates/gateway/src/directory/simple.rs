//! Simple registration (RFC 9176 §5.1): the directory fetches links from who registers.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use millpond_live::{
    Client, Code, ContentFormat, Error, NotSent, RequestBuilder, Response, Server, Transport, number,
    quota::{Shares, Source, Usage},
};

use super::{LONGEST_LINKS, Refusal, Registrant};
use crate::ports::by_one;

/// Peers from which links are fetched at a time. No network has more than three quarters of it.
const MOST: Shares = Shares::of_places(64);

/// How long an endpoint may take to tell its links: EXCHANGE_LIFETIME is not waited for, so that who registers is answered.
const LONGEST: Duration = Duration::from_secs(93);

/// When to ask again where so many are being fetched.
const RETRY: Duration = Duration::from_secs(10);

/// For how long links are fresh without Max-Age (RFC 7252 §5.10.5).
const DEFAULT_MAX_AGE: u32 = 60;

/// Whom links are fetched from, and by which clients.
#[derive(Debug, Default)]
pub(super) struct Fetching {
    /// Of the ports of a server.
    clients: Mutex<Vec<(Transport, SocketAddr, Client)>>,
    /// For whom no port of the server is there.
    other: tokio::sync::OnceCell<Client>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    peers: BTreeSet<SocketAddr>,
    usage: Usage,
}

/// A place among those whose links are fetched.
struct Place<'f> {
    fetching: &'f Fetching,
    peer: SocketAddr,
    source: Source,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut open = self.fetching.open();
        open.peers.remove(&self.peer);
        open.usage.remove(self.source, 1);
    }
}

impl Fetching {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clients on the ports of a server. Of several workers' there are none.
    pub(super) fn ask_by(&self, server: &Server) {
        let clients = server.local_addrs().iter().filter_map(|(transport, local)| {
            let client = server.client(*local).ok()?;
            Some((*transport, *local, client))
        });
        *self.clients.lock().unwrap_or_else(PoisonError::into_inner) = clients.collect();
    }

    /// The links of an endpoint, and for how long they are fresh.
    pub(super) async fn fetch(&self, of: &Registrant) -> Result<(String, Duration), Refusal> {
        let _place = self.place(of)?;
        let answer = self.ask(of).await.map_err(|error| Refusal::Unanswered(error.to_string()))?;
        links_of(&answer)
    }

    /// A place for this one, unless its links are being fetched already or there is none.
    fn place(&self, of: &Registrant) -> Result<Place<'_>, Refusal> {
        let (peer, source) = (of.peer, Source::validated(millpond_live::network_of(of.peer)));
        let mut open = self.open();
        let full = open.usage.full(&MOST, source, 1);
        if full.all || full.network || !open.peers.insert(peer) {
            return Err(Refusal::Busy { retry_after: RETRY });
        }
        open.usage.add(source, 1);
        Ok(Place { fetching: self, peer, source })
    }

    /// Those that may reach it, one for each port.
    pub(super) fn clients(&self, of: &Registrant) -> Vec<Client> {
        let fits = |(transport, local, _): &&(Transport, SocketAddr, Client)| {
            *transport == of.transport && local.is_ipv4() == of.peer.ip().to_canonical().is_ipv4()
        };
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.iter().filter(fits).map(|(_, _, client)| client.clone()).collect()
    }

    /// Asks by each port that may reach it until one does.
    async fn ask(&self, of: &Registrant) -> Result<Response, Error> {
        let mut clients = self.clients(of);
        if clients.is_empty() && of.transport == Transport::Udp {
            clients.push(self.other.get_or_try_init(Client::new).await?.clone());
        }
        let reason = "the directory asks in no session or connection; give it its server by ask_by".into();
        let requests = clients.into_iter().map(|client| {
            let request = client.get(format!("{}/.well-known/core", of.uri()));
            let request = request.accept(ContentFormat::LINK_FORMAT).deadline(LONGEST);
            match &of.identity {
                Some(identity) => request.identity(identity.clone()),
                None => request,
            }
        });
        by_one(requests, Error::Refused { why: NotSent::Destination, reason }, RequestBuilder::send).await
    }
}

fn links_of(answer: &Response) -> Result<(String, Duration), Refusal> {
    let no_links = |what: &str| Err(Refusal::NoLinks(what.into()));
    if answer.code() != Code::CONTENT {
        return no_links(&answer.code().to_string());
    }
    if answer.content_format().is_some_and(|format| format != ContentFormat::LINK_FORMAT) {
        return no_links("another format than application/link-format (40)");
    }
    if answer.payload().len() > LONGEST_LINKS {
        return no_links(&format!("more than {LONGEST_LINKS} bytes"));
    }
    let Ok(links) = answer.text() else { return no_links("what is no UTF-8") };
    let max_age = answer.options().uint(number::MAX_AGE).unwrap_or(DEFAULT_MAX_AGE);
    Ok((links.to_owned(), Duration::from_secs(max_age.into())))
}

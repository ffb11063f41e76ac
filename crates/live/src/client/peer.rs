//! From a URI to the address that is asked.

use std::{
    future::Future,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use millpond_coap::message::Code;
use tokio::{sync::oneshot, time::Instant};

use super::{
    Command, Commands, RequestBuilder,
    deadline::{Until, until},
    names::Names,
    reconnect::{chance, refusal},
};
use crate::{
    Error, Host, NotSent, Response, Transport, Uri, UriError,
    error::Unsent,
    security::ServerName,
    udp::{canonical, is_group},
};

/// What a URI can be given as.
pub trait IntoUri {
    /// The URI, if it is one; text may be [relative](Uri::join) to a base.
    ///
    /// # Errors
    /// It is none, or none that can be asked for.
    fn into_uri(self, base: Option<&Uri>) -> Result<Uri, UriError>;
}

impl IntoUri for Uri {
    fn into_uri(self, _: Option<&Uri>) -> Result<Uri, UriError> {
        Ok(self)
    }
}

impl IntoUri for &Uri {
    fn into_uri(self, _: Option<&Uri>) -> Result<Uri, UriError> {
        Ok(self.clone())
    }
}

impl IntoUri for &str {
    fn into_uri(self, base: Option<&Uri>) -> Result<Uri, UriError> {
        base.map_or_else(|| self.parse(), |base| base.join(self))
    }
}

impl IntoUri for String {
    fn into_uri(self, base: Option<&Uri>) -> Result<Uri, UriError> {
        self.as_str().into_uri(base)
    }
}

impl IntoUri for &String {
    fn into_uri(self, base: Option<&Uri>) -> Result<Uri, UriError> {
        self.as_str().into_uri(base)
    }
}

/// Whom a peer can be given as: an address, which means UDP, or a URI.
pub trait IntoPeer: Send {
    /// What carries messages to it, its address, and by which host it was named.
    ///
    /// # Errors
    /// The URI is none, or its name does not resolve.
    fn into_peer(self) -> impl Future<Output = Result<(Transport, SocketAddr, Host), Error>> + Send;
}

impl IntoPeer for SocketAddr {
    async fn into_peer(self) -> Result<(Transport, SocketAddr, Host), Error> {
        let peer = canonical(self);
        let host = match peer.ip() {
            IpAddr::V4(ip) => Host::V4(ip),
            IpAddr::V6(ip) => Host::V6(ip, None),
        };
        Ok((Transport::Udp, peer, host))
    }
}

impl IntoPeer for &Uri {
    async fn into_peer(self) -> Result<(Transport, SocketAddr, Host), Error> {
        Ok((self.transport(), resolve(self).await?, self.host().clone()))
    }
}

impl IntoPeer for &str {
    async fn into_peer(self) -> Result<(Transport, SocketAddr, Host), Error> {
        let uri: Uri = self.parse()?;
        uri.into_peer_owned().await
    }
}

impl Uri {
    async fn into_peer_owned(self) -> Result<(Transport, SocketAddr, Host), Error> {
        Ok((self.transport(), resolve(&self).await?, self.host().clone()))
    }
}

/// The address that a URI leads to: its literal, or the first one of its name.
pub(crate) async fn resolve(uri: &Uri) -> Result<SocketAddr, Error> {
    let all = resolve_all(uri, &Names::default()).await?;
    all.first().copied().ok_or(Error::Closed)
}

/// The addresses that a URI leads to, at least one, in the order in which they are tried.
pub(crate) async fn resolve_all(uri: &Uri, names: &Names) -> Result<Vec<SocketAddr>, Error> {
    let port = uri.port();
    Ok(match uri.host() {
        Host::V4(ip) => vec![SocketAddr::new(IpAddr::V4(*ip), port)],
        Host::V6(ip, None) if ip.is_unicast_link_local() => {
            let reason = format!("{ip} is an address on a link; say on which, as in coap://[{ip}%eth0]/");
            return Err(Error::refused(NotSent::Destination, reason));
        }
        Host::V6(ip, None) => vec![canonical(SocketAddr::new(IpAddr::V6(*ip), port))],
        // The system knows its interfaces by name and by number.
        Host::V6(ip, Some(zone)) => vec![in_zone(*ip, zone, port).await?],
        Host::Name(name) => names.resolve(name, port).await?.into_iter().map(canonical).collect(),
    })
}

/// Whose certificate a server over DTLS must have.
#[cfg(not(feature = "dtls"))]
pub(crate) const fn secure_name(_: Transport, _: &Host) -> Result<Option<ServerName>, Error> {
    Ok(None)
}

/// Whose certificate a server over DTLS must have.
#[cfg(feature = "dtls")]
pub(crate) fn secure_name(transport: Transport, host: &Host) -> Result<Option<ServerName>, Error> {
    (transport == Transport::Dtls).then(|| crate::security::name_of(host)).transpose()
}

/// An address on a link, which is told by the name of its interface or by its number.
async fn in_zone(ip: Ipv6Addr, zone: &str, port: u16) -> Result<SocketAddr, Error> {
    let literal = format!("{ip}%{zone}");
    let found = tokio::net::lookup_host((literal.as_str(), port)).await.ok().and_then(|mut all| all.next());
    found.ok_or_else(|| {
        let reason = format!("for {literal} this machine has no interface {zone}; use the name or number of one");
        Error::refused(NotSent::Destination, reason)
    })
}

/// A group would answer many times; requests here have one answer.
pub(crate) fn check_unicast(transport: Transport, peer: SocketAddr) -> Result<(), Error> {
    if is_group(peer.ip()) && transport.is_datagram() {
        let reason = format!("{} is a group, which discover asks; this request goes to one host", peer.ip());
        return Err(Error::refused(NotSent::Destination, reason));
    }
    Ok(())
}

/// The addresses that a request can go to, and how many of them it went to without effect.
pub(super) struct Peers {
    all: Vec<SocketAddr>,
    failed: usize,
    /// The connection over which all blocks of a body go, once it is known.
    line: Option<Commands>,
    /// When the request is to have ended.
    until: Until,
    /// The connection over which it was asked last.
    asked: Option<Commands>,
}

impl Peers {
    pub(super) async fn of(request: &RequestBuilder) -> Result<Self, Error> {
        let uri = request.uri.as_ref().map_err(Clone::clone)?;
        let until = until(request.deadline);
        request.client.settings.attempts.begun().await;
        Ok(Self {
            all: match request.address {
                Some(address) => vec![address],
                None => resolve_all(uri, &request.client.names).await?,
            },
            failed: 0,
            line: None,
            until,
            asked: None,
        })
    }

    pub(super) const fn until(&self) -> Until {
        self.until
    }

    /// Whether nothing came over its connection, not even the settings with which the other side has to begin (RFC 8323 §5.3).
    pub(super) async fn lacks_settings(&self) -> bool {
        /// More than the task of the connection takes to say what it knows.
        const AT_ONCE: Duration = Duration::from_millis(100);
        let Some(asked) = &self.asked else { return false };
        let (reply, room) = oneshot::channel();
        asked.send(Command::Room(0, reply)).is_ok() && tokio::time::timeout(AT_ONCE, room).await.is_err()
    }

    pub(super) fn left(&self) -> &[SocketAddr] {
        self.all.get(self.failed..).unwrap_or_default()
    }

    /// Hands a command of a request to who takes those to its peer. What is about one body goes over one connection, which alone
    /// knows the rest of it.
    pub(super) async fn order(
        &mut self,
        request: &RequestBuilder,
        command: Command,
        is_of_body: bool,
    ) -> Result<Commands, Error> {
        let uri = request.uri.as_ref().map_err(Clone::clone)?;
        let (transport, host) = (uri.transport(), uri.host());
        let Some(line) = self.line.clone() else {
            let commands = request.client.order(transport, self.left(), host, command).await?;
            self.asked = Some(commands.clone()).filter(|_| !transport.is_datagram());
            self.line = self.asked.clone().filter(|_| is_of_body);
            return Ok(commands);
        };
        let peer = self.left().first().copied().ok_or(Error::Closed)?;
        let lost = |_| Error::connection_lost(peer, "it ended in the middle of a body; ask again");
        line.send(command).map_err(lost)?;
        Ok(line)
    }

    /// Whether a request of which nothing was sent, as its connection ended, is to go over another one; it is time for that then. Who
    /// wants no other one for a while (Hold-Off, RFC 8323 §5.5) is waited for as long as the deadline allows, and without one not at all.
    pub(super) async fn move_on(&mut self, error: &Error) -> bool {
        let Some(Unsent { hold_off }) = error.unsent() else { return false };
        if !hold_off.is_zero() {
            let Some(at) = Instant::now().checked_add(hold_off) else { return false };
            if self.until.is_none_or(|(until, _)| until <= at) {
                return false;
            }
            tokio::time::sleep_until(at).await;
        }
        self.line = None;
        true
    }

    /// Whether the next address is to be asked. Over streams one was chosen among all when the connection was made.
    pub(super) fn go_on(&mut self, request: &RequestBuilder, error: &Error) -> bool {
        let is_datagram = request.uri.as_ref().is_ok_and(|uri| uri.transport().is_datagram());
        let is_idempotent = !matches!(request.method, Code::POST | Code::PATCH);
        let may = is_datagram && self.left().len() > 1 && error.lets_another_address_try(is_idempotent);
        self.failed += usize::from(may);
        may
    }

    /// A server that refuses for a while is spared further handshakes.
    pub(super) fn heed(&self, request: &RequestBuilder, answer: &Response) {
        if let (Some(told), Some(peer)) = (refusal(answer), self.left().first()) {
            request.client.settings.attempts.refused(Instant::now(), *peer, told, chance());
        }
    }

    /// An address that did better than others is asked first from now on.
    pub(super) fn served<T>(&self, request: &RequestBuilder, outcome: Result<T, Error>) -> Result<T, Error> {
        if outcome.is_ok()
            && self.failed > 0
            && let (Ok(uri), Some(address)) = (&request.uri, self.left().first())
            && let Host::Name(name) = uri.host()
        {
            request.client.names.prefer(name, *address);
        }
        outcome
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;
    use crate::{Client, ControllerChoice, Resource, Server};

    #[cfg(feature = "tcp")]
    #[tokio::test(start_paused = true)]
    async fn a_hold_off_is_waited_for_as_long_as_the_deadline_allows() {
        let peer = at(1, 5683);
        let unsent = |hold_off| Error::connection_lost(peer, crate::Why::said_by(Unsent { hold_off }));
        let peers = |deadline: u64| Peers {
            all: vec![peer],
            failed: 0,
            line: None,
            until: until((deadline > 0).then(|| Duration::from_secs(deadline))),
            asked: None,
        };
        for (deadline, hold_off, goes_on) in [
            (0, Duration::ZERO, true),
            (0, Duration::from_secs(30), false),
            (30, Duration::from_secs(30), false),
            (31, Duration::from_secs(30), true),
            (31, Duration::MAX, false),
        ] {
            let began = Instant::now();
            assert_eq!(peers(deadline).move_on(&unsent(hold_off)).await, goes_on, "{deadline} {hold_off:?}");
            assert_eq!(began.elapsed(), if goes_on { hold_off } else { Duration::ZERO });
        }
        assert!(!peers(0).move_on(&Error::connection_lost(peer, "it was sent")).await);
    }

    fn at(last: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], port))
    }

    /// Over datagrams nobody says at once that a way leads nowhere: the addresses of a name are asked one after the other.
    #[tokio::test]
    async fn the_next_address_of_a_name_is_asked_where_one_cannot_be_reached_or_is_silent() {
        let hello = || async { "hello" };
        let resource = Resource::new().get(hello).post(hello);
        let server = Server::builder().bind(at(1, 0)).route("/", resource).start().await.unwrap();
        let port = server.local_addr().port();
        // It hears everything, and says nothing.
        let silent = tokio::net::UdpSocket::bind(at(3, port)).await.unwrap();
        let controller = || "rfc7252".parse::<ControllerChoice>().unwrap();
        let client = || async move {
            let patient = Duration::from_secs(1);
            Client::builder()
                .controller(controller().with_ack_timeout(patient).unwrap())
                .max_retransmit(0)
                .build()
                .await
                .unwrap()
        };
        let uri = format!("coap://device.example:{port}/");
        let (closed, silent_one, open) = (at(2, port), silent.local_addr().unwrap(), at(1, port));
        // Elsewhere the kernel does not report that nobody listens, and a closed port is a silent one.
        let may_post = cfg!(target_os = "linux");
        for (first, is_post, is_answered) in [
            (closed, false, true),
            (silent_one, false, true),
            (closed, true, may_post),
            // It may have arrived there and been carried out.
            (silent_one, true, false),
        ] {
            let client = client().await;
            client.names.know("device.example", &[first, open]);
            let method = if is_post { Code::POST } else { Code::GET };
            let asked = client.request(method, &uri).await;
            match is_answered {
                true => assert_eq!(asked.unwrap().exchange().unwrap().peer, open, "{first} {method}"),
                false => assert!(asked.unwrap_err().is_timeout(), "{first} {method}"),
            }
            if is_answered {
                let start = tokio::time::Instant::now();
                assert_eq!(client.get(&uri).await.unwrap().exchange().unwrap().peer, open);
                assert!(start.elapsed() < Duration::from_secs(1), "it comes first from now on");
            }
        }
    }
}

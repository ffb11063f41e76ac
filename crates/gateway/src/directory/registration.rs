//! One registration, and whose it is.

use std::{
    borrow::Cow,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use millpond_live::{Link, PeerIdentity, Request, Transport, links, quota::Source};

use super::{
    Refusal,
    parameters::{has_scheme, host_of, origin_of},
};

/// Who registers: what of a request says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registrant {
    /// What carried the request.
    pub transport: Transport,
    /// From where.
    pub peer: SocketAddr,
    /// Who has sent it, if that was proved.
    pub identity: Option<PeerIdentity>,
}

impl From<&Request> for Registrant {
    fn from(request: &Request) -> Self {
        Self { transport: request.transport(), peer: request.peer(), identity: request.identity().cloned() }
    }
}

impl Registrant {
    /// Whether this one may change what that one has registered. See the [module](super).
    fn may_change_what_is_of(&self, other: &Self) -> bool {
        match &other.identity {
            Some(identity) => self.identity.as_ref() == Some(identity),
            None => is_same_host(self.peer, other.peer),
        }
    }

    /// Whose answers and states are kept: of this identity, or of who is at this address.
    pub(crate) fn owner(&self) -> String {
        match &self.identity {
            Some(identity @ PeerIdentity::Certificate(_)) => format!("{:?}", identity.names()),
            Some(identity) => format!("{identity:?}"),
            None => self.peer.ip().to_string(),
        }
    }

    /// For whom memory is held. All have proved their addresses; here it counts who has proved an identity.
    pub(super) fn source(&self) -> Source {
        Source { is_validated: self.identity.is_some(), network: millpond_live::network_of(self.peer) }
    }

    /// Where it is asked: its [base](super::Endpoint::base), with the zone of an address on a link.
    #[must_use]
    pub fn uri(&self) -> String {
        let base = self.base();
        match zone(self.peer) {
            0 => base,
            zone => base.replacen(']', &format!("%{zone}]"), 1),
        }
    }

    /// The base that it has if it names none (RFC 9176 §5): a literal without zone, and the port unless it is the usual one.
    pub(super) fn base(&self) -> String {
        let Self { transport, peer, .. } = self;
        let port = if peer.port() == transport.default_port() { String::new() } else { format!(":{}", peer.port()) };
        match peer.ip().to_canonical() {
            IpAddr::V4(ip) => format!("{transport}://{ip}{port}"),
            IpAddr::V6(ip) => format!("{transport}://[{ip}]{port}"),
        }
    }
}

/// The same address, whatever the port: NATs and programs that are started again choose another. Of IPv6 the same network of 64
/// bits, in which hosts change theirs (RFC 8981), and the same link.
fn is_same_host(one: SocketAddr, other: SocketAddr) -> bool {
    match (one.ip().to_canonical(), other.ip().to_canonical()) {
        (IpAddr::V4(one), IpAddr::V4(other)) => one == other,
        (IpAddr::V6(this), IpAddr::V6(that)) => this.octets()[..8] == that.octets()[..8] && zone(one) == zone(other),
        _ => false,
    }
}

const fn zone(peer: SocketAddr) -> u32 {
    match peer {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(v6) => v6.scope_id(),
    }
}

/// The link that a peer is on, as far as its address says: that of an interface, or of all of them for IPv4, which has no zones.
pub(super) fn link_of(peer: SocketAddr) -> Option<u32> {
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local().then_some(0),
        IpAddr::V6(ip) => (ip.is_unicast_link_local() && zone(peer) > 0).then(|| zone(peer)),
    }
}

/// What is registered of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registration {
    pub(super) name: Box<str>,
    pub(super) sector: Option<Box<str>>,
    /// Seconds.
    pub(super) lifetime: u32,
    /// The base that was named.
    pub(super) base: Option<Box<str>>,
    pub(super) attributes: Vec<(Box<str>, Option<Box<str>>)>,
    /// Its links in Limited Link Format, which [`checked`] has seen.
    pub(super) links: Box<str>,
    pub(super) registrant: Registrant,
    /// When it ends, since 1970.
    pub(super) expires: Duration,
    /// Until when its links need not be fetched again, if they were (RFC 9176 §5.1).
    pub(super) fresh_until: Option<Duration>,
}

/// Bytes that a registration takes besides its texts: itself, its places by number, by name and by time, in trees whose nodes are
/// half full. A hundred thousand registrations of some 400 bytes of text were measured to take 1,160 bytes each.
const OVERHEAD: usize = 2 * size_of::<Registration>() + 256;

/// The same of an attribute.
const OVERHEAD_OF_ATTRIBUTE: usize = size_of::<(Box<str>, Option<Box<str>>)>() + 32;

impl Registration {
    /// Under what its name is found. No name has a control character.
    pub(super) fn key(&self) -> String {
        key(self.sector.as_deref(), &self.name)
    }

    /// Bytes held for it, about.
    pub(super) fn weight(&self) -> usize {
        let length = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|(name, value)| name.len() + length(value) + OVERHEAD_OF_ATTRIBUTE);
        let identity = match &self.registrant.identity {
            Some(PeerIdentity::PreSharedKey(identity) | PeerIdentity::Oscore(identity)) => identity.len(),
            Some(PeerIdentity::Certificate(chain)) => chain.iter().map(|certificate| certificate.len() + 64).sum(),
            _ => 0,
        };
        // The name stands in the registration and in the key.
        let names = 2 * (self.name.len() + length(&self.sector)) + length(&self.base);
        OVERHEAD + names + attributes.sum::<usize>() + self.links.len() + identity
    }

    /// What its references are resolved against.
    pub(super) fn base(&self) -> Cow<'_, str> {
        match &self.base {
            Some(base) => Cow::Borrowed(base),
            None => Cow::Owned(self.registrant.base()),
        }
    }

    /// Whether it may be changed by that one.
    pub(super) fn check_right(&self, by: &Registrant) -> Result<(), Refusal> {
        if by.may_change_what_is_of(&self.registrant) {
            return Ok(());
        }
        Err(Refusal::Foreign(match self.registrant.identity {
            Some(_) => "its identity",
            None => "to be at another address",
        }))
    }

    /// Look-ups say the same of both.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        let told = |it: &Self| (it.base().into_owned(), link_of(it.registrant.peer).filter(|_| it.is_on_a_link()));
        (&self.name, &self.sector, &self.attributes, &self.links)
            == (&other.name, &other.sector, &other.attributes, &other.links)
            && told(self) == told(other)
    }

    /// Its base means something on one link alone.
    pub(super) fn is_on_a_link(&self) -> bool {
        let Some(base) = &self.base else {
            return match self.registrant.peer.ip().to_canonical() {
                IpAddr::V4(ip) => ip.is_link_local(),
                IpAddr::V6(ip) => ip.is_unicast_link_local(),
            };
        };
        let host = host_of(origin_of(base).unwrap_or_default());
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match literal {
            Some(literal) => literal.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_unicast_link_local()),
            None => host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_link_local()),
        }
    }

    /// Whether it is told to who asks from this link: what is on a link to nobody elsewhere (RFC 9176 §6.1 and §6.4).
    pub(super) fn is_told_on(&self, link: Option<u32>) -> bool {
        !self.is_on_a_link() || link.is_some() && link == link_of(self.registrant.peer)
    }
}

pub(super) fn key(sector: Option<&str>, name: &str) -> String {
    format!("{}\0{name}", sector.unwrap_or_default())
}

/// The links of a registration without white space between them, if all are in Limited Link Format (RFC 9176 appendix C): that is a
/// URI, or begins with one slash.
pub(super) fn checked(text: &str) -> Result<Box<str>, Refusal> {
    let mut whole = String::with_capacity(text.len());
    for (place, piece) in links(text).enumerate() {
        let wrong = |why: String| Refusal::malformed(format!("link {}: {why}", place + 1));
        let link = Link::parse(piece).map_err(|error| wrong(error.to_string()))?;
        let check = |reference: &str| {
            let is_path = reference.starts_with('/') && !reference.starts_with("//");
            let why = "is neither a URI nor begins with one slash (RFC 9176, Limited Link Format)";
            let shown = || reference.chars().take(40).collect::<String>();
            (is_path || has_scheme(reference)).then_some(()).ok_or_else(|| wrong(format!("{:?} {why}", shown())))
        };
        check(link.target())?;
        whole.push_str(if whole.is_empty() { "<" } else { ",<" });
        whole.push_str(link.target());
        whole.push('>');
        for attribute in link.attributes() {
            if attribute.name == "anchor" {
                check(attribute.value.as_deref().unwrap_or_default())?;
            }
            whole.push(';');
            whole.push_str(attribute.name);
            if let Some((_, value)) = attribute.written.split_once('=') {
                whole.push('=');
                whole.push_str(value.trim_start());
            }
        }
    }
    Ok(whole.into_boxed_str())
}

/// A reference that [`checked`] has seen as a URI.
pub(super) fn resolved<'r>(reference: &'r str, base: &str) -> Cow<'r, str> {
    if reference.starts_with('/') {
        Cow::Owned(format!("{}{reference}", origin_of(base).unwrap_or_default()))
    } else {
        Cow::Borrowed(reference)
    }
}

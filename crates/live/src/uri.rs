//! URIs of CoAP, taken apart and put together as RFC 7252 §6.4 and §6.5 have it, and over TCP as RFC 8323 §8 has it.
//!
//! Reading is strict (RFC 3986). Beyond it, an IPv6 literal may carry a zone: `coap://[fe80::1%eth0]/`, as RFC 9844 lets
//! a person type it; `%25` before the zone, as RFC 6874 wrote it, is taken too.

mod authority;
mod reading;

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use millpond_coap::message::number;

use crate::udp::is_group;

pub use authority::Authority;

/// Where CoAP without security listens unless the URI says otherwise, over UDP and over TCP (RFC 7252 §6.1, RFC 8323
/// §8.1).
pub const DEFAULT_PORT: u16 = 5683;

/// Where CoAP with security listens unless the URI says otherwise, over DTLS and over TLS (RFC 7252 §6.2, RFC 8323
/// §8.2).
pub const DEFAULT_SECURE_PORT: u16 = 5684;

/// What may stand unencoded beside letters and digits (RFC 3986 §2.3 and §2.2, without what separates parts).
const IN_HOST: &[u8] = b"-._~!$&'()*+,;=";
const IN_PATH: &[u8] = b"-._~!$&'()*+,;=:@";
const IN_QUERY: &[u8] = b"-._~!$'()*+,;=:@/?";

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// `coap`: datagrams of UDP.
    Udp,
    /// `coap+tcp`: frames over TCP.
    Tcp,
    /// `coaps`: datagrams of UDP under DTLS.
    Dtls,
    /// `coaps+tcp`: frames over TCP under TLS.
    Tls,
}

impl Transport {
    /// The port unless another is given.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        if self.is_secure() { DEFAULT_SECURE_PORT } else { DEFAULT_PORT }
    }

    /// Nobody on the path can read or change what it carries.
    #[must_use]
    pub const fn is_secure(self) -> bool {
        matches!(self, Self::Dtls | Self::Tls)
    }

    /// Messages are datagrams, which can be lost, come twice and overtake each other.
    #[must_use]
    pub const fn is_datagram(self) -> bool {
        matches!(self, Self::Udp | Self::Dtls)
    }
}

/// Whom a URI names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name to be resolved, in small letters.
    Name(String),
    /// An address.
    V4(Ipv4Addr),
    /// An address, and the zone that it is in, if one was given.
    V6(Ipv6Addr, Option<String>),
}

/// A URI in the parts that CoAP sends.
///
/// ```
/// use millpond_live::Uri;
///
/// let uri: Uri = "coap://[2001:db8::1]/sensors/caf%C3%A9?unit=C".parse()?;
/// assert_eq!((uri.port(), uri.path(), uri.query()), (5683, &["sensors".into(), "café".into()][..], &["unit=C".into()][..]));
/// # Ok::<(), millpond_live::UriError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Uri {
    transport: Transport,
    host: Host,
    port: u16,
    path: Vec<String>,
    query: Vec<String>,
}

/// Why a text is no URI that can be asked: one line that says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriError {
    /// Another scheme.
    #[error("URI {uri:?}: unknown scheme {scheme:?}: known: coap, coap+tcp, coaps, coaps+tcp")]
    Scheme {
        /// What was given.
        uri: String,
        /// Its scheme.
        scheme: String,
    },
    /// Anything else.
    #[error("URI {uri:?}: {why}")]
    Malformed {
        /// What was given.
        uri: String,
        /// What is wrong with it, and the fix.
        why: String,
    },
}

impl Uri {
    /// What carries the messages.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Whom it names.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The port, that of the scheme if none was given.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether its host is the address of a group; of a name that is not known before it is resolved.
    #[must_use]
    pub fn is_group(&self) -> bool {
        match &self.host {
            Host::Name(_) => false,
            Host::V4(ip) => is_group((*ip).into()),
            Host::V6(ip, _) => is_group((*ip).into()),
        }
    }

    /// The path's segments, decoded; none for `/`.
    #[must_use]
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// What stands between the ampersands of the query, decoded.
    #[must_use]
    pub fn query(&self) -> &[String] {
        &self.query
    }

    /// The URI that a reference means beside this one (RFC 3986 §5.2): a path from here (`level`, `../level`) or from the root (`/level`),
    /// a query (`?unit=C`), another host (`//[::1]/level`), or a whole URI.
    ///
    /// ```
    /// use millpond_live::Uri;
    ///
    /// let base: Uri = "coap://device.example/v1/now?unit=C".parse()?;
    /// assert_eq!(base.join("level")?.to_string(), "coap://device.example/v1/level");
    /// assert_eq!(base.join("?unit=K")?.to_string(), "coap://device.example/v1/now?unit=K");
    /// # Ok::<(), millpond_live::UriError>(())
    /// ```
    ///
    /// # Errors
    /// It means none that can be asked for.
    pub fn join(&self, reference: &str) -> Result<Self, UriError> {
        let text = self.to_string();
        let without_query = text.split_once('?').map_or(&*text, |(before, _)| before);
        let before_path = text.len() - text.splitn(4, '/').last().map_or(0, |path| path.len() + 1);
        let cut = |end: usize| without_query.get(..end).unwrap_or(without_query);
        match reference.split(['/', '?', '#']).next().unwrap_or_default() {
            scheme if scheme.contains(':') => reference.parse(),
            _ if reference.is_empty() => Ok(self.clone()),
            _ if reference.starts_with("//") => format!("{}:{reference}", self.transport).parse(),
            _ if reference.starts_with('/') => format!("{}{reference}", cut(before_path)).parse(),
            "" => format!("{without_query}{reference}").parse(),
            _ => format!("{}/{reference}", cut(without_query.rfind('/').unwrap_or(before_path))).parse(),
        }
    }

    /// The options that a request for this URI carries, in ascending order of their numbers: Uri-Host if a name was
    /// given, Uri-Path and Uri-Query (RFC 7252 §6.4). Uri-Port is never needed: the request goes to that very port.
    #[must_use]
    pub fn uri_options(&self) -> Vec<(u16, Vec<u8>)> {
        let mut options = Vec::new();
        if let Host::Name(name) = &self.host {
            options.push((number::URI_HOST, name.clone().into_bytes()));
        }
        options.extend(self.path.iter().map(|segment| (number::URI_PATH, segment.clone().into_bytes())));
        options.extend(self.query.iter().map(|part| (number::URI_QUERY, part.clone().into_bytes())));
        options
    }
}

/// A part of a URI with percent encoding (RFC 3986 §2.1) of all but letters, digits and what is named.
///
/// ```
/// assert_eq!(millpond_live::percent_encoded("a b.json", b"-._~"), "a%20b.json");
/// ```
#[must_use]
pub fn percent_encoded(part: &str, unencoded: &[u8]) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || unencoded.contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The scheme.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "coap",
            Self::Tcp => "coap+tcp",
            Self::Dtls => "coaps",
            Self::Tls => "coaps+tcp",
        })
    }
}

/// As it stands in a URI: IPv6 literals in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(&percent_encoded(name, IN_HOST)),
            Self::V4(address) => address.fmt(f),
            Self::V6(address, None) => write!(f, "[{address}]"),
            // What begins with 25 would be read as RFC 6874 writes the one behind it.
            Self::V6(address, Some(zone)) if zone.starts_with("25") => write!(f, "[{address}%25{zone}]"),
            Self::V6(address, Some(zone)) => write!(f, "[{address}%{zone}]"),
        }
    }
}

/// Put together again (RFC 7252 §6.5); the port only if it is not the usual one.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.transport, self.host)?;
        if self.port != self.transport.default_port() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(if self.path.is_empty() { "/" } else { "" })?;
        for segment in &self.path {
            write!(f, "/{}", percent_encoded(segment, IN_PATH))?;
        }
        for (position, part) in self.query.iter().enumerate() {
            write!(f, "{}{}", if position == 0 { '?' } else { '&' }, percent_encoded(part, IN_QUERY))?;
        }
        Ok(())
    }
}

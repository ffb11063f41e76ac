//! Whom a URI asks, without how.

use std::fmt;
use std::str::FromStr;

use super::{Host, Uri, UriError};

/// A server, whatever carries the messages: a host, at the port that each transport has, or at this one.
///
/// ```
/// use millpond_live::Authority;
///
/// let meter: Authority = "meter-7.example".parse()?;
/// assert!(meter.is_of(&"coaps+tcp://METER-7.example/now".parse()?));
/// assert!(!meter.is_of(&"coap://meter-7.example:61616/now".parse()?));
/// # Ok::<(), millpond_live::UriError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    host: Host,
    port: Option<u16>,
}

impl Authority {
    /// Whom a URI asks; its port only if it is not the usual one.
    #[must_use]
    pub fn of(uri: &Uri) -> Self {
        let port = Some(uri.port()).filter(|port| *port != uri.transport().default_port());
        Self { host: uri.host().clone(), port }
    }

    /// The host.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The port, if it is one for all transports.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether this URI asks it.
    #[must_use]
    pub fn is_of(&self, uri: &Uri) -> bool {
        self.host == *uri.host() && self.port.unwrap_or(uri.transport().default_port()) == uri.port()
    }
}

impl FromStr for Authority {
    type Err = UriError;

    /// HOST or HOST:PORT, as in a URI.
    fn from_str(text: &str) -> Result<Self, UriError> {
        let malformed = |why: &str| UriError::Malformed { uri: text.to_owned(), why: why.to_owned() };
        if text.contains("://") {
            return Err(malformed("give HOST or HOST:PORT without a scheme: it is for every transport"));
        }
        if text.contains(['/', '?', '#']) {
            return Err(malformed("give HOST or HOST:PORT without a path: it is for the whole server"));
        }
        let read = |scheme: &str| {
            format!("{scheme}://{text}").parse::<Uri>().map_err(|error| match error {
                UriError::Malformed { why, .. } => UriError::Malformed { uri: text.to_owned(), why },
                other => other,
            })
        };
        let (one, other) = (read("coap")?, read("coaps")?);
        if one.is_group() {
            return Err(malformed("it is the address of a group; give that of one server"));
        }
        // The port differs if it is the scheme's own.
        Ok(Self { port: Some(one.port()).filter(|port| *port == other.port()), host: one.host })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_host_and_perhaps_a_port_on_every_transport() {
        for (written, asked, is) in [
            ("meter-7.example", "coap://meter-7.example/x", true),
            ("METER-7.example", "coaps+tcp://meter-7.example", true),
            ("meter-7.example", "coap://meter-7.example:5684", false),
            ("meter-7.example:5683", "coap://meter-7.example", true),
            ("meter-7.example:5683", "coaps://meter-7.example", false),
            ("meter-7.example:61616", "coap+tcp://meter-7.example:61616", true),
            ("meter-7.example", "coap://meter-7.example.org", false),
            ("[2001:db8::1]", "coap://[2001:db8:0::1]", true),
            ("[fe80::1%eth0]", "coap://[fe80::1%eth1]", false),
            ("[::ffff:192.0.2.1]:7", "coap://192.0.2.1:7", true),
        ] {
            let (server, asked): (Authority, Uri) = (written.parse().unwrap(), asked.parse().unwrap());
            assert_eq!(server.is_of(&asked), is, "{written} {asked}");
            assert!(Authority::of(&asked).is_of(&asked), "{asked}");
            assert_eq!(server.to_string().parse(), Ok(server));
        }
    }

    #[test]
    fn what_is_none_is_told_in_one_line() {
        for (written, why) in [
            ("coap://meter-7.example", "give HOST or HOST:PORT without a scheme: it is for every transport"),
            ("meter-7.example/", "give HOST or HOST:PORT without a path: it is for the whole server"),
            ("", "the host is missing"),
            (":5683", "the host is missing"),
            ("meter-7.example:0", "port 0 is not between 1 and 65535"),
            ("meter-7.example:65536", "port 65536 is not between 1 and 65535"),
            ("2001:db8::1", "2001:db8::1 is no host; an IPv6 address stands in brackets: [2001:db8::1]"),
            ("me@meter-7.example", "CoAP has no user names; leave out what stands before @"),
            ("224.0.1.187", "it is the address of a group; give that of one server"),
        ] {
            let told = UriError::Malformed { uri: written.to_owned(), why: why.to_owned() };
            assert_eq!(written.parse::<Authority>(), Err(told), "{written}");
        }
        for hostile in ["a\nb", "a\"b", "a\\b", "%00", "%zz", "[::1", "\u{202e}x", &"a".repeat(70_000)] {
            match hostile.parse::<Authority>() {
                Ok(server) => assert!(server.to_string().bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')),
                Err(told) => assert_eq!(told.to_string().lines().count(), 1, "{told}"),
            }
        }
    }
}

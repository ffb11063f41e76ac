//! Which of several contexts a client takes: that of the server that is asked, or else one that names none.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use millpond_live::{Host, Uri, UriError};

use super::Looked;
use crate::failure::Failure;

/// Files that are told, where none is for who is asked.
const TOLD: usize = 3;

/// Whom a client asks: a host, at any transport's own port or at this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    host: Host,
    port: Option<u16>,
}

impl Server {
    /// Whom a URI asks.
    fn of(uri: &Uri) -> Self {
        let port = Some(uri.port()).filter(|port| *port != uri.transport().default_port());
        Self { host: uri.host().clone(), port }
    }

    /// Whether it is who this URI asks.
    fn is(&self, uri: &Uri) -> bool {
        self.host == *uri.host() && self.port.unwrap_or(uri.transport().default_port()) == uri.port()
    }
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Err("give HOST or HOST:PORT without a scheme: a context is for every transport".to_owned());
        }
        if text.contains(['/', '?', '#']) {
            return Err("give HOST or HOST:PORT without a path: a context is for the whole server".to_owned());
        }
        let read = |scheme: &str| {
            format!("{scheme}://{text}").parse::<Uri>().map_err(|error| match error {
                UriError::Malformed { why, .. } => why,
                other => other.to_string(),
            })
        };
        let (one, other) = (read("coap")?, read("coaps")?);
        if one.is_group() {
            return Err(format!("{} is a group: groups have no context (Group OSCORE is not supported)", one.host()));
        }
        // The port differs if it is the scheme's own.
        Ok(Self { host: one.host().clone(), port: Some(one.port()).filter(|port| *port == other.port()) })
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The context for who this URI asks: that which names its port, else that which names its host alone, else that which names nobody.
///
/// # Errors
/// Two are for one server, or none is for this one.
pub(super) fn choose(mut among: Vec<Looked>, uri: &Uri) -> Result<Looked, Failure> {
    for (number, one) in among.iter().enumerate() {
        let same = among.iter().take(number).find(|earlier| earlier.server() == one.server());
        if let Some(earlier) = same {
            let (place, other) = (one.place(), earlier.place());
            return Err(Failure::Usage(match one.server() {
                Some(server) => format!("{place}: for {server}, as {other} is; leave one of the two out"),
                None => {
                    format!("{place}: for any server, as {other} is; name one's (`server = \"HOST\"`), or leave it out")
                }
            }));
        }
    }
    let rank = |one: &Looked| match one.server() {
        None => Some(0),
        Some(server) if server.is(uri) => Some(1 + u8::from(server.port.is_some())),
        Some(_) => None,
    };
    let fitting = among.iter().enumerate().filter_map(|(place, one)| Some((rank(one)?, place)));
    match fitting.max() {
        Some((_, place)) => Ok(among.swap_remove(place)),
        None => Err(Failure::Usage(none_fits(&among, uri))),
    }
}

fn none_fits(among: &[Looked], uri: &Uri) -> String {
    let asked = Server::of(uri);
    let mut told = format!("no context for {asked}: ");
    for (number, one) in among.iter().take(TOLD).enumerate() {
        let between = if number == 0 { "" } else { ", " };
        if let Some(server) = one.server() {
            // A string takes whatever is written.
            let _ = write!(told, "{between}{} is for {server}", one.place());
        }
    }
    if among.len() > TOLD {
        let _ = write!(told, ", and {} more are for others", among.len() - TOLD);
    }
    told + &format!("; give --oscore a file with `server = \"{asked}\"`, or without `server`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_perhaps_a_port_on_every_transport() {
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
            let server: Server = written.parse().unwrap();
            assert_eq!(server.is(&asked.parse().unwrap()), is, "{written} {asked}");
            assert_eq!(server.to_string().parse(), Ok(server));
        }
    }

    #[test]
    fn what_is_no_server_is_told_in_one_line() {
        for (written, told) in [
            ("coap://meter-7.example", "give HOST or HOST:PORT without a scheme: a context is for every transport"),
            ("meter-7.example/", "give HOST or HOST:PORT without a path: a context is for the whole server"),
            ("", "the host is missing"),
            (":5683", "the host is missing"),
            ("meter-7.example:0", "port 0 is not between 1 and 65535"),
            ("meter-7.example:65536", "port 65536 is not between 1 and 65535"),
            ("2001:db8::1", "2001:db8::1 is no host; an IPv6 address stands in brackets: [2001:db8::1]"),
            ("me@meter-7.example", "CoAP has no user names; leave out what stands before @"),
            ("224.0.1.187", "224.0.1.187 is a group: groups have no context (Group OSCORE is not supported)"),
        ] {
            assert_eq!(written.parse::<Server>(), Err(told.to_owned()), "{written}");
        }
        for hostile in ["a\nb", "a\"b", "a\\b", "%00", "%zz", "[::1", "\u{202e}x", &"a".repeat(70_000)] {
            match hostile.parse::<Server>() {
                // It is written so that TOML reads it again.
                Ok(server) => assert!(server.to_string().bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')),
                Err(told) => assert!(told.lines().count() == 1 && told.len() < 100_000, "{told}"),
            }
        }
    }
}

//! Network interfaces, as people name them.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr, ToSocketAddrs},
};

/// A network interface: by its name, by its number, or for IPv4 by an address that it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interface {
    /// As the system names it: `eth0`.
    Name(String),
    /// As the system numbers it, from 1 on.
    Index(u32),
    /// An address of it; of no use for IPv6.
    Address(Ipv4Addr),
}

/// Digits are a number, four of them with dots between an address, everything else is a name.
impl From<&str> for Interface {
    fn from(text: &str) -> Self {
        match (text.parse(), text.parse()) {
            (Ok(index), _) => Self::Index(index),
            (_, Ok(address)) => Self::Address(address),
            _ => Self::Name(text.to_owned()),
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Index(index) => index.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl Interface {
    /// Its number, if it is not given by an address.
    pub(super) fn index(&self) -> io::Result<Option<u32>> {
        match self {
            Self::Index(index) => Ok(Some(*index)),
            Self::Address(_) => Ok(None),
            // The system's resolver knows interfaces as the zones of addresses (RFC 4007 §11).
            Self::Name(name) => {
                let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {name}"));
                let mut found = (format!("fe80::1%{name}"), 0).to_socket_addrs().map_err(|_| unknown())?;
                match found.next() {
                    Some(SocketAddr::V6(address)) if address.scope_id() != 0 => Ok(Some(address.scope_id())),
                    _ => Err(unknown()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_names_numbers_or_addresses() {
        for (text, interface) in [
            ("eth0", Interface::Name("eth0".into())),
            ("3", Interface::Index(3)),
            ("192.0.2.1", Interface::Address(Ipv4Addr::new(192, 0, 2, 1))),
        ] {
            assert_eq!(Interface::from(text), interface);
            assert_eq!(interface.to_string(), text);
        }
    }

    #[test]
    fn a_name_that_no_interface_has_is_told() {
        let error = Interface::from("no-such-if").index().unwrap_err();
        assert_eq!(error.to_string(), "there is no interface no-such-if");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_loopback_has_a_number() {
        assert_eq!(Interface::from("lo").index().unwrap(), Some(1));
    }
}

//! Which peers share a path.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use millpond_coap::Endpoint;

use crate::{Error, udp::Address};

/// Which peers share a path, and with it a congestion controller, NSTART and the queue in front of them, in which they take
/// turns: those behind one gateway, say, or in one cell, whose answers all come through one narrow link.
///
/// It is for UDP and DTLS: over TCP and TLS the congestion control is the operating system's.
#[derive(Clone)]
pub struct PathKey {
    /// By what their sessions have proved.
    by_identity: bool,
    /// Else by their addresses.
    by_address: Option<ByAddress>,
}

#[derive(Clone)]
enum ByAddress {
    Prefix { ipv4: u8, ipv6: u8 },
    Of(Arc<dyn Fn(SocketAddr) -> u64 + Send + Sync>),
}

impl PathKey {
    /// Those whose addresses begin with the same bits: so many of IPv4, up to 32, and so many of IPv6, up to 64.
    #[must_use]
    pub const fn prefix(ipv4: u8, ipv6: u8) -> Self {
        Self { by_identity: false, by_address: Some(ByAddress::Prefix { ipv4, ipv6 }) }
    }

    /// Those for which this gives the same. It is asked once for each peer, from the task that owns the socket.
    #[must_use]
    pub fn by(path: impl Fn(SocketAddr) -> u64 + Send + Sync + 'static) -> Self {
        Self { by_identity: false, by_address: Some(ByAddress::Of(Arc::new(path))) }
    }

    /// Those that have proved the same [identity](crate::PeerIdentity) in sessions of DTLS, at whichever addresses they are: a
    /// device that comes from another one, a gateway with several sockets. It counts as long as the session stands.
    ///
    /// A certificate is the same if all its bytes are, so that one that was renewed is another. A pre-shared key says who a
    /// client is; a peer that serves with it has shown no identity. A peer that has none has a path of its own, or the one that
    /// another key [gives](Self::or) it.
    #[must_use]
    pub const fn identity() -> Self {
        Self { by_identity: true, by_address: None }
    }

    /// The same, and by the other key those of whom this one says nothing.
    ///
    /// ```
    /// use millpond_live::PathKey;
    ///
    /// let key = PathKey::identity().or(PathKey::prefix(24, 64));
    /// ```
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self.by_address.is_some() { self } else { Self { by_address: other.by_address, ..self } }
    }

    /// # Errors
    /// More bits than are looked at.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.by_address {
            Some(ByAddress::Prefix { ipv4: 33.., .. }) => Err(Error::Setting {
                name: "share_paths",
                reason: "is by more than 32 bits of IPv4; use 0 to 32".into(),
            }),
            Some(ByAddress::Prefix { ipv6: 65.., .. }) => Err(Error::Setting {
                name: "share_paths",
                reason: "is by more than 64 bits of IPv6; use 0 to 64".into(),
            }),
            _ => Ok(()),
        }
    }

    /// An endpoint in which peers share paths as this says of their addresses.
    pub(crate) fn sharing_paths(&self, endpoint: Endpoint<Address>) -> Endpoint<Address> {
        match self.by_address.clone() {
            Some(key) => endpoint.sharing_paths(move |peer| key.of(*peer)),
            None => endpoint,
        }
    }

    /// Whether the sockets are to tell their endpoints of identities.
    pub(crate) const fn is_by_identity(&self) -> bool {
        self.by_identity
    }
}

impl ByAddress {
    /// The path of a peer.
    fn of(&self, peer: Address) -> u64 {
        match self {
            Self::Prefix { ipv4, ipv6 } => prefix(peer.peer().ip(), *ipv4, *ipv6),
            Self::Of(path) => path(peer.peer()),
        }
    }
}

/// The first bits of an address. No IPv6 address that is in use begins like an IPv4 one here, with 31 bits of zero.
fn prefix(address: IpAddr, ipv4: u8, ipv6: u8) -> u64 {
    match address {
        IpAddr::V4(v4) => 1 << 32 | u64::from(u32::from(v4).checked_shr(32 - u32::from(ipv4)).unwrap_or(0)),
        IpAddr::V6(v6) => {
            let high = (u128::from(v6) >> 64) as u64;
            high & u64::MAX.checked_shl(64 - u32::from(ipv6)).unwrap_or(0)
        }
    }
}

impl fmt::Debug for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_identity = if self.by_identity { "PathKey::identity()" } else { "" };
        match (&self.by_address, self.by_identity) {
            (None, _) => f.write_str(by_identity),
            (Some(key), true) => write!(f, "{by_identity}.or({key:?})"),
            (Some(key), false) => write!(f, "{key:?}"),
        }
    }
}

impl fmt::Debug for ByAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix { ipv4, ipv6 } => write!(f, "PathKey::prefix({ipv4}, {ipv6})"),
            Self::Of(_) => f.write_str("PathKey::by(..)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_whose_addresses_begin_alike_share_a_path() {
        let of = |key: &PathKey, peer: &str| {
            key.by_address.as_ref().map(|key| key.of(Address::of(peer.parse().unwrap()))).unwrap()
        };
        let key = PathKey::prefix(24, 48);
        assert_eq!(of(&key, "192.0.2.1:5683"), of(&key, "192.0.2.255:1"));
        assert_eq!(of(&key, "192.0.2.1:5683"), of(&key, "[::ffff:192.0.2.9]:1"), "as IPv4");
        assert_ne!(of(&key, "192.0.2.1:5683"), of(&key, "192.0.3.1:5683"));
        assert_eq!(of(&key, "[2001:db8:1:2::1]:1"), of(&key, "[2001:db8:1:ffff::2]:2"));
        assert_ne!(of(&key, "[2001:db8:1::1]:1"), of(&key, "[2001:db8:2::1]:1"));
        let (all, each) = (PathKey::prefix(0, 0), PathKey::prefix(32, 64));
        assert_eq!(of(&all, "192.0.2.1:1"), of(&all, "198.51.100.1:1"));
        assert_eq!(of(&all, "[2001:db8::1]:1"), of(&all, "[fe80::1]:1"));
        assert_ne!(of(&all, "192.0.2.1:1"), of(&all, "[2001:db8::1]:1"));
        assert_ne!(of(&each, "192.0.2.1:1"), of(&each, "192.0.2.2:1"));
        assert_ne!(of(&each, "[2001:db8:0:1::1]:1"), of(&each, "[2001:db8:0:2::1]:1"));
    }

    #[test]
    fn another_key_is_for_those_of_whom_one_says_nothing() {
        let (identity, prefix) = (PathKey::identity, PathKey::prefix);
        for (key, text) in [
            (identity(), "PathKey::identity()"),
            (identity().or(identity()), "PathKey::identity()"),
            (identity().or(prefix(24, 64)), "PathKey::identity().or(PathKey::prefix(24, 64))"),
            (identity().or(PathKey::by(|_| 1)).or(prefix(8, 8)), "PathKey::identity().or(PathKey::by(..))"),
            (prefix(24, 64).or(identity()), "PathKey::prefix(24, 64)"),
        ] {
            assert_eq!(format!("{key:?}"), text);
        }
        assert!(identity().or(prefix(33, 0)).check().is_err());
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        assert!(PathKey::prefix(32, 64).check().is_ok());
        for key in [PathKey::prefix(33, 0), PathKey::prefix(0, 65)] {
            assert!(key.check().unwrap_err().to_string().contains("share_paths"));
        }
    }
}

//! Which peers share a path.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use crate::{Error, udp::Address};

/// Which peers share a path, and with it a congestion controller, NSTART and the queue in front of them, in which they take
/// turns: those behind one gateway, say, or in one cell, whose answers all come through one narrow link.
#[derive(Clone)]
pub struct PathKey(Key);

#[derive(Clone)]
enum Key {
    Prefix { ipv4: u8, ipv6: u8 },
    By(Arc<dyn Fn(SocketAddr) -> u64 + Send + Sync>),
}

impl PathKey {
    /// Those whose addresses begin with the same bits: so many of IPv4, up to 32, and so many of IPv6, up to 64.
    #[must_use]
    pub const fn prefix(ipv4: u8, ipv6: u8) -> Self {
        Self(Key::Prefix { ipv4, ipv6 })
    }

    /// Those for which this gives the same. It is asked once for each peer, from the task that owns the socket.
    #[must_use]
    pub fn by(path: impl Fn(SocketAddr) -> u64 + Send + Sync + 'static) -> Self {
        Self(Key::By(Arc::new(path)))
    }

    /// # Errors
    /// More bits than are looked at.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.0 {
            Key::Prefix { ipv4: 33.., .. } => Err(Error::Setting {
                name: "share_paths",
                reason: "is by more than 32 bits of IPv4; use 0 to 32".into(),
            }),
            Key::Prefix { ipv6: 65.., .. } => Err(Error::Setting {
                name: "share_paths",
                reason: "is by more than 64 bits of IPv6; use 0 to 64".into(),
            }),
            _ => Ok(()),
        }
    }

    /// The path of a peer.
    pub(crate) fn of(&self, peer: Address) -> u64 {
        match &self.0 {
            Key::Prefix { ipv4, ipv6 } => prefix(peer.peer().ip(), *ipv4, *ipv6),
            Key::By(path) => path(peer.peer()),
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
        match self.0 {
            Key::Prefix { ipv4, ipv6 } => write!(f, "PathKey::prefix({ipv4}, {ipv6})"),
            Key::By(_) => f.write_str("PathKey::by(..)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_whose_addresses_begin_alike_share_a_path() {
        let of = |key: &PathKey, peer: &str| key.of(Address::of(peer.parse().unwrap()));
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
    fn what_is_no_prefix_is_refused() {
        assert!(PathKey::prefix(32, 64).check().is_ok());
        for key in [PathKey::prefix(33, 0), PathKey::prefix(0, 65)] {
            assert!(key.check().unwrap_err().to_string().contains("share_paths"));
        }
    }
}

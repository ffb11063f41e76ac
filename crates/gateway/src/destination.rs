//! Whom clients may name themselves (Proxy-Uri, Proxy-Scheme): what the operator allowed, and never by accident what is near the
//! gateway.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::Destination;

/// Whether a name is among those allowed.
pub(crate) fn names(to: &[Destination], name: &str) -> bool {
    to.iter().any(|destination| match destination {
        Destination::Name(allowed) => match allowed.strip_prefix("*.") {
            Some(parent) => name.strip_suffix(parent).is_some_and(|label| label.len() > 1 && label.ends_with('.')),
            None => allowed == name,
        },
        Destination::Network(_) => false,
    })
}

/// Whether an address may be asked. One to which a name that is allowed resolved may be so unless it is near the gateway: the owner of the
/// name would else choose what is asked behind it.
pub(crate) fn addresses(to: &[Destination], address: IpAddr, by_name: bool) -> bool {
    let address = address.to_canonical();
    let is_named =
        to.iter().any(|destination| matches!(destination, Destination::Network(it) if it.contains(&address)));
    // A network that holds everything names nothing in particular.
    let is_meant =
        |it: &Destination| matches!(it, Destination::Network(it) if it.prefix_len() > 0 && it.contains(&address));
    match is_near(address) {
        true => to.iter().any(is_meant),
        false => is_named || by_name,
    }
}

/// Whether an address is that of the gateway, of its links, of the network that it is in, or of no single host.
pub(crate) fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            ip.is_loopback()
                || ip.is_private()
                || ip.is_link_local()
                || ip.is_unspecified()
                || ip.is_broadcast()
                || ip.is_multicast()
                || first == 0
                // Shared address space (RFC 6598), benchmarking (RFC 2544), protocol assignments, reserved.
                || (first == 100 && second & 0xc0 == 64)
                || (first == 198 && second & 0xfe == 18)
                || (first == 192 && second == 0 && ip.octets()[2] == 0)
                || first >= 240
        }
        IpAddr::V6(ip) => {
            let first = ip.segments()[0];
            ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_multicast()
                || first & 0xfe00 == 0xfc00
                || first & 0xffc0 == 0xfe80
                || first & 0xffc0 == 0xfec0
                || embedded(ip).is_some_and(|ip| is_near(ip.into()))
        }
    }
}

/// The address of IPv4 to which one of IPv6 leads by translation or a tunnel: NAT64 (RFC 6052), 6to4 (RFC 3056), compatible ones.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (a, b, c, d, e, f) {
        (0x64, 0xff9b, 0, 0, 0, 0) | (0, 0, 0, 0, 0, 0) => Some(of(g, h)),
        (0x64, 0xff9b, 1, ..) => Some(of(g, h)),
        (0x2002, ..) => Some(of(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Destination {
        Destination::Network(text.parse().unwrap())
    }

    /// None of these is asked because a client or the owner of a name says so.
    #[test]
    fn what_is_near_is_asked_only_where_it_is_named() {
        let everything = [network("0.0.0.0/0"), network("::/0"), Destination::Name("*.example.org".into())];
        for near in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.1.187",
            "255.255.255.255",
            "240.0.0.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "fec0::1",
            "ff02::fd",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a00:1",
            "2002:7f00:1::",
            "2002:c0a8:101::",
        ] {
            let address: IpAddr = near.parse().unwrap();
            assert!(is_near(address), "{near}");
            for by_name in [false, true] {
                assert!(!addresses(&everything, address, by_name), "{near}");
            }
            let named = [Destination::Network(address.to_canonical().into())];
            assert!(addresses(&named, address, false), "{near}");
        }
        for far in ["192.0.2.1", "2001:db8::1", "64:ff9b::c000:201", "8.8.8.8"] {
            let address: IpAddr = far.parse().unwrap();
            assert!(!is_near(address) && addresses(&everything, address, false), "{far}");
            assert!(!addresses(&[network("198.51.100.0/24")], address, false));
            assert!(addresses(&[], address, true), "its name was allowed");
        }
    }

    #[test]
    fn a_name_is_allowed_as_a_whole() {
        let to = [Destination::Name("device.example".into()), Destination::Name("*.cell.example".into())];
        for (name, may) in [
            ("device.example", true),
            ("xdevice.example", false),
            ("a.device.example", false),
            ("a.cell.example", true),
            ("a.b.cell.example", true),
            ("cell.example", false),
            ("evilcell.example", false),
            (".cell.example", false),
        ] {
            assert_eq!(names(&to, name), may, "{name}");
        }
    }
}

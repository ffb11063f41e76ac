//! Who has which address.
//!
//! The server has 10.77.0.2 and fd77::2; device *n*, from 1, has 10.77.1.*n* and fd77::1:*n* (after the 254th goes on with
//! 10.77.2.1). Nothing of this is seen outside of the namespaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// As many devices can share a path: each has a namespace with an interface.
pub const MOST_DEVICES: u16 = 500;
/// Devices whose IPv4 addresses differ in the last byte alone.
const IN_A_ROW: u16 = 254;

/// The network of a run, and the length of its prefix.
pub(super) const NETWORK_4: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 77, 0, 0), 16);
pub(super) const NETWORK_6: (Ipv6Addr, u8) = (Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0), 64);

/// One end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where the server runs.
    Server,
    /// A device, from 1.
    Device(u16),
}

impl End {
    /// Its IPv4 address.
    #[must_use]
    pub const fn ipv4(self) -> Ipv4Addr {
        match self {
            Self::Server => Ipv4Addr::new(10, 77, 0, 2),
            Self::Device(number) => {
                let number = number.saturating_sub(1);
                Ipv4Addr::new(10, 77, 1 + (number / IN_A_ROW) as u8, 1 + (number % IN_A_ROW) as u8)
            }
        }
    }

    /// Its IPv6 address.
    #[must_use]
    pub const fn ipv6(self) -> Ipv6Addr {
        match self {
            Self::Server => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2),
            Self::Device(number) => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, number),
        }
    }

    /// Whose address it is, if there are so many devices.
    pub(super) fn of(address: IpAddr, devices: u16) -> Option<Self> {
        let end = match address {
            IpAddr::V4(address) => match address.octets() {
                [10, 77, 0, 2] => Self::Server,
                [10, 77, row @ 1..=255, place @ 1..=254] => {
                    Self::Device((u16::from(row) - 1) * IN_A_ROW + u16::from(place))
                }
                _ => return None,
            },
            IpAddr::V6(address) => match address.segments() {
                [0xfd77, 0, 0, 0, 0, 0, 0, 2] => Self::Server,
                [0xfd77, 0, 0, 0, 0, 0, 1, number] => Self::Device(number),
                _ => return None,
            },
        };
        match end {
            Self::Device(number) if number == 0 || number > devices => None,
            end => Some(end),
        }
    }

    /// The number of its interface: the server's is 0.
    pub(super) const fn place(self) -> usize {
        match self {
            Self::Server => 0,
            Self::Device(number) => number as usize,
        }
    }

    /// Every end, the server first.
    pub(super) fn all(devices: u16) -> impl Iterator<Item = Self> {
        std::iter::once(Self::Server).chain((1..=devices).map(Self::Device))
    }
}

/// What `/etc/hosts` says inside. `device` is the first device. IPv6 has names of its own: most programs try one address of
/// a name alone, and most servers are told one to listen at.
pub(super) fn hosts(devices: u16, with_ipv6: bool) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n".to_owned();
    for end in End::all(devices) {
        let name = match end {
            End::Server => "server".to_owned(),
            End::Device(1) => "device1 device".to_owned(),
            End::Device(number) => format!("device{number}"),
        };
        text.push_str(&format!("{} {name}\n", end.ipv4()));
        if with_ipv6 {
            let name = name.split(' ').map(|name| format!("{name}.ip6")).collect::<Vec<_>>().join(" ");
            text.push_str(&format!("{} {name}\n", end.ipv6()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_found_by_both_of_its_addresses_and_nobody_else_is() {
        for end in End::all(MOST_DEVICES) {
            assert_eq!(End::of(end.ipv4().into(), MOST_DEVICES), Some(end));
            assert_eq!(End::of(end.ipv6().into(), MOST_DEVICES), Some(end));
            assert_eq!(u32::from(end.ipv4()) >> 16, u32::from(NETWORK_4.0) >> 16);
        }
        let one = |text: &str| End::of(text.parse().expect("an address"), 1);
        assert_eq!(one("10.77.1.1"), Some(End::Device(1)));
        for text in
            ["10.77.1.2", "10.77.0.1", "10.77.1.0", "10.78.0.2", "fd77::1:0", "fd77::1:2", "ff02::1", "255.255.255.255"]
        {
            assert_eq!(one(text), None, "{text}");
        }
    }

    #[test]
    fn names_have_no_address_of_a_family_that_the_link_cannot_carry() {
        assert!(
            hosts(2, true).contains("fd77::2 server.ip6\n10.77.1.1 device1 device\nfd77::1:1 device1.ip6 device.ip6\n")
        );
        assert!(!hosts(2, false).contains("fd77"));
    }
}

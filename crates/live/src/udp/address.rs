//! The other end of a UDP conversation, small enough to be kept in every record.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// An address and port, and by which of our own addresses it is spoken to: an answer leaves from the address that was
/// asked (RFC 7252 §5.3.2 matches responses by source address).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    /// An IPv6 address, or an IPv4 one in the low 32 bits.
    ip: [u64; 2],
    /// The zone of an IPv6 address, or the number of the secure session.
    scope: u32,
    port: u16,
    form: Form,
    /// Place of our own address in the port's [`Locals`]; 0 if the kernel chooses.
    local: u8,
}

/// What an [`Address`] holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    V4,
    V6,
    /// A peer at an IPv4 address, within a secure session.
    V4InSession,
    /// A peer at an IPv6 address, within a secure session; the session knows the zone.
    V6InSession,
}

impl Address {
    /// Of a peer, with our address left to the kernel. IPv4 addresses mapped into IPv6 become IPv4 ones.
    pub(crate) fn of(peer: SocketAddr) -> Self {
        let (ip, is_v4) = match peer.ip().to_canonical() {
            IpAddr::V4(v4) => ([0, u64::from(u32::from(v4))], true),
            IpAddr::V6(v6) => {
                let bits = u128::from(v6);
                ([(bits >> 64) as u64, bits as u64], false)
            }
        };
        let scope = match peer {
            SocketAddr::V6(v6) if !is_v4 => v6.scope_id(),
            _ => 0,
        };
        let form = if is_v4 { Form::V4 } else { Form::V6 };
        Self { ip, scope, port: peer.port(), form, local: 0 }
    }

    /// The same peer within a secure session. It is another one than outside of it and in any other session: what was
    /// said in one says nothing in the next (RFC 7252 §9.1).
    pub(crate) const fn in_session(self, number: u32) -> Self {
        let form = match self.form {
            Form::V4 | Form::V4InSession => Form::V4InSession,
            Form::V6 | Form::V6InSession => Form::V6InSession,
        };
        Self { scope: number, form, ..self }
    }

    /// The number of the secure session.
    pub(crate) const fn session(self) -> Option<u32> {
        match self.form {
            Form::V4 | Form::V6 => None,
            Form::V4InSession | Form::V6InSession => Some(self.scope),
        }
    }

    /// The same, spoken to by another of our addresses.
    pub(crate) const fn by(self, local: u8) -> Self {
        Self { local, ..self }
    }

    /// The network that the peer is in, taken for the path to it: 24 bits of an IPv4 address, 48 of an IPv6 one, what one
    /// site may have (RFC 6177), and the zone. Link-local addresses alone have one, and on each link they are others'.
    pub(crate) const fn path(&self) -> u64 {
        let [high, low] = self.ip;
        match self.form {
            Form::V4 | Form::V4InSession => low >> 8,
            Form::V6 => high >> 16 | (self.scope as u64 & 0x7fff) << 48 | 1 << 63,
            Form::V6InSession => high >> 16 | 1 << 63,
        }
    }

    /// Which of our addresses.
    pub(crate) const fn local(self) -> u8 {
        self.local
    }

    /// The peer's address and port. Within a session without the zone.
    pub(crate) fn peer(self) -> SocketAddr {
        let [high, low] = self.ip;
        match self.form {
            Form::V4 | Form::V4InSession => SocketAddr::new(IpAddr::V4(Ipv4Addr::from(low as u32)), self.port),
            Form::V6 | Form::V6InSession => {
                let v6 = Ipv6Addr::from((u128::from(high) << 64) | u128::from(low));
                let zone = if self.form == Form::V6 { self.scope } else { 0 };
                SocketAddr::V6(SocketAddrV6::new(v6, self.port, 0, zone))
            }
        }
    }
}

/// An IPv4 address in the form of an IPv6 one as what it is: sockets of IPv6 here speak to IPv6 alone.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The network of a peer, for [quotas](crate::quota): 24 bits of an IPv4 address, 48 of an IPv6 one, with its zone. Of such
/// addresses one owner has many.
#[must_use]
pub fn network_of(peer: SocketAddr) -> u64 {
    Address::of(peer).path()
}

impl Hash for Address {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [high, low] = self.ip;
        state.write_u64(high ^ u64::from(self.port));
        state.write_u64(low);
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.peer())
    }
}

/// Our own addresses at which datagrams came in, in the order in which they were met. At most 255; from a machine with
/// more, answers leave as the kernel chooses.
#[derive(Debug, Default)]
pub(crate) struct Locals {
    met: Vec<IpAddr>,
}

impl Locals {
    /// The place of an address.
    pub(crate) fn place(&mut self, ip: IpAddr) -> u8 {
        let ip = ip.to_canonical();
        let place = match self.met.iter().position(|met| *met == ip) {
            Some(place) => place,
            None if self.met.len() < usize::from(u8::MAX) => {
                self.met.push(ip);
                self.met.len() - 1
            }
            None => return 0,
        };
        u8::try_from(place + 1).unwrap_or(0)
    }

    /// How many there are.
    pub(crate) fn met(&self) -> u8 {
        u8::try_from(self.met.len()).unwrap_or(u8::MAX)
    }

    /// The address at a place.
    pub(crate) fn at(&self, place: u8) -> Option<IpAddr> {
        self.met.get(usize::from(place).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_were() {
        for text in ["192.0.2.1:5683", "[2001:db8::1]:61616", "[::1]:0", "255.255.255.255:65535"] {
            let peer: SocketAddr = text.parse().unwrap();
            assert_eq!(Address::of(peer).peer(), peer);
        }
        let link_local = SocketAddr::V6(SocketAddrV6::new("fe80::1".parse().unwrap(), 5683, 0, 3));
        assert_eq!(Address::of(link_local).peer(), link_local);
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_one() {
        let mapped = Address::of("[::ffff:192.0.2.1]:5683".parse().unwrap());
        assert_eq!(mapped, Address::of("192.0.2.1:5683".parse().unwrap()));
        assert_ne!(mapped, mapped.by(1));
    }

    #[test]
    fn a_mapped_address_has_no_second_share_and_each_link_has_its_own() {
        let of = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(of("[::ffff:192.0.2.1]:5683"), of("192.0.2.9:1"));
        assert_eq!(of("[2001:db8:1:2::1]:1"), of("[2001:db8:1:3::1]:1"));
        assert!(of("[2001:db8:1::1]:1") != of("[2001:db8:2::1]:1") && of("192.0.2.1:1") != of("192.0.3.1:1"));
        assert_eq!(of("[fe80::1%3]:1"), of("[fe80::2%3]:2"));
        assert_ne!(of("[fe80::1%3]:1"), of("[fe80::1%4]:1"));
    }

    #[test]
    fn a_peer_is_another_one_in_each_session() {
        for text in ["192.0.2.1:5684", "[2001:db8::1]:5684"] {
            let peer: SocketAddr = text.parse().unwrap();
            let outside = Address::of(peer).by(3);
            let (one, two) = (outside.in_session(1), outside.in_session(2));
            assert_eq!((one.peer(), one.local(), one.session()), (peer, 3, Some(1)));
            assert!(one != two && one != outside && one == outside.in_session(1) && outside.session().is_none());
        }
        // A zone is no session, and the reverse.
        let zoned = SocketAddr::V6(SocketAddrV6::new("fe80::1".parse().unwrap(), 5684, 0, 3));
        assert_ne!(Address::of(zoned), Address::of(zoned).in_session(3));
        assert_eq!(Address::of(zoned).in_session(3).peer().to_string(), "[fe80::1]:5684");
    }

    #[test]
    fn addresses_stay_small() {
        assert_eq!(size_of::<Address>(), 24);
    }

    #[test]
    fn own_addresses_are_found_again_and_bounded() {
        let mut locals = Locals::default();
        for low in 0..300_u32 {
            let ip = IpAddr::V4(Ipv4Addr::from(low));
            let place = locals.place(ip);
            assert_eq!(locals.place(ip), place);
            assert_eq!(locals.at(place), (low < 255).then_some(ip));
        }
    }
}

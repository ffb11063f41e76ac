//! No more to addresses that have shown nothing than RFC 9175 §2.4 allows (RFC 7252 §11.3).
//!
//! Who sends from a forged address can make a server flood a peer that is at that address. How much goes there is the host's to
//! see to (`millpond_coap::transfer::Limit`); who has shown that it receives what is sent to its address is known here. The server
//! remembers nothing of what it asks for: the value that is to be sent back is a keyed hash of address and time.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ipnet::IpNet;
use millpond_coap::{message::number, quota::oldest_of_largest};
use millpond_control::Instant;
use siphasher::sip::SipHasher24;

use super::{Request, admission::AddressState};
use crate::{
    Error, Transport, secrets,
    transfer::{self, AROUND_IPV4, AROUND_IPV6, ECHO_LENGTH, Limit, Validation},
    udp::{Address, network_of},
};

/// Before which answers a client must show that it is where it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressRule {
    /// Never: everybody gets everything.
    Never,
    /// Before answers of more than 136 bytes of CoAP that are on the wire more than three times as long as their request (RFC 9175
    /// §2.4). They go in small blocks until then, and with Echo. Trusted are 127.0.0.1 and ::1, but no other address of the
    /// loopback, from which a relay forwards what came from elsewhere; and [networks](crate::ServerBuilder::trust) that are said to be.
    #[default]
    LargeAnswers,
    /// The same, 127.0.0.1 and ::1 included.
    LargeAnswersEverywhere,
}

/// Seconds for which a value is good.
const GOOD_FOR: u32 = 300;
/// Seconds for which an address stays proved after a value came from it. Requests without one may be anybody's.
const PROVED_FOR: u32 = 600;
/// Seconds for which the value that proved it keeps it so: each request for a block of a long body has it. Whose the address was
/// has it, too, so not for ever. A judgement.
const KEPT_FOR: u32 = 3_600;
/// Addresses that are remembered as proved, and how many make room at a time where there is none.
const MOST_PROVED: usize = 16_384;
const FORGOTTEN: usize = MOST_PROVED / 8;
/// Bytes of the time in a value; the rest is a hash.
const TIME: usize = 4;

/// Who has shown to be where it says, for the stack that cuts answers and the dispatcher that finds handlers.
#[derive(Clone, Debug)]
pub(crate) struct Reachability(Arc<Mutex<Proofs>>);

impl Reachability {
    pub(crate) fn new(rule: AddressRule) -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(Proofs::new(rule)?))))
    }

    /// The same, but these networks need not show anything.
    pub(crate) fn trusting(self, networks: &[IpNet]) -> Self {
        self.proofs().trusted = networks.into();
        self
    }

    /// Of one worker, whose task alone asks.
    fn proofs(&self) -> MutexGuard<'_, Proofs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the sender of this request is known to be where it says: see [`Proofs::state_of`].
    pub(crate) fn state_of(&self, now: Instant, request: &Request) -> AddressState {
        self.proofs().state_of(now, request)
    }

    /// Whether an address was validated lately.
    pub(crate) fn is_validated(&self, now: Instant, peer: SocketAddr) -> bool {
        self.proofs().is_validated(now, peer)
    }

    /// Whether nobody at this address need show anything.
    pub(crate) fn trusts(&self, peer: SocketAddr) -> bool {
        self.proofs().trusts(peer)
    }

    /// What a peer has to send back.
    pub(crate) fn challenge(&self, now: Instant, peer: SocketAddr) -> [u8; ECHO_LENGTH] {
        let mut proofs = self.proofs();
        proofs.withheld += 1;
        proofs.value(peer, seconds(now))
    }

    /// Requests that were answered with nothing but that.
    pub(crate) fn withheld(&self) -> u64 {
        self.proofs().withheld
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.proofs().memory()
    }
}

impl Validation<Address> for Reachability {
    fn address_validation(
        &mut self,
        now: Instant,
        peer: Address,
        echoed: Option<&[u8]>,
        request: usize,
    ) -> transfer::AddressValidation {
        let (mut proofs, peer) = (self.proofs(), peer.peer());
        if proofs.trusts(peer) {
            return transfer::AddressValidation::Validated;
        }
        match proofs.shown(now, peer, echoed) {
            Shown { now: true, .. } => transfer::AddressValidation::Validated,
            Shown { lately: true, .. } => transfer::AddressValidation::Remembered,
            Shown { .. } => {
                let around = if peer.ip().to_canonical().is_ipv4() { AROUND_IPV4 } else { AROUND_IPV6 };
                transfer::AddressValidation::Unvalidated(Limit::of(request, around))
            }
        }
    }

    fn echo(&mut self, now: Instant, peer: Address) -> Option<[u8; ECHO_LENGTH]> {
        let (proofs, peer) = (self.proofs(), peer.peer());
        (!proofs.trusts(peer)).then(|| proofs.value(peer, seconds(now)))
    }
}

/// What is known of addresses.
#[derive(Debug)]
struct Proofs {
    rule: AddressRule,
    trusted: Box<[IpNet]>,
    key: (u64, u64),
    /// When a value came last from each, in seconds.
    proved: HashMap<SocketAddr, u32>,
    withheld: u64,
}

/// What of an address is known to be somebody's who receives what is sent there.
#[derive(Clone, Copy, Debug)]
struct Shown {
    /// This request.
    now: bool,
    /// One in the last minutes.
    lately: bool,
}

impl Proofs {
    fn new(rule: AddressRule) -> Result<Self, Error> {
        let (low, high) = (u64::from_le_bytes(secrets::bytes()?), u64::from_le_bytes(secrets::bytes()?));
        Ok(Self { rule, trusted: Box::default(), key: (low, high), proved: HashMap::new(), withheld: 0 })
    }

    /// Whether the sender of this request is known to be where it says: by a secure session or a connection, by what it
    /// sends back, or by having done so lately. With [`AddressRule::Never`] everybody is.
    fn state_of(&mut self, now: Instant, request: &Request) -> AddressState {
        if self.rule == AddressRule::Never || request.transport() != Transport::Udp {
            return AddressState::Validated;
        }
        if self.is_proved(now, request.peer(), request.value(number::ECHO)) {
            AddressState::Validated
        } else {
            AddressState::Unvalidated
        }
    }

    fn is_validated(&self, now: Instant, peer: SocketAddr) -> bool {
        self.proved.get(&peer).is_some_and(|came| seconds(now).saturating_sub(*came) <= PROVED_FOR)
    }

    fn is_proved(&mut self, now: Instant, peer: SocketAddr, echoed: Option<&[u8]>) -> bool {
        let shown = self.shown(now, peer, echoed);
        shown.now || shown.lately
    }

    fn shown(&mut self, now: Instant, peer: SocketAddr, echoed: Option<&[u8]>) -> Shown {
        let seconds = seconds(now);
        let is_remembered = self.is_validated(now, peer);
        let good_for = if is_remembered { KEPT_FOR } else { GOOD_FOR };
        let has_come = echoed.is_some_and(|value| self.is_ours(value, peer, seconds, good_for));
        if has_come {
            self.remember(peer, seconds);
        }
        Shown { now: has_come, lately: is_remembered }
    }

    fn trusts(&self, peer: SocketAddr) -> bool {
        let ip = peer.ip().to_canonical();
        let by_rule = match self.rule {
            AddressRule::Never => true,
            AddressRule::LargeAnswers => ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST,
            AddressRule::LargeAnswersEverywhere => false,
        };
        by_rule || self.trusted.iter().any(|network| network.contains(&ip))
    }

    fn is_ours(&self, value: &[u8], peer: SocketAddr, now: u32, good_for: u32) -> bool {
        let Some((time, _)) = value.split_first_chunk::<TIME>() else { return false };
        let made = u32::from_be_bytes(*time);
        made <= now && now - made <= good_for && self.value(peer, made) == value
    }

    fn value(&self, peer: SocketAddr, made: u32) -> [u8; ECHO_LENGTH] {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        peer.hash(&mut hasher);
        hasher.write_u32(made);
        let mut value = [0; ECHO_LENGTH];
        let (time, mac) = value.split_at_mut(TIME);
        time.copy_from_slice(&made.to_be_bytes());
        mac.copy_from_slice(&hasher.finish().to_be_bytes());
        value
    }

    fn remember(&mut self, peer: SocketAddr, now: u32) {
        if let Some(came) = self.proved.get_mut(&peer) {
            *came = now;
            return;
        }
        if self.proved.len() >= MOST_PROVED {
            self.proved.retain(|_, came| now.saturating_sub(*came) <= PROVED_FOR);
        }
        if self.proved.len() >= MOST_PROVED {
            self.forget_some();
        }
        self.proved.insert(peer, now);
    }

    /// All proved it lately. Of the networks that have most go those that did so the longest ago, so that who proves
    /// many addresses, or ports, takes from itself. Who is forgotten proves it again.
    #[cold]
    fn forget_some(&mut self) {
        let mut all: Vec<_> = self.proved.iter().map(|(peer, came)| (*came, *peer)).collect();
        all.sort_unstable();
        let all = all.into_iter().map(|(_, peer)| (network_of(peer), peer)).collect();
        for peer in oldest_of_largest(all, FORGOTTEN) {
            self.proved.remove(&peer);
        }
    }

    /// Bytes held.
    fn memory(&self) -> usize {
        self.proved.capacity() * (size_of::<(SocketAddr, u32)>() + 1)
    }
}

fn seconds(now: Instant) -> u32 {
    u32::try_from(now.as_micros() / 1_000_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = |seconds| Instant::from_micros(seconds * 1_000_000);

    #[test]
    fn an_address_is_proved_by_what_was_sent_there_alone() {
        let mut reachability = Proofs::new(AddressRule::LargeAnswers).unwrap();
        let (peer, other) = ("192.0.2.1:1000".parse().unwrap(), "192.0.2.1:1001".parse().unwrap());
        assert!(!reachability.is_proved(AT(0), peer, None));
        let value = reachability.value(peer, 0);
        assert!(!reachability.is_proved(AT(1), other, Some(&value)));
        assert!(!reachability.is_proved(AT(301), peer, Some(&value)), "it is too old");
        assert!(reachability.is_proved(AT(300), peer, Some(&value)));
        assert!(reachability.is_proved(AT(800), peer, None), "it is remembered");
        assert!(!reachability.is_proved(AT(901), peer, None), "but not for ever");
        let [here, there] = ["[fe80::1%1]:5", "[fe80::1%2]:5"].map(|text| text.parse().unwrap());
        let of_a_link = reachability.value(here, 0);
        assert!(!reachability.is_proved(AT(1), there, Some(&of_a_link)), "another link's");
        assert!(reachability.is_proved(AT(1), here, Some(&of_a_link)));
        for forged in [&[][..], &[0; 12], &[0; 40], &value[..11]] {
            assert!(!reachability.is_proved(AT(2), other, Some(forged)));
        }
    }

    #[test]
    fn forged_requests_keep_no_address_proved() {
        let mut reachability = Proofs::new(AddressRule::LargeAnswers).unwrap();
        let peer = "192.0.2.1:1000".parse().unwrap();
        let value = reachability.value(peer, 0);
        assert!(reachability.is_proved(AT(1), peer, Some(&value)));
        let mut proved = |at| reachability.is_proved(AT(at), peer, Some(&[0; 12]));
        assert_eq!((2..2_000).filter(|at| proved(*at)).max(), Some(601));
    }

    /// Whose body takes long shows its value with each block.
    #[test]
    fn the_value_that_proved_an_address_keeps_it_proved_for_an_hour() {
        let mut reachability = Proofs::new(AddressRule::LargeAnswers).unwrap();
        let peer = "192.0.2.1:1000".parse().unwrap();
        let value = reachability.value(peer, 0);
        let mut proved = |at| reachability.is_proved(AT(at), peer, Some(&value));
        assert_eq!((0..9_000).step_by(100).filter(|at| proved(*at)).max(), Some(4_200));
        // Once it is forgotten, a value must be new.
        let value = reachability.value(peer, 10_000);
        assert!(reachability.is_proved(AT(10_001), peer, Some(&value)));
        assert!(!reachability.is_proved(AT(10_602), peer, Some(&value)));
    }

    #[test]
    fn networks_that_are_trusted_show_nothing_and_others_do() {
        let networks = ["192.0.2.0/24", "2001:db8:7::/48"].map(|text| text.parse().unwrap());
        let mut reachability = Reachability::new(AddressRule::LargeAnswers).unwrap().trusting(&networks);
        for (peer, is_trusted) in [
            ("192.0.2.9:5", true),
            ("[::ffff:192.0.2.9]:5", true),
            ("[2001:db8:7::1]:5", true),
            ("192.0.3.9:5", false),
            ("[2001:db8:8::1]:5", false),
            ("127.0.0.1:5", true),
            ("[::1]:5", true),
            ("[::ffff:127.0.0.1]:5", true),
            ("127.0.0.65:5", false),
        ] {
            let peer = peer.parse().unwrap();
            let address = Address::of(peer);
            assert_eq!(reachability.trusts(peer), is_trusted, "{peer}");
            assert_eq!(reachability.echo(AT(0), address).is_none(), is_trusted, "{peer}");
            let address_validation = Validation::address_validation(&mut reachability, AT(0), address, None, 20);
            assert_eq!(address_validation == transfer::AddressValidation::Validated, is_trusted, "{peer}");
        }
    }

    /// A value that comes back lets bursts leave; to have sent one lately does not.
    #[test]
    fn what_may_be_sent_follows_what_a_request_brings() {
        let mut reachability = Reachability::new(AddressRule::LargeAnswersEverywhere).unwrap();
        for (peer, around) in [("192.0.2.1:7", 42), ("[2001:db8::1]:7", 62)] {
            let peer = Address::of(peer.parse().unwrap());
            let value = reachability.echo(AT(0), peer).unwrap();
            let mut validation = |echoed| Validation::address_validation(&mut reachability, AT(1), peer, echoed, 20);
            assert_eq!(validation(None), transfer::AddressValidation::Unvalidated(Limit::of(20, around)));
            assert_eq!(
                validation(Some(&[7; ECHO_LENGTH])),
                transfer::AddressValidation::Unvalidated(Limit::of(20, around))
            );
            assert_eq!(validation(Some(&value)), transfer::AddressValidation::Validated);
            assert_eq!(validation(None), transfer::AddressValidation::Remembered);
            assert_eq!(validation(Some(&[7; ECHO_LENGTH])), transfer::AddressValidation::Remembered);
        }
    }

    #[test]
    fn this_machine_is_trusted_unless_it_is_not() {
        let local = "127.0.0.1:5".parse().unwrap();
        for (rule, passes) in [
            (AddressRule::Never, true),
            (AddressRule::LargeAnswers, true),
            (AddressRule::LargeAnswersEverywhere, false),
        ] {
            assert_eq!(Proofs::new(rule).unwrap().trusts(local), passes);
        }
    }

    #[test]
    fn who_proves_thousands_of_addresses_takes_from_itself() {
        for flood in ["2001:db8:7::", "::ffff:203.0.113.7"] {
            let mut reachability = Proofs::new(AddressRule::LargeAnswers).unwrap();
            let honest = |n: u32| SocketAddr::new(std::net::Ipv4Addr::from(n << 8).into(), 1);
            (0..5_000).for_each(|n| reachability.remember(honest(n), 0));
            for n in 0..60_000_u16 {
                let ip: std::net::IpAddr = flood.parse().unwrap();
                let host = match ip {
                    std::net::IpAddr::V6(v6) if n % 2 == 0 => {
                        (u128::from(v6) | u128::from(n) << 48).to_be_bytes().into()
                    }
                    ip => ip,
                };
                reachability.remember(SocketAddr::new(host, n), 1);
            }
            assert!((0..5_000).all(|n| reachability.is_proved(AT(1), honest(n), None)));
            assert!(reachability.proved.len() <= MOST_PROVED);
            // Where every network has one address, those that were silent for the longest go.
            (5_000..40_000).for_each(|n| reachability.remember(honest(n), 2));
            assert!((26_000..40_000).all(|n| reachability.is_proved(AT(2), honest(n), None)));
        }
    }

    /// With a hash that has no secret (that of rustc-hash: all strings of 16 bytes that end with its second seed have the same)
    /// who has a network of his own could make each look-up go through all that he has proved.
    #[test]
    fn addresses_that_were_made_to_collide_do_not() {
        use std::hash::BuildHasher;
        const SEED: u64 = 0x1319_8a2e_0370_7344_u64.swap_bytes();
        let reachability = Proofs::new(AddressRule::LargeAnswers).unwrap();
        let made = (0..1_000_u128).map(|network| {
            let ip = std::net::Ipv6Addr::from(0x2001_0db8 << 96 | network << 64 | u128::from(SEED));
            reachability.proved.hasher().hash_one(SocketAddr::new(ip.into(), 5_683))
        });
        assert_eq!(made.collect::<std::collections::BTreeSet<_>>().len(), 1_000);
    }

    #[test]
    fn proved_addresses_take_bounded_memory() {
        let mut reachability = Proofs::new(AddressRule::LargeAnswersEverywhere).unwrap();
        for n in 0..100_000_u32 {
            reachability.remember(SocketAddr::new(std::net::Ipv4Addr::from(n).into(), 1), 0);
        }
        assert!(reachability.proved.len() <= MOST_PROVED && reachability.memory() < 4 << 20);
    }
}

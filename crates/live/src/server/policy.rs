//! Who may do what, and how often: judged before any handler is asked.
//!
//! Rights and rates are looked up in the same rules. A rate is kept as the time at which its bucket is full again, so that
//! what is kept of whom says nothing once that time has passed.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use ipnet::IpNet;
use millpond_coap::message::{Code, number};
use millpond_control::Instant;

use super::{Request, admission::AddressState};
use crate::{Error, PeerIdentity, security::digits, udp::network_of};

/// Who may do what with a server, and how often: [rules](Rule), looked up before any handler is asked.
///
/// As soon as one rule says what may be done, what no rule allows is refused: with 4.03, or with 4.01 if who asks has proved
/// no identity. `/.well-known/core` needs a rule as any path does. Of the rules with a [rate](Rule::limit) the first that
/// is for who asks counts; beyond it the answer is 4.29 with Max-Age (RFC 8516).
///
/// ```
/// use millpond_live::{Code, Policy, RateLimit, Rule, Server, Who};
///
/// # fn policy() -> Result<millpond_live::ServerBuilder, millpond_live::Error> {
/// let sensors = Rule::of(Who::pre_shared_key("sensor-*"))
///     .allow("/readings/**", [Code::PUT])?
///     .limit(RateLimit::per_second(2.0)?.burst(10));
/// let everybody = Rule::of(Who::network("::/0")?).allow("/time", [Code::GET])?;
/// let builder = Server::builder().policy(Policy::new().rule(sensors).rule(everybody));
/// # Ok(builder)
/// # }
/// # policy().unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
}

impl Policy {
    /// Without a rule: everything is allowed, without limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With one rule more.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// What may be done is said by some rule.
    fn has_rights(&self) -> bool {
        self.rules.iter().any(|rule| rule.rights.is_some())
    }

    fn allows(&self, names: &[String], request: &Request, peer: SocketAddr) -> bool {
        self.rules.iter().any(|rule| rule.who.is(names, request.identity(), peer) && rule.allows(request))
    }
}

/// What somebody may do, and how often.
#[derive(Clone, Debug)]
pub struct Rule {
    who: Who,
    rights: Option<Vec<Right>>,
    rate: Option<RateLimit>,
}

/// These methods at these paths; without any, all.
#[derive(Clone, Debug)]
struct Right {
    path: Vec<String>,
    methods: Vec<Code>,
}

impl Rule {
    /// A rule for these.
    #[must_use]
    pub fn of(who: Who) -> Self {
        Self { who, rights: None, rate: None }
    }

    /// They may ask with these methods (none: with all) for this path: in a segment `*` stands for any run of characters, and
    /// `**` at the end for any further segments, also none. A query does not matter.
    ///
    /// # Errors
    /// A path that does not begin with a slash, or has `**` elsewhere.
    pub fn allow(mut self, path: &str, methods: impl IntoIterator<Item = Code>) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::Setting { name: "policy", reason: format!("{path:?} {reason}") };
        let Some(rest) = path.strip_prefix('/') else { return Err(wrong("does not begin with a slash")) };
        let segments: Vec<String> =
            if rest.is_empty() { Vec::new() } else { rest.split('/').map(str::to_owned).collect() };
        let before_last = segments.split_last().map_or(&[][..], |(_, before)| before);
        if before_last.iter().any(|segment| segment.contains("**")) {
            return Err(wrong("has ** before its end; write * for one segment"));
        }
        if segments.last().is_some_and(|last| last.contains("**") && last != "**") {
            return Err(wrong("has ** in a segment; write * there, or /** for all that is below"));
        }
        if segments.iter().any(|segment| matches!(&segment[..], "." | "..")) {
            return Err(wrong("has a segment . or ..; write the path that is meant"));
        }
        self.rights.get_or_insert_default().push(Right { path: segments, methods: methods.into_iter().collect() });
        Ok(self)
    }

    /// They may do nothing by this rule, where none allows them more.
    #[must_use]
    pub fn allow_nothing(mut self) -> Self {
        self.rights.get_or_insert_default();
        self
    }

    /// Each of them may ask so often: each identity, or each network of 24 bits (IPv4) or 48 bits (IPv6) in the one that is
    /// named. Senders of a network whose addresses are not validated have as much again beside it, so that forged addresses
    /// take nothing from it. A body in blocks counts once.
    #[must_use]
    pub const fn limit(mut self, rate: RateLimit) -> Self {
        self.rate = Some(rate);
        self
    }

    fn allows(&self, request: &Request) -> bool {
        self.rights.iter().flatten().any(|right| {
            (right.methods.is_empty() || right.methods.contains(&request.method()))
                && is_below(&right.path, request.values(number::URI_PATH))
        })
    }
}

/// The methods by the names that rules have for them.
pub const METHODS: [(&str, Code); 7] = [
    ("GET", Code::GET),
    ("POST", Code::POST),
    ("PUT", Code::PUT),
    ("DELETE", Code::DELETE),
    ("FETCH", Code::FETCH),
    ("PATCH", Code::PATCH),
    ("iPATCH", Code::IPATCH),
];

/// Whom a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    PreSharedKey(String),
    Certificate(String),
    Oscore(String),
    Identified,
    Network(IpNet),
}

impl Who {
    /// Who has the pre-shared key of this identity; `*` in it stands for any run of characters.
    #[must_use]
    pub fn pre_shared_key(identity: &str) -> Self {
        Self(Kind::PreSharedKey(identity.into()))
    }

    /// Who has shown a certificate with this [name](PeerIdentity::names); `*` in it stands for any run of characters.
    #[must_use]
    pub fn certificate(name: &str) -> Self {
        Self(Kind::Certificate(name.into()))
    }

    /// Who has the [context](crate::OscoreContexts) of OSCORE with this [ID](PeerIdentity::Oscore), in lower-case hexadecimal digits; `*` in them
    /// stands for any run.
    ///
    /// # Errors
    /// What is none.
    pub fn oscore(id: &str) -> Result<Self, Error> {
        match id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f' | b'*')) {
            true => Ok(Self(Kind::Oscore(id.into()))),
            false => {
                let reason =
                    format!("{id:?} is no ID in lower-case hexadecimal digits; write 07, or 07* for all that begin so");
                Err(Error::Setting { name: "policy", reason })
            }
        }
    }

    /// Who has proved an identity, whichever.
    #[must_use]
    pub const fn identified() -> Self {
        Self(Kind::Identified)
    }

    /// Who asks from this network, in CIDR notation: `192.0.2.0/24`, `2001:db8::/32`; an address is one of its own. `::/0`
    /// and `0.0.0.0/0` are everybody over IPv6 and over IPv4.
    ///
    /// # Errors
    /// What is none.
    pub fn network(text: &str) -> Result<Self, Error> {
        let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
        let Some(network) = text.parse().ok().or_else(address) else {
            let reason = format!("{text:?} is no network; write 192.0.2.0/24, 2001:db8::/32, or an address");
            return Err(Error::Setting { name: "policy", reason });
        };
        Ok(Self(Kind::Network(network)))
    }

    /// Whether it is for who asks from this address and has proved to be this.
    #[must_use]
    pub fn includes(&self, peer: SocketAddr, identity: Option<&PeerIdentity>) -> bool {
        let names = match &self.0 {
            Kind::Certificate(_) => identity.map(PeerIdentity::names).unwrap_or_default(),
            _ => Vec::new(),
        };
        self.is(&names, identity, peer)
    }

    fn is(&self, names: &[String], identity: Option<&PeerIdentity>, peer: SocketAddr) -> bool {
        match &self.0 {
            Kind::PreSharedKey(wanted) => match identity {
                Some(PeerIdentity::PreSharedKey(identity)) => is_like(wanted.as_bytes(), identity),
                _ => false,
            },
            Kind::Certificate(wanted) => match identity {
                Some(PeerIdentity::Certificate(_)) => {
                    names.iter().any(|name| is_like(wanted.as_bytes(), name.as_bytes()))
                }
                _ => false,
            },
            Kind::Oscore(wanted) => match identity {
                Some(PeerIdentity::Oscore(id)) => is_like(wanted.as_bytes(), digits(id).as_bytes()),
                _ => false,
            },
            Kind::Identified => identity.is_some(),
            Kind::Network(network) => network.contains(&peer.ip().to_canonical()),
        }
    }
}

/// How often somebody may ask: a token bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Microseconds for one more.
    every: u64,
    burst: u32,
}

impl RateLimit {
    /// So often in a second, and at once as many as in a second, one at the least.
    ///
    /// # Errors
    /// No number above 0 and at most a million.
    pub fn per_second(rate: f64) -> Result<Self, Error> {
        if !(rate > 0.0 && rate <= 1e6) {
            let reason = format!("a rate of {rate}/s; write one above 0 and at most a million");
            return Err(Error::Setting { name: "policy", reason });
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and casts end at the bounds"
        )]
        Ok(Self { every: ((1e6 / rate) as u64).max(1), burst: (rate as u32).max(1) })
    }

    /// So many at once; 0 counts as 1.
    #[must_use]
    pub fn burst(self, most: u32) -> Self {
        Self { burst: most.max(1), ..self }
    }

    /// Takes one from a bucket that is full at this time, or says for how many microseconds there is none.
    fn take(self, now: u64, full_at: &mut u64) -> Result<(), u64> {
        let full = (*full_at).max(now).saturating_add(self.every);
        let room = self.every.saturating_mul(u64::from(self.burst));
        match full.saturating_sub(now) {
            until_full if until_full <= room => {
                *full_at = full;
                Ok(())
            }
            until_full => Err(until_full - room),
        }
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one in {:?}, {} at once", Duration::from_micros(self.every), self.burst)
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Nobody has allowed it to who asks.
    Forbidden,
    /// It comes too soon after others, for so many seconds.
    TooSoon { again_in: u32 },
}

/// The policy of a server, and who has asked lately, for all its workers and connections.
#[derive(Debug, Default)]
pub(crate) struct Policing {
    policy: RwLock<Policy>,
    lately: Mutex<Lately>,
    /// Requests refused so far.
    forbidden: AtomicU64,
    limited: AtomicU64,
}

/// Buckets that are not full. Those of unvalidated addresses have a room of their own.
#[derive(Debug, Default)]
struct Lately {
    validated: Buckets,
    unvalidated: Buckets,
    /// Names in certificates, by the certificate: they are asked for with each request.
    names: HashMap<Bytes, Arc<[String]>>,
}

#[derive(Debug, Default)]
struct Buckets {
    full_at: HashMap<(usize, RateKey), u64>,
    /// Of each rule, for those for whom there is no room.
    others: HashMap<usize, u64>,
    swept_at: u64,
}

/// Who shares a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RateKey {
    Identity(Bytes),
    Context(Bytes),
    Network(u64),
}

/// Buckets of a rule that are kept at a time. Beyond them who comes shares one.
const MOST_BUCKETS: usize = 16_384;
/// Microseconds after which full ones are looked for again where there is no room.
const SWEEP: u64 = 1_000_000;
/// Certificates whose names are kept.
const MOST_NAMES: usize = 1_024;

impl Policing {
    /// By this policy.
    pub(crate) fn by(policy: Policy) -> Arc<Self> {
        Arc::new(Self { policy: RwLock::new(policy), ..Self::default() })
    }

    /// By this one from now on. All buckets are full.
    pub(crate) fn replace(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
        *self.lately.lock().unwrap_or_else(PoisonError::into_inner) = Lately::default();
    }

    /// Requests that their senders may not make, and such as came too often.
    pub(crate) fn refused(&self) -> (u64, u64) {
        (self.forbidden.load(Ordering::Relaxed), self.limited.load(Ordering::Relaxed))
    }

    /// Whether who asks may do so at all. A refusal counts.
    pub(super) fn allows(&self, request: &Request) -> Result<(), Refused> {
        if self.permits(request, request.peer()) {
            return Ok(());
        }
        self.forbidden.fetch_add(1, Ordering::Relaxed);
        Err(Refused::Forbidden)
    }

    /// Whether a request may be made from this address by who has made it.
    pub(super) fn permits(&self, request: &Request, peer: SocketAddr) -> bool {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        !policy.has_rights() || policy.allows(&self.names(&policy, request), request, peer)
    }

    /// Whether it may do so now, which counts.
    pub(super) fn admits(&self, now: Instant, request: &Request, address_state: AddressState) -> Result<(), Refused> {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        if policy.rules.iter().all(|rule| rule.rate.is_none()) {
            return Ok(());
        }
        let names = self.names(&policy, request);
        let limited = policy.rules.iter().enumerate().filter_map(|(place, rule)| Some((place, rule, rule.rate?)));
        let Some((place, rule, rate)) =
            limited.into_iter().find(|(_, rule, _)| rule.who.is(&names, request.identity(), request.peer()))
        else {
            return Ok(());
        };
        let whose = match (&rule.who.0, request.identity()) {
            (Kind::Network(_), _) | (_, None) => RateKey::Network(network_of(request.peer())),
            (_, Some(PeerIdentity::PreSharedKey(identity))) => RateKey::Identity(identity.clone()),
            (_, Some(PeerIdentity::Certificate(chain))) => {
                RateKey::Identity(chain.first().cloned().unwrap_or_default())
            }
            (_, Some(PeerIdentity::Oscore(id))) => RateKey::Context(id.clone()),
        };
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        let buckets = match address_state {
            AddressState::Validated => &mut lately.validated,
            AddressState::Unvalidated => &mut lately.unvalidated,
        };
        buckets.take(now.as_micros(), (place, whose), rate).map_err(|micros| {
            self.limited.fetch_add(1, Ordering::Relaxed);
            let again_in = u32::try_from(micros.div_ceil(1_000_000)).unwrap_or(u32::MAX).max(1);
            Refused::TooSoon { again_in }
        })
    }

    /// The names in the certificate of who asks, if any rule asks for them.
    fn names(&self, policy: &Policy, request: &Request) -> Arc<[String]> {
        let asks = policy.rules.iter().any(|rule| matches!(rule.who.0, Kind::Certificate(_)));
        let (true, Some(identity)) = (asks, request.identity()) else { return Arc::default() };
        let PeerIdentity::Certificate(chain) = identity else { return Arc::default() };
        let Some(certificate) = chain.first() else { return Arc::default() };
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = lately.names.get(certificate) {
            return Arc::clone(names);
        }
        let names: Arc<[String]> = identity.names().into();
        if lately.names.len() >= MOST_NAMES {
            lately.names.clear();
        }
        lately.names.insert(certificate.clone(), Arc::clone(&names));
        names
    }
}

impl Buckets {
    fn take(&mut self, now: u64, whose: (usize, RateKey), rate: RateLimit) -> Result<(), u64> {
        if let Some(full_at) = self.full_at.get_mut(&whose) {
            return rate.take(now, full_at);
        }
        if self.full_at.len() >= MOST_BUCKETS && now >= self.swept_at.saturating_add(SWEEP) {
            self.swept_at = now;
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        if self.full_at.len() >= MOST_BUCKETS {
            return rate.take(now, self.others.entry(whose.0).or_default());
        }
        rate.take(now, self.full_at.entry(whose).or_default())
    }
}

/// Whether these segments are those of a pattern, the last of which may stand for several. What steers is below nothing.
fn is_below<'s>(pattern: &[String], mut segments: impl Iterator<Item = &'s [u8]> + Clone) -> bool {
    if segments.clone().any(|segment| matches!(segment, b"." | b"..") || segment.contains(&b'/')) {
        return false;
    }
    for wanted in pattern {
        if wanted == "**" {
            return true;
        }
        if !segments.next().is_some_and(|segment| is_like(wanted.as_bytes(), segment)) {
            return false;
        }
    }
    segments.next().is_none()
}

/// Whether a text is like one in which `*` stands for any run. Takes at most the product of their lengths, which are short.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                back = Some((at, place));
                at += 1;
            }
            Some(byte) if text.get(place) == Some(byte) => (at, place) = (at + 1, place + 1),
            _ => match &mut back {
                // The run is longer by one.
                Some((star, run)) => {
                    *run += 1;
                    (at, place) = (*star + 1, *run);
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Transport, server::request::of_options};

    const SECOND: u64 = 1_000_000;

    fn at(peer: &str, path: &[&str]) -> Request {
        let options: Vec<_> = path.iter().map(|segment| (number::URI_PATH, segment.as_bytes())).collect();
        of_options(&options, b"", peer.parse().unwrap())
    }

    fn by_key(identity: &str, path: &[&str]) -> Request {
        let mut request = at("192.0.2.1:1", path);
        let identity = PeerIdentity::PreSharedKey(Bytes::copy_from_slice(identity.as_bytes()));
        request.identify(Transport::Dtls, Some(Arc::new(identity)));
        request
    }

    fn admits(policing: &Policing, micros: u64, request: &Request) -> Result<(), Refused> {
        policing.admits(Instant::from_micros(micros), request, AddressState::Validated)
    }

    #[test]
    fn a_path_is_allowed_by_its_segments_and_what_steers_by_none() {
        for (pattern, path, is) in [
            ("/", &[][..], true),
            ("/", &["a"], false),
            ("/a", &["a"], true),
            ("/a", &["a", ""], false),
            ("/a/*", &["a", "b"], true),
            ("/a/*", &["a"], false),
            ("/a/*", &["a", "b", "c"], false),
            ("/a/**", &["a"], true),
            ("/a/**", &["a", "b", "c"], true),
            ("/a/**", &["ab"], false),
            ("/**", &[], true),
            ("/a/**", &["a", "..", "secret"], false),
            ("/**", &["a/../b"], false),
            ("/s-*-x/y*", &["s-7-x", "y"], true),
            ("/s-*-x/y*", &["s-7-", "y"], false),
        ] {
            let rule = Rule::of(Who::network("0.0.0.0/0").unwrap()).allow(pattern, []).unwrap();
            assert_eq!(rule.allows(&at("192.0.2.1:1", path)), is, "{pattern} {path:?}");
        }
    }

    #[test]
    fn a_path_that_is_none_is_refused() {
        for path in ["a", "/a/**/b", "/a**", "/../x", "/a/."] {
            assert!(Rule::of(Who::identified()).allow(path, []).is_err(), "{path}");
        }
        assert!(Who::network("192.0.2.0/33").is_err() && Who::network("192.0.2.7").is_ok());
        assert!(RateLimit::per_second(0.0).is_err() && RateLimit::per_second(f64::NAN).is_err());
    }

    #[test]
    fn what_no_rule_allows_is_refused_and_without_rights_everything_is_allowed() {
        let none = Policing::by(Policy::new().rule(Rule::of(Who::identified())));
        assert_eq!(none.allows(&at("192.0.2.1:1", &["a"])), Ok(()));
        let policing = Policing::by(
            Policy::new()
                .rule(Rule::of(Who::pre_shared_key("sensor-*")).allow("/readings/**", [Code::GET]).unwrap())
                .rule(Rule::of(Who::network("198.51.100.0/24").unwrap()).allow("/time", [Code::GET]).unwrap()),
        );
        assert_eq!(policing.allows(&by_key("sensor-7", &["readings", "7"])), Ok(()));
        assert_eq!(policing.allows(&by_key("sensor-7", &["time"])), Err(Refused::Forbidden));
        assert_eq!(policing.allows(&by_key("other", &["readings"])), Err(Refused::Forbidden));
        assert_eq!(policing.allows(&at("198.51.100.9:9", &["time"])), Ok(()));
        assert_eq!(policing.allows(&at("[::ffff:198.51.100.9]:9", &["time"])), Ok(()));
        assert_eq!(policing.allows(&at("192.0.2.1:1", &["time"])), Err(Refused::Forbidden));
        // The identity of a key is no name in a certificate.
        let certificates = Policing::by(Policy::new().rule(Rule::of(Who::certificate("a")).allow("/**", []).unwrap()));
        assert_eq!(certificates.allows(&by_key("a", &["x"])), Err(Refused::Forbidden));
    }

    #[test]
    fn a_bucket_gives_a_burst_and_then_its_rate() {
        let rate = RateLimit::per_second(2.0).unwrap().burst(3);
        let policing = Policing::by(Policy::new().rule(Rule::of(Who::pre_shared_key("*")).limit(rate)));
        let request = by_key("a", &["x"]);
        for _ in 0..3 {
            assert_eq!(admits(&policing, 5 * SECOND, &request), Ok(()));
        }
        assert_eq!(admits(&policing, 5 * SECOND, &request), Err(Refused::TooSoon { again_in: 1 }));
        assert_eq!(admits(&policing, 5 * SECOND, &by_key("b", &["x"])), Ok(()), "each has its own");
        assert_eq!(admits(&policing, 5 * SECOND + SECOND / 2, &request), Ok(()));
        assert!(admits(&policing, 5 * SECOND + SECOND / 2, &request).is_err());
        let admitted = (0..100).filter(|tenth| admits(&policing, 10 * SECOND + tenth * SECOND / 10, &request).is_ok());
        assert_eq!(admitted.count(), 3 + 19);
        let slow = RateLimit::per_second(1.0 / 60.0).unwrap();
        let slow = Policing::by(Policy::new().rule(Rule::of(Who::identified()).limit(slow)));
        assert_eq!(admits(&slow, 0, &request), Ok(()));
        assert_eq!(admits(&slow, 0, &request), Err(Refused::TooSoon { again_in: 60 }));
    }

    #[test]
    fn forged_addresses_take_nothing_from_the_networks_that_they_name() {
        let rate = RateLimit::per_second(8.0).unwrap();
        let policing = Policing::by(Policy::new().rule(Rule::of(Who::network("0.0.0.0/0").unwrap()).limit(rate)));
        let forged = |host: u64| at(&format!("192.0.{}.{}:9", host >> 8 & 255, host & 255), &["x"]);
        let asks = |host| policing.admits(Instant::from_micros(0), &forged(host), AddressState::Unvalidated).is_ok();
        assert_eq!((0..1_000).filter(|_| asks(1)).count(), 8);
        for address in 0..100_000 {
            let peer = format!("10.{}.{}.1:9", address >> 8 & 255, address & 255);
            let _ = policing.admits(Instant::from_micros(0), &at(&peer, &["x"]), AddressState::Unvalidated);
        }
        assert!(policing.lately.lock().unwrap().unvalidated.full_at.len() <= MOST_BUCKETS);
        let validated = (0..1_000).filter(|_| admits(&policing, 0, &forged(1)).is_ok());
        assert_eq!(validated.count(), 8);
        // Once the buckets are full again, there is room.
        assert_eq!(
            policing.admits(Instant::from_micros(9 * SECOND), &at("203.0.113.1:1", &[]), AddressState::Unvalidated),
            Ok(())
        );
    }

    #[test]
    fn the_first_rate_that_is_for_who_asks_counts() {
        let rule = |who, rate| Rule::of(who).limit(RateLimit::per_second(rate).unwrap());
        let policing = Policing::by(
            Policy::new()
                .rule(rule(Who::pre_shared_key("a"), 5.0))
                .rule(rule(Who::network("192.0.2.0/24").unwrap(), 1.0)),
        );
        let count = |request: &Request| (0..100).filter(|_| admits(&policing, 0, request).is_ok()).count();
        assert_eq!((count(&by_key("a", &[])), count(&by_key("b", &[])), count(&by_key("c", &[]))), (5, 1, 0));
        policing.replace(Policy::new());
        assert_eq!(count(&by_key("c", &[])), 100);
    }
}
